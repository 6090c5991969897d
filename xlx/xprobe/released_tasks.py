"""Probing tasks as SentEval and X-Probe release theirs, read from their files."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xlx.core.languages import lowered
from xlx.text import origins
from xlx.xprobe.probing_rules import PROBING_TASKS
from xlx.xprobe.probing_tasks import ProbingTask, TaskPart

#: Names of the tasks' files or folders in SentEval and X-Probe.
RELEASED: dict[str, str] = {
    "SentLen": "sentence_length",
    "WC": "word_content",
    "TreeDepth": "tree_depth",
    "BiShift": "bigram_shift",
    "SubjNum": "subj_number",
    "ObjNum": "obj_number",
    "CoordInv": "coordination_inversion",
    "SOMO": "odd_man_out",
    "Tense": "past_present",
}
_PUBLIC_PARTS = {"tr": "train", "va": "validation", "te": "test"}


def read_senteval(path: str | Path, name: str, language: str) -> ProbingTask:
    """A probing task as SentEval or X-Probe release theirs, in small letters.

    ``path`` is a file of lines ``part<TAB>label<TAB>sentence``, parts ``tr``, ``va`` and ``te``, as
    SentEval has it, or a folder with ``tr.txt``, ``va.txt`` and ``te.txt`` of lines
    ``sentence<TAB>label``, as X-Probe has it, or of the former. Label and sentence may stand in
    either order, the same throughout, with more columns between them, which are passed over: a
    label has no spaces, and of the sentences some have. Sentences are split at spaces. Classes are
    the labels in order, numbers by value; a base is the file and line, as what a sentence was made
    from is not said.

    Raises FileNotFoundError where a file is missing, ValueError for a malformed line (named), where
    it cannot be told which are the labels, for a part without sentences, a single class.
    """
    path = Path(path)
    lines = _lines(path)
    spaced = [any(" " in line[cell] for line in lines) for cell in (1, 2)]
    if spaced[0] == spaced[1]:
        raise ValueError(
            f"{path}: {'both' if spaced[0] else 'none'} of the two columns have spaces, so that it "
            "cannot be told which are the sentences and which the labels"
        )
    text, label = (1, 2) if spaced[0] else (2, 1)
    labels = {line[label] for line in lines}
    if len(labels) < 2:
        raise ValueError(f"{path}: all sentences have the label {labels.pop()}")
    numbers = all(re.fullmatch(r"-?[0-9]+", own) for own in labels)
    classes = {x: i for i, x in enumerate(sorted(labels, key=int if numbers else None))}
    parts = {}
    for short, part in _PUBLIC_PARTS.items():
        own = [line for line in lines if line[0] == short]
        if not own:
            raise ValueError(f"{path} has no sentences of {short}")
        tokens = tuple(tuple(lowered(line[text], language).split()) for line in own)
        coded = np.array([classes[line[label]] for line in own], dtype=np.int64)
        parts[part] = TaskPart(tokens, coded, tuple(line[3] for line in own))
    return ProbingTask(name, language, tuple(classes), **parts)


def read_released(
    folder: str | Path, language: str, names: Sequence[str] = PROBING_TASKS
) -> list[ProbingTask]:
    """The released tasks of a language: a folder with a file or folder of `RELEASED` for each.

    Parameters and errors as in `read_senteval`.
    """
    places = [(name, Path(folder) / RELEASED[name]) for name in names]
    return [
        read_senteval(place if place.is_dir() else place.with_suffix(".txt"), name, language)
        for name, place in places
    ]


def _lines(path: Path) -> list[tuple[str, str, str, str]]:
    """Part, first and last cell of each line, and its file and number."""
    files = [(part, path / f"{part}.txt") for part in _PUBLIC_PARTS]
    lines = []
    for part_of_file, file in files if path.is_dir() else [("", path)]:
        if not file.is_file():
            raise FileNotFoundError(f"there is no {file}; give the file, or a folder with tr.txt")
        for number, line in enumerate(origins.decode(file.read_bytes(), str(file)), 1):
            cells = line.split("\t")
            named = part_of_file and (cells[0] != part_of_file or len(cells) < 3)
            part = part_of_file if named else cells.pop(0)
            both = [cells[0].strip(), cells[-1].strip()] if cells else []
            if part not in _PUBLIC_PARTS or len(cells) < 2 or not all(both):
                raise ValueError(
                    f"{file}, line {number}: not tr, va or te, a label and a sentence (in either "
                    "order), parted by tabs"
                )
            lines.append((part, *both, f"{file.name}:{number}"))
    return lines
