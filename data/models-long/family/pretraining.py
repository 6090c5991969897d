"""Train the miniature models from scratch, and keep the history of their training.

A model whose training text, recipe and every checkpoint are known can be asked questions that a
downloaded one cannot. `recipes` says what the members are, `objectives` what they learn. Each batch
depends on ``(seed, step)`` alone, so a run that was stopped goes on as if it had not been.

    python data/models-long/pretrain.py mini-xlm mini-infoxlm --out build/models
    python data/models-long/pretrain.py mini-xlmr --seed 2 --out build/seed2
    python data/models-long/pretrain.py base-infoxlm --device cuda --out build/models
"""

import argparse
import copy
import hashlib
import json
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer

from family import model_cards, objectives, pretraining_text, vocabulary
from family.batches import Batches, held_out_batches
from family.recipes import RECIPES, MemberRecipe, continues, describe, read_recipe
from family.training_text import PretrainingText
from family.vocabulary import BERT_TOKENS, XLMR_TOKENS
from xlx.results import checks, paths, progress
from xlx.results.store import written_whole
from xlx.subjects import identity
from xlx.subjects.finetuning import save_state, saved_state
from xlx.subjects.folders import quiet

#: Vocabulary, text and held-out lines (language → lines).
Prepared = tuple[Tokenizer, PretrainingText, Mapping[str, list[str]]]


def device_name(device: torch.device) -> str:
    """What a model card says of where a run took place."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU with {torch.backends.cpu.get_cpu_capability()}, threads: {torch.get_num_threads()}"


@dataclass
class _Done:
    """How far a run is: what its state holds beside weights and optimisers."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)  # of losses.csv
    held_out: list[dict[str, Any]] = field(default_factory=list)  # of held_out.csv


class _Run:
    """A member under way: its model, the average of its weights, its optimisers, its tables."""

    def __init__(
        self, recipe: MemberRecipe, prepared: Prepared, out: Path, device: torch.device
    ) -> None:
        self.tokenizer, text, held = prepared
        self.recipe, self.out, self.device = recipe, out, device
        self.model = objectives.untrained(recipe).to(device).train()
        # In bfloat16 the fused attention of a CPU is several times slower backwards than products.
        plain = device.type == "cpu" and objectives.products_in(device) == torch.bfloat16
        self.model.set_attn_implementation("eager" if plain else "sdpa")
        self.trunk = None
        if "contrast" in recipe.objectives:
            self.trunk = objectives.lower_layers(self.model, recipe.contrast_layer)
        self.average = copy.deepcopy(self.model) if recipe.averaged_share else self.model
        self.optimisers = objectives.optimisers(self.model, recipe)
        self.batches = Batches(text, recipe)
        self.held = {}
        for code, lines in held.items():
            encoded = self.tokenizer.encode_batch(lines, add_special_tokens=False)
            self.held[code] = held_out_batches([np.array(line.ids) for line in encoded], recipe)
        lines = json.dumps(dict(sorted(held.items())))
        self.key = {
            "recipe": describe(recipe),
            "vocabulary": self.tokenizer.to_str(),
            "text": hashlib.sha256((text.fingerprint() + lines).encode()).hexdigest(),
        }
        self.done = _Done()
        self.sums = {}  # losses since they were last written down

    def go_on(self, state: Path) -> None:
        """Take up what a stopped run left; ValueError where it was another one."""
        if (saved := saved_state(state, self.device)) is None:
            return
        same = {what: saved.get(what) == part for what, part in self.key.items()}
        same["recipe"] = continues(self.recipe, read_recipe(saved["recipe"]))
        if other := [what for what in same if not same[what]]:
            raise ValueError(
                f"{state} was left by a run with another {other[0]}: finish that run, or delete "
                "the file to start anew"
            )
        self.model.load_state_dict(saved["model"])
        self.average.load_state_dict(saved.get("average", saved["model"]))
        for optimiser, left in zip(self.optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(left)
        self.done = _Done(*(saved[name] for name in vars(self.done)))

    def step(self, step: int) -> tuple[float, float]:
        """One step; the learning rate and the norm of the gradient."""
        recipe, share = self.recipe, self.recipe.schedule(step)
        rates = recipe.matrix_learning_rate * share, recipe.learning_rate * share
        for optimiser, rate in zip(self.optimisers, rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate
        for objective, loss, n_tokens in objectives.step_losses(
            self.model, self.trunk, self.batches, recipe, step, self.device
        ):
            loss.backward()
            self.sums.setdefault(objective, []).append(float(loss.detach()))
            self.done.tokens += n_tokens
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip))
        if not math.isfinite(norm):
            raise ValueError(
                f"{recipe.name}: the gradient is not a number at step {step}: start from the last "
                "saved state with a lower learning rate"
            )
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        if self.average is not self.model:
            pairs = ([x.data for x in model.parameters()] for model in (self.average, self.model))
            torch._foreach_lerp_(*pairs, recipe.averaging(step))
        self.done.step = step
        return rates[1], norm

    def log(self, rate: float, norm: float, speed: float) -> dict[str, float]:
        """Write down the mean losses since the last time, and return them."""
        means = {name: round(sum(x) / len(x), 4) for name, x in sorted(self.sums.items())}
        for objective, loss in means.items():
            row = {"step": self.done.step, "tokens": self.done.tokens, "objective": objective}
            row |= {"loss": loss, "learning_rate": round(rate, 7), "gradient_norm": round(norm, 3)}
            self.done.rows.append(row | {"tokens_per_second": round(speed)})
        self.sums = {}
        return means

    def keep(self, step: int) -> None:
        """Save a checkpoint and its held-out losses (once, if a stopped run comes by again)."""
        if step not in {row["step"] for row in self.done.held_out}:
            table = objectives.held_out_losses(self.average, self.held, self.device)
            self.done.held_out += [{"step": step, **row} for row in table.to_dict("records")]
        if not (folder := self.out / f"step-{step:06d}").exists():
            self._write_model(folder)

    def _write_model(self, folder: Path) -> None:
        """An ordinary Hugging Face folder, weights in float16; complete or not there at all."""
        from transformers import PreTrainedTokenizerFast

        bert = self.recipe.architecture == "bert"
        first, pad, last, unknown, mask = BERT_TOKENS if bert else XLMR_TOKENS
        inputs = ["input_ids", "token_type_ids", "attention_mask"]
        with written_whole(folder) as beside, quiet():
            copy.deepcopy(self.average).to("cpu", torch.float16).save_pretrained(beside)
            PreTrainedTokenizerFast(
                tokenizer_object=self.tokenizer,
                bos_token=first,
                cls_token=first,
                eos_token=last,
                sep_token=last,
                pad_token=pad,
                unk_token=unknown,
                mask_token=mask,
                model_max_length=self.recipe.max_length,
                model_input_names=inputs if bert else inputs[::2],
            ).save_pretrained(beside)
            file = beside / "tokenizer.json"  # half the size without its indentation
            config = json.dumps(
                json.loads(file.read_text("utf-8")), ensure_ascii=False, separators=",:"
            )
            file.write_text(config, encoding="utf-8")

    def save(self, state: Path) -> None:
        """Leave what lets the run go on, and the tables so far."""
        left = self.key | vars(self.done) | {"model": self.model.state_dict()}
        left["optimisers"] = [optimiser.state_dict() for optimiser in self.optimisers]
        if self.average is not self.model:
            left["average"] = self.average.state_dict()
        save_state(state, left)
        for name, rows in (("losses", self.done.rows), ("held_out", self.done.held_out)):
            table = pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
            _write(self.out / f"{name}.csv", table)

    def finish(self) -> pd.DataFrame:
        """Write what the run cost, the hashes of its checkpoints and the model card; its losses."""
        cost = {
            "parameters": sum(weights.numel() for weights in self.model.parameters()),
            "steps": self.recipe.steps,
            "subwords_seen": self.done.tokens,
            "minutes": round(self.done.seconds / 60, 1),
            "device": device_name(self.device),
            "products": str(objectives.products_in(self.device)).removeprefix("torch."),
            "torch": torch.__version__.split("+")[0],
        }
        losses, held_out = pd.DataFrame(self.done.rows), pd.DataFrame(self.done.held_out)
        _write(self.out / "run.json", json.dumps(cost, indent=2) + "\n")
        series = identity.local_series(str(self.out), self.out)
        lines = [f"{state.step},{identity.fingerprint(state)}\n" for state in series]
        _write(self.out / identity.RECORD, "".join(["step,fingerprint\n", *lines]))
        card = model_cards.model_card(self.recipe, cost, losses, held_out)
        _write(self.out / "README.md", card)
        return losses


def _write(path: Path, text: str) -> None:
    with written_whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def pretrain(
    recipe: MemberRecipe,
    prepared: Prepared,
    out: Path,
    state: Path,
    *,
    device: str = "cpu",
    save_every: int = 300,
    log_every: int = 50,
) -> pd.DataFrame:
    """Train a member into ``out`` and return its loss table.

    Written are the checkpoints ``step-*`` (of weights averaged as the recipe says), ``losses.csv``
    (one row per ``log_every`` steps and objective, mean loss in nats), ``held_out.csv`` (loss by
    language of every checkpoint, on the held-out lines), ``recipe.json``, ``run.json`` (tokens,
    time, device) and the model card ``README.md``. ``state`` is the file that lets a stopped run go
    on; the result is the same as without the stop (same device, same number of threads). A steady
    run goes on from a shorter one, too.

    ValueError where ``state`` or ``out`` is of another recipe, vocabulary or text, or when the loss
    is no longer a number.
    """
    finished(recipe, out)  # refuses the folder of another recipe
    out.mkdir(parents=True, exist_ok=True)
    run = _Run(recipe, prepared, out, torch.device(device))
    run.go_on(state)
    _write(out / "recipe.json", describe(recipe))
    checkpoints = recipe.checkpoint_steps()
    if run.done.step == 0 and 0 in checkpoints:
        run.keep(0)
    began, before = time.perf_counter(), replace(run.done)
    bar = progress.bar(what=recipe.name, total=recipe.steps)
    bar.update(before.step)
    for step in range(before.step + 1, recipe.steps + 1):
        rate, norm = run.step(step)
        bar.update()
        spent = time.perf_counter() - began
        run.done.seconds = before.seconds + spent
        if step % log_every == 0 or step == recipe.steps:
            bar.set_postfix(run.log(rate, norm, (run.done.tokens - before.tokens) / spent))
        if step in checkpoints:
            run.keep(step)
        if step % save_every == 0 or step == recipe.steps:
            run.save(state)
    bar.close()
    return run.finish()


def prepare(recipe: MemberRecipe) -> Prepared:
    """What a run learns with and from, from the shipped archives (a minute).

    Runs of other seeds have the vocabulary of the first, so that their losses can be compared.
    """
    text, held = pretraining_text.read_text(recipe.languages)
    if recipe.architecture == "bert":
        tokenizer = vocabulary.word_pieces()
    else:
        tokenizer = vocabulary.train_bpe(
            pretraining_text.by_language(text), recipe.vocabulary, exponent=recipe.language_exponent
        )
    if (n := tokenizer.get_vocab_size()) != recipe.vocabulary:
        raise ValueError(f"word pieces are shipped, {n:,} of them, and not trained: ask for these")
    return tokenizer, PretrainingText.encode(tokenizer, text), held


def state_file(recipe: MemberRecipe) -> Path:
    """Where a run leaves what lets it go on; a steady run of any length, the same file."""
    length = "" if recipe.steady else f"-{recipe.steps}"
    return paths.CACHE / "pretraining" / f"{recipe.name}{length}-{recipe.seed}.pt"


def finished(recipe: MemberRecipe, out: Path) -> bool:
    """Whether a folder holds this run to its end; ValueError where it holds another recipe's."""
    described = out / "recipe.json"
    left = read_recipe(described.read_text("utf-8")) if described.exists() else recipe
    if not continues(recipe, left):
        raise ValueError(
            f"{out} holds a run with another recipe: move it away, or name another folder with "
            "--out"
        )
    whole = (out / "README.md").exists() and (out / f"step-{recipe.steps:06d}").exists()
    return whole and left == recipe


def main(arguments: list[str] | None = None) -> None:
    """The command line: members by name, one after another."""
    parser = argparse.ArgumentParser(
        prog="data/models-long/pretrain.py",
        description="Train miniature models from the shipped text, or go on with them.",
    )
    known = ", ".join(RECIPES)
    parser.add_argument("names", nargs="+", choices=[*RECIPES], metavar="name", help=known)
    parser.add_argument("--out", type=Path, required=True, help="gets a folder <name>")
    parser.add_argument("--steps", type=int, help="length of the run")
    parser.add_argument("--seed", type=int, help="of the initial weights and of the batches")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    changes = {"steps": options.steps, "seed": options.seed}
    changes = {key: value for key, value in changes.items() if value is not None}
    try:
        checks.device(options.device)
        for name in options.names:
            recipe, out = replace(RECIPES[name], **changes), options.out / name
            if finished(recipe, out):
                print(f"{out} holds a finished run of this recipe; --out names another folder")
            else:
                pretrain(recipe, prepare(recipe), out, state_file(recipe), device=options.device)
    except (ValueError, OSError) as error:  # a full disk, too: the same command goes on
        sys.exit(f"error: {error}")
