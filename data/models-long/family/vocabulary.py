"""Subword vocabularies: byte-pair encoding with bytes for the rest, and BERT's WordPiece.

Both give their special tokens the same ids, so that batches are made alike for all models:
0 begins a sequence, 1 pads, 2 ends, 3 is unknown, and the last id is the mask.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import numpy as np
import pandas as pd
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from xlx.text.pretraining_text import BOS, EOS, UNK

#: The special tokens of XLM-R (and of our Llama), and those of BERT; the mask comes last.
XLMR_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
BERT_TOKENS = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
N_SPECIAL = 4  # without the mask
N_BYTES = 256


def sampled_lines(
    text: Mapping[str, list[str]], exponent: float, seed: int, least: int = 200_000
) -> Iterator[str]:
    """Lines of every language, a language with (its characters) ** exponent of them.

    That is the sampling of pretraining, so that small languages get pieces of their own. At least
    ``least`` characters of a language, or all it has.
    """
    sizes = {language: sum(map(len, lines)) for language, lines in text.items()}
    scale = min(count / count**exponent for count in sizes.values() if count)
    rng = np.random.default_rng(seed)
    for language in sorted(text):
        due = max(least, 3 * scale * sizes[language] ** exponent)
        for index in rng.permutation(len(text[language])):
            if due <= 0:
                break
            line = text[language][index]
            due -= len(line)
            yield line


def _frequent(texts: Iterable[str]) -> list[str]:
    """Characters, the most frequent first, ties by code point.

    The trainers' own order of equally frequent ones differs from run to run, and with it all ids.
    """
    characters = Counter(chain.from_iterable(texts))
    return sorted(characters, key=lambda character: (-characters[character], character))


def _alphabet(texts: Iterable[str], size: int) -> list[str]:
    """The characters that get a piece in a vocabulary of a size."""
    return _frequent(texts)[: min(2000, size // 3)]


def _finished(
    tokenizer: Tokenizer, size: int, special: tuple[str, ...], template: tuple[str, str]
) -> Tokenizer:
    """With special tokens around a text and a pair; refused where the text could not fill it: the
    model would have dead rows."""
    first, _, last, *_ = special
    tokenizer.add_special_tokens(list(special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template[0], pair=template[1], special_tokens=[(first, BOS), (last, EOS)]
    )
    if (pieces := tokenizer.get_vocab_size()) != size:
        raise ValueError(
            f"the text gives {pieces:,} pieces and bytes, not the {size:,} asked for: use a "
            "vocabulary of that size or less, or more text"
        )
    return tokenizer


def train_bpe(
    text: Mapping[str, list[str]], size: int, *, exponent: float = 0.3, seed: int = 1
) -> Tokenizer:
    """Byte-pair encoding, with the 256 bytes for characters it has no piece for.

    ``text`` maps language → lines. Normalised by NFKC as XLM-R's vocabulary. ValueError where the
    text holds too little for ``size`` pieces, or bytes and special tokens leave no room.
    """
    if size <= N_BYTES + len(XLMR_TOKENS):
        raise ValueError(
            f"a vocabulary of {size} has no room for a piece beside the {N_BYTES} bytes and "
            f"{len(XLMR_TOKENS)} special tokens: ask for more"
        )
    tokenizer = Tokenizer(models.BPE())
    space = normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()
    marks = normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *space, *marks])
    words = r"▁?[\p{L}\p{M}]+|▁?\p{N}{1,2}|▁?[^▁\p{L}\p{M}\p{N}]|▁"
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(words), "isolated")
    lines = list(sampled_lines(text, exponent, seed))
    alphabet = _alphabet(map(tokenizer.normalizer.normalize_str, lines), size)
    trainer = trainers.BpeTrainer(
        vocab_size=size - N_BYTES - len(XLMR_TOKENS),
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)

    # The trainer knows nothing of bytes: put them and the special tokens before its pieces.
    learned = json.loads(tokenizer.to_str())["model"]
    *first, mask = XLMR_TOKENS
    pieces = [*first, *(f"<0x{byte:02X}>" for byte in range(N_BYTES))]
    pieces += sorted(learned["vocab"], key=learned["vocab"].get)
    pieces.append(mask)
    tokenizer.model = models.BPE(
        vocab={piece: index for index, piece in enumerate(pieces)},
        merges=[tuple(merge) for merge in learned["merges"]],
        byte_fallback=True,
        fuse_unk=True,
        unk_token="<unk>",
    )
    bytes_too = decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), *bytes_too])
    return _finished(tokenizer, size, XLMR_TOKENS, ("<s> $A </s>", "<s> $A </s> </s> $B </s>"))


def train_wordpiece(
    text: Mapping[str, list[str]], size: int, *, exponent: float = 0.3, seed: int = 1
) -> Tokenizer:
    """WordPiece as mBERT's: cased, accents kept, CJK characters each a word, ``##`` inside words.

    A character without a piece makes its whole word ``[UNK]``. ValueError where the text holds too
    little for ``size`` pieces.
    """
    *first, mask = BERT_TOKENS
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.BertNormalizer(lowercase=False, strip_accents=False)]
    )
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    lines = [learner.normalizer.normalize_str(line) for line in sampled_lines(text, exponent, seed)]
    alphabet = _alphabet((line.replace(" ", "") for line in lines), size)
    words = (word for line in lines for word, _ in learner.pre_tokenizer.pre_tokenize_str(line))
    inside = [letter for letter in _frequent(word[1:] for word in words) if letter in alphabet]
    # The pieces of one character inside a word are special to the learner alone: left to itself, it
    # would number them by chance, and break ties between merges by number.
    trainer = trainers.WordPieceTrainer(
        vocab_size=size - 1,  # the mask comes last
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        special_tokens=[*first, *(f"##{letter}" for letter in inside)],
        show_progress=False,
    )
    learner.train_from_iterator(lines, trainer)
    vocabulary = learner.get_vocab()
    vocabulary |= {mask: len(vocabulary)}
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = learner.normalizer, learner.pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    templates = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
    return _finished(tokenizer, size, BERT_TOKENS, templates)


#: How an architecture cuts its text.
TRAINERS = {"bert": train_wordpiece, "xlm-roberta": train_bpe, "llama": train_bpe}


def subword_statistics(tokenizer: Tokenizer, text: Mapping[str, list[str]]) -> pd.DataFrame:
    """What a vocabulary does to every language: a row a language, from lines of text.

    Columns: ``tokens_per_word`` (words by white space; NaN for ``ja`` and ``zh``, whose script has
    none), ``tokens_per_character`` (spaces not counted), ``unknown`` (share of tokens that are the
    unknown token), ``bytes`` (share that are bytes), ``round_trip`` (share of lines that decode to
    themselves, normalised, white space apart).
    """
    unknown = getattr(tokenizer.model, "unk_token", None) or tokenizer.id_to_token(UNK)
    rows = []
    for language, lines in text.items():
        encoded = tokenizer.encode_batch(list(lines), add_special_tokens=False)
        tokens = [token for line in encoded for token in line.tokens]
        back = tokenizer.decode_batch([line.ids for line in encoded])
        words = math.nan if language in ("ja", "zh") else sum(len(x.split()) for x in lines)
        plain = (tokenizer.normalizer.normalize_str(line).replace("▁", " ") for line in lines)
        same = [_solid(x) == _solid(decoded) for x, decoded in zip(plain, back, strict=True)]
        rows.append(
            {
                "language": language,
                "tokens_per_word": len(tokens) / words,
                "tokens_per_character": len(tokens) / sum(len(_solid(line)) for line in lines),
                "unknown": tokens.count(unknown) / len(tokens),
                "bytes": sum(token.startswith("<0x") for token in tokens) / len(tokens),
                "round_trip": float(np.mean(same)),
            }
        )
    return pd.DataFrame(rows)


def _solid(line: str) -> str:
    """A line without white space."""
    return "".join(line.split())
