"""Labelled sentences and pairs as the inputs of a classifier, in several languages at once.

The interlingual transfer gap compares a training set with its translations (Chi et al., section
3.2), so it only means something where position i is the same example with the same label in every
language. `aligned` holds sets of examples to that; `common` makes it so, leaving out what cannot be
compared. Where no task has labels, `random_labels` invents some for parallel sentences (section
3.2), and `corrupted` replaces a share of those that there are (section 5.4, after Zhang et al.
2017).

Pairs can also be mixed over languages (`crossed`), have the words of a part put in random order
(`shuffled`, the control tasks) or lose a part (`only`, a baseline): Rajaee and Monz.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from xlx import checks, labelled
from xlx.corpora import ParallelCorpus

#: The classes of random labels.
RANDOM: tuple[str, ...] = ("0", "1")
#: What an example may consist of.
PARTS: tuple[str, ...] = ("first", "second")
#: Languages written without spaces between words, which are shuffled by characters.
UNSPACED: frozenset[str] = frozenset({"zh", "ja", "th"})


class ExamplesError(ValueError):
    """Examples that cannot be trained on or compared; says which, in which language, and why."""


@dataclass(frozen=True)
class Examples:
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

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        sizes = {len(self.first), len(self.ids), len(labels)}
        if self.second is not None:
            sizes.add(len(self.second))
        if len(sizes) > 1 or labels.ndim != 1:
            raise ExamplesError(f"{self.name}: unequal numbers of texts, labels and ids")
        if len(labels) and not (labels.min() >= 0 and labels.max() < len(self.classes)):
            raise ExamplesError(
                f"{self.name}: a label is not among the {len(self.classes)} classes "
                f"{', '.join(self.classes)}"
            )
        object.__setattr__(self, "labels", labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Examples({self.name}: {len(self)}, {len(self.classes)} classes)"

    def at(self, positions: Iterable[int]) -> "Examples":
        """The examples at these positions alone, in this order."""
        kept = list(positions)
        second = None if self.second is None else tuple(self.second[i] for i in kept)
        return replace(
            self,
            first=tuple(self.first[i] for i in kept),
            second=second,
            labels=self.labels[kept],
            ids=tuple(self.ids[i] for i in kept),
        )

    def relabelled(self, labels: np.ndarray) -> "Examples":
        """The same texts with other labels."""
        return replace(self, labels=np.asarray(labels))

    def text_hash(self) -> str:
        """SHA-256 of texts and labels, each with its length, so that no two sets share one."""
        digest = hashlib.sha256()
        second = [""] * len(self) if self.second is None else self.second
        for row in zip(self.first, second, map(str, self.labels), strict=True):
            for text in row:
                data = text.encode()
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


def of_part(part: labelled.Pairs | labelled.Texts) -> Examples:
    """Examples of labelled pairs or sentences; classes in the order of `labelled.LABELS`."""
    if isinstance(part, labelled.Tagged):
        raise ExamplesError(f"{part.task} labels words: there are NLI, PI and TOPIC to classify")
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


def parallel(
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
    Raises ValueError for a language named twice and as `labelled.load` (whose ``source``,
    ``path`` and ``untranslated`` these are), ExamplesError where nothing is in all languages.
    """
    languages = checks.several(languages, "languages")
    if len(set(languages)) < len(languages):
        raise ValueError(f"a language is named twice: {', '.join(languages)}")
    loaded = {
        code: of_part(
            labelled.load(task, code, split, source=source, path=path, untranslated=untranslated)
        )
        for code in languages
    }
    sets, left_out = common(loaded)
    return select(sets, shortest(sets, n)), left_out


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


#: The classes of `same_or_other`.
SAME: tuple[str, ...] = ("other", "same")
#: What `surface` counts as a question mark: Latin, full width and Arabic.
QUESTION_MARKS: frozenset[str] = frozenset("?\N{FULLWIDTH QUESTION MARK}\N{ARABIC QUESTION MARK}")


def same_or_other(corpus: ParallelCorpus, seed: int, *, alike: bool = True) -> dict[str, Examples]:
    """Each parallel sentence with itself and with another one: a task of overlap alone.

    Two pairs a sentence: "same" has it on both sides, "other" has another one, so that every
    sentence is as often first as second, same as other. The same pairs in every language; crossed,
    "same" means a translation. Which other one:

    * ``alike``: one like it. Of all ways to give each sentence another, the one with the least sum
      of differences in `surface`, mean over languages; no seed has a say. Who goes by length or
      digits alone is then near chance, across languages too.
    * else the next one of a random round through all sentences, which a rule that knows nothing but
      length and digits tells from a translation in four cases of five (`baselines.surface_rule`).

    Raises ExamplesError for fewer than two sentences.
    """
    n = len(corpus)
    if n < 2:
        raise ExamplesError(f"{corpus.name} has {n} sentences: another one needs two or more")
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

    The natural logarithm of its number of characters (of an empty one: 0), the number of its
    digits, the number of its question marks.
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
    random; ``n_train`` and ``n_test`` count pairs, two a sentence; ``alike`` as there, within each
    part. Raises ExamplesError where the corpus has too few.
    """
    lengths = np.array([len(text) for text in corpus.sentences[language]])
    long_enough = [i for i in np.argsort(lengths, kind="stable") if lengths[i] >= 20]
    wanted = n_train // 2 + n_test // 2
    if len(long_enough) < wanted:
        raise ExamplesError(
            f"{corpus.name} has {len(long_enough)} sentences of 20 characters or more in "
            f"{language}, and {n_train} and {n_test} pairs need {wanted}"
        )
    dealt = np.random.default_rng(seed).permutation(long_enough[:wanted])
    parts = np.split(dealt, [n_train // 2])
    return tuple(
        same_or_other(corpus.drop(set(range(len(corpus))) - set(part.tolist())), seed, alike=alike)
        for part in parts
    )


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
        raise ExamplesError(f"the ratio of corrupted labels is {ratio}: it lies between 0 and 1")
    labels = np.asarray(labels)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))[: round(ratio * len(labels))]
    drawn = rng.integers(0, n_classes, len(labels))
    found = labels.copy()
    found[order] = drawn[order]
    return found


def aligned(by_language: Mapping[str, Examples]) -> dict[str, Examples]:
    """The sets as given, if position i is one example with one label in all of them.

    Raises
    ------
    ExamplesError
        With the language, the position and what to do, where a number, an id, the classes or a
        label differ, or where a set is named by another language than its own.
    """
    if not by_language:
        raise ExamplesError("there are no examples in any language")
    reference = next(iter(by_language.values()))
    for language, examples in by_language.items():
        if examples.language != language:
            raise ExamplesError(f"{examples.name} is given as the examples in {language}")
        _check_same(examples, reference)
    return dict(by_language)


def _check_same(examples: Examples, reference: Examples) -> None:
    """Raise ExamplesError where two sets are not of the same examples in the same order."""
    language, first = examples.language, reference.language
    if len(examples) != len(reference):
        raise ExamplesError(
            f"{examples.name} has {len(examples)} examples and {reference.name} "
            f"{len(reference)}: they are no translations of each other; `common` keeps what "
            "all have"
        )
    if examples.classes != reference.classes:
        raise ExamplesError(f"{examples.name} and {reference.name} have different classes")
    for i, (one, other) in enumerate(zip(examples.ids, reference.ids, strict=True)):
        if one != other:
            raise ExamplesError(
                f"position {i} is example {one} in {language} and {other} in {first}: "
                f"{examples.name} is not aligned with {reference.name}; `common` brings both "
                "into one order"
            )
    if (differ := np.flatnonzero(examples.labels != reference.labels)).size:
        i = int(differ[0])
        raise ExamplesError(
            f"example {examples.ids[i]} is {examples.classes[examples.labels[i]]} in "
            f"{language} and {reference.classes[reference.labels[i]]} in {first}, and so for "
            f"{differ.size} examples: leave them out with `common`"
        )


def common(by_language: Mapping[str, Examples]) -> tuple[dict[str, Examples], dict[str, int]]:
    """What all languages have, with the same label, in the order of the first language.

    Returns the sets and how many examples (of the first language) were left out: ``"missing"`` in
    another language, or of ``"other label"`` there. An id that occurs twice in a language is an
    ExamplesError, and so is nothing left.
    """
    if not by_language:
        raise ExamplesError("there are no examples in any language")
    places = {}
    for language, examples in by_language.items():
        places[language] = {name: i for i, name in enumerate(examples.ids)}
        if len(places[language]) < len(examples):
            raise ExamplesError(f"{examples.name}: an id occurs twice, so it names no example")
    reference = next(iter(by_language.values()))
    kept, left_out = [], {"missing": 0, "other label": 0}
    for i, name in enumerate(reference.ids):
        if any(name not in place for place in places.values()):
            left_out["missing"] += 1
        elif any(
            by_language[language].labels[place[name]] != reference.labels[i]
            for language, place in places.items()
        ):
            left_out["other label"] += 1
        else:
            kept.append(name)
    if not kept:
        raise ExamplesError(
            f"no example of {reference.name} is in all of {', '.join(by_language)} with one label"
        )
    return aligned(
        {
            language: examples.at(places[language][name] for name in kept)
            for language, examples in by_language.items()
        }
    ), left_out


def shortest(by_language: Mapping[str, Examples], n: int | None) -> list[int]:
    """Positions of the n examples with the fewest characters, summed over languages; None: all.

    A way to subsample that makes a small machine's fine-tuning several times faster, at the price
    of easier text: who uses it says so. Ascending; ties go to the earlier position.
    """
    sets = list(aligned(by_language).values())
    sizes = np.zeros(len(sets[0]), dtype=np.int64)
    for examples in sets:
        for side in (examples.first, examples.second or ()):
            if side:
                sizes += np.array([len(text) for text in side])
    if n is not None and n < 1:
        raise ExamplesError(f"cannot take {n} examples: take at least one")
    return sorted(np.argsort(sizes, kind="stable")[:n].tolist())


def class_counts(examples: Examples) -> dict[str, int]:
    """How often each class is the label."""
    counts = np.bincount(examples.labels, minlength=len(examples.classes))
    return dict(zip(examples.classes, counts.tolist(), strict=True))


def select(by_language: Mapping[str, Examples], positions: Sequence[int]) -> dict[str, Examples]:
    """The examples at these positions, in every language."""
    return {language: examples.at(positions) for language, examples in by_language.items()}


def joined(one: Examples, other: Examples) -> Examples:
    """Two sets of one language and the same classes as one; ids are told apart by their set."""
    if one.language != other.language or one.classes != other.classes:
        raise ExamplesError(f"{one.name} and {other.name} differ in language or classes")
    if (one.second is None) != (other.second is None):
        raise ExamplesError(f"{one.name} and {other.name} are not both of pairs or of sentences")
    return replace(
        one,
        name=f"{one.name} and {other.name}",
        first=one.first + other.first,
        second=None if one.second is None else one.second + other.second,
        labels=np.concatenate([one.labels, other.labels]),
        ids=tuple(f"1:{name}" for name in one.ids) + tuple(f"2:{name}" for name in other.ids),
    )


# --- pairs mixed over languages, out of order, and by halves --------------------------------------


def crossed(first: Examples, second: Examples) -> Examples:
    """The first texts of one language with the second texts of another (Rajaee and Monz, 3.1).

    The language is named "en-de", and so in the name ("xnli en-de test"); where both are of one
    language, that language. ExamplesError for sentences without a second part, and where the two
    are not the same examples: another number, id, classes or label, as in `aligned`.
    """
    for examples in (first, second):
        _parts_of(examples, ("second",))
    _check_same(second, first)
    if first.language == second.language:
        return replace(first, second=second.second)
    language = f"{first.language}-{second.language}"
    # the language as a word of its own: the "en" of "xnli en test", not that of "sentences"
    name, found = re.subn(
        rf"(?<![\w-]){re.escape(first.language)}(?![\w-])", language, first.name, count=1
    )
    return replace(
        first,
        name=name if found else f"{first.name} and {second.name}",
        language=language,
        second=second.second,
    )


def shuffled(
    examples: Examples, seed: int, *, parts: Sequence[str] = ("first", "second")
) -> Examples:
    """The words of each named part in random order, for the control tasks (Rajaee and Monz, 5).

    Words are what stands between spaces; in Chinese, Japanese and Thai (`UNSPACED`) characters,
    spaces among them, with their combining marks. The words stay the same, and so do ids, labels
    and a part that is not named. A text that occurs several times in a part (a premise) has one new
    order in all places. The order depends on the seed and on where the text occurs first, not on
    the other texts. A short text may, by chance, keep its old order.

    Of single sentences ``parts`` may name "second" too, which is then nothing to shuffle.
    ExamplesError for another part, or where there is none to shuffle.
    """
    parts = list(parts)
    if examples.second is None and "first" in parts:
        parts = [part for part in parts if part != "second"]
    _parts_of(examples, parts)
    changed = {
        part: _shuffled(getattr(examples, part), language, (seed, number))
        for number, (part, language) in enumerate(zip(PARTS, _languages_of(examples), strict=True))
        if part in parts
    }
    return replace(examples, name=f"{examples.name}, {' and '.join(changed)} shuffled", **changed)


def only(examples: Examples, part: str) -> Examples:
    """One part of each example as a sentence alone: "second" is the hypothesis without a premise.

    A baseline that cannot compare. ExamplesError for a part that there is not.
    """
    _parts_of(examples, (part,))
    return replace(
        examples,
        name=f"{examples.name}, {part} only",
        language=_languages_of(examples)[PARTS.index(part)],
        first=getattr(examples, part),
        second=None,
    )


def _parts_of(examples: Examples, parts: Sequence[str]) -> None:
    """Raise ExamplesError for parts that an example does not have, or for none."""
    if not parts or (strange := [part for part in parts if part not in PARTS]):
        named = ", ".join(map(repr, strange)) if parts else "none"
        raise ExamplesError(f"parts of an example are {' and '.join(PARTS)}; given: {named}")
    if "second" in parts and examples.second is None:
        raise ExamplesError(f"{examples.name}: these are single sentences, without a second part")


def _languages_of(examples: Examples) -> tuple[str, str]:
    """The languages of both parts: "en-de" is English, then German."""
    first, _, second = examples.language.partition("-")
    return first, second or first


def _shuffled(texts: Sequence[str], language: str, seed: tuple[int, int]) -> tuple[str, ...]:
    """Each text with its words in an order drawn for the place where it first occurs."""
    new: dict[str, str] = {}
    for position, text in enumerate(texts):
        if text not in new:
            words, space = _words(text, language)
            order = np.random.default_rng((*seed, position)).permutation(len(words))
            new[text] = space.join(words[i] for i in order)
    return tuple(new[text] for text in texts)


def _words(text: str, language: str) -> tuple[list[str], str]:
    """The words of a text, or its characters with their marks, and what joins them."""
    if language.split("_")[0] not in UNSPACED:
        return text.split(), " "
    words: list[str] = []
    for character in text:
        if words and unicodedata.category(character).startswith("M"):
            words[-1] += character
        else:
            words.append(character)
    return words, ""
