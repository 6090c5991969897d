"""Coverage, a language at a time: the same as all at once, and each language computed once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import xlx
from tests import tiny
from xlx.mexa import controls, coverage, measures, neighbourhoods
from xlx.models import alignment, embeddings, loading
from xlx.models.embeddings import SentenceStates
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus
from xlx.text.files import TextError

LANGUAGES = ("de", "en", "fr", "ja", "sw")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder that takes 120 subwords, fewer than some of the sentences have."""
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny-llama", "llama", positions=120)


@pytest.fixture(scope="module")
def corpus() -> ParallelCorpus:
    return corpora.load("flores200-100", LANGUAGES).take(15, 0)


@pytest.fixture(scope="module")
def measured(model: Path, corpus: ParallelCorpus) -> dict[str, coverage.Coverage]:
    return coverage.measure_coverage(model, corpus)


def make(name: str = "made", **texts: Sequence[str]) -> ParallelCorpus:
    n = len(next(iter(texts.values())))
    sentences = {language: tuple(text) for language, text in texts.items()}
    return ParallelCorpus(name, sentences, tuple(map(str, range(n))), ("",) * n, "none", "here")


def calls(
    monkeypatch: pytest.MonkeyPatch, corpus: ParallelCorpus, stop_at: int | None = None
) -> list[tuple[str, tuple[str, ...]]]:
    """Language and poolings of what is embedded from here on; one call may be interrupted."""
    embed, seen = embeddings.embed_poolings, []
    language = {sentences: code for code, sentences in corpus.sentences.items()}

    def counted(
        encoder: loading.Encoder, sentences: tuple[str, ...], poolings: tuple, **options: object
    ) -> dict[str, SentenceStates]:
        seen.append((language[sentences], tuple(poolings)))
        if len(seen) == stop_at:
            raise KeyboardInterrupt
        return embed(encoder, sentences, poolings, **options)

    monkeypatch.setattr(embeddings, "embed_poolings", counted)
    return seen


def same(found: coverage.Coverage, expected: coverage.Coverage) -> None:
    """Equal to the last digit."""
    for field in ("model", "checkpoint", "pooling", "cut"):
        assert getattr(found, field) == getattr(expected, field)
    for field in ("languages", "pivot", "layers"):
        assert getattr(found.scores, field) == getattr(expected.scores, field)
    np.testing.assert_array_equal(found.scores.hits, expected.scores.hits)
    np.testing.assert_array_equal(found.scores.only_rival, expected.scores.only_rival)
    pd.testing.assert_frame_equal(found.measures, expected.measures)


def check(
    found: coverage.Coverage, model: Path, corpus: ParallelCorpus, pivot: str, pooling: str
) -> None:
    """Against `mexa.scores` and `alignment.measures` of all languages at once."""
    encoder = loading.load(model)
    embedded = {
        language: embeddings.embed(encoder, sentences, pooling=pooling)
        for language, sentences in corpus.sentences.items()
    }
    states = {language: each.states for language, each in embedded.items()}
    expected = measures.scores(states, pivot)
    assert found.pooling == pooling
    assert found.scores.languages == expected.languages
    assert (
        (found.scores.pivot, found.scores.layers) == (pivot, expected.layers) == (pivot, (0, 1, 2))
    )
    np.testing.assert_array_equal(found.scores.hits, expected.hits)
    np.testing.assert_array_equal(found.scores.only_rival, expected.only_rival)
    rows = ["language", "layer", "measure"]
    table = alignment.measures(states, pivot)
    assert list(found.measures) == list(table)
    assert not found.measures.duplicated(rows).any()
    values = found.measures.set_index(rows)["value"]
    assert (
        len(values) == len(table) == len(expected.languages) * 3 * len(alignment.ALIGNMENT_MEASURES)
    )
    np.testing.assert_allclose(
        values.loc[table[rows].itertuples(index=False)], table["value"], atol=1e-9
    )
    assert found.cut == {language: each.n_cut for language, each in embedded.items()}


# --- what is measured -----------------------------------------------------------------------------


def test_one_language_at_a_time_is_all_at_once(
    model: Path, corpus: ParallelCorpus, measured: dict[str, coverage.Coverage]
) -> None:
    assert tuple(measured) == coverage.MEXA_POOLINGS == ("weighted_mean", "last")
    for pooling, found in measured.items():
        check(found, model, corpus, "en", pooling)
        assert (found.model, found.checkpoint) == ("tiny-llama", 0)
        assert found.scores.languages == ("de", "fr", "ja", "sw")
    hits = [found.scores.hits for found in measured.values()]
    assert 0 < hits[0].mean() < 1
    assert (hits[0] != hits[1]).any()
    assert measured["last"].scores.only_rival.max() > 0


@pytest.mark.parametrize("pivot", ["sw", "swa", "swh"])
def test_any_language_can_be_the_pivot_by_any_of_its_codes(
    pivot: str, model: Path, corpus: ParallelCorpus
) -> None:
    found = coverage.measure_coverage(model, corpus, pivot, poolings=["mean", "mean"])
    assert tuple(found) == ("mean",)
    assert found["mean"].scores.languages == ("de", "en", "fr", "ja")
    check(found["mean"], model, corpus, "sw", "mean")


def test_a_layer_where_all_vectors_are_one_has_no_hit_and_no_cka(model: Path) -> None:
    """The last tokens are all a full stop, and layer 0 knows no other token."""
    corpus = make(en=["yes.", "Il fait.", "Das.", "no, no."], de=["ja.", "heute.", "was.", "wer."])
    found = coverage.measure_coverage(model, corpus)["last"]
    check(found, model, corpus, "en", "last")
    assert not found.scores.hits[0].any()
    values = found.measures.query("measure == 'cka'").set_index("layer")["value"]
    assert list(values.isna()) == [True, False, False]


def test_cut_sentences_are_counted_in_the_pivot_too(
    model: Path, corpus: ParallelCorpus, measured: dict[str, coverage.Coverage]
) -> None:
    tokenizer = loading.load(model).tokenizer
    lengths = {
        language: [len(tokenizer(sentence)["input_ids"]) for sentence in sentences]
        for language, sentences in corpus.sentences.items()
    }
    shorter = coverage.measure_coverage(model, corpus, max_length=60)["last"].cut
    for limit, cut in ((120, measured["last"].cut), (60, shorter)):
        assert cut == {x: sum(n > limit for n in each) for x, each in lengths.items()}
    assert 0 < measured["last"].cut["en"] < shorter["en"]


def test_alternatives_are_left_out_if_not_asked_for(
    model: Path, corpus: ParallelCorpus, measured: dict[str, coverage.Coverage]
) -> None:
    found = coverage.measure_coverage(model, corpus, alternatives=False)
    for pooling, expected in measured.items():
        assert found[pooling].measures.empty
        assert list(found[pooling].measures) == list(expected.measures)
        np.testing.assert_array_equal(found[pooling].scores.hits, expected.scores.hits)
        assert found[pooling].cut == expected.cut


def test_centred_scores_are_those_of_states_without_the_offset(
    model: Path, corpus: ParallelCorpus, measured: dict[str, coverage.Coverage]
) -> None:
    found = coverage.measure_coverage(model, corpus, centred=True)
    assert tuple(found) == coverage.MEXA_POOLINGS
    for pooling, own in found.items():
        states = embeddings.embed_corpus(loading.load(model), corpus, pooling=pooling).states
        expected = measures.scores(measures.without_offset(states), "en")
        np.testing.assert_array_equal(own.scores.hits, expected.hits)
        np.testing.assert_array_equal(own.scores.only_rival, expected.only_rival)
        assert (own.scores.hits != measured[pooling].scores.hits).any()
        assert own.cut == measured[pooling].cut
        assert own.measures.empty
    bag = controls.score_bags(model, corpus, centred=True)
    counts = embeddings.bag_of_subwords(loading.load(model), corpus)
    dense = {code: counts[code].toarray()[None] for code in counts}
    np.testing.assert_array_equal(
        bag.hits, measures.scores(measures.without_offset(dense), "en").hits
    )


def test_a_checkpoint_has_its_series_and_step(tmp_path: Path, corpus: ParallelCorpus) -> None:
    folder = tiny.series(tmp_path / "grown", (0, 7), architecture="llama", positions=16, width=16)
    two = corpus.select(["de", "en"]).take(4, 0)
    found = [
        coverage.measure_coverage(checkpoint, two, poolings=["last"], alternatives=False)["last"]
        for checkpoint in loading.checkpoints(str(folder))
    ]
    assert [(each.model, each.checkpoint) for each in found] == [("grown", 0), ("grown", 7)]


def test_tables_are_named(measured: dict[str, coverage.Coverage]) -> None:
    for pooling, found in measured.items():
        for table in (found.measures, found.scores.pooled("max"), found.scores.table()[5::-2]):
            named = found.named(table)
            assert list(named) == ["model", "pooling", *table]
            assert (set(named["model"]), set(named["pooling"])) == ({"tiny-llama"}, {pooling})
            pd.testing.assert_frame_equal(named[list(table)], table)


@pytest.mark.parametrize(
    ("n_layers", "expected"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (6, (1, 2, 3, 4, 5)),
        (7, (1, 2, 3, 4, 5)),
        (12, (2, 4, 6, 8, 9)),
        (25, (4, 8, 12, 16, 20)),
        (26, (5, 10, 15, 20, 25)),
        (28, (5, 10, 15, 20, 25)),
        (32, (5, 10, 15, 20, 25)),
        (80, (5, 10, 15, 20, 25)),
    ],
)
def test_middle_layers(n_layers: int, expected: tuple[int, ...]) -> None:
    assert coverage.middle_layers(n_layers) == expected


@pytest.mark.parametrize("n_layers", [0, -1])
def test_a_model_without_layers_has_no_middle(n_layers: int) -> None:
    with pytest.raises(ValueError, match=f"a model with {n_layers} layers has no middle"):
        coverage.middle_layers(n_layers)


# --- what is kept ---------------------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_where_it_was(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, coverage.Coverage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = coverage.MEXA_POOLINGS
    with monkeypatch.context() as patch:
        first = calls(patch, corpus, stop_at=4)
        with pytest.raises(KeyboardInterrupt):
            coverage.measure_coverage(model, corpus)
    assert first == [("en", both), ("de", both), ("fr", both), ("ja", both)]
    with monkeypatch.context() as patch:
        second = calls(patch, corpus)
        found = coverage.measure_coverage(model, corpus)
    assert second == [("en", both), ("ja", both), ("sw", both)]  # the first two were kept
    for pooling in both:
        same(found[pooling], measured[pooling])
    with monkeypatch.context() as patch:
        third = calls(patch, corpus)
        again = coverage.measure_coverage(model, corpus, poolings=both[::-1])
    assert third == []
    assert tuple(again) == both[::-1]
    for pooling in both:
        same(again[pooling], measured[pooling])


def test_only_the_language_and_the_pooling_that_are_new_are_computed(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, coverage.Coverage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coverage.measure_coverage(model, corpus.select(["en", "ja"]), poolings=["last"])
    seen = calls(monkeypatch, corpus)
    found = coverage.measure_coverage(model, corpus.select(["ja", "sw", "en"]))
    one, both = ("weighted_mean",), coverage.MEXA_POOLINGS
    assert seen == [("en", one), ("ja", one), ("en", both), ("sw", both)]
    for pooling, each in found.items():
        assert each.scores.languages == ("ja", "sw")
        expected = measured[pooling].scores
        np.testing.assert_array_equal(each.scores.hits, expected.hits[:, [2, 3]])


def test_results_tell_apart_what_a_score_depends_on(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, coverage.Coverage],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coverage.measure_coverage(model, corpus)
    monkeypatch.setattr(embeddings, "embed_poolings", lambda *_, **__: pytest.fail("again"))
    for code in ("en", "eng"):
        renamed = make("other name", **corpus.sentences)
        same(coverage.measure_coverage(model, renamed, code)["last"], measured["last"])
    text = corpus.sentences
    changed = {
        code: make(**(text | {code: (text[code][0] + " x", *text[code][1:])}))
        for code in ("en", "sw")
    }
    other = tiny.save(tmp_path / "another", "llama", positions=120, seed=1)
    for name, corpus_, options in (
        (model, corpus, {"pivot": "fr"}),
        (model, corpus, {"poolings": ["mean"]}),
        (model, corpus, {"max_length": 50}),
        (model, changed["en"], {}),
        (model, changed["sw"], {}),
        (model, corpus.take(14, 0), {"alternatives": False}),
        (other, corpus, {}),
    ):
        with pytest.raises(pytest.fail.Exception, match="again"):
            coverage.measure_coverage(name, corpus_, **options)
    with xlx.settings(dtype="bfloat16"), pytest.raises(pytest.fail.Exception, match="again"):
        coverage.measure_coverage(model, corpus)


def test_a_cluster_gets_a_few_languages_at_once(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, coverage.Coverage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [list(part) for part in coverage._portions("abcde")] == [list("abcde")]
    monkeypatch.setattr(coverage, "PORTION", 3)
    with xlx.settings(scheduler="tcp://nowhere:1"):
        parts = list(coverage._portions(("de", "fr", "ja", "sw")))
    assert parts == [("de", "fr", "ja"), ("sw",)]
    monkeypatch.setattr(coverage, "_portions", lambda languages: [[x] for x in languages])
    for pooling, found in coverage.measure_coverage(model, corpus).items():
        same(found, measured[pooling])


def test_results_are_apart_by_their_scores() -> None:
    value = {
        "hits": np.eye(2, 10, dtype=bool),
        "only_rival": np.zeros((2, 10)),
        "cut": np.array([0, 1]),
        "measures": np.array([[0.5, np.nan], [0.1, 0.2]]),
    }
    apart = coverage.coverage_difference
    assert apart(value, value) == 0
    assert apart(value, value | {"only_rival": np.ones((2, 10))}) == 0
    assert apart(value, value | {"hits": np.eye(2, 10, 3, dtype=bool)}) == 0
    assert apart(value, value | {"hits": np.zeros((2, 10), bool)}) == pytest.approx(0.1)
    measures = np.array([[0.5, np.nan], [0.1, 0.25]])
    assert apart(value, value | {"measures": measures}) == pytest.approx(0.05)
    assert (
        coverage.coverage_difference(value, value | {"measures": np.zeros((2, 2))}) == np.inf
    )  # NaN there
    assert apart(value, value | {"cut": np.array([1, 1])}) == np.inf


# --- errors ---------------------------------------------------------------------------------------


def test_requests_that_cannot_be_met(model: Path, corpus: ParallelCorpus) -> None:
    with pytest.raises(TextError, match=r"has no text in it; it has de, en, fr, ja, sw"):
        coverage.measure_coverage(model, corpus, "it")
    with pytest.raises(TextError, match="has no language to compare with en"):
        coverage.measure_coverage(model, corpus.select(["en"]))
    with pytest.raises(ValueError, match="pooling 'first' is not one of mean"):
        coverage.measure_coverage(model, corpus, poolings=["last", "first"])
    with pytest.raises(ValueError, match=r"max_length is 121, but .* takes 120 tokens"):
        coverage.measure_coverage(model, corpus, max_length=121)


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_a_sentence_that_cannot_be_embedded_is_named(language: str, model: Path) -> None:
    texts = {code: [f"{code} {i}" for i in range(4)] for code in ("de", "en", "fr")}
    texts[language][2] = ""
    with pytest.raises(ValueError, match=f"language '{language}' of 'made': position 2 .*no token"):
        coverage.measure_coverage(model, make(**texts))


def test_a_vector_that_has_no_cosine_is_named(
    model: Path, corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = embeddings.embed_poolings

    def broken(
        encoder: loading.Encoder, sentences: tuple[str, ...], *arguments: object, **options: object
    ) -> dict[str, SentenceStates]:
        found = embed(encoder, sentences, *arguments, **options)
        if sentences == corpus.sentences["ja"]:
            found["last"].states[1, 3] = 0
        return found

    monkeypatch.setattr(embeddings, "embed_poolings", broken)
    for alternatives in (False, True):
        with pytest.raises(ValueError, match=r"layer 1: .*ja.*position 3") as caught:
            coverage.measure_coverage(model, corpus, alternatives=alternatives)
        assert "zero" in str(caught.value)


def test_three_sentences_are_enough_for_scores_but_not_for_alternatives(
    model: Path, corpus: ParallelCorpus
) -> None:
    three = corpus.select(["en", "sw"]).take(3, 0)
    found = coverage.measure_coverage(model, three, alternatives=False)["last"].scores
    assert found.hits.shape == (3, 1, 3)
    with pytest.raises(ValueError, match="sw with en, layer 0: debiased CKA needs four"):
        coverage.measure_coverage(model, three)
    with pytest.raises(ValueError, match="two sentences or more are needed"):
        coverage.measure_coverage(model, three.take(1, 0), alternatives=False)


# --- a bag of subwords ----------------------------------------------------------------------------


def test_a_bag_of_subwords_is_scored_like_a_model(model: Path, corpus: ParallelCorpus) -> None:
    encoder = loading.load(model)
    bags = embeddings.bag_of_subwords(encoder, corpus, max_length=50)
    expected = measures.scores({code: bag.toarray()[None] for code, bag in bags.items()}, "fr")
    found = controls.score_bags(model, corpus, "fr", max_length=50)
    assert found.languages == expected.languages == ("de", "en", "ja", "sw")
    assert (found.pivot, found.layers) == ("fr", (0,))
    np.testing.assert_array_equal(found.hits, expected.hits)
    np.testing.assert_array_equal(found.only_rival, expected.only_rival)


def test_a_bag_of_subwords_hits_what_is_spelled_alike(model: Path) -> None:
    alike = make(en=["Turkey 1921", "Lake Como", "Moon"], de=["1921 Turkey", "Como Lake", "Mond"])
    found = controls.score_bags(model, alike)
    assert found.hits[0, 0, :2].all()


def test_a_bag_of_subwords_needs_another_language(model: Path) -> None:
    with pytest.raises(TextError, match="no language to compare with en"):
        controls.score_bags(model, make(en=["One", "Two"]))


def test_no_pooling_is_refused(model: Path, corpus: ParallelCorpus) -> None:
    with pytest.raises(ValueError, match="no pooling is asked for"):
        coverage.measure_coverage(model, corpus, poolings=())


def test_subwords_are_counted_as_the_model_reads_them(model: Path, corpus: ParallelCorpus) -> None:
    tokenizer = loading.load(model).tokenizer
    found = controls.mean_subwords(model, corpus)
    assert tuple(found.index) == corpus.languages
    for language, sentences in corpus.sentences.items():
        lengths = [len(tokenizer(sentence)["input_ids"]) for sentence in sentences]
        assert found[language] == pytest.approx(np.mean(lengths))


# --- all languages at once ------------------------------------------------------------------------


def test_wrong_pairs_are_translations_moved_apart(model: Path, corpus: ParallelCorpus) -> None:
    encoder = loading.load(model)
    states = {
        language: embeddings.embed(encoder, sentences, pooling="last").states
        for language, sentences in corpus.sentences.items()
    }
    expected = []
    for shift in (1, 2):
        moved = {x: own[:, np.arange(-shift, 15 - shift)] for x, own in states.items() if x != "fr"}
        expected.append(measures.scores(moved | {"fr": states["fr"]}, "fr").mu)
    found = controls.wrong_pairs(model, corpus, "fr", n_shifts=2, pooling="last")
    assert found == pytest.approx(np.mean(expected, axis=(0, 2)))
    assert found.shape == (3,)


def test_neighbourhoods_put_alike_sentences_side_by_side(
    model: Path, corpus: ParallelCorpus
) -> None:
    text = corpus.sentences
    twins = make(de=text["de"], en=text["en"], fr=text["de"])  # a copy under another name
    found = neighbourhoods.place_sentences(
        model, twins, [0, 2], n_sentences=8, perplexity=4, seed=1
    )
    assert len(found) == 2 * 3 * 8
    assert list(found["layer"].unique()) == [0, 2]
    for _, rows in found.groupby("layer"):
        assert list(rows["language"]) == ["de"] * 8 + ["en"] * 8 + ["fr"] * 8
        assert list(rows["sentence"]) == [*range(8)] * 3
    share = (found["nearest"] != found["language"]).groupby(found["language"]).mean()
    assert share["de"] > 0.9
    assert share["fr"] > 0.9
    again = neighbourhoods.place_sentences(
        model, twins, [0, 2], n_sentences=8, perplexity=4, seed=1
    )
    pd.testing.assert_frame_equal(again, found)
