"""What the front page says is what `start` and the course say, and what their cells compute."""

import json
import re
from pathlib import Path

import nbformat
import yaml

import xlx
from xlx.results.paths import NOTEBOOKS, ROOT

#: Without names (`gemma-3-270m`, XLM-R 100) and links.
NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)|[A-Za-z]\w*-\d+")
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")


def numbers(text: str) -> list[float]:
    """The numbers of a text, in order."""
    return [float(x.replace("−", "-")) for x in NUMBER.findall(NAMES.sub("", text))]


def pages(name: str) -> tuple[str, str, str]:
    """Markdown of a notebook, what its cell tagged ``numbers`` printed, and what all others did."""
    cells = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
    typed = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    typed = re.sub(r"(?<!\n)\n(?!\n)", " ", typed)
    shown = {True: "", False: ""}
    for cell in cells:
        for output in cell.get("outputs", ()):
            own = output.get("text") or output.get("data", {}).get("text/plain", "")
            shown["numbers" in cell.metadata.get("tags", ())] += own
    return typed, shown[True], shown[False]


def findings(readme: Path = ROOT / "README.md") -> list[str]:
    """The findings of the front page, without their titles, each in one line."""
    section = (
        readme.read_text(encoding="utf-8").partition("## Five findings")[2].partition("\n## ")[0]
    )
    found = re.findall(r"^- \*\*[^*]+\*\* (.*?)(?=^- |^\n|\Z)", section, re.DOTALL | re.MULTILINE)
    return [" ".join(one.split()) for one in found]


def test_the_front_page_has_the_numbers_that_start_computes_and_its_words() -> None:
    typed, printed, _ = pages("start")
    lines = dict(line.split(": ", 1) for line in printed.strip().splitlines())
    said = findings()
    assert len(said) == 5
    for one, values in zip(said, lines.values(), strict=False):
        assert one in typed
        assert numbers(one) == numbers(values)
    assert lines["not so"] == "none"
    rest = "".join(
        x for x in typed.split("\n\n") if x.startswith(("**In short", "**Answer", "The dec"))
    )
    assert set(numbers(rest)) - {11, 5} <= set(numbers(printed))  # numbers of layers


def test_the_lesson_says_the_same_of_two_languages() -> None:
    typed, _, printed = pages("course/lesson-6-mixing")
    said = findings()[3]
    assert said in typed
    (own,) = (x for x in typed.split("\n\n") if x.startswith("**What this says.**"))
    assert set(numbers(own)) <= set(numbers(printed))


def test_the_door_of_the_book_has_the_numbers_of_the_front_page() -> None:
    door = (NOTEBOOKS / "book" / "index.md").read_text(encoding="utf-8")
    said = re.findall(r"^- \*\*.*", door, re.MULTILINE)
    assert len(said) == 5
    for one, finding in zip(said, findings(), strict=True):
        assert numbers(one)
        assert set(numbers(one)) <= set(numbers(finding))


def test_who_cites_or_catalogues_finds_one_name_version_and_licence() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    listed = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    assert cited["version"] == listed["version"] == xlx.__version__
    assert cited["title"].startswith(f"{listed['name']}: ")
    assert listed["license"].endswith(f"/{cited['license']}")
    assert cited["keywords"] == listed["keywords"]
    assert [x["name"] for x in cited["authors"]] == [x["name"] for x in listed["author"]]
    assert all((ROOT / listed[x]).is_file() for x in ("readme", "contIntegration"))


def test_an_issue_has_a_template_of_its_kind() -> None:
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert len(templates) == 4
    for path in templates:
        _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
        assert {"name", "about", "labels"} == yaml.safe_load(head).keys()
        assert body.count("**") >= 4
