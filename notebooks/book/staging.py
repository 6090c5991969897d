"""Put the pages of the book together: ``python -m notebooks.book.staging build/book-pages``.

The pages lie as in the repository, so links between them hold as they are. What a page links to
comes along, with what that links to: another page, a picture, a table; a module of Python becomes a
page that shows it. Notebooks come with the outputs that are stored in them.
"""

import json
import os
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import pandas as pd
from PIL import Image

from notebooks.book import functions
from xlx.results.paths import NOTEBOOKS, ROOT

BOOK = NOTEBOOKS / "book"
#: A function by its name, linked to its module.
FUNCTION = re.compile(r"(\[`([\w.]+)`\]\()([^)\s#]+\.py)\)")
LINK = re.compile(r"(\]\(|\]: )([^)\s#]+)(#[^)\s]*)?")
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
EXERCISES = re.compile(r"^(?:##? Exercises?|\*\*Exercises?[.*])", re.MULTILINE)
#: An answer: up to a picture, a table, a formula, a heading, or a paragraph with a name of its own.
SHORT = re.compile(
    r"(?:\*\*In short\.\*\*|^#+ In short$)\s*(.+?)(?=\n\n(?:\*\*|#|!|\||\$\$)|\Z)",
    re.DOTALL | re.MULTILINE,
)
#: Pages that stand at the top of the book; their links are as from there.
TOP = ("index", "glossary", "papers")
#: The folder of pages that show a module, which Sphinx copies into the book as they are.
CODE = Path("_code")
#: Where the page of `notebooks.book.explorer` lies in the book, if `make explorer` has made it.
EXPLORER = "_static/explorer.html"
#: The name of a figure that a cell saves.
SAVED = re.compile(r'style\.save\([^"]*"([\w-]+)"')
#: Terms that are plain words as well, so that a chapter's first use is often no term.
PLAIN = {"Within", "across"}
#: A term of the glossary and what it is; what of a chapter is left as it is.
TERM = re.compile(r"^(?![:#\s])(.+)(?=\n: )", re.MULTILINE)
KEPT = re.compile(
    r"(`[^`]*`|\$[^$]*\$|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|^[#|][^\n]*$|^Paper: [^\n]*$|```.*?```)",
    re.MULTILINE | re.DOTALL,
)


def glossary() -> tuple[str, dict[str, str]]:
    """The glossary with a place for each term, and the place of each way to say a term."""
    places: dict[str, str] = {}

    def placed(term: re.Match) -> str:
        names = [name.strip(' "') for name in term[1].split(",")]
        place = "term-" + re.sub(r"[^a-z0-9μ]+", "-", names[0].lower())
        places.update((name, place) for name in names if len(name) > 1 and name not in PLAIN)
        return f'<span id="{place}"></span>{term[1]}'

    return TERM.sub(placed, (BOOK / "glossary.md").read_text(encoding="utf-8")), places


def explained(text: str, places: dict[str, str], used: set[str], page: Path) -> str:
    """A text of the chapter ``page``, whose first use of each term leads to the glossary.

    ``used``: the places that the chapter has led to, which grow.
    """
    parts, to = KEPT.split(text), os.path.relpath("glossary.html", page.parent)
    for name, place in sorted(places.items(), key=lambda item: -len(item[0])):
        word = re.compile(rf"(?<![\w-]){re.escape(name[0])}{re.escape(name[1:])}(?![\w-])", re.I)
        for i in range(0, len(parts), 2):
            if place not in used and (match := word.search(parts[i])):
                link = f'<a class="term" href="{to}#{place}">{match[0]}</a>'
                parts[i : i + 1] = [parts[i][: match.start()], link, parts[i][match.end() :]]
                used.add(place)
    return "".join(parts)


def views() -> dict[str, str]:
    """Figures whose scores the explorer has → the address of that view."""
    table = pd.read_csv(BOOK / "views.tsv", sep="\t", index_col="figure")
    return table["view"].to_dict()


def with_views(cells: Sequence[dict], page: Path) -> Iterator[dict]:
    """The cells, each that saves a figure followed by a link to its view in the explorer."""
    known, to = views(), os.path.relpath(EXPLORER, page.parent)
    for cell in cells:
        yield cell
        saved = SAVED.findall("".join(cell["source"])) if cell["cell_type"] == "code" else ()
        for view in dict.fromkeys(known[name] for name in saved if name in known):
            link = f'<a href="{to}#{escape(view)}">These scores in the explorer</a>'
            text = f"{link}: choose model, layer and languages."
            about = {"id": f"{cell['id']}-view", "source": text}
            yield {"cell_type": "markdown", "metadata": {}} | about


class Pages:
    """A folder of pages that grows by what its pages link to."""

    def __init__(self, folder: Path, explorer: bool = False) -> None:
        self.folder, self.explorer = folder, explorer
        self.there: set[Path] = set()
        self.glossary, self.terms = glossary()

    def take(self, path: Path) -> Path:
        """Bring a file of the repository along, if it is not there; where its page is."""
        inside = path.relative_to(ROOT)
        page = CODE / f"{inside}.html" if path.suffix == ".py" else inside
        if page in self.there:
            return page
        self.there.add(page)
        target = self.folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb":
            notebook = json.loads(path.read_text(encoding="utf-8"))
            notebook["cells"] = folded(notebook["cells"])
            if self.explorer:
                notebook["cells"] = [*with_views(notebook["cells"], inside)]
            used: set[str] = set()
            for cell in notebook["cells"]:
                if cell["cell_type"] == "markdown":
                    text = explained("".join(cell["source"]), self.terms, used, inside)
                    cell["source"] = self.linked(text, path)
                for output in cell.get("outputs", ()):  # Sphinx leaves the links in them alone
                    text = "".join(output.get("data", {}).get("text/markdown", ""))
                    if picture := output.get("metadata", {}).get("image/png"):
                        cell["metadata"].setdefault("mystnb", {})["image"] = picture  # its text
                    if text:
                        output["data"]["text/markdown"] = re.sub(r"\.ipynb([)#])", r".html\1", text)
            target.write_text(json.dumps(notebook), encoding="utf-8")
        elif path.suffix == ".md":
            text = FRONT.sub("", self.linked(path.read_text(encoding="utf-8"), path)).lstrip()
            head = "" if text.startswith("# ") else f"# {path.parent.name}\n\n"
            target.write_text(f"---\norphan: true\n---\n\n{head}{text}", encoding="utf-8")
        elif path.suffix == ".py":
            target.write_text(functions.source_page(path), encoding="utf-8")
        else:
            shutil.copy(path, target)
        return page

    def linked(self, text: str, path: Path) -> str:
        """A text whose links into the repository lead to pages of the book."""

        def function(link: re.Match) -> str:
            target = (path.parent / link[3]).resolve()
            if not target.is_file() or link[2] not in functions.defined(target):
                return link[0]
            self.take(target)
            to = ROOT / functions.address(target, link[2])
            return f"{link[1]}code:{os.path.relpath(to, path.parent)})"

        def place(link: re.Match) -> str:
            start, to, anchor = link[1], link[2], link[3] or ""
            if re.match(r"[a-z]+:", to):
                return link[0]
            target = (path.parent / to).resolve()
            if target.is_dir():  # its page, or what else says what is in it
                target = min(target.glob("*.*"), key=lambda x: (x.name != "README.md", x.name))
            if not target.is_file() or not target.is_relative_to(ROOT):
                return link[0]
            anchor = anchor if target.suffix in (".md", ".ipynb") else ""
            top = target.parent == BOOK and target.stem in TOP
            taken = Path(f"{target.stem}.md") if top else self.take(target)
            if target.suffix == ".py":
                page = os.path.relpath(f"{target}.html", path.parent)
                return f"{start}code:{page}#line-1"
            page = os.path.relpath(ROOT / taken, path.parent)
            return f"{start}{page}{anchor}"

        return LINK.sub(place, FUNCTION.sub(function, text))

    def write(self, name: str, text: str) -> None:
        """Write a page that is made here, at the top of the book."""
        self.there.add(Path(name))
        (self.folder / name).write_text(self.linked(text, ROOT / name), encoding="utf-8")


def chapters() -> Iterator[Path]:
    """The chapters in the order in which they are read."""
    listed = (BOOK / "chapters.md").read_text(encoding="utf-8")
    yield from (NOTEBOOKS / name for name in re.findall(r"\[`([\w-]+\.ipynb)`\]", listed))


def cells_of(path: Path) -> list[dict]:
    """The cells of a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def gallery() -> Iterator[str]:
    """The figures of the notebooks by chapter, each with the text that describes it."""
    yield "# Gallery of figures\n"
    for path in chapters():
        pictures = sorted((ROOT / "figures").glob(f"{path.stem}-*.png"))
        if pictures:
            yield f"## [{path.stem}](notebooks/{path.name})\n"
        for picture in pictures:
            with Image.open(picture) as image:
                caption = image.info.get("Description", picture.stem)
            caption = caption.translate(str.maketrans("[]", "()"))
            yield f"![{caption}](figures/{picture.name})\n\n*{caption}*\n"


def folded(cells: list[dict]) -> list[dict]:
    """The cells, where code that shows nothing is folded, and such cells in a row are one."""
    staged: list[dict] = []
    for cell in cells:
        silent = cell["cell_type"] == "code" and not cell["outputs"]
        before = staged[-1] if staged else {"metadata": {}, "outputs": ()}
        assembly = "hide-input" in before["metadata"].get("tags", ()) and not before["outputs"]
        if silent and assembly:
            before["source"] = "".join([*before["source"], "\n\n", *cell["source"]])
            continue
        if silent:
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", ()), "hide-input"]
        staged.append(cell)
    return staged


def short_answer(cells: Sequence[dict]) -> str:
    """The whole answer of a chapter, its paragraphs and lists; nothing where it has none."""
    typed = "\n\n".join("".join(x["source"]) for x in cells if x["cell_type"] == "markdown")
    match = SHORT.search(typed)
    return match[1].strip() if match else ""


def answers() -> Iterator[str]:
    """What each chapter says "in short"."""
    yield "# The answers, in short\n\nA person typed each; its chapter computes the numbers.\n"
    for path in chapters():
        cells = cells_of(path)
        title = "".join(cells[0]["source"]).partition("\n")[0].lstrip("# ")
        if answer := short_answer(cells):
            yield f"**[{title}](notebooks/{path.name})** {answer}\n"


def exercises() -> Iterator[str]:
    """The exercises by chapter, without their answers."""
    yield "# Exercises\n\nAnswers are folded, in the chapters.\n"
    for path in chapters():
        cells = cells_of(path)
        for source in ("".join(c["source"]) for c in cells if c["cell_type"] == "markdown"):
            if match := EXERCISES.search(source):
                text = source[match.end() :].partition("<details>")[0]
                text = re.sub(r"^#+ ", "**", text.lstrip(" .*s\n"), flags=re.MULTILINE)
                yield f"## [{path.stem}](notebooks/{path.name})\n\n{text.strip()}\n"


def moved() -> Iterator[str]:
    """Where chapters are that had an address of their own."""
    yield "# Chapters that moved\n\n| was | is part of |\n|---|---|"
    for old, new in pd.read_csv(BOOK / "moved.tsv", sep="\t").to_numpy():
        yield f"| {old} | [{new}](notebooks/{new}.ipynb) |"


def places() -> dict[str, dict[str, str]]:
    """By tag of a cell: the chapters with such cells, and a link to the heading above the first."""
    links = defaultdict(dict)
    for path in chapters():
        anchor = ""
        for cell in cells_of(path):
            for heading in re.findall(r"(?m)^###? (.+)$", "".join(cell["source"])):
                anchor = re.sub(r"[^#\w-]", "", f"#{heading.lower().replace(' ', '-')}")
            for tag in cell["metadata"].get("tags", ()):
                links[tag].setdefault(path.stem, f"[{path.stem}](notebooks/{path.name}{anchor})")
    return links


def papers() -> Iterator[str]:
    """What of each paper is here, how far, and in which chapters."""
    items = pd.read_csv(BOOK / "papers.tsv", sep="\t")
    yield """# What of each paper is here

*Complete*: by the paper's own design, on models of its sizes or larger, or without any.
*Partial*: on other models, sizes or data. *Only printed*: the paper's numbers alone are read.
A link leads to the first cell of a chapter that makes the item.
"""
    yield pd.crosstab(items.paper, items.state).to_html()
    links = places()
    for paper, rows in items.groupby("paper", sort=False):
        yield f"\n## {paper}\n\n| item | where | state | why |\n|---|---|---|---|"
        for row in rows.itertuples():
            where = ", ".join(links[row.tag].values())
            yield f"| {row.what} | {where} | {row.state} | {row.reason} |"


def with_explorer(text: str, explorer: Path) -> str:
    """A text, without the lines that lead to the explorer where there is none."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if EXPLORER not in line or explorer.is_file())


def stage(folder: Path, explorer: Path = ROOT / "build" / "explorer.html") -> None:
    """Write all pages of the book into a folder that is made anew, with the explorer, if made.

    ValueError for a folder with files that are not pages of a book.
    """
    sign = folder / ".made-by-xlx-book"
    if folder.exists() and any(folder.iterdir()) and not sign.exists():
        raise ValueError(f"{folder} holds files that are no book's: give an empty or a new folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sign.touch()
    pages = Pages(folder, explorer.is_file())
    for made in (answers, gallery, exercises, moved, papers, functions.functions):
        pages.write(f"{made.__name__}.md", "\n".join(made()))
    for room in functions.ROOMS:
        pages.write(f"functions-{room}.md", "\n".join(functions.room_page(room)))
    chapters = [*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("course/*.ipynb")]
    for path in sorted([*BOOK.glob("*.md"), *chapters]):
        if path.stem in TOP:
            text = pages.glossary if path.stem == "glossary" else path.read_text(encoding="utf-8")
            pages.write(path.name, with_explorer(text, explorer))
        else:
            pages.take(path)
    shutil.copy(BOOK / "conf.py", folder)
    shutil.copytree(BOOK / "static", folder / "_static")
    if explorer.is_file():
        shutil.copy(explorer, folder / EXPLORER)


if __name__ == "__main__":
    stage(Path(sys.argv[1]).resolve())
