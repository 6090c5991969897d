"""The precisions of weights and products by name, and TF32.

"tf32" is float32 whose products are taken in TF32 (10 bits of mantissa) where a CUDA device has it,
as PyTorch 1.7 to 1.11 did unasked; elsewhere it is float32. It is a precision by name, and so part
of what identifies a result.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: What a precision is called → the type of the weights.
DTYPES = {
    "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16,
    "tf32": torch.float32,
}  # fmt: skip
#: Those that a model is fine-tuned in: float16 would need its loss scaled.
OF_TRAINING = ("float32", "bfloat16", "tf32")


@contextmanager
def tf32_products(device: torch.device, wanted: bool) -> Iterator[None]:
    """Within, products of float32 on a CUDA device go by TF32, if wanted."""
    if not wanted or device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
