"""Train the miniature models from scratch, and keep the history of their training.

A model whose training text, recipe and every checkpoint are known can be asked questions that a
downloaded one cannot. The architecture is XLM-R's (Conneau et al. 2020) at a size that two CPU
cores train in an hour or two. Two objectives, so that a difference between the series has one
cause:

* ``mini-xlmr``: masked language modelling (MLM) on monolingual text, as XLM-R;
* ``mini-infoxlm``: MLM, translation language modelling (TLM; Conneau and Lample 2019) and the
  cross-lingual contrast XLCO over parallel sentences, as InfoXLM (Chi et al. 2021).

Both start from the same random weights (step 0, the untrained model), read the same text with the
same subword vocabulary and take the same number of steps. Each batch depends on
``(seed, step)`` alone, so a run that was stopped goes on as if it had not been.

    python -m xlx.pretraining mini-xlmr
    python -m xlx.pretraining mini-infoxlm --steps 200 --out build/trial
"""

import argparse
import copy
import io
import json
import math
import os
import shutil
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer
from torch.nn import functional
from tqdm import tqdm

from xlx import paths

#: New Testament books that no miniature model is trained on: text that is new to them, beside
#: verses of the same translations that are not. The general epistles share few sentences with the
#: other books, unlike the Gospels, which repeat one another; Jude and 2 Peter share many and so
#: stay out together.
HELD_OUT_BOOKS = ("Jas", "1Pet", "2Pet", "1John", "2John", "3John", "Jude")

#: Sources whose lines are translations of one another at the same position (or verse id).
ALIGNED = ("ntrex", "bible_nt")
SOURCES = ("common_voice", "tatoeba", *ALIGNED)

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3, as XLM-R; "<mask>" comes last
BOS, PAD, EOS = 0, 1, 2
NO_LABEL = -100


@dataclass(frozen=True)
class Recipe:
    """All that decides what a run learns; stored beside the checkpoints as ``recipe.json``."""

    name: str
    objectives: tuple[str, ...]
    seed: int = 1
    # the model
    vocabulary: int = 6800
    layers: int = 6
    hidden_size: int = 128
    heads: int = 4
    intermediate_size: int = 256
    max_length: int = 256
    # the text
    language_exponent: float = 0.3  # share of a language ~ (its tokens) ** exponent; 0.3 as XLM-R
    block_lengths: tuple[int, ...] = (32, 64, 128, 256)
    # masked language modelling
    masked_share: float = 0.15
    # the contrast: pairs of a batch, in every k-th step, from the mean-pooled states of one layer
    contrast_pairs: int = 96
    contrast_every: int = 4
    contrast_layer: int = 4
    contrast_length: int = 64
    temperature: float = 0.1
    contrast_weight: float = 1.0
    # the optimiser
    steps: int = 8000
    first_checkpoint: int = 125
    tokens_per_step: int = 4096
    learning_rate: float = 2e-3
    warmup_share: float = 0.05
    decay_share: float = 0.5
    weight_decay: float = 0.01
    clip: float = 1.0

    def checkpoint_steps(self) -> list[int]:
        """Step 0, then evenly spaced in log steps: first, 2 first, 4 first ..., and the last."""
        doublings = math.ceil(math.log2(self.steps / self.first_checkpoint))
        return [0, *(self.first_checkpoint * 2**k for k in range(max(doublings, 0))), self.steps]

    def learning_rate_at(self, step: int) -> float:
        """Linear warm-up, a plateau, linear decay over the last ``decay_share`` of the steps."""
        warmup = max(1, round(self.warmup_share * self.steps))
        decay = max(1, round(self.decay_share * self.steps))
        return self.learning_rate * min(1.0, step / warmup, (self.steps - step + 1) / decay)


def describe(recipe: Recipe) -> str:
    """The text of ``recipe.json``."""
    return json.dumps(asdict(recipe), indent=2) + "\n"


RECIPES = {
    "mini-xlmr": Recipe("mini-xlmr", ("mlm",)),
    "mini-infoxlm": Recipe("mini-infoxlm", ("mlm", "tlm", "contrast")),
}


# --- text ---------------------------------------------------------------------------------------


def read_source(source: str, folder: Path | None = None) -> dict[str, dict[str, str]]:
    """The pretraining text of a source: language → line id → line, empty lines left out.

    Ids are verse names in ``bible_nt`` and line numbers elsewhere. Raises FileNotFoundError where
    the archive is missing.
    """
    path = (folder or paths.DATA / "pretraining") / f"{source}.tar.xz"
    if not path.exists():
        raise FileNotFoundError(
            f"the pretraining text {path.name} is not in {path.parent}: restore it from the "
            "repository, or make it with data/pretraining/make.py"
        )
    text: dict[str, dict[str, str]] = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            name = Path(member.name)
            file = archive.extractfile(member)
            if file is None or name.stem == "documents":
                continue
            lines = io.TextIOWrapper(file, encoding="utf-8", newline="\n").read().split("\n")
            if name.suffix == ".tsv":
                rows = dict(line.split("\t", 1) for line in lines if line)
            else:
                rows = {str(number): line for number, line in enumerate(lines)}
            text[name.stem] = {key: line for key, line in rows.items() if line}
    return text


def train_vocabulary(
    text: dict[str, list[str]], size: int, *, exponent: float = 0.3, seed: int = 1
) -> Tokenizer:
    """Subword pieces by byte-pair encoding, with the 256 bytes for characters it has no piece for.

    ``text`` maps language → lines. Each language enters with a number of characters proportional
    to (its characters) ** exponent, the sampling of pretraining, so that small languages get
    pieces of their own. Normalised by NFKC as XLM-R's vocabulary.
    """
    sizes = {language: sum(map(len, lines)) for language, lines in text.items()}
    scale = min(count / count**exponent for count in sizes.values())

    def sample() -> Iterator[str]:
        rng = np.random.default_rng(seed)
        for language in sorted(text):
            wanted = max(200_000, 3 * scale * sizes[language] ** exponent)
            for index in rng.permutation(len(text[language])):
                if wanted <= 0:
                    break
                line = text[language][index]
                wanted -= len(line)
                yield line

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
            normalizers.Prepend("▁"),
            normalizers.Replace(" ", "▁"),
        ]
    )
    words = r"▁?[\p{L}\p{M}]+|▁?\p{N}{1,2}|▁?[^▁\p{L}\p{M}\p{N}]|▁"
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(words), "isolated")
    n_bytes = 256
    # The trainer's own choice among equally frequent characters differs from run to run, and with
    # it all ids behind; so the alphabet is chosen here, ties by code point.
    characters = Counter()
    for line in sample():
        characters.update(tokenizer.normalizer.normalize_str(line))
    frequent = sorted(characters, key=lambda character: (-characters[character], character))
    alphabet = frequent[: min(2000, size // 3)]
    trainer = BpeTrainer(
        vocab_size=size - n_bytes - len(SPECIAL_TOKENS) - 1,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample(), trainer)

    # The trainer knows nothing of bytes: put them and the special tokens before its pieces.
    learned = json.loads(tokenizer.to_str())["model"]
    pieces = [*SPECIAL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(n_bytes))]
    pieces += sorted(learned["vocab"], key=learned["vocab"].get)
    pieces.append("<mask>")
    tokenizer.model = models.BPE(
        vocab={piece: index for index, piece in enumerate(pieces)},
        merges=[tuple(merge) for merge in learned["merges"]],
        byte_fallback=True,
        fuse_unk=True,
        unk_token="<unk>",
    )
    tokenizer.add_special_tokens([*SPECIAL_TOKENS, "<mask>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", BOS), ("</s>", EOS)],
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


@dataclass(frozen=True)
class Lines:
    """Lines as subword ids, flat: line ``i`` is ``ids[starts[i]:starts[i + 1]]``, ``</s>`` last."""

    ids: np.ndarray  # (n_tokens,) uint16
    starts: np.ndarray  # (n_lines + 1,) int64

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, line: int) -> np.ndarray:
        """The subwords of a line without its ``</s>``."""
        return self.ids[self.starts[line] : self.starts[line + 1] - 1]

    def lengths(self) -> np.ndarray:
        return np.diff(self.starts) - 1

    @classmethod
    def encode(cls, tokenizer: Tokenizer, lines: list[str], chunk: int = 20_000) -> "Lines":
        parts, lengths = [], []
        for start in range(0, len(lines), chunk):
            encoded = tokenizer.encode_batch_fast(
                lines[start : start + chunk], add_special_tokens=False
            )
            parts += [np.array([*line.ids, EOS], dtype=np.uint16) for line in encoded]
            lengths += [len(line.ids) + 1 for line in encoded]
        return cls(np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)]))


@dataclass(frozen=True)
class Parallel:
    """An aligned source: ``line[p, l]`` is the line of position p in language l, or -1."""

    languages: tuple[str, ...]
    lines: tuple[Lines, ...]
    line: np.ndarray  # (n_positions, n_languages) int64

    def by_length(self) -> np.ndarray:
        """Positions that two languages or more hold, ordered by their mean number of subwords."""
        lengths = np.stack(
            [
                np.where(self.line[:, column] >= 0, lines.lengths()[self.line[:, column]], 0)
                for column, lines in enumerate(self.lines)
            ],
            axis=1,
        )
        held = (self.line >= 0).sum(axis=1)
        order = np.argsort(lengths.sum(axis=1) / np.maximum(held, 1), kind="stable")
        return order[held[order] >= 2]


@dataclass(frozen=True)
class PretrainingText:
    """The text of a run in subwords; ``parallel`` holds the aligned sources."""

    monolingual: dict[str, tuple[Lines, ...]]  # language → its sources
    parallel: tuple[Parallel, ...]

    def n_tokens(self, language: str) -> int:
        """Subwords of a language, all sources together: what footnote 8 of the ABX paper asks."""
        return sum(len(lines.ids) for lines in self.monolingual[language])

    def language_shares(self, exponent: float) -> pd.Series:
        counts = pd.Series({code: float(self.n_tokens(code)) for code in self.monolingual})
        return counts**exponent / (counts**exponent).sum()

    @classmethod
    def encode(
        cls, tokenizer: Tokenizer, text: dict[str, dict[str, dict[str, str]]], progress: bool = True
    ) -> "PretrainingText":
        monolingual: dict[str, list[Lines]] = {}
        parallel = []
        for source, by_language in tqdm(text.items(), "subwords", disable=not progress):
            encoded = {
                language: Lines.encode(tokenizer, list(lines.values()))
                for language, lines in by_language.items()
            }
            for language, lines in encoded.items():
                monolingual.setdefault(language, []).append(lines)
            if source in ALIGNED:
                positions = sorted({key for lines in by_language.values() for key in lines})
                row = {key: index for index, key in enumerate(positions)}
                line = np.full((len(positions), len(encoded)), -1)
                for column, language in enumerate(encoded):
                    rows = [row[key] for key in by_language[language]]
                    line[rows, column] = np.arange(len(rows))
                parallel.append(Parallel(tuple(encoded), tuple(encoded.values()), line))
        return cls(
            {code: tuple(monolingual[code]) for code in sorted(monolingual)}, tuple(parallel)
        )


# --- batches ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Subword ids, where they are real, and what the masked ones were (``NO_LABEL`` elsewhere)."""

    ids: torch.Tensor  # (n_sequences, length) int64
    real: torch.Tensor  # (n_sequences, length) bool
    labels: torch.Tensor | None = None

    def to(self, device: torch.device) -> "Batch":
        labels = None if self.labels is None else self.labels.to(device)
        return Batch(self.ids.to(device), self.real.to(device), labels)


def mask(
    ids: np.ndarray, rng: np.random.Generator, *, share: float, vocabulary: int
) -> tuple[np.ndarray, np.ndarray]:
    """BERT's masking: of the chosen 80 % become ``<mask>``, 10 % another piece, 10 % stay."""
    chosen = (rng.random(ids.shape) < share) & (ids >= len(SPECIAL_TOKENS))
    if not chosen.any():  # a batch of a few subwords may draw none
        chosen.flat[np.flatnonzero(ids >= len(SPECIAL_TOKENS))[0]] = True
    labels = np.where(chosen, ids, NO_LABEL)
    fate = rng.random(ids.shape)
    masked = np.where(chosen & (fate < 0.8), vocabulary - 1, ids)
    random = rng.integers(len(SPECIAL_TOKENS), vocabulary - 1, ids.shape)
    return np.where(chosen & (fate >= 0.9), random, masked), labels


def pad(sequences: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of different lengths as one array, ``<pad>`` behind, and where it is real."""
    lengths = np.array([len(sequence) for sequence in sequences])
    real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(real.shape, PAD, dtype=np.int64)
    ids[real] = np.concatenate(sequences)
    return ids, real


class Batches:
    """Draws the batches of a step from the text; the same (seed, step) draws the same batch."""

    def __init__(self, text: PretrainingText, recipe: Recipe) -> None:
        self.text, self.recipe = text, recipe
        shares = text.language_shares(recipe.language_exponent)
        self.languages, self.shares = list(shares.index), shares.to_numpy()
        self.positions = [source.by_length() for source in text.parallel]

    def mlm(self, rng: np.random.Generator, tokens: int) -> Batch:
        """Runs of consecutive lines of one language, all of one length: nothing is padded."""
        length = int(rng.choice(self.recipe.block_lengths))
        rows = np.empty((tokens // length, length), dtype=np.int64)
        rows[:, 0] = BOS
        for row, language in enumerate(rng.choice(len(self.languages), len(rows), p=self.shares)):
            sources = self.text.monolingual[self.languages[language]]
            sizes = np.array([len(lines.ids) for lines in sources], dtype=float)
            lines = sources[rng.choice(len(sources), p=sizes / sizes.sum())]
            last = np.searchsorted(lines.starts, len(lines.ids) - length + 1, side="right") - 1
            start = lines.starts[rng.integers(max(last, 0) + 1)]
            rows[row, 1:] = np.resize(lines.ids[start : start + length - 1], length - 1)
        return self._masked(rows, np.ones(rows.shape, dtype=bool), rng)

    def tlm(self, rng: np.random.Generator, tokens: int) -> Batch:
        """``<s> a </s> </s> b </s>``, a and b translations of each other."""
        half = self.recipe.max_length // 2 - 2
        sequences: list[np.ndarray] = []
        while sum(map(len, sequences)) < tokens:
            for first, second in self._pairs(rng, 16, half):
                sequences.append(np.concatenate([[BOS], first, [EOS, EOS], second, [EOS]]))
        return self._masked(*pad(sequences), rng)

    def contrast(self, rng: np.random.Generator) -> Batch:
        """Translations in rows 2i and 2i + 1; no masking."""
        pairs = self._pairs(rng, self.recipe.contrast_pairs, self.recipe.contrast_length - 2)
        ids, real = pad([np.concatenate([[BOS], line, [EOS]]) for pair in pairs for line in pair])
        return Batch(torch.from_numpy(ids), torch.from_numpy(real))

    def _pairs(
        self, rng: np.random.Generator, count: int, longest: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Positions of one source, alike in length, each in two languages drawn evenly."""
        which = rng.integers(len(self.text.parallel))
        source, order = self.text.parallel[which], self.positions[which]
        window = min(len(order), 4 * count)
        start = rng.integers(len(order) - window + 1)
        chosen = rng.choice(order[start : start + window], min(count, window), replace=False)
        pairs = []
        for position in chosen:
            held = np.flatnonzero(source.line[position] >= 0)
            first, second = rng.choice(held, 2, replace=False)
            pairs.append(
                tuple(
                    source.lines[column][source.line[position, column]][:longest]
                    for column in (first, second)
                )
            )
        return pairs

    def _masked(self, ids: np.ndarray, real: np.ndarray, rng: np.random.Generator) -> Batch:
        vocabulary = self.recipe.vocabulary
        ids, labels = mask(ids, rng, share=self.recipe.masked_share, vocabulary=vocabulary)
        return Batch(torch.from_numpy(ids), torch.from_numpy(real), torch.from_numpy(labels))


# --- model and losses ---------------------------------------------------------------------------


def untrained(recipe: Recipe) -> torch.nn.Module:
    """``XLMRobertaForMaskedLM`` with weights drawn from the recipe's seed (normal, sd 0.02)."""
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    model = XLMRobertaForMaskedLM(
        XLMRobertaConfig(
            vocab_size=recipe.vocabulary,
            hidden_size=recipe.hidden_size,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            intermediate_size=recipe.intermediate_size,
            max_position_embeddings=recipe.max_length + PAD + 1,
            type_vocab_size=1,
            # So small a model cannot memorise its text: dropout would only slow it down.
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )
    generator = torch.Generator().manual_seed(recipe.seed)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
                module.weight.normal_(0.0, 0.02, generator=generator)
            if isinstance(module, torch.nn.Linear) and module.bias is not None:
                module.bias.zero_()
            if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx].zero_()
    return model


def lower_layers(model: torch.nn.Module, layers: int) -> torch.nn.Module:
    """The encoder up to a layer, sharing its weights: what the contrast has to compute."""
    trunk = copy.copy(model.roberta)
    trunk._modules = dict(model.roberta._modules)
    trunk.encoder = copy.copy(model.roberta.encoder)
    trunk.encoder._modules = {"layer": model.roberta.encoder.layer[:layers]}
    return trunk


def masked_loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Cross-entropy (nats) of the masked subwords; the output layer sees no others."""
    attention = None if batch.real.all() else batch.real
    states = model.roberta(batch.ids, attention_mask=attention).last_hidden_state
    chosen = batch.labels != NO_LABEL
    return functional.cross_entropy(model.lm_head(states[chosen]).float(), batch.labels[chosen])


def contrastive_loss(trunk: torch.nn.Module, batch: Batch, temperature: float) -> torch.Tensor:
    """XLCO (Chi et al. 2021, section 3.3): pick the translation among those of the batch, in nats.

    Both directions; the negatives are the other sentences of the batch, in many languages, where
    InfoXLM keeps a queue of them.
    """
    states = trunk(batch.ids, attention_mask=batch.real).last_hidden_state.float()
    inner = (batch.real & (batch.ids != BOS) & (batch.ids != EOS)).unsqueeze(-1)
    pooled = (states * inner).sum(1) / inner.sum(1)
    first, second = functional.normalize(pooled, dim=-1).unflatten(0, (-1, 2)).unbind(1)
    similarity = first @ second.T / temperature
    target = torch.arange(len(similarity), device=similarity.device)
    return 0.5 * (
        functional.cross_entropy(similarity, target)
        + functional.cross_entropy(similarity.T, target)
    )


# --- the run ------------------------------------------------------------------------------------


def step_losses(
    model: torch.nn.Module,
    trunk: torch.nn.Module,
    batches: Batches,
    recipe: Recipe,
    step: int,
    device: torch.device,
) -> Iterator[tuple[str, torch.Tensor, int]]:
    """The losses of a step: (objective, weighted loss, number of tokens)."""
    rng = np.random.default_rng([recipe.seed, step])
    with_contrast = "contrast" in recipe.objectives
    # The contrast of every k-th step takes half of the tokens in the long run.
    tokens = recipe.tokens_per_step // 2 if with_contrast else recipe.tokens_per_step
    masked = [objective for objective in ("mlm", "tlm") if objective in recipe.objectives]
    objective = masked[step % len(masked)]
    batch = getattr(batches, objective)(rng, tokens).to(device)
    yield objective, masked_loss(model, batch), int(batch.real.sum())
    if with_contrast and step % recipe.contrast_every == 0:
        batch = batches.contrast(rng).to(device)
        loss = contrastive_loss(trunk, batch, recipe.temperature)
        yield "contrast", recipe.contrast_weight * loss, int(batch.real.sum())


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to: it becomes `path` when all is written, or goes."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        os.replace(beside, path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        beside.unlink(missing_ok=True)
        raise


def save_checkpoint(
    model: torch.nn.Module, tokenizer: Tokenizer, folder: Path, max_length: int
) -> None:
    """An ordinary Hugging Face folder, weights in float16; complete or not there at all."""
    from transformers import PreTrainedTokenizerFast

    if folder.exists():
        return
    with written_whole(folder) as beside:
        copy.deepcopy(model).to("cpu", torch.float16).save_pretrained(beside)
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            bos_token="<s>",
            cls_token="<s>",
            pad_token="<pad>",
            eos_token="</s>",
            sep_token="</s>",
            unk_token="<unk>",
            mask_token="<mask>",
            model_max_length=max_length,
            model_input_names=["input_ids", "attention_mask"],
        ).save_pretrained(beside)
        file = beside / "tokenizer.json"  # half the size without its indentation
        compact = json.dumps(
            json.loads(file.read_text("utf-8")), ensure_ascii=False, separators=",:"
        )
        file.write_text(compact, encoding="utf-8")


def pretrain(
    recipe: Recipe,
    tokenizer: Tokenizer,
    text: PretrainingText,
    out: Path,
    state: Path,
    *,
    device: str = "cpu",
    save_every: int = 300,
    log_every: int = 50,
    progress: bool = True,
) -> pd.DataFrame:
    """Train a series into ``out``: ``step-*`` folders, ``losses.csv``, ``recipe.json``.

    ``state`` is the file that lets a stopped run go on; the result is the same as without the stop
    (same device, same number of threads). Returns the loss table: one row per ``log_every`` steps
    and objective, with the mean loss in nats. Raises ValueError where ``state`` belongs to another
    recipe, or when the loss is no longer a number.
    """
    out.mkdir(parents=True, exist_ok=True)
    state.parent.mkdir(parents=True, exist_ok=True)
    where = torch.device(device)
    model = untrained(recipe).to(where).train()
    trunk = lower_layers(model, recipe.contrast_layer)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-6, weight_decay=recipe.weight_decay
    )
    described = describe(recipe)
    done, tokens, rows = 0, 0, []
    if state.exists():
        saved = torch.load(state, map_location=where, weights_only=True)
        for what, ours in (("recipe", described), ("vocabulary", tokenizer.to_str())):
            if saved.get(what) != ours:
                raise ValueError(
                    f"{state} was left by a run with another {what}: finish that run, or delete "
                    "the file to start anew"
                )
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        done, tokens, rows = saved["step"], saved["tokens"], saved["rows"]
    with written_whole(out / "recipe.json") as beside:
        beside.write_text(described, encoding="utf-8")
    batches = Batches(text, recipe)
    checkpoints = set(recipe.checkpoint_steps())
    if done == 0:
        save_checkpoint(model, tokenizer, out / "step-000000", recipe.max_length)

    sums: dict[str, list[float]] = {}
    began, before = time.perf_counter(), tokens
    bar = tqdm(total=recipe.steps, initial=done, desc=recipe.name, disable=not progress)
    for step in range(done + 1, recipe.steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate_at(step)
        for objective, loss, n_tokens in _autocast(
            step_losses(model, trunk, batches, recipe, step, where), where
        ):
            loss.backward()
            sums.setdefault(objective, []).append(float(loss.detach()))
            tokens += n_tokens
        norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip))
        if not math.isfinite(norm):
            raise ValueError(
                f"{recipe.name}: the gradient is not a number at step {step}: start from the last "
                "saved state with a lower learning rate"
            )
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        bar.update()
        if step % log_every == 0 or step == recipe.steps:
            speed = (tokens - before) / (time.perf_counter() - began)
            for objective, losses in sorted(sums.items()):
                rows.append(
                    {
                        "step": step,
                        "tokens": tokens,
                        "objective": objective,
                        "loss": round(sum(losses) / len(losses), 4),
                        "learning_rate": round(recipe.learning_rate_at(step), 7),
                        "gradient_norm": round(norm, 3),
                        "tokens_per_second": round(speed),
                    }
                )
            shown = {objective: f"{np.mean(losses):.3f}" for objective, losses in sums.items()}
            bar.set_postfix(shown | {"tokens/s": f"{speed:,.0f}"})
            sums = {}
        if step in checkpoints:
            save_checkpoint(model, tokenizer, out / f"step-{step:06d}", recipe.max_length)
        if step % save_every == 0 or step == recipe.steps:
            left = {
                "recipe": described,
                "vocabulary": tokenizer.to_str(),
                "step": step,
                "tokens": tokens,
                "rows": rows,
                "model": model.state_dict(),
                "optimiser": optimiser.state_dict(),
            }
            with written_whole(state) as beside:
                torch.save(left, beside)
            with written_whole(out / "losses.csv") as beside:
                pd.DataFrame(rows).to_csv(beside, index=False)
    bar.close()
    return pd.DataFrame(rows)


def _autocast(
    losses: Iterable[tuple[str, torch.Tensor, int]], device: torch.device
) -> Iterator[tuple[str, torch.Tensor, int]]:
    """Compute the forward passes, and only them, in bfloat16 where that is exact enough."""
    iterator = iter(losses)
    while True:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            item = next(iterator, None)
        if item is None:
            return
        yield item


def prepare(recipe: Recipe, progress: bool = True) -> tuple[Tokenizer, PretrainingText]:
    """The vocabulary and the text of a recipe, from the shipped archives (about a minute)."""
    text = {source: read_source(source) for source in tqdm(SOURCES, "text", disable=not progress)}
    lines: dict[str, list[str]] = {}
    for by_language in text.values():
        for language, by_id in by_language.items():
            lines.setdefault(language, []).extend(by_id.values())
    tokenizer = train_vocabulary(
        lines, recipe.vocabulary, exponent=recipe.language_exponent, seed=recipe.seed
    )
    return tokenizer, PretrainingText.encode(tokenizer, text, progress)


def finished(recipe: Recipe, out: Path) -> bool:
    """Whether a folder holds this run to its end; ValueError where it holds another recipe's."""
    described = out / "recipe.json"
    if described.exists() and described.read_text("utf-8") != describe(recipe):
        raise ValueError(
            f"{out} holds a run with another recipe: move it away, or name another folder with "
            "--out"
        )
    return (out / f"step-{recipe.steps:06d}").exists()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m xlx.pretraining",
        description="Train a series of miniature models from the shipped text, or go on with it.",
    )
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--out", type=Path, help="folder of the series (data/models/<name>)")
    parser.add_argument("--steps", type=int, help="length of the run")
    parser.add_argument("--seed", type=int, help="of the initial weights and of the batches")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    changes = {key: getattr(options, key) for key in ("steps", "seed")}
    recipe = replace(RECIPES[options.name], **{k: v for k, v in changes.items() if v is not None})
    out = options.out or paths.MODELS / recipe.name
    state = paths.CACHE / "pretraining" / f"{recipe.name}-{recipe.steps}-{recipe.seed}.pt"
    try:
        if finished(recipe, out):
            print(f"{out} holds a finished run of this recipe; --out names another folder")
            return
        pretrain(recipe, *prepare(recipe), out, state, device=options.device)
    except (ValueError, FileNotFoundError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
