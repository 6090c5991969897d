"""What a result was made by and with: recorded beside it, never part of its name."""

import ast
import csv
import hashlib
import inspect
import io
import platform
import re
import subprocess
import sys
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from xlx.results import paths
from xlx.results.settings import usual_device

PACKAGE = "xlx"
#: Folders of the repository whose modules compute, too; the package itself may lie elsewhere.
BESIDE = ("notebooks", "data/models-long")
#: Modules that keep, find and show results, say where a model lies, or refuse what is asked: they
#: move no number.
AROUND = (
    *("xlx.results.settings", "xlx.results.progress", "xlx.results.provenance"),
    *("xlx.results.store", "xlx.results.ledger", "xlx.results.work", "xlx.results.paths"),
    *("xlx.results.checks", "xlx.subjects.identity"),
)
#: The columns of provenance, in order.
PROVENANCE = (
    "code",
    "xlx",
    "torch",
    "transformers",
    "python",
    "cpu",
    "device",
    "threads",
    "seconds",
    "commit",
    "date",
    "predictions",
)


def code_hash(function: Callable[..., Any]) -> str:
    """SHA-256 over the closure of a function, 16 hexadecimal digits, under every Python the same.

    That is the function, the project's functions, classes (with all methods) and constants that it
    names, those that these name, and so on, without comments, docstrings and layout. In which
    module something stands does not count; of an object whose class is not named nothing is known.
    """
    parts = sorted(_closure(function).values())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def _closure(function: Callable[..., Any]) -> dict[str, str]:
    """Name → source without comments and layout, or a constant's value."""
    sources = {}
    waiting = [("", function)]
    while waiting:
        name, part = waiting.pop()
        part = part.fget if isinstance(part, property) else part
        part = inspect.unwrap(part) if callable(part) else part
        if isinstance(part, FunctionType | type):
            where = f"{part.__module__}.{part.__qualname__}"
            if where not in sources and _ours(part.__module__):
                sources[where] = _bare(part)
                waiting += _named(part)
        elif name and _constant(part):
            sources[name] = f"{name.rpartition('.')[2]}={part!r}"
    return sources


@cache
def _ours(module: str | None) -> bool:
    """Whether a module is the project's: of the package, or in a folder beside it that computes."""
    if not module or module in AROUND:
        return False
    if module.split(".")[0] == PACKAGE:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return bool(file) and any(Path(file).is_relative_to(paths.ROOT / each) for each in BESIDE)


def _constant(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_constant, value))
    if isinstance(value, dict):
        return all(_constant(key) and _constant(item) for key, item in value.items())
    return isinstance(value, bool | int | float | str | bytes | None | re.Pattern)


def _named(part: FunctionType | type) -> Iterator[tuple[str, Any]]:
    """What its source names, of the module's names; not ``__path__``, where the code lies."""
    module, tree = sys.modules[part.__module__], ast.parse(_source(part))
    known = {name: part for name, part in vars(module).items() if not name.startswith("__")}
    imported = {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in known and node.id not in imported:
            yield f"{module.__name__}.{node.id}", known[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = known.get(node.value.id)
            if isinstance(owner, ModuleType) and _ours(owner.__name__):
                yield f"{owner.__name__}.{node.attr}", getattr(owner, node.attr, None)
    for name, source in imported.items():
        if source in sys.modules and _ours(source):
            yield f"{source}.{name}", getattr(sys.modules[source], name, None)


@cache
def _source(part: FunctionType | type) -> str:
    # what refuses arguments moves no number
    return re.sub(r"^ *@checks\..*\n", "", textwrap.dedent(inspect.getsource(part)), flags=re.M)


def _bare(part: FunctionType | type) -> str:
    """Source without docstrings, comments, white space and the commas that only layout needs.

    Cut from the text itself: neither `ast.dump` nor `ast.unparse` says the same in two versions.
    """
    lines = _source(part).splitlines()
    cut = []
    for node in ast.walk(ast.parse(_source(part))):
        documented = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            prose = node.body[0]
            cut.append((prose.lineno, prose.col_offset, prose.end_lineno, None))
    for token in tokenize.generate_tokens(io.StringIO(_source(part)).readline):
        if token.type == tokenize.COMMENT:
            cut.append((*token.start, *token.end))
    for first, start, last, end in sorted(cut, key=lambda place: place[:3], reverse=True):
        tail = "" if end is None else lines[last - 1][end:]
        lines[first - 1 : last] = [lines[first - 1][:start] + tail]
    return re.sub(r",([)\]}])", r"\1", re.sub(r"\s+", "", "".join(lines)))


def predictions_of(ask: str) -> dict[str, str]:
    """``predictions``: SHA-256 of what was foreseen of the held-out model in an ask, if any.

    `data/predictions` has a table for each such model.
    """
    return dict([("predictions", content) for model, content in _predicted() if model in ask][:1])


@cache
def _predicted() -> list[tuple[str, str]]:
    """Fingerprint of a held-out model, and the hash of its table."""
    table = paths.DATA / "models-public" / "models.tsv"
    if not table.is_file():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        models = [*csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    files = [(x["fingerprint"], paths.DATA / "predictions" / f"{x['name']}.csv") for x in models]
    return [
        (model, hashlib.sha256(file.read_bytes()).hexdigest())
        for model, file in files
        if file.is_file()
    ]


def environment() -> dict[str, str | int]:
    """Versions, processor, device, threads, commit and date, as columns of a result."""
    import torch

    device = usual_device()
    return {
        **{name: _version(name) for name in (PACKAGE, "torch", "transformers")},
        "python": platform.python_version(),
        "cpu": cpu(),
        "commit": commit(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "threads": torch.get_num_threads(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


@cache
def _version(package: str) -> str:
    return version(package).split("+")[0]  # "+cpu" names a wheel, not another torch


@cache
def cpu() -> str:
    """What the processor calls itself; "?" where it does not say."""
    info = Path("/proc/cpuinfo")
    text = info.read_text("utf-8") if info.is_file() else ""
    named = re.search(r"model name\s*:\s*(.+)", text)
    return named[1].strip() if named else platform.processor() or platform.machine() or "?"


@cache
def commit() -> str:
    """The commit of the repository, with "+" where files have changed since; "" outside git."""
    try:
        call = {"cwd": paths.ROOT, "capture_output": True, "text": True, "timeout": 10}
        head = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], **call)
        changed = subprocess.run(["git", "status", "--porcelain", "--", PACKAGE], **call)
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


@cache
def package_hash() -> str:
    """SHA-256 over the source of the whole package: two that differ may compute differently."""
    digest = hashlib.sha256()
    folder = paths.ROOT / PACKAGE
    for file in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
