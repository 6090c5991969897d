"""Labelled sentences and pairs as the inputs of a classifier, in several languages at once.

The interlingual transfer gap compares a training set with its translations (Chi et al., section
3.2), so it only means something where position i is the same example with the same label in every
language: `parallel_sets` holds sets to that, and mixes pairs over languages. Where no task has
labels, `random_labels` invents some for parallel sentences (section 3.2), and `corrupted` replaces
a share of those that there are (section 5.4, after Zhang et al. 2017). Tasks of overlap alone are
in `same_or_other`.

The words of a part can be put in random order (`Examples.shuffled`, the control tasks) or a part be
left out (`only`, a baseline): Rajaee and Monz.
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from xlx.core import checks
from xlx.text import labelled
from xlx.text.corpora import ParallelCorpus
from xlx.text.files import TextError
from xlx.text.parallel_sets import Rows, common, reordered, shortest
from xlx.text.segmentation import SPACELESS

#: The classes of random labels.
RANDOM: tuple[str, ...] = ("0", "1")
_PARTS = ("first", "second")


@dataclass(frozen=True, repr=False)
class Examples(Rows):
    """What a classifier reads, and what it is to answer, in one language.

    ``first`` has one string an example, ``second`` too where an example is a pair, else None;
    ``labels`` is int64 ``(n,)``, positions in ``classes``; ``ids`` tells examples apart and is the
    same in every language; ``name`` says in messages what this is, such as "xnli de train".
    """

    name: str
    language: str
    first: tuple[str, ...]
    second: tuple[str, ...] | None
    labels: np.ndarray
    classes: tuple[str, ...]
    ids: tuple[str, ...]
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
        both = zip(self.first, second, strict=True)
        return np.array([len(one) + len(other) for one, other in both], dtype=np.int64)

    def text_hash(self) -> str:
        """SHA-256 of texts and labels, each with its length, so that no two sets share one."""
        digest = hashlib.sha256()
        second = [""] * len(self) if self.second is None else self.second
        for row in zip(self.first, second, map(str, self.labels), strict=True):
            for text in row:
                data = text.encode()
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def shuffled(self, seed: int, *, parts: Sequence[str] = _PARTS) -> "Examples":
        """The words of each named part in random order, for the control tasks (section 5).

        Words are what stands between spaces; in Chinese, Japanese and Thai characters,
        spaces among them, with their combining marks. A text that occurs several times in a part
        (a premise) has one new order in all places, which depends on the seed and on where it
        occurs first, not on the other texts. A short text may, by chance, keep its old order.

        Of single sentences ``parts`` may name "second" too, which is then nothing to shuffle.
        TextError for another part, or where there is none to shuffle.
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

    def check_crossing(self) -> None:
        """Raise TextError for sentences, which have no second part to take from elsewhere."""
        _check_parts(self, ("second",))


def of_part(part: labelled.Pairs | labelled.Texts) -> Examples:
    """Examples of labelled pairs or sentences; classes in the order of `labelled.LABELS`."""
    if isinstance(part, labelled.Tagged):
        raise TextError(f"{part.task} labels words: there are NLI, PI and TOPIC to classify")
    classes = labelled.LABELS[part.task]
    pairs = isinstance(part, labelled.Pairs)
    return Examples(
        name=f"{part.source} {part.language} {part.split}",
        language=part.language,
        first=part.first if pairs else part.sentences,
        second=part.second if pairs else None,
        labels=np.array([classes.index(label) for label in part.labels], dtype=np.int64),
        classes=classes,
        ids=part.ids,
    )


def parallel_examples(
    task: str,
    languages: Sequence[str],
    split: str,
    n: int | None = None,
    *,
    source: str | None = None,
    path: str | Path | None = None,
    untranslated: bool = False,
) -> tuple[dict[str, Examples], dict[str, int]]:
    """A part of a task of `labelled` in several languages: what all of them have, n of it at most.

    ``n`` takes the `shortest`; None: all. Returns the sets and how many examples `common` left out.
    Raises ValueError for a language named twice and as `labelled.load_labelled` (whose ``source``,
    ``path`` and ``untranslated`` these are), TextError where nothing is in all languages.
    """
    options = {"source": source, "path": path, "untranslated": untranslated}
    sets, left_out = common(
        {
            code: of_part(labelled.load_labelled(task, code, split, **options))
            for code in checks.several(languages, "languages", once=True)
        }
    )
    kept = shortest(sets, n)
    return {code: examples.at(kept) for code, examples in sets.items()}, left_out


def of_corpus(corpus: ParallelCorpus, seed: int) -> dict[str, Examples]:
    """Parallel sentences with `random_labels`, the same in every language (section 3.2)."""
    labels = random_labels(len(corpus), seed)
    return {
        language: Examples(
            name=f"{corpus.name} {language}, random labels",
            language=language,
            first=sentences,
            second=None,
            labels=labels,
            classes=RANDOM,
            ids=corpus.ids,
        )
        for language, sentences in corpus.sentences.items()
    }


def random_labels(n: int, seed: int) -> np.ndarray:
    """n labels of Bernoulli(1/2), int64 (section 3.2)."""
    return np.random.default_rng(seed).integers(0, 2, n)


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
