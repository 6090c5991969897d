"""Erasure: values of `concept-erasure` 0.2.4 (without shrinkage), nothing left, pairs by rules."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import erase
from agreement_pairs import TABLE, beginning
from shared.erasure import OTHERS, Eraser, eraser, paired_effects
from tests import tiny
from xlx.subjects.loading import language_model
from xlx.text.trees import load_trees


def test_values_of_the_package() -> None:
    states = np.array([[0, 0], [2, 1], [1, 3], [4, 2], [3, 5]], float)
    erased = eraser(states, np.array([0, 0, 1, 0, 1]))(states)
    expected = np.array([[0, 1], [2, 2.2], [1, 1.6], [4, 3.4], [3, 2.8]])
    assert erased == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="not the same one everywhere"):
        eraser(states, np.ones(5))


def test_pairs_as_they_are_stored() -> None:
    pairs = pd.read_csv(TABLE, sep="\t")
    assert pairs.groupby("language").size().between(190, 200).all()
    assert not (pairs["right"] == pairs["wrong"]).any()
    tree = next(x for x in load_trees("en", "pud") if x.id == "n01001013")
    text = " ".join(tree.tokens)
    assert beginning(tree, 3, text[::-1]) is None
    assert text.startswith(beginning(tree, 3, text) + f" {tree.tokens[3]}")


def test_log_odds_are_those_of_the_model_and_erasing_nothing_changes_none(tmp_path: Path) -> None:
    name = str(tiny.save(tmp_path / "m", "gemma3_text", layers=13))
    texts = ["the cat", "the dog is", "a house on"]
    pairs = pd.DataFrame(
        {"id": ["d1001", "d1002", "d2001"], "prefix": texts, "right": "is", "wrong": "are"}
    )
    width = language_model(name)[0].config.hidden_size
    none, mean = (Eraser(*np.full((3, width), x)) for x in (0.0, 1.0))
    rows = {x[:3]: x for x in erase.agreement(name, pairs, {"a": [none] * 5, "b": [mean] * 5})}
    model, pieces = language_model(name)
    right, wrong = (pieces(x, add_special_tokens=False)["input_ids"][0] for x in (" is", " are"))
    ends = [model(**pieces(text, return_tensors="pt")).logits[0, -1] for text in texts]
    expected = [float(x[right] - x[wrong]) for x in ends]
    for layer in (6, 12):
        odds = {x: rows["log-odds", layer, x][4] for x in ("nothing", "a", "b")}
        near = pytest.approx(expected, abs=1e-3)
        assert [odds[x] == near for x in odds] == [True, True, False]


def test_effects_are_paired_with_random_erasers() -> None:
    values = {"nothing": [1, 1, 1, 1], "random": [1, 1, 0, 0], "number": [1, 0, 0, 0]}
    rows = pd.concat(
        erase.table("m", "de", "probe", 3, name + " 1" * (name == "random"), list("aabb"), x)
        for name, x in values.items()
    )
    table = paired_effects(rows.reset_index(drop=True)).set_index(["language", "erased"])
    assert table.loc["de", "number"][["value", "lost", "n"]].tolist() == [0.25, 0.25, 4]
    assert table.loc[OTHERS, "nothing"]["lost"] == -0.5
