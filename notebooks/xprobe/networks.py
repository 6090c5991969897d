"""The networks of X-Probe's encoders (Ravishankar et al. 2019, section 5).

Word vectors ``(b, t, words)`` and lengths ``(b,)`` to sentence vectors ``(b, width)``; ``width`` is
an attribute of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from xprobe.encoders import Sizes


class BiLSTM(nn.Module):
    """Layers of LSTMs in both directions: ``(b, t, words)`` → ``(b, t, 2 * hidden)``; the backward
    one reads sentences turned round. (Packed ones take a CPU two to three times as long.)"""

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


class Recurrent(nn.Module):
    """Maximum of the states over the words, or the last states of both directions."""

    def __init__(self, sizes: Sizes, pooling: str) -> None:
        super().__init__()
        self.lstm, self.last, self.width = BiLSTM(sizes), pooling == "last", 2 * sizes.hidden

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states = self.lstm(embedded, lengths)
        if not self.last:
            return states.masked_fill(_beyond(states, lengths)[:, :, None], -torch.inf).amax(dim=1)
        rows = torch.arange(len(states), device=states.device)
        ahead, back = states.chunk(2, dim=-1)  # the last of these is at the first word
        return torch.cat([ahead[rows, lengths - 1], back[:, 0]], dim=-1)


class Convolutional(nn.Module):
    """Filters of several widths, rectified, their maximum or mean over all places, projected."""

    def __init__(self, sizes: Sizes, pooling: str) -> None:
        super().__init__()
        self.mean, self.width, self.padding = pooling == "mean", sizes.projection, sizes.padding
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


class Attentive(nn.Module):
    """Self-attention over the states H of an LSTM (Lin et al. 2017), of the heads one vector.

    A = softmax over the words of W2 tanh(W1 Hᵀ); M = A H has one row per head. "max" is the maximum
    over the heads; "last", which the paper does not explain, the last row, so others learn nothing.
    """

    def __init__(self, sizes: Sizes, pooling: str) -> None:
        super().__init__()
        self.lstm, self.last, self.width = BiLSTM(sizes), pooling == "last", 2 * sizes.hidden
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


#: By the first part of an encoder's name.
KINDS = {"rnn": Recurrent, "cnn": Convolutional, "attention": Attentive}
