"""The training text in subwords: lines, who translates whom, and how often a language is drawn."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tokenizers import Tokenizer

from family.pretraining_text import ALIGNED_SOURCES, LinesById
from xlx.results import progress

BOS, PAD, EOS, UNK = range(4)


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
        monolingual = {}
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
