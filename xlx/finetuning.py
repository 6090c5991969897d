"""Fine-tune a whole model to classify sentences or pairs, or to find answers, and keep predictions.

The model learns in one language and is asked in others. What the measuring (`xlx.transferability`)
needs of a run are its predictions on named sets at many checkpoints, so these are what is kept,
with their logits; weights are written on request.

Three algorithms (Chi et al., section 5.2):

* ``vanilla``: cross-entropy on the examples;
* ``gaussian``: the same, with Gaussian noise added to the word embeddings (Artetxe et al. 2020);
* ``xtune``: stage 1 of xTune (Zheng et al. 2021): cross-entropy on the clean input, plus λ₁ times
  the consistency of its prediction with the one on a noisy copy. Both passes drop out the same
  units, so that the extra term measures the noise alone and is zero without it; xTune's own code
  leaves dropout to chance in both, and so does ``Recipe(shared_dropout=False)``.

Examples (`xlx.examples`) make it a classifier, questions (`xlx.questions`) a reader that finds
where an answer starts and ends in a context, which is read in overlapping windows where it is long.

The model is the one of `transformers` for the task, with its own head and schedule; the loop is
ours, since its Trainer seeds the whole process and keeps its state in pickles. Order of examples,
dropout and noise depend on ``(seed, step)`` alone, so a run that was stopped goes on as if it had
not been.

    job = Job("mini-xlmr", train, {"de": translated}, Recipe(epochs=10))
    run = finetune(job)
    run.predictions["de"]  # (n_checkpoints, n_examples); of a reader, (n_checkpoints, n, 2) places
"""

import glob
import hashlib
import json
import math
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn import functional

from xlx import bfloat16, checks, executors, inputs, models, progress, provenance, store, work
from xlx.examples import Examples
from xlx.pretraining import save_state, saved_state
from xlx.questions import Questions, f1
from xlx.settings import current
from xlx.store import Store, StoreWarning, written_whole
from xlx.transferability import window

ALGORITHMS = ("vanilla", "gaussian", "xtune")
SCHEDULES = ("constant", "linear")
#: Tokens of a batch that is only predicted; it moves nothing but speed and the last digits.
TOKENS = 4096
#: Between two states of a run that is under way.
SAVE_SECONDS = 600.0


class FinetuningError(ValueError):
    """A run that cannot start or go on; says why and what to do."""


@dataclass(frozen=True)
class Recipe:
    """How to fine-tune. The defaults are those of Table 4 for XNLI, with one of its rates.

    Attributes
    ----------
    algorithm : {"vanilla", "gaussian", "xtune"}
    epochs, batch_size : int
    learning_rate : float
        Of AdamW. Rises from zero over the first ``warmup`` (a share of all steps), then follows
        the schedule.
    warmup, weight_decay : float
    schedule : {"constant", "linear"}
        After the warm-up: fixed, or falling to zero at the last step (`transformers`' default).
    clip : float
        Largest norm of the gradient. The paper does not say; 1 is the default of `transformers`.
    noise : float
        Standard deviation of the Gaussian noise (not used by vanilla).
    consistency : float
        λ₁, the weight of xTune's extra term.
    every : int
        Steps between checkpoints; the last step is one in any case.
    max_length : int, optional
        Tokens of an example, special ones included; longer ones are cut (and counted). None: what
        the model takes. Questions are never cut: their contexts are read in windows.
    stride : int
        Tokens by which the windows of a context overlap (questions only).
    longest_answer : int
        Tokens of an answer that a reader may give (questions only).
    dtype : {"float32", "bfloat16"}
        Of the forward passes; weights are float32 in any case. bfloat16 is twice as fast where the
        processor has it.
    dropout : float, optional
        Share of the units that every dropout of the model leaves out; None: as its config has it
        (0.1 in published encoders, 0 in the miniatures).
    shared_dropout : bool
        Whether both passes of xTune leave out the same units; False: as published, where the extra
        term measures dropout as well as noise.
    """

    algorithm: str = "vanilla"
    epochs: int = 40
    batch_size: int = 32
    learning_rate: float = 2e-5
    warmup: float = 0.1
    weight_decay: float = 0.0
    clip: float = 1.0
    noise: float = 0.075
    consistency: float = 1.0
    every: int = 10
    max_length: int | None = 128
    dtype: str = "float32"
    schedule: str = "constant"
    stride: int = 128
    longest_answer: int = 30
    dropout: float | None = None
    shared_dropout: bool = True

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise FinetuningError(
                f"the algorithm {self.algorithm!r} is not one of {', '.join(ALGORITHMS)}"
            )
        if self.dtype not in models.DTYPES:
            raise FinetuningError(f"dtype {self.dtype!r} is not one of {', '.join(models.DTYPES)}")
        if self.schedule not in SCHEDULES:
            raise FinetuningError(
                f"the schedule {self.schedule!r} is not one of {', '.join(SCHEDULES)}"
            )
        for name in ("epochs", "batch_size", "every", "stride", "longest_answer", "max_length"):
            if name != "max_length" or self.max_length is not None:
                checks.whole(getattr(self, name), name, FinetuningError)
        for name in ("learning_rate", "clip", "weight_decay", "noise", "consistency", "warmup"):
            if not (isinstance(value := getattr(self, name), Real) and math.isfinite(value)):
                raise FinetuningError(f"{name} is {value!r}: it must be a finite number")
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise FinetuningError(f"{name} is {getattr(self, name)}: it must be positive")
        for name in ("weight_decay", "noise", "consistency"):
            if not getattr(self, name) >= 0:
                raise FinetuningError(f"{name} is {getattr(self, name)}: it must not be negative")
        if not 0 <= self.warmup < 1:
            raise FinetuningError(f"warmup is {self.warmup}: it is a share of the steps, below 1")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise FinetuningError(f"dropout is {self.dropout}: it is a share of the units, below 1")

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
        for name, default in (("dropout", None), ("shared_dropout", True)):
            if fields[name] == default:  # so earlier results are found by the names they have
                del fields[name]
        return fields


@dataclass(frozen=True)
class Sparing:
    """Which checkpoints are asked about what, where not all is wanted of all.

    The set ``decides`` is predicted at every checkpoint; the sets of ``inside`` also where its
    error E is in one of the ``windows`` (E′, ε), that is where 0 ≤ E − E′ < ε (Equation 5); every
    set after each ``every`` steps (None: never) and after the last.

    Of the paper's runs (312 checkpoints on XNLI, 15 languages, training and test set) a window at
    E′ = 0 leaves a small part of the predicting, which costs far more than the training.
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
        reading = isinstance(self.train, Questions)
        if reading and not len(self.train):
            raise FinetuningError(f"{self.train.name}: there is no question to learn from")
        if not reading and len(np.unique(self.train.labels)) < 2:
            raise FinetuningError(
                f"{self.train.name}: all {len(self.train)} examples are of one class, so there is "
                "nothing to learn; two or more are needed"
            )
        if not self.evaluations:
            raise FinetuningError(f"{self.name}: there is no set to predict")
        if "train" in self.evaluations:
            raise FinetuningError(
                f'{self.name}: "train" names the training set itself: call the set to predict '
                "something else"
            )
        if self.sparing is not None:
            if reading:
                raise FinetuningError(f"{self.name}: of questions all are asked at all checkpoints")
            named = {self.sparing.decides, *self.sparing.inside}
            if unknown := sorted(named - set(self.evaluations)):
                raise FinetuningError(
                    f"{self.name}: sparing names {unknown[0]}, and the sets to predict are "
                    f"{', '.join(self.evaluations)}"
                )
        for name, examples in self.evaluations.items():
            if not len(examples):
                raise FinetuningError(f"{self.name}: the set {name} to predict is empty")
            if reading != isinstance(examples, Questions):
                raise FinetuningError(
                    f"{self.name}: {name} and the training set are not both of questions or both "
                    "of examples with classes"
                )
            if not reading and (examples.second is None) != (self.train.second is None):
                raise FinetuningError(
                    f"{self.name}: {name} and the training set are not both of pairs or both of "
                    "sentences"
                )


@dataclass(frozen=True)
class Run:
    """What is kept of a run.

    Attributes
    ----------
    model, source, algorithm : str
    seed : int
    learning_rate : float
    steps : np.ndarray
        int64 ``(n_checkpoints,)``.
    losses : np.ndarray
        float32 ``(n_steps,)``: the loss of every batch, in nats.
    predictions : dict
        Name of a set → int16 ``(n_checkpoints, n)``, the class predicted for each example (-1 where
        it was not asked, see `Sparing`); of questions int32 ``(n_checkpoints, n, 2)``, where the
        answer starts and ends in the context, in characters ((0, 0): none).
    logits : dict
        Name of a set → float16 ``(n_checkpoints, n, classes)``; of questions
        ``(n_checkpoints, n)``, the score of the answer, the sum of the logits of its ends.
    n_cut : dict
        Name of a set (and "train") → how many of its examples were cut at the maximum length; of
        questions, whose contexts are not cut, how many are read in several windows.
    """

    model: str
    source: str
    algorithm: str
    seed: int
    learning_rate: float
    steps: np.ndarray
    losses: np.ndarray
    predictions: dict[str, np.ndarray]
    logits: dict[str, np.ndarray]
    n_cut: dict[str, int]


# --- losses ---------------------------------------------------------------------------------------


@contextmanager
def gaussian_noise(
    embedding: torch.nn.Module, sd: float, generator: torch.Generator
) -> Iterator[None]:
    """Within, the word embeddings come with Gaussian noise of this standard deviation."""

    def add(module: torch.nn.Module, inputs: tuple, output: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(
            output.shape, generator=generator, device=output.device, dtype=output.dtype
        )
        return output + sd * drawn

    handle = embedding.register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()


def embedding_sd(name: str) -> float:
    """Standard deviation of a model's word embeddings, to which noise is added."""
    value = work.result(SPREAD, {"model": models.fingerprint(name)}, name)
    return float(value["sd"][0])


def _spread(name: str) -> dict[str, np.ndarray]:
    weights = models.load(name, dtype="float32").model.get_input_embeddings().weight
    return {"sd": np.array([weights.std().item()])}


SPREAD = work.Kind("embedding_sd", _spread, version=1)


def consistency(clean: torch.Tensor, noisy: torch.Tensor) -> torch.Tensor:
    """Symmetric divergence of two predictions from logits ``(n, classes)``, mean in nats.

    KL(P‖Q) + KL(Q‖P), each with its first distribution held fixed (Zheng et al. 2021, section 3.1).
    """
    p, q = functional.log_softmax(clean, dim=-1), functional.log_softmax(noisy, dim=-1)
    options = {"reduction": "batchmean", "log_target": True}
    return functional.kl_div(q, p.detach(), **options) + functional.kl_div(p, q.detach(), **options)


def training_loss(
    model: torch.nn.Module,
    inputs: Mapping[str, torch.Tensor],
    labels: torch.Tensor,
    recipe: Recipe,
    entropy: tuple[int, ...],
) -> torch.Tensor:
    """The loss of a batch by the recipe's algorithm; dropout and noise drawn from ``entropy``.

    ``labels`` are classes ``(n,)``, or of a reader the places of first and last token ``(n, 2)``,
    whose two cross-entropies are averaged.
    """
    device = labels.device
    dropout, noise, other = np.random.SeedSequence(entropy).generate_state(3).tolist()
    generator = torch.Generator(device).manual_seed(noise)

    def logits(seed: int = dropout) -> torch.Tensor:
        # Dropout has no generator of its own; fork_rng leaves that of the process as it was.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            with _autocast(device, recipe.dtype):
                return _logits(model(**inputs))

    if labels.ndim == 2:
        labels = labels.T.reshape(-1)  # as `_logits` has them: starts before ends
    if recipe.algorithm == "gaussian":
        with gaussian_noise(model.get_input_embeddings(), recipe.noise, generator):
            return functional.cross_entropy(logits(), labels)
    clean = logits()
    loss = functional.cross_entropy(clean, labels)
    if recipe.algorithm == "xtune" and recipe.consistency > 0:
        with gaussian_noise(model.get_input_embeddings(), recipe.noise, generator):
            noisy = logits(dropout if recipe.shared_dropout else other)
        loss = loss + recipe.consistency * consistency(clean, noisy)
    return loss


def _logits(output: Any) -> torch.Tensor:
    """Of a classifier ``(n, classes)``; of a reader ``(2n, length)``, starts before ends."""
    if "start_logits" in output:
        return torch.cat([output.start_logits, output.end_logits]).float()
    return output.logits.float()


def _autocast(device: torch.device, dtype: str) -> Any:
    if dtype == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=models.DTYPES[dtype])


# --- a run ----------------------------------------------------------------------------------------


def finetune(job: Job, *, weights: str | Path | None = None) -> Run:
    """Fine-tune one model, or find what was kept of it.

    Parameters
    ----------
    job : Job
    weights : str or Path, optional
        A folder that gets every checkpoint as an ordinary Hugging Face folder ``step-000010``, so
        that it can be named as a model. It is there when the run has ended, or not at all.

    Raises
    ------
    FinetuningError
        A training set of one class; a model that is no encoder; a loss that is no longer a number
        (with step and learning rate); a folder ``weights`` that holds something else.
    ModelNotFoundError, ValueError
        As `models.load`.
    """
    job.check()
    folder = None if weights is None else Path(weights)
    if folder is not None:
        _check_folder(folder, job)
    value = work.result(RUN, about(job), job, folder)
    if folder is not None and not folder.exists():
        _run(job, folder)
    return _as_run(job, value)


def finetune_all(jobs: Sequence[Job], *, weights: bool = False) -> list[Run]:
    """Many runs, side by side on a CPU, each on one thread; errors as `finetune`.

    All jobs are checked before the first starts; a run that was stopped goes on at the next call.
    With ``weights``, what is fine-tuned leaves its weights in the cache of the machine, where
    `xlx.grids` looks for them.
    """
    for job in jobs:
        job.check()
    values = work.results(
        RUN,
        [about(job) for job in jobs],
        lambda missing: [([i], (jobs[i], weights)) for i in missing],
        what="fine-tuning",
        alone=True,
    )
    return [_as_run(job, value) for job, value in zip(jobs, values, strict=True)]


def learning(job: Job) -> dict[str, Any]:
    """What decides the weights of a run: all of a job but what is predicted."""
    return {
        "model": models.fingerprint(job.model),
        "train": job.train.text_hash(),
        "classes": None if isinstance(job.train, Questions) else list(job.train.classes),
        "recipe": job.recipe.about,
        "seed": job.seed,
    }


def about(job: Job) -> dict[str, Any]:
    """What decides what is kept of a run; evaluations in their order, whatever they are called."""
    found = {
        **learning(job),
        "evaluations": [sets.text_hash() for sets in job.evaluations.values()],
    }
    if job.sparing is not None:
        place = {name: number for number, name in enumerate(job.evaluations)}
        labels = job.evaluations[job.sparing.decides].labels
        found["sparing"] = {
            "windows": [list(one) for one in job.sparing.windows],
            "every": job.sparing.every,
            "decides": place[job.sparing.decides],
            "inside": sorted(place[name] for name in job.sparing.inside),
            "labels": hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest(),
        }
    return found


def _as_run(job: Job, value: Mapping[str, np.ndarray]) -> Run:
    ends = np.cumsum([len(sets) for sets in job.evaluations.values()])[:-1]
    predictions, logits = (
        dict(zip(job.evaluations, np.split(value[name], ends, axis=1), strict=True))
        for name in ("predicted", "logits")
    )
    return Run(
        model=job.model,
        source=job.train.language,
        algorithm=job.recipe.algorithm,
        seed=job.seed,
        learning_rate=job.recipe.learning_rate,
        steps=value["steps"],
        losses=value["losses"],
        predictions=predictions,
        logits=logits,
        n_cut=dict(zip(["train", *job.evaluations], value["n_cut"].tolist(), strict=True)),
    )


def _run(job: Job, weights: Path | bool | None = None) -> dict[str, np.ndarray]:
    """The cut point: all that is kept of a run.

    ``steps``, ``losses``, ``n_cut`` (of the training set and each evaluation), and of all
    evaluations, one behind the other: ``predicted`` and ``logits`` as `Run` has them, ``score``
    ``(n_checkpoints, n_sets)``, see `score`. Weights go to a folder; True: to `weights_folder`.
    """
    folder = weights_folder(job) if weights is True else weights or None
    if folder is not None and folder.exists():
        folder = None
    key = {"run": about(job), **_made_with()}
    with quickly(job.recipe):
        if folder is None:
            state = Store(current().cache).path("finetuning-states", key, ".pt")
            value = _train(job, key, state, None)
            store.remove(state)
            store.remove(state.with_name(f"{state.name}.damaged"))
            store.sweep(state)
            return value
        part = _part(folder)
        value = _train(job, key, part / "state.pt", part)
        for left in part.glob("state.pt*"):
            store.remove(left)
        try:
            os.replace(part, folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise
            store.remove(part)
    return value


def _part(folder: Path) -> Path:
    """Where this process lays weights, and its state, until all are there.

    If a process that was killed left such a folder, it is that one, so that the run goes on.
    """
    mark = f".{folder.name}.{socket.gethostname()}"
    part = folder.with_name(f"{mark}.{os.getpid()}.part")
    for left in folder.parent.glob(f"{glob.escape(mark)}.*.part"):
        if not store.alive(int(left.name.split(".")[-2])):
            with suppress(OSError):  # of two, or taken by another process
                os.replace(left, part)
            store.remove(left)
    for torn in part.glob(".*.tmp"):
        store.remove(torn)
    return part


@contextmanager
def quickly(recipe: Recipe) -> Iterator[None]:
    """Within, on a CPU: one thread, as units go side by side, and bfloat16 that is not slow."""
    half = recipe.dtype == "bfloat16"
    with (
        executors.one_thread(),
        bfloat16.products(models.device_of(None)) if half else nullcontext(),
    ):
        yield


def score(asked: Examples | Questions, predicted: np.ndarray) -> float:
    """Share of the classes that are right; of places ``(n, 2)`` in contexts the mean F1.

    NaN for a set that was not asked.
    """
    if isinstance(asked, Examples):
        if (predicted < 0).all():
            return math.nan
        return float((predicted == asked.labels).mean())
    said = [text[start:end] for text, (start, end) in zip(asked.contexts, predicted, strict=True)]
    return float(
        np.mean(
            [
                f1(one, own, asked.context_language)
                for one, own in zip(said, asked.answers, strict=True)
            ]
        )
    )


def _apart(stored: work.Value, computed: work.Value) -> float:
    """By how much the scores of two runs differ: mean over sets, the largest of a checkpoint."""
    for name in ("steps", "n_cut"):
        if not np.array_equal(stored[name], computed[name]):
            return np.inf
    if stored["predicted"].shape != computed["predicted"].shape:
        return np.inf
    if not np.array_equal(np.isnan(stored["score"]), np.isnan(computed["score"])):
        return np.inf
    return float(np.nanmean(np.abs(stored["score"] - computed["score"]), axis=1).max())


#: A run. Its way parts from that of another processor at the first differing digit; what stays is
#: how good it gets.
RUN = work.Kind("finetuning", _run, version=1, tolerance=0.15, difference=_apart, side_by_side=True)


def _made_with() -> dict[str, str]:
    """What else moves the weights of a run by more than nothing: they never leave the machine."""
    return {
        "code": provenance.code_hash(_run),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
    }


def weights_folder(job: Job) -> Path:
    """Where this machine keeps the checkpoints of a job, if it does."""
    return Store(current().cache).path("finetuned", {**learning(job), **_made_with()}, "")


def kept_weights(job: Job) -> Path:
    """The folder of the last checkpoint: of the cache, where the job is fine-tuned if need be.

    Weights that are not what was written are reported and made again.
    """
    folder = weights_folder(job)
    if folder.exists() and (flaw := _flaw(folder, job)):
        warnings.warn(f"{folder} is not used: {flaw}; fine-tuning again", StoreWarning, 2)
        store.remove(folder)
    if not folder.exists():
        _run(job, folder)
    return max(folder.glob("step-*"))


def _train(
    job: Job, key: dict[str, Any], state: Path, folder: Path | None
) -> dict[str, np.ndarray]:
    """All that is kept of a run, as arrays; its weights in a folder."""
    device = models.device_of(None)
    lesson = (_reading if isinstance(job.train, Questions) else _classification)(job, device)
    recipe, model, tokenizer, n = job.recipe, lesson.model, lesson.tokenizer, len(lesson.rows)
    labels = torch.from_numpy(lesson.labels)
    n_steps, checkpoints = recipe.n_steps(n), recipe.checkpoint_steps(n)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    schedule = transformers.get_scheduler(
        "linear" if recipe.schedule == "linear" else "constant_with_warmup",
        optimiser, round(recipe.warmup * n_steps), n_steps,
    )  # fmt: skip
    done, losses, predicted, logits, files = 0, [], [], [], {}
    left = saved_state(state, device)
    if left is not None and left["key"] != json.dumps(key, sort_keys=True):
        warnings.warn(f"{state} is not used: it is of another run", StoreWarning, 2)
    elif left is not None:
        model.load_state_dict(left["model"])
        optimiser.load_state_dict(left["optimiser"])
        schedule.load_state_dict(left["schedule"])
        done, losses, files = left["step"], left["losses"], left["files"]
        predicted, logits = ([x.cpu().numpy() for x in left[k]] for k in ("predicted", "logits"))
    per_epoch = n_steps // recipe.epochs
    bar = progress.bar(what=job.name, total=n_steps)
    bar.update(done)
    saved = time.monotonic()
    for step in range(done + 1, n_steps + 1):
        epoch, batch = divmod(step - 1, per_epoch)
        order = np.random.default_rng([job.seed, epoch]).permutation(n)
        chosen = order[batch * recipe.batch_size : (batch + 1) * recipe.batch_size].tolist()
        inputs = _padded(tokenizer, [lesson.rows[i] for i in chosen], device)
        model.train()
        rate = schedule.get_last_lr()[0]
        loss = training_loss(model, inputs, labels[chosen].to(device), recipe, (job.seed, step))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        losses.append(float(loss.detach()))
        if not (math.isfinite(losses[-1]) and math.isfinite(float(norm))):
            raise FinetuningError(
                f"{job.name}: the loss is no longer a number at step {step} (learning rate "
                f"{rate:.3g}): lower the learning rate"
            )
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        bar.update()
        if step in checkpoints:
            for kept, found in zip((predicted, logits), _asked(job, lesson, step), strict=True):
                kept.append(found)
            if folder is not None:
                files |= _save_weights(model, tokenizer, folder / f"step-{step:06d}")
        if step < n_steps and time.monotonic() - saved >= SAVE_SECONDS:
            left = {
                "key": json.dumps(key, sort_keys=True), "step": step, "losses": losses,
                "predicted": [torch.from_numpy(row) for row in predicted],
                "logits": [torch.from_numpy(row) for row in logits], "files": files,
                "model": model.state_dict(), "optimiser": optimiser.state_dict(),
                "schedule": schedule.state_dict(),
            }  # fmt: skip
            save_state(state, left)
            saved = time.monotonic()
    bar.close()
    if folder is not None:
        with written_whole(folder / "run.json") as beside:
            beside.write_text(_described(job, files), encoding="utf-8")
    sets = list(job.evaluations.values())
    ends = np.cumsum([len(one) for one in sets])[:-1]
    return {
        "steps": np.array(checkpoints),
        "losses": np.array(losses, dtype=np.float32),
        "n_cut": np.array(lesson.n_cut),
        "predicted": np.array(predicted),
        "logits": np.array(logits),
        "score": np.array(
            [
                [score(one, said) for one, said in zip(sets, np.split(row, ends), strict=True)]
                for row in predicted
            ]
        ),
    }


def _asked(job: Job, lesson: "_Lesson", step: int) -> tuple[np.ndarray, np.ndarray]:
    """The predictions of all evaluations after a step, with logits; -1 and NaN for the spared."""
    sparing, sets = job.sparing, job.evaluations
    last = step == job.recipe.n_steps(len(lesson.rows))
    if sparing is None or last or sparing.wants_all(step):
        return lesson.predict(tuple(sets))
    predicted, logits = lesson.predict((sparing.decides,))
    ends = np.cumsum([len(one) for one in sets.values()])
    end = ends[list(sets).index(sparing.decides)]
    right = sets[sparing.decides].labels
    if sparing.wants_inside(float((predicted[end - len(right) : end] != right).mean())):
        more, more_logits = lesson.predict(sparing.inside)
        fresh = predicted < 0
        predicted[fresh], logits[fresh] = more[fresh], more_logits[fresh]
    return predicted, logits


@dataclass(frozen=True)
class _Lesson:
    """A model with its new head, what it is trained on, and how it is asked."""

    model: Any
    tokenizer: Any
    rows: list[dict[str, list[int]]]
    labels: np.ndarray
    predict: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]  # of evaluations, with logits
    n_cut: list[int]  # of the training set, then of each evaluation


def placed(model: Any, device: torch.device) -> Any:
    """The model on its device, with the attention that is fast there."""
    # The fused attention of a CPU is several times slower backwards than plain products.
    model.set_attn_implementation("eager" if device.type == "cpu" else "sdpa")
    return model.to(device)


def _classification(job: Job, device: torch.device) -> _Lesson:
    recipe = job.recipe
    model, tokenizer, limit = models.classifier(
        job.model, len(job.train.classes), job.seed, recipe.max_length, dropout=recipe.dropout
    )
    placed(model, device)
    rows, n_cut = {}, []
    for name, examples in {"train": job.train, **job.evaluations}.items():
        rows[name], cut = _tokenized(tokenizer, examples, limit)
        n_cut.append(cut)

    def predict(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        wanted = [name in names for name in job.evaluations for _ in rows[name]]
        asked = [row for name in job.evaluations if name in names for row in rows[name]]
        found, logits = predicted_classes(model, tokenizer, asked, device, recipe.dtype)
        if len(asked) == len(wanted):
            return found, logits
        every = np.full(len(wanted), -1, found.dtype)
        every_logits = np.full((len(wanted), logits.shape[1]), np.nan, logits.dtype)
        every[wanted], every_logits[wanted] = found, logits
        return every, every_logits

    return _Lesson(model, tokenizer, rows["train"], job.train.labels, predict, n_cut)


def _reading(job: Job, device: torch.device) -> _Lesson:
    recipe = job.recipe
    model, tokenizer, limit = models.reader(
        job.model, job.seed, recipe.max_length, dropout=recipe.dropout
    )
    placed(model, device)
    sets = [job.train, *job.evaluations.values()]
    laid = [laid_out(tokenizer, questions, limit, recipe.stride) for questions in sets]
    n_cut = [int((np.bincount([window.example for window in own]) > 1).sum()) for own, _ in laid]
    learnt, contexts = laid[0]
    labels = [
        inputs.answer_places(
            window, contexts[window.example].spans, answer.start, answer.start + len(answer.text)
        )
        for window in learnt
        for answer in job.train.answers[window.example][:1]
    ]

    def predict(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:  # all: questions spare none
        found = [predicted_spans(model, tokenizer, *asked, device, recipe) for asked in laid[1:]]
        places, scores = map(np.concatenate, zip(*found, strict=True))
        return places, scores

    return _Lesson(
        model, tokenizer, [window.row for window in learnt], np.array(labels), predict, n_cut
    )


def laid_out(
    tokenizer: Any, questions: Questions, limit: int | None, stride: int
) -> tuple[list[inputs.Window], list[inputs.Text]]:
    """The windows of all questions, and the tokenised context of each."""
    pattern = inputs.Pattern.of(tokenizer)
    asked = inputs.tokenised(tokenizer, questions.questions)
    read = inputs.tokenised(tokenizer, questions.contexts, spans=True)
    contexts = [read[text] for text in questions.contexts]
    found = []
    for i, (question, context) in enumerate(zip(questions.questions, contexts, strict=True)):
        ids = asked[question].ids
        found += inputs.windows(pattern, i, ids, context.ids, limit, stride)
    return found, contexts


def _tokenized(
    tokenizer: Any, examples: Examples, limit: int | None
) -> tuple[list[dict[str, list[int]]], int]:
    """One row of model inputs for each example, cut at the limit, and how many were cut."""
    texts = [list(examples.first)]
    if examples.second is not None:
        texts.append(list(examples.second))
    whole = tokenizer(*texts, verbose=False, return_attention_mask=False)
    cut = [] if limit is None else [
        i for i, ids in enumerate(whole["input_ids"]) if len(ids) > limit
    ]  # fmt: skip
    rows = [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]
    if cut:
        shorter = tokenizer(
            *[[side[i] for i in cut] for side in texts],
            truncation="longest_first", max_length=limit, return_attention_mask=False,
        )  # fmt: skip
        for k, i in enumerate(cut):
            rows[i] = {name: shorter[name][k] for name in whole}
    return rows, len(cut)


def _padded(
    tokenizer: Any, rows: list[dict[str, list[int]]], device: torch.device
) -> dict[str, torch.Tensor]:
    return dict(tokenizer.pad(rows, return_tensors="pt").to(device))


def _batches(lengths: np.ndarray) -> list[np.ndarray]:
    """Positions by length, in batches of at most `TOKENS` padded tokens."""
    batches, batch = [], []
    for i in np.argsort(lengths, kind="stable"):
        if batch and (len(batch) + 1) * lengths[i] > TOKENS:
            batches.append(np.array(batch))
            batch = []
        batch.append(int(i))
    return [*batches, np.array(batch)]


def predicted_classes(
    model: torch.nn.Module,
    tokenizer: Any,
    rows: Sequence[dict[str, list[int]]],
    device: torch.device,
    dtype: str,
) -> tuple[np.ndarray, np.ndarray]:
    """The class of each row, int16 ``(n,)``, and the logits, float16 ``(n, classes)``.

    Without dropout or noise.
    """
    found = np.empty(len(rows), dtype=np.int16)
    kept = np.empty((len(rows), model.config.num_labels), dtype=np.float16)
    model.eval()
    with torch.inference_mode(), _autocast(device, dtype):
        for batch in _batches(np.array([len(row["input_ids"]) for row in rows])):
            logits = model(**_padded(tokenizer, [rows[i] for i in batch], device)).logits.float()
            found[batch] = logits.argmax(dim=-1).cpu().numpy()
            kept[batch] = logits.cpu().numpy()
    return found, kept


def predicted_spans(
    model: torch.nn.Module,
    tokenizer: Any,
    windows: Sequence[inputs.Window],
    contexts: Sequence[inputs.Text],
    device: torch.device,
    recipe: Recipe,
) -> tuple[np.ndarray, np.ndarray]:
    """Where the answers start and end in their contexts, in characters: int32 ``(n, 2)``.

    And the score of each, the sum of the logits of its ends: float16 ``(n,)``, -inf for none.
    """
    scores = np.empty(len(windows))
    places = np.empty((len(windows), 2), dtype=np.int64)
    model.eval()
    with torch.inference_mode(), _autocast(device, recipe.dtype):
        for batch in _batches(np.array([len(window.row["input_ids"]) for window in windows])):
            chosen = [windows[i] for i in batch]
            padded = _padded(tokenizer, [window.row for window in chosen], device)
            output = model(**padded)
            place = torch.arange(padded["input_ids"].shape[1], device=device)
            low = torch.tensor([[window.offset] for window in chosen], device=device)
            high = torch.tensor([[window.offset + window.n] for window in chosen], device=device)
            score, first, last = inputs.best_spans(
                output.start_logits.float(), output.end_logits.float(),
                (place >= low) & (place < high), recipe.longest_answer,
            )  # fmt: skip
            scores[batch] = score.cpu().numpy()
            places[batch] = torch.stack([first, last], dim=1).cpu().numpy()
    best = inputs.best_of_windows(windows, scores, places[:, 0], places[:, 1], len(contexts))
    highest = np.full(len(contexts), -np.inf)
    np.maximum.at(highest, [window.example for window in windows], scores)
    found = np.array(
        [
            (context.spans[first][0], context.spans[last][1]) if first >= 0 else (0, 0)
            for context, (first, last) in zip(contexts, best, strict=True)
        ],
        dtype=np.int32,
    )
    return found, highest.astype(np.float16)


# --- what is written ------------------------------------------------------------------------------


def _described(job: Job, files: Mapping[str, str]) -> str:
    """Whose weights a folder holds, and the SHA-256 of each of their files: its ``run.json``."""
    whole = {**learning(job), **_made_with(), "files": files}
    return json.dumps(whole, sort_keys=True, indent=1) + "\n"


def _flaw(folder: Path, job: Job) -> str | None:
    """Why a folder does not hold the weights of a job as they were written, or None."""
    try:
        files = json.loads((folder / "run.json").read_text("utf-8"))["files"]
        if (folder / "run.json").read_text("utf-8") != _described(job, files) or not files:
            return "its run.json is of another run"
        changed = [x for x, digest in files.items() if store.digest_of(folder / x) != digest]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"a file is missing or torn ({type(error).__name__}: {error})"
    return f"{changed[0]} is not as it was written" if changed else None


def _check_folder(folder: Path, job: Job) -> None:
    """Raise where a folder, named by the caller, holds anything else than the weights of a job."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if not folder.exists():
        return
    if not (folder / "run.json").exists():
        raise FinetuningError(f"{folder} is not empty and holds no run: name another folder")
    if flaw := _flaw(folder, job):
        raise FinetuningError(
            f"{folder} holds the checkpoints of another run, or was changed ({flaw}): name another "
            "folder"
        )


def _save_weights(model: torch.nn.Module, tokenizer: Any, folder: Path) -> dict[str, str]:
    """A checkpoint; the SHA-256 of its files by their place in the folder of the run."""
    store.remove(folder)  # of a run that was killed behind its last state
    folder.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(folder) as beside, models.quiet():
        model.save_pretrained(beside)
        tokenizer.save_pretrained(beside)
    return {f"{folder.name}/{x.name}": store.digest_of(x) for x in sorted(folder.iterdir())}
