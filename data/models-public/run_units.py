"""The long runs of public models: what each unit learns and asks, in the words of the library.

A unit is an hour or two on one thread. What it asks for are entries of the ordinary kinds, found by
content: a notebook that makes the same jobs from the same texts finds them. All that decides them
stands here: `MODEL`, `LANGUAGES` (in this order), the recipes, and which pairs are asked:

* to learn: the train part of XNLI whole (5,490 pairs); to ask: its test part (2,010 pairs) in the
  language of both sentences, and `N_GRID` of these, drawn by the seed 1, in all pairs of languages;
* of IGAP: to learn the public dev part (2,490 pairs), to ask its translations, and `N_GRID` pairs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from run_frozen import Calls, frozen_units

from shared import controls
from shared.mixing_tables import LINEAR, task_data
from xlx.experiment.grids import grid
from xlx.experiment.transfers import TransferTask, sparing_in
from xlx.subjects import finetuning
from xlx.subjects.jobs import Job, Recipe, Sparing
from xlx.text import examples, labelled
from xlx.text.examples import Examples
from xlx.text.questions import Questions

Sets = Mapping[str, Examples] | Mapping[str, Questions]

MODEL, ENGLISH_MODEL = "multilingual-e5-small", "all-MiniLM-L6-v2"
LANGUAGES = (
    "ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh",
)  # fmt: skip
IGAP_LANGUAGES = ("en", "ar", "de", "fr", "ru", "sw", "zh")
SICK_LANGUAGES = ("en", "nl", "pt", "pl", "ja")
XQUAD_LANGUAGES = ("en", "de", "ru", "es", "zh", "vi", "ar", "tr", "el", "hi")
N_GRID, N_QUESTIONS = 500, 240

#: The table of word embeddings (96 of 118 million weights) stays: a step takes 5 s, and not 8.6.
_CHEAP = {"trained_embeddings": False, "length_pool": 50, "batch_size": 32}
RECIPE = Recipe(epochs=3, learning_rate=5e-5, max_length=128, **_CHEAP, **LINEAR)
READER = Recipe(epochs=2, learning_rate=5e-5, max_length=256, stride=64, **_CHEAP, **LINEAR)
#: To training errors near 0: twice the rate, constant. 78 steps are an epoch.
FITTING = Recipe(epochs=10, learning_rate=1e-4, max_length=128, every=78, **_CHEAP)
#: The translations are asked where the training error is within 0.025 above one of these.
WINDOWS = Sparing(tuple((level, 0.025) for level in (0.0, 0.05, 0.1, 0.2)))


@dataclass(frozen=True)
class Unit:
    """A long run: name, what it is, minutes on one thread, and the calls that it makes.

    Each call finds its results in the ledger or the cache, or computes them.
    """

    name: str
    what: str
    minutes: int
    calls: Callable[[], Calls] = field(repr=False)


# --- texts ----------------------------------------------------------------------------------------


@cache
def xnli(language: str, split: str) -> Examples:
    """XNLI whole: "train" or "test"."""
    return labelled.load_labelled("NLI", language, split, source="xnli-whole")


@cache
def pairs_to_ask(n: int | None = None, shuffled: str | None = None) -> dict[str, Examples]:
    """The test part in all languages: n of the pairs, the words of one part shuffled."""
    sets = {code: xnli(code, "test") for code in LANGUAGES}
    if n is not None:
        sets = {code: part.take(n, 1) for code, part in sets.items()}
    if shuffled:
        sets = {code: controls.shuffled(part, 1, parts=[shuffled]) for code, part in sets.items()}
    return sets


@cache
def only_second(n: int | None = None) -> dict[str, Examples]:
    """The hypotheses of `pairs_to_ask` alone."""
    return {code: controls.only(part, "second") for code, part in pairs_to_ask(n).items()}


# --- what is asked --------------------------------------------------------------------------------


def xnli_job(source: str, seed: int, model: str = MODEL) -> Job:
    """XNLI in one language, asked about the whole test part in all."""
    return Job(model, xnli(source, "train"), pairs_to_ask(), RECIPE, seed)


def mixed_job(first: str, second: str, seed: int) -> Job:
    """Premises in one language and hypotheses in another, as in `mixing_6_pairs`."""
    taught = examples.crossed(xnli(first, "train"), xnli(second, "train"))
    return Job(MODEL, taught, {"learnt": taught.at(range(100))}, RECIPE, seed)


def igap_task() -> TransferTask:
    """The public dev part to learn, in `IGAP_LANGUAGES`, and some of the test part."""
    train = {}
    for code in IGAP_LANGUAGES:
        whole = xnli(code, "train")
        dev = whole.at(i for i, x in enumerate(whole.ids) if x.startswith("dev:"))
        train[code] = replace(dev, name=f"{whole.name}, of dev")
    test = {code: pairs_to_ask(N_GRID)[code] for code in IGAP_LANGUAGES}
    return TransferTask("NLI", train, test, {"train": {}, "test": {}})


def igap_job(seed: int) -> Job:
    """As `transfers.transfer_task` has it, from English."""
    task = igap_task()
    sparing = sparing_in(task, "en", WINDOWS)
    return Job(MODEL, task.train["en"], task.sets, FITTING, seed, sparing)


def reader(seed: int) -> tuple[Job, dict[str, Questions]]:
    """TyDi QA in English, and a question of each paragraph of XQuAD."""
    data = task_data(
        "QA", XQUAD_LANGUAGES, "en", None, N_QUESTIONS, train_source="tydiqa-whole", per_context=1
    )
    return Job(MODEL, data.train, {"validation": data.held_out}, READER, seed), dict(data.sets)


def learn(job: Job, weights: bool = True) -> Callable[[], object]:
    """To fine-tune; with ``weights`` they stay in the cache, for a grid."""
    return partial(finetuning.finetune_all, [job], weights=weights)


def ask_all(job: Job, sets: Sets) -> Callable[[], object]:
    """To ask a fine-tuned model about all pairs of languages."""
    return partial(grid, [job], sets)


# --- units ----------------------------------------------------------------------------------------


def units() -> list[Unit]:
    """All units, in the order in which they run."""
    return [
        *(_xnli("en", seed) for seed in (1, 2, 3)),
        *(_xnli_grid(seed) for seed in (1, 2, 3)),
        *(_xnli_grid(1, part) for part in ("first", "second")),
        *(_hypotheses(seed) for seed in (1, 2, 3)),
        *(_igap(seed) for seed in (1, 2, 3)),
        *(unit for code in ("de", "sw") for unit in _mixed(code, 1)),
        *(_sick(seed) for seed in (1, 2, 3)),
        *(unit for seed in (1, 2) for unit in _readers(seed)),
        *(_xnli(code, 1) for code in ("de", "zh")),
        Unit(
            "minilm-xnli-en-seed1", f"{ENGLISH_MODEL}: XNLI in English, asked in 15 languages", 35,
            lambda: [learn(xnli_job("en", 1, ENGLISH_MODEL))],
        ),
        *(unit for seed in (2, 3) for code in ("de", "sw") for unit in _mixed(code, seed)),
        *(_xnli_grid(seed, part) for seed in (2, 3) for part in ("first", "second")),
        *(Unit(*unit) for unit in frozen_units()),
    ]  # fmt: skip


def _xnli(source: str, seed: int) -> Unit:
    what = f"XNLI learnt in {source}, the test part asked in 15 languages"
    return Unit(f"xnli-{source}-seed{seed}", what, 62, lambda: [learn(xnli_job(source, seed))])


def _xnli_grid(seed: int, shuffled: str | None = None) -> Unit:
    name, what = f"xnli-en-seed{seed}-grid", f"{N_GRID} test pairs in all pairs of 15 languages"
    if shuffled:
        part = {"first": "premise", "second": "hypothesis"}[shuffled]
        name, what = f"{name}-shuffled-{part}", f"{what}, {part} shuffled"
    return Unit(
        name, what, 65, lambda: [ask_all(xnli_job("en", seed), pairs_to_ask(N_GRID, shuffled))]
    )


def _hypotheses(seed: int) -> Unit:
    what = "the hypotheses of XNLI alone, learnt in English, asked in 15 languages"

    def calls() -> Calls:
        train = controls.only(xnli("en", "train"), "second")
        job = Job(MODEL, train, only_second(), RECIPE, seed)
        return [learn(job), ask_all(job, only_second(N_GRID))]

    return Unit(f"xnli-hypothesis-seed{seed}", what, 35, calls)


def _igap(seed: int) -> Unit:
    what = "the dev part of XNLI learnt to the end, its translations asked on the way (IGAP)"
    return Unit(f"igap-en-seed{seed}", what, 115, lambda: [learn(igap_job(seed), weights=False)])


def _mixed(code: str, seed: int) -> tuple[Unit, Unit]:
    name, job = f"xnli-en-{code}-seed{seed}", partial(mixed_job, "en", code, seed)
    what = f"XNLI learnt, premises in en, hypotheses in {code}"
    asked = f"{N_GRID} test pairs in all pairs of 15 languages"
    return (
        Unit(name, what, 48, lambda: [learn(job())]),
        Unit(f"{name}-grid", asked, 65, lambda: [ask_all(job(), pairs_to_ask(N_GRID))]),
    )


def _sick(seed: int) -> Unit:
    what = "SICK learnt in English, asked in 5 languages and all pairs of them"

    def calls() -> Calls:
        sets, _ = labelled.parallel_examples("NLI", SICK_LANGUAGES, "test", source="sick")
        train = labelled.load_labelled("NLI", "en", "train", source="sick")
        job = Job(MODEL, train, sets, RECIPE, seed)
        few = {code: part.take(N_GRID, 1) for code, part in job.evaluations.items()}
        return [learn(job), ask_all(job, few)]

    return Unit(f"sick-en-seed{seed}", what, 35, calls)


def _readers(seed: int) -> tuple[Unit, Unit]:
    name = f"tydiqa-en-seed{seed}"
    asked = f"{N_QUESTIONS} questions of XQuAD in all pairs of {len(XQUAD_LANGUAGES)} languages"
    return (
        Unit(name, "TyDi QA learnt in English", 75, lambda: [learn(reader(seed)[0])]),
        Unit(f"{name}-grid", asked, 70, lambda: [ask_all(*reader(seed))]),
    )
