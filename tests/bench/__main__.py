"""``make bench``: prints one table."""

import importlib
import os
import sys

import pandas as pd
import torch

# ABX first: its peak memory is seen only in a process that has nothing freed to use again.
PARTS = ("abx", "embeddings", "public", "mexa")


def main() -> None:
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}")
    parts = [importlib.import_module(f"tests.bench.bench_{part}") for part in sys.argv[1:] or PARTS]
    rows = pd.DataFrame([row for part in parts for row in part.run()])
    print(rows.to_string(index=False, float_format="{:,.2f}".format))


if __name__ == "__main__":
    main()
