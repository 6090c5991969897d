"""Alignment over layers (Figure 3 of the MEXA paper), beside spelling, text read and other pivots.

What translations share on the surface, names, numbers, loans and, between relatives, spelling, lets
a sentence be found among others by a bag that knows no language. Beside it stand models that run
here, the nine of the paper by its printed numbers, and how much text of 26 languages Llama 2 has
read (Table 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from printed.mexa_claims import MexaTables
from shared import held_out, mexa_tables
from shared.mexa_figures import line
from shared.mexa_tables import bag_scores, bag_vectors
from shared.shown import asking
from xlx.experiment.mexa_scores import Coverage
from xlx.experiment.scoring import Subject, cached, subject_scores
from xlx.measures import statistics
from xlx.plots.panels import order, rows_of
from xlx.plots.primitives import curves, heatmap, scatter
from xlx.plots.style import GUESSING, TWIN, handle, look, looks, styled
from xlx.results.deferred import deferred
from xlx.subjects.identity import Name
from xlx.text import languages, parallel
from xlx.text.parallel import ParallelCorpus

stats, manifold = deferred("scipy.stats"), deferred("sklearn.manifold")


@styled
def language_layers(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Score of each language by layer, one panel per way to read a model (Figure 3).

    ``table`` has ``language``, ``layer``, ``mu`` and ``panel``; rows are those of ``names``.
    """
    on = heatmap(
        table,
        "layer",
        "language",
        "mu",
        col="panel",
        rows=[*names],
        names=names.get,
        norm=Normalize(0, 1),
        cell=(0.15, 0.2),
        edge=(1.4, 1.2),
        wrap=2,
        bar="MEXA score μ (share of hits)",
    )
    return asking("In which layer is a language near English?", on.done("layer (0: embeddings)"))


@styled
def layer_scores(table: pd.DataFrame, floor: pd.Series, groups_of: Mapping[str, str]) -> Figure:
    """Mean score of groups of languages by layer, one panel per model (Figure 3).

    ``table`` has ``model``, ``states``, of which the last are drawn, ``language``, ``layer`` and
    ``mu``. ``floor``, by language, is drawn across, dotted: the score of the bag of letters.
    Untrained twins are hollow, in the panel of their model.
    """
    table = rows_of(table, states=table["states"].iloc[-1])
    table = table.assign(group=table["language"].map(groups_of))
    table = table.groupby(["model", "group", "layer"], sort=False)["mu"].mean().reset_index()
    groups = looks(sorted(order(table, "group")), {})
    twin = table["model"].str.endswith(mexa_tables.UNTRAINED)
    on = curves(
        table[~twin], "layer", "mu", hue="group", col="model", looks=groups, wrap=3, height=1.9
    )
    twins = table[twin].assign(model=table["model"].str.removesuffix(mexa_tables.UNTRAINED))
    curves(
        twins,
        "layer",
        "mu",
        hue="group",
        looks={x: groups[x] | TWIN for x in groups},
        labels=dict.fromkeys(groups, "_"),
        on=on,
    )
    for axes in on.axes.values():
        for group, mu in floor.groupby(groups_of).mean().items():
            axes.axhline(mu, **GUESSING | {"color": groups[group]["color"]})
        axes.locator_params("x", integer=True, nbins=6)
        axes.set_ylim(bottom=0)
    handles = [
        handle("bag of letters", GUESSING),
        handle("before training", look("0.3", "o") | TWIN),
    ]
    figure = on.done("layer (0: embeddings)", "MEXA score μ (share of hits)", handles=handles)
    return asking("In which layer is a model above spelling?", figure)


# --- sentences on a plane -------------------------------------------------------------------------


@cached(tolerance=np.inf)  # rounding moves points far; no number is made of their places
def sentence_places(
    subject: Subject, corpus: ParallelCorpus, layers: Sequence[int], seed: int
) -> pd.DataFrame:
    """All sentences on a plane by t-SNE of cosines: ``layer``, ``language``, ``x``, ``y``."""
    states, tables = subject.read(corpus).states, []
    for layer in layers:
        vectors = np.concatenate([states[code][layer] for code in corpus.languages])
        places = manifold.TSNE(metric="cosine", random_state=seed).fit_transform(vectors)
        of_layer = {"layer": layer, "language": np.repeat(corpus.languages, len(corpus))}
        tables.append(pd.DataFrame(places, columns=["x", "y"]).assign(**of_layer))
    return pd.concat(tables, ignore_index=True)


@styled
def sentence_points(places: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Sentences of some languages as points, one panel per layer (Figure 4)."""
    table = places.assign(language=places["language"].map(names)).dropna()
    shown = looks(names.values(), {})
    pivot = next(iter(shown))
    shown[pivot] |= {"markerfacecolor": "white", "markersize": 7, "alpha": 1}  # a ring, below all
    on = scatter(
        table, "x", "y", hue="language", col="layer", wrap=3, height=2.6, size=16, looks=shown
    )
    for axes in on.axes.values():
        axes.set(xticks=[], yticks=[])
    on.titles("layer {}".format)
    figure = on.done("a point is a sentence; near points are alike (t-SNE)")
    return asking("Do languages lie together in the middle layer?", figure)


# --- the highest layer, beside what knows no language ---------------------------------------------


def highest_scores(covered: Sequence[Coverage], special_tokens: bool) -> pd.DataFrame:
    """Each language at its highest layer, ``mu``, and at the layer that is best for all.

    That is ``at one layer``. ``special tokens``: whether these were counted.
    """
    tables = []
    for coverage in covered:
        by_layer = coverage.scores.table().pivot(index="language", columns="layer", values="mu")
        best = by_layer[by_layer.mean().idxmax()].rename("at one layer")
        tables.append(mexa_tables.pooled_table([coverage], ["max"]).join(best, on="language"))
    return pd.concat(tables).assign(**{"special tokens": special_tokens})


def means_table(
    highest: pd.DataFrame, controls: pd.DataFrame, letters: pd.Series, families: Mapping[str, str]
) -> pd.DataFrame:
    """Mean of the highest layers beside controls, one row per way to read a model.

    ``controls``: `mexa_tables.control_scores`; ``letters``: `mexa_tables.bag_scores`. ``less
    letters``, the difference over the same languages, has an interval over families; ``above ...``:
    in how many languages the score is higher, ``at one layer`` that of the best layer for all.
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
        less = statistics.mean_interval(part["mu"] - part["letters"], part["family"])
        rows[key] = {
            "mean": f"{part['mu'].mean():.2f}",
            "less letters": "{:.2f} ({:.2f} to {:.2f})".format(*less),
            "above letters": (part["mu"] > part["letters"]).sum(),
            "at one layer": (part["at one layer"] > part["letters"]).sum(),
        } | {f"above {x}": (part["mu"] > part[x]).sum() for x in controls}
    return pd.DataFrame(rows.values(), pd.MultiIndex.from_tuples(rows, names=keys))


# --- every language as the pivot ------------------------------------------------------------------


def pivot_squares(
    models: Mapping[Name, str], corpus: ParallelCorpus
) -> dict[tuple[str, str], pd.DataFrame]:
    """μ of each language with each pivot, by model (name → pooling) and space.

    It is that of the layer with the highest mean of all pairs; "bag of letters": with idf over the
    languages of the corpus. Of held-out models there is what `held_out.asked_of` gives.
    """
    bags, squares = bag_vectors(corpus), {}
    for (name, pooling), space in product(models.items(), ("raw", "centred")):
        options = {"space": space, "pooling": pooling, "max_length": None}
        scores = held_out.asked_of(name, subject_scores, corpus, ["MEXA"], **options)
        if scores is None:
            continue
        pairs = scores[0].table().groupby(["layer", "language_1", "language_2"])["score"].mean()
        square = pairs[pairs.groupby("layer").mean().idxmax()].unstack()
        square = square.reindex(index=corpus.languages, columns=corpus.languages)
        squares[held_out.MARKED.get(name, scores[0].model), space] = square.fillna(square.T)
    letters = pd.DataFrame({code: bag_scores(bags, code) for code in bags})
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


# --- the paper's nine models, by what it prints ---------------------------------------------------

#: Labels of FLORES-200 of what Table 3 calls otherwise.
_LABELS = {"zho": "zho_Hans", "srp": "srp_Cyrl", "nor": "nob_Latn"}
#: Which languages a row of `share_correlations` is of, by columns of `printed_scores`.
GROUPS = {
    "all": "share > 0",
    "below the bag of letters": "share > 0 and mu < letters",
    "Latin script": "share > 0 and script == 'Latin'",
}
SCRIPTS = {"Latin": "Latin script", "other": "other scripts"}
#: What the axis of shares names, in per cent.
SHARES = (0.01, 0.03, 0.1)
#: What is held of μ and the share of text.
GIVEN = {"nothing": [], "letters": ["letters"], "letters and script": ["letters", "latin"]}


def printed_scores(p: MexaTables, letters: pd.Series) -> pd.DataFrame:
    """Each model and language of Belebele: ``mu`` (Table 6 / English) beside the bag of letters.

    Also ``label``, ``family``, ``script`` and ``latin``, and ``share``, of Llama 2's text, percent
    (Table 3, 26 languages), with its ``log``.
    """
    letters = letters.rename(parallel.tags("flores200-100"))
    table = p.files["table3"].query("code not in ('eng', 'unk')")
    codes = {label[:3]: label for label in p.belebele} | _LABELS
    share = pd.Series(table["value"].to_numpy(float), table["code"].map(codes))
    points = p.per_label.loc[p.belebele].rename_axis(index="label", columns="model").stack()
    points = points.rename("mu").reset_index()
    latin = points["label"].str.endswith("_Latn")
    return points.assign(
        letters=points["label"].map(letters),
        family=points["label"].map(languages.family_of),
        script=np.where(latin, "Latin", "other"),
        latin=latin.astype(float),
        share=points["label"].map(share),
        log=np.log10(points["label"].map(share)),
    )


def above_letters(points: pd.DataFrame) -> pd.DataFrame:
    """In how many languages of `printed_scores` each model is above the bag, and by how much."""
    rows = {}
    for model, part in points.groupby("model", sort=False):
        lead = part["mu"] - part["letters"]
        value, low, high = statistics.mean_interval(lead, part["family"])
        interval = f"{value:+.2f} ({low:+.2f} to {high:+.2f})"
        rows[model] = part["mu"].mean(), interval, (lead > 0).sum(), len(part)
    columns = ["mean", "less letters", "above letters", "of"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


@styled
def above_surface(points: pd.DataFrame, models: Sequence[str]) -> Figure:
    """Printed scores of models against the bag of letters, one point per language.

    Above the diagonal a model finds more translations than their spelling does.
    """
    points = points.sort_values("script").set_index("model").loc[[*models]].reset_index()
    points["mu"] = points["mu"].clip(upper=1)  # read off at 1.01
    above = (points["mu"] > points["letters"]).groupby(points["model"]).agg(["sum", "count"])
    on = scatter(
        points,
        "letters",
        "mu",
        hue="script",
        col="model",
        size=9,
        alpha=0.75,
        wrap=3,
        height=2.1,
        labels=SCRIPTS,
    )
    on.titles(lambda x: "{}\nabove spelling in {} of {}".format(x, *above.loc[x]))
    for axes in on.axes.values():
        axes.axline((0, 0), slope=1, **GUESSING | {"linestyle": "--"})
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    x = "MEXA score of the bag of letters (share of hits)"
    figure = on.done(x, "MEXA score of the model", handles=[line("equal", "--", "0.4")])
    return asking("Do models find more than spelling does?", figure)


def share_correlations(points: pd.DataFrame) -> pd.DataFrame:
    """μ of each model with the log of the share, in each of `GROUPS`, with what is `GIVEN` held.

    ``r``, ``low``, ``high`` (over languages: they are of seven families), ``n``.
    """
    rows = []
    for (group, chosen), (given, held) in product(GROUPS.items(), GIVEN.items()):
        for model, part in points.query(chosen).groupby("model"):
            if len(part) > 3 + len(held) and (part[["mu", *held]].nunique() > 1).all():
                r = statistics.correlation(part, "log", "mu", given=held, languages=("label",))
                rows.append((model, group, given, r.value, r.low, r.high, r.n))
    columns = ["model", "languages", "given", "r", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def share_leads(points: pd.DataFrame, model: str) -> pd.DataFrame:
    """r of a model's μ with the shares less that of each other model, the bag of letters held."""
    there = points.dropna(subset="share")
    wide = there.pivot(index="label", columns="model", values="mu")
    of_label = there.drop_duplicates("label").set_index("label")
    wide["letters"] = of_label["letters"]
    pairs = [(model, x) for x in there["model"].unique() if x != model]
    labels = pd.Series(wide.index, wide.index)
    return mexa_tables.differences_of_r(wide, pairs, labels, of_label["log"], ["letters"])


@styled
def share_points(points: pd.DataFrame, r: Sequence[str]) -> Figure:
    """Score of each language against its share of the text; on the right what the bag leaves of it.

    ``points``: `printed_scores` of one model; ``r``: the correlation of each panel, in words. A
    colour and a marker for each kind of script.
    """
    points = points.dropna(subset="share").sort_values("script")
    fit = stats.linregress(points["letters"], points["mu"])
    left = points["mu"] - fit.intercept - fit.slope * points["letters"]
    panels = dict(zip(r, (points["mu"], left), strict=True))
    table = pd.concat([points.assign(mu=mu, panel=panel) for panel, mu in panels.items()])
    rank = table.groupby("panel")["mu"].rank()  # of the others the names have no room
    written = table["label"].map(lambda label: languages.kind_of_language(label)[0])
    table["written"] = written.where((rank <= 3) | (rank > len(points) - 3), "")
    on = scatter(
        table,
        "log",
        "mu",
        hue="script",
        col="panel",
        wrap=2,
        width=3.6,
        height=3.2,
        sharey=False,
        labels=SCRIPTS,
    )
    labels = "MEXA score μ (share of hits)", "μ less what the bag of letters predicts"
    for axes, label in zip(on.axes.values(), labels, strict=True):
        axes.set_xticks(np.log10(SHARES), map(str, SHARES))
        axes.margins(0.12)
        axes.set_ylabel(label, fontsize=9)
    question = "Is a language aligned better if more of it was read?"
    return asking(question, on.done("share of Llama 2's text (%, logarithmic)"))
