"""What the ABX paper says in words, and what its printed numbers say of it.

`paper_audit` has each number and claim once, for the notebook that shows them and the test that
holds them; a verdict follows from tests of its parts (`xlx.printed.verdict`).
"""

from math import comb

import numpy as np
from scipy import stats

from xlx.abx.published import AbxNumbers, possible_correlations, shared_variables
from xlx.printed import Audit


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
