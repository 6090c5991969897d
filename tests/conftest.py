"""What every test starts from: no network, a cache of its own, no display, fixed examples."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# Before any module of xlx is imported, because paths and libraries read these once. A cache of its
# own keeps the tests from seeing, or leaving, anything in the reader's.
_cache = tempfile.TemporaryDirectory(prefix="xlx-tests-", ignore_cleanup_errors=True)
for _name in [name for name in os.environ if name.startswith("XLX_")]:
    del os.environ[_name]
os.environ["XLX_CACHE"] = _cache.name
os.environ["MPLBACKEND"] = "agg"
for _name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ[_name] = "1"

from notebooks.run.profiles import notebook_format  # noqa: E402
from xlx.results import settings  # noqa: E402

notebook_format()  # before another module imports it

# The same examples every time: a test that fails for one reader fails for all.
hypothesis.settings.register_profile("xlx", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.load_profile("xlx")

#: Files that take longest: first, so that processes side by side end together.
LONGEST = (
    "test_paper_profile_runs.py",
    "test_wheel.py",
)

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in the order given, those of `LONGEST` before all others."""
    rank = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


def _fresh() -> tuple[Path, settings.settings]:
    """An empty cache and an empty ledger; nothing of the reader's settings."""
    folder = Path(_cache.name) / str(next(_numbers))
    return folder, settings.settings(
        cache=folder,
        ledger=folder / "ledger",
        device="cpu",
        dtype="float32",
        workers=1,
        scheduler=None,
        progress=False,
        policy="use",
    )


@pytest.fixture(scope="session", autouse=True)
def _of_the_session() -> Iterator[None]:
    """What fixtures of a module or of the session are made under."""
    _, settings = _fresh()
    with settings:
        yield


# No tmp_path here: hypothesis would take it for a fixture that each test asks for.
@pytest.fixture(autouse=True)
def _of_the_test(_of_the_session: None) -> Iterator[None]:
    """Each test computes all it needs: what one finds, another has not left."""
    folder, settings = _fresh()
    with settings:
        yield
    shutil.rmtree(folder, ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> str:
    """Name the cache in use: a test that reads another one is wrong."""
    return f"XLX_CACHE: {_cache.name}"
