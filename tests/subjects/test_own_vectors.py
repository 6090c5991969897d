"""`pooling="own"` is what `encode` of sentence-transformers gives, on the folders that it saves.

Each folder is built here, and its vectors are computed here a sentence and a token at a time. The
same folders were given to `encode` of sentence-transformers 6.2: cosines of 1 within 1e-6.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer, T5EncoderModel

from tests import tiny
from tests.subjects.conftest import assert_one_sentence
from xlx.report.inputs import reported_model
from xlx.subjects import loading
from xlx.subjects.states import embed, embed_poolings, states_about

SENTENCES = tiny.SENTENCES
#: Layout → architecture, pooling as its file has it, and what else is declared.
LAYOUTS: dict[str, tuple[str, dict, dict]] = {
    "mean, normalised": ("bert", {"pooling_mode_mean_tokens": True}, {"norm": True}),
    "cls, cut": (
        "bert",
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        {"max_seq_length": 12},
    ),
    "cls, of 5.4": ("xlm-roberta", {"pooling_mode": "cls", "include_prompt": True}, {"norm": True}),
    "model in a folder": (
        "distilbert",
        {"pooling_mode_mean_sqrt_len_tokens": True},
        {"path": "0_Transformer"},
    ),
    "two poolings, dense": (
        "bert",
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"dense": ("Tanh", 16, True)},
    ),
    "max, dense of pickles": (
        "xlm-roberta",
        {"pooling_mode_max_tokens": True},
        {"dense": ("Identity", 24, False), "norm": True},
    ),
    "last, of a decoder": ("llama", {"pooling_mode_lasttoken": True}, {"norm": True}),
    "weighted, prompt not pooled": (
        "gpt2",
        {"pooling_mode_weightedmean_tokens": True, "include_prompt": False},
        {"prompt": "query: "},
    ),
    "lower case": ("bert", {"pooling_mode": "mean"}, {"do_lower_case": True, "prompt": "Search "}),
    "encoder of two": (
        "t5",
        {"pooling_mode_mean_tokens": True},
        {"dense": ("Identity", 32, True), "norm": True},
    ),
    "several, of 5.4": (
        "xlm-roberta",
        {"pooling_mode": ["mean", "max"]},
        {"prompts": {"q": "q: "}},
    ),
    "cls, prompt not pooled": (
        "mistral",
        {"pooling_mode": "cls", "include_prompt": False},
        {"prompt": "passage: ", "max_seq_length": 20},
    ),
}


def build(folder: Path, layout: str) -> Path:
    """A folder as sentence-transformers save it."""
    architecture, pooling, more = LAYOUTS[layout]
    path = more.get("path", "")
    tiny.save(folder / path, architecture)
    new = "pooling_mode" in pooling
    kinds = [
        "Transformer",
        "Pooling",
        *["Dense"] * ("dense" in more),
        *["Normalize"] * ("norm" in more),
    ]
    places = {"Transformer": path} | {kind: f"{i}_{kind}" for i, kind in enumerate(kinds) if i}
    start = {"Pooling": "sentence_transformers.sentence_transformer.modules.pooling"} if new else {}
    base = "sentence_transformers.models"
    write(
        folder / "modules.json",
        [
            {
                "idx": i,
                "name": str(i),
                "path": places[kind],
                "type": f"{start.get(kind, base)}.{kind}",
            }
            for i, kind in enumerate(kinds)
        ],
    )
    size = "embedding_dimension" if new else "word_embedding_dimension"
    write(folder / "1_Pooling" / "config.json", {size: 32} | pooling)
    reads = {key: more[key] for key in ("max_seq_length", "do_lower_case") if key in more}
    write(folder / path / "sentence_bert_config.json", reads)
    prompts = {"q": more["prompt"]} if "prompt" in more else more.get("prompts", {})
    default = "q" if "prompt" in more else None
    said = {"prompts": prompts, "default_prompt_name": default}
    write(folder / "config_sentence_transformers.json", said)
    if "dense" in more:
        dense(
            folder / places["Dense"], 32 * (1 + (layout == "two poolings, dense")), *more["dense"]
        )
    return folder


def write(file: Path, content: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def dense(folder: Path, width: int, activation: str, out: int, bias: bool) -> None:
    where = "linear" if activation == "Identity" else "activation"
    write(
        folder / "config.json",
        {
            "in_features": width,
            "out_features": out,
            "bias": bias,
            "activation_function": f"torch.nn.modules.{where}.{activation}",
        },
    )
    random = torch.Generator().manual_seed(1)
    weights = {"linear.weight": torch.randn(out, width, generator=random) / width**0.5}
    if bias:
        weights["linear.bias"] = torch.randn(out, generator=random)
        save_file(weights, folder / "model.safetensors")
    else:
        torch.save(weights, folder / "pytorch_model.bin")


def literal(folder: Path, layout: str) -> np.ndarray:
    """The vectors ``(n_sentences, width)``, a sentence and a token at a time."""
    architecture, pooling, more = LAYOUTS[layout]
    model_class = T5EncoderModel if architecture == "t5" else AutoModel
    model = model_class.from_pretrained(folder / more.get("path", ""), dtype=torch.float32).eval()
    words = AutoTokenizer.from_pretrained(folder / more.get("path", ""))
    prompt, rows = more.get("prompt", ""), []
    for sentence in SENTENCES:
        text = prompt + sentence
        text = text.lower() if "do_lower_case" in more else text
        ids = words(text, truncation=True, max_length=more.get("max_seq_length", 64))["input_ids"]
        with torch.no_grad():
            tokens = [*model(torch.tensor([ids])).last_hidden_state[0].double().numpy()]
        first = 0
        if not pooling.get("include_prompt", True):
            of_prompt = words(prompt)["input_ids"]
            first = len(of_prompt) - (of_prompt[-1] in (0, 2))
        row = np.concatenate([POOLED[name](tokens, first) for name in modes(pooling)])
        if "dense" in more:
            at = folder / "2_Dense"
            kept = at / "pytorch_model.bin"
            held = torch.load(kept) if kept.exists() else load_file(at / "model.safetensors")
            row = held["linear.weight"].double().numpy() @ row
            row = row + (held["linear.bias"].double().numpy() if "linear.bias" in held else 0)
            row = np.tanh(row) if more["dense"][0] == "Tanh" else row
        rows.append(row / np.linalg.norm(row) if more.get("norm") else row)
    return np.array(rows)


def modes(pooling: dict[str, Any]) -> list[str]:
    said = pooling.get("pooling_mode") or [
        k[13:] for k, v in pooling.items() if v is True and k.startswith("pooling_mode_")
    ]
    return [said] if isinstance(said, str) else said


def weighted(tokens: list[np.ndarray], first: int) -> np.ndarray:
    places = range(first + 1, len(tokens) + 1)
    return sum(place * tokens[place - 1] for place in places) / sum(places)


POOLED: dict[str, Callable[[list[np.ndarray], int], np.ndarray]] = {
    "cls": lambda tokens, first: tokens[first],
    "mean": lambda tokens, first: sum(tokens[first:]) / len(tokens[first:]),
    "mean_sqrt_len_tokens": lambda tokens, first: sum(tokens) / len(tokens) ** 0.5,
    "max": lambda tokens, first: np.max(tokens, axis=0),
    "lasttoken": lambda tokens, first: tokens[-1],
    "weightedmean_tokens": weighted,
}
POOLED |= {"cls_token": POOLED["cls"], "mean_tokens": POOLED["mean"], "max_tokens": POOLED["max"]}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_own_vectors_are_those_of_encode(layout: str, tmp_path: Path) -> None:
    folder = build(tmp_path / "model", layout)
    expected = literal(folder, layout)
    encoder = loading.load(folder, device="cpu")
    found = embed(encoder, SENTENCES, pooling="own").states[-1]
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    model = reported_model(str(folder))
    assert model.pooling == "own"
    assert model.vector.startswith("its own, as encode of sentence-transformers makes it (")


BEYOND = [
    {"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "../other", "type": "sentence_transformers.models.Pooling"},
]
CUSTOM = [{"path": "", "type": "own.Transformer"}, {"path": "1_Pooling", "type": "own.Pooling"}]
SPARSE = {"model_type": "SparseEncoder"}
OWN_CODE = {"in_features": 64, "out_features": 16, "activation_function": "own.Act"}


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("modules.json", CUSTOM, "the module own.Transformer in 1. place"),
        ("modules.json", BEYOND[:1], "the module None in 2. place"),
        ("modules.json", BEYOND, "the module sentence_transformers.models.Pooling in 2. place"),
        ("1_Pooling/config.json", {"pooling_mode": "attention"}, "the pooling attention"),
        ("1_Pooling/config.json", {"pooling_mode_median": True}, "pooling_mode_median = True"),
        ("sentence_bert_config.json", {"model_args": {"a": 1}}, "model_args = {'a': 1} of"),
        ("config_sentence_transformers.json", SPARSE, "model_type = 'SparseEncoder'"),
        ("config_sentence_transformers.json", {"default_prompt_name": "q"}, "prompt 'q', which"),
        ("2_Dense/config.json", OWN_CODE, "the activation own.Act of Dense"),
    ],
)
def test_what_is_not_supported_is_named(
    tmp_path: Path, file: str, content: object, named: str
) -> None:
    folder = build(tmp_path / "model", "two poolings, dense")
    write(folder / file, content)
    encoder = loading.load(folder)
    with pytest.raises(ValueError, match=re.escape(named)) as error:
        embed(encoder, SENTENCES, pooling="own")
    assert_one_sentence(error)
    model = reported_model(str(folder))
    assert model.pooling == "mean"
    assert named in model.vector
    assert embed(encoder, SENTENCES).states.shape == (3, len(SENTENCES), 32)


def test_a_decoder_behind_an_encoder_and_no_declaration_are_named(tmp_path: Path) -> None:
    both = build(tmp_path / "bart", "encoder of two")
    tiny.save(both, "bart")
    for folder, named in ((both, "the decoder of 'bart'"), (tiny.save(tmp_path / "b"), "nothing")):
        with pytest.raises(ValueError, match=named):
            embed(loading.load(folder), SENTENCES, pooling="own")
    write(folder / "1_Pooling" / "config.json", {"pooling_mode_max_tokens": True})  # and no list
    assert reported_model(str(folder)).vector.endswith("names the pooling max, not supported here")


def test_own_vectors_are_found_again_and_a_twin_has_its_own(tmp_path: Path) -> None:
    folder = build(tmp_path / "model", "two poolings, dense")
    about = states_about(folder, pooling="own")
    first = about["own"]
    assert states_about(loading.load(folder), pooling="own") == about
    twin = states_about(f"{folder}@untrained", pooling="own")["own"]
    dense(folder / "2_Dense", 64, "Tanh", 8, True)
    assert len({first, twin, states_about(folder, pooling="own")["own"]}) == 3
    read = [
        embed(loading.load(f"{folder}@untrained-{i}"), SENTENCES, pooling="own").states
        for i in (1, 1, 2)
    ]
    assert read[0].shape == (3, len(SENTENCES), 8)
    assert (read[0] == read[1]).all()
    assert not np.allclose(read[0], read[2])


def test_read_with_other_poolings_each_is_as_alone(tmp_path: Path) -> None:
    encoder = loading.load(build(tmp_path / "model", "lower case"), device="cpu")
    asked = ("own", "mean", "cls")
    together = embed_poolings(encoder, SENTENCES, asked)
    assert [*together] == [*asked]
    for pooling in asked:
        alone = embed(encoder, SENTENCES, pooling=pooling).states
        np.testing.assert_array_equal(together[pooling].states, alone)
