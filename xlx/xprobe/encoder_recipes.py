"""Recipes of sentence encoders: named by all that decides them, trained when they are needed.

Weights are large and only a means. So there are recipes of them, `Untrained`, `Inferred` and
`Mapped`, that name an encoder by all that decides it: `trained` makes those that are needed, side
by side, and what was computed from an encoder (`xlx.xprobe.encoder_answers`) is found again without
it.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from xlx.core import work
from xlx.core.ledger import Ask, Value
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.xprobe.encoder_inputs import Sentences
from xlx.xprobe.encoder_training import Aligned, LabelledPairs, Nli, align, train_nli
from xlx.xprobe.parallel_text import ParallelText, tokenize
from xlx.xprobe.sentence_encoders import Sizes, encoder, weights
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
        """Classes, int64 ``(n,)``. Raises ValueError where they are not those of inference."""
        return np.array([labelled.NLI.index(x) for part in self.parts for x in part.row_labels])

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
        return INFERENCE_ENCODERS.ask(
            about | {"validation": self.validation.about, "options": options}
        )

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
        """What decides the weights. Raises TypeError for an option that there is not."""
        about = {"nli": self.nli.ask, "translations": self.parallel.about}
        about |= {"source": self.source.ask, "target": self.target and self.target.ask}
        options = _with_defaults(align, self.options, set())
        return MAPPED_ENCODERS.ask(
            about | {"validation": self.validation.about, "options": options}
        )

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """Words of the sentences that it learns from."""
        own = self.source, self.target, self.validation.lookup
        return tuple(lookup for lookup in own if lookup is not None)

    def sides(self) -> tuple[Sentences, Sentences]:
        """Sentences of both languages."""
        return both_sides(self.parallel, self.source, self.target)

    def state(self) -> dict[str, np.ndarray]:
        """The weights, trained where this machine has not got them."""
        return trained([self])[0].state


def both_sides(
    parallel: ParallelText, source: Lookup, target: Lookup | None
) -> tuple[Sentences, Sentences]:
    own = Sentences.of(parallel.lines[0], source.load())
    return own, own if target is None else Sentences.of(parallel.lines[1], target.load())


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
    kind = INFERENCE_ENCODERS if isinstance(recipes[0], Inferred) else MAPPED_ENCODERS

    def calls(missing: list[int]) -> list[work.Call]:
        needed = [recipes[position] for position in missing]
        load_lookups([lookup for own in needed for lookup in own.lookups])
        if kind is INFERENCE_ENCODERS:
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

    what = "encoders trained" if kind is INFERENCE_ENCODERS else "encoders mapped"
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


INFERENCE_ENCODERS = work.Kind(
    "sentence-encoders", _trained_nli, version=1, side_by_side=True, shipped=False
)
MAPPED_ENCODERS = work.Kind(
    "mapped-encoders", _aligned, version=1, side_by_side=True, shipped=False
)
