"""Word vectors of two languages in one space: VecMap's orthogonal map.

Ravishankar, Øvrelid and Velldal (2019, section 5.2) use the supervised VecMap of Artetxe et al.
(2016). The target stays as it is, so several languages can be mapped onto one.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from family import pretraining_text
from xlx.results import checks, executors, paths, progress, work
from xlx.results.deferred import deferred
from xlx.results.ledger import Ask, Value
from xlx.text.languages import base_code, lowered
from xlx.text.parallel import CorpusWarning

models = deferred("gensim.models")
fasttext = deferred("gensim.models.fasttext")
sacremoses = deferred("sacremoses")
sparse = deferred("scipy.sparse")
linalg = deferred("scipy.linalg")
sparse_linalg = deferred("scipy.sparse.linalg")
preprocessing = deferred("sklearn.preprocessing")


#: Raised by hand when parallel lines of the same files come out otherwise.
LINES_VERSION = 1
#: Words that are kept of a file; the paper does not say how many it took, VecMap and MUSE this.
LIMIT = 200_000
#: Of the n-grams' least squares: the weight of their length, and steps at most.
_DAMPING, _STEPS = 0.3, 20


class WordVectorsError(ValueError):
    """Words, lines or pairs of words that cannot be read or made; says where, why, what to do."""


def normalised_words(vectors: np.ndarray, *, like: np.ndarray | None = None) -> np.ndarray:
    """Vectors ``(n, dim)`` at unit length, centred, at unit length again: float32 ``(n, dim)``.

    ``like`` ``(m, dim)``: the vocabulary whose mean is taken, for words that are not in it. A row
    of zeros is a word of which nothing is known: it stays zero and counts in no mean.
    """
    unit = preprocessing.normalize(np.array(vectors, dtype=np.float64))
    vocabulary = unit if like is None else preprocessing.normalize(np.array(like, dtype=np.float64))
    known = vocabulary[vocabulary.any(axis=1)]
    if len(known):
        unit[unit.any(axis=1)] -= known.mean(axis=0)
    return preprocessing.normalize(unit).astype(np.float32)


def orthogonal_map(source: np.ndarray, target: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The orthogonal W ``(d, d)`` that makes Σ ‖x W - z‖² of the pairs least.

    ``pairs`` ``(n, 2)`` have a row x of the source and a row z of the target, both
    `normalised_words`. ValueError for fewer pairs than numbers in a vector: they leave it open.
    """
    if len(pairs) < source.shape[1]:
        raise ValueError(
            f"there are {len(pairs)} pairs for vectors of {source.shape[1]} numbers: fewer pairs "
            "than numbers leave the map open; give a larger dictionary or narrower vectors"
        )
    x, z = source[pairs[:, 0]].astype(np.float64), target[pairs[:, 1]].astype(np.float64)
    return linalg.orthogonal_procrustes(x, z)[0]


# Moses takes a tenth of a millisecond a line, and English is read again for each of its partners.
@lru_cache(maxsize=100_000)
def tokenize(text: str, language: str) -> tuple[str, ...]:
    """The words and punctuation marks of a text in small letters, by Moses' rules (section 6).

    A language without a list of abbreviations is read by the rules of English, as XNLI's own text
    was. Languages written without spaces come out in runs: segment them beforehand.
    """
    tokens = _tokenizer(base_code(language)).tokenize(text, escape=False)
    # A line separator or a no-break space that Moses left in place parts words all the same.
    return tuple(lowered(word, language) for token in tokens for word in token.split())


_tokenizer = lru_cache(maxsize=64)(sacremoses.MosesTokenizer)


@lru_cache(maxsize=1)
def shipped_text() -> pretraining_text.LinesById:
    """The pretraining text."""
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

    ``source`` is an aligned one of the pretraining text, or a folder of two files of as many lines
    that are named as those of Europarl: ``europarl-v7.de-en.de``, ``europarl-v7.de-en.en``. Of a
    file the first ``most`` lines are read. Pairs with an empty line or one of more than ``longest``
    words are left out, and the first ``most`` others kept; fewer lines are told (CorpusWarning).
    WordVectorsError for a folder without two such files.
    """

    language_a: str
    language_b: str
    source: str
    longest: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if not Path(self.source).is_dir():
            checks.one_of(self.source, pretraining_text.ALIGNED_SOURCES, "folder or source")
        elif not self._files:
            raise WordVectorsError(
                f"{self.source} has no two files that are named alike and end in "
                f".{self.language_a} and .{self.language_b}: put them there"
            )

    @property
    def _files(self) -> list[tuple[Path, Path]]:
        """Two files of the folder, of as many lines, for each that there is."""
        a, b = self.language_a, self.language_b
        both = [(x, x.with_suffix(f".{b}")) for x in sorted(Path(self.source).glob(f"*.{a}"))]
        return [pair for pair in both if pair[1].is_file()]

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the lines: hashes of the files that they are in, and the options."""
        languages, folder = [self.language_a, self.language_b], Path(self.source)
        if folder.is_dir():
            files = sorted(x for code in languages for x in folder.glob(f"*.{code}"))
            source = {file.name: file_hash(file) for file in files}
        else:
            source = text_about([self.source]) | {"source": self.source}
        return {
            "languages": languages,
            "sources": [source],
            "limit": self.most,
            "longest": self.longest,
            "most": self.most,
            "version": LINES_VERSION,
        }

    @cached_property
    def lines(self) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
        """The lines in words: line i of one language translates line i of the other.

        WordVectorsError for none, for files that are not UTF-8 or of which one has more lines.
        """
        a, b, longest = self.language_a, self.language_b, self.longest
        there = self._pairs()
        pairs = ((tokenize(x, a), tokenize(y, b)) for x, y in there if x and y)
        short = [pair for pair in pairs if longest is None or max(map(len, pair)) <= longest]
        if not short:
            raise WordVectorsError(
                f"no line of {a} is translated into {b} in {self.source} (of {longest} words at "
                "most): take other text or longer lines"
            )
        if self.most is not None and len(there) < self.most:
            problem = f"{self.most:,} lines are asked for, and {len(there):,} are there"
            warnings.warn(f"{self.source}, {a} and {b}: {problem}; all are read", CorpusWarning, 2)
        first, other = zip(*short[: self.most], strict=True)
        return list(first), list(other)

    def _pairs(self) -> list[tuple[str, str]]:
        if not Path(self.source).is_dir():
            languages = self.language_a, self.language_b
            first, other = (shipped_text()[self.source].get(code, {}) for code in languages)
            return [(first[name], other[name]) for name in first if name in other]
        pairs: list[tuple[str, str]] = []
        for file, other in self._files:
            # a carriage return may stand within a line
            with (
                file.open(encoding="utf-8", newline="\n") as x,
                other.open(encoding="utf-8", newline="\n") as y,
            ):
                try:
                    pairs += itertools.islice(zip(x, y, strict=True), self.most)
                except ValueError as error:
                    raise WordVectorsError(
                        f"{file} and {other.name} are not as many lines of UTF-8: {error}"
                    ) from None
        return [(first.strip(), other.strip()) for first, other in pairs]


def pretrained(
    path: str | Path, *, limit: int = LIMIT, dim: int | None = None
) -> models.KeyedVectors:
    """The first ``limit`` vectors of a file of fastText, as text or gzipped.

    WordVectorsError for another kind of file, a torn one, vectors of other than ``dim`` numbers.
    """
    try:
        # a few words of the published files are no whole UTF-8
        options = {"limit": limit, "unicode_errors": "replace"}
        vectors = models.KeyedVectors.load_word2vec_format(str(path), **options)
    except (OSError, EOFError, ValueError) as error:
        raise WordVectorsError(f"{path} is no whole file of fastText: {error}") from None
    if dim not in (None, vectors.vector_size):
        raise WordVectorsError(
            f"{path}: its vectors have {vectors.vector_size} numbers, and {dim} are needed: read "
            f"other vectors, or set `words` in the sizes of encoders to {vectors.vector_size}"
        )
    # Two words that were no whole UTF-8 may be one here: gensim leaves a place without a word.
    words = [word for word in vectors.index_to_key[:limit] if word is not None]
    return _with_words(vectors, words, vectors.vectors[: len(words)])


def _with_words(
    vectors: models.KeyedVectors, words: Sequence[str], rows: np.ndarray
) -> models.KeyedVectors:
    """Vectors of these words alone; the n-grams, where there are, stay."""
    vectors.index_to_key = list(words)
    vectors.key_to_index = {word: i for i, word in enumerate(words)}
    vectors.vectors = np.asarray(rows, dtype=np.float32)
    return vectors


def lookup(vectors: models.KeyedVectors, words: Sequence[str]) -> np.ndarray:
    """The vectors of words, float32 ``(n, dim)``; of counted ones a word without a vector of its
    own is the mean of those of its n-grams; where there are none, it is zeros."""
    rows = np.zeros((len(words), vectors.vector_size), dtype=np.float32)
    for row in (i for i, word in enumerate(words) if word in vectors):
        rows[row] = vectors[words[row]]
    return rows


#: How vectors are counted, where nothing else is said.
COUNTS: dict[str, Any] = {
    "dim": 100,
    "window": 10,
    "min_count": 2,
    "ngrams": (3, 5),
    "buckets": 50_000,
    "seed": 0,
}


def factorised(lines: Iterable[str], language: str, options: Mapping[str, Any]) -> Value:
    """Vectors from counts: mutual information of words and their neighbours, by its components.

    A neighbour k words away counts (window + 1 - k) / window times, as often as a skip-gram model
    sees it. From these counts max(0, ln p(w, c) / (p(w) p'(c))), where p' has the counts of the
    contexts raised to ¾; its ``dim`` largest components U S V give U S^½, at length 1 (Levy,
    Goldberg and Dagan 2015). Vectors of character n-grams (the shortest to the longest of
    ``ngrams``, hashed to ``buckets``) are fitted whose means are nearest to these (bag of
    subwords, Zhao et al. 2018). A line is a context that no window crosses; a word seen less than
    ``min_count`` times is no neighbour. WordVectorsError where there are not more than ``dim``.

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
    u, s, _ = sparse_linalg.svds(information, k=dim, rng=np.random.default_rng(options["seed"]))
    vectors = preprocessing.normalize(u * np.sqrt(np.maximum(s, 0))).astype(np.float32)
    return {
        "words": np.array(words, dtype=object),
        "vectors": vectors,
        "lengths": np.array(lengths),
        "ngrams": _fitted_ngrams(words, vectors, lengths, options["buckets"]),
    }


def counted(value: Value) -> fasttext.FastTextKeyedVectors:
    """The vectors that `factorised` has made."""
    ngrams, lengths = value["ngrams"], value["lengths"].tolist()
    vectors = fasttext.FastTextKeyedVectors(ngrams.shape[1], *lengths, len(ngrams))
    vectors.vectors_ngrams = ngrams
    return _with_words(vectors, value["words"].tolist(), value["vectors"])


def _neighbours(
    sentences: Sequence[Sequence[str]], words: Sequence[str], window: int
) -> sparse.csr_array:
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
    table = counts.tocoo()
    rows, columns = table.coords
    totals = np.asarray(counts.sum(axis=1)).ravel()
    smooth = totals**0.75
    values = np.log(table.data * smooth.sum() / (totals[rows] * smooth[columns]))
    positive = values > 0
    return sparse.csr_array(
        (values[positive].astype(np.float32), (rows[positive], columns[positive])),
        shape=counts.shape,
    )


def _fitted_ngrams(
    words: Sequence[str], vectors: np.ndarray, lengths: tuple[int, int], buckets: int
) -> np.ndarray:
    """N-gram vectors whose means are nearest to the words' own, by damped least squares."""
    hashes = [fasttext.ft_ngram_hashes(word, *lengths, buckets) for word in words]
    sizes = np.array([len(row) for row in hashes])
    rows = np.repeat(np.arange(len(words)), sizes)
    columns = np.fromiter(itertools.chain.from_iterable(hashes), np.int64, len(rows))
    shares = (1 / sizes[rows]).astype(np.float32)
    mean_of = sparse.csr_array((shares, (rows, columns)), shape=(len(words), buckets))
    fitted = [sparse_linalg.lsqr(mean_of, x, damp=_DAMPING, iter_lim=_STEPS)[0] for x in vectors.T]
    return np.stack(fitted, axis=1).astype(np.float32)


#: What makes a value: a function, its arguments and options.
Making = tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]


def made(makers: Mapping[Ask, Callable[[], Making]]) -> dict[Ask, Value]:
    """What is only a means, word vectors and encoders, by the ask of its recipe, kept in the cache
    of the machine; what is missing there is made side by side."""
    stored = work.cache()
    values = {ask: entry.value for ask in makers if (entry := stored.get(ask))}
    calls = [(ask, maker()) for ask, maker in makers.items() if ask not in values]
    new = executors.run(_fitted, calls, alone=True, side_by_side=True)
    for ask, _, value, about in progress.forecast(new, "vectors and encoders", len(calls)):
        values[ask] = stored.put(ask, value, about).value
    return values


def _fitted(function: Callable[..., Any], arguments: Sequence, options: Mapping) -> Value:
    value = function(*arguments, **options)
    return value if isinstance(value, Mapping) else value.arrays


@dataclass(frozen=True, eq=False)
class Words:
    """Word vectors of a language: of a file of fastText, or counted on the miniatures' text."""

    language: str
    path: Path | None = None
    dim: int | None = None  # a file's own, or that of `COUNTS`

    @property
    def _counts(self) -> dict[str, Any]:
        return COUNTS | {"dim": self.dim or COUNTS["dim"]}

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
    def vectors(self) -> models.KeyedVectors:
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


def word_pairs(path: Path, source: Mapping[str, int], target: Mapping[str, int]) -> np.ndarray:
    """Pairs of MUSE's format, two words a line: positions in two vocabularies, int64 ``(n, 2)``.

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

    The map is fitted on all `word_pairs` of the ``dictionary``. Called with words, it gives their
    vectors, float32 ``(n, dim)``, normalised as the vocabulary was.
    """

    words: Words
    target: Words | None = None
    dictionary: Path | None = None

    @cached_property
    def ask(self) -> Ask:
        """What decides the vectors of words."""
        about: dict[str, Any] = {"vectors": self.words.ask}
        if self.target is not None:
            about |= {"target": self.target.ask, "dictionary": file_hash(self.dictionary)}
        return Ask("word-space", about, version=1)

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        space = self.words.vectors
        vectors = normalised_words(lookup(space, words), like=space.vectors)
        return (vectors @ self._matrix).astype(np.float32)

    @cached_property
    def _matrix(self) -> np.ndarray:
        if self.target is None:
            return np.eye(self.words.vectors.vector_size)
        both = [x.vectors for x in (self.words, self.target)]
        pairs = word_pairs(self.dictionary, *(x.key_to_index for x in both))
        return orthogonal_map(*(normalised_words(x.vectors) for x in both), pairs)
