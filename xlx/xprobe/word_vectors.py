"""Word vectors: one vector a word, for the sentence encoders that read words.

The encoders of X-Probe read frozen fastText vectors (Ravishankar, Øvrelid and Velldal 2019, section
5.1; 300 numbers, Table 2): `pretrained` reads fastText's published files, as the paper did. The
default profile counts some on its own text (`factorised`): of 0.2 to 0.8 million words a language a
skip-gram's vectors hardly move from where they began, while counts find 1.2 (German) to 3 (Hindi)
times as many held-out translations in a fifth of the time.

Parts of that text are translations of one another, so words that translate one another stand in the
same lines, and the wider the window, the more a vector says of the lines. Vectors of texts that are
not parallel would be aligned half as well or less.
"""

import itertools
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import KeyedVectors
from gensim.models.fasttext import ft_ngram_hashes, load_facebook_vectors
from scipy import sparse
from scipy.sparse.linalg import svds

from xlx.core import work
from xlx.core.ledger import Ask, Value
from xlx.family import pretraining_text
from xlx.xprobe import parallel_text
from xlx.xprobe.parallel_text import WordVectorsError, file_hash, text_about, tokenize
from xlx.xprobe.word_mapping import unit_rows

#: Words that are kept of a file; the paper does not say how many it took, VecMap and MUSE this.
LIMIT = 200_000
#: What gensim raises for a file that is torn, a classifier of fastText, or something else.
_NOT_WHOLE = (
    *(struct.error, OSError, EOFError, ValueError, KeyError),
    *(AssertionError, NotImplementedError),
)
#: Of the n-grams' least squares: the weight of their length, and conjugate-gradient steps at most.
_DAMPING, _STEPS = 0.3, 20


@dataclass(frozen=True)
class Ngrams:
    """The part of fastText vectors that words share: one vector a hash bucket of n-grams.

    ``vectors`` is float32 ``(n_buckets, dim)``; n-grams have ``shortest`` to ``longest`` characters
    of the word between < and >, hashed as in fastText.
    """

    vectors: np.ndarray
    shortest: int
    longest: int


@dataclass(frozen=True)
class WordVectors:
    """The vectors of a language's words.

    ``words`` has each word once, by falling frequency in the text they were trained on; ``vectors``
    is float32 ``(n_words, dim)``; ``ngrams`` is for words that are not among them, or None.
    WordVectorsError where a word comes twice, or a vector holds NaN or infinity.
    """

    language: str
    words: tuple[str, ...]
    vectors: np.ndarray
    ngrams: Ngrams | None = None

    def __post_init__(self) -> None:
        if len(self.index) < len(self.words):
            again = next(word for i, word in enumerate(self.words) if self.index[word] != i)
            raise WordVectorsError(f"{self.language}: the word {again!r} comes twice")
        finite = np.isfinite(self.vectors).all(axis=1)
        if not finite.all():
            raise WordVectorsError(
                f"{self.language}: the vector of {self.words[int(finite.argmin())]!r} holds NaN or "
                "infinity"
            )

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    @cached_property
    def index(self) -> dict[str, int]:
        """Word → its position."""
        return {word: i for i, word in enumerate(self.words)}

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, float32 ``(n, dim)``.

        A word without a vector of its own is the mean of those of its character n-grams; where the
        vectors have none, or the word is too short to have any, it is all zeros.
        """
        vectors, ngrams = np.zeros((len(words), self.dim), dtype=np.float32), self.ngrams
        for row, word in enumerate(words):
            if word in self.index:
                vectors[row] = self.vectors[self.index[word]]
            elif ngrams is not None:
                own = ft_ngram_hashes(word, ngrams.shortest, ngrams.longest, len(ngrams.vectors))
                if own:
                    vectors[row] = ngrams.vectors[np.array(own)].mean(axis=0)
        return vectors


# --- files of fastText ----------------------------------------------------------------------------


def pretrained(
    path: str | Path, language: str, *, limit: int = LIMIT, dim: int | None = None
) -> WordVectors:
    """Vectors from a file of fastText, as it is published or gzipped (``cc.de.300.vec.gz``).

    ``.vec`` is text: a line ``n dim``, then a word and its numbers a line, by falling frequency;
    such vectors have no n-grams. ``.bin`` is fastText's own model and has them: gensim reads the
    whole of it, for 2 million words some 7 GB of memory, of which the n-grams stay (2.4 GB).

    The first ``limit`` words are kept. WordVectorsError for another kind of file, one that is torn
    or malformed, by what gensim says of it, and vectors of other than ``dim`` numbers.
    """
    path = Path(path)
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind not in ("bin", "vec"):
        raise WordVectorsError(f"{path} is neither a .vec nor a .bin file of fastText")
    try:
        if kind == "bin":
            vectors = load_facebook_vectors(str(path))
        else:  # a few words of the published files are no whole UTF-8
            vectors = KeyedVectors.load_word2vec_format(
                str(path), limit=limit, unicode_errors="replace"
            )
    except _NOT_WHOLE as error:
        raise WordVectorsError(f"{path} is no whole .{kind} file of fastText: {error}") from None
    if dim not in (None, vectors.vector_size):
        raise WordVectorsError(
            f"{path}: its vectors have {vectors.vector_size} numbers, and {dim} are needed: read "
            "other vectors, or set the width of what reads them (`words` in the sizes of encoders) "
            f"to {vectors.vector_size}"
        )
    ngrams = None
    if getattr(vectors, "max_n", 0) >= max(getattr(vectors, "min_n", 1), 1):
        table = np.asarray(vectors.vectors_ngrams, dtype=np.float32)
        ngrams = Ngrams(table, vectors.min_n, vectors.max_n) if len(table) else None
    # Two words that were no whole UTF-8 may be one here: gensim leaves a place without a word.
    words = tuple(word for word in vectors.index_to_key[:limit] if word is not None)
    return WordVectors(language, words, np.array(vectors.vectors[: len(words)], np.float32), ngrams)


# --- counted --------------------------------------------------------------------------------------


def factorised(
    lines: Iterable[str],
    language: str,
    *,
    dim: int = 100,
    window: int = 10,
    min_count: int = 2,
    ngrams: tuple[int, int] = (3, 5),
    buckets: int = 50_000,
    seed: int = 0,
) -> WordVectors:
    """Vectors from counts: mutual information of words and their neighbours, by its components.

    A neighbour k words away counts (window + 1 - k) / window times, which is how often a skip-gram
    model of that window would see it. From these counts max(0, ln p(w, c) / (p(w) p'(c))), where
    p' has the counts of the contexts raised to ¾, as the skip-gram's negative samples have; its
    `dim` largest components U S V give the vectors U S^½, at length 1 (Levy, Goldberg and Dagan
    2015). Then vectors of character n-grams (the shortest to the longest of ``ngrams``, hashed to
    ``buckets``) are fitted whose mean is as near as possible to the vector of each word (bag of
    subwords, Zhao et al. 2018).

    A line is a context that no window crosses. A word seen less than ``min_count`` times has no
    vector of its own, and is no neighbour. The same seed (of the vector that the search for
    components begins at) gives the same vectors on the same machine. WordVectorsError where there
    are not more than ``dim`` words.
    """
    sentences = [tokenize(line, language) for line in lines]
    counts = Counter(itertools.chain.from_iterable(sentences))
    words = [word for word, count in counts.most_common() if count >= min_count]
    if len(words) <= dim:
        raise WordVectorsError(
            f"{language}: {len(words)} words are too few for {dim} components; give more text, a "
            "smaller min_count or a smaller dim"
        )
    information = _information(_neighbours(sentences, words, window))
    u, s, _ = svds(information, k=dim, rng=np.random.default_rng(seed))
    vectors = unit_rows(u * np.sqrt(np.maximum(s, 0))).astype(np.float32)
    table = _fitted_ngrams(words, vectors, ngrams, buckets)
    return WordVectors(language, tuple(words), vectors, table)


def _neighbours(
    sentences: Sequence[Sequence[str]], words: Sequence[str], window: int
) -> sparse.csr_array:
    """How often each word has each other near it, near ones counting more: ``(n, n)``."""
    index = {word: i for i, word in enumerate(words)}
    # Other words keep their places; those behind a line keep pairs from being across two.
    apart = [-1] * window
    flat = np.array(
        [i for line in sentences for i in (*(index.get(word, -1) for word in line), *apart)]
    )
    near = sparse.csr_array((len(words), len(words)), dtype=np.float64)
    for step in range(1, window + 1):
        both = (flat[step:] >= 0) & (flat[:-step] >= 0)
        pairs = flat[:-step][both], flat[step:][both]
        weights = np.full(len(pairs[0]), (window + 1 - step) / window)
        near += sparse.csr_array((weights, pairs), shape=near.shape)
    return sparse.csr_array(near + near.T)


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


def _fitted_ngrams(
    words: Sequence[str], vectors: np.ndarray, lengths: tuple[int, int], buckets: int
) -> Ngrams:
    """N-gram vectors whose means are nearest to the words' own, by damped least squares."""
    hashes = [ft_ngram_hashes(word, *lengths, buckets) for word in words]
    sizes = np.array([len(own) for own in hashes])
    rows = np.repeat(np.arange(len(words)), sizes)
    columns = np.fromiter(itertools.chain.from_iterable(hashes), np.int64, len(rows))
    shares = (1 / sizes[rows]).astype(np.float32)
    mean_of = sparse.csr_array((shares, (rows, columns)), shape=(len(words), buckets))
    return Ngrams(_least_squares(mean_of, vectors), *lengths)


def _least_squares(matrix: sparse.csr_array, right: np.ndarray) -> np.ndarray:
    """The x for which ‖matrix x - right‖² + damping² ‖x‖² is least, ``(n_columns, dim)``.

    Conjugate gradients on all columns of `right` at once, which takes a tenth of the time of
    SciPy's solvers, as those take one column after another.
    """
    transposed = matrix.T.tocsr()
    x = np.zeros((matrix.shape[1], right.shape[1]), dtype=right.dtype)
    residual = transposed @ right
    direction, size = residual, (residual**2).sum(axis=0)
    for _ in range(_STEPS):
        turned = transposed @ (matrix @ direction) + _DAMPING**2 * direction
        along = (direction * turned).sum(axis=0)
        step = np.divide(size, along, out=np.zeros_like(size), where=along > 0)
        x = x + step * direction
        residual = residual - step * turned
        before, size = size, (residual**2).sum(axis=0)
        ratio = np.divide(size, before, out=np.zeros_like(size), where=before > 0)
        direction = residual + ratio * direction
    return x


# --- recipes --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class VectorRecipe:
    """Word vectors that are made, or read, when they are needed.

    ``ask`` names them by all that decides them, so that what is computed from them can be found
    without them; ``options`` are those of `pretrained` where there is a ``path`` among them, else
    of `factorised`.
    """

    language: str
    ask: Ask
    options: Mapping[str, Any] = field(repr=False)


def of_pretraining_text(language: str, **options: Any) -> VectorRecipe:
    """Vectors counted on the text of the miniature models; ``options`` as of `factorised`."""
    options = {**factorised.__kwdefaults__, **options}
    text = text_about(pretraining_text.PRETRAINING_SOURCES)
    about = {"language": language, "method": "counts", "options": options, "text": text}
    return VectorRecipe(language, COUNTED.ask(about), options)


def of_file(path: str | Path, language: str, *, dim: int | None = None) -> VectorRecipe:
    """Vectors of a file of fastText, as `pretrained`; FileNotFoundError where there is none."""
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"the vectors {path} are not there: download those of {language} from "
            "fasttext.cc/docs/en/crawl-vectors.html, or give another path"
        )
    options = {"limit": LIMIT, "dim": dim}
    ask = COUNTED.ask({"language": language, "file": file_hash(Path(path))} | options)
    return VectorRecipe(language, ask, options | {"path": str(path)})


#: By identity, what this process has made or read.
_LOADED: dict[str, WordVectors] = {}


def load_vectors(recipes: Sequence[VectorRecipe]) -> list[WordVectors]:
    """The vectors of some recipes; those counted on text are made side by side.

    WordVectorsError as `pretrained` and `factorised`, and where the text has no line of a language.
    """
    missing = {own.ask.identity: own for own in recipes if own.ask.identity not in _LOADED}
    for identity, recipe in missing.items():
        if "path" in recipe.options:
            _LOADED[identity] = pretrained(language=recipe.language, **recipe.options)
    counted = [own for identity, own in missing.items() if identity not in _LOADED]
    abouts, calls = [own.ask.about for own in counted], partial(_calls, counted)
    values = work.results(COUNTED, abouts, calls, what="word vectors", alone=True)
    for recipe, value in zip(counted, values, strict=True):
        ngrams = Ngrams(value["ngrams"], *value["lengths"].tolist())
        words = tuple(value["words"].tolist())
        made = WordVectors(recipe.language, words, value["vectors"], ngrams)
        _LOADED[recipe.ask.identity] = made
    return [_LOADED[recipe.ask.identity] for recipe in recipes]


def _calls(recipes: Sequence[VectorRecipe], missing: list[int]) -> list[work.Call]:
    lines = pretraining_text.by_language(parallel_text.shipped_text())
    for position in missing:
        if (code := recipes[position].language) not in lines:
            known = ", ".join(sorted(lines))
            raise WordVectorsError(f"the text has no line of {code!r}: choose {known}")
    calls = [
        ([position], (lines[own.language], own.language, own.options))
        for position, own in enumerate(recipes)
        if position in missing
    ]
    # The longest first, so that no process is left alone with it at the end.
    return sorted(calls, key=lambda call: -sum(map(len, call[1][0])))


def _made(lines: Sequence[str], language: str, options: Mapping[str, Any]) -> Value:
    made = factorised(lines, language, **options)
    lengths = np.array([made.ngrams.shortest, made.ngrams.longest])
    words = np.array(made.words, dtype=object)
    arrays = {"words": words, "vectors": made.vectors, "lengths": lengths}
    return arrays | {"ngrams": made.ngrams.vectors}


COUNTED = work.Kind("word-vectors", _made, version=1, side_by_side=True, shipped=False)
