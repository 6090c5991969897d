"""Pages of functions, made from docstrings, and the table that leads there from the papers."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from xlx.results.paths import ROOT

#: Folders of the package whose functions have a page, and what they are for.
ROOMS = {
    "measures": "The formulas",
    "experiment": "Scores and grids",
    "subjects": "Models",
    "text": "Text",
    "plots": "Figures",
}
#: The lens of a module, or a folder, whose docstrings name no other paper.
LENSES = {
    "abx": "ABX",
    "probing": "ABX",
    "languages": "ABX",
    "mexa": "MEXA",
    "igap": "IGAP",
    "transfers": "IGAP",
    "statistics": "IGAP",
    "jobs": "IGAP",
    "mixing": "within/across",
    "sentence_tasks": "X-Probe",
    "sentence_probes": "X-Probe",
    "xprobe": "X-Probe",
}
NUMBER = r"(?:\d+(?:\.\d+)*[a-z]?|[A-Z](?:\.\d+)?)\b"
#: What a docstring cites of a paper, and the name of a paper before it.
PLACE = re.compile(
    r"(?:Equation|Algorithm|[Ss]ection|Appendi|Figure|Table)[a-z]* "
    rf"{NUMBER}(?:(?:, | and | to |-){NUMBER})*"
)
PAPER = re.compile(
    rf"([A-Z][\w-]+(?: paper| et al\.| and [A-Z]\w+)(?: \(?\d{{4}}\)?)?),? {PLACE.pattern}"
)


@dataclass(frozen=True)
class Function:
    """A public function, class or method of the package, as its source has it."""

    path: Path
    name: str  #: Of a method with its class.
    head: str
    told: str
    line: int

    @property
    def place(self) -> str:
        """Where it stands in the book: page and anchor."""
        return f"functions-{self.path.parent.name}.html#{self.path.stem}.{self.name}"

    @property
    def paper(self) -> str:
        """The paper whose places it cites."""
        named = PAPER.search(" ".join(self.told.split()))
        by_place = LENSES.get(self.path.parent.name) or LENSES.get(self.path.stem, "")
        name = named[1].removesuffix(" paper") if named else by_place
        return name.replace("(", "").replace(")", "")

    @property
    def cited(self) -> list[str]:
        """The places of a paper that its docstring cites, each once."""
        places = PLACE.findall(" ".join(self.told.split()))
        return list(dict.fromkeys(x[0].upper() + x[1:] for x in places))

    @property
    def gist(self) -> str:
        """The first line of the docstring, without the places in brackets."""
        first = self.told.partition("\n")[0].replace("|", r"\|")
        return re.sub(rf" \([^()]*{PLACE.pattern}[^()]*\)", "", first)


@cache
def defined(path: Path) -> dict[str, Function]:
    """The public functions, classes and methods of a module, by name."""

    def members(body: list[ast.stmt], owner: str = "") -> Iterator[Function]:
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            name, docstring = owner + node.name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                yield Function(path, name, f"class {name}", docstring, node.lineno)
                yield from members(node.body, f"{name}.")
            elif docstring or not owner:
                gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                head = f"{name}({ast.unparse(node.args)}){gives}"
                yield Function(path, name, head, docstring, node.lineno)

    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {function.name: function for function in members(body)}


def modules(room: str) -> list[Path]:
    """The modules of a room that have a part of its page."""
    return sorted((ROOT / "xlx" / room).glob("[a-z]*.py"))


def address(path: Path, name: str) -> str:
    """Where the book shows a function: its docstring, or its line in the source of a notebook."""
    function = defined(path)[name]
    if path.parent.parent == ROOT / "xlx" and path.parent.name in ROOMS:
        return function.place
    return f"{path.relative_to(ROOT)}.html#line-{function.line}"


def room_page(room: str) -> Iterator[str]:
    """What a room offers: signatures and docstrings, each with a link to its line."""
    yield f"# {ROOMS[room]}: `xlx.{room}`\n"
    for path in modules(room):
        inside = path.relative_to(ROOT)
        yield f"## [`xlx.{room}.{path.stem}`]({inside})\n"
        for function in defined(path).values():
            yield f'<span id="{path.stem}.{function.name}"></span>\n'
            yield f"```python\n{function.head}\n```\n\n```text\n{function.told}\n```\n"
            yield f"[line {function.line} of {inside}](code:{inside}.html#line-{function.line})\n"


def functions() -> Iterator[str]:
    """The table from the papers to the functions, then the rooms."""
    yield "# From the papers to the functions\n"
    yield "Each row is a function whose docstring names a place of a paper.\n"
    paths = [path for room in ROOMS for path in modules(room)]
    paths += sorted((ROOT / "notebooks" / "xprobe").glob("[a-z]*.py"))
    known = [f for path in paths for f in defined(path).values()]
    lenses = list(dict.fromkeys(LENSES.values()))
    others = {f.paper for f in known if f.cited}.difference(lenses)
    for paper in [*lenses, *sorted(others)]:
        rows = [f for f in known if f.cited and f.paper == paper]
        yield f"## {paper}\n\n| place in the paper | what it is | function |\n|---|---|---|"
        for f in sorted(rows, key=lambda f: f.cited):
            link = f"[`{f.name}`]({f.path.relative_to(ROOT)})"
            yield f"| {', '.join(f.cited)} | {f.gist} | {link} |"
        yield ""
    yield "## All functions, from their docstrings\n\n```{toctree}\n:maxdepth: 1"
    yield "\n".join([*(f"functions-{room}" for room in ROOMS), "```\n"])


def source_page(path: Path) -> str:
    """A module as a page of its own, each line with an anchor."""
    inside = path.relative_to(ROOT)
    form = HtmlFormatter(linenos="inline", lineanchors="line", anchorlinenos=True)
    code = highlight(path.read_text(encoding="utf-8"), PythonLexer(), form)
    style = f"{form.get_style_defs()} body {{ font-family: sans-serif; }} a {{ color: inherit; }}"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{inside}</title><style>{style} pre {{ overflow-x: auto; }}"
        " h1 { overflow-wrap: anywhere; }</style>"
        f'<p><a href="{"../" * (len(inside.parts) - 1)}functions.html">All functions</a></p>'
        f"<h1><code>{inside}</code></h1>{code}</html>\n"
    )
