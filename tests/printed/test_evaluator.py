"""A paper is a folder: a made-up one, and what the READMEs of the five say that they hold."""

from pathlib import Path

import pandas as pd
import pytest

from printed.abx_claims import AbxNumbers
from printed.evaluator import VERDICTS, Paper, verdict
from printed.igap_claims import IgapTables
from printed.mexa_claims import MexaTables
from printed.mixing_claims import PrintedScores
from printed.xprobe_claims import PrintedTables
from xlx.results.paths import PUBLISHED

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
        "section,claim,quote,kind,formula,value,printed,tolerance,result,each\n"
        "\"Table 1, by its cells\",average of {key},,,,\"wide[['en', 'de']].mean(axis=1)\","
        "wide['avg'],0.1,,\n"
        "\"Table 1, by itself\",average of {key},,,,wide['avg'],wide['avg'],0.05,,\n"
        "{each} beside the text,steps,,ours,,1500000,number('t2'),0.5,,['Table 1']\n"
        "3,both lose {text['t1']},they lose,,|d - 20| ≤ 1,(lost - number('t1')).abs() <= 1,,,"
        "\"{', '.join(f'{model} {d:.1f}' for model, d in lost.items())}\",\n"
        "3,{each} is best at {lost[each]:.0f} points,,ours,argmin,lost.idxmin() == each,,,,"
        "\"['small', 'large']\"\n"
        "4,it is known why,,,,,,,not measured by the authors',\n"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in SIXTH.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_sixth_paper_is_a_folder_and_no_code(folder: Path) -> None:
    paper = Paper(folder)
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
    assert claims["kind"].tolist() == ["printed", "ours", "ours", "printed"]
    assert claims.loc[2, "claim"] == "large is best at 6 points"
    assert claims.loc[3, "result"] == "not measured by the authors'"
    assert paper.lost["small"] == paper["lost"]["small"] == 19
    assert [paper.number(key) for key in ("t1", "t2", "t3")] == [20, 1_500_000, 12_000]


@pytest.mark.parametrize(
    ("parts", "result"), [((), 3), ((True,), 0), ((True, False), 1), ((False, False), 2)]
)
def test_a_verdict_follows_from_the_parts_of_a_claim(parts: tuple, result: int) -> None:
    assert verdict(parts) == VERDICTS[result]


def test_a_file_is_called_by_its_first_word_and_what_nobody_has_is_named(folder: Path) -> None:
    (folder / "table1_scores_of_two.csv").write_text("value\n2\n", encoding="utf-8")
    paper = Paper(folder)
    assert paper.value("[table1['value'].sum(), table1_scores_of_two['value'].sum()]") == [471.5, 2]
    with pytest.raises(NameError, match="'table9' is not defined"):
        paper.value("[table9 for _ in range(2)]")


@pytest.mark.parametrize(
    "paper", [AbxNumbers, IgapTables, MexaTables, PrintedScores, PrintedTables]
)
def test_what_a_paper_says_is_quoted_and_what_is_ours_is_not(paper: type[Paper]) -> None:
    claims = paper().claims
    assert set(claims["kind"]) == {"printed", "ours"}
    quoted = claims["quote"].str.split().str.len() > 2
    assert quoted.equals(claims["kind"] == "printed")
    assert (claims["verdict"] == "does not hold").any()


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
