"""Printed numbers beside a model: those of the papers, and its own by the same arithmetic."""

import numpy as np
import pytest

from tests.report.conftest import Written
from xlx.experiment.abx_scores import checkpoint_scores
from xlx.text.parallel import ParallelCorpus


def test_printed_numbers_are_those_of_the_papers(written: Written) -> None:
    table = written.tables["printed"].query("model == 'mini-llama'")
    printed = table.set_index(["quantity", "printed_of"])["printed"]
    assert printed["mean MEXA score, max over layers", "Llama 3.1 70B"] == 0.7725
    assert printed["mean MEXA score, mean over layers", "mean of the nine"] == 0.2976
    of = "XLM-R base, last checkpoint"
    assert printed["correlation of LD and MD over pairs, mean of layers", of] == -0.72
    both = "correlation of MD and retrieval over pairs"
    assert printed[f"{both}, mean of layers", of] == 0.77
    assert printed[f"{both}, last layer", of] == 0.73
    assert printed[f"{both}, MD mean of layers, retrieval last layer", of] == 0.53
    assert len(table) == 4 + 2 * 10


def test_the_model_s_are_of_the_same_measures(written: Written, corpus: ParallelCorpus) -> None:
    table = written.tables["printed"].query("model == 'mini-infoxlm'").set_index("quantity")
    coverage = written.tables["coverage"].query("model == 'mini-infoxlm' and states == 'raw'")
    for how in ("max", "mean"):
        expected = coverage.loc[coverage["layers"] == how, "mu"].mean()
        assert table.loc[f"mean MEXA score, {how} over layers", "here"].iloc[0] == pytest.approx(
            expected
        )
    (scores,) = checkpoint_scores(["mini-infoxlm"], corpus, pooling="mean", max_length=None)
    ld, md = (scores.scores.scores[task].mean(axis=(0, 2)) for task in ("LD", "MD"))
    row = table.loc["correlation of LD and MD over pairs, mean of layers"]
    assert row["here"] == pytest.approx(np.corrcoef(ld, md)[0, 1])
    assert "4 languages, not of 36" in row["differs"]
