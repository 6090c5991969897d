"""LD and MD over training and depth (section 4.2), from `checkpoint_scores`: tables of `abx-2`.

Every table has MD plain and among sentences of like length, and intervals over documents.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.abx import dynamics, series, surface
from xlx.abx.averages import averaged_scores
from xlx.abx.checkpoint_scores import MATCHED, SPACES, CheckpointScores, checkpoint_scores
from xlx.models import loading
from xlx.models.loading import Name
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

#: What is drawn.
DRAWN = ("LD", "MD", MATCHED)


def scored_series(
    names: Sequence[str], corpus: ParallelCorpus, leave_out: Sequence[int] = (), **options: object
) -> list[list[CheckpointScores]]:
    """`checkpoint_scores` of each series, with the checkpoints whose weights are not shipped."""
    return [
        checkpoint_scores(
            series.history(name, leave_out=leave_out, recorded=True), corpus, **options
        )
        for name in names
    ]


def pair_courses(
    last: Sequence[CheckpointScores], first: str, seconds: Sequence[str]
) -> pd.DataFrame:
    """Scores of some pairs, X in the first language, and of how many triplets: a column a layer."""
    table = pd.concat([of.table() for of in last])
    chosen = table["x_language"].eq(first) & table["task"].isin(DRAWN)
    others = table["language_1"].where(table["language_1"] != first, table["language_2"])
    table = table.assign(other=others)[chosen & others.isin(seconds)]
    index = ["model", "checkpoint", "n_triplets", "other", "task"]
    return table.pivot(index=index, columns="layer", values="score")


def surface_lines(
    names: Sequence[str], last: Sequence[CheckpointScores], corpus: ParallelCorpus,
    max_length: int | None = None,
) -> dict[str, pd.DataFrame]:  # fmt: skip
    """What is scored without a model: label → ``model``, ``task``, ``score`` and its interval.

    Length alone has a line for MD only: it knows no language, and among sentences of like length it
    is next to chance by construction.
    """
    alone = averaged_scores([surface.length_alone(corpus)], ["MD"])
    lines: dict[str, list[pd.DataFrame]] = {surface.BAG: [], surface.LENGTH_ALONE: []}
    for name, of in zip(names, last, strict=True):
        bag = surface.subword_bag(name, corpus, max_length=max_length)
        lines[surface.BAG].append(averaged_scores([bag], DRAWN).assign(model=of.model))
        lines[surface.LENGTH_ALONE].append(alone.assign(model=of.model))
    return {label: pd.concat(tables) for label, tables in lines.items()}


def untrained_states(names: Sequence[str]) -> list[Name]:
    """Models before training: step 0 of a series, of equal weights the first; else the twin."""
    first = {name: series.history(name)[0] for name in names}
    states = [
        state if getattr(state, "step", None) == 0 else loading.twin_of(name)
        for name, state in first.items()
    ]
    return list({loading.fingerprint(state): state for state in reversed(states)}.values())


def twin_scores(
    names: Sequence[str], corpus: ParallelCorpus, n: int | None, seed: int, **options: object
) -> list[CheckpointScores]:
    """Scores of the untrained twins of models on n positions, drawn by ``seed``; None: all."""
    fewer = corpus.take(n or len(corpus), seed)
    return checkpoint_scores([loading.twin_of(name) for name in names], fewer, **options)


def public_lines(
    names: Sequence[str], of_public: Sequence[CheckpointScores], corpus: ParallelCorpus,
    n_untrained: int | None, seed: int, **options: object,
) -> dict[str, pd.DataFrame]:  # fmt: skip
    """`surface_lines` of public models, and their `twin_scores`, means over layers."""
    lines = surface_lines(names, of_public, corpus, options.get("max_length"))
    twins = twin_scores(names, corpus, n_untrained, seed, **options)
    tables = [
        averaged_scores([twin], DRAWN).assign(model=of.model)
        for twin, of in zip(twins, of_public, strict=True)
    ]
    return lines | {"its untrained twin": pd.concat(tables)}


def space_scores(
    names: Sequence[Name], corpus: ParallelCorpus, **options: object
) -> dict[str, list[CheckpointScores]]:
    """Space (`SPACES`) → the scores of models in it, of series at the last checkpoint."""
    return {space: checkpoint_scores(names, corpus, space=space, **options) for space in SPACES}


def centred_bags(
    names: Sequence[Name], last: Sequence[CheckpointScores], corpus: ParallelCorpus,
    max_length: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Scores of bags of subwords as they are and centred: what a model's are to be beside."""
    bags = {
        of.model: [
            surface.subword_bag(name, corpus, max_length=max_length, space=space)
            for space in ("raw", "centred")
        ]
        for name, of in zip(names, last, strict=True)
    }
    tables = {model: averaged_scores(of, DRAWN) for model, of in bags.items()}
    table = pd.concat(tables, names=["vocabulary of"]).reset_index("vocabulary of")
    return table.pivot(index=["vocabulary of", "space"], columns="task", values="score")


def space_table(in_spaces: Mapping[str, Sequence[CheckpointScores]]) -> pd.DataFrame:
    """Scores of every layer as vectors are, centred and standardised, a column a layer."""
    scored = [of for in_space in in_spaces.values() for of in in_space]
    table = averaged_scores(scored, DRAWN, by=["layer"])
    index = ["task", "model", "checkpoint", "space"]
    return table.pivot(index=index, columns="layer", values="score")


def uncut_differences(
    names: Sequence[str], last: Sequence[CheckpointScores], corpus: ParallelCorpus,
    **options: object,
) -> pd.DataFrame:  # fmt: skip
    """Mean scores on all positions, and on those that no model cuts in any language.

    Columns of each task: ``all``, ``uncut``; the index has how many positions are left.
    """
    checkpoints = [series.history(name)[-1] for name in names]
    whole = surface.uncut(checkpoints, corpus, max_length=options.get("max_length"))
    tables = {
        ("all", len(corpus)): averaged_scores(last, DRAWN),
        ("uncut", len(whole)): averaged_scores(
            checkpoint_scores(checkpoints, whole, **options), DRAWN
        ),
    }
    table = pd.concat(tables, names=["positions", "n"]).reset_index(["positions", "n"])
    return table.pivot(index=["model", "task"], columns=["positions", "n"], values="score")


def domain_scores(
    names: Sequence[Name], corpus: ParallelCorpus, *, fewest: int = 50, **options: object
) -> pd.DataFrame:
    """Mean scores on the positions of each domain alone, with intervals over its documents.

    Rows are models and domains, with the number of positions. Domains of fewer positions than
    ``fewest``, or of a single document, are left out; where a corpus names none, all of it is one.
    """
    tables = {}
    for domain in dict.fromkeys(corpus.domains):
        inside = corpus.drop({i for i, other in enumerate(corpus.domains) if other != domain})
        if len(inside) >= fewest and len(set(corpora.documents(inside))) > 1:
            scored = checkpoint_scores(names, inside, **options)
            tables[domain, len(inside)] = averaged_scores(scored, DRAWN)
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, names=["domain", "positions"]).reset_index(["domain", "positions"])
    index, values = ["model", "domain", "positions"], ["score", "low", "high"]
    wide = table.pivot(index=index, columns="task", values=values)
    return wide.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)


def scores_within(
    measured: Sequence[CheckpointScores], codes: Sequence[str], *, by: Sequence[str] = (),
    embedding_layer: bool = True,
) -> pd.DataFrame:  # fmt: skip
    """Means over the pairs of some of the languages, over layers or by "layer", without intervals.

    Columns as `averages.averaged_scores`; ``low`` and ``high`` are NaN: errors are kept of means
    over all pairs.
    """
    table = pd.concat([of.table() for of in measured])
    inside = table["language_1"].isin(codes) & table["language_2"].isin(codes)
    table = table[inside & table["task"].isin(DRAWN)]
    if not embedding_layer and "layer" not in by:
        table = table[table["layer"] > 0]
    keys = ["model", "checkpoint", "space", "task", *by]
    means = table.groupby(keys, sort=False)["score"].mean().reset_index()
    return means.assign(low=np.nan, high=np.nan)


def claims_of_courses(
    histories: Sequence[Sequence[CheckpointScores]], **options: object
) -> pd.DataFrame:
    """`dynamics.section_claims` of several series."""
    tables = [dynamics.section_claims(history, **options) for history in histories]
    return pd.concat(tables).set_index(["model", "claim"])
