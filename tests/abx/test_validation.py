"""The checks of the ABX scores, against the functions that they put together."""

import numpy as np
import pytest

import abx_1_validation
from xlx.experiment.abx_scores import group_sizes
from xlx.measures import abx, statistics
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

PAIRS = [("de", "en"), ("en", "fr"), ("fr", "de")]
KEYS = ["task", "layer", "language_1", "language_2"]
States = dict[str, np.ndarray]


def test_sampling(corpus: ParallelCorpus, states: States) -> None:
    draw = {"n_triplets": 50, "n_runs": 3, "seed": 1}
    table = abx_1_validation.sampling(["mini-infoxlm"], corpus, PAIRS, draw)
    assert len(table) == 2 * 7 * 3
    runs = abx.sampled(states, PAIRS, *draw.values()).groupby(KEYS)["score"]
    keys = table.set_index(KEYS).index
    np.testing.assert_allclose(table["mean"], runs.mean().loc[keys], atol=0.03)
    np.testing.assert_allclose(table["sd"], runs.std().loc[keys], atol=0.03)
    exact = abx.pair_scores(abx.exact(states).table()).set_index(KEYS)
    for row in table.itertuples():
        expected = exact.loc[(row.task, row.layer, *sorted((row.language_1, row.language_2)))]
        assert row.exact == pytest.approx(expected["score"], abs=0.02)


def test_errors_and_controls(corpus: ParallelCorpus, states: States) -> None:
    name, keys = "mini-infoxlm", ["model", "language_1", "language_2", "task"]
    table = abx_1_validation.errors([name], corpus, PAIRS[:1], n_resamples=50, seed=1)
    row = table.set_index(keys).loc[name, "de", "en", "MD"]
    last = {code: states[code][-1] for code in ("de", "en")}
    documents = parallel.documents(corpus)
    exact = abx.exact(last, influence=True, groups={"documents": documents})
    score = exact.scores["MD"].mean()
    without = exact.left_out["documents"]["MD"][0, 0]
    resampled = statistics.bootstrap_kernel(abx.kernel(last, PAIRS[0], "MD"), 50, 1)
    assert row.tolist() == pytest.approx([
        score, statistics.jackknife_error(exact.influence["MD"][0, 0]), resampled.std(),
        statistics.left_out_error(score, without, group_sizes(documents)),
    ])  # fmt: skip
    table = abx_1_validation.control_scores([name], corpus, n_triplets=400, seed=1)
    assert len(table) == 14
    control = abx.sample_control("MD", corpus.languages, len(corpus), 400, 1)
    vectors = {code: array[2] for code, array in states.items()}
    row = table.set_index(["model", "task", "layer"]).loc[name, "MD", 2]
    assert row["score"] == abx.score_triplets(vectors, control).mean()
    ends = statistics.share_interval(row["score"] * 400, 400, 1 - 0.05 / 14)
    assert (row["low"], row["high"]) == pytest.approx(ends)
