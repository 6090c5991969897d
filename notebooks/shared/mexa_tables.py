"""What chance gives of MEXA: by the paper's formula, exactly, and of random vectors (A.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import special, stats

from xlx.experiment.mexa_scores import Coverage, measure_coverage, score_bags
from xlx.measures import mexa
from xlx.measures.alignment import BLOCK_NUMBERS
from xlx.measures.statistics import share_interval
from xlx.results import paths, work
from xlx.subjects import identity
from xlx.subjects.identity import Name, series_name
from xlx.text import downstream, languages, parallel
from xlx.text.parallel import ParallelCorpus


def hit_probability(n: int) -> float:
    """Chance of one hit in a random n × n matrix: 1 / (2n - 1) (appendix A.4).

    c_ii is the largest of 2n - 1 elements. This is exact where they are independent, and for
    vectors of any dimension above one that are uniform over directions.
    """
    if n < 1:
        raise ValueError(f"a matrix of {n} sentences has no hits")
    return 1 / (2 * n - 1)


def chance_table(n: int) -> pd.DataFrame:
    """How probable a score is by chance (appendix A.4, Figure 2).

    One row for each number of hits k from 0 to n: ``k``, ``mu`` = k / n, and P(μ ≥ k / n),

    - ``binomial``: as the paper has it, where hits are independent of each other;
    - ``matrix``: of a matrix of independent elements, exactly. Hits i and j are not independent:
      their rows and columns cross in two elements, and both are the likelier hits where these are
      small. The crosses of m given sentences hold m(2n - m) elements; the largest is a diagonal one
      with chance 1 / (2n - m), then the same holds for the other m - 1. So all of j given sentences
      are hits with chance Π 1 / (2n - m), m = 1 … j, and inclusion and exclusion give the tail.

    For large n both tend to a Poisson distribution with mean ½.
    """
    k = np.arange(n + 1)
    binomial = stats.binom.sf(k - 1, n, hit_probability(n))
    matrix = [_tail(count, n) for count in k]
    return pd.DataFrame({"k": k, "mu": k / n, "binomial": binomial, "matrix": matrix})


def _tail(k: int, n: int) -> float:
    """P(k hits or more) in a matrix of independent elements."""
    if k == 0:
        return 1.0
    j = np.arange(k, min(n, k + 60) + 1)  # terms shrink faster than 1 / (j - k)!
    log_all = (  # log of C(n, j) Π 1 / (2n - m)
        special.gammaln(n + 1)
        - special.gammaln(j + 1)
        - special.gammaln(n - j + 1)
        + special.gammaln(2 * n - j)
        - special.gammaln(2 * n)
    )
    log_ways = special.gammaln(j) - special.gammaln(k) - special.gammaln(j - k + 1)  # C(j-1, k-1)
    return float(((-1.0) ** (j - k) * np.exp(log_all + log_ways)).sum())


@dataclass(frozen=True)
class ChanceSimulation:
    """Numbers of hits of random vectors, ``counts`` ``(n_draws,)``, of ``n`` sentences each."""

    n: int
    counts: np.ndarray

    def tails(self) -> pd.DataFrame:
        """As `chance_table`, and the simulated share ``vectors`` with its ``low`` and ``high``."""
        table = chance_table(self.n)
        reached = (self.counts >= table["k"].to_numpy()[:, None]).sum(axis=1)
        n_draws = np.full(len(reached), len(self.counts))
        low, high = share_interval(reached, n_draws)
        return table.assign(vectors=reached / n_draws, low=low, high=high)

    def moments(self) -> pd.DataFrame:
        """Of the number of hits, ``mean`` and ``variance``, and ``p``, the chance of one hit.

        One row for each ``source``: ``binomial``, ``matrix`` (see `chance_table`), ``vectors``
        (simulated); ``error`` is the standard error of the simulated p.
        """
        n, p = self.n, hit_probability(self.n)
        both = n * (n - 1) * p / (2 * n - 2)  # ordered pairs that are both hits
        variance = self.counts.var(ddof=1)
        return pd.DataFrame(
            {
                "source": ["binomial", "matrix", "vectors"],
                "p": [p, p, self.counts.mean() / n],
                "error": [0.0, 0.0, np.sqrt(variance / len(self.counts)) / n],
                "mean": [n * p, n * p, self.counts.mean()],
                "variance": [n * p * (1 - p), both + n * p - (n * p) ** 2, variance],
            }
        )


def chance_simulation(
    n: int, dim: int, n_draws: int, seed: int = 0, *, anisotropy: float = 0.0
) -> ChanceSimulation:
    """Hits of n sentences that are no translations: random vectors in both languages.

    The cosines of n with n vectors are not n² independent numbers, as appendix A.4 takes them to
    be; this shows what follows for the score.

    ``anisotropy``, in [0, 1), is the cosine of two vectors, on average (in high dimensions). All
    have a part in common, as in Transformers; above 0 some directions are central, vectors near
    them are hubs, and a chance hit is rarer than 1 / (2n - 1): A.4 then errs on the safe side.

    ValueError for fewer than two sentences, dimensions or draws, or another anisotropy.
    """
    if min(n, dim, n_draws) < 2:
        raise ValueError(
            f"n = {n}, dim = {dim}, n_draws = {n_draws}: each must be two or more (in one "
            "dimension all cosines are 1 or -1)"
        )
    if not 0 <= anisotropy < 1:
        raise ValueError(f"an anisotropy of {anisotropy} is outside [0, 1)")
    anisotropy = float(anisotropy)
    about = {"n": n, "dim": dim, "n_draws": n_draws, "seed": seed, "anisotropy": anisotropy}
    counts = work.result(CHANCE_HITS, about, n, dim, n_draws, seed, anisotropy)["counts"]
    return ChanceSimulation(n, counts.astype(int))


def _chance_hits(
    n: int, dim: int, n_draws: int, seed: int, anisotropy: float
) -> dict[str, np.ndarray]:
    """Number of hits of each draw, ``counts`` ``(n_draws,)``."""
    rng = np.random.default_rng(seed)
    common = np.zeros(dim)
    common[0] = np.sqrt(dim * anisotropy / (1 - anisotropy))
    counts = np.empty(n_draws, dtype=int)
    chunk = max(1, BLOCK_NUMBERS // (n * max(n, dim)))
    for start in range(0, n_draws, chunk):
        part = counts[start : start + chunk]
        both = rng.normal(size=(2, len(part), n, dim)) + common
        both /= np.linalg.norm(both, axis=-1, keepdims=True)
        across = both[0] @ both[1].transpose(0, 2, 1)
        diagonal = np.diagonal(across, axis1=1, axis2=2).copy()
        across[:, np.arange(n), np.arange(n)] = -np.inf
        part[:] = (diagonal > np.maximum(across.max(axis=1), across.max(axis=2))).sum(axis=1)
    return {"counts": counts.astype(np.min_scalar_type(n))}


CHANCE_HITS = work.Kind("mexa-chance", _chance_hits, version=1)
#: Whether states are taken without the offset of each language.
STATES = {"raw": False, "centred": True}


# --- parameters → scores --------------------------------------------------------------------------


def load_text(
    corpus: str,
    languages: Sequence[str] | str | None,
    n_sentences: int | None,
    also: Sequence[str] = (),
) -> ParallelCorpus:
    """The first sentences of a corpus; ``languages="belebele"``: the paper's 117 and ``also``."""
    text = parallel.load(corpus, None if languages == "belebele" else languages)
    if languages == "belebele":
        labels = pd.read_csv(paths.PUBLISHED / "mexa" / "belebele_labels.csv")["label"]
        needed = {*also, *map(downstream.language_of, labels)}
        text = text.select([code for code in text.languages if code in needed])
    return text.drop(range(n_sentences or len(text), len(text)))


def language_tags(corpus: str) -> dict[str, str]:
    """Code → label of FLORES-200, if that is the corpus."""
    return parallel.tags(corpus) if corpus in ("flores200-100", "flores200") else {}


def language_groups(text: ParallelCorpus, corpus: str) -> dict[str, str]:
    """Code → whether the family has read a language, else by its script; of no other model."""
    tags = language_tags(corpus)

    def group(code: str) -> str:
        if code in languages.LANGUAGES:
            return "the family's 36"
        latin = tags.get(code, "_Latn").endswith("_Latn")
        return "others, Latin script" if latin else "others, other scripts"

    return {code: group(code) for code in text.languages}


def language_scripts(text: ParallelCorpus, corpus: str) -> dict[str, str]:
    """Code → script ("Latn"), by the label in FLORES-200, else of the languages of the family."""
    of_family = {code: language.script for code, language in languages.LANGUAGES.items()}
    scripts = of_family | {code: tag[-4:] for code, tag in language_tags(corpus).items()}
    return {code: scripts[code] for code in text.languages if code in scripts}


def cover(
    names: Sequence[Name],
    text: ParallelCorpus,
    pivot: str,
    poolings: Sequence[str],
    max_length: int | None,
    *,
    states: Sequence[str] = tuple(STATES),
    alternatives: bool = True,
) -> list[Coverage]:
    """`measure_coverage` of models, of raw and centred states, with each pooling."""
    options = {"poolings": poolings, "alternatives": alternatives, "max_length": max_length}
    return [
        coverage
        for name in names
        for kind in states
        for coverage in measure_coverage(
            name, text, pivot, centred=STATES[kind], **options
        ).values()
    ]


def training_history(name: str) -> list[identity.Checkpoint]:
    """The checkpoints of a series; none of a model without a history."""
    try:
        return identity.checkpoints(name)
    except identity.NoHistoryError:
        return []


def cover_beside(
    first: tuple[str, str] | None,
    controls: Mapping[str, str],
    text: ParallelCorpus,
    pivot: str,
    max_length: int | None,
) -> list[Coverage]:
    """The first model (and its pooling) untrained, if it is given, and models that must align.

    Untrained: step 0 of its series, or where it has none its untrained twin.
    """
    covered = []
    if first is not None:
        name, pooling = first
        start = [checkpoint for checkpoint in training_history(name)[:1] if not checkpoint.step]
        before = start or [identity.twin_of(name)]
        covered = [
            replace(coverage, model=f"{identity.title(name)}, untrained")
            for coverage in cover(before, text, pivot, [pooling], max_length, alternatives=False)
        ]
    for control, pooling in controls.items():
        covered += cover([control], text, pivot, [pooling], max_length, alternatives=False)
    return covered


def bags(
    names: Sequence[str], text: ParallelCorpus, pivot: str, max_length: int | None
) -> pd.DataFrame:
    """`score_bags` of the subwords of each model, raw and centred."""
    return pd.concat(
        [
            score_bags(name, text, pivot, centred=centred, max_length=max_length)
            .pooled()
            .assign(model=series_name(identity.identify(name)), states=kind)
            for kind, centred in STATES.items()
            for name in names
        ]
    )


# --- scores → tables ------------------------------------------------------------------------------


def corner(
    states: Mapping[str, np.ndarray], pivot: str, language: str, layer: int, n: int = 6
) -> pd.DataFrame:
    """The first cosines of a language (rows) with the pivot (columns), and which are hits."""
    units = {
        code: array[layer] / np.linalg.norm(array[layer], axis=1)[:, None]
        for code, array in states.items()
    }
    cosines = units[language] @ units[pivot].T
    table = pd.DataFrame(cosines).iloc[:n, :n]
    rivals = cosines.copy()
    np.fill_diagonal(rivals, -np.inf)
    table["largest of all others"] = np.maximum(rivals.max(axis=0), rivals.max(axis=1))[:n]
    table["hit"] = mexa.scores(states, pivot, layers=[layer]).hits[0, 0, :n]
    return table


def alignment_by_layer(covered: Sequence[Coverage]) -> pd.DataFrame:
    """Scores by layer of all that is covered."""
    return pd.concat([coverage.named(coverage.scores.table()) for coverage in covered])


def pooled_table(
    covered: Sequence[Coverage], hows: Sequence[str] = ("mean", "max")
) -> pd.DataFrame:
    """Scores pooled over layers, each way, with a column ``layers`` that says how."""
    return pd.concat(
        [
            coverage.named(coverage.scores.pooled(how).assign(layers=how))
            for coverage in covered
            for how in hows
        ],
        ignore_index=True,
    )


def mean_by_layer(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean score over languages, a column a layer."""
    return table.groupby([*by, "layer"], sort=False)["mu"].mean().unstack().round(3)


def cut_sentences(covered: Sequence[Coverage]) -> pd.DataFrame:
    """How many sentences of a language are cut, a column a model."""
    return pd.DataFrame({coverage.model: pd.Series(coverage.cut) for coverage in covered})


def drawn_layers(
    by_layer: pd.DataFrame,
    beside: Sequence[Coverage],
    bag_table: pd.DataFrame,
    groups: Mapping[str, str],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means over groups of languages by layer, and of the raw bags, for `plots.mexa`."""
    scores = pd.concat([by_layer, alignment_by_layer(beside)])
    raw = bag_table[bag_table["states"] == "raw"]
    bag_of = {name: name.removesuffix(", untrained") for name in scores["model"].unique()}
    floors = pd.concat(
        [raw[raw["model"] == bag].assign(model=name) for name, bag in bag_of.items()]
    )
    scores, floors = (
        table.assign(group=table["language"].map(groups)).groupby(by, sort=False)["mu"].mean()
        for table, by in (
            (scores, ["model", "states", "group", "layer"]), (floors, ["model", "group"]),
        )
    )  # fmt: skip
    return scores.reset_index(), floors.reset_index()


def course(
    checkpoints: Sequence[identity.Checkpoint],
    text: ParallelCorpus,
    pivot: str,
    pooling: str,
    max_length: int | None,
    groups: Mapping[str, str],
) -> pd.DataFrame:
    """Mean score over layers without the embeddings, by group of languages and training step."""
    tables = []
    for checkpoint in checkpoints:
        for coverage in cover([checkpoint], text, pivot, [pooling], max_length, alternatives=False):
            table = coverage.scores.pooled("mean", embedding_layer=False)
            tables.append(table.assign(step=checkpoint.step, states=coverage.states))
    table = pd.concat(tables).assign(languages=lambda rows: rows["language"].map(groups))
    table = pd.concat([table.assign(languages="all"), table])
    return table.groupby(["languages", "states", "step"], sort=False)["mu"].mean().unstack()


def interval_table(pooled: pd.DataFrame, pooling: str, names: Mapping[str, str]) -> pd.DataFrame:
    """Highest score over layers with its interval, by language and model."""
    rows = pooled[(pooled["pooling"] == pooling) & (pooled["layers"] == "max")]
    rows = rows[rows["language"].isin(names)]
    ends = rows[["mu", "low", "high"]].to_numpy()
    text = [f"{mu:.2f} ({low:.2f} to {high:.2f})" for mu, low, high in ends]
    rows = rows.assign(interval=text, language=rows["language"].map(names))
    return rows.pivot_table(
        index="language", columns=["model", "states"], values="interval", aggfunc="first",
        sort=False,
    )  # fmt: skip


def group_table(
    pooled: pd.DataFrame, bag_table: pd.DataFrame, groups: Mapping[str, str]
) -> pd.DataFrame:
    """Means over groups of languages of the scores and of the bags, one bag a vocabulary."""
    bag_table = bag_table[bag_table["model"].isin(pooled["model"])]
    wide = bag_table.pivot(index="model", columns=["states", "language"], values="mu")
    once = bag_table[bag_table["model"].isin(wide.index[~wide.duplicated()])]
    table = pd.concat([once.assign(pooling="bag of subwords", layers=""), pooled])
    table = table.assign(languages=table["language"].map(groups))
    sizes = table.drop_duplicates("language")["languages"].value_counts()
    keys = ["model", "pooling", "layers", "states", "languages"]
    means = table.groupby(keys, sort=False)["mu"].mean().unstack()
    return means.rename(columns=lambda group: f"{group} ({sizes[group]})")


def above_bags(
    pooled: pd.DataFrame, beside: Sequence[Coverage], bag_table: pd.DataFrame
) -> pd.DataFrame:
    """In how many languages the highest layer is above the bag of the model's subwords."""
    highest = pd.concat([pooled[pooled["layers"] == "max"], pooled_table(beside, ["max"])])
    keys = ["model", "states", "language"]
    both = highest.merge(bag_table, on=keys, suffixes=("", " of bag"))
    return _counted(both.assign(above=both["mu"] > both["mu of bag"]), "the bag")


def _counted(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """In how many rows of each model, pooling and kind of states the column ``above`` is true."""
    counted = table.groupby(["model", "pooling", "states"], sort=False)["above"].agg(
        ["sum", "size"]
    )
    return counted.set_axis([f"languages above {what}", "of"], axis=1)


# --- chance ---------------------------------------------------------------------------------------


def simulated_tails(
    sizes: Sequence[int], simulated: Sequence[int], dim: int, n_draws: int, seed: int
) -> pd.DataFrame:
    """`chance_table` of each number of sentences, with random vectors for those ``simulated``."""
    tables = [
        chance_simulation(n, dim, n_draws, seed).tails() if n in simulated else chance_table(n)
        for n in sizes
    ]
    return pd.concat(
        [table.assign(n=n) for n, table in zip(sizes, tables, strict=True)], ignore_index=True
    )


def chance_moments(
    n: int, dim: int, n_draws: int, seed: int, anisotropies: Sequence[float]
) -> pd.DataFrame:
    """Hits by chance of vectors with ever more in common, beside the two formulas."""
    table = pd.concat(
        [
            chance_simulation(n, dim, n_draws, seed, anisotropy=share)
            .moments()
            .assign(anisotropy=share)
            for share in anisotropies
        ]
    )
    kept = (table["source"] == "vectors") | (table["anisotropy"] == anisotropies[0])
    return table[kept].set_index(["source", "anisotropy"])


def least_hits(
    pooled: pd.DataFrame, covered: Sequence[Coverage], n: int, p: float = 0.001
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hits that the highest of L layers reaches by chance with less than ``p`` of a language.

    L times the probability of one layer is an upper bound. By number of layers: ``hits``, ``P``;
    and how many languages of each model have so many.
    """
    tail = chance_table(n).set_index("k")["matrix"]
    depth = {coverage.model: len(coverage.scores.layers) for coverage in covered}
    least = {layers: int((layers * tail < p).idxmax()) for layers in sorted(set(depth.values()))}
    bounds = {layers: {"hits": k, "P": layers * tail[k]} for layers, k in least.items()}
    highest = pooled[pooled["layers"] == "max"]
    hits = (highest["mu"] * n).round().astype(int)
    above = highest.assign(above=hits >= highest["model"].map(depth).map(least))
    bounds = pd.DataFrame(bounds).T.rename_axis("layers").astype({"hits": int})
    return bounds, _counted(above, "chance")
