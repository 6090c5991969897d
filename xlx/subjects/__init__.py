"""What is asked: Transformers, their frozen states, fine-tuned copies of them.

In go the name of a shipped or public model (`list_models`), a folder or a hub name (`load` gives
its `Encoder`), and text; out come states ``(n_layers + 1, n_sentences, dim)`` of every layer
(`embed`, `embed_corpus`), and what a model that is fine-tuned by a `Recipe` in a `Job` predicts at
every checkpoint (`finetune_all`). Weights are never unpickled unsafely, code of a model never run.
"""

from xlx.subjects.finetuning import finetune_all
from xlx.subjects.jobs import Job, Recipe
from xlx.subjects.loading import Encoder, list_models, load
from xlx.subjects.states import embed, embed_corpus

__all__ = [
    "Encoder",
    "Job",
    "Recipe",
    "embed",
    "embed_corpus",
    "finetune_all",
    "list_models",
    "load",
]
