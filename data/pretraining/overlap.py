"""Is evaluation text in the pretraining text? Lines that are the same, and 13-grams in common.

    python data/pretraining/overlap.py --evaluation FOLDER [FOLDER ...]

``--evaluation`` names the folders of the originals, unpacked, as in ``make.py``: one row each, by
the name of the folder. Rows of their own have the evaluation text that the repository ships
(``data/wmt24pp``, ``data/flores200``, ``data/new_testament``, ``data/labelled``,
``data/questions``, ``data/trees``) and the parts that stay out of training: the last documents of
NTREX-128 and, where one of the folders is ``bible_nt``, the books of `HELD_OUT_BOOKS` in it. The
corpus ``new-testament`` has no row: all its lines are pretraining lines, on purpose. Written beside
this script: ``overlap.tsv``, one row a set, which the README shows. The matches are printed.

Pretraining text is every line of the four archives; for the held-out documents of NTREX, which are
in the archive and not trained on, it is all the others. All languages are compared with all.

A line is a text that a file of the set holds, without white space at its ends, counted once a set:
a sentence, but also a paragraph of questions about it, an answer or a label. Columns:

* ``lines``: how many; ``exact``: lines that are a pretraining line; ``normalised``: lines whose
  letters and digits are those of one (case, spaces and punctuation do not matter, as in
  ``make.py``). Both count lines of `SHORT` letters and digits or more; ``short_exact`` counts the
  exact matches among the others, which may stay ("Yes.", a first name).
* ``word_lines``: lines of `N` words or more; ``word_lines_shared``, ``word_share``: those that
  share `N` consecutive words with a pretraining line, their number and share; ``word_grams``,
  ``word_grams_shared``: the distinct sequences of `N` words in the set, and those of them that are
  in the pretraining text too.
* ``character_*``: the same for sequences with a character of a script that puts no spaces between
  words, where each character counts as a word (see `Units`). Thirteen characters are far less
  than thirteen words, often one set phrase: compare these numbers with none of words.
"""

import argparse
import re
import unicodedata
import warnings
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from family.pretraining_text import HELD_OUT_BOOKS, PRETRAINING_SOURCES, held_out_ids, read_source
from make import SHORT, texts_of
from xlx.text import labelled, parallel
from xlx.text.files import catalogue, letters
from xlx.text.questions import load_questions
from xlx.text.trees import load_trees

HERE = Path(__file__).parent


#: Words in a sequence. GPT-3 looked for overlap of 13 words too (Brown et al. 2020, appendix C).
N = 13

#: Blocks of the scripts that put no spaces between words: Thai, Lao, Myanmar, Khmer, Han, kana.
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\U00020000-\U0003ffff"
)

#: The parallel text that is shipped: folder of data/ and name of the corpus.
SHIPPED = {
    "flores200": "flores200-100",
    "wmt24pp": "wmt24pp",
    "new_testament": "new-testament-held-out",
}

#: What the columns of a 13-gram count are called by what the 13 are.
KINDS = ("word", "character")


class Units(dict[int, str]):
    """The units of a text: words, and the characters of scripts without spaces.

    As a dictionary, what `str.translate` puts for a code point, so that white space parts the
    units: letters, digits and combining marks (the vowel signs of Hindi are such) stay; those of a
    script without spaces stand alone; variation selectors go; all else is a space.
    """

    spaceless = re.compile(f"[{SPACELESS}]")
    selector = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")

    def __init__(self) -> None:
        self.alone: set[str] = set()  # the characters seen that are units

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if self.selector.match(character):
            self[code] = ""
        elif not character.isalnum() and unicodedata.category(character)[0] != "M":
            self[code] = " "
        elif self.spaceless.match(character):
            self.alone.add(character)
            self[code] = f" {character} "
        else:
            self[code] = character
        return self[code]

    def split(self, text: str, at_least: int = 0) -> list[str]:
        """The units in order, in NFKC, casefolded; none where they are fewer than ``at_least``."""
        text = unicodedata.normalize("NFKC", text).casefold().translate(self)
        # Counting spaces is fast, and most lines are short.
        split = text.split() if text.count(" ") >= at_least - 1 else []
        return split if len(split) >= at_least else []


class Grams(NamedTuple):
    """Every sequence of `N` units of some lines: its hash, its line, whether a character is in it.

    All three (n_grams,); a sequence that occurs twice is there twice. Among 10 ** 14 comparisons of
    different sequences one is taken for the same with a probability of 10 ** -5.
    """

    hashes: np.ndarray  # int64
    line: np.ndarray  # int64
    of_characters: np.ndarray  # bool

    @classmethod
    def of(cls, lines: Iterable[str], units: Units) -> "Grams":
        hashes, line, of_characters = array("q"), array("q"), array("b")
        for number, text in enumerate(lines):
            split = units.split(text, at_least=N)
            alone = [unit in units.alone for unit in split]
            for k in range(len(split) - N + 1):
                hashes.append(hash(tuple(split[k : k + N])))
                line.append(number)
                of_characters.append(any(alone[k : k + N]))
        return cls(np.array(hashes), np.array(line), np.array(of_characters, dtype=bool))


@dataclass(frozen=True)
class Pretraining:
    """What evaluation text is looked up in: lines, lines as their letters, hashes of 13-grams."""

    lines: frozenset[str]
    letters: frozenset[str]  # without those too short to be looked up
    grams: np.ndarray  # (n_distinct,) int64, ascending

    @classmethod
    def of(cls, lines: Iterable[str], units: Units) -> "Pretraining":
        trimmed = dict.fromkeys(line.strip() for line in lines)  # in order: faster to read
        keys = frozenset(key for key in map(letters, trimmed) if len(key) >= SHORT)
        return cls(frozenset(trimmed), keys, np.unique(Grams.of(trimmed, units).hashes))

    def overlap(self, lines: Iterable[str], units: Units) -> tuple[dict[str, float], list[str]]:
        """One row of the table, without the name of the set, and the lines that match."""
        trimmed = sorted({line.strip() for line in lines} - {""})
        keys = list(map(letters, trimmed))
        long = np.array([len(key) >= SHORT for key in keys], dtype=bool)
        exact = np.array([line in self.lines for line in trimmed], dtype=bool)
        normalised = np.array([key in self.letters for key in keys], dtype=bool)
        row: dict[str, float] = {
            "lines": len(trimmed),
            "short_exact": int((exact & ~long).sum()),
            "exact": int((exact & long).sum()),
            "normalised": int(normalised.sum()),
        }
        grams = Grams.of(trimmed, units)
        shared = np.isin(grams.hashes, self.grams)
        for kind, mine in zip(KINDS, (~grams.of_characters, grams.of_characters), strict=True):
            n_lines = len(np.unique(grams.line[mine]))
            n_shared = len(np.unique(grams.line[mine & shared]))
            row[f"{kind}_lines"] = n_lines
            row[f"{kind}_lines_shared"] = n_shared
            row[f"{kind}_share"] = n_shared / n_lines if n_lines else 0.0
            row[f"{kind}_grams"] = len(np.unique(grams.hashes[mine]))
            row[f"{kind}_grams_shared"] = len(np.unique(grams.hashes[mine & shared]))
        return row, [line for line, same in zip(trimmed, normalised, strict=True) if same]


def pretraining_lines(without_held_out: bool = False) -> Iterator[str]:
    """All lines of the four archives, or those that members are trained on."""
    apart = held_out_ids() if without_held_out else set()
    for source in PRETRAINING_SOURCES:
        for by_id in read_source(source).values():
            for key, line in by_id.items():
                if source != "ntrex" or key not in apart:
                    yield line


def shipped_lines(name: str) -> Iterator[str]:
    """The text of a corpus in ``data/``: every sentence, and every line of one that has several."""
    with warnings.catch_warnings():
        # It says that sentences are repeated; here none counts twice.
        warnings.simplefilter("ignore", parallel.CorpusWarning)
        corpus = parallel.load(name)
    for sentences in corpus.sentences.values():
        for sentence in sentences:
            yield sentence
            yield from sentence.splitlines()


def original_lines(folder: Path) -> Iterator[str]:
    """The text of an evaluation set, whatever its format: what ``make.py`` compares too.

    Of New Testaments, the verses of the held-out books, in translations that members train on.
    """
    translations = read_source("bible_nt").keys() if folder.name == "bible_nt" else ()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stem.lower() not in ("readme", "license"):
            if folder.name != "bible_nt":
                yield from texts_of(path)
            elif path.stem in translations:
                rows = (row.split("\t", 1) for row in path.read_text("utf-8").split("\n") if row)
                held = (verse for key, verse in rows if key.split(".")[0] in HELD_OUT_BOOKS)
                yield from (" ".join(verse.split()) for verse in held)


def held_out_documents() -> Iterator[str]:
    """The lines of NTREX-128 on which every member's loss is taken by language."""
    apart = held_out_ids()
    for by_id in read_source("ntrex").values():
        yield from (line for key, line in by_id.items() if key in apart)


def labelled_lines() -> Iterator[str]:
    """The sentences of ``data/labelled``, words joined by spaces; of pairs both."""
    for row in catalogue("labelled").itertuples():
        for split in labelled.SPLITS:
            if getattr(row, split):
                part = labelled.load_labelled(row.task, row.language, split, source=row.source)
                if isinstance(part, labelled.Tagged):
                    yield from map(" ".join, part.sentences)
                else:
                    yield from (*part.first, *(part.second or ()))


def question_lines() -> Iterator[str]:
    """The text of ``data/questions``: contexts, every line of them, questions, answers."""
    for row in catalogue("questions").itertuples():
        part = load_questions(row.source, row.language, row.split)
        yield from part.questions
        for context, answers in zip(part.contexts, part.answers, strict=True):
            yield context
            yield from context.splitlines()
            yield from (answer.text for answer in answers)


def tree_lines() -> Iterator[str]:
    """The sentences of ``data/trees``, tokens joined by spaces and words joined by spaces."""
    for row in catalogue("trees").itertuples():
        for tree in load_trees(row.language, row.source):
            yield " ".join(tree.tokens)
            yield " ".join(tree.words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--evaluation", type=Path, nargs="+", required=True)
    originals: list[Path] = parser.parse_args().evaluation
    units, rows = Units(), []

    def add(name: str, text: Pretraining, lines: Iterable[str]) -> None:
        row, matches = text.overlap(lines, units)
        rows.append({"set": name, **row})
        print(name, row, *matches, sep="\n    ", flush=True)

    text = Pretraining.of(pretraining_lines(), units)
    for folder, name in SHIPPED.items():
        add(f"data/{folder}", text, shipped_lines(name))
    add("data/labelled", text, labelled_lines())
    add("data/questions", text, question_lines())
    add("data/trees", text, tree_lines())
    for folder in originals:
        books = ", held-out books" if folder.name == "bible_nt" else ""
        add(f"{folder.name}{books}", text, original_lines(folder))
    del text  # two of them at a time would take a gigabyte
    text = Pretraining.of(pretraining_lines(without_held_out=True), units)
    add("ntrex, held-out documents", text, held_out_documents())
    table = pd.DataFrame(rows)
    table.to_csv(HERE / "overlap.tsv", sep="\t", index=False, float_format="%.6f")
    print(table.to_string())


if __name__ == "__main__":
    main()
