"""X-Probe's nine tasks in seven languages, asked of all layers of a public model, from the ledger.

Only the tasks are built anew. The ledger has seconds by the wall, of one thread beside other work:
reading, then probes of 13 layers, control tasks, online codes. Computed anew on one core (EPYC),
all cells took 17 minutes of the processor's time, and came out the same.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from notebooks.run import journals
from tests.bench import Row
from xlx.experiment.sentence_probes import probe_sentences
from xlx.measures.sentence_tasks import PROBING_TASKS
from xlx.results import paths
from xlx.results.settings import settings

MODEL = "multilingual-e5-small"


def run() -> list[Row]:
    """Rows of the bench's table."""
    sys.path.append(str(paths.NOTEBOOKS))
    from shared import lenses

    with tempfile.TemporaryDirectory() as folder, settings(policy="only"):
        noted, began = {"XLX_JOURNAL": folder, "XLX_NOTEBOOK": "bench"}, time.process_time()
        with mock.patch.dict(os.environ, noted):
            tasks = lenses.sentence_tasks_of(PROBING_TASKS)
            probe_sentences([MODEL], tasks, hidden=None, across=True)
        took = time.process_time() - began
        cells = journals.read_journal(Path(folder) / "bench.jsonl")
    made, what = sum(cell["seconds"] for cell in cells) / 60, f"{len(cells)} cells of {MODEL}"
    return [
        Row(f"sentence probes: {what}, from the ledger", took, "CPU-s", "< 20"),
        Row("sentence probes: all cells, as the ledger has it", made, "min", "< 30 on a free core"),
    ]
