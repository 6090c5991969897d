"""The scores of each language (ABX paper, Appendix E): when they turn, how high, which way.

A language's score is the mean over its pairs with all others; ``scores`` are tables as of
`averages.averaged_scores` by language.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import language_courses
from shared.abx_tables import PAIR, at_last, rowed
from shared.pair_regressions import explained
from xlx.experiment.abx_scores import CheckpointScores
from xlx.experiment.averages import averaged_scores
from xlx.experiment.scoring import BagOfSubwords, subject_scores
from xlx.measures import regressions
from xlx.plots.panels import framed_handle
from xlx.plots.style import styled
from xlx.text import languages
from xlx.text.parallel import ParallelCorpus


def language_kinds(codes: Sequence[str]) -> pd.DataFrame:
    """What is known of languages, next to their kin: ``code``, ``name``, ``family`` and so on."""
    rows = [vars(languages.LANGUAGES[code]) for code in codes if code in languages.LANGUAGES]
    return pd.DataFrame(rows).sort_values(["family", "branch", "script", "name"])


def with_turns(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of languages; ``turn``: where LD is lowest, or another score highest, after step 0."""
    several = scores.groupby("model")["checkpoint"].transform("nunique") > 1
    trained = scores[(scores["checkpoint"] > 0) | ~several]
    cost = trained["score"].where(trained["task"] == "LD", -trained["score"])
    turns = cost.groupby([trained[key] for key in ("model", "task", "language")]).idxmin()
    return scores.assign(turn=scores.index.isin(turns))


def explained_heights(
    scores: pd.DataFrame, names: Sequence[str], corpus: ParallelCorpus, max_length: int | None
) -> pd.DataFrame:
    """Share of the variance of languages' last scores that goes with what else is known of them.

    R² and adjusted R² of groups by script and by branch, and of the language's score in a bag of
    subwords; ``names`` are of the models as of `BagOfSubwords`, in the order of ``scores``.
    """
    last = at_last(scores)
    tasks, bags = list(last["task"].unique()), []
    for title, name in zip(last["model"].unique(), names, strict=True):
        bag = subject_scores([BagOfSubwords(name, max_length=max_length)], corpus)
        bags.append(averaged_scores(bag, tasks, by=["language"]).assign(model=title))
    bag = pd.concat(bags)[["model", "task", "language", "score"]]
    bag = bag.rename(columns={"score": "score of the bag"})
    kinds = language_kinds(corpus.languages).rename(columns={"code": "language"})
    heights = last.merge(kinds, on="language").merge(bag, on=["model", "task", "language"])
    rows = {}
    for (name, task), of_score in heights.groupby(["model", "task"], sort=False):
        for key in ("script", "branch"):
            rows[key, name, task] = explained(of_score, "score", [key])
        fit = regressions.least_squares(of_score, "score", ["score of the bag"])
        rows["score of the bag", name, task] = fit.rsquared, fit.rsquared_adj
    columns = ["R²", "adjusted"]
    return rowed(rows, ["explained by", "model", "task"], columns=columns).unstack(0)


def directed_languages(
    measured: Sequence[CheckpointScores], task: str = "LD", embedding_layer: bool = True
) -> pd.DataFrame:
    """A language's score with X in it, and with X in the others: means over its pairs and layers.

    In LD X and A are of one language and B is of the other; in MD A and B are of the other. A row a
    model and language: ``X in it``, ``X in the others``, ``difference``, largest first.
    """
    table = pd.concat([of.table() for of in measured]).query("task == @task")
    table = table[table["layer"] >= (0 if embedding_layer else 1)]
    sides = pd.concat([table.assign(language=table[side]) for side in PAIR])
    inside = sides["x_language"] == sides["language"]
    where = inside.map({True: "X in it", False: "X in the others"}).rename(None)
    means = sides.groupby(["model", "language", where], sort=False)["score"].mean()
    wide = means.unstack(sort=False)[["X in it", "X in the others"]]
    wide["difference"] = wide["X in it"] - wide["X in the others"]
    by_model = [rows for _, rows in wide.groupby("model", sort=False)]
    return pd.concat(rows.sort_values("difference", ascending=False) for rows in by_model)


@styled
def language_maps(
    table: pd.DataFrame, names: Mapping[str, str], groups: Mapping[str, str]
) -> Figure:
    """Maps of language and checkpoint, a panel a model and task (Figures 8, 9 of the ABX paper).

    ``table`` as of `with_turns`, whose cells are framed; ``names`` gives the languages in order,
    code → label, ``groups`` what stands before the first of each, with a line between. A task has
    one bar of colours.
    """
    n = table["checkpoint"].nunique()
    of_rows = [groups[code] for code in names]
    heads = [k for k, group in enumerate(of_rows) if group not in of_rows[max(k - 1, 0) : k]]
    first = {code: f"{of_rows[k]}: " if k in heads else "" for k, code in enumerate(names)}
    on = language_courses(
        table, "{}: ABX score (bright: high)".format, value="score", rows=list(names),
        framed="turn", names=lambda code: first[code] + names[code],
        cell=(min(0.32, 1.45 / n), 0.165), edge=(2.35, 1.5),
    )  # fmt: skip
    for axes in on.axes.values():
        axes.hlines(heads[1:], 0, n, color="black", linewidth=0.6)
    turn = framed_handle("checkpoint of lowest LD, of highest MD (step 0 aside)")
    return on.done("training step", handles=[turn])
