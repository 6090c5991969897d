"""What the notebooks on LD and MD ask, and the tables that they show: `abx-1`, `abx-4`.

Parameters in, tidy tables out, a row an observation; the notebooks round and draw them.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from xlx.abx import surface
from xlx.abx.averages import averaged_scores
from xlx.abx.checkpoint_scores import WEIGHTINGS, CheckpointScores
from xlx.abx.discrimination import (
    average_layers,
    pair_scores,
    score_triplets,
    triplet_distances,
)
from xlx.abx.triplets import sample_triplets
from xlx.core import languages, paths, statistics
from xlx.models import embeddings
from xlx.models.loading import identify, load, series_name
from xlx.text.corpora import ParallelCorpus

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
        statistics.fitted_line(rows, "LD", "accuracy", **options).assign(model=model, task=task)
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
) -> dict[str, embeddings.CorpusStates]:
    """Model → its states of a corpus."""
    return {
        series_name(identify(name)): embeddings.embed_corpus(load(name), corpus, **options)
        for name in names
    }


def shapes(states: Mapping[str, embeddings.CorpusStates]) -> pd.DataFrame:
    """What the states of models measure."""
    sizes = {name: next(iter(whole.states.values())).shape for name, whole in states.items()}
    columns = ["layers, embeddings among them", "sentences", "dimensions"]
    return pd.DataFrame.from_dict(sizes, orient="index", columns=columns)


def example_triplets(
    corpus: ParallelCorpus,
    states: Mapping[str, embeddings.CorpusStates],
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
            rows[key, name, task] = statistics.explained(of_score, "score", [key])
        fit = statistics.regression(of_score, "score", ["score of the bag"])
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
