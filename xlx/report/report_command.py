"""``xlx report``: what the lenses say of models on one text, as a page, tables and a notebook."""

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pandas as pd
from typer import Argument, Option

import xlx
from xlx.report import inputs, options
from xlx.report.explorer import explored
from xlx.report.inputs import QUICK, QUICK_LANGUAGES, ReportedModel
from xlx.report.page import report_page, write_page
from xlx.report.sentences import answers_of, undefined_layers
from xlx.report.tables import (
    FEW_LABELS,
    TABLES,
    ProbeSizes,
    measured_models,
    report_tables,
    scores_of_tasks,
)
from xlx.results import checks, store
from xlx.results.settings import current
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

#: What is left beside the page: folder, options and text in, the path of what was left out.
Leave = Callable[[Path, "Report", ParallelCorpus], Path | None]
_QUICKLY = f"{QUICK} sentences, {len(QUICK_LANGUAGES)} languages if none are named: wide intervals"


@dataclass(kw_only=True)
class Report(options.Reading):
    """From models to a page: layers, languages, pairs and controls, with intervals.

    It says first what it reads and how long that takes. Stop it at any time: it goes on from there.
    """

    models: list[str] = Argument(metavar="MODEL...", help="shipped models, folders, hub names")
    text: str = Option("wmt24pp", help="a corpus, or a folder with a file per language")
    pivot: str | None = options.PIVOT
    reference: str | None = Option(None, help="models to compare with; none: nor an untrained one")
    probe: bool = Option(False, "--probe", help="parts of speech, topics, X-Probe's tasks, too")
    treebank: Path | None = Option(None, help="of --probe: a folder of .conllu files a language")
    quick: bool = Option(False, "--quick", help=_QUICKLY)
    no_notebook: bool = Option(False, "--no-notebook", help="leave no executed notebook")
    leave: ClassVar[Leave | None] = None

    @property
    def references(self) -> list[str] | None:
        """Models to compare with; None: members of the family."""
        return options.listed(self.reference)

    def run(self) -> None:
        """Say what will be done, do it and write it."""
        began = time.monotonic()
        if self.treebank and not self.probe:
            raise ValueError("--treebank is what --probe learns from: give both, or neither")
        if self.treebank and not any(x.is_dir() for x in self.treebank.glob("*")):
            raise ValueError(
                f"--treebank {self.treebank} has no folder of a language: put the CoNLL-U files of "
                f"Bulgarian into {self.treebank}/bg, say"
            )

        def tell(step: object) -> None:
            print(f"{time.monotonic() - began:6.0f} s  {step}", flush=True)

        options.tell_downloads([*self.models, *(self.references or ())])
        models, references = inputs.reported_models(self.models, self.references, **self.how)
        checks.whole(self.sentences, "--sentences", least=3)  # to leave one out
        n = self.sentences or (QUICK if self.quick else None)
        corpus, notes = inputs.reported_text(self.text, self.codes, n)
        if self.quick and not self.languages:
            few = inputs.quick_languages(corpus, self.pivot)
            corpus, notes = inputs.reported_text(self.text, few, n)
        corpus, more = inputs.comparable_text(corpus)
        notes += more
        pivot, tasks = inputs.pivot_of(corpus, self.pivot), None
        if self.tasks:
            tasks, more = scores_of_tasks(self.files, models, corpus, pivot)
            notes += more
        labels, beside = (", ".join(x.label for x in group) for group in (models, references))
        print(
            f"{labels}: {len(corpus)} sentences of {corpus.name} in {len(corpus.languages)} "
            f"languages, beside {beside or 'no other model'}; the text: {corpus.source}"
        )
        print(*(f"{x.label}: its vector is {x.vector}" for x in models), sep="\n")
        readers = 2 * len(models) + len(references)
        print(options.estimate(models, corpus, readers))
        about = about_report(models, references, corpus) | {"pivot": pivot, "quick": self.quick}
        folder = self.folder("+".join(about["models"]))
        check_free(folder, about)
        if self.estimate:
            return
        few = 120 if self.quick else 1000
        measured = measured_models(
            models,
            corpus,
            references,
            pivot=pivot,
            tasks=tasks,
            probes=(FEW_LABELS if self.quick else ProbeSizes()) if self.probe else None,
            sentences=few if self.probe else None,
            treebank=self.treebank,
            untrained=self.references != ["none"],
        )
        tables = report_tables(measured, tell)
        notes += undefined_layers(tables)
        if about["documents"] == 1:
            notes.append(
                "The text is one document: nothing says how another would differ, so "
                "scores over documents have no interval."
            )
        tell("explorer: all pairs and layers")
        tell(write_report(folder, tables, about, notes, explored(measured)))
        if not self.no_notebook and self.leave and (left := self.leave(folder, self, corpus)):
            tell(left)


def about_report(
    models: Sequence[ReportedModel], references: Sequence[ReportedModel], corpus: ParallelCorpus
) -> dict[str, object]:
    """What ``report.json`` says of models and text."""
    fields = "kind", "pooling", "vector", "fingerprint"
    return {
        "models": {x.label: {name: getattr(x, name) for name in fields} for x in models},
        "references": [x.label for x in references],
        "text": corpus.name,
        "source": corpus.source,
        "licence": corpus.licence,
        "languages": {code: corpus.text_hash(code) for code in corpus.languages},
        "sentences": len(corpus),
        "documents": len(set(parallel.documents(corpus))),
        "dtype": current().dtype,
        "made": f"xlx {xlx.__version__} in {current().dtype}, {datetime.now(UTC):%Y-%m-%d}",
    }


def check_free(folder: Path, about: Mapping[str, object]) -> None:
    """ValueError where a folder holds the report of other models or text, or of other options."""
    there = folder / "report.json"
    if there.is_file():
        try:
            before = dict(json.loads(there.read_bytes()))
        except (ValueError, TypeError):  # of another program
            before = {}
        if {name: before.get(name) for name in about} != json.loads(json.dumps(about)):
            raise ValueError(
                f"--out {folder} holds another report ({before.get('models')} on "
                f"{before.get('text')}): name another folder, or remove this one"
            )


def write_report(
    folder: Path,
    tables: Mapping[str, pd.DataFrame],
    about: Mapping[str, object],
    notes: Sequence[str] = (),
    explorer: str = "",
) -> Path:
    """Write page, tables and ``report.json``; returns the page's path.

    Raises `store.StoreError` where the disk is full.
    """
    answers = [answer for model in about["models"] for answer in answers_of(tables, model)]
    for name in TABLES.keys() - tables.keys():  # of the same report with fewer options
        for file in (folder / "tables").glob(f"{name}.*"):
            file.unlink()
    for name, table in tables.items():
        store.write_whole(folder / f"tables/{name}.parquet", table.to_parquet(index=False))
    written = {**about, "notes": list(notes), "answers": [dataclasses.asdict(x) for x in answers]}
    written = json.loads(json.dumps(written), parse_constant=lambda _: None)  # JSON has no NaN
    content = json.dumps(written, ensure_ascii=False, indent=1)
    store.write_whole(folder / "report.json", content.encode())
    page = report_page(tables, answers, about, notes, explorer)
    files = {f"tables/{name}": table for name, table in tables.items()}
    return write_page(folder / "report.html", page, files)
