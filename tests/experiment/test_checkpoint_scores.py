"""What is kept of a checkpoint against what every pair has."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from xlx.experiment import abx_scores, constraints, scoring
from xlx.experiment.averages import Average
from xlx.measures import abx
from xlx.results import ledger
from xlx.subjects import identity, loading
from xlx.subjects.states import embed_corpus
from xlx.text import languages, parallel
from xlx.text.parallel import ParallelCorpus


@pytest.fixture(scope="module")
def grouped(corpus: ParallelCorpus) -> ParallelCorpus:
    """Four documents."""
    return replace(corpus, ids=tuple(f"{name}:{i}" for i, name in enumerate("ppqqqrrrsp")))


@pytest.fixture(scope="module")
def kept(grouped: ParallelCorpus) -> abx.PairScores:
    """Those of the last checkpoint of a series."""
    return scoring.subject_scores(["mini-infoxlm"], grouped)[0]


#: To three digits and more, as float16 has it.
HALF = {"rtol": 5e-4, "atol": 3e-8}


def test_what_is_kept_is_that_of_the_pairs(grouped: ParallelCorpus, kept: abx.PairScores) -> None:
    encoder = loading.load("mini-infoxlm")
    states = embed_corpus(encoder, grouped).states
    names = constraints.standard_masks(grouped)
    masks = constraints.masks_of(grouped, names, lambda: encoder)
    groups = {"documents": parallel.documents(grouped), "sentences": range(10)}
    exact = abx.exact(states, masks=masks, groups=groups)
    assert (kept.pairs, kept.layers) == (exact.pairs, exact.layers)
    assert kept.tasks == list(exact.scores)
    table, expected = kept.table().drop(columns=["model", "checkpoint", "space"]), exact.table()
    pd.testing.assert_frame_equal(table, expected, rtol=0, atol=1e-5)
    counted = table["task"].isin(abx_scores.BY_LANGUAGE)
    pd.testing.assert_frame_equal(table[counted], expected[counted], rtol=0, atol=1e-9)
    assert kept.sizes["documents"].tolist() == [3, 3, 3, 1]
    weights = abx_scores.pair_weights(exact.pairs)
    for task, scores in exact.scores.items():
        for what in groups:
            if what == "sentences" and task not in abx_scores.BY_LANGUAGE:
                continue
            left_out_change = exact.left_out[what][task] - scores.mean(axis=-1, keepdims=True)
            averaged = kept.left_out_change[what]["pairs"][task]
            np.testing.assert_allclose(averaged, left_out_change.mean(axis=1), **HALF)
        left_out_change = exact.left_out["documents"][task] - scores.mean(axis=-1, keepdims=True)
        for name in ("branches", "scripts"):
            expected = np.einsum("p,lpg->lg", weights[name], left_out_change)
            by_name = kept.left_out_change["documents"][name][task]
            np.testing.assert_allclose(by_name, expected, **HALF)
        if task in abx_scores.BY_LANGUAGE:
            for row, code in enumerate(grouped.languages):
                own = left_out_change[:, [code in pair for pair in exact.pairs]].mean(axis=1)
                by_language = kept.left_out_change["documents"]["languages"][task][:, row]
                np.testing.assert_allclose(by_language, own, **HALF)


def test_balanced_weights_count_pairs_of_branches_alike() -> None:
    pairs = [("de", "nl"), ("de", "ru"), ("nl", "ru"), ("de", "xx")]
    weights = abx_scores.pair_weights(pairs)
    assert weights["pairs"].tolist() == [0.25] * 4
    branches = {code: languages.LANGUAGES[code].branch for code in ("de", "nl", "ru")}
    assert branches["de"] == branches["nl"] != branches["ru"]
    np.testing.assert_allclose(weights["branches"], [1 / 3, 1 / 6, 1 / 6, 1 / 3])
    assert weights["scripts"].sum() == pytest.approx(1)


def test_a_dimension_that_never_varies_is_not_standardised() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 6)) * [50, 1, 1, 1, 1, 0]
    stacked = np.concatenate([*abx_scores.standardised({"a": rows, "b": rows + 3}).values()])
    np.testing.assert_allclose(stacked.std(axis=0), [1] * 6)
    assert not abx_scores.standardised({"a": rows, "b": rows})["a"][:, 5].any()


def test_the_second_time_neither_loads_nor_embeds(
    grouped: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = scoring.subject_scores(["mini-infoxlm"], grouped)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("xlx.subjects.loading.load", never)
    (again,) = scoring.subject_scores(["mini-infoxlm"], grouped)
    pd.testing.assert_frame_equal(again.table(), first.table())
    assert again.cut == first.cut
    renamed = replace(grouped, ids=tuple(f"{name}:x" for name in "ttuuuvvvwt"))
    scoring.subject_scores(["mini-infoxlm"], renamed)  # other names, same groups
    others = replace(grouped, ids=tuple(f"{name}:x" for name in "ppqqqrrrss"))
    for corpus, options in (
        (others, {}),
        (grouped, {"space": "centred"}),
        (grouped, {"pooling": "cls"}),
        (grouped, {"max_length": 7}),
    ):
        with pytest.raises(AssertionError, match="computed again"):
            scoring.subject_scores(["mini-infoxlm"], corpus, **options)
    with pytest.raises(ValueError, match="no space 'odd': choose raw, centred"):
        scoring.subject_scores(["mini-infoxlm"], grouped, space="odd")


def test_values_are_compared_by_scores_and_differences() -> None:
    rng = np.random.default_rng(0)
    states = {code: rng.normal(size=(12, 4)) for code in "abc"}
    groups = {"documents": np.arange(12) // 3, "sentences": range(12)}
    exact = abx.exact({code: np.stack([x, x]) for code, x in states.items()}, groups=groups)
    value = scoring.packed(exact.scores["LD"], "LD", 12)
    value |= {part: np.stack([x, x]) for part, x in scoring.changes(exact, "LD").items()}
    value["cut"] = np.zeros(3, dtype=np.int64)
    difference = scoring.SCORE.difference
    assert difference(value, value) == 0
    won = value["won"].copy()
    won[0, 1, 0] += 12
    expected = 12 / (2 * 12 * 11) / 2 / 2  # both directions, two pairs a language
    assert difference(value, value | {"won": won}) == pytest.approx(expected)
    apart = np.abs(value["documents pairs"].astype(float)).max()
    twice = value | {"documents pairs": 2 * value["documents pairs"]}
    assert difference(value, twice) == pytest.approx(apart)
    assert difference(value, value | {"cut": np.array([0, 2])}) == np.inf


@pytest.mark.parametrize(("n", "bits"), [(12, 32), (46_341, 32), (46_342, 64), (10**6, 64)])
def test_comparisons_won_are_counted_whatever_their_number(n: int, bits: int) -> None:
    made, few = n * (n - 1), {"won": np.zeros((1, 1, 2), np.uint32)}
    twice = np.array([[2 * made, 2 * made - 7]])
    scores = twice[None] / (2 * made)
    packed = scoring.packed(scores, "LD", n)
    assert packed["won"].dtype == f"uint{bits}"
    np.testing.assert_array_equal(packed["won"], twice[None])
    # beside an entry of few sentences in a file of the ledger
    asks = [ledger.Ask("score", {"n": x}) for x in (0, n)]
    entries = [
        ledger.Entry(ask.kind, ask.identity, 1, ask.text, value, {})
        for ask, value in zip(asks, (few, packed), strict=True)
    ]
    table = ledger.to_arrow(entries)
    read = [scoring.scores_of_pairs(ledger.from_arrow(table, row).value, n) for row in (0, 1)]
    np.testing.assert_array_equal(read, [few["won"], scores])


def test_without_a_document_that_holds_every_comparison_there_is_no_score() -> None:
    rng = np.random.default_rng(0)
    states = {code: rng.normal(size=(6, 4)) for code in "ab"}
    documents, inside = np.array([0, 0, 0, 1, 2, 3]), np.zeros((6, 6), dtype=bool)
    inside[:3, :3] = True
    masks = {"inside": dict.fromkeys("ab", inside)}
    exact = abx.exact(states, masks=masks, groups={"documents": documents})
    left_out = exact.left_out["documents"]["MD, inside"][0, 0]
    assert np.isnan(left_out).tolist() == [True, False, False, False]
    value = scoring.changes(exact, "MD, inside")
    assert np.isnan(value["documents pairs"]).tolist() == [True, False, False, False]
    change = value["documents pairs"].astype(float)
    assert np.isnan(Average(np.array(0.5), change, np.array([3, 1, 1, 1])).interval()).all()
    lost = abx.exact(states | {"c": np.full((6, 4), np.nan)}, groups={"documents": documents})
    by_pair = scoring.packed(lost.scores["LD"], "LD", 6)["score"]
    assert np.isnan(by_pair[0]).tolist() == [[False] * 2, *[[True] * 2] * 2]
    parts = {part: x[None] for part, x in value.items()} | {"cut": np.zeros(2)}
    task = "MD, inside"
    parts |= scoring.packed(exact.scores[task], task, 6, exact.masked[task])
    assert scoring.SCORE.difference(parts, parts) == 0
    known = parts | {"documents pairs": np.nan_to_num(parts["documents pairs"])}
    assert scoring.SCORE.difference(parts, known) == np.inf


def test_a_mask_keeps_its_scores_where_a_pair_of_another_layer_has_none() -> None:
    scores, made = np.array([[[0.5, 0.75]], [[np.nan, 0.25]]]), np.array([[4, 8]])
    value = scoring.packed(scores, abx_scores.MATCHED, 6, made)
    np.testing.assert_array_equal(scoring.scores_of_pairs(value, 6), scores)


def test_checkpoints_whose_weights_are_not_shipped_have_the_scores_that_are_stored(
    grouped: ParallelCorpus, tmp_path: Path
) -> None:
    folder = tiny.series(tmp_path / "grown", (0, 7, 9))
    hashes = [f"{x.step},{identity.fingerprint(x)}" for x in identity.checkpoints(str(folder))]
    (folder / "checkpoints.csv").write_text("\n".join(["step,fingerprint", *hashes]))
    name, options = str(folder), {"pooling": "mean"}
    steps = abx_scores.history(name)
    before = scoring.subject_scores(steps[:2], grouped, **options)
    for step in (7, 9):
        shutil.rmtree(folder / f"step-{step:06d}")
    assert [checkpoint.step for checkpoint in abx_scores.history(name)] == [0]
    known = abx_scores.history(name, recorded=True)
    with pytest.warns(UserWarning, match=r"grown: left out are the checkpoints 9: their weights"):
        after = scoring.subject_scores(known, grouped, **options)
    assert [scores.step for scores in after] == [0, 7]
    for one, other in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(one.table(), other.table())
