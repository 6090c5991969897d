"""Words of a text in any language: between spaces, or by characters where there are none.

Most languages put spaces between words. Chinese, Japanese and Thai do not, and no dictionary is
asked here: a Chinese or Japanese character is a word, and so is a Thai character with the vowels
and tones above and below it. Numbers in words of these three compare with none of the others.
"""

import json
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from xlx.text.files import TextError, contents, entry, files_below, left_out, single_file, unpacked
from xlx.text.parallel import language_code
from xlx.text.parallel_sets import Rows, common, digest, reordered, shortest

#: Languages written without spaces between words, as far as `words` knows them.
SPACELESS: tuple[str, ...] = ("ja", "th", "zh")
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


@cache
def spaceless(language: str) -> bool:
    """Whether the language (of "zh-en": of the context) is written without spaces."""
    return language_code(language.split("-")[0]) in SPACELESS


@cache
def _punctuation() -> frozenset[str]:
    """ASCII punctuation and symbols, and all characters of Unicode's category P."""
    every = map(chr, range(sys.maxunicode + 1))
    return frozenset(string.punctuation).union(
        character for character in every if unicodedata.category(character)[0] == "P"
    )


@cache
def without_punctuation() -> dict[int, None]:
    """For `str.translate`: takes out ASCII's punctuation and symbols and Unicode's category P."""
    return dict.fromkeys(map(ord, _punctuation()))


@cache
def word_pattern(spaceless: bool) -> re.Pattern[str]:
    """What is a word in languages without spaces, or with them."""
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
    Chinese and Japanese each character, in Thai each grapheme cluster, is a word; so is every other
    run without spaces, such as "NFL" or "3.5", and every punctuation mark at its ends ("mixed
    segmentation", as MLQA's metric does in Chinese). No character but white space is in no word.
    """
    matches = word_pattern(spaceless(language)).finditer(text)
    return [(match[0], match.start(), match.end()) for match in matches]


def words(text: str, language: str) -> list[str]:
    """The words of `word_spans`."""
    return word_pattern(spaceless(language)).findall(text)


def joined_words(split: Sequence[str], language: str) -> str:
    """A text of these words, with spaces as the language has them, or so that none two are one."""
    if not spaceless(language):
        return " ".join(split)
    text = ""
    for word in split:
        # Without a space "2015" and "NFL" would be one word.
        text += f" {word}" if text and _MEETING.fullmatch(text[-1] + word[0]) else word
    return text


#: Why something is left out in reading: answers of the first two kinds, questions of the others.
REASONS: tuple[str, ...] = ("misplaced answer", "blank answer", "no answer", "blank question")


class Answer(NamedTuple):
    """A span of a context: its text, and the position of its first character (from 0)."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, repr=False)
class Questions(Rows):
    """Questions, each with the paragraph that answers it and one or more answers in it.

    ``contexts`` and ``questions`` have one string a question (several questions may have the same
    context), ``answers`` one tuple of `Answer`; ``ids`` tells questions apart and is the same in
    every language. ``language`` is a code such as "de"; "en-de" is a context in English with a
    question in German. ``name`` says in messages what this is: "xquad de test". ``left_out`` counts
    what was not read, by reason (`REASONS`, and in what is shipped those of its catalogue);
    ``dropped`` are the ids of the questions that were not read.
    """

    name: str
    language: str
    contexts: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[tuple[Answer, ...], ...]
    ids: tuple[str, ...]
    left_out: dict[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    rows: ClassVar[tuple[str, ...]] = ("contexts", "questions", "answers", "ids")
    unit: ClassVar[str] = "question"
    crossing: ClassVar[str] = "questions"

    @property
    def context_language(self) -> str:
        """The language of contexts and answers: "en" of "en-de"."""
        return self.languages[0]

    @property
    def question_language(self) -> str:
        """The language of the questions: "de" of "en-de"."""
        return self.languages[1]

    @property
    def paragraphs(self) -> np.ndarray:
        """Which distinct context each question has: int64 (n,), numbered from 0 in order."""
        number: dict[str, int] = {}
        return np.array([number.setdefault(text, len(number)) for text in self.contexts], dtype=int)

    @property
    def lengths(self) -> np.ndarray:
        """Characters of each context: int64 ``(n,)``."""
        return np.array([len(context) for context in self.contexts], dtype=int)

    def text_hash(self) -> str:
        """SHA-256 of contexts, questions and answers (`parallel_sets.digest`)."""
        rows = zip(self.contexts, self.questions, self.answers, strict=True)
        return digest(
            text
            for context, question, answers in rows
            for text in (
                *(context, question, str(len(answers))),
                *chain.from_iterable((answer.text, str(answer.start)) for answer in answers),
            )
        )

    def shuffled(self, seed: int) -> "Questions":
        """The words of every question in random order, all else as it is (section 5).

        Words are those of `segmentation.words`. A question that occurs several times has one order,
        which depends on the seed and the position of its first occurrence.
        """
        split = partial(words, language=self.question_language)
        join = partial(joined_words, language=self.question_language)
        texts = reordered(self.questions, (seed,), split, join)
        return replace(self, name=f"{self.name}, questions shuffled", questions=texts)


def questionless(questions: Questions) -> Questions:
    """Empty questions: what can be answered from the context alone."""
    name, empty = f"{questions.name}, without questions", ("",) * len(questions)
    return replace(questions, name=name, questions=empty)


# --- loading --------------------------------------------------------------------------------------

#: Where a source comes from, and the file of a local copy by split.
_SOURCES = {
    "xquad": ("github.com/google-deepmind/xquad", {"test": "xquad.{}.json"}),
    "tydiqa": (
        "github.com/google-research/xtreme (TyDi QA GoldP)",
        {"train": "tydiqa.goldp.{}.train.json", "validation": "tydiqa.goldp.{}.dev.json"},
    ),
    "tydiqa-whole": (
        "github.com/google-research/xtreme (TyDi QA GoldP)",
        {"train": "tydiqa.goldp.{}.train.json", "validation": "tydiqa.goldp.{}.dev.json"},
    ),
    "squad": (
        "rajpurkar.github.io/SQuAD-explorer",
        {"train": "train-v1.1.json", "validation": "dev-v1.1.json"},
    ),
}


def load_questions(
    source: str, language: str, split: str = "test", *, path: str | Path | None = None
) -> Questions:
    """One split of a source in a language.

    Parameters
    ----------
    source : "xquad", "tydiqa", "tydiqa-whole" or, with ``path``, "squad".
    language : ISO 639 code, such as "de"; SQuAD is in "en".
    split : "train", "validation" or "test". XQuAD has "test" alone, the others have the first two:
        the public ``dev`` is "validation" (XTREME withholds the answers of TyDi QA's; the shipped
        validation part, of both sources, is of its train).
    path : a local copy, a file or a folder that holds it at any depth, under its public name (see
        the table at the top), also with ``.xz``; None for what is shipped.

    Ids are those of the public file, but of TyDi QA "train:1", "dev:1" and so on, by the place in
    it: XTREME's train parts have no others that tell questions apart.

    Raises TextError (a ValueError) for what there is not, for malformed files (with the place) and
    a shipped file that was changed; FileNotFoundError where there is nothing at ``path``.
    """
    if source not in _SOURCES:
        raise TextError(f"there is no source {source!r}; there are {', '.join(_SOURCES)}")
    url, files = _SOURCES[source]
    if split not in files:
        raise TextError(
            f"{source} has no {split!r} part with answers; it has {' and '.join(files)}"
        )
    language = language_code(language)
    if source == "squad" and language != "en":
        raise TextError(f"SQuAD is in English (en), not in {language}")
    name, file_name = f"{source} {language} {split}", files[split].format(language)
    if path is None:
        how = f"Get {source} from {url} and give path=, a folder with {file_name}."
        row = entry("questions", how, source=source, split=split, language=language)
        read = read_squad(contents("questions", row), name, language)
        if (source, split) == ("tydiqa-whole", "train"):  # its file has what tydiqa's has not
            read = _merged(read, load_questions("tydiqa", language, split))
        return replace(read, left_out=read.left_out | left_out(row))
    if source == "tydiqa-whole":
        raise TextError(f"{source} is shipped alone; read a local copy as source='tydiqa'.")
    files = files_below(
        Path(path), lambda file: file.name in (file_name, f"{file_name}.xz"), file_name,
        f"get it from {url}",
    )  # fmt: skip
    file = single_file(files, f"the questions of {file_name}")
    # XTREME has cut the ids of TyDi QA's train parts to a number that many questions share.
    prefix = {"train": "train", "validation": "dev"}[split] if source == "tydiqa" else None
    return read_squad(file, name, language, prefix=prefix)


def _merged(part: Questions, more: Questions) -> Questions:
    """Both parts as one, in the order of the public file, whose places are the ids."""
    rows = {
        name: getattr(part, name) + getattr(more, name)
        for name in ("contexts", "questions", "answers", "ids")
    }
    order = sorted(range(len(rows["ids"])), key=lambda i: int(rows["ids"][i].split(":")[1]))
    return replace(part, **rows).at(order)


def parallel_questions(
    source: str,
    languages: Sequence[str],
    split: str = "test",
    n: int | None = None,
    *,
    per_context: int | None = None,
    path: str | Path | None = None,
) -> tuple[dict[str, Questions], dict[str, int]]:
    """A part of a source in several languages: what all of them have, the `shortest` n at most.

    ``per_context``: so many questions of a context at most. Returns the sets and, for each
    language, how many of the questions that some language has it lacks. Errors as `load_questions`
    and `common`.
    """
    loaded = {code: load_questions(source, code, split, path=path) for code in languages}
    sets, _ = common(loaded)
    anywhere = set().union(*(questions.ids for questions in loaded.values()))
    lacking = {code: len(anywhere) - len(questions) for code, questions in loaded.items()}
    kept = shortest(sets, n, per_context)
    return {code: questions.at(kept) for code, questions in sets.items()}, lacking


# --- reading --------------------------------------------------------------------------------------


def read_squad(
    source: str | Path | bytes, name: str, language: str, *, prefix: str | None = None
) -> Questions:
    """The questions of a file in the JSON of SQuAD v1.1, plain or packed with xz.

    ``source`` is the file or its contents; ``name`` and ``language`` are those of the result. With
    ``prefix`` "train", ids are "train:1", "train:2" and so on by the place of a question among all
    in the file; None for the ids that the file has. ``answer_start`` counts code points.

    Raises TextError, with file and place, for what is no UTF-8 or JSON, a field that is missing or
    of another type, an id that comes twice, and a file of which no question is left.
    """
    if isinstance(source, bytes):
        data, where = source, name
    else:
        data, where = Path(source).read_bytes(), str(source)
    left_out = Counter(dict.fromkeys(REASONS, 0))
    seen: dict[str, str] = {}
    dropped: list[str] = []
    rows: list[tuple[str, str, tuple[Answer, ...], str]] = []
    for place, context, qa in _entries(_json(data, where), where):
        key, question = _field(qa, "id", str, place), _field(qa, "question", str, place)
        if prefix is not None:
            key = f"{prefix}:{len(seen) + 1}"
        if key in seen:
            raise TextError(
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
        raise TextError(
            f"{where}: none of its {len(seen)} questions can be used ({why or 'it is empty'}); is "
            "this the file with answers? XTREME withholds those of its dev and test parts"
        )
    columns = tuple(zip(*rows, strict=True))
    return Questions(name, language, *columns, dict(left_out), tuple(dropped))


def _json(data: bytes, where: str) -> object:
    data = unpacked(data, where)
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # of UTF-8, of JSON, of nesting
        raise TextError(f"{where}: no JSON in UTF-8 ({error}); fetch the file again") from None


_KINDS = {str: "a string", int: "a whole number", list: "a list"}


def _field(thing: object, key: str, kind: type, place: str) -> object:
    """A field of a JSON object, of the kind that SQuAD has there."""
    value = thing.get(key) if isinstance(thing, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TextError(f"{place}: no {key!r} that is {_KINDS[kind]}, as SQuAD v1.1 has there")
    return value


def _entries(whole: object, where: str) -> Iterable[tuple[str, str, object]]:
    """Place, context and JSON object of every question."""
    for i, article in enumerate(_field(whole, "data", list, where)):
        place = f"{where}, data[{i}]"
        for j, paragraph in enumerate(_field(article, "paragraphs", list, place)):
            here = f"{place}.paragraphs[{j}]"
            context = _field(paragraph, "context", str, here)
            for k, qa in enumerate(_field(paragraph, "qas", list, here)):
                yield f"{here}.qas[{k}]", context, qa


def stands(answer: Answer, context: str) -> bool:
    """Whether there is an answer, and it is in the context where it says."""
    here = answer.start >= 0 and context.startswith(answer.text, answer.start)
    return here and bool(answer.text.strip())


def _answers(qa: object, context: str, place: str) -> tuple[tuple[Answer, ...], Counter[str]]:
    """The answers that stand in the context where they say, and the numbers of the others."""
    good, problems = [], Counter()
    given = _field(qa, "answers", list, place)
    for i, answer in enumerate(given):
        here = f"{place}.answers[{i}]"
        answer = Answer(
            _field(answer, "text", str, here), _field(answer, "answer_start", int, here)
        )
        if not answer.text.strip():
            problems["blank answer"] += 1
        elif not stands(answer, context):
            problems["misplaced answer"] += 1
        else:
            good.append(answer)
    if not given:
        problems["no answer"] += 1
    return tuple(good), problems
