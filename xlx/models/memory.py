"""Whether a model fits: bytes of its weights, read off the headers of their files, and free memory.

Told before anything is loaded: a model that does not fit is otherwise found out minutes later, by
a process that is killed. Before even its files are there, its config says it by part:

    table = weights_on_paper(AutoConfig.from_pretrained("name"), n_tokens=4096)
    table.loc["needed"] <= 24  # GB of a device: in which precision it fits
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from xlx.core import checks
from xlx.models.folders import laid_out
from xlx.models.hub import PICKLED_WEIGHTS

#: What safetensors call the floating-point types that are read in the precision asked for.
_FLOATS = {"F64", "F32", "F16", "BF16"}
#: Rows of `weights_on_paper`.
_PARTS = ["embeddings", "one layer", "all layers", "the rest", "head", "states"]


def weight_bytes(files: Iterable[Path], itemsize: int) -> int:
    """Bytes of a model's weights in memory, without its language-modelling head.

    From the headers of safetensors: what is floating-point counts ``itemsize`` bytes a number,
    anything else (quantised weights) what it has on disk. Of pickled weights the files' sizes.
    """
    total = 0
    for path in files:
        if path.suffix == ".safetensors":
            total += _safe_bytes(path, itemsize)
        elif PICKLED_WEIGHTS.fullmatch(path.name) and path.suffix == ".bin":
            total += path.stat().st_size
    return total


def _safe_bytes(path: Path, itemsize: int) -> int:
    """Of one file; its size where the header cannot be read, which whoever loads it will tell."""
    with path.open("rb") as file:
        try:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(size, 2**28)))
            tensors = [
                (tensor["dtype"], tensor["shape"], tensor["data_offsets"])
                for name, tensor in header.items()
                if name != "__metadata__" and not name.startswith("lm_head.")
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            return path.stat().st_size
    return sum(
        itemsize * torch.Size(shape).numel() if dtype in _FLOATS else end - start
        for dtype, shape, (start, end) in tensors
    )


def free_bytes(device: torch.device) -> int | None:
    """Memory of a device that can be had now; None where it does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    info, limit = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
    if device.type != "cpu" or not info.is_file():
        return None
    found = re.search(r"MemAvailable:\s*(\d+) kB", info.read_text(encoding="utf-8"))
    free = int(found[1]) * 1024 if found else None
    most = limit.read_text(encoding="utf-8").strip() if limit.is_file() else "max"
    return min(free, int(most)) if free is not None and most.isdigit() else free


def check_fits(label: str, files: Iterable[Path], dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a model whose weights are larger than the free memory of the device, with both.

    Weights come into the memory of the processor first.
    """
    needed = weight_bytes(files, dtype.itemsize)
    for place in dict.fromkeys((device, torch.device("cpu"))):
        free = free_bytes(place)
        if free is not None and needed > free:
            raise ValueError(
                f"{label!r} has {needed / 1e9:.3g} GB of weights in "
                f"{str(dtype).removeprefix('torch.')}, and {place} has {free / 1e9:.3g} GB of "
                'memory free: load it with dtype="bfloat16", with quantization="8bit", or spread '
                'over devices and disk with device_map="auto"'
            )


def weights_on_paper(config: Any, *, n_tokens: int) -> pd.DataFrame:
    """What a model takes in memory, by part and precision, from its config alone.

    `transformers` lays the model out without storage. Rows: ``embeddings`` (the table of words),
    ``one layer`` (the largest), ``all layers``, ``the rest`` (positions, norms), ``head`` (of
    language modelling, without what it shares with the embeddings; `load` leaves it out),
    ``states`` (the vectors of all layers, of a batch of ``n_tokens`` tokens) and ``needed``, which
    is all but the head, and without what a layer holds while it computes. Of an encoder-decoder
    the encoder counts.

    Columns: ``parameters`` (of states: numbers), and GB (10⁹ bytes) in ``float32``, in ``bfloat16``
    (or float16), and in ``8bit`` and ``4bit``: the matrices of layers packed as bitsandbytes does,
    all else in 16 bits. ValueError for a config that is not of a language model.
    """
    checks.whole(n_tokens, "n_tokens")
    model, inner = laid_out(config)
    words = inner.get_input_embeddings().weight
    rows = []
    for name, module in inner.named_modules():
        for parameter in module.parameters(recurse=False):
            layer = re.search(r"\.(\d+)(\.|$)", f".{name}")
            part = "embeddings" if parameter is words else layer[1] if layer else "the rest"
            packed = layer and parameter.ndim == 2 and type(module).__name__ in ("Linear", "Conv1D")
            rows.append((part, *_gigabytes(parameter.shape, bool(packed))))
    own = {id(parameter) for parameter in inner.parameters()}
    head = [] if config.is_encoder_decoder else [x for x in model.parameters() if id(x) not in own]
    rows += [("head", *_gigabytes(parameter.shape)) for parameter in head]
    n_layers = len({part for part, *_ in rows if part.isdigit()})
    states = (n_layers + 1, n_tokens, config.get_text_config().hidden_size)
    rows.append(("states", *_gigabytes(states)))
    columns = ["part", "parameters", "float32", "bfloat16", "8bit", "4bit"]
    table = pd.DataFrame(rows, columns=columns).groupby("part").sum()
    layers = table[table.index.str.isdigit()]
    table.loc["one layer"], table.loc["all layers"] = layers.max(), layers.sum()
    table = table.reindex(_PARTS, fill_value=0.0)
    table.loc["needed"] = table.drop(index=["one layer", "head"]).sum()
    return table.astype({"parameters": int})


def _gigabytes(shape: Sequence[int], packed: bool = False) -> tuple[float, ...]:
    """Numbers of a tensor, and its GB in float32, in 16 bits, and in 8 and 4.

    Beside packed numbers lie their scales: a float32 a row (8 bits), or every 64 numbers (4 bits).
    """
    n = math.prod(shape)
    small = (n + 4 * shape[0], n / 2 + 4 * n / 64) if packed else (2 * n, 2 * n)
    return (n, *(size / 1e9 for size in (4 * n, 2 * n, *small)))
