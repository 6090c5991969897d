"""Run a notebook without a browser: ``python -m xlx.run abx-2-dynamics --profile mini``.

A profile is a file ``notebooks/profiles/<profile>.yaml`` with two optional parts::

    defaults:              # for every notebook that declares the parameter
      model: xlm-roberta-base
    notebooks:             # for one notebook; wins over defaults
      abx-2-dynamics:
        n_triplets: 100000

The values go into the notebook after its cell tagged ``parameters`` and replace those written
there. Only what that cell declares can be set, with a value of the same type; anything else is an
error, so that a misspelt key cannot pass unseen. ``null`` is allowed where the cell annotates the
parameter so (``limit: int | None = 300``). The parameters cells hold the ``mini`` profile, so
``mini.yaml`` is empty as a rule.

A notebook learns which profile it runs under from a parameter ``profile = "mini"``, which this
module sets and no profile file may. By convention figures of ``mini`` go to ``figures/``
(committed) and those of any other profile to ``figures/<profile>/``.

The kernel is told the notebook's name (``XLX_NOTEBOOK``), where to note what it asks for
(``XLX_JOURNAL``, ``build/<profile>/asks/``; see `xlx.work`), and where figures are committed
(``XLX_FIGURES``): so only a run from here writes them. ``XLX_FIGURES`` set outside sends them
elsewhere; ``XLX_POLICY`` and the other settings reach the kernel as they are.

The executed notebook appears at ``build/<profile>/<name>.ipynb`` only when every cell has run. A
notebook that fails is kept as ``<name>.failed.ipynb`` beside it, with its traceback; a run that is
killed leaves neither. The kernel runs in the notebook's own folder, as in JupyterLab and nbval.

``--store`` copies the outputs of such a run back into the notebook, so that it can be committed
executed. ``--play`` lays copies of the notebooks in ``playground/``, where no change is committed.
"""

import argparse
import ast
import contextlib
import difflib
import hashlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import nbformat
import papermill
import yaml
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from xlx import paths

KINDS = {"bool": bool, "int": int, "float": float, "str": str, "list": list, "dict": dict}


class NotebookError(ValueError):
    """A notebook or profile that cannot be used; the message says why and what to do."""


class NotebookFailed(RuntimeError):
    """A cell raised an error; the message names the cell, the error and the file kept."""


@dataclass(frozen=True)
class Parameter:
    """One assignment of a parameters cell: value, kinds it may take, line in the cell."""

    value: Any
    kinds: frozenset[str]
    line: int


def notebook_path(stem: str, folder: Path = paths.NOTEBOOKS) -> Path:
    """Return the notebook of that name; FileNotFoundError with the names there are."""
    path = folder / f"{stem}.ipynb"
    if not path.is_file():
        raise FileNotFoundError(f"no notebook {stem!r}: {_choice(stem, _stems(folder))}")
    return path


def parameters(notebook: nbformat.NotebookNode, name: str) -> dict[str, Parameter]:
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
        target = _target(node)
        try:
            if target is None:
                raise ValueError
            value = ast.literal_eval(node.value)
            kinds = _annotated(node) or frozenset({_kind(value)})
        except ValueError:
            raise NotebookError(
                f"the parameters cell of {name} may only assign literals to names, one a line, "
                f"of type {', '.join(KINDS)} or None: line {node.lineno} is {ast.unparse(node)!r}"
            ) from None
        declared[target] = Parameter(value, kinds, node.lineno)
    return declared


def read_profile(name: str, folder: Path = paths.PROFILES) -> dict[str, dict]:
    """Read ``<name>.yaml``: ``{"defaults": {...}, "notebooks": {stem: {...}}}``.

    FileNotFoundError with the names there are; NotebookError if the file has another shape.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        there = sorted(p.stem for p in folder.glob("*.yaml"))
        raise FileNotFoundError(f"no profile {name!r}: {_choice(name, there)}")
    try:
        text = yaml.load(path.read_text(encoding="utf-8"), _Once) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f", line {line + 1}"
        problem = getattr(error, "problem", None) or "not UTF-8 text"
        raise NotebookError(f"{path.name}{where} cannot be read: {problem}") from error
    if not isinstance(text, dict):
        raise NotebookError(f"{path.name} should hold 'defaults:' and 'notebooks:', nothing else")
    for key in text:
        if key not in ("defaults", "notebooks"):
            raise NotebookError(
                f"unknown key {key!r} in {path.name}: {_choice(key, ['defaults', 'notebooks'])}"
            )
    profile = {part: text.get(part) or {} for part in ("defaults", "notebooks")}
    tables = [profile["defaults"], profile["notebooks"]]
    if all(isinstance(t, dict) for t in tables):
        profile["notebooks"] = {stem: t or {} for stem, t in profile["notebooks"].items()}
        tables += profile["notebooks"].values()
    if not all(isinstance(t, dict) for t in tables):
        raise NotebookError(
            f"{path.name} should hold 'defaults: {{parameter: value}}' and "
            "'notebooks: {notebook: {parameter: value}}'"
        )
    return profile


def values_for(
    stem: str,
    profile: str,
    *,
    notebooks: Path = paths.NOTEBOOKS,
    profiles: Path = paths.PROFILES,
) -> dict[str, Any]:
    """Return the parameters to inject into a notebook under a profile.

    Only values that differ from the notebook's own are returned: under ``mini`` there is, as a
    rule, nothing to inject. NotebookError names an unknown key with the nearest allowed one, or a
    value of the wrong type.
    """
    declared = parameters(_read(notebook_path(stem, notebooks)), stem)
    settings = read_profile(profile, profiles)
    file = f"{profile}.yaml"
    stems = _stems(notebooks)
    for other in settings["notebooks"]:
        if other not in stems:
            raise NotebookError(f"unknown notebook {other!r} in {file}: {_choice(other, stems)}")
    chosen = dict(settings["defaults"]) | settings["notebooks"].get(stem, {})
    if "profile" in chosen:
        raise NotebookError(f"{file} sets 'profile', which is set by the runner: take it out")
    for key in settings["notebooks"].get(stem, {}):
        if key not in declared:
            raise NotebookError(
                f"unknown key {key!r} for {stem} in {file}: {_choice(key, sorted(declared))}"
            )
    for key in settings["defaults"]:
        if key not in declared:
            # A default may be meant for other notebooks, but for one of them it must be.
            known = {name for s in stems for name in _names(notebooks / f"{s}.ipynb")}
            if key not in known:
                raise NotebookError(
                    f"unknown key {key!r} in the defaults of {file}: {_choice(key, sorted(known))}"
                )
            del chosen[key]
    for key, value in chosen.items():
        problem = _mismatch(value, declared[key])
        if problem:
            raise NotebookError(f"{key} for {stem} in {file} {problem}")
    if "profile" in declared:
        chosen["profile"] = profile
    return {key: value for key, value in chosen.items() if value != declared[key].value}


def execute(
    stem: str,
    profile: str = "mini",
    *,
    notebooks: Path = paths.NOTEBOOKS,
    profiles: Path = paths.PROFILES,
    build: Path = paths.BUILD,
) -> Path:
    """Execute one notebook under a profile and return the path of the executed copy.

    Raises NotebookFailed when a cell fails or the kernel dies (the notebook so far is then kept as
    ``<stem>.failed.ipynb``), NotebookError or FileNotFoundError before anything runs.
    """
    source = notebook_path(stem, notebooks)
    values = values_for(stem, profile, notebooks=notebooks, profiles=profiles)
    folder = build / profile
    folder.mkdir(parents=True, exist_ok=True)
    done, failed = folder / f"{stem}.ipynb", folder / f"{stem}.failed.ipynb"
    running = folder / f".{stem}.running.ipynb"  # complete only when renamed
    for stale in (done, failed):
        stale.unlink(missing_ok=True)
    # papermill reports on every run through its logger; what matters is printed here.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    environment = {
        "XLX_NOTEBOOK": stem,
        "XLX_JOURNAL": str(fresh_journal(stem, folder).parent),
        "XLX_FIGURES": os.environ.get("XLX_FIGURES") or str(paths.FIGURES),
    }
    try:
        with _environment(environment):
            papermill.execute_notebook(
                source,
                running,
                parameters=values,
                kernel_name="python3",
                cwd=source.parent,
                progress_bar=sys.stderr.isatty(),
                # Without it ipykernel warns, at every start, that others here could listen.
                config=Config(KernelManager={"transport_encryption": "auto"}),
            )
        os.replace(running, done)
    except PapermillExecutionError as error:
        os.replace(running, failed)
        raise NotebookFailed(
            f"{stem} failed in cell [{error.exec_count}]: {error.ename}: {_first(error.evalue)} "
            f"(traceback in {_shown(failed)})"
        ) from error
    except Exception as error:  # the kernel died, the disk is full, ...
        with contextlib.suppress(FileNotFoundError):
            os.replace(running, failed)
        kept = f" (the notebook so far is in {_shown(failed)})" if failed.exists() else ""
        raise NotebookFailed(
            f"{stem} failed: {type(error).__name__}: {_first(error)}{kept}"
        ) from error
    finally:
        running.unlink(missing_ok=True)
    return done


def journal(stem: str, folder: Path) -> Path:
    """Where the run of a notebook into ``build/<profile>`` notes what it asks for."""
    return folder / "asks" / f"{stem}.jsonl"


def fresh_journal(stem: str, folder: Path) -> Path:
    """The same, made empty: also a notebook that asks for nothing has one."""
    path = journal(stem, folder).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def read_journal(path: Path) -> list[dict[str, Any]]:
    """What a notebook asked for, a line an ask; a last line that is being written is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def store_outputs(
    stem: str, *, notebooks: Path = paths.NOTEBOOKS, build: Path = paths.BUILD
) -> Path:
    """Copy the outputs of ``build/mini/<stem>.ipynb`` into the notebook itself; return its path.

    Nothing but outputs and execution counts changes. NotebookError if the executed copy has other
    cells than the notebook, or was given other parameters than the notebook's own.
    """
    source, executed = notebook_path(stem, notebooks), build / "mini" / f"{stem}.ipynb"
    if not executed.is_file():
        raise FileNotFoundError(
            f"{_shown(executed)} is missing: run {stem} under profile mini first"
        )
    notebook, ran = _read(source), _read(executed)
    if [c.source for c in notebook.cells] != [c.source for c in ran.cells]:
        raise NotebookError(
            f"{_shown(executed)} has other cells than {_shown(source)}: run the notebook again, "
            "with a profile that changes no parameter"
        )
    count = 0
    for cell, result in zip(notebook.cells, ran.cells, strict=True):
        if cell.cell_type != "code":
            continue
        # A warning names the line of a file that the kernel made up: no two runs have the same.
        said = [output for output in result.outputs if output.get("name") != "stderr"]
        cell.outputs = _joined_streams(said)
        cell.execution_count = None
        if cell.source.strip():
            count += 1
            cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = cell.execution_count
    part = source.with_name(f".{source.name}.part")
    try:
        nbformat.write(notebook, part)
        os.replace(part, source)
    finally:
        part.unlink(missing_ok=True)
    os.utime(executed)  # still newer than the notebook: Make need not run it again
    return source


def play(
    notebooks: Path = paths.NOTEBOOKS, playground: Path = paths.ROOT / "playground"
) -> tuple[list[str], list[str]]:
    """Lay working copies of the notebooks beside their folder; those laid, and those kept.

    A copy is renewed when its notebook has changed since. One that was changed itself is kept, and
    named if its notebook has changed too.
    """
    playground.mkdir(parents=True, exist_ok=True)
    record = playground / ".copied.json"
    try:
        copied = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        copied = {}
    laid, kept = [], []
    for source in sorted(notebooks.glob("*.ipynb")):
        content, copy = source.read_bytes(), playground / source.name
        digest, before = hashlib.sha256(content).hexdigest(), copied.get(source.stem)
        there = hashlib.sha256(copy.read_bytes()).hexdigest() if copy.is_file() else None
        if there is None or (there == before and there != digest):
            copy.write_bytes(content)
            laid.append(source.stem)
            copied[source.stem] = digest
        elif there != before and before != digest and there != digest:
            kept.append(source.stem)
    record.write_text(json.dumps(copied, indent=1), encoding="utf-8")
    return laid, kept


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, 1 (a notebook failed) or 2 (it could not be run)."""
    parser = argparse.ArgumentParser(prog="python -m xlx.run", description="Execute one notebook.")
    parser.add_argument("notebook", nargs="?", help="its name in notebooks/: abx-2-dynamics")
    parser.add_argument("--profile", default="mini", help="a name in notebooks/profiles/")
    parser.add_argument(
        "--store",
        action="store_true",
        help="do not run, but copy the outputs of the last run into the notebook",
    )
    parser.add_argument("--build", type=Path, default=paths.BUILD, help="where the copy goes")
    parser.add_argument("--play", action="store_true", help="lay working copies in playground/")
    options = parser.parse_args(argv)
    if options.play:
        for name in play()[1]:
            print(
                f"playground/{name}.ipynb was changed by you and notebooks/{name}.ipynb has "
                "changed since: delete your copy to have the new one"
            )
        return 0
    if options.notebook is None:
        parser.error("name a notebook")
    stem = options.notebook.removeprefix("notebooks/").removesuffix(".ipynb")
    began = time.monotonic()
    try:
        if options.store:
            print(f"{stem}: outputs stored in {_shown(store_outputs(stem))}")
            return 0
        with _stopped_by_sigterm():
            path = execute(stem, options.profile, build=options.build)
    except NotebookFailed as error:
        print(error, file=sys.stderr)
        return 1
    except (NotebookError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{stem} was stopped; nothing half-written is left", file=sys.stderr)
        return 130
    print(f"{stem}: {time.monotonic() - began:.0f} s, {_shown(path)}")
    return 0


def _read(path: Path) -> nbformat.NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises many kinds: JSON, encoding, schema
        raise NotebookError(f"{_shown(path)} is no notebook: {_first(error)}") from error


def _stems(folder: Path) -> list[str]:
    return sorted(p.stem for p in folder.glob("*.ipynb"))


def _names(path: Path) -> Iterator[str]:
    """Names a notebook declares; none if it cannot be read, which is for its own run to report."""
    with contextlib.suppress(NotebookError):
        yield from parameters(_read(path), path.stem)


def _target(node: ast.stmt) -> str | None:
    """Name that a statement assigns a value to; None if it does anything else."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    else:
        return None
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _annotated(node: ast.stmt) -> frozenset[str]:
    """Kinds in an annotation: ``int | None`` → int, None; ``list[str]`` → list."""
    annotation = getattr(node, "annotation", None)
    kinds = set()
    while isinstance(annotation, ast.BinOp):
        kinds.add(ast.unparse(annotation.right).split("[")[0])
        annotation = annotation.left
    if annotation is not None:
        kinds.add(ast.unparse(annotation).split("[")[0])
    return frozenset(kinds)


def _kind(value: Any) -> str:
    """Kind of a literal; ValueError for what YAML cannot hold."""
    if value is None:
        return "None"
    for kind, type_ in KINDS.items():
        if type(value) is type_:
            return kind
    raise ValueError(f"{type(value).__name__} is no type of a parameter")


def _mismatch(value: Any, parameter: Parameter) -> str | None:
    """Say what is wrong with the type of a profile's value, or return None."""
    try:
        kind = _kind(value)
    except ValueError:
        kind = type(value).__name__
    allowed = set(parameter.kinds)
    if "float" in allowed:
        allowed.add("int")
    if allowed == {"None"}:  # nothing is known about the type, except for a number read as text
        allowed = {*KINDS, "None"} - ({"str"} if _number(value) else set())
    expected = " or ".join(sorted(parameter.kinds - {"None"})) or "a number"
    if kind not in allowed:
        return f"should be {expected} (as {parameter.value!r}), not {kind} {value!r}{_hint(value)}"
    if kind == "list" and isinstance(parameter.value, list) and parameter.value:
        inner = {type(item) for item in parameter.value}
        if float in inner:
            inner.add(int)
        for item in value:
            if type(item) not in inner:
                expected = " or ".join(sorted(t.__name__ for t in inner))
                return (
                    f"should be a list of {expected} (as {parameter.value!r}), but holds "
                    f"{type(item).__name__} {item!r}{_hint(item)}"
                )
    return None


def _number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


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


def _first(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""


def _shown(path: Path) -> str:
    """Path as a reader in the repository root would type it."""
    return str(path.relative_to(paths.ROOT) if path.is_relative_to(paths.ROOT) else path)


def _joined_streams(outputs: list) -> list:
    """Join neighbouring pieces of one stream: where a kernel cuts them is chance."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Variables for the kernels that start within."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Let a polite kill end the run as Ctrl-C does: the kernel shut down, the half file removed."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
