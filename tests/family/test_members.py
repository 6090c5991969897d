"""What the folders of members tell: recipe, cost, losses, vocabularies, how often text was read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import models_1_family
from family import pretraining_text
from family.recipes import RECIPES, describe
from tests import tiny, toy
from xlx.results import paths
from xlx.subjects import loading

# --- what a member is ----------------------------------------------------------------------------


def test_the_overview_tells_what_members_are_and_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path / "shipped")
    toy.member_files(tmp_path / "shipped", "mini-xlm")
    decoder = toy.member_files(tmp_path, "mini-llama-en95", run=False)
    table = models_1_family.overview(["mini-xlm", decoder])
    assert list(table.index) == ["mini-xlm", "mini-llama-en95"]  # a path is no name
    assert list(table) == [
        "architecture", "objectives", "layers", "width", "English", "parameters", "subwords_seen",
        "minutes",
    ]  # fmt: skip
    assert table["objectives"].to_list() == ["mlm + tlm", "clm"]
    assert table.loc["mini-xlm", "parameters"] == 123
    assert np.isnan(table.loc["mini-xlm", "English"])
    assert table.loc["mini-llama-en95", "English"] == 0.95
    assert pd.isna(table.loc["mini-llama-en95", "subwords_seen"])  # not at its end


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


# --- vocabularies --------------------------------------------------------------------------------


def test_vocabularies_are_grouped_by_what_they_are(tmp_path: Path) -> None:
    names = [str(tiny.save(tmp_path / name)) for name in ("one", "two")]
    decoder = str(tiny.save(tmp_path / "three", "llama"))  # its tokenizer ends no sequence
    kinds = models_1_family.distinct_vocabularies([*names, decoder])
    assert {kind: models for kind, (_, models) in kinds.items()} == {
        "BPE": ["one", "two"],
        "BPE of three": ["three"],
    }


# --- how often it read the text ------------------------------------------------------------------


def test_subwords_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = tiny.save(tmp_path / "model")
    lines = {str(number): line for number, line in enumerate(tiny.SENTENCES)}
    text = {"tatoeba": {"en": lines, "de": {"7": "Yes"}}, "ntrex": {"en": {"1": "rain"}}}
    monkeypatch.setattr(pretraining_text, "read_text", lambda: (text, {}))
    models_1_family._lines.cache_clear()
    tokenizer = loading.tokenizer(name)

    def length(line: str) -> int:
        return len(tokenizer(line, add_special_tokens=False)["input_ids"]) + 1

    some = sum(length(line) for line in tiny.SENTENCES[::2]) + length("rain")
    found = models_1_family.subword_counts(name, every=2)
    assert found.to_dict() == {"de": 2 * length("Yes"), "en": 2 * some}
    models_1_family._lines.cache_clear()


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


# --- runs of one recipe ---------------------------------------------------------------------------


def test_the_spread_of_repeated_values_is_that_within_groups() -> None:
    groups = [[1, 3], [10, 14, 12], [500]]  # squares 2 and 8; of one value nothing is known
    sd, freedom = models_1_family.pooled_spread(groups)
    assert (sd, freedom) == (pytest.approx(np.sqrt(10 / 3)), 3)
    assert models_1_family.pooled_spread(iter(groups)) == (sd, freedom)
    values = np.random.default_rng(8).normal(3, 2, size=9)
    assert models_1_family.pooled_spread([values]) == (pytest.approx(values.std(ddof=1)), 8)
    for nothing in ([], [[1.0], [2.0]]):
        sd, freedom = models_1_family.pooled_spread(nothing)
        assert np.isnan(sd)
        assert freedom == 0
        assert np.isnan(models_1_family.reach_of_two(sd, freedom))


def test_the_reach_of_two_values_is_students() -> None:
    assert models_1_family.reach_of_two(2.0, 3) == pytest.approx(3.182446 * np.sqrt(2) * 2)
    assert models_1_family.reach_of_two(2.0, 10**9) == pytest.approx(1.959964 * np.sqrt(2) * 2)


def test_two_values_differ_by_less_than_their_reach_as_often_as_it_says() -> None:
    """Though the spread is known from a few groups, each of a mean of its own."""
    rng = np.random.default_rng(9)
    below, below_normal = [], []
    for _ in range(4000):
        groups = [rng.normal(mean, 0.7, size) for mean, size in ((0, 2), (5, 2), (-3, 3))]
        sd, freedom = models_1_family.pooled_spread(groups)
        apart = abs(np.subtract(*rng.normal(2, 0.7, 2)))
        below.append(apart < models_1_family.reach_of_two(sd, freedom))
        below_normal.append(apart < models_1_family.reach_of_two(sd, 10**9))
    assert np.mean(below) == pytest.approx(0.95, abs=0.012)
    assert np.mean(below_normal) < 0.92  # a spread that is taken for known is too narrow
