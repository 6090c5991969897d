"""Transfers: fine-tune in source languages, ask in target languages, measure what is lost.

What `xlx.finetuning` predicts and `xlx.transferability` measures, brought together on the data of a
task. The training set is parallel, so the answers to its translations can be compared example by
example; a test set, if the task has one, is parallel as well.

    task = labelled_task("NLI", ["en", "de", "ru"], n_train=120, n_test=120)
    found = transfer(["mini-xlmr"], task, ["en"], [Recipe(epochs=10)], seeds=(1, 2))
    found.points()      # one row per checkpoint and target
    found.curves()      # IGAP by training error
    found.directions()  # test accuracy, IGAP and transfer gap at training error 0

Without labels of a task, `random_task` has parallel sentences with random ones (section 3.2).
Sections, equations and figures are those of Chi, Huang and Mao.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from xlx import (
    abx,
    alignment,
    bfloat16,
    checks,
    corpora,
    embeddings,
    examples,
    mexa,
    models,
    transferability,
    work,
)
from xlx.corpora import ParallelCorpus
from xlx.examples import Examples
from xlx.finetuning import Job, Recipe, Run, Sparing, finetune_all
from xlx.settings import current
from xlx.transferability import FITTED, LEVELS, TOLERANCE

#: The task that needs no labels: is the second sentence the first one, or another one?
SAME_OR_OTHER = "same or other"

#: What `predictors` scores directions by: metric → what of it is good, high (1) or low (-1).
METRICS: dict[str, int] = {
    "L2": -1, "dot": 1, "cosine": 1, "retrieval": 1, "LD": -1, "MD": 1, "MEXA": 1,
    "bag of subwords": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A parallel training set and, where there is one, a parallel test set.

    Attributes
    ----------
    name : str
    train, test : dict
        Language → `Examples`, aligned; ``test`` may be empty. The interlingual gap needs no test.
    left_out : dict
        Part ("train", "test") → why (see `examples.common`) → how many examples were left out.
    """

    name: str
    train: dict[str, Examples]
    test: dict[str, Examples]
    left_out: dict[str, dict[str, int]]

    def __post_init__(self) -> None:
        examples.aligned(self.train)
        if self.test:
            examples.aligned(self.test)
            if set(self.test) != set(self.train):
                raise examples.ExamplesError(
                    f"{self.name}: the training set has {', '.join(self.train)} and the test set "
                    f"{', '.join(self.test)}: both need the same languages"
                )

    def __repr__(self) -> str:
        n_test = len(next(iter(self.test.values()))) if self.test else 0
        return (
            f"Task({self.name}: {self.n_train} examples to train and {n_test} to test, in "
            f"{' '.join(self.languages)})"
        )

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.train)

    @property
    def n_train(self) -> int:
        return len(next(iter(self.train.values())))

    @property
    def guess(self) -> float:
        """The error of a model that guesses, each class as often: 1 - 1 / number of classes."""
        return 1 - 1 / len(next(iter(self.train.values())).classes)

    def corrupted(self, ratio: float, seed: int) -> "Task":
        """The same with a share of the training labels random, alike in all languages (5.4)."""
        first = next(iter(self.train.values()))
        labels = examples.corrupted(first.labels, ratio, len(first.classes), seed)
        return replace(
            self, train={code: one.relabelled(labels) for code, one in self.train.items()}
        )


def labelled_task(
    name: str,
    languages: Sequence[str],
    *,
    n_train: int | None = None,
    n_test: int | None = None,
    train_split: str = "train",
    path: str | Path | None = None,
    untranslated: bool = False,
    seed: int = 1,
) -> Task:
    """The parallel examples of a task: XNLI, PAWS-X, or one that is made of parallel text.

    Parameters
    ----------
    name : {"NLI", "PI", "same or other"}
        XNLI; PAWS-X; pairs of a sentence with itself or with another one that is like it in length
        and digits (`examples.same_or_other_parts`), which models learn that are too small for the
        others.
    languages : sequence of str
    n_train, n_test : int, optional
        The shortest so many (`examples.shortest`), which saves most of the time; None: all. Of
        "same or other" both are needed, and "the shortest" is said of the first language.
    train_split : str
        The part to train on. What is shipped as "train" comes from the public validation part; of
        a full local copy the paper's is "validation". "same or other" deals out its own parts.
    path : str or Path, optional
        A local copy of the full data; None: the shipped subset. Of "same or other" a parallel
        corpus, for `corpora.load`; None: WMT24++.
    untranslated : bool
        Of a local copy of PAWS-X, whether pairs without a translation ("NS", label 0) stay in, as
        in XTREME's files; those with another label in the first language are left out all the same.
    seed : int
        Of the parts of "same or other".

    Raises
    ------
    ValueError
        As `labelled.load`; a language twice; nothing that all languages have with one label;
        "same or other" without numbers of pairs or with more than there are.
    """
    if train_split == "test":
        raise ValueError("train_split is 'test', the part to test on: train on another")
    if name == SAME_OR_OTHER:
        if n_train is None or n_test is None:
            raise ValueError("how many pairs of same or other, to train and to test on?")
        codes = checks.several(languages, "languages", once=True)
        text = corpora.load(path or "wmt24pp", codes, drop_duplicates=True)
        parts = examples.same_or_other_parts(text, codes[0], n_train, n_test, seed)
        return Task(name, *parts, {"train": {}, "test": {}})
    parts, left_out = {}, {}
    for part, split, n in (("train", train_split, n_train), ("test", "test", n_test)):
        parts[part], left_out[part] = examples.parallel(
            name, languages, split, n, path=path, untranslated=untranslated
        )
    return Task(name, parts["train"], parts["test"], left_out)


def random_task(corpus: ParallelCorpus, seed: int) -> Task:
    """Parallel sentences with random labels, the same in all languages; no test set."""
    return Task("random labels", examples.of_corpus(corpus, seed), {}, {})


@dataclass(frozen=True)
class Transfers:
    """The runs of a task, of any models, sources, algorithms and seeds, and what they measure."""

    task: Task
    runs: tuple[Run, ...]

    def wrong(
        self, run: Run, part: str, language: str, at: np.ndarray | slice | int = slice(None)
    ) -> np.ndarray:
        """Which answers of a run are wrong: bool ``(n_checkpoints, n)``; part "train" or "test".

        ``at`` chooses checkpoints. Raises ValueError for one that was not asked (`Sparing`): the
        source's training set is asked at all, everything at the last.
        """
        answers = run.predictions[f"{part} {language}"][at]
        if (answers < 0).any():
            raise ValueError(
                f"{run.model} was not asked about {part} {language} at all these checkpoints, as "
                "the run was sparing: ask for more windows, or for all after some more steps"
            )
        return answers != getattr(self.task, part)[language].labels

    def asked(self, run: Run, part: str, language: str) -> np.ndarray:
        """At which checkpoints a run was asked about a set: bool ``(n_checkpoints,)``."""
        return run.predictions[f"{part} {language}"][:, 0] >= 0

    def points(self) -> pd.DataFrame:
        """The parts of the error of every fine-tuned model (Figures 1 and 7).

        One row per run, checkpoint and target: ``model, task, source, target, algorithm, seed,
        learning_rate, step, training, interlingual, intralingual, error`` (Equations 3 and 4, on
        the test set) and ``transfer_gap`` (Equation 2), in [-1, 1]. What needs a test set is NaN
        without one; so is what a sparing run was not asked.
        """
        order = ["model", "task", "source", "target", "algorithm", "seed", "learning_rate", "step",
                 "training", "interlingual", "intralingual", "error", "transfer_gap"]  # fmt: skip
        tables = [
            self._points_of(run, target).assign(**self._names(run), target=target)
            for run in self.runs
            for target in self._targets(run)
        ]
        return pd.concat(tables, ignore_index=True)[order]

    def _points_of(self, run: Run, target: str) -> pd.DataFrame:
        """A row for each checkpoint of a run: the parts of its error in one target."""
        training = self.wrong(run, "train", run.source)
        table = pd.DataFrame(
            {
                "seed": run.seed,
                "learning_rate": run.learning_rate,
                "step": run.steps,
                "training": transferability.decompose(training, training, training).training,
                **dict.fromkeys(("interlingual", "intralingual", "error", "transfer_gap"), np.nan),
            }
        )
        rows = np.flatnonzero(self.asked(run, "train", target))
        translated = self.wrong(run, "train", target, rows)
        parts = transferability.decompose(training[rows], translated, translated)
        table.loc[rows, "interlingual"] = parts.interlingual
        if self.task.test:
            tested = self.asked(run, "test", target) & self.asked(run, "test", run.source)
            rows = np.flatnonzero(tested & self.asked(run, "train", target))
            unseen = self.wrong(run, "test", target, rows)
            translated = self.wrong(run, "train", target, rows)
            parts = transferability.decompose(training[rows], translated, unseen)
            table.loc[rows, "intralingual"] = parts.intralingual
            table.loc[rows, "error"] = parts.error
            table.loc[rows, "transfer_gap"] = transferability.transfer_gap(
                ~self.wrong(run, "test", run.source, rows), ~unseen
            )
        return table

    def curves(
        self,
        levels: Sequence[float] = LEVELS,
        tolerance: float = TOLERANCE,
        *,
        n_resamples: int = 1000,
        n_splits: int = 100,
        seed: int = 0,
    ) -> pd.DataFrame:
        """IGAP by training error (Equation 5), over the steps, seeds and rates of each model.

        `transferability.igap_curve` for each ``model``, ``source`` and ``algorithm``, which become
        columns as ``task`` does; ``chance``: the gap at the level if all answers in the target are
        guesses. With the mean over targets as target "mean".
        """
        tables = []
        for names, runs in self._grouped():
            # no other model has a say in the curve, nor need it have been asked
            near = [
                np.flatnonzero(
                    np.any(
                        [
                            transferability.window(wrong.mean(axis=1), level, tolerance)
                            for level in levels
                        ],
                        axis=0,
                    )
                )
                for wrong in (self.wrong(run, "train", run.source) for run in runs)
            ]
            training, *translations = (
                np.concatenate(
                    [
                        self.wrong(run, "train", code or run.source, at)
                        for run, at in zip(runs, near, strict=True)
                    ]
                )
                for code in ("", *self._targets(runs[0]))
            )
            translated = dict(zip(self._targets(runs[0]), translations, strict=True))
            seeds = np.repeat([run.seed for run in runs], [len(at) for at in near])
            table = transferability.igap_curve(
                training, translated, seeds, levels, tolerance,
                n_resamples=n_resamples, n_splits=n_splits, seed=seed,
            )  # fmt: skip
            tables.append(table.assign(**names, chance=self.task.guess - table["level"].to_numpy()))
        found = pd.concat(tables, ignore_index=True)
        first = ["model", "task", "source", "target", "algorithm"]
        return found[[*first, *[name for name in found if name not in first]]]

    def directions(
        self,
        level: float = 0.0,
        tolerance: float = FITTED,
        *,
        n_resamples: int = 1000,
        n_splits: int = 100,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Test accuracy, IGAP and transfer gap of each direction (Figures 2, 4, 5 and 6).

        One row per ``model, task, source, target, algorithm``, source = target included:
        ``accuracy`` and ``transfer_gap`` of the last checkpoint, mean over seeds and rates (the
        paper does not say which checkpoint), NaN without a test set; ``igap`` at training error
        ``level`` with its interval and the other columns of `curves`, 0 of a language with itself.
        """
        curves = self.curves(
            [level], tolerance, n_resamples=n_resamples, n_splits=n_splits, seed=seed
        )
        rows = []
        for names, runs in self._grouped():
            for target in (*self._targets(runs[0]), runs[0].source):
                row = {**names, "target": target, "accuracy": np.nan, "transfer_gap": np.nan}
                if self.task.test:
                    right = {
                        code: np.mean([1 - self.wrong(r, "test", code, -1).mean() for r in runs])
                        for code in (target, runs[0].source)
                    }
                    row["accuracy"] = right[target]
                    row["transfer_gap"] = right[runs[0].source] - right[target]
                rows.append(row)
        keys = ["model", "task", "source", "target", "algorithm"]
        found = pd.DataFrame(rows).merge(curves, on=keys, how="left")
        same = found["source"] == found["target"]
        found.loc[same, ["igap", "low", "high", "crossfitted"]] = 0.0
        return found[[*keys, "accuracy", "transfer_gap", *curves.columns[len(keys) :]]]

    def last_wrong(self, part: str = "test") -> dict[tuple[str, str], np.ndarray]:
        """(source, target) → wrong answers of the last checkpoints, bool ``(n_runs, n)``.

        What `transferability.gold_scores` takes; the runs must be of one model and algorithm.
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

    def only(self, **kept: object) -> "Transfers":
        """The runs with these attributes, such as ``model="mini-xlmr"``."""
        runs = tuple(run for run in self.runs if all(getattr(run, k) == v for k, v in kept.items()))
        if not runs:
            raise ValueError(f"there is no run with {kept}")
        return Transfers(self.task, runs)

    def _names(self, run: Run) -> dict[str, str]:
        return {
            "model": run.model,
            "task": self.task.name,
            "source": run.source,
            "algorithm": run.algorithm,
        }

    def _targets(self, run: Run) -> list[str]:
        return [code for code in self.task.languages if code != run.source]

    def _grouped(self) -> Iterator[tuple[dict[str, str], list[Run]]]:
        """The runs that make up one A(θ₀): of one model, source and algorithm."""
        groups: dict[tuple, list[Run]] = {}
        for run in self.runs:
            groups.setdefault((run.model, run.source, run.algorithm), []).append(run)
        for runs in groups.values():
            yield self._names(runs[0]), runs


def transfer(
    names: Sequence[str],
    task: Task,
    sources: Sequence[str],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    *,
    more: Examples | None = None,
    sparing: Sparing | None = None,
) -> Transfers:
    """Fine-tune every model in every source by every recipe and seed; predict in all languages.

    `transfer_each` does this for several tasks at once.

    Parameters
    ----------
    names : sequence of str
        Models, for `models.load`.
    sources : sequence of str
        Among the languages of the task.
    recipes, seeds : sequence
        Together they span A(θ₀), the set of fine-tuned models that IGAP is the minimum over;
        recipes that differ in the algorithm are kept apart.
    more : Examples, optional
        Further examples of the source language to train on, which have no translations: the paper
        adds MultiNLI to XNLI (Table 9). The training error stays that of the task's training set.
    sparing : Sparing, optional
        Its ``windows`` and ``every``: the training set of the source is asked at every checkpoint,
        its translations only near the training errors of the windows, the test sets only after
        ``every`` steps and the last. None: everything at every checkpoint.

    Raises
    ------
    ValueError
        A source that the task does not have, ``more`` for several sources or with other classes;
        as `finetuning.finetune`.
    """
    return transfer_each(names, [task], sources, recipes, seeds, more=more, sparing=sparing)[0]


def transfer_each(
    names: Sequence[str],
    tasks: Sequence[Task],
    sources: Sequence[str],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    *,
    more: Examples | None = None,
    sparing: Sparing | None = None,
) -> list[Transfers]:
    """`transfer` of several tasks, such as one with its labels corrupted at several ratios.

    All runs of all tasks go side by side, where one task after another would leave a CPU idle.
    Parameters and errors as there; one `Transfers` a task.
    """
    names, sources, recipes, seeds = (
        checks.several(values, what, once=True)
        for values, what in (
            (names, "models"), (sources, "sources"), (recipes, "recipes"), (seeds, "seeds")
        )
    )  # fmt: skip
    jobs = [_jobs(names, task, sources, recipes, seeds, more, sparing) for task in tasks]
    runs = iter(finetune_all([job for own in jobs for job in own]))
    return [
        Transfers(task, tuple(islice(runs, len(own))))
        for task, own in zip(tasks, jobs, strict=True)
    ]


def _jobs(
    names: Sequence[str],
    task: Task,
    sources: Sequence[str],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    more: Examples | None,
    sparing: Sparing | None,
) -> list[Job]:
    for source in sources:
        if source not in task.train:
            raise ValueError(
                f"the task {task.name} has no {source}: it has {', '.join(task.languages)}"
            )
    if more is not None:
        if list(sources) != [more.language]:
            raise ValueError(
                f"{more.name} is in {more.language}: it can be added for that source alone"
            )
        if more.classes != task.train[more.language].classes:
            raise ValueError(f"{more.name} has other classes than {task.name}")
    evaluations = {
        f"{part} {code}": sets
        for part, by_language in (("train", task.train), ("test", task.test))
        for code, sets in by_language.items()
    }
    return [
        Job(
            name,
            task.train[source] if more is None else examples.joined(task.train[source], more),
            evaluations,
            recipe,
            seed,
            sparing and _of_source(sparing, source, task),
        )
        for name in names
        for source in sources
        for recipe in recipes
        for seed in seeds
    ]


def _of_source(sparing: Sparing, source: str, task: Task) -> Sparing:
    """Which sets decide and are spared, of a run that is fine-tuned in one language."""
    others = tuple(f"train {code}" for code in task.languages if code != source)
    return replace(sparing, decides=f"train {source}", inside=others)


def memorisation(
    name: str,
    task: Task,
    source: str,
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    ratios: Sequence[float],
    *,
    corruption_seed: int = 1,
    tolerance: float = FITTED,
    sparing: Sparing | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What crosses of labels of which a share is random (section 5.4, Figure 3).

    Fine-tuned in the source with its labels corrupted at each of the ``ratios``, alike in all
    languages, the model is asked the translations; "right" is the label that it was trained with.

    Returns
    -------
    drawn : DataFrame
        ``ratio``; ``quantity``: "accuracy" on the translations at the last checkpoint, or "IGAP" at
        E' = 0; ``target``, None for the mean over them; ``value``; ``low`` and ``high``, the 95 %
        interval over examples; ``chance``. What `igap_plots.memorisation` draws.
    told : DataFrame
        By ``ratio``, shares: how many labels ``changed`` (a number); at the last checkpoints the
        ``training error``, the ``accuracy`` on translations, the same ``of changed`` labels and
        ``of the others``, and on the ``test`` sets of the targets against true labels; the
        ``IGAP``; the gap of ``shared subwords`` without a model.
    """
    targets = [code for code in task.languages if code != source]
    corrupted = [task.corrupted(ratio, corruption_seed) for ratio in ratios]
    found = transfer_each([name], corrupted, [source], recipes, seeds, sparing=sparing)
    drawn, told = [], []
    for ratio, here in zip(ratios, found, strict=True):
        cell = here.directions(0.0, tolerance, n_resamples=n_resamples, seed=seed)
        curve = here.curves([0.0], tolerance, n_resamples=n_resamples, seed=seed)
        strings = shared_subwords(name, here.task, max_length=recipes[0].max_length)
        changed = here.task.train[source].labels != task.train[source].labels
        right = {
            code: np.mean([~here.wrong(run, "train", code, -1) for run in here.runs], axis=0)
            for code in task.languages
        }
        crossed = np.mean([right[code] for code in targets], axis=0)
        told.append(
            {
                "ratio": ratio,
                "changed": changed.sum(),
                "training error": 1 - right[source].mean(),
                "accuracy": crossed.mean(),
                "of changed": crossed[changed].mean() if changed.any() else np.nan,
                "of the others": crossed[~changed].mean(),
                "test": cell.loc[cell["target"].isin(targets), "accuracy"].mean(),
                "IGAP": curve.loc[curve["target"] == transferability.MEAN, "igap"].item(),
                "shared subwords": strings.loc[strings["source"] == source, "interlingual"].mean(),
            }
        )
        for target, value, low, high in curve[["target", "igap", "low", "high"]].to_numpy():
            drawn.append((ratio, "IGAP", target, value, low, high, task.guess))
        noise = np.random.default_rng(seed).integers(0, len(crossed), (n_resamples, len(crossed)))
        low, high = np.quantile(crossed[noise].mean(axis=1), [0.025, 0.975])
        mean = transferability.MEAN
        drawn.append((ratio, "accuracy", mean, crossed.mean(), low, high, 1 - task.guess))
        drawn += [
            (ratio, "accuracy", code, right[code].mean(), np.nan, np.nan, 1 - task.guess)
            for code in targets
        ]
    columns = ["ratio", "quantity", "target", "value", "low", "high", "chance"]
    drawn = pd.DataFrame(drawn, columns=columns).replace({"target": {transferability.MEAN: None}})
    return drawn, pd.DataFrame(told).set_index("ratio")


def predictors(
    name: str, corpus: ParallelCorpus, *, layer: int | None = None, max_length: int | None = None
) -> tuple[pd.DataFrame, int]:
    """What frozen states say of every transfer direction, without any fine-tuning (section 4.2).

    States are means over the tokens of a sentence at one layer; None: the one with the best
    retrieval (the paper takes 7 of 12). The paper's L2 distance, dot product and cosine; retrieval;
    this compendium's LD, MD and MEXA, each the same in both directions of a pair; and the cosine of
    bags of subwords, which needs the tokenizer alone.

    Returns
    -------
    DataFrame
        ``metric`` (of `METRICS`), ``source``, ``target``, ``score``, high is good: L2 and LD have a
        minus sign. And the layer.

    Raises
    ------
    ValueError
        As `embeddings.embed_corpus` and `alignment.directions`.
    """
    about = embeddings.corpus_about(name, corpus, max_length=max_length) | {"layer": layer}
    table = work.result(PREDICTORS, about, name, corpus, layer, max_length)
    return table.drop(columns="layer"), int(table["layer"].iloc[0])


def _predictors(
    name: str, corpus: ParallelCorpus, layer: int | None, max_length: int | None
) -> pd.DataFrame:
    """The table of `predictors`, with a column ``layer``."""
    encoder = models.load(name)
    with bfloat16.products(encoder.device) if current().dtype == "bfloat16" else nullcontext():
        whole = embeddings.embed_corpus(encoder, corpus, pooling="mean", max_length=max_length)
    states = whole.states
    if layer is None:
        layer = alignment.best_aligned_layer(states)
    tables = [alignment.directions(states, layers=[layer]).rename(columns={"value": "score"})]
    pairs = abx.pair_scores(abx.exact(states, layers=[layer]).table())
    pairs = pairs[pairs["task"].isin(["LD", "MD"])].rename(columns={"task": "metric"})
    both = [("language_1", "language_2"), ("language_2", "language_1")]
    for source, target in both:
        tables.append(pairs.rename(columns={source: "source", target: "target"}))
    for source in corpus.languages:
        found = mexa.scores(states, source, layers=[layer]).table()
        tables.append(
            found.rename(columns={"language": "target", "mu": "score"}).assign(
                metric="MEXA", source=source
            )
        )
    bags = embeddings.bag_of_subwords(encoder, corpus, max_length=max_length)
    for source, target in [(a, b) for a in bags for b in bags if a != b]:
        one, other = bags[source], bags[target]
        product = np.asarray(one.multiply(other).sum(axis=1)).ravel()
        size = np.sqrt(
            np.asarray(one.multiply(one).sum(axis=1)).ravel()
            * np.asarray(other.multiply(other).sum(axis=1)).ravel()
        )
        row = {"metric": "bag of subwords", "source": source, "target": target}
        tables.append(pd.DataFrame([row | {"score": float((product / size).mean())}]))
    columns = ["metric", "source", "target", "score"]
    table = pd.concat([one[columns] for one in tables], ignore_index=True)
    table["score"] *= table["metric"].map(METRICS)
    order = {metric: i for i, metric in enumerate(METRICS)}
    table = table.sort_values("metric", key=lambda m: m.map(order), kind="stable")
    return table.reset_index(drop=True).assign(layer=layer)


def _relative(stored: work.Value, computed: work.Value) -> float:
    """The largest difference of two scores, as a share of those above 1."""
    if not stored.drop(columns="score").equals(computed.drop(columns="score")):
        return np.inf
    return float(
        ((stored["score"] - computed["score"]).abs() / stored["score"].abs().clip(lower=1)).max()
    )


#: In bfloat16 a similarity has two digits and a half, and a neighbour may change.
PREDICTORS = work.Kind("predictors", _predictors, version=1, tolerance=0.03, difference=_relative)


def shared_subwords(name: str, task: Task, *, max_length: int | None = None) -> pd.DataFrame:
    """How far the labels of a training set cross by the strings that translations share.

    Nothing is learnt: a translated example gets the label of that training example of the source
    language with which it has most subwords in common (cosine of the counts, the two texts of a
    pair counted apart; the first of several as near). Names, numbers and signs alone do that much,
    so it is what a gap must be below to speak of more than shared strings.

    Parameters
    ----------
    name : str
        A model, for its tokenizer.
    task : Task
        Its training set alone is looked at.
    max_length : int, optional
        Subwords of a text; None: what the model takes.

    Returns
    -------
    DataFrame
        One row per ``source`` and other ``target``: ``found``, the share of translations whose
        nearest training example is their own; ``interlingual``, the share with a wrong label less
        that of the training set itself (0 but where two examples have the same bag): Equation 4.
    """
    about = {
        "model": models.fingerprint(name),
        "train": [[code, one.text_hash()] for code, one in task.train.items()],
        "max_length": max_length,
    }
    return work.result(SHARED, about, name, task.train, max_length)


def _shared_subwords(name: str, train: dict[str, Examples], max_length: int | None) -> pd.DataFrame:
    encoder = models.load(name)
    first = next(iter(train.values()))
    sides = ("first",) if first.second is None else ("first", "second")
    empty = ("",) * len(first)
    bags = {code: [] for code in train}
    for side in sides:
        texts = {code: getattr(one, side) for code, one in train.items()}
        corpus = ParallelCorpus(side, texts, first.ids, empty, "", "")
        counted = embeddings.bag_of_subwords(encoder, corpus, max_length=max_length)
        for code, bag in counted.items():
            bags[code].append(bag)
    joined = {code: sparse.hstack(both).tocsr() for code, both in bags.items()}
    sizes = {code: np.sqrt(bag.multiply(bag).sum(axis=1)) for code, bag in joined.items()}
    rows = []
    for source in train:
        wrong, own = {}, {}
        for target in train:
            # the size of a translation moves no maximum; that of a training example does
            shared = (joined[target] @ joined[source].T).toarray() / sizes[source]
            nearest = shared.argmax(axis=1)
            own[target] = (nearest == np.arange(len(first))).mean()
            wrong[target] = (first.labels[nearest] != first.labels).mean()
        rows += [
            (source, target, own[target], wrong[target] - wrong[source])
            for target in train
            if target != source
        ]
    return pd.DataFrame(rows, columns=["source", "target", "found", "interlingual"])


SHARED = work.Kind("shared_subwords", _shared_subwords, version=1)


def igap_predictor(found: Transfers, level: float = 0.0, tolerance: float = FITTED) -> pd.DataFrame:
    """IGAP as a predictor of directions, for `transferability.rank_directions`: high is good."""
    table = found.directions(level, tolerance, n_resamples=1, n_splits=1)
    table = table[table["source"] != table["target"]]
    return table.assign(metric="IGAP", score=-table["igap"])[
        ["metric", "source", "target", "score"]
    ].reset_index(drop=True)


def other_sources(gold: pd.DataFrame) -> pd.DataFrame:
    """The mean gold score of a target over all other sources, as a predictor.

    What can be known of a direction by the target alone; it needs labels in the target language, so
    it is no rival of a metric but says how much of the task is about directions at all.
    """
    rows = []
    for source, target in gold[["source", "target"]].itertuples(index=False):
        others = gold[(gold["target"] == target) & (gold["source"] != source)]
        others = others[others["source"] != target]
        rows.append(("other sources", source, target, others["score"].mean()))
    return pd.DataFrame(rows, columns=["metric", "source", "target", "score"])
