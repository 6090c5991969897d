"""Vocabularies: the same each time, every script there and back."""

import math
import unicodedata

import pytest
from tokenizers import Tokenizer

from family import training_text, vocabulary
from family.vocabulary import train_bpe, word_pieces
from tests import toy

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


# --- how they are made ---------------------------------------------------------------------------


# 300 characters, each once within a word: which of them get a piece is a tie.
RARE = {
    "en": ["tree house " * 20] * 50,
    "ka": [f"a{chr(code)}b" for code in range(0x10A0, 0x10A0 + 300)],
}


@pytest.mark.parametrize("text", [RARE, toy.lines()])  # these with equally frequent pairs
def test_a_vocabulary_comes_out_the_same_among_ties(text: dict[str, list[str]]) -> None:
    first, *others = (train_bpe(text, 400).to_str() for _ in range(3))
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


def test_a_vocabulary_that_the_text_cannot_fill_is_refused() -> None:
    with pytest.raises(ValueError, match="pieces and bytes, not the 5,000 asked for") as error:
        train_bpe(toy.lines(), 5000)
    most = int(str(error.value).split("gives ")[1].split()[0].replace(",", ""))
    assert train_bpe(toy.lines(), most).get_vocab_size() == most  # what it says would do, does
    with pytest.raises(ValueError, match="a vocabulary of 261 has no room for a piece"):
        train_bpe(toy.lines(), 261)


def test_special_tokens_have_the_same_ids_in_both(bpe: Tokenizer) -> None:
    kinds = ((bpe, vocabulary.XLMR_TOKENS, 400), (word_pieces(), vocabulary.BERT_TOKENS, 6000))
    for tokenizer, special, size in kinds:
        assert [tokenizer.token_to_id(token) for token in special] == [0, 1, 2, 3, size - 1]
        assert tokenizer.get_vocab_size() == size == len(set(tokenizer.get_vocab().values()))
        added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
        assert added == set(special)
    ids = (training_text.BOS, training_text.PAD, training_text.EOS, training_text.UNK)
    assert ids == (0, 1, 2, 3)


def test_a_line_and_a_pair_are_framed(bpe: Tokenizer) -> None:
    for tokenizer, between in ((bpe, [2, 2]), (word_pieces(), [2])):
        dog, cat = (tokenizer.encode(x, add_special_tokens=False).ids for x in ("dog", "cat sun"))
        assert tokenizer.encode("dog").ids == [0, *dog, 2]
        assert tokenizer.encode("dog", "cat sun").ids == [0, *dog, *between, *cat, 2]


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


# --- word pieces --------------------------------------------------------------------------------


def test_word_pieces_keep_case_and_accents_and_take_a_strange_word_whole() -> None:
    tokenizer = word_pieces()
    cut = [tokenizer.encode(x, add_special_tokens=False).ids for x in ("Été", "été", "ete", "Ete")]
    assert len(set(map(tuple, cut))) == 4
    forms = (unicodedata.normalize(form, "été") for form in ("NFC", "NFD"))
    assert len({tuple(tokenizer.encode(form).ids) for form in forms}) == 1
    dog, cat, inu = (
        tokenizer.encode(x, add_special_tokens=False).tokens for x in ("dog", "cat", "犬")
    )
    unseen = tokenizer.encode("dog ꙮmega cat犬 doꙮg", add_special_tokens=False).tokens
    assert unseen == [*dog, "[UNK]", *cat, *inu, "[UNK]"]
