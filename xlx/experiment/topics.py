"""Topic classification in 205 languages: the task that alignment is to predict (SIB-200).

The MEXA paper asks its models questions (Belebele, m-MMLU, m-ARC), which a model has to be large
for. What a small decoder knows of a text can be read off its frozen states instead: linear probes
learn the topic of English sentences (Adelani et al. 2024, seven topics) and are tested on the same
test sentences in every language. An English probe is right in another language as far as the states
of translations fall into the same regions, which is the promise of alignment in its plainest form.

Sentences are pooled by the plain mean: neither of the poolings that MEXA compares then has the
advantage of being the task's own.

**Two scores.** A probe reads the states as they are, or *centred*: moved so that the mean of the
test sentences of a language lies where that of the English training sentences does. The first asks
for states that do not depend on the language; where they do, all sentences of a language lie far
off on one side and a probe calls most of them by one topic, at times with less success than the
commonest topic has. The second takes the language's own offset out, which needs sentences of it but
no labels (Libovický, Rosa and Fraser 2020), and asks for what is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pandas as pd
from scipy import stats

from xlx.measures import probes
from xlx.measures.statistics import Correlation, correlation, numbers, require
from xlx.results import work
from xlx.subjects import loading, states
from xlx.subjects.identity import Name, identify, series_name
from xlx.subjects.states import embed
from xlx.text import labelled
from xlx.text.downstream import SCORE_COLUMNS
from xlx.text.examples import Examples
from xlx.text.labelled import TOPICS

#: The name of the task in tables of downstream scores, and the language of what is learnt.
TOPIC_TASK, SOURCE = "SIB-200", "en"


def probe_topics(
    names: Sequence[Name],
    languages: Sequence[str],
    *,
    n_test: int | None = None,
    seed: int = 1,
    max_length: int | None = None,
    seeds: Sequence[int] = probes.SEEDS,
) -> pd.DataFrame:
    """Probes of every layer trained in English, tested on every language.

    Each model and language is a result of its own (`xlx.results.work`), so a run that was stopped
    goes on at the next one.

    ``names`` are models, or checkpoints of a series; ``languages`` codes or labels. ``n_test`` test
    sentences (None: all, 204) are the same in every language, drawn by ``seed``; ``max_length``:
    subwords of a sentence; ``seeds``: of the probes' initial weights, one probe each.

    A row per model, language, layer, seed and ``centred`` (False, True): ``model``, ``checkpoint``,
    ``language``, ``layer``, ``seed``, ``n`` (test sentences), ``accuracy``, in [0, 1], of all, and
    as ``even`` and ``odd`` of every other sentence, ``majority`` (accuracy of the commonest topic),
    ``validation_loss`` (nats, in English), ``n_cut`` (test sentences cut at the maximum length).

    ValueError as `load_labelled`, `embeddings.embed` and `probes.fit`; for no language.
    """
    tests = [_tests(language, n_test, seed) for language in languages]
    if not tests:
        raise ValueError("there is no language to test on")
    codes = [test.language for test in tests]
    about = {"train": [part.table_hash() for part in _learnt()], "hidden": None, "seeds": [*seeds]}
    options = {"pooling": "mean", "max_length": max_length}
    of_models = [{"states": states.states_about(name, **options)} | about for name in names]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(codes)):
            positions = list(positions)
            some = [codes[position % len(codes)] for position in positions]
            yield positions, (names[number], some, n_test, seed, options, seeds)

    values = work.results(
        TOPIC_PROBES,
        [model | {"test": test.table_hash()} for model in of_models for test in tests],
        calls,
        what=TOPIC_TASK,
    )
    tables, remaining = [], iter(values)
    for identity in map(identify, names):
        head = {"model": series_name(identity), "checkpoint": identity.step or 0}
        tables += [
            pd.DataFrame(head | {"language": code} | dict(next(remaining))) for code in codes
        ]
    return pd.concat(tables, ignore_index=True)


def _tests(language: str, n: int | None, seed: int) -> Examples:
    texts = labelled.load_labelled("TOPIC", language, "test")
    return texts if n is None else texts.take(n, seed)


def _learnt() -> list[Examples]:
    return [labelled.load_labelled("TOPIC", SOURCE, split) for split in ("train", "validation")]


def _tested(
    name: Name,
    languages: Sequence[str],
    n_test: int | None,
    seed: int,
    options: dict[str, object],
    seeds: Sequence[int],
) -> Iterator[pd.DataFrame]:
    """`probe_topics` to some languages, one table each: a row per layer, seed and ``centred``."""
    encoder = loading.load(name)
    train, validation = _learnt()
    splits = []
    for texts in (train, validation):
        states = embed(encoder, texts.first, **options).states
        names = [f"layer {i}" for i in range(len(states))]
        splits.append(probes.Split(states, texts.labels, names))
    fitted = probes.fit(*splits, len(TOPICS), seeds=seeds, device=encoder.device)
    commonest = np.bincount(train.labels).argmax()
    for language in languages:
        test = _tests(language, n_test, seed)
        embedded, labels = embed(encoder, test.first, **options), test.labels
        raw = embedded.states
        centred = raw - raw.mean(axis=1, keepdims=True) + fitted.mean[:, None].cpu().numpy()
        tables = []
        for moved, states in enumerate((raw, centred)):
            right = fitted.predict(states) == labels  # (n_layers + 1, n_seeds, n)
            layer, row = np.indices(right.shape[:2]).reshape(2, -1)
            tables.append(
                pd.DataFrame(
                    {
                        "layer": layer,
                        "seed": np.array(fitted.seeds)[row],
                        "centred": bool(moved),
                        "n": len(test),
                        "accuracy": right.mean(axis=2).ravel(),
                        "even": right[..., ::2].mean(axis=2).ravel(),
                        "odd": right[..., 1::2].mean(axis=2).ravel(),
                        "majority": float((labels == commonest).mean()),
                        "validation_loss": fitted.validation_loss.ravel(),
                        "n_cut": embedded.n_cut,
                    }
                )
            )
        yield pd.concat(tables, ignore_index=True)


def _difference(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """The largest difference of an accuracy, the mean over seeds; infinite for other sentences."""
    counts = ["layer", "seed", "centred", "n", "majority", "n_cut"]
    if not stored[counts].equals(computed[counts]):
        return np.inf
    both = [value.groupby(["layer", "centred"])["accuracy"].mean() for value in (stored, computed)]
    return float((both[0] - both[1]).abs().max())


TOPIC_PROBES = work.Kind("topics", _tested, version=1, tolerance=0.02, difference=_difference)


def chosen_layer(table: pd.DataFrame) -> dict[str, int]:
    """The layer of each model whose probes have the lowest validation loss, in English.

    No other language is looked at: that choice can be made where only English has labels.
    """
    losses = table.groupby(["model", "layer"])["validation_loss"].mean()
    return {model: int(rows.idxmin()[1]) for model, rows in losses.groupby("model")}


def task_scores(
    table: pd.DataFrame,
    layer: int | str = "chosen",
    *,
    centred: bool = True,
    accuracy: str = "accuracy",
) -> pd.DataFrame:
    """Scores of a task, as `xlx.text.downstream` has them, from what `probe_topics` returns.

    ``layer``: whose probes count: a number, "chosen" (`chosen_layer`) or "mean" (over all);
    ``centred``: which of the two scores (see the module's text); ``accuracy``: of all test
    sentences, or of "even" or "odd" ones.

    One row a model and language: ``task``, ``model``, ``language``, ``score`` (accuracy, mean over
    seeds), ``stderr`` (of a share of n sentences: other sentences of the kind), ``n``. ValueError
    for a layer that is not there, and for several checkpoints of a model.
    """
    if (several := table.groupby("model")["checkpoint"].nunique()).max() > 1:
        raise ValueError(
            f"there are several checkpoints of {several.idxmax()}: score them one after another"
        )
    table = table[table["centred"] == centred]
    if layer == "chosen":
        table = table[table["layer"] == table["model"].map(chosen_layer(table))]
    elif layer != "mean":
        there = sorted(table["layer"].unique())
        if layer not in there:
            raise ValueError(
                f"there is no layer {layer!r}: choose 'chosen', 'mean' or a number of "
                f"{', '.join(map(str, there))}"
            )
        table = table[table["layer"] == layer]
    scores = table.groupby(["model", "language"], sort=False, as_index=False)
    scores = scores.agg(score=(accuracy, "mean"), n=("n", "first"))
    if accuracy != "accuracy":
        scores["n"] = (scores["n"] + (accuracy == "even")) // 2
    scores["stderr"] = np.sqrt(scores["score"] * (1 - scores["score"]) / scores["n"])
    return scores.assign(task=TOPIC_TASK)[list(SCORE_COLUMNS)]


def topic_reliability(
    table: pd.DataFrame, layer: int | str = "chosen", *, centred: bool = True
) -> dict[str, float]:
    """How well the test tells languages apart, by model: 1 if other sentences would agree.

    The correlation over languages but English of the scores of even and odd sentences, stepped up
    to the full length (Spearman-Brown). No score can be expected to correlate with the task by more
    than its square root; below zero, where the halves disagree, nothing was measured. NaN where
    there is nothing to correlate: fewer than two languages, or one score in all of them.
    """
    table = table[table["language"] != SOURCE]
    even, odd = (
        task_scores(table, layer, centred=centred, accuracy=half).set_index(["model", "language"])
        for half in ("even", "odd")
    )
    reliability = {}
    for model, rows in even.groupby(level="model", sort=False):
        halves = np.array([rows["score"], odd.loc[rows.index, "score"]])
        if np.ptp(halves, axis=1).min() == 0:
            reliability[str(model)] = float("nan")
            continue
        r = float(np.corrcoef(halves)[0, 1])
        reliability[str(model)] = 2 * r / (1 + r) if r > -1 else float("-inf")
    return reliability


#: Lower edges of the bands of Table 6; a score on an edge belongs above it.
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8)
#: Their names, from "not covered" to "well-covered".
BANDS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")


def expected(mu: np.ndarray | pd.Series | float, english_score: float) -> np.ndarray:
    """The adjusted score, μ times the score of the task in English (section 5.2, Table 6).

    In units of the task's score, a share in [0, 1]. Raises ValueError outside of that.
    """
    for name, values in (("mu", mu), ("english_score", english_score)):
        if not np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1)):
            raise ValueError(f"{name} must lie in [0, 1] (a share, not percent), none missing")
    return np.asarray(mu) * english_score


@dataclass(frozen=True)
class Line:
    """Least squares of the task on the adjusted score, beside the ideal line.

    ``error`` and ``ideal_error`` are root mean squares of what each line leaves, in units of the
    task's score; ``correlation`` has an interval by resampling languages.
    """

    slope: float
    intercept: float
    error: float
    ideal_slope: float
    ideal_intercept: float
    ideal_error: float
    correlation: Correlation


def line(
    table: pd.DataFrame, *, n_choices: int = 4, n_resamples: int = 1000, seed: int = 0
) -> Line:
    """The line from MEXA to a task (section 5.2, Figure 1).

    With k choices a guess is right once in k times while the least MEXA score is 0, so the ideal
    line goes from (0, 1/k) to (1, 1): intercept 1/k, slope 1 - 1/k (¼ and ¾ for four choices). At
    the point of English itself, x = s, it gives s + (1 - s) / k, more than s: it is an upper end,
    met by a perfect model only.

    ``table`` has a row per language, of one model and task: ``language``, ``expected`` (the
    adjusted score) and ``score`` (the task's). ValueError as `statistics.correlation`; a language
    in two rows; fewer than two choices.
    """
    if n_choices < 2:
        raise ValueError(f"a question has two choices or more, not {n_choices}")
    require(table, ("language",))
    if (twice := table["language"].duplicated()).any():
        raise ValueError(
            f"{table.loc[twice, 'language'].iloc[0]} has two rows: the line is of one model and "
            "one task (`downstream.of_task`)"
        )
    r = correlation(
        table, "expected", "score", languages=("language",), n_resamples=n_resamples, seed=seed
    )
    x, y = numbers(table, ("expected", "score")).T
    fit = stats.linregress(x, y)
    both = (float(fit.slope), float(fit.intercept)), (1 - 1 / n_choices, 1 / n_choices)
    errors = [float(np.sqrt(np.mean((y - b - a * x) ** 2))) for a, b in both]
    return Line(*both[0], errors[0], *both[1], errors[1], r)


def bands(score: np.ndarray | pd.Series | Sequence[float]) -> pd.Categorical:
    """The band of each adjusted score: the colours of Table 6, from `BANDS`, in order.

    Raises ValueError for a score that is missing or outside [0, 1].
    """
    values = np.asarray(score, dtype=float).round(12)  # 0.2 * 3 is no less than 0.6
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("adjusted scores lie in [0, 1], and none may be missing")
    codes = np.digitize(values, EDGES) - 1
    return pd.Categorical.from_codes(codes, BANDS, ordered=True)
