"""Checkpoints of fairseq become folders with the same states, or are refused.

The table of names is written from fairseq's side, apart from the one in `fairseq_to_hf`.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, XLMRobertaForMaskedLM

import fairseq_to_hf
from fairseq_to_hf import convert_fairseq
from tests import tiny
from tests.models.conftest import SENTENCE, Attack, assert_one_sentence, hidden
from xlx.subjects.identity import checkpoints
from xlx.subjects.loading import load


def fairseq_name(name: str) -> str:
    """Hugging Face's name of a weight in fairseq."""
    parts = name.split(".")
    if parts[:2] == ["roberta", "embeddings"]:
        return {
            "word_embeddings": "sentence_encoder.embed_tokens.weight",
            "position_embeddings": "sentence_encoder.embed_positions.weight",
            "LayerNorm": f"sentence_encoder.emb_layer_norm.{parts[-1]}",
        }[parts[2]]
    if parts[0] == "lm_head":
        return name if parts[1] != "decoder" else "lm_head.weight"
    number, rest = parts[3], ".".join(parts[4:-1])
    rest = {
        "attention.self.query": "self_attn.q_proj",
        "attention.self.key": "self_attn.k_proj",
        "attention.self.value": "self_attn.v_proj",
        "attention.output.dense": "self_attn.out_proj",
        "attention.output.LayerNorm": "self_attn_layer_norm",
        "intermediate.dense": "fc1",
        "output.dense": "fc2",
        "output.LayerNorm": "final_layer_norm",
    }[rest]
    return f"sentence_encoder.layers.{number}.{rest}.{parts[-1]}"


def fairseq_state(model: XLMRobertaForMaskedLM, style: str) -> dict[str, torch.Tensor]:
    """The weights as fairseq has them; `style` is the time: "2019", "2020" or "2021"."""
    state = {}
    for name, weight in model.state_dict().items():
        if "token_type" in name or "position_ids" in name or name == "lm_head.decoder.bias":
            continue
        state[fairseq_name(name)] = weight.clone()
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
    encoder = load(made, device="cpu")
    assert torch.equal(
        hidden(encoder.model, encoder.tokenizer),
        hidden(original.roberta, encoder.tokenizer),
    )
    config = encoder.model.config
    assert (config.num_attention_heads, config.hidden_dropout_prob) == (4, 0.2)
    assert (config.layer_norm_eps, config.max_position_embeddings) == (1e-5, 66)
    assert [item.step for item in checkpoints(str(tmp_path / "made"))] == [10]


@pytest.mark.parametrize("tied", [True, False])
def test_fairseq_language_modelling_head(write, original, tmp_path, tied) -> None:
    def untie(content: dict) -> dict:
        if not tied:
            content["model"]["encoder.lm_head.weight"] += 1.0
        return content

    path, options = write("2021", untie)
    made = convert_fairseq(path, tmp_path / "made", **options)
    model, report = XLMRobertaForMaskedLM.from_pretrained(made, output_loading_info=True)
    assert not any(report[name] for name in ("missing_keys", "unexpected_keys"))
    assert model.config.tie_word_embeddings == tied
    ids = torch.tensor([AutoTokenizer.from_pretrained(made)(SENTENCE)["input_ids"]])
    with torch.no_grad():
        expected = original(ids).logits
        if not tied:
            inner = original.roberta(ids).last_hidden_state
            head = original.lm_head
            inner = head.layer_norm(torch.nn.functional.gelu(head.dense(inner)))
            expected = inner @ (head.decoder.weight + 1.0).T + head.bias
        found = model.eval()(ids).logits
    assert torch.allclose(found, expected, atol=1e-4, rtol=1e-5)


def test_half_precision_fairseq_checkpoint(write, original, tmp_path) -> None:
    def half(content: dict) -> dict:
        return content | {"model": {name: w.half() for name, w in content["model"].items()}}

    path, options = write("2021", half)
    encoder = load(convert_fairseq(path, tmp_path / "made", **options))
    weight = original.roberta.embeddings.word_embeddings.weight
    assert torch.equal(encoder.model.embeddings.word_embeddings.weight, weight.half().float())


def without(name: str):
    return lambda content: (
        content
        | {"model": {key: w for key, w in content["model"].items() if not key.endswith(name)}}
    )


def having(name: str, weight: torch.Tensor | None = None):
    new = torch.zeros(2) if weight is None else weight
    return lambda content: content | {"model": content["model"] | {name: new}}


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
        (without("lm_head.bias"), r"Missing key.*lm_head\.bias"),
        (
            having("encoder.sentence_encoder.layer_norm.weight"),
            r"1 weights that .* has no place for: encoder\.sentence_encoder\.layer_norm\.weight",
        ),
        (having("classification_heads.x.dense.weight"), "classification_heads.x.dense.weight"),
        (having("encoder.sentence_encoder.layers.0.moe.weight"), r"layers\.0\.moe\.weight"),
        (having("decoder.lm_head.bias"), r"weights of lm_head\.bias twice"),
        (
            having("encoder.sentence_encoder.layers.1.fc1.bias"),
            r"size mismatch for roberta.*intermediate\.dense\.bias.*Size\(\[2\]\)",
        ),
        (options_changed(encoder_attention_heads=5), "5 attention heads do not divide the width"),
        (options_changed(encoder_attention_heads=None), "give heads="),
        (options_changed(activation_fn="swish"), "uses the activation 'swish'"),
        (options_changed(max_positions=512), "66 position vectors for 512 positions"),
        (lambda content: {"weights": content["model"]}, 'has no "model" entry'),
        (lambda content: content["model"]["encoder.lm_head.bias"], 'has no "model" entry'),
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
    with pytest.raises(ValueError, match="reading those could run code") as error:
        convert_fairseq(path, tmp_path / "made", **options)
    assert_one_sentence(error)
    assert not touched.exists()
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("keep", [0, 100, 0.5])
def test_torn_fairseq_checkpoint(write, tmp_path, keep) -> None:
    path, options = write()
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match=r"no torch checkpoint, or torn|holds") as error:
        convert_fairseq(path, tmp_path / "made", **options)
    assert_one_sentence(error)
    with pytest.raises(FileNotFoundError, match="there is no fairseq checkpoint"):
        convert_fairseq(tmp_path / "nothing.pt", tmp_path / "made", **options)


def test_conversion_writes_whole_or_not_at_all(write, tmp_path, monkeypatch) -> None:
    path, options = write()
    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            convert_fairseq(path, tmp_path / "made", **options)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.pt", "original"]
    convert_fairseq(path, tmp_path / "made", **options)
    with pytest.raises(FileExistsError, match="choose another folder"):
        convert_fairseq(path, tmp_path / "made", **options)


# Its tokenizer


@pytest.fixture
def dictionary(write, original, tmp_path) -> Path:
    """The dict.txt of the tokenizer's vocabulary."""
    numbers = AutoTokenizer.from_pretrained(tmp_path / "original").get_vocab()
    pieces = sorted(numbers, key=numbers.get)
    assert pieces[:4] == list(fairseq_to_hf.SPECIAL)
    path = tmp_path / "dict.txt"
    path.write_text("".join(f"{piece} 1\n" for piece in pieces[4:]), encoding="utf-8")
    return path


def test_a_dictionary_of_the_same_numbers_is_accepted(write, dictionary, tmp_path) -> None:
    path, options = write()
    convert_fairseq(path, tmp_path / "made", dictionary=dictionary, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "makes a vocabulary of"),
        (lambda lines: [*lines[:3], "word", *lines[4:]], r"line 4: 'word' is not of the form"),
        (lambda lines: [*lines[:3], lines[2], *lines[4:]], r"line 4: the piece .* is there alrea"),
        (lambda lines: lines[::-1], r"gives '.*' the number \d+, .* \d+: they do not belong"),
    ],
)
def test_dictionary_that_does_not_fit(write, dictionary, tmp_path, change, message) -> None:
    path, options = write()
    lines = dictionary.read_text(encoding="utf-8").split("\n")[:-1]
    dictionary.write_text("\n".join(change(lines)), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        convert_fairseq(path, tmp_path / "made", dictionary=dictionary, **options)
    assert not (tmp_path / "made").exists()


def test_dictionary_format(tmp_path) -> None:
    path = tmp_path / "dict.txt"
    path.write_text("a 5\n\u2028 3\n<unk> 2 #fairseq:overwrite\nb 1\n", encoding="utf-8")
    expected = ["<s>", "<pad>", "</s>", "<unk>", "a", "\u2028", "<unk>", "b", "<mask>"]
    assert fairseq_to_hf.read_dictionary(path) == expected


def test_tokenizer_folder_of_another_vocabulary(write, tmp_path) -> None:
    path, _ = write()
    tiny.tokenizer(size=700).save_pretrained(tmp_path / "bigger")
    with pytest.raises(ValueError, match=r"numbers its pieces up to \d+, but the checkpoint"):
        convert_fairseq(path, tmp_path / "made", tokenizer=tmp_path / "bigger")
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json"):
        convert_fairseq(path, tmp_path / "made", tokenizer=tmp_path)
