"""The console script sets how threads wait before torch is loaded."""

import os
import subprocess
import sys
import tomllib

import pytest

from xlx.results.paths import ROOT

CODE = """
import os, sys
from xlx.report.console import start
assert "torch" not in sys.modules
sys.argv = ["xlx", "report", "no/such/model"]
code = start()
print(code, os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
"""


def test_the_script_is_this_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"xlx": "xlx.report.console:start"}


@pytest.mark.parametrize(("given", "waits"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_sleep_while_they_wait_unless_asked_otherwise(given, waits) -> None:
    told = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    told |= {"OMP_WAIT_POLICY": given} if given else {}
    ran = subprocess.run(
        [sys.executable, "-c", CODE], env=told, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["2", waits, "True"]
    assert "no/such/model" in ran.stderr
