"""A paper is a folder and functions: a made-up one, and what the READMEs of the five say."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from printed import igap_claims, mexa_claims
from printed.abx_claims import AbxNumbers
from printed.evaluator import (
    CONSISTENCY,
    SENTENCE,
    Paper,
    columns,
    consistency,
    number,
    sentence,
)
from printed.igap_claims import IgapTables
from printed.mexa_claims import MexaTables
from printed.mixing_claims import PrintedScores
from printed.xprobe_claims import PrintedTables
from xlx.results.paths import PUBLISHED

#: A paper that nobody wrote: a table and numbers in the text; below what follows and what is said.
SIXTH = {
    "table1_scores.csv": (
        "model,language,value\nsmall,en,80.0\nsmall,de,61.0\nsmall,avg,70.5\n"
        "large,en,90.0\nlarge,de,84.0\nlarge,avg,86.0\n"
    ),
    "text_results.csv": 'claim_id,value\nt1,20%\nt2,"1.5M"\nt3,"12,000 of 13,000"\n',
}


class Sixth(Paper):
    """The made-up paper."""


def wide(table1: pd.DataFrame) -> pd.DataFrame:
    return table1.pivot(index="model", columns="language", values="value")


def lost(wide: pd.DataFrame) -> pd.Series:
    return wide["en"] - wide["de"]


@number("Table 1, by its cells", "average of {}")
def averages(wide: pd.DataFrame) -> Iterator[tuple]:
    yield (), wide[["en", "de"]].mean(axis=1), wide["avg"], 0.1


@number("Table 1, by itself", "average of {}")
def again(wide: pd.DataFrame) -> Iterator[tuple]:
    yield (), wide["avg"], wide["avg"], 0.05


@number("{} beside the text", "{1}", kind=CONSISTENCY)
def steps(number) -> Iterator[tuple]:
    yield ("Table 1",), *columns({"steps": (1_500_000, number("t2"))}), 0.5


@sentence("3", "both lose 20%", "they lose", "|d - 20| ≤ 1")
def both_lose(lost: pd.Series, number) -> tuple:
    result = ", ".join(f"{model} {d:.1f}" for model, d in lost.items())
    return (lost - number("t1")).abs() <= 1, result


@consistency("3", "{} is best at {:.0f} points", "argmax")
def one_is_best(lost: pd.Series) -> Iterator[tuple]:
    for model in ("small", "large"):
        yield (model, lost[model]), lost.idxmin() == model, ""


@sentence("4", "it is known why", "we know why")
def known() -> tuple:
    return [], "not measured by the authors'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in SIXTH.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_sixth_paper_is_a_folder_and_functions(folder: Path) -> None:
    paper = Sixth(folder)
    numbers = paper.numbers.set_index("what")
    assert numbers["section"].tolist() == [
        *["Table 1, by its cells"] * 2,
        *["Table 1, by itself"] * 2,
        "Table 1 beside the text",
    ]
    assert numbers["agrees"].tolist() == [False, True, True, True, True]
    assert numbers.iloc[0][["printed", "recomputed", "apart"]].tolist() == pytest.approx(
        [86, 87, 10]
    )
    assert paper.once.tolist() == [False, True]  # twice checked, and what is no number of the paper
    claims = paper.claims
    assert claims["verdict"].tolist() == [
        "holds in part",
        "does not hold",
        "holds",
        "cannot be told",
    ]
    assert claims.loc[0, ["claim", "quote", "formula", "result"]].tolist() == [
        "both lose 20%",
        "they lose",
        "|d - 20| ≤ 1",
        "large 6.0, small 19.0",
    ]
    assert claims["kind"].tolist() == [SENTENCE, CONSISTENCY, CONSISTENCY, SENTENCE]
    assert claims.loc[2, "claim"] == "large is best at 6 points"
    assert claims.loc[3, "result"] == "not measured by the authors'"
    assert paper.lost["small"] == lost(wide(paper.table1))["small"] == 19
    assert [paper.number(key) for key in ("t1", "t2", "t3")] == [20, 1_500_000, 12_000]


def test_a_file_is_called_by_its_first_word_and_what_nobody_has_is_named(folder: Path) -> None:
    (folder / "table1_scores_of_two.csv").write_text("value\n2\n", encoding="utf-8")
    paper = Sixth(folder)
    assert paper.table1["value"].sum() == 471.5
    assert paper.table1_scores_of_two["value"].tolist() == [2]
    with pytest.raises(AttributeError, match="Sixth has no 'table9'"):
        paper.value(lambda table9: table9)


@pytest.mark.parametrize(
    "paper", [AbxNumbers, IgapTables, MexaTables, PrintedScores, PrintedTables]
)
def test_what_a_paper_says_is_quoted_and_what_is_ours_is_not(paper: type[Paper]) -> None:
    claims = paper().claims
    assert set(claims["kind"]) == {SENTENCE, CONSISTENCY}
    quoted = claims["quote"].str.split().str.len() > 2
    assert quoted.equals(claims["kind"] == SENTENCE)
    assert (claims["verdict"] == "does not hold").any()


def test_a_claim_is_asked_of_tables_that_are_made_up() -> None:
    """IGAP ahead of a measure of states in 13 and in 8 of 15; a model above another in one row."""
    ahead = {"cosine": 13, "dot": 8}
    right = pd.DataFrame({name: [0.6] * 15 for name in ("IGAP", *ahead)}).T
    for name, wins in ahead.items():
        right.loc[name, : wins - 1] = 0.5
    parts, result = igap_claims.better_than_states(right, right.loc[[*ahead]])
    assert parts.tolist() == [True, False]
    assert result.startswith("better than cosine in 13, dot in 8 of 15, p at most 1.0")
    scores = pd.DataFrame({"Llama 3.1 70B": [0.4, 0.7], "Llama 3.1 8B": [0.5, 0.6]})
    parts, result = mexa_claims.scale_aligns(scores)
    assert (parts.tolist(), result) == ([False, True], "in 1 of 2 rows")


@pytest.mark.parametrize("name", ["abx", "igap", "mexa", "within_across", "xprobe"])
def test_a_readme_lists_every_file_with_its_rows(name: str) -> None:
    readme = (PUBLISHED / name / "README.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in readme.splitlines() if line.startswith("| `")}
    for file in (PUBLISHED / name).glob("*.csv"):
        assert f"| {len(pd.read_csv(file))} |" in rows[file.name].replace(",", ""), file.name
