"""Word vectors: one vector a word, for the sentence encoders that read words.

The encoders of X-Probe read frozen fastText vectors (Ravishankar, Øvrelid and Velldal 2019, section
5.1; 300 numbers, Table 2). Three ways to have some:

- `pretrained` reads fastText's published files, as the paper did.
- `train` is fastText itself on text of one's own, by gensim: a skip-gram model in which the vector
  of a word is the mean of one of its own and those of its character n-grams (Bojanowski et al.
  2017). N-grams share a hash table of ``buckets`` rows; a word that was not in the text is the mean
  of its n-grams.
- `factorised` counts instead: positive pointwise mutual information of words and the words around
  them, reduced by a singular value decomposition. Then n-gram vectors are fitted whose mean is as
  near as possible to the vector of each word (bag of subwords, Zhao et al. 2018), for the words
  that were not in the text.

**Why the default profile counts.** Its text has 0.2 to 0.8 million words a language, where fastText
learns from billions. At that size a few passes hardly move the skip-gram's vectors from where they
began, and with n-grams the nearest neighbours of a word look like it (*king*: *hiking*, *biking*)
rather than mean like it. Counts make more of the same words (Levy, Goldberg and Dagan 2015 say
where the two models agree): with the same window of 5, mapped onto English, 1.2 (German) to 3
(Hindi) times as many held-out words find their translation as after 15 passes of a skip-gram of
words alone, in a fifth of the time. `of_pretraining_text` takes either.

**What the numbers owe to the text.** Parts of it are translations of one another, so words that
translate one another stand in the same lines, and the wider the window, the more a vector says of
the lines. Where English was trained on one half of the aligned lines and the other language on the
other half, half as many held-out words or fewer found their translation, and a window of 10 words
found no more than one of 5. The vectors are as well aligned as the precision says; vectors from
texts that are not parallel would not be.
"""

import gzip
import hashlib
import inspect
import itertools
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from gensim.models.fasttext import FastText, ft_ngram_hashes, load_facebook_vectors
from sacremoses import MosesTokenizer
from scipy import sparse
from scipy.sparse.linalg import svds

from xlx import executors, paths, pretraining_text, progress, provenance, work
from xlx.languages import base_code, lowered
from xlx.ledger import Ask
from xlx.settings import current
from xlx.store import Store

#: Raised by hand when vectors or parallel lines of the same recipe come out otherwise.
VERSION = 1


class WordVectorsError(ValueError):
    """Vectors that cannot be read or trained; says in which file and line, why, and what to do."""


# --- words of a text ------------------------------------------------------------------------------


def tokenize(text: str, language: str, *, lower: bool = True) -> list[str]:
    """The words and punctuation marks of a text, by the rules of the Moses tokeniser (section 6).

    A language for which Moses has no list of abbreviations is read by the rules of English, as
    XNLI's own text was. Nothing is escaped for XML. A full stop is parted from its word unless
    that is an abbreviation or the next word begins in small letters: so capitals have to be there,
    and are taken away afterwards where ``lower`` says so. Languages written without spaces (zh, ja,
    th) come out in runs as long as the text has them; segment them beforehand.

    Raises ValueError where `language` is no language tag.
    """
    return list(_tokenized(text, language, lower))


# Moses takes a tenth of a millisecond a line, and English is read again for each of its partners.
@lru_cache(maxsize=100_000)
def _tokenized(text: str, language: str, lower: bool) -> tuple[str, ...]:
    tokens = _tokenizer(base_code(language)).tokenize(text, escape=False)
    # A line separator or a no-break space that Moses left in place parts words all the same.
    tokens = [word for token in tokens for word in token.split()]
    return tuple(lowered(token, language) for token in tokens) if lower else tuple(tokens)


@lru_cache(maxsize=64)
def _tokenizer(code: str) -> MosesTokenizer:
    return MosesTokenizer(lang=code)


def parallel_lines(
    language_a: str,
    language_b: str,
    sources: Sequence[str] = pretraining_text.ALIGNED,
    *,
    text: pretraining_text.Text | None = None,
    lower: bool = True,
    limit: int | None = None,
) -> tuple[list[list[str]], list[list[str]]]:
    """Lines of two languages that translate one another, in words.

    Parameters
    ----------
    language_a, language_b : str
        Codes as in the text.
    sources : sequence of str
        Aligned sources of the pretraining text, or folders of two files of as many lines that are
        named alike but for the language at the end, as those of Europarl and MultiUN:
        ``europarl-v7.de-en.de``, ``europarl-v7.de-en.en``. Lines that are empty in either are left
        out, and so is a source or folder that lacks either language.
    text : mapping, optional
        What `xlx.pretraining_text.read` gives, where it has been read already. Its held-out lines
        are not in it.
    lower : bool
        As in `tokenize`.
    limit : int, optional
        Lines of two files that are read at most, the first ones; 2,000,000 of MultiUN in the paper.

    Returns
    -------
    lines_a, lines_b : list of list of str
        As many of each; line i of one translates line i of the other.

    Raises
    ------
    WordVectorsError
        No source has both languages; a source that is neither an aligned one of the text nor a
        folder; files with different numbers of lines, or that are not UTF-8.
    """
    lines_a, lines_b = [], []
    for source in sources:
        if Path(source).is_dir():
            pairs = _of_folder(Path(source), language_a, language_b, limit)
            lines_a += [tokenize(ours, language_a, lower=lower) for ours, _ in pairs]
            lines_b += [tokenize(theirs, language_b, lower=lower) for _, theirs in pairs]
            continue
        aligned = [own for own in pretraining_text.ALIGNED if text is None or own in text]
        if source not in aligned:
            raise WordVectorsError(
                f"{source!r} is no aligned source of the text and no folder: choose among "
                f"{', '.join(aligned)}, or name a folder that is there"
            )
        text = _shipped_text() if text is None else text
        ours, theirs = (text[source].get(code, {}) for code in (language_a, language_b))
        both = [name for name in ours if name in theirs]
        lines_a += [tokenize(ours[name], language_a, lower=lower) for name in both]
        lines_b += [tokenize(theirs[name], language_b, lower=lower) for name in both]
    if not lines_a:
        raise WordVectorsError(
            f"no line of {language_a} is translated into {language_b} in {', '.join(sources)}: "
            "choose other languages or another source; a folder has two files that are named alike "
            f"and end in .{language_a} and .{language_b}"
        )
    return lines_a, lines_b


def _of_folder(
    folder: Path, language_a: str, language_b: str, limit: int | None
) -> list[tuple[str, str]]:
    """Pairs of lines of the files of two languages in a folder."""
    files = [
        (file, file.with_suffix(f".{language_b}"))
        for file in sorted(folder.glob(f"*.{language_a}"))
        if file.with_suffix(f".{language_b}").is_file()
    ]
    pairs: list[tuple[str, str]] = []
    for names in files:
        lines = itertools.zip_longest(*map(_text_lines, names))
        for number, pair in enumerate(itertools.islice(lines, limit), start=1):
            if None in pair:
                raise WordVectorsError(
                    f"{names[0].name} and {names[1].name} in {folder} have not as many lines: "
                    f"one ends before line {number}"
                )
            if all(pair):
                pairs.append(pair)
    return pairs


def _text_lines(file: Path) -> Iterator[str]:
    """The stripped lines of a file; a carriage return may stand within one."""
    with file.open("rb") as read:
        for number, line in enumerate(read, start=1):
            try:
                yield line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise WordVectorsError(f"{file}, line {number}: not UTF-8 ({error})") from None


@lru_cache(maxsize=1)
def _shipped_text() -> pretraining_text.Text:
    """The pretraining text, which takes seconds to unpack."""
    return pretraining_text.read(progress=False)[0]


@lru_cache(maxsize=64)
def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text_about(sources: Sequence[str]) -> dict[str, Any]:
    """What decides the shipped text of some sources, found without unpacking it."""
    folder = paths.DATA / "pretraining"
    return {
        "archives": {source: file_hash(folder / f"{source}.tar.xz") for source in sources},
        "held_out_lines": pretraining_text.HELD_OUT_LINES,
    }


@dataclass(frozen=True)
class Parallel:
    """Translations that are read when they are needed, named by where they are from.

    Attributes
    ----------
    language_a, language_b, sources, limit
        As in `parallel_lines`.
    longest : int, optional
        Words of a line at most, in either language.
    most : int, optional
        Pairs of lines that are kept, the first of those.
    """

    language_a: str
    language_b: str
    sources: tuple[str, ...] = pretraining_text.ALIGNED
    limit: int | None = None
    longest: int | None = None
    most: int | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the lines: hashes of the files that they are in, and the options."""
        sources = [
            {file.name: file_hash(file) for file in self._files(Path(source))}
            if Path(source).is_dir()
            else _text_about([source]) | {"source": source}
            for source in self.sources
            if Path(source).is_dir() or source in pretraining_text.ALIGNED
        ]
        return {
            "languages": [self.language_a, self.language_b], "sources": sources,
            "limit": self.limit, "longest": self.longest, "most": self.most, "version": VERSION,
        }  # fmt: skip

    def _files(self, folder: Path) -> list[Path]:
        languages = self.language_a, self.language_b
        return sorted(file for code in languages for file in folder.glob(f"*.{code}"))

    @cached_property
    def lines(self) -> tuple[list[list[str]], list[list[str]]]:
        """As `parallel_lines`; WordVectorsError as there, and where all lines are too long."""
        pairs = zip(
            *parallel_lines(self.language_a, self.language_b, self.sources, limit=self.limit),
            strict=True,
        )
        longest = self.longest
        short = [pair for pair in pairs if longest is None or max(map(len, pair)) <= longest]
        if not short:
            raise WordVectorsError(
                f"{', '.join(self.sources)}: no line of {self.language_a} and {self.language_b} "
                f"has {longest} words or fewer; raise `longest`"
            )
        lines_a, lines_b = zip(*short[: self.most], strict=True)
        return list(lines_a), list(lines_b)

    def __len__(self) -> int:
        """The number of pairs."""
        return int(work.result(TRANSLATIONS, self.about, self)["pairs"].iloc[0])


def _counted(parallel: Parallel) -> pd.DataFrame:
    return pd.DataFrame({"pairs": [len(parallel.lines[0])]})


#: How many translations a corpus gives, so that they need not be read to say so.
TRANSLATIONS = work.Kind("xprobe-translations", _counted, version=1, tolerance=0)


# --- vectors of words -----------------------------------------------------------------------------


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
        found = ft_ngram_hashes(word, self.shortest, self.longest, len(self.vectors))
        return np.array(found, dtype=np.int64)


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
        if self.ngrams is not None and self.ngrams.vectors.shape[1:] != (self.dim,):
            raise WordVectorsError(
                f"{self.language}: the vectors of words have {self.dim} numbers and those of "
                f"n-grams have shape {self.ngrams.vectors.shape}"
            )
        if len(self.index) < len(self.words):
            again = next(word for at, word in enumerate(self.words) if self.index[word] != at)
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
        return {word: at for at, word in enumerate(self.words)}

    def knows(self, words: Sequence[str]) -> np.ndarray:
        """Whether each word has a vector of its own: bool ``(n,)``."""
        return np.array([word in self.index for word in words], dtype=bool)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, float32 ``(n, dim)``.

        A word without a vector of its own is the mean of those of its character n-grams; where the
        vectors have none, or the word is too short to have any, it is all zeros.
        """
        found = np.zeros((len(words), self.dim), dtype=np.float32)
        for row, word in enumerate(words):
            at = self.index.get(word)
            if at is not None:
                found[row] = self.vectors[at]
            elif self.ngrams is not None and len(buckets := self.ngrams.of(word)):
                found[row] = self.ngrams.vectors[buckets].mean(axis=0)
        return found


# --- training -------------------------------------------------------------------------------------


#: What gensim raises for a file that is torn, a classifier of fastText, or something else.
_NO_MODEL = (
    *(struct.error, OSError, EOFError, ValueError, KeyError),
    *(AssertionError, NotImplementedError),
)

#: Of the n-grams' least squares: the weight of their length, and conjugate-gradient steps at most.
_DAMPING, _STEPS = 0.3, 20

#: How gensim is told that there are none: the longest is shorter than the shortest.
_NO_NGRAMS = (1, 0)


def train(
    lines: Iterable[str],
    language: str,
    *,
    dim: int = 100,
    epochs: int = 15,
    window: int = 5,
    min_count: int = 2,
    ngrams: tuple[int, int] | None = (5, 6),
    buckets: int = 50_000,
    seed: int = 0,
) -> WordVectors:
    """Train fastText's skip-gram on lines of one language.

    One thread, so that the same seed gives the same vectors on the same machine. Words are those
    of `tokenize` in small letters; negative sampling, the learning rate and the subsampling of
    frequent words are gensim's defaults.

    Parameters
    ----------
    lines : iterable of str
        Text; a line is a context that no window crosses.
    language : str
    dim : int
        Numbers of a vector, 1 or more; the paper's have 300.
    epochs, window : int
        Passes over the text; words to each side that may count as context.
    min_count : int
        A word seen less often has no vector of its own.
    ngrams : (int, int) or None
        Shortest and longest character n-gram; None: words alone, which is word2vec. fastText's own
        3 to 6 make words that look alike crowd together where the text is small.
    buckets : int
        Rows of the n-grams' hash table.
    seed : int

    Raises
    ------
    WordVectorsError
        No word comes `min_count` times; an option out of its range.
    """
    _check_options(
        ngrams, dim=dim, epochs=epochs, window=window, min_count=min_count, buckets=buckets
    )
    sentences = [tokenize(line, language) for line in lines]
    shortest, longest = ngrams or _NO_NGRAMS
    model = FastText(
        vector_size=dim, window=window, min_count=min_count, sg=1, min_n=shortest, max_n=longest,
        bucket=buckets, seed=seed, workers=1,
    )  # fmt: skip
    model.build_vocab(sentences)
    if not len(model.wv):
        raise _too_little(language, len(sentences), min_count)
    model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    return _of_gensim(model.wv, language, len(model.wv))


def _check_options(ngrams: tuple[int, int] | None, **numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise WordVectorsError(f"{name} is {number}: it must be 1 or more")
    if ngrams is not None and not 1 <= ngrams[0] <= ngrams[1]:
        raise WordVectorsError(f"n-grams of {ngrams} characters: give the shortest, the longest")


def _too_little(language: str, n_lines: int, min_count: int) -> WordVectorsError:
    return WordVectorsError(
        f"{language}: no word comes {min_count} times in {n_lines} lines; give more text or a "
        "smaller min_count"
    )


def _of_gensim(vectors: Any, language: str, limit: int) -> WordVectors:
    """gensim's ``FastTextKeyedVectors`` without gensim, the commonest words alone."""
    ngrams = None
    if vectors.max_n >= max(vectors.min_n, 1) and len(vectors.vectors_ngrams):
        table = np.asarray(vectors.vectors_ngrams, dtype=np.float32)
        ngrams = Ngrams(table, vectors.min_n, vectors.max_n)
    return WordVectors(
        language,
        tuple(vectors.index_to_key[:limit]),
        np.array(vectors.vectors[:limit], dtype=np.float32),
        ngrams,
    )


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
    _check_options(ngrams, dim=dim, window=window, min_count=min_count, buckets=buckets)
    sentences = [tokenize(line, language) for line in lines]
    counts = Counter(itertools.chain.from_iterable(sentences))
    words = [word for word, count in counts.most_common() if count >= min_count]
    if not words:
        raise _too_little(language, len(sentences), min_count)
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


# --- recipes --------------------------------------------------------------------------------------

#: Ways of `of_pretraining_text` to have vectors.
METHODS = {"counts": factorised, "fasttext": train}


@dataclass(frozen=True, eq=False)
class Recipe:
    """Word vectors that are made, or read, when they are needed.

    ``ask`` names them by all that decides them, so that what is computed from them can be found
    without them; ``method`` is one of `METHODS`, or "file"; ``options`` are its arguments.
    """

    language: str
    ask: Ask
    method: str = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)

    def load(self) -> WordVectors:
        """The vectors. Raises WordVectorsError as what makes or reads them."""
        return load([self])[0]


def of_pretraining_text(
    languages: Sequence[str], *, method: str = "counts", **options: Any
) -> dict[str, Recipe]:
    """Vectors trained on the text of the miniature models, by language.

    Parameters
    ----------
    languages : sequence of str
        Codes among those of the text.
    method : str
        "counts" (`factorised`) or "fasttext" (`train`); the module says which does better here.
    **options
        Those of the method, as `dim` or `min_count`.

    Raises
    ------
    WordVectorsError
        No such method.
    TypeError
        An option that the method does not have.
    """
    if method not in METHODS:
        raise WordVectorsError(f"there is no method {method!r}: choose among {', '.join(METHODS)}")
    bound = inspect.signature(METHODS[method]).bind((), "", **options)
    bound.apply_defaults()
    options = dict(list(bound.arguments.items())[2:])
    text = _text_about(pretraining_text.SOURCES)
    return {
        code: Recipe(
            code,
            Ask(
                "word-vectors",
                {"language": code, "method": method, "options": options, "text": text},
                VERSION,
            ),
            method,
            options,
        )
        for code in languages
    }


def of_file(
    path: str | Path, language: str, *, limit: int = 200_000, dim: int | None = None
) -> Recipe:
    """Vectors of a file of fastText; arguments and errors as `pretrained`."""
    _check_there(Path(path), language)
    about = {"language": language, "file": file_hash(Path(path)), "limit": limit, "dim": dim}
    options = {"path": str(path), "limit": limit, "dim": dim}
    return Recipe(language, Ask("word-vectors", about, VERSION), "file", options)


#: By identity, what this process has made or read.
_LOADED: dict[str, WordVectors] = {}


def load(recipes: Sequence[Recipe]) -> list[WordVectors]:
    """The vectors of some recipes, from the cache of this machine where they are there.

    Raises
    ------
    WordVectorsError
        The text has no line of a language; an option out of its range; as `pretrained`.
    """
    missing = [own for own in recipes if own.ask.identity not in _LOADED]
    missing = list({own.ask.identity: own for own in missing}.values())
    store, trained = Store(current().cache), []
    for recipe in missing:
        if recipe.method == "file":
            own: WordVectors | None = pretrained(language=recipe.language, **recipe.options)
        else:
            own = _unpacked(recipe.language, store.load_arrays("words", _key(recipe)))
        if own is None:
            trained.append(recipe)
        else:
            _LOADED[recipe.ask.identity] = own
    for recipe, own in _trained(trained):
        store.save_arrays("words", _key(recipe), _packed(own))
        _LOADED[recipe.ask.identity] = own
    return [_LOADED[recipe.ask.identity] for recipe in recipes]


def _trained(recipes: Sequence[Recipe]) -> Iterator[tuple[Recipe, WordVectors]]:
    if not recipes:
        return
    lines = pretraining_text.by_language(_shipped_text())
    for recipe in recipes:
        if recipe.language not in lines:
            raise WordVectorsError(
                f"the text has no line of {recipe.language!r}: choose among "
                f"{', '.join(sorted(lines))}"
            )
    # The longest first, so that no process is left alone with it at the end.
    recipes = sorted(recipes, key=lambda own: -sum(map(len, lines[own.language])))
    calls = [
        (number, (own.method, lines[own.language], own.language, own.options))
        for number, own in enumerate(recipes)
    ]
    with progress.bar(what="word vectors", total=len(calls)) as bar:
        for number, _, own, _ in executors.run(_made, calls, alone=True, side_by_side=True):
            yield recipes[number], own
            bar.update()


def _made(
    method: str, lines: Sequence[str], language: str, options: Mapping[str, Any]
) -> WordVectors:
    return METHODS[method](lines, language, **options)


def _key(recipe: Recipe) -> dict[str, Any]:
    """Of the machine's cache: besides the recipe, what makes vectors out of it here."""
    return {
        "ask": recipe.ask.text,
        "code": provenance.code_hash(METHODS[recipe.method]),
        "libraries": {name: version(name) for name in ("gensim", "sacremoses", "scipy")},
    }


def _packed(vectors: WordVectors) -> dict[str, np.ndarray]:
    """As arrays: no word has a line feed in it, so that parts them."""
    arrays = {
        "words": np.frombuffer("\n".join(vectors.words).encode("utf-8"), dtype=np.uint8),
        "vectors": vectors.vectors,
    }
    if vectors.ngrams is not None:
        arrays["ngrams"] = vectors.ngrams.vectors
        arrays["lengths"] = np.array([vectors.ngrams.shortest, vectors.ngrams.longest])
    return arrays


def _unpacked(language: str, arrays: dict[str, np.ndarray] | None) -> WordVectors | None:
    if arrays is None:
        return None
    ngrams = None
    if "ngrams" in arrays:
        ngrams = Ngrams(arrays["ngrams"], *arrays["lengths"].tolist())
    words = tuple(arrays["words"].tobytes().decode("utf-8").split("\n"))
    return WordVectors(language, words, arrays["vectors"], ngrams)


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
        Another kind of file; a header that is none; a line with more or fewer numbers than the
        header says, or with something that is no number, by its line; fewer words than the header
        says and `limit` asks for; words of other than `dim` numbers.
    """
    path = Path(path)
    _check_there(path, language)
    if limit < 1:
        raise WordVectorsError(f"limit is {limit}: read one word or more")
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "bin":
        try:
            found = _of_gensim(load_facebook_vectors(str(path)), language, limit)
        except _NO_MODEL as error:
            raise WordVectorsError(f"{path} is no whole model of fastText: {error}") from None
        _check_width(found.dim, dim, str(path))
        return found
    if kind != "vec":
        raise WordVectorsError(f"{path} is neither a .vec nor a .bin file of fastText")
    opened = gzip.open if path.suffix == ".gz" else open
    # A few words of the published files are no whole UTF-8.
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
        return _read_vec(file, str(path), language, limit, dim)


def _check_there(path: Path, language: str) -> None:
    if not path.is_file():
        raise FileNotFoundError(
            f"the vectors {path} are not there: download those of {language} from "
            "fasttext.cc/docs/en/crawl-vectors.html, or give another path"
        )


def _check_width(found: int, wanted: int | None, where: str) -> None:
    if wanted not in (None, found):
        raise WordVectorsError(
            f"{where}: its vectors have {found} numbers, and {wanted} are needed: read other "
            f"vectors, or set the width of what reads them (`words` in the sizes of encoders) to "
            f"{found}"
        )


def _read_vec(
    file: IO[str], where: str, language: str, limit: int, wanted: int | None
) -> WordVectors:
    header = file.readline().split()
    if len(header) != 2 or not all(part.isdecimal() and int(part) for part in header):
        raise WordVectorsError(
            f"{where}, line 1: a .vec file begins with the number of words and of numbers a word; "
            f"found {' '.join(header)[:60]!r}"
        )
    n, dim = min(int(header[0]), limit), int(header[1])
    _check_width(dim, wanted, where)
    vectors = np.empty((n, dim), dtype=np.float32)
    words: dict[str, int] = {}
    number = 1
    for number, line in enumerate(itertools.islice(file, n), start=2):
        # Only a space parts: a word may hold a no-break space.
        word, *numbers = line.rstrip("\n ").split(" ")
        if len(numbers) != dim or not word:
            raise WordVectorsError(
                f"{where}, line {number}: {len(numbers)} numbers after {word[:60]!r}, and the "
                f"header says {dim}"
            )
        try:
            row = np.array(numbers, dtype=np.float32)
        except ValueError as error:
            raise WordVectorsError(f"{where}, line {number}: {error}") from None
        # Two words that were no whole UTF-8 may be one here: the more frequent stays.
        if word not in words:
            vectors[len(words)] = row
            words[word] = len(words)
    if number - 1 < n:
        raise WordVectorsError(
            f"{where} ends after {number - 1} words and its header says {header[0]}: it is torn"
        )
    return WordVectors(language, tuple(words), vectors[: len(words)])
