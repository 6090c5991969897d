"""Convert RoBERTa and XLM-R checkpoints of fairseq to Hugging Face folders.

XLM-R was trained with fairseq, and so was the series of checkpoints that ABX looks into (Blevins
et al. 2022). A fairseq checkpoint is a pickle with the weights, the options of the training run and
the state of the optimiser. It is read by torch's restricted unpickler, which builds tensors, plain
containers and `argparse.Namespace` and refuses everything else.

Vocabulary: fairseq numbers ``<s> 0, <pad> 1, </s> 2, <unk> 3``, then the lines of ``dict.txt``,
then ``<mask>``, as Hugging Face does for XLM-R. ``dict.txt`` names the pieces; how likely each is,
and so how a sentence is split, says the sentencepiece model, whose file is read here without its
library.
"""

import argparse
import json
import os
import pickle
import re
import shutil
import struct
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram
from tokenizers.processors import TemplateProcessing

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
MASK = "<mask>"

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
_OUTSIDE = {
    "embed_tokens.weight": "roberta.embeddings.word_embeddings.weight",
    "embed_positions.weight": "roberta.embeddings.position_embeddings.weight",
    "emb_layer_norm.weight": "roberta.embeddings.LayerNorm.weight",
    "emb_layer_norm.bias": "roberta.embeddings.LayerNorm.bias",
    # its name in fairseq from 2021 on
    "layernorm_embedding.weight": "roberta.embeddings.LayerNorm.weight",
    "layernorm_embedding.bias": "roberta.embeddings.LayerNorm.bias",
}
_HEAD = {
    "weight": "lm_head.decoder.weight",
    "bias": "lm_head.bias",
    "dense.weight": "lm_head.dense.weight",
    "dense.bias": "lm_head.dense.bias",
    "layer_norm.weight": "lm_head.layer_norm.weight",
    "layer_norm.bias": "lm_head.layer_norm.bias",
}
_MARKERS = ("sentence_encoder.version",)  # no weights: format numbers
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_accurate": "gelu_new",
    "gelu_fast": "gelu_new",
    "relu": "relu",
    "tanh": "tanh",
}
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def convert_fairseq(
    checkpoint: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    dictionary: str | os.PathLike[str] | None = None,
    sentencepiece: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    heads: int | None = None,
) -> Path:
    """Write a fairseq RoBERTa or XLM-R checkpoint as a folder that `xlx.models.load` reads.

    Parameters
    ----------
    checkpoint : path
        The ``.pt`` file.
    folder : path
        Where to write; must not exist. It appears whole or not at all. Call it ``step-<number>``
        inside a common folder to make a series.
    dictionary : path, optional
        fairseq's ``dict.txt``.
    sentencepiece : path, optional
        The sentencepiece model (unigram) that the text was split with; needs `dictionary`.
    tokenizer : path, optional
        Instead of `sentencepiece`: a folder with a ``tokenizer.json`` of the same vocabulary. With
        `dictionary` its numbering is compared piece by piece.
    heads : int, optional
        Attention heads, the one size weights do not show. Default: what the options of the training
        run in the file say.

    Returns
    -------
    Path
        `folder`.

    Raises
    ------
    ValueError
        If the file holds more than tensors and options, lacks weights, has weights there is no
        place for, or does not fit the vocabulary.
    FileExistsError
        If `folder` exists.
    """
    checkpoint, folder = Path(checkpoint), Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} exists: choose another folder, or remove it first")
    if (sentencepiece is None) == (tokenizer is None):
        raise ValueError(
            "give either sentencepiece=<model file> with dictionary=<dict.txt>, "
            "or tokenizer=<folder with tokenizer.json>"
        )
    if sentencepiece is not None and dictionary is None:
        raise ValueError(
            "sentencepiece=... needs dictionary=<dict.txt>, which gives the order of the pieces"
        )
    state, options = _read(checkpoint)
    weights = _rename(state, checkpoint)
    config = _config(weights, options, heads, checkpoint)

    symbols = None if dictionary is None else read_dictionary(dictionary)
    rows = config["vocab_size"]
    if symbols is not None and len(symbols) != rows:
        raise ValueError(
            f"{dictionary} makes a vocabulary of {len(symbols)} (with <s>, <pad>, </s>, <unk> and "
            f"<mask>), but {checkpoint} embeds {rows}: they do not belong together"
        )
    if tokenizer is not None:
        _check_tokenizer(Path(tokenizer), symbols, rows)

    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        beside.chmod(0o755)
        safetensors.torch.save_file(weights, beside / "model.safetensors", {"format": "pt"})
        _write_json(beside / "config.json", config)
        if tokenizer is not None:
            for name in _TOKENIZER_FILES:
                if (Path(tokenizer) / name).exists():
                    shutil.copyfile(Path(tokenizer) / name, beside / name)
        else:
            positions = config["max_position_embeddings"] - 2
            _write_tokenizer(beside, symbols, Path(sentencepiece), positions)
        os.rename(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return folder


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights and the model's options of a fairseq checkpoint."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no fairseq checkpoint {path}: check the path")
    # Numbers that training left in the file: harmless, and named differently by NumPy 1 and 2.
    scalar = np._core.multiarray.scalar
    allowed = [
        argparse.Namespace,
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
        np.dtype,
        np.dtypes.Float32DType,
        np.dtypes.Float64DType,
        np.dtypes.Int64DType,
    ]
    try:
        with torch.serialization.safe_globals(allowed):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        what = f"objects of type {found[1]}" if found else "something else than tensors and options"
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
    options = content.get("args") or content.get("cfg") or {}
    options = vars(options) if isinstance(options, argparse.Namespace) else options
    model_options = options.get("model", options) if isinstance(options, dict) else {}
    if isinstance(model_options, argparse.Namespace):
        model_options = vars(model_options)
    return state, model_options if isinstance(model_options, dict) else {}


def _rename(state: dict[str, torch.Tensor], path: Path) -> dict[str, torch.Tensor]:
    """Weights under Hugging Face's names, in float32; every key is used or refused."""
    weights: dict[str, torch.Tensor] = {}
    surplus = []
    for key, tensor in state.items():
        # The encoder was called decoder before 2020.
        name = re.sub(r"^(encoder|decoder)\.", "", key)
        if name in _MARKERS:
            continue
        parts = _new_names(name, tensor)
        if not parts:
            surplus.append(key)
        for new, part in parts:
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


def _new_names(name: str, tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """Where a weight goes; the fused projection of old checkpoints goes to three places."""
    area, _, rest = name.partition(".")
    if area == "lm_head" and rest in _HEAD:
        return [(_HEAD[rest], tensor)]
    if area != "sentence_encoder":
        return []
    if rest in _OUTSIDE:
        return [(_OUTSIDE[rest], tensor)]
    match = re.fullmatch(r"layers\.(\d+)\.(.+?)(?:\.|_)(weight|bias)", rest)
    if match is None:
        return []
    layer = f"roberta.encoder.layer.{match[1]}"
    if match[2] == "self_attn.in_proj":
        if tensor.shape[0] % 3:
            return []
        roles = ("query", "key", "value")
        return [
            (f"{layer}.attention.self.{role}.{match[3]}", part)
            for role, part in zip(roles, tensor.chunk(3), strict=True)
        ]
    if match[2] in _LAYER and rest.endswith(f".{match[3]}"):
        return [(f"{layer}.{_LAYER[match[2]]}.{match[3]}", tensor)]
    return []


def _config(
    weights: dict[str, torch.Tensor], options: dict[str, Any], heads: int | None, path: Path
) -> dict[str, Any]:
    """The configuration that the weights' shapes and the run's options say; checks every shape.

    Takes the output matrix out of `weights` where it is the embedding matrix, as it is by default.
    """
    embeddings = "roberta.embeddings.word_embeddings.weight"
    positions = "roberta.embeddings.position_embeddings.weight"
    found = [re.match(r"roberta\.encoder\.layer\.(\d+)\.", name) for name in weights]
    layers = 1 + max((int(match[1]) for match in found if match), default=-1)
    inner = weights.get("roberta.encoder.layer.0.intermediate.dense.weight")
    for name, there in (
        (embeddings, embeddings in weights),
        (positions, positions in weights),
        ("encoder.layer.0", inner is not None),
    ):
        if not there:
            raise ValueError(f"{path} has no {name}: it is no (whole) RoBERTa checkpoint")
    size, width = weights[embeddings].shape
    inner_width = inner.shape[0]

    if heads is None:
        heads = options.get("encoder_attention_heads")
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
    if (
        options.get("max_positions", weights[positions].shape[0] - 2)
        != weights[positions].shape[0] - 2
    ):
        raise ValueError(
            f"{path} has {weights[positions].shape[0]} position vectors for "
            f"{options['max_positions']} positions (two more are due): it is another architecture"
        )

    output = weights.pop("lm_head.decoder.weight", None)
    tied = output is None or torch.equal(output, weights[embeddings])
    expected = _shapes(size, width, inner_width, layers, weights[positions].shape[0])
    if not tied:
        weights["lm_head.decoder.weight"] = output
        expected["lm_head.decoder.weight"] = (size, width)
    missing = sorted(expected.keys() - weights.keys())
    if missing:
        raise ValueError(
            f"{path} lacks {len(missing)} weights of a RoBERTa model with {layers} layers: "
            f"{', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}; "
            "it may be torn or pruned"
        )
    for name, tensor in weights.items():
        if tuple(tensor.shape) != expected[name]:
            raise ValueError(
                f"{path}: {name} has the shape {tuple(tensor.shape)}, but {expected[name]} is due"
            )
    if not tied:
        # One bias under two names; where the matrices are tied, loading takes care of the second.
        weights["lm_head.decoder.bias"] = weights["lm_head.bias"].clone()
    # RoBERTa has no segment embeddings; Hugging Face's class wants one, to add nothing.
    weights["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, width)
    return {
        "architectures": ["XLMRobertaForMaskedLM"],
        "model_type": "xlm-roberta",
        "vocab_size": size,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner_width,
        "hidden_act": _ACTIVATIONS[activation],
        "hidden_dropout_prob": options.get("dropout", 0.1),
        "attention_probs_dropout_prob": options.get("attention_dropout", 0.1),
        "max_position_embeddings": weights[positions].shape[0],
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": tied,
        "dtype": "float32",
    }


def _shapes(
    size: int, width: int, inner: int, layers: int, positions: int
) -> dict[str, tuple[int, ...]]:
    """Every weight of the model and its shape."""
    shapes: dict[str, tuple[int, ...]] = {
        "roberta.embeddings.word_embeddings.weight": (size, width),
        "roberta.embeddings.position_embeddings.weight": (positions, width),
        "lm_head.bias": (size,),
    }

    def linear(name: str, rows: int, columns: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (rows, columns), (rows,)

    def norm(name: str) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (width,)

    norm("roberta.embeddings.LayerNorm")
    linear("lm_head.dense", width, width)
    norm("lm_head.layer_norm")
    for i in range(layers):
        layer = f"roberta.encoder.layer.{i}"
        for role in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{role}", width, width)
        linear(f"{layer}.attention.output.dense", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", inner, width)
        linear(f"{layer}.output.dense", width, inner)
        norm(f"{layer}.output.LayerNorm")
    return shapes


def read_dictionary(path: str | os.PathLike[str]) -> list[str]:
    """Symbols by number, from a fairseq ``dict.txt`` (lines "piece count"), special ones included.

    Raises
    ------
    ValueError
        If a line is no "piece count", or a piece comes twice without ``#fairseq:overwrite``.
    """
    symbols = list(SPECIAL)
    number = {symbol: i for i, symbol in enumerate(symbols)}
    # Only "\n" ends a line: pieces may be characters that str.splitlines takes for line ends.
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    for n, line in enumerate(lines, start=1):
        if not line.strip() and n == len(lines):
            continue
        body = line.rstrip("\r")
        overwrite = body.endswith(" #fairseq:overwrite")
        piece, space, count = body.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not space or not piece or not count.lstrip("-").isdigit():
            raise ValueError(f'{path}, line {n}: {line!r} is not of the form "piece count"')
        if piece in number and not overwrite:
            raise ValueError(f"{path}, line {n}: the piece {piece!r} is there already")
        number[piece] = len(symbols)
        symbols.append(piece)
    if MASK not in number:
        symbols.append(MASK)
    return symbols


def _check_tokenizer(folder: Path, symbols: list[str] | None, rows: int) -> None:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(f"the tokenizer folder {folder} has no tokenizer.json")
    vocabulary = Tokenizer.from_file(str(path)).get_vocab()
    if max(vocabulary.values()) >= rows:
        raise ValueError(
            f"{path} numbers its pieces up to {max(vocabulary.values())}, but the checkpoint "
            f"embeds {rows}: they do not belong together"
        )
    for i, symbol in enumerate(symbols or ()):
        if vocabulary.get(symbol, i) != i:
            raise ValueError(
                f"{path} gives {symbol!r} the number {vocabulary[symbol]}, dict.txt {i}: "
                "they do not belong together"
            )


def _write_tokenizer(folder: Path, symbols: list[str], sentencepiece: Path, positions: int) -> None:
    """The tokenizer of XLM-R's kind that numbers as fairseq and splits as sentencepiece."""
    model = read_sentencepiece(sentencepiece)
    scores = model["scores"]
    plain = symbols[len(SPECIAL) :]
    plain.remove(MASK)
    dropped = scores.keys() - set(plain)
    if len(dropped) == len(scores):
        raise ValueError(f"{sentencepiece} has no piece of the dictionary: they differ altogether")
    if dropped:
        warnings.warn(
            f"{len(dropped)} of {len(scores)} pieces of {sentencepiece} are not in the dictionary: "
            "fairseq reads them as <unk>, the converted tokenizer splits them further",
            stacklevel=3,
        )
    # Fillers of the dictionary ("madeupword0000") are never better than a true piece.
    lowest = min(scores.values())
    vocabulary = [
        (symbol, 0.0 if symbol in (*SPECIAL, MASK) else scores.get(symbol, lowest))
        for symbol in symbols
    ]
    tokenizer = Tokenizer(Unigram(vocabulary, unk_id=3, byte_fallback=False))
    collapse = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.Precompiled(model["charsmap"]), collapse])
        if model["charsmap"]
        else collapse
    )
    scheme = "always" if model["dummy_prefix"] else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    tokenizer.add_special_tokens([AddedToken(MASK, lstrip=True, special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>"}
    roles |= {"unk": "<unk>", "mask": MASK}
    _write_json(
        folder / "tokenizer_config.json",
        {f"{role}_token": token for role, token in roles.items()}
        | {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": positions},
    )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# The sentencepiece model file is a protocol buffer: fields of (number, type, value).


def read_sentencepiece(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a tokenizer needs from a sentencepiece model file.

    Returns
    -------
    dict
        ``scores``: log probability by piece, without control and unknown pieces; ``charsmap``: the
        normaliser's table, bytes; ``dummy_prefix``: whether a space is put before the text.

    Raises
    ------
    ValueError
        If the file is no sentencepiece model, or not of the unigram kind (as XLM-R's is).
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no sentencepiece model {path}: check the path")
    scores: dict[str, float] = {}
    kind, charsmap, dummy_prefix = 1, b"", True
    try:
        for number, value in _fields(path.read_bytes()):
            if number == 1:  # a piece: 1 text, 2 score, 3 type (1 normal, 4 defined by the user)
                piece = dict(_fields(value))
                if piece.get(3, 1) in (1, 4):
                    (score,) = struct.unpack("<f", piece.get(2, bytes(4)))
                    scores[piece[1].decode("utf-8")] = score
            elif number == 2:  # how it was trained: 3 kind (1 unigram, 2 BPE)
                kind = dict(_fields(value)).get(3, 1)
            elif number == 3:  # the normaliser: 2 table, 3 space before the text
                normaliser = dict(_fields(value))
                charsmap = normaliser.get(2, b"")
                dummy_prefix = bool(normaliser.get(3, 1))
    except (ValueError, KeyError, IndexError, TypeError, struct.error, AttributeError):
        raise ValueError(f"{path} is no sentencepiece model, or torn") from None
    if not scores:
        raise ValueError(f"{path} is no sentencepiece model: it has no pieces")
    if kind != 1:
        raise ValueError(
            f"{path} is a sentencepiece model of another kind than unigram: give tokenizer=<folder "
            "with tokenizer.json> instead"
        )
    return {"scores": scores, "charsmap": charsmap, "dummy_prefix": dummy_prefix}


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a protocol buffer message; numbers as int, all else as bytes."""
    fields = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(data):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            fields.append((number, varint()))
            continue
        if wire not in (1, 2, 5):
            raise ValueError("unknown field type")
        length = varint() if wire == 2 else {1: 8, 5: 4}[wire]
        if at + length > len(data):
            raise ValueError("torn")
        fields.append((number, data[at : at + length]))
        at += length
    return fields
