"""Stands for `xlx.core.run` where it does not matter what a notebook holds: asks for toy results.

    python -m tests.toy_notebook abx-1-a --build FOLDER

Of the environment: ``TOY_LEDGER``; ``TOY_FOLDER``, where each computation leaves a file;
``TOY_SECONDS``, which one takes; ``TOY_FAILS``, the notebook that fails.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import xlx
from tests import toy_results as toy
from xlx.core import journals, provenance, work

#: Notebook → numbers that it asks for.
NUMBERS = {"abx-1-a": [0, 1, 2, 3], "mexa-1-b": [3, 4, 5]}


def slowly(numbers: list[int], missing: list[int]):
    """The calls for missing numbers, each after a while."""
    for position in missing:
        time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
        yield [position], (os.environ["TOY_FOLDER"], numbers[position])


def ask(stem: str) -> None:
    """What a notebook asks for: numbers that are counted, and their squares."""
    numbers = NUMBERS[stem]
    abouts = [{"number": number} for number in numbers]
    work.results(toy.COUNTED, abouts, lambda missing: slowly(numbers, missing), alone=True)
    work.results(toy.SQUARES, abouts, lambda missing: [(missing, [numbers[i] for i in missing])])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("stem")
    parser.add_argument("--build", type=Path)
    options = parser.parse_args()
    folder = options.build / "mini"
    journal = journals.fresh_journal(options.stem, folder)
    os.environ["XLX_NOTEBOOK"] = options.stem
    os.environ["XLX_JOURNAL"] = str(journal.parent)
    # without torch, so that it is there in a second
    provenance.environment = lambda: dict.fromkeys(provenance.PROVENANCE, "x") | {"threads": 1}
    with xlx.settings(ledger=os.environ["TOY_LEDGER"], device="cpu"):
        ask(options.stem)
    if os.environ.get("TOY_FAILS") == options.stem:
        print(f"{options.stem} failed in cell [2]: ValueError: no Klingon", file=sys.stderr)
        return 1
    (folder / f"{options.stem}.ipynb").write_text("{}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
