"""What several tests of the room read once."""

import pytest

from xlx.text import pretraining_text
from xlx.text.files import letters


@pytest.fixture(scope="session")
def pretraining_lines() -> frozenset[str]:
    """Every line that a miniature model is trained on, and those of NTREX held out from it."""
    return frozenset(
        line.strip()
        for source in pretraining_text.PRETRAINING_SOURCES
        for by_id in pretraining_text.read_source(source).values()
        for line in by_id.values()
    )


@pytest.fixture(scope="session")
def pretraining_letters(pretraining_lines: frozenset[str]) -> frozenset[str]:
    """Their letters and digits, without case."""
    seen = frozenset(map(letters, pretraining_lines))
    assert len(seen) > 1_000_000
    return seen
