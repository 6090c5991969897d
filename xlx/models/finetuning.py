"""Fine-tune a whole model to classify sentences or pairs, or to find answers, and keep predictions.

The model learns in one language and is asked in others. What the measuring
(`xlx.igap.transferability`) needs of a run are its predictions on named sets at many checkpoints,
so these are what is kept, with their logits; weights are written on request.

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

    job = Job("mini-xlmr", train, {"de": translated}, Recipe(epochs=10))
    run = finetune(job)
    run.predictions["de"]  # (n_checkpoints, n_examples); of a reader, (n_checkpoints, n, 2) places
"""

import glob
import json
import os
import socket
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xlx.core import provenance, store, work
from xlx.core.ledger import Ask, Cache
from xlx.core.settings import current
from xlx.core.store import StoreWarning, written_whole
from xlx.models import loading
from xlx.models.jobs import ALGORITHMS, FinetuningError, Job, Recipe, Sparing, learning, run_about
from xlx.models.predicting import placed, predicted_classes, predicted_spans, quickly, score
from xlx.models.training import trained_run

__all__ = [
    "ALGORITHMS",
    "FinetuningError",
    "Job",
    "Recipe",
    "Run",
    "Sparing",
    "embedding_sd",
    "finetune",
    "finetune_all",
    "kept_weights",
    "learning",
    "placed",
    "predicted_classes",
    "predicted_spans",
    "quickly",
    "run_about",
    "score",
    "weights_folder",
]


@dataclass(frozen=True)
class Run:
    """What is kept of a run.

    Attributes
    ----------
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
    steps: np.ndarray  # int64 (n_checkpoints,)
    losses: np.ndarray  # float32 (n_steps,): the loss of every batch, in nats
    predictions: dict[str, np.ndarray]
    logits: dict[str, np.ndarray]
    n_cut: dict[str, int]


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
    value = work.result(RUN, run_about(job), job, folder)
    if folder is not None and not folder.exists():
        _run(job, folder)
    return _as_run(job, value)


def finetune_all(jobs: Sequence[Job], *, weights: bool = False) -> list[Run]:
    """Many runs, side by side on a CPU, each on one thread; errors as `finetune`.

    All jobs are checked before the first starts; a run that was stopped goes on at the next call.
    With ``weights``, what is fine-tuned leaves its weights in the cache of the machine, where
    `xlx.mixing.grids` looks for them.
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
    key = {"run": run_about(job), **_made_with()}
    with quickly(job.recipe):
        if folder is None:
            state = Cache(current().cache).path(Ask("finetuning-states", key), ".pt")
            value, _ = trained_run(job, key, state, None)
            store.remove(state)
            store.remove(state.with_name(f"{state.name}.damaged"))
            store.sweep(state)
            return value
        part = _part(folder)
        value, files = trained_run(job, key, part / "state.pt", part)
        with written_whole(part / "run.json") as beside:
            beside.write_text(_described(job, files), encoding="utf-8")
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
    environment = provenance.environment()
    return {
        "code": provenance.code_hash(_run),
        "torch": environment["torch"],
        "transformers": environment["transformers"],
    }


def weights_folder(job: Job) -> Path:
    """Where this machine keeps the checkpoints of a job, if it does."""
    return Cache(current().cache).path(Ask("finetuned", {**learning(job), **_made_with()}), "")


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
