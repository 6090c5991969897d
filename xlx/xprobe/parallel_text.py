"""Words of a text, and lines of two languages that translate one another.

Words are those of the Moses tokeniser (section 6 of Ravishankar, Øvrelid and Velldal 2019).
Translations (`ParallelText`) are the aligned part of the shipped text, or files of one's own as
Europarl and MultiUN are published.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from sacremoses import MosesTokenizer

from xlx.core import paths, work
from xlx.core.languages import base_code, lowered
from xlx.family import pretraining_text

#: Raised by hand when parallel lines of the same files come out otherwise.
LINES_VERSION = 1


class WordVectorsError(ValueError):
    """Words, lines or pairs of words that cannot be read or made; says where, why, what to do."""


def tokenize(text: str, language: str) -> list[str]:
    """The words and punctuation marks of a text in small letters, by Moses' rules (section 6).

    A language for which Moses has no list of abbreviations is read by the rules of English, as
    XNLI's own text was; nothing is escaped for XML. Capitals tell where sentences end, so they are
    taken away afterwards. Languages written without spaces (zh, ja, th) come out in runs as long as
    the text has them; segment them beforehand. ValueError where `language` is no language tag.
    """
    return list(_tokenized(text, language))


# Moses takes a tenth of a millisecond a line, and English is read again for each of its partners.
@lru_cache(maxsize=100_000)
def _tokenized(text: str, language: str) -> tuple[str, ...]:
    tokens = _tokenizer(base_code(language)).tokenize(text, escape=False)
    # A line separator or a no-break space that Moses left in place parts words all the same.
    return tuple(lowered(word, language) for token in tokens for word in token.split())


@lru_cache(maxsize=64)
def _tokenizer(code: str) -> MosesTokenizer:
    return MosesTokenizer(lang=code)


@lru_cache(maxsize=1)
def shipped_text() -> pretraining_text.LinesById:
    """The pretraining text, which takes seconds to unpack."""
    return pretraining_text.read_text()[0]


@lru_cache(maxsize=64)
def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_about(sources: Sequence[str]) -> dict[str, Any]:
    """What decides the shipped text of some sources, found without unpacking it."""
    folder = paths.DATA / "pretraining"
    return {
        "archives": {source: file_hash(folder / f"{source}.tar.xz") for source in sources},
        "held_out_lines": pretraining_text.HELD_OUT_LINES,
    }


@dataclass(frozen=True)
class ParallelText:
    """Translations that are read when they are needed, named by where they are from.

    ``sources`` are aligned ones of the pretraining text, or folders of two files of as many lines
    that are named alike but for the language at the end, as those of Europarl and MultiUN:
    ``europarl-v7.de-en.de``, ``europarl-v7.de-en.en``. Lines that are empty in either are left out,
    and so is a source or folder that lacks either language. Of two files the first ``limit`` lines
    are read (2,000,000 of MultiUN in the paper); lines of more than ``longest`` words in either
    language are passed over, and the first ``most`` pairs of the others kept.
    """

    language_a: str
    language_b: str
    sources: tuple[str, ...] = pretraining_text.ALIGNED_SOURCES
    limit: int | None = None
    longest: int | None = None
    most: int | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the lines: hashes of the files that they are in, and the options."""
        languages = [self.language_a, self.language_b]
        sources = [
            {
                file.name: file_hash(file)
                for file in sorted(x for code in languages for x in Path(source).glob(f"*.{code}"))
            }
            if Path(source).is_dir()
            else text_about([source]) | {"source": source}
            for source in self.sources
            if Path(source).is_dir() or source in pretraining_text.ALIGNED_SOURCES
        ]
        return {
            "languages": languages, "sources": sources, "limit": self.limit,
            "longest": self.longest, "most": self.most, "version": LINES_VERSION,
        }  # fmt: skip

    @cached_property
    def lines(self) -> tuple[list[list[str]], list[list[str]]]:
        """The lines in words: line i of one language translates line i of the other.

        Raises WordVectorsError where no source has both languages, or all lines are too long; for a
        source that is neither an aligned one of the text nor a folder; for files with different
        numbers of lines, or that are not UTF-8.
        """
        a, b = self.language_a, self.language_b
        read = [pair for source in self.sources for pair in self._pairs(source)]
        if not read:
            raise WordVectorsError(
                f"no line of {a} is translated into {b} in {', '.join(self.sources)}: choose other "
                "languages or another source; a folder has two files that are named alike and end "
                f"in .{a} and .{b}"
            )
        pairs = ((tokenize(one, a), tokenize(other, b)) for one, other in read)
        longest = self.longest
        short = [pair for pair in pairs if longest is None or max(map(len, pair)) <= longest]
        if not short:
            raise WordVectorsError(
                f"{', '.join(self.sources)}: no line of {a} and {b} has {longest} words or fewer; "
                "raise `longest`"
            )
        lines_a, lines_b = zip(*short[: self.most], strict=True)
        return list(lines_a), list(lines_b)

    def _pairs(self, source: str) -> list[tuple[str, str]]:
        """Lines of a source that translate one another."""
        if Path(source).is_dir():
            return [pair for pair in self._of_folder(Path(source)) if all(pair)]
        if source not in pretraining_text.ALIGNED_SOURCES:
            raise WordVectorsError(
                f"{source!r} is no aligned source of the text and no folder: choose among "
                f"{', '.join(pretraining_text.ALIGNED_SOURCES)}, or name a folder that is there"
            )
        of_a, of_b = (shipped_text()[source].get(x, {}) for x in (self.language_a, self.language_b))
        return [(of_a[name], of_b[name]) for name in of_a if name in of_b]

    def _of_folder(self, folder: Path) -> Iterator[tuple[str, str]]:
        for one in sorted(folder.glob(f"*.{self.language_a}")):
            other = one.with_suffix(f".{self.language_b}")
            if not other.is_file():
                continue
            lines = itertools.zip_longest(*map(_text_lines, (one, other)))
            for number, pair in enumerate(itertools.islice(lines, self.limit), start=1):
                if None in pair:
                    raise WordVectorsError(
                        f"{one.name} and {other.name} in {folder} have not as many lines: one ends "
                        f"before line {number}"
                    )
                yield pair

    def __len__(self) -> int:
        """The number of pairs."""
        return int(work.result(TRANSLATIONS, self.about, self)["pairs"].iloc[0])


def _text_lines(file: Path) -> Iterator[str]:
    """The stripped lines of a file; a carriage return may stand within one."""
    with file.open("rb") as read:
        for number, line in enumerate(read, start=1):
            try:
                yield line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise WordVectorsError(f"{file}, line {number}: not UTF-8 ({error})") from None


def _counted(parallel: ParallelText) -> pd.DataFrame:
    return pd.DataFrame({"pairs": [len(parallel.lines[0])]})


#: How many translations a corpus gives, so that they need not be read to say so.
TRANSLATIONS = work.Kind("xprobe-translations", _counted, version=1, tolerance=0)
