"""Results and what made them, one row per entry: the ledger that is shipped, and the cache.

A result is asked for by an `Ask`; what it was made by stands beside the value and names nothing, so
what one machine computed another one finds. The value is a table, or named arrays: a column holds
an array flat, another one its shape where it has more than one dimension.

The ledger is parquet files (shards) of at most 10 MB, ``<lens>/<kind>/<name>.parquet``: what is
added goes into new ones, and none is written again. ``shards.tsv`` has the size and SHA-256 of
each; ``askers.tsv`` who asks for an entry by now, where its shard says otherwise; ``stamps.tsv``
code → later code that was proved to give the same. The cache has one file per entry. A file that is
torn, missing, edited or of another format is reported in one sentence, and its entries count as
missing.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy import ndarray
from pandas import DataFrame

from xlx.results import checks, provenance, store

#: Of the files; raised when their layout changes, which makes all earlier ones foreign.
FORMAT = 1
#: Files of text beside the shards.
SHARDS, ASKERS, STAMPS = "shards.tsv", "askers.tsv", "stamps.tsv"
#: Bytes, before they are packed, that are decoded together.
_GROUP = 2**23
_HEAD = ("kind", "identity", "version", "ask", "notebooks", "form")
_VALUE, _SHAPE = "value.", "shape."
_TYPES = {"threads": pa.int32(), "seconds": pa.float64()}  # of provenance; the others are text
Value = DataFrame | Mapping[str, ndarray]


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
    what = "cannot be part of an ask: use text, numbers, lists, dictionaries"
    raise TypeError(f"{checks.shown(value)} {what}")


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


class Arrays(Mapping[str, ndarray]):
    """Named arrays of a shard, each decoded when it is read, and a new one each time."""

    def __init__(self, names: Collection[str], read: Callable[[str], ndarray]) -> None:
        self._names, self._read = dict.fromkeys(names), read

    def __getitem__(self, name: str) -> ndarray:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __or__(self, more: Mapping[str, ndarray]) -> dict[str, ndarray]:
        return {**self, **more}

    def __reduce__(self) -> tuple[type, tuple[dict[str, ndarray]]]:
        """To another process go the arrays themselves."""
        return dict, (dict(self),)


def to_arrow(entries: Iterable[Entry]) -> pa.Table:
    """Entries of one kind as rows."""
    return pa.concat_tables(map(_row, entries), promote_options="permissive")


def _row(entry: Entry) -> pa.Table:
    frame = isinstance(entry.value, DataFrame)
    columns = {
        "kind": [entry.kind],
        "identity": [entry.identity],
        "version": pa.array([entry.version], pa.int32()),
        "ask": [entry.text],
        "notebooks": pa.array([list(entry.notebooks)], pa.list_(pa.string())),
        "form": ["table" if frame else "arrays"],
    }
    for name in provenance.PROVENANCE:
        columns[name] = pa.array([entry.made.get(name)], _TYPES.get(name, pa.string()))
    for name, column in entry.value.items():
        array = column.to_numpy() if frame else np.asarray(column)
        flat = pa.array(array.reshape(-1), from_pandas=array.dtype == object)
        columns[_VALUE + name] = pa.ListArray.from_arrays(
            pa.array([0, len(flat)], pa.int32()), flat
        )
        if array.ndim != 1:
            columns[_SHAPE + name] = pa.array([list(array.shape)], pa.list_(pa.int64()))
    return pa.table(columns)


def from_arrow(table: pa.Table, row: int) -> Entry:
    """The entry in a row."""
    entry = _entry(table.column_names, table.column, row)
    return replace(entry, value=dict(entry.value)) if isinstance(entry.value, Arrays) else entry


def _entry(
    names: Collection[str], column: Callable[[str], Any], row: int, full: Collection[str] = ()
) -> Entry:
    """The entry in a row of columns; those in ``full`` are known to have something in every row."""
    heads = (*_HEAD, *provenance.PROVENANCE)  # older rows lack the newest
    head = {x: column(x)[row].as_py() if x in names else None for x in heads}

    def array(name: str) -> ndarray:
        flat = column(_VALUE + name)[row].values.to_numpy(zero_copy_only=False)
        if _SHAPE + name in names and (shape := column(_SHAPE + name)[row]).is_valid:
            flat = flat.reshape(shape.as_py())
        return np.array(flat)  # a copy: what arrow owns cannot be written to

    there = [x for x in names if x.startswith(_VALUE) and (x in full or column(x)[row].is_valid)]
    value = Arrays([x.removeprefix(_VALUE) for x in there], array)
    return Entry(
        head["kind"],
        head["identity"],
        head["version"],
        head["ask"],
        DataFrame(dict(value)) if head["form"] == "table" else value,
        {name: head[name] for name in provenance.PROVENANCE},
        tuple(head["notebooks"] or ()),
    )


def file_content(table: pa.Table, *, quick: bool = False) -> bytearray:
    """A sealed file of entries: parquet, or, ten times as quick, a stream of arrow (the cache)."""
    about = {b"xlx_ledger": str(FORMAT).encode(), b"xlx_seal": store.EMPTY_SEAL}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **about})
    buffer = pa.BufferOutputStream()
    if quick:
        options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False, allow_64bit=True)
        with pa.ipc.new_stream(buffer, table.schema, options=options) as stream:
            stream.write_table(table)
    else:
        leaves = {
            field.name: field.name + ".list.element" * pa.types.is_nested(field.type)
            for field in table.schema
        }
        # Counts and halves have few equal ones; their high bytes alone are alike.
        split = {
            leaves[field.name]: "BYTE_STREAM_SPLIT"
            for field in table.schema
            if field.name.startswith(_VALUE)
            and (pa.types.is_unsigned_integer(x := field.type.value_type) or pa.types.is_float16(x))
        }
        pq.write_table(
            table,
            buffer,
            compression="zstd",
            compression_level=19,
            column_encoding=split or None,
            use_dictionary=[leaf for leaf in leaves.values() if leaf not in split],
            row_group_size=max(1, _GROUP * len(table) // max(table.nbytes, 1)),
        )
    return store.sealed(bytearray(buffer.getvalue()), first=quick)


def write_entries(path: Path, table: pa.Table) -> None:
    """A sealed file of entries, whole or not at all: `file_content` by its name.

    Raises `store.StoreError`.
    """
    store.write_whole(path, file_content(table, quick=path.suffix == ".arrow"))


def read_entries(path: Path) -> pa.Table | None:
    """The entries of a file, or None if there is none that can be trusted (which is said)."""

    def read(content: bytes) -> pa.Table:
        if path.suffix != ".arrow":
            store.check_seal(content, first=False)
            return _opened(content).read(use_threads=False)
        store.check_seal(content, first=True)
        options = pa.ipc.IpcReadOptions(use_threads=False)
        table = pa.ipc.open_stream(content, options=options).read_all()
        _check_format(table.schema)
        return table

    return _trusted(path, read) if path.exists() else None


def _opened(content: bytes) -> pq.ParquetFile:
    # No Python file and no reading ahead: arrow's threads may abort a process that ends.
    file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
    _check_format(file.schema_arrow)
    return file


def _check_format(schema: pa.Schema) -> None:
    written_as = (schema.metadata or {}).get(b"xlx_ledger", b"none").decode()
    if written_as != str(FORMAT):
        raise store.Damaged(f"it has the format {written_as}, and this version reads {FORMAT}")


def _trusted(path: Path, read: Callable[[bytes], Any]) -> Any:
    """What is read of the bytes of a file; None, and a warning, where they cannot be trusted."""
    try:
        return read(path.read_bytes())
    except (store.Damaged, pa.ArrowException, OSError, ValueError) as error:
        reason = checks.reason(error)
        message = f"{path} is not used: {reason}; its results count as missing"
        warnings.warn(message, store.StoreWarning, stacklevel=3)
        return None


class Shard:
    """A file of the ledger: opened once, decoded by group of rows and column, as these are asked.

    ``digest``: its SHA-256 on record; "" where it is not on record, so that its seal must do.
    Raises `store.Damaged` and errors of arrow.
    """

    def __init__(self, content: bytes, digest: str = "") -> None:
        if not digest:
            store.check_seal(content, first=False)
        elif hashlib.sha256(content).hexdigest() != digest:
            raise store.Damaged(f"its bytes are not those on record in {SHARDS} (torn or altered)")
        self.file = _opened(content)
        self._names = self.file.schema_arrow.names
        self._columns = {}
        self._full = {}
        #: Identity → group of rows, and row in it.
        self.places = {
            identity: (group, row)
            for group in range(self.file.num_row_groups)
            for row, identity in enumerate(self._column(group, "identity").to_pylist())
        }

    def _column(self, group: int, name: str) -> pa.Array:
        if (group, name) not in self._columns:
            table = self.file.read_row_group(group, columns=[name], use_threads=False)
            self._columns[group, name] = table[name].combine_chunks()
        return self._columns[group, name]

    def entry(self, identity: str) -> Entry:
        """One of its entries."""
        group, row = self.places[identity]
        if group not in self._full:
            about = self.file.metadata.row_group(group)
            columns = [about.column(i) for i in range(about.num_columns)]
            full = {
                x.path_in_schema for x in columns if x.statistics and not x.statistics.null_count
            }
            self._full[group] = {x.removesuffix(".list.element") for x in full}
        return _entry(self._names, lambda x: self._column(group, x), row, self._full[group])


def folder_of(root: Path, file: Path) -> str:
    """Lens and kind of a file: "abx/score"."""
    return file.parent.relative_to(root).as_posix()


class Ledger:
    """The committed results: a folder of shards, each opened when its kind is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._kinds = {}

    def notes(self, name: str) -> dict[str, list[str]]:
        """The lines of `SHARDS`, `ASKERS` or `STAMPS`: first field → the others; none, if torn."""
        path = self.root / name
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        return {first: more for first, *more in (line.split("\t") for line in lines) if more}

    def files(self, kind: str = "*") -> list[Path]:
        """All files of the ledger, or of a kind; those, too, that are on record and not there."""
        lost = {self.root / file for file in self.notes(SHARDS)}
        there = {*self.root.glob(f"*/{kind}/*.parquet")}
        return sorted(there | {file for file in lost if kind in ("*", file.parent.name)})

    def shards(self, kind: str = "*") -> dict[Path, Shard]:
        """The files that can be trusted, opened."""
        record = {self.root / file: more[-1] for file, more in self.notes(SHARDS).items()}
        read = {
            file: _trusted(file, partial(Shard, digest=record.get(file, "")))
            for file in self.files(kind)
        }
        return {file: shard for file, shard in read.items() if shard is not None}

    def get(self, ask: Ask) -> Entry | None:
        """The entry of an ask, or None."""
        if ask.kind not in self._kinds:
            self._kinds[ask.kind] = {
                identity: shard
                for shard in self.shards(ask.kind).values()
                for identity in shard.places
            }
        shard = self._kinds[ask.kind].get(ask.identity)
        return None if shard is None else shard.entry(ask.identity)

    def overview(self, *, as_written: bool = False) -> DataFrame:
        """All entries without their values: the head's columns, provenance, ``lens``.

        Who asks for them (``notebooks``, a tuple), and by what code they could be made (``code``),
        is said as of now, or as it was written into their shards.
        """
        names = [*_HEAD, *provenance.PROVENANCE]
        parts = [
            shard.file.read(
                [x for x in names if x in shard.file.schema_arrow.names], use_threads=False
            )
            .to_pandas(use_threads=False)
            .reindex(columns=names)
            .assign(lens=folder_of(self.root, file).partition("/")[0])
            for file, shard in self.shards().items()
        ]
        if not parts:
            return DataFrame(columns=[*names, "lens"])
        table = pd.concat(parts, ignore_index=True)
        table = table.drop_duplicates("identity", keep="last", ignore_index=True)
        askers = {} if as_written else self.notes(ASKERS)
        table["notebooks"] = [
            tuple(askers[identity][0].split() if identity in askers else some)
            for identity, some in zip(table["identity"], table["notebooks"], strict=True)
        ]
        stamps = {} if as_written else self.notes(STAMPS)
        table["code"] = [stamps.get(code, [code])[-1] for code in table["code"]]
        return table


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
