"""Sentence encoders over frozen word vectors: recurrent, convolutional and self-attentive.

The six encoders of Ravishankar, Øvrelid and Velldal (2019, section 5), each a way to turn the word
vectors of a sentence into one vector, trained on inference (`train_nli`), mapped by translations
(`align`), and known by their `Recipe`. A sentence has the same vector, but for the last digits,
whatever it shares its batch with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from xlx.results import work
from xlx.results.deferred import deferred, without_gradients
from xlx.results.executors import one_thread
from xlx.results.ledger import Ask, Value
from xlx.subjects import loading
from xlx.text import labelled
from xlx.text.examples import Examples
from xprobe.word_spaces import Lookup, Making, ParallelText, made, tokenize

torch, nn = deferred("torch"), deferred("torch.nn")
functional, networks = deferred("torch.nn.functional"), deferred("xprobe.networks")

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
#: Sentences of like length that are encoded at once, in training and after.
PIECE, BATCH = 16, 64


class EncoderError(ValueError):
    """An encoder that cannot be built, trained or asked; says why and what to do."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of the encoders, by default those of Table 2 (800 channels of each width)."""

    words: int = 300  # numbers of a word vector
    hidden: int = 512  # of each direction of an LSTM
    layers: int = 2
    dropout: float = 0.1  # between layers; the paper gives 10 % without a place
    channels: int = 800  # of each filter
    filters: tuple[int, ...] = (3, 4, 5)  # widths in words
    padding: tuple[int, ...] = (1, 2, 2)  # zero vectors before and after a sentence
    projection: int = 1024
    attention: int = 150  # hidden units
    heads: int = 60


#: Small enough to train dozens in a minute; one layer, so nothing is dropped out.
MINI = Sizes(
    words=100, hidden=64, layers=1, dropout=0.0, channels=64, projection=128, attention=32, heads=8
)


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences as numbers of word types."""

    vectors: np.ndarray  # float32 (n_types, words), never trained
    ids: tuple[np.ndarray, ...]  # of each sentence rows of the vectors, int64 (n_words,)

    @classmethod
    def of(
        cls, token_lists: Sequence[Sequence[str]], lookup: Callable[[Sequence[str]], np.ndarray]
    ) -> Sentences:
        """Sentences of words with the vectors of a lookup; EncoderError for one without words."""
        if empty := [at for at, words in enumerate(token_lists) if not len(words)]:
            raise EncoderError(f"sentence {empty[0]} (from 0) has no words: leave it out")
        types: dict[str, int] = {}
        ids = [
            np.array([types.setdefault(x, len(types)) for x in tokens]) for tokens in token_lists
        ]
        return cls(np.ascontiguousarray(lookup(list(types)), dtype=np.float32), tuple(ids))

    def __len__(self) -> int:
        return len(self.ids)


def mean_vectors(sentences: Sentences) -> np.ndarray:
    """The mean of the vectors of each sentence's words, float32 ``(n, words)``."""
    return np.stack([sentences.vectors[ids].mean(axis=0) for ids in sentences.ids])


class SentenceTable:
    """Sentences on a device, where batches of them are laid out."""

    def __init__(self, sentences: Sentences, device: torch.device) -> None:
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
        on = self._vectors.device
        embedded = functional.embedding(torch.from_numpy(ids).to(on), self._vectors)
        return embedded, torch.from_numpy(lengths).to(on)


def encoder(name: str, sizes: Sizes, seed: int) -> nn.Module:
    """An encoder with random weights, drawn from ``seed``; EncoderError for an unknown name."""
    if name not in ENCODERS:
        raise EncoderError(f"the encoder {name!r} is none of {', '.join(ENCODERS)}")
    kind, pooling = name.split("-")
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return networks.KINDS[kind](sizes, pooling)


def weights(module: nn.Module) -> dict[str, np.ndarray]:
    """The weights of a module, copied: name → float32 array."""
    return {name: x.detach().cpu().numpy().copy() for name, x in module.state_dict().items()}


def encode(
    name: str, sizes: Sizes, state: Mapping[str, np.ndarray], sentences: Sentences
) -> np.ndarray:
    """Vectors of sentences by an encoder with the given `weights`: float32 ``(n, width)``."""
    where = loading.device_of(None)
    table = SentenceTable(sentences, where)
    net = encoder(name, sizes, seed=0)
    net.load_state_dict({key: torch.from_numpy(x) for key, x in state.items()})
    with one_thread():
        return vectors_of(net.to(where), table).cpu().numpy()


@without_gradients
def vectors_of(net: nn.Module, table: SentenceTable) -> torch.Tensor:
    """Vectors ``(n, width)`` of all sentences of a table, nothing dropped out."""
    net.eval()
    return pieces_encoded(net, table, np.arange(len(table.lengths)), BATCH)


def pieces_encoded(
    net: nn.Module, table: SentenceTable, rows: np.ndarray, size: int = PIECE
) -> torch.Tensor:
    """Vectors ``(len(rows), width)`` of some sentences, ``size`` of like length together: a batch
    may be drawn at random and yet hold little padding."""
    order = np.argsort(table.lengths[rows], kind="stable")
    pieces = np.split(order, range(size, len(rows), size))
    vectors = torch.cat([net(*table.embedded(rows[piece])) for piece in pieces])
    return vectors[torch.from_numpy(np.argsort(order, kind="stable")).to(vectors.device)]


#: Premises, hypotheses, and classes (places in ``labelled.NLI``), int64 ``(n,)``.
LabelledPairs = tuple[Sentences, Sentences, np.ndarray]


@dataclass(frozen=True, eq=False)
class InferenceEncoder:
    """A trained encoder, of English or mapped to another language, with the English classifier.

    ``arrays`` are the weights of the best epoch, "state." and "classifier." before their names, and
    "history.", one number per epoch: ``epoch`` (from 1), mean ``loss``, of a mapped one the mean
    ``cosine`` of translations, and ``accuracy`` on the validation pairs, 0 to 1.
    """

    name: str
    sizes: Sizes
    arrays: dict[str, np.ndarray]

    def part(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of a part: "state", "classifier" or "history"."""
        start = f"{name}."
        return {x.removeprefix(start): y for x, y in self.arrays.items() if x.startswith(start)}

    def encode(self, sentences: Sentences) -> np.ndarray:
        """As `encode`."""
        return encode(self.name, self.sizes, self.part("state"), sentences)

    def answers(self, premises: Sentences, hypotheses: Sentences) -> np.ndarray:
        """Classes of pairs, int64 ``(n,)``, places in ``labelled.NLI``."""
        u, v = (torch.from_numpy(self.encode(side)) for side in (premises, hypotheses))
        return _classified(self.head(), u, v)

    def head(self) -> nn.Linear:
        """The classifier."""
        weights = self.part("classifier")
        head = nn.Linear(*weights["weight"].shape[::-1])
        head.load_state_dict({key: torch.from_numpy(x) for key, x in weights.items()})
        return head


def pair_features(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """[u, v, u ∗ v, |u − v|] ``(n, 4 * width)`` of premises and hypotheses ``(n, width)``."""
    return torch.cat([u, v, u * v, (u - v).abs()], dim=-1)


#: Options of `train_nli` and of `align`, and what they are where nothing else is said.
TRAINING = {"seed": 1, "epochs": 20, "batch_size": 10, "learning_rate": 1e-3, "patience": 2}
MAPPING = {
    "lam": 0.25,
    "seed": 1,
    "max_epochs": 20,
    "patience": 2,
    "batch_size": 10,
    "learning_rate": 1e-3,
}


def train_nli(
    name: str, pairs: LabelledPairs, validation: LabelledPairs, *, sizes: Sizes, **options: Any
) -> InferenceEncoder:
    """Train an encoder and a classifier of its vectors on inference, word vectors held fixed.

    One encoder for both sides (Conneau et al. 2017), one linear layer over `pair_features`, and
    Adam. Batches are random, but a premise is encoded once, its pairs one after another. The best
    epoch by the ``validation`` pairs is kept; training ends after ``patience`` epochs without a
    better one. Options are those of `TRAINING`. EncoderError for a loss that is no number.
    """
    where, options = loading.device_of(None), TRAINING | options
    net = encoder(name, sizes, options["seed"]).to(where)
    with torch.random.fork_rng([]):
        torch.manual_seed(options["seed"])
        head = nn.Linear(4 * net.width, len(labelled.NLI)).to(where)
    seen: dict[bytes, int] = {}
    numbers = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in pairs[0].ids])
    firsts = np.unique(numbers, return_index=True)[1]
    tables = [SentenceTable(side, where) for side in pairs[:2]]
    classes = torch.from_numpy(np.asarray(pairs[2], np.int64)).to(where)

    def losses(rows: np.ndarray, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        different, places = np.unique(numbers[rows], return_inverse=True)
        u = pieces_encoded(net, tables[0], firsts[different])[torch.from_numpy(places)]
        v = pieces_encoded(net, tables[1], rows)
        return {"loss": functional.cross_entropy(head(pair_features(u, v)), classes[rows])}

    arrays = _train(
        f"{name}, inference",
        nn.ModuleDict({"state": net, "classifier": head}),
        _epochs(numbers, options.pop("seed"), options.pop("batch_size")),
        losses,
        (net, head, validation),
        **options,
    )
    return InferenceEncoder(name, sizes, arrays)


@without_gradients
def _classified(head: nn.Linear, u: torch.Tensor, v: torch.Tensor) -> np.ndarray:
    return head(pair_features(u, v)).argmax(dim=1).cpu().numpy()


def alignment_loss(
    x: torch.Tensor, y: torch.Tensor, x_c: torch.Tensor, y_c: torch.Tensor, lam: float = 0.25
) -> torch.Tensor:
    """‖x − y‖² − λ(‖x_c − y‖² + ‖x − y_c‖²), the mean over a batch (section 5.2).

    Rows of x and y ``(n, width)`` are vectors of translations; x_c and y_c of other sentences.

    **The best y is not x.** With x_c and y_c drawn from all sentences, whose mean is x̄ in English,
    the expected loss is, but for a constant, ‖x − y‖² − 2λ‖y − x̄‖², and its minimum lies at

        y = x̄ + (x − x̄) / (1 − 2λ):

    at λ = 0.25 mapped vectors stand apart from their mean twice as far as the English ones, in the
    same directions, as far as an LSTM's bounds allow. With n sentences of which each is drawn but
    the own, the factor is (1 + 2λ / (n − 1)) / (1 − 2λ). (Conneau et al. 2018, whom the paper
    follows, have distances and no squares, of which y = x is the best where 2λ < 1.)
    """
    near = (x - y).square().sum(dim=-1)
    far = (x_c - y).square().sum(dim=-1) + (x - y_c).square().sum(dim=-1)
    return (near - lam * far).mean()


def align(
    english: InferenceEncoder,
    source: Sentences,
    target: Sentences,
    validation: LabelledPairs,
    **options: Any,
) -> InferenceEncoder:
    """Map an English encoder, held fixed, to another language by translations.

    A target encoder of the same kind, from random weights, learns with `alignment_loss` (0 ≤ λ <
    0.5: above the loss has no minimum). ``target`` translates ``source``, with word vectors in the
    space of the English ones. The other sentences x_c and y_c of a pair are others of the same
    batch, for each language another ring through it. The ``validation`` pairs are of the target
    language; options (of `MAPPING`) and errors are as in `train_nli`.
    """
    where, options = loading.device_of(None), MAPPING | options
    lam, epochs = options.pop("lam"), options.pop("max_epochs")
    if not 0 <= lam < 0.5 or min(len(target), options["batch_size"]) < 2:
        raise EncoderError(
            f"lam is {lam}, batch_size {options['batch_size']}, and there are {len(target)} "
            "translations: lam is at least 0 and below 0.5, the others are 2 or more"
        )
    x = torch.from_numpy(english.encode(source)).to(where)
    net = encoder(english.name, english.sizes, options["seed"]).to(where)
    table = SentenceTable(target, where)

    def losses(rows: np.ndarray, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        x_b, y = x[rows], pieces_encoded(net, table, rows)
        others = [torch.from_numpy(_ring(len(rows), rng)).to(where) for _ in range(2)]
        loss = alignment_loss(x_b, y, x_b[others[0]], y[others[1]], lam)
        return {"loss": loss, "cosine": functional.cosine_similarity(x_b, y.detach()).mean()}

    arrays = _train(
        f"{english.name}, mapping",
        nn.ModuleDict({"state": net}),
        _epochs(np.arange(len(target)), options.pop("seed"), options.pop("batch_size")),
        losses,
        (net, english.head().to(where), validation),
        epochs=epochs,
        **options,
    )
    classifier = {f"classifier.{key}": x for key, x in english.part("classifier").items()}
    return replace(english, arrays=arrays | classifier)


def _ring(n: int, rng: np.random.Generator) -> np.ndarray:
    """int64 ``(n,)``: for each of n another one, all along one random ring."""
    order = rng.permutation(n)
    others = np.empty(n, np.int64)
    others[order] = np.roll(order, 1)
    return others


def _epochs(
    groups: np.ndarray, seed: int, batch_size: int
) -> Iterator[tuple[np.random.Generator, list[np.ndarray]]]:
    """The generator of each epoch and the rows of its batches; a group ``(n,)`` is in one batch."""
    for epoch in itertools.count(1):
        rng = np.random.default_rng([seed, epoch])
        order = np.argsort(rng.permutation(groups.max() + 1)[groups], kind="stable")
        yield rng, np.array_split(order, max(1, len(groups) // batch_size))


@one_thread()
def _train(
    what: str,
    module: nn.Module,
    batches: Iterator[tuple[np.random.Generator, list[np.ndarray]]],
    losses: Callable[..., dict],
    judge: tuple[nn.Module, nn.Linear, LabelledPairs],
    *,
    epochs: int,
    learning_rate: float,
    patience: int,
) -> dict[str, np.ndarray]:
    """Weights of the best epoch by the pairs of ``judge``, and "history." of all.

    ``batches`` as of `_epochs`; ``losses``: rows and a generator → figures, "loss" among them.
    """
    device = next(module.parameters()).device
    net, head, (*sides, classes) = judge
    tables = [SentenceTable(side, device) for side in sides]
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    best: dict[str, np.ndarray] = {}
    history: list[dict[str, float]] = []
    reached, waited = -math.inf, 0
    for epoch, (rng, rows_of_batches) in zip(range(1, epochs + 1), batches, strict=False):
        module.train()
        n = sum(map(len, rows_of_batches))
        sums: dict[str, float] = {}
        # Dropout has no generator of its own; fork_rng leaves that of the process as it was.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(int(rng.integers(2**63)))
            for rows in rows_of_batches:
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
        predicted = _classified(head, *(vectors_of(net, table) for table in tables))
        accuracy = float(np.mean(predicted == classes))
        history.append({"epoch": epoch, **sums, "accuracy": accuracy})
        waited += 1
        if accuracy > reached:
            best, reached, waited = weights(module), accuracy, 0
        if waited == patience:
            break
    return best | {f"history.{x}": y.to_numpy() for x, y in pd.DataFrame(history).items()}


@dataclass(frozen=True, eq=False)
class Inference:
    """Pairs of inference in the words of a lookup, made when they are needed; parts are joined.

    ``exchanged``: a seed by which each pair has the premise of another one: what is still right is
    known from the hypothesis.
    """

    parts: tuple[Examples, ...]
    lookup: Lookup
    exchanged: int | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the pairs."""
        parts = [[part.language, part.table_hash()] for part in self.parts]
        exchanged = {} if self.exchanged is None else {"premises of others": self.exchanged}
        return {"pairs": parts, "lookup": self.lookup.ask} | exchanged

    @cached_property
    def loaded(self) -> LabelledPairs:
        """Premises, hypotheses and classes."""
        premises, hypotheses = (
            Sentences.of(
                [tokenize(x, y.language) for y in self.parts for x in getattr(y, side)], self.lookup
            )
            for side in ("first", "second")
        )
        if self.exchanged is not None:
            ring = _ring(len(self), np.random.default_rng(self.exchanged))
            premises = replace(premises, ids=tuple(premises.ids[row] for row in ring))
        return premises, hypotheses, self.labels

    @property
    def labels(self) -> np.ndarray:
        """Classes, int64 ``(n,)``."""
        return np.array([labelled.NLI.index(x) for part in self.parts for x in part.row_labels])

    def __len__(self) -> int:
        return sum(map(len, self.parts))


@dataclass(frozen=True, eq=False)
class Recipe:
    """What an encoder is made of, as data."""

    name: str
    sizes: Sizes
    ask: Ask  # all that decides the weights
    making: Callable[[], Making] | None = None  # what makes them; none for random ones
    nli: Recipe | None = None  # of English, what it was mapped from

    def state(self) -> dict[str, np.ndarray]:
        """The weights."""
        if self.making:
            return trained([self])[0].part("state")
        return weights(encoder(self.name, self.sizes, self.ask.about["seed"]))


def untrained(name: str, sizes: Sizes, seed: int) -> Recipe:
    """An encoder with random weights, as `encoder` draws them."""
    about = {"encoder": name, "sizes": asdict(sizes), "seed": seed}
    return Recipe(name, sizes, Ask("random-encoders", about))


def inferred(
    name: str, sizes: Sizes, pairs: Inference, validation: Inference, **options: Any
) -> Recipe:
    """The recipe of an encoder that `train_nli` makes of ``pairs``."""
    about = {"encoder": name, "sizes": asdict(sizes), "pairs": pairs.about}
    about |= {"validation": validation.about, "options": TRAINING | options}

    def making() -> Making:
        return train_nli, (name, pairs.loaded, validation.loaded), {"sizes": sizes, **options}

    return Recipe(name, sizes, Ask("sentence-encoders", about), making)


def mapped(
    nli: Recipe,
    parallel: ParallelText,
    source: Lookup,
    target: Lookup | None,
    validation: Inference,
    **options: Any,
) -> Recipe:
    """What `align` makes of ``nli`` by translations, English first; without ``target`` English
    is mapped to itself."""
    about = {"nli": nli.ask, "translations": parallel.about, "source": source.ask}
    about |= {"target": target and target.ask, "validation": validation.about}
    about |= {"options": MAPPING | options}

    def making() -> Making:
        sides = both_sides(parallel, source, target)
        return align, (*trained([nli]), *sides, validation.loaded), options

    return Recipe(nli.name, nli.sizes, Ask("mapped-encoders", about), making, nli)


@lru_cache(maxsize=8)  # six encoders read the same
def both_sides(
    parallel: ParallelText, source: Lookup, target: Lookup | None
) -> tuple[Sentences, Sentences]:
    """Translations in the words of two lookups."""
    english = Sentences.of(parallel.lines[0], source)
    return english, Sentences.of(parallel.lines[1], target) if target else english


def trained(recipes: Sequence[Recipe]) -> list[InferenceEncoder]:
    """The encoders of some recipes; those that this machine has not got train side by side."""
    if english := [recipe.nli for recipe in recipes if recipe.nli]:
        trained(english)  # all before the first that is mapped from one
    values = made({recipe.ask: recipe.making for recipe in recipes})
    return [InferenceEncoder(each.name, each.sizes, values[each.ask]) for each in recipes]


#: An encoder, and the pairs that it is asked, in whatever language.
Question = tuple[Recipe, Inference]


def inferences(asked: Sequence[Question]) -> list[np.ndarray]:
    """What encoders answer, each its own pairs: classes, int8 ``(n,)``; errors as `trained`."""

    def calls(missing: list[int]) -> list[work.Call]:
        ready = trained([asked[place][0] for place in missing])
        pairs = [asked[place][1].loaded[:2] for place in missing]
        return [([x], (y, *z)) for x, y, z in zip(missing, ready, pairs, strict=True)]

    abouts = [{"encoder": recipe.ask, "asked": part.about} for recipe, part in asked]
    values = work.results(ANSWERS, abouts, calls, what="encoders asked", alone=True)
    return [value["predicted"] for value in values]


def _answered(encoder: InferenceEncoder, first: Sentences, second: Sentences) -> Value:
    """Predicted classes, with the history of training."""
    return encoder.part("history") | {"predicted": encoder.answers(first, second).astype(np.int8)}


def _answers_apart(stored: Value, computed: Value) -> float:
    """How far the best accuracies are apart, or a fifth of the share of other answers.

    Training on another processor takes another way from its first digits on; of 126 encoders the
    accuracies moved by 0.04 at most and the answers, near guessing, by 0.39 (AVX2 and AVX-512).
    """
    reached = abs(stored["accuracy"].max() - computed["accuracy"].max())
    return max(float(reached), float(np.mean(stored["predicted"] != computed["predicted"])) / 5)


# Word vectors and the English encoder take a while.
ANSWERS = work.Kind(
    "xprobe-answers",
    _answered,
    version=1,
    tolerance=0.1,
    difference=_answers_apart,
    side_by_side=True,
    shared_seconds=120.0,
)
