"""What the notebook of mapped encoders asks: recipes by parameters."""

import pytest

from xlx.results import paths
from xlx.text.trees import load_trees
from xprobe import encoders, probing
from xprobe_3_mapping import MappingStudy


@pytest.fixture(scope="module")
def study() -> MappingStudy:
    return MappingStudy(
        ["de", "fr"], ["rnn-max", "cnn-mean"], parallel={"A": "ntrex", "B": "bible_nt"},
        second={"fr": "B", "tr": "B"}, first={"de": "B"}, n_parallel=50,
        training={"batch_size": 8, "learning_rate": 1e-3, "seed": 1},
    )  # fmt: skip


def test_settings_are_languages_and_a_second_corpus(study: MappingStudy) -> None:
    assert study.size == encoders.MINI
    assert study.settings == {
        "en": ("en", "B"), "de": ("de", "B"), "fr": ("fr", "A"), "fr-B": ("fr", "B"),
    }  # fmt: skip
    lines = study.translations
    assert lines["en"].language_b == "de"  # English to itself, by the first language's corpus
    assert lines["fr-B"].sources == ("bible_nt",)
    assert study.lookups["en"].target is None
    assert study.lookups["de"].dictionary == paths.DATA / "dictionaries" / "de-en.txt"


def test_each_encoder_is_mapped_in_each_setting(study: MappingStudy) -> None:
    assert set(study.mapped) == {(x, s) for x in study.encoders for s in study.settings}
    own = study.mapped["rnn-max", "fr-B"]
    assert own.nli is study.english["rnn-max"]
    options = own.ask.about["options"]
    assert (options["max_epochs"], options["lam"], options["patience"]) == (4, 0.25, 2)
    assert study.mapped["rnn-max", "en"].ask.about["target"] is None
    ids = set(study.learnt.parts[0].ids)
    assert not ids & set(study.held_out["en"].parts[1].ids)
    names = [(x.encoder, x.condition, x.language) for x in study.trained_subjects()]
    assert len(names) == len(set(names)) == 2 * 5
    assert ("RNN (maxpool)", "mapped", "en-mapped") in names


def test_tasks_are_kept_where_all_have_them() -> None:
    trees = {code: [load_trees(code, "pud")] for code in ("en", "de")}
    options = {"most": 60, "proportions": (4, 1, 2), "n_test": 30, "max_draws": 2}
    tasks, _ = probing.alike(trees, ["SentLen", "Tense"], **options)
    own = {"en": tasks["en"], "de": [task for task in tasks["de"] if task.name == "Tense"]}
    assert {task.name for task in probing.common_tasks(own, ["en"])["en"]} == {"SentLen", "Tense"}
    kept = probing.common_tasks(own, ["en", "de"])
    assert [{task.name for task in x} for x in kept.values()] == [{"Tense"}, {"Tense"}]
    assert len(kept["en"]) == 2  # draws
