"""Files that are whole or not there, and that show when they were altered.

A file is written beside its place, then renamed (`written_whole`), so two processes that write it
at once do no harm. It proves itself by a seal, the SHA-256 of every other byte: in its metadata
(`sealed`), or behind its content (`append_seal`).
"""

import contextlib
import errno
import glob
import hashlib
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

_SEAL = b"xlx-seal:"
_DIGITS = 64  # hexadecimal digits of a SHA-256
#: Goes into a file's metadata before it is sealed.
EMPTY_SEAL = _SEAL + b"0" * _DIGITS


class StoreWarning(UserWarning):
    """A stored file is not what it should be; what it held counts as missing."""


class StoreError(OSError):
    """A value could not be written, say because the disk is full; no half of it is left behind."""


class Damaged(Exception):
    """Why a file is not trusted; becomes a warning."""


def free_disk(folder: Path) -> int:
    """Bytes free on the disk of a folder, which need not be there yet."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free


def _seal(content: bytes | bytearray, first: bool) -> tuple[int, bytes]:
    """Where the seal's digits begin (after the first mark or the last), and what they should be."""
    mark = content.find(_SEAL) if first else content.rfind(_SEAL)
    digits = mark + len(_SEAL)
    if mark < 0 or len(content) < digits + _DIGITS:
        raise Damaged("it is torn or was not written by this store")
    view = memoryview(content)
    digest = hashlib.sha256(view[:digits])
    digest.update(view[digits + _DIGITS :])
    return digits, digest.hexdigest().encode()


def sealed(content: bytearray, first: bool) -> bytearray:
    """A file's content with the seal in the place of `EMPTY_SEAL`, its first mark or its last."""
    digits, seal = _seal(content, first)
    content[digits : digits + _DIGITS] = seal
    return content


def check_seal(content: bytes, first: bool) -> None:
    """Raise Damaged where content is not as `sealed` has left it."""
    digits, seal = _seal(content, first)
    if content[digits : digits + _DIGITS] != seal:
        raise Damaged("its bytes do not match its seal (torn or altered)")


def append_seal(path: Path) -> None:
    """Close a file with its seal, for formats that leave alone what is behind them, such as zip."""
    digest = digest_of(path)
    with path.open("ab") as file:
        file.write(_SEAL + digest.encode())


def check_appended(path: Path) -> None:
    """Raise Damaged where a file is not as `append_seal` has left it."""
    length = len(EMPTY_SEAL)
    with path.open("rb") as file:
        file.seek(-min(length, path.stat().st_size), os.SEEK_END)
        if file.read() != _SEAL + digest_of(path, but=length).encode():
            raise Damaged("its bytes do not match its seal (torn or altered)")


def digest_of(path: Path, but: int = 0) -> str:
    """SHA-256 of a file, without the last so many bytes, read piece by piece."""
    digest, left = hashlib.sha256(), path.stat().st_size - but
    with path.open("rb") as file:
        while left > 0 and (piece := file.read(min(left, 2**20))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()


@contextlib.contextmanager
def written_whole(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A name beside `path` to write a file or a folder to: it becomes `path` when all is written.

    Or it goes. Of two processes that write a folder the faster one's stays; a folder in the place
    of a file is laid aside. If `durable`, a power cut does not undo it.
    """
    beside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.0.tmp")
    sweep(path)
    try:
        yield beside
        if durable:
            for file in [beside, *beside.rglob("*")]:
                if file.is_file():
                    with file.open("rb") as written:
                        os.fsync(written.fileno())
        try:
            os.replace(beside, path)
        except OSError:
            if not path.is_dir():
                raise
            if beside.is_dir():
                shutil.rmtree(beside)
            else:
                path.rename(path.with_name(f"{path.name}.{os.getpid()}.aside"))
                os.replace(beside, path)
    except BaseException:  # also on an interrupt
        remove(beside)
        raise
    if durable:
        with contextlib.suppress(OSError):  # not every system can
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


def write_whole(path: Path, content: bytes | bytearray) -> None:
    """Put `content` at `path`, whole or not at all. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path, durable=False) as beside:
            beside.write_bytes(content)
    except OSError as error:
        message = (
            f"{len(content) / 2**20:.1f} MB could not be written to {path.parent} ("
            f"{error.strerror or error}): make room, or choose a folder elsewhere (XLX_CACHE, "
            "--out); nothing half-written was left"
        )
        raise StoreError(error.errno or errno.EIO, message) from None


def sweep(path: Path) -> None:
    """Remove what killed processes of this machine left beside `path`."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.{socket.gethostname()}.*.tmp"):
        pid = leftover.name.split(".")[-3]
        if pid.isdigit() and not alive(int(pid)):
            remove(leftover)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


class Locked(Exception):
    """A lock that another process holds: its number, as text, or "?"."""


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Within, this process alone holds a lock, which ends with it; `Locked` where another does."""
    import fcntl  # not on every system

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise Locked(file.read().strip() or "?") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def alive(pid: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        if os.name == "posix":  # elsewhere signal 0 is not a mere question
            os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # not ours, but there
    return True
