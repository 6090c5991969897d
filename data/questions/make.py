"""Make the shipped questions from the unpacked originals.

    python data/questions/make.py FOLDER

FOLDER holds ``xquad/`` (``xquad.de.json``) and ``tydiqa_goldp/`` (``tydiqa.goldp.en.train.json``).
Written beside this script, in the JSON of SQuAD v1.1 without spaces, in UTF-8, packed with xz:

* ``xquad/<lang>.json.xz``: the whole file, in the 11 languages of the paper;
* ``tydiqa/en.train.json.xz``, ``tydiqa/en.validation.json.xz``: `SIZES` questions of the public
  train part, drawn with a fixed seed, in its order; ids are "train:" and the place in it;
* ``tydiqa/en.more.json.xz``: what there is beside them to train on, which makes ``tydiqa-whole``;
* ``sources.tsv``: one row a file, read by `xlx.text.files.catalogue`.

Of TyDi QA are left out, in this order, and counted in ``sources.tsv``: contexts of more than
`LONGEST` characters; answers that begin or end with white space, which were cut at the wrong place;
what is in the miniature models' pretraining text (a context or a line of it, a question, an answer
of `SHORT` letters and digits or more); contexts that share `N` words in a row with one of XQuAD.
Two texts are the same when their letters and digits are (case, spaces and punctuation do not
matter). Questions with the same text or context, or with contexts that share `N` words in a row, go
to one part. In ``tydiqa-whole`` contexts may have any length, and nothing is drawn but the same
validation part. A line of XQuAD that is in the pretraining text stops the script.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from making import folder_named, linked, trained_letters, write_packed, write_table
from xlx.text.examples import aligned
from xlx.text.files import letters
from xlx.text.questions import Answer, Questions, load_questions, read_squad

HERE = Path(__file__).parent


SEED = 2024
SIZES = {"validation": 300, "train": 3000}
LONGEST = 1500
SHORT = 12  # as in data/pretraining/make.py
N = 13  # as in data/pretraining/overlap.tsv

#: In the order of the paper (Table 3).
XQUAD_LANGUAGES = ("en", "de", "ru", "es", "zh", "vi", "ar", "tr", "el", "hi", "th")

COLUMNS = (
    *("source", "language", "split", "questions", "contexts", "answers", "left_out", "made_from"),
    *("licence", "url", "file", "sha256"),
)
XQUAD = ("CC BY-SA 4.0", "https://github.com/google-deepmind/xquad")
TYDIQA = ("Apache-2.0", "https://github.com/google-research-datasets/tydiqa")


def grams(text: str) -> set[tuple[str, ...]]:
    """The sequences of `N` words."""
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[i : i + N]) for i in range(len(words) - N + 1)}


def keys(context: str, question: str, answers: Iterable[Answer]) -> set[str]:
    """What of a question may not be in the pretraining text."""
    texts = [context, *context.splitlines(), question, *(answer.text for answer in answers)]
    return {key for key in map(letters, texts) if len(key) >= SHORT}


def rows_of(part: Questions) -> list[tuple]:
    return list(zip(part.contexts, part.questions, part.answers, part.ids, strict=True))


def encode(part: Questions) -> str:
    """A part as SQuAD v1.1 writes it: a paragraph for each run of questions with one context."""
    paragraphs = []
    for context, question, answers, key in rows_of(part):
        if not paragraphs or paragraphs[-1]["context"] != context:
            paragraphs.append({"context": context, "qas": []})
        spans = [{"text": answer.text, "answer_start": answer.start} for answer in answers]
        paragraphs[-1]["qas"].append({"id": key, "question": question, "answers": spans})
    return compact({"version": "1.1", "data": [{"title": part.name, "paragraphs": paragraphs}]})


def compact(whole: object) -> str:
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def counted(part: Questions, left_out: Counter[str], made_from: str, about: tuple) -> tuple:
    """The row of a part without its file."""
    counts = (len(part), len(set(part.contexts)), sum(map(len, part.answers)))
    reasons = "; ".join(f"{reason}: {n}" for reason, n in left_out.items())
    return (*part.name.split(" "), *counts, reasons, made_from, *about)


def written(part: Questions, text: str, file: str) -> tuple[str, str]:
    """Write a part and check that it is read as it was; the file and its SHA-256."""
    if read_squad(text.encode(), part.name, part.language).text_hash() != part.text_hash():
        raise SystemExit(f"{file} is not read as it was written")
    return write_packed(HERE, file, text)


def xquad(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    parts = {code: load_questions("xquad", code, path=folder) for code in XQUAD_LANGUAGES}
    for code, part in aligned(parts).items():
        if any(part.left_out.values()) or any(
            keys(*each[:3]) & forbidden for each in rows_of(part)
        ):
            raise SystemExit(f"xquad {code}: {part.left_out}, or in the pretraining text")
        original = f"xquad.{code}.json"
        text = compact(json.loads((folder / original).read_text("utf-8")))
        row = counted(part, Counter(), f"{original}, all", XQUAD)
        yield (*row, *written(part, text, f"xquad/{code}.json.xz"))


def reasons(
    part: Questions, forbidden: frozenset[str], seen: set[tuple[str, ...]], longest: float = LONGEST
) -> list[str]:
    """Why each question is left out; "" where it is not."""

    def reason(context: str, question: str, answers: Sequence[Answer], _: str) -> str:
        if len(context) > longest:
            return "long context"
        if any(answer.text != answer.text.strip() for answer in answers):
            return "cut answer"
        if keys(context, question, answers) & forbidden:
            return "in the pretraining text"
        return "quoted in xquad" if grams(context) & seen else ""

    return [reason(*row) for row in rows_of(part)]


def groups(part: Questions) -> list[list[int]]:
    """Positions of questions that belong together, each group ascending."""
    return linked(
        [
            (("c", letters(context)), ("q", letters(question)), *grams(context))
            for context, question, _, _ in rows_of(part)
        ]
    )


def draw(part: Questions) -> dict[str, list[int]]:
    """Positions of each split, ascending, whole groups; validation first, and exactly its size."""
    together = groups(part)
    drawn = {split: [] for split in SIZES}
    order = np.random.default_rng(SEED).permutation(len(together)).tolist()
    for group in (together[i] for i in order):
        for split, size in SIZES.items():
            if len(drawn[split]) + len(group) <= size:
                drawn[split] += group
                break
    return {split: sorted(positions) for split, positions in drawn.items()}


def tydiqa(folder: Path, forbidden: frozenset[str], english: Questions) -> Iterable[tuple]:
    part = load_questions("tydiqa", "en", "train", path=folder)
    if any(part.left_out.values()):
        raise SystemExit(f"tydiqa: {part.left_out}")
    seen = set().union(*map(grams, english.contexts))
    made_from = f"tydiqa.goldp.en.train.json, {len(part)} questions"
    why = reasons(part, forbidden, seen)
    usable = part.at(i for i, reason in enumerate(why) if not reason)
    drawn = draw(usable)
    left_out = Counter(filter(None, why))
    left_out["not drawn"] = len(usable) - sum(map(len, drawn.values()))
    chosen, files = {}, {}
    for split in ("train", "validation"):
        chosen[split] = replace(usable.at(drawn[split]), name=f"tydiqa en {split}")
        files[split] = written(chosen[split], encode(chosen[split]), f"tydiqa/en.{split}.json.xz")
        yield (*counted(chosen[split], left_out, made_from, TYDIQA), *files[split])
    why = reasons(part, forbidden, seen, float("inf"))
    held_out = set(chosen["validation"].ids)
    for group in groups(part):
        if held_out & {part.ids[i] for i in group}:
            for i in group:
                why[i] = "" if part.ids[i] in held_out else why[i] or "like one of validation"
    left_out = Counter(filter(None, why))
    whole = part.at(i for i, x in enumerate(why) if not x and part.ids[i] not in held_out)
    whole = replace(whole, name="tydiqa-whole en train")
    there = set(chosen["train"].ids)
    more = whole.at(i for i, name in enumerate(whole.ids) if name not in there)
    file = written(more, encode(more), "tydiqa/en.more.json.xz")
    yield (*counted(whole, left_out, f"{made_from}; with {files['train'][0]}", TYDIQA), *file)
    held = replace(chosen["validation"], name="tydiqa-whole en validation")
    yield (*counted(held, left_out, made_from, TYDIQA), *files["validation"])


def main() -> None:
    folder = folder_named(__doc__, "xquad and tydiqa_goldp")
    forbidden = trained_letters()
    rows = list(xquad(folder / "xquad", forbidden))
    english = load_questions("xquad", "en", path=folder / "xquad")
    rows += tydiqa(folder / "tydiqa_goldp", forbidden, english)
    write_table(HERE / "sources.tsv", COLUMNS, rows)


if __name__ == "__main__":
    main()
