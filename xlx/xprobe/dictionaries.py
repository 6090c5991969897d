"""Seed dictionaries: which words of two languages translate one another, to fit a map by.

Two origins: a file in MUSE's format, as the paper used (`OfFile`; Conneau et al. 2017; Ravishankar,
Øvrelid and Velldal 2019, section 5.2), and words that go together in parallel lines (`induced`,
`OfTranslations`), for the default profile, which has no file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from xlx.xprobe.parallel_text import ParallelText, WordVectorsError, file_hash
from xlx.xprobe.word_vectors import WordVectors


@dataclass(frozen=True)
class Dictionary:
    """Pairs of words that translate one another, by their positions in two vocabularies.

    ``pairs`` is int64 ``(n, 2)``: position in ``WordVectors.words`` of the source and of the
    target, no pair twice. ``origin`` says where they are from. ``missing`` counts what was left out
    of a file: pairs of which the word of the "source" alone, of the "target" alone, or of "both"
    has no vector.
    """

    pairs: np.ndarray
    origin: str
    missing: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[int, int]], origin: str, missing: dict[str, int] | None = None
    ) -> "Dictionary":
        """Of one pair or more; WordVectorsError of none."""
        missing = missing or {}
        if not pairs:
            lack = "".join(f", {n} without a vector ({who})" for who, n in missing.items())
            raise WordVectorsError(f"{origin}: no pairs of words{lack}; one or more is needed")
        return cls(np.array(pairs, dtype=np.int64), origin, missing)

    def __len__(self) -> int:
        return len(self.pairs)


def induced(
    source_lines: Sequence[Sequence[str]],
    target_lines: Sequence[Sequence[str]],
    source: WordVectors,
    target: WordVectors,
    *,
    n: int = 5000,
    min_count: int = 2,
) -> Dictionary:
    """Words that go together in parallel lines: the strongest links, each word in one at most.

    Two words are the more strongly linked the larger the log-likelihood ratio G² of their table of
    co-occurrence in lines (Dunning 1993), if they co-occur more often than by chance. Links are
    taken by falling strength, and a word that is linked already is passed over: competitive linking
    (Melamed 2000), by which *der* goes with *the* and not with every word.

    Line i of the source translates line i of the target; words without a vector are passed over,
    and so are words in fewer than ``min_count`` lines, or together in fewer. At most ``n`` pairs,
    by falling strength; WordVectorsError for none.
    """
    strength, rows, columns = _association(
        _occurrences(source_lines, source), _occurrences(target_lines, target), min_count
    )
    # Equal strengths by position, so that the order does not hang on how they were computed.
    order = np.lexsort((columns, rows, -strength))
    pairs = _linked(rows[order].tolist(), columns[order].tolist())
    return Dictionary.of(pairs[:n], f"induced from {len(source_lines)} parallel lines")


def _occurrences(lines: Sequence[Sequence[str]], vectors: WordVectors) -> sparse.csr_array:
    """Which known words are in which line: 0 or 1, ``(n_lines, n_words)``."""
    rows, columns = [], []
    for row, line in enumerate(lines):
        known = {vectors.index[word] for word in line if word in vectors.index}
        rows += [row] * len(known)
        columns += sorted(known)
    return sparse.csr_array(
        (np.ones(len(rows), dtype=np.float32), (rows, columns)),
        shape=(len(lines), len(vectors.words)),
    )


def _association(
    source: sparse.csr_array, target: sparse.csr_array, min_count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """G² of the words that are together in `min_count` lines or more, and more than by chance.

    Returns the strengths and the positions in both vocabularies, ``(n_links,)`` each.
    """
    together = (source.T @ target).tocoo()
    n = source.shape[0]
    in_source, in_target = (
        np.asarray(lines.sum(axis=0)).ravel().astype(np.float64) for lines in (source, target)
    )
    rows, columns = together.coords
    both = together.data.astype(np.float64)
    kept = (both >= min_count) & (both * n > in_source[rows] * in_target[columns])
    rows, columns, both = rows[kept], columns[kept], both[kept]
    return _g2(both, in_source[rows], in_target[columns], n), rows, columns


def _g2(both: np.ndarray, a: np.ndarray, b: np.ndarray, n: int) -> np.ndarray:
    """2 Σ observed · ln(observed / expected) over the four cells of each table."""
    total = np.zeros(len(both))
    for observed, one, other in (
        (both, a, b),
        (a - both, a, n - b),
        (b - both, n - a, b),
        (n - a - b + both, n - a, n - b),
    ):
        # An empty cell adds nothing, whatever is expected in it.
        filled = observed > 0
        ratio = observed[filled] * n / (one[filled] * other[filled])
        total[filled] += 2 * observed[filled] * np.log(ratio)
    return total


def _linked(rows: list[int], columns: list[int]) -> list[tuple[int, int]]:
    """Each word in one pair at most, the first that it is in."""
    by_row: dict[int, int] = {}
    used: set[int] = set()
    for row, column in zip(rows, columns, strict=True):
        if row not in by_row and column not in used:
            by_row[row] = column
            used.add(column)
    return list(by_row.items())


def held_out_pairs(dictionary: Dictionary, n_test: int, seed: int) -> tuple[Dictionary, Dictionary]:
    """Pairs to fit a map by, and pairs to test it on whose words it has not seen.

    Words of the source are drawn with all their pairs until `n_test` pairs or more are held out.
    Pairs left over that share a word with those, of either language, are in neither part.

    Returns the training part and the test part, in the order of the dictionary.
    """
    source, target = dictionary.pairs.T
    words, sizes = np.unique(source, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(words))
    held = words[order[: int(np.searchsorted(np.cumsum(sizes[order]), n_test)) + 1]]
    test = np.isin(source, held)
    train = ~test & ~np.isin(target, target[test])
    return tuple(replace(dictionary, pairs=dictionary.pairs[rows]) for rows in (train, test))


# --- recipes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfFile:
    """A dictionary file in MUSE's format, read when it is needed and named by its content.

    A pair of words a line, parted by a space or a tab, in small letters; nothing is done to them
    here. Pairs with a word that has no vector of its own are left out and counted; a pair that
    comes twice counts once.
    """

    path: str | Path

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the pairs. Raises FileNotFoundError where there is no such file."""
        if not Path(self.path).is_file():
            raise FileNotFoundError(
                f"the dictionary {self.path} is not there: MUSE's are at "
                "github.com/facebookresearch/MUSE#ground-truth-bilingual-dictionaries"
            )
        return {"file": file_hash(Path(self.path))}

    def pairs(self, source: WordVectors, target: WordVectors) -> Dictionary:
        """WordVectorsError for a line that is not two words, and where no pair has two vectors."""
        path = Path(self.path)
        pairs: dict[tuple[int, int], None] = {}
        missing = {"source": 0, "target": 0, "both": 0}
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            words = line.split()
            if not words:
                continue
            if len(words) != 2:
                raise WordVectorsError(
                    f"{path}, line {number}: found {len(words)} words in {line.strip()[:60]!r}; a "
                    f"line is a word of {source.language}, a space or tab, and one of "
                    f"{target.language}"
                )
            places = source.index.get(words[0]), target.index.get(words[1])
            if None not in places:
                pairs[places] = None
            elif places == (None, None):
                missing["both"] += 1
            else:
                missing["source" if places[0] is None else "target"] += 1
        return Dictionary.of(list(pairs), path.name, missing)


@dataclass(frozen=True)
class OfTranslations:
    """A dictionary that is `induced` when it is needed, named by its translations."""

    parallel: ParallelText
    n: int = 5000
    min_count: int = 2

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the pairs."""
        return {"translations": self.parallel.about, "n": self.n, "min_count": self.min_count}

    def pairs(self, source: WordVectors, target: WordVectors) -> Dictionary:
        """As `induced`, with errors of `ParallelText.lines`."""
        return induced(*self.parallel.lines, source, target, n=self.n, min_count=self.min_count)
