"""The command line: ``xlx report MODEL``, from a model to a report.

    xlx report path/or/hub-name [ANOTHER ...] [--text FOLDER] [--languages de,en,ja] [--quick]

It says what it will do and what that takes, and does it. What is computed is kept as it comes: a
run that was stopped goes on where it was when it is started again.
"""

import argparse
import dataclasses
import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import torch
from huggingface_hub import ModelCardData

import xlx
from xlx.report.answers import Finding, answers_of
from xlx.report.card import model_index
from xlx.report.course import Course, read_ahead
from xlx.report.estimates import estimate
from xlx.report.inputs import (
    QUICK,
    QUICK_LANGUAGES,
    pivot_of,
    quick_languages,
    reported_models,
    reported_text,
)
from xlx.report.measures import ReportedModel
from xlx.report.page import report_page
from xlx.report.predicted_tasks import scores_of_tasks
from xlx.report.probed_labels import FEW_LABELS, ProbeSizes
from xlx.report.tables import report_tables
from xlx.results import checks, paths, store, work
from xlx.results.settings import settings
from xlx.subjects.identity import download_ahead, local_folder
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

_QUICKLY = f"{QUICK} sentences, {len(QUICK_LANGUAGES)} languages if none are named: wide intervals"
#: With fewer there is nothing to leave out, and no interval.
_LEAST = 3


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
    add("--seed", type=int, default=1, help="of the draw")
    add("--max-length", type=int, help="subwords of a sentence; what the model takes by default")
    add("--device", help="cpu, cuda, cuda:1")
    add("--dtype", default="float32", help="float32 or bfloat16")
    add("--out", type=Path, help="folder of the report; build/reports/<model> by default")
    add("--no-notebook", dest="notebook", action="store_false", help="leave no executed notebook")
    add("--estimate", action="store_true", help="say what it takes, and stop")
    return parser.parse_args(given)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


#: What is left beside the page: folder, options and text in, the path of what was left out.
Leave = Callable[[Path, argparse.Namespace, ParallelCorpus], Path | None]


def main(given: Sequence[str] | None = None, leave: Leave | None = None) -> int:
    """Run the command; 0, 2 after a sentence of what is wrong, 130 where it was stopped.

    ``leave`` is called when the page is written, if the options ask for a notebook.
    """
    options = arguments(given)
    try:
        with settings(device=options.device, dtype=options.dtype), warnings.catch_warnings():
            warnings.simplefilter("ignore", checks.TextWarning)  # the report says by how much
            report_on(options, leave)
    except (ValueError, OSError, work.MissingResultError) as error:
        print(f"xlx report: {error}", file=sys.stderr)
        return 2
    except (MemoryError, torch.OutOfMemoryError):
        said = "out of memory: take --dtype bfloat16, fewer --sentences, or fewer --languages"
        print(f"xlx report: {said}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped: the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def report_on(options: argparse.Namespace, leave: Leave | None = None) -> Path | None:
    """Say what will be done, do it and write it; the page, or None after an estimate."""
    for name in [*options.models, *(x for x in options.reference or () if x != "none")]:
        if local_folder(name) is None and (told := download_ahead(name)):
            print(told, flush=True)
    models, references = reported_models(options.models, options.reference)
    n = _number_of_sentences(options)
    corpus, notes = reported_text(options.text, options.languages, n, options.seed)
    if options.quick and options.languages is None:
        codes = quick_languages(corpus, options.pivot)
        corpus, notes = reported_text(options.text, codes, n, options.seed)
    pivot, probes = pivot_of(corpus, options.pivot), _probe_sizes(options)
    tasks = None
    if options.tasks:
        tasks, more = scores_of_tasks(options.tasks, models, corpus, pivot)
        notes += more
    folder = options.out or paths.BUILD / "reports" / _plain("+".join(x.label for x in models))
    print(
        f"{', '.join(model.label for model in models)}: {len(corpus)} sentences of "
        f"{corpus.name} in {len(corpus.languages)} languages, beside "
        f"{', '.join(x.label for x in references) or 'no other model'}"
    )
    foreseen = estimate(models, references, corpus, options.max_length, probes)
    print(f"{foreseen}; less where it was computed before. Stop it at any time: it goes on there.")
    if options.estimate:
        return None
    course, done = Course(foreseen), 0.0
    for model in models:
        course.tell(f"{model.label}: reading")
        read_ahead(model, corpus, options.max_length, course, done)
        done += foreseen.reading[model.label]
    tables = report_tables(
        models, corpus, pivot=pivot, references=references, max_length=options.max_length,
        tasks=tasks, probes=probes, tell=course.tell,
    )  # fmt: skip
    about = _about(options, models, references, corpus, pivot)
    page = write_report(folder, tables, about, notes)
    course.tell(page)
    if options.notebook and leave and (left := leave(folder, options, corpus)):
        course.tell(left)
    return page


def _number_of_sentences(options: argparse.Namespace) -> int | None:
    """How many are drawn; None: all."""
    if options.sentences is not None:
        checks.whole(options.sentences, "--sentences", least=_LEAST)
        return options.sentences
    return QUICK if options.quick else None


def _probe_sizes(options: argparse.Namespace) -> ProbeSizes | None:
    if not options.probe:
        return None
    return FEW_LABELS if options.quick else ProbeSizes()


def _plain(name: str) -> str:
    """A name that a file can have."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")


def _about(
    options: argparse.Namespace,
    models: Sequence[ReportedModel],
    references: Sequence[ReportedModel],
    corpus: ParallelCorpus,
    pivot: str,
) -> dict[str, object]:
    """What the numbers are of."""
    return {
        "models": {
            x.label: {"kind": x.kind, "pooling": x.pooling, "fingerprint": x.fingerprint}
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
        "quick": options.quick,
        "seed": options.seed,
        "max_length": options.max_length,
        "dtype": options.dtype,
        "made": f"xlx {xlx.__version__}, {datetime.now(UTC):%Y-%m-%d}",
    }  # fmt: skip


def write_report(
    folder: Path,
    tables: dict[str, pd.DataFrame],
    about: dict[str, object],
    notes: Sequence[str] = (),
) -> Path:
    """Write page, tables, ``report.json`` and ``model-index-*.md``; returns the page's path.

    Raises `store.StoreError` where the disk is full.
    """
    answers = [answer for model in about["models"] for answer in answers_of(tables, model)]
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        store.write_whole(folder / "tables" / f"{name}.parquet", buffer.getvalue())
        store.write_whole(folder / "tables" / f"{name}.csv", table.to_csv(index=False).encode())
    said = {**about, "notes": list(notes), "answers": [dataclasses.asdict(x) for x in answers]}
    content = json.dumps(said, ensure_ascii=False, indent=1)
    store.write_whole(folder / "report.json", content.encode())
    for model in about["models"]:
        name = f"model-index-{model}" if len(about["models"]) > 1 else "model-index"
        store.write_whole(folder / f"{_plain(name)}.md", _card(answers, model, about))
    page = folder / "report.html"
    store.write_whole(page, report_page(tables, answers, about, notes).encode())
    return page


def _card(answers: Sequence[Finding], model: str, about: dict[str, object]) -> bytes:
    """The head of a model card."""
    data: ModelCardData = model_index(answers, model, about["text"], list(about["languages"]))
    return f"---\n{data.to_yaml()}\n---\n".encode()


if __name__ == "__main__":
    sys.exit(main())
