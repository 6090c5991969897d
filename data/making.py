"""What the scripts ``data/*/make.py`` share: packing, tables, and what no test text may be."""

import argparse
import hashlib
import io
import lzma
import re
import tarfile
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from family import pretraining_text
from xlx.text.files import letters

#: Train parts that are not used: of UD 1, while dev and test are of UD 2.
NOT_USED = {"pt_bosque-ud-train.OLD201611.conllu"}

#: Where README and LICENSE.txt of a treebank disagree: the stricter, and what is said.
LICENCES = {
    "UD_Estonian-EWT": "CC BY-NC-SA 4.0 (README; LICENSE.txt: CC BY-SA 4.0)",
    "UD_Turkish-IMST": "CC BY-NC-SA 3.0 (LICENSE.txt; README: 4.0)",
}
UD_URL = "https://github.com/UniversalDependencies/{}"


def folder_named(about: str, holds: str) -> Path:
    """The one argument of a script: the folder of the originals; ``about``: its docstring."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("folder", type=Path, help=f"with {holds}")
    return parser.parse_args().folder


def trained_letters() -> frozenset[str]:
    """Letters and digits of every line of the miniature models' pretraining text."""
    return frozenset(
        letters(line)
        for source in pretraining_text.PRETRAINING_SOURCES
        for by_id in pretraining_text.read_source(source).values()
        for line in by_id.values()
    ) - {""}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pack(data: bytes) -> bytes:
    """The xz of some bytes, the same in every run."""
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)


def write_packed(folder: Path, name: str, text: str) -> tuple[str, str]:
    """Write an xz file below a folder; its name and SHA-256."""
    data = pack(text.encode())
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return name, sha256(data)


def write_archive(file: Path, members: Mapping[str, str]) -> None:
    """A tar.xz with nothing in it but names and bytes, so that it comes out the same each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(members.items()):
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    file.write_bytes(pack(buffer.getvalue()))


def write_table(file: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table parted by tabs."""
    lines = ["\t".join(map(str, row)) + "\n" for row in [columns, *rows]]
    file.write_text("".join(lines), encoding="utf-8", newline="\n")


def linked(keys: Sequence[Iterable[Hashable]]) -> list[list[int]]:
    """Positions that share a key, directly or by others, each group ascending."""
    number = {}
    pairs = [
        (i, number.setdefault(key, len(number)))
        for i, its_keys in enumerate(keys)
        for key in its_keys
    ]
    rows, key = np.array(pairs, dtype=int).reshape(-1, 2).T
    n, size = len(keys), len(keys) + len(number)
    graph = sparse.coo_array((np.ones(len(rows)), (rows, n + key)), shape=(size, size))
    groups = {}
    for i, group in enumerate(connected_components(graph, directed=False)[1][:n].tolist()):
        groups.setdefault(group, []).append(i)
    return list(groups.values())


# --- treebanks ---


def treebank_files(folder: Path) -> dict[str, Path]:
    return {
        re.search(r"-ud-(\w+)", file.name)[1]: file
        for file in sorted(folder.iterdir())
        if file.suffix in (".conllu", ".iob2") and file.name not in NOT_USED
    }


def version(files: dict[str, Path]) -> str:
    """UD 1 or 2, by the name of the object relation, and which files are of an earlier release."""
    major = {1 if "\tdobj\t" in file.read_text("utf-8") else 2 for file in files.values()}
    if len(major) > 1:
        raise SystemExit(f"{files}: parts of UD 1 and UD 2")
    old = [
        f"{part} OLD{name[1]}"
        for part, file in files.items()
        if (name := re.search(r"\.OLD(\d+)", file.name))
    ]
    return "; ".join([f"UD {major.pop()}", *old])


def licence(folder: Path) -> str:
    """As README and LICENSE.txt say."""
    if folder.name in LICENCES:
        return LICENCES[folder.name]
    readme = "".join(file.read_text("utf-8") for file in folder.glob("README*"))
    if match := re.search(r"^License: *(\S.*?)\s*$", readme, flags=re.MULTILINE):
        return match[1]
    return "CC BY-SA 4.0"  # all of UNER, by their LICENSE.txt; UD always has the line


def by_language(folder: Path) -> dict[str, Path]:
    """Treebank of each language, from the names of its files."""
    treebanks = {}
    for treebank in sorted(folder.iterdir()):
        file = next(iter(treebank_files(treebank).values()))
        treebanks[re.match("[a-z]+", file.name)[0]] = treebank
    return treebanks
