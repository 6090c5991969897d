"""A page to choose languages, layers and controls on: every score of pairs of languages.

Scores are whole thousandths; plotly.js is part of the page, which asks no other host.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np

from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.averages import average
from xlx.experiment.scoring import BAG, reported_measures
from xlx.measures.abx import PairScores
from xlx.measures.mexa import PivotScores
from xlx.report.page import Html, policy
from xlx.report.tables import UNTRAINED, Measured, compared, subject
from xlx.text.languages import kind_of_language
from xlx.text.parallel import ParallelCorpus

SHOWN_SPACES = {"raw": "as they are", "centred": "without the mean of each language"}
#: What one score of a pair says.
SHOWN_MEASURES = {
    "LD": "A sentence is nearer to another of its own language than to that one's translation: "
    "languages are told apart. Half is chance.",
    "MD": "A sentence is nearer to its translation than to another sentence of that language: "
    "meanings are told apart. Half is chance.",
    MATCHED: "MD, where the other sentence is as long as the translation, within a tenth. "
    "Half is chance.",
    "retrieval": "The nearest sentence of the other language is the translation. Chance is one in "
    "as many as there are sentences.",
    "MEXA": "Two translations are nearer to each other than to any other sentence of the two "
    "languages. Both directions count at once, so each pair has one number.",
}
#: No score, as whole thousandths.
NO_SCORE = -32768
#: Most scores in a report, so that its page stays below 10 MB.
MOST_SCORES = 2_000_000
#: Rows of layers; a row: the score of each pair, then their mean, and its low and high end.
Scores = np.ndarray


def score_rows(scores: PairScores, measure: str) -> Scores:
    """A measure by layer, of each pair the mean of both directions."""
    mean = average(scores, measure, by=["layer"])
    pairs = scores.scores[measure].mean(2)
    return np.column_stack([pairs, mean.score, *mean.interval()])


def pivot_rows(scores: PivotScores, codes: Sequence[str]) -> Scores:
    """MEXA of the pairs with a pivot alone, and its mean over them (without an interval)."""
    pairs = [{*pair} for pair in combinations(codes, 2)]
    rows = np.full((len(scores.layers), len(pairs) + 3), np.nan)
    for code, mu in zip(scores.languages, scores.mu.T, strict=True):
        rows[:, pairs.index({code, scores.pivot})] = mu
    rows[:, len(pairs)] = scores.mu.mean(1)
    return rows


def listed_text(corpus: ParallelCorpus, title: str) -> dict[str, object]:
    """A text as the page lists it."""
    names = [kind_of_language(code)[0] for code in corpus.languages]
    return {"title": title, "codes": corpus.languages, "names": names, "n": len(corpus)}


def packed_scores(entries: Iterable[tuple[str, Scores]], **about: object) -> dict[str, object]:
    """What the page holds: what is given about it, and all scores: ``int16``, deflated, in base64.

    A key is "text|model|measure|space|step" (or "twin", "bag"), the text by its number;
    ``entries``: key → the place of its first row in the array, and the number of its layers.
    """
    known, places, at = {}, {}, 0
    for key, rows in entries:
        block = np.nan_to_num(np.rint(1000 * rows), nan=NO_SCORE).astype("<i2")
        content = block.tobytes()
        if content not in known:  # step 0 of a series is its untrained twin
            known[content] = [at, len(block)]
            at += block.size
        places[key] = known[content]
    scores = base64.b64encode(zlib.compress(b"".join(known), 9)).decode()
    return {
        "spaces": SHOWN_SPACES,
        "measures": SHOWN_MEASURES,
        "nothing": NO_SCORE,
        "pivot": "English",
        "entries": places,
        "scores": scores,
    } | about


def explorer_page(data: Mapping[str, object]) -> str:
    """The page: the template beside this module with plotly.js, its policy and the data put in.

    The data come last and hold no "<" (JSON may write it as an escape), so no name ends the element
    that it stands in, opens a comment, or is taken for a place of the template.
    """
    import plotly  # is asked for by the extra "book" alone

    library = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    page = Path(__file__).with_suffix(".html").read_text("utf-8")
    page = page.replace("/* PLOTLY */", library.read_text("utf-8"))
    page = page.replace("/* POLICY */", policy(page))
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return page.replace("/* DATA */", text.replace("<", "\\u003c"))


def measured_scores(measured: Measured) -> Iterator[tuple[str, Scores]]:
    """All scores of a model, and those of its untrained twin and bag of subwords, by their keys."""
    label, controls = measured.model.label.replace("|", "/"), compared(measured)
    asked = [("only", subject(measured.model), space) for space in SHOWN_SPACES]
    keys = {"twin": UNTRAINED, "bag": BAG}.items()
    asked += [(who, controls[key], "raw") for who, key in keys if key in controls]
    for who, control, space in asked:
        (scores,) = measured.scores([control], space)
        for measure in reported_measures():
            yield f"0|{label}|{measure}|{space}|{who}", score_rows(scores, measure)
    for space, scores in measured.mexa.items():
        yield f"0|{label}|MEXA|{space}|only", pivot_rows(scores, measured.corpus.languages)


def explored(of_models: Sequence[Measured]) -> Html | str:
    """The explorer of a report, a part of its page; or a sentence that says why there is none."""
    corpus, n = of_models[0].corpus, len(of_models[0].corpus.languages)
    if find_spec("plotly") is None:
        return "To choose layers and pairs of languages here: pip install plotly, and report again."
    n_layers = sum(len(x.raw.layers) for x in of_models)
    values = 2 * len(reported_measures()) * n_layers * n * n
    if values > MOST_SCORES:
        return (
            f"To choose layers and pairs of languages here, report on fewer --languages: there "
            f"is room for {MOST_SCORES:,} scores, but there are {values:,}."
        )
    entries = (entry for measured in of_models for entry in measured_scores(measured))
    return in_frame(
        explorer_page(
            packed_scores(
                entries,
                texts=[listed_text(corpus, f"{corpus.name}, {len(corpus)} sentences")],
                models=[x.model.label.replace("|", "/") for x in of_models],
                pivot=of_models[0].pivot,
                measures=dict.fromkeys(reported_measures(), "") | SHOWN_MEASURES,
            )
        )
    )


def in_frame(page: str) -> Html:
    """An explorer as a part of another page, in a frame: neither changes how the other looks.

    The frame is a sandbox of another origin, so its script cannot reach the page around it.
    """
    return Html(
        '<iframe title="Explorer of all pairs of languages and layers" loading="lazy" '
        'sandbox="allow-scripts" style="width: 100%; height: 90vh; border: 1px solid #aaa" '
        f'srcdoc="{escape(page, quote=True)}"></iframe>'
    )
