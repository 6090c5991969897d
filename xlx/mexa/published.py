"""The printed numbers of the MEXA paper, and what follows from them of each other.

`MexaTables` reads the transcribed tables; the functions below recompute one printed number from
others, with the tolerance that rounding gives (`xlx.printed`). What the paper says in words is in
`xlx.mexa.claims`.
"""

import numpy as np
import pandas as pd
from scipy import stats

from xlx import printed
from xlx.core import paths, statistics
from xlx.mexa.prediction import EDGES, bands
from xlx.mexa.surface import BAGS, surface_scores
from xlx.printed import Audit
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

#: Half a unit of the last place: of four places, and of Table 6's two.
HALF_4, HALF_2 = 0.5e-4, 0.5e-2
#: Table 6 writes two labels otherwise than FLORES-200 does.
MISPRINTS = {"swl_Latn": "swh_Latn", "lao_Lao": "lao_Laoo"}
#: Rows of Table 1: accuracy in English, and mean over the other languages.
ENGLISH, OTHERS = "Task_(eng)", "Task_L\\(eng)"
#: The model of Figure 1; what a row of Tables 2 and 5 is of; the average that is none.
FIGURE_1_MODEL = "Llama 3.1 8B"
SETTING = ["parallel_data", "embedding", "layer_pooling", "task"]
NO_AVERAGE = ("Bible", "last token", "Max", "m-MMLU")


class MexaTables:
    """The transcribed tables; ``files`` has them as they are, by name ("table1")."""

    def __init__(self) -> None:
        folder = paths.PUBLISHED / "mexa"
        files = {
            path.name.split("_")[0]: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))
        }
        files["table5"] = pd.read_csv(folder / "table5_correlations_per_model.csv")
        first, sixth = files["table1"], files["table6"]
        rows = pd.MultiIndex.from_frame(first[["group", "item"]].drop_duplicates())
        table_1 = first.pivot(index=["group", "item"], columns="model", values="value")
        #: (group, item) by model and "AVG", and over how many languages a row is averaged.
        self.table_1 = table_1.reindex(rows)[first["model"].unique()]
        sizes = first.dropna(subset="n_languages").groupby(["group", "item"])["n_languages"]
        self.sizes = sizes.first().astype(int)
        self.table_2 = files["table2"].set_index(SETTING)["value"]
        #: `SETTING` by column: 1 to 8 (one of nine is lost) and 10, the average; and as it is.
        self.table_5 = files["table5"].pivot(index=SETTING, columns="column", values="value")
        self.long_5 = files["table5"]
        #: Label (as FLORES-200 has it) by model and "AVG"; and labels by rank.
        table_6 = sixth.pivot(index="label", columns="model", values="value")
        self.table_6 = table_6.rename(index=MISPRINTS)
        averages = sixth[sixth["model"] == "AVG"].sort_values("rank")
        self.ranked = averages["label"].replace(MISPRINTS).tolist()
        #: Slope and intercept by panel.
        lines = files["figure1"].query("panel != 'ideal'")
        lines = lines.pivot(index="panel", columns="quantity", values="value")
        self.figure_1 = lines.astype(float)
        #: What the text states, by claim.
        self.text = files["text"].set_index("claim_id")["value"]
        self.models = [name for name in self.table_1 if name != "AVG"]
        #: By model: accuracy in English on Belebele; score on FLORES, maximum over layers.
        self.english = self.table_1.loc[(ENGLISH, "Belebele"), self.models]
        self.mu_max = self.table_1.loc[("FLORES", "mu_Max"), self.models]
        #: The scores μ that Table 6 gives, label by model; labels of Belebele that it has.
        self.per_label = self.table_6[self.models].drop("eng_Latn") / self.english
        labels = files["belebele"]["label"]
        self.belebele = [label for label in labels if label in self.per_label.index]
        self.files = files


def displayed(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `Audit.check` for display."""
    return rows[["what", "printed", "recomputed", "agrees"]].set_index("what")


# --- Table 1 --------------------------------------------------------------------------------------


def check_averages(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """Averages of Table 1 from its nine models: of rounded numbers, rounded; `displayed`."""
    means = p.table_1[p.models].mean(axis=1)
    names = [" ".join(row) for row in p.table_1.index]
    return displayed(audit.check("Table 1, averages", names, p.table_1["AVG"], means, 2 * HALF_4))


def question_counts(p: MexaTables, most: int) -> pd.DataFrame:
    """By task and N up to ``most``: how many of nine English accuracies are a share of N (GRIM)."""
    sizes, fits = np.arange(1, most + 1), {}
    for task in ("Belebele", "m-ARC"):
        accuracy = p.table_1.loc[(ENGLISH, task), p.models].to_numpy(dtype=float)[:, None]
        nearest = np.round(accuracy * sizes) / sizes
        fits[task] = (np.abs(nearest - accuracy) <= HALF_4 + printed.PRINTED_SLACK).sum(axis=0)
    return pd.DataFrame(fits, index=pd.Index(sizes, name="N"))


def score_or_english(p: MexaTables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Over models: correlation of the accuracy elsewhere with English, the scores, and products.

    By task; and the intervals of the first.
    """
    scores, table, intervals = p.table_1.loc[["FLORES", "Bible"], p.models], {}, {}
    for task, outcome in p.table_1.loc[OTHERS, p.models].iterrows():
        english = p.table_1.loc[(ENGLISH, task), p.models]
        rivals = {"English accuracy": english}
        for row, score in scores.iterrows():
            rivals[" ".join(row)], rivals[f"{' '.join(row)} × English"] = score, score * english
        tests = {name: stats.pearsonr(rival, outcome) for name, rival in rivals.items()}
        table[task] = {name: test.statistic for name, test in tests.items()}
        low, high = tests["English accuracy"].confidence_interval()
        r = tests["English accuracy"].statistic
        intervals[task] = {"English accuracy": r, "low": low, "high": high}
    return pd.DataFrame(table), pd.DataFrame(intervals).T


# --- Table 6 --------------------------------------------------------------------------------------


def check_table_6(audit: Audit, p: MexaTables) -> None:
    """English, averages, and the μ max of Table 1 from the mean over Belebele's languages."""
    english, e = p.table_1.loc[(ENGLISH, "Belebele")], p.english
    mean = p.table_6.loc[p.belebele, p.models].mean()
    audit.check("Table 6, English", english.index, p.table_6.loc["eng_Latn", english.index],
                english, HALF_2 + HALF_4)  # fmt: skip
    audit.check("Table 6, averages", p.table_6.index, p.table_6["AVG"],
                p.table_6[p.models].mean(axis=1), 2 * HALF_2)  # fmt: skip
    audit.check("Table 1, μ max by Table 6", p.models, p.mu_max, mean / e,
                HALF_2 / e + HALF_4 * mean / e**2 + HALF_4)  # fmt: skip


def hits_left(p: MexaTables) -> dict[str, pd.DataFrame]:
    """Least and most of the scores k / 100 that the entries leave, and how many; by model."""
    entries = p.table_6[p.models].drop("eng_Latn")
    left = {
        model: printed.shares_left(entries[model], p.english[model], HALF_2, HALF_4)
        for model in p.models
    }
    left = pd.concat(left, axis=1)
    return {key: left.xs(key, axis=1, level=1) for key in ("least", "most", "count")}


def check_hundredths(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """Bounds of the mean score, the entries of Table 6 being k / 100 of the English accuracy."""
    left = {key: table.loc[p.belebele].mean() for key, table in hits_left(p).items()}
    bounds = pd.DataFrame({"k left": left["count"], "least": left["least"], "most": left["most"]})
    bounds["printed"] = p.mu_max
    nearest = bounds["printed"].clip(bounds["least"], bounds["most"])
    rows = audit.check("Table 1, μ max by hundredths", p.models, bounds["printed"], nearest, HALF_4)
    bounds["hits off"] = (bounds["printed"] - nearest) * 100 * len(p.belebele)
    return bounds.assign(agrees=rows["agrees"].to_numpy())


def language_exchanges(p: MexaTables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many other choices of languages fit all nine means, by kind; and those that do."""
    left = hits_left(p)
    changes = printed.exchanges(left["least"], left["most"], p.mu_max, p.belebele, HALF_4)
    nothing_out, nothing_in = changes["out"].isna(), changes["into"].isna()
    kinds = [nothing_out & nothing_in, nothing_in, nothing_out]
    changes["kind"] = np.select(kinds, ["as it is", "left out", "taken in"], "exchanged")
    changes["fits all nine"] = changes["fits"] == len(p.models)
    counts = changes.groupby("kind").agg(
        choices=("fits", "size"), most_means=("fits", "max"), fit_all_nine=("fits all nine", "sum")
    )
    return counts, changes.loc[changes["fits all nine"], ["out", "into"]]


def band_scores(p: MexaTables) -> pd.DataFrame:
    """Table 6 in its five bands, the best covered languages first, for `plots.mexa`."""
    table = p.table_6.loc[p.ranked, p.models].rename_axis(index="language", columns="model")
    table = table.stack().rename("score").reset_index()
    return table.assign(band=bands(table["score"]))


def band_counts(p: MexaTables) -> pd.DataFrame:
    """Labels by band and model; entries on an edge; scores of 0.8 or more by themselves."""
    table_6 = p.table_6[p.models]
    counts = pd.DataFrame({model: bands(table_6[model]).value_counts() for model in table_6}).T
    counts = counts.rename(
        columns={"0–0.2": "0–0.2 (not covered)", "0.8–1": "0.8–1 (well-covered)"}
    )
    counts.columns = list(counts.columns)
    counts["on an edge"] = table_6.isin(EDGES[1:]).sum()
    aligned = table_6 >= 0.8 * table_6.loc["eng_Latn"] - printed.PRINTED_SLACK
    return counts.assign(**{"μ of 0.8 or more": aligned.sum(), "English": p.english.round(2)})


# --- Table 6 and spelling -------------------------------------------------------------------------


def belebele_sentences(p: MexaTables) -> ParallelCorpus:
    """The sentences of FLORES-200 in English and the languages of Belebele."""
    tags = corpora.tags("flores200-100")
    needed = {"eng_Latn", *p.belebele}
    return corpora.load("flores200-100").select(code for code in tags if tags[code] in needed)


def bag_table(corpus: ParallelCorpus) -> pd.DataFrame:
    """MEXA of bags of words and letters: label by bag."""
    scores = surface_scores(corpus)
    scores["language"] = scores["language"].map(corpora.tags("flores200-100"))
    return scores.pivot(index="language", columns="bag", values="mu")[[*BAGS]]


def above_spelling(p: MexaTables, bag_scores: pd.DataFrame) -> pd.DataFrame:
    """In how many languages each model is above the best bag, beyond rounding and luck too."""
    best = bag_scores.max(axis=1)
    scores = p.per_label.loc[best.index]
    lead = scores.sub(best, axis=0)
    variance = (scores * (1 - scores)).add(best * (1 - best), axis=0) / 100
    reach = HALF_2 / p.english.to_numpy() + statistics.half_width(np.sqrt(variance))
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
    """Score and best bag of each language and model, for `plots.mexa.above_surface`."""
    best = bag_scores.max(axis=1)
    scores = p.per_label.loc[best.index].rename_axis(index="language", columns="model")
    points = scores.stack().rename("mu").reset_index()
    points["surface"] = points["language"].map(best)
    points["script"] = np.where(points["language"].str.endswith("_Latn"), "Latin", "other")
    above = scores.gt(best, axis=0).sum()
    titles = {model: f"{model}: above in {n}" for model, n in above.items()}
    points["panel"] = pd.Categorical(points["model"].map(titles), titles.values())
    return points.sort_values(["panel", "script"])


def script_means(p: MexaTables) -> pd.DataFrame:
    """Mean scores of rare languages by script (A.7).

    Rare: in the lowest quarter or half by the mean score in the *other* eight models. Model by
    (script, part).
    """
    rows = {}
    for model in p.models:
        elsewhere = p.per_label.drop(columns=model).mean(axis=1)
        for name, part in (("quarter", 0.25), ("half", 0.5)):
            low = p.per_label.loc[elsewhere <= elsewhere.quantile(part), model]
            latin = low.index.str.endswith("_Latn")
            rows[model, name] = {"Latin": low[latin].mean(), "other": low[~latin].mean()}
    return pd.DataFrame(rows).T.unstack().loc[p.models]
