"""Convert RoBERTa and XLM-R checkpoints of fairseq to Hugging Face folders.

XLM-R was trained with fairseq, and so was the series of checkpoints that ABX looks into (Blevins
et al. 2022). A fairseq checkpoint is a pickle with the weights, the options of the training run and
the state of the optimiser. It is read by torch's restricted unpickler, which builds tensors, plain
containers and `argparse.Namespace` and refuses everything else.

Vocabulary: fairseq numbers ``<s> 0, <pad> 1, </s> 2, <unk> 3``, then the lines of ``dict.txt``,
then ``<mask>``, as Hugging Face does for XLM-R, whose tokenizer therefore serves.
"""

import argparse
import os
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from tokenizers import Tokenizer

from xlx.results.store import written_whole

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"
_EMBEDDINGS = "roberta.embeddings.word_embeddings.weight"
_POSITIONS = "roberta.embeddings.position_embeddings.weight"
_OUTPUT = "lm_head.decoder.weight"
_LAYER = {  # fairseq → Hugging Face, inside a layer
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
_OUTSIDE = {  # the second name of the norm is that of fairseq from 2021 on
    "sentence_encoder.embed_tokens": "roberta.embeddings.word_embeddings",
    "sentence_encoder.embed_positions": "roberta.embeddings.position_embeddings",
    "sentence_encoder.emb_layer_norm": "roberta.embeddings.LayerNorm",
    "sentence_encoder.layernorm_embedding": "roberta.embeddings.LayerNorm",
    "lm_head.dense": "lm_head.dense",
    "lm_head.layer_norm": "lm_head.layer_norm",
}
_HEAD = {"lm_head.weight": _OUTPUT, "lm_head.bias": "lm_head.bias"}
_FORMAT = "sentence_encoder.version"  # no weight: a format number
_ACTIVATIONS = {
    "gelu": "gelu", "gelu_accurate": "gelu_new", "gelu_fast": "gelu_new", "relu": "relu",
    "tanh": "tanh",
}  # fmt: skip
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def convert_fairseq(
    checkpoint: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    tokenizer: str | os.PathLike[str],
    dictionary: str | os.PathLike[str] | None = None,
    heads: int | None = None,
) -> Path:
    """Write a fairseq RoBERTa or XLM-R checkpoint as a folder that `xlx.subjects.load` reads.

    Parameters
    ----------
    checkpoint : path
        The ``.pt`` file.
    folder : path
        Where to write; must not exist. It appears whole or not at all. Call it ``step-<number>``
        inside a common folder to make a series.
    tokenizer : path
        A folder with the ``tokenizer.json`` of the vocabulary, such as XLM-R's from the hub.
    dictionary : path, optional
        fairseq's ``dict.txt``, with which the tokenizer's numbering is compared piece by piece.
    heads : int, optional
        Attention heads, the one size weights do not show. Default: what the options of the training
        run in the file say.

    Returns `folder`. Raises ValueError if the file holds more than tensors and options, lacks
    weights, has weights there is no place for, or does not fit the vocabulary; FileExistsError.
    """
    checkpoint, folder, tokenizer = Path(checkpoint), Path(folder), Path(tokenizer)
    if folder.exists():
        raise FileExistsError(f"{folder} exists: choose another folder, or remove it first")
    state, options = _read(checkpoint)
    weights = _renamed(state, checkpoint)
    config = _whole(weights, options, heads, checkpoint)
    _check_tokenizer(tokenizer, dictionary, config.vocab_size)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(folder) as beside:
        config.save_pretrained(beside)
        safetensors.torch.save_file(weights, beside / "model.safetensors", {"format": "pt"})
        for name in _TOKENIZER_FILES:
            if (tokenizer / name).exists():
                shutil.copyfile(tokenizer / name, beside / name)
    return folder


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights and the model's options of a fairseq checkpoint."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no fairseq checkpoint {path}: check the path")
    # Numbers that training left in the file: harmless, and named differently by NumPy 1 and 2.
    scalar = np._core.multiarray.scalar
    allowed = [
        argparse.Namespace, np.dtype, np.dtypes.Float32DType, np.dtypes.Float64DType,
        np.dtypes.Int64DType, (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
    ]  # fmt: skip
    try:
        with torch.serialization.safe_globals(allowed):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        kind = re.search(r"GLOBAL (\S+)", str(error))
        what = f"objects of type {kind[1]}" if kind else "something else than tensors and options"
        raise ValueError(
            f"{path} holds {what}, and reading those could run code: where you trust the file and "
            'have fairseq, save its "model" entry and vars() of its "args" (or its "cfg") alone '
            "with torch.save, and convert that"
        ) from None
    except (RuntimeError, EOFError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} is no torch checkpoint, or torn ({reason})") from None
    state = content.get("model") if isinstance(content, dict) else None
    if not isinstance(state, dict) or not state:
        raise ValueError(f'{path} is no fairseq checkpoint: it has no "model" entry')
    options = _plain(content.get("args") or content.get("cfg"))
    return state, _plain(options.get("model", options))


def _plain(options: Any) -> dict[str, Any]:
    options = vars(options) if isinstance(options, argparse.Namespace) else options
    return options if isinstance(options, dict) else {}


def _renamed(state: dict[str, torch.Tensor], path: Path) -> dict[str, torch.Tensor]:
    """Weights under Hugging Face's names, in float32; every key is used or refused."""
    weights: dict[str, torch.Tensor] = {}
    surplus = []
    for key, tensor in state.items():
        name = re.sub(r"^(encoder|decoder)\.", "", key)  # it was called decoder before 2020
        parts = _new_names(name, tensor)
        if not parts and name != _FORMAT:
            surplus.append(key)
        for new, part in parts.items():
            if new in weights:
                raise ValueError(f"{path} has the weights of {new} twice, once as {key}")
            weights[new] = part.detach().to(torch.float32).contiguous().clone()
    if surplus:
        raise ValueError(
            f"{path} has {len(surplus)} weights that a RoBERTa encoder has no place for: "
            f"{', '.join(sorted(surplus)[:5])}{' ...' if len(surplus) > 5 else ''}; "
            "it is of another architecture, or fine-tuned (take its heads out first)"
        )
    return weights


def _new_names(name: str, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """Where a weight goes; the fused projection of old checkpoints goes to three places."""
    stem, _, kind = name.rpartition(".")
    if name in _HEAD:
        return {_HEAD[name]: tensor}
    if stem in _OUTSIDE:
        return {f"{_OUTSIDE[stem]}.{kind}": tensor}
    match = re.fullmatch(r"sentence_encoder\.layers\.(\d+)\.(.+)[._](weight|bias)", name)
    if match is None:
        return {}
    layer, kind = f"roberta.encoder.layer.{match[1]}", match[3]
    if match[2] == "self_attn.in_proj" and tensor.shape[0] % 3 == 0:
        names = [f"{layer}.attention.self.{role}.{kind}" for role in ("query", "key", "value")]
        return dict(zip(names, tensor.chunk(3), strict=True))
    return {f"{layer}.{_LAYER[match[2]]}.{kind}": tensor} if match[2] in _LAYER else {}


def _config(
    weights: dict[str, torch.Tensor], options: dict[str, Any], heads: int | None, path: Path
) -> dict[str, Any]:
    """The configuration that the weights' shapes and the run's options say."""
    inner = "roberta.encoder.layer.0.intermediate.dense.weight"
    for name in (_EMBEDDINGS, _POSITIONS, inner):
        if name not in weights:
            raise ValueError(f"{path} has no {name}: it is no (whole) RoBERTa checkpoint")
    size, width = weights[_EMBEDDINGS].shape
    positions = weights[_POSITIONS].shape[0]
    heads = heads if heads is not None else options.get("encoder_attention_heads")
    if heads is None:
        raise ValueError(
            f"{path} does not say how many attention heads the model has: give heads=... "
            f"(12 for XLM-R base, 16 for large; width {width})"
        )
    if heads < 1 or width % heads:
        raise ValueError(f"{path}: {heads} attention heads do not divide the width {width}")
    activation = options.get("activation_fn", "gelu")
    if activation not in _ACTIVATIONS:
        raise ValueError(f"{path} uses the activation {activation!r}, which XLM-R has not")
    if options.get("max_positions", positions - 2) != positions - 2:
        raise ValueError(
            f"{path} has {positions} position vectors for {options['max_positions']} positions "
            "(two more are due): it is another architecture"
        )
    numbers = [int(number) for number in re.findall(r"\.layer\.(\d+)\.", " ".join(weights))]
    return {
        "vocab_size": size,
        "hidden_size": width,
        "num_hidden_layers": 1 + max(numbers),
        "num_attention_heads": heads,
        "intermediate_size": weights[inner].shape[0],
        "hidden_act": _ACTIVATIONS[activation],
        "hidden_dropout_prob": options.get("dropout", 0.1),
        "attention_probs_dropout_prob": options.get("attention_dropout", 0.1),
        "max_position_embeddings": positions,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "tie_word_embeddings": _OUTPUT not in weights
        or torch.equal(weights[_OUTPUT], weights[_EMBEDDINGS]),
    }


def _whole(
    weights: dict[str, torch.Tensor], options: dict[str, Any], heads: int | None, path: Path
) -> Any:
    """The configuration of a model with these weights, of which each name and shape is checked.

    Takes the output matrix out of `weights` where it is the embedding matrix, as it is by default.
    """
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    config = XLMRobertaConfig(**_config(weights, options, heads, path))
    config.architectures = [XLMRobertaForMaskedLM.__name__]
    with torch.device("meta"):
        model = XLMRobertaForMaskedLM(config)
    weights.setdefault(_OUTPUT, weights[_EMBEDDINGS])
    # RoBERTa has no segment embeddings; Hugging Face's class wants one, to add nothing.
    segments = torch.zeros(1, config.hidden_size)
    weights["roberta.embeddings.token_type_embeddings.weight"] = segments
    if "lm_head.bias" in weights:  # one bias under two names
        weights["lm_head.decoder.bias"] = weights["lm_head.bias"].clone()
    try:
        model.load_state_dict(weights, assign=True)
    except RuntimeError as error:
        raise ValueError(
            f"{path} is torn, pruned or no RoBERTa model of {config.num_hidden_layers} layers: "
            f"{' '.join(str(error).split())}"
        ) from None
    if config.tie_word_embeddings:  # loading takes care of the second names
        del weights[_OUTPUT], weights["lm_head.decoder.bias"]
    return config


def read_dictionary(path: str | os.PathLike[str]) -> list[str]:
    """Symbols by number, from a fairseq ``dict.txt`` (lines "piece count"), special ones included.

    ValueError if a line is no "piece count", or a piece comes twice without ``#fairseq:overwrite``.
    """
    symbols = list(SPECIAL)
    known = set(symbols)
    # Only "\n" ends a line: pieces may be characters that str.splitlines takes for line ends.
    lines = Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    for n, line in enumerate(lines, start=1):
        body = line.rstrip("\r").removesuffix(" #fairseq:overwrite")
        piece, space, count = body.rpartition(" ")
        if not space or not piece or not count.lstrip("-").isdigit():
            raise ValueError(f'{path}, line {n}: {line!r} is not of the form "piece count"')
        if piece in known and body == line.rstrip("\r"):
            raise ValueError(f"{path}, line {n}: the piece {piece!r} is there already")
        known.add(piece)
        symbols.append(piece)
    return symbols if MASK in known else [*symbols, MASK]


def _check_tokenizer(folder: Path, dictionary: str | os.PathLike[str] | None, rows: int) -> None:
    """A tokenizer of as many pieces as are embedded, numbered as in the dictionary."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(f"the tokenizer folder {folder} has no tokenizer.json")
    vocabulary = Tokenizer.from_file(str(path)).get_vocab()
    if max(vocabulary.values()) >= rows:
        raise ValueError(
            f"{path} numbers its pieces up to {max(vocabulary.values())}, but the checkpoint "
            f"embeds {rows}: they do not belong together"
        )
    symbols = [] if dictionary is None else read_dictionary(dictionary)
    if symbols and len(symbols) != rows:
        raise ValueError(
            f"{dictionary} makes a vocabulary of {len(symbols)} (with <s>, <pad>, </s>, <unk> and "
            f"<mask>), but the checkpoint embeds {rows}: they do not belong together"
        )
    for i, symbol in enumerate(symbols):
        if vocabulary.get(symbol, i) != i:
            raise ValueError(
                f"{path} gives {symbol!r} the number {vocabulary[symbol]}, dict.txt {i}: "
                "they do not belong together"
            )
