"""Which languages a model covers: MEXA and its alternatives, of every language with the pivot.

`measure_coverage` embeds one language at a time, compares it with the pivot at every layer, and
keeps what comes out (`xlx.results.work`): neither memory nor disk ever holds the states of 200
languages, which for a model of 8 billion parameters would be ten gigabytes a pooling. A run that
was stopped goes on at the next language.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pandas as pd
from scipy.special import gammaln

from xlx.experiment.scoring import BAG
from xlx.measures import alignment, mexa
from xlx.results import checks, ledger, work
from xlx.results.settings import current
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import Name, series_name
from xlx.subjects.states import POOLINGS, SentenceStates, embed_corpus, embed_poolings, states_about
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

#: The two ways to a sentence's vector that the paper compares (section 3.1), its own first.
MEXA_POOLINGS = ("weighted_mean", "last")
#: Layers that section 5.3 averages cosines over, of models with 28 and 32 layers.
_MIDDLE, _OF = (5, 10, 15, 20, 25), 32
#: Languages that a worker of a cluster is given at once.
PORTION = 16


@dataclass(frozen=True)
class Coverage:
    """How one model, with one pooling of subwords, aligns the languages of a corpus with a pivot.

    ``states`` is "raw", or "centred" if each language is without its offset
    (`measures.without_offset`). ``measures`` has the alternatives (``language``, ``layer``,
    ``measure``, ``value``, as `alignment.measures`), none if they were not asked for; ``cut``, by
    language, the pivot's too, the sentences cut at the maximum length.
    """

    model: str
    pooling: str
    states: str
    scores: mexa.PivotScores
    measures: pd.DataFrame
    cut: dict[str, int]

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table of scores with ``model``, ``pooling`` and ``states`` in front."""
        names = {"model": self.model, "pooling": self.pooling, "states": self.states}
        return pd.concat([pd.DataFrame(names, table.index), table], axis=1)


def middle_layers(n_layers: int) -> tuple[int, ...]:
    """The layers of section 5.3: 5, 10, 15, 20 and 25, or where these lie in a shallower model.

    The paper takes the same five in a model of 28 layers and one of 32. Below 26 they are scaled
    from 32 and rounded: 1 to 5 of 6 layers.
    """
    if n_layers > _MIDDLE[-1]:
        return _MIDDLE
    return tuple(sorted({max(1, round(layer * n_layers / _OF)) for layer in _MIDDLE}))


def measure_coverage(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    poolings: Sequence[str] = MEXA_POOLINGS,
    alternatives: bool = True,
    centred: bool = False,
    max_length: int | None = None,
    special_tokens: bool = False,
) -> dict[str, Coverage]:
    """MEXA of every language of a corpus with the pivot, and the alternatives, by pooling.

    ``name`` is a model, or one checkpoint of a series; ``pivot`` any language of the corpus, by one
    of its codes ("sw", "swh"); ``poolings`` of `embeddings.POOLINGS`: the model reads each sentence
    once for all of them. ``alternatives``: also the measures of `alignment.measures`, at every
    layer. ``centred``: scores without the offset of each language (`measures.without_offset`), and
    no alternatives. ``max_length``: subwords of a sentence (None: what the model takes); what is
    longer is cut, and counted. ``special_tokens``: whether those that the tokenizer adds are pooled
    too, as in the paper's code; its numbers of a Llama, whose first token is one of great norm, are
    to be compared with those.

    ValueError as `embeddings.embed`, `measures.scores` and `alignment.measures`, naming the
    language; TextError for a pivot that the corpus has not, or no other language.
    """
    checks.loaded(corpus)
    pivot, languages = with_pivot(corpus, pivot)
    poolings = tuple(dict.fromkeys(checks.several(poolings, "poolings")))
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(POOLINGS)}")
    chosen = not centred and alternatives, centred
    options = {"max_length": max_length, "special_tokens": special_tokens}
    of_poolings = [
        _about(states_about(name, pooling=pooling, **options), corpus, pivot, *chosen)
        for pooling in poolings
    ]
    asked = [(language, pooling) for language in languages for pooling in poolings]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        missing_poolings: dict[str, list[str]] = {}
        for position in missing:
            language, pooling = asked[position]
            missing_poolings.setdefault(language, []).append(pooling)
        for some, group in groupby(missing_poolings, missing_poolings.get):
            for part in _portions(list(group)):
                positions = [asked.index((language, x)) for language in part for x in some]
                text = corpus.select([pivot, *part])
                yield positions, (_measured, name, text, pivot, part, some, options, *chosen)

    known = isinstance(name, identity.Checkpoint | loading.Encoder)
    values = work.results(
        COVERAGE,
        [
            of_pooling | {"text": corpus.text_hash(language)}
            for language in languages
            for of_pooling in of_poolings
        ],
        calls,
        what=f"coverage, {name.name if known else name}",
    )
    by_pair = dict(zip(asked, values, strict=True))
    model, states = series_name(identity.identify(name)), "centred" if centred else "raw"
    return {
        pooling: _coverage(
            model, pooling, states, pivot, {x: by_pair[x, pooling] for x in languages}
        )
        for pooling in poolings
    }


def _about(
    vectors: Mapping[str, object],
    corpus: ParallelCorpus,
    pivot: str,
    alternatives: bool = False,
    centred: bool = False,
) -> dict[str, object]:
    """An ask of `COVERAGE` but for the text of the language."""
    about = {"states": vectors, "pivot": corpus.text_hash(pivot), "alternatives": alternatives}
    return about | ({"space": "centred"} if centred else {})


def with_pivot(corpus: ParallelCorpus, pivot: str) -> tuple[str, tuple[str, ...]]:
    """The corpus's code of the pivot, and its other languages. Raises TextError without any."""
    pivot = corpus.select([pivot]).languages[0]
    languages = tuple(code for code in corpus.languages if code != pivot)
    if not languages:
        raise TextError(f"{corpus.name} has no language to compare with {pivot}")
    return pivot, languages


def _portions(languages: Sequence[str]) -> list[Sequence[str]]:
    """Languages of one call: all here, a few on a cluster, whose workers share them."""
    size = PORTION if current().scheduler else len(languages)
    return [languages[start : start + size] for start in range(0, len(languages), size)]


def _measured(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    poolings: Sequence[str],
    options: Mapping[str, object],
    alternatives: bool = False,
    centred: bool = False,
) -> Iterator[dict[str, np.ndarray]]:
    """`_compare` of languages and poolings, language by language."""
    encoder = loading.load(name)

    def read(language: str) -> dict[str, SentenceStates]:
        try:
            by_pooling = embed_poolings(encoder, corpus.sentences[language], poolings, **options)
        except ValueError as error:
            raise ValueError(f"language {language!r} of {corpus.name!r}: {error}") from None
        if not centred:
            return by_pooling
        moved = mexa.without_offset({x: whole.states for x, whole in by_pooling.items()})
        return {x: replace(by_pooling[x], states=states) for x, states in moved.items()}

    of_pivot = read(pivot)
    first = next(iter(of_pivot.values()))
    unknown, cut = {pivot: first.unknown}, {pivot: first.n_cut / len(corpus)}
    for language in languages:
        for pooling, embedded in read(language).items():
            unknown[language], cut[language] = embedded.unknown, embedded.n_cut / len(corpus)
            yield _compare({language: embedded, pivot: of_pivot[pooling]}, pivot, alternatives)
    if not centred:  # those are the same texts again
        lost = {"tokens unknown to it": unknown, "sentences cut": cut}
        checks.legible(encoder.name, corpus.name, lost)


def _compare(
    states: Mapping[str, SentenceStates], pivot: str, alternatives: bool
) -> dict[str, np.ndarray]:
    """One language and the pivot: what is kept.

    `hits_of`, ``cut`` of the language and of the pivot, and ``measures``
    ``(len(alignment.ALIGNMENT_MEASURES), n_layers + 1)`` if asked for.
    """
    vectors = {language: embedded.states for language, embedded in states.items()}
    (language,) = set(states) - {pivot}
    kept = hits_of(mexa.scores(vectors, pivot))
    kept["cut"] = np.array([states[language].n_cut, states[pivot].n_cut])
    if alternatives:
        table = alignment.measures(vectors, pivot)
        table = table.pivot(index="measure", columns="layer", values="value")
        kept["measures"] = table.loc[list(alignment.ALIGNMENT_MEASURES)].to_numpy()
    return kept


def hits_of(scores: mexa.PivotScores) -> dict[str, np.ndarray]:
    """What is kept of the scores of one language, each ``(n_layers + 1, n)``."""
    return {"hits": scores.hits[:, 0], "only_rival": scores.only_rival[:, 0]}


def coverage_difference(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of a score or measure; infinite where other sentences were cut.

    Margins are ratios without bounds: what is above 1 is compared by its share.
    """
    same = [np.array_equal(stored.get(x), computed.get(x)) for x in ("cut", "subwords")]
    if stored.keys() != computed.keys() or not all(same):
        return np.inf
    both = [
        np.vstack([value["hits"].mean(axis=1)[None], *value.get("measures", ())])
        for value in (stored, computed)
    ]
    unit = np.fmax(1, np.abs(both[0]))  # not NaN where there is none to compare
    return work.largest_difference({"scores": both[0] / unit}, {"scores": both[1] / unit})


def _compute(how: Callable[..., Iterator[dict[str, np.ndarray]]], *arguments: object) -> Iterator:
    """A value for each language and pooling, of vectors that `_measured` or `_bags` reads."""
    return how(*arguments)


#: A sentence of a hundred may be a hit on one processor and tied on another.
COVERAGE = work.Kind(
    "coverage", _compute, version=2, tolerance=0.02, difference=coverage_difference
)


def _coverage(
    model: str,
    pooling: str,
    states: str,
    pivot: str,
    by_language: Mapping[str, Mapping[str, np.ndarray]],
) -> Coverage:
    rows = [
        (language, layer, measure, value)
        for language, arrays in by_language.items()
        for measure, values in zip(
            alignment.ALIGNMENT_MEASURES, arrays.get("measures", ()), strict=False
        )
        for layer, value in enumerate(values.tolist())
    ]
    table = pd.DataFrame(rows, columns=["language", "layer", "measure", "value"])
    cut = {language: int(arrays["cut"][0]) for language, arrays in by_language.items()}
    cut[pivot] = int(next(iter(by_language.values()))["cut"][1])
    return Coverage(model, pooling, states, pivot_scores(by_language, pivot), table, cut)


def pivot_scores(
    by_language: Mapping[str, Mapping[str, np.ndarray]], pivot: str
) -> mexa.PivotScores:
    """The scores of all languages, of what was kept of each (`hits_of`)."""
    hits, only_rival = (
        np.stack([arrays[name] for arrays in by_language.values()], axis=1)
        for name in ("hits", "only_rival")
    )
    return mexa.PivotScores(tuple(by_language), pivot, tuple(range(len(hits))), hits, only_rival)


def score_bags(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    centred: bool = False,
    max_length: int | None = None,
) -> mexa.PivotScores:
    """MEXA of a model that knows of a sentence only how often it has each subword.

    What names, numbers and loans that two languages write alike are worth: the reference under the
    scores of any model with this vocabulary, trained or not. One layer, called 0. ``centred``: how
    often more than in the mean sentence of the language (`measures.without_offset`).

    Raises ValueError as `measure_coverage`.
    """
    pivot, kept = _kept_bags(name, corpus, pivot, centred, max_length)
    return pivot_scores(kept, pivot)


def mean_subwords(
    name: Name, corpus: ParallelCorpus, pivot: str = "en", max_length: int | None = None
) -> pd.Series:
    """Mean number of subwords of a whole sentence by language, those that the tokenizer adds too.

    Kept with the bags of `score_bags`, so that it needs no tokenizer where those are there.
    """
    pivot, kept = _kept_bags(name, corpus, pivot, False, max_length)
    means = {language: arrays["subwords"][0] for language, arrays in kept.items()}
    means[pivot] = next(iter(kept.values()))["subwords"][1]
    return pd.Series({language: means[language] for language in corpus.languages})


def _kept_bags(
    name: Name, corpus: ParallelCorpus, pivot: str, centred: bool, max_length: int | None
) -> tuple[str, dict[str, ledger.Value]]:
    """The pivot, and by language what is kept of its bags and the pivot's (`_bags`)."""
    pivot, languages = with_pivot(corpus, pivot)
    bag = {"of": BAG, "model": identity.fingerprint(name), "max_length": max_length}
    about = _about(bag | {"subwords": "mean"}, corpus, pivot, centred=centred)

    def calls(missing: list[int]) -> Iterator[work.Call]:
        needed = [languages[position] for position in missing]
        text = corpus.select([pivot, *needed])
        yield missing, (_bags, name, text, pivot, needed, max_length, centred)

    values = work.results(
        COVERAGE,
        [about | {"text": corpus.text_hash(language)} for language in languages],
        calls,
        what="bags of subwords",
    )
    return pivot, dict(zip(languages, values, strict=True))


def _bags(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    max_length: int | None,
    centred: bool,
) -> Iterator[dict[str, np.ndarray]]:
    encoder = loading.load(name)
    bags = states.bag_of_subwords(encoder, corpus, max_length=max_length)
    ids = {
        x: encoder.tokenizer([*y], verbose=False)["input_ids"] for x, y in corpus.sentences.items()
    }
    means = {code: np.mean([*map(len, rows)]) for code, rows in ids.items()}
    for language in languages:
        pair = {language: bags[language], pivot: bags[pivot]}
        used = np.unique(np.concatenate([bag.indices for bag in pair.values()]))
        dense = {code: bag[:, used].toarray()[None] for code, bag in pair.items()}
        dense = mexa.without_offset(dense) if centred else dense
        subwords = np.array([means[language], means[pivot]])
        yield hits_of(mexa.scores(dense, pivot)) | {"subwords": subwords}


def wrong_pairs(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    n_shifts: int,
    pooling: str = MEXA_POOLINGS[0],
    max_length: int | None = None,
) -> np.ndarray:
    """MEXA of sentences that are no translations, by layer: ``(n_layers + 1,)``.

    The sentences of each language are moved against those of the pivot by 1 to `n_shifts` places;
    the mean over shifts and languages. Errors as `measure_coverage`.
    """
    pivot, _ = with_pivot(corpus, pivot)
    options = {"pooling": pooling, "max_length": max_length}
    about = states.corpus_about(name, corpus, **options)
    about |= {"pivot": pivot, "n_shifts": n_shifts}
    return work.result(WRONG_PAIRS, about, name, corpus, pivot, n_shifts, options)["mu"]


def _wrong_pairs(
    name: Name, corpus: ParallelCorpus, pivot: str, n_shifts: int, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    states = embed_corpus(loading.load(name), corpus, **options).states
    shifted = []
    for shift in range(1, n_shifts + 1):
        wrong = {x: y if x == pivot else np.roll(y, shift, 1) for x, y in states.items()}
        shifted.append(mexa.scores(wrong, pivot).mu)
    return {"mu": np.mean(shifted, axis=(0, 2))}


WRONG_PAIRS = work.Kind("coverage-wrong-pairs", _wrong_pairs, version=1, tolerance=1e-3)
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
    about = {"states": states.states_about(name, **options), "centred": centred}
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
        whole = states.embed(encoder, corpus.sentences[language], **options).states
        return mexa.without_offset({language: whole})[language] if centred else whole

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
    about = states.corpus_about(name, corpus, **options) | {"centred": centred}
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
        scored = mexa.scores(states, pivot)
        others = [codes.index(code) for code in scored.languages]
        hits[place, others] = scored.hits.sum(axis=-1).T
    return {"hits": hits}


def _apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of a layer's mean number of rivals, as a share of the sentences."""
    n = stored["either"].shape[-1]
    return max(
        float(np.abs((stored[x].astype(float) - computed[x]).mean(axis=-1)).max()) / n
        for x in ("row", "column", "either")
    )


RIVAL_COUNTS = work.Kind("coverage-rivals", _counted, version=1, tolerance=0.02, difference=_apart)
PIVOTS = work.Kind("coverage-pivots", _against_all, version=1, tolerance=2)
