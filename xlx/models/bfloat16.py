"""Products in bfloat16 on processors that have no instructions for them.

There torch takes a way that is fifty times slower than float32. Within `products` such a product is
taken in float32, from the same rounded numbers, and its result rounded: what the instructions do,
too, which add up in float32.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_PRODUCTS = {
    _aten.mm.default, _aten.bmm.default, _aten.addmm.default, _aten.baddbmm.default,
    _aten.linear.default, _aten.matmul.default,
}  # fmt: skip


def products(device: torch.device) -> AbstractContextManager[Any]:
    """Within, products of bfloat16 on a CPU go by way of float32 if it lacks the instructions.

    Forwards and backwards, the latter if ``backward`` is called within as well.
    """
    return nullcontext() if device.type != "cpu" or supported() else _ByFloat32()


@cache
def supported() -> bool:
    """Whether this processor has fast products in bfloat16."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class _ByFloat32(TorchDispatchMode):
    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        arguments: tuple = (),
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        options = options or {}
        if function not in _PRODUCTS or arguments[0].dtype != torch.bfloat16:
            return function(*arguments, **options)
        wide = [one.float() if isinstance(one, torch.Tensor) else one for one in arguments]
        return function(*wide, **options).bfloat16()
