"""IGAP of somebody's own fine-tuning, in a real `transformers.Trainer`."""

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
from xlx.report.callbacks import Recorder
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
    arguments = TrainingArguments(
        out, **{
            "max_steps": STEPS, "per_device_train_batch_size": 4, "learning_rate": 3e-3,
            "save_steps": EVERY, "logging_steps": 1, "report_to": [], "disable_tqdm": True,
            "use_cpu": True, "seed": 7, **options,
        },
    )  # fmt: skip
    trainer = Trainer(
        model or classifier(folder), arguments, train_dataset=rows, eval_dataset=rows[:4],
        processing_class=words, callbacks=[recorder, *more],
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
    model = classifier(folder, id2label={0: "May-be", 1: "NO", 2: "yes"})  # by name, not by place
    trainer = trained(folder, tmp_path, recorder, model=model)
    run = recorder.run
    assert (run.model, run.source, run.seed, run.learning_rate) == ("mine", "en", 7, 3e-3)
    assert run.steps.tolist() == [2, 4, 6]
    logged = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    np.testing.assert_allclose(run.losses, logged, rtol=1e-3)
    for k, step in enumerate(run.steps):
        for name, examples in TASK.sets.items():
            expected = literal(tmp_path / f"checkpoint-{step}", examples)[:, [1, 2, 0]]
            np.testing.assert_allclose(run.logits[name][k], expected, atol=5e-3)
            assert (run.predictions[name][k] == run.logits[name][k].argmax(axis=1)).all()
    assert run.n_cut["train"] == run.n_cut["train en"] > 0
    gaps = transfers.Transfers(TASK, (run,)).points().query("target == 'de' and step == 4")
    wrong = [(run.predictions[f"train {c}"][1] != TASK.train[c].labels).mean() for c in CODES]
    assert gaps["interlingual"].item() == pytest.approx(wrong[1] - wrong[0])


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


class _Stop(TrainerCallback):
    def on_step_end(self, args, state, control, **_) -> None:
        control.should_training_stop = state.global_step == 3


def test_a_training_that_is_ended_early_is_asked_at_its_end(folder, tmp_path) -> None:
    recorder = Recorder(TASK, "en", every=2, max_length=LIMIT)
    trained(folder, tmp_path, recorder, _Stop())
    assert recorder.run.steps.tolist() == [2, 3]
    assert np.isfinite(recorder.run.losses).tolist() == [True] * 3 + [False] * 3


def test_what_cannot_be_recorded_is_refused() -> None:
    for options, message in (
        ({"source": "fr"}, "there is no language of made 'fr': choose en, de, ja"),
        ({"every": 0}, "every is 0: it must be a whole number, 1 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            Recorder(TASK, **{"source": "en", **options})
    with pytest.raises(ValueError, match="nothing is recorded yet"):
        _ = Recorder(TASK, "en").run
    with pytest.raises(ValueError, match="give the trainer its processing_class"):
        Recorder(TASK, "en").on_train_begin(None, None, None, model=torch.nn.Linear(1, 1))
