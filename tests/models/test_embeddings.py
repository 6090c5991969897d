"""Embeddings against a literal oracle: one sentence, one token at a time, no padding."""

import contextlib
import dataclasses
import hashlib
import re
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

import xlx
from tests import tiny
from tests.models.conftest import assert_close, token_budget
from xlx.core import progress, provenance
from xlx.core.store import StoreWarning
from xlx.models import batching, embeddings, loading
from xlx.models.embeddings import POOLINGS, embed, embed_corpus, embed_poolings
from xlx.models.pooling import pool

# Every pooling is tried with every kind of model here.
pytestmark = pytest.mark.filterwarnings("ignore::xlx.models.embeddings.PoolingWarning")

SENTENCES = tiny.SENTENCES


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    with xlx.settings(cache=tmp_path, ledger=tmp_path / "ledger", device="cpu"):
        yield


@pytest.fixture
def encoder(encoders) -> loading.Encoder:
    return encoders["xlm-roberta"]


@dataclasses.dataclass(frozen=True)
class Corpus:
    """What embed_corpus needs of a parallel corpus."""

    sentences: dict[str, tuple[str, ...]]
    name: str = "tiny"

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.sentences)

    def text_hash(self, language: str) -> str:
        return hashlib.sha256("\n".join(self.sentences[language]).encode()).hexdigest()


CORPUS = Corpus(
    {
        "en": ("The weather is fine today.", "Yes", "rain", "The village"),
        "de": ("Das Wetter ist heute schön.", "Yes", "Regen", "Das Dorf"),
        "fr": ("Il fait beau.", "Oui", "The village", "Oui"),
    }
)


@lru_cache
def plain_model(folder: Path) -> tuple:
    """Tokenizer and model as transformers gives them."""
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    return AutoTokenizer.from_pretrained(folder), model


def oracle(folder: Path, sentence: str, pooling: str, special_tokens: bool) -> np.ndarray:
    """(n_layers + 1, dim), token by token, as the definitions read."""
    tokenizer, model = plain_model(folder)
    encoded = tokenizer(sentence, return_special_tokens_mask=True)
    ids = torch.tensor([encoded["input_ids"]])
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            start = torch.tensor([[0]])
            output = model(input_ids=ids, decoder_input_ids=start, output_hidden_states=True)
            layers = output.encoder_hidden_states
        else:
            layers = model(input_ids=ids, output_hidden_states=True).hidden_states
    vectors = []
    for layer in layers:
        tokens = [state.numpy().astype(np.float64) for state in layer[0]]
        if pooling == "cls":
            vectors.append(tokens[0])
            continue
        kept = [
            token
            for token, special in zip(tokens, encoded["special_tokens_mask"], strict=True)
            if special_tokens or not special
        ]
        if pooling == "last":
            vectors.append(kept[-1])
            continue
        total, weights = np.zeros_like(kept[0]), 0.0
        for t, token in enumerate(kept, start=1):
            weight = t if pooling == "weighted_mean" else 1
            total = total + weight * token
            weights += weight
        vectors.append(total / weights)
    return np.stack(vectors)


@pytest.mark.parametrize("name", tiny.KINDS)
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("special_tokens", [False, True])
def test_equals_the_oracle(folders, encoders, name, pooling, special_tokens) -> None:
    if pooling == "cls" and name in ("gpt2", "t5", "llama"):
        pytest.skip("no special token comes first, or it has seen no other")
    sentences = SENTENCES[2:6]
    found = embed(encoders[name], sentences, pooling=pooling, special_tokens=special_tokens)
    assert found.states.dtype == np.float32
    assert found.n_cut == 0
    for i, sentence in enumerate(sentences):
        expected = oracle(folders[name], sentence, pooling, special_tokens)
        assert_close(found.states[:, i], expected)


def test_poolings_and_special_tokens_differ(encoder) -> None:
    results = [
        embed(encoder, SENTENCES, pooling=pooling, special_tokens=special).states
        for pooling in POOLINGS
        for special in (False, True)
        if not (pooling == "cls" and special)
    ]
    for i, one in enumerate(results):
        for other in results[:i]:
            assert np.abs(one - other).max() > 1e-2


def test_cls_does_not_depend_on_special_tokens(encoder) -> None:
    found = [embed(encoder, SENTENCES, pooling="cls", special_tokens=s).states for s in (0, 1)]
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("name", ["xlm-roberta", "gpt2", "llama", "t5"])
@pytest.mark.parametrize("pooling", ["weighted_mean", "last"])
def test_padding_side_of_the_tokenizer_does_not_matter(folders, name, pooling) -> None:
    right, left = (loading.load(folders[name], device="cpu") for _ in range(2))
    left.tokenizer.padding_side = "left"
    found = [embed(encoder, SENTENCES, pooling=pooling).states for encoder in (right, left)]
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@pytest.mark.parametrize("pooling", ["mean", "weighted_mean", "last"])
def test_states_of_a_left_padded_decoder_pool_to_the_same_vectors(encoders, name, pooling) -> None:
    encoder = encoders[name]
    read = encoder.tokenizer(SENTENCES, return_special_tokens_mask=True)
    ids, special = read["input_ids"], read["special_tokens_mask"]
    longest = max(map(len, ids))
    tokens = torch.tensor([[encoder.pad_id] * (longest - len(i)) + i for i in ids])
    real = torch.tensor([[False] * (longest - len(i)) + [True] * len(i) for i in ids])
    counted = torch.tensor([[True] * (longest - len(m)) + m for m in special]).logical_not()
    with torch.no_grad():
        output = encoder.model(
            input_ids=tokens,
            attention_mask=real.long(),
            position_ids=(real.long().cumsum(1) - 1).clamp(min=0),
            output_hidden_states=True,
        )
    expected = [pool(layer, counted, pooling).numpy() for layer in output.hidden_states]
    assert_close(embed(encoder, SENTENCES, pooling=pooling).states, np.stack(expected))


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
        return pool(
            torch.tensor(np.stack(found), dtype=torch.float32),
            torch.tensor(np.stack(masks)),
            pooling,
        )

    assert torch.allclose(padded(True), padded(False), atol=1e-5)


def test_weights_are_the_formula() -> None:
    states = torch.tensor([[[1.0], [10.0], [100.0], [0.0]]])
    counted = torch.tensor([[True, True, True, False]])
    (found,) = pool(states, counted, "weighted_mean")[0]
    assert found == pytest.approx((1 * 1 + 2 * 10 + 3 * 100) / (1 + 2 + 3))
    (found,) = pool(states, counted, "mean")[0]
    assert found == pytest.approx(37)


@pytest.mark.parametrize("budget", [1, 40, 100, 10**6])
def test_order_and_batches_do_not_matter(encoder, budget) -> None:
    expected = embed(encoder, SENTENCES).states
    order = np.random.default_rng(1).permutation(len(SENTENCES))
    with token_budget(budget):
        found = embed(encoder, [SENTENCES[i] for i in order]).states
    assert_close(found, expected[:, order])


def test_equal_strings_share_a_vector_bit_for_bit(encoder) -> None:
    with token_budget(8):
        found = embed(encoder, [SENTENCES[0], SENTENCES[1], SENTENCES[0]])
    assert (found.states[:, 0] == found.states[:, 2]).all()


@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 300))
def test_batches_keep_the_budget_and_lose_no_sentence(lengths, budget) -> None:
    lengths = np.array(lengths, dtype=np.intp)
    batches = batching.batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget
    longest = [lengths[batch].max() for batch in batches]
    assert longest == sorted(longest, reverse=True)


def test_batches_cost_least() -> None:
    lengths = np.array([1, 1, 2, 300, 310, 310, 2, 900])

    def cost(batches) -> int:
        return sum(len(b) * lengths[b].max() + batching.BATCH_COST for b in batches)

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
    assert cost(batching.batches(lengths, 1000)) == least


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
    sentence = "rain " * 200
    found = embed(encoder, [sentence, "rain"])
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
    ("options", "message"),
    [
        ({"pooling": "max"}, "pooling 'max' is not one of mean, weighted_mean, last, cls"),
        ({"max_length": 2}, "no room is left for the sentence"),
    ],
)
def test_options_that_do_not_fit_are_refused(encoder, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        embed(encoder, SENTENCES, **options)


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_cls_needs_a_first_special_token(encoders, name) -> None:
    with pytest.raises(ValueError, match="'cls' needs a tokenizer that puts a special token first"):
        embed(encoders[name], SENTENCES, pooling="cls")


@pytest.mark.parametrize("empty", ["", "   "])
def test_sentence_without_tokens_is_named(encoders, empty) -> None:
    with pytest.raises(ValueError, match=r"^position 2 \(''\): .* makes no token"):
        embed(encoders["xlm-roberta"], ["a", "b", empty.strip(), "c"])
    with pytest.raises(ValueError, match=r"position 0 .* makes no token"):
        embed(encoders["gpt2"], [""], special_tokens=True)
    # with special tokens counted there is something to pool
    assert embed(encoders["xlm-roberta"], [""], special_tokens=True).states.shape == (3, 1, 32)


def test_things_that_are_no_list_of_strings_are_refused(encoder) -> None:
    with pytest.raises(ValueError, match="a single string was given"):
        embed(encoder, "hello")
    with pytest.raises(ValueError, match="sentences, position 1: None is no string"):
        embed(encoder, ["a", None])


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
    with xlx.settings(progress=True):
        embed(encoder, SENTENCES)
    assert (len(SENTENCES), False) in seen


# A corpus, with the cache


def test_corpus_equals_its_languages(encoder, tmp_path) -> None:
    found = embed_corpus(encoder, CORPUS)
    assert found.languages == ("en", "de", "fr")
    assert (found.n_layers, found.n_sentences, found.dim) == (2, 4, 32)
    assert found.cut == {"en": 0, "de": 0, "fr": 0}
    assert (found.model, found.corpus, found.pooling) == (encoder.name, "tiny", "mean")
    for language in CORPUS.languages:
        expected = embed(encoder, CORPUS.sentences[language]).states
        assert_close(found.states[language], expected)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_poolings_of_one_pass_are_those_of_one_pass_each(encoders, name, monkeypatch) -> None:
    poolings = ("weighted_mean", "last", "mean")
    forward = encoders[name].model.forward
    read = []
    monkeypatch.setattr(
        encoders[name].model,
        "forward",
        lambda *_, **given: read.append(len(given["input_ids"])) or forward(**given),
    )
    found = embed_poolings(encoders[name], SENTENCES, poolings)
    assert sum(read) == len(set(SENTENCES))
    assert tuple(found) == poolings
    for pooling, together in found.items():
        alone = embed(encoders[name], SENTENCES, pooling=pooling)
        assert (together.states == alone.states).all()


def test_no_pooling_is_refused(encoder) -> None:
    with pytest.raises(ValueError, match="no pooling is asked for"):
        embed_poolings(encoder, SENTENCES, [])


def test_weights_by_position_are_noted_where_the_model_sees_both_ways(encoders, tmp_path) -> None:
    with pytest.warns(embeddings.PoolingWarning, match="is no causal model"):
        found = embed_corpus(encoders["xlm-roberta"], CORPUS, pooling="weighted_mean")
    assert found.pooling == "weighted_mean"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embed(encoders["llama"], SENTENCES, pooling="weighted_mean")
        embed(encoders["xlm-roberta"], SENTENCES, pooling="last")


def test_equal_strings_anywhere_share_a_vector(encoder, tmp_path) -> None:
    # Other neighbours in the batch move the last digits, so each language alone is not enough.
    states = embed_corpus(encoder, CORPUS).states
    assert (states["en"][:, 1] == states["de"][:, 1]).all()
    assert (states["en"][:, 3] == states["fr"][:, 2]).all()
    assert (states["fr"][:, 1] == states["fr"][:, 3]).all()
    again = embed_corpus(encoder, CORPUS).states
    assert all((again[language] == states[language]).all() for language in states)


@pytest.fixture
def fixed_code(monkeypatch) -> None:
    """Keys name the code, and the tests below change it to count what is computed."""
    monkeypatch.setattr(provenance, "code_hash", lambda _: "fixed")


def count_computed(monkeypatch) -> list[str]:
    """The first sentence of every language that is computed."""
    computed = []
    real = embeddings.embed_sentences

    def counting(plan, sentences, *rest):
        computed.append(sentences[0])
        return real(plan, sentences, *rest)

    monkeypatch.setattr(embeddings, "embed_sentences", counting)
    return computed


@pytest.mark.usefixtures("fixed_code")
def test_stopped_run_goes_on_at_the_next_language(encoder, tmp_path, monkeypatch) -> None:
    real = embeddings.embed_sentences

    def stop(plan, sentences, *rest):
        if sentences[0].startswith("Il"):
            raise KeyboardInterrupt
        return real(plan, sentences, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "embed_sentences", stop)
        with pytest.raises(KeyboardInterrupt):
            embed_corpus(encoder, CORPUS)
    computed = count_computed(monkeypatch)
    embed_corpus(encoder, CORPUS)
    assert computed == ["Il fait beau."]
    computed.clear()
    embed_corpus(encoder, CORPUS)
    assert computed == []


@pytest.mark.usefixtures("fixed_code")
def test_stored_language_is_used_in_another_corpus(encoder, tmp_path, monkeypatch) -> None:
    embed_corpus(encoder, CORPUS)
    computed = count_computed(monkeypatch)
    other = Corpus({"de": CORPUS.sentences["de"], "it": ("Piove.", "Sì", "pioggia", "il paese")})
    embed_corpus(encoder, other)
    assert computed == ["Piove."]


@pytest.mark.parametrize(
    "options",
    [{"pooling": "last"}, {"special_tokens": True}, {"max_length": 12}],
)
@pytest.mark.usefixtures("fixed_code")
def test_options_are_part_of_the_key(encoder, tmp_path, monkeypatch, options) -> None:
    embed_corpus(encoder, CORPUS)
    computed = count_computed(monkeypatch)
    embed_corpus(encoder, CORPUS, **options)
    assert len(computed) == 3


@pytest.mark.parametrize("change", [{"fingerprint": "other"}, {"dtype": torch.bfloat16}])
@pytest.mark.usefixtures("fixed_code")
def test_model_and_precision_are_part_of_the_key(encoder, monkeypatch, change) -> None:
    embed_corpus(encoder, CORPUS)
    computed = count_computed(monkeypatch)
    embed_corpus(dataclasses.replace(encoder, **change), CORPUS)
    assert len(computed) == 3


def test_what_decides_vectors_is_said_without_loading_the_model(folders, monkeypatch) -> None:
    folder, other = folders["xlm-roberta"], folders["gpt2"]
    fingerprint = loading.load(folder).fingerprint
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", None)
    about = embeddings.corpus_about(folder, CORPUS)
    assert about == {
        "model": fingerprint,
        "pooling": "mean",
        "special_tokens": False,
        "max_length": None,
        "dtype": "float32",
        "texts": [[code, CORPUS.text_hash(code)] for code in ("en", "de", "fr")],
    }
    others = [
        embeddings.corpus_about(other, CORPUS),
        embeddings.corpus_about(folder, Corpus(CORPUS.sentences | {"en": tuple("abcd")})),
        embeddings.corpus_about(folder, Corpus({c: CORPUS.sentences[c] for c in ("en", "fr")})),
        embeddings.corpus_about(folder, CORPUS, pooling="cls"),
        embeddings.corpus_about(folder, CORPUS, special_tokens=True),
        embeddings.corpus_about(folder, CORPUS, max_length=20),
    ]
    with xlx.settings(dtype="bfloat16"):
        others.append(embeddings.corpus_about(folder, CORPUS))
    with xlx.settings(device="cuda"):
        assert embeddings.corpus_about(folder, CORPUS) == about
    assert len({str(each) for each in [about, *others]}) == len(others) + 1
    with pytest.raises(ValueError, match="is not one of mean"):
        embeddings.states_about(folder, pooling="max")


@pytest.mark.usefixtures("fixed_code")
def test_damaged_file_is_computed_again(encoder, tmp_path, monkeypatch) -> None:
    expected = embed_corpus(encoder, CORPUS)
    path = next(tmp_path.rglob("*.arrow"))
    path.write_bytes(path.read_bytes()[:-5])
    computed = count_computed(monkeypatch)
    with pytest.warns(StoreWarning):
        found = embed_corpus(encoder, CORPUS)
    assert len(computed) == 1
    for language in CORPUS.languages:
        assert_close(found.states[language], expected.states[language])


def test_language_with_an_empty_sentence_is_named(encoder, tmp_path) -> None:
    corpus = Corpus(CORPUS.sentences | {"de": ("Ja", "", "Regen", "Dorf")})
    with pytest.raises(ValueError, match=r"^language 'de' of 'tiny', position 1 .*drop"):
        embed_corpus(encoder, corpus)


def states(**changes: np.ndarray) -> embeddings.CorpusStates:
    full = {code: np.ones((3, 4, 5), dtype=np.float32) for code in ("en", "de")} | changes
    return embeddings.CorpusStates(full, dict.fromkeys(full, 0), "m", "c", "mean")


def spoiled(value: float) -> np.ndarray:
    array = np.ones((3, 4, 5), dtype=np.float32)
    array[2, 1] = value
    return array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"de": spoiled(0)}, "'m' on 'c', language 'de', position 1, layer 2: the vector is zero"),
        ({"de": spoiled(np.nan)}, "language 'de', position 1, layer 2: the vector holds NaN"),
        ({"en": spoiled(-np.inf)}, "language 'en', position 1, layer 2: the vector holds NaN or"),
    ],
)
def test_check_names_what_has_no_cosine(change, message) -> None:
    good = states()
    assert good.check() is good
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        states(**change).check()
    assert "\n" not in str(error.value)


def test_largest_finite_numbers_pass_the_check() -> None:
    states(en=np.full((3, 4, 5), np.finfo(np.float32).max, dtype=np.float32)).check()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", tiny.KINDS)
def test_cuda_equals_cpu(folders, encoders, name) -> None:
    found = embed(loading.load(folders[name], device="cuda"), SENTENCES).states
    assert_close(found, embed(encoders[name], SENTENCES).states, tolerance=1e-3)


@pytest.mark.parametrize("special_tokens", [False, True])
def test_bag_of_subwords_counts_what_the_model_reads(folders, encoder, special_tokens) -> None:
    bags = embeddings.bag_of_subwords(encoder, CORPUS, special_tokens=special_tokens, max_length=6)
    tokenizer = AutoTokenizer.from_pretrained(folders["xlm-roberta"])
    for language, sentences in CORPUS.sentences.items():
        assert bags[language].shape == (len(sentences), len(tokenizer))
        for row, sentence in enumerate(sentences):
            ids = tokenizer(sentence, truncation=True, max_length=6)["input_ids"]
            kept = ids if special_tokens else ids[1:-1]
            counts = np.bincount(kept, minlength=len(tokenizer))
            np.testing.assert_array_equal(bags[language][[row]].toarray()[0], counts)
