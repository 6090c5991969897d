"""IGAP of somebody's own fine-tuning, in a real `transformers.Trainer`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from tests import tiny
from xlx.experiment import transfers
from xlx.measures import igap
from xlx.report.callbacks import RecipeLoss, Recorder
from xlx.subjects import finetuning, loading
from xlx.subjects.finetuning import ClassesError, finetune
from xlx.subjects.jobs import Job, Recipe, Sparing
from xlx.subjects.training import training_loss
from xlx.text.examples import Examples

CODES = ("en", "de", "ja")
STEPS, EVERY, LIMIT = 6, 2, 12


def made(language: str, part: str, n: int) -> Examples:
    return Examples(
        name=f"made {language} {part}",
        language=language,
        first=tuple(f"{tiny.SENTENCES[i % 8]} {language}" for i in range(n)),
        second=tuple(tiny.SENTENCES[-1 - i % 5] for i in range(n)),
        labels=np.arange(n) % 3,
        classes=("no", "yes", "may be"),
        ids=tuple(f"{part}:{i}" for i in range(n)),
    )


TASK = transfers.TransferTask(
    "made",
    {code: made(code, "train", 9) for code in CODES},
    {code: made(code, "test", 5) for code in CODES},
    {},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny")


def classifier(folder: Path, **options: object) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, num_labels=3, **options
        )


def trained(
    folder: Path, out: Path, recorder: Recorder, *more: TrainerCallback, model=None, **options
) -> Trainer:
    words, train = AutoTokenizer.from_pretrained(folder), TASK.train["en"]
    rows = [
        {**words(first, second, truncation=True, max_length=LIMIT), "labels": int(label)}
        for first, second, label in zip(train.first, train.second, train.labels, strict=True)
    ]
    loss = options.pop("compute_loss_func", None)
    arguments = TrainingArguments(
        out, **{
            "max_steps": STEPS, "per_device_train_batch_size": 4, "learning_rate": 3e-3,
            "save_steps": EVERY, "logging_steps": 1, "report_to": [], "disable_tqdm": True,
            "use_cpu": True, "seed": 7, **options,
        },
    )  # fmt: skip
    trainer = Trainer(
        model or classifier(folder), arguments, train_dataset=rows, eval_dataset=rows[:4],
        processing_class=words, callbacks=[recorder, *more], compute_loss_func=loss,
        data_collator=DataCollatorWithPadding(words),
    )  # fmt: skip
    trainer.train()
    return trainer


def literal(folder: Path, examples: Examples) -> np.ndarray:
    """Logits of a saved checkpoint, one example after another."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    words = AutoTokenizer.from_pretrained(folder)
    found = []
    for pair in zip(examples.first, examples.second, strict=True):
        inputs = words(*pair, truncation=True, max_length=LIMIT, return_tensors="pt")
        with torch.no_grad():
            found.append(model(**inputs).logits[0].numpy())
    return np.array(found)


def test_every_checkpoint_is_asked_what_igap_reads(folder, tmp_path) -> None:
    recorder = Recorder(TASK, "en", every=EVERY, max_length=LIMIT, model="mine")
    trainer = trained(folder, tmp_path, recorder)
    run = recorder.run
    assert (run.model, run.source, run.seed, run.learning_rate) == ("mine", "en", 7, 3e-3)
    assert run.steps.tolist() == [2, 4, 6]
    logged = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    np.testing.assert_allclose(run.losses, logged, rtol=1e-3)
    for k, step in enumerate(run.steps):
        for name, examples in TASK.sets.items():
            expected = literal(tmp_path / f"checkpoint-{step}", examples)
            np.testing.assert_allclose(run.logits[name][k], expected, atol=5e-3)
            assert (run.predictions[name][k] == run.logits[name][k].argmax(axis=1)).all()
    assert run.n_cut["train"] == run.n_cut["train en"] > 0
    measured = transfers.Transfers(TASK, (run,))
    gaps = measured.points().query("target == 'de' and step == 4")["interlingual"]
    wrong = [(run.predictions[f"train {c}"][1] != TASK.train[c].labels).mean() for c in CODES]
    assert gaps.item() == pytest.approx(wrong[1] - wrong[0])
    directions = measured.directions(tolerance=1.1, n_resamples=5, n_splits=2)
    assert set(directions["target"]) == set(CODES)
    curves = measured.curves([0.0], tolerance=1.1, n_resamples=5, n_splits=2)
    assert igap.MEAN_TARGET in set(curves["target"])


def test_recording_changes_no_training(folder, tmp_path) -> None:
    def weights(recorder: Recorder, name: str) -> list[torch.Tensor]:
        model = classifier(folder, hidden_dropout_prob=0.3)
        trained(folder, tmp_path / name, recorder, model=model, save_strategy="no")
        assert model.training
        return list(model.parameters())

    often, seldom = (Recorder(TASK, "en", every=n, max_length=LIMIT) for n in (1, 100))
    pairs = zip(weights(often, "often"), weights(seldom, "seldom"), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
    assert (len(often.run.steps), seldom.run.steps.tolist()) == (STEPS, [STEPS])
    np.testing.assert_array_equal(
        often.run.predictions["test de"][-1:], seldom.run.predictions["test de"]
    )


def test_what_is_not_read_is_not_predicted(folder, tmp_path) -> None:
    everything = Recorder(TASK, "en", every=1, max_length=LIMIT)
    trained(folder, tmp_path / "all", everything)
    errors = (everything.run.predictions["train en"] != TASK.train["en"].labels).mean(axis=1)
    level = errors[2]
    sparing = Sparing(((level, 0.01),), every=4)
    spared = Recorder(TASK, "en", every=1, max_length=LIMIT, sparing=sparing)
    trained(folder, tmp_path / "spared", spared)
    inside = np.abs(errors - level) < 0.005
    whole = np.array([step in (4, STEPS) for step in range(1, STEPS + 1)])
    wanted = {"train en": inside | True, "train de": inside | whole, "test ja": whole}
    for name, rows in wanted.items():
        found = spared.run.predictions[name]
        np.testing.assert_array_equal((found >= 0).all(axis=1), rows)
        np.testing.assert_array_equal(found[rows], everything.run.predictions[name][rows])
        assert np.isnan(spared.run.logits[name][~rows]).all()
    assert not inside.all()
    options = {"tolerance": 0.01, "n_resamples": 5, "n_splits": 2}
    one, other = (transfers.Transfers(TASK, (x.run,)).curves([level], **options)
                  for x in (everything, spared))  # fmt: skip
    assert one["igap"].tolist() == other["igap"].tolist()


class _Stop(TrainerCallback):
    def on_step_end(self, args, state, control, **_) -> None:
        control.should_training_stop = state.global_step == 3


def test_a_training_that_is_ended_early_is_asked_at_its_end(folder, tmp_path) -> None:
    recorder = Recorder(TASK, "en", every=2, max_length=LIMIT, sparing=Sparing())
    trained(folder, tmp_path, recorder, _Stop())
    assert recorder.run.steps.tolist() == [2, 3]
    assert (recorder.run.predictions["test de"] >= 0).all(axis=1).tolist() == [False, True]
    assert np.isfinite(recorder.run.losses).tolist() == [True] * 3 + [False] * 3


def test_labels_have_names_or_numbers(folder, tmp_path) -> None:
    model = classifier(folder, id2label={0: "May-be", 1: "NO", 2: "yes"})
    recorder = Recorder(TASK, "en", every=9, max_length=LIMIT)
    trained(folder, tmp_path, recorder, model=model)
    expected = literal(tmp_path / f"checkpoint-{STEPS}", TASK.test["ja"])[:, [1, 2, 0]]
    np.testing.assert_allclose(recorder.run.logits["test ja"][-1], expected, atol=5e-3)
    assert (recorder.run.predictions["test ja"][-1] == expected.argmax(axis=1)).all()
    recorder.classes = {0: "no", 1: "no", 2: "yes"}
    with pytest.raises(ClassesError, match=r"labels \(May-be, NO, yes\) are not the classes"):
        trained(folder, tmp_path, recorder, model=model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "fr"}, "there is no language of made 'fr': choose en, de, ja"),
        ({"every": 0}, "every is 0: it must be a whole number, 1 or more"),
    ],
)
def test_what_cannot_be_recorded_is_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Recorder(TASK, **{"source": "en", **options})


def test_nothing_is_recorded_before_training() -> None:
    with pytest.raises(ValueError, match="nothing is recorded yet"):
        _ = Recorder(TASK, "en").run
    with pytest.raises(ValueError, match="give the trainer its processing_class"):
        Recorder(TASK, "en").on_train_begin(None, None, None, model=torch.nn.Linear(1, 1))


# --- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["vanilla", "gaussian", "xtune"])
def test_losses_are_those_of_our_own_loop(folder, algorithm) -> None:
    model = classifier(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    recipe = Recipe(algorithm=algorithm, noise=0.3, consistency=2.0, max_length=LIMIT)
    tuned = finetuning.in_training(model, AutoTokenizer.from_pretrained(folder), recipe)
    rows = tuned.padded(tuned.laid_out(TASK.train["de"]).rows)
    labels = torch.from_numpy(TASK.train["de"].labels)
    model.train()
    expected = [training_loss(model, rows, labels, recipe, (5, batch)) for batch in (1, 2, 3)]
    loss = RecipeLoss(model, recipe, 5)
    found = [loss(model(**rows), labels) for _ in range(2)]
    found.append(3 * loss(model(**rows), labels, num_items_in_batch=3 * len(labels)))
    assert torch.stack(found).tolist() == pytest.approx(torch.stack(expected).tolist(), rel=1e-5)
    assert (found[0] == found[1]).item() == (algorithm == "vanilla")
    model.eval()
    plain = torch.nn.functional.cross_entropy(model(**rows).logits, labels)
    assert loss(model(**rows), labels).item() == pytest.approx(plain.item(), rel=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_both_passes_of_xtune_leave_out_the_same_units_if_asked_to(folder, shared) -> None:
    model = classifier(folder, hidden_dropout_prob=0.4).train()
    recipe = Recipe(algorithm="xtune", noise=0.0, shared_dropout=shared, max_length=LIMIT)
    tuned = finetuning.in_training(model, AutoTokenizer.from_pretrained(folder), recipe)
    rows = tuned.padded(tuned.laid_out(TASK.train["de"]).rows)
    labels, loss = torch.from_numpy(TASK.train["de"].labels), RecipeLoss(model, recipe, 5)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        output = model(**rows)
        before = torch.get_rng_state()
        more = loss(output, labels) - torch.nn.functional.cross_entropy(output.logits, labels)
        assert torch.equal(before, torch.get_rng_state()) == shared
    assert (abs(more.item()) < 1e-6) == shared


def test_a_trainer_trains_by_them(folder, tmp_path) -> None:
    def losses(algorithm: str) -> np.ndarray:
        recorder = Recorder(TASK, "en", max_length=LIMIT, algorithm=algorithm)
        model = classifier(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        loss = RecipeLoss(model, Recipe(algorithm=algorithm, noise=5.0), 1)
        options = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 2}
        trained(
            folder, tmp_path / algorithm, recorder, model=model, compute_loss_func=loss, **options
        )
        assert recorder.run.algorithm == algorithm
        return recorder.run.losses

    plain = Recorder(TASK, "en", max_length=LIMIT)
    options = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    trained(folder, tmp_path / "plain", plain, model=classifier(folder, **options))
    np.testing.assert_allclose(losses("vanilla"), plain.run.losses, rtol=1e-3)
    assert not np.allclose(losses("xtune"), plain.run.losses, rtol=1e-3)


def test_accumulated_gradients_train_as_our_own_loop_does(folder, tmp_path) -> None:
    # A batch is the whole training set, so that its order does not count; three parts of it make a
    # step of the trainer.
    recipe = Recipe(
        epochs=STEPS, batch_size=9, every=EVERY, learning_rate=3e-3, warmup=0.0, max_length=LIMIT,
        dropout=0.0,
    )  # fmt: skip
    own = finetune(Job(str(folder), TASK.train["en"], TASK.sets, recipe, seed=7))
    model, _, _ = loading.task_model(str(folder), 3, 7, LIMIT, dropout=0.0)
    recorder = Recorder(TASK, "en", every=EVERY, max_length=LIMIT)
    options = {
        "per_device_train_batch_size": 3, "gradient_accumulation_steps": 3,
        "lr_scheduler_type": "constant",
    }  # fmt: skip
    loss = RecipeLoss(model, recipe, 7)
    trained(folder, tmp_path, recorder, model=model, compute_loss_func=loss, **options)
    np.testing.assert_allclose(recorder.run.losses, own.losses, rtol=2e-3)
    for name, logits in own.logits.items():
        np.testing.assert_allclose(recorder.run.logits[name], logits, atol=5e-3)


def test_batches_without_labels_are_named(folder) -> None:
    with pytest.raises(ValueError, match="the batches have no labels"):
        RecipeLoss(classifier(folder), replace(Recipe(), algorithm="xtune"), 1)({}, None)
