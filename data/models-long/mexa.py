"""MEXA of decoders of the family against bags that know no language.

    python data/models-long/mexa.py mini-llama build/models/mini-llama-bi20 --out mexa.csv

By language, against English, on sentences of WMT24++: the highest score of all layers, raw and
without the mean of each language ("centred"), pooled as the paper has it (position-weighted), and
what a bag of the model's own subwords and the best of the bags of `printed.mexa_claims` reach:
names, numbers and spelling, no knowledge of a language.
A folder may hold a whole series: its last checkpoint is taken.
"""

import argparse
from pathlib import Path

import pandas as pd

from measure import added
from printed import mexa_claims
from xlx.measures import mexa
from xlx.subjects import loading
from xlx.subjects.states import bag_of_subwords, embed_corpus
from xlx.text import parallel

SENTENCES = 300


def decoder_scores(name: str, corpus: parallel.ParallelCorpus) -> pd.DataFrame:
    """A row a language: MEXA of a model at its best layer, and of a bag of its subwords."""
    encoder = loading.load(name)
    states = embed_corpus(encoder, corpus, pooling="weighted_mean").states
    counts = bag_of_subwords(encoder, corpus)
    vectors = {
        "raw": states,
        "centred": mexa.without_offset(states),
        "bag of subwords": {code: bag.toarray()[None] for code, bag in counts.items()},
    }
    columns = {
        kind: mexa.scores(of_kind).pooled("max").set_index("language")["mu"]
        for kind, of_kind in vectors.items()
    }
    return pd.DataFrame(columns).rename_axis("language").reset_index().assign(model=name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", help="members, folders of a checkpoint or of a series")
    parser.add_argument("--out", type=Path, required=True, help="a CSV file to add to")
    options = parser.parse_args()
    corpus = parallel.load("wmt24pp", drop_duplicates=True).take(SENTENCES, 0)
    bag = mexa_claims.surface_scores(corpus).groupby("language")["mu"].max()
    for name in options.names:
        table = decoder_scores(name, corpus)
        table["best bag"] = table["language"].map(bag)
        columns = ["raw", "centred", "bag of subwords", "best bag"]
        added(table[["model", "language", *columns]].round(4), options.out)
        above = (table["centred"] > table["bag of subwords"]).mean()
        print(f"mean {table[columns].mean().round(3).to_dict()}; above the bag of its subwords, "
              f"centred: {above:.0%} of the languages")  # fmt: skip


if __name__ == "__main__":
    main()
