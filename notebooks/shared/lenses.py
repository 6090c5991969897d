"""The five lenses on the same models, a short call a lens, in the sizes of the chapters.

`start` and `synthesis` put side by side what the chapters measure one by one. The recipes are those
of `mixing-1-nli`, `igap-1-decomposition` and `xprobe-2-transformers`, so all results are shared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from shared import mixing_tables, treebanks, xprobe_tables
from shared.mixing_tables import second_alone
from xlx.experiment.averages import averaged_scores
from xlx.experiment.grids import Grid, grid, groups_of
from xlx.experiment.mexa_scores import measure_rivals
from xlx.experiment.scoring import Subject, subject_scores
from xlx.experiment.sentence_probes import over_languages, probe_sentences
from xlx.experiment.transfers import (
    INFERENCE,
    SHIPPED,
    SPARING,
    WIDE,
    Transfers,
    labelled_task,
    transfer_task,
)
from xlx.measures import mixing
from xlx.measures.sentence_tasks import Rules, parallel_tasks
from xlx.subjects.finetuning import Run, finetune_all
from xlx.subjects.identity import Name
from xlx.subjects.jobs import Recipe
from xlx.text.labelled import parallel_examples
from xlx.text.parallel import ParallelCorpus

#: Languages with a treebank and Parallel UD.
PROBED = ("en", "de", "es", "fr", "ru", "tr", "hi")
#: What a recipe of XNLI has: word embeddings stay as they are.
_SHARED = {
    "batch_size": 32,
    "max_length": 128,
    "trained_embeddings": False,
    "length_pool": 50,
    "dtype": "tf32",
}
#: Pairs asked in all pairs of languages.
ASKED = 500
#: What the notebook of sentence probes asks: its rules where they are not the release's.
_RULES = Rules(n_words=10, first_rank=20, depths=(4, 6))


def by_layer(
    subjects: Mapping[str, Subject | Name], text: ParallelCorpus, measures: Sequence[str]
) -> pd.DataFrame:
    """Mean scores over all pairs of languages by layer, with intervals over documents.

    ``subject`` (a key), ``task``, ``layer``, ``score``, ``low``, ``high``.
    """
    measured = subject_scores([*subjects.values()], text, measures)
    tables = [averaged_scores([x], by=["layer"]) for x in measured]
    tables = [table.assign(subject=x) for x, table in zip(subjects, tables, strict=True)]
    return pd.concat(tables, ignore_index=True)


def rivals_of(poolings: Mapping[Name, str], text: ParallelCorpus, position: int) -> pd.DataFrame:
    """How many sentences stand nearer to one sentence than its translation does, by layer.

    ``model``, ``language``, ``layer``, ``rivals``: sentences of the language that are nearer to the
    English one, or English ones nearer to its translation; ``mu``: MEXA over all sentences.
    """
    rows = []
    for model, pooling in poolings.items():
        for language, counts in measure_rivals(model, text, pooling=pooling).items():
            rows += [
                (model, language, layer, int(n[position]), float((n == 0).mean()))
                for layer, n in enumerate(counts["either"])
            ]
    return pd.DataFrame(rows, columns=["model", "language", "layer", "rivals", "mu"])


@lru_cache
def _inference_parts(languages: Sequence[str], source: str) -> tuple[mixing_tables.TaskData, dict]:
    origin = mixing_tables.Origin("xnli-whole", test_source="xnli-whole")
    return mixing_tables.inference_data(languages, source, None, ASKED, origin)


@dataclass(frozen=True)
class Inference:
    """A model that learnt inference in one language, asked in all pairs of languages (XNLI)."""

    model: Name
    source: str
    seeds: Sequence[int]
    languages: Sequence[str] = INFERENCE

    @property
    def _parts(self) -> tuple[mixing_tables.TaskData, dict]:
        return _inference_parts(tuple(self.languages), self.source)

    @property
    def data(self) -> mixing_tables.TaskData:
        """What was learnt and what is asked."""
        return self._parts[0]

    @property
    def whole(self) -> dict:
        """The whole test part, by language."""
        return self._parts[1]

    def _jobs(self, data: mixing_tables.TaskData, seeds: Sequence[int]) -> list:
        recipe = Recipe(epochs=3, learning_rate=5e-5, **_SHARED, **mixing_tables.LINEAR)
        return data.jobs([self.model], recipe, seeds)

    def runs(self) -> list[Run]:
        """What each seed answers to the whole test part."""
        jobs = self._jobs(self.data, self.seeds)
        return finetune_all([replace(x, evaluations=self.whole) for x in jobs], weights=True)

    def grids(self) -> list[Grid]:
        """What each seed answers in all pairs of languages."""
        return grid(self._jobs(self.data, self.seeds), self.data.sets)

    def alone(self, source: str, seeds: Sequence[int]) -> list[Grid]:
        """The same of models that are taught in ``source`` and asked without first texts."""
        learnt, _ = parallel_examples("NLI", [source], "train", source="xnli-whole")
        held_out = self.whole[source]
        data = second_alone(replace(self.data, train=learnt[source], held_out=held_out))
        return grid(self._jobs(data, seeds), data.sets)

    @cached_property
    def right_whole(self) -> np.ndarray:
        """Right answers to the whole test part, ``(n_seeds, L, n)``."""
        labels = self.whole[self.source].labels
        answered = [[run.predictions[x][-1] for x in self.languages] for run in self.runs()]
        return np.array(answered) == labels

    @cached_property
    def right(self) -> np.ndarray:
        """Right answers, ``(n_seeds, L, L, n)``."""
        answered = np.stack([grid.logits for grid in self.grids()]).argmax(axis=-1)
        return (answered == self.data.gold.labels).astype(float)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Within, across and the drop, by language and over all (`mixing.summary`)."""
        groups = groups_of(self.data.gold)
        return mixing.summary(self.right, self.languages, groups)


def transfers_of(
    models: Mapping[Name, Mapping[str, int]], seeds: Sequence[int]
) -> dict[Name, Transfers]:
    """Runs that learn English of the validation part of XNLI until they err no more.

    ``models``: name → what its recipe has otherwise. Their answers on the translations of what they
    learnt are IGAP's.
    """
    languages, options, usual, _ = SHIPPED["NLI"]
    task, transfers = labelled_task("NLI", languages, **options), {}
    for model, settings in models.items():
        recipe = replace(usual, **WIDE | settings)
        transfers[model] = transfer_task([model], task, ["en"], [recipe], seeds, sparing=SPARING)
    return transfers


def sentence_tasks_of(tasks: Sequence[str]) -> dict[str, list]:
    """X-Probe's tasks on the same sentences in all languages of `PROBED`."""
    trees = treebanks.trees_of(list(PROBED))
    return parallel_tasks(trees, list(tasks), folds=2, most=1200, seed=1, rules=_RULES)


def probed(
    subjects: Sequence[Subject | Name], tasks: Mapping[str, Sequence]
) -> dict[str, pd.DataFrame]:
    """Linear probes of all layers, "at home" and "abroad": means over languages with intervals."""
    table = probe_sentences(subjects, tasks, hidden=None, seeds=[0, 1, 2], across=True)
    cells = xprobe_tables.cell_table(xprobe_tables.named_subjects(table))
    home = cells["source"] == cells["target"]
    parts = {"at home": cells[home], "abroad": cells[~home]}
    return {name: over_languages(part) for name, part in parts.items()}
