"""What one machine keeps for itself, on disk, found by what made it: vectors, weights, words.

A value is asked for by its *kind* ("embeddings") and its *key*, a dictionary that names everything
the value depends on: weights, text, options, and, since none of it travels, the code that computes
it (`provenance.code_hash`, over all that this code calls) and the versions of the libraries. The
file name is the SHA-256 of both, so a key that differs in anything is another file, and nothing is
ever overwritten by something else. Results, which do travel, are kept by `xlx.core.ledger`.

Three rules make a file trustworthy:

1. It appears whole or not at all: written beside its place, flushed to the disk, then renamed.
2. It proves itself: it holds its own key and a seal, the SHA-256 of every other byte of the file.
3. It is only data: safetensors, never a pickle.

What another library writes (the folder of a model, a state of torch) is written by `written_whole`,
and sealed behind its content (`append_seal`) or by the SHA-256 of its files.

A file that fails a check is reported in one line and counts as missing, so its value is computed
again. Two processes that write the same key at once do no harm: each renames a whole file.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import shutil
import socket
import uuid
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from xlx.core import paths

_FORMAT = 1  # of the files; a change makes all earlier ones foreign
_SEAL = b"xlx-seal:"
_DIGITS = 64  # hexadecimal digits of a SHA-256
#: Goes into a file's metadata before it is sealed.
EMPTY_SEAL = _SEAL + b"0" * _DIGITS
_KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class StoreWarning(UserWarning):
    """A file of the store is not what it should be; its value is computed again."""


class StoreError(OSError):
    """A value could not be written, say because the disk is full; no half of it is left behind."""


class Damaged(Exception):
    """Why a file is not trusted; becomes a warning."""


class Store:
    """A folder of results, addressed by content.

    Parameters
    ----------
    root : Path, optional
        The folder; made when first written to. Default: ``xlx.core.paths.CACHE``.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(paths.CACHE if root is None else root)

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def path(self, kind: str, key: Mapping[str, Any], suffix: str = ".safetensors") -> Path:
        """Where the value of `key` lies, whether or not it is there.

        Raises
        ------
        ValueError
            If `kind` is no plain name.
        TypeError
            If `key` holds something JSON cannot say exactly.
        """
        if not _KIND.fullmatch(kind):
            raise ValueError(f"the kind {kind!r} is no plain name: use letters, digits, '-', '_'")
        digest = hashlib.sha256(_identity(kind, key).encode()).hexdigest()
        return self.root / kind / digest[:2] / (digest[2:] + suffix)

    def load_arrays(self, kind: str, key: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
        """The arrays stored under `key`, or None if there are none that can be trusted."""
        path = self.path(kind, key)
        try:
            content = path.read_bytes()
            check_seal(content, first=True)
            arrays, about = _unpacked(content)
            expected = _metadata(kind, key)
            if any(about.get(name) != expected[name] for name in ("xlx_kind", "xlx_key")):
                raise Damaged("it belongs to another key")
        except FileNotFoundError:
            return None
        except (OSError, Damaged) as error:
            reason = f"is not used: {error}"
            if isinstance(error, OSError):
                reason = f"cannot be read ({error.strerror})"
            warnings.warn(f"{path} {reason}; computing its value again", StoreWarning, stacklevel=2)
            return None
        return arrays

    def save_arrays(
        self, kind: str, key: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Path:
        """Store named arrays under `key`.

        Raises
        ------
        StoreError
            If the file cannot be written (disk full, no permission); none is left behind.
        """
        metadata = _metadata(kind, key)
        # NumPy shares memory between views; safetensors wants each array dense and in C order.
        dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        for name, array in dense.items():
            if array.dtype == object:
                raise TypeError(f"array {name!r} holds Python objects: only numbers can be stored")
        content = bytearray(safetensors.numpy.save(dense, metadata=metadata))
        path = self.path(kind, key, ".safetensors")
        write_whole(path, sealed(content, first=True))
        return path


def _identity(kind: str, key: Mapping[str, Any]) -> str:
    whole = {"format": _FORMAT, "kind": kind, "key": _plain(key, "key")}
    return plain_json(whole)


def plain_json(value: Any) -> str:
    """A value as JSON that is written in exactly one way; TypeError for what JSON cannot say."""
    return json.dumps(_plain(value, "key"), sort_keys=True, ensure_ascii=False, allow_nan=False)


def _plain(value: Any, where: str) -> Any:
    """`value` in types that JSON writes in exactly one way."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(item, f"{where}[{name!r}]") for name, item in value.items()}
    raise TypeError(
        f"{where} is {value!r}, which a stored key cannot hold: "
        "use text, whole or finite numbers, booleans, None, lists and dictionaries of them"
    )


def _metadata(kind: str, key: Mapping[str, Any]) -> dict[str, str]:
    identity = plain_json(key)
    return {"xlx_kind": kind, "xlx_key": identity, "xlx_seal": EMPTY_SEAL.decode()}


def _find_seal(content: bytes | bytearray, first: bool) -> int:
    """Where the seal's digits begin: after the first mark (safetensors) or the last (parquet)."""
    start = content.find(_SEAL) if first else content.rfind(_SEAL)
    if start < 0 or len(content) < start + len(_SEAL) + _DIGITS:
        raise Damaged("it is torn or was not written by this store")
    return start + len(_SEAL)


def _digest(content: bytes | bytearray, digits: int) -> bytes:
    """SHA-256 of all bytes but the seal's own digits."""
    view = memoryview(content)
    digest = hashlib.sha256(view[:digits])
    digest.update(view[digits + _DIGITS :])
    return digest.hexdigest().encode()


def sealed(content: bytearray, first: bool) -> bytearray:
    digits = _find_seal(content, first)
    content[digits : digits + _DIGITS] = _digest(content, digits)
    return content


def check_seal(content: bytes, first: bool) -> None:
    digits = _find_seal(content, first)
    if content[digits : digits + _DIGITS] != _digest(content, digits):
        raise Damaged("its bytes do not match its seal (torn or altered)")


def append_seal(path: Path) -> None:
    """Close a file with its seal, for formats that leave alone what is behind them, such as zip."""
    digest = digest_of(path)
    with path.open("ab") as file:
        file.write(_SEAL + digest.encode())


def check_appended(path: Path) -> None:
    """Raise Damaged where a file is not as `append_seal` has left it."""
    length = len(_SEAL) + _DIGITS
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) < length:
            raise Damaged("it is torn")
        file.seek(-length, os.SEEK_END)
        seal = file.read()
    if not seal.startswith(_SEAL):
        raise Damaged("it is torn or was not written by this store")
    if seal != _SEAL + digest_of(path, but=length).encode():
        raise Damaged("its bytes do not match its seal (torn or altered)")


def digest_of(path: Path, but: int = 0) -> str:
    """SHA-256 of a file, without the last so many bytes, read piece by piece."""
    digest, left = hashlib.sha256(), path.stat().st_size - but
    with path.open("rb") as file:
        while left > 0 and (piece := file.read(min(left, 2**20))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()


def _unpacked(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    try:
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length]).get("__metadata__", {})
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise Damaged(f"it is no safetensors file ({error})") from None
    return arrays, metadata


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name beside `path` to write a file or a folder to: it becomes `path` when all is written.

    Or it goes: nothing half-written stays. Where another process was faster with a folder, its own
    is kept.
    """
    beside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.0.tmp")
    sweep(path)
    try:
        yield beside
        for file in [beside, *beside.rglob("*")]:
            if file.is_file():
                with file.open("rb") as written:
                    os.fsync(written.fileno())
        try:
            os.replace(beside, path)
        except OSError:
            if not (beside.is_dir() and path.is_dir()):
                raise
            shutil.rmtree(beside)
    except BaseException:
        remove(beside)
        raise
    _sync(path.parent)


def write_whole(path: Path, content: bytes | bytearray, *, durable: bool = True) -> None:
    """Put `content` at `path`, whole or not at all; if `durable`, a power cut does not undo it."""
    mark = f"{socket.gethostname()}.{os.getpid()}"
    beside = path.parent / f".{path.name}.{mark}.{uuid.uuid4().hex}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if durable:
            sweep(path)
        try:
            with beside.open("wb") as file:
                file.write(content)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            # Also on an interrupt: nothing half-written may stay.
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        if durable:
            _sync(path.parent)
    except OSError as error:
        size = f"{len(content) / 2**20:.1f} MB"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = f"the disk of {path.parent} is full: free {size} or more"
        else:
            reason = f"{size} could not be written to {path.parent} ({error.strerror or error})"
        raise StoreError(
            error.errno or errno.EIO,
            f"{reason}, or set XLX_CACHE to a folder elsewhere; nothing half-written was left",
        ) from None


def _sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut, where the system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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


def alive(pid: int) -> bool:
    """Whether there is a process of this number on this machine."""
    if os.name != "posix":  # elsewhere signal 0 is not a mere question
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # not ours, but there
        return True
    return True
