"""Parallel text: the same sentences in many languages, checked before anything is measured on them.

`load` is the one way in, whatever the text comes from:

================== ============================================================================
``wmt24pp``        WMT24++ in the 36 languages of the ABX study, shipped in ``data/wmt24pp``
``google/wmt24pp`` the same from the hub, all 55 targets and the English source
``ntrex``          NTREX-128, news, downloaded from GitHub
``flores200-100``  FLORES-200, the first 100 sentences of ``devtest`` in 203 languages, with two
                   corrections, shipped in ``data/flores200``
``flores200``      FLORES-200 ``devtest``, downloaded; ``flores200-dev`` is its other part
``new-testament``  the New Testament by verse in 21 languages, the books that the miniature models
                   are trained on (in ``data/pretraining``); ``new-testament-held-out`` is the
                   books that they are not, shipped in ``data/new_testament``
a folder           your own: one UTF-8 text file a language, in a layout of `folders`
================== ============================================================================

What languages are called is told in `varieties`, what is done to text in `files`. Where sentences
have ids of their own (the New Testaments, two layouts of a folder) the positions are the ids that
*all the languages asked for* have, in the order of the first. In the New Testaments a verse of
fewer than three letters or digits counts as missing: so a translation leaves one out ("#", "[1]").
"""

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.text import origins
from xlx.text.files import TextError, sentences_hash
from xlx.text.folders import read_folder
from xlx.text.origins import ORIGINS, CorpusWarning, DownloadError
from xlx.text.varieties import keys_of, resolve

__all__ = [
    "CorpusWarning",
    "DownloadError",
    "ParallelCorpus",
    "documents",
    "keys_of",
    "load",
    "tags",
]


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentences aligned by position: n of them in each language.

    ``ids`` and ``domains`` have n entries too. An id is ``document:segment`` in WMT24++ and NTREX,
    a verse in the New Testaments (``Jas.1.1``, of the domain ``Jas``), elsewhere the line number
    unless the corpus gives one; where there are no domains, they are empty. ``source`` of a folder
    says which layout was read. ``stock`` are the ids that `take` draws from first: of a shipped
    corpus, the positions that it has in all its languages, whichever were asked for.
    """

    name: str
    sentences: dict[str, tuple[str, ...]]
    ids: tuple[str, ...]
    domains: tuple[str, ...]
    licence: str
    source: str
    stock: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        for what, row in {**self.sentences, "domains": self.domains}.items():
            if len(row) != len(self.ids):
                raise TextError(
                    f"{self.name}: {what} has {len(row)} entries and ids {len(self.ids)}; "
                    "a parallel corpus has one for each position in every language."
                )

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.sentences)

    @property
    def n_sentences(self) -> int:
        """Number of positions, the same in every language."""
        return len(self.ids)

    def __len__(self) -> int:
        return self.n_sentences

    def __repr__(self) -> str:
        return f"ParallelCorpus({self.name!r}: {self.n_sentences} in {' '.join(self.languages)})"

    def select(self, languages: Iterable[str]) -> "ParallelCorpus":
        """The corpus in these languages, in this order. Raises TextError for one it lacks."""
        codes = resolve(languages, {code: code for code in self.sentences}, self.name)
        return replace(self, sentences={code: self.sentences[code] for code in codes})

    def take(self, n: int, seed: int | np.random.Generator) -> "ParallelCorpus":
        """n positions drawn without replacement, in their order; all if n is not smaller.

        Drawn by id, from the ``stock`` and then by a hash of seed and id: corpora that differ in
        their languages alone give the same positions, as far as they have them.
        """
        if n < 1:
            raise TextError(f"{self.name}: cannot take {n} sentences; take at least one.")
        if n >= len(self):
            return self
        rng = np.random.default_rng(seed)
        place = {id_: position for position, id_ in enumerate(self.ids)}
        drawn = rng.choice(len(self.stock), size=min(n, len(self.stock)), replace=False)
        kept = {place[id_] for i in drawn if (id_ := self.stock[i]) in place}
        salt = rng.integers(2**63)
        ranks = [hashlib.sha256(f"{salt} {id_}".encode()).digest() for id_ in self.ids]
        rest = sorted(set(range(len(self))) - kept, key=lambda place: (ranks[place], place))
        return self._keep(sorted([*kept, *rest[: n - len(kept)]]))

    def drop(self, positions: Iterable[int]) -> "ParallelCorpus":
        """The corpus without these positions (0 to n - 1), in every language."""
        gone = {int(position) for position in positions}
        if beyond := [p for p in sorted(gone) if not 0 <= p < len(self)]:
            raise TextError(f"{self.name}: no position {beyond[0]} among {len(self)} sentences.")
        return self._keep([p for p in range(len(self)) if p not in gone])

    def _keep(self, positions: Sequence[int]) -> "ParallelCorpus":
        def kept(row: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(row[p] for p in positions)

        sentences = {language: kept(row) for language, row in self.sentences.items()}
        return replace(self, sentences=sentences, ids=kept(self.ids), domains=kept(self.domains))

    def duplicates(self) -> pd.DataFrame:
        """Sentences equal to an earlier one of their language, where "different meaning" is untrue.

        Columns language, position, first_position, sentence; one row per repetition.
        """
        rows = []
        for language, row in self.sentences.items():
            first: dict[str, int] = {}
            for position, sentence in enumerate(row):
                if first.setdefault(sentence, position) != position:
                    rows.append((language, position, first[sentence], sentence))
        return pd.DataFrame(rows, columns=["language", "position", "first_position", "sentence"])

    def text_hash(self, language: str) -> str:
        """SHA-256 of the sentences as a file (`files.sentences_hash`), as by ``sha256sum``."""
        return sentences_hash(self.select([language]).sentences.popitem()[1])


def load(
    name: str | Path,
    languages: Iterable[str] | None = None,
    *,
    path: str | Path | None = None,
    drop_duplicates: bool = False,
) -> ParallelCorpus:
    """Load and check parallel text.

    Parameters
    ----------
    name : a corpus of the table at the top of this module, or a folder with one text file a
        language, named by a tag that `languages.parse_tag` reads (``en.txt``, ``eng_Latn``,
        ``aai_Latn.devtest``; one extension throughout), in a layout of `folders`. Of two names of
        one language, such as ``est`` and ``ekk``, ask for one by this.
    languages : codes or tags to load, in the order wanted; None for all there are.
    path : a local copy of a corpus that is downloaded otherwise: a folder with its files under
        their own names, at any depth, or an archive of it. A CorpusWarning tells where its text
        differs from the one on record.
    drop_duplicates : leave out, in all languages, the positions at which one of them repeats an
        earlier sentence; otherwise a CorpusWarning counts them. What is measured language by
        language (`coverage`) does better without: a repeat then costs its own language alone.

    Raises
    ------
    TextError (a ValueError), in a sentence, for text that is not that of all languages line by
    line; FileNotFoundError for a folder that does not exist, DownloadError (one too) without a
    network.
    """
    if not isinstance(name, str | Path) or not str(name):
        raise TextError(f"{name!r} is no corpus: give one of {', '.join(ORIGINS)}, or a folder.")
    if str(name) in ORIGINS:
        corpus, notes = _load_known(str(name), languages, Path(path) if path else None)
    elif path:
        raise ValueError(f"path= is for a copy of {', '.join(ORIGINS)}; give a folder as the name.")
    elif Path(name).is_dir():
        read, layout = read_folder(Path(name), languages)
        about = "as stated by its owner", f"{Path(name)} ({layout})"
        corpus, notes = _assembled(Path(name).name, read, *about), read.notes
    else:
        raise FileNotFoundError(
            f"There is no corpus and no folder {str(name)!r}; give a folder with one text file a "
            f"language, or one of {', '.join(ORIGINS)}."
        )
    repeats = corpus.duplicates()
    if drop_duplicates:
        corpus = corpus.drop(repeats["position"])
    elif len(repeats):
        notes = (*notes, _repeated(corpus, repeats))
    for note in notes:
        warnings.warn(f"{corpus.name}: {note}", CorpusWarning, stacklevel=2)
    if len(corpus) < 2:
        left = "without the repeated ones" if drop_duplicates and len(repeats) else "in all"
        raise TextError(
            f"{corpus.name} has {len(corpus)} sentences {left}; at least two are needed, or no "
            "sentence has another meaning to be told from."
        )
    if str(name) in ORIGINS and ORIGINS[str(name)].shipped:
        return replace(corpus, stock=_stock(str(name), drop_duplicates))
    return corpus


@lru_cache(maxsize=8)
def _stock(name: str, drop_duplicates: bool) -> tuple[str, ...]:
    """The ids that a shipped corpus has in all its languages, without those that one repeats."""
    whole, _ = _load_known(name, None, None)
    return whole.drop(whole.duplicates()["position"]).ids if drop_duplicates else whole.ids


def documents(corpus: ParallelCorpus) -> tuple[str, ...]:
    """The document of each position, by its id; where ids name none, each position is its own."""
    return tuple(name.rsplit(":", 1)[0] for name in corpus.ids)


def tags(name: str) -> dict[str, str]:
    """What a corpus of the table at the top calls each of its languages, by the code used here.

    ``tags("flores200-100")["zh"]`` is "zho_Hans". Raises FileNotFoundError for any other name.
    """
    if name not in ORIGINS:
        raise FileNotFoundError(
            f"There is no corpus {name!r}; there is {', '.join(ORIGINS)}, and a folder has no tags."
        )
    return _tags(name, origins.available(name), name)


def _tags(name: str, there: origins.Available, where: str) -> dict[str, str]:
    chosen = {code: tag for code, tag in origins.tags_of(name).items() if tag in there.tags}
    return keys_of(there.tags, chosen, where)


def _repeated(corpus: ParallelCorpus, repeats: pd.DataFrame) -> str:
    """What to say of sentences that come again."""
    counts, first = Counter(repeats["language"]), repeats.iloc[0]
    here, before = (
        f"line {position + 1}" if (id_ := corpus.ids[position]) == str(position + 1) else id_
        for position in (first["position"], first["first_position"])
    )
    return (
        f"{len(repeats)} sentences at {repeats['position'].nunique()} of {len(corpus)} positions "
        f"repeat an earlier one of their language (first: {first['language']}, {here} repeats "
        f"{before}; in all: {', '.join(f'{code} {count}' for code, count in counts.items())}) and "
        "so do not differ in meaning; drop_duplicates=True leaves these positions out."
    )


def _assembled(name: str, read: origins.CorpusTexts, licence: str, source: str) -> ParallelCorpus:
    """A corpus from what was read, if all files have as many lines."""
    sizes = {read.files[key]: len(text) for key, text in read.texts.items()}
    if read.segments:
        sizes[read.extra] = len(next(iter(read.segments.values())))
    n, agreeing = Counter(sizes.values()).most_common(1)[0]
    if agreeing < len(sizes):
        odd = ", ".join(f"{file} has {size}" for file, size in sizes.items() if size != n)
        like = next(file for file, size in sizes.items() if size == n)
        raise TextError(
            f"{name}: unequal numbers of lines: {odd}, but {like} has {n} (as {agreeing} of "
            f"{len(sizes)} files); line n must be the same sentence in every file."
        )
    ids = read.segments.get("id") or tuple(str(line) for line in range(1, n + 1))
    domains = read.segments.get("domain") or ("",) * n
    return ParallelCorpus(name, read.texts, ids, domains, licence, source)


def _load_known(
    name: str, languages: Iterable[str] | None, path: Path | None
) -> tuple[ParallelCorpus, tuple[str, ...]]:
    """A corpus of `ORIGINS` and what to warn with."""
    origin, there = ORIGINS[name], origins.available(name, path)
    where = f"{name} in {path}" if path else name
    keys = _tags(name, there, where)
    keys = {key: keys[key] for key in resolve(languages, keys, where)}
    read = origins.fetch_texts(name, keys, there)
    return _assembled(name, read, origin.licence, origin.source), read.notes
