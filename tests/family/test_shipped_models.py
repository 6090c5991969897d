"""The members of the family: whole, of their recipes, loadable by anyone, and small enough."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from family import objectives, pretraining
from family.recipes import RECIPES, read_recipe
from tests import toy
from xlx.results import paths
from xlx.subjects import identity
from xlx.text.languages import LANGUAGES

#: Further runs of a recipe have their tables here, and no weights.
RUNS = sorted(path.name for path in paths.MODELS.glob("mini-*-seed*"))
MEMBERS = sorted({path.name for path in paths.MODELS.glob("mini-*")} - set(RUNS))


def steps(name: str) -> list[int]:
    return sorted(
        int(path.name.removeprefix("step-")) for path in (paths.MODELS / name).glob("step-*")
    )


def last(name: str) -> Path:
    return paths.MODELS / name / f"step-{RECIPES[name].steps:06d}"


def run(name: str) -> dict[str, object]:
    return json.loads((paths.MODELS / name / "run.json").read_text("utf-8"))


def table(name: str, which: str) -> pd.DataFrame:
    return pd.read_csv(paths.MODELS / name / f"{which}.csv")


def languages(name: str) -> list[str]:
    return sorted(RECIPES[name].languages or LANGUAGES)


def test_members_are_told_of() -> None:
    assert {"mini-xlmr", "mini-infoxlm", "mini-llama"} <= set(MEMBERS) <= set(RECIPES)
    told = (paths.MODELS / "README.md").read_text("utf-8")
    assert all(f"({name}/README.md)" in told for name in MEMBERS)
    assert all(f"({name})" in told for name in RUNS)


def test_every_file_of_a_checkpoint_is_on_record() -> None:
    lines = (paths.MODELS / "SHA256SUMS").read_text("utf-8").splitlines()
    files = {x.relative_to(paths.MODELS).as_posix(): x for x in paths.MODELS.glob("*/step-*/*")}
    assert lines == [
        f"{hashlib.sha256(files[name].read_bytes()).hexdigest()}  {name}" for name in sorted(files)
    ]


def test_members_that_cut_alike_share_one_vocabulary() -> None:
    contents = {
        (RECIPES[name].architecture == "bert", *languages(name), path.read_bytes())
        for name in MEMBERS
        for path in (paths.MODELS / name).glob("step-*/tokenizer.json")
    }
    assert len(contents) == 4  # byte-pair and word pieces; of six languages, of twelve


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_is_what_its_recipe_says(name: str) -> None:
    recipe, folder = RECIPES[name], paths.MODELS / name
    assert read_recipe((folder / "recipe.json").read_text("utf-8")) == recipe
    recorded = identity.checkpoints(str(folder), recorded=True)
    assert [checkpoint.step for checkpoint in recorded] == recipe.checkpoint_steps()
    assert set(steps(name)) <= set(recipe.checkpoint_steps())
    assert steps(name)[-1] == recipe.steps
    assert len(steps(name)) == 1 or steps(name)[0] == 0
    record = table(name, "checkpoints").set_index("step")["fingerprint"]
    for checkpoint in identity.checkpoints(str(folder)):
        assert identity.fingerprint(checkpoint) == record[checkpoint.step]
    assert pretraining.finished(recipe, folder)
    assert not [path for path in folder.rglob(".*")]  # nothing half written
    fresh = objectives.untrained(recipe)
    for step in steps(name):
        weights = toy.weights(folder / f"step-{step:06d}")
        assert {value.dtype for value in weights.values()} == {torch.float16}
        shapes = {key: value.shape for key, value in fresh.state_dict().items()}
        assert weights.keys() <= shapes.keys()
        assert all(value.shape == shapes[key] for key, value in weights.items())
        assert all(value.isfinite().all() for value in weights.values())
        if step == 0:
            for key, value in weights.items():
                assert torch.equal(value, fresh.state_dict()[key].half()), key
    assert run(name)["parameters"] == sum(p.numel() for p in fresh.parameters())


@pytest.mark.parametrize("name", RUNS)
def test_a_further_run_is_of_a_members_recipe(name: str) -> None:
    member, seed = name.split("-seed")
    recipe, folder = replace(RECIPES[member], seed=int(seed)), paths.MODELS / name
    assert read_recipe((folder / "recipe.json").read_text("utf-8")) == recipe
    with pytest.raises(identity.NoHistoryError):
        identity.checkpoints(str(folder))
    recorded = identity.checkpoints(str(folder), recorded=True)
    assert [checkpoint.step for checkpoint in recorded] == recipe.checkpoint_steps()
    assert not {checkpoint.recorded for checkpoint in recorded} & set(
        table(member, "checkpoints")["fingerprint"]
    )
    assert run(name)["subwords_seen"] == pytest.approx(run(member)["subwords_seen"], rel=0.01)
    held_out = table(name, "held_out")
    assert set(held_out["language"]) == set(languages(member))
    assert set(held_out["step"]) == set(recipe.checkpoint_steps())
