"""Which languages a model covers: MEXA and its alternatives, of every language with the pivot.

`measure` embeds one language at a time, compares it with the pivot at every layer, and keeps what
comes out (`xlx.work`): neither memory nor disk ever holds the states of 200 languages, which for a
model of 8 billion parameters would be ten gigabytes a pooling. A run that was stopped goes on at
the next language.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pandas as pd

from xlx import alignment, checks, embeddings, mexa, models, work
from xlx.corpora import CorpusError, ParallelCorpus
from xlx.series import Name, series_name
from xlx.settings import current

#: The two ways to a sentence's vector that the paper compares (section 3.1), its own first.
POOLINGS = ("weighted_mean", "last")

#: Layers that section 5.3 averages cosines over, of models with 28 and 32 layers.
_MIDDLE, _OF = (5, 10, 15, 20, 25), 32

#: Languages that a worker of a cluster is given at once.
PORTION = 16


@dataclass(frozen=True)
class Coverage:
    """How one model, with one pooling of subwords, aligns the languages of a corpus with a pivot.

    Attributes
    ----------
    model : str
    checkpoint : int
        Training step; 0 for a model without a history.
    pooling : str
    scores : mexa.PivotScores
        Hits at every layer.
    measures : DataFrame
        The alternatives: ``language``, ``layer``, ``measure``, ``value``, as `alignment.measures`
        has them. Empty if they were not asked for.
    cut : dict of int
        By language, the pivot's too: sentences cut at the maximum length.
    """

    model: str
    checkpoint: int
    pooling: str
    scores: mexa.PivotScores
    measures: pd.DataFrame
    cut: dict[str, int]

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table of scores with ``model`` and ``pooling`` in front."""
        return pd.concat(
            [pd.DataFrame({"model": self.model, "pooling": self.pooling}, table.index), table],
            axis=1,
        )


def middle_layers(n_layers: int) -> tuple[int, ...]:
    """The layers of section 5.3: 5, 10, 15, 20 and 25, or where these lie in a shallower model.

    The paper takes the same five in a model of 28 layers and one of 32. Below 26 they are scaled
    from 32 and rounded: 1 to 5 of 6 layers. Raises ValueError for a model without layers.
    """
    if n_layers < 1:
        raise ValueError(f"a model with {n_layers} layers has no middle")
    if n_layers > _MIDDLE[-1]:
        return _MIDDLE
    return tuple(sorted({max(1, round(layer * n_layers / _OF)) for layer in _MIDDLE}))


def measure(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    poolings: Sequence[str] = POOLINGS,
    alternatives: bool = True,
    centred: bool = False,
    max_length: int | None = None,
) -> dict[str, Coverage]:
    """MEXA of every language of a corpus with the pivot, and the alternatives.

    Parameters
    ----------
    name : str, Path or Checkpoint
        A model, or one checkpoint of a series.
    corpus : ParallelCorpus
    pivot : str
        Any language of the corpus, by one of its codes ("sw", "swh").
    poolings : sequence of str
        Of `embeddings.POOLINGS`; the model reads each sentence once for all of them.
    alternatives : bool
        Also the measures of `alignment.measures`, at every layer.
    centred : bool
        Scores without the offset of each language (`mexa.without_offset`), and no alternatives.
    max_length : int, optional
        Subwords of a sentence; None: what the model takes. What is longer is cut, and counted.

    Returns
    -------
    dict of Coverage
        By pooling, in the order asked for.

    Raises
    ------
    ValueError
        As `embeddings.embed`, `mexa.scores` and `alignment.measures`, naming the language.
    CorpusError
        A pivot that the corpus has not; a corpus without another language.
    """
    checks.parallel(corpus)
    pivot, languages = _with_pivot(corpus, pivot)
    poolings = tuple(dict.fromkeys(checks.several(poolings, "poolings")))
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(embeddings.POOLINGS)}")
    own = {"pivot": corpus.text_hash(pivot)} | ({} if centred else {"alternatives": alternatives})
    chosen = () if centred else (alternatives,)
    of_poolings = [
        {"states": embeddings.states_about(name, pooling=pooling, max_length=max_length)} | own
        for pooling in poolings
    ]
    asked = [(language, pooling) for language in languages for pooling in poolings]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        wanted: dict[str, list[str]] = {}
        for position in missing:
            language, pooling = asked[position]
            wanted.setdefault(language, []).append(pooling)
        for some, group in groupby(wanted, wanted.get):
            for part in _portions(list(group)):
                positions = [asked.index((language, x)) for language in part for x in some]
                text = corpus.select([pivot, *part])
                yield positions, (name, text, pivot, part, some, *chosen, max_length)

    values = work.results(
        CENTRED if centred else COVERAGE,
        [
            of_pooling | {"text": corpus.text_hash(language)}
            for language in languages
            for of_pooling in of_poolings
        ],
        calls,
        what=f"coverage, {name.name if isinstance(name, models.Checkpoint) else name}",
    )
    found = dict(zip(asked, values, strict=True))
    return {
        pooling: _coverage(name, pooling, pivot, {x: found[x, pooling] for x in languages})
        for pooling in poolings
    }


def _with_pivot(corpus: ParallelCorpus, pivot: str) -> tuple[str, tuple[str, ...]]:
    """The corpus's code of the pivot, and its other languages. Raises CorpusError without any."""
    pivot = corpus.select([pivot]).languages[0]
    languages = tuple(code for code in corpus.languages if code != pivot)
    if not languages:
        raise CorpusError(f"{corpus.name} has no language to compare with {pivot}")
    return pivot, languages


def _portions(languages: Sequence[str]) -> Iterator[Sequence[str]]:
    """Languages of one call: all here, a few on a cluster, whose workers share them."""
    size = PORTION if current().scheduler else len(languages)
    return (languages[start : start + size] for start in range(0, len(languages), size))


def _measured(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    poolings: Sequence[str],
    alternatives: bool,
    max_length: int | None,
) -> Iterator[dict[str, np.ndarray]]:
    """`_compare` of languages and poolings, language by language."""
    encoder = models.load(name)

    def read(language: str) -> dict[str, embeddings.SentenceStates]:
        try:
            return embeddings.embed_poolings(
                encoder, corpus.sentences[language], poolings, max_length=max_length
            )
        except ValueError as error:
            raise ValueError(f"language {language!r} of {corpus.name!r}: {error}") from None

    of_pivot = read(pivot)
    first = next(iter(of_pivot.values()))
    unknown, cut = {pivot: first.unknown}, {pivot: first.n_cut / len(corpus)}
    for language in languages:
        for pooling, states in read(language).items():
            unknown[language], cut[language] = states.unknown, states.n_cut / len(corpus)
            yield _compare({language: states, pivot: of_pivot[pooling]}, pivot, alternatives)
    lost = {"tokens unknown to it": unknown, "sentences cut": cut}
    checks.legible(encoder.name, corpus.name, lost)


def _compare(
    states: Mapping[str, embeddings.SentenceStates], pivot: str, alternatives: bool
) -> dict[str, np.ndarray]:
    """One language and the pivot: what is kept.

    ``hits`` and ``only_rival`` ``(n_layers + 1, n)``, ``cut`` of the language and of the pivot, and
    ``measures`` ``(len(alignment.MEASURES), n_layers + 1)`` if asked for.
    """
    vectors = {language: embedded.states for language, embedded in states.items()}
    (language,) = set(states) - {pivot}
    found = _hits(mexa.scores(vectors, pivot), 0)
    found["cut"] = np.array([states[language].n_cut, states[pivot].n_cut])
    if alternatives:
        table = alignment.measures(vectors, pivot)
        table = table.pivot(index="measure", columns="layer", values="value")
        found["measures"] = table.loc[list(alignment.MEASURES)].to_numpy()
    return found


def _hits(scores: mexa.PivotScores, row: int) -> dict[str, np.ndarray]:
    return {"hits": scores.hits[:, row], "only_rival": scores.only_rival[:, row]}


def _apart(stored: work.Value, computed: work.Value) -> float:
    """The largest difference of a score or measure; infinite where other sentences were cut."""
    if stored.keys() != computed.keys() or not np.array_equal(
        stored.get("cut"), computed.get("cut")
    ):
        return np.inf
    both = [
        np.vstack([value["hits"].mean(axis=1)[None], *value.get("measures", ())])
        for value in (stored, computed)
    ]
    return work.largest_difference({"scores": both[0]}, {"scores": both[1]})


#: A sentence of a hundred may be a hit on one processor and tied on another.
COVERAGE = work.Kind("coverage", _measured, version=1, tolerance=0.02, difference=_apart)


def _measured_centred(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    poolings: Sequence[str],
    max_length: int | None,
) -> Iterator[dict[str, np.ndarray]]:
    """`_measured` of states without the offset of each language, scores only."""
    encoder = models.load(name)

    def read(language: str) -> dict[str, embeddings.SentenceStates]:
        try:
            found = embeddings.embed_poolings(
                encoder, corpus.sentences[language], poolings, max_length=max_length
            )
        except ValueError as error:
            raise ValueError(f"language {language!r} of {corpus.name!r}: {error}") from None
        return {
            pooling: replace(own, states=mexa.without_offset({language: own.states})[language])
            for pooling, own in found.items()
        }

    of_pivot = read(pivot)
    for language in languages:
        for pooling, states in read(language).items():
            yield _compare({language: states, pivot: of_pivot[pooling]}, pivot, False)


CENTRED = work.Kind(
    "coverage-centred", _measured_centred, version=1, tolerance=0.02, difference=_apart
)


def _coverage(
    name: Name, pooling: str, pivot: str, found: Mapping[str, Mapping[str, np.ndarray]]
) -> Coverage:
    identity = models.identify(name)
    languages = tuple(found)
    rows = [
        (language, layer, measure, value)
        for language in languages
        for measure, values in zip(
            alignment.MEASURES, found[language].get("measures", ()), strict=False
        )
        for layer, value in enumerate(values.tolist())
    ]
    cut = {language: int(arrays["cut"][0]) for language, arrays in found.items()}
    return Coverage(
        series_name(identity),
        identity.step or 0,
        pooling,
        _pivot_scores(found, pivot),
        pd.DataFrame(rows, columns=["language", "layer", "measure", "value"]),
        cut | {pivot: int(found[languages[0]]["cut"][1])},
    )


def _pivot_scores(found: Mapping[str, Mapping[str, np.ndarray]], pivot: str) -> mexa.PivotScores:
    hits, only_rival = (
        np.stack([arrays[name] for arrays in found.values()], axis=1)
        for name in ("hits", "only_rival")
    )
    return mexa.PivotScores(tuple(found), pivot, tuple(range(len(hits))), hits, only_rival)


# --- without a model's states ---------------------------------------------------------------------


def bag_of_subwords(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    centred: bool = False,
    max_length: int | None = None,
) -> mexa.PivotScores:
    """MEXA of a model that knows of a sentence only how often it has each subword.

    What names, numbers and loans that two languages write alike are worth: the reference under the
    scores of any model with this vocabulary, trained or not. One layer, called 0. ``centred``: how
    often more than in the mean sentence of the language (`mexa.without_offset`).

    Raises ValueError as `measure`; a sentence of no subword that the vocabulary knows has a vector
    all the same (that of the unknown one).
    """
    pivot, languages = _with_pivot(corpus, pivot)
    about = {
        "model": models.fingerprint(name), "max_length": max_length,
        "pivot": corpus.text_hash(pivot),
    }  # fmt: skip

    def calls(missing: list[int]) -> Iterator[work.Call]:
        wanted = [languages[position] for position in missing]
        yield missing, (name, corpus.select([pivot, *wanted]), pivot, wanted, max_length)

    values = work.results(
        CENTRED_BAG if centred else BAG,
        [about | {"text": corpus.text_hash(language)} for language in languages],
        calls,
        what="bags of subwords",
    )
    return _pivot_scores(dict(zip(languages, values, strict=True)), pivot)


def _bags(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    max_length: int | None,
) -> Iterator[dict[str, np.ndarray]]:
    bags = embeddings.bag_of_subwords(models.load(name), corpus, max_length=max_length)
    for language in languages:
        pair = {language: bags[language], pivot: bags[pivot]}
        used = np.unique(np.concatenate([bag.indices for bag in pair.values()]))
        dense = {code: bag[:, used].toarray()[None] for code, bag in pair.items()}
        yield _hits(mexa.scores(dense, pivot), 0)


BAG = work.Kind("coverage-bag", _bags, version=1, tolerance=0.02, difference=_apart)


def _centred_bags(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    max_length: int | None,
) -> Iterator[dict[str, np.ndarray]]:
    bags = embeddings.bag_of_subwords(models.load(name), corpus, max_length=max_length)
    for language in languages:
        pair = {language: bags[language], pivot: bags[pivot]}
        used = np.unique(np.concatenate([bag.indices for bag in pair.values()]))
        dense = {code: bag[:, used].toarray()[None] for code, bag in pair.items()}
        yield _hits(mexa.scores(mexa.without_offset(dense), pivot), 0)


CENTRED_BAG = work.Kind(
    "coverage-bag-centred", _centred_bags, version=1, tolerance=0.02, difference=_apart
)


def subwords(name: Name, corpus: ParallelCorpus) -> pd.Series:
    """Mean number of subwords of a sentence, those that the tokenizer adds included, by language.

    Raises as `models.load`.
    """
    texts = [corpus.text_hash(language) for language in corpus.languages]
    about = {"model": models.fingerprint(name), "texts": texts}
    found = work.result(SUBWORDS, about, name, corpus)
    return pd.Series(found["subwords"], list(corpus.languages), name="subwords")


def _subwords(name: Name, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    tokenizer = models.tokenizer(name)
    read = (tokenizer(list(text), verbose=False)["input_ids"] for text in corpus.sentences.values())
    return {"subwords": np.array([np.mean([len(ids) for ids in of_text]) for of_text in read])}


SUBWORDS = work.Kind("subwords", _subwords, version=1, tolerance=1e-9)


# --- all languages at once ------------------------------------------------------------------------


def wrong_pairs(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    n_shifts: int,
    pooling: str = POOLINGS[0],
    max_length: int | None = None,
) -> np.ndarray:
    """MEXA of sentences that are no translations, by layer: ``(n_layers + 1,)``.

    The sentences of each language are moved against those of the pivot by 1 to `n_shifts` places;
    the mean over shifts and languages. Errors as `measure`.
    """
    pivot, _ = _with_pivot(corpus, pivot)
    options = {"pooling": pooling, "max_length": max_length}
    about = embeddings.corpus_about(name, corpus, **options)
    about |= {"pivot": pivot, "n_shifts": n_shifts}
    return work.result(WRONG_PAIRS, about, name, corpus, pivot, n_shifts, options)["mu"]


def _wrong_pairs(
    name: Name, corpus: ParallelCorpus, pivot: str, n_shifts: int, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    states = embeddings.embed_corpus(models.load(name), corpus, **options).states
    shifted = []
    for shift in range(1, n_shifts + 1):
        wrong = {x: own if x == pivot else np.roll(own, shift, 1) for x, own in states.items()}
        shifted.append(mexa.scores(wrong, pivot).mu)
    return {"mu": np.mean(shifted, axis=(0, 2))}


WRONG_PAIRS = work.Kind("coverage-wrong-pairs", _wrong_pairs, version=1, tolerance=1e-3)


def neighbourhoods(
    name: Name,
    corpus: ParallelCorpus,
    layers: Sequence[int],
    *,
    n_sentences: int,
    perplexity: float = 30,
    seed: int = 0,
    pooling: str = POOLINGS[0],
    max_length: int | None = None,
) -> pd.DataFrame:
    """The sentences of all languages in a plane, by t-SNE of their directions (Figure 4).

    The first `n_sentences` of the corpus, layer by layer. Returns a row per layer and sentence:
    ``layer``, ``language``, ``sentence``, ``x``, ``y``, ``nearest`` (language of the nearest other
    point). Errors as `measure`.
    """
    from scipy.spatial import cKDTree

    n = min(n_sentences, len(corpus))
    options = {"pooling": pooling, "max_length": max_length}
    about = embeddings.corpus_about(name, corpus, **options)
    about |= {"layers": list(layers), "n": n, "perplexity": perplexity, "seed": seed}
    placed = work.result(PLANE, about, name, corpus, layers, n, perplexity, seed, options)["placed"]
    language = np.repeat(corpus.languages, n)
    tables = [
        pd.DataFrame(
            {
                "layer": layer,
                "language": language,
                "sentence": np.tile(np.arange(n), len(corpus.languages)),
                "x": points[:, 0],
                "y": points[:, 1],
                "nearest": language[cKDTree(points).query(points, 2)[1][:, 1]],
            }
        )
        for layer, points in zip(layers, placed, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)


def _placed(
    name: Name,
    corpus: ParallelCorpus,
    layers: Sequence[int],
    n: int,
    perplexity: float,
    seed: int,
    options: Mapping[str, object],
) -> dict[str, np.ndarray]:
    """Coordinates, ``(layers, languages * n, 2)``."""
    from sklearn.manifold import TSNE

    states = embeddings.embed_corpus(models.load(name), corpus, **options).states
    placed = []
    for layer in layers:
        rows = np.concatenate([own[layer, :n] for own in states.values()])
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        plane = TSNE(perplexity=perplexity, init="pca", random_state=seed)
        placed.append(plane.fit_transform(rows))
    return {"placed": np.array(placed)}


def _otherwise_placed(stored: work.Value, computed: work.Value) -> float:
    """How far apart the points are spread, relatively: t-SNE puts no point twice in one place."""
    spreads = [value["placed"].std(axis=1) for value in (stored, computed)]
    return float(np.abs(spreads[1] / spreads[0] - 1).max())


PLANE = work.Kind(
    "neighbourhoods", _placed, version=1, tolerance=0.25, difference=_otherwise_placed
)
