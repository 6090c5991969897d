"""Measures of a model while it trains: a callback for `transformers.Trainer`.

    lens = Lens(corpora.load("wmt24pp", ["de", "en", "ja"], drop_duplicates=True).take(200, 1))
    trainer = Trainer(..., callbacks=[lens])
    lens.trainer = trainer  # so that the scores are in its logs

At every evaluation the corpus is embedded by the model as it is. Of an encoder: LD, MD, MD among
sentences of like length (`xlx.measures.abx`) and retrieval, of a decoder the MEXA score of each
language (`xlx.measures.mexa`): mean over layers, and of the best layer. They are what
`abx.discrimination.exact` and `mexa.measures.scores` give for the saved model. They stand in the
metrics of the evaluation, too, so that ``metric_for_best_model="lens_md_like_length"`` keeps the
checkpoint that aligns best: the "adaptive checkpoint selection" of the ABX paper's conclusion.

A model that is fine-tuned by a trainer, in one language, is measured by IGAP as one of ours:

    recorder = Recorder(task, "en", every=50)  # an igap.TransferTask, learnt in its English
    recipe = Recipe(algorithm="xtune")  # or the trainer's own loss
    trainer = Trainer(..., callbacks=[recorder], compute_loss_func=RecipeLoss(model, recipe, 1))
    trainer.train()
    igap.Transfers(task, (recorder.run,)).curves([0.0], tolerance=0.025)
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn import functional
from transformers import Trainer, TrainerCallback

from xlx.experiment.abx_scores import length_matched
from xlx.experiment.transfers import TransferTask, sparing_in
from xlx.measures import abx, mexa
from xlx.results import checks
from xlx.results.settings import settings
from xlx.subjects import finetuning
from xlx.subjects.finetuning import Run
from xlx.subjects.jobs import Recipe, Sparing
from xlx.subjects.loading import Encoder
from xlx.subjects.states import embed
from xlx.subjects.training import consistency, gaussian_noise
from xlx.text.parallel import ParallelCorpus

#: Of an encoder: what a score is called in the logs → the task of `xlx.measures.abx`.
TASKS = {
    "ld": "LD", "md": "MD", "md_like_length": "MD, like length", "retrieval": "retrieval",
}  # fmt: skip


class Lens(TrainerCallback):
    """LD, MD, matched MD and retrieval of an encoder, MEXA of a decoder, at every evaluation.

    ``corpus`` should be small (some hundred positions), and text that the model does not learn
    from. ``pivot`` is of MEXA; ``every``: at every so many-th evaluation. `history` is a table of
    all scores so far, ``seconds`` what they have taken. In logs and metrics their names have
    ``eval_`` in front.
    """

    def __init__(
        self,
        corpus: ParallelCorpus,
        *,
        pooling: str = "mean",
        max_length: int | None = None,
        pivot: str = "en",
        every: int = 1,
    ) -> None:
        if len(corpus.languages) < 2:
            raise ValueError("two languages or more are needed: a score compares languages")
        self.corpus, self.pivot = corpus, pivot
        self.options = {"pooling": pooling, "max_length": max_length}
        checks.whole(every, "every")
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
        inner = getattr(model, "module", model).base_model
        parameter = next(inner.parameters())
        decoder = (
            getattr(inner.config, "is_decoder", False) or "ForCausalLM" in type(model).__name__
        )
        encoder = Encoder(
            inner, tokenizer, "the model in training", "", "decoder" if decoder else "encoder",
            parameter.device, parameter.dtype,
        )  # fmt: skip
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
        return self._mexa(states) if decoder else self._abx(states, parameter.device)

    def _abx(self, states: dict[str, np.ndarray], device: torch.device) -> dict[str, float]:
        masks = {"like length": length_matched(self.corpus)}
        exact = abx.exact(states, masks=masks, device=device)
        scores = {}
        for name, task in TASKS.items():
            by_layer = exact.scores[task].mean(axis=(1, 2))
            scores[f"lens_{name}"] = float(by_layer.mean())
            best = by_layer.argmin() if task == "LD" else by_layer.argmax()
            scores[f"lens_{name}_best"] = float(by_layer[best])
            scores[f"lens_{name}_best_layer"] = float(best)
        return scores

    def _mexa(self, states: dict[str, np.ndarray]) -> dict[str, float]:
        mu = mexa.scores(states, self.pivot)
        best = int(mu.mu.mean(axis=1).argmax())
        scores = {"lens_mexa": float(mu.mu.mean()), "lens_mexa_best": float(mu.mu[best].mean()),
                  "lens_mexa_best_layer": float(best)}  # fmt: skip
        of_language = zip(mu.languages, mu.mu.mean(axis=0), strict=True)
        return scores | {f"lens_mexa_{code}": float(score) for code, score in of_language}


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
    sparing : Sparing, optional
        To predict only what is read: the source at every checkpoint, its translations where the
        training error is in a window, test sets after every so many steps and the last.
    """

    def __init__(
        self,
        task: TransferTask,
        source: str,
        *,
        every: int = 10,
        model: str = "own model",
        algorithm: str = "vanilla",
        max_length: int | None = 128,
        classes: Mapping[str | int, str] | None = None,
        sparing: Sparing | None = None,
    ) -> None:
        checks.one_of(source, task.languages, f"language of {task.name}")
        checks.whole(every, "every")
        self.task, self.source, self.every, self.classes = task, source, every, classes
        self.names = {"model": model, "source": source, "algorithm": algorithm}
        self.sparing = sparing_in(task, source, sparing)
        self.recipe = Recipe(max_length=max_length)
        self._start({}, 0.0)

    def _start(self, about: dict[str, Any], n_steps: int) -> None:
        """Forget what was recorded before."""
        self._about = self.names | about
        self._losses = np.full(n_steps, np.nan, np.float32) if n_steps else np.empty(0, np.float32)
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
            {name: np.array([asked[name][k] for asked in self._asked]) for name in self.task.sets}
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
        self._start({"seed": args.seed, "learning_rate": args.learning_rate}, state.max_steps)
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
            self._record(state.global_step, last)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask a model whose training was ended early, if it is still that of the last step."""
        complete = self._steps[-1:] == [state.global_step] and not any(
            (predicted < 0).any() for predicted, _ in self._asked[-1].values()
        )
        if not complete and not args.load_best_model_at_end:
            self._record(state.global_step, last=True)

    def _record(self, step: int, last: bool) -> None:
        """Ask all that is wanted of the model after a step, by the place of its labels."""
        if self._steps[-1:] == [step]:
            del self._steps[-1], self._asked[-1]
        training = self._model.training
        try:
            asked = self._answers(step, last)
        finally:
            self._model.train(training)
        self._steps.append(step)
        self._asked.append(asked)

    def _answers(self, step: int, last: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Predictions and logits by set; -1 and NaN of those spared."""
        sparing, sets, n = self.sparing, self.task.sets, len(self._places)
        if sparing is None or last or sparing.wants_all(step):
            return self._said(sets)
        found = self._said([sparing.decides])
        wrong = found[sparing.decides][0] != sets[sparing.decides].labels
        if sparing.wants_inside(float(wrong.mean())):
            found |= self._said(sparing.inside)
        return {
            name: found.get(name, (np.full(len(one), -1, np.int16),
                                   np.full((len(one), n), np.nan, np.float16)))
            for name, one in sets.items()
        }  # fmt: skip

    def _said(self, names: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Predictions and logits of some sets, batched together."""
        laid = [self._laid[name] for name in names]
        ends = np.cumsum([one.n for one in laid])[:-1]
        parts = (np.split(x, ends) for x in finetuning.answers(self._tuned, laid, self._places))
        return dict(zip(names, zip(*parts, strict=True), strict=True))


class RecipeLoss:
    """The loss of a recipe's algorithm, as ``compute_loss_func`` of a `transformers.Trainer`.

    Of a `finetuning.Recipe` its ``algorithm``, ``noise``, ``consistency`` and ``shared_dropout``
    count (section 5.2 of IGAP); the rest is the trainer's. Noise comes from ``seed`` and the number
    of the batch. For classifiers; where the model is evaluated, cross-entropy alone. What
    `training.training_loss` gives, a mean over the examples of all batches that make a step.
    """

    def __init__(self, model: torch.nn.Module, recipe: Recipe, seed: int) -> None:
        self.model, self.recipe, self.seed, self.batch = model, recipe, seed, 0
        self._within, self._busy = ExitStack(), False
        model.register_forward_pre_hook(self._before, with_kwargs=True)
        model.register_forward_hook(self._after, always_call=True)

    def _before(self, model: torch.nn.Module, arguments: tuple, options: dict[str, Any]) -> None:
        """Before the clean, or Gaussian, pass of a batch: know its input, and what it draws."""
        if self._busy or not model.training:
            return
        self.batch += 1
        parameter = next(model.parameters())
        self._device = parameter.device
        _, seed, _ = np.random.SeedSequence((self.seed, self.batch)).generate_state(3).tolist()
        self._generator = torch.Generator(self._device).manual_seed(seed)
        if self.recipe.algorithm == "gaussian":
            self._within.enter_context(self._noise())
        if self.recipe.algorithm == "xtune":
            self._input = arguments, options
            self._drawn = torch.get_rng_state(), self._of_device()

    def _after(self, *_: Any) -> None:
        if not self._busy:
            self._within.close()

    def _noise(self) -> Any:
        return gaussian_noise(self.model.get_input_embeddings(), self.recipe.noise, self._generator)

    def _of_device(self) -> torch.Tensor | None:
        return torch.cuda.get_rng_state(self._device) if self._device.type == "cuda" else None

    def __call__(
        self, outputs: Any, labels: torch.Tensor | None, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """The loss of a batch; called by the trainer with what the model has put out."""
        if labels is None:
            raise ValueError("the batches have no labels: name the column of the classes `labels`")
        clean = outputs["logits"].float()
        loss = functional.cross_entropy(clean, labels)
        if self.model.training and self.recipe.algorithm == "xtune" and self.recipe.consistency:
            loss = loss + self.recipe.consistency * consistency(clean, self._noisy())
        if num_items_in_batch is None:
            return loss
        return loss * (len(labels) / num_items_in_batch)

    def _noisy(self) -> torch.Tensor:
        """Logits of the same batch with noise; with the same units left out, if they are shared."""
        arguments, options = self._input
        self._busy = True
        try:
            with self._noise():
                if not self.recipe.shared_dropout:
                    return self.model(*arguments, **options)["logits"].float()
                own = [self._device] if self._device.type == "cuda" else []
                with torch.random.fork_rng(own):
                    torch.set_rng_state(self._drawn[0])
                    if own:
                        torch.cuda.set_rng_state(self._drawn[1], self._device)
                    return self.model(*arguments, **options)["logits"].float()
        finally:
            self._busy = False
