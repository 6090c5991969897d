"""The package works from its wheel in an empty folder, on a model and text of one's own."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import tiny
from xlx.results.paths import ROOT

BUILD = "import sys; from hatchling import build; build.build_wheel(sys.argv[1])"
CODE = """
import json, sys
from xlx import __file__ as file
from xlx.experiment import mexa_scores
from xlx.experiment.scoring import BagOfSubwords, Length, Subject, scored
from xlx.report import command
from xlx.subjects import load
from xlx.text import labelled, parallel
model, folder = sys.argv[1:]
text, subjects = parallel.load(folder), [Subject(model), BagOfSubwords(model), Length()]
table = scored(["LD", "MD", "MD, like length", "retrieval"], subjects, [text], ["raw", "centred"])
covered = mexa_scores.measure_coverage(model, text)["weighted_mean"].scores.pooled("mean")
code = sum(command.main([name, model, "--text", folder]) for name in ("report", "abx", "mexa"))
said = []
for call in (
    lambda: parallel.load("wmt24pp"), lambda: load("mini-xlmr"),
    lambda: labelled.load_labelled("PI", "en", "train"),
):
    try:
        call()
    except (ValueError, OSError) as error:
        said.append(str(error))
print(json.dumps([file, len(table), sorted(covered["language"]), code, said]))
"""


@pytest.mark.slow
def test_own_models_and_text_need_no_repository(tmp_path: Path) -> None:
    source, site, empty, text = (tmp_path / name for name in ("source", "site", "empty", "text"))
    shutil.copytree(ROOT / "xlx", source / "xlx", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=source, check=True)
    zipfile.ZipFile(next(tmp_path.glob("xlx-*.whl"))).extractall(site)
    here = {path.relative_to(ROOT) for path in (ROOT / "xlx").rglob("*.py")}
    assert {path.relative_to(site) for path in (site / "xlx").rglob("*.py")} == here
    model = tiny.save(tmp_path / "model", "gpt2")
    empty.mkdir()
    text.mkdir()
    for code in ("en", "de", "pt_BR"):
        lines = [f"{line} {code} {turn}\n" for turn in range(2) for line in tiny.SENTENCES]
        (text / f"{code}.txt").write_text("".join(lines), encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("XLX_")}
    env |= {"PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "ignore", "-c", CODE, str(model), str(text)]
    ran = subprocess.run(command, cwd=empty, env=env, stdout=subprocess.PIPE, text=True, check=True)
    file, *answered, said = json.loads(ran.stdout.splitlines()[-1])
    assert Path(file) == site / "xlx" / "__init__.py"
    assert answered == [2 * 4 * (3 + 1 + 1), ["de", "pt"], 0]
    assert len([x for x in said if "repository" in x and "\n" not in x]) == 3, said
    assert {path.name for path in empty.iterdir()} == {"build", "cache"}  # and nothing elsewhere
    assert len([*site.iterdir()]) == 2
