"""The printed averages of the IGAP paper, taken alike (points, as printed).

What follows from the tables, and what the paper says of them, are functions (`printed.evaluator`).
"""

from functools import cached_property

import numpy as np
import pandas as pd

from printed.evaluator import (
    Paper,
    consistency,
    explained,
    number,
    off_diagonal,
    p_of_hits,
    sentence,
)
from shared import ranking
from xlx.results import paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

#: Half a unit in the last place.
HALF_UNIT = 0.05
#: Examples of the validation sets.
VALIDATION_SIZES = {"XNLI": 2490, "PAWS-X": 2000}


class IgapTables(Paper):
    """The transcribed tables.

    Attributes
    ----------
    target_tables : by title ("XNLI", "PAWS-X, algorithms"; Tables 3 and 6 to 9), row by target, and
        the columns ``avg`` and ``accuracy``.
    compared : the comparisons that the paper makes: table, row, other table, its row.
    enough : pairs of 91 in the right order that chance seldom has (p < 0.05).
    transfer_gaps : Figure 6: ``source``, ``target``, ``transfer_gap`` in [-1, 1].
    """

    enough = 62

    def __init__(self) -> None:
        super().__init__(paths.PUBLISHED / "igap")

    @cached_property
    def recomputed_averages(self) -> pd.DataFrame:
        """Which divisor gives each printed average: ``n`` or n - 1; by (table, row).

        ``half``: half width of the widest 95 % interval that the examples leave, all languages
        being wrong on the same ones.
        """
        tables = {}
        for title, table in self.target_tables.items():
            entries, printed = table.drop(columns=["avg", "accuracy"]), table["avg"]
            n, total, share = entries.shape[1], entries.sum(axis=1), entries / 100
            size = VALIDATION_SIZES[title.split(",")[0].split(" + ")[-1]]
            fits = [(total / k - printed).abs() <= HALF_UNIT * (1 + n / k) for k in (n - 1, n)]
            divisor = fits[0].map({True: f"{n - 1} or ", False: ""})
            divisor += fits[1].map({True: f"{n}", False: ""})
            tables[title] = pd.DataFrame(
                {
                    "n": n,
                    "printed": printed,
                    "sum / n": total / n,
                    "sum / (n - 1)": total / (n - 1),
                    "divisor": divisor.str.removesuffix(" or "),
                    "half": 196 * np.sqrt(share * (1 - share) / size).mean(axis=1),
                }
            )
        return pd.concat(tables, names=["table", "row"])

    def row_changes(self) -> pd.DataFrame:
        """What averages taken alike change in the comparisons of the paper.

        ``t``: half width of the 95 % interval with the languages as replicates; ``widest``: that
        which the examples leave, errors of the two being independent and in all languages on the
        same ones.
        """
        rows, half = [], self.recomputed_averages["half"]
        for title, first, other, second in self.compared:
            a, b = self.target_tables[title].loc[first], self.target_tables[other].loc[second]
            both = (a - b).drop(["avg", "accuracy"])
            low, high = stats.ttest_1samp(both, 0).confidence_interval()
            widest = np.hypot(half[title, first], half[other, second])
            rows.append(
                {
                    "table": title,
                    "from → to": f"{first} → {second}" + ("" if title == other else f" ({other})"),
                    "printed": a["avg"] - b["avg"],
                    "alike": both.mean(),
                    "t": (high - low) / 2,
                    "widest": "" if "MNLI" in title + other else f"{widest:.2f}",
                    "lower in": f"{(both.round(1) > 0).sum()} of {len(both)}",
                    "accuracy gained": b["accuracy"] - a["accuracy"],
                }
            )
        return pd.DataFrame(rows).set_index(["table", "from → to"])

    def other_sources_order(self) -> pd.Series:
        """How well the other sources' mean orders the targets of each source by Figure 6."""
        gaps = self.transfer_gaps.query("source != target").set_index(["source", "target"])
        gold = -gaps["transfer_gap"]
        accuracy = 100 * ranking.accuracies(gold, ranking.other_sources(gold).to_frame()).iloc[:, 0]
        least = {f"least ({accuracy.idxmin()})": accuracy.min()}
        return pd.Series({"mean": accuracy.mean(), **least})


# --- what follows, and what is said --------------------------------------------------------------


def metrics():
    return {"L_2": "L2", "Dot": "dot", "Cos": "cosine", "IGAP": "IGAP"}


def titles():
    return {
        3: "XNLI, algorithms",
        6: "XNLI",
        7: "PAWS-X",
        8: "PAWS-X, algorithms",
        9: "MNLI + XNLI",
    }


def target_tables(files, titles):
    algorithms = {
        "VANILLA": "vanilla",
        "Vanilla": "vanilla",
        "GAUSSIAN": "Gaussian",
        "XTUNE": "xTune",
    }
    tables = {}
    for k in (6, 7, 3, 8, 9):
        file = files[f"table{k}"]
        row = file[file.columns[1]].replace(algorithms)
        target = file["target_language"].where(file["quantity"] == "IGap", "accuracy")
        rows = file.assign(row=row, target=target)
        tables[titles[k]] = rows.pivot(index="row", columns="target", values="value").loc[
            row.unique()
        ]
    return tables


def tables(titles, target_tables):
    return {k: target_tables[title].drop(columns="accuracy") for k, title in titles.items()}


def accuracies(titles, target_tables):
    return {k: target_tables[title]["accuracy"] for k, title in titles.items()}


def entries(tables):
    return {k: printed.drop(columns="avg") for k, printed in tables.items()}


def means(entries):
    return {k: targets.mean(axis=1) for k, targets in entries.items()}


def by_igap(means):
    """Models from the lowest mean of targets, by number of the table."""
    return {k: means[k].sort_values().index.tolist() for k in [6, 7, 9]}


def by_print(tables):
    """Models from the lowest printed average."""
    return {k: tables[k]["avg"].sort_values().index.tolist() for k in [6, 7, 9]}


def averages_2(table2):
    return table2.pivot(index="model", columns=["task", "quantity"], values="value")


def compared():
    return [
        ("XNLI", "XLM", "XNLI", "XLM-R"),
        ("XNLI", "XLM-R", "XNLI", "InfoXLM"),
        ("XNLI", "InfoXLM", "XNLI", "XLM-R_large"),
        ("PAWS-X", "XLM", "PAWS-X", "mBERT"),
        ("PAWS-X", "XLM-R", "PAWS-X", "InfoXLM"),
        ("PAWS-X", "InfoXLM", "PAWS-X", "XLM-R_large"),
        ("XNLI, algorithms", "vanilla", "XNLI, algorithms", "Gaussian"),
        ("XNLI, algorithms", "vanilla", "XNLI, algorithms", "xTune"),
        ("XNLI, algorithms", "Gaussian", "XNLI, algorithms", "xTune"),
        ("XNLI, algorithms", "Gaussian", "XNLI", "InfoXLM"),
        ("XNLI, algorithms", "xTune", "XNLI", "InfoXLM"),
        ("PAWS-X, algorithms", "vanilla", "PAWS-X, algorithms", "Gaussian"),
        ("PAWS-X, algorithms", "vanilla", "PAWS-X, algorithms", "xTune"),
        ("XNLI", "XLM-R", "MNLI + XNLI", "XLM-R"),
        ("XNLI", "XLM-R_large", "MNLI + XNLI", "XLM-R_large"),
        ("MNLI + XNLI", "InfoXLM", "MNLI + XNLI", "XLM-R_large"),
    ]


def german_excess(target_tables, pawsx):
    """What German has more than Spanish and French, with and without untranslated pairs."""
    romance = target_tables["PAWS-X"][["de", "es", "fr"]]
    counted = pawsx.set_index("language").loc[romance.columns]
    left = {"printed": romance}
    for column in ["untranslated", "paraphrases_in_english"]:
        share = 100 * counted[column] / counted["pairs"]
        left[f"without {column.replace('_', ' ')}"] = romance - share
    return pd.DataFrame(
        {title: rest["de"] - rest[["es", "fr"]].mean(axis=1) for title, rest in left.items()}
    )


def table_1(table1, metrics):
    return (
        table1.replace({"metric": metrics})
        .pivot(index="metric", columns="source_language", values="value")
        .loc[list(metrics.values())]
    )


def sources(table_1):
    return table_1.drop(columns="avg")


def right(sources):
    """Pairs of 91 that a metric orders rightly, by source."""
    return (sources * 91 / 100).round()


def table_5(table5, metrics):
    return table5.set_index("metric")["value"].rename(metrics)


def right_5(table_5):
    return (table_5 * 91 / 100).round()


def metrics_of_states(table_1):
    return table_1["avg"].drop("IGAP")


def ranking_counts(table_1, right, enough, sources):
    """By metric: averages, and in how many sources it is best, beyond chance or below 50."""
    best = sources.eq(sources.max())
    return pd.DataFrame(
        {
            "printed average": table_1["avg"],
            "recomputed": (100 * right / 91).mean(axis=1),
            "best in": best.sum(axis=1),
            "beyond random orders": (right >= enough).sum(axis=1),
            "below 50": (sources < 50).sum(axis=1),
            "of these best": ((sources < 50) & best).sum(axis=1),
        }
    )


def transfer_gaps(figure6):
    return figure6.rename(
        columns={"source_language": "source", "target_language": "target"}
    ).assign(transfer_gap=figure6["value"] / 100)[["source", "target", "transfer_gap"]]


def gap(transfer_gaps):
    """Figure 6, source by target, in points."""
    return 100 * transfer_gaps.pivot(index="source", columns="target", values="transfer_gap")


def from_english(gap):
    return gap.loc["en"].drop("en")


def of_xlmr(entries, from_english):
    """IGAP of XLM-R, in the order of `from_english`."""
    return entries[6].loc["XLM-R"][from_english.index]


def directions(gap):
    return off_diagonal(gap)


def between(directions):
    return directions.stack().dropna()


def gap_extremes(between):
    """Of Figure 6: directions below 0, and which sources are best and worst."""
    return pd.DataFrame({"Figure 6": pd.Series(ranking.extreme_sources(between))})


def gap_by_ease(between, directions):
    """How far gaps are differences of two terms, of a source and a target."""
    turned = ((directions - directions.T) / 2).stack().dropna()
    ease = pd.DataFrame(
        {"as a source": directions.mean(axis=1), "as a target": directions.mean()}
    ).sort_values("as a target")
    return pd.Series(
        {
            "variance by a term a source and a target, %": 100 * explained(between, 0, 1),
            "squares with gap(s, t) = -gap(t, s), %": 100 * (turned**2).sum() / (between**2).sum(),
            "correlation of the two means": ease.corr().iloc[0, 1],
        }
    )


def left_at_1(number):
    return 100 - number("igap_t05") - number("igap_t06")


@number("Table {}, by its targets", "{1}, avg")
def averages_of_targets(tables, means):
    for k, printed in tables.items():
        yield (k,), means[k], printed["avg"], 0.1


@number("Table 2, by Table {1}", "{0}, {2}, IGAP")
def gaps_of_table_2(averages_2, tables):
    for task, k in [("XNLI", 6), ("PAWS-X", 7)]:
        yield (task, k), tables[k]["avg"], averages_2[task, "IGap"], 0.05


@number("Table 2, by Table {1}", "{0}, {2}, accuracy")
def accuracies_of_table_2(averages_2, accuracies):
    for task, k in [("XNLI", 6), ("PAWS-X", 7)]:
        yield (task, k), accuracies[k], averages_2[task, "test_acc"], 0.05


@number("Table {}, by Table {}", "vanilla, {2}")
def vanilla_of_table_3(tables):
    for k, first in [(3, 6), (8, 7)]:
        yield (k, first), tables[first].loc["XLM-R"], tables[k].loc["vanilla"], 0.05


@number("Table 1, by shares of 91 pairs", "{}, {}")
def shares_of_pairs(right, sources):
    yield (), 100 * right.stack() / 91, sources.stack(), 0.05


@number("Table 1, by its sources", "{}, avg")
def averages_of_sources(right, table_1):
    yield (), 100 * right.mean(axis=1) / 91, table_1["avg"], 0.05


@number("Table 5, by shares of 91 pairs", "{}")
def shares_of_table_5(right_5, table_5):
    yield (), 100 * right_5 / 91, table_5, 0.05


@sentence(
    "4.1", "IGAP is positive", "IGAP shows not only consistent positive transferability", "IGAP > 0"
)
def igap_is_positive(tables):
    return (
        [part.min(axis=None) > 0 for part in tables.values()],
        f"least: {min(part.min(axis=None) for part in tables.values())}",
    )


@sentence(
    "4.2",
    "IGAP is the best metric in 13 out of 15 source languages",
    "IGAP achieves the best TDR accuracy in 13 out of 15 languages",
    "argmax",
)
def best_metric(sources, text):
    igap_best = sources.idxmax() == "IGAP"
    return f"{igap_best.sum()} out of {len(igap_best)}" == text["igap_t01"], (
        f"in {igap_best.sum()} of {len(igap_best)}, not in {', '.join(igap_best.index[~igap_best])}"
    )


@consistency(
    "4.2",
    "IGAP ranks better than a random order (62 of 91 pairs, p < 0.05)",
    "pairs in the right order ≥ 62",
)
def better_than_random(right, enough):
    return right.loc["IGAP"] >= enough, (
        f"in {(right.loc['IGAP'] >= enough).sum()} of 15 sources, L2 in "
        f"{(right.loc['L2'] >= enough).sum()}, Cos in {(right.loc['cosine'] >= enough).sum()}"
        f", Dot in {(right.loc['dot'] >= enough).sum()}"
    )


@sentence(
    "4.2",
    "IGAP ranks better than each representation-based metric",
    "representation-based metrics perform less well than IGAP",
    "sign test over sources, p < 0.05",
)
def better_than_states(right, metrics_of_states):
    # in how many sources IGAP orders more pairs than each metric of states
    over_states = right.loc[metrics_of_states.index].lt(right.loc["IGAP"]).sum(axis=1)
    p_over_states = over_states.map(lambda wins: 2 * p_of_hits(wins, 15, 0.5))
    return p_over_states < 0.05, (
        "better than "
        f"{', '.join(f'{metric} in {wins}' for metric, wins in over_states.items())} of 15, p "
        f"at most {p_over_states.max():.4f}; sources taken as independent"
    )


@sentence(
    "6",
    "representation metrics predict about 65% of the orders (to 1 point)",
    "only successfully predict about 65% of the language orders",
    "|average - 65| < 1",
)
def about_65(metrics_of_states, number):
    return (metrics_of_states - number("igap_t02")).abs() < 1, (
        f"{', '.join(f'{metric} {average}' for metric, average in metrics_of_states.items())}"
        f"; together {metrics_of_states.mean():.1f}"
    )


@consistency(
    "Table 5",
    "the order from English is that of Table 1 but for exchanges of neighbours in the gold order",
    "pairs gained: all odd or all even",
)
def neighbours_exchanged(right_5, right):
    gain_5 = (right_5 - right["en"]).astype(int)
    return (gain_5 % 2).nunique() == 1, f"{gain_5.to_dict()}"


@consistency(
    "Tables 2, 9",
    "averages taken alike leave the order of the models",
    "the same order by sums / n",
)
def alike_by_average(by_igap, by_print):
    return [by_igap[k] == by_print[k] for k in [6, 7, 9]], f"Table 7: {', '.join(by_igap[7])}"


@consistency("Tables 2, 9", "the order by IGAP is that by accuracy", "the same order")
def alike_by_accuracy(by_igap, accuracies):
    by_accuracy = {k: (-accuracies[k]).sort_values().index.tolist() for k in [6, 7, 9]}
    return (
        [by_igap[k] == by_accuracy[k] for k in [6, 7, 9]],
        f"not in Table 7: {', '.join(by_accuracy[7])} by accuracy",
    )


@consistency(
    "Tables 2, 3",
    "Gaussian noise and xTune (19.5) are better than InfoXLM (20.0)",
    "mean over targets lower",
)
def noise_and_xtune(means):
    return (
        [means[3][name] < means[6]["InfoXLM"] for name in ["Gaussian", "xTune"]],
        f"averaged alike {means[3]['Gaussian']:.2f} and {means[3]['xTune']:.2f} to "
        f"{means[6]['InfoXLM']:.2f}",
    )


@sentence(
    "5.2",
    "both algorithms consistently have lower IGAP than vanilla",
    "consistently have lower IGAP than the VANILLA fine-tuning algorithm",
    "lower in each target",
)
def consistently_lower(entries):
    lower = [entries[k].drop("vanilla") < entries[k].loc["vanilla"] for k in (3, 8)]
    first, second = (part.to_numpy().ravel() for part in lower)
    result = f"Table 3: in {first.sum()} of 28, Table 8: in {second.sum()} of 12"
    return [*first, *second], result


@sentence(
    "B",
    "IGAP after MultiNLI is very similar on average (to 1 point)",
    "very similar average IGAP scores with the scores in Table 6",
    "|Table 9 - Table 6| < 1, sums / n",
)
def similar_after_multinli(means):
    rise_9 = means[9] - means[6]
    return (
        rise_9.abs() < 1,
        f"{', '.join(f'{model} {rise:+.2f}' for model, rise in rise_9.items())}",
    )


@sentence(
    "B",
    "test accuracy is much better after MultiNLI (by more than 3 points)",
    "much better test accuracy",
    "Table 9 - Table 6 > 3",
)
def accuracy_after_multinli(accuracies):
    gain_9 = accuracies[9] - accuracies[6]
    return gain_9 > 3, f"{', '.join(f'{model} {gain:+.1f}' for model, gain in gain_9.items())}"


@sentence(
    "Equation 2, Figure 6",
    "the transfer gap is on the validation sets (where it is at least Table 6)",
    "subtracting the performance on target-language validation sets from the "
    "performance on the source-language validation set",
    "gap(en, t) ≥ IGAP(t)",
)
def validation_sets(from_english, of_xlmr):
    return from_english >= of_xlmr - 0.1, (
        f"from English smaller in {(from_english < of_xlmr - 0.1).sum()} of {len(of_xlmr)} "
        f"targets, mean {from_english.mean():.1f} to {of_xlmr.mean():.1f}, if XLM-R learnt "
        "those sets to no error"
    )


@consistency(
    "5.4",
    "accuracy and IGAP at corruption 1 are of models in the window of training error",
    "100 - accuracy - IGAP < 0.1",
)
def window_at_corruption_1(left_at_1, number):
    return (left_at_1 - 0.1) / 100 <= number("igap_t09"), (
        f"{left_at_1:.1f} points are left, {np.ceil((left_at_1 - 0.1) * 24.9):.0f} examples "
        f"or more; the window is {100 * number('igap_t09'):.1f} points"
    )


@sentence(
    "5.4",
    "random labels that do not transfer leave 33.3% and 66.7%",
    "the accuracy and IGAP should be 33.3% and 66.7% for random prediction",
    "accuracy + IGAP = 100",
)
def untransferred_labels(number):
    return (
        abs(number("igap_t03") + number("igap_t04") - 100) < 0.1,
        f"{number('igap_t03') + number('igap_t04'):.1f}",
    )


@sentence(
    "4.1, Figure 1b",
    "XLM-R, InfoXLM and XLM-R large are in descending order of IGAP most of the time",
    "are in descending order of IGAP",
)
def descending_order(entries):
    listed = sum((entries[k].loc["InfoXLM"] > entries[k].loc["XLM-R_large"]).sum() for k in [6, 7])
    return [], (
        "a figure without numbers; in Tables 6 and 7 from XLM-R to InfoXLM in "
        f"{sum((entries[k].loc['XLM-R'] > entries[k].loc['InfoXLM']).sum() for k in [6, 7])} "
        f"of 20 targets, to XLM-R large in {listed} of 20"
    )


@sentence(
    "4.1, Figure 1b",
    "IGAP grows as the training error falls",
    "a consistent increasing trend when models have lower training errors",
)
def grows_in_training():
    return [], "a figure without numbers"


@sentence(
    "5.3",
    "the transfer gap is negative in some directions",
    "cross-lingual transfer gap not only produces negative gap scores",
    "gap < 0",
)
def negative_gaps(between):
    return (
        (between < 0).sum() > 0,
        f"in {(between < 0).sum()} of {len(between)} directions of Figure 6",
    )


@sentence(
    "5.3",
    "the transfer gap does not name English as the best source (Figure 6)",
    "fails to measure transferability",
    "lowest gap by target",
)
def english_as_source(directions):
    listed = ", ".join(
        f"{source} {n}"
        for source, n in directions.drop(columns="en").idxmin().value_counts().items()
    )
    return (
        (directions.drop(columns="en").idxmin() != "en").all(),
        f"best source of the 14 other targets by it: {listed}",
    )


@sentence("5.3, Figure 2b", "the matrix of IGAP is asymmetric", "the IGAP matrix is asymmetric")
def asymmetric_matrix():
    return [], "a figure without intervals"


@sentence(
    "5.4",
    "random labels cross: accuracy above that of guessing",
    "even randomly-generated knowledge can also be transferred",
    "62.6 > 33.3",
)
def random_labels_cross(number):
    return (
        number("igap_t05") > number("igap_t03"),
        f"{number('igap_t05')} to {number('igap_t03')}; shared strings are not measured",
    )
