"""Models that are fine-tuned already: asked as they are, in our classes whatever they call theirs.

A classifier of the hub, or one in somebody else's trainer, has labels of its own (``id2label`` of
its configuration), in an order of its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from xlx.models import loading
from xlx.models.jobs import Recipe
from xlx.models.predicting import LaidOut, Tuned

#: What a configuration calls labels without a name.
_NAMELESS = re.compile(r"LABEL_\d+")


class ClassesError(ValueError):
    """A model whose labels are not our classes, one to one; says which and what to do."""


def places_of_labels(
    config: Any,
    classes: Sequence[str],
    given: Mapping[str | int, str] | None = None,
    *,
    in_order: bool = False,
) -> np.ndarray:
    """The place in ``classes`` of each of a model's labels: int64 ``(n_labels,)``, a permutation.

    ``given``: the model's label, by its name or number → our class. None: by their names, whatever
    their case, spaces, hyphens and underscores; with ``in_order``, labels without names (LABEL_0
    ...) are our classes in their order. ClassesError where that is not one to one.
    """
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    nameless = all(map(_NAMELESS.fullmatch, names))
    if given is not None:
        known = {*names, *map(str, range(len(names)))}
        if unknown := [label for label in map(str, given) if label not in known]:
            raise ClassesError(f"the model has no label {unknown[0]}: it has {', '.join(names)}")
        said = {str(label): one for label, one in given.items()}
        found = [said.get(name, said.get(str(number))) for number, name in enumerate(names)]
    elif nameless and in_order and len(names) == len(classes):
        found = list(classes)
    else:
        ours = {_plain(one): one for one in classes}
        found = [ours.get(_plain(name)) for name in names]
    if sorted(map(str, found)) != sorted(classes):
        raise ClassesError(
            f"the model's labels ({', '.join(names)}) are not the classes asked about "
            f"({', '.join(classes)}) one to one: say which is which, "
            f"classes={{{names[0]!r}: {classes[0]!r}, ...}}"
        )
    return np.array([list(classes).index(one) for one in found])


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def answers(
    tuned: Tuned, sets: Sequence[LaidOut], places: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """`Tuned.predict` in our classes: of a classifier whose labels have these ``places``."""
    predicted, logits = tuned.predict(sets)
    if places is None:
        return predicted, logits
    return places[predicted].astype(predicted.dtype), logits[:, np.argsort(places)]


@dataclass(frozen=True)
class Headed:
    """A model that was fine-tuned elsewhere, with its own head: a classifier, or a reader.

    ``model`` is a name for `loading.headed_model`; ``recipe`` that of the asking (length, windows,
    precision); ``classes`` ours, None of a reader; ``given`` as in `places_of_labels`.
    """

    model: str
    recipe: Recipe
    classes: tuple[str, ...] | None
    given: Mapping[str | int, str] | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What decides its answers but for the text, without loading it."""
        names = ["max_length", "dtype"] + ["stride", "longest_answer"] * (self.classes is None)
        return {
            "model": loading.fingerprint(self.model),
            "classes": self.classes and list(self.classes),
            "labels": self.given and sorted([str(label), one] for label, one in self.given.items()),
            **{name: getattr(self.recipe, name) for name in names},
        }

    def places(self) -> np.ndarray | None:
        """`places_of_labels`, before the weights are read; None of a reader."""
        if self.classes is None:
            return None
        config = loading.configuration(self.model)
        return places_of_labels(config, self.classes, self.given)

    def load(self) -> Tuned:
        """The model, to be asked. Errors as `loading.headed_model`."""
        model, tokenizer, limit = loading.headed_model(
            self.model, self.recipe.max_length, reads=self.classes is None
        )
        device = loading.device_of(None)
        return Tuned(model.to(device).eval(), tokenizer, limit, self.recipe, device)


def in_training(model: torch.nn.Module, tokenizer: Any, recipe: Recipe) -> Tuned:
    """A classifier that somebody else trains, as it is now, to be asked on its device."""
    parameter = next(model.parameters())
    encoder = loading.Encoder(
        model.base_model, tokenizer, "the model in training", "", "encoder", parameter.device,
        parameter.dtype,
    )  # fmt: skip
    limit = encoder.limit(recipe.max_length, pair=True)
    return Tuned(model, tokenizer, limit, recipe, parameter.device)
