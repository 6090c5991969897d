"""What the ABX paper prints, and what follows from it: Table 1 above all.

A row of Table 1 has R², two coefficients and how significant each is, and not the correlation of LD
and MD that would tie them together. But R² leaves the two t values a curve: with n rows and a
correlation r of the predictors,

    t₁² + t₂² + 2 r t₁ t₂ = (1 - r²) R² (n - 3) / (1 - R²)

(of the standardised coefficients βⱼ, R² = β₁² + β₂² + 2 r β₁ β₂, and tⱼ² is βⱼ² (1 - r²) (n - 3) /
(1 - R²)). A row is possible for those r for which a point of the curve has the printed signs and
significances: `possible_correlations`.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from xlx.core import paths

_FOLDER = paths.PUBLISHED / "abx"
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


class AbxNumbers:
    """The printed numbers, read from ``data/published/abx``."""

    @cached_property
    def text(self) -> pd.DataFrame:
        """Numbers of the running text, by ``claim_id``."""
        return pd.read_csv(_FOLDER / "text_results.csv", index_col="claim_id")

    def value(self, claim: str) -> float:
        """A number of the text; "1.5M", "150,000", "29 out of 36", "7/18": its first one."""
        printed = str(self.text.loc[claim, "value"]).replace(",", "")
        number = re.match(r"[-+]?[\d.]+", printed)[0]
        return float(number) * (1e6 if printed.endswith("M") else 1)

    @cached_property
    def languages(self) -> pd.Series:
        """Task and setup of Table 2 → the codes that are ticked."""
        table = pd.read_csv(_FOLDER / "table2_languages.csv").fillna({"setup": ""})
        ticked = table[table["included"] == 1]
        return ticked.groupby(["task", "setup"])["code"].agg(frozenset)

    @cached_property
    def table_1(self) -> list[TableRow]:
        """The rows of Table 1."""
        table = pd.read_csv(_FOLDER / "table1_regression.csv")
        rows = []
        for (setting, task, checkpoint), part in table.groupby(
            ["setting", "task", "checkpoint"], sort=False
        ):
            of = part.set_index(part["predictor"].fillna("R2"))
            signs = tuple(int(np.sign(of.loc[name, "value"])) for name in ("LD", "MD"))
            printed = tuple(of.loc[name, "p_value"] for name in ("LD", "MD"))
            n, r_squared = N_ROWS[setting, task], float(of.loc["R2", "value"])
            rows.append(TableRow(setting, task, checkpoint, n, r_squared, signs, printed))
        return rows


def possible_correlations(row: TableRow) -> np.ndarray:
    """Correlations of LD and MD for which a row of Table 1 is possible, in steps of 0.005."""
    return np.array([r for r in _CORRELATIONS if len(row.t_values(r)[0])])


def table_1_limits(p: AbxNumbers, r: float) -> pd.DataFrame:
    """What each row of Table 1 implies: its F, and the t values at a correlation of LD and MD.

    One row a row: ``n``, ``R2``, ``F``, ``p of F``; ``t of LD``, ``t of MD``, from the least to the
    largest at ``r`` (or "none").
    """
    rows = []
    for of in p.table_1:
        ends = [f"{t.min():.1f} to {t.max():.1f}" if len(t) else "none" for t in of.t_values(r)]
        rows.append((of.name, of.n, of.r_squared, of.f_value, of.p_value, *ends))
    columns = ["row", "n", "R2", "F", "p of F", "t of LD", "t of MD"]
    return pd.DataFrame(rows, columns=columns).set_index("row")


def correlation_ranges(p: AbxNumbers) -> pd.DataFrame:
    """The stretches of r for which each row of Table 1 is possible: ``row``, ``low``, ``high``."""
    rows = []
    for of in p.table_1:
        possible = possible_correlations(of)
        gaps = np.flatnonzero(np.diff(possible) > 0.006) + 1
        for run in np.split(possible, gaps):
            if len(run):
                rows.append((of.name, run.min(), run.max()))
    table = pd.DataFrame(rows, columns=["row", "low", "high"])
    return table.assign(middle=(table["low"] + table["high"]) / 2)


#: The triplets that Appendix A gives as examples: item → language, meaning.
EXAMPLES = {
    "LD": {"X": ("English", "weather"), "A": ("English", "groceries"),
           "B": ("French", "groceries")},
    "MD": {"X": ("English", "weather"), "A": ("French", "weather"), "B": ("French", "groceries")},
}  # fmt: skip


def shared_variables() -> pd.DataFrame:
    """What the items of Appendix A's examples share: a row a task, a column a pair of items."""
    names = ("language", "meaning")
    table = {
        task: {
            f"{one} and {other}": ", ".join(
                name for name, a, b in zip(names, items[one], items[other], strict=True) if a == b
            ) or "nothing"
            for one, other in ("AX", "AB", "BX")
        }
        for task, items in EXAMPLES.items()
    }  # fmt: skip
    return pd.DataFrame(table).T
