"""The long runs of public models that need no fine-tuning: what a unit measures of frozen states.

A unit is of one model or its untrained twin, and asks as the notebooks do: WMT24++ at all positions
that no language repeats, FLORES-200's first 100 sentences in all 203 languages, SIB-200, New
Testaments, words with labels. A text is read once; all measures of it take the same states.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from abx_2_dynamics import nearest
from xlx.experiment import mexa_scores, probing
from xlx.experiment.probing import ProbeSetup
from xlx.experiment.scoring import BagOfSubwords, subject_scores
from xlx.subjects import states
from xlx.subjects.identity import twin_of
from xlx.subjects.loading import load
from xlx.text import parallel

Calls = list[Callable[[], object]]

#: Model → the poolings that MEXA is asked with; minutes on one thread of LD and MD, of MEXA, of
#: topics, of words.
MODELS = {
    "multilingual-e5-small": (("mean",), 55, 35, 30, 60),
    "all-MiniLM-L6-v2": (("mean",), 30, 20, 15, 40),
    "gemma-3-270m": (("weighted_mean", "last"), 165, 90, 160, 200),
}
#: The family's languages and twelve more, among which every one is the pivot once.
PIVOTS = (
    "ar", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr",
    "hu", "is", "it", "ja", "ko", "lv", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr",
    "uk", "ur", "vi", "zh", "af", "am", "ar_Latn", "bo", "ht", "hy", "id", "ka", "sw", "tl", "yo",
    "zu",
)  # fmt: skip
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
    few = text.select(PIVOTS)
    ways = list(product(poolings, (False, True)))
    calls: Calls = [lambda: list(states.kept_by_language(load(name), text, ways))]
    for special in (False, True):
        for centred in (False, True):
            options = {"centred": centred, "special_tokens": special}
            alternatives = {"poolings": poolings, "alternatives": not special}
            calls += [
                partial(mexa_scores.measure_coverage, name, text, **alternatives, **options),
                *(partial(mexa_scores.measure_rivals, name, text, pooling=x, **options)
                  for x in poolings),
            ]  # fmt: skip
    return calls + [
        partial(subject_scores, [name], few, ["MEXA"], space=space, pooling=x, max_length=None)
        for x in poolings
        for space in SPACES
    ]


def _topics(name: str) -> Calls:
    languages = parallel.load("flores200-100").languages
    return [partial(probing.probe_topics, [name], languages, seeds=range(3))]


def _verses(name: str, poolings: Sequence[str]) -> Calls:
    options = {"poolings": poolings, "alternatives": False}
    return [
        partial(mexa_scores.measure_coverage, name, text, centred=centred, **options)
        for part in ("new-testament", "new-testament-held-out")
        for text in [parallel.load(part, drop_duplicates=True).take(N_VERSES, 1)]
        for centred in (False, True)
    ]


def _words(name: str) -> Calls:
    """Parts of speech in 36 languages and entities in 31, by the set-up of `abx-5` and `abx-6`."""
    setups = [
        ProbeSetup(task, subword="mean", form="concatenated", seeds=tuple(range(6)))
        for task in ("POS", "NER")
    ]
    return [
        *(partial(probing.monolingual, [name], setup) for setup in setups),
        partial(probing.cross_lingual, name, setups[0]),
        partial(probing.cross_lingual, name, setups[1], entities=True),
    ]
