"""What the scripts ``data/*/make.py`` share: packing, tables, and what no test text may be."""

import hashlib
import io
import lzma
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from xlx.text import pretraining_text
from xlx.text.files import letters


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
