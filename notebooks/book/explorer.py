"""One page of all scores by pair of languages, layer and checkpoint: what `make explorer` writes.

    python -m notebooks.book.explorer build/explorer.html

The ledger alone decides what is in it: where it lacks a combination, the page cannot choose it.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from notebooks.shared import held_out, mexa_tables
from xlx.experiment.abx_scores import before_training, history
from xlx.experiment.mexa_scores import measure_coverage
from xlx.experiment.scoring import BagOfSubwords, Subject, subject_scores
from xlx.report.explorer import (
    SHOWN_MEASURES,
    SHOWN_SPACES,
    Scores,
    explorer_page,
    listed_text,
    packed_scores,
    pivot_rows,
    score_rows,
)
from xlx.results.settings import settings
from xlx.results.store import write_whole
from xlx.results.work import MissingResultError
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: The public models, and the family; those whose pooling is weighted by position in MEXA's text.
MODELS = (
    "multilingual-e5-small",
    "gemma-3-270m",
    "all-MiniLM-L6-v2",
    "embeddinggemma-300m",
    "qwen2.5-coder-0.5b-instruct",
    "mini-xlmr",
    "mini-infoxlm",
    "mini-mbert",
    "mini-xlm",
    "mini-xlmr-large",
    "mini-xlmr-6",
    "mini-xlmr-12",
    "mini-llama",
    "mini-llama-en80",
    "mini-llama-en95",
    "mini-llama-bi2",
    "mini-llama-bi20",
)
DECODERS = ("gemma", "qwen", "mini-llama")
#: Languages of the pairs in MEXA's text that WMT24++ has not, as in `mexa-1-alignment`.
MORE = ("af", "am", "ar_Latn", "bo", "ht", "hy", "id", "ka", "sw", "tl", "yo", "zu")


def texts() -> dict[str, ParallelCorpus]:
    """The texts that can be chosen, by title."""
    wmt = parallel.load("wmt24pp", drop_duplicates=True)
    with warnings.catch_warnings():  # a sentence that comes twice is two misses, as in the paper
        warnings.simplefilter("ignore", parallel.CorpusWarning)
        flores = parallel.load("flores200-100", [*wmt.languages, *MORE])
    titles = f"WMT24++, {len(wmt)} segments", f"FLORES-200, {len(flores)} sentences"
    return dict(zip(titles, (wmt, flores), strict=True))


def subjects(model: str, pooling: str) -> Iterator[tuple[str, Subject]]:
    """What is scored for a model: each state by its step, its untrained twin, a bag of subwords."""
    for state in history(model, recorded=True):
        yield str(getattr(state, "step", "only")), Subject(state, {"pooling": pooling})
    yield "twin", Subject(before_training(model), {"pooling": pooling})
    yield "bag", BagOfSubwords(model)


def pair_scores(
    subject: Subject, text: ParallelCorpus, measures: Sequence[str], space: str
) -> dict[str, Scores]:
    """The ledger's scores of all pairs, by measure: of each pair the mean of both directions."""
    try:
        with warnings.catch_warnings():  # of checkpoints that the ledger lacks
            warnings.simplefilter("ignore")
            checkpoints = subject_scores([subject], text, measures, space=space)
    except MissingResultError:  # some, or all: one by one
        if len(measures) == 1:
            return {}
        parts = [pair_scores(subject, text, [name], space) for name in measures]
        return {name: scores for part in parts for name, scores in part.items()}
    return {name: score_rows(checkpoint, name) for checkpoint in checkpoints for name in measures}


def english_scores(
    subject: Subject, text: ParallelCorpus, pooling: str, space: str
) -> Scores | None:
    """MEXA of the pairs with English alone, and its mean over them (without an interval)."""
    try:
        (coverage,) = measure_coverage(subject, text, poolings=[pooling], states=[space]).values()
    except MissingResultError:
        return None
    return pivot_rows(coverage.scores, text.languages)


def letter_rows(text: ParallelCorpus) -> Scores:
    """MEXA of all pairs by the bag of letters, which needs no model: a layer, no interval.

    Weighted over all languages of FLORES-200, as in the chapters.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", parallel.CorpusWarning)
        bags = mexa_tables.bag_vectors(parallel.load("flores200-100"))
    both = combinations(text.languages, 2)
    pairs = [mexa_tables.bag_hits(bags[x], bags[y]).mean() for x, y in both]
    return np.array([[*pairs, np.mean(pairs), np.nan, np.nan]])


def entries(
    models: Sequence[str], corpora: Sequence[ParallelCorpus]
) -> Iterator[tuple[str, Scores]]:
    """All that the ledger has: a key, "text|model|measure|space|step" (or "twin", "bag").

    Beside MEXA stand the `letter_rows` of its text, "letters".
    """
    for number, text in enumerate(corpora):
        letters = letter_rows(text) if number else None
        for model in models:
            for space in SHOWN_SPACES if number else ():
                yield f"{number}|{model}|MEXA|{space}|letters", letters
            decoder = number and model.startswith(DECODERS)
            pooling = "weighted_mean" if decoder else "mean"
            measures = [*SHOWN_MEASURES][number and 4 :][:4]
            for who, subject in subjects(model, pooling):
                for space in SHOWN_SPACES:
                    with settings(dtype=held_out.precision(model)):
                        scores = pair_scores(subject, text, measures, space)
                        if number and not scores:
                            english = english_scores(subject, text, pooling, space)
                            scores = {} if english is None else {"MEXA": english}
                    for measure, rows in scores.items():
                        yield f"{number}|{model}|{measure}|{space}|{who}", rows


def packed_ledger(models: Sequence[str] = MODELS) -> dict[str, object]:
    """What the page holds of the ledger; ValueError where it has nothing of these models."""
    corpora = texts()
    listed = [listed_text(text, title) for title, text in corpora.items()]
    with settings(policy="only"):
        data = packed_scores(entries(models, [*corpora.values()]), texts=listed, models=models)
    if not data["entries"]:
        raise ValueError("the ledger (data/results) has no scores of these models: restore it")
    return data


def write(path: Path, models: Sequence[str] = MODELS) -> None:
    """Write the page."""
    write_whole(path, explorer_page(packed_ledger(models)).encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
    print(f"{sys.argv[1]}: {Path(sys.argv[1]).stat().st_size / 1e6:.1f} MB")
