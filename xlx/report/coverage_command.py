"""``xlx mexa``: which languages a model aligns with the pivot, one row per language (MEXA)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.experiment import mexa_scores
from xlx.experiment.mexa_scores import MEXA_POOLINGS, Coverage, measure_coverage
from xlx.experiment.scoring import BAG, BagOfSubwords
from xlx.measures import mexa
from xlx.plots.panels import Figure
from xlx.report import inputs, options
from xlx.report.figures import covered_languages
from xlx.report.page import framed, shown_figure, write_page
from xlx.report.sentences import COVERED
from xlx.results import checks
from xlx.text import downstream
from xlx.text.languages import kind_of_language

_READING = """
MEXA is the share of sentences whose translation in the pivot is the best answer both ways; it falls
with more sentences. The best layer is chosen on this text, which raises the score a little.
Intervals are of 95 % over sentences. A bag knows names, numbers and loans alone.
"""


@dataclass(kw_only=True)
class Mexa(options.Aligning):
    """Which languages a model aligns with the pivot, one row per language, as in the paper.

    MEXA (Kargaran et al. 2025) of the first sentences of the text, each language at its best layer,
    by each pooling, raw and without the mean of the language, beside a bag of the model's own
    subwords. With --tasks the adjusted score, too: MEXA times the score of the task in the pivot,
    and its band. --special-tokens is as in the paper's own code. A decoder is read by the weighted
    mean and by the last token; another model as it was made to be. Stop it at any time: it goes on
    by language.
    """

    model: str = options.MODEL

    def run(self) -> None:
        """Say what it takes, score every language, write ``mexa.csv`` and ``mexa.html``."""
        options.tell_downloads([self.model])
        model = inputs.reported_model(self.model, **self.how)
        checks.whole(self.sentences, "--sentences", least=2)
        corpus, notes = inputs.reported_text(self.text, self.codes, self.sentences, seed=None)
        pivot = inputs.pivot_of(corpus, self.pivot)
        in_pivot = self.scores_in(pivot)
        poolings = [model.pooling]
        if model.kind == "decoder" and not self.pooling:
            poolings = list(dict.fromkeys([model.pooling, *MEXA_POOLINGS]))
        way = {"poolings": poolings, "states": mexa_scores.STATES}
        way["special_tokens"] = self.special_tokens
        n = len(mexa_scores.languages_to_read(model.name, corpus, pivot, **way))
        print(
            f"{model.label}: {len(corpus)} sentences of {corpus.name} in {len(corpus.languages)} "
            f"languages ({corpus.source}); its vector is {model.vector}"
        )
        sentences = (n + 1) * len(corpus)
        options.foresee(
            n,
            "languages, raw and centred",
            lambda: sentences * options.reading_seconds(model, corpus.sentences) / 60,
        )
        if self.estimate:
            return
        scores = measure_coverage(model.name, corpus, pivot, **way)
        bag = measure_coverage(BagOfSubwords(model.name), corpus, pivot)[BAG].scores
        table = language_rows(scores, bag, in_pivot)
        lines = headline(table, poolings[0], model.label, pivot)
        about = (
            f"{corpus.name} ({corpus.licence}), {len(corpus)} sentences; vectors: {model.vector}"
        )
        figure = shown_figure(coverage_figure(table, poolings[0], model.label))
        page = framed(f"MEXA of {model.label}", *lines, figure, table, about, *notes, _READING)
        path = write_page(self.folder(model.label) / "mexa.html", page, {"mexa": table})
        print(*lines, path, sep="\n")

    def scores_in(self, pivot: str) -> dict[str, float]:
        """Task → the model's score in the pivot. TextError where it has none."""
        if not self.tasks:
            return {}
        scores = downstream.of_models(downstream.read_tasks(self.files), [self.model], pivot)
        return scores[scores["language"] == pivot].set_index("task")["score"].to_dict()


def language_rows(
    scores: Mapping[str, Coverage], bag: mexa.PivotScores, in_pivot: Mapping[str, float]
) -> pd.DataFrame:
    """One row per language: name, family, script, and of each pooling the highest score.

    "less bag": the first score less that of the bag, whose interval (Zou and Donner 2008) takes
    both as independent. "above bag": "yes", "no", or "?" where the interval holds 0. Without a task
    the band is of the score itself, as if that of the task in the pivot were 1.
    """
    table = pd.DataFrame({"language": bag.languages})
    table[["name", "family", "script"]] = [kind_of_language(code) for code in bag.languages]
    pooled = {name: coverage.scores.pooled("max") for name, coverage in scores.items()}
    for name, best in (pooled | {"bag": bag.pooled("max")}).items():
        table[[name, f"{name} low", f"{name} high"]] = best[["mu", "low", "high"]]
        if name != "bag":
            by_layer = np.nan_to_num(scores[name].scores.mu, nan=-1)
            table[f"{name} layer"] = by_layer.argmax(0)
    ours, theirs = pooled[next(iter(scores))], bag.pooled("max")
    less = ours["mu"] - theirs["mu"]
    low = less - np.hypot(ours["mu"] - ours["low"], theirs["high"] - theirs["mu"])
    high = less + np.hypot(ours["high"] - ours["mu"], theirs["mu"] - theirs["low"])
    table["less bag"], table["less bag low"], table["less bag high"] = less, low, high
    table["above bag"] = np.select([low > 0, high < 0], ["yes", "no"], "?")
    for task, score in in_pivot.items():
        table[f"adjusted, {task}"] = mexa.expected(ours["mu"], score)
        table[f"band, {task}"] = mexa.bands(table[f"adjusted, {task}"])
    if not in_pivot:
        table["band"] = mexa.bands(ours["mu"])
    return table.round(4)


def coverage_figure(table: pd.DataFrame, pooling: str, label: str) -> Figure:
    """The scores of a pooling, and of the bag, by language."""
    drawn = [
        table.rename(columns={x: "mu", f"{x} low": "low", f"{x} high": "high"}).assign(model=name)
        for x, name in ((pooling, label), ("bag", BAG))
    ]
    return covered_languages({"coverage": pd.concat(drawn).assign(layers="max", states="raw")})


def headline(table: pd.DataFrame, pooling: str, label: str, pivot: str) -> Sequence[str]:
    """Sentences: how many languages are covered, which are weak, how many are above the bag."""
    mu, above = table[pooling], table["above bag"].value_counts()
    covered = (mu >= COVERED).sum()
    adjusted = [
        f"{column}: {(table[column] >= COVERED).sum()} languages reach {COVERED}"
        for column in table
        if column.startswith("adjusted, ")
    ]
    weakest = table.sort_values(pooling, kind="stable").head(8)
    rows = weakest[["name", "language", pooling]].itertuples(index=False)
    return [
        f"{len(table)} languages with {pivot}: MEXA of {label} ({pooling.replace('_', ' ')}) is "
        f"{mu.mean():.2f} in the mean, {covered} reach {COVERED}, "
        f"{(mu < mexa.EDGES[1]).sum()} stay below {mexa.EDGES[1]}; the commonest best layer is "
        f"{table[f'{pooling} layer'].mode()[0]}",
        *adjusted,
        "weakest: " + ", ".join(f"{name} ({code}) {score:.2f}" for name, code, score in rows),
        f"above a bag of its own subwords in {above.get('yes', 0)} languages, below it in "
        f"{above.get('no', 0)}, not told apart in {above.get('?', 0)}; the bag has "
        f"{table['bag'].mean():.2f} in the mean",
    ]
