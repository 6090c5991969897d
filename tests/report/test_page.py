"""The page: figures with their text, tables and links, and nothing from elsewhere."""

import base64
import html
import io
import re

import matplotlib.pyplot as plt

from tests.report.conftest import Written
from xlx.plots.style import WIDTH
from xlx.report.tables import TABLES

#: Tables that are there where they are asked for.
ASKED_FOR = {"task_fits", "task_points", "probes"}


def test_figures_lie_inside_and_have_text(written: Written) -> None:
    figures = re.findall(
        r'<img alt="([^"]+)"[^>]*src="data:image/png;base64,([^"]+)"', written.page
    )
    assert len(figures) == written.page.count("<img") == 5
    for text, data in figures:
        assert len(text) > 40
        height, width, _ = plt.imread(io.BytesIO(base64.b64decode(data)), format="png").shape
        assert min(height, width) > 150
        assert width <= 120 * WIDTH


def test_links_lead_somewhere(written: Written) -> None:
    ids, links = (set(re.findall(f'{what}="([^"]+)"', written.page)) for what in ("id", "href"))
    assert {f"tables/{name}.csv" for name in written.tables} < links
    for link in links:
        assert link[1:] in ids if link.startswith("#") else (written.folder / link).is_file()


def test_the_page_has_all_and_needs_nothing_else(written: Written) -> None:
    assert set(written.tables) == set(TABLES) - ASKED_FOR
    assert written.page.count("<table") == len(written.tables)
    assert len(written.said["answers"]) == 2 * 11
    plain = html.unescape(written.page)
    assert all(answer["sentence"] in plain for answer in written.said["answers"])
    assert not re.search(r"https?://|<script|<link|@import", written.page)
    assert len(written.page.encode()) < 3_000_000
