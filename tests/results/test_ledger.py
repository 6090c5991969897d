"""Entries of results: their identity, their rows, and files that cannot be trusted."""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from notebooks.run import gathering
from tests import toy_results as toy
from xlx.results import ledger, paths, store
from xlx.results.ledger import Ask, Cache, Entry, Ledger
from xlx.results.provenance import PROVENANCE
from xlx.results.store import StoreWarning

MADE = dict.fromkeys(PROVENANCE, "x") | {"threads": 2, "seconds": 1.5}
DTYPES = st.sampled_from(["int8", "int16", "int64", "uint16", "float16", "float32", "float64", "?"])


def entry(value: ledger.Value, kind: str = "toy", **about: object) -> Entry:
    ask = Ask(kind, about)
    return Entry(kind, ask.identity, 1, ask.text, value, MADE)


def written(root: Path, *entries: Entry) -> Ledger:
    toy.write_ledger(root, entries, {x.identity: "lens" for x in entries})
    return Ledger(root)


# --- identity -------------------------------------------------------------------------------------


def test_identity_is_that_of_kind_version_and_text() -> None:
    ask = Ask("toy", {"b": [1, 2.5, None, "é"], "a": {"inside": True}})
    assert ask.text == '{"a": {"inside": true}, "b": [1, 2.5, null, "é"]}'
    same = Ask("toy", {"a": {"inside": True}, "b": (np.int64(1), np.float64(2.5), None, "é")})
    others = [Ask("other", ask.about), Ask("toy", ask.about, 2)]
    others += [Ask("toy", ask.about | {"b": b}) for b in ([1, 2, None, "é"], ["1", 2.5, None, "é"])]
    others += [Ask("toy", {"a": {"inside": True}}), Ask("toy", ask.about | {"new": None})]
    assert ask == same
    assert len({ask, same, *others}) == 1 + len(others)
    # written down, so that no change of the code moves what is shipped
    assert Ask("toy", {"a": 1}).identity[:16] == "ef5a7997d7f82e6e"


def test_an_ask_inside_an_ask_counts_with_its_version() -> None:
    inner = [Ask("inner", {"x": 1}, version) for version in (1, 2)]
    assert Ask("toy", {"of": inner[0]}) != Ask("toy", {"of": inner[1]})
    assert '"kind": "inner"' in Ask("toy", {"of": [inner[0]]}).text


# --- rows -----------------------------------------------------------------------------------------


@given(
    st.dictionaries(
        st.sampled_from(["a", "b b", "c.d"]),
        DTYPES.flatmap(
            lambda dtype: arrays_of.arrays(
                dtype, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
            )
        ),
        min_size=1,
    )
)
def test_arrays_come_back_bit_by_bit(value: dict[str, np.ndarray]) -> None:
    value["not in C order"] = np.arange(6).reshape(2, 3).T
    back = ledger.from_arrow(ledger.to_arrow([entry(value)]), 0).value
    assert list(back) == list(value)
    for name, array in value.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == np.ascontiguousarray(array).tobytes()
        assert back[name].flags.writeable


def test_entries_of_one_kind_may_be_tables_and_other_arrays(tmp_path: Path) -> None:
    table = pd.DataFrame({"text": ["a", None, "ü"], "n": [1, 2, 3], "x": [0.5, np.nan, -1]})
    table["yes"] = [True, False, True]
    values = [table, table.iloc[:0], {"a": np.arange(3)}, {"b": np.zeros((2, 0), np.float16)}]
    shipped = written(tmp_path, *(entry(value, n=n) for n, value in enumerate(values)))
    back = [shipped.get(Ask("toy", {"n": n})) for n in range(4)]
    pd.testing.assert_frame_equal(back[0].value, table)
    assert list(back[1].value) == list(table)
    assert list(back[2].value) == ["a"]
    assert back[3].value["b"].shape == (2, 0)
    assert back[3].made == MADE


def test_a_ledger_is_a_folder_a_lens_and_kind_and_what_is_the_same_stays(tmp_path: Path) -> None:
    entries = [entry({"a": np.array([i])}, kind, i=i) for kind in ("one", "two") for i in range(3)]
    files = written(tmp_path, *entries).files()
    assert [ledger.folder_of(tmp_path, file) for file in files] == ["lens/one", "lens/two"]
    assert [file.stem for file in files] == [store.digest_of(file)[:16] for file in files]
    before = [file.stat().st_mtime_ns for file in files]
    written(tmp_path, *reversed(entries))
    assert [file.stat().st_mtime_ns for file in files] == before
    assert written(tmp_path, *entries[:3]).files() == files[:1]
    assert len(Ledger(tmp_path).overview()) == 3
    assert list(Ledger(tmp_path).notes(ledger.SHARDS)) == [
        file.relative_to(tmp_path).as_posix() for file in files[:1]
    ]


def test_an_array_of_a_shard_is_decoded_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_GROUP", 1000)

    def arrays(i: int) -> dict[str, np.ndarray]:
        part = {"rare": np.full((2, 3), i, np.float16)} if i == 1 else {"c.d": np.array([True])}
        return {"c": np.arange(300) + i, "counts": np.full((2, 2), i, np.uint32), **part}

    shipped = written(tmp_path, *(entry(arrays(i), i=i) for i in range(3)))
    (shard,) = shipped.shards().values()
    assert shard.file.num_row_groups == 3
    assert not [name for _, name in shard._columns if name.startswith("value.")]
    for i in range(3):
        value = shipped.get(Ask("toy", {"i": i})).value
        assert set(value) == set(arrays(i))
        for name, array in arrays(i).items():
            np.testing.assert_array_equal(value[name], array)
            assert value[name].dtype == array.dtype
    (shard,) = {id(shard): shard for shard in shipped._kinds["toy"].values()}.values()
    assert (0, "value.c") in shard._columns
    with pytest.raises(KeyError, match="none"):
        value["none"]
    assert set(value | {"more": value["c"]}) == {*value, "more"}
    assert set(pickle.loads(pickle.dumps(value))) == set(value)


def test_a_shard_has_ten_megabytes_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).random((5, 4000))  # 32 kB each
    entries = [entry({"a": row}, i=i) for i, row in enumerate(noise)]
    monkeypatch.setattr(gathering, "LIMIT", 100_000)
    files = written(tmp_path, *entries).files()
    assert len(files) == 3
    assert max(file.stat().st_size for file in files) <= 100_000
    assert len(Ledger(tmp_path).overview()) == 5
    with pytest.raises(gathering.GatheringError, match=r"'toy' has 0\.2 MB, and a shard at most 0"):
        written(tmp_path, entry({"a": noise.reshape(-1)}, i=7))


def test_the_shipped_shards_are_those_on_record() -> None:
    root, record = paths.RESULTS, Ledger(paths.RESULTS).notes(ledger.SHARDS)
    there = {file.relative_to(root).as_posix(): file for file in root.rglob("*.parquet")}
    assert set(record) == set(there)
    for name, file in there.items():
        assert record[name] == [str(file.stat().st_size), store.digest_of(file)], name
        if file.stem != "first":  # as it was when shards began
            assert file.stat().st_size <= gathering.LIMIT
            assert file.stem == record[name][1][:16]
    assert sum(file.stem == "first" for file in there.values()) <= 21  # none is added


# --- files that cannot be trusted -----------------------------------------------------------------


def cut(place: float) -> Callable[[Path], object]:
    """Torn at a share of the file, or so many bytes before its end."""
    return lambda file: file.write_bytes(
        file.read_bytes()[: int(place * file.stat().st_size) if place >= 0 else int(place)]
    )


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def edited(file: Path) -> None:
    """Another value, written by another tool, which keeps the metadata."""
    table = pq.read_table(file)
    place = table.column_names.index("date")
    pq.write_table(table.set_column(place, "date", [["2000-01-01"] * len(table)]), file)


def foreign(file: Path) -> None:
    file.write_bytes(b"PAR1" + bytes(5000) + b"PAR1")


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def resealed(file: Path) -> None:
    """Another value, by this store: whole, but not what is on record."""
    ledger.write_entries(file, ledger.to_arrow([entry({"a": np.arange(4)}, n=1)]))


HARMS = [cut(0), cut(0.5), cut(-1), cut(-20), flipped, foreign, longer, folder]


def not_used(get: Callable[[], Entry | None], says: str) -> None:
    with pytest.warns(StoreWarning, match=f"is not used: .*{says}.*; its results count as") as told:
        assert get() is None
    assert len(told) == 1
    assert "\n" not in str(told[0].message)


@pytest.mark.parametrize("harm", [*HARMS, edited, resealed, Path.unlink])
def test_a_damaged_ledger_file_counts_as_missing(tmp_path: Path, harm) -> None:
    (file,) = written(tmp_path, entry({"a": np.arange(3)}, n=1)).files()
    harm(file)
    not_used(lambda: Ledger(tmp_path).get(Ask("toy", {"n": 1})), "")


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_cache_file_counts_as_missing(tmp_path: Path, harm) -> None:
    cache, ask = Cache(tmp_path), Ask("toy", {"n": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.get(ask) is None
        cache.put(ask, {"a": np.arange(300)}, MADE)
        assert cache.get(ask).value["a"].sum() == 44850
    harm(cache.path(ask))
    not_used(lambda: cache.get(ask), "")


def test_another_format_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "FORMAT", 99)
    written(tmp_path, entry({"a": np.arange(3)}, n=1))
    monkeypatch.undo()
    not_used(lambda: Ledger(tmp_path).get(Ask("toy", {"n": 1})), "format 99")
