"""Word vectors of two languages in one space: VecMap's orthogonal map.

Ravishankar, Øvrelid and Velldal (2019, section 5.2) use the supervised VecMap of Artetxe et al.
(2016): vectors of unit length, centred, and of unit length again (`normalised_words`), and the
orthogonal matrix that brings pairs of translations nearest together (`orthogonal_map`). The target
stays as it is, so several languages can be mapped onto one.
"""

import hashlib
import itertools
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from gensim.models import KeyedVectors
from gensim.models.fasttext import ft_ngram_hashes, load_facebook_vectors
from sacremoses import MosesTokenizer
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from scipy.sparse.linalg import svds

from xlx.results import paths, work
from xlx.results.ledger import Ask, Value
from xlx.text import pretraining_text
from xlx.text.languages import base_code, lowered

#: Numbers of a block of similarities: 64 MB of float32.
SIMILARITIES_AT_ONCE = 16_000_000


def normalised_words(vectors: np.ndarray, *, like: np.ndarray | None = None) -> np.ndarray:
    """Vectors ``(n, dim)`` at unit length, centred, at unit length again, as VecMap has them.

    ``like`` ``(m, dim)``: the vocabulary, before any step, whose mean is taken instead of that of
    the vectors; for words that are not in it. Returns float32 ``(n, dim)``. A row of zeros is a
    word of which nothing is known, so it stays zero and counts in no mean.
    """
    unit = unit_rows(np.array(vectors, dtype=np.float64))
    vocabulary = unit if like is None else unit_rows(np.array(like, dtype=np.float64))
    known = vocabulary[vocabulary.any(axis=1)]
    if len(known):
        unit[unit.any(axis=1)] -= known.mean(axis=0)
    return unit_rows(unit).astype(np.float32)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; of zeros where they were."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def orthogonal_map(source: np.ndarray, target: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The orthogonal W ``(d, d)`` that makes Σ ‖x W - z‖² of the pairs least.

    ``source`` ``(n_source, d)`` and ``target`` ``(n_target, d)`` are `normalised_words`; ``pairs``
    ``(n, 2)`` have a row x of the source, a row z of the target. ValueError for fewer pairs than
    numbers in a vector, which leave the map open.
    """
    if len(pairs) < source.shape[1]:
        raise ValueError(
            f"there are {len(pairs)} pairs for vectors of {source.shape[1]} numbers: fewer pairs "
            "than numbers leave the map open; give a larger dictionary or narrower vectors"
        )
    x, z = source[pairs[:, 0]].astype(np.float64), target[pairs[:, 1]].astype(np.float64)
    return orthogonal_procrustes(x, z)[0]


def precision_at_1(
    mapped_source: np.ndarray, target: np.ndarray, pairs: np.ndarray, *, csls: int = 0
) -> np.ndarray:
    """Whether each pair's source word finds a translation nearest, among all words of the target.

    ``mapped_source`` ``(n_source, k)`` and ``target`` ``(n_target, k)`` are in the common space and
    compared by cosine; with ``csls``, by CSLS (Conneau et al. 2017), which takes from a target word
    the mean cosine of so many nearest source words, as some are near to everything. Right is any
    target that the ``pairs`` ``(n, 2)`` give the source word; a word with several has as many rows
    in the result, bool ``(n,)``, all alike (MUSE counts such a word once).
    """
    source, target = (unit_rows(x.astype(np.float32)) for x in (mapped_source, target))
    crowding = _crowding(source, target, csls) / 2 if csls else np.zeros(len(target), np.float32)
    asked, row = np.unique(pairs[:, 0], return_inverse=True)
    nearest = np.concatenate(
        [
            (source[asked[rows]] @ target.T - crowding).argmax(axis=1)
            for rows in _blocks(len(asked), len(target))
        ]
    )
    given = set(map(tuple, pairs.tolist()))
    hit = np.array([pair in given for pair in zip(asked.tolist(), nearest.tolist(), strict=True)])
    return hit[row]


def _crowding(source: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
    """Mean cosine of each target word with its k nearest source words, ``(n_target,)``."""
    means = [
        np.partition(target[rows] @ source.T, -k, axis=1)[:, -k:].mean(axis=1)
        for rows in _blocks(len(target), len(source))
    ]
    return np.concatenate(means)


def _blocks(n: int, width: int) -> list[slice]:
    """Rows in as few parts as keep a block of similarities small."""
    step = max(1, SIMILARITIES_AT_ONCE // width)
    return [slice(start, start + step) for start in range(0, n, step)]


#: Raised by hand when parallel lines of the same files come out otherwise.
LINES_VERSION = 1


class WordVectorsError(ValueError):
    """Words, lines or pairs of words that cannot be read or made; says where, why, what to do."""


def tokenize(text: str, language: str) -> list[str]:
    """The words and punctuation marks of a text in small letters, by Moses' rules (section 6).

    A language for which Moses has no list of abbreviations is read by the rules of English, as
    XNLI's own text was; nothing is escaped for XML. Capitals tell where sentences end, so they are
    taken away afterwards. Languages written without spaces (zh, ja, th) come out in runs as long as
    the text has them; segment them beforehand. ValueError where `language` is no language tag.
    """
    return list(_tokenized(text, language))


# Moses takes a tenth of a millisecond a line, and English is read again for each of its partners.
@lru_cache(maxsize=100_000)
def _tokenized(text: str, language: str) -> tuple[str, ...]:
    tokens = _tokenizer(base_code(language)).tokenize(text, escape=False)
    # A line separator or a no-break space that Moses left in place parts words all the same.
    return tuple(lowered(word, language) for token in tokens for word in token.split())


@lru_cache(maxsize=64)
def _tokenizer(code: str) -> MosesTokenizer:
    return MosesTokenizer(lang=code)


@lru_cache(maxsize=1)
def shipped_text() -> pretraining_text.LinesById:
    """The pretraining text, which takes seconds to unpack."""
    return pretraining_text.read_text()[0]


@lru_cache(maxsize=64)
def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_about(sources: Sequence[str]) -> dict[str, Any]:
    """What decides the shipped text of some sources, found without unpacking it."""
    folder = paths.DATA / "pretraining"
    return {
        "archives": {source: file_hash(folder / f"{source}.tar.xz") for source in sources},
        "held_out_lines": pretraining_text.HELD_OUT_LINES,
    }


@dataclass(frozen=True)
class ParallelText:
    """Translations that are read when they are needed, named by where they are from.

    ``sources`` are aligned ones of the pretraining text, or folders of two files of as many lines
    that are named alike but for the language at the end, as those of Europarl and MultiUN:
    ``europarl-v7.de-en.de``, ``europarl-v7.de-en.en``. Lines that are empty in either are left out,
    and so is a source or folder that lacks either language. Of two files the first ``limit`` lines
    are read (2,000,000 of MultiUN in the paper); lines of more than ``longest`` words in either
    language are passed over, and the first ``most`` pairs of the others kept.
    """

    language_a: str
    language_b: str
    sources: tuple[str, ...] = pretraining_text.ALIGNED_SOURCES
    limit: int | None = None
    longest: int | None = None
    most: int | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the lines: hashes of the files that they are in, and the options."""
        languages = [self.language_a, self.language_b]
        sources = [
            {
                file.name: file_hash(file)
                for file in sorted(x for code in languages for x in Path(source).glob(f"*.{code}"))
            }
            if Path(source).is_dir()
            else text_about([source]) | {"source": source}
            for source in self.sources
            if Path(source).is_dir() or source in pretraining_text.ALIGNED_SOURCES
        ]
        return {
            "languages": languages, "sources": sources, "limit": self.limit,
            "longest": self.longest, "most": self.most, "version": LINES_VERSION,
        }  # fmt: skip

    @cached_property
    def lines(self) -> tuple[list[list[str]], list[list[str]]]:
        """The lines in words: line i of one language translates line i of the other.

        Raises WordVectorsError where no source has both languages, or all lines are too long; for a
        source that is neither an aligned one of the text nor a folder; for files with different
        numbers of lines, or that are not UTF-8.
        """
        a, b = self.language_a, self.language_b
        read = [pair for source in self.sources for pair in self._pairs(source)]
        if not read:
            raise WordVectorsError(
                f"no line of {a} is translated into {b} in {', '.join(self.sources)}: choose other "
                "languages or another source; a folder has two files that are named alike and end "
                f"in .{a} and .{b}"
            )
        pairs = ((tokenize(one, a), tokenize(other, b)) for one, other in read)
        longest = self.longest
        short = [pair for pair in pairs if longest is None or max(map(len, pair)) <= longest]
        if not short:
            raise WordVectorsError(
                f"{', '.join(self.sources)}: no line of {a} and {b} has {longest} words or fewer; "
                "raise `longest`"
            )
        lines_a, lines_b = zip(*short[: self.most], strict=True)
        return list(lines_a), list(lines_b)

    def _pairs(self, source: str) -> list[tuple[str, str]]:
        """Lines of a source that translate one another."""
        if Path(source).is_dir():
            return [pair for pair in self._of_folder(Path(source)) if all(pair)]
        if source not in pretraining_text.ALIGNED_SOURCES:
            raise WordVectorsError(
                f"{source!r} is no aligned source of the text and no folder: choose among "
                f"{', '.join(pretraining_text.ALIGNED_SOURCES)}, or name a folder that is there"
            )
        of_a, of_b = (shipped_text()[source].get(x, {}) for x in (self.language_a, self.language_b))
        return [(of_a[name], of_b[name]) for name in of_a if name in of_b]

    def _of_folder(self, folder: Path) -> Iterator[tuple[str, str]]:
        for one in sorted(folder.glob(f"*.{self.language_a}")):
            other = one.with_suffix(f".{self.language_b}")
            if not other.is_file():
                continue
            lines = itertools.zip_longest(*map(_text_lines, (one, other)))
            for number, pair in enumerate(itertools.islice(lines, self.limit), start=1):
                if None in pair:
                    raise WordVectorsError(
                        f"{one.name} and {other.name} in {folder} have not as many lines: one ends "
                        f"before line {number}"
                    )
                yield pair

    def __len__(self) -> int:
        """The number of pairs."""
        return int(work.result(TRANSLATIONS, self.about, self)["pairs"].iloc[0])


def _text_lines(file: Path) -> Iterator[str]:
    """The stripped lines of a file; a carriage return may stand within one."""
    with file.open("rb") as read:
        for number, line in enumerate(read, start=1):
            try:
                yield line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise WordVectorsError(f"{file}, line {number}: not UTF-8 ({error})") from None


def _counted(parallel: ParallelText) -> pd.DataFrame:
    return pd.DataFrame({"pairs": [len(parallel.lines[0])]})


#: How many translations a corpus gives, so that they need not be read to say so.
TRANSLATIONS = work.Kind("xprobe-translations", _counted, version=1, tolerance=0)
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
    lines = pretraining_text.by_language(shipped_text())
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
#: Neighbours that lessen the cosine of a word that is near to everything (`precision_at_1`).
CSLS = 10
#: Words → vectors ``(n, dim)``.
Look = Callable[[Sequence[str]], np.ndarray]


# --- dictionaries ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dictionary:
    """Pairs of words that translate one another, by their positions in two vocabularies.

    ``pairs`` is int64 ``(n, 2)``: position in ``WordVectors.words`` of the source and of the
    target, no pair twice. ``origin`` says where they are from. ``missing`` counts what was left out
    of a file: pairs of which the word of the "source" alone, of the "target" alone, or of "both"
    has no vector.
    """

    pairs: np.ndarray
    origin: str
    missing: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[int, int]], origin: str, missing: dict[str, int] | None = None
    ) -> "Dictionary":
        """Of one pair or more; WordVectorsError of none."""
        missing = missing or {}
        if not pairs:
            lack = "".join(f", {n} without a vector ({who})" for who, n in missing.items())
            raise WordVectorsError(f"{origin}: no pairs of words{lack}; one or more is needed")
        return cls(np.array(pairs, dtype=np.int64), origin, missing)

    def __len__(self) -> int:
        return len(self.pairs)


def induced(
    source_lines: Sequence[Sequence[str]],
    target_lines: Sequence[Sequence[str]],
    source: WordVectors,
    target: WordVectors,
    *,
    n: int = 5000,
    min_count: int = 2,
) -> Dictionary:
    """Words that go together in parallel lines: the strongest links, each word in one at most.

    Two words are the more strongly linked the larger the log-likelihood ratio G² of their table of
    co-occurrence in lines (Dunning 1993), if they co-occur more often than by chance. Links are
    taken by falling strength, and a word that is linked already is passed over: competitive linking
    (Melamed 2000), by which *der* goes with *the* and not with every word.

    Line i of the source translates line i of the target; words without a vector are passed over,
    and so are words in fewer than ``min_count`` lines, or together in fewer. At most ``n`` pairs,
    by falling strength; WordVectorsError for none.
    """
    strength, rows, columns = _association(
        _occurrences(source_lines, source), _occurrences(target_lines, target), min_count
    )
    # Equal strengths by position, so that the order does not hang on how they were computed.
    order = np.lexsort((columns, rows, -strength))
    pairs = _linked(rows[order].tolist(), columns[order].tolist())
    return Dictionary.of(pairs[:n], f"induced from {len(source_lines)} parallel lines")


def _occurrences(lines: Sequence[Sequence[str]], vectors: WordVectors) -> sparse.csr_array:
    """Which known words are in which line: 0 or 1, ``(n_lines, n_words)``."""
    rows, columns = [], []
    for row, line in enumerate(lines):
        known = {vectors.index[word] for word in line if word in vectors.index}
        rows += [row] * len(known)
        columns += sorted(known)
    return sparse.csr_array(
        (np.ones(len(rows), dtype=np.float32), (rows, columns)),
        shape=(len(lines), len(vectors.words)),
    )


def _association(
    source: sparse.csr_array, target: sparse.csr_array, min_count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """G² of words that are together more than by chance, and their positions: ``(n_links,)``."""
    together = (source.T @ target).tocoo()
    n = source.shape[0]
    in_source, in_target = (
        np.asarray(lines.sum(axis=0)).ravel().astype(np.float64) for lines in (source, target)
    )
    rows, columns = together.coords
    both = together.data.astype(np.float64)
    kept = (both >= min_count) & (both * n > in_source[rows] * in_target[columns])
    rows, columns, both = rows[kept], columns[kept], both[kept]
    return _g2(both, in_source[rows], in_target[columns], n), rows, columns


def _g2(both: np.ndarray, a: np.ndarray, b: np.ndarray, n: int) -> np.ndarray:
    """2 Σ observed · ln(observed / expected) over the four cells of each table."""
    total = np.zeros(len(both))
    for observed, one, other in (
        (both, a, b),
        (a - both, a, n - b),
        (b - both, n - a, b),
        (n - a - b + both, n - a, n - b),
    ):
        # An empty cell adds nothing, whatever is expected in it.
        filled = observed > 0
        ratio = observed[filled] * n / (one[filled] * other[filled])
        total[filled] += 2 * observed[filled] * np.log(ratio)
    return total


def _linked(rows: list[int], columns: list[int]) -> list[tuple[int, int]]:
    """Each word in one pair at most, the first that it is in."""
    by_row: dict[int, int] = {}
    used: set[int] = set()
    for row, column in zip(rows, columns, strict=True):
        if row not in by_row and column not in used:
            by_row[row] = column
            used.add(column)
    return list(by_row.items())


def held_out_pairs(dictionary: Dictionary, n_test: int, seed: int) -> tuple[Dictionary, Dictionary]:
    """Pairs to fit a map by, and pairs to test it on whose words it has not seen.

    Words of the source are drawn with all their pairs until `n_test` pairs or more are held out.
    Pairs left over that share a word with those, of either language, are in neither part.

    Returns the training part and the test part, in the order of the dictionary.
    """
    source, target = dictionary.pairs.T
    words, sizes = np.unique(source, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(words))
    held = words[order[: int(np.searchsorted(np.cumsum(sizes[order]), n_test)) + 1]]
    test = np.isin(source, held)
    train = ~test & ~np.isin(target, target[test])
    return tuple(replace(dictionary, pairs=dictionary.pairs[rows]) for rows in (train, test))


@dataclass(frozen=True)
class OfFile:
    """A dictionary file in MUSE's format, read when it is needed and named by its content.

    A pair of words a line, parted by a space or a tab, in small letters; nothing is done to them
    here. Pairs with a word that has no vector of its own are left out and counted; a pair that
    comes twice counts once.
    """

    path: str | Path

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the pairs. Raises FileNotFoundError where there is no such file."""
        if not Path(self.path).is_file():
            raise FileNotFoundError(
                f"the dictionary {self.path} is not there: MUSE's are at "
                "github.com/facebookresearch/MUSE#ground-truth-bilingual-dictionaries"
            )
        return {"file": file_hash(Path(self.path))}

    def pairs(self, source: WordVectors, target: WordVectors) -> Dictionary:
        """WordVectorsError for a line that is not two words, and where no pair has two vectors."""
        path = Path(self.path)
        pairs: dict[tuple[int, int], None] = {}
        missing = {"source": 0, "target": 0, "both": 0}
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            words = line.split()
            if not words:
                continue
            if len(words) != 2:
                raise WordVectorsError(
                    f"{path}, line {number}: found {len(words)} words in {line.strip()[:60]!r}; a "
                    f"line is a word of {source.language}, a space or tab, and one of "
                    f"{target.language}"
                )
            places = source.index.get(words[0]), target.index.get(words[1])
            if None not in places:
                pairs[places] = None
            elif places == (None, None):
                missing["both"] += 1
            else:
                missing["source" if places[0] is None else "target"] += 1
        return Dictionary.of(list(pairs), path.name, missing)


@dataclass(frozen=True)
class OfTranslations:
    """A dictionary that is `induced` when it is needed, named by its translations."""

    parallel: ParallelText
    n: int = 5000
    min_count: int = 2

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the pairs."""
        return {"translations": self.parallel.about, "n": self.n, "min_count": self.min_count}

    def pairs(self, source: WordVectors, target: WordVectors) -> Dictionary:
        """As `induced`, with errors of `ParallelText.lines`."""
        return induced(*self.parallel.lines, source, target, n=self.n, min_count=self.min_count)


# --- maps -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lookup:
    """Words of a language in the space of ``target``; of that language itself without one.

    The map is fitted on all pairs of the ``dictionary``.
    """

    vectors: VectorRecipe
    target: VectorRecipe | None = None
    dictionary: OfFile | OfTranslations | None = None

    @property
    def language(self) -> str:
        return self.vectors.language

    @cached_property
    def ask(self) -> Ask:
        """What decides the vectors of words."""
        about: dict[str, Any] = {"vectors": self.vectors.ask}
        if self.target is not None and self.dictionary is not None:
            about |= {"target": self.target.ask, "dictionary": self.dictionary.about}
        return Ask("word-space", about, version=1)

    def load(self) -> Look:
        """Words → vectors, float32 ``(n, dim)``; made once.

        A word outside the vocabulary is normalised as the vocabulary was.
        """
        return self._look

    @cached_property
    def _look(self) -> Look:
        own, target = self._both
        matrix = np.eye(own.dim)
        if self.target is not None:
            both = (normalised_words(x.vectors) for x in (own, target))
            matrix = orthogonal_map(*both, self._pairs.pairs)

        def mapped(words: Sequence[str]) -> np.ndarray:
            vectors = normalised_words(own.lookup(words), like=own.vectors)
            return (vectors @ matrix).astype(np.float32)

        return mapped

    @property
    def _both(self) -> list[WordVectors]:
        return load_vectors([self.vectors, self.target or self.vectors])

    @cached_property
    def _pairs(self) -> Dictionary:
        return self.dictionary.pairs(*self._both)


def load_lookups(lookups: Sequence[Lookup]) -> None:
    """Make the vectors of several lookups, side by side."""
    load_vectors([x for own in lookups for x in (own.vectors, own.target) if x is not None])


def precision_of_maps(lookups: Sequence[Lookup], *, seed: int) -> pd.DataFrame:
    """How many words of a dictionary find their translation, mapped by the rest of it.

    A tenth of the pairs, drawn by the seed, is held out. A row for each lookup (of a mapped
    language): ``language``, ``words`` (with a vector), ``pairs`` (of the dictionary), ``held_out``
    (pairs), ``found`` (share of these whose target is nearest), ``origin`` (of the dictionary), and
    how many pairs of a file lack a vector: ``no_source``, ``no_target``, ``neither``.
    """
    abouts = [{"lookup": own.ask, "seed": seed, "share": 0.1, "csls": CSLS} for own in lookups]

    def calls(missing: list[int]) -> list[work.Call]:
        load_lookups([lookups[position] for position in missing])
        return [([position], (lookups[position], seed)) for position in missing]

    tables = work.results(MAPS, abouts, calls, what="maps", alone=True)
    table = pd.concat(tables, ignore_index=True)
    table.insert(0, "language", [own.language for own in lookups])
    return table


def _measured(lookup: Lookup, seed: int) -> pd.DataFrame:
    own, english = lookup._both
    pairs = lookup._pairs
    known, held_out = held_out_pairs(pairs, max(1, int(len(pairs) * 0.1)), seed)
    source, target = (normalised_words(x.vectors) for x in (own, english))
    turned = (source @ orthogonal_map(source, target, known.pairs)).astype(np.float32)
    hits = precision_at_1(turned, target, held_out.pairs, csls=CSLS)
    lack = {f"no_{side}": pairs.missing.get(side, 0) for side in ("source", "target")}
    lack["neither"] = pairs.missing.get("both", 0)
    row = {"words": len(own.words), "pairs": len(pairs), "held_out": len(hits)}
    return pd.DataFrame([row | {"found": float(hits.mean()), "origin": pairs.origin} | lack])


def nearest(lookup: Lookup, word: str, n: int = 5) -> pd.DataFrame:
    """The words of the target nearest to a word, by falling cosine: ``word``, ``near``, ``cosine``.

    A word without a vector of its own is replaced by the 101st commonest that has one.
    """
    about = {"lookup": lookup.ask, "word": word, "n": n}
    return work.result(NEAREST_WORDS, about, lookup, word, n)


def _nearest(lookup: Lookup, word: str, n: int) -> pd.DataFrame:
    own, target = lookup._both
    word = word if word in own.index else own.words[:101][-1]
    near = normalised_words(target.vectors) @ lookup.load()([word])[0]
    places = near.argsort()[: -n - 1 : -1]
    words = [target.words[place] for place in places]
    return pd.DataFrame({"word": word, "near": words, "cosine": near[places]})


def _apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """Of the neighbours of a word: how far cosines are apart, words left aside."""
    return work.largest_difference(stored[["cosine"]], computed[["cosine"]])


# Both rest on the word vectors of two languages, which take a while.
MAPS = work.Kind("xprobe-maps", _measured, version=1, tolerance=0.03, shared_seconds=90.0)
NEAREST_WORDS = work.Kind(
    "xprobe-neighbours", _nearest, version=1, tolerance=0.03, difference=_apart, shared_seconds=90.0
)
