"""What a report answers: a sentence a question, each made of the numbers of a row of its tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.topics import BANDS, EDGES
from xlx.report.predicted_tasks import TASK_BAG
from xlx.results.checks import ILLEGIBLE

#: From this score of MEXA on a language counts as covered: the two highest bands.
COVERED = EDGES[3]
#: Of languages or pairs so many are named in a sentence.
_NAMED = 8


@dataclass(frozen=True)
class Finding:
    """A question about a model and its answer: ``value`` with its interval, if it has one.

    ``table`` names the table that the numbers are of.
    """

    model: str
    question: str
    sentence: str
    value: float
    low: float | None
    high: float | None
    table: str


def answers_of(tables: Mapping[str, pd.DataFrame], model: str) -> list[Finding]:
    """All answers about one model, from the tables of `tables.report_tables`."""
    own = {name: table[table["model"] == model] for name, table in tables.items()}
    layer = int(own["layer_differences"]["chosen"].iloc[0])
    made = [
        ("Which layer to use for sentences?", "layers", _layer(own, layer)),
        ("Does it tell languages apart?", "layers", _languages_apart(own, layer)),
        ("Does it tell meanings apart across languages?", "layers", _meanings_apart(own, layer)),
        ("Does it find translations, both ways?", "retrieval", _retrieval(own, layer)),
        ("Which languages does it cover?", "coverage", _coverage(own)),
        ("Which pairs of languages are far apart?", "pairs", _pairs_apart(own)),
        *(("How does it compare?", "references", x) for x in _compared(own)),
        ("Can it read the text?", "reading", _reading(own)),
        ("How does it stand beside what the papers print?", "printed", _printed(own)),
        *(("What does alignment predict of its tasks?", "task_fits", x) for x in _predicted(own)),
        *(("Does it know parts of speech and topics?", "probes", x) for x in _probed(own)),
    ]
    return [
        Finding(model, question, sentence, *numbers, table)
        for question, table, (sentence, *numbers) in made
    ]


def answer_list(tables: Mapping[str, pd.DataFrame], models: Sequence[str]) -> str:
    """`answers_of` several models, question by question, in Markdown, for a notebook."""
    answered = [answer for model in models for answer in answers_of(tables, model)]
    lines = []
    for question in dict.fromkeys(answer.question for answer in answered):
        said = [answer for answer in answered if answer.question == question]
        lines.append(f"**{question}**\n")
        lines += [
            f"- {x.model}: {x.sentence}" if len(models) > 1 else f"- {x.sentence}" for x in said
        ]
        lines.append("")
    return "\n".join(lines)


Answered = tuple[str, float, float | None, float | None]


def _told(row: pd.Series, value: str = "score") -> str:
    """A number with its interval of 95 %, as text."""
    if pd.isna(row["low"]):
        return f"{_number(row[value])} (too little text for an interval)"
    return f"{_number(row[value])} ({_number(row['low'])} to {_number(row['high'])})"


def _number(value: float) -> str:
    text = f"{value:.2f}".replace("-", "−")
    return "0.00" if text == "−0.00" else text


def _numbers(row: pd.Series, value: str = "score") -> tuple[float, float | None, float | None]:
    low, high = (None if pd.isna(row[end]) else float(row[end]) for end in ("low", "high"))
    return float(row[value]), low, high


def _row(table: pd.DataFrame, **keys: object) -> pd.Series:
    for name, value in keys.items():
        table = table[table[name] == value]
    (row,) = (row for _, row in table.iterrows())
    return row


def _listed(names: Sequence[object]) -> str:
    names = list(map(str, names))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _layer(own: Mapping[str, pd.DataFrame], layer: int) -> Answered:
    apart = own["layer_differences"]
    row = _row(own["layers"], space="raw", task=MATCHED, layer=layer)
    # Of the layer itself both ends are 0.
    as_good = apart.query("not low > 0 and layer != @layer")["layer"].tolist()
    others = (
        f"this text does not tell it from {_listed(as_good)}"
        if as_good
        else "this text tells it from every other layer"
    )
    last = _row(apart, layer=apart["layer"].max())
    below = f"; the last is {_told(last, 'difference')} below"
    end = "" if last["layer"] == layer else below
    elsewhere = own["layer_choice"]["score_elsewhere"].iloc[0]
    if not pd.isna(elsewhere):
        end += f"; chosen on one half of the text and scored on the other, {_number(elsewhere)}"
    sentence = (
        f"Layer {layer} of {apart['layer'].max()} (0: embeddings), where MD among sentences of "
        f"like length is highest, {_told(row)}: {others}{end}."
    )
    return sentence, *_numbers(row)


def _languages_apart(own: Mapping[str, pd.DataFrame], layer: int) -> Answered:
    raw, centred = (
        _row(own["layers"], space=space, task="LD", layer=layer) for space in ("raw", "centred")
    )
    sentence = (
        f"At layer {layer} a sentence is nearer to another of its language than to that one's "
        f"translation in {_told(raw)} of triplets (LD; 0.5 is no trace of the language); "
        f"without the mean of each language in {_told(centred)}."
    )
    return sentence, *_numbers(raw)


def _meanings_apart(own: Mapping[str, pd.DataFrame], layer: int) -> Answered:
    plain, matched = (
        _row(own["layers"], space="raw", task=task, layer=layer) for task in ("MD", MATCHED)
    )
    centred = _row(own["layers"], space="centred", task=MATCHED, layer=layer)
    sentence = (
        f"At layer {layer} a sentence is nearer to its translation than to another sentence in "
        f"{_told(plain)} of triplets (MD; 0.5 is chance), among sentences of like "
        f"length in {_told(matched)}, and these without the mean of each language in "
        f"{_told(centred)}."
    )
    return sentence, *_numbers(matched)


def _retrieval(own: Mapping[str, pd.DataFrame], layer: int) -> Answered:
    row = _row(own["layers"], space="raw", task="retrieval", layer=layer)
    pivot, ways = own["coverage"]["pivot"].iloc[0], own["retrieval"]
    out, back = (ways.loc[ways[side] == pivot, "score"].mean() for side in ("query", "among"))
    sentence = (
        f"At layer {layer} the translation is the nearest of all sentences for "
        f"{_told(row)} of them, the mean over pairs and directions; from {pivot} for "
        f"{out:.2f}, back to it for {back:.2f}."
    )
    return sentence, *_numbers(row)


def _coverage(own: Mapping[str, pd.DataFrame]) -> Answered:
    table = own["coverage"].query("layers == 'max' and states == 'raw'")
    table = table.sort_values("mu", kind="stable")
    centred = own["coverage"].query("layers == 'max' and states == 'centred'")["mu"]
    least, most = table.iloc[0], table.iloc[-1]
    covered, lowest = table[table["mu"] >= COVERED], table[table["band"] == BANDS[0]]
    means = "; ".join(f"mean by {kind}: {_means(table, kind)}" for kind in ("script", "family"))
    bare = f" ({_listed(lowest['language'])})" if len(lowest) else ""
    sentence = (
        f"By MEXA with {least['pivot']}, each language at its best layer, {len(covered)} of "
        f"{len(table)} languages reach {COVERED} and {len(lowest)} stay below {EDGES[1]}{bare}; "
        f"without the mean of each language {(centred >= COVERED).sum()} and "
        f"{(centred < EDGES[1]).sum()}; "
        f"best is {most['language']}, {_told(most, 'mu')}, least {least['language']}, "
        f"{_told(least, 'mu')}; {means}."
    )
    return sentence, *_numbers(least, "mu")


def _means(table: pd.DataFrame, kind: str) -> str:
    """Mean score of each kind of language, the best first, and how many there are."""
    means = table.groupby(kind)["mu"].agg(["mean", "size"])
    means = means.sort_values("mean", ascending=False, kind="stable")
    return _listed([f"{name} {mean:.2f} ({n})" for name, mean, n in means.itertuples()])


def _pairs_apart(own: Mapping[str, pd.DataFrame]) -> Answered:
    pairs = own["pairs"][own["pairs"]["task"] == MATCHED].sort_values("score", kind="stable")

    def named(row: pd.Series) -> str:
        return f"{row['language_1']}–{row['language_2']} {_told(row)}"

    far = [named(row) for _, row in pairs.head(3).iterrows()]
    sentence = (
        f"By MD among sentences of like length at layer {pairs['layer'].iloc[0]} the farthest are "
        f"{', '.join(far)}; the nearest {named(pairs.iloc[-1])}."
    )
    return sentence, *_numbers(pairs.iloc[0])


def _compared(own: Mapping[str, pd.DataFrame]) -> Iterator[Answered]:
    table = own["references"]
    for _, row in table[table["task"] == MATCHED].iterrows():
        verdicts = {"is above": row["low"] > 0, "is below": row["high"] < 0}
        told = next((word for word, true in verdicts.items() if true), "is not told apart from")
        sentence = (
            f"Its MD among sentences of like length, {row['score']:.2f} at layer {row['layer']}, "
            f"{told} that of {row['reference']}, {row['reference_score']:.2f} at layer "
            f"{row['reference_layer']}: a difference of {_told(row, 'difference')}."
        )
        yield sentence, *_numbers(row, "difference")


def _reading(own: Mapping[str, pd.DataFrame]) -> Answered:
    table, said = own["reading"], []
    for column, what in (("unknown", "subwords unknown"), ("cut", "sentences cut")):
        over = table[table[column] > ILLEGIBLE].sort_values(column, ascending=False, kind="stable")
        shares = [f"{row['language']} {row[column]:.0%}" for _, row in over.iterrows()]
        said.append(f"{what} in {_listed(shares)}" if shares else f"no language with {what}")
    worst = float(table["unknown"].max())
    share = f"the largest share of unknown subwords is {worst:.1%}"
    sentence = f"Above {ILLEGIBLE:.0%} there is, by language: {'; '.join(said)}; {share}."
    return sentence, worst, None, None


def _printed(own: Mapping[str, pd.DataFrame]) -> Answered:
    table = own["printed"]
    scores = table[table["quantity"] == "mean MEXA score, max over layers"]
    scores = scores[scores["printed_of"] != "mean of the nine"].sort_values("printed")
    (least, most), here = (scores.iloc[end] for end in (0, -1)), scores.iloc[0]
    row = table[table["quantity"].str.startswith("correlation of LD and MD")].iloc[0]
    correlated = (
        "" if pd.isna(row["here"])
        else f" LD and MD correlate over pairs of languages by {_told(row, 'here')}, those that "
        f"{row['paper']} print by {_number(row['printed'])}."
    )  # fmt: skip
    sentence = (
        f"Its mean MEXA score over languages, each at its best layer, is {_told(here, 'here')}; "
        f"those that {here['paper']} print of decoders go from {_number(least['printed'])} "
        f"({least['printed_of']}) to {_number(most['printed'])} ({most['printed_of']}).{correlated}"
        " Their text and languages are others: landmarks to see it by, not its rivals."
    )
    return sentence, *_numbers(here, "here")


def _predicted(own: Mapping[str, pd.DataFrame]) -> Iterator[Answered]:
    """A sentence a task, with the alignment that stands first and the bag."""
    if "task_fits" not in own:
        return
    for task, rows in own["task_fits"].groupby("task", sort=False):
        first, bag = rows.iloc[0], _row(rows, predictor=TASK_BAG)
        if pd.isna(first["r"]):
            said = f"{task}, or its {first['predictor']}, is the same in all {first['n']} languages"
            yield f"{said}: there is nothing to predict.", *_numbers(first, "r")
            continue
        worse = first["error"] >= first["error_of_mean"]
        than = "no better than" if worse else "better than"
        yield (
            f"Over {first['n']} languages {task} goes with {first['predictor']} by r = "
            f"{_told(first, 'r')}. From the line through the other languages a language's score is "
            f"told to within {first['error']:.3f} (root mean square), {than} from their mean, "
            f"{first['error_of_mean']:.3f}; from {bag['predictor']} to within {bag['error']:.3f}."
        ), *_numbers(first, "r")  # fmt: skip


def _probed(own: Mapping[str, pd.DataFrame]) -> Iterator[Answered]:
    """A sentence a task; the interval is that of the least language."""
    for probed, rows in own["probes"].groupby("probed", sort=False) if "probes" in own else ():
        rows = rows.sort_values("accuracy", kind="stable")
        least, most = rows.iloc[0], rows.iloc[-1]
        where = (
            "in each language" if rows["learnt_in"].nunique() > 1 else f"in {least['learnt_in']}"
        )
        spoken = set(own["reading"]["language"]) - set(rows["language"])
        without = f"; the data have no {_listed(sorted(spoken))}" if spoken else ""
        best = f"; the best layer is {least['best_layer']}, {least['best_accuracy']:.2f}"
        yield (
            (
                f"A linear probe on layer {least['layer']}, learnt {where}, gets {probed} right in "
                f"{rows['accuracy'].mean():.2f} of cases, the mean over {len(rows)} languages (the "
                f"commonest label: {rows['majority'].mean():.2f}), from {least['language']} "
                f"{_told(least, 'accuracy')} to {most['language']} {_told(most, 'accuracy')}"
                f"{'' if least['best_layer'] == least['layer'] else best}{without}."
            ),
            *_numbers(least, "accuracy"),
        )
