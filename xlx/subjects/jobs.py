"""What is fine-tuned, on what and how: the recipe of a run, and the job that it is part of."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from xlx.results import checks
from xlx.subjects.identity import Name, fingerprint
from xlx.subjects.loading import OF_TRAINING
from xlx.text.examples import Examples
from xlx.text.questions import Questions

ALGORITHMS = ("vanilla", "gaussian", "xtune")


class FinetuningError(ValueError):
    """A run that cannot start or go on; says why and what to do."""


@checks.typed(FinetuningError)
@dataclass(frozen=True)
class Recipe:
    """How to fine-tune. The defaults are those of Table 4 for XNLI, with one of its rates."""

    algorithm: str = "vanilla"  #: of `ALGORITHMS`
    epochs: int = 40
    batch_size: int = 32
    #: Of AdamW. Rises from zero over the first ``warmup`` (a share of all steps), then follows the
    #: schedule: "constant", or "linear", falling to zero at the last step.
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.0
    clip: float = 1.0  #: Largest norm of the gradient: the default of `transformers`.
    noise: float = 0.075  #: Standard deviation of the Gaussian noise (not used by vanilla).
    consistency: float = 1.0  #: λ₁, the weight of xTune's extra term.
    every: int = 10  #: Steps between checkpoints; the last step is one in any case.
    #: Tokens of an example, special ones included; longer ones are cut (and counted), contexts of
    #: questions read in windows. None: what the model takes.
    max_length: int | None = 128
    #: Of the forward passes, "float32" or "bfloat16" (twice as fast where the processor has it);
    #: weights are float32 in any case. "tf32": float32 with products in TF32 on CUDA.
    dtype: str = "float32"
    schedule: str = "constant"
    stride: int = 128  #: Tokens by which the windows of a context overlap.
    longest_answer: int = 30  #: Tokens of an answer that a reader may give.
    #: Share of the units that every dropout of the model leaves out; None: as in its config.
    dropout: float | None = None
    #: Whether both passes of xTune leave out the same units; False: as published, where the extra
    #: term measures dropout as well as noise.
    shared_dropout: bool = True
    #: Whether the table of word embeddings learns too. False: it stays as the model has it, to the
    #: bit, has no state of the optimiser, and no file that a run leaves holds it.
    trained_embeddings: bool = True
    #: Batches of which the examples are drawn together and sorted by length, so that less of them
    #: is padding; the batches then come in random order. 1: in the order in which they are drawn.
    length_pool: int = 1

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            checks.one_of(getattr(self, name), known, name, FinetuningError)
        for name in _WHOLE:
            checks.whole(getattr(self, name), name, FinetuningError)
        for name, (due, fits) in _NUMBERS.items():
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and fits(value)):
                raise FinetuningError(f"{name} is {value!r}: it must be a number, {due}")

    def n_steps(self, n: int) -> int:
        """Steps of a run on n examples; the last batch of an epoch may be smaller."""
        return self.epochs * math.ceil(n / self.batch_size)

    def checkpoint_steps(self, n: int) -> list[int]:
        """Steps after which predictions are kept."""
        last = self.n_steps(n)
        return sorted({*range(self.every, last + 1, self.every), last})

    @property
    def about(self) -> dict[str, Any]:
        """The fields by name; the later ones only where they are not at their defaults."""
        # So earlier results are found by the names that they have.
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in _LATER or getattr(self, field.name) != field.default
        }


_CHOICES = {"algorithm": ALGORITHMS, "dtype": OF_TRAINING, "schedule": ("constant", "linear")}
_WHOLE = ("epochs", "batch_size", "every", "stride", "longest_answer", "length_pool", "max_length")
_NUMBERS = {
    **dict.fromkeys(("learning_rate", "clip"), ("above 0", lambda x: x > 0)),
    **dict.fromkeys(("warmup", "dropout"), ("0 or more, below 1", lambda x: 0 <= x < 1)),
    **dict.fromkeys(("weight_decay", "noise", "consistency"), ("0 or more", lambda x: x >= 0)),
}
#: Fields that came later: named where they are not at their defaults.
_LATER = ("dropout", "shared_dropout", "trained_embeddings", "length_pool")


@checks.typed(FinetuningError)
@dataclass(frozen=True)
class Sparing:
    """Which checkpoints are asked about what, as predicting costs far more than training.

    The set ``decides`` is predicted at every checkpoint; the sets of ``inside`` also where its
    error E is in one of the ``windows`` (E′, ε), that is where 0 ≤ E − E′ < ε (Equation 5); every
    set after each ``every`` steps (None: never) and after the last. ``logits`` False: they are kept
    only where every set is predicted.
    """

    windows: tuple[tuple[float, float], ...] = ()
    every: int | None = None
    decides: str = "train"
    inside: tuple[str, ...] = ()
    logits: bool = True

    def __post_init__(self) -> None:
        checks.whole(self.every, "every", FinetuningError)
        for window in self.windows:
            if not window[1] > 0:
                raise FinetuningError(f"a window is an error and a tolerance above 0, not {window}")


@checks.typed(FinetuningError)
@dataclass(frozen=True)
class Job:
    """One run: what is fine-tuned, on what, how, and what is predicted at every checkpoint.

    ``model`` is a name for `loading.load`; ``evaluations`` names the sets to predict (their labels
    or answers are not looked at, but for the one that decides in ``sparing``); ``seed`` is of the
    new head's weights, the order of examples, dropout and noise. With ``sparing``, what is not
    predicted at a checkpoint is -1, its logits NaN.
    """

    model: Name
    train: Examples | Questions
    evaluations: Mapping[str, Examples | Questions]
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 1
    sparing: Sparing | None = None

    @property
    def name(self) -> str:
        return f"{self.model}, {self.train.name}, {self.recipe.algorithm}, seed {self.seed}"

    def check(self) -> None:
        """Raise FinetuningError where there is nothing to learn or to predict."""
        train, sets, spared = self.train, self.evaluations, self.sparing
        reading, problem = isinstance(train, Questions), None
        empty = [name for name, asked in sets.items() if not len(asked)]
        other = [
            name
            for name, asked in sets.items()
            if reading != isinstance(asked, Questions)
            or (not reading and (asked.second is None) != (train.second is None))
        ]
        if reading and not len(train):
            problem = f"{train.name}: there is no question to learn from"
        elif not reading and len(np.unique(train.labels)) < 2:
            problem = f"{train.name}: all {len(train)} examples are of one class, so there is "
            problem += "nothing to learn; two or more are needed"
        elif not sets:
            problem = "there is no set to predict"
        elif "train" in sets:
            problem = '"train" names the training set: call the set to predict something else'
        elif spared and reading:
            problem = "of questions all are asked at all checkpoints"
        elif spared and (unknown := sorted({spared.decides, *spared.inside} - set(sets))):
            problem = f"sparing names {unknown[0]}, and the sets to predict are {', '.join(sets)}"
        elif empty:
            problem = f"the set {empty[0]} to predict is empty"
        elif other:
            problem = f"{other[0]} and the training set are not both of questions, pairs or "
            problem += "sentences"
        if problem:
            raise FinetuningError(f"{self.name}: {problem}")


def learning(job: Job) -> dict[str, Any]:
    """What decides the weights of a run: all of a job but what is predicted."""
    return {
        "model": fingerprint(job.model),
        "train": job.train.text_hash(),
        "classes": None if isinstance(job.train, Questions) else list(job.train.classes),
        "recipe": job.recipe.about,
        "seed": job.seed,
    }


def run_about(job: Job) -> dict[str, Any]:
    """What decides what is kept of a run; evaluations in their order, whatever they are called."""
    evaluations = [sets.text_hash() for sets in job.evaluations.values()]
    about = {**learning(job), "evaluations": evaluations}
    if job.sparing is not None:
        place = {name: number for number, name in enumerate(job.evaluations)}
        labels = job.evaluations[job.sparing.decides].labels
        about["sparing"] = {
            "windows": [list(level) for level in job.sparing.windows],
            "every": job.sparing.every,
            "decides": place[job.sparing.decides],
            "inside": sorted(place[name] for name in job.sparing.inside),
            "labels": hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest(),
            **({} if job.sparing.logits else {"logits": False}),
        }
    return about
