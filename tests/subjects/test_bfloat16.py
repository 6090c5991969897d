"""Products in bfloat16 by way of float32: as torch's own, forwards and backwards."""

import pytest
import torch

from xlx.subjects import loading

CPU = torch.device("cpu")


def answers(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    x, w = (one.clone().requires_grad_() for one in (x, w))
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.nn.functional.linear(x, w) @ x.mT
    found.float().square().mean().backward()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        asked = torch.nn.functional.linear(x[0], w, w[:, 0])
    return [found.detach(), asked, x.grad, w.grad]


def test_products_by_way_of_float32_are_those_of_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(1)
    x, w = torch.randn(3, 5, 16, generator=generator), torch.randn(16, 16, generator=generator)
    wanted = answers(x, w)
    monkeypatch.setattr(loading, "supported", lambda: False)
    with loading.products(CPU):
        found = answers(x, w)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02 * float(other.abs().max()))
    half = x[0].bfloat16(), w.bfloat16()
    with loading.products(CPU):
        product = half[0] @ half[1]
    assert torch.equal(product, (half[0].float() @ half[1].float()).bfloat16())
