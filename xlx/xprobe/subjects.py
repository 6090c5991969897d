"""What X-Probe's probes are put to: anything that turns sentences of one language into vectors.

One of the six encoders of `xlx.xprobe.sentence_encoders` by its recipe, the mean of word vectors, a
layer of a Transformer, a function of one's own; and, for comparison, the number of tokens alone and
a bag of words.
"""

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from xlx.core.settings import current
from xlx.models import embeddings, loading
from xlx.xprobe.encoder_recipes import Inferred, Mapped, Untrained
from xlx.xprobe.probing_tasks import ProbingTask
from xlx.xprobe.sentence_encoders import ENCODER_NAMES, Sentences, Sizes, encode, mean_vectors
from xlx.xprobe.word_spaces import Look, Lookup

#: Tokenised sentences → vectors ``(n, dim)``.
Encode = Callable[[Sequence[tuple[str, ...]]], np.ndarray]

#: The recipe of one of `sentence_encoders.ENCODERS`.
EncoderRecipe = Untrained | Inferred | Mapped


@dataclass(frozen=True)
class Subject:
    """An encoder of the sentences of a language.

    Tables name it by ``encoder`` ("RNN (maxpool)"), ``condition`` ("mapped") and ``language``,
    which may be any name that the tasks of `sentence_probing.probe` go by. ``about`` is all that
    decides its vectors, but for the sentences: text, numbers and asks. Results are found by it, so
    two encoders need two (`of_function` finds one for any encoder). ``ready`` makes of some tasks
    what encodes their sentences, tokenised, as vectors ``(n, dim)``; it is called only where
    something is to be computed, and what it gives may run in another process. An encoder over words
    has a ``recipe`` and a ``lookup``: what is trained and made beforehand, side by side.
    """

    encoder: str
    condition: str
    language: str
    about: Mapping[str, Any]
    ready: Callable[[Sequence[ProbingTask]], Encode] = field(repr=False)
    recipe: EncoderRecipe | None = field(default=None, repr=False)
    lookup: Lookup | None = field(default=None, repr=False)


# --- encoders -------------------------------------------------------------------------------------


def of_model(name: str, language: str, layer: int) -> Subject:
    """A layer of an encoder of the family, or of any that `models.load` takes, as a subject.

    It reads the tokens with spaces between them, as it was not trained on them; words cut by the
    tokeniser are its own business. Its precision is that of the settings.
    """
    about = embeddings.states_about(name) | {"layer": layer}
    states = partial(_layer, name, layer, current().dtype)
    label = f"{loading.title(name)}, layer {layer}"
    return Subject(label, "pretrained", language, about, lambda _: states)


def _layer(name: str, layer: int, dtype: str, sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
    # Sent to another process, a model of transformers forgets to keep its hidden states: so each
    # loads its own.
    encoder = loading.load(name, dtype=dtype)
    if not 0 <= layer <= encoder.n_layers:
        raise ValueError(f"{name} has the layers 0 to {encoder.n_layers}, and not {layer}")
    return embeddings.embed(encoder, [" ".join(tokens) for tokens in sentences]).states[layer]


def of_encoder(recipe: EncoderRecipe, lookup: Lookup, language: str, condition: str) -> Subject:
    """One of `sentence_encoders.ENCODERS`, by its recipe, over the words of a lookup."""

    def ready(tasks: Sequence[ProbingTask]) -> Encode:
        words = _word_table(lookup, *tasks)
        return partial(_encoded, recipe.name, recipe.sizes, recipe.state(), words)

    about = {"encoder": recipe.ask, "lookup": lookup.ask}
    return Subject(ENCODER_NAMES[recipe.name], condition, language, about, ready, recipe, lookup)


def _encoded(
    name: str,
    sizes: Sizes,
    state: Mapping[str, np.ndarray],
    words: Look,
    sentences: Sequence[tuple[str, ...]],
) -> np.ndarray:
    return encode(name, sizes, state, Sentences.of(sentences, words))


def of_mean(lookup: Lookup, language: str) -> Subject:
    """The mean of a sentence's word vectors: an encoder that knows no order and is not trained."""

    def ready(tasks: Sequence[ProbingTask]) -> Encode:
        return partial(_mean, _word_table(lookup, *tasks))

    about = {"mean": lookup.ask}
    return Subject("mean of words", "not trained", language, about, ready, lookup=lookup)


def _mean(lookup: Look, sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
    return mean_vectors(Sentences.of(sentences, lookup))


@dataclass(frozen=True)
class WordTable:
    """A lookup of the words that some tasks have: little to send to another process."""

    place: Mapping[str, int]
    vectors: np.ndarray

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """The vectors of words, ``(n, dim)``. Raises KeyError for a word that no task has."""
        return self.vectors[[self.place[word] for word in words]]


@lru_cache(maxsize=16)  # encoders of a language read the same
def _word_table(lookup: Lookup, *tasks: ProbingTask) -> WordTable:
    parts = [part for task in tasks for part in task.parts().values()]
    words = sorted({token for part in parts for tokens in part.tokens for token in tokens})
    return WordTable({word: row for row, word in enumerate(words)}, lookup.load()(words))


#: What `of_function` lets an encoder show: words of several scripts, in two orders.
_SHOWN: tuple[tuple[str, ...], ...] = (
    ("Anna", "sleeps", "."), ("sleeps", "Anna", "."), ("three", "dogs", "bark", "at", "2", "cats"),
    ("Die", "Katze", "sah", "den", "Hund"), ("собаки", "спят"), ("कुत्ता", "सोता", "है"), ("猫",),
)  # fmt: skip


def of_function(encoder: str, language: str, encode: Encode) -> Subject:
    """Any function of tokenised sentences as a subject, such as an encoder of your own.

    It is known by its name and by its vectors of a few sentences (to three digits), so that another
    function of the same name is not taken for it. It has to take any words, and may be sent to
    another process: a function of a module, or a `functools.partial` of one. Raises ValueError
    where it does not give these sentences a vector each.
    """
    vectors = np.asarray(encode(_SHOWN), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(_SHOWN):
        raise ValueError(
            f"{encoder} gives {len(_SHOWN)} sentences vectors of the shape {vectors.shape}: a row "
            "for each is needed"
        )
    scale = np.abs(vectors).max() or 1.0
    shown = hashlib.sha256(np.round(vectors / scale, 3).tobytes()).hexdigest()
    about = {"function": encoder, "width": vectors.shape[1], "vectors": shown}
    return Subject(encoder, "as it is", language, about, lambda _: encode)


# --- what knows nothing ---------------------------------------------------------------------------


def of_random_words(language: str, *, dim: int = 128, seed: int = 0) -> Subject:
    """The mean of a random vector for each word: which words a sentence has, and nothing else.

    A bag of words folded into `dim` numbers, so that the probe of an encoder fits it (Wieting and
    Kiela 2019 use random vectors for the same end). A word's vector depends on the word and `seed`.
    """
    means = partial(_mean, partial(_random_vectors, dim, seed))
    about = {"random words": dim, "seed": seed}
    return Subject("bag of words", "not trained", language, about, lambda _: means)


def _random_vectors(dim: int, seed: int, words: Sequence[str]) -> np.ndarray:
    draws = (np.random.default_rng([seed, zlib.crc32(word.encode())]) for word in words)
    return np.array([draw.standard_normal(dim) for draw in draws])


def of_length(language: str) -> Subject:
    """The number of tokens, and nothing else: what a task gives away by length."""
    about = {"length": "tokens"}
    return Subject("length alone", "not trained", language, about, lambda _: _lengths)


def _lengths(sentences: Sequence[tuple[str, ...]]) -> np.ndarray:
    return np.array([[len(tokens)] for tokens in sentences], dtype=np.float32)
