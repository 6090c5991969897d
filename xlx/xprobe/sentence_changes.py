"""How sentences are changed for the probing tasks BiShift, CoordInv and SOMO.

* BiShift: two neighbours that differ change places; the punctuation at the end stays.
* CoordInv: the root verb has exactly one ``conj``, a verb too, joined by one ``cc``. What precedes
  the conjunction, with the commas beside it, and what follows it must be the two clauses; they
  change places around it. Gold trees do not tell two clauses from two verbs with one subject where
  subjects are dropped, so both are taken unless ``own_subjects`` asks for subjects.
* SOMO: word and replacement have the same tag (NOUN or VERB, as in SentEval), or syntax alone would
  tell; both bigrams of the replacement must be seen in the trees, and their natural logarithms
  differ from those of the word by 1 at most. An unseen bigram is comparable with none.

Ravishankar, Øvrelid and Velldal (2019), section 4.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from xlx.text.trees import Tree
from xlx.xprobe.probing_rules import VERBS, Pool, Rules, Tokens

#: The tasks that change half of their sentences.
CHANGED: dict[str, tuple[str, str]] = {
    "BiShift": ("original", "shifted"),
    "CoordInv": ("original", "inverted"),
    "SOMO": ("original", "replaced"),
}

#: What changes a sentence of the pool: all its changed forms, in an order drawn by the generator;
#: without one, in any order that is the same in every run, and none before it is asked for.
Changer = Callable[[int, np.random.Generator | None], Iterator[Tokens]]


def _end(tree: Tree) -> int:
    """How many words come before the punctuation that closes the sentence."""
    end = len(tree)
    while end and tree.upos[end - 1] == "PUNCT":
        end -= 1
    return end


def shuffled(items: Iterable, rng: np.random.Generator | None) -> Iterable:
    """The items in random order; as they are without a generator."""
    if rng is None:
        return items
    items = list(items)
    return [items[i] for i in rng.permutation(len(items))]


def bigram_shifts(pool: Pool) -> Changer:
    """Two neighbours that differ change places."""

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        tree, tokens = pool.trees[at], pool.tokens[at]
        end = _end(tree)
        n_tokens = tree.token_of[end - 1] + 1 if end else 0
        pairs = [i for i in range(n_tokens - 1) if tokens[i] != tokens[i + 1]]
        for i in shuffled(pairs, rng):
            yield (*tokens[:i], tokens[i + 1], tokens[i], *tokens[i + 2 :])

    return changed


def clauses(tree: Tree, *, own_subjects: bool = False) -> tuple[int, int, int] | None:
    """Where two coordinated main clauses are: positions (from 0) among the tokens, or None.

    Of ``(a, b, c)``, tokens 0 to a - 1 are the first clause, a to b - 1 the conjunction with the
    punctuation beside it, b to c - 1 the second clause, and c to the end closing punctuation.
    """
    root, conjuncts = tree.root, tree.children(tree.root, "conj")
    if len(conjuncts) != 1:
        return None
    (other,) = conjuncts
    if tree.upos[root] not in VERBS or tree.upos[other] not in VERBS:
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


def coordination_inversions(pool: Pool, rules: Rules) -> Changer:
    """The clauses change places around the conjunction."""

    def changed(at: int, rng: np.random.Generator | None) -> Iterator[Tokens]:
        places = clauses(pool.trees[at], own_subjects=rules.own_subjects)
        if places is not None:
            a, b, c = places
            tokens = pool.tokens[at]
            if tokens[:a] != tokens[b:c]:
                yield (*tokens[b:c], *tokens[a:b], *tokens[:a], *tokens[c:])

    return changed


class Bigrams:
    """How often each bigram occurs: counts by its first token, and by its second."""

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        self.after: dict[str, Counter[str]] = defaultdict(Counter)
        self.before: dict[str, Counter[str]] = defaultdict(Counter)
        for first, second in itertools.chain.from_iterable(map(itertools.pairwise, lines)):
            self.after[first][second] += 1
            self.before[second][first] += 1

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
    tags, sizes = [""] * len(tree.tokens), Counter(tree.token_of)
    for token, tag in zip(tree.token_of, tree.upos, strict=True):
        if sizes[token] == 1:
            tags[token] = tag
    return tags


def odd_words(pool: Pool, rules: Rules, bigrams: Bigrams) -> Changer:
    """A word gives place to one of the same tag that is as frequent beside its neighbours."""
    tags = [_tags(tree) for tree in pool.trees]
    known: dict[str, set[str]] = defaultdict(set)
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


def changer(name: str, pool: Pool, rules: Rules) -> Changer:
    """What changes the sentences of a task among `CHANGED`; bigrams are counted in the pool."""
    if name == "BiShift":
        return bigram_shifts(pool)
    if name == "CoordInv":
        return coordination_inversions(pool, rules)
    return odd_words(pool, rules, Bigrams(pool.tokens))
