"""The IGAP paper: what needs a proof by hand."""

from itertools import combinations, permutations

import numpy as np
import pytest

from printed.igap_claims import IgapTables
from xlx.results import paths

FOLDER = paths.PUBLISHED / "igap"


@pytest.fixture(scope="module")
def p() -> IgapTables:
    return IgapTables()


def test_random_orders_of_14_have_enough_pairs_right_in_fewer_than_1_of_20(p: IgapTables) -> None:
    """Orders by pairs that are right (Mahonian numbers), of 5 against all permutations."""
    orders = {1: np.ones(1)}
    for k in range(2, 15):
        orders[k] = np.convolve(orders[k - 1], np.ones(k))
    pairs = list(combinations(range(5), 2))
    counts = np.bincount([sum(o[a] < o[b] for a, b in pairs) for o in permutations(range(5))])
    assert orders[5].tolist() == counts.tolist()
    tail = orders[14][::-1].cumsum()[::-1] / orders[14].sum()
    assert np.argmax(tail < 0.05) == p.enough == 62
