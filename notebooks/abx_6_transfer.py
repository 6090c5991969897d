"""Transfer of probes from source to target (ABX paper, section 5.3): the tables of `abx-6`.

Three things can make or turn round a coefficient over pairs of languages, and the paper looks at
none of them: a pair far from all others (`heaviest_pairs`), a language (`leave_one_language_out`),
and that some languages are good sources or easy targets for all, whatever lies between the two
(`VARIANTS`: fixed effects).

What a choice of a source by LD (appendix K) has to beat is kinship, a rule that has seen neither
model nor text: a source of the target's branch, else of its family, and among those that are
equally near, or where none is of the family, one that is written in its script
(`xlx.text.languages`). Sources that are still equal share their weight (`choose_sources`), so the
outcome is exactly the mean over them; where no source has anything in common with the target, that
is chance. Typological distances would part more sources, and the repository has none.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from scipy import stats

from shared import pair_regressions
from shared.abx_figures import chance_line
from shared.abx_tables import PAIR, pivoted, rowed
from shared.pair_regressions import ENDS, LD_AND_MD, Groups, Reading, Selection, fitted, turned
from xlx.experiment.abx_scores import CheckpointScores
from xlx.experiment.probing import ProbeSetup, cross_lingual
from xlx.experiment.scoring import BagOfSubwords, subject_scores
from xlx.measures import regressions, statistics
from xlx.measures.abx import average_layers
from xlx.measures.statistics import SLACK
from xlx.plots.panels import HATCHED, across, framed_handle, order, parts, scale_about
from xlx.plots.primitives import heatmap, lanes
from xlx.plots.style import ABOUT, CHANCE, MEASURES, look, styled
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus

#: The source of each task whose languages take part.
TRANSFERRED = {"POS": "ud", "NER": "wikiann", "NLI": "xnli"}

# --- what crosses ---------------------------------------------------------------------------------


def pair_accuracies(
    names: Sequence[str], setups: Mapping[str, ProbeSetup], codes: Mapping[str, Sequence[str]], *,
    embedding_layer: bool = True, layer: str | int = "mean",
) -> pd.DataFrame:  # fmt: skip
    """Accuracy and commonest label of each source, target, task and model over the layers.

    ``majority``: the share that a constant answer gets in the target, the best of those labels that
    are commonest in a source (one source's would make it better than others for being rarer in
    the target); ``above``: accuracy less that share; ``f1`` of whole entities, NaN of tasks other
    than NER.
    """
    tables = [
        cross_lingual(name, setup, codes[task], entities=task == "NER")
        for name in names
        for task, setup in setups.items()
    ]
    rows = pd.concat(tables, ignore_index=True)
    rows = rows if embedding_layer else rows[rows["layer"] > 0]
    rows = rows if layer == "mean" else rows[rows["layer"] == layer]
    scores = [name for name in ("accuracy", "majority", "f1") if name in rows]
    groups = rows.groupby(["model", "task", "source", "target"], sort=False, as_index=False)
    mean = groups[scores].mean()
    mean["majority"] = mean.groupby(["model", "task", "target"])["majority"].transform("max")
    apart = mean["source"] != mean["target"]
    pairs = apart.map({True: "between languages", False: "in the language"})
    return mean.assign(above=mean["accuracy"] - mean["majority"], pairs=pairs)


# --- what may predict it --------------------------------------------------------------------------


def kinship(source: str, target: str) -> int:
    """How near two languages are: 4 for the same branch, 2 the same family, 1 the same script.

    The sum, 0 to 7, orders sources by branch, then family, then script. Codes are those of
    `LANGUAGES`; ValueError for others.
    """
    if unknown := [code for code in (source, target) if code not in LANGUAGES]:
        raise ValueError(
            f"the family and script of {unknown[0]!r} are not known: choose by kinship among the "
            f"{len(LANGUAGES)} languages of xlx.text.languages.LANGUAGES"
        )
    a, b = LANGUAGES[source], LANGUAGES[target]
    same_family = a.family == b.family
    same_branch = same_family and a.branch == b.branch
    return 4 * same_branch + 2 * same_family + (a.script == b.script)


def ordered_pair_scores(of: CheckpointScores, embedding_layer: bool = True) -> pd.DataFrame:
    """Scores of source and target: a row an ordered pair, a column a task; ``model``.

    Of a task both directions are averaged, as the paper does; "LD, target" and so on is the
    direction with X in the target: of its sentences it is asked where they lie, and transfer has a
    direction too.
    """
    table = average_layers(of.table(), embedding_layer)
    index = [*PAIR, "x_language"]
    directed = table.pivot(index=index, columns="task", values="score").reset_index()
    first, second, target = (directed[name] for name in index)
    mean = directed.groupby(PAIR)[of.tasks].transform("mean")
    both = pd.concat([mean, directed[of.tasks].add_suffix(", target")], axis=1)
    source = first.where(target == second, second)
    return both.assign(model=of.model, source=source, target=target).rename_axis(columns=None)


def pairs_with_scores(
    accuracy: pd.DataFrame, names: Sequence[str], measured: Sequence[CheckpointScores],
    corpus: ParallelCorpus, embedding_layer: bool = True,
) -> pd.DataFrame:  # fmt: skip
    """Accuracies between languages, with `ordered_pair_scores`: the model's, and its bag's.

    ``measured``: the scores of ``names``, in that order. `kinship` of the two is there, too.
    """
    tables = []
    for name, of in zip(names, measured, strict=True):
        own = ordered_pair_scores(of, embedding_layer)
        (bag,) = subject_scores([BagOfSubwords(name)], corpus)
        bag = ordered_pair_scores(bag).drop(columns="model")
        bag = bag.set_index(list(ENDS)).add_prefix("bag ")
        tables.append(own.join(bag, on=list(ENDS)))
    others = accuracy.query("source != target")
    kin = [kinship(*pair) for pair in zip(others["source"], others["target"], strict=True)]
    return others.assign(kinship=kin).merge(pd.concat(tables), on=["model", *ENDS])


# --- regressions ----------------------------------------------------------------------------------


def _unordered(table: pd.DataFrame) -> pd.Series:
    """Unordered pair of each row: "es-pt"."""
    names = ["-".join(sorted(pair)) for pair in zip(*(table[end] for end in ENDS), strict=True)]
    return pd.Series(names, index=table.index)


def _weights(table: pd.DataFrame) -> pd.DataFrame:
    """What unordered pairs weigh, the larger of their two rows; most Cook first.

    ``leverage``: the weight of a row's outcome in its own prediction; ``cook``: how far all
    predictions move without the row, in units of their variance (Cook 1977).
    """
    influence = regressions.least_squares(table, "accuracy", LD_AND_MD).get_influence()
    weights = {"leverage": influence.hat_matrix_diag, "cook": influence.cooks_distance[0]}
    weights = pd.DataFrame(weights, table.index).groupby(_unordered(table)).max()
    return weights.sort_values("cook", ascending=False)


def without_heaviest(table: pd.DataFrame) -> pd.DataFrame:
    """The rows but those of the pair that moves the regression most."""
    return table[_unordered(table) != _weights(table).index[0]]


#: The regression as it is, without its heaviest pair, with fixed effects, with both.
VARIANTS = {
    "all pairs": Reading(),
    "without the weightiest pair": Reading(without_heaviest),
    "source and target effects": Reading(effects=ENDS),
    "effects, without the pair": Reading(without_heaviest, effects=ENDS),
}
#: LD and MD on other scales, with effects; in standard deviations the accuracy is, too.
SCALED = {
    "logits": Reading(turned("logits", *LD_AND_MD), effects=ENDS),
    "ranks": Reading(turned("ranks", *LD_AND_MD), effects=ENDS),
    "standard deviations": Reading(
        turned("standard deviations", *LD_AND_MD, "accuracy"), effects=ENDS
    ),
}


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
            rows[key][f"R² of {label}"] = pair_regressions.explained(table, "accuracy", ends)[0]
    return rowed(rows, ["model", "task"])


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


def permutation_p_values(
    table: pd.DataFrame, outcome: str, predictors: Sequence[str], *, n_permutations: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Test the coefficients of a regression over language pairs by exchanging languages.

    MRQAP with double semi-partialling (Dekker, Krackhardt and Snijders 2007): what a predictor has
    of its own, its residual on the other predictors, is a matrix over pairs of languages; its rows
    and columns are permuted together, so that what hangs together through a language still does,
    and the regression is fitted again. The p-value is the share of permutations, the observed order
    counted as one, whose t statistic is as large in absolute value.

    ``table`` has one row for each ordered pair of languages, with or without those of a language
    with itself. One row a predictor: ``term``, ``permutation`` (p-value). ValueError as
    `regressions.regression`, and for fewer than three languages or a pair that is missing or twice
    there.
    """
    fit = regressions.least_squares(table, outcome, predictors)
    codes, n = statistics.language_codes(table, ENDS)
    row = np.full((n, n), -1)
    row[tuple(codes.T)] = np.arange(len(table))
    n_pairs, at_home = (row >= 0).sum(), (np.diag(row) >= 0).sum()
    if n < 3 or n_pairs < len(table) or n_pairs - at_home < n * (n - 1) or at_home not in (0, n):
        raise ValueError(
            f"{len(table)} rows are of {n_pairs} pairs of {n} languages: permuting languages needs "
            "three or more, and each pair once (those of a language with itself for all or none)"
        )
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
    exog = fit.model.exog
    terms, observed = [], []
    for index in range(1, 1 + len(predictors)):
        basis, _ = np.linalg.qr(np.delete(exog, index, axis=1))
        own, rest = (v - basis @ (basis.T @ v) for v in (exog[:, index], fit.model.endog))
        terms.append((own, basis, rest))
        # |t| grows with the partial correlation, and that needs no further fit
        observed.append(abs(_partial(own[None], basis, rest)[0]))
    larger = np.zeros(len(predictors), dtype=int)
    for some in np.array_split(orders, max(1, len(orders) * len(table) // 1_000_000)):
        moved = row[some[:, codes[:, 0]], some[:, codes[:, 1]]]
        for index, (own, basis, rest) in enumerate(terms):
            partial = _partial(own[moved], basis, rest)
            larger[index] += (np.abs(partial) >= observed[index] - statistics.ROUNDING).sum()
    p_values = (1 + larger) / (1 + n_permutations)
    return pd.DataFrame({"term": list(predictors), "permutation": p_values})


def _partial(x: np.ndarray, others: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Correlation of ``(k, n)`` vectors, cleared of an orthonormal basis, with a cleared one."""
    left = np.einsum("kn,kn->k", x, x)
    away = left - ((x @ others) ** 2).sum(axis=1)
    # what is left of a vector within the basis is rounding, and has no direction
    scale = np.sqrt(np.where(left * statistics.ROUNDING < away, away, 0)) * np.linalg.norm(rest)
    return np.divide(x @ rest, scale, out=np.zeros(len(x)), where=scale > 0)


def exchanged(groups: Groups, **options: object) -> pd.DataFrame:
    """p-values of `permutation_p_values` of all pairs, without and with levels.

    Of the kinds of error only this one keeps its level with so few languages. One row per group,
    ``variant`` (as in `VARIANTS`) and ``term``: ``permutation``. ``options`` of the permutation;
    ValueError for a pair that is missing.
    """
    tables = []
    for (model, task), table in groups.items():
        within = within_levels(table, ["accuracy", *LD_AND_MD])
        for variant, rows in (("all pairs", table), ("source and target effects", within)):
            table = permutation_p_values(rows, "accuracy", LD_AND_MD, **options)
            tables.append(table.assign(model=model, task=task, variant=variant))
    return pd.concat(tables, ignore_index=True)


def leave_one_language_out(groups: Groups) -> pd.DataFrame:
    """The lowest and highest coefficient without the pairs of one language, and without which."""
    tables = {}
    for key, table in groups.items():
        without = {}
        for name in sorted(set(table[list(ENDS)].to_numpy().ravel())):
            left = table[~table[list(ENDS)].eq(name).any(axis=1)]
            without[name] = regressions.least_squares(left, "accuracy", LD_AND_MD).params[1:]
        coefficients = pd.DataFrame.from_dict(without, orient="index", columns=LD_AND_MD)
        tables[key] = coefficients.agg(["idxmin", "min", "idxmax", "max"])
    return pd.concat(tables, names=["model", "task"]).unstack().infer_objects()


#: Kinds of error of `regressions.regression`, from the paper's on.
TRANSFER_ERRORS = ["classical", "robust", "clustered", "dyadic"]


def transfer_regressions(
    groups: Groups, retest: pd.DataFrame, tasks: Sequence[str], permuted: pd.DataFrame
) -> pd.DataFrame:
    """Table 1, rows "CL": printed and ours, with the p-values of five kinds of error.

    ``permuted``: `exchanged`. ``β``: in standard deviations; ``Holm``: the p-values of
    permutations, for all of our rows together; ``power``: how often the printed coefficient would
    be seen, by clustered errors; ``detectable``: the smallest seen in 80 % of samples. p-values are
    text, since the printed ones are.
    """
    printed = pair_regressions.printed_regressions("cross_lingual").xs("Last", level="checkpoint")
    reliability = retest.xs("between languages", level="pairs")["r"]
    plain = permuted[permuted["variant"] == "all pairs"]
    p_values = plain.set_index(["task", "model", "term"])[["permutation"]]
    p_values["Holm"] = pair_regressions.holm(p_values["permutation"])
    rows = {}
    for task in tasks:
        value, p_value = (printed.loc[task, part] for part in ("value", "p_value"))
        for term in LD_AND_MD:
            row = {"R2": value["R2"], "coefficient": value[term], "classical": p_value[term]}
            rows[task, "printed", term] = row
        for model, table in {key[0]: of for key, of in groups.items() if key[1] == task}.items():
            fit = regressions.regression(table, "accuracy", LD_AND_MD, clusters=ENDS)
            for term in LD_AND_MD:
                own = fit.table[fit.table["term"] == term].set_index("errors")
                clustered = own.loc["clustered", ["error", "df"]]
                effect = float(value[term]) / clustered["error"]
                rows[task, model, term] = {
                    "R2": fit.r_squared,
                    "coefficient": own["coefficient"].iloc[0],
                    "β": pair_regressions.beta(own["coefficient"].iloc[0], table, term),
                    **own["p_value"].map("{:.3f}".format),
                    **p_values.loc[(task, model, term)].map("{:.3f}".format),
                    "power": pair_regressions.power(effect, clustered["df"]),
                    "detectable": pair_regressions.detectable(*clustered),
                    "VIF": own["vif"].iloc[0],
                    "retest r": reliability[task, model],
                }
    columns = ["R2", "coefficient", "β", *TRANSFER_ERRORS, "permutation", "Holm", "power"]
    return rowed(rows, ["task", "source", "term"])[[*columns, "detectable", "VIF", "retest r"]]


def variant_table(fits: pd.DataFrame, permuted: pd.DataFrame) -> pd.DataFrame:
    """`fitted` by `VARIANTS`, with p-values of `exchanged` where there are."""
    both = fits.merge(permuted, on=["task", "model", "variant", "term"], how="left")
    return pair_regressions.coefficient_table(both, "coefficient", "p_value", "permutation")


def rival_table(groups: Groups, sets: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Sets of predictors: adjusted R² without and with effects, coefficients with these."""
    keys, shares = ["task", "model", "variant"], {}
    for label, effects in (("none", ()), ("source and target", ENDS)):
        readings = {of: Reading(terms=terms, effects=effects) for of, terms in sets.items()}
        fits = fitted(groups, readings)
        shares["adjusted R²", label] = fits.groupby(keys, sort=False)["adjusted R2"].first()
    within = pivoted(fits, keys, "term", ["coefficient", "p_value"])
    table = pd.concat([pd.DataFrame(shares).loc[within.index], within], axis=1)
    return table.rename_axis(index={"variant": "predictors"})


# --- choosing a source ----------------------------------------------------------------------------


#: What a choice is measured by: no source is better, fewer than ``top`` are, how many it beats.
CHOICE_MEASURES = ("hit", "top", "win_rate")


def choose_sources(
    table: pd.DataFrame, by: str = "LD", *, lowest: bool = True, top: int = 3, n_random: int = 100,
    n_permutations: int = 9999, seed: int | np.random.Generator = 0,
) -> Selection:  # fmt: skip
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
    several are equal), ``hit``, ``top``, ``win_rate`` (`CHOICE_MEASURES`), ``win_rate_sampled``;
    and ``summary``, one row per ``rule`` and ``measure``: ``mean``, ``low``, ``high`` (of the win
    rate over targets, taken for independent: Student), ``chance`` and two one-sided p-values, how
    often the total would be as large: ``p_value``, if a random source were chosen for each target
    (exact; where equal scores share, if anything too large); ``p_permutation``, if the languages of
    the score were permuted, sources and targets together, which keeps that one language may be near
    to all others, or a good source for all (only for "selected").
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
    # how good a source is for the other targets: its mean accuracy less the target's mean
    centred = values - np.nanmean(values, axis=0)
    elsewhere = np.nansum(centred, axis=1, keepdims=True) - np.nan_to_num(centred)
    elsewhere = np.where(np.isnan(values), np.nan, elsewhere / (n - 2))
    weights = {
        "selected": _cheapest(score.to_numpy() if lowest else -score.to_numpy()),
        "constant": _cheapest(-elsewhere),
        "random": _cheapest(np.where(np.isnan(values), np.nan, 0.0)),
    }
    permuted = _permuted(weights["selected"], outcomes, n_permutations, rng)
    tables, summary = [], []
    for rule, weight in weights.items():
        brought = {name: (weight * np.nan_to_num(x)).sum(axis=0) for name, x in outcomes.items()}
        sources = ["+".join(accuracy.index[column > 0]) for column in weight.T]
        about = {"rule": rule, "target": accuracy.columns, "source": sources}
        tables.append(pd.DataFrame(about | brought))
        for measure in CHOICE_MEASURES:
            of_rule, outcome = brought[measure], outcomes[measure]
            width = stats.t.ppf((1 + statistics.LEVEL) / 2, n - 1) * stats.sem(of_rule)
            row = {"rule": rule, "measure": measure, "mean": of_rule.mean()}
            row["chance"] = np.nanmean(outcome, axis=0).mean()
            if measure == "win_rate":
                row |= {"low": max(row["mean"] - width, 0), "high": min(row["mean"] + width, 1)}
            if rule != "random":
                row["p_value"] = _by_chance(outcome, of_rule.sum())
            if rule == "selected":
                as_large = (permuted[measure] >= of_rule.sum() - SLACK).sum()
                row["p_permutation"] = (1 + as_large) / (1 + n_permutations)
            summary.append(row)
    whole = pd.concat(tables, ignore_index=True).astype({"source": "string"})
    whole["source"] = whole["source"].where(whole["rule"] != "random")
    return Selection(whole, pd.DataFrame(summary))


def _cheapest(cost: np.ndarray) -> np.ndarray:
    """Equal weights over the rows that have the lowest cost of their column."""
    chosen = cost <= np.nanmin(cost, axis=0) + SLACK
    return chosen / chosen.sum(axis=0)


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


def _outcomes(
    accuracy: np.ndarray, top: int, n_random: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """What each source would bring each target: sources × targets, NaN on the diagonal."""
    there = ~np.isnan(accuracy)
    beats, equals, loses = (
        compare(accuracy[:, None], accuracy).sum(axis=1)
        for compare in (np.greater, np.equal, np.less)
    )
    equals = equals - 1  # itself
    counts = np.stack([beats, equals, loses], axis=-1)[there]
    shares = counts / counts.sum(axis=-1, keepdims=True)
    drawn = np.full(accuracy.shape, np.nan)
    drawn[there] = rng.multinomial(n_random, shares) @ [1, 0.5, 0] / n_random
    rates = loses == 0, loses < top, (beats + equals / 2) / (len(accuracy) - 2)
    found = dict(zip(CHOICE_MEASURES, (np.where(there, x, np.nan) for x in rates), strict=True))
    return found | {"win_rate_sampled": drawn}


def _permuted(
    weight: np.ndarray, outcomes: Mapping[str, np.ndarray], n: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Totals of the outcomes if the languages of the score change places, n times."""
    source, target = np.nonzero(weight)  # mostly one source a target
    orders = np.stack([rng.permutation(len(weight)) for _ in range(n)])
    place = np.argsort(orders, axis=1)  # where each language of the score goes
    moved = place[:, source], place[:, target]
    return {
        name: np.nan_to_num(outcomes[name])[moved] @ weight[source, target]
        for name in CHOICE_MEASURES
    }


#: Rules that choose by a score → whether the lowest is chosen.
RULES = {"LD": True, "MD": False, "bag LD": True, "kinship": False}


def chosen_sources(groups: Groups, tasks: Sequence[str], **options: object) -> Selection:
    """`choose_sources` of each task and model by each of `RULES` (appendix K).

    The rules in the tables: these, "constant" and "random".
    """
    tables, summaries = [], []
    by_task = sorted(groups.items(), key=lambda group: tasks.index(group[0][1]))
    for (model, task), rows in by_task:
        for by, lowest in RULES.items():
            choice = choose_sources(rows, by, lowest=lowest, **options)
            for part, whole in ((choice.table, tables), (choice.summary, summaries)):
                part = part if by == "LD" else part[part["rule"] == "selected"]
                rule = part["rule"].replace("selected", by)
                whole.append(part.assign(rule=rule, model=model, task=task))
    return Selection(*(pd.concat(parts, ignore_index=True) for parts in (tables, summaries)))


# --- figures --------------------------------------------------------------------------------------


@styled
def transfer_matrices(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Transfer from source (row) to target (column), the best source framed (Figure 14).

    ``table`` has ``source``, ``target``, ``accuracy`` and ``best`` (True for the best other source
    of a target). A task has one scale about 0, and the languages that it has, by family; ``labels``
    tells of a task what its colours are, if something else than accuracy above a constant answer.
    """
    table = table.assign(itself=table["source"] == table["target"])
    norms = {t: scale_about(x["accuracy"]) for t, x in parts(table[~table["itself"]], "task")}
    bars = dict.fromkeys(norms, "accuracy − share of\nthe commonest label") | dict(labels or {})
    n = max(part["source"].nunique() for _, part in parts(table, "task"))
    on = heatmap(
        table, row="source", column="target", value="accuracy", panel=("model", "task"),
        rows=list(names), across=list(names), own_rows=True, own_columns=True,
        framed="best", hatched="itself", cell=(2.65 / n, 2.65 / n), edge=(0.7, 1.5), turned=90,
        bar_by=lambda key: key[1], bar=bars, norm=norms, cmap=ABOUT,
    )  # fmt: skip
    itself = Patch(label="the language itself", **HATCHED)
    return on.done("target", "source", handles=[framed_handle("best source of a target"), itself])


@styled
def win_rates(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """How often the chosen source beats a random one, a point a target (Figure 16).

    ``table`` has ``model``, ``task``, ``target`` and ``win_rate``; ``summary`` has ``model``,
    ``task``, ``mean``, ``low`` and ``high``.
    """
    table, summary = (x.assign(item=x["task"] + ", " + x["model"]) for x in (table, summary))
    table = table.sort_values("win_rate", kind="stable")
    items = order(summary, "item")
    tasks = {task: MEASURES[task] for task in order(summary, "task")}
    on = lanes(table, item="item", value="win_rate", series="task", looks=tasks, items=items,
               spread=0.3, shift=-0.1, lane=0.12, low="", width=5, alpha=0.6)  # fmt: skip
    lanes(summary, item="item", value="mean", items=items, on=on, shift=0.32, capsize=3,
          looks={None: look("black", "o")}, labels={None: "mean, with interval"})  # fmt: skip
    across(on, CHANCE)
    return on.done("share of random sources that the chosen one beats", handles=[chance_line()])
