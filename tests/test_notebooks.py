"""The committed notebooks: executed, clean, in the house style, in step with the profiles."""

import ast
import functools
import io
import pkgutil
import re
import tokenize
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from notebooks.run import profiles
from tests import counts
from xlx.results.paths import FIGURES, NOTEBOOKS, PROFILES, ROOT

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
STEMS = [path.stem for path in PATHS]
BOOK = NOTEBOOKS / "book"
#: What a reader opens first, and where the links and samples of the doors stand.
DOORS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(BOOK / f"{x}.md" for x in ("chapters", "usage", "contents", "questions")),
]
SAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
# A path of somebody's machine: no reader has it. Addresses (https://...) are none.
MACHINE = re.compile(
    r"(?<![\w.:/])(?:/(?:home|Users|root|tmp|var|opt|usr|mnt|work|private)/[\w.]|[A-Z]:\\\\?\w)"
)


def problems(path: Path) -> list[str]:
    """Everything that is wrong with a notebook file, as one sentence each."""
    try:
        text = path.read_text(encoding="utf-8")
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:
        return [f"is no valid notebook: {str(error).splitlines()[0]}"]
    found = []
    alone = "predictions|printed|report|start|synthesis"
    if not re.fullmatch(rf"[a-z_]+-\d+-[a-z0-9_]+|{alone}", path.stem):
        found.append("has no name like abx-2-dynamics: <lens>-<number>-<slug>")
    if path.stat().st_size >= 1_500_000:
        found.append(f"weighs {path.stat().st_size} bytes, more than 1.5 megabytes")
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        found.append("does not name the kernel python3")
    if "widgets" in notebook.metadata:
        found.append("holds widget state")
    # Pictures are long and base64 has slashes, so only text is looked at.
    if MACHINE.search(re.sub(r'"image/[\w+]+": (\[[^]]*\]|"[^"]*")', "", text)):
        found.append("holds a path of one machine")
    return found + title(notebook) + parameters_cell(notebook, path.stem) + outputs(notebook)


def title(notebook: nbformat.NotebookNode) -> list[str]:
    """The first cell opens with the question."""
    first = notebook.cells[0] if notebook.cells else None
    if first is None or first.cell_type != "markdown":
        return ["does not open with a title"]
    heading = first.source.split("\n")[0].strip()
    if not (heading.startswith("# ") and heading.endswith("?")):
        return [f"has a title that is no question: {heading!r}"]
    return []


def parameters_cell(notebook: nbformat.NotebookNode, name: str) -> list[str]:
    """One parameters cell of literals, each with a comment beside or above; profile = "mini"."""
    try:
        declared = profiles.parameters(notebook, name)
    except profiles.NotebookError as error:
        return [str(error)]
    found = []
    if "profile" not in declared or declared["profile"].value != "mini":
        found.append('does not declare profile = "mini"')
    (cell,) = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    above, beside = comments(cell.source)
    for node in ast.parse(cell.source).body:
        if node.lineno - 1 not in above and beside.isdisjoint(
            range(node.lineno, node.end_lineno + 1)
        ):
            found.append(f"says in no comment what the parameter {ast.unparse(node)!r} is")
    return found


def comments(source: str) -> tuple[set[int], set[int]]:
    """Lines of a cell that are a comment, and lines that have one beside their code."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    found = [token for token in tokens if token.type == tokenize.COMMENT]
    above = {token.start[0] for token in found if token.line.lstrip().startswith("#")}
    return above, {token.start[0] for token in found} - above


def outputs(notebook: nbformat.NotebookNode) -> list[str]:
    """Every code cell was executed, in order, without error, warning, widget or progress bar."""
    code = [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]
    found = []
    if [c.execution_count for c in code] != list(range(1, len(code) + 1)):
        found.append("was not executed from top to bottom in a fresh kernel (run `make store`)")
    if not any(c.outputs for c in code):
        found.append("has no stored outputs: nbval would pass it without looking")
    for number, cell in enumerate(code, 1):
        where = f"in code cell {number}"
        if cell.source.rstrip().endswith(";"):
            found.append(f"ends with a semicolon {where}: nbval fails on it, end with None instead")
        if prints(cell.source) and not cell.outputs:
            found.append(f"has no output stored {where}, which prints or shows a value")
        shown = sum("image/png" in output.get("data", {}) for output in cell.outputs)
        if shown < cell.source.count("plots.save("):
            found.append(f"saves a figure {where} and does not show it")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"holds an error {where}: {output.ename}")
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"holds stderr {where}: {output.text.strip().splitlines()[0]!r}")
            if any("widget" in kind for kind in output.get("data", {})):
                found.append(f"holds a widget {where}")
    return found


def prints(source: str) -> bool:
    """Whether a cell surely has an output: a bare print or display, or a name as its last line."""
    try:
        body = [n.value for n in ast.parse(source).body if isinstance(n, ast.Expr)]
        last = ast.parse(source).body[-1]
    except (SyntaxError, IndexError):  # lines for IPython, comments only
        return False
    shown = [ast.unparse(n.func) for n in body if isinstance(n, ast.Call)]
    return (
        "print" in shown
        or "display" in shown
        or (isinstance(last, ast.Expr) and isinstance(last.value, ast.Name))
    )


def test_there_are_notebooks() -> None:
    assert PATHS


@pytest.mark.parametrize("path", PATHS, ids=STEMS)
def test_notebook_is_in_order(path: Path) -> None:
    assert problems(path) == []


@pytest.mark.parametrize("stem", STEMS)
def test_notebook_has_its_figures(stem: str) -> None:
    pdf = {path.stem for path in FIGURES.glob(f"{stem}*.pdf")}
    png = {path.stem for path in FIGURES.glob(f"{stem}*.png")}
    assert pdf, f"no figures/{stem}*.pdf: run `make figures`"
    assert pdf == png


@pytest.mark.parametrize("stem", STEMS)
def test_notebook_has_its_line_of_links(stem: str) -> None:
    """Paper, its neighbours in the order of the chapters, code, minutes, what it takes for read."""
    order = re.findall(r"\[`([\w-]+)\.ipynb`\]", (BOOK / "chapters.md").read_text("utf-8"))
    first = nbformat.read(NOTEBOOKS / f"{stem}.ipynb", as_version=4).cells[0].source
    line, place = first.split("\n\n")[1], order.index(stem)
    near = {"previous": order[max(place - 1, 0) : place], "next": order[place + 1 : place + 2]}
    shown = r"\[[^]]+\]\([^)]+\)"
    beside = "".join(f"{way}: [{x}]({x}.ipynb) · " for way, xs in near.items() for x in xs)
    few = rf"{shown}(?:, {shown})*"
    form = rf"Paper: {few} · {re.escape(beside)}code: {few} · \d+ minutes · needs: "
    form += rf"(?:{few}|no other notebook)"
    assert re.fullmatch(form, line), f"{line} is not {form}"
    for target in re.findall(r"\]\((?!https:)([^)]+)\)", line):
        assert (NOTEBOOKS / target).is_file(), target


def test_doors_name_rooms_files_and_modules_that_there_are() -> None:
    links_to = set()
    for page in DOORS:
        text = page.read_text(encoding="utf-8")
        links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
        links_to |= {(page.parent / link).resolve() for link in links}
        for name in re.findall(r"`(xlx\.[\w.]*\w)", text):
            assert pkgutil.resolve_name(name)
    assert [target for target in links_to if not target.exists()] == []
    faces = [*(ROOT / "xlx").glob("*/__init__.py"), *NOTEBOOKS.glob("*/__init__.py")]
    assert {face.parent for face in faces} <= links_to


@pytest.mark.parametrize("page", [*DOORS, *(BOOK / f"{x}.md" for x in ("index", "glossary"))])
def test_pages_are_plain_english(page: Path) -> None:
    said = counts.sentences(page.read_text(encoding="utf-8"))
    lengths = [len(counts.WORD.findall(sentence)) for sentence in said]
    assert [x for x, n in zip(said, lengths, strict=True) if n > 40] == []
    assert sum(lengths) / len(lengths) <= 22


def test_readme_is_a_door() -> None:  # its findings: tests/test_front_page.py
    prose = re.sub(r"```.*?```|(?<=\])\([^)]*\)", "", DOORS[0].read_text("utf-8"), flags=re.DOTALL)
    assert counts.words(prose) <= 500


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_profile_sets_only_what_the_notebooks_declare(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "read_notebook", functools.cache(profiles.read_notebook))
    profile = profiles.read_profile(path.stem)
    assert set(profile["notebooks"]) <= set(STEMS)
    for stem in STEMS:
        assert profiles.values_for(stem, path.stem).get("profile", "mini") == path.stem


def test_mini_profile_changes_nothing() -> None:
    # So that what nbval re-executes, and a reader opens, is what `make figures` runs.
    assert profiles.read_profile("mini") == {"defaults": {}, "notebooks": {}}


def good() -> nbformat.NotebookNode:
    """A notebook with nothing wrong."""
    parameters = (
        'profile = "mini"  # which parameters these are\n# pairs of languages\nn_pairs = 3\n'
    )
    cells = [
        new_markdown_cell("# What is shared?\n\nText."),
        new_code_cell(parameters, metadata={"tags": ["parameters"]}, execution_count=1),
        new_code_cell(
            "print(n_pairs)", execution_count=2, outputs=[new_output("stream", text="3\n")]
        ),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def test_good_notebook_passes(tmp_path: Path) -> None:
    path = tmp_path / "abx-1-good.ipynb"
    nbformat.write(good(), path)
    assert problems(path) == []


def change(what: Callable[[nbformat.NotebookNode], object]) -> nbformat.NotebookNode:
    """The good notebook with one change."""
    notebook = good()
    what(notebook)
    return notebook


def output(kind: str, **fields: object) -> Callable[[nbformat.NotebookNode], object]:
    """Give the last cell another output."""
    return lambda notebook: notebook.cells[-1].outputs.append(new_output(kind, **fields))


def cell(number: int, **changes: object) -> Callable[[nbformat.NotebookNode], object]:
    return lambda notebook: notebook.cells[number].update(changes)


WIDGET = {"application/vnd.jupyter.widget-view+json": {}}
SILENT = new_code_cell("print(1)", execution_count=3)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (cell(0, source="# What is shared\n"), "title that is no question"),
        (lambda n: n.cells.pop(0), "does not open with a title"),
        (lambda n: n.cells[1].metadata.clear(), "has 0 code cells tagged"),
        (cell(1, source='profile = "mini"  # a\nn = 1 + 1  # b'), "literals"),
        (cell(1, source='profile = "mini"  # a\nn = 1'), "in no comment"),
        (cell(1, source="n = 1  # b"), 'does not declare profile = "mini"'),
        (cell(2, outputs=[]), "has no stored outputs"),
        (cell(2, execution_count=None), "was not executed from top"),
        (cell(2, source="n_pairs;"), "ends with a semicolon"),
        (lambda n: n.cells.append(SILENT), "has no output stored in code cell 3, which prints"),
        (lambda n: n.metadata.kernelspec.update(name="xlx"), "does not name the kernel python3"),
        (output("error", ename="ValueError", evalue="", traceback=[]), "an error in code cell 2"),
        (output("stream", name="stderr", text="Warning: x"), "stderr in code cell 2"),
        (output("display_data", data=WIDGET), "a widget in code cell 2"),
        (cell(2, source="plots.save(figure, name)\n1"), "saves a figure in code cell 2 and"),
        (output("stream", text="saved in /" + "home/ada/xlx"), "a path of one machine"),
    ],
)
def test_each_fault_is_named(tmp_path: Path, what, message: str) -> None:
    path = tmp_path / "abx-1-bad.ipynb"
    nbformat.write(change(what), path)
    assert any(message in problem for problem in problems(path)), problems(path)


def imported(tree: ast.Module) -> dict[str, object]:
    """Name → what the imports of a piece of code bring."""
    names: dict[str, object] = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "sample", "exec"), names)
    return names


@pytest.mark.parametrize(
    "sample", [x for page in DOORS for x in SAMPLE.findall(page.read_text("utf-8"))]
)
def test_samples_of_the_doors_name_what_there_is(sample: str) -> None:
    tree = ast.parse(sample)
    tree.body = [node for node in tree.body if "SLURM" not in ast.unparse(node)]
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id not in names or hasattr(names[node.value.id], node.attr)
