"""Fine-tune a whole model to classify sentences or pairs, or to find answers, and keep predictions.

What is kept of a run are its predictions on named sets at many checkpoints, with their logits; last
weights stay in the cache, on request (`tuned`). Three algorithms (Chi et al., section 5.2):

* ``vanilla``: cross-entropy on the examples;
* ``gaussian``: the same, with Gaussian noise added to the word embeddings (Artetxe et al. 2020);
* ``xtune``: stage 1 of xTune (Zheng et al. 2021): cross-entropy on the clean input, plus λ₁ times
  the consistency of its prediction with the one on a noisy copy. Both passes drop out the same
  units, so that the extra term measures the noise alone and is zero without it; xTune's own code
  leaves dropout to chance in both, and so does ``Recipe(shared_dropout=False)``.

Examples (`xlx.text.examples`) make it a classifier, questions (`xlx.text.questions`) a reader that
finds where an answer starts and ends. A run stays on one device: it is repeated to the bit, and
resumed so.

    job = Job("mini-xlmr", train, {"de": translated}, Recipe(epochs=10))
    (run,) = finetune_all([job])
    run.predictions["de"]  # (n_checkpoints, n_examples); of a reader, (n_checkpoints, n, 2) places
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from xlx.measures import statistics
from xlx.results import checks, ledger, progress, provenance, store, work
from xlx.results.deferred import deferred
from xlx.results.ledger import Ask, Cache
from xlx.results.settings import current
from xlx.results.store import StoreWarning, written_whole
from xlx.subjects import identity, predicting
from xlx.subjects.jobs import FinetuningError, Job, Recipe, learning, run_about
from xlx.subjects.predicting import Tuned, autocast, quickly, score
from xlx.text.examples import Examples
from xlx.text.questions import Questions

torch = deferred("torch")
functional = deferred("torch.nn.functional")


@dataclass(frozen=True)
class Run:
    """What is kept of a run, by the name of a set.

    ``predictions`` are int16 ``(n_checkpoints, n)``, the class of each example (-1 where it was not
    asked, see `Sparing`), ``logits`` float16 ``(n_checkpoints, n, classes)``, NaN there; of a run
    that was sparing they are made when they are read. Of questions they are int32
    ``(n_checkpoints, n, 2)``, where the answer starts and ends in the context, in characters
    ((0, 0): none), and ``(n_checkpoints, n)``, the sum of the logits of its ends. ``n_cut`` is how
    many examples (of "train" too) were cut at the maximum length, or read in several windows.
    """

    model: str
    source: str
    algorithm: str
    seed: int
    learning_rate: float
    steps: ndarray  # int64 (n_checkpoints,)
    losses: ndarray  # float32 (n_steps,): the loss of every batch, in nats
    predictions: Mapping[str, ndarray]
    logits: Mapping[str, ndarray]
    n_cut: dict[str, int]


@checks.typed(FinetuningError)
def finetune_all(jobs: Sequence[Job], *, weights: bool = False) -> list[Run]:
    """Fine-tune models, side by side on a CPU, each on one thread, or find what was kept of them.

    A run that was stopped goes on. All jobs are checked before the first starts. With ``weights``,
    what is fine-tuned leaves its last weights in the cache of this machine, for `tuned`.

    FinetuningError for a training set of one class, a loss that is no longer a number (with step
    and learning rate), a checkpoint without weights (`identity.Checkpoint.recorded`) that was not
    fine-tuned before, and as `Job.check`; ModelNotFoundError and ValueError as `loading.load`, and
    for a model that is no encoder.
    """
    for job in jobs:
        job.check()
    absent = [i for i, job in enumerate(jobs) if getattr(job.model, "recorded", None)]
    values = work.results(
        RUN,
        [run_about(job) for job in jobs],
        lambda missing: [([i], (jobs[i], weights)) for i in missing],
        what="fine-tuning",
        alone=True,
        uncomputable=absent,
        hold=lambda i, value: _held(jobs[i], value),
    )
    if lost := [identity.title(jobs[i].model) for i in absent if values[i] is None]:
        raise FinetuningError(
            f"{lost[0]}: its weights are not shipped, and what it answers is not stored: leave it "
            "out, or train it again and give its folder"
        )
    runs = []
    for job, value in zip(jobs, values, strict=True):
        how = job.train.language, job.recipe.algorithm, job.seed, job.recipe.learning_rate
        runs.append(Run(identity.title(job.model), *how, **value))
    return runs


def unstored(jobs: Sequence[Job]) -> list[Job]:
    """Those of the jobs whose runs are neither in the ledger nor in the cache."""
    every = range(len(jobs))
    stored = work.results(RUN, [run_about(x) for x in jobs], lambda _: (), uncomputable=every)
    return [job for job, value in zip(jobs, stored, strict=True) if value is None]


def tuned(job: Job) -> Tuned:
    """The model of a job after its last step: from the cache, or fine-tuned if need be."""
    model = Tuned.new(job.model, job.train, job.recipe, job.seed)
    cache, ask = Cache(current().cache), _weights(job)
    if cache.get(ask) is None:
        _run(job, weights=True)
    weights = cache.get(ask).value
    model.restore({name: torch.from_numpy(x) for name, x in weights.items()})
    return model


def _held(job: Job, value: ledger.Value) -> dict[str, Any]:
    """A value in as little memory as what was asked; predictions and logits by set."""
    ends = np.cumsum([len(sets) for sets in job.evaluations.values()])[:-1]

    def by_set(name: str, nothing: float) -> Mapping[str, ndarray]:
        parts = dict(zip(job.evaluations, np.split(value[name], ends, axis=1), strict=True))
        if not job.sparing:
            return parts
        held = {}
        for key, whole in parts.items():
            there = (whole == whole) & (whole != nothing)
            places = np.flatnonzero(there.reshape(len(whole), -1).any(1))
            held[key] = whole.shape, places, whole[places]

        def spread(key: str) -> ndarray:
            shape, places, rows = held[key]
            whole = np.full(shape, nothing, rows.dtype)
            whole[places] = rows
            return whole

        return ledger.Arrays(held, spread)

    logits = cache(partial(by_set, "logits", np.nan))
    return {
        "steps": value["steps"],
        "losses": value["losses"],
        "n_cut": dict(zip(["train", *job.evaluations], value["n_cut"].tolist(), strict=True)),
        "predictions": by_set("predicted", -1),
        # those of the ledger take seconds to decode, and few look at them
        "logits": ledger.Arrays(job.evaluations, lambda name: logits()[name])
        if isinstance(value, ledger.Arrays)
        else logits(),
    }


def _run(job: Job, weights: bool = False) -> dict[str, ndarray]:
    """The cut point: all that is kept of a run; its last weights in the cache, if asked for.

    ``steps``, ``losses``, ``n_cut`` (of the training set and each evaluation), of all evaluations,
    one behind the other, ``predicted`` and ``logits``, and ``score`` ``(n_checkpoints, n_sets)``.
    """
    cache, left = Cache(current().cache), Ask("finetuning-states", _made_with(run=run_about(job)))
    state = cache.path(left, ".pt")
    with quickly(job.recipe):
        value, model = trained_run(job, left.about, state)
    if weights:
        arrays = {name: tensor.cpu().numpy() for name, tensor in model.trained().items()}
        cache.put(_weights(job), arrays)
    store.remove(state)
    store.sweep(state)
    return value


def _apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """By how much the scores of two runs differ: mean over sets, the largest of a checkpoint."""
    both = stored, computed
    asked = [(x["steps"], x["n_cut"], x["predicted"].shape, np.isnan(x["score"])) for x in both]
    if not all(map(np.array_equal, *asked)):
        return np.inf
    return float(np.nanmean(np.abs(stored["score"] - computed["score"]), 1).max())


#: A run. Its way parts from that of another processor at the first differing digit; what stays is
#: how good it gets (0.09 apart at most in 75 runs, AVX2 and AVX-512).
RUN = work.Kind("finetuning", _run, version=1, tolerance=0.15, difference=_apart, side_by_side=True)


def _made_with(**about: Any) -> dict[str, Any]:
    """With what else moves weights by more than nothing: they never leave the machine."""
    environment = provenance.environment()
    libraries = {name: environment[name] for name in ("torch", "transformers")}
    return {**about, "code": provenance.code_hash(_run), **libraries}


def _weights(job: Job) -> Ask:
    """By what the weights of a job are found in the cache."""
    return Ask("finetuned", _made_with(**learning(job)))


#: Between two states of a run that is under way.
SAVE_SECONDS = 600.0


def save_state(path: Path, left: Mapping[str, Any]) -> None:
    """Keep what lets a run go on in a file, whole or not at all, with its seal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as beside:
        # By way of Python's file, whose error says why it could not be written.
        with beside.open("wb") as file:
            torch.save(left, file)
        store.append_seal(beside)


def saved_state(path: Path, where: torch.device) -> dict[str, Any] | None:
    """What `save_state` has left in a file, if it can be trusted; else a StoreWarning."""
    try:
        store.check_appended(path)
        return torch.load(path, map_location=where, weights_only=True)
    except FileNotFoundError:
        return None
    except (OSError, store.Damaged) as error:
        message = f"{path} is not used: {error}; starting anew"
        warnings.warn(message, StoreWarning, stacklevel=3)
        return None


def gaussian_noise(
    embedding: torch.nn.Module, sd: float, generator: torch.Generator
) -> AbstractContextManager[Any]:
    """Within, the word embeddings come with Gaussian noise of this standard deviation."""

    def add(module: torch.nn.Module, inputs: tuple, output: torch.Tensor) -> torch.Tensor:
        options = {"device": output.device, "dtype": output.dtype}
        return output + sd * torch.randn(output.shape, generator=generator, **options)

    return embedding.register_forward_hook(add)


def consistency(clean: torch.Tensor, noisy: torch.Tensor) -> torch.Tensor:
    """Symmetric divergence of two predictions from logits ``(n, classes)``, mean in nats.

    KL(P‖Q) + KL(Q‖P), each with its first distribution held fixed (Zheng et al. 2021, section 3.1).
    """
    p, q = functional.log_softmax(clean, dim=-1), functional.log_softmax(noisy, dim=-1)
    options = {"reduction": "batchmean", "log_target": True}
    return functional.kl_div(q, p.detach(), **options) + functional.kl_div(p, q.detach(), **options)


def training_loss(
    model: torch.nn.Module,
    rows: Mapping[str, torch.Tensor],
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
                return _logits(model(**rows))

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


def epoch_order(
    lengths: ndarray, batch_size: int, length_pool: int, entropy: tuple[int, ...]
) -> ndarray:
    """The order of examples in an epoch, drawn from ``entropy``: int64 ``(n,)``.

    With a ``length_pool`` of several batches, the examples of each pool are sorted by length before
    they are cut into batches, whose order is then drawn. What fills no batch comes last.
    """
    rng = np.random.default_rng(entropy)
    order = rng.permutation(len(lengths))
    if length_pool == 1:
        return order
    whole = len(order) // batch_size * batch_size
    parts = []
    for start in range(0, whole, length_pool * batch_size):
        pool = order[start : min(start + length_pool * batch_size, whole)]
        pool = pool[np.argsort(lengths[pool], kind="stable")].reshape(-1, batch_size)
        parts.append(rng.permutation(pool).ravel())
    return np.concatenate([*parts, order[whole:]])


@dataclass
class _Progress:
    """How far a run is: what its state holds beside weights and optimiser."""

    step: int = 0
    losses: list[float] = field(default_factory=list)
    predicted: list[torch.Tensor] = field(default_factory=list)
    logits: list[torch.Tensor] = field(default_factory=list)


class _Training:
    """A model with its new head, what it is trained on and asked, optimiser and schedule."""

    def __init__(self, job: Job, key: Mapping[str, Any], state: Path) -> None:
        from transformers import get_scheduler

        self.job, self.state, self.key = job, state, json.dumps(key, sort_keys=True)
        recipe = job.recipe
        self.tuned = Tuned.new(job.model, job.train, recipe, job.seed)
        self.train = self.tuned.laid_out(job.train)
        self.sets = {name: self.tuned.laid_out(asked) for name, asked in job.evaluations.items()}
        self.labels = job.train.labels if isinstance(job.train, Examples) else self._places()
        self.n_steps = recipe.n_steps(len(self.train.rows))
        self.lengths = np.array([len(row["input_ids"]) for row in self.train.rows])
        self.optimiser = torch.optim.AdamW(
            [weights for weights in self.tuned.model.parameters() if weights.requires_grad],
            lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
        )
        self.schedule = get_scheduler(
            "linear" if recipe.schedule == "linear" else "constant_with_warmup",
            self.optimiser,
            round(recipe.warmup * self.n_steps),
            self.n_steps,
        )
        self.parts = {"optimiser": self.optimiser, "schedule": self.schedule}
        self.done = self._left()

    def _places(self) -> ndarray:
        """Where in each window the first answer to its question starts and ends."""
        places = []
        for window in self.train.windows:
            first = self.job.train.answers[window.example][0]
            places.append(predicting.answer_places(window, first.start, first.end))
        return np.array(places)

    def step(self, step: int) -> float:
        """One batch, as ``(seed, step)`` draws it; its loss."""
        job, model = self.job, self.tuned.model
        epoch, batch = divmod(step - 1, self.n_steps // job.recipe.epochs)
        size = job.recipe.batch_size
        order = epoch_order(self.lengths, size, job.recipe.length_pool, (job.seed, epoch))
        chosen = order[batch * size : (batch + 1) * size].tolist()
        rows = self.tuned.padded([self.train.rows[i] for i in chosen])
        labels = torch.from_numpy(self.labels)[chosen].to(self.tuned.device)
        model.train()
        rate = self.schedule.get_last_lr()[0]
        loss = training_loss(model, rows, labels, job.recipe, (job.seed, step))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), job.recipe.clip)
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

    def answers(self, step: int) -> tuple[ndarray, ndarray]:
        """Predictions of all evaluations after a step, and logits; -1 and NaN for the spared."""
        sparing, sets = self.job.sparing, self.job.evaluations
        if sparing is None or step == self.n_steps or (sparing.every and step % sparing.every == 0):
            return self._predict(tuple(sets))
        predicted, logits = self._predict((sparing.decides,))
        wrong = predicted[self._of(sparing.decides)] != sets[sparing.decides].labels
        if any(statistics.window(wrong.mean(), *level) for level in sparing.windows):
            more, more_logits = self._predict(sparing.inside)
            fresh = predicted < 0
            predicted[fresh], logits[fresh] = more[fresh], more_logits[fresh]
        return predicted, logits if sparing.logits else np.full_like(logits, np.nan)

    def _of(self, *names: str) -> ndarray:
        """Which predictions are of these sets."""
        return np.repeat([name in names for name in self.sets], [x.n for x in self.sets.values()])

    def _predict(self, names: Sequence[str]) -> tuple[ndarray, ndarray]:
        """Predictions and logits of some evaluations, among those of all."""
        asked = [laid for name, laid in self.sets.items() if name in names]
        if isinstance(self.job.train, Questions):  # which spare none; each set batched by itself
            parts = [self.tuned.predict([laid]) for laid in asked]
            return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
        there = self._of(*names)
        answers, of_found = self.tuned.predict(asked)
        predicted = np.full(len(there), -1, answers.dtype)
        logits = np.full((len(there), of_found.shape[1]), np.nan, of_found.dtype)
        predicted[there], logits[there] = answers, of_found
        return predicted, logits

    def save(self) -> None:
        """Leave what lets the run go on."""
        states = {name: part.state_dict() for name, part in self.parts.items()}
        states |= {"key": self.key, "done": vars(self.done), "model": self.tuned.trained()}
        save_state(self.state, states)

    def _left(self) -> _Progress:
        """How far the run was when it was stopped."""
        if (left := saved_state(self.state, self.tuned.device)) is None:
            return _Progress()
        if left["key"] != self.key:
            warnings.warn(f"{self.state} is not used: it is of another run", StoreWarning, 4)
            return _Progress()
        self.tuned.restore(left["model"])
        for name, part in self.parts.items():
            part.load_state_dict(left[name])
        return _Progress(**left["done"])


def trained_run(job: Job, key: Mapping[str, Any], state: Path) -> tuple[dict[str, ndarray], Tuned]:
    """All that is kept of a run, as arrays, and the model after its last step.

    ``key`` names the run; ``state`` is the file by which it goes on after a stop.
    """
    training = _Training(job, key, state)
    done, n_steps = training.done, training.n_steps
    checkpoints = job.recipe.checkpoint_steps(len(training.train.rows))
    saved = time.monotonic()
    with progress.bar(what=job.name, total=n_steps) as bar:
        bar.update(done.step)
        for step in range(done.step + 1, n_steps + 1):
            done.losses.append(training.step(step))
            done.step = step
            bar.update()
            if step in checkpoints:
                predicted, logits = map(torch.from_numpy, training.answers(step))
                done.predicted.append(predicted)
                done.logits.append(logits)
            if step < n_steps and time.monotonic() - saved >= SAVE_SECONDS:
                training.save()
                saved = time.monotonic()
    sets, laid = list(job.evaluations.values()), [training.train, *training.sets.values()]
    predicted, logits = (
        np.array([row.cpu().numpy() for row in rows]) for rows in (done.predicted, done.logits)
    )
    by_set = np.split(predicted, np.cumsum([len(asked) for asked in sets])[:-1], axis=1)
    scores = [[score(asked, row) for row in rows] for asked, rows in zip(sets, by_set, strict=True)]
    value = {
        "steps": np.array(checkpoints),
        "losses": np.array(done.losses, np.float32),
        "n_cut": np.array([each.n_cut for each in laid]),
        "predicted": predicted,
        "logits": logits,
        "score": np.array(scores).T,
    }
    return value, training.tuned
