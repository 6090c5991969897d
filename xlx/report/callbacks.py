"""Callbacks of `transformers.Trainer`: measures of a model while it trains, and IGAP of a training.

    lens = Lens(parallel.load("wmt24pp", ["de", "en", "ja"], drop_duplicates=True).take(200, 1))
    trainer = Trainer(..., callbacks=[lens])
    lens.trainer = trainer  # so that the scores are in its logs

    recorder = Recorder(task, "en", every=50)  # a transfers.TransferTask, learnt in its English
    trainer = Trainer(..., callbacks=[recorder])
    trainer.train()
    transfers.Transfers(task, (recorder.run,)).curves([0.0], tolerance=0.025)

The scores of a `Lens` stand in the metrics of an evaluation, too, so that
``metric_for_best_model="lens_md_like_length"`` keeps the checkpoint that aligns best: the "adaptive
checkpoint selection" of the ABX paper's conclusion.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import Trainer, TrainerCallback

from xlx.experiment.abx_scores import length_matched
from xlx.experiment.transfers import TransferTask
from xlx.measures import abx, mexa, registered
from xlx.report.inputs import told
from xlx.results import checks
from xlx.results.settings import settings
from xlx.subjects import finetuning
from xlx.subjects.finetuning import Run
from xlx.subjects.jobs import Recipe
from xlx.subjects.loading import bare
from xlx.subjects.states import embed
from xlx.text.parallel import ParallelCorpus


class Lens(TrainerCallback):
    """At every so many-th evaluation: of an encoder what a report tells, of a decoder MEXA.

    Each as the mean over layers and of the best layer, MEXA by language, too. ``corpus`` should be
    small (some hundred positions), and text that the model does not learn from. `history` has all
    scores so far, ``seconds`` what they have taken; logs have ``eval_`` before their names.
    """

    def __init__(
        self, corpus: ParallelCorpus, *, pooling: str = "mean", max_length: int | None = None,
        pivot: str = "en", every: int = 1,
    ) -> None:  # fmt: skip
        checks.whole(every, "every")
        if len(corpus.languages) < 2:
            raise ValueError("two languages or more are needed: a score compares languages")
        self.corpus, self.pivot, self.every = corpus, pivot, every
        self.options = {"pooling": pooling, "max_length": max_length}
        self.trainer: Trainer | None = None
        self.seconds, self._n_evaluations, self._rows = 0.0, 0, []

    @property
    def history(self) -> pd.DataFrame:
        """Columns ``step`` and the scores, as they are called in the logs."""
        return pd.DataFrame(self._rows)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, *, model: torch.nn.Module,
        processing_class: Any = None, metrics: dict[str, float] | None = None, **_: Any,
    ) -> None:  # fmt: skip
        self._n_evaluations += 1
        if (self._n_evaluations - 1) % self.every:
            return
        began = time.perf_counter()
        scores = self.measure(model, processing_class)
        self.seconds += time.perf_counter() - began
        self._rows.append({"step": state.global_step} | scores)
        told = {f"eval_{name}": score for name, score in scores.items()}  # as trainers call theirs
        if metrics is not None:
            metrics |= told
        if self.trainer is not None:
            self.trainer.log(told)

    def measure(self, model: torch.nn.Module, tokenizer: Any) -> dict[str, float]:
        """The scores of a model as it is: name in the logs → mean over layers, or of the best."""
        inner, training = getattr(model, "module", model), model.training
        decoder = getattr(inner.config, "is_decoder", False) or "ForCausalLM" in str(type(model))
        kind = "decoder" if decoder else "encoder"
        encoder = bare("the model in training", inner, tokenizer, kind)
        model.eval()
        try:
            with settings(progress=False):
                states = {
                    code: embed(encoder, sentences, **self.options).states
                    for code, sentences in self.corpus.sentences.items()
                }
        finally:
            model.train(training)
        scores = self._mexa(states) if decoder else self._measures(states, encoder.device)
        return {f"lens_{name}": float(number) for name, number in scores.items()}

    def _measures(self, states: dict[str, np.ndarray], device: torch.device) -> dict[str, Any]:
        masks = {"like length": length_matched(self.corpus)}
        measures = [*registered().values()]
        exact = abx.exact(states, measures=measures, masks=masks, device=device)
        scores = {}
        for task in told():
            by_layer = exact.scores[task].mean(axis=(1, 2))
            best = by_layer.argmin() if task == "LD" else by_layer.argmax()
            name = logged(task)
            scores[name], scores[f"{name}_best"] = by_layer.mean(), by_layer[best]
            scores[f"{name}_best_layer"] = best
        return scores

    def _mexa(self, states: dict[str, np.ndarray]) -> dict[str, Any]:
        mu = (scores := mexa.scores(states, self.pivot)).mu
        best = int(mu.mean(axis=1).argmax())
        numbers = {"mexa": mu.mean(), "mexa_best": mu[best].mean(), "mexa_best_layer": best}
        by_language = zip(scores.languages, mu.mean(axis=0), strict=True)
        return numbers | {f"mexa_{code}": score for code, score in by_language}


def logged(task: str) -> str:
    """A measure as it is called in logs: "MD, like length" is md_like_length."""
    return task.lower().replace(",", "").replace(" ", "_")


class Recorder(TrainerCallback):
    """What each checkpoint of somebody's own fine-tuning predicts, as IGAP measures it.

    The model, a classifier, is trained on ``task.train[source]`` (or on more); after every
    ``every`` steps and the last it is asked about the sets of ``task``, ``max_length`` tokens an
    example (None: what it takes). `run` is then what `transfers.Transfers` takes, ``model`` its
    name; several trainings make several. It is kept in memory, so a training that goes on from a
    saved checkpoint has only what came after it. ``classes``: the model's labels (``id2label``, or
    numbers) → the task's classes; without it labels have their names, or else (LABEL_0 ...) order.
    """

    def __init__(
        self, task: TransferTask, source: str, *, every: int = 10, model: str = "own model",
        max_length: int | None = 128, classes: Mapping[str | int, str] | None = None,
    ) -> None:  # fmt: skip
        checks.one_of(source, task.languages, f"language of {task.name}")
        checks.whole(every, "every")
        self.task, self.source, self.every, self.classes = task, source, every, classes
        self.names = {"model": model, "source": source, "algorithm": "vanilla"}
        self.recipe = Recipe(max_length=max_length)
        self._steps: list[int] = []
        self._asked: list[dict[str, tuple[np.ndarray, np.ndarray]]] = []

    @property
    def run(self) -> Run:
        """What was recorded; ``losses`` are those that the trainer logged, NaN at other steps.

        ValueError before the first checkpoint.
        """
        if not self._steps:
            raise ValueError("nothing is recorded yet: give the recorder to a trainer, and train")
        predictions, logits = (
            {name: np.array([asked[name][k] for asked in self._asked]) for name in self._laid}
            for k in range(2)
        )
        n_cut = {name: laid.n_cut for name, laid in self._laid.items()}
        return Run(
            **self._about, steps=np.array(self._steps), losses=self._losses,
            predictions=predictions, logits=logits,
            n_cut={"train": n_cut[f"train {self.source}"], **n_cut},
        )  # fmt: skip

    def on_train_begin(
        self, args: Any, state: Any, control: Any, *, model: torch.nn.Module,
        processing_class: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        if processing_class is None:
            raise ValueError("the recorder reads text: give the trainer its processing_class")
        classes = self.task.train[self.source].classes
        # What was recorded before is forgotten.
        self._about = self.names | {"seed": args.seed, "learning_rate": args.learning_rate}
        self._losses = np.full(state.max_steps, np.nan, np.float32)
        self._steps, self._asked = [], []
        self._model = getattr(model, "module", model)
        self._places = finetuning.places_of_labels(
            self._model.config, classes, self.classes, in_order=True
        )
        self._tuned = finetuning.in_training(self._model, processing_class, self.recipe)
        self._laid = {name: self._tuned.laid_out(one) for name, one in self.task.sets.items()}

    def on_log(
        self, args: Any, state: Any, control: Any, *, logs: Mapping[str, float], **_: Any
    ) -> None:
        if "loss" in logs and 1 <= state.global_step <= len(self._losses):
            self._losses[state.global_step - 1] = logs["loss"]

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        last = control.should_training_stop or state.global_step >= state.max_steps
        if last or state.global_step % self.every == 0:
            self._record(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask a model whose training was ended early, if it is still that of the last step."""
        if self._steps[-1:] != [state.global_step] and not args.load_best_model_at_end:
            self._record(state.global_step)

    def _record(self, step: int) -> None:
        """Predictions and logits of all sets after a step, batched together."""
        training, laid = self._model.training, list(self._laid.values())
        try:
            answers = finetuning.answers(self._tuned, laid, self._places)
        finally:
            self._model.train(training)
        ends = np.cumsum([one.n for one in laid])[:-1]
        parts = zip(*(np.split(x, ends) for x in answers), strict=True)
        self._steps.append(step)
        self._asked.append(dict(zip(self._laid, parts, strict=True)))
