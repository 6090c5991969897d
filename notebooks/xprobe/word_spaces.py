"""Word vectors of two languages in one space: VecMap's orthogonal map.

Ravishankar, Øvrelid and Velldal (2019, section 5.2) use the supervised VecMap of Artetxe et al.
(2016): vectors of unit length, centred, and of unit length again (`normalised_words`), and the
orthogonal matrix that brings pairs of translations nearest together (`orthogonal_map`). The target
stays as it is, so several languages can be mapped onto one.
"""

import hashlib
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import KeyedVectors
from gensim.models.fasttext import FastTextKeyedVectors, ft_ngram_hashes
from sacremoses import MosesTokenizer
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from scipy.sparse.linalg import LinearOperator, cg, svds

from xlx.results import executors, paths, progress, work

sys.path.append(str(paths.MODELS))  # the text that the family read: data/models-long/family

from family import pretraining_text
from xlx.results.ledger import Ask, Value
from xlx.text.languages import base_code, lowered

#: Raised by hand when parallel lines of the same files come out otherwise.
LINES_VERSION = 1
#: Words that are kept of a file; the paper does not say how many it took, VecMap and MUSE this.
LIMIT = 200_000
#: Of the n-grams' least squares: the weight of their length, and conjugate-gradient steps at most.
_DAMPING, _STEPS = 0.3, 20
#: What gensim raises for a file that is torn, or something else.
_TORN = (OSError, EOFError, ValueError)


class WordVectorsError(ValueError):
    """Words, lines or pairs of words that cannot be read or made; says where, why, what to do."""


# --- maps of vectors ------------------------------------------------------------------------------


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


# --- text -----------------------------------------------------------------------------------------


# Moses takes a tenth of a millisecond a line, and English is read again for each of its partners.
@lru_cache(maxsize=100_000)
def tokenize(text: str, language: str) -> tuple[str, ...]:
    """The words and punctuation marks of a text in small letters, by Moses' rules (section 6).

    A language for which Moses has no list of abbreviations is read by the rules of English, as
    XNLI's own text was; nothing is escaped for XML. Capitals tell where sentences end, so they are
    taken away afterwards. Languages written without spaces (zh, ja, th) come out in runs as long as
    the text has them; segment them beforehand. ValueError where `language` is no language tag.
    """
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
    """SHA-256 of a file; FileNotFoundError where there is none."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there: the vectors of fastText are at fasttext.cc/docs/en, the "
            "dictionaries of MUSE at github.com/facebookresearch/MUSE"
        )
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
    language are passed over, and the first ``most`` pairs of the others kept. WordVectorsError for
    a source that is neither.
    """

    language_a: str
    language_b: str
    sources: tuple[str, ...] = pretraining_text.ALIGNED_SOURCES
    limit: int | None = None
    longest: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        known = pretraining_text.ALIGNED_SOURCES
        for source in self.sources:
            if source not in known and not Path(source).is_dir():
                raise WordVectorsError(
                    f"{source!r} is no aligned source of the text and no folder: choose among "
                    f"{', '.join(known)}, or name a folder that is there"
                )

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the lines: hashes of the files that they are in, and the options."""
        languages = [self.language_a, self.language_b]
        sources = []
        for source in self.sources:
            files = sorted(x for code in languages for x in Path(source).glob(f"*.{code}"))
            shipped = not Path(source).is_dir()
            named = text_about([source]) | {"source": source} if shipped else {}
            sources.append(named or {file.name: file_hash(file) for file in files})
        return {
            "languages": languages, "sources": sources, "limit": self.limit,
            "longest": self.longest, "most": self.most, "version": LINES_VERSION,
        }  # fmt: skip

    @cached_property
    def lines(self) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
        """The lines in words: line i of one language translates line i of the other.

        WordVectorsError where there is none, and for files that are not UTF-8 or of which one has
        more lines.
        """
        a, b, longest = self.language_a, self.language_b, self.longest
        read = (pair for source in self.sources for pair in self._pairs(source) if all(pair))
        pairs = ((tokenize(one, a), tokenize(other, b)) for one, other in read)
        short = [pair for pair in pairs if longest is None or max(map(len, pair)) <= longest]
        if not short:
            raise WordVectorsError(
                f"no line of {a} is translated into {b} in {', '.join(self.sources)} (of at most "
                f"{longest} words): choose another source; a folder has two files that are named "
                f"alike and end in .{a} and .{b}"
            )
        one, other = zip(*short[: self.most], strict=True)
        return list(one), list(other)

    def _pairs(self, source: str) -> list[tuple[str, str]]:
        """Lines of a source that translate one another."""
        a, b = self.language_a, self.language_b
        if not Path(source).is_dir():
            one, other = (shipped_text()[source].get(code, {}) for code in (a, b))
            return [(one[name], other[name]) for name in one if name in other]
        pairs: list[tuple[str, str]] = []
        for file in sorted(Path(source).glob(f"*.{a}")):
            if not (other := file.with_suffix(f".{b}")).is_file():
                continue
            # a carriage return may stand within a line
            with (file.open(encoding="utf-8", newline="\n") as x,
                  other.open(encoding="utf-8", newline="\n") as y):  # fmt: skip
                try:
                    pairs += itertools.islice(zip(x, y, strict=True), self.limit)
                except ValueError as error:
                    raise WordVectorsError(
                        f"{file} and {other.name} are not as many lines of UTF-8: {error}"
                    ) from None
        return [(one.strip(), other.strip()) for one, other in pairs]

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.lines[0])


# --- files of fastText ----------------------------------------------------------------------------


def pretrained(path: str | Path, *, limit: int = LIMIT, dim: int | None = None) -> KeyedVectors:
    """Vectors from a file of fastText, as text or gzipped (``cc.de.300.vec.gz``): a line ``n dim``,
    then a word and its numbers a line, by falling frequency.

    The first ``limit`` words are kept. WordVectorsError for another kind of file, one that is torn
    or malformed, by what gensim says of it, and vectors of other than ``dim`` numbers.
    """
    try:
        # a few words of the published files are no whole UTF-8
        options = {"limit": limit, "unicode_errors": "replace"}
        vectors = KeyedVectors.load_word2vec_format(str(path), **options)
    except _TORN as error:
        raise WordVectorsError(f"{path} is no whole file of fastText: {error}") from None
    if dim not in (None, vectors.vector_size):
        raise WordVectorsError(
            f"{path}: its vectors have {vectors.vector_size} numbers, and {dim} are needed: read "
            "other vectors, or set the width of what reads them (`words` in the sizes of encoders) "
            f"to {vectors.vector_size}"
        )
    # Two words that were no whole UTF-8 may be one here: gensim leaves a place without a word.
    words = [word for word in vectors.index_to_key[:limit] if word is not None]
    return _with_words(vectors, words, vectors.vectors[: len(words)])


def _with_words(vectors: KeyedVectors, words: Sequence[str], own: np.ndarray) -> KeyedVectors:
    """Vectors of these words alone; the n-grams, where there are, stay."""
    vectors.index_to_key = list(words)
    vectors.key_to_index = {word: i for i, word in enumerate(words)}
    vectors.vectors = np.asarray(own, dtype=np.float32)
    return vectors


def lookup(vectors: KeyedVectors, words: Sequence[str]) -> np.ndarray:
    """The vectors of words, float32 ``(n, dim)``.

    Of counted ones a word without a vector of its own is the mean of those of its n-grams; where
    there are none, it is all zeros.
    """
    found = np.zeros((len(words), vectors.vector_size), dtype=np.float32)
    for row, word in enumerate(words):
        if word in vectors:
            found[row] = vectors[word]
    return found


# --- counted --------------------------------------------------------------------------------------

#: How vectors are counted, where nothing else is said.
COUNTS: dict[str, Any] = {
    "dim": 100, "window": 10, "min_count": 2, "ngrams": (3, 5), "buckets": 50_000, "seed": 0,
}  # fmt: skip


def factorised(lines: Iterable[str], language: str, options: Mapping[str, Any]) -> Value:
    """Vectors from counts: mutual information of words and their neighbours, by its components.

    A neighbour k words away counts (window + 1 - k) / window times, which is how often a skip-gram
    model of that window would see it. From these counts max(0, ln p(w, c) / (p(w) p'(c))), where
    p' has the counts of the contexts raised to ¾, as the skip-gram's negative samples have; its
    ``dim`` largest components U S V give the vectors U S^½, at length 1 (Levy, Goldberg and Dagan
    2015). Then vectors of character n-grams (the shortest to the longest of ``ngrams``, hashed to
    ``buckets``) are fitted whose mean is as near as possible to the vector of each word (bag of
    subwords, Zhao et al. 2018). ``options`` are those of `COUNTS`.

    A line is a context that no window crosses. A word seen less than ``min_count`` times has no
    vector of its own, and is no neighbour. The same ``seed`` (of the vector that the search for
    components begins at) gives the same vectors on the same machine. WordVectorsError where there
    are not more than ``dim`` words.

    Returns ``words``, by falling frequency, their ``vectors`` ``(n, dim)``, the ``lengths`` of
    n-grams and their vectors ``ngrams`` ``(buckets, dim)``.
    """
    dim, lengths = options["dim"], options["ngrams"]
    sentences = [tokenize(line, language) for line in lines]
    counts = Counter(itertools.chain.from_iterable(sentences))
    words = [word for word, count in counts.most_common() if count >= options["min_count"]]
    if len(words) <= dim:
        raise WordVectorsError(
            f"{language}: {len(words)} words are too few for {dim} components; give more text, a "
            "smaller min_count or a smaller dim"
        )
    information = _information(_neighbours(sentences, words, options["window"]))
    u, s, _ = svds(information, k=dim, rng=np.random.default_rng(options["seed"]))
    vectors = unit_rows(u * np.sqrt(np.maximum(s, 0))).astype(np.float32)
    return {
        "words": np.array(words, dtype=object), "vectors": vectors, "lengths": np.array(lengths),
        "ngrams": _fitted_ngrams(words, vectors, lengths, options["buckets"]),
    }  # fmt: skip


def counted(value: Value) -> FastTextKeyedVectors:
    """The vectors that `factorised` has made."""
    ngrams, lengths = value["ngrams"], value["lengths"].tolist()
    vectors = FastTextKeyedVectors(ngrams.shape[1], *lengths, len(ngrams))
    vectors.vectors_ngrams = ngrams
    return _with_words(vectors, value["words"].tolist(), value["vectors"])


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
) -> np.ndarray:
    """N-gram vectors whose means are nearest to the words' own, by damped least squares."""
    hashes = [ft_ngram_hashes(word, *lengths, buckets) for word in words]
    sizes = np.array([len(own) for own in hashes])
    rows = np.repeat(np.arange(len(words)), sizes)
    columns = np.fromiter(itertools.chain.from_iterable(hashes), np.int64, len(rows))
    shares = (1 / sizes[rows]).astype(np.float32)
    mean_of = sparse.csr_array((shares, (rows, columns)), shape=(len(words), buckets))
    of_words = mean_of.T.tocsr()
    normal = LinearOperator(
        (buckets, buckets), lambda x: of_words @ (mean_of @ x) + _DAMPING**2 * x, dtype=np.float32
    )
    right = (of_words @ vectors).T
    return np.stack([cg(normal, x, rtol=1e-6, maxiter=_STEPS)[0] for x in right], axis=1)


#: What makes a value: a function, its arguments and options.
Making = tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]


def made(makers: Mapping[Ask, Callable[[], Making]]) -> dict[Ask, Value]:
    """What is large and only a means, word vectors and encoders, by the ask of its recipe.

    It stays in the cache of the machine; what is missing there is made side by side.
    """
    kept = work.cache()
    values = {ask: entry.value for ask in makers if (entry := kept.get(ask))}
    calls = [(ask, maker()) for ask, maker in makers.items() if ask not in values]
    new = executors.run(_fitted, calls, alone=True, side_by_side=True)
    for ask, _, value, about in progress.forecast(new, "vectors and encoders", len(calls)):
        values[ask] = kept.put(ask, value, about).value
    return values


def _fitted(function: Callable[..., Any], arguments: Sequence, options: Mapping) -> Value:
    own = function(*arguments, **options)
    return own if isinstance(own, dict) else own.arrays


@dataclass(frozen=True, eq=False)
class Words:
    """Word vectors of a language: of a file of fastText, or counted on the miniatures' text.

    They are read or made when they are needed. ``dim`` is their width (a file's own, and that of
    `COUNTS`, without one).
    """

    language: str
    path: Path | None = None
    dim: int | None = None

    @property
    def _counts(self) -> dict[str, Any]:
        return COUNTS | ({"dim": self.dim} if self.dim else {})

    @cached_property
    def ask(self) -> Ask:
        """All that decides the vectors, so that what is computed from them is found without."""
        if self.path is not None:
            about = {"file": file_hash(self.path), "limit": LIMIT, "dim": self.dim}
        else:
            text = text_about(pretraining_text.PRETRAINING_SOURCES)
            about = {"method": "counts", "options": self._counts, "text": text}
        return Ask("word-vectors", {"language": self.language} | about)

    @cached_property
    def vectors(self) -> KeyedVectors:
        """As `pretrained` or `factorised`; WordVectorsError where the text lacks the language."""
        if self.path is not None:
            return pretrained(self.path, dim=self.dim)

        def making() -> Making:
            lines = pretraining_text.by_language(shipped_text())
            if self.language not in lines:
                known = ", ".join(sorted(lines))
                raise WordVectorsError(f"the text has no line of {self.language!r}: choose {known}")
            return factorised, (lines[self.language], self.language, self._counts), {}

        return counted(made({self.ask: making})[self.ask])


# --- dictionaries and maps ------------------------------------------------------------------------


def word_pairs(path: Path, source: Mapping[str, int], target: Mapping[str, int]) -> np.ndarray:
    """Words that translate one another, of a file in MUSE's format: two words a line, in small
    letters.

    Returns positions in two vocabularies (word → position), int64 ``(n, 2)``, each pair once.
    WordVectorsError for a line that is not two words, and where no pair of words has vectors.
    """
    rows = [line.split() for line in path.read_text(encoding="utf-8").split("\n")]
    if bad := [n for n, row in enumerate(rows, start=1) if len(row) not in (0, 2)]:
        raise WordVectorsError(f"{path}, line {bad[0]}: not two words, with a space")
    places = [(source.get(row[0]), target.get(row[1])) for row in rows if row]
    pairs = list(dict.fromkeys(pair for pair in places if None not in pair))
    if not pairs:
        raise WordVectorsError(f"{path.name}: none of its {len(places)} pairs of words has vectors")
    return np.array(pairs, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Words of a language in the space of ``target``; of that language itself without one.

    The map is fitted on all pairs of the ``dictionary``, a file as `word_pairs` reads. Called with
    words, it gives their vectors, float32 ``(n, dim)``; a word outside the vocabulary is normalised
    as the vocabulary was.
    """

    words: Words
    target: Words | None = None
    dictionary: Path | None = None

    @property
    def language(self) -> str:
        return self.words.language

    @cached_property
    def ask(self) -> Ask:
        """What decides the vectors of words."""
        about: dict[str, Any] = {"vectors": self.words.ask}
        if self.target is not None:
            about |= {"target": self.target.ask, "dictionary": file_hash(self.dictionary)}
        return Ask("word-space", about, version=1)

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        own = self.words.vectors
        vectors = normalised_words(lookup(own, words), like=own.vectors)
        return (vectors @ self._matrix).astype(np.float32)

    @cached_property
    def _matrix(self) -> np.ndarray:
        if self.target is None:
            return np.eye(self.words.vectors.vector_size)
        return orthogonal_map(*self._both, self.pairs)

    @property
    def _both(self) -> list[np.ndarray]:
        return [normalised_words(x.vectors.vectors) for x in (self.words, self.target)]

    @cached_property
    def pairs(self) -> np.ndarray:
        """`word_pairs` of the dictionary."""
        both = (x.vectors.key_to_index for x in (self.words, self.target))
        return word_pairs(self.dictionary, *both)
