"""Readers without an encoder, and what the chapter on Transformers compares with them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import xprobe_2_transformers as transformers
from shared import xprobe_tables
from xlx.measures.sentence_tasks import ProbingTask, TaskPart

TENSES = ("Past", "Pres")
LANGUAGES = ("en", "de", "fr")


def part(rng: np.random.Generator, n: int, first: int) -> TaskPart:
    """Sentences whose past ends in "ed", of two stems that each come in both tenses."""
    labels = np.arange(n) % 2
    stems = rng.choice(["walk", "look", "call", "turn"], n)
    tokens = (
        (f"x{i % 3}", stem + ("ed", "ing")[y])
        for i, (stem, y) in enumerate(zip(stems, labels, strict=True))
    )
    return TaskPart((*tokens,), labels, tuple(f"pud:{first + i}" for i in range(n)))


def task(seed: int, language: str, name: str = "Tense") -> ProbingTask:
    rng = np.random.default_rng(seed)
    parts = [part(rng, n, first) for n, first in ((40, 100), (8, 200), (20, 0))]
    return ProbingTask(name, language, TENSES, *parts)


@pytest.mark.parametrize("seed", range(3))
def test_a_reader_sees_what_it_is_named_for(seed: int) -> None:
    tasks = {"en": [task(seed, "en"), task(seed + 9, "en")], "de": [task(seed, "de", "WC")]}
    names = {"Tense": ["words and endings", "number of tokens"]}
    table = xprobe_tables.simple_readers(tasks, names)
    assert table["draw"].tolist() == [0, 0, 1, 1]
    assert set(table["source"]) == set(table["target"]) == {"en"}
    cells = xprobe_tables.cell_table(table).set_index("subject")
    assert cells["accuracy"].to_dict() == {"words and endings": 1, "number of tokens": 0.5}
    assert cells["n_test"].tolist() == [40, 40]
    assert xprobe_tables.READERS["words and neighbours"](["a", "b"])[2:] == ["^ a", "a b", "b $"]


def cells(seed: int) -> pd.DataFrame:
    """Two layers of a model and one of each of two rivals, read at home."""
    rng = np.random.default_rng(seed)
    layers = {"m": (0, 1), "bag": (0,), "words": (0,)}
    rows = [
        (name, "Tense", code, code, layer, rng.uniform(0.4, 0.9))
        for name, numbers in layers.items()
        for layer in numbers
        for code in LANGUAGES
    ]
    return pd.DataFrame(rows, columns=[*xprobe_tables.CELL, "accuracy"])


@pytest.mark.parametrize("seed", range(5))
def test_the_strongest_rival_is_compared_language_by_language(seed: int) -> None:
    table = cells(seed)
    (row,) = transformers.against_rivals(table, "m", ["bag", "words"]).itertuples()
    by_layer = {key: x["accuracy"].to_numpy() for key, x in table.groupby(["subject", "layer"])}
    model = max((by_layer["m", layer] for layer in (0, 1)), key=np.mean)
    rival = max(("bag", "words"), key=lambda name: by_layer[name, 0].mean())
    more = model - by_layer[rival, 0]
    ends = np.clip(stats.ttest_1samp(more, 0).confidence_interval(), -1, 1)
    assert (row.Index, row.rival) == ("Tense", rival)
    assert (row.difference, row.low, row.high) == pytest.approx((more.mean(), *ends))
    means = model.mean(), by_layer[rival, 0].mean()
    assert (row.accuracy, row.rival_accuracy) == pytest.approx(means)
