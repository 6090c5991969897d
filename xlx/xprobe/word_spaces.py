"""Words of several languages in the space of one: looked up, tested, made when they are needed.

A `Lookup` is word vectors with the map that takes them into the space of another language
(`xlx.xprobe.word_mapping`), fitted on a seed dictionary. It is named by its recipe, so that what
was computed from it is found again where no vectors have been made; `precision_of_maps` and
`nearest` are what a reader wants to know of it.

    english, german = (of_pretraining_text(code) for code in ("en", "de"))
    lookup = Lookup(german, english, OfTranslations(ParallelText("de", "en")))
    lookup.load()(["haus"])  # float32 (1, 100)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from xlx.core import work
from xlx.core.ledger import Ask
from xlx.xprobe.dictionaries import Dictionary, OfFile, OfTranslations, held_out_pairs
from xlx.xprobe.word_mapping import normalised_words, orthogonal_map, precision_at_1
from xlx.xprobe.word_vectors import VectorRecipe, WordVectors, load_vectors

#: Neighbours that lessen the cosine of a word that is near to everything (`precision_at_1`).
CSLS = 10

#: Words → vectors ``(n, dim)``.
Look = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True, eq=False)
class Lookup:
    """Words of a language in the space of ``target``; of that language itself without one.

    The map is fitted on all pairs of the ``dictionary``.
    """

    vectors: VectorRecipe
    target: VectorRecipe | None = None
    dictionary: OfFile | OfTranslations | None = None

    @property
    def language(self) -> str:
        return self.vectors.language

    @cached_property
    def ask(self) -> Ask:
        """What decides the vectors of words."""
        about: dict[str, Any] = {"vectors": self.vectors.ask}
        if self.target is not None and self.dictionary is not None:
            about |= {"target": self.target.ask, "dictionary": self.dictionary.about}
        return Ask("word-space", about, version=1)

    def load(self) -> Look:
        """Words → vectors, float32 ``(n, dim)``; made once.

        A word outside the vocabulary is normalised as the vocabulary was.
        """
        return self._look

    @cached_property
    def _look(self) -> Look:
        own, target = self._both
        matrix = np.eye(own.dim)
        if self.target is not None:
            both = (normalised_words(x.vectors) for x in (own, target))
            matrix = orthogonal_map(*both, self._pairs.pairs)

        def mapped(words: Sequence[str]) -> np.ndarray:
            vectors = normalised_words(own.lookup(words), like=own.vectors)
            return (vectors @ matrix).astype(np.float32)

        return mapped

    @property
    def _both(self) -> list[WordVectors]:
        return load_vectors([self.vectors, self.target or self.vectors])

    @cached_property
    def _pairs(self) -> Dictionary:
        return self.dictionary.pairs(*self._both)


def load_lookups(lookups: Sequence[Lookup]) -> None:
    """Make the vectors of several lookups, side by side."""
    load_vectors([x for own in lookups for x in (own.vectors, own.target) if x is not None])


def precision_of_maps(lookups: Sequence[Lookup], *, seed: int) -> pd.DataFrame:
    """How many words of a dictionary find their translation, mapped by the rest of it.

    A tenth of the pairs, drawn by the seed, is held out. A row for each lookup (of a mapped
    language): ``language``, ``words`` (with a vector), ``pairs`` (of the dictionary), ``held_out``
    (pairs), ``found`` (share of these whose target is nearest), ``origin`` (of the dictionary), and
    how many pairs of a file lack a vector: ``no_source``, ``no_target``, ``neither``.
    """
    abouts = [{"lookup": own.ask, "seed": seed, "share": 0.1, "csls": CSLS} for own in lookups]

    def calls(missing: list[int]) -> list[work.Call]:
        load_lookups([lookups[position] for position in missing])
        return [([position], (lookups[position], seed)) for position in missing]

    tables = work.results(MAPS, abouts, calls, what="maps", alone=True)
    table = pd.concat(tables, ignore_index=True)
    table.insert(0, "language", [own.language for own in lookups])
    return table


def _measured(lookup: Lookup, seed: int) -> pd.DataFrame:
    own, english = lookup._both
    pairs = lookup._pairs
    known, held_out = held_out_pairs(pairs, max(1, int(len(pairs) * 0.1)), seed)
    source, target = (normalised_words(x.vectors) for x in (own, english))
    turned = (source @ orthogonal_map(source, target, known.pairs)).astype(np.float32)
    hits = precision_at_1(turned, target, held_out.pairs, csls=CSLS)
    lack = {f"no_{side}": pairs.missing.get(side, 0) for side in ("source", "target")}
    lack["neither"] = pairs.missing.get("both", 0)
    row = {"words": len(own.words), "pairs": len(pairs), "held_out": len(hits)}
    return pd.DataFrame([row | {"found": float(hits.mean()), "origin": pairs.origin} | lack])


def nearest(lookup: Lookup, word: str, n: int = 5) -> pd.DataFrame:
    """The words of the target nearest to a word, by falling cosine: ``word``, ``near``, ``cosine``.

    A word without a vector of its own is replaced by the 101st commonest that has one.
    """
    about = {"lookup": lookup.ask, "word": word, "n": n}
    return work.result(NEAREST_WORDS, about, lookup, word, n)


def _nearest(lookup: Lookup, word: str, n: int) -> pd.DataFrame:
    own, target = lookup._both
    word = word if word in own.index else own.words[:101][-1]
    near = normalised_words(target.vectors) @ lookup.load()([word])[0]
    places = near.argsort()[: -n - 1 : -1]
    words = [target.words[place] for place in places]
    return pd.DataFrame({"word": word, "near": words, "cosine": near[places]})


def _apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """Of the neighbours of a word: how far cosines are apart, words left aside."""
    return work.largest_difference(stored[["cosine"]], computed[["cosine"]])


# Both rest on the word vectors of two languages, which take a while.
MAPS = work.Kind("xprobe-maps", _measured, version=1, tolerance=0.03, shared_seconds=90.0)
NEAREST_WORDS = work.Kind(
    "xprobe-neighbours", _nearest, version=1, tolerance=0.03, difference=_apart, shared_seconds=90.0
)
