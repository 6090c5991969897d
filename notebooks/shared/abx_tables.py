"""What the ABX paper says of training and depth (section 4.2), as differences with intervals.

Each row is a number that could have come out otherwise. Where a sentence is about the highest or
lowest of several checkpoints, they are chosen on one half of the documents and compared on the
other (`reversal`): the highest of several noisy scores is above a later one by choice alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from xlx.experiment import abx_scores, surface
from xlx.experiment.abx_scores import (
    MATCHED,
    SPACES,
    WEIGHTINGS,
    CheckpointScores,
    checkpoint_scores,
)
from xlx.experiment.averages import Average, average, averaged_scores
from xlx.measures import regressions, statistics
from xlx.measures.abx import (
    average_layers,
    pair_scores,
    sample_triplets,
    score_triplets,
    triplet_distances,
)
from xlx.results import paths
from xlx.subjects import identity, states
from xlx.subjects.identity import Name, identify, series_name
from xlx.subjects.loading import load
from xlx.subjects.states import CorpusStates
from xlx.text import languages, parallel
from xlx.text.parallel import ParallelCorpus


def reversal(
    course: Sequence[Average], *, seed: int | np.random.Generator = 0
) -> tuple[dict[str, object], dict[str, object]]:
    """Whether a score falls after its highest checkpoint, and rises again from its lowest.

    ``course``: the score of each checkpoint in turn, on one text. The highest, and the lowest from
    there on, are chosen on one half of the groups of the text (documents) and compared on the
    other, the halves change places, and the two differences are averaged: of scores that differ by
    noise alone the result is as often negative as positive. ``seed`` draws the halves.

    Returns the fall (highest less lowest) and the recovery (last less lowest): ``value``, ``low``,
    ``high`` (95 %), ``highest``, ``lowest`` (their places in the course, one a half).
    """
    n_groups = len(course[0].sizes)
    first = np.zeros(n_groups, dtype=bool)
    first[np.random.default_rng(seed).permutation(n_groups)[: n_groups // 2]] = True
    chosen, changes = [], []
    for half in (first, ~first):
        seen = np.array([float(score.within(half).score) for score in course])
        high = int(seen.argmax())
        low = high + int(seen[high:].argmin())
        chosen.append((high, low))
        changes.append([(course[upper] - course[low]).within(~half) for upper in (high, -1)])
    highest, lowest = map(list, zip(*chosen, strict=True))
    quantile = stats.t.ppf((1 + statistics.LEVEL) / 2, n_groups - 2)  # the groups of both halves
    rows = []
    for halves in zip(*changes, strict=True):
        value = float(np.mean([change.score for change in halves]))
        width = quantile * float(np.linalg.norm([change.error for change in halves])) / 2
        ends = {"value": value, "low": value - width, "high": value + width}
        rows.append(ends | {"highest": highest, "lowest": lowest})
    return rows[0], rows[1]


def _ends(difference: Average) -> dict[str, float]:
    low, high = difference.interval()
    return {"value": float(difference.score), "low": float(low), "high": float(high)}


def section_claims(
    history: Sequence[CheckpointScores],
    *,
    embedding_layer: bool = True,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The sentences of section 4.2 on one series, in the order of training, intervals by document.

    MD is scored plain and among sentences of like length. "Middle" is the layer just above half of
    the depth; ``seed`` as for `reversal`.

    Returns ``model``, ``claim``, ``difference``, ``low``, ``high``, ``holds``
    (`statistics.verdicts`).
    """
    last = history[-1]
    middle = (len(last.scores.layers) - 1) // 2 + 1
    courses = {
        task: [average(of, task, embedding_layer=embedding_layer) for of in history]
        for task in ("LD", "MD", MATCHED)
    }

    def layers(task: str, upper: int, lower: int) -> dict[str, float]:
        at_upper, at_lower = (average(last, task, layers=[layer]) for layer in (upper, lower))
        return _ends(at_upper - at_lower)

    rows: dict[str, Mapping[str, object]] = {}
    for task, course in courses.items():
        lowest = min(course, key=lambda score: float(score.score))
        above = replace(lowest, score=lowest.score - 0.5)
        rows[f"{task} above 0.5 at its lowest checkpoint"] = _ends(above)
    fall, recovery = reversal(courses["LD"], seed=seed)
    rows["LD falls after its highest checkpoint"] = fall
    rows["LD recovers until the end"] = recovery
    rows["LD: first layer above the middle one"] = layers("LD", 1, middle)
    rows["LD: last layer above the one before"] = layers("LD", -1, -2)
    for task in ("MD", MATCHED):
        course = courses[task]
        rows[f"{task} rises from the first to the last checkpoint"] = _ends(course[-1] - course[0])
        rows[f"{task}: middle layer above the embeddings"] = layers(task, middle, 0)
        rows[f"{task}: last layer below the one before"] = layers(task, -2, -1)
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("claim").reset_index()
    table = table.rename(columns={"value": "difference"}).assign(model=last.model)
    table["holds"] = statistics.verdicts(table["low"], table["high"])
    return table[["model", "claim", "difference", "low", "high", "holds"]]


#: What is drawn.
DRAWN = ("LD", "MD", MATCHED)


def scored_series(
    names: Sequence[str], corpus: ParallelCorpus, leave_out: Sequence[int] = (), **options: object
) -> list[list[CheckpointScores]]:
    """`checkpoint_scores` of each series, with the checkpoints whose weights are not shipped."""
    return [
        checkpoint_scores(
            abx_scores.history(name, leave_out=leave_out, recorded=True), corpus, **options
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
    first = {name: abx_scores.history(name)[0] for name in names}
    states = [
        state if getattr(state, "step", None) == 0 else identity.twin_of(name)
        for name, state in first.items()
    ]
    return list({identity.fingerprint(state): state for state in reversed(states)}.values())


def twin_scores(
    names: Sequence[str], corpus: ParallelCorpus, n: int | None, seed: int, **options: object
) -> list[CheckpointScores]:
    """Scores of the untrained twins of models on n positions, drawn by ``seed``; None: all."""
    fewer = corpus.take(n or len(corpus), seed)
    return checkpoint_scores([identity.twin_of(name) for name in names], fewer, **options)


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
    checkpoints = [abx_scores.history(name)[-1] for name in names]
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
        if len(inside) >= fewest and len(set(parallel.documents(inside))) > 1:
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
    tables = [section_claims(history, **options) for history in histories]
    return pd.concat(tables).set_index(["model", "claim"])


PAIR = ["language_1", "language_2"]
#: Pairings of abx-1: whether MD, and retrieval, are of the last layer alone; the printed claim.
PAIRINGS = {
    "all layers, both": (False, False, "abx_t01"),
    "last layer, both": (True, True, "abx_t02"),
    "MD all, retrieval last": (False, True, "abx_t03"),
}


def printed_results() -> pd.Series:
    """The numbers printed in the text of the ABX paper: claim → value, as it is printed."""
    table = pd.read_csv(paths.PUBLISHED / "abx" / "text_results.csv", index_col="claim_id")
    return table["value"]


def at_last(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of each model's last checkpoint."""
    return table[table["checkpoint"] == table.groupby("model")["checkpoint"].transform("max")]


def at_first(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of each model's first checkpoint."""
    return table[table["checkpoint"] == table.groupby("model")["checkpoint"].transform("min")]


def side_by_side(scores: pd.DataFrame, index: Sequence[str]) -> pd.DataFrame:
    """A row per ``index``, the scores of the tasks in columns; models in the order given."""
    wide = scores.pivot(index=list(index), columns="task", values="score").reset_index()
    if "model" in index:
        order = {name: number for number, name in enumerate(scores["model"].unique())}
        wide = wide.sort_values("model", key=lambda names: names.map(order), kind="stable")
    return wide.reset_index(drop=True).rename_axis(columns=None)


def without_nan(table: pd.DataFrame) -> pd.DataFrame:
    """A table for display: nothing where a number is missing."""
    return table.astype(object).where(table.notna(), "")


def captions(
    correlations: pd.DataFrame,
    panel: str | Sequence[str],
    label: str | None = None,
    interval: bool = True,
) -> dict:
    """Panel of a figure → its correlations as text, a line a row, with ``label`` in front."""
    text = "{r:+.2f} ({low:+.2f} to {high:+.2f})" if interval else "r = {r:.2f}"
    if label:
        text = f"{{{label}}}: {text}"
    elif interval:
        text = f"r = {text}"
    return {
        key: "\n".join(text.format_map(row) for row in rows.to_dict("records"))
        for key, rows in correlations.groupby(panel, sort=False)
    }


def fitted_lines(table: pd.DataFrame, **options: object) -> pd.DataFrame:
    """`statistics.fitted_line` of accuracy on LD, by model and task."""
    return pd.concat(
        regressions.fitted_line(rows, "LD", "accuracy", **options).assign(model=model, task=task)
        for (model, task), rows in table.groupby(["model", "task"], sort=False)
    )


def cut_table(measurements: Sequence[CheckpointScores]) -> pd.DataFrame:
    """Sentences cut at the maximum length, in per cent: models and languages that share a number.

    The first row of some models is the mean over languages.
    """
    percents: dict[str, pd.Series] = {}
    for measured in measurements:
        percent = 100 * pd.Series(measured.cut, dtype=float) / measured.scores.n_sentences
        percents[measured.model] = percent.sort_values(ascending=False, kind="stable")
    rows = {}
    for percent in percents.values():
        same = ", ".join(model for model, other in percents.items() if other.equals(percent))
        rows[same, f"mean of {len(percent)}"] = percent.mean()
        for share, codes in percent.groupby(percent, sort=False):
            rows[same, " ".join(codes.index)] = share
    return pd.Series(rows, name="cut (%)").rename_axis(["models", "languages"]).to_frame()


# --- abx-1: validation ----------------------------------------------------------------------------


def states_of(
    names: Sequence[str], corpus: ParallelCorpus, **options: object
) -> dict[str, states.CorpusStates]:
    """Model → its states of a corpus."""
    return {
        series_name(identify(name)): states.embed_corpus(load(name), corpus, **options)
        for name in names
    }


def shapes(states: Mapping[str, CorpusStates]) -> pd.DataFrame:
    """What the states of models measure."""
    sizes = {name: next(iter(whole.states.values())).shape for name, whole in states.items()}
    columns = ["layers, embeddings among them", "sentences", "dimensions"]
    return pd.DataFrame.from_dict(sizes, orient="index", columns=columns)


def example_triplets(
    corpus: ParallelCorpus,
    states: Mapping[str, CorpusStates],
    pair: tuple[str, str],
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One triplet of each task (Appendix A), of sentences that are short in English.

    Returns its sentences, and by model the distances d(X, A) and d(X, B) at the middle layer and
    the score of Algorithm 3. ``states`` are of the languages of ``pair``.
    """
    short = [i for i, sentence in enumerate(corpus.sentences["en"]) if 30 < len(sentence) < 80]
    sentences, distances = {}, {}
    for task in ("LD", "MD"):
        triplet = sample_triplets(task, pair, len(short), 1, seed)
        for item in "XAB":
            language = pair[getattr(triplet, f"{item.lower()}_language")[0]]
            position = short[getattr(triplet, item.lower())[0]]
            sentences[task, item] = language, corpus.sentences[language][position]
        for name, embedded in states.items():
            middle = (embedded.n_layers + 1) // 2
            vectors = {code: embedded.states[code][middle][short] for code in pair}
            x_to_a, x_to_b = triplet_distances(vectors, triplet)
            distances[task, name] = x_to_a[0], x_to_b[0], score_triplets(vectors, triplet)[0]
    texts = pd.DataFrame.from_dict(sentences, "index", columns=["language", "sentence"])
    columns = ["d(X, A)", "d(X, B)", "score"]
    table = pd.DataFrame.from_dict(distances, "index", columns=columns)
    for of_pairs, names in ((texts, ["task", "item"]), (table, ["task", "model"])):
        of_pairs.index = pd.MultiIndex.from_tuples(of_pairs.index, names=names)
    return texts, table


def retrieval_pairs(
    measurements: Sequence[CheckpointScores], embedding_layer: bool = True
) -> pd.DataFrame:
    """``MD`` and ``retrieval`` of every pair of languages, by model and `PAIRINGS`."""
    rows = []
    for measured in measurements:
        table = pair_scores(measured.table())
        last = table["layer"] == table["layer"].max()
        averaged = {
            False: average_layers(table, embedding_layer),
            True: table[last].drop(columns="layer"),
        }
        for pairing, (md_last, retrieval_last, _) in PAIRINGS.items():
            md = averaged[md_last].query("task == 'MD'")
            retrieval = averaged[retrieval_last].query("task == 'retrieval'")
            both = md.merge(retrieval, on=["model", "checkpoint", "space", *PAIR])
            both = both.rename(columns={"score_x": "MD", "score_y": "retrieval"})
            rows.append(both.assign(pairing=pairing))
    return pd.concat(rows, ignore_index=True)


def retrieval_correlations(pairs: pd.DataFrame, **options: object) -> pd.DataFrame:
    """Pearson's r of MD and retrieval over pairs, with the printed one of XLM-R (section 4.1)."""
    table = statistics.correlations(pairs, ["pairing", "model"], "MD", "retrieval", **options)
    claims = {pairing: claim for pairing, (_, _, claim) in PAIRINGS.items()}
    table["printed (XLM-R)"] = table["pairing"].map(claims).map(printed_results()).astype(float)
    return table.drop(columns="n")


# --- abx-4: languages -----------------------------------------------------------------------------


def language_kinds(codes: Sequence[str]) -> pd.DataFrame:
    """What is known of languages, next to their kin: ``code``, ``name``, ``family`` and so on."""
    rows = [vars(languages.LANGUAGES[code]) for code in codes if code in languages.LANGUAGES]
    return pd.DataFrame(rows).sort_values(["family", "branch", "script", "name"])


def language_names(codes: Sequence[str]) -> dict[str, str]:
    """Code → "Finnish (fi)"; of a language that is not known its code."""
    known = languages.LANGUAGES
    return {code: f"{known[code].name} ({code})" if code in known else code for code in codes}


def normalised_spread(averages: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean and standard deviation over languages of normalised scores, by checkpoint.

    Normalised: from 0 at a language's lowest checkpoint to 1 at its highest; NaN where a model has
    one checkpoint, which is no course. ``averages``: label → scores of languages.
    """
    table = pd.concat(averages, names=["layers"]).reset_index("layers")
    keys = ["layers", "model", "task"]
    scores = table.groupby([*keys, "language"])["score"]
    lowest, highest = scores.transform("min"), scores.transform("max")
    table["normalised"] = (table["score"] - lowest) / (highest - lowest)
    spread = table.groupby([*keys, "checkpoint"])["normalised"].agg(["mean", "std"])
    return spread.unstack("checkpoint").swaplevel(axis=1).sort_index(axis=1)


def with_turns(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of languages; ``turn``: where LD is lowest, or another score highest, after step 0."""
    several = scores.groupby("model")["checkpoint"].transform("nunique") > 1
    trained = scores[(scores["checkpoint"] > 0) | ~several]
    cost = trained["score"].where(trained["task"] == "LD", -trained["score"])
    turns = cost.groupby([trained[key] for key in ("model", "task", "language")]).idxmin()
    return scores.assign(turn=scores.index.isin(turns))


def turning_points(scores: pd.DataFrame) -> pd.DataFrame:
    """In how many languages LD is lowest, and MD highest, at each checkpoint after the first."""
    turns = with_turns(scores).query("turn")
    points = {task: f"{'lowest' if task == 'LD' else 'highest'} {task}" for task in turns["task"]}
    counts = turns.assign(point=turns["task"].map(points))[["point", "model", "checkpoint"]]
    return counts.groupby(["point", "model"])["checkpoint"].value_counts().unstack(fill_value=0)


def extremes(scores: pd.DataFrame, names: Mapping[str, str], n: int = 3) -> pd.DataFrame:
    """The languages of highest and lowest score at the last checkpoint, with intervals."""
    last = at_last(scores)
    last = last.assign(language=last["language"].map(names)).sort_values("score", kind="stable")
    groups = last.groupby(["model", "task"])
    ends = {"highest": groups.tail(n)[::-1], "lowest": groups.head(n)}
    keys = ["rank", "model", "task", "language"]
    ranked = pd.concat(ends, names=["rank"]).reset_index("rank")
    order = ranked.sort_values(keys[:3], kind="stable").set_index(keys)
    return order[["score", "low", "high"]]


def explained_heights(
    scores: pd.DataFrame, names: Sequence[str], corpus: ParallelCorpus, max_length: int | None
) -> pd.DataFrame:
    """Share of the variance of languages' last scores that goes with what else is known of them.

    R² and adjusted R² of groups by script and by branch, and of the language's score in a bag of
    subwords; ``names`` are of the models as in `surface.subword_bag`, in the order of ``scores``.
    """
    last = at_last(scores)
    titles, tasks = last["model"].unique(), list(last["task"].unique())
    bags = [surface.subword_bag(name, corpus, max_length=max_length) for name in names]
    of_bags = [
        averaged_scores([bag], tasks, by=["language"])[["task", "language", "score"]]
        for bag in bags
    ]
    bag = pd.concat(dict(zip(titles, of_bags, strict=True)), names=["model"])
    bag = bag.reset_index("model").rename(columns={"score": "score of the bag"})
    kinds = language_kinds(corpus.languages).rename(columns={"code": "language"})
    heights = last.merge(kinds, on="language").merge(bag, on=["model", "task", "language"])
    rows = {}
    for (name, task), of_score in heights.groupby(["model", "task"], sort=False):
        for key in ("script", "branch"):
            rows[key, name, task] = regressions.explained(of_score, "score", [key])
        fit = regressions.regression(of_score, "score", ["score of the bag"])
        rows["score of the bag", name, task] = fit.r_squared, fit.adjusted_r_squared
    index = pd.MultiIndex.from_tuples(rows, names=["explained by", "model", "task"])
    return pd.DataFrame(rows.values(), index=index, columns=["R²", "adjusted"]).unstack(0)


def weighted_means(
    measured: Sequence[CheckpointScores], tasks: Sequence[str], embedding_layer: bool = True
) -> pd.DataFrame:
    """Means over all pairs, over pairs of branches, over pairs of scripts (`WEIGHTINGS`)."""
    tables = {
        weighting: averaged_scores(
            measured, tasks, weighting=weighting, embedding_layer=embedding_layer
        )
        for weighting in WEIGHTINGS
    }
    table = pd.concat(tables, names=["each counts alike"]).reset_index(0)
    index = ["model", "task", "each counts alike"]
    return table.set_index(index)[["score", "low", "high"]].sort_index(sort_remaining=False)


def directed_languages(
    measured: Sequence[CheckpointScores], task: str = "LD", embedding_layer: bool = True
) -> pd.DataFrame:
    """A language's score with X in it, and with X in the others: means over its pairs and layers.

    In LD X and A are of one language and B is of the other; in MD A and B are of the other. A row a
    model and language: ``X in it``, ``X in the others``, ``difference``, largest first.
    """
    table = pd.concat([of.table() for of in measured]).query("task == @task")
    if not embedding_layer:
        table = table[table["layer"] > 0]
    sides = [
        table.assign(language=table[side], inside=table["x_language"] == table[side])
        for side in PAIR
    ]
    means = pd.concat(sides).groupby(["model", "language", "inside"], sort=False)["score"].mean()
    wide = pd.DataFrame(
        {
            label: means.xs(where, level="inside")
            for label, where in (("X in it", True), ("X in the others", False))
        }
    )
    wide["difference"] = wide["X in it"] - wide["X in the others"]
    parts = [
        part.sort_values("difference", ascending=False)
        for _, part in wide.groupby("model", sort=False)
    ]
    return pd.concat(parts)
