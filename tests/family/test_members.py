"""What the folders of members tell: recipe, cost, losses, vocabularies, how often text was read."""

from pathlib import Path

import pytest

import models_1_family
from family.recipes import RECIPES, describe
from tests import toy

# --- what a member is ----------------------------------------------------------------------------


def test_a_model_without_files_has_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    for name in (str(tmp_path / "mine"), "somebody/something"):
        row = models_1_family.members([name], {name: "mini-xlmr"}, {}).iloc[0]
        assert row.name == name.removeprefix(f"{tmp_path}/")
        assert "".join(row.drop("differs from")) == ""
        assert models_1_family.recipe(name) is None
        assert models_1_family.held_out([name]).empty


def test_a_run_without_weights_lies_where_its_record_does(tmp_path: Path) -> None:
    name = toy.member_files(tmp_path, "mini-xlm")
    for step in Path(name).glob("step-*"):
        step.rmdir()
    assert models_1_family.folder(name) is None
    (Path(name) / "checkpoints.csv").write_text("step,fingerprint\n0,abc\n20,def\n")
    assert models_1_family.folder(name) == Path(name)
    assert models_1_family.recipe(name) == RECIPES["mini-xlm"]
    assert models_1_family.held_out([name])["loss"].tolist() == [5.5, 5.0]


def test_a_recipe_of_another_version_is_named(tmp_path: Path) -> None:
    name = toy.member_files(tmp_path, "mini-xlm")
    old = describe(RECIPES["mini-xlm"]).replace("warmup_share", "warmup")
    (tmp_path / "mini-xlm" / "recipe.json").write_text(old)
    with pytest.raises(ValueError, match=r"recipe\.json is no recipe of this version: see warmup$"):
        models_1_family.recipe(name)


def test_settings_in_which_members_differ_are_named() -> None:
    differences = models_1_family.unlike("mini-mbert", "mini-xlmr")
    assert differences == ["architecture xlm-roberta → bert", "vocabulary BPE → WordPiece"]
