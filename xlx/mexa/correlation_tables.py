"""Tables 2 and 5, Figure 1 and counts of the MEXA paper against each other (see `published`)."""

import numpy as np
import pandas as pd
import yaml
from scipy import stats

from xlx.core import paths
from xlx.mexa.chance import chance_table
from xlx.mexa.prediction import expected
from xlx.mexa.published import (
    ENGLISH,
    FIGURE_1_MODEL,
    HALF_2,
    HALF_4,
    NO_AVERAGE,
    OTHERS,
    SETTING,
    MexaTables,
    displayed,
)
from xlx.printed import Audit
from xlx.text import corpora

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
    in_flores = labels.isin(corpora.tags("flores200-100").values()).sum()
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
