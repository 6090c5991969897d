"""The command line: ``xlx report MODEL``, ``mexa``, ``igap``, ``mixing`` or ``doctor``.

    xlx report path/or/hub-name [ANOTHER ...] [--text FOLDER] [--languages de,en,ja] [--quick]

Each says what it will do and what that takes, and does it. What is computed is kept as it comes: a
run that was stopped goes on where it was when it is started again.
"""

import argparse
import dataclasses
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import xlx
from xlx.report import (
    coverage_command,
    doctor_command,
    igap_command,
    inputs,
    mixing_command,
    options,
)
from xlx.report.explorer import explored
from xlx.report.inputs import QUICK, QUICK_LANGUAGES, ReportedModel
from xlx.report.options import listed
from xlx.report.page import report_page
from xlx.report.sentences import answers_of, undefined_layers
from xlx.report.tables import (
    FEW_LABELS,
    ProbeSizes,
    measured_models,
    report_tables,
    scores_of_tasks,
)
from xlx.results import checks, store
from xlx.results.deferred import deferred
from xlx.results.settings import current
from xlx.subjects import folders, loading
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

torch = deferred("torch")

_QUICKLY = f"{QUICK} sentences, {len(QUICK_LANGUAGES)} languages if none are named: wide intervals"
_OPTIONS = (
    "--text",
    "--languages",
    "--pivot",
    "--tasks",
    "--sentences",
    *options.AS_ASKED,
    "--estimate",
    "--out",
)
#: What is left beside the page: folder, options and text in, the path of what was left out.
Leave = Callable[[Path, argparse.Namespace, ParallelCorpus], Path | None]
#: The commands beside `report`, each a module.
_COMMANDS = (
    coverage_command.add_mexa,
    doctor_command.add_doctor,
    igap_command.add_igap,
    mixing_command.add_mixing,
)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = options.Parser(prog="xlx", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    add = options.command(
        commands,
        report_on,
        "report",
        "xlx report: from models to a page",
        _OPTIONS,
        several=True,
        text="wmt24pp",
    )
    add("--reference", type=listed, help="models to compare with, or none (nor an untrained one)")
    add("--probe", action="store_true", help="parts of speech, topics, X-Probe's tasks, too")
    add("--quick", action="store_true", help=_QUICKLY)
    add("--no-notebook", dest="notebook", action="store_false", help="leave no executed notebook")
    for add_command in _COMMANDS:
        add_command(commands)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None, leave: Leave | None = None) -> int:
    """Run a command; 0, 2 after a sentence of what is wrong, 130 where it was stopped.

    ``leave`` is called when the page of a report is written, if the options ask for a notebook.
    """
    try:
        chosen = arguments(given)
    except SystemExit as stop:
        return int(stop.code or 0)
    for stream in (sys.stdout, sys.stderr):  # names are shown on whatever terminal
        stream.reconfigure(errors="backslashreplace")
    run = partial(report_on, leave=leave) if chosen.run is report_on else chosen.run
    with warnings.catch_warnings():
        warnings.showwarning = lambda said, *_: print(f"note: {said}", file=sys.stderr)
        return options.tried(chosen, run)


def report_on(given: argparse.Namespace, leave: Leave | None = None) -> None:
    """Say what will be done, do it and write it."""
    began = time.monotonic()
    options.tell_downloads([*given.models, *(given.reference or ())])
    models, references = inputs.reported_models(
        given.models,
        given.reference,
        pooling=given.pooling,
        special_tokens=given.special_tokens,
        quantization=given.quantization,
    )
    n = QUICK if given.quick else None
    if given.sentences is not None:
        checks.whole(given.sentences, "--sentences", least=3)  # to leave one out
        n = given.sentences
    corpus, notes = inputs.reported_text(given.text, given.languages, n)
    if given.quick and given.languages is None:
        codes = inputs.quick_languages(corpus, given.pivot)
        corpus, notes = inputs.reported_text(given.text, codes, n)
    pivot, tasks = inputs.pivot_of(corpus, given.pivot), None
    if given.tasks:
        tasks, more = scores_of_tasks(given.tasks, models, corpus, pivot)
        notes += more
    named, beside = (", ".join(x.label for x in group) for group in (models, references))
    print(
        f"{named}: {len(corpus)} sentences of {corpus.name} in {len(corpus.languages)} "
        f"languages, beside {beside or 'no other model'}; the text: {corpus.source}"
    )
    print(*(f"{x.label}: its vector is {x.vector}" for x in models), sep="\n")
    print(estimate(models, references, corpus))
    if given.estimate:
        return

    def tell(step: object) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {step}", flush=True)

    probes = (FEW_LABELS if given.quick else ProbeSizes()) if given.probe else None
    few = 120 if given.quick else 1000
    of_models = measured_models(
        models,
        corpus,
        references,
        pivot=pivot,
        tasks=tasks,
        probes=probes,
        sentences=few if given.probe else None,
        untrained=given.reference != ["none"],
    )
    tables = report_tables(of_models, tell)
    notes += undefined_layers(tables)
    about = {
        "models": {
            x.label: {
                "kind": x.kind,
                "pooling": x.pooling,
                "vector": x.vector,
                "fingerprint": x.fingerprint,
            }
            for x in models
        },
        "references": [x.label for x in references],
        "text": corpus.name,
        "source": corpus.source,
        "licence": corpus.licence,
        "languages": {code: corpus.text_hash(code) for code in corpus.languages},
        "sentences": len(corpus),
        "documents": len(set(parallel.documents(corpus))),
        "pivot": pivot,
        "quick": given.quick,
        "dtype": given.dtype,
        "made": f"xlx {xlx.__version__}, {datetime.now(UTC):%Y-%m-%d}",
    }
    folder = options.output_folder(given, "+".join(about["models"]))
    tell("explorer: all pairs and layers")
    tell(write_report(folder, tables, about, notes, explored(of_models)))
    if given.notebook and leave and (left := leave(folder, given, corpus)):
        tell(left)


def estimate(
    models: Sequence[ReportedModel], references: Sequence[ReportedModel], corpus: ParallelCorpus
) -> str:
    """What the report takes where nothing was computed before, in a line.

    By the first model, which reads a batch: every model reads the text once, and so does the
    untrained twin of each to report on. ValueError where the states do not fit into memory.
    """
    encoder, n, n_languages = loading.load(models[0].name), len(corpus), len(corpus.languages)
    reading = options.reading_seconds(models[0], corpus, encoder)
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
    folder: Path,
    tables: dict[str, pd.DataFrame],
    about: dict[str, object],
    notes: Sequence[str] = (),
    explorer: str = "",
) -> Path:
    """Write page, tables and ``report.json``; returns the page's path.

    Raises `store.StoreError` where the disk is full.
    """
    answers = [answer for model in about["models"] for answer in answers_of(tables, model)]
    written = {}
    for name, table in tables.items():
        written[f"tables/{name}.parquet"] = table.to_parquet(index=False)
        written[f"tables/{name}.csv"] = table.to_csv(index=False).encode()
    said = {**about, "notes": list(notes), "answers": [dataclasses.asdict(x) for x in answers]}
    written["report.json"] = json.dumps(said, ensure_ascii=False, indent=1).encode()
    written["report.html"] = report_page(tables, answers, about, notes, explorer).encode()
    for name, content in written.items():
        store.write_whole(folder / name, content)
    return folder / "report.html"


if __name__ == "__main__":
    sys.exit(main())
