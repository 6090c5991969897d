"""MEXA's notebooks under the profile `paper`: its nine models, here tiny ones of five kinds."""

from pathlib import Path

import huggingface_hub
import matplotlib
import nbformat
import numpy as np
import pytest
import yaml

from notebooks.run import profiles
from tests import paper_copies
from xlx.results import paths
from xlx.results.settings import settings
from xlx.subjects import loading

matplotlib.use("agg")
import matplotlib.pyplot as plt

FOLDER = paths.PUBLISHED / "mexa"
NOTEBOOKS = ("mexa-1-alignment", "mexa-2-estimation")
CODES = ["en", "de", "fr", "ja", "sw", "tr"]
#: Sizes at which a test ends in seconds; everything else is the profile's.
SMALL = {
    "languages": CODES, "n_sentences": 12, "max_length": 64, "shown": {"de": "German"},
    "n_draws": 40, "sizes": [5, 12], "size_models": {"google/gemma-2-9b": "mean"},
    "n_resamples": 20, "n_verses": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def profile() -> dict[str, dict]:
    found = profiles.read_profile("paper")["notebooks"]
    return {name: found[name] for name in NOTEBOOKS}


def test_models_and_sizes_are_those_of_the_paper(profile: dict[str, dict]) -> None:
    printed = yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))
    for values in profile.values():
        names = [Path(name).name.lower() for name in values["models"]]
        for name, called in zip(names, printed["models"], strict=True):
            first, *_, size = called.lower().split()
            assert name.startswith(first[:4]) or "llama" in name
            assert size in name
        assert values["n_sentences"] == printed["parallel_data"]["FLORES-200"]["sentences_used"]
        assert values["languages"] is None
    assert (
        profile["mexa-2-estimation"]["n_verses"] == printed["parallel_data"]["Bible"]["sentences"]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub of nine tiny models, results of two tasks for each, and two little Bibles."""
    folder = tmp_path_factory.mktemp("paper")
    rng = np.random.default_rng(0)
    paper_copies.hub(folder / "hub", paper_copies.DECODERS, positions=64)
    for number, name in enumerate(paper_copies.DECODERS):
        # of the first model all are right as often: nothing correlates with that
        scores = iter(np.full(12, 0.25) if number == 0 else rng.uniform(0.2, 0.9, 12))
        labels = ["eng_Latn", "deu_Latn", "fra_Latn", "jpn_Jpan", "swh_Latn", "tur_Latn"]
        results = {f"belebele_{label}": {"acc": next(scores)} for label in labels}
        results |= {f"arc_{code}": {"acc": 0.1, "acc_norm": next(scores)} for code in CODES[1:4]}
        results |= {"arc_challenge": {"acc": 0.5, "acc_norm": next(scores)}}
        file = folder / "results" / name.replace("/", "__") / "results_2025-01-01T00-00-00.json"
        paper_copies.harness(file, name, results)
    for code in CODES[:4]:
        lines = (f"{code} verse {i} {'and on ' * (i % 5)}" for i in range(10))
        paper_copies.put(folder / "read" / f"{code}.txt", "\n".join(lines))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_of_several_models_runs_to_its_end(
    name: str, folder: Path, profile: dict[str, dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLX_FIGURES", str(folder / "figures"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.chdir(paths.NOTEBOOKS)
    cells = nbformat.read(profiles.notebook_path(name), as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    at = next(i for i, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", []))
    scope: dict[str, object] = {}
    exec(code[at].source, scope)
    declared = set(scope)
    scope |= profile[name] | {key: value for key, value in SMALL.items() if key in declared}
    scope["profile"] = "paper"
    if "task_files" in declared:
        scope |= {"task_files": [str(folder / "results")], "verses": str(folder / "read")}
    with settings():  # what the notebook sets ends here
        for cell in code[at + 1 :]:
            exec(cell.source, scope)
            plt.close("all")
            # a model that stays in memory leaves no room for the next
            assert not [key for key, own in scope.items() if isinstance(own, loading.Encoder)]
    drawn = {path.stem for path in (folder / "figures").glob("**/*.png")}
    assert {stem for stem in drawn if stem.startswith(name)}
    if name == "mexa-2-estimation":
        table = scope["table_5"]
        assert set(table["task"]) == {"Belebele", "m-ARC"}
        assert table["model"].nunique() == 9
        constant = table["model"] == "google/gemma-2-9b"
        assert table.loc[constant, "r"].isna().all()
        varied = table[~constant & (table["text"] == "FLORES") & (table["task"] == "Belebele")]
        assert varied["r"].notna().all()
        assert set(varied["n"]) == {5}
        assert "m-ARC" in scope["estimated"]["task"].unique()
