"""Controls that can fail: scores where what they should measure has been taken away.

The control of the paper holds the variable of interest constant, and is at one half for any
vectors: A and B can change places. Here the corpus is spoiled instead, and everything else stays:

=================  ================================================================================
``translations``   half of the languages have their sentences in another order: no A is a
                   translation. MD must be at one half.
``documents``      the same within documents: A is another sentence of the document. What MD keeps
                   is what documents give away: topic, names, style.
``lengths``        in half of the languages each sentence changes places with the one next in
                   length: A is not the translation, but about as long. What MD keeps is what length
                   gives away.
``labels``         at every position the languages change names. LD must be at one half.
=================  ================================================================================

Where half of the languages are moved, the pairs of a moved one and another are scored.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from xlx.experiment import abx_scores
from xlx.experiment.abx_scores import (
    CheckpointScores,
    checkpoint_scores,
    group_sizes,
    label_runs,
    values_of,
)
from xlx.experiment.averages import average
from xlx.measures import abx, statistics
from xlx.plots.panels import number, order, panels
from xlx.plots.style import HALO, NAMES, SMALL, TINY, handle, looks, styled
from xlx.results import checks, work
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import Name
from xlx.subjects.states import embed_corpus
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: Language → the language and the position that each of its positions is taken from, ``(n,)`` each.
Moved = dict[str, tuple[np.ndarray, np.ndarray]]


def _translations(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    order = _cycled(len(corpus), [np.arange(len(corpus))], rng)
    return _half_moved(corpus, np.arange(len(corpus)), lambda _: order)


def _documents(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    documents = np.array(parallel.documents(corpus))
    groups = [np.flatnonzero(documents == name) for name in np.unique(documents)]
    groups = [own for own in groups if len(own) > 1]  # one sentence alone has no other
    if not groups:
        raise ValueError(f"{corpus.name}: no document has two sentences to change places")
    order = _cycled(len(corpus), groups, rng)
    return _half_moved(corpus, np.sort(np.concatenate(groups)), lambda _: order)


def _lengths(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    def order(language: str) -> np.ndarray:
        counts = [*map(len, corpus.sentences[language])]
        ranked = np.lexsort((rng.random(len(corpus)), counts))
        pairs = [ranked[i : i + 2] for i in range(0, len(ranked) - 1, 2)]
        return _cycled(len(corpus), pairs, rng)  # of an odd number, the longest stays

    return _half_moved(corpus, np.arange(len(corpus)), order)


def _cycled(n: int, groups: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Where each of n positions is taken from: in a group, from the next in a random circle."""
    order = np.arange(n)
    for group in groups:
        circle = rng.permutation(group)
        order[circle] = np.roll(circle, 1)
    return order


def _moved_languages(corpus: ParallelCorpus) -> set[str]:
    """Every second one."""
    return set(corpus.languages[1::2])


def _half_moved(
    corpus: ParallelCorpus, kept: np.ndarray, order: Callable[[str], np.ndarray]
) -> Moved:
    """`_moved_languages` in another order, of the positions that are kept."""
    moved = _moved_languages(corpus)
    return {
        language: (
            np.full(len(kept), language),
            order(language)[kept] if language in moved else kept,
        )
        for language in corpus.languages
    }


def _labels(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    n, own = len(corpus), np.arange(len(corpus))
    names = rng.permuted(np.tile(corpus.languages, (n, 1)), axis=1)
    return {language: (names[:, i], own) for i, language in enumerate(corpus.languages)}


#: By name, how a corpus is spoiled.
SHUFFLES: dict[str, Callable[[ParallelCorpus, np.random.Generator], Moved]] = {
    "translations": _translations, "documents": _documents, "lengths": _lengths, "labels": _labels,
}  # fmt: skip


def spoiled(
    states: Mapping[str, np.ndarray], corpus: ParallelCorpus, how: str, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray, list[tuple[str, str]]]:
    """The vectors of a spoiled corpus, the positions that are left, the pairs to be scored.

    ``states``: language → ``(n_layers + 1, n, dim)``. Sentences that the shuffle has no place for
    are left out: of a document, where it is its only one.
    """
    checks.one_of(how, SHUFFLES, "shuffle")
    moved = SHUFFLES[how](corpus, np.random.default_rng(seed))
    vectors = {
        language: np.stack([states[name][:, i] for name, i in zip(*source, strict=True)], axis=1)
        for language, source in moved.items()
    }
    half = _moved_languages(corpus)
    pairs = [
        (one, other)
        for one, other in combinations(corpus.languages, 2)
        if how == "labels" or (one in half) != (other in half)
    ]
    return vectors, moved[corpus.languages[0]][1], pairs


def shuffled_scores(
    names: Sequence[Name], corpus: ParallelCorpus, how: str, *, seed: int, **options: object
) -> pd.DataFrame:
    """LD and MD of models on a corpus that is spoiled: means over pairs, by layer.

    Columns ``model``, ``shuffle``, ``task``, ``layer``, ``score``, ``error`` (over documents).
    Options and errors as `checkpoint_scores.checkpoint_scores`.
    """
    checks.one_of(how, SHUFFLES, "shuffle")
    documents = parallel.documents(corpus)
    about = {"shuffle": how, "seed": seed, "documents": label_runs(documents)}
    values = values_of(SHUFFLED, names, corpus, options, how, seed, about=about, what="ABX")
    tables = {
        identity.series_name(identity.identify(name)): value
        for name, value in zip(names, values, strict=True)
    }
    return pd.concat(tables, names=["model"]).reset_index("model").reset_index(drop=True)


def _shuffled(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], how: str, seed: int
) -> pd.DataFrame:
    encoder = loading.load(name)
    states = embed_corpus(encoder, corpus, **options).states
    moved, kept, pairs = spoiled(states, corpus, how, seed)
    groups = np.array(parallel.documents(corpus))[kept]
    sizes = group_sizes(groups)
    rows = []
    for layer in range(encoder.n_layers + 1):
        vectors = {code: array[layer] for code, array in moved.items()}
        exact = abx.exact(vectors, pairs=pairs, groups={"documents": groups}, device=encoder.device)
        for task in ("LD", "MD"):
            score = float(exact.scores[task].mean())
            without = exact.left_out["documents"][task][0].mean(axis=0)
            error = float(statistics.left_out_error(score, without, sizes))
            rows.append((how, task, layer, score, error))
    return pd.DataFrame(rows, columns=["shuffle", "task", "layer", "score", "error"])


SHUFFLED = work.Kind("abx-shuffled", _shuffled, version=1, tolerance=5e-4)
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
    *,
    n_triplets: int,
    n_runs: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """The sampled score, in independent runs (`abx.sampled`), against the exact one.

    Returns one row a condition: ``model``, ``task``, ``layer``, ``language_1``, ``language_2``,
    ``mean`` and ``sd`` over runs, ``exact``, ``expected_sd`` (of a share of so many triplets),
    ``error`` (of the mean).
    """
    draw = {"n_triplets": n_triplets, "n_runs": n_runs, "seed": seed}
    runs = _of_models(SAMPLED, names, corpus, pairs, options, draw)
    keys = ["model", "task", "layer", "language_1", "language_2"]
    spread = runs.groupby(keys, as_index=False)["score"].agg(["mean", "std"])
    measured = checkpoint_scores(names, corpus, **options)
    exact = abx.pair_scores(pd.concat([of.table() for of in measured]))
    turned = exact.rename(columns={"language_1": "language_2", "language_2": "language_1"})
    both = pd.concat([exact, turned])[[*keys, "score"]]
    spread = spread.merge(both, on=keys).rename(columns={"score": "exact", "std": "sd"})
    spread["expected_sd"] = np.sqrt(spread["exact"] * (1 - spread["exact"]) / n_triplets)
    spread["error"] = (spread["mean"] - spread["exact"]).abs()
    return spread


def errors(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    pairs: _Pairs,
    *,
    n_resamples: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """The standard error of single pairs at the last layer, by what else could have been drawn.

    Returns one row a model, pair and task: ``model``, ``language_1``, ``language_2``, ``task``,
    ``score``, ``jackknife`` and ``bootstrap`` (over sentences), ``documents`` (a jackknife).
    """
    draw = {"n_resamples": n_resamples, "seed": seed}
    return _of_models(ERRORS, names, corpus, pairs, options, draw)


def grouped_errors(
    measured: Sequence[CheckpointScores], tasks: Sequence[str], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """How sure a mean over layers and pairs is if sentences, or whole documents, were others.

    One row a model, checkpoint and task: ``score``, ``sentences`` and ``documents`` (standard
    errors), ``ratio`` of the second to the first.
    """
    rows = []
    for of in measured:
        for task in tasks:
            means = {
                over: average(of, task, over=over, embedding_layer=embedding_layer)
                for over in ("sentences", "documents")
            }
            errors_over = {over: float(mean.error) for over, mean in means.items()}
            head = {"model": of.model, "checkpoint": of.step, "task": task}
            rows.append(head | {"score": float(means["documents"].score)} | errors_over)
    table = pd.DataFrame(rows)
    return table.assign(ratio=table["documents"] / table["sentences"])


def shuffled_controls(
    names: Sequence[Name], corpus: ParallelCorpus, *, seed: int, **options: object
) -> pd.DataFrame:
    """`shuffles.shuffled_scores` of all shuffles, with 95 % intervals over documents.

    ``control``: which score of which shuffle; MD is shown where meanings are shuffled, LD where
    languages are. A row a model, control and layer.
    """
    tables = []
    for how in SHUFFLES:
        task = "LD" if how == "labels" else "MD"
        table = shuffled_scores(names, corpus, how, seed=seed, **options)
        tables.append(table[table["task"] == task].assign(control=f"{task}, {how} shuffled"))
    table = pd.concat(tables, ignore_index=True)
    n_documents = len(set(parallel.documents(corpus)))
    width = stats.t.ppf((1 + statistics.LEVEL) / 2, n_documents - 1) * table["error"]
    return table.assign(low=table["score"] - width, high=table["score"] + width)


def control_scores(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    *,
    n_triplets: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """Scores of tasks in which the variable of interest is held constant: 0.5 is expected.

    Returns one row a model, task and layer: ``model``, ``task``, ``layer``, ``score``, ``low``,
    ``high``, of intervals that hold together at 95 % (Bonferroni).
    """
    draw = {"n_triplets": n_triplets, "seed": seed}
    drawn = _of_models(CONTROLS, names, corpus, None, options, draw)
    level = 1 - (1 - statistics.LEVEL) / len(drawn)
    bounds = [statistics.share_interval(row.won, row.n, level) for row in drawn.itertuples()]
    drawn["low"], drawn["high"] = zip(*bounds, strict=True)
    drawn["score"] = drawn["won"] / drawn["n"]
    return drawn[["model", "task", "layer", "score", "low", "high"]]


def _of_models(
    kind: work.Kind,
    names: Sequence[Name],
    corpus: ParallelCorpus,
    pairs: _Pairs | None,
    options: Mapping[str, object],
    draw: Mapping[str, int],
) -> pd.DataFrame:
    """A kind's tables of several models, with ``model`` in front, on the languages of the pairs."""
    about: dict[str, object] = dict(draw)
    if kind is ERRORS:
        about["documents"] = label_runs(parallel.documents(corpus))
    rest: tuple = (draw,)
    if pairs is not None:
        inside = {code for pair in pairs for code in pair}
        corpus = corpus.select([code for code in corpus.languages if code in inside])
        about["pairs"] = [list(pair) for pair in pairs]
        rest = pairs, draw
    values = abx_scores.values_of(kind, names, corpus, options, *rest, about=about)
    tables = [
        table.assign(model=identity.series_name(identity.identify(name)))
        for table, name in zip(values, names, strict=True)
    ]
    whole = pd.concat(tables, ignore_index=True)
    return whole[["model", *whole.columns.drop("model")]]


def _states(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    return states.embed_corpus(loading.load(name), corpus, **options).states


def _sampled(
    name: Name,
    corpus: ParallelCorpus,
    options: Mapping[str, object],
    pairs: _Pairs,
    draw: Mapping[str, int],
) -> pd.DataFrame:
    return abx.sampled(_states(name, corpus, options), pairs, **draw)


def _errors(
    name: Name,
    corpus: ParallelCorpus,
    options: Mapping[str, object],
    pairs: _Pairs,
    draw: Mapping[str, int],
) -> pd.DataFrame:
    states = {code: states[-1] for code, states in _states(name, corpus, options).items()}
    documents = parallel.documents(corpus)
    groups, sizes = {"documents": documents}, group_sizes(documents)
    exact = abx.exact(states, pairs=pairs, influence=True, groups=groups)
    rows = []
    for column, pair in enumerate(exact.pairs):
        for task in ("LD", "MD"):
            kernel = abx.kernel(states, pair, task)
            resampled = statistics.bootstrap_kernel(kernel, **draw)
            score = exact.scores[task][0, column].mean()
            error = float(statistics.jackknife_error(exact.influence[task][0, column]))
            without = exact.left_out["documents"][task][0, column]
            by_document = float(statistics.left_out_error(score, without, sizes))
            rows.append((*pair, task, score, error, resampled.std(), by_document))
    columns = ["language_1", "language_2", "task", "score", "jackknife", "bootstrap", "documents"]
    return pd.DataFrame(rows, columns=columns)


def _controls(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], draw: Mapping[str, int]
) -> pd.DataFrame:
    """``task``, ``layer``, ``won`` (a tie counts one half) of ``n`` triplets."""
    states = _states(name, corpus, options)
    rows = []
    for task in ("LD", "MD"):
        control = abx.sample_control(task, corpus.languages, len(corpus), **draw)
        for layer in range(len(states[corpus.languages[0]])):
            vectors = {code: array[layer] for code, array in states.items()}
            scores = abx.score_triplets(vectors, control)
            rows.append((task, layer, scores.sum(), len(scores)))
    return pd.DataFrame(rows, columns=["task", "layer", "won", "n"])


def _apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """As `work.largest_difference`, of shares of triplets."""
    shares = [table.assign(won=table["won"] / table["n"]) for table in (stored, computed)]
    return work.largest_difference(*shares)


#: Near ties fall differently where vectors differ in their last digits.
SAMPLED = work.Kind("abx-sampled", _sampled, version=1, tolerance=1e-3)
ERRORS = work.Kind("abx-errors", _errors, version=2, tolerance=1e-3)
CONTROLS = work.Kind("abx-controls", _controls, version=1, tolerance=2e-3, difference=_apart)
#: What X and A share, which is what a task asks for, and what A and B share, which cannot help.
_SHARED = {"LD": ("language", "meaning"), "MD": ("meaning", "language")}
#: Half the angle at X between A and B, in degrees.
_HALF_ANGLE = 33


@styled
def triplet_drawings(sentences: pd.DataFrame, distances: pd.DataFrame, model: str) -> Figure:
    """A triplet of each task: X, A and B with their sentences, distances to scale.

    ``sentences`` and ``distances`` as `experiments.example_triplets` returns them: by task and item
    ``language`` and ``sentence``; by task and model ``d(X, A)``, ``d(X, B)`` and ``score``.
    """
    table = sentences.reset_index()
    shown = looks(order(table, "language"), {})
    on = panels(table, "task", columns=2, width=4.25, height=2.9, edge=(0.1, 0.4))
    for axes, rows in on.each(table):
        task = rows["task"].iloc[0]
        of_task = distances.loc[task, model]
        places = _places(of_task["d(X, A)"], of_task["d(X, B)"])
        _edges(axes, places, of_task, _SHARED[task])
        for row in rows.itertuples():
            _item(axes, row, places[row.item], shown[row.language])
        axes.set(xlim=(-0.62, 1.62), ylim=(-1.02, 0.95))
        axes.set_axis_off()
    on.titles(lambda task: f"{NAMES[task]}: score {distances.loc[(task, model), 'score']:g}")
    told = [handle(code, own | {"linestyle": "none"}, line=True) for code, own in shown.items()]
    return on.done(handles=told)


def _places(to_a: float, to_b: float) -> dict[str, np.ndarray]:
    """X at the origin, A above and B below to its right; the longer distance is 1."""
    angle, longest = np.deg2rad(_HALF_ANGLE), max(to_a, to_b)
    towards = np.array([np.cos(angle), np.sin(angle)])
    return {
        "X": np.zeros(2),
        "A": to_a / longest * towards,
        "B": to_b / longest * towards * [1, -1],
    }


def _edges(
    axes: Axes, places: dict[str, np.ndarray], distances: pd.Series, shared: tuple[str, str]
) -> None:
    """Lines between the items: how far they are, and what they share."""
    asked, held = shared
    for ends, dash, text in (
        ("XA", "-", f"same {asked}\n{number(distances['d(X, A)'], 3)}"),
        ("XB", "--", number(distances["d(X, B)"], 3)),
        ("AB", ":", f"same {held}"),
    ):
        line = np.array([places[name] for name in ends])
        axes.plot(*line.T, color="0.5", linestyle=dash, linewidth=1.2, zorder=1)
        axes.text(*line.mean(axis=0), text, ha="center", va="center", fontsize=SMALL,
                  path_effects=HALO)  # fmt: skip


def _item(axes: Axes, row: object, place: np.ndarray, look: dict) -> None:
    """An item with its sentence, away from the lines."""
    axes.plot(*place, **look | {"linestyle": "none"}, markersize=9, zorder=2)
    lines = "\n".join(textwrap.wrap(row.sentence, 34 if row.item != "X" else 22)[:4])
    above = {"A": 1, "B": -1, "X": -1}[row.item]
    axes.annotate(
        f"{row.item}\n{lines}" if above < 0 else f"{lines}\n{row.item}", place,
        xytext=(0, 9 * above), textcoords="offset points", ha="center",
        va="bottom" if above > 0 else "top", fontsize=TINY, linespacing=1.25,
    )  # fmt: skip
