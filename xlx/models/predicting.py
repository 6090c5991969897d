"""What a fine-tuned model says of examples and questions, and how good that is."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from xlx.core import executors
from xlx.models import bfloat16, inputs, loading, precision
from xlx.models.batching import Row, batches, padded, tokenise
from xlx.models.jobs import Recipe
from xlx.text.answer_scores import f1
from xlx.text.examples import Examples
from xlx.text.questions import Questions


@contextmanager
def quickly(recipe: Recipe) -> Iterator[None]:
    """Within, on a CPU: one thread, as units go side by side, and bfloat16 that is not slow.

    On CUDA: products in TF32, if the recipe says so.
    """
    half, device = recipe.dtype == "bfloat16", loading.device_of(None)
    with (
        executors.one_thread(),
        bfloat16.products(device) if half else nullcontext(),
        precision.tf32_products(device, recipe.dtype == "tf32"),
    ):
        yield


def autocast(device: torch.device, dtype: str) -> AbstractContextManager[Any]:
    """Forward passes in this type."""
    if precision.DTYPES[dtype] == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=precision.DTYPES[dtype])


@dataclass(frozen=True)
class LaidOut:
    """A set as a model reads it: its rows (of questions, windows), and how many are cut.

    Questions are not cut: ``n_cut`` are those read in several windows.
    """

    rows: list[Row]
    windows: list[inputs.Window]
    n: int
    n_cut: int


@dataclass(frozen=True)
class Tuned:
    """A model with a head for a task, on its device, and how it reads."""

    model: Any
    tokenizer: Any
    limit: int | None
    recipe: Recipe
    device: torch.device

    @classmethod
    def new(
        cls, name: loading.Name, train: Examples | Questions, recipe: Recipe, seed: int
    ) -> "Tuned":
        """A model with a new head: a classifier of examples, or a reader of questions."""
        n_classes = len(train.classes) if isinstance(train, Examples) else None
        model, tokenizer, limit = loading.task_model(
            name, n_classes, seed, recipe.max_length, dropout=recipe.dropout
        )
        device = loading.device_of(None)
        # The fused attention of a CPU is several times slower backwards than plain products.
        model.set_attn_implementation("eager" if device.type == "cpu" else "sdpa")
        model.get_input_embeddings().requires_grad_(recipe.trained_embeddings)
        return cls(model.to(device), tokenizer, limit, recipe, device)

    def trained(self) -> dict[str, torch.Tensor]:
        """The weights by name, without those that a recipe leaves as the model has them."""
        fixed = self._fixed()
        return {name: x for name, x in self.model.state_dict().items() if name not in fixed}

    def restore(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take over the weights that `trained` gave; RuntimeError for those of another model."""
        lost, odd = self.model.load_state_dict(weights, strict=False)
        if odd or set(lost) != self._fixed():
            raise RuntimeError(
                f"the weights kept of a fine-tuning do not fit {type(self.model).__name__}: "
                f"{[*odd, *lost][0]} is in one of them alone; remove them from the cache"
            )

    def _fixed(self) -> set[str]:
        """Names of the weights that do not learn."""
        return {name for name, x in self.model.named_parameters() if not x.requires_grad}

    def padded(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """A batch."""
        return padded(rows, self.tokenizer.pad_token_id or 0, self.device)

    def laid_out(self, asked: Examples | Questions) -> LaidOut:
        """Examples tokenised and cut at the limit; questions with the windows of their contexts."""
        if isinstance(asked, Questions):
            laid = inputs.windows(
                self.tokenizer, asked.questions, asked.contexts, self.limit, self.recipe.stride
            )
            several = np.bincount([window.example for window in laid]) > 1
            rows = [window.row for window in laid]
            return LaidOut(rows, laid, len(asked), int(several.sum()))
        sides = [asked.first] if asked.second is None else [asked.first, asked.second]
        columns, cut = tokenise(self.tokenizer, *sides, limit=self.limit)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return LaidOut(rows, [], len(asked), len(cut))

    def predict(self, sets: Sequence[LaidOut]) -> tuple[np.ndarray, np.ndarray]:
        """What it says of sets, one behind the other, batched together; no dropout or noise.

        Of n examples the classes, int16 ``(n,)``, and the logits, float16 ``(n, classes)``; of
        questions where the answers start and end in their contexts, in characters, int32
        ``(n, 2)`` ((0, 0): none), and the score of each, the sum of the logits of its ends, float16
        ``(n,)`` (-inf: none).
        """
        rows = [row for laid in sets for row in laid.rows]
        windows = [window for laid in sets for window in laid.windows]
        if not windows:
            predicted = np.empty(len(rows), dtype=np.int16)
            logits = np.empty((len(rows), self.model.config.num_labels), dtype=np.float16)
            for batch, _, output in self._outputs(rows):
                of_batch = output.logits.float()
                predicted[batch] = of_batch.argmax(dim=-1).cpu().numpy()
                logits[batch] = of_batch.cpu().numpy()
            return predicted, logits
        scores, places = np.empty(len(rows)), np.empty((len(rows), 2), dtype=np.int64)
        context = np.array([(window.offset, window.offset + window.n) for window in windows])
        for batch, length, output in self._outputs(rows):
            place = torch.arange(length, device=self.device)
            low, high = torch.from_numpy(context[batch].T[:, :, None]).to(self.device)
            score, first, last = inputs.best_spans(
                output.start_logits.float(), output.end_logits.float(),
                (place >= low) & (place < high), self.recipe.longest_answer,
            )  # fmt: skip
            scores[batch] = score.cpu().numpy()
            places[batch] = torch.stack([first, last], dim=1).cpu().numpy()
        ends = np.cumsum([len(laid.windows) for laid in sets])[:-1]
        parts = zip(sets, np.split(scores, ends), np.split(places, ends), strict=True)
        best = [inputs.best_answers(laid.windows, *of_set, laid.n) for laid, *of_set in parts]
        answers, highest = zip(*best, strict=True)
        return np.concatenate(answers), np.concatenate(highest).astype(np.float16)

    @torch.inference_mode()
    def _outputs(self, rows: Sequence[Row]) -> Iterator[tuple[np.ndarray, int, Any]]:
        """Batches of rows, the length of each, and what the model puts out."""
        self.model.eval()
        for batch in batches([len(row["input_ids"]) for row in rows]):
            inputs_of_batch = self.padded([rows[i] for i in batch])
            with autocast(self.device, self.recipe.dtype):
                output = self.model(**inputs_of_batch)
            yield batch, inputs_of_batch["input_ids"].shape[1], output


def score(asked: Examples | Questions, predicted: np.ndarray) -> float:
    """Share of the classes that are right; of places ``(n, 2)`` in contexts the mean F1.

    NaN for a set that was not asked.
    """
    if isinstance(asked, Examples):
        return math.nan if (predicted < 0).all() else float((predicted == asked.labels).mean())
    said = [text[start:end] for text, (start, end) in zip(asked.contexts, predicted, strict=True)]
    both = zip(said, asked.answers, strict=True)
    return float(np.mean([f1(answer, gold, asked.context_language) for answer, gold in both]))
