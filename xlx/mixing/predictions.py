"""What has come of the predictions of the within/across notebooks, each tested by its intervals.

Every function returns a `printed.Audit` whose claims hold if all their parts do. Tables are those
of `within_across.summary` with their ``model``, unless said otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from scipy import stats

from xlx import printed
from xlx.mixing.grids import Grid
from xlx.mixing.reading import as_points, listed
from xlx.mixing.task_data import TASK_NAMES
from xlx.mixing.within_across import OVERALL, paired_difference


def _rows(table: pd.DataFrame, index: str | list[str] = "model", **keys: object) -> pd.DataFrame:
    """Rows with some values, by the columns of ``index``."""
    for column, value in ({"language": OVERALL} | keys).items():
        table = table[table[column] == value]
    return table.set_index(index)


def _claim_all(audit: printed.Audit, where: str, claim: str, table: pd.DataFrame, holds) -> None:
    """A claim on all rows of a table, whose parts are whether each row ``holds``."""
    audit.claim(where, claim, listed(table), *holds)


def of_inference(
    summaries: pd.DataFrame, grids: Mapping[str, Grid], baselines: pd.DataFrame,
    above: pd.DataFrame, source: str, guess: float, parts: Sequence[str], **options: Any,
) -> printed.Audit:  # fmt: skip
    """Of natural language inference, by the models and their baselines.

    ``grids`` are by model, the last one the model that should lose least; ``above`` is
    `experiments.above_baselines`; ``source``, ``guess`` and ``parts`` are the language of
    fine-tuning, the share of the commonest label and the names of parts; ``options`` those of the
    resamples.
    """
    audit, models = printed.Audit(), list(grids)
    for code, said in ((OVERALL, "mean over languages"), (source, source)):
        drops = _rows(summaries, language=code, setting="drop").loc[models]
        _claim_all(audit, "(1)", f"across is below within, {said}", drops, drops["low"] > 0)
    least = models[-1]
    if len(models) > 1:
        for code in (OVERALL, source):
            more = _drops_above(grids, least, code, **options)
            claim = f"the drop is less in {least}, {code}"
            audit.claim("(2)", claim, f"more in the others: {listed(more)}", *(more["low"] > 0))
    outside = _rows(summaries, setting="across").loc[models]
    _claim_all(audit, "(2)", "across is above the commonest label", outside, outside["low"] > guess)
    means = grids[least].scores["accuracy"].mean(axis=2)
    highest = means.argmax(axis=1) == grids[least].languages.index(source)
    audit.claim(
        "(2)",
        f"{least} is best with the {parts[1]} in {source}, whatever the {parts[0]}",
        f"for {highest.sum()} of {len(highest)} languages of the {parts[0]}",
        *highest,
    )
    bag = _rows(baselines, "setting", model="bag of subwords")
    holds = bag.loc["drop", "low"] > 0, bag.loc["within", "low"] > guess
    claim = "the bag of subwords loses across, and has within more than the commonest label"
    _claim_all(audit, "(4)", claim, bag, holds)
    for baseline in dict.fromkeys(above["baseline"]):
        for setting in ("within", "across"):
            rows = _rows(above, baseline=baseline, setting=setting)
            claim = f"{setting}, above {baseline}"
            _claim_all(audit, "baselines", claim, rows, rows["low"] > 0)
    for setting in ("within", "drop"):
        rows = _rows(
            above[above["baseline"] != "bag of subwords"], language=source, setting=setting
        )
        claim = f"{setting}, {source}, more than without the {parts[0]}"
        _claim_all(audit, "baselines", claim, rows, rows["low"] > 0)
    return audit


def _drops_above(grids: Mapping[str, Grid], least: str, code: str, **options: Any) -> pd.DataFrame:
    """By model: by how much more it drops than ``least``, in a language."""
    last = grids[least]
    tables = [
        paired_difference(
            grid.each["accuracy"], last.each["accuracy"], grid.languages, last.groups, **options
        ).assign(model=name)
        for name, grid in grids.items()
        if name != least
    ]
    return _rows(pd.concat(tables), language=code, setting="drop")


def of_paraphrases(
    summaries: pd.DataFrame, same: Mapping[str, pd.DataFrame], models: Sequence[str]
) -> printed.Audit:
    """Of PAWS-X (``summaries``) and of "same or other", by how the other was drawn (``same``)."""
    audit = printed.Audit()
    for setting in ("within", "across"):
        rows = _rows(summaries, setting=setting)
        holds = (rows["low"] <= 0.5) & (rows["high"] >= 0.5)
        _claim_all(audit, "PAWS-X", f"{setting} is not told from guessing", rows, holds)
    for name, table in same.items():
        where, across = f"same, {name}", _rows(table, setting="across")
        ahead, rule = across.loc[models], across.loc["length and digits"]
        claim = "a model is above guessing across"
        _claim_all(audit, where, claim, ahead, ahead["low"] > 0.5)
        audit.claim(
            where,
            "a model is above length and digits across",
            f"{listed(ahead)}; the rule {100 * rule['score']:.1f}",
            *(ahead["low"] > rule["high"]),
        )
        bag = _rows(table, "setting", model="bag of subwords")
        holds = bag.loc["within", "score"] == 1, bag.loc["across", "high"] < 0.6
        claim = "the bag of subwords is perfect within and at chance across"
        _claim_all(audit, where, claim, bag, holds)
    return audit


def of_questions(
    summaries: pd.DataFrame, whole: pd.DataFrame, above: pd.DataFrame, ratios: pd.DataFrame,
    models: Sequence[str], tail: float,
) -> printed.Audit:  # fmt: skip
    """Of questions: the models' F1, the rule on all questions (``whole``), its tails."""
    audit = printed.Audit()
    drops = _rows(summaries, measure="F1", setting="drop").loc[models]
    _claim_all(audit, "(1)", "across is below within: the models", drops, drops["low"] > 0)
    rule = _rows(whole, "setting")
    half = rule.loc["across", "score"] < rule.loc["within", "score"] / 2
    claim = "the rule loses more than half across, on all questions"
    _claim_all(audit, "(1)", claim, rule, [half])
    for baseline, rows in _rows(above[above["setting"] != "drop"]).groupby("baseline", sort=False):
        _claim_all(audit, "baselines", f"a model is above: {baseline}", rows, rows["low"] > 0)
    low, high, zero = ratios["low"], ratios["high"], ratios["F1 of 0, %"]
    audit.claim(
        "(2)",
        "the rule's hardest questions are twice as far as its easiest, by language",
        f"{low.max():.2f} is the highest lower end, {high.max():.2f} upper end",
        *(low <= 2) & (high >= 2),
    )
    audit.claim(
        "(2)",
        "the hardest fifth can be told from the rest by the rule's F1",
        f"F1 is 0 on {zero.min():.0f} to {zero.max():.0f} %",
        *(zero < 100 * tail),
    )
    return audit


def gains_by_shuffling(gaps: pd.DataFrame) -> pd.DataFrame:
    """Rows of `experiments.control_tables`' gaps that are below zero: gains by shuffling."""
    rows = gaps[(gaps["setting"] != "drop") & (gaps["high"] < 0)]
    rows = rows.set_index(["task", "model", "language", "setting"])
    return rows.assign(points=as_points(rows))[["points"]]


def of_controls(gaps: pd.DataFrame, tasks: Iterable[str] = TASK_NAMES) -> printed.Audit:
    """Of the control task: what shuffling words costs (``gaps``), and whether it gains."""
    audit = printed.Audit()
    settings = gaps[gaps["setting"] != "drop"]
    n, n_gained = len(settings), len(gains_by_shuffling(gaps))
    claim = "no interval of a difference is below zero"
    audit.claim("falsifier", claim, f"{n_gained} are", not n_gained)
    few = n_gained <= stats.binom.ppf(0.95, n, 0.025)
    audit.claim("falsifier", "no more are than chance allows", f"{n_gained} of {n}", few)
    for name in (TASK_NAMES[task] for task in tasks):
        rows = _rows(settings, "setting", task=name)
        claim = "loses nothing by shuffling (no interval above zero)"
        _claim_all(audit, name, claim, rows, rows["low"] <= 0)
    return audit


def of_pairs(
    table: pd.DataFrame, unseen: pd.DataFrame, alone: pd.DataFrame, above: pd.DataFrame, part: str
) -> printed.Audit:
    """Of fine-tuning on a pair: whether a row's gain is above zero in all pairs, or in none.

    ``table`` and ``unseen`` are `experiments.pair_averages` over all languages and over those that
    were not learnt, ``alone`` that of models which read one ``part`` ("hypothesis") alone, and
    ``above`` is `experiments.above_one_part`.
    """
    audit = printed.Audit()
    claims = (
        ("(1)", "l1-l2 gains", table, "l1-l2", True),
        ("(2)", "l2-l1 does not gain", table, "l2-l1", False),
        ("(3)", "the whole grid does not gain", table, "*-*", False),
        ("(3)", "the grid of languages not learnt does not gain", unseen, "*-*", False),
        ("columns", "*-l2 gains", table, "*-l2", True),
        ("columns", "*-l2 gains over premises not learnt", unseen, "*-l2", True),
        ("columns", "l1-* does not gain", table, "l1-*", False),
        (f"{part} only", "*-l2 gains", alone, "*-l2", True),
        (f"{part} only", "l1-l2 is above it", above, "l1-l2", True),
        (f"{part} only", "*-l2 is above it", above, "*-l2", True),
        (f"{part} only", "the whole grid is above it", above, "*-*", True),
    )
    for where, claim, frame, row, up in claims:
        compared = (frame["condition"] != "fine-tuned") & (frame["row"] == row)
        rows = frame[compared].set_index("pair")
        said = ", ".join(f"{pair} {points}" for pair, points in as_points(rows, "gain").items())
        audit.claim(where, claim, said, *((rows["gain_low"] > 0) == up))
    return audit
