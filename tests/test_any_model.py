"""The notebooks run on any model: one parameter changed, here to one without a history."""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest

from xlx import paths

LENS = [
    path
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    if path.stem.startswith(("abx-", "mexa-1", "mexa-2"))
]
SMALL = {
    "languages": ["de", "en", "fi", "fr", "ja", "nl"],
    "n_sentences": 40,
    "n_triplets": 200,
    "n_runs": 2,
    "n_pairs": 6,
    "n_resamples": 20,
    "tasks": ["POS", "NER"],
    "n_train": {"POS": 100, "NER": 100},
    "n_validation": {"POS": 50, "NER": 50},
    "n_test": {"POS": 100, "NER": 100},
    "n_seeds": 2,
    "context_languages": ["en", "fi"],
    "n_permutations": 99,
}
#: What a notebook calls by the same name and means otherwise.
OWN = {
    "mexa": {
        "n_test": 40, "n_seeds": 1, "n_draws": 400, "n_shifts": 2, "matrix_sizes": [5, 10],
        "n_verses": 40, "perplexity": 5, "tsne_sentences": 8,
    }
}  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder as a user's folder: one state, no history."""
    last = sorted((paths.MODELS / "mini-llama").glob("step-*"))[-1]
    folder = tmp_path_factory.mktemp("users") / "decoder"
    folder.symlink_to(last)
    return folder


@pytest.mark.parametrize("notebook", LENS, ids=[path.stem for path in LENS])
@pytest.mark.parametrize("model", ["mini-llama-large", "plain"])
def test_a_notebook_runs_on_another_model(
    notebook: Path,
    model: str,
    plain: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    name = str(plain) if model == "plain" else model
    scope: dict[str, object] = {}
    cells = nbformat.read(notebook, as_version=4).cells
    for cell in [cell for cell in cells if cell.cell_type == "code"]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(cell.source, notebook.name, "exec"), scope)
        if "parameters" in cell.metadata.get("tags", []):
            small = SMALL | next(
                (more for stem, more in OWN.items() if notebook.stem.startswith(stem)), {}
            )
            scope |= {key: value for key, value in small.items() if key in scope}
            scope["models"] = [name]
    plt.close("all")
    assert list(tmp_path.glob("*.png"))
