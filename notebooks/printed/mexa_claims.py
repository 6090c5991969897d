"""The printed numbers of the MEXA paper, and what follows from them of each other.

`MexaTables` has what needs statistics; what follows from the tables, and what the paper says of
them, are functions (`printed.evaluator`).
"""

from __future__ import annotations

from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from printed.evaluator import (
    PRINTED_SLACK,
    Paper,
    columns,
    consistency,
    number,
    p_of_r,
    rows_by,
    sentence,
)
from shared.mexa_tables import chance_table
from xlx.measures.mexa import EDGES, bands, expected
from xlx.results import paths
from xlx.results.deferred import deferred
from xlx.text import parallel

stats = deferred("scipy.stats")


def shares_left(entries: pd.Series, factor: float, half: float, half_factor: float) -> pd.DataFrame:
    """Which shares k / 100 an entry leaves that is printed as the share times a factor.

    ``entries`` are printed within ``half`` of the product, the factor within ``half_factor``. With
    their index: ``least`` and ``most`` (in [0, 1]; NaN where no k fits) and ``count`` of the k that
    fit.
    """
    share = np.arange(101) / 100
    apart = np.abs(share * factor - entries.to_numpy(float)[:, None])
    fits = apart <= half + half_factor * share + PRINTED_SLACK
    left = pd.DataFrame(np.where(fits, share, np.nan), index=entries.index)
    ends = {"least": left.min(axis=1), "most": left.max(axis=1)}
    return pd.DataFrame(ends).assign(count=fits.sum(axis=1))


class MexaTables(Paper):
    """The transcribed tables, with their rows named as FLORES-200 and Table 1 name them.

    Attributes
    ----------
    table_1 : (group, item) by model and "AVG"; ``sizes``: languages that a row is averaged over.
    table_5 : correlations by data, embedding, pooling of layers and task, by
        column: 1 to 8 (one of nine is lost) and 10, the average.
    table_6 : label by model and "AVG"; ``ranked``: labels by rank.
    english, mu_max : by model, accuracy in English on Belebele; score on FLORES, maximum.
    per_label : the scores μ that Table 6 gives, label by model; ``belebele``: labels of Belebele.
    """

    #: Half a unit of the last place: of four places, and of Table 6's two.
    half_4, half_2 = 0.5e-4, 0.5e-2
    #: Rows of Table 1: accuracy in English, and mean over the other languages; Figure 1's model.
    english_task, other_task = "Task_(eng)", "Task_L\\(eng)"
    figure_1_model = "Llama 3.1 8B"
    #: The average of Table 5 that is none.
    no_average = ("Bible", "last token", "Max", "m-MMLU")

    def __init__(self) -> None:
        super().__init__(paths.PUBLISHED / "mexa")

    @cached_property
    def flores(self) -> set[str]:
        """The labels of FLORES-200 as shipped."""
        return set(parallel.tags("flores200-100").values())

    @cached_property
    def chance(self) -> pd.DataFrame:
        """P(k hits or more of 100) by chance: as the paper has it, and exactly."""
        return chance_table(100).set_index("k")[["binomial", "matrix"]]

    # --- Table 1 ----------------------------------------------------------------------------------

    def question_counts(self, most: int) -> pd.DataFrame:
        """By task and N up to ``most``: how many of nine English accuracies are k / N (GRIM)."""
        sizes, fits = np.arange(1, most + 1), {}
        for task in ("Belebele", "m-ARC"):
            accuracy = self.table_1.loc[(self.english_task, task), self.models]
            accuracy = accuracy.to_numpy(dtype=float)[:, None]
            nearest = np.round(accuracy * sizes) / sizes
            fits[task] = (np.abs(nearest - accuracy) <= self.half_4 + PRINTED_SLACK).sum(axis=0)
        return pd.DataFrame(fits, index=pd.Index(sizes, name="N"))

    def score_or_english(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Over models: correlation of accuracy elsewhere with English, scores, and products.

        By task; and the intervals of the first.
        """
        scores, table, intervals = self.table_1.loc[["FLORES", "Bible"], self.models], {}, {}
        for task, outcome in self.table_1.loc[self.other_task, self.models].iterrows():
            english = self.table_1.loc[(self.english_task, task), self.models]
            rivals = {"English accuracy": english}
            for row, score in scores.iterrows():
                rivals[" ".join(row)], rivals[f"{' '.join(row)} × English"] = score, score * english
            table[task] = {name: rival.corr(outcome) for name, rival in rivals.items()}
            low, high = stats.pearsonr(english, outcome).confidence_interval()
            intervals[task] = {"English accuracy": english.corr(outcome), "low": low, "high": high}
        return pd.DataFrame(table), rows_by(intervals)

    # --- Table 6 ----------------------------------------------------------------------------------

    @cached_property
    def band_counts(self) -> pd.DataFrame:
        """Labels by band and model; entries on an edge; scores of 0.8 or more by themselves."""
        table_6 = self.table_6[self.models]
        counts = rows_by({model: dict(bands(table_6[model]).value_counts()) for model in table_6})
        counts = counts.rename(
            columns={"0–0.2": "0–0.2 (not covered)", "0.8–1": "0.8–1 (well-covered)"}
        )
        counts["on an edge"] = table_6.isin(EDGES[1:]).sum()
        aligned = table_6 >= 0.8 * table_6.loc["eng_Latn"] - PRINTED_SLACK
        return counts.assign(**{"μ of 0.8 or more": aligned.sum()}, English=self.english.round(2))

    # --- Table 5 ----------------------------------------------------------------------------------

    @cached_property
    def cosine_tests(self) -> pd.DataFrame:
        """Williams' test of MEXA against the cosine (5.3), for every possible r₂₃: the worst.

        Their own correlation r₂₃ is not printed, but three correlations must be possible together.
        """
        n, rows = len(self.belebele), {}
        for model, keys in {
            "Gemma 1 7B": ("mexa_t05", "mexa_t06"),
            "Llama 1 7B": ("mexa_t08", "mexa_t09"),
        }.items():
            r_12, r_13 = map(self.number, keys)
            room = np.sqrt((1 - r_12**2) * (1 - r_13**2))
            r_23 = r_12 * r_13 + room * np.linspace(-1, 1, 1001)
            determinant = 1 - r_12**2 - r_13**2 - r_23**2 + 2 * r_12 * r_13 * r_23
            below = 2 * (n - 1) / (n - 3) * determinant + ((r_12 + r_13) / 2) ** 2 * (1 - r_23) ** 3
            t = ((r_12 - r_13) * np.sqrt((n - 1) * (1 + r_23) / below)).min()
            rows[model] = {
                "MEXA": r_12,
                "cosine": r_13,
                "least r23": r_23[0],
                "most r23": r_23[-1],
                "least t": t,
                "largest p": 2 * stats.t.sf(t, n - 3),
            }
        return rows_by(rows, "model")


def _rows_above(table: pd.DataFrame, first: str, second: str) -> tuple[pd.Series, str]:
    above = table[first] > table[second]
    return above, f"in {above.sum()} of {len(above)} rows"


# --- what follows, and what is said --------------------------------------------------------------


def setting():
    """What a correlation of Tables 2 and 5 is of."""
    return ["parallel_data", "embedding", "layer_pooling", "task"]


def table_1(table1):
    return table1.pivot(index=["group", "item"], columns="model", values="value").reindex(
        table1.set_index(["group", "item"]).index.unique()
    )[table1["model"].unique()]


def sizes(table1):
    return (
        table1.dropna(subset="n_languages")
        .groupby(["group", "item"])["n_languages"]
        .first()
        .astype(int)
    )


def table_5(table5, setting):
    return table5.pivot(index=setting, columns="column", values="value")


def table_6(table6):
    misprints = {"swl_Latn": "swh_Latn", "lao_Lao": "lao_Laoo"}
    return table6.pivot(index="label", columns="model", values="value").rename(index=misprints)


def figure_1(figure1):
    return (
        figure1[figure1["panel"] != "ideal"]
        .pivot(index="panel", columns="quantity", values="value")
        .astype(float)
    )


def models(table_1):
    return [name for name in table_1 if name != "AVG"]


def english_all(table_1, english_task):
    return table_1.loc[english_task, "Belebele"]


def english(english_all, models):
    return english_all[models]


def mu_max(table_1, models):
    return table_1.loc[("FLORES", "mu_Max"), models]


def per_label(table_6, models, english):
    return table_6[models].drop("eng_Latn") / english


def belebele(belebele_labels, per_label):
    return [label for label in belebele_labels["label"] if label in per_label.index]


def hits_left(models, table_6, english, half_2, half_4):
    """By model and label: which shares of hits an entry of Table 6 leaves."""
    shares_of = pd.concat(
        {
            model: shares_left(table_6[model].drop("eng_Latn"), english[model], half_2, half_4)
            for model in models
        },
        axis=1,
    )
    return {key: shares_of.xs(key, axis=1, level=1) for key in ["least", "most", "count"]}


def bounds(hits_left, belebele, mu_max):
    """Between which scores the printed maximum of FLORES must lie by Table 6."""
    left = {key: entries.loc[belebele].mean() for key, entries in hits_left.items()}
    return pd.DataFrame(
        {"k left": left["count"], "least": left["least"], "most": left["most"], "printed": mu_max}
    )


def single_5(table_5):
    return table_5.drop(columns=10)


def implied_ninth(table_5, single_5):
    """The ninth correlation, lost in print, that the averages of Table 5 imply."""
    return 9 * table_5[10] - single_5.sum(axis=1)


def digit_changes(table_5, single_5, no_average, implied_ninth):
    """The impossible average with a digit changed, where the ninth is then like the others."""
    average_text = f"{table_5.loc[no_average, 10]:.4f}"
    one_changed = pd.Series(
        [
            float(average_text[:place] + digit + average_text[place + 1 :])
            for place in range(2, len(average_text))
            for digit in "0123456789"
        ]
    )
    ninth = 9 * one_changed - single_5.loc[no_average].sum()
    other_ninths = implied_ninth.drop(no_average)
    return pd.DataFrame(
        {"average with one digit changed": one_changed, "implied ninth": ninth.round(4)}
    )[ninth.between(other_ninths.min() - 0.1, min(other_ninths.max() + 0.1, 1))]


def setting_averages(table_5, setting):
    return table_5[10].groupby(level=setting[:3]).mean()


def x_1(mu_max, figure_1_model, english):
    """Where a line of Figure 1 is read: at the mean of languages."""
    return mu_max[figure_1_model] * english[figure_1_model]


def y_1(table_1, other_task, figure_1_model):
    return table_1.loc[(other_task, "Belebele"), figure_1_model]


def tolerance_1(half_4, x_1, figure_1, mu_max, figure_1_model, english):
    """What rounding of the four numbers of a line can explain."""
    return (
        half_4 * x_1
        + half_4
        + figure_1["slope"] * half_4 * (mu_max[figure_1_model] + english[figure_1_model])
        + half_4
    )


def lines(figure_1, x_1, y_1, tolerance_1):
    """Lines of Figure 1 at the mean, and how far from it they pass."""
    at_mean = figure_1["intercept"] + figure_1["slope"] * x_1
    return figure_1.assign(**{"at the mean": at_mean, "apart": (at_mean - y_1) / tolerance_1})


def other_panels(figure_1, table_1, figure_1_model, english, other_task, english_task):
    """Panels of other data and tasks, read backwards from their lines."""
    of_bible = figure_1.loc["3", "intercept"] + figure_1.loc["3", "slope"] * (
        table_1.loc[("Bible", "mu_Max"), figure_1_model] * english[figure_1_model]
    )
    of_arc = (
        (table_1.loc[(other_task, "m-ARC"), figure_1_model] - figure_1["intercept"])
        / figure_1["slope"]
        / table_1.loc[(english_task, "m-ARC"), figure_1_model]
    )
    return pd.DataFrame(
        {
            "by the line": [of_bible, of_arc["1"], of_arc["2"]],
            "over all languages (Table 1)": table_1.loc[
                [(other_task, "Belebele"), ("Bible", "mu_Mean"), ("FLORES", "mu_Mean")],
                figure_1_model,
            ].tolist(),
        },
        index=["3: mean accuracy", "1: mean score (Bible)", "2: mean score (FLORES)"],
    ).rename_axis("panel")


def ideal_lines(table_1, other_task, models, mu_max, english):
    """Accuracy beside three lines that need no fit."""
    adjusted = pd.Series(
        {model: float(expected(mu_max[model], english[model])) for model in models}
    )
    return pd.DataFrame(
        {
            "Belebele": table_1.loc[(other_task, "Belebele"), models],
            "adjusted": adjusted,
            "ideal": 0.25 + 0.75 * adjusted,
            "chance to English": 0.25 + (english - 0.25) * mu_max,
            "English": english,
            "ideal at English": 0.25 + 0.75 * english,
        }
    )


def above_accuracy(ideal_lines):
    return ideal_lines[["adjusted", "ideal", "chance to English"]].sub(
        ideal_lines["Belebele"], axis=0
    )


def missing_languages(settings):
    return [tag.split("_")[0] for tag in settings["web_languages_missing_from_table_3"]]


def pooling_gain(table_5):
    return (
        table_5[10].unstack("layer_pooling")["Max"] - table_5[10].unstack("layer_pooling")["Mean"]
    ).unstack("task")


def weighted_gain(pooling_gain):
    return pooling_gain.xs("weighted average", level="embedding")


def gain_1(table_5, models, figure_1_model):
    """Max less mean pooling in the model of Figure 1."""
    column_1 = models.index(figure_1_model) + 1
    return (
        (
            table_5[column_1].unstack("layer_pooling")["Max"]
            - table_5[column_1].unstack("layer_pooling")["Mean"]
        )
        .unstack("task")
        .xs("weighted average", level="embedding")
    )


def p_values(table5, sizes, other_task):
    """Correlations of Table 5 with n and p, and which are marked."""
    single = table5[table5["model"] != "AVG"]
    n_languages = [
        sizes[data, "mu_Max"] if task == "Belebele" else sizes[other_task, task]
        for task, data in zip(single["task"], single["parallel_data"], strict=True)
    ]
    return single.assign(
        n=n_languages,
        p=[p_of_r(r, n) for r, n in zip(single["value"], n_languages, strict=True)],
        marked=single["p_value"] != "p<0.001",
    )


def but_english(table_1, english_task):
    return table_1.drop(english_task, level="group")


def third_best(but_english, models):
    """Of 7 to 9 billion, the best model but the two leaders, by row."""
    return (
        but_english[models]
        .drop(columns=["Llama 3.1 70B", "Gemma 2 9B", "Llama 3.1 8B"])
        .max(axis=1)
    )


def scores_1(table_1):
    return table_1.loc[["FLORES", "Bible"]]


def tasks_1(table_1, other_task):
    return table_1.loc[other_task]


def english_1(table_1, english_task):
    return table_1.loc[english_task]


def alike_1(scores_1, tasks_1, models):
    """Of two models, a score and a task: are they ordered alike?"""
    return [
        (scores_1.loc[score, a] > scores_1.loc[score, b])
        == (tasks_1.loc[task, a] > tasks_1.loc[task, b])
        for score in scores_1.index
        for task in tasks_1.index
        for a in models
        for b in models
        if a < b
    ]


def script_means(models, per_label):
    """Mean score of rare languages, in Latin script and in others."""
    table = {}
    for model, (part, share) in product(models, {"quarter": 0.25, "half": 0.5}.items()):
        elsewhere = per_label.drop(columns=model).mean(axis=1)
        rare = per_label.loc[elsewhere <= elsewhere.quantile(share), model]
        latin = rare.index.str.endswith("_Latn")
        table[model, part] = {"Latin": rare[latin].mean(), "other": rare[~latin].mean()}
    return rows_by(table).unstack().loc[models]


@number("Table 1, by its models", "{} {}, AVG")
def averages_of_models(table_1, models, half_4):
    yield (), table_1[models].mean(axis=1), table_1["AVG"], 2 * half_4


@number("Table 6, by Table 1", "eng_Latn, {}")
def english_of_table_6(table_6, english_all, half_2, half_4):
    yield (), english_all, table_6.loc["eng_Latn", english_all.index], half_2 + half_4


@number("Table 6, by its models", "{}, AVG")
def averages_of_table_6(table_6, models, half_2):
    yield (), table_6[models].mean(axis=1), table_6["AVG"], 2 * half_2


@number("Table 1, by Table 6", "FLORES mu_Max, {}")
def scores_by_table_6(english, mu_max, half_2, half_4, table_6, belebele, models):
    mean_6 = table_6.loc[belebele, models].mean()
    tolerance = half_2 / english + half_4 * mean_6 / english**2 + half_4
    yield (), mean_6 / english, mu_max, tolerance


@number("Table 1, by hundredths", "FLORES mu_Max, {}")
def scores_by_hundredths(bounds, half_4):
    printed = bounds["printed"]
    yield (), printed.clip(bounds["least"], bounds["most"]), printed, half_4


@number("Table 2, by Table 5", "{}, {}, {}, {}")
def correlations_of_table_2(table2, setting, table_5, half_4):
    table_2 = table2.set_index(setting)["value"]
    yield (), table_5.loc[table_2.index, 10], table_2, half_4


@number("Table 5, by its models", "{}, {}, {}, {}")
def averages_of_table_5(single_5, implied_ninth, table_5, half_4):
    possible = single_5.sum(axis=1) + implied_ninth.clip(-1, 1)
    yield (), possible / 9, table_5[10], 2 * half_4


@number("text, by Table 5", "{}")
def correlations_of_the_text(setting_averages, number, half_4):
    default, room = setting_averages[:, "weighted average", "Mean"], 2 * half_4
    yield ("abstract: default setting",), default.mean(), number("mexa_t01"), 0.005 + room
    for data, key in [("FLORES", "mexa_t02"), ("Bible", "mexa_t03")]:
        yield (f"5.1: {data}, default setting",), default[data], number(key), room


@number("Figure 1, by Table 1", "panel {}")
def line_of_figure_1(lines, y_1, tolerance_1):
    panel = lines["apart"].abs().idxmin()
    yield (panel,), lines.loc[panel, "at the mean"], y_1, tolerance_1[panel]


@number("Appendix A.4", "5 hits of 100 or more")
def hits_by_chance(chance, number):
    yield (), chance["binomial"][5], number("mexa_t21"), 0.000005


@number("Tables 3 and 4, counts", "{}")
def counts(number, table3, missing_languages, half_2):
    shares = table3.set_index("code")["value"]
    yield (
        ("Table 3: languages",),
        len(table3["code"][table3["code"] != "unk"]),
        number("mexa_t23"),
        0.5,
    )
    yield ("Table 3: sum of shares, %",), shares.sum(), 100, half_2 * len(shares)
    yield ("A.1: share of English, %",), shares["eng"], number("mexa_t22"), half_2
    top = len(missing_languages) + number("mexa_t23")
    yield ("A.1: top 36 = Table 3 + those missing",), top, 36, 0.5


@number("Tables 3 and 4, counts", "{}")
def counts_of_benchmarks(number, belebele_labels, flores, table_6, sizes, other_task, table4):
    benchmarks = table4.set_index("dataset")["n_languages"]
    labels, n = belebele_labels["label"], number("mexa_t27")
    languages = labels.str.split("_").str[0].nunique()
    rows = {
        "A.5: labels of Belebele in FLORES-200": (labels.isin(flores).sum(), n),
        "Table 4: languages of Belebele": (languages, benchmarks["Belebele"]),
        "A.8: labels of Table 6": (len(table_6), number("mexa_t29")),
        "Table 1: L of FLORES, mu_Max": (n - 1, sizes["FLORES", "mu_Max"]),
        "Table 1: L of Bible, mu_Max": (number("mexa_t28") - 1, sizes["Bible", "mu_Max"]),
    }
    for task, more in [("m-MMLU", 2), ("m-ARC", 0)]:
        row = benchmarks[task] + more, sizes[other_task, task]
        rows[f"Table 1: L of {other_task}, {task}"] = row
    yield (), *columns(rows), 0.5


@sentence(
    "4.3",
    "Llama 3.1 70B: 500 questions of m-MMLU",
    "we use the first 500 questions of m-MMLU",
    "|500 s - k| ≤ 500 · 0.00005",
)
def first_500_questions(table_1, english_task, half_4):
    right_70b = table_1.loc[(english_task, "m-MMLU"), "Llama 3.1 70B"] * 500
    return (
        abs(right_70b - round(right_70b)) <= 500 * half_4,
        f"{right_70b:.2f} right answers of 500",
    )


@sentence(
    "A.8",
    "labels are those of FLORES-200, tzm renamed to zgh, without Cantonese",
    "the data labeled as Cantonese (Yue Chinese) is not actually Cantonese, so we removed it",
    "label ∈ FLORES-200",
)
def labels_of_table_6(table6, flores):
    labels = table6["label"]
    return labels.isin(flores), f"not among them: {', '.join(sorted(set(labels) - flores))}"


@sentence(
    "4.1",
    "English was translated into 204 languages and scripts",
    "Each English sentence has been translated into 204 distinct language-script combinations",
    "labels = 204",
)
def translations_of_flores(flores):
    return (
        len(flores) == 204,
        f"{len(flores) + 1} labels with Cantonese and English, so {len(flores)}",
    )


@consistency(
    "Table 1",
    "accuracies in English are shares of 900 (Belebele) and 1,172 questions (m-ARC)",
    "k / N = accuracy, N = 900 and 1172",
)
def numbers_of_questions(question_counts, models):
    return (
        [
            question_counts(1172).loc[n, task] == len(models)
            for n, task in [(900, "Belebele"), (1172, "m-ARC")]
        ],
        f"of nine models {question_counts(900).loc[900, 'Belebele']} and "
        f"{question_counts(1172).loc[1172, 'm-ARC']}; of 1,169 questions in m-ARC "
        f"{question_counts(1172).loc[1169, 'm-ARC']}",
    )


@consistency(
    "A.8",
    "each entry is k / 100 of the English accuracy",
    "|k s / 100 - entry| ≤ 0.005 + 0.00005 k / 100",
)
def entries_of_table_6(hits_left):
    fits_6 = hits_left["count"] > 0
    return fits_6, f"{fits_6.values.sum()} of {fits_6.size}"


@sentence(
    "5.2",
    "Llama 3.1 70B and Gemma 2 9B show a higher level of multilinguality",
    "Llama 3.1-70B and Gemma 2-9B show a higher level of multilinguality than other models",
    "among the two with most languages above 0.8",
)
def most_multilingual(band_counts):
    top = band_counts["0.8–1 (well-covered)"].nlargest(2).index
    return (
        [model in top for model in ["Llama 3.1 70B", "Gemma 2 9B"]],
        f"most languages above 0.8: {', '.join(sorted(top))}",
    )


@sentence(
    "5.1",
    "weighted average with mean is best over both data sets",
    "the best overall result (higher correlation) is achieved when embeddings "
    "are computed using the weighted average, with mean pooling",
    "argmax",
)
def best_setting(setting_averages):
    both_sets = setting_averages.groupby(level=["embedding", "layer_pooling"]).mean()
    return (
        both_sets.idxmax() == ("weighted average", "Mean"),
        f"{' with '.join(both_sets.idxmax())}: {both_sets.max():.4f}",
    )


@sentence(
    "5.1",
    "averages for the Bible are lower than for FLORES",
    "the Bible scores are generally lower than FLORES",
    "FLORES - Bible > 0",
)
def bible_is_lower(table_5):
    bible_lower = (
        table_5[10].unstack("parallel_data")["FLORES"]
        - table_5[10].unstack("parallel_data")["Bible"]
    )
    return bible_lower > 0, f"in {(bible_lower > 0).sum()} of {len(bible_lower)} settings"


@sentence(
    "5.1",
    "max pooling correlates better with Belebele",
    "max pooling correlates better",
    "Max - Mean > 0",
)
def max_for_belebele(pooling_gain):
    listed = ", ".join(
        f"{gain:+.4f} ({key[0]}, {key[1]})" for key, gain in pooling_gain["Belebele"].items()
    )
    return pooling_gain["Belebele"] > 0, listed


@sentence(
    "5.1",
    "mean pooling is more aligned with m-ARC",
    "making mean pooling more aligned with m-ARC",
    "Max - Mean < 0",
)
def mean_for_arc(pooling_gain):
    return (
        pooling_gain["m-ARC"] < 0,
        f"in {(pooling_gain['m-ARC'] < 0).sum()} of {len(pooling_gain)}",
    )


@sentence(
    "5.2",
    "the pooling of Figure 1 correlates better, by the averages of 5.1: max for Belebele",
    "these pooling methods yield a stronger correlation",
    "Max - Mean > 0",
)
def pooling_of_belebele(weighted_gain, gain_1):
    listed = ", ".join(f"{data} {gain:+.4f}" for data, gain in weighted_gain["Belebele"].items())
    return weighted_gain["Belebele"] > 0, (
        f"{listed}; in the figure's model "
        f"{', '.join(f'{data} {gain:+.4f}' for data, gain in gain_1['Belebele'].items())}"
    )


@sentence(
    "5.2",
    "the pooling of Figure 1 correlates better, by the averages of 5.1: mean for m-ARC",
    "these pooling methods yield a stronger correlation",
    "Mean - Max > 0",
)
def pooling_of_arc(weighted_gain, gain_1):
    return -weighted_gain["m-ARC"] > 0, (
        f"{', '.join(f'{data} {-gain:+.4f}' for data, gain in weighted_gain['m-ARC'].items())}"
        "; in the figure's model "
        f"{', '.join(f'{data} {-gain:+.4f}' for data, gain in gain_1['m-ARC'].items())}"
    )


@sentence(
    "Tables 2, 5",
    "underlined: second best average of a task",
    "The best average correlations for each task are in bold, and the second bests are underlined",
    "number = second largest of its task",
)
def second_averages(table2, table5, table_5):
    underlined = pd.concat(
        [frame[frame["mark_printed"] == "second_best"] for frame in [table2, table5]]
    )
    second_of_task = {
        task: averages.nlargest(2).iloc[-1] for task, averages in table_5[10].groupby(level="task")
    }
    listed = ", ".join(
        f"{average} ({task}; second best: {second_of_task[task]})"
        for average, task in zip(underlined["value"], underlined["task"], strict=True)
    )
    return underlined["value"] == underlined["task"].map(second_of_task), listed


@sentence(
    "Table 5",
    "p < 0.001 but where marked",
    "In all settings except **, the p-value is p < 0.001",
    "marked ⇔ p ≥ 0.001",
)
def p_below_a_thousandth(p_values):
    marked_right = p_values["marked"] == (p_values["p"] >= 0.001)
    return marked_right, f"{marked_right.sum()} of {len(marked_right)}"


@sentence(
    "A.4",
    "a score of 0.05 or more by chance (printed: larger than 0.05): 0.00016",
    "larger than 0.05 (k = 5)",
    "|P(≥ 5 of 100) - 0.00016| ≤ 0.000005",
)
def high_by_chance(chance, number):
    return (
        abs(chance["binomial"][5] - number("mexa_t21")) <= 0.000005,
        f"0.05 or more: {chance['binomial'][5]:.6f}; larger: {chance['binomial'][6]:.7f}",
    )


@sentence(
    "Table 1",
    "underlined: second best",
    "Top values are in bold, with second-best underlined",
    "rank = 2, one a row",
)
def second_models(table1, table_1, models):
    marked = table1[table1["mark_printed"] == "second_best"]
    ranks = table_1[models].rank(axis=1, ascending=False)
    places = marked[["group", "item", "model"]].itertuples(index=False)
    second = [ranks.loc[(group, item), model] == 2 for group, item, model in places]
    result = f"{len(marked)} of {len(table_1)} rows have a mark"
    return [*second, len(marked) == len(table_1)], result


@sentence(
    "5",
    "of 7 to 9 billion, Gemma 2 outperforms the others",
    "both Gemma 2 and Llama 3.1 outperform the others in terms of non-English "
    "downstream performance and MEXA scores",
    "above all others",
)
def gemma_2_leads(but_english, third_best):
    gemma_best = but_english["Gemma 2 9B"] > third_best.clip(lower=but_english["Llama 3.1 8B"])
    return gemma_best, (
        f"in {gemma_best.sum()} of {len(gemma_best)} rows; others: "
        f"{', '.join(' '.join(row) for row in gemma_best.index[~gemma_best]) or 'none'}"
    )


@sentence(
    "5",
    "of 7 to 9 billion, Llama 3.1 outperforms the others",
    "both Gemma 2 and Llama 3.1 outperform the others in terms of non-English "
    "downstream performance and MEXA scores",
    "above all others",
)
def llama_3_1_leads(but_english, third_best):
    llama_best = but_english["Llama 3.1 8B"] > third_best
    return llama_best, (
        f"in {llama_best.sum()} of {len(llama_best)} rows; others: "
        f"{', '.join(' '.join(row) for row in llama_best.index[~llama_best]) or 'none'}"
    )


@sentence(
    "5",
    "Llama 3 and 3.1 are above Llama 2",
    "both represent substantial advancements compared to Llama 2",
    "larger in each row",
)
def llama_3_above_2(table_1):
    llama_3 = table_1[["Llama 3.1 8B", "Llama 3 8B"]].min(axis=1) > table_1["Llama 2 7B"]
    return llama_3, f"in {llama_3.sum()} of {len(llama_3)} rows"


@sentence(
    "5",
    "Llama 3.1 70B is better aligned than 8B",
    "scaling can significantly enhance alignment when compared to its smaller version",
    "larger in each row",
)
def scale_aligns(scores_1):
    return _rows_above(scores_1, "Llama 3.1 70B", "Llama 3.1 8B")


@sentence(
    "5",
    "Mistral is less well aligned than Gemma 1",
    "it demonstrates inferior alignment",
    "larger in each row",
)
def mistral_below_gemma(scores_1):
    return _rows_above(scores_1, "Gemma 1 7B", "Mistral 0.3 7B")


@sentence(
    "5",
    "Llama 2 is better aligned than OLMo",
    "the Llama 2 model achieves higher MEXA scores than OLMo",
    "larger in each row",
)
def llama_2_above_olmo(scores_1):
    return _rows_above(scores_1, "Llama 2 7B", "OLMo 1.7 7B")


@sentence(
    "5",
    "Llama 2 is weaker than OLMo in English",
    "due to Llama 2’s weaker performance on English tasks",
    "larger in each row",
)
def llama_2_weaker_in_english(english_1):
    return _rows_above(english_1, "OLMo 1.7 7B", "Llama 2 7B")


def _comparable(differences):
    """Whether two models differ by at most 0.02 on each task, and by how much."""
    listed = ", ".join(f"{task} {apart:+.3f}" for task, apart in differences.items())
    return differences.abs() <= 0.02, listed


@sentence(
    "5",
    "Mistral is comparable (to 0.02) to Gemma 1 in English",
    "Mistral achieves comparable results to Gemma 1 on English benchmarks",
    "|difference| ≤ 0.02",
)
def mistral_like_gemma(english_1):
    return _comparable(english_1["Mistral 0.3 7B"] - english_1["Gemma 1 7B"])


@sentence(
    "5",
    "Llama 2 and OLMo are comparable (to 0.02) in other languages",
    "leading to comparable non-English performance between Llama 2 and OLMo",
    "|difference| ≤ 0.02",
)
def llama_2_like_olmo(tasks_1):
    return _comparable(tasks_1["Llama 2 7B"] - tasks_1["OLMo 1.7 7B"])


@sentence(
    "5.1",
    "Belebele is the easiest of the three tasks, m-ARC the hardest",
    "Belebele is an easier task among the three evaluated",
    "averages fall from task to task",
)
def order_of_tasks(tasks_1, english_1, models):
    order = ["Belebele", "m-MMLU", "m-ARC"]
    falls = (tasks_1.loc[order, models].diff().dropna() <= 0).all()
    averages = pd.concat([tasks_1["AVG"], english_1["AVG"]], axis=1).loc[order].diff().dropna()
    listed = " and ".join(falls.index[~falls])
    return (averages < 0).all(axis=1), f"by the averages, though not for {listed}"


@sentence(
    "A.7",
    "the score is comparable between models (two of them, by a score and by a task)",
    "MEXA is comparable between models as long as the same parallel dataset and setting is used",
    "above in score ⇔ above in task",
)
def comparable_scores(alike_1, table_1, english_task, other_task, scores_1):
    newer = table_1["Llama 2 7B"] > table_1["Llama 1 7B"]
    listed = ", ".join(
        ("above" if newer[row] else "below") + " in " + " ".join(row) for row in scores_1.index
    )
    return alike_1, (
        f"in {sum(alike_1)} of {len(alike_1)}; Llama 2 is above Llama 1 in "
        f"{newer[[english_task, other_task]].sum()} of "
        f"{len(newer[[english_task, other_task]])} rows of tasks, {listed}"
    )


@sentence(
    "A.7",
    "of very low-resource languages those in Latin script have higher scores (Llama 1, Llama 3.1)",
    "for very low-resource languages, those in Latin script tend to have higher alignment scores",
    "mean of Latin > mean of others, lowest quarter",
)
def rare_latin(script_means):
    latin_higher = script_means["Latin"] > script_means["other"]
    return latin_higher.loc[["Llama 1 7B", "Llama 3.1 8B"], "quarter"], (
        f"in {latin_higher.loc[['Llama 1 7B', 'Llama 3.1 8B'], 'quarter'].sum()} of 2; of "
        f"all, lowest quarter: in {latin_higher['quarter'].sum()} of {len(latin_higher)} "
        f"models, not in {', '.join(latin_higher.index[~latin_higher['quarter']])}; lowest "
        f"half: in {latin_higher['half'].sum()}"
    )


@sentence(
    "A.7",
    "Arabic is better in its own script than in Latin (Llama 1, Llama 3.1)",
    "both Llama 1 and Llama 3.1 models perform better in the native script than "
    "in the Latin script",
    "arb_Arab > arb_Latn",
)
def arabic_scripts(table_6):
    arabic = table_6.loc[["arb_Arab", "arb_Latn"], ["Llama 1 7B", "Llama 3.1 8B"]]
    listed = ", ".join(
        f"{model} {part['arb_Arab']} and {part['arb_Latn']}" for model, part in arabic.items()
    )
    return arabic.loc["arb_Arab"] > arabic.loc["arb_Latn"], listed


@sentence(
    "5.3",
    "the cosine correlates significantly lower ({})",
    "the absolute cosine similarity method achieved significantly lower correlations with "
    "downstream tasks compared to MEXA",
    "Williams' test, p < 0.05 for all r₂₃",
)
def cosine_is_lower(cosine_tests):
    for model, p in cosine_tests["largest p"].items():
        bound = 10 ** np.ceil(np.log10(p))
        yield (model,), p < 0.05, f"p < {bound:.0e} for every possible r23"


@sentence(
    "A.1",
    "none of the nine languages said to be missing is in Table 3",
    "The following 9 languages are missing",
    "∩ = ∅",
)
def missing_from_table_3(missing_languages, table3):
    listed_missing = [code for code in missing_languages if code in set(table3["code"])]
    return not listed_missing, f"{len(listed_missing)} are"


@sentence(
    "A.1",
    "all in Table 3 are above 0.005 %",
    "lists 27 languages with percentages greater than 0.005%",
    "share > 0.005",
)
def shares_of_table_3(table3):
    return table3["value"] > 0.005, f"least: {table3['value'].min()} %"


@sentence(
    "Limitations",
    "Belebele has the most languages but for tagging",
    "Belebele includes the highest number of languages (except sequence labeling tasks)",
    "argmax",
)
def widest_benchmark(table4):
    widest = table4.set_index("dataset")[
        ~table4.set_index("dataset")["task"].isin(
            ["Part of Speech Tagging", "Name Entity Recognition"]
        )
    ]["n_languages"].idxmax()
    return widest == "Belebele", f"{widest}"
