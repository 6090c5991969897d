"""What the notebooks of a profile will fine-tune, told before anything runs.

    python -m notebooks.run.plan [notebook ...] --profile paper [--rate 15]    # make plan

Of each notebook that fine-tunes, the statements that declare its runs are executed, with what they
need, under the profile's parameters. `finetune_all` and `grid` are replaced by functions that note
what they are given. A run that several notebooks ask for is counted once, where it comes first; one
that was computed before is counted, too.

Exact are runs, checkpoints, examples learnt, and the predictions asked at least (no checkpoint is
in a run's windows) and at most (all are). Estimated are

* tokens: by `SAMPLE` examples of each set, padded in batches, with the model's tokenizer; where it
  is not here, by `CHARACTERS`;
* operations: two for each token and weight of the layers, and those of attention; a step takes
  three times as many as asking (xTune six). Embeddings, heads, the optimiser and tokenising are
  left out;
* hours: operations by ``--rate``, of the machine, in TFLOP/s.

A data set that is not here has the size that it is published with (`SIZES`), and the text of its
shipped part, repeated. A model that is not here is as large as its makers say (`PRINTED_SIZES`).
"""

import argparse
import ast
import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from pathlib import Path
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from notebooks.run import profiles
from xlx.experiment import grids
from xlx.results import paths
from xlx.subjects import finetuning, identity, loading, predicting
from xlx.subjects.jobs import Job, Recipe
from xlx.subjects.states import tokenise
from xlx.text import labelled, parallel, questions
from xlx.text.examples import Rows
from xlx.text.files import TextError
from xlx.text.questions import Questions

#: Where functions lie that may declare runs.
OWN = (paths.NOTEBOOKS, Path(grids.__file__).parents[1])
#: Examples in a language as published, by source and split; what XNLI is learnt from is MultiNLI.
SIZES = {
    "xnli train": 392_702, "xnli validation": 2_490, "xnli test": 5_010,
    "pawsx train": 49_401, "pawsx validation": 2_000, "pawsx test": 2_000,
    "squad train": 87_599, "squad validation": 10_570, "flores200-dev": 997,
}  # fmt: skip
#: Whose text is read where that of a data set is not here.
SHIPPED = {"xnli": "xnli-whole", "pawsx": "pawsx", "squad": "tydiqa"}
#: Characters that a subword of XLM-R has, in the shipped parts of XNLI and PAWS-X.
CHARACTERS = {"zh": 1.5, "ja": 1.6, "ko": 2.1, "others": 3.9}
#: Notebooks that fine-tune, as a profile has them.
TUNING = (
    *("igap-1-decomposition", "igap-2-ranking", "igap-3-models", "igap-4-directions"),
    *("mixing-1-nli", "mixing-2-paraphrase", "mixing-3-qa", "mixing-4-controls"),
    "mixing-6-pairs",
)
#: Examples of a set whose tokens are counted; TFLOP/s of a card of 2020 in TF32.
SAMPLE, RATE = 512, 15


# --- what is declared -----------------------------------------------------------------------------


def called(node: ast.AST, scope: Mapping[str, Any]) -> Iterator[FunctionType]:
    """The functions that a piece of code calls, by what its names stand for."""
    for call in (x for x in ast.walk(node) if isinstance(x, ast.Call)):
        first, *rest = ast.unparse(call.func).split(".")
        with contextlib.suppress(KeyError, AttributeError):
            if isinstance(found := reduce(getattr, rest, scope[first]), FunctionType):
                yield found


@cache
def declares(function: FunctionType) -> bool:
    """Whether a function of the package or of the notebooks declares runs, itself or by others."""
    waiting, seen = [function], {finetuning.finetune_all, grids.grid}
    while waiting:
        if (one := waiting.pop()) in (finetuning.finetune_all, grids.grid):
            return True
        file = Path(one.__code__.co_filename)
        if one not in seen and any(file.is_relative_to(each) for each in OWN):
            seen.add(one)
            waiting += called(ast.parse(dedent(inspect.getsource(one))), one.__globals__)
    return False


def needed(body: Sequence[ast.stmt], wanted: set[str], scope: Mapping[str, Any]) -> list[ast.stmt]:
    """The statements that declare runs, and those that bind the names that these need.

    ``wanted``: names that are needed behind the body; those that are needed in it join them.
    ``scope``: what the code imports.
    """
    kept: list[ast.stmt] = []
    for statement in reversed(body):
        parts = {x: own for x in ("body", "orelse") if (own := getattr(statement, x, None))}
        inner = {part: needed(own, wanted, scope) for part, own in parts.items()}
        nodes = list(ast.walk(statement))
        runs = any(map(declares, called(statement, scope)))
        if any(inner.values()) if inner else runs or _bound(nodes) & wanted:
            for part, own in inner.items():
                setattr(statement, part, own or [ast.Pass()])
            wanted |= {x.id for x in ast.walk(statement) if isinstance(x, ast.Name)}
            kept.insert(0, statement)
    return kept


def _bound(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that a statement binds or imports, or whose parts it changes."""
    targets = [x.target for x in nodes if isinstance(x, ast.comprehension)]
    inside = {id(x) for target in targets for x in ast.walk(target)}
    stored = [x for x in nodes if isinstance(getattr(x, "ctx", None), ast.Store)]
    owners = [getattr(x, "value", x) for x in stored if id(x) not in inside]
    names = {x.id for x in owners if isinstance(x, ast.Name)}
    return names | {x.asname or x.name for x in nodes if isinstance(x, ast.alias)}


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


@dataclass(frozen=True)
class Asked:
    """A set that a run is asked: how many examples, the tokens of one, how often."""

    n: int
    tokens: float
    least: int
    most: int


@dataclass(frozen=True)
class Fine:
    """A fine-tuning; or with no ``examples`` what a fine-tuned model is asked."""

    notebook: str
    model: str
    recipe: Recipe
    asked: tuple[Asked, ...]
    examples: int = 0  #: to learn from; of questions their windows
    tokens: float = 0.0  #: of one of these, padded
    weights: bool = False  #: whether its last weights are kept

    @property
    def checkpoints(self) -> int:
        """After how many steps it is asked."""
        return len(self.recipe.checkpoint_steps(self.examples)) if self.examples else 0


@dataclass
class Declared:
    """What notebooks declare: ``runs``, and a sentence for each thing that is not here."""

    notebook: str = ""
    runs: list[Fine] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    _known: set[tuple] = field(default_factory=set)
    _counted: dict[tuple, tuple[Rows, np.ndarray]] = field(default_factory=dict)
    _away: Callable[[str], str | None] = field(default_factory=lambda: cache(model_missing))

    def read(self, notebook: str, values: Mapping[str, Any]) -> None:
        """Note the runs of a notebook with these parameters; relative paths are from here."""
        self.notebook = notebook
        cells = profiles.read_notebook(profiles.notebook_path(notebook)).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        at = next(i for i, x in enumerate(code) if "parameters" in x.metadata.get("tags", []))
        scope: dict[str, Any] = {}
        exec(code[at].source, scope)
        scope |= values
        body = ast.parse("\n".join(cell.source for cell in code[at + 1 :])).body
        known: dict[str, Any] = {}
        exec(ast.unparse([x for x in body if isinstance(x, ast.Import | ast.ImportFrom)]), known)
        own = ast.fix_missing_locations(ast.Module(needed(body, set(), known), []))
        changes = {
            finetuning.finetune_all: self._finetune_all,
            grids.grid: self._grid,
            labelled.load_labelled: partial(self._loaded, labelled.load_labelled),
            questions.load_questions: partial(self._loaded, questions.load_questions),
            parallel.load: partial(self._loaded, parallel.load),
            parallel._archive: partial(_fetched, parallel._archive),
        }
        with instead(changes):
            exec(compile(own, notebook, "exec"), scope)

    def _finetune_all(self, jobs: Sequence[Job], *, weights: bool = False) -> list:
        """Note the jobs; there are no runs."""
        for job in jobs:
            job.check()
            sets = map(_key, job.evaluations.values())
            if self._new("run", *_learnt(job), *sets, job.sparing):
                self._add(job, weights)
        return []

    def _grid(self, jobs: Sequence[Any], first: Any = None, second: Any = None) -> list:
        """Note the jobs, and the cells that they are asked; there are no grids."""
        if first is None:
            return self._finetune_all(jobs)
        second = first if second is None else second
        sides = [[_sides(x) for x in sets.values()] for sets in (first, second)]
        rows = sides[0] if len(sides[0][0]) == 2 else [("",)]  # of single texts one row of cells
        cells = {(a[0], b[-1]) for a in rows for b in sides[1]}
        n = len(next(iter(first.values())))
        for job in jobs:
            learnt = _learnt(job)
            new = sum(self._new("cell", *learnt, *cell) for cell in cells)
            if new and ("weights", *learnt) not in self._known:
                self._add(job, weights=True)
            tokens = float(np.mean([self._tokens(job, x)[1] for x in first.values()]))
            asked = (Asked(new * n, tokens, 1, 1),)
            self.runs.append(Fine(self.notebook, job.model, job.recipe, asked))
        return []

    def _loaded(self, load: Callable, *about: Any, **options: Any) -> Any:
        """What a reader of data reads; where that is not here, what stands in for it."""
        try:
            return load(*about, **options)
        except (FileNotFoundError, TextError) as error:
            found = stand_in(load, about, options)
            if found is None:
                raise
            self._lacks(error)
            return found

    def _add(self, job: Job, weights: bool) -> None:
        """Note a run, and a model that is not here."""
        sparing, recipe, (examples, tokens) = job.sparing, job.recipe, self._rows(job)
        if said := self._away(job.model):
            self._lacks(said)
        if weights:
            self._known.add(("weights", *_learnt(job)))
        steps, last = recipe.checkpoint_steps(examples), recipe.n_steps(examples)
        often = sparing.every if sparing and sparing.every else np.inf
        whole = sum(sparing is None or step == last or step % often == 0 for step in steps)
        asked = []
        for name, part in job.evaluations.items():
            least = len(steps) if sparing and name == sparing.decides else whole
            near = sparing and sparing.windows and name in sparing.inside
            most = len(steps) if near else least
            asked.append(Asked(len(part), self._tokens(job, part)[1], least, most))
        run = Fine(self.notebook, job.model, recipe, tuple(asked), examples, tokens, weights)
        self.runs.append(run)

    def _rows(self, job: Job) -> tuple[int, float]:
        """Of a training set: examples, or windows of questions, and tokens of one, padded."""
        found, size, n = self._tokens(job, job.train)[0], job.recipe.batch_size, len(job.train)
        order = finetuning.epoch_order(found, size, job.recipe.length_pool, (0,))
        batches = [found[order[i : i + size]] for i in range(0, len(order), size)]
        padded = sum(x.max() * len(x) for x in batches) / len(found)
        return round(n * len(found) / min(SAMPLE, n)), padded

    def _tokens(self, job: Job, rows: Rows) -> tuple[np.ndarray, float]:
        """Tokens of each input made of some examples, and how many an example has in the mean."""
        base, limit, stride = _base(job.model), job.recipe.max_length, job.recipe.stride
        key, n = (base, limit, stride, id(rows)), min(SAMPLE, len(rows))
        if key not in self._counted:  # which keeps the rows, and so their ids
            few = rows.at(np.linspace(0, len(rows) - 1, n).astype(int))
            count = guessed_tokens if self._away(base) else partial(counted_tokens, base)
            self._counted[key] = rows, count(few, limit, stride)
        found = self._counted[key][1]
        return found, float(found.sum() / n)

    def _new(self, *key: Any) -> bool:
        """Whether this was not noted before; notes it."""
        new = key not in self._known
        self._known.add(key)
        return new

    def _lacks(self, said: object) -> None:
        sentence = profiles.first_line(said).replace("../", "")
        if sentence not in self.missing:
            self.missing.append(sentence)


def _sides(rows: Rows) -> tuple[int, ...]:
    """A number for each part of what is asked, the same for the same text."""
    reads = isinstance(rows, Questions)
    parts = (rows.contexts, rows.questions) if reads else (rows.first, rows.second)
    return tuple(hash(part) for part in parts if part is not None)


def _key(rows: Rows) -> int:
    """A number that is the same for the same examples."""
    gold = rows.answers if isinstance(rows, Questions) else rows.labels.tobytes()
    return hash((*_sides(rows), gold))


def _learnt(job: Job) -> tuple:
    """What decides the weights of a run, as `jobs.learning`, the model by its name."""
    return job.model, _key(job.train), job.recipe, job.seed


def _fetched(read: Callable, name: str) -> Path:
    """The archive of a corpus if it was fetched before; DownloadError where it was not."""
    if any((paths.CACHE / "downloads").glob("flores200*")):
        return read(name)
    raise parallel.DownloadError(f"{name} is not in cache/downloads: its first use fetches it")


def stand_in(load: Callable, about: tuple, options: Mapping[str, Any]) -> Any:
    """As many rows as a data set is published with, of shipped text; None: it is shipped."""
    if load.__module__ == parallel.__name__:
        if about[0] not in SIZES:
            return None
        few, n = load("flores200-100", *about[1:], **options), SIZES[about[0]]
        again = [(i, f" {i}" if i >= len(few) else "") for i in range(n)]
        texts = {
            code: tuple(own[i % len(few)] + more for i, more in again)
            for code, own in few.sentences.items()
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


def counted_tokens(model: str, rows: Rows, limit: int | None, stride: int) -> np.ndarray:
    """Tokens of each input, by the tokenizer of a model; of questions, of each window."""
    words = loading.tokenizer(model)
    if isinstance(rows, Questions):
        laid = predicting.windows(words, rows.questions, rows.contexts, limit, stride)
        return np.array([len(x.row["input_ids"]) for x in laid])
    sides = [side for side in (rows.first, rows.second) if side is not None]
    return np.array([len(x) for x in tokenise(words, *sides, limit=limit)[0]["input_ids"]])


def guessed_tokens(rows: Rows, limit: int | None, stride: int) -> np.ndarray:
    """Tokens of each input by `CHARACTERS`, four of them special; of questions, of each window."""
    reads = isinstance(rows, Questions)
    sides = (rows.contexts, rows.questions) if reads else (rows.first, rows.second or ())
    tokens = np.zeros(len(rows), dtype=int)
    for side, code in zip(sides, rows.languages, strict=True):
        found = [len(text) / CHARACTERS.get(code, CHARACTERS["others"]) for text in side]
        tokens[: len(found)] += np.ceil(found).astype(int)
    limit, tokens = limit or 512, tokens + 4
    if not reads:
        return np.minimum(tokens, limit)
    more = np.ceil(np.maximum(tokens - limit, 0) / (limit - stride)).astype(int)
    return np.minimum(np.repeat(tokens, 1 + more), limit)


# --- models ---------------------------------------------------------------------------------------


class Size(NamedTuple):
    """Of a Transformer: its layers, and the rows of its table of subwords."""

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int

    @property
    def weights(self) -> int:
        """Of one layer."""
        return 4 * self.width**2 + 2 * self.width * self.inner

    @property
    def n_bytes(self) -> int:
        """Of all weights, in float32."""
        return 4 * (self.layers * self.weights + self.vocabulary * self.width)

    def operations(self, tokens: float, length: float) -> float:
        """Of a forward pass over so many tokens, in inputs of this length."""
        return self.layers * tokens * (2 * self.weights + 4 * self.width * length)


#: Of models on the hub, as their makers print them.
PRINTED_SIZES = {
    "google-bert/bert-base-multilingual-cased": Size(12, 768, 12, 3072, 119_547),
    "FacebookAI/xlm-mlm-tlm-xnli15-1024": Size(12, 1024, 8, 4096, 95_000),
    "FacebookAI/xlm-roberta-base": Size(12, 768, 12, 3072, 250_002),
    "microsoft/infoxlm-base": Size(12, 768, 12, 3072, 250_002),
    "FacebookAI/xlm-roberta-large": Size(24, 1024, 16, 4096, 250_002),
}


def _base(model: str) -> str:
    """The name of a model, or that of which it is the untrained twin."""
    twin = identity.twin_parts(model)
    return twin[0] if twin else model


def model_missing(model: str) -> str | None:
    """A sentence if a model, or what it is the twin of, is not here; nothing is fetched."""
    from huggingface_hub import constants, try_to_load_from_cache

    try:
        if not (folder := identity.local_folder(_base(model))):
            place = {"cache_dir": constants.HF_HUB_CACHE}
            config = try_to_load_from_cache(_base(model), "config.json", **place)
            folder = Path(config).parent if isinstance(config, str) else None
        if folder:
            identity.model_files(model, folder)
            return None
    except (identity.ModelNotFoundError, ValueError) as error:
        return str(error)
    said = "is not in the hub's cache: its first use fetches it, or now"
    return f"{_base(model)} {said} `hf download {_base(model)}`"


def size_of(model: str) -> Size:
    """By the config here, else by `PRINTED_SIZES`; ModelNotFoundError where neither has it."""
    if said := model_missing(model):
        if (base := _base(model)) not in PRINTED_SIZES:
            raise identity.ModelNotFoundError(said)
        return PRINTED_SIZES[base]
    config = loading.configuration(_base(model)).get_text_config()
    width, inner = config.hidden_size, getattr(config, "intermediate_size", None)
    heads, rows = config.num_attention_heads, config.vocab_size
    return Size(config.num_hidden_layers, width, heads, inner or 4 * width, rows)


# --- tables ---------------------------------------------------------------------------------------


def table(runs: Sequence[Fine], rate: float = RATE) -> pd.DataFrame:
    """One row per notebook and model, and their sum. ``rate``: in TFLOP/s.

    ``runs``, ``checkpoints``; millions of examples ``learnt``, and ``asked`` at least and at
    ``most``; ``hours``, and ``most hours`` if all windows are hit; GB of last weights on disk.
    """
    rows = []
    for run in runs:
        size, passes = size_of(run.model), 6 if run.recipe.algorithm == "xtune" else 3
        learnt = run.recipe.epochs * run.examples
        row = {
            "notebook": run.notebook, "model": identity.title(run.model),
            "runs": int(run.examples > 0), "checkpoints": run.checkpoints, "learnt": learnt / 1e6,
        }  # fmt: skip
        step = passes * size.operations(learnt * run.tokens, run.tokens)
        for often, asked, hours in (("least", "asked", "hours"), ("most", "most", "most hours")):
            sets = [(x.n * getattr(x, often), x.tokens) for x in run.asked]
            operations = step + sum(size.operations(n * tokens, tokens) for n, tokens in sets)
            row[asked] = sum(n for n, _ in sets) / 1e6
            row[hours] = operations / (1e12 * rate) / 3600
        rows.append({**row, "weights": run.weights * size.n_bytes / 1e9})
    found = pd.DataFrame(rows).groupby(["notebook", "model"], sort=False).sum()
    found.loc[("all", ""), :] = found.sum()
    return found.astype({"runs": int, "checkpoints": int})


def main(argv: list[str] | None = None) -> int:
    """Print the plan; return 0, 1 where something is missing, or 2 where there is no plan."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run.plan")
    parser.add_argument("notebooks", nargs="*", help="their names; none: all that fine-tune")
    parser.add_argument("--profile", default="mini", help="a name in notebooks/profiles/")
    parser.add_argument("--rate", type=float, default=RATE, help=f"TFLOP/s, {RATE} unless given")
    options = parser.parse_args(argv)
    sys.path.insert(0, str(paths.NOTEBOOKS))
    found = Declared()
    try:
        chosen = profiles.read_profile(options.profile)["notebooks"] or TUNING
        for stem in options.notebooks or [x for x in TUNING if x in chosen]:
            with contextlib.chdir(paths.NOTEBOOKS):
                found.read(stem, profiles.values_for(stem, options.profile))
        rows = table(found.runs, options.rate) if found.runs else pd.DataFrame()
        print(rows.to_string(float_format="{:,.2f}".format))
    except (profiles.NotebookError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    rate = f"hours: at {options.rate:g} TFLOP/s"
    print(f"learnt, asked, most: millions of examples; weights: GB; {rate}")
    for sentence in found.missing:
        print(f"missing: {sentence}")
    return int(bool(found.missing))


if __name__ == "__main__":
    sys.exit(main())
