"""Setups of the probes of POS, NER and NLI (ABX paper, sections 5.1, 5.2), and their languages."""

from collections.abc import Mapping, Sequence

from xlx.experiment.probing import ProbeSetup, probed_languages
from xlx.results import paths

#: The source of each task whose languages take part in transfer.
TRANSFERRED = {"POS": "ud", "NER": "wikiann", "NLI": "xnli"}


def setups(
    sources: Mapping[str, str | None],
    sizes: Sequence[Mapping[str, int]],
    folders: Mapping[str, str],
    *,
    n_seeds: int,
    **options: object,
) -> dict[str, ProbeSetup]:
    """Task → `ProbeSetup`: ``sizes`` of training, validation and test; folders with full data.

    A task without a size takes all there is. ``sources``: task → source of its labels ("NLI":
    "sick"), None for the paper's (sections 5.1, 5.2).
    """
    options["seeds"] = tuple(range(n_seeds))
    return {
        task: ProbeSetup(
            task,
            *(size.get(task) for size in sizes),
            path=paths.ROOT / folders[task] if task in folders else None,
            source=source,
            **options,
        )
        for task, source in sources.items()
    }


def task_languages(
    of_tasks: Mapping[str, ProbeSetup],
    chosen: Sequence[str] | None = None,
    table_2: str = "mono",
    sources: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:
    """Task → its `probed_languages`, those chosen, of one source: the setup's own if it has."""
    codes = {}
    for task, setup in of_tasks.items():
        source = setup.source or (sources or {}).get(task)
        known = probed_languages(task, table_2, source=source, path=setup.path)
        codes[task] = [code for code in known if chosen is None or code in chosen]
    return codes
