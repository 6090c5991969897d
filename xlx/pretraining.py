"""Train the miniature models from scratch, and keep the history of their training.

A model whose training text, recipe and every checkpoint are known can be asked questions that a
downloaded one cannot. What the members are and in what they differ: `xlx.family`. Objectives:

* masked language modelling (MLM), as BERT and XLM-R (Conneau et al. 2020);
* translation language modelling (TLM; Conneau and Lample 2019) over parallel sentences;
* the cross-lingual contrast XLCO over parallel sentences, as InfoXLM (Chi et al. 2021);
* causal language modelling (CLM), as Llama.

Members of one architecture and size start from the same random weights (step 0, the untrained
model). Each batch depends on ``(seed, step)`` alone, so a run that was stopped goes on as if it had
not been.

    python -m xlx.pretraining mini-xlmr
    python -m xlx.pretraining mini-xlm mini-infoxlm --out build/models
    python -m xlx.pretraining mini-xlmr --long --out build/models
    python -m xlx.pretraining base-infoxlm --device cuda --out build/models
"""

import argparse
import copy
import errno
import hashlib
import json
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer
from torch.nn import functional
from tqdm import tqdm

from xlx import checks, model_cards, paths, pretraining_text, store, vocabulary
from xlx.batches import NO_LABEL, Batch, Batches, held_out
from xlx.family import LONG_RECIPES, RECIPES, Recipe, continues, describe, read
from xlx.muon import Muon, products_in
from xlx.pretraining_text import PretrainingText
from xlx.store import StoreWarning, written_whole
from xlx.vocabulary import BERT_TOKENS, BOS, EOS, PAD, XLMR_TOKENS

# --- model and losses ---------------------------------------------------------------------------


def untrained(recipe: Recipe) -> torch.nn.Module:
    """A member before training, with its head; weights drawn from the recipe's seed.

    Embeddings are normal with sd 0.02 (those of positions with ``position_sd``); matrices have the
    variance of BERT's at a width of 768, 0.02 ** 2, times 768 / width.
    """
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        LlamaConfig,
        LlamaForCausalLM,
        XLMRobertaConfig,
        XLMRobertaForMaskedLM,
    )

    shape = {
        "vocab_size": recipe.vocabulary,
        "hidden_size": recipe.hidden_size,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "intermediate_size": recipe.intermediate_size,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
    }
    # So small a model cannot memorise its text: dropout would only slow it down.
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    match recipe.architecture:
        case "bert":
            model = BertForMaskedLM(
                BertConfig(**shape, **no_dropout, max_position_embeddings=recipe.max_length)
            )
        case "xlm-roberta":
            positions = recipe.max_length + PAD + 1
            model = XLMRobertaForMaskedLM(
                XLMRobertaConfig(
                    **shape, **no_dropout, max_position_embeddings=positions, type_vocab_size=1
                )
            )
        case "llama":
            model = LlamaForCausalLM(
                LlamaConfig(
                    **shape, max_position_embeddings=recipe.max_length, tie_word_embeddings=True
                )
            )
    generator = torch.Generator().manual_seed(recipe.seed)
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    matrix_sd = 0.02 * math.sqrt(768 / recipe.hidden_size)
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Embedding):
                sd = recipe.position_sd if name.endswith("position_embeddings") else 0.02
                module.weight.normal_(0.0, sd, generator=generator)
                if module.padding_idx is not None:
                    module.weight[module.padding_idx].zero_()
            elif isinstance(module, torch.nn.Linear) and id(module.weight) not in embeddings:
                module.weight.normal_(0.0, matrix_sd, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()
    return model


def lower_layers(model: torch.nn.Module, layers: int) -> torch.nn.Module:
    """The encoder up to a layer, sharing its weights: what the contrast has to compute."""
    trunk = copy.copy(model.base_model)
    trunk._modules = dict(model.base_model._modules)
    trunk.encoder = copy.copy(model.base_model.encoder)
    trunk.encoder._modules = {"layer": model.base_model.encoder.layer[:layers]}
    return trunk


def labelled_loss(model: torch.nn.Module, batch: Batch, *, mean: bool = True) -> torch.Tensor:
    """Cross-entropy (nats) at the positions with a label; the output layer sees no others.

    Masked language modelling labels the masked subwords, causal each subword with the next one.
    """
    attention = None if batch.real.all() else batch.real
    states = model.base_model(batch.ids, attention_mask=attention).last_hidden_state
    head = model.cls if hasattr(model, "cls") else model.lm_head
    chosen = batch.labels != NO_LABEL
    logits = head(states[chosen]).float()
    return functional.cross_entropy(
        logits, batch.labels[chosen], reduction="mean" if mean else "none"
    )


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
    return 0.5 * (
        functional.cross_entropy(similarity, target)
        + functional.cross_entropy(similarity.T, target)
    )


def held_out_losses(
    model: torch.nn.Module, held: Mapping[str, list[Batch]], device: torch.device
) -> pd.DataFrame:
    """Loss by language on held-out batches: ``language``, ``subwords`` (labelled), ``loss``."""
    rows = []
    model.eval()
    with torch.no_grad(), _cast(device):
        for language, batches in held.items():
            losses = torch.cat(
                [labelled_loss(model, batch.to(device), mean=False) for batch in batches]
            )
            mean = round(float(losses.double().mean()), 4)
            rows.append({"language": language, "subwords": len(losses), "loss": mean})
    model.train()
    return pd.DataFrame(rows)


# --- the run ------------------------------------------------------------------------------------


def optimisers(model: torch.nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon (Jordan et al. 2024) for the matrices inside the layers, AdamW for all else."""
    matrices, others = [], []
    for name, weights in model.named_parameters():
        inside = ".layer." in name or ".layers." in name
        (matrices if inside and weights.ndim == 2 else others).append(weights)
    return [
        Muon(
            matrices,
            lr=recipe.matrix_learning_rate,
            weight_decay=recipe.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        ),
        torch.optim.AdamW(
            others,
            lr=recipe.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-6,
            weight_decay=recipe.weight_decay,
        ),
    ]


def step_losses(
    model: torch.nn.Module,
    trunk: torch.nn.Module | None,
    batches: Batches,
    recipe: Recipe,
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
    yield objective, labelled_loss(model, batch), int(batch.real.sum())
    if trunk is not None and step % recipe.contrast_every == 0:
        batch = batches.contrast(rng).to(device)
        loss = contrastive_loss(trunk, batch, recipe.temperature)
        yield "contrast", recipe.contrast_weight * loss, int(batch.real.sum())


def save_state(path: Path, left: Mapping[str, Any]) -> None:
    """Keep what lets a run go on in a file, whole or not at all, with its seal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as beside:
        # By way of Python's file, whose error says why it could not be written.
        with beside.open("wb") as file:
            torch.save(left, file)
        store.append_seal(beside)


def saved_state(path: Path, where: torch.device) -> dict[str, Any] | None:
    """What `save_state` has left in a file, if it can be trusted; else a StoreWarning.

    What cannot is laid aside under another name: it may be days of work that someone can save.
    """
    try:
        store.check_appended(path)
        return torch.load(path, map_location=where, weights_only=True)
    except FileNotFoundError:
        return None
    except (OSError, store.Damaged) as error:
        aside = path.with_name(f"{path.name}.damaged")
        store.remove(aside)
        path.replace(aside)
        warnings.warn(
            f"{path} is not used: {error}; starting anew (it is kept as {aside.name})",
            StoreWarning,
            stacklevel=3,
        )
        return None


def save_checkpoint(
    model: torch.nn.Module, tokenizer: Tokenizer, folder: Path, recipe: Recipe
) -> None:
    """An ordinary Hugging Face folder, weights in float16; complete or not there at all."""
    from transformers import PreTrainedTokenizerFast

    if folder.exists():
        return
    bert = recipe.architecture == "bert"
    bos, pad, eos, unknown, mask = BERT_TOKENS if bert else XLMR_TOKENS
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    with written_whole(folder) as beside:
        copy.deepcopy(model).to("cpu", torch.float16).save_pretrained(beside)
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            bos_token=bos,
            cls_token=bos,
            pad_token=pad,
            eos_token=eos,
            sep_token=eos,
            unk_token=unknown,
            mask_token=mask,
            model_max_length=recipe.max_length,
            model_input_names=inputs if bert else [inputs[0], inputs[2]],
        ).save_pretrained(beside)
        file = beside / "tokenizer.json"  # half the size without its indentation
        compact = json.dumps(
            json.loads(file.read_text("utf-8")), ensure_ascii=False, separators=",:"
        )
        file.write_text(compact, encoding="utf-8")


def disk_full(error: BaseException | None) -> bool:
    """Whether an error comes of a full disk; torch and safetensors raise their own for that."""
    while error is not None:
        code = getattr(error, "errno", None)
        if code == errno.ENOSPC or f"(os error {errno.ENOSPC})" in str(error):
            return True
        error = error.__context__
    return False


def write_table(rows: pd.DataFrame, path: Path) -> None:
    """A CSV file, whole or not at all."""
    with written_whole(path) as beside:
        rows.to_csv(beside, index=False, lineterminator="\n")


def device_name(device: torch.device) -> str:
    """What a model card says of where a run took place."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU with {torch.backends.cpu.get_cpu_capability()}, threads: {torch.get_num_threads()}"


def pretrain(
    recipe: Recipe,
    tokenizer: Tokenizer,
    text: PretrainingText,
    held: Mapping[str, Sequence[str]],
    out: Path,
    state: Path,
    *,
    device: str = "cpu",
    save_every: int = 300,
    log_every: int = 50,
    progress: bool = True,
) -> pd.DataFrame:
    """Train a member into ``out`` and return its loss table.

    Written are the checkpoints ``step-*`` (of weights averaged as the recipe says),
    ``losses.csv`` (one row per ``log_every`` steps and objective, mean loss in nats),
    ``held_out.csv`` (loss by language of every checkpoint, on the lines ``held``),
    ``recipe.json``, ``run.json`` (tokens, time, device) and the model card
    ``README.md``. ``state`` is the file that lets a stopped run go on; the result is the same as
    without the stop (same device, same number of threads). A `Recipe.steady` run goes on from a
    shorter one, too.

    Raises ValueError where ``state`` or ``out`` belongs to another recipe, where ``state`` has
    another vocabulary or other text, or when the loss is no longer a number.
    """
    finished(recipe, out)  # refuses the folder of another recipe
    out.mkdir(parents=True, exist_ok=True)
    state.parent.mkdir(parents=True, exist_ok=True)
    where = torch.device(device)
    model = untrained(recipe).to(where).train()
    # In bfloat16 the fused attention of a CPU is several times slower backwards than products.
    plain = where.type == "cpu" and products_in(where) == torch.bfloat16
    model.set_attn_implementation("eager" if plain else "sdpa")
    trunk = lower_layers(model, recipe.contrast_layer) if "contrast" in recipe.objectives else None
    average = copy.deepcopy(model) if recipe.averaged_share else model
    updates = optimisers(model, recipe)
    described = describe(recipe)
    read_text = fingerprint(text, held)
    done, tokens, seconds, rows, held_rows = 0, 0, 0.0, [], []
    if (saved := saved_state(state, where)) is not None:
        for what, same in (
            ("recipe", continues(recipe, read(saved["recipe"]))),
            ("vocabulary", saved["vocabulary"] == tokenizer.to_str()),
            ("text", saved.get("text") == read_text),
        ):
            if not same:
                raise ValueError(
                    f"{state} was left by a run with another {what}: finish that run, or delete "
                    "the file to start anew"
                )
        model.load_state_dict(saved["model"])
        average.load_state_dict(saved.get("average", saved["model"]))
        for optimiser, left in zip(updates, saved["optimisers"], strict=True):
            optimiser.load_state_dict(left)
        done, tokens, seconds = saved["step"], saved["tokens"], saved["seconds"]
        rows, held_rows = saved["rows"], saved["held_out"]
    with written_whole(out / "recipe.json") as beside:
        beside.write_text(described, encoding="utf-8")
    batches = Batches(text, recipe)
    held_batches = {
        language: held_out([np.array(line.ids) for line in encoded], recipe)
        for language, lines in held.items()
        if (encoded := tokenizer.encode_batch(list(lines), add_special_tokens=False))
    }

    def keep(step: int) -> None:
        """Save a checkpoint and its held-out losses (once, if a stopped run comes by again)."""
        if held_batches and step not in {row["step"] for row in held_rows}:
            table = held_out_losses(average, held_batches, where)
            held_rows.extend({"step": step, **row} for row in table.to_dict("records"))
        save_checkpoint(average, tokenizer, out / f"step-{step:06d}", recipe)

    checkpoints = set(recipe.checkpoint_steps())
    if done == 0 and 0 in checkpoints:
        keep(0)
    sums: dict[str, list[float]] = {}
    began, tokens_before, seconds_before = time.perf_counter(), tokens, seconds
    bar = tqdm(total=recipe.steps, initial=done, desc=recipe.name, disable=not progress)
    for step in range(done + 1, recipe.steps + 1):
        share = recipe.schedule(step)
        rates = recipe.matrix_learning_rate * share, recipe.learning_rate * share
        for optimiser, rate in zip(updates, rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate
        for objective, loss, n_tokens in _autocast(
            step_losses(model, trunk, batches, recipe, step, where), where
        ):
            loss.backward()
            sums.setdefault(objective, []).append(float(loss.detach()))
            tokens += n_tokens
        norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip))
        if not math.isfinite(norm):
            raise ValueError(
                f"{recipe.name}: the gradient is not a number at step {step}: start from the last "
                "saved state with a lower learning rate"
            )
        for optimiser in updates:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        if average is not model:
            pairs = zip(average.parameters(), model.parameters(), strict=True)
            for mean, weights in pairs:
                mean.data.lerp_(weights.data, recipe.averaging(step))
        bar.update()
        seconds = seconds_before + time.perf_counter() - began
        if step % log_every == 0 or step == recipe.steps:
            speed = (tokens - tokens_before) / (seconds - seconds_before)
            for objective, losses in sorted(sums.items()):
                rows.append(
                    {
                        "step": step,
                        "tokens": tokens,
                        "objective": objective,
                        "loss": round(sum(losses) / len(losses), 4),
                        "learning_rate": round(rates[1], 7),
                        "gradient_norm": round(norm, 3),
                        "tokens_per_second": round(speed),
                    }
                )
            shown = {objective: f"{np.mean(losses):.3f}" for objective, losses in sums.items()}
            bar.set_postfix(shown | {"tokens/s": f"{speed:,.0f}"})
            sums = {}
        if step in checkpoints:
            keep(step)
        if step % save_every == 0 or step == recipe.steps:
            left = {
                "recipe": described,
                "vocabulary": tokenizer.to_str(),
                "text": read_text,
                "step": step,
                "tokens": tokens,
                "seconds": seconds,
                "rows": rows,
                "held_out": held_rows,
                "model": model.state_dict(),
                "optimisers": [optimiser.state_dict() for optimiser in updates],
            }
            if average is not model:
                left["average"] = average.state_dict()
            save_state(state, left)
            write_table(pd.DataFrame(rows), out / "losses.csv")
            write_table(pd.DataFrame(held_rows), out / "held_out.csv")
    bar.close()
    run = {
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "steps": recipe.steps,
        "subwords_seen": tokens,
        "minutes": round(seconds / 60, 1),
        "device": device_name(where),
        "products": str(products_in(where)).removeprefix("torch."),
        "torch": torch.__version__.split("+")[0],
    }
    with written_whole(out / "run.json") as beside:
        beside.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    with written_whole(out / "README.md") as beside:
        beside.write_text(
            model_cards.write(recipe, run, pd.DataFrame(rows), pd.DataFrame(held_rows)),
            encoding="utf-8",
        )
    return pd.DataFrame(rows)


def _cast(device: torch.device) -> torch.autocast:
    """Forward passes in bfloat16, where the device is fast at it."""
    kind = products_in(device)
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=kind == torch.bfloat16)


def _autocast(
    losses: Iterable[tuple[str, torch.Tensor, int]], device: torch.device
) -> Iterator[tuple[str, torch.Tensor, int]]:
    """Compute the forward passes, and only them, in bfloat16 where that is exact enough."""
    iterator = iter(losses)
    while True:
        with _cast(device):
            item = next(iterator, None)
        if item is None:
            return
        yield item


def prepare(
    recipe: Recipe, progress: bool = True
) -> tuple[Tokenizer, PretrainingText, dict[str, list[str]]]:
    """Vocabulary, text and held-out lines of a recipe, from the shipped archives (a minute)."""
    text, held = pretraining_text.read(progress=progress, languages=recipe.languages)
    tokenizer = vocabulary.TRAINERS[recipe.architecture](
        pretraining_text.by_language(text),
        recipe.vocabulary,
        exponent=recipe.language_exponent,
        seed=recipe.seed,
    )
    return tokenizer, PretrainingText.encode(tokenizer, text, progress), held


def preparation(recipe: Recipe) -> tuple:
    """What `prepare` depends on: recipes that share it need it once."""
    trainer = vocabulary.TRAINERS[recipe.architecture].__name__
    return trainer, recipe.vocabulary, recipe.languages, recipe.language_exponent, recipe.seed


def fingerprint(text: PretrainingText, held: Mapping[str, Sequence[str]]) -> str:
    """A hash of the text of a run and of its held-out lines."""
    apart = json.dumps({language: list(lines) for language, lines in sorted(held.items())})
    return hashlib.sha256((text.fingerprint() + apart).encode()).hexdigest()


def state_file(recipe: Recipe) -> Path:
    """Where a run leaves what lets it go on; a steady run of any length, the same file."""
    length = "" if recipe.steady else f"-{recipe.steps}"
    return paths.CACHE / "pretraining" / f"{recipe.name}{length}-{recipe.seed}.pt"


def finished(recipe: Recipe, out: Path) -> bool:
    """Whether a folder holds this run to its end; ValueError where it holds another recipe's."""
    described = out / "recipe.json"
    left = read(described.read_text("utf-8")) if described.exists() else recipe
    if not continues(recipe, left):
        raise ValueError(
            f"{out} holds a run with another recipe: move it away, or name another folder with "
            "--out"
        )
    whole = (out / "README.md").exists() and (out / f"step-{recipe.steps:06d}").exists()
    return whole and left == recipe


def main(arguments: list[str] | None = None) -> None:
    known = list(dict.fromkeys([*RECIPES, *LONG_RECIPES]))
    parser = argparse.ArgumentParser(
        prog="python -m xlx.pretraining",
        description="Train miniature models from the shipped text, or go on with them.",
    )
    parser.add_argument("names", nargs="+", choices=known, metavar="name", help=", ".join(known))
    parser.add_argument(
        "--long", action="store_true", help="the series of ten times the text, at a constant rate"
    )
    parser.add_argument("--out", type=Path, default=paths.MODELS, help="gets a folder <name>")
    parser.add_argument("--steps", type=int, help="length of the run")
    parser.add_argument("--seed", type=int, help="of the initial weights and of the batches")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    recipes = LONG_RECIPES if options.long else RECIPES
    if missing := [name for name in options.names if name not in recipes]:
        parser.error(f"{', '.join(missing)}: only {'without' if options.long else 'with'} --long")
    changes = {key: getattr(options, key) for key in ("steps", "seed")}
    changes = {key: value for key, value in changes.items() if value is not None}
    try:
        checks.device(options.device)
    except ValueError as error:
        sys.exit(f"error: {error}")
    prepared: tuple = ()
    made_for = None
    for name in options.names:
        recipe = replace(recipes[name], **changes)
        out = options.out / name
        state = state_file(recipe)
        try:
            if finished(recipe, out):
                print(f"{out} holds a finished run of this recipe; --out names another folder")
                continue
            if made_for != preparation(recipe):
                prepared, made_for = prepare(recipe), preparation(recipe)
            pretrain(recipe, *prepared, out, state, device=options.device)
        except (ValueError, FileNotFoundError) as error:
            sys.exit(f"error: {error}")
        except Exception as error:
            if not disk_full(error):
                raise
            sys.exit(
                f"error: no space left for {out} or {state}: free some, then run the same command "
                "again; it goes on from the last saved state"
            )


if __name__ == "__main__":
    main()
