"""What the folders of members tell: recipe, cost, loss tables, and how often text was read."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import xlx
from tests import tiny
from xlx.core import paths
from xlx.family import members, pretraining_text, vocabulary
from xlx.family.recipes import RECIPES, MemberRecipe, describe
from xlx.models import loading
from xlx.text.corpora import ParallelCorpus

SEEN = 5000


def save(root: Path, recipe: MemberRecipe, *, run: bool = True) -> str:
    """The files of a member that has two checkpoints, without weights."""
    folder = root / recipe.name
    for step in (0, 20):
        (folder / f"step-{step:06d}").mkdir(parents=True)
    (folder / "recipe.json").write_text(describe(recipe))
    if run:
        cost = {"parameters": 123, "steps": 20, "subwords_seen": SEEN, "minutes": 1.5}
        (folder / "run.json").write_text(json.dumps(cost))
    losses = [(10, 2500, "mlm", 5.0, 0.1), (20, 5000, "mlm", 4.0, 0.1)]
    columns = ["step", "tokens", "objective", "loss", "learning_rate"]
    pd.DataFrame(losses, columns=columns).to_csv(folder / "losses.csv", index=False)
    held = [(0, "de", 7, 9.0), (20, "de", 7, 5.5), (20, "en", 6, 5.0)]
    columns = ["step", "language", "subwords", "loss"]
    pd.DataFrame(held, columns=columns).to_csv(folder / "held_out.csv", index=False)
    return str(folder)


def test_table_tells_what_members_are_and_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path / "shipped")
    save(tmp_path / "shipped", RECIPES["mini-xlm"])
    decoder = save(tmp_path, RECIPES["mini-llama-en95"], run=False)
    table = members.overview(["mini-xlm", decoder]).set_index("model")
    assert list(table.index) == ["mini-xlm", "mini-llama-en95"]  # a path is no name
    assert table["objectives"].to_list() == ["mlm + tlm", "clm"]
    assert table.loc["mini-xlm", "parameters"] == 123
    assert np.isnan(table.loc["mini-xlm", "English"])
    assert table.loc["mini-llama-en95", "English"] == 0.95
    assert pd.isna(table.loc["mini-llama-en95", "subwords_seen"])  # not at its end
    assert members.recipe("mini-xlm") == RECIPES["mini-xlm"]


def test_model_without_files_has_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    for name in (str(tmp_path / "mine"), "somebody/something"):
        row = members.overview([name]).iloc[0]
        assert row["model"] == name.removeprefix(f"{tmp_path}/")
        assert row.drop("model").isna().all()
        assert members.recipe(name) is None
        assert members.losses([name]).empty
        assert members.held_out([name]).empty
        with pytest.raises(ValueError, match=r"has no recipe\.json"):
            members.recipe_differences(name, name)


def test_recipe_of_another_version_is_named(tmp_path: Path) -> None:
    name = save(tmp_path, RECIPES["mini-xlm"])
    old = json.loads(describe(RECIPES["mini-xlm"]))
    old["warmup"] = old.pop("warmup_share")
    (tmp_path / "mini-xlm" / "recipe.json").write_text(json.dumps(old))
    with pytest.raises(ValueError, match="see warmup, warmup_share"):
        members.recipe(name)


def test_differences_are_those_of_what_is_learnt(tmp_path: Path) -> None:
    one, other = (save(tmp_path, RECIPES[name]) for name in ("mini-xlm", "mini-xlmr"))
    # mini-xlmr keeps its history and mini-xlm does not: that decides nothing of what it learns.
    assert members.recipe_differences(one, other) == {"objectives": ("mlm", "mlm + tlm")}
    large = save(tmp_path, RECIPES["mini-xlmr-large"])
    found = members.recipe_differences(large, other)
    assert set(found) == {"layers", "hidden_size", "intermediate_size"}
    assert found["hidden_size"] == (128, 256)


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_survives_its_file(tmp_path: Path, name: str) -> None:
    assert members.recipe(save(tmp_path, RECIPES[name])) == RECIPES[name]


def test_loss_tables_of_several(tmp_path: Path) -> None:
    names = [save(tmp_path, RECIPES[name]) for name in ("mini-xlmr", "mini-mbert")]
    losses = members.losses(names)
    assert list(losses) == ["model", "step", "tokens", "objective", "loss"]
    assert losses.groupby("model")["loss"].apply(list).to_dict() == {
        "mini-xlmr": [5.0, 4.0],
        "mini-mbert": [5.0, 4.0],
    }
    held = members.held_out(names)
    assert set(held["step"]) == {20}  # the last checkpoint alone
    assert len(held) == 4


@pytest.mark.parametrize(("english", "expected"), [(None, None), (0.8, 0.8)])
def test_passes_are_what_was_seen_over_what_there_is(
    tmp_path: Path, english: float | None, expected: float | None
) -> None:
    made = replace(RECIPES["mini-llama"], language_exponent=0.5, english_share=english)
    there = pd.Series({"de": 40, "en": 20, "ja": 60})
    found = members.passes([save(tmp_path, made)], dict(2 * there)).set_index("language")
    assert set(found.pop("model")) == {"mini-llama"}
    shares = np.sqrt(there) / np.sqrt(there).sum()
    if expected is not None:
        shares = shares * (1 - expected) / (1 - shares["en"])
        shares["en"] = expected
    np.testing.assert_allclose(found["share"], shares)
    np.testing.assert_array_equal(found["subwords"], 2 * there)
    np.testing.assert_allclose(found["passes"], SEEN * shares / (2 * there))
    assert found["share"].sum() == pytest.approx(1)


def test_subwords_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = tiny.save(tmp_path / "model")
    lines = {str(number): line for number, line in enumerate(tiny.SENTENCES)}
    text = {"tatoeba": {"en": lines, "de": {"7": "Yes"}}, "ntrex": {"en": {"1": "rain"}}}
    monkeypatch.setattr(pretraining_text, "read_text", lambda **_: (text, {}))
    tokenizer = loading.tokenizer(name)

    def length(line: str) -> int:
        return len(tokenizer(line, add_special_tokens=False)["input_ids"]) + 1

    with xlx.settings(cache=tmp_path, ledger=tmp_path / "ledger", progress=False):
        found = members.subword_counts(name, every=2)
        some = sum(length(line) for line in tiny.SENTENCES[::2]) + length("rain")
        assert found == {"de": 2 * length("Yes"), "en": 2 * some}
        monkeypatch.setattr(pretraining_text, "read_text", None)
        assert members.subword_counts(name, every=2) == found


def test_fertility_is_that_of_the_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tiny.save(tmp_path / "model")
    sentences = {"en": tiny.SENTENCES[:3], "ja": tiny.SENTENCES[3:6]}
    corpus = ParallelCorpus("toy", sentences, ("1", "2", "3"), ("",) * 3, "none", "made up")
    expected = vocabulary.subword_statistics(loading.tokenizer(name).backend_tokenizer, sentences)
    with xlx.settings(cache=tmp_path, ledger=tmp_path / "ledger", progress=False):
        pd.testing.assert_frame_equal(members.fertility(name, corpus), expected)
        monkeypatch.setattr(loading, "tokenizer", None)
        pd.testing.assert_frame_equal(members.fertility(name, corpus), expected)


def test_passes_are_refused_where_they_are_not_known(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="learns from translations"):
        members.passes([save(tmp_path, RECIPES["mini-infoxlm"])], {"en": 20})
    with pytest.raises(ValueError, match="what it saw is not known"):
        members.passes([save(tmp_path, RECIPES["mini-llama"], run=False)], {"en": 20})
    assert members.passes([], {"en": 20}).empty


def test_vocabularies_are_grouped_by_what_they_are(tmp_path: Path) -> None:
    names = [str(tiny.save(tmp_path / name)) for name in ("one", "two")]
    decoder = str(tiny.save(tmp_path / "three", "llama"))  # its tokenizer ends no sequence
    found = members.distinct_vocabularies([*names, decoder])
    assert {kind: which for kind, (_, which) in found.items()} == {
        "BPE": ["one", "two"],
        "BPE of three": ["three"],
    }
    tokenizer, _ = found["BPE"]
    assert tokenizer.encode("Yes", add_special_tokens=False).tokens


def cut_alike(
    root: Path, recipes: list[MemberRecipe], monkeypatch: pytest.MonkeyPatch, apart: str = ""
) -> list[str]:
    """Members without weights, all of one vocabulary but that named `apart`."""
    one, other = tiny.save(root / "one"), tiny.save(root / "two", "llama")
    tokenizers = {False: loading.tokenizer(str(one)), True: loading.tokenizer(str(other))}
    monkeypatch.setattr(
        loading, "tokenizer", lambda name, **_: tokenizers[Path(name).name == apart]
    )
    return [save(root, recipe) for recipe in recipes]


def test_readers_are_those_whose_passes_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [RECIPES[name] for name in ("mini-xlmr", "mini-mbert", "mini-xlm", "mini-llama")]
    names = cut_alike(tmp_path, chosen, monkeypatch, apart="mini-mbert")
    assert members.readers(["somebody/something", *names]) == [names[0], names[3]]
    assert not members.passes(members.readers(names), {"de": 10, "en": 20}).empty
    assert members.readers(["somebody/something"]) == []


def test_losses_are_compared_where_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [RECIPES[name] for name in ("mini-xlmr", "mini-xlmr-large", "mini-mbert")]
    chosen.append(RECIPES["mini-llama"])
    small, large, bert, decoder = cut_alike(tmp_path, chosen, monkeypatch, apart="mini-mbert")
    held = pd.read_csv(Path(large) / "held_out.csv")
    held["loss"] = held["loss"].where(held["language"] == "en", held["loss"] + 0.2) - 0.05
    held.to_csv(Path(large) / "held_out.csv", index=False)
    found = members.beside({large: small, bert: small, decoder: small})
    assert len(found) == 1  # neither another vocabulary nor another objective
    row = found.iloc[0]
    assert (row["model"], row["reference"]) == ("mini-xlmr-large", "mini-xlmr")
    assert row["unlike"] == "layers, hidden_size, intermediate_size"  # and not the rates
    assert (row["languages"], row["lower"]) == (2, 1)
    assert row["difference"] == pytest.approx(0.05)


def test_the_rate_of_a_checkpoint(tmp_path: Path) -> None:
    name = save(tmp_path, replace(RECIPES["mini-xlmr"], steps=100, decay_share=0.5))
    assert members.rate(name, 50) == 1
    assert members.rate(name, 100) == pytest.approx(1 / 50)
    assert members.rate(name, 0) < 1
    assert np.isnan(members.rate("somebody/something", 50))
