"""Minimal pairs: is X nearer to A, which means the same, than to B, which A was edited into?

The pairs are anybody's: a table with a row for each. Beside a model stand what knows no meaning: a
bag of its subwords, and how many characters have to be changed (`edit_distance`), which sees the
order of what two texts write alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from xlx.experiment.averages import Average
from xlx.experiment.scoring import Subject
from xlx.results.deferred import deferred
from xlx.text import files
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus, documents

sparse = deferred("scipy.sparse")

#: Columns that a table of pairs must have.
SENTENCES = ("A", "B", "X")
#: What stands for an edit distance in tables, and for all kinds as one.
EDIT_DISTANCE, EVERY_KIND = "edit distance", "all"


def load_pairs(file: Path) -> ParallelCorpus:
    """A table of minimal pairs (CSV, TSV) as a corpus whose "languages" are A, B and X.

    Columns ``A``, ``B``, ``X``; if there, ``kind`` becomes the domain, and ``document``, which
    intervals are over, opens the id; without it each pair is its own. TextError for a table without
    these columns, fewer than two pairs, an empty cell, a B that is A.
    """
    if not file.is_file():
        raise TextError(f"there is no file {file}: give a table with the columns A, B and X")
    table = files.table_of(file).fillna("")
    if lacks := [name for name in SENTENCES if name not in table]:
        there = ", ".join(map(str, table))
        raise TextError(f"{file} lacks the column {lacks[0]}: its columns are {there}")
    if len(table) < 2:
        raise TextError(f"{file} has {len(table)} pair: an interval needs two or more")
    usual = {"kind": [EVERY_KIND] * len(table), "document": map(str, table.index)}
    columns = {name: tuple(table.get(name, usual.get(name))) for name in (*SENTENCES, *usual)}
    for name, cells in columns.items():
        if empty := [i for i, x in enumerate(cells, 1) if not files.visible(str(x))]:
            raise TextError(f"{file}, pair {empty[0]}: {name} is empty: fill it")
    seen = ([files.appearance(str(x)) for x in columns[name]] for name in "AB")
    same = [a == b for a, b in zip(*seen, strict=True)]
    if any(same):
        raise TextError(f"{file}, pair {same.index(True) + 1}: B is A: edit it, or leave it out")
    kinds, places = columns.pop("kind"), columns.pop("document")
    ids = tuple(f"{document}:{i}" for i, document in enumerate(places))
    return ParallelCorpus(file.stem, columns, ids, kinds, "as stated by its owner", str(file))


def cosines(x: ndarray, y: ndarray) -> ndarray:
    """Cosine of each row of x with the row of y, ``(n,)``; dense or sparse, in float64."""
    x, y = x.astype(float), y.astype(float)
    products = [p.multiply(q) if sparse.issparse(p) else p * q for p, q in ((x, y), (x, x), (y, y))]
    dots, of_x, of_y = (np.asarray(p.sum(1)).ravel() for p in products)
    return dots / np.sqrt(of_x * of_y)


@cache
def edit_distance(first: str, second: str) -> int:
    """How many characters are changed, added or left out to turn one text into the other.

    Levenshtein's distance, a column of its table at a time in the bits of two numbers: where a
    cell is one more than that above it, and where one less (Myers 1999).
    """
    if not first:
        return len(second)
    whole, places = (1 << len(first)) - 1, defaultdict(int)
    for i, letter in enumerate(first):
        places[letter] |= 1 << i
    more, less, distance = whole, 0, len(first)
    for letter in second:
        same = places[letter]
        diagonal = (((same & more) + more) ^ more) | same
        longer, shorter = less | (whole & ~(diagonal | more)), more & diagonal
        distance += (longer >> (len(first) - 1)) - (shorter >> (len(first) - 1))
        longer, shorter = (longer << 1 | 1) & whole, (shorter << 1) & whole
        more, less = shorter | (whole & ~(same | less | longer)), longer & (same | less)
    return distance


def nearer(corpus: ParallelCorpus, subject: Subject | None = None) -> ndarray:
    """1 where X is nearer to A than to B, 0 where not, 1/2 for a tie: ``(n_layers, n)``.

    By the cosines of a subject; by `edit_distance` without one, as one layer.
    """
    if subject is None:
        x, a, b = (corpus.sentences[name] for name in "XAB")
        apart = [np.subtract(*(list(map(edit_distance, x, side)) for side in (b, a)))]
    else:
        layers = subject.read(corpus).layers()
        apart = [cosines(v["X"], v["A"]) - cosines(v["X"], v["B"]) for v in layers]
    return (1 + np.sign(apart)) / 2


def share_table(
    corpus: ParallelCorpus, answers: Mapping[str, ndarray], rivals: Sequence[str]
) -> DataFrame:
    """How often X is nearer to A, by ``kind``, ``model`` and ``layer``, with intervals.

    ``answers``: what `nearer` gives of each subject. Columns ``n``, ``share`` with ``share
    low`` and ``share high``, of 95 % over documents, NaN of a single one; and, paired and with its
    own, what a subject has above each of the ``rivals``, of one layer: ``less edit distance``.
    """
    kinds, of_pair = np.array(corpus.domains), np.array(documents(corpus))
    tables = []
    for kind in dict.fromkeys([EVERY_KIND, *corpus.domains]):
        chosen = (kinds == kind) | (kind == EVERY_KIND)
        means = {name: _mean(x[:, chosen], of_pair[chosen]) for name, x in answers.items()}
        for name, mean in means.items():
            parts = {"share": mean} | {f"less {x}": mean - means[x] for x in rivals if x != name}
            table = DataFrame({"kind": kind, "model": name, "layer": range(len(mean.score))})
            table["n"] = chosen.sum()
            for column, part in parts.items():
                names = [column, f"{column} low", f"{column} high"]
                table[names] = np.transpose([part.score, *part.interval()])
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _mean(values: ndarray, groups: ndarray) -> Average:
    """The mean of each row, and what it changes by without each group."""
    cells = groups[:, None] == np.unique(groups)
    n, sizes, mean = len(groups), cells.sum(0), values.mean(1, keepdims=True)
    left = (n * mean - values @ cells) / np.maximum(n - sizes, 1)
    return Average(mean[:, 0], left - mean, sizes)
