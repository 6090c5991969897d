"""What LD and MD see, and what they do not: planted worlds, exact and sampled scores, rivals.

A world gives the sentences of `planted_text` vectors in which languages, or translations, are alike
and different in one known way. What a measure scores there is known, and so is what it is blind to.

The control of the paper holds the variable of interest constant; where translations, or names of
languages, are shuffled, A and B can change places, too: all three are at one half for any vectors.
Shuffled within documents, or among like lengths, they can fail (`xlx.experiment.scoring.moves`).
Where half of the languages are moved, the pairs of a moved one and another are scored.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from printed.evaluator import rows_by
from shared.abx_figures import LAYER, chance_line, with_lines
from shared.abx_tables import PAIR, pair_scores, with_models
from shared.shown import asking
from xlx.experiment.abx_scores import MATCHED, SPACES, group_sizes
from xlx.experiment.averages import Average, averaged_scores
from xlx.experiment.constraints import masks_of
from xlx.experiment.scoring import SHUFFLES, Length, Subject, cached, moves, subject_scores
from xlx.measures import abx, statistics
from xlx.plots.panels import across
from xlx.plots.primitives import curves, scatter
from xlx.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GUESSING,
    PURPLE,
    SKY,
    VERMILION,
    handle,
    look,
    styled,
)
from xlx.results.deferred import deferred
from xlx.subjects import loading
from xlx.subjects.identity import Name
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

torch = deferred("torch")

#: MD where B is as long as A and shares most subwords with it.
BOTH = "MD, like length and near"

# --- planted worlds -----------------------------------------------------------------------------

Vectors = dict[str, np.ndarray]
#: Letters of two alphabets, one for one; the word that opens a sentence of each language.
_LATIN, _CYRILLIC = "aeioubdgklmnprstvz", "аеиоубдгклмнпрствз"
_FIRST = {
    "de": "aba",
    "en": "ebe",
    "es": "ibi",
    "fr": "obo",
    "bg": "ава",
    "ru": "еве",
    "sr": "иви",
    "uk": "ово",
}


def planted_text(seed: int = 1) -> ParallelCorpus:
    """Sentences of random words in eight languages, four of them in Cyrillic letters.

    Translations share their length but for some 15 %, sentences of a document less so, and those of
    three documents with all their translations a number of four digits.
    """
    n_documents, size = 36, 4
    rng, n = np.random.default_rng(seed), n_documents * size
    longer = np.repeat(rng.normal(0, 0.35, n_documents), size) + rng.normal(0, 0.45, n)
    topics = rng.choice(np.arange(1000, 10_000), -(-n_documents // 3), replace=False)
    numbers, sentences = np.repeat(topics, 3 * size)[:n], {}
    for code, first in _FIRST.items():
        letters = list(_LATIN if first[0] in _LATIN else _CYRILLIC)
        rows = []
        for at, number in zip(longer, numbers, strict=True):
            text, length = first, int(110 * np.exp(at + rng.normal(0, 0.15)))
            text += f" {number}" * 4
            while len(text) < length - 9:
                text += " " + "".join(rng.choice(letters, rng.integers(2, 9)))
            rows.append(f"{text} {''.join(rng.choice(letters, max(1, length - len(text) - 2)))}.")
        sentences[code] = tuple(rows)
    ids = tuple(f"{i // size:03}:{i}" for i in range(n))
    return ParallelCorpus("planted", sentences, ids, ("",) * n, "none", "made up")


def _noise(sentence: str, dim: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(sentence.encode())).normal(size=dim)


def _place(sentence: str) -> np.ndarray:
    return np.concatenate([12 * _own_axis(sentence), _noise(sentence, 24)])


def _own_axis(sentence: str) -> np.ndarray:
    return np.eye(8)[[*_FIRST.values()].index(sentence.split()[0])]


def _subspace(sentence: str) -> np.ndarray:
    return np.kron(_own_axis(sentence), _noise(sentence, 4))


def _script(sentence: str) -> np.ndarray:
    letters = [x for x in sentence if x.isalpha()]
    share = np.mean([x in _CYRILLIC for x in letters])
    number = _noise("".join(x for x in sentence if x.isdigit()), 16)
    return np.concatenate([[6 * share, 6 * (1 - share)], number])


def _length(text: ParallelCorpus) -> Vectors:
    arcs = Length().read(text).states
    return {
        code: np.hstack([arc[0], [0.01 * _noise(x, 4) for x in text.sentences[code]]])
        for code, arc in arcs.items()
    }


def _skewed(text: ParallelCorpus) -> Vectors:
    far = np.arange(len(text)) % 20 == 0
    sides = np.where(far, -19, 1)[:, None]
    return {
        code: np.hstack([sides * [*map(_own_axis, rows)], [0.1 * _noise(x, 4) for x in rows]])
        for code, rows in text.sentences.items()
    }


def _meaning(text: ParallelCorpus) -> Vectors:
    shared = np.stack([_noise(position, 24) for position in text.ids])
    return {
        code: shared + [0.1 * _noise(x, 24) for x in rows] for code, rows in text.sentences.items()
    }


def _meaning_and_place(text: ParallelCorpus) -> Vectors:
    return {
        code: np.hstack([rows, [12 * _own_axis(x) for x in text.sentences[code]]])
        for code, rows in _meaning(text).items()
    }


def _by_sentence(code: Callable[[str], np.ndarray]) -> Callable[[ParallelCorpus], Vectors]:
    return lambda text: {x: np.stack([*map(code, rows)]) for x, rows in text.sentences.items()}


#: What a vector knows: a mean vector of each language; a subspace of each, with mean zero; an axis
#: of each, on which one sentence in twenty lies far to the other side; the length alone; the
#: letters and a number; what translations share, without and with a mean vector of each language.
WORLDS: dict[str, Callable[[ParallelCorpus], Vectors]] = {
    "place": _by_sentence(_place),
    "subspace": _by_sentence(_subspace),
    "skewed": _skewed,
    "length": _length,
    "script": _by_sentence(_script),
    "meaning": _meaning,
    "meaning, place": _meaning_and_place,
}


def _vocabulary(model: str) -> SimpleNamespace:
    """What is asked of a model to say which sentences are near: how it writes them, whole."""
    return SimpleNamespace(tokenizer=loading.tokenizer(model), limit=lambda _: None)


def seen_in_worlds(text: ParallelCorpus, model: str) -> pd.DataFrame:
    """LD, MD and who names the language, by world (columns): means over pairs of languages.

    ``model``: whose subwords say which sentences are near.
    """
    masks = masks_of(text, [BOTH.removeprefix("MD, ")], lambda: _vocabulary(model))
    groups, columns = parallel.documents(text), {}
    for world, make in WORLDS.items():
        scores, vectors = {}, make(text)
        for label, space in (("", "raw"), (", centred", "centred")):
            exact = abx.exact(
                SPACES[space](vectors), measures=(abx.LD, abx.MD), masks=masks, dtype=torch.float64
            )
            scores |= {task + label: float(x.mean()) for task, x in exact.scores.items()}
        nearest = identified(vectors, groups)[READERS.index("nearest")]
        scores["nearest reader"] = nearest.mean()
        columns[world] = scores
    return pd.DataFrame(columns).loc[["LD", "LD, centred", "nearest reader", "MD", BOTH]]


# --- who names the language ---------------------------------------------------------------------

#: Who names the language of a sentence: least squares on its vector, the sentence nearest to it.
READERS = ("linear", "nearest")
#: Documents that are held out at a time: one in so many. The ridge on standardised dimensions.
#: How many sentences are compared with all others at a time.
_FOLDS, _RIDGE, _ROWS = 5, 0.01, 512


def identified(
    vectors: Mapping[str, np.ndarray], groups: Sequence[object], *, centred: bool = False
) -> np.ndarray:
    """Whether `READERS` name the language of held-out sentences rightly: bool ``(2, L, n)``.

    ``vectors`` are ``(n, dim)`` by language, sentences aligned; ``groups``, ``(n,)``, are held out
    whole. "linear" fits the languages' indicators; "nearest" is by cosine. ``centred``: less the
    mean of each language over the sentences that are not held out; then the linear reader has
    nothing to fit, and is at chance. Of equal answers the first language counts.
    """
    stacked = np.stack([*vectors.values()]).astype(np.float64)
    n_languages, n, dim = stacked.shape
    fold = np.unique(np.asarray(groups).astype(str), return_inverse=True)[1] % _FOLDS
    targets, right = np.eye(n_languages) - 1 / n_languages, np.zeros((2, n_languages, n), bool)
    for held in (fold == number for number in np.unique(fold)):
        rows = stacked - centred * stacked[:, ~held].mean(axis=1, keepdims=True)
        known, asked = rows[:, ~held].reshape(-1, dim), rows[:, held].reshape(-1, dim)
        scale = known.std(axis=0)
        known, asked = (
            (x - known.mean(axis=0)) / np.where(scale, scale, 1) for x in (known, asked)
        )
        known_targets = np.repeat(targets, (~held).sum(), axis=0)
        fitted = known.T @ known + _RIDGE * len(known) * np.eye(dim)
        named = [
            np.round(asked @ np.linalg.solve(fitted, known.T @ known_targets), 9).argmax(axis=1)
        ]
        units = rows / np.linalg.norm(rows, axis=2, keepdims=True)
        common = units.mean(axis=(0, 1))  # without it cosines are as near as the digits of float32
        near, query = ((units[:, x] - common).reshape(-1, dim) for x in (~held, held))
        offset, near = (near @ common).astype(np.float32), near.astype(np.float32).T
        parts = np.array_split(query.astype(np.float32), max(1, len(query) // _ROWS))
        nearest = np.concatenate([(part @ near + offset).argmax(axis=1) for part in parts])
        named.append(nearest // (~held).sum())
        languages = np.repeat(np.arange(n_languages), held.sum())
        right[:, :, held] = (np.stack(named) == languages).reshape(2, n_languages, -1)
    return right


def language_identification(
    names: Sequence[Subject | Name], text: ParallelCorpus, space: str, **options: object
) -> pd.DataFrame:
    """How many held-out sentences have their language named rightly (`identified`), by layer.

    Columns ``model``, ``layer``, ``task`` (of `READERS`), ``score``, ``low``, ``high``, ``space``.
    """
    sizes, n_languages, tables = group_sizes(parallel.documents(text)), len(text.languages), []
    for value in readers(names, text, space, **options):
        right, asked = value["right"], n_languages * len(text)
        score = right.sum(axis=-1) / asked
        without = (right.sum(axis=-1)[..., None] - right) / (asked - n_languages * sizes)
        low, high = Average(score, without - score[..., None], sizes).interval()
        index = pd.MultiIndex.from_product([range(len(score)), READERS], names=["layer", "task"])
        columns = {"score": score.ravel(), "low": low.ravel(), "high": high.ravel()}
        tables.append(pd.DataFrame(columns, index).reset_index())
    return with_models(names, tables).assign(space=space)


@cached(tolerance=10, documents=True)
def readers(subject: Subject, corpus: ParallelCorpus, space: str) -> dict[str, np.ndarray]:
    """``right``, int32 ``(n_layers, 2, n_documents)``: sentences of all languages, by reader."""
    groups, centred = parallel.documents(corpus), space == "centred"
    codes, right = np.unique(groups, return_inverse=True)[1], []
    for vectors in subject.read(corpus).layers(SPACES["raw" if centred else space]):
        both = identified(vectors, groups, centred=centred)
        right.append([np.bincount(codes, hits.sum(axis=0)) for hits in both])
    return {"right": np.array(right).astype(np.int32)}


# --- models -------------------------------------------------------------------------------------

#: What a measure is called beside LD.
_CALLED = {"LD": "LD", "purity": "neighbours", "nearest": "nearest reader"}
#: What is drawn: the others are at their ends.
DRAWN = {
    "LD": look(VERMILION, "o"),
    "LD, centred": look(VERMILION, "o", ":", hollow=True),
    "neighbours, centred": look(GREEN, "^", ":", hollow=True),
    "nearest reader, centred": look(PURPLE, "D", ":", hollow=True),
}

DRAWN_AS = {
    "neighbours, centred": "nearest sentence is of the same language",
    "nearest reader, centred": "language named by the nearest sentences",
}


def companions(names: Sequence[Name], text: ParallelCorpus, **options: object) -> pd.DataFrame:
    """LD and what sees more than it, by model and layer, raw and centred, with intervals.

    Columns ``model``, ``measure``, ``layer``, ``score``, ``low``, ``high``.
    "neighbours": the share of sentences whose nearest of another position, of two languages, is of
    their own.
    """
    tables = []
    for space in ("raw", "centred"):
        measured = subject_scores(names, text, ["LD", "purity"], space=space, **options)
        tables.append(averaged_scores(measured, by=["layer"]))
        tables.append(language_identification(names, text, space, **options))
    table = pd.concat(tables, ignore_index=True)
    table = table[table["task"] != "linear"].copy()
    centred = table["space"].map({"raw": "", "centred": ", centred"})
    table["measure"] = table["task"].map(_CALLED) + centred
    return table[["model", "measure", "layer", "score", "low", "high"]]


#: Space → tasks in which the distance is another one; and MD, to compare with.
_DISTANCES = {
    "raw": ("MD", "LD by CSLS", "MD by CSLS"),
    "Euclidean": ("LD", "MD"),
    "whitened": ("LD", "MD"),
}


def other_distances(names: Sequence[Name], text: ParallelCorpus, **options: object) -> pd.DataFrame:
    """LD and MD by other distances than the cosine, and MD; columns as of `companions`."""
    tables = []
    for space, tasks in _DISTANCES.items():
        measured = subject_scores(names, text, [*tasks], space=space, **options)
        table = averaged_scores(measured, by=["layer"])
        tables.append(
            table.assign(measure=table["task"] + ("" if space == "raw" else f", {space}"))
        )
    table = pd.concat(tables, ignore_index=True)
    return table[["model", "measure", "layer", "score", "low", "high"]]


@styled
def companion_curves(table: pd.DataFrame, n_languages: int) -> Figure:
    """LD and its companions over layers, one panel per model."""
    on = curves(
        table,
        "layer",
        "score",
        hue="measure",
        col="model",
        looks=DRAWN,
        labels=DRAWN_AS,
        wrap=3,
        height=2.8,
    )
    across(on, y=1 / n_languages, color=PURPLE)
    naming = handle("chance of naming a language", GUESSING | {"color": PURPLE})
    handles = [*with_lines(on), naming]
    figure = on.done(LAYER, "share of comparisons,\nor of sentences", handles=handles)
    return asking("Do sentences show their language where LD does not see it?", figure)


# --- spoiled text -------------------------------------------------------------------------------


def spoiled(
    states: Mapping[str, np.ndarray], corpus: ParallelCorpus, how: str, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray, list[tuple[str, str]]]:
    """The vectors of a spoiled corpus, the positions that are left, the pairs to be scored.

    ``states``: language → ``(n_layers + 1, n, dim)``. Sentences that the shuffle has no place for
    are left out: of a document, where it is its only one.
    """
    moved = moves(corpus, how, seed, [corpus.languages[1::2]])
    vectors = {
        language: np.stack([states[name][:, i] for name, i in zip(*source, strict=True)], axis=1)
        for language, source in moved.items()
    }
    half = set(corpus.languages[1::2])
    pairs = [
        (first, other)
        for first, other in combinations(corpus.languages, 2)
        if how == "labels" or (first in half) != (other in half)
    ]
    return vectors, moved[corpus.languages[0]][1], pairs


@cached(tolerance=5e-4, documents=True)
def shuffled_scores(
    subject: Subject, corpus: ParallelCorpus, shuffle: str, seed: int
) -> pd.DataFrame:
    """LD and MD on a corpus that is spoiled: means over pairs, by layer.

    Columns ``shuffle``, ``task``, ``layer``, ``score``, ``error`` (over documents).
    """
    reading = subject.read(corpus)
    moved, left, pairs = spoiled(reading.states, corpus, shuffle, seed)
    groups = np.array(parallel.documents(corpus))[left]
    exact = abx.exact(moved, pairs=pairs, groups={"documents": groups}, device=reading.device)
    rows = []
    for layer in exact.layers:
        for task in ("LD", "MD"):
            score = float(exact.scores[task][layer].mean())
            without = exact.left_out["documents"][task][layer].mean(axis=0)
            error = float(statistics.left_out_error(score, without, group_sizes(groups)))
            rows.append((shuffle, task, layer, score, error))
    return pd.DataFrame(rows, columns=["shuffle", "task", "layer", "score", "error"])


def shuffled_controls(
    names: Sequence[Name], corpus: ParallelCorpus, *, seed: int, **options: object
) -> pd.DataFrame:
    """`shuffled_scores` of all shuffles, with ``model`` and 95 % intervals over documents.

    ``control``: which score of which shuffle; MD is shown where meanings are shuffled, LD where
    languages are. One row per model, control and layer.
    """
    tables = [
        with_models(names, shuffled_scores(names, corpus, how, seed, **options)) for how in SHUFFLES
    ]
    table = pd.concat(tables, ignore_index=True)
    table = table[(table["task"] == "LD") == (table["shuffle"] == "labels")]
    table = table.assign(control=table["task"] + ", " + table["shuffle"] + " shuffled")
    n_documents = len(set(parallel.documents(corpus)))
    width = statistics.half_width(table["error"], n_documents - 1)
    return table.assign(low=table["score"] - width, high=table["score"] + width)


# --- the checks of the paper ----------------------------------------------------------------------


def short_sentences(corpus: ParallelCorpus, pair: tuple[str, str]) -> ParallelCorpus:
    """The positions in a pair of languages that are short in the first of them."""
    sentences = corpus.sentences[pair[0]]
    long = [i for i, sentence in enumerate(sentences) if not 30 < len(sentence) < 80]
    return corpus.select(pair).drop(long)


def example_triplets(
    names: Sequence[Name], corpus: ParallelCorpus, seed: int, **options: object
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One triplet of each task (Appendix A), of a corpus in two languages.

    Returns its sentences, and by model the distances d(X, A) and d(X, B) at the middle layer and
    the score of Algorithm 3.
    """
    rows, pair = {}, corpus.languages
    for task in ("LD", "MD"):
        triplet = abx.sample_triplets(task, pair, len(corpus), 1, seed)
        for item in "XAB":
            language = pair[getattr(triplet, f"{item.lower()}_language")[0]]
            position = getattr(triplet, item.lower())[0]
            sentence = corpus.sentences[language][position]
            rows[task, item] = {"language": language, "sentence": sentence}
    texts = rows_by(rows, "task", "item")
    distances = with_models(names, example_distances(names, corpus, seed, **options))
    shown = ["task", "model", "d(X, A)", "d(X, B)", "score"]
    return texts, distances[shown].sort_values("task", kind="stable").set_index(shown[:2])


@cached()
def example_distances(subject: Subject, corpus: ParallelCorpus, seed: int) -> pd.DataFrame:
    """``task``, ``d(X, A)``, ``d(X, B)`` and ``score`` of the triplets, at the middle layer."""
    states, rows = subject.read(corpus).states, []
    middle = len(states[corpus.languages[0]]) // 2
    vectors = {code: array[middle] for code, array in states.items()}
    for task in ("LD", "MD"):
        triplet = abx.sample_triplets(task, corpus.languages, len(corpus), 1, seed)
        apart = abx.triplet_distances(vectors, triplet)
        rows.append((task, apart[0][0], apart[1][0], abx.score_triplets(vectors, triplet)[0]))
    return pd.DataFrame(rows, columns=["task", "d(X, A)", "d(X, B)", "score"])


_Pairs = Sequence[tuple[str, str]]


def neighbouring_pairs(languages: Sequence[str], n: int | None = None) -> list[tuple[str, str]]:
    """Pairs in an order that has each language equally often, as far as ``n`` of them allow.

    First each language with the next one, then with the one after that, and so on around.
    """
    pairs = [
        (language, languages[(i + step) % len(languages)])
        for step in range(1, len(languages) // 2 + 1)
        for i, language in enumerate(languages)
    ]
    return pairs[: n or len(pairs)]


def sampling(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    pairs: _Pairs,
    draw: Mapping[str, int],
    **options: object,
) -> pd.DataFrame:
    """The sampled score, in independent runs (`abx.sampled`, with ``draw``), against the exact one.

    Returns one row per condition: ``model``, ``task``, ``layer``, ``language_1``, ``language_2``,
    ``mean`` and ``sd`` over runs, ``exact``, ``expected_sd`` (of a share of so many triplets),
    ``error`` (of the mean).
    """
    values = sampled_runs(names, within(corpus, pairs), pairs, **draw, **options)
    runs = with_models(names, values)
    keys = ["model", "task", "layer", *PAIR]
    spread = runs.groupby(keys, as_index=False)["score"].agg(["mean", "std"])
    measured = subject_scores(names, corpus, **options)
    exact = pair_scores(pd.concat([scores.table() for scores in measured]))
    turned = exact.rename(columns=dict(zip(PAIR, PAIR[::-1], strict=True)))
    both = pd.concat([exact, turned])[[*keys, "score"]]
    spread = spread.merge(both, on=keys).rename(columns={"score": "exact", "std": "sd"})
    spread["expected_sd"] = np.sqrt(spread["exact"] * (1 - spread["exact"]) / draw["n_triplets"])
    return spread.assign(error=(spread["mean"] - spread["exact"]).abs())


def within(corpus: ParallelCorpus, pairs: _Pairs) -> ParallelCorpus:
    """The corpus in the languages of some pairs."""
    inside = {code for pair in pairs for code in pair}
    return corpus.select([code for code in corpus.languages if code in inside])


@cached()  # near ties fall differently where vectors differ in their last digits
def sampled_runs(
    subject: Subject, corpus: ParallelCorpus, pairs: _Pairs, n_triplets: int, n_runs: int, seed: int
) -> pd.DataFrame:
    """`abx.sampled` of the pairs."""
    return abx.sampled(subject.read(corpus).states, pairs, n_triplets, n_runs, seed)


def sample_control(
    task: str,
    languages: Sequence[str],
    n_positions: int,
    n_triplets: int,
    seed: int | np.random.Generator,
) -> abx.Triplets:
    """Triplets in which the variable of interest is the same for A, B and X (section 4.1).

    A score other than one half on them is a bias of the sampling or of the scoring. The paper does
    not say what A and B still differ in; if in nothing, the control cannot fail. So here they
    differ in the variable that is normally held constant, drawn at random:

    * LD: X, A and B in one language (each of `languages` in turn), at three different positions;
    * MD: X, A and B at one position, in three different languages.
    """
    rng, enough = np.random.default_rng(seed), n_positions if task == "LD" else len(languages)
    first = rng.integers(enough, size=n_triplets)
    second = rng.integers(enough - 1, size=n_triplets)
    second += second >= first
    third = rng.integers(enough - 2, size=n_triplets)
    third += third >= np.minimum(first, second)
    third += third >= np.maximum(first, second)
    if task == "LD":
        language = np.arange(n_triplets) % len(languages)
        return abx.Triplets(task, tuple(languages), *[language] * 3, first, second, third)
    position = rng.integers(n_positions, size=n_triplets)
    return abx.Triplets(task, tuple(languages), first, second, third, *[position] * 3)


def control_scores(
    names: Sequence[Name], corpus: ParallelCorpus, *, n_triplets: int, seed: int, **options: object
) -> pd.DataFrame:
    """Scores of tasks in which the variable of interest is held constant: 0.5 is expected.

    Returns one row per model, task and layer: ``model``, ``task``, ``layer``, and the ends of its
    interval, ``low`` and ``high``, which hold together at 95 % (Bonferroni).
    """
    drawn = with_models(names, held_constant(names, corpus, n_triplets, seed, **options))
    level = 1 - (1 - statistics.LEVEL) / len(drawn)
    bounds = [statistics.share_interval(row.won, row.n, level) for row in drawn.itertuples()]
    drawn["low"], drawn["high"] = zip(*bounds, strict=True)
    return drawn[["model", "task", "layer", "low", "high"]]


@cached(tolerance=200)  # of 100,000 triplets
def held_constant(
    subject: Subject, corpus: ParallelCorpus, n_triplets: int, seed: int
) -> pd.DataFrame:
    """``task``, ``layer``, ``won`` (a tie counts one half) of ``n`` triplets."""
    states, rows = subject.read(corpus).states, []
    for task in ("LD", "MD"):
        control = sample_control(task, corpus.languages, len(corpus), n_triplets, seed)
        for layer in range(len(states[corpus.languages[0]])):
            vectors = {code: array[layer] for code, array in states.items()}
            scores = abx.score_triplets(vectors, control)
            rows.append((task, layer, scores.sum(), len(scores)))
    return pd.DataFrame(rows, columns=["task", "layer", "won", "n"])


#: Pairings of MD and retrieval: whether MD, and retrieval, are of the last layer alone; the claim.
PAIRINGS = {
    "both over all layers": (False, False, "abx_t01"),
    "both in the last layer": (True, True, "abx_t02"),
    "MD over all, retrieval in the last": (False, True, "abx_t03"),
}


def retrieval_pairs(
    measured: Sequence[abx.PairScores], embedding_layer: bool = True
) -> pd.DataFrame:
    """``MD`` and ``retrieval`` of every pair of languages, by model and `PAIRINGS`."""
    counted, tables = slice(0 if embedding_layer else 1, None), []
    for state in measured:
        pairs = pd.DataFrame(state.pairs, columns=PAIR).assign(model=state.model)
        for pairing, (*last, _) in PAIRINGS.items():
            md, retrieval = (
                state.scores[task][slice(-1, None) if at_last else counted].mean(axis=(0, 2))
                for task, at_last in zip(("MD", "retrieval"), last, strict=True)
            )
            tables.append(pairs.assign(pairing=pairing, MD=md, retrieval=retrieval))
    return pd.concat(tables, ignore_index=True)


# --- figures ------------------------------------------------------------------------------------

#: MD by its choice of B, or its weights: what it is called.
CHOICES = {
    "MD": "any B",
    "MD, as like length": "any B, each A as often as matched",
    MATCHED: "B as long as A (matched)",
    "MD, near": "B near in subwords",
    BOTH: "B as long as A, and near in subwords",
}


@styled
def choice_curves(table: pd.DataFrame) -> Figure:
    """MD over layers, by what B is chosen from, one panel per model."""
    on = curves(
        table,
        "layer",
        "score",
        hue="task",
        col="model",
        looks={
            "MD": look(BLUE, "s", "--"),
            MATCHED: look(SKY, "D", "-."),
            BOTH: look(BLACK, "v", (0, (1, 1))),
        },
        every=2,
        labels=CHOICES,
        wrap=2,
        width=3.6,
        height=1.9,
    )
    for axes in on.axes.values():
        axes.locator_params("x", integer=True)
    figure = on.done(LAYER, "MD: share of comparisons", handles=with_lines(on))
    question = "Is meaning found where the wrong sentence (B) is most like the right one (A)?"
    return asking(question, figure)


@styled
def retrieval_scatter(table: pd.DataFrame, n_sentences: int) -> Figure:
    """MD against retrieval, one point per pair of languages, one panel per pairing of layers.

    ``table`` as of `retrieval_pairs`; by chance one translation of ``n_sentences`` is found.
    """
    on = scatter(
        table, "MD", "retrieval", hue="model", col="pairing", size=8, alpha=0.5, width=8, height=2.7
    )
    across(on, x=0.5, y=1 / n_sentences)
    x = "MD of one pair of languages: share of triplets (one point per pair)"
    y = f"retrieval: share of sentences that find\ntheir translation (chance: 1 in {n_sentences})"
    return asking("Does MD say what retrieval says?", on.done(x, y, handles=[chance_line()]))
