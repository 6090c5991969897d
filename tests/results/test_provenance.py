"""The hash of code: what moves it and what does not."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from xlx.experiment import abx_scores
from xlx.measures import abx, registered
from xlx.results import provenance

SOURCE = '''
"""A module."""
import re
from xlx_toy_other import helper

LIMIT = 3
PATTERN = re.compile("a+")


class Box:
    """A box."""

    size = 1

    def double(self) -> int:
        return self.size * FACTOR


FACTOR = 2
UNUSED = 9


def compute(n: int) -> int:
    """Say what."""
    # a comment
    box = Box()
    return helper(n, LIMIT) + box.double() + len(PATTERN.pattern)


def unused() -> None:
    pass
'''
OTHER = """
def helper(n, limit):
    return deeper(min(n, limit))


def deeper(n):
    return n + 1
"""


@pytest.fixture
def hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The hash of ``compute`` in a package of the test's own, given the text of its modules."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(provenance, "_ours", lambda name: (name or "").startswith("xlx_toy"))

    def hash_of(source: str = SOURCE, other: str = OTHER) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
        for name, text in (("xlx_toy", source), ("xlx_toy_other", other)):
            (folder / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        module: ModuleType = importlib.import_module("xlx_toy")
        return provenance.code_hash(module.compute)

    yield hash_of
    for name in ("xlx_toy", "xlx_toy_other"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("old", "new", "moves"),
    [
        ("# a comment", "# another", False),
        ('"""Say what."""', '"""Say something else,\n\n    at length.\n    """', False),
        ("helper(n, LIMIT)", "helper(\n        n,\n        LIMIT,\n    )", False),
        ("UNUSED = 9", "UNUSED = 10", False),
        ("def unused() -> None:\n    pass", "def unused() -> int:\n    return 1", False),
        ('"""A box."""\n', '"""A larger box."""\n', False),
        ("LIMIT = 3", "LIMIT = 4", True),
        ("FACTOR = 2", "FACTOR = 3", True),
        ('"a+"', '"b+"', True),
        ("self.size *", "self.size +", True),
        ("size = 1", "size = 2", True),
        ("box = Box()", "box = Box(); n += 1", True),
    ],
)
def test_what_computes_moves_the_hash_and_no_prose_or_layout(
    hashed, old: str, new: str, moves: bool
) -> None:
    assert old in SOURCE
    assert (hashed() != hashed(SOURCE.replace(old, new))) == moves


def test_the_code_that_called_code_calls_moves_it(hashed) -> None:
    assert hashed() != hashed(other=OTHER.replace("n + 1", "n + 2"))


def test_results_do_not_hang_on_what_keeps_and_draws_them() -> None:
    names = {name.split(".")[2] for name in provenance._closure(abx.exact)}
    assert "alignment" in names
    assert not names & {"store", "work", "plots", "settings"}
    assert provenance.code_hash(abx.exact) != provenance.code_hash(abx_scores.history)


def test_where_the_code_lies_is_no_part_of_the_hash() -> None:
    assert str(provenance.paths.ROOT) not in str(provenance._closure(registered))


def test_the_environment_names_everything() -> None:
    made = provenance.environment()
    assert set(made) | {"code", "seconds", "predictions"} == set(provenance.PROVENANCE)
    assert "+" not in str(made["torch"])
    assert made["cpu"]
