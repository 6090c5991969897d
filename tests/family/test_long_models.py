"""The members in data/models-long: whole, of their recipes, known by their hashes, and better."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests import toy
from xlx.core import paths
from xlx.core.ledger import Ledger
from xlx.family.recipes import RECIPES, read_recipe
from xlx.models import loading

FOLDER = paths.DATA / "models-long"
#: Further runs of a recipe have their tables here, and no weights.
RUNS = sorted(path.name for path in FOLDER.glob("mini-*-seed*"))
MEMBERS = sorted({path.name for path in FOLDER.glob("mini-*")} - set(RUNS))


def held_out(folder: Path) -> pd.Series:
    """Loss by language at the last checkpoint."""
    table = pd.read_csv(folder / "held_out.csv")
    return table[table["step"] == table["step"].max()].set_index("language")["loss"]


def test_members_are_of_the_long_series() -> None:
    assert MEMBERS
    assert set(MEMBERS) <= set(RECIPES)
    told = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"({name}/README.md)" in told for name in MEMBERS)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_is_what_its_recipe_says(name: str) -> None:
    recipe, folder = RECIPES[name], FOLDER / name
    assert read_recipe((folder / "recipe.json").read_text("utf-8")) == recipe
    recorded = loading.recorded_checkpoints(str(folder))
    assert [checkpoint.step for checkpoint in recorded] == recipe.checkpoint_steps()
    shipped = loading.checkpoints(str(folder))
    assert shipped[-1].step == recipe.steps
    assert len(shipped) == 1 or shipped[0].step == 0
    record = pd.read_csv(folder / "checkpoints.csv", index_col="step")["fingerprint"]
    for checkpoint in shipped:
        assert loading.fingerprint(checkpoint) == record[checkpoint.step]
        weights = toy.weights(checkpoint.path)
        assert all(value.isfinite().all() for value in weights.values())
    run = json.loads((folder / "run.json").read_text("utf-8"))
    assert run["steps"] == recipe.steps
    assert run["subwords_seen"] == pd.read_csv(folder / "losses.csv")["tokens"].max() >= 40e6


@pytest.mark.parametrize("name", RUNS)
def test_a_further_run_is_of_a_members_recipe(name: str) -> None:
    member, seed = name.split("-seed")
    recipe, folder = replace(RECIPES[member], seed=int(seed)), FOLDER / name
    assert read_recipe((folder / "recipe.json").read_text("utf-8")) == recipe
    with pytest.raises(loading.NoHistoryError):
        loading.checkpoints(str(folder))
    recorded = loading.recorded_checkpoints(str(folder))
    assert [checkpoint.step for checkpoint in recorded] == recipe.checkpoint_steps()
    prints = [
        {checkpoint.fingerprint for checkpoint in recorded},
        set(pd.read_csv(FOLDER / member / "checkpoints.csv")["fingerprint"]),
    ]
    assert not set.intersection(*prints)
    seen, seen_first = (
        json.loads((run / "run.json").read_text("utf-8"))["subwords_seen"]
        for run in (folder, FOLDER / member)
    )
    assert seen == pytest.approx(seen_first, rel=0.01)
    assert list(held_out(folder).index) == list(held_out(FOLDER / member).index)


@pytest.mark.parametrize("name", [name for name in MEMBERS if (paths.MODELS / name).exists()])
def test_a_member_is_ahead_of_the_one_it_replaces_in_every_language(name: str) -> None:
    ours, before = held_out(FOLDER / name), held_out(paths.MODELS / name)
    assert sorted(ours.index) == sorted(before.index)
    assert (ours < before).all()


def test_scores_of_a_series_are_in_the_ledger() -> None:
    """Also of the checkpoints whose weights are not here."""
    ledger = Ledger(paths.RESULTS)
    overview = ledger.overview().query("kind == 'abx-checkpoint'")
    scored = {json.loads(ask)["model"] for ask in overview["ask"]}
    for name in ("mini-infoxlm", "mini-xlmr", "mini-xlmr-6"):
        recorded = pd.read_csv(FOLDER / name / "checkpoints.csv")["fingerprint"]
        assert set(recorded) <= scored, name
