"""What the commands share: options, settings, the estimate of time, how they end."""

import difflib
import hashlib
import html
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from typer import Argument, Option

from xlx.report.inputs import (
    ReportedModel,
    code_of,
    reported_model,
    reported_text,
    saved_vectors,
    series_models,
)
from xlx.report.page import framed, write_page
from xlx.report.tables import Tables
from xlx.results import checks, paths, work
from xlx.results.deferred import deferred
from xlx.results.settings import current, settings
from xlx.subjects import folders, loading, states
from xlx.subjects.identity import ModelNotFoundError, download_ahead, local_folder, public_models
from xlx.subjects.pooling import POOLINGS
from xlx.text.examples import Examples
from xlx.text.parallel import ParallelCorpus
from xlx.text.questions import Questions

torch = deferred("torch")

MODEL = Argument(help="a shipped model, a folder, a hub name")
PIVOT = Option(None, help="the language that others are aligned with (en)")
_TEXT = "a corpus, or a folder with a file per language"
#: What says how a model reads, or which.
_OF_MODELS = ("pooling", "special_tokens", "quantization", "sentences", "checkpoints", "tasks")


def listed(text: str | None) -> list[str] | None:
    """The parts of "de,en,ja"; None of None."""
    return text and [part.strip() for part in text.split(",") if part.strip()]


@dataclass(kw_only=True)
class Command:
    """A command: the fields of a subclass are its options, its docstring its help; it can `run`."""

    languages: str | None = Option(None, help="codes or names, as de,en,japanese; by default all")
    device: str | None = Option(None, help="cpu, cuda, cuda:1")
    dtype: str | None = Option(None, help="float32, tf32, bfloat16, float16; auto: fastest")
    token_budget: int | None = Option(None, help="most tokens of a batch (4096)")

    @property
    def codes(self) -> list[str] | None:
        """The languages by their codes; None: those that there are."""
        return self.languages and [*map(code_of, listed(self.languages))]

    def check(self) -> None:
        """ValueError for options that cannot be, before anything is done."""


#: What changes no number, or stands in the name of a report.
_OF_THE_MACHINE = (
    *("model", "models", "estimate", "out", "no_notebook"),
    *("device", "device_map", "token_budget"),
)


def usual(option: Field) -> object:
    """The value of an option where none is given."""
    return getattr(option.default, "default", option.default)


@dataclass(kw_only=True)
class Writing(Command):
    """A command that takes a while, and writes."""

    estimate: bool = Option(False, "--estimate", help="say what it takes, and stop")
    out: Path | None = Option(None, help="folder of what is written; in build/ by default")

    def check(self) -> None:
        """ValueError, too, where nothing can be written."""
        super().check()
        folder = self.folder("")
        there = next(path for path in (folder, *folder.resolve().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise ValueError(f"--out {folder}: nothing can be written in {there}: name a folder")

    def folder(self, label: str) -> Path:
        """Where it writes: a folder for each model, text and set of options that change numbers."""
        chosen = {
            x.name: str(value)
            for x in fields(self)
            if x.name not in _OF_THE_MACHINE and (value := getattr(self, x.name)) != usual(x)
        }
        digest = hashlib.sha256(repr(chosen).encode("utf-8", "surrogatepass")).hexdigest()[:6]
        name = f"{file_name(label)}-{digest}" if chosen else file_name(label)
        return self.out or paths.BUILD / "reports" / name


@dataclass(kw_only=True)
class Asking(Writing):
    """A command that asks a model labelled examples."""

    model: str = MODEL

    def check(self) -> None:
        """As all; and say what will be fetched."""
        super().check()
        tell_downloads([self.model])

    def minutes(self, n: float, sets: Mapping[str, Examples | Questions]) -> float:
        """About how long the model takes to read so many of the examples."""
        texts = {}
        for code, part in sets.items():
            first, second = (getattr(part, name) for name in part.rows[:2])
            texts[code] = [*map(" ".join, zip(first, second or first, strict=True))]
        model = reported_model(self.model)
        return n * reading_seconds(model, texts) / 60


@dataclass(kw_only=True)
class TextCommand(Command):
    """A command that reads parallel text."""

    text: str | None = Option("flores200-100", help=_TEXT)
    tasks: list[Path] = Option((), help="scores by language: lm-evaluation-harness, CSV, folders")
    pooling: str | None = Option(None, help=f"{', '.join(POOLINGS)}; by default the model's")
    special_tokens: bool = Option(False, "--special-tokens", help="pool the tokenizer's, too")
    device_map: str | None = Option(None, help="auto: spread over devices, disk (accelerate)")
    quantization: str | None = Option(None, help="8bit or 4bit (needs CUDA, bitsandbytes)")

    @property
    def files(self) -> list[Path]:
        """The files of scores, wherever they are read."""
        return [file.resolve() for file in self.tasks]

    @property
    def how(self) -> dict[str, object]:
        """How a model is read, as `reported_model` takes it."""
        names = "pooling", "special_tokens", "quantization"
        return {name: getattr(self, name) for name in names}

    def check(self) -> None:
        """ValueError, too, for a pooling that there is not."""
        super().check()
        checks.one_of(self.pooling or POOLINGS[0], POOLINGS, "--pooling")


@dataclass(kw_only=True)
class Reading(TextCommand, Writing):
    """A command that reads parallel text, and writes."""

    sentences: int | None = Option(None, help="how many; all by default")


#: What a command tells of a model: sentences, and tables by name; what its page shows.
Result, Parts = tuple[Sequence[str], Tables], Sequence[str | pd.DataFrame]


@dataclass(kw_only=True)
class Measuring(Reading):
    """A command that measures a model, each checkpoint of a run, or vectors of a file."""

    usual_text: ClassVar[str]
    seed: ClassVar[int | None] = None  # draws the sentences; None: the first ones, repeated or not
    model: str | None = Argument(None, help="a shipped model, a hub name, a folder, also of a run")
    text: str | None = Option(None, help=f"{_TEXT}; of vectors none is needed")
    states: Path | None = Option(None, help=".npz of vectors by language in place of a model")
    checkpoints: bool = Option(False, "--checkpoints", help="those in a folder that is a model")

    def check(self) -> None:
        """ValueError, too, where not one thing is to be measured, or is to be read otherwise."""
        super().check()
        if (self.model is None) == (self.states is None):
            raise ValueError("give one of both: a MODEL, or --states FILE with vectors")
        if self.states is not None:
            self.refuse(_OF_MODELS, "of models, and not of vectors (--states)")
        checks.whole(self.sentences, "--sentences", least=2)

    def refuse(self, names: Sequence[str], why: str) -> None:
        """ValueError where one of these options is given."""
        for name in names:
            if getattr(self, name):
                raise ValueError(f"--{name.replace('_', '-')} is {why}: leave one out")

    def models(self) -> tuple[list[ReportedModel], list[str]]:
        """The model, or the checkpoints of a run by step; notes of those that are broken."""
        tell_downloads([self.model])
        models, notes = series_models(self.model, self.checkpoints, **self.how)
        return models or [reported_model(self.model, **self.how)], notes

    def measured(self) -> tuple[list[ReportedModel], ParallelCorpus, list[str]]:
        """What is measured, on which text, and notes; says both."""
        if self.states is not None:
            model, corpus, notes = saved_vectors(self.states, self.text, self.codes)
            models = [model]
        else:
            models, notes = self.models()
            how = self.codes, self.sentences, self.seed
            corpus, more = reported_text(self.text or self.usual_text, *how)
            notes += more
        print(
            f"{', '.join(x.label for x in models)}: {len(corpus)} sentences of {corpus.name} in "
            f"{len(corpus.languages)} languages ({corpus.source}); "
            f"its vector is {models[-1].vector}"
        )
        return models, corpus, notes

    def write(
        self,
        models: Sequence[ReportedModel],
        notes: Sequence[str],
        measure: Callable[[ReportedModel], Result],
        parts: Callable[[Tables], Parts],
    ) -> None:
        """Print sentences on all models; write their tables, and a page of both and of ``parts``.

        ``measure``: sentences and tables of a model; those of checkpoints get their step in front.
        A broken checkpoint is named; the error of another model, or where all are broken.
        """
        lines, broken, several = [], [], {}
        for model in models:
            try:
                sentences, tables = measure(model)
            except (ValueError, OSError) as error:
                if model.step is None or (model is models[-1] and not several):
                    raise
                broken.append(f"left out: {model.label}: {error}")
                continue
            lines += sentences
            for name, table in tables.items():
                if model.step is not None:
                    table.insert(0, "step", model.step)
                several.setdefault(name, []).append(table)
        tables = {name: pd.concat(x, ignore_index=True) for name, x in several.items()}
        label, name = models[0].label, type(self).__name__
        if models[0].step is not None:
            label = Path(self.model).resolve().name
        lines += [*notes, *broken]
        title, file = f"{name.upper()} of {label}", self.folder(label) / f"{name.lower()}.html"
        if file.is_file() and html.escape(title) not in file.read_text("utf-8"):
            raise ValueError(f"{file} is of another model: name another folder with --out")
        path = write_page(file, framed(title, *lines, *parts(tables)), tables)
        print(*lines, path, sep="\n")


def tell_downloads(names: Sequence[str]) -> None:
    """Say what will be fetched from the hub."""
    for name in names:
        here = name == "none" or name in public_models() or local_folder(name)
        if not here and (ahead := download_ahead(name)):
            print(ahead, flush=True)


def file_name(name: str) -> str:
    """A name that a file can have; of one that had to be changed, its hash makes it another."""
    plain = re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:80]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return plain if plain == name else f"{plain}-{digest}".lstrip("-")


def reading_seconds(model: ReportedModel, sentences: Mapping[str, Sequence[str]]) -> float:
    """How long the model takes for a sentence, from a batch of all languages."""
    encoder, ways, languages = loading.load(model.name), [(model.pooling, False)], 16 * [*sentences]
    few = [sentences[x][i % len(sentences[x])] for i, x in enumerate(languages[:16])]
    for _ in range(2):  # the first time things have to be set up
        began = time.perf_counter()
        states.pooled_states(encoder, ways, None, [few], "position ")
        seconds = time.perf_counter() - began
    return seconds / len(few)


def estimate(models: Sequence[ReportedModel], corpus: ParallelCorpus, readers: int) -> str:
    """What it takes to read a text with so many models where nothing was read before, in a line.

    By the first model, which reads a batch. ValueError where the states do not fit into memory.
    """
    encoder, n, n_languages = loading.load(models[0].name), len(corpus), len(corpus.languages)
    seconds = n * n_languages * reading_seconds(models[0], corpus.sentences)
    states = 4e-9 * n * n_languages * (encoder.n_layers + 1) * encoder.dim
    # As they are, centred and of length 1, and what scoring takes for each pair of sentences.
    memory = 3 * states + 14e-9 * n_languages * n**2
    free = (folders.free_bytes(torch.device("cpu")) or np.inf) / 1e9
    if memory > free:
        raise ValueError(
            f"the states of {n} sentences in {n_languages} languages need {memory:.1f} GB of "
            f"memory and {free:.1f} GB are free: take fewer --sentences or --languages"
        )
    return (
        f"about {readers * seconds / 60:.1f} minutes to read the text, then scores; {memory:.2f} "
        f"GB of memory beside the weights, {readers * states:.2f} GB of disk in {current().cache}; "
        "less where it was computed before. Stop it at any time: it goes on."
    )


def foresee(n: int, what: str, minutes: Callable[[], float]) -> None:
    """Say how many of what are computed, and how long that takes where they are any."""
    print(f"computing {n} {what}: about {minutes():.1f} minutes" if n else "nothing is computed")


def tried(command: Command, name: str) -> int:
    """Run a command as it is set; 0, 2 after a sentence of what is wrong, 130 if stopped."""
    names = ("device", "device_map", "dtype", "token_budget")
    try:
        if command.dtype == "auto":
            command.dtype = loading.fastest_type(command.device)
        chosen = {x: value for x in names if (value := getattr(command, x, None)) is not None}
        command.check()  # before hours are spent
        with settings(**chosen):
            return command.run() or 0
    except (ValueError, OSError, work.MissingResultError) as error:
        return ended(f"{name}: {_nearest_model(error) or error}")
    except (MemoryError, torch.OutOfMemoryError):
        short = "out of memory: take --dtype bfloat16, or fewer --sentences, --languages"
        return ended(f"{name}: {short}")
    except KeyboardInterrupt:
        return ended("\nstopped: the same command goes on from here", 130)


def ended(sentence: str, code: int = 2) -> int:
    """The exit code, after a sentence."""
    print(sentence, file=sys.stderr)
    return code


def _nearest_model(error: Exception) -> str:
    """Of a model that there is not, which is called nearly like it; "" where none is."""
    asked = isinstance(error, ModelNotFoundError) and re.search(r"no model '(.+?)'", str(error))
    known = [*(folder.name for folder in paths.MODELS.glob("*/")), *public_models()]
    near = difflib.get_close_matches(asked[1], known, 1, 0.7) if asked else ()
    return f"there is no model {asked[1]}: do you mean {near[0]}?" if near else ""
