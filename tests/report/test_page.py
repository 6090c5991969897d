"""The page: figures with their text, tables and links, and nothing from elsewhere."""

import base64
import html
import io
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import pytest

from tests.report.conftest import Written
from xlx.report.tables import HEADINGS

#: Tables that are there where they are asked for.
ASKED_FOR = {"task_fits", "task_points", "probes"}


class Opened(HTMLParser):
    """What a reader of the page meets: elements with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.met: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str]]) -> None:
        self.met.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.met if name == tag]


@pytest.fixture(scope="module")
def opened(written: Written) -> Opened:
    return Opened(written.page)


def test_elements_are_closed(opened: Opened) -> None:
    assert opened.open == []


def test_figures_lie_inside_and_have_text(opened: Opened) -> None:
    figures = opened.of("img")
    assert len(figures) == 7
    for figure in figures:
        assert len(figure["alt"]) > 40
        kind, _, data = figure["src"].partition(",")
        assert kind == "data:image/png;base64"
        height, width, _ = plt.imread(io.BytesIO(base64.b64decode(data)), format="png").shape
        assert min(height, width) > 150


def test_links_lead_somewhere(opened: Opened, written: Written) -> None:
    ids = {attributes["id"] for _, attributes in opened.met if "id" in attributes}
    links = {link["href"] for link in opened.of("a")}
    assert {f"tables/{name}.csv" for name in written.tables} < links
    for link in links:
        assert link[1:] in ids if link.startswith("#") else (written.folder / link).is_file()


def test_tables_are_shown(opened: Opened, written: Written) -> None:
    assert set(written.tables) == set(HEADINGS) - ASKED_FOR
    assert len(opened.of("table")) == len(written.tables)


def test_the_page_needs_nothing_else(opened: Opened, written: Written) -> None:
    assert not re.search(r"https?://|<script|<link|@import", written.page)
    assert len(written.page.encode()) < 3_000_000


def test_every_answer_is_on_the_page(written: Written) -> None:
    plain = html.unescape(written.page)
    assert len(written.said["answers"]) == 2 * 12
    for answer in written.said["answers"]:
        assert answer["sentence"] in plain
