"""What translations share on the surface: MEXA of bags that know no language (a control of MEXA).

Names, numbers, loans and, between related languages, spelling let a sentence be found among others
without any knowledge of what it means. A model's score says that it has aligned a language only as
far as it is above what such bags reach on the same sentences.
"""

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from xlx.core.statistics import SLACK
from xlx.mexa.coverage import with_pivot
from xlx.text.corpora import ParallelCorpus

#: The bags: how often a sentence has each of its pieces, in small letters. The last weighs pieces
#: by how few sentences of all languages have them.
BAGS = {
    "words": (CountVectorizer, {"token_pattern": r"\w+"}),
    "characters": (CountVectorizer, {"analyzer": "char"}),
    "3 characters": (CountVectorizer, {"analyzer": "char", "ngram_range": (3, 3)}),
    "4 characters, idf": (TfidfVectorizer, {"analyzer": "char", "ngram_range": (4, 4)}),
}


def surface_scores(corpus: ParallelCorpus, pivot: str = "en") -> pd.DataFrame:
    """The MEXA score of each bag (of `BAGS`), by cosine, for every language against the pivot.

    A row per language but the pivot, and bag: ``language``, ``bag``, ``mu`` (share of hits).
    Raises TextError where the corpus has no pivot, or no other language.
    """
    pivot, _ = with_pivot(corpus, pivot)
    sentences = [sentence for text in corpus.sentences.values() for sentence in text]
    n, rows = len(corpus), []
    for name, (vectorizer, options) in BAGS.items():
        unit = normalize(vectorizer(**options).fit_transform(sentences).astype(float)).tocsr()
        bags = {code: unit[k * n : (k + 1) * n] for k, code in enumerate(corpus.languages)}
        of_pivot = bags.pop(pivot)
        rows += [
            (code, name, hits((bag @ of_pivot.T).toarray()).mean()) for code, bag in bags.items()
        ]
    return pd.DataFrame(rows, columns=["language", "bag", "mu"])


def hits(cosines: np.ndarray) -> np.ndarray:
    """Which diagonal elements are above all others of their row and column: ``(n, n)`` → ``(n,)``.

    A tie, to what sums of products leave in binary, is a miss.
    """
    rivals = cosines.copy()
    np.fill_diagonal(rivals, -np.inf)
    return np.diag(cosines) > np.maximum(rivals.max(axis=0), rivals.max(axis=1)) + SLACK
