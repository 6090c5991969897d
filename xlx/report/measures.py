"""Tables of a report: what the lenses measure of models on a text, a row an observation.

LD, MD and retrieval are those of `xlx.abx.checkpoint_scores`, with intervals over documents
(`xlx.abx.averages`), coverage that of `xlx.mexa`. Of every model one layer is chosen, where MD
among sentences of like length is highest; what is told of languages and pairs is of that layer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np
import pandas as pd

from xlx import mexa
from xlx.abx import discrimination, surface
from xlx.abx.averages import Average, average, averaged_scores
from xlx.abx.checkpoint_scores import MATCHED, CheckpointScores, checkpoint_scores, group_sizes
from xlx.abx.distractors import length_matched
from xlx.core import languages, statistics, work
from xlx.mexa.coverage import Coverage, measure_coverage
from xlx.models import batching, embeddings, folders, loading
from xlx.models.identity import find, model_files
from xlx.models.loading import Name, series_name
from xlx.models.untrained import untrained_folder
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

#: What is told of a model, in this order.
TOLD = ("LD", "MD", MATCHED, "retrieval")
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
    """What the lenses say of one model: LD and MD (raw and centred) and MEXA, and its layer."""

    model: ReportedModel
    raw: CheckpointScores
    centred: CheckpointScores
    coverage: Coverage
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
    identity = loading.identify(name)
    pooling = own if own in embeddings.POOLINGS else usual
    return ReportedModel(name, series_name(identity), kind, pooling, identity.fingerprint)


def measure_reported(
    model: ReportedModel, corpus: ParallelCorpus, pivot: str, max_length: int | None = None
) -> Measured:
    """LD, MD, retrieval by layer, raw and centred, and MEXA with the pivot, of one model."""
    options = {"pooling": model.pooling, "max_length": max_length}
    raw, centred = (
        checkpoint_scores([model.name], corpus, space=space, **options)[0]
        for space in ("raw", "centred")
    )
    covered = measure_coverage(
        model.name, corpus, pivot, poolings=[model.pooling], alternatives=False,
        max_length=max_length,
    )[model.pooling]  # fmt: skip
    return Measured(model, raw, centred, covered, best_layer(raw))


def best_layer(scores: CheckpointScores) -> int:
    """Where MD among sentences of like length is highest, the mean over pairs; 0: embeddings."""
    return int(average(scores, MATCHED, by=["layer"]).score.argmax())


def reference_scores_of(
    model: ReportedModel,
    corpus: ParallelCorpus,
    others: Sequence[ReportedModel] = (),
    max_length: int | None = None,
) -> dict[str, CheckpointScores]:
    """What a model is compared with on the same text: label → scores.

    Its own architecture untrained, a bag of its subwords, length alone, and other models.
    """
    random = untrained_folder(model.name, WEIGHTS_SEED)
    options = {"pooling": model.pooling, "max_length": max_length}
    return {
        UNTRAINED: checkpoint_scores([random], corpus, **options)[0],
        surface.BAG: surface.subword_bag(model.name, corpus, max_length=max_length),
        surface.LENGTH_ALONE: surface.length_alone(corpus),
    } | {
        other.label: checkpoint_scores(
            [other.name], corpus, pooling=other.pooling, max_length=max_length
        )[0]
        for other in others
    }


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


def coverage_rows(measured: Measured) -> pd.DataFrame:
    """MEXA of every language: the mean over ``layers``, and their maximum, with its band."""
    scores = measured.coverage.scores
    table = pd.concat([scores.pooled(how).assign(layers=how) for how in ("max", "mean")])
    table = table.assign(model=measured.model.label, pivot=scores.pivot)
    table["band"] = mexa.bands(table["mu"])
    kinds = {code: kind_of_language(code) for code in scores.languages}
    for place, what in enumerate(("name", "family", "script")):
        table[what] = table["language"].map({code: kind[place] for code, kind in kinds.items()})
    first = ["model", "language", "name", "family", "script", "pivot", "layers"]
    return table[[*first, "mu", "low", "high", "band"]].reset_index(drop=True)


def kind_of_language(code: str) -> tuple[str, str, str]:
    """Name, family and script; of a language that is not known its code, and "?"."""
    if code not in languages.LANGUAGES:
        return code, "?", "?"
    known = languages.LANGUAGES[code]
    return known.name, known.family, known.script


def pair_rows(
    measured: Measured, corpus: ParallelCorpus, max_length: int | None = None
) -> pd.DataFrame:
    """Every pair of languages at the chosen layer, both directions averaged, with intervals."""
    model, tasks = measured.model, list(TOLD)
    value = _pairs_value(measured, corpus, max_length)
    pairs = list(combinations(corpus.languages, 2))
    tables = [
        pd.DataFrame(pairs, columns=["language_1", "language_2"]).assign(
            model=model.label, layer=measured.layer, task=task,
            score=value["score"][row].mean(axis=-1), low=value["low"][row],
            high=value["high"][row],
        )
        for row, task in enumerate(tasks)
    ]  # fmt: skip
    columns = ["model", "layer", "task", "language_1", "language_2", "score", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns]


def retrieval_rows(
    measured: Measured, corpus: ParallelCorpus, max_length: int | None = None
) -> pd.DataFrame:
    """Share of queries of a language whose translation is nearest, of each direction of a pair.

    Intervals are Wilson's, for independent queries.
    """
    score = _pairs_value(measured, corpus, max_length)["score"][TOLD.index("retrieval")]
    pairs = list(combinations(corpus.languages, 2))
    both = chain(*([pair, pair[::-1]] for pair in pairs))
    table = pd.DataFrame(both, columns=["query", "among"]).assign(score=score.ravel())
    n = len(corpus)
    ends = [statistics.share_interval(share * n, n) for share in table["score"]]
    table[["low", "high"]] = np.array(ends)
    return table.assign(model=measured.model.label, layer=measured.layer)


def _pairs_value(
    measured: Measured, corpus: ParallelCorpus, max_length: int | None
) -> dict[str, np.ndarray]:
    model, layer = measured.model, measured.layer
    options = {"pooling": model.pooling, "max_length": max_length}
    about = embeddings.corpus_about(model.name, corpus, **options)
    about |= {"layer": layer, "documents": [*corpora.documents(corpus)]}
    return work.result(PAIRS_AT_LAYER, about, model.name, corpus, layer, options)


def _pairs(
    name: Name, corpus: ParallelCorpus, layer: int, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    """``score`` ``(n_tasks, n_pairs, 2)``, ``low`` and ``high`` of the mean of both directions."""
    encoder = loading.load(name)
    states = embeddings.embed_corpus(encoder, corpus, **options).states
    documents = corpora.documents(corpus)
    exact = discrimination.exact(
        states, layers=[layer], masks={"like length": length_matched(corpus)},
        groups={"documents": documents}, device=encoder.device,
    )  # fmt: skip
    both = np.stack([exact.scores[task][0] for task in TOLD])
    left_out = np.stack([exact.left_out["documents"][task][0] for task in TOLD])
    score = both.mean(axis=-1)
    mean = Average(score, left_out - score[..., None], group_sizes(documents))
    low, high = mean.interval()
    return {"score": both, "low": low, "high": high}


#: A value: what `_pairs` says.
PAIRS_AT_LAYER = work.Kind("report-pairs", _pairs, version=1, tolerance=5e-4)


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
        ids, _ = batching.tokenise(
            words, corpus.sentences[language], limit=None, add_special_tokens=False
        )
        pieces = list(chain.from_iterable(ids["input_ids"]))
        unknown = pieces.count(words.unk_token_id) / max(1, len(pieces))
        cut = measured.raw.cut[language] / n
        rows.append((measured.model.label, language, len(pieces) / n, unknown, cut))
    return pd.DataFrame(rows, columns=["model", "language", "subwords", "unknown", "cut"])


#: Table → the words that head it.
HEADINGS = {
    "layers": "Scores by layer", "layer_differences": "The chosen layer and the others",
    "layer_choice": "The layer that halves of the text would choose",
    "references": "Compared with what else there is", "coverage": "Languages covered (MEXA)",
    "languages": "LD and MD by language", "pairs": "Pairs of languages",
    "retrieval": "Retrieval in each direction", "reading": "What the tokenizer reads",
}  # fmt: skip


def report_tables(
    models: Sequence[ReportedModel],
    corpus: ParallelCorpus,
    *,
    pivot: str = "en",
    references: Sequence[ReportedModel] = (),
    max_length: int | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> dict[str, pd.DataFrame]:
    """All tables of a report, by the names of `HEADINGS`; ``tell`` is called before each step."""
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in HEADINGS}
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
            "coverage": coverage_rows(measured), "languages": language_rows(measured),
            "pairs": pair_rows(measured, corpus, max_length),
            "retrieval": retrieval_rows(measured, corpus, max_length),
            "reading": reading_rows(measured, corpus),
        }  # fmt: skip
        for name, table in made.items():
            parts[name].append(table)
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def labelled_apart(models: Sequence[ReportedModel]) -> list[ReportedModel]:
    """The models, each called by a name of its own: two of one name are told apart by content."""
    seen = [model.label for model in models]
    return [
        replace(model, label=f"{model.label} ({model.fingerprint[:6]})")
        if seen.count(model.label) > 1
        else model
        for model in models
    ]
