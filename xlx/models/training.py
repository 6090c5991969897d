"""The loop that fine-tunes: losses, steps, checkpoints, and a state that lets a run go on.

The model is the one of `transformers` for the task, with its own head and schedule; the loop is
ours, since its Trainer seeds the whole process and keeps its state in pickles. Order of examples,
dropout and noise depend on ``(seed, step)`` alone, so a run that was stopped goes on as if it had
not been.
"""

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from xlx.core import progress, store
from xlx.core.store import StoreWarning, written_whole
from xlx.models import inputs, loading
from xlx.models.batching import Row
from xlx.models.jobs import FinetuningError, Job, Recipe
from xlx.models.predicting import (
    autocast,
    laid_out,
    pad_rows,
    placed,
    predicted_classes,
    predicted_spans,
    score,
    tokenised_examples,
)
from xlx.models.snapshots import save_state, saved_state
from xlx.text.questions import Questions

#: Between two states of a run that is under way.
SAVE_SECONDS = 600.0

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
            with autocast(device, recipe.dtype):
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


# --- a lesson -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lesson:
    """A model with its new head, what it is trained on, and how it is asked."""

    model: Any
    tokenizer: Any
    rows: list[Row]
    labels: np.ndarray
    predict: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]  # of evaluations, with logits
    n_cut: list[int]  # of the training set, then of each evaluation


def _classification(job: Job, device: torch.device) -> _Lesson:
    recipe = job.recipe
    model, tokenizer, limit = loading.classifier(
        job.model, len(job.train.classes), job.seed, recipe.max_length, dropout=recipe.dropout
    )
    placed(model, device)
    rows, n_cut = {}, []
    for name, examples in {"train": job.train, **job.evaluations}.items():
        rows[name], cut = tokenised_examples(tokenizer, examples, limit)
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
    model, tokenizer, limit = loading.reader(
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


def _asked(job: Job, lesson: _Lesson, step: int) -> tuple[np.ndarray, np.ndarray]:
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


# --- the loop -------------------------------------------------------------------------------------


@dataclass
class _Progress:
    """How far a run is: what its state holds beside weights and optimiser."""

    step: int = 0
    losses: list[float] = field(default_factory=list)
    predicted: list[np.ndarray] = field(default_factory=list)
    logits: list[np.ndarray] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


class _Training:
    """A lesson with its optimiser and schedule, at a step."""

    def __init__(self, job: Job, key: Mapping[str, Any], state: Path) -> None:
        from transformers import get_scheduler

        self.job, self.state, self.key = job, state, json.dumps(key, sort_keys=True)
        self.device = loading.device_of(None)
        reads = isinstance(job.train, Questions)
        self.lesson = (_reading if reads else _classification)(job, self.device)
        recipe, self.n_steps = job.recipe, job.recipe.n_steps(len(self.lesson.rows))
        self.optimiser = torch.optim.AdamW(
            self.lesson.model.parameters(), lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
        )  # fmt: skip
        self.schedule = get_scheduler(
            "linear" if recipe.schedule == "linear" else "constant_with_warmup",
            self.optimiser, round(recipe.warmup * self.n_steps), self.n_steps,
        )  # fmt: skip
        self.done = _Progress()
        self._go_on()

    def step(self, step: int) -> float:
        """One batch, as ``(seed, step)`` draws it; its loss."""
        job, lesson, n = self.job, self.lesson, len(self.lesson.rows)
        epoch, batch = divmod(step - 1, self.n_steps // job.recipe.epochs)
        order = np.random.default_rng([job.seed, epoch]).permutation(n)
        size = job.recipe.batch_size
        chosen = order[batch * size : (batch + 1) * size].tolist()
        rows = pad_rows(lesson.tokenizer, [lesson.rows[i] for i in chosen], self.device)
        labels = torch.from_numpy(lesson.labels)[chosen].to(self.device)
        lesson.model.train()
        rate = self.schedule.get_last_lr()[0]
        loss = training_loss(lesson.model, rows, labels, job.recipe, (job.seed, step))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(lesson.model.parameters(), job.recipe.clip)
        value = float(loss.detach())
        if not (math.isfinite(value) and math.isfinite(float(norm))):
            raise FinetuningError(
                f"{job.name}: the loss is no longer a number at step {step} (learning rate "
                f"{rate:.3g}): lower the learning rate"
            )
        self.optimiser.step()
        self.schedule.step()
        self.optimiser.zero_grad(set_to_none=True)
        return value

    def save(self) -> None:
        """Leave what lets the run go on."""
        done = self.done
        left = {
            "key": self.key, "step": done.step, "losses": done.losses, "files": done.files,
            "predicted": [torch.from_numpy(row) for row in done.predicted],
            "logits": [torch.from_numpy(row) for row in done.logits],
        }  # fmt: skip
        parts = ("optimiser", self.optimiser), ("schedule", self.schedule)
        parts = ("model", self.lesson.model), *parts
        save_state(self.state, left | {name: part.state_dict() for name, part in parts})

    def _go_on(self) -> None:
        left = saved_state(self.state, self.device)
        if left is None:
            return
        if left["key"] != self.key:
            warnings.warn(f"{self.state} is not used: it is of another run", StoreWarning, 4)
            return
        self.lesson.model.load_state_dict(left["model"])
        self.optimiser.load_state_dict(left["optimiser"])
        self.schedule.load_state_dict(left["schedule"])
        predicted, logits = ([x.cpu().numpy() for x in left[k]] for k in ("predicted", "logits"))
        self.done = _Progress(left["step"], left["losses"], predicted, logits, left["files"])


def trained_run(
    job: Job, key: Mapping[str, Any], state: Path, folder: Path | None
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All that is kept of a run, as arrays; its weights in a folder, and the SHA-256 of the files.

    ``key`` names the run; ``state`` is the file by which it goes on after a stop.
    """
    training = _Training(job, key, state)
    done, lesson = training.done, training.lesson
    checkpoints = job.recipe.checkpoint_steps(len(lesson.rows))
    bar = progress.bar(what=job.name, total=training.n_steps)
    bar.update(done.step)
    saved = time.monotonic()
    for step in range(done.step + 1, training.n_steps + 1):
        done.losses.append(training.step(step))
        done.step = step
        bar.update()
        if step in checkpoints:
            predicted, logits = _asked(job, lesson, step)
            done.predicted.append(predicted)
            done.logits.append(logits)
            if folder is not None:
                weights = folder / f"step-{step:06d}"
                done.files |= save_weights(lesson.model, lesson.tokenizer, weights)
        if step < training.n_steps and time.monotonic() - saved >= SAVE_SECONDS:
            training.save()
            saved = time.monotonic()
    bar.close()
    sets = list(job.evaluations.values())
    ends = np.cumsum([len(evaluation) for evaluation in sets])[:-1]
    scores = [
        [score(asked, said) for asked, said in zip(sets, np.split(row, ends), strict=True)]
        for row in done.predicted
    ]
    value = {
        "steps": np.array(checkpoints),
        "losses": np.array(done.losses, dtype=np.float32),
        "n_cut": np.array(lesson.n_cut),
        "predicted": np.array(done.predicted),
        "logits": np.array(done.logits),
        "score": np.array(scores),
    }
    return value, done.files


def save_weights(model: torch.nn.Module, tokenizer: Any, folder: Path) -> dict[str, str]:
    """A checkpoint; the SHA-256 of its files by their place in the folder of the run."""
    store.remove(folder)  # of a run that was killed behind its last state
    folder.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(folder) as beside, loading.quiet():
        model.save_pretrained(beside)
        tokenizer.save_pretrained(beside)
    return {f"{folder.name}/{x.name}": store.digest_of(x) for x in sorted(folder.iterdir())}
