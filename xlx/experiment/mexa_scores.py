"""Which languages a model covers: MEXA and its alternatives, of every language with the pivot.

`measure_coverage` embeds one language at a time, compares it with the pivot at every layer, and
keeps what comes out (`xlx.results.work`): neither memory nor disk ever holds the states of 200
languages, which for a model of 8 billion parameters would be ten gigabytes a pooling. A run that
was stopped goes on at the next language. Any subject is measured so (`scoring.Subject`): a bag of
subwords or length alone in the place of a model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np
import pandas as pd

from xlx.experiment.scoring import BAG, BagOfSubwords, Subject, as_subject
from xlx.measures import alignment, mexa
from xlx.results import checks, ledger, work
from xlx.results.deferred import deferred
from xlx.results.settings import current
from xlx.subjects import loading
from xlx.subjects.identity import Name
from xlx.subjects.states import POOLINGS, embed_poolings
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

sparse = deferred("scipy.sparse")

#: The two ways to a sentence's vector that the paper compares (section 3.1), its own first.
MEXA_POOLINGS = ("weighted_mean", "last")
#: Languages that a worker of a cluster is given at once.
PORTION = 16


@dataclass(frozen=True)
class Coverage:
    """How one model, with one pooling of subwords, aligns the languages of a corpus with a pivot.

    ``states`` is "raw", or "centred" if each language is without its offset
    (`alignment.centred`). ``measures`` has the alternatives (``language``, ``layer``,
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


def measure_coverage(
    subject: Subject | Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    poolings: Sequence[str] = MEXA_POOLINGS,
    alternatives: bool | None = True,
    centred: bool | None = False,
    max_length: int | None = None,
    special_tokens: bool = False,
) -> dict[str, Coverage]:
    """MEXA of every language of a corpus with the pivot, and the alternatives, by pooling.

    ``subject`` is the name of a model, of a checkpoint of a series, or a `Subject`: of one that is
    no model there is one pooling, called as it is ("a bag of subwords"). ``pivot`` is any language
    of the corpus, by one of its codes ("sw", "swh"); ``poolings`` of `states.POOLINGS`: the model
    reads each sentence once for all of them. ``alternatives``: also the measures of
    `alignment.measures`, of a model at every layer; None: where they are stored already.
    ``centred``: scores without the offset of each language (`alignment.centred`), and no
    alternatives; None: both from one reading, these as "mean centred". ``max_length``: subwords of
    a sentence (None: what the model takes); what is longer is cut, and counted. ``special_tokens``:
    whether those that the tokenizer adds are pooled too, as in the paper's code; its numbers of a
    Llama, whose first token is one of great norm, are to be compared with those.

    ValueError as `states.embed`, `mexa.scores` and `alignment.measures`, naming the language;
    TextError for a pivot that the corpus has not, or no other language.
    """
    options = {"max_length": max_length, "special_tokens": special_tokens}
    of_subject = as_subject(subject)
    form = {True: "alternatives", None: "either"}.get(alternatives, "hits")
    values, pivot = _values(of_subject, corpus, pivot, poolings, options, form, centred)
    found = [_coverage(of_subject.label[0], *way, pivot, of) for way, of in values.items()]
    both = {"centred": " centred"} if centred is None else {}
    return {one.pooling + both.get(one.states, ""): one for one in found}


def languages_to_read(
    subject: Subject | Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    poolings: Sequence[str] = MEXA_POOLINGS,
    centred: bool | None = False,
    **options: object,
) -> list[str]:
    """Languages that `measure_coverage` would have to compute, with ``alternatives=None``."""
    options, of = {"max_length": None, "special_tokens": False} | options, as_subject(subject)
    values, _ = _values(of, corpus, pivot, poolings, options, "either", centred, stored=True)
    lacking = {x for by_language in values.values() for x, y in by_language.items() if y is None}
    return [code for code in corpus.languages if code in lacking]


def _is_model(subject: Subject) -> bool:
    return type(subject) is Subject


def _values(
    subject: Subject,
    corpus: ParallelCorpus,
    pivot: str,
    poolings: Sequence[str],
    options: Mapping[str, object],
    form: str,
    centred: bool | None,
    *,
    stored: bool = False,
) -> tuple[dict[tuple[str, bool], dict[str, ledger.Value]], str]:
    """Pooling, whether centred → language → what is kept of it and the pivot; the pivot's code.

    ``form``: "hits" (`hits_of`), "alternatives" (those too, of a model that is not centred),
    "either", whichever is stored, or "rivals" (`mexa.count_rivals`). ``stored``: nothing is
    computed; what is not there is None.
    """
    checks.loaded(corpus)
    pivot, languages = with_pivot(corpus, pivot)
    poolings = tuple(dict.fromkeys(checks.several(poolings, "poolings")))
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(POOLINGS)}")
    vectors = {subject.label[0]: subject.vectors}
    if _is_model(subject):
        vectors = {x: Subject(subject.name, {"pooling": x, **options}).vectors for x in poolings}
    ways = [(x, moved) for moved in (False, True) if centred in (moved, None) for x in vectors]
    more = _is_model(subject) and form in ("alternatives", "either")
    about = {"pivot": corpus.text_hash(pivot)} | ({"rivals": True} if form == "rivals" else {})
    asked = [(language, way) for language in languages for way in ways]
    abouts = [
        about
        | {"alternatives": more and not moved, "states": vectors[x]}
        | ({"space": "centred"} if moved else {})
        | {"text": corpus.text_hash(language)}
        for language, (x, moved) in asked
    ]
    kept_there = range(len(asked)) if stored or form == "either" else ()
    if form == "either":
        found = work.results(COVERAGE, abouts, list, uncomputable=kept_there)
        for one, value in zip(abouts, found, strict=True):
            one["alternatives"] &= value is not None
        form, kept_there = "hits", kept_there if stored else ()

    def calls(missing: list[int]) -> Iterator[work.Call]:
        by_language: dict[str, list[tuple[str, bool]]] = {}
        for position in missing:
            language, way = asked[position]
            by_language.setdefault(language, []).append(way)
        for some, group in groupby(by_language, by_language.get):
            for part in _portions(list(group)):
                positions = [asked.index((language, way)) for language in part for way in some]
                text = corpus.select([pivot, *part])
                yield positions, (subject, text, some, options, form)

    values = work.results(
        COVERAGE, abouts, calls, what=f"coverage, {subject.label[0]}", uncomputable=kept_there
    )
    by_way: dict[tuple[str, bool], dict[str, ledger.Value]] = {way: {} for way in ways}
    for (language, way), value in zip(asked, values, strict=True):
        by_way[way][language] = value
    return by_way, pivot


def _portions(languages: Sequence[str]) -> list[Sequence[str]]:
    """Languages of one call: all here, a few on a cluster, whose workers share them."""
    size = PORTION if current().scheduler else len(languages)
    return [languages[start : start + size] for start in range(0, len(languages), size)]


def with_pivot(corpus: ParallelCorpus, pivot: str) -> tuple[str, tuple[str, ...]]:
    """The corpus's code of the pivot, and its other languages. Raises TextError without any."""
    pivot = corpus.select([pivot]).languages[0]
    languages = tuple(code for code in corpus.languages if code != pivot)
    if not languages:
        raise TextError(f"{corpus.name} has no language to compare with {pivot}")
    return pivot, languages


#: Of a language: states ``(n_layers, n, dim)``, and what is told of its sentences.
_Read: TypeAlias = "tuple[np.ndarray | sparse.csr_array, float]"


def _measured(
    subject: Subject,
    corpus: ParallelCorpus,
    ways: Sequence[tuple[str, bool]],
    options: Mapping[str, object],
    form: str,
) -> Iterator[dict[str, np.ndarray]]:
    """What is kept of each language but the first, the pivot, and of each way."""
    pivot, *languages = corpus.languages
    lost: dict[str, dict[str, float]] = {"tokens unknown to it": {}, "sentences cut": {}}
    read = _reader(subject, corpus, list(dict.fromkeys(x for x, _ in ways)), options, lost)
    of_pivot = read(pivot)
    for language in languages:
        of_language = read(language)
        for way, centred in ways:
            (own, told), (others, told_of_pivot) = of_language[way], of_pivot[way]
            vectors = {language: own, pivot: others}
            if sparse.issparse(own):
                used = np.unique(np.concatenate([x.indices for x in vectors.values()]))
                vectors = {code: x[:, used].toarray()[None] for code, x in vectors.items()}
            vectors = alignment.centred(vectors) if centred else vectors
            if form == "rivals":
                yield mexa.count_rivals(vectors[language], vectors[pivot])
                continue
            kept_of = hits_of(mexa.scores(vectors, pivot))
            kept_of[_told(subject)] = np.array([told, told_of_pivot])
            if form == "alternatives" and not centred and _is_model(subject):
                table = alignment.measures(vectors, pivot)
                table = table.pivot(index="measure", columns="layer", values="value")
                kept_of["measures"] = table.loc[list(alignment.ALIGNMENT_MEASURES)].to_numpy()
            yield kept_of
    if form != "rivals" and not all(centred for _, centred in ways):  # else the same texts again
        checks.legible(subject.label[0], corpus.name, lost)


def _told(subject: Subject) -> str:
    """What is kept beside the hits: sentences cut; of a bag the mean number of subwords."""
    return "subwords" if isinstance(subject, BagOfSubwords) else "cut"


def _reader(
    subject: Subject,
    corpus: ParallelCorpus,
    ways: Sequence[str],
    options: Mapping[str, object],
    lost: dict[str, dict[str, float]],
) -> Callable[[str], dict[str, _Read]]:
    """A function from a language to what is read of it, by way; notes what a model has ``lost``."""
    if not _is_model(subject):
        reading, (way,) = subject.read(corpus), ways
        told = dict(zip(corpus.languages, reading.cut, strict=True))
        if isinstance(subject, BagOfSubwords):
            words = subject.encoder().tokenizer
            ids = {x: words([*y], verbose=False)["input_ids"] for x, y in corpus.sentences.items()}
            told = {code: np.mean([*map(len, rows)]) for code, rows in ids.items()}
        return lambda language: {way: (reading.states[language], told[language])}
    encoder = loading.load(subject.name)
    unknown, cut = lost.values()

    def read(language: str) -> dict[str, _Read]:
        try:
            by_pooling = embed_poolings(encoder, corpus.sentences[language], ways, **options)
        except ValueError as error:
            raise ValueError(f"language {language!r} of {corpus.name!r}: {error}") from None
        unknown[language] = by_pooling[ways[0]].unknown
        cut[language] = by_pooling[ways[0]].n_cut / len(corpus)
        return {way: (whole.states, whole.n_cut) for way, whole in by_pooling.items()}

    return read


def hits_of(scores: mexa.PivotScores) -> dict[str, np.ndarray]:
    """What is kept of the scores of one language, each ``(n_layers, n)``."""
    return {"hits": scores.hits[:, 0], "only_rival": scores.only_rival[:, 0]}


def coverage_difference(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of a score or measure; infinite where other sentences were cut.

    Margins are ratios without bounds: what is above 1 is compared by its share; of rivals their
    mean number, as a share of the sentences.
    """
    same = [np.array_equal(stored.get(x), computed.get(x)) for x in ("cut", "subwords")]
    if stored.keys() != computed.keys() or not all(same):
        return np.inf
    counted = [x for x in ("hits", "row", "column", "either") if x in stored]
    both = []
    for value in (stored, computed):
        worth = 1 if "hits" in value else value["either"].shape[-1]
        means = [value[x].astype(float).mean(axis=1)[None] / worth for x in counted]
        both.append(np.vstack([*means, *value.get("measures", ())]))
    unit = np.fmax(1, np.abs(both[0]))  # not NaN where there is none to compare
    return work.largest_difference({"scores": both[0] / unit}, {"scores": both[1] / unit})


#: A sentence of a hundred may be a hit on one processor and tied on another.
COVERAGE = work.Kind(
    "coverage", _measured, version=2, tolerance=0.02, difference=coverage_difference
)


def _coverage(
    model: str,
    pooling: str,
    centred: bool,
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
    nothing = (0, 0)  # of a bag, which is cut as its model is, nothing is told
    cut = {x: int(arrays.get("cut", nothing)[0]) for x, arrays in by_language.items()}
    cut[pivot] = int(next(iter(by_language.values())).get("cut", nothing)[1])
    states = "centred" if centred else "raw"
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


def mean_subwords(
    name: Name, corpus: ParallelCorpus, pivot: str = "en", max_length: int | None = None
) -> pd.Series:
    """Mean number of subwords of a whole sentence by language, those that the tokenizer adds too.

    Kept with MEXA of a bag of them, so that it needs no tokenizer where that is there.
    """
    bag = BagOfSubwords(name, max_length=max_length)
    values, pivot = _values(bag, corpus, pivot, MEXA_POOLINGS, {}, "hits", centred=False)
    told = {language: arrays["subwords"] for language, arrays in values[BAG, False].items()}
    means = {language: own for language, (own, _) in told.items()}
    means[pivot] = next(iter(told.values()))[1]
    return pd.Series({language: means[language] for language in corpus.languages})


def measure_rivals(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    pooling: str = MEXA_POOLINGS[0],
    centred: bool = False,
    **options: object,
) -> dict[str, dict[str, np.ndarray]]:
    """Language → `mexa.count_rivals` with the pivot; parameters as `measure_coverage`."""
    options = {"max_length": None, "special_tokens": False} | options
    subject = as_subject(name)
    values, _ = _values(subject, corpus, pivot, [pooling], options, "rivals", centred)
    return next(iter(values.values()))
