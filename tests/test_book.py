"""The book: built from stored notebooks without a warning, closed in itself, fit for a phone."""

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag
from xml.etree import ElementTree

import pandas as pd
import pytest
import yaml

from notebooks.book import conf, functions, staging
from xlx.results.paths import NOTEBOOKS, ROOT

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
REFERENCE = re.compile(r'(?:src|href)="([^"]*)"')
#: Writes how far each page at each width is too wide into the page itself.
FRAMES = """<body><script>
const rows = [];
const frames = PAGES.flatMap(p => [1400, 390].map(w => [p, w]));
(async () => {
  for (const [page, width] of frames) {
    const frame = document.createElement("iframe");
    Object.assign(frame, {src: page, width, height: 900});
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    const inner = frame.contentDocument.documentElement;
    const formula = frame.contentDocument.querySelector("math");
    const names = [...frame.contentDocument.querySelectorAll("p > strong:first-child")];
    const short = names.find(x => x.textContent == "In short.");
    rows.push([page, width, inner.scrollWidth - width, formula ? formula.clientHeight : -1,
               short ? Math.round(short.parentElement.getBoundingClientRect().bottom) : -1]);
    frame.remove();
  }
  document.body.innerHTML = "<pre>" + rows.map(r => r.join(" ")).join("\\n") + "</pre>done";
})();
</script></body>"""


#: What lets a test look into the frame of a report, which is of another origin.
INTO_THE_SANDBOX = ("--disable-web-security", "--disable-features=IsolateSandboxedIframes")


def in_browser(page: Path, *options: str) -> list[str]:
    """The lines that a page writes between <pre> and </pre>done, opened from disk."""
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--allow-file-access-from-files",
            "--dump-dom",
            "--virtual-time-budget=600000",
            f"--user-data-dir={page.parent.parent / 'profile'}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert "</pre>done" in done.stdout, done.stderr[-500:]
    return done.stdout.partition("<pre>")[2].partition("</pre>")[0].splitlines()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    staging.stage(folder / "pages")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, str(folder / "pages"), str(folder / "site")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "site"


@pytest.mark.slow
def test_every_chapter_is_in_it_and_every_link_stays_inside(site: Path) -> None:
    pages = {
        path: path.read_text(encoding="utf-8")
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    contents = pages[site / "index.html"]
    for path in [*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("course/*.ipynb")]:
        page = path.relative_to(NOTEBOOKS).with_suffix(".html").as_posix()
        assert f"notebooks/{page}" in contents, path.name
    broken = set()
    for path, text in pages.items():
        assert "<script" not in text or conf.POLICY in text, f"{path.name} has no policy"
        for link in map(unescape, REFERENCE.findall(text)):
            to = unquote(urldefrag(link).url.partition("?")[0])
            if re.match(r"(https?|mailto|data):", to):
                assert f'src="{link}"' not in text, f"{path.name} asks another host: {link}"
            elif to and not (path.parent / to).exists():
                broken.add(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_what_is_here_of_a_paper_has_a_cell_and_each_state_a_reason() -> None:
    items = pd.read_csv(staging.BOOK / "papers.tsv", sep="\t")
    tags = [tag for tag in staging.places() if re.match("(?!of:).+:", tag)]
    assert sorted(tags) == sorted(items.tag[items.state != "missing"])
    assert {*items.state} == {"complete", "partial", "only printed", "missing"}
    assert items.reason.notna().all()


def test_the_door_names_every_chapter_and_lesson_by_its_number() -> None:
    text = (staging.BOOK / "index.md").read_text(encoding="utf-8")
    entries = re.findall(r"^([\w-]+)[^<\n]*<notebooks/([\w-]+)>$", text, re.MULTILINE)
    assert [f"{stem}.ipynb" for _, stem in entries if stem != "history"] == [
        path.name for path in staging.chapters()
    ]
    assert all(stem.startswith(number.lower()) for number, stem in entries)
    lessons = re.findall(r"^Lesson (\d)\. .*<notebooks/course/lesson-(\d)", text, re.MULTILINE)
    assert lessons == [(str(n), str(n)) for n in range(1, 9)]


def test_the_answer_of_every_chapter_is_there_and_whole() -> None:
    page = "\n".join(staging.answers())
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        said = staging.short_answer(cells)
        assert f"](notebooks/{path.name})** {said}\n" in page
        assert re.search(r"\d.*[.?!]$", said, re.DOTALL), f"{path.stem} breaks off: {said[-60:]}"
        outputs = [x.get("data", {}) for c in cells for x in c.get("outputs", ())]
        for text in ("".join(x.get("text/markdown", "")) for x in outputs):
            assert not text.startswith("**In short.**") or text.split()[2:] == said.split()


def test_a_typed_answer_ends_where_something_else_begins() -> None:
    typed = {
        "cell_type": "markdown",
        "source": "# A\n\n**In short.** One:\n\n- b\n- c.\n\n**Terms.** D",
    }
    assert staging.short_answer([typed]) == "One:\n\n- b\n- c."
    assert staging.short_answer([typed | {"cell_type": "code"}]) == ""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here to read the book in")
def test_no_page_is_wider_than_its_screen_and_formulas_are_drawn(site: Path) -> None:
    names = ["index.html", "answers.html", "glossary.html", "gallery.html", "functions.html"]
    code = max(site.rglob("*.py.html"), key=lambda x: len(str(x)))  # the longest title
    names += ["functions-measures.html", str(code.relative_to(site))]
    names += [f"notebooks/{path.stem}.html" for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    names += [f"notebooks/course/{path.stem}.html" for path in NOTEBOOKS.glob("course/*.ipynb")]
    (site / "frames.html").write_text(FRAMES.replace("PAGES", str(names)), encoding="utf-8")
    rows = in_browser(site / "frames.html")
    assert len(rows) == 2 * len(names)
    wide = [row for row in rows if int(row.split()[2]) > 0]
    assert not wide
    assert any(int(row.split()[3]) > 0 for row in rows)
    assert all(int(row.split()[3]) for row in rows)
    answers = {Path(x[0]).stem: int(x[4]) for x in map(str.split, rows) if x[1] == "1400"}
    assert not {x for x in staging.chapters() if not 0 < answers[x.stem] <= 900}


def test_terms_lead_to_the_glossary_once_and_code_stays() -> None:
    page, places = staging.glossary()
    assert {"LD", "MEXA", "Untrained twin"} <= set(places)
    assert all(f'id="{place}"' in page for place in places.values())
    used: set[str] = set()
    text = "# LD\n\n`LD` and [LD](x.md): LD, then LD and $LD$."
    chapter = Path("notebooks") / "abx-2-dynamics.ipynb"
    said = staging.explained(text, places, used, chapter)
    link = f'<a class="term" href="../glossary.html#{places["LD"]}">LD</a>'
    assert said == text.replace(": LD,", f": {link},")
    assert staging.explained("LD", places, used, chapter) == "LD"


@pytest.mark.slow
def test_every_picture_of_the_site_is_described(site: Path) -> None:
    pages = [*site.glob("notebooks/**/*.html"), site / "index.html", site / "gallery.html"]
    pictures = [x for page in pages for x in re.findall("<img[^>]*>", page.read_text("utf-8"))]
    assert len(pictures) > 100
    described = [re.search(r'alt="([^"]{20,})"', picture) for picture in pictures]
    assert all(described)
    assert not any(re.search(r"\.(png|svg)$", match[1]) for match in described)


@pytest.mark.slow
def test_what_scrolls_is_reached_by_keyboard(site: Path) -> None:
    scrolls = re.compile('<table|<p[^>]*><img|<div[^>]*class="cell_output|class="math"><math')
    starts = [
        page[x.start() : page.index(">", x.end())]
        for path in site.glob("notebooks/**/*.html")
        for page in [path.read_text(encoding="utf-8")]
        for x in scrolls.finditer(page)
    ]
    assert len(starts) > 300
    assert all('tabindex="0"' in start for start in starts)


@pytest.mark.slow
def test_the_site_has_the_terms(site: Path) -> None:
    shown = (site / "notebooks" / "abx-2-dynamics.html").read_text(encoding="utf-8")
    assert f"glossary.html#{staging.glossary()[1]['LD']}" in shown


@pytest.mark.slow
def test_every_place_of_a_paper_leads_to_its_function(site: Path) -> None:
    rows = (site / "functions.html").read_text(encoding="utf-8").split("<tr")
    page = (site / "functions-measures.html").read_text(encoding="utf-8")
    cited = [f for x in functions.modules("measures") for f in functions.defined(x).values()]
    for function in (f for f in cited if f.cited):
        assert function.paper, f"say of which paper {function.name} cites {function.cited}"
        (row,) = [x for x in rows if f'href="{function.place}"' in x]
        assert f"<td><p>{', '.join(function.cited)}</p></td>" in row
        assert f'id="{function.place.partition("#")[2]}"' in page
        source = function.path.relative_to(ROOT).as_posix()
        assert f'href="{source}.html#line-{function.line}"' in page
        _, _, line = (
            (site / f"{source}.html").read_text("utf-8").partition(f'id="line-{function.line}"')
        )
        assert f">{function.name.rpartition('.')[2]}<" in line.partition('id="line-')[0]
    papers = {f.paper for f in cited if f.cited}
    assert {"ABX", "MEXA", "IGAP", "within/across", "X-Probe"} <= papers


DIAGRAMS = sorted(staging.BOOK.glob("diagrams/*.svg"))


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.stem)
def test_a_diagram_is_drawn_in_the_one_style_and_shown(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    drawn = ElementTree.fromstring(text)
    spoken = [drawn.find(f"{{*}}{part}").text for part in ("title", "desc")]
    assert drawn.get("role") == "img"
    assert all(map(str.strip, spoken))
    style = drawn.find("{*}style").text
    assert style == ElementTree.parse(DIAGRAMS[0]).find("{*}style").text
    assert "prefers-color-scheme: dark" in style
    width = float(drawn.get("viewBox").split()[2])
    sizes = [float(x) for x in re.findall(r"([\d.]+)px", style)]
    assert min(sizes) * 688 / width >= 8
    known = {*re.findall(r"\.(\w+) \{", style)}
    assert {x for node in drawn.iter() for x in node.get("class", "").split()} <= known
    assert not re.search(r"(?:href|src)=|url\((?!#)", text)
    shown = f"](../notebooks/book/diagrams/{path.name})"
    assert any(shown in x.read_text(encoding="utf-8") for x in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_formula_is_followed_by_its_function(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for text in ("".join(c["source"]) for c in cells if c["cell_type"] == "markdown"):
        for said in text.split("$$")[2::2]:
            found = staging.FUNCTION.search(said)
            assert found, f"{path.stem}: no link to a function after a formula: {said[:80]}"
            assert found[2] in functions.defined((path.parent / found[3]).resolve())


def test_what_publishes_and_starts_the_book_names_what_there_is() -> None:
    files = sorted(ROOT.glob(".github/workflows/*.yml"))
    workflows = [yaml.safe_load(x.read_text("utf-8")) for x in files]
    jobs = [job for workflow in workflows for job in workflow["jobs"].values()]
    steps = [step for job in jobs for step in job["steps"]]
    runs = [step["run"] for step in steps if "run" in step]
    actions = [step["uses"] for step in steps if "uses" in step]  # by commit: a tag can be moved
    assert [x for x in actions if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", x)] == []
    writers = [x for x in jobs if "write" in x.get("permissions", {}).values()]
    assert all("run" not in step for job in writers for step in job["steps"])
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    runs += [container["postCreateCommand"], container["postAttachCommand"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [run.split()[1] for run in runs]
    assert targets == ["book", "test", "check", ".venv/.ready", "lab"]
    assert all(f"\n{x}:" in makefile.replace("$(READY):", ".venv/.ready:") for x in targets)
    assert (ROOT / ".binder" / "environment.yml").resolve() == ROOT / "environment.yml"
    assert all(os.access(ROOT / ".binder" / x, os.X_OK) for x in ("postBuild", "start"))
