"""Word vectors: one vector a word, for the sentence encoders that read words.

The encoders of X-Probe read frozen fastText vectors (Ravishankar, Øvrelid and Velldal 2019, section
5.1; 300 numbers, Table 2): `pretrained` reads fastText's published files, as the paper did. The
default profile counts some on its own text (`xlx.xprobe.counted_vectors`).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors
from gensim.models.fasttext import ft_ngram_hashes, load_facebook_vectors

from xlx.xprobe.parallel_text import WordVectorsError

#: What gensim raises for a file that is torn, a classifier of fastText, or something else.
_NOT_WHOLE = (
    *(struct.error, OSError, EOFError, ValueError, KeyError),
    *(AssertionError, NotImplementedError),
)


@dataclass(frozen=True)
class Ngrams:
    """The part of fastText vectors that words share: one vector a hash bucket of n-grams.

    ``vectors`` is float32 ``(n_buckets, dim)``; n-grams have ``shortest`` to ``longest`` characters
    of the word between < and >, hashed as in fastText.
    """

    vectors: np.ndarray
    shortest: int
    longest: int

    def of(self, word: str) -> np.ndarray:
        """The buckets of the n-grams of a word, int ``(n_ngrams,)``, which may be none."""
        buckets = ft_ngram_hashes(word, self.shortest, self.longest, len(self.vectors))
        return np.array(buckets, dtype=np.int64)


@dataclass(frozen=True)
class WordVectors:
    """The vectors of a language's words.

    ``words`` has each word once, by falling frequency in the text they were trained on; ``vectors``
    is float32 ``(n_words, dim)``; ``ngrams`` is for words that are not among them, or None.

    Raises WordVectorsError where these do not fit together, a word comes twice, or a vector holds
    NaN or infinity.
    """

    language: str
    words: tuple[str, ...]
    vectors: np.ndarray
    ngrams: Ngrams | None = None

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words) or not self.words:
            raise WordVectorsError(
                f"{self.language}: there are {len(self.words)} words and vectors of shape "
                f"{self.vectors.shape}; one or more words with a row each are needed"
            )
        if len(self.index) < len(self.words):
            again = next(word for i, word in enumerate(self.words) if self.index[word] != i)
            raise WordVectorsError(f"{self.language}: the word {again!r} comes twice")
        finite = np.isfinite(self.vectors).all(axis=1)
        if not finite.all():
            raise WordVectorsError(
                f"{self.language}: the vector of {self.words[int(finite.argmin())]!r} holds NaN or "
                "infinity"
            )

    def __repr__(self) -> str:
        extra = "" if self.ngrams is None else f", {len(self.ngrams.vectors)} buckets of n-grams"
        return f"WordVectors({self.language}: {len(self.words)} words, {self.dim} numbers{extra})"

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
        vectors = np.zeros((len(words), self.dim), dtype=np.float32)
        for row, word in enumerate(words):
            if word in self.index:
                vectors[row] = self.vectors[self.index[word]]
            elif self.ngrams is not None and len(buckets := self.ngrams.of(word)):
                vectors[row] = self.ngrams.vectors[buckets].mean(axis=0)
        return vectors


# --- files of fastText ----------------------------------------------------------------------------


def pretrained(
    path: str | Path, language: str, *, limit: int = 200_000, dim: int | None = None
) -> WordVectors:
    """Vectors from a file of fastText, as it is published or gzipped (``cc.de.300.vec.gz``).

    ``.vec`` is text: a line ``n dim``, then a word and its numbers a line, by falling frequency;
    such vectors have no n-grams. ``.bin`` is fastText's own model and has them: gensim reads the
    whole of it, for 2 million words some 7 GB of memory, of which the n-grams stay (2.4 GB).

    Parameters
    ----------
    path : path
    language : str
    limit : int
        Words that are kept, the first of the file; the paper does not say how many it took, and
        VecMap and MUSE take 200,000.
    dim : int, optional
        Numbers that a word is to have, as what reads the vectors takes so many.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    WordVectorsError
        Another kind of file, or one that is torn or malformed, by what gensim says of it; words of
        other than `dim` numbers.
    """
    path = Path(path)
    check_there(path, language)
    if limit < 1:
        raise WordVectorsError(f"limit is {limit}: read one word or more")
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
    return _of_gensim(vectors, language, limit)


def check_there(path: Path, language: str) -> None:
    """FileNotFoundError, with where vectors are to be had, for a path that is no file."""
    if not path.is_file():
        raise FileNotFoundError(
            f"the vectors {path} are not there: download those of {language} from "
            "fasttext.cc/docs/en/crawl-vectors.html, or give another path"
        )


def _of_gensim(vectors: KeyedVectors, language: str, limit: int) -> WordVectors:
    """gensim's vectors without gensim, the commonest words alone."""
    ngrams = None
    if getattr(vectors, "max_n", 0) >= max(getattr(vectors, "min_n", 1), 1):
        table = np.asarray(vectors.vectors_ngrams, dtype=np.float32)
        ngrams = Ngrams(table, vectors.min_n, vectors.max_n) if len(table) else None
    # Two words that were no whole UTF-8 may be one here: gensim leaves a place without a word.
    words = tuple(word for word in vectors.index_to_key[:limit] if word is not None)
    return WordVectors(language, words, np.array(vectors.vectors[: len(words)], np.float32), ngrams)
