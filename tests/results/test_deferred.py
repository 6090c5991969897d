"""What reading results need not import, and what is asked once."""

import json
import subprocess
import sys

import pytest

from notebooks.run.needs import _cells, _imported
from xlx.results import paths
from xlx.results.deferred import deferred, without_gradients

#: Libraries of a second or more each.
HEAVY = ("torch", "transformers", "sklearn", "statsmodels", "seaborn", "scipy.stats", "gensim")


def test_a_deferred_library_comes_at_its_first_use() -> None:
    code = (
        "import sys; from xlx.results.deferred import deferred; m = deferred('colorsys')\n"
        "assert 'colorsys' not in sys.modules; m.rgb_to_hsv(1, 0, 0)\n"
        "assert 'colorsys' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=paths.ROOT)
    with pytest.raises(ImportError, match="no_such_library"):
        deferred("no_such_library").anything()


def test_no_chapter_imports_what_it_does_not_use() -> None:
    chapters = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    assert chapters
    asked = {x for path in chapters for cell in _cells(path) for x in _imported(cell)}
    names = sorted(x for x in asked if not x.startswith(("scipy", "sklearn")))  # used in that cell
    code = (
        "import importlib, json, sys\n"
        f"for name in {names!r}:\n"
        "    try: importlib.import_module(name)\n"
        "    except ModuleNotFoundError: importlib.import_module(name.rpartition('.')[0])\n"
        f"print(json.dumps([x for x in {HEAVY!r} if x in sys.modules]))"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, cwd=paths.NOTEBOOKS, capture_output=True, text=True)
    assert json.loads(run.stdout.splitlines()[-1]) == []


def test_without_gradients_also_between_the_values_of_a_generator() -> None:
    torch = pytest.importorskip("torch")

    @without_gradients
    def modes(n: int):
        for _ in range(n):
            yield torch.is_inference_mode_enabled()

    seen = [(inside, torch.is_inference_mode_enabled()) for inside in modes(3)]
    assert seen == [(True, False)] * 3
