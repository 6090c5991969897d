"""Files under faults: nothing is half-written, and what was altered is seen."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from xlx.results import store
from xlx.results.store import EMPTY_SEAL, Damaged, StoreError, write_whole, written_whole

# --- seals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
def test_every_flipped_or_lost_byte_is_seen(first: bool) -> None:
    mark = EMPTY_SEAL[: -store._DIGITS]
    whole = bytes(store.sealed(bytearray(b"head" + EMPTY_SEAL + b"tail"), first))
    for content in (whole, whole + mark if first else mark + whole):  # a second mark is content
        store.check_seal(store.sealed(bytearray(content), first), first)
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"x"]
    damaged += [whole[:i] + bytes([whole[i] ^ 16]) + whole[i + 1 :] for i in range(len(whole))]
    for content in damaged:
        with pytest.raises(Damaged, match="torn"):
            store.check_seal(content, first)


def test_a_seal_behind_the_content_is_one_too(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"content")
    store.append_seal(file)
    store.check_appended(file)
    whole = file.read_bytes()
    for content in (b"", whole[:20], whole[:-1], whole + b"x", b"C" + whole[1:], whole[:-1] + b"x"):
        file.write_bytes(content)
        with pytest.raises(Damaged, match="torn"):
            store.check_appended(file)


# --- whole or not at all --------------------------------------------------------------------------


def fails(error: BaseException, room: int | None = None) -> Callable:
    """Stands for a system call; of `Path.write_bytes`, on a disk with some room."""

    def call(path: Path, content: bytes = b"", *_: object) -> None:
        if room is not None:
            with path.open("wb") as file:
                file.write(content[:room])
        raise error

    return call


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    ("owner", "name", "call", "kind"),
    [
        (Path, "write_bytes", fails(FULL, 100), StoreError),
        (os, "replace", fails(FULL), StoreError),
        (os, "replace", fails(KeyboardInterrupt()), KeyboardInterrupt),
    ],
)
def test_a_failing_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool, owner, name, call, kind
) -> None:
    path = tmp_path / "folder" / "file"
    if before:
        write_whole(path, b"before")
    monkeypatch.setattr(owner, name, call)
    with pytest.raises(kind) as error:
        write_whole(path, bytes(2**20))
    monkeypatch.undo()
    if kind is StoreError:
        assert "1.0 MB could not be written" in str(error.value)
        assert "nothing half-written was left" in str(error.value)
        assert "\n" not in str(error.value)
        assert error.value.errno == errno.ENOSPC
    assert [x.read_bytes() for x in path.parent.iterdir()] == [b"before"] * before


def test_a_folder_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(text: str, error: BaseException | None = None) -> None:
        with written_whole(tmp_path / "folder") as beside:
            beside.mkdir()
            (beside / "file").write_text(text)
            if error:
                raise error

    with pytest.raises(KeyboardInterrupt):
        written("half", KeyboardInterrupt())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails(FULL))
        with pytest.raises(OSError, match="No space"):
            written("not on the disk")
    assert list(tmp_path.iterdir()) == []
    written("first")
    written("second")  # of two processes the faster one's stays
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "file").read_text() == "first"


def test_a_folder_in_the_place_of_a_file_is_laid_aside(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "own").write_text("kept")
    write_whole(tmp_path / "file", b"new")
    aside, file = sorted(tmp_path.iterdir(), key=Path.is_file)
    assert (file.read_bytes(), (aside / "own").read_text()) == (b"new", "kept")
