"""Labelled sentences and pairs as the inputs of a classifier, in several languages at once.

The interlingual transfer gap compares a training set with its translations (Chi et al., section
3.2), so position i must be the same example with the same label in every language: `parallel_sets`
holds sets to that, and mixes pairs over languages. Where no task has labels, `of_corpus` invents
some for parallel sentences (section 3.2), and `corrupted` replaces a share of those that there are
(section 5.4, after Zhang et al. 2017). The words of a part can be put in random order
(`Examples.shuffled`, the control tasks) or a part be left out (`only`, a baseline): Rajaee and
Monz. `labelled` loads examples, `sameness` makes tasks of overlap alone.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus
from xlx.text.parallel_sets import Rows, digest, reordered
from xlx.text.questions import SPACELESS

_PARTS = ("first", "second")


@dataclass(frozen=True, repr=False)
class Examples(Rows):
    """What a classifier reads, and what it is to answer, in one language.

    ``first`` has one string an example, ``second`` too where an example is a pair, else None;
    ``labels`` is int64 ``(n,)``, positions in ``classes``; ``ids`` tells examples apart and is the
    same in every language; ``name`` says in messages what this is, such as "xnli de train".
    ``left_out`` counts the rows of a local copy of PAWS-X without a label or a sentence.
    """

    name: str
    language: str
    first: tuple[str, ...]
    second: tuple[str, ...] | None
    labels: np.ndarray
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    left_out: int = 0
    rows: ClassVar[tuple[str, ...]] = ("first", "second", "labels", "ids")
    crossing: ClassVar[str] = "second"

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        object.__setattr__(self, "labels", labels.astype(np.int64))
        super().__post_init__()
        if len(labels) and not (labels.min() >= 0 and labels.max() < len(self.classes)):
            some = ", ".join(self.classes)
            raise TextError(f"{self.name}: a label is none of the {len(self.classes)} ({some})")

    def relabelled(self, labels: np.ndarray) -> "Examples":
        """The same texts with other labels."""
        return replace(self, labels=np.asarray(labels))

    @property
    def row_labels(self) -> list[str]:
        """The class of each example."""
        return [self.classes[label] for label in self.labels]

    @property
    def lengths(self) -> np.ndarray:
        """Characters of each example, of both parts: int64 ``(n,)``."""
        second = self.second or ("",) * len(self)
        return np.array([len(a) + len(b) for a, b in zip(self.first, second, strict=True)], int)

    def text_hash(self) -> str:
        """SHA-256 of texts and labels (`parallel_sets.digest`)."""
        second = self.second or ("",) * len(self)
        return digest(chain(*zip(self.first, second, map(str, self.labels), strict=True)))

    def table_hash(self) -> str:
        """SHA-256 of the examples as a file: the texts and the class a line, parted by tabs."""
        texts = [self.first] if self.second is None else [self.first, self.second]
        lines = map("\t".join, zip(*texts, self.row_labels, strict=True))
        return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()

    def shuffled(self, seed: int, *, parts: Sequence[str] = _PARTS) -> "Examples":
        """The words of each named part in random order, for the control tasks (section 5).

        Words are what stands between spaces; in Chinese, Japanese and Thai characters, spaces among
        them, with their combining marks. A text that occurs several times in a part (a premise) has
        one new order, which depends on the seed and on where it occurs first. Of single sentences
        ``parts`` may name "second" too, which is then nothing to shuffle. TextError for another
        part, or where there is none to shuffle.
        """
        parts = list(parts)
        if self.second is None and "first" in parts:
            parts = [part for part in parts if part != "second"]
        _check_parts(self, parts)
        changed = {}
        for number, (part, language) in enumerate(zip(_PARTS, self.languages, strict=True)):
            if part in parts:
                spaced = language.split("_")[0] not in SPACELESS
                split, join = partial(_words, spaced=spaced), (" " if spaced else "").join
                changed[part] = reordered(getattr(self, part), (seed, number), split, join)
        return replace(self, name=f"{self.name}, {' and '.join(changed)} shuffled", **changed)


def of_corpus(corpus: ParallelCorpus, seed: int) -> dict[str, Examples]:
    """Parallel sentences with labels of Bernoulli(1/2), the same in every language (3.2)."""
    labels = np.random.default_rng(seed).integers(0, 2, len(corpus))
    return {
        language: Examples(
            name=f"{corpus.name} {language}, random labels",
            language=language,
            first=sentences,
            second=None,
            labels=labels,
            classes=("0", "1"),
            ids=corpus.ids,
        )
        for language, sentences in corpus.sentences.items()
    }


def corrupted(labels: np.ndarray, ratio: float, n_classes: int, seed: int) -> np.ndarray:
    """The labels with a share of them drawn anew, uniformly over all classes (section 5.4).

    A new label may be the old one, as in Zhang et al. (2017): at ratio 1 a third of the labels of
    NLI still stand. With one seed, what is corrupted at a ratio is so, and alike, at every higher
    one; ``ratio`` in [0, 1] is of the number of examples, rounded.
    """
    if not 0 <= ratio <= 1:
        raise TextError(f"the ratio of corrupted labels is {ratio}: it lies between 0 and 1")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))[: round(ratio * len(labels))]
    drawn = rng.integers(0, n_classes, len(labels))
    new = np.array(labels)
    new[order] = drawn[order]
    return new


def class_counts(examples: Examples) -> dict[str, int]:
    """How often each class is the label."""
    counts = np.bincount(examples.labels, minlength=len(examples.classes))
    return dict(zip(examples.classes, counts.tolist(), strict=True))


def joined(examples: Examples, more: Examples) -> Examples:
    """Two sets of one language and the same classes as one; ids are told apart by their set."""
    if (examples.language, examples.classes) != (more.language, more.classes):
        raise TextError(f"{examples.name} and {more.name} differ in language or classes")
    if (examples.second is None) != (more.second is None):
        raise TextError(f"{examples.name} and {more.name} are not both of pairs or of sentences")
    return replace(
        examples,
        name=f"{examples.name} and {more.name}",
        first=examples.first + more.first,
        second=None if examples.second is None else examples.second + more.second,
        labels=np.concatenate([examples.labels, more.labels]),
        ids=tuple(f"1:{name}" for name in examples.ids) + tuple(f"2:{name}" for name in more.ids),
    )


def only(examples: Examples, part: str) -> Examples:
    """One part of each example as a sentence alone: "second" is the hypothesis without a premise.

    A baseline that cannot compare. TextError for a part that there is not.
    """
    _check_parts(examples, (part,))
    return replace(
        examples,
        name=f"{examples.name}, {part} only",
        language=examples.languages[_PARTS.index(part)],
        first=getattr(examples, part),
        second=None,
    )


def _check_parts(examples: Examples, parts: Sequence[str]) -> None:
    """Raise TextError for parts that an example does not have, or for none."""
    if not parts or (strange := [part for part in parts if part not in _PARTS]):
        named = ", ".join(map(repr, strange)) if parts else "none"
        raise TextError(f"parts of an example are {' and '.join(_PARTS)}; given: {named}")
    if "second" in parts and examples.second is None:
        raise TextError(f"{examples.name}: these are single sentences, without a second part")


def _words(text: str, spaced: bool) -> list[str]:
    """The words of a text, or its characters with their marks."""
    if spaced:
        return text.split()
    words: list[str] = []
    for character in text:
        if words and unicodedata.category(character).startswith("M"):
            words[-1] += character
        else:
            words.append(character)
    return words


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
