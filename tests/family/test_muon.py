"""Muon: torch's own, with the matrices of a shape taken together."""

import torch

from family import muon

SHAPES = [(16, 16)] * 3 + [(32, 16)] * 2 + [(16, 32)]


def drawn(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_updates_are_those_of_torch() -> None:
    starts = [drawn(shape, seed) for seed, shape in enumerate(SHAPES)]
    ours, theirs = ([torch.nn.Parameter(start.clone()) for start in starts] for _ in range(2))
    options = {"lr": 0.01, "weight_decay": 0.1}
    optimisers = (
        muon.Muon(ours, **options),
        torch.optim.Muon(theirs, **options, adjust_lr_fn="match_rms_adamw"),
    )
    for step in range(3):
        for weights in (*ours, *theirs):
            weights.grad = drawn(weights.shape, step)
        for optimiser in optimisers:
            optimiser.step()
    for mine, other, start in zip(ours, theirs, starts, strict=True):
        moved = float((other - start).detach().abs().mean())
        assert float((mine - other).detach().abs().max()) < 0.1 * moved  # torch's are in bfloat16
