"""Inference learnt in one language and asked in two: what the premise adds, what explains it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from printed.mixing_claims import PrintedScores
from shared import claims, regressions
from shared.abx_tables import pair_scores
from shared.igap_tables import both_directions
from shared.mexa_tables import language_families, language_scripts, load_text
from shared.mixing_tables import by_setting
from shared.pair_regressions import held_out, with_language
from shared.shown import as_points
from xlx.experiment.grids import Grid
from xlx.experiment.scoring import subject_scores
from xlx.measures import igap, information, mixing
from xlx.results.deferred import deferred

special, linear_model = deferred("scipy.special"), deferred("sklearn.linear_model")
model_selection = deferred("sklearn.model_selection")

#: Labels as the paper merges them.
MERGED = {"entailment": [0], "not-entailment": [1, 2]}
ENDS = ["score", "low", "high"]


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


def levels_and_gains(table: pd.DataFrame) -> pd.DataFrame:
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
    tables = PrintedScores().tables
    printed = pd.concat(tables[name]["avg"] for name in table.split(", ")).droplevel("task")
    printed = printed.unstack("setting", sort=False).rename("{}, printed".format, level="model")
    printed["drop"] = printed["within"] - printed["across"]
    printed = printed[list(mixing.SETTINGS)].map("{:.1f}".format)
    both = pd.concat([printed, by_setting(ours, "model", by)[list(mixing.SETTINGS)]])
    return both.rename_axis(index=["model", by], columns=None)


# --- pairs of languages ---------------------------------------------------------------------------


def pair_predictors(
    model: str,
    languages: Sequence[str],
    corpus: str,
    scores: np.ndarray,
    overlap: np.ndarray,
    measures: Sequence[str],
) -> pd.DataFrame:
    """One row per ordered pair of two languages: its ratio, and what may predict it.

    ``ratio``: the score as a share of the mean score within the two languages. ``scores`` and
    ``overlap`` are ``(L, L)``; ``kinship`` is 2 for one family and 1 for one script, added up;
    measures are means over layers and both directions of a parallel ``corpus``.
    """
    text = load_text(corpus, list(languages), None)
    (scored,) = subject_scores([model], text, measures, pooling="mean", max_length=None)
    pairs = pd.concat(both_directions(pair_scores(scored.table())))
    table = pairs.pivot_table("score", ["source", "target"], "metric")
    ends = table.index.to_frame()
    first, second = (pd.Index(languages).get_indexer(ends[x]) for x in ends)
    script, family = (
        ends.replace(x).nunique(axis=1).eq(1)
        for x in (language_scripts(corpus), language_families(languages))
    )
    within = np.diagonal(scores)
    return table.assign(
        ratio=2 * scores[first, second] / (within[first] + within[second]),
        overlap=overlap[first, second],
        kinship=script + 2 * family,
    ).reset_index()


def explained(table: pd.DataFrame, readings: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Regressions of a pair's ratio: one standard deviation of a predictor, R², held-out R².

    Errors are clustered by both languages (dyadic). Held out: all pairs with one language, or with
    one family, are predicted from the pairs without it, and compared with the mean of these.
    """
    ends, rows = ["source", "target"], {}
    families = table[ends].replace(language_families(np.unique(table[ends])))
    left_out = {"language": with_language(table), "family": with_language(families)}
    for name, terms in readings.items():
        scaled = table.assign(**{x: (table[x] - table[x].mean()) / table[x].std() for x in terms})
        try:
            fit = regressions.regression(scaled, "ratio", list(terms), clusters=ends)
            unseen = {
                f"R² on a {x} held out": round(held_out(scaled, "ratio", terms, masks), 2)
                for x, masks in left_out.items()
            }
        except ValueError:  # too few languages
            continue
        lines = fit.by("dyadic")
        coefficients = [
            f"{t} {100 * c:+.0f} ({100 * a:.0f} to {100 * b:.0f})"
            for t, c, a, b in lines[["term", "coefficient", "low", "high"]].itertuples(index=False)
        ]
        rows[name] = {
            "per cent for one SD": "; ".join(coefficients),
            "R²": round(fit.r_squared, 2),
            **unseen,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


# --- beyond the second text -----------------------------------------------------------------------


def gains(
    base: np.ndarray,
    added: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    cells: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """`auc_beyond` of logits ``(S, L, L, n, C)``, a row for each of ``cells`` (boolean ``(L, L)``).

    Columns ``cells``, ``score``, ``low``, ``high`` (over ``groups`` of examples and seeds), and how
    many single cells are ``above zero``, "210 of 210". NaN where fewer than three seeds were run.
    """
    if len(base) < 3 or len(added) == 2:
        nothing = dict.fromkeys(ENDS, np.nan)
        return pd.DataFrame({"cells": list(cells), **nothing, "above zero": ""})
    if (base == base[:, :1]).all():
        base = base[:, :1]  # no first text is read, so all rows are one
    values = information.auc_beyond(base, added, labels == 0)
    return over_cells(values, cells, groups).reset_index(names="cells")


def over_cells(
    values: np.ndarray, cells: Mapping[str, np.ndarray], groups: np.ndarray
) -> pd.DataFrame:
    """Means of values ``(S, L, L, n)`` in groups of cells, by name, intervals as of `gains`."""
    shape = (len(values), *next(iter(cells.values())).shape, values.shape[-1])
    values, rows = np.broadcast_to(values, shape), {}
    for name, mask in cells.items():
        ends = igap.crossed_interval(values[:, mask].mean(axis=1), groups)
        above = (values[:, mask].mean(axis=(0, 2)) > 0).sum()
        rows[name] = (*ends, f"{above} of {mask.sum()}")
    return pd.DataFrame.from_dict(rows, "index", columns=[*ENDS, "above zero"])


def rival_gains(
    added: Mapping[str, tuple[np.ndarray, np.ndarray]],
    labels: np.ndarray,
    groups: np.ndarray,
    cells: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """`gains` of what is added to a base, by name, and ``bits`` (`bits_beyond`, hundredths)."""
    rows = {}
    for name, (base, logits) in added.items():
        row = gains(base, logits, labels, groups, cells).iloc[0]
        bits = information.bits_beyond(base[:, :1], logits, labels == 0, groups)
        text = as_points(over_cells(bits, cells, groups)).iloc[0]
        rows[name] = row.drop("cells").to_dict() | {"bits": text}
    return pd.DataFrame.from_dict(rows, "index")


def with_overlap(
    alone: np.ndarray, overlap: np.ndarray, labels: np.ndarray, groups: np.ndarray, at: int
) -> np.ndarray:
    """Log probabilities ``(S, L, L, n, C)`` of who has the hypothesis and shared subwords alone.

    A logistic regression on the log probabilities of a model of hypotheses ``(S, 1, L, n, C)``, the
    ``overlap`` ``(L, L, n)``, its square, and whether there is any. It is fitted within the
    language at ``at``, in ten folds of whole groups, and asked about the fold in all cells.
    """
    shape = (*overlap.shape, alone.shape[-1])
    strings = np.stack([overlap, overlap**2, overlap > 0], axis=-1)
    answers = np.empty((len(alone), *shape))
    for s, logits in enumerate(special.log_softmax(alone.astype(float), axis=-1)):
        x = np.concatenate([np.broadcast_to(logits, shape), strings], axis=-1)
        for rest, fold in model_selection.GroupKFold(min(10, len(np.unique(groups)))).split(
            labels, labels, groups
        ):
            fit = linear_model.LogisticRegression(solver="newton-cholesky")
            fit.fit(x[at, at, rest], labels[rest])
            asked = x[:, :, fold]
            logs = fit.predict_log_proba(asked.reshape(-1, x.shape[-1]))
            answers[s][:, :, fold] = logs.reshape(*asked.shape[:-1], -1)
    return answers


def logits_of(grids: Iterable[Grid]) -> np.ndarray:
    """Logits of several seeds, ``(S, L, L, n, C)``."""
    return np.stack([seed.logits for seed in grids])
