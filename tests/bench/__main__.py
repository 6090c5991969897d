"""``make bench``: speed and memory as ratios within one run; prints one table."""

import os

import pandas as pd
import torch

from tests.bench import (
    bench_abx,
    bench_embeddings,
    bench_encoders,
    bench_finetuning,
    bench_grids,
    bench_mexa,
    bench_probes,
    bench_work,
)


def main() -> None:
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}")
    # ABX first: its peak memory is seen only in a process that has nothing freed to use again.
    rows = [
        row
        for part in (
            bench_abx,
            bench_embeddings,
            bench_probes,
            bench_mexa,
            bench_finetuning,
            bench_grids,
            bench_encoders,
            bench_work,
        )
        for row in part.run()
    ]
    table = pd.DataFrame(rows, columns=["name", "value", "unit", "aim"]).fillna({"aim": ""})
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
