"""One experiment: measures × subjects × texts, an entry of the ledger for each.

A *subject* gives the sentences of a corpus vectors, layer by layer: a model or a checkpoint, a bag
of its subwords, the length of sentences alone, any function. A *measure* is a formula on the
similarity block of two languages (`xlx.measures.abx.Measure`), or MD with B as a mask allows. A
*text* is a corpus; `shuffled_translations` and `shuffled_languages` make one of another. So every
measure has every control, with its interval over documents.

What is stored is one measure of one subject in one space on one text: a new measure leaves the
entries of all others as they are, and the vectors are read once for all that is missing.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from typing import Any

import numpy as np
import pandas as pd
import torch

from xlx.experiment.abx_scores import (
    BY_LANGUAGE,
    MASKS,
    SPACES,
    WEIGHTINGS,
    CheckpointScores,
    group_sizes,
    groupings,
    label_runs,
    language_weights,
    masks_of,
    pair_weights,
    texts_of,
)
from xlx.experiment.averages import averaged_scores
from xlx.measures import abx, registered
from xlx.results import checks, ledger, work
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import Name, series_name
from xlx.subjects.loading import Encoder
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: Steps between the lowest and the highest difference of a layer: its errors keep three digits.
_STEPS = 2**8 - 1
#: Steps between a score of 0 and of 1, where it is of a mask whose errors by language nobody asks.
_SHARES = 2**16 - 1
#: What stands for a model in the tables.
BAG, LENGTH_ALONE = "a bag of subwords", "length alone"
# --- subjects -------------------------------------------------------------------------------------

#: The vectors of one layer, ``(n_sentences, dim)`` by language, dense or sparse.
Layer = Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """The vectors of a text: layers in order, sentences cut by language, and how to compare."""

    layers: Iterable[Layer]
    cut: list[int]
    device: str | torch.device = "cpu"
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class Subject:
    """Whatever gives the sentences of a corpus vectors. This one: a model, at all its layers.

    ``options`` (``pooling``, ``max_length``, ``special_tokens``) as `states.embed_corpus`.
    """

    name: Name
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def label(self) -> tuple[str, int]:
        """What it is called in tables, and its step of training (0 where it has none)."""
        known = identity.identify(self.name)
        return series_name(known), known.step or 0

    @property
    def here(self) -> bool:
        """Whether it can be read at all: of some checkpoints only results are shipped."""
        return not getattr(self.name, "recorded", None)

    def about(self, corpus: ParallelCorpus) -> dict[str, object]:
        """What decides its vectors of a text, as an ask names it."""
        return states.corpus_about(self.name, corpus, **self.options)

    def encoder(self) -> Encoder:
        """The model whose vocabulary says which sentences share subwords."""
        return loading.load(self.name)

    def read(self, corpus: ParallelCorpus, space: str) -> Reading:
        """Its vectors of a text in a space."""
        encoder = self.encoder()
        embedded = states.embed_corpus(encoder, corpus, **self.options)
        layers = (
            SPACES[space]({code: x[layer] for code, x in embedded.states.items()})
            for layer in range(embedded.n_layers + 1)
        )
        return Reading(layers, [embedded.cut[x] for x in corpus.languages], encoder.device)


@dataclass(frozen=True)
class BagOfSubwords(Subject):
    """How often a sentence has each subword of a model's vocabulary: one layer, called 0.

    What names, numbers and loans that two languages write alike are worth. In another space than
    the raw one counts are no longer few: some 16 bytes a sentence and subword of the vocabulary.
    """

    @property
    def label(self) -> tuple[str, int]:
        """`BAG`, whatever the vocabulary."""
        return BAG, 0

    def about(self, corpus: ParallelCorpus) -> dict[str, object]:
        """The vocabulary is the model's; its weights count as well, as its fingerprint has both."""
        about = {"of": BAG, "bag of": identity.fingerprint(self.name)}
        return about | {"max_length": self.options.get("max_length"), "texts": texts_of(corpus)}

    def read(self, corpus: ParallelCorpus, space: str) -> Reading:
        """Counts; sparse in the raw space."""
        length = self.options.get("max_length")
        counts = states.bag_of_subwords(self.encoder(), corpus, max_length=length)
        nothing = [0] * len(corpus.languages)
        if space == "raw":
            return Reading([counts], nothing, dtype=torch.float64)
        dense = {code: rows.toarray().astype(np.float32) for code, rows in counts.items()}
        return Reading([SPACES[space](dense)], nothing)


@dataclass(frozen=True)
class FunctionSubject(Subject):
    """Any function from sentences to vectors ``(n, dim)``; kept under a name and a version.

    ``function`` gets the sentences of one language and its code. Name another version when it gives
    other vectors: a function has no fingerprint.
    """

    name: str
    function: Callable[[Sequence[str], str], np.ndarray] | None = None
    version: str = "1"

    @property
    def label(self) -> tuple[str, int]:
        """Its name."""
        return self.name, 0

    def about(self, corpus: ParallelCorpus) -> dict[str, object]:
        """Name, version and text."""
        return {"of": self.name, "version": self.version, "texts": texts_of(corpus)}

    def encoder(self) -> Encoder:
        """There is none, so no sentences that share its subwords."""
        raise ValueError(f"{self.name} has no vocabulary, and MD among near sentences needs one")

    def read(self, corpus: ParallelCorpus, space: str) -> Reading:
        """One layer, called 0."""
        vectors = {x: self.function(text, x) for x, text in corpus.sentences.items()}
        return Reading([SPACES[space](vectors)], [0] * len(vectors), dtype=torch.float64)


@dataclass(frozen=True)
class Length(FunctionSubject):
    """The number of characters: the closer on a log scale, the more alike."""

    name: str = LENGTH_ALONE

    def about(self, corpus: ParallelCorpus) -> dict[str, object]:
        """The text decides everything."""
        return {"of": self.name, "texts": texts_of(corpus)}

    def read(self, corpus: ParallelCorpus, space: str) -> Reading:
        """Points on a quarter of a circle, whose cosine falls with the distance in log length."""
        logs = {x: np.log1p([*map(len, text)]) for x, text in corpus.sentences.items()}
        longest = max(row.max() for row in logs.values())
        angles = {code: row / longest * np.pi / 2 for code, row in logs.items()}
        arcs = {code: np.stack([np.cos(a), np.sin(a)], axis=1) for code, a in angles.items()}
        return Reading([SPACES[space](arcs)], [0] * len(arcs), dtype=torch.float64)


# --- texts ----------------------------------------------------------------------------------------


def shuffled_translations(corpus: ParallelCorpus, seed: int = 1) -> ParallelCorpus:
    """Every language but the first in an order of its own: nothing translates anything."""
    rng = np.random.default_rng(seed)
    first, *rest = corpus.languages
    moved = {x: [corpus.sentences[x][i] for i in rng.permutation(len(corpus))] for x in rest}
    sentences = {first: corpus.sentences[first]} | {x: tuple(text) for x, text in moved.items()}
    return replace(corpus, name=f"{corpus.name}, translations shuffled", sentences=sentences)


def shuffled_languages(corpus: ParallelCorpus, seed: int = 1) -> ParallelCorpus:
    """At every position the sentences are dealt to the languages at random: names mean nothing."""
    rng = np.random.default_rng(seed)
    codes = corpus.languages
    dealt = rng.permuted(np.tile(np.arange(len(codes)), (len(corpus), 1)), axis=1)
    sentences = {
        code: tuple(corpus.sentences[codes[of]][i] for i, of in enumerate(dealt[:, place]))
        for place, code in enumerate(codes)
    }
    return replace(corpus, name=f"{corpus.name}, languages shuffled", sentences=sentences)


# --- one entry ------------------------------------------------------------------------------------


def _scores(
    subject: Subject, corpus: ParallelCorpus, space: str, names: Sequence[str]
) -> list[dict[str, np.ndarray]]:
    """A value of `SCORE` for each measure that is named, from one reading of the text."""
    plain = [registered()[name] for name in names if name in registered()]
    kinds = [name.removeprefix("MD, ") for name in names if name not in registered()]
    masks = masks_of(corpus, kinds, subject.encoder)
    reading, by_layer = subject.read(corpus, space), []
    for vectors in reading.layers:
        exact = abx.exact(
            vectors, measures=plain, masks=masks, groups=groupings(corpus), device=reading.device,
            dtype=reading.dtype,
        )  # fmt: skip
        by_layer.append({name: packed(exact, name) for name in names})
    values = []
    for name in names:
        parts = [layer[name] for layer in by_layer]
        value = {part: np.stack([of[part] for of in parts]) for part in parts[0]}
        made = {"made": exact.masked[name]} if name in exact.masked else {}
        values.append(value | made | {"cut": np.array(reading.cut)})
    return values


def packed(exact: abx.PairScores, task: str) -> dict[str, np.ndarray]:
    """One layer: comparisons won, each counted twice, or their share; and coded differences."""
    n, scores = exact.n_sentences, exact.scores[task]
    weights = {**pair_weights(exact.pairs), "languages": language_weights(exact.pairs)[1]}
    if task in BY_LANGUAGE:
        made = exact.masked.get(task, n * (n - 1))
        kept = {"won": np.rint(2 * made * scores[0]).astype(np.uint32)}
    elif task in exact.masked:
        kept = {"share": np.rint(_SHARES * scores[0]).astype(np.uint16)}
    else:
        kept = {"score": scores[0].astype(np.float32)}
    for what, left_out in exact.left_out.items():
        differences = left_out[task][0] - scores[0].mean(axis=-1, keepdims=True)
        for averaged, weight in weights.items():
            if _errors_kept(what, averaged, task):
                coded = _coded(weight @ differences)
                kept |= {f"{part} {what} {averaged}": array for part, array in coded.items()}
    return kept


def _errors_kept(what: str, averaged: str, task: str) -> bool:
    """Whether an average without each group is kept."""
    if averaged == "languages" or what == "sentences":
        return task in BY_LANGUAGE and (what == "documents" or averaged == "pairs")
    return True


def _coded(differences: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers as steps between their lowest and their highest."""
    lowest, highest = np.nanmin(differences), np.nanmax(differences)
    step = (highest - lowest) / _STEPS or 1.0
    codes = np.rint((np.nan_to_num(differences, nan=lowest) - lowest) / step).astype(np.uint8)
    return {"codes": codes, "lowest": np.float64(lowest), "step": np.float64(step)}


def differences(value: Mapping[str, np.ndarray], part: str) -> np.ndarray:
    """What an average changes by without each group: ``part`` is "documents pairs", say."""
    codes = value[f"codes {part}"]
    lowest, step = (
        value[f"{sort} {part}"].reshape(-1, *[1] * (codes.ndim - 1)) for sort in ("lowest", "step")
    )
    return codes * step + lowest


def scores_of_pairs(value: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """``(n_layers, n_pairs, 2)``, in the order of `abx.exact`."""
    if "won" in value:
        return value["won"] / (2 * value.get("made", n * (n - 1)))
    return value["share"] / _SHARES if "share" in value else value["score"].astype(np.float64)


def scores_apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of two values' scores of languages, or of their differences."""
    shapes = [{name: x.shape for name, x in value.items()} for value in (stored, computed)]
    if shapes[0] != shapes[1]:
        return np.inf
    # the number of sentences decides the unit of a score alone, where it is of all triplets
    n = int(stored["made"].max()) if "made" in stored else _n_sentences(stored)
    _, weights = language_weights(list(combinations(range(len(stored["cut"])), 2)))
    scores, others = scores_of_pairs(stored, n), scores_of_pairs(computed, n)
    largest = [np.abs(stored["cut"].astype(int) - computed["cut"])]
    largest.append(np.abs((scores - others).mean(axis=-1) @ weights.T))
    for part in (part.partition(" ")[2] for part in stored if part.startswith("codes ")):
        largest.append(np.abs(differences(stored, part) - differences(computed, part)))
    return max(float(x.max()) for x in largest)


def _n_sentences(value: ledger.Value) -> int:
    codes = value.get("codes sentences pairs")
    return codes.shape[-1] if codes is not None else 2


#: A value: ``cut``, the scores of pairs (`scores_of_pairs`) and `differences`.
SCORE = work.Kind("score", _scores, version=1, tolerance=5e-4, difference=scores_apart)


# --- the experiment -------------------------------------------------------------------------------


def standard_measures(corpus: ParallelCorpus, subject: Subject) -> list[str]:
    """What is scored if nothing is named: all measures, and MD under all masks that there are."""
    masks = [name for name, there in MASKS.items() if there(corpus)]
    if isinstance(subject, FunctionSubject):
        masks = [name for name in masks if name == "like length"]
    return [*registered(), *(f"MD, {name}" for name in masks)]


def subject_scores(
    subjects: Sequence[Subject],
    corpus: ParallelCorpus,
    measures: Sequence[str] | None = None,
    *,
    space: str = "raw",
    what: str = "",
) -> list[CheckpointScores | None]:
    """The scores of each subject on a text, by measure; None of one that is not here.

    ``measures``: names of `measures.registered`, or "MD, like length" and the other masks; None:
    `standard_measures`. Errors as `states.embed_corpus`, `loading.load` and `abx.exact`.
    """
    checks.loaded(corpus)
    checks.one_of(space, SPACES, "space")
    if len(corpus.languages) < 2:
        raise ValueError("two languages or more are needed: a score compares languages")
    labels = {"documents": parallel.documents(corpus), "domains": corpus.domains}
    common = {"space": space} | {name: label_runs(of) for name, of in labels.items()}
    asked = [
        (number, name)
        for number, subject in enumerate(subjects)
        for name in (standard_measures(corpus, subject) if measures is None else measures)
    ]
    for _, name in asked:
        known = [*registered(), *(f"MD, {mask}" for mask in MASKS)]
        checks.one_of(name, known, "measure")
    of_subject = [subject.about(corpus) | common for subject in subjects]
    abouts = [of_subject[number] | {"measure": _versioned(name)} for number, name in asked]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: asked[position][0]):
            positions = list(positions)
            names = [asked[position][1] for position in positions]
            yield positions, (subjects[number], corpus, space, names)

    absent = [i for i, (number, _) in enumerate(asked) if not subjects[number].here]
    values = work.results(SCORE, abouts, calls, what=what or "scores", uncomputable=absent)
    by_subject: list[dict[str, ledger.Value | None]] = [{} for _ in subjects]
    for (number, name), value in zip(asked, values, strict=True):
        by_subject[number][name] = value
    return [
        _unpacked(of, corpus, subject, space)
        for subject, of in zip(subjects, by_subject, strict=True)
    ]


def _versioned(name: str) -> list[object]:
    """A measure as an ask names it."""
    return [name, registered()[name].version if name in registered() else 1]


def _unpacked(
    values: Mapping[str, ledger.Value | None], corpus: ParallelCorpus, subject: Subject, space: str
) -> CheckpointScores | None:
    """The values of a subject as its scores."""
    if None in values.values():
        return None
    n, model = len(corpus), subject.label
    scores = {name: scores_of_pairs(value, n) for name, value in values.items()}
    changes: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for what in groupings(corpus):
        for averaged in (*WEIGHTINGS, "languages"):
            kept = {
                name: differences(value, f"{what} {averaged}")
                for name, value in values.items()
                if f"codes {what} {averaged}" in value
            }
            if kept:
                changes.setdefault(what, {})[averaged] = kept
    made = {name: value["made"] for name, value in values.items() if "made" in value}
    pairs = tuple(combinations(corpus.languages, 2))
    first = next(iter(values.values()))
    layers = tuple(range(len(next(iter(scores.values())))))
    return CheckpointScores(
        *model,
        space,
        abx.PairScores(pairs, layers, n, scores, masked=made),
        changes,
        {what: group_sizes(of_position) for what, of_position in groupings(corpus).items()},
        dict(zip(corpus.languages, first["cut"].tolist(), strict=True)),
        tuple(map(corpus.text_hash, corpus.languages)),
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
    "language"), ``score``, ``low``, ``high``. A name stands for the `Subject` of that model.
    """
    asked = [x if isinstance(x, Subject) else Subject(x) for x in subjects]
    tables = []
    for text in texts:
        for space in spaces:
            found = [x for x in subject_scores(asked, text, measures, space=space) if x is not None]
            tables.append(averaged_scores(found, by=by).assign(text=text.name))
    table = pd.concat(tables, ignore_index=True)
    return table[["text", *(name for name in table if name != "text")]]


def checkpoint_scores(
    names: Sequence[Name], corpus: ParallelCorpus, *, space: str = "raw", **options: object
) -> list[CheckpointScores]:
    """LD, MD, retrieval and MD under masks, of models, for all pairs of languages and all layers.

    Options (``pooling``, ``max_length``) as `embeddings.embed_corpus`; errors as its,
    `models.load`'s and `abx.exact`'s. Masks are `distractors.standard_masks`. Where vectors are
    computed, languages that a model cannot read are warned of (`checks.TextWarning`). Left out, and
    warned of, are checkpoints whose weights are not here and of which nothing is stored
    (`Checkpoint.recorded`).
    """
    pass  # which knows subjects; this module what is said of them

    names = checks.several(names, "models")
    subjects = [Subject(name, options) for name in names]
    scores = subject_scores(subjects, corpus, space=space, what="ABX")
    _tell_of_missing(names, scores)
    return [of for of in scores if of is not None]


def _tell_of_missing(names: Sequence[Name], values: Sequence[CheckpointScores | None]) -> None:
    """Warn of checkpoints without a value."""
    missing: dict[str, list[str]] = {}
    for name, value in zip(names, values, strict=True):
        if value is None:
            missing.setdefault(name.name, []).append(f"{name.step:,}")
    for series, steps in missing.items():
        warnings.warn(
            f"{series}: left out are the checkpoints {', '.join(steps)}: their weights are not "
            "shipped, and their scores on this text, with these options, are not stored",
            stacklevel=3,
        )
