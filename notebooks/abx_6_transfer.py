"""Kinship of languages: a rule for choosing a source that has seen neither model nor text.

What a choice by LD (ABX paper, section 5.3, appendix K) has to beat. The rule: a source of the
target's branch, else of its family, and among those that are equally near, or where none is of the
family, one that is written in its script (`xlx.text.languages`). Sources that are still equal share
their weight (`selection.choose_sources`), so the outcome is exactly the mean over them; where no
source has anything in common with the target, that is chance. Typological distances would part
more sources, and the repository has none.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from scipy import stats

from abx_5_probing import printed_regressions, retested, under_printed
from shared import pair_regressions
from shared.abx_tables import PAIR, printed_results
from shared.pair_regressions import ENDS, LD_AND_MD, Groups, detectable, exchanged, holm, variants
from xlx.experiment.abx_scores import CheckpointScores
from xlx.experiment.probing import ProbeSetup, cross_lingual
from xlx.experiment.surface import subword_bag
from xlx.measures import regressions, statistics
from xlx.measures.abx import average_layers
from xlx.results import checks
from xlx.text import languages
from xlx.text.languages import LANGUAGES, Language
from xlx.text.parallel import ParallelCorpus

#: By kinship, what decides: the nearest thing that two languages have in common.
_COMMON = {7: "branch", 6: "branch", 3: "family", 2: "family", 1: "script", 0: "nothing"}


def kinship(source: str, target: str) -> int:
    """How near two languages are: 4 for the same branch, 2 the same family, 1 the same script.

    The sum, 0 to 7, orders sources by branch, then family, then script. Codes are those of
    `LANGUAGES`; ValueError for others.
    """
    a, b = _language(source), _language(target)
    same_family = a.family == b.family
    same_branch = same_family and a.branch == b.branch
    return 4 * same_branch + 2 * same_family + (a.script == b.script)


def _language(code: str) -> Language:
    if code not in LANGUAGES:
        raise ValueError(
            f"the family and script of {code!r} are not known: choose by kinship among the "
            f"{len(LANGUAGES)} languages of xlx.text.languages.LANGUAGES"
        )
    return LANGUAGES[code]


def with_kinship(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column ``kinship``, of their ``source`` and ``target``."""
    pairs = zip(table["source"], table["target"], strict=True)
    return table.assign(kinship=[kinship(*pair) for pair in pairs])


def nearest_kin(codes: Sequence[str]) -> pd.DataFrame:
    """What the rule chooses for each language among the others, by ``target``.

    ``common``: what its nearest sources have in common with it ("branch", "family", "script" or
    "nothing"); ``sources``: these, joined by "+". ValueError for fewer than two languages, one
    named twice, or one that is not known.
    """
    codes = checks.several(codes, "languages", once=True)
    if len(codes) < 2:
        raise ValueError(f"{codes[0]} has no other language to be near to: name two or more")
    rows = {}
    for target in codes:
        near = {source: kinship(source, target) for source in codes if source != target}
        nearest = max(near.values())
        chosen = (source for source, value in near.items() if value == nearest)
        rows[target] = _COMMON[nearest], "+".join(chosen)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["common", "sources"])
    return table.rename_axis("target")


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

    ``majority``: the share that a constant answer gets in the target, the best of those labels that
    are commonest in a source (one source's would make it better than others for being rarer in
    the target); ``above``: accuracy less that share. ``entities``: also ``f1`` of whole entities,
    NaN of tasks other than NER.
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
    mean["majority"] = mean.groupby(["model", "task", "target"])["majority"].transform("max")
    return mean.assign(above=mean["accuracy"] - mean["majority"])


def with_best(accuracy: pd.DataFrame) -> pd.DataFrame:
    """``best``: whether a pair is that of a target's best other source."""
    others = accuracy[accuracy["source"] != accuracy["target"]]
    best = others.groupby(["model", "task", "target"])["accuracy"].idxmax()
    return accuracy.assign(best=accuracy.index.isin(best))


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
    measured: Sequence[CheckpointScores],
    corpus: ParallelCorpus,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Accuracies between languages, with `ordered_pair_scores`: the model's, and its bag's.

    ``measured``: the scores of ``names``, in that order. ``kinship`` of the two is there, too.
    """
    tables = []
    for name, of in zip(names, measured, strict=True):
        own = ordered_pair_scores([of], embedding_layer).set_index(["model", *ENDS])
        bag = ordered_pair_scores([subword_bag(name, corpus)]).set_index(list(ENDS))
        bag = bag.drop(columns="model").add_prefix("bag ")
        tables.append(own.join(bag, on=list(ENDS)))
    others = with_kinship(accuracy.query("source != target"))
    return others.merge(pd.concat(tables).reset_index(), on=["model", *ENDS])


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
    groups: Groups, retest: pd.DataFrame, tasks: Sequence[str], permuted: pd.DataFrame
) -> pd.DataFrame:
    """Table 1, rows "CL": printed and ours, with the p-values of five kinds of error.

    ``permuted``: `pair_regression.exchanged`. ``β``: in standard deviations; ``Holm``: the p-values
    of permutations, for all of our rows together; ``power``: how often the printed coefficient
    would be seen, by clustered errors; ``detectable``: the smallest seen in 80 % of samples.
    p-values are text, since the printed ones are.
    """
    printed = printed_regressions("cross_lingual").loc[(slice(None), "Last"), :].droplevel(1)
    reliability = retest.xs("between languages", level="pairs")["r"]
    plain = permuted[permuted["variant"] == "all pairs"]
    p_values = plain.set_index(["task", "model", "term"])["p_value"]
    together = holm(p_values)
    rows = {}
    for task in tasks:
        value, p_value = (printed.loc[task, part] for part in ("value", "p_value"))
        for term in LD_AND_MD:
            row = {"R2": value["R2"], "coefficient": value[term], "classical": p_value[term]}
            rows[task, "printed", term] = row
        for (model, of_group), table in groups.items():
            if of_group == task:
                for term, row in _own_rows(table, value).items():
                    key = task, model, term
                    row["permutation"] = f"{p_values[key]:.3f}"
                    row["Holm"] = f"{together[key]:.3f}"
                    rows[key] = row | {"retest r": reliability[task, model]}
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    columns = [
        "R2",
        "coefficient",
        "β",
        *TRANSFER_ERRORS,
        "permutation",
        "Holm",
        "power",
        "detectable",
    ]
    return table.rename_axis(["task", "source", "term"])[[*columns, "VIF", "retest r"]]


#: Kinds of error of `statistics.regression`, from the paper's on.
TRANSFER_ERRORS = ["classical", "robust", "clustered", "dyadic"]


def _own_rows(table: pd.DataFrame, printed: pd.Series) -> dict[str, dict[str, object]]:
    """Of LD and MD the coefficient of a group and how sure it is."""
    fit = regressions.regression(table, "accuracy", LD_AND_MD, clusters=ENDS)
    rows = {}
    for term in LD_AND_MD:
        of_term = fit.table[fit.table["term"] == term].set_index("errors")
        coefficient = of_term["coefficient"].iloc[0]
        clustered = of_term.loc["clustered", ["error", "df"]]
        rows[term] = {
            "R2": fit.r_squared,
            "coefficient": coefficient,
            "β": coefficient * table[term].std() / table["accuracy"].std(),
            **of_term["p_value"].map("{:.3f}".format),
            "power": statistics.power(float(printed[term]), *clustered),
            "detectable": detectable(*clustered),
            "VIF": of_term["vif"].iloc[0],
        }
    return rows


def variant_table(fitted: pd.DataFrame, permuted: pd.DataFrame) -> pd.DataFrame:
    """`pair_regression.variants`, with p-values of `pair_regression.exchanged` where there are."""
    keys = ["task", "model", "variant"]
    both = fitted.merge(
        permuted.rename(columns={"p_value": "permutation"}).drop(columns="coefficient"),
        on=[*keys, "term"], how="left",
    )  # fmt: skip
    both = both.rename(columns={"r_squared": "R2"})
    columns = ["coefficient", "p_value", "permutation"]
    wide = both.set_index([*keys, "R2", "term"])[columns].unstack("term")
    order = pd.MultiIndex.from_frame(both[[*keys, "R2"]].drop_duplicates())
    return wide.swaplevel(axis=1).loc[order, [(term, c) for term in LD_AND_MD for c in columns]]


def other_readings(tables: Mapping[str, pd.DataFrame], **options: object) -> pd.DataFrame:
    """`variant_table` without and with effects, of what else can be regressed.

    ``tables``: label → rows as of `pairs_with_scores`; ``options`` of the permutation.
    """
    found = {}
    for label, rows in tables.items():
        groups = dict(list(rows.groupby(["model", "task"], sort=False)))
        permuted = exchanged(groups, **options)
        table = variant_table(variants(groups).round({"r_squared": 2}), permuted)
        found[label] = table[table.index.isin(permuted["variant"], level="variant")]
    return pd.concat(found, names=["regressed"])


def rival_table(rivals: pd.DataFrame, effects: str = "source and target") -> pd.DataFrame:
    """`pair_regression.rivals`: adjusted R² without and with effects, coefficients with these."""
    keys = ["task", "model", "predictors"]
    first = rivals.drop_duplicates([*keys, "effects"])
    shares = first.set_index([*keys, "effects"])["adjusted_r_squared"].unstack(sort=False)
    own = rivals[rivals["effects"] == effects].set_index([*keys, "term"])
    within = own[["coefficient", "p_value"]].unstack(sort=False).swaplevel(axis=1)
    terms = list(rivals["term"].unique())
    wide = within[[(term, column) for term in terms for column in ("coefficient", "p_value")]]
    return pd.concat([pd.concat({"adjusted R²": shares}, axis=1), wide], axis=1)


def partial_table(groups: Groups, **options: object) -> pd.DataFrame:
    """Pearson's r of LD, MD and accuracy over pairs, and what is left of it given the bag.

    With 95 % intervals over languages; ``options`` as of `statistics.correlation`.
    """
    sets = {"nothing": [], "the bag": ["bag LD", "bag MD"]}
    columns = [("LD", "MD"), ("LD", "accuracy"), ("MD", "accuracy")]
    tables = {
        (f"{x}, {y}", *key): statistics.partial_correlations(
            rows, x, y, sets, languages=ENDS, **options
        ).query("method == 'pearson'")
        for x, y in columns
        for key, rows in groups.items()
    }
    table = pd.concat(tables, names=["r of", "model", "task"]).droplevel(3).reset_index()
    index = ["r of", "task", "model"]
    order = pd.MultiIndex.from_frame(table[index].drop_duplicates())
    wide = table.pivot(index=index, columns="given", values=["r", "low", "high"])
    return wide.swaplevel(axis=1).loc[order, [(of, x) for of in sets for x in ("r", "low", "high")]]


def drawn_variants(fitted: pd.DataFrame) -> pd.DataFrame:
    """`pair_regression.variants` as `plots.probes.coefficients` draws them, under the printed."""
    names = {"model": "source", "term": "predictor", "low": "wide_low", "high": "wide_high"}
    ours = fitted.rename(columns=names).assign(low=float("nan"), high=float("nan"))
    ours["row"] = ours["task"] + ", " + ours["variant"]
    return under_printed(ours, "cross_lingual")


def chosen_sources(
    groups: Groups, *, kinship: bool = False, **options: object
) -> pair_regressions.Selection:
    """`selection.choose_sources` of each model and task, by each of three scores (appendix K).

    The rules: "LD" (lowest), "MD" (highest), "bag LD" (lowest in a bag of subwords), "constant" and
    "random"; if asked for, "kinship" (the nearest: `abx_6_transfer`).
    """
    tables, summaries = [], []
    scores = ("LD", "MD", "bag LD", *(["kinship"] if kinship else []))
    for (model, task), rows in groups.items():
        rows = with_kinship(rows) if kinship else rows
        for by in scores:
            lowest = by not in ("MD", "kinship")
            choice = pair_regressions.choose_sources(rows, by, lowest=lowest, **options)
            for part, parts in ((choice.table, tables), (choice.summary, summaries)):
                part = part if by == "LD" else part[part["rule"] == "selected"]
                rule = part["rule"].replace("selected", by)
                parts.append(part.assign(rule=rule, model=model, task=task))
    return pair_regressions.Selection(pd.concat(tables), pd.concat(summaries))


def source_table(chosen: pair_regressions.Selection, tasks: Sequence[str]) -> pd.DataFrame:
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


def compared_rules(chosen: pair_regressions.Selection, tasks: Sequence[str]) -> pd.DataFrame:
    """`selection.improvement` of the win rate by the source of lowest LD on the other rules'."""
    rows = {}
    for (model, task), table in chosen.table.groupby(["model", "task"], sort=False):
        rates = table.pivot(index="target", columns="rule", values="win_rate")
        others = [rule for rule in ("constant", "MD", "bag LD", "kinship") if rule in rates]
        for rule in others:
            deltas = (rates["LD"] - rates[rule]).to_numpy()
            rows[task, model, rule] = pair_regressions.improvement(deltas)
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    return table.rename_axis(["task", "model", "LD against"]).loc[list(tasks)]


def win_rates_by_ld(
    chosen: pair_regressions.Selection, tasks: Sequence[str]
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
