"""The rules of X-Probe's nine probing tasks: which sentences of a treebank a task can use.

========= ============================================== ===========================================
task      classes                                        sentences that are usable
========= ============================================== ===========================================
SentLen   bins of the number of tokens                   all of these lengths
WC        words of middling frequency                    with one of the words, once
TreeDepth depths of the tree                             of these depths, paired within length bins
BiShift   original, shifted (two neighbours change)      with two unlike neighbours
SubjNum   Sing, Plur                                     one nsubj of the root verb, with a number
ObjNum    Sing, Plur                                     one obj of the root verb, with a number
CoordInv  original, inverted                             two main clauses around a conjunction
SOMO      original, replaced                             with a word that can be replaced
Tense     Past, Pres                                     root verb of one of these tenses
========= ============================================== ===========================================

The defaults of `Rules` are the paper's (section 4) and, where it gives none, those that its release
shows (github.com/ltgoslo/xprobe, counted in five languages; its SOMO alone has longer sentences).
Where neither tells:

* Tokens are counted, swapped and replaced as the text shows them (German *im* is one), in small
  letters, as a capital in the middle would give a swap away. Punctuation counts, and what closes
  the sentence stays where it is.
* "The head verb" is the root where its tag is VERB or AUX. Subtypes count: ``nsubj:pass`` is a
  subject. The number is that of the noun's or pronoun's own feature.
* Tense: the feature of the root as it stands, so that English "was sleeping" is Pres (its
  participle's) and "is built" Past. Where the root has none, that of its auxiliary or copula.

Ravishankar, Øvrelid and Velldal (2019).
"""

import hashlib
import itertools
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from sys import intern
from typing import NamedTuple

import numpy as np

from xlx.results import checks
from xlx.text.files import letters
from xlx.text.languages import lowered
from xlx.text.trees import Tree, Trees

#: In the order of the paper's text.
PROBING_TASKS = (
    "SentLen",
    "WC",
    "TreeDepth",
    "BiShift",
    "SubjNum",
    "ObjNum",
    "CoordInv",
    "SOMO",
    "Tense",
)
VERBS = ("VERB", "AUX")
TASK_PARTS = ("train", "validation", "test")
#: Sentences of train, validation and test in the paper (section 6.1).
SIZES = (100_000, 10_000, 10_000)
_WORD = re.compile(r"[^\W\d_]")
#: A sentence as its tokens.
Tokens = tuple[str, ...]


class TooFewSentencesError(ValueError):
    """A language has too few sentences for a task; says how many."""


@dataclass(frozen=True)
class Rules:
    """What is open in the rules of the tasks; edges are of bins: 5, 9 is 5 to 8 tokens."""

    lengths: tuple[int, int] = (5, 28)  # fewest and most tokens in all tasks but SentLen
    length_edges: tuple[int, ...] = (5, 9, 13, 17, 21, 25, 29)  # of SentLen
    n_words: int = 1000  # of WC, which follow ...
    first_rank: int = 2000  # ... the so many most frequent (SentEval's; the paper did not take it)
    letters: int = 4  # and have so many signs or more, without a digit
    depths: tuple[int, int] = (3, 7)  # words from the root to the one farthest from it
    depth_edges: tuple[int, ...] = (5, 9, 13, 17, 21, 25, 29)  # bins within which they are even
    leaf: int = 1  # the depth of a tree of one word (0 counts steps)
    max_log_difference: float = 1.0  # of frequencies in SOMO
    odd_tags: tuple[str, ...] = ("NOUN", "VERB")  # of the words replaced

    def __post_init__(self) -> None:
        for name in ("length_edges", "depth_edges", "lengths", "depths"):
            edges = getattr(self, name)
            if len(edges) < 2 or list(edges) != sorted(set(edges)):
                raise ValueError(f"{name} are {edges}: two or more numbers that rise are needed")
        if self.n_words < 2 or self.first_rank < 0:
            raise ValueError(
                f"n_words is {self.n_words} and first_rank {self.first_rank}: two words and a rank "
                "from 0 are the least"
            )


@dataclass(frozen=True)
class Pool:
    """The distinct sentences of a language: trees, tokens in small letters, names of bases."""

    language: str
    trees: tuple[Tree, ...]
    tokens: tuple[Tokens, ...]
    bases: tuple[str, ...]

    @classmethod
    def from_trees(cls, trees: Trees | Sequence[Trees]) -> "Pool":
        """The first of those with the same letters and digits; ValueError: several languages."""
        sources = [trees] if isinstance(trees, Trees) else list(trees)
        languages = sorted({source.language for source in sources})
        if len(languages) != 1:
            raise ValueError(
                f"trees are of {', '.join(languages) or 'no language'}: a task is built in one"
            )
        seen, distinct, bases = {""}, [], []  # "": punctuation alone
        for source in sources:
            for tree in source:
                if tree.key not in seen:
                    seen.add(tree.key)
                    distinct.append(tree)
                    bases.append(f"{source.source}:{tree.id}")
        # a sentence at a time is faster than a token
        joined = (lowered("\n".join(tree.tokens), languages[0]) for tree in distinct)
        tokens = (tuple(map(intern, text.split("\n"))) for text in joined)
        return cls(languages[0], tuple(distinct), tuple(tokens), tuple(bases))

    def within(self, rules: Rules) -> Iterator[int]:
        """Positions of the sentences of the rules' lengths."""
        low, high = rules.lengths
        return (i for i, tokens in enumerate(self.tokens) if low <= len(tokens) <= high)


class Usable(NamedTuple):
    """A sentence (position in the pool) with its class and the bin within which it is balanced."""

    at: int
    label: int
    bin: int = 0


#: Classes of a task, and the sentences that are usable for it.
Classed = tuple[tuple[str, ...], list[Usable]]


def _bin(value: int, edges: Sequence[int]) -> int:
    """The bin of a value among edges; -1 outside."""
    return -1 if not edges[0] <= value < edges[-1] else sum(value >= edge for edge in edges) - 1


def _sent_len(pool: Pool, rules: Rules) -> Classed:
    names = tuple(f"{low}-{high - 1}" for low, high in pairwise(rules.length_edges))
    binned = [Usable(i, _bin(len(t), rules.length_edges)) for i, t in enumerate(pool.tokens)]
    return names, [item for item in binned if item.label >= 0]


def _word_content(pool: Pool, rules: Rules) -> Classed:
    counts = Counter(token for tokens in pool.tokens for token in tokens)
    whole = (w for w in counts if len(w) >= rules.letters and _WORD.search(w))
    words = (w for w in whole if not any(map(str.isdigit, w)))
    ranked = sorted(words, key=lambda word: (-counts[word], word))
    needed = rules.first_rank + rules.n_words
    if len(ranked) < needed:
        raise TooFewSentencesError(
            f"WC in {pool.language}: the text has {len(ranked)} words, and {needed} are needed for "
            f"{rules.n_words} that follow the {rules.first_rank} most frequent; lower n_words or "
            "first_rank"
        )
    classes = tuple(ranked[rules.first_rank : needed])
    label = {word: i for i, word in enumerate(classes)}
    items = ((i, [label[x] for x in pool.tokens[i] if x in label]) for i in pool.within(rules))
    return classes, [Usable(i, labels[0]) for i, labels in items if len(labels) == 1]


def _tree_depth(pool: Pool, rules: Rules) -> Classed:
    low, high = rules.depths
    usable = []
    for i in pool.within(rules):
        bin_ = _bin(len(pool.tokens[i]), rules.depth_edges)
        depth = pool.trees[i].depth + rules.leaf
        if bin_ >= 0 and low <= depth <= high:
            usable.append(Usable(i, depth - low, bin_))
    return tuple(map(str, range(low, high + 1))), usable


#: What a rule sees in a tree: a class, another value, or nothing.
Seen = Callable[[Tree, Rules], str | None]


def _number(relation: str) -> Seen:
    """The number of the only subject or object of the root verb."""

    def seen(tree: Tree, rules: Rules) -> str | None:
        nouns = tree.children(tree.root, relation)
        return tree.features[nouns[0]].get("Number") if len(nouns) == 1 else None

    return seen


def _tense(tree: Tree, rules: Rules) -> str | None:
    """The tense of the root verb; of one without, that of its first auxiliary or copula."""
    words = tree.root, *tree.children(tree.root, "aux", "cop")
    tenses = (tree.features[word].get("Tense") for word in words)
    return next(filter(None, tenses), None)


def _of_root_verb(seen: Seen, *classes: str) -> "Finder":
    """Usable sentences by what a rule sees in those whose root is a verb."""

    def find(pool: Pool, rules: Rules) -> Classed:
        verbal = ((i, pool.trees[i]) for i in pool.within(rules))
        values = ((i, seen(tree, rules)) for i, tree in verbal if tree.upos[tree.root] in VERBS)
        return classes, [Usable(i, classes.index(value)) for i, value in values if value in classes]

    return find


Finder = Callable[[Pool, Rules], Classed]
FINDERS = {
    "SentLen": _sent_len,
    "WC": _word_content,
    "TreeDepth": _tree_depth,
    "SubjNum": _of_root_verb(_number("nsubj"), "Sing", "Plur"),
    "ObjNum": _of_root_verb(_number("obj"), "Sing", "Plur"),
    "Tense": _of_root_verb(_tense, "Past", "Pres"),
}
#: What changes a sentence of the pool: all its changed forms, in an order drawn by the generator;
#: without one, in any order that is the same in every run, and none before it is asked for.
Changer = Callable[[int, np.random.Generator | None], Iterator[Tokens]]


def _end(tree: Tree) -> int:
    """How many words come before the punctuation that closes the sentence."""
    return max((i + 1 for i, tag in enumerate(tree.upos) if tag != "PUNCT"), default=0)


def shuffled(items: Iterable, rng: np.random.Generator | None) -> Iterable:
    """The items in random order; as they are without a generator."""
    if rng is None:
        return items
    items = list(items)
    return [items[i] for i in rng.permutation(len(items))]


def bigram_shifts(pool: Pool, rules: Rules) -> Changer:
    """Two neighbours that differ change places: bigram shift (section 4)."""

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        tree, tokens, end = pool.trees[at], pool.tokens[at], _end(pool.trees[at])
        n_tokens = tree.token_of[end - 1] + 1 if end else 0
        pairs = [i for i in range(n_tokens - 1) if tokens[i] != tokens[i + 1]]
        for i in shuffled(pairs, rng):
            yield (*tokens[:i], tokens[i + 1], tokens[i], *tokens[i + 2 :])

    return changed


def clauses(tree: Tree) -> tuple[int, int, int] | None:
    """Two coordinated main clauses, or None: positions ``(a, b, c)`` among the tokens.

    ``[:a]`` and ``[b:c]`` are the clauses, ``[a:b]`` what joins them, ``[c:]`` closing punctuation.
    """
    root, conjuncts = tree.root, tree.children(tree.root, "conj")
    if len(conjuncts) != 1 or not {tree.upos[root], tree.upos[conjuncts[0]]} <= {*VERBS}:
        return None
    other = conjuncts[0]
    # UD 1 has the conjunction below the first conjunct, UD 2 below the second.
    both = tree.children(root, "cc") + tree.children(other, "cc")
    joining = [i for i in both if root < i < other]
    if len(joining) != 1:
        return None
    first, second, end = joining[0], joining[0] + 1, _end(tree)
    while first and tree.upos[first - 1] == "PUNCT":
        first -= 1
    while second < end and tree.upos[second] == "PUNCT":
        second += 1
    if not 0 < first < second < end:
        return None
    below = tree.below(other)
    strangers = [i for i in range(first) if i in below and tree.upos[i] != "PUNCT"]
    strangers += [i for i in range(second, end) if i not in below and tree.upos[i] != "PUNCT"]
    cuts = [cut for cut in (first, second, end) if cut < len(tree)]
    if strangers or any(tree.token_of[cut] == tree.token_of[cut - 1] for cut in cuts):
        return None
    return tree.token_of[first], tree.token_of[second], tree.token_of[end - 1] + 1


def coordination_inversions(pool: Pool, rules: Rules) -> Changer:
    """The clauses change places around the conjunction: CoordInv (section 4)."""

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        places = clauses(pool.trees[at])
        if places is not None:
            a, b, c = places
            tokens = pool.tokens[at]
            if tokens[:a] != tokens[b:c]:
                yield (*tokens[b:c], *tokens[a:b], *tokens[:a], *tokens[c:])

    return changed


class Bigrams:
    """How often each bigram occurs: counts by its first token, and by its second."""

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        self.after = defaultdict(Counter)
        self.before = defaultdict(Counter)
        for first, second in itertools.chain.from_iterable(map(pairwise, lines)):
            self.after[first][second] += 1
            self.before[second][first] += 1

    def alike(self, previous: str, word: str, following: str, limit: float) -> Iterator[str]:
        """Other words both of whose bigrams here are about as frequent as those of the word."""
        left, right = self.after.get(previous, {}), self.before.get(following, {})
        n_left, n_right = left.get(word, 0), right.get(word, 0)
        if not (n_left and n_right):
            return
        sides = [(left, n_left), (right, n_right)]
        (fewer, n_fewer), (more, n_more) = sorted(sides, key=lambda side: len(side[0]))
        for other, count in fewer.items():  # by first occurrence, the same in every run
            if (
                other in more
                and other != word
                and abs(math.log(count / n_fewer)) <= limit
                and abs(math.log(more[other] / n_more)) <= limit
            ):
                yield other


def odd_words(pool: Pool, rules: Rules, bigrams: Bigrams | None = None) -> Changer:
    """A word gives place to one of its tag, as frequent beside its neighbours (section 4)."""
    bigrams = bigrams or Bigrams(pool.tokens)

    def tags_of(tree: Tree) -> list[str]:
        """The tag of each token; "" where it is several words."""
        tags, sizes = [""] * len(tree.tokens), Counter(tree.token_of)
        for token, tag in zip(tree.token_of, tree.upos, strict=True):
            tags[token] = tag if sizes[token] == 1 else ""
        return tags

    tags = [tags_of(tree) for tree in pool.trees]
    known = defaultdict(set)
    for tokens, of_tokens in zip(pool.tokens, tags, strict=True):
        for token, tag in zip(tokens, of_tokens, strict=True):
            known[token].add(tag)

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        tokens, of_tokens = pool.tokens[at], tags[at]
        inner = [i for i in range(1, len(tokens) - 1) if of_tokens[i] in rules.odd_tags]
        for i in shuffled(inner, rng):
            alike = bigrams.alike(*tokens[i - 1 : i + 2], rules.max_log_difference)
            same_tag = (word for word in alike if of_tokens[i] in known.get(word, ()))
            for word in shuffled(same_tag, rng):
                yield (*tokens[:i], word, *tokens[i + 1 :])

    return changed


#: The tasks that change half of their sentences: classes, and what changes the second half.
CHANGED = {
    "BiShift": (("original", "shifted"), bigram_shifts),
    "CoordInv": (("original", "inverted"), coordination_inversions),
    "SOMO": (("original", "replaced"), odd_words),
}


@dataclass(frozen=True)
class TaskPart:
    """A part of a task."""

    tokens: tuple[Tokens, ...]
    labels: np.ndarray  # int64 (n,), positions in the task's classes
    bases: tuple[str, ...]  # the sentence that each was made from: source, colon, id of the tree

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, eq=False)
class ProbingTask:
    """A probing task in a language."""

    name: str
    language: str
    classes: tuple[str, ...]
    train: TaskPart = field(repr=False)
    validation: TaskPart = field(repr=False)
    test: TaskPart = field(repr=False)

    def parts(self) -> dict[str, TaskPart]:
        """Train, validation and test by name."""
        return {name: getattr(self, name) for name in TASK_PARTS}

    def text_hash(self) -> str:
        """SHA-256 of the sentences and labels of all parts, made once."""
        return self._hash

    @cached_property
    def _hash(self) -> str:
        digest = hashlib.sha256("\t".join(self.classes).encode())
        for name, part in self.parts().items():
            digest.update(f"\n\n{name}\n".encode())
            for tokens, label in zip(part.tokens, part.labels.tolist(), strict=True):
                digest.update("\t".join((str(label), *tokens, "\n")).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Candidates:
    """The usable sentences of a task; those of a task that changes some have no class yet (0)."""

    pool: Pool
    classes: tuple[str, ...]
    usable: list[Usable]
    change: Changer | None

    @classmethod
    def from_trees(
        cls, name: str, trees: Pool | Trees | Sequence[Trees], rules: Rules
    ) -> "Candidates":
        """What is usable for a task; ValueError for an unknown one."""
        checks.one_of(name, PROBING_TASKS, "task")
        pool = trees if isinstance(trees, Pool) else Pool.from_trees(trees)
        if name in FINDERS:
            return cls(pool, *FINDERS[name](pool, rules), None)
        classes, made = CHANGED[name]
        change = made(pool, rules)
        usable = [Usable(i, 0) for i in pool.within(rules) if any(change(i, None))]
        return cls(pool, classes, usable, change)

    def only(self, bases: Set[str]) -> "Candidates":
        """Those alone that have one of these bases."""
        usable = [item for item in self.usable if self.pool.bases[item.at] in bases]
        return replace(self, usable=usable)

    @property
    def cells(self) -> dict[tuple[int, int], list[int]]:
        """Positions in the pool by bin and class, all classes in each bin that there is."""
        n_classes = 1 if self.change else len(self.classes)
        bins = sorted({item.bin for item in self.usable})
        positions = {cell: [] for cell in itertools.product(bins, range(n_classes))}
        for item in self.usable:
            positions[item.bin, item.label].append(item.at)
        return positions

    @property
    def capacity(self) -> dict[int, int]:
        """How many examples of each class every bin can give."""
        if self.change:
            return {0: len(self.usable) // 2}
        sizes = {cell: len(positions) for cell, positions in self.cells.items()}
        return {
            bin_: min(n for (number, _), n in sizes.items() if number == bin_) for bin_, _ in sizes
        }

    @property
    def largest(self) -> int:
        """The most sentences of a balanced task."""
        return len(self.classes) * sum(self.capacity.values())


def sizes_of(total: int, proportions: tuple[int, int, int] = SIZES) -> tuple[int, int, int]:
    """Train, validation and test that sum to a total; ValueError where one would be empty."""
    _, *others = (total * share // sum(proportions) for share in proportions)
    sizes = (total - sum(others), *others)
    if min(sizes) < 1:
        raise ValueError(f"{total} sentences in the proportions {proportions} leave a part empty")
    return sizes


def build(
    name: str,
    trees: Trees | Sequence[Trees],
    *,
    sizes: tuple[int, int, int] = SIZES,
    seed: int = 0,
    rules: Rules | None = None,
) -> ProbingTask:
    """One of `PROBING_TASKS` (section 4), of parsed sentences of one language.

    ``sizes`` are sentences of train, validation and test, in which every class comes equally often
    (within each bin of lengths in TreeDepth): of 100 and six classes, 16 times. No two examples
    have the same base or the same letters and digits. Raises TooFewSentencesError; ValueError for
    an unknown task, trees of several languages, a part of fewer sentences than classes.
    """
    return drawn(name, Candidates.from_trees(name, trees, rules or Rules()), sizes, seed)


def drawn(
    name: str,
    candidates: Candidates,
    sizes: Sequence[int],
    seed: int,
    test: Candidates | None = None,
) -> ProbingTask:
    """A task of what is usable; its test part of other candidates of the same pool, if given."""
    n_classes, pool = len(candidates.classes), candidates.pool
    per_class = [size // n_classes for size in sizes]
    if min(per_class) < 1:
        raise ValueError(
            f"{name}: parts of {', '.join(map(str, sizes))} sentences; each needs one or more of "
            f"its {n_classes} classes"
        )
    shared = 3 if test is None else 2
    there, needed = sum(candidates.capacity.values()), sum(per_class[:shared])
    if there < needed:
        raise TooFewSentencesError(
            f"{name} in {pool.language}: {there} sentences of each class can be had, and {needed} "
            "are needed; lower the sizes, change the rules or add text"
        )
    rng = np.random.default_rng([seed, *name.encode()])
    draw = _draw_changed if candidates.change else _draw_balanced
    drawn_parts = draw(name, candidates, per_class[:shared], rng)
    if test is not None:
        drawn_parts += draw(name, test, per_class[2:], rng)
    parts = {}
    for part, examples in zip(TASK_PARTS, drawn_parts, strict=True):
        at, labels, tokens = zip(*shuffled(examples, rng), strict=True)
        bases = tuple(pool.bases[i] for i in at)
        parts[part] = TaskPart(tokens, np.array(labels, int), bases)
    return ProbingTask(name, pool.language, candidates.classes, **parts)


def document(base: str) -> str:
    """The document of a base of Parallel UD, whose ids end in three digits of the sentence."""
    return base[:-3]


def parallel_tasks(
    trees: Mapping[str, Sequence[Trees]],
    names: Sequence[str] = PROBING_TASKS,
    *,
    source: str = "pud",
    folds: int = 2,
    most: int = 1200,
    seed: int = 0,
    rules: Rules | None = None,
    split: int | None = None,
) -> dict[str, list[ProbingTask]]:
    """Tasks that are tested on the same sentences in all languages, and trained on no such one.

    ``trees`` are of several sources a language, of which ``source`` is parallel: translations have
    one id. Its sentences are in ``folds``, by their ids; a task is tested on one of them, and
    trained and stopped (5 to 1) on all else, ``most`` sentences at most: a probe that is read in
    another language has seen no translation. Each fold is a draw. WC, whose words are of a
    language, has draws as of `build`. What cannot have two examples of each class is left out.
    ``split``: folds are of whole documents (`document`), dealt anew by each number; None: of
    sentences, which may have neighbours of their document in another fold. ValueError for a
    language that has no trees of ``source``.
    """
    tasks = {code: [] for code in trees}
    for code, texts in trees.items():
        sources = [x.source for x in texts]
        if source not in sources and {*names} != {"WC"}:
            raise ValueError(
                f"{code} has trees of {', '.join(sources)} and none of {source}, which tasks are "
                "tested on: give another source, or make tasks of one text with `build`"
            )
        pool = Pool.from_trees(texts)
        tested = [set() for _ in range(folds)]
        for base in pool.bases:
            number = zlib.crc32(base.encode())
            if split is not None:  # CRC is linear: a number before it would deal alike
                dealt = hashlib.sha256(f"{split} {document(base)}".encode())
                number = int(dealt.hexdigest(), 16)
            if base.startswith(f"{source}:"):
                tested[number % folds].add(base)
        for name in names:
            candidates = Candidates.from_trees(name, pool, rules or Rules())
            for fold, bases in enumerate(tested):
                test, train = candidates.only(bases), candidates.only({*pool.bases} - bases)
                total, least = min(most, train.largest), 12 * len(candidates.classes)
                sizes = [total - total // 6, total // 6, test.largest]
                if name == "WC":
                    total, test = min(most, candidates.largest), None
                    train, sizes = candidates, sizes_of(max(total, 7), (4, 1, 2))
                if total >= least and sizes[2] >= 2 * len(candidates.classes):
                    tasks[code].append(drawn(name, train, sizes, seed + fold, test))
    return tasks


#: A sentence of a part: position in the pool, class, tokens.
_Example = tuple[int, int, Tokens]


def _draw_balanced(
    name: str, candidates: Candidates, per_class: list[int], rng: np.random.Generator
) -> list[list[_Example]]:
    """Each class equally often in every part, within every bin."""
    cells = {cell: shuffled(positions, rng) for cell, positions in candidates.cells.items()}
    left = candidates.capacity
    parts = []
    for n in per_class:
        shares = _shares(n, left)
        left = {bin_: left[bin_] - share for bin_, share in shares.items()}
        taken = [
            (positions.pop(), label)
            for (bin_, label), positions in cells.items()
            for _ in range(shares[bin_])
        ]
        parts.append([(at, label, candidates.pool.tokens[at]) for at, label in taken])
    return parts


def _shares(total: int, capacity: dict[int, int]) -> dict[int, int]:
    """A total divided in proportion to capacities, none of which is exceeded."""
    whole = sum(capacity.values())
    shares = {bin_: total * size // whole for bin_, size in capacity.items()}
    by_remainder = sorted(capacity, key=lambda bin_: (-(total * capacity[bin_] % whole), bin_))
    for bin_ in by_remainder[: total - sum(shares.values())]:
        shares[bin_] += 1
    return shares


def _draw_changed(
    name: str, candidates: Candidates, per_class: list[int], rng: np.random.Generator
) -> list[list[_Example]]:
    """Half of every part changed, so that no example is like another or like another's base."""
    pool = candidates.pool
    waiting = shuffled([item.at for item in candidates.usable], rng)
    bases = {tree.key for tree in pool.trees}
    made = set()
    as_they_are = []  # what has no changed form that is not there already
    parts = []
    for n in per_class:
        examples = []
        while len(examples) < n:
            if not waiting:
                raise TooFewSentencesError(
                    f"{name} in {pool.language}: too many changed sentences are alike; lower the "
                    "sizes or add text"
                )
            at = waiting.pop()
            source = pool.trees[at].key
            for tokens in candidates.change(at, rng):
                key = letters(tokens)
                if key not in made and (key == source or key not in bases):
                    made.add(key)
                    examples.append((at, 1, tokens))
                    break
            else:
                as_they_are.append(at)
        for _ in range(n):
            at = as_they_are.pop() if as_they_are else waiting.pop()
            examples.append((at, 0, pool.tokens[at]))
        parts.append(examples)
    return parts
