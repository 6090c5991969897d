"""Sentence encoders over frozen word vectors: recurrent, convolutional and self-attentive.

The six encoders of Ravishankar, Øvrelid and Velldal (2019, section 5), each a way to turn the word
vectors of a sentence into one vector. They are built here from random weights and asked for their
vectors; `xlx.xprobe.encoder_training` trains them on natural language inference and maps them to
another language.

    found = Sentences.of([["A", "dog", "barks", "."]], vectors.lookup)
    net = encoder("rnn-max", MINI, seed=1)
    encode("rnn-max", MINI, weights(net), found)  # float32 (1, 128)

Padding changes nothing: a sentence has the same vector whatever it shares its batch with (but for
the last digits, since sums of another size are added up in another order).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from xlx.core.executors import one_thread
from xlx.models import loading
from xlx.xprobe.encoder_inputs import EncoderError, Sentences, SentenceTable

ENCODERS = ("rnn-max", "rnn-last", "cnn-max", "cnn-mean", "attention-max", "attention-last")
#: As the paper's figures and tables call them.
ENCODER_NAMES = {
    "rnn-max": "RNN (maxpool)",
    "rnn-last": "RNN (last)",
    "cnn-max": "CNN (maxpool)",
    "cnn-mean": "CNN (avg. pool)",
    "attention-max": "Attention (maxpool)",
    "attention-last": "Attention (last)",
}
#: Words (padding included) of a batch that is only encoded; it moves speed and the last digits.
BATCH_TOKENS = 8192


@dataclass(frozen=True)
class Sizes:
    """The sizes of the encoders. The defaults are those of Table 2.

    The six vectors have the same width where ``projection`` is twice ``hidden``, as in the paper.

    Attributes
    ----------
    words : int
        Width of the word vectors.
    hidden, layers : int
        Of the bidirectional LSTM, per direction, of recurrent and attentive encoders.
    dropout : float
        Share of the values that is dropped between the layers of the LSTM in training, so of none
        with one layer. The paper gives 10 % without a place; this is the meaning that the option of
        this name has in the usual libraries.
    channels : int
        Of each of the convolutional ``filters``. (Table 2 says 800; that these are 800 of each
        width follows Gan et al. 2017. The convolutional encoder then has 5.3 million weights and
        the recurrent one 9.7, not the "order of magnitude" between them of section 5.)
    filters, padding : tuple of int
        Widths in words, and for each how many zero vectors stand before and after a sentence.
    projection : int
        Width of the vector of a convolutional encoder.
    attention, heads : int
        Width of the hidden layer that gives the attention of each word, and how many distributions
        of attention there are.
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
        counts = ("words", "hidden", "layers", "channels", "projection", "attention", "heads")
        for name in counts:
            if getattr(self, name) < 1:
                raise EncoderError(f"{name} is {getattr(self, name)}: it must be 1 or more")
        if not 0 <= self.dropout < 1:
            raise EncoderError(f"dropout is {self.dropout}: it is a share, below 1")
        if not self.filters or len(self.filters) != len(self.padding):
            raise EncoderError(
                f"{len(self.filters)} filters and {len(self.padding)} paddings: each filter has one"
            )
        if min(self.filters) < 1 or min(self.padding) < 0:
            raise EncoderError("filters are 1 word wide or more, paddings 0 or more")


#: Small enough to train dozens of encoders in a minute; one layer, so nothing is dropped out.
MINI = Sizes(
    words=100, hidden=64, layers=1, dropout=0.0, channels=64, projection=128, attention=32, heads=8
)


# --- encoders -------------------------------------------------------------------------------------


class SentenceEncoder(nn.Module):
    """Word vectors ``(b, t, words)`` and lengths ``(b,)`` → sentence vectors ``(b, width)``.

    What stands in the word vectors beyond the length of a sentence is not looked at.
    """

    width: int


class _BiLSTM(nn.Module):
    """Layers of LSTMs in both directions: ``(b, t, words)`` → ``(b, t, 2 * hidden)``.

    Each direction is an LSTM of its own, the backward one over sentences that are turned round
    within their lengths, so that padding is always behind. This needs no packed sequences, which
    take a CPU two to three times as long.
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
    """Maximum of the states over the words, or the last state of each direction, side by side.

    The last state of the backward direction is the one at the first word.
    """

    def __init__(self, sizes: Sizes, *, last: bool) -> None:
        super().__init__()
        self.lstm, self.last, self.width = _BiLSTM(sizes), last, 2 * sizes.hidden

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states = self.lstm(embedded, lengths)
        if not self.last:
            return states.masked_fill(_beyond(states, lengths)[:, :, None], -torch.inf).amax(dim=1)
        rows = torch.arange(len(states), device=states.device)
        ahead, back = states.chunk(2, dim=-1)
        return torch.cat([ahead[rows, lengths - 1], back[:, 0]], dim=-1)


class _Convolutional(SentenceEncoder):
    """Filters of several widths, rectified, their maximum or mean over all places, projected.

    A sentence that is shorter than a filter, its padding counted, has one place there.
    """

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
            places = (lengths + 2 * padding - width + 1).clamp(min=1)
            # After the rectifier zero is as good as nothing, for a maximum and for a sum.
            maps = maps.masked_fill(_beyond(maps.transpose(1, 2), places)[:, None], 0)
            pooled.append(maps.sum(dim=2) / places[:, None] if self.mean else maps.amax(dim=2))
        return self.projection(torch.cat(pooled, dim=1))


class _Attentive(SentenceEncoder):
    """Self-attention over the states H of an LSTM (Lin et al. 2017), of the heads one vector.

    A = softmax over the words of W2 tanh(W1 Hᵀ), without bias; M = A H has one row a head. "max" is
    the maximum over the heads. For "last" the paper says no more than the word; here it is the last
    row of M, so that the other heads learn nothing and it is attention with one head. (Other
    readings: the attention-weighted state at the last word; the last states of both directions
    besides.)
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


def with_weights(
    name: str, sizes: Sizes, state: Mapping[str, np.ndarray], device: torch.device
) -> SentenceEncoder:
    """An encoder with these weights, on a device. Raises EncoderError where they are another's."""
    net = encoder(name, sizes, seed=0)
    try:
        net.load_state_dict({key: torch.from_numpy(x) for key, x in state.items()})
    except RuntimeError as error:
        raise EncoderError(f"these are not the weights of {name} at {sizes}: {error}") from None
    return net.to(device)


# --- vectors --------------------------------------------------------------------------------------


def encode(
    name: str,
    sizes: Sizes,
    state: Mapping[str, np.ndarray],
    of: Sentences,
    *,
    batch_tokens: int = BATCH_TOKENS,
) -> np.ndarray:
    """Vectors of sentences by an encoder with the given weights (of `weights`): float32 ``(n, d)``.

    On the device that the settings name; a CPU works with one thread.

    Parameters
    ----------
    batch_tokens : int
        Words of a batch at most, padding included (a longer sentence is a batch of its own).

    Raises
    ------
    EncoderError
        An unknown encoder, weights of another encoder, word vectors of another width.
    """
    where = loading.device_of(None)
    table = SentenceTable(of, sizes.words, where)
    net = with_weights(name, sizes, state, where)
    with one_thread():
        return vectors_of(net, table, batch_tokens=batch_tokens).cpu().numpy()


@torch.inference_mode()
def vectors_of(
    net: SentenceEncoder, table: SentenceTable, *, batch_tokens: int = BATCH_TOKENS
) -> torch.Tensor:
    """Vectors ``(n, width)`` of all sentences of a table, nothing dropped out."""
    net.eval()
    order = np.argsort(table.lengths, kind="stable")
    pieces = [net(*table.embedded(rows)) for rows in _pieces(order, table.lengths, batch_tokens)]
    return _in_order(pieces, order)


def pieces_encoded(
    net: SentenceEncoder, table: SentenceTable, rows: np.ndarray, size: int
) -> torch.Tensor:
    """Vectors ``(len(rows), width)`` of some sentences, ``size`` of like length at a time.

    So a batch may be drawn at random and yet hold little padding.
    """
    order = np.argsort(table.lengths[rows], kind="stable")
    pieces = [
        net(*table.embedded(rows[order[start : start + size]]))
        for start in range(0, len(rows), size)
    ]
    return _in_order(pieces, order)


def _in_order(pieces: Sequence[torch.Tensor], order: np.ndarray) -> torch.Tensor:
    """Rows that were computed in some order, as they stood before."""
    rows = torch.cat(list(pieces))
    return rows[torch.from_numpy(np.argsort(order, kind="stable")).to(rows.device)]


def _pieces(order: np.ndarray, lengths: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Sentences by rising length, parted so that none but a single one has more than ``tokens``."""
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens:
            yield order[start:end]
            start = end
