"""How big the compendium is: lines by class, what of the package one notebook alone reaches, and
how much there is to read in each notebook.

    python -m tests.counts

A line of code holds a token that is no comment and no docstring. What a notebook reaches is read
from names in the source: the definitions that its cells and modules name, those that these name,
and so on; an attribute of an object counts for every method of that name in a class it reaches.
"""

import ast
import io
import json
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from xlx.results.paths import NOTEBOOKS, ROOT

PACKAGE = ROOT / "xlx"
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
#: Folders whose modules are found by their name, beside the package.
FOLDERS = (ROOT, NOTEBOOKS, ROOT / "data" / "models-long")


def modules() -> list[Path]:
    """Every module of the package, faces of rooms included."""
    return sorted(PACKAGE.rglob("*.py"))


def beside() -> list[Path]:
    """Every module beside the package that is no test: of notebooks, and scripts of data."""
    return sorted([*NOTEBOOKS.rglob("*.py"), *(ROOT / "data").rglob("*.py")])


def named(path: Path) -> str:
    """A module as it is called: ``measures.abx``; the face of a room by the room's name."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def lines(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


@cache
def held(path: Path) -> frozenset[int]:
    """Numbers of the lines of a file that hold code."""
    text = path.read_text(encoding="utf-8")
    prose = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.update(range(node.lineno, node.end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return frozenset(
        line
        for token in tokens
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
        if line not in prose
    )


def code_lines(path: Path) -> int:
    """How many lines of a file hold code."""
    return len(held(path))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Functions and methods of a module with their lines, docstring and decorators left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            head = node.body[0].lineno - node.lineno
            size = node.end_lineno - body[0].lineno + 1 if body else 0
            yield f"{path.stem}.{node.name}", head + size


def public_names() -> dict[str, list[str]]:
    """Functions, classes and constants without an underscore → the modules that define them.

    Of the package alone, without those of figures, which are called as what they show, and without
    command lines.
    """
    places: dict[str, list[str]] = {}
    for path in modules():
        if path.parent.name == "plots":
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in _defined(node):
                if not name.startswith("_") and name != "main":
                    places.setdefault(name, []).append(named(path))
    return places


def _defined(node: ast.stmt) -> list[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def cells() -> Iterator[tuple[str, int]]:
    """Code cells of the notebooks with their lines; parameters and imports left out."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for i, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            tags = cell["metadata"].get("tags", [])
            if cell["cell_type"] == "code" and "parameters" not in tags:
                lines = "".join(cell["source"]).splitlines()
                kept = [line for line in lines if not re.match(r"(from|import) |$", line)]
                yield f"{path.stem}[{i}]", len(kept)


# --- what is read ---------------------------------------------------------------------------------

WORD = re.compile(r"\w[\w'’.,-]*")
FOLDED = re.compile(r"<details.*?</details>", re.DOTALL)
#: What is no sentence: code, formulas, rows of tables, the line of links, addresses.
NO_SENTENCE = re.compile(
    r"```.*?```|\$\$.*?\$\$|^ *\|.*?$|^Paper: .*?$|(?<=\])\([^)]*\)|https?://\S+", re.DOTALL | re.M
)
ATOM = re.compile(r"`[^`]*`|\$[^$]*\$")
#: What has a digit and is no number: links, marks of lists, what a paper numbers, years, names.
NO_NUMBER = re.compile(
    r"\[[^][]*\]\([^)]*\)|^\s*\d+\.(?= |$)|<[^<>]*>|\b(?:19|20)\d\d\b|\b[A-Z]\.\d+"
    r"|\b(?:Tables?|Figures?|Appendix|Appendices|[Ss]ections?|[Ee]quations?|[Ll]essons?|[Cc]laims?)"
    r" [A-Z]?[\d.]+(?:(?:, | and | to |, and )[A-Z]?\d[\d.]*)*|\b[A-Za-zα-ω][\w+-]*\d[\w.+-]*"
    r"|\b(?:XLM-R|xlm-r|Llama|Gemma|OLMo|Mistral|Qwen)[ -]?\d[\d.]*(?: \d+[BM])?"
)


def words(text: str) -> int:
    """Words of Markdown, without tags and the addresses of links."""
    return len(WORD.findall(re.sub(r"\(http[^)]*\)|https?://\S+|</?[a-z]+>", "", text)))


def sentences(text: str) -> list[str]:
    """Sentences of Markdown: what ends in . ! ? or a paragraph; a piece of code is a word."""
    plain = ATOM.sub("x", NO_SENTENCE.sub("", text))
    lines = re.split(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.) )", plain)
    return [one for line in lines for one in re.split(r"(?<=[.!?])[*_)]*\s+", line)]


def numbers(sentence: str) -> int:
    """Numbers of one of the `sentences`, without those in names and references (`NO_NUMBER`)."""
    return len(re.findall(r"\d[\w.,:/−-]*", NO_NUMBER.sub("x", sentence)))


def typed(path: Path) -> dict[str, str]:
    """Markdown that a person wrote: where → text, of the cells of a notebook or of a page."""
    cells = json.loads(path.read_text("utf-8"))["cells"] if path.suffix == ".ipynb" else []
    own = enumerate("".join(x["source"]) * (x["cell_type"] == "markdown") for x in cells)
    return {f"[{i}]": said for i, said in own} or {"": path.read_text("utf-8")}


def computed(path: Path) -> list[str]:
    """Markdown that the code cells of a notebook show."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    return ["".join(data["text/markdown"]) for data in shown if "text/markdown" in data]


def reading_load(path: Path) -> dict[str, float]:
    """How much a notebook gives to read, of what is stored in it.

    ``words``, ``tables`` and ``figures`` outside folded cells, ``all words``, sentences ``above 40
    words``, ``words a sentence`` in the mean, and how often it says ``In short``. Read are its
    Markdown cells and what cells show as Markdown. Folded is what is between <details> and
    </details>, and all that a code cell tagged ``hide-output`` shows.
    """
    load = dict.fromkeys(("words", "all words", "tables", "figures", "above 40 words", "short"), 0)
    lengths: list[int] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        shown = [output.get("data", {}) for output in cell.get("outputs", [])]
        texts = ["".join(data["text/markdown"]) for data in shown if "text/markdown" in data]
        if cell["cell_type"] == "markdown":
            texts = ["".join(cell["source"])]
        hidden = "hide-output" in cell["metadata"].get("tags", [])
        open_texts = [] if hidden else [FOLDED.sub("", text) for text in texts]
        load["words"] += sum(map(words, open_texts))
        load["all words"] += sum(map(words, texts))
        lengths += [len(WORD.findall(one)) for text in texts for one in sentences(text)]
        said = [*texts, *("".join(x.get("text", "")) for x in cell.get("outputs", []))]
        load["short"] += sum("In short" in text for text in said)
        if not hidden:
            load["tables"] += sum("text/html" in data for data in shown)
            load["tables"] += sum(len(re.findall(r"^\|[\s:|-]+\|$", x, re.M)) for x in open_texts)
            load["figures"] += sum("image/png" in data for data in shown)
    load["above 40 words"] = sum(n > 40 for n in lengths)
    return load | {"words a sentence": round(sum(lengths) / max(1, len(lengths)), 1)}


# --- what is reached ------------------------------------------------------------------------------

#: A definition: its file, and its name (of a method with its class).
Unit = tuple[Path, str]


@dataclass
class Source:
    """A module as far as names go: its definitions and what its imports stand for."""

    tree: ast.Module
    units: dict[str, ast.AST] = field(default_factory=dict)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.tree.body:
            self.units.update(dict.fromkeys(_defined(node), node))
            if isinstance(node, ast.ClassDef):
                methods = [x for x in node.body if isinstance(x, ast.FunctionDef)]
                self.units.update({f"{node.name}.{x.name}": x for x in methods})
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and not node.level:
                for x in node.names:
                    self.imported[x.asname or x.name] = node.module, x.name
            elif isinstance(node, ast.Import):
                for x in node.names:
                    whole = x.name if x.asname else x.name.partition(".")[0]
                    self.imported[x.asname or whole] = whole, None


@cache
def source(path: Path) -> Source:
    """A module's names."""
    return Source(ast.parse(path.read_text(encoding="utf-8")))


@cache
def file_of(module: str) -> Path | None:
    """The file of a module of the project; None of a library's."""
    for folder in FOLDERS:
        stem = folder.joinpath(*module.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
    return None


def resolved(module: str, name: str | None) -> Unit | str | None:
    """What a name of a module stands for: a definition, a module's name, or nothing of ours."""
    path = file_of(module)
    if name is None:
        return module if path else None
    if path and name in source(path).units:
        return path, name
    if path and name in source(path).imported:
        return resolved(*source(path).imported[name])
    return f"{module}.{name}" if file_of(f"{module}.{name}") else None


def names(code: Source, node: ast.AST, path: Path | None) -> tuple[set[Unit], set[str]]:
    """Definitions that a piece of code names, and the attributes that it asks of objects."""
    units: set[Unit] = set()
    attributes = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            attributes.add(part.attr)
        chain, root = [], part
        while isinstance(root, ast.Attribute):
            chain.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name):
            continue
        meant: Unit | str | None = None
        if path and root.id in code.units:
            meant = path, root.id
        elif root.id in code.imported:
            meant = resolved(*code.imported[root.id])
        while isinstance(meant, str) and chain:
            meant = resolved(meant, chain.pop())
        if isinstance(meant, tuple):
            units.add(meant)
    return units, attributes


@cache
def names_in(path: Path, node: ast.AST) -> tuple[set[Unit], set[str]]:
    """`names` of a part of a module, looked up once for all notebooks."""
    return names(source(path), node, path)


def reached(code: Iterable[Source]) -> set[Unit]:
    """All definitions that some code reaches."""
    seen: set[Unit] = set()
    asked: set[str] = set()
    methods: dict[str, list[Unit]] = defaultdict(list)  # of classes that are reached
    waiting: list[Unit] = []

    def follow(units: set[Unit], attributes: set[str]) -> None:
        waiting.extend(units)
        for attribute in attributes - asked:
            asked.add(attribute)
            waiting.extend(methods[attribute])

    for each in code:
        follow(*names(each, each.tree, None))
    while waiting:
        path, name = unit = waiting.pop()
        if unit in seen:
            continue
        seen.add(unit)
        of = source(path)
        node = of.units[name]
        if isinstance(node, ast.ClassDef):
            rest = [x for x in node.body if not isinstance(x, ast.FunctionDef)]
            for x in [*rest, *node.bases, *node.decorator_list]:
                follow(*names_in(path, x))
            for method in (x for x in of.units if x.startswith(f"{name}.")):
                last = method.partition(".")[2]
                methods[last].append((path, method))
                if last in asked or last.startswith(("__", "on_")):
                    waiting.append((path, method))
        else:
            follow(*names_in(path, node))
    return seen


def notebook_sources(path: Path) -> list[Source]:
    """The cells of a notebook as one piece of code."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    code = "\n".join(line for x in parts for line in x.splitlines() if line[:1] not in ("%", "!"))
    return [Source(ast.parse(code))]


def unit_lines(unit: Unit) -> set[tuple[Path, int]]:
    """Lines of code of a definition; of a class those of its methods are theirs."""
    path, name = unit
    of = source(path)
    node = of.units[name]
    first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", []))])
    span = set(range(first, node.end_lineno + 1))
    if isinstance(node, ast.ClassDef):
        for method in (x for key, x in of.units.items() if key.startswith(f"{name}.")):
            span -= set(range(method.lineno, method.end_lineno + 1))
    return {(path, line) for line in span & held(path)}


def reached_by_one() -> tuple[int, int]:
    """Lines of code of the package that exactly one notebook reaches (not report), and all."""
    by_notebook = {
        path.stem: {unit for unit in reached(notebook_sources(path)) if PACKAGE in unit[0].parents}
        for path in sorted(NOTEBOOKS.glob("*.ipynb"))
    }
    report = by_notebook.pop("report", set())
    times = Counter(unit for units in by_notebook.values() for unit in units)
    alone = {
        line
        for unit, n in times.items()
        if n == 1 and unit not in report and "report" not in unit[0].parts
        for line in unit_lines(unit)
    }
    return len(alone), sum(map(code_lines, modules()))


def kinds_of_results() -> int:
    """How many kinds of results the project's code defines."""
    return sum(
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Kind")
        for path in [*modules(), *beside()]
        for node in ast.walk(source(path).tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("work.Kind", "Kind")
    )


def sizes() -> dict[str, int]:
    """The numbers that have gates: name → what it is now."""
    one, whole = reached_by_one()
    return {
        "lines of xlx": sum(map(lines, modules())),
        "modules of xlx": len(modules()),
        "code of xlx, notebooks' modules and data": sum(map(code_lines, [*modules(), *beside()])),
        "per cent of xlx's code that one notebook reaches": round(100 * one / whole),
        "kinds of results": kinds_of_results(),
        "lines of tests": sum(map(lines, (ROOT / "tests").rglob("*.py"))),
    }


def main() -> None:
    """Print the counts."""
    total, code = Counter(), Counter()
    for path in [*modules(), *beside()]:
        parts = path.relative_to(ROOT).parts
        room = "/".join(parts[: 2 if len(parts) > 2 else 1])
        total[room] += lines(path)
        code[room] += code_lines(path)
    for room in total:
        print(f"{room:22} {total[room]:6,} lines {code[room]:6,} of code")
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        load = ", ".join(f"{n} {what}" for what, n in reading_load(path).items())
        print(f"{path.stem:22} {load}")
    for name, number in sizes().items():
        print(f"{name:50} {number:6,}")
    places = public_names().items()
    for what, over in (
        ("modules above 800 lines", [(x.name, lines(x)) for x in modules() if lines(x) > 800]),
        ("functions above 60 lines", [f for x in modules() for f in functions(x) if f[1] > 60]),
        ("cells above 15 lines", [cell for cell in cells() if cell[1] > 15]),
        ("public names in several modules", [(name, len(x)) for name, x in places if len(x) > 1]),
    ):
        print(f"{len(over)} {what}:", *(f"{name} {n}" for name, n in over))


if __name__ == "__main__":
    main()
