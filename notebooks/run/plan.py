"""What the notebooks of a profile will fine-tune, told before anything runs.

    python -m notebooks.run.plan [notebook ...] --profile paper [--rate 15]    # make plan

The statements of a notebook are executed under the profile's parameters, while `finetune_all` and
`grid` note what they are given, and no other result is computed: statements that need one, or what
such a statement would have bound, end there. A run that several notebooks ask for is counted once,
where it comes first; one that was computed before is counted, too. No module declares its runs
beside: six declarations would take more words than `attempted`, `instead` and `Declared.read`
have, and would say again what the cells say.

Exact are runs, checkpoints, examples learnt, and the predictions asked at most (every checkpoint is
in a run's windows). Hours are estimated: by the tokens of `SAMPLE` examples of each set
(`CHARACTERS`); by two operations for each token and weight of the layers, and those of attention,
where a step takes three times as many as asking (xTune six); and by ``--rate``, of the machine, in
TFLOP/s. Embeddings, heads, the optimiser and padding are left out.

A data set that is not here has the size that it is published with (`SIZES`), and the text of its
shipped part, repeated. A model that is not here is as large as its makers say (`PRINTED_SIZES`).
"""

import argparse
import ast
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd

from notebooks.run import profiles
from xlx.experiment import grids
from xlx.results import paths, work
from xlx.subjects import finetuning, identity, loading
from xlx.subjects.jobs import Job
from xlx.text import labelled, parallel, questions
from xlx.text.examples import Rows
from xlx.text.files import TextError
from xlx.text.questions import Questions

#: Examples in a language as published, by source and split; what XNLI is learnt from is MultiNLI.
SIZES = {
    "xnli train": 392_702,
    "xnli validation": 2_490,
    "xnli test": 5_010,
    "pawsx train": 49_401,
    "pawsx validation": 2_000,
    "pawsx test": 2_000,
    "squad train": 87_599,
    "squad validation": 10_570,
    "flores200-dev": 997,
}
#: Whose text is read where that of a data set is not here.
SHIPPED = {"xnli": "xnli-whole", "pawsx": "pawsx", "squad": "tydiqa"}
#: Characters that a subword of XLM-R has, in the shipped parts of XNLI and PAWS-X.
CHARACTERS = {"zh": 1.5, "ja": 1.6, "ko": 2.1, "others": 3.9}
#: Notebooks that fine-tune, as a profile has them.
TUNING = (
    *("igap-1-decomposition", "igap-2-ranking", "igap-3-models"),
    *("mixing-1-nli", "mixing-2-paraphrase", "mixing-3-controls"),
)
#: Examples of a set whose tokens are estimated; TFLOP/s of a card of 2020 in TF32.
SAMPLE, RATE = 512, 15


# --- what is declared -----------------------------------------------------------------------------


class Unanswered(Exception):
    """A statement needs a result, and none is computed."""


def attempted(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements, also those in loops, each of which may fail: ``failed(error)`` is called then."""
    handlers = ast.parse("try: pass\nexcept Exception as error: failed(error)").body[0].handlers
    for statement in body:
        for part in ("body", "orelse"):
            if inner := getattr(statement, part, None):
                setattr(statement, part, attempted(inner))
    return [ast.Try([statement], handlers, [], []) for statement in body]


@contextlib.contextmanager
def instead(changes: Mapping[Callable, Callable]) -> Iterator[None]:
    """Within, all modules have other functions in the place of these; also those loaded within."""

    def put(new: Mapping[int, Callable]) -> None:
        for module in [x for x in sys.modules.values() if isinstance(x, ModuleType)]:
            for name, value in list(vars(module).items()):
                if id(value) in new:
                    setattr(module, name, new[id(value)])

    put({id(old): other for old, other in changes.items()})
    try:
        yield
    finally:
        put({id(other): old for old, other in changes.items()})


@dataclass
class Declared:
    """What notebooks declare: ``runs``, and a sentence for each thing that is not here.

    A run is a row of numbers: ``steps`` and ``checkpoints``, of what is only asked 0; examples
    ``learnt`` (of questions their windows) and ``asked`` at most; ``read``: tokens of all passes,
    and of one input.
    """

    notebook: str = ""
    runs: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    _known: set[tuple] = field(default_factory=set)
    _tokens: dict[tuple, tuple[Rows, np.ndarray]] = field(default_factory=dict)

    def read(self, notebook: str, values: Mapping[str, Any]) -> None:
        """Note the runs of a notebook with these parameters; relative paths are from here."""
        self.notebook = notebook
        cells = profiles.read_notebook(profiles.notebook_path(notebook)).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        at = next(i for i, x in enumerate(code) if "parameters" in x.metadata.get("tags", []))
        scope: dict[str, Any] = {"failed": self._failed, "display": lambda *_: None}
        exec(code[at].source, scope)
        scope |= values
        tree = ast.parse("\n".join(cell.source for cell in code[at + 1 :]))
        tree.body = attempted(tree.body)
        changes = {
            finetuning.finetune_all: self._finetune_all,
            grids.grid: self._grid,
            labelled.load_labelled: partial(self._loaded, labelled.load_labelled),
            questions.load_questions: partial(self._loaded, questions.load_questions),
            parallel.load: partial(self._loaded, parallel.load),
            parallel._archive: partial(_fetched, parallel._archive),
            work.results: partial(_unanswered),  # each its own, as each is put back
            loading.load: partial(_unanswered),
        }
        with instead(changes), contextlib.redirect_stdout(None):
            exec(compile(ast.fix_missing_locations(tree), notebook, "exec"), scope)

    def _failed(self, error: Exception) -> None:
        """Note data that a statement lacks; else it needs what no run has given."""
        if isinstance(error, identity.ModelNotFoundError):
            return  # which is said of each that is fine-tuned
        if isinstance(error, FileNotFoundError | TextError):
            self.lacks(error)

    def _finetune_all(self, jobs: Sequence[Job], *, weights: bool = False) -> list:
        """Note the jobs; there are no runs."""
        for job in jobs:
            job.check()
            sets = map(_key, job.evaluations.values())
            if self._new("run", *_learnt(job), *sets, job.sparing):
                self._add(job, weights)
        return []

    def _grid(self, jobs: Sequence[Any], sets: Any = None) -> list:
        """Note the jobs, and the cells that they are asked; there are no grids."""
        if sets is None:
            return self._finetune_all(jobs)
        cells = grids._cells(sets)[0]
        for job in jobs:
            learnt = _learnt(job)
            new = [x for name, x in cells.items() if self._new("cell", *learnt, name)]
            if new and ("weights", *learnt) not in self._known:
                self._add(job, weights=True)
            self._note(job, 0, [(x, 1) for x in new])
        return []

    def _loaded(self, load: Callable, *about: Any, **options: Any) -> Any:
        """What a reader of data reads; where that is not here, what stands in for it."""
        try:
            return load(*about, **options)
        except (FileNotFoundError, TextError) as error:
            rows = stand_in(load, about, options)
            if rows is None:
                raise
            self.lacks(error)
            return rows

    def _add(self, job: Job, weights: bool) -> None:
        """Note a run, a model that is not here, and whether the last weights are kept."""
        if reason := model_missing(job.model):
            self.lacks(reason)
        if weights:
            self._known.add(("weights", *_learnt(job)))
        sparing, recipe, (n, _) = job.sparing, job.recipe, self._inputs(job, job.train)
        steps, last = recipe.checkpoint_steps(n), recipe.n_steps(n)
        often = sparing.every if sparing and sparing.every else np.inf
        whole = sum(sparing is None or step == last or step % often == 0 for step in steps)
        asked = []
        for name, part in job.evaluations.items():
            near = sparing and (
                name == sparing.decides or (sparing.windows and name in sparing.inside)
            )
            asked.append((part, len(steps) if near else whole))
        self._note(job, n, asked)

    def _note(self, job: Job, n: int, asked: Sequence[tuple[Rows, int]]) -> None:
        """Note a row: n examples are learnt, and sets asked, each so often."""
        recipe, passes = job.recipe, [*asked]
        if n:
            passes.append((job.train, recipe.epochs * (6 if recipe.algorithm == "xtune" else 3)))
        sets = [(times, *self._inputs(job, rows)) for rows, times in passes]
        self.runs.append(
            {
                "notebook": self.notebook,
                "model": job.model,
                "steps": recipe.n_steps(n),
                "checkpoints": len(recipe.checkpoint_steps(n)) if n else 0,
                "learnt": recipe.epochs * n,
                "asked": sum(len(x) * times for x, times in asked),
                "read": [(times * inputs * tokens, tokens) for times, inputs, tokens in sets],
            }
        )

    def _inputs(self, job: Job, rows: Rows) -> tuple[int, float]:
        """How many inputs examples make (of questions windows), and tokens of one in the mean."""
        limit, stride = job.recipe.max_length or 512, job.recipe.stride
        key, n = (limit, stride, id(rows)), min(SAMPLE, len(rows))
        if key not in self._tokens:  # which keeps the rows, and so their ids
            few = rows.at(np.linspace(0, len(rows) - 1, n).astype(int))
            self._tokens[key] = rows, estimated_tokens(few, limit, stride)
        tokens = self._tokens[key][1]
        return round(len(rows) * len(tokens) / n), float(tokens.mean())

    def _new(self, *key: Any) -> bool:
        """Whether this was not noted before; notes it."""
        new = key not in self._known
        self._known.add(key)
        return new

    def lacks(self, reason: object) -> None:
        """Note what is missing, once."""
        sentence = profiles.first_line(reason).replace("../", "")
        if sentence not in self.missing:
            self.missing.append(sentence)


def _key(rows: Rows) -> int:
    """A number that is the same for the same examples."""
    if isinstance(rows, Questions):
        return hash((rows.contexts, rows.questions, rows.answers))
    return hash((rows.first, rows.second, rows.labels.tobytes()))


def _learnt(job: Job) -> tuple:
    """What decides the weights of a run, as `jobs.learning`, the model by its name."""
    return job.model, _key(job.train), job.recipe, job.seed


def _fetched(read: Callable, name: str) -> Path:
    """The archive of a corpus if it was fetched before; DownloadError where it was not."""
    if any((paths.CACHE / "downloads").glob("flores200*")):
        return read(name)
    raise parallel.DownloadError(f"{name} is not in cache/downloads: its first use fetches it")


def _unanswered(*_: Any, **__: Any) -> NoReturn:
    raise Unanswered


def stand_in(load: Callable, about: tuple, options: Mapping[str, Any]) -> Any:
    """As many rows as a data set is published with, of shipped text; None: it is shipped."""
    if load.__module__ == parallel.__name__:
        if about[0] not in SIZES:
            return None
        few, n = load("flores200-100", *about[1:], **options), SIZES[about[0]]
        again = [(i, f" {i}" if i >= len(few) else "") for i in range(n)]
        texts = {
            code: tuple(sentences[i % len(few)] + more for i, more in again)
            for code, sentences in few.sentences.items()
        }
        return replace(few, sentences=texts, ids=tuple(map(str, range(n))), domains=("",) * n)
    if not options.get("path"):
        return None
    if load.__module__ == questions.__name__:
        (source, language, *split), task = about, ()
        split = split[0] if split else "test"
    else:
        task, (language, split) = about[:1], about[1:]
        source = options.get("source") or {"NLI": "xnli", "PI": "pawsx"}[task[0]]
    if f"{source} {split}" not in SIZES:
        return None
    shipped = SHIPPED[source]
    part = "test" if shipped == "xnli-whole" and split != "train" else split
    few = load(*task, language, part, source=shipped) if task else load(shipped, language, part)
    n = SIZES[f"{source} {split}"]
    return replace(few.at(i % len(few) for i in range(n)), ids=tuple(map(str, range(n))))


def estimated_tokens(rows: Rows, limit: int, stride: int) -> np.ndarray:
    """Tokens of each input by `CHARACTERS`, four of them special; of questions, of each window."""
    reads = isinstance(rows, Questions)
    sides = (rows.contexts, rows.questions) if reads else (rows.first, rows.second or ())
    tokens = np.full(len(rows), 4)
    for side, code in zip(sides, rows.languages, strict=True):
        part = [len(text) / CHARACTERS.get(code, CHARACTERS["others"]) for text in side]
        tokens[: len(part)] += np.ceil(part).astype(int)
    if not reads:
        return np.minimum(tokens, limit)
    more = np.ceil(np.maximum(tokens - limit, 0) / (limit - stride)).astype(int)
    return np.minimum(np.repeat(tokens, 1 + more), limit)


# --- models ---------------------------------------------------------------------------------------


class Size(NamedTuple):
    """Of a Transformer's layers: how many, and their widths."""

    layers: int
    width: int
    inner: int

    @property
    def weights(self) -> int:
        """Of one layer."""
        return 4 * self.width**2 + 2 * self.width * self.inner

    def operations(self, tokens: float, length: float) -> float:
        """Of a forward pass over so many tokens, in inputs of this length."""
        return self.layers * tokens * (2 * self.weights + 4 * self.width * length)


#: Of models that may not be here, as their makers print them.
PRINTED_SIZES = {
    "multilingual-e5-small": Size(12, 384, 1536),
    "google-bert/bert-base-multilingual-cased": Size(12, 768, 3072),
    "FacebookAI/xlm-mlm-tlm-xnli15-1024": Size(12, 1024, 4096),
    "FacebookAI/xlm-roberta-base": Size(12, 768, 3072),
    "microsoft/infoxlm-base": Size(12, 768, 3072),
    "FacebookAI/xlm-roberta-large": Size(24, 1024, 4096),
}


def _base(model: identity.Name) -> str:
    """The name of a model, or that of which it is the untrained twin; a checkpoint's folder."""
    twin = identity.twin_parts(model)
    return twin[0] if twin else str(getattr(model, "path", None) or model)


@cache
def model_missing(model: identity.Name) -> str | None:
    """A sentence if a model, or what it is the twin of, is not here; nothing is fetched."""
    from huggingface_hub import constants, try_to_load_from_cache

    base = _base(model)
    try:
        if not (folder := identity.local_folder(base)):
            place = {"cache_dir": constants.HF_HUB_CACHE}
            config = try_to_load_from_cache(base, "config.json", **place)
            folder = Path(config).parent if isinstance(config, str) else None
        if folder:
            identity.model_files(base, folder)
            return None
    except (identity.ModelNotFoundError, ValueError) as error:
        return str(error)
    return (
        f"{base} is not in the hub's cache: its first use fetches it, or now `hf download {base}`"
    )


def size_of(model: identity.Name) -> Size:
    """By the config here, else by `PRINTED_SIZES`; of a model of neither nothing is counted."""
    if model_missing(model):
        return PRINTED_SIZES.get(_base(model), Size(0, 0, 0))
    config = loading.configuration(_base(model)).get_text_config()
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    return Size(config.num_hidden_layers, config.hidden_size, inner)


# --- tables ---------------------------------------------------------------------------------------


def table(runs: Sequence[Mapping[str, Any]], rate: float = RATE) -> pd.DataFrame:
    """One row per notebook and model, and their sum. ``rate``: in TFLOP/s.

    ``runs``, ``checkpoints``; millions of examples ``learnt``, and ``asked`` at most; ``hours``.
    """
    rows = pd.DataFrame(runs)
    rows["model"] = rows["model"].map(identity.title)
    rows.insert(2, "runs", (rows["steps"] > 0).astype(int))
    rows[["learnt", "asked"]] /= 1e6
    rows["hours"] = [
        sum(size_of(run["model"]).operations(*read) for read in run["read"]) / (3.6e15 * rate)
        for run in runs
    ]
    rows = rows.groupby(["notebook", "model"], sort=False).sum().drop(columns=["steps", "read"])
    rows.loc[("all", ""), :] = rows.sum()
    return rows.astype({"runs": int, "checkpoints": int})


def main(argv: list[str] | None = None) -> int:
    """Print the plan; return 0, 1 where something is missing, or 2 where there is no plan."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run.plan")
    parser.add_argument("notebooks", nargs="*", help="their names; none: all that fine-tune")
    parser.add_argument("--profile", default="mini", help="a name in notebooks/profiles/")
    parser.add_argument("--rate", type=float, default=RATE, help=f"TFLOP/s, {RATE} unless given")
    options = parser.parse_args(argv)
    declared = Declared()
    try:
        chosen = profiles.read_profile(options.profile)["notebooks"] or TUNING
        for stem in options.notebooks or [x for x in TUNING if x in chosen]:
            values = profiles.values_for(stem, options.profile)
            with contextlib.chdir(paths.NOTEBOOKS):
                declared.read(stem, values)
    except (profiles.NotebookError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    if declared.runs:
        print(table(declared.runs, options.rate).to_string(float_format="{:,.2f}".format))
        print(f"hours: at {options.rate:g} TFLOP/s; millions of examples learnt and asked at most")
    else:
        print("nothing is fine-tuned")
    for sentence in declared.missing:
        print(f"missing: {sentence}")
    return int(bool(declared.missing))


if __name__ == "__main__":
    sys.exit(main())
