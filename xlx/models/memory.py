"""Whether a model fits: bytes of its weights, read off the headers of their files, and free memory.

Told before anything is loaded: a model that does not fit is otherwise found out minutes later, by
a process that is killed.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import torch

from xlx.models.hub import PICKLED_WEIGHTS

#: What safetensors call the floating-point types that are read in the precision asked for.
_FLOATS = {"F64", "F32", "F16", "BF16"}


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
