"""Alignment over layers (Figure 3 of the MEXA paper), every pivot, and fewer sentences."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from shared.mexa_figures import line
from xlx.experiment.mexa_scores import Coverage
from xlx.experiment.scoring import Subject, kept, subject_scores
from xlx.measures import mexa, statistics
from xlx.plots.panels import order
from xlx.plots.primitives import Cells, Curves, curves, heatmap
from xlx.plots.style import handle, looks, styled
from xlx.subjects.identity import Name, identify, series_name
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus


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
def layer_scores(table: pd.DataFrame, bags: pd.DataFrame, groups_of: Mapping[str, str]) -> Figure:
    """Mean score of groups of languages by layer, one panel per model (Figure 3).

    ``table`` has ``model``, ``states``, ``language``, ``layer`` and ``mu``: a colour and a marker
    for each group, a dash for each way to take the states. ``bags`` (``model``, ``language``,
    ``mu``) are drawn across, dotted.
    """
    table, bags = (x.assign(group=x["language"].map(groups_of)) for x in (table, bags))
    keys = ["model", "states", "group", "layer"]
    table = table.groupby(keys, sort=False)["mu"].mean().reset_index()
    bags = bags.groupby(["model", "group"], sort=False)["mu"].mean().reset_index()
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
    for axes, rows in on.each(bags):
        for row in rows.itertuples():
            axes.axhline(row.mu, color=groups[row.group]["color"], linewidth=1, linestyle=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_ylim(bottom=0)
    handles = [handle(group, shown) for group, shown in groups.items()]
    handles += [line(*both) for both in (dashes | {"bag of subwords": ":"}).items()]
    return on.done("layer (0: embeddings)", "MEXA score μ (share of hits)", handles=handles)


# --- the highest layer ----------------------------------------------------------------------------


def highest_scores(by_special: Mapping[bool, Sequence[Coverage]]) -> pd.DataFrame:
    """Each language at its highest layer, with ``special tokens``: whether these were counted."""
    tables = [
        one.named(one.scores.pooled("max")).assign(**{"special tokens": special})
        for special, covered in by_special.items()
        for one in covered
    ]
    return pd.concat(tables, ignore_index=True)


def means_table(
    highest: pd.DataFrame, above: pd.DataFrame, families: Mapping[str, str]
) -> pd.DataFrame:
    """Mean of the highest layers with an interval over families; languages above each control."""
    keys, rows = ["model", "pooling", "special tokens", "states"], {}
    for key, part in highest.groupby(keys, sort=False):
        mu = part.set_index("language")["mu"]
        mean, low, high = np.clip(statistics.mean_interval(mu, mu.index.map(families)), 0, 1)
        rows[key] = {"mean of highest": f"{mean:.2f} ({low:.2f} to {high:.2f})"}
    for row in above.itertuples():
        said = f"{row.above} of {row.of} ({row[7]})"
        rows[row.model, row.pooling, row[3], row.states][f"above {row.control} (beyond)"] = said
    return pd.DataFrame(rows.values(), pd.MultiIndex.from_tuples(rows, names=keys)).fillna("")


# --- every language as the pivot ------------------------------------------------------------------


def pivot_scores(
    models: Mapping[Name, str],
    corpus: ParallelCorpus,
    pivot: str,
    families: Mapping[str, str],
    spaces: Sequence[str] = ("raw", "centred"),
) -> pd.DataFrame:
    """Is ``pivot`` the one that all others are aligned with best? One row per model and space.

    ``models``: name → pooling. At the layer with the highest mean of all pairs: ``pivot`` and
    ``best other``, the mean score of the others with it; ``rank`` of the pivot; ``lead`` over the
    best other, with the interval over families.
    """
    rows = []
    for (name, pooling), space in product(models.items(), spaces):
        options = {"space": space, "pooling": pooling, "max_length": None}
        (scores,) = subject_scores([name], corpus, ["MEXA"], **options)
        pairs = scores.table().groupby(["layer", "language_1", "language_2"])["score"].mean()
        layer = pairs.groupby("layer").mean().idxmax()
        square = pairs[layer].unstack().reindex(index=corpus.languages, columns=corpus.languages)
        square = square.fillna(square.T)
        means = square.mean().sort_values(ascending=False)
        other = means.drop(pivot).index[0]
        lead = (square[pivot] - square[other]).drop([pivot, other])
        rows.append(
            (
                scores.model,
                space,
                layer,
                means[pivot],
                other,
                means[other],
                [*means.index].index(pivot) + 1,
                *statistics.mean_interval(lead, lead.index.map(families)),
            )
        )
    columns = ["model", "states", "layer", "pivot", "best other", "its mean", "rank", "lead", "low"]
    return pd.DataFrame(rows, columns=[*columns, "high"])


# --- fewer sentences ------------------------------------------------------------------------------


@kept(tolerance=0.02)
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
    of_sizes = (np.array(of) for of in zip(*rows, strict=True))
    return {"layer": np.array([layer])} | dict(zip(names, of_sizes, strict=True))


@kept(tolerance=0.02)
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
        columns = {k: of.ravel() for k, of in value.items() if k != "layer"}
        about = {"model": series_name(identify(name)), "text": title, "N": len(text)}
        tables.append(pd.DataFrame(columns, index).reset_index().assign(**about))
    return pd.concat(tables, ignore_index=True)
