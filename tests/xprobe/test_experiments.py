"""What the notebook of mapped encoders asks: recipes by parameters."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from xlx.text.trees import load_trees
from xprobe import probing
from xprobe_3_mapping import (
    MappingStudy,
    NoisedEnglish,
    length_gains,
)


@pytest.fixture(scope="module")
def study() -> MappingStudy:
    return MappingStudy(
        ["de", "fr"],
        ["rnn-max", "cnn-mean"],
        parallel={"A": "ntrex", "B": "bible_nt"},
        second={"fr": "B", "tr": "B"},
        first={"de": "B"},
        n_parallel=50,
        training={"batch_size": 8, "learning_rate": 1e-3, "seed": 1},
    )


def test_each_encoder_is_mapped_in_each_setting(study: MappingStudy) -> None:
    assert set(study.mapped) == {(x, s) for x in study.encoders for s in study.settings}
    own = study.mapped["rnn-max", "fr-B"]
    assert own.nli is study.english["rnn-max"]
    options = own.ask.about["options"]
    assert (options["max_epochs"], options["lam"], options["patience"]) == (4, 0.25, 2)
    assert study.mapped["rnn-max", "en"].ask.about["target"] is None
    ids = set(study.learnt.parts[0].ids)
    assert not ids & set(study.held_out["en"].parts[1].ids)
    names = [own.names for own in study.trained_subjects()]
    assert len(names) == len(set(names)) == 2 * 5
    assert ("RNN (maxpool)", "mapped", "en-mapped") in names


def test_tasks_are_kept_where_all_have_them() -> None:
    trees = {code: [load_trees(code, "pud")] for code in ("en", "de")}
    options = {"most": 60, "proportions": (4, 1, 2), "draws": probing.Draws(30, 2)}
    tasks, _ = probing.alike(trees, ["SentLen", "Tense"], **options)
    own = {"en": tasks["en"], "de": [task for task in tasks["de"] if task.name == "Tense"]}
    assert {task.name for task in probing.common_tasks(own, ["en"])["en"]} == {"SentLen", "Tense"}
    kept = probing.common_tasks(own, ["en", "de"])
    assert [{task.name for task in x} for x in kept.values()] == [{"Tense"}, {"Tense"}]
    assert len(kept["en"]) == 2  # draws


def test_a_share_of_the_english_words_is_exchanged(tmp_path: Path, study: MappingStudy) -> None:
    rows = [" ".join(f"w{i + j}" for j in range(10)) for i in range(200)]
    for code in ("en", "de"):
        (tmp_path / f"a.{code}").write_text("\n".join(rows), encoding="utf-8")
    asks = set()
    for share in (0.0, 0.4):
        own = NoisedEnglish("en", "de", str(tmp_path), noise=share)
        english, noised = (np.array(side) for side in own.lines)
        assert english.tolist() == [row.split() for row in rows]
        assert np.mean(english != noised) == pytest.approx(share, abs=0.03)
        asks.add(own.about["noise"])
    assert asks == {0.0, 0.4}
    (one, other) = study.noised(0.2)
    assert one.names == ("RNN (maxpool)", "20% noise", "en")
    assert other.recipe.ask != study.mapped["cnn-mean", "en"].ask


def test_length_is_added_abroad_and_by_noise() -> None:
    rows = [
        (encoder, condition, language, "SentLen", accuracy + shift)
        for encoder, shift in (("a", 0.0), ("b", 0.1))
        for condition, language, accuracy in (
            ("trained", "en", 0.5),
            ("untrained", "en", 0.7),
            ("mapped", "de", 0.6 + 0.2 * shift),
            ("mapped", "en-mapped", 0.1),
            ("untrained", "de", 0.6),
        )
    ]
    columns = ["encoder", "condition", "language", "task", "accuracy"]
    cells = pd.DataFrame(rows, columns=columns)
    noised = cells[cells["condition"] == "untrained"].query("language == 'en'")
    gains = length_gains(cells, [noised.assign(condition="20% noise")], ["a", "b"])
    expected = {"other languages": 11, "English to English": -40, "20% noise": 20}
    assert gains.set_index("condition")["difference"].to_dict() == pytest.approx(expected)
    assert gains["points"].iloc[-1] == "+20.0 (+20.0 to +20.0)"
    assert gains["more_difference"].iloc[-1] == pytest.approx(-9)
