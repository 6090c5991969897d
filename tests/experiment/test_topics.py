"""Topic probes: against one probe written out, on states made for it, and what is kept."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shared import mexa_tables
from tests import tiny
from xlx.experiment import probing
from xlx.measures import probes
from xlx.subjects import loading
from xlx.subjects.states import SentenceStates, embed
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.text.files import TextError

OPTIONS = {"n_test": 31, "seeds": (0, 3)}
LANGUAGES = ("de", "en", "ja")


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    """Sixty sentences to learn from instead of 701."""
    load, sizes = labelled.load_labelled, {"train": 60, "validation": 21, "test": None}

    def loaded(task: str, language: str, split: str) -> Examples:
        texts = load(task, language, split)
        return texts.take(sizes[split] or len(texts.ids), 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labelled, "load_labelled", loaded)
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder that takes 40 subwords, fewer than most of the sentences have."""
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny-llama", "llama", positions=40)


@pytest.fixture(scope="module")
def table(model: Path) -> pd.DataFrame:
    return probing.probe_topics([model], LANGUAGES, **OPTIONS)


def test_a_row_is_one_probe_trained_and_tested_alone(model: Path, table: pd.DataFrame) -> None:
    encoder = loading.load(model)
    assert len(table) == 3 * 3 * 2 * 2  # languages, layers, seeds, as they are and centred
    assert tuple(table["language"].unique()) == LANGUAGES

    def seen(language: str, split: str) -> tuple[SentenceStates, np.ndarray]:
        texts = labelled.load_labelled("TOPIC", language, split)
        texts = texts.take(31, 1) if split == "test" else texts
        return embed(encoder, texts.first), texts.labels

    train, validation = seen("en", "train"), seen("en", "validation")
    commonest = np.bincount(train[1]).argmax()
    alone = {}
    for layer, seed in ((layer, seed) for layer in range(3) for seed in OPTIONS["seeds"]):
        splits = [probes.Split(part.states[[layer]], own) for part, own in (train, validation)]
        alone[layer, seed] = probes.fit(*splits, 7, seeds=(seed,))
    by = table.set_index(["language", "layer", "seed", "centred"])
    assert by.index.is_unique
    for language in LANGUAGES:
        test, labels = seen(language, "test")
        assert test.n_cut > 0
        for (layer, seed), probe in alone.items():
            own = test.states[[layer]]
            moved = own - own.mean(axis=1) + train[0].states[[layer]].mean(axis=1)
            for centred, vectors in ((False, own), (True, moved)):
                right = probe.predict(vectors)[0, 0] == labels
                row = by.loc[(language, layer, seed, centred)]
                assert (row["n"], row["n_cut"]) == (31, test.n_cut)
                assert row["accuracy"] == pytest.approx(right.mean(), abs=1.5 / 31)
                assert row["even"] == pytest.approx(right[::2].mean(), abs=1.5 / 16)
                assert row["odd"] == pytest.approx(right[1::2].mean(), abs=1.5 / 15)
                assert row["majority"] == pytest.approx((labels == commonest).mean())
                loss = probe.validation_loss[0, 0]
                assert row["validation_loss"] == pytest.approx(loss, rel=1e-4)
    whole = (16 * table["even"] + 15 * table["odd"]) / 31
    assert whole.to_numpy() == pytest.approx(table["accuracy"])
    assert table["accuracy"].nunique() > 6  # the rows are not copies of each other


def test_requests_that_cannot_be_met(model: Path) -> None:
    for languages, options, error, says in (
        ([], {}, ValueError, "no language to test on"),
        (["de", "gv"], {}, TextError, r"No labelled data .sib200. is shipped in gv"),
        (["de"], {"n_test": 0}, TextError, "cannot take 0"),
    ):
        with pytest.raises(error, match=says):
            probing.probe_topics([model], languages, **options)


# --- tables ---------------------------------------------------------------------------------------


def made(scores: dict[tuple[str, str, int, int, bool], float], **columns: object) -> pd.DataFrame:
    """What `probe_topics` returns, from (model, language, layer, seed, centred) → accuracy."""
    names = ["model", "language", "layer", "seed", "centred", "accuracy"]
    table = pd.DataFrame([(*key, value) for key, value in scores.items()], columns=names)
    half = {"even": table["accuracy"] / 2, "odd": table["accuracy"] / 4}
    return table.assign(**{"checkpoint": 0, "n": 21, "validation_loss": 1.0, **half, **columns})


def test_scores_of_the_task_by_layer() -> None:
    """Accuracies that add up by digit; the losses favour layer 1 of b and 2 of a."""
    keys = product("ba", ("en", "de"), range(3), (0, 1), (0.5, 1))
    table = made(
        {
            (*key, share == 1): share
            * (0.5 * (key[0] == "b") + 0.2 * (key[1] == "de") + 0.04 * key[2] + 0.01 * key[3])
            for *key, share in keys
        }
    )
    table["validation_loss"] = (table["layer"] - table["model"].map({"a": 2, "b": 1})).abs()
    base = np.array([0.505, 0.705, 0.005, 0.205])
    for options, shares, n in (
        ({}, base + np.array([0.04, 0.04, 0.08, 0.08]), 21),
        ({"layer": 2}, base + 0.08, 21),
        ({"layer": "mean"}, base + 0.04, 21),
        ({"layer": 0, "centred": False}, base / 2, 21),
    ):
        scores = mexa_tables.task_scores(table, **options)
        assert scores["score"].tolist() == pytest.approx(shares.tolist())
        error = np.sqrt(shares * (1 - shares) / n)
        assert scores["stderr"].tolist() == pytest.approx(error.tolist())
    with pytest.raises(ValueError, match="no layer 3"):
        mexa_tables.task_scores(table, 3)
