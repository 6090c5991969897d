"""What the notebooks on mixed languages tell of small grids whose scores are planted."""

import numpy as np
import pandas as pd

from shared import mixing_tables
from shared.claims import one_sign
from shared.pair_regressions import held_out, with_language
from xlx.experiment.grids import Grid

CODES = ("en", "de", "tr")


def grid(model: str, predictions: np.ndarray) -> Grid:
    """A grid of pairs with labels 0, 1, 0, 1, ..., each its own group."""
    labels = np.arange(predictions.shape[-1]) % 2
    right = (predictions == labels).astype(float)
    return Grid(model, CODES, {"accuracy": right, "F1": right}, np.arange(len(labels)), predictions)


def random(seed: int, n: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (3, 3, n))


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


def test_held_out_languages_of_planted_scores() -> None:
    rng = np.random.default_rng(0)
    codes = [f"l{i}" for i in range(8)]
    rows = pd.DataFrame(
        [(a, b) for a in codes for b in codes if a != b], columns=["source", "target"]
    )
    rows["a"], rows["b"] = rng.standard_normal((2, len(rows)))
    rows["score"] = 2 * rows["a"] + 0.01 * rng.standard_normal(len(rows))
    a, b = (held_out(rows, "score", [x], with_language(rows)) for x in "ab")
    assert a > 0.99 > 0.05 > b
