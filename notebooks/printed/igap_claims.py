"""The printed tables of the IGAP paper, recomputed from each other (points, as printed)."""

from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from shared.igap_tables import other_sources
from xlx.measures import igap
from xlx.measures.igap import MEAN_TARGET
from xlx.results import paths

_FOLDER = paths.PUBLISHED / "igap"
#: Half a unit in the last place.
HALF_UNIT = 0.05
#: Examples of the validation sets; pairs of the 14 targets of a source.
VALIDATION_SIZES = {"XNLI": 2490, "PAWS-X": 2000}
N_PAIRS = 91
#: Title → file: Tables 6, 7, 3, 8 and 9.
TARGET_TABLES = {
    "XNLI": "table6_igap_xnli",
    "PAWS-X": "table7_igap_pawsx",
    "XNLI, algorithms": "table3_finetuning_algorithms_xnli",
    "PAWS-X, algorithms": "table8_finetuning_algorithms_pawsx",
    "MNLI + XNLI": "table9_igap_mnli_xnli",
}
#: Metrics as Table 1 writes them, and rows of Tables 3 and 8.
_METRICS = {"L_2": "L2", "Dot": "dot", "Cos": "cosine", "IGAP": "IGAP"}
_ALGORITHMS = {"VANILLA": "vanilla", "Vanilla": "vanilla", "GAUSSIAN": "Gaussian", "XTUNE": "xTune"}
#: The comparisons that the paper makes: (table, row) → (table, row).
COMPARED = (
    *((("XNLI", a), ("XNLI", b)) for a, b in pairwise(("XLM", "XLM-R", "InfoXLM", "XLM-R_large"))),
    (("PAWS-X", "XLM"), ("PAWS-X", "mBERT")),
    *((("PAWS-X", a), ("PAWS-X", b)) for a, b in pairwise(("XLM-R", "InfoXLM", "XLM-R_large"))),
    (("XNLI, algorithms", "vanilla"), ("XNLI, algorithms", "Gaussian")),
    (("XNLI, algorithms", "vanilla"), ("XNLI, algorithms", "xTune")),
    (("XNLI, algorithms", "Gaussian"), ("XNLI, algorithms", "xTune")),
    (("XNLI, algorithms", "Gaussian"), ("XNLI", "InfoXLM")),
    (("XNLI, algorithms", "xTune"), ("XNLI", "InfoXLM")),
    (("PAWS-X, algorithms", "vanilla"), ("PAWS-X, algorithms", "Gaussian")),
    (("PAWS-X, algorithms", "vanilla"), ("PAWS-X, algorithms", "xTune")),
    (("XNLI", "XLM-R"), ("MNLI + XNLI", "XLM-R")),
    (("XNLI", "XLM-R_large"), ("MNLI + XNLI", "XLM-R_large")),
    (("MNLI + XNLI", "InfoXLM"), ("MNLI + XNLI", "XLM-R_large")),
)


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(_FOLDER / f"{name}.csv")


def stated(section: str) -> pd.DataFrame:
    """What the text of a section states: ``quantity`` and ``value``."""
    table = _read("text_results").set_index("claim_id")
    return table.loc[table["section"].astype(str).str.startswith(section), ["quantity", "value"]]


# --- IGAP by target (Tables 3 and 6 to 9) ---------------------------------------------------------


def target_tables() -> dict[str, pd.DataFrame]:
    """Title of `TARGET_TABLES` → row by target, and the columns ``avg`` and ``accuracy``."""
    tables = {}
    for title, file in TARGET_TABLES.items():
        table = _read(file)
        table["row"] = table["algorithm" if "algorithm" in table else "model"].replace(_ALGORITHMS)
        table["target"] = table["target_language"].where(table["quantity"] == "IGap", "accuracy")
        wide = table.pivot(index="row", columns="target", values="value")
        tables[title] = wide.loc[table["row"].drop_duplicates()]
    return tables


def recomputed_averages(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Which divisor gives each printed average: ``n`` or n - 1; by (table, row).

    ``half``: half width of the widest 95 % interval that the examples leave, all languages being
    wrong on the same ones.
    """
    rows = []
    for title, table in tables.items():
        entries = table.drop(columns=["avg", "accuracy"])
        n = entries.shape[1]
        size = VALIDATION_SIZES[title.split(",")[0].split(" + ")[-1]]
        for row, values in entries.iterrows():
            share, total, printed = values.to_numpy() / 100, values.sum(), table.loc[row, "avg"]
            half = 196 * np.sqrt(share * (1 - share) / size).mean()
            fits = [
                str(k)
                for k in (n - 1, n)
                if abs(total / k - printed) <= HALF_UNIT + HALF_UNIT * n / k
            ]
            rows.append(
                (title, row, n, printed, total / n, total / (n - 1), " or ".join(fits), half)
            )
    columns = ["table", "row", "n", "printed", "sum / n", "sum / (n - 1)", "divisor", "half"]
    return pd.DataFrame(rows, columns=columns).set_index(["table", "row"])


def row_changes(tables: dict[str, pd.DataFrame], averages: pd.DataFrame) -> pd.DataFrame:
    """What averages taken alike change in the comparisons of `COMPARED`.

    ``t``: half width of the 95 % interval with the languages as replicates; ``widest``: that which
    the examples leave, errors of the two being independent and in all languages on the same ones.
    """
    rows = []
    for (title, first), (other, second) in COMPARED:
        a, b = tables[title].loc[first], tables[other].loc[second]
        both = (a - b).drop(["avg", "accuracy"])
        low, high = stats.ttest_1samp(both, 0).confidence_interval()
        shift = "" if title == other else f" ({other})"
        widest = np.hypot(
            averages.loc[(title, first), "half"], averages.loc[(other, second), "half"]
        )
        rows.append(
            {
                "table": title,
                "from → to": f"{first} → {second}{shift}",
                "printed": a["avg"] - b["avg"],
                "alike": both.mean(),
                "t": (high - low) / 2,
                "widest": "" if "MNLI" in title + other else f"{widest:.2f}",
                "lower in": f"{(both.round(1) > 0).sum()} of {len(both)}",
                "accuracy gained": b["accuracy"] - a["accuracy"],
            }
        )
    return pd.DataFrame(rows).set_index(["table", "from → to"])


def drawn_averages(tables: dict[str, pd.DataFrame], averages: pd.DataFrame) -> pd.DataFrame:
    """Averages as printed and recomputed, and accuracies, in [0, 1], for `plots.igap`."""
    table = averages.reset_index().rename(columns={"table": "task"})
    accurate = pd.concat([of["accuracy"] for of in tables.values()]).to_numpy()
    means = table["sum / n"] / 100
    # the window of Table 9 is not at training error 0, so its gap is no share of wrong answers
    bars = table["half"].where(table["task"] != "MNLI + XNLI") / 100
    of_igap = table.assign(quantity="IGAP")
    return pd.concat(
        [
            of_igap.assign(kind="printed", value=table["printed"] / 100),
            of_igap.assign(kind="recomputed", value=means, low=means - bars, high=means + bars),
            table.assign(quantity="accuracy", kind="printed", value=accurate / 100),
        ]
    )[["task", "quantity", "row", "kind", "value", "low", "high"]]


def untranslated_pairs() -> pd.DataFrame:
    """Of XTREME's dev part of PAWS-X, by language, per cent of pairs without a translation."""
    counted = _read("pawsx_dev").set_index("language")
    return 100 * counted[["untranslated", "paraphrases_in_english"]].div(counted["pairs"], axis=0)


def german_excess(table: pd.DataFrame) -> pd.DataFrame:
    """IGAP in German less the mean of Spanish and French; without untranslated pairs (XTREME)."""
    gaps, share = table[["de", "es", "fr"]], untranslated_pairs()
    left = {"printed": gaps}
    for column in share:
        left[f"without {column.replace('_', ' ')}"] = gaps - share.loc[gaps.columns, column]
    excess = {title: rest["de"] - rest[["es", "fr"]].mean(axis=1) for title, rest in left.items()}
    return pd.DataFrame(excess)


# --- ranking of directions (Tables 1 and 5) -------------------------------------------------------


def printed_rankings() -> tuple[pd.DataFrame, pd.Series]:
    """Table 1 in per cent, source by metric, and its averages."""
    table = _read("table1_tdr_xnli").replace({"metric": _METRICS})
    averages = table[table["source_language"] == "avg"].set_index("metric")["value"]
    rows = table[table["source_language"] != "avg"]
    wide = rows.pivot(index="source_language", columns="metric", values="value")
    return wide[list(averages.index)], averages


def random_tail(n: int = 14) -> np.ndarray:
    """P(k pairs or more in the right order) of a random order of n languages, k from 0."""
    orders = np.ones(1)  # how many orders have 0, 1, ... pairs right
    for k in range(2, n + 1):
        orders = np.convolve(orders, np.ones(k))
    return orders[::-1].cumsum()[::-1] / orders.sum()


def ranking_counts() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table 1 by metric, recomputed from counts of pairs; and what these counts are held against.

    The second has the largest distance from a multiple of 1/91, in points, and how many of the 91
    pairs fewer than 5 % of random orders reach.
    """
    table, averages = printed_rankings()
    counts = (table * N_PAIRS / 100).round()
    enough = int(np.argmax(random_tail() < 0.05))
    best = table.eq(table.max(axis=1), axis=0)
    summary = pd.DataFrame(
        {
            "printed average": averages,
            "recomputed": (100 * counts / N_PAIRS).mean(),
            "best in": best.sum(),
            "beyond random orders": (counts >= enough).sum(),
            "below 50": (table < 50).sum(),
            "of these best": ((table < 50) & best).sum(),
        }
    )
    off = (100 * counts / N_PAIRS - table).abs().max(axis=None)
    held = {"largest distance from k / 91, points": round(off, 2), "pairs of 91, p < 0.05": enough}
    return summary, pd.Series(held, dtype=object).to_frame("value")


def english_rankings() -> pd.DataFrame:
    """The metrics from English: Table 1, and after MultiNLI Table 5."""
    table, _ = printed_rankings()
    table_5 = _read("table5_tdr_mnli").set_index("metric")["value"].rename(_METRICS)
    return pd.DataFrame({"Table 1, en": table.loc["en"], "Table 5, en (MNLI)": table_5})


# --- the transfer gap (Figure 6) ------------------------------------------------------------------


def transfer_gaps() -> pd.DataFrame:
    """Figure 6: ``source``, ``target``, ``transfer_gap`` in [-1, 1]."""
    table = _read("figure6_transfer_gap_xnli")
    table = table.rename(columns={"source_language": "source", "target_language": "target"})
    return table.assign(transfer_gap=table["value"] / 100)[["source", "target", "transfer_gap"]]


def other_sources_order() -> pd.Series:
    """How well the other sources' mean orders the targets of each source by Figure 6."""
    gaps = transfer_gaps()
    gold = gaps[gaps["source"] != gaps["target"]].assign(score=-gaps["transfer_gap"])
    gold = gold[["source", "target", "score"]].reset_index(drop=True)
    ranked = igap.rank_directions(gold, other_sources(gold))
    accuracy = 100 * ranked.set_index("source")["accuracy"]
    least = accuracy.drop(MEAN_TARGET)
    return pd.Series({"mean": accuracy[MEAN_TARGET], f"least ({least.idxmin()})": least.min()})


def _off_diagonal() -> pd.DataFrame:
    gap = 100 * transfer_gaps().pivot(index="source", columns="target", values="transfer_gap")
    return gap.where(~np.eye(len(gap), dtype=bool))


def gap_extremes() -> pd.DataFrame:
    """How many transfer gaps are below 0, and which source is best and worst for how many."""
    off = _off_diagonal()

    def counted(sources: pd.Series) -> str:
        return ", ".join(f"{source} {n}" for source, n in sources.value_counts().items())

    rows = {
        "directions": off.count().sum(),
        "below 0": (off < 0).sum().sum(),
        "best source (of how many targets)": counted(off.idxmin()),
        "worst source": counted(off.idxmax()),
    }
    return pd.Series(rows).to_frame("Figure 6")


def gap_by_ease() -> tuple[pd.Series, pd.DataFrame]:
    """How far Figure 6 is a term for each source and one for each target, and their means."""
    off = _off_diagonal()
    values = off.stack().dropna()
    terms = [pd.get_dummies(values.index.get_level_values(axis)) for axis in ("source", "target")]
    design = pd.concat(terms, axis=1).to_numpy(float)
    fitted = design @ np.linalg.lstsq(design, values.to_numpy(), rcond=None)[0]
    left = ((values - fitted) ** 2).sum() / ((values - values.mean()) ** 2).sum()
    odd = (off - off.T).stack().dropna() / 2
    means = pd.DataFrame({"as a source": off.mean(axis=1), "as a target": off.mean()})
    shares = {
        "variance by a term a source and a target, %": 100 * (1 - left),
        "squares with gap(s, t) = -gap(t, s), %": 100 * (odd**2).sum() / (values**2).sum(),
        "correlation of the two means": means.corr().iloc[0, 1],
    }
    return pd.Series(shares), means.sort_values("as a target")
