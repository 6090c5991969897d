"""The printed numbers of X-Probe against each other and against what its text says of them.

A number printed to two decimals stands for anything within half a unit of it. The tables are those
that the notebook shows (`printed.xprobe_claims`), the claims those that it lists
(`printed.xprobe_claims`); what rounding does not explain is asserted as it is and listed in the
README of the folder. Correlations, tests of signs and intervals are recomputed here by hand.
"""

import importlib.util
import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from printed import xprobe_claims
from printed.printed_tables import Audit
from printed.xprobe_claims import PrintedTables
from xlx.results import paths

FOLDER = paths.PUBLISHED / "xprobe"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
HALF = 0.005
ATTENTION = ["Attention (maxpool)", "Attention (last)"]
RNN = ["RNN (maxpool)", "RNN (last)"]
CNN = ["CNN (maxpool)", "CNN (avg. pool)"]


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv")


@pytest.fixture(scope="module")
def paper() -> PrintedTables:
    return PrintedTables()


@pytest.fixture(scope="module")
def audit(paper: PrintedTables) -> Audit:
    return xprobe_claims.audit_of(paper)


# --- the tables and the claims ---


def test_tables_are_whole(paper: PrintedTables) -> None:
    cells = paper.accuracy
    assert (cells.shape, paper.inference.shape) == ((54, 6), (6, 6))
    assert not cells.isna().to_numpy().any()
    assert (cells.min(axis=None), cells.max(axis=None)) == (0, 0.87)
    assert sorted(paper.table1.index) == sorted(paper.tasks)
    for name, rows in {
        "table1_mean_sd": 18, "table2_hyperparameters": 20, "table3_xnli": 36,
        "table4_probing": 324, "text_results": 11,
    }.items():  # fmt: skip
        assert len(read(name)) == rows
        assert re.search(rf"`{name}\.csv` \| [\w ]+ \| {rows} \|", README)
    for name, rows in {"release": 45, "release_shared": 5}.items():
        assert len(read(name)) == rows
        assert re.search(rf"`{name}\.csv` \| not printed: [^|]+ \| {rows} \|", README)


def test_settings_are_those_of_table_2(paper: PrintedTables) -> None:
    settings = yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))
    table = read("table2_hyperparameters").set_index(["component", "layer"])["value"]
    assert sorted(settings["probing"]["tasks"]) == sorted(paper.tasks)
    assert sorted(settings["encoders"]) == sorted(paper.encoders)
    for component, layers in settings["hyperparameters_table_2"].items():
        for layer, value in layers.items():
            layer = "λ" if layer == "lambda" else layer
            assert str(value).startswith(table[component, layer])


#: Where a claim stands, its beginning, what the numbers say in part, and the verdict.
CLAIMS = (
    ("4", "BiShift: for half", "for 0.430 (ru) to 0.457", "does not hold"),
    ("4", "SOMO", "0.18 to 0.45 of the", "does not hold"),
    ("6.1", "10k", "38 of 45 pairs", "holds in part"),
    ("6.1", "a validation split", "one file for TreeDepth, in 5 of 5", "holds in part"),
    ("9", "no two probing tasks", "29 (en) to 64 (fr)", "does not hold"),
    ("7", "the overwhelming majority", "2 of 54 are, on SOMO; 52", "does not hold"),
    ("7, Figure 3", "results are not", "31 of 54 have an exact p < 0.05, 20", "holds in part"),
    ("abstract", "mapped representations", "71 better, 56 worse", "holds in part"),
    ("8.2", "transferred representations", "71 of 270 cells are better, in 9 of 9", "holds"),
    ("8.2", "SentLen", "by 0.00 to 0.05, beyond luck in 2", "holds in part"),
    ("8.2", "SubjNum and ObjNum", "mean gains -0.005 and 0.000", "does not hold"),
    ("8.2", "the improvement is consistent", "5 of 5 settings, in 2", "holds in part"),
    ("8.2", "none of the encoders", "0.49 to 0.53; 4 of 36 above", "holds in part"),
    ("8.2", "WC: the variance", "SentLen 0.259, Tense 0.124, WC 0.115", "holds in part"),
    ("8.2", "WC is the hardest", "lowest mean: WC", "holds"),
    ("8.1", "Russian: considerably", "6 of 9 tasks, 0.03 to 0.09", "holds"),
    ("8.1", "very similar on both French", "0.009, at most 0.03, beyond rounding and luck in 5",
     "holds"),
    ("8.3", "variants", "RNN (maxpool) is 0.096 from RNN (last), 0.066", "holds in part"),
    ("8.3", "both CNNs", "but in BiShift and SOMO", "holds"),
    ("8.3", "pooling", "by 0.074 (RNN), 0.021 (CNN), 0.011; ratios by 0.045, 0.101, 0.027",
     "holds in part"),
    ("8.3", "attentive", "0.604 or more to 0.591", "holds in part"),
    ("8.3", "recurrent", "0.38 to 0.68, below", "holds in part"),
    ("8.3", "CNN (maxpool) is the only", "in 4 of 5 settings", "holds"),
    ("8.3", "this is also true", "has 0.22, CNN (avg. pool) 0.21: alike", "does not hold"),
    ("5, 8.3", "the CNN has", "1.8 times as large, 5.4", "holds in part"),
)  # fmt: skip


@pytest.mark.parametrize(("where", "claim", "found", "verdict"), CLAIMS)
def test_claims_come_to_what_the_numbers_say(
    audit: Audit, where: str, claim: str, found: str, verdict: str
) -> None:
    rows = audit.claims[(audit.claims["where"] == where)]
    (row,) = rows[rows["claim"].str.startswith(claim)].to_dict("records")
    assert found in row["found"]
    assert row["verdict"] == verdict


def test_four_more_claims_cannot_be_told_or_hold(audit: Audit) -> None:
    assert len(audit.claims) == len(CLAIMS) + 4
    untold = audit.claims[audit.claims["verdict"] == "cannot be told"]
    assert untold["where"].tolist() == ["8.2", "8.1", "7"]
    assert audit.numbers["agrees"].all()


# --- by hand ---


def test_table_1_is_of_all_36_cells_with_n_in_the_variance(paper: PrintedTables) -> None:
    table = paper.from_table4()
    off = table[["mean", "sd"]] - paper.table1.loc[table.index]
    assert off.abs().max(axis=None) == pytest.approx(0.0014, abs=5e-5)
    assert off.abs().max(axis=1).idxmax() == "WC"
    values = paper.accuracy.loc["WC"].to_numpy()
    assert table.loc["WC", ["mean", "sd"]].tolist() == pytest.approx([values.mean(), values.std()])
    shares = table["share between encoders"]
    assert shares[["SentLen", "WC"]].round(2).tolist() == [0.97, 0.97]
    assert shares["SOMO"] < 0.1
    usual = paper.readings()["usual = 1"]
    assert usual["all 36"].tolist() == [1.0, 2.2]
    assert usual[["without English", "without French (UN)", "without French (Europarl)"]].xs(
        "n", level=1
    ).tolist() == [6.3, 4.8, 5.6]  # fmt: skip


def test_nearly_all_correlations_with_xnli_are_positive(paper: PrintedTables) -> None:
    assert read("text_results").set_index("claim_id")["value"]["xp_t05"] == "negative"
    negative = paper.rho[paper.rho["rho"] < 0]
    assert dict(zip(negative["language"], negative["rho"].round(2), strict=True)) == {
        "en": -0.44, "fr": -0.34,
    }  # fmt: skip
    orders = np.array(list(itertools.permutations(range(6))))
    for row in paper.rho.iloc[::9].itertuples():
        x = stats.rankdata(paper.accuracy.loc[row.task].loc[paper.encoders, row.language]) - 3.5
        y = stats.rankdata(paper.inference[row.language]) - 3.5
        assert row.rho == pytest.approx(np.corrcoef(x, y)[0, 1])
        p = (np.abs(y[orders] @ x) >= abs(x @ y) - 1e-9).mean()
        assert row.p_value == pytest.approx(p)
    assert paper.negative_in_other_orders() == (2, 3)


def test_signs_are_of_what_rounding_and_luck_leave(paper: PrintedTables) -> None:
    n = paper.n
    for row in paper.ratios.iloc[::7].itertuples():
        p, q = row.accuracy, row.reference
        variance = p * (1 - p) / n[row.task, row.language] + q * (1 - q) / n[row.task, "en"]
        apart = abs(p - q) > 2 * HALF + 1.959964 * np.sqrt(variance)
        assert row.sign == (np.sign(p - q) if apart else 0)
    assert paper.better_and_worse(without=["SentLen"]) == (49, 52)
    gains = paper.gains_of(["SentLen"]).loc["SentLen"].round(2)
    recurrent = gains.loc[[*ATTENTION, *RNN]]
    assert (recurrent.min(axis=None), recurrent.max(axis=None)) == (0.06, 0.17)
    assert gains.loc[CNN[1]].tolist() == [0, 0.02, 0.02, 0.04, 0.05]
    assert (gains.loc[CNN[0]] < 0).all()


def test_what_is_above_guessing(paper: PrintedTables) -> None:
    """By Wilson's interval of what was rounded up, above the most frequent class."""
    table = paper.above_by_task()
    assert table.loc["BiShift", ["lowest", "highest", "above", "above_all"]].tolist() == [
        0.53, 0.58, 9, 7,
    ]  # fmt: skip
    assert table.loc["SOMO", ["above", "above_all"]].tolist() == [4, 1]
    rest = table.loc[["CoordInv", "ObjNum", "SubjNum", "Tense", "TreeDepth"]]
    assert (rest["above_all"] - rest["CNN"] == 24).all()
    bishift = paper.above[paper.above["task"] == "BiShift"]
    assert bishift["half"].all()
    assert set(bishift.loc[bishift["above"], "encoder"]) == {*ATTENTION, RNN[0]}
    z = stats.norm.ppf(0.975)
    for row in bishift.itertuples():
        p, n = row.accuracy - HALF, row.n
        width = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        assert row.above == ((p + z**2 / (2 * n) - width) / (1 + z**2 / n) > row.guess)


def test_the_release_is_not_all_that_the_paper_says_of_it(paper: PrintedTables) -> None:
    other = paper.short_files().set_index(["task", "language"])["test"].to_dict()
    assert other.pop(("SOMO", "ru")) == 8072
    assert other.pop(("WC", "de")) == 9990
    assert other == {("SentLen", code): 4998 for code in ("de", "en", "es", "fr", "ru")}
    files = paper.somo_files()
    assert files["in two tasks"].to_dict() == {"en": 29, "de": 32, "es": 52, "fr": 64, "ru": 35}
    both = {"de": 0.41, "en": 0.40, "es": 0.35, "fr": 0.45, "ru": 0.18}
    assert files["with validation"].to_dict() == both
    best = {"de": 0.82, "en": 0.82, "es": 0.86, "fr": 0.77, "ru": 1.0}
    assert files["best possible"].to_dict() == best
    assert (paper.release.loc[paper.release["task"] != "SOMO", "both"] == 0).all()
    assert paper.guess.loc["BiShift"].round(3).to_dict() == {
        "de": 0.543, "en": 0.548, "es": 0.545, "fr": 0.547, "ru": 0.57,
    }  # fmt: skip


def test_what_is_counted_of_a_release(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("count_release", FOLDER / "release.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    te, va = tmp_path / "te.txt", tmp_path / "va.txt"
    te.write_text("a b\tO\na b\tI\na b\tO\nc\tO\n", encoding="utf-8")
    va.write_text("c\tI\nd\tO\n", encoding="utf-8")
    found = script.count(script.read(te), script.read(va))
    assert found == {
        "test": 4, "validation": 2, "identical": 0, "classes": 2, "majority": 3,
        "test_distinct": 2, "test_both": 1, "test_best": 3, "distinct": 3, "both": 2,
    }  # fmt: skip
    te.write_text("O a b\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"te\.txt, line 1: not sentence<TAB>label"):
        script.read(te)


def test_russian_is_highest_in_none_less_guessing(paper: PrintedTables) -> None:
    table = paper.less_guessing()
    assert sorted(table.index[table["highest"] == "ru"]) == ["BiShift", "SOMO"]
    assert table.loc[["BiShift", "SOMO"], "ru, guessing"].round(3).tolist() == [0.57, 0.513]
    assert "ru" not in set(table["highest less guessing"])
    lowest = paper.means.idxmin(axis=1) == "ru"
    assert sorted(lowest.index[lowest]) == [
        "CoordInv", "ObjNum", "SubjNum", "Tense", "TreeDepth", "WC",
    ]  # fmt: skip
    assert round(paper.setting_distances["es", "fr"], 3) == 0.02


def test_which_encoder_is_nearest_to_which(paper: PrintedTables) -> None:
    assert paper.nearest()["all tasks"].to_dict() == {
        "Attention (maxpool)": "Attention (last)", "Attention (last)": "Attention (maxpool)",
        "RNN (maxpool)": "Attention (maxpool)", "RNN (last)": "RNN (maxpool)",
        "CNN (maxpool)": "CNN (avg. pool)", "CNN (avg. pool)": "CNN (maxpool)",
    }  # fmt: skip
    overall = paper.overall().loc[[*ATTENTION, RNN[0]]].round(3)
    assert overall["all tasks"].tolist() == [0.604, 0.608, 0.591]
    assert overall["without SentLen"].tolist() == [0.578, 0.58, 0.587]


def test_the_cnn_has_half_the_parameters_of_the_rnn_not_a_tenth(paper: PrintedTables) -> None:
    table = read("table2_hyperparameters").set_index(["component", "layer"])["value"]
    words, hidden = int(table["Global", "Embeddings"].split()[0]), int(table["RNN", "biLSTM dim"])
    # four gates of weights on input and state and two biases; two directions; two layers
    recurrent = 2 * 4 * hidden * (words + hidden + 2 + 2 * hidden + hidden + 2)
    millions = paper.parameters()["millions"].tolist()
    assert millions == [round(recurrent / 1e6, 2), 9.80, 5.34, 1.78, 0.96]
    assert all(f"{number:.2f}" in README for number in millions)
    lost = (paper.inference.loc[CNN[0], "en"] - paper.inference.loc[CNN[0]].drop("en")).round(2)
    assert (lost.min(), lost.max()) == (0.07, 0.15)


def test_readme_lists_the_disagreements() -> None:
    for said in (
        "52 of 54 are positive", "51 or 52 of 54 correlations are positive", "31 of 54", "20 by",
        "71 are better than English and 56 worse", "49 and 52", "1.0 times", "2.2 with n - 1",
        "6.3 without English", "4.8 without French (UN)", "5.6 without the other French",
        "4 of 36", "1 by Bonferroni", "36 of 36 cells", "0.430 (ru) to 0.457", "0.543 to 0.570",
        "9 of 36", "7 by Bonferroni", "0.18 (ru) to 0.45 (fr)", "0.77 (fr) to 0.86", "6 of 9 tasks",
        "5,253 to 6,140", "29 (en), 32 (de), 52 (es), 64 (fr) and 35 (ru)", "1.26 times",
        "5 of 54", "0.096", "0.066",
        "0.074 in RNN, 0.021 in CNN, 0.011 in attention", "0.045, 0.101 and 0.027", "-0.005",
        "0.604 and 0.608", "0.578 and 0.580 to 0.587", "7 of 9 tasks", "0.07 to 0.15",
    ):  # fmt: skip
        assert said in README, said
