"""The rules of X-Probe's nine probing tasks: which sentences of a treebank a task can use.

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

What the paper gives (section 4) is in the defaults of `Rules`; what it does not give is chosen, and
said, here or there:

* Tokens are counted, swapped and replaced, as the text shows them (German *im* is one), and are
  in small letters, since a capital in the middle would give a swap away. Punctuation counts, and
  what closes the sentence stays where it is.
* "The head verb" is the root where its tag is VERB or AUX. Subtypes count: ``nsubj:pass`` is a
  subject. The number is that of the noun's or pronoun's own feature.
* Tense: the feature of the root as it stands, so that English "was sleeping" is Pres (its
  participle's) and "is built" Past. Where the root has none, that of its auxiliary or copula.
* BiShift, CoordInv and SOMO: see `xlx.xprobe.sentence_changes`.

Ravishankar, Øvrelid and Velldal (2019); sections are numbered as there.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from xlx.core.languages import lowered
from xlx.text.trees import Tree, Trees

#: The nine tasks (section 4), in the order of the paper's text.
PROBING_TASKS: tuple[str, ...] = (
    *("SentLen", "WC", "TreeDepth", "BiShift", "SubjNum", "ObjNum", "CoordInv", "SOMO", "Tense"),
)

VERBS = ("VERB", "AUX")
_WORD = re.compile(r"[^\W\d_]")

#: A sentence as its tokens.
Tokens = tuple[str, ...]


class TooFewSentencesError(ValueError):
    """A language has too few sentences for a task; says how many."""


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
        for name in ("length_edges", "depth_edges", "lengths", "depths"):
            edges = getattr(self, name)
            if len(edges) < 2 or list(edges) != sorted(set(edges)):
                raise ValueError(f"{name} are {edges}: two or more numbers that rise are needed")
        if self.n_words < 2 or self.first_rank < 0:
            raise ValueError(
                f"n_words is {self.n_words} and first_rank {self.first_rank}: two words or more "
                "and a rank from 0 are needed"
            )


@dataclass(frozen=True)
class Pool:
    """The distinct sentences of one language: trees, tokens in small letters, names of bases."""

    language: str
    trees: tuple[Tree, ...]
    tokens: tuple[Tokens, ...]
    bases: tuple[str, ...]

    @classmethod
    def of(cls, trees: Trees | Sequence[Trees]) -> "Pool":
        """Of sentences that are the same (letters and digits), the first; ValueError of several
        languages."""
        sources = [trees] if isinstance(trees, Trees) else list(trees)
        languages = sorted({source.language for source in sources})
        if len(languages) != 1:
            raise ValueError(
                f"trees are of {', '.join(languages) or 'no language'}: a task is built in one"
            )
        distinct: dict[str, tuple[Tree, str]] = {}
        for source in sources:
            for tree in source:
                distinct.setdefault(tree.key, (tree, f"{source.source}:{tree.id}"))
        distinct.pop("", None)  # punctuation alone
        kept, bases = zip(*distinct.values(), strict=True) if distinct else ((), ())
        # a sentence at a time is faster than a token
        joined = (lowered("\n".join(tree.tokens), languages[0]) for tree in kept)
        return cls(languages[0], kept, tuple(tuple(text.split("\n")) for text in joined), bases)

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

# --- what is usable, by task ----------------------------------------------------------------------


def _bin(value: int, edges: Sequence[int]) -> int:
    """The bin of a value among edges; -1 outside."""
    return -1 if not edges[0] <= value < edges[-1] else sum(value >= edge for edge in edges) - 1


def _sent_len(pool: Pool, rules: Rules) -> Classed:
    names = tuple(f"{low}-{high - 1}" for low, high in pairwise(rules.length_edges))
    binned = [Usable(i, _bin(len(t), rules.length_edges)) for i, t in enumerate(pool.tokens)]
    return names, [item for item in binned if item.label >= 0]


def _word_content(pool: Pool, rules: Rules) -> Classed:
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
            "first_rank"
        )
    words = tuple(ranked[rules.first_rank : needed])
    label = {word: i for i, word in enumerate(words)}
    usable = []
    for i in pool.within(rules):
        there = [label[token] for token in pool.tokens[i] if token in label]
        if len(there) == 1:
            usable.append(Usable(i, there[0]))
    return words, usable


def _tree_depth(pool: Pool, rules: Rules) -> Classed:
    low, high = rules.depths
    usable = []
    for i in pool.within(rules):
        bin_, depth = _bin(len(pool.tokens[i]), rules.depth_edges), pool.trees[i].depth
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
    """The tense of the root verb, or of what helps it."""
    helping = tree.children(tree.root, "aux", "cop") if rules.auxiliaries else []
    tenses = (tree.features[word].get("Tense") for word in (tree.root, *helping))
    return next(filter(None, tenses), None)


def _of_root_verb(seen: Seen, *classes: str) -> "Finder":
    """Usable sentences by what a rule sees in those whose root is a verb."""

    def find(pool: Pool, rules: Rules) -> Classed:
        usable = []
        for i in pool.within(rules):
            tree = pool.trees[i]
            value = seen(tree, rules) if tree.upos[tree.root] in VERBS else None
            if value in classes:
                usable.append(Usable(i, classes.index(value)))
        return classes, usable

    return find


Finder = Callable[[Pool, Rules], Classed]
FINDERS: dict[str, Finder] = {
    "SentLen": _sent_len,
    "WC": _word_content,
    "TreeDepth": _tree_depth,
    "SubjNum": _of_root_verb(_number("nsubj"), "Sing", "Plur"),
    "ObjNum": _of_root_verb(_number("obj"), "Sing", "Plur"),
    "Tense": _of_root_verb(_tense, "Past", "Pres"),
}
