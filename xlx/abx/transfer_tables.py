"""Transfer of probes against LD and MD of two languages (ABX paper, section 5.3): `abx-6`.

Parameters in, tidy tables out; `xlx.abx.probing`, `pair_regression` (which says what ``groups``
are) and `selection` make the numbers behind them.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from scipy import stats

from xlx.abx import selection
from xlx.abx.checkpoint_scores import CheckpointScores
from xlx.abx.discrimination import average_layers, pair_scores
from xlx.abx.experiments import PAIR, printed_results, side_by_side
from xlx.abx.kinship import with_kinship
from xlx.abx.pair_regression import ENDS, LD_AND_MD, Groups
from xlx.abx.probe_regressions import printed_regressions, under_printed
from xlx.abx.probe_setup import ProbeSetup
from xlx.abx.probe_tables import retested
from xlx.abx.probing import cross_lingual
from xlx.abx.series import bag_scores, measure_model
from xlx.core import languages, statistics
from xlx.text.corpora import ParallelCorpus

#: The source of each task whose languages take part.
TRANSFERRED = {"POS": "ud", "NER": "wikiann", "NLI": "xnli"}


def sizes(codes: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """How many languages and ordered pairs of them there are, beside what Table 2 ticks."""
    rows = {
        task: (len(some), len(languages.for_task(task, "CL")), len(some) * (len(some) - 1))
        for task, some in codes.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["languages", "ticked", "pairs"])


def shared_sentence(setup: ProbeSetup, codes: Sequence[str]) -> pd.Series:
    """The shortest sentence of Parallel UD that is drawn in all languages, with its tags."""
    parts = {code: setup.load(code, "test", "pud") for code in codes}
    first, *others = parts.values()
    shared = [row for row in zip(first.ids, first.sentences, strict=True)
              if all(row[0] in part.ids for part in others)]  # fmt: skip
    shown, _ = min(shared, key=lambda row: (len(row[1]), row[0]))
    texts = {}
    for code, part in parts.items():
        row = part.ids.index(shown)
        tagged = zip(part.sentences[row], part.tags[row], strict=True)
        texts[code] = " ".join(f"{word}/{tag}" for word, tag in tagged)
    return pd.Series(texts, name="sentence")


def pair_accuracies(
    names: Sequence[str],
    setups: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
    *,
    embedding_layer: bool = True,
    layer: str | int = "mean",
    entities: bool = False,
) -> pd.DataFrame:
    """Accuracy and commonest label of each source, target, task and model over the layers.

    ``best``: whether the pair is that of a target's best other source. ``entities``: also ``f1``
    of whole entities, NaN of tasks other than NER.
    """
    tables = [
        cross_lingual(name, setup, codes[task], entities=entities and task == "NER")
        for name in names
        for task, setup in setups.items()
    ]
    rows = pd.concat(tables, ignore_index=True)
    rows = rows if embedding_layer else rows[rows["layer"] > 0]
    rows = rows if layer == "mean" else rows[rows["layer"] == layer]
    keys = ["model", "task", "source", "target"]
    scores = [name for name in ("accuracy", "majority", "f1") if name in rows]
    mean = rows.groupby(keys, sort=False, as_index=False)[scores].mean()
    others = mean[mean["source"] != mean["target"]]
    best = others.groupby(["model", "task", "target"])["accuracy"].idxmax()
    return mean.assign(best=mean.index.isin(best))


def _pairs(accuracy: pd.DataFrame) -> pd.Series:
    apart = accuracy["source"] != accuracy["target"]
    return apart.map({True: "between languages", False: "in the language"})


def within_and_between(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy, commonest label (and F1, if there) within the probe's language and between."""
    scores = [name for name in ("accuracy", "majority", "f1") if name in accuracy]
    return accuracy.assign(pairs=_pairs(accuracy)).pivot_table(
        index=["task", "model"], columns="pairs", values=scores, sort=False
    )


def retest_table(accuracy: pd.DataFrame, again: pd.DataFrame, seed: int) -> pd.DataFrame:
    """`retested` over pairs of languages, and within languages."""
    kinds = accuracy.groupby(_pairs(accuracy), sort=True)
    tables = {kind: retested(rows, again, languages=ENDS, seed=seed) for kind, rows in kinds}
    table = pd.concat(tables, names=["pairs", ""]).droplevel(1)
    return table.set_index(["task", "model"], append=True)


def pairs_with_scores(
    accuracy: pd.DataFrame,
    names: Sequence[str],
    corpus: ParallelCorpus,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Accuracies between languages, with LD and MD of the pair: the model's, and its bag's."""
    tables = []
    for name in names:
        scores = pair_scores(measure_model(name, corpus).table())
        scores = side_by_side(average_layers(scores, embedding_layer), ["model", *PAIR])
        bag = side_by_side(bag_scores(name, corpus), PAIR).set_index(PAIR).add_prefix("bag ")
        tables.append(scores.merge(bag.reset_index(), on=PAIR))
    scores = pd.concat(tables)
    both = pd.concat(
        scores.rename(columns=dict(zip(PAIR, ends, strict=True))) for ends in (ENDS, ENDS[::-1])
    )
    return accuracy.query("source != target").merge(both, on=["model", *ENDS])


def ordered_pair_scores(
    measured: Sequence[CheckpointScores], embedding_layer: bool = True
) -> pd.DataFrame:
    """Scores of source and target: a row a model and ordered pair, a column a task.

    Of a task both directions are averaged, as the paper does; "LD, target" and so on is the
    direction with X in the target: of its sentences it is asked where they lie, and transfer has a
    direction too.
    """
    tables = []
    for of in measured:
        table = average_layers(of.table(), embedding_layer)
        index = ["model", *PAIR, "x_language"]
        directed = table.pivot(index=index, columns="task", values="score").reset_index()
        first, second = directed[PAIR[0]], directed[PAIR[1]]
        source = first.where(directed["x_language"] == second, second)
        directed = directed.assign(source=source, target=directed["x_language"])
        mean = directed.groupby(PAIR)[of.tasks].transform("mean")
        both = pd.concat([mean, directed[of.tasks].add_suffix(", target")], axis=1)
        tables.append(pd.concat([directed[["model", *ENDS]], both], axis=1))
    return pd.concat(tables, ignore_index=True).rename_axis(columns=None)


def transfer_regressions(
    groups: Groups, retest: pd.DataFrame, tasks: Sequence[str], **options: object
) -> pd.DataFrame:
    """Table 1, rows "CL": printed and ours, with the p-values of five kinds of error.

    p-values are text, since the printed ones are; ``options`` of the permutation of languages.
    """
    printed = printed_regressions("cross_lingual").loc[(slice(None), "Last"), :].droplevel(1)
    reliability = retest.xs("between languages", level="pairs")["r"]
    rows = {}
    for task in tasks:
        value, p_value = (printed.loc[task, part] for part in ("value", "p_value"))
        for term in LD_AND_MD:
            row = {"R2": value["R2"], "coefficient": value[term], "classical": p_value[term]}
            rows[task, "printed", term] = row
        for (model, of_group), table in groups.items():
            if of_group == task:
                fit = statistics.regression(table, "accuracy", LD_AND_MD, clusters=ENDS)
                test = statistics.permutation_regression(table, "accuracy", LD_AND_MD, **options)
                for term, permuted in test.set_index("term")["p_value"].items():
                    of_term = fit.table[fit.table["term"] == term].set_index("errors")
                    rows[task, model, term] = {
                        "R2": fit.r_squared,
                        "coefficient": of_term["coefficient"].iloc[0],
                        **of_term["p_value"].map("{:.3f}".format),
                        "permutation": f"{permuted:.3f}",
                        "VIF": of_term["vif"].iloc[0],
                        "repaired": ", ".join(fit.repaired),
                        "retest r": reliability[task, model],
                    }
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    return table.rename_axis(["task", "source", "term"])


def drawn_variants(variants: pd.DataFrame) -> pd.DataFrame:
    """`pair_regression.variants` as `plots.probes.coefficients` draws them, under the printed."""
    names = {"model": "source", "term": "predictor", "low": "wide_low", "high": "wide_high"}
    ours = variants.rename(columns=names).assign(low=float("nan"), high=float("nan"))
    ours["row"] = ours["task"] + ", " + ours["variant"]
    return under_printed(ours, "cross_lingual")


def chosen_sources(
    groups: Groups, *, kinship: bool = False, **options: object
) -> selection.Selection:
    """`selection.choose_sources` of each model and task, by each of three scores (appendix K).

    The rules: "LD" (lowest), "MD" (highest), "bag LD" (lowest in a bag of subwords), "constant" and
    "random"; if asked for, "kinship" (the nearest: `xlx.abx.kinship`).
    """
    tables, summaries = [], []
    scores = ("LD", "MD", "bag LD", *(["kinship"] if kinship else []))
    for (model, task), rows in groups.items():
        rows = with_kinship(rows) if kinship else rows
        for by in scores:
            lowest = by not in ("MD", "kinship")
            choice = selection.choose_sources(rows, by, lowest=lowest, **options)
            for part, parts in ((choice.table, tables), (choice.summary, summaries)):
                part = part if by == "LD" else part[part["rule"] == "selected"]
                rule = part["rule"].replace("selected", by)
                parts.append(part.assign(rule=rule, model=model, task=task))
    return selection.Selection(pd.concat(tables), pd.concat(summaries))


def source_table(chosen: selection.Selection, tasks: Sequence[str]) -> pd.DataFrame:
    """How the rules do: ``mean`` and ``p`` of each measure, below the chance of it.

    ``p`` is one-sided, against scores whose languages are permuted ("constant": random sources).
    """
    shown = chosen.summary[chosen.summary["rule"] != "random"]
    shown = shown.assign(p=shown["p_permutation"].fillna(shown["p_value"]))
    chance = shown.assign(rule="chance", mean=shown["chance"], p=float("nan"))
    table = pd.concat([chance, shown]).drop_duplicates(["task", "model", "rule", "measure"])
    keys = ["task", "model", "rule"]
    wide = table.pivot_table(["mean", "p"], keys, "measure", aggfunc="first", sort=False)
    return wide.swaplevel(axis=1)[["hit", "top", "win_rate"]].loc[list(tasks)]


def compared_rules(chosen: selection.Selection, tasks: Sequence[str]) -> pd.DataFrame:
    """`selection.improvement` of the win rate by the source of lowest LD on the other rules'."""
    rows = {}
    for (model, task), table in chosen.table.groupby(["model", "task"], sort=False):
        rates = table.pivot(index="target", columns="rule", values="win_rate")
        others = [rule for rule in ("constant", "MD", "bag LD", "kinship") if rule in rates]
        for rule in others:
            deltas = (rates["LD"] - rates[rule]).to_numpy()
            rows[task, model, rule] = selection.improvement(deltas)
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    return table.rename_axis(["task", "model", "LD against"]).loc[list(tasks)]


def win_rates_by_ld(
    chosen: selection.Selection, tasks: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Win rates of the source of lowest LD: by target, and their summary (`choose_sources`)."""
    of_ld = (part[part["rule"] == "LD"] for part in (chosen.table, chosen.summary))
    targets, summary = (
        part.sort_values("task", key=lambda names: names.map(list(tasks).index), kind="stable")
        for part in of_ld
    )
    return targets, summary[summary["measure"] == "win_rate"]


def printed_hits() -> pd.DataFrame:
    """The printed hits of choosing by LD, beside those by chance: one-sided binomial."""
    claims = {
        ("POS", "best"): ("abx_t19", 1),
        ("POS", "among the best three"): ("abx_t21", 3),
        ("NER", "best"): ("abx_t20", 1),
        ("NER", "among the best three"): ("abx_t22", 3),
    }
    printed, rows = printed_results(), {}
    for key, (claim, first) in claims.items():
        hits, targets = map(int, printed[claim].split("/"))
        share = first / (targets - 1)
        rows[key] = printed[claim], targets * share, stats.binom.sf(hits - 1, targets, share)
    index = pd.MultiIndex.from_tuples(rows, names=["task", "chosen source is"])
    return pd.DataFrame(rows.values(), index=index, columns=["printed", "by chance", "p"])
