"""Words and pairs against a literal oracle: one sentence at a time, each word cut by itself."""

import dataclasses
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModel, ByT5Tokenizer, LlamaTokenizer, PreTrainedTokenizerFast

from tests import tiny, toy
from tests.subjects.conftest import assert_close, token_budget
from xlx.subjects import words
from xlx.subjects.loading import Encoder, load
from xlx.subjects.states import embed
from xlx.subjects.words import WORD_SUBWORDS, embed_pairs, embed_words

SENTENCES = (
    ("The", "weather", "is", "fine", ",", "or", "so", "they", "say", "."),
    ("Yes",),
    ("天気", "が", "いい", "。"),
    ("Il", "fait", "10 000", "l'eau", "beau"),
    ("Das", "Wetter", "ist", "heute", "schön", ",", "und", "morgen", "soll", "es", "regnen"),
    ("Yes", "Yes", "rain"),
)
FIRST = ("The weather is fine today.", "Yes", "Il fait beau.", "天気がいい。")
SECOND = ("It rains.", "Das Wetter ist heute schön, und morgen?", "Il fait beau.", "Yes")
MARKS = {"▁", "Ġ", " "}


# Tokenizers of every kind that can be made here; none knows more than the 384 ids of tiny models


def characters() -> list[str]:
    return sorted(set("".join(tiny.SENTENCES)) - {" "})


def byte_level() -> Tokenizer:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    raw.train_from_iterator(tiny.SENTENCES, trainer)
    return raw


def bpe_vocabulary() -> dict[str, int]:
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *(f"<0x{b:02X}>" for b in range(256)), "▁"]
    return {piece: i for i, piece in enumerate(dict.fromkeys([*pieces, *characters()]))}


@lru_cache
def tokenizer(name: str):
    """By name; "family" is what `family.vocabulary` trains."""
    text = {"en": list(tiny.SENTENCES) * 5}
    match name:
        case "tiny":
            return tiny.tokenizer()
        case "wordpiece":
            return PreTrainedTokenizerFast(
                tokenizer_object=toy.word_pieces(text),
                **{"cls_token": "[CLS]", "pad_token": "[PAD]", "sep_token": "[SEP]"},
                unk_token="[UNK]",
                model_input_names=["input_ids", "token_type_ids", "attention_mask"],
            )
        case "llama":
            return LlamaTokenizer(vocab=bpe_vocabulary(), merges=[])
        case "byte-level":
            return PreTrainedTokenizerFast(tokenizer_object=byte_level())
        case "bytes":  # in Python
            return ByT5Tokenizer()
    raise ValueError(name)


# name → (architecture, ids before a sentence, ids behind it, the words need their spaces)
TOKENIZERS = {
    "tiny": ("xlm-roberta", [0], [2], False),
    "wordpiece": ("bert", [0], [2], False),
    "llama": ("llama", [], [], False),
    "byte-level": ("gpt2", [], [], True),
    "bytes": ("t5", [], [1], True),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    names = ("xlm-roberta", "bert", "gpt2", "llama", "t5")
    # 128 positions: characters and bytes make long sentences
    return {name: tiny.save(root / name, name, positions=128) for name in names}


@pytest.fixture(scope="module")
def plain(folders) -> dict[str, torch.nn.Module]:
    """Models as transformers gives them."""
    found = {}
    for name, folder in folders.items():
        model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        found[name] = model.get_encoder() if model.config.is_encoder_decoder else model
    return found


@pytest.fixture(scope="module")
def encoders(folders) -> dict[str, Encoder]:
    """By the name of the tokenizer."""
    loaded = {name: load(folder, device="cpu") for name, folder in folders.items()}
    return {
        name: dataclasses.replace(loaded[architecture], tokenizer=tokenizer(name))
        for name, (architecture, *_) in TOKENIZERS.items()
    }


@pytest.fixture(scope="module")
def encoder(encoders) -> Encoder:
    return encoders["tiny"]


def subwords(name: str, sentence: tuple[str, ...]) -> list[list[int]]:
    """The ids of every word, each cut by itself."""
    spaces = TOKENIZERS[name][3]
    return [
        tokenizer(name)(" " + w if spaces and j else w, add_special_tokens=False)["input_ids"]
        for j, w in enumerate(sentence)
    ]


@lru_cache
def token_states(
    model: torch.nn.Module, ids: tuple[int, ...], types: tuple[int, ...] | None = None
) -> np.ndarray:
    """(n_layers + 1, n_tokens, dim), of one sentence alone."""
    told = {} if types is None else {"token_type_ids": torch.tensor([types])}
    with torch.no_grad():
        output = model(torch.tensor([ids]), output_hidden_states=True, **told)
    return np.stack([layer[0].numpy() for layer in output.hidden_states]).astype(np.float64)


def oracle(
    name: str, model: torch.nn.Module, sentence: tuple[str, ...], subword: str, limit: int = 999
) -> np.ndarray:
    """(n_layers + 1, n_words, dim): the words that are whole within `limit` tokens.

    Every word of the sentence has a subword.
    """
    _, before, after, _ = TOKENIZERS[name]
    ids, spans = list(before), []
    for pieces in subwords(name, sentence):
        if len(ids) + len(pieces) + len(after) <= limit:
            spans.append(range(len(ids), len(ids) + len(pieces)))
        ids += pieces
    ids = ids[: limit - len(after)] + after
    states = token_states(model, tuple(ids))
    vectors = []
    for span in spans:
        if subword == "mean":
            vectors.append(sum(states[:, t] for t in span) / len(span))
            continue
        chosen = span[0]
        for t in span:
            if tokenizer(name).convert_ids_to_tokens(ids[t]) not in MARKS:
                chosen = t
                break
        vectors.append(states[:, chosen])
    return np.stack(vectors, axis=1)


def of_sentence(found: words.WordStates, i: int) -> np.ndarray:
    return found.states[:, found.sentence == i]


# Words


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_equal_the_oracle(encoders, plain, name) -> None:
    places = [(i, j) for i, sentence in enumerate(SENTENCES) for j in range(len(sentence))]
    model = plain[TOKENIZERS[name][0]]
    for subword in WORD_SUBWORDS:
        with token_budget(60):
            found = embed_words(encoders[name], SENTENCES, subword=subword)
        assert found.states.dtype == np.float32
        assert (found.n_cut, found.n_empty) == (0, 0)
        assert list(zip(found.sentence, found.word, strict=True)) == places
        for i, sentence in enumerate(SENTENCES):
            assert_close(of_sentence(found, i), oracle(name, model, sentence, subword))
    # the model reads the subwords of the text
    sentences = [("The", "weather", "is", "fine", "today", "."), ("Yes",), ("Il", "fait")]
    pieces = words._pieces(encoders[name], sentences, "first", None)
    assert [piece.ids for piece in pieces] == [
        tokenizer(name)(" ".join(sentence))["input_ids"] for sentence in sentences
    ]


@pytest.mark.parametrize("name", ["tiny", "wordpiece", "byte-level", "bytes"])
def test_words_past_the_cut_are_lost_and_counted(encoders, plain, name) -> None:
    sentences = [SENTENCES[4], SENTENCES[1], SENTENCES[4], SENTENCES[0]]
    model = plain[TOKENIZERS[name][0]]
    all_cut = []
    for limit in range(7, 14):
        subword = WORD_SUBWORDS[limit % 2]
        found = embed_words(encoders[name], sentences, subword=subword, max_length=limit)
        for i, sentence in enumerate(sentences):
            expected = oracle(name, model, sentence, subword, limit)
            assert_close(of_sentence(found, i), expected)
            # the words before the cut, each with its own number
            assert found.word[found.sentence == i].tolist() == list(range(expected.shape[1]))
        assert found.n_cut == sum(map(len, sentences)) - len(found.word)
        all_cut.append(found.n_cut)
    assert all_cut[0] > all_cut[-1]
    assert all_cut == sorted(all_cut, reverse=True)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_without_subwords_are_counted(encoders, name) -> None:
    encoder = encoders[name]
    sentences = [("", "Yes", " ", "rain"), ("\u3000",), ("Yes", "rain")]
    found = embed_words(encoder, sentences)
    assert (found.n_cut, found.n_empty) == (0, 3)
    assert found.sentence.tolist() == [0, 0, 2, 2]
    assert found.word.tolist() == [1, 3, 0, 1]
    assert_close(of_sentence(found, 0), of_sentence(found, 2))


@pytest.mark.parametrize(
    ("sentences", "options", "message"),
    [
        ([("a",), ()], {}, "sentence 1 has no words: drop it"),
        ([("a",)], {"max_length": 1000}, "max_length is 1000, but .* takes 128 tokens"),
    ],
)
def test_what_are_no_words_is_refused(encoder, sentences, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        embed_words(encoder, sentences, **options)


def test_tokenizer_of_another_model_is_seen(encoder) -> None:
    large = dataclasses.replace(encoder, tokenizer=tiny.tokenizer(size=600))
    piece = max(large.tokenizer.get_vocab(), key=large.tokenizer.get_vocab().get).strip("▁")
    with pytest.raises(ValueError, match=r"sentence 1: .* they do not belong together"):
        embed_words(large, [("a",), ("a", piece)])
    with pytest.raises(ValueError, match=r"pair 1 .* they do not belong together"):
        embed_pairs(large, ["a", "a"], ["a", piece])


# Pairs


def pair_ids(name: str, one: str, other: str) -> tuple[list[int], list[bool], list[int]]:
    """Ids, which of them are of the sentences, and which sentence each is of."""
    a, b = (tokenizer(name)(text, add_special_tokens=False)["input_ids"] for text in (one, other))
    before, between, after = {
        "tiny": ([0], [2], [2]),
        "wordpiece": ([0], [2], [2]),
        "bytes": ([], [1], [1]),
    }.get(name, ([], [], []))
    ids = [*before, *a, *between, *b, *after]
    real = [False] * len(before) + [True] * len(a) + [False] * len(between) + [True] * len(b)
    first = len(before) + len(a) + len(between)
    return ids, real + [False] * len(after), [0] * first + [1] * (len(b) + len(after))


def pair_oracle(name: str, model: torch.nn.Module, one: str, other: str) -> np.ndarray:
    ids, real, types = pair_ids(name, one, other)
    told = [tuple(types)] if name == "wordpiece" else []
    return token_states(model, tuple(ids), *told)[:, real].mean(axis=1)


# the template of tiny.tokenizer has nothing for pairs, so the library sets them side by side
PAIRED = [name for name in TOKENIZERS if name != "tiny"]


@pytest.mark.parametrize("name", PAIRED)
def test_joint_pairs_equal_the_oracle(encoders, plain, name) -> None:
    with token_budget(90):
        found = embed_pairs(encoders[name], FIRST, SECOND)
    assert found.states.dtype == np.float32
    assert found.n_cut == 0
    for i, (one, other) in enumerate(zip(FIRST, SECOND, strict=True)):
        expected = pair_oracle(name, plain[TOKENIZERS[name][0]], one, other)
        assert_close(found.states[:, i], expected)


def test_concatenated_pairs_are_the_formula(encoder) -> None:
    found = embed_pairs(encoder, FIRST, SECOND, form="concatenated").states
    assert found.dtype == np.float32
    u, v = (embed(encoder, side).states for side in (FIRST, SECOND))
    assert_close(found, np.concatenate([u, v, np.abs(u - v), u * v], axis=2))
    # FIRST[2] is SECOND[2]: no difference at all
    assert not found[:, 2, 64:96].any()
    assert found[:, 1, 64:96].all(axis=1).any()


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        (["a"], ["a", "b"], {}, "there are 1 first and 2 second sentences"),
        (["a"], ["b"], {"max_length": 4}, "no room is left for two sentences"),
        (["a"], [""], {"form": "concatenated"}, "pair 0: a sentence has no token"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(encoders, first, second, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        embed_pairs(encoders["wordpiece"], first, second, **options)
