"""A bag of subwords and length alone, scored as a checkpoint is."""

from dataclasses import replace

import numpy as np
import pytest

from xlx.abx import averages, discrimination, lengths, series, surface
from xlx.abx.checkpoint_scores import MATCHED
from xlx.models import embeddings, loading
from xlx.text.corpora import ParallelCorpus


@pytest.fixture(scope="module")
def grouped(corpus: ParallelCorpus) -> ParallelCorpus:
    return replace(corpus, ids=tuple(f"{i // 3}:{i}" for i in range(10)))


def test_a_bag_is_what_its_counts_score(grouped: ParallelCorpus) -> None:
    bag = surface.subword_bag("mini-xlmr", grouped)
    counts = embeddings.bag_of_subwords(loading.load("mini-xlmr"), grouped)
    table = discrimination.exact(counts).table()
    ours = bag.scores.table()
    for task in ("LD", "MD", "retrieval"):
        expected = table.loc[table["task"] == task, "score"]
        np.testing.assert_allclose(ours.loc[ours["task"] == task, "score"], expected, atol=1e-7)
    before = series.bag_scores("mini-xlmr", grouped).groupby("task")["score"].mean()
    for task in ("LD", "MD"):
        mean = averages.average(bag, task)
        assert mean.score == pytest.approx(before[task])
        assert mean.error > 0
    assert (bag.model, bag.step, len(bag.scores.layers)) == (surface.BAG, 0, 1)
    assert {MATCHED, "MD, near", "MD, same document"} <= set(bag.tasks)


def test_a_centred_bag_has_lost_the_mean_of_each_language(grouped: ParallelCorpus) -> None:
    counts = embeddings.bag_of_subwords(loading.load("mini-xlmr"), grouped)
    dense = {code: rows.toarray() for code, rows in counts.items()}
    expected = discrimination.exact({code: x - x.mean(axis=0) for code, x in dense.items()})
    bag = surface.subword_bag("mini-xlmr", grouped, space="centred")
    assert bag.space == "centred"
    for task in ("LD", "MD"):
        np.testing.assert_allclose(bag.scores.scores[task], expected.scores[task], atol=1e-2)
        assert averages.average(bag, task).score == pytest.approx(expected.scores[task].mean())
    with pytest.raises(ValueError, match="space"):
        surface.subword_bag("mini-xlmr", grouped, space="whitened")


def test_length_alone_knows_less_among_sentences_of_like_length(
    grouped: ParallelCorpus,
) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(20, 400, size=40)
    sentences = {
        code: tuple("x" * int(n) for n in counts * rng.uniform(0.97, 1.03, size=40))
        for code in "abc"
    }
    ids = tuple(f"{i // 4}:{i}" for i in range(40))
    text = ParallelCorpus("toy", sentences, ids, ("",) * 40, "none", "made up")
    alone = surface.length_alone(text)
    md = float(averages.average(alone, "MD").score)
    assert md > 0.9
    before = lengths.length_scores(text).groupby("task")["score"].mean()
    assert md == pytest.approx(before["MD"], abs=1e-6)
    assert float(averages.average(alone, MATCHED).score) < md - 0.1
    assert alone.cut == dict.fromkeys("abc", 0)


def test_positions_that_are_cut_in_some_language_are_left_out(grouped: ParallelCorpus) -> None:
    tokenizer = loading.load("mini-xlmr").tokenizer
    lengths = {
        code: [len(ids) for ids in tokenizer(list(sentences))["input_ids"]]
        for code, sentences in grouped.sentences.items()
    }
    longest = [max(of_position) for of_position in zip(*lengths.values(), strict=True)]
    limit = sorted(longest)[6]
    kept = surface.uncut(["mini-xlmr"], grouped, max_length=limit)
    assert list(kept.ids) == [
        name for name, n in zip(grouped.ids, longest, strict=True) if n <= limit
    ]
    assert surface.uncut(["mini-xlmr"], grouped).ids == grouped.ids
    with pytest.raises(ValueError, match="of 10 positions 10 are cut in some language"):
        surface.uncut(["mini-xlmr"], grouped, max_length=4)
