"""Alignment over layers (Figure 3 of the MEXA paper), every pivot, and fewer sentences."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mexa_3_surface import bag_score, bag_vectors
from shared import mexa_tables
from shared.mexa_figures import line
from xlx.experiment.mexa_scores import Coverage
from xlx.experiment.scoring import Subject, cached, subject_scores
from xlx.measures import mexa, statistics
from xlx.plots.panels import order
from xlx.plots.primitives import Cells, Curves, curves, heatmap
from xlx.plots.style import handle, looks, styled
from xlx.subjects.identity import Name, identify, series_name
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: The bag of mexa-3 that finds most translations, the floor of every score of this lens.
LETTERS = "4 characters, idf"


@styled
def language_layers(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Score of each language by layer, one panel per way to read a model (Figure 3).

    ``table`` has ``language``, ``layer``, ``mu`` and ``panel``; rows are those of ``names``.
    """
    style = Cells(
        rows=[*names],
        names=names.get,
        norm=Normalize(0, 1),
        cell=(0.15, 0.2),
        edge=(1.4, 1.2),
        wrap=2,
        bar="MEXA score μ (share of hits)",
    )
    on = heatmap(table, "layer", "language", "mu", col="panel", style=style)
    return on.done("layer (0: embeddings)")


@styled
def layer_scores(table: pd.DataFrame, floor: pd.Series, groups_of: Mapping[str, str]) -> Figure:
    """Mean score of groups of languages by layer, one panel per model (Figure 3).

    ``table`` has ``model``, ``states``, ``language``, ``layer`` and ``mu``: a colour and a marker
    for each group, a dash for each way to take the states. ``floor``, by language, is drawn across,
    dotted: the score of the bag of letters.
    """
    table = table.assign(group=table["language"].map(groups_of))
    keys = ["model", "states", "group", "layer"]
    table = table.groupby(keys, sort=False)["mu"].mean().reset_index()
    groups = looks(sorted(order(table, "group")), {})
    dashes = dict(zip(order(table, "states"), ("-", "--"), strict=False))
    table = table.assign(series=list(zip(table["group"], table["states"], strict=True)))
    styles = {
        (group, way): shown | {"linestyle": dash, "markersize": 3}
        for group, shown in groups.items()
        for way, dash in dashes.items()
    }
    labels = {key: f"_{key}" for key in styles}
    style = Curves(looks=styles, labels=labels, wrap=2, width=3.2, height=1.9)
    on = curves(table, "layer", "mu", hue="series", col="model", style=style)
    for axes in on.axes.values():
        for group, mu in floor.groupby(groups_of).mean().items():
            axes.axhline(mu, color=groups[group]["color"], linewidth=1, linestyle=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_ylim(bottom=0)
    handles = [handle(group, shown) for group, shown in groups.items()]
    handles += [line(*both) for both in (dashes | {"bag of letters": ":"}).items()]
    return on.done("layer (0: embeddings)", "MEXA score μ (share of hits)", handles=handles)


# --- the highest layer, beside what knows no language ---------------------------------------------


def letter_scores(bags: Mapping[str, Any], pivot: str) -> pd.Series:
    """μ of each other language with ``pivot``, of the vectors of `mexa_3_surface.bag_vectors`."""
    return pd.Series({x: bag_score(y, bags[pivot]) for x, y in bags.items() if x != pivot})


def highest_scores(covered: Sequence[Coverage], special_tokens: bool) -> pd.DataFrame:
    """Each language at its highest layer; ``special tokens``: whether these were counted."""
    return mexa_tables.pooled_table(covered, ["max"]).assign(**{"special tokens": special_tokens})


def means_table(
    highest: pd.DataFrame, controls: pd.DataFrame, letters: pd.Series, families: Mapping[str, str]
) -> pd.DataFrame:
    """Mean of the highest layers beside controls, one row per way to read a model.

    ``controls``: `mexa_tables.control_scores`; ``letters``: `letter_scores`. ``mean`` and ``less
    letters``, the difference over the same languages, have intervals over families; ``above ...``:
    in how many languages the score is higher.
    """
    keys, joint = ["model", "pooling", "special tokens", "states"], ["reader", "states", "language"]
    controls = controls.rename(columns={"model": "reader"}).pivot(
        index=joint, columns="control", values="mu"
    )
    table = highest.assign(reader=highest["model"].str.removesuffix(mexa_tables.UNTRAINED))
    table = table.join(controls, on=joint).assign(
        letters=highest["language"].map(letters), family=highest["language"].map(families)
    )
    rows = {}
    for key, part in table.groupby(keys, sort=False):
        mean = np.clip(statistics.mean_interval(part["mu"], part["family"]), 0, 1)
        less = statistics.mean_interval(part["mu"] - part["letters"], part["family"])
        rows[key] = {
            name: f"{value:.2f} ({low:.2f} to {high:.2f})"
            for name, (value, low, high) in (("mean", mean), ("less letters", less))
        }
        for control in ("letters", *controls):
            rows[key][f"above {control}"] = (part["mu"] > part[control]).sum()
    return pd.DataFrame(rows.values(), pd.MultiIndex.from_tuples(rows, names=keys))


# --- every language as the pivot ------------------------------------------------------------------


def pivot_squares(
    models: Mapping[Name, str],
    corpus: ParallelCorpus,
    spaces: Sequence[str] = ("raw", "centred"),
) -> dict[tuple[str, str], pd.DataFrame]:
    """μ of each language with each pivot, by model (name → pooling) and space.

    It is that of the layer with the highest mean of all pairs; "bag of letters": with idf over the
    languages of the corpus.
    """
    bags, squares = bag_vectors(corpus, LETTERS), {}
    for (name, pooling), space in product(models.items(), spaces):
        options = {"space": space, "pooling": pooling, "max_length": None}
        (scores,) = subject_scores([name], corpus, ["MEXA"], **options)
        pairs = scores.table().groupby(["layer", "language_1", "language_2"])["score"].mean()
        square = pairs[pairs.groupby("layer").mean().idxmax()].unstack()
        square = square.reindex(index=corpus.languages, columns=corpus.languages)
        squares[scores.model, space] = square.fillna(square.T)
    letters = pd.DataFrame({code: letter_scores(bags, code) for code in bags})
    return squares | {("bag of letters", "raw"): letters}


def pivot_ranks(
    squares: Mapping[tuple[str, str], pd.DataFrame], pivot: str, families: Mapping[str, str]
) -> pd.DataFrame:
    """Is ``pivot`` the language that all others are aligned with best? One row per square.

    ``rank`` and ``mean`` of the others' scores with it; ``best other``; ``lead`` over that, with
    the interval over families, of the languages that are neither.
    """
    rows = {}
    for key, square in squares.items():
        means = square.mean().sort_values(ascending=False)
        other = means.drop(pivot).index[0]
        lead = (square[pivot] - square[other]).drop([pivot, other])
        value, low, high = statistics.mean_interval(lead, lead.index.map(families))
        rank = means.index.get_loc(pivot) + 1
        rows[key] = means[pivot], rank, other, f"{value:+.2f} ({low:+.2f} to {high:+.2f})"
    names = pd.MultiIndex.from_tuples(rows, names=["model", "states"])
    return pd.DataFrame(rows.values(), names, ["mean", "rank", "best other", "lead"])


# --- fewer sentences ------------------------------------------------------------------------------


@cached(tolerance=0.02)
def subset_scores(
    subject: Subject,
    corpus: ParallelCorpus,
    pivot: str,
    sizes: Sequence[int],
    n_draws: int,
    seed: int,
) -> dict[str, np.ndarray]:
    """MEXA of n of the N sentences of a text, at the layer with most hits of all N: ``layer``.

    Each ``(n_sizes, n_languages)``. ``exact``: the mean of all ways to choose n (`mexa.spared`),
    ``error``: its standard error, by leaving out each sentence; ``first``: of the first n. Over
    `n_draws` random choices ``drawn``: the mean, ``drawn error``: its standard error, ``below``:
    the share with less than the first n, and half of those with as much.
    """
    (layer, beaten), n_all = _most_hits(subject.read(corpus).states, pivot), len(corpus)
    rng, rivals, rows = np.random.default_rng(seed), beaten.sum(axis=2), []
    for n in sizes:
        less = min(n, n_all - 1)
        without, fewer = (mexa.spared(u, n_all - 1, less) for u in (rivals, rivals - 1))
        left = without.sum(axis=1, keepdims=True) - without
        left = (left + ((fewer - without)[:, None] @ beaten)[:, 0]) / (n_all - 1)
        error = left.std(axis=1) * np.sqrt(n_all - 1)
        first = 1 - beaten[:, :n, :n].any(axis=2).mean(axis=1)
        draws = (rng.permutation(n_all)[:n] for _ in range(n_draws))
        mu = np.array([1 - beaten[:, x[:, None], x].any(axis=2).mean(axis=1) for x in draws])
        below = (mu < first).mean(axis=0) + (mu == first).mean(axis=0) / 2
        exact = mexa.spared(rivals, n_all, n).mean(axis=1)
        rows.append((exact, error, first, mu.mean(0), mu.std(0) / np.sqrt(n_draws), below))
    names = ("exact", "error", "first", "drawn", "drawn error", "below")
    of_sizes = (np.array(x) for x in zip(*rows, strict=True))
    return {"layer": np.array([layer])} | dict(zip(names, of_sizes, strict=True))


@cached(tolerance=0.02)
def blocks_and_draws(
    subject: Subject, corpus: ParallelCorpus, pivot: str, size: int, n_draws: int, seed: int
) -> dict[str, np.ndarray]:
    """MEXA of sentences that stand together and of random ones, mean over languages, at that layer.

    ``blocks``, ``(n_blocks,)``: of the first ``size`` sentences, of the next, and so on;
    ``spread``: the standard deviation of ``n_draws`` random choices of as many.
    """
    _, beaten = _most_hits(subject.read(corpus).states, pivot)
    n, rng = len(corpus), np.random.default_rng(seed)
    blocks = [np.arange(k, k + size) for k in range(0, n - size + 1, size)]
    draws = [rng.permutation(n)[:size] for _ in range(n_draws)]
    mu = np.array([1 - beaten[:, x[:, None], x].any(axis=2).mean() for x in [*blocks, *draws]])
    return {"blocks": mu[: len(blocks)], "spread": mu[len(blocks) :].std(ddof=1, keepdims=True)}


def _most_hits(states: Mapping[str, np.ndarray], pivot: str) -> tuple[int, np.ndarray]:
    """The layer where most sentences are hits, and `_either` of each other language there."""
    by_layer = [
        np.stack([_either(x[layer], vectors) for code, x in states.items() if code != pivot])
        for layer, vectors in enumerate(states[pivot])
    ]
    layer = int(np.argmin([beaten.any(axis=2).mean() for beaten in by_layer]))
    return layer, by_layer[layer]


def _either(vectors: np.ndarray, pivot_vectors: np.ndarray) -> np.ndarray:
    """Whether sentence j keeps i from being a hit: bool ``(n, n)``."""
    return np.logical_or(*mexa.rivals(vectors, pivot_vectors))


def size_texts(
    languages: Sequence[str], n: int, n_verses: int, seed: int
) -> dict[str, ParallelCorpus]:
    """The first n sentences of FLORES-200 devtest, verses, all of WMT24++, all of the devtest."""
    verses, wmt = (
        parallel.load(name, drop_duplicates=True).select(languages)
        for name in ("new-testament", "wmt24pp")
    )
    whole = parallel.load("flores200-devtest", languages)
    few, verses = whole.drop(range(n, len(whole))), verses.take(n_verses, seed)
    titles = ("FLORES-200", few), ("New Testament", verses), ("WMT24++", wmt), ("FLORES-200", whole)
    return {f"{title}, {len(text)}": text for title, text in titles}


def sizes_table(
    models: Mapping[Name, str],
    texts: Mapping[str, ParallelCorpus],
    pivot: str,
    sizes: Sequence[int],
    n_draws: int,
    seed: int = 0,
) -> pd.DataFrame:
    """`subset_scores` of models (name → pooling) on texts: one row per language, size and text."""
    tables = []
    for (name, pooling), (title, text) in product(models.items(), texts.items()):
        some = [n for n in sizes if n <= len(text)]
        options = {"pooling": pooling, "max_length": None}
        (value,) = subset_scores([name], text, pivot, some, n_draws, seed, **options)
        codes = [code for code in text.languages if code != pivot]
        index = pd.MultiIndex.from_product([some, codes], names=["n", "language"])
        columns = {k: x.ravel() for k, x in value.items() if k != "layer"}
        about = {"model": series_name(identify(name)), "text": title, "N": len(text)}
        tables.append(pd.DataFrame(columns, index).reset_index().assign(**about))
    return pd.concat(tables, ignore_index=True)
