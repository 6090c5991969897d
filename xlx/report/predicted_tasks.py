"""What alignment predicts of scores that a model has elsewhere: a task, language by language.

Scores are read from results of lm-evaluation-harness or CSVs (`xlx.text.downstream`). Each
language's is predicted from its MEXA score by the line through all *other* languages, so the error
is one on a language whose score is not known. Beside it stand what needs no alignment: the mean of
the other languages, and MEXA of a bag of the model's own subwords.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.experiment.mexa_scores import score_bags
from xlx.measures import statistics
from xlx.report.measures import Measured, ReportedModel
from xlx.text import downstream
from xlx.text.downstream import read_tasks
from xlx.text.files import TextError
from xlx.text.languages import base_code
from xlx.text.parallel import ParallelCorpus

#: With fewer languages beside the pivot a line and its error say nothing.
LEAST_LANGUAGES = 5
#: Predictor → how MEXA takes the states, and how it pools layers; the first is told first.
ALIGNMENTS = {
    "MEXA, best layer": ("raw", "max"), "MEXA, mean of layers": ("raw", "mean"),
    "MEXA, centred": ("centred", "max"),
}  # fmt: skip
TASK_BAG = "a bag of subwords"


def scores_of_tasks(
    files: Sequence[str | Path], models: Sequence[ReportedModel], corpus: ParallelCorpus, pivot: str
) -> tuple[pd.DataFrame, list[str]]:
    """Scores of the models in the languages of a text but the pivot, and what was left out.

    As `downstream` has them, ``model`` being the label and ``language`` the code of the text. Left
    out, and said: languages that the text has not, and tasks with fewer than `LEAST_LANGUAGES`.
    TextError as `downstream.of_models`, and where nothing is left.
    """
    files = [Path(file).resolve() for file in files]
    named = {str(model.name): model.label for model in models}
    scores = downstream.of_models(read_tasks(files), named)
    codes = text_codes(corpus)
    where, notes = ", ".join(file.name for file in files), []
    if strange := sorted(set(scores["language"]) - set(codes)):
        notes.append(f"{where} has scores in languages that {corpus.name} is not read in: "
                     f"{', '.join(strange)}; they are left out.")  # fmt: skip
    scores = scores.assign(
        model=scores["model"].map(named), language=scores["language"].map(codes)
    ).dropna(subset="language")
    scores = scores[scores["language"] != pivot]
    kept = []
    for (task, model), rows in scores.groupby(["task", "model"], sort=False):
        if len(rows) >= LEAST_LANGUAGES:
            kept.append(rows)
        else:
            notes.append(
                f"{task}, {model}: too few languages to predict from, {len(rows)} in the text "
                f"beside {pivot}."
            )
    if not kept:
        raise TextError(
            f"{where} and {corpus.name} have fewer than {LEAST_LANGUAGES} languages in common "
            f"beside {pivot}, for any task: give scores, or text (--text, --languages), in more"
        )
    return pd.concat(kept, ignore_index=True), notes


def text_codes(corpus: ParallelCorpus) -> dict[str, str]:
    """Codes of `downstream.language_of`, and of languages alone, → those of a text.

    "pt" finds a text called "pt_BR" where there is no other Portuguese.
    """
    codes: dict[str, str] = {}
    for code in corpus.languages:
        codes.setdefault(base_code(code), code)
        codes.setdefault(downstream.language_of(code), code)
    return codes | {code: code for code in corpus.languages}


def task_points(
    measured: Measured, corpus: ParallelCorpus, tasks: pd.DataFrame, max_length: int | None = None
) -> pd.DataFrame:
    """Each language of each task with what predicts it, and what is predicted without it.

    ``model``, ``task``, ``language``, ``predictor``, ``pivot``, ``mu`` (of the predictor),
    ``score``, ``predicted``; ``mean_of_others`` is what there is to say without a predictor.
    """
    pivot = measured.mexa["raw"].pivot
    of_predictor = {
        name: measured.mexa[states].pooled(how) for name, (states, how) in ALIGNMENTS.items()
    }
    bag = score_bags(measured.model.name, corpus, pivot, max_length=max_length)
    of_predictor[TASK_BAG] = bag.pooled("max")
    own, rows = tasks[tasks["model"] == measured.model.label], []
    for name, alignment in of_predictor.items():
        joint = own.merge(alignment[["language", "mu"]], on="language")
        for _, part in joint.groupby("task", sort=False):
            predicted, mean = without_each(part["mu"].to_numpy(), part["score"].to_numpy())
            rows.append(part.assign(predictor=name, predicted=predicted, mean_of_others=mean))
    table = pd.concat(rows, ignore_index=True).assign(pivot=pivot)
    return table[["model", "task", "language", "predictor", "pivot", "mu", "score", "predicted",
                  "mean_of_others"]]  # fmt: skip


def without_each(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the line of least squares, and the mean, of the *other* points say of each y, ``(n,)``.

    NaN where all other x are the same.
    """
    lines, means = np.full(len(x), np.nan), np.empty(len(x))
    for i in range(len(x)):
        others, known = np.delete(x, i), np.delete(y, i)
        means[i] = known.mean()
        if np.ptp(others) > 0:
            slope = ((others - others.mean()) * (known - means[i])).sum()
            slope /= ((others - others.mean()) ** 2).sum()
            lines[i] = means[i] + slope * (x[i] - others.mean())
    return lines, means


def task_fits(points: pd.DataFrame, n_resamples: int = 1000, seed: int = 0) -> pd.DataFrame:
    """How well each predictor tells the scores of each task: a row a model, task and predictor.

    ``r`` (Pearson, its interval by resampling languages), ``n`` languages, ``slope`` and
    ``intercept`` of the line through all, ``error`` (root mean square, in units of the score, of
    what is predicted of a language from the others) and ``error_of_mean`` (of their mean).
    """
    keys = ["model", "task", "predictor"]
    table = statistics.correlations(
        points, keys, "mu", "score", languages=("language",), n_resamples=n_resamples, seed=seed
    )
    rows = []
    for _, part in points.groupby(keys, sort=False):
        slope = intercept = np.nan
        if part["mu"].nunique() > 1:
            slope, intercept = np.polyfit(part["mu"], part["score"], 1)
        errors = [
            float(np.sqrt(((part["score"] - part[said]) ** 2).mean(skipna=False)))
            for said in ("predicted", "mean_of_others")
        ]
        rows.append((slope, intercept, *errors))
    return table.assign(**dict(zip(["slope", "intercept", "error", "error_of_mean"],
                                   np.array(rows).T, strict=True)))  # fmt: skip
