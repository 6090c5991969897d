"""Word vectors counted on a text: mutual information of words and neighbours, by its components.

Positive pointwise mutual information of words and the words around them, reduced by a singular
value decomposition. Then n-gram vectors are fitted whose mean is as near as possible to the vector
of each word (bag of subwords, Zhao et al. 2018), for the words that were not in the text.

**Why the default profile counts.** Its text has 0.2 to 0.8 million words a language, where fastText
learns from billions. At that size a few passes hardly move a skip-gram's vectors from where they
began, and with n-grams the nearest neighbours of a word look like it (*king*: *hiking*, *biking*)
rather than mean like it. Counts make more of the same words (Levy, Goldberg and Dagan 2015 say
where the two models agree): with the same window of 5, mapped onto English, 1.2 (German) to 3
(Hindi) times as many held-out words find their translation as after 15 passes of a skip-gram of
words alone, in a fifth of the time.

**What the numbers owe to the text.** Parts of it are translations of one another, so words that
translate one another stand in the same lines, and the wider the window, the more a vector says of
the lines. Where English was trained on one half of the aligned lines and the other language on the
other half, half as many held-out words or fewer found their translation, and a window of 10 words
found no more than one of 5. The vectors are as well aligned as the precision says; vectors from
texts that are not parallel would not be.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from gensim.models.fasttext import ft_ngram_hashes
from scipy import sparse
from scipy.sparse.linalg import svds

from xlx.core import checks
from xlx.xprobe.parallel_text import WordVectorsError, tokenize
from xlx.xprobe.word_vectors import Ngrams, WordVectors

#: Of the n-grams' least squares: the weight of their length, and conjugate-gradient steps at most.
_DAMPING, _STEPS = 0.3, 20


def factorised(
    lines: Iterable[str],
    language: str,
    *,
    dim: int = 100,
    window: int = 10,
    min_count: int = 2,
    ngrams: tuple[int, int] | None = (3, 5),
    buckets: int = 50_000,
    seed: int = 0,
) -> WordVectors:
    """Vectors from counts: mutual information of words and their neighbours, by its components.

    A neighbour k words away counts (window + 1 - k) / window times, which is how often a skip-gram
    model of that window would see it. From these counts max(0, ln p(w, c) / (p(w) p'(c))), where
    p' has the counts of the contexts raised to ¾, as the skip-gram's negative samples have; its
    `dim` largest components U S V give the vectors U S^½, at length 1 (Levy, Goldberg and Dagan
    2015). The same seed gives the same vectors on the same machine.

    Parameters
    ----------
    lines : iterable of str
        Text; a line is a context that no window crosses.
    language : str
    dim : int
        Numbers of a vector, fewer than there are words.
    window : int
        Words to each side that are neighbours. The wider, the more a vector says of topic and the
        less of grammar; on the text of the compendium, more held-out words find their translation
        with 10 than with 5 or 2, for the reason that the module gives.
    min_count : int
        A word seen less often has no vector of its own, and is no neighbour.
    ngrams : (int, int) or None
        Shortest and longest character n-gram, for the words without a vector; None: none.
    buckets : int
        Rows of the n-grams' hash table.
    seed : int
        Of the vector that the search for components begins at.

    Raises
    ------
    WordVectorsError
        No word comes `min_count` times, or not more than `dim` do; an option out of its range.
    """
    numbers = {"dim": dim, "window": window, "min_count": min_count, "buckets": buckets}
    for name, number in numbers.items():
        checks.whole(number, name, WordVectorsError)
    if ngrams is not None and not 1 <= ngrams[0] <= ngrams[1]:
        raise WordVectorsError(f"n-grams of {ngrams} characters: give the shortest, the longest")
    sentences = [tokenize(line, language) for line in lines]
    counts = Counter(itertools.chain.from_iterable(sentences))
    words = [word for word, count in counts.most_common() if count >= min_count]
    if not words:
        raise WordVectorsError(
            f"{language}: no word comes {min_count} times in {len(sentences)} lines; give more "
            "text or a smaller min_count"
        )
    information = _information(_neighbours(sentences, words, window))
    if not dim < len(words) or not information.nnz:
        raise WordVectorsError(
            f"{language}: {len(words)} words and {information.nnz} pairs of them are too few for "
            f"{dim} components; give more text, a smaller min_count or a smaller dim"
        )
    u, s, _ = svds(information, k=dim, rng=np.random.default_rng(seed))
    vectors = _of_length_1(u * np.sqrt(np.maximum(s, 0)))
    table = None if ngrams is None else _fitted_ngrams(words, vectors, ngrams, buckets)
    return WordVectors(language, tuple(words), vectors, table)


def _neighbours(
    sentences: Sequence[Sequence[str]], words: Sequence[str], window: int
) -> sparse.csr_array:
    """How often each word has each other near it, near ones counting more: ``(n, n)``, symmetric.

    A word that is not among `words` keeps its place in the line.
    """
    index = {word: at for at, word in enumerate(words)}
    # window places after each line that are no word: so no pair is across two lines.
    apart = [-1] * window
    flat = np.array(
        [at for line in sentences for at in (*(index.get(word, -1) for word in line), *apart)]
    )
    found = sparse.csr_array((len(words), len(words)), dtype=np.float64)
    for step in range(1, window + 1):
        both = (flat[step:] >= 0) & (flat[:-step] >= 0)
        pairs = flat[:-step][both], flat[step:][both]
        weights = np.full(len(pairs[0]), (window + 1 - step) / window)
        found += sparse.csr_array((weights, pairs), shape=found.shape)
    return sparse.csr_array(found + found.T)


def _information(counts: sparse.csr_array) -> sparse.csr_array:
    """Positive pointwise mutual information, contexts smoothed by the power ¾; float32."""
    table = counts.tocoo()
    rows, columns = table.coords
    totals = np.asarray(counts.sum(axis=1)).ravel()
    smooth = totals**0.75
    values = np.log(table.data * smooth.sum() / (totals[rows] * smooth[columns]))
    kept = values > 0
    return sparse.csr_array(
        (values[kept].astype(np.float32), (rows[kept], columns[kept])), shape=counts.shape
    )


def _of_length_1(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, or zero where a word has no neighbour; float32."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit.astype(np.float32)


def _fitted_ngrams(
    words: Sequence[str], vectors: np.ndarray, lengths: tuple[int, int], buckets: int
) -> Ngrams:
    """N-gram vectors whose means are nearest to the words' own, by damped least squares."""
    found = [ft_ngram_hashes(word, *lengths, buckets) for word in words]
    sizes = np.array([len(own) for own in found])
    rows = np.repeat(np.arange(len(words)), sizes)
    columns = np.fromiter(itertools.chain.from_iterable(found), np.int64, len(rows))
    shares = (1 / sizes[rows]).astype(np.float32)
    mean_of = sparse.csr_array((shares, (rows, columns)), shape=(len(words), buckets))
    return Ngrams(_least_squares(mean_of, vectors.astype(np.float32)), *lengths)


def _least_squares(matrix: sparse.csr_array, right: np.ndarray) -> np.ndarray:
    """The x for which ‖matrix x - right‖² + damping² ‖x‖² is least, ``(n_columns, dim)``.

    Conjugate gradients on all columns of `right` at once, which takes a tenth of the time of
    SciPy's solvers, as those take one column after another.
    """
    transposed = matrix.T.tocsr()
    found = np.zeros((matrix.shape[1], right.shape[1]), dtype=right.dtype)
    residual = transposed @ right
    direction, size = residual, (residual**2).sum(axis=0)
    for _ in range(_STEPS):
        turned = transposed @ (matrix @ direction) + _DAMPING**2 * direction
        along = (direction * turned).sum(axis=0)
        step = np.divide(size, along, out=np.zeros_like(size), where=along > 0)
        found = found + step * direction
        residual = residual - step * turned
        before, size = size, (residual**2).sum(axis=0)
        ratio = np.divide(size, before, out=np.zeros_like(size), where=before > 0)
        direction = residual + ratio * direction
    return found
