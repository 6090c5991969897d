"""What was foreseen of held-out models, beside what came (``data/predictions``).

Names of quantities are those of the tables; a quantity whose results are not there yet is missing.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from mexa_3_surface import bag_table
from shared import mexa_tables
from shared.held_out import Plan
from synthesis import topic_scores
from xlx.experiment.mexa_scores import measure_coverage
from xlx.experiment.probing import probe_topics
from xlx.measures import statistics
from xlx.results import paths, work
from xlx.results.settings import settings

#: The ends of the intervals that were given, by how sure we were.
ENDS = {80: ("low_80", "high_80"), 95: ("low_95", "high_95")}


def foreseen(model: str) -> pd.DataFrame:
    """The predictions of a model, by ``id``."""
    return pd.read_csv(paths.DATA / "predictions" / f"{model}.csv").set_index("id")


def stored(call: Any, *arguments: Any, **options: Any) -> Any:
    """What a call gives if all its results are there, else None."""
    try:
        with settings(policy="only"):
            return call(*arguments, **options)
    except work.MissingResultError:
        return None


# --- what came ------------------------------------------------------------------------------------


def by_language(model: str, plan: Plan) -> pd.DataFrame:
    """``mu``, ``centred``, ``topics``, ``idf bag``, ``family`` by language; NaN: not there."""
    text = mexa_tables.load_text("flores200-100", plan.languages, None)
    whole = mexa_tables.load_text("flores200-100", None, None)
    table = pd.DataFrame({"idf bag": bag_table(whole)["4 characters, idf"]}).loc[
        [code for code in text.languages if code != "en"]
    ]
    options = {"poolings": plan.poolings[:1], "centred": None}
    if covered := stored(measure_coverage, model, text, **options):
        for name, coverage_of in zip(("mu", "centred"), covered.values(), strict=True):
            table[name] = pd.Series(coverage_of.scores.mu.max(axis=0), coverage_of.scores.languages)
    codes = plan.topics or text.languages
    probed = stored(probe_topics, [model], codes, seeds=range(3))
    if probed is not None:
        table["topics"] = topic_scores(probed).set_index("language")["score"]
    table["family"] = table.index.map(mexa_tables.language_families(table.index))
    return table


def measured(model: str, plan: Plan) -> tuple[dict[str, float], pd.DataFrame]:
    """All quantities of a model that are there, and the table by language."""
    with settings(dtype=plan.dtype):
        table = by_language(model, plan)
    values: dict[str, float] = {}
    for name in ("mu", "topics"):
        if name in table:
            values |= {f"{name} {code}": x for code, x in table[name].dropna().items()}
            values[f"{name} mean"] = table[name].mean()
    if "mu" in table:
        values["mu centred mean"] = table["centred"].mean()
        values["mu above idf bag"] = (table["mu"] > table["idf bag"]).mean()
    if "topics" in table and "mu" in table:
        r = statistics.correlation(table.dropna(), "mu", "topics", languages=("family",))
        values["r mu topics"] = r.value
    return values, table


# --- beside what was foreseen ---------------------------------------------------------------------


def judged(model: str, values: Mapping[str, float]) -> pd.DataFrame:
    """Predictions whose quantity is there: ``measured``, within 80 and 95 %, errors, baselines."""
    table = foreseen(model)
    table["measured"] = table.index.map(values)
    table = table.dropna(subset="measured").assign(model=model)
    for level, (low, high) in ENDS.items():
        table[f"within {level}"] = table["measured"].between(table[low], table[high])
    for name in ("value", "mean_of_models", "mean_of_language", "by_subwords"):
        table[f"error of {name}"] = (table[name] - table["measured"]).abs()
    table["holds"] = [
        isinstance(bound, str) and bounded(bound, value)
        for bound, value in table[["bound", "measured"]].to_numpy()
    ]
    return table


def bounded(bound: str, value: float) -> bool:
    """Whether a value is "> 0.75", "<= 0", "within 0.5 to 0.75" or "outside 0.8 to 1.25"."""
    numbers = [float(x) for x in re.findall(r"-?[\d.]+", bound)]
    sign = bound.split()[0]
    if sign in ("within", "outside"):
        return (numbers[0] <= value <= numbers[1]) == (sign == "within")
    return {">": value > numbers[0], "<": value < numbers[0], "<=": value <= numbers[0]}[sign]


def coverage(table: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """How many single values are within our intervals, with intervals of their own (95 %)."""
    single, rows = table[table["hypothesis"].isna()], []
    for (key, part), level in product(single.groupby(list(by), sort=False), ENDS):
        n, hits = len(part), int(part[f"within {level}"].sum())
        rows.append((*key, level, hits, n, hits / n, *statistics.share_interval(hits, n)))
    return pd.DataFrame(rows, columns=[*by, "level", "within", "of", "share", "low", "high"])
