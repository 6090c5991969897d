"""The long runs of public models: what each unit learns and asks, in the words of the library.

A unit is an hour or two on one thread. What it asks for are entries of the ordinary kinds, found by
content: a notebook that makes the same jobs from the same texts finds them. All that decides them
stands here: `MODEL`, `INFERENCE` (languages in this order), the recipes, and the pairs asked:

* to learn: the train part of XNLI whole (5,490 pairs); to ask: its test part (2,010 pairs) in the
  language of both sentences, and `N_GRID` of these, drawn by the seed 1, in all pairs of languages;
* of IGAP: to learn the public dev part (2,490 pairs), to ask its translations, and `N_GRID` pairs.

What a score is worth beside a model that read English alone, and one that read nothing, is asked of
`ENGLISH_MODEL` and `UNTRAINED` by the same recipes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from run_frozen import Calls, frozen_units
from shared import controls
from shared.mixing_tables import LINEAR, Origin, task_data
from xlx.experiment.grids import grid
from xlx.experiment.transfers import (
    INFERENCE,
    NEGATION,
    SHIPPED,
    SPARING,
    WIDE,
    TransferTask,
    labelled_task,
    random_task,
    sparing_in,
)
from xlx.subjects import finetuning
from xlx.subjects.identity import twin_of
from xlx.subjects.jobs import ALGORITHMS, Job, Recipe
from xlx.text import examples, labelled, parallel
from xlx.text.examples import Examples
from xlx.text.questions import Questions, questionless

Sets = Mapping[str, Examples] | Mapping[str, Questions]

MODEL, ENGLISH_MODEL = "multilingual-e5-small", "all-MiniLM-L6-v2"
UNTRAINED = twin_of(MODEL)
#: A model → what its units are called.
_PREFIXES = {MODEL: "", ENGLISH_MODEL: "minilm-", UNTRAINED: "untrained-"}
SICK_LANGUAGES = ("en", "nl", "pt", "pl", "ja")
XQUAD_LANGUAGES = ("en", "de", "ru", "es", "zh", "vi", "ar", "tr", "el", "hi")
N_GRID, N_QUESTIONS = 500, 240

#: The table of word embeddings (96 of 118 million weights) stays: a step takes 5 s, and not 8.6.
#: "tf32" changes nothing on a CPU; on a GPU products of float32 go by TF32.
_CHEAP = {
    "trained_embeddings": False,
    "length_pool": 50,
    "batch_size": 32,
    "dtype": "tf32",
}
RECIPE = Recipe(epochs=3, learning_rate=5e-5, max_length=128, **_CHEAP, **LINEAR)
READER = Recipe(epochs=2, learning_rate=5e-5, max_length=256, stride=64, **_CHEAP, **LINEAR)
#: To training errors near 0: twice the rate, constant. 78 steps are an epoch.
FITTING = replace(SHIPPED["NLI"][2], **WIDE)
#: An untrained model learns the training set later, if it does.
FITTING_UNTRAINED = replace(FITTING, epochs=40, every=78)
#: Random labels of 100 sentences: forty steps suffice to learn them by heart.
BY_HEART = Recipe(
    epochs=8,
    batch_size=20,
    learning_rate=2e-4,
    every=40,
    length_pool=5,
    trained_embeddings=False,
    dtype="bfloat16",
)


@dataclass(frozen=True)
class Unit:
    """A long run: name, what it is, minutes on one thread, and the calls that it makes.

    Each call finds its results in the ledger or the cache, or computes them. ``needs`` is the unit
    whose fine-tuned weights it reads, and which comes first.
    """

    name: str
    what: str
    minutes: int
    calls: Callable[[], Calls] = field(repr=False)
    needs: str = ""


# --- texts ----------------------------------------------------------------------------------------


@cache
def xnli(language: str, split: str) -> Examples:
    """XNLI whole: "train" or "test"."""
    return labelled.load_labelled("NLI", language, split, source="xnli-whole")


@cache
def pairs_to_ask(n: int | None = None, shuffled: str | None = None) -> dict[str, Examples]:
    """The test part in all languages: n of the pairs, the words of one part shuffled."""
    sets = {code: xnli(code, "test") for code in INFERENCE}
    if n is not None:
        sets = {code: part.take(n, 1) for code, part in sets.items()}
    if shuffled:
        sets = {code: controls.shuffled(part, 1, parts=[shuffled]) for code, part in sets.items()}
    return sets


def wrong_premises() -> dict[str, Examples]:
    """`N_GRID` pairs in some languages, each with the premise of another."""
    sets = pairs_to_ask(N_GRID)
    some = ("en", "de", "es", "ru", "ar", "sw", "zh")
    return {code: controls.wrong_premises(sets[code]) for code in some}


@cache
def only_second(n: int | None = None, shuffled: str | None = None) -> dict[str, Examples]:
    """The hypotheses of `pairs_to_ask` alone."""
    sets = pairs_to_ask(n, shuffled)
    return {code: controls.only(part, "second") for code, part in sets.items()}


# --- what is asked --------------------------------------------------------------------------------


def xnli_job(source: str, seed: int, model: str = MODEL, shuffled: bool = False) -> Job:
    """XNLI in one language, or its words shuffled, asked about the whole test part in all."""
    train = xnli(source, "train")
    train = controls.shuffled(train, 1) if shuffled else train
    return Job(model, train, pairs_to_ask(), RECIPE, seed)


def hypotheses_job(seed: int, model: str = MODEL, source: str = "en") -> Job:
    """The hypotheses of XNLI alone, in one language."""
    return Job(model, controls.only(xnli(source, "train"), "second"), only_second(), RECIPE, seed)


def mixed_job(second: str, seed: int) -> Job:
    """Premises in English and hypotheses in another language, as in `mixing_3_controls`."""
    taught = examples.crossed(xnli("en", "train"), xnli(second, "train"))
    return Job(MODEL, taught, {"learnt": taught.at(range(100))}, RECIPE, seed)


def sick_job(seed: int, model: str = MODEL) -> Job:
    """SICK in English, asked in all its languages."""
    sets, _ = labelled.parallel_examples("NLI", SICK_LANGUAGES, "test", source="sick")
    train = labelled.load_labelled("NLI", "en", "train", source="sick")
    return Job(model, train, sets, RECIPE, seed)


@cache
def igap_task() -> TransferTask:
    """The public dev part to learn, in all languages, and some of the test part."""
    return labelled_task("NLI", INFERENCE, n_test=N_GRID, train_split="validation")


def igap_job(source: str, seed: int, model: str = MODEL, **changes: Any) -> Job:
    """As `transfers.transfer_task` has it, with changes of the recipe."""
    task, recipe = igap_task(), FITTING_UNTRAINED if model == UNTRAINED else FITTING
    sparing = sparing_in(task, source, SPARING)
    return Job(model, task.train[source], task.sets, replace(recipe, **changes), seed, sparing)


def shipped_job(name: str, seed: int, algorithm: str = "vanilla") -> Job:
    """Negation or PAWS-X in English as `xlx igap` has it, with checkpoints on the way."""
    languages, sizes, recipe, _ = SHIPPED[name]
    task, recipe = labelled_task(name, languages, **sizes), replace(recipe, **WIDE)
    recipe = replace(recipe, every=min(recipe.every, 96), algorithm=algorithm)
    return Job(MODEL, task.train["en"], task.sets, recipe, seed, sparing_in(task, "en", SPARING))


def random_job(source: str, draw: int) -> Job:
    """Labels by lot of FLORES-200 in XNLI's languages; the seed is the number of the draw."""
    task = random_task(parallel.load("flores200-100", INFERENCE, drop_duplicates=True), draw)
    return Job(MODEL, task.train[source], task.sets, BY_HEART, draw)


def reader(seed: int, questions: bool = True) -> tuple[Job, dict[str, Questions]]:
    """TyDi QA in English, and a question of each paragraph of XQuAD; or without their questions."""
    data = task_data(
        "QA", XQUAD_LANGUAGES, "en", None, N_QUESTIONS, Origin("tydiqa-whole"), per_context=1
    )
    change = questionless if not questions else lambda rows: rows
    job = Job(MODEL, change(data.train), {"validation": change(data.held_out)}, READER, seed)
    return job, {code: change(part) for code, part in data.sets.items()}


def learn(job: Job, weights: bool = True) -> Callable[[], object]:
    """To fine-tune; with ``weights`` they stay in the cache, for a grid."""
    return partial(finetuning.finetune_all, [job], weights=weights)


def ask_all(job: Job, sets: Sets) -> Callable[[], object]:
    """To ask a fine-tuned model about all pairs of languages."""
    return partial(grid, [job], sets)


# --- units ----------------------------------------------------------------------------------------


def units() -> list[Unit]:
    """All units, in the order in which they run."""
    first, more = (1, 2, 3), (4, 5)
    return [
        *(unit for seed in first for unit in _xnli("en", seed)),
        *(_hypotheses(seed) for seed in first),
        *(_igap("en", seed) for seed in first),
        *(unit for code in ("de", "sw") for unit in _mixed(code, 1)),
        *(_sick(seed) for seed in first),
        *(unit for seed in first for unit in _readers(seed)),
        *(unit for code in ("de", "zh") for seed in first for unit in _xnli(code, seed)),
        *(unit for seed in first for unit in _xnli("en", seed, ENGLISH_MODEL)),
        *(unit for seed in first for unit in _xnli("en", seed, UNTRAINED)),
        *(_igap("en", seed, model) for model in (ENGLISH_MODEL, UNTRAINED) for seed in first),
        *(_igap(code, seed) for code in ("de", "zh") for seed in first),
        *(unit for seed in (2, 3) for code in ("de", "sw") for unit in _mixed(code, seed)),
        *(_shuffled(seed, part) for seed in first for part in ("first", "second")),
        *(_sick(seed, model) for model in (ENGLISH_MODEL, UNTRAINED) for seed in first),
        *(unit for seed in more for unit in _xnli("en", seed)),
        *(_hypotheses(seed) for seed in more),
        *(_hypotheses(seed, ENGLISH_MODEL) for seed in first),
        *(_hypotheses(seed, MODEL, code) for code in ("de", "zh") for seed in first),
        *(_igap(x, seed) for seed in first for x in INFERENCE if x not in ("en", "de", "zh")),
        *(_blind_reader(seed) for seed in first),
        *(_by_heart(source, draw) for draw in first for source in ("en", "de", "zh")),
        *(_negation(seed, how) for how in ALGORITHMS for seed in first),
        *(_paraphrase(seed) for seed in first),
        *(unit for seed in first for unit in _xnli("en", seed, shuffled=True)),
        *(_wrong(seed) for seed in first),
        *(_longer(source) for source in ("sw", "th", "tr", "ur")),
        *(Unit(*unit) for unit in frozen_units()),
    ]


def _learnt_and_asked(name: str, what: str, minutes: int, job: Callable[[], Job]) -> list[Unit]:
    """To fine-tune on XNLI, and to ask what comes out about all pairs of languages."""
    asked = f"{N_GRID} test pairs in all pairs of 15 languages"
    return [
        Unit(name, what, minutes, lambda: [learn(job())]),
        Unit(f"{name}-grid", asked, 65, lambda: [ask_all(job(), pairs_to_ask(N_GRID))], name),
    ]


def _xnli(source: str, seed: int, model: str = MODEL, shuffled: bool = False) -> list[Unit]:
    name = f"{_PREFIXES[model]}xnli-{source}{'-shuffled' * shuffled}-seed{seed}"
    what = f"{model}: XNLI learnt in {source}, the test part asked in 15 languages"
    return _learnt_and_asked(name, what, 62, partial(xnli_job, source, seed, model, shuffled))


def _wrong(seed: int) -> Unit:
    def calls() -> Calls:
        return [ask_all(xnli_job("en", seed), wrong_premises())]

    name = f"xnli-en-seed{seed}"
    return Unit(f"{name}-grid-wrong", "wrong premises in 7 languages", 65, calls, name)


def _shuffled(seed: int, shuffled: str) -> Unit:
    part = {"first": "premise", "second": "hypothesis"}[shuffled]
    name, what = f"xnli-en-seed{seed}", f"{N_GRID} test pairs in all pairs of 15 languages, {part}"
    return Unit(
        f"{name}-grid-shuffled-{part}",
        f"{what} shuffled",
        65,
        lambda: [ask_all(xnli_job("en", seed), pairs_to_ask(N_GRID, shuffled))],
        name,
    )


def _hypotheses(seed: int, model: str = MODEL, source: str = "en") -> Unit:
    what = f"{model}: the hypotheses of XNLI alone, learnt in {source}, asked in 15 languages"
    job, second = partial(hypotheses_job, seed, model, source), "second"
    prefix = "" if source == "en" else f"{source}-"
    return Unit(
        f"{_PREFIXES[model]}xnli-{prefix}hypothesis-seed{seed}",
        what,
        40,
        lambda: [
            learn(job()),
            ask_all(job(), only_second(N_GRID)),
            ask_all(job(), only_second(N_GRID, second)),
        ],
    )


def _igap(source: str, seed: int, model: str = MODEL) -> Unit:
    what = f"{model}: the dev part of XNLI learnt to the end, its translations asked (IGAP)"
    name = f"{_PREFIXES[model]}igap-{source}-seed{seed}"
    return _run(name, 120, partial(igap_job, source, seed, model), what)


def _negation(seed: int, algorithm: str) -> Unit:
    """Negation in English, by an algorithm of the paper (Tables 3 and 8)."""
    name = f"negation-en-seed{seed}" + f"-{algorithm}" * (algorithm != ALGORITHMS[0])
    return _run(name, 17, partial(shipped_job, NEGATION, seed, algorithm))


def _longer(source: str) -> Unit:
    """A source that does not get to training error 0, or with the first seed learns nothing."""
    changes = {"epochs": 16, "every": 10**9}
    job = partial(igap_job, source, 2 if source == "ur" else 1, **changes)
    return _run(f"igap-{source}-longer", 100, job)


def _by_heart(source: str, draw: int) -> Unit:
    what = "random labels learnt by heart, their translations asked (IGAP)"
    return _run(f"random-labels-{source}-draw{draw}", 2, partial(random_job, source, draw), what)


def _run(name: str, minutes: int, job: Callable[[], Job], what: str = "as its name says") -> Unit:
    """A run whose weights nobody asks for."""
    return Unit(name, what, minutes, lambda: [learn(job(), weights=False)])


def _paraphrase(seed: int) -> Unit:
    """PAWS-X in English, its translations, and all pairs of languages."""

    def calls() -> Calls:
        job = shipped_job("PI", seed)
        tests = {x[5:]: y for x, y in job.evaluations.items() if x.startswith("test ")}
        return [learn(job), ask_all(job, tests)]

    return Unit(f"pawsx-en-seed{seed}", "PAWS-X in English, asked in 7 languages", 70, calls)


def _mixed(code: str, seed: int) -> list[Unit]:
    what = f"XNLI learnt, premises in en, hypotheses in {code}"
    job = partial(mixed_job, code, seed)
    return _learnt_and_asked(f"xnli-en-{code}-seed{seed}", what, 48, job)


def _sick(seed: int, model: str = MODEL) -> Unit:
    what = f"{model}: SICK learnt in English, asked in 5 languages and all pairs of them"

    def calls() -> Calls:
        job = sick_job(seed, model)
        few = {code: part.take(N_GRID, 1) for code, part in job.evaluations.items()}
        return [learn(job), ask_all(job, few)]

    return Unit(f"{_PREFIXES[model]}sick-en-seed{seed}", what, 35, calls)


def _readers(seed: int) -> tuple[Unit, Unit]:
    name = f"tydiqa-en-seed{seed}"
    asked = f"{N_QUESTIONS} questions of XQuAD in all pairs of {len(XQUAD_LANGUAGES)} languages"
    return (
        Unit(name, "TyDi QA learnt in English", 75, lambda: [learn(reader(seed)[0])]),
        Unit(f"{name}-grid", asked, 70, lambda: [ask_all(*reader(seed))], name),
    )


def _blind_reader(seed: int) -> Unit:
    def calls() -> Calls:
        job, sets = reader(seed, questions=False)
        return [learn(job), ask_all(job, sets)]

    return Unit(f"tydiqa-blind-seed{seed}", "TyDi QA and XQuAD without questions", 90, calls)
