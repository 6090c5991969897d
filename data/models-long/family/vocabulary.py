"""Subword vocabularies: byte-pair encoding with bytes for the rest, and the shipped word pieces.

Both give their special tokens the same ids, so that batches are made alike for all models:
0 begins a sequence, 1 pads, 2 ends, 3 is unknown, and the last id is the mask.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
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

from family.training_text import BOS, EOS
from xlx.results import paths

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
    # The trainer's own order of equally frequent characters, and so all ids, differs by run.
    counts = Counter(chain.from_iterable(map(tokenizer.normalizer.normalize_str, lines)))
    frequent = sorted(counts, key=lambda character: (-counts[character], character))
    alphabet = frequent[: min(2000, size // 3)]
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
    pieces += [*sorted(learned["vocab"], key=learned["vocab"].get), mask]
    if len(pieces) != size:  # the model would have dead rows
        raise ValueError(
            f"the text gives {len(pieces):,} pieces and bytes, not the {size:,} asked for: use a "
            "vocabulary of that size or less, or more text"
        )
    tokenizer.model = models.BPE(
        vocab={piece: index for index, piece in enumerate(pieces)},
        merges=[tuple(merge) for merge in learned["merges"]],
        byte_fallback=True,
        fuse_unk=True,
        unk_token="<unk>",
    )
    bytes_too = decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), *bytes_too])
    tokenizer.add_special_tokens(list(XLMR_TOKENS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", BOS), ("</s>", EOS)],
    )
    return tokenizer


def word_pieces() -> Tokenizer:
    """The 6,000 word pieces of `mini-mbert`: as mBERT's cased, with accents, CJK apart.

    They were trained once, on the text of all languages; a character without a piece makes its
    whole word ``[UNK]``.
    """
    return Tokenizer.from_file(str(paths.MODELS / "mini-mbert/step-025600/tokenizer.json"))
