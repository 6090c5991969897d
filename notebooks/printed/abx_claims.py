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
from math import comb

import numpy as np
import pandas as pd
from scipy import stats

from printed.printed_tables import Audit
from xlx.results import paths

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


def paper_audit(p: AbxNumbers) -> Audit:
    """All numbers that follow from others, and all claims that numbers can be held against."""
    audit = Audit()
    for section in (_counts, _repeated, _definitions, _sampling, _correlations, _table_1,
                    _checkpoints, _sources):  # fmt: skip
        section(audit, p)
    return audit


def _counts(audit: Audit, p: AbxNumbers) -> None:
    ticked, n = p.languages, p.value("abx_t30")
    schedule = {*range(5_000, 50_001, 5_000), *range(50_000, 1_500_001, 50_000)}
    rows = (
        ("languages (1; Table 2, ABX)", n, len(ticked["ABX", ""])),
        ("pairs of 36 languages (1)", p.value("abx_t31"), comb(36, 2)),
        ("checkpoints (4.1; schedule of footnote 4)", p.value("abx_t32"), len(schedule)),
        ("last step (Figure 3; footnote 4)", p.value("abx_t34"), max(schedule)),
        ("languages of POS (5.1; Table 2)", 36, len(ticked["POS", "mono"])),
        ("languages of NER (5.1; Table 2)", 36, len(ticked["NER", "mono"])),
        ("languages of NLI (5.1; Table 2)", 13, len(ticked["NLI", "mono"])),
        ("languages of POS transfer (5.1; Table 2)", 18, len(ticked["POS", "CL"])),
        ("languages of NER transfer (5.1; Table 2)", 18, len(ticked["NER", "CL"])),
    )
    audit.check("counts", *zip(*rows, strict=True), 0.5)
    audit.claim(
        "5.1", "for transfer of NER the same 18 languages as for POS",
        f"Table 2 ticks {len(ticked['NER', 'CL'])}, those of POS and "
        f"{' '.join(sorted(ticked['NER', 'CL'] - ticked['POS', 'CL']))}; appendix K has 18",
        ticked["POS", "CL"] <= ticked["NER", "CL"], ticked["POS", "CL"] == ticked["NER", "CL"],
    )  # fmt: skip
    audit.claim(
        "5.1", "the 13 XNLI languages that overlap with the 36", "XNLI has 15; without sw and th",
        ticked["NLI", "mono"] <= ticked["ABX", ""], ticked["NLI", "mono"] == ticked["NLI", "CL"],
    )  # fmt: skip
    audit.claim(
        "4.2", "the final checkpoint is step 150,000",
        f"39 checkpoints end at step {max(schedule):,}; 150,000 is the "
        f"{sorted(schedule).index(150_000) + 1}th",
        max(schedule) == p.value("abx_t34"),
    )  # fmt: skip


def _repeated(audit: Audit, p: AbxNumbers) -> None:
    pairs = [("abx_t04", "abx_t10"), ("abx_t05", "abx_t11"), ("abx_t06", "abx_t12"),
             ("abx_t07", "abx_t13")]  # fmt: skip
    what = [p.text.loc[one, "quantity"] for one, _ in pairs]
    values = [[p.value(claim) for claim in side] for side in zip(*pairs, strict=True)]
    audit.check("section 4.2 and appendix D", what, *values, 0.005)


def _definitions(audit: Audit, p: AbxNumbers) -> None:
    shared = shared_variables()
    audit.claim(
        "A", "A and X share the variable of interest",
        "; ".join(f"{task}: {row['A and X']}" for task, row in shared.iterrows()),
        shared.loc["LD", "A and X"] == "language", shared.loc["MD", "A and X"] == "meaning",
    )  # fmt: skip
    audit.claim(
        "A", "B and X share a control variable",
        "in its own examples B and X share "
        f"{' and '.join(shared['B and X'].unique())}: A and B do, as in Figure 1 and section 3",
        *(shared["B and X"] != "nothing"),
    )  # fmt: skip
    audit.claim(
        "3", "A and B share the control variable (Figure 1)",
        "; ".join(f"{task}: {row['A and B']}" for task, row in shared.iterrows()),
        shared.loc["LD", "A and B"] == "meaning", shared.loc["MD", "A and B"] == "language",
    )  # fmt: skip


def _sampling(audit: Audit, p: AbxNumbers) -> None:
    largest = np.sqrt(0.25 / 100_000)
    audit.claim(
        "B", "five subsamples differ by less than 0.01, so results are highly stable",
        f"that many draws differ by {largest:.4f} at most, whatever is scored: it says nothing of "
        "other sentences", p.value("abx_t15") > largest,
    )  # fmt: skip


def _p_of_r(r: float, n: int) -> float:
    t = abs(r) * np.sqrt((n - 2) / (1 - r**2))
    return float(2 * stats.t.sf(t, n - 2))


def _correlations(audit: Audit, p: AbxNumbers) -> None:
    values = {claim: p.value(claim) for claim in ("abx_t01", "abx_t02", "abx_t03")}
    audit.claim(
        "4.1", "MD and retrieval correlate at 0.77, 0.73 and 0.53 over 630 pairs, p < 0.001",
        f"p at most {max(_p_of_r(r, 630) for r in values.values()):.0e}, pairs taken as "
        "independent, though they share 36 languages",
        *(_p_of_r(r, 630) < 0.001 for r in values.values()),
    )  # fmt: skip
    audit.claim(
        "4.1", "0.77 is of retrieval from the last layer and MD over all layers",
        f"footnote 6 prints {values['abx_t03']} for that pairing; what 0.77 is of is not said",
        values["abx_t01"] == values["abx_t03"],
    )  # fmt: skip
    over_layers = [p.value(claim) for claim in ("abx_t08", "abx_t09")]
    audit.claim(
        "4.2", "all scores are above 0.5 at all checkpoints",
        "scores are in a picture only (Figure 2); an untrained model and the mere length of "
        "sentences are above 0.5, too (abx-2-dynamics)",
    )  # fmt: skip
    ps = [_p_of_r(r, 13) for r in over_layers]
    audit.claim(
        "4.2", "across layers -0.66 and -0.53, p < 0.001",
        f"over 13 layers p is {ps[0]:.3f} and {ps[1]:.2f}; below 0.001 over pairs × layers only",
        *(value < 0.001 for value in ps),
    )  # fmt: skip
    of_pairs = [p.value(claim) for claim in ("abx_t06", "abx_t07")]
    audit.claim(
        "4.2", "weaker across layers than across language pairs",
        f"{over_layers[0]} and {over_layers[1]} against {of_pairs[0]} and {of_pairs[1]}",
        *(abs(a) < abs(b) for a, b in zip(over_layers, of_pairs, strict=True)),
    )  # fmt: skip


def _table_1(audit: Audit, p: AbxNumbers) -> None:
    for row in p.table_1:
        said = " and ".join(
            f"{what} {printed}" for what, printed in zip(("LD", "MD"), row.p_values, strict=True)
        )
        possible = possible_correlations(row)
        ends = f"{possible.min():+.2f} to {possible.max():+.2f}"
        r = p.value("abx_t07")
        audit.claim(
            f"Table 1, {row.name}", f"R² {row.r_squared:g} with {said}",
            f"F = {row.f_value:.1f}, p = {row.p_value:.2g}; possible for correlations of LD and "
            f"MD from {ends}{'' if _whole(possible) else ', with a gap'}; at {r:+.2f}, that of the "
            f"630 pairs, {'possible' if r in possible else 'not possible'}",
            r in possible,
        )  # fmt: skip


def _whole(possible: np.ndarray) -> bool:
    return bool((np.diff(possible) < 0.006).all())


def _checkpoints(audit: Audit, p: AbxNumbers) -> None:
    closer, n = int(p.value("abx_t16")), int(p.value("abx_t36"))
    mean, spread = p.value("abx_t17"), p.value("abx_t18")
    by_sign = float(stats.binomtest(closer, n, alternative="two-sided").pvalue)
    by_sd, by_error = (
        float(2 * stats.t.sf(mean / error, n - 1)) for error in (spread / np.sqrt(n), spread)
    )
    audit.claim(
        "H", "the checkpoint of lowest LD is closer to the best in 29 of 36 languages, p < 0.001",
        f"sign test p = {by_sign:.1g}; {mean} ± {spread} gives p = {by_sd:.1g} if ± is a standard "
        f"deviation, {by_error:.2f} if it is a standard error", by_sign < 0.001, by_sd < 0.001,
    )  # fmt: skip


def _sources(audit: Audit, p: AbxNumbers) -> None:
    said = (("POS", "best", "abx_t19", 1), ("NER", "best", "abx_t20", 1),
            ("POS", "among the best three", "abx_t21", 3),
            ("NER", "among the best three", "abx_t22", 3))  # fmt: skip
    for task, what, claim, top in said:
        hits = int(p.value(claim))
        tail = float(stats.binom.sf(hits - 1, 18, top / 17))
        audit.claim(
            "K", f"{task}: the source of lowest LD is {what} for {hits} of 18 targets",
            f"a random source: {18 * top / 17:.1f}; as many or more with p = {tail:.1g}",
            tail < 0.05,
        )  # fmt: skip
    for task, mean, spread in (("POS", "abx_t23", "abx_t24"), ("NER", "abx_t25", "abx_t26")):
        m, sd = p.value(mean), p.value(spread)
        t = (m - 50) / (sd / np.sqrt(18))
        audit.claim(
            "K", f"{task}: it beats a random source in {m} ± {sd} % of trials, reliably",
            f"t = {t:.1f} over 18 targets, p = {2 * stats.t.sf(t, 17):.1g}, if ± is a standard "
            "deviation", 2 * stats.t.sf(t, 17) < 0.05,
        )  # fmt: skip
    audit.claim(
        "K", "most win rates exceed 70–80 %, and very few fall below 50 %",
        "single win rates are in a picture only (Figure 16)",
    )  # fmt: skip
    audit.claim(
        "5.2", "accuracy does not correlate with the amount of pretraining data (footnote 8)",
        "no number is printed",
    )  # fmt: skip
