"""Which sentences may be B beside A: constraints on the distractors of MD, as data.

A constraint is named by its kind and a column of the text, "like length", "same document", with
parameters where they are not the usual ones, "like length (share=0.2)". Two at once are "like
length and near". As in fastabx (Poli et al. 2025), a column is whatever a text has for each
position: what `column` knows, and any further column of its ``segments.tsv``.

"as like length" is no choice of B: each A counts as often as it has a B of like length, so that MD
of all B is of the same A as among sentences of like length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import ndarray

from xlx.results import checks
from xlx.results.deferred import deferred
from xlx.subjects import states
from xlx.subjects.loading import Encoder
from xlx.text import parallel
from xlx.text.files import sentences_hash
from xlx.text.parallel import ParallelCorpus

sparse = deferred("scipy.sparse")

#: Language of B → ``(n, n)``, whether b may stand beside a.
Mask = dict[str, ndarray]


@dataclass(frozen=True)
class Constraint:
    """B may stand beside A where ``allows(a, b, **parameters)`` holds, of their values in a column.

    ``version`` is raised when the same words mean other masks; entries of other constraints stay.
    """

    allows: Callable[..., ndarray]
    parameters: Mapping[str, float] = field(default_factory=dict)
    column: str = ""
    version: int = 1

    def mask(self, corpus: ParallelCorpus, encoder: Callable[[], Encoder]) -> Mask:
        """By language the pairs of positions, ``(n, n)``, a in rows."""
        values = column(corpus, self.column, encoder)
        return {x: self.allows(a[:, None], a, **self.parameters) for x, a in values.items()}


@dataclass(frozen=True)
class Neighbours(Constraint):
    """B is one of the k sentences with the highest cosine to A in counts of subwords."""

    def mask(self, corpus: ParallelCorpus, encoder: Callable[[], Encoder]) -> Mask:
        """Of the vocabulary of a model; all that are as near as the kth."""
        bags = states.bag_of_subwords(encoder(), corpus)
        return {code: self.allows(counts, **self.parameters) for code, counts in bags.items()}


def _nearest(counts: sparse.csr_array, k: int) -> ndarray:
    counts = counts.astype(float)
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(1)).ravel())
    # Rounded, so that sentences that are equally near are so on every processor.
    cosines = np.round((counts @ counts.T).toarray() / np.outer(norms, norms), 9)
    np.fill_diagonal(cosines, -1)
    kth = np.sort(cosines, 1)[:, -min(int(k), len(cosines) - 1)]
    return cosines >= kth[:, None]


def _like(a: ndarray, b: ndarray, share: float) -> ndarray:
    """Whether numbers b are those of a, give or take a share of them."""
    a, b = a.astype(float), b.astype(float)
    return np.abs(b - a) <= share * a


#: By the word that begins its name.
CONSTRAINTS = {
    "like": Constraint(_like, {"share": 0.1}),
    "same": Constraint(lambda a, b: a == b),
    "other": Constraint(lambda a, b: a != b),
    "near": Neighbours(_nearest, {"k": 10}),
}
NAME = re.compile(r"(?P<kind>\w+)(?: (?P<column>[^()]+?))?(?: \((?P<parameters>[^()]*)\))?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_PARAMETER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")
_AS, _AND = "as ", " and "


def column(corpus: ParallelCorpus, name: str, encoder: Callable[[], Encoder]) -> dict[str, ndarray]:
    """Values of a column by language, ``(n,)``.

    "length" is in characters; "subwords"; "document", "domain" or a column of the text's
    ``segments.tsv``, as text.
    """
    if name == "length":
        return {x: np.array([*map(len, rows)]) for x, rows in corpus.sentences.items()}
    if name == "subwords":
        counts = states.bag_of_subwords(encoder(), corpus)
        return {x: np.asarray(rows.sum(1)).ravel() for x, rows in counts.items()}
    return dict.fromkeys(corpus.languages, np.array(labels(corpus)[name]))


def labels(corpus: ParallelCorpus) -> dict[str, tuple[str, ...]]:
    """What a text says of its positions, by column."""
    there = {"document": parallel.documents(corpus), "domain": corpus.domains}
    return there | corpus.columns


def constraints(name: str, corpus: ParallelCorpus) -> list[Constraint]:
    """The constraints that a name has at once. ValueError for one that is not to be had."""
    parts = []
    for part in name.removeprefix(_AS).split(_AND):
        match = NAME.fullmatch(part)
        kind = match["kind"] if match else part
        checks.one_of(kind, CONSTRAINTS, "constraint")
        known = CONSTRAINTS[kind]
        if kind != "near":
            there = labels(corpus)
            checks.one_of(match["column"], ["length", "subwords", *there], "column")
            if kind == "like" and not all(map(_NUMBER.fullmatch, there.get(match["column"], ()))):
                raise ValueError(
                    f"{part!r}: not all values of {match['column']} are numbers: ask for the same "
                    "or another value"
                )
        parameters = dict(known.parameters)
        for asked in match["parameters"].split(",") if match["parameters"] is not None else ():
            parameter, value = re.fullmatch(r"\s*(\w*)\s*=?\s*(.*?)\s*", asked).groups()
            checks.one_of(parameter, known.parameters, f"parameter of {kind!r}")
            if not _PARAMETER.fullmatch(value):
                raise ValueError(f"{part!r}: {parameter} is {value!r}: give a number as 0.1")
            parameters[parameter] = float(value)
        parts.append(replace(known, parameters=parameters, column=match["column"] or ""))
    return parts


def about(name: str, corpus: ParallelCorpus) -> dict[str, object]:
    """What decides a mask but for the text and its documents and domains, as an ask names it."""
    parts = constraints(name, corpus)
    version = 1 + sum(part.version - 1 for part in parts)
    further = {x.column for x in parts} & {*corpus.columns}
    columns = {x: sentences_hash(corpus.columns[x]) for x in sorted(further)}
    return {"measure": [f"MD, {name}", version]} | ({"columns": columns} if columns else {})


def masks_of(
    corpus: ParallelCorpus, names: Sequence[str], encoder: Callable[[], Encoder] | None = None
) -> dict[str, Mask]:
    """Masks by name; ``encoder`` gives the model whose vocabulary says what is near.

    Where two constraints hold at once, many an A has no B: it takes part in no comparison.
    """
    masks = {}
    for name in names:
        several = [part.mask(corpus, encoder) for part in constraints(name, corpus)]
        mask = {x: np.logical_and.reduce([m[x] for m in several]) for x in corpus.languages}
        if name.startswith(_AS):
            mask = {x: _as_often(allowed) for x, allowed in mask.items()}
        masks[name] = mask
    return masks


def _as_often(allowed: ndarray) -> ndarray:
    """How many other sentences may be B, at every b."""
    counts = allowed.sum(1) - allowed.diagonal()
    return np.broadcast_to(counts[:, None], allowed.shape).astype(np.int16)


def standard_masks(corpus: ParallelCorpus) -> list[str]:
    """Names of the constraints that the chapters ask for, as far as a text has their columns."""
    groups = {name: len(set(values)) for name, values in labels(corpus).items()}
    there = {name for name, n in groups.items() if 1 < n < len(corpus)}
    names = ["same document", "other document", "same domain"]
    return ["like length", "near", *(name for name in names if name.split()[1] in there)]
