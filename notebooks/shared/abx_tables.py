"""What several notebooks on LD and MD share: series and references, printed numbers, display."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.experiment.abx_scores import MATCHED, history
from xlx.experiment.averages import Average, average, averaged_scores
from xlx.experiment.scoring import (
    BagOfSubwords,
    Subject,
    as_subject,
    reported_measures,
    subject_scores,
)
from xlx.measures import statistics
from xlx.measures.abx import PairScores
from xlx.results import paths
from xlx.results.deferred import deferred
from xlx.subjects import identity
from xlx.subjects.identity import Name
from xlx.text import languages
from xlx.text.parallel import ParallelCorpus

stats = deferred("scipy.stats")

#: What is drawn.
DRAWN = ("LD", "MD", MATCHED)
#: A model whose weights are shipped.
AT_HAND = "mini-infoxlm"
PAIR = ["language_1", "language_2"]


def pair_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Mean of both directions: one row per task, layer (checkpoint ...) and unordered pair."""
    return _mean_over(table, "x_language")


def average_layers(table: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """Mean over layers (section 4.1), that of the embeddings (0) among them if it counts.

    The paper does not say whether it does. ValueError if no layer is left.
    """
    rows = table if embedding_layer else table[table["layer"] > 0]
    if rows.empty and len(table):
        raise ValueError("there is no layer but that of the embeddings: let it count")
    return _mean_over(rows, "layer")


def _mean_over(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    by = [name for name in table.columns if name not in (*columns, "score", "n_triplets")]
    mean = table.groupby(by, sort=False, observed=True).agg(
        score=("score", "mean"), n_triplets=("n_triplets", "sum")
    )
    return mean.reset_index()


def with_models(subjects: Sequence[Subject | Name], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables of subjects as one, with ``model`` in front."""
    labels = [as_subject(subject).label[0] for subject in subjects]
    whole = pd.concat(dict(zip(labels, tables, strict=True)), names=["model"])
    return whole.reset_index("model").reset_index(drop=True)


def scored_series(
    names: Sequence[str], corpus: ParallelCorpus, leave_out: Sequence[int] = (), **options: object
) -> list[list[PairScores]]:
    """`subject_scores` of each series, with the checkpoints whose weights are not shipped."""
    histories = [history(name, leave_out=leave_out, recorded=True) for name in names]
    return [subject_scores(checkpoints, corpus, **options) for checkpoints in histories]


def scored_at_hand(
    measured: Sequence[PairScores],
    corpus: ParallelCorpus,
    beside: Sequence[str] = (),
    **options: object,
) -> list[PairScores]:
    """Scores of `AT_HAND` by what somebody added to the registry and ``measured`` does not have.

    Nothing of it is stored, and a public model may have no weights here; ``beside``: tasks that are
    scored with it. Empty where nothing is missing.
    """
    known = {*DRAWN, "retrieval"}.union(*(state.tasks for state in measured))
    added = [name for name in reported_measures() if name not in known]
    return subject_scores([AT_HAND], corpus, [*beside, *added], **options) if added else []


def run_ends(
    runs: Mapping[str, Sequence[str]], corpus: ParallelCorpus, **options: object
) -> dict[str, list[tuple[PairScores, PairScores]]]:
    """Score the runs of recipes at their ends; ``runs``: recipe → its other runs.

    A recipe → the scores of each of its runs, before training and at the last step they share.

    Before training is step 0 of a run's own series or, where none is kept, its untrained twin.
    """
    by_recipe = {}
    for recipe, others in runs.items():
        courses = [history(name, recorded=True) for name in (recipe, *others)]
        steps = [{getattr(state, "step", 0): state for state in course} for course in courses]
        last = max(set.intersection(*map(set, steps)))
        first = [
            saved[0] if 0 in saved and last else identity.twin_of(name)
            for name, saved in zip((recipe, *others), steps, strict=True)
        ]
        scores = subject_scores([*first, *(saved[last] for saved in steps)], corpus, **options)
        by_recipe[recipe] = [*zip(scores[: len(steps)], scores[len(steps) :], strict=True)]
    return by_recipe


def mean_of_runs(
    scores: Sequence[float], covariance: np.ndarray, freedom: float
) -> tuple[float, float, float]:
    """The mean of a score over runs of one recipe, with a 95 % interval over runs and text.

    ``scores``, ``(R,)``: of R runs on one text; ``covariance``, ``(R, R)``: of their errors over
    its groups (documents, languages), of which the two-sided t has ``freedom`` degrees.

    Runs are a level above the groups, which all of them share. Between runs the mean has the
    variance s² / R with R - 1 degrees; what the text adds is the mean covariance of two runs. The
    quantile lies midway between Satterthwaite's (1946), which is a little short with few runs, and
    Cochran's (1964), both t weighted by their variances, a little long: with 3 runs 94 to 96 % are
    held. One run: an interval over the groups alone.
    """
    runs, value = len(scores), float(np.mean(scores))
    between, shared = 0.0, float(covariance[0, 0])
    if runs > 1:
        between = float(np.var(scores, ddof=1)) / runs
        shared = max(float(covariance.sum() - np.trace(covariance)) / (runs * (runs - 1)), 0)
    variances, freedoms = np.array([between, shared]), np.array([max(runs - 1, 1), freedom])
    if not (total := variances.sum()):
        return value, value, value
    short = total**2 / (variances**2 / freedoms).sum()
    *weighed, short = stats.t.ppf((1 + statistics.LEVEL) / 2, [*freedoms, short])
    width = (variances @ weighed / total + short) / 2 * np.sqrt(total)
    return value, float(value - width), float(value + width)


def mean_score(scores: Sequence[Average]) -> dict[str, float]:
    """The mean of one score of several runs, with its interval over runs and documents.

    `mean_of_runs` of single averages on one text; ``value``, ``low``, ``high``.
    """
    sizes = scores[0].sizes
    apart = np.stack([score.left_out_change for score in scores]) * (1 - sizes / sizes.sum())
    covariance = len(sizes) / (len(sizes) - 1) * apart @ apart.T
    values = [float(score.score) for score in scores]
    ends = mean_of_runs(values, covariance, len(sizes) - 1)
    return dict(zip(("value", "low", "high"), ends, strict=True))


def bag_lines(
    names: Sequence[str],
    last: Sequence[PairScores],
    corpus: ParallelCorpus,
    max_length: int | None = None,
) -> pd.DataFrame:
    """Scores of the models' bags of subwords: ``model``, ``task``, ``score`` and its interval."""
    bags = [BagOfSubwords(name, max_length=max_length) for name in names]
    return pd.concat(
        averaged_scores([bag], DRAWN).assign(model=state.model)
        for bag, state in zip(subject_scores(bags, corpus, DRAWN), last, strict=True)
    )


def printed_results() -> pd.Series:
    """The numbers printed in the text of the ABX paper: claim → value, as it is printed."""
    table = pd.read_csv(paths.PUBLISHED / "abx" / "text_results.csv", index_col="claim_id")
    return table["value"]


def at_last(table: pd.DataFrame, column: str = "checkpoint") -> pd.DataFrame:
    """Rows of each model's last checkpoint, or of the last of another column, such as its layer."""
    return table[table[column] == table.groupby("model")[column].transform("max")]


def ends(score: Average) -> dict[str, float]:
    """A score with its interval, by name."""
    names = ("value", "low", "high")
    return dict(zip(names, map(float, (score.score, *score.interval())), strict=True))


def without_nan(table: pd.DataFrame) -> pd.DataFrame:
    """A table for display: nothing where a number is missing."""
    return table.astype(object).where(table.notna(), "")


#: A correlation with its interval, for the title of a panel.
WITH_INTERVAL = "{r:+.2f} ({low:+.2f} to {high:+.2f})"


def captions(correlations: pd.DataFrame, panel: str | Sequence[str]) -> dict:
    """Panel of a figure → its correlations, each row a line."""
    text = f"r = {WITH_INTERVAL}"
    return {
        key: "\n".join(text.format_map(row).replace("-", "−") for row in rows.to_dict("records"))
        for key, rows in correlations.groupby(panel, sort=False)
    }


def language_names(codes: Sequence[str]) -> dict[str, str]:
    """Code → "Finnish (fi)"; of a language that is not known its code."""
    known = languages.LANGUAGES
    return {code: f"{known[code].name} ({code})" if code in known else code for code in codes}


def layer_contrasts(measured: PairScores) -> dict[str, Average]:
    """What the paper says of layers, each a difference that is above zero where it holds.

    "Middle" is the layer just above half of the depth.
    """
    middle = (len(measured.layers) - 1) // 2 + 1

    def less(task: str, upper: int, lower: int) -> Average:
        return average(measured, task, layers=[upper]) - average(measured, task, layers=[lower])

    fall, upper = less("LD", 1, middle), less("LD", middle, -2)
    upper = upper if upper.score > 0 else less("LD", -2, middle)
    rows = {
        "LD: first layer above the middle": fall,
        "LD: fall before the middle above change after it": fall - upper,
        "LD: last layer above the one before": less("LD", -1, -2),
    }
    for task in ("MD", MATCHED):
        rows[f"{task}: middle above the embeddings"] = less(task, middle, 0)
        rows[f"{task}: last layer below the one before"] = less(task, -2, -1)
    return rows
