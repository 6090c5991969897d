"""Grids: a fine-tuned model asked about every pair of languages of a two-part task.

Rajaee and Monz fine-tune on one language and ask about inputs whose parts are in two: premise and
hypothesis, two sentences, context and question. `evaluate` fine-tunes (or finds fine-tuned) models
and has one `Grid` for each; `xlx.mixing` measures it.

    sets = {code: of_part(labelled.load("NLI", code, "test")) for code in ("en", "de", "ru")}
    job = Job("mini-xlmr", train, {"validation": validation}, Recipe(epochs=10))
    grid = evaluate([job], sets)[0]
    mixing.summary(grid.scores["accuracy"], grid.languages, grid.groups)

Each distinct text is tokenised once for the whole grid; the inputs of a row of cells are batched
together by length; every cell is stored by itself, so that a stopped grid goes on; cells with the
same text (of a model that sees one part only) are computed once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from xlx import examples, finetuning, inputs, models, questions
from xlx.examples import Examples
from xlx.finetuning import Job
from xlx.questions import Questions
from xlx.store import Store, code_version

#: What the parts of a task are called, in the order of the input's (Tables 1 to 3).
PARTS: dict[str, tuple[str, str]] = {
    "NLI": ("premise", "hypothesis"),
    "PI": ("sentence 1", "sentence 2"),
    "QA": ("context", "question"),
}

Sets = Mapping[str, Examples] | Mapping[str, Questions]


class GridError(ValueError):
    """A grid that cannot be; says which language or cell, and what to do."""


@dataclass(frozen=True)
class Grid:
    """Answers of one model to all pairs of languages.

    Attributes
    ----------
    model : str
    train : str
        The name of the training set.
    seed : int
        Of the fine-tuning; -1 for a mean over several.
    languages : tuple of str
        Of both parts: rows are the first part (premise, sentence 1, context), columns the second.
    predictions : np.ndarray
        int16 ``(L, L, n)``, classes; of questions int32 ``(L, L, n, 2)``, places in the context.
        Empty in a mean.
    scores : dict
        Name of a measure → float ``(L, L, n)`` in [0, 1]: "accuracy", or "F1" and "EM".
    labels : np.ndarray
        int64 ``(n,)``; empty for questions.
    groups : np.ndarray
        int64 ``(n,)``: examples that share a premise or a context are of one group, and resampled
        together.
    n_cut : np.ndarray
        int64 ``(L, L)``: how many pairs of a cell were cut at the maximum length; of questions,
        which are not cut, how many have a context that is read in several windows.
    """

    model: str
    train: str
    seed: int
    languages: tuple[str, ...]
    predictions: np.ndarray
    scores: dict[str, np.ndarray]
    labels: np.ndarray
    groups: np.ndarray
    n_cut: np.ndarray

    def __repr__(self) -> str:
        n = len(self.groups)
        return f"Grid({self.model}, {self.train}: {' '.join(self.languages)}, {n} examples a cell)"


def averaged(grids: Sequence[Grid]) -> Grid:
    """The mean of the scores over seeds; GridError where models, languages or examples differ."""
    if not grids:
        raise GridError("there is no grid to average")
    first = grids[0]
    for other in grids[1:]:
        alike = (
            other.model == first.model
            and other.languages == first.languages
            and np.array_equal(other.labels, first.labels)
            and np.array_equal(other.groups, first.groups)
        )
        if not alike:
            raise GridError(f"{other!r} is not a grid of the same model and examples as {first!r}")
    scores = {name: np.mean([grid.scores[name] for grid in grids], axis=0) for name in first.scores}
    return Grid(
        first.model, first.train, -1, first.languages, np.empty(0), scores, first.labels,
        first.groups, first.n_cut,
    )  # fmt: skip


def measured(
    grids: Iterable[Grid],
    measure: Callable[..., pd.DataFrame],
    score: str = "accuracy",
    **options: Any,
) -> pd.DataFrame:
    """A table of `xlx.mixing` for each grid, one below the other, with its ``model``.

    ``measure`` is `mixing.cells`, `summary` or another that takes scores, ``languages`` and
    ``groups``; ``options`` go to it.
    """
    return pd.concat(
        [
            measure(
                grid.scores[score], languages=grid.languages, groups=grid.groups, **options
            ).assign(model=grid.model)
            for grid in grids
        ],
        ignore_index=True,
    )


def evaluate(
    jobs: Sequence[Job],
    sets: Sets,
    *,
    part: int = 1,
    device: str | None = None,
    n_jobs: int | None = None,
    threads: int = 1,
    store: Store | None = None,
    progress: bool = True,
) -> list[Grid]:
    """Fine-tune every model and ask its last checkpoint about every pair of languages.

    Parameters
    ----------
    jobs : sequence of Job
        What is fine-tuned, on what, how; see `finetuning.finetune`. Its recipe is also that of the
        asking (length, windows, precision).
    sets : mapping
        Language → parallel examples (or questions) to ask, aligned; two languages or more.
    part : {0, 1}
        Which part the sentences are, where the sets are of single sentences (hypothesis-only: 1).
        The other part's language then changes nothing.
    device, n_jobs, threads, store, progress
        As for `finetuning.finetune_all`.

    Raises
    ------
    GridError
        Fewer than two languages, or none of a set's examples.
    ExamplesError, QuestionsError
        Sets that are not parallel, with the language and the place.
    FinetuningError, ValueError
        As `finetuning.finetune`; as `inputs.windows` for a question that leaves no room.
    """
    for job in jobs:
        _check_kind(job, sets)
    languages = tuple(sets)
    store = store or Store()
    cells, places = _cells(sets, part)
    own = {"device": device, "threads": threads}
    runs = finetuning.finetune_all(
        jobs, **own, n_jobs=n_jobs, weights=True, store=store, progress=progress
    )
    keys, missing = [], []
    for job, run in zip(jobs, runs, strict=True):
        key = finetuning.run_key(job, **own)
        keys.append({name: _cell_key(key, cell) for name, cell in cells.items()})
        left = [name for name in cells if store.load_arrays("grids", keys[-1][name]) is None]
        folder = finetuning.weights_folder(key, store) / f"step-{run.steps[-1]:06d}"
        if left:
            missing += _rows_of_cells(job, folder, cells, keys[-1], left, places)
    _fill(missing, models.device_of(device), n_jobs, threads, store, progress)
    found = []
    for job, own_keys in zip(jobs, keys, strict=True):
        answers = {name: store.load_arrays("grids", key) for name, key in own_keys.items()}
        found.append(_grid(job, sets, cells, places, answers, languages))
    return found


# --- cells ----------------------------------------------------------------------------------------


def _check_kind(job: Job, sets: Sets) -> None:
    one = next(iter(sets.values()), None)
    if type(one) is not type(job.train):
        raise GridError(f"{job.name} is not trained on what the grid asks: examples or questions")
    if isinstance(one, Examples):
        if one.classes != job.train.classes:
            raise GridError(f"{one.name} and {job.train.name} have different classes")
        if (one.second is None) != (job.train.second is None):
            raise GridError(f"{one.name} and {job.train.name} are not both of pairs or sentences")


def _cells(sets: Sets, part: int) -> tuple[dict[str, Any], np.ndarray]:
    """Each distinct cell by its text's hash, and which stands where: str ``(L, L)``."""
    if len(sets) < 2:
        raise GridError(
            f"a grid needs two languages or more, and the sets are of {', '.join(sets) or 'none'}"
        )
    one = next(iter(sets.values()))
    reading = isinstance(one, Questions)
    (questions.aligned if reading else examples.aligned)(sets)
    if not len(one):
        raise GridError(f"{one.name} has no examples: every cell would be empty")
    found, places = {}, np.empty((len(sets), len(sets)), dtype=object)
    for i, first in enumerate(sets.values()):
        for j, second in enumerate(sets.values()):
            if reading:
                cell = questions.crossed(first, second)
            elif one.second is None:
                cell = (first, second)[part]
            else:
                cell = examples.crossed(first, second)
            # answers are not part of what is asked, and so not of what is stored
            places[i, j] = name = cell.text_hash()
            found.setdefault(name, cell)
    return found, places


def _cell_key(run: Mapping[str, Any], cell: Examples | Questions) -> dict[str, Any]:
    """What the predictions of a cell depend on, besides what those of the run do."""
    return {"run": run, "cell": cell.text_hash(), "code": code_version(_asked, _pairs)}


@dataclass(frozen=True)
class _Block:
    """Cells that are asked together: their texts are tokenised already."""

    job: Job
    folder: Path
    cells: list[Any]
    keys: list[dict[str, Any]]
    texts: dict[str, inputs.Text]
    pattern: inputs.Pattern


def _rows_of_cells(
    job: Job,
    folder: Path,
    cells: Mapping[str, Any],
    keys: Mapping[str, dict[str, Any]],
    missing: Sequence[str],
    places: np.ndarray,
) -> list[_Block]:
    """The missing cells of a model, a row of the grid at a time."""
    tokenizer = models.tokenizer(str(folder))
    pattern = inputs.Pattern.of(tokenizer)
    reading = isinstance(job.train, Questions)
    asked = [text for name in missing for text in _texts(cells[name])]
    texts = inputs.tokenised(tokenizer, asked)
    if reading:  # contexts with the places of their tokens
        read = [text for name in missing for text in cells[name].contexts]
        texts |= inputs.tokenised(tokenizer, read, spans=True)
    blocks, left = [], set(missing)
    for row in places:
        own = [name for name in dict.fromkeys(row) if name in left]
        left -= set(own)
        if own:
            needed = {text for name in own for text in _texts(cells[name])}
            blocks.append(
                _Block(
                    job,
                    folder,
                    [cells[name] for name in own],
                    [keys[name] for name in own],
                    {text: texts[text] for text in needed},
                    pattern,
                )
            )
    return blocks


def _texts(cell: Examples | Questions) -> Iterable[str]:
    """The texts of a cell; one may come more than once."""
    if isinstance(cell, Questions):
        return (*cell.contexts, *cell.questions)
    return cell.first if cell.second is None else (*cell.first, *cell.second)


# --- asking ---------------------------------------------------------------------------------------


def _fill(
    blocks: Sequence[_Block],
    device: torch.device,
    n_jobs: int | None,
    threads: int,
    store: Store,
    progress: bool,
) -> None:
    """Ask all blocks, side by side on a CPU, and store every cell."""
    if n_jobs is None:
        n_jobs = max(1, joblib.cpu_count() // threads) if device.type == "cpu" else 1
    total = sum(len(block.cells) for block in blocks)
    disable = None if progress and total else True
    with tqdm(total=total, desc="asking", unit=" cells", disable=disable) as bar:
        calls = [(block, device, threads, store) for block in blocks]
        if min(n_jobs, len(blocks)) < 2:
            done = (_answer(*call) for call in calls)
        else:
            done = finetuning.side_by_side(_answer, calls, n_jobs)
        for n in done:
            bar.update(n)


def _answer(block: _Block, device: torch.device, threads: int, store: Store) -> int:
    """Ask one block and store its cells; how many they are."""
    with finetuning.threads_of(device, threads):
        for key, (predicted, n_cut) in zip(block.keys, _asked(block, device), strict=True):
            store.save_arrays("grids", key, {"predicted": predicted, "n_cut": np.array(n_cut)})
    return len(block.cells)


@lru_cache(maxsize=1)
def _loaded(folder: Path, n_classes: int | None, limit: int | None, device: str) -> tuple:
    """The last fine-tuned model that was asked: the blocks of one come one behind the other."""
    if n_classes is None:
        model, tokenizer, limit = models.reader(folder, 0, limit)
    else:
        model, tokenizer, limit = models.classifier(folder, n_classes, 0, limit)
    return finetuning.placed(model, torch.device(device)), tokenizer, limit


def _asked(block: _Block, device: torch.device) -> list[tuple[np.ndarray, int]]:
    """Predictions of each cell of a block, and how many of its inputs were too long.

    The inputs of all cells are batched by length together.
    """
    recipe, train = block.job.recipe, block.job.train
    n_classes = None if isinstance(train, Questions) else len(train.classes)
    model, tokenizer, limit = _loaded(block.folder, n_classes, recipe.max_length, str(device))
    ends = np.cumsum([len(cell) for cell in block.cells])[:-1]
    if n_classes is not None:
        rows, too_long = [], []
        for cell in block.cells:
            own, cut = _pairs(cell, block, limit)
            rows += own
            too_long.append(cut)
        found = finetuning.predicted_classes(model, tokenizer, rows, device, recipe.dtype)
        return list(zip(np.split(found, ends), too_long, strict=True))
    laid, contexts = [], []
    for cell in block.cells:
        for context, question in zip(cell.contexts, cell.questions, strict=True):
            read, asked = block.texts[context], block.texts[question].ids
            laid += inputs.windows(
                block.pattern, len(contexts), asked, read.ids, limit, recipe.stride
            )
            contexts.append(read)
    found = finetuning.predicted_spans(model, tokenizer, laid, contexts, device, recipe)
    several = np.bincount([window.example for window in laid], minlength=len(contexts)) > 1
    too_long = [int(own.sum()) for own in np.split(several, ends)]
    return list(zip(np.split(found, ends), too_long, strict=True))


def _pairs(
    cell: Examples, block: _Block, limit: int | None
) -> tuple[list[dict[str, list[int]]], int]:
    """Model inputs of a cell, put together from tokenised texts and cut as the tokenizer would.

    With how many were cut.
    """
    alone = cell.second is None
    special = sum(map(len, block.pattern.alone)) if alone else block.pattern.n_special
    rows, n_cut = [], 0
    for one, other in zip(cell.first, cell.first if alone else cell.second, strict=True):
        first, second = block.texts[one].ids, None if alone else block.texts[other].ids
        sizes = len(first), 0 if alone else len(second)
        if limit is not None and sum(sizes) > limit - special:
            n, m = inputs.kept(*sizes, limit - special)
            first, second = first[:n], None if alone else second[:m]
            n_cut += 1
        rows.append(block.pattern.row(first, second))
    return rows, n_cut


# --- what is answered -----------------------------------------------------------------------------


def _grid(
    job: Job,
    sets: Sets,
    cells: Mapping[str, Any],
    places: np.ndarray,
    answers: Mapping[str, Mapping[str, np.ndarray]],
    languages: tuple[str, ...],
) -> Grid:
    one = next(iter(sets.values()))
    predictions, n_cut = (
        np.array([[answers[name][what] for name in row] for row in places])
        for what in ("predicted", "n_cut")
    )
    if isinstance(one, Questions):
        labels = np.empty(0, dtype=np.int64)
        by_name = {
            name: reading_scores(cells[name], _said(cells[name], found["predicted"]))
            for name, found in answers.items()
        }
        scores = {
            measure: np.array([[by_name[name][k] for name in row] for row in places])
            for k, measure in enumerate(("F1", "EM"))
        }
    else:
        labels = one.labels
        scores = {"accuracy": (predictions == labels).astype(np.float64)}
    return Grid(
        model=job.model,
        train=job.train.name,
        seed=job.seed,
        languages=languages,
        predictions=predictions,
        scores=scores,
        labels=labels,
        groups=groups_of(one),
        n_cut=n_cut,
    )


def groups_of(one: Examples | Questions) -> np.ndarray:
    """Which examples hang together, int64 ``(n,)``: those with the same first text or context."""
    if isinstance(one, Questions):
        return one.paragraphs
    return np.unique(one.first, return_inverse=True)[1]


def _said(cell: Questions, found: np.ndarray) -> list[str]:
    """The answers at places ``(n, 2)`` in the contexts."""
    return [text[start:end] for text, (start, end) in zip(cell.contexts, found, strict=True)]


def reading_scores(cell: Questions, said: Sequence[str]) -> np.ndarray:
    """F1 and exact match of each answer, ``(2, n)``, by the words of the context's language."""
    return np.array(
        [
            [
                score(one, own, cell.context_language)
                for one, own in zip(said, cell.answers, strict=True)
            ]
            for score in (questions.f1, questions.exact_match)
        ]
    )
