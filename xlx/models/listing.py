"""What models there are by name: the family that the repository ships, and the public models."""

import json

import pandas as pd

from xlx.core import paths
from xlx.models.identity import local_series
from xlx.models.public import public_models


def list_models() -> pd.DataFrame:
    """All names that `load` knows without a path or a network, a row a model.

    ``model``, ``kind`` ("encoder" or "decoder"), ``layers``, ``width``, ``licence``,
    ``checkpoints`` (of its training; 1: none but the last) and ``where``: "shipped", "fetched" (by
    `make models`), or the command that fetches it.
    """
    rows = []
    folders = sorted(paths.MODELS.iterdir()) if paths.MODELS.is_dir() else []
    for folder in (path for path in folders if path.is_dir()):
        series = local_series(folder.name, folder)
        if not (series or (folder / "config.json").is_file()):
            continue  # a record of checkpoints alone
        config = json.loads(((series[-1].path if series else folder) / "config.json").read_text())
        rows.append(
            {
                "model": folder.name,
                "kind": "decoder" if "CausalLM" in config["architectures"][0] else "encoder",
                "layers": config["num_hidden_layers"],
                "width": config["hidden_size"],
                "licence": "MIT",
                "checkpoints": max(1, len(series)),
                "where": "shipped",
            }
        )
    for model in public_models().values():
        accept = f" ACCEPT={model.terms}" if model.terms else ""
        here = (model.folder / "config.json").is_file()
        rows.append(
            {
                "model": model.name,
                "kind": model.kind,
                "layers": int(model.layers),
                "width": int(model.width),
                "licence": model.licence,
                "checkpoints": 1,
                "where": "fetched" if here else f"make models MODEL={model.name}{accept}",
            }
        )
    return pd.DataFrame(rows)
