"""Vocabularies: the same each time, every script there and back, and what they do to a language."""

import math
import unicodedata
from itertools import chain

import pytest
from tokenizers import Tokenizer

from family import vocabulary
from family.vocabulary import train_bpe, train_wordpiece
from tests import toy
from xlx.text import pretraining_text

SCRIPTS = (
    "Größe, naïveté, Ørsted, Đặng!",
    "Ἐν ἀρχῇ ἦν ὁ λόγος",
    "Съешь ещё этих мягких французских булок",
    "السَّلامُ عَلَيْكُم",
    "می‌خواهم بروم",  # with a zero-width non-joiner
    "בְּרֵאשִׁית",
    "नमस्ते दुनिया",
    "বাংলা ভাষা",
    "தமிழ் மொழி",
    "ภาษาไทย",
    "ქართული ენა",
    "Հայոց լեզու",
    "አማርኛ",
    "ភាសាខ្មែរ",
    "မြန်မာဘာသာ",
    "한국어 문장",
    "ひらがなとカタカナ",
    "漢字與汉字",
    "𠀋 𐍈 𝄞",  # beyond the basic plane
    "☃ 😀 👩‍👩‍👧 🇫🇮 👍🏽",
    "100 % — “quoted”, §5, 3·10⁻²",
)


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return toy.prepared("xlm-roberta")[0]


@pytest.fixture(scope="module")
def wordpiece() -> Tokenizer:
    return toy.prepared("bert")[0]


# --- how they are made ---------------------------------------------------------------------------


# 300 characters, each once within a word: which of them get a piece is a tie.
RARE = {
    "en": ["tree house " * 20] * 50,
    "ka": [f"a{chr(code)}b" for code in range(0x10A0, 0x10A0 + 300)],
}


@pytest.mark.parametrize(
    ("train", "text", "size"),
    [
        (train_bpe, RARE, 400),
        (train_wordpiece, RARE, 200),
        (train_bpe, toy.lines(), 400),  # with equally frequent pairs
        (train_wordpiece, toy.lines(), 100),
    ],
)
def test_a_vocabulary_comes_out_the_same_among_ties(train, text, size) -> None:
    first, *others = (train(text, size).to_str() for _ in range(3))
    assert all(other == first for other in others)
    assert text is not RARE or 0 < sum(line[1] in first for line in RARE["ka"]) < 300


def test_the_sample_raises_small_languages() -> None:
    text = {"big": ["x" * 10] * 1600, "small": ["y" * 10] * 100}
    drawn = "".join(vocabulary.sampled_lines(text, 0.5, seed=1, least=0))
    # three times what gives the small one all it has: 3 · 31.6 · √size
    assert drawn.count("y") == 1000
    assert drawn.count("x") == pytest.approx(3 * math.sqrt(1000) * math.sqrt(16_000), abs=10)
    assert drawn == "".join(vocabulary.sampled_lines(text, 0.5, seed=1, least=0))
    everything = list(vocabulary.sampled_lines(text, 0.5, seed=1, least=10**6))
    assert sorted(everything) == sorted(text["big"] + text["small"])


@pytest.mark.parametrize(("train", "size"), [(train_bpe, 5000), (train_wordpiece, 500)])
def test_a_vocabulary_too_large_for_the_text_is_refused(train, size: int) -> None:
    with pytest.raises(ValueError, match=rf"pieces and bytes, not the {size:,} asked for") as error:
        train(toy.lines(), size)
    most = int(str(error.value).split("gives ")[1].split()[0].replace(",", ""))
    assert train(toy.lines(), most).get_vocab_size() == most  # what it says would do, does


def test_a_vocabulary_without_room_for_a_piece_is_refused() -> None:
    with pytest.raises(ValueError, match="a vocabulary of 261 has no room for a piece"):
        train_bpe(toy.lines(), 261)


@pytest.mark.parametrize(
    ("architecture", "special"),
    [("xlm-roberta", vocabulary.XLMR_TOKENS), ("bert", vocabulary.BERT_TOKENS)],
)
def test_both_give_special_tokens_the_same_ids(architecture: str, special) -> None:
    tokenizer = toy.prepared(architecture)[0]
    size = {"xlm-roberta": 400, "bert": 100}[architecture]
    assert [tokenizer.token_to_id(token) for token in special] == [0, 1, 2, 3, size - 1]
    assert (
        pretraining_text.BOS,
        pretraining_text.PAD,
        pretraining_text.EOS,
        pretraining_text.UNK,
    ) == (0, 1, 2, 3)
    assert tokenizer.get_vocab_size() == size == len(set(tokenizer.get_vocab().values()))
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    assert added == set(special)


@pytest.mark.parametrize(
    ("architecture", "first", "last", "between"),
    [("xlm-roberta", "<s>", "</s>", [2, 2]), ("bert", "[CLS]", "[SEP]", [2])],
)
def test_a_line_and_a_pair_are_framed(architecture, first, last, between) -> None:
    tokenizer = toy.prepared(architecture)[0]
    line = tokenizer.encode("Haus Baum")
    assert (line.tokens[0], line.tokens[-1], set(line.type_ids)) == (first, last, {0})
    pair = tokenizer.encode("dog", "cat sun")
    dog, cat = (tokenizer.encode(x, add_special_tokens=False).ids for x in ("dog", "cat sun"))
    assert pair.ids == [0, *dog, *between, *cat, 2]
    second = 1 if architecture == "bert" else 0
    assert pair.type_ids[-len(cat) - 1 :] == [second] * (len(cat) + 1)


# --- byte-pair encoding --------------------------------------------------------------------------


@pytest.mark.parametrize("line", SCRIPTS)
def test_bpe_writes_every_script_back(bpe: Tokenizer, line: str) -> None:
    encoded = bpe.encode(line)
    assert "<unk>" not in encoded.tokens
    assert bpe.decode(encoded.ids) == " ".join(unicodedata.normalize("NFKC", line).split())


def test_bpe_has_bytes_for_what_it_has_no_piece_for(bpe: Tokenizer) -> None:
    encoded = bpe.encode("犬😀", add_special_tokens=False)
    assert encoded.tokens[-4:] == [f"<0x{byte:02X}>" for byte in "😀".encode()]
    assert encoded.ids[-4:] == [vocabulary.N_SPECIAL + byte for byte in "😀".encode()]


# --- WordPiece -----------------------------------------------------------------------------------


def test_wordpiece_knows_a_word_unless_it_lacks_one_of_its_characters(
    wordpiece: Tokenizer,
) -> None:
    known = {piece.removeprefix("##") for piece in wordpiece.get_vocab()}
    n_unknown = 0
    for language, lines in toy.lines().items():
        # Each Chinese character is a word of its own.
        for word in chain.from_iterable(lines if language == "ja" else map(str.split, lines)):
            encoded = wordpiece.encode(word, add_special_tokens=False)
            if set(word) <= known:
                assert "[UNK]" not in encoded.tokens
                assert wordpiece.decode(encoded.ids) == word
            else:
                assert encoded.tokens == ["[UNK]"]
                n_unknown += 1
    assert n_unknown > 0
    dog, cat, inu = (
        wordpiece.encode(x, add_special_tokens=False).tokens for x in ("dog", "cat", "犬")
    )
    unseen = wordpiece.encode("dog Ωmega cat 龍犬 doΩg", add_special_tokens=False).tokens
    assert unseen == [*dog, "[UNK]", *cat, "[UNK]", *inu, "[UNK]"]


def test_wordpiece_keeps_case_and_accents() -> None:
    lines = {"fr": ["Été été ete Ete"] * 20}
    tokenizer = train_wordpiece(lines, 18)
    tokens = [
        tokenizer.encode(word, add_special_tokens=False).ids for word in lines["fr"][0].split()
    ]
    assert len({tuple(ids) for ids in tokens}) == 4
    composed, decomposed = (
        tokenizer.encode(unicodedata.normalize(form, "été")).ids for form in ("NFC", "NFD")
    )
    assert composed == decomposed


# --- what they do to a language ------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["xlm-roberta", "bert"])
def test_fertility_against_counting(architecture: str) -> None:
    tokenizer = toy.prepared(architecture)[0]
    text = {
        "de": ["Haus Baum Sonne", "Wasser Ω Hund", "Haus"],
        "en": ["the dog, the cat", "water and 😀 bread"],
        "ja": ["犬猫 家", "龍"],
    }
    unknown = "[UNK]" if architecture == "bert" else "<unk>"
    bytes_ = {f"<0x{byte:02X}>" for byte in range(256)}
    table = vocabulary.subword_statistics(tokenizer, text).set_index("language")
    assert list(table.index) == list(text)
    for language, lines in text.items():
        words = characters = n_tokens = n_unknown = n_bytes = same = 0
        for line in lines:
            words += len(line.split())
            characters += sum(not character.isspace() for character in line)
            tokens = tokenizer.encode(line, add_special_tokens=False)
            n_tokens += len(tokens.tokens)
            for token in tokens.tokens:
                n_unknown += token == unknown
                n_bytes += token in bytes_
            back = tokenizer.decode(tokens.ids)
            same += "".join(back.split()) == "".join(line.split())
        row = table.loc[language]
        assert row["tokens_per_character"] == pytest.approx(n_tokens / characters)
        assert row["unknown"] == pytest.approx(n_unknown / n_tokens)
        assert row["bytes"] == pytest.approx(n_bytes / n_tokens)
        assert row["round_trip"] == pytest.approx(same / len(lines))
        if language == "ja":
            assert math.isnan(row["tokens_per_word"])
        else:
            assert row["tokens_per_word"] == pytest.approx(n_tokens / words)
    if architecture == "bert":
        assert (table["unknown"] > 0).all()
        assert (table["bytes"] == 0).all()
    else:
        assert (table["unknown"] == 0).all()
        assert (table["bytes"] > 0).all()
        assert (table["round_trip"] == 1).all()
