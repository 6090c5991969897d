"""Is MD length: controls of text that is spoiled, and of what B is chosen from.

The control of the paper holds the variable of interest constant; where translations, or names of
languages, are shuffled, A and B can change places, too: all three are at one half for any vectors.
Shuffled within documents, or among like lengths, they can be (`xlx.experiment.scoring.moves`).

Where half of the languages are moved, the pairs of a moved one and another are scored. Beside them
stand the checks of the paper: one triplet, samples against exact scores, retrieval.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import LAYER, chance_line, with_lines
from shared.abx_tables import PAIR, pair_scores, rowed, with_models
from xlx.experiment.abx_scores import MATCHED, group_sizes
from xlx.experiment.scoring import (
    SHUFFLES,
    Subject,
    cached,
    moves,
    subject_scores,
)
from xlx.measures import abx, statistics
from xlx.plots.panels import across
from xlx.plots.primitives import Curves, Points, curves, scatter
from xlx.plots.style import BLACK, BLUE, GREEN, SKY, look, styled
from xlx.results import checks
from xlx.results.deferred import deferred
from xlx.subjects.identity import Name
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

stats = deferred("scipy.stats")


def spoiled(
    states: Mapping[str, np.ndarray], corpus: ParallelCorpus, how: str, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray, list[tuple[str, str]]]:
    """The vectors of a spoiled corpus, the positions that are left, the pairs to be scored.

    ``states``: language → ``(n_layers + 1, n, dim)``. Sentences that the shuffle has no place for
    are left out: of a document, where it is its only one.
    """
    moved = moves(corpus, how, seed, [corpus.languages[1::2]])
    vectors = {
        language: np.stack([states[name][:, i] for name, i in zip(*source, strict=True)], axis=1)
        for language, source in moved.items()
    }
    half = set(corpus.languages[1::2])
    pairs = [
        (first, other)
        for first, other in combinations(corpus.languages, 2)
        if how == "labels" or (first in half) != (other in half)
    ]
    return vectors, moved[corpus.languages[0]][1], pairs


@cached(tolerance=5e-4, documents=True)
def shuffled_scores(
    subject: Subject, corpus: ParallelCorpus, shuffle: str, seed: int
) -> pd.DataFrame:
    """LD and MD on a corpus that is spoiled: means over pairs, by layer.

    Columns ``shuffle``, ``task``, ``layer``, ``score``, ``error`` (over documents).
    """
    reading = subject.read(corpus)
    moved, left, pairs = spoiled(reading.states, corpus, shuffle, seed)
    groups = np.array(parallel.documents(corpus))[left]
    exact = abx.exact(moved, pairs=pairs, groups={"documents": groups}, device=reading.device)
    rows = []
    for layer in exact.layers:
        for task in ("LD", "MD"):
            score = float(exact.scores[task][layer].mean())
            without = exact.left_out["documents"][task][layer].mean(axis=0)
            error = float(statistics.left_out_error(score, without, group_sizes(groups)))
            rows.append((shuffle, task, layer, score, error))
    return pd.DataFrame(rows, columns=["shuffle", "task", "layer", "score", "error"])


def shuffled_controls(
    names: Sequence[Name], corpus: ParallelCorpus, *, seed: int, **options: object
) -> pd.DataFrame:
    """`shuffled_scores` of all shuffles, with ``model`` and 95 % intervals over documents.

    ``control``: which score of which shuffle; MD is shown where meanings are shuffled, LD where
    languages are. One row per model, control and layer.
    """
    tables = [
        with_models(names, shuffled_scores(names, corpus, how, seed, **options)) for how in SHUFFLES
    ]
    table = pd.concat(tables, ignore_index=True)
    table = table[(table["task"] == "LD") == (table["shuffle"] == "labels")]
    table = table.assign(control=table["task"] + ", " + table["shuffle"] + " shuffled")
    n_documents = len(set(parallel.documents(corpus)))
    width = stats.t.ppf((1 + statistics.LEVEL) / 2, n_documents - 1) * table["error"]
    return table.assign(low=table["score"] - width, high=table["score"] + width)


# --- the checks of the paper ----------------------------------------------------------------------


def short_sentences(corpus: ParallelCorpus, pair: tuple[str, str]) -> ParallelCorpus:
    """The positions in a pair of languages that are short in the first of them."""
    sentences = corpus.sentences[pair[0]]
    long = [i for i, sentence in enumerate(sentences) if not 30 < len(sentence) < 80]
    return corpus.select(pair).drop(long)


def example_triplets(
    names: Sequence[Name], corpus: ParallelCorpus, seed: int, **options: object
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One triplet of each task (Appendix A), of a corpus in two languages.

    Returns its sentences, and by model the distances d(X, A) and d(X, B) at the middle layer and
    the score of Algorithm 3.
    """
    sentences, pair = {}, corpus.languages
    for task in ("LD", "MD"):
        triplet = abx.sample_triplets(task, pair, len(corpus), 1, seed)
        for item in "XAB":
            language = pair[getattr(triplet, f"{item.lower()}_language")[0]]
            position = getattr(triplet, item.lower())[0]
            sentences[task, item] = language, corpus.sentences[language][position]
    texts = rowed(sentences, ["task", "item"], columns=["language", "sentence"])
    distances = with_models(names, example_distances(names, corpus, seed, **options))
    shown = ["task", "model", "d(X, A)", "d(X, B)", "score"]
    return texts, distances[shown].sort_values("task", kind="stable").set_index(shown[:2])


@cached()
def example_distances(subject: Subject, corpus: ParallelCorpus, seed: int) -> pd.DataFrame:
    """``task``, ``d(X, A)``, ``d(X, B)`` and ``score`` of the triplets, at the middle layer."""
    states, rows = subject.read(corpus).states, []
    middle = len(states[corpus.languages[0]]) // 2
    vectors = {code: array[middle] for code, array in states.items()}
    for task in ("LD", "MD"):
        triplet = abx.sample_triplets(task, corpus.languages, len(corpus), 1, seed)
        apart = abx.triplet_distances(vectors, triplet)
        rows.append((task, apart[0][0], apart[1][0], abx.score_triplets(vectors, triplet)[0]))
    return pd.DataFrame(rows, columns=["task", "d(X, A)", "d(X, B)", "score"])


_Pairs = Sequence[tuple[str, str]]


def neighbouring_pairs(languages: Sequence[str], n: int | None = None) -> list[tuple[str, str]]:
    """Pairs in an order that has each language equally often, as far as ``n`` of them allow.

    First each language with the next one, then with the one after that, and so on around.
    """
    pairs = [
        (language, languages[(i + step) % len(languages)])
        for step in range(1, len(languages) // 2 + 1)
        for i, language in enumerate(languages)
    ]
    return pairs[: n or len(pairs)]


def sampling(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    pairs: _Pairs,
    draw: Mapping[str, int],
    **options: object,
) -> pd.DataFrame:
    """The sampled score, in independent runs (`abx.sampled`, with ``draw``), against the exact one.

    Returns one row per condition: ``model``, ``task``, ``layer``, ``language_1``, ``language_2``,
    ``mean`` and ``sd`` over runs, ``exact``, ``expected_sd`` (of a share of so many triplets),
    ``error`` (of the mean).
    """
    values = sampled_runs(names, within(corpus, pairs), pairs, **draw, **options)
    runs = with_models(names, values)
    keys = ["model", "task", "layer", *PAIR]
    spread = runs.groupby(keys, as_index=False)["score"].agg(["mean", "std"])
    measured = subject_scores(names, corpus, **options)
    exact = pair_scores(pd.concat([scores.table() for scores in measured]))
    turned = exact.rename(columns=dict(zip(PAIR, PAIR[::-1], strict=True)))
    both = pd.concat([exact, turned])[[*keys, "score"]]
    spread = spread.merge(both, on=keys).rename(columns={"score": "exact", "std": "sd"})
    spread["expected_sd"] = np.sqrt(spread["exact"] * (1 - spread["exact"]) / draw["n_triplets"])
    return spread.assign(error=(spread["mean"] - spread["exact"]).abs())


def within(corpus: ParallelCorpus, pairs: _Pairs) -> ParallelCorpus:
    """The corpus in the languages of some pairs."""
    inside = {code for pair in pairs for code in pair}
    return corpus.select([code for code in corpus.languages if code in inside])


@cached()  # near ties fall differently where vectors differ in their last digits
def sampled_runs(
    subject: Subject, corpus: ParallelCorpus, pairs: _Pairs, n_triplets: int, n_runs: int, seed: int
) -> pd.DataFrame:
    """`abx.sampled` of the pairs."""
    return abx.sampled(subject.read(corpus).states, pairs, n_triplets, n_runs, seed)


def sample_control(
    task: str,
    languages: Sequence[str],
    n_positions: int,
    n_triplets: int,
    seed: int | np.random.Generator,
) -> abx.Triplets:
    """Triplets in which the variable of interest is the same for A, B and X (section 4.1).

    A score other than one half on them is a bias of the sampling or of the scoring. The paper does
    not say what A and B still differ in; if in nothing, the control cannot fail. So here they
    differ in the variable that is normally held constant, drawn at random:

    * LD: X, A and B in one language (each of `languages` in turn), at three different positions;
    * MD: X, A and B at one position, in three different languages.

    ValueError for fewer than three positions (LD) or three languages (MD).
    """
    checks.one_of(task, ("LD", "MD"), "task")
    rng = np.random.default_rng(seed)
    enough, what = (n_positions, "sentences") if task == "LD" else (len(languages), "languages")
    if enough < 3:
        raise ValueError(
            f"the {task} control needs three {what}, one each for X, A and B; there are {enough}"
        )
    first = rng.integers(enough, size=n_triplets)
    second = rng.integers(enough - 1, size=n_triplets)
    second += second >= first
    third = rng.integers(enough - 2, size=n_triplets)
    third += third >= np.minimum(first, second)
    third += third >= np.maximum(first, second)
    if task == "LD":
        language = np.arange(n_triplets) % len(languages)
        return abx.Triplets(task, tuple(languages), *[language] * 3, first, second, third)
    position = rng.integers(n_positions, size=n_triplets)
    return abx.Triplets(task, tuple(languages), first, second, third, *[position] * 3)


def control_scores(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    *,
    n_triplets: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """Scores of tasks in which the variable of interest is held constant: 0.5 is expected.

    Returns one row per model, task and layer: ``model``, ``task``, ``layer``, ``score``, ``low``,
    ``high``, of intervals that hold together at 95 % (Bonferroni).
    """
    drawn = with_models(names, held_constant(names, corpus, n_triplets, seed, **options))
    level = 1 - (1 - statistics.LEVEL) / len(drawn)
    bounds = [statistics.share_interval(row.won, row.n, level) for row in drawn.itertuples()]
    drawn["low"], drawn["high"] = zip(*bounds, strict=True)
    drawn["score"] = drawn["won"] / drawn["n"]
    return drawn[["model", "task", "layer", "score", "low", "high"]]


@cached(tolerance=200)  # of 100,000 triplets
def held_constant(
    subject: Subject, corpus: ParallelCorpus, n_triplets: int, seed: int
) -> pd.DataFrame:
    """``task``, ``layer``, ``won`` (a tie counts one half) of ``n`` triplets."""
    states, rows = subject.read(corpus).states, []
    for task in ("LD", "MD"):
        control = sample_control(task, corpus.languages, len(corpus), n_triplets, seed)
        for layer in range(len(states[corpus.languages[0]])):
            vectors = {code: array[layer] for code, array in states.items()}
            scores = abx.score_triplets(vectors, control)
            rows.append((task, layer, scores.sum(), len(scores)))
    return pd.DataFrame(rows, columns=["task", "layer", "won", "n"])


#: Pairings of MD and retrieval: whether MD, and retrieval, are of the last layer alone; the claim.
PAIRINGS = {
    "both over all layers": (False, False, "abx_t01"),
    "both in the last layer": (True, True, "abx_t02"),
    "MD over all, retrieval in the last": (False, True, "abx_t03"),
}


def retrieval_pairs(
    measured: Sequence[abx.PairScores], embedding_layer: bool = True
) -> pd.DataFrame:
    """``MD`` and ``retrieval`` of every pair of languages, by model and `PAIRINGS`."""
    counted, tables = slice(0 if embedding_layer else 1, None), []
    for state in measured:
        pairs = pd.DataFrame(state.pairs, columns=PAIR).assign(model=state.model)
        for pairing, (*last, _) in PAIRINGS.items():
            md, retrieval = (
                state.scores[task][slice(-1, None) if at_last else counted].mean(axis=(0, 2))
                for task, at_last in zip(("MD", "retrieval"), last, strict=True)
            )
            tables.append(pairs.assign(pairing=pairing, MD=md, retrieval=retrieval))
    return pd.concat(tables, ignore_index=True)


# --- figures --------------------------------------------------------------------------------------

#: What is drawn of a spoiled corpus: its name, and how it looks.
_SHUFFLED = {
    "MD": ("MD of translations", look(BLUE, "s", "--")),
    "MD, lengths shuffled": ("MD, shuffled among like lengths", look(SKY, "D", "-.")),
    "MD, documents shuffled": ("MD, shuffled within documents", look(GREEN, "^", ":")),
}


@styled
def shuffle_curves(table: pd.DataFrame) -> Figure:
    """MD of text and of spoiled text over layers, one panel per model."""
    return _over_layers(table, "control", _SHUFFLED)


def _over_layers(table: pd.DataFrame, series: str, drawn: Mapping[str, tuple]) -> Figure:
    style = Curves(
        looks={name: shown for name, (_, shown) in drawn.items()},
        labels={name: label for name, (label, _) in drawn.items()},
        wrap=3,
        width=2.8,
        height=1.9,
    )
    on = curves(table, "layer", "score", hue=series, col="model", style=style)
    return on.done(LAYER, "MD", handles=with_lines(on))


#: MD by its choice of B, or its weights: what it is called, and how it looks.
CHOICES = {
    "MD": ("any B", look(BLUE, "s", "--")),
    "MD, as like length": ("any B, each A as often as matched", look(BLUE, "x", ":")),
    MATCHED: ("B as long as A (matched)", look(SKY, "D", "-.")),
    "MD, near": ("B near in subwords", look(GREEN, "^")),
    "MD, like length and near": ("both", look(BLACK, "v", (0, (1, 1)))),
}


@styled
def choice_curves(table: pd.DataFrame) -> Figure:
    """MD over layers, by what B is chosen from, one panel per model."""
    return _over_layers(table, "task", CHOICES)


@styled
def retrieval_scatter(table: pd.DataFrame, n_sentences: int) -> Figure:
    """MD against retrieval, one point per pair of languages, one panel per pairing of layers.

    ``table`` as of `retrieval_pairs`; by chance one translation of ``n_sentences`` is found.
    """
    style = Points(size=8, alpha=0.4, width=2.8)
    on = scatter(table, "MD", "retrieval", hue="model", col="pairing", style=style)
    across(on, x=0.5, y=1 / n_sentences)
    chance = chance_line(f"chance: MD 0.5, retrieval 1 in {n_sentences}")
    x = "MD of one pair of languages: share of triplets (one point per pair)"
    y = "retrieval: share of sentences\nthat find their translation"
    return on.done(x, y, handles=[chance])


# --- what is said ---------------------------------------------------------------------------------
