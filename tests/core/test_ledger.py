"""Entries of results: their identity, their rows, and files that cannot be trusted."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from xlx.core import ledger
from xlx.core.ledger import Ask, Cache, Entry, Ledger, LedgerWarning
from xlx.core.provenance import PROVENANCE

MADE = dict.fromkeys(PROVENANCE, "x") | {"threads": 2, "seconds": 1.5}
DTYPES = st.sampled_from(["int8", "int16", "int64", "uint16", "float16", "float32", "float64", "?"])


def entry(value: ledger.Value, kind: str = "toy", **about: object) -> Entry:
    ask = Ask(kind, about)
    return Entry(kind, ask.identity, 1, ask.text, value, MADE)


def written(root: Path, *entries: Entry) -> Ledger:
    ledger.write_ledger(root, entries, {one.identity: "lens" for one in entries})
    return Ledger(root)


# --- identity -------------------------------------------------------------------------------------


def test_identity_is_that_of_kind_version_and_text() -> None:
    ask = Ask("toy", {"b": [1, 2.5, None, "é"], "a": {"inside": True}})
    assert ask.text == '{"a": {"inside": true}, "b": [1, 2.5, null, "é"]}'
    same = Ask("toy", {"a": {"inside": True}, "b": (1, np.float64(2.5), None, "é")})
    assert ask == same
    assert len({ask, same}) == 1
    others = [Ask("other", ask.about), Ask("toy", ask.about, 2), Ask("toy", {"a": 1})]
    assert len({ask, *others}) == 4


def test_identity_is_the_same_in_every_process() -> None:
    code = "from xlx.core.ledger import Ask; print(Ask('toy', {'b': 1.25, 'a': ['x']}, 3).identity)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == Ask("toy", {"a": ["x"], "b": 1.25}, 3).identity
    # written down, so that no change of the code moves what is shipped
    assert Ask("toy", {"a": 1}).identity[:16] == "ef5a7997d7f82e6e"


def test_an_ask_inside_an_ask_counts_with_its_version() -> None:
    inner = [Ask("inner", {"x": 1}, version) for version in (1, 2)]
    assert Ask("toy", {"of": inner[0]}) != Ask("toy", {"of": inner[1]})
    assert '"kind": "inner"' in Ask("toy", {"of": [inner[0]]}).text


@pytest.mark.parametrize("wrong", [{"x": np.zeros(2)}, {"x": float("nan")}, {1: "x"}, {"x": {1}}])
def test_what_json_cannot_say_is_refused(wrong: dict) -> None:
    with pytest.raises(TypeError, match="key"):
        _ = Ask("toy", wrong).identity


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
    found = ledger.from_arrow(ledger.to_arrow([entry(value)]), 0).value
    assert list(found) == list(value)
    for name, array in value.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == np.ascontiguousarray(array).tobytes()


def test_tables_come_back(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "text": ["a", None, "ü"],
            "n": [1, 2, 3],
            "x": [0.5, np.nan, -1],
            "yes": [True, False, True],
        }
    )
    empty = table.iloc[:0]
    shipped = written(tmp_path, entry(table, n=1), entry(empty, n=2))
    pd.testing.assert_frame_equal(shipped.get(Ask("toy", {"n": 1})).value, table)
    assert list(shipped.get(Ask("toy", {"n": 2})).value) == list(table)


def test_entries_of_one_kind_may_have_other_arrays(tmp_path: Path) -> None:
    one, two = entry({"a": np.arange(3)}, n=1), entry({"b": np.zeros((2, 0), np.float16)}, n=2)
    shipped = written(tmp_path, one, two)
    assert list(shipped.get(Ask("toy", {"n": 1})).value) == ["a"]
    assert shipped.get(Ask("toy", {"n": 2})).value["b"].shape == (2, 0)
    made = shipped.get(Ask("toy", {"n": 1})).made
    assert made == MADE


def test_a_ledger_is_a_file_a_lens_and_kind_and_written_only_if_it_changes(tmp_path: Path) -> None:
    entries = [entry({"a": np.array([i])}, kind, i=i) for kind in ("one", "two") for i in range(3)]
    files = ledger.write_ledger(tmp_path, entries, {x.identity: "lens" for x in entries})
    assert [file.relative_to(tmp_path).as_posix() for file in files] == [
        "lens/one.parquet", "lens/two.parquet",
    ]  # fmt: skip
    before = [file.stat().st_mtime_ns for file in files]
    ledger.write_ledger(tmp_path, reversed(entries), {x.identity: "lens" for x in entries})
    assert [file.stat().st_mtime_ns for file in files] == before
    ledger.write_ledger(tmp_path, entries[:3], {x.identity: "lens" for x in entries})
    assert Ledger(tmp_path).files() == files[:1]
    assert len(Ledger(tmp_path).overview()) == 3


# --- files that cannot be trusted -----------------------------------------------------------------


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def edited(file: Path) -> None:
    """Another value, written by another tool, which keeps the metadata."""
    table = pq.read_table(file)
    place = table.column_names.index("date")
    pq.write_table(table.set_column(place, "date", [["2000-01-01"] * len(table)]), file)


@pytest.mark.parametrize("harm", [torn, emptied, flipped, edited])
def test_a_damaged_ledger_file_counts_as_missing(tmp_path: Path, harm) -> None:
    written(tmp_path, entry({"a": np.arange(3)}, n=1))
    (file,) = Ledger(tmp_path).files()
    harm(file)
    with pytest.warns(LedgerWarning, match=r"toy\.parquet is not used: .*count as missing"):
        assert Ledger(tmp_path).get(Ask("toy", {"n": 1})) is None


def test_another_format_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "FORMAT", 99)
    written(tmp_path, entry({"a": np.arange(3)}, n=1))
    monkeypatch.undo()
    with pytest.warns(LedgerWarning, match="format 99"):
        assert Ledger(tmp_path).get(Ask("toy", {"n": 1})) is None


@pytest.mark.parametrize("harm", [torn, emptied, flipped])
def test_a_damaged_cache_file_counts_as_missing(tmp_path: Path, harm) -> None:
    cache, ask = Cache(tmp_path), Ask("toy", {"n": 1})
    cache.put(ask, {"a": np.arange(300)}, MADE)
    assert cache.get(ask) is not None
    harm(cache.path(ask))
    with pytest.warns(LedgerWarning, match="is not used"):
        assert cache.get(ask) is None


def test_a_cache_file_under_another_name_is_not_used(tmp_path: Path) -> None:
    cache, ask, other = Cache(tmp_path), Ask("toy", {"n": 1}), Ask("toy", {"n": 2})
    cache.put(ask, {"a": np.arange(3)}, MADE)
    cache.path(other).parent.mkdir(parents=True, exist_ok=True)
    cache.path(ask).rename(cache.path(other))
    assert cache.get(other) is None
