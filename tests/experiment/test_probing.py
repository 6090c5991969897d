"""Probes over languages, layers and seeds at once, against one probe at a time, written out."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.notebooks.test_entities import literal_f1
from xlx.experiment import probing
from xlx.experiment.abx_scores import history
from xlx.experiment.probing import ProbeSetup
from xlx.measures import probes
from xlx.subjects import loading, words
from xlx.text import labelled, languages, trees
from xlx.text.files import catalogue

SIZES = {"ar": (9, 3, 7), "de": (5, 4, 12), "ja": (14, 2, 5)}
"""Sentences of the local copy by language: training, validation and test, all unlike."""

POS = ProbeSetup("POS", seeds=(0, 3))
NER = ProbeSetup("NER", 150, 60, 150, seeds=(0, 3))
NLI = ProbeSetup("NLI", 24, 9, 30, seeds=(0,))
SICK = replace(NLI, source="sick")


def conllu(part: labelled.Tagged) -> str:
    lines = []
    for sentence, tags in zip(part.sentences, part.tags, strict=True):
        for number, (word, tag) in enumerate(zip(sentence, tags, strict=True), 1):
            lines.append("\t".join([str(number), word, "_", tag, *"______"]))
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A local copy of UD and PUD in three languages that differ in how much there is."""
    folder = tmp_path_factory.mktemp("ud")
    for code, sizes in SIZES.items():
        for split, name, n in zip(labelled.SPLITS, ("train", "dev", "test"), sizes, strict=True):
            part = labelled.load_labelled("POS", code, split).take(n, 0)
            (folder / f"{code}_x-ud-{name}.conllu").write_text(conllu(part), encoding="utf-8")
        part = labelled.load_labelled("POS", code, "test", source="pud").take(sizes[2], 0)
        (folder / f"{code}_pud-ud-test.conllu").write_text(conllu(part), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def encoder() -> loading.Encoder:
    return loading.load("mini-xlmr")


def splits_of(setup: ProbeSetup, code: str) -> dict[str, probing.LabelledPart]:
    return {split: setup.load(code, split) for split in labelled.SPLITS}


def run(how: str, setup: ProbeSetup, codes: list[str], **options: object) -> pd.DataFrame:
    name = options.pop("name", "mini-xlmr")
    return getattr(probing, how)(name, setup, codes, **options)


def seen_by(
    encoder: loading.Encoder, parts: dict[str, labelled.Tagged], max_length: int | None = None
) -> dict[str, tuple[np.ndarray, np.ndarray, list[str]]]:
    """Split → states, labels and words of the words that have a state."""
    seen = {}
    for split, part in parts.items():
        found = words.embed_words(encoder, part.sentences, max_length=max_length)
        places = list(zip(found.sentence, found.word, strict=True))
        names = labelled.NER if part.tags[0][0] in labelled.NER else trees.UPOS
        labels = np.array([names.index(part.tags[sentence][word]) for sentence, word in places])
        types = [part.sentences[sentence][word] for sentence, word in places]
        seen[split] = found.states, labels, types
    return seen


def alone(
    seen: dict[str, tuple], layer: int, seed: int, n_classes: int, labels: list | None = None
) -> probes.Probes:
    """One probe: one language, one layer, one seed."""
    labels = labels or [seen[split][1] for split in ("train", "validation")]
    splits = [
        probes.Split(seen[split][0][[layer]], own)
        for split, own in zip(("train", "validation"), labels, strict=False)
    ]
    return probes.fit(*splits, n_classes, seeds=(seed,))


def share_right(probe: probes.Probes, states: np.ndarray, labels: np.ndarray, layer: int) -> float:
    predicted = probe.predict(states[[layer]])[0, 0]
    return sum(int(a == b) for a, b in zip(predicted, labels, strict=True)) / len(labels)


# --- the tables against one probe at a time -------------------------------------------------------


def test_monolingual_is_each_probe_trained_alone(local: Path, encoder: loading.Encoder) -> None:
    table = run("monolingual", replace(POS, path=local), list(SIZES), control=True)
    assert len(table) == 3 * 7 * 2
    assert table[["model", "task"]].drop_duplicates().values.tolist() == [["mini-xlmr", "POS"]]
    assert table["checkpoint"].eq(encoder.step).all()
    assert list(dict.fromkeys(table["language"])) == list(SIZES)
    assert table["f1"].isna().all()
    rows = table.set_index(["language", "layer", "seed"])
    for code in SIZES:
        parts = {
            split: labelled.load_labelled("POS", code, split, path=local)
            for split in labelled.SPLITS
        }
        seen = seen_by(encoder, parts)
        test_states, test_labels, _ = seen["test"]
        controls = probes.control_labels([own[2] for own in seen.values()], seen["train"][1], 17, 0)
        commonest = np.bincount(seen["train"][1], minlength=17).argmax()
        for layer, seed in ((0, 0), (6, 3)):
            row = rows.loc[(code, layer, seed)]
            assert row["n_train"] == parts["train"].n_words == len(seen["train"][1])
            assert row["n_test"] == parts["test"].n_words
            assert row["n_lost"] == 0
            assert row["majority"] == pytest.approx((test_labels == commonest).mean())
            probe = alone(seen, layer, seed, 17)
            right = share_right(probe, test_states, test_labels, layer)
            assert row["epoch"] == probe.epochs[0, 0]
            assert row["validation_loss"] == pytest.approx(probe.validation_loss[0, 0], rel=1e-4)
            assert row["accuracy"] == pytest.approx(right, abs=1.5 / len(test_labels))
            control = alone(seen, layer, seed, 17, controls)
            right = share_right(control, test_states, controls[2], layer)
            assert row["control_accuracy"] == pytest.approx(right, abs=1.5 / len(test_labels))
    assert (table["selectivity"] == table["accuracy"] - table["control_accuracy"]).all()
    assert table["accuracy"].nunique() > 20  # the rows are not copies of each other


def test_transfer_is_each_probe_tested_elsewhere(local: Path, encoder: loading.Encoder) -> None:
    table = run("cross_lingual", replace(POS, path=local), list(SIZES))
    assert len(table) == 9 * 7 * 2
    rows = table.set_index(["source", "target", "layer", "seed"])
    assert rows.index.is_unique
    tests = seen_by(
        encoder,
        {
            code: labelled.load_labelled("POS", code, "test", source="pud", path=local)
            for code in SIZES
        },
    )
    for source in SIZES:
        seen = seen_by(
            encoder,
            {
                split: labelled.load_labelled("POS", source, split, path=local)
                for split in ("train", "validation")
            },
        )
        commonest = np.bincount(seen["train"][1], minlength=17).argmax()
        for layer, seed in ((0, 3), (5, 0)):
            probe = alone(seen, layer, seed, 17)
            for target, (states, labels, _) in tests.items():
                row = rows.loc[(source, target, layer, seed)]
                right = share_right(probe, states, labels, layer)
                assert row["n_test"] == len(labels)
                assert row["accuracy"] == pytest.approx(right, abs=1.5 / len(labels))
                assert row["majority"] == pytest.approx((labels == commonest).mean())


def test_pairs_are_probed_by_their_joint_or_concatenated_states(encoder: loading.Encoder) -> None:
    for form in words.FORMS:
        setup = replace(NLI, form=form, max_length=40)
        table = run("monolingual", setup, ["en", "zh"], control=True)
        rows = table.set_index(["language", "layer"])
        for code in ("en", "zh"):
            parts = splits_of(setup, code)
            seen, n_cut = {}, 0
            for split, part in parts.items():
                found = words.embed_pairs(
                    encoder, part.first, part.second, form=form, max_length=40
                )
                seen[split], n_cut = (found.states, part.labels), n_cut + found.n_cut
            states, labels = seen["test"]
            right = share_right(alone(seen, 6, 0, 3), states, labels, 6)
            row = rows.loc[(code, 6)]
            assert row["accuracy"] == pytest.approx(right, abs=1.5 / len(labels))
            assert (row["n_train"], row["n_test"]) == (24, 30)
            assert row["n_lost"] == n_cut
        assert form == "concatenated" or table["n_lost"].gt(0).all()  # the maximum was reached


def test_a_pair_is_a_type_of_its_own(encoder: loading.Encoder) -> None:
    inputs = [probing.probe_input(encoder, part, NLI) for part in splits_of(NLI, "en").values()]
    types = [name for part in inputs for name in part.types]
    assert len(types) == len(set(types)) == 24 + 9 + 30
    assert not any(part.places for part in inputs)


# --- entities -------------------------------------------------------------------------------------


def test_transfer_of_entities_is_literal_on_whole_sentences(encoder: loading.Encoder) -> None:
    """Where words are lost they are O; accuracies are those without entities."""
    setup, codes = replace(NER, n_train=900, n_test=400, max_length=24), ["de", "fr"]
    plain = run("cross_lingual", setup, codes)
    table = run("cross_lingual", setup, codes, entities=True)
    pd.testing.assert_frame_equal(table.drop(columns=["n_entities", "f1"]), plain)
    rows = table.set_index(["source", "target", "layer", "seed"])
    seen = seen_by(encoder, splits_of(setup, "de"), 24)
    for target in codes:
        test = setup.load(target, "test")
        states = seen_by(encoder, {"test": test}, 24)["test"][0]
        kept = words.embed_words(encoder, test.sentences, max_length=24)
        assert states.shape[1] < test.n_words
        for layer, seed in ((2, 3), (6, 0)):
            predicted = alone(seen, layer, seed, 7).predict(states[[layer]])[0, 0]
            guessed = [["O"] * len(tags) for tags in test.tags]
            for sentence, word, index in zip(kept.sentence, kept.word, predicted, strict=True):
                guessed[sentence][word] = labelled.NER[index]
            expected = literal_f1([list(tags) for tags in test.tags], guessed)
            row = rows.loc[("de", target, layer, seed)]
            assert row["f1"] == pytest.approx(expected, abs=0.01)
            assert row["n_entities"] == sum(tag[0] == "B" for tags in test.tags for tag in tags)
    assert rows["f1"].nunique() >= 5


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ProbeSetup("NLI", source="sick", path="x"), "sick is shipped whole"),
        (lambda: SICK.load("de", "test"), r"\(sick\) is shipped in de; there is en, nl"),
    ],
)
def test_what_cannot_be_probed_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


# --- how many examples, of which languages --------------------------------------------------------


@pytest.mark.parametrize("n", [1, 40, 333, 10**6])
def test_sentences_are_drawn_until_they_hold_enough_words(n: int) -> None:
    whole = labelled.load_labelled("POS", "tr", "train")
    part = replace(POS, n_train=n, seed=5).load("tr", "train")
    kept: list[int] = []
    for position in np.random.default_rng(5).permutation(len(whole)):
        if sum(len(whole.sentences[i]) for i in kept) >= n:
            break
        kept.append(position)
    assert part.sentences == tuple(whole.sentences[i] for i in sorted(kept))
    assert part.tags == tuple(whole.tags[i] for i in sorted(kept))
    assert part.ids == tuple(whole.ids[i] for i in sorted(kept))


def test_parallel_text_is_drawn_at_the_same_positions() -> None:
    pairs = [NLI.load(code, "test").ids for code in probing.probed_languages("NLI")]
    assert len(set(pairs)) == 1
    drawn = replace(POS, n_test=200)
    codes = probing.probed_languages("POS", "CL")
    ids = [set(drawn.load(code, "test", "pud").ids) for code in codes]
    ids.sort(key=len)
    assert len(ids[0]) < len(ids[-1])  # words a sentence differ
    assert all(fewer <= more for fewer, more in pairwise(ids))


@pytest.mark.parametrize("task", ["POS", "NER", "NLI"])
def test_languages_are_those_ticked_that_have_data(task: str) -> None:
    for setup in ("mono", "CL"):
        found = probing.probed_languages(task, setup)
        ticked = languages.for_task(task, setup)
        assert found == tuple(code for code in ticked if code in found)
        assert probing.probed_languages(task, setup, path="somewhere") == ticked
        shipped = catalogue("labelled").query("task == @task")
        # What transfer is tested on is there wherever there is something to train on.
        needed = set(shipped["source"]) - (set() if setup == "CL" else {"pud"})
        for code in ticked:
            there = set(shipped.loc[shipped["language"] == code, "source"])
            enough = needed <= there if task == "POS" else bool(there)
            assert (code in found) == enough
    assert set(probing.probed_languages("NER", source="uner")) == {"da", "hr", "sk", "sr", "sv"}


# --- portions and what is kept --------------------------------------------------------------------


def never(*_: object, **__: object) -> None:
    raise AssertionError("computed again")


def test_results_tell_apart_what_a_score_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = replace(NER, n_train=60, n_validation=30, n_test=60, seeds=(0,))
    first = run("monolingual", setup, ["de"])
    monkeypatch.setattr(probing, "probe_input", never)
    for change in ({}, {"form": "concatenated"}, {"path": None}):  # of which nothing is different
        pd.testing.assert_frame_equal(run("monolingual", replace(setup, **change), ["de"]), first)
    changes = [
        {"n_train": 90},
        {"n_validation": 50},
        {"n_test": 90},
        {"seed": 2},
        {"subword": "mean"},
        {"max_length": 30},
        {"hidden": 4},
        {"seeds": (1,)},
    ]
    calls = [(replace(setup, **change), {}) for change in changes]
    more = [{"control": True}, {"entities": True}]
    calls += [(setup, options) for options in [*more, {"name": history("mini-xlmr")[0]}]]
    for other, options in calls:
        with pytest.raises(AssertionError, match="computed again"):
            run("monolingual", other, ["de"], **options)


@pytest.mark.parametrize(
    ("column", "change", "apart"),
    [
        ("accuracy", 0.1, 0.05),  # of one seed of two
        ("control_accuracy", -0.1, 0.05),
        ("validation_loss", 1.0, 0),
        ("n_test", 1, np.inf),
    ],
)
def test_results_are_apart_by_their_accuracies(column: str, change: float, apart: float) -> None:
    table = pd.DataFrame({"layer": [0, 0], "seed": [0, 1], "n_test": [9, 9]})
    table[["accuracy", "control_accuracy", "validation_loss"]] = 0.5
    other = table.copy()
    other.loc[0, column] += change
    assert probing._apart(table, other) == pytest.approx(apart)
    assert probing._apart(table, table) == 0
    assert probing._apart(table, table.iloc[:-1]) == np.inf


def test_results_of_transfer_are_apart_by_what_is_right_and_by_f1() -> None:
    value = {
        "right": np.array([[[5, 5]]]),
        "n_test": np.array([10]),
        "majority": np.array([0.5]),
        "found": np.array([[[2, 2]]]),
        "marked": np.array([[[4, 4]]]),
        "entities": np.array([4]),  # F1 of both seeds: 2 * 2 / 8
    }
    for change, apart in (
        ({}, 0),
        ({"right": np.array([[[5, 9]]])}, 0.2),
        ({"found": np.array([[[2, 3]]])}, 0.125),
        ({"entities": np.array([5])}, np.inf),
        ({"n_test": np.array([11])}, np.inf),
    ):
        assert probing._apart(value, value | change) == pytest.approx(apart)
