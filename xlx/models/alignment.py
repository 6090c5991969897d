"""Cross-lingual alignment: what else the sentence vectors of two languages and one layer say.

Translation retrieval, to which the ABX paper compares its meaning discrimination (section 4.1,
after Sundar et al. 2025): of all sentences of the other language, is the most similar one the
translation? And the measures beside which the MEXA paper sets its score (sections 5.3 and A.3):
mean cosines, margins, CKA and RSA, of a language with the pivot. And the three distances by which
the IGAP paper ranks transfer directions (section 4.2, after Hu et al. 2020), for all directions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from scipy import stats

from xlx.core import checks
from xlx.models.similarity import Block, blocks, unit_vectors

#: Nearest neighbours of the margin, as in Artetxe and Schwenk (2019).
NEIGHBOURS = 4
#: Below this share of their size, numbers that differ are taken for equal.
_ROUNDING = 1e-12
#: Decimals of a cosine that count where cosines are ranked: beyond them equal ones differ.
_DECIMALS = 12
#: What `measures` computes, in the order of its rows.
ALIGNMENT_MEASURES = (
    "parallel_cosine", "other_cosine", "to_pivot", "from_pivot", "margin", "margin_to_pivot",
    "margin_from_pivot", "cka", "debiased_cka", "rsa_spearman", "rsa_pearson",
)  # fmt: skip


def top1_credit(similarity: torch.Tensor, candidates: int, tolerance: torch.Tensor) -> torch.Tensor:
    """Whether the translation beats every other candidate: ``(m, n)`` in [0, 1].

    1 if it does, 0 if another is more similar; with k others as similar, 1 / (k + 1), what a draw
    among them would win. ``similarity`` is ``(m, n, n)`` with the translations on the diagonals,
    ``candidates`` the axis (1 or 2) along which a query chooses. Overwrites the diagonals with
    -inf: the best rival is what is left.
    """
    diagonal = similarity.diagonal(dim1=1, dim2=2)
    translation = diagonal.clone()
    diagonal.fill_(-torch.inf)
    margin = translation - similarity.amax(dim=candidates)
    slack = tolerance[:, None]
    credit = (margin >= -slack).double()
    if (margin.abs() <= slack).any():
        level = (translation - slack).unsqueeze(candidates)
        credit /= 1 + (similarity >= level).sum(dim=candidates)
    return credit


# --- a language and a pivot -----------------------------------------------------------------------


def check_pivot(
    states: Mapping[str, np.ndarray], pivot: str, layers: Sequence[int] | None = None
) -> tuple[int, ...]:
    """The layers to compare with the pivot (None: all), or a ValueError that says what is wrong.

    `states` is language → ``(n_layers + 1, n, dim)``.
    """
    if pivot not in states:
        raise ValueError(
            f"there are no states of the pivot {pivot}: embed it, or choose among "
            f"{', '.join(states) or 'none'}"
        )
    if len(states) < 2:
        raise ValueError(f"there is only the pivot {pivot}: a score needs another language")
    shape = np.shape(states[pivot])
    for language, array in states.items():
        if np.ndim(array) != 3:
            raise ValueError(
                f"the states of {language} have shape {np.shape(array)}: (n_layers + 1, n, dim) is "
                "needed, also for one layer"
            )
        sizes = zip(np.shape(array), shape, ("layers", "sentences", "dim"), strict=True)
        for size, due, name in sizes:
            if size != due:
                raise ValueError(
                    f"{language} has {size} {name} and the pivot {pivot} {due}: give both the same "
                    "parallel sentences, embedded with one model"
                )
    if shape[1] < 2:
        raise ValueError(f"two sentences or more are needed, and there is {shape[1]}")
    checks.arrays(states)
    return tuple(checks.layers(layers, shape[0]))


def measures(
    states: Mapping[str, np.ndarray], pivot: str = "en", *, layers: Sequence[int] | None = None
) -> pd.DataFrame:
    """All measures of this module, of each language with the pivot, at each layer.

    ``states`` are language → ``(n_layers + 1, n, dim)``, sentences aligned across languages;
    ``layers`` all by default, the embedding layer (0) included. One row per language, layer and
    ``measure`` (of `ALIGNMENT_MEASURES`) with its ``value``, NaN where a measure has none (all
    sentences have one vector). ValueError as `check_pivot` and `similarity.unit_vectors`; for fewer
    than four sentences.
    """
    rows = []
    for layer in check_pivot(states, pivot, layers):
        for language in states:
            if language == pivot:
                continue
            raw = states[language][layer], states[pivot][layer]
            try:
                units = unit_vectors(dict(zip((language, pivot), raw, strict=True)))
                unit = units[language], units[pivot]
                values = (
                    *mean_cosines(*unit), *retrieval(*unit), *margin(*unit), cka(*raw),
                    cka(*raw, debiased=True), *rsa(*raw),
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{language} with {pivot}, layer {layer}: {error}") from None
            rows += [
                (language, layer, measure, value)
                for measure, value in zip(ALIGNMENT_MEASURES, values, strict=True)
            ]
    return pd.DataFrame(rows, columns=["language", "layer", "measure", "value"])


def mean_cosines(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Mean cosine of parallel and of other sentences (MEXA paper, section 5.3), in [-1, 1].

    ``first`` and ``second`` are ``(n, dim)``, row i of one the translation of row i of the other.
    The mean over all n² pairs is the product of the mean unit vectors, so no matrix is needed.
    """
    first, second = _units(first, second)
    n = len(first)
    parallel = np.einsum("id,id->", first, second)
    everything = first.sum(axis=0) @ second.sum(axis=0)
    return float(parallel / n), float((everything - parallel) / (n * (n - 1)))


def retrieval(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Share of sentences whose most similar one is the translation, in [0, 1].

    (from the first to the second, from the second to the first); ties as in `top1_credit`. The
    paper's retrieval in both directions is their mean; MEXA asks for both at once.
    """
    (block,) = blocks({"first": first, "second": second})
    to_second, to_first = _retrieval_in(block)
    return float(to_second[0]), float(to_first[0])


def _retrieval_in(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """`retrieval` of one language with the m others of a block: ``(m,)`` to them, from them."""
    to_second = block.across + block.offset_second[:, :, None]
    to_first = block.across + block.offset_first
    return (
        top1_credit(to_second, 1, block.tolerance).mean(dim=1).numpy(),
        top1_credit(to_first, 2, block.tolerance).mean(dim=1).numpy(),
    )


def margin(
    first: np.ndarray, second: np.ndarray, *, neighbours: int = NEIGHBOURS
) -> tuple[float, float, float]:
    """Ratio margin of the translations, and retrieval by it (Artetxe and Schwenk 2019, section 3).

    The cosine of two sentences over the mean of the two means of each one's cosines with its
    nearest sentences of the other language. It takes out hubs, which are near to everything. It
    means something where those means are above zero, as they are in Transformers.

    Returns the mean margin of the translations (1: no nearer than the ``neighbours``), then as
    `retrieval` with the margin in the place of the cosine.
    """
    if neighbours < 1:
        raise ValueError(f"there must be one neighbour or more, not {neighbours}")
    first, second = _units(first, second)
    cosine = first @ second.T
    k = min(neighbours, len(first))
    near_first = np.partition(cosine, -k, axis=1)[:, -k:].mean(axis=1)
    near_second = np.partition(cosine, -k, axis=0)[-k:].mean(axis=0)
    ratio = torch.from_numpy(cosine / ((near_first[:, None] + near_second) / 2))[None]
    rounding = torch.full((1,), 16 * np.finfo(float).eps, dtype=torch.float64)
    mean = float(ratio.diagonal(dim1=1, dim2=2).mean())
    credits = [top1_credit(ratio.clone(), axis, rounding).mean() for axis in (2, 1)]
    return mean, float(credits[0]), float(credits[1])


def cka(first: np.ndarray, second: np.ndarray, *, debiased: bool = False) -> float:
    """Linear centred kernel alignment (Kornblith et al. 2019).

    HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)) of the matrices of dot products K and L of two languages;
    unchanged by rotations and by a common scale. With fewer sentences than dimensions the usual
    (biased) estimate of HSIC makes unrelated vectors look alike; ``debiased`` takes the unbiased
    one (Song et al. 2012; Nguyen et al. 2021), about 0 for unrelated vectors and at times below.

    ``first`` and ``second`` are ``(n, dim)``, as they come from the model; ``dim`` may differ. In
    [0, 1], or [-1, 1] if debiased; NaN if all vectors of a language are the same. ValueError for
    unequal n; debiased, for fewer than four sentences.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} sentences against {len(second)}: they must be parallel")
    n = len(first)
    if debiased and n < 4:
        raise ValueError(f"debiased CKA needs four sentences or more, and there are {n}")
    kernels = []
    for vectors in (first, second):
        # Centred before the products: that changes neither estimate, but keeps their digits.
        centred = vectors - vectors.mean(axis=0, dtype=np.float64)
        scale = np.abs(centred).max()
        if scale <= _ROUNDING * np.abs(vectors).max():
            return float("nan")
        centred = centred / scale
        kernel = centred @ centred.T
        if debiased:  # "U-centred": the unbiased HSIC is then a mean of products, too
            np.fill_diagonal(kernel, 0)
            sums = kernel.sum(axis=0) / (n - 2)
            kernel += sums.sum() / (n - 1) - sums - sums[:, None]
            np.fill_diagonal(kernel, 0)
        kernels.append(kernel)
    k, l = kernels  # noqa: E741
    norm = np.linalg.norm(k) * np.linalg.norm(l)
    return float((k * l).sum() / norm) if norm > 0 else float("nan")


def rsa(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Representational similarity analysis (Chrupała and Alishahi 2019; MEXA paper, A.3).

    Spearman's and Pearson's correlation, in [-1, 1], of the cosines within one language with those
    within the other, over all pairs of sentences. NaN where they have no variation. ``(n, dim)``.
    Equal cosines (of sentences with one vector, as at layer 0 of a last token) share a rank.
    """
    cosines = [_within(unit) for unit in _units(first, second)]
    if min(map(np.ptp, cosines)) <= 16 * np.finfo(float).eps:
        return float("nan"), float("nan")
    ranks = [stats.rankdata(own.round(_DECIMALS)) for own in cosines]
    return float(np.corrcoef(*ranks)[0, 1]), float(np.corrcoef(*cosines)[0, 1])


def _within(unit: np.ndarray) -> np.ndarray:
    """Cosines of all pairs of sentences of a language: ``(n (n - 1) / 2,)``."""
    mean = unit.mean(axis=0)
    centred = unit - mean
    offset = centred @ mean
    cosines = centred @ centred.T + offset + offset[:, None]
    return cosines[np.triu_indices(len(unit), 1)]


# --- all directions -------------------------------------------------------------------------------


def mean_distances(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """Mean L2 distance, dot product and cosine of parallel sentences (IGAP paper, section 4.2).

    After Hu et al. (2020); of the L2 distance low is near, of the others high. All three are the
    same in both directions, so they cannot tell which of two languages is the better source.
    ``first`` and ``second`` are ``(n, dim)``, as they come from the model, row i of one the
    translation of row i of the other.
    """
    cosine, _ = mean_cosines(first, second)
    first, second = first.astype(np.float64), second.astype(np.float64)
    return (
        float(np.linalg.norm(first - second, axis=1).mean()),
        float(np.einsum("id,id->", first, second) / len(first)),
        cosine,
    )


def directions(
    states: Mapping[str, np.ndarray], *, layers: Sequence[int] | None = None
) -> pd.DataFrame:
    """The `mean_distances` and the `retrieval` of every ordered pair of languages, at each layer.

    ``states`` is language → ``(n_layers + 1, n, dim)``, means over the tokens of a sentence in the
    paper; sentences aligned across languages. ``layers``: None for all, the embedding layer (0)
    included. A table of ``metric`` ("L2", "dot", "cosine", "retrieval"), ``source``, ``target``,
    ``layer``, ``value``; retrieval asks with the sentences of the source among those of the target.
    Raises as `check_pivot` (the first language stands for the pivot) and `similarity.unit_vectors`.
    """
    if len(states) < 2:
        raise ValueError(
            f"a transfer direction needs two languages, and the states have {len(states)}: "
            f"{', '.join(states) or 'none'}"
        )
    rows = []
    for layer in check_pivot(states, next(iter(states)), layers):
        vectors = {language: array[layer] for language, array in states.items()}
        try:
            shares = {
                (block.first, other): tuple(map(float, both))
                for block in blocks(vectors)
                for other, *both in zip(block.second, *_retrieval_in(block), strict=True)
            }
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
        for (one, other), both in shares.items():
            distances = mean_distances(vectors[one], vectors[other])
            values = zip(("L2", "dot", "cosine"), distances, distances, strict=True)
            for metric, there, back in [*values, ("retrieval", *both)]:
                rows.append((metric, one, other, layer, there))
                rows.append((metric, other, one, layer, back))
    return pd.DataFrame(rows, columns=["metric", "source", "target", "layer", "value"])


def best_aligned_layer(
    states: Mapping[str, np.ndarray], *, layers: Sequence[int] | None = None
) -> int:
    """The layer with the highest mean retrieval over all ordered pairs; of equal ones the lowest.

    The IGAP paper takes layer 7 of 12, found the best aligned of XLM-R by others; a model of
    another depth needs its own. ``states`` as in `directions`.
    """
    table = directions(states, layers=layers)
    means = table[table["metric"] == "retrieval"].groupby("layer")["value"].mean()
    return int(means.index[means >= means.max() * (1 - _ROUNDING)].min())


def _units(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    units = unit_vectors({"first": first, "second": second})
    return units["first"], units["second"]
