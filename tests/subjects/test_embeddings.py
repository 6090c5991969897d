"""Embeddings: what is cut, refused and kept; `test_battery` has them against literal ones."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from tests import tiny
from tests.subjects.conftest import assert_close
from xlx.experiment.scoring import Subject
from xlx.results import provenance
from xlx.results import settings as settings_module
from xlx.subjects import loading
from xlx.subjects import states as states_module
from xlx.subjects.states import (
    BATCH_COST,
    SentenceStates,
    bag_of_subwords,
    batches,
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


def test_what_cannot_be_embedded_is_named(encoders) -> None:
    with pytest.raises(ValueError, match=r"^position 2 \(''\): .* makes no token"):
        embed(encoders["bert"], ["a", "b", "", "c"])
    with pytest.raises(ValueError, match="no pooling None"):
        embed_poolings(encoders["bert"], SENTENCES, [])


def test_states_that_are_pairs_are_refused(encoders, monkeypatch) -> None:
    pair = torch.ones(1, 2, encoders["bert"].dim), torch.ones(1)  # as PEGASUS-X has them
    monkeypatch.setattr(states_module, "token_states", lambda encoder, rows: (pair,))
    with pytest.raises(ValueError, match=r"shapes \[\(\)\], where .* it is no Transformer"):
        states_module.hidden_states(encoders["bert"], [{"input_ids": [1, 2]}])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_named(folders, value) -> None:
    encoder = loading.load(folders["xlm-roberta"], device="cpu")
    encoder.model.encoder.layer[1].output.dense.bias[3] = value
    with pytest.raises(ValueError, match=r"position 0 .*layer 2: the vector holds NaN or infinity"):
        embed(encoder, SENTENCES)
    with pytest.raises(ValueError, match=r"language 'en' of 'tiny', position 0"):
        embed_corpus(encoder, CORPUS)


# A corpus, with the cache


def test_corpus_equals_its_languages(encoder) -> None:
    found = embed_corpus(encoder, CORPUS)
    assert {code: len(x) for code, x in found.states.items()} == {"en": 3, "de": 3, "fr": 3}
    assert found.cut == {"en": 0, "de": 0, "fr": 0}
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


def test_what_decides_vectors_is_said_without_loading_the_model(folders, monkeypatch) -> None:
    folder, other = folders["xlm-roberta"], folders["gpt2"]
    fingerprint = loading.load(folder).fingerprint
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", None)
    about = Subject(folder).about(CORPUS)
    assert about == {
        "model": fingerprint,
        "pooling": "mean",
        "special_tokens": False,
        "max_length": None,
        "dtype": "float32",
        "texts": [[code, CORPUS.text_hash(code)] for code in ("en", "de", "fr")],
    }
    others = [
        Subject(other).about(CORPUS),
        Subject(folder).about(made(SIDES | {"en": tuple("abcd")})),
        Subject(folder).about(made({c: SIDES[c] for c in ("en", "fr")})),
        Subject(folder, {"pooling": "cls"}).about(CORPUS),
        Subject(folder, {"max_length": 20}).about(CORPUS),
    ]
    with settings_module.settings(dtype="bfloat16"):
        others.append(Subject(folder).about(CORPUS))
    with settings_module.settings(device="cuda"):
        assert Subject(folder).about(CORPUS) == about
    assert len({str(each) for each in [about, *others]}) == len(others) + 1
    with pytest.raises(ValueError, match="no pooling 'max'"):
        states_about(folder, pooling="max")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"de": 0}, " on 'tiny', language 'de', position 2, layer 2: the vector is zero"),
        ({"en": -np.inf}, "language 'en', position 2, layer 2: the vector holds NaN or"),
    ],
)
def test_what_has_no_cosine_is_named(encoder, monkeypatch, change, message) -> None:
    full = {code: np.ones((3, 4, 32), dtype=np.float32) for code in ("en", "de")}
    for code, value in change.items():
        full[code][2, 2] = value
    kept = {code: SentenceStates(vectors, 0, 0.0) for code, vectors in full.items()}
    monkeypatch.setattr(states_module, "kept_by_language", lambda *_: kept.items())
    with pytest.raises(ValueError, match=message) as error:
        embed_corpus(encoder, made({code: SIDES[code] for code in full}))
    assert "\n" not in str(error.value)


def test_bag_of_subwords_counts_what_the_model_reads(folders, encoder) -> None:
    bags = bag_of_subwords(encoder, CORPUS, max_length=6)
    tokenizer = AutoTokenizer.from_pretrained(folders["xlm-roberta"])
    for language, sentences in CORPUS.sentences.items():
        assert bags[language].shape == (len(sentences), len(tokenizer))
        for row, sentence in enumerate(sentences):
            ids = tokenizer(sentence, truncation=True, max_length=6)["input_ids"]
            counts = np.bincount(ids[1:-1], minlength=len(tokenizer))
            np.testing.assert_array_equal(bags[language][[row]].toarray()[0], counts)
