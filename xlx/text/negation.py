"""Negation: does a sentence deny something? Decided in English, and the same in its translations.

Words decide: of parallel text the English sentence has one of `NEGATORS`, or none. As a class of
sentences it may be longer than the other, so each is taken with one of like length (`matched`).
How often the label holds where people read both: ``data/negation``.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from xlx.results import checks
from xlx.results.deferred import deferred
from xlx.text import parallel
from xlx.text.examples import Examples
from xlx.text.files import TextError, letters
from xlx.text.parallel import ParallelCorpus

optimize = deferred("scipy.optimize")

NEGATORS = (
    "not",
    "no",
    "never",
    "nothing",
    "none",
    "nor",
    "neither",
    "nobody",
    "nowhere",
    "cannot",
    "naught",
    "nought",
    "nay",
)
#: Other languages have a negator for these, or none, as it comes: alone they decide nothing.
UNSURE = ("without", "lest", "unless", "except", "until", "hardly", "scarcely")
CLASSES = ("affirmed", "negated")
#: Characters in English: what is shorter is a title, what is longer is cut at 128 subwords.
SHORTEST, LONGEST = 20, 240
#: What another book or domain counts, in logarithms of characters: a quarter longer.
ELSEWHERE = 0.25
#: To learn from, read by members of the family as translations; to test on, read by none.
LEARNT, UNREAD = "new-testament", ("new-testament-held-out", "wmt24pp", "flores200-negation")

_NEGATED, _OPEN = (
    re.compile(rf"\b(?:{'|'.join(x)})\b{more}", re.IGNORECASE)
    for x, more in ((NEGATORS, r"|n['’]t\b"), (UNSURE, ""))
)


def negated(english: Sequence[str]) -> ndarray:
    """Whether a sentence has a negator, int64 ``(n,)``: 1, 0, or -1 where that is not sure."""
    return np.array([1 if _NEGATED.search(x) else -bool(_OPEN.search(x)) for x in english], int)


def matched(
    english: Sequence[str],
    n: int | None,
    seed: int,
    domains: Sequence[str] | None = None,
    labels: ndarray | None = None,
) -> tuple[ndarray, ndarray]:
    """Positions and labels of n sentences, half of them negated: int64 ``(n,)`` each, in order.

    ``labels``: of another task than negation, 1, 0 or -1 as `negated` has them.

    The rarer class is drawn by ``seed`` (with n None it is taken whole), and to each sentence one
    of the other class is chosen, so that logarithms of lengths differ least in sum, where another
    of ``domains`` counts as `ELSEWHERE`; of equally good ones by ``seed``. TextError for an odd n,
    or more than there are.
    """
    lengths = np.array([len(x) for x in english])
    labels = negated(english) if labels is None else labels
    fits = (lengths >= SHORTEST) & (lengths <= LONGEST)
    sides = sorted((np.flatnonzero(fits & (labels == side)) for side in (0, 1)), key=len)
    checks.whole(n, "n", TextError)
    half = len(sides[0]) if n is None else n // 2
    if not 0 < half <= len(sides[0]) or (n is not None and n % 2):
        few = f"{len(sides[0])} sentences of each class fit: n is an even number up to twice that"
        raise TextError(f"{n} examples: {few}")
    rng, logs = np.random.default_rng(seed), np.log(lengths)
    rare, other = (rng.permutation(side) for side in sides)  # among equals the order decides
    few = rare[:half]
    apart = np.abs(logs[few][:, None] - logs[other])
    if domains is not None:
        where = np.asarray(domains)
        apart = apart + ELSEWHERE * (where[few][:, None] != where[other])
    alike = optimize.linear_sum_assignment(apart)[1]
    chosen = np.sort(np.r_[few, other[alike]])
    return chosen, labels[chosen]


def denials(corpora: Sequence[ParallelCorpus], n: int | None, seed: int) -> dict[str, Examples]:
    """Sentences of corpora with English in them by `matched`, the same in all languages.

    Corpus behind corpus, n of each; ids begin with it.
    """
    drawn = [(x, *matched(x.sentences["en"], n, seed, x.domains)) for x in corpora]
    ids = tuple(f"{x.name}:{x.ids[i]}" for x, places, _ in drawn for i in places)
    labels, sets = np.concatenate([of_corpus for *_, of_corpus in drawn]), {}
    for code in corpora[0].languages:
        name = " and ".join(f"{x.name} {code}, negation" for x in corpora)
        texts = tuple(x.sentences[code][i] for x, places, _ in drawn for i in places)
        sets[code] = Examples(name, code, texts, None, labels, CLASSES, ids)
    return sets


def parts(
    languages: Sequence[str], n_train: int | None, n_test: int | None, seed: int
) -> tuple[dict[str, Examples], dict[str, Examples]]:
    """Verses to learn from, and sentences of every corpus of `UNREAD` to test on, n of each.

    Ids begin with the corpus. The verses are the same whichever languages are asked for, but not
    with another seed. TextError as `matched`, for a language that not all corpora have, and where
    a sentence is in both parts.
    """
    everything = parallel.load(LEARNT, drop_duplicates=True)
    there = everything.languages
    for code in languages:
        checks.one_of(code, there, "negation in", TextError)
    unread = [parallel.load(name, there, drop_duplicates=True) for name in UNREAD]
    train, test = denials([everything], n_train, seed), denials(unread, n_test, seed)
    for code in languages:
        if both := {*map(letters, train[code].first)} & {*map(letters, test[code].first)}:
            raise TextError(f"negation, {code}: {min(both)} is to learn from and to test on")
    return tuple({code: sets[code] for code in languages} for sets in (train, test))
