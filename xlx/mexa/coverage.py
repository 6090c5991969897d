"""Which languages a model covers: MEXA and its alternatives, of every language with the pivot.

`measure_coverage` embeds one language at a time, compares it with the pivot at every layer, and
keeps what comes out (`xlx.core.work`): neither memory nor disk ever holds the states of 200
languages, which for a model of 8 billion parameters would be ten gigabytes a pooling. A run that
was stopped goes on at the next language.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pandas as pd

from xlx.core import checks, work
from xlx.core.settings import current
from xlx.mexa import measures
from xlx.models import alignment, embeddings, loading
from xlx.models.embeddings import SentenceStates
from xlx.models.loading import Name, series_name
from xlx.text.corpora import ParallelCorpus
from xlx.text.files import TextError

#: The two ways to a sentence's vector that the paper compares (section 3.1), its own first.
MEXA_POOLINGS = ("weighted_mean", "last")

#: Layers that section 5.3 averages cosines over, of models with 28 and 32 layers.
_MIDDLE, _OF = (5, 10, 15, 20, 25), 32

#: Languages that a worker of a cluster is given at once.
PORTION = 16


@dataclass(frozen=True)
class Coverage:
    """How one model, with one pooling of subwords, aligns the languages of a corpus with a pivot.

    ``states`` is "raw", or "centred" if each language is without its offset
    (`measures.without_offset`). ``measures`` has the alternatives (``language``, ``layer``,
    ``measure``, ``value``, as `alignment.measures`), none if they were not asked for; ``cut``, by
    language, the pivot's too, the sentences cut at the maximum length.
    """

    model: str
    pooling: str
    states: str
    scores: measures.PivotScores
    measures: pd.DataFrame
    cut: dict[str, int]

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table of scores with ``model``, ``pooling`` and ``states`` in front."""
        names = {"model": self.model, "pooling": self.pooling, "states": self.states}
        return pd.concat([pd.DataFrame(names, table.index), table], axis=1)


def middle_layers(n_layers: int) -> tuple[int, ...]:
    """The layers of section 5.3: 5, 10, 15, 20 and 25, or where these lie in a shallower model.

    The paper takes the same five in a model of 28 layers and one of 32. Below 26 they are scaled
    from 32 and rounded: 1 to 5 of 6 layers.
    """
    if n_layers > _MIDDLE[-1]:
        return _MIDDLE
    return tuple(sorted({max(1, round(layer * n_layers / _OF)) for layer in _MIDDLE}))


def measure_coverage(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    poolings: Sequence[str] = MEXA_POOLINGS,
    alternatives: bool = True,
    centred: bool = False,
    max_length: int | None = None,
    special_tokens: bool = False,
) -> dict[str, Coverage]:
    """MEXA of every language of a corpus with the pivot, and the alternatives, by pooling.

    ``name`` is a model, or one checkpoint of a series; ``pivot`` any language of the corpus, by one
    of its codes ("sw", "swh"); ``poolings`` of `embeddings.POOLINGS`: the model reads each sentence
    once for all of them. ``alternatives``: also the measures of `alignment.measures`, at every
    layer. ``centred``: scores without the offset of each language (`measures.without_offset`), and
    no alternatives. ``max_length``: subwords of a sentence (None: what the model takes); what is
    longer is cut, and counted. ``special_tokens``: whether those that the tokenizer adds are pooled
    too, as in the paper's code; its numbers of a Llama, whose first token is one of great norm, are
    to be compared with those.

    ValueError as `embeddings.embed`, `measures.scores` and `alignment.measures`, naming the
    language; TextError for a pivot that the corpus has not, or no other language.
    """
    checks.loaded(corpus)
    pivot, languages = with_pivot(corpus, pivot)
    poolings = tuple(dict.fromkeys(checks.several(poolings, "poolings")))
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(embeddings.POOLINGS)}")
    about = {"pivot": corpus.text_hash(pivot)} | ({} if centred else {"alternatives": alternatives})
    chosen = () if centred else (alternatives,)
    options = {"max_length": max_length, "special_tokens": special_tokens}
    of_poolings = [
        {"states": embeddings.states_about(name, pooling=pooling, **options)} | about
        for pooling in poolings
    ]
    asked = [(language, pooling) for language in languages for pooling in poolings]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        missing_poolings: dict[str, list[str]] = {}
        for position in missing:
            language, pooling = asked[position]
            missing_poolings.setdefault(language, []).append(pooling)
        for some, group in groupby(missing_poolings, missing_poolings.get):
            for part in _portions(list(group)):
                positions = [asked.index((language, x)) for language in part for x in some]
                text = corpus.select([pivot, *part])
                yield positions, (name, text, pivot, part, some, options, *chosen)

    known = isinstance(name, loading.Checkpoint | loading.Encoder)
    values = work.results(
        CENTRED if centred else COVERAGE,
        [
            of_pooling | {"text": corpus.text_hash(language)}
            for language in languages
            for of_pooling in of_poolings
        ],
        calls,
        what=f"coverage, {name.name if known else name}",
    )
    by_pair = dict(zip(asked, values, strict=True))
    model, states = series_name(loading.identify(name)), "centred" if centred else "raw"
    return {
        pooling: _coverage(
            model, pooling, states, pivot, {x: by_pair[x, pooling] for x in languages}
        )
        for pooling in poolings
    }


def with_pivot(corpus: ParallelCorpus, pivot: str) -> tuple[str, tuple[str, ...]]:
    """The corpus's code of the pivot, and its other languages. Raises TextError without any."""
    pivot = corpus.select([pivot]).languages[0]
    languages = tuple(code for code in corpus.languages if code != pivot)
    if not languages:
        raise TextError(f"{corpus.name} has no language to compare with {pivot}")
    return pivot, languages


def _portions(languages: Sequence[str]) -> list[Sequence[str]]:
    """Languages of one call: all here, a few on a cluster, whose workers share them."""
    size = PORTION if current().scheduler else len(languages)
    return [languages[start : start + size] for start in range(0, len(languages), size)]


def _measured(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    poolings: Sequence[str],
    options: Mapping[str, object],
    alternatives: bool = False,
    centred: bool = False,
) -> Iterator[dict[str, np.ndarray]]:
    """`_compare` of languages and poolings, language by language."""
    encoder = loading.load(name)

    def read(language: str) -> dict[str, SentenceStates]:
        try:
            by_pooling = embeddings.embed_poolings(
                encoder, corpus.sentences[language], poolings, **options
            )
        except ValueError as error:
            raise ValueError(f"language {language!r} of {corpus.name!r}: {error}") from None
        if not centred:
            return by_pooling
        moved = measures.without_offset({x: whole.states for x, whole in by_pooling.items()})
        return {x: replace(by_pooling[x], states=states) for x, states in moved.items()}

    of_pivot = read(pivot)
    first = next(iter(of_pivot.values()))
    unknown, cut = {pivot: first.unknown}, {pivot: first.n_cut / len(corpus)}
    for language in languages:
        for pooling, states in read(language).items():
            unknown[language], cut[language] = states.unknown, states.n_cut / len(corpus)
            yield _compare({language: states, pivot: of_pivot[pooling]}, pivot, alternatives)
    if not centred:  # those are the same texts again
        lost = {"tokens unknown to it": unknown, "sentences cut": cut}
        checks.legible(encoder.name, corpus.name, lost)


def _measured_centred(*arguments: object) -> Iterator[dict[str, np.ndarray]]:
    return _measured(*arguments, centred=True)


def _compare(
    states: Mapping[str, SentenceStates], pivot: str, alternatives: bool
) -> dict[str, np.ndarray]:
    """One language and the pivot: what is kept.

    `hits_of`, ``cut`` of the language and of the pivot, and ``measures``
    ``(len(alignment.ALIGNMENT_MEASURES), n_layers + 1)`` if asked for.
    """
    vectors = {language: embedded.states for language, embedded in states.items()}
    (language,) = set(states) - {pivot}
    kept = hits_of(measures.scores(vectors, pivot))
    kept["cut"] = np.array([states[language].n_cut, states[pivot].n_cut])
    if alternatives:
        table = alignment.measures(vectors, pivot)
        table = table.pivot(index="measure", columns="layer", values="value")
        kept["measures"] = table.loc[list(alignment.ALIGNMENT_MEASURES)].to_numpy()
    return kept


def hits_of(scores: measures.PivotScores) -> dict[str, np.ndarray]:
    """What is kept of the scores of one language, each ``(n_layers + 1, n)``."""
    return {"hits": scores.hits[:, 0], "only_rival": scores.only_rival[:, 0]}


def coverage_difference(stored: work.Value, computed: work.Value) -> float:
    """The largest difference of a score or measure; infinite where other sentences were cut.

    Margins are ratios without bounds: what is above 1 is compared by its share.
    """
    if stored.keys() != computed.keys() or not np.array_equal(
        stored.get("cut"), computed.get("cut")
    ):
        return np.inf
    both = [
        np.vstack([value["hits"].mean(axis=1)[None], *value.get("measures", ())])
        for value in (stored, computed)
    ]
    unit = np.fmax(1, np.abs(both[0]))  # not NaN where there is none to compare
    return work.largest_difference({"scores": both[0] / unit}, {"scores": both[1] / unit})


#: A sentence of a hundred may be a hit on one processor and tied on another.
_NEAR = {"tolerance": 0.02, "difference": coverage_difference}
COVERAGE = work.Kind("coverage", _measured, version=2, **_NEAR)
CENTRED = work.Kind("coverage-centred", _measured_centred, version=1, **_NEAR)


def _coverage(
    model: str,
    pooling: str,
    states: str,
    pivot: str,
    by_language: Mapping[str, Mapping[str, np.ndarray]],
) -> Coverage:
    rows = [
        (language, layer, measure, value)
        for language, arrays in by_language.items()
        for measure, values in zip(
            alignment.ALIGNMENT_MEASURES, arrays.get("measures", ()), strict=False
        )
        for layer, value in enumerate(values.tolist())
    ]
    table = pd.DataFrame(rows, columns=["language", "layer", "measure", "value"])
    cut = {language: int(arrays["cut"][0]) for language, arrays in by_language.items()}
    cut[pivot] = int(next(iter(by_language.values()))["cut"][1])
    return Coverage(model, pooling, states, pivot_scores(by_language, pivot), table, cut)


def pivot_scores(
    by_language: Mapping[str, Mapping[str, np.ndarray]], pivot: str
) -> measures.PivotScores:
    """The scores of all languages, of what was kept of each (`hits_of`)."""
    hits, only_rival = (
        np.stack([arrays[name] for arrays in by_language.values()], axis=1)
        for name in ("hits", "only_rival")
    )
    return measures.PivotScores(
        tuple(by_language), pivot, tuple(range(len(hits))), hits, only_rival
    )
