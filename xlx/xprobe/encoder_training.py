"""Train sentence encoders on natural language inference and map them to another language.

Sections 5.1 and 5.2 of Ravishankar, Øvrelid and Velldal (2019). An English encoder learns to tell
entailment, neutral and contradiction apart (`train_nli`). Then an encoder of the same kind for
another language, from random weights, learns to give the translations of English sentences the
vectors of these (`align`), with word vectors that were mapped into one space before.

    english = train_nli("rnn-max", premises, hypotheses, labels, held_out, sizes=MINI, epochs=8)
    german = align(english, english_lines, german_lines, german_held_out)
    encode("rnn-max", MINI, german.state, german_sentences)
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn import functional

from xlx.core import checks
from xlx.core.executors import one_thread
from xlx.models import loading
from xlx.text import labelled
from xlx.xprobe.encoder_inputs import EncoderError, Sentences, SentenceTable
from xlx.xprobe.sentence_encoders import (
    SentenceEncoder,
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
class Nli:
    """An encoder that was trained on inference, with its classifier.

    ``name`` and ``sizes`` are those of the encoder, one of `ENCODERS`; ``state`` and ``classifier``
    the weights after the best epoch, float32. ``history`` has a row an epoch: ``epoch`` (from 1),
    ``loss`` (mean cross-entropy of the training pairs in nats), ``accuracy`` (of the validation
    pairs, 0 to 1).
    """

    name: str
    sizes: Sizes
    state: dict[str, np.ndarray]
    classifier: dict[str, np.ndarray]
    history: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Aligned:
    """An encoder that was mapped to another language.

    ``state``: weights after the best epoch, float32. ``history`` has a row an epoch: ``epoch``
    (from 1), ``loss`` (mean of the training pairs), ``cosine`` (mean of theirs between the two
    languages, while training), ``accuracy`` (on inference in the target language, validation
    pairs, 0 to 1).
    """

    state: dict[str, np.ndarray]
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
) -> Nli:
    """Train an encoder and a classifier of its vectors on inference, word vectors held fixed.

    One encoder for premises and hypotheses (Conneau et al. 2017). The classifier is one linear
    layer over `pair_features` and a softmax over the three classes: the paper names no hidden
    layer (InferSent has one of 512). It trains on the device of the settings.

    ``labels`` ``(n,)`` are places in ``labelled.NLI`` (0 entailment, 1 neutral, 2 contradiction).
    By the ``validation`` pairs the best epoch is chosen (the first of equals); training ends after
    ``patience`` epochs in a row without a better accuracy. ``seed`` is that of the weights, the
    order of pairs and what is dropped out; ``learning_rate`` that of Adam, constant. Pairs left
    over at the end of an epoch are shared out among batches, so that none is below ``batch_size``;
    batches are random, but the pairs of one premise come one after another (XNLI and MultiNLI have
    three), so that it is encoded once a batch.

    Raises EncoderError for parts of different lengths, labels that are no classes, options out of
    range, and a loss that is no longer a number.
    """
    _check_pairs((premises, hypotheses, labels), "training")
    _check_pairs(validation, "validation")
    options = _Options(seed, epochs, batch_size, learning_rate, patience)
    where = loading.device_of(None)
    net = encoder(name, sizes, seed).to(where)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        head = nn.Linear(4 * net.width, len(labelled.NLI)).to(where)
    first, second = (
        SentenceTable(_apart(side), sizes.words, where) for side in (premises, hypotheses)
    )
    of_first, of_second = (_which(side) for side in (premises, hypotheses))
    held_out = [SentenceTable(side, sizes.words, where) for side in validation[:2]]
    classes = torch.from_numpy(np.asarray(labels, np.int64)).to(where)

    def loss(rows: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, dict[str, float]]:
        u, v = (_encoded(net, *side, rows) for side in ((first, of_first), (second, of_second)))
        return functional.cross_entropy(head(pair_features(u, v)), classes[rows]), {}

    def accuracy() -> float:
        u, v = (vectors_of(net, side) for side in held_out)
        return accuracy_of(_classified(head, u, v), validation[2])

    with one_thread():
        best, history = _train(
            f"{name}, inference", nn.ModuleList([net, head]), of_first, loss, accuracy, options
        )
    parts = [
        {key.removeprefix(start): x for key, x in best.items() if key.startswith(start)}
        for start in ("0.", "1.")
    ]
    return Nli(name, sizes, *parts, history)


def nli_predictions(
    nli: Nli,
    premises: Sentences,
    hypotheses: Sentences,
    *,
    state: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
    """Classes of pairs, int64 ``(n,)``, places in ``labelled.NLI``.

    ``state``: the weights of an encoder that was aligned with this one, for pairs of its language;
    the classifier is the English one in any case. Raises EncoderError where the word vectors have
    not the width of the encoder.
    """
    state = nli.state if state is None else state
    u, v = (
        torch.from_numpy(encode(nli.name, nli.sizes, state, side))
        for side in (premises, hypotheses)
    )
    return _classified(_head(nli, torch.device("cpu")), u, v)


# --- mapping --------------------------------------------------------------------------------------


def alignment_loss(
    x: torch.Tensor, y: torch.Tensor, x_c: torch.Tensor, y_c: torch.Tensor, lam: float = 0.25
) -> torch.Tensor:
    """‖x − y‖² − λ(‖x_c − y‖² + ‖x − y_c‖²), the mean over a batch (section 5.2).

    Rows of x and y ``(n, width)`` are vectors of translations of one another; x_c and y_c are
    vectors of other sentences of the two languages.

    **The best y is not x.** Let x_c and y_c be drawn from all sentences, with the means x̄ and ȳ.
    Then the expected loss is, but for a constant, ‖x − y‖² − λ‖y − x̄‖² − λ‖y − x̄‖² (each y is as
    often the other sentence as it has one), and its minimum lies, where 2λ < 1, at

        y = x̄ + (x − x̄) / (1 − 2λ),

    so at the paper's λ = 0.25 mapped vectors are to stand apart from their mean twice as far as
    the English ones, in the same directions: cosines about the mean tell of success, norms and the
    loss itself (below zero) do not. Where 2λ ≥ 1 there is no minimum. A vector that is bounded,
    such as the states of an LSTM, gets there only within its bounds. With n sentences of which each
    is drawn but the own, the factor is (1 + 2λ / (n − 1)) / (1 − 2λ), a little more.

    (The squares are those of the paper, which speaks of a mean-squared error. Conneau et al. 2018,
    whom it follows, have the distances themselves, of which y = x is the best where 2λ < 1.)
    """
    near = (x - y).square().sum(dim=-1)
    far = (x_c - y).square().sum(dim=-1) + (x - y_c).square().sum(dim=-1)
    return (near - lam * far).mean()


def align(
    nli: Nli,
    source: Sentences | np.ndarray,
    target: Sentences,
    validation: LabelledPairs,
    *,
    lam: float = 0.25,
    seed: int = 1,
    max_epochs: int = 20,
    patience: int = 2,
    batch_size: int = 10,
    learning_rate: float = 1e-3,
) -> Aligned:
    """Map an English encoder to another language by translations.

    A target encoder of the same kind, from random weights, learns with `alignment_loss`. The
    English one is held fixed, so its vectors are computed once. The other sentences x_c and y_c of
    a pair are others of the same batch (batches are drawn at random), for each language another
    ring through the batch, so that each sentence is the other of one and none its own.

    Parameters
    ----------
    nli : Nli
        The English encoder and the classifier that judges the target encoder after each epoch.
    source : Sentences or np.ndarray
        English sentences, or their vectors by this encoder (of `encode`), float32 ``(n, width)``.
    target : Sentences
        Their translations, with word vectors in the space of the English ones.
    validation : tuple
        Premises, hypotheses and classes of the target language, by which the best epoch is chosen.
    lam : float
        λ, at least 0 and below 0.5, where the loss ceases to have a minimum.
    seed, max_epochs, patience, batch_size, learning_rate
        As in `train_nli`, and the same errors; EncoderError also for fewer than two pairs.
    """
    if len(source) != len(target) or len(target) < 2:
        raise EncoderError(
            f"parallel pairs: {len(source)} source sentences and {len(target)} target sentences; "
            "as many of both are needed, two or more"
        )
    if not 0 <= lam < 0.5:
        raise EncoderError(f"lam is {lam}: at least 0, and below 0.5, where minima end")
    _check_pairs(validation, "validation")
    options = _Options(seed, max_epochs, batch_size, learning_rate, patience)
    if batch_size < 2:
        raise EncoderError(f"batch_size is {batch_size}: a mapping needs others in a batch")
    where = loading.device_of(None)
    x = source
    if isinstance(source, Sentences):
        x = encode(nli.name, nli.sizes, nli.state, source)
    x = torch.from_numpy(np.asarray(x, np.float32)).to(where)
    net = encoder(nli.name, nli.sizes, seed).to(where)
    if x.shape[1:] != (net.width,):
        raise EncoderError(f"source vectors {tuple(x.shape)}: the encoder's are {net.width} wide")
    head = _head(nli, where)
    own = SentenceTable(target, nli.sizes.words, where)
    held_out = [SentenceTable(side, nli.sizes.words, where) for side in validation[:2]]

    def loss(rows: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, dict[str, float]]:
        english, y = x[rows], pieces_encoded(net, own, rows, PIECE)
        others = [torch.from_numpy(_ring(len(rows), rng)).to(where) for _ in range(2)]
        value = alignment_loss(english, y, english[others[0]], y[others[1]], lam)
        cosine = functional.cosine_similarity(english, y.detach()).mean()
        return value, {"cosine": float(cosine)}

    def accuracy() -> float:
        u, v = (vectors_of(net, side) for side in held_out)
        return accuracy_of(_classified(head, u, v), validation[2])

    with one_thread():
        best, history = _train(
            f"{nli.name}, mapping", net, np.arange(len(target)), loss, accuracy, options
        )
    return Aligned(best, history)


def _ring(n: int, rng: np.random.Generator) -> np.ndarray:
    """int64 ``(n,)``: for each of n another one, all along one random ring."""
    order = rng.permutation(n)
    others = np.empty(n, np.int64)
    others[order] = np.roll(order, 1)
    return others


# --- training -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Options:
    seed: int
    epochs: int
    batch_size: int
    learning_rate: float
    patience: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            checks.whole(getattr(self, name), name, EncoderError)
        if not self.learning_rate > 0:
            raise EncoderError(f"learning_rate is {self.learning_rate}: it must be positive")


#: Rows of a batch and a generator → loss, and further figures of the batch.
_Loss = Callable[[np.ndarray, np.random.Generator], tuple[torch.Tensor, dict[str, float]]]


def _train(
    what: str,
    module: nn.Module,
    groups: np.ndarray,
    loss: _Loss,
    accuracy: Callable[[], float],
    options: _Options,
) -> tuple[dict[str, np.ndarray], pd.DataFrame]:
    """Weights of the best epoch, and the history. Rows of a group ``(n,)`` go into one batch."""
    n = len(groups)
    device = next(module.parameters()).device
    optimiser = torch.optim.Adam(module.parameters(), lr=options.learning_rate)
    best: dict[str, np.ndarray] = {}
    history: list[dict[str, float]] = []
    reached, waited = -math.inf, 0
    for epoch in range(1, options.epochs + 1):
        module.train()
        rng = np.random.default_rng([options.seed, epoch])
        order = np.argsort(rng.permutation(groups.max() + 1)[groups], kind="stable")
        sums: dict[str, float] = {}
        # Dropout has no generator of its own; fork_rng leaves that of the process as it was.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(int(rng.integers(2**63)))
            for rows in np.array_split(order, max(1, n // options.batch_size)):
                value, figures = loss(rows, rng)
                value.backward()
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                for key, number in {"loss": float(value.detach()), **figures}.items():
                    sums[key] = sums.get(key, 0.0) + number * len(rows) / n
        if not math.isfinite(sums["loss"]):
            raise EncoderError(
                f"{what}: the loss is no longer a number in epoch {epoch} (learning rate "
                f"{options.learning_rate:g}): lower the learning rate"
            )
        history.append({"epoch": epoch, **sums, "accuracy": accuracy()})
        waited += 1
        if history[-1]["accuracy"] > reached:
            best, reached, waited = weights(module), history[-1]["accuracy"], 0
        if waited == options.patience:
            break
    return best, pd.DataFrame(history)


def _apart(side: Sentences) -> Sentences:
    """Each different sentence once, in order of first occurrence."""
    _, first = np.unique(_which(side), return_index=True)
    return side.take(first)


def _which(side: Sentences) -> np.ndarray:
    """For each sentence its place among the different ones: XNLI has each premise three times."""
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(words.tobytes(), len(seen)) for words in side.ids])


def _encoded(
    net: SentenceEncoder, table: SentenceTable, which: np.ndarray, rows: np.ndarray
) -> torch.Tensor:
    """Vectors of some of the sentences, each different one encoded once."""
    different, places = np.unique(which[rows], return_inverse=True)
    vectors = pieces_encoded(net, table, different, PIECE)
    return vectors[torch.from_numpy(places).to(vectors.device)]


def _head(nli: Nli, device: torch.device) -> nn.Linear:
    n_classes, width = nli.classifier["weight"].shape
    head = nn.Linear(width, n_classes)
    head.load_state_dict({key: torch.from_numpy(x) for key, x in nli.classifier.items()})
    return head.to(device)


@torch.inference_mode()
def _classified(head: nn.Linear, u: torch.Tensor, v: torch.Tensor) -> np.ndarray:
    return head(pair_features(u, v)).argmax(dim=1).cpu().numpy()


def accuracy_of(predicted: np.ndarray, labels: np.ndarray) -> float:
    """The share of equal classes."""
    return float(np.mean(predicted == np.asarray(labels)))


def _check_pairs(pairs: LabelledPairs, part: str) -> None:
    premises, hypotheses, labels = pairs
    sizes = len(premises), len(hypotheses), len(labels)
    if len(set(sizes)) > 1:
        raise EncoderError("{} pairs: {} premises, {} hypotheses, {} labels".format(part, *sizes))
    if not len(premises):
        raise EncoderError(f"there are no {part} pairs")
    if strange := set(np.asarray(labels).tolist()) - set(range(len(labelled.NLI))):
        raise EncoderError(f"{part} pairs: the label {min(strange, key=str)!r} is none of 0, 1, 2")
