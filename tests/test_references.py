"""Names in docstrings, messages and pages are those of modules and functions that are there."""

import ast
import builtins
import itertools
import json
import re
from collections import defaultdict

import pytest

from xlx.results.paths import ROOT

#: `name` or `module.name`, as docstrings call what is elsewhere; no file.
NAME = re.compile(r"(?<![`\w])`([A-Za-z_]\w*(?:\.\w+)*)`(?!`)")
FILE = re.compile(r"\.(csv|html|ipynb|jsonl?|md|pdf|png|py|tsv|txt|xz|yaml)$")
PATHS = [x for y in ("xlx", "notebooks", "data", "tests") for x in (ROOT / y).rglob("*.*")]
TREES = {x: ast.parse(x.read_text(encoding="utf-8")) for x in PATHS if x.suffix == ".py"}
PAGES = [ROOT / "README.md", *(x for x in PATHS if x.suffix in (".ipynb", ".md"))]
#: Folder, module or class → the names in it; and names that a library's are called by.
DEFINED: dict[str, set[str]] = defaultdict(set)
LIBRARIES = {*dir(builtins)}
for path, tree in TREES.items():
    parts = [x for x in path.relative_to(ROOT).with_suffix("").parts if x != "__init__"]
    for folder, inner in itertools.pairwise(parts):
        DEFINED[folder].add(inner)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            DEFINED[getattr(node, "name", parts[-1])] |= {
                getattr(x, "name", getattr(x, "id", getattr(x, "attr", ""))) for x in ast.walk(node)
            }
        elif isinstance(node, ast.Import):
            LIBRARIES |= {x.asname or x.name.split(".")[0] for x in node.names}
        elif isinstance(node, ast.ImportFrom):
            LIBRARIES |= {node.module.split(".")[0], *(x.name for x in node.names)}


def dead(name: str) -> bool:
    *owners, last = name.split(".")
    if FILE.search(name) or {*owners[:1], name} & (LIBRARIES - {*DEFINED}):
        return False
    there = DEFINED[owners[-1]] if owners and {*owners} <= {*DEFINED} else set()
    return last not in (there if owners else set().union(*DEFINED.values()))


def test_names_in_modules_are_there() -> None:
    """In docstrings; in other strings those with a point."""
    for path, tree in TREES.items():
        docstrings = {x.value for x in ast.walk(tree) if isinstance(x, ast.Expr)}
        texts = [x for x in ast.walk(tree) if isinstance(getattr(x, "value", 0), str)]
        names = [(x in docstrings, name) for x in texts for name in NAME.findall(x.value)]
        assert [x for documented, x in names if dead(x) and ("." in x or documented)] == [], path


def test_names_on_pages_are_there() -> None:
    """Those that begin with a module."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        cells = json.loads(text)["cells"] if path.suffix == ".ipynb" else [{"source": text}]
        texts = ["".join(x["source"]) for x in cells if x.get("cell_type") != "code"]
        names = [x for text in texts for x in NAME.findall(text)]
        assert [x for x in names if x.split(".")[0] in DEFINED and dead(x)] == [], path


@pytest.mark.parametrize("name", ["corpora.load", "mexa.tails", "plots.mexa", "Block.nothing"])
def test_dead_names_are_seen(name: str) -> None:
    assert dead(name)
