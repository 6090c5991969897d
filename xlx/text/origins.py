"""Known parallel corpora: where each comes from, how it is fetched, and that it is what it was.

`corpora.load` is what to call. Here are the registry `ORIGINS` and the files of a corpus: shipped,
a local copy, or downloads. Files of checksums in ``data/`` record the text of every language; a
download or shipped text that differs is an error. The FLORES-200 archive (with its dev part) and
the files of NTREX are checked by SHA-256 when they arrive; the hub checks its own.
"""

import gzip
import json
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from xlx.results import paths, progress
from xlx.text.files import (
    TextError,
    broken,
    by_id,
    decode,
    filled,
    in_common,
    sentences_hash,
    tsv,
    with_ids,
)
from xlx.text.languages import LANGUAGES

#: Verses of fewer letters and digits are signs that the translation has none: #, —, [1], (없음).
_VERSE = re.compile(r"(?:[\W_]*[^\W_]){3}")


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
    shipped: Path | None = None  # the folder or archive in data/
    whole: str = ""  # the name under which a copy elsewhere of what is shipped is read


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
    "wmt24pp": Origin(
        "Apache-2.0", _WMT24PP, "wmt24pp", extra="segments.tsv",
        shipped=paths.DATA / "wmt24pp", whole="google/wmt24pp",
    ),
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
    "flores200-100": replace(
        _FLORES, url="", pin="", whole="flores200",
        shipped=paths.DATA / "flores200" / "devtest100.tar.xz",
    ),
    "new-testament": replace(_VERSES, shipped=paths.DATA / "pretraining" / "bible_nt.tar.xz"),
    "new-testament-held-out": replace(
        _VERSES, shipped=paths.DATA / "new_testament" / "held_out.tar.xz"
    ),
}  # fmt: skip


class Available(NamedTuple):
    """The texts of a corpus that can be had: file tags, and the files of a local copy by name."""

    tags: tuple[str, ...]
    local: dict[str, Path | bytes]


class CorpusTexts(NamedTuple):
    """What was read of a corpus: texts and names of files, by language.

    ``segments`` has the columns id and domain, as far as there are such, of the file or layout
    ``extra``; ``notes`` are sentences to warn with.
    """

    texts: dict[str, tuple[str, ...]]
    files: dict[str, str]
    segments: dict[str, tuple[str, ...]]
    extra: str
    notes: tuple[str, ...]


def tags_of(name: str) -> dict[str, str]:
    """File tag of each of the 36 languages in this corpus."""
    return {code: getattr(language, ORIGINS[name].variety) for code, language in LANGUAGES.items()}


@cache
def recorded(name: str) -> dict[str, tuple[str, str, str]]:
    """By file tag: file name, sha256 of the file, sha256 of the text; "" where not known.

    The tag "" is that of a file about the segments.
    """
    folder = {"flores200-100": "flores200"}.get(name, "new_testament" if _has_verses(name) else "")
    file = paths.DATA / folder / "checksums.tsv"
    rows = list(tsv(file.read_bytes(), str(file)).itertuples(index=False, name=None))
    if _has_verses(name):
        return {tag: (f"{tag}.tsv", "", sha) for corpus, tag, _, sha in rows if corpus == name}
    if name == "flores200-100":
        return {label: (f"{label}.txt", "", sha256) for label, _, sha256 in rows}
    corpus = name.removeprefix("google/").removesuffix("-dev")
    record = {tag: tuple(rest) for owner, tag, *rest in rows if owner == corpus}
    if name == "flores200-dev":  # the same languages; their text is covered by the archive's hash
        return {tag: (f"{tag}.dev", "", "") for tag in record}
    if name == "wmt24pp":
        shipped = tags_of(name).values()
        return {tag: (f"{tag}.txt", "", record[tag][2]) for tag in shipped}
    return record


def _has_verses(name: str) -> bool:
    """Whether lines are ``id<TAB>verse``."""
    return ORIGINS[name].variety == "code"


def available(name: str, path: Path | None = None) -> Available:
    """The texts of a corpus, those of a local copy if ``path`` is given.

    Raises FileNotFoundError if nothing is at ``path``, TextError if it holds none of them.
    """
    origin, record = ORIGINS[name], recorded(name)
    tags = tuple(tag for tag in record if tag)
    if not path:
        return Available(tags, {})
    if origin.shipped:
        remedy = "give a folder with your own text as the name instead of path="
        if origin.whole:
            remedy = f'to read a copy elsewhere, load "{origin.whole}"'
        raise ValueError(f"{name} is shipped; {remedy}.")
    local = _local(path, {record[tag][0] for tag in tags} | {origin.extra} - {""})
    # English has no file of its own in WMT24++: any of the others holds it.
    tags = tuple(tag for tag in tags if local and record[tag][0] in {"", *local})
    if not tags:
        some = record[tags_of(name)["de"]][0]
        raise TextError(f"{path} holds no text of {name}, such as {some}.")
    return Available(tags, local)


def fetch_texts(name: str, keys: Mapping[str, str], there: Available) -> CorpusTexts:
    """The texts of file tags (``keys``: language to tag), fetched if not local, held to the record.

    Text that differs is an error, of a local copy a note.
    """
    origin, record = ORIGINS[name], recorded(name)
    files = {tag: record[tag][0] for tag in keys.values()}
    if name == "google/wmt24pp":  # English is in the file of any other language
        some = min(there.local, default=record["de_DE"][0])
        some = next(filter(None, files.values()), some)
        files = {tag: file or some for tag, file in files.items()}
    data = {
        file: content if isinstance(content, bytes) else content.read_bytes()
        for file, content in (there.local or _fetched(name, files)).items()
        if file in {*files.values(), origin.extra}
    }
    lines = {tag: decode(data[file], f"{tag}: {file}") for tag, file in files.items()}
    # What is on record of verses is all that a language has, not what is left beside others.
    hashes = {tag: sentences_hash(rows) for tag, rows in lines.items()} if _has_verses(name) else {}
    if name == "google/wmt24pp":
        texts, segments = _of_jsonl(lines, files)
    elif _has_verses(name):
        texts, segments = _of_verses(lines, files)
    else:
        texts = {tag: filled(rows, f"{tag}: {files[tag]}") for tag, rows in lines.items()}
        segments = _segments(name, data)
    if name == "wmt24pp":
        texts = {tag: tuple(map(broken, text)) for tag, text in texts.items()}
    hashes = hashes or {tag: sentences_hash(text) for tag, text in texts.items()}
    changed = [key for key, tag in keys.items() if record[tag][2] not in ("", hashes[tag])]
    if changed and not there.local:
        remedy = _restore(origin) or "its origin has changed; give a copy of your own by path=."
        some = ", ".join(keys[key] for key in changed)
        raise TextError(f"{name}: the text of {some} is not the one on record; {remedy}")
    notes = (f"the text in {', '.join(changed)} is not the one on record.",) if changed else ()
    return CorpusTexts(
        {key: texts[tag] for key, tag in keys.items()},
        {key: files[tag] for key, tag in keys.items()},
        *(segments, origin.extra, notes),
    )


def _restore(origin: Origin) -> str:
    if origin.shipped is None:
        return ""
    folder = origin.shipped.parent if origin.shipped.suffix else origin.shipped
    return f"restore data/{folder.name} from the repository."


def _fetched(name: str, files: Mapping[str, str]) -> dict[str, Path | bytes]:
    """The files of a corpus by name, of which there is no local copy."""
    origin = ORIGINS[name]
    if name == "google/wmt24pp":
        return _from_hub(origin, sorted(set(files.values())))
    if origin.shipped is None:
        return _download(name, [*files.values(), origin.extra])
    data = _local(origin.shipped, {*files.values(), origin.extra})
    if missing := [tag for tag, file in files.items() if file not in data]:
        some = ", ".join(missing)
        raise TextError(f"{name}: there is no text in {some}; {_restore(origin)}")
    return data


# --- formats --------------------------------------------------------------------------------------

_Read = tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]


def _of_jsonl(lines: Mapping[str, list[str]], files: Mapping[str, str]) -> _Read:
    """Texts and segments of WMT24++ from its JSONL, without the rows marked ``is_bad_source``.

    ``target`` is the post-edited translation, which the authors recommend as the default.
    """
    texts: dict[str, tuple[str, ...]] = {}
    reference: tuple[str, list] | None = None
    for tag, file in files.items():
        segments, translations = [], []
        for number, line in enumerate(lines[tag], 1):
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
                raise TextError(
                    f"{tag}: {file}, line {number}: no row of WMT24++ ({error!r})."
                ) from None
        reference = reference or (file, segments)
        if segments != reference[1]:
            raise TextError(f"{tag}: {file} and {reference[0]} do not hold the same segments.")
        texts[tag] = filled(translations, f"{tag}: {file}")
    ids, domains, _ = zip(*reference[1], strict=True)
    return texts, {"id": ids, "domain": domains}


def _of_verses(lines: Mapping[str, list[str]], files: Mapping[str, str]) -> _Read:
    """Texts and segments of the verses that all these translations have; the domain is the book."""
    verses: dict[str, dict[str, str]] = {}
    for tag, rows in lines.items():
        where = f"{tag}: {files[tag]}"
        verses[tag] = {
            key: verse
            for key, verse in by_id(with_ids(rows, where), where).items()
            if _VERSE.match(verse)
        }
    ids, texts = in_common(verses)
    return texts, {"id": ids, "domain": tuple(key.split(".")[0] for key in ids)}


def _segments(name: str, data: Mapping[str, bytes]) -> dict[str, tuple[str, ...]]:
    """Ids and domains from what is said about the lines, if it is there."""
    extra = ORIGINS[name].extra
    if extra not in data:
        return {}
    rows = [line.split("\t") for line in decode(data[extra], extra)]
    if name == "ntrex":  # the document of every line, no header
        ids = (f"{document}:{line}" for line, (document, *_) in enumerate(rows, 1))
        return {"id": tuple(ids), "domain": ("news",) * len(rows)}
    # FLORES-200 has more columns, in ragged rows; "" where a row is short.
    header, *rows = rows or [[]]
    columns = [(name, header.index(name)) for name in ("id", "domain") if name in header]
    return {
        name: tuple(row[place] if place < len(row) else "" for row in rows)
        for name, place in columns
    }


# --- files ----------------------------------------------------------------------------------------


def _local(path: Path, names: set[str]) -> dict[str, Path | bytes]:
    """The files of these names in a folder, at any depth, or in an archive."""
    if path.is_dir():
        return {file.name: file for file in sorted(path.rglob("*")) if file.name in names}
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


def _no_download(name: str, error: Exception) -> DownloadError:
    return DownloadError(
        f"{name} could not be downloaded ({type(error).__name__}); connect to the network, or "
        f'load("{name}", path=...) with a local copy.'
    )


def _from_hub(origin: Origin, files: Iterable[str]) -> dict[str, Path | bytes]:
    """Files of google/wmt24pp at a fixed revision, in the hub's own cache. No code is run."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    name, options = "google/wmt24pp", {"repo_type": "dataset", "revision": origin.pin}
    try:
        return {f: Path(hf_hub_download(name, f, **options)) for f in progress.bar(files, name)}
    except (OSError, EntryNotFoundError) as error:
        raise _no_download(name, error) from error


def _download(name: str, files: list[str]) -> dict[str, Path | bytes]:
    """NTREX file by file, FLORES-200 as its archive; checked by SHA-256, kept in the cache."""
    import pooch

    origin, folder = ORIGINS[name], paths.CACHE / "downloads"

    def get(url: str, sha256: str, file: str) -> Path:
        try:
            bar = progress.watched()
            return Path(pooch.retrieve(url, sha256, fname=file, path=folder, progressbar=bar))
        except OSError as error:
            raise _no_download(name, error) from error
        except ValueError as error:  # pooch's word for another hash
            raise TextError(
                f"{name}: {url} is not the file on record ({str(error).split(chr(10))[0]}); "
                f'load("{name}", path=...) with a local copy.'
            ) from error

    if name != "ntrex":
        return _local(get(origin.url, origin.pin, "flores200_dataset.tar.gz"), set(files))
    known = {file: sha256 for file, sha256, _ in recorded(name).values()}
    data: dict[str, Path | bytes] = {}
    for file in files:
        place = file if file == origin.extra else f"NTREX-128/{file}"
        data[file] = get(f"{origin.url}{origin.pin}/{place}", known[file], f"ntrex-{file}")
    return data
