"""The table of faults that others found, then and now: a closed one has a test that is there."""

import re

import pandas as pd

from xlx.results.paths import ROOT


def test_every_closed_fault_has_its_test() -> None:
    table = pd.read_csv(ROOT / "tests" / "replayed.csv", keep_default_na=False)
    assert table["fault"].is_unique
    for row in table.itertuples():
        file, _, name = row.test.partition("::")
        if file:
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.M), row.test
        assert file or row.now.startswith(("open: ", "by hand: ")), row.fault
