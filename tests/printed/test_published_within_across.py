"""The printed numbers of the within/across paper against each other, within rounding.

A number printed to one decimal stands for anything within half a unit of it; a difference that this
explains is agreement. What it does not explain is asserted as it is, with the numbers, and listed
in the README of the folder. All values are in per cent, as printed.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from xlx.core import paths
from xlx.mixing import reading, within_across

FOLDER = paths.DATA / "published" / "within_across"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())

#: Half a unit in the last place, and the slack of binary fractions.
HALF, SLACK = 0.05, 1e-9
MODELS = ["mBERT", "XLM-R", "InfoXLM"]
SETTINGS = ["within", "across"]
TABLES = {
    1: "table1_nli",
    2: "table2_pi",
    3: "table3_qa_f1",
    4: "table4_across_finetuning",
    5: "table5_nli_by_class_mbert",
    6: "table6_pi_by_class_mbert",
    7: "table7_control_tasks_mbert",
    8: "table8_qa_em",
    9: "table9_across_finetuning",
    10: "table10_nli_by_class_xlmr",
    11: "table11_nli_by_class_infoxlm",
    12: "table12_pi_by_class_xlmr",
    13: "table13_pi_by_class_infoxlm",
    14: "table14_control_tasks_xlmr",
}
FIGURES = {
    4: "figure4_nli_pairs_infoxlm",
    5: "figure5_pi_pairs_mbert",
    6: "figure6_pi_pairs_xlmr",
    7: "figure7_pi_pairs_infoxlm",
    8: "figure8_qa_pairs_mbert",
    9: "figure9_qa_pairs_xlmr",
    10: "figure10_qa_pairs_infoxlm",
}
#: Figure → the table that its averages are in, and the model.
AVERAGED = {
    4: (1, "InfoXLM"),
    5: (2, "mBERT"),
    6: (2, "XLM-R"),
    7: (2, "InfoXLM"),
    8: (3, "mBERT"),
    9: (3, "XLM-R"),
    10: (3, "InfoXLM"),
}
#: Tables by label, by task and model, and the class whose share is given first.
NLI_BY_LABEL = {"mBERT": 5, "XLM-R": 10, "InfoXLM": 11}
PI_BY_LABEL = {"mBERT": 6, "XLM-R": 12, "InfoXLM": 13}
#: Of XNLI test, 1,670 of 5,010; of PAWS-X test, those whose label is the same in de and zh.
ENTAILMENT, PARAPHRASE = 1 / 3, 886 / 1983
#: Languages of fine-tuning in Tables 4 and 9.
FINE_TUNED = ["en", "de", "tr", "el", "es", "ar"]


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv")


def with_average(number: int) -> pd.DataFrame:
    """Model, task, setting and class by language, and the printed average as `avg`."""
    rows = ["model", "task", "setting", "label_class"]
    return read(TABLES[number]).pivot(index=rows, columns="language", values="value")


def rows_of(number: int, model: str, task: str = "", label: str = "all") -> pd.DataFrame:
    """Setting by language, without the average."""
    table = with_average(number).drop(columns=["avg", "original"], errors="ignore").reset_index()
    table = table[table["model"].eq(model) & table["label_class"].eq(label)]
    table = table[table["task"].str.startswith(task)].set_index("setting")
    return table.drop(columns=["model", "task", "label_class"]).loc[SETTINGS].dropna(axis=1)


def grid(number: int) -> pd.DataFrame:
    """Language of part 1 (premise, sentence 1, context) by that of part 2."""
    figure = read(FIGURES[number])
    parts = [column for column in figure if column.endswith("_language")]
    first = next(c for c in parts if c.startswith(("premise", "sentence1", "context")))
    second = next(c for c in parts if c != first)
    order = list(dict.fromkeys(figure["sentence2_language" if number == 7 else first]))
    return figure.pivot(index=first, columns=second, values="value").loc[order, order]


def of_grid(number: int) -> pd.DataFrame:
    """Setting by language: diagonal, and mean of the cells with the language in one place."""
    cells = grid(number)
    values = cells.to_numpy()
    return pd.DataFrame(
        [within_across.within(values), within_across.across(values)],
        index=SETTINGS,
        columns=cells.index,
    )


def off_diagonal(cells: pd.DataFrame) -> np.ndarray:
    return cells.to_numpy()[~np.eye(len(cells), dtype=bool)]


def fine_tuning(number: int = 9) -> pd.DataFrame:
    """Fine-tuning pair by condition (tuned, baseline) and row of the table."""
    table = read(TABLES[number])
    table["condition"] = np.where(
        table["condition"].str.startswith("baseline"), "baseline", "tuned"
    )
    return table.pivot(
        index=["l1_premise", "l2_hypothesis"],
        columns=["condition", "evaluation_pair_as_printed"],
        values="value",
    )


def by_label(model: str, task: str) -> tuple[pd.DataFrame, pd.DataFrame, float]:
    """Setting by language for the two classes, and the share of the first."""
    if task == "NLI":
        number, labels, share = NLI_BY_LABEL[model], ("Entailment", "NotEntailment"), ENTAILMENT
    else:
        number, labels, share = PI_BY_LABEL[model], ("Paraphrase", "NonParaphrase"), PARAPHRASE
    one, other = (rows_of(number, model, label=label) for label in labels)
    return one, other, share


@pytest.fixture(scope="module")
def claims() -> pd.Series:
    return read("text_results").set_index("claim_id")["value"]


@pytest.fixture(scope="module")
def premise_mean() -> pd.Series:
    """What the baselines print as `*-l2`, by l1."""
    return fine_tuning()["baseline", "*-l2"].groupby("l1_premise").first()[FINE_TUNED]


@pytest.fixture(scope="module")
def hypothesis_mean(premise_mean: pd.Series) -> pd.Series:
    """What is left of Table 1 for the column of a language, if that is the mean of its row."""
    table = rows_of(1, "mBERT")[FINE_TUNED]
    both = 28 * table.loc["across"] + 2 * table.loc["within"]
    return both / 15 - premise_mean


# --- averages -------------------------------------------------------------------------------------


def averages() -> Iterator[tuple[int, tuple[str, ...], float, float]]:
    """Table, row, printed average, mean of the printed row."""
    for number in (1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 14):
        table = with_average(number)
        means = table.drop(columns=["avg", "original"], errors="ignore").mean(axis=1)
        for row, mean in means.items():
            yield number, row, table.loc[row, "avg"], mean


def test_nine_of_sixty_averages_are_not_those_of_their_rows() -> None:
    found = list(averages())
    wrong = {
        (number, row[0], row[2], row[3]): (printed, round(mean, 2))
        for number, row, printed, mean in found
        if abs(printed - mean) > 2 * HALF + SLACK
    }
    assert len(found) == 60
    assert wrong == {
        (1, "XLM-R", "across", "all"): (64.8, 65.09),
        (2, "mBERT", "within", "all"): (81.4, 82.11),
        (2, "XLM-R", "within", "all"): (85.7, 85.19),
        (5, "mBERT", "within", "NotEntailment"): (67.3, 68.41),
        (6, "mBERT", "within", "Paraphrase"): (81.4, 80.34),
        (6, "mBERT", "within", "NonParaphrase"): (82.9, 83.56),
        (8, "XLM-R", "across", "all"): (28.1, 24.08),
        (8, "InfoXLM", "within", "all"): (58.5, 57.87),
        (14, "XLM-R", "within", "all"): (71.3, 71.53),
    }


def test_one_average_leaves_out_english() -> None:
    """Table 5, NotEntailment; for the other eight no one language does it, or any of several."""
    fits = {}
    for number, row, printed, mean in averages():
        if abs(printed - mean) <= 2 * HALF + SLACK:
            continue
        values = with_average(number).loc[row].drop(["avg", "original"], errors="ignore").dropna()
        without = (values.sum() - values) / (len(values) - 1)
        fits[number, row[0], row[3]] = list(
            without.index[(without - printed).abs() <= 2 * HALF + SLACK]
        )
    assert fits == {
        (1, "XLM-R", "all"): ["bg", "es", "fr", "ru"],
        (2, "mBERT", "all"): ["es", "fr"],
        (2, "XLM-R", "all"): ["zh"],
        (5, "mBERT", "NotEntailment"): ["en"],
        (6, "mBERT", "Paraphrase"): [],
        (6, "mBERT", "NonParaphrase"): [],
        (8, "XLM-R", "all"): [],
        (8, "InfoXLM", "all"): ["hi"],
        (14, "XLM-R", "all"): ["bg", "de", "es", "fr"],
    }
    row = rows_of(5, "mBERT", label="NotEntailment").loc["within"]
    assert row.drop("en").mean() == pytest.approx(67.3)


def test_column_original_repeats_the_averages_of_tables_1_to_3() -> None:
    original = with_average(7)["original"]
    for task, number in (("NLI (XNLI)", 1), ("PI (PAWS-X)", 2), ("QA (XQuAD)", 3)):
        for setting in SETTINGS:
            row = ("mBERT", task, setting, "all")
            assert original[row] == with_average(number).loc[row, "avg"]


# --- Tables 1 to 3 from the heat maps -------------------------------------------------------------


@pytest.mark.parametrize("number", [5, 6, 7, 8, 9, 10])
def test_tables_2_and_3_are_the_averages_of_figures_5_to_10(number: int) -> None:
    table, model = AVERAGED[number]
    found = of_grid(number)
    off = (rows_of(table, model)[found.columns] - found).abs()
    assert off.loc["within"].max() < SLACK
    assert off.loc["across"].max() <= 2 * HALF + SLACK


def test_table_1_and_figure_4_are_of_different_runs_of_infoxlm() -> None:
    """Within is one number printed twice, and has to be the same, as in Figures 5 to 10."""
    found = of_grid(4)
    off = (rows_of(1, "InfoXLM")[found.columns] - found).round(3)
    allowed = {"within": SLACK, "across": 2 * HALF + SLACK}
    beyond = {
        setting: row[row.abs() > allowed[setting]].to_dict() for setting, row in off.iterrows()
    }
    assert beyond["within"] == {
        "en": -0.1, "de": 0.1, "ar": -0.1, "el": 0.2, "fr": -0.1, "sw": -0.1, "tr": -0.1,
        "vi": -0.1, "zh": -0.2,
    }  # fmt: skip
    assert beyond["across"] == pytest.approx(
        {"ar": 0.136, "ur": 0.118, "el": 0.286, "sw": 0.175, "th": 0.15}, abs=0.001
    )


def test_table_11_is_of_the_run_of_figure_4() -> None:
    one, other, share = by_label("InfoXLM", "NLI")
    off = (share * one + (1 - share) * other - of_grid(4)).abs()
    assert off.max(axis=None) <= 2 * HALF
    assert off.max(axis=None) == pytest.approx(0.055, abs=0.005)


def test_across_of_a_table_averages_to_the_cells_off_the_diagonal() -> None:
    for number in FIGURES:
        assert of_grid(number).loc["across"].mean() == pytest.approx(
            off_diagonal(grid(number)).mean()
        )


# --- a task's score from its scores by label ------------------------------------------------------


def label_differences(model: str, task: str) -> pd.DataFrame:
    """Printed less recomputed, setting by language."""
    one, other, share = by_label(model, task)
    return rows_of({"NLI": 1, "PI": 2}[task], model) - (share * one + (1 - share) * other)


@pytest.mark.parametrize(
    ("model", "within", "across", "largest"),
    [
        ("mBERT", {"es": -5.8, "zh": 0.33, "vi": 0.33}, {"vi": 0.27}, 5.8),
        ("XLM-R", 6, 13, 0.53),
        ("InfoXLM", 5, 4, 0.3),
    ],
)
def test_nli_by_label(model: str, within: dict | int, across: dict | int, largest: float) -> None:
    off = label_differences(model, "NLI")
    assert off.abs().max(axis=None) == pytest.approx(largest, abs=0.005)
    for setting, expected in (("within", within), ("across", across)):
        row = off.loc[setting]
        beyond = row[row.abs() > 2 * HALF + SLACK]
        if isinstance(expected, int):
            assert len(beyond) == expected
        else:
            assert beyond.to_dict() == pytest.approx(expected, abs=0.005)


def test_spanish_of_mbert_within_is_off_by_5_8() -> None:
    """By label it is 74.0, and only so is the control task not better than the task."""
    one, other, share = by_label("mBERT", "NLI")
    recomputed = share * one.loc["within", "es"] + (1 - share) * other.loc["within", "es"]
    assert recomputed == pytest.approx(74.0, abs=0.01)
    printed, control = rows_of(1, "mBERT"), rows_of(7, "mBERT", "NLI")
    assert printed.loc["within", "es"] == 68.2
    assert control.loc["within", "es"] == 71.0
    above = (control > printed[control.columns]).loc["within"]
    assert list(above.index[above]) == ["es"]


def share_interval(model: str) -> tuple[float, float]:
    """Shares of paraphrases at which all 14 scores of a model follow from those by label."""
    one, other, _ = by_label(model, "PI")
    score = rows_of(2, model)[one.columns]
    ends = [(score + sign * 2 * HALF - other) / (one - other) for sign in (-1, 1)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    return float(low.max(axis=None)), float(high.min(axis=None))


def test_share_of_paraphrases_is_that_of_the_test_set() -> None:
    bounds = [share_interval(model) for model in ("mBERT", "XLM-R")]
    low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
    assert (low, high) == pytest.approx((0.4465, 0.4471), abs=0.00006)
    assert low < PARAPHRASE < high
    assert low < 894 / 2000 < high < 895 / 2000  # zh and de as they are
    assert high > 863 / 2000  # the largest share in dev, en
    assert low > 863 / 2000
    low, high = share_interval("InfoXLM")
    assert low > high  # no share fits


def test_pairs_with_all_translations_are_not_those_that_were_tested() -> None:
    """Section 3.2: "only parallel sentences", "less than 0.5% on average" excluded."""
    public = read("pawsx_test").set_index("subset")
    share = public["paraphrases"] / public["pairs"]
    alike, whole = "same label in German and Chinese", "both sentences in all languages"
    assert share[alike] == PARAPHRASE
    bounds = [share_interval(model) for model in ("mBERT", "XLM-R")]
    low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
    fits = share.between(low, high)
    assert set(share.index[fits]) == {alike, "labels of Chinese"}
    assert share[whole] == pytest.approx(0.4572, abs=5e-5)
    assert public.loc[[alike, whole], "left_out"].tolist() == [17, 121]  # of 2,000
    one = public[public.index.str.fullmatch(r"both sentences in \w\w")]["left_out"]
    assert (len(one), one.mean()) == (7, 22)
    assert (public["pairs"] + public["left_out"] == 2000).all()


def test_pairs_of_pawsx_are_counted(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("count_pawsx", FOLDER / "pawsx_test.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for code in script.LANGUAGES:
        rows = [("a", "b", "1"), ("NS" if code == "ja" else "c", "d", "1"), ("e", "f", "0"),
                ("" if code == "de" else "g", "h", "0" if code == "de" else "1")]  # fmt: skip
        text = "".join("\t".join(row) + "\n" for row in rows)
        (tmp_path / f"test-{code}.tsv").write_text(text, encoding="utf-8")
    command = [sys.executable, FOLDER / "pawsx_test.py", tmp_path, "--out", tmp_path]
    subprocess.run(command, check=True)
    found = pd.read_csv(tmp_path / "pawsx_test.csv").set_index("subset")
    assert found.loc["labels of German"].tolist() == [4, 0, 2]
    assert found.loc["labels of Chinese"].tolist() == [4, 0, 3]
    assert found.loc["same label in German and Chinese"].tolist() == [3, 1, 2]
    assert found.loc["both sentences in all languages"].tolist() == [2, 2, 1]
    assert found.loc["both sentences in ja", "left_out"] == 1


def test_table_13_is_of_another_run_than_table_2() -> None:
    off = label_differences("InfoXLM", "PI")
    assert (off.abs() > 2 * HALF + SLACK).sum(axis=1).to_dict() == {"within": 5, "across": 4}
    assert off.abs().max(axis=None) == pytest.approx(0.45, abs=0.005)
    for model in ("mBERT", "XLM-R"):
        assert label_differences(model, "PI").abs().max(axis=None) <= 2 * HALF + SLACK


def contributions(model: str, task: str) -> tuple[float, float]:
    """Of the mean drop, in points: what the first class brings, and the second."""
    one, other, share = by_label(model, task)
    drops = [table.loc["within"].mean() - table.loc["across"].mean() for table in (one, other)]
    return share * drops[0], (1 - share) * drops[1]


@pytest.mark.parametrize(
    ("model", "task", "first", "second"),
    [
        ("mBERT", "NLI", 12.97, -1.41),
        ("XLM-R", "NLI", 6.04, 2.91),
        ("InfoXLM", "NLI", 4.24, 0.98),
        ("mBERT", "PI", 15.46, -2.63),
        ("XLM-R", "PI", 18.68, -2.76),
        ("InfoXLM", "PI", 6.13, 2.20),
    ],
)
def test_most_of_the_drop_is_of_one_class(
    model: str, task: str, first: float, second: float
) -> None:
    found = contributions(model, task)
    assert found == pytest.approx((first, second), abs=0.005)
    assert first / (first + second) > 0.6


def test_where_the_other_class_gains_across() -> None:
    gains = {}
    for model in MODELS:
        for task in ("NLI", "PI"):
            other = by_label(model, task)[1]
            rise = other.loc["across"] - other.loc["within"]
            gains[model, task] = set(rise.index[rise > 0])
    assert gains["mBERT", "NLI"] == {"ar", "tr", "el", "ur", "hi", "th", "sw"}
    assert gains["mBERT", "PI"] == gains["XLM-R", "PI"] == {"de", "fr", "es", "zh", "ko", "ja"}
    assert gains["XLM-R", "NLI"] == set()
    assert gains["InfoXLM", "NLI"] == {"ur", "sw"}
    assert gains["InfoXLM", "PI"] == {"ja"}


@pytest.mark.parametrize(
    ("model", "sensitivity", "criterion", "lost"),
    [
        ("mBERT", [1.95, 1.08], [0.02, 0.65], [14.9, 12.0, 2.9]),
        ("XLM-R", [2.18, 1.18], [0.07, 0.84], [18.4, 13.2, 5.2]),
        ("InfoXLM", [2.31, 1.55], [-0.08, 0.11], [8.8, 8.9, 0.0]),
    ],
)
def test_what_is_lost_by_sensitivity_and_by_preference(
    model: str, sensitivity: list, criterion: list, lost: list
) -> None:
    """On PAWS-X; the mean of the classes falls in all models, which alone says neither."""
    one, other, _ = by_label(model, "PI")
    hits, rejections = (stats.norm.ppf(table / 100) for table in (one, other))
    found = pd.DataFrame(hits + rejections, one.index, one.columns)
    assert found.mean(axis=1).round(2).tolist() == sensitivity
    assert ((rejections - hits) / 2).mean(axis=1).round(2).tolist() == criterion
    unbiased = pd.DataFrame(100 * stats.norm.cdf(found / 2), one.index, one.columns)
    drops = [
        (table.loc["within"] - table.loc["across"]).mean()
        for table in ((one + other) / 2, unbiased)
    ]
    assert [*np.round(drops, 1), abs(round(drops[0] - drops[1], 1))] == lost
    table = reading.detection(one / 100, other / 100)
    assert np.allclose(table.sensitivity, found)
    assert np.allclose(100 * table.unbiased, unbiased)


def test_classes_do_not_contribute_equally_within() -> None:
    one, other, share = by_label("mBERT", "NLI")
    gap = one.loc["within"] - other.loc["within"]
    assert (gap.idxmin(), gap.min()) == ("zh", pytest.approx(-20.2))
    assert (gap.idxmax(), gap.max()) == ("sw", pytest.approx(26.7))
    parts = share * one.loc["within"].mean(), (1 - share) * other.loc["within"].mean()
    assert parts == pytest.approx((20.42, 45.60), abs=0.005)
    assert [table.loc["within"].mean().round(1) for table in (one, other)] == [61.3, 68.4]
    assert (gap.abs() < 10).sum() == 4


def test_paraphrase_class_of_table_12_is_no_better_within() -> None:
    """Korean and Japanese have the gap within already that the paper finds across."""
    one, other, _ = by_label("XLM-R", "PI")
    gap = (one - other).loc["within"]
    assert gap[["ko", "ja"]].tolist() == pytest.approx([-23.2, -9.9])
    assert gap.drop(["ko", "ja"]).abs().max() == pytest.approx(2.6)


# --- exact match and F1 ---------------------------------------------------------------------------


def test_exact_match_is_below_f1_everywhere() -> None:
    for model in MODELS:
        below = rows_of(3, model) - rows_of(8, model)
        assert below.min(axis=None) >= 8.7 - SLACK


# --- Tables 4 and 9 -------------------------------------------------------------------------------


def test_table_4_is_part_of_table_9() -> None:
    four, nine = fine_tuning(4), fine_tuning(9)
    assert (four == nine.loc[four.index, four.columns]).all(axis=None)
    assert (four.shape, nine.shape) == ((4, 10), (30, 10))


def test_baseline_of_a_cell_is_the_same_in_both_rows_that_have_it() -> None:
    baseline = fine_tuning()["baseline"]
    swapped = baseline["l2-l1"].swaplevel().reindex(baseline.index)
    assert (baseline["l1-l2"].to_numpy() == swapped.to_numpy()).all()


def test_starred_baselines_are_of_the_wrong_language(premise_mean: pd.Series) -> None:
    """`*-l2` is one number for each l1 and `l1-*` one for each l2, and they are the same six."""
    baseline = fine_tuning()["baseline"]
    assert (baseline["*-l2"].groupby("l1_premise").nunique() == 1).all()
    assert (baseline["l1-*"].groupby("l2_hypothesis").nunique() == 1).all()
    second = baseline["l1-*"].groupby("l2_hypothesis").first()[FINE_TUNED]
    assert second.tolist() == premise_mean.tolist() == [59.4, 58.7, 52.7, 55.0, 58.7, 55.0]


def known_cells() -> pd.DataFrame:
    """The baseline's cells between the six languages, premise by hypothesis."""
    return fine_tuning()["baseline", "l1-l2"].unstack().loc[FINE_TUNED, FINE_TUNED]


def test_starred_baselines_are_means_over_hypotheses(
    premise_mean: pd.Series, hypothesis_mean: pd.Series
) -> None:
    """The known cells of a row less those of its column go with what this implies for all 15."""
    cells = known_cells()
    known = cells.mean(axis=1) - cells.mean()
    implied = premise_mean - hypothesis_mean
    assert known.round(1).tolist() == [-6.5, 1.8, 3.5, 1.2, -1.9, 1.9]
    assert implied.round(1).tolist() == [-6.5, 0.3, 1.7, -0.4, -2.2, 0.1]
    assert known.corr(implied) > 0.95
    assert hypothesis_mean.round(1).tolist() == [65.9, 58.4, 51.0, 55.4, 60.9, 54.9]


def test_all_starred_is_over_the_whole_grid() -> None:
    assert set(fine_tuning()["baseline", "*-*"]) == {55.3}
    table = rows_of(1, "mBERT")
    whole = (15 * table.loc["within"].mean() + 210 * table.loc["across"].mean()) / 225
    assert whole == pytest.approx(55.245, abs=0.005)
    assert abs(whole - 55.3) <= 2 * HALF
    assert table.loc["across"].mean() == pytest.approx(54.5, abs=0.005)


def test_what_fine_tuning_on_a_pair_changes(
    premise_mean: pd.Series, hypothesis_mean: pd.Series
) -> None:
    table = fine_tuning()
    gain = table["tuned"] - table["baseline"]
    assert gain.mean().round(2).to_dict() == {
        "l1-l2": 8.69, "l2-l1": -12.53, "*-l2": 3.78, "l1-*": -6.91, "*-*": -0.58,
    }  # fmt: skip
    assert (gain > SLACK).sum().to_dict() == {
        "l1-l2": 28, "l2-l1": 5, "*-l2": 27, "l1-*": 8, "*-*": 14,
    }  # fmt: skip
    first, second = (table.index.get_level_values(level) for level in table.index.names)
    column = table["tuned", "*-l2"] - hypothesis_mean[second].to_numpy()
    row = table["tuned", "l1-*"] - premise_mean[first].to_numpy()
    assert (column.mean(), (column > 0).sum()) == (pytest.approx(2.62, abs=0.005), 19)
    assert (row.mean(), (row > 0).sum()) == (pytest.approx(-6.91, abs=0.01), 6)


def test_pairs_with_arabic_hypotheses_are_the_only_ones_to_gain_swapped() -> None:
    table = fine_tuning()
    second = table.index.get_level_values("l2_hypothesis")
    gain = table["tuned"] - table["baseline"]
    assert ((gain["l2-l1"] > 0) == (second == "ar")).all()
    assert [*gain.index[gain["l1-l2"] < 0]] == [("en", "ar"), ("es", "ar")]
    apart = table["tuned", "l1-l2"] - table["tuned", "l2-l1"]
    assert apart[second == "ar"].round(1).to_dict() == {
        ("de", "ar"): -3.6, ("el", "ar"): 0.7, ("en", "ar"): -22.0, ("es", "ar"): -27.7,
        ("tr", "ar"): 1.7,
    }  # fmt: skip
    assert apart[second != "ar"].agg(["min", "max"]).round(1).tolist() == [7.0, 37.4]


def test_fine_tuned_starred_rows_look_as_mislabelled_as_the_baselines(
    premise_mean: pd.Series, hypothesis_mean: pd.Series
) -> None:
    """`*-l2` goes with l1 as premise; `l1-*` with l2-l1, which is none of its cells."""
    tuned = fine_tuning()["tuned"]
    tuned = tuned[tuned.index.get_level_values("l2_hypothesis") != "ar"]
    first, second = (tuned.index.get_level_values(level) for level in tuned.index.names)
    column = tuned["*-l2"].to_numpy()
    assert np.corrcoef(column, premise_mean[first])[0, 1] == pytest.approx(0.70, abs=0.005)
    assert np.corrcoef(column, hypothesis_mean[second])[0, 1] == pytest.approx(-0.24, abs=0.01)
    for keys, explained in ((first, 0.71), (second, 0.16)):
        fitted = tuned["*-l2"].groupby(keys).transform("mean")
        assert fitted.var() / tuned["*-l2"].var() == pytest.approx(explained, abs=0.005)
    tuned = fine_tuning()["tuned"]
    assert tuned["l1-*"].corr(tuned["l2-l1"]) == pytest.approx(0.66, abs=0.005)
    assert tuned["l1-*"].corr(tuned["l1-l2"]) == pytest.approx(-0.66, abs=0.005)
    assert (tuned["l1-*"] - tuned["l2-l1"]).abs().median() == pytest.approx(3.4)
    assert (tuned["l1-*"] - tuned["l1-l2"]).abs().median() == pytest.approx(20.7)
    rest = (15 * tuned["l1-*"] - tuned["l1-l2"]) / 14
    assert (rest < 40).sum() == 7
    assert rest.min() == pytest.approx(35.4, abs=0.05)


# --- claims about the drop ------------------------------------------------------------------------


def drop(number: int, model: str) -> tuple[float, float]:
    """From within to across, by the printed rows: points, per cent."""
    within, across = rows_of(number, model).mean(axis=1)[SETTINGS]
    return within - across, 100 * (within - across) / within


def test_drops_of_the_means() -> None:
    found = {number: [drop(number, model) for model in MODELS] for number in (1, 2, 3, 8)}
    assert np.round(found[1], 1).tolist() == [[11.2, 17.0], [9.1, 12.3], [5.1, 6.8]]
    assert np.round(found[2], 1).tolist() == [[12.8, 15.6], [16.0, 18.7], [8.2, 9.5]]
    assert np.round(found[3], 1).tolist() == [[20.2, 31.4], [35.3, 49.0], [9.4, 12.7]]
    assert np.round(found[8], 1).tolist() == [[18.6, 37.6], [32.7, 57.6], [8.3, 14.4]]


def test_17_per_cent_is_relative(claims: pd.Series) -> None:
    assert claims["wa_t01"] == claims["wa_t02"] == "17%"
    points, relative = {}, {}
    for model in ("mBERT", "XLM-R"):
        table = rows_of(1, model)[["en", "de"]]
        lost = table.loc["within"] - table.loc["across"]
        points[model], relative[model] = lost.mean(), (100 * lost / table.loc["within"]).mean()
    assert points == pytest.approx({"mBERT": 16.55, "XLM-R": 11.1})
    assert relative == pytest.approx({"mBERT": 21.5, "XLM-R": 13.7}, abs=0.05)
    assert np.mean([*relative.values()]) == pytest.approx(17.6, abs=0.05)
    pi = [drop(2, model) for model in ("mBERT", "XLM-R")]
    assert np.mean(pi, axis=0).round(1).tolist() == [14.4, 17.2]


def test_half_is_lost_by_xlm_r_in_exact_match_only(claims: pd.Series) -> None:
    assert claims["wa_t03"] == claims["wa_t04"] == "50%"
    above = {
        (number, model): int(
            (
                1 - rows_of(number, model).loc["across"] / rows_of(number, model).loc["within"]
                > 0.5
            ).sum()
        )
        for number in (3, 8)
        for model in ("mBERT", "XLM-R")
    }
    assert above == {(3, "mBERT"): 0, (3, "XLM-R"): 7, (8, "mBERT"): 0, (8, "XLM-R"): 8}
    assert drop(8, "XLM-R")[1] > 50 > drop(3, "XLM-R")[1]


def test_swahili_loses_least_in_mbert() -> None:
    """Section 3.1: "even more pronounced for low-resource languages such as Swahili"."""
    ranks, correlations, relative = {}, {}, {}
    for model in MODELS:
        table = rows_of(1, model)
        lost = table.loc["within"] - table.loc["across"]
        ranks[model] = int(lost.rank(ascending=False)["sw"])
        correlations[model] = round(lost.corr(table.loc["within"]), 2)
        relative[model] = round(100 * lost["sw"] / table.loc["within", "sw"], 1)
    assert ranks == {"mBERT": 15, "XLM-R": 2, "InfoXLM": 12}
    assert correlations == {"mBERT": 0.95, "XLM-R": 0.57, "InfoXLM": 0.89}
    assert relative["mBERT"] == 9.3  # English and German 21.5
    assert relative["XLM-R"] == 17.6  # 13.7


def test_entailment_drops_most_in_swahili_but_not_in_urdu_or_hindi() -> None:
    for model in MODELS:
        one, _, _ = by_label(model, "NLI")
        lost = (one.loc["within"] - one.loc["across"]).sort_values()
        assert lost.index[-1] == "sw"
        assert lost.index[0] == "ur"
        assert lost["hi"] < lost["de"] < lost["en"]


# --- the grids themselves -------------------------------------------------------------------------


def below_both(number: int) -> tuple[int, list[tuple[str, str]]]:
    """How many cells off the diagonal there are, and those not below within of both languages."""
    cells = grid(number)
    diagonal = np.diag(cells)
    lower = cells < np.minimum(diagonal[:, None], diagonal[None, :])
    names = [(a, b) for a in cells.index for b in cells.columns if a != b and not lower.loc[a, b]]
    return len(cells) * (len(cells) - 1), names


def test_cells_not_below_both_languages() -> None:
    found = {number: below_both(number) for number in FIGURES}
    assert {number: (n, len(names)) for number, (n, names) in found.items()} == {
        4: (210, 39), 5: (42, 1), 6: (42, 0), 7: (42, 5), 8: (110, 4), 9: (110, 0), 10: (110, 14),
    }  # fmt: skip
    assert found[8][1] == [("de", "en"), ("el", "en"), ("es", "en"), ("tr", "en")]
    assert sum(context == "en" for context, _ in found[10][1]) == 9
    assert sum("en" in pair for pair in found[10][1]) == 12
    assert [pair for pair in found[10][1] if "en" not in pair] == [("es", "zh"), ("vi", "zh")]


def test_english_questions_cost_little_in_all_models() -> None:
    """Section 3.3: with an English question a score is near that of the context's language."""
    question, context = [], []
    for number in (8, 9, 10):
        cells, own = grid(number), pd.Series(np.diag(grid(number)), grid(number).index)
        question.append((cells["en"] - own).drop("en").mean())
        context.append((cells.loc["en"] - own).drop("en").mean())
    assert np.round(question, 1).tolist() == [-1.1, -4.3, -0.8]
    assert np.round(context, 1).tolist() == [-9.7, -20.9, 2.9]


def effects(number: int) -> tuple[list[float], list[float]]:
    """A term a language of each part: R² of part 1, part 2, both; sd of the terms of each."""
    cells = grid(number)
    n = len(cells)
    row, column = np.nonzero(~np.eye(n, dtype=bool))
    value = cells.to_numpy()[row, column]
    designs = np.eye(n)[row], np.eye(n)[column]
    both = np.hstack(designs)
    explained = []
    for design in (*designs, both):
        fitted = design @ np.linalg.lstsq(design, value, rcond=None)[0]
        explained.append(round(1 - (value - fitted).var() / value.var(), 2))
    terms = np.linalg.lstsq(both, value, rcond=None)[0].reshape(2, n)
    return explained, terms.std(axis=1).round(1).tolist()


def test_which_part_matters_more() -> None:
    assert {number: effects(number) for number in FIGURES} == {
        4: ([0.30, 0.60, 0.97], [3.2, 4.4]),
        5: ([0.22, 0.34, 0.67], [5.0, 5.8]),
        6: ([0.28, 0.36, 0.77], [5.6, 6.1]),
        7: ([0.33, 0.37, 0.84], [4.8, 5.0]),
        8: ([0.20, 0.68, 0.96], [6.9, 11.5]),
        9: ([0.16, 0.73, 0.95], [7.2, 13.7]),
        10: ([0.60, 0.29, 0.96], [5.1, 3.8]),
    }


def test_antisymmetric_part() -> None:
    """Share of the variance off the diagonal that swapping the languages turns round."""
    shares = []
    for number in FIGURES:
        values = grid(number).to_numpy()
        off = off_diagonal(grid(number))
        shares.append(
            round(((values - values.T) ** 2).sum() / 4 / ((off - off.mean()) ** 2).sum(), 3)
        )
    assert shares == [0.035, 0.007, 0.003, 0.004, 0.098, 0.176, 0.101]


def odd_part(number: int) -> np.ndarray:
    order = list(grid(5 if number < 8 else 8).index)
    values = grid(number).loc[order, order].to_numpy()
    return (values - values.T)[np.triu_indices(len(order), 1)]


def test_which_way_round_figure_7_is_cannot_be_told() -> None:
    assert np.corrcoef(odd_part(5), odd_part(6))[0, 1] == pytest.approx(0.42, abs=0.005)
    for number, r in ((5, -0.10), (6, -0.15)):
        assert np.corrcoef(odd_part(7), odd_part(number))[0, 1] == pytest.approx(r, abs=0.005)
    assert np.corrcoef(odd_part(8), odd_part(9))[0, 1] == pytest.approx(0.92, abs=0.005)


def test_infoxlm_gains_no_more_in_pairs_with_english() -> None:
    """Section 3.1: the objective "has mostly helped the performance of pairs including English"."""
    found = {}
    for better, worse in ((7, 5), (7, 6), (10, 8), (10, 9)):
        gain = grid(better) - grid(worse).loc[grid(better).index, grid(better).columns]
        english = np.r_[gain.loc["en"].drop("en"), gain["en"].drop("en")].mean()
        found[better, worse] = [english, off_diagonal(gain.drop(index="en", columns="en")).mean()]
    gain = grid(4).loc[FINE_TUNED, FINE_TUNED] - known_cells()
    english = np.r_[gain.loc["en"].drop("en"), gain["en"].drop("en")].mean()
    others = off_diagonal(gain.drop(index="en", columns="en")).mean()
    found[4, "Table 9"] = [english, others]
    assert {key: np.round(value, 1).tolist() for key, value in found.items()} == {
        (7, 5): [9.5, 8.5], (7, 6): [8.2, 9.0], (10, 8): [16.8, 21.1], (10, 9): [15.6, 30.4],
        (4, "Table 9"): [15.3, 15.6],
    }  # fmt: skip


def test_paraphrase_is_lost_between_scripts() -> None:
    """Mean of within of the two languages less the cell, by block of languages."""
    latin, cjk = ["en", "es", "de", "fr"], ["zh", "ja", "ko"]
    found = {}
    for number in (5, 6, 7):
        cells = grid(number)
        own = np.diag(cells)
        lost = (own[:, None] + own[None, :]) / 2 - cells
        mixed = [lost.loc[latin, cjk], lost.loc[cjk, latin]]
        found[number] = [
            off_diagonal(lost.loc[latin, latin]).mean(),
            off_diagonal(lost.loc[cjk, cjk]).mean(),
            np.mean([block.mean(axis=None) for block in mixed]),
        ]
    assert np.round([*found.values()], 1).tolist() == [
        [5.5, 9.6, 17.3], [8.1, 15.4, 20.1], [2.6, 8.4, 10.9],
    ]  # fmt: skip


# --- control tasks --------------------------------------------------------------------------------

CONTROL_TABLES = {"mBERT": 7, "XLM-R": 14}


def control_loss(model: str, task: str) -> pd.DataFrame:
    """Task less control task, setting by language."""
    original = rows_of({"NLI": 1, "PI": 2, "QA": 3}[task], model)
    return original - rows_of(CONTROL_TABLES[model], model, task)[original.columns]


def test_drops_of_the_control_tasks(claims: pd.Series) -> None:
    assert (claims["wa_t05"], claims["wa_t06"]) == ("4%", "3%")
    points, relative = {}, {}
    for model in CONTROL_TABLES:
        for task, number in (("NLI", 1), ("PI", 2), ("QA", 3)):
            lost = control_loss(model, task).mean(axis=1)
            points[model, task] = lost.round(1).tolist()
            whole = rows_of(number, model).mean(axis=1)
            relative[model, task] = (100 * lost / whole).round(1).tolist()
    assert points == {
        ("mBERT", "NLI"): [1.8, 2.1], ("mBERT", "PI"): [26.7, 13.2], ("mBERT", "QA"): [1.6, 3.5],
        ("XLM-R", "NLI"): [2.7, 3.2], ("XLM-R", "PI"): [30.1, 14.1], ("XLM-R", "QA"): [1.5, -1.5],
    }  # fmt: skip
    assert {key: value for key, value in relative.items() if key[1] != "PI"} == {
        ("mBERT", "NLI"): [2.8, 3.9], ("mBERT", "QA"): [2.5, 8.0],
        ("XLM-R", "NLI"): [3.6, 4.9], ("XLM-R", "QA"): [2.1, -4.1],
    }  # fmt: skip


def test_no_reading_gives_both_four_and_three_per_cent() -> None:
    """Of unit, models and settings, each alone or both; the mean over all gives 3.8 % and 2.1 %."""
    lost = {}
    for task, number in (("NLI", 1), ("QA", 3)):
        for model in CONTROL_TABLES:
            points = control_loss(model, task).mean(axis=1)
            lost[task, model, "points"] = points
            lost[task, model, "%"] = 100 * points / rows_of(number, model).mean(axis=1)
    some = [["mBERT"], ["XLM-R"], ["mBERT", "XLM-R"]]
    places = [["within"], ["across"], SETTINGS]
    found = {
        (unit, *map(tuple, (models, settings))): [
            np.mean([lost[task, model, unit][settings].mean() for model in models])
            for task in ("NLI", "QA")
        ]
        for unit in ("points", "%") for models in some for settings in places
    }  # fmt: skip
    assert len(found) == 18
    assert sum(abs(nli - 4) < 0.5 for nli, _ in found.values()) == 5
    assert sum(abs(qa - 3) < 0.5 for _, qa in found.values()) == 1
    assert not any(abs(nli - 4) < 0.5 and abs(qa - 3) < 0.5 for nli, qa in found.values())
    plain = found["%", ("mBERT", "XLM-R"), tuple(SETTINGS)]
    assert np.round(plain, 1).tolist() == [3.8, 2.1]


def test_xlm_r_answers_better_across_with_shuffled_questions() -> None:
    better = control_loss("XLM-R", "QA").loc["across"] < -SLACK
    assert set(better.index[better]) == {"ru", "zh", "vi", "ar", "tr", "el", "hi", "th"}
    better = control_loss("mBERT", "QA").loc["within"] < -SLACK
    assert list(better.index[better]) == ["th"]


def test_paraphrase_control_is_at_the_majority_class() -> None:
    majority = 100 * (1 - PARAPHRASE)
    assert majority == pytest.approx(55.3, abs=0.05)
    for model, farthest in (("mBERT", 1.8), ("XLM-R", 0.7)):
        off = rows_of(CONTROL_TABLES[model], model, "PI") - majority
        assert off.abs().max(axis=None) == pytest.approx(farthest, abs=0.05)


# --- the folder -----------------------------------------------------------------------------------


def test_languages_are_those_of_the_settings() -> None:
    settings = yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))["languages"]
    for number, task in ((1, "NLI"), (2, "PI"), (3, "QA")):
        assert set(rows_of(number, "mBERT").columns) == set(settings[task])
    for number, task in ((4, "NLI"), (5, "PI"), (6, "PI"), (7, "PI"), (8, "QA"), (9, "QA")):
        assert set(grid(number).index) == set(settings[task])


def test_the_readme_lists_every_file_with_its_rows() -> None:
    for file in FOLDER.glob("*.csv"):
        line = next(row for row in README.split("| `") if row.startswith(f"{file.name}`"))
        assert f"| {len(pd.read_csv(file))} |" in line, file.name


@pytest.mark.parametrize(
    "number",
    [
        *("64.8 | 65.09", "81.4 | 82.11", "85.7 | 85.19", "67.3 | 68.41", "81.4 | 80.34"),
        *("82.9 | 83.56", "28.1 | 24.08", "58.5 | 57.87", "71.3 | 71.53"),
        *("68.2", "74.0", "0.4465 to 0.4471", "886 of 1,983", "0.53", "0.45", "0.29"),
        *("59.4, 58.7, 52.7, 55.0, 58.7, 55.0", "65.9, 58.4, 51.0, 55.4, 60.9, 54.9", "55.245"),
        *("-27.7 to 1.7", "7.0 to 37.4", "0.70", "-0.24", "20.42 and 45.60"),
        *("17.6", "31.4", "49.0", "37.6", "57.6", "-1.5", "39 of 210", "14 of 110"),
        *(
            "15.6 and 30.4",
            "0.176",
            "55.3",
            "14 of 30",
            "1.95 to 1.08",
            "2.9 of 14.9",
            "5.2 of 18.4",
        ),
        *("121 of 2,000", "0.4572", "3.8 %", "2.1 %", "328 of 330", "-0.3 (-3.7 to 3.2)"),
    ],
)
def test_the_readme_names_what_does_not_fit(number: str) -> None:
    assert number in README
