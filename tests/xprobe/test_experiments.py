"""What the notebooks on X-Probe ask: treebanks and tasks by parameters, tables by hand."""

import pandas as pd
import pytest

import xprobe_2_mapping
from xlx.results import paths
from xlx.text.trees import Treebank
from xprobe import probing
from xprobe.encoders import MINI
from xprobe.word_spaces import OfFile, OfTranslations
from xprobe_2_mapping import MappingStudy


class Planned:
    """A task as tables of several need it."""

    def __init__(self, name: str, language: str, majority: float = 0.5) -> None:
        self.name, self.language, self.majority, self.n_classes = name, language, majority, 2
        self.overlaps = {"sentences": 0, "bags": 1, "bases": 0}
        self.examples = {"x": f"{name} {language} x", "y": f"{name} {language} y"}


TASKS = {
    "en": [Planned("WC", "en"), Planned("WC", "en"), Planned("SOMO", "en", 0.6)],
    "de": [Planned("WC", "de"), Planned("Tense", "de")],
}


def test_treebanks_are_those_of_a_folder_or_the_shipped_ones() -> None:
    shipped = probing.treebanks_of(["de"])["de"]
    assert [bank.source for bank in shipped] == ["ud", "pud"]
    (own,) = probing.treebanks_of(["de"], "cache/wiki")["de"]
    assert own.path == paths.ROOT / "cache/wiki/de"
    assert list(probing.two_corpora(shipped)) == ["UD", "PUD"]
    assert list(probing.two_corpora([own])) == ["OWN", "PUD"]
    assert probing.rules_of({"depths": [3, 5], "n_words": 4}).depths == (3, 5)


def test_a_shown_tree_has_two_clauses_and_its_table_its_heads() -> None:
    bank = Treebank("en", "pud")
    tree = probing.shown_tree(bank)
    assert len(tree) < 16
    table = probing.tree_table(tree)
    assert table.loc["head", tree.root] == "-"
    assert table.loc["word"].tolist() == list(tree.words)
    said = probing.tree_properties(tree)
    assert said["tokens"] == len(tree.tokens)
    counts = probing.sentences_of({"en": [bank]})
    assert counts.loc["en", "pud"] == len(bank.trees)


def test_tasks_are_kept_where_all_or_english_have_them() -> None:
    assert [task.name for task in probing.in_every_language(TASKS)["de"]] == ["WC"]
    kept = probing.in_all_languages(TASKS)
    assert [[x.name for x in own] for own in kept.values()] == [["WC", "WC"], ["WC"]]


def test_tables_of_tasks() -> None:
    table = pd.DataFrame(
        [("WC", "en", 90, 60, 10, 20, 2), ("WC", "de", 9, 0, 0, 0, 0)],
        columns=["task", "language", "usable", "train", "validation", "test", "draws"],
    )
    assert probing.task_sizes(table).loc["WC"].to_dict() == {
        "en": 90, "de": 9, "train": 60, "validation": 10, "test": 20, "draws": 2,
    }  # fmt: skip
    (row,) = probing.lacking_tasks(table, 30).to_dict("records")
    assert row == {"task": "WC", "language": "de", "usable": 9, "needed": 30}
    items = probing.example_items(TASKS, ["en", "de"])
    assert items["sentence"].tolist()[:4] == ["WC en x", "WC en y", "WC de x", "WC de y"]
    apart = probing.parts_apart(TASKS)
    assert apart.to_dict() == {
        "tasks": 5, "shared sentences": 0, "shared bags": 5, "shared bases": 0, "points off": 10.0,
    }  # fmt: skip


def cells(condition: str, **accuracies: list[float]) -> pd.DataFrame:
    """Accuracies on two tasks by language."""
    rows = [
        ("e", condition, language, task, accuracy, 0.5, 0.25)
        for language, own in accuracies.items()
        for task, accuracy in zip(("WC", "SOMO"), own, strict=True)
    ]
    columns = ["encoder", "condition", "language", "task", "accuracy", "majority"]
    return pd.DataFrame(rows, columns=[*columns, "control_accuracy"])


def test_gains_stand_beside_those_of_other_conditions() -> None:
    main = cells("mapped", en=[0.5, 0.6], de=[0.7, 0.6], fr=[0.6, 0.5], **{"en-mapped": [0.4, 0.6]})
    usual = main[main["language"] != "en-mapped"]
    other = cells("untrained", en=[0.5, 0.5], de=[0.6, 0.5])
    table = probing.gains_by_condition(
        {"mapped": usual, "untrained": other}, main, {"en to en": "en-mapped", "fr": "fr"}
    )
    columns = ["mapped", "low", "high", "better", "en to en", "untrained", "fr"]
    assert list(table) == columns
    assert table.loc["WC", ["mapped", "better", "en to en", "untrained", "fr"]].tolist() == [
        15, 2, -10, 10, 10,
    ]  # fmt: skip
    selective = probing.selectivity_by_encoder(other)
    assert selective.loc["e", "WC"] == pytest.approx(0.3)
    chance = probing.beside_chance(other)
    assert chance.loc["WC"].tolist() == pytest.approx([0.55, 0.5])


# --- the study ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study() -> MappingStudy:
    return MappingStudy(
        ["de", "fr"], ["rnn-max", "cnn-mean"], parallel={"A": "ntrex", "B": "bible_nt"},
        second={"fr": "B", "tr": "B"}, first={"de": "B"}, n_parallel=50,
        training={"batch_size": 8, "learning_rate": 1e-3, "seed": 1},
    )  # fmt: skip


def test_settings_are_languages_and_a_second_corpus(study: MappingStudy) -> None:
    assert study.size == MINI
    assert study.settings == {
        "en": ("en", "B"), "de": ("de", "B"), "fr": ("fr", "A"), "fr-B": ("fr", "B"),
    }  # fmt: skip
    lines = study.translations
    assert lines["en"].language_b == "de"  # English to itself, by the first language's corpus
    assert lines["fr-B"].sources == ("bible_nt",)
    with pytest.raises(ValueError, match="there is no corpus in `parallel`: 'C'"):
        MappingStudy(["de"], ["rnn-max"], first={"de": "C"})


def test_words_are_mapped_by_a_file_or_by_translations(study: MappingStudy) -> None:
    assert study.lookups["en"].target is None
    assert isinstance(study.lookups["de"].dictionary, OfTranslations)
    file = MappingStudy(["de"], ["rnn-max"], dictionaries={"de": "x.txt"})._dictionary("de")
    assert isinstance(file, OfFile)


def test_each_encoder_is_mapped_in_each_setting(study: MappingStudy) -> None:
    assert set(study.mapped) == {(x, s) for x in study.encoders for s in study.settings}
    own = study.mapped["rnn-max", "fr-B"]
    assert own.nli is study.english["rnn-max"]
    assert (own.options["max_epochs"], own.options["lam"]) == (4, 0.25)
    assert study.mapped["rnn-max", "en"].target is None
    ids = set(study.learnt.parts[0].ids)
    assert not ids & set(study.held_out["en"].parts[1].ids)
    names = [(x.encoder, x.condition, x.language) for x in study.trained_subjects()]
    assert len(names) == len(set(names)) == 2 * 5
    assert ("RNN (maxpool)", "mapped", "en-mapped") in names
    assert len(study.untrained_subjects(2)) == 2 * 3
    assert len(study.further_subjects({"mini-xlmr": 2})) == 6


def test_verdicts_on_maps_follow_from_means_over_languages() -> None:
    index = pd.MultiIndex.from_tuples(
        [("mean of words", "no encoder", "de"), ("e", "not mapped", "de"), ("e", "mapped", "de")],
        names=["encoder", "condition", "language"],
    )
    maps = pd.DataFrame(
        {"inference": [None, 0.4, 0.45], "P@1": [0.3, 0.2, 0.1], "cosine": 0.5, "n": 9},
        index=index,
    ).astype(float)
    audit = xprobe_2_mapping.audit_of_maps(maps)
    assert audit.claims["verdict"].tolist() == ["holds", "does not hold", "does not hold"]
    assert audit.claims["found"][0] == "e +5.0 points"
    means = xprobe_2_mapping.mean_over_languages(maps)
    assert means.loc[("e", "mapped"), ["inference", "P@1"]].tolist() == [45, 10]
