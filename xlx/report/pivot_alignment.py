"""MEXA of every language with the pivot, raw and centred, from the states that LD and MD are of.

`xlx.experiment.mexa_scores` reads a language at a time, so that 200 languages fit; a report holds
the states of its text anyway, and what a model has read once it does not read again.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from xlx.experiment import topics
from xlx.experiment.topics import BANDS
from xlx.measures import mexa
from xlx.measures.mexa import PivotScores
from xlx.results import ledger, work
from xlx.subjects import loading, states
from xlx.subjects.identity import Name
from xlx.subjects.states import embed_corpus
from xlx.text import languages
from xlx.text.parallel import ParallelCorpus


def pivot_alignment(
    name: Name, corpus: ParallelCorpus, pivot: str, **options: object
) -> dict[str, PivotScores]:
    """MEXA of all languages but the pivot at all layers: "raw" and "centred" → scores.

    Centred: each language without its mean (`mexa.measures.without_offset`). Options (``pooling``,
    ``max_length``) and errors as of `embeddings.embed_corpus` and `mexa.measures.scores`.
    """
    about = states.corpus_about(name, corpus, **options) | {"pivot": pivot}
    value = work.result(PIVOT_ALIGNMENT, about, name, corpus, pivot, options)
    others = tuple(code for code in corpus.languages if code != pivot)
    return {
        way: PivotScores(
            others, pivot, tuple(range(len(value[f"{way} hits"]))), value[f"{way} hits"],
            value[f"{way} only rival"],
        )
        for way in ("raw", "centred")
    }  # fmt: skip


def _aligned(
    name: Name, corpus: ParallelCorpus, pivot: str, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    """What `PivotScores` keep, of both ways to take the states."""
    states = embed_corpus(loading.load(name), corpus, **options).states
    value = {}
    for way, moved in (("raw", states), ("centred", mexa.without_offset(states))):
        scores = mexa.scores(moved, pivot)
        value |= {f"{way} hits": scores.hits, f"{way} only rival": scores.only_rival}
    return value


def _scores_apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of a score: a single sentence may tie on another processor."""
    hits = [name for name in stored if name.endswith("hits")]
    if stored.keys() != computed.keys() or any(
        stored[x].shape != computed[x].shape for x in stored
    ):
        return np.inf
    return max(float(np.abs(stored[x].mean(-1) - computed[x].mean(-1)).max()) for x in hits)


PIVOT_ALIGNMENT = work.Kind(
    "report-mexa", _aligned, version=1, tolerance=0.02, difference=_scores_apart
)


def coverage_rows(label: str, scores: Mapping[str, PivotScores]) -> pd.DataFrame:
    """MEXA of every language, a row for ``states`` (raw, centred) and ``layers`` (max, mean).

    ``model`` (the label), ``language``, ``name``, ``family``, ``script``, ``pivot``, ``states``,
    ``layers``, ``mu`` with its interval, ``band`` (of `mexa.bands`).
    """
    table = pd.concat(
        of.pooled(how).assign(states=states, layers=how, pivot=of.pivot)
        for states, of in scores.items()
        for how in ("max", "mean")
    )
    table = table.assign(model=label, band=topics.bands(table["mu"]))
    for place, what in enumerate(("name", "family", "script")):
        table[what] = [kind_of_language(code)[place] for code in table["language"]]
    first = ["model", "language", "name", "family", "script", "pivot", "states", "layers"]
    return table[[*first, "mu", "low", "high", "band"]].reset_index(drop=True)


def kind_of_language(code: str) -> tuple[str, str, str]:
    """Name, family and script of "de", "pt_BR", "ar_Latn"; what is not known of it is "?"."""
    base, *rest = code.split("_")
    scripts = [part for part in rest if len(part) == 4]  # of ISO 15924; regions are shorter
    if base not in languages.LANGUAGES:
        return code, "?", (*scripts, "?")[0]
    known = languages.LANGUAGES[base]
    return known.name, known.family, (*scripts, known.script)[0]


def best_layer_rows(coverage: pd.DataFrame, states: str = "raw") -> pd.DataFrame:
    """Rows of `coverage_rows` of each language at its best layer; bands in their order."""
    rows = coverage[(coverage["layers"] == "max") & (coverage["states"] == states)]
    return rows.assign(band=pd.Categorical(rows["band"], BANDS, ordered=True))


def band_kinds(coverage: pd.DataFrame) -> pd.DataFrame:
    """How many languages of each script, and of each family, are in each band, at the best layer.

    ``model``, ``by`` ("script", "family"), ``kind`` (the commonest first), ``band``, ``languages``.
    """
    rows, tables = best_layer_rows(coverage), []
    for by in ("script", "family"):
        counts = rows.groupby(["model", by, "band"], observed=False, sort=False).size()
        table = counts.rename("languages").reset_index().rename(columns={by: "kind"}).assign(by=by)
        largest = table.groupby("kind")["languages"].transform("sum")
        tables.append(table.iloc[np.argsort(-largest.to_numpy(), kind="stable")])
    return pd.concat(tables, ignore_index=True)[["model", "by", "kind", "band", "languages"]]


def tile_places(coverage: pd.DataFrame, most: int = 18) -> pd.DataFrame:
    """Where the tile of each language lies: ``row``, a family and script, and ``place`` in it.

    The rows with most languages stand first, in a row those with the highest scores (of the first
    model); of a row of more than ``most`` tiles the rest begin another one.
    """
    rows = best_layer_rows(coverage)
    kin = rows["family"].replace("?", "family not known") + ", " + rows["script"]
    rows = rows.assign(row=kin.str.replace(", ?", ", script not known"))
    first = rows[rows["model"] == rows["model"].iloc[0]]
    first = first.sort_values("mu", ascending=False, kind="stable")
    sizes = first["row"].value_counts()
    place = dict(zip(first["language"], first.groupby("row").cumcount(), strict=True))
    rows["place"] = rows["language"].map(place)
    order = np.lexsort((rows["place"], rows["row"], -rows["row"].map(sizes)))
    turn = rows["place"] // most
    more = turn.map(lambda k: f" ({k + 1})" if k else "")
    return rows.assign(row=rows["row"] + more, place=rows["place"] % most).iloc[order]
