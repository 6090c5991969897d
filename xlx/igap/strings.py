"""What translations share as strings: how far labels cross without any model, a control of IGAP."""

import numpy as np
import pandas as pd
from scipy import sparse

from xlx.core import work
from xlx.igap.tasks import TransferTask
from xlx.igap.transferability import MEAN_TARGET, in_points, with_interval
from xlx.igap.transfers import Transfers
from xlx.models import embeddings, loading
from xlx.text.corpora import ParallelCorpus
from xlx.text.examples import Examples


def shared_subwords(
    name: str, task: TransferTask, *, max_length: int | None = None
) -> pd.DataFrame:
    """How far the labels of a training set cross by the strings that translations share.

    Nothing is learnt: a translated example gets the label of that training example of the source
    language with which it has most subwords (of the model's tokenizer) in common: cosine of the
    counts, the two texts of a pair counted apart; the first of several as near. Names, numbers and
    signs alone do that much, so it is what a gap must be below to speak of more than that.

    One row per ``source`` and other ``target``: ``found``, the share of translations whose nearest
    training example is their own; ``interlingual``, the share with a wrong label less that of the
    training set itself (0 but where two examples have the same bag): Equation 4.
    """
    about = {
        "model": loading.fingerprint(name),
        "train": [[code, part.text_hash()] for code, part in task.train.items()],
        "max_length": max_length,
    }
    return work.result(SHARED, about, name, task.train, max_length)


def _shared_subwords(name: str, train: dict[str, Examples], max_length: int | None) -> pd.DataFrame:
    encoder = loading.load(name)
    first = next(iter(train.values()))
    sides = ("first",) if first.second is None else ("first", "second")
    empty = ("",) * len(first)
    bags = {code: [] for code in train}
    for side in sides:
        texts = {code: getattr(part, side) for code, part in train.items()}
        corpus = ParallelCorpus(side, texts, first.ids, empty, "", "")
        counted = embeddings.bag_of_subwords(encoder, corpus, max_length=max_length)
        for code, bag in counted.items():
            bags[code].append(bag)
    joined = {code: sparse.hstack(both).tocsr() for code, both in bags.items()}
    sizes = {code: np.sqrt(bag.multiply(bag).sum(axis=1)) for code, bag in joined.items()}
    rows = []
    for source in train:
        for target in dict.fromkeys((source, *train)):
            # the size of a translation moves no maximum; that of a training example does
            shared = (joined[target] @ joined[source].T).toarray() / sizes[source]
            nearest = shared.argmax(axis=1)
            wrong = (first.labels[nearest] != first.labels).mean()
            if target == source:
                at_home = wrong
            else:
                known = (nearest == np.arange(len(first))).mean()
                rows.append((source, target, known, wrong - at_home))
    return pd.DataFrame(rows, columns=["source", "target", "found", "interlingual"])


SHARED = work.Kind("shared_subwords", _shared_subwords, version=1)


# --- beside models --------------------------------------------------------------------------------


def string_gaps(
    name: str, task: TransferTask, max_length: int | None = None, scale: float = 1.0
) -> pd.DataFrame:
    """`shared_subwords` from the first language by target, and their mean, times ``scale``."""
    table = shared_subwords(name, task, max_length=max_length)
    table = table[table["source"] == task.languages[0]].set_index("target")
    table = scale * table[["found", "interlingual"]]
    table.loc[MEAN_TARGET] = table.mean()
    return table


def beside_strings(
    transfers: Transfers, strings: pd.DataFrame, tolerance: float, **options: int
) -> pd.DataFrame:
    """IGAP by target of each model beside what shared subwords lose without one, in points."""
    curves = transfers.curves([0.0], tolerance, **options)
    models = list(dict.fromkeys(run.model for run in transfers.runs))
    table = curves.assign(IGAP=with_interval(curves))
    table = table.pivot(index="target", columns="model", values="IGAP")[models]
    table["shared subwords"] = strings["interlingual"].map(in_points)
    table["found"] = strings["found"].map(in_points)
    order = (*transfers.task.languages, MEAN_TARGET)
    return table.loc[[code for code in order if code in table.index]]


def with_strings(gaps: pd.DataFrame, strings: pd.DataFrame) -> pd.DataFrame:
    """`gaps_by_seed` beside the gap that shared subwords leave of the same directions."""
    strings = strings.set_index(["source", "target"])
    return gaps.assign(**{"shared subwords": strings["interlingual"]})


def by_shared(gaps: pd.DataFrame, strings: pd.DataFrame) -> pd.DataFrame:
    """Mean gaps where more than half of the translations are found by shared subwords, and not."""
    strings = strings.set_index(["source", "target"]).reindex(gaps.index)
    table = pd.DataFrame(
        {
            "model": gaps.mean(axis=1),
            "shared subwords": strings["interlingual"],
            "group": np.where(strings["found"] > 0.5, "many", "few"),
        }
    ).groupby("group")
    means = table[["model", "shared subwords"]].mean().map(in_points)
    return means.assign(directions=table.size())
