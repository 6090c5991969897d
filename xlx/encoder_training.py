"""Train sentence encoders on natural language inference and map them to another language.

Sections 5.1 and 5.2 of Ravishankar, Øvrelid and Velldal (2019). An English encoder learns to tell
entailment, neutral and contradiction apart (`train_nli`). Then an encoder of the same kind for
another language, from random weights, learns to give the translations of English sentences the
vectors of these (`align`), with word vectors that were mapped into one space before.

Weights are large and only a means. So there are recipes of them, `Inferred` and `Mapped`, that name
an encoder by all that decides it: `trained` makes those that are needed, side by side, and what was
computed from an encoder (`answered`, `retrieved`) is found again without it.

    english = train_nli("rnn-max", premises, hypotheses, labels, held_out, sizes=MINI, epochs=8)
    german = align(english, english_lines, german_lines, german_held_out)
    encode("rnn-max", MINI, german.state, german_sentences)
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn import functional

from xlx import labelled, models, word_mapping, word_spaces, work
from xlx.executors import one_thread
from xlx.ledger import Ask, Value
from xlx.sentence_encoders import (
    NAMES,
    Encoder,
    EncoderError,
    Sentences,
    Sizes,
    Table,
    encode,
    encoder,
    pieces_encoded,
    sentences,
    vectors_of,
    weights,
)
from xlx.word_spaces import Lookup
from xlx.word_vectors import Parallel, tokenize

#: Sentences of like length that are encoded at once in training; moves speed and the last digits.
PIECE = 16

#: Premises, hypotheses, and classes (places in ``labelled.NLI``), int64 ``(n,)``.
LabelledPairs = tuple[Sentences, Sentences, np.ndarray]


@dataclass(frozen=True, eq=False)
class Nli:
    """An encoder that was trained on inference, with its classifier.

    Attributes
    ----------
    name, sizes
        Of the encoder, one of `ENCODERS`.
    state, classifier : dict
        Weights of both after the best epoch, float32.
    history : pd.DataFrame
        A row an epoch: ``epoch`` (from 1), ``loss`` (mean cross-entropy of the training pairs in
        nats), ``accuracy`` (of the validation pairs, 0 to 1).
    """

    name: str
    sizes: Sizes
    state: dict[str, np.ndarray]
    classifier: dict[str, np.ndarray]
    history: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Aligned:
    """An encoder that was mapped to another language.

    Attributes
    ----------
    state : dict
        Weights after the best epoch, float32.
    history : pd.DataFrame
        A row an epoch: ``epoch`` (from 1), ``loss`` (mean of the training pairs), ``cosine`` (mean
        of theirs between the two languages, while training), ``accuracy`` (on inference in the
        target language, validation pairs, 0 to 1).
    """

    state: dict[str, np.ndarray]
    history: pd.DataFrame


# --- inference ------------------------------------------------------------------------------------


def inference(
    parts: Sequence[labelled.Pairs], lookup: Callable[[Sequence[str]], np.ndarray]
) -> LabelledPairs:
    """Premises, hypotheses and classes of pairs, in the words of `word_vectors.tokenize`.

    Several parts of one language are joined.

    ``lookup`` gives the vectors of words ``(n, dim)``. Raises EncoderError as
    `sentence_encoders.sentences`, and ValueError where the labels are not those of inference.
    """
    sides = [
        sentences(
            [tokenize(x, part.language) for part in parts for x in getattr(part, side)], lookup
        )
        for side in ("first", "second")
    ]
    classes = [labelled.NLI.index(label) for part in parts for label in part.labels]
    return (*sides, np.array(classes))


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
    layer (InferSent has one of 512). It trains on the device that the settings name; a CPU works
    with one thread.

    Parameters
    ----------
    labels : np.ndarray
        Classes ``(n,)``, places in ``labelled.NLI`` (0 entailment, 1 neutral, 2 contradiction).
    validation : tuple
        Premises, hypotheses and classes by which the best epoch is chosen (the first of equals).
    seed : int
        Of the weights, the order of pairs, and what is dropped out.
    epochs : int
        At most; training ends after ``patience`` epochs in a row without a better accuracy.
    batch_size : int
        Pairs of a batch; those left over at the end of an epoch are shared out, so that none is
        smaller. Batches are random, but the pairs of one premise come one after another (XNLI and
        MultiNLI have three), so that it is encoded once a batch.
    learning_rate : float
        Of Adam, constant.

    Raises
    ------
    EncoderError
        Parts of different lengths; labels that are no classes; options out of range; a loss that
        is no longer a number.
    """
    _check_pairs((premises, hypotheses, labels), "training")
    _check_pairs(validation, "validation")
    options = _Options(seed, epochs, batch_size, learning_rate, patience)
    where = models.device_of(None)
    net = encoder(name, sizes, seed).to(where)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        head = nn.Linear(4 * net.width, len(labelled.NLI)).to(where)
    first, second = (Table(_apart(side), sizes, where) for side in (premises, hypotheses))
    of_first, of_second = (_which(side) for side in (premises, hypotheses))
    held_out = [Table(side, sizes, where) for side in validation[:2]]
    classes = torch.from_numpy(np.asarray(labels, np.int64)).to(where)

    def loss(rows: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, dict[str, float]]:
        u, v = (_encoded(net, *side, rows) for side in ((first, of_first), (second, of_second)))
        return functional.cross_entropy(head(pair_features(u, v)), classes[rows]), {}

    def accuracy() -> float:
        u, v = (vectors_of(net, side) for side in held_out)
        return _accuracy(_classified(head, u, v), validation[2])

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
    not the width of the encoder or one part is longer than the other.
    """
    _check_same(len(premises), len(hypotheses), "premises", "hypotheses", "asked")
    own = nli.state if state is None else state
    u, v = (
        torch.from_numpy(encode(nli.name, nli.sizes, own, side)) for side in (premises, hypotheses)
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
        English sentences, or their vectors by this encoder (of `encode`), float32 ``(n, width)``,
        which mappings to several languages can share.
    target : Sentences
        Their translations, with word vectors in the space of the English ones.
    validation : tuple
        Premises, hypotheses and classes of the target language. Training ends after ``patience``
        epochs in a row without gain in accuracy; the weights are those of the best epoch (the first
        of equals).
    lam : float
        λ, at least 0 and below 0.5, where the loss ceases to have a minimum.
    seed, max_epochs, batch_size, learning_rate
        As in `train_nli`.

    Raises
    ------
    EncoderError
        Parts of different lengths, fewer than two pairs, word vectors of another width; labels that
        are no classes; options out of range; a loss that is no longer a number.
    """
    _check_same(len(source), len(target), "source sentences", "target sentences", "parallel")
    if len(target) < 2:
        raise EncoderError("one pair of sentences: a mapping needs others, so two or more")
    if not 0 <= lam < 0.5:
        raise EncoderError(f"lam is {lam}: at least 0, and below 0.5, where minima end")
    _check_pairs(validation, "validation")
    options = _Options(seed, max_epochs, batch_size, learning_rate, patience)
    if batch_size < 2:
        raise EncoderError(f"batch_size is {batch_size}: a mapping needs others in a batch")
    where = models.device_of(None)
    x = source
    if isinstance(source, Sentences):
        x = encode(nli.name, nli.sizes, nli.state, source)
    x = torch.from_numpy(np.asarray(x, np.float32)).to(where)
    net = encoder(nli.name, nli.sizes, seed).to(where)
    if x.shape[1:] != (net.width,):
        raise EncoderError(f"source vectors {tuple(x.shape)}: the encoder's are {net.width} wide")
    head = _head(nli, where)
    own = Table(target, nli.sizes, where)
    held_out = [Table(side, nli.sizes, where) for side in validation[:2]]

    def loss(rows: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, dict[str, float]]:
        english, y = x[rows], pieces_encoded(net, own, rows, PIECE)
        others = [torch.from_numpy(_ring(len(rows), rng)).to(where) for _ in range(2)]
        value = alignment_loss(english, y, english[others[0]], y[others[1]], lam)
        cosine = functional.cosine_similarity(english, y.detach()).mean()
        return value, {"cosine": float(cosine)}

    def accuracy() -> float:
        u, v = (vectors_of(net, side) for side in held_out)
        return _accuracy(_classified(head, u, v), validation[2])

    with one_thread():
        best, history = _train(
            f"{nli.name}, mapping", net, np.arange(len(target)), loss, accuracy, options
        )
    return Aligned(best, history)


def _ring(n: int, rng: np.random.Generator) -> np.ndarray:
    """int64 ``(n,)``: for each of n another one, all along one random ring."""
    order = rng.permutation(n)
    found = np.empty(n, np.int64)
    found[order] = np.roll(order, 1)
    return found


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
            if getattr(self, name) < 1:
                raise EncoderError(f"{name} is {getattr(self, name)}: it must be 1 or more")
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


def _encoded(net: Encoder, table: Table, which: np.ndarray, rows: np.ndarray) -> torch.Tensor:
    """Vectors of some of the sentences, each different one encoded once."""
    different, places = np.unique(which[rows], return_inverse=True)
    found = pieces_encoded(net, table, different, PIECE)
    return found[torch.from_numpy(places).to(found.device)]


def _head(nli: Nli, device: torch.device) -> nn.Linear:
    n_classes, width = nli.classifier["weight"].shape
    head = nn.Linear(width, n_classes)
    head.load_state_dict({key: torch.from_numpy(x) for key, x in nli.classifier.items()})
    return head.to(device)


@torch.inference_mode()
def _classified(head: nn.Linear, u: torch.Tensor, v: torch.Tensor) -> np.ndarray:
    return head(pair_features(u, v)).argmax(dim=1).cpu().numpy()


def _accuracy(predicted: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(predicted == np.asarray(labels)))


def _check_same(n: int, other: int, what: str, others: str, part: str) -> None:
    if n != other:
        raise EncoderError(f"{part} pairs: {n} {what} and {other} {others}; one of each a pair")


def _check_pairs(pairs: LabelledPairs, part: str) -> None:
    premises, hypotheses, labels = pairs
    _check_same(len(premises), len(hypotheses), "premises", "hypotheses", part)
    _check_same(len(premises), len(labels), "premises", "labels", part)
    if not len(premises):
        raise EncoderError(f"there are no {part} pairs")
    if strange := set(np.asarray(labels).tolist()) - set(range(len(labelled.NLI))):
        raise EncoderError(
            f"{part} pairs: the label {min(strange, key=str)!r} is none of 0, 1, 2, the places of "
            f"{', '.join(labelled.NLI)}"
        )


# --- recipes --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Inference:
    """Pairs of inference in the words of a lookup, made when they are needed.

    ``parts`` are joined; they are of the lookup's language.
    """

    parts: tuple[labelled.Pairs, ...]
    lookup: Lookup

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the pairs."""
        parts = [[part.language, part.text_hash()] for part in self.parts]
        return {"pairs": parts, "lookup": self.lookup.ask}

    @cached_property
    def loaded(self) -> LabelledPairs:
        """As `inference`."""
        return inference(self.parts, self.lookup.load())

    @property
    def labels(self) -> np.ndarray:
        """Classes, int64 ``(n,)``. Raises ValueError where they are not those of inference."""
        return np.array([labelled.NLI.index(label) for part in self.parts for label in part.labels])

    def __len__(self) -> int:
        return sum(map(len, self.parts))


@dataclass(frozen=True)
class Untrained:
    """An encoder with random weights, as `sentence_encoders.encoder` draws them."""

    name: str
    sizes: Sizes
    seed: int

    @cached_property
    def ask(self) -> Ask:
        """What decides the weights."""
        about = {"encoder": self.name, "sizes": asdict(self.sizes), "seed": self.seed}
        return Ask("random-encoders", about)

    def state(self) -> dict[str, np.ndarray]:
        """The weights."""
        return weights(encoder(self.name, self.sizes, self.seed))


@dataclass(frozen=True, eq=False)
class Inferred:
    """The recipe of an encoder that `train_nli` makes of ``pairs``, with its further options."""

    name: str
    sizes: Sizes
    pairs: Inference
    validation: Inference
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def ask(self) -> Ask:
        """What decides the weights. Raises TypeError for an option that there is not."""
        about = {"encoder": self.name, "sizes": asdict(self.sizes), "pairs": self.pairs.about}
        options = _with_defaults(train_nli, self.options, {"sizes"})
        return NLI.ask(about | {"validation": self.validation.about, "options": options})

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Words of the sentences that it learns from."""
        return self.pairs.lookup, self.validation.lookup

    def state(self) -> dict[str, np.ndarray]:
        """The weights, trained where this machine has not got them."""
        return trained([self])[0].state


@dataclass(frozen=True, eq=False)
class Mapped:
    """The recipe of an encoder that `align` makes of ``nli``, with its further options.

    ``parallel`` has English first; it is read with ``source`` and ``target``. Without ``target``
    English is mapped to itself.
    """

    nli: Inferred
    parallel: Parallel
    source: Lookup
    target: Lookup | None
    validation: Inference
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.nli.name

    @property
    def sizes(self) -> Sizes:
        return self.nli.sizes

    @cached_property
    def ask(self) -> Ask:
        """What decides the weights. Raises TypeError for an option that there is not."""
        about = {"nli": self.nli.ask, "translations": self.parallel.about}
        about |= {"source": self.source.ask, "target": self.target and self.target.ask}
        options = _with_defaults(align, self.options, set())
        return ALIGNED.ask(about | {"validation": self.validation.about, "options": options})

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Words of the sentences that it learns from."""
        own = self.source, self.target, self.validation.lookup
        return tuple(lookup for lookup in own if lookup is not None)

    def sides(self) -> tuple[Sentences, Sentences]:
        """Sentences of both languages."""
        return _sides(self.parallel, self.source, self.target)

    def state(self) -> dict[str, np.ndarray]:
        """The weights, trained where this machine has not got them."""
        return trained([self])[0].state


def _sides(
    parallel: Parallel, source: Lookup, target: Lookup | None
) -> tuple[Sentences, Sentences]:
    own = sentences(parallel.lines[0], source.load())
    return own, own if target is None else sentences(parallel.lines[1], target.load())


def _with_defaults(
    function: Callable[..., Any], options: Mapping[str, Any], named: set[str]
) -> dict[str, Any]:
    """The keyword arguments of a function, but for some; TypeError where it has not got one."""
    defaults = {
        name: own.default
        for name, own in inspect.signature(function).parameters.items()
        if own.kind is own.KEYWORD_ONLY and name not in named
    }
    if unknown := sorted(set(options) - set(defaults)):
        raise TypeError(f"{function.__name__} has no option {unknown[0]!r}")
    return defaults | dict(options)


def trained(recipes: Sequence[Inferred | Mapped]) -> list[Nli | Aligned]:
    """The encoders of some recipes; those that this machine has not got train side by side.

    Raises EncoderError as `train_nli` and `align`; what was finished before is kept.
    """
    if not recipes:
        return []
    if any(type(own) is not type(recipes[0]) for own in recipes):
        raise ValueError("recipes are of two types: ask for one after the other")
    kind = NLI if isinstance(recipes[0], Inferred) else ALIGNED

    def calls(missing: list[int]) -> list[work.Call]:
        needed = [recipes[position] for position in missing]
        word_spaces.load([lookup for own in needed for lookup in own.lookups])
        if kind is NLI:
            return [
                ([at], (own.name, own.pairs.loaded, own.validation.loaded, own.sizes, own.options))
                for at, own in zip(missing, needed, strict=True)
            ]
        known: dict[tuple[int, ...], tuple[Sentences, Sentences]] = {}
        english = trained([own.nli for own in needed])
        found = []
        for at, own, nli in zip(missing, needed, english, strict=True):
            place = id(own.parallel), id(own.source), id(own.target)
            sides = known.get(place) or known.setdefault(place, own.sides())
            found.append(([at], (nli, *sides, own.validation.loaded, own.options)))
        return found

    what = "encoders trained" if kind is NLI else "encoders mapped"
    values = work.results(kind, [own.ask.about for own in recipes], calls, what=what, alone=True)
    return [_unpacked(own, value) for own, value in zip(recipes, values, strict=True)]


def _trained_nli(
    name: str, pairs: LabelledPairs, validation: LabelledPairs, sizes: Sizes, options: Mapping
) -> Value:
    return _packed(train_nli(name, *pairs, validation, sizes=sizes, **options))


def _aligned(
    nli: Nli, source: Sentences, target: Sentences, validation: LabelledPairs, options: Mapping
) -> Value:
    return _packed(align(nli, source, target, validation, **options))


def _packed(made: Nli | Aligned) -> Value:
    parts = {"state": made.state, "history": {x: y.to_numpy() for x, y in made.history.items()}}
    if isinstance(made, Nli):
        parts["classifier"] = made.classifier
    return {f"{part} {name}": x for part, own in parts.items() for name, x in own.items()}


def _unpacked(recipe: Inferred | Mapped, arrays: Value) -> Nli | Aligned:
    parts: dict[str, dict[str, np.ndarray]] = {"state": {}, "history": {}, "classifier": {}}
    for name, x in arrays.items():
        part, _, own = name.partition(" ")
        parts[part][own] = x
    history = pd.DataFrame(parts["history"])
    if isinstance(recipe, Mapped):
        return Aligned(parts["state"], history)
    return Nli(recipe.name, recipe.sizes, parts["state"], parts["classifier"], history)


# --- what encoders answer -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Answers:
    """The course of a training, and what the encoder then says of pairs of inference.

    ``history`` as of `Nli` or `Aligned`; ``predicted`` int64 ``(n,)``, places in ``labelled.NLI``;
    ``accuracy`` in [0, 1].
    """

    history: pd.DataFrame
    predicted: np.ndarray
    accuracy: float


def answered(recipes: Sequence[Inferred | Mapped], asked: Sequence[Inference]) -> list[Answers]:
    """What encoders answer, each to its own pairs.

    Raises EncoderError as `trained`, and where there is not one of each.
    """
    _check_same(len(recipes), len(asked), "encoders", "parts of pairs", "asked")
    abouts = [
        {"encoder": own.ask, "asked": pairs.about}
        for own, pairs in zip(recipes, asked, strict=True)
    ]

    def calls(missing: list[int]) -> list[work.Call]:
        found = []
        for type_ in (Inferred, Mapped):
            at = [position for position in missing if isinstance(recipes[position], type_)]
            made = trained([recipes[position] for position in at])
            english = trained([getattr(recipes[x], "nli", recipes[x]) for x in at])
            word_spaces.load([asked[position].lookup for position in at])
            found += [
                ([position], (nli, own.state, own.history, *asked[position].loaded[:2]))
                for position, own, nli in zip(at, made, english, strict=True)
            ]
        return found

    values = work.results(ANSWERS, abouts, calls, what="encoders asked", alone=True)
    found = []
    for value, pairs in zip(values, asked, strict=True):
        predicted = value["predicted"].astype(np.int64)
        history = pd.DataFrame({x: y for x, y in value.items() if x != "predicted"})
        found.append(Answers(history, predicted, _accuracy(predicted, pairs.labels)))
    return found


def accuracies(
    asked: Mapping[tuple[str, str], tuple[Inferred | Mapped, Inference]],
) -> pd.DataFrame:
    """Accuracy on inference: ``encoder`` (as figures call it), ``language``, ``accuracy``.

    ``asked`` has an encoder (of `ENCODERS`) and a language, by the names of the rows, with the
    recipe and the pairs.
    """
    answers = answered(*map(list, zip(*asked.values(), strict=True)))
    rows = [
        (NAMES[name], language, own.accuracy)
        for (name, language), own in zip(asked, answers, strict=True)
    ]
    return pd.DataFrame(rows, columns=["encoder", "language", "accuracy"])


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Translations, among which an encoder of ``target``'s language is to find each sentence's own.

    Attributes
    ----------
    encoder : Inferred or Mapped, optional
        ``Inferred``: the English encoder itself, which reads the target's words in the space of the
        English ones, so with no mapping of sentences. None: the mean of the words' vectors.
    parallel : Parallel
        English first.
    source, target : Lookup
        Of both languages' words; without ``target`` English is held against itself.
    skip : int
        Pairs of lines at the front that are passed over: those that the encoder was mapped by.
    """

    encoder: Inferred | Mapped | None
    parallel: Parallel
    source: Lookup
    target: Lookup | None
    skip: int = 0

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides what is found."""
        lookups = {"source": self.source.ask, "target": self.target and self.target.ask}
        own = self.encoder and self.encoder.ask
        lines = {"translations": self.parallel.about, "skip": self.skip}
        return {"encoder": own} | lines | lookups

    def sides(self) -> tuple[Sentences, Sentences]:
        """Sentences of both languages; EncoderError where all are passed over."""
        both = _sides(self.parallel, self.source, self.target)
        rows = range(self.skip, len(both[0]))
        if not rows:
            raise EncoderError(f"skip is {self.skip}, and there are {len(both[0])} translations")
        return both[0].take(rows), both[1].take(rows)


def retrieved(asked: Sequence[Retrieval]) -> pd.DataFrame:
    """How well encoders give translations like vectors, a row each.

    Returns
    -------
    DataFrame
        ``n`` (translations), ``found`` (share of target sentences whose nearest English one, by
        cosine, is their translation: P@1; chance is 1 / n) and ``cosine`` (mean of translations).
    """

    def calls(missing: list[int]) -> list[work.Call]:
        found = []
        for type_ in (Inferred, Mapped, type(None)):
            at = [position for position in missing if isinstance(asked[position].encoder, type_)]
            recipes = [asked[position].encoder for position in at]
            made = english = [None] * len(at)
            if type_ is not type(None):
                made = trained(recipes)
                english = trained([getattr(own, "nli", own) for own in recipes])
            lookups = [own for x in at for own in (asked[x].source, asked[x].target)]
            word_spaces.load([own for own in lookups if own is not None])
            found += [
                ([position], (nli, own and own.state, *asked[position].sides()))
                for position, own, nli in zip(at, made, english, strict=True)
            ]
        return found

    tables = work.results(
        RETRIEVED, [own.about for own in asked], calls, what="translations", alone=True
    )
    return pd.concat(tables, ignore_index=True)


def _retrieved(
    nli: Nli | None,
    state: Mapping[str, np.ndarray] | None,
    source: Sentences,
    target: Sentences,
) -> pd.DataFrame:
    if nli is None:
        x, y = (np.stack([own.vectors[ids].mean(0) for ids in own.ids]) for own in (source, target))
    else:
        states = (nli.state, source), (state, target)
        x, y = (encode(nli.name, nli.sizes, weights_, own) for weights_, own in states)
    own = np.arange(len(x))
    found = word_mapping.precision_at_1(y, x, np.column_stack([own, own]))
    cosine = functional.cosine_similarity(torch.from_numpy(x), torch.from_numpy(y)).mean()
    row = {"n": len(x), "found": float(found.mean()), "cosine": float(cosine)}
    return pd.DataFrame([row])


def _answered(
    nli: Nli,
    state: Mapping[str, np.ndarray],
    history: pd.DataFrame,
    premises: Sentences,
    hypotheses: Sentences,
) -> Value:
    predicted = nli_predictions(nli, premises, hypotheses, state=state).astype(np.int8)
    return {x: y.to_numpy() for x, y in history.items()} | {"predicted": predicted}


def _answers_apart(stored: Value, computed: Value) -> float:
    """How far accuracies of the epochs are apart, or the share of pairs answered otherwise.

    The number of epochs may differ, where two of them are nearly equal.
    """
    pairs = stored["predicted"], computed["predicted"]
    if pairs[0].shape != pairs[1].shape:
        return math.inf
    reached = abs(stored["accuracy"].max() - computed["accuracy"].max())
    return max(float(reached), float(np.mean(pairs[0] != pairs[1])))


NLI = work.Kind("sentence-encoders", _trained_nli, version=1, side_by_side=True, shipped=False)
ALIGNED = work.Kind("mapped-encoders", _aligned, version=1, side_by_side=True, shipped=False)
ANSWERS = work.Kind(
    "xprobe-nli", _answered, version=1, tolerance=0.15, difference=_answers_apart,
    side_by_side=True, shared_seconds=120.0,  # word vectors, the English encoder
)  # fmt: skip
RETRIEVED = work.Kind(
    "xprobe-retrieval", _retrieved, version=1, tolerance=0.05, side_by_side=True,
    shared_seconds=120.0,
)  # fmt: skip
