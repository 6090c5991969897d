"""IGAP of checkpoints: with all its halves from matrix products, against a loop, of a few of them.

The loop reads like Equation 5. Runs of fine-tuning side by side are in `bench_work`.
"""

import numpy as np

from tests.bench import Row, best_of
from xlx.measures import igap

N_TRAIN = 100
N_MODELS, N_TARGETS, N_LITERAL = 200, 6, 2


def literal(
    training: np.ndarray, translated: dict[str, np.ndarray], rng: np.random.Generator
) -> None:
    """On half of the examples, for each target and level, the least gap of the models inside."""
    m, n = training.shape
    drawn = rng.permutation(n)[: n // 2]
    for wrong in translated.values():
        for level in igap.TRAINING_ERRORS:
            gaps = []
            for i in range(m):
                if 0 <= training[i].mean() - level < igap.TOLERANCE:
                    gaps.append(wrong[i, drawn].mean() - training[i, drawn].mean())
            min(gaps, default=None)


def curves() -> tuple[float, float]:
    """Seconds of all halves by products, and of as many by the loop."""
    rng = np.random.default_rng(0)
    training = rng.random((N_MODELS, N_TRAIN)) < np.linspace(0.25, 0, N_MODELS)[:, None]
    translated = {f"l{i}": training ^ (rng.random(training.shape) < 0.3) for i in range(N_TARGETS)}
    seeds = np.arange(N_MODELS) % 3
    ours, theirs = best_of(
        lambda: igap.igap_curve(training, translated, seeds),
        lambda: [literal(training, translated, rng) for _ in range(N_LITERAL)],
        rounds=2,
    )
    return ours, theirs / N_LITERAL * igap.N_SPLITS


def run() -> list[Row]:
    """Rows of the bench's table."""
    ours, theirs = curves()
    what = f"curves of {N_MODELS} models and {N_TARGETS} targets, {igap.N_SPLITS} halves"
    return [
        Row(f"IGAP: {what}", ours, "s"),
        Row("IGAP: faster than a loop over models", theirs / ours, "times", "> 100"),
    ]
