"""Recipes of sentence encoders, and what trained encoders answer.

Weights are large and only a means. So there are recipes of them, `Untrained`, `Inferred` and
`Mapped`, that name an encoder by all that decides it: `trained` makes those that are needed, side
by side. What they answer, inference in each language (`inference_accuracies`) and translations
found (`retrieved`), is found again without the weights that it took.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

from xlx.core import work
from xlx.core.ledger import Ask, Value
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.xprobe import word_mapping
from xlx.xprobe.encoder_training import (
    InferenceEncoder,
    LabelledPairs,
    align,
    nli_predictions,
    train_nli,
)
from xlx.xprobe.parallel_text import ParallelText, tokenize
from xlx.xprobe.sentence_encoders import (
    EncoderError,
    Sentences,
    Sizes,
    encode,
    encoder,
    mean_vectors,
    weights,
)
from xlx.xprobe.word_spaces import Lookup, load_lookups


@dataclass(frozen=True, eq=False)
class Inference:
    """Pairs of inference in the words of a lookup, made when they are needed.

    ``parts`` are joined; they are of the lookup's language.
    """

    parts: tuple[Examples, ...]
    lookup: Lookup

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the pairs."""
        parts = [[part.language, part.table_hash()] for part in self.parts]
        return {"pairs": parts, "lookup": self.lookup.ask}

    @cached_property
    def loaded(self) -> LabelledPairs:
        """Premises, hypotheses and classes, in words as `parallel_text.tokenize` has them."""
        lookup = self.lookup.load()
        first, second = (
            Sentences.of(
                [tokenize(x, part.language) for part in self.parts for x in getattr(part, side)],
                lookup,
            )
            for side in ("first", "second")
        )
        return first, second, self.labels

    @property
    def labels(self) -> np.ndarray:
        """Classes, int64 ``(n,)``."""
        return np.array([labelled.NLI.index(x) for part in self.parts for x in part.row_labels])

    def __len__(self) -> int:
        return sum(map(len, self.parts))


# --- recipes --------------------------------------------------------------------------------------


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


class _Trainable:
    """A recipe whose weights are trained where this machine has not got them."""

    def state(self) -> dict[str, np.ndarray]:
        """The weights."""
        return trained([self])[0].state


@dataclass(frozen=True, eq=False)
class Inferred(_Trainable):
    """The recipe of an encoder that `train_nli` makes of ``pairs``, with its further options."""

    name: str
    sizes: Sizes
    pairs: Inference
    validation: Inference
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nli(self) -> "Inferred":
        """Itself: whose classifier judges it (as of a `Mapped` one)."""
        return self

    @cached_property
    def ask(self) -> Ask:
        """What decides the weights."""
        about = {"encoder": self.name, "sizes": asdict(self.sizes), "pairs": self.pairs.about}
        about |= {"validation": self.validation.about}
        about |= {"options": {**train_nli.__kwdefaults__, **self.options}}
        return INFERENCE_ENCODERS.ask(about)

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Words of the sentences that it learns from."""
        return self.pairs.lookup, self.validation.lookup


@dataclass(frozen=True, eq=False)
class Mapped(_Trainable):
    """The recipe of an encoder that `align` makes of ``nli``, with its further options.

    ``parallel`` has English first; it is read with ``source`` and ``target``. Without ``target``
    English is mapped to itself.
    """

    nli: Inferred
    parallel: ParallelText
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
        """What decides the weights."""
        about = {"nli": self.nli.ask, "translations": self.parallel.about}
        about |= {"source": self.source.ask, "target": self.target and self.target.ask}
        about |= {"validation": self.validation.about}
        about |= {"options": {**align.__kwdefaults__, **self.options}}
        return MAPPED_ENCODERS.ask(about)

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Words of the sentences that it learns from."""
        return self.source, self.target or self.source, self.validation.lookup


@lru_cache(maxsize=8)  # six encoders read the same
def _both_sides(
    parallel: ParallelText, source: Lookup, target: Lookup | None
) -> tuple[Sentences, Sentences]:
    """Translations in the words of two lookups; without the second, English twice."""
    english = Sentences.of(parallel.lines[0], source.load())
    return english, Sentences.of(parallel.lines[1], target.load()) if target else english


def trained(recipes: Sequence[Inferred | Mapped]) -> list[InferenceEncoder]:
    """The encoders of some recipes; those that this machine has not got train side by side.

    Raises EncoderError as `train_nli` and `align`; what was finished before is kept.
    """
    made: dict[int, InferenceEncoder] = {}
    for type_, kind, arguments in (
        (Inferred, INFERENCE_ENCODERS, _for_inference), (Mapped, MAPPED_ENCODERS, _for_mapping),
    ):  # fmt: skip
        own = [recipe for recipe in recipes if isinstance(recipe, type_)]
        calls = partial(_calls, own, arguments)
        values = work.results(kind, [recipe.ask.about for recipe in own], calls, alone=True)
        made |= {id(recipe): _unpacked(recipe, x) for recipe, x in zip(own, values, strict=True)}
    return [made[id(recipe)] for recipe in recipes]


def _calls(
    recipes: Sequence[Inferred | Mapped], arguments: Callable[..., Any], missing: list[int]
) -> list[work.Call]:
    needed = [recipes[position] for position in missing]
    load_lookups([lookup for recipe in needed for lookup in recipe.lookups])
    return [([x], own) for x, own in zip(missing, arguments(needed), strict=True)]


def _for_inference(recipes: Sequence[Inferred]) -> list[tuple]:
    return [(x.name, x.pairs.loaded, x.validation.loaded, x.sizes, x.options) for x in recipes]


def _for_mapping(recipes: Sequence[Mapped]) -> list[tuple]:
    english = trained([recipe.nli for recipe in recipes])
    return [
        (nli, *_both_sides(x.parallel, x.source, x.target), x.validation.loaded, x.options)
        for nli, x in zip(english, recipes, strict=True)
    ]


def _trained_nli(
    name: str, pairs: LabelledPairs, validation: LabelledPairs, sizes: Sizes, options: Mapping
) -> Value:
    return _packed(train_nli(name, *pairs, validation, sizes=sizes, **options))


def _aligned(
    english: InferenceEncoder,
    source: Sentences,
    target: Sentences,
    validation: LabelledPairs,
    options: Mapping,
) -> Value:
    return _packed(align(english, source, target, validation, **options))


#: What of a trained encoder is not in its recipe: arrays by name.
_PARTS = ("state", "classifier", "history")


def _packed(made: InferenceEncoder) -> Value:
    return {f"{x} {name}": np.asarray(y) for x in _PARTS for name, y in getattr(made, x).items()}


def _unpacked(recipe: Inferred | Mapped, arrays: Value) -> InferenceEncoder:
    state, classifier, history = (
        {x.removeprefix(f"{part} "): y for x, y in arrays.items() if x.startswith(f"{part} ")}
        for part in _PARTS
    )
    return InferenceEncoder(recipe.name, recipe.sizes, state, classifier, pd.DataFrame(history))


# --- what they answer -----------------------------------------------------------------------------


def inference_accuracies(
    recipes: Sequence[Inferred | Mapped], asked: Sequence[Inference]
) -> list[float]:
    """Accuracy of encoders on inference, each on its own pairs, in [0, 1].

    Raises EncoderError as `trained`.
    """
    abouts = [
        {"encoder": recipe.ask, "asked": pairs.about}
        for recipe, pairs in zip(recipes, asked, strict=True)
    ]

    def calls(missing: list[int]) -> list[work.Call]:
        load_lookups([asked[position].lookup for position in missing])
        made = trained([recipes[position] for position in missing])
        return [
            ([position], (own, *asked[position].loaded[:2]))
            for position, own in zip(missing, made, strict=True)
        ]

    values = work.results(ANSWERS, abouts, calls, what="encoders asked", alone=True)
    return [
        float(np.mean(value["predicted"] == pairs.labels))
        for value, pairs in zip(values, asked, strict=True)
    ]


def _answered(own: InferenceEncoder, premises: Sentences, hypotheses: Sentences) -> Value:
    predicted = nli_predictions(own, premises, hypotheses).astype(np.int8)
    return {x: y.to_numpy() for x, y in own.history.items()} | {"predicted": predicted}


def _answers_apart(stored: Value, computed: Value) -> float:
    """How far the best accuracies are apart, or a fifth of the share of other answers.

    Training on another processor takes another way from its first digits on; of 126 encoders the
    accuracies moved by 0.04 at most and the answers, near guessing, by 0.39 (AVX2 and AVX-512).
    """
    pairs = stored["predicted"], computed["predicted"]
    if pairs[0].shape != pairs[1].shape:
        return math.inf
    reached = abs(stored["accuracy"].max() - computed["accuracy"].max())
    return max(float(reached), float(np.mean(pairs[0] != pairs[1])) / 5)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Translations, among which an encoder of ``target``'s language is to find each sentence's own.

    ``encoder`` is `Mapped`; or `Inferred`, the English one itself, which reads the target's words
    in the space of the English ones, so with no mapping of sentences; or None, the mean of the
    words' vectors. ``parallel`` has English first; its first ``skip`` pairs of lines are passed
    over: those that the encoder was mapped by.
    """

    encoder: Inferred | Mapped | None
    parallel: ParallelText
    source: Lookup
    target: Lookup
    skip: int = 0

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides what is found."""
        lookups = {"source": self.source.ask, "target": self.target.ask}
        lines = {"translations": self.parallel.about, "skip": self.skip}
        return {"encoder": self.encoder and self.encoder.ask} | lines | lookups

    def sides(self) -> list[Sentences]:
        """Sentences of both languages; EncoderError where all are passed over."""
        both = _both_sides(self.parallel, self.source, self.target)
        rows = range(self.skip, len(both[0]))
        if not rows:
            raise EncoderError(f"skip is {self.skip}, and there are {len(both[0])} translations")
        return [side.take(rows) for side in both]


def retrieved(asked: Sequence[Retrieval]) -> pd.DataFrame:
    """How well encoders give translations like vectors, a row each.

    ``n`` (translations), ``found`` (share of target sentences whose nearest English one, by cosine,
    is their translation: P@1; chance is 1 / n) and ``cosine`` (mean of translations).
    """

    def calls(missing: list[int]) -> list[work.Call]:
        needed = [asked[position] for position in missing]
        load_lookups([lookup for own in needed for lookup in (own.source, own.target)])
        recipes = [own.encoder for own in needed if own.encoder is not None]
        made = zip(trained([recipe.nli for recipe in recipes]), trained(recipes), strict=True)
        encoders = [(None, None) if own.encoder is None else next(made) for own in needed]
        return [
            ([position], (*pair, *own.sides()))
            for position, own, pair in zip(missing, needed, encoders, strict=True)
        ]

    abouts = [own.about for own in asked]
    tables = work.results(RETRIEVED, abouts, calls, what="translations", alone=True)
    return pd.concat(tables, ignore_index=True)


def _retrieved(
    english: InferenceEncoder | None,
    other: InferenceEncoder | None,
    source: Sentences,
    target: Sentences,
) -> pd.DataFrame:
    x, y = (
        mean_vectors(side) if own is None else encode(own.name, own.sizes, own.state, side)
        for own, side in ((english, source), (other, target))
    )
    rows = np.arange(len(x))
    hits = word_mapping.precision_at_1(y, x, np.column_stack([rows, rows]))
    cosine = functional.cosine_similarity(torch.from_numpy(x), torch.from_numpy(y)).mean()
    return pd.DataFrame([{"n": len(x), "found": float(hits.mean()), "cosine": float(cosine)}])


INFERENCE_ENCODERS = work.Kind(
    "sentence-encoders", _trained_nli, version=1, side_by_side=True, shipped=False
)
MAPPED_ENCODERS = work.Kind(
    "mapped-encoders", _aligned, version=1, side_by_side=True, shipped=False
)
ANSWERS = work.Kind(
    "xprobe-nli", _answered, version=1, tolerance=0.1, difference=_answers_apart,
    side_by_side=True, shared_seconds=120.0,  # word vectors, the English encoder
)  # fmt: skip
#: By encoders trained on two processors: 0.095 apart.
RETRIEVED = work.Kind(
    "xprobe-retrieval", _retrieved, version=1, tolerance=0.15, side_by_side=True,
    shared_seconds=120.0,
)  # fmt: skip
