"""Embeddings against the obvious loop, on real text and a shipped model (6 x 128).

The obvious loop takes 32 sentences at a time in file order, pads them to the longest, keeps all
hidden states, and pools at the end. Both run in turns in one process, and the best of each counts.
"""

import numpy as np
import torch

from tests.bench import Row, best_of
from xlx.subjects.loading import Encoder, load
from xlx.subjects.states import batches, embed
from xlx.text import parallel

LANGUAGES = ("en", "de", "zh")
SENTENCES = 192


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
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        output = encoder.model(**inputs, output_hidden_states=True)
        kept.append((output.hidden_states, counted))
    pooled = [
        torch.stack([(layer * counted).sum(1) / counted.sum(1) for layer in layers])
        for layers, counted in kept
    ]
    return torch.cat(pooled, dim=1).float().numpy()


def run() -> list[Row]:
    """Rows of the bench's table."""
    corpus = parallel.load("wmt24pp", LANGUAGES, drop_duplicates=True)
    texts = [list(corpus.sentences[language][:SENTENCES]) for language in LANGUAGES]
    sentences = [sentence for text in texts for sentence in text]
    encoder = load("mini-xlmr", device="cpu")

    result = embed(encoder, sentences)
    expected = obvious_loop(encoder, sentences)
    difference = np.abs(result.states - expected).max() / np.abs(expected).max()
    assert difference < 1e-4, f"the two ways disagree by {difference}"

    ours, loop = best_of(
        lambda: embed(encoder, sentences), lambda: obvious_loop(encoder, sentences)
    )
    lengths = [len(ids) for ids in encoder.tokenizer(list(dict.fromkeys(sentences)))["input_ids"]]
    places = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches(lengths))
    padding = 100 * (1 - sum(lengths) / places)
    return [
        Row("embeddings: float32, 6 x 128", sum(lengths) / ours, "tokens/s"),
        Row("embeddings: over the obvious loop", loop / ours, "times", "> 2"),
        Row("embeddings: share of padding", padding, "%", "< 5"),
    ]
