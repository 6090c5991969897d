"""One experiment: measures × subjects × texts, an entry of the ledger for each.

A *subject* gives the sentences of a corpus vectors, layer by layer: a model or a checkpoint, its
untrained twin (`before_training`), a bag of its subwords, the length of sentences alone, any
function. A *measure* is a formula on the similarity block of two languages
(`xlx.measures.abx.Measure`), or MD with B as a mask allows. A *text* is a corpus, or one that is
shuffled (`shuffled_text`). So every measure has every control, with its interval over documents.

What is stored is one measure of one subject in one space on one text: a new measure leaves the
entries of all others as they are, and the vectors are read once for all that is missing. What else
a function makes of a subject and a text is `cached` by one line.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import combinations, groupby, product
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray

from xlx.experiment import constraints
from xlx.experiment.abx_scores import (
    BY_LANGUAGE,
    MATCHED,
    SPACES,
    WEIGHTINGS,
    group_sizes,
    groupings,
    label_runs,
    language_weights,
)
from xlx.experiment.averages import average_weights, averaged_scores
from xlx.measures import abx, registered
from xlx.results import checks, ledger, work
from xlx.results.deferred import deferred
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import Name, series_name
from xlx.subjects.loading import Encoder
from xlx.subjects.states import CorpusStates
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

torch = deferred("torch")

#: Steps between a score of 0 and of 1, where it is of a mask whose errors by language nobody asks.
_SHARES = 2**16 - 1
#: What a reading of a model is given by; all else that a function is asked with is its own.
READING = ("pooling", "max_length", "special_tokens")
#: What stands for a model in the tables.
BAG, LENGTH_ALONE = "a bag of subwords", "length alone"

# --- subjects -------------------------------------------------------------------------------------


@checks.typed()
@dataclass(frozen=True)
class Subject:
    """Whatever gives the sentences of a corpus vectors. This one: a model, at all its layers.

    ``options`` (``pooling``, ``max_length``, ``special_tokens``) as `states.embed_corpus`.
    """

    name: Name
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a mistyped option by its own name."""
        for name in self.options:
            checks.one_of(name, READING, "option")

    @property
    def label(self) -> tuple[str, int]:
        """What it is called in tables, and its step of training (0 where it has none)."""
        known = identity.identify(self.name)
        return series_name(known), known.step or 0

    @property
    def here(self) -> bool:
        """Whether it can be read at all: of some checkpoints only results are shipped."""
        return not getattr(self.name, "recorded", None)

    @property
    def fetched(self) -> bool:
        """Whether it can be read on this machine: a public model has its weights here, too."""
        model, _ = identity.twin_parts(self.name) or (self.name, 1)
        if isinstance(model, str):
            try:
                identity.local_folder(model)
            except identity.ModelNotFoundError:
                return False
        return self.here

    @property
    def vectors(self) -> dict[str, object]:
        """What decides its vectors but for the text, as an ask names it."""
        return states.states_about(self.name, **self.options)

    def about(self, corpus: ParallelCorpus) -> dict[str, object]:
        """What decides its vectors of a text: each language with its hash, too."""
        texts = [[code, corpus.text_hash(code)] for code in corpus.languages]
        return self.vectors | {"texts": texts}

    def encoder(self) -> Encoder:
        """The model whose vocabulary says which sentences share subwords."""
        return loading.load(self.name)

    def read(self, corpus: ParallelCorpus) -> CorpusStates:
        """Its vectors of a text."""
        return states.embed_corpus(self.encoder(), corpus, **self.options)

    def sentences(self, texts: Sequence[str], language: str) -> ndarray:
        """Vectors of sentences of a language ``(n_layers, n, dim)``; each is read once."""
        return states.embed(self.encoder(), texts, **self.options).states


@checks.typed()
@dataclass(frozen=True)
class BagOfSubwords(Subject):
    """How often a sentence has each subword of a model's vocabulary: one layer, called 0.

    What names, numbers and loans that two languages write alike are worth. ``max_length``: subwords
    that count. In another space than the raw one counts are no longer few: some 16 bytes a sentence
    and subword that the text has.
    """

    max_length: int | None = None

    @property
    def label(self) -> tuple[str, int]:
        """`BAG`, whatever the vocabulary."""
        return BAG, 0

    @property
    def vectors(self) -> dict[str, object]:
        """The vocabulary is the model's; its weights count as well, as its fingerprint has both."""
        model = identity.fingerprint(self.name)
        return {"of": BAG, "bag of": model, "max_length": self.max_length}

    def read(self, corpus: ParallelCorpus) -> CorpusStates:
        """Counts, sparse, of the subwords that the text has: no other one changes a cosine."""
        counts = states.bag_of_subwords(self.encoder(), corpus, max_length=self.max_length)
        there = np.unique(np.concatenate([bag.indices for bag in counts.values()]))
        counts = {language: bag[:, there] for language, bag in counts.items()}
        return CorpusStates(counts, dict.fromkeys(counts, 0), dtype=torch.float64)

    def sentences(self, texts: Sequence[str], language: str) -> ndarray:
        """Counts folded into as many numbers as the model has: random ones for each subword."""
        encoder = self.encoder()
        counts = states.subword_counts(encoder, texts, self.max_length).tocsc()
        there = np.flatnonzero(np.diff(counts.indptr))
        drawn = [np.random.default_rng([0, i]).standard_normal(encoder.dim) for i in there]
        return np.asarray(counts[:, there] @ np.array(drawn), np.float32)[None]


@dataclass(frozen=True)
class FunctionSubject(Subject):
    """Any function from sentences to vectors; kept under a name and a version.

    They are ``(n, dim)``, of one layer, which is called 0, or ``(n_layers, n, dim)``.
    ``function`` gets the sentences of one language and its code. Name another version when it gives
    other vectors: a function has no fingerprint.
    """

    name: str
    function: Callable[[Sequence[str], str], ndarray] | None = None
    version: str = "1"

    @property
    def label(self) -> tuple[str, int]:
        """Its name."""
        return self.name, 0

    @property
    def vectors(self) -> dict[str, object]:
        """Name and version."""
        return {"of": self.name, "version": self.version}

    def encoder(self) -> Encoder:
        """There is none, so no sentences that share its subwords."""
        raise ValueError(f"{self.name} has no vocabulary, and MD among near sentences needs one")

    def read(self, corpus: ParallelCorpus) -> CorpusStates:
        """Its layers."""
        vectors = {x: self._layers(text, x) for x, text in corpus.sentences.items()}
        return CorpusStates(vectors, dict.fromkeys(vectors, 0), dtype=torch.float64)

    def sentences(self, texts: Sequence[str], language: str) -> ndarray:
        """Its layers."""
        return self._layers(texts, language).astype(np.float32)

    def _layers(self, texts: Sequence[str], language: str) -> ndarray:
        vectors = np.asarray(checks.as_arrays(self.function(texts, language)))
        return vectors if vectors.ndim == 3 else vectors[None]


@dataclass(frozen=True)
class Length(FunctionSubject):
    """The number of characters: the closer on a log scale, the more alike."""

    name: str = LENGTH_ALONE

    @property
    def vectors(self) -> dict[str, object]:
        """The text decides everything."""
        return {"of": self.name}

    def sentences(self, texts: Sequence[str], language: str) -> ndarray:
        """The number itself."""
        return np.array([[[len(text)] for text in texts]], np.float32)

    def read(self, corpus: ParallelCorpus) -> CorpusStates:
        """Points on a quarter of a circle, whose cosine falls with the distance in log length."""
        logs = {x: np.log1p([*map(len, text)]) for x, text in corpus.sentences.items()}
        longest = max(row.max() for row in logs.values())
        angles = {code: row / longest * np.pi / 2 for code, row in logs.items()}
        arcs = {code: np.stack([np.cos(a), np.sin(a)], 1)[None] for code, a in angles.items()}
        return CorpusStates(arcs, dict.fromkeys(arcs, 0), dtype=torch.float64)


def as_subject(subject: Subject | Name, options: Mapping[str, object] | None = None) -> Subject:
    """A subject; the name of a model stands for the model, read with these options."""
    return subject if isinstance(subject, Subject) else Subject(subject, dict(options or {}))


# --- texts ----------------------------------------------------------------------------------------

#: How a corpus is shuffled: see `moves`.
SHUFFLES = ("translations", "documents", "lengths", "labels")
#: Language → the language and the position that each of its positions is taken from, ``(n,)`` each.
Moved = dict[str, tuple[ndarray, ndarray]]


def moves(corpus: ParallelCorpus, how: str, seed: int, alike: Sequence[Sequence[str]]) -> Moved:
    """What takes the place of each sentence, so that a score loses what it is of.

    "translations": sentences of a language are in another order, so that no A is a translation, and
    MD must be at one half; "documents": the same within documents, where MD keeps topic, names and
    style; "lengths": each changes places with the one next in length; "labels": at every position
    the languages change names, and LD must be at one half.

    ``alike`` are the languages that move, those of a group in one way. Sentences without another
    place (alone in their document) are left out.
    """
    checks.one_of(how, SHUFFLES, "shuffle")
    n, rng = len(corpus), np.random.default_rng(seed)
    positions = np.arange(n)
    if how == "labels":
        names = rng.permuted(np.tile(corpus.languages, (n, 1)), axis=1)
        return {language: (names[:, i], positions) for i, language in enumerate(corpus.languages)}
    if how == "lengths":
        alike = [[x] for group in alike for x in group]  # no two languages have the same lengths
    labels = np.array(parallel.documents(corpus)) if how == "documents" else np.zeros(n)
    circles = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    circles = [circle for circle in circles if len(circle) > 1]  # one sentence alone has no other
    if not circles:
        raise ValueError(f"{corpus.name}: no document has two sentences to change places")
    orders = dict.fromkeys(corpus.languages, positions)
    for group in alike:
        if how == "lengths":
            counts = [*map(len, corpus.sentences[group[0]])]
            ranked = np.lexsort((rng.random(n), counts))
            circles = [ranked[i : i + 2] for i in range(0, n - 1, 2)]  # of an odd number one stays
        order = np.arange(n)
        for circle in map(rng.permutation, circles):  # each from the next in its circle
            order[circle] = np.roll(circle, 1)
        orders |= dict.fromkeys(group, order)
    left = positions if how == "lengths" else np.sort(np.concatenate(circles))
    return {code: (np.full(len(left), code), orders[code][left]) for code in corpus.languages}


def shuffled_text(corpus: ParallelCorpus, how: str, seed: int = 1) -> ParallelCorpus:
    """A text whose translations or names of languages are shuffled, by `moves`."""
    moved = moves(corpus, how, seed, [[x] for x in corpus.languages[1:]])
    (_, left), *_ = moved.values()  # the first language stays where it is
    rest = corpus.drop(set(range(len(corpus))) - set(left.tolist()))
    sentences = {
        code: tuple(corpus.sentences[x][i] for x, i in zip(*source, strict=True))
        for code, source in moved.items()
    }
    return replace(rest, name=f"{corpus.name}, {how} shuffled", sentences=sentences)


# --- one entry ------------------------------------------------------------------------------------


def _scores(
    subject: Subject, corpus: ParallelCorpus, space: str, names: Sequence[str]
) -> list[dict[str, ndarray]]:
    """A value of `SCORE` for each measure that is named, from one reading of the text."""
    plain = [registered()[name] for name in names if name in registered()]
    kinds = [name.removeprefix("MD, ") for name in names if name not in registered()]
    masks = constraints.masks_of(corpus, kinds, subject.encoder)
    read, layers = subject.read(corpus), []
    dtype = torch.float32 if read.counts and space != "raw" else read.dtype
    for vectors in read.layers(SPACES[space]):
        exact = abx.exact(
            vectors,
            measures=plain,
            masks=masks,
            groups=groupings(corpus),
            device=read.device,
            dtype=dtype,
        )
        layers.append({name: (exact.scores[name][0], changes(exact, name)) for name in names})
    values = []
    for name in names:
        scores, parts = zip(*[layer[name] for layer in layers], strict=True)
        value = packed(np.stack(scores), name, len(corpus), exact.masked.get(name))
        value |= {part: np.stack([layer[part] for layer in parts]) for part in parts[0]}
        values.append(value | {"cut": np.array([read.cut[x] for x in corpus.languages])})
    return values


def packed(scores: ndarray, task: str, n: int, made: ndarray | None = None) -> dict[str, ndarray]:
    """Scores ``(n_layers, n_pairs, 2)`` of n sentences, as they are stored.

    Comparisons won, each counted twice, or their share; or the scores, where a pair has none.
    ``made``: how many comparisons a mask leaves, ``(n_pairs, 2)``.
    """
    value = {} if made is None else {"made": made}
    if np.isnan(scores).any() or (made is None and task not in BY_LANGUAGE):
        return value | {"score": scores.astype(np.float32)}
    if task not in BY_LANGUAGE:
        return value | {"share": np.rint(_SHARES * scores).astype(np.uint16)}
    twice = 2 * np.asarray(n * (n - 1) if made is None else made)
    counts = np.uint32 if twice.max() < 2**32 else np.uint64  # from 46,342 sentences on
    return value | {"won": np.rint(twice * scores).astype(counts)}


def changes(exact: abx.PairScores, task: str) -> dict[str, ndarray]:
    """As "documents pairs", what the average over pairs changes by without each document.

    Of one layer; float16: three digits, which is more than an interval needs. By language, and
    without each sentence, of `BY_LANGUAGE` alone.
    """
    weights = average_weights(tuple(exact.pairs))
    score = exact.scores[task][0].mean(-1, keepdims=True)
    return {
        f"{what} {averaged}": (weight @ (left_out[task][0] - score)).astype(np.float16)
        for what, left_out in exact.left_out.items()
        for averaged, weight in weights.items()
        if (what != "sentences" and averaged != "languages")
        or (task in BY_LANGUAGE and (what == "documents" or averaged == "pairs"))
    }


def scores_of_pairs(value: Mapping[str, ndarray], n: int) -> ndarray:
    """``(n_layers, n_pairs, 2)``, in the order of `abx.exact`."""
    if "won" in value:
        return value["won"] / (2 * value.get("made", n * (n - 1)))
    return value["share"] / _SHARES if "share" in value else value["score"].astype(float)


def scores_apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of two values' scores of languages, or of their differences."""
    shapes = [{name: x.shape for name, x in value.items()} for value in (stored, computed)]
    if shapes[0] != shapes[1]:
        return np.inf
    # the number of sentences decides the unit of a score alone, where it is of all triplets
    n = stored["sentences pairs"].shape[-1] if "sentences pairs" in stored else 2
    _, weights = language_weights(list(combinations(range(len(stored["cut"])), 2)))
    both = []
    for value in (stored, computed):
        parts = {name: x for name, x in value.items() if name == "cut" or " " in name}
        both.append(parts | {"scores": scores_of_pairs(value, n).mean(-1) @ weights.T})
    return work.largest_difference(*both)


#: A value: ``cut`` and what `packed` and `changes` have, all layers.
SCORE = work.Kind("score", _scores, version=1, tolerance=5e-4, difference=scores_apart)


# --- what else is kept ----------------------------------------------------------------------------


def cached(
    version: int = 1,
    *,
    tolerance: float = 1e-3,
    difference: Callable[[Any, Any], float] = work.largest_difference,
    documents: bool = False,
) -> Callable[[Callable[..., ledger.Value]], Callable[..., list[ledger.Value]]]:
    """Keep what a function makes of a subject and a text: small arrays, or a table.

    The function, ``(subject, corpus, ...)`` of a module, becomes one of several subjects or names
    of models; options of `READING` say how models are read. The ask has the function's name, its
    ``version`` (raised when it means other numbers) and all that it is asked with; ``documents``:
    it reads those of the corpus, too. ``tolerance`` and ``difference`` as of `work.Kind`. What is
    stored keeps the names of a table's columns and not their order.
    """

    def declared(function: Callable[..., ledger.Value]) -> Callable[..., list[ledger.Value]]:
        kind = work.Kind(
            "states", function, version, tolerance, difference, function=function.__name__
        )

        @wraps(function)
        @checks.typed()
        def values(
            subjects: Sequence[Subject | Name], corpus: ParallelCorpus, *rest: Any, **asked: Any
        ) -> list[ledger.Value]:
            reading = {name: asked.pop(name) for name in READING if name in asked}
            several = [as_subject(x, reading) for x in subjects]
            bound = inspect.signature(function).bind(None, corpus, *rest, **asked)
            bound.apply_defaults()
            about = dict([*bound.arguments.items()][2:])
            if documents:
                about["documents"] = label_runs(parallel.documents(corpus))
            return work.results(
                kind,
                [subject.about(corpus) | about for subject in several],
                lambda missing: (([i], (several[i], *bound.args[1:])) for i in missing),
                what=function.__name__.replace("_", " "),
                alone=True,
                uncomputable=[i for i, subject in enumerate(several) if not subject.here],
            )

        return values

    return declared


# --- the experiment -------------------------------------------------------------------------------


def reported_measures() -> list[str]:
    """What chapters, the report and a trainer's log have; after MD that of like length."""
    names = [measure.name for measure in registered().values() if measure.reported]
    after = names.index("MD") + 1
    return [*names[:after], MATCHED, *names[after:]]


def standard_measures(corpus: ParallelCorpus, subject: Subject) -> list[str]:
    """What is scored if nothing is named: LD, MD, retrieval, and MD under all masks there are."""
    masks = constraints.standard_masks(corpus)
    if isinstance(subject, FunctionSubject):
        masks = [name for name in masks if name == "like length"]
    return [*abx.SCORES, *(f"MD, {name}" for name in masks)]


@checks.typed()
def subject_scores(
    subjects: Sequence[Subject | Name],
    corpus: ParallelCorpus,
    measures: Sequence[str] | None = None,
    *,
    space: str = "raw",
    partial: bool = False,
    **options: object,
) -> list[abx.PairScores]:
    """The scores of each subject on a text, for all pairs of languages and all layers.

    ``measures``: names of `measures.registered`, or MD under constraints, "MD, like length" or "MD,
    like length (share=0.2) and near" (`constraints`); None: `standard_measures`.
    ``options`` (``pooling``, ``max_length``) are of models that are named. ``partial``: beside LD,
    MD, matched MD and retrieval, a model has what is stored or can be computed here alone.
    Left out, and warned of, are checkpoints whose weights are not here and of which nothing is
    stored (`Checkpoint.recorded`). Where vectors are computed, languages that a model cannot read
    are warned of (`checks.TextWarning`). Errors as `states.embed_corpus`, `loading.load` and
    `abx.exact`.
    """
    checks.one_of(space, SPACES, "space")
    several, functions = [as_subject(x, options) for x in subjects], {}
    for subject in several:
        function = getattr(subject, "function", None)
        if functions.setdefault(str(subject.vectors), function) is not function:
            raise ValueError(f"two functions are called {subject.label[0]}: give one another name")
    labels = {"documents": parallel.documents(corpus), "domains": corpus.domains}
    common = {"space": space} | {name: label_runs(column) for name, column in labels.items()}
    asked = [
        (number, name)
        for number, subject in enumerate(several)
        for name in (standard_measures(corpus, subject) if measures is None else measures)
    ]
    of_subject = [subject.about(corpus) | common for subject in several]
    abouts = [of_subject[number] | _measure_about(name, corpus) for number, name in asked]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: asked[position][0]):
            positions = list(positions)
            names = [asked[position][1] for position in positions]
            yield positions, (several[number], corpus, space, names)

    absent = [
        i
        for i, (number, name) in enumerate(asked)
        if not several[number].here
        or (partial and name not in (*abx.SCORES, MATCHED) and not several[number].fetched)
    ]
    values = work.results(SCORE, abouts, calls, what="scores", uncomputable=absent)
    by_subject = [{} for _ in several]
    for (number, name), value in zip(asked, values, strict=True):
        if value is not None or not partial or not several[number].here:
            by_subject[number][name] = value
    scored_subjects = [*zip(several, by_subject, strict=True)]
    lost = [subject.name for subject, x in scored_subjects if None in x.values()]
    for series in dict.fromkeys(checkpoint.name for checkpoint in lost):
        steps = ", ".join(f"{x.step:,}" for x in lost if x.name == series)
        warnings.warn(
            f"{series}: left out are the checkpoints {steps}: their weights are not "
            "shipped, and their scores on this text, with these options, are not stored",
            stacklevel=3,
        )
    return [
        _unpacked(by_measure, corpus, subject, space)
        for subject, by_measure in scored_subjects
        if by_measure and None not in by_measure.values()
    ]


def _measure_about(name: str, corpus: ParallelCorpus) -> dict[str, object]:
    """What an ask says of a measure, or of MD under a constraint."""
    known = registered()
    if name in known:
        return {"measure": [name, known[name].version]}
    if not name.startswith("MD, "):
        masked = [f"MD, {x}" for x in constraints.standard_masks(corpus)]
        checks.one_of(name, [*known, *masked], "measure")
    return constraints.about(name.removeprefix("MD, "), corpus)


def _unpacked(
    values: Mapping[str, ledger.Value], corpus: ParallelCorpus, subject: Subject, space: str
) -> abx.PairScores:
    """The values of a subject as its scores."""
    n = len(corpus)
    scores = {name: scores_of_pairs(value, n) for name, value in values.items()}
    ways = (*WEIGHTINGS, "languages")
    left_out_change = {
        what: {
            way: {
                x: y[name].astype(float)
                for x, y in values.items()
                if (name := f"{what} {way}") in y
            }
            for way in ways
        }
        for what in groupings(corpus)
    }
    made = {name: value["made"] for name, value in values.items() if "made" in value}
    pairs = tuple(combinations(corpus.languages, 2))
    first = next(iter(values.values()))
    layers = tuple(range(len(next(iter(scores.values())))))
    model, step = subject.label
    return abx.PairScores(
        pairs,
        layers,
        n,
        scores,
        masked=made,
        model=model,
        step=step,
        space=space,
        left_out_change=left_out_change,
        sizes={what: group_sizes(labels) for what, labels in groupings(corpus).items()},
        cut=dict(zip(corpus.languages, first["cut"].tolist(), strict=True)),
        texts=tuple(map(corpus.text_hash, corpus.languages)),
    )


def scored(
    measures: Sequence[str] | None,
    subjects: Sequence[Subject | Name],
    texts: Sequence[ParallelCorpus],
    spaces: Sequence[str] = ("raw",),
    *,
    by: Sequence[str] = ("layer",),
) -> pd.DataFrame:
    """Measures × subjects × texts × spaces as one tidy table, with intervals over documents.

    Columns ``text``, ``model``, ``checkpoint``, ``space``, ``task``, the keys of ``by`` ("layer",
    "language"), ``score``, ``low``, ``high``. Parameters as `subject_scores`.
    """
    tables = []
    for text, space in product(texts, spaces):
        scores = subject_scores(subjects, text, measures, space=space)
        tables.append(averaged_scores(scores, by=by).assign(text=text.name))
    table = pd.concat(tables, ignore_index=True)
    return table[["text", *(name for name in table if name != "text")]]
