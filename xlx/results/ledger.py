"""Results and what made them, one row per entry: the ledger that is shipped, and the cache.

A result is asked for by an `Ask`; what it was made by stands beside the value and names nothing, so
what one machine computed another one finds. The value is a table, or named arrays: a column holds
an array flat, another one its shape where it has more than one dimension. The ledger is one parquet
file per lens and kind; the cache has one file per entry in the same form. A file that is torn,
edited or of another format is reported in one sentence, and its entries count as missing.
"""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from xlx.results import provenance, store

#: Of the files; raised when their layout changes, which makes all earlier ones foreign.
FORMAT = 1
_HEAD = ("kind", "identity", "version", "ask", "notebooks", "form")
_VALUE, _SHAPE = "value.", "shape."
_TYPES = {"threads": pa.int32(), "seconds": pa.float64()}  # of provenance; the others are text
Value = pd.DataFrame | dict[str, np.ndarray]


@dataclass(frozen=True)
class Ask:
    """What is wanted: the kind of result, what decides its value, the version of its method.

    ``about``: content hashes of weights and text, options, seed; another ask where a part is itself
    computed. The version is raised by hand when a change means other numbers.
    """

    kind: str
    about: Mapping[str, Any]
    version: int = 1

    @cached_property
    def text(self) -> str:
        """``about`` as JSON, written in exactly one way; an ask inside by its own text.

        TypeError or ValueError for what JSON cannot say.
        """
        options = {"sort_keys": True, "ensure_ascii": False, "allow_nan": False}
        return json.dumps(self.about, default=_said, **options)

    @cached_property
    def identity(self) -> str:
        """SHA-256 of kind, version and text."""
        whole = f"{self.kind}\n{self.version}\n{self.text}"
        return hashlib.sha256(whole.encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ask) and self.identity == other.identity


def _said(value: Any) -> Any:
    """What JSON has no word for, by what it has."""
    if isinstance(value, Ask):
        return {"kind": value.kind, "version": value.version, "about": value.about}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be part of an ask: use text, numbers, lists, dictionaries")


@dataclass(frozen=True)
class Entry:
    """A result with its ask (kind, identity, version, text) and its provenance."""

    kind: str
    identity: str
    version: int
    text: str
    value: Value
    made: Mapping[str, Any]  # the columns `provenance.PROVENANCE`
    notebooks: tuple[str, ...] = ()  # that ask for it, none in the cache


def to_arrow(entries: Iterable[Entry]) -> pa.Table:
    """Entries of one kind as rows."""
    return pa.concat_tables(map(_row, entries), promote_options="permissive")


def _row(entry: Entry) -> pa.Table:
    frame = isinstance(entry.value, pd.DataFrame)
    columns: dict[str, Any] = {
        "kind": [entry.kind], "identity": [entry.identity],
        "version": pa.array([entry.version], pa.int32()), "ask": [entry.text],
        "notebooks": pa.array([list(entry.notebooks)], pa.list_(pa.string())),
        "form": ["table" if frame else "arrays"],
    }  # fmt: skip
    for name in provenance.PROVENANCE:
        columns[name] = pa.array([entry.made.get(name)], _TYPES.get(name, pa.string()))
    for name, column in entry.value.items():
        array = column.to_numpy() if frame else np.asarray(column)
        flat = pa.array(array.reshape(-1), from_pandas=array.dtype == object)
        columns[_VALUE + name] = _cell(flat)
        if array.ndim != 1:
            columns[_SHAPE + name] = pa.array([list(array.shape)], pa.list_(pa.int64()))
    return pa.table(columns)


def _cell(flat: pa.Array) -> pa.Array:
    """Numbers as the cell of a row; with 64 bits to count them where these are needed."""
    if len(flat) < 2**31:
        return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)
    return pa.LargeListArray.from_arrays(pa.array([0, len(flat)], pa.int64()), flat)


def from_arrow(table: pa.Table, row: int) -> Entry:
    """The entry in a row."""
    head = {name: table[name][row].as_py() for name in (*_HEAD, *provenance.PROVENANCE)}
    values: dict[str, np.ndarray] = {}
    for column in table.column_names:
        if column.startswith(_VALUE) and (cell := table[column][row]).is_valid:
            name = column.removeprefix(_VALUE)
            array = cell.values.to_numpy(zero_copy_only=False)
            shape = _SHAPE + name
            if shape in table.column_names and table[shape][row].is_valid:
                array = array.reshape(table[shape][row].as_py())
            values[name] = np.array(array)  # a copy: what arrow owns cannot be written to
    value: Value = pd.DataFrame(values) if head["form"] == "table" else values
    return Entry(
        head["kind"], head["identity"], head["version"], head["ask"], value,
        {name: head[name] for name in provenance.PROVENANCE}, tuple(head["notebooks"] or ()),
    )  # fmt: skip


def write_entries(path: Path, table: pa.Table) -> None:
    """A sealed file of entries, whole or not at all. Raises `store.StoreError`.

    Parquet; a ``.arrow`` file, of the cache, is the same table as a stream, ten times as fast.
    """
    about = {b"xlx_ledger": str(FORMAT).encode(), b"xlx_seal": store.EMPTY_SEAL}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **about})
    buffer, quick = pa.BufferOutputStream(), path.suffix == ".arrow"
    if quick:
        options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False, allow_64bit=True)
        with pa.ipc.new_stream(buffer, table.schema, options=options) as stream:
            stream.write_table(table)
    else:
        pq.write_table(table, buffer, compression="zstd", compression_level=12)
    store.write_whole(path, store.sealed(bytearray(buffer.getvalue()), first=quick))


def read_entries(path: Path) -> pa.Table | None:
    """The entries of a file, or None if there is none that can be trusted (which is said)."""
    quick = path.suffix == ".arrow"
    try:
        content = path.read_bytes()
        store.check_seal(content, first=quick)
        if quick:
            options = pa.ipc.IpcReadOptions(use_threads=False)
            table = pa.ipc.open_stream(content, options=options).read_all()
        else:
            # No Python file and no reading ahead: arrow's threads may abort a process that ends.
            source = pa.BufferReader(content)
            table = pq.ParquetFile(source, pre_buffer=False).read(use_threads=False)
        written_as = (table.schema.metadata or {}).get(b"xlx_ledger", b"none").decode()
        if written_as != str(FORMAT):
            raise store.Damaged(f"it has the format {written_as}, and this version reads {FORMAT}")
        return table
    except FileNotFoundError:
        return None
    except (store.Damaged, pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        said = f"{path} is not used: {reason}; its results count as missing"
        warnings.warn(said, store.StoreWarning, stacklevel=2)
        return None


class Ledger:
    """The committed results: a folder of ``<lens>/<kind>.parquet``, read when first asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._kinds: dict[str, dict[str, tuple[pa.Table, int]]] = {}

    def files(self) -> list[Path]:
        """All files of the ledger."""
        return sorted(self.root.glob("*/*.parquet"))

    def get(self, ask: Ask) -> Entry | None:
        """The entry of an ask, or None."""
        if ask.kind not in self._kinds:
            tables = map(read_entries, sorted(self.root.glob(f"*/{ask.kind}.parquet")))
            self._kinds[ask.kind] = {
                identity: (table, row)
                for table in tables
                if table is not None
                for row, identity in enumerate(table["identity"].to_pylist())
            }
        place = self._kinds[ask.kind].get(ask.identity)
        return None if place is None else from_arrow(*place)

    def overview(self) -> pd.DataFrame:
        """All entries without their values: the head's columns, provenance, ``lens``."""
        names = [*_HEAD, *provenance.PROVENANCE]
        parts = [
            table.select(names).to_pandas(use_threads=False).assign(lens=file.parent.name)
            for file in self.files()
            if (table := read_entries(file)) is not None
        ]
        empty = pd.DataFrame(columns=[*names, "lens"])
        return pd.concat(parts, ignore_index=True) if parts else empty


class Cache:
    """What this machine has computed: one file per entry, under ``<root>/<kind>/``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, ask: Ask, suffix: str = ".arrow") -> Path:
        """Where an entry lies, whether or not it is there."""
        return self.root / ask.kind / ask.identity[:2] / f"{ask.identity[2:]}{suffix}"

    def get(self, ask: Ask) -> Entry | None:
        """The entry of an ask, or None."""
        table = read_entries(self.path(ask))
        entry = None if table is None else from_arrow(table, 0)
        return entry if entry is not None and entry.identity == ask.identity else None

    def put(self, ask: Ask, value: Value, made: Mapping[str, Any] | None = None) -> Entry:
        """Keep a value; the entry as it will be read back. Raises `store.StoreError`."""
        entry = Entry(ask.kind, ask.identity, ask.version, ask.text, value, made or {})
        table = to_arrow([entry])
        write_entries(self.path(ask), table)
        return from_arrow(table, 0)
