"""All tables of a report, by name: what each holds, and the steps that make them."""

from collections.abc import Callable, Sequence

import pandas as pd

from xlx.experiment import surface
from xlx.report.language_pairs import pair_rows, retrieval_rows
from xlx.report.measures import (
    UNTRAINED,
    Measured,
    ReportedModel,
    choice_rows,
    language_rows,
    layer_differences,
    layer_rows,
    measure_reported,
    reading_rows,
    reference_rows,
    reference_scores_of,
)
from xlx.report.pivot_alignment import coverage_rows
from xlx.report.predicted_tasks import task_fits, task_points
from xlx.report.printed_beside import printed_rows
from xlx.report.probed_labels import ProbeSizes, probe_rows
from xlx.text.parallel import ParallelCorpus

#: Table → the words that head it. The last three are there where they are asked for.
HEADINGS = {
    "layers": "Scores by layer", "layer_differences": "The chosen layer and the others",
    "layer_choice": "The layer that halves of the text would choose",
    "references": "Compared with what else there is", "coverage": "Languages covered (MEXA)",
    "languages": "LD and MD by language", "pairs": "Pairs of languages",
    "retrieval": "Retrieval in each direction", "reading": "What the tokenizer reads",
    "printed": "Beside what the papers print", "task_fits": "What predicts the scores of tasks",
    "task_points": "Tasks by language, and what is predicted of them",
    "probes": "Parts of speech and topics",
}  # fmt: skip


def report_tables(
    models: Sequence[ReportedModel],
    corpus: ParallelCorpus,
    *,
    pivot: str = "en",
    references: Sequence[ReportedModel] = (),
    max_length: int | None = None,
    tasks: pd.DataFrame | None = None,
    probes: ProbeSizes | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> dict[str, pd.DataFrame]:
    """All tables of a report, by the names of `HEADINGS`; ``tell`` is called before each step.

    ``tasks`` are scores by language, of `predicted_tasks.scores_of_tasks`; ``probes`` says on how
    much parts of speech and topics are learnt. Without them their tables are not made.
    """
    parts: dict[str, list[pd.DataFrame]] = {}
    for model in models:
        tell(f"{model.label}: LD, MD and retrieval by layer, and MEXA with {pivot}")
        measured = measure_reported(model, corpus, pivot, max_length)
        others = [other for other in (*models, *references) if other is not model]
        tell(f"{model.label}: {UNTRAINED}, {surface.BAG}, {surface.LENGTH_ALONE}"
             + "".join(f", {other.label}" for other in others))  # fmt: skip
        compared = reference_scores_of(model, corpus, others, max_length)
        tell(f"{model.label}: pairs of languages at layer {measured.layer}")
        made = {
            "layer_choice": choice_rows(measured),
            "layers": layer_rows(measured), "layer_differences": layer_differences(measured),
            "references": reference_rows(measured, compared),
            "coverage": coverage_rows(model.label, measured.mexa),
            "languages": language_rows(measured),
            "pairs": pair_rows(measured, corpus, max_length),
            "retrieval": retrieval_rows(measured, corpus, max_length),
            "reading": reading_rows(measured, corpus), "printed": printed_rows(measured),
        }  # fmt: skip
        if tasks is not None:
            made |= _of_tasks(measured, corpus, tasks, max_length)
        if probes is not None:
            tell(f"{model.label}: parts of speech and topics at layer {measured.layer}")
            made["probes"] = probe_rows(measured, corpus, probes, max_length)
        for name, table in made.items():
            parts.setdefault(name, []).append(table)
    return {name: pd.concat(parts[name], ignore_index=True) for name in HEADINGS if name in parts}


def _of_tasks(
    measured: Measured, corpus: ParallelCorpus, tasks: pd.DataFrame, max_length: int | None
) -> dict[str, pd.DataFrame]:
    points = task_points(measured, corpus, tasks, max_length)
    return {"task_fits": task_fits(points), "task_points": points}
