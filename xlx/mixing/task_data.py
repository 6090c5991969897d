"""What the within/across experiments learn from and ask: pairs and questions, by parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from xlx.mixing.grids import PARTS
from xlx.mixing.published import CLASSES, PrintedScores, class_points
from xlx.mixing.within_across import OVERALL
from xlx.text import corpora, examples, labelled, parallel_sets, questions, sameness
from xlx.text.examples import Examples
from xlx.text.questions import Questions

#: Tasks as tables call them.
TASK_NAMES = {"NLI": "XNLI", "PI": "PAWS-X", "same": "same or other", "QA": "XQuAD"}


@dataclass(frozen=True, eq=False)
class TaskData:
    """What is learnt, held out and asked: ``sets`` by language, parallel.

    ``name`` is that of the held-out set in a job. ``left_out``: reason → examples left out.
    """

    train: Examples | Questions
    held_out: Examples | Questions
    sets: Mapping[str, Any]
    left_out: Mapping[str, int]
    name: str = "validation"

    @property
    def gold(self) -> Examples | Questions:
        """The set of the first language."""
        return next(iter(self.sets.values()))

    @property
    def guess(self) -> float:
        """The share of the commonest label in the sets."""
        return commonest_share(self.gold)

    def described(self) -> pd.Series:
        """Sizes, classes and what was left out."""
        rows: dict[str, Any] = {"to learn": len(self.train), "held out": len(self.held_out)}
        rows |= {"to test": len(self.gold), "languages": len(self.sets)}
        if isinstance(self.gold, Questions):
            rows["paragraphs"] = len(set(self.gold.contexts))
        else:
            for what, part in (("to learn", self.train), ("to test", self.gold)):
                rows |= {f"{what}, {x}": n for x, n in examples.class_counts(part).items()}
            rows |= {"first texts": len(set(self.gold.first))}
            rows |= {"always the commonest label": f"{self.guess:.1%}"}
        return pd.Series(rows | {f"left out: {why}": n for why, n in self.left_out.items()})


def commonest_share(gold: Examples) -> float:
    """The share of the commonest label."""
    return max(examples.class_counts(gold).values()) / len(gold)


def pair_data(
    task: str, languages: Sequence[str], source: str, n_train: int | None, n_test: int | None, *,
    train_source: str | None = None, train_data: str | None = None, test_data: str | None = None,
    split: str = "test",
) -> TaskData:  # fmt: skip
    """Pairs of a task ("NLI", "PI"): the shortest ``n_train`` of ``source``, ``n_test`` to ask."""
    sets, left_out = labelled.parallel_examples(task, languages, split, n_test, path=test_data)
    origin = {"source": train_source, "path": train_data}
    train = labelled.parallel_examples(task, [source], "train", n_train, **origin)[0][source]
    held_out = labelled.parallel_examples(task, [source], "validation", path=test_data)[0][source]
    return TaskData(train, held_out, sets, left_out)


def question_data(
    languages: Sequence[str], source: str, n_train: int | None, n_test: int | None, *,
    train_source: str, per_context: int | None = None, train_data: str | None = None,
    test_data: str | None = None,
) -> TaskData:  # fmt: skip
    """Questions with the shortest contexts, to learn in ``source`` and to ask of XQuAD."""
    sets, lacking = questions.parallel_questions(
        "xquad", languages, "test", n_test, per_context=per_context, path=test_data
    )
    learnt = questions.parallel_questions(train_source, [source], "train", n_train, path=train_data)
    held_out = questions.load_questions(train_source, source, "validation", path=train_data)
    when_read = pd.DataFrame({code: part.left_out for code, part in sets.items()}).sum(axis=1)
    left_out = {"lacking in a language": sum(lacking.values())} | when_read.to_dict()
    return TaskData(learnt[0][source], held_out, sets, left_out)


def same_or_other_data(
    corpus: str, languages: Sequence[str], source: str, n_train: int, n_test: int, seed: int, *,
    alike: bool,
) -> TaskData:  # fmt: skip
    """Pairs of which the second is the same sentence or another one (drawn ``alike``)."""
    parallel = corpora.load(corpus, drop_duplicates=True).select(languages)
    train, sets = sameness.same_or_other_parts(parallel, source, n_train, n_test, seed, alike=alike)
    return TaskData(train[source], sets[source], sets, {}, name=source)


def worked_pairs(
    sets: Mapping[str, Examples],
    cells: Sequence[tuple[str, str]],
    rows: int | Sequence[int] = 0,
    parts: Sequence[str] = ("first", "second"),
) -> pd.DataFrame:
    """An example as it stands in some cells (language of each part): a row a cell, in full."""
    of = [rows] * len(cells) if isinstance(rows, int) else rows
    gold = next(iter(sets.values()))
    shown = [
        (f"{a}-{b}", sets[a].first[k], sets[b].second[k], gold.classes[gold.labels[k]])
        for (a, b), k in zip(cells, of, strict=True)
    ]
    return pd.DataFrame(shown, columns=["cell", *parts, "label"]).set_index("cell")


def worked_questions(
    sets: Mapping[str, Questions], cells: Sequence[tuple[str, str]], longest: int = 90
) -> pd.DataFrame:
    """The first question in some cells, with the beginning of its context."""
    rows = {
        f"{a}-{b}": (f"{sets[a].contexts[0][:longest]} …", sets[b].questions[0],
                     sets[a].answers[0][0].text)
        for a, b in cells
    }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, "index", columns=[*PARTS["QA"], "answer"])
    return table.rename_axis("cell")


def control_data(
    languages: Mapping[str, Sequence[str]], source: str, n_train: Mapping[str, int | None],
    n_test: Mapping[str, int | None], *, train_sources: Mapping[str, str],
    train_data: Mapping[str, str], test_data: Mapping[str, str], per_context: int | None,
    corpus: str, seed: int,
) -> dict[str, TaskData]:  # fmt: skip
    """The data of each task that ``languages`` names ("NLI", "PI", "same", "QA")."""
    data = {}
    for task, codes in languages.items():
        first = codes, source, n_train[task], n_test[task]
        folders = {"train_data": train_data.get(task), "test_data": test_data.get(task)}
        folders["train_source"] = train_sources.get(task)
        if task == "QA":
            data[task] = question_data(*first, per_context=per_context, **folders)
        elif task == "same":
            data[task] = same_or_other_data(corpus, *first, seed, alike=False)
        else:
            data[task] = pair_data(task, *first, **folders)
    return data


def mixed_pairs(
    pairs: Sequence[str], languages: Sequence[str], n_train: int | None, n_test: int | None, *,
    train_source: str | None, train_data: str | None, test_data: str | None,
) -> tuple[dict[str, Examples], dict[str, Examples]]:  # fmt: skip
    """Pairs of inference to learn, by languages of premise and hypothesis ("en-de"), and to ask."""
    codes = {pair: pair.split("-") for pair in pairs}
    taught = list(dict.fromkeys(code for pair in codes.values() for code in pair))
    origin = {"source": train_source, "path": train_data}
    train, _ = labelled.parallel_examples("NLI", taught, "train", n_train, **origin)
    sets, _ = labelled.parallel_examples("NLI", languages, "test", n_test, path=test_data)
    return {pair: parallel_sets.crossed(train[a], train[b]) for pair, (a, b) in codes.items()}, sets


def mixed_sizes(learnt: Mapping[str, Examples], sets: Mapping[str, Examples]) -> pd.Series:
    """How many pairs of each kind are learnt and asked."""
    gold = next(iter(sets.values()))
    rows = {f"to learn, {pair}": len(part) for pair, part in learnt.items()}
    rows |= {"to test": len(gold), "languages": len(sets)}
    return pd.Series(rows | {f"to test, {x}": n for x, n in examples.class_counts(gold).items()})


def printed_by_class(languages: Sequence[str], classes: Sequence[str]) -> pd.DataFrame:
    """Tables 6, 12 and 13 of the paper: means over some languages, by the names of our classes."""
    paper = class_points(PrintedScores(), "PI")
    paper["label"] = paper["label"].map(dict(zip(CLASSES["PI"], classes[::-1], strict=True)))
    paper = paper[paper["language"].isin(languages)]
    means = paper.groupby(["model", "setting", "label"], sort=False)["score"].mean()
    return means.reset_index().assign(language=OVERALL)
