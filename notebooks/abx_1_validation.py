"""Controls that can fail: scores where what they should measure has been taken away.

The control of the paper holds the variable of interest constant, and is at one half for any
vectors: A and B can change places. Here the corpus is spoiled instead, and everything else stays
(`xlx.experiment.scoring.moves`).

Where half of the languages are moved, the pairs of a moved one and another are scored. Beside them
stand the checks of the paper: one triplet, samples against exact scores, errors, retrieval.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from shared.abx_figures import LAYER, with_lines
from shared.abx_tables import PAIR, rowed
from xlx.experiment.abx_scores import CheckpointScores, group_sizes
from xlx.experiment.scoring import SHUFFLES, Subject, kept, moves, subject_scores, with_models
from xlx.measures import abx, statistics
from xlx.plots import style
from xlx.plots.panels import order
from xlx.plots.primitives import curves, scatter
from xlx.results import checks
from xlx.subjects.identity import Name
from xlx.subjects.states import CorpusStates
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus


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
        (one, other)
        for one, other in combinations(corpus.languages, 2)
        if how == "labels" or (one in half) != (other in half)
    ]
    return vectors, moved[corpus.languages[0]][1], pairs


@kept(tolerance=5e-4, documents=True)
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
    languages are. A row a model, control and layer.
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


def example_triplets(
    corpus: ParallelCorpus, states: Mapping[str, CorpusStates], pair: tuple[str, str], seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One triplet of each task (Appendix A), of sentences that are short in English.

    Returns its sentences, and by model the distances d(X, A) and d(X, B) at the middle layer and
    the score of Algorithm 3.
    """
    short = [i for i, sentence in enumerate(corpus.sentences["en"]) if 30 < len(sentence) < 80]
    sentences, distances = {}, {}
    for task in ("LD", "MD"):
        triplet = abx.sample_triplets(task, pair, len(short), 1, seed)
        for item in "XAB":
            language = pair[getattr(triplet, f"{item.lower()}_language")[0]]
            position = short[getattr(triplet, item.lower())[0]]
            sentences[task, item] = language, corpus.sentences[language][position]
        for name, embedded in states.items():
            middle = (embedded.n_layers + 1) // 2
            vectors = {code: embedded.states[code][middle][short] for code in pair}
            x_to_a, x_to_b = abx.triplet_distances(vectors, triplet)
            distances[task, name] = x_to_a[0], x_to_b[0], abx.score_triplets(vectors, triplet)[0]
    texts = rowed(sentences, ["task", "item"], columns=["language", "sentence"])
    return texts, rowed(distances, ["task", "model"], columns=["d(X, A)", "d(X, B)", "score"])


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
    names: Sequence[Name], corpus: ParallelCorpus, pairs: _Pairs, draw: Mapping[str, int],
    **options: object,
) -> pd.DataFrame:  # fmt: skip
    """The sampled score, in independent runs (`abx.sampled`, with ``draw``), against the exact one.

    Returns one row a condition: ``model``, ``task``, ``layer``, ``language_1``, ``language_2``,
    ``mean`` and ``sd`` over runs, ``exact``, ``expected_sd`` (of a share of so many triplets),
    ``error`` (of the mean).
    """
    values = sampled_runs(names, within(corpus, pairs), pairs, **draw, **options)
    runs = with_models(names, values)
    keys = ["model", "task", "layer", *PAIR]
    spread = runs.groupby(keys, as_index=False)["score"].agg(["mean", "std"])
    measured = subject_scores(names, corpus, **options)
    exact = abx.pair_scores(pd.concat([of.table() for of in measured]))
    turned = exact.rename(columns=dict(zip(PAIR, PAIR[::-1], strict=True)))
    both = pd.concat([exact, turned])[[*keys, "score"]]
    spread = spread.merge(both, on=keys).rename(columns={"score": "exact", "std": "sd"})
    spread["expected_sd"] = np.sqrt(spread["exact"] * (1 - spread["exact"]) / draw["n_triplets"])
    return spread.assign(error=(spread["mean"] - spread["exact"]).abs())


def within(corpus: ParallelCorpus, pairs: _Pairs) -> ParallelCorpus:
    """The corpus in the languages of some pairs."""
    inside = {code for pair in pairs for code in pair}
    return corpus.select([code for code in corpus.languages if code in inside])


@kept()  # near ties fall differently where vectors differ in their last digits
def sampled_runs(
    subject: Subject, corpus: ParallelCorpus, pairs: _Pairs, n_triplets: int, n_runs: int, seed: int
) -> pd.DataFrame:
    """`abx.sampled` of the pairs."""
    return abx.sampled(subject.read(corpus).states, pairs, n_triplets, n_runs, seed)


_ERRORS = [*PAIR, "task", "score", "jackknife", "bootstrap", "documents"]


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


def kernel(vectors: Mapping[str, np.ndarray], pair: tuple[str, str], task: str) -> np.ndarray:
    """The score of every triplet of a pair, ``(2, n, n)``, NaN on the diagonals; in float64.

    ``[d, x, o]``: direction d (X in the first, in the second language), position of X, and the
    other position: of A and B in LD, of B in MD. Its mean is the exact score; slow, for the
    bootstrap.
    """
    first, second = (
        vectors[code] / np.linalg.norm(vectors[code].astype(np.float64), axis=1, keepdims=True)
        for code in pair
    )
    scores = []
    for own, other in ((first, second), (second, first)):
        to_own, to_other = own @ own.T, own @ other.T
        to_a, to_b = (to_own, to_other) if task == "LD" else (np.diag(to_other)[:, None], to_other)
        difference = np.where(np.isclose(to_a, to_b, rtol=0, atol=1e-14), 0, to_a - to_b)
        score = (1 + np.sign(difference)) / 2
        np.fill_diagonal(score, np.nan)
        scores.append(score)
    return np.stack(scores)


def bootstrap_kernel(kernel: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """The mean of a kernel ``(k, n, n)`` on each resample of the n positions: ``(n_resamples,)``.

    A pair of two copies of one position is no triplet ("other meaning" would be untrue) and is left
    out, as the diagonals are.
    """
    matrix = kernel.mean(axis=0)
    np.fill_diagonal(matrix, 0.0)
    n = len(matrix)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples)
    total = np.einsum("ri,ri->r", counts @ matrix, counts)
    return total / (n**2 - (counts**2).sum(axis=1))


def errors(
    names: Sequence[Name], corpus: ParallelCorpus, pairs: _Pairs, **options: object
) -> pd.DataFrame:
    """`pair_errors` of models, with ``model`` in front."""
    table = with_models(names, pair_errors(names, within(corpus, pairs), pairs, **options))
    return table[["model", *_ERRORS]]


@kept(version=2, documents=True)
def pair_errors(
    subject: Subject, corpus: ParallelCorpus, pairs: _Pairs, n_resamples: int, seed: int
) -> pd.DataFrame:
    """The standard error of single pairs at the last layer, by what else could have been drawn.

    A row a pair and task: ``language_1``, ``language_2``, ``task``, ``score``, ``jackknife`` and
    ``bootstrap`` (over sentences), ``documents`` (a jackknife).
    """
    states = {code: array[-1] for code, array in subject.read(corpus).states.items()}
    groups = {"sentences": range(len(corpus)), "documents": parallel.documents(corpus)}
    sizes = {what: group_sizes(of_position) for what, of_position in groups.items()}
    exact = abx.exact(states, pairs=pairs, groups=groups)
    rows = []
    for column, pair in enumerate(exact.pairs):
        for task in ("LD", "MD"):
            resampled = bootstrap_kernel(kernel(states, pair, task), n_resamples, seed)
            score = exact.scores[task][0, column].mean()
            by_sentence, by_document = (
                float(statistics.left_out_error(score, exact.left_out[what][task][0, column], of))
                for what, of in sizes.items()
            )
            rows.append((*pair, task, score, by_sentence, resampled.std(), by_document))
    return pd.DataFrame(rows, columns=_ERRORS)


def control_scores(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    *,
    n_triplets: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """Scores of tasks in which the variable of interest is held constant: 0.5 is expected.

    Returns one row a model, task and layer: ``model``, ``task``, ``layer``, ``score``, ``low``,
    ``high``, of intervals that hold together at 95 % (Bonferroni).
    """
    drawn = with_models(names, held_constant(names, corpus, n_triplets, seed, **options))
    level = 1 - (1 - statistics.LEVEL) / len(drawn)
    bounds = [statistics.share_interval(row.won, row.n, level) for row in drawn.itertuples()]
    drawn["low"], drawn["high"] = zip(*bounds, strict=True)
    drawn["score"] = drawn["won"] / drawn["n"]
    return drawn[["model", "task", "layer", "score", "low", "high"]]


@kept(tolerance=200)  # of 100,000 triplets
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
    "all layers, both": (False, False, "abx_t01"),
    "last layer, both": (True, True, "abx_t02"),
    "MD all, retrieval last": (False, True, "abx_t03"),
}


def retrieval_pairs(
    measured: Sequence[CheckpointScores], embedding_layer: bool = True
) -> pd.DataFrame:
    """``MD`` and ``retrieval`` of every pair of languages, by model and `PAIRINGS`."""
    counted, tables = slice(0 if embedding_layer else 1, None), []
    for of in measured:
        pairs = pd.DataFrame(of.scores.pairs, columns=PAIR).assign(model=of.model)
        for pairing, (*last, _) in PAIRINGS.items():
            md, retrieval = (
                of.scores.scores[task][slice(-1, None) if at_last else counted].mean(axis=(0, 2))
                for task, at_last in zip(("MD", "retrieval"), last, strict=True)
            )
            tables.append(pairs.assign(pairing=pairing, MD=md, retrieval=retrieval))
    return pd.concat(tables, ignore_index=True)


# --- figures --------------------------------------------------------------------------------------

#: Of a shuffled corpus, what a score is called in the figure, and how it looks.
_SHUFFLED = {
    "LD, labels shuffled": ("LD, languages shuffled: ½ expected", style.look(style.VERMILION, "o")),
    "MD, translations shuffled": (
        "MD, translations shuffled: ½ expected",
        style.look(style.BLUE, "s", "--"),
    ),
    "MD, documents shuffled": ("MD, shuffled within documents", style.look(style.GREEN, "^", ":")),
    "MD, lengths shuffled": ("MD, shuffled among like lengths", style.look(style.SKY, "D", "-.")),
}


@style.styled
def shuffle_curves(table: pd.DataFrame) -> Figure:
    """Scores of spoiled corpora over layers, a panel a model.

    ``table`` as of `shuffled_controls`.
    """
    on = curves(table, x="layer", value="score", series="control", panel="model",
                looks={name: own for name, (_, own) in _SHUFFLED.items()},
                labels={name: label for name, (label, _) in _SHUFFLED.items()},
                width=3.9, height=2.2)  # fmt: skip
    return on.done(LAYER, "ABX score", handles=with_lines(on))


@style.styled
def retrieval_scatter(table: pd.DataFrame, statistics: Mapping[str, str]) -> Figure:
    """MD against retrieval over language pairs, a panel a pairing of layers, a colour a model.

    ``table`` as of `retrieval_pairs`; ``statistics`` maps a pairing to lines of text.
    """
    on = scatter(table, x="MD", y="retrieval", series="model", panel="pairing",
                 looks=style.looks(order(table, "model")), size=8, alpha=0.4,
                 width=2.8)  # fmt: skip
    on.titles(lambda pairing: f"{pairing}\n{statistics[pairing]}")
    return on.done("MD of a language pair", "retrieval, top-1")
