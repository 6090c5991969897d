"""What MEXA scores without alignment: bags of a model's subwords, and sentences wrongly paired.

A score says that a model has aligned a language only as far as it is above these. See also
`xlx.mexa.surface` (bags of letters and words, no model) and `xlx.mexa.chance`.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.core import work
from xlx.mexa import measures
from xlx.mexa.coverage import MEXA_POOLINGS, coverage_difference, hits_of, pivot_scores, with_pivot
from xlx.models import embeddings, loading
from xlx.models.loading import Name
from xlx.text.corpora import ParallelCorpus


def score_bags(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    centred: bool = False,
    max_length: int | None = None,
) -> measures.PivotScores:
    """MEXA of a model that knows of a sentence only how often it has each subword.

    What names, numbers and loans that two languages write alike are worth: the reference under the
    scores of any model with this vocabulary, trained or not. One layer, called 0. ``centred``: how
    often more than in the mean sentence of the language (`measures.without_offset`).

    Raises ValueError as `measure_coverage`.
    """
    pivot, languages = with_pivot(corpus, pivot)
    about = {
        "model": loading.fingerprint(name), "max_length": max_length,
        "pivot": corpus.text_hash(pivot),
    }  # fmt: skip

    def calls(missing: list[int]) -> Iterator[work.Call]:
        needed = [languages[position] for position in missing]
        yield missing, (name, corpus.select([pivot, *needed]), pivot, needed, max_length)

    values = work.results(
        CENTRED_SUBWORD_BAG if centred else SUBWORD_BAG,
        [about | {"text": corpus.text_hash(language)} for language in languages],
        calls,
        what="bags of subwords",
    )
    return pivot_scores(dict(zip(languages, values, strict=True)), pivot)


def _bags(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str,
    languages: Sequence[str],
    max_length: int | None,
    centred: bool = False,
) -> Iterator[dict[str, np.ndarray]]:
    bags = embeddings.bag_of_subwords(loading.load(name), corpus, max_length=max_length)
    for language in languages:
        pair = {language: bags[language], pivot: bags[pivot]}
        used = np.unique(np.concatenate([bag.indices for bag in pair.values()]))
        dense = {code: bag[:, used].toarray()[None] for code, bag in pair.items()}
        dense = measures.without_offset(dense) if centred else dense
        yield hits_of(measures.scores(dense, pivot))


def _centred_bags(*arguments: object) -> Iterator[dict[str, np.ndarray]]:
    return _bags(*arguments, centred=True)


_NEAR = {"tolerance": 0.02, "difference": coverage_difference}
SUBWORD_BAG = work.Kind("coverage-bag", _bags, version=1, **_NEAR)
CENTRED_SUBWORD_BAG = work.Kind("coverage-bag-centred", _centred_bags, version=1, **_NEAR)


def mean_subwords(name: Name, corpus: ParallelCorpus) -> pd.Series:
    """Mean number of subwords of a sentence by language, those that the tokenizer adds included."""
    texts = [corpus.text_hash(language) for language in corpus.languages]
    about = {"model": loading.fingerprint(name), "texts": texts}
    values = work.result(MEAN_SUBWORDS, about, name, corpus)
    return pd.Series(values["subwords"], list(corpus.languages), name="subwords")


def _subwords(name: Name, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    tokenizer = loading.tokenizer(name)
    read = (tokenizer(list(text), verbose=False)["input_ids"] for text in corpus.sentences.values())
    return {"subwords": np.array([np.mean([len(ids) for ids in of_text]) for of_text in read])}


MEAN_SUBWORDS = work.Kind("subwords", _subwords, version=1, tolerance=1e-9)


def wrong_pairs(
    name: Name,
    corpus: ParallelCorpus,
    pivot: str = "en",
    *,
    n_shifts: int,
    pooling: str = MEXA_POOLINGS[0],
    max_length: int | None = None,
) -> np.ndarray:
    """MEXA of sentences that are no translations, by layer: ``(n_layers + 1,)``.

    The sentences of each language are moved against those of the pivot by 1 to `n_shifts` places;
    the mean over shifts and languages. Errors as `measure_coverage`.
    """
    pivot, _ = with_pivot(corpus, pivot)
    options = {"pooling": pooling, "max_length": max_length}
    about = embeddings.corpus_about(name, corpus, **options)
    about |= {"pivot": pivot, "n_shifts": n_shifts}
    return work.result(WRONG_PAIRS, about, name, corpus, pivot, n_shifts, options)["mu"]


def _wrong_pairs(
    name: Name, corpus: ParallelCorpus, pivot: str, n_shifts: int, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    states = embeddings.embed_corpus(loading.load(name), corpus, **options).states
    shifted = []
    for shift in range(1, n_shifts + 1):
        wrong = {x: y if x == pivot else np.roll(y, shift, 1) for x, y in states.items()}
        shifted.append(measures.scores(wrong, pivot).mu)
    return {"mu": np.mean(shifted, axis=(0, 2))}


WRONG_PAIRS = work.Kind("coverage-wrong-pairs", _wrong_pairs, version=1, tolerance=1e-3)
