"""What a notebook says "in short" is what its table of claims holds, number by number."""

import re

import nbformat
import pandas as pd
import pytest

from shared import claims
from xlx.results.paths import NOTEBOOKS

#: Without names: `mini-xlmr`, SIB-200.
NAMES = re.compile(r"`[^`]*`|[A-Z]\w*-\d+|\bE5\b")
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?")


def cells_of(path) -> tuple[str, list[nbformat.NotebookNode]]:
    """The "In short" of a notebook, and the cells that tell claims."""
    cells = nbformat.read(path, as_version=4).cells
    text = [line for cell in cells[:3] for line in cell.source.splitlines()]
    short = [line for line in text if line.startswith("**In short.**")]
    told = [cell for cell in cells if cell.cell_type == "code" and "\ntell(" in cell.source]
    return "".join(short), told


TOLD = {path.stem: cells_of(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
TOLD = {stem: (short, told) for stem, (short, told) in TOLD.items() if told}


def unfounded(short: str, values: list[float]) -> list[str]:
    """Numbers of a text that no value is, rounded as the text has them."""
    left = []
    for sentence in re.split(r"(?<=[.:;]) ", NAMES.sub("", short)):
        scales = (1, 100) if "%" in sentence else (1,)
        for number in NUMBER.findall(sentence):
            plain = number.replace(",", "").replace("−", "-")
            half = 0.5 * 10 ** -len(plain.partition(".")[2]) + 1e-4
            if not any(abs(k * x - float(plain)) <= half for k in scales for x in values):
                left.append(number)
    return left


@pytest.mark.parametrize("stem", TOLD)
def test_every_number_in_short_is_a_claim_of_the_notebook(stem: str) -> None:
    short, (cell,) = TOLD[stem]
    (output,) = [each["data"]["text/html"] for each in cell.outputs]
    rows = re.findall(r"<tr>(.*?)</tr>", output, re.DOTALL)
    values = [re.search(r"<td>([^<]*)</td>", row) for row in rows]
    values = [float(value[1].replace(",", "")) for value in values if value]
    assert len(values) > 3
    assert unfounded(short, values) == []


def test_a_number_that_no_claim_has_is_found() -> None:
    text = "**In short.** In `mini-3` of WMT-24 LD falls to 0.86, r = −0.15: 63 % of 1,200 in 11."
    values = [0.8646, -0.1458, 0.627, 1200]
    assert unfounded(text, values) == ["11"]
    assert unfounded(text, [0.8656, *values[1:], 11.2]) == ["0.86"]


def test_a_claim_fails_only_on_the_other_side() -> None:
    rows = [(1, 0.5, 2, "above"), (0, -1, 1, claims.UNTOLD), (-1, -2, -0.5, "below")]
    table = pd.DataFrame(rows, columns=["score", "low", "high", "told"])
    held, failed = claims.HELD, claims.UNHELD
    for holds, first, last in (("low > 0", held, failed), ("told == 'below'", failed, held)):
        found = claims.stated(table, "t", "{score}", holds=holds)["verdict"].tolist()
        assert found == [first, claims.UNTOLD, last]
    turned = claims.checked({"t": (table.assign(told=claims.UNTOLD), "{score}")})
    assert turned.loc["t"].tolist() == [3, 2, 2, "1; -1"]


def test_claims_follow_from_a_table(tmp_path, monkeypatch, capsys) -> None:
    rows = {"model": ["a", "b"], "score": [0.61, 0.4], "low": [0.55, 0.3], "high": [0.7, 0.5]}
    table = pd.DataFrame(rows)
    scored = claims.stated(table, "means", "LD of {model}")
    counted = claims.stated(pd.Series({"languages": 36}), "about", "{index}")
    assert counted.iloc[0, :3].isna().tolist() == [False, True, True]
    for name in ("XLX_NOTEBOOK", "XLX_JOURNAL", "XLX_FIGURES"):
        monkeypatch.delenv(name, raising=False)
    claims.tell(scored, counted)  # outside of a run nothing is written
    assert "0.61" in capsys.readouterr().out
    monkeypatch.setenv("XLX_NOTEBOOK", "abx-2-dynamics")
    monkeypatch.setenv("XLX_JOURNAL", str(tmp_path / "asks"))
    monkeypatch.setenv("XLX_FIGURES", "none")
    claims.tell(scored)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("XLX_FIGURES", str(tmp_path))
    claims.tell(scored, counted)
    written = pd.read_csv(tmp_path / "claims" / "abx-2-dynamics.csv")
    assert written.columns.tolist() == ["claim", "value", "low", "high", "verdict", "cell"]
    assert written["value"].tolist() == [0.61, 0.4, 36]
