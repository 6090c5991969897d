"""X-Probe's small encoders before its tasks, and tasks of one size in several languages.

What reads Transformers, or any function of sentences, is `xlx.experiment.sentence_probes`.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from shared.xprobe_tables import CELL_KEYS
from xlx.experiment.sentence_probes import dealt_labels
from xlx.measures import probes, sentence_tasks
from xlx.measures.sentence_tasks import SIZES, TASK_PARTS, Candidates, ProbingTask, Rules
from xlx.results import checks, work
from xlx.results.executors import one_thread
from xlx.text.trees import Trees
from xprobe import encoders
from xprobe.encoders import Recipe, Sentences
from xprobe.word_spaces import Lookup

#: Units of the probe's hidden layer, and what they apply (Table 2).
HIDDEN, ACTIVATION = 150, "sigmoid"
#: Fields of `probes.Fitting` as the paper has them (section 5.3, Table 2): Adam with a fixed step,
#: neither decay nor standardising. It does not say when training ends: as here, by validation.
PAPERS_PROBE = {
    "learning_rate": 1e-3,
    "batch_size": 10,
    "anneal": 1.0,
    "weight_decay": 0.0,
    "standardise": False,
}

#: Sentences whose trees stay in memory between counting what is usable and drawing from it.
_IN_MEMORY = 100_000


@dataclass(frozen=True)
class Subject:
    """One of the six encoders, by its recipe, over the words of a lookup; without it their mean."""

    lookup: Lookup
    language: str  # any name that the tasks of `probe` go by
    condition: str = "not trained"
    recipe: Recipe | None = None

    @property
    def names(self) -> tuple[str, str, str]:
        """Encoder, condition and language, as tables have them: "RNN (maxpool)", "mapped", "de"."""
        known = self.recipe and encoders.ENCODER_NAMES[self.recipe.name]
        return known or "mean of words", self.condition, self.language

    @property
    def about(self) -> dict[str, Any]:
        """All that decides its vectors, but for the sentences: results are found by it."""
        if self.recipe is None:
            return {"mean": self.lookup.ask}
        return {"encoder": self.recipe.ask, "lookup": self.lookup.ask}


@dataclass(frozen=True)
class Draws:
    """How often a task is drawn: until ``n_test`` sentences are tested on, ``most`` times at most.

    The first with ``seed``, each other with the next.
    """

    n_test: int = 0
    most: int = 1
    seed: int = 0


def alike(
    trees: Mapping[str, Sequence[Trees]],
    names: Sequence[str] = sentence_tasks.PROBING_TASKS,
    *,
    most: int = sum(SIZES),
    least: int = 0,
    proportions: tuple[int, int, int] = SIZES,
    draws: Draws = Draws(),
    rules: Rules | None = None,
) -> tuple[dict[str, list[ProbingTask]], pd.DataFrame]:
    """Tasks of one size in all languages, so that accuracies compare languages and not sizes.

    The size of a task (all parts together, in the ``proportions`` of train, validation and test) is
    the greatest that every language can have, ``most`` at most. A language that cannot have
    ``least`` does not have the task. Small tasks have several ``draws``, which may share sentences.
    ``trees`` and ``rules`` are as of `build`, and so are errors.

    Returns the tasks by language, the draws of one after another, and a table with one row per task
    and language: ``task``, ``language``, ``usable`` (the largest size that the language could
    have), ``train``, ``validation``, ``test``, ``draws``; zeros where a language has not the task.
    """
    usable, in_memory, n_sentences = {}, {}, 0
    for code in trees:
        candidates = [*_candidates(trees, code, names, rules)]
        usable[code] = {name: there.largest for name, there in candidates}
        n_sentences += len(candidates[0][1].pool.trees) if candidates else 0
        if n_sentences <= _IN_MEMORY:
            in_memory[code] = candidates
    sizes, times, rows = {}, {}, []
    for name in names:
        totals = {code: ours.get(name, 0) for code, ours in usable.items()}
        able = [code for code, total in totals.items() if total >= max(least, 1)]
        if not able:
            raise sentence_tasks.TooFewSentencesError(
                f"{name}: {max(least, 1)} sentences are needed, and no language has more than "
                f"{max(totals.values())}; lower `least`, change the rules or add text"
            )
        fewest = min(most, *(totals[code] for code in able))
        sizes[name] = sentence_tasks.sizes_of(fewest, proportions)
        n = min(draws.most, max(1, -(-draws.n_test // sizes[name][2])))
        times |= {(code, name): n for code in able}
    tasks = {
        code: [
            sentence_tasks.drawn(name, ours, sizes[name], draws.seed + i)
            for name, ours in in_memory.get(code) or _candidates(trees, code, names, rules)
            for i in range(times.get((code, name), 0))
        ]
        for code in trees
    }
    for name, code in itertools.product(names, trees):
        n, ours = times.get((code, name), 0), [task for task in tasks[code] if task.name == name]
        parts = [len(part) for task in ours[:1] for part in task.parts().values()]
        rows.append((name, code, usable[code].get(name, 0), *(parts or (0, 0, 0)), n))
    return tasks, pd.DataFrame(rows, columns=["task", "language", "usable", *TASK_PARTS, "draws"])


def _candidates(
    trees: Mapping[str, Sequence[Trees]], language: str, names: Sequence[str], rules: Rules | None
) -> Iterator[tuple[str, Candidates]]:
    """What is usable for the tasks in a language, whose trees are let go behind the last one."""
    pool = sentence_tasks.Pool.from_trees(trees[language])
    for name in names:
        with suppress(sentence_tasks.TooFewSentencesError):  # not even its classes are there
            yield name, Candidates.from_trees(name, pool, rules or Rules())


def probe(
    subjects: Sequence[Subject],
    tasks: Mapping[str, Sequence[ProbingTask]],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    order: int = 0,
    control: bool = True,
    **options: Any,
) -> pd.DataFrame:
    """Accuracy of every encoder on every task of its language; none is trained for what is known.

    ``tasks`` has, by language (as the subjects name it), its tasks, maybe in several draws.
    ``control`` adds the control task, at twice the cost; ``order`` also draws its labels.
    ``seeds``, ``order`` and ``options`` are fields of `probes.Fitting`.

    Returns a row per subject, task, draw of it and seed: `CELL_KEYS`, ``draw`` (from 0), ``seed``,
    ``n_train``, ``n_test``, ``n_distinct`` (sentences that some draw tests on, by their base),
    ``classes``, ``accuracy``, ``majority`` and, with ``control``, ``control_accuracy`` and
    ``selectivity``; accuracies in [0, 1]. ValueError for a subject whose language has no tasks, two
    subjects of one name, and as `probes.fit`.
    """
    subjects = checks.several(subjects, "subjects")
    if lost := sorted({each.language for each in subjects} - set(tasks)):
        raise ValueError(f"there are no tasks in {lost[0]}, but {', '.join(tasks) or 'in none'}")
    names = Counter(each.names for each in subjects)
    if max(names.values()) > 1:
        raise ValueError(f"two encoders are called {', '.join(names.most_common(1)[0][0])}")
    fitting = {"hidden": HIDDEN, "activation": ACTIVATION, "seeds": list(seeds), "order": order}
    fitting |= options
    cells = [(subject, task) for subject in subjects for task in tasks[subject.language]]
    hashes = {id(task): task.text_hash() for each in tasks.values() for task in each}
    more = {"control": control, "probe": fitting}
    abouts = [{"encoder": each.about, "task": hashes[id(task)]} | more for each, task in cells]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        by_subject: dict[Subject, list[int]] = {}
        for place in missing:
            by_subject.setdefault(cells[place][0], []).append(place)
        encoders.trained([x.recipe for x in by_subject if x.recipe and x.recipe.making])
        # Encoders of a language one after another, as they read the same words.
        for subject in sorted(by_subject, key=lambda ours: ours.language):
            recipe, places = subject.recipe, by_subject[subject]
            ours = tuple(cells[place][1] for place in places)
            net = recipe and (recipe.name, recipe.sizes, recipe.state())
            yield places, (net, _in_words(subject.lookup, ours), ours, control, fitting)

    tables, rows = work.results(CELLS, abouts, calls, what="probes"), []
    for (subject, task), table in zip(cells, tables, strict=True):
        same = [each for each in tasks[subject.language] if each.name == task.name]
        named = dict(zip(CELL_KEYS, (*subject.names, task.name), strict=True))
        named["draw"] = next(i for i, each in enumerate(same) if each is task)
        tested = {base for each in same for base in each.test.bases}
        rows.append(table.assign(**named, n_distinct=len(tested)))
    return pd.concat(rows, ignore_index=True)


def _distinct(tasks: Sequence[ProbingTask]) -> list[tuple[str, ...]]:
    """The sentences of some tasks, each once."""
    parts = [part for task in tasks for part in task.parts().values()]
    return list(dict.fromkeys(tokens for part in parts for tokens in part.tokens))


@lru_cache(maxsize=16)  # encoders of a language read the same
def _in_words(lookup: Lookup, tasks: tuple[ProbingTask, ...]) -> Sentences:
    return Sentences.of(_distinct(tasks), lookup)


def _probed(
    net: tuple | None,
    sentences: Sentences,
    tasks: Sequence[ProbingTask],
    control: bool,
    options: Mapping[str, Any],
) -> list[pd.DataFrame]:
    """A table, one row per seed, per task of an encoder; those of as many classes at once."""
    place = {tokens: row for row, tokens in enumerate(_distinct(tasks))}
    vectors = encoders.encode(*net, sentences) if net else encoders.mean_vectors(sentences)
    tables: dict[int, pd.DataFrame] = {}
    for n_classes in {len(task.classes) for task in tasks}:
        alike = [i for i, task in enumerate(tasks) if len(task.classes) == n_classes]
        states = {
            name: [vectors[None, [place[x] for x in tasks[i].parts()[name].tokens]] for i in alike]
            for name in TASK_PARTS
        }

        def evaluated(labels, states=states, n=n_classes) -> pd.DataFrame:
            splits = (
                probes.stacked(states[x], [by_part[x] for by_part in labels]) for x in TASK_PARTS
            )
            return probes.evaluate_probes(*splits, n, **options)

        with one_thread():
            by_part = [{x: part.labels for x, part in tasks[i].parts().items()} for i in alike]
            table = evaluated(by_part).drop(columns=["epoch", "validation_loss"])
            if control:
                dealt = evaluated([dealt_labels(tasks[i], options["order"]) for i in alike])
                table["control_accuracy"] = dealt["accuracy"]
                table["selectivity"] = table["accuracy"] - dealt["accuracy"]
        by_task = table.assign(classes=n_classes).groupby("group")
        tables |= {
            alike[row]: by_part.drop(columns="group").reset_index(drop=True)
            for row, by_part in by_task
        }
    return [tables[i] for i in range(len(tasks))]


def _cells_apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """How far two cells' accuracies are apart, in standard errors of such a difference.

    Those of encoders trained on two processors were 2.8 apart at most in 2,024 cells: as far as
    other test sentences would make them.
    """
    fixed = ["seed", "n_train", "n_test", "majority", "classes"]
    if set(stored) != set(computed) or not stored[fixed].equals(computed[fixed]):
        return np.inf
    shares = [name for name in ("accuracy", "control_accuracy") if name in stored]
    apart = (stored[shares] - computed[shares]).abs().max(axis=1)
    return float((apart / np.sqrt(0.5 / stored["n_test"])).max())


CELLS = work.Kind(
    "xprobe-cells",
    _probed,
    version=1,
    tolerance=4.0,
    difference=_cells_apart,
    side_by_side=True,
    shared_seconds=120.0,  # word vectors, the encoder and its mapping
)


def common_tasks(
    tasks: Mapping[str, Sequence[ProbingTask]], languages: Sequence[str]
) -> dict[str, list[ProbingTask]]:
    """The tasks that these languages have: the others have nothing to compare with."""
    names = set.intersection(*({task.name for task in tasks[code]} for code in languages))
    return {code: [task for task in ours if task.name in names] for code, ours in tasks.items()}
