"""Tables of a report: what the lenses measure of models on a text, a row an observation.

LD, MD and retrieval are those of `xlx.experiment.abx_scores`, with intervals over documents
(`xlx.experiment.averages`), MEXA that of `xlx.report.pivot_alignment`. Of every model one layer is
chosen, where MD among sentences of like length is highest; languages and pairs are told of at that
layer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd

from xlx.experiment import surface
from xlx.experiment.abx_scores import MATCHED, CheckpointScores, checkpoint_scores
from xlx.experiment.averages import Average, average, averaged_scores, best_layer
from xlx.measures.mexa import PivotScores
from xlx.report.pivot_alignment import pivot_alignment
from xlx.subjects import folders, identity, loading, states
from xlx.subjects.identity import (
    Name,
    find,
    identify,
    local_folder,
    local_series,
    model_files,
    series_name,
)
from xlx.subjects.loading import untrained_folder
from xlx.text.parallel import ParallelCorpus

#: What is told of a model, in this order.
TOLD = ("LD", "MD", MATCHED, "retrieval")
#: Folders that say which checkpoint they are, but not of what: they go by their parent, too.
_CHECKPOINT = re.compile(r"(step|checkpoint)-\d+")
#: What stands for a model's own architecture with random weights.
UNTRAINED = "untrained"
#: Seed of those, and of the halves of the text on which the layer is chosen.
WEIGHTS_SEED, HALVES_SEED = 1, 1


@dataclass(frozen=True)
class ReportedModel:
    """A model to report on: ``label`` in tables, ``kind`` and ``pooling`` as of `models`."""

    name: Name
    label: str
    kind: str  # "encoder", "decoder" or "encoder-decoder"
    pooling: str
    fingerprint: str


@dataclass(frozen=True)
class Measured:
    """What the lenses say of one model: LD and MD (raw and centred) and MEXA, and its layer.

    ``mexa``: "raw" and "centred" → scores of all languages with the pivot.
    """

    model: ReportedModel
    raw: CheckpointScores
    centred: CheckpointScores
    mexa: dict[str, PivotScores]
    layer: int


def reported_model(name: Name) -> ReportedModel:
    """What is known of a model without its weights: its pooling is that of its folder, or kind.

    A folder of sentence-transformers names its own; a decoder weighs later tokens more, as MEXA
    does; else tokens count alike. Raises as `loading.load`.
    """
    label, folder, _ = find(name)
    model_files(label, folder)
    kind = folders.kind_of(folders.load_config(label, folder))
    own = folders.own_pooling(folder)
    usual = "weighted_mean" if kind == "decoder" else "mean"
    identity = identify(name)
    pooling = own if own in states.POOLINGS else usual
    label = series_name(identity)
    if _CHECKPOINT.fullmatch(label):
        label = f"{folder.resolve().parent.name}/{label}"
    return ReportedModel(name, label, kind, pooling, identity.fingerprint)


def measure_reported(
    model: ReportedModel, corpus: ParallelCorpus, pivot: str, max_length: int | None = None
) -> Measured:
    """LD, MD, retrieval by layer, raw and centred, and MEXA with the pivot, of one model."""
    options = {"pooling": model.pooling, "max_length": max_length}
    raw, centred = (
        checkpoint_scores([model.name], corpus, space=space, **options)[0]
        for space in ("raw", "centred")
    )
    aligned = pivot_alignment(model.name, corpus, pivot, **options)
    return Measured(model, raw, centred, aligned, best_layer(raw))


def reference_scores_of(
    model: ReportedModel,
    corpus: ParallelCorpus,
    others: Sequence[ReportedModel] = (),
    max_length: int | None = None,
) -> dict[str, CheckpointScores]:
    """What a model is compared with on the same text: label → scores.

    Its own architecture untrained, a bag of its subwords, length alone, and other models.
    """
    before, options = before_training(model.name), {"max_length": max_length}
    return {
        UNTRAINED: checkpoint_scores([before], corpus, pooling=model.pooling, **options)[0],
        surface.BAG: surface.subword_bag(model.name, corpus, **options),
        surface.LENGTH_ALONE: surface.length_alone(corpus),
    } | {
        other.label: checkpoint_scores([other.name], corpus, pooling=other.pooling, **options)[0]
        for other in others
    }


def before_training(name: Name) -> Name:
    """A model before it has read anything: step 0 of its own series, if that lies on this machine.

    Else its untrained twin.
    """
    if not isinstance(name, str):
        return untrained_folder(name, WEIGHTS_SEED)
    folder = local_folder(name)
    series = local_series(name, folder) if folder is not None else []
    return series[0] if series and not series[0].step else identity.twin_of(name, WEIGHTS_SEED)


# --- tables ---------------------------------------------------------------------------------------


def layer_rows(measured: Measured) -> pd.DataFrame:
    """Mean over pairs by layer, raw and centred: ``model``, ``space``, ``task``, ``layer`` ..."""
    table = averaged_scores([measured.raw, measured.centred], TOLD, by=["layer"])
    table["model"] = measured.model.label
    return table.drop(columns="checkpoint")


def choice_elsewhere(mean: Average, seed: int) -> tuple[list[int], float]:
    """The row of the highest score on each half of the groups, and its score on the other half.

    The highest of several noisy scores is too high where it was chosen; on other text it is not.
    ``mean`` is of several scores, ``(n,)``; the halves, which ``seed`` draws, change places and
    their scores are averaged. Half a text is scored to first order (`Average.within`). NaN where a
    half would have fewer than two groups.
    """
    n = len(mean.sizes)
    if n < 4:
        return [], np.nan
    kept = np.random.default_rng(seed).permutation(n) < n // 2
    halves = [mean.within(kept), mean.within(~kept)]
    chosen = [int(half.score.argmax()) for half in halves]
    scores = [half.score[row] for half, row in zip(halves, reversed(chosen), strict=True)]
    return chosen, float(np.mean(scores))


def choice_rows(measured: Measured) -> pd.DataFrame:
    """The chosen layer, those that halves of the text would choose, and their score elsewhere."""
    mean = average(measured.raw, MATCHED, by=["layer"])
    halves, elsewhere = choice_elsewhere(mean, HALVES_SEED)
    row = {
        "model": measured.model.label, "layer": measured.layer,
        "score": float(mean.score[measured.layer]), "of_halves": ", ".join(map(str, halves)),
        "score_elsewhere": elsewhere,
    }  # fmt: skip
    return pd.DataFrame([row])


def layer_differences(measured: Measured) -> pd.DataFrame:
    """MD among sentences of like length at the chosen layer less that of each: with intervals."""
    chosen = average(measured.raw, MATCHED, layers=[measured.layer])
    rows = []
    for layer in measured.raw.scores.layers:
        apart = chosen - average(measured.raw, MATCHED, layers=[layer])
        rows.append((measured.model.label, measured.layer, layer, *_numbers(apart)))
    columns = ["model", "chosen", "layer", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _numbers(mean: Average) -> tuple[float, float, float]:
    return tuple(float(number) for number in (mean.score, *mean.interval()))


def language_rows(measured: Measured) -> pd.DataFrame:
    """Mean over a language's pairs at the chosen layer, with intervals."""
    tasks = [task for task in TOLD if task != "retrieval"]
    table = averaged_scores([measured.raw], tasks, by=["language"], layers=[measured.layer])
    table = table.assign(model=measured.model.label, layer=measured.layer)
    return table.drop(columns=["checkpoint", "space"])


def reference_rows(measured: Measured, references: Mapping[str, CheckpointScores]) -> pd.DataFrame:
    """Each score at the chosen layer less that of a reference at its own, with intervals.

    ``model``, ``reference``, ``task``, ``layer``, ``reference_layer``, ``score``,
    ``reference_score``, ``difference``, ``low``, ``high``: on the same text, over documents.
    """
    rows = []
    for label, reference in references.items():
        layer = best_layer(reference)
        for task in TOLD:
            own = average(measured.raw, task, layers=[measured.layer])
            other = average(reference, task, layers=[layer])
            scores = float(own.score), float(other.score)
            places = measured.model.label, label, task, measured.layer, layer
            rows.append((*places, *scores, *_numbers(own - other)))
    columns = ["model", "reference", "task", "layer", "reference_layer", "score",
               "reference_score", "difference", "low", "high"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def reading_rows(measured: Measured, corpus: ParallelCorpus) -> pd.DataFrame:
    """What a model reads of each language: ``subwords`` of a sentence, ``unknown`` and ``cut``.

    ``unknown``: the share of the subwords that its tokenizer has no piece for; ``cut``: of the
    sentences that lost their end.
    """
    words, n, rows = loading.tokenizer(measured.model.name), len(corpus), []
    for language in corpus.languages:
        ids, _ = states.tokenise(
            words, corpus.sentences[language], limit=None, add_special_tokens=False
        )
        pieces = list(chain.from_iterable(ids["input_ids"]))
        unknown = pieces.count(words.unk_token_id) / max(1, len(pieces))
        cut = measured.raw.cut[language] / n
        rows.append((measured.model.label, language, len(pieces) / n, unknown, cut))
    return pd.DataFrame(rows, columns=["model", "language", "subwords", "unknown", "cut"])


def labelled_apart(models: Sequence[ReportedModel]) -> list[ReportedModel]:
    """The models, each called by a name of its own: two of one name are told apart by content."""
    seen = [model.label for model in models]
    return [
        replace(model, label=f"{model.label} ({model.fingerprint[:6]})")
        if seen.count(model.label) > 1
        else model
        for model in models
    ]
