"""What members learn of inference: fine-tuned on SICK in English, tested in five languages.

    python data/models-long/inference.py mini-infoxlm build/models/mini-xlmr --out sick.csv

A folder may hold a whole series: its last checkpoint is taken. Tested are pairs of one language
("en", "nl" ...) and pairs with the premise in English and the hypothesis in another ("en-nl" ...);
`commonest` is the accuracy of always saying what is commonest in English. Japanese has labels of
its own, so that its pairs with English have none.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from measure import added
from xlx.subjects import finetuning, jobs
from xlx.subjects.jobs import Job
from xlx.text.labelled import load_labelled
from xlx.text.parallel_sets import crossed

LANGUAGES = ("en", "nl", "pl", "pt", "ja")
RECIPE = jobs.Recipe(epochs=8, learning_rate=3e-4, schedule="linear", every=1109)


def inference(name: str, seeds: int) -> pd.DataFrame:
    """Accuracy of a model on each test set: mean and standard deviation over seeds."""
    train, *tests = (
        load_labelled("NLI", code, split, source="sick")
        for code, split in (("en", "train"), *((code, "test") for code in LANGUAGES))
    )
    sets = dict(zip(LANGUAGES, tests, strict=True))
    sets |= {f"en-{code}": crossed(sets["en"], sets[code]) for code in LANGUAGES[1:-1]}
    jobs = [Job(name, train, sets, RECIPE, seed=seed) for seed in range(1, seeds + 1)]
    runs = finetuning.finetune_all(jobs)
    rows = []
    for label, part in sets.items():
        right = [(run.predictions[label][-1] == part.labels).mean() for run in runs]
        commonest = (part.labels == np.bincount(sets["en"].labels).argmax()).mean()
        rows.append((name, label, np.mean(right), pd.Series(right).std(), commonest))
    return pd.DataFrame(rows, columns=["model", "pairs", "accuracy", "sd", "commonest"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", help="members, folders of a checkpoint or of a series")
    parser.add_argument("--seeds", type=int, default=3, help="fine-tuning runs of each")
    parser.add_argument("--out", type=Path, help="a CSV file to add to")
    options = parser.parse_args()
    for name in options.names:
        added(inference(name, options.seeds).round(4), options.out)


if __name__ == "__main__":
    main()
