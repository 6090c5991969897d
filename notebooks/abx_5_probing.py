"""Probes in one language against LD and MD (ABX paper, section 5.2): the tables of `abx-5`.

Parameters in, tidy tables out; `xlx.experiment.probing` makes the numbers behind them.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xlx.results import checks, paths

sys.path.append(str(paths.MODELS))  # the text that the family read: data/models-long/family

from family.pretraining_text import held_out_ids, read_source
from shared import pair_regressions
from shared.abx_figures import language_courses
from shared.abx_tables import at_first, at_last, rowed
from shared.pair_regressions import LD_AND_MD, Reading, Selection, instead, turned
from xlx.experiment.abx_scores import MATCHED, history
from xlx.experiment.probing import ProbeSetup, monolingual, probe_input, probed_languages
from xlx.measures import probes, regressions, statistics
from xlx.measures.regressions import Regression, regression
from xlx.plots.panels import framed_handle, parts, rows_of, scale_about
from xlx.plots.style import ABOUT, styled
from xlx.subjects.identity import Name
from xlx.subjects.loading import load
from xlx.text import labelled
from xlx.text.files import catalogue

# --- what is read ---------------------------------------------------------------------------------


def characters() -> pd.Series:
    """How many characters members are trained on, by language, all sources together.

    What the table beside the archives counts, less the NTREX lines that are held out.
    """
    table = paths.DATA / "pretraining" / "counts.tsv"
    counts = pd.read_csv(table, sep="\t", keep_default_na=False)
    total, held_out = counts.groupby("language", sort=False)["characters"].sum(), held_out_ids()
    apart = {
        code: sum(len(line) for key, line in lines.items() if key in held_out)
        for code, lines in read_source("ntrex").items()
    }
    return total - pd.Series(apart).reindex(total.index, fill_value=0)


# --- what is probed -------------------------------------------------------------------------------


def setups(
    tasks: Sequence[str], sizes: Sequence[Mapping[str, int | None]], folders: Mapping[str, str],
    n_seeds: int, *, sources: Mapping[str, str] | None = None, **options: object,
) -> dict[str, ProbeSetup]:  # fmt: skip
    """Task → `ProbeSetup`: ``sizes`` of training, validation and test; folders with full data.

    A size of None takes all there is. ``sources``: task → source of its labels ("NLI": "sick"), of
    those that are not the paper's (sections 5.1, 5.2). ValueError for a task without a size.
    """
    if unsized := [task for task in tasks if any(task not in size for size in sizes)]:
        raise ValueError(f"{unsized[0]} has no size in every split: give one, or None for all")
    options["seeds"] = tuple(range(n_seeds))
    return {
        task: ProbeSetup(
            task,
            *(size[task] for size in sizes),
            path=paths.ROOT / folders[task] if task in folders else None,
            source=(sources or {}).get(task),
            **options,
        )
        for task in tasks
    }


def task_languages(
    of_tasks: Mapping[str, ProbeSetup], chosen: Sequence[str] | None = None, table_2: str = "mono",
    sources: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:  # fmt: skip
    """Task → its `probed_languages`, those chosen, of one source: the setup's own if it has."""
    codes = {}
    for task, setup in of_tasks.items():
        source = setup.source or (sources or {}).get(task)
        known = probed_languages(task, table_2, source=source, path=setup.path)
        codes[task] = [code for code in known if chosen is None or code in chosen]
    return codes


def regressed_tasks(codes: Mapping[str, Sequence[str]], fewest: int) -> list[str]:
    """The tasks of at least so many languages; ValueError where none has."""
    several = [task for task, of_task in codes.items() if len(of_task) >= fewest]
    if not several:
        counts = ", ".join(f"{task} {len(of_task)}" for task, of_task in codes.items())
        raise ValueError(
            f"no task has the {fewest} languages that a regression takes here ({counts})"
        )
    return several


def probed(
    names: Sequence[str], of_tasks: Mapping[str, ProbeSetup], codes: Mapping[str, Sequence[str]], *,
    checkpoints: str = "all", leave_out: Sequence[int] = (), steps: Sequence[int] | None = None,
    entities: bool = False, layers_from: int = 0, **options: object,
) -> pd.DataFrame:  # fmt: skip
    """`monolingual` of several models and tasks, by checkpoint, at layers from ``layers_from`` on.

    ``checkpoints``: "all" (of `chosen_history`), "ends" (first and last) or "last"; ``entities``:
    whether NER has the F1 of whole entities, at all layers.
    """
    tables = []
    for name in names:
        of_series = chosen_history(name, leave_out, steps)
        if checkpoints != "all":
            ends = [*(of_series[:1] if checkpoints == "ends" else ()), of_series[-1]]
            of_series = list(dict.fromkeys(ends))
        of_model = []
        for task, setup in of_tasks.items():
            options |= {"entities": entities and task == "NER"}
            of_model.append(monolingual(of_series, setup, codes[task], **options))
        tables.append(pd.concat(of_model).sort_values("checkpoint", kind="stable"))
    table = pd.concat(tables, ignore_index=True)
    return table[table["layer"] >= layers_from]


def chosen_history(
    name: str, leave_out: Sequence[int] = (), steps: Sequence[int] | None = None
) -> list[Name]:
    """`history`; of ``steps`` those that the series has, and its last checkpoint in any case."""
    *earlier, last = history(name, leave_out=leave_out)
    return [*(of for of in earlier if steps is None or of.step in steps), last]


def drawn_anew(of_tasks: Mapping[str, ProbeSetup], seed: int) -> dict[str, ProbeSetup]:
    """The same setups with other sentences.

    ValueError for a task of which all there is was taken: drawn again it is the same, and what
    `retested` makes of it would be a reliability of 1 that nobody measured.
    """
    for task, setup in of_tasks.items():
        if setup.n_train is None or setup.n_test is None:
            raise ValueError(
                f"{task} takes all there is to train on or to test on, so no other sentences can "
                "be drawn: give n_train and n_test"
            )
    return {task: replace(setup, seed=seed) for task, setup in of_tasks.items()}


def example_probe(
    name: str, setup: ProbeSetup, language: str = "en", n_words: int = 8
) -> tuple[pd.DataFrame, pd.Series]:
    """One probe for POS on one sentence of about so many words, and its accuracy by layer."""
    encoder = load(name)
    loaded = {split: setup.load(language, split) for split in labelled.SPLITS}
    train, validation, test = (probe_input(encoder, part, setup) for part in loaded.values())
    splits = [probes.Split(seen.states, seen.labels) for seen in (train, validation)]
    probe = probes.fit(*splits, len(setup.labels), seeds=(0,))
    predicted = probe.predict(test.states)[:, 0]
    lengths = [len(sentence) for sentence in loaded["test"].sentences]
    shown = int(np.abs(np.array(lengths) - n_words).argmin())
    rows = [k for k, (sentence, _) in enumerate(test.places) if sentence == shown]
    at = {"gold": test.labels, "layer 0": predicted[0], f"layer {encoder.n_layers}": predicted[-1]}
    tags = {label: np.array(setup.labels)[of[rows]] for label, of in at.items()}
    words = pd.Index([test.types[k] for k in rows], name="word")
    accuracies = pd.Series((predicted == test.labels).mean(axis=1), name="accuracy")
    return pd.DataFrame(tags, index=words).T, accuracies.rename_axis("layer")


# --- what a probe's score means -------------------------------------------------------------------


def of_layers(scored: pd.DataFrame, layer: str | int) -> pd.DataFrame:
    """Accuracies of models from those of their layers: a row a model, checkpoint, task, language.

    ``scored`` as `monolingual` returns it; ``layer``: "mean" over layers, "best" (of lowest
    validation loss) or a number. Beside ``accuracy``: ``majority``, the share of the commonest
    label of the training part in the test part, ``above``, how far accuracy lies above it, and
    ``f1`` of entities, if it is there.
    """
    keys = ["model", "task", "checkpoint", "language"]
    shown = [name for name in ("accuracy", "majority", "f1") if name in scored]
    groups = scored.groupby([*keys, "layer"], sort=False, as_index=False)
    chosen = groups[[*shown, "validation_loss"]].mean()
    if layer == "mean":
        chosen = chosen.groupby(keys, sort=False, as_index=False)[shown].mean()
    elif layer == "best":
        chosen = chosen.loc[chosen.groupby(keys, sort=False)["validation_loss"].idxmin()]
    else:
        chosen = chosen[chosen["layer"] == layer]
    chosen = chosen[[*keys, *shown]].reset_index(drop=True)
    return chosen.assign(above=chosen["accuracy"] - chosen["majority"])


#: What is regressed in place of accuracy: F1 of entities in NER, where most words are none; else
#: how far accuracy lies above the commonest label.
PROBE_MEASURES = {"NER": "f1"}
#: What `regressed` can take.
MEASURE_COLUMNS = ("above", "f1", "accuracy")


def regressed(table: pd.DataFrame, measures: Mapping[str, str] = PROBE_MEASURES) -> pd.DataFrame:
    """What is regressed in the column ``accuracy``, and what this was in ``plain accuracy``.

    By task one of the columns ``above``, ``f1`` and ``accuracy``; of a task not named ``above``.
    The paper (sections 5.2, 5.3) takes accuracy as it is; where labels are uneven, and less so in
    some languages than in others, it is mostly about that. ValueError for another column.
    """
    chosen = table["accuracy"].copy()
    for task, rows in table.groupby("task"):
        measure = measures.get(task, "above")
        checks.one_of(measure, MEASURE_COLUMNS, "measure")
        chosen[rows.index] = rows[measure]
    return table.assign(**{"accuracy": chosen, "plain accuracy": table["accuracy"]})


def retested(
    first: pd.DataFrame, second: pd.DataFrame, languages: Sequence[str] = ("language",), *,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """How far accuracies hold when all examples are drawn anew (test-retest reliability).

    A regression can explain no larger share of the variance of accuracies than the one that comes
    back; where the correlation of two draws is not above zero, differences between languages are
    noise, and so is any coefficient.

    ``first`` and ``second`` have ``model``, ``task``, the columns `languages` and ``accuracy``, of
    two draws; rows that both have count. Returns `statistics.correlations` by task and model, with
    intervals over languages.
    """
    both = first.merge(second, on=["model", "task", *languages], suffixes=("", " again"))
    table = statistics.correlations(
        both, ["task", "model"], "accuracy", "accuracy again", languages=languages, seed=seed
    )
    return table[["task", "model", "n", "r", "low", "high"]]


# --- regressions ----------------------------------------------------------------------------------

#: Sources that stand beside the one that a task is probed on.
OTHERWISE = ("pud", "xnli-dev", "sick")


def with_scores(
    accuracy: pd.DataFrame, scores: pd.DataFrame, of_tasks: Mapping[str, ProbeSetup]
) -> pd.DataFrame:
    """Accuracies beside LD and MD of the language, each task's commonest source alone.

    NER counts the languages of WikiAnn: in UNER nearly all words are no entity. With a folder of
    full data every language counts, with a source of its own those of that source. ``scores`` as
    `averages.averaged_scores` by language.
    """
    keys = ["model", "checkpoint", "language"]
    wide = scores.pivot_table(index=keys, columns="task", values="score").reset_index()
    shipped, usual = catalogue("labelled"), {}
    for task, setup in of_tasks.items():
        of_task = shipped[(shipped["task"] == task) & ~shipped["source"].isin(OTHERWISE)]
        source = setup.source or of_task["source"].mode()[0]
        known = shipped.loc[(shipped["task"] == task) & (shipped["source"] == source), "language"]
        usual[task] = set(known) if setup.path is None else set(accuracy["language"])
    pairs = zip(accuracy["task"], accuracy["language"], strict=True)
    return accuracy[[code in usual[task] for task, code in pairs]].merge(wide, on=keys)


#: Sides that the paper prints.
SIDES = ("Avg", "Last")
#: The side of the last checkpoint in the course of all, where languages have as many words each.
EQUAL = "as many words in each language"


def sides(
    joined: pd.DataFrame, last: pd.DataFrame, untrained_counts: bool = False
) -> dict[str, pd.DataFrame]:
    """A row a language each: "Last", of ``last``; of ``joined``, all checkpoints of a series, "Avg"
    (the means), "untrained" (the first) and `EQUAL` (the last).
    """
    single = joined.groupby("model")["checkpoint"].transform("nunique") == 1
    counted = joined[untrained_counts | single | (joined["checkpoint"] > 0)]
    keys = ["model", "task", "language"]
    means = counted.groupby(keys, sort=False, as_index=False)[["accuracy", *LD_AND_MD]].mean()
    ends = {"untrained": at_first(joined), EQUAL: at_last(joined)}
    return {"Avg": means, "Last": at_last(last)} | ends


@dataclass(frozen=True)
class Fit:
    """Accuracy regressed on LD and MD over languages, ``rows``."""

    rows: pd.DataFrame
    regression: Regression

    def of(self, errors: str) -> pd.DataFrame:
        """The rows of LD and MD with one kind of errors."""
        table = self.regression.table
        return table[table["errors"] == errors].set_index("term").loc[LD_AND_MD]


def fits(of_sides: Mapping[str, pd.DataFrame]) -> dict[tuple[str, str, str], Fit]:
    """(task, side, model) → its regression, of `SIDES`, in the order of Table 1."""
    models, tasks = (of_sides["Last"][name].unique() for name in ("model", "task"))
    found = {}
    for task, side, model in product(tasks, SIDES, models):
        rows = rows_of(of_sides[side], model=model, task=task)
        found[task, side, model] = Fit(rows, regression(rows, "accuracy", LD_AND_MD))
    return found


def regression_table(of_sides: Mapping[tuple[str, str, str], Fit]) -> pd.DataFrame:
    """Table 1, rows "Prob.": printed and ours; of LD and MD each ``β``, in standard deviations.

    ``Holm p``: of robust errors, for all of our rows together. p-values are text, since the printed
    ones are.
    """
    printed = pair_regressions.printed_regressions("probing_monolingual")
    robust = pd.concat({key: fit.of("robust")["p_value"] for key, fit in of_sides.items()})
    together, rows = pair_regressions.holm(robust), {}
    for (task, side, model), fit in of_sides.items():
        value, p_value = (printed.loc[task, side][part] for part in ("value", "p_value"))
        above, row = {"R2": float(value["R2"])}, {"R2": fit.regression.r_squared}
        for term, own in fit.of("classical").iterrows():
            key = task, side, model, term
            above |= {term: float(value[term]), f"{term}, p": p_value[term]}
            row |= {
                term: own["coefficient"],
                f"{term}, β": pair_regressions.beta(own["coefficient"], fit.rows, term),
                f"{term}, p": f"{own['p_value']:.3f}",
                f"{term}, robust p": f"{robust[key]:.3f}",
                f"{term}, Holm p": f"{together[key]:.3f}",
            }
        rows.setdefault((task, side, "printed"), above)
        rows[task, side, model] = row
    return rowed(rows, ["task", "checkpoint", "source"])[list(row)]


def regression_checks(
    of_sides: Mapping[tuple[str, str, str], Fit], retest: pd.DataFrame
) -> pd.DataFrame:
    """What the coefficients of LD could have shown, and what they hang on.

    ``power`` to see the printed one, ``detectable``: the smallest that is seen in 80 % of samples
    (both by robust errors); ``VIF``; ``heaviest``: the language of the largest Cook's distance
    (``cook``; ``next cook``: of another); ``lowest``, ``highest`` coefficient without one
    language; ``retest r``: the reliability of the accuracies.
    """
    printed = pair_regressions.printed_regressions("probing_monolingual")["value"]["LD"].astype(
        float
    )
    reliability = retest.set_index(["task", "model"])["r"]
    rows = {}
    for (task, side, model), fit in of_sides.items():
        table, robust = fit.rows.set_index("language"), fit.of("robust").loc["LD"]
        influence = regressions.least_squares(table, "accuracy", LD_AND_MD).get_influence()
        cook = pd.Series(influence.cooks_distance[0], table.index).sort_values()
        without = [
            regressions.least_squares(table.drop(index=code), "accuracy", LD_AND_MD).params[1]
            for code in table.index
        ]
        effect = printed[task, side] / robust["error"]
        power = pair_regressions.power(effect, robust["df"])
        least = pair_regressions.detectable(robust["error"], robust["df"])
        heaviest = cook.index[-1], cook.iloc[-1], cook.iloc[-2]
        spread = min(without), max(without), reliability[task, model]
        rows[task, side, model] = power, least, robust["vif"], *heaviest, *spread
    columns = ["power", "detectable", "VIF", "heaviest", "cook", "next cook", "lowest", "highest"]
    return rowed(rows, ["task", "checkpoint", "model"], columns=[*columns, "retest r"])


#: The regression at the last checkpoint for other readings of its terms.
READINGS = {
    "untrained": Reading(instead(accuracy="untrained", LD="untrained LD", MD="untrained MD")),
    "Last": Reading(),
    "accuracy as the paper takes it": Reading(instead(accuracy="plain accuracy")),
    EQUAL: Reading(instead(accuracy=EQUAL)),
    "gain over untrained": Reading(instead(accuracy="gain")),
    "best layer": Reading(instead(accuracy="best layer")),
    "last layer": Reading(instead(accuracy="last layer")),
    "MD among sentences of like length": Reading(instead(MD=MATCHED)),
    "LD in logits": Reading(turned("logits", "LD")),
    "LD and MD in ranks": Reading(turned("ranks", *LD_AND_MD)),
    "beside words to train on": Reading(terms=(*LD_AND_MD, "n")),
}


def readings(of_sides: Mapping[str, pd.DataFrame], scored: pd.DataFrame) -> pd.DataFrame:
    """`READINGS` of every model and task, with robust intervals.

    Of the accuracy: as the paper takes it; with as many words in every language; of the untrained
    model, whose LD and MD it is then on; as gain over it; at the layer of lowest validation loss,
    or the last. Beside LD and MD the words or pairs that a language has to train on (logs).
    ``scored`` as `probed` returns it.
    """
    keys = ["model", "task", "language"]
    before = of_sides["untrained"].set_index(keys)[["accuracy", *LD_AND_MD]]
    columns = ["untrained", "untrained LD", "untrained MD"]
    equal = of_sides[EQUAL].set_index(keys)["accuracy"].rename(EQUAL)
    end = at_last(scored)
    n = np.log(end.groupby(keys)["n_train"].first()).rename("n")
    last = of_sides["Last"].join(before.set_axis(columns, axis=1), on=keys).join(equal, on=keys)
    last = last.join(n, on=keys).assign(gain=lambda rows: rows[EQUAL] - rows["untrained"])
    deepest = end[end["layer"] == end.groupby("model")["layer"].transform("max")]
    for label, rows, layer in (("best layer", end, "best"), ("last layer", deepest, "mean")):
        values = regressed(of_layers(rows, layer)).set_index(keys)["accuracy"]
        last = last.join(values.rename(label), on=keys)
    groups = dict(list(last.groupby(["model", "task"], sort=False)))
    table = pair_regressions.fitted(groups, READINGS, clusters=(), errors="robust")
    return pair_regressions.coefficient_table(table, "coefficient", "low", "high")


def choose_checkpoints(table: pd.DataFrame) -> Selection:
    """How near to its best accuracy a language comes at a checkpoint chosen for it (appendix H).

    The gap of a checkpoint is the best accuracy of the language at any checkpoint, less that at
    this one. Rules: "selected", where LD is lowest, for each language its own; "final", the last;
    "constant", the one with the highest mean accuracy of the *other* languages; "random", any, in
    expectation. Of several equal checkpoints the earliest is taken.

    ``table`` has one row per ``language`` and ``checkpoint``, none missing, with ``accuracy`` and
    ``LD``. ValueError for fewer than two languages or checkpoints, or a row missing or twice there.

    Returns ``table``: ``rule``, ``language``, ``checkpoint`` (missing for "random"), ``accuracy``,
    ``gap``, ``delta`` (gap of "final" less this gap; the paper's "Δ = Final - ABX"); and
    ``summary``, one row per ``rule`` and rule ``against`` which it is held:
    `pair_regressions.improvement`.
    """
    accuracy, score = (
        table.pivot(index="language", columns="checkpoint", values=column)
        for column in ("accuracy", "LD")
    )
    if min(accuracy.shape) < 2 or accuracy.isna().any(axis=None):
        raise ValueError(
            f"{len(accuracy)} languages at {accuracy.shape[1]} checkpoints: there must be two or "
            "more of each to choose between, and each language at every checkpoint"
        )
    values, steps = accuracy.to_numpy(), accuracy.columns.to_numpy()
    n, best = len(values), values.max(axis=1)
    others = (values.sum(axis=0) - values).round(12)  # rounded, so that equal sums are equal
    chosen = {
        "selected": score.to_numpy().round(12).argmin(axis=1),
        "final": np.full(n, len(steps) - 1),
        "constant": others.argmax(axis=1),
    }
    reached = {rule: values[np.arange(n), choice] for rule, choice in chosen.items()}
    reached["random"] = values.mean(axis=1)
    long = pd.DataFrame(reached, index=accuracy.index).melt(
        var_name="rule", value_name="accuracy", ignore_index=False
    )
    long = long.reset_index().assign(checkpoint=pd.array([pd.NA] * len(long), "Int64"))
    long.loc[long["rule"] != "random", "checkpoint"] = steps[np.concatenate([*chosen.values()])]
    long["gap"] = np.tile(best, len(reached)) - long["accuracy"]
    long["delta"] = long["accuracy"] - np.tile(reached["final"], len(reached))
    against = [(rule, "final") for rule in ("selected", "constant", "random")]
    against += [("selected", "constant"), ("selected", "random")]
    summary = [
        {"rule": x, "against": y} | pair_regressions.improvement(reached[x] - reached[y])
        for x, y in against
    ]
    return Selection(long, pd.DataFrame(summary))


# --- figures --------------------------------------------------------------------------------------


@styled
def best_checkpoints(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str]
) -> Figure:
    """Accuracy by language and checkpoint, the best checkpoint of a language framed (Figure 10).

    ``table`` has ``language``, ``checkpoint``, ``accuracy``, ``gain`` (since the first checkpoint,
    which colours tell, on one scale for a task) and ``best`` (True for one checkpoint a language);
    ``names`` gives the languages from top to bottom, ``labels`` tells of a task what
    accuracy is, if something else.
    """
    bar = "{}: {} − that of\nthe first checkpoint"
    on = language_courses(
        table, lambda task: bar.format(task, labels.get(task, "accuracy")),
        value="gain", rows=list(names), across=sorted(table["checkpoint"].unique()), own_rows=True,
        framed="best", cell=(0.2, 0.165), edge=(0.5, 1.6), cmap=ABOUT,
        norm={task: scale_about(part["gain"]) for task, part in parts(table, "task")},
    )  # fmt: skip
    on.titles(lambda key: key.replace(": ", ":\n"))
    return on.done("training step", handles=[framed_handle("best checkpoint of a language")])
