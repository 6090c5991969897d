"""Questions about paragraphs: XQuAD, TyDi QA, SQuAD; shipped, or local copies in SQuAD's JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy import ndarray

from xlx.results import checks
from xlx.text import files
from xlx.text.examples import Rows, common, digest, shortest
from xlx.text.files import TextError
from xlx.text.languages import base_code

#: Why something is left out in reading: answers of the first two kinds, questions of the others.
REASONS = ("misplaced answer", "blank answer", "no answer", "blank question")


class Answer(NamedTuple):
    """A span of a context: its text, and the position of its first character (from 0)."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)


@checks.typed(TextError)
@dataclass(frozen=True, repr=False)
class Questions(Rows):
    """Questions, each with the paragraph that answers it and one or more answers in it.

    One entry per question: ``contexts`` (several questions may have the same), ``questions``,
    ``answers`` (a tuple of `Answer`), ``ids``, which are the same in every language. ``language``
    is a code such as "de"; "en-de" is a context in English with a question in German. ``left_out``
    counts what was not read, by reason (`REASONS`, and in what is shipped those of its catalogue).
    """

    name: str
    language: str
    contexts: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[tuple[Answer, ...], ...]
    ids: tuple[str, ...]
    left_out: dict[str, int] = field(default_factory=dict)
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
    def paragraphs(self) -> ndarray:
        """Which distinct context each question has: int64 (n,), numbered from 0 in order."""
        number = {}
        return np.array([number.setdefault(text, len(number)) for text in self.contexts], int)

    @property
    def lengths(self) -> ndarray:
        """Characters of each context: int64 ``(n,)``."""
        return np.array([len(context) for context in self.contexts], int)

    @cached_property
    def _hash(self) -> str:
        """Of contexts, questions and answers."""
        rows = zip(self.contexts, self.questions, self.answers, strict=True)
        return digest(
            text
            for context, question, answers in rows
            for text in (
                *(context, question, str(len(answers))),
                *chain.from_iterable((answer.text, str(answer.start)) for answer in answers),
            )
        )


_XTREME = "github.com/google-research/xtreme (TyDi QA GoldP)"
_TYDIQA = {"train": "tydiqa.goldp.{}.train.json", "validation": "tydiqa.goldp.{}.dev.json"}
#: Where a source comes from, and the file of a local copy by split.
_SOURCES = {
    "xquad": ("github.com/google-deepmind/xquad", {"test": "xquad.{}.json"}),
    "tydiqa": (_XTREME, _TYDIQA),
    "tydiqa-whole": (_XTREME, _TYDIQA),
    "squad": (
        "rajpurkar.github.io/SQuAD-explorer",
        {"train": "train-v1.1.json", "validation": "dev-v1.1.json"},
    ),
}


@checks.typed(TextError)
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
    path : a local copy, a file or a folder that holds it at any depth, under its public name, also
        with ``.xz``; None for what is shipped.

    Ids are those of the public file, but of TyDi QA "train:1", "dev:1" and so on, by the place in
    it: XTREME's train parts have no others that tell questions apart.

    Raises TextError (a ValueError) for what there is not, for malformed files (with the place) and
    a shipped file that was changed; FileNotFoundError where there is nothing at ``path``.
    """
    checks.one_of(source, _SOURCES, "source", TextError)
    url, parts = _SOURCES[source]
    checks.one_of(split, parts, f"part of {source} with answers", TextError)
    language = base_code(language)
    if source == "squad" and language != "en":
        raise TextError(f"SQuAD is in English (en), not in {language}")
    name, file_name = f"{source} {language} {split}", parts[split].format(language)
    if path is None:
        how = f"Get {source} from {url} and give path=, a folder with {file_name}."
        row = files.entry("questions", how, language, source=source, split=split)
        read = read_squad(files.contents("questions", row), name, language)
        if (source, split) == ("tydiqa-whole", "train"):  # its file has what tydiqa's has not
            more = load_questions("tydiqa", language, split)
            rows = {name: getattr(read, name) + getattr(more, name) for name in Questions.rows}
            places = [int(key.split(":")[1]) for key in rows["ids"]]  # in the public file
            read = replace(read, **rows).at(np.argsort(places))
        why = (reason.rsplit(": ", 1) for reason in row["left_out"].split("; ") if reason)
        return replace(read, left_out=read.left_out | {reason: int(n) for reason, n in why})
    if source == "tydiqa-whole":
        raise TextError(f"{source} is shipped alone; read a local copy as source='tydiqa'.")
    names = (file_name, f"{file_name}.xz")
    how = f"get it from {url}"
    candidates = files.files_below(Path(path), lambda file: file.name in names, file_name, how)
    file = files.single_file(candidates, f"the questions of {file_name}")
    # XTREME has cut the ids of TyDi QA's train parts to a number that many questions share.
    prefix = {"train": "train", "validation": "dev"}[split] if source == "tydiqa" else None
    return read_squad(file, name, language, prefix=prefix)


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
    language, how many of the questions that some language has it lacks.
    """
    loaded = {code: load_questions(source, code, split, path=path) for code in languages}
    sets, _ = common(loaded)
    anywhere = set().union(*(questions.ids for questions in loaded.values()))
    lacking = {code: len(anywhere) - len(questions) for code, questions in loaded.items()}
    places = shortest(sets, n, per_context)
    return {code: questions.at(places) for code, questions in sets.items()}, lacking


def questionless(questions: Questions) -> Questions:
    """Empty questions: what can be answered from the context alone."""
    name, empty = f"{questions.name}, without questions", ("",) * len(questions)
    return replace(questions, name=name, questions=empty)


def read_squad(
    source: str | Path | bytes, name: str, language: str, *, prefix: str | None = None
) -> Questions:
    """The questions of a file in the JSON of SQuAD v1.1, plain or packed with xz.

    ``source`` is the file or its contents. With ``prefix`` "train", ids are "train:1", "train:2"
    and so on by the place of a question in the file; None for the ids that the file has.
    ``answer_start`` counts code points. Raises TextError, with file and place, for what is no UTF-8
    or JSON, a field that is missing or of another type, an id that comes twice, and a file of which
    no question is left.
    """
    where = name if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    data = files.unpacked(data, where)
    try:
        whole = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # of UTF-8, of JSON, of nesting
        raise TextError(f"{where}: no JSON in UTF-8 ({error}); fetch the file again") from None
    left_out = dict.fromkeys(REASONS, 0)
    seen = {}
    rows = []
    for place, context, question, given, key in _entries(whole, where):
        checks.whole_characters([context, question, *given], f"{place}, its texts", TextError)
        if prefix is not None:
            key = f"{prefix}:{len(seen) + 1}"
        if key in seen:
            what = f"the id {key!r} is also at {seen[key]}"
            raise TextError(f"{place}: {what}; with prefix= questions are named by their place")
        seen[key] = place.removeprefix(f"{where}, ")
        answers = tuple(answer for answer in given if stands(answer, context))
        if not question.strip():
            left_out["blank question"] += 1
            continue
        if answers:
            rows.append((context, question, answers, key))
        left_out["no answer"] += not given
        bad = [answer for answer in given if answer not in answers]
        left_out["blank answer"] += (blank := sum(not answer.text.strip() for answer in bad))
        left_out["misplaced answer"] += len(bad) - blank
    if not rows:
        why = ", ".join(f"{reason}: {n}" for reason, n in left_out.items() if n) or "it is empty"
        what = f"none of its {len(seen)} questions can be used ({why})"
        raise TextError(f"{where}: {what}; has it answers? XTREME withholds those of dev and test")
    columns = tuple(zip(*rows, strict=True))
    return Questions(name, language, *columns, left_out)


def _entries(whole: Any, where: str) -> Iterator[tuple[str, str, str, list[Answer], str]]:
    """Place, context, question, answers and id of every question."""
    place = where
    try:
        for i, article in enumerate(_of(whole, "data", list)):
            place = f"{where}, data[{i}]"
            for j, paragraph in enumerate(_of(article, "paragraphs", list)):
                place = f"{where}, data[{i}].paragraphs[{j}]"
                context = _of(paragraph, "context", str)
                for k, qa in enumerate(_of(paragraph, "qas", list)):
                    place = f"{where}, data[{i}].paragraphs[{j}].qas[{k}]"
                    key, question = _of(qa, "id", str), _of(qa, "question", str)
                    given = _of(qa, "answers", list)
                    spans = [
                        Answer(_of(x, "text", str), _of(x, "answer_start", int)) for x in given
                    ]
                    yield place, context, question, spans, key
    except KeyError as error:
        what = f"no {error.args[0]}"
        raise TextError(f"{place}: {what}, as SQuAD v1.1 has there") from None


def _of(thing: Any, key: str, kind: type) -> Any:
    """A field of a JSON object, of the type that SQuAD has there; else a KeyError."""
    value = thing.get(key) if isinstance(thing, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        names = {str: "a string", int: "a whole number", list: "a list"}
        raise KeyError(f"{key!r} that is {names[kind]}")
    return value


def stands(answer: Answer, context: str) -> bool:
    """Whether there is an answer, and it is in the context where it says."""
    here = answer.start >= 0 and context.startswith(answer.text, answer.start)
    return here and bool(answer.text.strip())
