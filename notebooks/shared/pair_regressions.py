"""What a regression over pairs of languages hangs on: single pairs, single languages, the levels.

Transfer from source to target is regressed on LD and MD of the two (ABX paper, section 5.3). Three
things can make or turn round such a coefficient, and the paper looks at none of them: a pair far
from all others (`heaviest_pairs`), a language (`leave_one_language_out`), and that some languages
are good sources or easy targets for all, whatever lies between the two (`variants`: fixed effects).
``groups`` is (model, task) → rows, one per ordered pair: ``source``, ``target``, ``accuracy`` and
predictors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.multitest import multipletests

from xlx.measures import regressions, statistics
from xlx.measures.statistics import SLACK

Groups = Mapping[tuple[str, str], pd.DataFrame]
#: The columns that name the languages of a pair.
ENDS = ("source", "target")
LD_AND_MD = ["LD", "MD"]


def _pairs(table: pd.DataFrame) -> pd.Series:
    """Unordered pair of each row: "es-pt"."""
    names = ["-".join(sorted(pair)) for pair in zip(*(table[end] for end in ENDS), strict=True)]
    return pd.Series(names, index=table.index)


def _weights(table: pd.DataFrame) -> pd.DataFrame:
    """`statistics.leverage` of unordered pairs, the larger of their two rows; most Cook first."""
    weights = regressions.leverage(table, "accuracy", LD_AND_MD).groupby(_pairs(table)).max()
    return weights.sort_values("cook", ascending=False)


def heaviest_pairs(groups: Groups) -> pd.DataFrame:
    """The pair whose rows move the regression most, and R² of intercepts by language.

    One row a group: ``pair``, its ``leverage`` and ``cook``, ``mean leverage`` of all rows,
    ``next cook``, the largest of another pair; ``R² of source``, ``target`` (each alone), ``both``.
    """
    rows = {}
    for key, table in groups.items():
        weights = _weights(table)
        rows[key] = {
            "pair": weights.index[0],
            "leverage": weights["leverage"].iloc[0],
            "mean leverage": (1 + len(LD_AND_MD)) / len(table),
            "cook": weights["cook"].iloc[0],
            "next cook": weights["cook"].iloc[1],
        }
        for label, ends in {"source": ENDS[:1], "target": ENDS[1:], "both": ENDS}.items():
            rows[key][f"R² of {label}"] = regressions.explained(table, "accuracy", ends)[0]
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "task"])


def _clustered(
    key: tuple[str, str],
    table: pd.DataFrame,
    terms: Sequence[str],
    effects: Sequence[str] = (),
    **labels: str,
) -> pd.DataFrame:
    """Coefficients with errors clustered by source and target, under their labels."""
    fit = regressions.regression(table, "accuracy", terms, clusters=ENDS, effects=effects)
    rows = fit.table[(fit.table["errors"] == "clustered") & fit.table["term"].isin(terms)]
    return rows[["term", "coefficient", "low", "high", "p_value"]].assign(
        model=key[0],
        task=key[1],
        **labels,
        r_squared=fit.r_squared,
        adjusted_r_squared=fit.adjusted_r_squared,
        n=fit.n,
    )


def variants(groups: Groups) -> pd.DataFrame:
    """The regression as it is, without its heaviest pair, with fixed effects, with both.

    One row per group, ``variant`` and ``term``: ``coefficient``, ``low``, ``high``, ``p_value``,
    ``r_squared`` (of effects and predictors together), ``n``.
    """
    tables = []
    for key, table in groups.items():
        left = table[_pairs(table) != _weights(table).index[0]]
        tables += [
            _clustered(key, table, LD_AND_MD, variant="all pairs"),
            _clustered(key, left, LD_AND_MD, variant="without the weightiest pair"),
            _clustered(key, table, LD_AND_MD, ENDS, variant="source and target effects"),
            _clustered(key, left, LD_AND_MD, ENDS, variant="effects, without the pair"),
        ]
    return pd.concat(tables, ignore_index=True)


def within_levels(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table, columns as what is left of them when source and target have each a level.

    Residuals of least squares on an intercept for each source and each target. A regression on
    these has the coefficients of one with effects of both (Frisch and Waugh 1933), and languages of
    them can be exchanged.
    """
    names = table[list(ENDS)].astype(str)
    levels = pd.get_dummies(names, dtype=float).to_numpy()
    values = table[list(columns)].to_numpy(float)
    left = values - levels @ np.linalg.lstsq(levels, values, rcond=None)[0]
    return table.assign(**dict(zip(columns, left.T, strict=True)))


def exchanged(groups: Groups, **options: object) -> pd.DataFrame:
    """`statistics.permutation_regression` of all pairs, without and with levels.

    Of the kinds of error only this one keeps its level with so few languages. One row per group,
    ``variant`` (as in `variants`) and ``term``: ``coefficient``, ``p_value``. ``options`` of the
    permutation; ValueError for a pair that is missing.
    """
    tables = []
    for (model, task), table in groups.items():
        within = within_levels(table, ["accuracy", *LD_AND_MD])
        for variant, rows in (("all pairs", table), ("source and target effects", within)):
            permuted = regressions.permutation_regression(rows, "accuracy", LD_AND_MD, **options)
            tables.append(permuted.assign(model=model, task=task, variant=variant))
    return pd.concat(tables, ignore_index=True)


def holm(p_values: pd.Series) -> pd.Series:
    """p-values that hold for all of them together (Holm 1979)."""
    return pd.Series(multipletests(p_values, method="holm")[1], index=p_values.index)


#: How often an effect is found that is called detectable.
SURE = 0.8


def detectable(error: float, df: float) -> float:
    """The smallest effect that a two-sided t test finds in `SURE` of cases (p < 0.05)."""
    highest = 2 * stats.t.ppf([(1 + statistics.LEVEL) / 2, SURE], df).sum()
    smallest = brentq(lambda x: statistics.power(x, 1, df) - SURE, 0, highest)
    return float(smallest * error)


def _logit(scores: pd.Series) -> pd.Series:
    if not scores.between(0, 1, inclusive="neither").all():
        raise ValueError(f"{scores.name} of 0 or 1 has no logit: leave out its pairs")
    return np.log(scores / (1 - scores))


#: What predictors are turned into: LD of small models sits just below 1, where a step is not the
#: same step, a rank takes any shape of line, and standard deviations make models comparable.
SCALES: dict[str, Callable[[pd.Series], pd.Series]] = {
    "shares": lambda scores: scores,
    "logits": _logit,
    "ranks": lambda scores: scores.rank() / len(scores),
    "standard deviations": lambda scores: (scores - scores.mean()) / scores.std(),
}


def scaled(groups: Groups, effects: Sequence[str] = ENDS) -> pd.DataFrame:
    """The regression on LD and MD on each of `SCALES`, with effects of source and target.

    One row per group, ``scale`` and ``term``: ``coefficient``, ``low``, ``high``, ``p_value``,
    ``p_holm``, which holds for all rows of its scale together (Holm 1979). In standard deviations
    the accuracy is, too. ValueError for logits of a score of 0 or 1.
    """
    tables = []
    for scale, turned in SCALES.items():
        columns = [*LD_AND_MD, *(["accuracy"] if scale == "standard deviations" else [])]
        parts = [
            _clustered(key, table.assign(**{name: turned(table[name]) for name in columns}),
                       LD_AND_MD, effects, scale=scale)
            for key, table in groups.items()
        ]  # fmt: skip
        rows = pd.concat(parts, ignore_index=True)
        tables.append(rows.assign(p_holm=holm(rows["p_value"])))
    return pd.concat(tables, ignore_index=True)


def rivals(groups: Groups, sets: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Several sets of predictors, without and with source and target effects.

    One row per group, set (``predictors``), ``effects`` and ``term``: ``coefficient``, ``p_value``,
    ``adjusted_r_squared``.
    """
    tables = [
        _clustered(key, table, terms, effects, predictors=label, effects_of=kind)
        for key, table in groups.items()
        for label, terms in sets.items()
        for kind, effects in (("none", ()), ("source and target", ENDS))
    ]
    return pd.concat(tables, ignore_index=True).rename(columns={"effects_of": "effects"})


def leave_one_language_out(groups: Groups) -> pd.DataFrame:
    """The lowest and highest coefficient without the pairs of one language, and without which."""
    tables = {}
    for key, table in groups.items():
        coefficients = {}
        for name in sorted(set(table[list(ENDS)].to_numpy().ravel())):
            left = table[~table[list(ENDS)].eq(name).any(axis=1)]
            fit = regressions.regression(left, "accuracy", LD_AND_MD).table
            coefficients[name] = fit.drop_duplicates("term").set_index("term")["coefficient"]
        without = pd.DataFrame(coefficients).T[LD_AND_MD].rename_axis(columns=None)
        tables[key] = without.agg(["idxmin", "min", "idxmax", "max"])
    return pd.concat(tables, names=["model", "task"]).unstack().infer_objects()


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
