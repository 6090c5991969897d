"""A model's folder to a model, a tokenizer or a configuration; what cannot be used is refused.

No code that comes with a model is ever run, and no pickle read that holds more than tensors.
"""

import contextlib
import importlib.util
import inspect
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from xlx.models.identity import read_json

#: Part of a model → its device ("cuda:0", 0, "cpu", "disk"); or how accelerate is to spread it.
DeviceMap = str | Mapping[str, int | str]
#: How `transformers` is called: its own code alone, and nothing fetched.
LOCAL = {"trust_remote_code": False, "local_files_only": True}
_OF_SENTENCE_TRANSFORMERS = {
    "cls_token": "cls", "mean_tokens": "mean", "lasttoken": "last",
    "weightedmean_tokens": "weighted_mean",
}  # fmt: skip


#: How many bits weights are packed into when they are loaded, by bitsandbytes.
QUANTIZATIONS = {"8bit": {"load_in_8bit": True}, "4bit": {"load_in_4bit": True}}


def load_model(
    label: str,
    folder: Path,
    dtype: torch.dtype,
    device_map: DeviceMap | None = None,
    quantization: str | None = None,
) -> tuple[Any, Any]:
    """The configuration and the bare model, whole and able to read text."""
    from transformers import MODEL_MAPPING, AutoModel, BitsAndBytesConfig

    config = load_config(label, folder)
    config.use_cache = False  # keys and values are for generating; they would only take memory
    options = {}
    if device_map is not None:
        if importlib.util.find_spec("accelerate") is None:
            raise ValueError("device_map needs the package accelerate: `pip install accelerate`")
        options["device_map"] = device_map
    with contextlib.suppress(KeyError):
        model_class = MODEL_MAPPING[type(config)]
        if "add_pooling_layer" in inspect.signature(model_class.__init__).parameters:
            options["add_pooling_layer"] = False  # an extra map of the first token, not a layer
    with quiet(), load_errors(label, folder):
        if quantization is not None:
            bits = {**QUANTIZATIONS[quantization], "bnb_4bit_compute_dtype": dtype}
            options["quantization_config"] = BitsAndBytesConfig(**bits)
        model, report = AutoModel.from_pretrained(
            folder, config=config, dtype=dtype, weights_only=True, output_loading_info=True,
            **LOCAL, **options,
        )  # fmt: skip
    of_decoder = ("decoder.",) if config.is_encoder_decoder else ()
    check_missing(label, [key for key in report["missing_keys"] if not key.startswith(of_decoder)])
    check_layers(label, model, report["unexpected_keys"])
    words = None
    with contextlib.suppress(NotImplementedError, AttributeError):
        words = model.get_input_embeddings()
    if not isinstance(getattr(words, "weight", None), torch.Tensor):
        raise ValueError(
            f"{label!r} reads no text: {type(model).__name__} has no table of word embeddings; "
            "give a language model"
        )
    return config, model


def laid_out(config: Any) -> tuple[torch.nn.Module, torch.nn.Module]:
    """A language model with its head, and what is loaded of it, both without storage."""
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

    kind = {
        "encoder": AutoModelForMaskedLM, "decoder": AutoModelForCausalLM,
        "encoder-decoder": AutoModelForSeq2SeqLM,
    }[kind_of(config)]  # fmt: skip
    try:
        with torch.device("meta"):
            model = kind.from_config(config)
    except ValueError:
        name = type(config).__name__
        raise ValueError(f"{name} is not of a language model of transformers: give one") from None
    return model, model.get_encoder() if config.is_encoder_decoder else model.base_model


def load_config(label: str, folder: Path) -> Any:
    """The configuration, where neither it nor the tokenizer needs Python code of its own."""
    from transformers import AutoConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    content, words = read_json(folder / "config.json"), folder / "tokenizer_config.json"
    remote = read_json(words).get("auto_map") if words.exists() else None
    remote = remote.get("AutoTokenizer") if isinstance(remote, dict) else remote
    architecture, part = content.get("model_type"), "its tokenizer" if remote else None
    # Code that comes along with an architecture of transformers is not used.
    if architecture not in CONFIG_MAPPING:
        if "auto_map" not in content:
            raise ValueError(
                f"{label!r} has the architecture {architecture!r} (config.json), which the "
                "installed transformers does not know"
            )
        part = f"the architecture {architecture!r}"
    if part:
        raise ValueError(
            f"{label!r} needs Python code of its own for {part} (auto_map), and code that comes "
            "with a model is never run here: use a model whose architecture transformers has"
        )
    with quiet(), load_errors(label, folder):
        return AutoConfig.from_pretrained(folder, **LOCAL)


def load_tokenizer(label: str, folder: Path) -> Any:
    """The tokenizer of a folder."""
    from transformers import AutoTokenizer

    with quiet(), load_errors(label, folder, "the tokenizer of "):
        return AutoTokenizer.from_pretrained(folder, **LOCAL)


def check_missing(label: str, keys: Iterable[str]) -> None:
    """Refuse a model without weights that its config asks for (a pooler's apart)."""
    if missing := sorted(key for key in keys if "pooler." not in key):
        raise ValueError(
            f"{label!r} lacks {len(missing)} of the weights its config.json asks for "
            f"({', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}): "
            "they would be random; check that config and weights belong together"
        )


def check_layers(label: str, model: Any, unexpected: Iterable[str]) -> None:
    """Refuse weights without a place that are as the model's own but for the layer's number."""
    placed = {re.sub(r"\d+", "#", key) for key in model.state_dict()}
    left = sorted(
        key
        for key in (key.removeprefix(model.base_model_prefix + ".") for key in unexpected)
        if re.search(r"\d", key) and re.sub(r"\d+", "#", key) in placed
        if not (model.config.is_encoder_decoder and key.startswith("decoder."))
    )
    if left:
        raise ValueError(
            f"{label!r} has {len(left)} weights of further layers than its config.json asks for "
            f"({left[0]} ...), to be left out: check that config and weights belong together"
        )


def own_pooling(folder: Path) -> str | None:
    """The pooling that a folder of sentence-transformers names (``1_Pooling/config.json``)."""
    for root in (folder, folder.parent):
        for file in sorted(root.glob("*_Pooling/config.json")):
            for key, value in read_json(file).items():
                if key.startswith("pooling_mode_") and value is True:
                    name = key.removeprefix("pooling_mode_")
                    return _OF_SENTENCE_TRANSFORMERS.get(name, name)
    return None


def kind_of(config: Any) -> str:
    """Whether a model is an "encoder", a "decoder" or an "encoder-decoder"."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    if config.is_encoder_decoder:
        return "encoder-decoder"
    if getattr(config, "is_decoder", False):
        return "decoder"
    # BERT and its kin can be built as causal models too; what has a masked head reads both ways.
    masked = type(config) in MODEL_FOR_MASKED_LM_MAPPING
    return "decoder" if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and not masked else "encoder"


@contextlib.contextmanager
def load_errors(label: str, folder: Path, part: str = "") -> Iterator[None]:
    """Turn what `transformers` and its readers raise into one sentence."""
    name = f"{part}{label!r}"
    try:
        yield
    except pickle.UnpicklingError:
        raise ValueError(
            f"the weights of {label!r} in {folder} are a pickle that holds more than tensors, "
            "which could run code when read: get the model as safetensors"
        ) from None
    except Exception as error:
        told = next(
            (line for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        if isinstance(error, ImportError):
            problem = f"{name} needs a package that is not installed: {told}"
        elif "ignore_mismatched_sizes" in str(error):  # the report that it points at is kept quiet
            problem = (
                f"{name} has weights of other sizes than its config.json asks for: take the "
                "config.json that came with the weights"
            )
        elif "tiktoken" in str(error):  # what transformers says where it cannot read sentencepiece
            problem = f"{name} needs the package protobuf to be read: `pip install protobuf`"
        else:  # safetensors and tokenizers raise bare exceptions of their own for torn files
            problem = (
                f"{name} cannot be loaded from {folder} ({told}): if a file is torn or of another "
                "format, fetch the model again"
            )
        raise ValueError(problem) from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars and loading reports out of notebooks; we check ourselves."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
