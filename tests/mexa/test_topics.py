"""Topic probes: against one probe written out, on states made for it, and what is kept."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import xlx
from tests import tiny
from xlx.mexa import topics
from xlx.models import embeddings, loading, probes
from xlx.models.embeddings import SentenceStates
from xlx.text import downstream, labelled
from xlx.text.files import TextError
from xlx.text.labelled import TOPICS

SETUP = topics.TopicSetup(n_train=60, n_validation=21, n_test=31, seeds=(0, 3))
LANGUAGES = ("de", "en", "ja")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder that takes 40 subwords, fewer than most of the sentences have."""
    return tiny.save(tmp_path_factory.mktemp("models") / "tiny-llama", "llama", positions=40)


@pytest.fixture(scope="module")
def table(model: Path) -> pd.DataFrame:
    return topics.probe_topics(model, SETUP, LANGUAGES)


def calls(monkeypatch: pytest.MonkeyPatch, stop_at: int | None = None) -> list[tuple[str, ...]]:
    """What is embedded from here on; the call with number `stop_at` is interrupted."""
    embed, seen = embeddings.embed, []

    def counted(encoder: loading.Encoder, sentences: object, **options: object) -> SentenceStates:
        seen.append(tuple(sentences))
        if len(seen) == stop_at:
            raise KeyboardInterrupt
        return embed(encoder, sentences, **options)

    monkeypatch.setattr(embeddings, "embed", counted)
    return seen


# --- a local copy whose sentences say what their states are ---------------------------------------


def rows(language: str, part: str, n: int) -> str:
    """A file of SIB-200 with n sentences a topic: "language part number topic"."""
    lines = ["index_id\tcategory\ttext"]
    for i in range(n * len(TOPICS)):
        topic = TOPICS[i * 5 % 7]  # so that neither half has the topics of the other
        lines.append(f"{i}\t{topic}\t{language} {part} {i} {topic}")
    return "\n".join(lines) + "\n"


def put(folder: Path, label: str, **parts: str) -> None:
    (folder / "data" / label).mkdir(parents=True, exist_ok=True)
    for part, text in parts.items():
        (folder / "data" / label / f"{part}.tsv").write_text(text, encoding="utf-8")


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """The public layout: German has all parts, the others only a test."""
    folder = tmp_path / "sib"
    for label in ("deu_Latn", "eng_Latn", "arb_Arab", "arb_Latn", "tzm_Tfng"):
        put(folder, label, test=rows(label, "test", 6))
    put(folder, "deu_Latn", train=rows("deu_Latn", "train", 8), dev=rows("deu_Latn", "dev", 4))
    put(folder, "annotation", test="not a language")
    return folder


def made_up(offsets: dict[str, float]) -> Callable[..., SentenceStates]:
    """Three layers: chance; the topic, where the language lies elsewhere; a blurred topic."""

    def embed(encoder: loading.Encoder, sentences: tuple[str, ...], **_: object) -> SentenceStates:
        states = np.zeros((3, len(sentences), 8), dtype=np.float32)
        for i, sentence in enumerate(sentences):
            language, _part, _number, topic = sentence.split(maxsplit=3)
            rng = np.random.default_rng(list(sentence.encode()))
            states[:, i, :7] = rng.normal(size=(3, 7)) * np.array([1, 0.02, 0.7])[:, None]
            states[1:, i, TOPICS.index(topic)] += 1
            states[:, i, 0] += offsets.get(language, 0)  # towards the first topic
        return SentenceStates(states, 0, 0.0)

    return embed


def test_centred_states_are_right_where_only_the_place_of_a_language_differs(
    local: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "embed", made_up({"arb_Arab": 9.0, "eng_Latn": 9.0}))
    setup = topics.TopicSetup("de", path=local, seeds=(0, 1))
    table = topics.probe_topics(model, setup, None)
    assert topics.chosen_layer(table) == {"tiny-llama": 1}
    found = {
        centred: topics.task_scores(table, centred=centred).set_index("language")["score"]
        for centred in (True, False)
    }
    assert tuple(found[True].index) == ("ar", "ar_Latn", "de", "en", "zgh")
    assert (found[True] == 1).all()
    assert (found[False].loc[["de", "ar_Latn", "zgh"]] == 1).all()  # nothing to take out
    assert (found[False].loc[["ar", "en"]] < 1 / 7 + 0.01).all()  # all are called one topic
    chance = topics.task_scores(table, 0)
    assert chance["score"].mean() < 0.3
    assert table["majority"].to_numpy() == pytest.approx(1 / 7)


def test_languages_are_those_of_the_data(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = topics.topic_languages()
    assert len(shipped) == len(set(shipped)) == 205
    assert {"en", "de", "ar", "ar_Latn", "zgh"} <= set(shipped)
    assert topics.topic_languages(local) == ("ar", "ar_Latn", "de", "en", "zgh")
    monkeypatch.chdir(local / "data" / "deu_Latn")
    assert topics.topic_languages(".") == ("de",)


def test_a_local_copy_is_trained_on_and_tested_by_code_or_label(local: Path, model: Path) -> None:
    setup = topics.TopicSetup("deu_Latn", n_train=30, path=local, seeds=(0,))
    table = topics.probe_topics(model, setup, ["arb_Latn", "tzm_Tfng", "ar_Latn", "de"])
    assert tuple(table["language"].unique()) == ("ar_Latn", "zgh", "de")
    assert len(table) == 3 * 3 * 2
    assert set(table["source"]) == {"de"}
    assert set(table["n"]) == {42}
    sizes = [len(setup.load("de", split)) for split in labelled.SPLITS]
    assert sizes == [30, 28, 42]
    assert setup.load("de", "train").first[0].startswith("deu_Latn train")
    with pytest.raises(TextError, match="no train part of sib200 in en"):
        topics.probe_topics(model, topics.TopicSetup(path=local), ["de"])
    with pytest.raises(TextError, match="shipped in de, only in English"):
        topics.probe_topics(model, topics.TopicSetup("de"), ["de"])


# --- against one probe at a time ------------------------------------------------------------------


def test_a_row_is_one_probe_trained_and_tested_alone(model: Path, table: pd.DataFrame) -> None:
    encoder = loading.load(model)
    assert len(table) == 3 * 3 * 2 * 2  # languages, layers, seeds, as they are and centred
    assert (set(table["model"]), set(table["checkpoint"])) == ({"tiny-llama"}, {0})
    assert set(table["source"]) == {"en"}
    assert list(table["language"].unique()) == list(LANGUAGES)

    def seen(language: str, split: str, n: int) -> tuple[SentenceStates, np.ndarray]:
        texts = labelled.load_labelled("TOPIC", language, split).take(n, 1)
        return embeddings.embed(encoder, texts.first), texts.labels

    train, validation = seen("en", "train", 60), seen("en", "validation", 21)
    commonest = np.bincount(train[1]).argmax()
    alone = {}
    for layer, seed in np.ndindex(3, 2):
        splits = [probes.Split(part.states[[layer]], own) for part, own in (train, validation)]
        seed = SETUP.seeds[seed]
        alone[layer, seed] = probes.fit(*splits, 7, seeds=(seed,))
    by = table.set_index(["language", "layer", "seed", "centred"])
    assert by.index.is_unique
    for language in LANGUAGES:
        test, labels = seen(language, "test", 31)
        assert test.n_cut > 0
        for (layer, seed), probe in alone.items():
            own = test.states[[layer]]
            moved = own - own.mean(axis=1) + train[0].states[[layer]].mean(axis=1)
            for centred, states in ((False, own), (True, moved)):
                right = probe.predict(states)[0, 0] == labels
                row = by.loc[(language, layer, seed, centred)]
                assert (row["n"], row["n_cut"]) == (31, test.n_cut)
                assert row["accuracy"] == pytest.approx(right.mean(), abs=1.5 / 31)
                assert row["even"] == pytest.approx(right[::2].mean(), abs=1.5 / 16)
                assert row["odd"] == pytest.approx(right[1::2].mean(), abs=1.5 / 15)
                assert row["majority"] == pytest.approx((labels == commonest).mean())
                loss = probe.validation_loss[0, 0]
                assert row["validation_loss"] == pytest.approx(loss, rel=1e-4)
    whole = (16 * table["even"] + 15 * table["odd"]) / 31
    assert whole.to_numpy() == pytest.approx(table["accuracy"])
    assert table["accuracy"].nunique() > 6  # the rows are not copies of each other


def test_all_sentences_unless_fewer_are_asked_for() -> None:
    setup = topics.TopicSetup()
    assert [len(setup.load("en", split)) for split in labelled.SPLITS] == [701, 99, 204]
    whole = {code: labelled.load_labelled("TOPIC", code, "test") for code in ("de", "ja")}
    assert setup.load("de", "test").table_hash() == whole["de"].table_hash()
    fewer = replace(setup, n_test=20, seed=5)
    assert fewer.load("ja", "test").table_hash() == whole["ja"].take(20, 5).table_hash()
    assert fewer.load("ja", "test").ids == fewer.load("ar_Latn", "test").ids


def test_a_checkpoint_has_its_series_and_step(tmp_path: Path) -> None:
    folder = tiny.series(tmp_path / "grown", (0, 7), architecture="llama", positions=16, width=16)
    setup = replace(SETUP, n_train=20, n_validation=7, n_test=8, seeds=(0,))
    for checkpoint in loading.checkpoints(str(folder)):
        table = topics.probe_topics(checkpoint, setup, ["de"])
        assert set(table["model"]) == {"grown"}
        assert set(table["checkpoint"]) == {checkpoint.step}


# --- what is kept ---------------------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_where_it_was(
    model: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = [SETUP.load(language, "test").first for language in LANGUAGES]
    trained = [SETUP.load("en", split).first for split in ("train", "validation")]
    with monkeypatch.context() as patch:
        first = calls(patch, stop_at=2 + 3)
        with pytest.raises(KeyboardInterrupt):
            topics.probe_topics(model, SETUP, LANGUAGES)
    assert first == [*trained, *tests]
    with monkeypatch.context() as patch:
        second = calls(patch)
        found = topics.probe_topics(model, SETUP, LANGUAGES)
    assert second == [*trained, tests[2]]  # the first two were kept
    pd.testing.assert_frame_equal(found, table)
    with monkeypatch.context() as patch:
        third = calls(patch)
        patch.setattr(probes, "fit", lambda *_, **__: pytest.fail("trained again"))
        pd.testing.assert_frame_equal(topics.probe_topics(model, SETUP, LANGUAGES), table)
        backwards = topics.probe_topics(model, SETUP, LANGUAGES[::-1])
    assert third == []
    assert list(backwards["language"].unique()) == list(LANGUAGES[::-1])


def test_results_tell_apart_what_a_score_depends_on(
    model: Path, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.probe_topics(model, SETUP, LANGUAGES)
    monkeypatch.setattr(probes, "fit", lambda *_, **__: pytest.fail("trained again"))
    for same in (SETUP, replace(SETUP, source="eng_Latn"), replace(SETUP, path=None)):
        pd.testing.assert_frame_equal(topics.probe_topics(model, same, LANGUAGES), table)
    changes = [
        {"n_train": 61}, {"n_validation": 22}, {"n_test": 30}, {"seed": 2}, {"pooling": "last"},
        {"max_length": 30}, {"hidden": 4}, {"seeds": (0,)}, {"seeds": (3, 0)},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(pytest.fail.Exception, match="trained again"):
            topics.probe_topics(model, replace(SETUP, **change), LANGUAGES)
    other = tiny.save(tmp_path / "another", "llama", positions=40, seed=1)
    for name, codes in ((other, LANGUAGES), (model, ("de", "fr"))):
        with pytest.raises(pytest.fail.Exception, match="trained again"):
            topics.probe_topics(name, SETUP, codes)
    with xlx.settings(dtype="bfloat16"), pytest.raises(pytest.fail.Exception, match="again"):
        topics.probe_topics(model, SETUP, LANGUAGES)


def test_several_models_are_one_below_the_other(
    model: Path, table: pd.DataFrame, tmp_path: Path
) -> None:
    other = tiny.save(tmp_path / "another", "llama", positions=40, seed=1)
    both = topics.probe_topics([other, model], SETUP, LANGUAGES)
    assert list(both["model"].unique()) == ["another", "tiny-llama"]
    assert len(both) == 2 * len(table)
    own = both[both["model"] == "tiny-llama"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, table)


def test_results_are_apart_by_their_accuracies(table: pd.DataFrame) -> None:
    assert topics._difference(table, table) == 0
    other = table.assign(accuracy=table["accuracy"] + 0.1 * (table["seed"] == 3))
    assert topics._difference(table, other) == pytest.approx(0.05)  # of the mean over two seeds
    assert topics._difference(table, table.assign(n_cut=0)) == np.inf


# --- errors ---------------------------------------------------------------------------------------


def test_requests_that_cannot_be_met(local: Path, model: Path) -> None:
    with pytest.raises(ValueError, match="no language to test on"):
        topics.probe_topics(model, SETUP, [])
    with pytest.raises(ValueError, match="no language to test on"):
        topics.probe_topics(model, replace(SETUP, path=local / "nowhere"), None)
    with pytest.raises(TextError, match=r"No labelled data .sib200. is shipped in gv"):
        topics.probe_topics(model, SETUP, ["de", "gv"])
    with pytest.raises(ValueError, match="pooling 'median' is not one of"):
        topics.probe_topics(model, replace(SETUP, pooling="median"), ["de"])
    with pytest.raises(TextError, match="cannot take 0"):
        topics.probe_topics(model, replace(SETUP, n_test=0), ["de"])


@pytest.mark.parametrize("change", ["fewer", "other ids", "another order"])
def test_other_test_sentences_are_refused_by_language(
    change: str, local: Path, model: Path
) -> None:
    header, *lines = rows("arb_Latn", "test", 6).splitlines()
    lines = {
        "fewer": lines[:-1],
        "other ids": [*lines[:-1], lines[-1].replace("41", "99")],
        "another order": lines[::-1],
    }[change]
    put(local, "arb_Latn", test="\n".join([header, *lines]) + "\n")
    setup = topics.TopicSetup("de", path=local)
    with pytest.raises(ValueError, match=r"test sentences in ar_Latn are not those in de .*order"):
        topics.probe_topics(model, setup, ["ar", "arb_Latn", "en"])


# --- tables ---------------------------------------------------------------------------------------


def made(scores: dict[tuple[str, str, int, int, bool], float], **columns: object) -> pd.DataFrame:
    """What `transfer` returns, from (model, language, layer, seed, centred) → accuracy."""
    table = pd.DataFrame(
        [(*key, value) for key, value in scores.items()],
        columns=["model", "language", "layer", "seed", "centred", "accuracy"],
    )
    half = {"even": table["accuracy"] / 2, "odd": table["accuracy"] / 4}
    return table.assign(
        **{"source": "en", "checkpoint": 0, "n": 21, "validation_loss": 1.0, **half, **columns}
    )


@pytest.fixture
def two_models() -> pd.DataFrame:
    """Accuracies that add up by digit; the losses favour layer 1 of one model, 2 of the other."""
    scores = {
        (name, language, layer, seed, centred): (
            0.5 * (name == "b") + 0.2 * (language == "de") + 0.04 * layer + 0.01 * seed
        )
        * (1 if centred else 0.5)
        for name in ("b", "a")
        for language in ("en", "de")
        for layer in range(3)
        for seed in (0, 1)
        for centred in (False, True)
    }
    table = made(scores)
    best = table["model"].map({"a": 2, "b": 1})
    # One seed at another layer is lower still, but not the mean over seeds.
    loss = 1 + (table["layer"] - best).abs() + 0.5 * table["seed"]
    table["validation_loss"] = loss.mask((table["layer"] == 0) & (table["seed"] == 1), 0.9)
    return table


def test_the_layer_is_chosen_by_validation_loss_alone(two_models: pd.DataFrame) -> None:
    assert topics.chosen_layer(two_models) == {"a": 2, "b": 1}
    accuracies = two_models.assign(accuracy=two_models["layer"] == 0, even=1.0, odd=0.0)
    assert topics.chosen_layer(accuracies) == {"a": 2, "b": 1}
    losses = two_models["layer"].map({0: 1.0, 1: 2.0, 2: 3.0})
    assert topics.chosen_layer(two_models.assign(validation_loss=losses)) == {"a": 0, "b": 0}


def test_scores_of_the_task_by_layer_and_half(two_models: pd.DataFrame) -> None:
    def scores(*arguments: object, **options: object) -> dict[tuple[str, str], float]:
        table = topics.task_scores(two_models, *arguments, **options)
        assert tuple(table) == downstream.SCORE_COLUMNS
        assert set(table["task"]) == {topics.TOPIC_TASK} == {"SIB-200"}
        share, n = table["score"], table["n"]
        assert table["stderr"].to_numpy() == pytest.approx(np.sqrt(share * (1 - share) / n))
        return dict(zip(zip(table["model"], table["language"], strict=True), share, strict=True))

    at = {("b", "en"): 0.505, ("b", "de"): 0.705, ("a", "en"): 0.005, ("a", "de"): 0.205}
    assert list(scores()) == list(at)  # in the order of the table
    for layer in range(3):
        assert scores(layer) == pytest.approx({key: x + 0.04 * layer for key, x in at.items()})
    chosen = {key: x + 0.04 * (1 if key[0] == "b" else 2) for key, x in at.items()}
    assert scores() == scores("chosen") == pytest.approx(chosen)
    assert scores("mean") == pytest.approx({key: x + 0.04 for key, x in at.items()})
    assert scores(0, centred=False) == pytest.approx({key: x / 2 for key, x in at.items()})
    assert scores(0, accuracy="even") == pytest.approx({key: x / 2 for key, x in at.items()})
    assert scores(0, accuracy="odd") == pytest.approx({key: x / 4 for key, x in at.items()})
    sizes = {
        kind: set(topics.task_scores(two_models, accuracy=kind)["n"])
        for kind in ("accuracy", "even", "odd")
    }
    assert sizes == {"accuracy": {21}, "even": {11}, "odd": {10}}


@pytest.mark.parametrize("layer", [3, -1, "last"])
def test_a_layer_that_is_not_there(layer: int | str, two_models: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=rf"no layer {layer!r}: .*'mean' or a number of 0, 1, 2$"):
        topics.task_scores(two_models, layer)


def test_reliability_is_the_correlation_of_the_halves_stepped_up() -> None:
    rng = np.random.default_rng(3)
    codes = [f"x{i}" for i in range(40)]
    even, odd = rng.uniform(size=(2, 40))
    odd = (even + odd) / 2
    table = made({("a", code, 0, 0, True): 0.0 for code in codes}, even=even, odd=odd)
    r = stats.pearsonr(even, odd).statistic
    found = topics.topic_reliability(table)
    assert found == {"a": pytest.approx(2 * r / (1 + r))}
    assert 0.5 < r < found["a"] < 1
    # The source language, however far from the rest, is not among them, nor is the raw score.
    apart = made(
        {("a", "en", 0, 0, True): 0.0} | {("a", code, 0, 0, False): 0.0 for code in codes},
        even=1.0, odd=-1.0,
    )  # fmt: skip
    assert topics.topic_reliability(pd.concat([table, apart])) == found
    # The order of a table does not matter, and each model has its own.
    other = table.assign(model="b", odd=table["even"] / 2 + 0.1)
    both = topics.topic_reliability(pd.concat([table, other]).sample(frac=1, random_state=1))
    assert both == pytest.approx({"a": found["a"], "b": 1.0})


def test_reliability_is_of_the_layer_asked_for() -> None:
    rng = np.random.default_rng(4)
    keys = [("a", f"x{i}", layer, 0, True) for layer in (0, 1) for i in range(12)]
    even, odd = rng.uniform(size=(2, 24))
    table = made(dict.fromkeys(keys, 0.0), even=even, odd=odd)
    table["validation_loss"] = 1.0 - table["layer"]
    pairs = {0: (even[:12], odd[:12]), 1: (even[12:], odd[12:])}
    pairs["chosen"] = pairs[1]
    pairs["mean"] = [half.reshape(2, 12).mean(axis=0) for half in (even, odd)]
    for layer, halves in pairs.items():
        r = stats.pearsonr(*halves).statistic
        assert topics.topic_reliability(table, layer)["a"] == pytest.approx(2 * r / (1 + r))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("even", "odd", "expected"),
    [
        ([0.25, 0.5, 0.75], [0.5, 0.5, 0.5], np.nan),
        ([0.25], [0.5], np.nan),
        ([0.25, 0.5, 0.75], [0.125, 0.25, 0.375], 1),
    ],
)
def test_reliability_where_little_varies(
    even: list[float], odd: list[float], expected: float
) -> None:
    keys = {("a", f"x{i}", 0, 0, True): 0.0 for i in range(len(even))}
    found = topics.topic_reliability(made(keys, even=even, odd=odd))
    assert found == {"a": pytest.approx(expected, nan_ok=True)}


@pytest.mark.parametrize("even", [[0.25, 0.5], [0.1, 0.2], [0.0, 1.0]])
def test_halves_that_disagree_entirely_measure_nothing(even: list[float]) -> None:
    keys = {("a", f"x{i}", 0, 0, True): 0.0 for i in range(2)}
    assert topics.topic_reliability(made(keys, even=even, odd=even[::-1]))["a"] < -1e6


def test_several_checkpoints_of_a_model_are_not_mixed() -> None:
    table = pd.DataFrame(
        {
            "model": "a", "checkpoint": [1, 2], "source": "en", "language": "de", "layer": 0,
            "seed": 0, "centred": True, "n": 10, "accuracy": [0.1, 0.9], "even": 0.1, "odd": 0.1,
            "majority": 0.2, "validation_loss": 1.0, "n_cut": 0,
        }
    )  # fmt: skip
    with pytest.raises(ValueError, match="several checkpoints of a"):
        topics.task_scores(table)
