"""What a model with a head for a task answers: the class of examples, or where an answer stands.

A context longer than the model takes is read in windows that overlap, so nothing of it is cut
(Devlin et al. 2019, as in every reader of SQuAD since); the answer is the span of highest score
over all windows.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from xlx.measures.answers import f1
from xlx.results import executors
from xlx.results.deferred import deferred, without_gradients
from xlx.results.settings import current
from xlx.subjects import identity, loading
from xlx.subjects.jobs import Recipe
from xlx.subjects.loading import Row, padded
from xlx.subjects.states import batches, tokenise
from xlx.text.examples import Examples
from xlx.text.questions import Questions

torch = deferred("torch")

#: Questions of which the places of all tokens are held at once.
TOKENISED_AT_ONCE = 1000


class InputError(ValueError):
    """Texts that cannot be an input of the model; says which and what to do."""


@dataclass(frozen=True)
class Window:
    """A question with a part of its context: model inputs, and what of them is context.

    ``offset``: place in the input of the window's first context token; ``first``: number of that
    token in the context; ``n``: context tokens of the window; ``spans`` ``(tokens, 2)``: characters
    of all tokens of the context.
    """

    example: int
    row: Row
    offset: int
    first: int
    n: int
    context: str
    spans: ndarray

    def characters(self, token: int) -> tuple[int, int]:
        """Where a token of the context starts and ends in it, without white space at its ends.

        Some tokenizers count the space before a word in; what is nothing else ends before it
        starts.
        """
        start, end = first, last = self.spans[token].tolist()
        while first < end and self.context[first].isspace():
            first += 1
        while last > start and self.context[last - 1].isspace():
            last -= 1
        return first, last


def windows(
    tokenizer: Any,
    questions: Sequence[str],
    contexts: Sequence[str],
    limit: int | None,
    stride: int,
) -> list[Window]:
    """Questions with their contexts as inputs of at most ``limit`` tokens; nothing is cut.

    Windows overlap by ``stride`` tokens, so that an answer of up to so many is whole in one of
    them; where the question leaves less room, by half of what there is. InputError for a question
    that leaves no room for a context, or a tokenizer that gives no places of tokens.
    """
    if not tokenizer.is_fast:
        raise InputError("questions need a tokenizer that gives places of tokens (a fast one)")
    laid = []
    for start in range(0, len(questions), TOKENISED_AT_ONCE):
        examples = range(len(questions))[start : start + TOKENISED_AT_ONCE]
        read = tokenizer(
            [questions[i] for i in examples],
            [contexts[i] for i in examples],
            return_attention_mask=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        spans = read.pop("offset_mapping")
        for k, i in enumerate(examples):
            sides = read.sequence_ids(k)
            columns = {name: rows[k] for name, rows in read.items()}
            offset, n = sides.index(1) if 1 in sides else len(sides), sides.count(1)
            room = n if limit is None else limit - (len(sides) - n)
            if room < min(2, n):
                raise InputError(
                    f"question {i} has {sides.count(0)} tokens, which leaves no room for a context "
                    f"in {limit}: raise max_length or leave the question out"
                )
            step = max(1, room - min(stride, room // 2))
            of_context = np.array(spans[k][offset : offset + n], np.int32).reshape(-1, 2)
            for first in range(0, max(n - room + step, 1), step):
                size = min(room, n - first)
                begin, end = offset + first, offset + first + size
                row = {
                    name: column[:offset] + column[begin:end] + column[offset + n :]
                    for name, column in columns.items()
                }
                laid.append(Window(i, row, offset, first, size, contexts[i], of_context))
    return laid


def answer_places(window: Window, start: int, end: int) -> tuple[int, int]:
    """Places in the window's input of the first and last token of an answer.

    The answer is the context's characters ``[start, end)``. (0, 0), the first special token, where
    the window does not hold all of it.
    """
    touched = np.flatnonzero((window.spans[:, 0] < end) & (window.spans[:, 1] > start)).tolist()
    places = {token: window.characters(token) for token in touched}
    tokens = [token for token, (low, high) in places.items() if low < end and high > start]
    if not tokens or tokens[0] < window.first or tokens[-1] >= window.first + window.n:
        return 0, 0
    shift = window.offset - window.first
    return tokens[0] + shift, tokens[-1] + shift


def best_spans(
    start: torch.Tensor, end: torch.Tensor, inside: torch.Tensor, longest: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The span of highest score in each row: first ≤ last, both inside, of at most so many tokens.

    ``start`` and ``end`` logits, whose sum is the score, and ``inside`` (where the context is) are
    ``(n, length)``; returns scores, firsts and lasts ``(n,)``; -inf where no place is inside. Of
    equal scores the first span, and of these the shortest.
    """
    low = torch.full_like(start, -torch.inf)
    start, end = torch.where(inside, start, low), torch.where(inside, end, low)
    padded = torch.nn.functional.pad(end, (0, longest - 1), value=-torch.inf)
    ends, width = padded.unfold(1, longest, 1).max(2)
    scores, first = (start + ends).max(1)
    return scores, first, first + width.gather(1, first[:, None])[:, 0]


def best_answers(
    laid: Sequence[Window], scores: ndarray, places: ndarray, n: int
) -> tuple[ndarray, ndarray]:
    """The best answer to each of n examples over its windows, and its score ``(n,)``.

    From each window's ``scores`` and ``places`` (first and last in the input, ``(windows, 2)``) to
    characters of the context, int32 ``(n, 2)``: (0, 0) and -inf where there is no context. Of equal
    scores, the earlier window's.
    """
    highest, answers = np.full(n, -np.inf), np.zeros((n, 2), np.int32)
    for window, score, ends in zip(laid, scores, places, strict=True):
        if score > highest[window.example]:
            first, last = (ends - window.offset + window.first).tolist()
            highest[window.example] = score
            answers[window.example] = window.characters(first)[0], window.characters(last)[1]
    return answers, highest


@contextmanager
def quickly(recipe: Recipe) -> Iterator[None]:
    """Within, on a CPU: one thread, as units go side by side, and bfloat16 that is not slow.

    On CUDA: products in TF32, if the recipe says so.
    """
    half, device = recipe.dtype == "bfloat16", loading.device_of(None)
    with (
        executors.one_thread(),
        loading.products(device) if half else nullcontext(),
        loading.tf32_products(device, recipe.dtype == "tf32"),
    ):
        yield


def autocast(device: torch.device, dtype: str) -> AbstractContextManager[Any]:
    """Forward passes in this type."""
    if loading.weight_type(dtype) == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=loading.weight_type(dtype))


@dataclass(frozen=True)
class LaidOut:
    """A set as a model reads it: its rows (of questions, windows), and how many are cut.

    Questions are not cut: ``n_cut`` are those read in several windows.
    """

    rows: list[Row]
    windows: list[Window]
    n: int
    n_cut: int


@dataclass(frozen=True)
class Tuned:
    """A model with a head for a task, on its device, and how it reads.

    ``order``: the place of each of its labels in our classes, int64 ``(n_labels,)``; None: as ours.
    """

    model: Any
    tokenizer: Any
    limit: int | None
    recipe: Recipe
    device: torch.device
    order: ndarray | None = None

    @classmethod
    def new(
        cls, name: identity.Name, train: Examples | Questions, recipe: Recipe, seed: int
    ) -> Tuned:
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
        fixed = {name for name, x in self.model.named_parameters() if not x.requires_grad}
        return {name: x for name, x in self.model.state_dict().items() if name not in fixed}

    def restore(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take over the weights that `trained` gave; RuntimeError for those of another model."""
        self.model.load_state_dict({**self.model.state_dict(), **weights})

    def padded(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        """A batch."""
        return padded(rows, self.tokenizer.pad_token_id or 0, self.device)

    def laid_out(self, asked: Examples | Questions) -> LaidOut:
        """Examples tokenised and cut at the limit; questions with the windows of their contexts."""
        if isinstance(asked, Questions):
            laid = windows(
                self.tokenizer, asked.questions, asked.contexts, self.limit, self.recipe.stride
            )
            several = np.bincount([window.example for window in laid]) > 1
            rows = [window.row for window in laid]
            return LaidOut(rows, laid, len(asked), int(several.sum()))
        sides = [asked.first] if asked.second is None else [asked.first, asked.second]
        columns, cut = tokenise(self.tokenizer, *sides, limit=self.limit)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return LaidOut(rows, [], len(asked), len(cut))

    def predict(self, sets: Sequence[LaidOut]) -> tuple[ndarray, ndarray]:
        """What it says of sets, one behind the other, batched together; no dropout or noise.

        Of n examples the classes, int16 ``(n,)``, and the logits, float16 ``(n, classes)``; of
        questions where the answers start and end in their contexts, in characters, int32
        ``(n, 2)`` ((0, 0): none), and the score of each, the sum of the logits of its ends, float16
        ``(n,)`` (-inf: none).
        """
        rows = [row for laid in sets for row in laid.rows]
        windows = [window for laid in sets for window in laid.windows]
        if not windows:
            predicted = np.empty(len(rows), np.int16)
            logits = np.empty((len(rows), self.model.config.num_labels), np.float16)
            for batch, _, output in self._outputs(rows):
                of_batch = output.logits.float()
                predicted[batch] = of_batch.argmax(-1).cpu().numpy()
                logits[batch] = of_batch.cpu().numpy()
            if self.order is None:
                return predicted, logits
            return self.order[predicted].astype(predicted.dtype), logits[:, np.argsort(self.order)]
        scores, places = np.empty(len(rows)), np.empty((len(rows), 2), int)
        context = np.array([(window.offset, window.offset + window.n) for window in windows])
        for batch, length, output in self._outputs(rows):
            place = torch.arange(length, device=self.device)
            low, high = torch.from_numpy(context[batch].T[:, :, None]).to(self.device)
            score, first, last = best_spans(
                output.start_logits.float(),
                output.end_logits.float(),
                (place >= low) & (place < high),
                self.recipe.longest_answer,
            )
            scores[batch] = score.cpu().numpy()
            places[batch] = torch.stack([first, last], 1).cpu().numpy()
        ends = np.cumsum([len(laid.windows) for laid in sets])[:-1]
        parts = zip(sets, np.split(scores, ends), np.split(places, ends), strict=True)
        best = [best_answers(laid.windows, *of_set, laid.n) for laid, *of_set in parts]
        answers, highest = zip(*best, strict=True)
        return np.concatenate(answers), np.concatenate(highest).astype(np.float16)

    @without_gradients
    def _outputs(self, rows: Sequence[Row]) -> Iterator[tuple[ndarray, int, Any]]:
        """Batches of rows, the length of each, and what the model puts out."""
        self.model.eval()
        for batch in batches([len(row["input_ids"]) for row in rows]):
            inputs_of_batch = self.padded([rows[i] for i in batch])
            with autocast(self.device, self.recipe.dtype):
                output = self.model(**inputs_of_batch)
            yield batch, inputs_of_batch["input_ids"].shape[1], output


def score(asked: Examples | Questions, predicted: ndarray) -> float:
    """Share of the classes that are right; of places ``(n, 2)`` in contexts the mean F1.

    NaN for a set that was not asked.
    """
    if isinstance(asked, Examples):
        return math.nan if (predicted < 0).all() else float((predicted == asked.labels).mean())
    texts = [text[start:end] for text, (start, end) in zip(asked.contexts, predicted, strict=True)]
    both = zip(texts, asked.answers, strict=True)
    return float(np.mean([f1(answer, gold, asked.context_language) for answer, gold in both]))


class ClassesError(ValueError):
    """A model whose labels are not our classes, one to one; says which and what to do."""


def places_of_labels(
    config: Any, classes: Sequence[str], given: Mapping[str | int, str] | None = None
) -> ndarray:
    """The place in ``classes`` of each of a model's labels: int64 ``(n_labels,)``, a permutation.

    ``given``: the model's label, by its name or number → our class. None: by their names, whatever
    their case, spaces, hyphens and underscores. ClassesError where that is not one to one.
    """
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    if given is not None:
        by_label = {str(label): class_ for label, class_ in given.items()}
        if unknown := [*set(by_label) - {*names, *map(str, range(len(names)))}]:
            raise ClassesError(f"the model has no label {unknown[0]}: it has {', '.join(names)}")
        matched = [
            by_label.get(name, by_label.get(str(number))) for number, name in enumerate(names)
        ]
    else:
        ours = {_plain(class_): class_ for class_ in classes}
        matched = [ours.get(_plain(name)) for name in names]
    if sorted(map(str, matched)) != sorted(classes):
        raise ClassesError(
            f"the model's labels ({', '.join(names)}) are not the classes asked about "
            f"({', '.join(classes)}) one to one: say which is which, "
            f"labels={{{names[0]!r}: {classes[0]!r}, ...}}"
        )
    return np.array([list(classes).index(class_) for class_ in matched])


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


@dataclass(frozen=True)
class Headed:
    """A model that was fine-tuned elsewhere, with its own head: a classifier, or a reader.

    ``model`` is a name for `loading.headed_model`; ``labels``: its labels (``id2label`` in its
    config.json, or their numbers) → the classes asked about, None: those of the same name.
    ``max_length`` tokens of an input, None: what the model takes; ``stride`` and ``longest_answer``
    as in `jobs.Recipe`; precision as the settings say.
    """

    model: str
    labels: Mapping[str | int, str] | None = None
    max_length: int | None = None
    stride: int = 128
    longest_answer: int = 30

    def about(self, classes: Sequence[str] | None) -> dict[str, Any]:
        """What decides its answers but for the text, without loading it; no classes: a reader."""
        reading = {"stride": self.stride, "longest_answer": self.longest_answer}
        labels = self.labels and sorted(
            [str(label), class_] for label, class_ in self.labels.items()
        )
        return {
            "model": identity.fingerprint(os.fspath(self.model)),
            "classes": classes and list(classes),
            "labels": labels,
            "max_length": self.max_length,
            "dtype": current().dtype,
            **({} if classes else reading),
        }

    def load(self, classes: Sequence[str] | None) -> Tuned:
        """The model, to be asked; no classes: a reader. Errors as `loading.headed_model`."""
        order = None
        if classes is not None:  # before the weights are read
            order = places_of_labels(loading.configuration(self.model), classes, self.labels)
        model, tokenizer, limit = loading.headed_model(
            self.model, self.max_length, reads=classes is None
        )
        recipe = Recipe(
            max_length=self.max_length,
            dtype=current().dtype,
            stride=self.stride,
            longest_answer=self.longest_answer,
        )
        device = loading.placed(model, loading.device_of(None), spread=False)
        return Tuned(model.eval(), tokenizer, limit, recipe, device, order)
