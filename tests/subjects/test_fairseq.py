"""Checkpoints of fairseq become folders with the same states, or are refused.

The table of names is written from fairseq's side, apart from the one in `fairseq_to_hf`.
"""

import argparse
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, XLMRobertaForMaskedLM

import fairseq_to_hf
from fairseq_to_hf import convert_fairseq, convert_series
from tests.subjects.conftest import SENTENCE, Attack, assert_one_sentence, hidden
from xlx.experiment.abx_scores import before_training
from xlx.subjects.identity import checkpoints
from xlx.subjects.loading import load

IN_FAIRSEQ = {
    "roberta.embeddings.word_embeddings": "sentence_encoder.embed_tokens",
    "roberta.embeddings.position_embeddings": "sentence_encoder.embed_positions",
    "roberta.embeddings.LayerNorm": "sentence_encoder.emb_layer_norm",
    "roberta.encoder.layer": "sentence_encoder.layers",
    "lm_head.decoder": "lm_head",
    "attention.self.query": "self_attn.q_proj",
    "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj",
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "self_attn_layer_norm",
    "intermediate.dense": "fc1",
    "output.dense": "fc2",
    "output.LayerNorm": "final_layer_norm",
}


def fairseq_state(model: XLMRobertaForMaskedLM, style: str) -> dict[str, torch.Tensor]:
    """The weights as fairseq has them; `style` is the time: "2019", "2020" or "2021"."""
    state = {}
    for name, weight in model.state_dict().items():
        if "token_type" in name or "position_ids" in name or name == "lm_head.decoder.bias":
            continue
        for ours, theirs in IN_FAIRSEQ.items():
            name = name.replace(ours, theirs)
        state[name] = weight.clone()
    if style == "2019":
        for i in range(model.config.num_hidden_layers):
            for kind in ("weight", "bias"):
                stem = f"sentence_encoder.layers.{i}.self_attn"
                parts = [state.pop(f"{stem}.{role}_proj.{kind}") for role in "qkv"]
                state[f"{stem}.in_proj_{kind}"] = torch.cat(parts)
    if style == "2021":
        state = {k.replace("emb_layer_norm", "layernorm_embedding"): v for k, v in state.items()}
        state["sentence_encoder.version"] = torch.tensor([3.0])
    prefix = "encoder" if style == "2021" else "decoder"
    return {f"{prefix}.{name}": weight for name, weight in state.items()}


OPTIONS = {
    "arch": "roberta_base",
    "encoder_attention_heads": 4,
    "max_positions": 64,
    "activation_fn": "gelu",
    "dropout": 0.2,
}


def checkpoint_content(state: dict[str, torch.Tensor], style: str) -> dict:
    """A checkpoint with what training leaves in it."""
    namespace = argparse.Namespace(**OPTIONS, lr=[0.1])
    content = {
        "model": state,
        "optimizer_history": [{"num_updates": 10, "criterion_name": "MaskedLmLoss"}],
        "extra_state": {"epoch": 1, "best": np.float64(2.5), "val_loss": None},
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(2)}}},
    }
    if style == "2021":
        return content | {"args": None, "cfg": {"_name": None, "model": namespace}}
    return content | {"args": namespace}


@pytest.fixture
def original(folders, tmp_path) -> XLMRobertaForMaskedLM:
    folder = shutil.copytree(folders["xlm-roberta"], tmp_path / "original")
    model = XLMRobertaForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # zeros at first: two of them would be the same
            parameter.data.normal_(generator=torch.Generator().manual_seed(len(name)))
    model.roberta.embeddings.token_type_embeddings.weight.data.zero_()
    return model


@pytest.fixture
def write(tmp_path, original):
    """Write a checkpoint and return (checkpoint, options for the conversion)."""

    def written(style: str = "2021", change=lambda content: content) -> tuple[Path, dict]:
        path = tmp_path / "checkpoint.pt"
        torch.save(change(checkpoint_content(fairseq_state(original, style), style)), path)
        return path, {"tokenizer": tmp_path / "original"}

    return written


@pytest.mark.parametrize("style", ["2019", "2020", "2021"])
def test_fairseq_checkpoint_gives_the_same_states(write, original, tmp_path, style) -> None:
    path, options = write(style)
    if style == "2021":  # heads may be given
        path, options = write(style, options_changed(encoder_attention_heads=None))
        options |= {"heads": 4}
    made = convert_fairseq(path, tmp_path / "made" / "step-000010", **options)
    with pytest.raises(FileExistsError, match="choose another folder"):
        convert_fairseq(path, made, **options)
    encoder = load(made, device="cpu")
    assert torch.equal(
        hidden(encoder.model, encoder.tokenizer), hidden(original.roberta, encoder.tokenizer)
    )
    config = encoder.model.config
    assert (config.num_attention_heads, config.hidden_dropout_prob) == (4, 0.2)
    assert (config.layer_norm_eps, config.max_position_embeddings) == (1e-5, 66)
    assert [item.step for item in checkpoints(str(tmp_path / "made"))] == [10]


def dictionary(folder: Path) -> str:
    """fairseq's dict.txt for the tokenizer of a folder."""
    numbers = AutoTokenizer.from_pretrained(folder).get_vocab()
    words = sorted((number, word) for word, number in numbers.items() if number > 3)
    return "".join(f"{word} {999}\n" for _, word in words)


@pytest.fixture
def training(write, tmp_path) -> Path:
    """A folder as fairseq leaves it: two checkpoints, the dictionary, and the tokenizer's file."""
    path, options = write("2021")
    folder = tmp_path / "training"
    folder.mkdir()
    for name in ("checkpoint_1_5000.pt", "checkpoint_2_10000.pt", "checkpoint_last.pt"):
        shutil.copyfile(path, folder / name)
    for file in options["tokenizer"].glob("tokenizer*.json"):
        shutil.copyfile(file, folder / file.name)
    (folder / "dict.txt").write_text(dictionary(options["tokenizer"]), encoding="utf-8")
    return folder


def test_a_series_is_converted_where_it_stopped(training, tmp_path) -> None:
    series = tmp_path / "series"
    said = list(convert_series(training, series, steps=[5000]))
    assert said[0].startswith("1 of 1 checkpoints to convert")
    assert fairseq_to_hf.main([str(training), "--to", str(series)]) is None
    assert [item.step for item in checkpoints(str(series))] == [5000, 10000]
    assert next(convert_series(training, series)).startswith("0 of 2 checkpoints")
    twin = before_training(str(series))
    assert twin == f"{series}@untrained"  # nobody takes step 5,000 for an untrained model
    weights = [next(load(name).model.parameters()) for name in (twin, str(series))]
    assert not torch.equal(*weights)


@pytest.mark.parametrize(
    ("fault", "options", "message"),
    [
        (lambda of: (of / "dict.txt").unlink(), [], r"there is no .*dict\.txt: dict"),
        (lambda of: (of / "tokenizer.json").unlink(), [], r"there is no .*tokenizer\.json: dict"),
        (lambda of: (of / "dict.txt").write_text("zzz 9\n"), [], "has 'zzz' as number 4"),
        (lambda of: None, ["--steps", "7"], "no checkpoint of step 7: it has 5000, 10000"),
        (lambda of: [path.unlink() for path in of.glob("*.pt")], [], "it has none"),
        (lambda of: (of / "checkpoint_1_5000.pt").write_bytes(b"PK"), [], "is torn, no torch"),
    ],
)
def test_a_series_that_cannot_be_converted(training, tmp_path, fault, options, message) -> None:
    fault(training)
    said = fairseq_to_hf.main([str(training), "--to", str(tmp_path / "series"), *options])
    assert re.search(message, said)
    assert "\n" not in said
    assert not (tmp_path / "series").exists()


def test_a_full_disk_is_named_before_and_while(training, tmp_path, monkeypatch) -> None:
    arguments = [str(training), "--to", str(tmp_path / "series")]
    with monkeypatch.context() as patch:
        patch.setattr(fairseq_to_hf, "free_disk", lambda _: 10)
        assert "is too full: make room" in fairseq_to_hf.main(arguments)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fairseq_to_hf, "convert_fairseq", full)
    assert fairseq_to_hf.main(arguments).startswith("the disk is full")


@pytest.mark.parametrize("shift", [0.0, 1.0])  # 1: the output matrix is not the embeddings
def test_fairseq_language_modelling_head(write, original, tmp_path, shift) -> None:
    def untie(content: dict) -> dict:
        content["model"]["encoder.lm_head.weight"] += shift
        return content

    path, options = write("2021", untie)
    made = convert_fairseq(path, tmp_path / "made", **options)
    model, report = XLMRobertaForMaskedLM.from_pretrained(made, output_loading_info=True)
    assert not any(report[name] for name in ("missing_keys", "unexpected_keys"))
    ids = torch.tensor([AutoTokenizer.from_pretrained(made)(SENTENCE)["input_ids"]])
    with torch.no_grad():
        head, inner = original.lm_head, original.roberta(ids).last_hidden_state
        inner = head.layer_norm(torch.nn.functional.gelu(head.dense(inner)))
        expected = inner @ (head.decoder.weight + shift).T + head.bias
        assert torch.allclose(model.eval()(ids).logits, expected, atol=1e-4, rtol=1e-5)


def without(name: str):
    return lambda content: (
        content
        | {"model": {key: w for key, w in content["model"].items() if not key.endswith(name)}}
    )


def options_changed(**changes):
    def change(content: dict) -> dict:
        content["cfg"]["model"] = argparse.Namespace(**(OPTIONS | changes))
        return content

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("layers.1.fc2.weight"), r"Missing key.*layer\.1\.output\.dense\.weight"),
        (without("embed_tokens.weight"), "has no roberta.embeddings.word_embeddings.weight"),
        (options_changed(encoder_attention_heads=None), "give heads="),
        (options_changed(activation_fn="maxout"), "maxout"),
        (lambda content: {"weights": content["model"]}, 'has no "model" entry'),
    ],
)
def test_fairseq_checkpoint_that_does_not_fit(write, tmp_path, change, message) -> None:
    path, options = write("2021", change)
    with pytest.raises(ValueError, match=message) as error:
        convert_fairseq(path, tmp_path / "made", **options)
    assert_one_sentence(error)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.pt", "original"]


def test_fairseq_checkpoint_with_other_objects_is_refused(write, tmp_path) -> None:
    touched = tmp_path / "touched"
    path, options = write("2021", lambda content: content | {"task_state": Attack(touched)})
    with pytest.raises(ValueError, match="reading that could run code") as error:
        convert_fairseq(path, tmp_path / "made", **options)
    assert_one_sentence(error)
    assert not touched.exists()
    assert not (tmp_path / "made").exists()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is torn, no torch checkpoint, or holds more"):
        convert_fairseq(path, tmp_path / "made", **options)


def test_a_larger_vocabulary_is_refused(write, tmp_path) -> None:
    path, options = write()
    words = AutoTokenizer.from_pretrained(tmp_path / "original")
    words.add_tokens(["one-more", "and-more"])
    words.save_pretrained(tmp_path / "original")
    with pytest.raises(ValueError, match="pieces, the checkpoint embeds"):
        convert_fairseq(path, tmp_path / "made", **options)
