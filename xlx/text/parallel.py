"""Parallel text: known corpora, and folders of one's own in three layouts (`load`).

A corpus of `ORIGINS` is shipped, a local copy, or a download. Files of checksums in ``data/``
record the text of every language: a download or shipped text that differs is an error. The archive
of FLORES-200 (with its dev part) is checked by SHA-256 when it arrives.

Languages go by their ISO 639-1 code, or 639-3 where there is none. Where a corpus has several
varieties of a language, the chosen one (or else the only one) takes the bare code and the others
keep script or region: "pt" and "pt_BR". In a folder with ``pt_PT`` and ``pt_BR`` none takes it.
Either name works when asking.
"""

import gzip
import hashlib
import lzma
import re
import tarfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from xlx.results import checks, paths, progress
from xlx.text import files
from xlx.text.files import TextError, decode
from xlx.text.languages import (
    LANGUAGES,
    RENAMED,
    base_code,
    is_tag,
    last_tag,
    means_language,
    parse_tag,
    tags_at_an_end,
)

#: Verses of fewer letters and digits are signs that the translation has none: #, —, [1], (없음).
_SOME_LETTERS = re.compile(r"(?:[\W_]*[^\W_]){3}")


class DownloadError(FileNotFoundError):
    """A corpus that is not here and could not be fetched."""


class CorpusWarning(UserWarning):
    """A corpus that can be used, but not without knowing this about it."""


@dataclass(frozen=True)
class Origin:
    """Where a corpus comes from. ``variety`` is the field of `Language` with its file tags."""

    licence: str
    source: str
    variety: str
    suffix: str  # of the file of a language
    record: str = "checksums.tsv"  # of what its text must be, in data/
    owner: str = ""  # whose rows of the record are its, if not all
    extra: str = ""  # a file about the segments, beside those of the languages
    shipped: Path | None = None  # the folder or archive in data/; None: the archive of FLORES-200


#: The archive, with its SHA-256 as in a Croissant description of the data set.
_ARCHIVE = "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"
_PIN = "b8b0b76783024b85797e5cc75064eb83fc5288b41e9654dabc7be6ae944011f6"
_FLORES = Origin(
    "CC BY-SA 4.0",
    "FLORES-200 (NLLB Team et al. 2022), github.com/facebookresearch/flores",
    "flores",
    "devtest",
    owner="flores200",
    extra="metadata_devtest.tsv",
)
_PART, _PARTS = replace(_FLORES, suffix="txt", extra=""), paths.DATA / "flores200"
_VERSES = Origin(
    "public domain; pt: CC BY 3.0 BR",
    "New Testaments, CrossWire modules via github.com/scrollmapper/bible_databases",
    "code",
    "tsv",
    "new_testament/checksums.tsv",
    "new-testament",
    shipped=paths.DATA / "pretraining" / "bible_nt.tar.xz",
)
ORIGINS = {
    "wmt24pp": Origin(
        "Apache-2.0",
        "WMT24++ (Deutsch et al. 2025), huggingface.co/datasets/google/wmt24pp",
        "wmt24pp",
        "txt",
        owner="wmt24pp",
        extra="segments.tsv",
        shipped=paths.DATA / "wmt24pp",
    ),
    "flores200": _FLORES,
    "flores200-dev": replace(_FLORES, suffix="dev", extra="metadata_dev.tsv"),
    "flores200-100": replace(
        _PART, record="flores200/checksums.tsv", owner="", shipped=_PARTS / "devtest100.tar.xz"
    ),
    "flores200-devtest": replace(_PART, shipped=_PARTS / "devtest.tar.xz"),
    "flores200-negation": replace(
        _PART, record="flores200/negation.tsv", owner="", shipped=_PARTS / "negation.tar.xz"
    ),
    "new-testament": _VERSES,
    "new-testament-held-out": replace(
        _VERSES,
        owner="new-testament-held-out",
        shipped=paths.DATA / "new_testament" / "held_out.tar.xz",
    ),
}


class CorpusTexts(NamedTuple):
    """What was read of a corpus: texts and names of files, by language."""

    texts: dict[str, tuple[str, ...]]
    files: dict[str, str]
    segments: dict[str, tuple[str, ...]]  # id and domain, as far as there are such
    extra: str  # the file that they are of
    notes: tuple[str, ...]  # sentences to warn with


@cache
def recorded(name: str) -> dict[str, str]:
    """By file tag: the sha256 of the text; "" where not known."""
    origin = ORIGINS[name]
    file = paths.DATA / origin.record
    if not file.is_file():
        raise TextError(
            f"{name} comes with the repository of xlx, not with the package ({file} is missing): "
            "clone the repository, or give a folder with text of your own"
        )
    rows = [list(row) for row in files.tsv(file.read_bytes(), str(file)).to_numpy()]
    if origin.owner:
        rows = [row[1:] for row in rows if row[0] == origin.owner]
    if name == "flores200-dev":  # the same languages; their text is covered by the archive's hash
        return {row[0]: "" for row in rows}
    few = {getattr(language, origin.variety) for language in LANGUAGES.values()}  # that are shipped
    return {x: y for x, *_, y in rows if x in few or name not in ("wmt24pp", "flores200-devtest")}


def _load_known(
    name: str, languages: Iterable[str] | None, path: Path | None
) -> tuple["ParallelCorpus", tuple[str, ...]]:
    """A corpus of `ORIGINS`, held to the record, and what to warn with."""
    origin, there, where = ORIGINS[name], [*recorded(name)], name
    if path:
        if origin.shipped:
            raise ValueError(f"{name} is shipped; give a folder with your own text as the name.")
        contents = _copies(path, {*(f"{tag}.{origin.suffix}" for tag in there), origin.extra})
        there, where = [x for x in there if f"{x}.{origin.suffix}" in contents], f"{name} in {path}"
        if not there:
            raise TextError(f"{path} holds no text of {name}, such as deu_Latn.{origin.suffix}.")
    keys = _tags(name, there, where)
    keys = {key: keys[key] for key in resolve(languages, keys, where)}
    if not path:
        named = {*(f"{tag}.{origin.suffix}" for tag in keys.values()), origin.extra}
        contents = _copies(origin.shipped or _archive(name), named)
    read = _texts(name, keys, contents, local=bool(path))
    return _assembled(name, read, origin.licence, origin.source), read.notes


def _texts(
    name: str, keys: Mapping[str, str], contents: Mapping[str, bytes], local: bool
) -> CorpusTexts:
    """The texts of file tags (``keys``: language to tag), held to the record.

    Text that differs is an error, of a local copy a note.
    """
    origin, record = ORIGINS[name], recorded(name)
    named = {key: f"{tag}.{origin.suffix}" for key, tag in keys.items()}
    restore = "its origin has changed; give a copy of your own by path=."
    if origin.shipped:
        folder = origin.shipped.parent if origin.shipped.suffix else origin.shipped
        restore = f"restore data/{folder.name} from the repository."
    if missing := ", ".join(keys[key] for key, file in named.items() if file not in contents):
        raise TextError(f"{name}: there is no text in {missing}; {restore}")
    where = {key: f"{keys[key]}: {file}" for key, file in named.items()}
    lines = {key: decode(contents[file], where[key]) for key, file in named.items()}
    # What is on record of verses is all that a language has, not what is left beside others.
    changed = [x for x in keys if record[keys[x]] not in ("", files.sentences_hash(lines[x]))]
    if changed and not local:
        some = ", ".join(keys[key] for key in changed)
        raise TextError(f"{name}: the text of {some} is not the one on record; {restore}")
    notes = (f"the text in {', '.join(changed)} is not the one on record.",) if changed else ()
    if origin.variety == "code":
        verses = {x: files.by_id(files.with_ids(lines[x], where[x]), where[x]) for x in keys}
        ids, texts = files.in_common(
            {
                code: {x: v for x, v in by_id.items() if _SOME_LETTERS.match(v)}
                for code, by_id in verses.items()
            }
        )
        segments = {"id": ids, "domain": tuple(verse.split(".")[0] for verse in ids)}
    else:
        texts = {key: files.filled(rows, where[key]) for key, rows in lines.items()}
        # FLORES-200 has more columns, in ragged rows: "" where a row is short.
        header, *rows = [
            x.split("\t") for x in decode(contents.get(origin.extra, b""), origin.extra)
        ] or [[]]
        segments = {
            column: tuple(row[at] if at < len(row) else "" for row in rows)
            for at, column in enumerate(header)
            if column in ("id", "domain")
        }
    if name == "wmt24pp":
        texts = {key: tuple(map(files.broken, text)) for key, text in texts.items()}
    return CorpusTexts(texts, named, segments, origin.extra, notes)


def _copies(path: Path, names: set[str]) -> dict[str, bytes]:
    """The files of these names in a folder, at any depth, or in an archive."""
    if path.is_dir():
        return {x.name: x.read_bytes() for x in sorted(path.rglob("*")) if x.name in names}
    if not path.exists():
        raise FileNotFoundError(f"There is no folder or archive {path}.")
    try:
        with tarfile.open(path) as archive:
            return {
                name: archive.extractfile(member).read()
                for member in archive
                if member.isfile() and (name := Path(member.name).name) in names
            }
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise TextError(f"{path} is neither a folder nor a whole tar archive.") from error


def _archive(name: str) -> Path:
    """The archive of FLORES-200 in the cache, fetched if it is not there, and the one on record."""
    import pooch

    remedy = f'load("{name}", path=...) with a local copy.'
    options = {"path": paths.CACHE / "downloads", "progressbar": progress.watched()}
    try:
        return Path(pooch.retrieve(_ARCHIVE, _PIN, fname=Path(_ARCHIVE).name, **options))
    except OSError as error:
        what = f"could not be downloaded ({type(error).__name__}); connect to the network"
        raise DownloadError(f"{name} {what}, or {remedy}") from error
    except ValueError as error:  # pooch's word for another hash
        reason = str(error).split("\n")[0]
        raise TextError(
            f"{name}: {_ARCHIVE} is not the file on record ({reason}); {remedy}"
        ) from error


def resolve(asked: Iterable[str] | None, keys: dict[str, str], where: str) -> list[str]:
    """The keys asked for by key, file tag or any spelling of it. ``keys``: key to file tag."""
    if asked is None:
        return list(keys)
    spelled = {_canonical(tag): key for key, tag in keys.items()} | {key: key for key in keys}
    chosen, missing = [], []
    for request in [asked] if isinstance(asked, str) else asked:
        tag = _canonical(request)
        key = spelled.get(request) or spelled.get(tag) or spelled.get(RENAMED.get(tag, tag))
        (chosen if key else missing).append(key or request)
    if missing or not chosen:
        what = ", ".join(map(str, missing)) or "no language at all"
        there = ", ".join(keys) or "none"
        raise TextError(f"{where} has no text in {what}; it has {there}.")
    return list(dict.fromkeys(chosen))


def _canonical(tag: str) -> str:
    """The tag in its canonical form; a key that is none (of a corpus made by hand) as it is."""
    try:
        return parse_tag(tag)
    except TextError:
        return tag


def keys_of(
    tags: Iterable[str], chosen: dict[str, str], where: str, wanted: Iterable[str] | None = None
) -> dict[str, str]:
    """Key of every file tag: the bare code for the chosen or only variety, else the whole tag.

    Of tags that mean one language (est and ekk, zho and cmn) only one can be used: that in
    ``wanted``, or none where the language is not wanted at all.
    """
    named = {}
    for tag in tags:
        named.setdefault(parse_tag(tag), []).append(tag)
    spelled = {}
    for canonical, same in named.items():
        asked = same if wanted is None else [x for x in wanted if _canonical(x) == canonical]
        exact = same if len(same) == 1 else [tag for tag in same if tag in asked]
        if asked and len(exact) != 1:
            raise TextError(
                f"{where}: {' and '.join(same)} are the same language"
                "; keep one of them, or ask for one by this name."
            )
        spelled.update((canonical, tag) for tag in exact)
    code_of = {tag: code for code, tag in chosen.items()}
    codes = Counter(base_code(tag) for tag in spelled if spelled[tag] not in code_of)
    keys = {}
    for canonical, tag in spelled.items():
        code = base_code(canonical)
        alone = codes[code] == 1 and code not in chosen
        keys[code_of.get(tag) or (code if alone else canonical)] = tag
    return dict(sorted(keys.items()))


#: Files of a folder that are no text of a language.
_SEGMENTS = "segments.tsv"
_BESIDE = ("readme", "license", "licence", "notice")
_PACKED = re.compile(r".*\.(zst|zip|rar|7z|tgz|tar(\.\w+)?)")
_TABLES = re.compile(r"(.+)\.(tmx|csv|tsv|parquet|jsonl)(\.(gz|bz2|xz))?")
#: Those in which each line says what it is of; columns of language, script and text in FLORES+.
_PUBLISHED = re.compile(r"\.(parquet|jsonl)")
_FLORES_PLUS = ("iso_639_3", "iso_15924", "text")
#: The layouts of a folder.
_BY_LINE, _BY_ID = "one sentence a line", "id and sentence a line"


def read_folder(folder: Path, languages: Iterable[str] | None) -> tuple[CorpusTexts, str]:
    """The texts of a folder in these languages, aligned by line or by id, and the layout."""
    columns, packing, others, there = _columns(folder)
    by_tag = {tag: Path(f"{packing}, {tag}") for tag in columns}
    if not columns:
        by_tag, others = _files(folder)
    notes = [f"left out, as no text of a language like the rest: {x}" for x in others]
    if languages is not None:
        languages = [languages] if isinstance(languages, str) else list(languages)
    keys = keys_of(by_tag, {}, str(folder), languages)
    names = {key: by_tag[keys[key]] for key in resolve(languages, keys, str(folder))}
    where = {key: f"{key}: {file}" for key, file in names.items()}
    lines = {
        key: decode(files.unpacked(file.read_bytes(), where[key]), where[key])
        for key, file in names.items()
        if not columns
    }
    there = there if columns else names.values()
    cut = [x for x in there if files.unpacked(x.read_bytes(), str(x))[-1:] not in b"\r\n"]
    if columns or len(cut) < len(there):
        notes += [f"{x.name}: its last line has no end, so it may be cut off." for x in cut]
    ids_first = (2 * sum(bool(re.match(r"\S+\t", x)) for x in y) > len(y) for y in lines.values())
    layout = packing or (_BY_ID if any(ids_first) else _BY_LINE)
    beside, segments = folder / _SEGMENTS, {}
    if beside.exists():
        table = files.tsv(beside.read_bytes(), str(beside))
        segments = {name: tuple(table[name]) for name in table}
    if layout == _BY_LINE:
        texts = {key: files.filled(rows, where[key]) for key, rows in lines.items()}
    elif segments:
        raise TextError(f"{beside}: the lines of the texts have ids, too; remove one of both.")
    else:
        rows = {key: columns[keys[key]] for key in names if columns} or {
            key: files.by_id(files.with_ids(lines[key], where[key]), where[key]) for key in names
        }
        ids, texts = files.in_common(rows)
        notes += _left_out(folder, rows, names, len(ids))
        segments = {"id": ids}
    first = {}
    for key, text in texts.items():
        if (same := first.setdefault(text, key)) != key:
            both = f"{names[same].name} and {names[key].name} hold the same text"
            notes.append(f"{both}; nothing tells these two languages apart.")
    called = {key: file.name for key, file in names.items()}
    first = next(iter(names.values()))
    if not columns and not _is_tag(first):
        layout += f", names as {first.name}"
    return CorpusTexts(texts, called, segments, _SEGMENTS, tuple(notes)), layout


def _columns(path: Path) -> tuple[dict[str, dict[str, str]], str, list[str], list[Path]]:
    """By tag, id and sentence of a table with one column per language, or of TMX; its layout.

    And the names of files that are no tables, and those tables whose rows are lines. Nothing of a
    folder where such a file has the text of a language. Of several parts, one after the other.
    """
    there = [path] if path.is_file() else _beside_left_out(path)
    parts = [file for file in there if _TABLES.fullmatch(file.name)]
    others = [file for file in there if file not in parts]
    named_by_language = path.is_dir() and all(map(_is_tag, parts))
    published = any(_PUBLISHED.search(file.name) for file in parts)
    lines = named_by_language and len(parts) > 1 and not published
    if not parts or any(map(_is_tag, others)) or lines:
        return {}, "", [], []
    table = pd.concat(map(files.table_of, parts), ignore_index=True)
    if {*_FLORES_PLUS} <= {*table}:  # a row for each language of a sentence
        code, script, text = _FLORES_PLUS
        if "id" not in table or table.duplicated(["id", code, script]).any():
            raise TextError(f"{path}: give each sentence an id, once in a language and script.")
        table["tag"] = table[code].astype(str) + "_" + table[script].astype(str)
        table = table.pivot(index="id", columns="tag", values=text).reset_index()
    elif named_by_language and sum(means_language(str(x)) for x in table) < 2:
        return {}, "", [], []
    numbers, given = (table.index + 1).astype(str), table.get("id")
    named = (
        given is not None
        and given.is_unique
        and not given.astype(str).str.contains(r"\s|None").any()
    )
    ids = given.astype(str) if named else numbers  # else the column is Indonesian, or has gaps
    columns = {}
    for name in (x for x in table if not (x == "id" and named)):
        tags = [x for x in (str(name), last_tag(str(name))) if x and means_language(x)]
        cells = {key: x for key, x in zip(ids, table[name], strict=True) if isinstance(x, str)}
        written = [any(map(str.isalpha, x)) for x in cells.values() if files.visible(x)]
        if tags and 2 * sum(written) > len(written):
            columns[tags[0]] = {key: x for key, x in cells.items() if files.visible(x)}
    if not columns:
        raise TextError(f"{path}: none of {', '.join(map(str, table))} names a language.")
    layout = f"one column per language of {parts[0].name}"
    lined = [x for x in parts if {".csv", ".tsv"} & {*x.suffixes}]
    return columns, layout, [file.name for file in others], lined


def _is_tag(file: Path) -> bool:
    """Whether a file is called as a language, beside its extension."""
    return is_tag(_tag_of(files.unpacked_name(file.name)))


def _tag_of(name: str) -> str:
    """What a file is called, without its extension and what is for private use: "-x-bible"."""
    return Path(name).stem.partition("-x-")[0]


def _beside_left_out(folder: Path) -> list[Path]:
    """The files of a folder that should be text."""
    return [
        file
        for file in sorted(folder.iterdir())
        if not file.is_dir()
        and not file.name.startswith(".")
        and file.name != _SEGMENTS
        and file.name.lower().split(".")[0] not in _BESIDE
    ]


def _files(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """By language tag the file of a folder with its text; names of files that are none, or unlike.

    TextError where not two fit.
    """
    by_tag, ends = {}, {}
    there = named = _beside_left_out(folder)
    for file in there:
        if _PACKED.fullmatch(file.name) and is_tag(file.name.partition(".")[0]):
            raise TextError(f"{folder}: {file.name} is packed; unpack it first.")
    if not all(map(_is_tag, there)):
        ends = tags_at_an_end([files.unpacked_name(file.name) for file in there])
        named = [file for file in there if files.unpacked_name(file.name) in ends] or there
    for file in named:
        checks.regular(file, TextError)
        plain = files.unpacked_name(file.name)
        tag = ends.get(plain) or _tag_of(plain)
        try:
            parse_tag(tag)
        except TextError as error:
            what = f"file {file.name} is no text of a language: {error}"
            raise TextError(f"{folder}: {what}") from None
        if (same := by_tag.setdefault(tag, file)) is not file:
            both = f"{same.name} and {file.name} are the same language"
            raise TextError(f"{folder}: {both}; keep one of them.")
    if not by_tag:
        inside = any(map(Path.is_dir, folder.iterdir()))
        what = "has no text, but subfolders" if inside else "is empty"
        raise TextError(f"{folder} {what}; it needs one text file a language, such as en.txt.")
    kinds = {}
    for file in by_tag.values():  # en, en.txt and en.txt.gz are read alike
        kinds.setdefault(Path(files.unpacked_name(file.name)).suffix or ".txt", file.name)
    if len(kinds) > 1 and not ends:
        first, other, *_ = kinds.values()
        raise TextError(
            f"{folder} holds two extensions: {first} and {other} are not of one kind; keep the "
            "files of one in a folder of their own."
        )
    return by_tag, [file.name for file in there if file not in named]


def _left_out(
    folder: Path, rows: dict[str, dict[str, str]], names: dict[str, Path], n: int
) -> list[str]:
    """What to warn with where not all languages have all ids; TextError where ``n``, theirs, is 0.

    ``rows``: language to id to sentence.
    """
    every = len(set().union(*rows.values()))
    if not n:
        what = f"no id has a sentence in all of {len(rows)} files"
        raise TextError(f"{folder}: {what}; an id is what stands before the first tab.")
    if n == every:
        return []
    fewest = min(rows, key=lambda key: len(rows[key]))
    return [
        f"{every - n} of {every} ids are left out, as not all of {len(rows)} languages have them; "
        f"{names[fewest].name} lacks most, {every - len(rows[fewest])} of them; an id is what "
        "stands before the first tab."
    ]


@checks.typed(TextError)
@dataclass(frozen=True)
class ParallelCorpus:
    """Sentences aligned by position: n of them in each language.

    ``ids`` and ``domains`` have n entries too. An id is ``document:segment`` in WMT24++ and NTREX,
    a verse in the New Testaments (``Jas.1.1``, of the domain ``Jas``), elsewhere the line number
    unless the corpus gives one; where there are no domains, they are empty. ``columns``: further
    labels of positions, by name. ``source`` of a folder says which layout was read. ``stock`` are
    the ids that `take` draws from first: of a shipped corpus, the positions that it has in all its
    languages, whichever were asked for.
    """

    name: str
    sentences: dict[str, tuple[str, ...]]
    ids: tuple[str, ...]
    domains: tuple[str, ...]
    licence: str
    source: str
    stock: tuple[str, ...] = field(default=(), repr=False, compare=False)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for what, row in {**self.sentences, "domains": self.domains, **self.columns}.items():
            if len(row) != len(self.ids):
                sizes = f"{what} has {len(row)} entries and ids {len(self.ids)}"
                raise TextError(f"{self.name}: {sizes}; a corpus has one for each position.")
            checks.whole_characters(row, f"{self.name}: {what}", TextError)

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

    @checks.typed()
    def select(self, languages: str | Iterable[str]) -> "ParallelCorpus":
        """The corpus in these languages, in this order. Raises TextError for one it lacks."""
        codes = resolve(languages, {code: code for code in self.sentences}, self.name)
        return replace(self, sentences={code: self.sentences[code] for code in codes})

    @checks.typed()
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
        places = {place[id_] for i in drawn if (id_ := self.stock[i]) in place}
        salt = rng.integers(2**63)
        ranks = [hashlib.sha256(f"{salt} {id_}".encode()).digest() for id_ in self.ids]
        rest = sorted(set(range(len(self))) - places, key=lambda place: (ranks[place], place))
        return self._keep(sorted([*places, *rest[: n - len(places)]]))

    @checks.typed()
    def drop(self, positions: Iterable[int]) -> "ParallelCorpus":
        """The corpus without these positions (0 to n - 1), in every language."""
        gone = {int(position) for position in positions}
        for p in sorted(gone):
            if not 0 <= p < len(self):
                raise TextError(f"{self.name}: no position {p} among {len(self)} sentences.")
        return self._keep([p for p in range(len(self)) if p not in gone])

    def _keep(self, positions: Sequence[int]) -> "ParallelCorpus":
        def picked(row: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(row[p] for p in positions)

        sentences = {language: picked(row) for language, row in self.sentences.items()}
        columns = {name: picked(row) for name, row in self.columns.items()}
        ids, domains = picked(self.ids), picked(self.domains)
        return replace(self, sentences=sentences, ids=ids, domains=domains, columns=columns)

    def text_hash(self, language: str) -> str:
        """SHA-256 of the sentences as a file (`files.sentences_hash`), as by ``sha256sum``."""
        if language not in self.sentences:
            (language,) = self.select([language]).sentences
        return files.sentences_hash(self.sentences[language])


@checks.typed(TextError)
def load(
    name: str | Path,
    languages: str | Iterable[str] | None = None,
    *,
    path: str | Path | None = None,
    drop_duplicates: bool = False,
) -> ParallelCorpus:
    """Load and check parallel text.

    Parameters
    ----------
    name : a corpus of `ORIGINS`, or a folder with one text file a language, plain or packed, named
        by a tag that `languages.parse_tag` reads (``en.txt``, ``aai_Latn.devtest.gz``) or with it
        at an end (``corpus.en``, ``newstest2019-ref.deu.txt``); or a table (CSV, TSV, parquet) with
        one column per language, or a TMX. A file has one sentence per line, an id, a tab and a
        sentence, or is of the Parallel Bible Corpus. Of two names of one language, such as ``est``
        and ``ekk``, ask for one by this. ``segments.tsv`` beside the text may give ids, domains and
        whatever else is known of the sentences (`ParallelCorpus.columns`).
    languages : codes or tags to load, in the order wanted; None for all there are.
    path : a local copy of a corpus that is downloaded otherwise: a folder with its files under
        their own names, at any depth, or an archive of it. A CorpusWarning tells where its text
        differs from the one on record.
    drop_duplicates : leave out, in all languages, the positions at which one of them repeats an
        earlier sentence; otherwise a CorpusWarning counts them. What is measured language by
        language (MEXA) does better without: a repeat then costs its own language alone.

    Raises TextError (a ValueError), in a sentence, for text that is not that of all languages line
    by line; FileNotFoundError for a folder that does not exist, DownloadError (one too) without a
    network.
    """
    known, origin = ", ".join(ORIGINS), ORIGINS.get(str(name))
    if not str(name):
        raise TextError(f"{checks.shown(name)} is no corpus: give one of {known}, or a folder.")
    if origin:
        corpus, notes = _load_known(str(name), languages, Path(path) if path else None)
    elif path:
        raise ValueError(f"path= is for a copy of {known}; give a folder as the name.")
    elif not Path(name).is_dir() and not (Path(name).is_file() and _TABLES.fullmatch(str(name))):
        how = f"give a folder with one text file a language, or one of {known}"
        raise FileNotFoundError(f"There is no corpus and no folder {str(name)!r}; {how}.")
    else:
        read, layout = read_folder(Path(name), languages)
        about = "as stated by its owner", f"{Path(name)} ({layout})"
        corpus, notes = _assembled(Path(name).name, read, *about), read.notes
    repeats = _repeats(corpus)
    if drop_duplicates:
        corpus = corpus.drop(position for _, position, _ in repeats)
    elif repeats:
        notes = (*notes, _repeated(corpus, repeats))
    for note in notes:
        warnings.warn(f"{corpus.name}: {note}", CorpusWarning, stacklevel=3)
    if len(corpus) < 2:
        left = "without the repeated ones" if drop_duplicates and repeats else "in all"
        raise TextError(
            f"{corpus.name} has {len(corpus)} sentences {left}; at least two are needed."
        )
    if origin is None or not origin.shipped:
        return corpus
    stock = corpus.ids if languages is None else _stock(str(name), drop_duplicates)
    return replace(corpus, stock=stock)


@lru_cache(maxsize=8)
def _stock(name: str, drop_duplicates: bool) -> tuple[str, ...]:
    """The ids that a shipped corpus has in all its languages, without those that one repeats."""
    whole, _ = _load_known(name, None, None)
    return whole.drop(i for _, i, _ in _repeats(whole)).ids if drop_duplicates else whole.ids


@checks.typed()
def documents(corpus: ParallelCorpus) -> tuple[str, ...]:
    """The document of each position, by its id; where ids name none, each position is its own."""
    return tuple(name.rsplit(":", 1)[0] for name in corpus.ids)


def tags(name: str) -> dict[str, str]:
    """What a corpus of `ORIGINS` calls each of its languages, by the code used here.

    ``tags("flores200-100")["zh"]`` is "zho_Hans". Raises FileNotFoundError for any other name.
    """
    checks.one_of(name, ORIGINS, "corpus", FileNotFoundError)
    return _tags(name, recorded(name), name)


def _tags(name: str, there: Iterable[str], where: str) -> dict[str, str]:
    tagged = ((code, getattr(x, ORIGINS[name].variety)) for code, x in LANGUAGES.items())
    return keys_of(there, {code: tag for code, tag in tagged if tag in there}, where)


def _repeats(corpus: ParallelCorpus) -> list[tuple[str, int, int]]:
    """Language, position and first position of sentences that look like an earlier one of theirs.

    "Different meaning" is untrue of them. Invisible characters, kinds of spaces and Unicode's two
    ways to write one letter make no difference.
    """
    repeats = []
    for language, row in corpus.sentences.items():
        first = {}
        for position, sentence in enumerate(map(files.appearance, row)):
            if first.setdefault(sentence, position) != position:
                repeats.append((language, position, first[sentence]))
    return repeats


def _repeated(corpus: ParallelCorpus, repeats: Sequence[tuple[str, int, int]]) -> str:
    """What to say of sentences that come again."""
    languages, positions, _ = zip(*repeats, strict=True)
    language, *places = repeats[0]
    here, before = (
        f"line {i + 1}" if corpus.ids[i] == str(i + 1) else corpus.ids[i] for i in places
    )
    counts = ", ".join(f"{code} {n}" for code, n in Counter(languages).items())
    return (
        f"{len(repeats)} sentences at {len(set(positions))} of {len(corpus)} positions "
        f"repeat an earlier one of their language (first: {language}, {here} repeats {before}; in "
        f"all: {counts}); drop_duplicates=True leaves these positions out."
    )


def _assembled(name: str, read: CorpusTexts, licence: str, source: str) -> ParallelCorpus:
    """A corpus from what was read, if all files have as many lines."""
    sizes = {read.files[key]: len(text) for key, text in read.texts.items()}
    if read.segments:
        sizes[read.extra] = len(next(iter(read.segments.values())))
    n, agreeing = Counter(sizes.values()).most_common(1)[0]
    if agreeing < len(sizes):
        odd = ", ".join(f"{file} has {size}" for file, size in sizes.items() if size != n)
        like = next(file for file, size in sizes.items() if size == n)
        most = f"{like} has {n} (as {agreeing} of {len(sizes)} files)"
        raise TextError(f"{name}: unequal numbers of lines: {odd}, but {most}; align them.")
    ids = read.segments.get("id") or tuple(str(line) for line in range(1, n + 1))
    domains = read.segments.get("domain") or ("",) * n
    columns = {x: row for x, row in read.segments.items() if x not in ("id", "domain")}
    return ParallelCorpus(name, read.texts, ids, domains, licence, source, columns=columns)
