"""Pretraining: what a run leaves; runs that are stopped, killed, refused; on a handful of words."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from family import objectives, pretraining, vocabulary
from family.batches import NO_LABEL, held_out_batches
from family.recipes import MemberRecipe, describe
from family.training_text import PretrainingText
from tests import toy
from xlx.results import paths, store
from xlx.subjects import identity, loading

STEADY = {"decay_share": 0.0, "warmup_steps": 2, "averaged_share": 0.2}
of_each_architecture = pytest.mark.parametrize("member", toy.MEMBERS)


@pytest.fixture(scope="module")
def recipe() -> MemberRecipe:
    return toy.recipe("mini-infoxlm")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Member → the folder of a whole run; "steady" → that of a steady one."""
    recipes = {member: toy.recipe(member) for member in toy.MEMBERS}
    recipes["steady"] = replace(recipes["mini-infoxlm"], **STEADY)
    folders = {name: tmp_path_factory.mktemp(name) for name in recipes}
    for name, of_run in recipes.items():
        toy.run(of_run, folders[name])
    return folders


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, byte by byte."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def last(folder: Path) -> dict[str, torch.Tensor]:
    """The weights at the end of a run."""
    return toy.weights(folder / "step-000012")


# --- what a run leaves ---------------------------------------------------------------------------


@of_each_architecture
def test_what_a_run_leaves(runs: dict[str, Path], member: str) -> None:
    recipe, out = toy.recipe(member), runs[member] / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md",
        "checkpoints.csv",
        "held_out.csv",
        "losses.csv",
        "recipe.json",
        "run.json",
        *(f"step-{step:06d}" for step in (0, 3, 6, 12)),
    ]
    assert [checkpoint.step for checkpoint in identity.checkpoints(str(out))] == [0, 3, 6, 12]
    assert identity.checkpoints(str(out), recorded=True) == identity.checkpoints(str(out))
    table = pd.read_csv(out / "checkpoints.csv", index_col="step")["fingerprint"]
    assert table[12] == identity.fingerprint(out)
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
    assert run.pop("minutes") >= 0
    assert run.pop("products") in ("bfloat16", "float32")
    assert run == {
        "parameters": sum(p.numel() for p in objectives.untrained(recipe).parameters()),
        "steps": recipe.steps,
        "subwords_seen": losses["tokens"].iloc[-1],
        "device": pretraining.device_name(torch.device("cpu")),
        "torch": torch.__version__.split("+")[0],
    }


@of_each_architecture
def test_held_out_losses_against_their_definition(runs: dict[str, Path], member: str) -> None:
    recipe, out = toy.recipe(member), runs[member] / "out"
    tokenizer, _, held = toy.prepared(recipe.architecture)
    table = pd.read_csv(out / "held_out.csv")
    assert list(table.columns) == ["step", "language", "subwords", "loss"]
    rows = [(step, language) for step in (0, 3, 6, 12) for language in held]
    assert list(zip(table["step"], table["language"], strict=True)) == rows
    auto = AutoModelForCausalLM if recipe.decoder else AutoModelForMaskedLM
    model = auto.from_pretrained(out / "step-000012", dtype=torch.float32)
    for row in table[table["step"] == 12].itertuples():
        lines = [tokenizer.encode(s, add_special_tokens=False).ids for s in held[row.language]]
        losses = []
        for batch in held_out_batches(list(map(np.array, lines)), recipe):
            with torch.no_grad():
                logits = model(batch.ids, attention_mask=batch.real.long()).logits
            labels = batch.labels.flatten()
            apart = functional.cross_entropy(logits.flatten(0, 1), labels, reduction="none")
            losses += apart[labels != NO_LABEL].tolist()
        assert row.subwords == len(losses)
        # The run may compute in bfloat16, and the checkpoint is in float16.
        assert row.loss == pytest.approx(np.mean(losses), abs=0.01)


@of_each_architecture
def test_a_checkpoint_is_an_ordinary_folder(runs: dict[str, Path], member: str) -> None:
    recipe, folder = toy.recipe(member), runs[member] / "out/step-000012"
    assert {value.dtype for value in toy.weights(folder).values()} == {torch.float16}
    sentences = ["Haus Baum", "dog, cat and 犬", "家"]
    tokenizer, raw = AutoTokenizer.from_pretrained(folder), toy.prepared(recipe.architecture)[0]
    assert tokenizer(sentences)["input_ids"] == [raw.encode(line).ids for line in sentences]
    assert (tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert (tokenizer.unk_token_id, tokenizer.mask_token_id) == (3, recipe.vocabulary - 1)
    assert tokenizer.model_max_length == recipe.max_length
    if recipe.architecture == "bert":
        assert tokenizer("dog", "cat")["token_type_ids"] == raw.encode("dog", "cat").type_ids
    loaded = loading.load(folder, device="cpu")
    assert loaded.kind == ("decoder" if recipe.decoder else "encoder")
    assert (loaded.max_length, loaded.n_layers) == (recipe.max_length, recipe.layers)


def test_a_checkpoint_holds_the_average_of_the_weights(
    runs: dict[str, Path], recipe: MemberRecipe, tmp_path: Path
) -> None:
    steady = replace(recipe, **STEADY)
    # With so many a doubling each step is kept.
    single = replace(steady, averaged_share=0.0, first_checkpoint=1, checkpoints_per_doubling=12)
    toy.run(replace(single, steps=6), tmp_path)
    average: dict[str, torch.Tensor] = {}
    for step in range(1, 7):
        weights, share = toy.weights(tmp_path / f"out/step-{step:06d}"), steady.averaging(step)
        average = {
            key: value.float() * share + average.get(key, 0) * (1 - share)
            for key, value in weights.items()
        }
    kept = toy.weights(runs["steady"] / "out/step-000006")
    for key, value in average.items():
        torch.testing.assert_close(kept[key].float(), value, rtol=2e-3, atol=1e-4)
    assert not toy.same(kept, weights)


# --- stopped, killed, refused --------------------------------------------------------------------


def interrupted(step: int, error: type[BaseException]):
    """`objectives.step_losses`, but a run ends at a step."""
    steps = objectives.step_losses

    def step_losses(*arguments) -> Iterator:
        if arguments[4] == step:
            raise error
        yield from steps(*arguments)

    return step_losses


def stopped_at(step: int, recipe: MemberRecipe, folder: Path, **options: int) -> None:
    """A run that someone stops."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(objectives, "step_losses", interrupted(step, KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            toy.run(recipe, folder, **options)
    assert not pretraining.finished(recipe, folder / "out")


@of_each_architecture
def test_a_stopped_run_goes_on_as_if_it_had_not_been(
    runs: dict[str, Path], member: str, tmp_path: Path
) -> None:
    recipe = toy.recipe(member)
    stopped_at(8, recipe, tmp_path)
    stopped_at(11, recipe, tmp_path)
    toy.run(recipe, tmp_path)
    whole, stopped = contents(runs[member] / "out"), contents(tmp_path / "out")
    assert set(whole) == set(stopped)
    measured = ("losses.csv", "run.json", "README.md")  # speed and time, which differ
    assert [name for name in whole if whole[name] != stopped[name] and name not in measured] == []
    tables = (pd.read_csv(folder / "out/losses.csv") for folder in (runs[member], tmp_path))
    first, second = (table.drop(columns="tokens_per_second") for table in tables)
    pd.testing.assert_frame_equal(first, second)

    (tmp_path / "out/README.md").unlink()  # stopped before its card
    before = contents(tmp_path / "out")
    assert not pretraining.finished(recipe, tmp_path / "out")
    toy.run(recipe, tmp_path)
    assert contents(tmp_path / "out").items() > before.items()
    assert pretraining.finished(recipe, tmp_path / "out")


def test_a_steady_run_is_lengthened_as_if_it_had_been_long(
    runs: dict[str, Path], recipe: MemberRecipe, tmp_path: Path
) -> None:
    long = replace(recipe, **STEADY)
    toy.run(replace(long, steps=6), tmp_path)
    stopped_at(9, long, tmp_path, save_every=2)
    toy.run(long, tmp_path)
    assert pretraining.finished(long, tmp_path / "out")
    whole, longer = contents(runs["steady"] / "out"), contents(tmp_path / "out")
    for name in whole:
        if name.endswith(".safetensors") or name == "held_out.csv":
            assert whole[name] == longer[name], name
    with pytest.raises(ValueError, match="holds a run with another recipe"):
        toy.run(replace(long, steps=6), tmp_path)


def test_a_gradient_that_is_no_number_is_named_with_its_step(
    recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = objectives.step_losses

    def to_nan(*arguments) -> Iterator:
        for objective, loss, n_tokens in steps(*arguments):
            yield objective, loss * float("nan") if arguments[4] == 7 else loss, n_tokens

    monkeypatch.setattr(objectives, "step_losses", to_nan)
    with pytest.raises(ValueError, match="mini-infoxlm: the gradient is not a number at step 7"):
        toy.run(recipe, tmp_path)
    left = torch.load(tmp_path / "state.pt", weights_only=True)
    assert left["step"] == 5
    assert all(value.isfinite().all() for value in left["model"].values())


def test_another_recipe_vocabulary_or_text_is_refused(recipe: MemberRecipe, tmp_path: Path) -> None:
    short = replace(recipe, steps=3)
    toy.run(short, tmp_path)
    before = contents(tmp_path)
    tokenizer, text, held = toy.prepared(recipe.architecture)
    lines = toy.text()
    lines["ntrex"]["de"]["5"] = "Haus"
    cut = vocabulary.train_bpe({"en": ["other words " * 9, "bread and wine"] * 9}, 280)
    refused = "left by a run with another"
    for changed, made, out, told in (
        (replace(short, seed=2), (tokenizer, text, held), "out", "holds a run with another recipe"),
        (replace(short, seed=2), (tokenizer, text, held), "new", f"{refused} recipe"),
        (short, (cut, text, held), "out", f"{refused} vocabulary"),
        (
            short,
            (tokenizer, PretrainingText.encode(tokenizer, lines), held),
            "out",
            f"{refused} text",
        ),
        (short, (tokenizer, text, held | {"de": held["de"][1:]}), "out", f"{refused} text"),
    ):
        with pytest.raises(ValueError, match=told):
            pretraining.pretrain(changed, made, tmp_path / out, tmp_path / "state.pt")
        assert contents(tmp_path) == before


# --- a full disk, and the command ----------------------------------------------------------------

FULL = Path("/dev/full")


@pytest.fixture
def command(recipe: MemberRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments that train the toy recipe into ``tmp_path / "out"``; no archive is read."""
    monkeypatch.setattr(pretraining, "RECIPES", {recipe.name: recipe})
    monkeypatch.setattr(pretraining, "prepare", lambda made: toy.prepared(made.architecture))
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    return [recipe.name, "--out", str(tmp_path / "out"), "--device", "cpu"]


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("file", ["losses.csv", "README.md"])
def test_a_full_disk_is_said_plainly(
    file: str, command: list[str], recipe: MemberRecipe, tmp_path: Path
) -> None:
    out = tmp_path / "out" / recipe.name
    path = out / file
    path.parent.mkdir(parents=True)
    with store.written_whole(path) as name:  # under which it is written before it is whole
        name.touch()
    path.unlink()
    name.symlink_to(FULL)
    with pytest.raises(SystemExit, match=r"error: .*No space left on device"):
        pretraining.main(command)
    assert not list(tmp_path.rglob(".*"))  # nothing half written
    before = contents(out)
    pretraining.main(command)  # there is space again
    assert pretraining.finished(recipe, out)
    assert contents(out).items() >= {k: v for k, v in before.items() if "step-" in k}.items()


def test_the_command_trains_and_knows_when_it_is_done(
    command: list[str],
    runs: dict[str, Path],
    recipe: MemberRecipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pretraining.main(command)
    out = tmp_path / "out" / recipe.name
    assert toy.same(last(out), last(runs[recipe.name] / "out"))
    before = contents(out)
    monkeypatch.setattr(pretraining, "prepare", None)  # it is not prepared in vain
    pretraining.main(command)
    assert "holds a finished run of this recipe; --out names" in capsys.readouterr().out
    for change in (["--seed", "2"], ["--steps", "6"]):
        with pytest.raises(SystemExit, match=f"error: {out} holds a run with another recipe"):
            pretraining.main([*command, *change])
    assert contents(out) == before
