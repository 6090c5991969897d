"""Embeddings against a literal oracle: one sentence, one token at a time, no padding."""

import contextlib
import dataclasses
import re
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from tests import tiny
from tests.models.conftest import assert_close, token_budget
from xlx.results import progress, provenance
from xlx.results import settings as settings_module
from xlx.results.settings import current
from xlx.results.store import StoreWarning
from xlx.subjects import loading
from xlx.subjects import states as states_module
from xlx.subjects.states import (
    BATCH_COST,
    POOLINGS,
    CorpusStates,
    PoolingWarning,
    bag_of_subwords,
    batches,
    corpus_about,
    embed,
    embed_corpus,
    embed_poolings,
    pool,
    pooled_states,
    states_about,
)
from xlx.text.parallel import ParallelCorpus

# Every pooling is tried with every kind of model here.
pytestmark = pytest.mark.filterwarnings("ignore::xlx.subjects.states.PoolingWarning")

SENTENCES = tiny.SENTENCES


@pytest.fixture
def encoder(encoders) -> loading.Encoder:
    return encoders["xlm-roberta"]


SIDES = {
    "en": ("The weather is fine today.", "Yes", "rain", "The village"),
    "de": ("Das Wetter ist heute schön.", "Yes", "Regen", "Das Dorf"),
    "fr": ("Il fait beau.", "Oui", "The village", "Oui"),
}


def made(sentences: dict[str, tuple[str, ...]]) -> ParallelCorpus:
    return ParallelCorpus("tiny", sentences, ("1", "2", "3", "4"), ("",) * 4, "", "")


CORPUS = made(SIDES)


@lru_cache
def plain(folder: Path) -> tuple:
    """Tokenizer and model as transformers gives them."""
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    return AutoTokenizer.from_pretrained(folder), model


@lru_cache
def token_states(folder: Path, sentence: str) -> tuple[np.ndarray, list[int]]:
    """(n_layers + 1, n_tokens, dim), and which tokens are special."""
    tokenizer, model = plain(folder)
    encoded = tokenizer(sentence, return_special_tokens_mask=True)
    ids = torch.tensor([encoded["input_ids"]])
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            start = torch.tensor([[0]])
            output = model(input_ids=ids, decoder_input_ids=start, output_hidden_states=True)
            layers = output.encoder_hidden_states
        else:
            layers = model(input_ids=ids, output_hidden_states=True).hidden_states
    states = np.stack([layer[0].numpy().astype(np.float64) for layer in layers])
    return states, encoded["special_tokens_mask"]


def oracle(folder: Path, sentence: str, pooling: str) -> np.ndarray:
    """(n_layers + 1, dim), token by token, as the definitions read."""
    states, special = token_states(folder, sentence)
    if pooling == "cls":
        return states[:, 0]
    kept = [states[:, t] for t, added in enumerate(special) if not added]
    if pooling == "last":
        return kept[-1]
    total, weights = np.zeros_like(kept[0]), 0.0
    for t, token in enumerate(kept, start=1):
        weight = t if pooling == "weighted_mean" else 1
        total = total + weight * token
        weights += weight
    return total / weights


@pytest.mark.parametrize("name", tiny.KINDS)
def test_equals_the_oracle(folders, encoders, name, monkeypatch) -> None:
    # in T5 no special token is first, in a decoder it has seen no other
    has_cls = tiny.KINDS[name] != "decoder" and name != "t5"
    poolings, sentences = POOLINGS if has_cls else POOLINGS[:3], SENTENCES[2:6]
    forward, read = encoders[name].model.forward, []
    monkeypatch.setattr(
        encoders[name].model, "forward",
        lambda *_, **given: read.append(len(given["input_ids"])) or forward(**given),
    )  # fmt: skip
    found = embed_poolings(encoders[name], sentences, poolings)
    assert sum(read) == len(sentences)
    assert tuple(found) == poolings
    for pooling, together in found.items():
        assert together.states.dtype == np.float32
        assert together.n_cut == 0
        for i, sentence in enumerate(sentences):
            assert_close(together.states[:, i], oracle(folders[name], sentence, pooling))
        alone = embed(encoders[name], sentences, pooling=pooling)
        assert (together.states == alone.states).all()


@pytest.mark.parametrize("name", ["xlm-roberta", "gpt2", "llama", "t5"])
def test_padding_side_of_the_tokenizer_does_not_matter(folders, encoders, name) -> None:
    left = loading.load(folders[name], device="cpu")
    left.tokenizer.padding_side = "left"
    poolings = ("weighted_mean", "last")
    expected, found = (embed_poolings(x, SENTENCES, poolings) for x in (encoders[name], left))
    assert all((found[x].states == expected[x].states).all() for x in poolings)


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=5),
    st.sampled_from(POOLINGS),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_pooling_ignores_where_padding_is(rows, pooling, before, after) -> None:
    rows = [row if any(row) else [*row, True] for row in rows]
    longest = max(map(len, rows))
    generator = np.random.default_rng(len(rows))
    states = [generator.standard_normal((len(row), 3)) for row in rows]

    def padded(left: bool) -> torch.Tensor:
        found, masks = [], []
        for row, state in zip(rows, states, strict=True):
            gap = longest - len(row)
            space = (before + gap, after) if left else (before, after + gap)
            # What stands at padding must not matter, as long as it is a number.
            found.append(np.pad(state, (space, (0, 0)), constant_values=77.0))
            masks.append(np.pad(np.array(row), space))
        together = torch.tensor(np.stack(found), dtype=torch.float32)
        return pool(together, torch.tensor(np.stack(masks)), pooling)

    assert torch.allclose(padded(True), padded(False), atol=1e-5)


def test_weights_are_the_formula() -> None:
    states = torch.tensor([[[1.0], [10.0], [100.0], [0.0]]])
    counted = torch.tensor([[True, True, True, False]])
    (found,) = pool(states, counted, "weighted_mean")[0]
    assert found == pytest.approx((1 * 1 + 2 * 10 + 3 * 100) / (1 + 2 + 3))
    (found,) = pool(states, counted, "mean")[0]
    assert found == pytest.approx(37)


@pytest.mark.parametrize("budget", [1, 40, 10**6])
def test_order_and_batches_do_not_matter(encoder, budget) -> None:
    expected = embed(encoder, SENTENCES).states
    order = [*np.random.default_rng(1).permutation(len(SENTENCES)), 0]
    with token_budget(budget):
        found = embed(encoder, [SENTENCES[i] for i in order]).states
    assert_close(found, expected[:, order])
    # equal strings share a vector bit for bit
    assert (found[:, -1] == found[:, order.index(0)]).all()


@settings(max_examples=50)
@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 300))
def test_batches_keep_the_budget_and_lose_no_sentence(lengths, budget) -> None:
    lengths = np.array(lengths, dtype=np.intp)
    batches = states_module.batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget
    longest = [lengths[batch].max() for batch in batches]
    assert longest == sorted(longest, reverse=True)


def test_batches_cost_least() -> None:
    lengths = np.array([1, 1, 2, 300, 310, 310, 2, 900])

    def cost(batches) -> int:
        return sum(len(b) * lengths[b].max() + BATCH_COST for b in batches)

    def splits(order):
        """All ways to cut a list into runs."""
        if len(order) == 0:
            yield []
        for i in range(1, len(order) + 1):
            for rest in splits(order[i:]):
                yield [order[:i], *rest]

    least = min(
        cost(split)
        for split in splits(np.argsort(lengths, kind="stable"))
        if all(len(b) * lengths[b].max() <= 1000 for b in split)
    )
    assert cost(batches(lengths, 1000)) == least


@pytest.mark.parametrize("name", ["xlm-roberta", "llama", "t5"])
def test_cut_sentences_are_counted_and_cut(encoders, name) -> None:
    encoder = encoders[name]
    sentences = [*SENTENCES, SENTENCES[1]]
    lengths = [len(encoder.tokenizer(s)["input_ids"]) for s in sentences]
    limit = 10
    found = embed(encoder, sentences, max_length=limit)
    assert found.n_cut == sum(length > limit for length in lengths) > 2
    n_special = encoder.tokenizer.num_special_tokens_to_add()
    # a long sentence is its first tokens, and keeps its special ones
    text = encoder.tokenizer(SENTENCES[1], add_special_tokens=False)["input_ids"]
    front = text[: limit - n_special]
    ids = encoder.tokenizer(SENTENCES[1], truncation=True, max_length=limit)["input_ids"]
    assert len(ids) == limit
    assert [i for i in ids if i not in (0, 2)] == front
    with torch.no_grad():
        states = encoder.model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    kept = torch.tensor([[i not in (0, 2) for i in ids]])
    expected = np.stack([pool(layer, kept, "mean")[0].numpy() for layer in states])
    assert_close(found.states[:, 1], expected)


@pytest.mark.parametrize("name", tiny.KINDS)
def test_longest_possible_sentence_goes_through(encoders, name) -> None:
    encoder = encoders[name]
    found = embed(encoder, ["rain " * 200, "rain"])
    assert found.n_cut == (0 if name == "t5" else 1)
    assert np.isfinite(found.states).all()
    if name != "t5":
        assert encoder.max_length == 64
        with pytest.raises(ValueError, match=r"max_length is 65, but .* takes 64 tokens"):
            embed(encoder, ["rain"], max_length=65)


def test_no_sentences_give_no_vectors(encoder) -> None:
    found = embed(encoder, [])
    assert found.states.shape == (3, 0, 32)
    assert found.n_cut == 0


@pytest.mark.parametrize(
    ("name", "sentences", "options", "message"),
    [
        ("bert", "a", {"pooling": "max"}, "pooling 'max' is not one of mean, weighted_mean"),
        ("bert", "a", {"max_length": 2}, "no room is left for the sentence"),
        ("gpt2", "a", {"pooling": "cls"}, "'cls' needs a tokenizer that puts a special token"),
        ("t5", "a", {"pooling": "cls"}, "'cls' needs a tokenizer that puts a special token"),
        ("bert", ["a", "b", "", "c"], {}, r"^position 2 \(''\): .* makes no token"),
        ("gpt2", [""], {}, "position 0 .* makes no token"),
        ("bert", "hello", None, "a single string was given"),
        ("bert", ["a", None], {}, "sentences, position 1: None is no string"),
    ],
)
def test_what_cannot_be_embedded_is_named(encoders, name, sentences, options, message) -> None:
    sentences = sentences if options is None or isinstance(sentences, list) else [sentences]
    with pytest.raises(ValueError, match=message):
        embed(encoders[name], sentences, **(options or {}))
    with pytest.raises(ValueError, match="no pooling is asked for"):
        embed_poolings(encoders[name], SENTENCES, [])


def test_tokenizer_of_another_model_is_seen(encoders) -> None:
    small = dataclasses.replace(encoders["llama"], tokenizer=tiny.tokenizer("bos", size=600))
    assert len(small.tokenizer) > small.vocabulary_size
    word = max(small.tokenizer.get_vocab(), key=small.tokenizer.get_vocab().get)
    with pytest.raises(ValueError, match="they do not belong together"):
        embed(small, [word.replace("▁", " ")])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_named(folders, value) -> None:
    encoder = loading.load(folders["xlm-roberta"], device="cpu")
    encoder.model.encoder.layer[1].output.dense.bias[3] = value
    with pytest.raises(ValueError, match=r"position 0 .*layer 2: the vector holds NaN or infinity"):
        embed(encoder, SENTENCES)
    with pytest.raises(ValueError, match=r"language 'en' of 'tiny', position 0"):
        embed_corpus(encoder, CORPUS)


@pytest.mark.parametrize("name", tiny.KINDS)
def test_bfloat16_is_close(folders, encoders, name) -> None:
    encoder = loading.load(folders[name], device="cpu", dtype="bfloat16")
    found = embed(encoder, SENTENCES).states
    expected = embed(encoders[name], SENTENCES).states
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() / np.abs(expected).max() < 0.1
    assert np.abs(found - expected).max() > 0


def test_progress_counts_sentences(encoder, monkeypatch) -> None:
    seen = []

    class Bar(contextlib.nullcontext):
        def __init__(self, *_, total, disable, **__):
            super().__init__(self)
            seen.append((total, disable))

        def update(self, count):
            seen.append(count)

    monkeypatch.setattr(progress, "tqdm", Bar)
    with token_budget(60):
        embed(encoder, [*SENTENCES, SENTENCES[0]])
    assert seen[0] == (len(SENTENCES) + 1, True)
    assert sum(seen[1:]) == len(SENTENCES) + 1
    with settings_module.settings(progress=True):
        embed(encoder, SENTENCES)
    assert (len(SENTENCES), False) in seen


def test_weights_by_position_are_noted_where_the_model_sees_both_ways(encoders) -> None:
    with pytest.warns(PoolingWarning, match="is no causal model"):
        found = embed_corpus(encoders["xlm-roberta"], CORPUS, pooling="weighted_mean")
    assert found.pooling == "weighted_mean"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embed(encoders["llama"], SENTENCES, pooling="weighted_mean")
        embed(encoders["xlm-roberta"], SENTENCES, pooling="last")


# A corpus, with the cache


def test_corpus_equals_its_languages(encoder) -> None:
    found = embed_corpus(encoder, CORPUS)
    assert found.languages == ("en", "de", "fr")
    assert found.n_layers == 2
    assert found.cut == {"en": 0, "de": 0, "fr": 0}
    assert (found.model, found.corpus, found.pooling) == (encoder.name, "tiny", "mean")
    for language in CORPUS.languages:
        expected = embed(encoder, CORPUS.sentences[language]).states
        assert_close(found.states[language], expected)
    # Other neighbours in the batch move the last digits, so each language alone is not enough.
    states = found.states
    assert (states["en"][:, 1] == states["de"][:, 1]).all()
    assert (states["en"][:, 3] == states["fr"][:, 2]).all()
    assert (states["fr"][:, 1] == states["fr"][:, 3]).all()
    again = embed_corpus(encoder, CORPUS).states
    assert all((again[language] == states[language]).all() for language in states)


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """The first sentence of every language that is computed; with "stop" in it, none is."""
    # Keys name the code, and a stand-in is other code.
    monkeypatch.setattr(provenance, "code_hash", lambda _: "fixed")
    first, real = [], pooled_states

    def counting(encoder, poolings, limit, sides, *rest):
        if "stop" in first and sides[0][0].startswith("Il"):
            raise KeyboardInterrupt
        first.append(sides[0][0])
        return real(encoder, poolings, limit, sides, *rest)

    monkeypatch.setattr(states_module, "pooled_states", counting)
    return first


def test_stopped_run_goes_on_at_the_next_language(encoder, computed) -> None:
    computed.append("stop")
    with pytest.raises(KeyboardInterrupt):
        embed_corpus(encoder, CORPUS)
    computed.clear()
    embed_corpus(encoder, CORPUS)
    assert computed == ["Il fait beau."]
    embed_corpus(encoder, CORPUS)
    other = made({"de": SIDES["de"], "it": ("Piove.", "Sì", "pioggia", "il paese")})
    embed_corpus(encoder, other)
    assert computed == ["Il fait beau.", "Piove."]


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"pooling": "last"}, {}), ({"max_length": 12}, {}), ({}, {"fingerprint": "other"}),
        ({}, {"dtype": torch.bfloat16}),
    ],
)  # fmt: skip
def test_options_model_and_precision_are_part_of_the_key(
    encoder, computed, options, change
) -> None:
    embed_corpus(encoder, CORPUS)
    computed.clear()
    embed_corpus(dataclasses.replace(encoder, **change), CORPUS, **options)
    assert len(computed) == 3


def test_what_decides_vectors_is_said_without_loading_the_model(folders, monkeypatch) -> None:
    folder, other = folders["xlm-roberta"], folders["gpt2"]
    fingerprint = loading.load(folder).fingerprint
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", None)
    about = corpus_about(folder, CORPUS)
    assert about == {
        "model": fingerprint,
        "pooling": "mean",
        "special_tokens": False,
        "max_length": None,
        "dtype": "float32",
        "texts": [[code, CORPUS.text_hash(code)] for code in ("en", "de", "fr")],
    }
    others = [
        corpus_about(other, CORPUS),
        corpus_about(folder, made(SIDES | {"en": tuple("abcd")})),
        corpus_about(folder, made({c: SIDES[c] for c in ("en", "fr")})),
        corpus_about(folder, CORPUS, pooling="cls"),
        corpus_about(folder, CORPUS, max_length=20),
    ]
    with settings_module.settings(dtype="bfloat16"):
        others.append(corpus_about(folder, CORPUS))
    with settings_module.settings(device="cuda"):
        assert corpus_about(folder, CORPUS) == about
    assert len({str(each) for each in [about, *others]}) == len(others) + 1
    with pytest.raises(ValueError, match="is not one of mean"):
        states_about(folder, pooling="max")


def test_damaged_file_is_computed_again(encoder, computed) -> None:
    expected = embed_corpus(encoder, CORPUS)
    path = next(current().cache.rglob("*.arrow"))
    path.write_bytes(path.read_bytes()[:-5])
    computed.clear()
    with pytest.warns(StoreWarning):
        found = embed_corpus(encoder, CORPUS)
    assert len(computed) == 1
    for language in CORPUS.languages:
        assert_close(found.states[language], expected.states[language])


def test_language_with_an_empty_sentence_is_named(encoder) -> None:
    corpus = made(SIDES | {"de": ("Ja", "", "Regen", "Dorf")})
    with pytest.raises(ValueError, match=r"^language 'de' of 'tiny', position 1 .*drop"):
        embed_corpus(encoder, corpus)


def states(**changes: float) -> CorpusStates:
    """Ones, but for one vector of some languages."""
    full = {code: np.ones((3, 4, 5), dtype=np.float32) for code in ("en", "de")}
    for code, value in changes.items():
        full[code][2, 1] = value
    return CorpusStates(full, dict.fromkeys(full, 0), "m", "c", "mean")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"de": 0}, "'m' on 'c', language 'de', position 1, layer 2: the vector is zero"),
        ({"de": np.nan}, "language 'de', position 1, layer 2: the vector holds NaN"),
        ({"en": -np.inf}, "language 'en', position 1, layer 2: the vector holds NaN or"),
    ],
)
def test_check_names_what_has_no_cosine(change, message) -> None:
    good = states(en=np.finfo(np.float32).max)
    assert good.check() is good
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        states(**change).check()
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", tiny.KINDS)
def test_cuda_equals_cpu(folders, encoders, name) -> None:
    found = embed(loading.load(folders[name], device="cuda"), SENTENCES).states
    assert_close(found, embed(encoders[name], SENTENCES).states, tolerance=1e-3)


def test_bag_of_subwords_counts_what_the_model_reads(folders, encoder) -> None:
    bags = bag_of_subwords(encoder, CORPUS, max_length=6)
    tokenizer = AutoTokenizer.from_pretrained(folders["xlm-roberta"])
    for language, sentences in CORPUS.sentences.items():
        assert bags[language].shape == (len(sentences), len(tokenizer))
        for row, sentence in enumerate(sentences):
            ids = tokenizer(sentence, truncation=True, max_length=6)["input_ids"]
            counts = np.bincount(ids[1:-1], minlength=len(tokenizer))
            np.testing.assert_array_equal(bags[language][[row]].toarray()[0], counts)
