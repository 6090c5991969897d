"""What the folders of members tell: recipe, cost, losses, vocabularies, how often text was read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import models_1_family
from family import vocabulary
from family.recipes import RECIPES, describe
from tests import tiny, toy
from tests.family.conftest import SHIPPED
from xlx.results import paths
from xlx.subjects import loading
from xlx.text import pretraining_text
from xlx.text.parallel import ParallelCorpus

TEXT = {
    "en": ("Too short.", "A sentence of fifty or so characters, as it is due.", "And a last one."),
    "fi": ("Lyhyt.", "Lause, jossa on noin viisikymmentä merkkiä, kuten kuuluu.", "Viimeinen."),
}
CORPUS = ParallelCorpus("toy", TEXT, ("0", "1", "2"), ("",) * 3, "none", "made up")


# --- what a member is ----------------------------------------------------------------------------


def test_the_overview_tells_what_members_are_and_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path / "shipped")
    toy.member_files(tmp_path / "shipped", "mini-xlm")
    decoder = toy.member_files(tmp_path, "mini-llama-en95", run=False)
    table = models_1_family.overview(["mini-xlm", decoder]).set_index("model")
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
        assert row["model"] == name.removeprefix(f"{tmp_path}/")
        assert row.drop("model").isna().all()
        assert models_1_family.recipe(name) is None
        assert models_1_family.losses([name]).empty
        assert models_1_family.held_out([name]).empty
        assert models_1_family.recipe_differences({name: "mini-xlmr", "mini-xlmr": name}).empty
        assert models_1_family.readers([name]) == models_1_family.decoders([name]) == []
    assert models_1_family.passes([], {"en": 20}).empty


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


def test_differences_are_those_of_what_is_learnt() -> None:
    references = {"mini-xlm": "mini-xlmr", "mini-xlmr-large": "mini-xlmr"}
    table = models_1_family.recipe_differences(references).reset_index()
    assert table.to_numpy().tolist() == [
        ["mini-xlm", "mini-xlmr", "objectives", "mlm", "mlm + tlm"],
        ["mini-xlmr-large", "mini-xlmr", "hidden_size", 128, 192],
        ["mini-xlmr-large", "mini-xlmr", "intermediate_size", 256, 384],
        ["mini-xlmr-large", "mini-xlmr", "learning_rate", 0.002, 0.001],
        ["mini-xlmr-large", "mini-xlmr", "matrix_learning_rate", 0.0015, 0.00075],
    ]


# --- vocabularies --------------------------------------------------------------------------------


def test_vocabularies_are_grouped_by_what_they_are(tmp_path: Path) -> None:
    names = [str(tiny.save(tmp_path / name)) for name in ("one", "two")]
    decoder = str(tiny.save(tmp_path / "three", "llama"))  # its tokenizer ends no sequence
    kinds = models_1_family.distinct_vocabularies([*names, decoder])
    assert {kind: models for kind, (_, models) in kinds.items()} == {
        "BPE": ["one", "two"],
        "BPE of three": ["three"],
    }


def test_vocabularies_and_pieces(vocabularies: models_1_family.Vocabularies) -> None:
    table = models_1_family.vocabulary_table(vocabularies)
    assert table["subwords"].to_dict() == {"BPE": 6000, "WordPiece": 6000}
    assert table.loc["BPE", "models"] == "mini-xlmr, mini-llama-bi2"
    pieces = models_1_family.example_pieces(CORPUS, vocabularies, ["en", "fi"])
    assert pieces.loc[("en", "characters"), "sentence"] == TEXT["en"][1]
    row = pieces.loc[("fi", "BPE")]
    assert row["sentence"].replace(" ", "").replace("▁", " ").strip() == TEXT["fi"][1]
    assert row["pieces"] == len(row["sentence"].split(" "))


def test_fertility_is_that_of_the_vocabularies(
    vocabularies: models_1_family.Vocabularies, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tokenizer, _), _ = vocabularies.values()
    expected = vocabulary.subword_statistics(tokenizer, TEXT)
    folders = dict(zip(SHIPPED, SHIPPED, strict=True))
    cut = models_1_family.fertilities(CORPUS, vocabularies, folders)
    pd.testing.assert_frame_equal(
        cut[cut["vocabulary"] == "BPE"][list(expected)].reset_index(drop=True), expected
    )
    assert cut["left_over"].tolist() == (100 * (cut["unknown"] + cut["bytes"])).tolist()
    monkeypatch.setattr(loading, "tokenizer", None)  # it is computed once
    pd.testing.assert_frame_equal(models_1_family.fertility("mini-xlmr", CORPUS), expected)


def test_fertilities_are_ordered_by_the_first_vocabulary() -> None:
    cut = pd.DataFrame(
        {"language": ["de", "fi"] * 2, "vocabulary": ["BPE"] * 2 + ["WordPiece"] * 2}
    )
    rest = {"tokens_per_character": 0.5, "unknown": 0.0, "bytes": 0.1, "round_trip": 1.0}
    table = models_1_family.fertility_table(
        cut.assign(tokens_per_word=[3.0, 2.0, 1.0, 2.0], **rest)
    )
    assert table.index.tolist() == ["fi", "de"]
    assert table["tokens_per_word", "WordPiece"].tolist() == [2.0, 1.0]


# --- how often it read the text ------------------------------------------------------------------


def test_subwords_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = tiny.save(tmp_path / "model")
    lines = {str(number): line for number, line in enumerate(tiny.SENTENCES)}
    text = {"tatoeba": {"en": lines, "de": {"7": "Yes"}}, "ntrex": {"en": {"1": "rain"}}}
    monkeypatch.setattr(pretraining_text, "read_text", lambda: (text, {}))
    tokenizer = loading.tokenizer(name)

    def length(line: str) -> int:
        return len(tokenizer(line, add_special_tokens=False)["input_ids"]) + 1

    some = sum(length(line) for line in tiny.SENTENCES[::2]) + length("rain")
    expected = {"de": 2 * length("Yes"), "en": 2 * some}
    assert models_1_family.subword_counts(name, every=2) == expected
    monkeypatch.setattr(pretraining_text, "read_text", None)
    assert models_1_family.subword_counts(name, every=2) == expected


def test_readers_are_those_whose_passes_are_known(cut_alike: list[str]) -> None:
    small, _, large, decoder, _ = cut_alike
    (Path(large) / "run.json").unlink()
    assert models_1_family.readers(["somebody/something", *cut_alike]) == [small, decoder]
    assert models_1_family.decoders(cut_alike) == [decoder]


@pytest.mark.parametrize("english", [None, 0.8])
def test_passes_are_what_was_seen_over_what_there_is(tmp_path: Path, english: float | None) -> None:
    made = replace(RECIPES["mini-llama"], language_exponent=0.5, english_share=english)
    there = pd.Series({"de": 40, "en": 20, "ja": 60})
    table = models_1_family.passes([toy.member_files(tmp_path, made)], dict(2 * there)).set_index(
        "language"
    )
    assert set(table.pop("model")) == {"mini-llama"}
    shares = np.sqrt(there) / np.sqrt(there).sum()
    if english is not None:
        shares = shares * (1 - english) / (1 - shares["en"])
        shares["en"] = english
    np.testing.assert_allclose(table["share"], shares)
    np.testing.assert_array_equal(table["subwords"], 2 * there)
    np.testing.assert_allclose(table["passes"], toy.SEEN * shares / (2 * there))


def test_passes_of_a_member_of_few_languages_are_over_these(tmp_path: Path) -> None:
    there = {"de": 40, "en": 20, "ja": 60}
    few = replace(RECIPES["mini-llama"], languages=("de", "en"), language_exponent=1.0)
    table = models_1_family.passes([toy.member_files(tmp_path, few)], there).set_index("language")
    np.testing.assert_allclose(table["share"].dropna(), [2 / 3, 1 / 3])
    pairs = toy.member_files(
        tmp_path, replace(few, name="pairs", pair_share=0.2)
    )  # of which text is not known
    assert models_1_family.readers([pairs]) == []


def test_shares_of_some_languages_are_of_what_a_member_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counts(name: str, *, every: int) -> dict[str, int]:
        asked.append((Path(name).name, every))
        return {"de": 40, "en": 20, "ja": 60, "fr": 5}

    monkeypatch.setattr(models_1_family, "subword_counts", counts)
    made = replace(RECIPES["mini-xlmr"], language_exponent=0.5)
    every = toy.member_files(tmp_path, replace(made, name="every"))
    few = toy.member_files(tmp_path, replace(made, name="few", languages=("de", "ja")))
    apart = toy.member_files(tmp_path, replace(made, name="apart", english_share=0.8))
    codes = ["de", "en", "ja", "fr"]
    roots = np.sqrt([40, 20, 60, 5])
    assert models_1_family.text_share(every, ["de", "ja"]) == pytest.approx(
        (roots[0] + roots[2]) / roots.sum()
    )
    assert models_1_family.text_share(few, ["de"]) == pytest.approx(
        roots[0] / (roots[0] + roots[2])
    )
    assert models_1_family.text_share(few, ["ja", "de"]) == pytest.approx(1)
    assert models_1_family.text_share(few, ["en", "fr", "xx"]) == 0  # which it has not read
    assert models_1_family.text_share(apart, ["en"], every=7) == pytest.approx(0.8)
    assert models_1_family.text_share(apart, ["ja"]) == pytest.approx(
        0.2 * roots[2] / (roots.sum() - roots[1])
    )
    for name in (every, few, apart):
        assert models_1_family.text_share(name, codes) == pytest.approx(1)
        assert models_1_family.text_share(name, []) == 0
    assert set(asked) == {("every", 1), ("few", 1), ("apart", 1), ("apart", 7)}
    with pytest.raises(ValueError, match=r"somebody/something has no recipe\.json: what it read"):
        models_1_family.text_share("somebody/something", codes)


def test_passes_in_brief() -> None:
    columns = ["model", "language", "share", "passes", "subwords"]
    rows = [("m", "en", 0.8, 3.0, 10), ("m", "de", 0.15, 0.5, 30), ("m", "fr", 0.05, 0.1, 20)]
    passes = pd.DataFrame(rows, columns=columns)
    row = models_1_family.passes_table(passes).loc["m"]
    assert row.tolist() == pytest.approx([0.8, 3.0, 0.1, 0.3, 0.5])
    assert models_1_family.by_amount(["xx", "en", "fr", "de"], passes) == ["de", "fr", "en", "xx"]
