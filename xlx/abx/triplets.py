"""Triplets (A, B, X) of sentences that differ in one thing: Algorithms 1 and 2 of the ABX paper.

A and X share the variable of interest; B does not. A and B share the other variable, so that it
cannot help. In *language discrimination* (LD) A is another sentence of X's language, B its
translation. In *meaning discrimination* (MD) A is X's translation, B another sentence of A's
language. de Seyssel et al. (2025), section 3 and Appendix B.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xlx.core import checks


@dataclass(frozen=True)
class Triplets:
    """Languages and positions in a parallel corpus of X, A and B, each ``(n_triplets,)``."""

    task: str
    languages: tuple[str, ...]  # what the language columns count into
    x_language: np.ndarray
    a_language: np.ndarray
    b_language: np.ndarray
    x: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


def sample_triplets(
    task: str,
    pair: tuple[str, str],
    n_positions: int,
    n_triplets: int,
    seed: int | np.random.Generator,
) -> Triplets:
    """Draw LD or MD triplets for a language pair, half of them in each direction.

    Independent draws, which may repeat; the paper takes about 100,000 per task and pair.
    Raises ValueError for another task, for one language twice, and for fewer than two positions.
    """
    checks.one_of(task, ("LD", "MD"), "task")
    if pair[0] == pair[1]:
        raise ValueError(f"a pair needs two languages, and both are {pair[0]}")
    if n_positions < 2:
        raise ValueError(
            f"{n_positions} sentence(s) make no triplet: a second one is needed as other meaning"
        )
    rng = np.random.default_rng(seed)
    shared = rng.integers(n_positions, size=n_triplets)
    other = rng.integers(n_positions - 1, size=n_triplets)
    other += other >= shared  # any position but the shared one
    first = np.arange(n_triplets) % 2
    second = 1 - first
    if task == "LD":  # A and B at the shared position, X at another one in A's language
        return Triplets(task, tuple(pair), first, first, second, other, shared, shared)
    # X and A at the shared position, B at another one in A's language
    return Triplets(task, tuple(pair), first, second, second, shared, shared, other)


def sample_control(
    task: str,
    languages: Sequence[str],
    n_positions: int,
    n_triplets: int,
    seed: int | np.random.Generator,
) -> Triplets:
    """Triplets in which the variable of interest is the same for A, B and X (section 4.1).

    A score other than one half on them is a bias of the sampling or of the scoring. The paper does
    not say what A and B still differ in; if in nothing, the control cannot fail. So here they
    differ in the variable that is normally held constant, drawn at random:

    * LD: X, A and B in one language (each of `languages` in turn), at three different positions;
    * MD: X, A and B at one position, in three different languages.

    Raises ValueError for fewer than three positions (LD) or three languages (MD).
    """
    checks.one_of(task, ("LD", "MD"), "task")
    rng = np.random.default_rng(seed)
    enough, what = (n_positions, "sentences") if task == "LD" else (len(languages), "languages")
    if enough < 3:
        raise ValueError(
            f"the {task} control needs three {what}, one each for X, A and B; there are {enough}"
        )
    first = rng.integers(enough, size=n_triplets)
    second = rng.integers(enough - 1, size=n_triplets)
    second += second >= first
    third = rng.integers(enough - 2, size=n_triplets)
    third += third >= np.minimum(first, second)
    third += third >= np.maximum(first, second)
    if task == "LD":
        language = np.arange(n_triplets) % len(languages)
        return Triplets(task, tuple(languages), *[language] * 3, first, second, third)
    position = rng.integers(n_positions, size=n_triplets)
    return Triplets(task, tuple(languages), first, second, third, *[position] * 3)
