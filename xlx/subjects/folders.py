"""A model's folder to a model, a tokenizer or a configuration; what cannot be used is refused.

No code that comes with a model is ever run, and no pickle read that holds more than tensors.
"""

import contextlib
import importlib.util
import inspect
import json
import math
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from xlx.results import checks
from xlx.subjects.identity import PICKLED_WEIGHTS, read_json

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


#: What safetensors call the floating-point types that are read in the precision asked for.
_FLOATS = {"F64", "F32", "F16", "BF16"}
#: Rows of `weights_on_paper`.
_PARTS = ["embeddings", "one layer", "all layers", "the rest", "head", "states"]


def weight_bytes(files: Iterable[Path], itemsize: int) -> int:
    """Bytes of a model's weights in memory, without its language-modelling head.

    From the headers of safetensors: what is floating-point counts ``itemsize`` bytes a number,
    anything else (quantised weights) what it has on disk. Of pickled weights the files' sizes.
    """
    total = 0
    for path in files:
        if path.suffix == ".safetensors":
            total += _safe_bytes(path, itemsize)
        elif PICKLED_WEIGHTS.fullmatch(path.name) and path.suffix == ".bin":
            total += path.stat().st_size
    return total


def _safe_bytes(path: Path, itemsize: int) -> int:
    """Of one file; its size where the header cannot be read, which whoever loads it will tell."""
    with path.open("rb") as file:
        try:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(size, 2**28)))
            tensors = [
                (tensor["dtype"], tensor["shape"], tensor["data_offsets"])
                for name, tensor in header.items()
                if name != "__metadata__" and not name.startswith("lm_head.")
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            return path.stat().st_size
    return sum(
        itemsize * torch.Size(shape).numel() if dtype in _FLOATS else end - start
        for dtype, shape, (start, end) in tensors
    )


def free_bytes(device: torch.device) -> int | None:
    """Memory of a device that can be had now; None where it does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    info, limit = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
    if device.type != "cpu" or not info.is_file():
        return None
    found = re.search(r"MemAvailable:\s*(\d+) kB", info.read_text(encoding="utf-8"))
    free = int(found[1]) * 1024 if found else None
    most = limit.read_text(encoding="utf-8").strip() if limit.is_file() else "max"
    return min(free, int(most)) if free is not None and most.isdigit() else free


def check_fits(label: str, files: Iterable[Path], dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a model whose weights are larger than the free memory of the device, with both.

    Weights come into the memory of the processor first.
    """
    needed = weight_bytes(files, dtype.itemsize)
    for place in dict.fromkeys((device, torch.device("cpu"))):
        free = free_bytes(place)
        if free is not None and needed > free:
            raise ValueError(
                f"{label!r} has {needed / 1e9:.3g} GB of weights in "
                f"{str(dtype).removeprefix('torch.')}, and {place} has {free / 1e9:.3g} GB of "
                'memory free: load it with dtype="bfloat16", with quantization="8bit", or spread '
                'over devices and disk with device_map="auto"'
            )


def weights_on_paper(config: Any, *, n_tokens: int) -> pd.DataFrame:
    """What a model takes in memory, by part and precision, from its config alone.

    `transformers` lays the model out without storage. Rows: ``embeddings`` (the table of words),
    ``one layer`` (the largest), ``all layers``, ``the rest`` (positions, norms), ``head`` (of
    language modelling, without what it shares with the embeddings; `load` leaves it out),
    ``states`` (the vectors of all layers, of a batch of ``n_tokens`` tokens) and ``needed``, which
    is all but the head, and without what a layer holds while it computes. Of an encoder-decoder
    the encoder counts.

    Columns: ``parameters`` (of states: numbers), and GB (10⁹ bytes) in ``float32``, in ``bfloat16``
    (or float16), and in ``8bit`` and ``4bit``: the matrices of layers packed as bitsandbytes does,
    all else in 16 bits. ValueError for a config that is not of a language model.
    """
    checks.whole(n_tokens, "n_tokens")
    model, inner = laid_out(config)
    words = inner.get_input_embeddings().weight
    rows = []
    for name, module in inner.named_modules():
        for parameter in module.parameters(recurse=False):
            layer = re.search(r"\.(\d+)(\.|$)", f".{name}")
            part = "embeddings" if parameter is words else layer[1] if layer else "the rest"
            packed = layer and parameter.ndim == 2 and type(module).__name__ in ("Linear", "Conv1D")
            rows.append((part, *_gigabytes(parameter.shape, bool(packed))))
    own = {id(parameter) for parameter in inner.parameters()}
    head = [] if config.is_encoder_decoder else [x for x in model.parameters() if id(x) not in own]
    rows += [("head", *_gigabytes(parameter.shape)) for parameter in head]
    n_layers = len({part for part, *_ in rows if part.isdigit()})
    states = (n_layers + 1, n_tokens, config.get_text_config().hidden_size)
    rows.append(("states", *_gigabytes(states)))
    columns = ["part", "parameters", "float32", "bfloat16", "8bit", "4bit"]
    table = pd.DataFrame(rows, columns=columns).groupby("part").sum()
    layers = table[table.index.str.isdigit()]
    table.loc["one layer"], table.loc["all layers"] = layers.max(), layers.sum()
    table = table.reindex(_PARTS, fill_value=0.0)
    table.loc["needed"] = table.drop(index=["one layer", "head"]).sum()
    return table.astype({"parameters": int})


def _gigabytes(shape: Sequence[int], packed: bool = False) -> tuple[float, ...]:
    """Numbers of a tensor, and its GB in float32, in 16 bits, and in 8 and 4.

    Beside packed numbers lie their scales: a float32 a row (8 bits), or every 64 numbers (4 bits).
    """
    n = math.prod(shape)
    small = (n + 4 * shape[0], n / 2 + 4 * n / 64) if packed else (2 * n, 2 * n)
    return (n, *(size / 1e9 for size in (4 * n, 2 * n, *small)))
