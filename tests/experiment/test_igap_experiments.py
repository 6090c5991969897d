"""What the notebooks of IGAP compute, on runs made by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import igap_2_ranking
import igap_3_models
from shared import courses, ranking
from shared.claims import UNTOLD, crossed
from tests.experiment.test_transfers import made, made_run, task
from xlx.experiment.transfers import Transfers, TransferTask, shared_subwords
from xlx.text.examples import Examples


def planted(says: str, n: int = 1800) -> Transfers:
    """Three seeds that know their training set and answer translations in one blind way, or right.

    Three classes, as often each, of three pairs of a premise.
    """
    rng, labels = np.random.default_rng(0), np.arange(n) % 3
    texts = tuple(f"premise {i // 3}" for i in range(n))
    one = replace(
        made("en"),
        first=texts,
        second=tuple(map(str, range(n))),
        labels=labels,
        classes=("entailment", "neutral", "contradiction"),
        ids=texts,
    )
    of = TransferTask("planted", {"en": one, "de": replace(one, language="de")}, {}, {})
    found = []
    for seed in (1, 2, 3):
        told = {
            "constant": np.zeros(n, int),
            "random net": rng.integers(0, 3, n),
            # that shares nothing but chance with the training set: a neighbour drawn by lot
            "string matcher": labels[rng.permutation(n)],
            "knows": labels,
        }[says]
        run = made_run(task(tested=False), rng, seed=seed)
        answers = {"train en": np.tile(labels, (3, 1)), "train de": np.tile(told, (3, 1))}
        found.append(replace(run, predictions=answers))
    return Transfers(of, tuple(found))


@pytest.mark.parametrize("says", ["constant", "random net", "string matcher", "knows"])
def test_what_transfers_nothing_keeps_nothing(says: str) -> None:
    table = planted(says).gap_table(0.0, 0.001)
    kept = float(says == "knows")
    assert table["kept"].tolist() == pytest.approx([kept, kept], abs=0.05)
    row = table.loc[("en", "mean")]
    assert (row["checkpoints"], row["seeds"], row["guess"]) == (9, 3, pytest.approx(2 / 3))


def test_sources_are_compared_pair_by_pair() -> None:
    groups = np.arange(400)
    values = {
        (source, target): np.random.default_rng(0).random((3, 400)) < rate
        for source, rate in (("en", 0.2), ("de", 0.6), ("zh", 0.6))
        for target in ("fr", "en", "de")
        if source != target
    }
    table = igap_2_ranking.source_contrasts(values, groups)
    assert table.index.tolist() == ["en less de", "en less zh", "de less zh"]
    first = table.iloc[0]  # English and German have one target in common
    apart = values["en", "fr"].mean() - values["de", "fr"].mean()
    assert first["value"] == pytest.approx(apart)
    assert first["low"] < apart < first["high"]
    assert (table["high"] < 0).tolist() == [True, True, False]
    turned = igap_2_ranking.reversals(values, groups)
    assert turned.index.tolist() == ["de → en, less en → de"]
    assert turned["low"].item() > 0


def test_what_agrees_by_language_alone_has_no_direction_of_its_own() -> None:
    keys = [(x, y) for x in "abcdefgh" for y in "abcdefgh" if x != y]
    index = pd.MultiIndex.from_tuples(keys, names=["source", "target"])
    by_language = pd.Series([(ord(x) - ord(y)) / 4 for x, y in keys], index)
    own, other = np.random.default_rng(0).normal(size=(2, 56))
    ours, *others = (by_language + x for x in (own, other, own / 2))
    apart, alike = (igap_2_ranking.agreement(ours, x)["r"] for x in others)
    assert abs(apart["direction alone"]) < 0.25 < 0.8 < apart["means of a source"]
    assert alike["direction alone"] == pytest.approx(1)
    assert ranking.extreme_sources(by_language)["worst source"] == "h 7, g 1"


def test_what_turns_without_one_seed_cannot_be_told() -> None:
    noise, at = 0.02 * np.random.default_rng(0).standard_normal(400), np.ones((3, 1))
    each = at + noise, at * [[-0.2], [-0.2], [0.6]] + noise, noise - at, at[:1] + noise  # one seed
    assert [crossed(x, np.arange(400))[3] for x in each] == ["above", UNTOLD, "below", "above"]


def with_words() -> TransferTask:
    """Yes if a sentence has its language's word for it, which in Spanish is the English one."""
    words, rng = {"en": "no", "es": "no", "ja": "ない"}, np.random.default_rng(0)
    parts = []
    for n in (60, 40):
        labels = np.arange(n) % 2
        fillers = [" ".join(rng.choice(list("abcdefgh"), 5)) for _ in range(n)]
        parts.append(
            {
                code: Examples(
                    code,
                    code,
                    tuple(f"{word} {x}" if y else x for x, y in zip(fillers, labels, strict=True)),
                    None,
                    labels,
                    ("affirmed", "negated"),
                    tuple(f"text:{i}" for i in range(n)),
                )
                for code, word in words.items()
            }
        )
    return TransferTask("planted", *parts, {})


def test_strings_cross_where_a_word_is_shared_and_a_sign_everywhere() -> None:
    measured, signs = igap_3_models.strings(with_words(), "en", "mini-xlmr")
    assert signs[["en", "es", "ja"]].tolist() == ["no", "no", "ない"]
    table = igap_3_models.accuracies(measured, "en").set_index(["subject", "text", "language"])
    assert (table["low"].loc[igap_3_models.NEGATOR] > 0.9).all()
    found = table["accuracy"].unstack()
    for text in ("text", igap_3_models.ALL_TEXTS, igap_3_models.TRANSLATIONS):
        bag, sign = (found.loc[x, text] for x in (igap_3_models.BAG, igap_3_models.NEGATOR))
        assert bag[["en", "es", "ja"]].tolist() == [1, 1, 0.5]
        assert bag["mean"] == 0.75
        assert (sign == 1).all()
    gaps = igap_3_models.gaps(measured, 0.0, 0.01)
    assert gaps.loc[igap_3_models.BAG, "igap"] == pytest.approx(0.25)
    assert gaps.loc[igap_3_models.NEGATOR, ["igap", "fewer", "kept"]].tolist() == [0, 0.25, 1]
    beside = igap_3_models.beside_bag({"made": measured}, "en").set_index(["subject", "what"])
    ahead = beside.loc[(igap_3_models.NEGATOR, igap_3_models.AHEAD)]
    assert ahead["value"].tolist() == pytest.approx([0, 0.25, 0.25])  # in Japanese alone
    assert (ahead["low"] > 0).tolist() == [False, True, True]
    more = igap_3_models.more_right(measured, {"bag": measured[igap_3_models.BAG]})["bag"]
    assert more["value"].to_dict() == {igap_3_models.NEGATOR: pytest.approx(0.25)}
    rival = "the bag", measured[igap_3_models.BAG]
    shown = igap_3_models.noise_table(measured, rival, "en", 0.0, 0.01)
    assert shown.loc[igap_3_models.NEGATOR, ["seeds", "right, unread"]].tolist() == [
        "1 of 1",
        "100.0 (100.0 to 100.0)",
    ]
    assert shown.loc[igap_3_models.NEGATOR, "more than the bag"].startswith("25.0 (")
    assert shown.loc[igap_3_models.BAG, ["fewer", "more than the bag"]].tolist() == ["", ""]


def test_sentences_that_share_most_are_those_of_the_table() -> None:
    learnt = with_words()
    table = shared_subwords("mini-xlmr", learnt, ["en"]).set_index("target")["found"]
    places = igap_2_ranking.shared_most(learnt, "mini-xlmr")
    shares = {code: (x == np.arange(learnt.n_train)).mean() for code, x in places.items()}
    assert shares == pytest.approx(table.to_dict())
    assert min(shares.values()) > 0.5


def test_what_all_runs_do_in_the_course_of_time_is_no_correlation() -> None:
    steps, rng = [0, 400, 800, 1600, 3200], np.random.default_rng(0)
    index = pd.MultiIndex.from_product([list("abcdefgh"), steps], names=["model", "step"])
    time = -np.tile(range(5), 8)
    apart = rng.normal(0, 0.8, 40)
    rows = [(*key, code, x) for key, x in zip(index, time + apart, strict=True) for code in "xy"]
    gaps = pd.DataFrame(rows, columns=["model", "step", "target", "igap"])
    measures = {"time": -time + rng.normal(0, 0.8, 40), "cause": -time - apart}
    measures = pd.DataFrame(measures | {courses.SCHEDULE: np.tile(steps, 8)}, index)
    table = courses.step_correlations(gaps, measures)
    assert (table.loc[["time", "cause"], "r"] < -0.7).all()
    assert abs(table.loc["time", "step held"]) < 0.4
    assert table.loc["cause", "step held"] == pytest.approx(-1)
    assert np.isnan(table.loc[courses.SCHEDULE, "step held"])


def test_so_many_labels_are_drawn_and_translations_have_the_same() -> None:
    whole = task()
    assert igap_2_ranking.partly_random(whole, 0.0, 1).train["de"].labels.tolist() == [
        *whole.train["de"].labels
    ]
    noisy = igap_2_ranking.partly_random(planted("knows").task, 0.5, 1)
    before, after = np.arange(1800) % 3, noisy.train["en"].labels
    assert (before != after).mean() == pytest.approx(0.5 * 2 / 3, abs=0.03)
    assert noisy.train["de"].labels.tolist() == after.tolist()


def test_one_checkpoint_is_asked_of_each_source_and_its_error_is_no_transfer() -> None:
    """A constant answerer that errs on 30 % keeps nothing; a source's row needs no other source."""
    whole = planted("constant")
    labels = whole.task.train["en"].labels
    wrong = np.where(np.arange(len(labels)) < 0.3 * len(labels), (labels + 1) % 3, labels)
    runs = [
        replace(x, predictions=x.predictions | {"train en": np.stack([labels, labels, wrong])})
        for x in whole.runs
    ]
    table = replace(whole, runs=tuple(runs)).gap_table(0.3, 0.01)
    row = table.loc[("en", "de")]
    assert (row["training"], row["guess"]) == pytest.approx((0.3, 2 / 3 - 0.3))
    assert row["kept"] == pytest.approx(0, abs=1e-12)
