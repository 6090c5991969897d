"""What the notebooks on mixed languages tell of small grids whose scores are planted."""

from itertools import permutations

import numpy as np
import pandas as pd

import mixing_1_nli
from shared import mixing_tables
from shared.claims import one_sign
from xlx.experiment.grids import Grid

CODES = ("en", "de", "tr")


def grid(model: str, predictions: np.ndarray) -> Grid:
    """A grid of pairs with labels 0, 1, 0, 1, ..., each its own group."""
    labels = np.arange(predictions.shape[-1]) % 2
    right = (predictions == labels).astype(float)
    return Grid(model, CODES, {"accuracy": right, "F1": right}, np.arange(len(labels)), predictions)


def random(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (3, 3, 20))


def test_a_difference_that_turns_cannot_be_told() -> None:
    rng, n = np.random.default_rng(0), 90
    noise = rng.standard_normal(n)
    noise = (noise - noise.mean()) / noise.std() / np.sqrt(n)
    # an average a cell: how many standard errors it is above zero
    above = np.array([-6.0, 0.0, 1.98, 6.0]) / n
    values = {"x": np.broadcast_to(above[:, None] + noise, (3, 1, 4, n))}
    zero = {"x": np.zeros((3, 1, 4, n))}
    cells = {str(i): np.arange(4)[None] == i for i in range(4)}
    known = mixing_tables.knowledge(values, zero, cells, np.arange(n))
    adds = known[known["what"] == "premise adds"]
    told = ["below", "cannot be told", "cannot be told", "above"]
    assert adds["told"].tolist() == told
    each = np.array([[1.0, 3.0], [1.0, 1.0], [1.0, -1.5]])
    assert one_sign(each).tolist() == [True, False]


def test_a_pair_is_predicted_by_what_made_its_ratio() -> None:
    rng, codes = np.random.default_rng(0), ["en", "de", "fr", "ru", "tr", "sw", "th", "zh"]
    rows = pd.DataFrame(permutations(codes, 2), columns=["source", "target"])
    rows["a"], rows["b"] = rng.standard_normal((2, len(rows)))
    rows["ratio"] = 2 * rows["a"] + 0.01 * rng.standard_normal(len(rows))
    table = mixing_1_nli.explained(rows, {x: [x] for x in "ab"})
    unseen = table.filter(like="held out")  # a language, a family
    assert unseen.shape == (2, 2)
    assert unseen.loc["a"].min() > 0.99 > 0.05 > unseen.loc["b"].max()
