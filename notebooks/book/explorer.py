"""One page of all scores by pair of languages, layer and checkpoint: what `make explorer` writes.

    python -m notebooks.book.explorer build/explorer.html

The ledger alone decides what is in it: where it lacks a combination, the page cannot choose it.
Scores are whole thousandths; plotly.js is part of the page, which asks no other host.
"""

import base64
import json
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import plotly

from xlx.experiment.abx_scores import MATCHED, before_training, history
from xlx.experiment.averages import average
from xlx.experiment.mexa_scores import measure_coverage
from xlx.experiment.scoring import BagOfSubwords, Subject, subject_scores
from xlx.results.settings import settings
from xlx.results.store import write_whole
from xlx.results.work import MissingResultError
from xlx.text import languages, parallel
from xlx.text.parallel import ParallelCorpus

#: The public models, and the family; those whose pooling is weighted by position in MEXA's text.
MODELS = (
    "multilingual-e5-small", "gemma-3-270m", "all-MiniLM-L6-v2", "mini-xlmr", "mini-infoxlm",
    "mini-mbert", "mini-xlm", "mini-xlmr-large", "mini-xlmr-6", "mini-xlmr-12", "mini-llama",
    "mini-llama-en80", "mini-llama-en95", "mini-llama-bi2", "mini-llama-bi20",
)  # fmt: skip
DECODERS = ("gemma", "mini-llama")
SPACES = {"raw": "as they are", "centred": "without the mean of each language"}
#: What one score of a pair says.
MEASURES = {
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
#: Languages of the pairs in MEXA's text that WMT24++ has not, as in `mexa-1-alignment`.
MORE = ("af", "am", "ar_Latn", "bo", "ht", "hy", "id", "ka", "sw", "tl", "yo", "zu")
#: No score, as whole thousandths.
NOTHING = -32768
#: Rows of layers; a row: the score of each pair, then their mean, and its low and high end.
Scores = np.ndarray


class Text(ParallelCorpus):
    """A corpus that hashes its sentences once, as hundreds of scores ask for the hashes."""

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return {code: super(Text, self).text_hash(code) for code in self.languages}

    def text_hash(self, language: str) -> str:
        """SHA-256 of the sentences of a language, by its code in the corpus."""
        return self._hashes[language]


def texts() -> dict[str, ParallelCorpus]:
    """The texts that can be chosen, by title."""
    wmt = parallel.load("wmt24pp", drop_duplicates=True)
    with warnings.catch_warnings():  # a sentence that comes twice is two misses, as in the paper
        warnings.simplefilter("ignore", parallel.CorpusWarning)
        flores = parallel.load("flores200-100", [*wmt.languages, *MORE])
    titles = f"WMT24++, {len(wmt)} segments", f"FLORES-200, {len(flores)} sentences"
    return {title: Text(**vars(of)) for title, of in zip(titles, (wmt, flores), strict=True)}


def subjects(model: str, pooling: str) -> Iterator[tuple[str, Subject]]:
    """What is scored for a model: each state by its step, its untrained twin, a bag of subwords."""
    for state in history(model, recorded=True):
        yield str(getattr(state, "step", "only")), Subject(state, {"pooling": pooling})
    yield "twin", Subject(before_training(model), {"pooling": pooling})
    yield "bag", BagOfSubwords(model)


def pair_scores(
    subject: Subject, text: ParallelCorpus, measures: Sequence[str], space: str
) -> dict[str, Scores]:
    """The ledger's scores of all pairs, by measure: of each pair the mean of both directions."""
    try:
        with warnings.catch_warnings():  # of checkpoints that the ledger lacks
            warnings.simplefilter("ignore")
            found = subject_scores([subject], text, measures, space=space)
    except MissingResultError:  # some, or all: one by one
        if len(measures) == 1:
            return {}
        parts = [pair_scores(subject, text, [name], space) for name in measures]
        return {name: scores for part in parts for name, scores in part.items()}
    rows = {}
    for of in found:
        for name in measures:
            mean = average(of, name, by=["layer"])
            pairs = of.scores.scores[name].mean(axis=2)
            rows[name] = np.column_stack([pairs, mean.score, *mean.interval()])
    return rows


def english_scores(
    subject: Subject, text: ParallelCorpus, pooling: str, space: str, pivot: str = "en"
) -> Scores | None:
    """MEXA of the pairs with English alone, and its mean over them (without an interval)."""
    try:
        (of,) = measure_coverage(
            subject, text, pivot, poolings=[pooling], alternatives=None, centred=space == "centred"
        ).values()
    except MissingResultError:
        return None
    at = {pair: i for i, pair in enumerate(combinations(text.languages, 2))}
    rows = np.full((len(of.scores.layers), len(at) + 3), np.nan)
    for code, mu in zip(of.scores.languages, of.scores.mu.T, strict=True):
        rows[:, at.get((code, pivot), at.get((pivot, code)))] = mu
    rows[:, len(at)] = of.scores.mu.mean(axis=1)
    return rows


def entries(
    models: Sequence[str], corpora: Sequence[ParallelCorpus]
) -> Iterator[tuple[str, Scores]]:
    """All that the ledger has: a key, "text|model|measure|space|step" (or "twin", "bag")."""
    for number, text in enumerate(corpora):
        for model in models:
            decoder = number and model.startswith(DECODERS)
            pooling = "weighted_mean" if decoder else "mean"
            for who, subject in subjects(model, pooling):
                for space in SPACES:
                    scores = pair_scores(subject, text, [*MEASURES][number and 4 :][:4], space)
                    if number and not scores:
                        english = english_scores(subject, text, pooling, space)
                        scores = {} if english is None else {"MEXA": english}
                    for measure, rows in scores.items():
                        yield f"{number}|{model}|{measure}|{space}|{who}", rows


def packed(models: Sequence[str] = MODELS) -> dict[str, object]:
    """What the page holds: names, and all scores as one array, ``int16``, deflated, in base64.

    ``entries``: key → the place of its first row in the array, and the number of its layers.
    """
    corpora, blocks, places, at = texts(), [], {}, 0
    known: dict[bytes, list[int]] = {}
    with settings(policy="only"):
        for key, rows in entries(models, [*corpora.values()]):
            block = np.nan_to_num(np.rint(1000 * rows), nan=NOTHING).astype("<i2")
            content = block.tobytes()
            if content not in known:  # step 0 of a series is its untrained twin
                known[content] = [at, len(block)]
                blocks.append(content)
                at += block.size
            places[key] = known[content]
    if not places:
        raise ValueError("the ledger (data/results) has no scores of these models: restore it")
    names = languages.LANGUAGES
    return {
        "texts": [
            {"title": title, "codes": text.languages, "names": [
                names[x].name if x in names else parallel.tags("flores200-100")[x]
                for x in text.languages
            ], "n": len(text)}
            for title, text in corpora.items()
        ],
        "models": models, "spaces": SPACES,
        "measures": MEASURES,
        "nothing": NOTHING, "entries": places,
        "scores": base64.b64encode(zlib.compress(b"".join(blocks), 9)).decode(),
    }  # fmt: skip


def write(path: Path, models: Sequence[str] = MODELS) -> None:
    """Write the page: the template beside this module with plotly.js and the data put in."""
    page = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    library = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    data = json.dumps(packed(models), ensure_ascii=False, separators=(",", ":"))
    page = page.replace("/* DATA */", data.replace("</", "<\\/"))
    page = page.replace("/* PLOTLY */", library.read_text(encoding="utf-8"))
    write_whole(path, page.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
    print(f"{sys.argv[1]}: {Path(sys.argv[1]).stat().st_size / 1e6:.1f} MB")
