"""Typed paragraphs beside the numbers that their notebook computes.

A person writes the paragraph, which begins with its name: ``**In short.** ...``. A code cell tagged
``numbers`` and ``of:In short`` prints the same numbers in the same order; a line such as ``LD
rises: True`` is what the words assume.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest

from nbformat import NotebookNode

#: A number in prose: with a sign, thousands and a fraction; not within a word or a name.
NUMBER = re.compile(r"(?<![\w.,-])[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
#: What has digits and states nothing: code, formulas, targets of links.
UNREAD = re.compile(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|[A-Za-z]\w*-\d+")


def numbers(text: str) -> list[str]:
    """The numbers of a text in order; a typed minus is that of a keyboard."""
    return [x.replace("−", "-").lstrip("+") for x in NUMBER.findall(UNREAD.sub(" ", text))]


def disagreements(notebook: NotebookNode) -> Iterator[str]:
    """A sentence for each number that is typed otherwise, and each assumption that turned."""
    cells = notebook.cells
    typed = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    paragraphs = {x[2:].partition(".**")[0]: x for x in typed.split("\n\n") if x.startswith("**")}
    for cell in cells:
        for tag in cell.metadata.get("tags", []):
            if not tag.startswith("of:"):
                continue
            name = tag.removeprefix("of:")
            printed = "".join(x.text for x in cell.outputs if x.output_type == "stream")
            assumed = [x for x in printed.splitlines() if x.endswith((": True", ": False"))]
            computed = " ".join(x for x in printed.splitlines() if x not in assumed)
            if name not in paragraphs:
                yield f"no paragraph begins with **{name}.**"
            pairs = zip_longest(
                numbers(paragraphs.get(name, "")), numbers(computed), fillvalue="none"
            )
            for place, (there, value) in enumerate(pairs, 1):
                if there != value:
                    yield f"{name}: number {place} is typed {there} and computed {value}"
            for line in assumed:
                if line.endswith(": False"):
                    yield f"{name}: it is not so that {line.rpartition(': ')[0]}"
