"""The rules that keep the package small and its parts apart (who may import, draw, read, seed)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from xlx.paths import NOTEBOOKS, ROOT

# The order in which data flows: a module may import those before it, never those after. store knows
# nothing of what it keeps, so it comes early; plots is given tables, so it comes late; abx reads
# retrieval off the same similarity block as its own scores, so alignment comes before it.
ORDER = (
    "paths",
    "checks",
    "settings",
    "progress",
    "store",
    "provenance",
    "ledger",
    "executors",
    "work",
    "languages",
    "origins",
    "corpora",
    "labelled",
    "trees",
    "downstream",
    "fairseq",
    "models",
    "family",
    "vocabulary",
    "pretraining_text",
    "word_vectors",
    "dictionaries",
    "batches",
    "muon",
    "members",
    "model_cards",
    "pretraining",
    "embeddings",
    "words",
    "triplets",
    "similarity",
    "word_mapping",
    "word_spaces",
    "alignment",
    "statistics",
    "printed",
    "pair_regression",
    "abx",
    "mexa",
    "surface",
    "series",
    "lengths",
    "contrasts",
    "validation",
    "coverage",
    "probes",
    "selection",
    "probing",
    "topics",
    "examples",
    "questions",
    "answer_scores",
    "inputs",
    "bfloat16",
    "transferability",
    "finetuning",
    "transfers",
    "mixing",
    "grids",
    "baselines",
    "xprobe",
    "probing_tasks",
    "sentence_encoders",
    "encoder_training",
    "sentence_probing",
    "panels",
    "plots",
    "probe_plots",
    "mexa_plots",
    "igap_plots",
    "mixing_plots",
    "xprobe_plots",
    "needs",
    "run",
    "reproduction",
    "audit",
)
NUMERIC = (
    "triplets",
    "similarity",
    "word_mapping",
    "abx",
    "mexa",
    "alignment",
    "transferability",
    "mixing",
    "statistics",
    "printed",
    "pair_regression",
    "probes",
    "selection",
    "xprobe",
)
DRAWS = (
    "panels",
    "plots",
    "probe_plots",
    "mexa_plots",
    "igap_plots",
    "mixing_plots",
    "xprobe_plots",
)
LOADS_OR_TRAINS = ("models", "pretraining", "finetuning", "sentence_encoders")

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
            # `from xlx import abx` imports xlx.abx; `from numpy import pi` only numpy
            if start == "xlx":
                yield from ((f"xlx.{alias.name}", node.lineno) for alias in node.names)
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


def top(name: str) -> str:
    """First part of a dotted name."""
    return name.split(".")[0]


def direction(name: str, tree: ast.Module) -> list[str]:
    """Imports that go against ORDER."""
    found = []
    for module, line in imports(tree):
        if top(module) != "xlx" or module == "xlx":
            continue
        other = module.split(".")[1]
        if other.startswith("__"):
            continue
        if other not in ORDER or ORDER.index(other) >= ORDER.index(name):
            found.append(f"line {line}: {name} may not import {other}")
    return found


def files_in_numeric(name: str, tree: ast.Module) -> list[str]:
    """Reading, writing or drawing in a numeric module."""
    if name not in NUMERIC:
        return []
    found = [
        f"line {line}: {module} in a numeric module"
        for module, line in imports(tree)
        if top(module) in FILE_MODULES
        or module in ("xlx.paths", "xlx.store", "xlx.plots", "xlx.corpora", "xlx.models")
    ]
    return found + [
        f"line {line}: {call}() in a numeric module"
        for call, line in calls(tree)
        if FILES.fullmatch(call)
    ]


def transformers_elsewhere(name: str, tree: ast.Module) -> list[str]:
    """``transformers`` where no model is loaded or trained."""
    return [
        f"line {line}: {module} belongs in {', '.join(LOADS_OR_TRAINS)}"
        for module, line in imports(tree)
        if top(module) == "transformers" and name not in LOADS_OR_TRAINS
    ]


def drawing_elsewhere(name: str, tree: ast.Module) -> list[str]:
    """matplotlib or seaborn outside plots."""
    return [
        f"line {line}: {module} belongs in plots"
        for module, line in imports(tree)
        if top(module) in ("matplotlib", "seaborn") and name not in DRAWS
    ]


def statistics_in_plots(name: str, tree: ast.Module) -> list[str]:
    """plots shows numbers that were computed before."""
    if name not in DRAWS:
        return []
    found = [
        f"line {line}: {name} computes nothing, so it needs no {module}"
        for module, line in imports(tree)
        if top(module) in ("scipy", "statsmodels", "sklearn", "torch")
        or module in {f"xlx.{m}" for m in NUMERIC}
    ]
    return found + [
        f"line {line}: {call}() computes a statistic: do that before"
        for call, line in calls(tree)
        if STATISTICS.fullmatch(call)
    ]


def acts_at_import(name: str, tree: ast.Module) -> list[str]:
    """Top-level statements that do something: only imports, definitions and constants are quiet."""
    found = []
    for node in tree.body:
        quiet = isinstance(
            node,
            ast.Import
            | ast.ImportFrom
            | ast.FunctionDef
            | ast.AsyncFunctionDef
            | ast.ClassDef
            | ast.Assign
            | ast.AnnAssign,
        )
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        guard = isinstance(node, ast.If) and re.fullmatch(
            r"__name__ == '__main__'|TYPE_CHECKING", ast.unparse(node.test)
        )
        if not (quiet or docstring or guard):
            found.append(f"line {node.lineno}: {ast.unparse(node).splitlines()[0]} at import")
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            found += [
                f"line {line}: {call}() at import"
                for call, line in calls(node.value)
                if AT_IMPORT.fullmatch(call)
            ]
    return found


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
MODULES = sorted(path for path in (ROOT / "xlx").glob("*.py") if path.stem != "__init__")


def test_package_is_flat_and_every_module_has_its_place() -> None:
    assert MODULES
    assert [path.stem for path in MODULES if path.stem not in ORDER] == []
    folders = [path.name for path in (ROOT / "xlx").iterdir() if path.is_dir()]
    assert set(folders) <= {"__pycache__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_keeps_the_rules(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [problem for rule in RULES for problem in rule(path.stem, tree)] == []


def test_importing_xlx_imports_the_settings_alone() -> None:
    tree = ast.parse((ROOT / "xlx" / "__init__.py").read_text(encoding="utf-8"))
    assert [name for name, _ in imports(tree)] == ["xlx.settings"]
    assert acts_at_import("__init__", tree) == []


@pytest.mark.parametrize(
    ("rule", "name", "code"),
    [
        (direction, "corpora", "from xlx import abx"),
        (direction, "corpora", "from xlx.embeddings import embed"),
        (direction, "corpora", "from . import models"),
        (direction, "corpora", "def f():\n    import xlx.plots"),
        (files_in_numeric, "abx", "from pathlib import Path"),
        (files_in_numeric, "abx", "def f(p):\n    return pd.read_csv(p)"),
        (files_in_numeric, "alignment", "def f(x):\n    x.to_csv('a')"),
        (files_in_numeric, "statistics", "def f():\n    return open('a')"),
        (files_in_numeric, "triplets", "from xlx.store import Store"),
        (transformers_elsewhere, "embeddings", "from transformers import AutoModel"),
        (drawing_elsewhere, "abx", "import matplotlib.pyplot as plt"),
        (drawing_elsewhere, "probing", "import seaborn"),
        (statistics_in_plots, "plots", "from xlx.statistics import bootstrap"),
        (statistics_in_plots, "plots", "import scipy.stats"),
        (statistics_in_plots, "probe_plots", "from xlx import statistics"),
        (statistics_in_plots, "plots", "def f(a, b):\n    return np.corrcoef(a, b)"),
        (acts_at_import, "corpora", "print('loaded')"),
        (acts_at_import, "corpora", "for x in range(3):\n    pass"),
        (acts_at_import, "corpora", "TABLE = pd.read_csv('a')"),
        (acts_at_import, "corpora", "CODES: list = json.loads(PATH.read_text())"),
        (acts_at_import, "models", "DEVICE = torch.cuda.is_available()"),
        (seeds_globally, "abx", "def f():\n    np.random.seed(1)"),
        (seeds_globally, "abx", "def f():\n    torch.manual_seed(1)"),
        (seeds_globally, "abx", "def f():\n    random.seed(1)"),
        (seeds_globally, "pretraining", "def f():\n    set_seed(1)"),
    ],
)
def test_rule_sees_a_breach(rule, name: str, code: str) -> None:
    assert len(rule(name, ast.parse(code))) >= 1


FORKED = "def f():\n    with torch.random.fork_rng([]):\n        torch.manual_seed(1)"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("abx", "import numpy as np\nfrom xlx.triplets import sample"),
        ("abx", "def f(seed):\n    return torch.Generator().manual_seed(seed)"),
        ("abx", "def f(seed):\n    rng = np.random.default_rng(seed)"),
        ("finetuning", FORKED),
        ("corpora", '"""Text."""\nLIMIT = 3\nPATTERN = re.compile("a")'),
        ("paths", "ROOT = Path(__file__).resolve().parent.parent"),
        ("run", 'if __name__ == "__main__":\n    main()'),
        ("plots", "import seaborn as sns\n\n\ndef lines(table):\n    sns.lineplot(table)"),
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


def definitions(cells: dict[str, list[ast.Module]]) -> list[str]:
    """Classes in notebooks, and functions that stand in more than one place."""
    found, names, bodies = [], {}, {}
    for stem, trees in cells.items():
        for node in (n for tree in trees for n in ast.walk(tree)):
            if isinstance(node, ast.ClassDef):
                found.append(f"{stem}: class {node.name} belongs in xlx")
            elif isinstance(node, ast.FunctionDef):
                body = "".join(ast.unparse(part) for part in [node.args, *node.body])
                before = names.get(node.name) or bodies.get(body)
                if before:
                    found.append(f"{stem}: {node.name}() is in {before} too: it belongs in xlx")
                names[node.name] = bodies[body] = stem
    return found


def test_notebooks_define_no_classes_and_no_function_twice() -> None:
    assert definitions({p.stem: notebook_code(p) for p in sorted(NOTEBOOKS.glob("*.ipynb"))}) == []


@pytest.mark.parametrize(
    ("one", "two", "n"),
    [
        ("class A:\n    pass", "", 1),
        ("def f(x):\n    return x", "def f(y):\n    return 2 * y", 1),
        ("def f(x):\n    return x", "def g(x):\n    return x", 1),
        ("def f(x):\n    return x", "def g(x):\n    return 2 * x", 0),
    ],
)
def test_definitions_in_notebooks_are_seen(one: str, two: str, n: int) -> None:
    assert len(definitions({"a": [ast.parse(one)], "b": [ast.parse(two)]})) == n


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_seed_nothing_globally(path: Path) -> None:
    assert [problem for cell in notebook_code(path) for problem in seeds_globally("", cell)] == []
