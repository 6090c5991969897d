"""What is fine-tuned, on what and how: the recipe of a run, and the job that it is part of."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from xlx.measures.statistics import window
from xlx.results import checks
from xlx.subjects.identity import fingerprint
from xlx.subjects.loading import OF_TRAINING
from xlx.text.examples import Examples
from xlx.text.questions import Questions

ALGORITHMS = ("vanilla", "gaussian", "xtune")
SCHEDULES = ("constant", "linear")


class FinetuningError(ValueError):
    """A run that cannot start or go on; says why and what to do."""


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
        for name, known in (
            ("algorithm", ALGORITHMS), ("dtype", OF_TRAINING), ("schedule", SCHEDULES)
        ):  # fmt: skip
            if (value := getattr(self, name)) not in known:
                raise FinetuningError(f"{name} {value!r} is not one of {', '.join(known)}")
        for name in (
            "epochs", "batch_size", "every", "stride", "longest_answer", "max_length",
            "length_pool",
        ):  # fmt: skip
            if name != "max_length" or self.max_length is not None:
                checks.whole(getattr(self, name), name, FinetuningError)
        for name in ("learning_rate", "clip"):
            self._number(name, "above 0", lambda value: value > 0)
        for name in ("warmup", *(["dropout"] if self.dropout is not None else [])):
            self._number(name, "0 or more, below 1", lambda value: 0 <= value < 1)
        for name in ("weight_decay", "noise", "consistency"):
            self._number(name, "0 or more", lambda value: value >= 0)

    def _number(self, name: str, due: str, fits: Callable[[float], bool]) -> None:
        value = getattr(self, name)
        if not (isinstance(value, Real) and math.isfinite(value) and fits(value)):
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
        fields = asdict(self)
        for name, default in (
            ("dropout", None), ("shared_dropout", True), ("trained_embeddings", True),
            ("length_pool", 1),
        ):  # fmt: skip
            if fields[name] == default:  # so earlier results are found by the names they have
                del fields[name]
        return fields


@dataclass(frozen=True)
class Sparing:
    """Which checkpoints are asked about what, where not all is wanted of all.

    The set ``decides`` is predicted at every checkpoint; the sets of ``inside`` also where its
    error E is in one of the ``windows`` (E′, ε), that is where 0 ≤ E − E′ < ε (Equation 5); every
    set after each ``every`` steps (None: never) and after the last. Predicting costs far more than
    training: of the paper's runs (312 checkpoints) a window at E′ = 0 leaves a small part of it.
    """

    windows: tuple[tuple[float, float], ...] = ()
    every: int | None = None
    decides: str = "train"
    inside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise FinetuningError(f"every is {self.every} steps: it must be 1 or more")
        if bad := [one for one in self.windows if len(one) != 2 or not one[1] > 0]:
            raise FinetuningError(f"a window is an error and a tolerance above 0, not {bad[0]}")

    def wants_all(self, step: int) -> bool:
        """Whether every set is predicted after this step (after the last one it is in any case)."""
        return self.every is not None and step % self.every == 0

    def wants_inside(self, error: float) -> bool:
        """Whether the sets of ``inside`` are predicted where ``decides`` has this error."""
        return any(
            window(np.array([error]), level, tolerance).any() for level, tolerance in self.windows
        )


@dataclass(frozen=True)
class Job:
    """One run: what is fine-tuned, on what, how, and what is predicted at every checkpoint.

    ``model`` is a name for `models.load`; ``evaluations`` names the sets to predict (their labels
    or answers are not looked at, but for the one that decides in ``sparing``); ``seed`` is of the
    new head's weights, the order of examples, dropout and noise. With ``sparing``, what is not
    predicted at a checkpoint is -1, its logits NaN.
    """

    model: str
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
        if problem := self._problem():
            raise FinetuningError(f"{self.name}: {problem}")

    def _problem(self) -> str | None:
        reading = isinstance(self.train, Questions)
        if reading and not len(self.train):
            return f"{self.train.name}: there is no question to learn from"
        if not reading and len(np.unique(self.train.labels)) < 2:
            return (
                f"{self.train.name}: all {len(self.train)} examples are of one class, so there is "
                "nothing to learn; two or more are needed"
            )
        if not self.evaluations:
            return "there is no set to predict"
        if "train" in self.evaluations:
            return '"train" names the training set itself: call the set to predict something else'
        if self.sparing is not None:
            if reading:
                return "of questions all are asked at all checkpoints"
            named = {self.sparing.decides, *self.sparing.inside}
            if unknown := sorted(named - set(self.evaluations)):
                sets = ", ".join(self.evaluations)
                return f"sparing names {unknown[0]}, and the sets to predict are {sets}"
        for name, examples in self.evaluations.items():
            if not len(examples):
                return f"the set {name} to predict is empty"
            alike = f"{name} and the training set are not both of "
            if reading != isinstance(examples, Questions):
                return alike + "questions or both of examples with classes"
            if not reading and (examples.second is None) != (self.train.second is None):
                return alike + "pairs or both of sentences"
        return None


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
        }
    return about
