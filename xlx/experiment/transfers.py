"""Tasks to fine-tune on: a training set that is parallel, so that each answer has its translation.

    task = labelled_task("NLI", ["en", "de", "ru"], n_train=120, n_test=120)

Without labels of a task, `random_task` has parallel sentences with random ones (IGAP, section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from xlx.experiment.grids import grid, groups_of
from xlx.measures import igap, statistics
from xlx.measures.igap import FITTED, TOLERANCE, TRAINING_ERRORS
from xlx.results import checks, work
from xlx.results.deferred import deferred
from xlx.subjects import identity, loading
from xlx.subjects.finetuning import Run
from xlx.subjects.jobs import Job, Recipe, Sparing
from xlx.subjects.states import bag_of_subwords
from xlx.text import examples, labelled, negation
from xlx.text.examples import Examples
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

sparse = deferred("scipy.sparse")

#: Does a sentence deny something? Labelled in English, alike in its translations.
NEGATION = "negation"
#: Languages of XNLI, of PAWS-X, and of the negation task, English first.
INFERENCE = (
    "ar",
    "bg",
    "de",
    "el",
    "en",
    "es",
    "fr",
    "hi",
    "ru",
    "sw",
    "th",
    "tr",
    "ur",
    "vi",
    "zh",
)
PARAPHRASE = ("en", "de", "es", "fr", "ja", "ko", "zh")
DENIED = (
    "en",
    "cs",
    "da",
    "de",
    "el",
    "es",
    "fi",
    "fr",
    "hr",
    "hu",
    "ja",
    "ko",
    "lv",
    "nl",
    "pl",
    "pt",
    "ru",
    "sr",
    "sv",
    "uk",
    "vi",
)
#: How shipped tasks are learnt here: languages, options of `labelled_task`, recipe, and what the
#: recipe of an untrained network has else.
SHIPPED = {
    NEGATION: (
        DENIED,
        {"n_train": 400, "n_test": 100},
        Recipe(epochs=10, every=250, batch_size=16, length_pool=25),
        {},
    ),
    "NLI": (
        INFERENCE,
        {"n_test": 500, "train_split": "validation"},
        Recipe(epochs=12, every=26, length_pool=50),
        {"epochs": 40, "every": 78, "learning_rate": 1e-4},
    ),
    "PI": (PARAPHRASE, {}, Recipe(epochs=30, every=96, batch_size=16, length_pool=32), {}),
}
#: What else a recipe has by the width of a network: of narrow ones all learns, at a high rate; of
#: wide ones the table of word embeddings, which is most of their weights, stays.
NARROW = {"learning_rate": 3e-4}
WIDE = {"learning_rate": 1e-4, "trained_embeddings": False, "dtype": "tf32"}
#: Translations are asked near these training errors.
SPARING = Sparing(tuple((level, TOLERANCE) for level in (0.0, 0.05, 0.1, 0.2)), logits=False)


@dataclass(frozen=True)
class TransferTask:
    """A parallel training set and, where there is one, a parallel test set.

    ``train`` and ``test`` are language → `Examples`, aligned; ``test`` may be empty, as the
    interlingual gap needs none. ``train`` may have one language alone: then there is no such gap.
    ``left_out``: part → why (see `examples.common`) → how many.
    """

    name: str
    train: dict[str, Examples]
    test: dict[str, Examples]
    left_out: dict[str, dict[str, int]]

    def __post_init__(self) -> None:
        examples.aligned(self.train)
        if self.test:
            examples.aligned(self.test)
        one_source = len(self.train) == 1 and set(self.train) < set(self.test)
        if self.test and set(self.test) != set(self.train) and not one_source:
            raise TextError(
                f"{self.name}: the training set has {', '.join(self.train)} and the test set "
                f"{', '.join(self.test)}: both need the same languages"
            )

    def __repr__(self) -> str:
        return (
            f"Task({self.name}: {self.n_train} examples to train and {self.n_test} to test, in "
            f"{' '.join(self.languages)})"
        )

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.test or self.train)

    @property
    def n_train(self) -> int:
        return len(next(iter(self.train.values())))

    @property
    def n_test(self) -> int:
        return len(next(iter(self.test.values()))) if self.test else 0

    @property
    def sets(self) -> dict[str, Examples]:
        """What a run is asked: "train de", "test de" ... → examples."""
        parts = (("train", self.train), ("test", self.test))
        return {
            f"{part} {code}": examples for part, sets in parts for code, examples in sets.items()
        }

    @property
    def guess(self) -> float:
        """The error of a model that guesses, each class as often: 1 - 1 / number of classes."""
        return 1 - 1 / len(next(iter(self.train.values())).classes)

    @property
    def one_label(self) -> float:
        """The error of a model that always gives the commonest label of the training set."""
        return 1 - np.bincount(next(iter(self.train.values())).labels).max() / self.n_train


@checks.typed()
def labelled_task(
    name: str,
    languages: Sequence[str],
    *,
    n_train: int | None = None,
    n_test: int | None = None,
    train_split: str = "train",
    path: str | Path | None = None,
    seed: int = 1,
) -> TransferTask:
    """The parallel examples of a task: XNLI, PAWS-X, or one that is made of parallel text.

    ``name`` is "NLI" (XNLI), "PI" (PAWS-X), or of those that models learn that are too small for
    these, drawn by ``seed``: "negation" (`negation.parts`; ``n_test`` is of each text).

    ``n_train`` and ``n_test`` are the shortest so many, None: all.
    ``train_split``: what is shipped as "train" comes from the public validation part; of a full
    local copy the paper's is "validation", and so it is of the shipped XNLI, where that part is
    2,490 pairs, with 2,010 to test, of which numbers are drawn. ``path``: a local copy of the full
    data; None: what is shipped.

    ValueError as `labelled.parallel_examples`; for a language twice; nothing that all languages
    have with one label.
    """
    if train_split == "test":
        raise ValueError("train_split is 'test', the part to test on: train on another")
    if name == NEGATION:
        codes = checks.several(languages, "languages")
        return TransferTask(name, *negation.parts(codes, n_train, n_test, seed), {})
    whole = (name, train_split, path) == ("NLI", "validation", None)
    parts, left_out = {}, {}
    for part, split, n in (("train", train_split, n_train), ("test", "test", n_test)):
        how = ((part, None), {"source": "xnli-whole"}) if whole else ((split, n), {"path": path})
        sets, left_out[part] = labelled.parallel_examples(name, languages, *how[0], **how[1])
        if whole:
            names = enumerate(next(iter(sets.values())).ids)
            chosen = [i for i, x in names if part == "test" or x.startswith("dev:")]
            sets = {code: x.at(chosen).take(n or len(x), 1) for code, x in sets.items()}
        parts[part] = sets
    return TransferTask(name, parts["train"], parts["test"], left_out)


@checks.typed()
def random_task(corpus: ParallelCorpus, seed: int) -> TransferTask:
    """Parallel sentences with random labels, the same in all languages; no test set."""
    return TransferTask("random labels", examples.of_corpus(corpus, seed), {}, {})


#: What names a direction in tables.
DIRECTION = ["model", "task", "source", "target", "algorithm"]


@dataclass(frozen=True)
class Transfers:
    """The runs of a task, of any models, sources, algorithms and seeds, and what they measure."""

    task: TransferTask
    runs: tuple[Run, ...]

    def wrong(
        self, run: Run, part: str, language: str, rows: ndarray | slice | int = slice(None)
    ) -> ndarray:
        """Which answers of a run are wrong: bool ``(n_checkpoints, n)``; part "train" or "test".

        ``rows`` chooses checkpoints. Raises ValueError for one that was not asked (`Sparing`): the
        source's training set is asked at all, everything at the last.
        """
        answers = run.predictions[f"{part} {language}"][rows]
        if (answers < 0).any():
            raise ValueError(
                f"{run.model} was not asked about {part} {language} at all these checkpoints, as "
                "the run was sparing: ask for more windows, or for all after some more steps"
            )
        return answers != getattr(self.task, part)[language].labels

    def points(self) -> DataFrame:
        """The parts of the error of every fine-tuned model (Figures 1 and 7).

        One row per run, checkpoint and target: ``model, task, source, target, algorithm, seed,
        learning_rate, step, training, interlingual, intralingual, error`` (Equations 3 and 4, on
        the test set) and ``transfer_gap`` (Equation 2), in [-1, 1]. What needs a test set is NaN
        without one; so is what a sparing run was not asked.
        """
        tables = [
            self._points_of(run, target).assign(**self._names(run), target=target)
            for run in self.runs
            for target in self._targets(run)
        ]
        table = pd.concat(tables, ignore_index=True)
        return table[[*DIRECTION, *table.columns.drop(DIRECTION)]]

    def _points_of(self, run: Run, target: str) -> DataFrame:
        """A row for each checkpoint of a run: the parts of its error in one target."""

        def asked(part: str, language: str) -> ndarray:
            return run.predictions[f"{part} {language}"][:, 0] >= 0

        training = self.wrong(run, "train", run.source)
        parts = ("interlingual", "intralingual", "error", "transfer_gap")
        columns = {"seed": run.seed, "learning_rate": run.learning_rate, "step": run.steps}
        columns |= {"training": training.mean(1), **dict.fromkeys(parts, np.nan)}
        table = DataFrame(columns)
        near = asked("train", target)
        translated = self.wrong(run, "train", target, near)
        both = igap.decompose(training[near], translated, translated)
        table.loc[near, "interlingual"] = both.interlingual
        if self.task.test:
            rows = near & asked("test", target) & asked("test", run.source)
            unseen = self.wrong(run, "test", target, rows)
            translated = self.wrong(run, "train", target, rows)
            both = igap.decompose(training[rows], translated, unseen)
            gap = igap.transfer_gap(~self.wrong(run, "test", run.source, rows), ~unseen)
            table.loc[rows, list(parts[1:])] = np.array([both.intralingual, both.error, gap]).T
        return table

    def curves(
        self, levels: Sequence[float] = TRAINING_ERRORS, tolerance: float = TOLERANCE
    ) -> DataFrame:
        """IGAP by training error (Equation 5), over the steps, seeds and rates of each model.

        `igap.igap_curve` for each ``model``, ``source`` and ``algorithm``, which become
        columns as ``task`` does; ``chance``: the gap at the level if all answers in the target are
        guesses. With the mean over targets as target "mean". Errors as there.
        """
        tables, groups = [], groups_of(next(iter(self.task.train.values())))
        for names, runs in self._grouped():
            training, translated, seeds = self._inside(runs, levels, tolerance)
            table = igap.igap_curve(training, translated, seeds, levels, tolerance, groups=groups)
            tables.append(table.assign(**names, chance=self.task.guess - table["level"].to_numpy()))
        curves = pd.concat(tables, ignore_index=True)
        return curves[[*DIRECTION, *curves.columns.drop(DIRECTION)]]

    def losses(
        self, level: float = 0.0, tolerance: float = FITTED
    ) -> dict[tuple[str, str], ndarray]:
        """(source, target) → what each seed loses of each training example, ``(S, n)``.

        The mean over its checkpoints at the level, which is what one of them loses: a minimum falls
        with their number, so that it compares neither levels nor sources. Seeds without any are
        left out. The runs must be of one model and algorithm; a source without a checkpoint at the
        level is not there.
        """
        return {key: lost for key, (lost, _) in self._lost(level, tolerance).items()}

    def _lost(self, level: float, tolerance: float) -> dict[tuple[str, str], tuple[ndarray, float]]:
        """(source, target) → `losses`, and the mean training error of the same checkpoints."""
        table = {}
        for names, runs in self._grouped():
            lost, errors = [], []
            for seed in dict.fromkeys(run.seed for run in runs):
                same = [run for run in runs if run.seed == seed]
                training, translated, _ = self._inside(same, [level], tolerance)
                if len(training):
                    wrong = np.array([x.mean(0) for x in translated.values()])
                    lost.append(wrong - training.mean(0))
                    errors.append(training.mean())
            if lost:
                keys = [(names["source"], code) for code in self._targets(runs[0])]
                error = float(np.mean(errors))
                table |= {
                    key: (x, error) for key, x in zip(keys, np.moveaxis(lost, 0, 1), strict=True)
                }
        return table

    def gap_table(self, level: float = 0.0, tolerance: float = TOLERANCE) -> DataFrame:
        """IGAP of one model at a training error, by source and target and of the mean over targets.

        ``minimum``: Equation 5, the least gap of all checkpoints at the level. ``value``, ``low``,
        ``high``: that of one checkpoint (`losses`), with the interval over seeds and premises.
        ``training``: the mean training error of the same checkpoints; ``guess``: the gap of a model
        that has it and guesses elsewhere. ``kept``, with ends: (guess - value) / guess.
        ``checkpoints``, ``seeds``. A source without a checkpoint at the level has no rows.
        """
        groups = groups_of(next(iter(self.task.train.values())))
        lost = self._lost(level, tolerance)
        for source, (_, error) in {key[0]: x for key, x in lost.items()}.items():
            alike = [x for key, (x, _) in lost.items() if key[0] == source]
            lost[source, igap.MEAN_TARGET] = np.mean(alike, 0), error
        rows = [(*igap.crossed_interval(x, groups), error) for x, error in lost.values()]
        index = pd.MultiIndex.from_tuples(list(lost), names=["source", "target"])
        table = DataFrame(rows, index, ["value", "low", "high", "training"])
        plain = self.curves([level], tolerance)
        plain = plain.set_index(["source", "target"]).reindex(table.index)
        table.insert(0, "minimum", plain["igap"])
        table["guess"] = self.task.guess - table["training"]
        for share, column in (("kept", "value"), ("kept_low", "high"), ("kept_high", "low")):
            table[share] = 1 - table[column] / table["guess"]
        return table.assign(checkpoints=plain["n_models"], seeds=plain["n_seeds"])

    def _inside(
        self, runs: Sequence[Run], levels: Sequence[float], tolerance: float
    ) -> tuple[ndarray, dict[str, ndarray], ndarray]:
        """Wrong answers in the source and by target, and seeds: of models in a window of a level.

        No other model has a say in a curve, nor need it have been asked.
        """
        near = []
        for run in runs:
            error = self.wrong(run, "train", run.source).mean(1)
            windows = [statistics.window(error, level, tolerance) for level in levels]
            near.append(np.flatnonzero(np.any(windows, 0)))
        wrong = {
            code: np.concatenate(
                [self.wrong(run, "train", code, rows) for run, rows in zip(runs, near, strict=True)]
            )
            for code in (runs[0].source, *self._targets(runs[0]))
        }
        seeds = np.repeat([run.seed for run in runs], [len(rows) for rows in near])
        return wrong.pop(runs[0].source), wrong, seeds

    def last_wrong(self, part: str = "test") -> dict[tuple[str, str], ndarray]:
        """(source, target) → wrong answers of the last checkpoints, bool ``(n_runs, n)``.

        The runs must be of one model and algorithm.
        """
        kinds = {(run.model, run.algorithm) for run in self.runs}
        if len(kinds) > 1:
            raise ValueError(
                f"the runs are of {len(kinds)} models or algorithms: give those of one"
            )
        if part == "test" and not self.task.test:
            raise ValueError(f"the task {self.task.name} has no test set")
        return {
            (runs[0].source, target): np.array([self.wrong(run, part, target, -1) for run in runs])
            for _, runs in self._grouped()
            for target in self._targets(runs[0])
        }

    def only(self, **attributes: object) -> Transfers:
        """The runs with these attributes, such as ``model="mini-xlmr"``."""
        runs = tuple(
            run for run in self.runs if all(getattr(run, k) == v for k, v in attributes.items())
        )
        if not runs:
            raise ValueError(f"there is no run with {attributes}")
        return Transfers(self.task, runs)

    def _names(self, run: Run) -> dict[str, str]:
        names = {"model": run.model, "task": self.task.name, "source": run.source}
        return names | {"algorithm": run.algorithm}

    def _targets(self, run: Run) -> list[str]:
        return [code for code in self.task.languages if code != run.source]

    def _grouped(self) -> Iterator[tuple[dict[str, str], list[Run]]]:
        """The runs that make up one A(θ₀): of one model, source and algorithm."""
        groups = {}
        for run in self.runs:
            groups.setdefault((run.model, run.source, run.algorithm), []).append(run)
        for runs in groups.values():
            yield self._names(runs[0]), runs


def transfer_task(
    names: Sequence[str],
    task: TransferTask,
    sources: Sequence[str],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    *,
    sparing: Sparing | None = None,
) -> Transfers:
    """Fine-tune every model in every source by every recipe and seed; predict in all languages.

    Recipes and seeds together span A(θ₀), the set of fine-tuned models that IGAP is the minimum
    over; recipes that differ in the algorithm are kept apart. Of ``sparing`` the ``windows`` and
    ``every`` count (`sparing_in`); None: everything is asked at every checkpoint.

    ValueError for a source that the task does not have; as `grids.grid`.
    """
    asked = {"models": names, "sources": sources, "recipes": recipes, "seeds": seeds}
    asked = [checks.several(values, what) for what, values in asked.items()]
    for source in asked[1]:
        checks.one_of(source, task.train, f"source of {task.name}")
    jobs = [
        Job(name, task.train[source], task.sets, recipe, seed, sparing_in(task, source, sparing))
        for name, source, recipe, seed in product(*asked)
    ]
    return Transfers(task, tuple(grid(jobs)))


def sparing_in(task: TransferTask, source: str, sparing: Sparing | None) -> Sparing | None:
    """Of a run in one language: its training set is asked at every checkpoint, translations only
    near the training errors of the windows, test sets only after ``every`` steps and the last.
    """
    others = tuple(f"train {code}" for code in task.train if code != source)
    return sparing and replace(sparing, decides=f"train {source}", inside=others)


@checks.typed()
def shared_subwords(
    name: str,
    task: TransferTask,
    sources: Sequence[str] | None = None,
    *,
    max_length: int | None = None,
) -> DataFrame:
    """How far the labels of a training set cross by the strings that translations share.

    Nothing is learnt: a translated example gets the label of that training example of the source
    language with which it has most subwords (of the model's tokenizer) in common: cosine of the
    counts, the two texts of a pair counted apart; the first of several as near. Names, numbers and
    signs alone do that much, so it is what a gap must be below to speak of more than that.

    One row per ``source`` (None: all) and other ``target``: ``found``, the share of translations
    whose nearest training example is their own; ``interlingual``, the share with a wrong label less
    that of the training set itself (0 but where two examples have the same bag): Equation 4.
    """
    sources = [*(task.train if sources is None else sources)]
    for source in checks.several(sources, "sources"):
        checks.one_of(source, task.train, "source")
    about = {
        "bag of": identity.fingerprint(name),
        "sources": sources,
        "max_length": max_length,
        "train": [[code, part.text_hash()] for code, part in task.train.items()],
    }
    table = work.result(SHARED, about, name, task, sources, max_length)
    return table[["source", "target", "found", "interlingual"]]


def _shared_subwords(
    name: str, task: TransferTask, sources: Sequence[str], max_length: int | None
) -> DataFrame:
    """The cut point: the table of `shared_subwords`."""
    encoder, first, bags = loading.load(name), next(iter(task.train.values())), []
    for side in ("first",) if first.second is None else ("first", "second"):
        texts = {code: getattr(part, side) for code, part in task.train.items()}
        corpus = ParallelCorpus(side, texts, first.ids, ("",) * len(first), "", "")
        bags.append(bag_of_subwords(encoder, corpus, max_length=max_length))
    joined = {code: sparse.hstack([bag[code] for bag in bags]).tocsr() for code in task.train}
    rows = []
    for source, target in product(sources, joined):
        # the size of a translation moves no maximum; that of a training example does
        sizes = np.sqrt(joined[source].multiply(joined[source]).sum(1))
        nearest = ((joined[target] @ joined[source].T).toarray() / sizes).argmax(1)
        nearby = (nearest == np.arange(len(first))).mean()
        rows.append((source, target, nearby, (first.labels[nearest] != first.labels).mean()))
    table = DataFrame(rows, columns=["source", "target", "found", "interlingual"])
    at_home = table["source"] == table["target"]
    wrong = table[at_home].set_index("source")["interlingual"]
    table["interlingual"] -= table["source"].map(wrong)
    return table[~at_home].reset_index(drop=True)


#: Labels that cross by shared strings; near ties may fall otherwise on another machine.
SHARED = work.Kind("states", _shared_subwords, tolerance=0.01, function="shared_subwords")
