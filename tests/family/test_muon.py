"""Muon: torch's own, with the matrices of a shape taken together."""

import pytest
import torch

from xlx.family import muon

SHAPES = [(16, 16)] * 3 + [(32, 16)] * 2 + [(16, 32)]


@pytest.fixture
def starts() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def test_the_updates_are_those_of_torch(starts: list[torch.Tensor]) -> None:
    ours, theirs = ([torch.nn.Parameter(one.clone()) for one in starts] for _ in range(2))
    options = {"lr": 0.01, "weight_decay": 0.1}
    own = muon.Muon(ours, **options)
    other = torch.optim.Muon(theirs, **options, adjust_lr_fn="match_rms_adamw")
    for step in range(3):
        for one, two in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=torch.Generator().manual_seed(step))
            two.grad = one.grad.clone()
        own.step()
        other.step()
    for one, two, start in zip(ours, theirs, starts, strict=True):
        moved = float((two - start).detach().abs().mean())
        assert float((one - two).detach().abs().max()) < 0.1 * moved  # torch's are in bfloat16


@pytest.mark.parametrize("shape", [(4, 24, 24), (3, 40, 16), (3, 16, 40)])
def test_the_factors_are_nearly_orthogonal(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    for one in muon.orthogonal(matrices):
        values = torch.linalg.svdvals(one)
        assert values.max() < 1.3
        assert values.median() > 0.6


def test_a_matrix_without_a_gradient_stays(starts: list[torch.Tensor]) -> None:
    weights = [torch.nn.Parameter(one.clone()) for one in starts[:2]]
    weights[0].grad = torch.ones_like(weights[0])
    muon.Muon(weights, lr=0.01).step()
    assert not torch.equal(weights[0], starts[0])
    assert torch.equal(weights[1], starts[1])
