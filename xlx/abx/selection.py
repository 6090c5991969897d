"""Choosing by a discrimination score instead of by test accuracy: a checkpoint, a source language.

Two questions of the ABX paper. Appendix H: is the checkpoint of lowest LD a better one for a
language than the last? (`choose_checkpoints`.) Appendix K: is the source of lowest LD a good one
to transfer from? (`choose_sources`.) Both set the choice beside rules that know less: chance,
exactly, and one fixed choice for all languages, made without the language it is tried on.

The best checkpoint or source is the largest of several noisy numbers, so the distance to it is
overstated, for all rules alike. A choice by LD has not seen the accuracies.
"""

from collections.abc import Mapping
from dataclasses import dataclass

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


def choose_checkpoints(table: pd.DataFrame) -> Selection:
    """How near to its best accuracy a language comes at a checkpoint chosen for it (appendix H).

    The gap of a checkpoint is the best accuracy of the language at any checkpoint, less that at
    this one. Rules: "selected", where LD is lowest, for each language its own; "final", the last;
    "constant", the one with the highest mean accuracy of the *other* languages; "random", any, in
    expectation. Of several equal checkpoints the earliest is taken.

    ``table`` has one row per ``language`` and ``checkpoint``, none missing, with ``accuracy`` and
    ``LD``. ValueError for fewer than two languages or checkpoints, or a row missing or twice there.

    Returns ``table``: ``rule``, ``language``, ``checkpoint`` (missing for "random"), ``accuracy``,
    ``gap``, ``delta`` (gap of "final" less this gap; the paper's "Δ = Final - ABX"); and
    ``summary``, one row per ``rule`` and rule ``against`` which it is held: `improvement`.
    """
    accuracy, score = (
        table.pivot(index="language", columns="checkpoint", values=column)
        for column in ("accuracy", "LD")
    )
    if min(accuracy.shape) < 2 or accuracy.isna().any(axis=None):
        raise ValueError(
            f"{len(accuracy)} languages at {accuracy.shape[1]} checkpoints: there must be two or "
            "more of each to choose between, and each language at every checkpoint"
        )
    values, steps = accuracy.to_numpy(), accuracy.columns.to_numpy()
    n, best = len(values), values.max(axis=1)
    others = (values.sum(axis=0) - values).round(12)  # rounded, so that equal sums are equal
    chosen = {
        "selected": score.to_numpy().round(12).argmin(axis=1),
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
            "gap": best - accuracies,
            "delta": accuracies - reached["final"],
        }
        rows.append(pd.DataFrame(columns).astype({"checkpoint": "Int64"}))
    pairs = [(rule, "final") for rule in ("selected", "constant", "random")]
    pairs += [("selected", "constant"), ("selected", "random")]
    summary = [
        {"rule": rule, "against": other, **improvement(reached[rule] - reached[other])}
        for rule, other in pairs
    ]
    return Selection(pd.concat(rows, ignore_index=True), pd.DataFrame(summary))


def improvement(deltas: np.ndarray) -> dict[str, float]:
    """How often and how much one rule does better than another, and whether by more than chance.

    Of differences: how many are above 0 (``closer``), ``equal``, below (``further``); ``mean`` and
    ``sd`` (n - 1); ``centre``, ``low``, ``high`` (Hodges-Lehmann) and ``p_value`` of
    `statistics.wilcoxon`.
    """
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

    ABX paper, appendix K. Rules: "selected", the source where `by` is lowest (or highest), equal
    ones with the same weight, so that what is reported is the expectation under drawing one;
    "constant", the source that serves the *other* targets best, by its mean accuracy there, each
    target's mean taken off first; "random", any, in expectation: the chance levels.

    The win rate of a source is the share of the other sources of the target that it beats, a tie
    counting one half: what comparing it with infinitely many random sources gives. The paper draws
    100 random sources and does not say whether the chosen one may be among them; here it may not,
    so the best source wins always. (If it may, a win rate w turns into ((m - 1) w + ½) / m.)

    ``table`` has one row per ordered pair of three languages or more, none missing: ``source``,
    ``target``, ``accuracy`` and ``by``; rows of a language with itself are not used. ``n_random``
    sources are drawn with replacement for ``win_rate_sampled``. ValueError for a pair missing or
    twice there, `top` or `n_random` below 1.

    Returns ``table``: ``rule``, ``target``, ``source`` (missing for "random", joined by "+" if
    several are equal), ``hit`` (no source is better), ``top`` (fewer than `top` are),
    ``win_rate``, ``win_rate_sampled``; and ``summary``, one row per ``rule`` and ``measure``
    ("hit", "top", "win_rate"): ``n`` targets, ``total``, ``mean``, ``sd`` (n - 1), ``low`` and
    ``high`` (of the mean over targets, taken for independent: Wilson, Student for "win_rate"),
    ``chance`` and two one-sided p-values, how often the total would be as large: ``p_value``, if a
    random source were chosen for each target (exact; where equal scores share, if anything too
    large); ``p_permutation``, if the languages of the score were permuted, sources and targets
    together, which keeps that one language may be near to all others, or a good source for all
    (only for "selected").
    """
    if top < 1 or n_random < 1:
        raise ValueError(f"top and n_random must be 1 or more: {top}, {n_random}")
    rng = np.random.default_rng(seed)
    apart = table[table["source"] != table["target"]]
    accuracy, score = (
        apart.pivot(index="source", columns="target", values=column).astype(float)
        for column in ("accuracy", by)
    )
    n = len(accuracy)
    if n < 3 or list(accuracy.index) != list(accuracy.columns) or accuracy.count().sum() < n**2 - n:
        raise ValueError("three languages or more are needed, each a source of every other")
    values = accuracy.to_numpy()
    outcomes = _outcomes(values, top, n_random, rng)
    weights = {
        "selected": _shared(_best_row(score.to_numpy() if lowest else -score.to_numpy())),
        "constant": _shared(_best_row(-_service_elsewhere(values))),
        "random": _shared(~np.isnan(values)),
    }
    tables = []
    for rule, weight in weights.items():
        sources = ["+".join(accuracy.index[column > 0]) for column in weight.T]
        columns = {
            "rule": rule,
            "target": accuracy.columns,
            "source": pd.NA if rule == "random" else sources,
        }
        brought = {name: (weight * np.nan_to_num(x)).sum(axis=0) for name, x in outcomes.items()}
        tables.append(pd.DataFrame(columns | brought).astype({"source": "string"}))
    by_target = pd.concat(tables, ignore_index=True)
    measures = {name: outcomes[name] for name in ("hit", "top", "win_rate")}
    permuted = _permuted(weights["selected"], measures, n_permutations, rng)
    return Selection(by_target, _summary(by_target, measures, permuted))


def _summary(
    by_target: pd.DataFrame,
    outcomes: Mapping[str, np.ndarray],
    permuted: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """The means over targets with their intervals and tests, per rule and measure."""
    rows = []
    for rule, rates in by_target.groupby("rule", sort=False):
        for measure, outcome in outcomes.items():
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
            if rule == "selected":
                as_large = (permuted[measure] >= total - SLACK).sum()
                p_permutation = (1 + as_large) / (1 + len(permuted[measure]))
            chance = np.nanmean(outcome, axis=0).mean()
            spread = mean, sd, low, high
            rows.append((rule, measure, n, total, *spread, chance, p_value, p_permutation))
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


# --- matrices of sources × targets, NaN on the diagonal -------------------------------------------


def _outcomes(
    accuracy: np.ndarray, top: int, n_random: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """What each source would bring each target."""
    there = ~np.isnan(accuracy)
    beats, equals, loses = (
        compare(accuracy[:, None], accuracy).sum(axis=1)
        for compare in (np.greater, np.equal, np.less)
    )
    equals = equals - 1  # itself
    drawn = np.full(accuracy.shape, np.nan)
    counts = np.stack([beats, equals, loses], axis=-1)[there]
    shares = counts / counts.sum(axis=-1, keepdims=True)
    drawn[there] = rng.multinomial(n_random, shares) @ [1, 0.5, 0] / n_random
    rates = {
        "hit": loses == 0,
        "top": loses < top,
        "win_rate": (beats + equals / 2) / (len(accuracy) - 2),
    }
    rates = {name: np.where(there, rate, np.nan) for name, rate in rates.items()}
    return rates | {"win_rate_sampled": drawn}


def _permuted(
    weight: np.ndarray,
    outcomes: Mapping[str, np.ndarray],
    n_permutations: int,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Totals of the outcomes if the languages of the score change places."""
    source, target = np.nonzero(weight)  # mostly one source a target
    orders = np.stack([rng.permutation(len(weight)) for _ in range(n_permutations)])
    place = np.argsort(orders, axis=1)  # where each language of the score goes
    moved = place[:, source], place[:, target]
    return {
        name: np.nan_to_num(outcome)[moved] @ weight[source, target]
        for name, outcome in outcomes.items()
    }


def _best_row(cost: np.ndarray) -> np.ndarray:
    """Which rows have the lowest cost of their column."""
    return cost <= np.nanmin(cost, axis=0) + SLACK


def _shared(chosen: np.ndarray) -> np.ndarray:
    """Equal weights over what is chosen in each column."""
    return chosen / chosen.sum(axis=0)


def _service_elsewhere(accuracy: np.ndarray) -> np.ndarray:
    """How good a source is for the other targets: its mean accuracy less the target's mean."""
    centred = accuracy - np.nanmean(accuracy, axis=0)
    sums = np.nansum(centred, axis=1, keepdims=True) - np.nan_to_num(centred)
    return np.where(np.isnan(accuracy), np.nan, sums / (len(accuracy) - 2))
