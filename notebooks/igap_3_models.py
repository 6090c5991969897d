"""What pretraining adds: members, untrained networks and strings on one task, by IGAP and accuracy.

Strings answer as models do (`strings` makes a `Run` of each), so every table has them. Accuracies
and gaps are in [0, 1]; intervals are over seeds and examples (`igap.crossed_interval`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.claims import crossed
from shared.controls import subword_sets
from shared.shown import as_points, asking, in_points
from xlx.experiment.transfers import Transfers, TransferTask, transfer_task
from xlx.measures import igap
from xlx.measures.igap import MEAN_TARGET
from xlx.plots.panels import across, rows_of
from xlx.plots.primitives import lanes
from xlx.plots.style import GUESSING, handle, language_label, look, looks, styled
from xlx.results.deferred import deferred
from xlx.subjects.finetuning import Run
from xlx.subjects.identity import title
from xlx.subjects.jobs import ALGORITHMS, Recipe, Sparing
from xlx.subjects.loading import tokenizer

sparse = deferred("scipy.sparse")
linear_model = deferred("sklearn.linear_model")

STRINGS = BAG, NEGATOR = "bag of subwords", "commonest sign"
#: Inverse penalties of the bag: from one that learns little to one that errs nowhere.
PENALTIES = np.logspace(-3, 3, 13)
#: What `text` calls all of the test set, and the set that was learnt, in translation.
ALL_TEXTS, TRANSLATIONS = "all unread", "learnt, as translations"

#: What is compared over pretraining runs.
ACCURACY, GAP = "accuracy, unread", "IGAP at E′"
SPREADS = [RUNS, ALONE] = ["SD, runs", "SD, fine-tuning alone"]

#: Of tense: what is looked at, and where.
SHARE, AHEAD, TARGETS, UNTIMED = "accuracy", "less the bag", "targets", "targets, no word of time"
#: English words, and numbers, that tell the time without a verb.
TIME = re.compile(
    r"(?i)\d|\b(?:ago|yesterday|today|tomorrow|now|then|when|while|during|after|before|since|until"
    r"|last|next|once|already|still|never|always|often|currently|recently|earlier|later|early|late"
    r"|time|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july"
    r"|august|(?:sept|nov|dec)ember|october|(?:day|week|month|year|decade)s?|centur(?:y|ies))\b"
)

ENDS, FEWER = ["igap", "low", "high"], ["fewer", "fewer_low", "fewer_high"]


# --- subjects -------------------------------------------------------------------------------------


def fine_tuned(
    models: Mapping[str, Sequence[str]],
    task: TransferTask,
    source: str,
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    sparing: Sparing | None,
) -> dict[str, Transfers]:
    """The runs of each model by its algorithms, a subject each."""
    transfers = {}
    for model, how in ((x, how_many) for x, several in models.items() for how_many in several):
        by = [replace(recipe, algorithm=how) for recipe in recipes]
        subject = title(model) if how == ALGORITHMS[0] else f"{title(model)}, {how}"
        transfers[subject] = transfer_task([model], task, [source], by, seeds, sparing=sparing)
    return transfers


def strings(task: TransferTask, source: str, name: str) -> tuple[dict[str, Transfers], pd.Series]:
    """Two subjects that know no language, and the sign of each language.

    `BAG`: logistic regression on the subwords (of model ``name``) of the source, a checkpoint a
    penalty. `NEGATOR`: an example is of the second class if it has the sign of its language: the
    word or subword that goes best with the labels of the training set there, by Youden's index. So
    it alone has labels in the target; there is none of three classes, nor where the training set
    has no translations.
    """
    labels, asked = task.train[source].labels, task.sets
    texts = {
        key: [
            f"{a} {b}".strip() for a, b in zip_longest(part.first, part.second or (), fillvalue="")
        ]
        for key, part in asked.items()
    }
    bags = _bags(texts, name)
    words = {key: [{*re.findall(r"\w+", x.casefold())} for x in texts[key]] for key in texts}
    fits = [
        linear_model.LogisticRegression(C=c, max_iter=1000).fit(bags[f"train {source}"], labels)
        for c in PENALTIES
    ]
    pieces = tokenizer(name)
    signs, signed = {}, {}
    signed_too = len(task.train[source].classes) == 2 and set(task.train) == set(task.test)
    for code, part in task.train.items() if signed_too else ():
        sign, what = _best_sign(words[f"train {code}"], bags[f"train {code}"], part.labels)
        signs[code] = pieces.convert_ids_to_tokens(int(sign)) if what == "subword" else sign
        for half in ("train", "test"):
            there = words if what == "word" else bags
            signed[f"{half} {code}"] = _has(there[f"{half} {code}"], sign)[None]
    answers = {
        BAG: {key: np.array([fit.predict(bags[key]) for fit in fits]) for key in asked},
        **({NEGATOR: signed} if signed else {}),
    }
    runs = {
        subject: Transfers(task, (_as_run(subject, source, predictions),))
        for subject, predictions in answers.items()
    }
    return runs, pd.Series(signs, name="sign")


def _as_run(subject: str, source: str, predictions: Mapping[str, np.ndarray]) -> Run:
    steps = np.arange(len(predictions[f"train {source}"]))
    predictions = {key: answers.astype(np.int16) for key, answers in predictions.items()}
    return Run(
        subject, source, "vanilla", 1, 0.0, steps, np.zeros(0, np.float32), predictions, {}, {}
    )


def _bags(texts: Mapping[str, Sequence[str]], name: str) -> dict[str, sparse.csr_array]:
    """Which subwords a text has, 0 or 1."""
    read = tokenizer(name)
    return {key: subword_sets(read, sentences) for key, sentences in texts.items()}


def _best_sign(
    words: Sequence[set[str]], bag: sparse.csr_array, labels: np.ndarray
) -> tuple[object, str]:
    """The word or subword whose presence agrees best with the labels, and which it is."""
    sides = np.bincount(labels, minlength=2)
    shares = [bag[labels == side].sum(axis=0) / sides[side] for side in (0, 1)]
    youden = np.asarray(shares[1] - shares[0]).ravel()
    counts = [
        Counter(w for i in np.flatnonzero(labels == side) for w in words[i]) for side in (0, 1)
    ]
    index = {word: n / sides[1] - counts[0][word] / sides[0] for word, n in counts[1].items()}
    word = max(index, key=index.__getitem__)
    if index[word] >= youden.max():
        return word, "word"
    return int(youden.argmax()), "subword"


def _has(texts: object, sign: object) -> np.ndarray:
    if isinstance(sign, str):
        return np.array([sign in words for words in texts], int)
    return (texts[:, [sign]].toarray().ravel() > 0).astype(int)


# --- tables ---------------------------------------------------------------------------------------


def accuracies(measured: Mapping[str, Transfers], source: str) -> pd.DataFrame:
    """Accuracy after the last step: ``subject``, ``text``, ``language``, with its interval.

    Of each text (what ids of the test set begin with), of all (`ALL_TEXTS`) and of what was learnt
    (`TRANSLATIONS`); `MEAN_TARGET` is the mean over languages other than the source.
    """
    rows = []
    for subject, transfer in measured.items():
        ids = transfer.task.test[source].ids
        texts = np.array([x.partition(":")[0] if ":" in x else ALL_TEXTS for x in ids])
        translated = (TRANSLATIONS,) if len(transfer.task.train) > 1 else ()
        for text in dict.fromkeys((*texts, ALL_TEXTS, *translated)):
            part = "train" if text == TRANSLATIONS else "test"
            of_text = texts == text if text in texts else slice(None)
            right = {
                code: np.array(
                    [1.0 - transfer.wrong(run, part, code, -1)[of_text] for run in transfer.runs]
                )
                for code in transfer.task.languages
            }
            right[MEAN_TARGET] = np.mean([x for c, x in right.items() if c != source], axis=0)
            rows += [
                (subject, text, code, *igap.crossed_interval(x, np.arange(x.shape[1])))
                for code, x in right.items()
            ]
    columns = ["subject", "text", "language", "accuracy", "low", "high"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(low=table["low"].clip(lower=0), high=table["high"].clip(upper=1))


def gaps(measured: Mapping[str, Transfers], level: float, tolerance: float) -> pd.DataFrame:
    """IGAP of each subject at a training error, mean over targets, with intervals.

    Of one checkpoint of each seed (`Transfers.losses`). ``fewer``: how much
    less than the first subject loses, on the same examples and as many seeds as both have (strings
    have one, which stands for all), and on which side of zero that is (``told``, `claims.crossed`);
    ``kept``: that as a share of what the first loses. A subject without a checkpoint at the level
    has no numbers.
    """
    lost = {}
    for subject, transfer in measured.items():
        if losses := transfer.losses(level, tolerance):
            lost[subject] = np.mean(list(losses.values()), axis=0)
    rows: dict[str, dict[str, float]] = {subject: {} for subject in measured}
    reference = lost.get(next(iter(measured)))
    for subject, values in lost.items():
        groups, row = np.arange(values.shape[1]), rows[subject]
        row |= dict(zip(ENDS, igap.crossed_interval(values, groups), strict=True))
        if reference is not None and values is not reference:
            n = min(len(reference), len(values)) if len(values) > 1 else len(reference)
            ends = crossed(reference[:n] - values[:n], groups)
            row |= dict(zip([*FEWER, "told"], ends, strict=True))
            row["kept"] = row["fewer"] / reference.mean()
    columns = [*ENDS, *FEWER, "kept", "told"]
    return pd.DataFrame.from_dict(rows, orient="index").reindex(index=list(rows), columns=columns)


def wrong_unread(transfer: Transfers) -> np.ndarray:
    """Which texts of the test set are missed after the last step, mean over targets, ``(S, n)``."""
    missed = [x for (source, code), x in transfer.last_wrong().items() if code != source]
    return np.mean(missed, axis=0)


def more_right(
    subjects: Mapping[str, Transfers], rivals: Mapping[str, Transfers]
) -> dict[str, pd.DataFrame]:
    """Rival → how much more each subject has right: ``value``, ``low``, ``high``, in [-1, 1].

    Of unread text, mean over targets; paired by seed (a rival with one run stands for all) and by
    example. A subject less itself is left out.
    """
    tables = {}
    for rival, other in rivals.items():
        rows = {
            subject: wrong_unread(other) - wrong_unread(transfer)
            for subject, transfer in subjects.items()
            if transfer is not other
        }
        rows = {x: igap.crossed_interval(y, np.arange(y.shape[1])) for x, y in rows.items()}
        columns = ["value", "low", "high"]
        tables[rival] = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return tables


def noise_table(
    subjects: Mapping[str, Transfers],
    rival: tuple[str, Transfers],
    source: str,
    level: float,
    tolerance: float,
) -> pd.DataFrame:
    """Ways of fine-tuning one model as text: IGAP, accuracy, and that less the first way and rival.

    In points, with intervals over seeds and examples. ``fewer`` is less than the first way's IGAP;
    ``seeds``: how many have a checkpoint at the training error, of how many.
    """
    accuracy, first = accuracies(subjects, source), next(iter(subjects))
    of_gaps = shown_gaps(gaps(subjects, level, tolerance)).drop(columns="kept")
    seeds, unread_text = {}, {x: told(accuracy, x) for x in subjects}
    for subject, transfer in subjects.items():
        lost = [*transfer.losses(level, tolerance).values()]
        seeds[subject] = f"{len(lost[0]) if lost else 0} of {len(transfer.runs)}"
    beside = more_right(subjects, {"without noise": subjects[first], rival[0]: rival[1]})
    more = {f"more than {x}": as_points(table, "value") for x, table in beside.items()}
    columns = {"seeds": pd.Series(seeds), "right, unread": pd.Series(unread_text), **more}
    return of_gaps.assign(**columns).fillna("")


def told(
    accuracy: pd.DataFrame, subject: str, text: str = ALL_TEXTS, language: str = MEAN_TARGET
) -> str:
    """An accuracy with its interval, in per cent."""
    row = rows_of(accuracy, subject=subject, text=text, language=language)
    return as_points(row, "accuracy").iloc[0]


def unread(accuracy: pd.DataFrame, source: str) -> pd.DataFrame:
    """Accuracy on all unread text, one subject per row, one target per column."""
    rows = rows_of(accuracy, text=ALL_TEXTS)
    rows = rows[~rows["language"].isin([source, MEAN_TARGET])]
    return rows.pivot(index="subject", columns="language", values="accuracy").loc[
        [*dict.fromkeys(rows["subject"])]
    ]


def by_text(accuracy: pd.DataFrame, source: str, least: float) -> pd.DataFrame:
    """Subject by text: the mean over targets; the source; the targets above ``least``."""
    wide = unread(accuracy, source)
    rows = {
        subject: {text: told(accuracy, subject, text) for text in dict.fromkeys(accuracy["text"])}
        | {
            f"{source}, unread": told(accuracy, subject, language=source),
            f"above {100 * least:.0f} %": f"{(shares > least).sum()} of {len(shares)}",
        }
        for subject, shares in wide.iterrows()
    }
    return pd.DataFrame(rows).T


def said_of(measured: Mapping[str, Transfers], codes: Sequence[str], position: int) -> pd.DataFrame:
    """What the first run of each subject says of a test example in some languages."""
    rows = {}
    for subject, transfer in measured.items():
        predictions, classes = transfer.runs[0].predictions, transfer.task.test[codes[0]].classes
        rows[subject] = {code: classes[predictions[f"test {code}"][-1, position]] for code in codes}
    return pd.DataFrame(rows).T


def shown_gaps(table: pd.DataFrame) -> pd.DataFrame:
    """`gaps` in points, as text."""
    numbers = table[[*ENDS, *FEWER, "kept"]].astype(float)
    shown = {"IGAP": as_points(numbers, "igap"), "fewer": as_points(numbers, "fewer")}
    shown["kept"] = numbers["kept"].map(in_points)
    return pd.DataFrame(shown).replace(r".*no model.*", "", regex=True)


def best_of(accuracy: pd.DataFrame, source: str) -> str:
    """The fine-tuned model with the highest mean over targets on all unread text."""
    return unread(accuracy, source).drop(index=list(STRINGS), errors="ignore").mean(axis=1).idxmax()


# --- over pretraining runs ------------------------------------------------------------------------


def over_runs(
    runs: Mapping[str, Mapping[tuple[str, int], Transfers]],
    untrained: Transfers,
    level: float,
    tolerance: float,
) -> pd.DataFrame:
    """What checkpoints of several pretraining runs have at a step, and how far these lie apart.

    A row a ``recipe``, ``what`` (`ACCURACY` after the last step and `GAP`, means over targets) and
    ``step``. A column each run ("run 1" ...), the mean of its fine-tunings; their ``mean``;
    `SPREADS`: the SD of runs, and what it would be if they were alike, that of the means of as many
    fine-tunings. Of a gap `FEWER`: how much less it is than that of the untrained network, over
    runs and examples. A run without a checkpoint at the training error has no gap.
    """
    before, rows = np.mean([*untrained.losses(level, tolerance).values()], axis=(0, 1)), {}
    for recipe, of_recipe in runs.items():
        names, by_step = [*dict.fromkeys(x for x, _ in of_recipe)], {}
        for (name, step), transfer in of_recipe.items():
            by_step.setdefault((recipe, ACCURACY, step), {})[name] = 1 - wrong_unread(transfer)
            if lost := transfer.losses(level, tolerance):
                by_step.setdefault((recipe, GAP, step), {})[name] = np.mean(
                    [*lost.values()], axis=0
                )
        for key, values in sorted(by_step.items()):
            each = pd.Series({f"run {names.index(x) + 1}": y.mean() for x, y in values.items()})
            alone = [x.mean(axis=1).var(ddof=1) / len(x) for x in values.values() if len(x) > 1]
            spreads = {RUNS: each.std(), ALONE: pd.Series(alone).mean() ** 0.5}
            rows[key] = {**each, "mean": each.mean(), **spreads}
            if GAP in key and len(values) > 1:
                less = before - [x.mean(axis=0) for x in values.values()]
                ends = igap.crossed_interval(less, np.arange(len(before)))
                rows[key] |= dict(zip(FEWER, ends, strict=True))
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["recipe", "what", "step"])
    of_recipe = sorted(x for x in table if x.startswith("run "))
    return table[[*of_recipe, "mean", *SPREADS, *FEWER]]


def shown_runs(table: pd.DataFrame) -> pd.DataFrame:
    """`over_runs` in points, as text."""
    return table.drop(columns=FEWER).map(in_points).replace("no model", "")


# --- tense ----------------------------------------------------------------------------------------


def beside_bag(tasks: Mapping[str, Mapping[str, Transfers]], source: str) -> pd.DataFrame:
    """Accuracy of each subject, and how much that is ahead of the bag's on the same examples.

    A row a ``task``, ``subject``, ``text`` (the source, `TARGETS`, their mean, and `UNTIMED`: of
    these the examples whose English has no word of `TIME`, each class counted half) and ``what``
    (`SHARE`, `AHEAD`). The bag has that penalty which is
    best in the text: it is chosen on the test, in the bag's favour.
    """
    rows = []
    for name, measured in tasks.items():
        part = measured[BAG].task.test[source]
        bare = np.array([not TIME.search(x) for x in part.first])
        sizes = np.bincount(part.labels[bare], minlength=len(part.classes))
        weights = bare.sum() / (sizes[part.labels] * len(sizes))
        of_bag = _texts(measured[BAG], source, bare, weights)
        for subject, transfer in measured.items():
            for text, right in _texts(transfer, source, bare, weights).items():
                bag, groups = max(of_bag[text], key=np.mean)[None], np.arange(right.shape[1])
                right = bag if subject == BAG else right
                compared = {SHARE: right} if subject == BAG else {SHARE: right, AHEAD: right - bag}
                for what, values in compared.items():
                    ends = igap.crossed_interval(values, groups)
                    rows.append((name, subject, text, what, *ends))
    columns = ["task", "subject", "text", "what", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _texts(transfer: Transfers, source: str, bare: np.ndarray, weights: np.ndarray) -> dict:
    """Right answers, ``(runs, n)``, by text of `beside_bag`; of strings a row a checkpoint."""
    rows = slice(None) if transfer.runs[0].model in STRINGS else slice(-1, None)
    right = {
        code: np.concatenate(
            [1.0 - transfer.wrong(run, "test", code, rows) for run in transfer.runs]
        )
        for code in transfer.task.languages
    }
    targets = np.mean([x for code, x in right.items() if code != source], axis=0)
    return {source: right[source], TARGETS: targets, UNTIMED: (targets * weights)[:, bare]}


def shown_beside(table: pd.DataFrame) -> pd.DataFrame:
    """`beside_bag` in points, one subject per row."""
    shown = table.assign(points=as_points(table, "value"))
    wide = shown.pivot_table("points", ["task", "subject"], ["what", "text"], "first", sort=False)
    return wide.sort_index(axis=1, level=0, sort_remaining=False, kind="stable").fillna("")


# --- figures --------------------------------------------------------------------------------------


@styled
def accuracy_lanes(accuracy: pd.DataFrame, subjects: Sequence[str], first: str) -> Figure:
    """Accuracy by language: what a member knows, with its interval, and what strings know."""
    rows = accuracy[accuracy["subject"].isin(subjects) & (accuracy["language"] != MEAN_TARGET)]
    of_first = rows[rows["subject"] == first].sort_values("accuracy", ascending=False)
    bare = rows["subject"] != first
    rows = rows.assign(**{end: rows[end].mask(bare) for end in ("low", "high")})
    on = lanes(
        rows,
        "accuracy",
        "language",
        hue="subject",
        scale=100,
        width=6.2,
        lane=0.03,
        shift=0,
        looks=looks(subjects) | {NEGATOR: look("0.1", "x")},
        items=[*of_first["language"]],
        names=language_label,
        labels={x: x.replace("/step-000000", ", untrained") for x in subjects}
        | {NEGATOR: "best single word of the language (sign)"},
    )
    across(on, x=50)
    figure = on.done("accuracy on new sentences (%)", handles=[handle("guessing", GUESSING)])
    return asking("Taught in English, in which languages does a model answer right?", figure)
