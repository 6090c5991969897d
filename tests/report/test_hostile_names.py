"""Names that hold markup and script: a page shows them as they are, and nothing of them runs."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from tests import tiny
from tests.report.conftest import LANGUAGES, Written
from tests.test_book import BROWSER, INTO_THE_SANDBOX, in_browser
from xlx.report import explorer
from xlx.report.page import report_page
from xlx.report.sentences import answer_list, answers_of
from xlx.report.tables import Tables

#: What a name tries to run, in its page and in the one around it.
RUN = "self.document.body.dataset.ran=parent.document.body.dataset.ran=1"
#: Pieces of a name, one a line.
ELEMENTS = """\
img src=x onerror
svg onload
svg/onload
iframe srcdoc
a href
body onload
input autofocus onfocus
details open ontoggle
style onload
base href""".splitlines()
ENDS = """\
"
'
`
>
-->
<!--
<!--<script>
]]>
</script>
</title>
</select>
</td></table>
</iframe>
\\
&quot;
&#60;img&#62;
&lt;b&gt;
<b>
<br>""".splitlines()
CODES = """\
<script>RUN</script>
javascript:RUN
${RUN}
{{RUN}}
');RUN;('
%{y}
$body
/* DATA */
/* PLOTLY */
/* POLICY */
$x$
a|b""".replace("RUN", RUN).splitlines()
SIGNS = ("\u202e", "\u200f", "\u2028", "\u2029", "\ufeff", "e\u0301", "\U0001f642", "\u0085")
#: Opens a page, chooses each of its texts, presses every link, and writes down all that is shown.
FRAME = """<body><iframe src="PAGE" width="900" height="900"></iframe><script>
const outer = document.querySelector("iframe");
const timer = setInterval(() => {
  const page = outer.contentDocument, inner = page?.querySelector("iframe");
  inner?.scrollIntoView();
  const within = inner ? inner.contentDocument : page;
  if (!within?.body?.dataset.ready) return;
  clearInterval(timer);
  const select = within.getElementById("text"), seen = [];
  within.getElementById("cells").open = true;
  const texts = where => [...within.querySelectorAll(where)].map(x => x.textContent);
  for (const { value } of select.options) {
    select.value = value;
    select.dispatchEvent(new Event("input", { bubbles: true }));
    seen.push({ options: texts("option"), boxes: texts("#languages label"), says: texts("#says"),
      rows: texts("#numbers tbody th"), matrix: texts("#matrix tbody th"),
      legend: texts("#layers .legendtext"),
      titles: texts("#maps .gtitle, #layers .ytitle"), ticks: texts("#maps .ytick text") });
  }
  const report = page.querySelector("main").textContent;
  const links = [...page.querySelectorAll("a[href^=java]")];
  links.forEach(x => x.click());
  setTimeout(() => {
    const ran = [document, page, within].map(x => x.body.dataset.ran ?? "");
    const said = encodeURIComponent(JSON.stringify({ seen, report, ran, links: links.length }));
    document.body.innerHTML = `<pre>${said}</pre>done`;
  }, 500);
}, 50);
</script></body>"""


def hostile_names(seed: int, n: int = 20) -> list[str]:
    """Names put together by chance from pieces of markup and script."""
    rng = np.random.default_rng(seed)

    def element() -> str:
        quote = rng.choice(["", '"', "'"])
        return f"<{rng.choice(ELEMENTS)}={quote}{rng.choice(['', 'javascript:'])}{RUN}{quote}>"

    kinds = (
        element,
        *(lambda choices=choices: str(rng.choice(choices)) for choices in (ENDS, CODES, SIGNS)),
    )
    return [f"{''.join(kinds[k]() for k in rng.integers(4, size=4))}{i}" for i in range(n)]


def spaced(name: str) -> str:
    """A name with one space for each stretch of white space, as a browser draws it."""
    return " ".join(re.split(r"[\s\ufeff]+", name)).strip()


def page_of(names: Sequence[str]) -> str:
    """An explorer whose texts, models, languages and measures have these names."""
    keys = [x.replace("|", "/") for x in names]
    scores = np.linspace(0, 1, 2 * (len(names) * (len(names) - 1) // 2 + 3)).reshape(2, -1)
    texts = [{"title": x, "codes": names, "names": names, "n": 9} for x in names]
    entries = ((f"{i}|{key}|{key}|raw|only", scores) for i, key in enumerate(keys))
    measures = dict(zip(keys, names, strict=True))
    data = explorer.packed_scores(entries, texts=texts, models=keys, measures=measures)
    return explorer.explorer_page(data)


def renamed(written: Written, names: Sequence[str]) -> tuple[Tables, Sequence[str]]:
    """The tables of a report whose models and languages have these names, and the models."""
    models = [*written.output["models"]]
    known = dict(zip([*models, *LANGUAGES], names, strict=False))
    tables = {name: table.replace(known) for name, table in written.tables.items()}
    return tables, names[: len(models)]


def report_of(written: Written, names: Sequence[str], page: str) -> str:
    """A report whose models, languages, text and notes have these names."""
    tables, models = renamed(written, names)
    tables["task_points"] = pd.DataFrame({x: [x] for x in names} | {"model": [""]})
    about = written.output | {"text": names[-1]}
    about["models"] = dict(zip(models, about["models"].values(), strict=True))
    answers = [x for model in about["models"] for x in answers_of(tables, model)]
    return report_page(tables, answers, about, names, explorer.in_frame(page))


def policy(page: BeautifulSoup) -> str:
    """What a page lets in."""
    return page.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_name_is_text_and_changes_no_structure(written: Written, seed: int) -> None:
    names, plain = hostile_names(seed), [f"name {i}" for i in range(20)]
    page, simple = page_of(names), page_of(plain)
    pages = page, report_of(written, names, page), simple, report_of(written, plain, simple)
    explored, report, *like = (BeautifulSoup(x, "html.parser") for x in pages)
    for page_1, other in zip((explored, report), like, strict=True):
        tags = [
            [(x.name, [*x.attrs]) for x in choices.find_all(True)] for choices in (page_1, other)
        ]
        assert tags[0] == tags[1]
        assert policy(page_1) == policy(other)
        assert policy(page_1).startswith("default-src 'none'; script-src 'sha256-")
        assert not re.search(r"https?:|\*|eval|script-src[^;]*unsafe", policy(page_1))
    assert all(name in report.text for name in names)
    assert (report.iframe["sandbox"], report.iframe["srcdoc"]) == (["allow-scripts"], page)
    library, data, ours = (x.string for x in explored("script"))
    for script in (library, ours):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy(report)
    assert "<" not in data
    assert [x["title"] for x in json.loads(data)["texts"]] == names
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|\.write|DOMParser|Fragment", ours)
    assert not re.search(r"\beval\b|Function\(|setAttribute|srcdoc|\.on\w+ =", ours)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_a_notebook_a_name_is_text(written: Written, seed: int) -> None:
    names, plain = hostile_names(seed), [f"name {i}" for i in range(20)]
    pages = []
    for called in (names, plain):
        tables, models = renamed(written, called)
        rendered = (
            MarkdownIt("commonmark", {"html": True})
            .enable("table")
            .render(answer_list(tables, models))
        )
        pages.append(BeautifulSoup(rendered, "html.parser"))
    shown, simple = pages
    assert [x.name for x in shown.find_all(True)] == [x.name for x in simple.find_all(True)]
    for model in names[:2]:
        assert sum(spaced(model) in spaced(x.text) for x in shown("li")) > 9


def in_a_folder(name: str) -> str:
    """A name as a file can have it."""
    return re.sub(r"[/\x00\n]", "_", name).strip(". ")[:60]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_report_of_hostile_files_is_that_of_plain_ones(
    tmp_path: Path, shown: Callable[..., str], seed: int
) -> None:
    pages, names = [], [in_a_folder(x) for x in hostile_names(seed)]
    for called in (names, [f"name {i}" for i in range(20)]):
        model, text, left_out, *lines = called
        folder = tmp_path / f"{len(pages)}"
        saved = tiny.save(folder / model, layers=1)
        (folder / text).mkdir()
        for code in ("en", "de"):
            sentences = [f"{line} {code} {tiny.SENTENCES[0]}" for line in lines]
            (folder / text / f"{code}.txt").write_text("\n".join(sentences), encoding="utf-8")
        (folder / text / f"{left_out}.md").write_text("nothing", encoding="utf-8")
        given = ["--text", folder / text, "--reference", "none", "--no-notebook"]
        shown("report", saved, *given, "--out", folder / "out")
        page = (folder / "out" / "report.html").read_text(encoding="utf-8")
        pages.append(BeautifulSoup(page, "html.parser"))
        assert spaced(model) in spaced(pages[-1].h1.text)
        assert spaced(text) in spaced(pages[-1].p.text)
    tags = [[(x.name, [*x.attrs]) for x in page.find_all(True)] for page in pages]
    assert tags[0] == tags[1]


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here to open the pages in")
@pytest.mark.parametrize("where", ["explorer", "report"])
def test_in_a_browser_names_are_shown_and_nothing_of_them_runs(
    written: Written, where: str, tmp_path: Path
) -> None:
    names = hostile_names(1)
    page = page_of(names)
    made = report_of(written, names, page) if where == "report" else page
    (tmp_path / "page.html").write_text(made, encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME.replace("PAGE", "page.html"), encoding="utf-8")
    # So that this page may look into the sandbox; it gives the names more rights, not fewer.
    (line,) = in_browser(tmp_path / "frame.html", *INTO_THE_SANDBOX)
    shown = json.loads(unquote(line))
    assert (shown["ran"], shown["links"]) == (["", "", ""], 0)
    assert len(shown["seen"]) == len(names)
    for i, (name, seen) in enumerate(zip(names, shown["seen"], strict=True)):
        key = name.replace("|", "/")
        assert {name, key, *(f"{x} ({x})" for x in names)} <= {*seen["options"]}
        assert {*seen["boxes"]} == {f" {x}" for x in names}
        assert seen["says"] == [name], i
        assert seen["rows"] == [key]
        assert {*seen["matrix"]} == {*names}
        # of the map, of the line over layers, and of its axis: SVG, in which spaces are one
        in_plots = [*seen["titles"], *seen["legend"]]
        assert {*map(spaced, in_plots)} == {spaced(key)}, i
        assert {*map(spaced, seen["ticks"])} <= {*map(spaced, names)}
        assert len(in_plots) >= 3 <= len(seen["ticks"])
    if where == "report":
        assert all(name in shown["report"] for name in names)
