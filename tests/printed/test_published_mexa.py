"""The printed numbers of the MEXA paper against each other, within rounding.

A number printed to d places stands for anything within half a unit of its last place; a difference
that this explains is agreement. What it does not explain is asserted as it is, with the numbers,
and listed in the README of the folder. The arithmetic is that of the notebook: `published`,
`correlation_tables` and `claims` of `xlx.measures.mexa`; beside it stand loops written out.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from printed import mexa_claims
from printed.mexa_claims import ENGLISH, FIGURE_1_MODEL, HALF_2, HALF_4, OTHERS
from printed.printed_tables import VERDICTS, Audit
from xlx.results import paths
from xlx.text import parallel
from xlx.text.languages import parse_tag

FOLDER = paths.DATA / "published" / "mexa"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def p() -> mexa_claims.MexaTables:
    return mexa_claims.MexaTables()


@pytest.fixture(scope="module")
def audit(p: mexa_claims.MexaTables) -> Audit:
    """All numbers and all claims, as the notebook has them."""
    whole = Audit()
    mexa_claims.check_averages(whole, p)
    mexa_claims.check_table_6(whole, p)
    mexa_claims.check_hundredths(whole, p)
    mexa_claims.check_correlations(whole, p)
    mexa_claims.check_text_averages(whole, p)
    mexa_claims.check_figure_1(whole, p)
    mexa_claims.check_chance(whole, p)
    mexa_claims.check_counts(whole, p)
    mexa_claims.audit_claims(whole, p)
    return whole


# --- all numbers, all claims ----------------------------------------------------------------------


def test_299_of_301_numbers_agree(audit: Audit) -> None:
    assert len(audit.numbers) == 301
    off = audit.numbers[~audit.numbers["agrees"]]
    assert off[["table", "what", "printed"]].to_numpy().tolist() == [
        ["Table 1, μ max by hundredths", "Gemma 2 9B", 0.7194],
        ["Table 5, averages possible", "Bible, last token, Max, m-MMLU", 0.7994],
    ]
    assert off["recomputed"].round(4).tolist() == [0.7190, 0.7221]
    assert audit.overall()["numbers"].tolist() == [10, 10, 203, 9, 9, 20, 24, 3, 1, 1, 11]


def test_verdicts_of_all_claims(audit: Audit) -> None:
    assert audit.claims["verdict"].value_counts().to_dict() == dict(
        zip(VERDICTS, (22, 9, 2), strict=False)
    )
    by_verdict = audit.claims.groupby("verdict")["where"].agg(list)
    assert by_verdict["does not hold"] == ["4.1", "A.4"]
    assert by_verdict["holds in part"] == [
        "A.8", "5.1", "5.2", "Tables 2, 5", "5", "5", "5", "A.7", "A.7",
    ]  # fmt: skip


def test_each_claim_has_a_section_a_formula_and_parts(p: mexa_claims.MexaTables) -> None:
    table = mexa_claims.all_claims(p)
    assert len(table) == len(table.drop_duplicates(["section", "claim"])) == 33
    assert table[["formula", "found", "parts"]].map(bool).all(axis=None)
    shown = mexa_claims.shown_claims(p, ["A.1", "Limitations"])
    assert shown["verdict"].tolist() == ["holds"] * 3


def test_what_the_numbers_say_of_a_claim(audit: Audit) -> None:
    for claim, said in (
        ("max pooling correlates better with Belebele", "-0.0077 (Bible, last token), +0.0315"),
        ("weighted average with mean is best over both data sets", "0.9040"),
        ("labels are those of FLORES-200", "lao_Lao, swl_Latn"),
        ("of 7 to 9 billion, Llama 3.1 outperforms the others", "in 4 of 7 rows"),
        ("Llama 2 and OLMo are comparable", "Belebele -0.060, m-MMLU -0.013, m-ARC +0.044"),
        ("a score larger than 0.05", "0.000162; larger: 0.0000128"),
        ("of very low-resource languages", "in 7 of 9 models, not in Gemma 2 9B, Llama 3.1 70B"),
        ("the cosine correlates significantly lower (Llama 1 7B)", "p < 1e-03"),
        ("p < 0.001 but where marked", "192 of 192"),
    ):
        (found,) = audit.claims.loc[audit.claims["claim"].str.startswith(claim), "found"]
        assert said in found


# --- Tables 2 and 5 -------------------------------------------------------------------------------


def test_one_average_of_table_5_cannot_be_one(p: mexa_claims.MexaTables) -> None:
    """Eight of nine columns are left: the ninth that each average implies, and the one beyond 1."""
    implied = mexa_claims.implied_ninth(p)
    derived = pd.read_csv(FOLDER / "table5_implied_missing_column_DERIVED.csv")
    derived = derived.set_index(mexa_claims.SETTING)["implied_missing_value_DERIVED_not_printed"]
    assert (derived - implied[derived.index]).abs().max() < 1e-9
    # The average is known to half a unit, so nine times it to 4.5 units; the eight add half each.
    beyond = implied[implied.abs() > 1 + 17 * HALF_4]
    assert dict(beyond.round(4)) == {mexa_claims.NO_AVERAGE: 1.6961}
    assert implied.drop(mexa_claims.NO_AVERAGE).between(0.68, 0.98).all()
    changed = mexa_claims.digit_changes(p)
    assert changed.iloc[:, 0].tolist() == [0.6994, 0.7094, 0.7194]
    lost = set(p.table_5.index) - set(p.table_2.index)  # the last four, not in the text version
    assert {row[:2] for row in lost} == {("Bible", "last token")}
    assert len(lost) == 4


def test_the_default_is_best_over_both_data_sets_but_not_on_flores_alone(
    p: mexa_claims.MexaTables,
) -> None:
    mean = mexa_claims.setting_averages(p)
    assert mean["FLORES"].idxmax() == ("last token", "Mean")
    assert mean["FLORES", "last token", "Mean"] == pytest.approx(0.9303, abs=HALF_4)
    assert round(mean[:, "weighted average", "Mean"].mean(), 2) == float(p.text["mexa_t01"])


def test_the_closest_p_value_needs_all_33_languages(p: mexa_claims.MexaTables) -> None:
    table = mexa_claims.p_values(p)
    assert table["marked"].sum() == 6
    assert table.loc[table["marked"], "p"].min() == pytest.approx(0.00180, abs=5e-6)
    closest = table.loc[table.loc[~table["marked"], "p"].idxmax()]
    assert (closest["value"], closest["n"]) == (0.5501, 33)
    assert closest["p"] == pytest.approx(0.00091, abs=5e-6)
    t = 0.5501 * np.sqrt(30 / (1 - 0.5501**2))
    assert 2 * stats.t.sf(t, 30) > 0.001


def test_numbers_of_table_5_that_are_printed_twice(p: mexa_claims.MexaTables) -> None:
    rows = [(data, "weighted average", "Mean", "Belebele") for data in ("FLORES", "Bible")]
    assert (p.table_5.loc[rows, 7] == 0.8404).all()
    row = p.table_5.loc[("Bible", "last token", "Mean", "m-ARC")]
    assert row[6] == row[7] == 0.8537
    twice = mexa_claims.repeated_numbers(p)
    assert twice["the same"].tolist() == [1, 1, 9]
    assert twice["expected"].tolist() == ["0.4", "1.0", "8.3"]


def test_underlined_averages_of_table_5_are_second_among_those_of_the_bible(
    p: mexa_claims.MexaTables,
) -> None:
    marked = p.long_5.query("mark_printed == 'second_best'")
    assert marked["value"].tolist() == [0.8210, 0.8354]
    average = p.table_5[10].drop(mexa_claims.NO_AVERAGE)
    for row in marked.itertuples():
        of_task = average.xs(row.task, level="task")
        assert of_task["Bible"].nlargest(2).iloc[1] == row.value
        assert of_task.nlargest(2).iloc[1] > row.value


# --- Tables 1 and 6 -------------------------------------------------------------------------------


def test_english_accuracies_tell_how_many_questions_there_were(p: mexa_claims.MexaTables) -> None:
    fits = mexa_claims.question_counts(p, 1300)
    assert fits.index[fits["Belebele"] == 9].tolist() == [900]
    assert fits.index[fits["m-ARC"] == 9].tolist() == [1172]
    assert fits.loc[1169, "m-ARC"] == 1


def test_table_6_has_the_languages_of_the_shipped_text(p: mexa_claims.MexaTables) -> None:
    shipped = set(parallel.tags("flores200-100").values())
    assert len(shipped) == len(p.table_6) == int(p.text["mexa_t29"]) == 203
    assert set(p.table_6.index) == shipped
    assert parse_tag("swl") == "swl"  # another language: Swedish Sign Language
    assert {"yue_Hant", "zgh_Tfng"} & shipped == {"zgh_Tfng"}
    # MEXA is at most 1, so no language is above English.
    models = p.table_6[p.models]
    assert (models <= models.loc["eng_Latn"]).all(axis=None)
    assert p.table_6.loc[p.ranked, "AVG"].is_monotonic_decreasing


def test_belebele_has_116_labels_of_flores_beside_english(p: mexa_claims.MexaTables) -> None:
    labels = set(p.files["belebele"]["label"])
    assert (len(labels), len(p.belebele)) == (122, 116)
    assert labels - {*p.belebele, "eng_Latn"} == {
        *("ben_Latn", "hin_Latn", "npi_Latn", "sin_Latn", "urd_Latn")
    }


def hundredths(p: mexa_claims.MexaTables, model: str) -> pd.DataFrame:
    """Label → least and most of the scores k/100 that an entry of Table 6 leaves."""
    rows, english = {}, p.english[model]
    for label, entry in p.table_6[model].drop("eng_Latn").items():
        left = [k / 100 for k in range(101)
                if abs(k / 100 * english - entry) <= HALF_2 + HALF_4 * k / 100 + 1e-9]  # fmt: skip
        rows[label] = (min(left), max(left))
    return pd.DataFrame(rows, index=["least", "most"]).T


def test_the_mean_of_gemma_2_is_more_than_hundredths_can_give(p: mexa_claims.MexaTables) -> None:
    """And a few exchanges of languages would make all nine fit; none is Belebele's own list."""
    others = [label for label in p.table_6.index if label not in {*p.belebele, "eng_Latn"}]
    left, fits = mexa_claims.hits_left(p), True
    for model, mean in p.mu_max.items():
        ends = hundredths(p, model)
        for key in ends:
            np.testing.assert_allclose(left[key].loc[ends.index, model], ends[key])
        low, high = (
            (ends.loc[p.belebele, key].sum() - ends.loc[p.belebele, key].to_numpy()[:, None]
             + ends.loc[others, key].to_numpy()) / 116
            for key in ("least", "most")
        )  # fmt: skip
        fits = fits & (low - HALF_4 <= mean + 1e-9) & (mean - 1e-9 <= high + HALF_4)
    counts, fitting = mexa_claims.language_exchanges(p)
    assert counts["fit_all_nine"].to_dict() == {
        "as it is": 0, "exchanged": 13, "left out": 0, "taken in": 0,
    }  # fmt: skip
    assert fits.sum() == len(fitting) == 13
    assert counts.loc["exchanged", "choices"] == 116 * 86


def test_models_are_set_against_the_best_bag(p: mexa_claims.MexaTables) -> None:
    """Of bags that are made up; the notebook holds the numbers of those of FLORES-200."""
    bags = pd.DataFrame({"words": 0.5, "characters": 0.1}, p.per_label.loc[p.belebele].index)
    table, points = mexa_claims.above_spelling(p, bags), mexa_claims.spelling_points(p, bags)
    for model, scores in p.per_label.loc[p.belebele].items():
        above = [score > 0.5 for score in scores]
        width = [
            1.96 * ((x * (1 - x) + 0.25) / 100) ** 0.5 + HALF_2 / p.english[model] for x in scores
        ]
        beyond = [score - 0.5 > half for score, half in zip(scores, width, strict=True)]
        assert table.loc[model, ["above", "beyond luck"]].tolist() == [sum(above), sum(beyond)]
    assert len(points) == 9 * 116
    title = points["panel"].cat.categories[0]
    assert title == f"Gemma 2 9B: above in {table.loc['Gemma 2 9B', 'above']}"


def test_latin_script_is_ahead_in_the_lowest_quarter_and_not_in_the_lowest_half(
    p: mexa_claims.MexaTables,
) -> None:
    means = mexa_claims.script_means(p)
    ahead = means["Latin"] > means["other"]
    assert ahead.index[~ahead["quarter"]].tolist() == ["Gemma 2 9B", "Llama 3.1 70B"]
    assert ahead.index[ahead["half"]].tolist() == [
        "Llama 2 7B", "Llama 1 7B", "Mistral 0.3 7B", "OLMo 1.7 7B",
    ]  # fmt: skip


def test_llama_2_is_above_llama_1_in_all_tasks_and_below_it_on_flores(
    p: mexa_claims.MexaTables,
) -> None:
    newer = p.table_1["Llama 2 7B"] > p.table_1["Llama 1 7B"]
    assert not newer["FLORES"].any()
    assert newer.drop("FLORES", level="group").all()


def test_english_accuracy_says_as_much_as_the_score_in_two_tasks_of_three(
    p: mexa_claims.MexaTables,
) -> None:
    table, _ = mexa_claims.score_or_english(p)
    adjusted = table[table.index.str.endswith("× English")]
    ends = pd.DataFrame([table.loc["English accuracy"], adjusted.min(), adjusted.max()])
    assert {task: ends[task].round(2).tolist() for task in ends} == {
        "Belebele": [0.86, 0.94, 0.97], "m-MMLU": [0.97, 0.93, 0.97], "m-ARC": [0.98, 0.94, 0.97],
    }  # fmt: skip


# --- Figure 1, appendix A -------------------------------------------------------------------------


def test_the_line_of_panel_4_goes_through_the_means(p: mexa_claims.MexaTables) -> None:
    """Least squares does: so panel 4 is FLORES, maximum, Belebele, and no other panel is."""
    lines = mexa_claims.check_figure_1(Audit(), p)
    off = (lines["at the mean"] - p.table_1.loc[(OTHERS, "Belebele"), FIGURE_1_MODEL]).abs()
    assert list(off.index[off <= 3 * HALF_4]) == ["4"]
    assert off.drop("4").min() > 0.03
    others = mexa_claims.other_panels(p)["by the line"].tolist()
    assert others == pytest.approx([0.5749, 0.3714, 0.5947], abs=2e-4)
    score = p.table_1.loc[("FLORES", "mu_Mean"), FIGURE_1_MODEL]
    assert p.table_1.loc[("Bible", "mu_Mean"), FIGURE_1_MODEL] < others[1] < score < others[2]
    assert mexa_claims.typical_error(p).round(3).tolist() == [0.939, 0.178, 0.061]


def test_the_ideal_line_fits_english_only_if_english_is_perfect(p: mexa_claims.MexaTables) -> None:
    """From chance at score 0 to the English accuracy e at score 1 the slope is 1 - 1/(4e)."""
    lines = mexa_claims.ideal_lines(p)
    row, english = lines.loc[FIGURE_1_MODEL], p.english[FIGURE_1_MODEL]
    assert row["ideal at English"] == pytest.approx(0.9075, abs=HALF_4)
    slope = (row["chance to English"] - 0.25) / row["adjusted"]
    assert slope == pytest.approx(1 - 1 / (4 * english))
    assert slope == pytest.approx(0.7148, abs=HALF_4)
    assert (lines["ideal"] > lines["Belebele"]).all()
    above = mexa_claims.above_accuracy(lines)
    assert above.loc["largest distance", "ideal"] == pytest.approx(0.122, abs=5e-4)


def test_chance_of_five_of_a_hundred(p: mexa_claims.MexaTables) -> None:
    """Appendix A.4. The number is that of five or more; "larger than 0.05" would be six or more."""
    five = stats.binom.sf(4, 100, 1 / 199)
    assert five == pytest.approx(0.00016230, abs=5e-9)
    assert mexa_claims.check_chance(Audit(), p).loc[5, "binomial"] == pytest.approx(five)


def test_nine_languages_of_the_web_are_not_in_table_3(p: mexa_claims.MexaTables) -> None:
    missing = mexa_claims.missing_languages()
    listed = set(map(parse_tag, p.files["table3"].query("code != 'unk'")["code"]))
    assert len(missing) == 9
    assert not set(map(parse_tag, missing)) & listed


def test_bands_of_table_6(p: mexa_claims.MexaTables) -> None:
    counts = mexa_claims.band_counts(p)
    assert counts.iloc[:, :5].sum(axis=1).unique().tolist() == [203]
    english = p.table_1.loc[(ENGLISH, "Belebele"), "Llama 2 7B"]
    assert counts.loc["Llama 2 7B", "English"] == english.round(2)
    assert len(mexa_claims.band_scores(p)) == 9 * 203


# --- the folder -----------------------------------------------------------------------------------


def test_the_readme_lists_every_file_with_its_rows() -> None:
    for file in FOLDER.glob("*.csv"):
        assert f"`{file.name}`" in README
        rows = len(pd.read_csv(file))
        line = next(row for row in README.split("| `") if row.startswith(f"{file.name}`"))
        assert f"| {rows:,} |" in line.replace(str(rows), f"{rows:,}"), file.name


def test_the_readme_names_what_does_not_fit() -> None:
    numbers = """1.6961 0.7994 0.7221 swl_Latn lao_Lao 0.7190 0.7194 0.8404 0.8537 0.0000128 0.9075
        0.7148 0.9303 0.5749 -0.0110 -0.0077 0.00091 0.1946 0.86"""
    numbers = [*numbers.split(), "13 of 9,976", "93 of 116"]
    assert [number for number in numbers if number not in README] == []
