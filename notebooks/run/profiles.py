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
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import yaml

from xlx.results import paths

if TYPE_CHECKING:
    from nbformat import NotebookNode


#: Types of a parameter: what YAML can hold.
LITERALS = ("bool", "int", "float", "str", "list", "dict", "None")


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
        raise NotebookError(f"the parameters cell of {name} is not Python: {error}") from error
    declared = {}
    for node in body:
        try:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            (target,), value = targets, ast.literal_eval(node.value)
            kinds = [_kind(value)]
            if isinstance(node, ast.AnnAssign):  # int | None → int, None; list[str] → list
                kinds = [x.split("[")[0] for x in ast.unparse(node.annotation).split(" | ")]
            if isinstance(node, ast.AugAssign) or _kind(value) not in LITERALS:
                raise ValueError
            declared[target.id] = Parameter(value, frozenset(kinds))
        except (ValueError, AttributeError):
            raise NotebookError(
                f"the parameters cell of {name} may only assign literals to names, one a line, "
                f"of type {', '.join(LITERALS)}: line {node.lineno} is {ast.unparse(node)!r}"
            ) from None
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
        text = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise NotebookError(f"{path.name} cannot be read: {reason}") from error
    parts = text if isinstance(text, dict) else {"": text}
    defaults, notebooks = (parts.pop(part, None) or {} for part in ("defaults", "notebooks"))
    inner = notebooks.values() if isinstance(notebooks, dict) else [notebooks]
    if parts or not all(isinstance(each or {}, dict) for each in (defaults, *inner)):
        raise NotebookError(
            f"{path.name} should hold 'defaults: {{parameter: value}}' and "
            "'notebooks: {notebook: {parameter: value}}', nothing else"
        )
    notebooks = {stem: values or {} for stem, values in notebooks.items()}
    return {"defaults": defaults, "notebooks": notebooks}


def values_for(stem: str, profile: str) -> dict[str, Any]:
    """The parameters to inject into a notebook under a profile: those that differ from its own.

    NotebookError names an unknown key with the nearest allowed one, or a value of the wrong type.
    """
    declared = parameters(read_notebook(notebook_path(stem)), stem)
    settings, file, stems = read_profile(profile), f"{profile}.yaml", _stems()
    defaults, chosen = settings["defaults"], settings["notebooks"].get(stem, {})
    _check_known(settings["notebooks"], stems, f"notebook {{!r}} in {file}")
    if "profile" in {**defaults, **chosen}:
        raise NotebookError(f"{file} sets 'profile', which is set by the runner: take it out")
    _check_known(chosen, declared, f"key {{!r}} for {stem} in {file}")
    if not defaults.keys() <= declared.keys():
        # A default may be meant for other notebooks, but for one of them it must be.
        known = set(declared)
        for other in stems:
            with contextlib.suppress(NotebookError):  # which is for its own run to report
                known |= parameters(read_notebook(notebook_path(other)), other).keys()
        _check_known(defaults, known, f"key {{!r}} in the defaults of {file}")
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


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


_HINT = "YAML reads 1e-3 as text: write 1.0e-3; and a bare no, off, yes, on as a truth value: quote"


def _mismatch(value: Any, parameter: Parameter) -> str | None:
    """Say what is wrong with the type of a profile's value, or return None."""
    parts = [("", value, parameter.kinds)]
    if isinstance(value, list) and isinstance(parameter.value, list) and parameter.value:
        parts += [("list of ", x, {_kind(y) for y in parameter.value}) for x in value]
    for what, part, allowed in parts:
        kind = _kind(part)
        known = kind in allowed or (kind == "int" and "float" in allowed)
        if not known and allowed != {"None"}:  # of which nothing is known
            due = " or ".join(sorted(allowed - {"None"}))
            given = f"(as {parameter.value!r}), not {kind} {part!r} ({_HINT})"
            return f"should be {what}{due} {given}"
    return None


def _check_known(names: Any, there: Any, what: str) -> None:
    """Refuse a name that there is not."""
    for name in names:
        if name not in there:
            raise NotebookError(f"unknown {what.format(name)}: {_choice(name, sorted(there))}")


def _choice(name: Any, there: list[str]) -> str:
    """Name the nearest of the names there are, and all of them."""
    near = difflib.get_close_matches(str(name), there, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}There {'is' if len(there) == 1 else 'are'}: {', '.join(there) or 'none'}"


def first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def shown(path: Path) -> str:
    """Path as a reader in the repository root would type it."""
    return str(path.relative_to(paths.ROOT) if path.is_relative_to(paths.ROOT) else path)
