"""A toy of the family: ten words in three languages, and recipes that train in a second."""

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from family import pretraining, pretraining_text, vocabulary
from family.pretraining_text import LinesById
from family.recipes import RECIPES, MemberRecipe, describe
from family.training_text import PretrainingText

WORDS = {
    "de": ["Haus", "Baum", "Wasser", "Sonne", "Hund", "Katze", "Brot", "Milch", "Stein", "Wind"],
    "en": ["house", "tree", "water", "sun", "dog", "cat", "bread", "milk", "stone", "wind"],
    "ja": list("家木水日犬猫麦乳石風"),
}

#: Subwords seen by the members of `member_files`.
SEEN = 5000
#: One member of each architecture; the encoder with all objectives.
MEMBERS = ("mini-infoxlm", "mini-mbert", "mini-llama", "mini-roformer")


def text(n_lines: int = 60, seed: int = 0) -> LinesById:
    """``ntrex``, an aligned source, and ``common_voice``, which is not."""
    rng = np.random.default_rng(seed)
    made: LinesById = {"ntrex": {}, "common_voice": {}}
    drawn = rng.integers(10, size=(2, n_lines, 6))
    for code, words in WORDS.items():
        space = "" if code == "ja" else " "
        for source, rows in zip(made, drawn, strict=True):
            lines = [space.join(words[i] for i in row) for row in rows]
            made[source][code] = {str(number): line for number, line in enumerate(lines)}
    del made["ntrex"]["ja"]["3"]  # a line without a translation
    return made


def lines() -> dict[str, list[str]]:
    return pretraining_text.by_language(text())


def recipe(member: str = "mini-infoxlm", **changes: object) -> MemberRecipe:
    """A member's recipe at a size for tests."""
    of_member = RECIPES[member]
    small = {
        "vocabulary": 95 if of_member.architecture == "bert" else 400,
        "layers": 2,
        "hidden_size": 16,
        "heads": 2,
        "intermediate_size": 32,
        "max_length": 32,
        "block_lengths": (8, 16),
        "contrast_pairs": 8,
        "contrast_layer": 1,
        "contrast_length": 16,
        "steps": 12,
        "first_checkpoint": 3,
        "checkpoints_per_doubling": 1,
        "warmup_steps": None,
        "tokens_per_step": 128,
        "learning_rate": 1e-2,
        "history": True,
    }
    return replace(of_member, **(small | changes))


def word_pieces(text: Mapping[str, list[str]]) -> Tokenizer:
    """BERT's tokenizer of single characters and whole words; the last id is the mask."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    cased = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), cased])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    lines = [tokenizer.normalizer.normalize_str(line) for of in text.values() for line in of]
    words = {word for line in lines for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(line)}
    letters, (*first, mask) = sorted(set("".join(words))), vocabulary.BERT_TOKENS
    pieces = [*first, *letters, *(f"##{letter}" for letter in letters), *sorted(words)]
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys([*pieces, mask]))}
    tokenizer.model = models.WordPiece(numbers, unk_token="[UNK]")
    tokenizer.add_special_tokens(list(vocabulary.BERT_TOKENS))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 0))
    return tokenizer


@functools.cache
def prepared(architecture: str) -> pretraining.Prepared:
    """Vocabulary, text and held-out lines, as `pretraining.prepare` gives them."""
    bert = architecture == "bert"
    tokenizer = word_pieces(lines()) if bert else vocabulary.train_bpe(lines(), 400)
    held = pretraining_text.by_language({"ntrex": text(10, seed=1)["ntrex"]})
    return tokenizer, PretrainingText.encode(tokenizer, text()), held


def run(recipe: MemberRecipe, folder: Path, **options: object) -> pd.DataFrame:
    """Train into ``folder / "out"``, with the state in ``folder / "state.pt"``."""
    options = {"save_every": 5, "log_every": 5} | options
    return pretraining.pretrain(
        recipe, prepared(recipe.architecture), folder / "out", folder / "state.pt", **options
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    """Whether two states are the same, bit by bit."""
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def member_files(root: Path, recipe: MemberRecipe | str) -> str:
    """The files of a member that has two checkpoints, without weights."""
    recipe = RECIPES[recipe] if isinstance(recipe, str) else recipe
    folder = root / recipe.name
    for step in (0, 20):
        (folder / f"step-{step:06d}").mkdir(parents=True)
    (folder / "recipe.json").write_text(describe(recipe))
    cost = {"parameters": 123, "steps": 20, "subwords_seen": SEEN, "minutes": 1.5}
    (folder / "run.json").write_text(json.dumps(cost))
    (folder / "losses.csv").write_text(
        "step,tokens,objective,loss,learning_rate\n10,2500,mlm,5.0,0.1\n20,5000,mlm,4.0,0.1\n"
    )
    (folder / "held_out.csv").write_text(
        "step,language,subwords,loss\n0,de,7,9.0\n20,de,7,5.5\n20,en,6,5.0\n"
    )
    return str(folder)
