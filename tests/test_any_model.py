"""The notebooks run on any model: one parameter changed, here to one without a history."""

import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pytest
from IPython.display import display

from notebooks.run import typed
from tests import slow
from xlx.results import paths
from xlx.results.checks import TextWarning


def of_notebook(path: Path, table: dict[str, Any], otherwise: Any) -> Any:
    """What a table has for the notebooks whose names start like this one."""
    return next((own for start, own in table.items() if path.stem.startswith(start)), otherwise)


NAMED = (
    *("abx-", "mexa-1", "mexa-2", "igap-1", "igap-2"),
    *("mixing-1", "mixing-3"),
)
#: A user's folder, which has no history, or a member of the family; only encoders are fine-tuned.
OTHERS = {"igap": "encoder", "mixing": "encoder", "mexa-1": "mini-llama-bi2"}
CASES = [
    (path, of_notebook(path, OTHERS, "decoder"))
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    if path.stem.startswith(NAMED)
]
#: One that measures states and one that fine-tunes: `make test` runs these.
FAST = [paths.NOTEBOOKS / f"{name}.ipynb" for name in ("igap-1-decomposition",)]
SMALL = {
    "languages": ["de", "en", "fi", "fr", "ja", "nl"],
    "n_sentences": 40,
    "n_triplets": 200,
    "n_runs": 2,
    "n_pairs": 6,
    "tasks": ["POS", "NER"],
    "n_train": {"POS": 100, "NER": 100},
    "n_validation": {"POS": 50, "NER": 50},
    "n_test": {"POS": 100, "NER": 100},
    "n_seeds": 2,
    "context_languages": ["en", "fi"],
    "n_permutations": 99,
    "fewest_languages": 3,
    "course_size": 60,
    "retest_size": 40,
    "xnli_size": 12,
    "few": None,
    "n_untrained": {},
    "untaught": {"mini-xlm": 20},
    "neighbours_of": {"mini-xlm": 20},
    "runs": {},
    "pretraining_runs": {},
    "public": ["mini-xlm"],  # here without weights
}
#: Fine-tuning of next to nothing.
FINETUNING = {
    "n_train": {"PI": 12},
    "n_test": {"PI": 6},
    "batch_size": 6,
    "epochs": {"NLI": 4, "PI": 4, "random labels": 4},
    "every": {"NLI": 2, "PI": 2, "random labels": 2},
    "learning_rates": [1e-3],
    "seeds": [1, 2],
    "tolerance": 0.3,
    "dtype": "float32",
}
#: The same, of a grid.
GRID = {
    "languages": ["en", "de", "zh"],
    "n_train": 12,
    "n_test": 6,
    "epochs": 1,
    "batch_size": 6,
    "seeds": [1, 2],
    "dtype": "float32",
}
#: Words of a task, and probes.
WORDS = {
    "train": {"POS": 100, "NER": 100, "NLI": 24},
    "validation": {"POS": 50, "NER": 50, "NLI": 24},
    "test": {"POS": 100, "NER": 100, "NLI": 24},
}
PROBES = {"n_seeds": 2, "subword": "mean", "form": "concatenated", "hidden": None}
#: What a notebook calls by the same name and means otherwise.
OWN = {
    "abx-3": {
        "public": {"mini-xlm": ["POS"]},
        "twins": {"mini-xlm@untrained": ["POS"]},
        "crossed": ["mini-xlm"],
        "asked_few": ["mini-xlm", "mini-xlm@untrained"],
        "tasks": dict.fromkeys(["POS", "NER", "NLI"]),
        "sizes": WORDS,
        "draw": {"POS": 60, "NER": 60},
        "probes": PROBES,
        "learnt": {},
    },
    "abx-1": {
        "whole_twins": ["mini-xlm"],
        "sampled": ["mini-xlm"],
        "twins": ["mini-xlm"],
        "n_sample": 30,
        "pair_models": ["mini-xlmr"],
        "pairs_further": ["mini-xlmr"],
        "pairs_untrained": [],
    },
    "igap-1": FINETUNING
    | {
        "languages": {"NLI": ["en", "de", "zh"]},
        "sources": ["en"],
        "n_train": 12,
        "n_test": 6,
        "levels": [0.4, 0.2, 0.0],
        "curve_tolerance": 0.4,
        "options": {},
    },
    "igap-2": FINETUNING
    | {
        "languages": {"NLI": ["en", "de", "zh"], "random labels": ["en", "de", "zh"]},
        "n_sentences": 12,
        "n_train": 12,
        "n_test": 6,
        "options": {},
        "more_sources": [],
        "memory": "mini-xlmr",
        "memory_recipe": {"batch_size": 16},
        "untrained": [],
        "levels": [0.0],
        "tolerance": 0.6,
        "n_draws": 20,
        "ratios": [0.0, 1.0],
        "noisy": {"negation": ["en", "de"]},
        "noisy_sizes": {"n_train": 16, "n_test": 4},
        "noisy_recipe": {"epochs": 2, "every": 2},
    },
    "mixing-1": GRID
    | {
        "other_sources": [],
        "floor_seeds": [1],
        "alone_seeds": {},
        "n_test": 12,
        "tokenizer": "mini-xlmr",
        "test_source": None,
        "train_source": "xnli-dev",  # fewer pairs
    },
    "mixing-3": GRID
    | {
        "n_test": {"NLI": 12},
        "languages": {"NLI": ["en", "de", "tr"]},
        "pairs": [["en", "de"], ["de", "tr"]],
        "second_seeds": {},
        "n_train": {"NLI": 12},
        "epochs": {"NLI": 1},
        "batch_size": {"NLI": 4},
    },
    "mexa": {
        "n_test": 40,
        "n_seeds": 1,
        "n_verses": 40,
        "controls": {"mini-infoxlm": "mean"},
        "beside": {},
        "only_aligned": {},
        "pivot_models": {"mini-llama": "weighted_mean"},
    },
}


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made and laid out, but not written."""
    monkeypatch.setenv("XLX_FIGURES", "none")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A decoder and an encoder as a user's folders: one state, no history."""
    found = {}
    for kind, series in (("decoder", "mini-llama"), ("encoder", "mini-xlmr")):
        last = sorted((paths.MODELS / series).glob("step-*"))[-1]
        found[kind] = tmp_path_factory.mktemp("users") / kind
        found[kind].symlink_to(last)
    return found


@pytest.mark.parametrize(
    ("notebook", "model"),
    slow.but(FAST, CASES),
    ids=[f"{path.stem}-{model}" for path, model in CASES],
)
def test_a_notebook_runs_on_another_model(
    notebook: Path, model: str, folders: dict[str, Path]
) -> None:
    own = str(folders.get(model, model))
    # Baselines are of one of the models; of one model alone there is a notebook.
    alone = {"models": [own], "model": own, "one_part": [own], "without_question": {own: [1]}}
    run(notebook, **alone, untrained=None)


@pytest.mark.slow
def test_estimation_takes_the_results_of_a_user(tmp_path: Path) -> None:
    scores = {"en": 0.8, "de": 0.6, "fi": 0.4, "fr": 0.7, "nl": 0.5, "ja": ""}
    rows = [f"Belebele,mini-llama,{code},{score}" for code, score in scores.items()]
    (tmp_path / "own.csv").write_text("task,model,language,score\n" + "\n".join(rows) + "\n")
    (notebook,) = paths.NOTEBOOKS.glob("mexa-2-*.ipynb")
    scope = run(notebook, models=["mini-llama"], task_files=[str(tmp_path / "own.csv")])
    assert scope["missing"].tolist() == [1]  # ja, which has none
    assert scope["joined"]["language"].nunique() == 4  # neither English nor what has no score
    assert scope["table_1"].loc[("Belebele", "mini-llama"), "en"] == 0.8
    assert scope["table_1"].loc[("Belebele", "mini-llama"), "guess"] == 0.25


def run(notebook: Path, **parameters: object) -> dict[str, object]:
    """All cells with small sizes and the parameters; the variables that they leave."""
    scope: dict[str, object] = {"display": display}  # which a kernel has
    sizes = SMALL | of_notebook(notebook, OWN, {})
    cells = typed.lenient(nbformat.read(notebook, as_version=4)).cells
    for cell in [cell for cell in cells if cell.cell_type == "code"]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", TextWarning)  # long sentences of a short model are cut
            exec(compile(cell.source, notebook.name, "exec"), scope)
        if "parameters" in cell.metadata.get("tags", []):
            given = sizes | parameters
            scope |= {key: value for key, value in given.items() if key in scope}
    assert plt.get_fignums()
    plt.close("all")
    return scope
