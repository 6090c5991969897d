"""A measure that somebody adds in one file is drawn, without the weights of any public model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xlx.results.paths import NOTEBOOKS, ROOT

NAME = "CSLS"
ADDED = (ROOT / "tests" / "measures" / "csls.py").read_text(encoding="utf-8")
#: Runs the code of a notebook before the cell that has a word, and that cell; prints a value then.
RUN = """
import json, sys, warnings
import matplotlib
import pandas as pd
import xlx.measures
matplotlib.use("agg")
warnings.simplefilter("ignore")
pd.set_option("display.width", None, "display.max_rows", None)
added, notebook, word, value = sys.argv[1:]
xlx.measures.__path__.append(added)
scope = {"display": lambda *_: None}
for cell in json.load(open(notebook, encoding="utf-8"))["cells"]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "code":
        exec(source, scope)
    if word in source and cell["cell_type"] == "code":
        break
print(eval(value, scope))
"""
LEGEND = "[text.get_text() for legend in figure.legends for text in legend.get_texts()]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("notebook", "word", "value"),
    [
        ("abx-2-dynamics", "form_and_meaning(", LEGEND),
        ("mexa-2-estimation", "other_measures(", "[*apart.index.get_level_values('other')]"),
        (
            "igap-2-ranking",
            "ranking_dots(",
            "[x.get_text() for x in figure.axes[0].get_yticklabels()]",
        ),
    ],
)
def test_an_added_measure_is_drawn(tmp_path: Path, notebook: str, word: str, value: str) -> None:
    file = tmp_path / "measures" / "added.py"
    file.parent.mkdir()
    file.write_text(ADDED.replace("of_queries=True", 'of_queries=True, kind="meaning"'))
    command = [sys.executable, "-c", RUN, str(file.parent), f"{notebook}.ipynb", word, value]
    env = os.environ | {"XLX_CACHE": str(tmp_path / "cache"), "TQDM_DISABLE": "1"}
    ran = subprocess.run(command, cwd=NOTEBOOKS, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert f"'{NAME}" in ran.stdout.splitlines()[-1]
