"""Probes that learn in all languages but the one that they read.

A probe of English may fit what English alone shows. One that learns from as many sentences, a few
of each other language, can only fit what they share.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import vstack

from shared.document_probes import KEYS, against_best
from shared.ridge import fit_ridge
from xlx.experiment.scoring import Subject, as_subject
from xlx.experiment.sentence_probes import ProbedTask, probed_tasks, sentence_vectors
from xlx.measures.sentence_tasks import ProbingTask, document
from xlx.results import work
from xlx.subjects.identity import Name

OTHERS = "all others"
#: Sentences that a probe learns from, as a multiple of what a language has in the mean.
TIMES = 1


def left_out_probes(
    name: Subject | Name, tasks: Mapping[str, Sequence[ProbingTask]]
) -> pd.DataFrame:
    """Answers in each language of ridge probes that learnt in all others.

    ``tasks`` are of `document_tasks`; of each language alike are learnt from `TIMES` as many
    sentences as one has in the mean. Columns are those of the answers of `document_probes`, with
    `OTHERS` as source; a layer is chosen on training documents left out.
    """
    subject, groups = as_subject(name), {}
    for cell in probed_tasks(tasks):
        groups.setdefault((cell.task.name, cell.draw), []).append(cell)
    several = [cells for cells in groups.values() if len(cells) > 1]
    values = work.results(
        LEFT_OUT,
        [subject.vectors | {"times": TIMES, "tests": [*(x.hashes[0] for x in y)]} for y in several],
        lambda missing: [(missing, (subject, [several[i] for i in missing]))],
        what="probes of all other languages",
    )
    answers = []
    for value, cells in zip(values, several, strict=True):
        right, start = np.unpackbits(value["right"], axis=1).astype(bool), 0
        for errors, cell in zip(value["error"].T, cells, strict=True):
            test, best = cell.task.test, int(errors.argmin())
            keys = (subject.label[0], cell.task.name, OTHERS, cell.task.language)
            rows = {"base": test.bases, "label": test.labels, "draw": cell.draw, "layer": best}
            rows["right"] = right[best, start : start + len(test)]
            start += len(test)
            answers.append(pd.DataFrame(dict(zip(KEYS, keys, strict=True)) | rows))
    return pd.concat(answers, ignore_index=True)


def _left_out_probes(
    subject: Subject, groups: Sequence[Sequence[ProbedTask]]
) -> Iterator[dict[str, np.ndarray]]:
    """For each task and fold ``right``, packed ``(n_layers, sum of n_test / 8)``, and the
    ``error`` on training documents left out, ``(n_layers, n_languages)``."""
    vectors, rows = sentence_vectors(subject, [cell for cells in groups for cell in cells])
    for cells in groups:
        tasks = [cell.task for cell in cells]
        n = TIMES * np.mean([len(x.train) for x in tasks]) / (len(tasks) - 1)
        parts = {x.language: rows(x.language, x.train)[: int(np.ceil(n))] for x in tasks}
        fits = []
        for task in tasks:
            learnt = [x for x in tasks if x is not task]
            labels = np.concatenate([x.train.labels[: len(parts[x.language])] for x in learnt])
            bases = [y for x in learnt for y in x.train.bases[: len(parts[x.language])]]
            documents, there = [*map(document, bases)], rows(task.language, task.test)
            for layer, read in enumerate(vectors[task.language]):
                train = [vectors[x.language][layer][parts[x.language]] for x in learnt]
                stacked = np.concatenate(train) if isinstance(read, np.ndarray) else vstack(train)
                fit = fit_ridge(stacked, labels, documents, [read[there]], len(task.classes))
                fits.append((fit.predicted[0] == task.test.labels, fit.error))
        right, errors = zip(*fits, strict=True)
        n_layers = len(fits) // len(tasks)
        by_layer = [np.concatenate(right[i::n_layers]) for i in range(n_layers)]
        yield {
            "right": np.packbits(by_layer, axis=1),
            "error": np.reshape(errors, (len(tasks), n_layers)).T,
        }


LEFT_OUT = work.Kind("left-out-probes", _left_out_probes, tolerance=0.03, shared_seconds=30.0)


def against_sources(answers: pd.DataFrame, rivals: Sequence[str]) -> pd.DataFrame:
    """`against_best`: probes of all other languages less those of the best of some ``rivals``.

    ``answers`` are abroad, of one model; a rival is a source, or what stands as one. Sentences that
    a rival has no answer to (its own language) are left out.
    """
    sources = answers.assign(model=answers["source"], source="")
    wide = sources[sources["model"].isin([OTHERS, *rivals])]
    keys = ["task", "target", "base"]
    asked = wide.groupby(keys)["model"].transform("nunique") == len(rivals) + 1
    return against_best(wide[asked], OTHERS, rivals)
