"""What a fine-tuned model says of examples and questions, and how good that is."""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from xlx.core import executors
from xlx.models import bfloat16, inputs, loading
from xlx.models.batching import Row, batches, padded, tokenise
from xlx.models.jobs import Recipe
from xlx.text.answer_scores import f1
from xlx.text.examples import Examples
from xlx.text.questions import Questions


def placed(model: Any, device: torch.device) -> Any:
    """The model on its device, with the attention that is fast there."""
    # The fused attention of a CPU is several times slower backwards than plain products.
    model.set_attn_implementation("eager" if device.type == "cpu" else "sdpa")
    return model.to(device)


@contextmanager
def quickly(recipe: Recipe) -> Iterator[None]:
    """Within, on a CPU: one thread, as units go side by side, and bfloat16 that is not slow."""
    half = recipe.dtype == "bfloat16"
    with (
        executors.one_thread(),
        bfloat16.products(loading.device_of(None)) if half else nullcontext(),
    ):
        yield


def autocast(device: torch.device, dtype: str) -> AbstractContextManager[Any]:
    """Forward passes in this type."""
    if dtype == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=loading.DTYPES[dtype])


def pad_rows(tokenizer: Any, rows: Sequence[Row], device: torch.device) -> dict[str, torch.Tensor]:
    """A batch of a model that is fine-tuned: `batching.padded`."""
    return padded(rows, tokenizer.pad_token_id or 0, device)


def tokenised_examples(
    tokenizer: Any, examples: Examples, limit: int | None
) -> tuple[list[Row], int]:
    """One row of model inputs for each example, cut at the limit, and how many were cut."""
    sides = [examples.first] if examples.second is None else [examples.first, examples.second]
    columns, cut = tokenise(tokenizer, *sides, limit=limit)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows, len(cut)


def laid_out(
    tokenizer: Any, questions: Questions, limit: int | None, stride: int
) -> tuple[list[inputs.Window], list[inputs.TokenisedText]]:
    """The windows of all questions, and the tokenised context of each."""
    pattern = inputs.Pattern.of(tokenizer)
    asked = inputs.tokenised(tokenizer, questions.questions)
    read = inputs.tokenised(tokenizer, questions.contexts, spans=True)
    contexts = [read[text] for text in questions.contexts]
    found = []
    for i, (question, context) in enumerate(zip(questions.questions, contexts, strict=True)):
        ids = asked[question].ids
        found += inputs.windows(pattern, i, ids, context.ids, limit, stride)
    return found, contexts


def predicted_classes(
    model: torch.nn.Module,
    tokenizer: Any,
    rows: Sequence[Row],
    device: torch.device,
    dtype: str,
) -> tuple[np.ndarray, np.ndarray]:
    """The class of each row, int16 ``(n,)``, and the logits, float16 ``(n, classes)``.

    Without dropout or noise.
    """
    found = np.empty(len(rows), dtype=np.int16)
    kept = np.empty((len(rows), model.config.num_labels), dtype=np.float16)
    model.eval()
    with torch.inference_mode(), autocast(device, dtype):
        for batch in batches([len(row["input_ids"]) for row in rows]):
            logits = model(**pad_rows(tokenizer, [rows[i] for i in batch], device)).logits.float()
            found[batch] = logits.argmax(dim=-1).cpu().numpy()
            kept[batch] = logits.cpu().numpy()
    return found, kept


def predicted_spans(
    model: torch.nn.Module,
    tokenizer: Any,
    windows: Sequence[inputs.Window],
    contexts: Sequence[inputs.TokenisedText],
    device: torch.device,
    recipe: Recipe,
) -> tuple[np.ndarray, np.ndarray]:
    """Where the answers start and end in their contexts, in characters: int32 ``(n, 2)``.

    And the score of each, the sum of the logits of its ends: float16 ``(n,)``, -inf for none.
    """
    scores = np.empty(len(windows))
    places = np.empty((len(windows), 2), dtype=np.int64)
    model.eval()
    with torch.inference_mode(), autocast(device, recipe.dtype):
        for batch in batches([len(window.row["input_ids"]) for window in windows]):
            chosen = [windows[i] for i in batch]
            padded = pad_rows(tokenizer, [window.row for window in chosen], device)
            output = model(**padded)
            place = torch.arange(padded["input_ids"].shape[1], device=device)
            low = torch.tensor([[window.offset] for window in chosen], device=device)
            high = torch.tensor([[window.offset + window.n] for window in chosen], device=device)
            score, first, last = inputs.best_spans(
                output.start_logits.float(), output.end_logits.float(),
                (place >= low) & (place < high), recipe.longest_answer,
            )  # fmt: skip
            scores[batch] = score.cpu().numpy()
            places[batch] = torch.stack([first, last], dim=1).cpu().numpy()
    best = inputs.best_of_windows(windows, scores, places[:, 0], places[:, 1], len(contexts))
    highest = np.full(len(contexts), -np.inf)
    np.maximum.at(highest, [window.example for window in windows], scores)
    found = np.array(
        [
            (context.spans[first][0], context.spans[last][1]) if first >= 0 else (0, 0)
            for context, (first, last) in zip(contexts, best, strict=True)
        ],
        dtype=np.int32,
    )
    return found, highest.astype(np.float16)


def score(asked: Examples | Questions, predicted: np.ndarray) -> float:
    """Share of the classes that are right; of places ``(n, 2)`` in contexts the mean F1.

    NaN for a set that was not asked.
    """
    if isinstance(asked, Examples):
        if (predicted < 0).all():
            return math.nan
        return float((predicted == asked.labels).mean())
    said = [text[start:end] for text, (start, end) in zip(asked.contexts, predicted, strict=True)]
    return float(
        np.mean(
            [
                f1(one, own, asked.context_language)
                for one, own in zip(said, asked.answers, strict=True)
            ]
        )
    )
