"""What a report answers: one sentence per question, made of a row of its tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import BAG
from xlx.measures.mexa import BANDS, EDGES
from xlx.plots.panels import number
from xlx.report.tables import TASK_BAG, UNTRAINED, Tables
from xlx.results.checks import ILLEGIBLE

#: From this score of MEXA on a language counts as covered: the two highest bands.
COVERED = EDGES[3]
#: Of languages or pairs so many are named in a sentence.
_NAMED = 8


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


#: Question, table, the row whose number answers it, the column of the number, and the sentence.
Answers = Iterator[tuple[str, str, pd.Series, str, str]]


def answers_of(tables: Tables, model: str) -> list[Finding]:
    """All answers about one model, from the tables of `tables.report_tables`."""
    own = {name: table[table["model"] == model] for name, table in tables.items()}
    made = [*_of_the_layer(own), *_of_languages(own), *_beside_others(own), *_of_labels(own)]
    made += of_sentence_tasks(own)
    findings = []
    for question, table, row, column, sentence in made:
        ends = (None if pd.isna(row[end]) else float(row[end]) for end in ("low", "high"))
        findings.append(Finding(model, question, sentence, float(row[column]), *ends, table))
    return findings


def answer_list(tables: Tables, models: Sequence[str]) -> str:
    """`answers_of` several models, question by question, in Markdown, for a notebook."""
    lines: dict[str, list[str]] = {}
    for x in (answer for model in models for answer in answers_of(tables, model)):
        whose = f"{x.model}: " if len(models) > 1 else ""
        lines.setdefault(f"**{x.question}**\n", []).append(f"- {whose}{x.sentence}")
    lines |= {"**What is not defined?**\n": [f"- {x}" for x in undefined_layers(tables)]}
    return "\n".join("\n".join([line, *said, ""]) for line, said in lines.items() if said)


def headlines(tables: Tables, answers: Sequence[Finding]) -> list[str]:
    """One line per model: its layer, its weak languages, its distance from a bag of subwords."""
    lines = []
    for model in dict.fromkeys(answer.model for answer in answers):
        own = {name: table[table["model"] == model] for name, table in tables.items()}
        best = own["coverage"].query("layers == 'max' and states == 'raw'")
        weak = best[best["mu"] < EDGES[1]].sort_values("mu", kind="stable")["name"]
        bag = own["references"].query("task == @MATCHED and reference == @TASK_BAG").iloc[0]
        lines.append(
            f"{model}: layer {own['layer_differences']['chosen'].iloc[0]}; weak languages (MEXA "
            f"below {EDGES[1]}): {named_first(list(weak)) or 'none'}; MD among sentences of like "
            f"length is {_told(bag, 'difference')} above that of a bag of its subwords."
        )
    return lines


def undefined_layers(tables: Tables) -> list[str]:
    """Layers at which a space leaves nothing of a language: a sentence for each model and space."""
    lost = tables["layers"][tables["layers"]["score"].isna()]
    return [
        f"{model}: {space} scores are not defined at layer {named_first(rows['layer'].unique())}: "
        "all vectors of a language are the same there, and without their mean nothing is left."
        for (model, space), rows in lost.groupby(["model", "space"], sort=False)
    ]


def _told(row: pd.Series, column: str = "score") -> str:
    """A number with its interval of 95 %, as text."""
    if pd.isna(row["low"]):
        return f"{number(row[column])} (too little text for an interval)"
    return f"{number(row[column])} ({number(row['low'])} to {number(row['high'])})"


def named_first(names: Sequence[object]) -> str:
    """Names as text, of many the first ones."""
    names = list(map(str, names))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _of_the_layer(own: Tables) -> Answers:
    """The layer that is best for sentences, and LD, MD and retrieval there."""
    apart = own["layer_differences"]
    layer, last = int(apart["chosen"].iloc[0]), apart.iloc[-1]
    here = own["layers"][own["layers"]["layer"] == layer].set_index(["space", "task"])
    raw, centred = here.loc["raw"], here.loc["centred"]
    # Of the layer itself both ends are 0.
    as_good = named_first(apart.query("not low > 0 and layer != @layer")["layer"])
    rest = f"does not tell it from {as_good}" if as_good else "tells it from every other layer"
    if last["layer"] != layer:
        rest += f". The last is {_told(last, 'difference')} below"
    if not pd.isna(last["elsewhere"]):
        rest += ". Chosen on one half of the text and scored on the other, it has "
        rest += number(last["elsewhere"])
    yield (
        "Which layer to use for sentences?",
        "layers",
        raw.loc[MATCHED],
        "score",
        (
            f"Layer {layer} of {last['layer']:.0f} (0: embeddings), where MD among sentences of "
            f"like length is highest, {_told(raw.loc[MATCHED])}: this text {rest}."
        ),
    )
    yield (
        "Does it tell languages apart?",
        "layers",
        raw.loc["LD"],
        "score",
        (
            f"At layer {layer} a sentence is nearer to another of its language than to that one's "
            f"translation in {_told(raw.loc['LD'])} of triplets (LD; 0.5: equal mean "
            f"vectors, no more). Without the mean of each language: {_told(centred.loc['LD'])}."
        ),
    )
    yield (
        "Does it tell meanings apart across languages?",
        "layers",
        raw.loc[MATCHED],
        "score",
        (
            f"At layer {layer} a sentence is nearer to its translation than to another sentence in "
            f"{_told(raw.loc['MD'])} of triplets (MD; 0.5 is chance). Among sentences of like "
            f"length: {_told(raw.loc[MATCHED])}. The same without the mean of each language: "
            f"{_told(centred.loc[MATCHED])}."
        ),
    )
    pivot, ways = own["coverage"]["pivot"].iloc[0], own["retrieval"]
    out, back = (ways.loc[ways[side] == pivot, "score"].mean() for side in ("query", "among"))
    yield (
        "Does it find translations, both ways?",
        "retrieval",
        raw.loc["retrieval"],
        "score",
        (
            f"At layer {layer} the translation is the nearest of all sentences for "
            f"{_told(raw.loc['retrieval'])} of them, the mean over pairs and directions; from "
            f"{pivot} for {out:.2f}, back to it for {back:.2f}."
        ),
    )


def _of_languages(own: Tables) -> Answers:
    """Languages that are covered, and pairs that are far apart."""
    best = own["coverage"].query("layers == 'max'").sort_values("mu", kind="stable")
    table, centred = best.query("states == 'raw'"), best.query("states == 'centred'")["mu"]
    least, most, bare = table.iloc[0], table.iloc[-1], table[table["band"] == BANDS[0]]
    means = []
    for kind in ("script", "family"):
        mean = table.groupby(kind)["mu"].agg(["mean", "size"])
        mean = mean.sort_values("mean", ascending=False, kind="stable").iloc[[0, -1]].itertuples()
        ends = " and ".join(dict.fromkeys(f"{name} {x:.2f} (of {n})" for name, x, n in mean))
        means.append(f"Mean by {kind}, the highest and the least: {ends}")
    named = f" ({named_first(bare['language'])})" if len(bare) else ""
    yield (
        "Which languages does it cover?",
        "coverage",
        least,
        "mu",
        (
            f"By MEXA with {least['pivot']}, each language at its best layer, "
            f"{(table['mu'] >= COVERED).sum()} of {len(table)} languages reach {COVERED} and "
            f"{len(bare)} stay below {EDGES[1]}{named}. Without the mean of each language "
            f"{(centred >= COVERED).sum()} and {(centred < EDGES[1]).sum()}. Best is "
            f"{most['language']}, {_told(most, 'mu')}, least {least['language']}, "
            f"{_told(least, 'mu')}. {'. '.join(means)}."
        ),
    )
    pairs = own["pairs"][own["pairs"]["task"] == MATCHED].sort_values("score", kind="stable")
    first = pairs.iloc[0]
    far, near = (
        f"{row['language_1']}–{row['language_2']}, {_told(row)}"
        for _, row in pairs.iloc[[0, -1]].iterrows()
    )
    yield (
        "Which pairs of languages are far apart?",
        "pairs",
        first,
        "score",
        (
            f"By MD among sentences of like length at layer {first['layer']} the farthest is "
            f"{far}. The nearest: {near}."
        ),
    )


def _beside_others(own: Tables) -> Answers:
    """Other models and controls, and what the tokenizer reads."""
    references = own["references"]
    for _, row in references[references["task"] == MATCHED].iterrows():
        verdicts = {"is above": row["low"] > 0, "is below": row["high"] < 0}
        verdict = next((word for word, true in verdicts.items() if true), "is not told apart from")
        yield (
            "How does it compare?",
            "references",
            row,
            "difference",
            (
                f"Its MD among sentences of like length, {row['score']:.2f} at layer "
                f"{row['layer']}, {verdict} that of {row['reference']}, "
                f"{row['reference_score']:.2f} at layer "
                f"{row['reference_layer']}. It is a difference of {_told(row, 'difference')}."
            ),
        )
    table, said = own["reading"], []
    for column, what in (("unknown", "subwords unknown"), ("cut", "sentences cut")):
        over = table[table[column] > ILLEGIBLE].sort_values(column, ascending=False, kind="stable")
        shares = [f"{row['language']} {row[column]:.0%}" for _, row in over.iterrows()]
        said.append(f"{what} in {named_first(shares)}" if shares else f"no language with {what}")
    worst = pd.Series({"unknown": table["unknown"].max(), "low": np.nan, "high": np.nan})
    yield (
        "Can it read the text?",
        "reading",
        worst,
        "unknown",
        (
            f"Above {ILLEGIBLE:.0%} there is, by language: {'; '.join(said)}; the largest share of "
            f"unknown subwords is {worst['unknown']:.1%}."
        ),
    )


def _of_labels(own: Tables) -> Answers:
    """One sentence per task, by the alignment that stands first and the bag, and one per probe."""
    fits, probes = own.get("task_fits"), own.get("probes")
    for task, rows in () if fits is None else fits.groupby("task", sort=False):
        first, bag = rows.iloc[0], rows[rows["predictor"] == TASK_BAG].iloc[0]
        better = "better than" if first["error"] < first["error_of_mean"] else "no better than"
        yield (
            "What does alignment predict of its tasks?",
            "task_fits",
            first,
            "r",
            (
                f"{task}, or its {first['predictor']}, is the same in all {first['n']} languages: "
                "there is nothing to predict."
            )
            if pd.isna(first["r"])
            else (
                f"Over {first['n']} languages {task} goes with {first['predictor']} by r = "
                f"{_told(first, 'r')}. From the line through the other languages a language's "
                f"score is told to within {first['error']:.3f} (root mean square), {better} from "
                f"their mean, {first['error_of_mean']:.3f}. From {bag['predictor']} to within "
                f"{bag['error']:.3f}."
            ),
        )
    for probed, rows in () if probes is None else probes.groupby("probed", sort=False):
        rows = rows.sort_values("accuracy", kind="stable")
        least, most = rows.iloc[0], rows.iloc[-1]
        learnt_in = "each language" if rows["learnt_in"].nunique() > 1 else least["learnt_in"]
        end = f". The best layer is {least['best_layer']}, {least['best_accuracy']:.2f}"
        end = "" if least["best_layer"] == least["layer"] else end
        if absent := sorted(set(own["reading"]["language"]) - set(rows["language"])):
            end += f". The data have no {named_first(absent)}"
        yield (
            "Does it know parts of speech and topics?",
            "probes",
            least,
            "accuracy",
            (
                f"A linear probe on layer {least['layer']}, learnt in {learnt_in}, gets {probed} "
                f"right in {rows['accuracy'].mean():.2f} of cases, the mean over {len(rows)} "
                f"languages (the commonest label: {rows['majority'].mean():.2f}). Least: "
                f"{least['language']} {_told(least, 'accuracy')}; most: {most['language']} "
                f"{_told(most, 'accuracy')}{end}."
            ),
        )


def of_sentence_tasks(own: Tables) -> Answers:
    """One sentence per task: the best layer at home and, where languages are several, abroad."""
    table = own.get("sentence_tasks", pd.DataFrame({"task": []}))
    for task, rows in table.groupby("task", sort=False):
        best = rows.loc[rows.groupby("read", sort=False)["accuracy"].idxmax()]
        ends = [
            f"{row['read']} {_told(row, 'accuracy')}, layer {row['layer']} ("
            + ", ".join(f"{x} {row[x]:.2f}" for x in (UNTRAINED, BAG) if x in row and row[x] >= 0)
            + f", chance {row['chance']:.2f})"
            for _, row in best.iterrows()
        ]
        yield (
            "What do its layers hold of a sentence?",
            "sentence_tasks",
            best.iloc[0],
            "accuracy",
            (f"{task}, the layer with most, mean over languages: {'; '.join(ends)}."),
        )
