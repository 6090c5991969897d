"""What several tests of the room read once."""

import re

import pytest

from xlx.family import pretraining_text


@pytest.fixture(scope="session")
def pretraining_letters() -> frozenset[str]:
    """Letters and digits, without case, of every line that the miniature models are trained on."""
    seen: set[str] = set()
    for source in pretraining_text.PRETRAINING_SOURCES:
        for by_id in pretraining_text.read_source(source).values():
            # All lines at once: a million calls would take half of the time.
            text = re.sub(r"[^\w\n]+|_+", "", "\n".join(by_id.values()))
            seen.update(text.casefold().split("\n"))
    assert len(seen) > 1_000_000
    return frozenset(seen)
