"""What members learn: the untrained model, the losses of a step, and what moves the weights.

Masked language modelling (MLM), as BERT and XLM-R (Conneau et al. 2020); the same over parallel
sentences (TLM; Conneau and Lample 2019); the cross-lingual contrast XLCO, as InfoXLM (Chi et al.
2021); causal language modelling (CLM), as Llama. Members of one architecture and size start from
the same random weights.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

from family.batches import NO_LABEL, Batch, Batches
from family.recipes import MemberRecipe
from family.training_text import BOS, EOS, PAD


def products_in(device: torch.device) -> torch.dtype:
    """The type of matrix products that a device is fast at: bfloat16, or float32 on older CPUs."""
    if device.type == "cpu" and "AVX512" not in torch.backends.cpu.get_cpu_capability():
        return torch.float32
    return torch.bfloat16


def untrained(recipe: MemberRecipe) -> torch.nn.Module:
    """A member before training, with its head; weights drawn from the recipe's seed.

    BERT and XLM-R with rotary positions are RoFormer (Su et al. 2021), of the same parts otherwise.
    Embeddings are normal with sd 0.02; matrices have the variance of BERT's at a width of 768,
    0.02 ** 2, times 768 / width.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

    positions = recipe.max_length
    # So small a model cannot memorise its text: dropout would only slow it down.
    special = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    architecture = recipe.architecture
    if recipe.decoder:
        special = {"tie_word_embeddings": True}
    elif recipe.positions == "rotary":
        architecture = "roformer"
        special |= {"embedding_size": recipe.hidden_size}
        if recipe.architecture == "xlm-roberta":
            special |= {"type_vocab_size": 1}
    elif architecture == "xlm-roberta":
        special |= {"type_vocab_size": 1}
        positions += PAD + 1
    config = AutoConfig.for_model(
        architecture,
        vocab_size=recipe.vocabulary,
        hidden_size=recipe.hidden_size,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        intermediate_size=recipe.intermediate_size,
        max_position_embeddings=positions,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        **special,
    )
    kind = AutoModelForCausalLM if recipe.decoder else AutoModelForMaskedLM
    model = kind.from_config(config)
    generator = torch.Generator().manual_seed(recipe.seed)
    matrix_sd = 0.02 * math.sqrt(768 / recipe.hidden_size)
    tied = model.get_input_embeddings().weight
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding) and module.weight.requires_grad:
                module.weight.normal_(0.0, 0.02, generator=generator)
                if module.padding_idx is not None:
                    module.weight[module.padding_idx].zero_()
            elif isinstance(module, torch.nn.Linear) and module.weight is not tied:
                module.weight.normal_(0.0, matrix_sd, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()
    return model


def lower_layers(model: torch.nn.Module, layers: int) -> torch.nn.Module:
    """The encoder up to a layer, sharing its weights: what the contrast has to compute."""
    trunk = copy.copy(model.base_model)
    trunk._modules = dict(model.base_model._modules)
    trunk.encoder = copy.copy(model.base_model.encoder)
    parts = model.base_model.encoder._modules
    trunk.encoder._modules = parts | {"layer": parts["layer"][:layers]}
    return trunk


def labelled_loss(model: torch.nn.Module, batch: Batch, *, mean: bool = True) -> torch.Tensor:
    """Cross-entropy (nats) at the positions with a label; the output layer sees no others.

    Masked language modelling labels the masked subwords, causal each subword with the next one.
    """
    attention = None if batch.real.all() else batch.real
    states = model.base_model(batch.ids, attention_mask=attention).last_hidden_state
    head = model.cls if hasattr(model, "cls") else model.lm_head
    chosen = batch.labels != NO_LABEL
    logits, labels = head(states[chosen]), batch.labels[chosen]
    if mean:
        return MeanCrossEntropy.apply(logits, labels)
    return functional.cross_entropy(logits.float(), labels, reduction="none")


class MeanCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy (nats) of logits ``(n, classes)`` of any type, computed in float32.

    As `torch.nn.functional.cross_entropy` of the logits in float32. That holds five arrays of the
    size of the logits, in and out of memory; here a block of rows stays in the cache, and its
    gradient, a softmax less the label, is made on the way forward. A label less probable than
    float32 can tell (1e-38) counts as that.
    """

    ROWS = 32

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The mean; kept is the gradient."""
        gradient, shares = torch.empty_like(logits), []
        rows = MeanCrossEntropy.ROWS if logits.device.type == "cpu" else max(1, len(logits))
        parts = (part.split(rows) for part in (logits, labels, gradient))
        for block, of_block, gradients in zip(*parts, strict=True):
            softmax, at = block.float().softmax(1), of_block.unsqueeze(1)
            shares.append(softmax.gather(1, at))
            softmax.scatter_add_(1, at, torch.full_like(shares[-1], -1.0))
            gradients.copy_(softmax.div_(len(logits)))
        ctx.save_for_backward(gradient)
        smallest = torch.finfo(torch.float32).tiny
        return -torch.cat(shares).clamp_(min=smallest).log_().mean()

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None]:
        """The gradient with respect to the logits: as kept, where nothing was done to the loss."""
        (gradient,) = ctx.saved_tensors
        return (gradient if upstream == 1 else gradient * upstream.to(gradient.dtype)), None


def contrastive_loss(trunk: torch.nn.Module, batch: Batch, temperature: float) -> torch.Tensor:
    """XLCO (Chi et al. 2021, section 3.3): pick the translation among those of the batch, in nats.

    Both directions; the negatives are the other sentences of the batch, in many languages, where
    InfoXLM keeps a queue of them.
    """
    states = trunk(batch.ids, attention_mask=batch.real).last_hidden_state.float()
    inner = (batch.real & (batch.ids != BOS) & (batch.ids != EOS)).unsqueeze(-1)
    pooled = (states * inner).sum(1) / inner.sum(1)
    first, second = functional.normalize(pooled, dim=-1).unflatten(0, (-1, 2)).unbind(1)
    similarity = first @ second.T / temperature
    target = torch.arange(len(similarity), device=similarity.device)
    there = functional.cross_entropy(similarity, target)
    return 0.5 * (there + functional.cross_entropy(similarity.T, target))


def held_out_losses(
    model: torch.nn.Module, held: Mapping[str, list[Batch]], device: torch.device
) -> pd.DataFrame:
    """Loss by language on held-out batches: ``language``, ``subwords`` (labelled), ``loss``."""
    rows = []
    model.eval()
    with torch.no_grad(), forward_type(device):
        for language, batches in held.items():
            parts = [labelled_loss(model, batch.to(device), mean=False) for batch in batches]
            losses = torch.cat(parts)
            mean = round(float(losses.double().mean()), 4)
            rows.append({"language": language, "subwords": len(losses), "loss": mean})
    model.train()
    return pd.DataFrame(rows)


def optimisers(model: torch.nn.Module, recipe: MemberRecipe) -> list[torch.optim.Optimizer]:
    """Muon (Jordan et al. 2024) for the matrices inside the layers, AdamW for all else."""
    matrices, others = [], []
    for name, weights in model.named_parameters():
        inside = ".layer." in name or ".layers." in name
        (matrices if inside and weights.ndim == 2 else others).append(weights)
    decay, rate = recipe.weight_decay, recipe.learning_rate
    scaled = {"weight_decay": decay, "adjust_lr_fn": "match_rms_adamw"}
    return [
        torch.optim.Muon(matrices, lr=recipe.matrix_learning_rate, **scaled),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), eps=1e-6, weight_decay=decay),
    ]


def step_losses(
    model: torch.nn.Module,
    trunk: torch.nn.Module | None,
    batches: Batches,
    recipe: MemberRecipe,
    step: int,
    device: torch.device,
) -> Iterator[tuple[str, torch.Tensor, int]]:
    """The losses of a step: (objective, weighted loss, number of subwords).

    Objectives with labels take turns, a step each; the contrast comes on top of every k-th step.
    """
    rng = np.random.default_rng([recipe.seed, step])
    labelled = [objective for objective in recipe.objectives if objective != "contrast"]
    objective = labelled[step % len(labelled)]
    batch = getattr(batches, objective)(rng, recipe.tokens_per_step).to(device)
    with forward_type(device):
        loss = labelled_loss(model, batch)
    yield objective, loss, int(batch.real.sum())
    if trunk is not None and step % recipe.contrast_every == 0:
        batch = batches.contrast(rng).to(device)
        with forward_type(device):
            loss = contrastive_loss(trunk, batch, recipe.temperature)
        yield "contrast", recipe.contrast_weight * loss, int(batch.real.sum())


def forward_type(device: torch.device) -> torch.autocast:
    """Forward passes in bfloat16, where the device is fast at it."""
    fast = products_in(device) == torch.bfloat16
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=fast)
