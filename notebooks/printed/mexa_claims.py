"""What translations share on the surface: MEXA of bags that know no language (a control of MEXA).

Names, numbers, loans and, between related languages, spelling let a sentence be found among others
without any knowledge of what it means. A model's score says that it has aligned a language only as
far as it is above what such bags reach on the same sentences.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import yaml
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from printed import printed_tables
from printed.printed_tables import Audit, verdict
from shared.mexa_tables import chance_table
from xlx.experiment.mexa_scores import with_pivot
from xlx.experiment.topics import EDGES, bands, expected
from xlx.measures import statistics
from xlx.measures.statistics import SLACK
from xlx.results import paths
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: The bags: how often a sentence has each of its pieces, in small letters. The last weighs pieces
#: by how few sentences of all languages have them.
BAGS = {
    "words": (CountVectorizer, {"token_pattern": r"\w+"}),
    "characters": (CountVectorizer, {"analyzer": "char"}),
    "3 characters": (CountVectorizer, {"analyzer": "char", "ngram_range": (3, 3)}),
    "4 characters, idf": (TfidfVectorizer, {"analyzer": "char", "ngram_range": (4, 4)}),
}


def surface_scores(corpus: ParallelCorpus, pivot: str = "en") -> pd.DataFrame:
    """The MEXA score of each bag (of `BAGS`), by cosine, for every language against the pivot.

    A row per language but the pivot, and bag: ``language``, ``bag``, ``mu`` (share of hits).
    Raises TextError where the corpus has no pivot, or no other language.
    """
    pivot, _ = with_pivot(corpus, pivot)
    sentences = [sentence for text in corpus.sentences.values() for sentence in text]
    n, rows = len(corpus), []
    for name, (vectorizer, options) in BAGS.items():
        unit = normalize(vectorizer(**options).fit_transform(sentences).astype(float)).tocsr()
        bags = {code: unit[k * n : (k + 1) * n] for k, code in enumerate(corpus.languages)}
        of_pivot = bags.pop(pivot)
        rows += [
            (code, name, hits((bag @ of_pivot.T).toarray()).mean()) for code, bag in bags.items()
        ]
    return pd.DataFrame(rows, columns=["language", "bag", "mu"])


def hits(cosines: np.ndarray) -> np.ndarray:
    """Which diagonal elements are above all others of their row and column: ``(n, n)`` → ``(n,)``.

    A tie, to what sums of products leave in binary, is a miss.
    """
    rivals = cosines.copy()
    np.fill_diagonal(rivals, -np.inf)
    return np.diag(cosines) > np.maximum(rivals.max(axis=0), rivals.max(axis=1)) + SLACK


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
        fits[task] = (np.abs(nearest - accuracy) <= HALF_4 + printed_tables.PRINTED_SLACK).sum(
            axis=0
        )
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
        model: printed_tables.shares_left(entries[model], p.english[model], HALF_2, HALF_4)
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
    changes = printed_tables.exchanges(left["least"], left["most"], p.mu_max, p.belebele, HALF_4)
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
    aligned = table_6 >= 0.8 * table_6.loc["eng_Latn"] - printed_tables.PRINTED_SLACK
    return counts.assign(**{"μ of 0.8 or more": aligned.sum(), "English": p.english.round(2)})


# --- Table 6 and spelling -------------------------------------------------------------------------


def belebele_sentences(p: MexaTables) -> ParallelCorpus:
    """The sentences of FLORES-200 in English and the languages of Belebele."""
    tags = parallel.tags("flores200-100")
    needed = {"eng_Latn", *p.belebele}
    return parallel.load("flores200-100").select(code for code in tags if tags[code] in needed)


def bag_table(corpus: ParallelCorpus) -> pd.DataFrame:
    """MEXA of bags of words and letters: label by bag."""
    scores = surface_scores(corpus)
    scores["language"] = scores["language"].map(parallel.tags("flores200-100"))
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


# --- Tables 2 and 5 -------------------------------------------------------------------------------


def implied_ninth(p: MexaTables) -> pd.Series:
    """The lost ninth correlation that each average implies: 9 r̄ - Σ r."""
    return 9 * p.table_5[10] - p.table_5.drop(columns=10).sum(axis=1)


def check_correlations(audit: Audit, p: MexaTables) -> None:
    """Table 2 is the last column of Table 5, whose averages must be those of correlations."""
    names = pd.Series([", ".join(row) for row in p.table_5.index], index=p.table_5.index)
    audit.check("Table 2, by Table 5", names[p.table_2.index], p.table_2,
                p.table_5.loc[p.table_2.index, 10], HALF_4)  # fmt: skip
    possible = (p.table_5.drop(columns=10).sum(axis=1) + implied_ninth(p).clip(-1, 1)) / 9
    audit.check("Table 5, averages possible", names, p.table_5[10], possible, 2 * HALF_4)


def digit_changes(p: MexaTables) -> pd.DataFrame:
    """With which digit changed the impossible average would imply a ninth like the others."""
    digits = f"{p.table_5.loc[NO_AVERAGE, 10]:.4f}"
    numbers = [
        float(digits[:place] + digit + digits[place + 1 :])
        for place in range(2, len(digits))
        for digit in "0123456789"
    ]
    ninth = 9 * np.array(numbers) - p.table_5.drop(columns=10).loc[NO_AVERAGE].sum()
    table = {"average with one digit changed": numbers, "implied ninth": ninth.round(4)}
    beside = implied_ninth(p).drop(NO_AVERAGE)
    alike = (beside.min() - 0.1 <= ninth) & (ninth <= min(beside.max() + 0.1, 1))
    return pd.DataFrame(table)[alike]


def setting_averages(p: MexaTables) -> pd.Series:
    """Average correlation over the tasks, by data, embedding and pooling of layers."""
    return p.table_5[10].groupby(level=SETTING[:3]).mean()


def check_text_averages(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """The averages that the text states of Table 5."""
    default = setting_averages(p)[:, "weighted average", "Mean"]
    said = p.text[["mexa_t01", "mexa_t02", "mexa_t03"]].astype(float)
    what = [f"{where}default setting" for where in ("abstract: ", "5.1: FLORES, ", "5.1: Bible, ")]
    values = [default.mean(), default["FLORES"], default["Bible"]]
    tolerances = [0.005 + 2 * HALF_4, 2 * HALF_4, 2 * HALF_4]
    return audit.check("Text, averages of Table 5", what, said, values, tolerances)


def p_values(p: MexaTables) -> pd.DataFrame:
    """The correlations of Table 5 with ``n``, the recomputed ``p`` and whether they are ``marked``.

    With n languages and no correlation, t = r √((n - 2) / (1 - r²)) follows Student's distribution
    with n - 2 degrees of freedom. Numbers of languages are Table 1's.
    """
    table = p.long_5[p.long_5["model"] != "AVG"].copy()
    table["n"] = [
        p.sizes[data, "mu_Max"] if task == "Belebele" else p.sizes[OTHERS, task]
        for task, data in zip(table["task"], table["parallel_data"], strict=True)
    ]
    r, freedom = table["value"], table["n"] - 2
    table["p"] = 2 * stats.t.sf(r * np.sqrt(freedom / (1 - r**2)), freedom)
    return table.assign(marked=table["p_value"] != "p<0.001")


def closest_p_values(p: MexaTables) -> pd.DataFrame:
    """All that are marked, and those above 0.0001."""
    table = p_values(p)
    table = table[table["marked"] | (table["p"] > 1e-4)].sort_values("p")
    return table.set_index(SETTING)[["model", "value", "n", "p", "marked"]]


def repeated_numbers(p: MexaTables) -> pd.DataFrame:
    """How many numbers of Table 5 are there twice, and how many chance would give.

    Expected: pairs within 0.0050 of each other, divided by the 101 differences they can have.
    """
    units = (p.table_5.drop(columns=10).to_numpy() * 1e4).round().astype(int)
    rows, columns = np.indices(units.shape).reshape(2, -1)
    first, second = np.triu_indices(units.size, 1)
    apart = np.abs(units.ravel()[first] - units.ravel()[second])
    groups = {
        "in a row": rows[first] == rows[second],
        "in a column": columns[first] == columns[second],
        "anywhere": np.full(len(apart), True),
    }
    rows = [
        (chosen.sum(), (apart[chosen] == 0).sum(), f"{(apart[chosen] <= 50).sum() / 101:.1f}")
        for chosen in groups.values()
    ]
    return pd.DataFrame(rows, groups, ["pairs", "the same", "expected"], dtype=object)


def cosine_tests(p: MexaTables) -> pd.DataFrame:
    """Williams' test of MEXA against the cosine (5.3), for every r₂₃ that is possible: the worst.

    Their own correlation r₂₃ is not printed, but three correlations must be possible together.
    """
    n, rows = len(p.belebele), []
    for model, keys in {
        "Gemma 1 7B": ("mexa_t05", "mexa_t06"), "Llama 1 7B": ("mexa_t08", "mexa_t09"),
    }.items():  # fmt: skip
        r_12, r_13 = (float(p.text[key]) for key in keys)
        room = np.sqrt((1 - r_12**2) * (1 - r_13**2))
        r_23 = r_12 * r_13 + room * np.linspace(-1, 1, 1001)
        determinant = 1 - r_12**2 - r_13**2 - r_23**2 + 2 * r_12 * r_13 * r_23
        below = 2 * (n - 1) / (n - 3) * determinant + ((r_12 + r_13) / 2) ** 2 * (1 - r_23) ** 3
        t = ((r_12 - r_13) * np.sqrt((n - 1) * (1 + r_23) / below)).min()
        rows.append((model, r_12, r_13, r_23[0], r_23[-1], t, 2 * stats.t.sf(t, n - 3)))
    columns = ["model", "MEXA", "cosine", "least r23", "most r23", "least t", "largest p"]
    return pd.DataFrame(rows, columns=columns).set_index("model")


# --- Figure 1 -------------------------------------------------------------------------------------


def check_figure_1(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """Which panel's line goes through the means of FLORES, maximum, Belebele, as least squares do.

    ``apart``: distance from the printed mean in tolerances.
    """
    lines, model = p.figure_1.copy(), FIGURE_1_MODEL
    mu, y = p.mu_max[model], p.table_1.loc[(OTHERS, "Belebele"), model]
    x = mu * p.english[model]
    tolerance = HALF_4 * x + HALF_4 + lines["slope"] * HALF_4 * (mu + p.english[model]) + HALF_4
    lines["at the mean"] = lines["intercept"] + lines["slope"] * x
    lines["apart"] = (lines["at the mean"] - y) / tolerance
    panel = lines["apart"].abs().idxmin()
    audit.check("Figure 1, by Table 1", [f"panel {panel}"], [y], [lines.loc[panel, "at the mean"]],
                [tolerance[panel]])  # fmt: skip
    return lines


def other_panels(p: MexaTables) -> pd.DataFrame:
    """What the other three lines give, beside the means of Table 1, over other languages."""
    lines, model = p.figure_1, FIGURE_1_MODEL
    x = p.table_1.loc[("Bible", "mu_Max"), model] * p.english[model]
    of_arc = (p.table_1.loc[(OTHERS, "m-ARC"), model] - lines["intercept"]) / lines["slope"]
    of_arc /= p.table_1.loc[(ENGLISH, "m-ARC"), model]
    of_belebele = lines.loc["3", "intercept"] + lines.loc["3", "slope"] * x
    rows = ["3: mean accuracy", "1: mean score (Bible)", "2: mean score (FLORES)"]
    keys = [(OTHERS, "Belebele"), ("Bible", "mu_Mean"), ("FLORES", "mu_Mean")]
    table = {
        "by the line": [of_belebele, of_arc["1"], of_arc["2"]],
        "over all languages (Table 1)": p.table_1.loc[keys, model].tolist(),
    }
    return pd.DataFrame(table, pd.Index(rows, name="panel"))


def typical_error(p: MexaTables, panel: str = "4") -> pd.Series:
    """What the line of Figure 1 leaves: sd(y) = b sd(x) / r, error sd(y) √(1 - r²)."""
    column = p.models.index(FIGURE_1_MODEL) + 1
    r = p.table_5.loc[("FLORES", "weighted average", "Max", "Belebele"), column]
    sd_x = p.table_6.loc[p.belebele, FIGURE_1_MODEL].std(ddof=0)
    sd_y = p.figure_1.loc[panel, "slope"] * sd_x / r
    error = sd_y * np.sqrt(1 - r**2)
    return pd.Series({"r": r, "sd of accuracy": sd_y, "typical error": error})


def ideal_lines(p: MexaTables) -> pd.DataFrame:
    """Mean accuracy on Belebele, and what the score, the ideal line and one to English estimate."""
    e = p.english
    adjusted = pd.Series({model: float(expected(p.mu_max[model], e[model])) for model in p.models})
    return pd.DataFrame(
        {
            "Belebele": p.table_1.loc[(OTHERS, "Belebele"), p.models],
            "adjusted": adjusted,
            "ideal": 0.25 + 0.75 * adjusted,
            "chance to English": 0.25 + (e - 0.25) * p.mu_max,
            "English": e,
            "ideal at English": 0.25 + 0.75 * e,
        }
    )


def above_accuracy(estimates: pd.DataFrame) -> pd.DataFrame:
    """How far each of the `ideal_lines` is above the mean accuracy, and the largest distance."""
    columns = ["adjusted", "ideal", "chance to English"]
    above = estimates[columns].sub(estimates["Belebele"], axis=0)
    return pd.DataFrame({"mean above": above.mean(), "largest distance": above.abs().max()}).T


# --- appendix A -----------------------------------------------------------------------------------


def check_chance(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """The chance of five hits or more of a hundred (A.4), beside the exact one."""
    tails = chance_table(100).set_index("k")[["binomial", "matrix"]]
    said = float(p.text["mexa_t21"])
    audit.check("Appendix A.4", ["5 hits of 100 or more"], [said], [tails["binomial"][5]], 5e-6)
    return tails.loc[3:8]


def missing_languages() -> list[str]:
    """The nine languages of the web that are said to be missing from Table 3 (A.1)."""
    settings = (paths.PUBLISHED / "mexa" / "settings.yaml").read_text(encoding="utf-8")
    listed = yaml.safe_load(settings)["web_languages_missing_from_table_3"]
    return [tag.split("_")[0] for tag in listed]


def check_counts(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """Tables 3 and 4 and the numbers of languages, `displayed`."""
    table_3, table_4 = p.files["table3"], p.files["table4"].set_index("dataset")["n_languages"]
    labels, n_listed = p.files["belebele"]["label"], int(p.text["mexa_t23"])
    share = table_3.set_index("code").loc["eng", "value"]
    in_flores = labels.isin(parallel.tags("flores200-100").values()).sum()
    rows = [
        ("Table 3: languages", n_listed, (table_3["code"] != "unk").sum(), 0.5),
        ("Table 3: sum of shares, %", 100, table_3["value"].sum(), HALF_2 * len(table_3)),
        ("A.1: share of English, %", float(p.text["mexa_t22"].rstrip("%")), share, HALF_2),
        ("A.1: top 36 = Table 3 + those missing", 36, len(missing_languages()) + n_listed, 0.5),
        ("A.5: labels of Belebele in FLORES-200", int(p.text["mexa_t27"]), in_flores, 0.5),
        ("Table 4: languages of Belebele", table_4["Belebele"],
         labels.str.split("_").str[0].nunique(), 0.5),
        ("A.8: labels of Table 6", int(p.text["mexa_t29"]), len(p.table_6), 0.5),
    ]  # fmt: skip
    averaged_over = {
        ("FLORES", "mu_Max"): int(p.text["mexa_t27"]) - 1,  # without English
        ("Bible", "mu_Max"): int(p.text["mexa_t28"]) - 1,
        (OTHERS, "m-MMLU"): table_4["m-MMLU"] + 2,  # A.5: isl, nob
        (OTHERS, "m-ARC"): table_4["m-ARC"],
    }
    for row, size in averaged_over.items():
        rows.append((f"Table 1: L of {', '.join(row)}", p.sizes[row], size, 0.5))
    return displayed(audit.check("Tables 3 and 4, counts", *map(list, zip(*rows, strict=True))))


#: Section, claim, formula, what the numbers say (``found``), and the parts: one or several.
Claim = tuple[str, str, str, str, object]


def all_claims(p: MexaTables) -> pd.DataFrame:
    """All claims in the order of the notebook, a row each, with their ``verdict``."""
    groups = (_of_table_6, _of_correlations, _of_p_values, _of_table_1, _between_models, _of_counts)
    rows = [claim for group in groups for claim in group(p)]
    table = pd.DataFrame(rows, columns=["section", "claim", "formula", "found", "parts"])
    table["parts"] = [np.atleast_1d(np.asarray(parts)).tolist() for parts in table["parts"]]
    return table.assign(verdict=table["parts"].map(verdict))


def audit_claims(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """Give all claims to an audit; ``section, claim, formula, verdict``."""
    table = all_claims(p)
    for row in table.itertuples():
        audit.claim(row.section, row.claim, row.found, *row.parts)
    return table[["section", "claim", "formula", "verdict"]]


def shown_claims(p: MexaTables, sections: Iterable[str]) -> pd.DataFrame:
    """What the numbers say of the claims of some sections, for display."""
    table = all_claims(p)
    table = table[table["section"].isin(sections)].set_index("section")
    return table[["claim", "found", "verdict"]]


def _of_table_6(p: MexaTables) -> Iterator[Claim]:
    right = p.table_1.loc[(ENGLISH, "m-MMLU"), "Llama 3.1 70B"] * 500
    yield ("4.3", "Llama 3.1 70B: 500 questions of m-MMLU", "|500 s - k| ≤ 500 · 0.00005",
           f"{right:.2f} right answers of 500",
           abs(right - round(right)) <= 500 * HALF_4)  # fmt: skip
    shipped = set(parallel.tags("flores200-100").values())
    labels = p.files["table6"]["label"]
    yield ("A.8", "labels are those of FLORES-200, tzm renamed to zgh, without Cantonese",
           "label ∈ FLORES-200", f"not among them: {', '.join(sorted(set(labels) - shipped))}",
           labels.isin(shipped))  # fmt: skip
    yield ("4.1", "English was translated into 204 languages and scripts", "labels = 204",
           f"{len(shipped) + 1} labels with Cantonese and English, so {len(shipped)}",
           len(shipped) == 204)  # fmt: skip
    fits = hits_left(p)["count"] > 0
    yield ("A.8", "each entry is k / 100 of the English accuracy",
           "|k s / 100 - entry| ≤ 0.005 + 0.00005 k / 100",
           f"{fits.to_numpy().sum()} of {fits.size}", fits.to_numpy().ravel())  # fmt: skip
    top = set(band_counts(p)["0.8–1 (well-covered)"].nlargest(2).index)
    yield ("5.2", "Llama 3.1 70B and Gemma 2 9B show a higher level of multilinguality",
           "among the two with most languages above 0.8",
           f"most languages above 0.8: {', '.join(sorted(top))}",
           [model in top for model in ("Llama 3.1 70B", "Gemma 2 9B")])  # fmt: skip


def _of_correlations(p: MexaTables) -> Iterator[Claim]:
    both = setting_averages(p).groupby(level=["embedding", "layer_pooling"]).mean()
    yield ("5.1", "weighted average with mean is best over both data sets", "argmax",
           f"{' with '.join(both.idxmax())}: {both.max():.4f}",
           both.idxmax() == ("weighted average", "Mean"))  # fmt: skip
    drop = p.table_5[10].unstack("parallel_data").eval("FLORES - Bible")
    yield ("5.1", "averages for the Bible are lower than for FLORES", "FLORES - Bible > 0",
           f"in {(drop > 0).sum()} of {len(drop)} settings", drop > 0)  # fmt: skip
    gain = p.table_5[10].unstack("layer_pooling").eval("Max - Mean").unstack("task")
    values = [f"{value:+.4f} ({data}, {kind})" for (data, kind), value in gain["Belebele"].items()]
    yield ("5.1", "max pooling correlates better with Belebele", "Max - Mean > 0",
           ", ".join(values), gain["Belebele"] > 0)  # fmt: skip
    yield ("5.1", "mean pooling is more aligned with m-ARC", "Max - Mean < 0",
           f"in {(gain['m-ARC'] < 0).sum()} of {len(gain)}", gain["m-ARC"] < 0)  # fmt: skip
    column = p.models.index(FIGURE_1_MODEL) + 1
    of_model = p.table_5[column].unstack("layer_pooling").eval("Max - Mean").unstack("task")
    of_model = of_model.xs("weighted average", level="embedding")
    for task, pooling, sign in (("Belebele", "max", 1), ("m-ARC", "mean", -1)):
        values = sign * of_model[task]
        yield (
            "5.2",
            f"the pooling of Figure 1 (Llama 3.1 8B) correlates better: {pooling} for {task}",
            f"{'Max - Mean' if sign > 0 else 'Mean - Max'} > 0",
            ", ".join(f"{data} {value:+.4f}" for data, value in values.items()),
            values > 0,
        )
    marked = pd.concat([p.files["table2"], p.long_5]).query("mark_printed == 'second_best'")
    second = p.table_5[10].groupby(level="task").agg(lambda task: task.nlargest(2).iloc[-1])
    values = [f"{row.value} ({row.task}; second best: {second[row.task]})"
              for row in marked.itertuples()]  # fmt: skip
    yield ("Tables 2, 5", "underlined: second best average of a task",
           "number = second largest of its task", ", ".join(values),
           marked["value"] == marked["task"].map(second))  # fmt: skip


def _of_p_values(p: MexaTables) -> Iterator[Claim]:
    table = p_values(p)
    same = table["marked"] == (table["p"] >= 0.001)
    yield ("Table 5", "p < 0.001 but where marked", "marked ⇔ p ≥ 0.001",
           f"{same.sum()} of {len(same)}", same)  # fmt: skip
    tail = chance_table(100).set_index("k")["binomial"]
    yield ("A.4", "a score larger than 0.05: 0.00016", "|P(≥ 6 of 100) - 0.00016| ≤ 0.000005",
           f"0.05 or more: {tail[5]:.6f}; larger: {tail[6]:.7f}",
           abs(tail[6] - float(p.text["mexa_t21"])) <= 0.5e-5)  # fmt: skip


def _of_table_1(p: MexaTables) -> Iterator[Claim]:
    table = p.table_1
    marked = p.files["table1"].query("mark_printed == 'second_best'")
    rank = table[p.models].rank(axis=1, ascending=False).stack()
    of_marked = [rank[tuple(row)] == 2 for row in marked[["group", "item", "model"]].to_numpy()]
    yield ("Table 1", "underlined: second best", "rank = 2, one a row",
           f"{len(marked)} of {len(table)} rows have a mark",
           [*of_marked, len(marked) == len(table)])  # fmt: skip
    rows = table.index.drop(ENGLISH, level="group")
    first, llama = (table.loc[rows, model] for model in ("Gemma 2 9B", FIGURE_1_MODEL))
    named = ["Llama 3.1 70B", "Gemma 2 9B", FIGURE_1_MODEL]
    others = table.loc[rows, p.models].drop(columns=named).max(axis=1)
    for name, better in (
        ("Gemma 2", first > others.clip(lower=llama)),
        ("Llama 3.1", llama > others),
    ):
        not_in = ", ".join(" ".join(row) for row in better.index[~better]) or "none"
        yield ("5", f"of 7 to 9 billion, {name} outperforms the others", "above all others",
               f"in {better.sum()} of {len(better)} rows; others: {not_in}",
               better)  # fmt: skip
    scores, tasks, english = table.loc[["FLORES", "Bible"]], table.loc[OTHERS], table.loc[ENGLISH]
    old, seven = table["Llama 2 7B"], scores["Llama 2 7B"]
    orders = {
        "Llama 3 and 3.1 are above Llama 2": table[[FIGURE_1_MODEL, "Llama 3 8B"]].min(axis=1)
        > old,
        "Llama 3.1 70B is better aligned than 8B": scores["Llama 3.1 70B"] > scores[FIGURE_1_MODEL],
        "Mistral is less well aligned than Gemma 1": scores["Gemma 1 7B"]
        > scores["Mistral 0.3 7B"],
        "Llama 2 is better aligned than OLMo": seven > scores["OLMo 1.7 7B"],
        "Llama 2 is weaker than OLMo in English": english["Llama 2 7B"] < english["OLMo 1.7 7B"],
    }
    for claim, holds in orders.items():
        yield ("5", claim, "larger in each row", f"in {holds.sum()} of {len(holds)} rows", holds)
    for claim, one, other, of in (
        ("Mistral is comparable (to 0.02) to Gemma 1 in English", "Mistral 0.3 7B", "Gemma 1 7B",
         english),
        ("Llama 2 and OLMo are comparable (to 0.02) in other languages", "Llama 2 7B",
         "OLMo 1.7 7B", tasks),
    ):  # fmt: skip
        apart = of[one] - of[other]
        yield ("5", claim, "|difference| ≤ 0.02",
               ", ".join(f"{task} {value:+.3f}" for task, value in apart.items()),
               apart.abs() <= 0.02)  # fmt: skip
    averages = pd.concat([tasks["AVG"], english["AVG"]], axis=1).T
    order = ["Belebele", "m-MMLU", "m-ARC"]
    falls = tasks[p.models].apply(lambda model: model[order].is_monotonic_decreasing)
    yield ("5.1", "Belebele is the easiest of the three tasks, m-ARC the hardest",
           "averages fall from task to task",
           f"by the averages, though not for {' and '.join(falls.index[~falls])}",
           [(averages[a] > averages[b]).all() for a, b in (order[:2], order[1:])])  # fmt: skip


def _between_models(p: MexaTables) -> Iterator[Claim]:
    newer = p.table_1["Llama 2 7B"] > p.table_1["Llama 1 7B"]
    tasks = newer[[ENGLISH, OTHERS]]
    rows = list(p.table_1.loc[["FLORES", "Bible"]].index)
    said = ", ".join(f"{'above' if newer[row] else 'below'} in {' '.join(row)}" for row in rows)
    yield (
        "A.7",
        "the score is comparable between models (Llama 2 and Llama 1: as the tasks order them)",
        "above in scores ⇔ above in tasks",
        f"Llama 2 is above Llama 1 in {tasks.sum()} of {len(tasks)} rows of tasks, {said}",
        newer[rows] == newer[OTHERS].all(),
    )
    means = script_means(p)
    higher = means["Latin"] > means["other"]
    not_in = ", ".join(higher.index[~higher["quarter"]])
    yield (
        "A.7",
        "of very low-resource languages those in Latin script have higher scores",
        "mean of Latin > mean of others, lowest quarter",
        f"lowest quarter: in {higher['quarter'].sum()} of {len(higher)} models, not in {not_in}; "
        f"lowest half: in {higher['half'].sum()}",
        higher["quarter"],
    )
    arabic = p.table_6.loc[["arb_Arab", "arb_Latn"], ["Llama 1 7B", FIGURE_1_MODEL]]
    said = [f"{model} {of['arb_Arab']} and {of['arb_Latn']}" for model, of in arabic.items()]
    yield ("A.7", "Arabic is better in its own script than in Latin (Llama 1, Llama 3.1)",
           "arb_Arab > arb_Latn", ", ".join(said),
           arabic.loc["arb_Arab"] > arabic.loc["arb_Latn"])  # fmt: skip


def _of_counts(p: MexaTables) -> Iterator[Claim]:
    for model, largest in cosine_tests(p)["largest p"].items():
        yield ("5.3", f"the cosine correlates significantly lower ({model})",
               "Williams' test, p < 0.05 for all r₂₃",
               f"p < {10 ** np.ceil(np.log10(largest)):.0e} for every possible r23",
               largest < 0.05)  # fmt: skip
    table_3, table_4 = p.files["table3"], p.files["table4"].set_index("dataset")
    listed = set(missing_languages()) & set(table_3["code"])
    yield ("A.1", "none of the nine languages said to be missing is in Table 3", "∩ = ∅",
           f"{len(listed)} are", not listed)  # fmt: skip
    yield ("A.1", "all in Table 3 are above 0.005 %", "share > 0.005",
           f"least: {table_3['value'].min()} %", table_3["value"] > 0.005)  # fmt: skip
    tagging = ["Part of Speech Tagging", "Name Entity Recognition"]
    widest = table_4[~table_4["task"].isin(tagging)]["n_languages"].idxmax()
    yield ("Limitations", "Belebele has the most languages but for tagging", "argmax",
           widest, widest == "Belebele")  # fmt: skip
