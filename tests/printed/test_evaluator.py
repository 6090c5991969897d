"""A paper is a folder: a made-up one, and what the READMEs of the five say that they hold."""

import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest

from printed.evaluator import FormulaError, Paper
from xlx.results.paths import NOTEBOOKS, PUBLISHED

#: A paper that nobody wrote: a table, a number in the text, what follows and what is said.
SIXTH = {
    "table1_scores.csv": (
        "model,language,value\nsmall,en,80.0\nsmall,de,61.0\nsmall,avg,70.5\n"
        "large,en,90.0\nlarge,de,84.0\nlarge,avg,86.0\n"
    ),
    "text_results.csv": 'claim_id,value\nt1,20%\nt2,"1.5M"\nt3,"12,000 of 13,000"\n',
    "names.csv": (
        "name,formula\n"
        "wide,\"table1.pivot(index='model', columns='language', values='value')\"\n"
        "lost,\"wide['en'] - wide['de']\"\n"
    ),
    "claims.csv": (
        "section,claim,formula,value,printed,tolerance,found,each\n"
        "Table 1,average of {key},,\"wide[['en', 'de']].mean(axis=1)\",wide['avg'],0.1,,\n"
        "{each} beside the text,steps,,1500000,number('t2'),0.5,,['Table 1']\n"
        "3,both lose {text['t1']},|d - 20| ≤ 1,(lost - number('t1')).abs() <= 1,,,"
        "\"{', '.join(f'{model} {d:.1f}' for model, d in lost.items())}\",\n"
        "3,{each} is best at {lost[each]:.0f} points,argmin,lost.idxmin() == each,,,,"
        "\"['small', 'large']\"\n"
        "4,it is known why,,,,,not measured by the authors',\n"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in SIXTH.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_sixth_paper_is_a_folder_and_no_code(folder: Path) -> None:
    paper = Paper(folder)
    numbers = paper.audit.numbers.set_index("what")
    assert numbers["table"].tolist() == ["Table 1"] * 2 + ["Table 1 beside the text"]
    assert numbers["agrees"].to_dict() == {
        "average of large": False,
        "average of small": True,
        "steps": True,
    }
    assert numbers.loc["average of large", ["printed", "recomputed"]].tolist() == [86, 87]
    claims = paper.claims.reset_index()
    assert claims["verdict"].tolist() == [
        "holds in part",
        "does not hold",
        "holds",
        "cannot be told",
    ]
    assert claims.loc[0, ["claim", "formula", "found"]].tolist() == [
        "both lose 20%",
        "|d - 20| ≤ 1",
        "large 6.0, small 19.0",
    ]
    assert claims.loc[2, "claim"] == "large is best at 6 points"
    assert claims.loc[3, "found"] == "not measured by the authors'"
    assert paper.lost["small"] == paper["lost"]["small"] == 19
    assert [paper.number(key) for key in ("t1", "t2", "t3")] == [20, 1_500_000, 12_000]


def test_the_command_says_what_a_folder_comes_to(folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["evaluator", str(folder)])
    runpy.run_path(str(NOTEBOOKS / "printed" / "evaluator.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert said.startswith("2 of 3 numbers agree\nof 4 claims: holds 1, holds in part 1")
    assert "Table 1: average of large: printed 86.0000, can be 87.0000" in said


def test_the_table_with_the_shortest_name_has_the_first_word(tmp_path: Path) -> None:
    for name, value in (("table5_as_printed", 1), ("table5_what_follows_from_it", 2)):
        (tmp_path / f"{name}.csv").write_text(f"value\n{value}\n", encoding="utf-8")
    paper = Paper(tmp_path)
    assert paper.value("[table5['value'].sum(), table5_what_follows_from_it.max()]")[0] == 1
    assert paper.claims.empty


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("open('x')", "has no table, name or function 'open'"),
        ("table9", "has no table, name or function 'table9'"),
        ("_folder", "has no table, name or function '_folder'"),
        ("table1.to_csv('x')", r"\.to_csv is not listed"),
        ("table1.__class__", r"\.__class__ is not listed"),
        ("f'{table1.query}'", r"\.query is not listed"),
        ("lambda x: x", "Lambda is no part of a formula"),
        ("(x := 1)", "NamedExpr is no part of a formula"),
        ("1 +", "invalid syntax"),
    ],
)
def test_what_a_formula_cannot_say(folder: Path, formula: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        Paper(folder).value(formula)


def test_names_of_a_formula_are_its_own(folder: Path) -> None:
    paper = Paper(folder)
    assert paper.value("[x + y for x, y in zip([1, 2], each)]", each=[10, 20]) == [11, 22]
    assert paper.filled("{max(each):.1f} of {{}}", each=[1, 2]) == "2.0 of {}"


@pytest.mark.parametrize("name", ["abx", "igap", "mexa", "within_across", "xprobe"])
def test_a_readme_lists_every_file_with_its_rows(name: str) -> None:
    readme = (PUBLISHED / name / "README.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in readme.splitlines() if line.startswith("| `")}
    for file in (PUBLISHED / name).glob("*.csv"):
        assert f"| {len(pd.read_csv(file))} |" in rows[file.name].replace(",", ""), file.name
