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
    run(notebook, models=[str(plain) if model == "plain" else model])
    assert list(tmp_path.glob("*.png"))


def test_estimation_takes_the_results_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    scores = {"en": 0.8, "de": 0.6, "fi": 0.4, "fr": 0.7, "nl": 0.5, "ja": ""}
    rows = [f"Belebele,mini-llama,{code},{score}" for code, score in scores.items()]
    (tmp_path / "own.csv").write_text("task,model,language,score\n" + "\n".join(rows) + "\n")
    (notebook,) = paths.NOTEBOOKS.glob("mexa-2-*.ipynb")
    scope = run(notebook, models=["mini-llama"], task_files=[str(tmp_path / "own.csv")])
    assert scope["without"]["without"].tolist() == ["ja"]
    assert scope["table_5"]["languages"].max() == 4  # neither English nor what has no score
    assert scope["table_1"].loc[("Belebele", "mini-llama"), "en"] == 0.8
    assert scope["table_1"].loc[("Belebele", "mini-llama"), "guess"] == 0.25


def run(notebook: Path, **parameters: object) -> dict[str, object]:
    """All cells with small sizes and the parameters; the variables that they leave."""
    scope: dict[str, object] = {}
    own = next((more for stem, more in OWN.items() if notebook.stem.startswith(stem)), {})
    cells = nbformat.read(notebook, as_version=4).cells
    for cell in [cell for cell in cells if cell.cell_type == "code"]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(cell.source, notebook.name, "exec"), scope)
        if "parameters" in cell.metadata.get("tags", []):
            scope |= {key: value for key, value in (SMALL | own).items() if key in scope}
            scope |= parameters
    plt.close("all")
    return scope
