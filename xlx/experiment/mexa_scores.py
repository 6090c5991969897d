"""Which languages a model covers: MEXA of every language with the pivot, and what stands beside it.

`measure_coverage` embeds one language at a time, compares it with the pivot at every layer, and
keeps what comes out (`xlx.results.work`): neither memory nor disk ever holds the states of 200
languages, which for a model of 8 billion parameters would be ten gigabytes a pooling. A run that
was stopped goes on at the next language. Any subject is measured so (`scoring.Subject`): a bag of
subwords or length alone in the place of a model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from xlx.experiment.scoring import BagOfSubwords, Subject, as_subject
from xlx.measures import abx, alignment, mexa
from xlx.results import checks, ledger, work
from xlx.results.deferred import deferred
from xlx.results.settings import current
from xlx.subjects import loading
from xlx.subjects.identity import Name
from xlx.subjects.states import POOLINGS, embed_poolings
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

sparse = deferred("scipy.sparse")
torch = deferred("torch")

#: The two ways to a sentence's vector that the paper compares (section 3.1), its own first.
MEXA_POOLINGS = ("weighted_mean", "last")
#: Vectors as they come, or each language without its offset (`alignment.centred`).
STATES = ("raw", "centred")
#: Languages that a worker of a cluster is given at once.
PORTION = 16
#: What MEXA is compared with (section 5.3): the measure of the registry, whose sentences are X (0:
#: those of the language, 1: of the pivot), and its row where results have them in one array.
ALTERNATIVES = {
    "cosine": ("cosine", 0, 0),
    "retrieval to pivot": ("retrieval", 0, 2),
    "retrieval from pivot": ("retrieval", 1, 3),
    "biased CKA": ("biased CKA", 0, 7),
    "RSA by ranks": ("RSA by ranks", 0, 9),
    "RSA": ("RSA", 0, 10),
}


@dataclass(frozen=True)
class Coverage:
    """How one model, with one pooling of subwords, aligns the languages of a corpus with a pivot.

    ``states``: of `STATES`; ``measures``: `ALTERNATIVES` (``language``, ``layer``, ``measure``,
    ``value``), none if they are not there; ``cut``, by language, the pivot's too, the sentences cut
    at the maximum length.
    """

    model: str
    pooling: str
    states: str
    scores: mexa.PivotScores
    measures: DataFrame
    cut: dict[str, int]

    def named(self, table: DataFrame) -> DataFrame:
        """A table of scores with ``model``, ``pooling`` and ``states`` in front."""
        names = {"model": self.model, "pooling": self.pooling, "states": self.states}
        return pd.concat([DataFrame(names, table.index), table], axis=1)


@checks.typed()
def measure_coverage(
    subject: Subject | Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    poolings: Sequence[str] = MEXA_POOLINGS,
    states: Sequence[str] = ("raw",),
    alternatives: bool = False,
    max_length: int | None = None,
    special_tokens: bool = False,
) -> dict[str, Coverage]:
    """MEXA of every language of a corpus with the pivot, by pooling.

    ``subject`` is the name of a model, of a checkpoint of a series, or a `Subject`: of one that is
    no model there is one pooling, called as it is ("a bag of subwords"). ``pivot`` is any language
    of the corpus, by one of its codes ("sw", "swh"); ``poolings`` of `states.POOLINGS`: the model
    reads each sentence once for all of them. ``states``: of `STATES`; with both these are "mean"
    and "mean centred". ``alternatives``: `ALTERNATIVES` are computed, too, of raw states of a model
    at every layer; where they are stored, they come anyway. ``max_length``: subwords of a sentence
    (None: what the model takes); what is longer is cut, and counted. ``special_tokens``: whether
    those that the tokenizer adds are pooled too, as in the paper's code; its numbers of a Llama,
    whose first token is one of great norm, are to be compared with those.

    ValueError as `states.embed` and `mexa.scores`, naming the language; TextError for a pivot that
    the corpus has not, or no other language.
    """
    options = {"max_length": max_length, "special_tokens": special_tokens}
    what = "alternatives" if alternatives else "hits"
    values = _values(what, subject, corpus, pivot, poolings, states, **options)
    return {
        f"{pooling} centred" if len(states) > 1 and space == "centred" else pooling: _coverage(
            as_subject(subject).label[0], pooling, space, _pivot(corpus, pivot), by_language
        )
        for (pooling, space), by_language in values.items()
    }


def languages_to_read(
    subject: Subject | Name, corpus: ParallelCorpus, pivot: str = "en", **options: Any
) -> list[str]:
    """Languages that `measure_coverage` would have to compute."""
    values = _values("hits", subject, corpus, pivot, **options, stored=True).values()
    return [
        x for x in corpus.languages if any(x in stored and stored[x] is None for stored in values)
    ]


def mean_subwords(
    name: Name, corpus: ParallelCorpus, pivot: str = "en", max_length: int | None = None
) -> Series:
    """Mean number of subwords of a whole sentence by language, those that the tokenizer adds too.

    Kept with MEXA of a bag of them, so that it needs no tokenizer where that is there.
    """
    bag = BagOfSubwords(name, max_length=max_length)
    (values,) = _values("hits", bag, corpus, pivot).values()
    means = {language: value["subwords"][0] for language, value in values.items()}
    means[_pivot(corpus, pivot)] = next(iter(values.values()))["subwords"][1]
    return Series({language: means[language] for language in corpus.languages})


@checks.typed()
def measure_rivals(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    pooling: str = MEXA_POOLINGS[0],
    states: str = "raw",
    **options: Any,
) -> dict[str, dict[str, ndarray]]:
    """Language → `mexa.count_rivals` with the pivot; parameters as `measure_coverage`."""
    (values,) = _values("rivals", name, corpus, pivot, [pooling], [states], **options).values()
    return values


def _is_model(subject: Subject) -> bool:
    return type(subject) is Subject


def _values(
    what: str,
    subject: Subject | Name,
    corpus: ParallelCorpus,
    pivot: str,
    poolings: Sequence[str] = MEXA_POOLINGS,
    states: Sequence[str] = ("raw",),
    *,
    stored: bool = False,
    **options: Any,
) -> dict[tuple[str, str], dict[str, ledger.Value]]:
    """Pooling and states → language → what is kept of it and the pivot.

    ``what``: "hits", taken from "alternatives" where those are stored; "alternatives", which has
    both; or "rivals". ``stored``: nothing is computed; what is not there is None.
    """
    subject, pivot = as_subject(subject), _pivot(corpus, pivot)
    options = {"max_length": None, "special_tokens": False} | options
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(POOLINGS)}")
    vectors = {subject.label[0]: subject.vectors}
    if _is_model(subject):
        vectors = {x: Subject(subject.name, {"pooling": x, **options}).vectors for x in poolings}
    for space in states:
        checks.one_of(space, STATES, "states")
    ways = [(pooling, space) for space in states for pooling in vectors]
    asked = [(code, way) for code in corpus.languages if code != pivot for way in ways]
    full = _is_model(subject) and what != "rivals"
    fixed = {"pivot": corpus.text_hash(pivot)} | ({"rivals": True} if what == "rivals" else {})
    abouts = [
        fixed
        | {"text": corpus.text_hash(language), "states": vectors[pooling]}
        | {"alternatives": full and space == "raw"}
        | ({"space": "centred"} if space == "centred" else {})
        for language, (pooling, space) in asked
    ]
    every = range(len(asked))
    if what == "hits":
        for about, value in zip(
            abouts, work.results(COVERAGE, abouts, list, uncomputable=every), strict=True
        ):
            about["alternatives"] &= value is not None

    def calls(missing: list[int]) -> Iterator[work.Call]:
        by_language = {}
        for language, way in (asked[position] for position in missing):
            by_language.setdefault(language, []).append(way)
        # an ask for alternatives, as they are stored, has them when it is computed again
        flagged = {asked[i][0] for i in missing if abouts[i].get("alternatives")}
        for (shared, more), group in groupby(by_language, lambda x: (by_language[x], x in flagged)):
            for languages in _portions(list(group)):
                positions = [asked.index((x, way)) for x in languages for way in shared]
                text = corpus.select([pivot, *languages])
                form = "alternatives" if more else what
                yield positions, (subject, text, shared, options, form)

    name, uncomputable = f"coverage, {subject.label[0]}", every if stored else ()
    values = work.results(COVERAGE, abouts, calls, what=name, uncomputable=uncomputable)
    by_way = {way: {} for way in ways}
    for (language, way), value in zip(asked, values, strict=True):
        by_way[way][language] = value
    return by_way


def _portions(languages: Sequence[str]) -> list[Sequence[str]]:
    """Languages of one call: all here, a few on a cluster, whose workers share them."""
    size = PORTION if current().scheduler else len(languages)
    return [languages[start : start + size] for start in range(0, len(languages), size)]


def _pivot(corpus: ParallelCorpus, pivot: str) -> str:
    """The corpus's code of the pivot. Raises TextError where there is no other language."""
    pivot = corpus.select([pivot]).languages[0]
    if corpus.languages == (pivot,):
        raise TextError(f"{corpus.name} has no language to compare with {pivot}")
    return pivot


#: Of a language: states ``(n_layers, n, dim)``, and sentences cut or the mean number of subwords.
_Read = "tuple[ndarray | sparse.csr_array, float]"


def _measured(
    subject: Subject,
    corpus: ParallelCorpus,
    ways: Sequence[tuple[str, str]],
    options: Mapping[str, object],
    what: str,
) -> Iterator[dict[str, ndarray]]:
    """What is kept of each language but the first, the pivot, and of each way."""
    pivot, *languages = corpus.languages
    lost = {"tokens unknown to it": {}, "sentences cut": {}}
    read = _reader(
        subject, corpus, list(dict.fromkeys(pooling for pooling, _ in ways)), options, lost
    )
    counted = "subwords" if isinstance(subject, BagOfSubwords) else "cut"
    pivot_read = read(pivot)
    for language in languages:
        language_read = read(language)
        for pooling, states in ways:
            both = {language: language_read[pooling], pivot: pivot_read[pooling]}
            vectors = _dense({code: array for code, (array, _) in both.items()})
            vectors = alignment.centred(vectors) if states == "centred" else vectors
            if what == "rivals":
                yield mexa.count_rivals(vectors[language], vectors[pivot])
                continue
            scores = mexa.scores(vectors, pivot)
            value = {"hits": scores.hits[:, 0], "only_rival": scores.only_rival[:, 0]}
            value[counted] = np.array([count for _, count in both.values()])
            if what == "alternatives" and states == "raw" and _is_model(subject):
                value |= _alternatives(vectors)
            yield value
    if what != "rivals" and ("raw" in {states for _, states in ways}):  # else the same texts again
        checks.legible(subject.label[0], corpus.name, lost)


def _dense(vectors: Mapping[str, Any]) -> dict[str, ndarray]:
    """Sparse vectors as one layer, with the dimensions that are used."""
    if not sparse.issparse(next(iter(vectors.values()))):
        return dict(vectors)
    used = np.unique(np.concatenate([array.indices for array in vectors.values()]))
    return {code: array[:, used].toarray()[None] for code, array in vectors.items()}


def _reader(
    subject: Subject,
    corpus: ParallelCorpus,
    poolings: Sequence[str],
    options: Mapping[str, object],
    lost: dict[str, dict[str, float]],
) -> Callable[[str], dict[str, _Read]]:
    """From a language to what is read of it, by pooling; notes what a model has ``lost``."""
    if not _is_model(subject):
        embedded, (pooling,) = subject.read(corpus), poolings
        counts = dict(embedded.cut)
        if isinstance(subject, BagOfSubwords):
            words = subject.encoder().tokenizer
            for code, sentences in corpus.sentences.items():
                ids = words([*sentences], verbose=False)["input_ids"]
                counts[code] = np.mean([*map(len, ids)])
        return lambda language: {pooling: (embedded.states[language], counts[language])}
    encoder = loading.load(subject.name)
    unknown, cut = lost.values()

    def read(language: str) -> dict[str, _Read]:
        try:
            embedded = embed_poolings(encoder, corpus.sentences[language], poolings, **options)
        except ValueError as error:
            raise ValueError(f"language {language!r} of {corpus.name!r}: {error}") from None
        unknown[language] = embedded[poolings[0]].unknown
        cut[language] = embedded[poolings[0]].n_cut / len(corpus)
        return {pooling: (whole.states, whole.n_cut) for pooling, whole in embedded.items()}

    return read


def _alternatives(vectors: Mapping[str, ndarray]) -> dict[str, ndarray]:
    """`ALTERNATIVES` of a language and the pivot, ``(n_layers,)`` each."""
    measures = [*dict.fromkeys(x for x, *_ in ALTERNATIVES.values())]
    pairs, exact = [tuple(vectors)], torch.float64  # ties of ranks are those of float64
    scores = abx.exact(vectors, pairs=pairs, measures=measures, dtype=exact).scores
    return {name: scores[measure][:, 0, side] for name, (measure, side, _) in ALTERNATIVES.items()}


def kept_alternatives(value: Mapping[str, ndarray]) -> dict[str, ndarray]:
    """Those of `ALTERNATIVES` that are kept, by name; earlier versions kept rows of one array."""
    if "measures" in value:
        rows = value["measures"]
        return {name: rows[row] for name, (*_, row) in ALTERNATIVES.items()}
    return {name: value[name] for name in ALTERNATIVES if name in value}


def _coverage(
    model: str, pooling: str, states: str, pivot: str, by_language: Mapping[str, ledger.Value]
) -> Coverage:
    values = by_language.values()
    hits, only_rival = (np.stack([x[name] for x in values], 1) for name in ("hits", "only_rival"))
    scores = mexa.PivotScores(tuple(by_language), pivot, tuple(range(len(hits))), hits, only_rival)
    rows = [
        (language, layer, measure, number)
        for language, value in by_language.items()
        for measure, numbers in kept_alternatives(value).items()
        for layer, number in enumerate(numbers.tolist())
    ]
    table = DataFrame(rows, columns=["language", "layer", "measure", "value"])
    # a bag is cut as its model is, and keeps no number
    cuts = {x: value.get("cut", (0, 0)) for x, value in by_language.items()}
    cut = {x: int(of_both[0]) for x, of_both in cuts.items()}
    return Coverage(
        model, pooling, states, scores, table, cut | {pivot: int(next(iter(cuts.values()))[1])}
    )


@work.difference_of
def coverage_difference(value: ledger.Value) -> ledger.Value:
    """The largest difference of a score or measure, or of what was cut.

    Of rivals their mean number counts, as a share of the sentences.
    """
    unit = value["either"].shape[-1] if "either" in value else 1
    counts = [x for x in ("hits", "row", "column", "either") if x in value]
    means = {x: value[x].astype(float).mean(1) / unit for x in counts}
    texts = {x: value[x] for x in ("cut", "subwords") if x in value}
    return means | texts | kept_alternatives(value)


#: A sentence of a hundred may be a hit on one processor and tied on another.
COVERAGE = work.Kind(
    "coverage", _measured, version=2, tolerance=0.02, difference=coverage_difference
)
