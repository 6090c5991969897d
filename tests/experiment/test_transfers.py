"""Transfers: tasks in several languages, and what their runs measure, against literal loops."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import igap_2_ranking
from tests.text.made import spoken
from xlx.experiment import transfers
from xlx.experiment.transfers import Transfers, TransferTask
from xlx.measures import igap
from xlx.results.settings import current
from xlx.subjects import finetuning, jobs
from xlx.subjects.finetuning import Run
from xlx.subjects.jobs import Recipe, Sparing
from xlx.text import labelled, parallel
from xlx.text.examples import Examples
from xlx.text.files import TextError

CODES = ("en", "de", "ja")
N_TRAIN, N_TEST = 12, 7


def made(language: str, part: str = "train", n: int = N_TRAIN, **changes: object) -> Examples:
    named = {"name": f"made {language} {part}", "ids": tuple(f"{part}:{i}" for i in range(n))}
    return spoken(language, n, **(named | changes))


def task(codes: Sequence[str] = CODES, tested: bool = True) -> TransferTask:
    test = {code: made(code, "test", N_TEST) for code in codes} if tested else {}
    return TransferTask("made", {code: made(code) for code in codes}, test, {})


def made_run(of: TransferTask, rng: np.random.Generator, **about: object) -> Run:
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
    return Run(
        **names,
        learning_rate=rate,
        steps=steps,
        losses=losses,
        predictions=predictions,
        logits=logits,
        n_cut={},
    )


def runs(of: TransferTask, seed: int = 0) -> Transfers:
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


def errors(run: Run, part: str, code: str, of: TransferTask) -> list[list[int]]:
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
    with pytest.raises(TextError, match=r"position 0 is example train:1 in de .* in en"):
        TransferTask("made", swapped, {}, {})
    test = {"en": made("en", "test", 4), "de": made("de", "test", 3)}
    with pytest.raises(TextError, match="made de test has 3 examples and made en test 4"):
        TransferTask("made", train, test, {})
    with pytest.raises(TextError, match="training set has en, de and the test set en"):
        TransferTask("made", train, {"en": test["en"]}, {})


def test_a_labelled_task_is_the_shipped_data_in_all_languages() -> None:
    whole = transfers.labelled_task("NLI", ["ru", "en"])
    assert (whole.languages, whole.guess) == (("ru", "en"), pytest.approx(2 / 3))
    for part, code in ((part, code) for part in ("train", "test") for code in whole.languages):
        shipped = labelled.load_labelled("NLI", code, part)
        one = getattr(whole, part)[code]
        assert (one.first, one.second, one.ids) == (shipped.first, shipped.second, shipped.ids)
        assert one.row_labels == shipped.row_labels
    assert set(whole.left_out["train"].values()) == {0}
    some = transfers.labelled_task("NLI", ["ru", "en"], n_train=20, n_test=10)
    assert (some.n_train, some.n_test) == (20, 10)
    assert set(some.train["en"].ids) < set(whole.train["en"].ids)


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


def test_a_random_task_has_no_test_set() -> None:
    corpus = parallel.load("flores200-100", ["de", "en"])
    found = transfers.random_task(corpus, 3)
    assert (found.name, found.test, found.guess) == ("random labels", {}, 0.5)
    for code in ("de", "en"):
        assert found.train[code].first == corpus.sentences[code]
        expected = np.random.default_rng(3).integers(0, 2, len(corpus))
        assert (found.train[code].labels == expected).all()
    assert found.one_label == 1 - max(expected.mean(), 1 - expected.mean())


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
                    (
                        run.model,
                        "made",
                        source,
                        target,
                        run.algorithm,
                        run.seed,
                        run.learning_rate,
                        step,
                        train,
                        translated - train,
                        unseen - translated,
                        unseen,
                        (1 - at_home) - (1 - unseen),
                    )
                )
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
    directions = igap_2_ranking.directions(runs(of))
    assert directions[["accuracy", "transfer_gap"]].isna().all(axis=None)
    with pytest.raises(ValueError, match=r"the task made has no test set"):
        runs(of).only(model="one", algorithm="vanilla").last_wrong()


def test_curves_are_of_all_seeds_rates_and_steps_of_a_kind() -> None:
    of = task()
    found, levels, tolerance = runs(of), (0.2, 0.1, 0.0), 0.1
    curves = found.curves(levels, tolerance)
    assert len(curves) == 8 * 3 * len(levels)  # two targets and their mean
    some = found.only(model="two", source="ja", algorithm="xtune").runs
    answers = {
        code: np.concatenate([errors(run, "train", code, of) for run in some]) == 1
        for code in ("ja", "en", "de")
    }
    seeds = np.repeat([run.seed for run in some], 3)
    expected = igap.igap_curve(answers.pop("ja"), answers, seeds, levels, tolerance)
    rows = curves.query("model == 'two' and source == 'ja' and algorithm == 'xtune'")
    columns = ["target", "level", "igap", "n_models"]
    pd.testing.assert_frame_equal(rows[columns].reset_index(drop=True), expected[columns])
    assert curves["n_models"].max() > 2
    assert np.allclose(curves["chance"], 0.5 - curves["level"])


def test_directions_have_the_last_checkpoints_mean_and_nothing_lost_at_home() -> None:
    of = task()
    found = runs(of)
    directions = igap_2_ranking.directions(found, 0.0, 0.001)
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
    assert (at_home[["igap", "transfer_gap"]] == 0).all(axis=None)
    keys = ["model", "task", "source", "target", "algorithm"]
    both = directions.merge(found.curves([0.0], 0.001), on=keys, suffixes=("", "_"))
    assert len(both) == 8 * 2
    assert both["igap_"].notna().all()
    assert (both["igap"] >= both["igap_"] - 1e-12).all()
    kind = {"model": "two", "source": "ja", "algorithm": "xtune"}
    of_one = found.only(**kind).gap_table(0.0, 0.001).loc["ja", "value"]
    rows = directions[(directions[list(kind)] == list(kind.values())).all(axis=1)]
    for row in rows[rows["target"] != "ja"].itertuples():
        assert row.igap == pytest.approx(of_one[row.target])


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


# --- fine-tuning ----------------------------------------------------------------------------------

RECIPE = Recipe(epochs=3, batch_size=4, learning_rate=3e-3, every=4, max_length=32)


def test_every_source_recipe_and_seed_is_a_run_asked_in_all_languages(model: str) -> None:
    short = replace(RECIPE, epochs=1, every=2)  # 3 steps, so 2 checkpoints
    recipes = [short, replace(short, learning_rate=1e-3)]
    found = transfers.transfer_task([model], task(), ["ja", "en"], recipes, (1, 2))
    about = [(run.source, run.learning_rate, run.seed) for run in found.runs]
    assert about == [(s, r, k) for s in ("ja", "en") for r in (3e-3, 1e-3) for k in (1, 2)]
    for run in found.runs:
        sizes = {name: array.shape for name, array in run.predictions.items()}
        assert sizes == {f"train {code}": (2, N_TRAIN) for code in CODES} | {
            f"test {code}": (2, N_TEST) for code in CODES
        }
    alone = jobs.Job(model, made("ja"), {"test de": made("de", "test", N_TEST)}, short, 2)
    expected = finetuning.finetune_all([alone])[0]
    (same,) = found.only(source="ja", seed=2, learning_rate=3e-3).runs
    assert (same.predictions["test de"] == expected.predictions["test de"]).all()


def test_a_sparing_run_has_the_same_curves_and_ends(model: str) -> None:
    """What IGAP and the last checkpoint need is asked, and nothing else."""
    recipe = replace(RECIPE, epochs=12, every=3)
    arguments = ([model], task(), ["en"], [recipe], (1,))
    full = transfers.transfer_task(*arguments)
    levels, tolerance = (0.25, 0.0), 0.2
    sparing = Sparing(tuple((level, tolerance) for level in levels))
    spared = transfers.transfer_task(*arguments, sparing=sparing)
    curves = [found.curves(levels, tolerance) for found in (full, spared)]
    assert curves[0]["n_models"].gt(0).any()
    pd.testing.assert_frame_equal(*curves)
    pd.testing.assert_frame_equal(
        *(igap_2_ranking.directions(found, 0.0, tolerance) for found in (full, spared))
    )
    for part in ("train", "test"):
        one, other = (found.last_wrong(part) for found in (full, spared))
        assert all((one[key] == other[key]).all() for key in one)
    run = spared.runs[0]
    with pytest.raises(ValueError, match="was not asked about test de at all these checkpoints"):
        spared.wrong(run, "test", "de")
    with pytest.raises(ValueError, match="was not asked about train de"):
        spared.curves([0.5], 0.3)
    asked = sum((array >= 0).sum() for run in spared.runs for array in run.predictions.values())
    assert asked < 0.7 * sum(array.size for run in full.runs for array in run.predictions.values())


def test_what_cannot_be_transferred_is_refused_before_anything_is_learnt(model: str) -> None:
    with pytest.raises(ValueError, match=r"no source of made .ru.: choose en, de, ja"):
        transfers.transfer_task([model], task(), ["en", "ru"], [RECIPE], (1,))
    assert not list(current().cache.rglob("*.arrow"))
