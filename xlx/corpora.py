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
a folder           your own: one UTF-8 text file a language, in a layout of `load`
================== ============================================================================

Languages go by their ISO 639-1 code, or 639-3 where there is none. Where a corpus has several
varieties of a language, that of `languages.LANGUAGES` (or else the only one) takes the bare code
and the others keep script or region: "pt" and "pt_BR". In a folder with ``pt_PT`` and ``pt_BR``
none takes it. Either name works when asking.

Where sentences have ids of their own (the New Testaments, two layouts of a folder) the positions
are the ids that *all the languages asked for* have, in the order of the first: fewer languages give
as many positions or more. `ParallelCorpus.take` draws by id, so that other languages give the same
positions as far as they have them.

What is done to the text: a byte order mark is taken off and CRLF line ends are read as LF. Lines
end at LF only, so other separators (U+2028, U+0085, a lone CR) stay inside their sentence. Nothing
is stripped, normalised or repaired. In the New Testaments a verse of fewer than three letters or
digits counts as missing: it is the sign by which a translation leaves one out ("#", "[1]").
"""

import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from xlx import checks, origins
from xlx.languages import base_code, parse_tag
from xlx.origins import ORIGINS, CorpusError, CorpusWarning, DownloadError

__all__ = ["CorpusError", "CorpusWarning", "DownloadError", "ParallelCorpus", "load", "tags"]

#: Files of a folder that are no text of a language.
_SEGMENTS = "segments.tsv"
_BESIDE = ("readme", "license", "licence", "notice")
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz")

#: A translation of the Parallel Bible Corpus by its file name: ``deu-x-bible-luther1912.txt``.
_TRANSLATION = re.compile(r"(?P<code>[^-.]+)-x-bible\b.*")

#: What of it is no verse: metadata (``# key: value``), verses left out (``# id<TAB>text``), blanks.
_NOT_VERSE = re.compile(r"#.*|\s*")

#: A verse of it: two digits of the book, three each of chapter and verse. No text, no verse.
_VERSE = re.compile(r"(?P<id>[0-9]{8})(\t(?P<text>.*))?")

#: The layouts of a folder, as `ParallelCorpus.source` names them.
_BY_LINE, _BY_ID, _BY_VERSE = (
    "one sentence a line",
    "id and sentence a line",
    "verses as in the Parallel Bible Corpus",
)


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentences aligned by position.

    ``sentences`` maps each language to n strings; position i holds the same content in all of them.
    ``ids`` and ``domains`` have n entries too; a corpus without domains has empty strings there. In
    WMT24++ and NTREX an id is ``document:segment`` (so ``id.rsplit(":", 1)[0]`` is the document),
    in the New Testaments a verse (``Jas.1.1``, of the domain ``Jas``), elsewhere the line number
    unless the corpus gives one. ``source`` of a folder says which layout was read. ``stock`` are
    the ids that `take` draws from first: of a shipped corpus, the positions that it has in all its
    languages together, whichever were asked for.
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
                raise CorpusError(
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
        """The corpus in these languages, in this order. Raises CorpusError for one it lacks."""
        found = _resolve(languages, {key: key for key in self.sentences}, self.name)
        return replace(self, sentences={key: self.sentences[key] for key in found})

    def take(self, n: int, seed: int | np.random.Generator) -> "ParallelCorpus":
        """n positions drawn without replacement, in their order; all if n is not smaller.

        They are drawn by id, from the ``stock`` and then by a hash of seed and id: corpora that
        differ in their languages alone, and so perhaps in some of their ids, give the same
        positions but for those.
        """
        if n < 1:
            raise CorpusError(f"{self.name}: cannot take {n} sentences; take at least one.")
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
            raise CorpusError(f"{self.name}: no position {beyond[0]} among {len(self)} sentences.")
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

    def untranslated(self, pivot: str = "en") -> pd.DataFrame:
        """Sentences equal to that of the pivot language: A and B are one string, a tie in LD.

        Columns language, position, sentence; the pivot itself is left out.
        """
        original = self.select([pivot]).sentences.popitem()
        rows = [
            (language, position, sentence)
            for language, row in self.sentences.items()
            if language != original[0]
            for position, sentence in enumerate(row)
            if sentence == original[1][position]
        ]
        return pd.DataFrame(rows, columns=["language", "position", "sentence"])

    def text_hash(self, language: str) -> str:
        """SHA-256 of the sentences as a file, one a line: UTF-8, LF, line breaks within a sentence
        as in ``data/wmt24pp`` (U+2424, U+240D). For a plain file it is what ``sha256sum`` says."""
        return origins.text_hash(self.select([language]).sentences.popitem()[1])


def load(
    name: str | Path,
    languages: Iterable[str] | None = None,
    *,
    path: str | Path | None = None,
    drop_duplicates: bool = False,
    progress: bool = True,
) -> ParallelCorpus:
    """Load and check parallel text.

    Parameters
    ----------
    name : a corpus of the table at the top of this module, or a folder with one text file a
        language, named by a tag that `languages.parse_tag` reads (``en.txt``, ``eng_Latn``,
        ``pt_BR.txt``, ``aai_Latn.devtest``; the same extension throughout). Of two names of one
        language, such as ``est`` and ``ekk``, ask for one by this name. Its layout is found
        out from the files:

        * one sentence a line, line n the same in each, as in the data of MEXA (Kargaran et al.);
          ``segments.tsv`` beside them may give ``id`` and ``domain`` (tab-separated, with header);
        * ``id<TAB>sentence``, if most lines of one of the files start with an id (no white space
          in it); then all lines of all files must;
        * verses of the Parallel Bible Corpus (Mayer and Cysouw 2014), if the files are called
          ``deu-x-bible-luther1912.txt``: lines ``40001001<TAB>text``, those with ``#`` in front
          skipped, one translation a language (or script, where ``# ISO_15924:`` names it). The
          domain is the number of the book.

        In the last two, ids that a language lacks, or has no text for, are left out in all, with a
        CorpusWarning. README, LICENSE, NOTICE, hidden files and subfolders are left alone, anything
        else is an error.
    languages : codes or tags to load, in the order wanted; None for all there are.
    path : a local copy of a corpus that is downloaded otherwise: a folder with its files under
        their own names, at any depth, or an archive of it. A copy whose text differs from the one
        on record gives a CorpusWarning; a download that differs, an error.
    drop_duplicates : leave out, in all languages, the positions at which one of them repeats an
        earlier sentence; otherwise a CorpusWarning counts them. What is measured language by
        language (`coverage`) does better without: a repeat then costs its own language alone.
    progress : show a bar while downloading.

    Raises
    ------
    CorpusError (a ValueError) for a language that is missing, a file name that is no language, two
    extensions or layouts in a folder, a pipe or a packed file, text that is not UTF-8 or holds NUL,
    empty lines, unequal numbers of lines, a malformed line, an id that comes twice, no id in
    common, fewer than two sentences;
    FileNotFoundError for a folder that does not exist, DownloadError (one too) without a network.
    """
    if not isinstance(name, str | Path) or not str(name):
        raise CorpusError(f"{name!r} is no corpus: give one of {', '.join(ORIGINS)}, or a folder.")
    if str(name) in ORIGINS:
        corpus = _load_known(str(name), languages, Path(path) if path else None, progress)
    elif path:
        raise ValueError(f"path= is for a copy of {', '.join(ORIGINS)}; give a folder as the name.")
    elif Path(name).is_dir():
        corpus = _load_folder(Path(name), languages)
    else:
        raise FileNotFoundError(
            f"There is no corpus and no folder {str(name)!r}; give a folder with one text file a "
            f"language, or one of {', '.join(ORIGINS)}."
        )
    corpus = _check(corpus, drop_duplicates)
    if str(name) in origins.SHIPPED:
        return replace(corpus, stock=_stock(str(name), drop_duplicates))
    return corpus


@lru_cache(maxsize=8)
def _stock(name: str, drop_duplicates: bool) -> tuple[str, ...]:
    """The ids that a shipped corpus has in all its languages, without those that one repeats."""
    whole = _load_known(name, None, None, False)
    return whole.drop(whole.duplicates()["position"]).ids if drop_duplicates else whole.ids


def tags(name: str) -> dict[str, str]:
    """What a corpus of the table at the top calls each of its languages, by the code used here.

    ``tags("flores200-100")["zh"]`` is "zho_Hans". Raises FileNotFoundError for any other name.
    """
    if name not in ORIGINS:
        raise FileNotFoundError(
            f"There is no corpus {name!r}; there is {', '.join(ORIGINS)}, and a folder has no tags."
        )
    return _tags(name, origins.available(name), name)


def _tags(name: str, found: origins.Found, where: str) -> dict[str, str]:
    chosen = {code: tag for code, tag in origins.varieties(name).items() if tag in found.tags}
    return _keys(found.tags, chosen, where)


def _check(corpus: ParallelCorpus, drop_duplicates: bool) -> ParallelCorpus:
    repeats = corpus.duplicates()
    positions = sorted(set(repeats["position"]))
    if drop_duplicates and positions:
        corpus = corpus.drop(positions)
    elif positions:
        counts = Counter(repeats["language"])
        first = repeats.iloc[0]
        at, before = (
            f"line {position + 1}" if (id_ := corpus.ids[position]) == str(position + 1) else id_
            for position in (first["position"], first["first_position"])
        )
        warnings.warn(
            f"{corpus.name}: {len(repeats)} sentences at {len(positions)} of {len(corpus)} "
            f"positions repeat an earlier one of their language (first: {first['language']}, "
            f"{at} repeats {before}; in all: "
            f"{', '.join(f'{language} {count}' for language, count in counts.items())}) and so do "
            "not differ in meaning; drop_duplicates=True leaves these positions out.",
            CorpusWarning,
            stacklevel=3,
        )
    if len(corpus) < 2:
        left = "without the repeated ones" if drop_duplicates and positions else "in all"
        raise CorpusError(
            f"{corpus.name} has {len(corpus)} sentences {left}; at least two are needed, or no "
            "sentence has another meaning to be told from."
        )
    return corpus


def _assemble(
    name: str,
    texts: dict[str, tuple[str, ...]],
    files: dict[str, str],
    segments: pd.DataFrame | None,
    licence: str,
    source: str,
) -> ParallelCorpus:
    """A corpus from its texts, after comparing numbers of lines. ``files``: key to file name."""
    sizes = {files[key]: len(text) for key, text in texts.items()}
    if segments is not None:
        sizes[segments.attrs["file"]] = len(segments)
    n, agreeing = Counter(sizes.values()).most_common(1)[0]
    if agreeing < len(sizes):
        odd = ", ".join(f"{file} has {size}" for file, size in sizes.items() if size != n)
        like = next(file for file, size in sizes.items() if size == n)
        raise CorpusError(
            f"{name}: unequal numbers of lines: {odd}, but {like} has {n} (as {agreeing} of "
            f"{len(sizes)} files); line n must be the same sentence in every file."
        )
    ids, domains = tuple(str(line) for line in range(1, n + 1)), ("",) * n
    if segments is not None:
        ids = tuple(segments["id"]) if "id" in segments else ids
        domains = tuple(segments["domain"]) if "domain" in segments else domains
    return ParallelCorpus(name, texts, ids, domains, licence, source)


def _resolve(wanted: Iterable[str] | None, keys: dict[str, str], where: str) -> list[str]:
    """The keys asked for by key, file tag or any spelling of it. ``keys``: key to file tag."""
    if wanted is None:
        return list(keys)
    if isinstance(wanted, str):
        wanted = [wanted]
    spelled = {_canonical(tag): key for key, tag in keys.items()} | {key: key for key in keys}
    found, missing = [], []
    for request in dict.fromkeys(wanted):
        checks.tag(request, CorpusError)
        key = spelled.get(request) or spelled.get(_canonical(request))
        (found if key else missing).append(key or request)
    if missing or not found:
        raise CorpusError(
            f"{where} has no text in {', '.join(missing) or 'no language at all'}; "
            f"it has {', '.join(keys) or 'none'}."
        )
    return list(dict.fromkeys(found))


def _canonical(tag: str) -> str:
    """The tag in its canonical form; a key that is none (of a corpus made by hand) as it is."""
    try:
        return parse_tag(tag)
    except ValueError:
        return tag


def _keys(
    tags: Iterable[str],
    chosen: dict[str, str],
    where: str,
    wanted: Iterable[str] | None = None,
) -> dict[str, str]:
    """Key of every file tag: the bare code for the chosen or only variety, else the whole tag.

    Of tags that mean one language (est and ekk, zho and cmn) only one can be used: that in
    ``wanted``, or none where the language is not wanted at all.
    """
    for request in wanted or ():
        checks.tag(request, CorpusError)
    named: dict[str, list[str]] = {}
    for tag in tags:
        named.setdefault(parse_tag(tag), []).append(tag)
    spelled: dict[str, str] = {}
    for canonical, same in named.items():
        asked = same if wanted is None else [x for x in wanted if _canonical(x) == canonical]
        exact = same if len(same) == 1 else [tag for tag in same if tag in asked]
        if asked and len(exact) != 1:
            raise CorpusError(
                f"{where}: {' and '.join(same)} are the same language; keep one of them, or ask "
                "for one by this name."
            )
        spelled.update((canonical, tag) for tag in exact)
    taken = {tag: code for code, tag in chosen.items()}
    codes = Counter(base_code(tag) for tag in spelled if spelled[tag] not in taken)
    keys = {}
    for canonical, tag in spelled.items():
        code = base_code(canonical)
        alone = codes[code] == 1 and code not in chosen
        keys[taken.get(tag) or (code if alone else canonical)] = tag
    return dict(sorted(keys.items()))


def _load_folder(folder: Path, languages: Iterable[str] | None) -> ParallelCorpus:
    files = _files(folder)
    if languages is not None:
        languages = [languages] if isinstance(languages, str) else list(languages)
    keys = _keys(files, {}, str(folder), languages)
    keys = {key: keys[key] for key in _resolve(languages, keys, str(folder))}
    names = {key: files[tag].name for key, tag in keys.items()}
    lines = {
        key: origins.decode(files[tag].read_bytes(), f"{key}: {files[tag]}")
        for key, tag in keys.items()
    }
    file = folder / _SEGMENTS
    segments = None
    if file.exists():
        segments = origins.table(file.read_bytes(), str(file))
        segments.attrs["file"] = _SEGMENTS
        if not {"id", "domain"} & set(segments):
            raise CorpusError(f"{file}, line 1: the header names neither id nor domain.")
    layout = _layout(names, lines)
    if layout == _BY_LINE:
        texts = {
            key: origins.sentences(rows, f"{key}: {folder / names[key]}")
            for key, rows in lines.items()
        }
    elif segments is not None:
        raise CorpusError(
            f"{file}: the lines of {min(names.values())} have ids; remove one of both."
        )
    else:
        read = _verses if layout == _BY_VERSE else origins.by_id
        rows = {key: read(lines[key], f"{key}: {folder / names[key]}") for key in keys}
        texts, segments = _in_common(folder, rows, names)
        segments.attrs["file"] = layout
        if layout == _BY_VERSE:
            segments["domain"] = segments["id"].str[:2]
    first: dict[tuple[str, ...], str] = {}
    for key, text in texts.items():
        if (same := first.setdefault(text, key)) != key:
            warnings.warn(
                f"{folder}: {names[same]} and {names[key]} hold the same text; nothing tells these "
                "two languages apart.",
                CorpusWarning,
                stacklevel=3,
            )
    source = f"{folder} ({layout})"
    return _assemble(folder.name, texts, names, segments, "as stated by its owner", source)


def _files(folder: Path) -> dict[str, Path]:
    """The files of a folder that hold the text of a language, by language tag."""
    found: dict[str, Path] = {}
    of_code: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        name = file.name
        if file.is_dir() or name.startswith(".") or name == _SEGMENTS:
            continue
        if name.lower().split(".")[0] in _BESIDE:
            continue
        checks.regular(file, CorpusError)
        if file.suffix in _PACKED:
            raise CorpusError(f"{folder}: {name} is packed; unpack it first.")
        tag = code = file.stem
        if translation := _TRANSLATION.fullmatch(name):
            code = translation["code"]
            tag = "_".join([code, *_script(file)])
        try:
            parse_tag(tag)
        except ValueError as error:
            raise CorpusError(f"{folder}: file {name} is no text of a language: {error}") from None
        # A translation whose header names no script may be in that of any other.
        same = found.get(tag) or found.get(code) or (of_code.get(code) if tag == code else None)
        if same:
            raise CorpusError(
                f"{folder}: {same.name} and {name} are the same language; keep one of them."
            )
        found[tag] = of_code[code] = file
    if not found:
        what = (
            "has no text, but subfolders" if any(map(Path.is_dir, folder.iterdir())) else "is empty"
        )
        raise CorpusError(f"{folder} {what}; it needs one text file a language, such as en.txt.")
    kinds = {
        "two layouts": lambda file: bool(_TRANSLATION.fullmatch(file.name)),
        # en and en.txt are read alike.
        "two extensions": lambda file: file.suffix or ".txt",
    }
    for what, kind in kinds.items():
        first, *others = found.values()
        if odd := [file for file in others if kind(file) != kind(first)]:
            raise CorpusError(
                f"{folder} holds {what}: {first.name} and {odd[0].name} are not of one kind; keep "
                "the files of one in a folder of their own."
            )
    return found


def _script(file: Path) -> list[str]:
    """The script that the header of a translation names, if it does: [] or one ISO 15924 code."""
    with file.open("rb") as lines:
        for line in lines:
            text = line.decode("utf-8-sig", errors="replace").rstrip()
            if not _NOT_VERSE.fullmatch(text):
                break
            if found := re.fullmatch(r"# *ISO_15924: *([A-Z][a-z]{3})", text):
                return [found[1]]
    return []


def _layout(names: dict[str, str], lines: dict[str, list[str]]) -> str:
    """Which layout these lines have. ``names``: key to file name, ``lines``: key to lines."""
    if any(_TRANSLATION.fullmatch(name) for name in names.values()):
        return _BY_VERSE
    for rows in lines.values():
        if 2 * sum(bool(re.match(r"\S+\t", row)) for row in rows) > len(rows):
            return _BY_ID
    return _BY_LINE


def _verses(lines: Sequence[str], where: str) -> dict[str, str]:
    """Verses of the Parallel Bible Corpus by id, without those that have no text."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if _NOT_VERSE.fullmatch(line):
            continue
        if not (verse := _VERSE.fullmatch(line)):
            raise CorpusError(
                f"{where}, line {number}: not a verse (eight digits, a tab and text) nor a line "
                "that starts with #."
            )
        if verse["id"] in found:
            raise CorpusError(f"{where}, line {number}: the id {verse['id']} comes a second time.")
        found[verse["id"]] = verse["text"] or ""
    return {key: text for key, text in found.items() if origins.visible(text)}


def _in_common(
    folder: Path, rows: dict[str, dict[str, str]], names: dict[str, str]
) -> tuple[dict[str, tuple[str, ...]], pd.DataFrame]:
    """Texts and segments of the ids that all languages have; a warning for those left out.

    ``rows``: key to id to sentence; ``names``: key to file name.
    """
    ids, texts = origins.in_common(rows)
    every = len(set().union(*rows.values()))
    fewest = min(rows, key=lambda key: len(rows[key]))
    if not ids:
        other = max(rows, key=lambda key: len(rows[key]))
        raise CorpusError(
            f"{folder}: no id has a sentence in all of {len(rows)} files (the first is "
            f"{next(iter(rows[fewest]), 'none')} in {names[fewest]} and "
            f"{next(iter(rows[other]), 'none')} in {names[other]})."
        )
    if len(ids) < every:
        warnings.warn(
            f"{folder.name}: {every - len(ids)} of {every} ids are left out, as not all of "
            f"{len(rows)} languages have them; {names[fewest]} lacks most, "
            f"{every - len(rows[fewest])} of them; an id is what stands before the first tab.",
            CorpusWarning,
            stacklevel=4,
        )
    return texts, pd.DataFrame({"id": ids}, dtype=object)


def _load_known(
    name: str, languages: Iterable[str] | None, path: Path | None, progress: bool
) -> ParallelCorpus:
    origin = ORIGINS[name]
    found = origins.available(name, path)
    where = f"{name} in {path}" if path else name
    keys = _tags(name, found, where)
    keys = {key: keys[key] for key in _resolve(languages, keys, where)}
    read = origins.read(name, list(keys.values()), found, progress)
    texts = {key: read.texts[tag] for key, tag in keys.items()}
    files = {key: read.files[tag] for key, tag in keys.items()}
    if read.changed:
        # Only a local copy may differ: for the others `origins.read` has raised.
        text = ", ".join(key for key, tag in keys.items() if tag in read.changed)
        warnings.warn(
            f"{where}: the text in {text} is not the one on record.", CorpusWarning, stacklevel=3
        )
    return _assemble(name, texts, files, read.segments, origin.licence, origin.source)
