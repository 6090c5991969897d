"""Muon (Jordan et al. 2024) for many small matrices: equal shapes together, on any processor.

torch's own takes one matrix after the other and always in bfloat16; a processor without bfloat16
products needs longer for that than for all the rest of a step. Here matrices of one shape are
stacked, and the products made in the type that the processor is good at (`products_in`). Momentum,
coefficients and scaling of the rate are torch's.
"""

import math

import torch

#: Of the quintic iteration; its singular values end between 0.7 and 1.2, not at 1 (as in torch).
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


def products_in(device: torch.device) -> torch.dtype:
    """The type of matrix products that a device is fast at: bfloat16, or float32 on older CPUs."""
    if device.type == "cpu" and "AVX512" not in torch.backends.cpu.get_cpu_capability():
        return torch.float32
    return torch.bfloat16


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """The orthogonal factors of a stack ``(n, rows, columns)``, nearly, by Newton-Schulz."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Muon):
    """torch's optimiser with the matrices of a shape taken together."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """One step of all matrices that have a gradient."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[torch.Tensor]] = {}
            for weights in group["params"]:
                if weights.grad is not None:
                    alike.setdefault(weights.shape, []).append(weights)
            for shape, matrices in alike.items():
                updates = torch.stack(self._momenta(matrices, group["momentum"]))
                updates = orthogonal(updates.to(products_in(updates.device))).float()
                rate = group["lr"] * 0.2 * math.sqrt(max(shape))  # the size of AdamW's updates
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_sub_(matrices, list(updates.unbind()), alpha=rate)

    def _momenta(self, matrices: list[torch.Tensor], momentum: float) -> list[torch.Tensor]:
        """Nesterov's momentum of matrices, their buffers brought up to date."""
        for weights in matrices:
            if "momentum_buffer" not in self.state[weights]:
                self.state[weights]["momentum_buffer"] = torch.zeros_like(weights)
        buffers = [self.state[weights]["momentum_buffer"] for weights in matrices]
        gradients = [weights.grad for weights in matrices]
        torch._foreach_lerp_(buffers, gradients, 1 - momentum)
        return torch._foreach_lerp(gradients, buffers, momentum)
