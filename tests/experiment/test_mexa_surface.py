"""Bags of letters and words: against the states of MEXA, and where the answer is known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction import text as sklearn_text

from shared import mexa_tables
from xlx.measures import mexa
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus


def table(corpus: ParallelCorpus) -> pd.DataFrame:
    """μ with English, language by bag."""
    vectors = {bag: mexa_tables.bag_vectors(corpus, bag) for bag in mexa_tables.BAGS}
    return pd.DataFrame({bag: mexa_tables.bag_scores(x) for bag, x in vectors.items()})


@pytest.mark.filterwarnings("ignore::xlx.text.parallel.CorpusWarning")
def test_bags_score_as_states_of_their_counts_would() -> None:
    text = parallel.load("flores200-100").select(["en", "de", "zh"])
    scores = table(text)
    assert scores.shape == (2, 4)
    for name, (kind, options) in mexa_tables.BAGS.items():
        counted = getattr(sklearn_text, kind)(**options).fit_transform(
            [sentence for code in text.languages for sentence in text.sentences[code]]
        )
        for place, code in enumerate(text.languages[1:], 1):
            pair = {"en": counted[:100], code: counted[100 * place : 100 * (place + 1)]}
            used = np.unique(np.concatenate([part.indices for part in pair.values()]))
            states = {key: part[:, used].toarray()[None] * 1.0 for key, part in pair.items()}
            assert scores.loc[code, name] == mexa.scores(states, "en").mu[0, 0]
    assert scores.loc["de", "words"] > scores.loc["zh", "words"]  # names and loans in one script
