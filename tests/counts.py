"""How much there is to read in each notebook.

python -m tests.counts
"""

import json
import re
from pathlib import Path

from xlx.results.paths import NOTEBOOKS

WORD = re.compile(r"\w[\w'’.,-]*")
FOLDED = re.compile(r"<details.*?</details>", re.DOTALL)
#: The text of a picture, which is heard and not read beside it.
PICTURE = re.compile(r"!\[[^][]*\]\([^)]*\)")
#: What is no sentence: code, formulas, rows of tables, the line of links, addresses.
NO_SENTENCE = re.compile(
    rf"{PICTURE.pattern}|"
    r"```.*?```|\$\$.*?\$\$|^ *\|.*?$|^Paper: .*?$|(?<=\])\([^)]*\)|https?://\S+",
    re.DOTALL | re.M,
)
CELL = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)
ATOM = re.compile(r"`[^`]*`|\$[^$]*\$")
#: What has a digit and is no number: links, marks of lists, what a paper numbers, years, names.
NO_NUMBER = re.compile(
    r"\[[^][]*\]\([^)]*\)|^\s*\d+\.(?= |$)|<[^<>]*>|\b(?:19|20)\d\d\b|\b[A-Z]\.\d+"
    r"|\b(?:Tables?|Figures?|Appendix|Appendices|[Ss]ections?|[Ee]quations?|[Ll]essons?|[Cc]laims?)"
    r" [A-Z]?[\d.]+(?:(?:, | and | to |, and )[A-Z]?\d[\d.]*)*|\b[A-Za-zα-ω][\w+-]*\d[\w.+-]*"
    r"|\b(?:XLM-R|xlm-r|Llama|Gemma|OLMo|Mistral|Qwen)[ -]?\d[\d.]*(?: \d+[BM])?"
)


def words(text: str) -> int:
    """Words of Markdown, without tags, pictures and the addresses of links."""
    unread = rf"{PICTURE.pattern}|\(http[^)]*\)|https?://\S+|</?[a-z]+>"
    return len(WORD.findall(re.sub(unread, "", text)))


def sentences(text: str) -> list[str]:
    """Sentences of Markdown: what ends in . ! ? or a paragraph; a piece of code is a word."""
    plain = ATOM.sub("x", NO_SENTENCE.sub("", text))
    lines = re.split(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.) )", plain)
    return [one for line in lines for one in re.split(r"(?<=[.!?])[*_)]*\s+", line)]


def numbers(sentence: str) -> int:
    """Numbers of one of the `sentences`, without those in names and references (`NO_NUMBER`)."""
    return len(re.findall(r"\d[\w.,:/−-]*", NO_NUMBER.sub("x", sentence)))


def table_numbers(cell: dict) -> int:
    """Numbers in the tables and the printed lines that a cell of code shows, if they are open."""
    tags, n = cell["metadata"].get("tags", []), 0
    for output in cell.get("outputs", []) if "hide-output" not in tags else []:
        data = output.get("data", {})
        if "text/html" in data:
            texts = [re.sub("<[^>]*>", "", x) for x in CELL.findall("".join(data["text/html"]))]
        elif "numbers" in tags or "image/png" in data or "text/markdown" in data:
            texts = []
        else:
            texts = ["".join(output.get("text", data.get("text/plain", "")))]
        n += sum(len(re.findall(r"\d[\w.,:/−-]*", text)) for text in texts)
    return n


def typed(path: Path) -> dict[str, str]:
    """Markdown that a person wrote: where → text, of the cells of a notebook or of a page."""
    cells = json.loads(path.read_text("utf-8"))["cells"] if path.suffix == ".ipynb" else []
    own = enumerate("".join(x["source"]) * (x["cell_type"] == "markdown") for x in cells)
    return {f"[{i}]": said for i, said in own} or {"": path.read_text("utf-8")}


def reading_load(path: Path) -> dict[str, float]:
    """How much a notebook gives to read, of what is stored in it.

    ``words``, ``tables``, their ``numbers`` and ``figures`` outside folded cells, ``all words``,
    sentences ``above 40 words``, ``words a sentence`` in the mean, and how often it says ``In
    short``. Read are its Markdown cells and what cells show as Markdown. Folded is what is
    between <details> and </details>, and all that a code cell tagged ``hide-output`` shows.
    """
    load = dict.fromkeys(
        ("words", "all words", "tables", "numbers", "figures", "above 40 words"), 0
    )
    load["short"] = 0
    lengths: list[int] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        shown = [output.get("data", {}) for output in cell.get("outputs", [])]
        texts = ["".join(data["text/markdown"]) for data in shown if "text/markdown" in data]
        if cell["cell_type"] == "markdown":
            texts = ["".join(cell["source"])]
        hidden = "hide-output" in cell["metadata"].get("tags", [])
        open_texts = [] if hidden else [FOLDED.sub("", text) for text in texts]
        load["words"] += sum(map(words, open_texts))
        load["numbers"] += table_numbers(cell)
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


def main() -> None:
    """Print the counts."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        load = ", ".join(f"{n} {what}" for what, n in reading_load(path).items())
        print(f"{path.stem:22} {load}")


if __name__ == "__main__":
    main()
