"""Coverage, a language at a time: the same as all at once, and each language computed once."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import mexa_2_estimation
from tests import tiny
from xlx.experiment import mexa_scores
from xlx.experiment.scoring import BAG, BagOfSubwords, Length
from xlx.measures import abx, alignment, mexa, registered
from xlx.results import settings
from xlx.subjects import identity, loading, states
from xlx.subjects.states import SentenceStates, embed, embed_corpus, embed_poolings
from xlx.text import parallel
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

LANGUAGES = ("de", "en", "fr", "ja", "sw")
BOTH = mexa_scores.MEXA_POOLINGS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder that takes 120 subwords, fewer than some of the sentences have."""
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny-llama", "llama", positions=120)


@pytest.fixture(scope="module")
def corpus() -> ParallelCorpus:
    return parallel.load("flores200-100", LANGUAGES).take(12, 0)


@pytest.fixture(scope="module")
def measured(model: Path, corpus: ParallelCorpus) -> dict[str, mexa_scores.Coverage]:
    return mexa_scores.measure_coverage(model, corpus, alternatives=True)


def make(name: str = "made", **texts: Sequence[str]) -> ParallelCorpus:
    n = len(next(iter(texts.values())))
    sentences = {language: tuple(text) for language, text in texts.items()}
    return ParallelCorpus(name, sentences, tuple(map(str, range(n))), ("",) * n, "none", "here")


def calls(
    monkeypatch: pytest.MonkeyPatch, corpus: ParallelCorpus, stop_at: int | None = None
) -> list[tuple[str, tuple[str, ...]]]:
    """Language and poolings of what is embedded from here on; one call may be interrupted."""
    embed, seen = states.embed_poolings, []
    language = {sentences: code for code, sentences in corpus.sentences.items()}

    def counted(
        encoder: loading.Encoder, sentences: tuple[str, ...], poolings: tuple, **options: object
    ) -> dict[str, SentenceStates]:
        seen.append((language[sentences], tuple(poolings)))
        if len(seen) == stop_at:
            raise KeyboardInterrupt
        return embed(encoder, sentences, poolings, **options)

    monkeypatch.setattr(mexa_scores, "embed_poolings", counted)
    return seen


def same_scores(scores: mexa.PivotScores, expected: mexa.PivotScores) -> None:
    for field in ("languages", "pivot", "layers"):
        assert getattr(scores, field) == getattr(expected, field)
    np.testing.assert_array_equal(scores.hits, expected.hits)
    np.testing.assert_array_equal(scores.only_rival, expected.only_rival)


def same(covered: mexa_scores.Coverage, expected: mexa_scores.Coverage) -> None:
    """Equal to the last digit."""
    for field in ("model", "pooling", "states", "cut"):
        assert getattr(covered, field) == getattr(expected, field)
    same_scores(covered.scores, expected.scores)
    pd.testing.assert_frame_equal(covered.measures, expected.measures)


def check(
    covered: mexa_scores.Coverage, model: Path, corpus: ParallelCorpus, pivot: str, pooling: str
) -> None:
    """Against `mexa.scores` and `abx.exact` of all languages at once."""
    encoder = loading.load(model)
    embedded = {
        language: embed(encoder, sentences, pooling=pooling)
        for language, sentences in corpus.sentences.items()
    }
    states = {language: own.states for language, own in embedded.items()}
    assert (covered.pooling, covered.states, covered.scores.layers) == (pooling, "raw", (0, 1, 2))
    same_scores(covered.scores, mexa.scores(states, pivot))
    table = covered.measures.set_index(["measure", "language"])
    assert set(table.index) == set(product(mexa_scores.ALTERNATIVES, set(states) - {pivot}))
    pairs = [(language, pivot) for language in states if language != pivot]
    measures = [registered()[name] for name in ("cosine", "retrieval", "biased CKA", "RSA")]
    scores = abx.exact(states, pairs=pairs, measures=measures, dtype=torch.float64).scores
    for row, (language, _) in enumerate(pairs):
        for name, (measure, side, _) in mexa_scores.ALTERNATIVES.items():
            if measure in scores:
                found = table.loc[(name, language)].sort_values("layer")["value"]
                np.testing.assert_allclose(found, scores[measure][:, row, side], atol=1e-6)
    assert covered.cut == {language: own.n_cut for language, own in embedded.items()}


# --- what is measured -----------------------------------------------------------------------------


def test_one_language_at_a_time_is_all_at_once(
    model: Path, corpus: ParallelCorpus, measured: dict[str, mexa_scores.Coverage]
) -> None:
    assert tuple(measured) == BOTH == ("weighted_mean", "last")
    for pooling, covered in measured.items():
        check(covered, model, corpus, "en", pooling)
        assert covered.scores.languages == ("de", "fr", "ja", "sw")
        for table in (covered.measures, covered.scores.pooled("max")):
            named = covered.named(table)
            assert list(named) == ["model", "pooling", "states", *table]
            assert named.iloc[0, :3].tolist() == ["tiny-llama", pooling, "raw"]
            pd.testing.assert_frame_equal(named[list(table)], table)
    hits = [covered.scores.hits for covered in measured.values()]
    assert 0 < hits[0].mean() < 1
    assert (hits[0] != hits[1]).any()
    assert measured["last"].scores.only_rival.max() > 0


def test_any_language_can_be_the_pivot_by_any_of_its_codes(
    model: Path, corpus: ParallelCorpus
) -> None:
    for pivot in ("sw", "swa", "swh"):
        covered = mexa_scores.measure_coverage(
            model, corpus, pivot, poolings=["mean", "mean"], alternatives=True
        )
        assert tuple(covered) == ("mean",)
        assert covered["mean"].scores.languages == ("de", "en", "fr", "ja")
    check(covered["mean"], model, corpus, "sw", "mean")


def test_a_layer_where_all_vectors_are_one_has_no_hit_and_no_cka(model: Path) -> None:
    """The last tokens are all a full stop, and layer 0 knows no other token."""
    corpus = make(en=["yes.", "Il fait.", "Das.", "no, no."], de=["ja.", "heute.", "was.", "wer."])
    covered = mexa_scores.measure_coverage(model, corpus, alternatives=True)["last"]
    check(covered, model, corpus, "en", "last")
    assert not covered.scores.hits[0].any()
    values = covered.measures.query("measure == 'biased CKA'").set_index("layer")["value"]
    assert list(values.isna()) == [True, False, False]


def test_cut_sentences_are_counted_and_alternatives_left_out_if_not_asked_for(
    model: Path, corpus: ParallelCorpus, measured: dict[str, mexa_scores.Coverage]
) -> None:
    tokenizer = loading.load(model).tokenizer
    lengths = {
        language: [len(tokenizer(sentence)["input_ids"]) for sentence in sentences]
        for language, sentences in corpus.sentences.items()
    }
    shorter = mexa_scores.measure_coverage(model, corpus, poolings=["last"], max_length=60)["last"]
    assert list(shorter.measures) == list(measured["last"].measures)
    assert shorter.measures.empty
    for limit, cut in ((120, measured["last"].cut), (60, shorter.cut)):
        assert cut == {x: sum(n > limit for n in own) for x, own in lengths.items()}
    assert 0 < measured["last"].cut["en"] < shorter.cut["en"]


def test_centred_scores_are_those_of_states_without_the_offset(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, mexa_scores.Coverage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = calls(monkeypatch, corpus)
    both = mexa_scores.measure_coverage(model, corpus, states=mexa_scores.STATES, alternatives=True)
    assert seen == [(code, BOTH) for code in ("en", "de", "fr", "ja", "sw")]  # each once, for both
    assert tuple(both) == (*BOTH, *(f"{pooling} centred" for pooling in BOTH))
    assert not mexa_scores.languages_to_read(model, corpus, states=mexa_scores.STATES)
    covered = mexa_scores.measure_coverage(model, corpus, states=["centred"])
    assert (tuple(covered), len(seen)) == (BOTH, 5)
    for pooling, own in covered.items():
        same(both[pooling], measured[pooling])
        same(both[f"{pooling} centred"], own)
        states = embed_corpus(loading.load(model), corpus, pooling=pooling).states
        same_scores(own.scores, mexa.scores(alignment.centred(states), "en"))
        assert (own.scores.hits != measured[pooling].scores.hits).any()
        assert (own.states, own.cut) == ("centred", measured[pooling].cut)
        assert own.measures.empty


def test_a_checkpoint_has_the_name_of_its_series(tmp_path: Path, corpus: ParallelCorpus) -> None:
    folder = tiny.series(tmp_path / "grown", (0, 7), architecture="llama", positions=16, width=16)
    two = corpus.select(["de", "en"]).take(4, 0)
    options = {"poolings": ["last"]}
    first, last = (
        mexa_scores.measure_coverage(checkpoint, two, **options)["last"]
        for checkpoint in identity.checkpoints(str(folder))
    )
    assert first.model == last.model == "grown"
    assert (first.scores.only_rival != last.scores.only_rival).any()


@pytest.mark.parametrize(
    ("n_layers", "expected"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (6, (1, 2, 3, 4, 5)),
        (12, (2, 4, 6, 8, 9)),
        (25, (4, 8, 12, 16, 20)),
        (26, (5, 10, 15, 20, 25)),
        (80, (5, 10, 15, 20, 25)),
    ],
)
def test_middle_layers(n_layers: int, expected: tuple[int, ...]) -> None:
    assert mexa_2_estimation.middle_layers(n_layers) == expected


# --- what is kept ---------------------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_where_it_was(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, mexa_scores.Coverage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        first = calls(patch, corpus, stop_at=4)
        with pytest.raises(KeyboardInterrupt):
            mexa_scores.measure_coverage(model, corpus, alternatives=True)
    assert first == [("en", BOTH), ("de", BOTH), ("fr", BOTH), ("ja", BOTH)]
    with monkeypatch.context() as patch:
        second = calls(patch, corpus)
        covered = mexa_scores.measure_coverage(model, corpus, alternatives=True)
    assert second == [("en", BOTH), ("ja", BOTH), ("sw", BOTH)]  # the first two were kept
    with monkeypatch.context() as patch:
        third = calls(patch, corpus)
        again = mexa_scores.measure_coverage(model, corpus, poolings=BOTH[::-1])
    assert third == []
    assert tuple(again) == BOTH[::-1]
    for pooling in BOTH:
        same(covered[pooling], measured[pooling])
        same(again[pooling], measured[pooling])


def test_only_the_language_and_the_pooling_that_are_new_are_computed(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, mexa_scores.Coverage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mexa_scores.measure_coverage(model, corpus.select(["en", "ja"]), poolings=["last"])
    seen = calls(monkeypatch, corpus)
    covered = mexa_scores.measure_coverage(model, corpus.select(["ja", "sw", "en"]))
    one = ("weighted_mean",)
    assert seen == [("en", one), ("ja", one), ("en", BOTH), ("sw", BOTH)]
    for pooling, own in covered.items():
        assert own.scores.languages == ("ja", "sw")
        expected = measured[pooling].scores
        np.testing.assert_array_equal(own.scores.hits, expected.hits[:, [2, 3]])


def test_results_tell_apart_what_a_score_depends_on(
    model: Path, corpus: ParallelCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = corpus.select(["en", "sw"])
    measured = mexa_scores.measure_coverage(model, two)
    monkeypatch.setattr(mexa_scores, "embed_poolings", lambda *_, **__: pytest.fail("again"))
    renamed = make("other name", **two.sentences)
    same(mexa_scores.measure_coverage(model, renamed, "eng")["last"], measured["last"])
    text = two.sentences
    changed = [
        make(**(text | {code: (text[code][0] + " x", *text[code][1:])})) for code in ("en", "sw")
    ]
    other = tiny.save(tmp_path / "another", "llama", positions=120, seed=1)
    for name, corpus_, options in (
        (model, two, {"pivot": "sw"}),
        (model, two, {"poolings": ["mean"]}),
        (model, two, {"max_length": 50}),
        (model, changed[0], {}),
        (model, changed[1], {}),
        (model, two, {"alternatives": True}),
        (other, two, {}),
    ):
        with pytest.raises(pytest.fail.Exception, match="again"):
            mexa_scores.measure_coverage(name, corpus_, **options)
    with settings.settings(dtype="bfloat16"), pytest.raises(pytest.fail.Exception, match="again"):
        mexa_scores.measure_coverage(model, two)


def test_a_cluster_gets_a_few_languages_at_once(
    model: Path,
    corpus: ParallelCorpus,
    measured: dict[str, mexa_scores.Coverage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert mexa_scores._portions("abcde") == ["abcde"]
    monkeypatch.setattr(mexa_scores, "PORTION", 3)
    with settings.settings(scheduler="tcp://nowhere:1"):
        assert mexa_scores._portions("abcde") == ["abc", "de"]
    monkeypatch.setattr(mexa_scores, "_portions", lambda languages: [[x] for x in languages])
    options = {"alternatives": True}
    for pooling, covered in mexa_scores.measure_coverage(model, corpus, **options).items():
        same(covered, measured[pooling])


def test_results_are_apart_by_their_scores() -> None:
    value = {
        "hits": np.eye(2, 10, dtype=bool),
        "only_rival": np.zeros((2, 10)),
        "cut": np.array([0, 1]),
        "cosine": np.array([0.5, np.nan]),
    }
    for change, expected in (
        ({}, 0),
        ({"only_rival": np.ones((2, 10))}, 0),
        ({"hits": np.eye(2, 10, 3, dtype=bool)}, 0),
        ({"hits": np.zeros((2, 10), bool)}, 0.1),
        ({"cosine": np.array([0.55, np.nan])}, 0.05),
        ({"cosine": np.zeros(2)}, np.inf),  # NaN there
        ({"cut": np.array([1, 1])}, 1),
    ):
        assert mexa_scores.coverage_difference(value, value | change) == pytest.approx(expected)
    assert np.isinf(mexa_scores.coverage_difference(value, value | {"RSA": np.zeros(2)}))


def test_measures_that_are_kept_as_rows_of_one_array_are_read() -> None:
    rows = np.arange(22.0).reshape(11, 2)
    kept = mexa_scores.kept_alternatives({"hits": np.zeros((2, 10), bool), "measures": rows})
    assert list(kept) == list(mexa_scores.ALTERNATIVES)
    assert [of.tolist() for of in kept.values()] == rows[[0, 2, 3, 7, 9, 10]].tolist()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "error", "says"),
    [
        (("it",), {}, TextError, "has no text in it; it has de, en, fr, ja, sw"),
        ((), {"poolings": ["last", "first"]}, ValueError, "no pooling 'first': choose mean"),
        ((), {"max_length": 121}, ValueError, r"max_length is 121, but .* takes 120 tokens"),
    ],
)
def test_requests_that_cannot_be_met(
    arguments: tuple, options: dict, error: type, says: str, model: Path, corpus: ParallelCorpus
) -> None:
    with pytest.raises(error, match=says):
        mexa_scores.measure_coverage(model, corpus, *arguments, **options)


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_sentence_that_cannot_be_embedded_is_named(language: str, model: Path) -> None:
    texts = {code: [f"{code} {i}" for i in range(4)] for code in ("de", "en", "fr")}
    texts[language][2] = ""
    with pytest.raises(ValueError, match=f"language '{language}' of 'made': position 2 .*no token"):
        mexa_scores.measure_coverage(model, make(**texts))


def test_a_vector_that_has_no_cosine_is_named(
    model: Path, corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = embed_poolings

    def broken(encoder: loading.Encoder, sentences: tuple, *arguments: object, **options: object):
        states = embed(encoder, sentences, *arguments, **options)
        if sentences == corpus.sentences["ja"]:
            states["last"].states[1, 3] = 0
        return states

    monkeypatch.setattr(mexa_scores, "embed_poolings", broken)
    for alternatives in (False, True):
        with pytest.raises(ValueError, match=r"layer 1: .*ja.*position 3.* zero"):
            mexa_scores.measure_coverage(model, corpus, alternatives=alternatives)


def test_other_text_that_is_too_little(model: Path, corpus: ParallelCorpus) -> None:
    for subject in (model, BagOfSubwords(model)):
        with pytest.raises(TextError, match="has no language to compare with en"):
            mexa_scores.measure_coverage(subject, corpus.select(["en"]))
    three = corpus.select(["en", "sw"]).take(3, 0)
    covered = mexa_scores.measure_coverage(model, three)["last"]
    assert covered.scores.hits.shape == (3, 1, 3)
    with pytest.raises(ValueError, match="two or more sentences are needed"):
        mexa_scores.measure_coverage(model, three.take(1, 0))


# --- controls -------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", mexa_scores.STATES)
def test_a_bag_of_subwords_is_scored_like_a_model(
    space: str, model: Path, corpus: ParallelCorpus
) -> None:
    counts = states.bag_of_subwords(loading.load(model), corpus, max_length=50)
    dense = {code: bag.toarray()[None] for code, bag in counts.items()}
    expected = mexa.scores(alignment.centred(dense) if space == "centred" else dense, "fr")
    bag = BagOfSubwords(model, max_length=50)
    covered = mexa_scores.measure_coverage(bag, corpus, "fr", states=[space], alternatives=True)[
        BAG
    ]
    same_scores(covered.scores, expected)
    assert (covered.model, covered.measures.empty) == (BAG, True)


def test_length_alone_is_scored_like_a_model() -> None:
    """A hit is a sentence whose translation is nearest in length, and it that of no other."""
    texts = {"de": ["a" * 5, "a" * 20, "a" * 80], "en": ["a" * 6, "a" * 19, "a" * 10]}
    (covered,) = mexa_scores.measure_coverage(Length(), make(**texts)).values()
    assert covered.scores.hits[0, 0].tolist() == [True, True, False]


def test_subwords_are_counted_as_the_model_reads_them(model: Path, corpus: ParallelCorpus) -> None:
    tokenizer = loading.load(model).tokenizer
    counted = mexa_scores.mean_subwords(model, corpus)
    assert tuple(counted.index) == corpus.languages
    for language, sentences in corpus.sentences.items():
        lengths = [len(tokenizer(sentence)["input_ids"]) for sentence in sentences]
        assert counted[language] == pytest.approx(np.mean(lengths))


def test_an_encoder_stands_for_its_name(model: Path, corpus: ParallelCorpus, monkeypatch) -> None:
    two = corpus.select(["en", "de"])
    expected = mexa_scores.measure_coverage(model, two)["last"]
    encoder = loading.load(model)
    monkeypatch.setattr(loading.folders, "load_model", pytest.fail)
    found = mexa_scores.measure_coverage(encoder, two)["last"]
    assert (found.model, found.cut) == (expected.model, expected.cut)
    assert np.array_equal(found.scores.mu, expected.scores.mu)
    # and what it has computed, a name finds
    mexa_scores.measure_coverage(encoder, two, poolings=["mean"])
    mexa_scores.measure_coverage(model, two, poolings=["mean"])


def test_special_tokens_count_if_asked_for(model: Path, corpus: ParallelCorpus) -> None:
    two = corpus.select(["en", "de"])
    encoder = loading.load(model)
    states = {}
    for code, sentences in two.sentences.items():
        rows = []
        for sentence in sentences:
            ids = torch.tensor([encoder.tokenizer(sentence)["input_ids"][:120]])
            with torch.no_grad():
                layers = encoder.model(ids, output_hidden_states=True).hidden_states
            weights = torch.arange(1.0, ids.shape[1] + 1)  # <s> is token 1
            rows.append([(weights @ layer[0] / weights.sum()).numpy() for layer in layers])
        states[code] = np.array(rows).transpose(1, 0, 2)
    one, other = (x / np.linalg.norm(x, axis=2, keepdims=True) for x in states.values())
    cosines = (one * other).sum(axis=2).mean(axis=1)

    def found(**options: bool) -> np.ndarray:
        options |= {"poolings": ["weighted_mean"], "alternatives": True}
        table = mexa_scores.measure_coverage(model, two, **options)["weighted_mean"].measures
        return table[table["measure"] == "cosine"]["value"].to_numpy()

    assert found(special_tokens=True) == pytest.approx(cosines, abs=1e-5)
    assert np.abs(found() - cosines).max() > 1e-3
