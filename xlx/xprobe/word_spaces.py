"""Words of several languages in the space of one: looked up, tested, made when they are needed.

A `Lookup` is word vectors with the map that takes them into the space of another language
(`xlx.xprobe.word_mapping`), fitted on a seed dictionary: pairs of words that translate one another,
of a file in MUSE's format, as the paper used (`OfFile`; Conneau et al. 2017; Ravishankar, Øvrelid
and Velldal 2019, section 5.2), or words that go together in parallel lines (`OfTranslations`), for
the default profile, which has no file. It is named by its recipe, so that what was computed from it
is found again where no vectors have been made; `precision_of_maps` and `nearest` are what a reader
wants to know of it.

    english, german = (of_pretraining_text(code) for code in ("en", "de"))
    lookup = Lookup(german, english, OfTranslations(ParallelText("de", "en")))
    lookup.load()(["haus"])  # float32 (1, 100)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from xlx.core import work
from xlx.core.ledger import Ask
from xlx.xprobe.parallel_text import ParallelText, WordVectorsError, file_hash
from xlx.xprobe.word_mapping import normalised_words, orthogonal_map, precision_at_1
from xlx.xprobe.word_vectors import VectorRecipe, WordVectors, load_vectors

#: Neighbours that lessen the cosine of a word that is near to everything (`precision_at_1`).
CSLS = 10

#: Words → vectors ``(n, dim)``.
Look = Callable[[Sequence[str]], np.ndarray]


# --- dictionaries ---------------------------------------------------------------------------------


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
    """G² of words that are together more than by chance, and their positions: ``(n_links,)``."""
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


# --- maps -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lookup:
    """Words of a language in the space of ``target``; of that language itself without one.

    The map is fitted on all pairs of the ``dictionary``.
    """

    vectors: VectorRecipe
    target: VectorRecipe | None = None
    dictionary: OfFile | OfTranslations | None = None

    @property
    def language(self) -> str:
        return self.vectors.language

    @cached_property
    def ask(self) -> Ask:
        """What decides the vectors of words."""
        about: dict[str, Any] = {"vectors": self.vectors.ask}
        if self.target is not None and self.dictionary is not None:
            about |= {"target": self.target.ask, "dictionary": self.dictionary.about}
        return Ask("word-space", about, version=1)

    def load(self) -> Look:
        """Words → vectors, float32 ``(n, dim)``; made once.

        A word outside the vocabulary is normalised as the vocabulary was.
        """
        return self._look

    @cached_property
    def _look(self) -> Look:
        own, target = self._both
        matrix = np.eye(own.dim)
        if self.target is not None:
            both = (normalised_words(x.vectors) for x in (own, target))
            matrix = orthogonal_map(*both, self._pairs.pairs)

        def mapped(words: Sequence[str]) -> np.ndarray:
            vectors = normalised_words(own.lookup(words), like=own.vectors)
            return (vectors @ matrix).astype(np.float32)

        return mapped

    @property
    def _both(self) -> list[WordVectors]:
        return load_vectors([self.vectors, self.target or self.vectors])

    @cached_property
    def _pairs(self) -> Dictionary:
        return self.dictionary.pairs(*self._both)


def load_lookups(lookups: Sequence[Lookup]) -> None:
    """Make the vectors of several lookups, side by side."""
    load_vectors([x for own in lookups for x in (own.vectors, own.target) if x is not None])


def precision_of_maps(lookups: Sequence[Lookup], *, seed: int) -> pd.DataFrame:
    """How many words of a dictionary find their translation, mapped by the rest of it.

    A tenth of the pairs, drawn by the seed, is held out. A row for each lookup (of a mapped
    language): ``language``, ``words`` (with a vector), ``pairs`` (of the dictionary), ``held_out``
    (pairs), ``found`` (share of these whose target is nearest), ``origin`` (of the dictionary), and
    how many pairs of a file lack a vector: ``no_source``, ``no_target``, ``neither``.
    """
    abouts = [{"lookup": own.ask, "seed": seed, "share": 0.1, "csls": CSLS} for own in lookups]

    def calls(missing: list[int]) -> list[work.Call]:
        load_lookups([lookups[position] for position in missing])
        return [([position], (lookups[position], seed)) for position in missing]

    tables = work.results(MAPS, abouts, calls, what="maps", alone=True)
    table = pd.concat(tables, ignore_index=True)
    table.insert(0, "language", [own.language for own in lookups])
    return table


def _measured(lookup: Lookup, seed: int) -> pd.DataFrame:
    own, english = lookup._both
    pairs = lookup._pairs
    known, held_out = held_out_pairs(pairs, max(1, int(len(pairs) * 0.1)), seed)
    source, target = (normalised_words(x.vectors) for x in (own, english))
    turned = (source @ orthogonal_map(source, target, known.pairs)).astype(np.float32)
    hits = precision_at_1(turned, target, held_out.pairs, csls=CSLS)
    lack = {f"no_{side}": pairs.missing.get(side, 0) for side in ("source", "target")}
    lack["neither"] = pairs.missing.get("both", 0)
    row = {"words": len(own.words), "pairs": len(pairs), "held_out": len(hits)}
    return pd.DataFrame([row | {"found": float(hits.mean()), "origin": pairs.origin} | lack])


def nearest(lookup: Lookup, word: str, n: int = 5) -> pd.DataFrame:
    """The words of the target nearest to a word, by falling cosine: ``word``, ``near``, ``cosine``.

    A word without a vector of its own is replaced by the 101st commonest that has one.
    """
    about = {"lookup": lookup.ask, "word": word, "n": n}
    return work.result(NEAREST_WORDS, about, lookup, word, n)


def _nearest(lookup: Lookup, word: str, n: int) -> pd.DataFrame:
    own, target = lookup._both
    word = word if word in own.index else own.words[:101][-1]
    near = normalised_words(target.vectors) @ lookup.load()([word])[0]
    places = near.argsort()[: -n - 1 : -1]
    words = [target.words[place] for place in places]
    return pd.DataFrame({"word": word, "near": words, "cosine": near[places]})


def _apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """Of the neighbours of a word: how far cosines are apart, words left aside."""
    return work.largest_difference(stored[["cosine"]], computed[["cosine"]])


# Both rest on the word vectors of two languages, which take a while.
MAPS = work.Kind("xprobe-maps", _measured, version=1, tolerance=0.03, shared_seconds=90.0)
NEAREST_WORDS = work.Kind(
    "xprobe-neighbours", _nearest, version=1, tolerance=0.03, difference=_apart, shared_seconds=90.0
)
