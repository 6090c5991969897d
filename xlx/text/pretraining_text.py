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

from xlx.results import paths, progress, work

BOS, PAD, EOS, UNK = range(4)
#: New Testament books that no miniature model is trained on. The general epistles share few
#: sentences with the other books, unlike the Gospels, which repeat one another; Jude and 2 Peter
#: share many and so stay out together.
HELD_OUT_BOOKS = ("Jas", "1Pet", "2Pet", "1John", "2John", "3John", "Jude")
#: NTREX lines that no miniature model is trained on: at least so many, whole documents, the last.
HELD_OUT_LINES = 150
#: Sources whose lines are translations of one another at the same position (or verse id).
ALIGNED_SOURCES = ("ntrex", "bible_nt")
PRETRAINING_SOURCES = ("common_voice", "tatoeba", *ALIGNED_SOURCES)
#: source → language → line id → line
LinesById = dict[str, dict[str, dict[str, str]]]


def _archive(source: str) -> Path:
    path = paths.DATA / "pretraining" / f"{source}.tar.xz"
    if not path.exists():
        raise FileNotFoundError(
            f"the pretraining text {path.name} is not in {path.parent}: restore it from the "
            "repository, or make it with data/pretraining/make.py"
        )
    return path


def file_hashes() -> list[str]:
    """SHA-256 of the archive of each source: what decides everything computed from the text."""
    return [
        hashlib.sha256(_archive(source).read_bytes()).hexdigest() for source in PRETRAINING_SOURCES
    ]


def read_source(source: str) -> dict[str, dict[str, str]]:
    """The pretraining text of a source: language → line id → line, empty lines left out.

    Ids are verse names in ``bible_nt`` and line numbers elsewhere. FileNotFoundError where the
    archive is missing.
    """
    text: dict[str, dict[str, str]] = {}
    with tarfile.open(_archive(source)) as archive:
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


def held_out_ids() -> set[str]:
    """Ids of the NTREX lines that stay out of training: the last documents, whole."""
    with tarfile.open(_archive("ntrex")) as archive:
        documents = archive.extractfile("documents.txt").read().decode("utf-8").split()
    first = documents.index(documents[-HELD_OUT_LINES])
    return {str(number) for number in range(first, len(documents))}


def read_text(languages: Collection[str] = ()) -> tuple[LinesById, dict[str, list[str]]]:
    """All text, as (what members are trained on, held-out NTREX lines by language).

    Of all languages, or of some. The held-out lines are translations of one another, position by
    position, and the same whatever the languages. ValueError for a language without text.
    """
    text = {source: read_source(source) for source in progress.bar(PRETRAINING_SOURCES, "text")}
    known = {code for by_code in text.values() for code in by_code}
    if unknown := sorted(set(languages) - known):
        raise ValueError(f"the pretraining text holds no {', '.join(unknown)}")
    ntrex, held_out = text["ntrex"], held_out_ids()
    common = sorted(held_out.intersection(*ntrex.values()), key=int)
    chosen = set(languages or known)
    apart = {code: [ntrex[code][key] for key in common] for code in ntrex if code in chosen}
    for code, lines in ntrex.items():
        ntrex[code] = {key: line for key, line in lines.items() if key not in held_out}
    text = {
        source: {code: lines for code, lines in by_code.items() if code in chosen}
        for source, by_code in text.items()
    }
    return {source: by_code for source, by_code in text.items() if by_code}, apart


def by_language(text: LinesById) -> dict[str, list[str]]:
    """All lines of a language, all sources one after another."""
    lines: dict[str, list[str]] = {}
    for source in text.values():
        for language, by_id in source.items():
            lines.setdefault(language, []).extend(by_id.values())
    return lines


def characters() -> pd.Series:
    """How many characters members are trained on, by language, all sources together.

    FileNotFoundError where an archive is missing.
    """
    table = work.result(CHARACTERS, {"files": file_hashes(), "held_out": HELD_OUT_LINES})
    return table.set_index("language")["characters"]


def _characters() -> pd.DataFrame:
    text, _ = read_text()
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

    @classmethod
    def encode(cls, tokenizer: Tokenizer, lines: list[str]) -> "Lines":
        """Lines as a tokenizer cuts them."""
        parts = []
        for start in range(0, len(lines), 20_000):  # a batch of all would need much memory
            batch = lines[start : start + 20_000]
            encoded = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            parts += [np.array([*line.ids, EOS], dtype=np.uint16) for line in encoded]
        return cls(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))


@dataclass(frozen=True)
class AlignedSource:
    """An aligned source: ``line[p, l]`` is the line of position p in language l, or -1."""

    languages: tuple[str, ...]
    lines: tuple[Lines, ...]
    line: np.ndarray  # (n_positions, n_languages) int64

    @classmethod
    def of(
        cls, by_code: Mapping[str, Mapping[str, str]], lines: Mapping[str, Lines]
    ) -> "AlignedSource":
        """Of the lines of languages by their ids, and encoded."""
        positions = sorted(set().union(*by_code.values()))
        row = {key: index for index, key in enumerate(positions)}
        line = np.full((len(positions), len(lines)), -1)
        for column, code in enumerate(lines):
            line[[row[key] for key in by_code[code]], column] = np.arange(len(by_code[code]))
        return cls(tuple(lines), tuple(lines.values()), line)

    def by_length(self) -> np.ndarray:
        """Positions that two languages or more hold, ordered by their mean number of subwords."""
        total = sum(
            np.where(column >= 0, np.diff(lines.starts)[column] - 1, 0)
            for column, lines in zip(self.line.T, self.lines, strict=True)
        )
        held = (self.line >= 0).sum(axis=1)
        order = np.argsort(total / np.maximum(held, 1), kind="stable")
        return order[held[order] >= 2]


def shares(
    subwords: Mapping[str, float], exponent: float, english: float | None = None
) -> pd.Series:
    """Share of each language: ~ (its subwords) ** exponent, English apart where it is given."""
    powers = pd.Series(subwords, dtype=float) ** exponent
    share = powers / powers.sum()
    if english is not None:
        if "en" not in share:
            raise ValueError("english_share is given, but the text holds no English (en)")
        share = share * (1 - english) / (1 - share["en"])
        share["en"] = english
    return share


@dataclass(frozen=True)
class PretrainingText:
    """The text of a run in subwords; ``parallel`` holds the aligned sources."""

    monolingual: dict[str, tuple[Lines, ...]]  # language → its sources
    parallel: tuple[AlignedSource, ...]

    def fingerprint(self) -> str:
        """A hash of every subword and of who translates whom: equal texts, equal hashes."""
        digest = hashlib.sha256()
        for language, sources in sorted(self.monolingual.items()):
            digest.update(f"{language} {len(sources)} ".encode())
            for lines in sources:
                digest.update(lines.ids.tobytes())
                digest.update(lines.starts.tobytes())
        for source in self.parallel:
            digest.update(f"{source.languages} ".encode())
            digest.update(source.line.tobytes())
        return digest.hexdigest()

    def language_shares(self, exponent: float, english: float | None = None) -> pd.Series:
        """The `shares` of its languages, all sources of a language together."""
        counts = {
            code: sum(len(lines.ids) for lines in of_code)
            for code, of_code in self.monolingual.items()
        }
        return shares(counts, exponent, english)

    @classmethod
    def encode(cls, tokenizer: Tokenizer, text: LinesById) -> "PretrainingText":
        """The text as a tokenizer cuts it."""
        monolingual: dict[str, tuple[Lines, ...]] = {}
        parallel = []
        for source in progress.bar(text, "subwords"):
            encoded = {
                code: Lines.encode(tokenizer, list(lines.values()))
                for code, lines in text[source].items()
            }
            for code, lines in encoded.items():
                monolingual[code] = (*monolingual.get(code, ()), lines)
            if source in ALIGNED_SOURCES:
                parallel.append(AlignedSource.of(text[source], encoded))
        return cls(dict(sorted(monolingual.items())), tuple(parallel))
