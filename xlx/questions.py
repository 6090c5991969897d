"""Questions answered by a span of a paragraph: reading, pairing languages, scoring, baselines.

Rajaee & Monz test question answering with the context in one language and the question in another
(section 3.3): the answer is a span of the context, scored by exact match and F1 as SQuAD v1.1
defines them (Rajpurkar et al. 2016). `load` reads what is shipped in ``data/questions`` or, with
``path=``, a local copy in its public layout:

========== ==================================================== ================================
source     what                                                 files of a local copy
========== ==================================================== ================================
``xquad``  XQuAD (Artetxe et al. 2020), parallel: test          ``xquad.de.json``
``tydiqa`` TyDi QA, gold passages (Clark et al. 2020), as in    ``tydiqa.goldp.en.train.json``,
           XTREME: train, validation                            ``tydiqa.goldp.en.dev.json``
``squad``  SQuAD v1.1, only as a local copy: train, validation  ``train-v1.1.json``,
                                                                ``dev-v1.1.json``
========== ==================================================== ================================

An answer that does not stand in its context at the stated position cannot be learned or found: it
is left out and counted (`Questions.left_out`), and its question too where no answer is left
(`Questions.dropped` names it). Anything else that is out of order is a QuestionsError.

What a word is (`words`) depends on the language. Most put spaces between words. Chinese, Japanese
and Thai do not, and no dictionary is asked here: a Chinese or Japanese character is a word, and so
is a Thai character with the vowels and tones above and below it. Numbers in words of these three
languages compare with none of the others.
"""

import hashlib
import json
import lzma
import re
import string
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from xlx import checks, origins, paths
from xlx.languages import base_code

SPLITS: tuple[str, ...] = ("train", "validation", "test")

#: Languages written without spaces between words, as far as `words` knows them.
SPACELESS: tuple[str, ...] = ("ja", "th", "zh")

#: Why something is left out in reading: answers of the first two kinds, questions of the others.
REASONS: tuple[str, ...] = ("misplaced answer", "blank answer", "no answer", "blank question")

_FOLDER = paths.DATA / "questions"

#: Han, kana and their marks of repetition; half width too.
_ALONE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_THAI = "\u0e01-\u0e7f"
#: What extends a Thai grapheme cluster (Unicode Standard Annex 29): vowels and tones, sara am.
_THAI_MARKS = "\u0e31\u0e33-\u0e3a\u0e47-\u0e4e"

#: The last and the first character of two words that would be read as one without a space.
_MEETING = re.compile(rf"[^{_ALONE}{_THAI}]{{2}}|[{_THAI}][{_THAI_MARKS}]")

_XZ = b"\xfd7zXZ\x00"


class QuestionsError(ValueError):
    """Questions that cannot be used; says which file and place, why, and what to do."""


class Answer(NamedTuple):
    """A span of a context: its text, and the position of its first character (from 0)."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Questions:
    """Questions, each with the paragraph that answers it and one or more answers in it.

    ``contexts`` and ``questions`` have one string a question (several questions may have the same
    context), ``answers`` one tuple of `Answer`; ``ids`` tells questions apart and is the same in
    every language. ``language`` is a code such as "de"; "en-de" is a context in English with a
    question in German (`crossed`). ``name`` says in messages what this is: "xquad de test".

    ``left_out`` counts what was not read, by reason (`REASONS`, and in what is shipped the reasons
    of `table`, for which a question of the public file is not here); ``dropped`` are the ids of the
    questions that were not read.
    """

    name: str
    language: str
    contexts: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[tuple[Answer, ...], ...]
    ids: tuple[str, ...]
    left_out: dict[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.contexts), len(self.questions), len(self.answers), len(self.ids)}
        if len(sizes) > 1:
            raise QuestionsError(
                f"{self.name}: unequal numbers of contexts ({len(self.contexts)}), questions "
                f"({len(self.questions)}), answers ({len(self.answers)}) and ids ({len(self.ids)})"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Questions({self.name}: {len(self)}, {len(set(self.contexts))} contexts)"

    @property
    def context_language(self) -> str:
        """The language of contexts and answers: "en" of "en-de"."""
        return self.language.split("-")[0]

    @property
    def question_language(self) -> str:
        """The language of the questions: "de" of "en-de"."""
        return self.language.split("-")[-1]

    @property
    def paragraphs(self) -> np.ndarray:
        """Which distinct context each question has: int64 (n,), numbered from 0 in order."""
        number: dict[str, int] = {}
        found = [number.setdefault(context, len(number)) for context in self.contexts]
        return np.array(found, dtype=np.int64)

    def at(self, positions: Iterable[int]) -> "Questions":
        """The questions at these positions alone, in this order."""
        kept = list(positions)
        rows = ("contexts", "questions", "answers", "ids")
        return replace(self, **{name: tuple(getattr(self, name)[i] for i in kept) for name in rows})

    def text_hash(self) -> str:
        """SHA-256 of contexts, questions and answers, each with its length."""
        digest = hashlib.sha256()
        rows = zip(self.contexts, self.questions, self.answers, strict=True)
        for context, question, answers in rows:
            spans = (part for answer in answers for part in (answer.text, str(answer.start)))
            for text in (context, question, str(len(answers)), *spans):
                data = text.encode()
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


# --- loading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """Where a source comes from, and the file of a local copy by split."""

    url: str
    files: dict[str, str]


_SOURCES = {
    "xquad": _Source("github.com/google-deepmind/xquad", {"test": "xquad.{}.json"}),
    "tydiqa": _Source(
        "github.com/google-research/xtreme (TyDi QA GoldP)",
        {"train": "tydiqa.goldp.{}.train.json", "validation": "tydiqa.goldp.{}.dev.json"},
    ),
    "squad": _Source(
        "rajpurkar.github.io/SQuAD-explorer",
        {"train": "train-v1.1.json", "validation": "dev-v1.1.json"},
    ),
}


def table() -> pd.DataFrame:
    """What is shipped in ``data/questions``: one row a file, that is source, language and split.

    Columns: source, language, split; questions, contexts (distinct), answers; left_out ("reason:
    number; …", of the public file that ``made_from`` names); made_from, licence, url, file, sha256.

    Raises QuestionsError if ``sources.tsv`` is missing or malformed.
    """
    file = _FOLDER / "sources.tsv"
    if not file.exists():
        raise QuestionsError(f"{file} is missing; restore data/questions from the repository")
    try:
        shipped = origins.table(file.read_bytes(), str(file))
    except origins.CorpusError as error:
        raise QuestionsError(str(error)) from None
    return shipped.astype(dict.fromkeys(("questions", "contexts", "answers"), int))


def load(
    source: str, language: str, split: str = "test", *, path: str | Path | None = None
) -> Questions:
    """One split of a source in a language.

    Parameters
    ----------
    source : "xquad", "tydiqa" or, with ``path``, "squad".
    language : ISO 639 code, such as "de"; SQuAD is in "en".
    split : "train", "validation" or "test". XQuAD has "test" alone, the others have the first two:
        the public ``dev`` is "validation" (XTREME withholds the answers of TyDi QA's; the shipped
        validation part is of its train).
    path : a local copy, a file or a folder that holds it at any depth, under its public name (see
        the table at the top), also with ``.xz``; None for what is shipped.

    Ids are those of the public file, but of TyDi QA "train:1", "dev:1" and so on, by the place in
    it: XTREME's train parts have no others that tell questions apart.

    Raises QuestionsError (a ValueError) for a source, language or split that there is not, for
    malformed files (with the place), for a shipped file that was changed; FileNotFoundError where
    there is nothing at ``path``.
    """
    if source not in _SOURCES:
        raise QuestionsError(f"there is no source {source!r}; there are {', '.join(_SOURCES)}")
    known = _SOURCES[source]
    if split not in known.files:
        raise QuestionsError(
            f"{source} has no {split!r} part with answers; it has {' and '.join(known.files)}"
        )
    checks.tag(language, QuestionsError)
    try:
        language = base_code(language)
    except ValueError as error:
        raise QuestionsError(str(error)) from None
    if path is None:
        return _load_shipped(source, language, split)
    if source == "squad" and language != "en":
        raise QuestionsError(f"SQuAD is in English (en), not in {language}")
    file = _find(Path(path), known.files[split].format(language), known.url)
    # XTREME has cut the ids of TyDi QA's train parts to a number that many questions share.
    prefix = {"train": "train", "validation": "dev"}[split] if source == "tydiqa" else None
    return read_squad(file, f"{source} {language} {split}", language, prefix=prefix)


def _load_shipped(source: str, language: str, split: str) -> Questions:
    known = _SOURCES[source]
    how = f"get {source} from {known.url} and give path=, a folder with {known.files[split]}"
    shipped = table().query("source == @source and split == @split")
    row = shipped[shipped["language"] == language].to_dict("records")
    if not row:
        there = ", ".join(shipped["language"]) or "nothing"
        raise QuestionsError(
            f"no {split} part of {source} is shipped in {language} (there is {there}): "
            + how.format(language)
        )
    file = _FOLDER / row[0]["file"]
    if not file.exists():
        raise QuestionsError(f"{file} is missing; restore data/questions from the repository")
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != row[0]["sha256"]:
        raise QuestionsError(
            f"{file} is not the file on record in sources.tsv; restore data/questions from the "
            "repository"
        )
    read = _read(data, str(file), f"{source} {language} {split}", language)
    reasons = (each.rsplit(": ", 1) for each in row[0]["left_out"].split("; ") if each)
    return replace(read, left_out=read.left_out | {why: int(n) for why, n in reasons})


def _find(path: Path, name: str, url: str) -> Path:
    """The one file of this name, plain or ``.xz``, that is ``path`` or below it."""
    if path.is_file():
        return path
    if not path.exists():
        raise FileNotFoundError(f"there is nothing at {path}; get {name} from {url}")
    files = sorted(file for file in path.rglob(f"{name}*") if file.name in (name, f"{name}.xz"))
    if not files:
        raise QuestionsError(f"{path} has no {name}; get it from {url}")
    if len(files) > 1:
        some = ", ".join(str(file) for file in files)
        raise QuestionsError(f"{path} has {name} more than once ({some}); give one as path=")
    return files[0]


# --- reading --------------------------------------------------------------------------------------


def read_squad(
    source: str | Path | bytes, name: str, language: str, *, prefix: str | None = None
) -> Questions:
    """The questions of a file in the JSON of SQuAD v1.1, plain or packed with xz.

    ``source`` is the file or its contents; ``name`` and ``language`` are those of the result.
    With ``prefix`` "train", ids are "train:1", "train:2" and so on by the place of a question among
    all in the file; None for the ids that the file has.

    ``answer_start`` counts characters (code points). Left out and counted in ``left_out``, all
    `REASONS` with their numbers: an answer that is not in its context at its position, a blank one,
    a question without answers or without text; ``dropped`` are the ids of the questions that go.

    Raises QuestionsError, with file and place, for what is no UTF-8 or JSON, a field that is
    missing or of another type, an id that comes twice, and a file of which no question is left.
    """
    if isinstance(source, bytes):
        return _read(source, name, name, language, prefix)
    return _read(Path(source).read_bytes(), str(source), name, language, prefix)


def _read(
    data: bytes, where: str, name: str, language: str, prefix: str | None = None
) -> Questions:
    """`read_squad` of the contents of a file; ``where`` opens every error."""
    left_out = Counter(dict.fromkeys(REASONS, 0))
    seen: dict[str, str] = {}
    dropped: list[str] = []
    rows: list[tuple[str, str, tuple[Answer, ...], str]] = []
    for place, context, qa in _entries(_json(data, where), where):
        key, question = _field(qa, "id", str, place), _field(qa, "question", str, place)
        if prefix is not None:
            key = f"{prefix}:{len(seen) + 1}"
        if key in seen:
            raise QuestionsError(
                f"{place}: the id {key!r} is also at {seen[key]}; with prefix= questions are named "
                "by their place"
            )
        seen[key] = place.removeprefix(f"{where}, ")
        answers, problems = _answers(qa, context, place)
        if not question.strip():
            problems, answers = Counter({"blank question": 1}), ()
        left_out.update(problems)
        if answers:
            rows.append((context, question, answers, key))
        else:
            dropped.append(key)
    if not rows:
        why = ", ".join(f"{reason}: {n}" for reason, n in left_out.items() if n)
        raise QuestionsError(
            f"{where}: none of its {len(seen)} questions can be used ({why or 'it is empty'}); is "
            "this the file with answers? XTREME withholds those of its dev and test parts"
        )
    columns = tuple(zip(*rows, strict=True))
    return Questions(name, language, *columns, dict(left_out), tuple(dropped))


def _json(data: bytes, where: str) -> object:
    try:
        if data.startswith(_XZ):
            data = lzma.decompress(data)
        return json.loads(data.decode("utf-8-sig"))
    except lzma.LZMAError as error:
        raise QuestionsError(f"{where}: damaged xz file ({error}); fetch it again") from None
    except UnicodeDecodeError as error:
        raise QuestionsError(
            f"{where}, byte {error.start}: not UTF-8 text; save the file in UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise QuestionsError(
            f"{where}, line {error.lineno}, column {error.colno}: no JSON ({error.msg}); fetch the "
            "file again"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        raise QuestionsError(f"{where}: no JSON that can be read ({error})") from None


_KINDS = {str: "a string", int: "a whole number", list: "a list", dict: "an object"}


def _field(thing: object, key: str, kind: type, place: str) -> object:
    """A field of a JSON object, of the kind that SQuAD has there."""
    if not isinstance(thing, dict):
        raise QuestionsError(f"{place}: not an object with {key!r}, as SQuAD v1.1 has there")
    if key not in thing:
        raise QuestionsError(f"{place}: no {key!r}; SQuAD v1.1 has it there")
    if not isinstance(thing[key], kind) or isinstance(thing[key], bool):
        raise QuestionsError(f"{place}: {key!r} is not {_KINDS[kind]}")
    return thing[key]


def _entries(whole: object, where: str) -> Iterable[tuple[str, str, object]]:
    """Place, context and JSON object of every question."""
    for i, article in enumerate(_field(whole, "data", list, where)):
        place = f"{where}, data[{i}]"
        for j, paragraph in enumerate(_field(article, "paragraphs", list, place)):
            here = f"{place}.paragraphs[{j}]"
            context = _field(paragraph, "context", str, here)
            for k, qa in enumerate(_field(paragraph, "qas", list, here)):
                yield f"{here}.qas[{k}]", context, qa


def _stands(answer: Answer, context: str) -> bool:
    """Whether there is an answer, and it is in the context where it says."""
    here = answer.start >= 0 and context.startswith(answer.text, answer.start)
    return here and bool(answer.text.strip())


def _answers(qa: object, context: str, place: str) -> tuple[tuple[Answer, ...], Counter[str]]:
    """The answers that stand in the context where they say, and the numbers of the others."""
    found, problems = [], Counter()
    given = _field(qa, "answers", list, place)
    for i, each in enumerate(given):
        here = f"{place}.answers[{i}]"
        answer = Answer(_field(each, "text", str, here), _field(each, "answer_start", int, here))
        if not answer.text.strip():
            problems["blank answer"] += 1
        elif not _stands(answer, context):
            problems["misplaced answer"] += 1
        else:
            found.append(answer)
    if not given:
        problems["no answer"] += 1
    return tuple(found), problems


# --- several languages ----------------------------------------------------------------------------


def aligned(by_language: Mapping[str, Questions]) -> dict[str, Questions]:
    """The sets as given, if position i is the same question in all of them.

    Raises
    ------
    QuestionsError
        With the language, the questions and what to do, where a set lacks some of another's or has
        them in another order, or is named by another language than its own.
    """
    if not by_language:
        raise QuestionsError("there are no questions in any language")
    first, reference = next(iter(by_language.items()))
    for language, questions in by_language.items():
        if questions.language != language:
            raise QuestionsError(f"{questions.name} is given as the questions in {language}")
        _check_same(questions, reference)
        for i, (one, other) in enumerate(zip(questions.ids, reference.ids, strict=True)):
            if one != other:
                raise QuestionsError(
                    f"position {i} is question {one} in {language} and {other} in {first}: "
                    f"{questions.name} and {reference.name} are in different orders; `common` "
                    "brings them into one"
                )
    return dict(by_language)


def _check_same(one: Questions, other: Questions) -> None:
    """Both have the same questions, each once, in whatever order."""
    for questions in (one, other):
        if len(set(questions.ids)) < len(questions):
            raise QuestionsError(f"{questions.name}: an id occurs twice, so it names no question")
    for lacking, whole in ((one, other), (other, one)):
        there = set(lacking.ids)
        if missing := [key for key in whole.ids if key not in there]:
            some = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
            raise QuestionsError(
                f"{lacking.name} lacks {len(missing)} of the {len(whole)} questions of "
                f"{whole.name} ({some}): `common` keeps what all have"
            )


def common(by_language: Mapping[str, Questions]) -> tuple[dict[str, Questions], dict[str, int]]:
    """What all languages have, in the order of the first.

    Returns the sets and, for each language, how many of the questions that some language has it
    lacks. Nothing left is a QuestionsError, and so is an id that occurs twice in a language.
    """
    if not by_language:
        raise QuestionsError("there are no questions in any language")
    places = {}
    for language, questions in by_language.items():
        places[language] = {key: i for i, key in enumerate(questions.ids)}
        if len(places[language]) < len(questions):
            raise QuestionsError(f"{questions.name}: an id occurs twice, so it names no question")
    anywhere = set().union(*places.values())
    lacks = {language: len(anywhere) - len(place) for language, place in places.items()}
    first = next(iter(by_language.values()))
    kept = [key for key in first.ids if all(key in place for place in places.values())]
    if not kept:
        raise QuestionsError(f"no question of {first.name} is in all of {', '.join(by_language)}")
    sets = {
        language: questions.at(places[language][key] for key in kept)
        for language, questions in by_language.items()
    }
    return aligned(sets), lacks


def parallel(
    source: str,
    languages: Sequence[str],
    split: str = "test",
    n: int | None = None,
    *,
    per_context: int | None = None,
    path: str | Path | None = None,
) -> tuple[dict[str, Questions], dict[str, int]]:
    """A part of a source in several languages: what all of them have, n of it at most.

    ``n`` takes the `shortest`, ``per_context`` of a context at most; None: all. Returns the sets
    and how many questions `common` found each language to lack. Errors as `load` and `common`.
    """
    loaded = {code: load(source, code, split, path=path) for code in languages}
    sets, lacking = common(loaded)
    kept = shortest(sets, n, per_context)
    return {code: one.at(kept) for code, one in sets.items()}, lacking


def shortest(
    by_language: Mapping[str, Questions], n: int | None, per_context: int | None = None
) -> list[int]:
    """Positions of the n questions with the shortest contexts, summed over languages; None: all.

    As `examples.shortest`: ascending, ties to the earlier position; who uses it says so. With
    ``per_context``, the first so many questions of a context (of the first language) alone: what
    varies between paragraphs varies more than between questions on one.
    """
    for what, number in (("questions", n), ("questions a context", per_context)):
        if number is not None and number < 1:
            raise QuestionsError(f"cannot take {number} {what}: take at least one")
    sets = list(aligned(by_language).values())
    sizes = np.sum([[len(text) for text in one.contexts] for one in sets], axis=0)
    paragraphs, taken = sets[0].paragraphs, Counter()
    kept = []
    for i in np.argsort(sizes, kind="stable").tolist():
        taken[paragraphs[i]] += 1
        if per_context is None or taken[paragraphs[i]] <= per_context:
            kept.append(i)
    return sorted(kept[:n])


def crossed(context_side: Questions, question_side: Questions) -> Questions:
    """Contexts and answers of one language with the questions of the other (section 3.3).

    Both must have the same questions in one order. The language is "en-de" for English contexts
    with German questions, and "en" where both are English. ``left_out`` and ``dropped`` are those
    of the contexts' side, which has the answers.

    Raises QuestionsError where the two are not parallel.
    """
    here, there = context_side.context_language, question_side.question_language
    if context_side.ids != question_side.ids:
        _check_same(context_side, question_side)
        raise QuestionsError(
            f"{context_side.name} and {question_side.name} have the same questions in different "
            "orders; `common` brings them into one"
        )
    language = here if here == there else f"{here}-{there}"
    parts = context_side.name.split(" ")
    if context_side.language in parts:
        name = " ".join(language if part == context_side.language else part for part in parts)
    else:
        name = f"{context_side.name}, questions of {question_side.name}"
    return replace(context_side, name=name, language=language, questions=question_side.questions)


# --- controls -------------------------------------------------------------------------------------


def shuffled(questions: Questions, seed: int) -> Questions:
    """The words of every question in random order; contexts and answers as they are (section 5).

    Words are those of `words`, and joined by spaces; in languages without spaces, only where two
    words of another script or punctuation meet. A question that occurs several times has one order,
    which depends on the seed and the position of its first occurrence.
    """
    found: dict[str, str] = {}
    for i, text in enumerate(questions.questions):
        if text not in found:
            split = words(text, questions.question_language)
            order = np.random.default_rng([seed, i]).permutation(len(split)).tolist()
            found[text] = _joined([split[j] for j in order], questions.question_language)
    return replace(
        questions,
        name=f"{questions.name}, questions shuffled",
        questions=tuple(found[text] for text in questions.questions),
    )


def _joined(split: Sequence[str], language: str) -> str:
    if not _spaceless(language):
        return " ".join(split)
    text = ""
    for word in split:
        # Without a space "2015" and "NFL" would be one word.
        text += f" {word}" if text and _MEETING.fullmatch(text[-1] + word[0]) else word
    return text


def questionless(questions: Questions) -> Questions:
    """Empty questions: what can be answered from the context alone."""
    return replace(
        questions,
        name=f"{questions.name}, without questions",
        questions=("",) * len(questions),
    )


# --- words ----------------------------------------------------------------------------------------


@cache
def _spaceless(language: str) -> bool:
    """Whether the language (of "zh-en": of the context) is written without spaces."""
    try:
        return base_code(language.split("-")[0]) in SPACELESS
    except ValueError as error:
        raise QuestionsError(str(error)) from None


@cache
def _punctuation() -> frozenset[str]:
    """ASCII punctuation and symbols, and all characters of Unicode's category P."""
    every = map(chr, range(sys.maxunicode + 1))
    return frozenset(string.punctuation).union(
        character for character in every if unicodedata.category(character)[0] == "P"
    )


@cache
def _without_punctuation() -> dict[int, None]:
    return dict.fromkeys(map(ord, _punctuation()))


@cache
def _word(spaceless: bool) -> re.Pattern[str]:
    if not spaceless:
        return re.compile(r"\S+")
    marks = "".join(map(re.escape, sorted(_punctuation())))
    alone = _ALONE + _THAI
    return re.compile(
        rf"[{_ALONE}]|[{_THAI}][{_THAI_MARKS}]*|[{marks}]"
        # Any other word: punctuation stays inside ("3.5"), not at its ends.
        rf"|[^\s{alone}{marks}](?:[^\s{alone}]*[^\s{alone}{marks}])?"
    )


def word_spans(text: str, language: str) -> list[tuple[str, int, int]]:
    """Every word of a text with the positions of its first character and after its last.

    In languages written with spaces, what stands between white space, punctuation included. In
    Chinese and Japanese each character, and in Thai each grapheme cluster (a character with the
    vowels and tones on it, and with sara am), is a word; so is every other run without spaces, such
    as "NFL" or "3.5", and every punctuation mark at its ends ("mixed segmentation", as MLQA's
    metric does in Chinese; Lewis et al. 2020). No character but white space is in no word.
    """
    matches = _word(_spaceless(language)).finditer(text)
    return [(match[0], match.start(), match.end()) for match in matches]


def words(text: str, language: str) -> list[str]:
    """The words of `word_spans`."""
    return _word(_spaceless(language)).findall(text)


# --- the metric -----------------------------------------------------------------------------------

_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalised(text: str, language: str) -> str:
    """A text as SQuAD v1.1 compares it: in lower case, without punctuation, articles, extra spaces.

    Punctuation is that of SQuAD's script (ASCII) and all of Unicode's category P, such as "。" and
    "«"; as in MLQA's script, since XQuAD is in other scripts than Latin. Articles are a, an and the
    in every language, as SQuAD's script has them. So ``language`` is only checked.
    """
    _spaceless(language)
    return _normalised(text)


@lru_cache(maxsize=2**16)
def _normalised(text: str) -> str:
    plain = text.lower().translate(_without_punctuation())
    return " ".join(_ARTICLES.sub(" ", plain).split())


@lru_cache(maxsize=2**16)
def _bag(text: str, segmented: bool) -> Counter[str]:
    return Counter(_word(segmented).findall(_normalised(text)))


def _texts(answers: Iterable[Answer | str]) -> list[str]:
    found = [answer if isinstance(answer, str) else answer.text for answer in answers]
    if not found:
        raise QuestionsError("there is no answer to compare with; `read_squad` leaves such out")
    return found


def exact_match(prediction: str, answers: Iterable[Answer | str], language: str) -> float:
    """1.0 where the prediction is one of the answers, as `normalised`, else 0.0 (SQuAD v1.1).

    ``language`` is that of the context, as the answers are. Raises QuestionsError for no answers.
    """
    _spaceless(language)
    given = _normalised(prediction)
    return float(any(given == _normalised(text) for text in _texts(answers)))


def f1(
    prediction: str, answers: Iterable[Answer | str], language: str, *, segment: bool = True
) -> float:
    """Harmonic mean of precision and recall in words, over the best of the answers (SQuAD v1.1).

    In [0, 1]. Words are those of the `normalised` texts, counted as often as they occur. With
    ``segment``, those of `words` in languages without spaces: whole answers would be one word
    there; False splits at spaces alone, as SQuAD's script does. Two texts without words ("the",
    ".", or empty) are equal and give 1, as in exact match; one such text gives 0. (SQuAD's script
    of v1.1 gives 0 for two, that of v2.0 gives 1.)

    ``language`` is that of the context, as the answers are. Raises QuestionsError for no answers.
    """
    segmented = segment and _spaceless(language)
    given = _bag(prediction, segmented)
    return max(_f1(given, _bag(text, segmented)) for text in _texts(answers))


def _f1(given: Counter[str], wanted: Counter[str]) -> float:
    if not given or not wanted:
        return float(not given and not wanted)
    same = sum(min(n, wanted[word]) for word, n in given.items() if word in wanted)
    # 2 P R / (P + R) with P = same / given and R = same / wanted.
    return 2 * same / (given.total() + wanted.total())


# --- where the question's words are ---------------------------------------------------------------


class _Located(NamedTuple):
    """The words of a context as they are compared, and where each begins and ends."""

    compared: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def _compared(word: str) -> str:
    return word.lower().translate(_without_punctuation())


@lru_cache(maxsize=2**13)
def _located(context: str, language: str) -> _Located:
    spans = word_spans(context, language)
    plain = tuple(_compared(word) for word, _, _ in spans)
    return _Located(plain, tuple(s for _, s, _ in spans), tuple(e for _, _, e in spans))


@lru_cache(maxsize=2**15)
def _asked(question: str, language: str) -> frozenset[str]:
    """The words of a question as they are compared; of punctuation alone, none."""
    return frozenset(map(_compared, words(question, language))) - {""}


def _occurrences(asked: frozenset[str], located: _Located) -> np.ndarray:
    """Positions of the words of a context that are words of the question: int64, ascending."""
    found = [i for i, word in enumerate(located.compared) if word in asked]
    return np.array(found, dtype=np.int64)


def word_distance(
    question: str,
    context: str,
    answer: Answer,
    language: str,
    *,
    question_language: str | None = None,
    max_distance: float = 384,
) -> float:
    """How far from the answer the question's words stand in the context, in words (section 4).

    The mean, over all positions of the context whose word is one of the question's, of the
    distance to the centre of the answer: the position halfway between its first and last word (a
    word that it covers in part is in it). ``max_distance`` where no word of the question occurs;
    the paper takes the maximum length of a context there. The mean itself has no such limit.

    Words are those of `words`, compared in lower case without punctuation, all of them: articles
    too, and those in the answer. A word that the question has twice counts once. ``language`` is
    that of the context, ``question_language`` that of the question where it is another.

    Raises QuestionsError where the answer does not stand in the context.
    """
    if not _stands(answer, context):
        raise QuestionsError(
            f"the answer {answer.text!r} is not at position {answer.start} of its context"
        )
    located = _located(context, language)
    at = _occurrences(_asked(question, question_language or language), located)
    if not at.size:
        return float(max_distance)
    first = bisect_right(located.ends, answer.start)
    last = bisect_left(located.starts, answer.end) - 1
    return float(np.abs(at - (first + last) / 2).mean())


def distances(questions: Questions, *, max_distance: float = 384) -> np.ndarray:
    """`word_distance` of every question to its first answer: float64 (n,)."""
    languages = questions.context_language, questions.question_language
    rows = zip(questions.questions, questions.contexts, questions.answers, strict=True)
    return np.array(
        [
            word_distance(
                question,
                context,
                answers[0],
                languages[0],
                question_language=languages[1],
                max_distance=max_distance,
            )
            for question, context, answers in rows
        ],
        dtype=np.float64,
    )


def overlap_answers(questions: Questions, length: int) -> list[str]:
    """Answers without a model: the ``length`` words with the question's words closest around them.

    Of all spans of ``length`` words (of the whole context, where it has fewer), that with the
    largest sum of ``1 / (1 + d)`` over the words of the context outside the span that are words of
    the question, at distance ``d`` from its centre; the first of equals, which is the beginning of
    the context where no word of the question occurs. Words are compared as in `word_distance`, of
    which this is the shortcut: what it gets right needs no understanding of the question.

    Raises QuestionsError for a length below 1.
    """
    if length < 1:
        raise QuestionsError(f"an answer of {length} words is none; take at least one")
    found = []
    for question, context in zip(questions.questions, questions.contexts, strict=True):
        located = _located(context, questions.context_language)
        n = len(located.starts)
        size = min(length, n)
        if not n:
            found.append("")
            continue
        is_asked = np.zeros(n)
        is_asked[_occurrences(_asked(question, questions.question_language), located)] = 1
        # Rounded, so that sums that are equal but for the order of their terms are a tie.
        first = int(np.round(_nearness(is_asked, size), 9).argmax())
        found.append(context[located.starts[first] : located.ends[first + size - 1]])
    return found


def _nearness(is_asked: np.ndarray, size: int) -> np.ndarray:
    """For every span of ``size`` words, the sum that `overlap_answers` maximises: (n - size + 1,).

    ``is_asked`` (n,) is 1 at the question's words.
    """
    n = len(is_asked)
    return np.convolve(is_asked, _kernel(n, size), mode="full")[n - 1 : 2 * n - size]


@lru_cache(maxsize=2**11)
def _kernel(n: int, size: int) -> np.ndarray:
    """Weight of a word by its offset from the beginning of the span, from n - 1 down to 1 - n."""
    offset = np.arange(n - 1, -n, -1)
    weight = 1 / (1 + np.abs(offset - (size - 1) / 2))
    weight[(offset >= 0) & (offset < size)] = 0
    return weight
