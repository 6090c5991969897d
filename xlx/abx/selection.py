"""Choosing by a discrimination score instead of by test accuracy: a checkpoint, a source language.

Two questions of the ABX paper. Appendix H: is the checkpoint of lowest LD a better one for a
language than the last? (`choose_checkpoints`.) Appendix K: is the source of lowest LD a good one
to transfer from? (`choose_sources`.) Both set the choice beside rules that know less: chance,
exactly, and one fixed choice for all languages, made without the language it is tried on.

The best checkpoint or source is the largest of several noisy numbers, so the distance to it is
overstated, for all rules alike. A choice by LD has not seen the accuracies.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from xlx.core import statistics
from xlx.core.statistics import SLACK


@dataclass(frozen=True)
class Selection:
    """What rules choose: ``table``, a row per rule and language; ``summary``, per comparison."""

    table: pd.DataFrame
    summary: pd.DataFrame


def choose_checkpoints(table: pd.DataFrame, by: str = "LD", *, lowest: bool = True) -> Selection:
    """How near to its best accuracy a language comes at a checkpoint chosen for it.

    ABX paper, appendix H. The gap of a checkpoint is the best accuracy of the language at any
    checkpoint, less that at this one. Four rules:

    - "selected": the checkpoint where `by` is lowest (or highest), for each language its own;
    - "final": the last, for all;
    - "constant": one for all, the one with the highest mean accuracy of the *other* languages;
    - "random": any, in expectation. Of several equal checkpoints the earliest is taken.

    ``table`` has one row per language and checkpoint, none missing: ``language``, ``checkpoint``
    (whole numbers, in the order of training), ``accuracy`` and the column ``by``.

    Returns
    -------
    Selection
        ``table``: ``rule``, ``language``, ``checkpoint`` (missing for "random"), ``accuracy``,
        ``best_checkpoint``, ``best_accuracy``, ``gap`` (from 0), ``delta`` (gap of "final" less
        this gap: positive where the rule comes closer to the best than the last checkpoint does;
        the paper's "Δ = Final - ABX").

        ``summary``, one row per ``rule`` and rule ``against`` which it is held: languages where the
        rule is ``closer`` to the best, ``equal`` or ``further``; ``mean`` and ``sd`` (n - 1) of the
        improvement; ``centre``, ``low``, ``high`` (Hodges-Lehmann) and ``p_value`` of the
        signed-rank test (`statistics.wilcoxon`).

    Raises ValueError for a column or number missing, a language and checkpoint missing or twice
    there, and fewer than two languages or checkpoints.
    """
    accuracy, score = _by_checkpoint(table, by)
    values, steps = accuracy.to_numpy(), accuracy.columns.to_numpy()
    n, best = len(values), values.max(axis=1)
    others = (values.sum(axis=0) - values).round(12)  # rounded, so that equal sums are equal
    chosen = {
        "selected": (score if lowest else -score).round(12).argmin(axis=1),
        "final": np.full(n, len(steps) - 1),
        "constant": others.argmax(axis=1),
    }
    reached = {rule: values[np.arange(n), choice] for rule, choice in chosen.items()}
    reached["random"] = values.mean(axis=1)
    rows = []
    for rule, accuracies in reached.items():
        columns = {
            "rule": rule,
            "language": accuracy.index,
            "checkpoint": steps[chosen[rule]] if rule in chosen else pd.NA,
            "accuracy": accuracies,
            "best_checkpoint": steps[values.argmax(axis=1)],
            "best_accuracy": best,
            "gap": best - accuracies,
            "delta": accuracies - reached["final"],
        }
        rows.append(pd.DataFrame(columns).astype({"checkpoint": "Int64"}))
    pairs = [(rule, "final") for rule in ("selected", "constant", "random")]
    pairs += [("selected", "constant"), ("selected", "random")]
    summary = [
        {"rule": rule, "against": other, **_improvement(reached[rule] - reached[other])}
        for rule, other in pairs
    ]
    return Selection(pd.concat(rows, ignore_index=True), pd.DataFrame(summary))


def _by_checkpoint(table: pd.DataFrame, by: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Accuracies and scores, languages × checkpoints."""
    steps = statistics.numbers(table, ["checkpoint"])[:, 0]
    if (steps % 1).any():
        raise ValueError("checkpoints must be whole numbers, in the order of training")
    table = table.assign(checkpoint=steps.astype(np.int64))
    accuracy = _matrix(table, "language", "checkpoint", "accuracy")
    for row, column in np.argwhere(accuracy.isna().to_numpy()):
        raise ValueError(
            f"{accuracy.index[row]} has no row for checkpoint {accuracy.columns[column]}: "
            "each language needs every checkpoint"
        )
    if min(accuracy.shape) < 2:
        raise ValueError(
            f"{len(accuracy)} languages at {accuracy.shape[1]} checkpoints: there must be two "
            "or more of each to choose between"
        )
    return accuracy, _matrix(table, "language", "checkpoint", by).to_numpy()


def _improvement(deltas: np.ndarray) -> dict[str, float]:
    """How often and how much one rule comes closer to the best than another."""
    test = statistics.wilcoxon(deltas)
    deltas = deltas.round(12)
    return {
        "closer": int((deltas > 0).sum()),
        "equal": int((deltas == 0).sum()),
        "further": int((deltas < 0).sum()),
        "mean": deltas.mean(),
        "sd": deltas.std(ddof=1),
        "centre": test.estimate,
        "low": test.low,
        "high": test.high,
        "p_value": test.p_value,
    }


def choose_sources(
    table: pd.DataFrame,
    by: str = "LD",
    *,
    lowest: bool = True,
    top: int = 3,
    n_random: int = 100,
    n_permutations: int = 9999,
    seed: int | np.random.Generator = 0,
) -> Selection:
    """How well a source language does that was chosen for its target by a score of the two.

    ABX paper, appendix K. Three rules:

    - "selected": the source where `by` is lowest (or highest). If several are equal, each is taken
      with the same weight: all that is reported is then the expectation under drawing one.
    - "constant": for all targets the source that serves the *other* targets best, by its mean
      accuracy there, each target's mean taken off first.
    - "random": any source, in expectation. These are the chance levels: 1 / m for the best of m
      sources, 3 / m for the first three, one half for the win rate.

    The win rate of a source is the share of the other sources of the target that it beats, a tie
    counting one half: what comparing it with infinitely many random sources gives. The paper draws
    100 random sources and does not say whether the chosen one may be among them; here it may not,
    so the best source wins always. (If it may, a win rate w turns into ((m - 1) w + ½) / m.)

    ``table`` has one row per ordered pair of languages: ``source``, ``target``, ``accuracy`` and
    ``by``; rows of a language with itself are not used, targets may differ in their sources.
    ``top``: how many first places count as a success in "top"; ``n_random``: random sources, drawn
    with replacement, for ``win_rate_sampled``; ``n_permutations``: 0 leaves the test out.

    Returns
    -------
    Selection
        ``table``: ``rule``, ``target``, ``n_sources``, ``source`` (missing for "random", joined by
        "+" if several are equal), ``n_tied`` (how many these are), ``accuracy``, ``best`` (source,
        the first by name if several are), ``best_accuracy``, ``gap``, ``rank`` (1 = no source is
        better), ``hit`` (the best source, or as good), ``top`` (rank up to `top`), ``win_rate``,
        ``win_rate_sampled``.

        ``summary``, one row per ``rule`` and ``measure`` ("hit", "top", "win_rate"): ``n`` targets,
        ``total``, ``mean``, ``sd`` over targets (n - 1), ``low`` and ``high`` (of the mean over
        targets, taken for independent: Wilson for "hit" and "top", Student for "win_rate"),
        ``chance`` (mean of "random"), ``p_value`` and ``p_permutation``, both one-sided: how often
        the total would be as large

        - if a random source were chosen for each target (exact; binomial for "hit" and "top" if all
          targets have as many sources; where equal scores share, the total varies less than this
          takes for granted, so a small p-value is, if anything, too large);
        - if the languages of the score were permuted, sources and targets together. This keeps that
          one language may be near to all others, or a good source for all. Only for "selected", and
          if each language is a source of every other; NaN else.

    Raises ValueError for a column or number missing, a pair twice there, fewer than two targets, a
    target with a single source, `top` or `n_random` below 1.
    """
    if top < 1 or n_random < 1:
        raise ValueError(f"top and n_random must be 1 or more: {top}, {n_random}")
    rng = np.random.default_rng(seed)
    statistics.require(table, ("source", "target"))
    table = table[table["source"] != table["target"]]
    accuracy = _matrix(table, "source", "target", "accuracy")
    score = _matrix(table, "source", "target", by)
    values = accuracy.to_numpy()
    n_sources = (~np.isnan(values)).sum(axis=0)
    if len(n_sources) < 2 or n_sources.min() < 2:
        raise ValueError(
            "there must be two targets or more, each with two sources or more to choose between: "
            + ", ".join(f"{k} has {v}" for k, v in zip(accuracy.columns, n_sources, strict=True))
        )
    outcomes = _outcomes(values, top, n_random, rng)
    weights = {
        "selected": _shared(_best_row(score.to_numpy(), lowest)),
        "constant": _shared(_best_row(_service_elsewhere(values), lowest=False)),
        "random": _shared(~np.isnan(values)),
    }
    tables = [_of_rule(rule, weight, accuracy, outcomes) for rule, weight in weights.items()]
    by_target = pd.concat(tables, ignore_index=True)
    measures = {name: outcomes[name] for name in ("hit", "top", "win_rate")}
    permuted = _permuted(score, measures, lowest, n_permutations, rng)
    return Selection(by_target, _summary(by_target, measures, permuted))


def _outcomes(
    accuracy: np.ndarray, top: int, n_random: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """What each source would bring each target, ``(n_sources, n_targets)``."""
    rank = _rank(accuracy)
    return {
        "accuracy": accuracy,
        "rank": rank,
        "hit": _where(accuracy, rank == 1),
        "top": _where(accuracy, rank <= top),
        "win_rate": _win_rate(accuracy),
        "win_rate_sampled": _sampled_win_rate(accuracy, n_random, rng),
    }


def _of_rule(
    rule: str, weight: np.ndarray, accuracy: pd.DataFrame, outcomes: dict[str, np.ndarray]
) -> pd.DataFrame:
    """What sources with these weights bring each target."""
    values = accuracy.to_numpy()
    expected = {
        name: (weight * np.nan_to_num(outcome)).sum(axis=0) for name, outcome in outcomes.items()
    }
    best = np.nanmax(values, axis=0)
    sources = ["+".join(accuracy.index[column > 0]) for column in weight.T]
    columns = {
        "rule": rule,
        "target": accuracy.columns,
        "n_sources": (~np.isnan(values)).sum(axis=0),
        "source": pd.NA if rule == "random" else sources,
        "n_tied": (weight > 0).sum(axis=0),
        "accuracy": expected.pop("accuracy"),
        "best": accuracy.index[np.nanargmax(values, axis=0)],
        "best_accuracy": best,
    }
    columns["gap"] = best - columns["accuracy"]
    return pd.DataFrame(columns | expected).astype({"source": "string"})


def paired(first: pd.DataFrame, second: pd.DataFrame, measure: str = "win_rate") -> dict:
    """Whether one rule does better than another by more than chance, on the same targets.

    ``first`` and ``second`` are rows of the `Selection.table` of sources, of one rule each. Returns
    what a row of the summary of `choose_checkpoints` has, ``closer``: targets where the first has
    more of the measure. ValueError for other targets in the two tables, or one of them twice.
    """
    values, others = (table.set_index("target")[measure] for table in (first, second))
    if not values.index.is_unique or sorted(values.index) != sorted(others.index):
        raise ValueError("the two rules need one row for each target, the same in both tables")
    return _improvement((values - others.loc[values.index]).to_numpy(float))


def _summary(
    by_target: pd.DataFrame, outcomes: dict[str, np.ndarray], permuted: dict[str, np.ndarray]
) -> pd.DataFrame:
    """The means over targets with their intervals and tests, per rule and measure."""
    rows = []
    for (rule, rates), (measure, outcome) in product(
        by_target.groupby("rule", sort=False), outcomes.items()
    ):
        of_rule = rates[measure].to_numpy(float)
        n, total, mean, sd = len(of_rule), of_rule.sum(), of_rule.mean(), of_rule.std(ddof=1)
        if measure == "win_rate":
            width = stats.t.ppf((1 + statistics.LEVEL) / 2, n - 1) * sd / np.sqrt(n)
            low, high = max(mean - width, 0.0), min(mean + width, 1.0)
        else:
            low, high = statistics.share_interval(total, n)
        p_value = p_permutation = np.nan
        if rule != "random":
            p_value = _by_chance(outcome, total)
        if rule == "selected" and measure in permuted:
            as_large = (permuted[measure] >= total - SLACK).sum()
            p_permutation = (1 + as_large) / (1 + len(permuted[measure]))
        chance = np.nanmean(outcome, axis=0).mean()
        rows.append((rule, measure, n, total, mean, sd, low, high, chance, p_value, p_permutation))
    columns = "rule measure n total mean sd low high chance p_value p_permutation"
    return pd.DataFrame(rows, columns=columns.split())


def _by_chance(outcome: np.ndarray, total: float) -> float:
    """How often the outcomes of one random source per target sum to `total` or more: exact."""
    sums, mass = np.zeros(1), np.ones(1)
    for column in outcome.T:
        values = column[~np.isnan(column)]
        longer = np.add.outer(sums, values).ravel()
        # What rounding tells apart is merged, but kept as it is: rounded sums would drift apart.
        _, first, index = np.unique(longer.round(9), return_index=True, return_inverse=True)
        sums = longer[first]
        mass = np.bincount(index, np.repeat(mass, len(values))) / len(values)
    return float(min(mass[sums >= total - 1e-6].sum(), 1))


def _permuted(
    score: pd.DataFrame,
    outcomes: dict[str, np.ndarray],
    lowest: bool,
    n_permutations: int,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Totals of the outcomes if the languages of the score change places; empty if they cannot."""
    values = score.to_numpy()
    n = len(values)
    complete = list(score.index) == list(score.columns) and np.isnan(values).sum() == n
    if not complete or not n_permutations:
        return {}
    weight = _shared(_best_row(values, lowest))
    source, target = np.nonzero(weight)  # mostly one source a target
    orders = np.stack([rng.permutation(n) for _ in range(n_permutations)])
    place = np.argsort(orders, axis=1)  # where each language of the score goes
    moved = place[:, source], place[:, target]
    return {
        name: np.nan_to_num(outcome)[moved] @ weight[source, target]
        for name, outcome in outcomes.items()
    }


def _matrix(table: pd.DataFrame, rows: str, columns: str, values: str) -> pd.DataFrame:
    """A table with one row per observation as a matrix, NaN where there is none."""
    statistics.require(table, (rows, columns))
    twice = table.duplicated([rows, columns])
    if twice.any():
        first = table[twice].iloc[0]
        raise ValueError(
            f"{rows} {first[rows]} with {columns} {first[columns]} is there more than once: "
            "average what belongs together before"
        )
    numbers = statistics.numbers(table, [values])[:, 0]
    return table.assign(**{values: numbers}).pivot(index=rows, columns=columns, values=values)


def _best_row(score: np.ndarray, lowest: bool) -> np.ndarray:
    """Which rows have the best score of their column: boolean, of the shape of the scores."""
    cost = score if lowest else -score
    return cost <= np.nanmin(cost, axis=0) + SLACK


def _shared(chosen: np.ndarray) -> np.ndarray:
    """Equal weights over what is chosen in each column."""
    return chosen / chosen.sum(axis=0)


def _where(accuracy: np.ndarray, condition: np.ndarray) -> np.ndarray:
    """1 where the condition holds, 0 where not, NaN where there is no accuracy."""
    return np.where(np.isnan(accuracy), np.nan, condition)


def _rank(accuracy: np.ndarray) -> np.ndarray:
    """1 + how many sources of the target are better, ``(n_sources, n_targets)``."""
    return _where(accuracy, 1 + (accuracy[None] > accuracy[:, None]).sum(axis=1))


def _comparisons(accuracy: np.ndarray) -> np.ndarray:
    """How many other sources of the target each beats, equals, loses to: ``(3, s, t)``."""
    beats = (accuracy[:, None] > accuracy[None]).sum(axis=1)
    equals = (accuracy[:, None] == accuracy[None]).sum(axis=1) - 1
    loses = (accuracy[:, None] < accuracy[None]).sum(axis=1)
    return np.stack([beats, equals, loses])


def _win_rate(accuracy: np.ndarray) -> np.ndarray:
    """Share of the other sources that each beats, a tie counting one half."""
    beats, equals, loses = _comparisons(accuracy)
    return _where(accuracy, (beats + equals / 2) / np.maximum(beats + equals + loses, 1))


def _sampled_win_rate(accuracy: np.ndarray, n_random: int, rng: np.random.Generator) -> np.ndarray:
    """`_win_rate` against so many of the other sources, drawn with replacement."""
    counts = np.moveaxis(_comparisons(accuracy), 0, -1).clip(0)
    there = ~np.isnan(accuracy)
    shares = counts[there] / counts[there].sum(axis=-1, keepdims=True)
    drawn = np.full(accuracy.shape, np.nan)
    drawn[there] = rng.multinomial(n_random, shares) @ [1, 0.5, 0] / n_random
    return drawn


def _service_elsewhere(accuracy: np.ndarray) -> np.ndarray:
    """How good a source is for the targets other than each, ``(n_sources, n_targets)``.

    The mean of accuracy less the target's mean; 0 for a source that serves no other target.
    """
    centred = accuracy - np.nanmean(accuracy, axis=0)
    there = ~np.isnan(accuracy)
    others = there.sum(axis=1, keepdims=True) - there
    sums = np.nansum(centred, axis=1, keepdims=True) - np.nan_to_num(centred)
    return np.where(
        there, np.divide(sums, others, out=np.zeros_like(sums), where=others > 0), np.nan
    )
