"""Grids: every cell as if it were asked alone, what is stored, and what is refused."""

import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import mixing_2_paraphrase
from printed import evaluator
from shared import controls, mixing_tables
from tests import tiny
from tests.text.made import spoken
from xlx.experiment import grids
from xlx.experiment.grids import Grid, GridError, answered, groups_of
from xlx.measures import answers, mixing
from xlx.results import provenance
from xlx.results.settings import current, settings
from xlx.results.store import StoreWarning
from xlx.subjects import finetuning, loading, predicting
from xlx.subjects.jobs import FinetuningError, Job, Recipe
from xlx.subjects.predicting import InputError
from xlx.text.examples import Examples, crossed
from xlx.text.files import TextError
from xlx.text.questions import Answer, Questions, questionless

RECIPE = Recipe(epochs=2, batch_size=3, learning_rate=3e-3, every=10**6, max_length=24)
LANGUAGES = ("en", "de", "ru")


def pairs(language: str, n: int = 8) -> Examples:
    """Two hypotheses of each premise."""
    twice = tuple(spoken(language, n).first[i // 2] for i in range(n))
    return spoken(language, n, pairs=True, first=twice)


def asked(language: str, n: int = 6) -> Questions:
    texts = [f"{language} {text} " * 3 for text in tiny.SENTENCES]
    contexts = tuple(texts[i // 2 % len(texts)] for i in range(n))
    answers = tuple(
        (Answer(context.split()[k % 5], len(" ".join(["", *context.split()[: k % 5]]))),)
        for k, context in enumerate(contexts)
    )
    return Questions(
        name=f"asked {language}",
        language=language,
        contexts=contexts,
        questions=tuple(tiny.SENTENCES[-1 - i % 5].split()[0] + language for i in range(n)),
        answers=answers,
        ids=tuple(map(str, range(n))),
    )


PAIRS = {code: pairs(code) for code in LANGUAGES}
ASKED = {code: asked(code) for code in LANGUAGES}


def job(model: str, sets: dict, **changes: object) -> Job:
    return Job(model, sets["en"], {"en": sets["en"]}, replace(RECIPE, **changes))


def alone(wanted: Job, sets: dict) -> finetuning.Run:
    """The cells of a grid asked as evaluations of a fine-tuning, by their languages."""
    cells = {(a, b): crossed(sets[a], sets[b]) for a in LANGUAGES for b in LANGUAGES}
    asked = replace(wanted, evaluations={" ".join(k): cells[k] for k in cells})
    return finetuning.finetune_all([asked])[0]


def in_rows(by_cell: dict) -> list:
    return [[by_cell[f"{a} {b}"] for b in LANGUAGES] for a in LANGUAGES]


@pytest.mark.parametrize("limit", [64, 9])
def test_cells_are_those_of_the_pair_asked_alone(model: str, limit: int) -> None:
    wanted = job(model, PAIRS, max_length=limit)
    grid, run = grids.grid([wanted], PAIRS)[0], alone(wanted, PAIRS)
    expected = np.array(in_rows({name: x[-1] for name, x in run.predictions.items()}))
    np.testing.assert_array_equal(grid.predictions, expected)
    np.testing.assert_array_equal(grid.scores["accuracy"], expected == PAIRS["en"].labels)
    assert grid.languages == LANGUAGES
    assert grid.groups.tolist() == np.unique(PAIRS["en"].first, return_inverse=True)[1].tolist()
    assert grid.n_cut.tolist() == in_rows(run.n_cut)
    assert limit != 9 or (grid.n_cut > 0).all()


@pytest.mark.parametrize("limit", [48, 20])
def test_answers_are_those_of_the_questions_asked_alone(model: str, limit: int) -> None:
    wanted = job(model, ASKED, max_length=limit, stride=4)
    grid, run = grids.grid([wanted], ASKED)[0], alone(wanted, ASKED)
    expected = np.array(in_rows({name: x[-1] for name, x in run.predictions.items()}))
    np.testing.assert_array_equal(grid.predictions, expected)
    for i, j, k in np.ndindex(3, 3, 6):
        (start, end), language = expected[i, j, k], LANGUAGES[i]
        said, gold = ASKED[language].contexts[k][start:end], ASKED[language].answers[k]
        assert said == said.strip()
        literal = (
            answers.f1(said, gold, language),
            answers.exact_match(said, gold, language),
            *answers.squad(said, gold),
            *answers.mlqa(said, gold, language),
        )
        assert [grid.scores[name][i, j, k] for name in grids.MEASURES] == pytest.approx(literal)
    assert grid.groups.tolist() == [0, 0, 1, 1, 2, 2]
    assert grid.n_cut.tolist() == in_rows(run.n_cut)
    assert limit == 48 or (grid.n_cut > 0).all()


def test_the_rate_of_a_linear_schedule_falls_to_zero(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, before = [], torch.optim.AdamW.step

    def spy(optimiser: object, *arguments: object, **named: object) -> object:
        rates.append(optimiser.param_groups[0]["lr"])
        return before(optimiser, *arguments, **named)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    one = job(model, PAIRS, schedule="linear", warmup=0.0, learning_rate=0.1)
    finetuning.finetune_all([one])[0]
    n = len(rates)
    np.testing.assert_allclose(rates, [0.1 * (n - k) / n for k in range(n)])
    with pytest.raises(FinetuningError, match="schedule"):
        replace(RECIPE, schedule="cosine")


def test_one_part_alone_is_asked_once_and_stands_in_every_row(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = {code: controls.only(part, "second") for code, part in PAIRS.items()}
    count, before = [], predicting.Tuned.laid_out

    def counting(tuned: predicting.Tuned, cell: Examples) -> object:
        count.append(cell.language)
        return before(tuned, cell)

    wanted = job(model, sets)
    # weights are found by the code that made them, and a stand-in is other code
    monkeypatch.setattr(provenance, "code_hash", lambda function: "one")
    finetuning.finetune_all([wanted], weights=True)
    monkeypatch.setattr(predicting.Tuned, "laid_out", counting)
    grid = grids.grid([wanted], sets)[0]
    assert sorted(count) == sorted(LANGUAGES)
    assert (grid.predictions == grid.predictions[:1]).all()
    sets = {code: questionless(part) for code, part in ASKED.items()}
    grid = grids.grid([job(model, sets)], sets)[0]
    assert (grid.predictions == grid.predictions[:, :1]).all()


def test_nothing_is_trained_where_no_cell_is_missing(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job(model, PAIRS)]
    whole = grids.grid(jobs, PAIRS)[0]
    shutil.rmtree(current().cache / "finetuned")

    def never(*arguments: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(finetuning, "trained_run", never)
    found = grids.grid(jobs, PAIRS)[0]
    np.testing.assert_array_equal(found.predictions, whole.predictions)
    smaller = grids.grid(jobs, {code: PAIRS[code] for code in ("de", "ru")})[0]
    np.testing.assert_array_equal(smaller.predictions, whole.predictions[1:, 1:])
    with pytest.raises(AssertionError, match="trained again"):
        grids.grid([replace(jobs[0], seed=2)], PAIRS)


def test_weights_that_are_not_as_they_were_written_are_made_again(model: str) -> None:
    wanted = job(model, PAIRS)
    whole = grids.grid([wanted], PAIRS)[0]
    (weights,) = (current().cache / "finetuned").rglob("*.arrow")
    content = bytearray(weights.read_bytes())
    content[-5] ^= 64
    weights.write_bytes(content)
    shutil.rmtree(current().cache / "results")
    with pytest.warns(StoreWarning, match="is not used"):
        found = grids.grid([wanted], PAIRS)[0]
    np.testing.assert_array_equal(found.predictions, whole.predictions)


def test_a_kill_at_any_rename_stops_no_job(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, replace_, left = job(model, PAIRS, every=3), os.replace, None
    with settings(cache=tmp_path / "whole"):
        whole = grids.grid([wanted], PAIRS)[0]
    monkeypatch.setattr(finetuning, "SAVE_SECONDS", 0.0)

    def killed(source: Path, target: Path) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        replace_(source, target)

    monkeypatch.setattr(os, "replace", killed)
    for number in range(1, 100):
        left = number
        try:
            found = grids.grid([wanted], PAIRS)[0]
        except KeyboardInterrupt:
            continue
        break
    assert number > 3
    np.testing.assert_array_equal(found.predictions, whole.predictions)
    assert not list(current().cache.rglob("*.pt*"))


ASK = """
import sys
from pathlib import Path
import numpy as np
from tests.experiment import test_grids as t
from xlx.results.settings import settings
with settings(cache=sys.argv[2], ledger=sys.argv[2], device="cpu", workers=1, progress=False):
    found = t.grids.grid([t.job(sys.argv[1], t.PAIRS, every=1)], t.PAIRS)[0]
print(found.predictions.sum())
"""


@pytest.mark.slow
def test_two_processes_may_ask_at_once(model: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error::UserWarning", "-c", ASK, model, str(tmp_path)]
    found = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, env=found, **pipes) for _ in range(2)]
    said = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0][0] == said[1][0]


def test_a_run_is_of_the_same_face(model: str):
    wanted = job(model, PAIRS)
    (square,), (run,) = grids.grid([wanted], PAIRS), grids.grid([wanted])
    np.testing.assert_array_equal(run.predictions["en"][-1], square.predictions[0, 0])


# --- what is refused ------------------------------------------------------------------------------


SHORTER = {**PAIRS, "de": PAIRS["de"].at(range(5))}
TURNED = {**ASKED, "ru": ASKED["ru"].at([1, 0, 2, 3, 4, 5])}
RENAMED = {code: replace(part, classes=("a", "b")) for code, part in PAIRS.items()}
SINGLE = {code: controls.only(part, "second") for code, part in PAIRS.items()}


@pytest.mark.parametrize(
    ("learnt", "sets", "error", "message"),
    [
        (PAIRS, SHORTER, TextError, "made de has 5 examples"),
        (ASKED, TURNED, TextError, "ru"),
        (PAIRS, RENAMED, GridError, "not trained on what the grid asks"),
        (PAIRS, {code: part.at([]) for code, part in PAIRS.items()}, GridError, "0 are of en"),
        (PAIRS, SINGLE, GridError, "not trained on what the grid asks"),
    ],
)
def test_what_is_no_grid_is_refused(model: str, learnt, sets, error, message: str) -> None:
    with pytest.raises(error, match=message):
        grids.grid([job(model, learnt)], sets)


def test_what_no_reader_learns_is_refused(model: str) -> None:
    with pytest.raises(InputError, match="leaves no room"):
        grids.grid([job(model, ASKED, max_length=9)], ASKED)
    for learnt, held_out, message in (
        (ASKED["en"].at([]), ASKED["en"], "no question"),
        (ASKED["en"], PAIRS["en"], "both of questions"),
    ):
        with pytest.raises(FinetuningError, match=message):
            grids.grid([Job(model, learnt, {"en": held_out}, RECIPE)], ASKED)


# --- baselines ------------------------------------------------------------------------------------


WORDS = {
    "en": "the of and in to is was he for it with as his on be at by had not are but from or have",
    "de": "der die und den von zu das mit sich des auf für ist im dem nicht ein eine als auch es",
}


def overlapping(language: str) -> Examples:
    """Pairs that are "same" if half of their words are: a task of overlap alone."""
    rng = np.random.default_rng(1)
    words = WORDS[language].split()
    first, second, labels = [], [], np.arange(200) % 2
    for label in labels:
        drawn = [words[i] for i in rng.permutation(len(words))]
        first.append(" ".join(drawn[:6]))
        second.append(" ".join(drawn[3:9] if label else drawn[6:12]))
    return Examples(
        f"overlap {language}",
        language,
        tuple(first),
        tuple(second),
        labels,
        ("no", "same"),
        tuple(map(str, range(200))),
    )


def test_overlap_is_learnt_and_does_not_cross() -> None:
    sets = {"en": overlapping("en"), "de": overlapping("de")}
    grid = mixing_tables.bag_of_subwords("mini-mbert", sets["en"], sets)
    accuracy = grid.scores["accuracy"].mean(axis=2)
    assert accuracy[0, 0] > 0.95
    assert accuracy[1, 1] > 0.8  # overlap is overlap in any language
    assert abs(accuracy[0, 1] - 0.5) < 0.15
    assert grid.predictions.shape == (2, 2, 200)
    few, read = {x: part.take(9, 0) for x, part in sets.items()}, loading.tokenizer("mini-mbert")
    overlap = controls.shared_subwords(few, "mini-mbert")
    for (i, one), (j, other) in itertools.product(enumerate(few.values()), repeat=2):
        texts = zip(one.first, other.second, strict=True)
        for k, pair in enumerate(texts):
            bags = [{*read(x, add_special_tokens=False)["input_ids"]} for x in pair]
            assert overlap[i, j, k] == len(bags[0] & bags[1]) / min(map(len, bags))


def test_the_nearest_span_needs_shared_words() -> None:
    def made(language: str) -> Questions:
        context = " ".join(f"{language}{i}" for i in range(40))
        places = [3, 17, 30]
        return Questions(
            name=f"made {language}",
            language=language,
            contexts=(context,) * 3,
            questions=tuple(f"{language}{i - 1} {language}{i + 1}" for i in places),
            answers=tuple(
                (Answer(f"{language}{i}", context.index(f"{language}{i} ")),) for i in places
            ),
            ids=("1", "2", "3"),
        )

    sets = {"en": made("en"), "de": made("de")}
    grids = {one.model: one for one in mixing_2_paraphrase.without_reading(sets, sets["en"], 1, 0)}
    exact = {name: one.scores["EM, SQuAD"].mean(axis=2) for name, one in grids.items()}
    assert (exact["nearest span"] == np.eye(2)).all()
    assert (exact["usual place"] == 1 / 3).all()  # the answer at the median place
    assert answers.placed_answers(sets["en"], 2, [0, 0.5, 1])[::2] == ["en0 en1", "en38 en39"]
    asked = grids["usual place"].model, sets, lambda x: answers.placed_answers(x, 1, [0, 0.5, 1])
    of_all, of_one = (answered(*asked, reads=reads) for reads in (True, False))
    for name, scores in of_all.scores.items():
        np.testing.assert_array_equal(of_one.scores[name], scores)


def test_what_each_side_does_to_a_planted_grid() -> None:
    """Contexts alone matter, and questions in the second language add 0.1."""
    scores = np.repeat([[0.3], [0.5], [0.6]], 3, axis=1)
    codes = ["en", "de", "zh"]
    assert mixing_2_paraphrase.by_side(scores, codes, "en") == pytest.approx(
        {"context": 1, "question": 0.25, "question in en": 0, "context in en": -0.25}, abs=0.5
    )
    scores[:, 1] += 0.1
    found = mixing_2_paraphrase.by_side(scores, codes, "de")
    assert found["question in de"] == pytest.approx(0.1)
    each = np.random.default_rng(0).random((2, 3, 3, 8))
    one = Grid("a", tuple(codes), {}, np.arange(8) // 2, each={"F1, SQuAD": each})
    found = mixing_2_paraphrase.side_intervals(one, "de")
    square = pd.DataFrame(each.mean(axis=(0, 3)), codes, codes)
    cells = evaluator.off_diagonal(square).stack().dropna()
    for level, side in enumerate(("context", "question")):
        assert found[side][0] == pytest.approx(evaluator.explained(cells, level))
    # what is linear in the cells has the interval of its values
    values = (each[:, [0, 2], 1] - each[:, [0, 2], [0, 2]]).mean(axis=1, keepdims=True)
    expected = mixing.averages(values, one.groups).to_numpy()[0]
    np.testing.assert_allclose(found["question in de"], expected, rtol=1e-6)


def test_a_pair_in_both_orders_hangs_together() -> None:
    pairs = [("a", "b"), ("a", "a"), ("b", "a"), ("b", "b"), ("c", "a"), ("d", "c"), ("c", "c")]
    first, second = zip(*pairs, strict=True)
    one = Examples("x", "en", first, second, np.zeros(7), ("no", "yes"), tuple("1234567"))
    assert groups_of(one).tolist() == [0, 0, 0, 0, 1, 2, 1]
    assert groups_of(controls.only(one, "first")).tolist() == [0, 0, 1, 1, 2, 3, 2]
