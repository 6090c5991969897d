"""A miniature trained on translations by `transformers.Trainer`, and measured on the way.

The worked example of `xlx.report.callbacks`: an encoder learns to pick the translation of a
sentence among those of its batch (`family.objectives.contrastive_loss`), a `Lens` measures it at
every evaluation, and the checkpoint is chosen by what it saw (`course_choices`), after the
"adaptive checkpoint selection" of the ABX paper (Appendix H and conclusion). What the text of the
lens chooses is tried on other text, which nothing is chosen by.

A course is stored under its recipe (`CourseRecipe`); its weights are not kept.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xlx.results import paths
from xlx.results.deferred import deferred

sys.path.append(str(paths.MODELS))  # how the family is trained: data/models-long/family

from family import pretraining_text
from shared import abx_figures
from xlx.measures import statistics
from xlx.plots.primitives import Curves
from xlx.plots.style import styled
from xlx.results import checks, work
from xlx.results.executors import one_thread
from xlx.subjects import identity, loading
from xlx.subjects.folders import quiet
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

stats, torch = deferred("scipy.stats"), deferred("torch")
transformers, callbacks = deferred("transformers"), deferred("xlx.report.callbacks")
batches, objectives = deferred("family.batches"), deferred("family.objectives")

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
    n, reach = len(values), np.nan
    if n > 1:
        reach = stats.t.ppf((1 + statistics.LEVEL) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n)
    mean = values.mean()
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


def changes_by_seed(scores: pd.DataFrame) -> pd.Series:
    """Changes from the first evaluation to the last, by ``learnt``, ``text``, ``task``, ``seed``.

    ``scores``: `course_scores`.
    """
    runs = scores.groupby(["learnt", "text", "task", "seed"], sort=False)["score"]
    return runs.last() - runs.first()


def course_changes(scores: pd.DataFrame) -> pd.DataFrame:
    """Changes from first to last, over seeds: ``learnt, text, task, score, low, high``.

    Under the name `APART` also those of translations less those of shuffled ones, seed by seed.
    """
    changes = changes_by_seed(scores)
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
    """What each rule of `CHOICES` chooses of a course: ``step``, ``score`` there, and what it lost.

    ``lost``: the best score at any checkpoint less that at the chosen one. Of several equal ones
    the first.
    """
    chosen = {
        rule: table.loc[table[column].idxmin() if least else table[column].idxmax()]
        for rule, (column, least) in CHOICES.items()
    }
    rows = pd.DataFrame(chosen).T.rename_axis("chosen by")
    lost = (table[score].max() - rows[score]).astype(float)
    return pd.DataFrame({"step": rows["step"].astype(int), "score": rows[score], "lost": lost})


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


@styled
def training_course(table: pd.DataFrame) -> Figure:
    """LD and MD of the measured text at every evaluation, a panel what is learnt; bands: seeds.

    ``table``: `course_scores`.
    """
    tasks = [task for task in TASKS.values() if task != "retrieval"]
    table = table[table["text"] == "measured"].groupby(["learnt", "task", "step"], sort=False)
    table = table["score"].apply(over_seeds).unstack().reset_index()
    on = abx_figures.scored(table, "step", tasks, Curves(width=3.9, height=2.5), col="learnt")
    return on.done("training step", "ABX score", handles=abx_figures.with_lines(on))
