"""What frozen states say of a transfer direction, without any fine-tuning (IGAP, section 4.2).

Here the lenses meet: LD and MD, MEXA and the paper's own metrics of the same states are asked
which direction of transfer is the better one.
"""

import itertools
from contextlib import nullcontext

import numpy as np
import pandas as pd
from scipy import sparse

from xlx.measures import abx, alignment, mexa
from xlx.results import ledger, work
from xlx.results.settings import current
from xlx.subjects import loading, states
from xlx.subjects.states import bag_of_subwords, embed_corpus
from xlx.text.parallel import ParallelCorpus

#: What `frozen` scores directions by: metric → what of it is good, high (1) or low (-1).
FROZEN_METRICS: dict[str, int] = {
    "L2": -1, "dot": 1, "cosine": 1, "retrieval": 1, "LD": -1, "MD": 1, "MEXA": 1,
    "bag of subwords": 1,
}  # fmt: skip


def frozen(
    name: str, corpus: ParallelCorpus, *, layer: int | None = None, max_length: int | None = None
) -> tuple[pd.DataFrame, int]:
    """What frozen states say of every transfer direction, without any fine-tuning (section 4.2).

    States are means over the tokens of a sentence at one layer; None: the one with the best
    retrieval (the paper takes 7 of 12). The paper's L2 distance, dot product and cosine; retrieval;
    this compendium's LD, MD and MEXA, each the same in both directions of a pair; and the cosine of
    bags of subwords, which needs the tokenizer alone.

    The table: ``metric`` (of `FROZEN_METRICS`), ``source``, ``target``, ``score``, high is good: L2
    and LD have a minus sign. And the layer. ValueError as `embeddings.embed_corpus` and
    `alignment.directions`.
    """
    about = states.corpus_about(name, corpus, max_length=max_length) | {"layer": layer}
    table = work.result(PREDICTORS, about, name, corpus, layer, max_length)
    return table.drop(columns="layer"), int(table["layer"].iloc[0])


def _predictors(
    name: str, corpus: ParallelCorpus, layer: int | None, max_length: int | None
) -> pd.DataFrame:
    """The table of `frozen`, with a column ``layer``."""
    encoder = loading.load(name)
    with loading.products(encoder.device) if current().dtype == "bfloat16" else nullcontext():
        whole = embed_corpus(encoder, corpus, pooling="mean", max_length=max_length)
    states = whole.states
    if layer is None:
        layer = alignment.best_aligned_layer(states)
    tables = [alignment.directions(states, layers=[layer]).rename(columns={"value": "score"})]
    pairs = abx.pair_scores(abx.exact(states, layers=[layer]).table())
    pairs = pairs[pairs["task"].isin(["LD", "MD"])].rename(columns={"task": "metric"})
    for ends in (["source", "target"], ["target", "source"]):
        names = dict(zip(["language_1", "language_2"], ends, strict=True))
        tables.append(pairs.rename(columns=names))
    for source in corpus.languages:
        scores = mexa.scores(states, source, layers=[layer]).table()
        scores = scores.rename(columns={"language": "target", "mu": "score"})
        tables.append(scores.assign(metric="MEXA", source=source))
    bags = bag_of_subwords(encoder, corpus, max_length=max_length)

    def products(one: sparse.csr_array, other: sparse.csr_array) -> np.ndarray:
        return np.asarray(one.multiply(other).sum(axis=1)).ravel()

    for source, target in itertools.permutations(bags, 2):
        one, other = bags[source], bags[target]
        cosine = products(one, other) / np.sqrt(products(one, one) * products(other, other))
        row = {"metric": "bag of subwords", "source": source, "target": target}
        tables.append(pd.DataFrame([row | {"score": float(cosine.mean())}]))
    columns = ["metric", "source", "target", "score"]
    table = pd.concat([of_metric[columns] for of_metric in tables], ignore_index=True)
    table["score"] *= table["metric"].map(FROZEN_METRICS)
    table["metric"] = pd.Categorical(table["metric"], list(FROZEN_METRICS))
    table = table.sort_values("metric", kind="stable", ignore_index=True)
    return table.astype({"metric": str}).assign(layer=layer)


def _relative(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of two scores, as a share of those above 1."""
    if not stored.drop(columns="score").equals(computed.drop(columns="score")):
        return np.inf
    return float(
        ((stored["score"] - computed["score"]).abs() / stored["score"].abs().clip(lower=1)).max()
    )


#: In bfloat16 a similarity has two digits and a half, and a neighbour may change.
PREDICTORS = work.Kind("predictors", _predictors, version=1, tolerance=0.03, difference=_relative)
