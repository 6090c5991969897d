"""Which modules a notebook reaches by its imports, so that a change runs no other one again.

    python -I notebooks/run/needs.py    # one line per notebook: abx-1-v.ipynb:xlx/__init__.py,...

Read from the source, nothing is imported: Make asks before there is an environment. A module that
is named needs itself and what it imports, of the rooms on the way their faces alone
(``__init__.py``); a face that is named needs all that it shows.
"""

import ast
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = "xlx"
#: Folders in which a notebook finds what it imports, from the root.
_FOLDERS = (".", "notebooks", "data/models-long")


def _imported(source: str) -> Iterator[str]:
    """Dotted names that a piece of code imports; none of one that has no syntax."""
    with suppress(SyntaxError):  # which the run of the notebook will report
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _imported_by(file: Path) -> tuple[str, ...]:
    return tuple(_imported(file.read_text(encoding="utf-8")))


def _cells(notebook: Path) -> Iterator[str]:
    """The code cells, without lines for IPython and the shell."""
    with suppress(OSError, ValueError, KeyError, TypeError):  # as above
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                lines = "".join(cell["source"]).splitlines()
                yield "\n".join(line for line in lines if not line.startswith(("%", "!")))


def _path_in(name: str, folder: Path) -> list[Path]:
    """The faces on the way to what a dotted name stands for, and the file that holds it, last."""
    files: list[Path] = []
    for part in name.split("."):
        if (folder / f"{part}.py").is_file():
            return [*files, folder / f"{part}.py"]
        if not (folder / part / "__init__.py").is_file():
            break
        folder /= part
        files.append(folder / "__init__.py")
    return files


def modules(notebook: Path, root: Path = _ROOT) -> list[str]:
    """Files that a notebook imports, and that these import, from the root, sorted."""
    files, followed = set(), set()
    waiting = [_PACKAGE, *(name for cell in _cells(notebook) for name in _imported(cell))]
    while waiting:
        name = waiting.pop()
        path = next(filter(None, (_path_in(name, root / folder) for folder in _FOLDERS)), [])
        files.update(path)
        if path and path[-1] not in followed:
            followed.add(path[-1])
            waiting += _imported_by(path[-1])
    return sorted(file.relative_to(root).as_posix() for file in files)


def main() -> None:
    """Print what each notebook needs of the package, as Make reads it."""
    style = [path.relative_to(_ROOT).as_posix() for path in (_ROOT / _PACKAGE).rglob("*.mplstyle")]
    for notebook in sorted((_ROOT / "notebooks").glob("*.ipynb")):
        print(f"{notebook.name}:{','.join(modules(notebook) + style)}")


if __name__ == "__main__":
    main()
