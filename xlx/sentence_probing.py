"""Sentence encoders before X-Probe's tasks: what can be read off the vector of a sentence.

An encoder here is anything that turns sentences of one language into vectors of one width: one of
the six of `xlx.sentence_encoders`, the mean of word vectors, a layer of a Transformer. Each
distinct sentence is encoded once for all tasks, and the probes of all encoders and languages train
together (`xlx.probes`), with one hidden layer of 150 sigmoid units (section 5.3, Table 2).

An accuracy stands beside that of the commonest label and that of a control task (Hewitt and Liang
2019): the same vectors, with a label drawn for each *first word*, the same wherever a sentence
starts with it. Hewitt and Liang draw one for each word, as their tasks label words. One for each
sentence would say nothing, as no sentence is in two parts of a task: its accuracy is chance
whatever the encoder. A first word comes back, so that its label can be learnt, by heart, from
vectors that hold the word. Labels are dealt out so that each comes about equally often. Selectivity
is accuracy less control accuracy: what is read off a vector beyond what the probe can look up.
"""

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from xlx import embeddings, models, probes, sentence_encoders, statistics
from xlx.finetuning import side_by_side, threads_of
from xlx.probing_tasks import Task
from xlx.store import Store, code_version

#: Units of the probe's hidden layer, and what they apply (Table 2).
HIDDEN, ACTIVATION = 150, "sigmoid"

#: Words → their vectors ``(n, dim)``.
Lookup = Callable[[Sequence[str]], np.ndarray]

#: Tokenised sentences → vectors ``(n, dim)``.
Encode = Callable[[Sequence[tuple[str, ...]]], np.ndarray]

#: What names a cell of the tables: an encoder, how it came about, a language, a task.
CELL = ("encoder", "condition", "language", "task")


#: Which subject, and which of its tasks.
_Cell = tuple[int, int]


@dataclass(frozen=True)
class Subject:
    """An encoder of the sentences of a language.

    Attributes
    ----------
    encoder, condition, language : str
        How tables name it: "RNN (maxpool)", "mapped", "de". A language may be any name that the
        tasks of `probe` go by.
    key : mapping
        All that its vectors depend on, but for the sentences.
    encode : callable
        Tokenised sentences → vectors ``(n, dim)``. It may run in another process.
    """

    encoder: str
    condition: str
    language: str
    key: Mapping[str, object]
    encode: Encode = field(repr=False)


@dataclass(frozen=True)
class WordTable:
    """The vectors of the words that some tasks have: little to send to another process.

    ``place`` has the row of each word in ``vectors``, float32 ``(n, dim)``. It is a lookup itself.
    """

    place: Mapping[str, int] = field(repr=False)
    vectors: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, tasks: Sequence[Task], lookup: Lookup) -> "WordTable":
        """The words of all parts of some tasks, with the vectors that a lookup has for them."""
        parts = [part for task in tasks for part in task.parts().values()]
        words = sorted({token for part in parts for tokens in part.tokens for token in tokens})
        vectors = np.asarray(lookup(words), dtype=np.float32)
        return cls({word: row for row, word in enumerate(words)}, vectors)

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, ``(n, dim)``. Raises KeyError for a word that no task has."""
        return self.vectors[[self.place[word] for word in words]]

    def hash(self) -> str:
        """SHA-256 of words and vectors."""
        return _digest({"\n".join(self.place): self.vectors})


def of_model(
    name: str, language: str, layer: int, *, pooling: str = "mean", dtype: str = "float32"
) -> Subject:
    """A layer of an encoder of the family, or of any that `models.load` takes, as a subject.

    It reads the tokens with spaces between them, as it was not trained on them; words cut by the
    tokeniser are its own business.
    """
    encoder = models.load(name, dtype=dtype)
    if not 0 <= layer <= encoder.n_layers:
        raise ValueError(f"{name} has the layers 0 to {encoder.n_layers}, and not {layer}")
    key = embeddings.states_key(encoder, pooling=pooling) | {"layer": layer}

    # Sent to another process, a model of transformers forgets to keep its hidden states: so each
    # loads its own.
    def encode(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
        texts = [" ".join(tokens) for tokens in sentences]
        own = models.load(name, dtype=dtype)
        return embeddings.embed(own, texts, pooling=pooling, progress=False).states[layer]

    return Subject(f"{name}, layer {layer}", "pretrained", language, key, encode)


def of_encoder(
    name: str,
    sizes: sentence_encoders.Sizes,
    state: Mapping[str, np.ndarray],
    words: WordTable,
    language: str,
    condition: str,
) -> Subject:
    """One of `sentence_encoders.ENCODERS` with some weights, over word vectors."""
    key = {
        "encoder": name,
        "sizes": asdict(sizes),
        "state": _digest(state),
        "words": words.hash(),
        "code": code_version(sentence_encoders),
    }

    def encode(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
        found = sentence_encoders.sentences(sentences, words)
        return sentence_encoders.encode(name, sizes, state, found)

    return Subject(sentence_encoders.NAMES[name], condition, language, key, encode)


def of_mean(words: WordTable, language: str) -> Subject:
    """The mean of a sentence's word vectors: an encoder that knows no order and is not trained."""
    key = {"mean": words.hash(), "code": code_version(_mean)}

    def encode(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
        return _mean(sentences, words)

    return Subject("mean of words", "not trained", language, key, encode)


def _mean(sentences: Sequence[tuple[str, ...]], lookup: Lookup) -> np.ndarray:
    words = sorted({token for tokens in sentences for token in tokens})
    place = {word: index for index, word in enumerate(words)}
    vectors = lookup(words)
    means = [vectors[[place[token] for token in tokens]].mean(axis=0) for tokens in sentences]
    return np.array(means, dtype=np.float32)


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of named arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(repr((name, arrays[name].shape, arrays[name].dtype.str)).encode())
        digest.update(np.ascontiguousarray(arrays[name]))
    return digest.hexdigest()


def of_random_words(language: str, *, dim: int = 128, seed: int = 0) -> Subject:
    """The mean of a random vector for each word: which words a sentence has, and nothing else.

    A bag of words folded into `dim` numbers, so that the probe of an encoder fits it (Wieting and
    Kiela 2019 use random vectors for the same end). A word's vector depends on the word and `seed`.
    """

    def lookup(words: Sequence[str]) -> np.ndarray:
        draws = (np.random.default_rng([seed, zlib.crc32(word.encode())]) for word in words)
        return np.array([draw.standard_normal(dim) for draw in draws], dtype=np.float32)

    def encode(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
        return _mean(sentences, lookup)

    key = {"random words": dim, "seed": seed, "code": code_version(of_random_words, _mean)}
    return Subject("bag of words", "not trained", language, key, encode)


def of_length(language: str) -> Subject:
    """The number of tokens, and nothing else: what a task gives away by length."""

    def encode(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
        return np.array([[len(tokens)] for tokens in sentences], dtype=np.float32)

    key = {"length": code_version(of_length)}
    return Subject("length alone", "not trained", language, key, encode)


def probe(
    subjects: Sequence[Subject],
    tasks: Mapping[str, Sequence[Task]],
    *,
    hidden: int | None = HIDDEN,
    activation: str = ACTIVATION,
    seeds: Sequence[int] = (0, 1, 2),
    order: int = 0,
    control: bool = True,
    n_jobs: int = 2,
    store: Store | None = None,
    progress: bool = True,
    **options: Any,
) -> pd.DataFrame:
    """Accuracy of every encoder on every task of its language.

    What is stored is not computed again, so that a run that was stopped goes on where it was, and
    another encoder costs only itself.

    Parameters
    ----------
    subjects : sequence of Subject
    tasks : mapping
        By language (as the subjects name it) its tasks, of `probing_tasks.build`. A task may be
        there several times, drawn with other seeds: small ones are measured better so, as more of
        their sentences are tested on.
    hidden, activation, seeds, order
        As in `probes.fit`; `order` also draws the labels of the control task.
    control : bool
        Also the control task, at twice the cost.
    n_jobs : int
        Processes; each computes with one thread.
    options
        As for `probes.fit`.

    Returns
    -------
    DataFrame
        A row per subject, task, draw of it and seed: `CELL`, ``draw`` (from 0), ``seed``,
        ``n_train``, ``n_test``, ``n_distinct`` (sentences that some draw tests on, by their base),
        ``classes``, ``accuracy``, ``majority`` and, with `control`, ``control_accuracy`` and
        ``selectivity``; accuracies in [0, 1].

    Raises
    ------
    ValueError
        A subject whose language has no tasks; two subjects of one name; vectors that are no finite
        numbers, or too few of them. Also as `probes.fit`.
    """
    names = [(subject.encoder, subject.condition, subject.language) for subject in subjects]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two encoders are called {', '.join(sorted(twice)[0])}")
    if lost := sorted({subject.language for subject in subjects} - set(tasks)):
        raise ValueError(f"there are no tasks in {lost[0]}, but {', '.join(sorted(tasks))}")
    tested = {
        (language, task.name): len(
            {base for other in own if other.name == task.name for base in other.test.bases}
        )
        for language, own in tasks.items()
        for task in own
    }
    store = store or Store()
    fitting = {"hidden": hidden, "activation": activation, "seeds": list(seeds), "order": order}
    fitting |= options
    common = {
        "control": control,
        "code": code_version(probes, _encoded, _stack, _scores, _evaluated, dealt_labels),
    } | fitting
    hashes = {language: [task.text_hash() for task in own] for language, own in tasks.items()}
    cells = {
        (index, at): (task, common | {"of": subject.key, "task": hashes[subject.language][at]})
        for index, subject in enumerate(subjects)
        for at, task in enumerate(tasks[subject.language])
    }
    found = {cell: store.load_table("xprobe", key) for cell, (_, key) in cells.items()}
    wanted: dict[int, list[int]] = {}
    for index, at in (cell for cell in cells if found[cell] is None):
        wanted.setdefault(index, []).append(at)

    states: dict[_Cell, dict[str, np.ndarray]] = {}
    encoding = [
        (index, subjects[index].encode, [cells[index, at][0] for at in own])
        for index, own in wanted.items()
    ]
    ended = side_by_side(_encoded, encoding, n_jobs)
    for index, vectors in tqdm(ended, "encoding", len(encoding), disable=not progress):
        for at, own in zip(wanted[index], vectors, strict=True):
            states[index, at] = own
    stacks = [
        (stack, [states[cell] for cell in stack], [cells[cell][0] for cell in stack])
        for stack in _alike(states, {cell: task for cell, (task, _) in cells.items()}, n_jobs)
    ]
    calls = [(*stack, control, fitting) for stack in stacks]
    ended = side_by_side(_scores, calls, n_jobs)
    for stack, tables in tqdm(ended, "probing", len(calls), disable=not progress):
        for cell, table in zip(stack, tables, strict=True):
            store.save_table("xprobe", cells[cell][1], table)
            found[cell] = table
    rows = [
        found[index, at].assign(
            encoder=subjects[index].encoder,
            condition=subjects[index].condition,
            language=subjects[index].language,
            task=task.name,
            draw=[other.name for other in tasks[subjects[index].language][:at]].count(task.name),
        )
        for (index, at), (task, _) in cells.items()
    ]
    table = pd.concat(rows, ignore_index=True)
    table["n_distinct"] = [
        tested[pair] for pair in zip(table["language"], table["task"], strict=True)
    ]
    first = [*CELL, "draw", "seed", "n_train", "n_test", "n_distinct", "classes"]
    return table[[*first, *(column for column in table if column not in first)]]


def _encoded(
    index: int, encode: Encode, tasks: Sequence[Task]
) -> tuple[int, list[dict[str, np.ndarray]]]:
    """The vectors of the parts of some tasks; sentences that occur again are encoded once."""
    parts = [part for task in tasks for part in task.parts().values()]
    sentences = list(dict.fromkeys(tokens for part in parts for tokens in part.tokens))
    place = {tokens: row for row, tokens in enumerate(sentences)}
    with threads_of(torch.device("cpu"), 1):
        vectors = encode(sentences)
    if len(vectors) != len(sentences):
        raise ValueError(f"{len(sentences)} sentences gave {len(vectors)} vectors")
    return index, [
        {name: vectors[[place[x] for x in part.tokens]] for name, part in task.parts().items()}
        for task in tasks
    ]


def _alike(
    states: Mapping[_Cell, Mapping[str, np.ndarray]],
    tasks: Mapping[_Cell, Task],
    n_jobs: int,
) -> list[list[_Cell]]:
    """Cells whose probes can train as one stack: one width, one number of classes.

    A large stack is parted, so that no process waits for another's.
    """
    groups: dict[tuple[int, int], list[_Cell]] = {}
    for cell, parts in states.items():
        shape = parts["train"].shape[1], len(tasks[cell].classes)
        groups.setdefault(shape, []).append(cell)
    size = max(1, len(states) // (4 * n_jobs))
    parted = [
        cells[start : start + size]
        for cells in groups.values()
        for start in range(0, len(cells), size)
    ]
    return sorted(parted, key=len, reverse=True)


def _stack(parts: Sequence[np.ndarray], fill: float) -> np.ndarray:
    """Arrays as one, filled up to the longest: ``(g, n, ...)``."""
    longest = max(len(part) for part in parts)
    stacked = np.full((len(parts), longest, *parts[0].shape[1:]), fill, dtype=parts[0].dtype)
    for row, part in zip(stacked, parts, strict=True):
        row[: len(part)] = part
    return stacked


def _scores(
    stack: list[_Cell],
    states: Sequence[Mapping[str, np.ndarray]],
    tasks: Sequence[Task],
    control: bool,
    options: Mapping[str, Any],
) -> tuple[list[_Cell], list[pd.DataFrame]]:
    """Probes of some cells at once: a table a cell, with a row a seed."""
    parts = list(tasks[0].parts())
    stacked = [_stack([own[name] for own in states], 0) for name in parts]
    labels = [_stack([task.parts()[name].labels for task in tasks], -1) for name in parts]
    n_classes = len(tasks[0].classes)
    with threads_of(torch.device("cpu"), 1):
        table = _evaluated(stacked, labels, n_classes, options)
        if control:
            dealt = [dealt_labels(task, options["order"]) for task in tasks]
            labels = [_stack([own[name] for own in dealt], -1) for name in parts]
            reached = _evaluated(stacked, labels, n_classes, options)["accuracy"]
            table["control_accuracy"] = reached
            table["selectivity"] = table["accuracy"] - reached
    table = table.drop(columns=["epoch", "validation_loss"]).assign(classes=n_classes)
    return stack, [
        table[table["group"] == row].drop(columns="group").reset_index(drop=True)
        for row in range(len(stack))
    ]


def _evaluated(
    states: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    n_classes: int,
    options: Mapping[str, Any],
) -> pd.DataFrame:
    splits = map(probes.Split, states, labels)
    return probes.evaluate(*splits, n_classes, progress=False, **options)


def dealt_labels(task: Task, seed: int) -> dict[str, np.ndarray]:
    """The labels of the control task, by part: one for each first word, dealt out evenly.

    Words are taken from the most frequent to the least, of equals in random order; each is given
    the label that has come least often until then.
    """
    firsts = {name: [tokens[0] for tokens in part.tokens] for name, part in task.parts().items()}
    counts = Counter(word for own in firsts.values() for word in own)
    words = np.random.default_rng(seed).permutation(sorted(counts))
    dealt, of = np.zeros(len(task.classes), dtype=np.int64), {}
    for word in sorted(words.tolist(), key=lambda word: -counts[word]):
        of[word] = int(dealt.argmin())
        dealt[of[word]] += counts[word]
    return {name: np.array([of[word] for word in own]) for name, own in firsts.items()}


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `probe` with a row a cell: means over draws and seeds, and an interval.

    The interval of the accuracy (``low``, ``high``; Wilson, 95 %) is over sentences, as many as
    there are different ones in the test parts (``n_distinct``): what other sentences would give,
    and not another encoder.
    """
    numbers = [column for column in table if column not in (*CELL, "draw", "seed")]
    means = table.groupby(list(CELL), sort=False)[numbers].mean().reset_index()
    bounds = [
        statistics.share_interval(accuracy * n, n)
        for accuracy, n in zip(means["accuracy"], means["n_distinct"], strict=True)
    ]
    place = means.columns.get_loc("accuracy") + 1
    means.insert(place, "low", [low for low, _ in bounds])
    means.insert(place + 1, "high", [high for _, high in bounds])
    whole = ("n_train", "n_test", "n_distinct", "classes")
    return means.astype(dict.fromkeys(whole, int))
