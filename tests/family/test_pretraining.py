"""Pretraining: first weights, losses, and runs that are stopped; on a handful of words."""

import errno
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import SafetensorError
from torch.nn import functional
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
)

from tests import toy
from xlx.core import paths
from xlx.family import objectives, pretraining, vocabulary
from xlx.family.batches import NO_LABEL, Batch, Batches, held_out_batches
from xlx.family.pretraining_text import PretrainingText
from xlx.family.recipes import MEMBERS, RECIPES, MemberRecipe, describe
from xlx.family.vocabulary import PAD
from xlx.models import loading

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def recipe() -> MemberRecipe:
    return toy.recipe("mini-infoxlm")


def prepared(recipe: MemberRecipe) -> tuple:
    return toy.prepared(recipe.architecture)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, byte by byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- the untrained model -------------------------------------------------------------------------


def test_members_of_one_architecture_and_size_start_from_the_same_weights() -> None:
    starts: dict[tuple, tuple[str, dict[str, torch.Tensor]]] = {}
    together = []
    for name in MEMBERS:
        member = RECIPES[name]
        state = objectives.untrained(member).state_dict()
        first, expected = starts.setdefault(
            (member.architecture, member.layers, member.hidden_size), (name, state)
        )
        assert same(expected, state), (first, name)
        together.append({first, name})
    for pair in (("xlmr", "xlm"), ("xlmr", "infoxlm"), ("llama", "llama-en80")):
        assert {f"mini-{end}" for end in pair} in together
    assert len(starts) == 5  # mBERT, two sizes of XLM-R and of Llama


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_nothing_but_the_recipe_decides_the_weights(member: str) -> None:
    recipe = toy.recipe(member)
    first = objectives.untrained(recipe).state_dict()
    torch.manual_seed(3)
    assert same(first, objectives.untrained(recipe).state_dict())
    assert not same(first, objectives.untrained(replace(recipe, seed=2)).state_dict())


def assert_sd(values: torch.Tensor, sd: float) -> None:
    """Normal values of mean 0: their sd is known to one part in the root of twice their number."""
    tolerance = 4 / math.sqrt(2 * values.numel())
    assert float(values.std()) == pytest.approx(sd, rel=tolerance)
    assert abs(float(values.mean())) < 4 * sd / math.sqrt(values.numel())


@torch.no_grad()
@pytest.mark.parametrize("member", toy.MEMBERS)
def test_the_size_of_the_first_weights(member: str) -> None:
    recipe = toy.recipe(member, vocabulary=2000, hidden_size=64, intermediate_size=128)
    model = objectives.untrained(recipe)
    table = model.get_input_embeddings().weight
    n_embeddings = n_matrices = 0
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            rows = list(module.weight)
            if module.padding_idx is not None:
                assert not rows.pop(module.padding_idx).any()
            assert_sd(torch.stack(rows), 0.02)
            n_embeddings += 1
        elif isinstance(module, torch.nn.Linear):
            assert module.bias is None or not module.bias.any()
            if module.weight is not table:
                assert_sd(module.weight, 0.02 * math.sqrt(768 / 64))
                n_matrices += 1
    assert n_embeddings == (1 if recipe.decoder else 3)  # subwords; positions; types
    assert n_matrices == (7 * recipe.layers if recipe.decoder else 6 * recipe.layers + 1)
    # The output layer shares its matrix with the embeddings: it is not drawn once more.
    assert model.get_output_embeddings().weight is table
    assert not table[PAD].any()
    assert_sd(table, 0.02)


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_the_shape_of_a_model_is_that_of_its_recipe(member: str) -> None:
    recipe = toy.recipe(member)
    config = objectives.untrained(recipe).config
    assert config.model_type == recipe.architecture
    assert config.vocab_size == recipe.vocabulary
    assert config.num_hidden_layers == recipe.layers
    assert (config.hidden_size, config.intermediate_size) == (16, 32)
    assert (config.bos_token_id, config.pad_token_id, config.eos_token_id) == (0, 1, 2)
    ids = torch.full((1, recipe.max_length), 5)  # as long as a line may be
    with torch.no_grad():
        assert objectives.untrained(recipe)(ids).logits.shape == (1, 32, recipe.vocabulary)


# --- losses --------------------------------------------------------------------------------------


def labelled_batch(recipe: MemberRecipe) -> Batch:
    """Lines of different lengths, so that there is padding."""
    tokenizer, _, held = prepared(recipe)
    lines = [tokenizer.encode(line, add_special_tokens=False).ids for line in held["de"]]
    lines[0] = lines[0][:3]
    (batch, *_) = held_out_batches(
        [np.array(line) for line in lines], replace(recipe, tokens_per_step=999)
    )
    assert not batch.real.all()
    return batch


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_labelled_losses_against_their_definition(member: str) -> None:
    recipe = toy.recipe(member)
    model, batch = objectives.untrained(recipe).eval(), labelled_batch(recipe)
    total, found = 0.0, []
    with torch.no_grad():
        logits = model(batch.ids, attention_mask=batch.real).logits
        for row, labels in zip(logits, batch.labels, strict=True):
            for scores, label in zip(row, labels.tolist(), strict=True):
                if label != NO_LABEL:
                    total += float(torch.logsumexp(scores, 0) - scores[label])
                    found.append(total)
        loss = objectives.labelled_loss(model, batch)
        each = objectives.labelled_loss(model, batch, mean=False)
    assert float(loss) == pytest.approx(total / len(found), 1e-5)
    assert each.cumsum(0).tolist() == pytest.approx(found, 1e-4)


def test_the_causal_loss_is_that_of_transformers() -> None:
    recipe = toy.recipe("mini-llama")
    model, batch = objectives.untrained(recipe).eval(), labelled_batch(recipe)
    labels = torch.where(batch.real, batch.ids, NO_LABEL)  # transformers shifts them itself
    with torch.no_grad():
        expected = model(batch.ids, attention_mask=batch.real, labels=labels).loss
        found = objectives.labelled_loss(model, batch)
        again = objectives.labelled_loss(model, replace(batch, ids=batch.ids.flip(1)))
    assert float(found) == pytest.approx(float(expected), 1e-5)
    assert float(again) != pytest.approx(float(expected), 1e-5)


def test_the_contrast_against_its_definition(recipe: MemberRecipe) -> None:
    model = objectives.untrained(recipe).eval()
    pairs = Batches(prepared(recipe)[1], recipe).contrast(np.random.default_rng(0))
    trunk = objectives.lower_layers(model, 1)
    with torch.no_grad():
        states = model.roberta(
            pairs.ids, attention_mask=pairs.real, output_hidden_states=True
        ).hidden_states[1]
        pooled = []
        for row, ids in zip(states, pairs.ids, strict=True):
            inner = [s for s, i in zip(row, ids.tolist(), strict=True) if i not in (0, 1, 2)]
            mean = torch.stack(inner).mean(0)
            pooled.append(mean / mean.norm())
        total = 0.0
        n = len(pooled) // 2
        for i in range(n):
            for own, others in ((0, 1), (1, 0)):
                scores = torch.stack(
                    [pooled[2 * i + own] @ pooled[2 * j + others] for j in range(n)]
                )
                total += float(torch.logsumexp(scores / 0.1, 0) - scores[i] / 0.1)
        found = objectives.contrastive_loss(trunk, pairs, 0.1)
    assert float(found) == pytest.approx(total / (2 * n), 1e-4)


def test_the_contrast_moves_the_lower_layers_alone(recipe: MemberRecipe) -> None:
    model = objectives.untrained(recipe)
    trunk = objectives.lower_layers(model, 1)
    pairs = Batches(prepared(recipe)[1], recipe).contrast(np.random.default_rng(0))
    objectives.contrastive_loss(trunk, pairs, 0.1).backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert "roberta.encoder.layer.0.output.dense.weight" in moved
    assert not any(".layer.1." in name or name.startswith("lm_head.dense") for name in moved)
    assert len(model.roberta.encoder.layer) == recipe.layers  # the whole model is still whole


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("mini-xlmr", ["mlm"] * 8),
        ("mini-llama", ["clm"] * 8),
        ("mini-xlm", ["tlm", "mlm"] * 4),
        ("mini-infoxlm", ["tlm", "mlm", "tlm", "mlm contrast"] * 2),
    ],
)
def test_objectives_take_turns(member: str, expected: list[str]) -> None:
    recipe = toy.recipe(member)
    model, batches = objectives.untrained(recipe), Batches(prepared(recipe)[1], recipe)
    trunk = objectives.lower_layers(model, 1) if "contrast" in recipe.objectives else None
    for step, names in enumerate(expected, start=1):
        losses = list(pretraining.step_losses(model, trunk, batches, recipe, step, CPU))
        assert " ".join(objective for objective, _, _ in losses) == names
        again = list(pretraining.step_losses(model, trunk, batches, recipe, step, CPU))
        assert [float(loss.detach()) for _, loss, _ in losses] == [
            float(loss.detach()) for _, loss, _ in again
        ]


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_every_parameter_has_one_optimiser(member: str) -> None:
    recipe = toy.recipe(member)
    model = objectives.untrained(recipe)
    muon, adamw = pretraining.optimisers(model, recipe)
    assert isinstance(muon, torch.optim.Muon)
    assert isinstance(adamw, torch.optim.AdamW)
    held = [p for optimiser in (muon, adamw) for g in optimiser.param_groups for p in g["params"]]
    assert sorted(map(id, held)) == sorted(map(id, model.parameters()))
    layers = model.model.layers if recipe.decoder else model.base_model.encoder.layer
    matrices = [p for p in layers.parameters() if p.ndim == 2]
    in_muon = [p for group in muon.param_groups for p in group["params"]]
    assert sorted(map(id, in_muon)) == sorted(map(id, matrices))
    assert {group["lr"] for group in muon.param_groups} == {recipe.matrix_learning_rate}
    assert {group["lr"] for group in adamw.param_groups} == {recipe.learning_rate}


# --- a run ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Member → the folder of a whole run."""
    folders = {member: tmp_path_factory.mktemp(member) for member in toy.MEMBERS}
    for member, folder in folders.items():
        toy.run(toy.recipe(member), folder)
    return folders


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_what_a_run_leaves(runs: dict[str, Path], member: str) -> None:
    recipe, out = toy.recipe(member), runs[member] / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "held_out.csv", "losses.csv", "recipe.json", "run.json",
        *(f"step-{step:06d}" for step in (0, 3, 6, 12)),
    ]  # fmt: skip
    assert (out / "recipe.json").read_text("utf-8") == describe(recipe)
    assert pretraining.finished(recipe, out)

    losses = pd.read_csv(out / "losses.csv")
    assert set(losses["objective"]) == set(recipe.objectives)
    assert sorted(set(losses["step"])) == [5, 10, 12]
    labelled = losses[losses["objective"] != "contrast"]
    assert labelled["loss"].iloc[-1] < labelled["loss"].iloc[0] - 0.2  # it learns
    assert losses["tokens"].is_monotonic_increasing
    expected = [recipe.learning_rate * recipe.schedule(step) for step in losses["step"]]
    assert losses["learning_rate"].tolist() == pytest.approx(expected, abs=1e-7)

    run = json.loads((out / "run.json").read_text("utf-8"))
    model = objectives.untrained(recipe)
    assert run["parameters"] == sum(p.numel() for p in model.parameters())
    assert run["steps"] == recipe.steps
    assert run["subwords_seen"] == losses["tokens"].iloc[-1]
    assert run["minutes"] >= 0
    assert run["device"] == pretraining.device_name(CPU)
    assert run["torch"] == torch.__version__.split("+")[0]


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_held_out_losses_against_their_definition(runs: dict[str, Path], member: str) -> None:
    recipe, out = toy.recipe(member), runs[member] / "out"
    tokenizer, _, held = prepared(recipe)
    table = pd.read_csv(out / "held_out.csv")
    assert list(table.columns) == ["step", "language", "subwords", "loss"]
    rows = [(step, language) for step in (0, 3, 6, 12) for language in held]
    assert list(zip(table["step"], table["language"], strict=True)) == rows
    auto = AutoModelForCausalLM if recipe.decoder else AutoModelForMaskedLM
    for step, of_step in table.groupby("step"):
        model = auto.from_pretrained(out / f"step-{step:06d}", dtype=torch.float32)
        for row in of_step.itertuples():
            lines = [tokenizer.encode(s, add_special_tokens=False).ids for s in held[row.language]]
            losses = []
            for batch in held_out_batches([np.array(line) for line in lines], recipe):
                with torch.no_grad():
                    logits = model(batch.ids, attention_mask=batch.real.long()).logits
                losses += functional.cross_entropy(
                    logits.flatten(0, 1), batch.labels.flatten(), reduction="none"
                )[batch.labels.flatten() != NO_LABEL].tolist()
            assert row.subwords == len(losses)
            # The run computes in bfloat16, and the checkpoint is in float16.
            assert row.loss == pytest.approx(np.mean(losses), abs=0.01)


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_a_checkpoint_is_an_ordinary_folder(runs: dict[str, Path], member: str) -> None:
    recipe, folder = toy.recipe(member), runs[member] / "out/step-000012"
    assert {value.dtype for value in toy.weights(folder).values()} == {torch.float16}
    sentences = ["Haus Baum", "dog, cat and 犬", "家"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    raw = prepared(recipe)[0]
    assert tokenizer(sentences)["input_ids"] == [raw.encode(line).ids for line in sentences]
    assert (tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert (tokenizer.unk_token_id, tokenizer.mask_token_id) == (3, recipe.vocabulary - 1)
    assert tokenizer.model_max_length == recipe.max_length
    if recipe.architecture == "bert":
        pair = raw.encode("dog", "cat")
        assert tokenizer("dog", "cat")["token_type_ids"] == pair.type_ids
        assert set(pair.type_ids) == {0, 1}

    model = AutoModel.from_pretrained(folder, dtype=torch.float32)
    loaded = loading.load(folder, device="cpu")
    assert loaded.kind == ("decoder" if recipe.decoder else "encoder")
    assert loaded.max_length == recipe.max_length
    encoded = tokenizer(sentences, padding=True, return_tensors="pt")
    ours = loaded.tokenizer(sentences, padding=True, return_tensors="pt")
    assert torch.equal(encoded["input_ids"], ours["input_ids"])
    with torch.no_grad():
        expected = model(**encoded, output_hidden_states=True).hidden_states
        found = loaded.model(**ours, output_hidden_states=True).hidden_states
    assert len(found) == recipe.layers + 1
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_what_is_kept_does_not_change_what_is_learnt(
    runs: dict[str, Path], recipe: MemberRecipe, tmp_path: Path
) -> None:
    toy.run(replace(recipe, history=False), tmp_path, save_every=100, log_every=3)
    kept = sorted(path.name for path in (tmp_path / "out").glob("step-*"))
    assert kept == ["step-000012"]
    whole = runs["mini-infoxlm"] / "out/step-000012"
    assert same(toy.weights(tmp_path / "out/step-000012"), toy.weights(whole))


def test_a_run_without_held_out_lines(recipe: MemberRecipe, tmp_path: Path) -> None:
    short = replace(recipe, steps=2)
    tokenizer, text, _ = prepared(recipe)
    out = tmp_path / "out"
    pretraining.pretrain(short, tokenizer, text, {}, out, tmp_path / "s.pt", progress=False)
    assert "Not measured." in (out / "README.md").read_text("utf-8")
    assert pretraining.finished(short, out)


def test_the_base_size_runs_the_same_way(tmp_path: Path) -> None:
    recipe = toy.recipe("base-infoxlm", tokens_per_step=32, steps=36, contrast_pairs=2)
    assert recipe.dense_checkpoints
    toy.run(recipe, tmp_path, log_every=18)
    kept = sorted(path.name for path in (tmp_path / "out").glob("step-*"))
    assert kept == [f"step-{step:06d}" for step in recipe.checkpoint_steps()]
    assert len(kept) > 25
    series = loading.checkpoints(str(tmp_path / "out"))
    assert [checkpoint.step for checkpoint in series] == recipe.checkpoint_steps()
    assert set(pd.read_csv(tmp_path / "out/held_out.csv")["step"]) == set(recipe.checkpoint_steps())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("member", toy.MEMBERS)
def test_a_cuda_device_trains_with_the_same_command(
    runs: dict[str, Path], member: str, tmp_path: Path
) -> None:
    recipe = toy.recipe(member)
    for folder in (tmp_path / "one", tmp_path / "other"):
        toy.run(recipe, folder, device="cuda")
    one, other = (tmp_path / which / "out" for which in ("one", "other"))
    assert same(toy.weights(one / "step-000012"), toy.weights(other / "step-000012"))
    here, there = (pd.read_csv(out / "losses.csv") for out in (runs[member] / "out", one))
    assert here["tokens"].tolist() == there["tokens"].tolist()
    np.testing.assert_allclose(here["loss"], there["loss"], atol=0.05)
    run = json.loads((one / "run.json").read_text("utf-8"))
    assert run["device"] == torch.cuda.get_device_name()


# --- stopped, killed, refused --------------------------------------------------------------------


def interrupted(at: int, error: type[BaseException]):
    """`pretraining.step_losses`, but a run ends at a step."""
    steps = pretraining.step_losses

    def step_losses(*arguments) -> Iterator:
        if arguments[4] == at:
            raise error
        yield from steps(*arguments)

    return step_losses


@pytest.mark.parametrize("member", toy.MEMBERS)
def test_a_stopped_run_goes_on_as_if_it_had_not_been(
    runs: dict[str, Path], member: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = toy.recipe(member)
    for at in (8, 11):
        with monkeypatch.context() as patched:
            patched.setattr(pretraining, "step_losses", interrupted(at, KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                toy.run(recipe, tmp_path)
        assert not pretraining.finished(recipe, tmp_path / "out")
    toy.run(recipe, tmp_path)
    whole, stopped = contents(runs[member] / "out"), contents(tmp_path / "out")
    assert set(whole) == set(stopped)
    measured = ("losses.csv", "run.json", "README.md")  # speed and time, which differ
    assert [name for name in whole if whole[name] != stopped[name] and name not in measured] == []
    one, other = (pd.read_csv(folder / "out/losses.csv") for folder in (runs[member], tmp_path))
    speed = "tokens_per_second"
    pd.testing.assert_frame_equal(one.drop(columns=speed), other.drop(columns=speed))


def test_a_run_stopped_before_its_card_gets_it(
    runs: dict[str, Path], recipe: MemberRecipe, tmp_path: Path
) -> None:
    toy.run(recipe, tmp_path)
    (tmp_path / "out/README.md").unlink()
    before = contents(tmp_path / "out")
    assert not pretraining.finished(recipe, tmp_path / "out")
    toy.run(recipe, tmp_path)
    after = contents(tmp_path / "out")
    assert after.pop("README.md")
    assert after == before


def test_another_recipe_or_vocabulary_is_refused(recipe: MemberRecipe, tmp_path: Path) -> None:
    toy.run(replace(recipe, steps=3), tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="holds a run with another recipe: move it away"):
        toy.run(replace(recipe, steps=3, seed=2), tmp_path)
    assert contents(tmp_path) == before
    with pytest.raises(ValueError, match="left by a run with another recipe"):
        pretraining.pretrain(
            replace(recipe, steps=3, seed=2), *prepared(recipe), tmp_path / "new",
            tmp_path / "state.pt", progress=False,
        )  # fmt: skip
    other = vocabulary.train_bpe({"en": ["other words " * 9, "bread and wine"] * 9}, 280)
    with pytest.raises(ValueError, match="left by a run with another vocabulary"):
        pretraining.pretrain(
            replace(recipe, steps=3), other, *prepared(recipe)[1:], tmp_path / "out",
            tmp_path / "state.pt", progress=False,
        )  # fmt: skip
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before
    assert not list((tmp_path / "new").glob("*"))


def test_other_text_is_refused(recipe: MemberRecipe, tmp_path: Path) -> None:
    toy.run(replace(recipe, steps=3), tmp_path)
    tokenizer, _, held = prepared(recipe)
    lines = toy.text()
    lines["ntrex"]["de"]["5"] = "Haus"
    other = PretrainingText.encode(tokenizer, lines, progress=False)
    apart = {**held, "de": held["de"][1:]}
    for text, lines_apart in ((other, held), (prepared(recipe)[1], apart)):
        with pytest.raises(ValueError, match="left by a run with another text"):
            pretraining.pretrain(
                replace(recipe, steps=3), tokenizer, text, lines_apart, tmp_path / "out",
                tmp_path / "state.pt", progress=False,
            )  # fmt: skip


STEADY = {"decay_share": 0.0, "warmup_steps": 2, "averaged_share": 0.2}


def test_a_checkpoint_holds_the_average_of_the_weights(
    recipe: MemberRecipe, tmp_path: Path
) -> None:
    steady = replace(recipe, **STEADY, first_checkpoint=1)
    every = replace(steady, averaged_share=0.0, checkpoints_per_doubling=12)
    for name, one in (("average", steady), ("single", every)):
        (tmp_path / name).mkdir()
        toy.run(one, tmp_path / name)
    # With so many a doubling each of the first eight steps is kept.
    average: dict[str, torch.Tensor] = {}
    for step in range(1, 9):
        weights = toy.weights(tmp_path / f"single/out/step-{step:06d}")
        weight = steady.averaging(step)
        average = {
            key: value.float() * weight + average.get(key, 0) * (1 - weight)
            for key, value in weights.items()
        }
    kept = toy.weights(tmp_path / "average/out/step-000008")
    for key, value in average.items():
        torch.testing.assert_close(kept[key].float(), value, rtol=2e-3, atol=1e-4)
    assert not same(kept, toy.weights(tmp_path / "single/out/step-000008"))


def test_a_steady_run_is_lengthened_as_if_it_had_been_long(
    recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = replace(recipe, **STEADY)
    for folder in (tmp_path / "long", tmp_path / "short"):
        folder.mkdir()
    toy.run(long, tmp_path / "long")
    toy.run(replace(long, steps=6), tmp_path / "short")
    with monkeypatch.context() as patched:
        patched.setattr(pretraining, "step_losses", interrupted(9, KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            toy.run(long, tmp_path / "short", save_every=2)
    assert not pretraining.finished(long, tmp_path / "short/out")
    toy.run(long, tmp_path / "short")
    assert pretraining.finished(long, tmp_path / "short/out")
    for step in (0, 3, 6, 12):
        one, other = (
            toy.weights(tmp_path / f"{of}/out/step-{step:06d}") for of in ("long", "short")
        )
        assert same(one, other)
    whole, longer = (
        (tmp_path / of / "out/held_out.csv").read_text("utf-8") for of in ("long", "short")
    )
    assert whole == longer
    with pytest.raises(ValueError, match="holds a run with another recipe"):
        toy.run(replace(long, steps=6), tmp_path / "short")


def test_a_state_half_written_is_not_the_state(
    recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = torch.save
    count = 0

    def stopped(left: dict, file: object) -> None:
        nonlocal count
        count += 1
        if count == 2:
            file.write(b"half")
            raise KeyboardInterrupt
        saved(left, file)

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", stopped)
        with pytest.raises(KeyboardInterrupt):
            toy.run(replace(recipe, **STEADY), tmp_path)
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == 5
    toy.run(replace(recipe, **STEADY), tmp_path)
    (tmp_path / "whole").mkdir()
    toy.run(replace(recipe, **STEADY), tmp_path / "whole")
    one, other = (
        toy.weights(folder / "out/step-000012") for folder in (tmp_path, tmp_path / "whole")
    )
    assert same(one, other)


def test_a_gradient_that_is_no_number_is_named_with_its_step(
    recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = pretraining.step_losses

    def to_nan(*arguments) -> Iterator:
        for objective, loss, n_tokens in steps(*arguments):
            yield objective, loss * float("nan") if arguments[4] == 7 else loss, n_tokens

    monkeypatch.setattr(pretraining, "step_losses", to_nan)
    with pytest.raises(ValueError, match="mini-infoxlm: the gradient is not a number at step 7"):
        toy.run(recipe, tmp_path)
    left = torch.load(tmp_path / "state.pt", weights_only=True)
    assert left["step"] == 5
    assert all(value.isfinite().all() for value in left["model"].values())


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests import toy
toy.run(toy.recipe(steps=100_000, first_checkpoint=1), Path(sys.argv[1]), save_every=1, log_every=1)
"""


def test_a_killed_run_leaves_nothing_half_written(tmp_path: Path) -> None:
    script = SCRIPT.format(root=str(paths.ROOT))
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    try:
        deadline = time.monotonic() + 300
        while not (tmp_path / "out/step-000008").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    torch.load(tmp_path / "state.pt", weights_only=True)
    json.loads((tmp_path / "out/recipe.json").read_text())
    pd.read_csv(tmp_path / "out/losses.csv")
    whole = sorted((tmp_path / "out").glob("step-*"))
    assert len(whole) >= 5
    for folder in whole:
        assert toy.weights(folder)
        AutoTokenizer.from_pretrained(folder)


# --- a full disk, and the command ----------------------------------------------------------------

FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")


@pytest.fixture
def command(recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments that train the toy recipe into ``tmp_path / "out"``; no archive is read."""
    monkeypatch.setattr(pretraining, "RECIPES", {recipe.name: recipe})
    monkeypatch.setattr(pretraining, "prepare", prepared)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    return [recipe.name, "--out", str(tmp_path / "out"), "--device", "cpu"]


def beside(path: Path) -> Path:
    """The name under which a file is written before it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pretraining.written_whole(path) as name:
        name.touch()
    path.unlink()
    return name


def fill(path: Path) -> None:
    """Let what is about to be written at a path find no space."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(FULL)


@needs_a_full_disk
def test_a_full_disk_leaves_what_was_whole(recipe: MemberRecipe, tmp_path: Path) -> None:
    short = replace(recipe, steps=3)
    toy.run(short, tmp_path)
    (tmp_path / "out/README.md").unlink()  # to be written again
    before = contents(tmp_path)
    fill(beside(tmp_path / "out/README.md"))
    with pytest.raises(OSError, match="No space left") as error:
        toy.run(short, tmp_path)
    assert error.value.errno == errno.ENOSPC
    assert contents(tmp_path) == before


@needs_a_full_disk
@pytest.mark.parametrize("what", ["state", "table"])
def test_a_full_disk_is_said_plainly(
    what: str, command: list[str], recipe: MemberRecipe, tmp_path: Path
) -> None:
    out = tmp_path / "out" / recipe.name
    fill(
        {
            "state": beside(tmp_path / f"cache/pretraining/{recipe.name}-12-1.pt"),
            "table": beside(out / "losses.csv"),
        }[what]
    )
    with pytest.raises(SystemExit) as stopped:
        pretraining.pretrain_members(command)
    assert str(stopped.value).startswith(f"error: no space left for {out}")
    assert "run the same command again" in str(stopped.value)
    assert not list(tmp_path.rglob(".*"))  # nothing half written
    pretraining.pretrain_members(command)  # there is space again
    assert pretraining.finished(recipe, out)


def test_a_disk_too_full_for_weights_is_said_plainly(
    command: list[str], recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_pretrained(_, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"half")
        # What safetensors raises for a full disk: no OSError.
        raise SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        )

    with monkeypatch.context() as patched:
        patched.setattr(PreTrainedModel, "save_pretrained", save_pretrained)
        with pytest.raises(SystemExit, match="error: no space left for"):
            pretraining.pretrain_members(command)
    out = tmp_path / "out" / recipe.name
    assert [path.name for path in out.iterdir()] == ["recipe.json"]  # nothing half written


def test_other_errors_are_not_taken_for_a_full_disk(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretraining, "step_losses", interrupted(2, PermissionError))
    with pytest.raises(PermissionError):
        pretraining.pretrain_members(command)


def test_the_command_trains_goes_on_and_knows_when_it_is_done(
    command: list[str],
    runs: dict[str, Path],
    recipe: MemberRecipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pretraining.pretrain_members(command)
    out = tmp_path / "out" / recipe.name
    whole = runs[recipe.name] / "out/step-000012"
    assert same(toy.weights(out / "step-000012"), toy.weights(whole))
    before = contents(out)

    def never(_: MemberRecipe) -> None:
        raise AssertionError("prepared in vain")

    monkeypatch.setattr(pretraining, "prepare", never)
    pretraining.pretrain_members(command)
    assert "holds a finished run of this recipe; --out names" in capsys.readouterr().out
    for change in (["--seed", "2"], ["--steps", "6"]):
        with pytest.raises(SystemExit) as stopped:
            pretraining.pretrain_members([*command, *change])
        assert str(stopped.value).startswith(f"error: {out} holds a run with another recipe")
    assert contents(out) == before


def test_members_with_one_vocabulary_are_prepared_once(
    recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {
        member: toy.recipe(member, steps=1, history=False)
        for member in ("mini-xlmr", "mini-llama", "mini-mbert", "mini-xlm")
    }
    made = []

    def prepare(of: MemberRecipe) -> tuple:
        made.append(of.name)
        return prepared(of)

    monkeypatch.setattr(pretraining, "RECIPES", short)
    monkeypatch.setattr(pretraining, "prepare", prepare)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    pretraining.pretrain_members([*short, "--out", str(tmp_path), "--device", "cpu"])
    assert made == ["mini-xlmr", "mini-mbert", "mini-xlm"]
    assert all(pretraining.finished(short[member], tmp_path / member) for member in short)


def test_bad_requests_are_named(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        pretraining.pretrain_members(["mini-nothing"])
    assert "mini-infoxlm" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(paths, "DATA", tmp_path)
    with pytest.raises(SystemExit) as stopped:
        pretraining.pretrain_members(command)
    assert str(stopped.value).startswith("error: the pretraining text common_voice.tar.xz is not")
