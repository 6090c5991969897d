"""What the notebook of mapped encoders asks: recipes by parameters."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from xlx.text.trees import load_trees
from xprobe import probing
from xprobe_3_mapping import (
    ENDS,
    MappingStudy,
    NoisedEnglish,
    compared,
    gains,
    lengths_by_encoder,
    matched_gains,
    student,
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
    recipe = study.mapped["rnn-max", "fr-B"]
    assert recipe.nli is study.english["rnn-max"]
    options = recipe.ask.about["options"]
    assert (options["max_epochs"], options["lam"], options["patience"]) == (4, 0.25, 2)
    assert study.mapped["rnn-max", "en"].ask.about["target"] is None
    ids = set(study.learnt.parts[0].ids)
    assert not ids & set(study.held_out["en"].parts[1].ids)
    names = [subject.names for subject in study.trained_subjects()]
    assert len(names) == len(set(names)) == 2 * 5
    assert ("RNN (maxpool)", "mapped", "en-mapped") in names


def test_tasks_are_kept_where_all_have_them() -> None:
    trees = {code: [load_trees(code, "pud")] for code in ("en", "de")}
    options = {"most": 60, "proportions": (4, 1, 2), "draws": probing.Draws(30, 2)}
    tasks, _ = probing.alike(trees, ["SentLen", "Tense"], **options)
    built = {"en": tasks["en"], "de": [task for task in tasks["de"] if task.name == "Tense"]}
    assert {x.name for x in probing.common_tasks(built, ["en"])["en"]} == {"SentLen", "Tense"}
    common = probing.common_tasks(built, ["en", "de"])
    assert [{task.name for task in x} for x in common.values()] == [{"Tense"}, {"Tense"}]
    assert len(common["en"]) == 2  # draws


def test_a_share_of_the_english_words_is_exchanged(tmp_path: Path, study: MappingStudy) -> None:
    rows = [" ".join(f"w{i + j}" for j in range(10)) for i in range(200)]
    for code in ("en", "de"):
        (tmp_path / f"a.{code}").write_text("\n".join(rows), encoding="utf-8")
    asks = set()
    for share in (0.0, 0.4):
        text = NoisedEnglish("en", "de", str(tmp_path), noise=share)
        english, noised = (np.array(side) for side in text.lines)
        assert english.tolist() == [row.split() for row in rows]
        assert np.mean(english != noised) == pytest.approx(share, abs=0.03)
        asks.add(text.about["noise"])
    assert asks == {0.0, 0.4}
    first, other = study.noised(0.2)
    assert first.names == ("RNN (maxpool)", "20% noise", "en")
    assert other.recipe.ask != study.mapped["cnn-mean", "en"].ask


def made_cells() -> pd.DataFrame:
    """Two encoders, the second better by 0.1; untrained ones lose 0.1 abroad, mapped ones gain."""
    rows = [
        (encoder, condition, language, "SentLen", accuracy + shift)
        for encoder, shift in (("a", 0.0), ("b", 0.1))
        for condition, language, accuracy in (
            ("trained", "en", 0.5),
            ("untrained", "en", 0.7),
            ("mapped", "de", 0.6 + 0.2 * shift),
            ("mapped", "fr", 0.8 - 0.2 * shift),
            ("mapped", "fr-NT", 0.9),
            ("mapped", "en-mapped", 0.1),
            ("untrained", "de", 0.6),
            ("untrained", "fr", 0.6),
        )
    ]
    words = [("words", "not trained", x, "SentLen", y) for x, y in (("en", 0.2), ("de", 0.25))]
    columns = ["encoder", "condition", "language", "task", "accuracy"]
    return pd.DataFrame(rows + words, columns=columns)


def test_a_matched_gain_is_over_languages_that_untrained_encoders_read() -> None:
    table = gains(made_cells(), "SentLen", ["a", "b"])
    assert table.loc["de", "mapped"] == pytest.approx(0.11)
    assert table.loc["de", "not trained"] == pytest.approx(0.05)
    row = matched_gains(made_cells(), {"both": ["a", "b"], "one": ["a"]}, ["SentLen"])
    row = row.loc[("SentLen", "both")]
    each = np.array([0.11, 0.29]) + 0.1
    low, high = stats.t.interval(0.95, 1, each.mean(), stats.sem(each))
    assert row[ENDS].tolist() == pytest.approx([each.mean(), low, high])
    expected = {"mapped": 0.2, "untrained": -0.1, "English to English": -0.4}
    assert row[[*expected]].to_dict() == pytest.approx(expected)


def test_length_is_added_abroad_and_by_noise() -> None:
    cells = made_cells()
    noised = cells[cells["condition"] == "untrained"].query("language == 'en'")
    cells = pd.concat([cells, noised.assign(condition="20% noise")])
    table = lengths_by_encoder(cells, ["a", "b"])
    expected = {"English": 0.5, "abroad": 0.7, "untrained English": 0.7, "20% noise": 0.7}
    expected |= {"untrained abroad": 0.6, "English to English": 0.1}
    assert table.loc["a"].to_dict() == pytest.approx(expected)
    assert table.loc["b", "abroad"] == pytest.approx(0.8)
    assert student(table["20% noise"] - table["English"]) == pytest.approx((0.2, 0.2, 0.2))


@pytest.mark.parametrize("seed", range(3))
def test_conditions_are_compared_by_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = [("mapped", x, "de") for x in "ab"] + [("not mapped", x, "de") for x in "ab"]
    answers = {key: rng.random(40) < 0.6 for key in keys} | {("mapped", "a", "en-mapped"): None}
    table = compared(answers, "mapped", "not mapped")
    conditions = ("mapped", "not mapped")
    first, other = (np.mean([answers[x, y, "de"] for y in "ab"], axis=0) for x in conditions)
    test = stats.ttest_rel(first, other)
    ends = test.confidence_interval()
    assert table.loc["mean", ENDS].tolist() == pytest.approx([(first - other).mean(), *ends])
    assert table.loc["a", "mapped"] == pytest.approx(answers["mapped", "a", "de"].mean())
