"""What every test starts from: no network, a cache of its own, no display, fixed examples."""

import os
import tempfile

import pytest
from hypothesis import settings

# Before any module of xlx is imported, because paths and libraries read these once. A cache of its
# own keeps the tests from seeing, or leaving, anything in the reader's.
_cache = tempfile.TemporaryDirectory(prefix="xlx-tests-", ignore_cleanup_errors=True)
os.environ["XLX_CACHE"] = _cache.name
os.environ["MPLBACKEND"] = "agg"
for _name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ[_name] = "1"

# The same examples every time: a test that fails for one reader fails for all.
settings.register_profile("xlx", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("xlx")


def pytest_report_header(config: pytest.Config) -> str:
    """Name the cache in use: a test that reads another one is wrong."""
    return f"XLX_CACHE: {_cache.name}"
