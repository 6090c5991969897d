"""A callback of `transformers.Trainer`: measures of a model while it trains.

    lens = Lens(parallel.load("wmt24pp", ["de", "en", "ja"], drop_duplicates=True).take(200, 1))
    trainer = Trainer(..., callbacks=[lens])
    lens.trainer = trainer  # so that the scores are in its logs

The scores stand in the metrics of an evaluation, too, so that
``metric_for_best_model="lens_md_like_length"`` keeps the checkpoint that aligns best: the "adaptive
checkpoint selection" of the ABX paper's conclusion.
"""

import time
from typing import Any

import torch
from numpy import ndarray
from pandas import DataFrame
from transformers import TrainerCallback

from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.constraints import masks_of
from xlx.experiment.scoring import reported_measures
from xlx.measures import abx, mexa
from xlx.results.settings import settings
from xlx.subjects.loading import bare
from xlx.subjects.states import embed
from xlx.text.parallel import ParallelCorpus


class Lens(TrainerCallback):
    """At every evaluation: of an encoder what a report tells, of a decoder MEXA.

    Each as the mean over layers and of the best layer, MEXA by language, too. ``corpus`` should be
    small (some hundred positions), and text that the model does not learn from. `history` has all
    scores so far, ``seconds`` what they have taken; logs have ``eval_`` before their names.
    """

    def __init__(
        self,
        corpus: ParallelCorpus,
        *,
        pooling: str = "mean",
        max_length: int | None = None,
        pivot: str = "en",
    ) -> None:
        if len(corpus.languages) < 2:
            raise ValueError("two languages or more are needed: a score compares languages")
        self.corpus, self.pivot = corpus, pivot
        self.options = {"pooling": pooling, "max_length": max_length}
        self.trainer = None
        self.seconds, self._rows = 0.0, []

    @property
    def history(self) -> DataFrame:
        """Columns ``step`` and the scores, as they are called in the logs."""
        return DataFrame(self._rows)

    def on_evaluate(
        self,
        args: Any,
        state: Any,
        control: Any,
        *,
        model: torch.nn.Module,
        processing_class: Any = None,
        metrics: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        began = time.perf_counter()
        scores = self.measure(model, processing_class)
        self.seconds += time.perf_counter() - began
        self._rows.append({"step": state.global_step} | scores)
        named = {f"eval_{name}": score for name, score in scores.items()}  # as trainers call theirs
        if metrics is not None:
            metrics |= named
        if self.trainer is not None:
            self.trainer.log(named)

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

    def _measures(self, states: dict[str, ndarray], device: torch.device) -> dict[str, Any]:
        masks = masks_of(self.corpus, ["like length"])
        measures = [x for x in reported_measures() if x != MATCHED]
        exact = abx.exact(states, measures=measures, masks=masks, device=device)
        scores = {}
        for task in reported_measures():
            by_layer, name = exact.scores[task].mean((1, 2)), logged(task)
            best = by_layer.argmin() if task == "LD" else by_layer.argmax()
            scores |= {name: by_layer.mean(), f"{name}_best": by_layer[best]}
            scores[f"{name}_best_layer"] = best
        return scores

    def _mexa(self, states: dict[str, ndarray]) -> dict[str, Any]:
        scores = mexa.scores(states, self.pivot)
        by_layer, by_language = scores.mu.mean(1), scores.mu.mean(0)
        best = by_layer.argmax()
        numbers = {"mexa": by_layer.mean(), "mexa_best": by_layer[best], "mexa_best_layer": best}
        names = (f"mexa_{code}" for code in scores.languages)
        return numbers | dict(zip(names, by_language, strict=True))


def logged(task: str) -> str:
    """A measure as it is called in logs: "MD, like length" is md_like_length."""
    return task.lower().replace(",", "").replace(" ", "_")
