"""Alignment over layers (Figure 3 of the MEXA paper) and sentences in a plane, by t-SNE (4)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from shared.mexa_figures import line
from xlx.experiment.mexa_scores import MEXA_POOLINGS
from xlx.experiment.scoring import Subject, kept
from xlx.measures import mexa
from xlx.plots.panels import order, parts
from xlx.plots.primitives import curves, scatter
from xlx.plots.style import HALO, SMALL, handle, look, looks, styled
from xlx.results import ledger
from xlx.subjects.identity import Name
from xlx.text.parallel import ParallelCorpus


@styled
def layer_scores(table: pd.DataFrame, bags: pd.DataFrame) -> Figure:
    """Mean score of groups of languages by layer, a panel a model (Figure 3).

    ``table`` has ``model``, ``states``, ``group``, ``layer`` and ``mu``: a colour and a marker for
    each group, a dash for each way to take the states (at most 3). ``bags`` (``model``, ``group``,
    ``mu``) are drawn across, dotted.
    """
    groups = looks(order(table, "group"), {})
    dashes = dict(zip(order(table, "states"), ("-", "--", "-."), strict=False))
    table = table.assign(series=list(zip(table["group"], table["states"], strict=True)))
    styles = {
        (group, way): shown | {"linestyle": dash}
        for group, shown in groups.items()
        for way, dash in dashes.items()
    }
    on = curves(table, x="layer", value="mu", series="series", panel="model", looks=styles,
                labels={key: f"_{key}" for key in styles}, columns=3, width=2.8, height=2.0,
                markersize=3)  # fmt: skip
    for axes, rows in on.each(bags):
        for row in rows.itertuples():
            axes.axhline(row.mu, color=groups[row.group]["color"], linewidth=1, linestyle=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_ylim(bottom=0)
    handles = [handle(group, shown) for group, shown in groups.items()]
    handles += [line(*both) for both in (dashes | {"bag of subwords": ":"}).items()]
    return on.done("layer (0: embeddings)", "MEXA score μ (share of hits)", handles=handles)


# --- in a plane -----------------------------------------------------------------------------------


def place_sentences(
    name: Name,
    corpus: ParallelCorpus,
    layers: Sequence[int],
    *,
    n_sentences: int,
    perplexity: float = 30,
    seed: int = 0,
    **options: object,
) -> pd.DataFrame:
    """The first sentences of all languages in a plane, by t-SNE of their directions (Figure 4).

    A row per layer and sentence: ``layer``, ``language``, ``sentence``, ``x``, ``y``. ``options``
    (``pooling``, ``max_length``) and errors as of `measure_coverage`.
    """
    options = {"pooling": MEXA_POOLINGS[0]} | options
    n = min(n_sentences, len(corpus))
    (value,) = placed([name], corpus, list(layers), n, perplexity, seed, **options)
    keys = {"layer": layers, "language": corpus.languages, "sentence": range(n)}
    index = pd.MultiIndex.from_product(keys.values(), names=list(keys))
    return pd.DataFrame(value["placed"].reshape(-1, 2), index, columns=["x", "y"]).reset_index()


def _otherwise_placed(stored: ledger.Value, computed: ledger.Value) -> float:
    """How far apart the points are spread, relatively: t-SNE puts no point twice in one place."""
    spreads = [value["placed"].std(axis=1) for value in (stored, computed)]
    return float(np.abs(spreads[1] / spreads[0] - 1).max())


@kept(tolerance=0.15, difference=_otherwise_placed)
def placed(
    subject: Subject, corpus: ParallelCorpus, layers: Sequence[int], n: int, perplexity: float,
    seed: int,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Coordinates, ``(layers, languages * n, 2)``."""
    from sklearn.manifold import TSNE

    states, planes = subject.read(corpus).states, []
    for layer in layers:
        rows = np.concatenate([whole[layer, :n] for whole in states.values()])
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        plane = TSNE(perplexity=perplexity, init="pca", random_state=seed)
        planes.append(plane.fit_transform(rows))
    return {"placed": np.array(planes)}


@kept()
def wrong_pairs(
    subject: Subject, corpus: ParallelCorpus, pivot: str, n_shifts: int
) -> dict[str, np.ndarray]:
    """MEXA of sentences that are no translations, by layer: ``mu``, ``(n_layers + 1,)``.

    The sentences of each language are moved against those of the pivot by 1 to `n_shifts` places;
    the mean over shifts and languages.
    """
    states, shifted = subject.read(corpus).states, []
    for shift in range(1, n_shifts + 1):
        wrong = {x: y if x == pivot else np.roll(y, shift, 1) for x, y in states.items()}
        shifted.append(mexa.scores(wrong, pivot).mu)
    return {"mu": np.mean(shifted, axis=(0, 2))}


@styled
def neighbourhoods(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Sentences in the plane of t-SNE, a panel a layer or a model (Figure 4).

    ``table`` has ``panel`` (its title), ``language``, ``script`` ("Latn"), ``x`` and ``y``. Codes
    of the languages of ``names`` stand in the middle of their sentences; a colour and a marker tell
    the script, and the first language, the pivot, has its own.
    """
    pivot = next(iter(names))
    table = table[table["language"].isin(list(names))]
    scripts = {"Latn": "Latin script", "Cyrl": "Cyrillic script", "Arab": "Arabic script"}
    kinds = table["script"].map(scripts).fillna("another script")
    table = table.assign(series=kinds.mask(table["language"] == pivot, names[pivot]))
    shown = looks([names[pivot], *order(table, "series")], {names[pivot]: look("black", "D")})
    on = scatter(table, x="x", y="y", series="series", panel="panel", looks=shown, width=2.7,
                 height=2.5, alpha=0.45, size=10, sharex=False, sharey=False)  # fmt: skip
    for axes, rows in on.each(table):
        for code, cloud in parts(rows, "language"):
            axes.text(*cloud[["x", "y"]].median(), code, ha="center", va="center", color="0.1",
                      fontsize=SMALL, fontweight="bold", path_effects=HALO)  # fmt: skip
        axes.set(xticks=[], yticks=[])
    return on.done("t-SNE, no units")
