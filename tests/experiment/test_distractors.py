"""Masks on B by their definition, and what they take away."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from xlx.experiment import constraints, scoring
from xlx.results import paths
from xlx.subjects import loading, states
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus


@pytest.fixture(scope="module")
def grouped(corpus: ParallelCorpus) -> ParallelCorpus:
    """Four documents in two domains."""
    ids = tuple(f"{document}:{i}" for i, document in enumerate("ppqqqrrrst"))
    return replace(corpus, ids=ids, domains=tuple("nnnnnsssss"))


def every_mask(corpus: ParallelCorpus) -> dict[str, constraints.Mask]:
    names = constraints.standard_masks(corpus)
    return constraints.masks_of(corpus, names, lambda: loading.load("mini-xlmr"))


def test_masks_are_those_of_their_definition(grouped: ParallelCorpus) -> None:
    masks = every_mask(grouped)
    expected = {"like length", "near", "same document", "other document", "same domain"}
    assert set(masks) == expected
    bags = states.bag_of_subwords(loading.load("mini-xlmr"), grouped)
    for code, sentences in grouped.sentences.items():
        dense = bags[code].toarray()
        norms = np.linalg.norm(dense, axis=1)
        for a, b in np.ndindex(10, 10):
            if a == b:
                continue
            count = len(sentences[a]), len(sentences[b])
            documents = [grouped.ids[i][0] for i in (a, b)]
            assert masks["like length"][code][a, b] == (abs(count[1] - count[0]) <= 0.1 * count[0])
            assert masks["same document"][code][a, b] == (documents[0] == documents[1])
            assert masks["other document"][code][a, b] == (documents[0] != documents[1])
            same = grouped.domains[a] == grouped.domains[b]
            assert masks["same domain"][code][a, b] == same
        cosines = dense @ dense.T / np.outer(norms, norms)
        near = constraints.masks_of(grouped, ["near (k=3)"], lambda: loading.load("mini-xlmr"))[
            "near (k=3)"
        ][code]
        for a in range(10):
            others = np.delete(cosines[a], a)
            third = np.sort(others)[-3]
            wanted = [b for b in range(10) if b != a and cosines[a, b] >= third - 1e-9]
            assert np.flatnonzero(near[a]).tolist() == wanted


def test_all_that_are_as_near_as_the_last_are_near() -> None:
    counts = sparse.csr_array(np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]]))
    assert constraints._nearest(counts, 1)[0].tolist() == [False, True, True, False]


def test_a_corpus_without_documents_or_domains_has_no_such_masks(corpus: ParallelCorpus) -> None:
    masks = every_mask(corpus)
    assert set(masks) == {"like length", "near"}


@pytest.mark.parametrize("seed", range(3))
def test_a_column_of_the_text_constrains_as_its_values_say(seed: int, tmp_path: Path) -> None:
    rng, n = np.random.default_rng(seed), 12
    topics, levels = rng.choice(list("abc"), n), rng.integers(1, 9, n)
    rows = [f"{i}\t{topic}\t{x}" for i, (topic, x) in enumerate(zip(topics, levels, strict=True))]
    (tmp_path / "segments.tsv").write_text("\n".join(["id\ttopic\tlevel", *rows, ""]))
    for code in ("de", "en"):
        lines = [code * int(k) for k in rng.permutation(np.arange(3, 3 + n))]
        (tmp_path / f"{code}.txt").write_text("\n".join([*lines, ""]))
    text = parallel.load(tmp_path)
    names = ["same topic", "like level (share=0.5)", "like length (share=0.4) and other topic"]
    masks, drawn = constraints.masks_of(text, names), text.drop([3])
    same, length = np.equal.outer(topics, topics), np.array([*map(len, text.sentences["de"])])
    near = [abs(b - a) <= 0.4 * a for a in length for b in length]
    assert (masks[names[0]]["en"] == same).all()
    assert masks[names[1]]["de"].tolist() == [[abs(b - a) <= a / 2 for b in levels] for a in levels]
    assert (masks[names[2]]["de"] == np.reshape(near, (n, n)) & ~same).all()
    assert drawn.columns["topic"] == tuple(np.delete(topics, 3))
    for name in names:
        about = constraints.about(name, text)
        assert about["measure"] == [f"MD, {name}", 1]
        assert ("columns" in about) == (about != constraints.about(name, drawn))


def test_two_tolerances_stand_side_by_side(grouped: ParallelCorpus) -> None:
    measures = ["MD, like length", "MD, like length (share=0.2)"]
    (scores,) = scoring.subject_scores(["mini-xlmr"], grouped, measures)
    narrow, wide = (constraints.masks_of(grouped, [x.removeprefix("MD, ")]) for x in measures)
    assert scores.tasks == measures
    counts = [
        m[x.removeprefix("MD, ")]["de"].sum() for m, x in zip((narrow, wide), measures, strict=True)
    ]
    assert counts[0] < counts[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("as lik length", "constraint"),
        ("like lenth", "length"),
        ("same topic", "document"),
        ("like length (shar=0.2)", "share"),
        ("like domain", "numbers"),
    ],
)
def test_what_is_no_constraint_is_named(name: str, words: str, grouped: ParallelCorpus) -> None:
    with pytest.raises(ValueError, match=words):
        constraints.constraints(name, replace(grouped, domains=tuple("abcdefghij")))


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("book/glossary.md", "of about the same length, within"),
        ("book/usage.md", '"MD, like length"` (within'),
        ("course/lesson-3-causes.ipynb", "as long as A, within"),
        ("course/teacher.ipynb", "`like_length` |"),
    ],
)
def test_pages_say_the_share_that_like_length_has(page: str, words: str) -> None:
    text = (paths.NOTEBOOKS / page).read_text(encoding="utf-8").replace(r"\"", '"')
    share = 100 * constraints.CONSTRAINTS["like"].parameters["share"]
    assert f"{words} {share:g} %" in text


@pytest.mark.parametrize("seed", range(20))
def test_a_parameter_is_read_as_written_or_refused(seed: int, grouped: ParallelCorpus) -> None:
    draw = random.Random(seed)
    share = draw.choice([0.05, 0.2, 0.5, 2.0])
    spelt = draw.choice(["{}", " {} ", "{:e}", "{:.3f}"]).format(share)
    name = f"like length (share{draw.choice(['=', ' = ', '= '])}{spelt})"
    (part,) = constraints.constraints(name, grouped)
    assert part.parameters["share"] == share
    wrong = draw.choice(["-1", "nan", "inf", "20%", "abc", "", "0,2", "1 2", "--3"])
    with pytest.raises(ValueError, match=r"share|parameter"):
        constraints.constraints(f"like length (share={wrong})", grouped)
