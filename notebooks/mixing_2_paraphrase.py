"""Pairs of sentences: what is asked of SICK and PAWS-X, AUC, and translations told from others."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from shared import mixing_tables
from shared.mixing_tables import TaskData, baseline_grid
from shared.pair_regressions import ENDS, held_out, with_language
from shared.regressions import regression
from shared.shown import as_points
from xlx.experiment.abx_scores import CheckpointScores, history
from xlx.experiment.grids import Grid
from xlx.experiment.scoring import subject_scores
from xlx.measures import mixing
from xlx.text import labelled
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus

OVERLAP_KEYS = ["what", "setting", "overlap"]


def pair_data(
    task: str, languages: Sequence[str], source: str, n_train: int | None, n_test: int | None, *,
    train_data: str | None, test_data: str | None, split: str, seed: int,
) -> TaskData:  # fmt: skip
    """SICK, of which ``n_test`` pairs are drawn by ``seed``; or "PI", by `task_data`."""
    if task == "PI":
        return mixing_tables.task_data(
            task, languages, source, n_train, n_test, train_data=train_data, test_data=test_data,
            split=split,
        )  # fmt: skip
    whole, left_out = labelled.parallel_examples("NLI", languages, split, source=task)
    learnt, _ = labelled.parallel_examples("NLI", [source], "train", n_train, source=task)
    sets = {code: part.take(n_test or len(part), seed) for code, part in whole.items()}
    return TaskData(learnt[source], whole[source], sets, left_out)


def commonest(data: TaskData) -> Grid:
    """The grid of who always gives the commonest label of the sets."""
    label = np.bincount(data.gold.labels).argmax()
    said = np.full((len(data.sets), len(data.sets), len(data.gold)), label)
    return baseline_grid("commonest label", data.sets, said)


def label_aucs(grids: Sequence[Grid], labels: np.ndarray, label: int) -> np.ndarray:
    """Values of pairs whose mean is the AUC of a label, ``(S, L, L, n)``: no threshold enters.

    ``grids`` are of one model, a seed each, with logits; evidence is the log odds of the label.
    """
    logits = np.stack([one.logits for one in grids]).astype(np.float64)
    logits = np.concatenate([logits[..., [label]], np.delete(logits, label, axis=-1)], axis=-1)
    return mixing.auc_values(mixing_tables.evidence(logits), labels == label)


def auc_settings(values: np.ndarray, groups: np.ndarray, model: str, **drawn: int) -> pd.DataFrame:
    """The mean of `label_aucs` within, across and the drop, as `mixing.summary` has it."""
    here = np.eye(values.shape[1], dtype=bool)
    within, across = values[:, here].mean(axis=1), values[:, ~here].mean(axis=1)  # (S, n)
    each = np.stack([within, across, within - across], axis=1)  # (S, 3, n)
    table = mixing.averages(each, groups, **drawn)
    return table.assign(setting=mixing.SETTINGS, model=model, language=mixing.OVERALL)


def told_overlap(equal: pd.DataFrame, overlap: np.ndarray, labels: np.ndarray, model: str) -> str:
    """What `mixing_1_nli.at_equal_overlap` of a model, of the bag and of AUC says."""
    points = as_points(equal).set_axis(pd.MultiIndex.from_frame(equal[OVERLAP_KEYS]))
    drops = [points[x, "drop", "as across"] for x in (model, "bag of subwords", "AUC")]
    few = np.eye(len(overlap), dtype=bool)[..., None] & (overlap < 0.1)
    share = (np.broadcast_to(labels, overlap.shape)[few] == np.bincount(labels).argmax()).mean()
    return (
        f"**At equal overlap** the drop is {drops[0]} points, and that of the bag {drops[1]}. "
        f"Within a language {100 * share:.0f} % of the pairs that share little have the commonest "
        "label, which moves accuracy and not the AUC. That drops by "
        f"{drops[2]}. Across, pairs that share no subword have an AUC of "
        f"{points['AUC', 'across', 'none']}, all pairs {points['AUC', 'across', 'as across']}."
    )


# --- same or other --------------------------------------------------------------------------------


def forced_choice(measured: CheckpointScores, task: str) -> pd.Series:
    """How often a sentence's translation is nearer than another sentence, by pair of languages.

    The layer of a pair is the best one of the pairs that share no language with it.
    """
    table = measured.table().query("task == @task")
    wide = table.pivot_table("score", ["language_1", "language_2"], "layer")
    first, second = (wide.index.get_level_values(k) for k in (0, 1))
    found = {}
    for a, b in wide.index:
        others = ~(first.isin([a, b]) | second.isin([a, b]))
        found[a, b] = wide.loc[(a, b), wide[others].mean().idxmax()]
    return pd.Series(found)


def by_overlap(
    choices: pd.DataFrame, model: str, bag: str, *, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Means of `forced_choice` by scripts and by overlap, and the model less the bag.

    ``choices``: pairs of languages by subject. Overlap is the bag's own score, in thirds of the
    pairs. ``score``, ``low``, ``high``: model less bag; resampled are languages.
    """
    first, second = (choices.index.get_level_values(k) for k in (0, 1))
    scripts = [[LANGUAGES[code].script for code in side] for side in (first, second)]
    one_script = np.array(scripts[0]) == np.array(scripts[1])
    third = pd.qcut(choices[bag].rank(method="first"), 3, labels=False).to_numpy()
    masks = {
        "all pairs": np.full(len(choices), True), "one script": one_script,
        "two scripts": ~one_script, "least overlap": third == 0, "most overlap": third == 2,
    }  # fmt: skip
    codes = sorted({*first, *second})
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(codes), np.full(len(codes), 1 / len(codes)), n_resamples)
    place = {code: k for k, code in enumerate(codes)}
    weights = drawn[:, [place[x] for x in first]] * drawn[:, [place[x] for x in second]]
    gain, rows = (choices[model] - choices[bag]).to_numpy(), {}
    for name, mask in masks.items():
        sizes = weights[:, mask].sum(axis=1)
        means = (weights[:, mask] @ gain[mask])[sizes > 0] / sizes[sizes > 0]
        low, high = mixing.percentile_ends(means)
        row = {"pairs": mask.sum()} | choices[mask].mean().to_dict()
        rows[name] = row | {"score": gain[mask].mean(), "low": low, "high": high}
    return pd.DataFrame(rows).T


# --- which pairs of languages ---------------------------------------------------------------------

#: What a pair's score is regressed on beside the measures: the score of the bag of subwords.
OVERLAP = "overlap"


def pairs_of_states(
    names: Sequence[str], steps: Sequence[int], text: ParallelCorpus, other: ParallelCorpus,
    task: str, measures: Sequence[str], overlap: pd.Series, **states: object,
) -> dict[tuple[str, int], pd.DataFrame]:  # fmt: skip
    """(model, step) → a row a pair of languages: ``score``, `OVERLAP` and measures.

    The score is `forced_choice` on a ``text``. Measures are of the same states on ``other``
    sentences, means over layers. Of each model the shipped checkpoints after these ``steps``, and
    of pairs those that ``other`` has.
    """
    several = [x for name in names for x in history(name) if getattr(x, "step", 0) in steps]
    pairs = {}
    for own, there in zip(
        subject_scores(several, text, [task], **states),
        subject_scores(several, other, measures, **states), strict=True,
    ):  # fmt: skip
        table = there.table()
        rows = table.groupby(["language_1", "language_2", "task"])["score"].mean().unstack()
        rows = rows.assign(**{"score": forced_choice(own, task), OVERLAP: overlap})
        model, step = table[["model", "checkpoint"]].iloc[0]
        pairs[model, int(step)] = rows.rename_axis(ENDS).reset_index()
    return pairs


def slopes(pairs: Mapping[tuple[str, int], pd.DataFrame], terms: Sequence[str]) -> pd.DataFrame:
    """A pair's score regressed on each term alone: a row a ``model``, ``step`` and ``term``.

    ``score`` with ``low``, ``high``: what one standard deviation of the term adds, with errors
    clustered by both languages; ``R²`` on a language held out (`pair_regressions.held_out`).
    """
    rows = []
    for (model, step), table in pairs.items():
        for term in terms:
            scaled = table.assign(**{term: (table[term] - table[term].mean()) / table[term].std()})
            fit = regression(scaled, "score", [term], clusters=list(ENDS)).table
            fit = fit[(fit["errors"] == "dyadic") & (fit["term"] == term)]
            unseen = held_out(scaled, "score", [term], with_language(scaled))
            ends = fit[["coefficient", "low", "high"]].to_numpy()[0]
            rows.append((model, step, term, *ends, unseen))
    return pd.DataFrame(rows, columns=["model", "step", "term", "score", "low", "high", "R²"])


def shown_slopes(table: pd.DataFrame) -> pd.DataFrame:
    """`slopes` in points as text, with R² behind a semicolon: a term a column."""
    text = as_points(table) + [f"; {x:.2f}" for x in table["R²"]]
    wide = table.assign(text=text).pivot(index=["model", "step"], columns="term", values="text")
    return wide[list(dict.fromkeys(table["term"]))]


def told_slopes(table: pd.DataFrame) -> str:
    """In how many trained states a slope has which sign, and how well it predicts, by term."""
    said = []
    for term, own in table.groupby("term", sort=False):
        rows, untrained = own[own["step"] > 0], own[own["step"] == 0]
        up, down = ((rows["low"] > 0).sum(), (rows["high"] < 0).sum())
        turns = "it turns" if up and down else "it does not turn"
        said.append(
            f"- **{term}**: the slope is above zero in {up} of {len(rows)} trained states and "
            f"below in {down}, so {turns}. R² on a language held out is {rows['R²'].min():.2f} to "
            f"{rows['R²'].max():.2f}; before training it is {untrained['R²'].mean():.2f}."
        )
    return "\n".join(said)
