"""xlx mexa: which languages a model aligns with the pivot, one row per language, as in the paper.

MEXA (Kargaran et al. 2025) of the first sentences of the text, each language at its best layer, by
each pooling, raw and without the mean of the language, beside a bag of the model's own subwords.
With --tasks the adjusted score, too: MEXA times the score of the task in the pivot, and its band.
--special-tokens is as in the paper's own code. A decoder is read by the weighted mean and by the
last token; another model as it was made to be. Stop it at any time: it goes on by language.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.experiment import mexa_scores
from xlx.experiment.mexa_scores import MEXA_POOLINGS, Coverage, measure_coverage
from xlx.experiment.scoring import BAG, BagOfSubwords
from xlx.measures import mexa
from xlx.report import inputs, options
from xlx.report.figures import covered_languages
from xlx.report.page import framed, shown_figure
from xlx.report.sentences import COVERED
from xlx.results import checks, store
from xlx.text import downstream
from xlx.text.languages import kind_of_language

_OPTIONS = (
    "--text",
    "--languages",
    "--pivot",
    "--tasks",
    "--sentences",
    *options.AS_ASKED,
    "--estimate",
    "--out",
)
_READING = (
    "MEXA is the share of sentences whose translation in the pivot is the best answer both ways; "
    "it falls with more sentences. The best layer is chosen on this text, which raises the score "
    "a little. Intervals are of 95 % over sentences. A bag knows names, numbers and loans alone."
)


def add_mexa(commands: argparse.Action) -> None:
    """The command of a command line."""
    options.command(commands, report_coverage, "mexa", __doc__, _OPTIONS, text="flores200-100")


def report_coverage(given: argparse.Namespace) -> None:
    """Say what it takes, score every language, write ``mexa.csv`` and ``mexa.html``."""
    model = options.asked_model(given)
    if given.sentences is not None:
        checks.whole(given.sentences, "--sentences", least=2)
    corpus, notes = inputs.reported_text(given.text, given.languages, given.sentences, seed=None)
    pivot = inputs.pivot_of(corpus, given.pivot)
    english = pivot_scores_of(given, pivot)
    poolings = [model.pooling]
    if model.kind == "decoder" and not given.pooling:
        poolings = list(dict.fromkeys([model.pooling, *MEXA_POOLINGS]))
    way = {"poolings": poolings, "states": mexa_scores.STATES}
    way["special_tokens"] = given.special_tokens
    n = len(mexa_scores.languages_to_read(model.name, corpus, pivot, **way))
    minutes = options.reading_seconds(model, corpus) / 60 * len(corpus) if n else 0
    print(
        f"{model.label}: {len(corpus)} sentences of {corpus.name} in {len(corpus.languages)} "
        f"languages ({corpus.source}); its vector is {model.vector}"
    )
    print(
        f"computing {n} languages, raw and centred: about {minutes * (n + 1):.1f} minutes"
        if n
        else "all scores are stored: nothing is computed"
    )
    if given.estimate:
        return
    scores = measure_coverage(model.name, corpus, pivot, **way)
    bag = measure_coverage(BagOfSubwords(model.name), corpus, pivot)[BAG].scores
    table = language_rows(scores, bag, english)
    lines = headline(table, poolings[0], model.label, pivot)
    folder = options.output_folder(given, model.label)
    store.write_whole(folder / "mexa.csv", table.to_csv(index=False).encode())
    about = f"{corpus.name} ({corpus.licence}), {len(corpus)} sentences; vectors: {model.vector}"
    drawn = []
    for x, label in ((poolings[0], model.label), ("bag", BAG)):
        part = table.rename(columns={x: "mu", f"{x} low": "low", f"{x} high": "high"})
        drawn.append(part.assign(layers="max", states="raw", model=label))
    figure = shown_figure(covered_languages({"coverage": pd.concat(drawn)}))
    page = framed(f"MEXA of {model.label}", *lines, figure, table, about, *notes, _READING)
    store.write_whole(folder / "mexa.html", page.encode())
    print(*lines, folder / "mexa.html", sep="\n")


def pivot_scores_of(given: argparse.Namespace, pivot: str) -> dict[str, float]:
    """Task → the model's score in the pivot. TextError where it has none."""
    if not given.tasks:
        return {}
    files = [Path(file).resolve() for file in given.tasks]
    scores = downstream.of_models(downstream.read_tasks(files), [given.model], pivot)
    return scores[scores["language"] == pivot].set_index("task")["score"].to_dict()


def language_rows(
    scores: Mapping[str, Coverage], bag: mexa.PivotScores, english: Mapping[str, float]
) -> pd.DataFrame:
    """One row per language: name, family, script, and of each pooling the highest score.

    "less bag": the first score less that of the bag, whose interval (Zou and Donner 2008) takes
    both as independent. "above bag": "yes", "no", or "?" where the interval holds 0. Without a task
    the band is of the score itself, as if that of the task in the pivot were 1.
    """
    codes, first = bag.languages, next(iter(scores))
    columns: dict[str, object] = {"language": codes}
    kinds = zip(*map(kind_of_language, codes), strict=True)
    columns |= dict(zip(("name", "family", "script"), kinds, strict=True))
    for name, of in scores.items():
        own, pooled = of.scores, of.scores.pooled("max")
        columns |= {f"{name} {x}".removesuffix(" mu"): pooled[x] for x in ("mu", "low", "high")}
        columns[f"{name} layer"] = np.nan_to_num(own.mu, nan=-1).argmax(axis=0)
    ours, theirs = scores[first].scores.pooled("max"), bag.pooled("max")
    less = ours["mu"] - theirs["mu"]
    low = less - np.hypot(ours["mu"] - ours["low"], theirs["high"] - theirs["mu"])
    high = less + np.hypot(ours["high"] - ours["mu"], theirs["mu"] - theirs["low"])
    columns |= {"bag": theirs["mu"], "bag low": theirs["low"], "bag high": theirs["high"]}
    columns |= {"less bag": less, "less bag low": low, "less bag high": high}
    columns["above bag"] = np.select([low > 0, high < 0], ["yes", "no"], "?")
    for task, score in english.items():
        columns[f"adjusted, {task}"] = mexa.expected(ours["mu"], score)
        columns[f"band, {task}"] = mexa.bands(columns[f"adjusted, {task}"])
    columns |= {} if english else {"band": mexa.bands(ours["mu"])}
    return pd.DataFrame(columns).round(4)


def headline(table: pd.DataFrame, pooling: str, label: str, pivot: str) -> list[str]:
    """Three lines: how many languages are covered, which are weak, how many are above the bag."""
    mu, above = table[pooling], table["above bag"].value_counts()
    first = f"{len(table)} languages with {pivot}: MEXA of {label} ({pooling.replace('_', ' ')}) is"
    first += f" {mu.mean():.2f} in the mean, {(mu >= COVERED).sum()} reach {COVERED}, "
    first += f"{(mu < mexa.EDGES[1]).sum()} stay below {mexa.EDGES[1]}; the commonest best layer is"
    first += f" {table[f'{pooling} layer'].mode()[0]}"
    for column in (x for x in table if x.startswith("adjusted, ")):
        first += f"; adjusted by {column[10:]} {(table[column] >= COVERED).sum()} reach {COVERED}"
    weakest = table.sort_values(pooling, kind="stable").head(8)
    told = [f"{x['name']} ({x['language']}) {x[pooling]:.2f}" for _, x in weakest.iterrows()]
    return [
        first,
        f"weakest: {', '.join(told)}",
        f"above a bag of its own subwords in {above.get('yes', 0)} languages, below it in "
        f"{above.get('no', 0)}, not told apart in {above.get('?', 0)}; the bag has "
        f"{table['bag'].mean():.2f} in the mean",
    ]
