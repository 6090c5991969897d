"""The long runs of public models that need no fine-tuning: what a unit measures of frozen states.

A unit is of one model or its untrained twin, and asks as the notebooks do: WMT24++ at all positions
that no language repeats, FLORES-200's first 100 sentences in all 203 languages, SIB-200, New
Testaments, words with labels. A text is read once; all measures of it take the same states.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from xlx.experiment import mexa_scores, probing, topics
from xlx.experiment.abx_scores import checkpoint_scores
from xlx.experiment.probing import ProbeSetup
from xlx.experiment.surface import neighbour_languages, subword_bag
from xlx.subjects import states
from xlx.subjects.identity import twin_of
from xlx.subjects.loading import load
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: Model → the poolings that MEXA is asked with.
POOLINGS = {
    "multilingual-e5-small": ("mean",),
    "gemma-3-270m": ("weighted_mean", "last"),
    "all-MiniLM-L6-v2": ("mean",),
}
#: The family's languages and twelve more, among which every one is the pivot once.
PIVOTS = (
    "ar", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr",
    "hu", "is", "it", "ja", "ko", "lv", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr",
    "uk", "ur", "vi", "zh", "af", "am", "ar_Latn", "bo", "ht", "hy", "id", "ka", "sw", "tl", "yo",
    "zu",
)  # fmt: skip
SPACES, N_VERSES = ("raw", "centred"), 150


@dataclass(frozen=True)
class Measured:
    """What a unit measures, call by call; each is found in the ledger or the cache, or computed."""

    calls: Sequence[Callable[[], object]]

    def answer(self) -> None:
        """Compute what neither the ledger nor the cache has."""
        for call in self.calls:
            call()


def frozen_units() -> Iterator[tuple[str, str, int, Callable[[], Measured]]]:
    """Name, what it is, minutes on one thread, what it measures: the shorter ones first."""
    minutes = {
        "multilingual-e5-small": (55, 35, 30, 60),
        "all-MiniLM-L6-v2": (30, 20, 15, 40),
        "gemma-3-270m": (165, 90, 160, 200),
    }
    for model, times in minutes.items():
        for name in (model, twin_of(model)):
            title = name.replace("@", "-")
            of_twin = name != model
            yield (
                f"abx-{title}",
                "LD, MD, neighbours of all positions",
                times[0],
                partial(_abx, name),
            )
            poolings = POOLINGS[model]
            yield f"mexa-{title}", "203 languages", times[1], partial(_mexa, name, poolings)
            yield f"topics-{title}", "SIB-200 in 205", times[2], partial(_topics, name)
            if not of_twin:
                yield f"verses-{title}", "verses", times[1] // 2, partial(_verses, name, poolings)
            yield f"words-{title}", "probes of words", times[3], partial(_words, name)


def _abx(name: str) -> Measured:
    text = parallel.load("wmt24pp", drop_duplicates=True)
    text = text.take(len(text), 1)
    options = {"pooling": "mean", "max_length": None}
    return Measured(
        [
            *(partial(checkpoint_scores, [name], text, space=x, **options) for x in SPACES),
            *(partial(neighbour_languages, name, text, space=x, **options) for x in SPACES),
            partial(subword_bag, name, text),
        ]
    )


def _mexa(name: str, poolings: Sequence[str]) -> Measured:
    text = parallel.load("flores200-100")
    few = text.select(PIVOTS)
    calls: list[Callable[[], object]] = [partial(_read, name, text, poolings)]
    for special in (False, True):
        for centred in (False, True):
            options = {"centred": centred, "special_tokens": special}
            calls.append(
                partial(
                    mexa_scores.measure_coverage, name, text, poolings=poolings,
                    alternatives=not special, **options,
                )
            )  # fmt: skip
            calls += [
                partial(mexa_scores.measure_rivals, name, text, pooling=pooling, **options)
                for pooling in poolings
            ]
    calls += [
        partial(mexa_scores.pivot_hits, name, few, pooling=pooling, centred=centred)
        for pooling in poolings
        for centred in (False, True)
    ]
    return Measured(calls)


def _read(name: str, text: ParallelCorpus, poolings: Sequence[str]) -> None:
    states.keep_states(load(name), text, poolings)


def _topics(name: str) -> Measured:
    languages = parallel.load("flores200-100").languages
    return Measured([partial(topics.probe_topics, [name], languages, seeds=range(3))])


def _verses(name: str, poolings: Sequence[str]) -> Measured:
    texts = [
        parallel.load(part, drop_duplicates=True).take(N_VERSES, 1)
        for part in ("new-testament", "new-testament-held-out")
    ]
    return Measured(
        [
            partial(
                mexa_scores.measure_coverage, name, text, poolings=poolings, centred=centred,
                alternatives=False,
            )
            for text in texts
            for centred in (False, True)
        ]
    )  # fmt: skip


def _words(name: str) -> Measured:
    """Parts of speech in 36 languages and entities in 31, by the set-up of `abx-5` and `abx-6`."""
    setups = [
        ProbeSetup(task, subword="mean", form="concatenated", seeds=tuple(range(6)))
        for task in ("POS", "NER")
    ]
    return Measured(
        [
            *(partial(probing.monolingual, [name], setup) for setup in setups),
            partial(probing.cross_lingual, name, setups[0]),
            partial(probing.cross_lingual, name, setups[1], entities=True),
        ]
    )
