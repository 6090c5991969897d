"""Typed paragraphs beside the numbers that their notebook computes.

A person writes the paragraph, which begins with its name: ``**In short.** ...``. A code cell tagged
``numbers`` and ``of:In short`` prints the same numbers in the same order; a line such as ``LD
rises: True`` is what the words assume.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import indent

from nbformat import NotebookNode

#: A number in prose: with a sign, thousands and a fraction; not within a word or a name.
NUMBER = re.compile(r"(?<![\w.,-])[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
#: What has digits and states nothing: code, formulas, targets of links.
UNREAD = re.compile(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|[A-Za-z]\w*-\d+")


def typed(text: str) -> list[re.Match[str]]:
    """The numbers of a text in order, where they stand."""
    read = UNREAD.sub(lambda match: " " * len(match[0]), text)
    return list(NUMBER.finditer(read))


def numbers(text: str) -> list[str]:
    """The numbers of a text in order; a typed minus is that of a keyboard."""
    return [match[0].replace("−", "-").lstrip("+") for match in typed(text)]


@dataclass(frozen=True)
class Paragraph:
    """A typed paragraph, ``text`` in ``cell`` (None: there is none), and what its notebook has."""

    name: str
    cell: NotebookNode | None
    text: str
    computed: list[str]
    turned: list[str]  # what the words assume and is not so

    def disagreements(self) -> Iterator[str]:
        """A sentence for each number that is typed otherwise, and each assumption that turned."""
        if self.cell is None:
            yield f"no paragraph begins with **{self.name}.**"
        pairs = zip_longest(numbers(self.text), self.computed, fillvalue="none")
        for place, (there, value) in enumerate(pairs, 1):
            if there != value:
                yield f"{self.name}: number {place} is typed {there} and computed {value}"
        for assumed in self.turned:
            yield f"{self.name}: it is not so that {assumed}"

    def write_back(self) -> None:
        """Type the computed numbers, where all that the words assume is so and none is missing."""
        places, text = typed(self.text), self.text
        if self.turned or len(places) != len(self.computed):
            return
        for match, value in reversed([*zip(places, self.computed, strict=True)]):
            sign = "+" if match[0][0] == "+" and value[0] != "-" else ""
            text = text[: match.start()] + sign + value.replace("-", "−") + text[match.end() :]
        if numbers(text) != numbers(self.text):
            self.cell.source = self.cell.source.replace(self.text, text)


def paragraphs(notebook: NotebookNode) -> Iterator[Paragraph]:
    """The paragraphs that a cell tagged ``of:<name>`` prints the numbers of."""
    there = {
        text[2:].partition(".**")[0]: (cell, text)
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for text in cell.source.split("\n\n")
        if text.startswith("**")
    }
    for cell in notebook.cells:
        names = [x.removeprefix("of:") for x in cell.metadata.get("tags", []) if x[:3] == "of:"]
        for name in names:
            printed = "".join(x.text for x in cell.outputs if x.output_type == "stream")
            assumed = [x for x in printed.splitlines() if x.endswith((": True", ": False"))]
            computed = " ".join(x for x in printed.splitlines() if x not in assumed)
            turned = [x.removesuffix(": False") for x in assumed if x.endswith(": False")]
            yield Paragraph(name, *there.get(name, (None, "")), numbers(computed), turned)


def lenient(notebook: NotebookNode) -> NotebookNode:
    """The notebook, in which cells of numbers end where they ask for what another run has not."""
    for cell in notebook.cells:
        if "numbers" in cell.metadata.get("tags", []):
            body = indent(cell.source, "    ")
            cell.source = f"import contextlib\n\nwith contextlib.suppress(Exception):\n{body}"
    return notebook


def without_readings(notebook: NotebookNode) -> NotebookNode:
    """The notebook less the paragraphs that cells of numbers speak of, and these cells."""
    for paragraph in paragraphs(notebook):
        if paragraph.cell is not None:
            left = [x for x in paragraph.cell.source.split("\n\n") if x != paragraph.text]
            paragraph.cell.source = "\n\n".join(left)
    notebook.cells = [x for x in notebook.cells if "numbers" not in x.metadata.get("tags", [])]
    return notebook


def disagreements(notebook: NotebookNode) -> Iterator[str]:
    """`Paragraph.disagreements` of all paragraphs."""
    for paragraph in paragraphs(notebook):
        yield from paragraph.disagreements()
