"""Train sentence encoders on natural language inference and map them to another language.

Sections 5.1 and 5.2 of Ravishankar, Øvrelid and Velldal (2019). An English encoder learns to tell
entailment, neutral and contradiction apart (`train_nli`). Then an encoder of the same kind for
another language, from random weights, learns to give the translations of English sentences the
vectors of these (`align`), with word vectors that were mapped into one space before.

    english = train_nli("rnn-max", premises, hypotheses, labels, held_out, sizes=MINI, epochs=8)
    german = align(english, english_lines, german_lines, german_held_out)
    nli_predictions(german, german_premises, german_hypotheses)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn import functional

from xlx.core import checks
from xlx.core.executors import one_thread
from xlx.models import loading
from xlx.text import labelled
from xlx.xprobe.sentence_encoders import (
    EncoderError,
    SentenceEncoder,
    Sentences,
    SentenceTable,
    Sizes,
    encode,
    encoder,
    pieces_encoded,
    vectors_of,
    weights,
)

#: Sentences of like length that are encoded at once in training; moves speed and the last digits.
PIECE = 16

#: Premises, hypotheses, and classes (places in ``labelled.NLI``), int64 ``(n,)``.
LabelledPairs = tuple[Sentences, Sentences, np.ndarray]


@dataclass(frozen=True, eq=False)
class InferenceEncoder:
    """A trained encoder, of English or mapped to another language, with the English classifier.

    ``state`` and ``classifier`` are the weights after the best epoch, float32. ``history`` has a
    row an epoch: ``epoch`` (from 1), mean ``loss`` of what it learns from, of a mapped one the mean
    ``cosine`` of translations while training, and the ``accuracy`` on inference of the validation
    pairs, 0 to 1.
    """

    name: str
    sizes: Sizes
    state: dict[str, np.ndarray]
    classifier: dict[str, np.ndarray]
    history: pd.DataFrame


# --- inference ------------------------------------------------------------------------------------


def pair_features(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """[u, v, u ∗ v, |u − v|] ``(n, 4 * width)`` of premises and hypotheses ``(n, width)``."""
    return torch.cat([u, v, u * v, (u - v).abs()], dim=-1)


def train_nli(
    name: str,
    premises: Sentences,
    hypotheses: Sentences,
    labels: np.ndarray,
    validation: LabelledPairs,
    *,
    sizes: Sizes,
    seed: int = 1,
    epochs: int = 20,
    batch_size: int = 10,
    learning_rate: float = 1e-3,
    patience: int = 2,
) -> InferenceEncoder:
    """Train an encoder and a classifier of its vectors on inference, word vectors held fixed.

    One encoder for premises and hypotheses (Conneau et al. 2017). The classifier is one linear
    layer over `pair_features` and a softmax over the three classes: the paper names no hidden
    layer (InferSent has one of 512). It trains with Adam, on the device of the settings; batches
    are random, but the pairs of one premise come one after another (XNLI and MultiNLI have three),
    so that it is encoded once a batch. By the ``validation`` pairs the best epoch is chosen (the
    first of equals); training ends after ``patience`` epochs in a row without a better accuracy.
    ``seed`` is that of the weights, the order of pairs and what is dropped out.

    Raises EncoderError for options out of range, and a loss that is no longer a number.
    """
    where = loading.device_of(None)
    net = encoder(name, sizes, seed).to(where)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        head = nn.Linear(4 * net.width, len(labelled.NLI)).to(where)
    numbers = [_numbered(side) for side in (premises, hypotheses)]
    tables = [
        SentenceTable(side.take(np.unique(own, return_index=True)[1]), sizes.words, where)
        for side, own in zip((premises, hypotheses), numbers, strict=True)
    ]
    classes = torch.from_numpy(np.asarray(labels, np.int64)).to(where)

    def losses(rows: np.ndarray, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        u, v = (_encoded(net, *side, rows) for side in zip(tables, numbers, strict=True))
        return {"loss": functional.cross_entropy(head(pair_features(u, v)), classes[rows])}

    best, history = _train(
        f"{name}, inference", nn.ModuleList([net, head]), numbers[0], losses,
        _accuracy(net, head, validation, sizes.words, where),
        seed=seed, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate,
        patience=patience,
    )  # fmt: skip
    parts = [
        {key.removeprefix(start): x for key, x in best.items() if key.startswith(start)}
        for start in ("0.", "1.")
    ]
    return InferenceEncoder(name, sizes, *parts, history)


def _numbered(side: Sentences) -> np.ndarray:
    """For each sentence its number among the different ones: XNLI has each premise three times."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(words.tobytes(), len(seen)) for words in side.ids])


def _encoded(
    net: SentenceEncoder, table: SentenceTable, numbers: np.ndarray, rows: np.ndarray
) -> torch.Tensor:
    """Vectors of some of the sentences, each different one encoded once."""
    different, places = np.unique(numbers[rows], return_inverse=True)
    vectors = pieces_encoded(net, table, different, PIECE)
    return vectors[torch.from_numpy(places).to(vectors.device)]


def nli_predictions(
    trained: InferenceEncoder, premises: Sentences, hypotheses: Sentences
) -> np.ndarray:
    """Classes of pairs of the encoder's language, int64 ``(n,)``, places in ``labelled.NLI``."""
    u, v = (
        torch.from_numpy(encode(trained.name, trained.sizes, trained.state, side))
        for side in (premises, hypotheses)
    )
    return _classified(_head(trained, torch.device("cpu")), u, v)


def _head(trained: InferenceEncoder, device: torch.device) -> nn.Linear:
    n_classes, width = trained.classifier["weight"].shape
    head = nn.Linear(width, n_classes)
    head.load_state_dict({key: torch.from_numpy(x) for key, x in trained.classifier.items()})
    return head.to(device)


@torch.inference_mode()
def _classified(head: nn.Linear, u: torch.Tensor, v: torch.Tensor) -> np.ndarray:
    return head(pair_features(u, v)).argmax(dim=1).cpu().numpy()


def _accuracy(
    net: SentenceEncoder, head: nn.Linear, pairs: LabelledPairs, width: int, device: torch.device
) -> Callable[[], float]:
    """What asks a net and a classifier, as they stand then, for the classes of pairs."""
    sides = [SentenceTable(side, width, device) for side in pairs[:2]]

    def accuracy() -> float:
        predicted = _classified(head, *(vectors_of(net, side) for side in sides))
        return float(np.mean(predicted == np.asarray(pairs[2])))

    return accuracy


# --- mapping --------------------------------------------------------------------------------------


def alignment_loss(
    x: torch.Tensor, y: torch.Tensor, x_c: torch.Tensor, y_c: torch.Tensor, lam: float = 0.25
) -> torch.Tensor:
    """‖x − y‖² − λ(‖x_c − y‖² + ‖x − y_c‖²), the mean over a batch (section 5.2).

    Rows of x and y ``(n, width)`` are vectors of translations of one another; x_c and y_c are
    vectors of other sentences of the two languages.

    **The best y is not x.** With x_c and y_c drawn from all sentences, whose mean is x̄ in English,
    the expected loss is, but for a constant, ‖x − y‖² − 2λ‖y − x̄‖² (each y is as often the other
    sentence as it has one), and its minimum lies, where 2λ < 1, at

        y = x̄ + (x − x̄) / (1 − 2λ),

    so at the paper's λ = 0.25 mapped vectors are to stand apart from their mean twice as far as
    the English ones, in the same directions: cosines about the mean tell of success, norms and the
    loss itself (below zero) do not. A vector that is bounded, such as the states of an LSTM, gets
    there only within its bounds. With n sentences of which each is drawn but the own, the factor is
    (1 + 2λ / (n − 1)) / (1 − 2λ), a little more.

    (The squares are those of the paper, which speaks of a mean-squared error. Conneau et al. 2018,
    whom it follows, have the distances themselves, of which y = x is the best where 2λ < 1.)
    """
    near = (x - y).square().sum(dim=-1)
    far = (x_c - y).square().sum(dim=-1) + (x - y_c).square().sum(dim=-1)
    return (near - lam * far).mean()


def align(
    english: InferenceEncoder,
    source: Sentences,
    target: Sentences,
    validation: LabelledPairs,
    *,
    lam: float = 0.25,
    seed: int = 1,
    max_epochs: int = 20,
    patience: int = 2,
    batch_size: int = 10,
    learning_rate: float = 1e-3,
) -> InferenceEncoder:
    """Map an English encoder to another language by translations.

    A target encoder of the same kind, from random weights, learns with `alignment_loss`; λ is at
    least 0 and below 0.5, where the loss ceases to have a minimum. The English one is held fixed.
    ``target`` translates ``source``, with word vectors in the space of the English ones. The other
    sentences x_c and y_c of a pair are others of the same random batch, for each language another
    ring through the batch, so that each sentence is the other of one and none its own.

    The ``validation`` pairs are of the target language; they, the other options and errors are as
    in `train_nli`. EncoderError also for fewer than two translations, or two in a batch.
    """
    if len(target) < 2 or batch_size < 2:
        raise EncoderError(
            f"there are {len(target)} translations, and batch_size is {batch_size}: a mapping "
            "needs others in a batch, so two or more"
        )
    if not 0 <= lam < 0.5:
        raise EncoderError(f"lam is {lam}: at least 0, and below 0.5, where minima end")
    where = loading.device_of(None)
    name, sizes = english.name, english.sizes
    x = torch.from_numpy(encode(name, sizes, english.state, source)).to(where)
    net = encoder(name, sizes, seed).to(where)
    table = SentenceTable(target, sizes.words, where)

    def losses(rows: np.ndarray, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        x_b, y = x[rows], pieces_encoded(net, table, rows, PIECE)
        others = [torch.from_numpy(_ring(len(rows), rng)).to(where) for _ in range(2)]
        loss = alignment_loss(x_b, y, x_b[others[0]], y[others[1]], lam)
        return {"loss": loss, "cosine": functional.cosine_similarity(x_b, y.detach()).mean()}

    best, history = _train(
        f"{name}, mapping", net, np.arange(len(target)), losses,
        _accuracy(net, _head(english, where), validation, sizes.words, where),
        seed=seed, epochs=max_epochs, batch_size=batch_size, learning_rate=learning_rate,
        patience=patience,
    )  # fmt: skip
    return replace(english, state=best, history=history)


def _ring(n: int, rng: np.random.Generator) -> np.ndarray:
    """int64 ``(n,)``: for each of n another one, all along one random ring."""
    order = rng.permutation(n)
    others = np.empty(n, np.int64)
    others[order] = np.roll(order, 1)
    return others


# --- training -------------------------------------------------------------------------------------

#: Rows of a batch and a generator → what is learnt by, "loss", and further figures of the batch.
_Losses = Callable[[np.ndarray, np.random.Generator], dict[str, torch.Tensor]]


@one_thread()
def _train(
    what: str,
    module: nn.Module,
    groups: np.ndarray,
    losses: _Losses,
    accuracy: Callable[[], float],
    *,
    seed: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    patience: int,
) -> tuple[dict[str, np.ndarray], pd.DataFrame]:
    """Weights of the best epoch, and the history. Rows of a group ``(n,)`` go into one batch."""
    checks.whole(epochs, "epochs", EncoderError)
    checks.whole(batch_size, "batch_size", EncoderError)
    n, device = len(groups), next(module.parameters()).device
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    best: dict[str, np.ndarray] = {}
    history: list[dict[str, float]] = []
    reached, waited = -math.inf, 0
    for epoch in range(1, epochs + 1):
        module.train()
        rng = np.random.default_rng([seed, epoch])
        order = np.argsort(rng.permutation(groups.max() + 1)[groups], kind="stable")
        sums: dict[str, float] = {}
        # Dropout has no generator of its own; fork_rng leaves that of the process as it was.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(int(rng.integers(2**63)))
            for rows in np.array_split(order, max(1, n // batch_size)):
                figures = losses(rows, rng)
                figures["loss"].backward()
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                for key, number in figures.items():
                    sums[key] = sums.get(key, 0.0) + number.item() * len(rows) / n
        if not math.isfinite(sums["loss"]):
            raise EncoderError(
                f"{what}: the loss is no longer a number in epoch {epoch} (learning rate "
                f"{learning_rate:g}): lower the learning rate"
            )
        history.append({"epoch": epoch, **sums, "accuracy": accuracy()})
        waited += 1
        if history[-1]["accuracy"] > reached:
            best, reached, waited = weights(module), history[-1]["accuracy"], 0
        if waited == patience:
            break
    return best, pd.DataFrame(history)
