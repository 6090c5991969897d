"""What X-Probe's probes are put to: anything that turns sentences of one language into vectors.

One of the six encoders of `xprobe.encoders` by its recipe, the mean of word vectors, a
layer of a Transformer, a function of one's own; and, for comparison, the number of tokens alone and
a bag of words.
"""

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn.utils.rnn import pad_sequence

from xlx.measures import probe_training, probes, statistics
from xlx.measures.sentence_tasks import (
    PROBING_TASKS,
    SIZES,
    TASK_PARTS,
    Candidates,
    ProbingTask,
    Rules,
    Tokens,
    TooFewSentencesError,
    clauses,
    drawn,
    overlaps,
    sizes_of,
)
from xlx.measures.xprobe import gains
from xlx.results import checks, paths, work
from xlx.results.executors import one_thread
from xlx.results.settings import current
from xlx.subjects import identity, loading, states
from xlx.subjects.states import states_about
from xlx.text.trees import Tree, Treebank, Trees
from xprobe.encoders import (
    ENCODER_NAMES,
    Inferred,
    Mapped,
    Sentences,
    Sizes,
    Untrained,
    encode,
    mean_vectors,
    trained,
)
from xprobe.word_spaces import Look, Lookup, load_lookups

#: Tokenised sentences → vectors ``(n, dim)``.
Encode = Callable[[Sequence[tuple[str, ...]]], np.ndarray]
#: The recipe of one of `sentence_encoders.ENCODERS`.
EncoderRecipe = Untrained | Inferred | Mapped


@dataclass(frozen=True)
class Subject:
    """An encoder of the sentences of a language.

    Tables name it by ``encoder`` ("RNN (maxpool)"), ``condition`` ("mapped") and ``language``,
    which may be any name that the tasks of `sentence_probing.probe` go by. ``about`` is all that
    decides its vectors, but for the sentences: text, numbers and asks. Results are found by it, so
    two encoders need two (`of_function` finds one for any encoder). ``ready`` makes of some tasks
    what encodes their sentences, tokenised, as vectors ``(n, dim)``; it is called only where
    something is to be computed, and what it gives may run in another process. An encoder over words
    has a ``recipe`` and a ``lookup``: what is trained and made beforehand, side by side.
    """

    encoder: str
    condition: str
    language: str
    about: Mapping[str, Any]
    ready: Callable[[Sequence[ProbingTask]], Encode] = field(repr=False)
    recipe: EncoderRecipe | None = field(default=None, repr=False)
    lookup: Lookup | None = field(default=None, repr=False)


# --- encoders -------------------------------------------------------------------------------------


def of_model(name: str, language: str, layer: int) -> Subject:
    """A layer of an encoder of the family, or of any that `models.load` takes, as a subject.

    It reads the tokens with spaces between them, as it was not trained on them; words cut by the
    tokeniser are its own business. Its precision is that of the settings.
    """
    about = states_about(name) | {"layer": layer}
    states = partial(_layer, name, layer, current().dtype)
    label = f"{identity.title(name)}, layer {layer}"
    return Subject(label, "pretrained", language, about, lambda _: states)


def _layer(name: str, layer: int, dtype: str, sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
    # Sent to another process, a model of transformers forgets to keep its hidden states: so each
    # loads its own.
    encoder = loading.load(name, dtype=dtype)
    if not 0 <= layer <= encoder.n_layers:
        raise ValueError(f"{name} has the layers 0 to {encoder.n_layers}, and not {layer}")
    return states.embed(encoder, [" ".join(tokens) for tokens in sentences]).states[layer]


def of_encoder(recipe: EncoderRecipe, lookup: Lookup, language: str, condition: str) -> Subject:
    """One of `sentence_encoders.ENCODERS`, by its recipe, over the words of a lookup."""

    def ready(tasks: Sequence[ProbingTask]) -> Encode:
        words = _word_table(lookup, *tasks)
        return partial(_encoded, recipe.name, recipe.sizes, recipe.state(), words)

    about = {"encoder": recipe.ask, "lookup": lookup.ask}
    return Subject(ENCODER_NAMES[recipe.name], condition, language, about, ready, recipe, lookup)


def _encoded(
    name: str,
    sizes: Sizes,
    state: Mapping[str, np.ndarray],
    words: Look,
    sentences: Sequence[tuple[str, ...]],
) -> np.ndarray:
    return encode(name, sizes, state, Sentences.of(sentences, words))


def of_mean(lookup: Lookup, language: str) -> Subject:
    """The mean of a sentence's word vectors: an encoder that knows no order and is not trained."""

    def ready(tasks: Sequence[ProbingTask]) -> Encode:
        return partial(_mean, _word_table(lookup, *tasks))

    about = {"mean": lookup.ask}
    return Subject("mean of words", "not trained", language, about, ready, lookup=lookup)


def _mean(lookup: Look, sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
    return mean_vectors(Sentences.of(sentences, lookup))


@dataclass(frozen=True)
class WordTable:
    """A lookup of the words that some tasks have: little to send to another process."""

    place: Mapping[str, int]
    vectors: np.ndarray

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, ``(n, dim)``. Raises KeyError for a word that no task has."""
        return self.vectors[[self.place[word] for word in words]]


@lru_cache(maxsize=16)  # encoders of a language read the same
def _word_table(lookup: Lookup, *tasks: ProbingTask) -> WordTable:
    parts = [part for task in tasks for part in task.parts().values()]
    words = sorted({token for part in parts for tokens in part.tokens for token in tokens})
    return WordTable({word: row for row, word in enumerate(words)}, lookup.load()(words))


#: What `of_function` lets an encoder show: words of several scripts, in two orders.
_SHOWN: tuple[tuple[str, ...], ...] = (
    ("Anna", "sleeps", "."), ("sleeps", "Anna", "."), ("three", "dogs", "bark", "at", "2", "cats"),
    ("Die", "Katze", "sah", "den", "Hund"), ("собаки", "спят"), ("कुत्ता", "सोता", "है"), ("猫",),
)  # fmt: skip


def of_function(encoder: str, language: str, encode: Encode) -> Subject:
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
    return Subject(encoder, "as it is", language, about, lambda _: encode)


# --- what knows nothing ---------------------------------------------------------------------------


def of_random_words(language: str, *, dim: int = 128, seed: int = 0) -> Subject:
    """The mean of a random vector for each word: which words a sentence has, and nothing else.

    A bag of words folded into `dim` numbers, so that the probe of an encoder fits it (Wieting and
    Kiela 2019 use random vectors for the same end). A word's vector depends on the word and `seed`.
    """
    means = partial(_mean, partial(_random_vectors, dim, seed))
    about = {"random words": dim, "seed": seed}
    return Subject("bag of words", "not trained", language, about, lambda _: means)


def _random_vectors(dim: int, seed: int, words: Sequence[str]) -> np.ndarray:
    draws = (np.random.default_rng([seed, zlib.crc32(word.encode())]) for word in words)
    return np.array([draw.standard_normal(dim) for draw in draws])


def of_length(language: str) -> Subject:
    """The number of tokens, and nothing else: what a task gives away by length."""
    about = {"length": "tokens"}
    return Subject("length alone", "not trained", language, about, lambda _: _lengths)


def _lengths(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
    return np.array([[len(tokens)] for tokens in sentences], dtype=np.float32)


#: What two parts of a task may share, as `overlaps` counts it.
_SHARED = ("sentences", "bags", "bases")


def alike(
    trees: Mapping[str, Trees | Sequence[Trees]],
    names: Sequence[str] = PROBING_TASKS,
    *,
    most: int = sum(SIZES),
    least: int = 0,
    proportions: tuple[int, int, int] = SIZES,
    n_test: int = 0,
    max_draws: int = 1,
    seed: int = 0,
    rules: Rules | None = None,
) -> tuple[dict[str, list[ProbingTask]], pd.DataFrame]:
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
    if not trees:
        raise ValueError("there are no trees: give those of a language or more")
    if min(proportions) < 1:
        raise ValueError(
            f"proportions are {proportions}: each part needs a share, such as (8, 1, 1)"
        )
    tasks: dict[str, list[ProbingTask]] = {language: [] for language in trees}
    rows = []
    for name in names:
        candidates = {code: _candidates(name, own, rules or Rules()) for code, own in trees.items()}
        usable = {code: own.largest if own else 0 for code, own in candidates.items()}
        able = [code for code, total in usable.items() if total >= max(least, 1)]
        if not able:
            raise TooFewSentencesError(
                f"{name}: {max(least, 1)} sentences are needed, and no language has more than "
                f"{max(usable.values())}; lower `least`, change the rules or add text"
            )
        sizes = sizes_of(min(most, *(usable[code] for code in able)), proportions)
        draws = min(max_draws, max(1, -(-n_test // sizes[2])))
        for code, total in usable.items():
            n = draws if code in able else 0
            drawn_tasks = [drawn(name, candidates[code], sizes, seed + i) for i in range(n)]
            tasks[code] += drawn_tasks
            parts = [len(part) for task in drawn_tasks[:1] for part in task.parts().values()]
            rows.append((name, code, total, *(parts or (0, 0, 0)), n))
    return tasks, pd.DataFrame(rows, columns=["task", "language", "usable", *TASK_PARTS, "draws"])


def _candidates(name: str, trees: Trees | Sequence[Trees], rules: Rules) -> Candidates | None:
    """What is usable for a task, or nothing where not even its classes are there."""
    try:
        return Candidates.of(name, trees, rules)
    except TooFewSentencesError:
        return None


def n_distinct(tasks: Iterable[ProbingTask]) -> int:
    """Sentences, by their base, that some of the tasks tests on."""
    return len({base for task in tasks for base in task.test.bases})


# --- tasks that are built when they are needed ----------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The arguments of `alike`, with treebanks for trees."""

    treebanks: tuple[tuple[str, tuple[Treebank, ...]], ...]
    names: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]

    def about(self) -> dict[str, Any]:
        banks = {language: [own.about for own in banks] for language, banks in self.treebanks}
        options = dict(self.options)
        rules = asdict(options.pop("rules"))
        return {"trees": banks, "names": self.names, "rules": rules} | options


@dataclass(frozen=True)
class Planned:
    """A task that is known by its hash and built, with all of its plan, when it is needed.

    ``n_distinct``: sentences, by their base, that some draw of the task tests on. ``majority`` and
    ``overlaps`` as of the task. ``examples``: of the first and the last class, the shortest
    sentence of the test part.
    """

    name: str
    language: str
    draw: int
    n_classes: int
    n_distinct: int
    majority: float
    overlaps: dict[str, int] = field(repr=False)
    examples: dict[str, str] = field(repr=False)
    hash: str = field(repr=False)
    plan: _Plan = field(repr=False)

    def text_hash(self) -> str:
        """As of the task."""
        return self.hash

    def built(self) -> ProbingTask:
        """The task. Raises RuntimeError where the trees do not give it any more."""
        tasks, _ = _built(self.plan)
        task = [task for task in tasks[self.language] if task.name == self.name][self.draw]
        if task.text_hash() != self.hash:
            raise RuntimeError(
                f"{self.name} in {self.language} is not the task that was planned: trees or rules "
                "have changed; plan again in a new process"
            )
        return task


def planned(
    treebanks: Mapping[str, Sequence[Treebank]],
    names: Sequence[str] = PROBING_TASKS,
    **options: Any,
) -> tuple[dict[str, list[Planned]], pd.DataFrame]:
    """As `alike`, of treebanks that are read only where the tasks themselves are needed."""
    banks = tuple((language, tuple(own)) for language, own in treebanks.items())
    options = {**alike.__kwdefaults__, **options}
    options["rules"] = options["rules"] or Rules()
    plan = _Plan(banks, tuple(names), tuple(options.items()))
    rows = work.result(TASK_SETS, plan.about(), plan)
    tasks: dict[str, list[Planned]] = {language: [] for language in treebanks}
    for row in rows[rows["hash"] != ""].itertuples():
        examples = {row.first_class: row.first_example, row.last_class: row.last_example}
        shared = {kind: int(getattr(row, kind)) for kind in _SHARED}
        numbers = int(row.draw), int(row.classes), int(row.n_distinct), float(row.majority)
        own = Planned(row.task, row.language, *numbers, shared, examples, row.hash, plan)
        tasks[row.language].append(own)
    table = rows[rows["draw"] == 0].reset_index(drop=True)
    return tasks, table[["task", "language", "usable", *TASK_PARTS, "draws"]]


def _described(plan: _Plan) -> pd.DataFrame:
    """The table of `alike` with a row a draw, and what a reader wants to know of each."""
    tasks, table = _built(plan)
    rows = []
    for row in table.to_dict("records"):
        own = [task for task in tasks[row["language"]] if task.name == row["task"]]
        if not own:
            rows.append(row | {"draw": 0, "hash": ""})
        distinct = n_distinct(own)
        for draw, task in enumerate(own):
            about = {"draw": draw, "hash": task.text_hash(), "classes": len(task.classes)}
            about |= {"n_distinct": distinct, "majority": task.majority}
            for place, label in (("first", 0), ("last", len(task.classes) - 1)):
                about[f"{place}_class"] = task.classes[label]
                about[f"{place}_example"] = " ".join(_shortest(task, label))
            rows.append(row | overlaps(task) | about)
    numbers = dict.fromkeys(("classes", "n_distinct", "majority", *_SHARED), 0)
    texts = dict.fromkeys(("first_class", "first_example", "last_class", "last_example"), "")
    return pd.DataFrame(rows).fillna(numbers | texts)


def _shortest(task: ProbingTask, label: int) -> Tokens:
    """The shortest test sentence with a label, if possible of six tokens that begin with words."""
    own = [task.test.tokens[i] for i in (task.test.labels == label).nonzero()[0]]
    fit = [x for x in own if len(x) > 5 and all(map(str.isalpha, x[:2]))] or own
    return min(fit, key=lambda tokens: (len(tokens), tokens), default=())


@lru_cache(maxsize=4)
def _built(plan: _Plan) -> tuple[dict[str, list[ProbingTask]], pd.DataFrame]:
    trees = {language: [own.trees for own in banks] for language, banks in plan.treebanks}
    return alike(trees, plan.names, **dict(plan.options))


#: The sizes, hashes and examples of a set of tasks; drawn from trees by the seed, so exact.
TASK_SETS = work.Kind("xprobe-tasks", _described, version=1, tolerance=1e-9)
#: Units of the probe's hidden layer, and what they apply (Table 2).
HIDDEN, ACTIVATION = 150, "sigmoid"
#: What names a cell of the tables: an encoder, how it came about, a language, a task.
CELL_KEYS = ("encoder", "condition", "language", "task")
#: Encoders whose probes train at once, in one call.
TOGETHER = 6
#: A task, or its plan.
AnyTask = ProbingTask | Planned


def probe(
    subjects: Sequence[Subject],
    tasks: Mapping[str, Sequence[AnyTask]],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    order: int = 0,
    control: bool = True,
    **options: Any,
) -> pd.DataFrame:
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

    Raises ValueError for a subject whose language has no tasks; two subjects of one name, or with
    the same ``about`` in one language; vectors that are no finite numbers, or too few of them. Also
    as `probes.fit`.
    """
    subjects = checks.several(subjects, "subjects", once=True)
    _check(subjects, tasks, options)
    fitting = {"hidden": HIDDEN, "activation": ACTIVATION, "seeds": list(seeds), "order": order}
    fitting |= options
    hashes = {language: [task.text_hash() for task in own] for language, own in tasks.items()}
    cells = [(subject, i) for subject in subjects for i in range(len(tasks[subject.language]))]
    abouts = [
        {
            "encoder": subject.about,
            "task": hashes[subject.language][i],
            "control": control,
            "probe": fitting,
        }
        for subject, i in cells
    ]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        by_subject: dict[int, list[int]] = {}
        for position in missing:
            by_subject.setdefault(id(cells[position][0]), []).append(position)
        _prepare([cells[positions[0]][0] for positions in by_subject.values()])
        # Encoders of a language together, as they read the same tasks and words.
        groups = sorted(by_subject.values(), key=lambda own: cells[own[0]][0].language)
        for start in range(0, len(groups), TOGETHER):
            together = groups[start : start + TOGETHER]
            encoders = []
            for positions in together:
                subject = cells[positions[0]][0]
                own = [tasks[subject.language][cells[x][1]].built() for x in positions]
                encoders.append((subject.ready(own), own))
            yield [x for positions in together for x in positions], (encoders, control, fitting)

    tables = work.results(CELLS, abouts, calls, what="probes")
    return _joined(cells, tables, tasks)


def _joined(
    cells: Sequence[tuple[Subject, int]],
    tables: Sequence[pd.DataFrame],
    tasks: Mapping[str, Sequence[AnyTask]],
) -> pd.DataFrame:
    """The tables of cells one below the other, each with what names it."""
    rows = []
    for (subject, i), table in zip(cells, tables, strict=True):
        own = tasks[subject.language]
        named = {"encoder": subject.encoder, "condition": subject.condition}
        named |= {"language": subject.language, "task": own[i].name}
        draw = [task.name for task in own[:i]].count(own[i].name)
        same = [task for task in own if task.name == own[i].name]
        tested = own[i].n_distinct if isinstance(own[i], Planned) else n_distinct(same)
        rows.append(table.assign(**named, draw=draw, n_distinct=tested))
    joined = pd.concat(rows, ignore_index=True)
    first = [*CELL_KEYS, "draw", "seed", "n_train", "n_test", "n_distinct", "classes"]
    return joined[[*first, *(column for column in joined if column not in first)]]


def _check(
    subjects: Sequence[Subject], tasks: Mapping[str, Sequence[AnyTask]], options: Mapping
) -> None:
    """Raise the errors of `probe` that its arguments tell."""
    if not isinstance(tasks, Mapping):
        raise ValueError("the tasks are due by language, in a dictionary")
    if unknown := sorted(set(options) - set(probe_training.Fitting.__dataclass_fields__)):
        known = "see probes.Fitting for those there are"
        raise ValueError(f"there is no option {unknown[0]!r}: {known}")
    if lost := sorted({subject.language for subject in subjects} - set(tasks)):
        raise ValueError(
            f"there are no tasks in {lost[0]}, but {', '.join(sorted(tasks)) or 'in none'}"
        )
    names: set[tuple[str, ...]] = set()
    abouts: dict[tuple[str, str], str] = {}
    for subject in subjects:
        name = subject.encoder, subject.condition, subject.language
        if name in names:
            raise ValueError(f"two encoders are called {', '.join(name)}")
        names.add(name)
        key = subject.language, CELLS.ask({"encoder": subject.about}).identity
        called = f"{subject.encoder}, {subject.condition}"
        if abouts.setdefault(key, called) != called:
            raise ValueError(
                f"{abouts[key]} and {called} have the same `about` in {subject.language}, so that "
                "one would get the results of the other: say in each what makes its vectors "
                "(`of_function`)"
            )


def _prepare(subjects: Sequence[Subject]) -> None:
    """Train the encoders and make the words that are needed, side by side."""
    recipes = [subject.recipe for subject in subjects]
    trained([recipe for recipe in recipes if isinstance(recipe, Inferred | Mapped)])
    load_lookups([subject.lookup for subject in subjects if subject.lookup is not None])


def _probed(
    encoders: Sequence[tuple[Encode, Sequence[ProbingTask]]],
    control: bool,
    options: Mapping[str, Any],
) -> list[pd.DataFrame]:
    """A table, with a row a seed, for each encoder and each of its tasks."""
    cells = [
        (task, vectors)
        for encode, tasks in encoders
        for task, vectors in zip(tasks, _states(encode, tasks), strict=True)
    ]
    groups: dict[tuple[int, int], list[int]] = {}
    for place, (task, vectors) in enumerate(cells):
        shape = vectors["train"].shape[1], len(task.classes)
        groups.setdefault(shape, []).append(place)
    tables: dict[int, pd.DataFrame] = {}
    for places in groups.values():
        stack = [cells[place] for place in places]
        tables |= dict(zip(places, _scores(stack, control, options), strict=True))
    return [tables[place] for place in range(len(cells))]


def _states(encode: Encode, tasks: Sequence[ProbingTask]) -> list[dict[str, np.ndarray]]:
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


def _scores(
    stack: Sequence[tuple[ProbingTask, Mapping[str, np.ndarray]]],
    control: bool,
    options: Mapping[str, Any],
) -> list[pd.DataFrame]:
    """Probes of some cells at once, which have one width and one number of classes."""
    tasks, states = zip(*stack, strict=True)
    parts, n_classes = list(tasks[0].parts()), len(tasks[0].classes)

    def stacked(arrays: Sequence[Mapping[str, np.ndarray]], fill: float) -> list[torch.Tensor]:
        rows = ([torch.from_numpy(own[name]) for own in arrays] for name in parts)
        return [pad_sequence(own, batch_first=True, padding_value=fill) for own in rows]

    def evaluated(labels: Sequence[Mapping[str, np.ndarray]]) -> pd.DataFrame:
        splits = map(probe_training.Split, stacked(states, 0), stacked(labels, -1))
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


def dealt_labels(task: ProbingTask, seed: int) -> dict[str, np.ndarray]:
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


#: By language its tasks.
Tasks = Mapping[str, Sequence[Planned]]


def treebanks_of(
    languages: Sequence[str], trees_path: str | None = None
) -> dict[str, list[Treebank]]:
    """By language the treebanks of a folder of one's own, or the two that are shipped."""
    if trees_path:
        return {code: [Treebank(code, "own", paths.ROOT / trees_path / code)] for code in languages}
    return {code: [Treebank(code, source) for source in ("ud", "pud")] for code in languages}


def rules_of(changes: Mapping[str, Any]) -> Rules:
    """The rules of the tasks with some changes, whose lists (as of a parameter) are tuples."""
    return Rules(**{name: tuple(x) if isinstance(x, list) else x for name, x in changes.items()})


def sentences_of(treebanks: Mapping[str, Sequence[Treebank]]) -> pd.DataFrame:
    """By language: sentences of each treebank, and ``words`` of all."""
    rows = {
        code: {bank.source: len(bank.trees) for bank in banks}
        | {"words": sum(bank.trees.n_words for bank in banks)}
        for code, banks in treebanks.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def shown_tree(treebank: Treebank, longest: int = 15) -> Tree:
    """The first tree of two coordinated clauses that is no longer; of any, without such a one."""
    trees = treebank.trees.trees
    return next((tree for tree in trees if clauses(tree) and len(tree) <= longest), trees[0])


def tree_table(tree: Tree) -> pd.DataFrame:
    """The words of a tree in columns: their ``word``, ``tag``, ``relation`` and ``head``."""
    heads = ["-" if head == 0 else tree.words[head - 1] for head in tree.heads]
    rows = {"word": tree.words, "tag": tree.upos, "relation": tree.relations, "head": heads}
    return pd.DataFrame(rows).T


def tree_properties(tree: Tree) -> pd.Series:
    """What the rules of the tasks see in a tree."""
    root = tree.root
    said = {
        "sentence": " ".join(tree.tokens),
        "tokens": len(tree.tokens),
        "depth": tree.depth,
        "head verb": tree.words[root],
        "its tense": tree.features[root].get("Tense", "-"),
    }
    for i in tree.children(root, "nsubj"):
        said |= {"its subject": tree.words[i], "number": tree.features[i].get("Number", "-")}
    return pd.Series(said)


def task_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """By task: usable sentences a language, and what is taken (of the table of `planned`)."""
    usable = table.pivot_table("usable", "task", "language", sort=False, aggfunc="first")
    taken = table[table["train"] > 0].groupby("task", sort=False)[[*TASK_PARTS, "draws"]].first()
    return usable.join(taken)


def lacking_tasks(table: pd.DataFrame, least: int) -> pd.DataFrame:
    """The tasks that a language has not, with its ``usable`` sentences and how many are needed."""
    rows = table.loc[table["train"] == 0, ["task", "language", "usable"]]
    return rows.assign(needed=least).reset_index(drop=True)


def _named(tasks: Tasks, names: set[str]) -> dict[str, list[Planned]]:
    return {code: [task for task in own if task.name in names] for code, own in tasks.items()}


def in_every_language(tasks: Tasks) -> dict[str, list[Planned]]:
    """The tasks that English has, too: the others have nothing to compare with."""
    return _named(tasks, {task.name for task in tasks["en"]})


def in_all_languages(tasks: Tasks) -> dict[str, list[Planned]]:
    """The tasks that every language has."""
    return _named(tasks, set.intersection(*({task.name for task in x} for x in tasks.values())))


def example_items(tasks: Tasks, languages: Sequence[str]) -> pd.DataFrame:
    """A short test sentence of the first and of the last class: by ``task``, ``language``."""
    rows = []
    for name in PROBING_TASKS:
        for code in languages:
            for task in [task for task in tasks[code] if task.name == name][:1]:
                rows += [(name, code, *item) for item in task.examples.items()]
    return pd.DataFrame(rows, columns=["task", "language", "class", "sentence"])


def parts_apart(tasks: Tasks) -> pd.Series:
    """How many tasks there are, what their parts share, and how uneven their classes are.

    ``points off``: by how much the commonest class is off an even share, at most, in points.
    """
    drawn = [task for own in tasks.values() for task in own]
    shared = pd.DataFrame([task.overlaps for task in drawn]).sum()
    worst = max(abs(task.majority - 1 / task.n_classes) for task in drawn)
    counts = {"tasks": len(drawn)} | {f"shared {kind}": int(n) for kind, n in shared.items()}
    return pd.Series(counts | {"points off": round(100 * worst, 1)}, dtype=object)


def without_encoders(tasks: Tasks, dim: int, seed: int) -> pd.DataFrame:
    """`sentence_probing.cell_means` of the number of tokens alone and of a bag of words."""
    asked = [of_length(code) for code in tasks]
    asked += [of_random_words(code, dim=dim, seed=seed) for code in tasks]
    return cell_means(probe(asked, tasks, seeds=[seed], order=seed))


def beside_chance(cells: pd.DataFrame) -> pd.DataFrame:
    """By task: mean accuracy of each encoder over languages, and of the commonest class."""
    means = cells.pivot_table(["accuracy", "majority"], "task", "encoder", sort=False)
    return means["accuracy"].join(means["majority"].max(axis=1).rename("commonest class"))


def length_by_training(tasks: Tasks, cells: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Accuracy on SentLen of the number of tokens alone, by language and how the probe is trained.

    ``cells`` has those as they are trained above (`without_encoders`).
    """
    only = _named(tasks, {"SentLen"})
    lengths = [of_length(code) for code in tasks]
    options = {"seeds": [seed], "order": seed, "control": False, "weight_decay": 0.0}
    longer = options | {"anneal": 1.0, "patience": 50}
    columns = {
        "as above": cells[(cells["encoder"] == "length alone") & (cells["task"] == "SentLen")],
        "without weight decay": cell_means(probe(lengths, only, **options)),
        "and trained on": cell_means(probe(lengths, only, **longer)),
    }
    return pd.DataFrame({x: own.set_index("language")["accuracy"] for x, own in columns.items()})


def selectivity_by_encoder(cells: pd.DataFrame) -> pd.DataFrame:
    """Accuracy less that of the control task: by encoder and task, mean over languages."""
    selective = cells.assign(selectivity=cells["accuracy"] - cells["control_accuracy"])
    return selective.pivot_table("selectivity", "encoder", "task", sort=False)


def gains_by_condition(
    conditions: Mapping[str, pd.DataFrame], main: pd.DataFrame, alone: Mapping[str, str]
) -> pd.DataFrame:
    """Gains over English in points, by task: the mean over languages of each condition.

    Parameters
    ----------
    conditions : name → cells; of the first also Student's interval over languages (``low``,
        ``high``) and how many languages gain (``better``).
    main : cells of mapped encoders.
    alone : column → a setting of ``main`` whose gain stands by itself.
    """
    of = {name: gains(own).set_index("task") for name, own in conditions.items()}
    single = {
        name: gains(main[main["language"].isin(["en", setting])]).set_index("task")["gain"]
        for name, setting in alone.items()
    }
    first, *others = of
    columns = {first: of[first]["gain"], "low": of[first]["low"], "high": of[first]["high"]}
    rest = {name: of[name]["gain"] for name in others}
    names = list(single)
    rest = {x: single[x] for x in names[:1]} | rest | {x: single[x] for x in names[1:]}
    table = (100 * pd.DataFrame(columns | rest)).round(0)
    table.insert(3, "better", of[first]["better"])
    return table


def percent(table: pd.DataFrame | pd.Series, digits: int = 0) -> Any:
    """Shares as per cent."""
    return (100 * table).round(digits)


def two_corpora(english: Sequence[Treebank]) -> dict[str, list[Treebank]]:
    """The first English treebank and a second one, by name: the last, or Parallel UD."""
    other = english[-1] if len(english) > 1 else Treebank("en", "pud")
    return {bank.source.upper(): [bank] for bank in (english[0], other)}
