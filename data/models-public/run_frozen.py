"""The long runs of public models that need no fine-tuning: what a unit measures of frozen states.

A unit is of one model or its untrained twin, and asks as the notebooks do: WMT24++ at all positions
that no language repeats, FLORES-200's first 100 sentences in all 203 languages, SIB-200, New
Testaments, words with labels. A text is read once; all measures of it take the same states.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from abx_2_dynamics import nearest
from shared import document_probes, held_out, likelihood
from shared.held_out import Plan
from shared.xprobe_tables import Reader
from xlx.experiment import mexa_scores, probing
from xlx.experiment.probing import ProbeSetup
from xlx.experiment.scoring import BagOfSubwords, subject_scores
from xlx.results.settings import settings
from xlx.subjects import states
from xlx.subjects.identity import Name, twin_of
from xlx.subjects.loading import load
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

Calls = list[Callable[[], object]]

#: Model → the poolings that MEXA is asked with; minutes on one thread of LD and MD, of MEXA, of
#: topics, of words.
MODELS = {
    "multilingual-e5-small": (("mean",), 55, 35, 30, 60),
    "all-MiniLM-L6-v2": (("mean",), 30, 20, 15, 40),
    "gemma-3-270m": (("weighted_mean", "last"), 165, 90, 160, 200),
}
SPACES, N_VERSES = ("raw", "centred"), 150


def frozen_units() -> Iterator[tuple[str, str, int, Callable[[], Calls]]]:
    """Name, what it is, minutes on one thread, what it calls: the shorter ones first."""
    for model, (poolings, abx, mexa, of_topics, words) in MODELS.items():
        for name in (model, twin_of(model)):
            title = name.replace("@", "-")
            yield f"abx-{title}", "LD, MD, neighbours of all positions", abx, partial(_abx, name)
            yield f"mexa-{title}", "203 languages", mexa, partial(_mexa, name, poolings)
            yield f"topics-{title}", "SIB-200 in 205", of_topics, partial(_topics, name)
            if name == model:
                yield f"verses-{title}", "verses", mexa // 2, partial(_verses, name, poolings)
            yield f"words-{title}", "probes of words", words, partial(_words, name)

    for model, plan in held_out.plans().items():
        yield from _held_out(model, plan)
    for model, minutes in DOCUMENT_MINUTES.items():
        for name in (model, twin_of(model)):
            title = f"documents-{name.replace('@', '-')}"
            yield title, "number and tense by document", minutes, partial(_documents, model, name)


#: Minutes on one thread of LD and MD, of MEXA, of topics, of likelihoods.
MINUTES = {
    "embeddinggemma-300m": (200, 60, 120, 0),
    "gemma-3-270m": (0, 0, 0, 400),
    "qwen2.5-coder-0.5b-instruct": (130, 140, 250, 500),
    "qwen2.5-coder-1.5b-instruct": (130, 200, 80, 300),
}
#: Minutes on one thread of number and tense in seven languages (`document_probes`).
DOCUMENT_MINUTES = {
    "multilingual-e5-small": 5,
    "all-MiniLM-L6-v2": 5,
    "gemma-3-270m": 15,
    "embeddinggemma-300m": 15,
    "qwen2.5-coder-0.5b-instruct": 45,
    "qwen2.5-coder-1.5b-instruct": 120,
}


def _held_out(model: str, plan: Plan) -> Iterator[tuple[str, str, int, Callable[[], Calls]]]:
    """What is asked of a model by its plan, and of its twin where that is cheap."""
    abx, mexa, of_topics, likelihoods = MINUTES[model]
    planned = partial(_in_precision, plan.dtype)
    for name in (model, twin_of(model)) if mexa else ():
        title, what = name.replace("@", "-"), "by its plan"
        yield f"mexa-{title}", what, mexa, partial(planned, _planned_mexa, name, plan)
        yield f"topics-{title}", what, of_topics, partial(planned, _topics, name, plan.topics)
        yield f"abx-{title}", what, abx, partial(planned, _planned_abx, name, plan)
    third = likelihoods // 3
    if likelihoods:
        yield f"bits-{model}", "bits a sentence", third, partial(planned, _bits, model, plan)
        yield f"tags-{model}", "tags", third, partial(planned, _tags, model, plan)
        yield f"follow-{model}", "pairs", third, partial(planned, _follow, model, plan)


def _in_precision(dtype: str, calls: Callable[..., Calls], *arguments: object) -> Calls:
    """Calls, each in the precision that a plan has."""

    def within(call: Callable[[], object]) -> None:
        with settings(dtype=dtype):
            call()

    return [partial(within, call) for call in calls(*arguments)]


def _planned_mexa(name: str, plan: Plan) -> Calls:
    """Raw and centred from one reading, a language after another: each is kept when it is there.

    Languages that single predictions name come first.
    """
    text = parallel.load("flores200-100", plan.languages)
    few = text.select(held_out.languages("pivots"))
    named = [code for code in text.languages if code in held_out.asked().index]
    options = {"poolings": plan.poolings, "states": SPACES, "alternatives": True}
    return [
        partial(held_out.illegible_tokens, [name], text),
        partial(mexa_scores.mean_subwords, name, text),
        *(
            partial(mexa_scores.measure_coverage, name, some, **options)
            for some in (text.select(named), text)
        ),
        *_pairs(name, few, plan.poolings),
    ]


def _pairs(name: str, text: ParallelCorpus, poolings: Sequence[str]) -> Calls:
    """MEXA of all pairs of languages, by a model and by the bag of its own subwords."""
    bag, options = [BagOfSubwords(name)], {"max_length": None}
    return [
        *(
            partial(subject_scores, [name], text, ["MEXA"], space=space, pooling=x, **options)
            for x in poolings
            for space in SPACES
        ),
        *(partial(subject_scores, bag, text, ["MEXA"], space=space) for space in SPACES),
    ]


def _planned_abx(name: str, plan: Plan) -> Calls:
    text, options = held_out.wmt(plan), {"pooling": "mean", "max_length": None}
    return [
        *(partial(subject_scores, [name], text, space=x, **options) for x in SPACES),
        partial(nearest, [name], text, "raw", **options),
        partial(subject_scores, [BagOfSubwords(name)], text, held_out.SCORED),
    ]


def _bits(model: str, plan: Plan) -> Calls:
    return [partial(likelihood.bits, model, x) for x in held_out.sentences(plan).values()]


def _tags(model: str, plan: Plan) -> Calls:
    tagged = (held_out.tagged(code, plan.grid) for code in (None, *plan.grid))
    return [partial(likelihood.bits, model, texts) for texts in tagged]


def _follow(model: str, plan: Plan) -> Calls:
    """Translations of sentences, then inference; each beside what it has without the first text."""
    text, table = parallel.load("flores200-100", held_out.languages("grid")), held_out.asked()
    languages = table.index[table["question"] != ""]
    sources = [None, *plan.grid]
    pairs = [(a, b) for b in plan.grid for a in sources if a != b]
    of_pairs = [(a, a, how) for a in languages for how in ("right", "none", "wrong")]
    of_pairs += [(a, b, "right") for a, b in product(languages, languages) if a != b]
    return [
        *(partial(likelihood.bits, model, held_out.translations(text, a, b)) for a, b in pairs),
        *(partial(likelihood.bits, model, held_out.inference(*pair)) for pair in of_pairs),
    ]


def _documents(model: str, name: Name) -> Calls:
    """Of a model or its twin, read in the precision that the model is read in."""

    def read() -> None:
        with settings(dtype=held_out.precision(model)):
            document_probes.document_probes(name, document_probes.document_tasks(), True)
            document_probes.document_probes(name, document_probes.home_tasks())

    words = partial(
        document_probes.document_probes, Reader("words"), document_probes.document_tasks(), True
    )
    return [read, words]


def _abx(name: str) -> Calls:
    text = parallel.load("wmt24pp", drop_duplicates=True)
    text = text.take(len(text), 1)
    options = {"pooling": "mean", "max_length": None}
    return [
        *(partial(subject_scores, [name], text, space=x, **options) for x in SPACES),
        *(partial(nearest, [name], text, x, **options) for x in SPACES),
        partial(subject_scores, [BagOfSubwords(name)], text),
    ]


def _mexa(name: str, poolings: Sequence[str]) -> Calls:
    text = parallel.load("flores200-100")
    few = text.select(held_out.languages("pivots"))
    ways = list(product(poolings, (False, True)))
    calls = [lambda: list(states.kept_by_language(load(name), text, ways))]
    for special in (False, True):
        for space in SPACES:
            options = {"poolings": poolings, "states": [space], "alternatives": not special}
            calls += [
                partial(
                    mexa_scores.measure_coverage, name, text, special_tokens=special, **options
                ),
                *(
                    partial(
                        mexa_scores.measure_rivals,
                        name,
                        text,
                        pooling=x,
                        states=space,
                        special_tokens=special,
                    )
                    for x in poolings
                ),
            ]
    return calls + _pairs(name, few, poolings)


def _topics(name: str, languages: Sequence[str] = ()) -> Calls:
    languages = languages or parallel.load("flores200-100").languages
    return [partial(probing.probe_topics, [name], languages, seeds=range(3))]


def _verses(name: str, poolings: Sequence[str]) -> Calls:
    return [
        partial(mexa_scores.measure_coverage, name, text, poolings=poolings, states=[space])
        for part in ("new-testament", "new-testament-held-out")
        for text in [parallel.load(part, drop_duplicates=True).take(N_VERSES, 1)]
        for space in SPACES
    ]


def _words(name: str) -> Calls:
    """Parts of speech in 36 languages and entities in 31, by the set-up of `abx-3`."""
    setups = [
        ProbeSetup(task, subword="mean", form="concatenated", seeds=tuple(range(6)))
        for task in ("POS", "NER")
    ]
    return [
        *(partial(probing.monolingual, [name], setup) for setup in setups),
        partial(probing.cross_lingual, name, setups[0]),
        partial(probing.cross_lingual, name, setups[1], entities=True),
    ]
