"""Sentence encoders over frozen word vectors: recurrent, convolutional and self-attentive.

The six encoders of Ravishankar, Øvrelid and Velldal (2019, section 5), each a way to turn the word
vectors of a sentence into one vector; `xlx.xprobe.encoder_training` trains and maps them.

    barking = Sentences.of([["A", "dog", "barks", "."]], vectors.lookup)
    encode("rnn-max", MINI, weights(encoder("rnn-max", MINI, seed=1)), barking)  # float32 (1, 128)

Padding changes nothing: a sentence has the same vector whatever it shares its batch with (but for
the last digits, since sums of another size are added up in another order).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from xlx.core import checks
from xlx.core.executors import one_thread
from xlx.models import loading

#: As the paper's figures and tables call them.
ENCODER_NAMES = {
    "rnn-max": "RNN (maxpool)",
    "rnn-last": "RNN (last)",
    "cnn-max": "CNN (maxpool)",
    "cnn-mean": "CNN (avg. pool)",
    "attention-max": "Attention (maxpool)",
    "attention-last": "Attention (last)",
}
ENCODERS = tuple(ENCODER_NAMES)
#: Words (padding included) of a batch that is only encoded; it moves speed and the last digits.
BATCH_TOKENS = 8192


class EncoderError(ValueError):
    """An encoder that cannot be built, trained or asked; says why and what to do."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of the encoders, by default those of Table 2.

    ``words`` is the width of the word vectors; ``hidden`` that of each direction of an LSTM of so
    many ``layers``, between which the share ``dropout`` is dropped in training (the paper gives
    10 % without a place). A convolutional encoder has ``channels`` of each of its ``filters``
    (widths in words), with so many zero vectors of ``padding`` before and after a sentence, and a
    vector of ``projection`` numbers. (That Table 2's 800 channels are of each width follows Gan et
    al. 2017: 5.3 million weights beside the recurrent 9.7, not section 5's "order of magnitude".)
    Attention has a hidden layer of ``attention`` units and so many ``heads``.
    """

    words: int = 300
    hidden: int = 512
    layers: int = 2
    dropout: float = 0.1
    channels: int = 800
    filters: tuple[int, ...] = (3, 4, 5)
    padding: tuple[int, ...] = (1, 2, 2)
    projection: int = 1024
    attention: int = 150
    heads: int = 60

    def __post_init__(self) -> None:
        for name in ("words", "hidden", "layers", "channels", "projection", "attention", "heads"):
            checks.whole(getattr(self, name), name, EncoderError)
        if not 0 <= self.dropout < 1:
            raise EncoderError(f"dropout is {self.dropout}: it is a share, below 1")
        if not self.filters or len(self.filters) != len(self.padding):
            raise EncoderError(
                f"{len(self.filters)} filters and {len(self.padding)} paddings: each filter has one"
            )


#: Small enough to train dozens of encoders in a minute; one layer, so nothing is dropped out.
MINI = Sizes(
    words=100, hidden=64, layers=1, dropout=0.0, channels=64, projection=128, attention=32, heads=8
)


# --- what they read -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences as numbers of word types.

    ``vectors`` is float32 ``(n_types, words)``, never trained; ``ids`` has for each sentence int64
    ``(n_words,)``, rows of ``vectors``.
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
        EncoderError for no sentence, and for one without words.
        """
        if not len(token_lists):
            raise EncoderError("there are no sentences")
        types: dict[str, int] = {}
        ids = []
        for position, words in enumerate(token_lists):
            if not len(words):
                raise EncoderError(f"sentence {position} (from 0) has no words: leave it out")
            ids.append(np.array([types.setdefault(word, len(types)) for word in words], np.int64))
        return cls(np.ascontiguousarray(lookup(list(types)), dtype=np.float32), tuple(ids))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Sequence[int] | np.ndarray) -> "Sentences":
        """The sentences at these positions, in this order."""
        return Sentences(self.vectors, tuple(self.ids[row] for row in rows))


def mean_vectors(sentences: Sentences) -> np.ndarray:
    """The mean of the vectors of each sentence's words, float32 ``(n, words)``."""
    return np.stack([sentences.vectors[ids].mean(axis=0) for ids in sentences.ids])


class SentenceTable:
    """Sentences on a device, where batches of them are laid out; ``lengths`` is int64 ``(n,)``."""

    def __init__(self, sentences: Sentences, width: int, device: torch.device) -> None:
        """Raises EncoderError where the word vectors have not the width that is taken."""
        if (own := sentences.vectors.shape[1]) != width:
            raise EncoderError(f"the word vectors are {own} wide, the encoder takes {width}")
        self.lengths = np.array([len(words) for words in sentences.ids])
        self._flat = np.concatenate(sentences.ids)
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._padding = len(sentences.vectors)
        padded = np.concatenate([sentences.vectors, np.zeros_like(sentences.vectors[:1])])
        self._vectors = torch.from_numpy(padded).to(device)

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


# --- encoders -------------------------------------------------------------------------------------


class SentenceEncoder(nn.Module):
    """Word vectors ``(b, t, words)`` and lengths ``(b,)`` → sentence vectors ``(b, width)``."""

    width: int


class _BiLSTM(nn.Module):
    """Layers of LSTMs in both directions: ``(b, t, words)`` → ``(b, t, 2 * hidden)``.

    The backward one reads sentences that are turned round within their lengths, so that padding is
    always behind: packed sequences take a CPU two to three times as long.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.dropout = sizes.dropout
        widths = [sizes.words] + [2 * sizes.hidden] * (sizes.layers - 1)
        self.forwards, self.backwards = (
            nn.ModuleList(nn.LSTM(width, sizes.hidden, batch_first=True) for width in widths)
            for _ in range(2)
        )

    def forward(self, states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(states.shape[1], device=states.device)
        ends = lengths[:, None]
        places = torch.where(steps < ends, ends - 1 - steps, steps)[:, :, None]

        def turned(x: torch.Tensor) -> torch.Tensor:
            return x.gather(1, places.expand_as(x))

        for layer, (ahead, back) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            if layer:
                states = functional.dropout(states, self.dropout, self.training)
            states = torch.cat([ahead(states)[0], turned(back(turned(states))[0])], dim=-1)
        return states


class _Recurrent(SentenceEncoder):
    """Maximum of the states over the words, or the last states of both directions."""

    def __init__(self, sizes: Sizes, *, last: bool) -> None:
        super().__init__()
        self.lstm, self.last, self.width = _BiLSTM(sizes), last, 2 * sizes.hidden

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states = self.lstm(embedded, lengths)
        if not self.last:
            return states.masked_fill(_beyond(states, lengths)[:, :, None], -torch.inf).amax(dim=1)
        rows = torch.arange(len(states), device=states.device)
        ahead, back = states.chunk(2, dim=-1)  # the last of these is at the first word
        return torch.cat([ahead[rows, lengths - 1], back[:, 0]], dim=-1)


class _Convolutional(SentenceEncoder):
    """Filters of several widths, rectified, their maximum or mean over all places, projected."""

    def __init__(self, sizes: Sizes, *, mean: bool) -> None:
        super().__init__()
        self.mean, self.width, self.padding = mean, sizes.projection, sizes.padding
        self.filters = nn.ModuleList(
            nn.Conv1d(sizes.words, sizes.channels, width) for width in sizes.filters
        )
        self.projection = nn.Linear(sizes.channels * len(sizes.filters), sizes.projection)

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        words = embedded.masked_fill(_beyond(embedded, lengths)[:, :, None], 0).transpose(1, 2)
        pooled = []
        for conv, padding in zip(self.filters, self.padding, strict=True):
            (width,) = conv.kernel_size
            # Enough behind for one place even in the shortest batch.
            behind = max(padding, width - padding - words.shape[2])
            maps = functional.relu(conv(functional.pad(words, (padding, behind))))
            places = (lengths + 2 * padding - width + 1).clamp(min=1)  # one if it is too short
            # After the rectifier zero is as good as nothing, for a maximum and for a sum.
            maps = maps.masked_fill(_beyond(maps.transpose(1, 2), places)[:, None], 0)
            pooled.append(maps.sum(dim=2) / places[:, None] if self.mean else maps.amax(dim=2))
        return self.projection(torch.cat(pooled, dim=1))


class _Attentive(SentenceEncoder):
    """Self-attention over the states H of an LSTM (Lin et al. 2017), of the heads one vector.

    A = softmax over the words of W2 tanh(W1 Hᵀ), without bias; M = A H has one row a head. "max" is
    the maximum over the heads. For "last" the paper says no more than the word; here it is the last
    row of M, so that the other heads learn nothing.
    """

    def __init__(self, sizes: Sizes, *, last: bool) -> None:
        super().__init__()
        self.lstm, self.last, self.width = _BiLSTM(sizes), last, 2 * sizes.hidden
        self.first = nn.Linear(2 * sizes.hidden, sizes.attention, bias=False)
        self.second = nn.Linear(sizes.attention, sizes.heads, bias=False)

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states = self.lstm(embedded, lengths)
        scores = self.second(torch.tanh(self.first(states)))
        attention = scores.masked_fill(_beyond(states, lengths)[:, :, None], -torch.inf).softmax(1)
        heads = attention.transpose(1, 2) @ states  # (b, heads, 2 * hidden)
        return heads[:, -1] if self.last else heads.amax(dim=1)


def _beyond(states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """bool ``(b, t)``: the places of ``states`` ``(b, t, ...)`` that are behind the sentence."""
    return torch.arange(states.shape[1], device=states.device) >= lengths[:, None]


def encoder(name: str, sizes: Sizes, seed: int) -> SentenceEncoder:
    """An encoder with random weights (the usual ones of its layers), drawn from ``seed``.

    Raises EncoderError for a name that is none of `ENCODERS`.
    """
    if name not in ENCODERS:
        raise EncoderError(f"the encoder {name!r} is none of {', '.join(ENCODERS)}")
    kind, pooling = name.split("-")
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        if kind == "cnn":
            return _Convolutional(sizes, mean=pooling == "mean")
        if kind == "rnn":
            return _Recurrent(sizes, last=pooling == "last")
        return _Attentive(sizes, last=pooling == "last")


def weights(module: nn.Module) -> dict[str, np.ndarray]:
    """The weights of a module, copied: name → float32 array."""
    return {name: x.detach().cpu().numpy().copy() for name, x in module.state_dict().items()}


# --- vectors --------------------------------------------------------------------------------------


def encode(
    name: str, sizes: Sizes, state: Mapping[str, np.ndarray], sentences: Sentences
) -> np.ndarray:
    """Vectors of sentences by an encoder with the given `weights`: float32 ``(n, width)``.

    On the device that the settings name; a CPU works with one thread. EncoderError for an unknown
    encoder, and for word vectors of another width.
    """
    where = loading.device_of(None)
    table = SentenceTable(sentences, sizes.words, where)
    net = encoder(name, sizes, seed=0)
    net.load_state_dict({key: torch.from_numpy(x) for key, x in state.items()})
    with one_thread():
        return vectors_of(net.to(where), table).cpu().numpy()


@torch.inference_mode()
def vectors_of(net: SentenceEncoder, table: SentenceTable) -> torch.Tensor:
    """Vectors ``(n, width)`` of all sentences of a table, nothing dropped out."""
    net.eval()
    return pieces_encoded(net, table, np.arange(len(table.lengths)))


def pieces_encoded(
    net: SentenceEncoder, table: SentenceTable, rows: np.ndarray, size: int | None = None
) -> torch.Tensor:
    """Vectors ``(len(rows), width)`` of some sentences, those of like length together.

    ``size`` at a time, or as many as `BATCH_TOKENS` allows (a longer one is alone). So a batch may
    be drawn at random and yet hold little padding.
    """
    order = np.argsort(table.lengths[rows], kind="stable")
    cuts = list(range(size, len(rows), size)) if size else _cuts(table.lengths[rows][order])
    pieces = [net(*table.embedded(rows[piece])) for piece in np.split(order, cuts)]
    vectors = torch.cat(pieces)
    return vectors[torch.from_numpy(np.argsort(order, kind="stable")).to(vectors.device)]


def _cuts(lengths: np.ndarray) -> list[int]:
    """Where to part sentences of rising length."""
    start, cuts = 0, []
    for end, longest in enumerate(lengths):
        if end > start and (end + 1 - start) * longest > BATCH_TOKENS:
            cuts.append(start := end)
    return cuts
