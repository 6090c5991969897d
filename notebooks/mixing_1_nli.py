"""Inference learnt in one language and asked in two: what the premise adds, what explains it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd

from printed.mixing_claims import PrintedScores
from shared import claims, mixing_tables, regressions
from shared.mexa_tables import load_text
from shared.pair_regressions import held_out, with_language
from shared.shown import as_points
from xlx.experiment.grids import Grid
from xlx.experiment.scoring import subject_scores
from xlx.measures import igap, mixing
from xlx.results.deferred import deferred
from xlx.subjects.finetuning import Run
from xlx.text.examples import Examples

sparse, linear_model = deferred("scipy.sparse"), deferred("sklearn.linear_model")

#: Labels as the paper merges them.
MERGED = {"entailment": [0], "not-entailment": [1, 2]}
#: Shares of the shorter text's distinct subwords that the other has: where bins begin.
BINS = (1e-9, 0.1, 0.3)
BIN_NAMES = ("none", "to 10 %", "to 30 %", "more")
ENDS = ["score", "low", "high"]


def transfers(
    runs: Sequence[Run], alone: Sequence[Run], gold: Examples, source: str, groups: np.ndarray
) -> pd.DataFrame:
    """Accuracy within each language, of hypotheses alone, and what the premise adds.

    One row per language of the runs' sets, then "mean of targets"; ``groups`` of the examples; of
    what the premise adds ``told`` (`claims.compared`).
    """
    names = list(runs[0].predictions)

    def right(of_seeds: Sequence[Run]) -> np.ndarray:
        rows = [[run.predictions[x][-1] == gold.labels for x in names] for run in of_seeds]
        table = np.array(rows, dtype=float)
        others = [i for i, name in enumerate(names) if name != source]
        return np.concatenate([table, table[:, others].mean(axis=1, keepdims=True)], axis=1)

    pairs, other = right(runs), right(alone)
    tables = {
        "both": mixing.averages(pairs, groups),
        "hypothesis alone": mixing.averages(other, groups),
        "premise adds": claims.compared(pairs, other, groups),
    }
    rows = [*names, "mean of targets"]
    tables = [table.assign(language=rows, what=what) for what, table in tables.items()]
    return pd.concat(tables, ignore_index=True)


#: Where `beside_alone` asks what the premise adds: in the language of learning first.
PLACES = ("in what is learnt", *mixing.SETTINGS[:2])


def beside_alone(
    pairs: Mapping[str, tuple[np.ndarray, np.ndarray, int]], groups: np.ndarray
) -> pd.DataFrame:
    """Model → "hypothesis alone" and what the premise adds in each of `PLACES` (`claims.compared`).

    ``pairs``: model → right answers ``(S, L, L, n)`` with premises and without, and the place of
    the language that it learns. A row a model and ``what``; ``seeds``: of hypotheses alone.
    """
    tables = []
    for model, (*both, k) in pairs.items():
        same = np.eye(both[0].shape[1], dtype=bool)
        pair_models, less = (
            np.stack([x[:, k, k], x[:, same].mean(axis=1), x[:, ~same].mean(axis=1)], axis=1)
            for x in both
        )
        level = mixing.averages(less[:, 1:2], groups).assign(what="hypothesis alone")
        adds = claims.compared(pair_models, less, groups)
        adds["what"] = [f"premise adds {x}" for x in PLACES]
        tables.append(pd.concat([level, adds]).assign(model=model, seeds=len(less)))
    return pd.concat(tables, ignore_index=True)


def told_by_measure(table: pd.DataFrame) -> pd.DataFrame:
    """`knowledge` as text, "63.8; +5.9 (2.8 to 8.8)": measures in columns."""
    both, adds = (table[table["what"] == what] for what in ("both", "premise adds"))
    adds = adds.reset_index(drop=True)
    scale, digits = (np.where(adds["measure"] == "d′", *x) for x in ((1, 100), (2, 1)))
    text = [
        f"{k * level:.{d}f}; {k * x:+.{d}f} ({k * low:.{d}f} to {k * high:.{d}f})"
        for k, d, level, (x, low, high) in zip(
            scale, digits, both["score"], adds[ENDS].to_numpy(), strict=True
        )
    ]
    wide = adds.assign(text=text).pivot(index="cells", columns="measure", values="text")
    return wide.loc[list(dict.fromkeys(adds["cells"])), list(dict.fromkeys(adds["measure"]))]


def beside_printed(ours: pd.DataFrame, table: str, by: str) -> pd.DataFrame:
    """Means over languages within, across and their drop, printed rows first; ``by`` names rows.

    ``ours`` is `mixing.summary` or `by_label` with ``model``; ``table`` names the printed tables.
    """
    rows = {}
    for name, printed in PrintedScores().tables.items():
        if name in table.split(", "):
            for (model, _, setting, label), row in printed.iterrows():
                if setting in mixing.SETTINGS:
                    key = (f"{model}, printed", label)
                    rows.setdefault(key, {})[setting] = f"{row['avg']:.1f}"
    for (model, label), rows_of_model in ours[ours["language"] == mixing.OVERALL].groupby(
        ["model", by], sort=False
    ):
        rows[model, label] = dict(
            zip(rows_of_model["setting"], as_points(rows_of_model), strict=True)
        )
    frame = pd.DataFrame.from_dict(rows, orient="index")[list(mixing.SETTINGS[:2])]
    drops = {key: row.get("drop") for key, row in rows.items()}
    less = frame.apply(lambda row: f"{float(row['within'][:4]) - float(row['across'][:4]):.1f}", 1)
    frame["drop"] = [drops[key] or less[key] for key in frame.index]
    return frame.rename_axis(index=["model", by])


# --- overlap --------------------------------------------------------------------------------------


def _in_bins(
    scores: np.ndarray, overlap: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Values ``(S, bins + 1, n)`` by setting, and shares of pairs, for `at_equal_overlap`."""
    same = np.eye(len(overlap), dtype=bool)
    bins, kinds, means = np.digitize(overlap, BINS), {"within": same, "across": ~same}, {}
    inside = {
        kind: np.array([(bins[mask] == b).sum(axis=0) for b in range(len(BIN_NAMES))])
        for kind, mask in kinds.items()
    }
    shares = {kind: x.sum(axis=1) / x.sum() for kind, x in inside.items()}
    both = (inside["within"].sum(axis=1) > 0) & (inside["across"].sum(axis=1) > 0)
    weights = np.where(both, shares["across"], 0) / shares["across"][both].sum()
    for kind, mask in kinds.items():
        sums = [np.where(bins[mask] == b, scores[:, mask], 0).sum(axis=1) for b in range(len(both))]
        means[kind] = mixing_tables.ratio_values(np.stack(sums, axis=1), inside[kind][None] * 1.0)
        whole = np.tensordot(np.nan_to_num(means[kind]), weights, axes=(1, 0))
        means[kind] = np.concatenate([means[kind], whole[:, None]], axis=1)
    means["drop"] = means["within"] - means["across"]
    return means, shares


def at_equal_overlap(
    values: Mapping[str, np.ndarray], overlap: np.ndarray, groups: np.ndarray
) -> pd.DataFrame:
    """Within and across in bins of overlap, and their difference where both have the same bins.

    ``values``: what is averaged, ``(S, L, L, n)``. The last row, "as across", weighs the bins
    within as they are filled across, over bins with pairs of both kinds. Shares of the pairs of
    each kind are in ``pairs within`` and ``pairs across``.
    """
    tables = []
    for what, scores in values.items():
        means, shares = _in_bins(scores, overlap)
        for setting, each in means.items():
            table = mixing.averages(each, groups).clip(upper=1)
            tables.append(
                table.assign(overlap=[*BIN_NAMES, "as across"], setting=setting, what=what)
            )
    joined = pd.concat(tables, ignore_index=True)
    for kind, share in shares.items():
        joined[f"pairs {kind}"] = joined["overlap"].map(dict(zip(BIN_NAMES, share, strict=True)))
    return joined


# --- pairs of languages ---------------------------------------------------------------------------


def pair_predictors(
    model: str,
    languages: Sequence[str],
    corpus: str,
    scores: np.ndarray,
    overlap: np.ndarray,
    measures: Sequence[str],
    pooling: str = "mean",
) -> pd.DataFrame:
    """One row per ordered pair of two languages: its score, overlap, and measures of frozen states.

    ``scores`` and ``overlap`` are ``(L, L)``; measures are means over layers and both directions
    of a parallel ``corpus``. ``within`` is the mean score within the two languages.
    """
    text = load_text(corpus, list(languages), None)
    (scored,) = subject_scores([model], text, measures, pooling=pooling, max_length=None)
    table = scored.table()
    table["pair"] = [
        "-".join(sorted(x)) for x in zip(table["language_1"], table["language_2"], strict=True)
    ]
    means = table.groupby(["pair", "task"])["score"].mean().unstack()
    within, rows = np.diagonal(scores), []
    for (i, a), (j, b) in product(enumerate(languages), repeat=2):
        if i != j:
            row = {"source": a, "target": b, "score": scores[i, j], "overlap": overlap[i, j]}
            row |= {"within": (within[i] + within[j]) / 2}
            rows.append(row | means.loc["-".join(sorted((a, b)))].to_dict())
    return pd.DataFrame(rows)


def explained(table: pd.DataFrame, readings: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Regressions of a pair's score: one standard deviation of a predictor, R², held-out R².

    Errors are clustered by both languages (dyadic). Held out: all pairs with one language are
    predicted from the pairs without it, and compared with the mean of these.
    """
    ends, rows = ["source", "target"], {}
    for name, terms in readings.items():
        scaled = table.assign(**{x: (table[x] - table[x].mean()) / table[x].std() for x in terms})
        try:
            fit = regressions.regression(scaled, "score", list(terms), clusters=ends)
            unseen = round(held_out(scaled, "score", terms, with_language(scaled)), 2)
        except ValueError:  # too few languages
            continue
        lines = fit.table[(fit.table["errors"] == "dyadic") & fit.table["term"].isin(terms)]
        coefficients = [
            f"{t} {100 * c:+.1f} ({100 * a:.1f} to {100 * b:.1f})"
            for t, c, a, b in lines[["term", "coefficient", "low", "high"]].itertuples(index=False)
        ]
        rows[name] = {
            "points for one SD": "; ".join(coefficients),
            "R²": round(fit.r_squared, 2),
            "R² on a language held out": unseen,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


# --- what is shown --------------------------------------------------------------------------------


def drops_by(
    ours: Mapping[str, np.ndarray], labels: np.ndarray, overlap: np.ndarray, groups: np.ndarray
) -> pd.DataFrame:
    """Drops from within to across, by ``what``: whole, by label and so on, by `claims.compared`."""
    same = np.eye(len(overlap), dtype=bool)

    def drop(values: np.ndarray) -> np.ndarray:
        return values[:, same].mean(axis=1) - values[:, ~same].mean(axis=1)

    each = {"all pairs": drop(ours["accuracy"])}
    for name, classes in MERGED.items():
        mask = np.isin(labels, classes)[None] * 1.0
        each[name] = mixing_tables.ratio_values(each["all pairs"] * mask, mask)
    each |= {x: drop(y) for x, y in ours.items() if x != "accuracy"}
    each["as across"] = _in_bins(ours["accuracy"], overlap)[0]["drop"][:, -1]
    values = np.stack(list(each.values()), axis=1)
    table = claims.compared(values, np.zeros_like(values[:1]), groups)
    return table.assign(what=list(each))


def told_by_overlap(equal: pd.DataFrame) -> pd.DataFrame:
    """`at_equal_overlap` as text: one row per bin."""
    table = equal.assign(text=as_points(equal)).pivot(
        index="overlap", columns=["what", "setting"], values="text"
    )
    for kind in ("across", "within"):
        share = equal.drop_duplicates("overlap").set_index("overlap")[f"pairs {kind}"]
        table.insert(0, ("share of pairs (%)", kind), (100 * share).round(1))
    keys = [
        (x, kind)
        for x in equal["what"].unique()
        for kind in mixing.SETTINGS
        if (x, kind) != ("premise adds", "drop")
    ]
    shares = [("share of pairs (%)", kind) for kind in ("within", "across")]
    return table.loc[[*BIN_NAMES, "as across"], [*shares, *keys]].astype(object).fillna("")


# --- beyond the second text -----------------------------------------------------------------------


def beyond(base: np.ndarray, added: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """What ``added`` models know beyond ``base`` models, in AUC: values of examples, in each seed.

    Of S seeds, h = (S - 1) // 2 of ``base`` answer together with as many others of ``added``: the
    mean of their log probabilities. Less the AUC of the same ``base`` with as many others of its
    kind it is the gain. Above zero, ``added`` has information that ``base`` has not; a constant in
    favour of the first class changes nothing, as only the order counts.

    ``base``, logits ``(S, ..., n, C)``, and ``added``, of which the lower S counts (one seed stands
    for all); ``positive``, ``(n,)``: which examples have the first class. Returns ``(S, ..., n)``:
    jackknife values of seeds, which `igap.crossed_interval` takes. Their mean over all is the mean
    gain over all splits, in [-1, 1]. MixingError for fewer than three seeds. The question is that
    of usable information (Ethayarajh, Choi and Swayamdipta 2022), the estimator ours.
    """
    if len(added) == 1:
        added = np.broadcast_to(added, (len(base), *added.shape[1:]))
    seeds = range(min(len(base), len(added)))
    h = (len(seeds) - 1) // 2
    if h < 1:
        raise mixing.MixingError(f"there are {len(seeds)} seeds: three or more can be split")

    def auc(*models: np.ndarray) -> np.ndarray:
        joined = sum(x.sum(axis=0, dtype=float) for x in models) / (2 * h)
        return mixing.auc_values(mixing_tables.evidence(joined), positive)

    plain = {x: auc(base[[*x]]) for x in combinations(seeds, 2 * h)}
    splits, gains = [], []
    for whole, less in plain.items():
        for half in combinations(whole, h):
            others = [x for x in whole if x not in half]
            splits.append(whole)
            gains.append(auc(base[[*half]], added[others]) - less)
    mean = np.mean(gains, axis=0)
    without = [
        np.mean([x for x, split in zip(gains, splits, strict=True) if s not in split], axis=0)
        for s in seeds
    ]
    return np.stack([len(seeds) * mean - (len(seeds) - 1) * x for x in without])


def gains(
    base: np.ndarray,
    added: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    cells: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """`beyond` of logits ``(S, L, L, n, C)``, a row for each of ``cells`` (boolean ``(L, L)``).

    Columns ``cells``, ``score``, ``low``, ``high`` (over ``groups`` of examples and seeds), and how
    many single cells are ``above zero``, "210 of 210". NaN where fewer than three seeds were run.
    """
    if len(base) < 3 or len(added) == 2:
        nothing = dict.fromkeys(ENDS, np.nan)
        return pd.DataFrame({"cells": list(cells), **nothing, "above zero": ""})
    if (base == base[:, :1]).all():
        base = base[:, :1]  # no first text is read, so all rows are one
    values = beyond(base, added, labels == 0)
    shape = (len(values), *next(iter(cells.values())).shape, len(labels))
    values, rows = np.broadcast_to(values, shape), []
    for name, mask in cells.items():
        ends = igap.crossed_interval(values[:, mask].mean(axis=1), groups)
        above = (values[:, mask].mean(axis=(0, 2)) > 0).sum()
        rows.append((name, *ends, f"{above} of {mask.sum()}"))
    return pd.DataFrame(rows, columns=["cells", *ENDS, "above zero"])


def overlap_reader(overlap: np.ndarray, labels: np.ndarray, at: int) -> np.ndarray:
    """Log probabilities ``(1, L, L, n, C)`` of a reader of `shared_subwords` alone.

    A logistic regression on the very pairs that are asked, within the language at ``at``.
    """
    fit = linear_model.LogisticRegression().fit(overlap[at, at, :, None], labels)
    logs = fit.predict_log_proba(overlap.reshape(-1, 1))
    return logs.reshape(1, *overlap.shape, -1)


def logits_of(grids: Iterable[Grid]) -> np.ndarray:
    """Logits of several seeds, ``(S, L, L, n, C)``."""
    return np.stack([seed.logits for seed in grids])
