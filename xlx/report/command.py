"""The command line: ``xlx report MODEL``, from a model to a report.

    xlx report path/or/hub-name [ANOTHER ...] [--text FOLDER] [--languages de,en,ja] [--quick]

It says what it will do and what that takes, and does it. What is computed is kept as it comes: a
run that was stopped goes on where it was when it is started again.
"""

import argparse
import dataclasses
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import xlx
from xlx.report import inputs
from xlx.report.inputs import QUICK, QUICK_LANGUAGES, ReportedModel
from xlx.report.page import model_index, report_page
from xlx.report.sentences import answers_of, undefined_layers
from xlx.report.tables import FEW_LABELS, ProbeSizes, report_tables, scores_of_tasks
from xlx.results import checks, paths, store, work
from xlx.results.settings import current, settings
from xlx.subjects import folders, loading, states
from xlx.subjects.identity import download_ahead, local_folder
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

_QUICKLY = f"{QUICK} sentences, {len(QUICK_LANGUAGES)} languages if none are named: wide intervals"
#: Sentences of the batch that is timed.
_TIMED = 64
#: What is left beside the page: folder, options and text in, the path of what was left out.
Leave = Callable[[Path, argparse.Namespace, ParallelCorpus], Path | None]


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="xlx", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="from a model to a report")
    add = report.add_argument
    add("models", nargs="+", metavar="MODEL", help="a shipped model, a folder, a hub name")
    add("--text", default="wmt24pp", help="a corpus, or a folder with a file a language")
    add("--languages", type=_listed, help="codes, as de,en,ja; all by default")
    add("--pivot", help="the language that others are aligned with (en)")
    add("--reference", type=_listed, help="models to compare with, or none")
    add("--tasks", nargs="+", metavar="FILE", help="scores by language: lm-evaluation-harness, CSV")
    add("--probe", action="store_true", help="parts of speech and topics, too")
    add("--quick", action="store_true", help=_QUICKLY)
    add("--sentences", type=int, help="how many, drawn at random; all by default")
    add("--device", help="cpu, cuda, cuda:1")
    add("--dtype", default="float32", help="float32 or bfloat16")
    add("--out", type=Path, help="folder of the report; build/reports/<model> by default")
    add("--no-notebook", dest="notebook", action="store_false", help="leave no executed notebook")
    add("--estimate", action="store_true", help="say what it takes, and stop")
    return parser.parse_args(given)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def main(given: Sequence[str] | None = None, leave: Leave | None = None) -> int:
    """Run the command; 0, 2 after a sentence of what is wrong, 130 where it was stopped.

    ``leave`` is called when the page is written, if the options ask for a notebook.
    """
    options = arguments(given)
    for stream in (sys.stdout, sys.stderr):  # names are shown on whatever terminal
        stream.reconfigure(errors="backslashreplace")
    try:
        with settings(device=options.device, dtype=options.dtype):
            report_on(options, leave)
        return 0
    except (ValueError, OSError, work.MissingResultError) as error:
        said, code = f"xlx report: {error}", 2
    except (MemoryError, torch.OutOfMemoryError):
        said = "xlx report: out of memory: take --dtype bfloat16, or fewer --sentences, --languages"
        code = 2
    except KeyboardInterrupt:
        said, code = "\nstopped: the same command goes on from here", 130
    print(said, file=sys.stderr)
    return code


def report_on(options: argparse.Namespace, leave: Leave | None = None) -> None:
    """Say what will be done, do it and write it."""
    began = time.monotonic()
    for name in [*options.models, *(x for x in options.reference or () if x != "none")]:
        if local_folder(name) is None and (told := download_ahead(name)):
            print(told, flush=True)
    models, references = inputs.reported_models(options.models, options.reference)
    n = QUICK if options.quick else None
    if options.sentences is not None:
        checks.whole(options.sentences, "--sentences", least=3)  # to leave one out
        n = options.sentences
    corpus, notes = inputs.reported_text(options.text, options.languages, n)
    if options.quick and options.languages is None:
        codes = inputs.quick_languages(corpus, options.pivot)
        corpus, notes = inputs.reported_text(options.text, codes, n)
    pivot, tasks = inputs.pivot_of(corpus, options.pivot), None
    if options.tasks:
        tasks, more = scores_of_tasks(options.tasks, models, corpus, pivot)
        notes += more
    named, beside = (", ".join(x.label for x in group) for group in (models, references))
    print(f"{named}: {len(corpus)} sentences of {corpus.name} in {len(corpus.languages)} "
          f"languages, beside {beside or 'no other model'}")  # fmt: skip
    print(*(f"{x.label}: its vector is {x.vector}" for x in models), sep="\n")
    print(estimate(models, references, corpus))
    if options.estimate:
        return

    def tell(step: object) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {step}", flush=True)

    probes = (FEW_LABELS if options.quick else ProbeSizes()) if options.probe else None
    tables = report_tables(
        models, corpus, pivot=pivot, references=references, tasks=tasks, probes=probes, tell=tell
    )
    notes += undefined_layers(tables)
    about = {
        "models": {
            x.label: {
                "kind": x.kind, "pooling": x.pooling, "vector": x.vector,
                "fingerprint": x.fingerprint,
            }
            for x in models
        },
        "references": [x.label for x in references],
        "text": corpus.name, "source": corpus.source, "licence": corpus.licence,
        "languages": {code: corpus.text_hash(code) for code in corpus.languages},
        "sentences": len(corpus), "documents": len(set(parallel.documents(corpus))),
        "pivot": pivot, "quick": options.quick, "dtype": options.dtype,
        "made": f"xlx {xlx.__version__}, {datetime.now(UTC):%Y-%m-%d}",
    }  # fmt: skip
    folder = options.out or paths.BUILD / "reports" / _plain("+".join(about["models"]))
    tell(write_report(folder, tables, about, notes))
    if options.notebook and leave and (left := leave(folder, options, corpus)):
        tell(left)


def _plain(name: str) -> str:
    """A name that a file can have; of one that had to be changed, its hash makes it another."""
    plain = re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:80]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return plain if plain == name else f"{plain}-{digest}".lstrip("-")


def estimate(
    models: Sequence[ReportedModel], references: Sequence[ReportedModel], corpus: ParallelCorpus
) -> str:
    """What the report takes where nothing was computed before, in a line.

    By the first model, which reads a batch: every model reads the text once, and so does the
    untrained twin of each to report on. ValueError where the states do not fit into memory.
    """
    encoder, n, n_languages = loading.load(models[0].name), len(corpus), len(corpus.languages)
    batch = [corpus.sentences[corpus.languages[i % n_languages]][i] for i in range(min(n, _TIMED))]
    for _ in range(2):  # the first call has to set things up
        began = time.perf_counter()
        ways = [(models[0].pooling, False)]
        states.pooled_states(encoder, ways, None, [batch], "position ")
        reading = (time.perf_counter() - began) / len(batch)
    readers = 2 * len(models) + len(references)
    held = 4e-9 * n * n_languages * (encoder.n_layers + 1) * encoder.dim
    # As they are, centred and of length 1, and what scoring takes for each pair of sentences.
    memory = 3 * held + 14e-9 * n_languages * n**2
    free = (folders.free_bytes(torch.device("cpu")) or np.inf) / 1e9
    if memory > free:
        raise ValueError(
            f"the states of {n} sentences in {n_languages} languages need {memory:.1f} GB of "
            f"memory and {free:.1f} GB are free: take fewer --sentences or --languages"
        )
    return (
        f"about {readers * n * n_languages * reading / 60:.1f} minutes to read the text, then "
        f"scores; {memory:.2f} GB of memory beside the weights, {readers * held:.2f} GB of disk in "
        f"{current().cache}; less where it was computed before. Stop it at any time: it goes on."
    )


def write_report(
    folder: Path, tables: dict[str, pd.DataFrame], about: dict[str, object],
    notes: Sequence[str] = (),
) -> Path:  # fmt: skip
    """Write page, tables, ``report.json`` and ``model-index-*.md``; returns the page's path.

    Raises `store.StoreError` where the disk is full.
    """
    answers = [answer for model in about["models"] for answer in answers_of(tables, model)]
    written = {}
    for name, table in tables.items():
        written[f"tables/{name}.parquet"] = table.to_parquet(index=False)
        written[f"tables/{name}.csv"] = table.to_csv(index=False).encode()
    said = {**about, "notes": list(notes), "answers": [dataclasses.asdict(x) for x in answers]}
    written["report.json"] = json.dumps(said, ensure_ascii=False, indent=1).encode()
    for model in about["models"]:
        name = "model-index" + f"-{_plain(model)}" * (len(about["models"]) > 1)
        card = model_index(answers, model, about["text"], list(about["languages"]))
        written[f"{name}.md"] = f"---\n{card.to_yaml()}\n---\n".encode()
    written["report.html"] = report_page(tables, answers, about, notes).encode()
    for name, content in written.items():
        store.write_whole(folder / name, content)
    return folder / "report.html"


if __name__ == "__main__":
    sys.exit(main())
