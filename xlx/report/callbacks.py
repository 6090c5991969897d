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
"""

import time
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import Trainer, TrainerCallback

from xlx.experiment.abx_scores import MATCHED, length_matched
from xlx.measures import abx, mexa
from xlx.results import checks
from xlx.results.settings import settings
from xlx.subjects.loading import bare
from xlx.subjects.states import embed
from xlx.text.parallel import ParallelCorpus

#: Of an encoder: what a score is called in the logs → the task of `xlx.measures.abx`.
TASKS = {"ld": "LD", "md": "MD", "md_like_length": MATCHED, "retrieval": "retrieval"}


class Lens(TrainerCallback):
    """LD, MD, matched MD and retrieval of an encoder, MEXA of a decoder, at every evaluation.

    ``corpus`` should be small (some hundred positions), and text that the model does not learn
    from. ``pivot`` is of MEXA; ``every``: at every so many-th evaluation. `history` is a table of
    all scores so far, ``seconds`` what they have taken. In logs and metrics their names have
    ``eval_`` in front.
    """

    def __init__(
        self, corpus: ParallelCorpus, *, pooling: str = "mean", max_length: int | None = None,
        pivot: str = "en", every: int = 1,
    ) -> None:  # fmt: skip
        checks.whole(every, "every")
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
        exact = abx.exact(states, masks=masks, device=device)
        scores = {}
        for name, task in TASKS.items():
            by_layer = exact.scores[task].mean(axis=(1, 2))
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
