"""A model before it has read anything: its architecture with random weights, its own tokenizer.

What such a model scores is due to its architecture and its vocabulary alone. The weights are those
that `transformers` begins a training with.
"""

import shutil
from pathlib import Path

import torch

from xlx.core import checks
from xlx.core.settings import current
from xlx.core.store import written_whole
from xlx.models import folders
from xlx.models.hub import WORDS
from xlx.models.identity import Name, content_of, find, model_files


def untrained_folder(name: Name, seed: int) -> Path:
    """The folder of a model with the config and the tokenizer of another and weights by a seed.

    It is kept in the cache of this machine, under the content hash of the model; ``seed`` decides
    the weights, which are float32 and drawn on the CPU. Raises as `loading.load`.
    """
    from transformers import AutoModel

    checks.whole(seed, "seed", least=0)
    label, folder, _ = find(name)
    files = model_files(label, folder)
    made = current().cache / "untrained" / f"{content_of(label, folder)[:16]}-{seed}"
    if made.exists():
        return made
    config = folders.load_config(label, folder)
    with torch.random.fork_rng(devices=[]), folders.quiet(), folders.load_errors(label, folder):
        torch.manual_seed(seed)
        model = AutoModel.from_config(config, dtype=torch.float32)
    made.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(made, durable=False) as beside:
        beside.mkdir()
        with folders.quiet():
            model.save_pretrained(beside)
        for file in files:
            if WORDS.fullmatch(file.name):
                shutil.copy(file, beside)
    return made
