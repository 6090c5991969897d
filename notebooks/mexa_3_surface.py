"""What spelling gives, and what the share of a language in the training text adds to it.

A control of MEXA: what translations share on the surface, the scores of bags that know no language.
Names, numbers, loans and, between related languages, spelling let a sentence be found among others
without any knowledge of what it means. And a cause: Table 3 prints how much text of 26 languages
Llama 2 has read. All from printed numbers and the shipped sentences; no model is run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from printed.mexa_claims import MexaTables
from xlx.measures import mexa, statistics
from xlx.measures.statistics import SLACK
from xlx.plots.primitives import Points, scatter
from xlx.plots.style import styled
from xlx.results.deferred import deferred
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

stats = deferred("scipy.stats")
sparse = deferred("scipy.sparse")
vectorizers = deferred("sklearn.feature_extraction.text")
preprocessing = deferred("sklearn.preprocessing")

#: The bags: how often a sentence has each of its pieces, in small letters. The last weighs pieces
#: by how few sentences of all languages have them.
BAGS = {
    "words": ("CountVectorizer", {"token_pattern": r"\w+"}),
    "characters": ("CountVectorizer", {"analyzer": "char"}),
    "3 characters": ("CountVectorizer", {"analyzer": "char", "ngram_range": (3, 3)}),
    "4 characters, idf": ("TfidfVectorizer", {"analyzer": "char", "ngram_range": (4, 4)}),
}


def bag_table(corpus: ParallelCorpus) -> pd.DataFrame:
    """The MEXA score, by cosine, of each bag (of `BAGS`): language by bag, against English."""
    table = {}
    for name in BAGS:
        bags = bag_vectors(corpus, name)
        english = bags.pop("en")
        table[name] = {code: bag_score(bag, english) for code, bag in bags.items()}
    return pd.DataFrame(table).rename_axis(index="language", columns="bag")


def bag_vectors(corpus: ParallelCorpus, bag: str) -> dict[str, sparse.csr_matrix]:
    """Unit vectors of sentences by language, ``(n, pieces)``; idf is over the whole corpus."""
    vectorizer, options = BAGS[bag]
    sentences = [sentence for text in corpus.sentences.values() for sentence in text]
    counts = getattr(vectorizers, vectorizer)(**options).fit_transform(sentences)
    unit, n = preprocessing.normalize(counts.astype(float)).tocsr(), len(corpus)
    return {code: unit[k * n : (k + 1) * n] for k, code in enumerate(corpus.languages)}


def bag_score(bag: sparse.csr_matrix, pivot: sparse.csr_matrix) -> float:
    """μ of two languages' vectors."""
    return hits((bag @ pivot.T).toarray()).mean()


def hits(cosines: np.ndarray) -> np.ndarray:
    """Which diagonal elements are above all others of their row and column: ``(n, n)`` → ``(n,)``.

    A tie, to what sums of products leave in binary, is a miss.
    """
    return ~np.logical_or(*mexa.beaten(cosines, SLACK)).any(axis=1)


def belebele_sentences(p: MexaTables) -> ParallelCorpus:
    """The sentences of FLORES-200 in English and the languages of Belebele."""
    tags = parallel.tags("flores200-100")
    needed = {"eng_Latn", *p.belebele}
    return parallel.load("flores200-100").select(code for code in tags if tags[code] in needed)


def above_spelling(p: MexaTables, bag_scores: pd.DataFrame) -> pd.DataFrame:
    """In how many languages each model is above the best bag, beyond rounding and luck too."""
    best = bag_scores.max(axis=1)
    scores = p.per_label.loc[best.index]
    lead = scores.sub(best, axis=0)
    variance = (scores * (1 - scores)).add(best * (1 - best), axis=0) / 100
    reach = p.half_2 / p.english.to_numpy() + statistics.half_width(np.sqrt(variance))
    latin = best.index[best.index.str.endswith("_Latn")]
    return pd.DataFrame(
        {
            "mean μ": scores.mean(),
            "above": (lead > 0).sum(),
            "beyond luck": (lead > reach).sum(),
            "below": (lead < 0).sum(),
            "below beyond luck": (lead < -reach).sum(),
            "r with the bag": scores.corrwith(best),
            "r, Latin script": scores.loc[latin].corrwith(best[latin]),
        }
    )


def spelling_points(p: MexaTables, bag_scores: pd.DataFrame) -> pd.DataFrame:
    """Score and best bag of each language and model, for `mexa_figures.above_surface`."""
    best = bag_scores.max(axis=1)
    scores = p.per_label.loc[best.index].rename_axis(index="language", columns="model")
    points = scores.stack().rename("mu").reset_index()
    points["surface"] = points["language"].map(best)
    points["script"] = np.where(points["language"].str.endswith("_Latn"), "Latin", "other")
    above = scores.gt(best, axis=0).sum()
    titles = {model: f"{model}: above in {n}" for model, n in above.items()}
    points["panel"] = pd.Categorical(points["model"].map(titles), titles.values())
    return points.sort_values(["panel", "script"])


# --- spelling against text ------------------------------------------------------------------------

#: Labels of FLORES-200 of what Table 3 calls otherwise.
_LABELS = {"zho": "zho_Hans", "srp": "srp_Cyrl", "nor": "nob_Latn"}
#: Which languages a row of `share_correlations` is of, by columns of `shares`.
GROUPS = {
    "all": "share > 0",
    "below the best bag": "mu < bag",
    "Latin script": "latin == 1",
    "Latin script, not Romance": "latin == 1 and not romance",
    "other scripts": "latin == 0",
}
_ROMANCE = {"fra_Latn", "spa_Latn", "ita_Latn", "por_Latn", "cat_Latn", "ron_Latn"}


def shares(p: MexaTables, bag_scores: pd.DataFrame) -> pd.DataFrame:
    """Llama 2's languages of Table 3 but English, in every model: one row per label and model.

    ``share`` (percent of the text) and its ``log``, ``mu`` (Table 6 / English), ``bag`` (the best),
    ``latin``, ``romance``.
    """
    table = p.files["table3"].query("code not in ('eng', 'unk')")
    codes = {label[:3]: label for label in p.belebele} | _LABELS
    of_label = pd.Series(table["value"].to_numpy(float), table["code"].map(codes))
    points = p.per_label.loc[of_label.index].rename_axis(index="label", columns="model").stack()
    points = points.rename("mu").reset_index()
    points["share"] = points["label"].map(of_label)
    return points.assign(
        log=np.log10(points["share"]),
        bag=points["label"].map(bag_scores.max(axis=1)),
        latin=points["label"].str.endswith("_Latn").astype(float),
        romance=points["label"].isin(_ROMANCE),
    )


def partial(table: pd.DataFrame, x: str, y: str, given: Sequence[str] = ()) -> dict[str, float]:
    """Partial correlation with the 95 % interval of Fisher's z: ``r``, ``low``, ``high``, ``n``."""
    held = np.column_stack([np.ones(len(table)), *(table[name] for name in given)])
    left = [table[k] - held @ np.linalg.lstsq(held, table[k], rcond=None)[0] for k in (x, y)]
    r = float(np.corrcoef(left)[0, 1])
    freedom = len(table) - 3 - len(given)
    reach = statistics.half_width(1 / np.sqrt(freedom)) if freedom > 0 else np.inf
    low, high = np.tanh(np.arctanh(r) + np.array([-reach, reach]))
    return {"r": r, "low": low, "high": high, "n": len(table)}


def share_correlations(points: pd.DataFrame, model: str) -> pd.DataFrame:
    """Of each of `GROUPS`: μ with the log of the share, ``alone`` and with the bag ``held``."""
    rows, of_model = [], points[points["model"] == model]
    for group, chosen in GROUPS.items():
        part = of_model.query(chosen)
        for given in ([], ["bag"], ["bag", "latin"]):
            if len(part) > 3 + len(given) and (part[["mu", *given]].nunique() > 1).all():
                r = partial(part, "log", "mu", given)
                rows.append({"languages": group, "given": " and ".join(given) or "nothing"} | r)
    return pd.DataFrame(rows).assign(model=model)


def permuted(points: pd.DataFrame, n_draws: int, seed: int) -> float:
    """How often shuffled shares go with μ as far, either way, with the bag held."""
    rng, shuffled = np.random.default_rng(seed), points.copy()
    observed = abs(partial(points, "log", "mu", ["bag"])["r"])
    logs, count = points["log"].to_numpy(), 0
    for _ in range(n_draws):
        shuffled["log"] = rng.permutation(logs)
        count += abs(partial(shuffled, "log", "mu", ["bag"])["r"]) >= observed
    return (count + 1) / (n_draws + 1)


@styled
def share_points(points: pd.DataFrame) -> Figure:
    """Score of each language against its share of the text; on the right what the bag leaves of it.

    ``points``: of one model, `shares`. A colour and a marker for each kind of script.
    """
    fit = stats.linregress(points["bag"], points["mu"])
    left = points["mu"] - fit.intercept - fit.slope * points["bag"]
    table = pd.concat(
        [
            points.assign(panel="score μ"),
            points.assign(mu=left, panel="score μ, bag held"),
        ]
    )
    table["script"] = np.where(table["latin"] == 1, "Latin", "other")
    rank = table.groupby("panel")["mu"].rank()  # of the others the names have no room
    table["written"] = table["label"].str[:3].where((rank <= 4) | (rank > len(points) - 4), "")
    style = Points(wrap=2, width=3.6, height=3.2, sharey=False)
    on = scatter(table, "log", "mu", hue="script", col="panel", style=style)
    labels = "MEXA score μ (share of hits)", "μ less what it is expected to be by the bag"
    for axes, label in zip(on.axes.values(), labels, strict=True):
        axes.xaxis.set_major_formatter(lambda power, _: f"{10**power:.2g}")
        axes.set_ylabel(label, fontsize=9)
    return on.done("share of Llama 2's text (%, logarithmic)")
