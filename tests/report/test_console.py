"""The console script sets how threads wait before torch is loaded."""

import os
import subprocess
import sys

from xlx.results.paths import ROOT

CODE = """
import os, sys
from xlx.report.console import start
assert "torch" not in sys.modules
sys.argv = ["xlx", "report", "no/such/model"]
code = start()
print(code, os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
"""


def test_threads_sleep_while_they_wait() -> None:
    printed = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    ran = subprocess.run(
        [sys.executable, "-c", CODE],
        env=printed,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["2", "PASSIVE", "False"]  # a refusal costs no torch
    assert "no/such/model" in ran.stderr


def test_a_command_without_a_terminal_ends() -> None:
    ran = subprocess.run(
        f"'{sys.executable}' -m xlx.report.command --help >&- 2>&-",
        shell=True,
        cwd=ROOT,
        check=False,
    )
    assert ran.returncode == 0
