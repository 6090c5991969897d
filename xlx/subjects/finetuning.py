"""Fine-tune a whole model to classify sentences or pairs, or to find answers, and keep predictions.

The model learns in one language and is asked in others. What the measuring
(`xlx.measures.igap`) needs of a run are its predictions on named sets at many checkpoints,
so these are what is kept, with their logits; last weights stay in the cache, on request (`tuned`).

Three algorithms (Chi et al., section 5.2):

* ``vanilla``: cross-entropy on the examples;
* ``gaussian``: the same, with Gaussian noise added to the word embeddings (Artetxe et al. 2020);
* ``xtune``: stage 1 of xTune (Zheng et al. 2021): cross-entropy on the clean input, plus λ₁ times
  the consistency of its prediction with the one on a noisy copy. Both passes drop out the same
  units, so that the extra term measures the noise alone and is zero without it; xTune's own code
  leaves dropout to chance in both, and so does ``Recipe(shared_dropout=False)``.

Examples (`xlx.text.examples`) make it a classifier, questions (`xlx.text.questions`) a reader that
finds where an answer starts and ends in a context, which is read in overlapping windows where it is
long.

A run stays on one device on purpose: it is then repeated to the bit, and resumed so. Several GPUs
and gradient accumulation are what `transformers.Trainer` is for: `xlx.report.callbacks.Recorder`
keeps what its checkpoints predict, as a `Run`.

    job = Job("mini-xlmr", train, {"de": translated}, Recipe(epochs=10))
    run = finetune(job)
    run.predictions["de"]  # (n_checkpoints, n_examples); of a reader, (n_checkpoints, n, 2) places
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from xlx.results import ledger, provenance, store, work
from xlx.results.ledger import Ask, Cache
from xlx.results.settings import current
from xlx.subjects import identity, loading
from xlx.subjects.jobs import Job, Recipe, learning, run_about
from xlx.subjects.predicting import LaidOut, Tuned, quickly
from xlx.subjects.training import trained_run


@dataclass(frozen=True)
class Run:
    """What is kept of a run, by the name of a set.

    ``predictions`` are int16 ``(n_checkpoints, n)``, the class of each example (-1 where it was not
    asked, see `Sparing`), ``logits`` float16 ``(n_checkpoints, n, classes)``; of questions int32
    ``(n_checkpoints, n, 2)``, where the answer starts and ends in the context, in characters
    ((0, 0): none), and ``(n_checkpoints, n)``, the sum of the logits of its ends. ``n_cut`` is how
    many examples (of "train" too) were cut at the maximum length, or read in several windows.
    """

    model: str
    source: str
    algorithm: str
    seed: int
    learning_rate: float
    steps: np.ndarray  # int64 (n_checkpoints,)
    losses: np.ndarray  # float32 (n_steps,): the loss of every batch, in nats
    predictions: dict[str, np.ndarray]
    logits: dict[str, np.ndarray]
    n_cut: dict[str, int]


def finetune(job: Job) -> Run:
    """Fine-tune one model, or find what was kept of it; a run that was stopped goes on.

    Raises
    ------
    FinetuningError
        A training set of one class; a loss that is no longer a number (with step and learning
        rate); see `Job`.
    ModelNotFoundError, ValueError
        As `models.load`; a model that is no encoder.
    """
    return finetune_all([job])[0]


def finetune_all(jobs: Sequence[Job], *, weights: bool = False) -> list[Run]:
    """Many runs, side by side on a CPU, each on one thread; errors as `finetune`.

    All jobs are checked before the first starts. With ``weights``, what is fine-tuned leaves its
    last weights in the cache of this machine, where `tuned` looks for them.
    """
    for job in jobs:
        job.check()
    values = work.results(
        RUN,
        [run_about(job) for job in jobs],
        lambda missing: [([i], (jobs[i], weights)) for i in missing],
        what="fine-tuning",
        alone=True,
    )
    return [_as_run(job, value) for job, value in zip(jobs, values, strict=True)]


def tuned(job: Job) -> Tuned:
    """The model of a job after its last step: from the cache, or fine-tuned if need be."""
    model = Tuned.new(job.model, job.train, job.recipe, job.seed)
    cache, ask = Cache(current().cache), _weights(job)
    if cache.get(ask) is None:
        _run(job, weights=True)
    weights = cache.get(ask).value
    model.restore({name: torch.from_numpy(x) for name, x in weights.items()})
    return model


def _state(job: Job) -> Ask:
    return Ask("finetuning-states", {"run": run_about(job), **_made_with()})


def state_left(job: Job) -> Path:
    """Where a run that is under way on this machine leaves how far it is."""
    return Cache(current().cache).path(_state(job), ".pt")


def _as_run(job: Job, value: Mapping[str, np.ndarray]) -> Run:
    ends = np.cumsum([len(sets) for sets in job.evaluations.values()])[:-1]
    predictions, logits = (
        dict(zip(job.evaluations, np.split(value[name], ends, axis=1), strict=True))
        for name in ("predicted", "logits")
    )
    return Run(
        model=identity.title(job.model),
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


def _run(job: Job, weights: bool = False) -> dict[str, np.ndarray]:
    """The cut point: all that is kept of a run; its last weights in the cache, if asked for.

    ``steps``, ``losses``, ``n_cut`` (of the training set and each evaluation), and of all
    evaluations, one behind the other: ``predicted`` and ``logits`` as `Run` has them, ``score``
    ``(n_checkpoints, n_sets)``, see `score`.
    """
    state = state_left(job)
    with quickly(job.recipe):
        value, model = trained_run(job, _state(job).about, state)
    if weights:
        arrays = {name: tensor.cpu().numpy() for name, tensor in model.trained().items()}
        Cache(current().cache).put(_weights(job), arrays)
    store.remove(state)
    store.sweep(state)
    return value


def _apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """By how much the scores of two runs differ: mean over sets, the largest of a checkpoint."""
    same = [
        np.array_equal(stored["steps"], computed["steps"]),
        np.array_equal(stored["n_cut"], computed["n_cut"]),
        stored["predicted"].shape == computed["predicted"].shape,
        np.array_equal(np.isnan(stored["score"]), np.isnan(computed["score"])),
    ]
    if not all(same):
        return np.inf
    return float(np.nanmean(np.abs(stored["score"] - computed["score"]), axis=1).max())


#: A run. Its way parts from that of another processor at the first differing digit; what stays is
#: how good it gets (0.09 apart at most in 75 runs, AVX2 and AVX-512).
RUN = work.Kind("finetuning", _run, version=1, tolerance=0.15, difference=_apart, side_by_side=True)


def _made_with() -> dict[str, str]:
    """What else moves the weights of a run by more than nothing: they never leave the machine."""
    environment = provenance.environment()
    return {
        "code": provenance.code_hash(_run),
        "torch": environment["torch"],
        "transformers": environment["transformers"],
    }


def _weights(job: Job) -> Ask:
    """By what the weights of a job are found in the cache."""
    return Ask("finetuned", {**learning(job), **_made_with()})


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
        said = {str(label): one for label, one in given.items()}
        if unknown := [*set(said) - {*names, *map(str, range(len(names)))}]:
            raise ClassesError(f"the model has no label {unknown[0]}: it has {', '.join(names)}")
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
            "model": identity.fingerprint(self.model),
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
    encoder = loading.bare("the model in training", model, tokenizer)
    limit = encoder.limit(recipe.max_length, pair=True)
    return Tuned(model, tokenizer, limit, recipe, encoder.device)
