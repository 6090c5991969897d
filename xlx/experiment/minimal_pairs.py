"""Whether a sentence is nearer to its translation than to that translation edited.

X is a sentence, A its translation, B what A became when two of its words changed places
(`xlx.text.minimal_pairs`): of the same words and length as A, so no bag of words tells them apart.
"""

import numpy as np
from scipy import sparse

from xlx.experiment.scoring import Subject, kept
from xlx.results.ledger import Value
from xlx.text.minimal_pairs import EDITED
from xlx.text.parallel import ParallelCorpus, documents


def shares_apart(stored: Value, computed: Value) -> float:
    """The largest difference of a share over all positions: a rounding error turns single ones."""
    both = zip(stored.values(), computed.values(), strict=True)
    return max(float(np.abs(a.mean(axis=-1) - b.mean(axis=-1)).max()) / 2 for a, b in both)


@kept(tolerance=0.02, difference=shares_apart, documents=True)
def edits_told(subject: Subject, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    """Twice whether cos(X, A) > cos(X, B), a tie 1: uint8 ``(n_layers, n_languages, n)``.

    ``corpus`` is one of `load_minimal_pairs`; X is in each of its languages but the edited, also in
    that of A, where X is A and the answer is given. ``own``: X is the sentence of the position.
    ``other``: that of the position before, of which A is no translation either: one half, unless
    edited sentences are odd whatever they are compared with.
    """
    reading, of = subject.read(corpus), np.array(documents(corpus))  # before ":", the language
    codes = [code for code in corpus.languages if code != EDITED]
    places = [codes.index(code) * len(of) + i for i, code in enumerate(of)]
    told: dict[str, list[list[np.ndarray]]] = {"own": [], "other": []}
    for vectors in reading.layers():
        stack = sparse.vstack if reading.counts else np.concatenate
        a, b = stack([vectors[code] for code in codes], dtype=np.float64)[places], vectors[EDITED]
        for name, shift in (("own", 0), ("other", 1)):
            order = np.roll(np.arange(len(of)), shift)
            by_language = [(vectors[code][order], code) for code in codes]
            told[name].append([1 + np.sign(cosines(x, a) - cosines(x, b)) for x, _ in by_language])
    return {name: np.array(layers).astype(np.uint8) for name, layers in told.items()}


def cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Cosine of each row of x with the row of y, ``(n,)``; dense or sparse, in float64."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    products = [p.multiply(q) if sparse.issparse(p) else p * q for p, q in ((x, y), (x, x), (y, y))]
    dots, of_x, of_y = (np.asarray(p.sum(axis=1)).ravel() for p in products)
    return dots / np.sqrt(of_x * of_y)
