"""What a report answers: a few sentences per question, made of a row of its tables."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import BAG
from xlx.measures.mexa import EDGES
from xlx.plots.panels import number
from xlx.report.tables import UNTRAINED, Tables
from xlx.results.checks import ILLEGIBLE

#: From this score of MEXA on a language counts as covered: the two highest bands.
COVERED = EDGES[3]
#: Of languages or pairs so many are named in a sentence.
_NAMED = 8
#: What begins markup in Markdown, HTML or mathematics, and how it is written as text.
_MARKUP, _ESCAPED = re.compile(r"[\\`*_\[\]{}<>$~#&|!]"), r"\\\g<0>"
_LIKE = "MD among sentences of like length"


@dataclass(frozen=True)
class Finding:
    """A question about a model and its answer: a number of a ``table``, and its interval if any."""

    model: str
    question: str
    sentence: str
    value: float
    low: float | None
    high: float | None
    table: str


#: Question, table, the row whose number answers it, the column of the number, and the sentences.
Answers = Iterator[tuple[str, str, Series, str, str]]


def answers_of(
    tables: Tables, model: str, parts: Sequence[Callable[[Tables], Answers]] | None = None
) -> list[Finding]:
    """Answers about one model, all or some parts, from the tables of `tables.report_tables`."""
    rows = {name: table[table["model"] == model] for name, table in tables.items()}
    findings = []
    for part in parts or (
        _of_the_layer,
        _of_languages,
        _beside_others,
        _of_reading,
        _of_tasks,
        _of_probes,
        of_sentence_tasks,
    ):
        for question, table, row, column, sentence in part(rows):
            ends = (None if pd.isna(row[end]) else float(row[end]) for end in ("low", "high"))
            value = float(row[column])
            findings.append(Finding(model, question, sentence, value, *ends, table))
    return findings


def answer_list(tables: Tables, models: Sequence[str]) -> str:
    """`answers_of` several models, question by question, in Markdown, for a notebook.

    Names stand in it as they are: no sign of them is markup.
    """
    lines = {}
    for x in (answer for model in models for answer in answers_of(tables, model)):
        whose = f"{x.model}: " if len(models) > 1 else ""
        lines.setdefault(x.question, []).append(whose + x.sentence)
    if undefined := undefined_layers(tables):
        lines["What is not defined?"] = undefined
    parts = []
    for question, sentences in lines.items():
        items = [f"- {_MARKUP.sub(_ESCAPED, ' '.join(x.split()))}\n" for x in sentences]
        parts.append(f"**{question}**\n\n{''.join(items)}")
    return "\n".join(parts)


def undefined_layers(tables: Tables) -> list[str]:
    """Layers at which a space leaves nothing of a language: a sentence for each model and space."""
    lost = tables["layers"][tables["layers"]["score"].isna()]
    return [
        f"{model}: {space} scores are not defined at layer {named_first(rows['layer'].unique())}: "
        "all vectors of a language are the same there, and without their mean nothing is left."
        for (model, space), rows in lost.groupby(["model", "space"], sort=False)
    ]


def named_first(names: Iterable[object]) -> str:
    """Names as text, of many the first ones."""
    names = list(map(str, names))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _with_interval(row: Series, column: str = "score") -> str:
    """A number with its interval of 95 %, as text."""
    if pd.isna(row["low"]):
        return f"{number(row[column])} (too little text for an interval)"
    return f"{number(row[column])} ({number(row['low'])} to {number(row['high'])})"


def _of_the_layer(rows: Tables) -> Answers:
    """The layer that is best for sentences, and LD, MD and retrieval there."""
    apart = rows["layer_differences"]
    layer, last = int(apart["chosen"].iloc[0]), apart.iloc[-1]
    here = rows["layers"][rows["layers"]["layer"] == layer].set_index(["space", "task"])
    raw, centred = here.loc["raw"], here.loc["centred"]
    # Of the layer itself both ends are 0.
    as_good = apart.query("not low > 0 and layer != @layer")["layer"]
    alike = f"as good as {named_first(as_good)}" if len(as_good) else "better than any other"
    if last["layer"] != layer:
        alike += f". The last is {_with_interval(last, 'difference')} below"
    if not pd.isna(last["elsewhere"]):
        alike += (
            f". Chosen on one half of the text, it has {number(last['elsewhere'])} on the other"
        )
    yield (
        "Which layer to use for sentences?",
        "layers",
        raw.loc[MATCHED],
        "score",
        f"Layer {layer} of {last['layer']:.0f} (0: embeddings), where {_LIKE} is highest, "
        f"{_with_interval(raw.loc[MATCHED])}. On this text it is {alike}.",
    )
    yield (
        "Does it tell languages apart?",
        "layers",
        raw.loc["LD"],
        "score",
        f"At layer {layer} a sentence is nearer to another one of its language than to the "
        f"translation of that one in {_with_interval(raw.loc['LD'])} of triplets (LD; 0.5: equal "
        f"mean vectors, no more). Without the mean of each language: "
        f"{_with_interval(centred.loc['LD'])}.",
    )
    yield (
        "Does it tell meanings apart across languages?",
        "layers",
        raw.loc[MATCHED],
        "score",
        f"At layer {layer} a sentence is nearer to its translation than to another sentence in "
        f"{_with_interval(raw.loc['MD'])} of triplets (MD; 0.5 is chance). Among sentences of like "
        f"length: {_with_interval(raw.loc[MATCHED])}. The same without the mean of each language: "
        f"{_with_interval(centred.loc[MATCHED])}.",
    )
    if "retrieval" not in rows:
        return
    pivot, ways = rows["coverage"]["pivot"].iloc[0], rows["retrieval"]
    out, back = (ways.loc[ways[side] == pivot, "score"].mean() for side in ("query", "among"))
    yield (
        "Does it find translations, both ways?",
        "retrieval",
        raw.loc["retrieval"],
        "score",
        f"At layer {layer} the translation is the nearest of all sentences in "
        f"{_with_interval(raw.loc['retrieval'])} of cases, the mean over pairs and directions: "
        f"from {pivot} in {out:.2f}, back to it in {back:.2f}.",
    )


def _of_languages(rows: Tables) -> Answers:
    """Languages that are covered, and pairs that are far apart."""
    best = rows["coverage"].query("layers == 'max'").sort_values("mu", kind="stable")
    table, centred = best.query("states == 'raw'"), best.query("states == 'centred'")["mu"]
    least, most = table.iloc[0], table.iloc[-1]
    bare = table.loc[table["mu"] < EDGES[1], "language"]
    means = []
    for kind in ("script", "family"):
        mean = table.groupby(kind)["mu"].agg(["mean", "size"]).sort_values("mean", kind="stable")
        ends = (f"{x} {row['mean']:.2f} (of {row['size']:.0f})" for x, row in mean.iterrows())
        ends = [*ends][:: 1 - len(mean) or 1]  # the two ends, or the only one
        means.append(f" By {kind}, the highest and the least: {' and '.join(ends)}.")
    yield (
        "Which languages does it cover?",
        "coverage",
        least,
        "mu",
        f"By MEXA with {least['pivot']}, each language at its best layer, "
        f"{(table['mu'] >= COVERED).sum()} of {len(table)} languages reach {COVERED} and "
        f"{len(bare)} stay below {EDGES[1]}{f' ({named_first(bare)})' * bool(len(bare))}. Without "
        f"the mean of each language these are {(centred >= COVERED).sum()} and "
        f"{(centred < EDGES[1]).sum()}. The best is {most['language']}, "
        f"{_with_interval(most, 'mu')}; the least is {least['language']}, "
        f"{_with_interval(least, 'mu')}.{''.join(means)}",
    )
    pairs = rows["pairs"][rows["pairs"]["task"] == MATCHED].sort_values("score", kind="stable")
    far, near = (
        f"{row['language_1']} and {row['language_2']}, {_with_interval(row)}"
        for _, row in pairs.iloc[[0, -1]].iterrows()
    )
    yield (
        "Which pairs of languages are far apart?",
        "pairs",
        pairs.iloc[0],
        "score",
        f"By {_LIKE} at layer {pairs['layer'].iloc[0]}, the farthest are {far}. "
        f"The nearest are {near}.",
    )


def _beside_others(rows: Tables) -> Answers:
    """Other models and controls."""
    references = rows["references"]
    for _, row in references[references["task"] == MATCHED].iterrows():
        other = {UNTRAINED: "its untrained twin"}.get(row["reference"], row["reference"])
        side = "above" if row["low"] > 0 else "below" if row["high"] < 0 else "not told apart from"
        yield (
            "How does it compare?",
            "references",
            row,
            "difference",
            f"Its {_LIKE}, {row['score']:.2f} at layer {row['layer']}, is {side} that of {other}, "
            f"{row['reference_score']:.2f} at layer {row['reference_layer']}. The difference "
            f"is {_with_interval(row, 'difference')}.",
        )


def _of_reading(rows: Tables) -> Answers:
    """What the tokenizer reads."""
    table, parts = rows["reading"], []
    for column, what in (("unknown", "subwords are unknown"), ("cut", "sentences are cut")):
        over = table[table[column] > ILLEGIBLE].sort_values(column, ascending=False, kind="stable")
        shares = [f"{row['language']} ({row[column]:.0%})" for _, row in over.iterrows()]
        where = named_first(shares) or "no language"
        parts.append(f"More than {ILLEGIBLE:.0%} of {what} in {where}.")
    worst = Series({"unknown": table["unknown"].max(), "low": np.nan, "high": np.nan})
    yield (
        "Can it read the text?",
        "reading",
        worst,
        "unknown",
        f"{' '.join(parts)} The largest share of unknown subwords is {worst['unknown']:.1%}.",
    )


#: What is said of LD, MD and retrieval alone.
OF_ABX = (_of_the_layer, _beside_others)


def _of_tasks(rows: Tables) -> Answers:
    """What MEXA, and a bag of subwords, tell of the scores of each task."""
    fits = rows.get("task_fits", DataFrame({"task": []}))
    for task, table in fits.groupby("task", sort=False):
        first, bag = table.iloc[0], table[table["predictor"] == BAG].iloc[0]
        sentence = (
            f"{task} or its {first['predictor']} is the same in all languages: there is nothing to "
            "predict."
        )
        if not pd.isna(first["r"]):
            better = "better" if first["error"] < first["error_of_mean"] else "no better"
            sentence = (
                f"Over {first['n']} languages {task} goes with {first['predictor']} by r = "
                f"{_with_interval(first, 'r')}. From the other languages a score is told to within "
                f"{first['error']:.3f}, {better} than by their mean, {first['error_of_mean']:.3f}. "
                f"A bag of subwords tells it to within {bag['error']:.3f}."
            )
        yield "What does alignment predict of its tasks?", "task_fits", first, "r", sentence


def _of_probes(rows: Tables) -> Answers:
    """Parts of speech and topics: the mean over languages, and the least and the most."""
    probes = rows.get("probes", DataFrame({"probed": []}))
    for probed, table in probes.groupby("probed", sort=False):
        table = table.sort_values("accuracy", kind="stable")
        least, most = table.iloc[0], table.iloc[-1]
        learnt_in = "each language" if table["learnt_in"].nunique() > 1 else least["learnt_in"]
        absent = named_first(sorted({*rows["reading"]["language"]} - {*table["language"]}))
        yield (
            "Does it know parts of speech and topics?",
            "probes",
            least,
            "accuracy",
            f"A linear probe on layer {least['layer']}, learnt in {learnt_in}, gets {probed} right "
            f"in {table['accuracy'].mean():.2f} of cases, the mean over {len(table)} languages. "
            f"The commonest label is right in {table['majority'].mean():.2f}. The least is "
            f"{least['language']}, {_with_interval(least, 'accuracy')}, the most "
            f"{most['language']}, {_with_interval(most, 'accuracy')}. The best layer is "
            f"{least['best_layer']}, {least['best_accuracy']:.2f}."
            + f" There are no data in {absent}."
            * bool(absent),
        )


def of_sentence_tasks(rows: Tables) -> Answers:
    """X-Probe's tasks at the layers that hold most of each, read at home and abroad."""
    tasks = rows.get("sentence_tasks", DataFrame({"task": []}))
    for task, table in tasks.groupby("task", sort=False):
        best = table.loc[table.groupby("read", sort=False)["accuracy"].idxmax()]
        parts = [
            f"{row['read']} at layer {row['layer']}, {_with_interval(row, 'accuracy')} ("
            + ", ".join(f"{x} {row[x]:.2f}" for x in (UNTRAINED, BAG, "chance") if x in row)
            + ")"
            for _, row in best.iterrows()
        ]
        yield (
            "What do its layers hold of a sentence?",
            "sentence_tasks",
            best.iloc[0],
            "accuracy",
            f"{task} is read best {'; '.join(parts)}: means over languages.",
        )
