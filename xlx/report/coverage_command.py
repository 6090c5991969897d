"""``xlx mexa``: which languages a model aligns with the pivot, one row per language (MEXA)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from typer import Option

from xlx.experiment import mexa_scores
from xlx.experiment.mexa_scores import MEXA_POOLINGS, Coverage, measure_coverage
from xlx.experiment.scoring import BAG, BagOfSubwords, subject_scores
from xlx.measures import mexa, statistics
from xlx.plots.panels import Figure
from xlx.report import inputs, options
from xlx.report.figures import covered_languages
from xlx.report.inputs import SAVED, ReportedModel
from xlx.report.options import Parts, Result
from xlx.report.page import shown_figure
from xlx.report.sentences import COVERED
from xlx.report.tables import Tables, subject
from xlx.text import downstream
from xlx.text.languages import kind_of_language
from xlx.text.parallel import ParallelCorpus

_READING = """
MEXA is the share of sentences whose translation in the pivot is the best answer both ways; it falls
with more sentences. The best layer is chosen on this text, which raises the score a little.
Intervals are of 95 % over sentences. A bag knows names, numbers and loans alone.
"""
_RANKS = """
MEXA of every other language with each pivot, the mean over them, at the layer where all pairs are
highest, which is chosen on this text. A bag knows names, numbers and loans alone: what it ranks is
spelling. Intervals of the difference are of 95 % over families of the other languages.
"""


@dataclass(kw_only=True)
class Mexa(options.Measuring):
    """Which languages a model aligns with the pivot, one row per language, as in the paper.

    MEXA (Kargaran et al. 2025) of the first sentences of the text, each language at its best layer,
    by each pooling, raw and without the mean of the language, beside a bag of the model's own
    subwords. With --tasks the adjusted score, too: MEXA times the score of the task in the pivot,
    and its band. --special-tokens is as in the paper's own code. A decoder is read by the weighted
    mean and by the last token; another model as it was made to be. With --pivots every language, or
    those named, takes the place of the pivot. Stop it at any time: it goes on by language.
    """

    usual_text: ClassVar[str] = "flores200-100"
    pivot: str | None = options.PIVOT
    pivots: str | None = Option(None, help="all, or languages: rank them as pivots, in one table")

    def check(self) -> None:
        """ValueError, too, for what a table of pivots has no use of."""
        super().check()
        if self.pivots is not None:
            self.refuse(["pivot", "tasks"], "of one pivot, and not of --pivots")

    def run(self) -> None:
        """Say what it takes, score every language, write ``mexa.csv`` and ``mexa.html``."""
        models, corpus, notes = self.measured()
        if self.pivots is not None:
            self.rank_pivots(models, corpus, notes)
            return
        pivot = inputs.pivot_of(corpus, self.pivot)
        in_pivot = {}
        if self.tasks:
            tasks = downstream.of_models(downstream.read_tasks(self.files), [self.model], pivot)
            tasks = tasks[tasks["language"] == pivot]
            in_pivot = tasks.set_index("task")["score"].to_dict()
        poolings = [models[0].pooling]
        if models[0].kind == "decoder" and not self.pooling:
            poolings = list(dict.fromkeys([*poolings, *MEXA_POOLINGS]))
        way = {"poolings": poolings, "states": mexa_scores.STATES}
        way["special_tokens"] = self.special_tokens
        asked = [(model.name, corpus, pivot) for model in models]
        n = sum(len(mexa_scores.languages_to_read(*x, **way)) for x in asked)
        self.foresee(models[0], n, "languages, raw and centred", corpus)
        if self.estimate:
            return
        about = f"{corpus.name} ({corpus.licence}), {len(corpus)} sentences; vectors: "

        def measure(model: ReportedModel) -> Result:
            scores, bag = measure_coverage(model.name, corpus, pivot, **way), None
            if model.kind != SAVED:
                bag = measure_coverage(BagOfSubwords(model.name), corpus, pivot)[BAG].scores
            table, first = language_rows(scores, bag, in_pivot), next(iter(scores))
            return headline(table, first, model.label, pivot), {"mexa": table}

        def parts(tables: Tables) -> Parts:
            table = tables["mexa"]
            last = table.tail(len(corpus.languages) - 1)  # of a run the last checkpoint
            pooling = next(x for x in (*poolings, SAVED) if x in table)
            figure = shown_figure(coverage_figure(last, pooling, models[-1].label))
            return figure, table, about + models[-1].vector, _READING

        self.write(models, notes, measure, parts)

    def foresee(self, model: ReportedModel, n: int, what: str, corpus: ParallelCorpus) -> None:
        """Say how many readings of a language are to come, and how long they take."""
        n_sentences, seconds = (n + 1) * len(corpus), options.reading_seconds
        if self.states is None:
            options.foresee(n, what, lambda: n_sentences * seconds(model, corpus.sentences) / 60)

    def rank_pivots(
        self, models: Sequence[ReportedModel], corpus: ParallelCorpus, notes: list[str]
    ) -> None:
        """Write ``pivots.csv`` and a page: how well all others are aligned with each language."""
        codes = corpus.languages
        if self.pivots.strip() != "all":
            codes = corpus.select(map(inputs.code_of, options.listed(self.pivots))).languages
        n = sum(subject(x).fetched for x in models) * len(corpus.languages)
        self.foresee(models[0], n, "languages, less where it was computed before", corpus)
        if self.estimate:
            return

        def measure(model: ReportedModel) -> Result:
            table = ranked_pivots(model, corpus, codes)
            best = f"{model.label} is aligned best with {', '.join(table['name'][:3])} as pivot"
            return [best], {"pivots": table}

        self.write(models, notes, measure, lambda tables: (tables["pivots"], _RANKS))


def ranked_pivots(model: ReportedModel, corpus: ParallelCorpus, pivots: Sequence[str]) -> DataFrame:
    """How well all other languages are aligned with each pivot, a row each, the best first.

    ``mean`` of MEXA over the others, at the ``layer`` where the mean of all pairs is highest, and
    ``rank``. Beside it, of a model, those of a bag of its subwords, and what it has above the bag,
    with an interval over families of the others.
    """
    subjects, squares = {"": subject(model)}, []
    if model.kind != SAVED:
        subjects[f"{BAG} "] = BagOfSubwords(model.name)
    table = DataFrame({"pivot": pivots})
    table[["name", "family", "script"]] = [kind_of_language(code) for code in pivots]
    several = subject_scores([*subjects.values()], corpus, ["MEXA"])
    for name, scores in zip(subjects, several, strict=True):
        mu = scores.scores["MEXA"].mean(-1)
        layer = int(np.nanargmax(np.nanmean(mu, 1)))
        pairs = Series(mu[layer], pd.MultiIndex.from_tuples(scores.pairs))
        squares.append(pd.concat([pairs, pairs.swaplevel()]).unstack()[[*pivots]])
        means = squares[-1].mean().to_numpy()
        table[f"{name}mean"], table[f"{name}layer"] = means, layer
        table[f"{name}rank"] = Series(-means).rank()
    for bag in squares[1:]:
        less = [column.dropna() for _, column in (squares[0] - bag).items()]
        families = [[kind_of_language(code)[1] for code in x.index] for x in less]
        ends = [*map(statistics.mean_interval, less, families)]
        table[[f"less {BAG}", "low", "high"]] = ends
    return table.sort_values("rank", kind="stable", ignore_index=True).round(4)


def language_rows(
    scores: Mapping[str, Coverage], bag: mexa.PivotScores | None, in_pivot: Mapping[str, float]
) -> DataFrame:
    """One row per language: name, family, script, and of each pooling the highest score.

    "less bag": the first score less that of the bag, whose interval (Zou and Donner 2008) takes
    both as independent. "above bag": "yes", "no", or "?" where the interval holds 0. Without a bag
    these are left out; without a task the band is of the score itself, as if that of the task in
    the pivot were 1.
    """
    pooled = {name: coverage.scores.pooled("max") for name, coverage in scores.items()}
    ours, theirs = next(iter(pooled.values())), {} if bag is None else {"bag": bag.pooled("max")}
    table = ours[["language"]].copy()
    table[["name", "family", "script"]] = [kind_of_language(code) for code in table["language"]]
    for name, best in (pooled | theirs).items():
        table[[name, f"{name} low", f"{name} high"]] = best[["mu", "low", "high"]]
        if name != "bag":
            by_layer = np.nan_to_num(scores[name].scores.mu, nan=-1)
            table[f"{name} layer"] = by_layer.argmax(0)
    for rival in theirs.values():
        less = ours["mu"] - rival["mu"]
        low = less - np.hypot(ours["mu"] - ours["low"], rival["high"] - rival["mu"])
        high = less + np.hypot(ours["high"] - ours["mu"], rival["mu"] - rival["low"])
        table["less bag"], table["less bag low"], table["less bag high"] = less, low, high
        table["above bag"] = np.select([low > 0, high < 0], ["yes", "no"], "?")
    for task, score in in_pivot.items():
        table[f"adjusted, {task}"] = mexa.expected(ours["mu"], score)
        table[f"band, {task}"] = mexa.bands(table[f"adjusted, {task}"])
    if not in_pivot:
        table["band"] = mexa.bands(ours["mu"])
    return table.round(4)


def coverage_figure(table: DataFrame, pooling: str, label: str) -> Figure:
    """The scores of a pooling, and of the bag, by language."""
    drawn = [
        table.rename(columns={x: "mu", f"{x} low": "low", f"{x} high": "high"}).assign(model=name)
        for x, name in ((pooling, label), ("bag", BAG))
        if x in table
    ]
    return covered_languages({"coverage": pd.concat(drawn).assign(layers="max", states="raw")})


def headline(table: DataFrame, pooling: str, label: str, pivot: str) -> Sequence[str]:
    """Sentences: how many languages are covered, which are weak, how many are above the bag."""
    mu, beside = table[pooling], []
    if "bag" in table:
        above = table["above bag"].value_counts()
        beside.append(
            f"above a bag of its own subwords in {above.get('yes', 0)} languages, below it in "
            f"{above.get('no', 0)}, not told apart in {above.get('?', 0)}; the bag has "
            f"{table['bag'].mean():.2f} in the mean"
        )
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
        *beside,
    ]
