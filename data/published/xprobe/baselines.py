"""What encoders that know nothing have on X-Probe's released sentences: release_baselines.csv.

    python data/published/xprobe/release.py FOLDER
    python data/published/xprobe/baselines.py FOLDER

A row per encoder, language and task: ``accuracy``, ``n_train``, ``n_test``. Each word has a random
vector of 100 numbers and length 1. "mean of words" is their mean, a bag of words; "mean of counted
words" that of vectors counted on the compendium's text, each language by itself. On SentLen there
are also the paper's six encoders with random weights, at the miniatures' size. A probe of the
paper's shape, in larger batches, is trained on ``va.txt`` (each tenth line stops it) and tested on
``te.txt``; of TreeDepth, which has one file twice, on every other line
(`xprobe_3_mapping.read_senteval`). No text is written.
"""

import argparse
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import normalize

from xprobe.encoders import ENCODERS, MINI, untrained
from xprobe.probing import Subject, probe
from xprobe.word_spaces import Lookup, Words
from xprobe_3_mapping import RELEASED, read_senteval

LANGUAGES = ("en", "de", "es", "fr", "ru")  # those of Table 4
COUNTED = "mean of counted words"


class RandomWords:
    """A random vector of length 1 for each word, in place of a `word_spaces.Lookup`."""

    def __init__(self, seed: int, n: int = 1_000_003) -> None:
        self.ask = {"random words": [n, MINI.words], "length": 1, "seed": seed}
        rng = np.random.default_rng(seed)
        self.vectors = normalize(rng.standard_normal((n, MINI.words), dtype=np.float32))

    def __call__(self, words: list[str]) -> np.ndarray:
        return self.vectors[[zlib.crc32(word.encode()) % len(self.vectors) for word in words]]


def main() -> None:
    """Probe what the folder holds, a task in all languages after another."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the release, unpacked")
    parser.add_argument("--seed", type=int, default=1, help="of vectors, weights, probes")
    parser.add_argument("--tasks", nargs="+", default=list(RELEASED), help="all, or some")
    given = parser.parse_args()
    words, tables = RandomWords(given.seed), []
    recipes = [untrained(name, MINI, given.seed) for name in ENCODERS]
    for name in given.tasks:
        folders = {code: given.folder / code / RELEASED[name] for code in LANGUAGES}
        tasks = {code: [read_senteval(folder, name, code)] for code, folder in folders.items()}
        subjects = [Subject(words, code) for code in LANGUAGES]
        subjects += [Subject(Lookup(Words(code)), code, COUNTED) for code in LANGUAGES]
        if name == "SentLen":
            subjects += [
                Subject(words, x, "untrained", folder) for folder in recipes for x in LANGUAGES
            ]
        options = {"seeds": [given.seed], "control": False, "batch_size": 1024}
        tables.append(probe(subjects, tasks, **options))
    columns = ["encoder", "language", "task", "n_train", "n_test", "accuracy"]
    table = pd.concat(tables).round({"accuracy": 4})
    counted = table["condition"] == COUNTED
    table.loc[counted, "encoder"] = COUNTED
    table = table[columns]
    table.to_csv(Path(__file__).with_name("release_baselines.csv"), index=False)


if __name__ == "__main__":
    main()
