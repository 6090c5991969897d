"""How many sentences keep each one from being a hit, and hits against every pivot of a corpus.

A *rival* of sentence i is another one whose cosine reaches that of i and its translation: j with
c_ij ≥ c_ii in the row of i, or c_ji ≥ c_ii in its column. A hit has none. From the numbers of
rivals follows the score for any smaller number of sentences (`mu_of_size`), so scores of corpora of
unequal size can be compared; from the hits alone it does not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from xlx.core import work
from xlx.mexa import measures
from xlx.mexa.coverage import with_pivot
from xlx.models import embeddings, loading
from xlx.models.loading import Name
from xlx.text.corpora import ParallelCorpus

#: Cosines tie that differ by less than the rounding of float64.
_SLACK = 16 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Rivals:
    """Numbers of rivals, int ``(n_languages, n_layers + 1, n)``.

    ``row`` are those among the pivot's sentences, ``column`` among the language's, ``either`` those
    in one or both: at most n - 1, and 0 for a hit.
    """

    languages: tuple[str, ...]
    pivot: str
    row: np.ndarray
    column: np.ndarray
    either: np.ndarray

    def mu_of_size(self, n: int) -> np.ndarray:
        """The mean MEXA score of n of the sentences, of all ways to choose them: exact.

        ``(n_languages, n_layers + 1)``. A sentence with u rivals among N - 1 is a hit if none of
        them is among the n - 1 others: C(N - 1 - u, n - 1) / C(N - 1, n - 1). ValueError for n
        above N, or below 1.
        """
        total = self.either.shape[-1]
        if not 1 <= n <= total:
            raise ValueError(f"n is {n}: there are {total} sentences to choose among")
        free = total - 1 - self.either.astype(np.float64)
        possible = free >= n - 1
        free = np.where(possible, free, n - 1)
        logs = gammaln(free + 1) - gammaln(free - n + 2) - gammaln(total) + gammaln(total - n + 1)
        return np.where(possible, np.exp(logs), 0.0).mean(axis=-1)


def count_rivals(states: np.ndarray, pivot_states: np.ndarray) -> dict[str, np.ndarray]:
    """``row``, ``column`` and ``either`` of `Rivals`, int16 ``(n_layers + 1, n)``, of one language.

    Both are ``(n_layers + 1, n, dim)``; a vector of length zero ties with all.
    """
    counts: dict[str, list[np.ndarray]] = {"row": [], "column": [], "either": []}
    for layers in zip(states, pivot_states, strict=True):
        rest, pivot_rest = (_directions(rows) for rows in layers)
        cosines = rest @ pivot_rest.T
        level = cosines.diagonal()[:, None] - _SLACK
        row, column = (matrix >= level for matrix in (cosines, cosines.T))
        for beaten in (row, column):
            np.fill_diagonal(beaten, False)
        for name, beaten in (("row", row), ("column", column), ("either", row | column)):
            counts[name].append(beaten.sum(axis=1).astype(np.int16))
    return {name: np.stack(of_layers) for name, of_layers in counts.items()}


def _directions(rows: np.ndarray) -> np.ndarray:
    exact = rows.astype(np.float64)
    norms = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0)


def measure_rivals(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    pooling: str = "weighted_mean",
    centred: bool = False,
    special_tokens: bool = False,
    max_length: int | None = None,
) -> Rivals:
    """The numbers of rivals of every language of a corpus; parameters as `measure_coverage`."""
    pivot, languages = with_pivot(corpus, pivot)
    options = {"pooling": pooling, "max_length": max_length, "special_tokens": special_tokens}
    about = {"states": embeddings.states_about(name, **options), "centred": centred}
    about |= {"pivot": corpus.text_hash(pivot)}

    def calls(missing: list[int]) -> Iterator[work.Call]:
        some = [languages[position] for position in missing]
        yield missing, (name, corpus.select([pivot, *some]), pivot, some, options, centred)

    values = work.results(
        RIVAL_COUNTS,
        [about | {"text": corpus.text_hash(x)} for x in languages],
        calls,
        what="rivals",
    )
    whole = (np.stack([value[part] for value in values]) for part in ("row", "column", "either"))
    return Rivals(languages, pivot, *whole)


def _counted(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    options: Mapping[str, object],
    centred: bool,
) -> Iterator[dict[str, np.ndarray]]:
    read = _reader(name, corpus, options, centred)
    of_pivot = read(pivot)
    for language in languages:
        yield count_rivals(read(language), of_pivot)


def _reader(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], centred: bool
) -> Callable[[str], np.ndarray]:
    """A function from a language to its states ``(n_layers + 1, n, dim)``."""
    encoder = loading.load(name)

    def read(language: str) -> np.ndarray:
        whole = embeddings.embed(encoder, corpus.sentences[language], **options).states
        return measures.without_offset({language: whole})[language] if centred else whole

    return read


def pivot_hits(
    name: Name,
    corpus: ParallelCorpus,
    *,
    pooling: str = "weighted_mean",
    centred: bool = False,
    max_length: int | None = None,
) -> np.ndarray:
    """MEXA of every language against every other as pivot.

    ``(n_pivots, n_languages, n_layers + 1)``, both in the order of the corpus; NaN of a language
    with itself.
    """
    options = {"pooling": pooling, "max_length": max_length}
    about = embeddings.corpus_about(name, corpus, **options) | {"centred": centred}
    value = work.result(PIVOTS, about, name, corpus, options, centred)
    return value["hits"] / np.where(value["hits"] < 0, np.nan, len(corpus))


def _against_all(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], centred: bool
) -> dict[str, np.ndarray]:
    """``hits``, int16: how many of the sentences; -1 of a language with itself."""
    read, codes = _reader(name, corpus, options, centred), corpus.languages
    states = {code: read(code) for code in codes}
    hits = np.full((len(codes), len(codes), len(states[codes[0]])), -1, dtype=np.int16)
    for place, pivot in enumerate(codes):
        scored = measures.scores(states, pivot)
        others = [codes.index(code) for code in scored.languages]
        hits[place, others] = scored.hits.sum(axis=-1).T
    return {"hits": hits}


def _apart(stored: work.Value, computed: work.Value) -> float:
    """The largest difference of a layer's mean number of rivals, as a share of the sentences."""
    n = stored["either"].shape[-1]
    return max(
        float(np.abs((stored[x].astype(float) - computed[x]).mean(axis=-1)).max()) / n
        for x in ("row", "column", "either")
    )


RIVAL_COUNTS = work.Kind("coverage-rivals", _counted, version=1, tolerance=0.02, difference=_apart)
PIVOTS = work.Kind("coverage-pivots", _against_all, version=1, tolerance=2)
