"""The rules of the package that no library holds, and the run of the one that holds the others."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from xlx.results.paths import NOTEBOOKS, ROOT

MODULES = sorted((ROOT / "xlx").rglob("*.py"))
#: These names stand in two modules: none is to be added.
TWICE = {"REGISTERED", "load"}


def contracts(root: Path) -> list[str]:
    """What import-linter says of each contract of pyproject.toml, of the package in a folder."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return re.findall(r"^.* (?:KEPT|BROKEN)\b", ran.stdout, re.M)


def test_rooms_import_what_they_may() -> None:
    said = contracts(ROOT)
    assert len(said) > 5
    assert [line for line in said if line.endswith("BROKEN")] == []


def test_a_wrong_import_breaks_its_contract(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "xlx", tmp_path / "xlx")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module, line in {
        "text/parallel": "from xlx import measures",
        "text/files": "from xlx.text import parallel",
        "measures/mexa": "import matplotlib.pyplot, pathlib",
        "experiment/probing": "import xlx.plots.figures",
        "plots/style": "import torch",
        "subjects/states": "from transformers import AutoModel",
        "report/command": "from notebooks.run import runner",
    }.items():
        with (tmp_path / "xlx" / f"{module}.py").open("a", encoding="utf-8") as file:
            file.write(f"\n\ndef _wrong():\n    {line}\n")
    assert [line for line in contracts(tmp_path) if line.endswith("KEPT")] == []


QUIET = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
#: What reads, asks or changes something outside a module, in its constants.
ACTS = re.compile(
    r"\b(open|read_\w+|loads?|from_pretrained|glob|iterdir|exists|run|seed|is_available)\("
)


def acts(source: str) -> list[str]:
    """Statements of a module that do something when it is imported."""
    return [
        text
        for node in ast.parse(source).body
        if not isinstance(node, QUIET)
        or (isinstance(node, ast.Assign | ast.AnnAssign) and ACTS.search(ast.unparse(node)))
        if not re.match(r"if (__name__ ==|TYPE_CHECKING)|['\"]", text := ast.unparse(node))
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_nothing_happens_at_import(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert acts(source) == []
    assert "fork_rng(" in source or not re.search(r"torch\.manual_seed|set_seed\(", source)


@pytest.mark.parametrize("source", ["print(1)", "for x in (): pass", "A: list = load(B)"])
def test_what_happens_at_import_is_seen(source: str) -> None:
    assert acts(f'"""A module."""\nimport re\nB = re.compile("a")\n{source}') != []


def test_importing_xlx_imports_no_library_of_models() -> None:
    code = (
        "import sys, xlx; print({'torch', 'transformers', 'matplotlib', 'scipy'} & {*sys.modules})"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout == "set()\n", result.stderr


def test_a_public_name_stands_in_one_module() -> None:
    """But for figures, which are called as what they show, and command lines."""
    places = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            text = ast.unparse(node)
            name = re.match(r"(?:def |class )?([A-Za-z]\w*)(?:\(|:| = (?!deferred))", text)
            if name and path.parent.name != "plots":
                places[name[1]].add(path)
    assert {name for name, where in places.items() if len(where) > 1} - {"main"} <= TWICE


def test_cells_define_nothing() -> None:
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert re.findall(r"^ *(?:async )?(?:def|class) .*", "\n".join(code), re.M) == []


#: Names that say nothing of what they hold, and how many are left: fewer with each change.
WEAK, LEFT = {"own", "of", "found", "said", "told", "one", "kept"}, 60


def stored(tree: ast.AST) -> list[str]:
    """Names of variables, parameters, functions, classes and attributes where they get a value."""
    return [
        getattr(x, "id", getattr(x, "arg", getattr(x, "name", getattr(x, "attr", ""))))
        for x in ast.walk(tree)
        if isinstance(x, ast.arg | ast.FunctionDef | ast.ClassDef)
        or (isinstance(x, ast.Name | ast.Attribute) and isinstance(x.ctx, ast.Store))
    ]


def test_weak_names_get_fewer() -> None:
    sources = [
        x.read_text(encoding="utf-8")
        for y in ("xlx", "notebooks", "data")
        for x in (ROOT / y).rglob("*.py")
    ]
    for path in NOTEBOOKS.rglob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = "".join("".join(x["source"]) + "\n" for x in cells if x["cell_type"] == "code")
        sources.append(re.sub(r"(?m)^\s*[%!].*$", "", lines))
    weak = [name for source in sources for name in stored(ast.parse(source)) if name in WEAK]
    assert len(weak) <= LEFT
    assert stored(ast.parse("def of(own, said=1):\n    found, x.told = own, said")) == [
        "of",
        "own",
        "said",
        "found",
        "told",
    ]


def test_code_changes_no_path() -> None:
    changed = re.compile(r"sys\.path(\.(append|insert|extend)|\[[^]]*\] *=| *=|\.__)")
    rooms = [ROOT / root for root in ("xlx", "notebooks", "data")]
    files = [x for room in rooms for end in ("py", "ipynb") for x in room.rglob(f"*.{end}")]
    assert len(files) > 150
    assert [x.name for x in files if changed.search(x.read_text(encoding="utf-8"))] == []
