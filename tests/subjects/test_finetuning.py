"""Fine-tuning: algorithms, what a run keeps, stopping and resuming, and what it refuses."""

import math
from dataclasses import replace
from inspect import getclosurevars
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import tiny
from tests.text.made import spoken as made
from xlx.results import provenance, work
from xlx.results.settings import current, settings
from xlx.subjects import finetuning, identity, jobs, loading
from xlx.subjects.finetuning import Run, finetune_all
from xlx.subjects.jobs import Job, Recipe, Sparing

RECIPE = Recipe(epochs=4, batch_size=3, learning_rate=3e-3, every=2, max_length=32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    # With dropout, so that a resumed run must draw the same as an uninterrupted one.
    return str(tiny.save(folder, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3))


@pytest.fixture(scope="module")
def vanilla(model: str) -> Run:
    """The run of `job` as it is."""
    return finetune(job(model))


@pytest.fixture
def cache() -> Path:
    return current().cache


def job(model: str, **changes: object) -> Job:
    recipe = {key: value for key, value in changes.items() if hasattr(RECIPE, key)}
    own = {key: value for key, value in changes.items() if key not in recipe}
    train = own.pop("train", made())
    sets = own.pop("evaluations", {"en": train, "de": made("de", 5)})
    return Job(model, train, sets, replace(RECIPE, **recipe), **own)


def finetune(wanted: Job) -> Run:
    return finetune_all([wanted])[0]


def same(one: Run, other: Run) -> bool:
    return (one.losses == other.losses).all() and all(
        (one.predictions[name] == other.predictions[name]).all() for name in one.predictions
    )


# --- what a run keeps -----------------------------------------------------------------------------


def test_predictions_of_every_checkpoint_are_kept(model: str, vanilla: Run) -> None:
    # 8 examples in batches of 3: 3 steps an epoch, 12 in all.
    assert vanilla.steps.tolist() == [2, 4, 6, 8, 10, 12]
    assert vanilla.losses.shape == (12,)
    assert {name: array.shape for name, array in vanilla.logits.items()} == {
        "en": (6, 8, 2),
        "de": (6, 5, 2),
    }
    for name, logits in vanilla.logits.items():
        assert logits.dtype == np.float16
        assert (logits.argmax(axis=2) == vanilla.predictions[name]).all()
    named = (vanilla.model, vanilla.source, vanilla.algorithm, vanilla.seed)
    assert named == ("tiny", "en", "vanilla", 1)
    for every, steps in ((5, [5, 10, 12]), (50, [12]), (6, [6, 12])):
        assert replace(RECIPE, every=every).checkpoint_steps(8) == steps


def test_a_model_learns_its_training_set(model: str) -> None:
    train = made()
    found = finetune(job(model, train=train, epochs=25, every=75))
    assert (found.predictions["en"][-1] == train.labels).all()
    assert found.losses[-5:].mean() < 0.5 * found.losses[:5].mean()


def test_predictions_are_those_of_the_kept_weights(model: str, vanilla: Run, cache: Path) -> None:
    finetune_all([job(model)], weights=True)
    tuned = finetuning.tuned(job(model))
    tuned.model.eval()
    # One by one, without padding.
    labels = [
        int(tuned.model(**tuned.tokenizer(text, return_tensors="pt")).logits.argmax())
        for text in made("de", 5).first
    ]
    assert labels == vanilla.predictions["de"][-1].tolist()


def test_seeds_differ_and_each_repeats_and_leaves_the_process_alone(
    model: str, vanilla: Run
) -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    assert same(finetune(job(model)), vanilla)
    assert (finetune(job(model, seed=2)).losses != vanilla.losses).any()
    assert (torch.get_rng_state() == before).all()
    assert torch.get_num_threads() == threads


# --- noise and consistency ------------------------------------------------------------------------


def test_consistency_is_the_sum_of_two_divergences() -> None:
    clean, noisy = torch.tensor([[1.0, 0.0], [0.5, 2.0]]), torch.tensor([[0.0, 0.3], [0.5, 2.0]])
    total = 0.0
    for a, b in zip(clean.double().numpy(), noisy.double().numpy(), strict=True):
        p, q = np.exp(a) / np.exp(a).sum(), np.exp(b) / np.exp(b).sum()
        total += sum(p * np.log(p / q)) + sum(q * np.log(q / p))
    assert float(finetuning.consistency(clean, noisy)) == pytest.approx(total / 2, rel=1e-5)


def test_the_extra_term_of_xtune_is_zero_without_weight_or_noise(model: str) -> None:
    rows = loading.tokenizer(model)(list(tiny.SENTENCES), padding=True, return_tensors="pt")
    labels = torch.tensor(made().labels)

    def loss(**changes: object) -> torch.Tensor:
        recipe = replace(RECIPE, **changes)
        tuned, _, _ = loading.task_model(model, 2, seed=1, dropout=recipe.dropout)
        return finetuning.training_loss(tuned.train(), rows, labels, recipe, (1, 1)).detach()

    vanilla = loss()
    assert loss(algorithm="xtune") > vanilla
    # with dropout: both passes must drop out the same
    assert loss(algorithm="xtune", consistency=0.0) == vanilla
    assert loss(algorithm="xtune", noise=0.0) == vanilla
    # as published, they drop out other units, so that the extra term is there without any noise
    published = {"algorithm": "xtune", "noise": 0.0, "shared_dropout": False}
    assert loss(**published) > vanilla + 0.01
    assert loss(**published, dropout=0.0) == loss(dropout=0.0) != vanilla


def test_gaussian_is_vanilla_without_noise(model: str, vanilla: Run) -> None:
    assert same(vanilla, finetune(job(model, algorithm="gaussian", noise=0.0)))
    assert not same(vanilla, finetune(job(model, algorithm="gaussian")))


def test_results_of_before_a_field_was_added_are_found() -> None:
    """The ledger names runs by the fields that a recipe had then."""
    assert Recipe().about == {
        "algorithm": "vanilla",
        "epochs": 40,
        "batch_size": 32,
        "learning_rate": 2e-5,
        "warmup": 0.1,
        "weight_decay": 0.0,
        "clip": 1.0,
        "noise": 0.075,
        "consistency": 1.0,
        "every": 10,
        "max_length": 128,
        "dtype": "float32",
        "schedule": "constant",
        "stride": 128,
        "longest_answer": 30,
    }
    later = {"dropout": 0.1, "shared_dropout": False, "trained_embeddings": False, "length_pool": 8}
    assert Recipe(**later).about.items() - Recipe().about.items() == later.items()


# --- embeddings that stay, batches of like length -------------------------------------------------


def test_fixed_embeddings_stay_and_are_kept_in_no_file(
    model: str, cache: Path, vanilla: Run, killed
) -> None:
    wanted = job(model, trained_embeddings=False)
    table = loading.task_model(model, 2, 1)[0].get_input_embeddings().weight
    with settings(cache=cache / "whole"):
        (whole,) = finetune_all([wanted], weights=True)
        tuned = finetuning.tuned(wanted)
        assert torch.equal(tuned.model.get_input_embeddings().weight, table)
        before = loading.task_model(model, 2, 1)[0].state_dict()
        moved = [name for name, x in tuned.model.state_dict().items() if (x != before[name]).any()]
        assert len(moved) >= len(before) - 2  # all but the table, and rows of positions
    assert not same(whole, vanilla)
    state, steps = killed(wanted)
    left = torch.load(state, weights_only=True)
    assert len(left["optimiser"]["state"]) == len(left["model"])
    for weights in (left["model"], *left["optimiser"]["state"].values()):
        assert all(x.shape != table.shape for x in weights.values())
    assert same(finetune(wanted), whole)
    assert steps == [8, 9, 10, 11, 12]


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
        "en": np.ones(len(errors), bool),
        "de": everything | inside,
        "test": everything,
    }.items():
        found, logits = spared.predictions[name], spared.logits[name]
        np.testing.assert_array_equal(found[asked], full.predictions[name][asked])
        assert (found[~asked] == -1).all()
        assert np.isnan(logits[~asked]).all()
        assert not np.isnan(logits[asked]).any()
        for array in (spared.predictions, spared.logits):  # no more than what was asked is held
            _, places, rows = getclosurevars(array._read).nonlocals["held"][name]
            np.testing.assert_array_equal(places, np.flatnonzero(asked))
            assert len(rows) == asked.sum()
    bare = finetune(job(model, **options, sparing=replace(sparing, logits=False)))
    np.testing.assert_array_equal(bare.predictions["de"], spared.predictions["de"])
    assert np.isnan(bare.logits["en"][~everything]).all()
    np.testing.assert_array_equal(bare.logits["de"][everything], spared.logits["de"][everything])
    one, other = (jobs.run_about(job(model, **options, sparing=x)) for x in (None, sparing))
    assert "sparing" not in one
    assert one == {key: value for key, value in other.items() if key != "sparing"}
    values = [work.result(finetuning.RUN, about, None) for about in (one, other)]
    assert finetuning.RUN.difference(values[1], values[1]) == 0
    assert finetuning.RUN.difference(*values) == math.inf


# --- stopping and resuming ------------------------------------------------------------------------


@pytest.fixture
def killed(model: str, cache: Path, monkeypatch: pytest.MonkeyPatch):
    """Start a run that is killed in step 8; the state that it leaves, and the steps after it."""
    # A state is of the code that left it, and a stand-in is other code.
    monkeypatch.setattr(provenance, "code_hash", lambda function: "one")
    monkeypatch.setattr(finetuning, "SAVE_SECONDS", 0.0)
    loss, steps, stop = finetuning.training_loss, [], 8

    def counting(*arguments):
        steps.append(arguments[-1][1])
        if steps[-1] == stop:
            raise KeyboardInterrupt
        return loss(*arguments)

    def start(wanted: Job) -> tuple[Path, list[int]]:
        monkeypatch.setattr(finetuning, "training_loss", counting)
        with pytest.raises(KeyboardInterrupt):
            finetune(wanted)
        (state,) = cache.rglob("*.pt")
        nonlocal stop
        stop = None
        steps.clear()
        return state, steps

    return start


@pytest.mark.parametrize("algorithm", jobs.ALGORITHMS)
def test_a_stopped_run_goes_on_as_if_it_had_not_been(
    algorithm: str, model: str, cache: Path, killed
) -> None:
    wanted = job(model, algorithm=algorithm)
    with settings(cache=cache / "whole"):
        whole = finetune(wanted)
    state, steps = killed(wanted)
    assert same(finetune(wanted), whole)
    assert steps == [8, 9, 10, 11, 12]
    assert not state.exists()


def test_runs_are_as_far_apart_as_their_scores(model: str) -> None:
    sets = {"en": made(), "de": made("de", 5)}
    finetune(job(model))
    value = work.result(finetuning.RUN, jobs.run_about(job(model)))
    right = np.mean(value["predicted"][:, 8:] == sets["de"].labels, axis=1)
    np.testing.assert_allclose(value["score"][:, 1], right)
    other = value | {"score": value["score"] + [[0.1, 0.2]]}
    assert finetuning.RUN.difference(value, other) == pytest.approx(0.15)
    assert finetuning.RUN.difference(value, value | {"steps": value["steps"][1:]}) == np.inf


# --- what is refused ------------------------------------------------------------------------------


ONE_CLASS = made().relabelled(np.ones(8, int))
DIVERGING = {"learning_rate": 1e12, "warmup": 0.0, "clip": 1e30, "epochs": 20}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "xTune"}, "no algorithm 'xTune': choose vanilla, gaussian, xtune"),
        ({"epochs": 0}, "epochs is 0"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"warmup": 1.0}, "warmup is 1.0"),
        ({"dtype": "float16"}, "no dtype 'float16'"),
        ({"max_length": 65}, "max_length is 65, but .* takes 64 tokens"),
        ({"train": ONE_CLASS}, "made en: all 8 examples are of one class"),
        ({"evaluations": {"train": made()}}, '"train" names the training set'),
        ({"evaluations": {"de": made("de", 0)}}, "the set de to predict is empty"),
        ({"evaluations": {"de": made(pairs=True)}}, "de and the training set are not both of"),
        ({"sparing": {"decides": "fr"}}, "sparing names fr, and the sets to predict are en, de"),
        ({"sparing": {"every": 0}}, "every is 0"),
        ({"sparing": {"windows": ((0.0, 0.0),)}}, "a tolerance above 0"),
        (DIVERGING, r"no longer a number at step \d+ \(learning rate 1e"),
    ],
)
def test_what_makes_no_sense_is_refused(
    model: str, cache: Path, changes: dict, message: str
) -> None:
    def start() -> None:
        sparing = {"sparing": Sparing(**changes["sparing"])} if "sparing" in changes else {}
        # all are checked before the first starts
        first = [] if changes in (DIVERGING, {"max_length": 65}) else [job(model)]
        finetune_all([*first, job(model, **(changes | sparing))])

    with pytest.raises(ValueError, match=message):
        start()
    assert not list(cache.rglob("*.arrow"))


def test_a_decoder_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match=r"kind decoder: only encoders are fine-tuned"):
        finetune(job(str(folders["llama"])))


# --- the head -------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["xlm-roberta", "bert", "distilbert"])
def test_only_the_head_is_new(architecture: str, folders, encoders) -> None:
    encoder = encoders[architecture].model.state_dict()
    one, same_seed, other_seed = (
        loading.task_model(folders[architecture], 3, seed=seed)[0] for seed in (1, 1, 2)
    )
    assert loading.task_model(folders[architecture], 3, seed=1)[2] == 64
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


def test_a_checkpoint_without_weights_has_what_is_stored(model: str) -> None:
    (run,) = finetune_all([job(model)])
    absent = identity.Checkpoint("m", 3, recorded=identity.fingerprint(model))
    (found,) = finetune_all([job(absent)])
    assert found.model == "m/step-000003"
    assert np.array_equal(found.predictions["de"], run.predictions["de"])
    with pytest.raises(jobs.FinetuningError, match="m/step-000003: its weights are not shipped"):
        finetune_all([job(replace(absent, recorded="0"))])
