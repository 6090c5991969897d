"""Tasks of overlap alone: is this the same sentence, or another one? Of parallel text.

A model that answers it across languages matches translations, without any labels; the surface of
texts (`surface`: length, digits, question marks) is what it could go by instead.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from xlx.text.corpora import ParallelCorpus
from xlx.text.examples import Examples
from xlx.text.files import TextError

#: The classes of `same_or_other`.
SAME: tuple[str, ...] = ("other", "same")
#: What `surface` counts as a question mark: Latin, full width and Arabic.
QUESTION_MARKS: frozenset[str] = frozenset("?\N{FULLWIDTH QUESTION MARK}\N{ARABIC QUESTION MARK}")


def same_or_other(corpus: ParallelCorpus, seed: int, *, alike: bool = True) -> dict[str, Examples]:
    """Each parallel sentence with itself and with another one: a task of overlap alone.

    Two pairs a sentence, "other" and "same", so that every sentence is as often first as second,
    same as other. The same pairs in every language; crossed, "same" means a translation. The other
    one is, if ``alike``, one like it: of all ways to give each sentence another, that with the
    least sum of differences in `surface`, mean over languages; no seed has a say, and who goes by
    length or digits alone is near chance. Else it is the next one of a random round through all
    sentences, which length and digits tell from a translation in four cases of five
    (`baselines.surface_rule`). Raises TextError for fewer than two sentences.
    """
    n = len(corpus)
    if n < 2:
        raise TextError(f"{corpus.name} has {n} sentences: another one needs two or more")
    if alike:
        following = _likest(corpus.sentences.values())
    else:
        round_ = np.random.default_rng(seed).permutation(n)
        following = np.empty(n, dtype=np.int64)
        following[round_] = np.roll(round_, -1)
    return {
        language: Examples(
            name=f"{corpus.name} {language}, same or other",
            language=language,
            first=tuple(text for text in sentences for _ in SAME),
            second=tuple(
                other
                for i, text in enumerate(sentences)
                for other in (sentences[following[i]], text)
            ),
            labels=np.tile([0, 1], n),
            classes=SAME,
            ids=tuple(f"{name}:{label}" for name in corpus.ids for label in SAME),
        )
        for language, sentences in corpus.sentences.items()
    }


def surface(texts: Sequence[str]) -> np.ndarray:
    """What shows of a text without reading it: float ``(n, 3)``.

    Natural logarithm of its number of characters (empty: 0), numbers of digits, question marks.
    """
    return np.array(
        [
            (
                np.log(max(1, len(text))),
                sum(character.isdigit() for character in text),
                sum(character in QUESTION_MARKS for character in text),
            )
            for text in texts
        ]
    )


def _likest(sides: Iterable[Sequence[str]]) -> np.ndarray:
    """Another position for each, int64 ``(n,)``, a permutation: least differences in `surface`."""
    shown = np.hstack([surface(texts) for texts in sides])
    apart = cdist(shown, shown, "cityblock")
    np.fill_diagonal(apart, 1 + apart.sum())  # never itself
    return linear_sum_assignment(apart)[1]


def same_or_other_parts(
    corpus: ParallelCorpus,
    language: str,
    n_train: int,
    n_test: int,
    seed: int,
    *,
    alike: bool = True,
) -> tuple[dict[str, Examples], dict[str, Examples]]:
    """`same_or_other` to learn from and to test on: no sentence is in both.

    The sentences are those that are shortest in ``language``, from 20 characters on, dealt out at
    random; ``n_train`` and ``n_test`` count pairs, two a sentence. Raises TextError for too few.
    """
    lengths = np.array([len(text) for text in corpus.sentences[language]])
    long_enough = [i for i in np.argsort(lengths, kind="stable") if lengths[i] >= 20]
    n_needed = n_train // 2 + n_test // 2
    if len(long_enough) < n_needed:
        raise TextError(
            f"{corpus.name} has {len(long_enough)} sentences of 20 characters or more in "
            f"{language}, and {n_train} and {n_test} pairs need {n_needed}"
        )
    dealt = np.random.default_rng(seed).permutation(long_enough[:n_needed])
    parts = np.split(dealt, [n_train // 2])
    return tuple(
        same_or_other(corpus.drop(set(range(len(corpus))) - set(part.tolist())), seed, alike=alike)
        for part in parts
    )
