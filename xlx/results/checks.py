"""What public functions refuse at the door: checks that several of them share, a sentence each."""

import functools
import inspect
import os
import re
import types
import typing
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray

from xlx.results.deferred import deferred

sparse = deferred("scipy.sparse")
Made = TypeVar("Made", bound=Callable[..., Any])

#: What an annotation asks for, in words; others by the name of their class.
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    ndarray: "a numpy array of numbers, without a mask",
    os.PathLike: "a path",
    Path: "a path",
    object: "a single value",
    type(None): "None",
}


def typed(
    kind: type[ValueError] = ValueError, **further: Callable[[Any], object]
) -> Callable[[Made], Made]:
    """Refuse, by a sentence, arguments of a function (fields of a class) that are not as annotated.

    Numbers of numpy are numbers, a truth value is none; text is no list, arrays of one axis and
    columns of pandas are; an array with a mask is no array, as what is masked would count. Where
    arrays are due, tensors and lists of numbers are made such (`as_arrays`). What ``further`` has
    for a name is asked first.
    """

    def decorate(made: Made) -> Made:
        function = made.__init__ if isinstance(made, type) else made
        signature = inspect.signature(function)
        hint = lru_cache(lambda name: _hint(function, name))  # of what is given: some import torch

        @functools.wraps(function)
        def checked(*given: Any, **named: Any) -> Any:
            try:
                bound = signature.bind(*given, **named)
            except TypeError:  # the call itself says which argument is missing
                return function(*given, **named)
            arguments = bound.arguments
            for name, value in arguments.items():
                due = name in further or not _fits(value, hint(name))
                if due and _fits(array := as_arrays(value), hint(name)):
                    arguments[name] = array
            for name in further.keys() & arguments.keys():
                further[name](arguments[name])
            for name in arguments:
                named_so = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
                values = arguments[name] if named_so else {name: arguments[name]}
                for word, value in values.items():
                    if not _fits(value, hint(name)):
                        raise kind(f"{word} is {shown(value)}: give {_in_words(hint(name))}")
            return function(*bound.args, **bound.kwargs)

        if isinstance(made, type):
            made.__init__ = checked
            return made
        return checked

    return decorate


def _hint(function: Callable[..., Any], name: str) -> Any:
    """What annotates a parameter; Any where that cannot be made of its text."""
    single = types.SimpleNamespace(__annotations__={name: function.__annotations__.get(name, Any)})
    with suppress(TypeError):
        return typing.get_type_hints(single, function.__globals__)[name]
    return Any


def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What an annotation is of, and what that holds."""
    return typing.get_origin(hint) or hint, typing.get_args(hint)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; the items of a list or mapping, too."""
    kind, inner = _parts(hint)
    if kind in (types.UnionType, typing.Union):
        return any(_fits(value, part) for part in inner)
    if isinstance(hint, TypeVar):
        return hint.__bound__ is None or isinstance(value, hint.__bound__)
    if not isinstance(kind, type) or kind is Any:
        return True
    if kind is object:
        return isinstance(value, Hashable)  # a label or an option, no list or table
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is ndarray:
        plain = isinstance(value, ndarray) and not isinstance(value, np.ma.MaskedArray)
        return plain and value.dtype.kind in "biuf"
    if issubclass(kind, Mapping):
        keys_and_values = zip(inner, (Mapping.keys, Mapping.values), strict=False)
        return isinstance(value, Mapping) and all(
            _all_fit(items(value), part) for part, items in keys_and_values
        )
    if issubclass(kind, Iterable) and inner and kind is not type:
        single = isinstance(value, str | bytes | np.ma.MaskedArray)
        single |= isinstance(value, Mapping) and issubclass(kind, Sized)
        if single or not isinstance(value, Iterable) or getattr(value, "ndim", 1) != 1:
            return False
        if kind is tuple and not isinstance(value, tuple | list):  # to be kept, and compared
            return False
        if kind is tuple and inner[-1] is not Ellipsis:
            return len(value) == len(inner) and all(map(_fits, value, inner))
        # An iterator can be read once, and is left to who reads it.
        sized = isinstance(value, Sized)
        return _all_fit(value, inner[0]) if sized else not issubclass(kind, Sized)
    return isinstance(value, kind)


def _all_fit(values: Iterable[Any], hint: Any) -> bool:
    """Whether all values fit; plain ones are looked at once a type."""
    if hint in (str, int, float, bool):
        values = {type(value): value for value in values}.values()
    return all(_fits(value, hint) for value in values)


def _in_words(hint: Any) -> str:
    """What an annotation asks for."""
    kind, inner = _parts(hint)
    if kind in (types.UnionType, typing.Union):
        return " or ".join(dict.fromkeys(map(_in_words, inner)))
    if not isinstance(kind, type) or kind is Any:
        return "anything"
    if issubclass(kind, Mapping):
        return "a dictionary" + f" of {_in_words(inner[-1])}" * bool(inner)
    if issubclass(kind, Iterable) and inner:
        return f"a list of {_in_words(inner[0])}"
    return _WORDS.get(kind, kind.__name__)


def several(values: Any, what: str, kind: type[ValueError] = ValueError) -> list[Any]:
    """The values as a list: no string or single value, but some, and each once."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise kind(
            f"{what} are due in a list, and {shown(values)} is none: give [...], also of one"
        )
    values = list(values)
    if not values:
        raise kind(f"no {what} are given: name one or more")
    for i, value in enumerate(values):
        if value in values[:i]:
            raise kind(f"{what}: {shown(value)} is given twice")
    return values


def reason(error: Exception) -> str:
    """What an error says, in a line; by its name where it says nothing."""
    return str(error).strip().partition("\n")[0][:500] or type(error).__name__


def shown(value: Any) -> str:
    """A value in a message: in one line, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


_HALF = re.compile("[\ud800-\udfff]")


def whole_characters(texts: Iterable[Any], where: str, kind: type[ValueError] = ValueError) -> None:
    """Refuse texts, or rows of them, with half a character (a lone surrogate of UTF-16)."""
    for joined in (texts, map("".join, texts)):  # the quick way to find none
        with suppress(TypeError, UnicodeEncodeError):
            "".join(joined).encode()
            return
    for position, row in enumerate(texts):
        if half := next(filter(None, map(_HALF.search, _strings(row))), None):
            what = f"{half[0]!r} is half a character; write the whole one"
            raise kind(f"{where}, position {position}: {what}")


def _strings(row: Any) -> Iterator[str]:
    """The strings in a row that are not of ASCII alone."""
    if isinstance(row, str) and not row.isascii():
        yield row
    elif isinstance(row, tuple | list):
        for part in row:
            yield from _strings(part)


def layers(chosen: Sequence[int] | None, n_layers: int, *, from_last: bool = False) -> list[int]:
    """The layers as asked for, or all; with `from_last`, negative ones count from the last."""
    if chosen is None:
        return list(range(n_layers))
    known = range(-n_layers if from_last else 0, n_layers)
    for layer in [*chosen] or ["given"]:
        if layer not in known:
            raise ValueError(
                f"there is no layer {layer}: choose among 0 (embeddings) to {n_layers - 1}"
            )
    return [layer % n_layers for layer in chosen]


def level(value: float) -> float:
    """The level of an interval, a share."""
    if not (isinstance(value, Real) and 0 < value < 1):
        raise ValueError(f"level is {shown(value)}: give a share between 0 and 1, such as 0.95")
    return value


def language_pairs(chosen: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs of two languages, each pair once."""
    pairs = [*map(tuple, chosen)]
    for pair in pairs:
        if pair[0] == pair[1]:
            raise ValueError(f"{pair} is no pair: give two different languages")
    return several(pairs, "pairs of languages")


def one_of(
    value: Any, known: Iterable[str], what: str, kind: type[ValueError] = ValueError
) -> None:
    """A name among those that there are."""
    known = list(known)
    if value not in known:
        choice = ", ".join(map(str, known)) or "among none"
        raise kind(f"there is no {what} {shown(value)}: choose {choice}")


def whole(value: Any, what: str, kind: type[ValueError] = ValueError, least: int = 1) -> None:
    """A whole number that is large enough, or None."""
    if value is not None and (not _fits(value, int) or value < least):
        raise kind(f"{what} is {shown(value)}: it must be a whole number, {least} or more")


def as_arrays(values: Any) -> Any:
    """Arrays of tensors, of lists and of tables of numbers.

    bfloat16, which numpy has not, becomes float32. Also by language, in a dictionary; what is none
    of these stays as it is, and so does a list that mixes numbers and truth values.
    """
    if isinstance(values, Mapping):
        return {name: as_arrays(x) for name, x in values.items()}
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        return (values.float() if "bfloat16" in str(values.dtype) else values).numpy()
    if isinstance(values, list | tuple):
        rows = [*map(as_arrays, values)]
        whole = not any(isinstance(x, list | tuple) for x in rows)
        kinds = {np.asarray(x).dtype.kind for x in rows if whole}
        with suppress(ValueError):  # rows of several lengths are no array
            return np.asarray(rows) if kinds and (kinds == {"b"} or kinds <= {*"iuf"}) else values
    return values


def arrays(states: Mapping[str, Any]) -> None:
    """Vectors by language: arrays of real numbers, all of two axes or all of three."""
    if not isinstance(states, Mapping):
        raise ValueError(
            f"vectors are due by language, in a dictionary, and {shown(states)} is none"
        )
    first, shape = next(((x, getattr(array, "shape", ())) for x, array in states.items()), ("", ()))
    for language, array in states.items():
        problem = None
        if not (isinstance(array, ndarray) or sparse.issparse(array)):
            problem = f"are a {type(array).__name__}: give a numpy array"
        elif isinstance(array, np.ma.MaskedArray):
            problem = "have a mask: fill in what it hides, or leave these sentences out"
        elif array.dtype.kind not in "biuf":
            problem = f"are of the type {array.dtype}: give real numbers"
        elif array.ndim not in (2, 3) or array.shape[:-2] != shape[:-2]:
            problem = f"have the shape {array.shape} and those of {first} {shape}: give of one "
            problem += "model (n_layers + 1, n_sentences, dim), or of one layer (n_sentences, dim)"
        if problem:
            raise ValueError(f"the vectors of {language} {problem}")


class TextWarning(UserWarning):
    """Text of which a model sees a part only."""


ILLEGIBLE = 0.05  # the share from which on it is said


def legible(model: str, corpus: str, shares_of: Mapping[str, Mapping[str, float]]) -> None:
    """Warn of languages of which more than `ILLEGIBLE` is lost: what is lost → language → share."""
    problems = []
    for what, shares in shares_of.items():
        over = sorted((x for x in shares if shares[x] > ILLEGIBLE), key=shares.get, reverse=True)
        if over:
            some = ", ".join(f"{language} {shares[language]:.0%}" for language in over[:8])
            more = f" and {len(over) - 8} languages more" if len(over) > 8 else ""
            problems.append(f"{what}: {some}{more}")
    if problems:
        warnings.warn(
            f"{model!r} does not read all of {corpus!r} ({'; '.join(problems)}): scores of these "
            "languages are of what is left; take a model that knows their script, or shorter text",
            TextWarning,
            stacklevel=3,
        )


def regular(file: Path, kind: type[Exception]) -> None:
    """A file that can be read to its end: a pipe would wait for ever."""
    if not file.is_file():
        what = "a link to nothing" if file.is_symlink() else "a pipe, a device or the like"
        raise kind(f"{file} is {what}: give a file")


def on_record(path: Path, digest: str, record: Path) -> None:
    """A file below the folder of a record (of ``sha256sum``) is the one that it names, if any."""
    name = os.path.relpath(path, record.parent).replace(os.sep, "/")
    if _record(record).get(name, digest) != digest:
        raise ValueError(
            f"{path} is not the file on record in {record.name}: restore {record.parent} from the "
            "repository"
        )


@lru_cache
def _record(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def device(name: Any) -> Any:
    """The torch device of a name, if this machine has it."""
    import torch

    chosen = None
    with suppress(RuntimeError, TypeError):
        chosen = torch.device(name)
    if chosen is None or chosen.type not in ("cpu", "cuda"):
        raise ValueError(f"device {str(name)!r} is not known: use 'cpu', 'cuda' or 'cuda:1'")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        there = torch.cuda.device_count() or "no"
        raise ValueError(f"device {str(name)!r}: torch sees {there} CUDA device here; use 'cpu'")
    return chosen
