"""A model's folder to a model, a tokenizer or a configuration; what cannot be used is refused.

No code that comes with a model is ever run, and no pickle read that holds more than tensors.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import math
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from xlx.results import checks
from xlx.results.deferred import deferred
from xlx.subjects.identity import PICKLED_WEIGHTS, read_json

torch = deferred("torch")

#: Part of a model → its device ("cuda:0", 0, "cpu", "disk"); or how accelerate is to spread it.
DeviceMap = str | Mapping[str, int | str]
#: How `transformers` is called: its own code alone, and nothing fetched.
LOCAL = {"trust_remote_code": False, "local_files_only": True}
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
    options = {} if device_map is None else {"device_map": device_map}
    if options and importlib.util.find_spec("accelerate") is None:
        raise ValueError("device_map needs the package accelerate: `pip install accelerate`")
    if quantization is not None:
        with load_errors(label, folder):
            bits = {**QUANTIZATIONS[quantization], "bnb_4bit_compute_dtype": dtype}
            options["quantization_config"] = BitsAndBytesConfig(**bits)
    with contextlib.suppress(KeyError):
        model_class = MODEL_MAPPING[type(config)]
        if "add_pooling_layer" in inspect.signature(model_class.__init__).parameters:
            options["add_pooling_layer"] = False  # an extra map of the first token, not a layer
    with quiet(), load_errors(label, folder):
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            weights_only=True,
            output_loading_info=True,
            **LOCAL,
            **options,
        )
    if hasattr(model, "pad_index"):  # of XLM, which would not count tokens of this id
        model.pad_index = -1
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


def load_config(label: str, folder: Path) -> Any:
    """The configuration, where neither it nor the tokenizer needs Python code of its own."""
    from transformers import AutoConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    content, words = read_json(folder / "config.json"), folder / "tokenizer_config.json"
    remote = read_json(words).get("auto_map") if words.exists() else None
    remote = remote.get("AutoTokenizer") if isinstance(remote, dict) else remote
    part, architecture = "its tokenizer" if remote else None, content.get("model_type")
    if not isinstance(architecture, str | None):
        raise ValueError(f"{folder / 'config.json'}: model_type is no name: fetch the model again")
    # Code that comes along with an architecture of transformers is not used: see `_check_class`.
    if architecture not in CONFIG_MAPPING and "auto_map" in content:
        part = f"the architecture {architecture!r}"
    if part:
        raise ValueError(
            f"{label!r} needs Python code of its own for {part} (auto_map), and code that comes "
            "with a model is never run here: use a model whose architecture transformers has"
        )
    with quiet(), load_errors(label, folder):
        config = AutoConfig.from_pretrained(folder, **LOCAL)
    if auto_map := content.get("auto_map"):  # else no class is loaded before the weights are
        _check_class(label, config, auto_map)
    return config


def _check_class(label: str, config: Any, auto_map: Mapping[str, Any]) -> None:
    """Refuse a model that was trained as another class than the one it would be loaded as."""
    from transformers import MODEL_MAPPING

    classes = MODEL_MAPPING.get(type(config), ())
    ours = [x.__name__ for x in (classes if isinstance(classes, tuple) else [classes])]
    starts = "|".join(re.escape(name.removesuffix("Model")) for name in ours)
    for key, named in auto_map.items():
        name = (named if isinstance(named, str) else str((named or [""])[0])).rpartition(".")[2]
        kin = re.fullmatch(rf"(?:{starts})(?:Model|LMHeadModel|For\w+)", name, re.IGNORECASE)
        if key.startswith("AutoModel") and ours and not kin:
            raise ValueError(
                f"{label!r} was trained as {name}, Python code of its own (auto_map), which is not "
                f"run here, and {ours[0]} of transformers may compute other vectors from its "
                "weights: to measure these all the same, take auto_map out of its config.json"
            )


def code_of_its_own(folder: Path) -> bool:
    """Whether a folder names Python code of its own for the model, which is never run."""
    named = read_json(folder / "config.json").get("auto_map")
    return isinstance(named, Mapping) and any(key.startswith("AutoModel") for key in named)


def load_tokenizer(label: str, folder: Path) -> Any:
    """The tokenizer of a folder."""
    from transformers import AutoTokenizer

    with quiet(), load_errors(label, folder, "the tokenizer of "):
        return AutoTokenizer.from_pretrained(folder, **LOCAL)


def check_missing(label: str, keys: Iterable[str]) -> None:
    """Refuse a model without weights that its config asks for (a pooler's apart)."""
    if missing := sorted(key for key in keys if "pooler." not in key):
        raise ValueError(
            f"{label!r} lacks {len(missing)} of the weights its config.json asks for ({missing[0]} "
            "...), which would be random: check that config and weights belong together"
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


def kind_of(config: Any) -> str:
    """What its configuration says: that a model is an "encoder", "decoder" or "encoder-decoder".

    `loading.observed` asks the model itself, which knows better.
    """
    from transformers import (
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
        MODEL_FOR_MASKED_LM_MAPPING,
    )

    if config.is_encoder_decoder:
        return "encoder-decoder"
    if reads_both_ways(config):
        return "encoder"
    if getattr(config, "is_decoder", False):
        return "decoder"
    # BERT and its kin can be built as causal models too; what has a masked head reads both ways.
    masked = type(config) in MODEL_FOR_MASKED_LM_MAPPING
    writing = MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    writes = any(type(config) in mapping for mapping in writing)
    return "decoder" if writes and not masked else "encoder"


def reads_both_ways(config: Any) -> str | None:
    """What says of a decoder's architecture that each token sees all others; None: nothing."""
    text = config.get_text_config()
    signs = {"is_causal": False, "use_bidirectional_attention": True}
    return next((name for name, value in signs.items() if getattr(text, name, None) is value), None)


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
        reason = checks.reason(error)
        if isinstance(error, ImportError):
            problem = f"needs a package that is not installed: {reason}"
        elif "ignore_mismatched_sizes" in str(error):  # the report that it points at is kept quiet
            problem = "has weights of other sizes than its config.json asks for: take its own"
        elif re.search("[\ud800-\udfff]", str(folder)):
            problem = f"lies in {str(folder)!r}, a name that is not UTF-8: rename the folder"
        elif "tiktoken" in str(error):  # what transformers says where it cannot read sentencepiece
            problem = "needs the package protobuf to be read: `pip install protobuf`"
        else:  # safetensors and tokenizers raise bare exceptions of their own for torn files
            problem = (
                f"cannot be loaded from {folder} ({reason}): if a file is torn or of another "
                "format, fetch the model again"
            )
        raise ValueError(f"{name} {problem}") from error


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


_FLOATS = ("F64", "F32", "F16", "BF16")  # as safetensors call them


def weight_bytes(files: Iterable[Path], itemsize: int) -> int:
    """Bytes of a model's weights in memory, without its language-modelling head.

    From the headers of safetensors: floating-point numbers count ``itemsize`` bytes, anything else
    (quantised weights) what it has on disk. Of pickles and torn files the files' sizes.
    """
    total = 0
    for path in files:
        if path.suffix == ".safetensors":
            try:
                with path.open("rb") as file:
                    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            except ValueError:
                total += path.stat().st_size
                continue
            for name, tensor in header.items():
                if name != "__metadata__" and not name.startswith("lm_head."):
                    begin, end = tensor["data_offsets"]
                    numbers = math.prod(tensor["shape"]) * itemsize
                    total += numbers if tensor["dtype"] in _FLOATS else end - begin
        elif PICKLED_WEIGHTS.fullmatch(path.name) and path.suffix == ".bin":
            total += path.stat().st_size
    return total


def free_bytes(device: torch.device) -> int | None:
    """Memory of a device that can be had now; None where it does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    info, limit = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
    if device.type != "cpu" or not info.is_file():
        return None
    match = re.search(r"MemAvailable:\s*(\d+) kB", info.read_text("utf-8"))
    free = int(match[1]) * 1024 if match else None
    most = limit.read_text("utf-8").strip() if limit.is_file() else "max"
    return min(free, int(most)) if free is not None and most.isdigit() else free


def check_fits(label: str, files: Iterable[Path], dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a model whose weights are larger than the free memory of the device, with both."""
    needed = weight_bytes(files, dtype.itemsize)
    for place in dict.fromkeys((device, torch.device("cpu"))):  # weights come to the latter first
        free = free_bytes(place)
        if free is not None and needed > free:
            raise ValueError(
                f"{label!r} has {needed / 1e9:.3g} GB of weights in "
                f"{str(dtype).removeprefix('torch.')}, and {place} has {free / 1e9:.3g} GB of "
                'memory free: load it with dtype="bfloat16", with quantization="8bit", or spread '
                'over devices and disk with device_map="auto"'
            )
