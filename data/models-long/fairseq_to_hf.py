"""Convert RoBERTa and XLM-R checkpoints of fairseq to Hugging Face folders.

    make convert FROM=folder    # or: python data/models-long/fairseq_to_hf.py folder

XLM-R was trained with fairseq, and so was the series of checkpoints that ABX looks into (Blevins
et al. 2022). A fairseq checkpoint is a pickle with the weights, the options of the training run and
the state of the optimiser. It is read by torch's restricted unpickler, which builds tensors, plain
containers and `argparse.Namespace` and refuses everything else.

Vocabulary: fairseq numbers ``<s> 0, <pad> 1, </s> 2, <unk> 3``, then the lines of ``dict.txt``,
then ``<mask>``, as Hugging Face does for XLM-R, whose tokenizer therefore serves.
"""

import argparse
import pickle
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from tokenizers import Tokenizer

from xlx.results import paths
from xlx.results.store import free_disk, written_whole

#: Pattern in fairseq's name of a weight → what stands there in Hugging Face's, one after another.
NAMES = {
    r"^(encoder|decoder)\.": "",  # it was called decoder before 2020
    r"^sentence_encoder\.layers\.": "roberta.encoder.layer.",
    r"^sentence_encoder\.embed_tokens\.": "roberta.embeddings.word_embeddings.",
    r"^sentence_encoder\.embed_positions\.": "roberta.embeddings.position_embeddings.",
    r"^sentence_encoder\.(emb_layer_norm|layernorm_embedding)\.": "roberta.embeddings.LayerNorm.",
    r"^lm_head\.weight$": "lm_head.decoder.weight",
    r"\.self_attn\.q_proj\.": ".attention.self.query.",
    r"\.self_attn\.k_proj\.": ".attention.self.key.",
    r"\.self_attn\.v_proj\.": ".attention.self.value.",
    r"\.self_attn\.out_proj\.": ".attention.output.dense.",
    r"\.self_attn_layer_norm\.": ".attention.output.LayerNorm.",
    r"\.fc1\.": ".intermediate.dense.",
    r"\.fc2\.": ".output.dense.",
    r"\.final_layer_norm\.": ".output.LayerNorm.",
}
_EMBEDDINGS = "roberta.embeddings.word_embeddings.weight"
_POSITIONS = "roberta.embeddings.position_embeddings.weight"
_INNER = "roberta.encoder.layer.0.intermediate.dense.weight"
_OUTPUT = "lm_head.decoder.weight"
#: fairseq's name of a checkpoint: of an epoch and an update, or of an update.
_FILE = re.compile(r"checkpoint(?:_\d+)?_(\d+)\.pt")
#: States of XLM-R base that abx-2 keeps of a checkpoint, in bytes: positions, languages, layers.
_STATES = 949 * 36 * 13 * 768 * 4
_ACTIVATIONS = {"gelu_accurate": "gelu_new", "gelu_fast": "gelu_new"}


def convert_fairseq(
    checkpoint: Path, folder: Path, *, tokenizer: Path, heads: int | None = None
) -> Path:
    """Write a fairseq RoBERTa or XLM-R checkpoint as a folder that `xlx.subjects.load` reads.

    ``folder`` must not exist; it appears whole or not at all. Called ``step-<number>`` inside a
    common folder it makes a series. ``tokenizer``: a folder with the ``tokenizer.json`` of the
    vocabulary, such as XLM-R's from the hub; ``heads``: attention heads, the one size that weights
    do not show, where the options of the training in the file do not say it.

    Returns `folder`. Raises ValueError if the file holds more than tensors and options, lacks
    weights, has weights there is no place for, or more pieces are numbered than embedded;
    FileExistsError.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} exists: choose another folder, or remove it first")
    state, options = _read(checkpoint)
    weights = renamed(state)
    config = _fitted(weights, options, heads or options.get("encoder_attention_heads"), checkpoint)
    words, rows = tokenizer / "tokenizer.json", config.vocab_size
    if not words.is_file():
        raise FileNotFoundError(f"the tokenizer folder {tokenizer} has no tokenizer.json")
    if (n := max(Tokenizer.from_file(str(words)).get_vocab().values()) + 1) > rows:
        raise ValueError(f"{words} numbers {n} pieces, the checkpoint embeds {rows}: they differ")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(folder) as beside:
        config.save_pretrained(beside)
        safetensors.torch.save_file(weights, beside / "model.safetensors", {"format": "pt"})
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            if (tokenizer / name).exists():
                shutil.copyfile(tokenizer / name, beside / name)
    return folder


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights and the model's options of a fairseq checkpoint."""
    # Numbers that training left in the file: harmless, and named differently by NumPy 1 and 2.
    scalar = np._core.multiarray.scalar
    allowed = [
        argparse.Namespace,
        np.dtype,
        np.dtypes.Float32DType,
        np.dtypes.Float64DType,
        np.dtypes.Int64DType,
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
    ]
    try:
        with torch.serialization.safe_globals(allowed):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        kind = re.search(r"GLOBAL (\S+)", str(error))
        raise ValueError(
            f"{path} is torn, no torch checkpoint, or holds more than tensors and options"
            f"{f' ({kind[1]})' if kind else ''}, and reading that could run code: where you trust "
            'the file and have fairseq, save its "model" entry and vars() of its "args" (or its '
            '"cfg") alone with torch.save, and convert that'
        ) from None
    state = content.get("model") if isinstance(content, dict) else None
    if not isinstance(state, dict) or not state:
        raise ValueError(f'{path} is no fairseq checkpoint: it has no "model" entry')
    options = content.get("args") or content.get("cfg") or {}
    options = options.get("model", options) if isinstance(options, dict) else options
    return state, vars(options) if isinstance(options, argparse.Namespace) else options


def renamed(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights under Hugging Face's names, in float32; a name without a pattern stays."""
    apart = {}
    for name, tensor in state.items():
        if match := re.fullmatch(r"(.+\.self_attn)\.in_proj_(weight|bias)", name):  # one of three
            parts = zip("qkv", tensor.chunk(3), strict=True)
            apart |= {f"{match[1]}.{role}_proj.{match[2]}": part for role, part in parts}
        elif not name.endswith("sentence_encoder.version"):  # no weight: a format number
            apart[name] = tensor
    weights = {}
    for name, tensor in apart.items():
        for pattern, new in NAMES.items():
            name = re.sub(pattern, new, name)
        weights[name] = tensor.detach().to(torch.float32).contiguous().clone()
    return weights


def _fitted(
    weights: dict[str, torch.Tensor], options: dict[str, Any], heads: int | None, path: Path
) -> Any:
    """The configuration of a model with these weights, of which each name and shape is checked.

    Takes the output matrix out of `weights` where it is the embedding matrix, as it is by default.
    """
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    if lost := [name for name in (_EMBEDDINGS, _POSITIONS, _INNER) if name not in weights]:
        raise ValueError(f"{path} has no {lost[0]}: it is no (whole) RoBERTa checkpoint")
    size, width = weights[_EMBEDDINGS].shape
    if heads is None:
        raise ValueError(
            f"{path} does not say how many attention heads the model has: give heads=... "
            f"(12 for XLM-R base, 16 for large; width {width})"
        )
    activation = options.get("activation_fn", "gelu")
    weights.setdefault(_OUTPUT, weights[_EMBEDDINGS])
    config = XLMRobertaConfig(
        vocab_size=size,
        hidden_size=width,
        num_attention_heads=heads,
        type_vocab_size=1,
        num_hidden_layers=1 + max(int(x) for x in re.findall(r"layer\.(\d+)", " ".join(weights))),
        intermediate_size=weights[_INNER].shape[0],
        layer_norm_eps=1e-5,
        hidden_act=_ACTIVATIONS.get(activation, activation),
        hidden_dropout_prob=options.get("dropout", 0.1),
        attention_probs_dropout_prob=options.get("attention_dropout", 0.1),
        max_position_embeddings=weights[_POSITIONS].shape[0],
        tie_word_embeddings=torch.equal(weights[_OUTPUT], weights[_EMBEDDINGS]),
        architectures=[XLMRobertaForMaskedLM.__name__],
    )
    # RoBERTa has no segment embeddings; Hugging Face's class wants one, to add nothing.
    weights["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, width)
    if "lm_head.bias" in weights:  # one bias under two names
        weights["lm_head.decoder.bias"] = weights["lm_head.bias"].clone()
    try:
        with torch.device("meta"):
            XLMRobertaForMaskedLM(config).load_state_dict(weights, assign=True)
    except (KeyError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} is torn, pruned, fine-tuned or no RoBERTa model of "
            f"{config.num_hidden_layers} layers: {' '.join(str(error).split())}"
        ) from None
    if config.tie_word_embeddings:  # loading takes care of the second names
        del weights[_OUTPUT], weights["lm_head.decoder.bias"]
    return config


# --- a series -------------------------------------------------------------------------------------


def convert_series(
    source: Path,
    target: Path,
    *,
    tokenizer: Path | None = None,
    steps: Sequence[int] = (),
    heads: int | None = None,
) -> Iterator[str]:
    """Convert all checkpoints of a folder into a series of ``step-<number>``; say how it goes.

    ``source`` holds fairseq's ``checkpoint_<epoch>_<update>.pt`` and ``dict.txt``; ``tokenizer`` is
    a folder as of `convert_fairseq`, by default the same: a piece must have one number in both.
    ``steps``: these alone. What is done before is kept. Yields a line before the first, and one
    after each. ValueError: no such file or step, a tokenizer of other numbers, too little disk;
    FileNotFoundError; as `convert_fairseq`.
    """
    tokenizer = tokenizer or source
    matches = {path: _FILE.fullmatch(path.name) for path in sorted(source.glob("*.pt"))}
    there = {int(match[1]): path for path, match in matches.items() if match}
    if lost := [step for step in steps if step not in there] or not there:
        what = "checkpoint_<epoch>_<update>.pt" if lost is True else f"checkpoint of step {lost[0]}"
        raise ValueError(f"{source} has no {what}: it has {', '.join(map(str, there)) or 'none'}")
    _check_words(source / "dict.txt", tokenizer / "tokenizer.json")
    folders = {step: target / f"step-{step:06d}" for step in sorted(steps or there)}
    due = [step for step, folder in folders.items() if not folder.exists()]
    state = renamed(_read(there[due[0]])[0]) if due else {}
    if _OUTPUT in state and torch.equal(state[_OUTPUT], state.get(_EMBEDDINGS, state[_OUTPUT])):
        del state[_OUTPUT]  # written once
    size = sum(weight.nbytes for weight in state.values())
    del state
    free = free_disk(target.absolute())
    yield (
        f"{len(due)} of {len(folders)} checkpoints to convert, {len(due) * size / 1e9:,.1f} GB in "
        f"{target}, where {free / 1e9:,.1f} GB are free; of XLM-R base abx-2 keeps "
        f"{len(folders) * _STATES / 1e9:,.1f} GB of states more in cache/"
    )
    if len(due) * size > free:
        raise ValueError(f"the disk of {target} is too full: make room, or name another folder")
    began = time.time()
    for done, step in enumerate(due, 1):
        convert_fairseq(there[step], folders[step], tokenizer=tokenizer, heads=heads)
        hours, more = (time.time() - began) / done / 3600, len(due) - done
        yield f"step {step:,} is converted; about {hours * more:.1f} hours for the {more} to come"


def _check_words(words: Path, tokenizer: Path) -> None:
    """Each line of fairseq's dictionary has the number of its piece in the tokenizer."""
    if lost := [path for path in (words, tokenizer) if not path.is_file()]:
        raise FileNotFoundError(
            f"there is no {lost[0]}: dict.txt comes with fairseq's checkpoints of XLM-R, "
            "tokenizer.json with XLM-R on the hub"
        )
    numbers = Tokenizer.from_file(str(tokenizer)).get_vocab()
    for number, line in enumerate(words.read_text(encoding="utf-8").splitlines(), 4):
        if numbers.get(piece := line.rsplit(" ", 1)[0]) != number:
            raise ValueError(
                f"{words} has {piece!r} as number {number}, {tokenizer} as {numbers.get(piece)}: "
                "take the tokenizer of the vocabulary that the model was trained with"
            )


def main(arguments: Sequence[str] | None = None) -> str | None:
    """The command line; what stopped it, as one sentence."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "source", type=Path, help="folder of checkpoint_<epoch>_<update>.pt and dict.txt"
    )
    parser.add_argument(
        "--to", type=Path, default=paths.WRITTEN / "cache" / "xlmr-across-time", dest="target"
    )
    parser.add_argument(
        "--tokenizer", type=Path, help="folder with tokenizer.json; default: the source"
    )
    parser.add_argument("--steps", type=int, nargs="*", default=[], help="these alone")
    parser.add_argument("--heads", type=int, help="attention heads, where the files do not say")
    try:
        for line in convert_series(**vars(parser.parse_args(arguments))):
            print(line, flush=True)
    except (ValueError, OSError, safetensors.SafetensorError) as error:
        full = "No space left" in str(error)
        return f"the disk is full ({error}): make room, and start again" if full else str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
