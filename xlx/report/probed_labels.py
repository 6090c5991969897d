"""Parts of speech and topics: what a linear probe reads off the layer that a report chooses.

Parts of speech are learnt and tested in each language (`xlx.experiment.probing`, on Universal
Dependencies), topics learnt in English and tested in every language (`xlx.experiment.topics`,
SIB-200): so the second asks also whether what was learnt in English holds elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.experiment import probing, topics
from xlx.experiment.probing import ProbeSetup
from xlx.measures import probe_training, statistics
from xlx.report.measures import Measured
from xlx.report.pivot_alignment import kind_of_language
from xlx.report.predicted_tasks import text_codes
from xlx.text import files
from xlx.text.parallel import ParallelCorpus

#: What is probed → how it is called in the catalogue of the labelled data.
PROBED = {"parts of speech": "POS", "topics": "TOPIC"}


@dataclass(frozen=True)
class ProbeSizes:
    """On how much is learnt and tested: ``words`` of a language (train, validation, test) for parts
    of speech, sentences that topics are tested on (None: all, 204), and seeds of the probes."""

    words: tuple[int, int, int] = (600, 150, 600)
    topic_sentences: int | None = None
    seeds: tuple[int, ...] = probe_training.SEEDS


#: Of a quick report.
FEW_LABELS = ProbeSizes((300, 100, 300), 100, (0, 1))


def probed_codes(corpus: ParallelCorpus) -> dict[str, dict[str, str]]:
    """What is probed → code of the labelled data → code of the text, of languages in both."""
    labelled, codes = files.catalogue("labelled"), text_codes(corpus)
    return {
        what: {
            code: codes[code]
            for code in dict.fromkeys(labelled.loc[labelled["task"] == task, "language"])
            if code in codes
        }
        for what, task in PROBED.items()
    }


def probe_rows(
    measured: Measured, corpus: ParallelCorpus, sizes: ProbeSizes, max_length: int | None = None
) -> pd.DataFrame:
    """Accuracy at the chosen layer, a row a language of text and data alike.

    ``model``, ``probed`` (of `PROBED`), ``language``, ``name``, ``layer``, ``learnt_in``, ``n``
    (words or sentences tested on), ``accuracy`` (mean over seeds) with Wilson's interval, for
    independent examples, ``majority`` (accuracy of the commonest label), ``best_layer`` and
    ``best_accuracy`` (of all layers, by the mean over languages).
    """
    codes = probed_codes(corpus)
    name, tables = measured.model.name, []
    if of_words := codes["parts of speech"]:
        setup = ProbeSetup("POS", *sizes.words, max_length=max_length, seeds=sizes.seeds)
        table = probing.monolingual(name, setup, list(of_words))
        own = _at_layer(table.rename(columns={"n_test": "n"}), measured.layer)
        tables.append(own.assign(probed="parts of speech", learnt_in=own["language"]))
    if of_sentences := codes["topics"]:
        table = topics.probe_topics(
            [name], list(of_sentences), n_test=sizes.topic_sentences, max_length=max_length,
            seeds=sizes.seeds,
        )  # fmt: skip
        table = _at_layer(table[~table["centred"]], measured.layer)
        tables.append(table.assign(probed="topics", learnt_in=topics.SOURCE))
    columns = ["model", "probed", "language", "name", "layer", "learnt_in", "n", "accuracy", "low",
               "high", "majority", "best_layer", "best_accuracy"]  # fmt: skip
    if not tables:
        return pd.DataFrame(columns=columns)
    return _in_text(pd.concat(tables), measured.model.label, codes)[columns]


def _at_layer(table: pd.DataFrame, layer: int) -> pd.DataFrame:
    """Means over seeds at one layer, by language, with intervals; and which layer is the best."""
    means = table.groupby(["language", "layer"], sort=False, as_index=False)
    means = means.agg(
        accuracy=("accuracy", "mean"), majority=("majority", "first"), n=("n", "first")
    )
    by_layer = means.groupby("layer")["accuracy"].mean()
    own = means[means["layer"] == layer].reset_index(drop=True)
    ends = [
        statistics.share_interval(share * n, n)
        for share, n in zip(own["accuracy"], own["n"], strict=True)
    ]
    own[["low", "high"]] = np.array(ends)
    return own.assign(best_layer=by_layer.idxmax(), best_accuracy=by_layer.max())


def _in_text(
    table: pd.DataFrame, label: str, codes: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """With the codes of the text, and names."""
    own = [codes[row.probed][row.language] for row in table.itertuples()]
    return table.assign(
        model=label, language=own, name=[kind_of_language(code)[0] for code in own]
    ).reset_index(drop=True)
