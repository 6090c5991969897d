"""X-Probe's small encoders before its tasks, and tasks of one size in several languages.

One of the six encoders of `xprobe.encoders` by its recipe, or the mean of word vectors. What reads
Transformers, or any function of sentences, is `xlx.experiment.sentence_probes`.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn.utils.rnn import pad_sequence

from xlx.experiment.sentence_probes import dealt_labels
from xlx.measures import probes, sentence_tasks, statistics
from xlx.measures.sentence_tasks import (
    SIZES,
    TASK_PARTS,
    Candidates,
    ProbingTask,
    Rules,
    TaskPart,
    Tokens,
)
from xlx.results import checks, paths, work
from xlx.results.executors import one_thread
from xlx.text.trees import Trees, load_trees
from xprobe import encoders
from xprobe.encoders import Recipe, Sentences, mean_vectors
from xprobe.word_spaces import Lookup

#: Tokenised sentences → vectors ``(n, dim)``.
Encode = Callable[[Sequence[Tokens]], np.ndarray]


@dataclass(frozen=True)
class Subject:
    """An encoder of the sentences of a language.

    Tables name it by ``encoder`` ("RNN (maxpool)"), ``condition`` ("mapped") and ``language``,
    which may be any name that the tasks of `probe` go by. ``about`` is all that decides its
    vectors, but for the sentences: text, numbers and asks. Results are found by it, so two encoders
    need two. ``ready`` makes of some tasks what encodes
    their sentences, tokenised, as vectors ``(n, dim)``; it is called only where something is to be
    computed, and what it gives may run in another process. One of the six encoders has a
    ``recipe``: what is trained beforehand, side by side.
    """

    encoder: str
    condition: str
    language: str
    about: Mapping[str, Any]
    ready: Callable[[Sequence[ProbingTask]], Encode] = field(repr=False)
    recipe: Recipe | None = field(default=None, repr=False)


# --- encoders -------------------------------------------------------------------------------------


def of_encoder(recipe: Recipe, lookup: Lookup, language: str, condition: str) -> Subject:
    """One of `encoders.ENCODERS`, by its recipe, over the words of a lookup."""

    def ready(tasks: Sequence[ProbingTask]) -> Encode:
        own = partial(encoders.encode, recipe.name, recipe.sizes, recipe.state())
        return partial(_in_words, own, word_table(lookup, *tasks))

    about = {"encoder": recipe.ask, "lookup": lookup.ask}
    return Subject(encoders.ENCODER_NAMES[recipe.name], condition, language, about, ready, recipe)


def of_mean(lookup: Lookup, language: str) -> Subject:
    """The mean of a sentence's word vectors: an encoder that knows no order and is not trained."""

    def ready(tasks: Sequence[ProbingTask]) -> Encode:
        return partial(_in_words, mean_vectors, word_table(lookup, *tasks))

    return Subject("mean of words", "not trained", language, {"mean": lookup.ask}, ready)


def _in_words(
    encode: Callable[[Sentences], np.ndarray], lookup: Callable[[Sequence[str]], np.ndarray],
    sentences: Sequence[Tokens],
) -> np.ndarray:  # fmt: skip
    return encode(Sentences.of(sentences, lookup))


@lru_cache(maxsize=16)  # encoders of a language read the same
def word_table(lookup: Lookup, *tasks: ProbingTask) -> Callable[[Sequence[str]], np.ndarray]:
    """A lookup of the words that some tasks have: little to send to another process."""
    parts = [part for task in tasks for part in task.parts().values()]
    words = sorted({token for part in parts for tokens in part.tokens for token in tokens})
    return partial(_of_table, {word: row for row, word in enumerate(words)}, lookup(words))


def _of_table(place: Mapping[str, int], vectors: np.ndarray, words: Sequence[str]) -> np.ndarray:
    return vectors[[place[word] for word in words]]


# --- what knows nothing ---------------------------------------------------------------------------


def token_counts(texts: Sequence[str], language: str) -> np.ndarray:
    """The number of tokens, and nothing else: what a task gives away by length, ``(n, 1)``."""
    return np.array([[len(text.split())] for text in texts], dtype=np.float32)


def random_words(dim: int, seed: int, texts: Sequence[str], language: str) -> np.ndarray:
    """The mean of a random vector for each word, ``(n, dim)``: which words there are, no more.

    A bag of words folded into ``dim`` numbers, so that the probe of an encoder fits it (Wieting and
    Kiela 2019 use random vectors for the same end). A word's vector depends on the word and seed.
    """
    drawn = {
        word: np.random.default_rng([seed, zlib.crc32(word.encode())]).standard_normal(dim)
        for word in {word for text in texts for word in text.split()}
    }
    return np.array([np.mean([drawn[x] for x in text.split()], axis=0) for text in texts])


# --- tasks ----------------------------------------------------------------------------------------


def alike(
    trees: Mapping[str, Sequence[Trees]],
    names: Sequence[str] = sentence_tasks.PROBING_TASKS, *, most: int = sum(SIZES), least: int = 0,
    proportions: tuple[int, int, int] = SIZES, n_test: int = 0, max_draws: int = 1, seed: int = 0,
    rules: Rules | None = None,
) -> tuple[dict[str, list[ProbingTask]], pd.DataFrame]:  # fmt: skip
    """Tasks of one size in all languages, so that accuracies compare languages and not sizes.

    The size of a task (all parts together, in the ``proportions`` of train, validation and test) is
    the greatest that every language can have, ``most`` at most. A language that cannot have
    ``least`` does not have the task. A task with fewer test sentences than ``n_test`` is drawn
    again, with the next seeds, until there are so many in all draws or ``max_draws`` are done;
    draws are of one stock and may share sentences. ``trees`` and ``rules`` are as of `build`.

    Returns the tasks by language, the draws of one after another, and a table with a row a task and
    language: ``task``, ``language``, ``usable`` (the largest size that the language could have),
    ``train``, ``validation``, ``test``, ``draws``; zeros where a language has not the task.

    Raises TooFewSentencesError where no language has `least`, and as `build`.
    """
    tasks: dict[str, list[ProbingTask]] = {language: [] for language in trees}
    rows = []
    for name in names:
        candidates = {code: _candidates(name, own, rules or Rules()) for code, own in trees.items()}
        usable = {code: own.largest if own else 0 for code, own in candidates.items()}
        able = [code for code, total in usable.items() if total >= max(least, 1)]
        if not able:
            raise sentence_tasks.TooFewSentencesError(
                f"{name}: {max(least, 1)} sentences are needed, and no language has more than "
                f"{max(usable.values())}; lower `least`, change the rules or add text"
            )
        sizes = sentence_tasks.sizes_of(min(most, *(usable[code] for code in able)), proportions)
        draws = min(max_draws, max(1, -(-n_test // sizes[2])))
        for code, total in usable.items():
            n = draws if code in able else 0
            drawn_tasks = [
                sentence_tasks.drawn(name, candidates[code], sizes, seed + i) for i in range(n)
            ]
            tasks[code] += drawn_tasks
            parts = [len(part) for task in drawn_tasks[:1] for part in task.parts().values()]
            rows.append((name, code, total, *(parts or (0, 0, 0)), n))
    return tasks, pd.DataFrame(rows, columns=["task", "language", "usable", *TASK_PARTS, "draws"])


def _candidates(name: str, trees: Trees | Sequence[Trees], rules: Rules) -> Candidates | None:
    """What is usable for a task, or nothing where not even its classes are there."""
    try:
        return Candidates.of(name, trees, rules)
    except sentence_tasks.TooFewSentencesError:
        return None


#: Units of the probe's hidden layer, and what they apply (Table 2).
HIDDEN, ACTIVATION = 150, "sigmoid"
#: What names a cell of the tables: an encoder, how it came about, a language, a task.
CELL_KEYS = ("encoder", "condition", "language", "task")


def probe(
    subjects: Sequence[Subject], tasks: Mapping[str, Sequence[ProbingTask]], *,
    seeds: Sequence[int] = (0, 1, 2), order: int = 0, control: bool = True, **options: Any,
) -> pd.DataFrame:  # fmt: skip
    """Accuracy of every encoder on every task of its language.

    What is known is not computed again (`xlx.results.work`), so that a run that was stopped goes on
    where it was, another encoder costs only itself, and none is trained for what the ledger has.

    ``tasks`` has, by language (as the subjects name it), its tasks. A task may be there several
    times, drawn with other seeds: small ones are measured better so, as more of their sentences are
    tested on. ``control`` adds the control task, at twice the cost; ``order`` also draws its
    labels. ``seeds``, ``order`` and ``options`` are fields of `probes.Fitting`.

    Returns a row per subject, task, draw of it and seed: `CELL_KEYS`, ``draw`` (from 0), ``seed``,
    ``n_train``, ``n_test``, ``n_distinct`` (sentences that some draw tests on, by their base),
    ``classes``, ``accuracy``, ``majority`` and, with ``control``, ``control_accuracy`` and
    ``selectivity``; accuracies in [0, 1].

    Raises ValueError for a subject whose language has no tasks; two subjects of one name; vectors
    that are no finite numbers, or too few of them. Also as `probes.fit`.
    """
    subjects = checks.several(subjects, "subjects", once=True)
    if lost := sorted({own.language for own in subjects} - set(tasks)):
        raise ValueError(f"there are no tasks in {lost[0]}, but {', '.join(tasks) or 'in none'}")
    names = Counter((own.encoder, own.condition, own.language) for own in subjects)
    if max(names.values()) > 1:
        raise ValueError(f"two encoders are called {', '.join(names.most_common(1)[0][0])}")
    fitting = {"hidden": HIDDEN, "activation": ACTIVATION, "seeds": list(seeds), "order": order}
    fitting |= options
    cells = [(subject, task) for subject in subjects for task in tasks[subject.language]]
    hashes = {id(task): task.text_hash() for own in tasks.values() for task in own}
    more = {"control": control, "probe": fitting}
    abouts = [{"encoder": own.about, "task": hashes[id(task)]} | more for own, task in cells]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        by_subject: dict[int, list[int]] = {}
        for place in missing:
            by_subject.setdefault(id(cells[place][0]), []).append(place)
        recipes = [cells[places[0]][0].recipe for places in by_subject.values()]
        encoders.trained([recipe for recipe in recipes if recipe and recipe.making])
        # Encoders of a language one after another, as they read the same words.
        for places in sorted(by_subject.values(), key=lambda own: cells[own[0]][0].language):
            own = [cells[place][1] for place in places]
            yield places, (cells[places[0]][0].ready(own), own, control, fitting)

    tables, rows = work.results(CELLS, abouts, calls, what="probes"), []
    for (subject, task), table in zip(cells, tables, strict=True):
        same = [own for own in tasks[subject.language] if own.name == task.name]
        named = {"encoder": subject.encoder, "condition": subject.condition}
        named |= {"language": subject.language, "task": task.name}
        named["draw"] = next(i for i, own in enumerate(same) if own is task)
        tested = {base for own in same for base in own.test.bases}
        rows.append(table.assign(**named, n_distinct=len(tested)))
    joined = pd.concat(rows, ignore_index=True)
    first = [*CELL_KEYS, "draw", "seed", "n_train", "n_test", "n_distinct", "classes"]
    return joined[[*first, *(column for column in joined if column not in first)]]


def _probed(
    encode: Encode, tasks: Sequence[ProbingTask], control: bool, options: Mapping[str, Any]
) -> list[pd.DataFrame]:
    """A table, with a row a seed, for each of an encoder's tasks; a sentence is encoded once."""
    parts = [part for task in tasks for part in task.parts().values()]
    sentences = list(dict.fromkeys(tokens for part in parts for tokens in part.tokens))
    place = {tokens: row for row, tokens in enumerate(sentences)}
    with one_thread():
        vectors = encode(sentences)
    if len(vectors) != len(sentences):
        raise ValueError(f"{len(sentences)} sentences gave {len(vectors)} vectors")
    tables: dict[int, pd.DataFrame] = {}
    for n_classes in {len(task.classes) for task in tasks}:
        alike = [i for i, task in enumerate(tasks) if len(task.classes) == n_classes]
        stack = [
            (tasks[i], {name: vectors[[place[x] for x in part.tokens]]
                        for name, part in tasks[i].parts().items()})
            for i in alike
        ]  # fmt: skip
        tables |= zip(alike, _scores(stack, control, options), strict=True)
    return [tables[i] for i in range(len(tasks))]


def _scores(
    stack: Sequence[tuple[ProbingTask, Mapping[str, np.ndarray]]], control: bool,
    options: Mapping[str, Any],
) -> list[pd.DataFrame]:  # fmt: skip
    """Probes of some tasks of one number of classes at once."""
    tasks, states = zip(*stack, strict=True)
    parts, n_classes = list(tasks[0].parts()), len(tasks[0].classes)

    def stacked(arrays: Sequence[Mapping[str, np.ndarray]], fill: float) -> list[torch.Tensor]:
        rows = ([torch.from_numpy(own[name]) for own in arrays] for name in parts)
        return [pad_sequence(own, batch_first=True, padding_value=fill) for own in rows]

    def evaluated(labels: Sequence[Mapping[str, np.ndarray]]) -> pd.DataFrame:
        splits = map(probes.Split, stacked(states, 0), stacked(labels, -1))
        return probes.evaluate_probes(*splits, n_classes, **options)

    with one_thread():
        labels = [{x: part.labels for x, part in task.parts().items()} for task in tasks]
        table = evaluated(labels).drop(columns=["epoch", "validation_loss"])
        if control:
            dealt = evaluated([dealt_labels(task, options["order"]) for task in tasks])
            table["control_accuracy"] = dealt["accuracy"]
            table["selectivity"] = table["accuracy"] - dealt["accuracy"]
    table = table.assign(classes=n_classes)
    return [
        table[table["group"] == row].drop(columns="group").reset_index(drop=True)
        for row in range(len(stack))
    ]


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
    "xprobe-cells", _probed, version=1, tolerance=4.0, difference=_cells_apart, side_by_side=True,
    shared_seconds=120.0,  # word vectors, the encoder and its mapping
)  # fmt: skip


def cell_means(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `probe` with a row a cell: means over draws and seeds, and an interval.

    The interval of the accuracy (``low``, ``high``; Wilson, 95 %) is over sentences, as many as
    there are different ones in the test parts (``n_distinct``): what other sentences would give,
    and not another encoder.
    """
    numbers = [column for column in table if column not in (*CELL_KEYS, "draw", "seed")]
    means = table.groupby(list(CELL_KEYS), sort=False)[numbers].mean().reset_index()
    right, n = means["accuracy"] * means["n_distinct"], means["n_distinct"]
    bounds = statistics.share_interval(right.to_numpy(), n.to_numpy())
    place = means.columns.get_loc("accuracy") + 1
    for name, bound in zip(("high", "low"), bounds[::-1], strict=True):
        means.insert(place, name, bound)
    whole = ("n_train", "n_test", "n_distinct", "classes")
    return means.astype(dict.fromkeys(whole, int))


def trees_of(languages: Sequence[str], folder: str | None = None) -> dict[str, list[Trees]]:
    """By language the trees of a folder of one's own, or of the two treebanks that are shipped."""
    if folder:
        own = paths.ROOT / folder
        return {code: [load_trees(code, "own", path=own / code)] for code in languages}
    return {code: [load_trees(code, source) for source in ("ud", "pud")] for code in languages}


def common_tasks(
    tasks: Mapping[str, Sequence[ProbingTask]], languages: Sequence[str]
) -> dict[str, list[ProbingTask]]:
    """The tasks that these languages have: the others have nothing to compare with."""
    names = set.intersection(*({task.name for task in tasks[code]} for code in languages))
    return {code: [task for task in own if task.name in names] for code, own in tasks.items()}


def overlaps(task: ProbingTask) -> dict[str, int]:
    """How many distinct items two parts of a task share, summed over pairs of parts.

    ``sentences`` (the same letters and digits), ``bags`` (the same tokens in any order) and
    ``bases``.
    """

    def shared(items: Callable[[TaskPart], Iterable]) -> int:
        sets = (set(items(part)) for part in task.parts().values())
        return sum(len(one & other) for one, other in combinations(sets, 2))

    return {
        "sentences": shared(lambda part: part.keys),
        "bags": shared(lambda part: (tuple(sorted(tokens)) for tokens in part.tokens)),
        "bases": shared(lambda part: part.bases),
    }
