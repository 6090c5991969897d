"""What a sentence encoder reads: sentences as numbers of word types, laid out in batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional


class EncoderError(ValueError):
    """An encoder that cannot be built, trained or asked; says why and what to do."""


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences as numbers of word types.

    Attributes
    ----------
    vectors : np.ndarray
        float32 ``(n_types, words)``: the vector of each type, never trained.
    ids : tuple of np.ndarray
        For each sentence int64 ``(n_words,)``, rows of ``vectors``.
    """

    vectors: np.ndarray
    ids: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        token_lists: Sequence[Sequence[str]],
        lookup: Callable[[Sequence[str]], np.ndarray],
    ) -> "Sentences":
        """Sentences of words, with the vectors that ``lookup`` has for words: ``(n_types, dim)``.

        A word without a vector is what ``lookup`` makes of it (zeros, say): it keeps its place.
        EncoderError for no sentence, one without words, and a vector that is not finite.
        """
        if not len(token_lists):
            raise EncoderError("there are no sentences")
        types: dict[str, int] = {}
        ids = []
        for position, words in enumerate(token_lists):
            if not len(words):
                raise EncoderError(f"sentence {position} (from 0) has no words: leave it out")
            ids.append(np.array([types.setdefault(word, len(types)) for word in words], np.int64))
        vectors = np.ascontiguousarray(lookup(list(types)), dtype=np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise EncoderError(f"the vector of {list(types)[int(finite.argmin())]!r} is not finite")
        return cls(vectors, tuple(ids))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Sentences: {len(self)}, {len(self.vectors)} types, {self.vectors.shape[1]} wide>"

    @property
    def lengths(self) -> np.ndarray:
        """int64 ``(n,)``: words of each sentence."""
        return np.array([len(words) for words in self.ids])

    def take(self, rows: Sequence[int] | np.ndarray) -> "Sentences":
        """The sentences at these positions, in this order."""
        return Sentences(self.vectors, tuple(self.ids[row] for row in rows))


class SentenceTable:
    """Sentences on a device, where batches of them are laid out."""

    def __init__(self, sentences: Sentences, width: int, device: torch.device) -> None:
        """Raises EncoderError where the word vectors have not the width that is taken."""
        if (own := sentences.vectors.shape[1]) != width:
            raise EncoderError(f"the word vectors are {own} wide, the encoder takes {width}")
        self.lengths = sentences.lengths
        self._flat = np.concatenate(sentences.ids)
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._padding = len(sentences.vectors)
        padded = np.concatenate([sentences.vectors, np.zeros_like(sentences.vectors[:1])])
        self._vectors = torch.from_numpy(padded).to(device)

    def __len__(self) -> int:
        return len(self.lengths)

    def embedded(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Word vectors ``(b, t, words)``, zero beyond the end, and lengths ``(b,)``."""
        lengths = self.lengths[rows]
        steps = np.arange(lengths.max())
        places = np.minimum(self._starts[rows][:, None] + steps, len(self._flat) - 1)
        ids = np.where(steps < lengths[:, None], self._flat[places], self._padding)
        device = self._vectors.device
        return (
            functional.embedding(torch.from_numpy(ids).to(device), self._vectors),
            torch.from_numpy(lengths).to(device),
        )
