"""The printed numbers of the MEXA paper, and what follows from them of each other.

`printed_tables` reads the transcribed tables; the functions below it recompute one printed number
from others, with the tolerance that rounding gives (`xlx.printed`). The notebook shows them, and
`tests/printed/test_published_mexa.py` holds them; what the paper says in words is in
`xlx.mexa.claims`.
"""

from dataclasses import dataclass

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

_FOLDER = paths.PUBLISHED / "mexa"
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


@dataclass(frozen=True)
class PrintedTables:
    """The transcribed tables.

    Attributes
    ----------
    table_1 : DataFrame
        (group, item) by model and "AVG"; ``sizes`` has over how many languages a row is averaged.
    table_2 : Series
        By `SETTING`.
    table_5 : DataFrame
        `SETTING` by column: 1 to 8 (one of nine is lost) and 10, the average; ``long_5`` as it is.
    table_6 : DataFrame
        Label (as FLORES-200 has it) by model and "AVG", in the order of ``ranked``.
    figure_1 : DataFrame
        Slope and intercept by panel.
    text : Series
        What the text states, by claim.
    belebele : list of str
        The labels of Belebele that FLORES-200 has, without English.
    files : dict
        Name ("table1") → a table as transcribed.
    """

    table_1: pd.DataFrame
    sizes: pd.Series
    table_2: pd.Series
    table_5: pd.DataFrame
    long_5: pd.DataFrame
    table_6: pd.DataFrame
    ranked: list[str]
    figure_1: pd.DataFrame
    text: pd.Series
    belebele: list[str]
    files: dict[str, pd.DataFrame]

    @property
    def models(self) -> list[str]:
        return [name for name in self.table_1 if name != "AVG"]

    @property
    def english(self) -> pd.Series:
        """Accuracy in English on Belebele, by model."""
        return self.table_1.loc[(ENGLISH, "Belebele"), self.models]

    @property
    def mu_max(self) -> pd.Series:
        """The score on FLORES, maximum over layers, by model."""
        return self.table_1.loc[("FLORES", "mu_Max"), self.models]

    @property
    def per_label(self) -> pd.DataFrame:
        """The scores μ that Table 6 gives, label by model, without English."""
        return self.table_6[self.models].drop("eng_Latn") / self.english


def printed_tables() -> PrintedTables:
    """Read all that is transcribed."""
    files = {path.name.split("_")[0]: pd.read_csv(path) for path in sorted(_FOLDER.glob("*.csv"))}
    files["table5"] = pd.read_csv(_FOLDER / "table5_correlations_per_model.csv")
    one, six = files["table1"], files["table6"]
    rows = pd.MultiIndex.from_frame(one[["group", "item"]].drop_duplicates())
    table_1 = one.pivot(index=["group", "item"], columns="model", values="value").reindex(rows)
    table_1 = table_1[one["model"].unique()]
    sizes = one.dropna(subset="n_languages").groupby(["group", "item"])["n_languages"]
    table_6 = six.pivot(index="label", columns="model", values="value").rename(index=MISPRINTS)
    ranked = six[six["model"] == "AVG"].sort_values("rank")["label"].replace(MISPRINTS)
    labels = files["belebele"]["label"]
    lines = files["figure1"].query("panel != 'ideal'")
    return PrintedTables(
        table_1,
        sizes.first().astype(int),
        files["table2"].set_index(SETTING)["value"],
        files["table5"].pivot(index=SETTING, columns="column", values="value"),
        files["table5"],
        table_6,
        list(ranked),
        lines.pivot(index="panel", columns="quantity", values="value").astype(float),
        files["text"].set_index("claim_id")["value"],
        [label for label in labels if label in table_6.index and label != "eng_Latn"],
        files,
    )


def checked(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `Audit.check` for display."""
    return rows[["what", "printed", "recomputed", "agrees"]].set_index("what")


# --- Table 1 --------------------------------------------------------------------------------------


def check_averages(audit: Audit, p: PrintedTables) -> pd.DataFrame:
    """Averages of Table 1 from its nine models: of rounded numbers, rounded."""
    means = p.table_1[p.models].mean(axis=1)
    names = [" ".join(row) for row in p.table_1.index]
    return audit.check("Table 1, averages", names, p.table_1["AVG"], means, 2 * HALF_4)


def question_counts(p: PrintedTables, most: int) -> pd.DataFrame:
    """By task and N up to ``most``: how many of nine English accuracies are a share of N (GRIM)."""
    sizes, fits = np.arange(1, most + 1), {}
    for task in ("Belebele", "m-ARC"):
        accuracy = p.table_1.loc[(ENGLISH, task), p.models].to_numpy(dtype=float)[:, None]
        nearest = np.round(accuracy * sizes) / sizes
        fits[task] = (np.abs(nearest - accuracy) <= HALF_4 + printed.PRINTED_SLACK).sum(axis=0)
    return pd.DataFrame(fits, index=pd.Index(sizes, name="N"))


def score_or_english(p: PrintedTables) -> tuple[pd.DataFrame, pd.DataFrame]:
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
        intervals[task] = {
            "English accuracy": table[task]["English accuracy"],
            "low": low,
            "high": high,
        }
    return pd.DataFrame(table), pd.DataFrame(intervals).T


# --- Table 6 --------------------------------------------------------------------------------------


def check_table_6(audit: Audit, p: PrintedTables) -> None:
    """English, averages, and the μ max of Table 1 from the mean over Belebele's languages."""
    english = p.table_1.loc[(ENGLISH, "Belebele")]
    mean = p.table_6.loc[p.belebele, p.models].mean()
    e = p.english
    audit.check("Table 6, English", english.index, p.table_6.loc["eng_Latn", english.index],
                english, HALF_2 + HALF_4)  # fmt: skip
    audit.check("Table 6, averages", p.table_6.index, p.table_6["AVG"],
                p.table_6[p.models].mean(axis=1), 2 * HALF_2)  # fmt: skip
    audit.check("Table 1, μ max by Table 6", p.models, p.mu_max, mean / e,
                HALF_2 / e + HALF_4 * mean / e**2 + HALF_4)  # fmt: skip


def hits_left(p: PrintedTables) -> dict[str, pd.DataFrame]:
    """Least and most of the scores k / 100 that the entries leave, and how many; by model."""
    others = p.table_6.index.drop("eng_Latn")
    left = {
        model: printed.shares_left(p.table_6.loc[others, model], p.english[model], HALF_2, HALF_4)
        for model in p.models
    }
    return {
        key: pd.DataFrame({model: of_model[key] for model, of_model in left.items()})
        for key in ("least", "most", "count")
    }


def check_hundredths(audit: Audit, p: PrintedTables) -> pd.DataFrame:
    """Bounds of the mean score, the entries of Table 6 being k / 100 of the English accuracy."""
    left = {key: table.loc[p.belebele].mean() for key, table in hits_left(p).items()}
    bounds = pd.DataFrame({"k left": left["count"], "least": left["least"], "most": left["most"]})
    bounds["printed"] = p.mu_max
    nearest = bounds["printed"].clip(bounds["least"], bounds["most"])
    rows = audit.check("Table 1, μ max by hundredths", p.models, bounds["printed"], nearest, HALF_4)
    bounds["hits off"] = (bounds["printed"] - nearest) * 100 * len(p.belebele)
    return bounds.assign(agrees=rows["agrees"].to_numpy())


def language_exchanges(p: PrintedTables) -> tuple[pd.DataFrame, pd.DataFrame]:
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


def band_scores(p: PrintedTables) -> pd.DataFrame:
    """Table 6 in its five bands, the best covered languages first, for `plots.mexa`."""
    table = p.table_6.loc[p.ranked, p.models].rename_axis(index="language", columns="model")
    table = table.stack().rename("score").reset_index()
    return table.assign(band=bands(table["score"]))


def band_counts(p: PrintedTables) -> pd.DataFrame:
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


def belebele_sentences(p: PrintedTables) -> ParallelCorpus:
    """The sentences of FLORES-200 in English and the languages of Belebele."""
    tags = corpora.tags("flores200-100")
    wanted = {"eng_Latn", *p.belebele}
    return corpora.load("flores200-100").select(code for code in tags if tags[code] in wanted)


def bag_table(corpus: ParallelCorpus) -> pd.DataFrame:
    """MEXA of bags of words and letters: label by bag."""
    scores = surface_scores(corpus)
    labels = scores["language"].map(corpora.tags("flores200-100"))
    return scores.assign(language=labels).pivot(index="language", columns="bag", values="mu")[
        [*BAGS]
    ]


def above_spelling(p: PrintedTables, bag_scores: pd.DataFrame) -> pd.DataFrame:
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


def spelling_points(p: PrintedTables, bag_scores: pd.DataFrame) -> pd.DataFrame:
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


def script_means(p: PrintedTables) -> pd.DataFrame:
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
