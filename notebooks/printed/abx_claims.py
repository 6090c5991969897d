"""What the ABX paper prints, and what follows from it: Table 1 above all.

A row of Table 1 has R², two coefficients and how significant each is, and not the correlation of LD
and MD that would tie them together. But R² leaves the two t values a curve: with n rows and a
correlation r of the predictors,

    t₁² + t₂² + 2 r t₁ t₂ = (1 - r²) R² (n - 3) / (1 - R²)

(of the standardised coefficients βⱼ, R² = β₁² + β₂² + 2 r β₁ β₂, and tⱼ² is βⱼ² (1 - r²) (n - 3) /
(1 - R²)). A row is possible for those r for which a point of the curve has the printed signs and
significances: `possible_correlations`. The claims are in ``claims.csv`` of the folder
(`printed.evaluator`).
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from printed.evaluator import Paper
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
        for key, part in self["table1"].groupby(["setting", "task", "checkpoint"], sort=False):
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
