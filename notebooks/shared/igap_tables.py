"""What the notebooks of IGAP share: recipes and windows of tasks, their curves, frozen metrics."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pandas as pd

from shared.abx_tables import AT_HAND, PAIR, pair_scores, scored_at_hand
from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import Subject, cached, reported_measures, subject_scores
from xlx.experiment.transfers import Transfers, TransferTask, labelled_task
from xlx.measures import abx, registered
from xlx.results import ledger
from xlx.results.settings import current
from xlx.subjects import loading
from xlx.subjects.jobs import Recipe, Sparing
from xlx.subjects.states import bag_of_subwords
from xlx.text import examples
from xlx.text.parallel import ParallelCorpus


def make_recipes(
    epochs: Mapping[str, int],
    every: Mapping[str, int],
    learning_rates: Sequence[float],
    **options: object,
) -> dict[str, list[Recipe]]:
    """The recipes of each task, one a learning rate; ``options`` as of `Recipe`."""
    return {
        name: [
            Recipe(epochs=epochs[name], every=every[name], learning_rate=rate, **options)
            for rate in learning_rates
        ]
        for name in epochs
    }


def level_table(
    measured: Mapping[str, Transfers], levels: Sequence[float], tolerance: float
) -> pd.DataFrame:
    """`Transfers.gap_table` of all models at all training errors, by ``E′`` and ``model``."""
    tables = {
        (level, model): of_model.gap_table(level, tolerance)
        for level in levels
        for model, of_model in measured.items()
    }
    return pd.concat(tables, names=["E′", "model"])


def windows_of(levels: Sequence[float], tolerance: float) -> Sparing:
    """Ask what IGAP at these training errors needs."""
    return Sparing(tuple((level, tolerance) for level in levels))


def all_curves(
    measured: Mapping[str, Transfers], levels: Sequence[float], tolerance: float
) -> pd.DataFrame:
    """`Transfers.curves` of all tasks; ``one_label``: the gap of a model that gives one label."""
    tables = []
    for of_task in measured.values():
        curves = of_task.curves(levels, tolerance)
        tables.append(curves.assign(one_label=of_task.task.one_label - curves["level"]))
    return pd.concat(tables, ignore_index=True)


def load_tasks(
    languages: Mapping[str, Sequence[str]],
    n_train: int | None,
    n_test: int | None,
    folders: Mapping[str, str],
    *,
    train_split: str,
) -> dict[str, TransferTask]:
    """`labelled_task` of each task that ``languages`` names."""
    return {
        name: labelled_task(
            name,
            codes,
            n_train=n_train,
            n_test=n_test,
            train_split=train_split,
            path=folders.get(name),
        )
        for name, codes in languages.items()
    }


def task_table(tasks: Mapping[str, TransferTask]) -> pd.DataFrame:
    """What each task is: pairs, labels in the first language, errors of the two ways to know none.

    ``guess``: the error of guessing, each class as often; ``one label``: of always the commonest.
    """
    rows = {}
    for name, task in tasks.items():
        counts = examples.class_counts(task.train[task.languages[0]])
        rows[name] = {
            "to train": task.n_train,
            "to test": task.n_test,
            "languages": " ".join(task.languages),
            "labels": ", ".join(f"{label} {n}" for label, n in counts.items()),
            "left out": sum(sum(reasons.values()) for reasons in task.left_out.values()),
            "guess": round(task.guess, 3),
            "one label": round(task.one_label, 3),
        }
    return pd.DataFrame(rows).T


def example(task: TransferTask, codes: Sequence[str], position: int = 0) -> str:
    """One training example in some languages, in full, and its label."""
    lines = []
    for code in codes:
        part = task.train[code]
        second = "" if part.second is None else f"\n    {part.second[position]}"
        lines.append(f"{code:4}{part.first[position]}{second}")
    part = task.train[codes[0]]
    return "\n".join([*lines, f"label: {part.classes[part.labels[position]]}"])


#: What `frozen` scores directions by: metric → what of it is good, high (1) or low (-1).
FROZEN_METRICS: dict[str, int] = {
    "L2": -1,
    "dot": 1,
    "cosine": 1,
    "retrieval": 1,
    "LD": -1,
    "MD": 1,
    "MEXA": 1,
    "bag of subwords": 1,
}


def frozen(
    name: str, corpus: ParallelCorpus, *, layer: int | None = None, max_length: int | None = None
) -> tuple[pd.DataFrame, int]:
    """What frozen states say of every transfer direction, without any fine-tuning (section 4.2).

    States are means over the tokens of a sentence at one layer; None: the one with the best
    retrieval (the paper takes 7 of 12). The paper's L2 distance, dot product and cosine; retrieval;
    this compendium's LD, MD and MEXA, each the same in both directions of a pair; and the cosine of
    bags of subwords, which needs the tokenizer alone.

    The table: ``metric`` (of `FROZEN_METRICS`, and of `reported_measures`),
    ``source``, ``target``, ``score``, high is good: L2 and LD have a minus sign. And the layer.
    A measure that was added is of `abx_tables.AT_HAND` where the model has no weights here.
    ValueError as `states.embed_corpus`.
    """
    (table,) = frozen_scores([name], corpus, layer, max_length=max_length)
    chosen, tables = int(table["layer"].iloc[0]), [table]
    asked = [x for x in reported_measures() if x not in (*FROZEN_METRICS, MATCHED)]
    ours = subject_scores([name], corpus, asked, partial=True, max_length=max_length)
    for scores in ours:
        tables += both_directions(pair_scores(scores.table().query("layer == @chosen")))
    for scores in scored_at_hand(ours, corpus, ["retrieval"], max_length=max_length):
        best = scores.scores["retrieval"].mean(axis=(1, 2)).argmax()
        rows = pair_scores(scores.table())
        rows = rows[(rows["layer"] == best) & (rows["task"] != "retrieval")]
        tables += both_directions(rows.assign(task=rows["task"] + f" ({AT_HAND})"))
    return pd.concat(tables, ignore_index=True)[["metric", "source", "target", "score"]], chosen


def both_directions(pairs: pd.DataFrame) -> list[pd.DataFrame]:
    """Scores of pairs (``language_1``, ``language_2``, ``task``) as those of either direction."""
    return [
        pairs.rename(columns=dict(zip([*PAIR, "task"], [*ends, "metric"], strict=True)))
        for ends in (["source", "target"], ["target", "source"])
    ]


def _relative(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of two scores, as a share of those above 1."""
    keys, columns = ["metric", "source", "target"], computed.columns
    stored, computed = (x[columns].sort_values(keys, ignore_index=True) for x in (stored, computed))
    if not stored.drop(columns="score").equals(computed.drop(columns="score")):
        return np.inf
    return float(
        ((stored["score"] - computed["score"]).abs() / stored["score"].abs().clip(lower=1)).max()
    )


#: In bfloat16 a similarity has two digits and a half, and a neighbour may change.
@cached(tolerance=0.03, difference=_relative)
def frozen_scores(subject: Subject, corpus: ParallelCorpus, layer: int | None) -> pd.DataFrame:
    """The table of `frozen`, with a column ``layer``."""
    encoder = subject.encoder()
    with loading.products(encoder.device) if current().dtype == "bfloat16" else nullcontext():
        vectors = subject.read(corpus).states
    if layer is None:  # of equally good ones the lowest
        hits = abx.exact(vectors, measures=[abx.RETRIEVAL]).scores["retrieval"].mean(axis=(1, 2))
        layer = int((hits >= hits.max() * (1 - 1e-12)).argmax())
    at_layer, named = {code: array[layer] for code, array in vectors.items()}, registered()
    bags = bag_of_subwords(encoder, corpus, max_length=subject.options.get("max_length"))
    asked = [named[name] for name in ("retrieval", "cosine", "LD", "MD", "MEXA")]
    scores = abx.exact(at_layer, measures=asked).table()
    hits = scores[scores["task"] == "retrieval"].assign(metric="retrieval")
    turned = hits["x_language"] != hits["language_1"]
    source, target = (hits[x].where(~turned, hits[y]) for x, y in (PAIR, PAIR[::-1]))
    tables = [_distances(at_layer), hits.assign(source=source, target=target)]
    counted = abx.exact(bags, measures=[replace(named["cosine"], name="bag of subwords")]).table()
    tables += both_directions(pair_scores(scores[scores["task"] != "retrieval"]))
    tables += both_directions(pair_scores(counted))
    columns = ["metric", "source", "target", "score"]
    table = pd.concat([of_metric[columns] for of_metric in tables], ignore_index=True)
    table["score"] *= table["metric"].map(FROZEN_METRICS)
    table["metric"] = pd.Categorical(table["metric"], list(FROZEN_METRICS))
    table = table.sort_values("metric", kind="stable", ignore_index=True)
    return table.astype({"metric": str}).assign(layer=layer)


@cached(2, tolerance=0.02)
def memorised_gaps(subject: Subject, corpus: ParallelCorpus, n_draws: int) -> pd.DataFrame:
    """What crosses of random labels that are learnt from frozen states, without fine-tuning.

    Labels of two classes are drawn ``n_draws`` times, the same in all languages, and learnt by
    heart: ridge regression on the centred mean states of a layer, with next to no penalty. One
    row per ``layer``, ``source`` and other ``target``: ``gap``, the share wrong in the target less
    that in the source, mean over the draws (Equation 4); ½ of a guess. A bag of subwords is folded
    into as many numbers as its model has.
    """
    read = {
        code: subject.sentences(sentences, code) for code, sentences in corpus.sentences.items()
    }
    rows = []
    for layer, source in product(range(len(read[corpus.languages[0]])), read):
        wrong = _by_heart({code: x[layer] for code, x in read.items()}, source, n_draws)
        rows += [(layer, source, t, (wrong[t] - wrong[source]).mean()) for t in read if t != source]
    return pd.DataFrame(rows, columns=["layer", "source", "target", "gap"])


def _by_heart(states: Mapping[str, np.ndarray], source: str, n_draws: int) -> dict:
    """The share wrong by language and draw, ``(n_draws,)``, of labels learnt in the source."""
    states = {code: x - x.mean(axis=0, dtype=float) for code, x in states.items()}
    inner = (x := states[source]) @ states[source].T
    labels = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(x), n_draws))
    penalty = 1e-4 * np.trace(inner) / len(x) * np.eye(len(x))
    learnt = x.T @ np.linalg.solve(inner + penalty, labels)
    return {code: (np.sign(y @ learnt) != labels).mean(axis=0) for code, y in states.items()}


def _distances(vectors: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Mean L2 distance and dot product of parallel sentences, after Hu et al. (2020)."""
    rows = []
    for first_code, other in permutations(vectors, 2):
        first, second = (vectors[code].astype(np.float64) for code in (first_code, other))
        apart = np.linalg.norm(first - second, axis=1).mean()
        products = np.einsum("id,id->", first, second) / len(first)
        rows += [("L2", first_code, other, apart), ("dot", first_code, other, products)]
    return pd.DataFrame(rows, columns=["metric", "source", "target", "score"])
