"""Fine-tuning a shipped model (6 x 128) on PAWS-X, and IGAP of its checkpoints.

The same runs one after another and in two processes, of a thread each. IGAP with all its halves
from matrix products against a loop that reads like Equation 5, of a few of them.
"""

import tempfile

import numpy as np

from tests.bench import Row, best_of
from xlx.measures import igap
from xlx.results import settings
from xlx.subjects import finetuning
from xlx.subjects.jobs import Job, Recipe
from xlx.text import examples, labelled

MODEL = "mini-infoxlm"
LANGUAGES = ("en", "de", "zh")
RECIPE = Recipe(
    epochs=3, batch_size=16, learning_rate=3e-4, every=14, max_length=128, dtype="bfloat16"
)
N_TRAIN, SEEDS = 100, (1, 2, 3, 4)
N_MODELS, N_TARGETS, N_LITERAL = 200, 6, 2


def together() -> list[float]:
    """Seconds of the same runs by one process and by two."""
    parts = {code: labelled.load_labelled("PI", code, "train") for code in LANGUAGES}
    whole, _ = examples.common(parts)
    kept = examples.shortest(whole, N_TRAIN)
    sets = {code: part.at(kept) for code, part in whole.items()}
    few = {code: part.at(range(16)) for code, part in sets.items()}

    def finetuned(n_jobs: int, sets: dict[str, examples.Examples]) -> None:
        jobs = [Job(MODEL, sets["en"], sets, RECIPE, seed) for seed in SEEDS]
        with (
            tempfile.TemporaryDirectory() as folder,
            settings.settings(cache=folder, device="cpu", workers=n_jobs, policy="ignore"),
        ):
            finetuning.finetune_all(jobs)

    finetuned(2, few)  # the processes are kept for a while, so that the next call finds them there
    return best_of(lambda: finetuned(1, sets), lambda: finetuned(2, sets), rounds=1)


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
    one, two = together()
    n_examples = len(SEEDS) * RECIPE.epochs * N_TRAIN
    ours, theirs = curves()
    what = f"curves of {N_MODELS} models and {N_TARGETS} targets, {igap.N_SPLITS} halves"
    return [
        Row("fine-tuning: bfloat16, predictions included", n_examples / one, "examples a second"),
        Row("fine-tuning: two processes faster than one", one / two, "times", "> 1"),
        Row(f"IGAP: {what}", ours, "s"),
        Row("IGAP: faster than a loop over models", theirs / ours, "times", "> 100"),
    ]
