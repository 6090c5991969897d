"""Recipes of word vectors: named by all that decides them, made or read when they are needed."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from xlx.core import executors, progress, provenance
from xlx.core.ledger import Ask, Cache
from xlx.core.settings import current
from xlx.family import pretraining_text
from xlx.xprobe import parallel_text
from xlx.xprobe.counted_vectors import factorised
from xlx.xprobe.parallel_text import WordVectorsError, file_hash, text_about
from xlx.xprobe.word_vectors import Ngrams, WordVectors, check_there, pretrained

#: Raised by hand when vectors of the same recipe come out otherwise.
VECTORS_VERSION = 1


@dataclass(frozen=True, eq=False)
class VectorRecipe:
    """Word vectors that are made, or read, when they are needed.

    ``ask`` names them by all that decides them, so that what is computed from them can be found
    without them; ``options`` are those of `word_vectors.pretrained` where there is a ``path`` among
    them, else of `counted_vectors.factorised`.
    """

    language: str
    ask: Ask
    options: Mapping[str, Any] = field(repr=False)

    def load(self) -> WordVectors:
        """The vectors. Raises WordVectorsError as what makes or reads them."""
        return load_vectors([self])[0]


def of_pretraining_text(languages: Sequence[str], **options: Any) -> dict[str, VectorRecipe]:
    """Vectors counted on the text of the miniature models, by language (code of the text).

    ``options`` are those of `counted_vectors.factorised`, as `dim` or `min_count`; TypeError for
    another.
    """
    bound = inspect.signature(factorised).bind((), "", **options)
    bound.apply_defaults()
    options = dict(list(bound.arguments.items())[2:])
    about = {
        "method": "counts",
        "options": options,
        "text": text_about(pretraining_text.PRETRAINING_SOURCES),
    }
    return {
        code: VectorRecipe(
            code, Ask("word-vectors", {"language": code} | about, VECTORS_VERSION), options
        )
        for code in languages
    }


def of_file(
    path: str | Path, language: str, *, limit: int = 200_000, dim: int | None = None
) -> VectorRecipe:
    """Vectors of a file of fastText; arguments and errors as `pretrained`."""
    check_there(Path(path), language)
    about = {"language": language, "file": file_hash(Path(path)), "limit": limit, "dim": dim}
    options = {"path": str(path), "limit": limit, "dim": dim}
    return VectorRecipe(language, Ask("word-vectors", about, VECTORS_VERSION), options)


#: By identity, what this process has made or read.
_LOADED: dict[str, WordVectors] = {}


def load_vectors(recipes: Sequence[VectorRecipe]) -> list[WordVectors]:
    """The vectors of some recipes, from the cache of this machine where they are there.

    Raises
    ------
    WordVectorsError
        The text has no line of a language; an option out of its range; as `pretrained`.
    """
    missing = {own.ask.identity: own for own in recipes if own.ask.identity not in _LOADED}
    cache, uncounted = Cache(current().cache), []
    for identity, recipe in missing.items():
        if "path" in recipe.options:
            vectors: WordVectors | None = pretrained(language=recipe.language, **recipe.options)
        else:
            kept = cache.get(_made_here(recipe))
            vectors = None if kept is None else _unpacked(recipe.language, kept.value)
        if vectors is None:
            uncounted.append(recipe)
        else:
            _LOADED[identity] = vectors
    for recipe, vectors in _counted(uncounted):
        cache.put(_made_here(recipe), _packed(vectors))
        _LOADED[recipe.ask.identity] = vectors
    return [_LOADED[recipe.ask.identity] for recipe in recipes]


def _counted(recipes: Sequence[VectorRecipe]) -> Iterator[tuple[VectorRecipe, WordVectors]]:
    if not recipes:
        return
    lines = pretraining_text.by_language(parallel_text.shipped_text())
    for recipe in recipes:
        if recipe.language not in lines:
            known = ", ".join(sorted(lines))
            raise WordVectorsError(f"the text has no line of {recipe.language!r}: choose {known}")
    # The longest first, so that no process is left alone with it at the end.
    recipes = sorted(recipes, key=lambda own: -sum(map(len, lines[own.language])))
    calls = [
        (number, (lines[own.language], own.language, own.options))
        for number, own in enumerate(recipes)
    ]
    with progress.bar(what="word vectors", total=len(calls)) as bar:
        for number, _, vectors, _ in executors.run(_made, calls, alone=True, side_by_side=True):
            yield recipes[number], vectors
            bar.update()


def _made(lines: Sequence[str], language: str, options: Mapping[str, Any]) -> WordVectors:
    return factorised(lines, language, **options)


def _made_here(recipe: VectorRecipe) -> Ask:
    """Of the machine's cache: besides the recipe, what makes vectors out of it here."""
    libraries = {name: version(name) for name in ("gensim", "sacremoses", "scipy")}
    made_by = {"ask": recipe.ask.text, "code": provenance.code_hash(factorised)}
    return Ask("words", made_by | {"libraries": libraries})


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


def _unpacked(language: str, arrays: dict[str, np.ndarray]) -> WordVectors:
    ngrams = None
    if "ngrams" in arrays:
        ngrams = Ngrams(arrays["ngrams"], *arrays["lengths"].tolist())
    words = tuple(arrays["words"].tobytes().decode("utf-8").split("\n"))
    return WordVectors(language, words, arrays["vectors"], ngrams)
