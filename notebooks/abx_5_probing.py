"""Probes in one language against LD and MD (ABX paper, section 5.2): the tables of `abx-5`.

Parameters in, tidy tables out; `xlx.experiment.probing` makes the numbers behind them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from shared import pair_regressions
from shared.abx_tables import at_first, at_last
from shared.pair_regressions import LD_AND_MD
from xlx.experiment.abx_scores import MATCHED, history
from xlx.experiment.probing import ProbeSetup, monolingual, probe_input, probed_languages
from xlx.measures import probe_training, probes, statistics
from xlx.measures.regressions import Regression, least_squares, leverage, regression
from xlx.plots.panels import HATCHED, across, framed_handle, order, parts, rows_of, scale_about
from xlx.plots.primitives import curves, heatmap, lanes, scatter
from xlx.plots.style import (
    ABOUT,
    BLUE,
    CHANCE,
    GUESSING,
    MEASURES,
    MODELS,
    VERMILION,
    ZERO,
    handle,
    look,
    looks,
    styled,
)
from xlx.results import checks, paths
from xlx.subjects.identity import Name
from xlx.subjects.loading import configuration, load
from xlx.text import labelled, pretraining_text
from xlx.text.files import catalogue


def setups(
    tasks: Sequence[str],
    sizes: Sequence[Mapping[str, int | None]],
    folders: Mapping[str, str],
    n_seeds: int,
    *,
    sources: Mapping[str, str] | None = None,
    **options: object,
) -> dict[str, ProbeSetup]:
    """Task → `ProbeSetup`: ``sizes`` of training, validation and test; folders with full data.

    A size of None takes all there is. ``sources``: task → source of its labels ("NLI": "sick"), of
    those that are not the paper's (sections 5.1, 5.2). ValueError for a task without a size.
    """
    if unsized := [task for task in tasks if any(task not in size for size in sizes)]:
        raise ValueError(f"{unsized[0]} has no size in every split: give one, or None for all")
    return {
        task: ProbeSetup(
            task,
            *(size[task] for size in sizes),
            seeds=tuple(range(n_seeds)),
            path=paths.ROOT / folders[task] if task in folders else None,
            source=(sources or {}).get(task),
            **options,
        )
        for task in tasks
    }


def task_languages(
    of_tasks: Mapping[str, ProbeSetup],
    chosen: Sequence[str] | None = None,
    table_2: str = "mono",
    sources: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:
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
            f"no task has the {fewest} languages that a regression takes here ({counts}): choose "
            "more languages, or a smaller fewest_languages"
        )
    return several


def example_counts(
    of_tasks: Mapping[str, ProbeSetup], codes: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """How many examples a language has: its words, of NLI its pairs (ABX paper, section 5.2).

    A row a task and split; ``languages``, and ``fewest``, ``median``, ``most`` of one. Where all
    words are taken they differ, since sentences of one language are shorter than those of another.
    """
    rows = {}
    for task, setup in of_tasks.items():
        for split in labelled.SPLITS:
            parts = [setup.load(code, split) for code in codes[task]]
            counts = np.array([getattr(part, "n_words", len(part)) for part in parts])
            rows[task, split] = len(counts), counts.min(), int(np.median(counts)), counts.max()
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    table.columns = ["languages", "fewest", "median", "most"]
    return table.rename_axis(["task", "split"])


def shipped_sizes(tasks: Sequence[str], sources: Mapping[str, str] | None = None) -> pd.DataFrame:
    """What is shipped for tasks in one language: languages, sentences (NLI: pairs) a language.

    ``sources`` as `shipped_parts`.
    """
    parts = shipped_parts(tasks, sources).groupby(["task", "source"])
    sizes = parts[["train", "validation", "test"]].median()
    sizes.insert(0, "languages", parts["language"].nunique())
    return sizes.astype(int)


#: Sources that stand beside the one that a task is probed on.
OTHERWISE = ("pud", "xnli-dev", "sick")


def shipped_parts(tasks: Sequence[str], sources: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The shipped files of tasks in one language (`shipped.catalogue`).

    ``sources``: task → the one source that counts; of other tasks all but those of `OTHERWISE`.
    """
    shipped = catalogue("labelled")
    own = shipped["task"].map(dict(sources or {}))
    usual = own.isna() & ~shipped["source"].isin(OTHERWISE)
    return shipped[shipped["task"].isin(tasks) & (usual | (shipped["source"] == own))]


def probed(
    names: Sequence[str],
    of_tasks: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
    *,
    checkpoints: str = "all",
    leave_out: Sequence[int] = (),
    steps: Sequence[int] | None = None,
    entities: bool = False,
    **options: object,
) -> pd.DataFrame:
    """`monolingual` of several models and tasks, by checkpoint.

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
            whole = entities and task == "NER"
            depth = configuration(of_series[-1]).num_hidden_layers + 1 if whole else 0
            options |= {"entity_layers": list(range(depth))}
            of_model.append(monolingual(of_series, setup, codes[task], **options))
        tables.append(pd.concat(of_model).sort_values("checkpoint", kind="stable"))
    return pd.concat(tables, ignore_index=True)


def chosen_history(
    name: str, leave_out: Sequence[int] = (), steps: Sequence[int] | None = None
) -> list[Name]:
    """`history`; of ``steps`` those that the series has, and its last checkpoint in any case."""
    checkpoints = history(name, leave_out=leave_out)
    *earlier, last = checkpoints
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
    parts = {split: setup.load(language, split) for split in labelled.SPLITS}
    seen = {split: probe_input(encoder, part, setup) for split, part in parts.items()}
    splits = [
        probe_training.Split(seen[split].states, seen[split].labels) for split in labelled.SPLITS
    ]
    fitted = probes.fit(*splits[:2], len(setup.labels), seeds=(0,))
    test, predicted = seen["test"], fitted.predict(seen["test"].states)[:, 0]
    sentences = parts["test"].sentences
    shown = min(range(len(sentences)), key=lambda i: abs(len(sentences[i]) - n_words))
    rows = [k for k, (sentence, _) in enumerate(test.places) if sentence == shown]
    tags = np.array(setup.labels)
    table = pd.DataFrame(
        {
            "gold": tags[test.labels[rows]],
            "layer 0": tags[predicted[0, rows]],
            f"layer {encoder.n_layers}": tags[predicted[-1, rows]],
        },
        index=pd.Index([test.types[k] for k in rows], name="word"),
    )
    accuracies = pd.Series((predicted == test.labels).mean(axis=1), name="accuracy")
    return table.T, accuracies.rename_axis("layer")


def with_kind(context: pd.DataFrame) -> pd.DataFrame:
    """``kind``: "trained" at a model's last checkpoint, "untrained" before."""
    last = context.groupby("model")["checkpoint"].transform("max")
    return context.assign(kind=np.where(context["checkpoint"] == last, "trained", "untrained"))


def context_bands(context: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by layer, beside the untrained model, the control task and the commonest label.

    ``model``, ``task``, ``kind``, ``layer``, ``score``, ``error`` (standard error over languages,
    what makes one easy or hard left out), ``low``, ``high`` (one error either way).
    """
    keys = ["model", "task", "layer", "language"]
    trained, untrained = (context[context["kind"] == kind] for kind in ("trained", "untrained"))
    columns = {"accuracy": "trained", "control_accuracy": "control", "majority": "majority"}
    renamed = trained.drop(columns="kind").rename(columns=columns)
    rows = pd.concat(
        [
            renamed.melt(keys, list(columns.values()), "kind", "score"),
            untrained.rename(columns={"accuracy": "score"})[[*keys, "kind", "score"]],
        ]
    )
    shares = rows.groupby(["kind", *keys], sort=False, as_index=False)["score"].mean()
    ease = shares.groupby(["model", "task", "language"])["score"].transform("mean")
    shares["apart"] = shares["score"] - ease
    grouped = shares.groupby(["model", "task", "kind", "layer"], sort=False)
    bands = grouped[["score"]].mean().assign(error=grouped["apart"].sem()).reset_index()
    return bands.assign(low=bands["score"] - bands["error"], high=bands["score"] + bands["error"])


def of_layers(scored: pd.DataFrame, layer: str | int, *, majority: bool = False) -> pd.DataFrame:
    """Accuracies of models from those of their layers: a row a model, checkpoint, task, language.

    ``scored`` as `monolingual` returns it; ``layer``: "mean" over layers, "best" (of lowest
    validation loss) or a number; ``majority``: also that column, the share of the commonest label
    of the training part in the test part, ``above``, how far accuracy lies above it, and ``f1`` of
    entities, if it is there.
    """
    keys = ["model", "task", "checkpoint", "language"]
    beside = [name for name in ("majority", "f1") if majority and name in scored]
    shown = ["accuracy", *beside]
    by_layer = scored.groupby([*keys, "layer"], sort=False, as_index=False)[
        [*shown, "validation_loss"]
    ].mean()
    if layer == "mean":
        chosen = by_layer.groupby(keys, sort=False, as_index=False)[shown].mean()
    elif layer == "best":
        chosen = by_layer.loc[by_layer.groupby(keys, sort=False)["validation_loss"].idxmin()]
    else:
        chosen = by_layer[by_layer["layer"] == layer]
    chosen = chosen[[*keys, *shown]].reset_index(drop=True)
    return chosen.assign(above=chosen["accuracy"] - chosen["majority"]) if majority else chosen


#: What is regressed in place of accuracy: F1 of entities in NER, where most words are none; else
#: how far accuracy lies above the commonest label.
PROBE_MEASURES = {"NER": "f1"}


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


#: What `regressed` can take.
MEASURE_COLUMNS = ("above", "f1", "accuracy")


def retested(
    first: pd.DataFrame,
    second: pd.DataFrame,
    languages: Sequence[str] = ("language",),
    *,
    seed: int = 0,
) -> pd.DataFrame:
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


def lost_examples(scored: pd.DataFrame) -> pd.DataFrame:
    """Languages of which examples could not be embedded whole, and how many."""
    lost = scored.groupby(["task", "language"], as_index=False)["n_lost"].max()
    return lost[lost["n_lost"] > 0].set_index(["task", "language"])


def courses(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracies, ``best`` at the highest checkpoint of a language."""
    best = accuracy.groupby(["model", "task", "language"])["accuracy"].idxmax()
    return accuracy.assign(best=accuracy.index.isin(best))


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
    joined = accuracy.merge(wide, on=keys)
    own = {task: setup.source for task, setup in of_tasks.items() if setup.source}
    shipped = shipped_parts(list(of_tasks), own)
    commonest = shipped.groupby("task")["source"].agg(lambda sources: sources.mode()[0])
    usual = shipped[shipped["source"] == shipped["task"].map(commonest)]
    usual = set(zip(usual["task"], usual["language"], strict=True))
    rows = zip(joined["task"], joined["language"], strict=True)
    return joined[[of_tasks[task].path is not None or (task, code) in usual for task, code in rows]]


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


Fits = dict[tuple[str, str, str], Regression]


def regressions(of_sides: Mapping[str, pd.DataFrame]) -> Fits:
    """(model, task, side) → accuracy regressed on LD and MD over languages."""
    return {
        (model, task, side): regression(rows, "accuracy", LD_AND_MD)
        for side, table in of_sides.items()
        for (model, task), rows in table.groupby(["model", "task"], sort=False)
    }


def printed_regressions(setting: str) -> pd.DataFrame:
    """Table 1 as printed, "probing_monolingual" or "cross_lingual": a row a task and checkpoint.

    Columns (``value`` or ``p_value``, which is text; "R2", "LD" or "MD").
    """
    printed = pd.read_csv(paths.PUBLISHED / "abx" / "table1_regression.csv")
    printed = printed[printed["setting"] == setting].fillna({"predictor": "R2"})
    keys = ["task", "checkpoint"]
    return printed.pivot(index=keys, columns="predictor", values=["value", "p_value"])


def of_errors(fit: Regression, kind: str) -> pd.DataFrame:
    """The rows of LD and MD with one kind of errors."""
    return fit.table[fit.table["errors"] == kind].set_index("term").loc[LD_AND_MD]


def regression_table(fits: Fits, of_sides: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Table 1, rows "Prob.": printed and ours; of LD and MD each ``β``, in standard deviations.

    ``Holm p``: of robust errors, for all of our rows together. p-values are text, since the printed
    ones are.
    """
    printed = printed_regressions("probing_monolingual")
    models, tasks = (list(dict.fromkeys(key[part] for key in fits)) for part in (0, 1))
    robust = {key: of_errors(fit, "robust") for key, fit in fits.items() if key[2] in SIDES}
    together = pair_regressions.holm(pd.concat(robust)["p_value"])
    rows = {}
    for task, side in product(tasks, SIDES):
        value, p_value = (printed.loc[task, side][part] for part in ("value", "p_value"))
        row = {"R2": float(value["R2"])}
        for term in LD_AND_MD:
            row |= {term: float(value[term]), f"{term}, p": p_value[term]}
        rows[task, side, "printed"] = row
        for model in models:
            key = model, task, side
            spread = _rows(of_sides[side], model, task)[["accuracy", *LD_AND_MD]].std()
            row = {"R2": fits[key].r_squared}
            for term, own in of_errors(fits[key], "classical").iterrows():
                row[term] = own["coefficient"]
                row[f"{term}, β"] = own["coefficient"] * spread[term] / spread["accuracy"]
                row[f"{term}, p"] = f"{own['p_value']:.3f}"
                row[f"{term}, robust p"] = f"{robust[key].loc[term, 'p_value']:.3f}"
                row[f"{term}, Holm p"] = f"{together[(*key, term)]:.3f}"
            rows[task, side, model] = row
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    of_term = ["", ", β", ", p", ", robust p", ", Holm p"]
    columns = ["R2", *(term + name for term in LD_AND_MD for name in of_term)]
    return table.rename_axis(["task", "checkpoint", "source"])[columns]


def regression_checks(
    fits: Fits, of_sides: Mapping[str, pd.DataFrame], retest: pd.DataFrame
) -> pd.DataFrame:
    """What the coefficients of LD could have shown, and what they hang on.

    ``power`` to see the printed one, ``detectable``: the smallest that is seen in 80 % of samples
    (both by robust errors); ``VIF``; ``heaviest``: the language of the largest Cook's distance
    (``cook``; ``next cook``: of another); ``lowest``, ``highest`` coefficient without one
    language; ``retest r``: the reliability of the accuracies.
    """
    printed = printed_regressions("probing_monolingual")["value"]["LD"].astype(float)
    reliability = retest.set_index(["task", "model"])["r"]
    rows = {}
    for (model, task, side), fit in fits.items():
        if side not in SIDES:
            continue
        table = _rows(of_sides[side], model, task).set_index("language")
        robust = of_errors(fit, "robust").loc["LD"]
        cook = leverage(table, "accuracy", LD_AND_MD)["cook"].sort_values()
        without = [_ld(table.drop(index=code)) for code in table.index]
        rows[task, side, model] = {
            "power": statistics.power(printed[task, side], robust["error"], robust["df"]),
            "detectable": pair_regressions.detectable(robust["error"], robust["df"]),
            "VIF": robust["vif"],
            "heaviest": cook.index[-1],
            "cook": cook.iloc[-1],
            "next cook": cook.iloc[-2],
            "lowest": min(without),
            "highest": max(without),
            "retest r": reliability[task, model],
        }
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    order = [fit for task in printed.index.unique("task") for fit in rows if fit[0] == task]
    return table.rename_axis(["task", "checkpoint", "model"]).loc[order]


def _ld(table: pd.DataFrame) -> float:
    """The coefficient of LD."""
    return float(least_squares(table, "accuracy", LD_AND_MD).params[1])


def drawn_coefficients(fits: Fits) -> pd.DataFrame:
    """Coefficients as `plots.probes.coefficients` draws them: ``low``, ``high`` by ordinary errors,
    ``wide_low``, ``wide_high`` by robust ones."""
    tables = []
    for (model, task, side), fit in fits.items():
        if side in SIDES:
            plain, robust = (of_errors(fit, kind) for kind in ("classical", "robust"))
            ends = plain[["coefficient", "low", "high"]].assign(
                wide_low=robust["low"], wide_high=robust["high"]
            )
            labels = {"task": task, "row": f"{task}, {side}", "source": model}
            tables.append(ends.assign(**labels).rename_axis("predictor").reset_index())
    return under_printed(pd.concat(tables), "probing_monolingual")


def under_printed(ours: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Printed coefficients, which have no interval, and ours below, task by task.

    ``ours`` has ``row`` ("POS, Last"), ``task``, ``source``, ``predictor``, ``coefficient``.
    """
    printed = printed_regressions(setting)["value"][LD_AND_MD].astype(float)
    printed = printed.stack().rename("coefficient").reset_index().assign(source="printed")
    printed["row"] = printed["task"] + ", " + printed["checkpoint"]
    if setting == "cross_lingual":
        printed["row"] = printed["task"] + ", all pairs"
    tasks = list(ours["task"].unique())
    both = pd.concat([printed[printed["task"].isin(tasks)], ours], ignore_index=True)
    return both.sort_values("task", key=lambda names: names.map(tasks.index), kind="stable")


def readings(
    fits: Fits, of_sides: Mapping[str, pd.DataFrame], scored: pd.DataFrame
) -> pd.DataFrame:
    """The regression at the last checkpoint for other readings of its terms, robust intervals.

    Of the accuracy: as the paper takes it; with as many words in every language; of the untrained
    model; as gain over it; at the layer of lowest validation loss, or the last. Of the scores: MD
    among sentences of like length, LD in logits, both in ranks. Beside them the words or pairs that
    a language has to train on (logs). ``scored`` as `probe_tables.probed` returns it.
    """
    rows = []
    for (model, task), last in of_sides["Last"].groupby(["model", "task"], sort=False):
        untrained, equal = (
            _rows(of_sides[side], model, task).set_index("language")["accuracy"]
            for side in ("untrained", EQUAL)
        )
        own = at_last(_rows(scored, model, task))
        n_train = own.groupby("language")["n_train"].first()
        tables = {
            "Last": last,
            "accuracy as the paper takes it": last.assign(accuracy=last["plain accuracy"]),
            EQUAL: last.assign(accuracy=last["language"].map(equal)),
            "gain over untrained": last.assign(accuracy=last["language"].map(equal - untrained)),
            **_other_layers(last, own),
            "MD among sentences of like length": last.assign(MD=last[MATCHED]),
            "LD in logits": last.assign(LD=pair_regressions.SCALES["logits"](last["LD"])),
            "LD and MD in ranks": last.assign(
                **{term: pair_regressions.SCALES["ranks"](last[term]) for term in LD_AND_MD}
            ),
            "beside words to train on": last.assign(n=np.log(last["language"].map(n_train))),
        }
        fitted = {"untrained": fits[model, task, "untrained"]}
        for label, table in tables.items():
            if table["accuracy"].nunique() > 1:  # a model of one checkpoint has no gain
                terms = [*LD_AND_MD, *(["n"] if "n" in table and table["n"].nunique() > 1 else [])]
                fitted[label] = regression(table, "accuracy", terms)
        for label, fit in fitted.items():
            row = {"task": task, "model": model, "reading": label, "R2": fit.r_squared}
            for term, own in of_errors(fit, "robust").iterrows():
                row |= {term: own["coefficient"]}
                row |= {f"{term}, {end}": own[end] for end in ("low", "high")}
            rows.append(row)
    return pd.DataFrame(rows).set_index(["task", "model", "reading"])


def _other_layers(last: pd.DataFrame, at_end: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of ``last`` with what is regressed at other layers."""
    tables = {}
    for label, layer in (("best layer", "best"), ("last layer", at_end["layer"].max())):
        values = regressed(of_layers(at_end, layer, majority=True)).set_index("language")
        tables[label] = last.assign(accuracy=last["language"].map(values["accuracy"]))
    return tables


def _rows(table: pd.DataFrame, model: str, task: str) -> pd.DataFrame:
    """The rows of one model and task."""
    return table[(table["model"] == model) & (table["task"] == task)]


def text_amounts(
    last: pd.DataFrame, seed: int, counted: Mapping[str, str | Path] | None = None
) -> pd.DataFrame:
    """Accuracy against the log amount of pretraining text (footnote 8), by model and task.

    ``counted``: model → a CSV file with the columns ``language`` and ``amount``, in any unit, as it
    was sampled; of a miniature the characters that it was trained on are known. Other models are
    left out. ValueError for a file without these columns, or an amount that is not above zero.
    """
    results = []
    for model, of_model in last.groupby("model", sort=False):
        amounts = _amounts(model, counted or {})
        if amounts is None:
            continue
        rows = of_model.assign(amount=np.log(of_model["language"].map(amounts)))
        by_task = rows.dropna(subset="amount").groupby("task", sort=False)
        for (task, of_task), method in product(by_task, ("spearman", "pearson")):
            r = statistics.correlation(
                of_task, "amount", "accuracy", languages=("language",), method=method, seed=seed
            )
            results.append((task, model, method, r.value, r.low, r.high, r.p_value))
    columns = ["task", "model", "method", "r", "low", "high", "p"]
    return pd.DataFrame(results, columns=columns).set_index(columns[:3])


def _amounts(model: str, counted: Mapping[str, str | Path]) -> pd.Series | None:
    """Language → amount of text."""
    if model not in counted:
        return pretraining_text.characters() if model.startswith("mini-") else None
    table = pd.read_csv(counted[model])
    if missing := sorted({"language", "amount"} - set(table)):
        raise ValueError(
            f"{counted[model]} has no column {missing[0]}: a row a language, its code in language "
            "and the amount of its text in amount"
        )
    amounts = table.set_index("language")["amount"]
    if bad := [code for code, amount in amounts.items() if not amount > 0]:
        raise ValueError(f"{counted[model]}: the amount of {bad[0]} is not above zero")
    return amounts


def chosen_checkpoints(
    joined: pd.DataFrame, task: str, untrained_counts: bool = False
) -> pair_regressions.Selection:
    """`selection.choose_checkpoints` of every model with three or more, ``model`` in front.

    Appendix H of the paper.
    """
    rows = joined[(joined["task"] == task) & (untrained_counts | (joined["checkpoint"] > 0))]
    chosen = {
        model: pair_regressions.choose_checkpoints(of_model)
        for model, of_model in rows.groupby("model", sort=False)
        if joined[joined["model"] == model]["checkpoint"].nunique() > 2
    }
    tables = (
        [getattr(choice, part).assign(model=model) for model, choice in chosen.items()]
        for part in ("table", "summary")
    )
    empty = pd.DataFrame(columns=["model", "rule", "against", "checkpoint"])
    return pair_regressions.Selection(*(pd.concat(part) if part else empty for part in tables))


@styled
def probe_layers(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Accuracy of probes by layer, with what it has to be compared with.

    ``table`` has ``kind`` (of ``names``, which tells what to call them: "trained", "untrained",
    "control", "majority"), ``layer``, ``score``, ``low``, ``high``.
    """
    on = curves(table, x="layer", value="score", series="kind", panel=("model", "task"),
                looks={kind: MEASURES[kind] for kind in names}, labels=names, width=2.7,
                sharex=True, sharey="col")  # fmt: skip
    return on.done("layer (0: embeddings)", "accuracy")


@styled
def best_checkpoints(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Accuracy by language and checkpoint, the best checkpoint of a language framed (Figure 10).

    ``table`` has ``language``, ``checkpoint``, ``accuracy`` and ``best`` (True for one checkpoint
    a language); ``names`` gives the languages from top to bottom. Colours tell how much accuracy
    is gained or lost since the first checkpoint, on one scale for a task; ``labels`` tells of a
    task what accuracy is, if something else.
    """
    table = table.sort_values(["checkpoint"], kind="stable")
    keys = ["model", "task", "language"]
    first = table.drop_duplicates(keys)[[*keys, "accuracy"]]
    table = table.merge(first, on=keys, suffixes=("", "_first"))
    table["gain"] = table["accuracy"] - table["accuracy_first"]
    models, tasks = order(table, "model"), order(table, "task")
    table = pd.concat(
        [rows_of(table, task=task, model=model) for task in tasks for model in models]
    )
    table["panel"] = table["task"] + ": " + table["model"]
    on = heatmap(
        table, row="language", column="checkpoint", value="gain", panel="panel", rows=list(names),
        across=sorted(table["checkpoint"].unique()), own_rows=True,
        tops=lambda step: f"{step:,}", framed="best", cell=(0.2, 0.165),
        edge=(0.5, 1.6), columns=len(models) * len(tasks), turned=90, cmap=ABOUT,
        norm={task: scale_about(part["gain"]) for task, part in parts(table, "task")},
        bar_by=lambda key: key.partition(": ")[0],
        bar={task: f"{task}: {(labels or {}).get(task, 'accuracy')} − that of\nthe first checkpoint"
             for task in tasks},
    )  # fmt: skip
    on.titles(lambda key: key.replace(": ", ":\n"))
    return on.done("training step", handles=[framed_handle("best checkpoint of a language")])


@styled
def learning_scatter(
    table: pd.DataFrame, lines: pd.DataFrame, statistics: Mapping[tuple[str, str], str], *,
    x: str = "LD", y: str = "accuracy", xlabel: str = "LD of a language", ylabel: str = "accuracy",
    label: str | None = "language",
) -> Figure:  # fmt: skip
    """Accuracy against a score with a fitted line and its band (Figures 11 and 15).

    ``table`` has ``x``, ``y`` and ``label``, which names a point; the points furthest above and
    below the line are named (None: the pairs with the lowest ``x``). ``lines`` has ``x``, ``y``,
    ``low``, ``high``; ``statistics`` a text for each (model, task).
    """
    table = table.reset_index(drop=True)
    named = []
    for (model, task), part in parts(table, "model", "task"):
        line = rows_of(lines, model=model, task=task).sort_values("x")
        off = part[y] - np.interp(part[x], line["x"], line["y"]) if label else part[x]
        named += [*off.nsmallest(2).index, *(off.nlargest(2).index if label else ())]
    names = table[label] if label else table["source"] + "-" + table["target"]
    table["written"] = names.where(table.index.isin(named), "")
    options = {"panel": ("model", "task")}
    on = scatter(
        table, x=x, y=y, looks={None: look(BLUE, "o")}, written="written", width=2.7, size=9,
        alpha=0.7 if label else 0.25, sharex="row", sharey="col", **options,
    )  # fmt: skip
    curves(lines, x="x", value="y", looks={None: look(VERMILION, "")}, on=on, **options)
    on.titles(lambda key: f"{key[0]}: {key[1]}\n{statistics[key]}")
    return on.done(xlabel, ylabel)


@styled
def coefficients(table: pd.DataFrame) -> Figure:
    """Regression coefficients, printed and ours, a row an analysis, a panel a predictor (Table 1).

    ``table`` has ``row`` (what the analysis is), ``source`` ("printed" or a model), ``predictor``,
    ``coefficient``, ``low``, ``high`` (missing where none is printed) and ``wide_low``,
    ``wide_high`` (of the more careful errors, drawn thin behind).
    """
    table = pd.concat([rows_of(table, predictor=name) for name in ("LD", "MD")])
    on = lanes(
        table, item="row", value="coefficient", series="source", panel="predictor", width=3.3,
        looks=looks(order(table, "source"), MODELS), wide=("wide_low", "wide_high"), lane=0.12,
        sharex=False, linewidth=2.2, capsize=0,
    )  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    on.titles(lambda name: f"coefficient of {name}")
    widths = {"interval": 2.2, "interval with the more careful errors": 0.7}
    grey = [Line2D([], [], color="0.3", linewidth=w, label=name) for name, w in widths.items()]
    return on.done("points of accuracy (%) for 0.01 more of the predictor", handles=grey)


@styled
def transfer_matrices(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Transfer from source (row) to target (column), the best source framed (Figure 14).

    ``table`` has ``source``, ``target``, ``accuracy`` and ``best`` (True for the best other source
    of a target), and may have ``majority``, the share of the target's commonest label: then
    colours tell how far the accuracy is above or below it. A task has one scale, and the languages
    that it has, by family; ``labels`` tells of a task what its colours are, if something else.
    """
    above = "majority" in table
    value = table["accuracy"] - table["majority"] if above else table["accuracy"]
    table = table.assign(value=value, itself=table["source"] == table["target"])
    table["best"] = table["best"] & ~table["itself"]
    norms = {t: scale_about(x["value"]) for t, x in parts(table[~table["itself"]], "task")}
    what = "accuracy − share of\nthe commonest label" if above else "accuracy (bright: high)"
    n = max(part["source"].nunique() for _, part in parts(table, "task"))
    on = heatmap(
        table, row="source", column="target", value="value", panel=("model", "task"),
        rows=list(names), across=list(names), own_rows=True, own_columns=True,
        framed="best", hatched="itself", cell=(2.65 / n, 2.65 / n), edge=(0.7, 1.5), turned=90,
        bar_by=lambda key: key[1], bar={task: (labels or {}).get(task, what) for task in norms},
        **({"norm": norms, "cmap": ABOUT} if above else {}),
    )  # fmt: skip
    handles = [
        framed_handle("best source of a target"),
        Patch(label="the language itself", **HATCHED),
    ]
    return on.done("target", "source", handles=handles)


@styled
def win_rates(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """How often the chosen source beats a random one, a point a target (Figure 16).

    ``table`` has ``model``, ``task``, ``target`` and ``win_rate``; ``summary`` has ``model``,
    ``task``, ``mean``, ``low`` and ``high``.
    """
    table, summary = (x.assign(item=x["task"] + ", " + x["model"]) for x in (table, summary))
    table = table.sort_values("win_rate", kind="stable")
    items = order(summary, "item")
    tasks = {task: MEASURES[task] for task in order(summary, "task")}
    on = lanes(table, item="item", value="win_rate", series="task", looks=tasks, items=items,
               spread=0.3, shift=-0.1, lane=0.12, low="", width=5, alpha=0.6)  # fmt: skip
    lanes(summary, item="item", value="mean", items=items, on=on, shift=0.32, capsize=3,
          looks={None: look("black", "o")}, labels={None: "mean, with interval"})  # fmt: skip
    across(on, CHANCE)
    chance = handle("chance", GUESSING | {"marker": ""}, line=True)
    return on.done("share of random sources that the chosen one beats", handles=[chance])
