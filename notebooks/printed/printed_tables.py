"""The arithmetic of printed numbers: what rounding allows, what agrees, what a claim comes to.

A number printed to d places stands for anything within half a unit of its last place. A number that
follows from other printed ones agrees with what is printed of it if rounding of all that goes in
can explain the difference: that is its *tolerance*. The same number printed twice has no more room
than itself: half a unit, which only an equal one is within. What is claimed in words is tested in
parts, so that its verdict follows from numbers and is never written down.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

#: What binary fractions leave of a decimal one.
PRINTED_SLACK = 1e-9
#: What can come of a claim; the last is of one that no number at hand can decide.
VERDICTS = ("holds", "holds in part", "does not hold", "cannot be told")


def agrees(printed: np.ndarray, recomputed: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Whether rounding explains the difference; all three in the same units."""
    return np.abs(np.asarray(recomputed) - printed) <= np.asarray(tolerance) + PRINTED_SLACK


def verdict(parts: Sequence[bool]) -> str:
    """One of `VERDICTS`: all parts hold, some do, none does, or there are none."""
    if not parts:
        return VERDICTS[3]
    return VERDICTS[0 if all(parts) else 1 if any(parts) else 2]


class Audit:
    """The numbers and the claims of a paper, gathered as a notebook goes through them.

    Attributes
    ----------
    numbers : DataFrame
        A row per number: ``table`` (where it is printed), ``what``, ``printed``, ``recomputed``,
        ``tolerance``, ``apart`` (recomputed less printed, in tolerances) and ``agrees``.
    claims : DataFrame
        A row per claim: ``where``, ``claim``, ``found`` (what the numbers say) and ``verdict``.
    """

    def __init__(self) -> None:
        self.numbers = pd.DataFrame()
        self.claims = pd.DataFrame()

    def check(
        self,
        table: str,
        what: Sequence[str],
        printed: Sequence[float],
        recomputed: Sequence[float],
        tolerance: float | Sequence[float],
    ) -> pd.DataFrame:
        """Add numbers of a table, and return their rows of `numbers`.

        ``tolerance`` is one for all or one for each. Raises ValueError for one that is not above 0
        (of the same number printed twice it is half a unit), and for a number that is missing.
        """
        columns = {"what": what, "printed": printed, "recomputed": recomputed}
        rows = pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})
        rows.insert(0, "table", table)
        rows["tolerance"] = np.asarray(tolerance, dtype=float)
        missing = rows["printed"].isna() | rows["recomputed"].isna()
        if missing.any():
            raise ValueError(f"{table}, {rows['what'][missing.idxmax()]}: a number is missing")
        if not (rows["tolerance"] > 0).all():
            raise ValueError(
                f"{table}: a tolerance is not above 0; of the same number printed twice it is half "
                "a unit of the last place"
            )
        rows["apart"] = (rows["recomputed"] - rows["printed"]) / rows["tolerance"]
        rows["agrees"] = agrees(rows["printed"], rows["recomputed"], rows["tolerance"])
        self.numbers = pd.concat([self.numbers, rows], ignore_index=True)
        return rows

    def claim(self, where: str, claim: str, result: str, *parts: bool) -> None:
        """Add what is said, and what the numbers say of each of its parts (see `verdict`)."""
        row = pd.DataFrame([(where, claim, result, verdict(parts))])
        row.columns = ["where", "claim", "found", "verdict"]
        self.claims = pd.concat([self.claims, row], ignore_index=True)

    def overall(self) -> pd.DataFrame:
        """By table: ``numbers``, how many ``agree`` and ``disagree``, and the ``furthest``."""
        groups = self.numbers.groupby("table", sort=False)
        table = pd.DataFrame({"numbers": groups.size(), "agree": groups["agrees"].sum()})
        table["disagree"] = table["numbers"] - table["agree"]
        return table.assign(furthest=groups["apart"].agg(lambda apart: apart.abs().max()).round(2))

    def summary(self) -> str:
        """How many numbers agree, and how many claims have come to what."""
        lines = []
        if len(self.numbers):
            lines = [f"{self.numbers['agrees'].sum()} of {len(self.numbers)} numbers agree"]
        counts = self.claims["verdict"].value_counts()
        counted = [f"{kind} {counts[kind]}" for kind in VERDICTS if kind in counts]
        return "\n".join([*lines, f"of {len(self.claims)} claims: {', '.join(counted)}"])

    def listing(self, digits: int) -> str:
        """The numbers that disagree, to so many places, and all claims by verdict, as text."""
        lines = []
        if len(self.numbers) and not self.numbers["agrees"].all():
            lines = ["numbers that disagree"]
            lines += [
                f"  {row.table}: {row.what}: printed {row.printed:.{digits}f}, can be "
                f"{row.recomputed:.{digits}f}"
                for row in self.numbers[~self.numbers["agrees"]].itertuples()
            ]
        for kind in (*VERDICTS[2::-1], VERDICTS[3]):
            rows = self.claims[self.claims["verdict"] == kind]
            if len(rows):
                lines += ["", f"{kind} ({len(rows)} of {len(self.claims)})"]
                lines += [f"  {row.where}: {row.claim} | {row.found}" for row in rows.itertuples()]
        return "\n".join(lines).strip()


def shares_left(
    entries: pd.Series, factor: float, half: float, half_factor: float, n: int = 100
) -> pd.DataFrame:
    """Which shares k / n an entry leaves that is printed as the share times a factor.

    ``entries`` are printed within ``half`` of the product, the factor within ``half_factor``. With
    their index: ``least`` and ``most`` (in [0, 1]; NaN where no k fits) and ``count`` of the k that
    fit.
    """
    share = np.arange(n + 1) / n
    apart = np.abs(share * factor - entries.to_numpy(float)[:, None])
    fits = apart <= half + half_factor * share + PRINTED_SLACK
    left = pd.DataFrame(np.where(fits, share, np.nan), index=entries.index)
    ends = {"least": left.min(axis=1), "most": left.max(axis=1)}
    return pd.DataFrame(ends).assign(count=fits.sum(axis=1))


def exchanges(
    least: pd.DataFrame, most: pd.DataFrame, means: pd.Series, chosen: Sequence[str], half: float
) -> pd.DataFrame:
    """Which other choice of rows would give the printed means: one left out, taken in, exchanged.

    ``least`` and ``most``: row (of a language) by column (of a model), between what its number lies
    (no row is missing); ``means``: by column, over the ``chosen`` rows, printed within ``half``. A
    row per change: ``out`` and ``into`` (None where nothing leaves or comes) and ``fits``, the
    number of columns whose mean can be the printed one.
    """
    chosen, others = list(chosen), [row for row in least.index if row not in set(chosen)]
    out, into = np.indices((len(chosen) + 1, len(others) + 1)).reshape(2, -1)  # 0: none
    size = len(chosen) - (out > 0) + (into > 0)
    nothing = np.zeros(len(means))

    def changed(table: pd.DataFrame) -> np.ndarray:
        here, elsewhere = (table.loc[rows, means.index].to_numpy() for rows in (chosen, others))
        left, come = np.vstack([nothing, here])[out], np.vstack([nothing, elsewhere])[into]
        return (here.sum(axis=0) - left + come) / size[:, None]

    low, high = changed(least), changed(most)
    fits = (means.to_numpy() >= low - half - PRINTED_SLACK) & (
        means.to_numpy() <= high + half + PRINTED_SLACK
    )
    names = {"out": np.array([None, *chosen])[out], "into": np.array([None, *others])[into]}
    return pd.DataFrame(names).assign(fits=fits.sum(axis=1))
