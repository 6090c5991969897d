"""Measure checkpoints of the family on WMT24++: LD, MD and MD matched for length, by layer.

    python data/models-long/measure.py mini-xlmr build/models/mini-xlmr --out layers.csv

A folder may also hold a whole series. MD asks whether a sentence is nearer to its translation than
to another sentence of that language; where positions are embedded, length alone answers that
better than chance, so *matched* MD asks only of sentences within 10 % of the translation's length.
The bag of subwords is the line that a model has to pass. Slow and plain on purpose: float64, and
each number read off the matrices of cosines by its definition.
"""

import argparse
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.subjects import loading, states
from xlx.subjects.states import embed
from xlx.text import parallel

#: Six languages in four scripts.
LANGUAGES = ("en", "de", "ru", "ja", "ar", "tr")
#: B has as many characters as A, give or take this share.
LIKE_LENGTH = 0.1


def nearer(close: np.ndarray, far: np.ndarray, asked: np.ndarray) -> float:
    """Share of the triplets asked in which `close` is larger than `far`; a tie counts one half."""
    tied = np.abs(close - far) < 1e-12
    return float(np.where(tied, 0.5, close > far)[asked].mean())


def scores(
    vectors: Mapping[str, np.ndarray], characters: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """LD, MD, matched MD and retrieval of one layer, mean over ordered pairs of languages."""
    units = {}
    for language, of_language in vectors.items():
        exact = np.asarray(of_language, dtype=np.float64)
        units[language] = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    rows = []
    for first, second in permutations(units, 2):
        within, across = units[first] @ units[first].T, units[first] @ units[second].T
        other = ~np.eye(len(within), dtype=bool)
        translation, length = np.diag(across)[:, None], characters[second]
        alike = np.abs(length[None, :] - length[:, None]) <= LIKE_LENGTH * length[:, None]
        rows.append(
            {
                "LD": nearer(within, across, other),
                "MD": nearer(translation, across, other),
                "matched_MD": nearer(translation, across, other & alike),
                "retrieval": float((across.argmax(axis=1) == np.arange(len(across))).mean()),
            }
        )
    return pd.DataFrame(rows).mean().to_dict()


def layers(states: Mapping[str, np.ndarray], corpus: parallel.ParallelCorpus) -> pd.DataFrame:
    """``states``: language → ``(n_layers + 1, n_sentences, dim)``. One row a layer."""
    characters = {code: np.array([*map(len, lines)]) for code, lines in corpus.sentences.items()}
    n_layers = len(next(iter(states.values())))
    rows = [scores({code: x[k] for code, x in states.items()}, characters) for k in range(n_layers)]
    return pd.DataFrame(rows).rename_axis("layer").reset_index()


def measure(name: str | Path, corpus: parallel.ParallelCorpus) -> pd.DataFrame:
    """The layers of a model; its special tokens do not count in the mean of the states."""
    encoder = loading.load(str(name), device="cpu")
    states = {
        language: embed(encoder, sentences).states
        for language, sentences in corpus.sentences.items()
    }
    return layers(states, corpus)


def bag(name: str | Path, corpus: parallel.ParallelCorpus) -> pd.DataFrame:
    """The bag of subwords of a model's vocabulary, as a model of one layer."""
    counts = states.bag_of_subwords(loading.load(str(name), device="cpu"), corpus)
    return layers({code: matrix.toarray()[None] for code, matrix in counts.items()}, corpus)


def added(table: pd.DataFrame, out: Path | None) -> None:
    """Print a table, and add it to a CSV file."""
    print(table.to_string(index=False), flush=True)
    if out:
        table.to_csv(out, mode="a", header=not out.exists(), index=False, lineterminator="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", help="members, folders of a checkpoint or of a series")
    parser.add_argument("--sentences", type=int, help="so many instead of all")
    parser.add_argument("--out", type=Path, help="a CSV file to add to")
    options = parser.parse_args()
    corpus = parallel.load("wmt24pp", drop_duplicates=True)  # positions that no language repeats
    corpus = corpus.take(options.sentences, 0) if options.sentences else corpus
    corpus = corpus.select(LANGUAGES)
    for name in options.names:
        steps = sorted(Path(name).glob("step-*")) or [Path(name)]
        tables = [measure(step, corpus).assign(model=str(step)) for step in steps]
        tables.append(bag(steps[-1], corpus).assign(model=f"bag of {name}"))
        table = pd.concat(tables, ignore_index=True).round(4)
        table.insert(0, "model", table.pop("model"))
        added(table, options.out)


if __name__ == "__main__":
    main()
