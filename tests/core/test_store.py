"""The store under faults: what is damaged is never used, and nothing is half-written."""

import errno
import os
import socket
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

from xlx.core import store as store_module
from xlx.core.store import Store, StoreError, StoreWarning, written_whole

KEY = {
    "model": "abc",
    "layers": 3,
    "rate": 0.5,
    "cut": None,
    "flags": [True, "x"],
    "more": {"é": 1},
}


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "states": rng.standard_normal((3, 5, 4)).astype(np.float32),
        "counts": np.arange(6, dtype=np.int64).reshape(2, 3).T,  # not in C order
        "scalar": np.array(7),
        "none": np.empty((0, 4), dtype=np.float32),
        "marks": np.array([True, False]),
    }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


@pytest.fixture
def saved(store: Store):
    """A stored value: how to read it, where it lies, whether what was read is right."""
    path = store.save_arrays("kind", KEY, arrays())
    return lambda key=KEY: store.load_arrays("kind", key), path, same_arrays


def same_arrays(found: dict[str, np.ndarray]) -> bool:
    expected = arrays()
    return found.keys() == expected.keys() and all(
        found[name].dtype == expected[name].dtype
        and found[name].shape == expected[name].shape
        and (found[name] == expected[name]).all()
        for name in expected
    )


def files(store: Store) -> list[Path]:
    return sorted(path for path in store.root.rglob("*") if path.is_file())


def test_value_comes_back_as_it_was(saved) -> None:
    load, _, same = saved
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(load())


def test_what_is_not_there_is_missing_without_a_word(store: Store) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.load_arrays("kind", KEY) is None
    assert not store.root.exists()


def test_arrays_read_can_be_written_to(store: Store) -> None:
    store.save_arrays("kind", KEY, arrays())
    found = store.load_arrays("kind", KEY)
    found["states"][:, 0] = 1
    assert (found["states"][:, 0] == 1).all()


@pytest.mark.parametrize(
    "other",
    [
        KEY | {"model": "abd"},
        KEY | {"layers": "3"},
        KEY | {"layers": 3.5},
        KEY | {"flags": ["x", True]},
        KEY | {"new": None},
        {name: value for name, value in KEY.items() if name != "cut"},
    ],
)
def test_any_difference_in_the_key_is_another_value(saved, other) -> None:
    load, _, _ = saved
    assert load(other) is None


def test_order_and_number_type_of_the_key_do_not_matter(saved) -> None:
    load, _, same = saved
    shuffled = dict(reversed(KEY.items())) | {"layers": np.int64(3), "flags": (True, "x")}
    assert same(load(shuffled))


def test_kinds_are_apart(store: Store) -> None:
    store.save_arrays("kind", KEY, arrays())
    assert store.load_arrays("other", KEY) is None
    with pytest.raises(ValueError, match=r"'\.\./x' is no plain name"):
        store.path("../x", KEY)


@pytest.mark.parametrize("bad", [float("nan"), Path("a"), object(), {1: 2}, b"x", np.arange(2)])
def test_key_that_cannot_be_said_exactly_is_refused(store: Store, bad) -> None:
    with pytest.raises(TypeError, match=r"key\['a'\]\[0\] is .* cannot hold"):
        store.path("kind", {"a": [bad]})


def test_objects_are_refused(store: Store) -> None:
    with pytest.raises(TypeError, match="'a' holds Python objects"):
        store.save_arrays("kind", KEY, {"a": np.array([object()])})


def assert_not_used(load, message: str) -> None:
    with pytest.warns(StoreWarning, match=message) as record:
        assert load() is None
    assert len(record) == 1
    assert "\n" not in str(record[0].message)


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 9, 100, 0.25, 0.5, 0.9, -64, -8, -1])
def test_torn_file_is_not_used(saved, keep) -> None:
    load, path, _ = saved
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    assert_not_used(load, "is not used: .*torn")


def test_every_flipped_byte_is_seen(saved) -> None:
    load, path, same = saved
    content = path.read_bytes()
    for position in range(0, len(content), 11):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            assert load() is None, position
        assert [warning.category for warning in record] == [StoreWarning]
    path.write_bytes(content)
    assert same(load())


def test_longer_file_is_not_used(saved) -> None:
    load, path, _ = saved
    path.write_bytes(path.read_bytes() + b"x")
    assert_not_used(load, "do not match its seal")


@pytest.mark.parametrize("content", [b"hello", bytes(5000), b"PAR1" + bytes(100) + b"PAR1"])
def test_foreign_file_is_not_used(saved, content: bytes) -> None:
    load, path, _ = saved
    path.write_bytes(content)
    assert_not_used(load, "was not written by this store")


def test_file_of_another_key_is_not_used(store: Store) -> None:
    other = KEY | {"model": "abd"}
    path = store.path("kind", other)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(store.save_arrays("kind", KEY, arrays()), path)
    assert_not_used(lambda: store.load_arrays("kind", other), "belongs to another key")


def test_folder_in_place_of_a_file_is_not_used(store: Store) -> None:
    store.path("kind", KEY).mkdir(parents=True)
    assert_not_used(lambda: store.load_arrays("kind", KEY), "cannot be read")


class FullDisk:
    """A file on a disk that takes some bytes and no more."""

    def __init__(self, file, room: int) -> None:
        self.file, self.room = file, room

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.file.close()

    def write(self, content) -> int:
        self.file.write(bytes(content[: self.room]))
        if len(content) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(content)

    def flush(self) -> None:
        self.file.flush()

    def fileno(self) -> int:
        return self.file.fileno()


@pytest.mark.parametrize("before", [False, True])
def test_full_disk_leaves_nothing_half_written(store: Store, monkeypatch, before: bool) -> None:
    if before:
        store.save_arrays("kind", KEY, arrays())
    existing = files(store)
    real = Path.open

    def full(self, mode="r", *args, **kwargs):
        file = real(self, mode, *args, **kwargs)
        return FullDisk(file, 100) if "w" in mode else file

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StoreError, match=r"is full: free .* MB or more") as error:
        store.save_arrays("kind", KEY, {"a": np.zeros(100)})
    assert error.value.errno == errno.ENOSPC
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    assert files(store) == existing
    if before:
        assert same_arrays(store.load_arrays("kind", KEY))


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failure_at_the_end_leaves_nothing(store: Store, monkeypatch, step: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StoreError, match="nothing half-written was left"):
        store.save_arrays("kind", KEY, arrays())
    monkeypatch.undo()
    assert files(store) == []


def test_interrupt_leaves_nothing(store: Store, monkeypatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        store.save_arrays("kind", KEY, arrays())
    monkeypatch.undo()
    assert files(store) == []


def test_root_that_is_a_file_gets_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="could not be written to"):
        Store(tmp_path / "file").save_arrays("kind", KEY, arrays())


def test_killed_process_leaves_nothing_that_is_read_and_is_swept_up(store: Store) -> None:
    code = f"""
        import os, signal
        import numpy as np
        from xlx.core.store import Store
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)  # half-way through
        Store({str(store.root)!r}).save_arrays("kind", {{"a": 1}}, {{"x": np.ones(1000)}})
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=Path(store_module.__file__).parent.parent,
        check=False,
    )
    assert process.returncode < 0
    (leftover,) = files(store)
    assert leftover.name.endswith(".tmp")
    assert store.load_arrays("kind", {"a": 1}) is None
    path = store.save_arrays("kind", {"a": 1}, {"x": np.ones(3)})
    assert files(store) == [path]


def test_file_being_written_by_a_living_process_is_let_be(store: Store) -> None:
    path = store.path("kind", KEY)
    path.parent.mkdir(parents=True)
    host = store_module.socket.gethostname()
    living = path.with_name(f".{path.name}.{host}.{os.getpid()}.0.tmp")
    living.write_bytes(b"")
    store.save_arrays("kind", KEY, arrays())
    assert files(store) == sorted([living, path])


def test_two_processes_may_write_the_same_key(store: Store) -> None:
    code = f"""
        import numpy as np
        from xlx.core.store import Store
        store = Store({str(store.root)!r})
        for i in range(30):
            store.save_arrays("kind", {{"a": 1}}, {{"x": np.full(5000, 3.0)}})
            assert (store.load_arrays("kind", {{"a": 1}})["x"] == 3).all()
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    folder = Path(store_module.__file__).parent.parent
    processes = [subprocess.Popen(command, cwd=folder) for _ in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert len(files(store)) == 1


# --- files and folders that others write ----------------------------------------------------------


def test_a_folder_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    def stopped() -> None:
        with written_whole(tmp_path / "folder") as beside:
            beside.mkdir()
            (beside / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []
    for text in ("first", "second"):  # of two processes the faster one's stays
        with written_whole(tmp_path / "folder") as beside:
            beside.mkdir()
            (beside / "file").write_text(text)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "file").read_text() == "first"


def test_what_killed_processes_left_is_swept_folders_too(tmp_path: Path) -> None:
    host = socket.gethostname()
    dead, living = (tmp_path / f".folder.{host}.{pid}.0.tmp" for pid in (999_999_999, os.getppid()))
    for left in (dead, living):
        left.mkdir()
        (left / "file").touch()
    with written_whole(tmp_path / "folder") as beside:
        beside.mkdir()
    assert not dead.exists()
    assert living.exists()
