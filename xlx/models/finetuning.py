"""Fine-tune a whole model to classify sentences or pairs, or to find answers, and keep predictions.

The model learns in one language and is asked in others. What the measuring
(`xlx.igap.transferability`) needs of a run are its predictions on named sets at many checkpoints,
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
and gradient accumulation are what `transformers.Trainer` is for: `xlx.callbacks.Recorder` keeps
what its checkpoints predict, as a `Run`, and `xlx.callbacks.RecipeLoss` is the loss of a recipe.

    job = Job("mini-xlmr", train, {"de": translated}, Recipe(epochs=10))
    run = finetune(job)
    run.predictions["de"]  # (n_checkpoints, n_examples); of a reader, (n_checkpoints, n, 2) places
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from xlx.core import provenance, store, work
from xlx.core.ledger import Ask, Cache
from xlx.core.settings import current
from xlx.models import loading
from xlx.models.jobs import ALGORITHMS, FinetuningError, Job, Recipe, Sparing, learning, run_about
from xlx.models.predicting import Tuned, quickly, score
from xlx.models.training import trained_run

__all__ = [
    "ALGORITHMS", "FinetuningError", "Job", "Recipe", "Run", "Sparing", "Tuned", "embedding_sd",
    "finetune", "finetune_all", "learning", "quickly", "run_about", "score", "state_left", "tuned",
]  # fmt: skip


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


def state_left(job: Job) -> Path:
    """Where a run that is under way on this machine leaves how far it is."""
    key = {"run": run_about(job), **_made_with()}
    return Cache(current().cache).path(Ask("finetuning-states", key), ".pt")


def embedding_sd(name: str) -> float:
    """Standard deviation of a model's word embeddings, to which noise is added."""
    value = work.result(SPREAD, {"model": loading.fingerprint(name)}, name)
    return float(value["sd"][0])


def _spread(name: str) -> dict[str, np.ndarray]:
    weights = loading.load(name, dtype="float32").model.get_input_embeddings().weight
    return {"sd": np.array([weights.std().item()])}


SPREAD = work.Kind("embedding_sd", _spread, version=1)


def _as_run(job: Job, value: Mapping[str, np.ndarray]) -> Run:
    ends = np.cumsum([len(sets) for sets in job.evaluations.values()])[:-1]
    predictions, logits = (
        dict(zip(job.evaluations, np.split(value[name], ends, axis=1), strict=True))
        for name in ("predicted", "logits")
    )
    return Run(
        model=loading.title(job.model),
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
    cache, state = Cache(current().cache), state_left(job)
    key = {"run": run_about(job), **_made_with()}
    with quickly(job.recipe):
        value, model = trained_run(job, key, state)
    if weights:
        arrays = {name: tensor.cpu().numpy() for name, tensor in model.trained().items()}
        cache.put(_weights(job), arrays)
    for left in (state, state.with_name(f"{state.name}.damaged")):
        store.remove(left)
    store.sweep(state)
    return value


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
