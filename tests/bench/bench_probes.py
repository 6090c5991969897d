"""Probes of all layers and seeds at once against scikit-learn, one after the other, on real words.

Part of speech in two languages from the states of a shipped model (6 x 128): 14 groups, 6 seeds.
The yardstick is `LogisticRegression` (lbfgs) on the same standardised states. Its accuracy counts
with C chosen on the validation split, its time with one C, once a seed (it draws nothing, so one
fit is timed and multiplied). It gets one thread, which is faster for products this small than all
of them (many times on some processors); ours take all there are.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from tests.bench import Row, best_of
from xlx.measures import probes
from xlx.subjects.loading import load
from xlx.subjects.words import embed_words
from xlx.text import labelled, trees

LANGUAGES = ("en", "fi")
WORDS = {"train": 3000, "validation": 1000, "test": 2000}
PENALTIES = (0.01, 0.03, 0.1, 0.3)


def splits() -> list[probes.Split]:
    """Training, validation and test split; groups are the layers of one language, then the next."""
    encoder = load("mini-xlmr", device="cpu")
    found = []
    for name, n in WORDS.items():
        states, labels = [], []
        for language in LANGUAGES:
            part = labelled.load_labelled("POS", language, name)
            embedded = embed_words(encoder, part.sentences)
            tags = [
                trees.UPOS.index(part.tags[sentence][word])
                for sentence, word in zip(embedded.sentence, embedded.word, strict=True)
            ]
            states.append(embedded.states[:, :n])
            labels.append(np.tile(tags[:n], (len(embedded.states), 1)))
        n = max(part.shape[1] for part in states)
        found.append(
            probes.Split(
                np.concatenate([np.pad(x, ((0, 0), (0, n - x.shape[1]), (0, 0))) for x in states]),
                np.concatenate(
                    [np.pad(y, ((0, 0), (0, n - y.shape[1])), constant_values=-1) for y in labels]
                ),
            )
        )
    return found


def one_by_one(*parts: probes.Split) -> float:
    """Mean test accuracy of scikit-learn's probes with the C that is best on the validation split.

    ``parts``: training, validation and test split.
    """
    scores = []
    for group in range(len(parts[0].states)):
        held = [part.labels[group] >= 0 for part in parts]
        (x, y), *others = (
            (part.states[group][rows], part.labels[group][rows])
            for part, rows in zip(parts, held, strict=True)
        )
        scaler = StandardScaler().fit(x)
        tried = []
        for penalty in PENALTIES:
            probe = LogisticRegression(C=penalty, max_iter=1000).fit(scaler.transform(x), y)
            tried.append([probe.score(scaler.transform(states), tags) for states, tags in others])
        scores.append(max(tried)[1])
    return float(np.mean(scores))


def run() -> list[Row]:
    """Rows of the bench's table."""
    parts = splits()
    fitted = probes.fit(*parts[:2], len(trees.UPOS), device="cpu")
    reached = probes.accuracy(fitted.predict(parts[2].states), parts[2].labels).mean()
    # Those of scikit-learn draw nothing: one fit is timed, and counted for each seed.
    references: list[float] = []
    with threadpool_limits(1):
        (theirs,) = best_of(lambda: references.append(one_by_one(*parts)), rounds=1)
    (ours,) = best_of(lambda: probes.fit(*parts[:2], len(trees.UPOS), device="cpu"))
    single = theirs / len(PENALTIES) * len(probes.SEEDS)
    beyond = 100 * (reached - references[0])
    milliseconds = 1000 * ours / fitted.epochs.size
    return [
        Row("probes: linear, 17 classes, n = 3,000, d = 128", milliseconds, "ms a probe"),
        Row("probes: faster than LogisticRegression with one C", single / ours, "times", "> 10"),
        Row("probes: accuracy beyond its with the best C", beyond, "points", "> -1"),
    ]
