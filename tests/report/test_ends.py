"""Reports of hardly enough, drawn by seed: they end, with a note where there is no number."""

import json
import os
import random
from pathlib import Path

import pytest

from tests import tiny
from xlx.report import command

SEED = os.environ.get("AUDIT_SEED", "1")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(int(os.environ.get("REPORTS", "4"))))
def test_a_report_of_little_ends(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    draw = random.Random(f"{SEED} {number}")
    n, codes = draw.randint(4, 7), draw.sample(["en", "de", "tr", "zh"], draw.randint(2, 4))
    n_documents = 1 if number == 0 else draw.randint(1, n)
    kind = draw.choice(["xlm-roberta", "gpt2", "t5"])
    model = tiny.save(tmp_path / "own", kind, layers=draw.randint(1, 2))
    for code in codes:
        # long ones, whose lengths are alike: MD is asked among those, too
        lines = [draw.choice(tiny.SENTENCES[1::5]) + f" {code} {i}" for i in range(n)]
        if number == 1:  # all of a length, or nearly
            lines = [f"{code} {i}" for i in range(n)]
        made = tmp_path / "text" / f"{code}.txt"
        made.parent.mkdir(exist_ok=True)
        made.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ids = [f"document {i % n_documents}:{i}" for i in range(n)]
    rows = "".join(f"{name}\t{name.partition(':')[0]}\n" for name in ids)
    (tmp_path / "text" / "segments.tsv").write_text(f"id\tdomain\n{rows}")
    given = ["report", str(model), "--text", str(tmp_path / "text"), "--reference", "none"]
    out = tmp_path / "out"
    assert command.main([*given, "--no-notebook", "--out", str(out)]) == 0
    about = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert about["documents"] == n_documents
    unknown = [x for x in about["answers"] if x["low"] is None]
    assert n_documents > 1 or unknown, "an interval over one document"
    assert n_documents > 1 or "one document" in about["notes"][-1]
    page = (out / "report.html").read_bytes()  # is not written over by a report of other vectors
    assert command.main([*given, "--special-tokens", "--no-notebook", "--out", str(out)]) == 2
    assert f"--out {out} holds another report" in capsys.readouterr().err
    assert (out / "report.html").read_bytes() == page
