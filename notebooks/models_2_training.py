"""A miniature trained on translations by `transformers.Trainer`, and measured on the way.

The worked example of `xlx.report.callbacks`: an encoder learns to pick the translation of a
sentence among those of its batch (`family.objectives.contrastive_loss`), a `Lens` measures it at
every evaluation, and the checkpoint is chosen by what it saw (`course_choices`), after the
"adaptive checkpoint selection" of the ABX paper (Appendix H and conclusion). What the text of the
lens chooses is tried on other text, which nothing is chosen by.

A course is stored under its recipe (`CourseRecipe`); its weights are not kept.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from transformers import PrinterCallback, Trainer, TrainingArguments

from xlx.results import paths

sys.path.append(str(paths.MODELS))  # how the family is trained: data/models-long/family

from family import pretraining_text
from family.batches import Batch
from family.objectives import contrastive_loss
from shared import abx_figures
from xlx.plots.panels import across
from xlx.plots.style import handle, styled
from xlx.report.callbacks import Lens
from xlx.results import checks, work
from xlx.results.executors import one_thread
from xlx.subjects import identity, loading
from xlx.subjects.folders import quiet
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

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
        "texts": {name: [text.text_hash(x) for x in text.languages]
                  for name, text in texts.items()},
    }  # fmt: skip
    return work.result(COURSE, about, recipe, texts)


def course_choices(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """What each rule of `CHOICES` chooses of a course: ``step``, ``score`` there, and what it lost.

    ``lost``: the best score at any checkpoint less that at the chosen one. Of several equal ones
    the first.
    """
    chosen = {
        rule: table.loc[table[column].idxmin() if least else table[column].idxmax()]
        for rule, (column, least) in CHOICES.items()
    }
    found = pd.DataFrame(chosen).T.rename_axis("chosen by")
    lost = (table[score].max() - found[score]).astype(float)
    return pd.DataFrame({"step": found["step"].astype(int), "score": found[score], "lost": lost})


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


class _OfTranslations(Trainer):
    """A trainer of a bare encoder whose batches are translations, one row below the other."""

    temperature: float

    def compute_loss(
        self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], *_: Any, **__: Any
    ) -> torch.Tensor:
        """`contrastive_loss`, both directions; in nats."""
        batch = Batch(inputs["input_ids"], inputs["attention_mask"].bool())
        return contrastive_loss(model, batch, self.temperature)

    def prediction_step(
        self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], *_: Any, **__: Any
    ) -> tuple[torch.Tensor, None, None]:
        """The loss alone."""
        with torch.no_grad():
            loss = self.compute_loss(model, self._prepare_inputs(inputs))
        return loss, None, None


def _trainer(recipe: CourseRecipe, folder: str, lenses: Sequence[Lens]) -> Trainer:
    """All of the training but its start."""
    encoder = loading.load(recipe.model, device="cpu", dtype="float32")
    encoder.model.requires_grad_(True)
    learnt, held_out = translations(recipe)

    def rows(pairs: Sequence[tuple[str, str]]) -> Mapping[str, torch.Tensor]:
        both = [sentence for pair in pairs for sentence in pair]
        options = {"padding": True, "truncation": True, "max_length": recipe.max_length}
        return encoder.tokenizer(both, return_tensors="pt", **options)

    arguments = TrainingArguments(
        folder, max_steps=recipe.steps, learning_rate=recipe.learning_rate, seed=recipe.seed,
        per_device_train_batch_size=recipe.pairs, per_device_eval_batch_size=recipe.pairs,
        warmup_steps=recipe.steps // 10, lr_scheduler_type="constant_with_warmup",
        eval_strategy="steps", eval_steps=recipe.every, eval_on_start=True, save_strategy="no",
        logging_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
        remove_unused_columns=False,
    )  # fmt: skip
    trainer = _OfTranslations(
        encoder.model, arguments, data_collator=rows, train_dataset=learnt, eval_dataset=held_out,
        processing_class=encoder.tokenizer, callbacks=list(lenses),
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    trainer.temperature = recipe.temperature
    return trainer


def _course(recipe: CourseRecipe, texts: Mapping[str, ParallelCorpus]) -> pd.DataFrame:
    """The cut point: a training from its first step to its last."""
    options = {"max_length": recipe.max_length}
    lens, other = (Lens(texts[name], **options) for name in ("measured", "tried"))
    # The trainer seeds what everybody shares: it gets it for a while, and one thread.
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng([]), one_thread(), quiet():
        trainer = _trainer(recipe, folder, [lens, other])
        began = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - began - other.seconds
    losses = {row["step"]: row["eval_loss"]
              for row in trainer.state.log_history if "eval_loss" in row}  # fmt: skip
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
_CHOSEN = {"color": "0.35", "linewidth": 0.8, "linestyle": (0, (4, 2))}


@styled
def training_course(table: pd.DataFrame, chosen: int | None = None) -> Figure:
    """LD and MD at every evaluation of a training, a panel a text.

    ``table`` has ``text``, ``task``, ``step`` and ``score``; ``chosen`` is a step to be marked.
    """
    tasks = list(dict.fromkeys(table["task"]))
    on = abx_figures.scored(table, "step", tasks, panel="text", width=3.9, height=2.5)
    told = abx_figures.with_lines(on)
    if chosen is not None:
        across(on, chosen, **_CHOSEN)
        told.append(handle("chosen checkpoint", _CHOSEN | {"marker": ""}, line=True))
    return on.done("training step", "ABX score", handles=told)
