"""What the notebooks of a profile will fine-tune, told before anything runs.

    python -m notebooks.run.plan [notebook ...] --profile paper [--rate 15]    # make plan

Of each notebook that fine-tunes, the statements that declare its runs are executed, with what they
need, under the profile's parameters. `finetune_all` and `grid` are replaced by functions that note
what they are given. A run that several notebooks ask for is counted once, where it comes first; one
that was computed before is counted, too.

Exact are runs, checkpoints, examples learnt, and the predictions asked at most (every checkpoint is
in a run's windows). Hours are estimated: by the tokens of `SAMPLE` examples of each set, with the
model's tokenizer or, where it is not here, by `CHARACTERS`; by two operations for each token and
weight of the layers, and those of attention, where a step takes three times as many as asking
(xTune six); and by ``--rate``, of the machine, in TFLOP/s. Embeddings, heads, the optimiser and
padding are left out.

X-Probe's small encoders (`mapped_encoders`) are counted by sizes; a step of each is timed here. So
are the states that it probes (`probed_states`), by a probe.

A data set that is not here has the size that it is published with (`SIZES`), and the text of its
shipped part, repeated. A model that is not here is as large as its makers say (`PRINTED_SIZES`).
"""

import argparse
import ast
import contextlib
import inspect
import sys
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial, reduce
from pathlib import Path
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from notebooks.run import profiles
from xlx.experiment import grids
from xlx.measures import probes
from xlx.measures.sentence_tasks import PROBING_TASKS
from xlx.results import paths
from xlx.results.executors import one_thread
from xlx.subjects import finetuning, identity, loading, predicting
from xlx.subjects.jobs import Job
from xlx.subjects.states import tokenise
from xlx.text import labelled, parallel, questions
from xlx.text.examples import Rows
from xlx.text.files import TextError
from xlx.text.questions import Questions
from xlx.text.trees import load_trees

#: Where functions lie that may declare runs.
OWN = (paths.NOTEBOOKS, Path(grids.__file__).parents[1])
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
    *("igap-1-decomposition", "igap-2-ranking", "igap-3-models", "igap-4-directions"),
    *("mixing-1-nli", "mixing-2-paraphrase", "mixing-3-qa", "mixing-4-controls"),
    "mixing-6-pairs",
)
#: The one that trains encoders from nothing, and the one that probes models.
MAPPING, PROBING = "xprobe-3-mapping", "xprobe-2-transformers"
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
        cells = grids._cells(first, first if second is None else second)[0]
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
            found = stand_in(load, about, options)
            if found is None:
                raise
            self.lacks(error)
            return found

    def _add(self, job: Job, weights: bool) -> None:
        """Note a run, a model that is not here, and whether the last weights are kept."""
        if said := self._away(job.model):
            self.lacks(said)
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
        base, limit, stride = _base(job.model), job.recipe.max_length, job.recipe.stride
        key, n = (base, limit, stride, id(rows)), min(SAMPLE, len(rows))
        if key not in self._counted:  # which keeps the rows, and so their ids
            few = rows.at(np.linspace(0, len(rows) - 1, n).astype(int))
            count = guessed_tokens if self._away(base) else partial(counted_tokens, base)
            self._counted[key] = rows, count(few, limit, stride)
        found = self._counted[key][1]
        return round(len(rows) * len(found) / n), float(found.mean())

    def _new(self, *key: Any) -> bool:
        """Whether this was not noted before; notes it."""
        new = key not in self._known
        self._known.add(key)
        return new

    def lacks(self, said: object) -> None:
        """Note what is missing, once."""
        sentence = profiles.first_line(said).replace("../", "")
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


#: Of models on the hub, as their makers print them.
PRINTED_SIZES = {
    "google-bert/bert-base-multilingual-cased": Size(12, 768, 3072),
    "FacebookAI/xlm-mlm-tlm-xnli15-1024": Size(12, 1024, 4096),
    "FacebookAI/xlm-roberta-base": Size(12, 768, 3072),
    "microsoft/infoxlm-base": Size(12, 768, 3072),
    "FacebookAI/xlm-roberta-large": Size(24, 1024, 4096),
}


#: GB that is fetched of them, as the hub lists it; a twin is made of the same files.
DOWNLOADS = {"google-bert/bert-base-multilingual-cased": 0.71, "FacebookAI/xlm-roberta-base": 1.12}


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
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    return Size(config.num_hidden_layers, config.hidden_size, inner)


# --- tables ---------------------------------------------------------------------------------------


def table(runs: Sequence[Mapping[str, Any]], rate: float = RATE) -> pd.DataFrame:
    """One row per notebook and model, and their sum. ``rate``: in TFLOP/s.

    ``runs``, ``checkpoints``; millions of examples ``learnt``, and ``asked`` at most; ``hours``.
    """
    found = pd.DataFrame(runs)
    found["model"] = found["model"].map(identity.title)
    found.insert(2, "runs", (found["steps"] > 0).astype(int))
    found[["learnt", "asked"]] /= 1e6
    found["hours"] = [
        sum(size_of(run["model"]).operations(*of) for of in run["read"]) / (3.6e15 * rate)
        for run in runs
    ]
    found = found.groupby(["notebook", "model"], sort=False).sum().drop(columns=["steps", "read"])
    found.loc[("all", ""), :] = found.sum()
    return found.astype({"runs": int, "checkpoints": int})


def mapped_encoders(values: Mapping[str, Any]) -> pd.DataFrame:
    """One row per encoder of `MAPPING`, and their sum.

    ``trained`` (English, by each text, by noise), millions of ``lines`` in all epochs, ``hours`` if
    training ends as early as it can (three epochs), and ``most hours``, by a step here; GB of
    ``weights`` on disk, and of ``vectors`` of a text in memory; ``probes`` with control tasks.
    """
    from xprobe import encoders
    from xprobe_3_mapping import MappingStudy

    own = _values(MAPPING) | values
    study = MappingStudy(**{x.name: own[x.name] for x in fields(MappingStudy) if x.name in own})
    n, few = own["batch_size"], labelled.load_labelled("NLI", "en", "train", source="xnli-dev")
    pairs = SIZES.get(f"{own['nli_train']} train") or len(study.learnt)
    maps = len(study.settings) + len(own["noise"])
    probed = 2 * (1 + len(study.settings)) + len(study.codes) + 2  # without control: two corpora
    shape = n, round(np.mean([len(x.split()) for x in few.first])), study.size.words
    rows = {}
    for name in study.encoders:
        net = encoders.encoder(name, study.size, 0).to(loading.device_of(None))
        seconds = min(timeit.repeat(partial(_stepped, net, shape), number=1, repeat=3))
        epochs = np.array([own["epochs"], own["map_epochs"]])
        lines = epochs * [2 * pairs, own["n_parallel"] * maps]
        hours = lines / n * seconds / 3600
        rows[name] = {
            "trained": 1 + maps,
            "lines": lines.sum() / 1e6,
            "hours": (hours * np.minimum(1, 3 / epochs)).sum(),
            "most hours": hours.sum(),
            "weights": 4e-9 * (1 + maps) * sum(x.numel() for x in net.parameters()),
            "vectors": 4e-9 * own["n_parallel"] * net.width,
            "probes": len(PROBING_TASKS) * probed,
        }
    found = pd.DataFrame(rows)
    return found.assign(all=found.sum(axis=1)).T


@one_thread()
def _stepped(net: torch.nn.Module, shape: tuple[int, int, int]) -> float:
    """Forwards and backwards through an encoder, with a batch of words that are zeros."""
    first = next(net.parameters())
    lengths = torch.full(shape[:1], shape[1], device=first.device)
    net(torch.zeros(shape, device=first.device), lengths).sum().backward()
    return first.grad.sum().item()  # a GPU is done only now


def probed_states(values: Mapping[str, Any], rate: float = RATE) -> pd.DataFrame:
    """One row per model of `PROBING` and per untrained twin, and what all take.

    ``sentences`` read at most, in millions, as tasks and folds may have others; ``states`` of all
    languages in GB of memory, one model at a time; ``disk``: GB of what is fetched, as published;
    ``hours`` of reading, by the rate; ``probe hours``: of all probes with their control tasks and
    online codes, by the pace of one here, whose epochs are others.
    """
    own = _values(PROBING) | values
    models = [name for name in (own["public"], *own["models"]) if name]
    twins = [own["public"] or own["models"][0], *([own["models"][0]] if own["public"] else [])]
    texts = [" ".join(tree.tokens) for tree in load_trees("en", "pud")]
    tokens = 2 + sum(map(len, texts)) / CHARACTERS["others"] / len(texts)
    cells = len(own["languages"]) * len(own["tasks"]) * own["folds"]
    sentences = cells * own["most"] + len(own["languages"]) * len(texts)
    rows = {}
    for name in (*models, *(f"{x}, untrained" for x in twins)):
        size = size_of(base := name.removesuffix(", untrained"))
        layers, pace = size.layers + 1, _probe_seconds(size.width, own)
        rows[identity.title(name)] = {
            "sentences": sentences / 1e6,
            "states": 4e-9 * sentences * layers * size.width,
            "disk": DOWNLOADS.get(base, 0) if name == base else 0,
            "hours": size.operations(sentences * tokens, tokens) / (3.6e15 * rate),
            "probe hours": pace * cells * own["most"] * layers / 3600,
        }
    found = pd.DataFrame(rows)
    return found.assign(all=found.sum(axis=1).where(found.index != "states", found.max(axis=1))).T


def _values(notebook: str) -> dict[str, Any]:
    """The parameters of a notebook as it stands."""
    read = profiles.read_notebook(profiles.notebook_path(notebook))
    return {x: y.value for x, y in profiles.parameters(read, notebook).items()}


@one_thread()
def _probe_seconds(width: int, values: Mapping[str, Any]) -> float:
    """Seconds that an example of a layer takes: a probe, its control task and its online code."""
    rng, n = np.random.default_rng(0), SAMPLE
    states, labels = rng.standard_normal((1, n, width), dtype=np.float32), rng.integers(2, size=n)
    split, options = probes.Split(states, labels), {"hidden": values["hidden"]}
    options |= {"seeds": values["probe_seeds"], "max_epochs": 5}

    def all_three() -> None:
        for ask in (probes.fit, probes.fit, probes.code_length):
            ask(split, split, 2, **options)

    return timeit.timeit(all_three, number=1) / n


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
        for stem in options.notebooks or [x for x in (*TUNING, PROBING, MAPPING) if x in chosen]:
            values = profiles.values_for(stem, options.profile)
            with contextlib.chdir(paths.NOTEBOOKS):
                if stem == MAPPING:
                    print(mapped_encoders(values).to_string(float_format="{:,.2f}".format))
                    print("lines: millions; weights, vectors: GB; hours: by a step of each here")
                elif stem == PROBING:
                    states = probed_states(values, options.rate)
                    print(states.to_string(float_format="{:,.2f}".format))
                    print("sentences: millions; states, disk: GB; probe hours: by a probe here")
                    for said in filter(None, map(model_missing, values.get("models", ()))):
                        found.lacks(said)
                else:
                    found.read(stem, values)
        if found.runs:
            print(table(found.runs, options.rate).to_string(float_format="{:,.2f}".format))
            print("learnt, asked at most: millions of examples", end="; ")
    except (profiles.NotebookError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"hours: at {options.rate:g} TFLOP/s")
    for sentence in found.missing:
        print(f"missing: {sentence}")
    return int(bool(found.missing))


if __name__ == "__main__":
    sys.exit(main())
