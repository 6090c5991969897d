"""Fine-tuning: algorithms, what a run keeps, stopping and resuming, and what it refuses."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests import tiny
from xlx.core import provenance, work
from xlx.core.settings import current, settings
from xlx.core.store import StoreWarning
from xlx.models import finetuning, loading, snapshots, training
from xlx.models.finetuning import FinetuningError, Job, Recipe, Sparing, finetune, finetune_all
from xlx.text.examples import Examples

RECIPE = Recipe(epochs=4, batch_size=3, learning_rate=3e-3, every=2, max_length=32)


def made(language: str = "en", n: int = 8, pairs: bool = False) -> Examples:
    texts = [f"{text} {language}" for text in tiny.SENTENCES]
    return Examples(
        name=f"made {language}",
        language=language,
        first=tuple(texts[i % len(texts)] for i in range(n)),
        second=tuple(texts[-1 - i % len(texts)] for i in range(n)) if pairs else None,
        labels=np.arange(n) % 2,
        classes=("no", "yes"),
        ids=tuple(map(str, range(n))),
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    # With dropout, so that a resumed run must draw the same as an uninterrupted one.
    return str(tiny.save(folder, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3))


@pytest.fixture
def cache() -> Path:
    return current().cache


def job(model: str, **changes: object) -> Job:
    recipe = {key: value for key, value in changes.items() if hasattr(RECIPE, key)}
    own = {key: value for key, value in changes.items() if key not in recipe}
    train = own.pop("train", made())
    sets = own.pop("evaluations", {"en": train, "de": made("de", 5)})
    return Job(model, train, sets, replace(RECIPE, **recipe), **own)


def same(one: finetuning.Run, other: finetuning.Run) -> bool:
    return (one.losses == other.losses).all() and all(
        (one.predictions[name] == other.predictions[name]).all() for name in one.predictions
    )


# --- what a run keeps -----------------------------------------------------------------------------


def test_predictions_of_every_checkpoint_are_kept(model: str) -> None:
    found = finetune(job(model, max_length=None))
    # 8 examples in batches of 3: 3 steps an epoch, 12 in all.
    assert found.steps.tolist() == [2, 4, 6, 8, 10, 12]
    assert found.losses.shape == (12,)
    assert {name: array.shape for name, array in found.predictions.items()} == {
        "en": (6, 8),
        "de": (6, 5),
    }
    assert set(np.unique(found.predictions["en"])) <= {0, 1}
    assert (found.model, found.source, found.algorithm, found.seed) == (model, "en", "vanilla", 1)
    assert found.n_cut == {"train": 0, "en": 0, "de": 0}


def test_the_last_step_is_a_checkpoint_in_any_case() -> None:
    for every, steps in ((5, [5, 10, 12]), (50, [12]), (6, [6, 12])):
        assert replace(RECIPE, every=every).checkpoint_steps(8) == steps


def test_a_model_learns_its_training_set(model: str) -> None:
    train = made()
    found = finetune(job(model, train=train, epochs=25, every=75))
    assert (found.predictions["en"][-1] == train.labels).all()
    assert found.losses[-5:].mean() < 0.5 * found.losses[:5].mean()


def test_predictions_are_those_of_the_kept_weights(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    found = finetune(job(model), weights=folder)
    assert sorted(path.name for path in folder.glob("step-*")) == [
        f"step-{step:06d}" for step in found.steps
    ]
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    for k in (0, 5):
        path = folder / f"step-{found.steps[k]:06d}"
        tuned = AutoModelForSequenceClassification.from_pretrained(path).eval()
        tokenizer = AutoTokenizer.from_pretrained(path)
        # One by one, without padding.
        labels = [
            int(tuned(**tokenizer(text, return_tensors="pt")).logits.argmax())
            for text in made("de", 5).first
        ]
        assert labels == found.predictions["de"][k].tolist()


def test_kept_weights_are_a_series_to_look_into(model: str, tmp_path: Path) -> None:
    finetune(job(model), weights=tmp_path / "weights")
    assert [item.step for item in loading.checkpoints(str(tmp_path / "weights"))][-1] == 12
    assert loading.load(tmp_path / "weights", device="cpu").kind == "encoder"


def test_pairs_are_read_with_both_sides(model: str) -> None:
    train = made(pairs=True)
    other = replace(train, second=train.second[::-1])
    one = finetune(job(model, train=train, evaluations={"en": train}))
    two = finetune(job(model, train=other, evaluations={"en": train}))
    assert (one.losses != two.losses).any()


def test_long_texts_are_cut_and_counted(model: str) -> None:
    sets = {"de": made("de", 5)}
    found = finetune(job(model, max_length=15, evaluations=sets))
    tokenizer = loading.load(model, device="cpu").tokenizer
    long = {
        name: sum(len(ids) > 15 for ids in tokenizer(list(part.first))["input_ids"])
        for name, part in {"train": made(), **sets}.items()
    }
    assert found.n_cut == long
    assert 0 < found.n_cut["de"] < 5


def test_predictions_do_not_depend_on_what_else_is_predicted(model: str) -> None:
    alone = finetune(job(model, evaluations={"de": made("de", 5)}))
    together = finetune(job(model))
    assert (alone.predictions["de"] == together.predictions["de"]).all()


def test_seeds_differ_and_each_repeats(model: str, tmp_path: Path) -> None:
    first = finetune(job(model))
    other = finetune(job(model, seed=2))
    with settings(cache=tmp_path / "other"):
        again = finetune(job(model))
    assert same(first, again)
    assert (first.losses != other.losses).any()


def test_the_random_numbers_of_the_process_are_left_alone(model: str) -> None:
    before = torch.get_rng_state()
    threads = torch.get_num_threads()
    finetune(job(model, algorithm="xtune"))
    assert (torch.get_rng_state() == before).all()
    assert torch.get_num_threads() == threads


# --- the rate -------------------------------------------------------------------------------------


def test_the_rate_rises_over_the_first_tenth_and_is_fixed(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = []
    step = torch.optim.AdamW.step

    def spy(self, *arguments, **options):
        rates.append(self.param_groups[0]["lr"])
        assert self.param_groups[0]["weight_decay"] == 0.0
        return step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    finetune(job(model, epochs=10, learning_rate=1e-3))  # 30 steps
    assert rates == pytest.approx([0, 1e-3 / 3, 2e-3 / 3, *[1e-3] * 27])


# --- noise and consistency ------------------------------------------------------------------------


def test_noise_has_the_variance_asked_for() -> None:
    embedding = torch.nn.Embedding(10, 64)
    ids = torch.arange(10).repeat(200, 1)
    clean = embedding(ids)
    with training.gaussian_noise(embedding, 0.075, torch.Generator().manual_seed(1)):
        noise = (embedding(ids) - clean).detach()
    n = noise.numel()
    assert abs(float(noise.mean())) < 4 * 0.075 / math.sqrt(n)
    assert abs(float(noise.std()) - 0.075) < 4 * 0.075 / math.sqrt(2 * n)
    # Each occurrence of a word has its own.
    assert not torch.equal(noise[0], noise[1])
    assert torch.equal(embedding(ids), clean)


def test_noise_is_measured_against_the_spread_of_word_embeddings(model: str) -> None:
    weights = loading.load(model).model.get_input_embeddings().weight
    assert finetuning.embedding_sd(model) == pytest.approx(float(weights.std()))


def test_consistency_is_the_sum_of_two_divergences() -> None:
    clean, noisy = torch.tensor([[1.0, 0.0], [0.5, 2.0]]), torch.tensor([[0.0, 0.3], [0.5, 2.0]])
    total = 0.0
    for a, b in zip(clean.double().numpy(), noisy.double().numpy(), strict=True):
        p, q = np.exp(a) / np.exp(a).sum(), np.exp(b) / np.exp(b).sum()
        total += sum(p * np.log(p / q)) + sum(q * np.log(q / p))
    assert float(training.consistency(clean, noisy)) == pytest.approx(total / 2, rel=1e-5)


def test_each_divergence_holds_its_first_distribution_fixed() -> None:
    clean = torch.tensor([[1.0, 0.0]], requires_grad=True)
    noisy = torch.tensor([[0.0, 0.3]])
    training.consistency(clean, noisy).backward()
    other = clean.detach().clone().requires_grad_()
    q = functional.softmax(noisy, -1)
    # Only KL(Q || P) moves P.
    (q * (q.log() - functional.log_softmax(other, -1))).sum().backward()
    assert torch.allclose(clean.grad, other.grad)


@pytest.mark.parametrize("changes", [{"consistency": 0.0}, {"noise": 0.0}])
def test_the_extra_term_of_xtune_is_zero_without_weight_or_noise(
    model: str, changes: dict[str, float]
) -> None:
    tuned, tokenizer, _ = loading.classifier(model, 2, seed=1)
    tuned.train()  # with dropout: both passes must drop out the same
    inputs = tokenizer(list(tiny.SENTENCES), padding=True, return_tensors="pt")
    labels = torch.tensor(made().labels)
    recipe = replace(RECIPE, **changes)

    def loss(algorithm: str) -> torch.Tensor:
        one = replace(recipe, algorithm=algorithm)
        return training.training_loss(tuned, inputs, labels, one, (1, 1)).detach()

    assert torch.equal(loss("xtune"), loss("vanilla"))
    recipe = RECIPE
    assert loss("xtune") > loss("vanilla")


def test_published_xtune_leaves_dropout_to_chance(model: str) -> None:
    """Its two passes drop out other units, so that the extra term is there without any noise."""
    inputs = loading.tokenizer(model)(list(tiny.SENTENCES), padding=True, return_tensors="pt")
    labels = torch.tensor(made().labels)
    published = replace(RECIPE, algorithm="xtune", noise=0.0, shared_dropout=False)

    def loss(recipe: Recipe) -> torch.Tensor:
        tuned, _, _ = loading.classifier(model, 2, seed=1, dropout=recipe.dropout)
        return training.training_loss(tuned.train(), inputs, labels, recipe, (1, 1)).detach()

    vanilla = loss(RECIPE)
    assert loss(replace(published, shared_dropout=True)) == vanilla
    assert loss(published) > vanilla + 0.01
    none = {"dropout": 0.0}
    assert loss(replace(published, **none)) == loss(replace(RECIPE, **none)) != vanilla


def test_dropout_of_the_recipe_is_that_of_the_model(model: str, tmp_path: Path) -> None:
    for dropout, rate in ((None, 0.3), (0.0, 0.0), (0.5, 0.5)):
        tuned, _, _ = loading.classifier(model, 2, 1, dropout=dropout)
        rates = {part.p for part in tuned.modules() if isinstance(part, torch.nn.Dropout)}
        assert rates == {rate}
        assert tuned.config.attention_probs_dropout_prob == rate
    one, other = (finetune(job(model, dropout=dropout)) for dropout in (0.0, 0.3))
    assert not same(one, other)
    assert same(other, finetune(job(model)))
    other = tiny.save(tmp_path / "distil", "distilbert")
    assert loading.reader(str(other), 1, dropout=0.25)[0].distilbert.config.dropout == 0.25


def test_results_of_before_a_field_was_added_are_found() -> None:
    """The ledger names runs by the fields that a recipe had then."""
    assert Recipe().about == {
        "algorithm": "vanilla", "epochs": 40, "batch_size": 32, "learning_rate": 2e-5,
        "warmup": 0.1, "weight_decay": 0.0, "clip": 1.0, "noise": 0.075, "consistency": 1.0,
        "every": 10, "max_length": 128, "dtype": "float32", "schedule": "constant", "stride": 128,
        "longest_answer": 30,
    }  # fmt: skip
    other = Recipe(dropout=0.1, shared_dropout=False).about
    assert other.items() - Recipe().about.items() == {("dropout", 0.1), ("shared_dropout", False)}


# --- sparing --------------------------------------------------------------------------------------


def test_what_is_spared_is_not_asked_and_the_rest_is_the_same(model: str) -> None:
    train, sets = made(), {"en": made(), "de": made("de"), "test": made("fr", 5)}
    options = {"train": train, "evaluations": sets, "epochs": 8}
    full = finetune(job(model, **options))
    errors = (full.predictions["en"] != train.labels).mean(axis=1)
    level = float(np.median(errors[:-1]))
    inside = (errors >= level) & (errors < level + 0.05)
    assert 0 < inside[:-1].sum() < len(inside) - 1  # some, and not all
    sparing = Sparing(((level, 0.05),), every=6, decides="en", inside=("de",))
    spared = finetune(job(model, **options, sparing=sparing))
    everything = (full.steps % 6 == 0) | (full.steps == full.steps[-1])
    for name, asked in {
        "en": np.ones(len(errors), bool), "de": everything | inside, "test": everything,
    }.items():  # fmt: skip
        found, logits = spared.predictions[name], spared.logits[name]
        np.testing.assert_array_equal(found[asked], full.predictions[name][asked])
        assert (found[~asked] == -1).all()
        assert np.isnan(logits[~asked]).all()
        assert not np.isnan(logits[asked]).any()
    one, other = (finetuning.run_about(job(model, **options, sparing=x)) for x in (None, sparing))
    assert "sparing" not in one
    assert one == {key: value for key, value in other.items() if key != "sparing"}
    values = [work.result(finetuning.RUN, about, None) for about in (one, other)]
    assert finetuning.RUN.difference(values[1], values[1]) == 0
    assert finetuning.RUN.difference(*values) == math.inf


def test_gaussian_is_vanilla_without_noise(model: str) -> None:
    vanilla = finetune(job(model))
    assert same(vanilla, finetune(job(model, algorithm="gaussian", noise=0.0)))
    assert not same(vanilla, finetune(job(model, algorithm="gaussian")))


# --- stopping and resuming ------------------------------------------------------------------------


def killed(monkeypatch: pytest.MonkeyPatch, wanted: Job, cache: Path, step: int = 8) -> Path:
    """Start a run that keeps no weights and is killed in this step; the state that it leaves."""
    loss, count = training.training_loss, [0]

    def stopped(*arguments):
        count[0] += 1
        if count[0] == step:
            monkeypatch.setattr(training, "training_loss", loss)
            raise KeyboardInterrupt
        return loss(*arguments)

    monkeypatch.setattr(training, "training_loss", stopped)
    monkeypatch.setattr(training, "SAVE_SECONDS", 0.0)
    # A state is of the code that left it, and a stand-in is other code.
    monkeypatch.setattr(provenance, "code_hash", lambda function: "one")
    with pytest.raises(KeyboardInterrupt):
        finetune(wanted)
    (state,) = cache.rglob("*.pt")
    return state


@pytest.mark.parametrize("algorithm", finetuning.ALGORITHMS)
def test_a_stopped_run_goes_on_as_if_it_had_not_been(
    algorithm: str, model: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = job(model, algorithm=algorithm)
    with settings(cache=cache / "whole"):
        whole = finetune(wanted)
    state = killed(monkeypatch, wanted, cache)
    steps = []
    loss = training.training_loss

    def spy(*arguments):
        steps.append(arguments[-1][1])
        return loss(*arguments)

    monkeypatch.setattr(training, "training_loss", spy)
    assert same(finetune(wanted), whole)
    assert steps == [8, 9, 10, 11, 12]
    assert not state.exists()


def test_a_stopped_run_keeps_all_its_weights(
    model: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(monkeypatch, job(model), cache)
    folder = cache / "weights"
    found = finetune(job(model), weights=folder)
    for step in found.steps:
        assert (folder / f"step-{step:06d}" / "config.json").exists()


def test_weights_are_there_as_a_whole_or_not_at_all(
    model: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, wanted, save = cache / "weights", job(model), training.save_weights

    def stopped(*arguments: object) -> None:
        if arguments[-1].name == "step-000008":
            raise KeyboardInterrupt
        return save(*arguments)

    monkeypatch.setattr(training, "save_weights", stopped)
    monkeypatch.setattr(training, "SAVE_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        finetune(wanted, weights=folder)
    assert not folder.exists()
    monkeypatch.setattr(training, "save_weights", save)
    found = finetune(wanted, weights=folder)
    assert len(list(folder.glob("step-*"))) == len(found.steps)
    assert [path.name for path in cache.iterdir() if "weights" in path.name] == ["weights"]


def of_another_run(state: Path) -> None:
    left = torch.load(state, weights_only=True)
    snapshots.save_state(state, left | {"key": json.dumps({"model": "another"})})


def flipped(state: Path) -> None:
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)


def folder_instead(state: Path) -> None:
    state.unlink()
    state.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        of_another_run,
        flipped,
        folder_instead,
        lambda state: state.write_bytes(state.read_bytes()[:-1000]),
        lambda state: state.write_bytes(b""),
        lambda state: state.write_bytes(b"not a state"),
        lambda state: torch.save({"key": "of an earlier form"}, state),
    ],
)
def test_a_state_that_is_not_the_runs_own_is_begun_anew(
    spoil, model: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = killed(monkeypatch, job(model), cache)
    spoil(state)
    with pytest.warns(StoreWarning, match="is not used"):
        found = finetune(job(model))
    with settings(cache=cache / "whole"):
        assert same(finetune(job(model)), found)
    assert not list(cache.rglob("*.pt*"))


def test_every_flipped_byte_of_a_state_is_seen(tmp_path: Path) -> None:
    # the checksums within torch's archive are not compared when it is read
    state, where = tmp_path / "state.pt", torch.device("cpu")
    snapshots.save_state(state, {"weights": torch.arange(20.0)})
    content = state.read_bytes()
    assert snapshots.saved_state(state, where)["weights"][3] == 3
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 1
        state.write_bytes(changed)
        with pytest.warns(StoreWarning, match="is not used: it"):
            assert snapshots.saved_state(state, where) is None
        assert not state.exists()
        assert state.with_name("state.pt.damaged").read_bytes() == changed


def test_weights_of_a_killed_process_are_gone_on_with(
    model: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SAVE_SECONDS", 0.0)
    folder, wanted, save = cache / "weights", job(model), training.save_weights

    def stopped(*arguments: object) -> None:
        if arguments[-1].name == "step-000008":
            raise KeyboardInterrupt
        return save(*arguments)

    monkeypatch.setattr(provenance, "code_hash", lambda function: "one")
    monkeypatch.setattr(training, "save_weights", stopped)
    with pytest.raises(KeyboardInterrupt):
        finetune(wanted, weights=folder)
    monkeypatch.setattr(training, "save_weights", save)
    (part,) = cache.glob(".weights.*.part")
    gone = part.with_name(part.name.replace(str(os.getpid()), "999999999"))
    part.rename(gone)  # as another process would have left it
    (gone / ".step-000008.host.1.0.tmp").mkdir()
    steps, loss = [], training.training_loss

    def spy(*arguments):
        steps.append(arguments[-1][1])
        return loss(*arguments)

    monkeypatch.setattr(training, "training_loss", spy)
    finetune(wanted, weights=folder)
    assert steps == [8, 9, 10, 11, 12]
    assert finetuning._flaw(folder, wanted) is None
    names = {path.name for path in folder.iterdir()}
    assert names == {"run.json", *(f"step-{step:06d}" for step in range(2, 13, 2))}
    assert [path.name for path in cache.iterdir() if "weights" in path.name] == ["weights"]


def test_a_folder_of_another_run_is_refused(model: str, tmp_path: Path) -> None:
    finetune(job(model), weights=tmp_path / "weights")
    with pytest.raises(FinetuningError, match=r"holds the checkpoints of another run"):
        finetune(job(model, seed=2), weights=tmp_path / "weights")
    finetune(job(model), weights=tmp_path / "weights")  # the same run may come back
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(FinetuningError, match=r"is not empty and holds no run"):
        finetune(job(model), weights=tmp_path / "other")


def test_what_was_done_is_not_done_again(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = finetune(job(model))

    def never(*arguments):
        raise AssertionError("trained again")

    monkeypatch.setattr(finetuning, "trained_run", never)
    assert same(finetune(job(model)), first)
    # whatever the sets are called
    renamed = finetune(job(model, evaluations={"a": made(), "b": made("de", 5)}))
    assert (renamed.predictions["b"] == first.predictions["de"]).all()
    with pytest.raises(AssertionError):
        finetune(job(model, evaluations={"en": made()}))


def test_runs_side_by_side_are_those_one_after_another(model: str, tmp_path: Path) -> None:
    jobs = [job(model, seed=seed) for seed in (1, 2, 1)]
    alone = finetune_all(jobs)
    with settings(cache=tmp_path / "both", workers=2):
        both = finetune_all(jobs, weights=True)
        folders = [finetuning.weights_folder(one) for one in jobs[:2]]
    assert [run.seed for run in both] == [1, 2, 1]
    assert all(same(one, other) for one, other in zip(alone, both, strict=True))
    assert len(list((tmp_path / "both" / "results").rglob("*.arrow"))) == 2
    assert all((folder / "step-000012").exists() for folder in folders)


def test_logits_are_those_of_the_predictions(model: str) -> None:
    found = finetune(job(model))
    assert found.logits["de"].shape == (6, 5, 2)
    assert found.logits["de"].dtype == np.float16
    for name, logits in found.logits.items():
        assert (logits.argmax(axis=2) == found.predictions[name]).all()


def test_runs_are_as_far_apart_as_their_scores(model: str) -> None:
    train = made()
    sets = {"en": train, "de": made("de", 5)}
    finetune(job(model, evaluations=sets))
    value = work.result(finetuning.RUN, finetuning.run_about(job(model, evaluations=sets)))
    right = np.mean(value["predicted"][:, 8:] == sets["de"].labels, axis=1)
    np.testing.assert_allclose(value["score"][:, 1], right)
    other = value | {"score": value["score"] + [[0.1, 0.2]]}
    assert finetuning.RUN.difference(value, other) == pytest.approx(0.15)
    assert finetuning.RUN.difference(value, value | {"steps": value["steps"][1:]}) == np.inf


# --- what is refused ------------------------------------------------------------------------------


ONE_CLASS = made().relabelled(np.ones(8, int))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "xTune"}, "algorithm 'xTune' is not one of vanilla, gaussian, xtune"),
        ({"epochs": 0}, "epochs is 0"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"warmup": 1.0}, "warmup is 1.0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dtype": "float16"}, "dtype 'float16'"),
        ({"max_length": 65}, "max_length is 65, but .* takes 64 tokens"),
        ({"train": ONE_CLASS}, "made en: all 8 examples are of one class"),
        ({"evaluations": {}}, "there is no set to predict"),
        ({"evaluations": {"train": made()}}, '"train" names the training set'),
        ({"evaluations": {"de": made("de", 0)}}, "the set de to predict is empty"),
        ({"evaluations": {"de": made(pairs=True)}}, "not both of pairs or both of sentences"),
        ({"sparing": {"decides": "fr"}}, "sparing names fr, and the sets to predict are en, de"),
        ({"sparing": {"decides": "en", "inside": ("fr",)}}, "sparing names fr"),
        ({"sparing": {"every": 0}}, "every is 0 steps"),
        ({"sparing": {"windows": ((0.0, 0.0),)}}, "a tolerance above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(model: str, changes: dict, message: str) -> None:
    def start() -> None:
        sparing = {"sparing": Sparing(**changes["sparing"])} if "sparing" in changes else {}
        finetune(job(model, **(changes | sparing)))

    with pytest.raises(ValueError, match=message):
        start()


def test_all_jobs_are_checked_before_the_first_starts(model: str, cache: Path) -> None:
    with pytest.raises(FinetuningError, match="one class"):
        finetune_all([job(model), job(model, train=ONE_CLASS)])
    assert not list(cache.rglob("*.arrow"))


def test_a_decoder_is_refused(tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "decoder", "llama")
    with pytest.raises(ValueError, match=r"kind decoder: only encoders are fine-tuned"):
        finetune(job(str(folder)))


def test_a_loss_that_is_no_number_stops_with_step_and_rate(model: str, cache: Path) -> None:
    wanted = job(model, learning_rate=1e12, warmup=0.0, clip=1e30, epochs=20)
    with pytest.raises(FinetuningError, match=r"no longer a number at step \d+ \(learning rate 1e"):
        finetune(wanted)
    assert not list(cache.rglob("*.arrow"))


# --- the head -------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["xlm-roberta", "bert", "distilbert"])
def test_only_the_head_is_new(architecture: str, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "model", architecture)
    encoder = loading.load(folder, device="cpu").model.state_dict()
    one, _, limit = loading.classifier(folder, 3, seed=1)
    same_seed, other_seed = (loading.classifier(folder, 3, seed=seed)[0] for seed in (1, 2))
    assert limit == 64
    inside = one.base_model.state_dict()
    for name, weights in encoder.items():
        assert torch.equal(inside[name], weights)
    changed = [
        name
        for name, weights in one.state_dict().items()
        if not torch.equal(weights, other_seed.state_dict()[name])
    ]
    assert changed
    assert not any(name.removeprefix(one.base_model_prefix + ".") in encoder for name in changed)
    for name, weights in one.state_dict().items():
        assert torch.equal(weights, same_seed.state_dict()[name])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("algorithm", finetuning.ALGORITHMS)
def test_a_gpu_learns_too(algorithm: str, model: str) -> None:
    train = made()
    wanted = job(model, train=train, epochs=40, every=120, algorithm=algorithm)
    with settings(device="cuda"):
        found = finetune(wanted)
    assert (found.predictions["en"][-1] == train.labels).mean() > 0.7
