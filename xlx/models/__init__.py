"""What is asked: Transformers, their frozen states, probes on them, fine-tuned copies of them.

In go the name of a shipped or public model (`list_models`), a folder or a hub name, and text; out
come states ``(n_layers + 1, n_sentences, dim)`` of every layer (`embed_corpus`), cosines and what
follows from them (`similarity`, `alignment`), accuracies of probes (`probes`), and what a
fine-tuned model predicts at every checkpoint (`finetune_all`). Weights are never unpickled
unsafely, code of a model never run.
"""

from xlx.models.embeddings import embed, embed_corpus
from xlx.models.finetuning import Job, Recipe, finetune_all
from xlx.models.listing import list_models
from xlx.models.loading import Encoder, checkpoints, load

__all__ = [
    "Encoder",
    "Job",
    "Recipe",
    "checkpoints",
    "embed",
    "embed_corpus",
    "finetune_all",
    "list_models",
    "load",
]
