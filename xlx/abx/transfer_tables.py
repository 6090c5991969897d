"""Transfer of probes against LD and MD of two languages (ABX paper, section 5.3): `abx-6`.

Parameters in, tidy tables out; `xlx.abx.probing`, `pair_regression` and `selection` make the
numbers behind them. ``groups`` below is (model, task) → rows, one per ordered pair of languages.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from scipy import stats

from xlx.abx import pair_regression, selection
from xlx.abx.discrimination import average_layers, pair_scores
from xlx.abx.experiments import PAIR, printed_results, side_by_side
from xlx.abx.probe_regressions import LD_AND_MD, printed_regressions
from xlx.abx.probe_setup import ProbeSetup
from xlx.abx.probe_tables import retested
from xlx.abx.probing import cross_lingual
from xlx.abx.series import bag_scores, measure_model
from xlx.core import languages, statistics
from xlx.text.corpora import ParallelCorpus

Groups = Mapping[tuple[str, str], pd.DataFrame]

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
    shared = set.intersection(*(set(part.ids) for part in parts.values()))
    first = next(iter(parts.values()))
    lengths = {name: len(words) for name, words in zip(first.ids, first.sentences, strict=True)}
    shown = min(shared, key=lambda name: (lengths[name], name))
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
) -> pd.DataFrame:
    """Accuracy and commonest label of each source, target, task and model over the layers.

    ``best``: whether the pair is that of a target's best other source.
    """
    tables = [
        cross_lingual(name, setup, codes[task]) for name in names for task, setup in setups.items()
    ]
    rows = pd.concat(tables, ignore_index=True)
    rows = rows if embedding_layer else rows[rows["layer"] > 0]
    rows = rows if layer == "mean" else rows[rows["layer"] == layer]
    keys = ["model", "task", "source", "target"]
    mean = rows.groupby(keys, sort=False, as_index=False)[["accuracy", "majority"]].mean()
    others = mean[mean["source"] != mean["target"]]
    best = others.groupby(["model", "task", "target"])["accuracy"].idxmax()
    return mean.assign(best=mean.index.isin(best))


def _pairs(accuracy: pd.DataFrame) -> pd.Series:
    apart = accuracy["source"] != accuracy["target"]
    return apart.map({True: "between languages", False: "in the language"})


def within_and_between(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy and commonest label in the probe's own language and in others."""
    return accuracy.assign(pairs=_pairs(accuracy)).pivot_table(
        index=["task", "model"], columns="pairs", values=["accuracy", "majority"], sort=False
    )


def retest_table(accuracy: pd.DataFrame, again: pd.DataFrame, seed: int) -> pd.DataFrame:
    """`retested` over pairs of languages, and within languages."""
    kind = _pairs(accuracy)
    ends = ("source", "target")
    tables = {
        pairs: retested(accuracy[kind == pairs], again, languages=ends, seed=seed)
        for pairs in ("between languages", "in the language")
    }
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
    turned = scores.rename(columns=dict(zip(PAIR, reversed(PAIR), strict=True)))
    both = pd.concat([scores, turned])
    both = both.rename(columns=dict(zip(PAIR, ("source", "target"), strict=True)))
    others = accuracy[accuracy["source"] != accuracy["target"]]
    return others.merge(both, on=["model", "source", "target"])


def transfer_regressions(
    groups: Groups, retest: pd.DataFrame, tasks: Sequence[str], **options: object
) -> pd.DataFrame:
    """Table 1, rows "CL": printed and ours, with the p-values of five kinds of error.

    p-values are text, since the printed ones are; ``options`` of the permutation of languages.
    """
    printed = printed_regressions("cross_lingual")
    reliability = retest.xs("between languages", level="pairs")["r"]
    rows = []
    for task in tasks:
        of_task = printed[printed["task"] == task]
        row = of_task.set_index(of_task["predictor"].fillna("R2"))[["value", "p_value"]]
        for term in LD_AND_MD:
            numbers = float(row.loc["R2", "value"]), float(row.loc[term, "value"])
            named = {"R2": numbers[0], "coefficient": numbers[1]}
            rows.append(
                {"task": task, "source": "printed", "term": term}
                | named
                | {"classical": row.loc[term, "p_value"]}
            )
        for (model, of_group), table in groups.items():
            if of_group == task:
                head = {"task": task, "source": model}
                extra = {"retest r": reliability[task, model]}
                rows += [head | found | extra for found in _regression_rows(table, **options)]
    return pd.DataFrame(rows).set_index(["task", "source", "term"])


def _regression_rows(table: pd.DataFrame, **options: object) -> list[dict[str, object]]:
    fit = statistics.regression(table, "accuracy", LD_AND_MD, clusters=["source", "target"])
    permuted = statistics.permutation_regression(table, "accuracy", LD_AND_MD, **options)
    rows = []
    for term in LD_AND_MD:
        of_term = fit.table[fit.table["term"] == term].set_index("errors")
        p_values = of_term["p_value"].to_dict()
        p_values["permutation"] = permuted.set_index("term").loc[term, "p_value"]
        row = {"term": term, "R2": fit.r_squared, "coefficient": of_term["coefficient"].iloc[0]}
        row |= {kind: f"{p:.3f}" for kind, p in p_values.items()}
        rows.append(row | {"VIF": of_term["vif"].iloc[0], "repaired": ", ".join(fit.repaired)})
    return rows


def of_groups(groups: Groups, compute: object, *arguments: object) -> pd.DataFrame:
    """A table of `pair_regression` for every model and task, which become columns."""
    tables = {key: compute(rows, "accuracy", *arguments) for key, rows in groups.items()}
    table = pd.concat(tables, names=["model", "task"])
    return table.reset_index(["model", "task"]).reset_index(drop=True)


def heaviest_pairs(groups: Groups) -> pd.DataFrame:
    """What the coefficients hang on: the pair of most weight, and R² of sources and targets."""
    columns = {
        key: pd.concat(
            [
                pair_regression.weightiest(rows, "accuracy", LD_AND_MD),
                pair_regression.levels(rows, "accuracy").add_prefix("R² of "),
            ]
        )
        for key, rows in groups.items()
    }
    return pd.concat(columns, axis=1, names=["model", "task"]).T.infer_objects()


def leave_one_language_out(groups: Groups) -> pd.DataFrame:
    """The lowest and highest coefficient without one language, and without which."""
    tables = {
        key: pair_regression.without_languages(rows, "accuracy", LD_AND_MD).agg(
            ["idxmin", "min", "idxmax", "max"]
        )
        for key, rows in groups.items()
    }
    return pd.concat(tables, names=["model", "task"]).unstack().infer_objects()


def drawn_variants(variants: pd.DataFrame, tasks: Sequence[str]) -> pd.DataFrame:
    """Coefficients of variants as `plots.probes.coefficients` draws them; printed: of all pairs."""
    printed = printed_regressions("cross_lingual").dropna(subset="predictor")
    printed = printed[printed["task"].isin(tasks)][["task", "predictor", "value"]]
    printed = printed.rename(columns={"value": "coefficient"})
    printed = printed.assign(source="printed", variant=variants["variant"].iloc[0])
    names = {"model": "source", "term": "predictor", "low": "wide_low", "high": "wide_high"}
    drawn = pd.concat([printed, variants.rename(columns=names)])
    drawn = drawn.assign(
        row=drawn["task"] + ", " + drawn["variant"],
        coefficient=drawn["coefficient"].astype(float),
        low=float("nan"),
        high=float("nan"),
    )
    return drawn.sort_values("task", key=lambda names: names.map(tasks.index), kind="stable")


Chosen = dict[tuple[str, str, str], selection.Selection]


def chosen_sources(groups: Groups, **options: object) -> Chosen:
    """(model, task, score) → the sources chosen by lowest LD, highest MD, lowest LD of a bag."""
    return {
        (model, task, by): selection.choose_sources(rows, by, lowest=by != "MD", **options)
        for (model, task), rows in groups.items()
        for by in ("LD", "MD", "bag LD")
    }


def source_table(chosen: Chosen, tasks: Sequence[str]) -> pd.DataFrame:
    """How the rules do: ``mean`` and ``p`` of each measure, below the chance of it.

    ``p`` is one-sided, against scores whose languages are permuted ("constant": random sources).
    """
    summary = pd.concat(
        [
            found.summary.assign(model=model, task=task, by=by)
            for (model, task, by), found in chosen.items()
        ]
    )
    summary["rule"] = summary["rule"].where(summary["rule"] != "selected", summary["by"])
    once = (summary["by"] == "LD") | (summary["rule"] == summary["by"])
    shown = summary[once & (summary["rule"] != "random")]
    shown = shown.assign(p=shown["p_permutation"].fillna(shown["p_value"]))
    chance = shown.assign(rule="chance", mean=shown["chance"], p=float("nan"))
    chance = chance.drop_duplicates(["task", "model", "measure"])
    table = pd.concat([chance, shown]).pivot_table(
        index=["task", "model", "rule"],
        columns="measure",
        values=["mean", "p"],
        aggfunc="first",
        sort=False,
    )
    return table.swaplevel(axis=1)[["hit", "top", "win_rate"]].loc[list(tasks)]


def _selected(chosen: Chosen, model: str, task: str, by: str, rule: str = "selected"):
    table = chosen[model, task, by].table
    return table[table["rule"] == rule]


def compared_rules(chosen: Chosen, tasks: Sequence[str]) -> pd.DataFrame:
    """`selection.paired` of the source of lowest LD with those of the other rules."""
    rows = []
    for model, task in dict.fromkeys((model, task) for model, task, _ in chosen):
        others = {
            "constant": _selected(chosen, model, task, "LD", "constant"),
            "MD": _selected(chosen, model, task, "MD"),
            "bag LD": _selected(chosen, model, task, "bag LD"),
        }
        by_ld = _selected(chosen, model, task, "LD")
        for rule, other in others.items():
            keys = {"task": task, "model": model, "LD against": rule}
            rows.append(keys | selection.paired(by_ld, other))
    table = pd.DataFrame(rows).set_index(["task", "model", "LD against"])
    return table.loc[list(tasks)]


def win_rates_by_ld(chosen: Chosen, tasks: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Win rates of the source of lowest LD: by target, and their summary (`choose_sources`)."""
    models = dict.fromkeys(model for model, _, _ in chosen)
    keys = [(model, task) for task in tasks for model in models]
    targets, summaries = [], []
    for model, task in keys:
        head = {"model": model, "task": task}
        targets.append(_selected(chosen, model, task, "LD").assign(**head))
        summary = chosen[model, task, "LD"].summary.assign(**head)
        summaries.append(summary.query("rule == 'selected' and measure == 'win_rate'"))
    return pd.concat(targets), pd.concat(summaries)


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
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["printed", "by chance", "p"])
    index = pd.MultiIndex.from_tuples(table.index, names=["task", "chosen source is"])
    return table.set_index(index)
