"""From what a package carries to an ordinary model folder of `transformers`.

Three converters, by the name that ``models.tsv`` gives: ``e5s1`` (a file of `e5s1`), ``gguf`` (a
quantised file that the readers of `transformers` and ``gguf`` know), ``folder`` (a folder that is
one already, of which the files that make a model are taken). Configurations and tokenizers are
written here key by key, so that another version of a library leaves the folder's hash as it is.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import e5s1
import numpy as np

#: What a tokenizer does with text before pieces are looked up (`Nmt` and NFKC are what the models
#: were trained with; of all characters that NFKC changes, they keep the full-width tilde alone).
_TILDE, _PRIVATE = "\uff5e", "\ue000"
_NORMALIZERS = [
    {"type": "Nmt"},
    {"type": "Replace", "pattern": {"String": _TILDE}, "content": _PRIVATE},
    {"type": "NFKC"},
    {"type": "Replace", "pattern": {"String": _PRIVATE}, "content": _TILDE},
]
#: Positions of the pooling and the norm that a folder of sentence-transformers names.
_MODULES = [
    ("0", "", "sentence_transformers.models.Transformer"),
    ("1", "1_Pooling", "sentence_transformers.models.Pooling"),
    ("2", "2_Normalize", "sentence_transformers.models.Normalize"),
]


def write_json(path: Path, content: Any) -> None:
    """A JSON file that is written in one way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def from_e5s1(file: Path, folder: Path) -> None:
    """A file of the format `e5s1` as a `BertModel` without pooler, in float32.

    The folder is one of sentence-transformers, too: mean pooling, then length 1. Raises
    `e5s1.FormatError`.
    """
    packed = e5s1.read(file.read_bytes())
    _save_weights(packed.tensors, folder)
    write_json(folder / "config.json", _bert_config(packed))
    _write_unigram(packed, folder)
    _write_modules(packed.sizes, folder)


def _save_weights(tensors: Mapping[str, np.ndarray], folder: Path) -> None:
    from safetensors.numpy import save_file

    whole = {name: np.ascontiguousarray(tensor) for name, tensor in sorted(tensors.items())}
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})


def _bert_config(packed: e5s1.Packed) -> dict[str, Any]:
    sizes = packed.sizes
    return {
        "architectures": ["BertModel"],
        "attention_probs_dropout_prob": 0.1,
        "dtype": "float32",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": sizes["width"],
        "initializer_range": 0.02,
        "intermediate_size": sizes["inner"],
        "layer_norm_eps": float(f"{packed.epsilon:.6g}"),
        "max_position_embeddings": sizes["positions"],
        "model_type": "bert",
        "num_attention_heads": sizes["heads"],
        "num_hidden_layers": sizes["layers"],
        "pad_token_id": packed.special["<pad>"],
        "type_vocab_size": sizes["token_types"],
        "vocab_size": sizes["vocabulary"],
    }


def _write_unigram(packed: e5s1.Packed, folder: Path) -> None:
    """The tokenizer of XLM-R: unigram pieces, <s> and </s> around, two of these between a pair."""
    pieces = [*packed.pieces]
    number = {name: pieces.index(name) for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")}
    added = [
        {
            "id": i, "content": name, "lstrip": name == "<mask>", "normalized": False,
            "rstrip": False, "single_word": False, "special": True,
        }
        for name, i in sorted(number.items(), key=lambda item: item[1])
    ]  # fmt: skip
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": {"type": "Sequence", "normalizers": _NORMALIZERS},
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{"type": "WhitespaceSplit"}, _METASPACE],
            },
            "post_processor": _around("<s>", "</s>", number),
            "decoder": _METASPACE,
            "model": {
                "type": "Unigram",
                "unk_id": number["<unk>"],
                "vocab": [list(item) for item in zip(pieces, packed.scores.tolist(), strict=True)],
                "byte_fallback": False,
            },
        },
    )
    special = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>"}
    special |= {"pad": "<pad>", "mask": "<mask>"}
    write_json(
        folder / "tokenizer_config.json",
        {
            **{f"{name}_token": token for name, token in special.items()},
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
            "model_max_length": packed.sizes["positions"],
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )


_METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def _around(first: str, last: str, number: Mapping[str, int]) -> dict[str, Any]:
    """A post-processor that writes ``first A last`` and ``first A last last B last``."""

    def special(name: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    a, b = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [special(first), a, special(last)],
        "pair": [special(first), a, special(last), special(last), b, special(last)],
        "special_tokens": {
            name: {"id": name, "ids": [number[name]], "tokens": [name]} for name in (first, last)
        },
    }


def _write_modules(sizes: Mapping[str, int], folder: Path) -> None:
    """What makes a folder one of sentence-transformers."""
    modules = [
        {"idx": int(name), "name": name, "path": path, "type": kind}
        for name, path, kind in _MODULES
    ]
    write_json(folder / "modules.json", modules)
    write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": sizes["positions"], "do_lower_case": False},
    )
    write_json(
        folder / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": sizes["width"], "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    )  # fmt: skip
    (folder / "2_Normalize").mkdir(exist_ok=True)


def from_gguf(file: Path, folder: Path) -> None:
    """A quantised Gemma 3 as a `Gemma3ForCausalLM` in bfloat16, with its tokenizer."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoTokenizer, Gemma3ForCausalLM

    options = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    # Dequantised in float32, then rounded once; bfloat16 is what the original has.
    model = Gemma3ForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **options)
    state = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in sorted(model.state_dict().items())
        if name != "lm_head.weight"  # the embeddings, tied
    }
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", _gemma_config(model.config))
    tokenizer = AutoTokenizer.from_pretrained(file.parent, **options)
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    write_json(folder / "tokenizer.json", content)
    write_json(
        folder / "tokenizer_config.json",
        {
            "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>",
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
            "model_max_length": model.config.max_position_embeddings,
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )  # fmt: skip


#: What of a configuration decides the computation, and is kept.
_OF_GEMMA = (
    "attention_bias", "attention_dropout", "attn_logit_softcapping", "bos_token_id", "eos_token_id",
    "final_logit_softcapping", "head_dim", "hidden_activation", "hidden_size", "initializer_range",
    "intermediate_size", "layer_types", "max_position_embeddings", "model_type",
    "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "pad_token_id",
    "query_pre_attn_scalar", "rms_norm_eps", "rope_parameters", "sliding_window",
    "tie_word_embeddings", "use_bidirectional_attention", "vocab_size",
)  # fmt: skip


def _gemma_config(config: Any) -> dict[str, Any]:
    whole = config.to_dict()
    kept = {name: whole[name] for name in _OF_GEMMA if name in whole}
    kept["rms_norm_eps"] = float(f"{kept['rms_norm_eps']:.6g}")
    return {"architectures": ["Gemma3ForCausalLM"], "dtype": "bfloat16", **kept}


def from_folder(source: Path, folder: Path) -> None:
    """A model folder as it is: what is read of it, and no other file."""
    names = (
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "vocab.txt", "modules.json", "sentence_bert_config.json",
        "1_Pooling/config.json",
    )  # fmt: skip
    for name in names:
        if (source / name).is_file():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, folder / name)


CONVERTERS: dict[str, Callable[[Path, Path], None]] = {
    "e5s1": from_e5s1, "gguf": from_gguf, "folder": from_folder,
}  # fmt: skip
