"""How big the package is: lines by room, the longest modules, functions and cells.

    python -m tests.counts

A line of code holds a token that is no comment and no docstring.
"""

import ast
import io
import json
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from xlx.core.paths import NOTEBOOKS, ROOT

PACKAGE = ROOT / "xlx"
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def modules() -> list[Path]:
    """Every module of the package, faces of rooms included."""
    return sorted(PACKAGE.rglob("*.py"))


def named(path: Path) -> str:
    """A module as it is called: ``abx.series``; the face of a room by the room's name."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def lines(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def code_lines(path: Path) -> int:
    """Lines of a file that hold code."""
    text = path.read_text(encoding="utf-8")
    prose = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.update(range(node.lineno, node.end_lineno + 1))
    held = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(held - prose)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Functions and methods of a module with their lines, docstring and decorators left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            head = node.body[0].lineno - node.lineno
            size = node.end_lineno - body[0].lineno + 1 if body else 0
            yield f"{named(path)}.{node.name}", head + size


def public_names() -> dict[str, list[str]]:
    """Functions, classes and constants without an underscore → the modules that define them.

    Without those of figures, which are called as what they show, and without command lines.
    """
    places: dict[str, list[str]] = {}
    for path in modules():
        if path.parent.name == "plots":
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            else:
                continue
            for name in names:
                if not name.startswith("_") and name != "main":
                    places.setdefault(name, []).append(named(path))
    return places


def cells() -> Iterator[tuple[str, int]]:
    """Code cells of the notebooks with their lines; those of parameters left out."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for i, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            tags = cell["metadata"].get("tags", [])
            if cell["cell_type"] == "code" and "parameters" not in tags:
                yield f"{path.stem}[{i}]", len("".join(cell["source"]).splitlines())


def main() -> None:
    """Print the counts."""
    total, code = Counter(), Counter()
    for path in modules():
        room = named(path).partition(".")[0] if path.parent != PACKAGE else "top"
        total[room] += lines(path)
        code[room] += code_lines(path)
    for room in total:
        print(f"{room or 'top':10} {total[room]:6,} lines {code[room]:6,} of code")
    print(f"{'xlx':10} {total.total():6,} lines {code.total():6,} of code")
    print(f"{'tests':10} {sum(map(lines, (ROOT / 'tests').rglob('*.py'))):6,} lines")
    places = public_names().items()
    for what, over in (
        ("modules above 400 lines", [(named(x), lines(x)) for x in modules() if lines(x) > 400]),
        ("functions above 60 lines", [f for x in modules() for f in functions(x) if f[1] > 60]),
        ("cells above 15 lines", [cell for cell in cells() if cell[1] > 15]),
        ("public names in several modules", [(name, len(x)) for name, x in places if len(x) > 1]),
    ):
        print(f"{len(over)} {what}:", *(f"{name} {n}" for name, n in over))


if __name__ == "__main__":
    main()
