"""What has come of the predictions of the within/across notebooks, each tested by its intervals.

Every function returns a `printed.Audit` whose claims hold if all their parts do.
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


def _claim_all(audit: printed.Audit, where: str, claim: str, table: pd.DataFrame, holds) -> None:
    """A claim on all rows of a table, whose parts are whether each row ``holds``."""
    audit.claim(where, claim, listed(table), *holds)


def of_inference(
    summaries: pd.DataFrame,
    grids: Mapping[str, Grid],
    baselines: pd.DataFrame,
    above: pd.DataFrame,
    source: str,
    guess: float,
    parts: Sequence[str],
    **options: Any,
) -> printed.Audit:
    """Of natural language inference.

    Parameters
    ----------
    summaries, baselines : `within_across.summary` of the models and of their baselines.
    grids : by model, the last one the model that should lose least.
    above : `experiments.above_baselines`.
    source, guess, parts : language of fine-tuning, share of the commonest label, names of parts.
    options : of the resamples.
    """
    audit, models = printed.Audit(), list(grids)
    row = summaries.set_index(["language", "setting", "model"]).sort_index()
    for code, said in ((OVERALL, "mean over languages"), (source, source)):
        drops = row.loc[(code, "drop")].loc[models]
        _claim_all(audit, "(1)", f"across is below within, {said}", drops, drops["low"] > 0)
    least = models[-1]
    if len(models) > 1:
        more = _drops_above(grids, least, **options)
        for code in (OVERALL, source):
            found = f"more in the others: {listed(more.loc[code])}"
            claim = f"the drop is less in {least}, {code}"
            audit.claim("(2)", claim, found, *(more.loc[code, "low"] > 0))
    outside = row.loc[(OVERALL, "across")].loc[models]
    _claim_all(audit, "(2)", "across is above the commonest label", outside, outside["low"] > guess)
    means = grids[least].scores["accuracy"].mean(axis=2)
    highest = means.argmax(axis=1) == grids[least].languages.index(source)
    audit.claim(
        "(2)",
        f"{least} is best with the {parts[1]} in {source}, whatever the {parts[0]}",
        f"for {highest.sum()} of {len(highest)} languages of the {parts[0]}",
        *highest,
    )
    bag = baselines.set_index(["language", "model", "setting"]).sort_index()
    bag = bag.loc[(OVERALL, "bag of subwords")].loc[["within", "across", "drop"]]
    parts_hold = bag.loc["drop", "low"] > 0, bag.loc["within", "low"] > guess
    claim = "the bag of subwords loses across, and has within more than the commonest label"
    _claim_all(audit, "(4)", claim, bag, parts_hold)
    _above_baselines(audit, above, source, parts[0])
    return audit


def _drops_above(grids: Mapping[str, Grid], least: str, **options: Any) -> pd.DataFrame:
    """By language and model: by how much more a model drops than ``least``."""
    tables = [
        paired_difference(
            grid.each["accuracy"],
            grids[least].each["accuracy"],
            grid.languages,
            grids[least].groups,
            **options,
        ).assign(model=name)
        for name, grid in grids.items()
        if name != least
    ]
    drops = pd.concat(tables).query("setting == 'drop'")
    return drops.set_index(["language", "model"])[["score", "low", "high"]]


def _above_baselines(audit: printed.Audit, above: pd.DataFrame, source: str, first: str) -> None:
    ahead = above[(above["language"] == OVERALL) & (above["setting"] != "drop")]
    for baseline in dict.fromkeys(above["baseline"]):
        for setting in ("within", "across"):
            rows = ahead[(ahead["baseline"] == baseline) & (ahead["setting"] == setting)]
            rows = rows.set_index("model")
            claim = f"{setting}, above {baseline}"
            _claim_all(audit, "baselines", claim, rows, rows["low"] > 0)
    alone = above[(above["language"] == source) & (above["baseline"] != "bag of subwords")]
    alone = alone.set_index(["setting", "model"])
    for setting in ("within", "drop"):
        rows = alone.loc[setting]
        claim = f"{setting}, {source}, more than without the {first}"
        _claim_all(audit, "baselines", claim, rows, rows["low"] > 0)


def of_paraphrases(
    summaries: pd.DataFrame, same: Mapping[str, pd.DataFrame], models: Sequence[str]
) -> printed.Audit:
    """Of PAWS-X (``summaries``) and of "same or other", by how the other was drawn (``same``)."""
    audit = printed.Audit()
    row = summaries.set_index(["language", "setting", "model"]).loc[OVERALL]
    for setting in ("within", "across"):
        own = row.loc[setting]
        holds = (own["low"] <= 0.5) & (own["high"] >= 0.5)
        _claim_all(audit, "PAWS-X", f"{setting} is not told from guessing", own, holds)
    for name, table in same.items():
        row = table.set_index(["language", "setting", "model"]).loc[OVERALL]
        ahead, rule = row.loc["across"].loc[models], row.loc["across"].loc["length and digits"]
        where = f"same, {name}"
        claim = "a model is above guessing across"
        _claim_all(audit, where, claim, ahead, ahead["low"] > 0.5)
        audit.claim(
            where,
            "a model is above length and digits across",
            f"{listed(ahead)}; the rule {100 * rule['score']:.1f}",
            *(ahead["low"] > rule["high"]),
        )
        bag = row.xs("bag of subwords", level="model")
        holds = bag.loc["within", "score"] == 1, bag.loc["across", "high"] < 0.6
        claim = "the bag of subwords is perfect within and at chance across"
        _claim_all(audit, where, claim, bag, holds)
    return audit


def of_questions(
    summaries: pd.DataFrame,
    whole: pd.DataFrame,
    above: pd.DataFrame,
    ratios: pd.DataFrame,
    models: Sequence[str],
    tail: float,
) -> printed.Audit:
    """Of questions: the models' F1, the rule on all questions (``whole``), its tails."""
    audit = printed.Audit()
    f1 = summaries[(summaries["measure"] == "F1") & (summaries["language"] == OVERALL)]
    drops = f1[f1["setting"] == "drop"].set_index("model").loc[models]
    _claim_all(audit, "(1)", "across is below within: the models", drops, drops["low"] > 0)
    rule = whole[whole["language"] == OVERALL].set_index("setting")
    half = rule.loc["across", "score"] < rule.loc["within", "score"] / 2
    claim = "the rule loses more than half across, on all questions"
    _claim_all(audit, "(1)", claim, rule, [half])
    ahead = above[(above["language"] == OVERALL) & (above["setting"] != "drop")]
    for baseline, own in ahead.groupby("baseline", sort=False):
        own = own.set_index("model")
        _claim_all(audit, "baselines", f"a model is above: {baseline}", own, own["low"] > 0)
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
    named = gaps[(gaps["setting"] != "drop") & (gaps["high"] < 0)]
    named = named.set_index(["task", "model", "language", "setting"])
    return named.assign(points=as_points(named))[["points"]]


def of_controls(gaps: pd.DataFrame, tasks: Iterable[str] = TASK_NAMES) -> printed.Audit:
    """Of the control task: what shuffling words costs (``gaps``), and whether it gains."""
    audit = printed.Audit()
    settings = gaps[gaps["setting"] != "drop"]
    n, n_gained = len(settings), int((settings["high"] < 0).sum())
    claim = "no interval of a difference is below zero"
    audit.claim("falsifier", claim, f"{n_gained} are", not n_gained)
    few = n_gained <= stats.binom.ppf(0.95, n, 0.025)
    audit.claim("falsifier", "no more are than chance allows", f"{n_gained} of {n}", few)
    for task in tasks:
        own = settings[(settings["task"] == TASK_NAMES[task]) & (settings["language"] == OVERALL)]
        own = own.set_index("setting")
        claim = "loses nothing by shuffling (no interval above zero)"
        _claim_all(audit, TASK_NAMES[task], claim, own, own["low"] <= 0)
    return audit


def of_pairs(table: pd.DataFrame, unseen: pd.DataFrame) -> printed.Audit:
    """Of fine-tuning on a pair: whether a row's gain is above zero in all pairs, or in none.

    ``table`` and ``unseen`` are `experiments.pair_averages` over all languages and over those that
    were not learnt.
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
    )
    for where, claim, frame, row, up in claims:
        own = frame[(frame["condition"] == "baseline") & (frame["row"] == row)].set_index("pair")
        found = ", ".join(f"{pair} {said}" for pair, said in as_points(own, "gain").items())
        audit.claim(where, claim, found, *((own["gain_low"] > 0) == up))
    return audit
