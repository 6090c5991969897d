"""Whether a decoder reads a sentence more easily behind its translation than behind another one.

    python data/models-long/context.py data/models-long/mini-llama-bi20 --out context.csv

The rows with translations that `mini-llama-bi2` and `-bi20` read are ``a </s> b </s>``. Here b is a
sentence of WMT24++ (40 to 160 characters in both languages), and a its translation or that of the
next of these sentences: nats a subword of b that the translation saves, by direction. A decoder
that makes nothing of translations saves nothing.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from family import objectives
from family.batches import NO_LABEL, Batch, pad
from measure import added
from xlx.subjects import loading
from xlx.text import parallel
from xlx.text.pretraining_text import BOS, EOS

PIVOT, OTHERS = "en", ("de", "fr", "ru", "tr")
SENTENCES, SHORTEST, LONGEST = 120, 40, 160


def losses(model: torch.nn.Module, first: list[list[int]], second: list[list[int]]) -> np.ndarray:
    """Nats of each subword of the second sentences (and of their end), each behind a first."""
    rows = [np.array([BOS, *a, EOS, *b, EOS]) for a, b in zip(first, second, strict=True)]
    ids, real = pad(rows)
    labels = np.full_like(ids, NO_LABEL)
    for row, (a, b) in enumerate(zip(first, second, strict=True)):
        start = len(a) + 2
        labels[row, start - 1 : start + len(b)] = ids[row, start : start + len(b) + 1]
    batch = Batch(*map(torch.from_numpy, (ids, real, labels)))
    with torch.no_grad():
        return objectives.labelled_loss(model, batch, mean=False).numpy()


def saved(folder: Path, corpus: parallel.ParallelCorpus) -> pd.DataFrame:
    """A row a direction: mean nats behind the translation, behind another, and what is saved."""
    from transformers import AutoModelForCausalLM

    encoder = loading.load(str(folder), device="cpu")
    *_, weights = sorted(folder.glob("step-*")) or [folder]
    model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32).eval()
    rows = []
    for other in OTHERS:
        lengths = np.array([[*map(len, corpus.sentences[code])] for code in (PIVOT, other)])
        chosen = np.flatnonzero(((lengths >= SHORTEST) & (lengths <= LONGEST)).all(axis=0))
        cut = {
            code: encoder.tokenizer(
                [corpus.sentences[code][i] for i in chosen[:SENTENCES]], add_special_tokens=False
            )["input_ids"]
            for code in (PIVOT, other)
        }
        for a, b in ((PIVOT, other), (other, PIVOT)):
            own = losses(model, cut[a], cut[b]).mean()
            next_one = losses(model, [*cut[a][1:], cut[a][0]], cut[b]).mean()
            rows.append((str(folder), f"{a} {b}", len(cut[b]), own, next_one, next_one - own))
    columns = ["model", "direction", "sentences", "translation", "another", "saved"]
    return pd.DataFrame(rows, columns=columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", type=Path, help="decoders, folders of a series")
    parser.add_argument("--out", type=Path, help="a CSV file to add to")
    options = parser.parse_args()
    corpus = parallel.load("wmt24pp", drop_duplicates=True)
    for name in options.names:
        table = saved(name, corpus)
        added(table.round(4), options.out)
        print(f"saved: {table['saved'].mean():.4f} nats a subword in the mean")


if __name__ == "__main__":
    main()
