"""Which modules a notebook reaches by its imports, so that a change runs no other one again.

    python -I xlx/needs.py    # a line a notebook: abx-1-validation.ipynb:xlx/abx.py,xlx/work.py

Read from the source, nothing is imported: Make asks before there is an environment.
"""

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "xlx"


@cache
def _imported_by(file: Path) -> tuple[str, ...]:
    return tuple(_imported(file.read_text(encoding="utf-8")))


def _imported(source: str) -> Iterator[str]:
    """Names of the package's modules in a piece of code; none of one that cannot be parsed."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # which the run of the notebook will report
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith(f"{PACKAGE}."))


def _cells(notebook: Path) -> Iterator[str]:
    """The code cells, without lines for IPython and the shell."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            if cell["cell_type"] == "code":
                lines = "".join(cell["source"]).splitlines()
                yield "\n".join(line for line in lines if not line.startswith(("%", "!")))
    except (OSError, ValueError, KeyError, TypeError):  # as above
        return


def modules(notebook: Path, package: Path = ROOT / PACKAGE) -> list[str]:
    """Names of the modules that a notebook imports, and that these import, sorted."""
    found = {"__init__"}
    waiting = [name for cell in _cells(notebook) for name in _imported(cell)]
    waiting += _imported_by(package / "__init__.py")
    while waiting:
        name = waiting.pop()
        file = package / f"{name}.py"
        if name not in found and file.is_file():
            found.add(name)
            waiting += _imported_by(file)
    return sorted(found)


def main() -> None:
    """Print what each notebook needs of the package, as Make reads it."""
    style = [f"{PACKAGE}/{path.name}" for path in sorted((ROOT / PACKAGE).glob("*.mplstyle"))]
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        files = [f"{PACKAGE}/{name}.py" for name in modules(notebook)]
        print(f"{notebook.name}:{','.join(files + style)}")


if __name__ == "__main__":
    main()
