"""Sets of labelled sentences, pairs or questions: one per language, row i the same in all of them.

What cross-lingual comparisons need of any such set: `aligned` holds sets to being translations of
each other, `common` makes them so, `shortest` subsamples them, and `crossed` mixes two languages in
one input (Rajaee and Monz, section 3). `Rows` is the base of `labelled.Tagged`, of what a
classifier reads (`Examples`) and of what a reader reads (`questions.Questions`).

Where no task has labels, `of_corpus` invents some for parallel sentences (Chi et al., section 3.2).
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy import ndarray

from xlx.results import checks
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus


class Rows:
    """A set in one language, ``name`` it in messages; a dataclass that says what its rows are.

    ``rows`` names the fields with an entry a row (or None, for a part that there is not), one of
    them ``ids``, which tell rows apart and are the same in every language.
    """

    rows: ClassVar[tuple[str, ...]]
    #: What a row is called in messages.
    unit: ClassVar[str] = "example"
    #: The field whose text is of the other language in a crossed set.
    crossing: ClassVar[str] = ""

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.rows}
        sizes = {name: len(row) for name, row in given.items() if row is not None}
        if len(set(sizes.values())) > 1:
            numbers = ", ".join(f"{name} ({size})" for name, size in sizes.items())
            raise TextError(f"{self.name}: unequal numbers of {numbers}")
        for name, row in given.items():
            if row is not None and not isinstance(row, ndarray):
                checks.whole_characters(row, f"{self.name}: {name}", TextError)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {len(self)} {self.unit}s)"

    def at(self, positions: Iterable[int]) -> Self:
        """The rows at these positions alone, in this order."""
        places = list(positions)

        def taken(row: Any) -> Any:
            if isinstance(row, ndarray):
                return row[places]
            return row and tuple(row[i] for i in places)

        return replace(self, **{name: taken(getattr(self, name)) for name in self.rows})

    def take(self, n: int, seed: int | np.random.Generator) -> Self:
        """n rows drawn without replacement, in their order; all if n is not smaller.

        The same seed draws the same positions in every language of parallel sets.
        """
        if n < 1:
            raise TextError(f"{self.name}: cannot take {n}; take at least one.")
        if n >= len(self):
            return self
        drawn = np.random.default_rng(seed).choice(len(self), size=n, replace=False)
        return self.at(sorted(drawn.tolist()))

    def text_hash(self) -> str:
        """SHA-256 (`digest`) of what is read and what is answered, made once."""
        return self._hash

    @property
    def row_labels(self) -> Sequence[object]:
        """What must be alike in all languages at each position, beside the id."""
        return (None,) * len(self)

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of both sides: "en-de" is English, then German."""
        first, _, second = self.language.partition("-")
        return first, second or first


S = TypeVar("S", bound=Rows)


def aligned(by_language: Mapping[str, S]) -> dict[str, S]:
    """The sets as given, if position i is one row with one label in all of them.

    Raises TextError, with language, position and what to do, where a number, an id, the classes or
    a label differ, or where a set is named by another language than its own.
    """
    reference = _first(by_language)
    for language, rows in by_language.items():
        if rows.language != language:
            raise TextError(f"{rows.name} is given as the {rows.unit}s in {language}")
        check_parallel(rows, reference)
    return dict(by_language)


def _first(by_language: Mapping[str, S]) -> S:
    """The first of the sets."""
    if not by_language:
        raise TextError("there is nothing to compare in any language: name one or more")
    return next(iter(by_language.values()))


def check_parallel(rows: Rows, reference: Rows) -> None:
    """Raise TextError where two sets are not of the same rows in the same order."""
    unit, language, first = rows.unit, rows.language, reference.language
    if (n := len(rows)) != len(reference):
        raise TextError(
            f"{rows.name} has {n} {unit}s and {reference.name} {len(reference)}"
            ": no translations of each other; `common` keeps what all have"
        )
    if getattr(rows, "classes", ()) != getattr(reference, "classes", ()):
        raise TextError(f"{rows.name} and {reference.name} have different classes")
    here, theirs = (zip(x.ids, x.row_labels, strict=True) for x in (rows, reference))
    for i, ((name, label), (other, its)) in enumerate(zip(here, theirs, strict=True)):
        if (name, label) != (other, its):
            what = f"position {i} is {unit} {name} in {language} and {other} in {first}"
            if name == other:
                what = f"{unit} {name} is {label} in {language} and {its} in {first}"
            raise TextError(f"{rows.name}: {what}; `common` keeps what all have, with one label")


@checks.typed(TextError)
def common(by_language: Mapping[str, S]) -> tuple[dict[str, S], dict[str, int]]:
    """What all languages have, with the same label, in the order of the first language.

    Returns the sets and how many rows (of the first language) were left out: ``"missing"`` in
    another language, or of ``"other label"`` there. An id that occurs twice in a language is a
    TextError, and so is nothing left.
    """
    reference = _first(by_language)
    labels = {x: dict(zip(y.ids, y.row_labels, strict=True)) for x, y in by_language.items()}
    for language, rows in by_language.items():
        if len(labels[language]) < len(rows):
            raise TextError(f"{rows.name}: an id occurs twice, so it names no {rows.unit}")
    there = [name for name in reference.ids if all(name in x for x in labels.values())]
    alike = [name for name in there if len({x[name] for x in labels.values()}) == 1]
    if not alike:
        codes = ", ".join(by_language)
        raise TextError(f"no {reference.unit} of {reference.name} is in all of {codes}, one label")
    sets = {}
    for language, rows in by_language.items():
        place = {name: i for i, name in enumerate(rows.ids)}
        sets[language] = rows.at(place[name] for name in alike)
    left_out = {"missing": len(reference) - len(there), "other label": len(there) - len(alike)}
    return aligned(sets), left_out


@checks.typed(TextError)
def shortest(
    by_language: Mapping[str, S], n: int | None, per_context: int | None = None
) -> list[int]:
    """Positions of the n rows with the fewest characters, summed over languages; None: all.

    A subsample that makes fine-tuning several times faster, at the price of easier text. Ascending;
    ties go to the earlier position. Of questions the contexts count, and with ``per_context`` the
    first so many questions of a context (of the first language) alone.
    """
    for what, number in (("n", n), ("per_context", per_context)):
        checks.whole(number, what, TextError)
    sets = list(aligned(by_language).values())
    order = np.argsort(sum(rows.lengths for rows in sets), kind="stable").tolist()
    if per_context is not None:
        paragraphs, taken, some = sets[0].paragraphs, Counter(), []
        for i in order:
            taken[paragraphs[i]] += 1
            if taken[paragraphs[i]] <= per_context:
                some.append(i)
        order = some
    return sorted(order[:n])


@checks.typed(TextError)
def crossed(first: S, second: S) -> S:
    """The first side of one language with the second side of another (Rajaee and Monz, 3.1, 3.3).

    Of pairs the first texts with the second texts; of questions the contexts and answers with the
    questions. The language is named "en-de", and so in the name ("xnli en-de test"), unless both
    are of one; whatever else a set has is that of the first. Raises TextError for sentences without
    a second part, and where the two are not parallel (`aligned`).
    """
    side = first.crossing
    for rows in (first, second):
        if getattr(rows, side) is None:
            raise TextError(f"{rows.name}: these are single sentences, without a second part")
    check_parallel(second, first)
    here, there = first.languages[0], second.languages[1]
    language = here if here == there else f"{here}-{there}"
    # the language as a word of its own: the "en" of "xnli en test", not that of "sentences"
    pattern = rf"(?<![\w-]){re.escape(first.language)}(?![\w-])"
    name, n_named = re.subn(pattern, language, first.name, count=1)
    if not n_named and language != first.language:
        name = f"{first.name} and {second.name}"
    return replace(first, name=name, language=language, **{side: getattr(second, side)})


def digest(texts: Iterable[str]) -> str:
    """SHA-256 of texts, each with its length, so that no two sets share one."""
    return hashlib.sha256(b"".join(map(_with_length, texts))).hexdigest()


@lru_cache(maxsize=2**16)  # many sets have the same texts, and all the same few labels
def _with_length(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(8, "little") + data


@checks.typed(TextError)
@dataclass(frozen=True, repr=False)
class Examples(Rows):
    """What a classifier reads, and what it is to answer, in one language.

    ``first`` has one string per example, ``second`` too where an example is a pair, else None;
    ``labels`` is int64 ``(n,)``, positions in ``classes``; ``ids`` tells examples apart and is the
    same in every language; ``name`` says in messages what this is, such as "xnli de train".
    """

    name: str
    language: str
    first: tuple[str, ...]
    second: tuple[str, ...] | None
    labels: ndarray
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    rows: ClassVar[tuple[str, ...]] = ("first", "second", "labels", "ids")
    crossing: ClassVar[str] = "second"

    def __post_init__(self) -> None:
        labels = self.labels.astype(int)
        object.__setattr__(self, "labels", labels)
        super().__post_init__()
        if len(labels) and not (labels.min() >= 0 and labels.max() < len(self.classes)):
            some = ", ".join(self.classes)
            raise TextError(f"{self.name}: a label is none of the {len(self.classes)} ({some})")

    def relabelled(self, labels: ndarray) -> "Examples":
        """The same texts with other labels."""
        return replace(self, labels=np.asarray(labels))

    @property
    def row_labels(self) -> list[str]:
        """The class of each example."""
        return [self.classes[label] for label in self.labels]

    @property
    def lengths(self) -> ndarray:
        """Characters of each example, of both parts: int64 ``(n,)``."""
        second = self.second or ("",) * len(self)
        return np.array([len(a) + len(b) for a, b in zip(self.first, second, strict=True)], int)

    @cached_property
    def _hash(self) -> str:
        """Of texts and labels."""
        second = self.second or ("",) * len(self)
        return digest(chain(*zip(self.first, second, map(str, self.labels), strict=True)))

    def table_hash(self) -> str:
        """SHA-256 of the examples as a file: the texts and the class a line, parted by tabs."""
        texts = [self.first] if self.second is None else [self.first, self.second]
        lines = map("\t".join, zip(*texts, self.row_labels, strict=True))
        return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


@checks.typed(TextError)
def of_corpus(corpus: ParallelCorpus, seed: int) -> dict[str, Examples]:
    """Parallel sentences with labels of Bernoulli(1/2), the same in every language (3.2)."""
    labels = np.random.default_rng(seed).integers(0, 2, len(corpus))
    named = {code: f"{corpus.name} {code}, random labels" for code in corpus.sentences}
    return {
        code: Examples(named[code], code, sentences, None, labels, ("0", "1"), corpus.ids)
        for code, sentences in corpus.sentences.items()
    }


def class_counts(examples: Examples) -> dict[str, int]:
    """How often each class is the label."""
    counts = np.bincount(examples.labels, minlength=len(examples.classes))
    return dict(zip(examples.classes, counts.tolist(), strict=True))
