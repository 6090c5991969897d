"""Grids: every cell as if it were asked alone, what is stored, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests import tiny
from xlx import baselines, examples, finetuning, grids, mixing, questions
from xlx.examples import Examples, ExamplesError
from xlx.finetuning import FinetuningError, Job, Recipe
from xlx.grids import GridError, averaged, evaluate
from xlx.inputs import InputError
from xlx.questions import Answer, Questions, QuestionsError
from xlx.store import Store

RECIPE = Recipe(epochs=2, batch_size=3, learning_rate=3e-3, every=10**6, max_length=24)
LANGUAGES = ("en", "de", "ru")


def pairs(language: str, n: int = 8) -> Examples:
    texts = [f"{text} {language}" for text in tiny.SENTENCES]
    return Examples(
        name=f"made {language}",
        language=language,
        first=tuple(texts[i // 2 % len(texts)] for i in range(n)),
        second=tuple(texts[-1 - i % len(texts)] for i in range(n)),
        labels=np.arange(n) % 2,
        classes=("no", "yes"),
        ids=tuple(map(str, range(n))),
    )


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


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def job(model: str, sets: dict, **changes: object) -> Job:
    return Job(model, sets["en"], {"en": sets["en"]}, replace(RECIPE, **changes))


def asked_of(jobs: list[Job], sets: dict, store: Store, **options: object) -> list[grids.Grid]:
    return evaluate(jobs, sets, device="cpu", store=store, progress=False, **options)


@pytest.mark.parametrize("limit", [64, 9])
def test_cells_are_those_of_the_pair_asked_alone(model: str, store: Store, limit: int) -> None:
    one = job(model, PAIRS, max_length=limit)
    grid = asked_of([one], PAIRS, store)[0]
    cells = {f"{a} {b}": examples.crossed(PAIRS[a], PAIRS[b]) for a in LANGUAGES for b in LANGUAGES}
    alone = finetuning.finetune(replace(one, evaluations=cells), store=store, device="cpu")
    wanted = np.array([[alone.predictions[f"{a} {b}"][-1] for b in LANGUAGES] for a in LANGUAGES])
    np.testing.assert_array_equal(grid.predictions, wanted)
    np.testing.assert_array_equal(grid.scores["accuracy"], wanted == PAIRS["en"].labels)
    assert grid.languages == LANGUAGES
    assert grid.groups.tolist() == np.unique(PAIRS["en"].first, return_inverse=True)[1].tolist()
    cut = [[alone.n_cut[f"{a} {b}"] for b in LANGUAGES] for a in LANGUAGES]
    assert grid.n_cut.tolist() == cut
    assert limit != 9 or (grid.n_cut > 0).all()


@pytest.mark.parametrize("limit", [48, 20])
def test_answers_are_those_of_the_questions_asked_alone(
    model: str, store: Store, limit: int
) -> None:
    one = job(model, ASKED, max_length=limit, stride=4)
    grid = asked_of([one], ASKED, store)[0]
    cells = {
        f"{a} {b}": questions.crossed(ASKED[a], ASKED[b]) for a in LANGUAGES for b in LANGUAGES
    }
    alone = finetuning.finetune(replace(one, evaluations=cells), store=store, device="cpu")
    for i, a in enumerate(LANGUAGES):
        for j, b in enumerate(LANGUAGES):
            found = alone.predictions[f"{a} {b}"][-1]
            np.testing.assert_array_equal(grid.predictions[i, j], found)
            for k, (start, end) in enumerate(found):
                said, gold = ASKED[a].contexts[k][start:end], ASKED[a].answers[k]
                assert said == said.strip()
                assert grid.scores["F1"][i, j, k] == questions.f1(said, gold, a)
                assert grid.scores["EM"][i, j, k] == questions.exact_match(said, gold, a)
    assert grid.groups.tolist() == [0, 0, 1, 1, 2, 2]
    windows = [[alone.n_cut[f"{a} {b}"] for b in LANGUAGES] for a in LANGUAGES]
    assert grid.n_cut.tolist() == windows
    assert limit == 48 or (grid.n_cut > 0).all()


def test_a_reader_learns_its_training_set(model: str, store: Store) -> None:
    one = job(model, ASKED, epochs=60, max_length=48)
    run = finetuning.finetune(one, store=store, device="cpu", progress=False)
    answers = [
        context[start:end]
        for context, (start, end) in zip(
            ASKED["en"].contexts, run.predictions["en"][-1], strict=True
        )
    ]
    right = [said == gold[0].text for said, gold in zip(answers, ASKED["en"].answers, strict=True)]
    assert np.mean(right) > 0.8
    assert run.losses[-10:].mean() < run.losses[:10].mean() / 2


def test_a_stopped_reader_goes_on_as_if_it_had_not_been(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what a run depends on is hashed by its code, which a stand-in has not
    monkeypatch.setattr(finetuning, "code_version", lambda *parts: "one")
    wanted = job(model, ASKED, every=3, epochs=4, max_length=48)
    stopped, loss, steps = Store(tmp_path / "stopped"), finetuning.training_loss, []

    def counting(*arguments: object) -> object:
        steps.append(arguments[-1][1])
        if steps == [1, 2, 3, 4, 5]:
            raise KeyboardInterrupt
        return loss(*arguments)

    monkeypatch.setattr(finetuning, "training_loss", counting)
    options = {"device": "cpu", "progress": False}
    with pytest.raises(KeyboardInterrupt):
        finetuning.finetune(wanted, store=stopped, save_seconds=0, **options)
    found = finetuning.finetune(wanted, store=stopped, **options)
    last = int(found.steps[-1])
    assert steps == [*range(1, 6), *range(5, last + 1)]
    whole = finetuning.finetune(wanted, store=Store(tmp_path / "whole"), **options)
    assert found.predictions["en"].shape == (len(found.steps), len(ASKED["en"]), 2)
    np.testing.assert_array_equal(found.losses, whole.losses)
    np.testing.assert_array_equal(found.predictions["en"], whole.predictions["en"])


def test_the_rate_of_a_linear_schedule_falls_to_zero(
    model: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, before = [], finetuning.torch.optim.AdamW.step

    def spy(optimiser: object, *arguments: object, **named: object) -> object:
        rates.append(optimiser.param_groups[0]["lr"])
        return before(optimiser, *arguments, **named)

    monkeypatch.setattr(finetuning.torch.optim.AdamW, "step", spy)
    one = job(model, PAIRS, schedule="linear", warmup=0.0, learning_rate=0.1)
    finetuning.finetune(one, store=store, device="cpu", progress=False)
    n = len(rates)
    np.testing.assert_allclose(rates, [0.1 * (n - k) / n for k in range(n)])
    with pytest.raises(FinetuningError, match="schedule"):
        replace(RECIPE, schedule="cosine")


def test_one_part_alone_is_asked_once_and_stands_in_every_row(
    model: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = {code: examples.only(part, "second") for code, part in PAIRS.items()}
    count, before = [], grids._pairs

    def counting(cell: Examples, *rest: object) -> object:
        count.append(cell.language)
        return before(cell, *rest)

    monkeypatch.setattr(grids, "_pairs", counting)
    grid = asked_of([job(model, sets)], sets, store, n_jobs=1)[0]
    assert sorted(count) == sorted(LANGUAGES)
    assert (grid.predictions == grid.predictions[:1]).all()
    turned = asked_of([job(model, sets)], sets, store, part=0)[0]
    np.testing.assert_array_equal(turned.predictions, grid.predictions.transpose(1, 0, 2))


def test_a_reader_without_questions_is_asked_once_a_context(model: str, store: Store) -> None:
    sets = {code: questions.questionless(part) for code, part in ASKED.items()}
    grid = asked_of([job(model, sets)], sets, store)[0]
    assert (grid.predictions == grid.predictions[:, :1]).all()


def test_a_stopped_grid_goes_on(
    model: str, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, before, rows = job(model, PAIRS), grids._answer, []

    def counting(block: object, *rest: object) -> int:
        if len(rows) == stop:
            raise KeyboardInterrupt
        rows.append(len(block.cells))
        return before(block, *rest)

    monkeypatch.setattr(grids, "_answer", counting)
    stop = 1
    with pytest.raises(KeyboardInterrupt):
        asked_of([one], PAIRS, store, n_jobs=1)
    assert rows == [3]
    stop = None
    found = asked_of([one], PAIRS, store, n_jobs=1)[0]
    assert rows == [3, 3, 3]  # the first row is not asked again
    again = asked_of([one], PAIRS, store, n_jobs=1)[0]
    assert rows == [3, 3, 3]
    whole = asked_of([one], PAIRS, Store(tmp_path / "other"), n_jobs=1)[0]
    np.testing.assert_array_equal(found.predictions, whole.predictions)
    np.testing.assert_array_equal(again.predictions, whole.predictions)


def test_grids_side_by_side_are_those_one_after_another(model: str, tmp_path: Path) -> None:
    jobs = [job(model, PAIRS), replace(job(model, PAIRS), seed=2)]
    one = asked_of(jobs, PAIRS, Store(tmp_path / "a"), n_jobs=1)
    two = asked_of(jobs, PAIRS, Store(tmp_path / "b"), n_jobs=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.predictions, b.predictions)
    assert [grid.seed for grid in one] == [1, 2]


def test_the_mean_over_seeds_is_of_the_scores(model: str, store: Store) -> None:
    jobs = [replace(job(model, PAIRS), seed=seed) for seed in (1, 2, 3)]
    found = asked_of(jobs, PAIRS, store)
    mean = averaged(found)
    wanted = sum(grid.scores["accuracy"] for grid in found) / 3
    np.testing.assert_allclose(mean.scores["accuracy"], wanted)
    assert mean.seed == -1
    with pytest.raises(GridError, match="not a grid of the same model"):
        averaged([found[0], replace(found[1], languages=("en", "de", "fr"))])
    with pytest.raises(GridError, match="no grid"):
        averaged([])


# --- what is refused ------------------------------------------------------------------------------


def test_sets_that_are_not_parallel_are_named(model: str, store: Store) -> None:
    shorter = {**PAIRS, "de": PAIRS["de"].at(range(5))}
    with pytest.raises(ExamplesError, match="made de has 5 examples"):
        asked_of([job(model, PAIRS)], shorter, store)
    turned = {**ASKED, "ru": ASKED["ru"].at([1, 0, 2, 3, 4, 5])}
    with pytest.raises(QuestionsError, match="ru"):
        asked_of([job(model, ASKED)], turned, store)


def test_one_language_is_no_grid(model: str, store: Store) -> None:
    with pytest.raises(GridError, match=r"two languages or more.*en"):
        asked_of([job(model, PAIRS)], {"en": PAIRS["en"]}, store)


def test_empty_cells_are_refused(model: str, store: Store) -> None:
    empty = {code: part.at([]) for code, part in PAIRS.items()}
    with pytest.raises(GridError, match="every cell would be empty"):
        asked_of([job(model, PAIRS)], empty, store)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (ASKED, "examples or questions"),
        ({code: replace(part, classes=("a", "b")) for code, part in PAIRS.items()}, "classes"),
        ({code: examples.only(part, "second") for code, part in PAIRS.items()}, "pairs or"),
    ],
)
def test_a_model_of_another_task_is_refused(
    model: str, store: Store, sets: dict, message: str
) -> None:
    with pytest.raises(GridError, match=message):
        asked_of([job(model, PAIRS)], sets, store)


def test_a_question_without_room_is_refused(model: str, store: Store) -> None:
    with pytest.raises(InputError, match="leaves no room"):
        asked_of([job(model, ASKED, max_length=9)], ASKED, store)


def test_no_question_to_learn_from_is_refused(model: str, store: Store) -> None:
    one = Job(model, ASKED["en"].at([]), {"en": ASKED["en"]}, RECIPE)
    with pytest.raises(FinetuningError, match="no question"):
        asked_of([one], ASKED, store)


def test_questions_and_examples_do_not_mix(model: str, store: Store) -> None:
    one = Job(model, ASKED["en"], {"en": PAIRS["en"]}, RECIPE)
    with pytest.raises(FinetuningError, match="both of questions"):
        asked_of([one], ASKED, store)


# --- baselines ------------------------------------------------------------------------------------


WORDS = {
    "en": "the of and in to is was he for it with as his on be at by had not are but from or have",
    "de": "der die und den von zu das mit sich des auf für ist im dem nicht ein eine als auch es",
}


def overlapping(language: str, n: int = 200) -> Examples:
    """Pairs that are "same" if half of their words are: a task of overlap alone."""
    rng = np.random.default_rng(1)
    words = WORDS[language].split()
    first, second, labels = [], [], np.arange(n) % 2
    for label in labels:
        drawn = [words[i] for i in rng.permutation(len(words))]
        first.append(" ".join(drawn[:6]))
        second.append(" ".join(drawn[3:9] if label else drawn[6:12]))
    return Examples(
        f"overlap {language}", language, tuple(first), tuple(second), labels, ("no", "same"),
        tuple(map(str, range(n))),
    )  # fmt: skip


def test_overlap_is_learnt_and_does_not_cross() -> None:
    sets = {"en": overlapping("en"), "de": overlapping("de")}
    grid = baselines.bag_of_subwords("mini-mbert", sets["en"], sets)
    accuracy = grid.scores["accuracy"].mean(axis=2)
    assert accuracy[0, 0] > 0.95
    assert accuracy[1, 1] > 0.8  # overlap is overlap in any language
    assert abs(accuracy[0, 1] - 0.5) < 0.15
    assert grid.predictions.shape == (2, 2, 200)


def test_the_bag_is_of_pairs() -> None:
    sets = {code: examples.only(part, "first") for code, part in PAIRS.items()}
    with pytest.raises(GridError, match="single sentences"):
        baselines.bag_of_subwords("mini-mbert", sets["en"], sets)
    with pytest.raises(GridError, match="same classes"):
        baselines.bag_of_subwords("mini-mbert", overlapping("en"), PAIRS)


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

    grid = baselines.nearest_span({"en": made("en"), "de": made("de")}, 1)
    accuracy = grid.scores["EM"].mean(axis=2)
    assert accuracy[0, 0] == accuracy[1, 1] == 1
    assert accuracy[0, 1] == accuracy[1, 0] == 0


def test_measured_tables_name_their_models(model: str, store: Store) -> None:
    grid = asked_of([job(model, PAIRS)], PAIRS, store)[0]
    both = grids.measured([grid, replace(grid, model="other")], mixing.summary, seed=1)
    assert both["model"].unique().tolist() == [model, "other"]
    alone = mixing.summary(grid.scores["accuracy"], grid.languages, grid.groups, seed=1)
    np.testing.assert_array_equal(both["score"].to_numpy()[: len(alone)], alone["score"])
