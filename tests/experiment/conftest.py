"""Ten sentences in three languages."""

from dataclasses import replace

import pytest

from tests import tiny
from xlx.text.parallel import ParallelCorpus


@pytest.fixture(scope="session")
def corpus() -> ParallelCorpus:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    sentences = {
        code: tuple(f"{first}{code} {words[(i * 3 + k) % 10]}" for i, first in enumerate(words))
        for k, code in enumerate(("de", "en", "fr"))
    }
    return ParallelCorpus("toy", sentences, tuple("0123456789"), ("",) * 10, "none", "made up")


@pytest.fixture(scope="session")
def grouped(corpus: ParallelCorpus) -> ParallelCorpus:
    """The same, in documents of two."""
    return replace(corpus, ids=tuple(f"{i // 2}:{i}" for i in range(10)))


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    """A tiny encoder, which no test changes."""
    return str(tiny.save(tmp_path_factory.mktemp("models") / "tiny"))
