"""The long runs of public models: what each unit learns and asks, in the words of the library.

A unit is an hour or two on one thread. What it asks for are entries of the ordinary kinds, found by
content: a notebook that makes the same jobs from the same texts finds them. All that decides them
stands here: `MODEL`, `LANGUAGES` (in this order), the recipes, and which pairs are asked:

* to learn: the train part of XNLI whole (5,490 pairs); to ask: its test part (2,010 pairs) in the
  language of both sentences, and `N_GRID` of these, drawn by the seed 1, in all pairs of languages;
* of IGAP: to learn the public dev part (2,490 pairs), to ask its translations, and `N_GRID` pairs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product

from run_frozen import Measured, frozen_units

from shared.mixing_experiments import recipe_of
from shared.mixing_tables import question_data
from xlx.experiment.grids import CELL, evaluate
from xlx.experiment.transfers import TransferTask, sparing_in
from xlx.results.ledger import Ask
from xlx.subjects import finetuning, jobs
from xlx.subjects.jobs import Job, Recipe, Sparing
from xlx.text import examples, labelled, parallel_sets
from xlx.text.examples import Examples
from xlx.text.questions import Questions

Sets = Mapping[str, Examples] | Mapping[str, Questions]

MODEL, ENGLISH_MODEL = "multilingual-e5-small", "all-MiniLM-L6-v2"
LANGUAGES = (
    "ar",
    "bg",
    "de",
    "el",
    "en",
    "es",
    "fr",
    "hi",
    "ru",
    "sw",
    "th",
    "tr",
    "ur",
    "vi",
    "zh",
)
IGAP_LANGUAGES = ("en", "ar", "de", "fr", "ru", "sw", "zh")
SICK_LANGUAGES = ("en", "nl", "pt", "pl", "ja")
XQUAD_LANGUAGES = ("en", "de", "ru", "es", "zh", "vi", "ar", "tr", "el", "hi")
N_GRID, N_QUESTIONS = 500, 240

#: The table of word embeddings (96 of 118 million weights) stays: a step takes 5 s, and not 8.6.
_CHEAP = {"trained_embeddings": False, "length_pool": 50, "batch_size": 32}
RECIPE = recipe_of(epochs=3, learning_rate=5e-5, max_length=128, **_CHEAP)
READER = recipe_of(epochs=2, learning_rate=5e-5, max_length=256, stride=64, **_CHEAP)
#: To training errors near 0: twice the rate, constant. 78 steps are an epoch.
FITTING = Recipe(epochs=10, learning_rate=1e-4, max_length=128, every=78, **_CHEAP)
#: The translations are asked where the training error is within 0.025 above one of these.
WINDOWS = Sparing(tuple((level, 0.025) for level in (0.0, 0.05, 0.1, 0.2)))


@dataclass(frozen=True)
class Asked:
    """What a unit asks for: fine-tunings with their predictions, and grids of fine-tuned models.

    With ``weights`` the fine-tunings leave their weights in the cache, for the grids.
    """

    jobs: Sequence[Job] = ()
    grids: Sequence[tuple[Job, Sets]] = ()
    weights: bool = True

    def answer(self) -> None:
        """Compute what neither the ledger nor the cache has."""
        if self.jobs:
            finetuning.finetune_all(self.jobs, weights=self.weights)
        for job, sets in self.grids:
            evaluate([job], sets)

    def asks(self) -> list[Ask]:
        """By what each entry is found."""
        runs = [finetuning.RUN.ask(jobs.run_about(job)) for job in self.jobs]
        return [*runs, *(ask for grid in self.grids for ask in _cells(*grid))]


def _cells(job: Job, sets: Sets) -> Iterator[Ask]:
    """The asks of the distinct cells of a grid, as `grids.evaluate` has them."""
    learnt, parts = jobs.learning(job), list(sets.values())
    single = isinstance(parts[0], Examples) and parts[0].second is None
    cells = parts if single else (parallel_sets.crossed(a, b) for a, b in product(parts, repeat=2))
    for name in dict.fromkeys(cell.text_hash() for cell in cells):
        yield CELL.ask({"learnt": learnt, "cell": name})


@dataclass(frozen=True)
class Unit:
    """A long run: name, what it is, minutes on one thread, what it asks for (None: later)."""

    name: str
    what: str
    minutes: int
    asked: Callable[[], Asked | Measured] | None = field(repr=False)


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
        sets = {code: part.shuffled(1, parts=[shuffled]) for code, part in sets.items()}
    return sets


@cache
def only_second(n: int | None = None) -> dict[str, Examples]:
    """The hypotheses of `pairs_to_ask` alone."""
    return {code: examples.only(part, "second") for code, part in pairs_to_ask(n).items()}


# --- what is asked --------------------------------------------------------------------------------


def xnli_job(source: str, seed: int, model: str = MODEL) -> Job:
    """XNLI in one language, asked about the whole test part in all."""
    return Job(model, xnli(source, "train"), pairs_to_ask(), RECIPE, seed)


def hypothesis_job(seed: int) -> Job:
    """The same by hypotheses alone, in English."""
    return Job(MODEL, examples.only(xnli("en", "train"), "second"), only_second(), RECIPE, seed)


def mixed_job(first: str, second: str, seed: int) -> Job:
    """Premises in one language and hypotheses in another, as `experiments.mixed_grids` has it."""
    taught = parallel_sets.crossed(xnli(first, "train"), xnli(second, "train"))
    return Job(MODEL, taught, {"learnt": taught.at(range(100))}, RECIPE, seed)


def igap_task() -> TransferTask:
    """The public dev part to learn, in `IGAP_LANGUAGES`, and some of the test part."""
    train = {code: labelled.of_public_part(xnli(code, "train"), "dev") for code in IGAP_LANGUAGES}
    test = {code: pairs_to_ask(N_GRID)[code] for code in IGAP_LANGUAGES}
    return TransferTask("NLI", train, test, {"train": {}, "test": {}})


def igap_job(seed: int) -> Job:
    """As `transfers.transfer_task` has it, from English."""
    task = igap_task()
    sparing = sparing_in(task, "en", WINDOWS)
    return Job(MODEL, task.train["en"], task.sets, FITTING, seed, sparing)


def sick_job(seed: int) -> Job:
    """SICK in English, asked about its test part in all languages."""
    sets, _ = labelled.parallel_examples("NLI", SICK_LANGUAGES, "test", source="sick")
    train = labelled.load_labelled("NLI", "en", "train", source="sick")
    return Job(MODEL, train, sets, RECIPE, seed)


def reader(seed: int) -> tuple[Job, dict[str, Questions]]:
    """TyDi QA in English, and a question of each paragraph of XQuAD."""
    data = question_data(
        XQUAD_LANGUAGES, "en", None, N_QUESTIONS, train_source="tydiqa-whole", per_context=1
    )
    return Job(MODEL, data.train, {"validation": data.held_out}, READER, seed), dict(data.sets)


def _run(job: Callable[[], Job], weights: bool = True) -> Asked:
    return Asked([job()], weights=weights)


def _grid(job: Callable[[], Job], sets: Callable[[], Sets]) -> Asked:
    return Asked(grids=[(job(), sets())])


def _hypothesis(seed: int) -> Asked:
    job = hypothesis_job(seed)
    return Asked([job], [(job, only_second(N_GRID))])


def _sick(seed: int) -> Asked:
    job = sick_job(seed)
    return Asked([job], [(job, {code: part.take(N_GRID, 1) for code, part in
                                job.evaluations.items()})])  # fmt: skip


def _reader(seed: int, grid: bool) -> Asked:
    job, sets = reader(seed)
    return Asked(grids=[(job, sets)]) if grid else Asked([job])


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
        *(_sick_unit(seed) for seed in (1, 2, 3)),
        *(unit for seed in (1, 2) for unit in _readers(seed)),
        *(_xnli(code, 1) for code in ("de", "zh")),
        Unit(
            "minilm-xnli-en-seed1", f"{ENGLISH_MODEL}: XNLI in English, asked in 15 languages", 35,
            partial(_run, partial(xnli_job, "en", 1, ENGLISH_MODEL)),
        ),
        *(unit for seed in (2, 3) for code in ("de", "sw") for unit in _mixed(code, seed)),
        *(_xnli_grid(seed, part) for seed in (2, 3) for part in ("first", "second")),
        *(Unit(*unit) for unit in frozen_units()),
        Unit("negation", "later: its labels are to be read by hand first", 0, None),
        Unit("family", "later: further runs of the members, with ABX and MEXA", 0, None),
    ]  # fmt: skip


def _xnli(source: str, seed: int) -> Unit:
    what = f"XNLI learnt in {source}, the test part asked in 15 languages"
    return Unit(
        f"xnli-{source}-seed{seed}", what, 62, partial(_run, partial(xnli_job, source, seed))
    )


def _xnli_grid(seed: int, shuffled: str | None = None) -> Unit:
    part = {None: "", "first": "premise", "second": "hypothesis"}[shuffled]
    name = f"xnli-en-seed{seed}-grid" + (f"-shuffled-{part}" if part else "")
    what = f"{N_GRID} test pairs in all pairs of 15 languages" + (
        f", {part} shuffled" if part else ""
    )
    asked = partial(_grid, partial(xnli_job, "en", seed), partial(pairs_to_ask, N_GRID, shuffled))
    return Unit(name, what, 65, asked)


def _hypotheses(seed: int) -> Unit:
    what = "the hypotheses of XNLI alone, learnt in English, asked in 15 languages"
    return Unit(f"xnli-hypothesis-seed{seed}", what, 35, partial(_hypothesis, seed))


def _igap(seed: int) -> Unit:
    what = "the dev part of XNLI learnt to the end, its translations asked on the way (IGAP)"
    asked = partial(_run, partial(igap_job, seed), weights=False)
    return Unit(f"igap-en-seed{seed}", what, 115, asked)


def _mixed(code: str, seed: int) -> tuple[Unit, Unit]:
    name, job = f"xnli-en-{code}-seed{seed}", partial(mixed_job, "en", code, seed)
    return (
        Unit(name, f"XNLI learnt, premises in en, hypotheses in {code}", 48, partial(_run, job)),
        Unit(
            f"{name}-grid", f"{N_GRID} test pairs in all pairs of 15 languages", 65,
            partial(_grid, job, partial(pairs_to_ask, N_GRID)),
        ),
    )  # fmt: skip


def _sick_unit(seed: int) -> Unit:
    what = "SICK learnt in English, asked in 5 languages and all pairs of them"
    return Unit(f"sick-en-seed{seed}", what, 35, partial(_sick, seed))


def _readers(seed: int) -> tuple[Unit, Unit]:
    name = f"tydiqa-en-seed{seed}"
    asked = f"{N_QUESTIONS} questions of XQuAD in all pairs of {len(XQUAD_LANGUAGES)} languages"
    return (
        Unit(name, "TyDi QA learnt in English", 75, partial(_reader, seed, grid=False)),
        Unit(f"{name}-grid", asked, 70, partial(_reader, seed, grid=True)),
    )
