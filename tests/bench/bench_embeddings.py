"""Embeddings against the obvious loop, on real text and a shipped model (6 x 128).

The obvious loop takes 32 sentences at a time in file order, pads them to the longest, keeps all
hidden states, and pools at the end. Both run in turns in one process, and the best of each counts.
"""

import time
from collections.abc import Callable

import numpy as np
import torch

from tests.bench import show
from xlx.models.batching import batches
from xlx.models.embeddings import embed
from xlx.models.loading import Encoder, load
from xlx.text import corpora

LANGUAGES = ("en", "de", "zh")
SENTENCES = 192
ROUNDS = 3


@torch.no_grad()
def obvious_loop(encoder: Encoder, sentences: list[str]) -> np.ndarray:
    """Mean-pooled states as one writes it first: (n_layers + 1, n_sentences, dim)."""
    kept = []
    for start in range(0, len(sentences), 32):
        batch = encoder.tokenizer(
            sentences[start : start + 32],
            padding=True,
            truncation=True,
            max_length=encoder.max_length,
            return_tensors="pt",
            return_special_tokens_mask=True,
        )
        counted = (batch["attention_mask"] * (1 - batch["special_tokens_mask"])).unsqueeze(-1)
        output = encoder.model(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            output_hidden_states=True,
        )
        kept.append((output.hidden_states, counted))
    pooled = [
        torch.stack([(layer * counted).sum(1) / counted.sum(1) for layer in layers])
        for layers, counted in kept
    ]
    return torch.cat(pooled, dim=1).float().numpy()


def best_times(tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Least seconds of each task, taken in turns."""
    times = dict.fromkeys(tasks, float("inf"))
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def run() -> list[dict[str, object]]:
    """Rows of the bench table: name, value, unit, aim."""
    corpus = corpora.load("wmt24pp", LANGUAGES, drop_duplicates=True)
    texts = [list(corpus.sentences[language][:SENTENCES]) for language in LANGUAGES]
    sentences = [sentence for text in texts for sentence in text]
    encoder = load("mini-xlmr", device="cpu")
    half = load("mini-xlmr", device="cpu", dtype="bfloat16")

    result = embed(encoder, sentences)
    expected = obvious_loop(encoder, sentences)
    difference = np.abs(result.states - expected).max() / np.abs(expected).max()
    assert difference < 1e-4, f"the two ways disagree by {difference}"

    times = best_times(
        {
            "ours": lambda: embed(encoder, sentences),
            "loop": lambda: obvious_loop(encoder, sentences),
            "half": lambda: embed(half, sentences),
        }
    )
    lengths = [len(ids) for ids in encoder.tokenizer(list(dict.fromkeys(sentences)))["input_ids"]]
    speed = {name: sum(lengths) / seconds for name, seconds in times.items()}
    places = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches(lengths))
    return [
        {
            "name": "embeddings: float32, 6 x 128",
            "value": round(speed["ours"]),
            "unit": "tokens/s",
            "aim": None,
        },
        {
            "name": "embeddings: over the obvious loop",
            "value": round(speed["ours"] / speed["loop"], 2),
            "unit": "times",
            "aim": "> 2",
        },
        {
            "name": "embeddings: share of padding",
            "value": round(100 * (1 - sum(lengths) / places), 1),
            "unit": "%",
            "aim": "< 5",
        },
        {
            "name": "embeddings: bfloat16 over float32",
            "value": round(speed["half"] / speed["ours"], 2),
            "unit": "times",
            "aim": None,
        },
    ]


if __name__ == "__main__":
    show(run())
