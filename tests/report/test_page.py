"""The page: figures with their text, tables and links, and nothing from elsewhere."""

import base64
import html
import io
import json
import re
import zlib
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.report.conftest import LANGUAGES, Written
from tests.test_book import BROWSER, INTO_THE_SANDBOX, in_browser
from xlx.plots.style import WIDTH
from xlx.report import explorer, tables
from xlx.report.inputs import reported_model
from xlx.report.tables import TABLES
from xlx.text.parallel import ParallelCorpus

#: Tables that are there where they are asked for.
ASKED_FOR = {"task_fits", "task_points", "probes", "sentence_tasks"}
#: Opens the report, looks at its explorer in layer 2, and writes down what is said.
FRAME = """<body><script>
document.body.innerHTML = '<iframe src="report.html" width="390" height="900"></iframe>';
const frame = document.body.firstChild;
const timer = setInterval(() => {
  const outer = frame.contentDocument;
  const inner = outer?.querySelector("iframe");
  inner?.scrollIntoView();
  const page = inner?.contentDocument;
  if (!page?.body?.dataset.ready) return;
  clearInterval(timer);
  const [said, layer] = ["said", "layer"].map(id => page.getElementById(id));
  layer.value = 2; layer.dispatchEvent(new Event("input", {bubbles: true}));
  const wide = [outer, page].map(x => x.documentElement.scrollWidth - 390);
  document.body.innerHTML = "<pre>" + [...wide, said.textContent].join("\\n") + "</pre>done";
}, 50);
</script></body>"""


def explorer_of(written: Written) -> str:
    """The page in the frame, as it stands in the report."""
    return re.search(r'srcdoc="([^"]+)"', written.page)[1]


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
    assert len(written.output["answers"]) == 2 * 11
    plain = html.unescape(written.page)
    assert all(answer["sentence"] in plain for answer in written.output["answers"])
    outside = written.page.replace(explorer_of(written), "")
    assert not re.search(r"https?://|<script|<link|@import", outside)
    assert len(outside.encode()) < 3_000_000
    assert len(written.page.encode()) < 10_000_000


def test_numbers_of_the_explorer_are_those_of_the_tables(written: Written) -> None:
    page = html.unescape(explorer_of(written))
    data = json.loads(re.search(r'json">(.*?)</script>', page, re.S)[1])
    scores = np.frombuffer(zlib.decompress(base64.b64decode(data["scores"])), "<i2")
    layers, pairs = (written.tables[name] for name in ("layers", "pairs"))
    coverage, codes = written.tables["coverage"].query("layers == 'max'"), [*LANGUAGES]
    at = [*combinations(codes, 2)]
    assert data["texts"][0]["codes"] == codes
    seen = set()
    for key, (start, n_layers) in data["entries"].items():
        _, model, measure, space, who = key.split("|")
        rows = scores[start : start + n_layers * (len(at) + 3)].reshape(n_layers, -1) / 1000
        seen.add((measure, space, who))
        if measure == "MEXA":
            ours = coverage[(coverage["model"] == model) & (coverage["states"] == space)]
            for code, mu in zip(ours["language"], ours["mu"], strict=True):
                assert rows[:, at.index(("en", code))].max() == pytest.approx(mu, abs=5.1e-4)
        elif who == "only":
            ours = layers.query("model == @model and task == @measure and space == @space")
            means = ours.sort_values("layer")[["score", "low", "high"]]
            assert rows[:, -3:] == pytest.approx(means.to_numpy(), abs=5.1e-4)
            ours = pairs.query("model == @model and task == @measure")
            if space == "raw":
                layer_scores = rows[ours["layer"].iloc[0], : len(at)]
                assert layer_scores == pytest.approx(ours["score"].to_numpy(), abs=5.1e-4)
    measures, spaces = explorer.SHOWN_MEASURES, explorer.SHOWN_SPACES
    assert seen == {
        *((x, space, "only") for x in measures for space in spaces),
        *((x, "raw", who) for x in measures if x != "MEXA" for who in ("twin", "bag")),
    }


@pytest.mark.filterwarnings("ignore::xlx.results.checks.TextWarning")
def test_where_there_is_no_explorer_the_page_says_what_to_do(
    corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = tables.measured_models([reported_model("mini-infoxlm")], corpus)
    monkeypatch.setattr(explorer, "MOST_SCORES", 100)
    assert "report on fewer --languages: there is room for 100 scores" in explorer.explored(
        measured
    )
    monkeypatch.setattr(explorer, "find_spec", lambda name: None)
    assert "pip install plotly" in explorer.explored(measured)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here to open the report in")
def test_on_a_phone_the_explorer_shows_the_number_of_a_layer(
    written: Written, tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text(written.page, encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME, encoding="utf-8")
    *wide, output = in_browser(tmp_path / "frame.html", *INTO_THE_SANDBOX)
    assert max(map(int, wide)) <= 0
    assert re.match(r".+, LD of .+, layer 2: 0?\.?\d+", output)
