"""Pairs of languages at the chosen layer: LD, MD and retrieval, of each pair and direction."""

from collections.abc import Mapping
from itertools import chain, combinations

import numpy as np
import pandas as pd

from xlx.experiment.abx_scores import group_sizes, length_matched
from xlx.experiment.averages import Average
from xlx.measures import abx, statistics
from xlx.report.measures import TOLD, Measured
from xlx.results import work
from xlx.subjects import loading, states
from xlx.subjects.identity import Name
from xlx.subjects.states import embed_corpus
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus


def pair_rows(
    measured: Measured, corpus: ParallelCorpus, max_length: int | None = None
) -> pd.DataFrame:
    """Every pair of languages at the chosen layer, both directions averaged, with intervals."""
    model, tasks = measured.model, list(TOLD)
    value = _pairs_value(measured, corpus, max_length)
    pairs = list(combinations(corpus.languages, 2))
    tables = [
        pd.DataFrame(pairs, columns=["language_1", "language_2"]).assign(
            model=model.label, layer=measured.layer, task=task,
            score=value["score"][row].mean(axis=-1), low=value["low"][row],
            high=value["high"][row],
        )
        for row, task in enumerate(tasks)
    ]  # fmt: skip
    columns = ["model", "layer", "task", "language_1", "language_2", "score", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns]


def retrieval_rows(
    measured: Measured, corpus: ParallelCorpus, max_length: int | None = None
) -> pd.DataFrame:
    """Share of queries of a language whose translation is nearest, of each direction of a pair.

    Intervals are Wilson's, for independent queries.
    """
    score = _pairs_value(measured, corpus, max_length)["score"][TOLD.index("retrieval")]
    pairs = list(combinations(corpus.languages, 2))
    both = chain(*([pair, pair[::-1]] for pair in pairs))
    table = pd.DataFrame(both, columns=["query", "among"]).assign(score=score.ravel())
    n = len(corpus)
    ends = [statistics.share_interval(share * n, n) for share in table["score"]]
    table[["low", "high"]] = np.array(ends)
    return table.assign(model=measured.model.label, layer=measured.layer)


def _pairs_value(
    measured: Measured, corpus: ParallelCorpus, max_length: int | None
) -> dict[str, np.ndarray]:
    model, layer = measured.model, measured.layer
    options = {"pooling": model.pooling, "max_length": max_length}
    about = states.corpus_about(model.name, corpus, **options)
    about |= {"layer": layer, "documents": [*parallel.documents(corpus)]}
    return work.result(PAIRS_AT_LAYER, about, model.name, corpus, layer, options)


def _pairs(
    name: Name, corpus: ParallelCorpus, layer: int, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    """``score`` ``(n_tasks, n_pairs, 2)``, ``low`` and ``high`` of the mean of both directions."""
    encoder = loading.load(name)
    states = embed_corpus(encoder, corpus, **options).states
    documents = parallel.documents(corpus)
    exact = abx.exact(
        states, layers=[layer], masks={"like length": length_matched(corpus)},
        groups={"documents": documents}, device=encoder.device,
    )  # fmt: skip
    both = np.stack([exact.scores[task][0] for task in TOLD])
    left_out = np.stack([exact.left_out["documents"][task][0] for task in TOLD])
    score = both.mean(axis=-1)
    mean = Average(score, left_out - score[..., None], group_sizes(documents))
    low, high = mean.interval()
    return {"score": both, "low": low, "high": high}


#: A value: what `_pairs` says.
PAIRS_AT_LAYER = work.Kind("report-pairs", _pairs, version=1, tolerance=5e-4)
