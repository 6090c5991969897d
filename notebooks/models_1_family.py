"""The members of the family beside each other, and one that is trained on and measured on the way.

A loss is a mean surprise in nats a labelled subword; those of one vocabulary that guess the same
(masked or next) subwords can be compared. ``names`` are models as `loading.load` knows them.

The training is the worked example of `xlx.report.callbacks`: an encoder learns to pick the
translation of a sentence among those of its batch (`family.objectives.contrastive_loss`), a `Lens`
measures it at every evaluation, and the checkpoint is chosen by what it saw (`course_choices`),
after the "adaptive checkpoint selection" of the ABX paper (Appendix H and conclusion). What the
text of the lens chooses is tried on other text, which nothing is chosen by. A course is stored
under its recipe (`CourseRecipe`); its weights are not kept.
"""

from __future__ import annotations

import io
import itertools
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from family import pretraining_text, recipes
from shared.abx_tables import at_last, ends
from shared.shown import asking, with_interval
from xlx.experiment.abx_scores import MATCHED, history
from xlx.experiment.averages import Average, average, best_layer
from xlx.experiment.scoring import subject_scores
from xlx.measures import statistics
from xlx.measures.abx import PairScores
from xlx.plots.panels import across, order, rows_of
from xlx.plots.primitives import lanes
from xlx.plots.style import BLUE, NAMES, ZERO, look, styled
from xlx.results import checks, work
from xlx.results.deferred import deferred
from xlx.results.executors import one_thread
from xlx.subjects import identity, loading
from xlx.subjects.folders import quiet
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

stats, torch = deferred("scipy.stats"), deferred("torch")
tokenizers, transformers = deferred("tokenizers"), deferred("transformers")
callbacks = deferred("xlx.report.callbacks")


batches, objectives = deferred("family.batches"), deferred("family.objectives")

# --- what a member is -----------------------------------------------------------------------------


def folder(name: str) -> Path | None:
    """Where a shipped series, or one given by its path, lies; None for any other model.

    Of a run whose weights are not shipped it holds the tables, and the record of its checkpoints.
    """
    try:
        path = identity.local_folder(name)
    except identity.ModelNotFoundError:
        return None
    series = path and ((path / identity.RECORD).exists() or identity.local_series(name, path))
    return path if series else None


def file_text(name: str, file: str) -> str:
    """The text of a file of a member; empty where there is none."""
    path = folder(name)
    return (path / file).read_text("utf-8") if path and (path / file).exists() else ""


def recipe(name: str) -> recipes.MemberRecipe | None:
    """The recipe of a member; ValueError where the file is of another version."""
    if not (described := file_text(name, "recipe.json")):
        return None
    try:
        return recipes.read_recipe(described)
    except ValueError as error:
        raise ValueError(f"{folder(name)}/recipe.json is {error}") from error


def members(
    names: Sequence[str],
    references: Mapping[str, str],
    runs: Mapping[str, Sequence[str]],
) -> pd.DataFrame:
    """One row per ``model``: what it learns from, what sets it apart, what it cost, what it lost.

    ``references``: model → the one that it is compared with; ``runs``: model → runs of its recipe
    with other seeds. Columns: ``learns by``, ``differs from``, ``in`` (settings, theirs → its own),
    ``parameters`` and ``subwords read`` (millions), ``held-out loss`` (nats) of every run. Text;
    empty where a file does not say it.
    """
    rows = {}
    for name in names:
        same, other = (name, *runs.get(name, ())), references.get(name)
        run = json.loads(file_text(name, "run.json") or "{}")
        loss = held_out(same).groupby("model", sort=False)["loss"].mean()
        rows[identity.title(name)] = {
            "learns by": " + ".join(getattr(recipe(name), "objectives", ())),
            "differs from": identity.title(other) if other else "",
            "in": ", ".join(unlike(name, other)) if other else "",
            **{
                what: f"{run[key] / 1e6:.1f}" if key in run else ""
                for what, key in (("parameters", "parameters"), ("subwords read", "subwords_seen"))
            },
            "held-out loss": " · ".join(f"{x:.2f}" for x in loss),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def unlike(name: str, other: str) -> list[str]:
    """The settings in which two recipes differ, and the kinds of their vocabularies if they do.

    "hidden_size 128 → 192"; nothing of a model without a recipe.
    """
    both = [recipe(other), recipe(name)]
    if not all(both):
        return []
    theirs, ours = (asdict(made) | {"objectives": " + ".join(made.objectives)} for made in both)
    keys = [key for key in ours if key not in ("name", "history") and ours[key] != theirs[key]]
    differences = [f"{key} {theirs[key]} → {ours[key]}" for key in keys]
    words = (loading.tokenizer(x).backend_tokenizer.to_str() for x in (other, name))
    kinds = [type(tokenizers.Tokenizer.from_str(x).model).__name__ for x in words]
    return differences + ([f"vocabulary {kinds[0]} → {kinds[1]}"] if len({*kinds}) > 1 else [])


def held_out(names: Sequence[str]) -> pd.DataFrame:
    """Losses by language at the last checkpoint: ``held_out.csv`` with ``model`` in front."""
    texts = {identity.title(x): text for x in names if (text := file_text(x, "held_out.csv"))}
    tables = [pd.read_csv(io.StringIO(text)).assign(model=name) for name, text in texts.items()]
    if not tables:
        return pd.DataFrame(columns=["model", "step", "language", "subwords", "loss"])
    return at_last(pd.concat(tables, ignore_index=True), "step")


# --- scores ---------------------------------------------------------------------------------------

#: What is scored, in the order of the tables.
SCORED = (MATCHED, "MD", "LD")
#: Model → the scores of its runs, each of another seed, the first that of its own name.
RunScores = Mapping[str, Sequence[PairScores]]
SPAN = ["value", "low", "high", "least", "most"]


def standing(measured: PairScores, task: str) -> Average:
    """A model's score at its best layer."""
    return average(measured, task, layers=[best_layer(measured)])


def scored_runs(
    names: Sequence[str],
    runs: Mapping[str, Sequence[str]],
    corpus: ParallelCorpus,
    *,
    first: bool = False,
    **options: object,
) -> dict[str, list[PairScores]]:
    """Model → the scores of its runs at their ends, or before training (``first``).

    ``runs``: model → runs of its recipe with other seeds. Before training: step 0 of each series,
    of any other model its untrained twin.
    """
    by_title = {}
    for name in names:
        same = (name, *runs.get(name, ()))
        states = [history(run, recorded=True)[0 if first else -1] for run in same]
        if first:
            states = [
                state if getattr(state, "step", None) == 0 else identity.twin_of(run)
                for run, state in zip(same, states, strict=True)
            ]
        by_title[identity.title(name)] = subject_scores(states, corpus, **options)
    return by_title


def spanned(apart: Average, reach: float, value: float | None = None) -> dict[str, float]:
    """A difference, by `SPAN`: with its interval over documents, and over documents and runs.

    ``apart``: that of two first runs; ``reach``: what runs leave open, half an interval; ``value``:
    the difference of the means over runs, else that of ``apart``. Half widths are taken together as
    of independent errors.
    """
    about = ends(apart)
    value, half = about["value"] if value is None else value, about["high"] - about["value"]
    wide = np.hypot(half, reach)
    return dict(
        zip(SPAN, (value, value - half, value + half, value - wide, value + wide), strict=True)
    )


def run_reach(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Half the 95 % interval of the difference of two recipes that their runs leave open.

    Of several runs each: Welch's, each recipe with a spread of its own. Where one of two was run
    once: of Student's prediction, as if its luck were that of the other. NaN where both were.
    """
    if min(len(ours), len(theirs)) > 1:
        welch = stats.ttest_ind(ours, theirs, equal_var=False)
        low, high = welch.confidence_interval(statistics.LEVEL)
        return float(high - low) / 2
    again = max(ours, theirs, key=len)
    n = len(again)
    error = np.std(again, ddof=1) * np.sqrt(1 + 1 / n) if n > 1 else np.nan
    return float(statistics.half_width(error, n - 1))


def contrasts(measured: RunScores, references: Mapping[str, str]) -> pd.DataFrame:
    """Models less their references (title → title), each at its best layer.

    Columns ``model``, ``reference``, ``task``, and those of `with_sides`.
    """
    rows = []
    for (name, other), task in itertools.product(references.items(), SCORED):
        both = [[standing(run, task) for run in measured[key]] for key in (name, other)]
        ours, theirs = ([float(score.score) for score in side] for side in both)
        head = {"model": name, "reference": other, "task": task}
        apart = spanned(
            both[0][0] - both[1][0], run_reach(ours, theirs), float(np.mean(ours) - np.mean(theirs))
        )
        rows.append(head | apart)
    return with_sides(pd.DataFrame(rows))


def with_sides(table: pd.DataFrame) -> pd.DataFrame:
    """`SPAN` and ``is``: the side of zero on which all of the widest known interval lies.

    "open": on both; "(text alone)": said of documents, as nothing is known of runs. ``said``: the
    value with that interval, as text.
    """
    low, high = (
        table[wide].fillna(table[narrow]) for wide, narrow in (("least", "low"), ("most", "high"))
    )
    side = np.select([low > 0, high < 0], ["higher", "lower"], "open")
    alone = np.where(table["most"].isna() & (side != "open"), " (text alone)", "")
    said = with_interval(table.assign(low=low, high=high), "value")
    return table.assign(**{"is": np.char.add(side, alone), "said": said})


def standings(
    measured: RunScores, before: RunScores, bags: Mapping[str, PairScores]
) -> pd.DataFrame:
    """Each model at its best layer, beside itself before training and the bag of its subwords.

    One row per ``model`` and ``what``: `MATCHED`, "MD", "LD", or of the first of these "above
    untrained" (less the first state of ``before``) and "above its bag"; ``layer``, `SPAN`, ``is``.
    """
    rows = []
    for name, runs in measured.items():
        firsts = [standing(run, MATCHED) for run in runs]
        columns = {task: [standing(run, task) for run in runs] for task in SCORED}
        if name in before:
            untrained = standing(before[name][0], MATCHED)
            columns["above untrained"] = [x - untrained for x in firsts]
        columns["above its bag"] = [x - average(bags[name], MATCHED) for x in firsts]
        for what, scores in columns.items():
            values, n = [float(score.score) for score in scores], len(scores)
            error = stats.sem(values) if n > 1 else np.nan
            reach = statistics.half_width(error, n - 1)
            head = {"model": name, "what": what, "layer": best_layer(runs[0])}
            rows.append(head | spanned(scores[0], reach, float(np.mean(values))))
    return with_sides(pd.DataFrame(rows))


# --- figures --------------------------------------------------------------------------------------


@styled
def paired_differences(table: pd.DataFrame, ingredients: Mapping[str, str]) -> Figure:
    """Differences of two models with intervals, one row per ingredient, one panel per task.

    ``table``: `contrasts`; ``least`` and ``most`` are a wider, thinner interval.
    """
    table = table.assign(
        what=table["model"].map(ingredients) + ":\n" + table["model"] + " − " + table["reference"],
        kind=np.where(table["most"].isna(), "trained once", "one or both trained again"),
    )
    table = pd.concat([rows_of(table, task=task) for task in ("LD", MATCHED)])
    ink = {x: look(BLUE, "o", hollow=x == "trained once") for x in order(table, "kind")}
    on = lanes(
        table,
        "value",
        "what",
        hue="kind",
        col="task",
        looks=ink,
        wide=("least", "most"),
        width=2.9,
        shift=0,
        lane=0.1,
    )
    across(on, 0, **ZERO)
    figure = on.titles(NAMES).done("score with the ingredient less that without")
    return asking("What does each ingredient change?", figure)


# --- a training that is measured ------------------------------------------------------------------

#: What a checkpoint is chosen by → the column of a course, and whether the least is the best.
CHOICES = {
    "LD, lowest": ("lens_ld", True),
    "MD, like length, highest": ("lens_md_like_length", False),
    "loss on held-out translations, lowest": ("loss", True),
    "last": ("step", False),
}
#: Columns that no two runs have in common.
CLOCKS = ("seconds", "lens_seconds")


@dataclass(frozen=True)
class CourseRecipe:
    """All that decides a course. Text: `n_lines` lines of NTREX-128 that members learn from, too.

    ``shuffled``: a sentence is paired with the translation of another one, so that there is no
    translation to learn. ``measured`` and ``tried`` name the corpora of the lens and of what its
    choice is tried on, of which ``n_positions`` are drawn by ``seed``.
    """

    model: str = "mini-xlmr"
    languages: tuple[str, ...] = ("de", "en", "ja", "ru")
    n_lines: int = 600
    shuffled: bool = False
    steps: int = 320
    every: int = 40
    pairs: int = 32  #: translations a step
    learning_rate: float = 5e-4
    temperature: float = 0.1
    max_length: int = 64
    measured: str = "wmt24pp"
    tried: str = "flores200-100"
    n_positions: int = 100
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("n_lines", "steps", "every", "pairs", "max_length", "n_positions"):
            checks.whole(getattr(self, name), name)
        if len(self.languages) < 2:
            raise ValueError("two languages or more are needed: a translation is between two")


def aligned_course(recipe: CourseRecipe) -> pd.DataFrame:
    """Loss and scores at every evaluation of a training, the first before it begins.

    Columns: ``step``, ``loss`` on held-out translations in nats, the scores of `Lens` on the text
    ``measured``, the same with ``tried_`` in front on the other, and, of the whole run,
    ``seconds`` and those that one lens has taken of them, ``lens_seconds``.
    """
    texts = {}
    for name in ("measured", "tried"):
        codes = list(recipe.languages)
        text = parallel.load(getattr(recipe, name), codes, drop_duplicates=True)
        texts[name] = text.take(min(recipe.n_positions, len(text)), recipe.seed)
    about = {
        "recipe": {**asdict(recipe), "languages": list(recipe.languages)},
        "model": identity.fingerprint(recipe.model),
        "learnt": pretraining_text.file_hashes(),
        "texts": {
            name: [text.text_hash(x) for x in text.languages] for name, text in texts.items()
        },
    }
    return work.result(COURSE, about, recipe, texts)


#: What a course learns from → whether it is shuffled.
LEARNT = {"translations": False, "shuffled translations": True}
#: What translations change, less what shuffled ones do.
APART = "the first less the second"
#: Scores of a lens → what they are called.
TASKS = {"ld": "LD", "md": "MD", "md_like_length": "MD, like length", "retrieval": "retrieval"}


def courses(recipe: CourseRecipe, seeds: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """`aligned_course` by what is learnt (of `LEARNT`) and seed: ``learnt`` and ``seed`` added."""
    tables = [
        aligned_course(replace(recipe, shuffled=LEARNT[learnt], seed=seed)).assign(
            learnt=learnt, seed=seed
        )
        for learnt, some in seeds.items()
        for seed in some
    ]
    return pd.concat(tables, ignore_index=True)


def over_seeds(values: pd.Series) -> pd.Series:
    """Mean of the runs and its 95 % interval by Student's t: ``score``, ``low``, ``high``.

    Without an interval where there is one run.
    """
    mean, reach = values.mean(), statistics.half_width(values.sem(), len(values) - 1)
    return pd.Series({"score": mean, "low": mean - reach, "high": mean + reach})


def course_scores(table: pd.DataFrame) -> pd.DataFrame:
    """The scores of `courses`, a row each: ``learnt, seed, step, text, task, score``.

    ``text``: that which is measured, or on which a choice is "tried".
    """
    texts = {"measured": "lens_", "tried": "tried_"}
    return pd.concat(
        table.rename(columns={f"{start}{short}": task for short, task in TASKS.items()})
        .melt(["learnt", "seed", "step"], [*TASKS.values()], "task", "score")
        .assign(text=text)
        for text, start in texts.items()
    )


def course_changes(scores: pd.DataFrame) -> pd.DataFrame:
    """Changes from first to last, over seeds: ``learnt, text, task, score, low, high``.

    Under the name `APART` also those of translations less those of shuffled ones, seed by seed.
    """
    runs = scores.groupby(["learnt", "text", "task", "seed"], sort=False)["score"]
    changes = runs.last() - runs.first()
    paired = changes.unstack("learnt", sort=False)
    if {*LEARNT} <= {*paired}:
        translated, shuffled = (paired[name].dropna() for name in LEARNT)
        apart = pd.concat({APART: (translated - shuffled).dropna()}, names=["learnt"])
        changes = pd.concat([changes, apart])
    over = changes.groupby(["learnt", "text", "task"], sort=False).apply(over_seeds)
    return over.unstack().reset_index()


def choices_over_seeds(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """`course_choices` of each seed that learnt translations: the steps, and what is lost."""
    runs = table[table["learnt"] == "translations"].groupby("seed")
    chosen = pd.concat({seed: course_choices(rows, score) for seed, rows in runs}, names=["seed"])
    by_rule = chosen.groupby("chosen by", sort=False)
    lost = by_rule["lost"].apply(over_seeds).unstack().rename(columns={"score": "lost"})
    return lost.assign(steps=by_rule["step"].apply(lambda steps: " · ".join(map(str, steps))))


def course_choices(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """What each rule of `CHOICES` chooses of a course: ``step``, and what of a ``score`` it lost.

    ``lost``: the best at any checkpoint less that at the chosen one. Of several equal ones
    the first.
    """
    chosen = {
        rule: table.loc[table[column].idxmin() if least else table[column].idxmax()]
        for rule, (column, least) in CHOICES.items()
    }
    rows = pd.DataFrame(chosen).T.rename_axis("chosen by")
    lost = (table[score].max() - rows[score]).astype(float)
    return pd.DataFrame({"step": rows["step"].astype(int), "lost": lost})


# --- a run ----------------------------------------------------------------------------------------


def translations(recipe: CourseRecipe) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs to learn from, one a line and each of two languages, and held-out translations."""
    text, held_out = pretraining_text.read_text(recipe.languages)
    lines, codes = text["ntrex"], recipe.languages
    ids = sorted(set.intersection(*(set(lines[code]) for code in codes)), key=int)
    draw = np.random.default_rng(recipe.seed)
    ids = [ids[i] for i in draw.permutation(len(ids))[: recipe.n_lines]]
    # a line once: what translates both of a pair would be taken for a wrong answer
    twos = list(itertools.permutations(codes, 2))
    learnt = [
        (lines[a][name], lines[b][name])
        for name, (a, b) in zip(ids, itertools.cycle(twos), strict=False)
    ]
    if recipe.shuffled:  # of the next line in the same two languages
        others = learnt[len(twos) :] + learnt[: len(twos)]
        learnt = [(one, other) for (one, _), (_, other) in zip(learnt, others, strict=True)]
    held = zip(range(len(held_out[codes[0]])), itertools.cycle(twos), strict=False)
    return learnt, [(held_out[a][i], held_out[b][i]) for i, (a, b) in held]


def _trainer(
    recipe: CourseRecipe, folder: str, lenses: Sequence[callbacks.Lens]
) -> transformers.Trainer:
    """All of the training but its start."""

    class OfTranslations(transformers.Trainer):
        """A trainer of a bare encoder whose batches are translations, one row below the other."""

        temperature: float

        def compute_loss(
            self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], *_: Any, **__: Any
        ) -> torch.Tensor:
            """`contrastive_loss`, both directions; in nats."""
            batch = batches.Batch(inputs["input_ids"], inputs["attention_mask"].bool())
            return objectives.contrastive_loss(model, batch, self.temperature)

        def prediction_step(
            self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], *_: Any, **__: Any
        ) -> tuple[torch.Tensor, None, None]:
            """The loss alone."""
            with torch.no_grad():
                loss = self.compute_loss(model, self._prepare_inputs(inputs))
            return loss, None, None

    encoder = loading.load(recipe.model, device="cpu", dtype="float32")
    encoder.model.requires_grad_(True)
    learnt, held_out = translations(recipe)

    def rows(pairs: Sequence[tuple[str, str]]) -> Mapping[str, torch.Tensor]:
        both = [sentence for pair in pairs for sentence in pair]
        options = {"padding": True, "truncation": True, "max_length": recipe.max_length}
        return encoder.tokenizer(both, return_tensors="pt", **options)

    arguments = transformers.TrainingArguments(
        folder,
        max_steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        per_device_train_batch_size=recipe.pairs,
        per_device_eval_batch_size=recipe.pairs,
        warmup_steps=recipe.steps // 10,
        lr_scheduler_type="constant_with_warmup",
        eval_strategy="steps",
        eval_steps=recipe.every,
        eval_on_start=True,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
    )
    trainer = OfTranslations(
        encoder.model,
        arguments,
        data_collator=rows,
        train_dataset=learnt,
        eval_dataset=held_out,
        processing_class=encoder.tokenizer,
        callbacks=list(lenses),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.temperature = recipe.temperature
    return trainer


def _course(recipe: CourseRecipe, texts: Mapping[str, ParallelCorpus]) -> pd.DataFrame:
    """The cut point: a training from its first step to its last."""
    options = {"max_length": recipe.max_length}
    lens, other = (callbacks.Lens(texts[name], **options) for name in ("measured", "tried"))
    # The trainer seeds what everybody shares: it gets it for a while, and one thread.
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng([]), one_thread(), quiet():
        trainer = _trainer(recipe, folder, [lens, other])
        began = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - began - other.seconds
    losses = {
        row["step"]: row["eval_loss"] for row in trainer.state.log_history if "eval_loss" in row
    }
    table = lens.history.assign(loss=lens.history["step"].map(losses))
    tried = other.history.drop(columns="step").add_prefix("tried_")
    tried.columns = tried.columns.str.replace("tried_lens_", "tried_")
    return table.join(tried).assign(seconds=seconds, lens_seconds=lens.seconds)


def _apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """The largest difference but for the clocks'."""
    both = [table.drop(columns=list(CLOCKS)) for table in (stored, computed)]
    return work.largest_difference(*both)


#: A training parts from itself on another processor; scores stay within some points.
COURSE = work.Kind("alignment-course", _course, version=1, tolerance=0.1, difference=_apart)
