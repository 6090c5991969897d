"""Batches of pretraining: rows of one language, masked; translations; and pairs to contrast.

A batch depends on the seed and the step alone (the generator is made from them), so a run that was
stopped goes on with the batches it would have had.
"""

from dataclasses import dataclass

import numpy as np
import torch

from family.recipes import MemberRecipe
from family.training_text import BOS, EOS, PAD, PretrainingText
from family.vocabulary import N_SPECIAL

NO_LABEL = -100


@dataclass(frozen=True)
class Batch:
    """Subword ids, where they are real, and what the masked ones were (``NO_LABEL`` elsewhere)."""

    ids: torch.Tensor  # (n_sequences, length) int64
    real: torch.Tensor  # (n_sequences, length) bool
    labels: torch.Tensor | None = None

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device."""
        labels = None if self.labels is None else self.labels.to(device)
        return Batch(self.ids.to(device), self.real.to(device), labels)


def mask(
    ids: np.ndarray, rng: np.random.Generator, *, share: float, vocabulary: int
) -> tuple[np.ndarray, np.ndarray]:
    """BERT's masking: of the chosen 80 % become ``<mask>``, 10 % another piece, 10 % stay."""
    chosen = (rng.random(ids.shape) < share) & (ids >= N_SPECIAL)
    if not chosen.any():  # a batch of a few subwords may draw none
        chosen.flat[np.flatnonzero(ids >= N_SPECIAL)[0]] = True
    fate = rng.random(ids.shape)
    masked_ids = np.where(chosen & (fate < 0.8), vocabulary - 1, ids)
    random = rng.integers(N_SPECIAL, vocabulary - 1, ids.shape)
    masked_ids = np.where(chosen & (fate >= 0.9), random, masked_ids)
    return masked_ids, np.where(chosen, ids, NO_LABEL)


def pad(sequences: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of different lengths as one array, ``<pad>`` behind, and where it is real."""
    lengths = np.array([len(sequence) for sequence in sequences])
    real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(real.shape, PAD, dtype=np.int64)
    ids[real] = np.concatenate(sequences)
    return ids, real


def next_subword(ids: np.ndarray, real: np.ndarray) -> Batch:
    """Each position's label is the subword behind it; none at the end, none that is padding."""
    labels = np.full(ids.shape, NO_LABEL, dtype=np.int64)
    labels[:, :-1] = np.where(real[:, 1:], ids[:, 1:], NO_LABEL)
    return Batch(torch.from_numpy(ids), torch.from_numpy(real), torch.from_numpy(labels))


def masked(
    ids: np.ndarray, real: np.ndarray, rng: np.random.Generator, recipe: MemberRecipe
) -> Batch:
    """A batch whose labels are its masked subwords."""
    ids, labels = mask(ids, rng, share=recipe.masked_share, vocabulary=recipe.vocabulary)
    return Batch(torch.from_numpy(ids), torch.from_numpy(real), torch.from_numpy(labels))


def held_out_batches(lines: list[np.ndarray], recipe: MemberRecipe) -> list[Batch]:
    """Held-out lines as batches of similar length, within the token budget; a line a row.

    The same lines and masks for every member with the vocabulary, and for every checkpoint.
    """
    rows = [np.concatenate([[BOS], line[: recipe.max_length - 2], [EOS]]) for line in lines]
    parts = [[]]
    for row in sorted(rows, key=len):
        if parts[-1] and (len(parts[-1]) + 1) * len(row) > recipe.tokens_per_step:
            parts.append([])
        parts[-1].append(row)
    rng = np.random.default_rng(0)
    padded = [pad(part) for part in parts]
    if recipe.decoder:
        return [next_subword(ids, real) for ids, real in padded]
    return [masked(ids, real, rng, recipe) for ids, real in padded]


class Batches:
    """Draws the batches of a step from the text; the same generator draws the same batch."""

    def __init__(self, text: PretrainingText, recipe: MemberRecipe) -> None:
        self.text, self.recipe = text, recipe
        shares = text.language_shares(recipe.language_exponent, recipe.english_share)
        self.languages, self.shares = list(shares.index), shares.to_numpy()
        self.positions = [source.by_length() for source in text.parallel]

    def mlm(self, rng: np.random.Generator, tokens: int) -> Batch:
        """Rows of one language, masked."""
        ids = self.rows(rng, tokens)
        return masked(ids, np.ones(ids.shape, dtype=bool), rng, self.recipe)

    def clm(self, rng: np.random.Generator, tokens: int) -> Batch:
        """Rows of one language; the label of a subword is the one behind it."""
        ids = self.rows(rng, tokens)
        return next_subword(ids, np.ones(ids.shape, dtype=bool))

    def rows(self, rng: np.random.Generator, tokens: int) -> np.ndarray:
        """Runs of consecutive lines of one language, all of one length: nothing is padded.

        Sources of a language have shares by their size (``source_exponent``). ``pair_share`` of the
        rows hold sentences and their translations instead, one behind the other.
        """
        length = int(rng.choice(self.recipe.block_lengths))
        rows = np.empty((max(1, tokens // length), length), dtype=np.int64)
        rows[:, 0] = BOS
        for row, language in enumerate(rng.choice(len(self.languages), len(rows), p=self.shares)):
            if self.recipe.pair_share and rng.random() < self.recipe.pair_share:
                rows[row, 1:] = self._translations(rng, length - 1)
                continue
            sources = self.text.monolingual[self.languages[language]]
            sizes = np.array([len(lines.ids) for lines in sources], dtype=float)
            sizes **= self.recipe.source_exponent
            lines = sources[rng.choice(len(sources), p=sizes / sizes.sum())]
            last = np.searchsorted(lines.starts, len(lines.ids) - length + 1, side="right") - 1
            start = lines.starts[rng.integers(max(last, 0) + 1)]
            rows[row, 1:] = np.resize(lines.ids[start : start + length - 1], length - 1)
        return rows

    def _translations(self, rng: np.random.Generator, length: int) -> np.ndarray:
        """``a </s> b </s> c </s> d </s> ...``: b translates a, and d translates c; cut at the end.

        A pair that does not fit whole is only taken where it is the first.
        """
        row = np.empty(0, dtype=np.int64)
        for first, second in self._pairs(rng, 16, length):
            pair = np.concatenate([first, [EOS], second, [EOS]])
            if not len(row) or len(row) + len(pair) <= length:
                row = np.concatenate([row, pair])
        return np.resize(row, length)

    def tlm(self, rng: np.random.Generator, tokens: int) -> Batch:
        """``<s> a </s> </s> b </s>``, a and b translations of each other.

        As many rows as fit into the token budget, padding counted.
        """
        half = self.recipe.max_length // 2 - 2
        rows = []
        longest = 0
        while True:
            for first, second in self._pairs(rng, 64, half):
                row = np.concatenate([[BOS], first, [EOS, EOS], second, [EOS]])
                longest = max(longest, len(row))
                if rows and (len(rows) + 1) * longest > tokens:
                    return masked(*pad(rows), rng, self.recipe)
                rows.append(row)

    def contrast(self, rng: np.random.Generator) -> Batch:
        """Translations in rows 2i and 2i + 1; no masking."""
        pairs = self._pairs(rng, self.recipe.contrast_pairs, self.recipe.contrast_length - 2)
        ids, real = pad([np.concatenate([[BOS], line, [EOS]]) for pair in pairs for line in pair])
        return Batch(torch.from_numpy(ids), torch.from_numpy(real))

    def _pairs(
        self, rng: np.random.Generator, count: int, longest: int
    ) -> list[tuple[np.ndarray, ...]]:
        """Positions of one source, alike in length, each in two languages drawn evenly."""
        which = rng.integers(len(self.text.parallel))
        source, order = self.text.parallel[which], self.positions[which]
        window = min(len(order), 4 * count)
        start = rng.integers(len(order) - window + 1)
        chosen = rng.choice(order[start : start + window], min(count, window), replace=False)
        pairs = []
        for position in chosen:
            line = source.line[position]
            columns = rng.choice(np.flatnonzero(line >= 0), 2, replace=False)
            pairs.append(tuple(source.lines[c][line[c]][:longest] for c in columns))
        return pairs
