"""What the commands have in common: options, how they are read, settings, files, time to read."""

import argparse
import difflib
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from xlx.report.inputs import ReportedModel, reported_model
from xlx.results import paths, work
from xlx.results.deferred import deferred
from xlx.results.settings import settings
from xlx.subjects import folders, loading, states
from xlx.subjects.identity import download_ahead, local_folder, public_models
from xlx.subjects.pooling import POOLINGS
from xlx.text.parallel import ParallelCorpus

torch = deferred("torch")


def listed(text: str) -> list[str]:
    """The parts of "de,en,ja"."""
    return [part.strip() for part in text.split(",") if part.strip()]


#: Option → how it is read; a command chooses by name.
_OPTIONS: dict[str, dict[str, Any]] = {
    "--text": {"help": "a corpus, or a folder with one file per language"},
    "--languages": {"type": listed, "help": "codes, as de,en,ja; all by default"},
    "--pivot": {"help": "the language that others are aligned with (en)"},
    "--tasks": {
        "nargs": "+",
        "metavar": "FILE",
        "help": "scores by language, or a folder: lm-evaluation-harness, CSV",
    },
    "--sentences": {"type": int, "help": "how many; all by default"},
    "--pooling": {"choices": POOLINGS, "help": "of a sentence's tokens; by default its own"},
    "--special-tokens": {"action": "store_true", "help": "pool those of the tokenizer, too"},
    "--device": {"help": "cpu, cuda, cuda:1"},
    "--device-map": {"help": "auto: spread over GPUs, memory and disk (needs accelerate)"},
    "--quantization": {"choices": [*folders.QUANTIZATIONS], "help": "needs CUDA, bitsandbytes"},
    "--dtype": {"default": "float32", "help": "float32, tf32, bfloat16 or float16"},
    "--token-budget": {"type": int, "help": "most tokens of a batch (4096)"},
    "--estimate": {"action": "store_true", "help": "say what it takes, and stop"},
    "--out": {"type": Path, "help": "folder of what is written; in build/ by default"},
}
#: Those that say how a model is read.
AS_ASKED = (
    "--pooling",
    "--special-tokens",
    "--device",
    "--device-map",
    "--quantization",
    "--dtype",
    "--token-budget",
)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence; of a mistyped option its name, and which is like it."""

    def error(self, message: str) -> NoReturn:
        """Leave with 2."""
        if mistyped := re.search(r"unrecognized arguments.* (--?\w\S*)", message):
            near = difflib.get_close_matches(mistyped[1], _OPTIONS, 1)
            meant = f": do you mean {near[0]}?" if near else ""
            message = f"there is no option {mistyped[1]}{meant}"
        print(f"{self.prog}: {message} (--help says what there is)", file=sys.stderr)
        raise SystemExit(2)


def command(
    commands: Any,
    run: Callable[[argparse.Namespace], None],
    name: str,
    told: str,
    options: Sequence[str],
    *,
    several: bool = False,
    **defaults: object,
) -> Callable[..., Any]:
    """Add a command of a model, or several, with some options; gives what adds others to it."""
    short = told.partition("\n")[0].partition(": ")[2]
    parser = commands.add_parser(
        name,
        help=short,
        description=told,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    name, many = ("models", {"nargs": "+"}) if several else ("model", {})
    parser.add_argument(name, metavar="MODEL", help="a shipped model, a folder, a hub name", **many)
    for option in options:
        parser.add_argument(option, **_OPTIONS[option])
    parser.set_defaults(run=run, **defaults)
    return parser.add_argument


def asked_model(given: argparse.Namespace) -> ReportedModel:
    """A model as the options have it: fetched, in its pooling or another, quantised."""
    tell_downloads([given.model])
    return reported_model(
        given.model,
        given.pooling,
        special_tokens=given.special_tokens,
        quantization=given.quantization,
    )


def tell_downloads(names: Sequence[str]) -> None:
    """Say what will be fetched from the hub."""
    for name in names:
        here = name == "none" or name in public_models() or local_folder(name) is not None
        if not here and (told := download_ahead(name)):
            print(told, flush=True)


def output_folder(given: argparse.Namespace, label: str) -> Path:
    """Where a command writes."""
    return given.out or paths.BUILD / "reports" / file_name(label)


def file_name(name: str) -> str:
    """A name that a file can have; of one that had to be changed, its hash makes it another."""
    plain = re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:80]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return plain if plain == name else f"{plain}-{digest}".lstrip("-")


def reading_seconds(model: ReportedModel, corpus: ParallelCorpus, encoder: Any = None) -> float:
    """How long the model takes for a sentence, from a batch of all languages."""
    encoder, n, codes = encoder or loading.load(model.name), len(corpus), corpus.languages
    for size in (2, 24):  # the first call has to set things up
        few = [corpus.sentences[codes[i % len(codes)]][i] for i in range(min(n, size))]
        began = time.perf_counter()
        states.pooled_states(encoder, [(model.pooling, False)], None, [few], "position ")
        seconds = (time.perf_counter() - began) / len(few)
    return seconds


def tried(given: argparse.Namespace, run: Callable[[argparse.Namespace], object]) -> int:
    """Run a command as the options say; 0, 2 after a sentence of what is wrong, 130 if stopped."""
    name, names = f"xlx {given.command}", ("device", "device_map", "dtype", "token_budget")
    try:
        if out := vars(given).get("out"):  # before hours are spent
            there = next(path for path in (out, *out.resolve().parents) if path.exists())
            if not there.is_dir() or not os.access(there, os.W_OK):
                raise ValueError(f"--out {out}: nothing can be written in {there}: name a folder")
        with settings(**{x: vars(given)[x] for x in names if vars(given).get(x) is not None}):
            return int(run(given) or 0)
    except (ValueError, OSError, work.MissingResultError) as error:
        said, code = f"{name}: {error}", 2
    except (MemoryError, torch.OutOfMemoryError):
        said = f"{name}: out of memory: take --dtype bfloat16, or fewer --sentences, --languages"
        code = 2
    except KeyboardInterrupt:
        said, code = "\nstopped: the same command goes on from here", 130
    print(said, file=sys.stderr)
    return code
