"""The explorer: its numbers are the library's, it asks no other host, it fits a phone."""

import base64
import json
import re
import zlib
from itertools import combinations
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import pytest

from notebooks.book import explorer, staging
from shared import mexa_tables
from shared.abx_tables import pair_scores
from tests.test_book import BROWSER, in_browser
from xlx.experiment.abx_scores import before_training, history
from xlx.experiment.averages import averaged_scores
from xlx.experiment.mexa_scores import measure_coverage
from xlx.experiment.scoring import BagOfSubwords, subject_scores
from xlx.results.paths import NOTEBOOKS, RESULTS, ROOT
from xlx.results.settings import settings
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: A public model that has pairs of both texts, and a member of the family with two checkpoints.
FEW = ("all-MiniLM-L6-v2", "mini-xlm")
SHIPPED = {"ledger": RESULTS, "policy": "only"}
#: Opens the page as wide as a phone, goes to layer 2, and writes down what is said.
FRAME = """<body><script>
document.body.innerHTML = '<iframe src="explorer.html" width="390" height="900"></iframe>';
const frame = document.body.firstChild;
const timer = setInterval(() => {
  const page = frame.contentDocument;
  if (!page?.body?.dataset.ready) return;
  clearInterval(timer);
  const [said, layer] = ["said", "layer"].map(id => page.getElementById(id));
  const before = [page.documentElement.scrollWidth - 390, said.textContent];
  layer.value = 2; layer.dispatchEvent(new Event("input", {bubbles: true}));
  document.body.innerHTML = "<pre>" + [...before, said.textContent].join("\\n") + "</pre>done";
}, 50);
</script></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    with settings(**SHIPPED):
        explorer.write(path, FEW)
    return path


def asked(key: str, corpora: list[ParallelCorpus]) -> tuple[pd.DataFrame, pd.Series]:
    """The library's scores of a key of the page: means by layer; pairs by layer and languages."""
    text, model, measure, space, who = key.split("|")
    states = {str(getattr(state, "step", "only")): state for state in history(model, recorded=True)}
    states |= {"twin": before_training(model), "bag": BagOfSubwords(model)}
    with settings(**SHIPPED):
        (of,) = subject_scores([states[who]], corpora[int(text)], [measure], space=space)
    pairs = pair_scores(of.table()).set_index(["layer", "language_1", "language_2"])["score"]
    return averaged_scores([of], by=["layer"])[["score", "low", "high"]], pairs


def test_a_hundred_numbers_are_those_of_the_library(page: Path) -> None:
    data = json.loads(re.search(r'json">(.*?)</script>', page.read_text("utf-8"), re.S)[1])
    scores = np.frombuffer(zlib.decompress(base64.b64decode(data["scores"])), "<i2")
    rng, corpora = np.random.default_rng(1), [*explorer.texts().values()]
    known = [key for key in data["entries"] if not key.startswith("1") or key.endswith("only")]
    for key in rng.choice(known, 20, replace=False):
        means, table = asked(key, corpora)
        start, n_layers = data["entries"][key]
        pairs = [*combinations(data["texts"][int(key[0])]["codes"], 2)]
        rows = scores[start : start + n_layers * (len(pairs) + 3)].reshape(n_layers, -1) / 1000
        for at in rng.choice(len(pairs), 4, replace=False):
            layer = rng.integers(n_layers)
            assert rows[layer, at] == pytest.approx(table[(layer, *pairs[at])], abs=5.1e-4), key
        assert rows[:, -3:] == pytest.approx(means.to_numpy(), abs=5.1e-4), key


def test_pairs_with_english_are_there_where_others_are_not() -> None:
    text, bag = [*explorer.texts().values()][1], BagOfSubwords(FEW[0])
    with settings(**SHIPPED):
        rows = explorer.english_scores(bag, text, "mean", "raw")
        (of,) = measure_coverage(bag, text, poolings=["mean"]).values()
    at = [*combinations(text.languages, 2)].index(("de", "en"))
    assert rows[0, at] == of.scores.mu[0, of.scores.languages.index("de")]
    assert np.isfinite(rows[0]).sum() == len(text.languages)  # each other one, and their mean


def test_letters_are_there_for_every_pair_as_in_the_chapter() -> None:
    text = [*explorer.texts().values()][1]
    (row,) = explorer.letter_rows(text)
    pairs = dict(zip(map(frozenset, combinations(text.languages, 2)), row, strict=False))
    with settings(**SHIPPED):
        of_chapter = mexa_tables.letter_scores(parallel.load("flores200-100"))
    others = [code for code in text.languages if code != "en"]
    assert [pairs[frozenset((x, "en"))] for x in others] == [*of_chapter[others]]
    assert row[len(pairs)] == pytest.approx(np.mean([*pairs.values()]))


def test_it_is_small_asks_no_other_host_and_the_book_leads_to_it(page: Path) -> None:
    assert page.stat().st_size < 10e6
    own = re.sub(r"<script>/\*\*\n\* plotly.*?</script>", "", page.read_text("utf-8"), flags=re.S)
    assert not re.search(r"https?://|\b(src|href)=|@import|url\(", own)
    text = (staging.BOOK / "index.md").read_text(encoding="utf-8")
    assert staging.EXPLORER in staging.with_explorer(text, page)
    assert staging.EXPLORER not in staging.with_explorer(text, page.with_name("none.html"))


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here to open the explorer in")
def test_an_address_leads_to_its_view(page: Path) -> None:
    view = f"explorer.html#model={FEW[1]}&pair=German-French"
    frame = FRAME.replace("explorer.html", view).replace("layer.value = 2", "layer.value = 1")
    page.with_name("view.html").write_text(frame, encoding="utf-8")
    wide, _, said = in_browser(page.with_name("view.html"))
    assert int(wide) <= 0  # as wide as a phone
    step = re.fullmatch(rf"German and French, LD of {FEW[1]} at step (\d+), layer 1: .*", said)[1]
    _, found = asked(f"0|{FEW[1]}|LD|raw|{step}", [*explorer.texts().values()])
    assert said.endswith(f"{found[1, 'de', 'fr']:.3f}.")


def asked_views() -> dict[str, tuple[str, str]]:
    """The figures that lead to the explorer → model and measure of the view."""
    of_figures = {name: parse_qs(x, strict_parsing=True) for name, x in staging.views().items()}
    assert all(set(x) == {"model", "measure"} for x in of_figures.values())
    return {name: (x["model"][0], x["measure"][0]) for name, x in of_figures.items()}


def test_a_figure_leads_to_its_view_and_a_page_without_explorer_to_none() -> None:
    for figure, (model, measure) in asked_views().items():
        assert (ROOT / "figures" / f"{figure}.png").is_file(), figure
        assert model in explorer.MODELS, figure
        assert measure in explorer.SHOWN_MEASURES, figure
    chapter = NOTEBOOKS / "mexa-1-alignment.ipynb"
    cells = staging.cells_of(chapter)
    staged = [*staging.with_views(cells, Path("notebooks") / chapter.name)]
    links = [x["source"] for x in staged if x not in cells]
    assert len(links) == sum(figure.startswith("mexa-1") for figure in asked_views())
    assert all('href="../_static/explorer.html#model=' in link for link in links)


@pytest.mark.slow
def test_the_ledger_has_every_view_that_a_figure_leads_to() -> None:
    views = {*asked_views().values()}
    with settings(**SHIPPED):
        keys = {key for key, _ in explorer.entries([*dict(views)], [*explorer.texts().values()])}
    assert views <= {tuple(key.split("|")[1:3]) for key in keys}
