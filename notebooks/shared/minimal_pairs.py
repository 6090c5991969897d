"""Minimal pairs: a sentence, its translations, and itself edited so that it means something else.

``data/minimal-pairs`` has sentences of Parallel UD that its ``make.py`` edits by rules. X is a
sentence, A its translation, B what A became. Where two of its words changed places, B has the words
and the length of A, so no bag tells them apart; the order of what X and A write alike does
(`Spelling`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
from anyascii import anyascii
from matplotlib.figure import Figure

from shared.abx_tables import at_last
from shared.shown import asking, with_interval
from xlx.experiment.abx_scores import before_training
from xlx.experiment.minimal_pairs import cosines, edit_distance
from xlx.experiment.scoring import (
    LENGTH_ALONE,
    BagOfSubwords,
    Length,
    Subject,
    as_subject,
    cached,
)
from xlx.measures import mixing, statistics
from xlx.plots.panels import across, rows_of
from xlx.plots.primitives import Curves, curves
from xlx.plots.style import GUESSING, handle, styled
from xlx.results import checks
from xlx.results.deferred import deferred
from xlx.results.ledger import Value
from xlx.text import files
from xlx.text.languages import kind_of_language
from xlx.text.parallel import ParallelCorpus, documents

sparse = deferred("scipy.sparse")

#: Two numbers, two names, or subject and object change places: the words stay what they are.
EXCHANGES = ("numbers", "names", "roles")
#: All kinds of edits; of the last two the words change.
EDITS = (*EXCHANGES, "number words", "negation")
#: In the place of a language: the edited sentence, and what it was before.
EDITED, ORIGINAL = "edited", "original"


@cache
def load_minimal_pairs(kind: str, further: bool = False) -> ParallelCorpus:
    """A kind of `EDITS`, or "phrases", as a corpus: a position is one edit of one sentence.

    Each language has its translation there, and `EDITED` what became of it in the language that
    opens the id (``de:n01001011``). The domain is the document of the sentence. What a reader has
    not found good is left out. ``further``: of `EXCHANGES` or these, in thirteen languages more, in
    which nothing was edited; what was, is there as `ORIGINAL`. ValueError for other kinds,
    TextError for files that were changed.
    """
    checks.one_of(kind, [*(EXCHANGES if further else EDITS), "phrases"], "kind of minimal pair")
    edits = _tables("edits")["all"].query("kind == @kind and verdict == 'ok'")
    sentences = {
        code: tuple(table.loc[edits.index, "text"])
        for code, table in _tables("further" if further else "sentences").items()
    }
    if further:
        sentences[ORIGINAL] = originals(load_minimal_pairs(kind))
    return ParallelCorpus(
        f"minimal pairs, {kind}",
        sentences | {EDITED: tuple(edits["edited"])},
        tuple(edits["language"] + ":" + edits.index),
        tuple(edits.index.str[:-3]),
        "CC BY-SA 3.0 and 4.0",
        "Parallel UD",
    )


def _tables(source: str) -> dict[str, pd.DataFrame]:
    """The tables of a source by language, by the ids of their sentences."""
    rows = rows_of(files.catalogue("minimal-pairs"), source=source).to_dict("records")
    return {
        row["language"]: files.tsv(files.contents("minimal-pairs", row), row["file"]).set_index(
            "id"
        )
        for row in rows
    }


def originals(corpus: ParallelCorpus) -> tuple[str, ...]:
    """What was edited: the sentence of each position in the language that opens its id."""
    return corpus.sentences.get(ORIGINAL) or tuple(
        corpus.sentences[code][i] for i, code in enumerate(documents(corpus))
    )


def languages_of_x(corpus: ParallelCorpus) -> list[str]:
    """The languages of a corpus of edits, without what stands in the place of one."""
    return [code for code in corpus.languages if code not in (ORIGINAL, EDITED)]


def every_x(kind: str, further: bool = True) -> list[ParallelCorpus]:
    """The corpora of a kind: X in the languages that have edits, and ``further`` in the others."""
    return [load_minimal_pairs(kind, x) for x in (False, True)[: 1 + further]]


# --- what each subject says ----------------------------------------------------------------------


def shares_apart(stored: Value, computed: Value) -> float:
    """The largest difference of a share over all positions: a rounding error turns single ones."""
    both = zip(stored.values(), computed.values(), strict=True)
    return max(float(np.abs(a.mean(axis=-1) - b.mean(axis=-1)).max()) / 2 for a, b in both)


@cached(tolerance=0.02, difference=shares_apart, documents=True)
def edits_told(subject: Subject, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    """Twice whether cos(X, A) > cos(X, B), a tie 1: uint8 ``(n_layers, n_languages, n)``.

    ``corpus`` is one of `load_minimal_pairs`; X is in each of its `languages_of_x`, also in that
    of A, where X is A and the answer is given. ``own``: X is the sentence of the position.
    ``other``: that of the position before, of which A is no translation either: one half, unless
    edited sentences are odd whatever they are compared with.
    """
    reading, codes, n = subject.read(corpus), languages_of_x(corpus), len(corpus)
    by_order: dict[str, list[list[np.ndarray]]] = {"own": [], "other": []}
    for vectors in reading.layers():
        b, a = vectors[EDITED], vectors.get(ORIGINAL)
        if a is None:
            stack = sparse.vstack if reading.counts else np.concatenate
            places = [codes.index(code) * n + i for i, code in enumerate(documents(corpus))]
            a = stack([vectors[code] for code in codes], dtype=np.float64)[places]
        for name, shift in (("own", 0), ("other", 1)):
            order = np.roll(np.arange(n), shift)
            moved = [vectors[code][order] for code in codes]
            by_order[name].append([1 + np.sign(cosines(x, a) - cosines(x, b)) for x in moved])
    return {name: np.array(layers).astype(np.uint8) for name, layers in by_order.items()}


#: What a table calls the three kinds of `EXCHANGES` as one, and the mean over languages.
COMPOSED, MEAN = "all exchanges", "mean"
GROUPS = {COMPOSED: EXCHANGES} | {kind: (kind,) for kind in EDITS}


# --- the order of what is written alike -----------------------------------------------------------


@cache
def in_latin(text: str) -> str:
    """A text in small Latin letters without accents, a character at a time, by `anyascii`.

    So it cannot know how a character is read in its word: Japanese kanji come out in Mandarin,
    Arabic without its vowels, Thai vowels before their consonants where they are written so.
    """
    return anyascii(text).lower()


@cache
def _places_of_words(text: str) -> dict[str, int]:
    """Runs of digits, or of letters, that a text has once: where they stand."""
    words = re.findall(r"\d+|[^\W\d_]+", text.lower())
    return {word: i for i, word in enumerate(words) if words.count(word) == 1}


def order_distance(first: str, second: str) -> int:
    """How many pairs of words and numbers that two texts share stand in another order.

    Kendall's distance between the orders of what each of the texts has once.
    """
    places = _places_of_words(second)
    order = [places[word] for word in _places_of_words(first) if word in places]
    return sum(a > b for a, b in combinations(order, 2))


@dataclass(frozen=True)
class Spelling:
    """Says that A is nearer than B by a distance of texts; it reads no word.

    ``write``: what is done to every text before.
    """

    distance: Callable[[str, str], int]
    write: Callable[[str], str] = str

    def told(self, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
        """``own`` as of `edits_told`, of one layer."""
        a, b = ([*map(self.write, x)] for x in (originals(corpus), corpus.sentences[EDITED]))
        ahead = []
        for code in languages_of_x(corpus):
            rows = zip(map(self.write, corpus.sentences[code]), a, b, strict=True)
            ahead.append([np.sign(self.distance(x, z) - self.distance(x, y)) for x, y, z in rows])
        return {"own": 1 + np.array(ahead)[None]}


@cache
def _told_by_spelling(rule: Spelling, kind: str, place: int) -> dict[str, np.ndarray]:
    return rule.told(load_minimal_pairs(kind, place > 0))


Asked = Subject | Spelling


def answers(
    subjects: Sequence[Asked], kind: str, what: str = "own", further: bool = True
) -> list[np.ndarray]:
    """`edits_told` of each subject on `every_x`, ``(n_layers, n_languages, n)``."""
    models, parts = [x for x in subjects if not isinstance(x, Spelling)], []
    for place, corpus in enumerate(every_x(kind, further)):
        read = iter(edits_told(models, corpus))
        values = [
            _told_by_spelling(x, kind, place) if isinstance(x, Spelling) else next(read)
            for x in subjects
        ]
        parts.append([value[what] for value in values])
    return [np.concatenate(values, axis=1) for values in zip(*parts, strict=True)]


def worked(kind: str, start: str, x: str, subjects: Mapping[str, Asked]) -> pd.DataFrame:
    """The edit of a kind whose A begins with ``start``: X, A, B, and what each subject says."""
    corpora = every_x(kind)
    before, codes = originals(corpora[0]), [x for text in corpora for x in languages_of_x(text)]
    at = next(i for i, a in enumerate(before) if a.startswith(start))
    sentences = corpora[-1].sentences | corpora[0].sentences
    rows = {f"X ({x})": sentences[x][at], "A": before[at], "B": sentences[EDITED][at]}
    said = [
        ("B", "tie", "A")[int(value[-1, codes.index(x), at])]
        for value in answers([*subjects.values()], kind)
    ]
    rows |= {f"nearer to X, {name}": answer for name, answer in zip(subjects, said, strict=True)}
    return pd.DataFrame({"": rows})


#: The rules of spelling, the characters as they are written or in Latin letters.
BY_SPELLING = {
    "edit distance": Spelling(edit_distance),
    "edit distance, in Latin letters": Spelling(edit_distance, in_latin),
    "order of shared words": Spelling(order_distance, in_latin),
}


def standard_subjects(models: Sequence[str], untrained: Sequence[str] = ()) -> dict[str, Asked]:
    """Length and spelling; of each model its bag, where named itself untrained, and itself."""
    named: dict[str, Asked] = {LENGTH_ALONE: Length(), **BY_SPELLING}
    for model in models:
        named[f"bag, {model}"] = BagOfSubwords(model)
        if model in untrained:
            named[f"untrained, {model}"] = as_subject(before_training(model))
        named[model] = as_subject(model)
    return named


#: Languages in which the verb comes last.
VERB_LAST = ("hi", "ja", "ko", "tr")
#: Which X are compared: with the verb elsewhere, in the script of A or in another; or with it last.
SIDES = ("one script", "two scripts", "verb last")
#: X on any side.
EVERY = "every X"


def side_of(x: str, a: str) -> str:
    """Which of `SIDES` the languages of X and A are on; that of A never has the verb last."""
    if x in VERB_LAST:
        return "verb last"
    script, other = (kind_of_language(code)[2] for code in (x, a))
    return "one script" if script == other else "two scripts"


def shares(
    subjects: Mapping[str, Asked],
    groups: Mapping[str, Sequence[str]],
    what: str = "own",
    side: str | None = None,
) -> pd.DataFrame:
    """How often X is nearer to A than to B, over all X of another language than A.

    ``groups``: name → kinds taken as one. Columns ``model``, ``kind``, ``layer``, ``depth`` (from 0
    to 1), ``language`` (of A and B, or `MEAN` over them), ``share`` with its interval over
    documents and ``n`` edits. ``what``: "own", or "other", where X is another sentence;
    ``side``: one of `SIDES`, or `EVERY`; None: X only in the languages that have edits.
    """
    tables = []
    for name, kinds in groups.items():
        scores, *of_edits = _scores(subjects, kinds, what, side)
        tables += [
            _over_languages(score, *of_edits).assign(model=label, kind=name)
            for label, score in scores.items()
        ]
    return pd.concat(tables, ignore_index=True)


def _scores(
    subjects: Mapping[str, Asked],
    kinds: Sequence[str],
    what: str = "own",
    side: str | None = None,
    without: str | None = None,
) -> tuple:
    """Subject → scores of edits ``(n_layers, n)``; their languages, and documents."""
    texts = [load_minimal_pairs(kind) for kind in kinds]
    language_of = np.array([code for text in texts for code in documents(text)])
    further = side is not None
    corpora = every_x(kinds[0], further)
    codes = np.array([code for text in corpora for code in languages_of_x(text)])
    compared = language_of != codes[:, None]  # (n_languages, n): X is no A
    if side in SIDES:
        compared &= np.array([[side_of(x, a) == side for a in language_of] for x in codes])
    there = compared.any(axis=0)  # Russian and Chinese have no other of their script
    if without is not None:
        there &= ~np.isin(_sentences(texts), _sentences([load_minimal_pairs(without)]))
    domains = np.array([document for text in texts for document in text.domains])
    read, scores = [answers([*subjects.values()], kind, what, further) for kind in kinds], {}
    for label, values in zip(subjects, zip(*read, strict=True), strict=True):
        twice = np.concatenate(values, axis=-1)[..., there]
        chosen = compared[:, there]
        scores[label] = (twice * chosen).sum(axis=1) / (2 * chosen.sum(axis=0))
    return scores, language_of[there], domains[there]


def _sentences(texts: Sequence[ParallelCorpus]) -> list[str]:
    """By edit which sentence it is of, in any language."""
    return [name.partition(":")[2] for text in texts for name in text.ids]


def beyond(
    subjects: Mapping[str, Asked],
    pairs: Sequence[tuple[str, str]],
    kinds: Sequence[str] = EXCHANGES,
    side: str | None = None,
    without: str | None = None,
) -> pd.DataFrame:
    """What the share of a subject has above that of a rival, by ``model``, ``rival`` and ``layer``.

    ``pairs``: (subject, rival), the rival at the same layer or at its one. The mean over languages,
    ``score``, with the interval of the difference over documents, edit by edit. ``without``: a
    kind; edits of sentences that it has in any language are left out.
    """
    scores, *of_edits = _scores(subjects, kinds, side=side, without=without)
    tables = [pd.DataFrame(columns=["model", "rival", "layer", "score", "low", "high"])]
    for label, rival in pairs:
        apart = (1 + scores[label] - scores[rival]) / 2  # a share in [0, 1]
        rows = _over_languages(apart, *of_edits)
        rows = rows_of(rows.rename(columns={"share": "score"}), language=MEAN)
        ends = 2 * rows[["score", "low", "high"]] - 1
        tables.append(ends.assign(model=label, rival=rival, layer=rows["layer"]))
    return pd.concat(tables[1:] or tables, ignore_index=True)


def _over_languages(score: np.ndarray, language_of: np.ndarray, where: np.ndarray) -> pd.DataFrame:
    """Means of scores ``(n_layers, n)`` by language and over these, intervals over documents."""
    groups, tables = mixing.Groups.named(len(where), where), []
    codes, language, counts = np.unique(language_of, return_inverse=True, return_counts=True)
    for code in [*codes, MEAN]:
        chosen = (language_of == code) | (code == MEAN)
        weights = chosen / counts[language]
        with np.errstate(all="ignore"):  # a language of one document has no interval
            estimate = groups.estimate((score * weights)[None], weights=weights)
            both = mixing.share_ends(estimate)
        tied = (estimate.half < statistics.SLACK) & (estimate.score * (1 - estimate.score) > 0)
        low, high = np.where(tied, estimate.score, both)
        ends = {"share": estimate.score, "low": low, "high": high}
        layer = np.arange(len(score))
        table = pd.DataFrame({"layer": layer, "depth": layer / max(1, layer[-1]), "language": code})
        tables.append(table.assign(**ends, n=int(chosen.sum())))
    return pd.concat(tables)


def shares_by_side(
    subjects: Mapping[str, Asked], groups: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """`shares` of each of `SIDES`, which is in the column ``X``."""
    return pd.concat([shares(subjects, groups, side=side).assign(X=side) for side in SIDES])


def beyond_by_side(
    subjects: Mapping[str, Asked],
    pairs: Sequence[tuple[str, str]],
    groups: Mapping[str, Sequence[str]],
) -> pd.DataFrame:
    """`beyond` at the last layer of each model, by ``kind`` (of ``groups``) and side, ``X``."""
    tables = [
        at_last(beyond(subjects, pairs, kinds, side), "layer").assign(kind=name, X=side)
        for name, kinds in groups.items()
        for side in SIDES
    ]
    return pd.concat(tables, ignore_index=True)


def by_kind(table: pd.DataFrame, *, intervals: bool = True) -> pd.DataFrame:
    """Model by kind: the share over languages at the last layer, as text with its interval."""
    rows = rows_of(at_last(table, "layer"), language=MEAN)
    told = with_interval(rows, "share") if intervals else rows["share"].round(2)
    kinds, models = dict.fromkeys(rows["kind"]), dict.fromkeys(rows["model"])
    wide = rows.assign(told=told).pivot(index="model", columns="kind", values="told")
    return wide.loc[[*models], [*kinds]]


@styled
def over_layers(table: pd.DataFrame, models: Sequence[str]) -> Figure:
    """The share over the depth of each model, a panel per kind and side; black: the best rule.

    ``table`` as of `shares_by_side`.
    """
    rows = rows_of(table.assign(panel=table["kind"] + " exchanged, " + table["X"]), language=MEAN)
    style = Curves(every=3, width=2.7, height=1.9, wrap=3)
    drawn = rows[rows["model"].isin(models)]
    on = curves(drawn, "depth", "share", hue="model", col="panel", style=style)
    across(on, y=0.5)
    line = {"color": "black", "linewidth": 1, "linestyle": (0, (5, 2))}
    rules = rows[rows["model"].isin(BY_SPELLING)]
    for panel, axes in on.axes.items():
        axes.axhline(rows_of(rules, panel=panel)["share"].max(), **line)
    handles = [handle("the best rule of spelling", line), handle("chance", GUESSING)]
    x = "depth: 0 is the embeddings, 1 the last layer"
    figure = on.done(x, "share with A nearer to X than B", handles=handles)
    return asking("Does meaning beat spelling where words change places?", figure)
