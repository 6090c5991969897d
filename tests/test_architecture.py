"""The rules that keep the package small and its parts apart (who may import, draw, read, seed)."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import nbformat
import pytest

from tests import counts
from tests.counts import PACKAGE
from xlx.results.paths import MODELS, NOTEBOOKS, ROOT

# What the modules of a room may import beside those of their own: nothing that stands above it.
ROOMS = {
    "results": (),
    "text": ("results",),
    "plots": ("results", "text"),
    "measures": ("results", "text"),
    "subjects": ("results", "text", "measures"),
    "experiment": ("results", "text", "measures", "subjects"),
    "report": ("results", "text", "plots", "measures", "subjects", "experiment"),
}
NUMERIC = (
    "measures.abx",
    "measures.alignment",
    "measures.geometry",
    "measures.igap",
    "measures.mexa",
    "measures.mixing",
    "measures.probes",
    "measures.statistics",
)
LOADS_OR_TRAINS = (
    "report.callbacks",
    "subjects.finetuning",
    "subjects.folders",
    "subjects.loading",
)

# What reads or writes, by the last name of a call: open(...), pd.read_csv(...), frame.to_csv(...).
FILES = re.compile(
    r"open|read_\w+|write_\w+|to_(csv|parquet|json|pickle|excel|feather|hdf|sql|latex|html)"
    r"|save\w*|load\w*|loadtxt|genfromtxt|fromfile|tofile|memmap|savefig|mkdir|urlopen|retrieve"
)
FILE_MODULES = {"pathlib", "os", "io", "shutil", "tempfile", "json", "csv", "pickle", "pooch"}
SEEDS = re.compile(r"seed|manual_seed|manual_seed_all|seed_all|set_seed|set_state|set_rng_state")
# A call in a module's constants that reads, asks or changes something outside the module.
AT_IMPORT = re.compile(
    rf"({FILES.pattern}|{SEEDS.pattern}|from_pretrained|glob|iterdir|exists|use|print|run|download"
    r"|set_num_threads|is_available|filterwarnings|simplefilter|basicConfig)"
)
# A density (kdeplot) is a way to draw many points, so it may stay in plots.
STATISTICS = re.compile(
    r"corrcoef|corr|cov|polyfit|lstsq|quantile|percentile|linregress|pearsonr|spearmanr|bootstrap"
    r"|regplot|lmplot|residplot|groupby|std|var|sem"
)


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Full names of all modules that a piece of code imports, wherever in it, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "xlx" if node.level else node.module
            start = f"xlx.{node.module}" if node.level and node.module else start
            # `from xlx.measures import abx` imports xlx.measures.abx; `from numpy import pi` numpy
            if start.removeprefix("xlx.") in ("xlx", *ROOMS):
                yield from ((f"{start}.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield start, node.lineno


def calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Last names of all calls: ``np.random.seed(1)`` gives ``seed``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr, node.lineno
            elif isinstance(node.func, ast.Name):
                yield node.func.id, node.lineno


def room(name: str) -> str:
    """First part of a dotted name: the room of a module."""
    return name.split(".")[0]


def direction(name: str, tree: ast.Module) -> list[str]:
    """Imports of rooms that a room may not know, and of what stands beside the package."""
    known = (room(name), "settings", "__version__", *ROOMS[room(name)])
    outside = {path.name for path in (*NOTEBOOKS.iterdir(), MODELS / "family") if path.is_dir()}
    outside |= {path.stem for path in NOTEBOOKS.glob("*.py")} | {"notebooks"}
    return [
        f"line {line}: {room(name)} may not import {module}"
        for module, line in imports(tree)
        if (module.startswith("xlx.") and module.split(".")[1] not in known)
        or room(module) in outside
    ]


def files_in_numeric(name: str, tree: ast.Module) -> list[str]:
    """Reading, writing or drawing in a numeric module."""
    if not name.startswith(NUMERIC):
        return []
    closed = ("xlx.results.paths", "xlx.results.store", "xlx.plots", "xlx.text", "xlx.subjects")
    opened = [(m, n) for m, n in imports(tree) if room(m) in FILE_MODULES or m.startswith(closed)]
    opened += [(f"{call}()", n) for call, n in calls(tree) if FILES.fullmatch(call)]
    return [f"line {line}: {what} in a numeric module" for what, line in opened]


def transformers_elsewhere(name: str, tree: ast.Module) -> list[str]:
    """``transformers`` where no model is loaded or trained."""
    return [
        f"line {line}: {module} belongs in {', '.join(LOADS_OR_TRAINS)}"
        for module, line in imports(tree)
        if room(module) == "transformers" and name not in LOADS_OR_TRAINS
    ]


def drawing_elsewhere(name: str, tree: ast.Module) -> list[str]:
    """matplotlib or seaborn outside plots."""
    return [
        f"line {line}: {module} belongs in plots"
        for module, line in imports(tree)
        if room(module) in ("matplotlib", "seaborn") and room(name) != "plots"
    ]


def statistics_in_plots(name: str, tree: ast.Module) -> list[str]:
    """plots shows numbers that were computed before."""
    if room(name) != "plots":
        return []
    libraries = ("scipy", "statsmodels", "sklearn", "torch")
    numeric = {f"xlx.{m}" for m in NUMERIC}
    used = [(m, n) for m, n in imports(tree) if room(m) in libraries or m in numeric]
    used += [(f"{call}()", n) for call, n in calls(tree) if STATISTICS.fullmatch(call)]
    return [f"line {line}: {what} computes: do that before" for what, line in used]


QUIET = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
)


def acts_at_import(name: str, tree: ast.Module) -> list[str]:
    """Top-level statements that do something: only imports, definitions and constants are quiet."""
    acts = []
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        guard = isinstance(node, ast.If) and re.fullmatch(
            r"__name__ == '__main__'|TYPE_CHECKING", ast.unparse(node.test)
        )
        if not (isinstance(node, QUIET) or docstring or guard):
            acts.append((ast.unparse(node).splitlines()[0], node.lineno))
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            acts += [(f"{c}()", n) for c, n in calls(node.value) if AT_IMPORT.fullmatch(c)]
    return [f"line {line}: {what} at import" for what, line in acts]


def seeds_globally(name: str, tree: ast.Module) -> list[str]:
    """Seeding what everybody shares; a generator of one's own may be seeded."""
    found = []
    # Dropout knows no other generator than the shared one: within fork_rng, which gives it back as
    # it was, that one may be seeded.
    forked = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and ast.unparse(node.items[0].context_expr).startswith("torch.random.fork_rng(")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and id(node) not in forked:
            called = ast.unparse(node.func)
            # torch.manual_seed or a bare set_seed, but not torch.Generator().manual_seed
            shared = re.fullmatch(r"((np|numpy|torch|random|transformers)\.(\w+\.)*)?(\w+)", called)
            if shared and SEEDS.fullmatch(shared[4]):
                found.append(f"line {node.lineno}: {called}() seeds globally: pass a generator")
    return found


RULES = (
    direction,
    files_in_numeric,
    transformers_elsewhere,
    drawing_elsewhere,
    statistics_in_plots,
    acts_at_import,
    seeds_globally,
)
MODULES = {counts.named(path): path for path in counts.modules() if path.parent != PACKAGE}


def test_every_module_is_in_a_room() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(ROOMS)
    assert [*PACKAGE.glob("[!_]*.py")] == []
    assert {*NUMERIC, *LOADS_OR_TRAINS} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_module_keeps_the_rules(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    assert [problem for rule in RULES for problem in rule(name, tree)] == []


def held(imported: str) -> str:
    """The module of the package in which an imported name stands, or that it is."""
    name = imported.removeprefix("xlx.")
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def test_no_module_imports_what_imports_it() -> None:
    graph = {
        name: {held(module) for module, _ in imports(ast.parse(path.read_text(encoding="utf-8")))}
        for name, path in MODULES.items()
    }
    # faces show what their rooms hold, and nothing in a room asks its face
    graph = {name: held & set(MODULES) - {name} for name, held in graph.items()}
    tuple(TopologicalSorter(graph).static_order())  # CycleError names a circle


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_opens_with_a_face(name: str) -> None:
    face = importlib.import_module(f"xlx.{name}")
    assert 4 <= len(face.__doc__.splitlines()) <= 12
    assert all(hasattr(face, shown) for shown in getattr(face, "__all__", ()))


def test_importing_xlx_imports_no_library_of_models() -> None:
    code = (
        "import sys, xlx; print({'torch', 'transformers', 'matplotlib', 'scipy'} & {*sys.modules})"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout == "set()\n", result.stderr


@pytest.mark.parametrize(
    ("rule", "name", "code"),
    [
        (direction, "text.parallel", "from xlx import measures"),
        (direction, "text.parallel", "from xlx.subjects.states import embed"),
        (direction, "text.parallel", "from . import subjects"),
        (direction, "text.parallel", "def f():\n    import xlx.plots"),
        (direction, "measures.mexa", "from xlx.subjects.states import embed"),
        (direction, "experiment.transfers", "from shared import igap_tables"),
        (direction, "experiment.transfers", "import abx_2_dynamics"),
        (direction, "subjects.loading", "from family import recipes"),
        (direction, "report.command", "from notebooks.run import runner"),
        (files_in_numeric, "measures.abx", "from pathlib import Path"),
        (files_in_numeric, "measures.abx", "def f(p):\n    return pd.read_csv(p)"),
        (files_in_numeric, "measures.alignment", "def f(x):\n    x.to_csv('a')"),
        (files_in_numeric, "measures.statistics", "def f():\n    return open('a')"),
        (files_in_numeric, "measures.abx", "from xlx.results.store import write_whole"),
        (transformers_elsewhere, "subjects.states", "from transformers import AutoModel"),
        (drawing_elsewhere, "measures.abx", "import matplotlib.pyplot as plt"),
        (drawing_elsewhere, "experiment.probing", "import seaborn"),
        (statistics_in_plots, "plots.figures", "from xlx.measures.statistics import interval"),
        (statistics_in_plots, "plots.figures", "import scipy.stats"),
        (statistics_in_plots, "plots.probes", "from xlx.measures import statistics"),
        (statistics_in_plots, "plots.figures", "def f(a, b):\n    return np.corrcoef(a, b)"),
        (acts_at_import, "text.parallel", "print('loaded')"),
        (acts_at_import, "text.parallel", "for x in range(3):\n    pass"),
        (acts_at_import, "text.parallel", "TABLE = pd.read_csv('a')"),
        (acts_at_import, "text.parallel", "CODES: list = json.loads(PATH.read_text())"),
        (acts_at_import, "subjects.loading", "DEVICE = torch.cuda.is_available()"),
        (seeds_globally, "measures.abx", "def f():\n    np.random.seed(1)"),
        (seeds_globally, "measures.abx", "def f():\n    torch.manual_seed(1)"),
        (seeds_globally, "measures.abx", "def f():\n    random.seed(1)"),
        (seeds_globally, "subjects.states", "def f():\n    set_seed(1)"),
    ],
)
def test_rule_sees_a_breach(rule, name: str, code: str) -> None:
    assert len(rule(name, ast.parse(code))) >= 1


FORKED = "def f():\n    with torch.random.fork_rng([]):\n        torch.manual_seed(1)"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("measures.abx", "import numpy as np\nfrom xlx.measures.statistics import interval"),
        ("measures.abx", "def f(seed):\n    return torch.Generator().manual_seed(seed)"),
        ("measures.abx", "def f(seed):\n    rng = np.random.default_rng(seed)"),
        ("subjects.finetuning", FORKED),
        ("text.parallel", '"""Text."""\nLIMIT = 3\nPATTERN = re.compile("a")'),
        ("results.paths", "ROOT = Path(__file__).resolve().parent.parent"),
        ("report.command", 'if __name__ == "__main__":\n    main()'),
        ("plots.figures", "import seaborn as sns\n\n\ndef lines(table):\n    sns.lineplot(table)"),
    ],
)
def test_rules_let_ordinary_code_pass(name: str, code: str) -> None:
    tree = ast.parse(code)
    assert [problem for rule in RULES for problem in rule(name, tree)] == []


def notebook_code(path: Path) -> list[ast.Module]:
    """The code cells of a notebook, without lines for the shell or IPython."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    lines = [[x for x in c.source.splitlines() if not x.startswith(("%", "!"))] for c in cells]
    return [ast.parse("\n".join(x)) for x in lines]


def definitions(tree: ast.Module) -> list[str]:
    """Functions and classes of a cell, which belong in the package."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [node.name for node in ast.walk(tree) if isinstance(node, kinds)]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_define_nothing_and_seed_nothing_globally(path: Path) -> None:
    for cell in notebook_code(path):
        assert definitions(cell) == []
        assert seeds_globally("", cell) == []


# --- how big it is -------------------------------------------------------------------------------

#: These names stand in two modules: none is to be added.
TWICE = {"REGISTERED", "load"}


def test_a_public_name_stands_in_one_module() -> None:
    twice = {name for name, places in counts.public_names().items() if len(places) > 1}
    assert twice <= TWICE


def test_modules_functions_and_cells_are_short() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in counts.modules()}
    assert [counts.named(path) for path, n in lines.items() if n > 800] == []
    functions = [found for path in counts.modules() for found in counts.functions(path)]
    assert [name for name, n in functions if n > 60] == []
    assert [name for name, n in counts.cells() if n > 15] == []
