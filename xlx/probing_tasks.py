"""The nine probing tasks of X-Probe, built from dependency trees in any language.

A probing task is a set of sentences with a label that a sentence vector should give away if it
holds a property of the sentence (section 4, after Conneau et al. 2018, SentEval). `build` makes a
task of `xlx.trees`: train, validation and test parts, balanced, with no sentence in common.

========= ============================================== ===========================================
task      classes                                        sentences that are usable
========= ============================================== ===========================================
SentLen   bins of the number of tokens                   all of these lengths
WC        words of middling frequency                    with one of the words, once
TreeDepth depths of the tree                             of these depths, paired within length bins
BiShift   original, shifted                              with two unlike neighbours
SubjNum   Sing, Plur                                     one nsubj of the root verb, with a number
ObjNum    Sing, Plur                                     one obj of the root verb, with a number
CoordInv  original, inverted                             two main clauses around a conjunction
SOMO      original, replaced                             with a word that can be replaced
Tense     Past, Pres                                     root verb of one of these tenses
========= ============================================== ===========================================

What the paper gives is in the defaults of `Rules`; what it does not give is chosen, and said, here
or there:

* Tokens are counted, swapped and replaced, as the text shows them (German *im* is one), and are
  in small letters, since a capital in the middle would give a swap away. Punctuation counts, and
  what closes the sentence stays where it is.
* "The head verb" is the root where its tag is VERB or AUX. Subtypes count: ``nsubj:pass`` is a
  subject. The number is that of the noun's or pronoun's own feature.
* CoordInv: the root verb has exactly one ``conj``, a verb too, joined by one ``cc``. What precedes
  the conjunction, with the commas beside it, and what follows it must be the two clauses; they
  change places around it. Gold trees do not tell two clauses from two verbs with one subject where
  subjects are dropped, so both are taken unless ``own_subjects`` asks for subjects.
* SOMO: word and replacement have the same tag (NOUN or VERB, as in SentEval), or syntax alone would
  tell; both bigrams of the replacement must be seen in the corpus of frequencies, and their natural
  logarithms differ from those of the word by 1 at most. An unseen bigram is comparable with none.
* Tense: the feature of the root as it stands, so that English "was sleeping" is Pres (its
  participle's) and "is built" Past. Where the root has none, that of its auxiliary or copula.
* SentEval also kept the nouns of SubjNum and ObjNum in test apart from those in train. The paper
  does not say so, and it is not done here.

Every sentence has one base, the sentence of a tree that it was made from; parts share none. In the
paper's released data they do in places (`read_senteval`, `overlaps`).

Ravishankar, Øvrelid and Velldal (2019); sections are numbered as there.
"""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from xlx import origins, work
from xlx.languages import lowered
from xlx.trees import Tree, Treebank, Trees, letters

#: The nine tasks (section 4), in the order of the paper's text.
TASKS: tuple[str, ...] = (
    *("SentLen", "WC", "TreeDepth", "BiShift", "SubjNum", "ObjNum", "CoordInv", "SOMO", "Tense"),
)
#: The tasks that change half of their sentences.
CHANGED: dict[str, tuple[str, str]] = {
    "BiShift": ("original", "shifted"),
    "CoordInv": ("original", "inverted"),
    "SOMO": ("original", "replaced"),
}
PARTS: tuple[str, ...] = ("train", "validation", "test")
#: Names of the tasks' files or folders in SentEval and X-Probe.
RELEASED: dict[str, str] = {
    "SentLen": "sentence_length",
    "WC": "word_content",
    "TreeDepth": "tree_depth",
    "BiShift": "bigram_shift",
    "SubjNum": "subj_number",
    "ObjNum": "obj_number",
    "CoordInv": "coordination_inversion",
    "SOMO": "odd_man_out",
    "Tense": "past_present",
}
#: Sentences of train, validation and test in the paper (section 6.1).
SIZES = (100_000, 10_000, 10_000)

_VERBS = ("VERB", "AUX")
_WORD = re.compile(r"[^\W\d_]")
_PUBLIC_PARTS = {"tr": "train", "va": "validation", "te": "test"}

#: A sentence as its tokens.
Tokens = tuple[str, ...]


class TooFewSentencesError(ValueError):
    """A language has too few sentences for a task; ``found`` and ``needed`` say how many."""

    def __init__(self, message: str, found: int, needed: int) -> None:
        super().__init__(message)
        self.found = found
        self.needed = needed


@dataclass(frozen=True)
class Rules:
    """What is open in the rules of the tasks.

    ``lengths``: fewest and most tokens of a sentence, in all tasks but SentLen (ours: what is
    shorter leaves little to probe).

    SentLen: bin i has ``length_edges[i]`` to ``length_edges[i + 1] - 1`` tokens; six bins, those of
    SentEval (5-8, 9-12, 13-16, 17-20, 21-25, 26-28), as the paper has six and no edges.

    WC: the ``n_words`` words of the text (what has a letter and no digit) that follow the
    ``first_rank`` most frequent ones. 1,000 as in the paper, which says of their ranks only that
    they are not SentEval's, 2,000 to 3,000: those are the default.

    TreeDepth: classes are the depths from ``depths[0]`` to ``depths[1]`` (steps from the root to
    the word farthest from it); within each bin of lengths (``depth_edges``, as above) every depth
    comes equally often. The paper gives neither.

    SOMO: ``max_log_difference`` of frequencies (1 in the paper) and the tags ``odd_tags`` of the
    words that are replaced.

    Tense: with ``auxiliaries``, a root without tense has that of its first auxiliary or copula that
    has one; else it is left out.

    CoordInv: with ``own_subjects``, both verbs must have a subject of their own.
    """

    lengths: tuple[int, int] = (5, 50)
    length_edges: tuple[int, ...] = (5, 9, 13, 17, 21, 26, 29)
    n_words: int = 1000
    first_rank: int = 2000
    depths: tuple[int, int] = (3, 7)
    depth_edges: tuple[int, ...] = (9, 13, 17, 21, 25, 29, 33, 37, 41)
    max_log_difference: float = 1.0
    odd_tags: tuple[str, ...] = ("NOUN", "VERB")
    auxiliaries: bool = True
    own_subjects: bool = False

    def __post_init__(self) -> None:
        for name in ("length_edges", "depth_edges"):
            edges = getattr(self, name)
            if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
                raise ValueError(f"{name} are {edges}: two or more numbers that rise are needed")
        for name in ("lengths", "depths"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ValueError(f"{name} are {low} to {high}: give the least and the greatest")
        if self.n_words < 2 or self.first_rank < 0:
            raise ValueError(
                f"n_words is {self.n_words} and first_rank {self.first_rank}: two words or more "
                "and a rank from 0 are needed"
            )


@dataclass(frozen=True)
class Part:
    """A part of a task.

    ``tokens`` has one tuple a sentence; ``labels`` is int64 ``(n,)``, positions in the task's
    classes; ``bases`` names the sentence that each was made from: source, colon, id of the tree.
    """

    tokens: tuple[Tokens, ...]
    labels: np.ndarray
    bases: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def keys(self) -> tuple[str, ...]:
        """Letters and digits of each sentence (`xlx.trees.letters`)."""
        return tuple(map(letters, self.tokens))


@dataclass(frozen=True)
class Task:
    """A probing task in a language; ``n_candidates`` sentences were usable for it."""

    name: str
    language: str
    classes: tuple[str, ...]
    train: Part
    validation: Part
    test: Part
    n_candidates: int

    def __repr__(self) -> str:
        sizes = " / ".join(f"{len(part):,}" for part in self.parts().values())
        return f"Task({self.name} {self.language}: {len(self.classes)} classes, {sizes})"

    def parts(self) -> dict[str, Part]:
        """Train, validation and test by name."""
        return {name: getattr(self, name) for name in PARTS}

    @property
    def majority(self) -> float:
        """Accuracy in test of the commonest class of train, of several the first: in [0, 1]."""
        counts = np.bincount(self.train.labels, minlength=len(self.classes))
        return float((self.test.labels == counts.argmax()).mean())

    def text_hash(self) -> str:
        """SHA-256 of the sentences and labels of all parts."""
        digest = hashlib.sha256("\t".join(self.classes).encode())
        for name, part in self.parts().items():
            digest.update(f"\n\n{name}\n".encode())
            for tokens, label in zip(part.tokens, part.labels.tolist(), strict=True):
                digest.update("\t".join((str(label), *tokens, "\n")).encode())
        return digest.hexdigest()

    def built(self) -> "Task":
        """Itself, as of a `Planned` task."""
        return self


# --- the sentences --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pool:
    """The distinct sentences of one language: trees, tokens as they are used, names of bases."""

    language: str
    trees: tuple[Tree, ...]
    tokens: tuple[Tokens, ...]
    bases: tuple[str, ...]

    @classmethod
    def of(cls, trees: Trees | Sequence[Trees], lower: bool) -> "_Pool":
        sources = [trees] if isinstance(trees, Trees) else list(trees)
        languages = sorted({each.language for each in sources})
        if len(languages) != 1:
            raise ValueError(
                f"trees are of {', '.join(languages) or 'no language'}: a task is built in one"
            )
        language, found = languages[0], {}
        for source in sources:
            for tree in source:
                found.setdefault(tree.key, (tree, f"{source.source}:{tree.id}"))
        found.pop("", None)  # punctuation alone
        kept = [tree for tree, _ in found.values()]
        tokens = [tree.tokens for tree in kept]
        if lower:  # a sentence at a time is faster than a token
            joined = (lowered("\n".join(each), language) for each in tokens)
            tokens = [tuple(each.split("\n")) for each in joined]
        return cls(language, tuple(kept), tuple(tokens), tuple(base for _, base in found.values()))

    def within(self, rules: Rules) -> Iterator[int]:
        """Positions of the sentences of the rules' lengths."""
        low, high = rules.lengths
        return (i for i, each in enumerate(self.tokens) if low <= len(each) <= high)


class _Usable(NamedTuple):
    """A sentence (position in the pool) with its class and the bin within which it is balanced."""

    at: int
    label: int
    bin: int = 0


# --- what is usable, by task ----------------------------------------------------------------------


def _bin(value: int, edges: Sequence[int]) -> int:
    """The bin of a value among edges; -1 outside."""
    return -1 if not edges[0] <= value < edges[-1] else sum(value >= edge for edge in edges) - 1


def _names(edges: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"{low}-{high - 1}" for low, high in pairwise(edges))


def _sent_len(pool: _Pool, rules: Rules) -> tuple[tuple[str, ...], list[_Usable]]:
    found = [_Usable(i, _bin(len(t), rules.length_edges)) for i, t in enumerate(pool.tokens)]
    return _names(rules.length_edges), [each for each in found if each.label >= 0]


def _word_content(pool: _Pool, rules: Rules) -> tuple[tuple[str, ...], list[_Usable]]:
    counts = Counter(token for tokens in pool.tokens for token in tokens)
    ranked = sorted(
        (w for w in counts if _WORD.search(w) and not any(map(str.isdigit, w))),
        key=lambda word: (-counts[word], word),
    )
    needed = rules.first_rank + rules.n_words
    if len(ranked) < needed:
        raise TooFewSentencesError(
            f"WC in {pool.language}: the text has {len(ranked)} words, and {needed} are needed for "
            f"{rules.n_words} that follow the {rules.first_rank} most frequent; lower n_words or "
            "first_rank",
            len(ranked),
            needed,
        )
    words = tuple(ranked[rules.first_rank : needed])
    label = {word: i for i, word in enumerate(words)}
    found = []
    for i in pool.within(rules):
        there = [label[token] for token in pool.tokens[i] if token in label]
        if len(there) == 1:
            found.append(_Usable(i, there[0]))
    return words, found


def _tree_depth(pool: _Pool, rules: Rules) -> tuple[tuple[str, ...], list[_Usable]]:
    low, high = rules.depths
    found = []
    for i in pool.within(rules):
        bin_, depth = _bin(len(pool.tokens[i]), rules.depth_edges), pool.trees[i].depth
        if bin_ >= 0 and low <= depth <= high:
            found.append(_Usable(i, depth - low, bin_))
    return tuple(map(str, range(low, high + 1))), found


def _number(relation: str) -> Callable[[_Pool, Rules], tuple[tuple[str, ...], list[_Usable]]]:
    """Usable sentences by the number of the root verb's only subject or object."""
    classes = ("Sing", "Plur")

    def find(pool: _Pool, rules: Rules) -> tuple[tuple[str, ...], list[_Usable]]:
        found = []
        for i in pool.within(rules):
            tree = pool.trees[i]
            nouns = tree.children(tree.root, relation)
            if tree.upos[tree.root] in _VERBS and len(nouns) == 1:
                number = tree.features[nouns[0]].get("Number")
                if number in classes:
                    found.append(_Usable(i, classes.index(number)))
        return classes, found

    return find


def _tense(pool: _Pool, rules: Rules) -> tuple[tuple[str, ...], list[_Usable]]:
    classes = ("Past", "Pres")
    found = []
    for i in pool.within(rules):
        tree = pool.trees[i]
        if tree.upos[tree.root] not in _VERBS:
            continue
        places = [tree.root]
        if rules.auxiliaries:
            places += tree.children(tree.root, "aux", "cop")
        tenses = [tree.features[word]["Tense"] for word in places if "Tense" in tree.features[word]]
        if tenses and tenses[0] in classes:
            found.append(_Usable(i, classes.index(tenses[0])))
    return classes, found


_Finder = Callable[[_Pool, Rules], tuple[tuple[str, ...], list[_Usable]]]
_FINDERS: dict[str, _Finder] = {
    "SentLen": _sent_len,
    "WC": _word_content,
    "TreeDepth": _tree_depth,
    "SubjNum": _number("nsubj"),
    "ObjNum": _number("obj"),
    "Tense": _tense,
}


# --- how sentences are changed --------------------------------------------------------------------

#: What changes a sentence of the pool: all its changed forms, in an order drawn by the generator;
#: without one, in any order that is the same in every run, and none before it is asked for.
_Changer = Callable[[int, np.random.Generator | None], Iterator[Tokens]]


def _end(tree: Tree) -> int:
    """How many words come before the punctuation that closes the sentence."""
    end = len(tree)
    while end and tree.upos[end - 1] == "PUNCT":
        end -= 1
    return end


def _shuffled(items: Iterable, rng: np.random.Generator | None) -> Iterable:
    if rng is None:
        return items
    items = list(items)
    return [items[i] for i in rng.permutation(len(items))]


def _bigram_shifts(pool: _Pool) -> _Changer:
    """Two neighbours that differ change places."""

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        tree, tokens = pool.trees[at], pool.tokens[at]
        end = _end(tree)
        n_tokens = tree.token_of[end - 1] + 1 if end else 0
        pairs = [i for i in range(n_tokens - 1) if tokens[i] != tokens[i + 1]]
        for i in _shuffled(pairs, rng):
            yield (*tokens[:i], tokens[i + 1], tokens[i], *tokens[i + 2 :])

    return changed


def clauses(tree: Tree, *, own_subjects: bool = False) -> tuple[int, int, int] | None:
    """Where two coordinated main clauses are: positions (from 0) among the tokens, or None.

    Of ``(a, b, c)``, tokens 0 to a - 1 are the first clause, a to b - 1 the conjunction with the
    punctuation beside it, b to c - 1 the second clause, and c to the end closing punctuation.
    None where the sentence has not exactly two, or one of them is not a stretch of its own.
    ``own_subjects`` as in `Rules`.
    """
    root, conjuncts = tree.root, tree.children(tree.root, "conj")
    if len(conjuncts) != 1:
        return None
    (other,) = conjuncts
    if tree.upos[root] not in _VERBS or tree.upos[other] not in _VERBS:
        return None
    if own_subjects and not all(tree.children(i, "nsubj", "csubj") for i in (root, other)):
        return None
    # UD 1 has the conjunction below the first conjunct, UD 2 below the second.
    joining = [
        i for i in tree.children(root, "cc") + tree.children(other, "cc") if root < i < other
    ]
    if len(joining) != 1:
        return None
    first, second = joining[0], joining[0] + 1
    end = _end(tree)
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


def _coordination_inversions(pool: _Pool, rules: Rules) -> _Changer:
    """The clauses change places around the conjunction."""

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        found = clauses(pool.trees[at], own_subjects=rules.own_subjects)
        if found is not None:
            a, b, c = found
            tokens = pool.tokens[at]
            if tokens[:a] != tokens[b:c]:
                yield (*tokens[b:c], *tokens[a:b], *tokens[:a], *tokens[c:])

    return changed


@dataclass(frozen=True)
class _Bigrams:
    """How often each bigram occurs: counts by its first token, and by its second."""

    after: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    before: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(cls, lines: Iterable[Sequence[str]]) -> "_Bigrams":
        made = cls()
        for tokens in lines:
            for first, second in pairwise(tokens):
                made.after[first][second] += 1
                made.before[second][first] += 1
        return made

    def alike(self, previous: str, word: str, following: str, limit: float) -> Iterator[str]:
        """Other words both of whose bigrams here are about as frequent as those of the word."""
        left, right = self.after.get(previous, {}), self.before.get(following, {})
        n_left, n_right = left.get(word, 0), right.get(word, 0)
        if not (n_left and n_right):
            return
        fewer, more = sorted((left, right), key=len)
        for other in fewer:  # in order of first occurrence, the same in every run; a set has none
            if (
                other in more
                and other != word
                and abs(math.log(left[other] / n_left)) <= limit
                and abs(math.log(right[other] / n_right)) <= limit
            ):
                yield other


def _tags(tree: Tree) -> list[str]:
    """The tag of each token; "" where it is several words."""
    found, sizes = [""] * len(tree.tokens), Counter(tree.token_of)
    for at, tag in zip(tree.token_of, tree.upos, strict=True):
        if sizes[at] == 1:
            found[at] = tag
    return found


def _odd_words(pool: _Pool, rules: Rules, lines: Iterable[Sequence[str]] | None) -> _Changer:
    """A word gives place to one of the same tag that is as frequent beside its neighbours."""
    bigrams = _Bigrams.of(pool.tokens if lines is None else lines)
    tags = [_tags(tree) for tree in pool.trees]
    known: dict[str, set[str]] = defaultdict(set)
    for tokens, of_tokens in zip(pool.tokens, tags, strict=True):
        for token, tag in zip(tokens, of_tokens, strict=True):
            known[token].add(tag)

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        tokens, of_tokens = pool.tokens[at], tags[at]
        inner = [i for i in range(1, len(tokens) - 1) if of_tokens[i] in rules.odd_tags]
        for i in _shuffled(inner, rng):
            alike = bigrams.alike(*tokens[i - 1 : i + 2], rules.max_log_difference)
            same_tag = (word for word in alike if of_tokens[i] in known.get(word, ()))
            for word in _shuffled(same_tag, rng):
                yield (*tokens[:i], word, *tokens[i + 1 :])

    return changed


def _changer(
    name: str, pool: _Pool, rules: Rules, frequencies: Iterable[Sequence[str]] | None
) -> _Changer:
    if name == "BiShift":
        return _bigram_shifts(pool)
    if name == "CoordInv":
        return _coordination_inversions(pool, rules)
    return _odd_words(pool, rules, frequencies)


# --- building -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Candidates:
    """The usable sentences of a task; those of a task that changes some have no class yet (0)."""

    pool: _Pool
    classes: tuple[str, ...]
    usable: list[_Usable]
    change: _Changer | None

    @classmethod
    def of(
        cls,
        name: str,
        trees: Trees | Sequence[Trees],
        rules: Rules,
        lower: bool,
        frequencies: Iterable[Sequence[str]] | None,
    ) -> "_Candidates":
        if name not in TASKS:
            raise ValueError(f"there is no task {name!r}; there are {', '.join(TASKS)}")
        if frequencies is not None and name != "SOMO":
            raise ValueError(f"{name} asks for no frequencies; only SOMO does")
        pool = _Pool.of(trees, lower)
        if name in _FINDERS:
            return cls(pool, *_FINDERS[name](pool, rules), None)
        change = _changer(name, pool, rules, frequencies)
        usable = [_Usable(i, 0) for i in pool.within(rules) if any(change(i, None))]
        return cls(pool, CHANGED[name], usable, change)

    @property
    def cells(self) -> dict[tuple[int, int], list[int]]:
        """Positions in the pool by bin and class, all classes in each bin that there is."""
        n_classes = 1 if self.change else len(self.classes)
        bins = sorted({each.bin for each in self.usable})
        found = {(bin_, label): [] for bin_ in bins for label in range(n_classes)}
        for each in self.usable:
            found[each.bin, each.label].append(each.at)
        return found

    @property
    def capacity(self) -> dict[int, int]:
        """How many examples of each class every bin can give."""
        if self.change:
            return {0: len(self.usable) // 2}
        found: dict[int, int] = {}
        for (bin_, _), positions in self.cells.items():
            found[bin_] = min(found.get(bin_, len(positions)), len(positions))
        return found

    @property
    def largest(self) -> int:
        """The most sentences of a balanced task."""
        return len(self.classes) * sum(self.capacity.values())


def counts(
    name: str,
    trees: Trees | Sequence[Trees],
    rules: Rules | None = None,
    *,
    lower: bool = True,
    frequencies: Iterable[Sequence[str]] | None = None,
) -> pd.DataFrame:
    """How many sentences are usable for a task, by class.

    Returns columns task, language, class, bin (of lengths, in TreeDepth; else ""), sentences. A
    task that changes half of its sentences has one row, of the class "usable".

    Parameters and errors as in `build`.
    """
    rules = rules or Rules()
    found = _Candidates.of(name, trees, rules, lower, frequencies)
    bins = _names(rules.depth_edges) if name == "TreeDepth" else ("",)
    classes = ("usable",) if found.change else found.classes
    cells = found.cells
    rows = [
        (name, found.pool.language, class_, bin_, len(cells.get((b, c), ())))
        for b, bin_ in enumerate(bins)
        for c, class_ in enumerate(classes)
    ]
    return pd.DataFrame(rows, columns=["task", "language", "class", "bin", "sentences"])


def largest(
    name: str,
    trees: Trees | Sequence[Trees],
    rules: Rules | None = None,
    *,
    lower: bool = True,
    frequencies: Iterable[Sequence[str]] | None = None,
) -> int:
    """The most sentences that a balanced task can have, all parts together.

    `build` succeeds with any sizes that sum to no more (`sizes_of`) and give each part a sentence
    a class. Parameters and errors as in `build`.
    """
    return _Candidates.of(name, trees, rules or Rules(), lower, frequencies).largest


def sizes_of(total: int, proportions: tuple[int, int, int] = SIZES) -> tuple[int, int, int]:
    """Sizes of train, validation and test that sum to a total, in the proportions given.

    Raises ValueError where a part would be empty.
    """
    _, *others = (total * each // sum(proportions) for each in proportions)
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
    lower: bool = True,
    rules: Rules | None = None,
    frequencies: Iterable[Sequence[str]] | None = None,
) -> Task:
    """Build a probing task (section 4).

    Parameters
    ----------
    name : one of `TASKS`.
    trees : parsed sentences of one language, of one source or several; of sentences that are the
        same (letters and digits), the first is taken.
    sizes : sentences of train, validation and test; the paper's by default (section 6.1). A part
        has so many of each class as go into its size: of 100 and six classes, 6 × 16.
    seed : of what is drawn.
    lower : small letters, as the language has them.
    rules : see `Rules`.
    frequencies : tokenised sentences to count the bigrams of SOMO in, in small letters if `lower`;
        None for those of `trees`. In other tasks it is an error.

    Returns
    -------
    Task
        In every part each class comes equally often (within each bin of lengths in TreeDepth), and
        no two examples of the task have the same base or the same letters and digits.

    Raises TooFewSentencesError (with what was found and is needed), ValueError for an unknown task,
    trees of several languages, or a part of fewer sentences than there are classes.
    """
    found = _Candidates.of(name, trees, rules or Rules(), lower, frequencies)
    return _drawn(name, found, sizes, seed)


def _drawn(name: str, found: _Candidates, sizes: tuple[int, int, int], seed: int) -> Task:
    """A task of what is usable."""
    n_classes = len(found.classes)
    each = [size // n_classes for size in sizes]
    if min(each) < 1:
        raise ValueError(
            f"{name}: parts of {', '.join(map(str, sizes))} sentences; each needs one or more of "
            f"its {n_classes} classes"
        )
    _check_enough(name, found, sum(each))
    rng = np.random.default_rng([seed, *name.encode()])
    draw = _draw_changed if found.change else _draw_balanced
    parts = {
        part: _part(found.pool, examples, rng)
        for part, examples in zip(PARTS, draw(name, found, each, rng), strict=True)
    }
    return Task(name, found.pool.language, found.classes, **parts, n_candidates=len(found.usable))


def _check_enough(name: str, found: _Candidates, needed: int) -> None:
    """Raise where a class cannot have as many sentences as are needed."""
    there = sum(found.capacity.values())
    if there >= needed:
        return
    language = found.pool.language
    if found.change:
        message = (
            f"{name} in {language}: {len(found.usable)} sentences are usable, and {2 * needed} are "
            "needed"
        )
    else:
        totals = Counter({class_: 0 for class_ in found.classes})
        for each in found.usable:
            totals[found.classes[each.label]] += 1
        rare = [f"{class_}: {n}" for class_, n in totals.most_common()[::-1][:5]]
        more = f" and {len(totals) - len(rare)} more" * (len(totals) > len(rare))
        message = f"{name} in {language}: {needed} sentences of each class are needed, and there "
        message += f"are {', '.join(rare)}{more}"
        if name == "TreeDepth":
            message += f"; {there} of each class have equals in length"
    raise TooFewSentencesError(
        f"{message}; lower the sizes, change the rules or add text", there, needed
    )


#: A sentence of a part: position in the pool, class, tokens.
_Example = tuple[int, int, Tokens]


def _part(pool: _Pool, examples: list[_Example], rng: np.random.Generator) -> Part:
    """The part of some examples, in random order."""
    at, labels, tokens = zip(*_shuffled(examples, rng), strict=True)
    bases = tuple(pool.bases[i] for i in at)
    return Part(tokens, np.array(labels, dtype=np.int64), bases)


def _draw_balanced(
    name: str, found: _Candidates, each: list[int], rng: np.random.Generator
) -> list[list[_Example]]:
    """Each class equally often in every part, within every bin."""
    cells = {cell: _shuffled(positions, rng) for cell, positions in found.cells.items()}
    left = found.capacity
    parts = []
    for n in each:
        shares = _shares(n, left)
        left = {bin_: left[bin_] - share for bin_, share in shares.items()}
        parts.append(
            [
                (at, label, found.pool.tokens[at])
                for (bin_, label), positions in cells.items()
                for at in (positions.pop() for _ in range(shares[bin_]))
            ]
        )
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
    name: str, found: _Candidates, each: list[int], rng: np.random.Generator
) -> list[list[_Example]]:
    """Half of every part changed, so that no example is like another or like another's base."""
    pool = found.pool
    waiting = _shuffled([each.at for each in found.usable], rng)
    bases = {tree.key for tree in pool.trees}
    made: set[str] = set()
    as_they_are: list[int] = []  # what has no changed form that is not there already
    parts = []
    for n in each:
        examples: list[_Example] = []
        while len(examples) < n:
            if not waiting:
                there = 2 * (sum(each) - n + len(examples))
                raise TooFewSentencesError(
                    f"{name} in {pool.language}: too many changed sentences are alike; {there} of "
                    f"{2 * sum(each)} examples could be made; lower the sizes or add text",
                    there,
                    2 * sum(each),
                )
            at = waiting.pop()
            own = pool.trees[at].key
            for tokens in found.change(at, rng):
                key = letters(tokens)
                if key not in made and (key == own or key not in bases):
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


def alike(
    trees: Mapping[str, Trees | Sequence[Trees]],
    names: Sequence[str] = TASKS,
    *,
    most: int = sum(SIZES),
    least: int = 0,
    proportions: tuple[int, int, int] = SIZES,
    n_test: int = 0,
    max_draws: int = 1,
    seed: int = 0,
    rules: Rules | None = None,
) -> tuple[dict[str, list[Task]], pd.DataFrame]:
    """Tasks of one size in all languages, so that accuracies compare languages and not sizes.

    The size of a task is the greatest that every language can have, `most` at most. A language that
    cannot have `least` does not have the task.

    Parameters
    ----------
    trees : by language, as `build` takes them.
    names : of `TASKS`.
    most, least : sentences of all parts together.
    proportions : of train, validation and test.
    n_test, max_draws : a task with fewer test sentences than `n_test` is drawn again with other
        seeds, until there are so many in all draws or `max_draws` are done. Draws are of one stock
        and may share sentences.
    seed : of the first draw; the next ones count up.
    rules : see `Rules`.

    Returns
    -------
    tasks : dict
        By language a list of tasks, the draws of one after another.
    table : DataFrame
        A row a task and language: ``task``, ``language``, ``usable`` (the largest size that the
        language could have), ``train``, ``validation``, ``test``, ``draws``; zeros where a language
        has not the task.

    Raises TooFewSentencesError where no language has `least`, and as `build`.
    """
    if not trees:
        raise ValueError("there are no trees: give those of a language or more")
    if min(proportions) < 1:
        raise ValueError(
            f"proportions are {proportions}: each part needs a share, such as (8, 1, 1)"
        )
    tasks: dict[str, list[Task]] = {language: [] for language in trees}
    least = max(least, 1)
    rows = []
    for name in names:
        found = {language: _found(name, own, rules or Rules()) for language, own in trees.items()}
        usable = {language: own.largest if own else 0 for language, own in found.items()}
        there = [language for language, total in usable.items() if total >= least]
        if not there:
            total = max(usable.values())
            raise TooFewSentencesError(
                f"{name}: {least} sentences are needed, and no language has more than {total}; "
                "lower `least`, change the rules or add text",
                total,
                least,
            )
        sizes = sizes_of(min(most, *(usable[language] for language in there)), proportions)
        draws = min(max_draws, max(1, -(-n_test // sizes[2])))
        for language, total in usable.items():
            own = [
                _drawn(name, found[language], sizes, seed + draw)
                for draw in range(draws if language in there else 0)
            ]
            tasks[language] += own
            parts = [len(part) for part in own[0].parts().values()] if own else [0, 0, 0]
            rows.append((name, language, total, *parts, len(own)))
    return tasks, pd.DataFrame(rows, columns=["task", "language", "usable", *PARTS, "draws"])


def _found(name: str, trees: Trees | Sequence[Trees], rules: Rules) -> _Candidates | None:
    """What is usable for a task, or nothing where not even its classes are there."""
    try:
        return _Candidates.of(name, trees, rules, True, None)
    except TooFewSentencesError:
        return None


# --- tasks that are built when they are needed ----------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The arguments of `alike`, with treebanks for trees."""

    treebanks: tuple[tuple[str, tuple[Treebank, ...]], ...]
    names: tuple[str, ...]
    most: int
    least: int
    proportions: tuple[int, int, int]
    n_test: int
    max_draws: int
    seed: int
    rules: Rules

    def about(self) -> dict[str, object]:
        banks = {language: [own.about for own in banks] for language, banks in self.treebanks}
        rest = {name: own for name, own in vars(self).items() if name not in ("treebanks", "rules")}
        return {"trees": banks, "rules": asdict(self.rules)} | rest


@dataclass(frozen=True)
class Planned:
    """A task that is known by its hash and built, with all of its plan, when it is needed.

    ``n_distinct``: sentences, by their base, that some draw of the task tests on. ``majority`` as
    of `Task`; ``overlaps``: sentences, bags and bases that two parts share, after `overlaps`.
    ``examples``: of the first and the last class, the shortest sentence of the test part.
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

    def built(self) -> Task:
        """The task. Raises RuntimeError where the trees do not give it any more."""
        tasks, _ = _built(self.plan)
        own = [task for task in tasks[self.language] if task.name == self.name]
        if len(own) <= self.draw or own[self.draw].text_hash() != self.hash:
            raise RuntimeError(
                f"{self.name} in {self.language} is not the task that was planned: trees or rules "
                "have changed; plan again in a new process"
            )
        return own[self.draw]


def planned(
    treebanks: Mapping[str, Sequence[Treebank]],
    names: Sequence[str] = TASKS,
    *,
    most: int = sum(SIZES),
    least: int = 0,
    proportions: tuple[int, int, int] = SIZES,
    n_test: int = 0,
    max_draws: int = 1,
    seed: int = 0,
    rules: Rules | None = None,
) -> tuple[dict[str, list[Planned]], pd.DataFrame]:
    """As `alike`, of treebanks that are read only where the tasks themselves are needed."""
    banks = tuple((language, tuple(own)) for language, own in treebanks.items())
    plan = _Plan(
        banks, tuple(names), most, least, tuple(proportions), n_test, max_draws, seed,
        rules or Rules(),
    )  # fmt: skip
    rows = work.result(TASK_SETS, plan.about(), plan)
    tasks: dict[str, list[Planned]] = {language: [] for language in treebanks}
    for row in rows[rows["hash"] != ""].itertuples():
        examples = {row.first_class: row.first_example, row.last_class: row.last_example}
        shared = {kind: int(getattr(row, kind)) for kind in _SHARED}
        numbers = int(row.draw), int(row.classes), int(row.n_distinct), float(row.majority)
        own = Planned(row.task, row.language, *numbers, shared, examples, row.hash, plan)
        tasks[row.language].append(own)
    table = rows[rows["draw"] == 0].reset_index(drop=True)
    return tasks, table[["task", "language", "usable", *PARTS, "draws"]]


#: What two parts of a task may share, as `overlaps` counts it.
_SHARED = ("sentences", "bags", "bases")


def n_distinct(tasks: Iterable[Task]) -> int:
    """Sentences, by their base, that some of the tasks tests on."""
    return len({base for task in tasks for base in task.test.bases})


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
            shared = overlaps(task).query("first != second")[list(_SHARED)].sum().to_dict()
            about = {"draw": draw, "hash": task.text_hash(), "classes": len(task.classes)}
            about |= {"n_distinct": distinct, "majority": task.majority}
            for place, label in (("first", 0), ("last", len(task.classes) - 1)):
                about[f"{place}_class"] = task.classes[label]
                about[f"{place}_example"] = " ".join(_shortest(task, label))
            rows.append(row | shared | about)
    numbers = dict.fromkeys(("classes", "n_distinct", "majority", *_SHARED), 0)
    texts = dict.fromkeys(
        f"{place}_{what}" for place in ("first", "last") for what in ("class", "example")
    )
    return pd.DataFrame(rows).fillna(numbers | dict.fromkeys(texts, ""))


def _shortest(task: Task, label: int) -> Tokens:
    """The shortest sentence of the test part with a label: of those that read well, if there are.

    That is six tokens or more that begin with two words.
    """
    own = [task.test.tokens[i] for i in (task.test.labels == label).nonzero()[0]]
    fit = [x for x in own if len(x) > 5 and all(map(str.isalpha, x[:2]))] or own
    return min(fit, key=lambda tokens: (len(tokens), tokens), default=())


@lru_cache(maxsize=4)
def _built(plan: _Plan) -> tuple[dict[str, list[Task]], pd.DataFrame]:
    options = {name: own for name, own in vars(plan).items() if name not in ("treebanks", "names")}
    trees = {language: [own.trees for own in banks] for language, banks in plan.treebanks}
    return alike(trees, plan.names, **options)


#: The sizes, hashes and examples of a set of tasks; drawn from trees by the seed, so exact.
TASK_SETS = work.Kind("xprobe-tasks", _described, version=1, tolerance=1e-9)


# --- released data --------------------------------------------------------------------------------


def read_senteval(path: str | Path, name: str, language: str, *, lower: bool = False) -> Task:
    """A probing task as SentEval or X-Probe release theirs.

    ``path`` is a file of lines ``part<TAB>label<TAB>sentence``, parts ``tr``, ``va`` and ``te``, as
    SentEval has it, or a folder with ``tr.txt``, ``va.txt`` and ``te.txt`` of lines
    ``sentence<TAB>label``, as X-Probe has it, or of the former. Label and sentence may stand in
    either order, the same throughout, with more columns between them, which are passed over: a
    label has no spaces, and of the sentences some have. Sentences are split at spaces. Classes are
    the labels in order, numbers by value; a base is the file and line, as what a sentence was made
    from is not said. ``lower``: in small letters, as `build` has them.

    Raises FileNotFoundError where a file is missing, ValueError for a malformed line (named), where
    it cannot be told which are the labels, for a part without sentences, a single class.
    """
    path = Path(path)
    if path.is_dir():
        files = [(part, path / f"{part}.txt") for part in _PUBLIC_PARTS]
    else:
        files = [("", path)]
    lines: list[tuple[str, str, str, str]] = []  # part, two cells, file and line
    for of, file in files:
        if not file.is_file():
            raise FileNotFoundError(f"there is no {file}; give the file, or a folder with tr.txt")
        for number, line in enumerate(origins.decode(file.read_bytes(), str(file)), 1):
            cells = line.split("\t")
            part = of if of and (cells[0] != of or len(cells) < 3) else cells.pop(0)
            both = [cells[0].strip(), cells[-1].strip()]
            if part not in _PUBLIC_PARTS or len(cells) < 2 or not all(both):
                raise ValueError(
                    f"{file}, line {number}: not tr, va or te, a label and a sentence (in either "
                    "order), parted by tabs"
                )
            lines.append((part, *both, f"{file.name}:{number}"))
    spaced = [any(" " in line[cell] for line in lines) for cell in (1, 2)]
    if lines and spaced[0] == spaced[1]:
        raise ValueError(
            f"{path}: {'both' if spaced[0] else 'none'} of the two columns have spaces, so that it "
            "cannot be told which are the sentences and which the labels"
        )
    rows: dict[str, list[tuple[Tokens, str, str]]] = {part: [] for part in _PUBLIC_PARTS}
    for part, first, last, base in lines:
        text, label = (first, last) if spaced[0] else (last, first)
        text = lowered(text, language) if lower else text
        rows[part].append((tuple(text.split()), label, base))
    return _released(path, name, language, rows)


def read_released(
    folder: str | Path, language: str, names: Sequence[str] = TASKS, *, lower: bool = True
) -> list[Task]:
    """The released tasks of a language: a folder with a file or folder of `RELEASED` for each.

    Parameters and errors as in `read_senteval`.
    """
    found = []
    for name in names:
        place = Path(folder) / RELEASED[name]
        place = place if place.is_dir() else place.with_suffix(".txt")
        found.append(read_senteval(place, name, language, lower=lower))
    return found


def _released(
    path: Path, name: str, language: str, rows: dict[str, list[tuple[Tokens, str, str]]]
) -> Task:
    """The task of rows (tokens, label, base) by part."""
    if empty := [part for part, found in rows.items() if not found]:
        raise ValueError(f"{path} has no sentences of {', '.join(empty)}")
    labels = {label for found in rows.values() for _, label, _ in found}
    if len(labels) < 2:
        raise ValueError(f"{path}: all sentences have the label {labels.pop()}")
    numbers = all(re.fullmatch(r"-?[0-9]+", label) for label in labels)
    classes = tuple(sorted(labels, key=int if numbers else None))
    number = {label: i for i, label in enumerate(classes)}
    parts = {}
    for part, found in rows.items():
        tokens, of, bases = zip(*found, strict=True)
        coded = np.array([number[label] for label in of], dtype=np.int64)
        parts[_PUBLIC_PARTS[part]] = Part(tokens, coded, bases)
    return Task(name, language, classes, **parts, n_candidates=sum(map(len, rows.values())))


def overlaps(task: Task) -> pd.DataFrame:
    """What the parts of a task have in common; within one part, what it has twice.

    Returns a row for each pair of parts, each with itself too: first, second; of n_first and
    n_second sentences, how many distinct ones are in both (twice or more, within a part) by
    ``sentences`` (the same letters and digits), ``bags`` (the same tokens in any order: a sentence
    and its swapped form, which share a base) and ``bases``.
    """
    named = {
        name: {
            "sentences": Counter(part.keys),
            "bags": Counter(tuple(sorted(tokens)) for tokens in part.tokens),
            "bases": Counter(part.bases),
        }
        for name, part in task.parts().items()
    }
    rows = []
    for first, second in combinations_with_replacement(PARTS, 2):
        row: dict[str, object] = {"task": task.name, "language": task.language}
        row |= {"first": first, "second": second}
        row |= {"n_first": len(getattr(task, first)), "n_second": len(getattr(task, second))}
        for kind, of_first in named[first].items():
            if first == second:
                row[kind] = sum(n > 1 for n in of_first.values())
            else:
                row[kind] = len(of_first.keys() & named[second][kind].keys())
        rows.append(row)
    return pd.DataFrame(rows)
