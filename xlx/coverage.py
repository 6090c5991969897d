"""Which languages a model covers: MEXA and its alternatives, of every language with the pivot.

`measure` embeds one language at a time, compares it with the pivot at every layer, and stores what
comes out: neither memory nor disk ever holds the states of 200 languages, which for a model of 8
billion parameters would be ten gigabytes a pooling. A run that was stopped goes on at the next
language.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from xlx import alignment, embeddings, mexa, models, similarity
from xlx.corpora import CorpusError, ParallelCorpus
from xlx.series import series_name
from xlx.store import Store, code_version

#: The two ways to a sentence's vector that the paper compares (section 3.1), its own first.
POOLINGS = ("weighted_mean", "last")

#: Layers that section 5.3 averages cosines over, of models with 28 and 32 layers.
_MIDDLE, _OF = (5, 10, 15, 20, 25), 32


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
    name: str | Path | models.Checkpoint,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    poolings: Sequence[str] = POOLINGS,
    alternatives: bool = True,
    max_length: int | None = None,
    device: str | None = None,
    dtype: str = "float32",
    store: Store | None = None,
    progress: bool = True,
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
    max_length : int, optional
        Subwords of a sentence; None: what the model takes. What is longer is cut, and counted.
    device, dtype
        As for `models.load`.

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
    pivot = corpus.select([pivot]).languages[0]
    languages = tuple(code for code in corpus.languages if code != pivot)
    if not languages:
        raise CorpusError(f"{corpus.name} has no language to compare with {pivot}")
    store = store or Store()
    encoder = models.load(name, device=device, dtype=dtype)
    poolings = tuple(dict.fromkeys(poolings))
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(embeddings.POOLINGS)}")
    code = code_version(similarity, mexa, *([alignment] if alternatives else []), _compare)
    common = {
        pooling: embeddings.states_key(encoder, pooling=pooling, max_length=max_length)
        | {"pivot": corpus.text_hash(pivot), "alternatives": alternatives, "scores": code}
        for pooling in poolings
    }
    found: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    own: dict[str, embeddings.SentenceStates] = {}
    bar = tqdm(
        languages, encoder.name, unit=" languages", disable=None if progress else True
    )  # one bar for the model; those of the embeddings would come by the hundred

    def read(language: str, wanted: Sequence[str]) -> dict[str, embeddings.SentenceStates]:
        try:
            return embeddings.embed_poolings(
                encoder, corpus.sentences[language], wanted, max_length=max_length, progress=False
            )
        except ValueError as error:
            raise ValueError(f"language {language!r} of {corpus.name!r}: {error}") from None

    for language in bar:
        text = {"text": corpus.text_hash(language)}
        for pooling in poolings:
            found[pooling, language] = store.load_arrays("coverage", common[pooling] | text)
        missing = [pooling for pooling in poolings if found[pooling, language] is None]
        if not missing:
            continue
        own = own or read(pivot, poolings)
        for pooling, states in read(language, missing).items():
            arrays = _compare({language: states, pivot: own[pooling]}, pivot, alternatives)
            store.save_arrays("coverage", common[pooling] | text, arrays)
            found[pooling, language] = arrays
    return {
        pooling: _coverage(encoder, pooling, pivot, {x: found[pooling, x] for x in languages})
        for pooling in poolings
    }


def _compare(
    states: dict[str, embeddings.SentenceStates], pivot: str, alternatives: bool
) -> dict[str, np.ndarray]:
    """One language and the pivot: what is stored."""
    vectors = {language: embedded.states for language, embedded in states.items()}
    (language,) = set(states) - {pivot}
    scores = mexa.scores(vectors, pivot)
    arrays = {
        "hits": scores.hits[:, 0],
        "only_rival": scores.only_rival[:, 0],
        "cut": np.array([states[language].n_cut, states[pivot].n_cut]),
    }
    if alternatives:
        table = alignment.measures(vectors, pivot)
        table = table.pivot(index="measure", columns="layer", values="value")
        arrays |= {f"measure {name}": row.to_numpy() for name, row in table.iterrows()}
    return arrays


def _coverage(
    encoder: models.Encoder, pooling: str, pivot: str, found: dict[str, dict[str, np.ndarray]]
) -> Coverage:
    languages = tuple(found)
    hits, only_rival = (
        np.stack([found[language][name] for language in languages], axis=1)
        for name in ("hits", "only_rival")
    )
    layers = tuple(range(len(hits)))
    rows = [
        (language, layer, name, value)
        for language in languages
        for name in alignment.MEASURES
        for layer, value in enumerate(found[language].get(f"measure {name}", np.empty(0)).tolist())
    ]
    cut = {language: int(arrays["cut"][0]) for language, arrays in found.items()}
    return Coverage(
        series_name(encoder),
        encoder.step or 0,
        pooling,
        mexa.PivotScores(languages, pivot, layers, hits, only_rival),
        pd.DataFrame(rows, columns=["language", "layer", "measure", "value"]),
        cut | {pivot: int(found[languages[0]]["cut"][1])},
    )


def bag_of_subwords(
    encoder: models.Encoder,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    max_length: int | None = None,
    progress: bool = True,
) -> mexa.PivotScores:
    """MEXA of a model that knows of a sentence only how often it has each subword.

    What names, numbers and loans that two languages write alike are worth: the reference under the
    scores of any model with this vocabulary, trained or not. One layer, called 0.

    Raises ValueError as `measure`; a sentence of no subword that the vocabulary knows has a vector
    all the same (that of the unknown one).
    """
    pivot = corpus.select([pivot]).languages[0]
    bags = embeddings.bag_of_subwords(encoder, corpus, max_length=max_length)
    found = []
    bar = tqdm(
        (code for code in corpus.languages if code != pivot), f"{encoder.name}, subwords",
        unit=" languages", disable=None if progress else True,
    )  # fmt: skip
    for language in bar:
        pair = {language: bags[language], pivot: bags[pivot]}
        used = np.unique(np.concatenate([bag.indices for bag in pair.values()]))
        dense = {code: bag[:, used].toarray()[None] for code, bag in pair.items()}
        found.append(mexa.scores(dense, pivot))
    if not found:
        raise CorpusError(f"{corpus.name} has no language to compare with {pivot}")
    return mexa.PivotScores(
        tuple(language for scores in found for language in scores.languages),
        pivot,
        (0,),
        np.concatenate([scores.hits for scores in found], axis=1),
        np.concatenate([scores.only_rival for scores in found], axis=1),
    )
