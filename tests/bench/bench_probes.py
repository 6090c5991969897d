"""Probes of all layers and seeds at once against scikit-learn, one after the other, on real words.

Part of speech in two languages from the states of a shipped model (6 x 128): 14 groups, 6 seeds.
The yardstick is `LogisticRegression` (lbfgs) on the same standardised states. Its accuracy counts
with C chosen on the validation split, its time with one C, once a seed (it draws nothing, so one
fit is timed and multiplied). It gets one thread, which is faster for products this small than all
of them (many times on some processors); ours take all there are.
"""

import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from tests.bench import show
from xlx.models import probes
from xlx.models.loading import load
from xlx.models.words import embed_words
from xlx.text import labelled

LANGUAGES = ("en", "fi")
WORDS = {"train": 3000, "validation": 1000, "test": 2000}
PENALTIES = (0.01, 0.03, 0.1, 0.3)
ROUNDS = 3


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
                labelled.UPOS.index(part.tags[sentence][word])
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


def one_by_one(
    train: probes.Split, validation: probes.Split, test: probes.Split
) -> tuple[float, float]:
    """Mean test accuracy of scikit-learn's probes with the best C, and seconds of one C."""
    seconds, scores = 0.0, []
    for group in range(len(train.states)):
        (x, y), (x_held, y_held), (x_test, y_test) = (
            (split.states[group][split.labels[group] >= 0], own[own >= 0])
            for split in (train, validation, test)
            for own in (split.labels[group],)
        )
        scaler = StandardScaler().fit(x)
        tried = []
        for penalty in PENALTIES:
            start = time.perf_counter()
            with threadpool_limits(1):
                probe = LogisticRegression(C=penalty, max_iter=1000).fit(scaler.transform(x), y)
            seconds += (time.perf_counter() - start) / len(PENALTIES)
            tried.append(
                (
                    probe.score(scaler.transform(x_held), y_held),
                    probe.score(scaler.transform(x_test), y_test),
                )
            )
        scores.append(max(tried)[1])
    return float(np.mean(scores)), seconds


def run() -> list[dict[str, object]]:
    """Rows of the bench table: name, value, unit, aim."""
    train, validation, test = splits()
    n_classes = len(labelled.UPOS)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        fitted = probes.fit(train, validation, n_classes, device="cpu")
        ours.append(time.perf_counter() - start)
        reference, seconds = one_by_one(train, validation, test)
        theirs.append(seconds * len(probes.SEEDS))
    reached = probes.accuracy(fitted.predict(test.states), test.labels).mean()
    n_probes = fitted.epochs.size
    return [
        {
            "name": "probes: linear, 17 classes, n = 3,000, d = 128",
            "value": round(1000 * min(ours) / n_probes, 1),
            "unit": "ms a probe",
            "aim": None,
        },
        {
            "name": "probes: faster than LogisticRegression, one by one with one C",
            "value": round(min(theirs) / min(ours), 1),
            "unit": "times",
            "aim": "> 10",
        },
        {
            "name": f"probes: the same, where C is chosen among {len(PENALTIES)}",
            "value": round(len(PENALTIES) * min(theirs) / min(ours), 1),
            "unit": "times",
            "aim": None,
        },
        {
            "name": "probes: accuracy beyond LogisticRegression's with the best C",
            "value": round(100 * (reached - reference), 2),
            "unit": "points",
            "aim": "> -1",
        },
    ]


if __name__ == "__main__":
    show(run())
