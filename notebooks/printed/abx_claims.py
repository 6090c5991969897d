"""What the ABX paper prints, and what follows from it: Table 1 above all.

A row of Table 1 has R², two coefficients and how significant each is, and not the correlation of LD
and MD that would tie them together. But R² leaves the two t values a curve: with n rows and a
correlation r of the predictors,

    t₁² + t₂² + 2 r t₁ t₂ = (1 - r²) R² (n - 3) / (1 - R²)

(of the standardised coefficients βⱼ, R² = β₁² + β₂² + 2 r β₁ β₂, and tⱼ² is βⱼ² (1 - r²) (n - 3) /
(1 - R²)). A row is possible for those r for which a point of the curve has the printed signs and
significances: `possible_correlations`. What the paper says follows, a function a claim
(`printed.evaluator`).
"""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from printed.evaluator import (
    Paper,
    columns,
    consistency,
    number,
    p_of_hits,
    p_of_r,
    p_of_t,
    sentence,
)
from xlx.results import paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

#: Observations behind a row of Table 1 (Table 2 and section 5.1): languages, or ordered pairs.
N_ROWS = {
    ("probing_monolingual", "POS"): 36,
    ("probing_monolingual", "NER"): 36,
    ("probing_monolingual", "NLI"): 13,
    ("cross_lingual", "POS"): 18 * 17,
    ("cross_lingual", "NER"): 18 * 17,
    ("cross_lingual", "NLI"): 13 * 12,
}
#: Steps of the correlation and of the angle around the curve.
_CORRELATIONS = np.round(np.arange(-0.995, 1, 0.005), 3)
_ANGLES = np.linspace(0, 2 * np.pi, 7201)


@dataclass(frozen=True)
class TableRow:
    """A row of Table 1: R², signs of the coefficients, and how large |t| is, of LD and of MD."""

    setting: str
    task: str
    checkpoint: str
    n: int
    r_squared: float
    signs: tuple[int, int]
    p_values: tuple[str, str]  # as printed: "p < .01", "n.s."

    @property
    def name(self) -> str:
        """As printed: "CL POS Last"."""
        kind = "Prob." if self.setting.startswith("probing") else "CL"
        return f"{kind} {self.task} {self.checkpoint}"

    @property
    def f_value(self) -> float:
        """F of the regression, on 2 and n - 3 degrees of freedom."""
        return self.r_squared / 2 / ((1 - self.r_squared) / (self.n - 3))

    @property
    def p_value(self) -> float:
        """The p-value of F."""
        return float(stats.f.sf(self.f_value, 2, self.n - 3))

    def t_values(self, r: float) -> tuple[np.ndarray, np.ndarray]:
        """The t values of LD and MD that R² leaves, if LD and MD correlate by r, as printed."""
        scale = np.sqrt(2 * self.f_value)
        # With u = t₁ + r t₂ the curve is the circle u² + (1 - r²) t₂² = (1 - r²) scale².
        second = scale * np.sin(_ANGLES)
        first = scale * np.sqrt(1 - r**2) * np.cos(_ANGLES) - r * second
        fits = np.ones(len(_ANGLES), dtype=bool)
        for t, sign, printed in zip((first, second), self.signs, self.p_values, strict=True):
            fits &= (np.sign(t) == sign) & self._significant(np.abs(t), printed)
        return first[fits], second[fits]

    def _significant(self, size: np.ndarray, printed: str) -> np.ndarray:
        """Which |t| are what is printed of them."""
        level = re.fullmatch(r"p < (\.\d+)", printed)
        bound = stats.t.isf((float(level[1]) if level else 0.05) / 2, self.n - 3)
        return size > bound if level else size <= bound


class AbxNumbers(Paper):
    """The printed numbers, read from ``data/published/abx``."""

    def __init__(self) -> None:
        super().__init__(paths.PUBLISHED / "abx")

    @cached_property
    def rows(self) -> list[TableRow]:
        """The rows of Table 1."""
        rows = []
        for key, part in self.table1.groupby(["setting", "task", "checkpoint"], sort=False):
            by_term = part.set_index(part["predictor"].fillna("R2"))
            signs = tuple(int(np.sign(by_term.loc[name, "value"])) for name in ("LD", "MD"))
            printed = tuple(by_term.loc[name, "p_value"] for name in ("LD", "MD"))
            rows.append(
                TableRow(*key, N_ROWS[key[:2]], float(by_term.loc["R2", "value"]), signs, printed)
            )
        return rows

    @cached_property
    def possible(self) -> dict[str, np.ndarray]:
        """By row of Table 1: `possible_correlations`."""
        return {row.name: possible_correlations(row) for row in self.rows}

    def limits(self, r: float) -> pd.DataFrame:
        """What each row of Table 1 implies: its F, and the t values at a correlation of LD and MD.

        One row per row: ``n``, ``R2``, ``F``, ``p of F``; ``t of LD``, ``t of MD``, from the least
        to the largest at ``r`` (or "none"); then how significant ``LD`` and ``MD`` are printed.
        """
        rows = []
        for row in self.rows:
            ends = [
                f"{t.min():.1f} to {t.max():.1f}" if len(t) else "none" for t in row.t_values(r)
            ]
            whole = row.n, row.r_squared, row.f_value, row.p_value
            rows.append((row.name, *whole, *ends, *row.p_values))
        columns = ["row", "n", "R2", "F", "p of F", "t of LD", "t of MD", "LD", "MD"]
        return pd.DataFrame(rows, columns=columns).set_index("row")


def possible_correlations(row: TableRow) -> np.ndarray:
    """Correlations of LD and MD for which a row of Table 1 is possible, in steps of 0.005."""
    return np.array([r for r in _CORRELATIONS if len(row.t_values(r)[0])])


# --- what follows, and what is said --------------------------------------------------------------


def ticked(table2):
    """By task and setup: the languages that Table 2 ticks."""
    return {
        key: set(part["code"])
        for key, part in table2[table2["included"] == 1]
        .fillna({"setup": ""})
        .groupby(["task", "setup"])
    }


def pos(ticked):
    return ticked["POS", "CL"]


def ner(ticked):
    return ticked["NER", "CL"]


def schedule():
    """Steps of the checkpoints (footnote 4)."""
    return sorted({*range(5000, 50001, 5000), *range(50000, 1500001, 50000)})


def examples():
    """The items of the example of Appendix A: language and meaning."""
    return {
        "LD": {
            "X": ("English", "weather"),
            "A": ("English", "groceries"),
            "B": ("French", "groceries"),
        },
        "MD": {
            "X": ("English", "weather"),
            "A": ("French", "weather"),
            "B": ("French", "groceries"),
        },
    }


def shared_variables(examples):
    """By task and pair of items, what the two share."""
    return pd.DataFrame(
        {
            task: {
                f"{first} and {second}": ", ".join(
                    name
                    for name, a, b in zip(
                        ("language", "meaning"), items[first], items[second], strict=True
                    )
                    if a == b
                )
                or "nothing"
                for first, second in [("A", "X"), ("A", "B"), ("B", "X")]
            }
            for task, items in examples.items()
        }
    ).T


def retrieval(number):
    return [number("abx_t01"), number("abx_t02"), number("abx_t03")]


def over_layers(number):
    return [number("abx_t08"), number("abx_t09")]


def over_pairs(number):
    return [number("abx_t06"), number("abx_t07")]


@number("counts", "{}")
def counts(number, schedule, ticked, pos, ner):
    rows = {
        "languages (1; Table 2, ABX)": (len(ticked["ABX", ""]), number("abx_t30")),
        "pairs of 36 languages (1)": (36 * 35 / 2, number("abx_t31")),
        "checkpoints (4.1; schedule of footnote 4)": (len(schedule), number("abx_t32")),
        "last step (Figure 3; footnote 4)": (max(schedule), number("abx_t34")),
        "languages of POS (5.1; Table 2)": (len(ticked["POS", "mono"]), 36),
        "languages of NER (5.1; Table 2)": (len(ticked["NER", "mono"]), 36),
        "languages of NLI (5.1; Table 2)": (len(ticked["NLI", "mono"]), 13),
        "languages of POS transfer (5.1; Table 2)": (len(pos), 18),
        "languages of NER transfer (5.1; Table 2)": (len(ner), 18),
    }
    yield (), *columns(rows), 0.5


@number("section 4.2 and appendix D", "{} ({})")
def correlations_of_the_text(number, text_results):
    quantities = text_results.set_index("claim_id")["quantity"]
    for k in range(4, 8):
        text, appendix = f"abx_t{k:02}", f"abx_t{k + 6:02}"
        yield (quantities[text], text), number(appendix), number(text), 0.005


@sentence(
    "5.1",
    "for transfer of NER the same 18 languages as for POS",
    "we use the same 18-language subset used in POS",
)
def transfer_of_ner(pos, ner):
    return [pos <= ner, pos == ner], (
        f"Table 2 ticks {len(ner)}, those of POS and {' '.join(sorted(ner - pos))}; appendix "
        "K has 18"
    )


@sentence(
    "5.1",
    "the 13 XNLI languages that overlap with the 36",
    "the 13 XNLI languages that overlap with our 36-language set",
)
def xnli_languages(ticked):
    return (
        [ticked["NLI", "mono"] <= ticked["ABX", ""], ticked["NLI", "mono"] == ticked["NLI", "CL"]],
        "XNLI has 15; without sw and th",
    )


@sentence("4.2", "the final checkpoint is step 150,000", "the final checkpoint (step 150,000)")
def final_checkpoint(schedule, number):
    return max(schedule) == number("abx_t34"), (
        f"39 checkpoints end at step {max(schedule):,}; 150,000 is the "
        f"{schedule.index(150000) + 1}th"
    )


@sentence("A", "A and X share the variable of interest", "A and X share the variable of interest")
def a_and_x(shared_variables):
    return (
        [
            shared_variables.loc["LD", "A and X"] == "language",
            shared_variables.loc["MD", "A and X"] == "meaning",
        ],
        f"{'; '.join(f'{task}: {what}' for task, what in shared_variables['A and X'].items())}",
    )


@sentence("A", "B and X share a control variable", "B and X share a control variable")
def b_and_x(shared_variables):
    return shared_variables["B and X"] != "nothing", (
        "in its own examples B and X share "
        f"{' and '.join(shared_variables['B and X'].unique())}: A and B do, as in Figure 1 "
        "and section 3"
    )


@sentence(
    "3",
    "A and B share the control variable (Figure 1)",
    "A and B sharing the same control variable",
)
def a_and_b(shared_variables):
    return (
        [
            shared_variables.loc["LD", "A and B"] == "meaning",
            shared_variables.loc["MD", "A and B"] == "language",
        ],
        f"{'; '.join(f'{task}: {what}' for task, what in shared_variables['A and B'].items())}",
    )


@sentence(
    "B",
    "five subsamples differ by less than 0.01, so results are highly stable",
    "our results are highly stable with respect to triplet sampling",
)
def subsamples(number):
    largest_error = np.sqrt(0.25 / 100000)
    return number("abx_t15") > largest_error, (
        f"the standard deviation of so many draws is {largest_error:.4f} at most, whatever is "
        "scored: it says nothing of other sentences"
    )


@sentence(
    "4.1",
    "MD and retrieval correlate at 0.77, 0.73 and 0.53 over 630 pairs, p < 0.001",
    "comparing last-layer retrieval to all-layer ABX, Pearson drops to r = 0.53, "
    "but remains significant",
)
def retrieval_correlates(retrieval):
    return [p_of_r(r, 630) < 0.001 for r in retrieval], (
        f"p at most {max(p_of_r(r, 630) for r in retrieval):.0e}, pairs taken as independent, "
        "though they share 36 languages"
    )


@sentence(
    "4.1",
    "0.77 is of retrieval from the last layer and MD over all layers",
    "Despite this difference, we find a strong correlation between the two "
    "metrics (Pearson r = 0.77, p < 0.001)",
)
def which_retrieval(retrieval):
    return (
        retrieval[0] == retrieval[2],
        f"footnote 6 prints {retrieval[2]} for that pairing; what 0.77 is of is not said",
    )


@sentence(
    "4.2",
    "all scores are above 0.5 at all checkpoints",
    "all scores are consistently above the 0.5 baseline",
)
def above_chance():
    return [], (
        "scores are in a picture only (Figure 2); an untrained model and the mere length of "
        "sentences are above 0.5, too (abx-2-dynamics)"
    )


@sentence(
    "4.2",
    "across layers -0.66 and -0.53, p < 0.001",
    "We also find a significant negative correlation between language and "
    "meaning discrimination across layers",
)
def across_layers(over_layers):
    p_over_layers = [p_of_r(r, 13) for r in over_layers]
    return [p_of_r(r, 13 * 630) < 0.001 for r in over_layers], (
        f"over pairs × layers; over 13 layers p would be {p_over_layers[0]:.3f} and "
        f"{p_over_layers[1]:.2f}"
    )


@sentence(
    "4.2",
    "weaker across layers than across language pairs",
    "the correlation coefficients are weaker than those observed across language pairs",
)
def weaker_across_layers(over_layers, over_pairs):
    return (
        [abs(a) < abs(b) for a, b in zip(over_layers, over_pairs, strict=True)],
        f"{over_layers[0]} and {over_layers[1]} against {over_pairs[0]} and {over_pairs[1]}",
    )


@consistency("Table 1, {}", "R² {1:g} with LD {2} and MD {3}")
def rows_of_table_1(possible, over_pairs, limits):
    # table 1 at the correlation of LD and MD over the 630 pairs
    implied = limits(over_pairs[1])
    r = over_pairs[1]
    for name, row in implied.iterrows():
        left = possible[name]
        fits = r in left
        gap = ", with a gap" if any(np.diff(left) > 0.006) else ""
        yield (
            (name, row["R2"], row["LD"], row["MD"]),
            [True] if fits else [],
            f"F = {row['F']:.1f}, p = {row['p of F']:.2g}; possible for correlations of LD and MD "
            f"from {left.min():+.2f} to {left.max():+.2f}{gap}; at {r:+.2f}, that of the 630 "
            f"pairs, {'possible' if fits else 'not possible'}",
        )


@sentence(
    "H",
    "the checkpoint of lowest LD is closer to the best in 29 of 36 languages, p < 0.001",
    "ABX-guided selection yields a closer match to the best checkpoint in 29 out of 36 languages",
)
def lowest_ld(number):
    p_by_sign = min(1, 2 * p_of_hits(number("abx_t16"), number("abx_t36"), 0.5))
    p_by_sd = p_of_t(
        number("abx_t17") / (number("abx_t18") / np.sqrt(number("abx_t36"))), number("abx_t36") - 1
    )
    p_by_error = p_of_t(number("abx_t17") / number("abx_t18"), number("abx_t36") - 1)
    return [p_by_sign < 0.001, p_by_sd < 0.001], (
        f"sign test p = {p_by_sign:.1g}; {number('abx_t17')} ± {number('abx_t18')} gives p = "
        f"{p_by_sd:.1g} if ± is a standard deviation, {p_by_error:.2f} if it is a standard "
        "error"
    )


@sentence(
    "5.3",
    "lowest LD does not single out the best source",
    "it does not consistently identify the single best source",
)
def single_best_source(number):
    return [number(key) < 18 / 2 for key in ["abx_t19", "abx_t20"]], (
        f"the best for {int(number('abx_t19'))} (POS) and {int(number('abx_t20'))} (NER) of "
        "18 targets"
    )


@sentence(
    "K",
    "{}: the source of lowest LD is {} for {:.0f} of 18 targets",
    "Exact matches occur in 2/18 (POS) and 7/18 (NER) cases. When considering the top-3 sources, "
    "ABX guidance succeeds in 6/18 (POS) and 12/18 (NER) cases",
)
def counts_of_sources(number):
    places = {"best": 1, "among the best three": 3}
    for k, (rank, task) in enumerate(product(places, ["POS", "NER"])):
        hits, share = number(f"abx_t{19 + k}"), places[rank] / 17
        p = p_of_hits(hits, 18, share)
        result = f"a random source: {18 * share:.1f}; as many or more with p = {p:.1g}"
        yield (task, rank, hits), [], result


@sentence(
    "K",
    "{}: it beats a random source in {} ± {} % of trials, reliably",
    "it reliably outperforms random baselines",
)
def random_sources(number):
    for task, keys in {"POS": ("abx_t23", "abx_t24"), "NER": ("abx_t25", "abx_t26")}.items():
        mean, spread = map(number, keys)
        t = (mean - 50) / (spread / np.sqrt(18))
        p = p_of_t(t, 17)
        result = f"t = {t:.1f} over 18 targets, p = {p:.1g}, if ± is a standard deviation"
        yield (task, mean, spread), p < 0.05, result


@sentence(
    "K",
    "most win rates exceed 70–80 %, and very few fall below 50 %",
    "Most values exceed 70–80%, and very few fall below the 50% chance level",
)
def win_rates():
    return [], "single win rates are in a picture only (Figure 16)"


@sentence(
    "5.2",
    "accuracy does not correlate with the amount of pretraining data (footnote 8)",
    "Language-wise probing accuracy shows no significant correlation with "
    "pretraining data quantities",
)
def amount_of_text():
    return [], "no number is printed"
