"""Transfers: tasks in several languages, and what their runs measure, against literal loops."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from xlx import (
    alignment,
    corpora,
    embeddings,
    examples,
    finetuning,
    labelled,
    mexa,
    models,
    transfers,
)
from xlx import transferability as tr
from xlx.examples import Examples, ExamplesError
from xlx.finetuning import Recipe, Run, Sparing
from xlx.settings import current, settings
from xlx.transfers import Task, Transfers

CODES = ("en", "de", "ja")
N_TRAIN, N_TEST = 12, 7


def made(language: str, part: str = "train", n: int = N_TRAIN, **changes: object) -> Examples:
    texts = [f"{text} {language}" for text in tiny.SENTENCES]
    found = Examples(
        name=f"made {language} {part}",
        language=language,
        first=tuple(texts[i % len(texts)] for i in range(n)),
        second=None,
        labels=np.arange(n) % 2,
        classes=("no", "yes"),
        ids=tuple(f"{part}:{i}" for i in range(n)),
    )
    return replace(found, **changes)


def task(codes: Sequence[str] = CODES, tested: bool = True) -> Task:
    test = {code: made(code, "test", N_TEST) for code in codes} if tested else {}
    return Task("made", {code: made(code) for code in codes}, test, {})


def made_run(of: Task, rng: np.random.Generator, **about: object) -> Run:
    """What a run would keep, drawn at random; the source is learnt better and better."""
    names = {"model": "one", "source": "en", "algorithm": "vanilla", "seed": 1} | about
    rate = names.pop("learning_rate", 1e-3)
    steps = np.array([5, 10, 12])
    predictions, logits = {}, {}
    for part, sets in (("train", of.train), ("test", of.test)):
        for code, one in sets.items():
            wrong = rng.random((3, len(one))) < 0.45
            if part == "train" and code == names["source"]:
                wrong &= np.arange(len(one)) < np.array([[4], [2], [0]])
            predicted = np.where(wrong, 1 - one.labels, one.labels)
            predictions[f"{part} {code}"] = predicted
            logits[f"{part} {code}"] = np.eye(2, dtype=np.float16)[predicted]
    losses = np.zeros(12, np.float32)
    return Run(**names, learning_rate=rate, steps=steps, losses=losses, predictions=predictions,
               logits=logits, n_cut={})  # fmt: skip


def runs(of: Task, seed: int = 0) -> Transfers:
    """Two models, two sources, two algorithms, two seeds and two rates."""
    rng = np.random.default_rng(seed)
    return Transfers(
        of,
        tuple(
            made_run(of, rng, model=m, source=s, algorithm=a, seed=k, learning_rate=rate)
            for m in ("one", "two")
            for s in ("en", "ja")
            for a in ("vanilla", "xtune")
            for k in (1, 2)
            for rate in (1e-3, 1e-4)
        ),
    )


def errors(run: Run, part: str, code: str, of: Task) -> list[list[int]]:
    """1 for each wrong answer, checkpoint by checkpoint."""
    labels = getattr(of, part)[code].labels
    return [
        [int(guess != label) for guess, label in zip(row, labels, strict=True)]
        for row in run.predictions[f"{part} {code}"]
    ]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


# --- tasks ----------------------------------------------------------------------------------------


def test_a_task_that_is_not_aligned_is_refused() -> None:
    train = {code: made(code) for code in ("en", "de")}
    swapped = train | {"de": made("de").at([1, 0, *range(2, N_TRAIN)])}
    with pytest.raises(ExamplesError, match=r"position 0 is example train:1 in de .* in en"):
        Task("made", swapped, {}, {})
    other = train | {"de": made("de", labels=1 - np.arange(N_TRAIN) % 2)}
    with pytest.raises(ExamplesError, match=r"example train:0 is yes in de and no in en"):
        Task("made", other, {}, {})
    test = {"en": made("en", "test", 4), "de": made("de", "test", 3)}
    with pytest.raises(ExamplesError, match=r"made de test has 3 examples and made en test 4"):
        Task("made", train, test, {})


def test_training_and_test_set_must_have_the_same_languages() -> None:
    train = {code: made(code) for code in ("en", "de")}
    with pytest.raises(ExamplesError, match=r"training set has en, de and the test set en"):
        Task("made", train, {"en": made("en", "test")}, {})


def test_a_task_says_what_it_is() -> None:
    assert repr(task()) == "Task(made: 12 examples to train and 7 to test, in en de ja)"
    assert repr(task(tested=False)).endswith("12 examples to train and 0 to test, in en de ja)")
    assert task().guess == 0.5


def test_a_labelled_task_is_the_shipped_data_in_all_languages() -> None:
    found = transfers.labelled_task("NLI", ["ru", "en"])
    assert found.languages == ("ru", "en")
    assert found.guess == pytest.approx(2 / 3)
    for part in ("train", "test"):
        for code in found.languages:
            shipped = labelled.load("NLI", code, part)
            one = getattr(found, part)[code]
            assert (one.first, one.second, one.ids) == (shipped.first, shipped.second, shipped.ids)
            assert tuple(one.classes[label] for label in one.labels) == shipped.labels
    assert set(found.left_out["train"].values()) == {0}


def test_same_or_other_is_a_task_without_labels() -> None:
    codes = ["de", "en"]
    found = transfers.labelled_task("same or other", codes, n_train=20, n_test=10, seed=2)
    text = corpora.load("wmt24pp", codes, drop_duplicates=True)
    parts = examples.same_or_other_parts(text, "de", 20, 10, 2)
    for part, made_of in zip((found.train, found.test), parts, strict=True):
        assert {code: one.text_hash() for code, one in part.items()} == {
            code: one.text_hash() for code, one in made_of.items()
        }
    assert (found.guess, found.languages) == (0.5, ("de", "en"))
    with pytest.raises(ValueError, match="how many pairs"):
        transfers.labelled_task("same or other", codes, n_train=20)


def test_memorisation_tells_changed_labels_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of = task()
    asked = []

    def runs(names, tasks, sources, recipes, seeds, *, sparing=None) -> list[Transfers]:
        asked.extend(tasks)
        rng = np.random.default_rng(0)
        return [
            Transfers(one, tuple(made_run(one, rng, seed=seed) for seed in seeds)) for one in tasks
        ]

    strings = pd.DataFrame({"source": ["en"], "target": ["de"], "interlingual": [0.25]})
    monkeypatch.setattr(transfers, "transfer_each", runs)
    monkeypatch.setattr(transfers, "shared_subwords", lambda *_, **__: strings)
    drawn, told = transfers.memorisation(
        "one", made_of, "en", [RECIPE], [1, 2], [0.0, 1.0], tolerance=0.2, n_resamples=20
    )
    targets = [code for code in made_of.languages if code != "en"]
    again = runs([], [made_of.corrupted(ratio, 1) for ratio in (0.0, 1.0)], [], [], [1, 2])
    for (ratio, row), own in zip(told.iterrows(), again, strict=True):
        labels = own.task.train["en"].labels
        changed = labels != made_of.train["en"].labels
        right = np.mean(
            [
                run.predictions[f"train {code}"][-1] == labels
                for run in own.runs
                for code in targets
            ],
            axis=0,
        )
        assert row["changed"] == changed.sum()
        assert (row["changed"] == 0) == (ratio == 0)
        assert row["accuracy"] == pytest.approx(right.mean())
        assert row["of the others"] == pytest.approx(right[~changed].mean())
        if ratio:
            assert row["of changed"] == pytest.approx(right[changed].mean())
        assert row["shared subwords"] == 0.25
        mean = drawn[(drawn["ratio"] == ratio) & drawn["target"].isna()].set_index("quantity")
        assert mean.loc["accuracy", "value"] == pytest.approx(right.mean())
        assert mean.loc["IGAP", "value"] == pytest.approx(row["IGAP"])
    assert set(drawn["target"].dropna()) == set(targets)


def test_a_part_of_a_labelled_task_is_its_shortest_in_all_languages() -> None:
    whole = transfers.labelled_task("PI", ["en", "ko", "de"])
    some = transfers.labelled_task("PI", ["en", "ko", "de"], n_train=20, n_test=10)
    for part, n in (("train", 20), ("test", 10)):
        sets = getattr(whole, part)
        size = {
            name: sum(len(one.first[i]) + len(one.second[i]) for one in sets.values())
            for i, name in enumerate(sets["en"].ids)
        }
        kept = getattr(some, part)
        assert all(len(one) == n and one.ids == kept["en"].ids for one in kept.values())
        longest = max(size[name] for name in kept["en"].ids)
        assert all(size[name] >= longest for name in set(size) - set(kept["en"].ids))
    assert some.n_train == 20


def test_a_local_copy_is_read_by_part_and_what_is_not_in_all_is_left_out(tmp_path: Path) -> None:
    def write(name: str, rows: list[tuple[str, str, str]]) -> None:
        (tmp_path / name).write_text("".join("\t".join(row) + "\n" for row in rows))

    pairs = [(f"one {i}", f"two {i}", str(i % 2)) for i in range(8)]
    write("dev-en.tsv", pairs)
    # Not translated in German: the third; another label there: the fifth.
    german = [(f"eins {i}", f"zwei {i}", str(i % 2)) for i in range(8)]
    german[2], german[4] = ("NS", "zwei 2", "0"), ("eins 4", "zwei 4", "1")
    write("dev-de.tsv", german)
    write("test-en.tsv", pairs[:4])
    write("test-de.tsv", [*german[:2], *german[5:7]])
    found = transfers.labelled_task("PI", ["en", "de"], train_split="validation", path=tmp_path)
    assert found.left_out["train"] == {"missing": 1, "other label": 1}
    assert found.train["en"].first == tuple(f"one {i}" for i in (0, 1, 3, 5, 6, 7))
    assert found.train["de"].first == tuple(f"eins {i}" for i in (0, 1, 3, 5, 6, 7))
    assert found.left_out["test"] == {"missing": 0, "other label": 2}


def test_a_language_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a language is named twice: en, de, en"):
        transfers.labelled_task("PI", ["en", "de", "en"])


def test_a_random_task_has_no_test_set() -> None:
    corpus = corpora.load("flores200-100", ["de", "en"])
    found = transfers.random_task(corpus, 3)
    assert (found.name, found.test, found.guess) == ("random labels", {}, 0.5)
    for code in ("de", "en"):
        assert found.train[code].first == corpus.sentences[code]
        assert (found.train[code].labels == examples.random_labels(len(corpus), 3)).all()


def test_labels_are_corrupted_alike_in_all_languages_and_in_training_only() -> None:
    whole = task()
    found = whole.corrupted(0.7, seed=4)
    expected = examples.corrupted(made("en").labels, 0.7, 2, 4)
    assert (expected != made("en").labels).any()
    for code in CODES:
        assert (found.train[code].labels == expected).all()
        assert found.train[code].first == whole.train[code].first
        assert (found.test[code].labels == whole.test[code].labels).all()
        assert (whole.corrupted(0, seed=4).train[code].labels == made(code).labels).all()


# --- what is measured -----------------------------------------------------------------------------


def test_points_are_those_of_a_loop_over_predictions() -> None:
    of = task()
    found = runs(of)
    rows = []
    for run in found.runs:
        source = run.source
        for target in [code for code in CODES if code != source]:
            for k, step in enumerate(run.steps):
                train, translated, unseen, at_home = (
                    mean(errors(run, part, code, of)[k])
                    for part, code in (
                        *(("train", source), ("train", target)),
                        *(("test", target), ("test", source)),
                    )
                )
                rows.append(
                    (run.model, "made", source, target, run.algorithm, run.seed, run.learning_rate,
                     step, train, translated - train, unseen - translated, unseen,
                     (1 - at_home) - (1 - unseen))
                )  # fmt: skip
    points = found.points()
    pd.testing.assert_frame_equal(points, pd.DataFrame(rows, columns=points.columns))
    parts = points["interlingual"] + points["intralingual"] + points["training"]
    assert (parts - points["error"]).abs().max() < 1e-15


def test_without_a_test_set_only_the_interlingual_gap_is_measured() -> None:
    of = task(tested=False)
    points = runs(of).points()
    assert points[["intralingual", "error", "transfer_gap"]].isna().all(axis=None)
    run = runs(of).runs[0]
    wrong = mean(errors(run, "train", "de", of)[0]) - mean(errors(run, "train", "en", of)[0])
    assert points.loc[0, ["target", "interlingual"]].tolist() == ["de", pytest.approx(wrong)]
    directions = runs(of).directions(n_resamples=10, n_splits=2)
    assert directions[["accuracy", "transfer_gap"]].isna().all(axis=None)
    with pytest.raises(ValueError, match=r"the task made has no test set"):
        runs(of).only(model="one", algorithm="vanilla").last_wrong()


def test_curves_are_the_least_gap_over_seeds_rates_and_steps() -> None:
    found = runs(task())
    levels, tolerance = (0.2, 0.1, 0.0), 0.1
    curves = found.curves(levels, tolerance, n_resamples=20, n_splits=2)
    points = found.points()
    by = ["model", "task", "source", "algorithm"]
    assert len(curves) == 8 * 3 * len(levels)  # two targets and their mean
    for names, own in points.groupby(by):
        kept = (curves[by] == list(names)).all(axis=1)
        least = {}
        for target, at in own.groupby("target"):
            for level in levels:
                one = tr.igap(
                    at["training"].to_numpy(), at["interlingual"].to_numpy(), level, tolerance
                )
                row = curves[kept & (curves["target"] == target) & (curves["level"] == level)]
                assert row["igap"].item() == pytest.approx(one.value, nan_ok=True)
                assert row["n_models"].item() == one.n_models
                least.setdefault(level, []).append(one.value)
        for level, values in least.items():
            row = curves[kept & (curves["target"] == tr.MEAN) & (curves["level"] == level)]
            assert row["igap"].item() == pytest.approx(np.mean(values), nan_ok=True)
    assert curves["n_models"].max() > 2
    assert np.allclose(curves["chance"], 0.5 - curves["level"])


def test_directions_have_the_last_checkpoints_mean_and_nothing_lost_at_home() -> None:
    of = task()
    found = runs(of)
    options = {"n_resamples": 20, "n_splits": 2}
    directions = found.directions(0.0, 0.001, **options)
    assert len(directions) == 8 * 3
    for row in directions.itertuples():
        own = [
            run
            for run in found.runs
            if (run.model, run.source, run.algorithm) == (row.model, row.source, row.algorithm)
        ]
        assert len(own) == 4
        right = {
            code: mean([1 - mean(errors(run, "test", code, of)[-1]) for run in own])
            for code in (row.source, row.target)
        }
        assert row.accuracy == pytest.approx(right[row.target])
        assert row.transfer_gap == pytest.approx(right[row.source] - right[row.target])
    at_home = directions[directions["source"] == directions["target"]]
    assert set(at_home["source"]) == {"en", "ja"}
    assert (at_home[["igap", "low", "high", "transfer_gap"]] == 0).all(axis=None)
    keys = ["model", "task", "source", "target", "algorithm"]
    both = directions.merge(found.curves([0.0], 0.001, **options), on=keys, suffixes=("", "_"))
    assert len(both) == 8 * 2
    assert both["igap"].notna().all()
    for name in ("igap", "low", "high", "crossfitted", "n_models"):
        assert (both[name] == both[f"{name}_"]).all()


def test_last_answers_are_stacked_over_the_runs_of_one_kind() -> None:
    of = task()
    found = runs(of)
    with pytest.raises(ValueError, match=r"runs are of 4 models or algorithms"):
        found.last_wrong()
    one = found.only(model="two", algorithm="xtune")
    for part in ("train", "test"):
        wrong = one.last_wrong(part)
        assert set(wrong) == {("en", "de"), ("en", "ja"), ("ja", "en"), ("ja", "de")}
        for (source, target), array in wrong.items():
            expected = [errors(r, part, target, of)[-1] for r in one.runs if r.source == source]
            assert array.dtype == bool
            assert array.astype(int).tolist() == expected


def test_only_keeps_the_runs_asked_for() -> None:
    found = runs(task())
    kept = found.only(model="one", seed=2)
    assert kept.task is found.task
    assert [(run.model, run.seed) for run in kept.runs] == [("one", 2)] * 8
    with pytest.raises(ValueError, match=r"there is no run with \{'model': 'three'\}"):
        found.only(model="three")


def test_igap_as_a_predictor_is_high_where_little_is_lost() -> None:
    found = runs(task()).only(model="one", algorithm="vanilla")
    scores = transfers.igap_predictor(found)
    directions = found.directions(n_resamples=1, n_splits=1).set_index(["source", "target"])
    assert set(scores["metric"]) == {"IGAP"}
    assert len(scores) == 4
    for row in scores.itertuples():
        assert row.score == -directions.loc[(row.source, row.target), "igap"]


def test_other_sources_are_averaged_without_the_direction_and_the_target() -> None:
    rows = [("en", "de", 0.9), ("en", "ja", 0.5), ("de", "en", 0.8), ("de", "ja", 0.3),
            ("ja", "en", 0.2), ("ja", "de", 0.1), ("fr", "de", 0.4), ("de", "de", 1.0)]  # fmt: skip
    gold = pd.DataFrame(rows, columns=["source", "target", "score"])
    found = transfers.other_sources(gold).set_index(["source", "target"])["score"]
    assert found["en", "de"] == pytest.approx((0.1 + 0.4) / 2)  # not de to de
    assert found["ja", "de"] == pytest.approx((0.9 + 0.4) / 2)
    assert found["en", "ja"] == 0.3
    assert found["de", "en"] == 0.2
    assert found["fr", "de"] == pytest.approx((0.9 + 0.1) / 2)


# --- fine-tuning ----------------------------------------------------------------------------------

RECIPE = Recipe(epochs=3, batch_size=4, learning_rate=3e-3, every=4, max_length=32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save(tmp_path_factory.mktemp("models") / "tiny"))


def test_every_source_recipe_and_seed_is_a_run_asked_in_all_languages(
    model: str,
) -> None:
    recipes = [RECIPE, replace(RECIPE, learning_rate=1e-3)]
    found = transfers.transfer([model], task(), ["ja", "en"], recipes, (1, 2))
    about = [(run.source, run.learning_rate, run.seed) for run in found.runs]
    assert about == [(s, r, k) for s in ("ja", "en") for r in (3e-3, 1e-3) for k in (1, 2)]
    for run in found.runs:
        sizes = {name: array.shape for name, array in run.predictions.items()}
        assert sizes == {f"train {code}": (3, N_TRAIN) for code in CODES} | {
            f"test {code}": (3, N_TEST) for code in CODES
        }
    alone = finetuning.Job(model, made("ja"), {"test de": made("de", "test", N_TEST)}, RECIPE, 2)
    expected = finetuning.finetune(alone)
    (same,) = found.only(source="ja", seed=2, learning_rate=3e-3).runs
    assert (same.predictions["test de"] == expected.predictions["test de"]).all()


def test_a_sparing_run_has_the_same_curves_and_ends(model: str) -> None:
    """What IGAP and the last checkpoint need is asked, and nothing else."""
    recipe = replace(RECIPE, epochs=12, every=3)
    arguments = ([model], task(), ["en", "ja"], [recipe], (1,))
    full = transfers.transfer(*arguments)
    levels, tolerance = (0.25, 0.0), 0.2
    sparing = Sparing(tuple((level, tolerance) for level in levels))
    spared = transfers.transfer(*arguments, sparing=sparing)
    options = {"n_resamples": 20, "n_splits": 2}
    curves = [found.curves(levels, tolerance, **options) for found in (full, spared)]
    assert curves[0]["n_models"].gt(0).any()
    pd.testing.assert_frame_equal(*curves)
    pd.testing.assert_frame_equal(
        *(found.directions(0.0, tolerance, **options) for found in (full, spared))
    )
    for part in ("train", "test"):
        one, other = (found.last_wrong(part) for found in (full, spared))
        assert all((one[key] == other[key]).all() for key in one)
    every, some = full.points(), spared.points()
    last = every["step"] == every["step"].max()
    pd.testing.assert_frame_equal(every[last], some[last])
    assert some.loc[~last, ["intralingual", "error", "transfer_gap"]].isna().all(axis=None)
    near = every["training"].between(0, tolerance - 1e-9) | every["training"].between(0.25, 0.45)
    assert (near & ~last).any()
    assert (~near & ~last).any()
    assert some["interlingual"].notna().tolist() == (near | last).tolist()
    assert some["training"].tolist() == every["training"].tolist()
    assert (some["interlingual"] == every["interlingual"])[near | last].all()
    run = spared.runs[0]
    with pytest.raises(ValueError, match="was not asked about test de at all these checkpoints"):
        spared.wrong(run, "test", "de")
    with pytest.raises(ValueError, match="was not asked about train de"):
        spared.curves([0.5], 0.3, **options)
    asked = sum((array >= 0).sum() for run in spared.runs for array in run.predictions.values())
    assert asked < 0.7 * sum(array.size for run in full.runs for array in run.predictions.values())


def test_what_more_is_learnt_from_has_no_part_in_the_training_error(
    model: str,
) -> None:
    more = made("en", "more", 20, labels=np.arange(20) // 2 % 2)
    arguments = ([model], task(), ["en"], [RECIPE], (1,))
    found = transfers.transfer(*arguments, more=more)
    (run,) = found.runs
    assert run.source == "en"
    assert len(run.losses) == 3 * 32 / 4  # all 32 are learnt from
    assert found.wrong(run, "train", "en").shape == (len(run.steps), N_TRAIN)
    expected = (run.predictions["train en"] != made("en").labels).mean(axis=1)
    points = found.points()
    assert points.loc[points["target"] == "de", "training"].tolist() == expected.tolist()
    plain = transfers.transfer(*arguments)
    assert len(plain.runs[0].losses) == 3 * 12 / 4


def test_what_cannot_be_transferred_is_refused_before_anything_is_learnt(
    model: str,
) -> None:
    with pytest.raises(ValueError, match=r"the task made has no ru: it has en, de, ja"):
        transfers.transfer([model], task(), ["en", "ru"], [RECIPE], (1,))
    more = made("en", "more")
    for sources in (["de"], ["en", "de"]):
        with pytest.raises(ValueError, match=r"made en more is in en: it can be added for that"):
            transfers.transfer([model], task(), sources, [RECIPE], (1,), more=more)
    more = replace(more, classes=("yes", "no"))
    with pytest.raises(ValueError, match=r"made en more has other classes than made"):
        transfers.transfer([model], task(), ["en"], [RECIPE], (1,), more=more)
    assert not list(current().cache.rglob("*.arrow"))


# --- what frozen states say -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus() -> corpora.ParallelCorpus:
    whole = corpora.load("flores200-100", list(CODES))
    return replace(
        whole,
        sentences={code: rows[:30] for code, rows in whole.sentences.items()},
        ids=whole.ids[:30],
        domains=whole.domains[:30],
    )


@pytest.fixture(scope="module")
def predicted(corpus: corpora.ParallelCorpus) -> pd.DataFrame:
    found, layer = transfers.predictors("mini-infoxlm", corpus, layer=3)
    assert layer == 3
    return found


def test_every_metric_scores_every_direction_once(predicted: pd.DataFrame) -> None:
    assert list(dict.fromkeys(predicted["metric"])) == list(transfers.METRICS)
    for _, own in predicted.groupby("metric"):
        pairs = list(zip(own["source"], own["target"], strict=True))
        assert sorted(pairs) == sorted((a, b) for a in CODES for b in CODES if a != b)
    assert predicted["score"].notna().all()


def test_only_retrieval_knows_a_direction_from_its_reverse(predicted: pd.DataFrame) -> None:
    table = predicted.set_index(["metric", "source", "target"])["score"]
    for metric in set(transfers.METRICS) - {"retrieval"}:
        for source, target in (("en", "de"), ("en", "ja"), ("de", "ja")):
            there, back = table[metric, source, target], table[metric, target, source]
            assert there == pytest.approx(back)


def test_scores_are_those_of_their_definitions(
    predicted: pd.DataFrame, corpus: corpora.ParallelCorpus
) -> None:
    table = predicted.set_index(["metric", "source", "target"])["score"]
    encoder = models.load("mini-infoxlm", device="cpu")
    states = {
        code: embeddings.embed(encoder, rows).states[3] for code, rows in corpus.sentences.items()
    }
    x, y = states["en"].astype(float), states["de"].astype(float)
    assert table["L2", "en", "de"] == pytest.approx(
        -mean([float(((a - b) ** 2).sum() ** 0.5) for a, b in zip(x, y, strict=True)]), rel=1e-4
    )
    assert table["dot", "en", "de"] == pytest.approx(
        mean([float(a @ b) for a, b in zip(x, y, strict=True)]), rel=1e-4
    )
    unit = [row / np.linalg.norm(row) for row in x], [row / np.linalg.norm(row) for row in y]
    cosines = np.array([[a @ b for b in unit[1]] for a in unit[0]])
    assert table["cosine", "en", "de"] == pytest.approx(np.trace(cosines) / len(x), rel=1e-4)
    own = mexa.scores({code: array[None] for code, array in states.items()}, "en").table()
    assert table["MEXA", "en", "de"] == own.set_index("language").loc["de", "mu"]
    n = len(x)
    # LD and MD over all triplets; a state is nearer if its cosine is higher.
    within = {
        code: np.array([[a @ b for b in rows] for a in rows])
        for code, rows in zip(("en", "de"), unit, strict=True)
    }
    others = [(i, j) for i in range(n) for j in range(n) if i != j]
    form = [within["en"][i, j] > cosines[i, j] for i, j in others]
    form += [within["de"][i, j] > cosines[j, i] for i, j in others]
    assert table["LD", "en", "de"] == pytest.approx(-mean(form), abs=2e-3)
    meaning = [cosines[i, i] > cosines[i, j] for i, j in others]
    meaning += [cosines[i, i] > cosines[j, i] for i, j in others]
    assert table["MD", "en", "de"] == pytest.approx(mean(meaning), abs=2e-3)


def test_bags_of_subwords_are_compared_by_their_cosine(
    predicted: pd.DataFrame, corpus: corpora.ParallelCorpus
) -> None:
    table = predicted.set_index(["metric", "source", "target"])["score"]
    tokenizer = models.load("mini-infoxlm", device="cpu").tokenizer
    cosines = []
    for one, other in zip(corpus.sentences["en"], corpus.sentences["de"], strict=True):
        first, second = (
            tokenizer(text, add_special_tokens=False)["input_ids"] for text in (one, other)
        )
        product = sum(first.count(i) * second.count(i) for i in set(first))
        sizes = [sum(ids.count(i) ** 2 for i in set(ids)) for ids in (first, second)]
        cosines.append(product / (sizes[0] * sizes[1]) ** 0.5)
    assert table["bag of subwords", "en", "de"] == pytest.approx(mean(cosines))
    assert 0 < table["bag of subwords", "en", "ja"] < table["bag of subwords", "en", "de"] < 1


def test_the_layer_is_chosen_by_retrieval(corpus: corpora.ParallelCorpus) -> None:
    encoder = models.load("mini-infoxlm")
    _, layer = transfers.predictors("mini-infoxlm", corpus)
    states = embeddings.embed_corpus(encoder, corpus, pooling="mean")
    directions = alignment.directions(states.states)
    hits = directions[directions["metric"] == "retrieval"].groupby("layer")["value"].mean()
    assert layer == hits.idxmax()


def test_scores_are_found_again_without_the_model(
    corpus: corpora.ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = transfers.predictors("mini-infoxlm", corpus, layer=3)
    shared = transfers.shared_subwords("mini-infoxlm", task())
    monkeypatch.setattr(models, "load", None)
    again = transfers.predictors("mini-infoxlm", corpus, layer=3)
    pd.testing.assert_frame_equal(again[0], first[0])
    pd.testing.assert_frame_equal(transfers.shared_subwords("mini-infoxlm", task()), shared)
    with settings(dtype="bfloat16"), pytest.raises(TypeError):
        transfers.predictors("mini-infoxlm", corpus, layer=3)


def test_tasks_at_once_are_the_tasks_one_by_one(model: str) -> None:
    tasks = [task().corrupted(ratio, 1) for ratio in (0.0, 1.0)]
    rest = (["en"], [RECIPE], (1, 2))
    both = transfers.transfer_each([model], tasks, *rest)
    assert [found.task for found in both] == tasks
    for one, found in zip(tasks, both, strict=True):
        alone = transfers.transfer([model], one, *rest)
        pd.testing.assert_frame_equal(found.points(), alone.points())
    assert not both[0].points().equals(both[1].points())
