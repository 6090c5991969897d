"""What the folders of members tell: recipe, cost, losses, vocabularies, how often text was read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import models_1_family
from family.recipes import RECIPES, describe
from tests import toy


def test_a_model_without_files_has_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    for name in (str(tmp_path / "mine"), "somebody/something"):
        row = models_1_family.overview([name]).iloc[0]
        assert row.name == name.removeprefix(f"{tmp_path}/")
        assert row.isna().all()
        assert models_1_family.recipe(name) is None
        assert models_1_family.losses([name]).empty
        assert models_1_family.held_out([name]).empty
        assert models_1_family.recipe_differences({name: "mini-xlmr", "mini-xlmr": name}).empty
        assert not models_1_family.is_decoder(name)


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


@pytest.mark.parametrize("english", [None, 0.8])
def test_passes_are_what_was_seen_over_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_alike: list[str], english: float | None
) -> None:
    made = replace(RECIPES["mini-llama"], language_exponent=0.5, english_share=english)
    there = pd.Series({"de": 40, "en": 20, "ja": 60}).rename_axis("language")
    monkeypatch.setattr(models_1_family, "subword_counts", lambda *_, **__: 2 * there)
    name = toy.member_files(tmp_path / "here", made)
    pairs = toy.member_files(tmp_path, replace(made, name="pairs", pair_share=0.2))
    unread = [*cut_alike[:3], pairs, "somebody/something"]  # no decoders, or not of text alone
    table = models_1_family.passes([*unread, name], 1).set_index("language")
    assert set(table.pop("model")) == {"mini-llama"}
    shares = np.sqrt(there) / np.sqrt(there).sum()
    if english is not None:
        shares = shares * (1 - english) / (1 - shares["en"])
        shares["en"] = english
    np.testing.assert_allclose(table["share"], shares)
    np.testing.assert_array_equal(table["subwords"], 2 * there)
    np.testing.assert_allclose(table["passes"], toy.SEEN * shares / (2 * there))


def test_shares_are_of_the_languages_that_a_member_read(tmp_path: Path) -> None:
    made = replace(RECIPES["mini-xlmr"], name="few", languages=("de", "ja"), language_exponent=0.5)
    few = toy.member_files(tmp_path, made)
    shares = models_1_family.read_shares(few, pd.Series({"de": 40, "en": 20, "ja": 60}))
    roots = np.sqrt([40, 60])
    assert shares.to_dict() == pytest.approx(
        dict(zip(["de", "ja"], roots / roots.sum(), strict=True))
    )
    with pytest.raises(ValueError, match=r"somebody/something has no recipe\.json: what it read"):
        models_1_family.read_shares("somebody/something", pd.Series({"en": 20}))
