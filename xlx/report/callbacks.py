"""Measures of a model while it trains: a callback for `transformers.Trainer`.

    lens = Lens(corpora.load("wmt24pp", ["de", "en", "ja"], drop_duplicates=True).take(200, 1))
    trainer = Trainer(..., callbacks=[lens])
    lens.trainer = trainer  # so that the scores are in its logs

At every evaluation the corpus is embedded by the model as it is. Of an encoder: LD, MD, MD among
sentences of like length (`xlx.measures.abx`) and retrieval, of a decoder the MEXA score of each
language (`xlx.measures.mexa`): mean over layers, and of the best layer. They are what
`xlx.measures.abx.exact` and `xlx.measures.mexa.scores` give for the saved model. They stand in the
metrics of the evaluation, too, so that ``metric_for_best_model="lens_md_like_length"`` keeps the
checkpoint that aligns best: the "adaptive checkpoint selection" of the ABX paper's conclusion.

A model that is fine-tuned by a trainer, in one language, is measured by IGAP as one of ours:

    recorder = Recorder(task, "en", every=50)  # an igap.TransferTask, learnt in its English
    trainer = Trainer(..., callbacks=[recorder])
    trainer.train()
    igap.Transfers(task, (recorder.run,)).curves([0.0], tolerance=0.025)
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import Trainer, TrainerCallback

from xlx.experiment.abx_scores import MATCHED, length_matched
from xlx.experiment.transfers import TransferTask
from xlx.measures import abx, mexa, registered
from xlx.results import checks
from xlx.results.settings import settings
from xlx.subjects import finetuning
from xlx.subjects.finetuning import Run
from xlx.subjects.jobs import Recipe
from xlx.subjects.loading import bare
from xlx.subjects.states import embed
from xlx.text.parallel import ParallelCorpus

#: What is measured of an encoder: of `measures.registered`, or MD among sentences of like length.
TASKS = ("LD", "MD", MATCHED, "retrieval")


def logged(task: str) -> str:
    """What a score is called in the logs: "md_like_length"."""
    return task.lower().replace(", ", "_").replace(" ", "_")


class Lens(TrainerCallback):
    """LD, MD, matched MD and retrieval of an encoder, MEXA of a decoder, at every evaluation.

    ``measures`` of an encoder may be others of the registry ("CKA"), or more of them. ``corpus``
    should be small (some hundred positions), and text that the model does not learn
    from. ``pivot`` is of MEXA; ``every``: at every so many-th evaluation. `history` is a table of
    all scores so far, ``seconds`` what they have taken. In logs and metrics their names have
    ``eval_`` in front.
    """

    def __init__(
        self, corpus: ParallelCorpus, *, pooling: str = "mean", max_length: int | None = None,
        pivot: str = "en", every: int = 1, measures: Sequence[str] = TASKS,
    ) -> None:  # fmt: skip
        checks.whole(every, "every")
        for measure in measures:
            checks.one_of(measure, [*registered(), MATCHED], "measure")
        self.measures = tuple(measures)
        if len(corpus.languages) < 2:
            raise ValueError("two languages or more are needed: a score compares languages")
        self.corpus, self.pivot = corpus, pivot
        self.options = {"pooling": pooling, "max_length": max_length}
        self.every = every
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
        """Measure; called by the trainer after each evaluation."""
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
        inner = getattr(model, "module", model)
        decoder = (
            getattr(inner.config, "is_decoder", False) or "ForCausalLM" in type(model).__name__
        )
        kind = "decoder" if decoder else "encoder"
        encoder = bare("the model in training", inner, tokenizer, kind)
        training = model.training
        model.eval()
        try:
            with settings(progress=False):
                states = {
                    code: embed(encoder, sentences, **self.options).states
                    for code, sentences in self.corpus.sentences.items()
                }
        finally:
            model.train(training)
        return self._mexa(states) if decoder else self._abx(states, encoder.device)

    def _abx(self, states: dict[str, np.ndarray], device: torch.device) -> dict[str, float]:
        masks = {"like length": length_matched(self.corpus)}
        plain = [registered()[x] for x in self.measures if x != MATCHED]
        exact = abx.exact(states, measures=plain, masks=masks, device=device)
        scores = {}
        for task in self.measures:
            name, by_layer = logged(task), exact.scores[task].mean(axis=(1, 2))
            best = by_layer.argmin() if task == "LD" else by_layer.argmax()
            numbers = {"": by_layer.mean(), "_best": by_layer[best], "_best_layer": best}
            scores |= {f"lens_{name}{what}": float(number) for what, number in numbers.items()}
        return scores

    def _mexa(self, states: dict[str, np.ndarray]) -> dict[str, float]:
        scores = mexa.scores(states, self.pivot)
        best = int(scores.mu.mean(axis=1).argmax())
        numbers = {"": scores.mu.mean(), "_best": scores.mu[best].mean(), "_best_layer": best}
        for code, score in zip(scores.languages, scores.mu.mean(axis=0), strict=True):
            numbers[f"_{code}"] = score
        return {f"lens_mexa{what}": float(number) for what, number in numbers.items()}


class Recorder(TrainerCallback):
    """What each checkpoint of somebody's own fine-tuning predicts, as IGAP measures it.

    The model, a classifier, is trained on ``task.train[source]`` (or on more); after every
    ``every`` steps and the last it is asked about the sets of ``task``. `run` is then what
    `igap.Transfers`, `ranking` and `transferability` take; several trainings (seeds, rates) make
    several runs. It is kept in memory, so a training that goes on from a saved checkpoint has only
    what came after it.

    Parameters
    ----------
    model, algorithm : str
        What they are called in tables.
    max_length : int or None
        Tokens of an example, special ones included; None: what the model takes.
    classes : mapping, optional
        The model's labels (``id2label``, or numbers) → the task's classes. Without it labels have
        their names, or if they have none (LABEL_0 ...) their order.
    """

    def __init__(
        self, task: TransferTask, source: str, *, every: int = 10, model: str = "own model",
        algorithm: str = "vanilla", max_length: int | None = 128,
        classes: Mapping[str | int, str] | None = None,
    ) -> None:  # fmt: skip
        checks.one_of(source, task.languages, f"language of {task.name}")
        checks.whole(every, "every")
        self.task, self.source, self.every, self.classes = task, source, every, classes
        self.names = {"model": model, "source": source, "algorithm": algorithm}
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
        """Read the sets, and which label is which; called by the trainer."""
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
        """Keep the loss; called by the trainer."""
        if "loss" in logs and 1 <= state.global_step <= len(self._losses):
            self._losses[state.global_step - 1] = logs["loss"]

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask, if it is time; called by the trainer after each step."""
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
