"""Word vectors: one vector a word, for the sentence encoders that read words.

The encoders of X-Probe read frozen fastText vectors (Ravishankar, Øvrelid and Velldal 2019, section
5.1; 300 numbers, Table 2), which `pretrained` reads from their files. In the default profile the
compendium trains vectors of the same kind on its own text (`of_pretraining_text`): fastText's
skip-gram with character n-grams (Bojanowski et al. 2017), by gensim.

A vector of fastText is the mean of a vector of the word itself and the vectors of its character
n-grams. A word that was not in the text is the mean of its n-grams alone. N-grams share a hash
table of ``buckets`` rows, and where there are more n-grams than rows, some share a row.

**What a small text does to them.** With a few hundred thousand words, most words are seen too
seldom to have a say of their own, and their vectors are those of their n-grams: the nearest
neighbours of a word look like it rather than mean like it. `train` therefore takes fewer and longer
n-grams than fastText's own 3 to 6; its defaults are those by which most words of a held-out
dictionary found their translation after mapping (`xlx.word_mapping`), not those with the neatest
neighbours.
"""

import gzip
import hashlib
import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np
from gensim.models.callbacks import CallbackAny2Vec
from gensim.models.fasttext import FastText, ft_ngram_hashes, load_facebook_vectors
from sacremoses import MosesTokenizer
from tqdm import tqdm

from xlx import pretraining_text
from xlx.languages import base_code, lowered
from xlx.store import Store, code_version


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
    tokens = _tokenizer(base_code(language)).tokenize(text, escape=False)
    # A line separator or a no-break space that Moses left in place parts words all the same.
    tokens = [word for token in tokens for word in token.split()]
    return [lowered(token, language) for token in tokens] if lower else tokens


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
) -> tuple[list[list[str]], list[list[str]]]:
    """Lines of two languages that translate one another, in words.

    Parameters
    ----------
    language_a, language_b : str
        Codes as in the text.
    sources : sequence of str
        Aligned sources of the pretraining text; one that lacks either language is left out.
    text : mapping, optional
        What `xlx.pretraining_text.read` gives, where it has been read already. Its held-out lines
        are not in it.
    lower : bool
        As in `tokenize`.

    Returns
    -------
    lines_a, lines_b : list of list of str
        As many of each; line i of one translates line i of the other.

    Raises
    ------
    WordVectorsError
        No source has both languages; a source that is not aligned or not in the text.
    """
    if text is None:
        text, _ = pretraining_text.read(progress=False)
    lines_a, lines_b = [], []
    for source in sources:
        if source not in pretraining_text.ALIGNED or source not in text:
            raise WordVectorsError(
                f"{source!r} is no aligned source of the text: choose among "
                f"{', '.join(own for own in pretraining_text.ALIGNED if own in text)}"
            )
        ours, theirs = (text[source].get(code, {}) for code in (language_a, language_b))
        both = [name for name in ours if name in theirs]
        lines_a += [tokenize(ours[name], language_a, lower=lower) for name in both]
        lines_b += [tokenize(theirs[name], language_b, lower=lower) for name in both]
    if not lines_a:
        raise WordVectorsError(
            f"no line of {language_a} is translated into {language_b} in {', '.join(sources)}: "
            "choose other languages or another source"
        )
    return lines_a, lines_b


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


#: How gensim is told that there are none: the longest is shorter than the shortest.
_NO_NGRAMS = (1, 0)


@dataclass(frozen=True)
class _Options:
    """What `train` may be told, as it goes into a key."""

    dim: int = 100
    epochs: int = 5
    window: int = 5
    min_count: int = 2
    ngrams: tuple[int, int] = (3, 6)
    buckets: int = 50_000
    seed: int = 0


def train(
    lines: Iterable[str],
    language: str,
    *,
    dim: int = 100,
    epochs: int = 5,
    window: int = 5,
    min_count: int = 2,
    ngrams: tuple[int, int] | None = (3, 6),
    buckets: int = 50_000,
    seed: int = 0,
    progress: bool = True,
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
        Shortest and longest character n-gram; None: words alone, which is word2vec.
    buckets : int
        Rows of the n-grams' hash table.
    seed : int
    progress : bool
        Show a bar of epochs.

    Raises
    ------
    WordVectorsError
        No word comes `min_count` times; an option out of its range.
    """
    options = _Options(dim, epochs, window, min_count, ngrams or _NO_NGRAMS, buckets, seed)
    for name in ("dim", "epochs", "window", "min_count", "buckets"):
        if getattr(options, name) < 1:
            raise WordVectorsError(f"{name} is {getattr(options, name)}: it must be 1 or more")
    if ngrams is not None and not 1 <= ngrams[0] <= ngrams[1]:
        raise WordVectorsError(f"n-grams of {ngrams} characters: give the shortest, the longest")
    return _train([tokenize(line, language) for line in lines], language, options, progress)


class _Epochs(CallbackAny2Vec):
    """A bar of epochs."""

    def __init__(self, bar: tqdm) -> None:
        self.bar = bar

    def on_epoch_end(self, model: FastText) -> None:
        self.bar.update()


def _train(
    sentences: list[list[str]], language: str, options: _Options, progress: bool
) -> WordVectors:
    shortest, longest = options.ngrams
    model = FastText(
        vector_size=options.dim, window=options.window, min_count=options.min_count, sg=1,
        min_n=shortest, max_n=longest, bucket=options.buckets, seed=options.seed, workers=1,
    )  # fmt: skip
    model.build_vocab(sentences)
    if not len(model.wv):
        raise WordVectorsError(
            f"{language}: no word comes {options.min_count} times in {len(sentences)} lines; give "
            "more text or a smaller min_count"
        )
    with tqdm(total=options.epochs, desc=f"words {language}", disable=not progress) as bar:
        model.train(
            sentences, total_examples=model.corpus_count, epochs=options.epochs,
            callbacks=[_Epochs(bar)],
        )  # fmt: skip
    return _of_gensim(model.wv, language, len(model.wv))


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


def of_pretraining_text(
    languages: Sequence[str],
    *,
    store: Store | None = None,
    text: pretraining_text.Text | None = None,
    n_jobs: int = 2,
    dim: int = 100,
    epochs: int = 5,
    window: int = 5,
    min_count: int = 2,
    ngrams: tuple[int, int] | None = (3, 6),
    buckets: int = 50_000,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, WordVectors]:
    """Vectors trained on the text of the miniature models, from the store where they are there.

    Parameters
    ----------
    languages : sequence of str
        Codes among those of the text.
    store : Store, optional
        Default: that of the compendium.
    text : mapping, optional
        What `xlx.pretraining_text.read` gives, where it has been read already.
    n_jobs : int
        Languages trained side by side, each in a process; it changes nothing but the time.
    dim, epochs, window, min_count, ngrams, buckets, seed, progress
        As in `train`.

    Raises
    ------
    WordVectorsError
        The text has no line of a language; an option out of its range.
    """
    store = store or Store()
    if text is None:
        text, _ = pretraining_text.read(progress=False)
    lines = pretraining_text.by_language(text)
    options: dict[str, Any] = {
        "dim": dim, "epochs": epochs, "window": window, "min_count": min_count,
        "ngrams": ngrams, "buckets": buckets, "seed": seed,
    }  # fmt: skip
    keys = {}
    for code in languages:
        if code not in lines:
            raise WordVectorsError(
                f"the text has no line of {code!r}: choose among {', '.join(sorted(lines))}"
            )
        keys[code] = {
            "language": code,
            "text": hashlib.sha256("\n".join(lines[code]).encode()).hexdigest(),
            "options": options,
            "code": code_version(lowered, tokenize, train, _train, _of_gensim),
            "gensim": version("gensim"),
            "sacremoses": version("sacremoses"),
        }
    found = {code: _unpacked(code, store.load_arrays("words", keys[code])) for code in keys}
    missing = [code for code, vectors in found.items() if vectors is None]
    # The longest first, so that no process is left alone with it at the end.
    missing.sort(key=lambda code: -sum(map(len, lines[code])))
    bar = tqdm(total=len(missing), desc="word vectors", disable=not (progress and missing))
    with bar:
        for vectors in _side_by_side(lines, missing, options, n_jobs):
            store.save_arrays("words", keys[vectors.language], _packed(vectors))
            found[vectors.language] = vectors
            bar.update()
    return {code: found[code] for code in languages}


def _side_by_side(
    lines: Mapping[str, list[str]], languages: list[str], options: dict[str, Any], n_jobs: int
) -> Iterator[WordVectors]:
    """Vectors of each language, as they get ready."""
    if min(n_jobs, len(languages)) < 2:
        yield from (train(lines[code], code, **options, progress=False) for code in languages)
        return
    pool = joblib.Parallel(n_jobs=min(n_jobs, len(languages)), return_as="generator_unordered")
    yield from pool(
        joblib.delayed(train)(lines[code], code, **options, progress=False) for code in languages
    )


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


def pretrained(path: str | Path, language: str, *, limit: int = 200_000) -> WordVectors:
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

    Raises
    ------
    FileNotFoundError
        There is no such file.
    WordVectorsError
        Another kind of file; a header that is none; a line with more or fewer numbers than the
        header says, or with something that is no number, by its line; fewer words than the header
        says and `limit` asks for.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"the vectors {path} are not there: download those of {language} from "
            "fasttext.cc/docs/en/crawl-vectors.html, or give another path"
        )
    if limit < 1:
        raise WordVectorsError(f"limit is {limit}: read one word or more")
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "bin":
        try:
            return _of_gensim(load_facebook_vectors(str(path)), language, limit)
        except (struct.error, EOFError, OSError, NotImplementedError, UnicodeDecodeError) as error:
            raise WordVectorsError(f"{path} is no whole model of fastText: {error}") from None
    if kind != "vec":
        raise WordVectorsError(f"{path} is neither a .vec nor a .bin file of fastText")
    opened = gzip.open if path.suffix == ".gz" else open
    # A few words of the published files are no whole UTF-8.
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
        return _read_vec(file, str(path), language, limit)


def _read_vec(file: IO[str], where: str, language: str, limit: int) -> WordVectors:
    header = file.readline().split()
    if len(header) != 2 or not all(part.isdecimal() and int(part) for part in header):
        raise WordVectorsError(
            f"{where}, line 1: a .vec file begins with the number of words and of numbers a word; "
            f"found {' '.join(header)[:60]!r}"
        )
    n, dim = min(int(header[0]), limit), int(header[1])
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
