"""The text that the miniature models learn from: lines, subwords, and who translates whom.

Four sources in 36 languages, shipped in ``data/pretraining``. Two are aligned: NTREX-128 by line,
the New Testaments by verse. Held out of training are the New Testament books of `HELD_OUT_BOOKS`
(not in the archive at all) and the last documents of NTREX, on which every member's loss is taken
by language.
"""

import hashlib
import io
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tokenizers import Tokenizer
from tqdm import tqdm

from xlx.core import paths, work
from xlx.family.vocabulary import EOS

#: New Testament books that no miniature model is trained on: text that is new to them, beside
#: verses of the same translations that are not. The general epistles share few sentences with the
#: other books, unlike the Gospels, which repeat one another; Jude and 2 Peter share many and so
#: stay out together.
HELD_OUT_BOOKS = ("Jas", "1Pet", "2Pet", "1John", "2John", "3John", "Jude")

#: NTREX lines that no miniature model is trained on: at least so many, whole documents, the last.
HELD_OUT_LINES = 150

#: Sources whose lines are translations of one another at the same position (or verse id).
ALIGNED_SOURCES = ("ntrex", "bible_nt")
PRETRAINING_SOURCES = ("common_voice", "tatoeba", *ALIGNED_SOURCES)

#: source → language → line id → line
LinesById = dict[str, dict[str, dict[str, str]]]


def _archive(source: str, folder: Path | None) -> Path:
    path = (folder or paths.DATA / "pretraining") / f"{source}.tar.xz"
    if not path.exists():
        raise FileNotFoundError(
            f"the pretraining text {path.name} is not in {path.parent}: restore it from the "
            "repository, or make it with data/pretraining/make.py"
        )
    return path


def file_hashes(folder: Path | None = None) -> list[str]:
    """SHA-256 of the archive of each source: what decides everything computed from the text."""
    files = [_archive(source, folder) for source in PRETRAINING_SOURCES]
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def read_source(source: str, folder: Path | None = None) -> dict[str, dict[str, str]]:
    """The pretraining text of a source: language → line id → line, empty lines left out.

    Ids are verse names in ``bible_nt`` and line numbers elsewhere. Raises FileNotFoundError where
    the archive is missing.
    """
    text: dict[str, dict[str, str]] = {}
    with tarfile.open(_archive(source, folder)) as archive:
        for member in archive.getmembers():
            name = Path(member.name)
            file = archive.extractfile(member)
            if file is None or name.stem == "documents":
                continue
            lines = io.TextIOWrapper(file, encoding="utf-8", newline="\n").read().split("\n")
            if name.suffix == ".tsv":
                rows = dict(line.split("\t", 1) for line in lines if line)
            else:
                rows = {str(number): line for number, line in enumerate(lines)}
            text[name.stem] = {key: line for key, line in rows.items() if line}
    return text


def held_out_ids(folder: Path | None = None) -> set[str]:
    """Ids of the NTREX lines that stay out of training: the last documents, whole."""
    with tarfile.open(_archive("ntrex", folder)) as archive:
        file = archive.extractfile("documents.txt")
        documents = file.read().decode("utf-8").split()
    first = documents.index(documents[-HELD_OUT_LINES])
    return {str(number) for number in range(first, len(documents))}


def read_text(
    folder: Path | None = None, progress: bool = True, languages: Collection[str] = ()
) -> tuple[LinesById, dict[str, list[str]]]:
    """All text, as (what members are trained on, held-out NTREX lines by language).

    Of all languages, or of some. The held-out lines are translations of one another, position by
    position, and the same whatever the languages. Raises ValueError for a language without text.
    """
    text = {
        source: read_source(source, folder)
        for source in tqdm(PRETRAINING_SOURCES, "text", disable=not progress)
    }
    if unknown := sorted(set(languages) - {code for by in text.values() for code in by}):
        raise ValueError(f"the pretraining text holds no {', '.join(unknown)}")
    held_out = held_out_ids(folder)
    common = sorted(
        held_out.intersection(*(lines.keys() for lines in text["ntrex"].values())), key=int
    )
    apart = {language: [lines[key] for key in common] for language, lines in text["ntrex"].items()}
    for language, lines in text["ntrex"].items():
        text["ntrex"][language] = {key: line for key, line in lines.items() if key not in held_out}
    if languages:
        text = {
            source: {code: lines for code, lines in by_code.items() if code in languages}
            for source, by_code in text.items()
        }
        apart = {code: lines for code, lines in apart.items() if code in languages}
    return {source: by_code for source, by_code in text.items() if by_code}, apart


def by_language(text: LinesById) -> dict[str, list[str]]:
    """All lines of a language, all sources one after another."""
    lines: dict[str, list[str]] = {}
    for source in text.values():
        for language, by_id in source.items():
            lines.setdefault(language, []).extend(by_id.values())
    return lines


def characters(folder: Path | None = None) -> pd.Series:
    """How many characters members are trained on, by language, all sources together.

    Raises FileNotFoundError where an archive is missing.
    """
    about = {"files": file_hashes(folder)}
    table = work.result(CHARACTERS, about | {"held_out": HELD_OUT_LINES}, folder)
    return table.set_index("language")["characters"]


def _characters(folder: Path | None) -> pd.DataFrame:
    text, _ = read_text(folder, progress=False)
    counts = {code: sum(map(len, lines)) for code, lines in by_language(text).items()}
    return pd.DataFrame({"language": list(counts), "characters": list(counts.values())})


CHARACTERS = work.Kind("pretraining-characters", _characters, version=1, tolerance=0)


@dataclass(frozen=True)
class Lines:
    """Lines as subword ids, flat: line ``i`` is ``ids[starts[i]:starts[i + 1]]``, ``</s>`` last."""

    ids: np.ndarray  # (n_tokens,) uint16
    starts: np.ndarray  # (n_lines + 1,) int64

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, line: int) -> np.ndarray:
        """The subwords of a line without its ``</s>``."""
        return self.ids[self.starts[line] : self.starts[line + 1] - 1]

    def lengths(self) -> np.ndarray:
        return np.diff(self.starts) - 1

    @classmethod
    def encode(cls, tokenizer: Tokenizer, lines: list[str], chunk: int = 20_000) -> "Lines":
        parts, lengths = [], []
        for start in range(0, len(lines), chunk):
            encoded = tokenizer.encode_batch_fast(
                lines[start : start + chunk], add_special_tokens=False
            )
            parts += [np.array([*line.ids, EOS], dtype=np.uint16) for line in encoded]
            lengths += [len(line.ids) + 1 for line in encoded]
        return cls(np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)]))


@dataclass(frozen=True)
class AlignedSource:
    """An aligned source: ``line[p, l]`` is the line of position p in language l, or -1."""

    languages: tuple[str, ...]
    lines: tuple[Lines, ...]
    line: np.ndarray  # (n_positions, n_languages) int64

    def by_length(self) -> np.ndarray:
        """Positions that two languages or more hold, ordered by their mean number of subwords."""
        lengths = np.stack(
            [
                np.where(self.line[:, column] >= 0, lines.lengths()[self.line[:, column]], 0)
                for column, lines in enumerate(self.lines)
            ],
            axis=1,
        )
        held = (self.line >= 0).sum(axis=1)
        order = np.argsort(lengths.sum(axis=1) / np.maximum(held, 1), kind="stable")
        return order[held[order] >= 2]


def shares(
    subwords: Mapping[str, float], exponent: float, english: float | None = None
) -> pd.Series:
    """Share of each language: ~ (its subwords) ** exponent, English apart where it is given."""
    counts = pd.Series(subwords, dtype=float)
    found = counts**exponent / (counts**exponent).sum()
    if english is not None:
        if "en" not in found:
            raise ValueError("english_share is given, but the text holds no English (en)")
        found = found * (1 - english) / (1 - found["en"])
        found["en"] = english
    return found


@dataclass(frozen=True)
class PretrainingText:
    """The text of a run in subwords; ``parallel`` holds the aligned sources."""

    monolingual: dict[str, tuple[Lines, ...]]  # language → its sources
    parallel: tuple[AlignedSource, ...]

    def n_tokens(self, language: str) -> int:
        """Subwords of a language, all sources together: what footnote 8 of the ABX paper asks."""
        return sum(len(lines.ids) for lines in self.monolingual[language])

    def fingerprint(self) -> str:
        """A hash of every subword and of who translates whom: equal texts, equal hashes."""
        found = hashlib.sha256()
        for language, sources in sorted(self.monolingual.items()):
            found.update(f"{language} {len(sources)} ".encode())
            for lines in sources:
                found.update(lines.ids.tobytes())
                found.update(lines.starts.tobytes())
        for source in self.parallel:
            found.update(f"{source.languages} ".encode())
            found.update(source.line.tobytes())
        return found.hexdigest()

    def language_shares(self, exponent: float, english: float | None = None) -> pd.Series:
        """The `shares` of its languages."""
        return shares({code: self.n_tokens(code) for code in self.monolingual}, exponent, english)

    @classmethod
    def encode(
        cls, tokenizer: Tokenizer, text: LinesById, progress: bool = True
    ) -> "PretrainingText":
        monolingual: dict[str, list[Lines]] = {}
        parallel = []
        for source, by_language in tqdm(text.items(), "subwords", disable=not progress):
            encoded = {
                language: Lines.encode(tokenizer, list(lines.values()))
                for language, lines in by_language.items()
            }
            for language, lines in encoded.items():
                monolingual.setdefault(language, []).append(lines)
            if source in ALIGNED_SOURCES:
                positions = sorted({key for lines in by_language.values() for key in lines})
                row = {key: index for index, key in enumerate(positions)}
                line = np.full((len(positions), len(encoded)), -1)
                for column, language in enumerate(encoded):
                    rows = [row[key] for key in by_language[language]]
                    line[rows, column] = np.arange(len(rows))
                parallel.append(AlignedSource(tuple(encoded), tuple(encoded.values()), line))
        return cls(
            {code: tuple(monolingual[code]) for code in sorted(monolingual)}, tuple(parallel)
        )
