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
import inspect
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from xlx import (
    checks,
    embeddings,
    encoder_training,
    models,
    probes,
    probing_tasks,
    sentence_encoders,
    statistics,
    word_spaces,
    work,
)
from xlx.executors import one_thread
from xlx.probing_tasks import Planned, Task
from xlx.settings import current
from xlx.word_spaces import Lookup

#: Units of the probe's hidden layer, and what they apply (Table 2).
HIDDEN, ACTIVATION = 150, "sigmoid"

#: Tokenised sentences → vectors ``(n, dim)``.
Encode = Callable[[Sequence[tuple[str, ...]]], np.ndarray]

#: What names a cell of the tables: an encoder, how it came about, a language, a task.
CELL = ("encoder", "condition", "language", "task")


#: Recipe of one of `sentence_encoders.ENCODERS`.
Recipe = encoder_training.Untrained | encoder_training.Inferred | encoder_training.Mapped

#: Encoders whose probes train at once, in one call.
TOGETHER = 6


@dataclass(frozen=True)
class Subject:
    """An encoder of the sentences of a language.

    Attributes
    ----------
    encoder, condition, language : str
        How tables name it: "RNN (maxpool)", "mapped", "de". A language may be any name that the
        tasks of `probe` go by.
    about : mapping
        All that decides its vectors, but for the sentences; text, numbers and asks. Results are
        found by it: two encoders need two. `of_function` finds one for any encoder.
    ready : callable
        Some tasks → what encodes their sentences, tokenised, as vectors ``(n, dim)``. Called only
        where something is to be computed; what it gives may run in another process.
    recipe, lookup
        Of an encoder over words: what has to be trained and made, so that all is, side by side.
    """

    encoder: str
    condition: str
    language: str
    about: Mapping[str, Any]
    ready: Callable[[Sequence[Task]], Encode] = field(repr=False)
    recipe: Recipe | None = field(default=None, repr=False)
    lookup: Lookup | None = field(default=None, repr=False)


@dataclass(frozen=True)
class WordTable:
    """The vectors of the words that some tasks have: little to send to another process.

    ``place`` has the row of each word in ``vectors``, float32 ``(n, dim)``. It is a lookup itself.
    """

    place: Mapping[str, int] = field(repr=False)
    vectors: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, tasks: Sequence[Task], lookup: word_spaces.Look) -> "WordTable":
        """The words of all parts of some tasks, with the vectors that a lookup has for them."""
        parts = [part for task in tasks for part in task.parts().values()]
        words = sorted({token for part in parts for tokens in part.tokens for token in tokens})
        vectors = np.asarray(lookup(words), dtype=np.float32)
        return cls({word: row for row, word in enumerate(words)}, vectors)

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, ``(n, dim)``. Raises KeyError for a word that no task has."""
        return self.vectors[[self.place[word] for word in words]]


def of_model(name: str, language: str, layer: int, *, pooling: str = "mean") -> Subject:
    """A layer of an encoder of the family, or of any that `models.load` takes, as a subject.

    It reads the tokens with spaces between them, as it was not trained on them; words cut by the
    tokeniser are its own business. Its precision is that of the settings.
    """
    about = embeddings.states_about(name, pooling=pooling) | {"layer": layer}
    encode = partial(_layer, name, layer, pooling, current().dtype)
    return Subject(f"{name}, layer {layer}", "pretrained", language, about, lambda _: encode)


def _layer(
    name: str, layer: int, pooling: str, dtype: str, sentences: Sequence[tuple[str, ...]]
) -> np.ndarray:
    # Sent to another process, a model of transformers forgets to keep its hidden states: so each
    # loads its own.
    encoder = models.load(name, dtype=dtype)
    if not 0 <= layer <= encoder.n_layers:
        raise ValueError(f"{name} has the layers 0 to {encoder.n_layers}, and not {layer}")
    texts = [" ".join(tokens) for tokens in sentences]
    return embeddings.embed(encoder, texts, pooling=pooling).states[layer]


def of_encoder(recipe: Recipe, lookup: Lookup, language: str, condition: str) -> Subject:
    """One of `sentence_encoders.ENCODERS`, by its recipe, over the words of a lookup."""

    def ready(tasks: Sequence[Task]) -> Encode:
        words = _word_table(tasks, lookup)
        return partial(_encoded, recipe.name, recipe.sizes, recipe.state(), words)

    about = {"encoder": recipe.ask, "lookup": lookup.ask}
    name = sentence_encoders.NAMES[recipe.name]
    return Subject(name, condition, language, about, ready, recipe, lookup)


def _encoded(
    name: str,
    sizes: sentence_encoders.Sizes,
    state: Mapping[str, np.ndarray],
    words: WordTable,
    sentences: Sequence[tuple[str, ...]],
) -> np.ndarray:
    own = sentence_encoders.sentences(sentences, words)
    return sentence_encoders.encode(name, sizes, state, own)


def of_mean(lookup: Lookup, language: str) -> Subject:
    """The mean of a sentence's word vectors: an encoder that knows no order and is not trained."""

    def ready(tasks: Sequence[Task]) -> Encode:
        return partial(_mean, lookup=_word_table(tasks, lookup))

    about = {"mean": lookup.ask}
    return Subject("mean of words", "not trained", language, about, ready, lookup=lookup)


#: The last tables of words, by lookup and tasks: encoders of a language read the same.
_TABLES: dict[tuple[str, ...], WordTable] = {}


def _word_table(tasks: Sequence[Task], lookup: Lookup) -> WordTable:
    key = lookup.ask.identity, *(task.text_hash() for task in tasks)
    if key not in _TABLES:
        if len(_TABLES) > 16:
            _TABLES.clear()
        _TABLES[key] = WordTable.of(tasks, lookup.load())
    return _TABLES[key]


def _mean(sentences: Sequence[tuple[str, ...]], lookup: word_spaces.Look) -> np.ndarray:
    words = sorted({token for tokens in sentences for token in tokens})
    place = {word: index for index, word in enumerate(words)}
    vectors = lookup(words)
    means = [vectors[[place[token] for token in tokens]].mean(axis=0) for tokens in sentences]
    return np.array(means, dtype=np.float32)


def of_random_words(language: str, *, dim: int = 128, seed: int = 0) -> Subject:
    """The mean of a random vector for each word: which words a sentence has, and nothing else.

    A bag of words folded into `dim` numbers, so that the probe of an encoder fits it (Wieting and
    Kiela 2019 use random vectors for the same end). A word's vector depends on the word and `seed`.
    """
    encode = partial(_mean, lookup=partial(_random_vectors, dim, seed))
    about = {"random words": dim, "seed": seed}
    return Subject("bag of words", "not trained", language, about, lambda _: encode)


def _random_vectors(dim: int, seed: int, words: Sequence[str]) -> np.ndarray:
    draws = (np.random.default_rng([seed, zlib.crc32(word.encode())]) for word in words)
    return np.array([draw.standard_normal(dim) for draw in draws], dtype=np.float32)


#: What `of_function` lets an encoder show: words of several scripts, in two orders.
_SHOWN: tuple[tuple[str, ...], ...] = (
    ("Anna", "sleeps", "."), ("sleeps", "Anna", "."), ("three", "dogs", "bark", "at", "2", "cats"),
    ("Die", "Katze", "sah", "den", "Hund"), ("собаки", "спят"), ("कुत्ता", "सोता", "है"), ("猫",),
)  # fmt: skip


def of_function(
    encoder: str, language: str, encode: Encode, *, condition: str = "as it is"
) -> Subject:
    """Any function of tokenised sentences as a subject, such as an encoder of your own.

    It is known by its name and by its vectors of a few sentences (to three digits), so that another
    function of the same name is not taken for it. It has to take any words, and may be sent to
    another process: a function of a module, or a `functools.partial` of one. Raises ValueError
    where it does not give these sentences a vector each.
    """
    vectors = np.asarray(encode(_SHOWN), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(_SHOWN):
        raise ValueError(
            f"{encoder} gives {len(_SHOWN)} sentences vectors of the shape {vectors.shape}: a row "
            "for each is needed"
        )
    scale = np.abs(vectors).max() or 1.0
    shown = hashlib.sha256(np.round(vectors / scale, 3).tobytes()).hexdigest()
    about = {"function": encoder, "width": vectors.shape[1], "vectors": shown}
    return Subject(encoder, condition, language, about, lambda _: encode)


def of_length(language: str) -> Subject:
    """The number of tokens, and nothing else: what a task gives away by length."""
    about = {"length": "tokens"}
    return Subject("length alone", "not trained", language, about, lambda _: _lengths)


def _lengths(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
    return np.array([[len(tokens)] for tokens in sentences], dtype=np.float32)


def probe(
    subjects: Sequence[Subject],
    tasks: Mapping[str, Sequence[Task | Planned]],
    *,
    hidden: int | None = HIDDEN,
    activation: str = ACTIVATION,
    seeds: Sequence[int] = (0, 1, 2),
    order: int = 0,
    control: bool = True,
    **options: Any,
) -> pd.DataFrame:
    """Accuracy of every encoder on every task of its language.

    What is known is not computed again (`xlx.work`), so that a run that was stopped goes on where
    it was, another encoder costs only itself, and none is trained for what the ledger has.

    Parameters
    ----------
    subjects : sequence of Subject
    tasks : mapping
        By language (as the subjects name it) its tasks, of `probing_tasks`. A task may be
        there several times, drawn with other seeds: small ones are measured better so, as more of
        their sentences are tested on.
    hidden, activation, seeds, order
        As in `probes.fit`; `order` also draws the labels of the control task.
    control : bool
        Also the control task, at twice the cost.
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
        A subject whose language has no tasks; two subjects of one name, or with the same ``about``
        in one language; vectors that are no finite numbers, or too few of them. Also as
        `probes.fit`.
    """
    if not isinstance(tasks, Mapping):
        raise ValueError("the tasks are due by language, in a dictionary")
    if unknown := sorted(set(options) - set(inspect.signature(probes.fit).parameters)):
        raise ValueError(f"there is no option {unknown[0]!r}: see probes.fit for those there are")
    subjects = checks.several(subjects, "subjects", once=True)
    names = [(subject.encoder, subject.condition, subject.language) for subject in subjects]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two encoders are called {', '.join(sorted(twice)[0])}")
    if lost := sorted({subject.language for subject in subjects} - set(tasks)):
        raise ValueError(
            f"there are no tasks in {lost[0]}, but {', '.join(sorted(tasks)) or 'in none'}"
        )
    _check_told_apart(subjects)
    fitting = {"hidden": hidden, "activation": activation, "seeds": list(seeds), "order": order}
    fitting |= options
    hashes = {language: [task.text_hash() for task in own] for language, own in tasks.items()}
    cells = [
        (index, at)
        for index, subject in enumerate(subjects)
        for at in range(len(tasks[subject.language]))
    ]
    abouts = [
        {
            "encoder": subjects[index].about,
            "task": hashes[subjects[index].language][at],
            "control": control,
            "probe": fitting,
        }
        for index, at in cells
    ]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        wanted: dict[int, list[int]] = {}
        for position in missing:
            wanted.setdefault(cells[position][0], []).append(position)
        _prepare([subjects[index] for index in wanted])
        # Encoders of a language together, as they read the same tasks and words.
        chosen = sorted(wanted, key=lambda index: subjects[index].language)
        for start in range(0, len(chosen), TOGETHER):
            part = chosen[start : start + TOGETHER]
            encoders = []
            for index in part:
                language = subjects[index].language
                own = [tasks[language][cells[position][1]].built() for position in wanted[index]]
                encoders.append((subjects[index].ready(own), own))
            positions = [position for index in part for position in wanted[index]]
            yield positions, (encoders, control, fitting)

    values = work.results(CELLS, abouts, calls, what="probes")
    found = dict(zip(cells, values, strict=True))
    tested = {
        (language, task.name): _n_distinct(task, own)
        for language, own in tasks.items()
        for task in own
    }
    rows = [
        found[index, at].assign(
            encoder=subjects[index].encoder,
            condition=subjects[index].condition,
            language=subjects[index].language,
            task=tasks[subjects[index].language][at].name,
            draw=_draw(tasks[subjects[index].language], at),
        )
        for index, at in cells
    ]
    table = pd.concat(rows, ignore_index=True)
    table["n_distinct"] = [
        tested[pair] for pair in zip(table["language"], table["task"], strict=True)
    ]
    first = [*CELL, "draw", "seed", "n_train", "n_test", "n_distinct", "classes"]
    return table[[*first, *(column for column in table if column not in first)]]


def _check_told_apart(subjects: Sequence[Subject]) -> None:
    """Raise ValueError where the results of one subject would be taken for another's."""
    seen: dict[tuple[str, str], Subject] = {}
    for one in subjects:
        key = one.language, CELLS.ask({"encoder": one.about}).identity
        other = seen.setdefault(key, one)
        if other is not one:
            names = [f"{own.encoder}, {own.condition}" for own in (other, one)]
            raise ValueError(
                f"{' and '.join(names)} have the same `about` in {one.language}, so that one would "
                "get the results of the other: say in each what makes its vectors (`of_function`)"
            )


def _draw(tasks: Sequence[Task | Planned], at: int) -> int:
    """How many tasks of the same name come before."""
    return [task.name for task in tasks[:at]].count(tasks[at].name)


def _n_distinct(task: Task | Planned, tasks: Sequence[Task | Planned]) -> int:
    """Sentences that some draw of a task tests on."""
    if isinstance(task, Planned):
        return task.n_distinct
    return probing_tasks.n_distinct(other for other in tasks if other.name == task.name)


def _prepare(subjects: Sequence[Subject]) -> None:
    """Train the encoders and make the words that are needed, side by side."""
    for type_ in (encoder_training.Inferred, encoder_training.Mapped):
        own = [subject.recipe for subject in subjects if isinstance(subject.recipe, type_)]
        encoder_training.trained(own)
    word_spaces.load([subject.lookup for subject in subjects if subject.lookup is not None])


#: An encoder with the tasks that it is probed on.
_Encoder = tuple[Encode, Sequence[Task]]


def _probed(
    encoders: Sequence[_Encoder], control: bool, options: Mapping[str, Any]
) -> list[pd.DataFrame]:
    """A table, with a row a seed, for each encoder and each of its tasks."""
    cells = [
        (task, states)
        for encode, tasks in encoders
        for task, states in zip(tasks, _states(encode, tasks), strict=True)
    ]
    groups: dict[tuple[int, int], list[int]] = {}
    for place, (task, states) in enumerate(cells):
        shape = states["train"].shape[1], len(task.classes)
        groups.setdefault(shape, []).append(place)
    found: dict[int, pd.DataFrame] = {}
    for places in groups.values():
        stack = [cells[place] for place in places]
        found |= dict(zip(places, _scores(stack, control, options), strict=True))
    return [found[place] for place in range(len(cells))]


def _states(encode: Encode, tasks: Sequence[Task]) -> list[dict[str, np.ndarray]]:
    """The vectors of the parts of some tasks; sentences that occur again are encoded once."""
    parts = [part for task in tasks for part in task.parts().values()]
    sentences = list(dict.fromkeys(tokens for part in parts for tokens in part.tokens))
    place = {tokens: row for row, tokens in enumerate(sentences)}
    with one_thread():
        vectors = encode(sentences)
    if len(vectors) != len(sentences):
        raise ValueError(f"{len(sentences)} sentences gave {len(vectors)} vectors")
    return [
        {name: vectors[[place[x] for x in part.tokens]] for name, part in task.parts().items()}
        for task in tasks
    ]


def _stack(parts: Sequence[np.ndarray], fill: float) -> np.ndarray:
    """Arrays as one, filled up to the longest: ``(g, n, ...)``."""
    longest = max(len(part) for part in parts)
    stacked = np.full((len(parts), longest, *parts[0].shape[1:]), fill, dtype=parts[0].dtype)
    for row, part in zip(stacked, parts, strict=True):
        row[: len(part)] = part
    return stacked


def _scores(
    stack: Sequence[tuple[Task, Mapping[str, np.ndarray]]],
    control: bool,
    options: Mapping[str, Any],
) -> list[pd.DataFrame]:
    """Probes of some cells at once, which have one width and one number of classes."""
    tasks, states = zip(*stack, strict=True)
    parts = list(tasks[0].parts())
    stacked = [_stack([own[name] for own in states], 0) for name in parts]
    labels = [_stack([task.parts()[name].labels for task in tasks], -1) for name in parts]
    n_classes = len(tasks[0].classes)
    with one_thread():
        table = _evaluated(stacked, labels, n_classes, options)
        if control:
            dealt = [dealt_labels(task, options["order"]) for task in tasks]
            labels = [_stack([own[name] for own in dealt], -1) for name in parts]
            reached = _evaluated(stacked, labels, n_classes, options)["accuracy"]
            table["control_accuracy"] = reached
            table["selectivity"] = table["accuracy"] - reached
    table = table.drop(columns=["epoch", "validation_loss"]).assign(classes=n_classes)
    return [
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
    return probes.evaluate(*splits, n_classes, **options)


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


#: A probe is trained: an encoder's moves by single sentences of some hundred with last digits.
CELLS = work.Kind(
    "xprobe-cells", _probed, version=1, tolerance=0.15, side_by_side=True,
    shared_seconds=120.0,  # word vectors, the encoder and its mapping
)  # fmt: skip


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
