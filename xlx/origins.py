"""Known parallel corpora: where each comes from, how it is fetched, and that it is what it was.

`corpora.load` is built on this module and is what to call; here are the registry `ORIGINS`, the
reading of files, and the downloads. ``data/checksums.tsv`` records the text of every language of
WMT24++, NTREX and FLORES-200 devtest, ``data/flores200/checksums.tsv`` that of the part shipped of
the last, ``data/new_testament/checksums.tsv`` that of the New Testaments; what is read is compared
with it, and a download or the shipped text that differs is an error. The FLORES-200 archive (with
its dev part) and the files of NTREX are checked by SHA-256 when they arrive; the hub checks its
own.
"""

import gzip
import hashlib
import json
import lzma
import sys
import tarfile
import unicodedata
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from xlx import paths
from xlx.languages import LANGUAGES

#: What stands for a line break inside a sentence, so that a sentence is always one line of a file.
_LF, _CR = "\u2424", "\u240d"

_SHIPPED = paths.DATA / "wmt24pp"
_SHIPPED_FLORES = paths.DATA / "flores200"
_SHIPPED_VERSES = paths.DATA / "new_testament"
_PRETRAINING = paths.DATA / "pretraining"

#: What is shipped, by its folder in data/ ...
_HOME = {
    "wmt24pp": "wmt24pp",
    "flores200-100": "flores200",
    "new-testament": "pretraining",
    "new-testament-held-out": "new_testament",
}

#: Their names.
SHIPPED = tuple(_HOME)

#: ... and the name under which a copy elsewhere is read.
_WHOLE = {"wmt24pp": "google/wmt24pp", "flores200-100": "flores200"}

#: Those whose lines are ``id<TAB>verse``.
_BY_VERSE = ("new-testament", "new-testament-held-out")

#: Verses with fewer letters and digits are signs that the translation has none: #, —, [1], (없음).
_NO_VERSE = 3


class CorpusError(ValueError):
    """Text that cannot serve as a parallel corpus; says which language, file and line, and why."""


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
    url: str = ""
    pin: str = ""  # the commit, or the SHA-256 of the archive
    extra: str = ""  # a file about the segments, beside those of the languages


_WMT24PP = "WMT24++ (Deutsch et al. 2025), huggingface.co/datasets/google/wmt24pp"
_FLORES = Origin(
    licence="CC BY-SA 4.0",
    source="FLORES-200 (NLLB Team et al. 2022), github.com/facebookresearch/flores",
    variety="flores",
    url="https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz",
    # As given in a Croissant description of the data set and by many who use it.
    pin="b8b0b76783024b85797e5cc75064eb83fc5288b41e9654dabc7be6ae944011f6",
)
_VERSES = Origin(
    licence="public domain; pt: CC BY 3.0 BR",
    source="New Testaments, CrossWire modules via github.com/scrollmapper/bible_databases",
    variety="code",
)
ORIGINS = {
    "wmt24pp": Origin("Apache-2.0", _WMT24PP, "wmt24pp", extra="segments.tsv"),
    "google/wmt24pp": Origin(
        "Apache-2.0", _WMT24PP, "wmt24pp", pin="e65f5856b1de3319c748c15e5aec0bc2336ec3b0"
    ),
    "ntrex": Origin(
        licence="CC BY-SA 4.0",
        source="NTREX-128 (Federmann et al. 2022), github.com/MicrosoftTranslator/NTREX",
        variety="ntrex",
        url="https://raw.githubusercontent.com/MicrosoftTranslator/NTREX/",
        pin="468c6b69c7f6a75d31d4743d9daba2af566cc18d",
        extra="DOCUMENT_IDS.tsv",
    ),
    "flores200": replace(_FLORES, extra="metadata_devtest.tsv"),
    "flores200-dev": replace(_FLORES, extra="metadata_dev.tsv"),
    "flores200-100": replace(_FLORES, url="", pin=""),
    "new-testament": _VERSES,
    "new-testament-held-out": _VERSES,
}


# --- reading text ---------------------------------------------------------------------------------


#: Letters and signs that show nothing: fillers of Hangul, the empty pattern of Braille.
_BLANK = "\u115f\u1160\u3164\uffa0\u2800"


def decode(data: bytes, where: str) -> list[str]:
    """Lines of UTF-8 text, without byte order mark and line ends. ``where`` opens the error."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{where}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8 text; "
            "save the file in UTF-8."
        ) from None
    if (place := data.find(b"\0")) >= 0:
        raise CorpusError(
            f"{where}, line {data.count(10, 0, place) + 1}: a NUL byte, which text does not have; "
            "is it UTF-16? Save the file in UTF-8."
        )
    lines = text.removeprefix("\ufeff").split("\n")
    lines[:-1] = [line.removesuffix("\r") for line in lines[:-1]]
    if lines[-1] == "":  # what follows the last line end is no line
        lines.pop()
    return lines


def visible(sentence: str) -> bool:
    """Whether there is more in it than spaces and invisible characters."""
    return any(
        unicodedata.category(c) not in {"Zs", "Zl", "Zp", "Cc", "Cf"} and c not in _BLANK
        for c in sentence
    )


def sentences(lines: Sequence[str], where: str) -> tuple[str, ...]:
    """The lines, none of them empty (nor made of spaces and invisible characters only)."""
    empty = [number for number, line in enumerate(lines, 1) if not visible(line)]
    if empty:
        some = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
        raise CorpusError(
            f"{where}: {len(empty)} empty line{'s' * (len(empty) > 1)} ({some}); fill or remove "
            "the position in all languages."
        )
    if not lines:
        raise CorpusError(f"{where} is empty; it needs one sentence a line.")
    return tuple(lines)


def by_id(lines: Sequence[str], where: str) -> dict[str, str]:
    """Lines ``id<TAB>sentence`` as id → sentence, in their order; a sentence may hold tabs itself.

    Ids with an empty sentence (as in `sentences`) are left out. CorpusError for a line without a
    tab or an id, and for an id that comes twice.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        key, tab, sentence = line.partition("\t")
        if not tab or not key:
            raise CorpusError(
                f"{where}, line {number}: not an id, a tab and a sentence as elsewhere; give all "
                "lines an id or none."
            )
        if key in found:
            raise CorpusError(f"{where}, line {number}: the id {key} comes a second time.")
        found[key] = sentence
    return {key: sentence for key, sentence in found.items() if visible(sentence)}


def in_common(
    texts: Mapping[str, Mapping[str, str]],
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The ids that all texts (id → sentence) have, in the order of the first; their sentences."""
    everywhere = set.intersection(*(set(rows) for rows in texts.values()))
    ids = tuple(key for key in next(iter(texts.values())) if key in everywhere)
    return ids, {name: tuple(rows[key] for key in ids) for name, rows in texts.items()}


def table(data: bytes, where: str) -> pd.DataFrame:
    """A tab-separated table with a header, every cell as the text it is."""
    rows = [line.split("\t") for line in decode(data, where)]
    header = rows[0] if rows else []
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise CorpusError(
                f"{where}, line {number}: {len(row)} cells under a header of {len(header)}."
            )
    return pd.DataFrame(rows[1:], columns=header, dtype=object)


def one_line(sentence: str) -> str:
    """The sentence with U+2424 and U+240D for its line breaks, as in ``data/wmt24pp``."""
    return sentence.replace("\n", _LF).replace("\r", _CR)


def text_hash(text: Sequence[str]) -> str:
    """SHA-256 of the sentences as a file: UTF-8, LF, `one_line` each."""
    text = "".join(one_line(sentence) + "\n" for sentence in text)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


# --- known corpora --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The texts of a corpus that can be had: file tags, and the files of a local copy by name."""

    tags: tuple[str, ...]
    local: dict[str, Path | bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Read:
    """Texts and their file names by file tag; ids and domains; tags whose text is not on record."""

    texts: dict[str, tuple[str, ...]]
    files: dict[str, str]
    segments: pd.DataFrame | None
    changed: tuple[str, ...]


def varieties(name: str) -> dict[str, str]:
    """File tag of each of the 36 languages in this corpus."""
    return {code: getattr(each, ORIGINS[name].variety) for code, each in LANGUAGES.items()}


@cache
def _record(name: str) -> dict[str, tuple[str, str, str]]:
    """By file tag: file name, sha256 of the file, sha256 of the text (``data/checksums.tsv``).

    The tag "" is that of a file about the segments. Unknown hashes are "".
    """
    if name in _BY_VERSE:
        file = _SHIPPED_VERSES / "checksums.tsv"
        rows = table(file.read_bytes(), str(file)).itertuples(index=False, name=None)
        return {code: (f"{code}.tsv", "", sha256) for of, code, _, sha256 in rows if of == name}
    if name == "flores200-100":
        file = _SHIPPED_FLORES / "checksums.tsv"
        rows = table(file.read_bytes(), str(file)).itertuples(index=False, name=None)
        return {label: (f"{label}.txt", "", sha256) for label, _, sha256 in rows}
    file = paths.DATA / "checksums.tsv"
    rows = table(file.read_bytes(), str(file)).itertuples(index=False, name=None)
    corpus = {"google/wmt24pp": "wmt24pp", "flores200-dev": "flores200"}.get(name, name)
    record = {tag: tuple(rest) for of, tag, *rest in rows if of == corpus}
    if name == "flores200-dev":  # the same languages; their text is covered by the archive's hash
        return {tag: (f"{tag}.dev", "", "") for tag in record}
    return record


def available(name: str, path: Path | None = None) -> Found:
    """The texts of a corpus, those of a local copy if ``path`` is given.

    Raises FileNotFoundError if nothing is at ``path``, CorpusError if it holds none of them.
    """
    record = _record(name)
    tags = tuple(tag for tag in record if tag)
    if name in _HOME and path:
        remedy = "give a folder with your own text as the name instead of path="
        if name in _WHOLE:
            remedy = f'to read a copy elsewhere, load "{_WHOLE[name]}"'
        raise ValueError(f"{name} is shipped; {remedy}.")
    if name == "wmt24pp":
        return Found(tuple(varieties(name).values()))
    if not path:
        return Found(tags)
    local = _local(path, {record[tag][0] for tag in tags} | {ORIGINS[name].extra} - {""})
    # English has no file of its own in WMT24++: any of the others holds it.
    tags = tuple(tag for tag in tags if local and record[tag][0] in {"", *local})
    if not tags:
        some = record[varieties(name)["de"]][0]
        raise CorpusError(f"{path} holds no text of {name}, such as {some}.")
    return Found(tags, local)


def read(name: str, tags: list[str], found: Found, progress: bool = True) -> Read:
    """The texts of these file tags, fetched if they are not local, and compared with the record."""
    origin, record = ORIGINS[name], _record(name)
    files = {tag: record[tag][0] for tag in tags}
    if name == "wmt24pp":
        files = {tag: f"{tag}.txt" for tag in tags}
        data = {file: _SHIPPED / file for file in (*files.values(), origin.extra)}
    elif name in _HOME:
        archive = {
            "flores200-100": _SHIPPED_FLORES / "devtest100.tar.xz",
            "new-testament": _PRETRAINING / "bible_nt.tar.xz",
            "new-testament-held-out": _SHIPPED_VERSES / "held_out.tar.xz",
        }[name]
        data = _local(archive, set(files.values()))
        if missing := [tag for tag, file in files.items() if file not in data]:
            raise CorpusError(
                f"{name}: the archive has no text in {', '.join(missing)}; restore "
                f"data/{_HOME[name]} from the repository."
            )
    elif name == "google/wmt24pp":
        some = min(found.local, default=record["de_DE"][0])
        files = {
            tag: file or next(filter(None, files.values()), some) for tag, file in files.items()
        }
        data = found.local or _from_hub(origin, sorted(set(files.values())), progress)
    else:
        data = found.local or _download(name, [*files.values(), origin.extra], progress)
    hashes = {}
    if name == "google/wmt24pp":
        texts, segments = _wmt24pp(data, files)
    elif name in _BY_VERSE:
        lines = {tag: decode(_bytes(data[file]), f"{tag}: {file}") for tag, file in files.items()}
        # What is on record is all that a language has, not what is left beside others.
        hashes = {tag: text_hash(rows) for tag, rows in lines.items()}
        texts, segments = _verses({tag: by_id(lines[tag], f"{tag}: {files[tag]}") for tag in tags})
    else:
        texts = {}
        for tag, file in files.items():
            where = f"{tag}: {file}"
            texts[tag] = sentences(decode(_bytes(data[file]), where), where)
        segments = _segments(name, data)
    if name == "wmt24pp":
        for tag, text in texts.items():
            texts[tag] = tuple(line.replace(_LF, "\n").replace(_CR, "\r") for line in text)
    if segments is not None:
        segments.attrs["file"] = origin.extra
    hashes = hashes or {tag: text_hash(text) for tag, text in texts.items()}
    changed = tuple(tag for tag in tags if record[tag][2] not in ("", hashes[tag]))
    if changed and not found.local:
        remedy = "its origin has changed; give a copy of your own by path=."
        if name in _HOME:
            remedy = f"restore data/{_HOME[name]} from the repository."
        raise CorpusError(
            f"{name}: the text of {', '.join(changed)} is not the one on record; {remedy}"
        )
    return Read(texts, files, segments, changed)


def _wmt24pp(
    data: dict[str, Path | bytes], files: dict[str, str]
) -> tuple[dict[str, tuple[str, ...]], pd.DataFrame]:
    """Texts and segments of WMT24++ from its JSONL, without the rows marked ``is_bad_source``.

    A row has lp, domain, document_id, segment_id, is_bad_source, source, target, original_target.
    ``target`` is taken: the post-edited translation, which the authors recommend as the default;
    ``original_target`` is the first draft that it corrects. All files must hold the same segments.
    """
    texts: dict[str, tuple[str, ...]] = {}
    reference: tuple[str, list] | None = None
    for tag, file in files.items():
        segments, translations = [], []
        for number, line in enumerate(decode(_bytes(data[file]), f"{tag}: {file}"), 1):
            try:
                row = json.loads(line)
                if row["is_bad_source"]:
                    continue
                name = f"{row['document_id']}:{row['segment_id']}"
                text = row["source"] if tag == "en" else row["target"]
                if not isinstance(text, str):
                    raise TypeError("its text is no string")
                segments.append((name, row["domain"], row["source"]))
                translations.append(text)
            except (ValueError, KeyError, TypeError) as error:
                raise CorpusError(
                    f"{tag}: {file}, line {number}: no row of WMT24++ ({error!r})."
                ) from None
        reference = reference or (file, segments)
        if segments != reference[1]:
            raise CorpusError(f"{tag}: {file} and {reference[0]} do not hold the same segments.")
        texts[tag] = sentences(translations, f"{tag}: {file}")
    rows = [(name, domain) for name, domain, _ in reference[1]]
    return texts, pd.DataFrame(rows, columns=["id", "domain"], dtype=object)


def _verses(
    texts: dict[str, dict[str, str]],
) -> tuple[dict[str, tuple[str, ...]], pd.DataFrame]:
    """Texts and segments of the verses that all these translations have; the domain is the book."""
    held = {
        tag: {
            key: verse for key, verse in rows.items() if sum(map(str.isalnum, verse)) >= _NO_VERSE
        }
        for tag, rows in texts.items()
    }
    ids, common = in_common(held)
    books = [key.split(".")[0] for key in ids]
    return common, pd.DataFrame({"id": ids, "domain": books}, dtype=object)


def _segments(name: str, data: dict[str, Path | bytes]) -> pd.DataFrame | None:
    """Ids and domains from what NTREX and FLORES-200 say about their lines, if it is there."""
    extra = ORIGINS[name].extra
    if extra not in data:
        return None
    if name == "ntrex":  # the document of every line, no header
        documents = decode(_bytes(data[extra]), extra)
        ids = [f"{document}:{line}" for line, document in enumerate(documents, 1)]
        return pd.DataFrame({"id": ids, "domain": "news"}, dtype=object)
    if name == "wmt24pp":
        return table(_bytes(data[extra]), extra)
    # FLORES-200 has URL, domain, topic and more: only the domain is wanted, so rows may be ragged.
    header, *rows = [line.split("\t") for line in decode(_bytes(data[extra]), extra)] or [[]]
    if "domain" not in header:
        return None
    at = header.index("domain")
    domains = [row[at] if at < len(row) else "" for row in rows]
    return pd.DataFrame({"domain": domains}, dtype=object)


def _bytes(content: Path | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _local(path: Path, names: set[str]) -> dict[str, Path | bytes]:
    """The files of these names in a folder, at any depth, or in an archive."""
    if path.is_dir():
        return {file.name: file for file in sorted(path.rglob("*")) if file.name in names}
    if not path.exists():
        raise FileNotFoundError(f"There is no folder or archive {path}.")
    try:
        with tarfile.open(path) as archive:
            members = {Path(member.name).name: member for member in archive if member.isfile()}
            return {
                name: archive.extractfile(member).read()
                for name, member in members.items()
                if name in names
            }
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise CorpusError(f"{path} is neither a folder nor a whole tar archive.") from error


def _no_download(name: str, error: Exception) -> DownloadError:
    return DownloadError(
        f"{name} could not be downloaded ({type(error).__name__}); connect to the network, or "
        f'load("{name}", path=...) with a local copy.'
    )


def _from_hub(origin: Origin, files: Iterable[str], progress: bool) -> dict[str, Path | bytes]:
    """Files of google/wmt24pp at a fixed revision, in the hub's own cache. No code is run."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    data: dict[str, Path | bytes] = {}
    for file in tqdm(list(files), desc="google/wmt24pp", disable=None if progress else True):
        try:
            data[file] = Path(
                hf_hub_download("google/wmt24pp", file, repo_type="dataset", revision=origin.pin)
            )
        except (OSError, EntryNotFoundError) as error:
            raise _no_download("google/wmt24pp", error) from error
    return data


def _download(name: str, files: list[str], progress: bool) -> dict[str, Path | bytes]:
    """NTREX file by file, FLORES-200 as its archive; checked by SHA-256, kept in the cache."""
    import pooch

    origin, folder = ORIGINS[name], paths.CACHE / "downloads"
    bar = progress and sys.stderr.isatty()

    def get(url: str, sha256: str, file: str) -> Path:
        try:
            return Path(pooch.retrieve(url, sha256, fname=file, path=folder, progressbar=bar))
        except OSError as error:
            raise _no_download(name, error) from error
        except ValueError as error:  # pooch's word for another hash
            raise CorpusError(
                f"{name}: {url} is not the file on record ({str(error).split(chr(10))[0]}); "
                f'load("{name}", path=...) with a local copy.'
            ) from error

    if name != "ntrex":
        return _local(get(origin.url, origin.pin, "flores200_dataset.tar.gz"), set(files))
    data: dict[str, Path | bytes] = {}
    known = {file: sha256 for file, sha256, _ in _record(name).values()}
    for file in tqdm(files, desc=name, disable=None if progress else True):
        at = file if file == origin.extra else f"NTREX-128/{file}"
        data[file] = get(f"{origin.url}{origin.pin}/{at}", known[file], f"ntrex-{file}")
    return data
