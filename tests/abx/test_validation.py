"""The checks of the ABX scores, against the functions that they put together."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import abx_1_validation
from xlx.experiment.abx_scores import checkpoint_scores, group_sizes
from xlx.experiment.averages import average
from xlx.measures import abx, statistics
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

MODEL = ["mini-infoxlm"]
PAIRS = [("de", "en"), ("en", "fr"), ("fr", "de")]
KEYS = ["task", "layer", "language_1", "language_2"]
States = dict[str, np.ndarray]


def test_pairs_take_turns() -> None:
    pairs = abx_1_validation.neighbouring_pairs("abcd")
    assert pairs[:4] == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    assert pairs[4:] == [("a", "c"), ("b", "d"), ("c", "a"), ("d", "b")]
    assert abx_1_validation.neighbouring_pairs("abcd", 3) == pairs[:3]


def test_sampling(corpus: ParallelCorpus, states: States) -> None:
    draw = {"n_triplets": 50, "n_runs": 3, "seed": 1}
    table = abx_1_validation.sampling(MODEL, corpus, PAIRS, **draw)
    assert set(table["model"]) == set(MODEL)
    assert len(table) == 2 * 7 * 3
    runs = abx.sampled(states, PAIRS, *draw.values()).groupby(KEYS)["score"]
    keys = table.set_index(KEYS).index
    np.testing.assert_allclose(table["mean"], runs.mean().loc[keys], atol=0.03)
    np.testing.assert_allclose(table["sd"], runs.std().loc[keys], atol=0.03)
    exact = abx.pair_scores(abx.exact(states).table()).set_index(KEYS)
    for row in table.itertuples():
        expected = exact.loc[(row.task, row.layer, *sorted((row.language_1, row.language_2)))]
        assert row.exact == pytest.approx(expected["score"], abs=0.02)
        assert row.error == abs(row.mean - row.exact)


def test_errors(corpus: ParallelCorpus, states: States) -> None:
    table = abx_1_validation.errors(MODEL, corpus, PAIRS[:1], n_resamples=50, seed=1)
    assert table[["language_1", "task"]].values.tolist() == [["de", "LD"], ["de", "MD"]]
    last = {code: states[code][-1] for code in ("de", "en")}
    documents = parallel.documents(corpus)
    groups = {"documents": documents}
    exact = abx.exact(last, influence=True, groups=groups)
    assert table["score"][1] == pytest.approx(exact.scores["MD"].mean(), abs=0.02)
    error = statistics.jackknife_error(exact.influence["MD"][0, 0])
    assert table["jackknife"][1] == pytest.approx(float(error), abs=0.01)
    resampled = statistics.bootstrap_kernel(abx.kernel(last, PAIRS[0], "MD"), 50, 1)
    assert table["bootstrap"][1] == pytest.approx(resampled.std(), abs=0.01)
    without = exact.left_out["documents"]["MD"][0, 0]
    sizes = group_sizes(documents)
    by_document = statistics.left_out_error(float(exact.scores["MD"].mean()), without, sizes)
    assert table["documents"][1] == pytest.approx(float(by_document), abs=0.01)


def test_errors_over_documents_stand_beside_those_over_sentences(grouped: ParallelCorpus) -> None:
    measured = checkpoint_scores(MODEL, grouped)
    row = abx_1_validation.grouped_errors(measured, ["MD"]).iloc[0]
    for over in ("sentences", "documents"):
        assert row[over] == float(average(measured[0], "MD", over=over).error)
    assert row["ratio"] == row["documents"] / row["sentences"] != 1


def test_every_shuffle_is_shown_with_the_score_that_it_takes_away(grouped: ParallelCorpus) -> None:
    table = abx_1_validation.shuffled_controls(MODEL, grouped, seed=1)
    assert table["control"].unique().tolist() == [
        "MD, translations shuffled", "MD, documents shuffled", "MD, lengths shuffled",
        "LD, labels shuffled",
    ]  # fmt: skip
    row = table.query("control == 'LD, labels shuffled' and layer == 2").iloc[0]
    plain = abx_1_validation.shuffled_scores(MODEL, grouped, "labels", seed=1)
    expected = plain.query("task == 'LD' and layer == 2").iloc[0]
    assert row["score"] == expected["score"]
    quantile = stats.t.ppf(0.975, 4)  # five documents
    assert row["high"] - row["score"] == pytest.approx(quantile * expected["error"])


def test_controls_are_drawn_once(
    corpus: ParallelCorpus, states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = {"n_triplets": 400, "seed": 1}
    table = abx_1_validation.control_scores(MODEL, corpus, **draw)
    assert len(table) == 14
    control = abx.sample_control("MD", corpus.languages, len(corpus), 400, 1)
    vectors = {code: array[2] for code, array in states.items()}
    row = table.query("task == 'MD' and layer == 2").iloc[0]
    expected = abx.score_triplets(vectors, control).mean()
    assert row["score"] == pytest.approx(expected, abs=0.01)
    ends = statistics.share_interval(row["score"] * 400, 400, 1 - 0.05 / 14)
    assert (row["low"], row["high"]) == pytest.approx(ends)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("xlx.subjects.loading.load", never)
    assert abx_1_validation.control_scores(MODEL, corpus, **draw).equals(table)
    for change in ({"seed": 2}, {"n_triplets": 21}, {"pooling": "cls"}):
        with pytest.raises(AssertionError, match="computed again"):
            abx_1_validation.control_scores(MODEL, corpus, **(draw | change))


def test_controls_are_compared_by_share() -> None:
    stored = pd.DataFrame({"task": ["LD"], "layer": [0], "won": [50.0], "n": [100]})
    apart = abx_1_validation.CONTROLS.difference(stored, stored.assign(won=51.0))
    assert apart == pytest.approx(0.01)
