"""What a notebook lets be set, and the profiles that set it.

A profile is a file ``notebooks/profiles/<profile>.yaml`` with two optional parts::

    defaults:              # for every notebook that declares the parameter
      model: xlm-roberta-base
    notebooks:             # for one notebook; wins over defaults
      abx-2-dynamics:
        n_triplets: 100000

The values replace those of the notebook's cell tagged ``parameters``, which holds the ``mini``
profile. Only what that cell declares can be set, with a value of the same type (``null`` where it
is annotated so: ``limit: int | None = 300``); anything else is an error, so that a misspelt key
cannot pass unseen. A parameter ``profile = "mini"`` tells the notebook its profile: no file sets
that.
"""

import ast
import contextlib
import difflib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import yaml

from xlx.results import paths

if TYPE_CHECKING:
    from nbformat import NotebookNode


#: Types of a parameter, beside None: what YAML can hold.
LITERALS = ("bool", "int", "float", "str", "list", "dict")


class NotebookError(ValueError):
    """A notebook or profile that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Parameter:
    """One assignment of a parameters cell: its value, and the kinds it may take."""

    value: Any
    kinds: frozenset[str]


def notebook_path(stem: str) -> Path:
    """The notebook of that name; FileNotFoundError with the names there are."""
    path = paths.NOTEBOOKS / f"{stem}.ipynb"
    if not path.is_file():
        raise FileNotFoundError(f"no notebook {stem!r}: {_choice(stem, _stems())}")
    return path


def parameters(notebook: "NotebookNode", name: str) -> dict[str, Parameter]:
    """Read what the notebook's one cell tagged ``parameters`` declares.

    NotebookError if there is no such cell or more than one, or if it holds anything but assignments
    of literals that YAML can hold too (no tuples, no sets) to plain names.
    """
    cells = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    if len(cells) != 1 or cells[0].cell_type != "code":
        raise NotebookError(
            f"{name} has {len(cells)} code cells tagged 'parameters': tag exactly one "
            "(in JupyterLab: the gear at the top right, 'Cell tags')"
        )
    try:
        body = ast.parse(cells[0].source).body
    except SyntaxError as error:
        raise NotebookError(
            f"the parameters cell of {name} is not Python: {error.msg}, line {error.lineno}"
        ) from error
    declared = {}
    for node in body:
        try:
            target, value = _name_assigned(node), ast.literal_eval(node.value)
            if _kind(value) not in (*LITERALS, "None"):
                raise ValueError
        except (ValueError, AttributeError):
            raise NotebookError(
                f"the parameters cell of {name} may only assign literals to names, one a line, "
                f"of type {', '.join(LITERALS)} or None: line {node.lineno} is "
                f"{ast.unparse(node)!r}"
            ) from None
        declared[target] = Parameter(value, _annotated(node) or frozenset({_kind(value)}))
    return declared


def read_profile(name: str) -> dict[str, dict]:
    """Read ``<name>.yaml``: ``{"defaults": {...}, "notebooks": {stem: {...}}}``.

    FileNotFoundError with the names there are; NotebookError if the file has another shape.
    """
    path = paths.PROFILES / f"{name}.yaml"
    if not path.is_file():
        there = sorted(p.stem for p in paths.PROFILES.glob("*.yaml"))
        raise FileNotFoundError(f"no profile {name!r}: {_choice(name, there)}")
    try:
        text = yaml.load(path.read_text(encoding="utf-8"), _Once) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f", line {line + 1}"
        problem = getattr(error, "problem", None) or "not UTF-8 text"
        raise NotebookError(f"{path.name}{where} cannot be read: {problem}") from error
    parts = ["defaults", "notebooks"]
    problem = NotebookError(
        f"{path.name} should hold 'defaults: {{parameter: value}}' and "
        "'notebooks: {notebook: {parameter: value}}', nothing else"
    )
    if not isinstance(text, dict):
        raise problem
    for key in text:
        if key not in parts:
            raise NotebookError(f"unknown key {key!r} in {path.name}: {_choice(key, parts)}")
    defaults, notebooks = (text.get(part) or {} for part in parts)
    if not (isinstance(defaults, dict) and isinstance(notebooks, dict)):
        raise problem
    notebooks = {stem: values or {} for stem, values in notebooks.items()}
    if not all(isinstance(values, dict) for values in notebooks.values()):
        raise problem
    return {"defaults": defaults, "notebooks": notebooks}


def values_for(stem: str, profile: str) -> dict[str, Any]:
    """The parameters to inject into a notebook under a profile: those that differ from its own.

    NotebookError names an unknown key with the nearest allowed one, or a value of the wrong type.
    """
    declared = parameters(read_notebook(notebook_path(stem)), stem)
    settings, file, stems = read_profile(profile), f"{profile}.yaml", _stems()
    for other in settings["notebooks"]:
        if other not in stems:
            raise NotebookError(f"unknown notebook {other!r} in {file}: {_choice(other, stems)}")
    defaults, chosen = settings["defaults"], settings["notebooks"].get(stem, {})
    if "profile" in {**defaults, **chosen}:
        raise NotebookError(f"{file} sets 'profile', which is set by the runner: take it out")
    for key in chosen:
        if key not in declared:
            raise NotebookError(
                f"unknown key {key!r} for {stem} in {file}: {_choice(key, sorted(declared))}"
            )
    if foreign := [key for key in defaults if key not in declared]:
        # A default may be meant for other notebooks, but for one of them it must be.
        known = {name for other in stems for name in _names(other)}
        for key in foreign:
            if key not in known:
                raise NotebookError(
                    f"unknown key {key!r} in the defaults of {file}: {_choice(key, sorted(known))}"
                )
    values = {key: value for key, value in {**defaults, **chosen}.items() if key in declared}
    for key, value in values.items():
        if problem := _mismatch(value, declared[key]):
            raise NotebookError(f"{key} for {stem} in {file} {problem}")
    if "profile" in declared:
        values["profile"] = profile
    return {key: value for key, value in values.items() if value != declared[key].value}


def notebook_format() -> ModuleType:
    """The library nbformat, without the grammar of web addresses that is built for its schemas.

    It takes jsonschema two seconds of each start; without it, addresses are not checked.
    """
    sys.modules.setdefault("rfc3987_syntax", None)
    import nbformat

    return nbformat


def read_notebook(path: Path) -> "NotebookNode":
    """A notebook; NotebookError where the file holds none."""
    try:
        return notebook_format().read(path, as_version=4)
    except Exception as error:  # nbformat raises many kinds: JSON, encoding, schema
        raise NotebookError(f"{shown(path)} is no notebook: {first_line(error)}") from error


def _stems() -> list[str]:
    return sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))


def _names(stem: str) -> Iterator[str]:
    """Names a notebook declares; none if it cannot be read, which is for its own run to report."""
    with contextlib.suppress(NotebookError):
        yield from parameters(read_notebook(notebook_path(stem)), stem)


def _name_assigned(node: ast.stmt) -> str:
    """Name that a statement assigns a value to; ValueError if it does anything else."""
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        raise ValueError
    return targets[0].id


def _annotated(node: ast.stmt) -> frozenset[str]:
    """Kinds in an annotation: ``int | None`` → int, None; ``list[str]`` → list."""
    annotation = getattr(node, "annotation", None)
    parts = ast.unparse(annotation).split(" | ") if annotation is not None else []
    return frozenset(part.split("[")[0] for part in parts)


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _mismatch(value: Any, parameter: Parameter) -> str | None:
    """Say what is wrong with the type of a profile's value, or return None."""
    kind, allowed = _kind(value), set(parameter.kinds)
    if "float" in allowed:
        allowed.add("int")
    if allowed == {"None"}:  # nothing is known about the type, except for a number read as text
        allowed = {*LITERALS, "None"} - ({"str"} if _number(value) else set())
    expected = " or ".join(sorted(parameter.kinds - {"None"})) or "a number"
    if kind not in allowed:
        return f"should be {expected} (as {parameter.value!r}), not {kind} {value!r}{_hint(value)}"
    if kind == "list" and isinstance(parameter.value, list) and parameter.value:
        inner = {_kind(item) for item in parameter.value}
        inner |= {"int"} if "float" in inner else set()
        for item in value:
            if _kind(item) not in inner:
                return (
                    f"should be a list of {' or '.join(sorted(inner))} (as {parameter.value!r}), "
                    f"but holds {_kind(item)} {item!r}{_hint(item)}"
                )
    return None


def _number(value: Any) -> bool:
    """Whether text is a number."""
    with contextlib.suppress(TypeError, ValueError):
        float(value)
        return isinstance(value, str)
    return False


def _hint(value: Any) -> str:
    if _number(value):
        return " (YAML reads 1e-3 as text: write 1.0e-3)"
    if isinstance(value, bool):
        return " (YAML reads a bare no, off, yes, on as a truth value: put it in quotes)"
    return ""


def _choice(name: Any, there: list[str]) -> str:
    """Name the nearest of the names there are, and all of them while they are few."""
    if not there:
        return "there is none"
    near = difflib.get_close_matches(str(name), there, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}There {'is' if len(there) == 1 else 'are'}: {', '.join(there)}"


class _Once(yaml.SafeLoader):
    """YAML in which no key stands twice: of two, the last would win without a word."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict:
        seen: list[str] = []
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands there twice", key.start_mark
                )
            seen.append(key.value)
        return super().construct_mapping(node, deep)


def first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def shown(path: Path) -> str:
    """Path as a reader in the repository root would type it."""
    return str(path.relative_to(paths.ROOT) if path.is_relative_to(paths.ROOT) else path)
