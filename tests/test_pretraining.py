"""Pretraining: batches, losses, and a run that can be stopped; on a handful of words."""

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from xlx import corpora, paths, pretraining
from xlx.pretraining import RECIPES, Batches, PretrainingText, Recipe

WORDS = {
    "de": ["Haus", "Baum", "Wasser", "Sonne", "Hund", "Katze", "Brot", "Milch", "Stein", "Wind"],
    "en": ["house", "tree", "water", "sun", "dog", "cat", "bread", "milk", "stone", "wind"],
    "ja": list("家木水日犬猫麦乳石風"),
}


def toy_text(n_lines: int = 60) -> dict[str, dict[str, dict[str, str]]]:
    rng = np.random.default_rng(0)
    text: dict[str, dict[str, dict[str, str]]] = {"ntrex": {}, "common_voice": {}}
    drawn = rng.integers(10, size=(2, n_lines, 6))
    for code, words in WORDS.items():
        space = "" if code == "ja" else " "
        for source, rows in zip(text, drawn, strict=True):
            lines = [space.join(words[i] for i in row) for row in rows]
            text[source][code] = {str(number): line for number, line in enumerate(lines)}
    del text["ntrex"]["ja"]["3"]  # a line without a translation
    return text


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return replace(
        RECIPES["mini-infoxlm"], name="toy", vocabulary=400, layers=2, hidden_size=16, heads=2,
        intermediate_size=32, max_length=32, block_lengths=(8, 16), contrast_pairs=8,
        contrast_layer=1, contrast_length=16, steps=12, first_checkpoint=3, tokens_per_step=128,
        learning_rate=1e-2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def prepared(recipe: Recipe):
    text = toy_text()
    lines = {
        code: [line for source in text.values() for line in source[code].values()] for code in WORDS
    }
    tokenizer = pretraining.train_vocabulary(lines, recipe.vocabulary)
    return tokenizer, PretrainingText.encode(tokenizer, text, progress=False)


def test_the_vocabulary_writes_everything_back(prepared) -> None:
    tokenizer, _ = prepared
    for line in ("Haus Baum", "dog, cat!", "犬猫 2024", "never seen: Ω ☃ 😀"):
        encoded = tokenizer.encode(line)
        assert encoded.tokens[0] == "<s>"
        assert encoded.tokens[-1] == "</s>"
        assert "<unk>" not in encoded.tokens
        assert tokenizer.decode(encoded.ids) == line
    assert tokenizer.token_to_id("<pad>") == 1
    pair = tokenizer.encode("dog", "cat").tokens
    assert pair.count("</s>") == 3  # <s> a </s> </s> b </s>


def test_the_vocabulary_comes_out_the_same_among_equally_frequent_characters() -> None:
    rare = [chr(code) for code in range(0x4E00, 0x4E00 + 300)]  # each once: who is in is a tie
    lines = {"en": ["tree house " * 20] * 50, "zh": rare}
    first, second = (pretraining.train_vocabulary(lines, 400).to_str() for _ in range(2))
    assert first == second
    assert 0 < sum(character in first for character in rare) < 300


def test_language_shares_follow_the_exponent(prepared) -> None:
    _, text = prepared
    counts = np.array([text.n_tokens(code) for code in sorted(WORDS)], dtype=float)
    np.testing.assert_allclose(text.language_shares(1.0), counts / counts.sum())
    np.testing.assert_allclose(text.language_shares(0.0), 1 / 3)
    np.testing.assert_allclose(text.language_shares(0.3), counts**0.3 / (counts**0.3).sum())


def test_masking_is_80_10_10_of_the_share_and_never_special(recipe: Recipe) -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(4, 399, size=(400, 200))
    ids[:, 0] = pretraining.BOS
    masked, labels = pretraining.mask(ids, rng, share=0.15, vocabulary=400)
    chosen = labels != pretraining.NO_LABEL
    assert not chosen[:, 0].any()
    assert chosen[:, 1:].mean() == pytest.approx(0.15, abs=0.005)
    assert np.array_equal(labels[chosen], ids[chosen])
    assert np.array_equal(masked[~chosen], ids[~chosen])
    assert (masked[chosen] == 399).mean() == pytest.approx(0.8, abs=0.01)
    assert (masked[chosen] == ids[chosen]).mean() == pytest.approx(0.1, abs=0.01)
    assert masked.max() <= 399
    _one, label = pretraining.mask(np.array([[0, 7, 2]]), rng, share=0.0, vocabulary=400)
    assert (label != pretraining.NO_LABEL).sum() == 1  # never a batch without a loss


def test_batches_hold_what_they_should_and_repeat(prepared, recipe: Recipe) -> None:
    tokenizer, text = prepared
    batches = Batches(text, recipe)
    mlm = batches.mlm(np.random.default_rng(3), 128)
    assert mlm.ids.numel() == 128
    assert mlm.real.all()
    assert (mlm.ids[:, 0] == pretraining.BOS).all()
    again = batches.mlm(np.random.default_rng(3), 128)
    assert torch.equal(mlm.ids, again.ids)
    assert not torch.equal(mlm.ids, batches.mlm(np.random.default_rng(4), 128).ids)

    pairs = batches.contrast(np.random.default_rng(3))
    assert len(pairs.ids) == 2 * recipe.contrast_pairs
    translations = {
        frozenset(tokenizer.normalizer.normalize_str(toy["ntrex"][code][key]) for code in group)
        for toy in [toy_text()]
        for key in toy["ntrex"]["de"]
        for group in (("de", "en"), ("de", "ja"), ("en", "ja"))
        if all(key in toy["ntrex"][code] for code in group)
    }
    for first, second in pairs.ids.unflatten(0, (-1, 2)):
        texts = [tokenizer.decode(row[row != pretraining.PAD].tolist()) for row in (first, second)]
        assert frozenset(map(tokenizer.normalizer.normalize_str, texts)) in translations

    tlm = batches.tlm(np.random.default_rng(3), 128)
    assert tlm.ids.shape[1] <= recipe.max_length
    assert ((tlm.ids == pretraining.EOS).sum(dim=1) == 3).all()
    assert (tlm.ids[~tlm.real] == pretraining.PAD).all()
    assert (tlm.labels[~tlm.real] == pretraining.NO_LABEL).all()


def test_losses_against_their_definitions(prepared, recipe: Recipe) -> None:
    _, text = prepared
    model = pretraining.untrained(recipe).eval()
    batch = Batches(text, recipe).tlm(np.random.default_rng(0), 100)
    with torch.no_grad():
        logits = model(batch.ids, attention_mask=batch.real).logits
        expected = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), ignore_index=pretraining.NO_LABEL
        )
        assert float(pretraining.masked_loss(model, batch)) == pytest.approx(float(expected), 1e-4)

        pairs = Batches(text, recipe).contrast(np.random.default_rng(0))
        trunk = pretraining.lower_layers(model, 1)
        states = model.roberta(
            pairs.ids, attention_mask=pairs.real, output_hidden_states=True
        ).hidden_states[1]
        pooled = []
        for row, ids in zip(states, pairs.ids, strict=True):
            inner = [
                state for state, i in zip(row, ids.tolist(), strict=True) if i not in (0, 1, 2)
            ]
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
        found = pretraining.contrastive_loss(trunk, pairs, 0.1)
        assert float(found) == pytest.approx(total / (2 * n), 1e-4)


def test_the_schedules(recipe: Recipe) -> None:
    assert RECIPES["mini-xlmr"].checkpoint_steps() == [0, 125, 250, 500, 1000, 2000, 4000, 8000]
    rates = [recipe.learning_rate_at(step) for step in range(1, recipe.steps + 1)]
    assert max(rates) == recipe.learning_rate
    assert rates[-1] == pytest.approx(recipe.learning_rate / round(0.5 * recipe.steps))
    assert rates == sorted(rates[: rates.index(max(rates))]) + sorted(
        rates[rates.index(max(rates)) :], reverse=True
    )


def test_both_series_start_from_the_same_weights() -> None:
    first, second = (pretraining.untrained(RECIPES[name]).state_dict() for name in RECIPES)
    assert all(torch.equal(first[key], second[key]) for key in first)
    torch.manual_seed(3)  # nothing outside the recipe decides them
    third = pretraining.untrained(RECIPES["mini-xlmr"]).state_dict()
    assert all(torch.equal(first[key], third[key]) for key in first)


def run(recipe: Recipe, prepared, folder: Path) -> None:
    pretraining.pretrain(
        recipe, *prepared, folder / "out", folder / "state.pt", save_every=5, log_every=5,
        progress=False,
    )  # fmt: skip


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_a_stopped_run_goes_on_as_if_it_had_not_been(
    prepared, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(recipe, prepared, tmp_path / "whole")
    steps = pretraining.step_losses

    def stop_at_8(*arguments):
        if arguments[4] == 8:
            raise KeyboardInterrupt
        yield from steps(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(pretraining, "step_losses", stop_at_8)
        with pytest.raises(KeyboardInterrupt):
            run(recipe, prepared, tmp_path / "stopped")
    run(recipe, prepared, tmp_path / "stopped")
    names = sorted(path.name for path in (tmp_path / "whole/out").iterdir())
    assert names == ["losses.csv", "recipe.json", *(f"step-{s:06d}" for s in (0, 3, 6, 12))]
    assert sorted(path.name for path in (tmp_path / "stopped/out").iterdir()) == names
    for step in ("step-000006", "step-000012"):
        one, other = (weights(tmp_path / which / "out" / step) for which in ("whole", "stopped"))
        assert all(torch.equal(one[key], other[key]) for key in one)
    tables = [
        list(csv.DictReader((tmp_path / which / "out/losses.csv").open()))
        for which in ("whole", "stopped")
    ]
    for one, other in zip(*tables, strict=True):
        assert {**one, "tokens_per_second": 0} == {**other, "tokens_per_second": 0}
    losses = [float(row["loss"]) for row in tables[0] if row["objective"] == "mlm"]
    assert losses[-1] < losses[0] - 0.3  # it learns
    with pytest.raises(ValueError, match="another recipe"):
        run(replace(recipe, seed=2), prepared, tmp_path / "stopped")
    other = pretraining.train_vocabulary({"en": ["other words"]}, recipe.vocabulary)
    with pytest.raises(ValueError, match="another vocabulary"):
        run(recipe, (other, prepared[1]), tmp_path / "stopped")


def test_a_full_disk_leaves_the_last_whole_state(
    prepared, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(replace(recipe, steps=3), prepared, tmp_path)
    before = (tmp_path / "state.pt").read_bytes()

    def full(_: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="No space left"):
        pretraining.pretrain(
            replace(recipe, steps=3), *prepared, tmp_path / "out", tmp_path / "other.pt",
            progress=False,
        )  # fmt: skip
    assert (tmp_path / "state.pt").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "out", "state.pt"]
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_a_checkpoint_is_an_ordinary_folder(prepared, recipe: Recipe, tmp_path: Path) -> None:
    run(replace(recipe, steps=3), prepared, tmp_path)
    folder = tmp_path / "out/step-000003"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32)
    encoded = tokenizer(["dog cat", "家"], padding=True, return_tensors="pt")
    assert encoded["input_ids"][0, 0] == 0
    assert model(**encoded).last_hidden_state.shape[-1] == recipe.hidden_size
    assert {value.dtype for value in weights(folder).values()} == {torch.float16}


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.test_pretraining import *
recipe = RECIPES["mini-xlmr"]
recipe = replace(recipe, name="killed", vocabulary=400, layers=2, hidden_size=16, heads=2,
    intermediate_size=32, max_length=32, block_lengths=(8, 16), steps=100_000, first_checkpoint=1,
    tokens_per_step=128)
text = toy_text()
lines = {{c: [l for s in text.values() for l in s[c].values()] for c in WORDS}}
tokenizer = pretraining.train_vocabulary(lines, 400)
prepared = tokenizer, PretrainingText.encode(tokenizer, text, progress=False)
pretraining.pretrain(recipe, *prepared, Path(sys.argv[1]) / "out", Path(sys.argv[1]) / "state.pt",
    save_every=1, log_every=1, progress=False)
"""


def test_a_killed_run_leaves_nothing_half_written(tmp_path: Path) -> None:
    script = SCRIPT.format(root=str(paths.ROOT))
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    deadline = time.monotonic() + 180
    while not (tmp_path / "out/step-000008").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    torch.load(tmp_path / "state.pt", weights_only=True)
    json.loads((tmp_path / "out/recipe.json").read_text())
    finished = sorted((tmp_path / "out").glob("step-*"))
    assert len(finished) >= 5
    for folder in finished:
        assert weights(folder)
        AutoTokenizer.from_pretrained(folder)
    assert os.listdir(tmp_path)


# --- what the repository ships
# -----------------------------------------------------------------------


def test_held_out_books_and_evaluation_text_are_not_in_the_pretraining_text() -> None:
    bible = pretraining.read_source("bible_nt")
    assert len(bible) == 21
    for language, verses in bible.items():
        books = {key.split(".")[0] for key in verses}
        assert not books & set(pretraining.HELD_OUT_BOOKS), language
        assert {"Matt", "Rom", "Rev"} <= books, language
    corpus = corpora.load("wmt24pp", drop_duplicates=True)
    evaluated = {
        "".join(filter(str.isalnum, sentence)).casefold()
        for sentences in corpus.sentences.values()
        for sentence in sentences
    }
    evaluated = {text for text in evaluated if len(text) >= 12}
    assert len(evaluated) > 30_000
    for source in pretraining.SOURCES:
        for language, lines in pretraining.read_source(source).items():
            seen = {"".join(filter(str.isalnum, line)).casefold() for line in lines.values()}
            assert not seen & evaluated, (source, language)


@pytest.mark.parametrize("name", list(RECIPES))
def test_the_shipped_series_are_what_the_recipe_says(name: str) -> None:
    folder = paths.MODELS / name
    recipe = RECIPES[name]
    described = json.loads((folder / "recipe.json").read_text("utf-8"))
    assert described == json.loads(json.dumps(recipe.__dict__))
    steps = sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))
    assert steps == recipe.checkpoint_steps()
    assert len(steps) >= 8
    rows = list(csv.DictReader((folder / "losses.csv").open(encoding="utf-8")))
    assert {row["objective"] for row in rows} == set(recipe.objectives)
    assert int(rows[-1]["step"]) == recipe.steps
    for objective in recipe.objectives:
        losses = [float(row["loss"]) for row in rows if row["objective"] == objective]
        assert losses[-1] < losses[0] - 1
    start = weights(folder / "step-000000")
    fresh = pretraining.untrained(recipe).state_dict()
    for key, value in start.items():
        torch.testing.assert_close(value.float(), fresh[key], atol=1e-4, rtol=1e-3)


def test_the_shipped_models_weigh_what_is_promised() -> None:
    files = [path for path in paths.MODELS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 60e6
    text = [path for path in (paths.DATA / "pretraining").iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in text) < 25e6


def test_missing_text_and_a_finished_run_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FileNotFoundError, match=r"tatoeba\.tar\.xz is not in"):
        pretraining.read_source("tatoeba", tmp_path)
    pretraining.main(["mini-xlmr"])
    assert "mini-xlmr holds a finished run of this recipe" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        pretraining.main(["mini-xlmr", "--seed", "2"])
    assert "mini-xlmr holds a run with another recipe: move it away" in str(stopped.value)
    with pytest.raises(SystemExit):
        pretraining.main(["mini-nothing"])
    assert "mini-infoxlm" in capsys.readouterr().err
