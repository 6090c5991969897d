"""A model by its name: loaded (`Encoder`), its untrained twin, with a head; precisions by name.

"tf32" is float32 whose products are taken in TF32 (10 bits of mantissa) where a CUDA device has it,
as PyTorch 1.7 to 1.11 did unasked; elsewhere it is float32. As a name it is part of asks.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pandas import DataFrame

from xlx.results import checks, paths
from xlx.results.deferred import deferred, without_gradients
from xlx.results.settings import current, usual_device
from xlx.results.store import written_whole
from xlx.subjects import folders, identity
from xlx.subjects.identity import Identity, Name, content_of, model_files
from xlx.subjects.pooling import OWN, OwnVector, own_vector

torch = deferred("torch")

#: What precisions are called.
DTYPES = ("float32", "bfloat16", "float16", "tf32")
#: Those that a model is fine-tuned in: float16 would need its loss scaled.
OF_TRAINING = ("float32", "bfloat16", "tf32")


def weight_type(dtype: str) -> torch.dtype:
    """The type of the weights at a precision of `DTYPES`."""
    return getattr(torch, dtype.replace("tf", "float"))


@contextmanager
def tf32_products(device: torch.device, wanted: bool) -> Iterator[None]:
    """Within, products of float32 on a CUDA device go by TF32, if wanted."""
    if not wanted or device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def products(device: torch.device) -> AbstractContextManager[Any]:
    """Within, products of bfloat16 on a CPU go by way of float32 if it lacks the instructions."""
    return nullcontext() if device.type != "cpu" or supported() else _by_float32()()


@cache
def supported() -> bool:
    """Whether this processor has fast products in bfloat16."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@cache
def _by_float32() -> type[AbstractContextManager[Any]]:
    from torch.utils._python_dispatch import TorchDispatchMode

    names = ("mm", "bmm", "addmm", "baddbmm", "linear", "matmul")
    in_float32 = {getattr(torch.ops.aten, name).default for name in names}

    class ByFloat32(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, arguments: tuple = (), options: Any = None
        ) -> Any:
            options = options or {}
            if function not in in_float32 or arguments[0].dtype != torch.bfloat16:
                return function(*arguments, **options)
            wide = [x.float() if isinstance(x, torch.Tensor) else x for x in arguments]
            return function(*wide, **options).bfloat16()

    return ByFloat32


@checks.typed()
def untrained_folder(name: Name, seed: int) -> Path:
    """The folder of a model with the config and the tokenizer of another and weights by a seed.

    Kept in the cache of this machine; weights are float32, drawn on the CPU. Raises as `load`.
    """
    from transformers import AutoModel

    checks.whole(seed, "seed", least=0)
    label, folder, _ = identity.find(name)
    files, made = model_files(label, folder), identity.twin_folder(name, seed)
    if made.exists():
        return made
    config = folders.load_config(label, folder)
    with torch.random.fork_rng(devices=[]), folders.quiet(), folders.load_errors(label, folder):
        torch.manual_seed(seed)
        model = AutoModel.from_config(config, dtype=torch.float32)
    made.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(made, durable=False) as beside:
        beside.mkdir()
        with folders.quiet():
            model.save_pretrained(beside)
        for file in files:
            if identity.WORDS.fullmatch(file.name):
                shutil.copy(file, beside)
    return made


#: What configurations call the shares of units that are left out in training.
#: What `transformers` calls the heads that find answers, and that classify.
_READS, _CLASSIFIES = "QuestionAnswering", "SequenceClassification"
_DROPOUT = re.compile(r"(?:^|_)dropout(?:_prob|_rate)?$|_pdrop$")


@dataclass(frozen=True)
class Encoder(Identity):
    """A loaded model in evaluation mode, with its tokenizer; taken wherever a model's name is.

    One that `load` cannot make is made by hand, around a bare model of `transformers`; its
    ``fingerprint`` is then yours to give, and decides which stored results are taken for its own.
    """

    model: torch.nn.Module  # without a language-modelling head; of mT5 and the like the encoder
    tokenizer: Any
    kind: str  # "encoder", "decoder" or "encoder-decoder"
    device: torch.device
    dtype: torch.dtype  # of weights and arithmetic
    own: OwnVector | None = None  # what a folder of sentence-transformers declares
    tf32: bool = False  # whether products of float32 go by TF32
    apart: bool = False  # whether padding moves its states, so that batches are of one length
    notes: tuple[str, ...] = ()  # what it does otherwise than one may think

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            f"{self.name!r} is loaded in this process and not sent to another: give its name"
        )

    @cached_property
    def own_reader(self) -> Encoder:
        """The same model, reading text as its folder declares; ValueError where it cannot be."""
        if self.own is None or self.own.problem:
            what = "nothing" if self.own is None else f"{self.own.problem}: not supported here"
            raise ValueError(
                f"pooling 'own': the folder of {self.name!r} declares of its sentence vectors "
                f"{what}; take 'mean', 'last' or 'cls'"
            )
        return replace(self, tokenizer=self.own.words(self.tokenizer))

    def reader(self, pooling: str) -> Encoder:
        """Itself, or for "own" `own_reader`."""
        return self.own_reader if pooling == OWN else self

    @property
    def precision(self) -> str:
        """What its precision is called: of `DTYPES`."""
        return "tf32" if self.tf32 else str(self.dtype).removeprefix("torch.")

    @property
    def n_layers(self) -> int:
        """Number of Transformer layers; there is one hidden state more (the embedding layer's)."""
        return int(self._config.num_hidden_layers)

    @property
    def dim(self) -> int:
        """Width of the hidden states."""
        return int(self._config.hidden_size)

    @property
    def vocabulary_size(self) -> int:
        """Rows of the embedding table."""
        return int(self.model.get_input_embeddings().weight.shape[0])

    @property
    def pad_id(self) -> int:
        """The id that fills up short rows: masked out, so any serves where none is named."""
        tokenizer = self.tokenizer
        # The model's own first: RoBERTa numbers positions by what is not its padding id.
        named = getattr(self._config, "pad_token_id", None)
        for token in (named, tokenizer.pad_token_id, tokenizer.eos_token_id):
            if isinstance(token, int) and 0 <= token < self.vocabulary_size:
                return token
        return 0

    @property
    def max_length(self) -> int | None:
        """How many tokens, special ones included, a sequence may have; None: no limit."""
        limits = []
        positions = getattr(self._config, "max_position_embeddings", None)
        if isinstance(positions, int) and positions > 0:
            # RoBERTa and its kin count positions from the padding id + 1 on.
            limits.append(positions - self._first_position)
        # Tokenizers without a limit of their own say 10^30.
        if self.tokenizer.model_max_length < 10**6:
            limits.append(int(self.tokenizer.model_max_length))
        return min(limits, default=None)

    @checks.typed()
    def limit(self, max_length: int | None, *, pair: bool = False) -> int | None:
        """Tokens an input may have: ``max_length``, or where that is None what the model takes.

        ValueError for more than it takes, or where special tokens leave no room for text.
        """
        if max_length is None:
            return self.max_length
        if self.max_length is not None and max_length > self.max_length:
            raise ValueError(
                f"max_length is {max_length}, but {self.name!r} takes {self.max_length} tokens"
            )
        n_special = self.tokenizer.num_special_tokens_to_add(pair=pair)
        if max_length <= n_special + pair:
            raise ValueError(
                f"max_length is {max_length}, and {n_special} of the tokens of {self.name!r} are "
                f"special ones: no room is left for {'two sentences' if pair else 'the sentence'}"
            )
        return max_length

    @property
    def _first_position(self) -> int:
        for name, module in self.model.named_modules():
            if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
                return 0 if module.padding_idx is None else module.padding_idx + 1
        return 0

    @property
    def _config(self) -> Any:
        return self.model.config.get_text_config()


@checks.typed()
def load(
    name: Name,
    *,
    step: int | None = None,
    revision: str | None = None,
    device: str | torch.device | None = None,
    dtype: str | None = None,
    device_map: folders.DeviceMap | None = None,
    quantization: str | None = None,
) -> Encoder:
    """Load a model for looking into its hidden states.

    Parameters
    ----------
    name : str, path or Checkpoint
        Looked for in this order: a model shipped in `data/models-long`, a public model that `make
        models` has fetched, a folder, the hub. ``@untrained`` behind a name: its untrained twin. An
        `Encoder` is given back as it is.
    step, revision : optional
        A checkpoint of a series (a local series without it: the last); branch, tag or commit of a
        hub repository.
    device, dtype : optional
        As in `xlx.settings`: "cpu", "cuda", "cuda:1"; "float32", "tf32", or "bfloat16", "float16"
        for weights and arithmetic (pooled vectors are float32 in any case).
    device_map : str or mapping, optional
        Instead of a device: "auto" lets accelerate spread the model over GPUs, memory and disk, a
        mapping says where each part goes. The fingerprint is the same.
    quantization : str, optional
        "8bit" or "4bit": packed by bitsandbytes, on CUDA. It is part of the fingerprint.

    Raises ModelNotFoundError if there is no such model, or no network to get it with; ValueError if
    it cannot be used: needs code of its own, lacks weights or a tokenizer, has weights that its
    config leaves out, is an adapter, reads no text, is larger than the free memory (before anything
    is loaded), has no such step, or is a shipped file that was changed.
    """
    options = (step, revision, device, dtype, device_map, quantization)
    if isinstance(name, Encoder):
        if any(option is not None for option in options):
            raise ValueError(f"{name.name!r} is loaded already: options are for names")
        return name
    dtype = dtype or current().dtype
    checks.one_of(dtype, DTYPES, "dtype")
    if quantization is not None:
        checks.one_of(quantization, folders.QUANTIZATIONS, "quantization")
    if device is not None and device_map is not None:
        raise ValueError("device and device_map are both given: a model goes to one, or is spread")
    device_map = device_map or (current().device_map if device is None else None)
    torch_device = device_of(device)
    label, folder, step = _found(name, step, revision)
    content = content_of(label, folder)
    if options == (None,) * len(options) and (there := _HELD.get((label, content, current()))):
        return there
    if device_map is None and quantization is None:
        folders.check_fits(label, model_files(label, folder), weight_type(dtype), torch_device)
    config, model = folders.load_model(label, folder, weight_type(dtype), device_map, quantization)
    torch_device = placed(model, torch_device, spread=device_map is not None)
    kind = folders.kind_of(config)
    if kind == "encoder-decoder":
        model = model.get_encoder()
    model.requires_grad_(False).eval()
    words = _words(label, folder, content)
    if quantization is not None:
        content = hashlib.sha256(f"{content} {quantization}\n".encode()).hexdigest()
    encoder = Encoder(
        label,
        step,
        content,
        model,
        words,
        kind,
        torch_device,
        weight_type(dtype),
        own_vector(label, folder),
        dtype == "tf32",
    )
    if folders.code_of_its_own(folder):
        name = type(model).__name__
        note = f"its folder brings code of its own, which is not run: it is read as {name}"
        encoder = replace(encoder, notes=(note,))
    return _as_observed(encoder, folders.reads_both_ways(config))


#: Models that somebody holds: label, content and settings → model.
_HELD = WeakValueDictionary()


def hold(name: Name) -> Encoder:
    """As `load`; while what it gives is in use, `load` gives it for that name again."""
    encoder = load(name)
    _HELD[encoder.name, encoder.fingerprint, current()] = encoder
    return encoder


#: Model inputs of a text or pair: ``input_ids``, and for a model that is told ``token_type_ids``.
Row = Mapping[str, Sequence[int]]


def padded(rows: Sequence[Row], pad_id: int, device: torch.device) -> dict[str, torch.Tensor]:
    """Rows as tensors ``(n, longest)`` with the ``attention_mask``, filled up on the right."""
    rows = [{**row, "attention_mask": [1] * len(row["input_ids"])} for row in rows]
    columns = {}
    for name in rows[0]:
        column = [torch.tensor(row[name], dtype=torch.int64) for row in rows]
        fill = pad_id if name == "input_ids" else 0
        columns[name] = torch.nn.utils.rnn.pad_sequence(
            column, batch_first=True, padding_value=fill
        ).to(device)
    return columns


@without_gradients
def token_states(encoder: Encoder, rows: Sequence[Row]) -> tuple[torch.Tensor, ...]:
    """What a model gives as states of a batch, ``(n, longest, dim)`` a layer where all is well."""
    inputs = padded(rows, encoder.pad_id, encoder.device)
    if inputs["attention_mask"].all():
        # Without padding there is nothing to mask, and attention without a mask is faster.
        inputs["attention_mask"] = None
    with tf32_products(encoder.device, encoder.tf32):
        output = encoder.model(**inputs, output_hidden_states=True, return_dict=True)
    return tuple(getattr(output, "hidden_states", None) or ())


#: Share of its length by which a state may move beside padding or other rows; at a lower precision
#: as many of its steps.
MOVED, STEPS = 1e-4, 16


@dataclass(frozen=True)
class Observed:
    """What a model does with its input, seen in four passes of a few tokens.

    ``both_ways``: whether a token's state depends on a later one, None where rounding may have
    moved it; ``padding``, ``others``: whether a row's states move by more than rounding beside a
    longer row, and beside another of its length.
    """

    both_ways: bool | None = None
    padding: bool = False
    others: bool = False


def observed(encoder: Encoder) -> Observed:
    """See how a model reads: ask it, rather than a list of names.

    ValueError for one that reads no row of tokens.
    """
    special = {*encoder.tokenizer.all_special_ids}
    try:
        ids = [i for i in range(encoder.vocabulary_size) if i not in special][:7]
        row, other, longer = ids[:4], [*ids[:3], *ids[4:5]], ids[::-1]
        passes = [[row], [other], [row, other], [row, longer]]
        seen = [token_states(encoder, [{"input_ids": x} for x in rows]) for rows in passes]
    except Exception as error:  # whatever code of an architecture raises
        raise ValueError(
            f"{encoder.name!r} reads no row of tokens ({checks.reason(error)}): give a language "
            "model"
        ) from error
    if len(ids) < 7 or not seen[0] or any(x.shape[1:2] != (4,) for x in seen[0]):
        return Observed()  # what is wrong is said where states are read

    def moved(number: int, n: int) -> float:
        pairs = zip(seen[0], seen[number], strict=True)
        ends = [(x[0, :n].double().cpu(), y[0, :n].double().cpu()) for x, y in pairs]
        return max(float((x - y).norm() / x.norm().clamp_min(1e-30)) for x, y in ends)

    step = torch.finfo(encoder.dtype).eps
    slack = max(MOVED, STEPS * step)
    if getattr(encoder.model, "hf_quantizer", None):  # each batch is quantised anew
        slack = torch.inf
    later = moved(1, 3)
    both_ways = None if 0 < later <= STEPS * step else later > 0
    return Observed(both_ways, moved(3, 4) > slack, moved(2, 4) > slack)


def _as_observed(encoder: Encoder, sign: str | None) -> Encoder:
    """A model as it was seen to read; ``sign``: the field of its config that says "both ways".

    ValueError where it does not do that, as the code of its class cannot; or where a sentence's
    states depend on which others share its batch.
    """
    seen, name = observed(encoder), type(encoder.model).__name__
    if sign and seen.both_ways is False:
        raise ValueError(
            f"{encoder.name!r} is to read both ways ({sign} in its config.json), and {name} of "
            "transformers reads from left to right: take a version of transformers that can, or "
            "take the field out to measure it as a decoder"
        )
    if seen.others:
        raise ValueError(
            f"{encoder.name!r} gives a sentence other states beside other sentences of its length, "
            f"so that no sentence has a vector: {name} cannot be measured"
        )
    kind, notes = encoder.kind, [*encoder.notes]
    if kind != "encoder-decoder" and seen.both_ways is not None:
        kind = "encoder" if seen.both_ways else "decoder"
    if kind != encoder.kind:
        way = "both ways" if seen.both_ways else "from left to right"
        notes.append(f"its architecture counts as {encoder.kind}, and it was seen to read {way}")
    if seen.padding:
        notes.append("padding moves its states, so that batches are of one length")
    return replace(encoder, kind=kind, apart=seen.padding, notes=tuple(notes))


def placed(model: Any, device: torch.device, *, spread: bool = False) -> torch.device:
    """Move a model to a device, unless it was spread or quantised; where it takes its input."""
    places = getattr(model, "hf_device_map", None)
    if not (spread or places or getattr(model, "hf_quantizer", None)):
        model.to(device)
        return device
    # What is kept in memory or on disk comes to the first device.
    device = model.get_input_embeddings().weight.device
    if device.type == "meta":
        on_devices = (x for x in (places or {}).values() if x not in ("cpu", "disk"))
        device = torch.device(next(on_devices, "cpu"))
    return device


def _found(
    name: Name, step: int | None = None, revision: str | None = None
) -> tuple[str, Path, int | None]:
    """`find`, after an untrained twin has been made where there is none yet; a whole folder."""
    if twin := identity.twin_parts(name):
        untrained_folder(*twin)
    label, folder, step = identity.find(name, step, revision)
    model_files(label, folder)
    return label, folder, step


def tokenizer(name: Name) -> Any:
    """The tokenizer of a model alone. Raises as `load`."""
    if isinstance(name, Encoder):
        return name.tokenizer
    label, folder, _ = _found(name)
    return _words(label, folder, content_of(label, folder))


@lru_cache(maxsize=3)  # to read one of 250,000 pieces takes seconds
def _words(label: str, folder: Path, content: str) -> Any:
    return folders.load_tokenizer(label, folder)


def configuration(name: Name) -> Any:
    """The configuration of a model alone. Raises as `load`."""
    return folders.load_config(*_found(name)[:2])


def n_layers(name: Name) -> int:
    """How many layers a model has: as its ``config.json`` says, without a library, where it does.

    Raises as `load`.
    """
    written = identity.read_json(_found(name)[1] / "config.json")
    return written.get("num_hidden_layers") or configuration(name).num_hidden_layers


def fastest_type(device: str | torch.device | None) -> str:
    """What ``--dtype auto`` takes: "bfloat16" where a device has units for it, else "float32"."""
    if device_of(device).type == "cuda":
        units = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        units = torch.cpu._is_avx512_bf16_supported()
    return "bfloat16" if units else "float32"


def device_of(device: str | torch.device | None) -> torch.device:
    """The device of a name (ValueError if there is none); None: of the settings, or CUDA."""
    return checks.device(usual_device() if device is None else device)


def task_model(
    name: Name,
    n_classes: int | None,
    seed: int,
    max_length: int | None = None,
    *,
    dropout: float | None = None,
) -> tuple[Any, Any, int | None]:
    """An encoder with a new head, to be fine-tuned: it classifies its input, or finds answers.

    The head is that of `transformers` for sequence classification, or, where ``n_classes`` is None,
    for extractive question answering; its new weights are normal with the variance of BERT's at a
    width of 768 (0.02 ** 2), times 768 / width, and come from ``seed``. A model that was fine-tuned
    already keeps its head, if that is for ``n_classes``. Weights are float32, on the CPU.
    ``dropout``: of all dropouts; None: as in the config.

    Returns the model, its tokenizer and the `Encoder.limit` of an input. Raises as `load`; also for
    a model that is no encoder, and where ``max_length`` or ``dropout`` do not fit.
    """
    label, folder, _ = _found(name)
    config, options = folders.load_config(label, folder), {}
    if (kind := folders.kind_of(config)) != "encoder":
        raise ValueError(f"{label!r} is a model of the kind {kind}: only encoders are fine-tuned")
    if dropout is not None:
        options = {key: dropout for key in config.to_dict() if _DROPOUT.search(key)}
        if not options:
            raise ValueError(f"the config of {label!r} has no dropout that could be {dropout}")
    if n_classes is not None:
        options["num_labels"] = n_classes
    head = _READS if n_classes is None else _CLASSIFIES
    model, missing, words = _with_head(label, folder, head, options)
    sd = 0.02 * (768 / config.get_text_config().hidden_size) ** 0.5
    _draw(model, missing, sd, torch.Generator().manual_seed(seed))
    return model, words, bare(label, model, words).limit(max_length, pair=True)


def headed_model(
    name: Name, max_length: int | None = None, *, reads: bool = False
) -> tuple[Any, Any, int | None]:
    """A model with the head that it was fine-tuned with: a classifier, or one that finds answers.

    As `task_model`, of any kind. Raises as `load`, also for one without
    such a head, and a decoder without a padding token, by which its head finds the last one.
    """
    label, folder, _ = _found(name)
    decoder = folders.kind_of(folders.load_config(label, folder)) == "decoder"
    model, missing, words = _with_head(label, folder, _READS if reads else _CLASSIFIES, {})
    if missing:
        raise ValueError(
            f"{label!r} has no head that {'finds answers' if reads else 'classifies'} (its weights "
            f"lack {missing[0]}): give a model that is fine-tuned, or fine-tune this one"
        )
    if decoder:
        if (padding := model.config.get_text_config().pad_token_id) is None:
            raise ValueError(
                f"{label!r} has no padding token, by which its head finds the last token: set "
                "pad_token_id in its config.json"
            )
        words.pad_token_id = padding
    limit = bare(label, model, words).limit(max_length, pair=True)
    return model.requires_grad_(False), words, limit


def language_model(name: Name) -> tuple[Any, Any]:
    """A decoder with its head over the vocabulary, in the precision of the settings; its tokenizer.

    Raises as `load`, also for a model that is no decoder.
    """
    label, folder, _ = _found(name)
    if (kind := folders.kind_of(folders.load_config(label, folder))) != "decoder":
        raise ValueError(f"{label!r} is a model of the kind {kind}: it foresees no next word")
    options = {"dtype": weight_type(current().dtype)}
    model, missing, words = _with_head(label, folder, "CausalLM", options)
    folders.check_missing(label, missing)
    return model.requires_grad_(False).eval(), words


def bare(name: str, model: Any, tokenizer: Any, kind: str = "encoder") -> Encoder:
    """A model of yours without its head, to be read as it is now, where it is; of no content."""
    weights = next(model.parameters())
    inner = model.base_model
    return Encoder(name, None, "", inner, tokenizer, kind, weights.device, weights.dtype)


def _with_head(
    label: str, folder: Path, head: str, options: Mapping[str, Any]
) -> tuple[Any, list[str], Any]:
    """A model with a head, float32 if not said; the weights that its files lack, its tokenizer."""
    import transformers

    content_of(label, folder)  # which refuses files that were changed
    # The weights that are missing are drawn at once, from everybody's random numbers: `_draw`
    # replaces them.
    with folders.quiet(), folders.load_errors(label, folder), torch.random.fork_rng(devices=[]):
        model, report = getattr(transformers, f"AutoModelFor{head}").from_pretrained(
            folder,
            weights_only=True,
            ignore_mismatched_sizes=False,
            output_loading_info=True,
            **{"dtype": torch.float32, **folders.LOCAL, **options},
        )
    inside = model.base_model_prefix + "."
    folders.check_layers(label, model.base_model, report["unexpected_keys"])
    folders.check_missing(label, [key for key in report["missing_keys"] if key.startswith(inside)])
    return model, sorted(report["missing_keys"]), folders.load_tokenizer(label, folder)


@without_gradients
def _draw(model: torch.nn.Module, names: list[str], sd: float, generator: torch.Generator) -> None:
    """New weights: matrices normal with this standard deviation, biases zero."""
    parameters = dict(model.named_parameters())
    for name in names:
        if parameters[name].ndim > 1:
            parameters[name].normal_(0.0, sd, generator=generator)
        elif name.endswith("bias"):
            parameters[name].zero_()


def list_models() -> DataFrame:
    """All names that `load` knows without a path or a network, one row per model.

    ``where`` is "shipped", "fetched" (by `make models`), or the command that fetches it.
    """
    rows = []
    for folder in sorted(paths.MODELS.glob("*/")):
        series = identity.local_series(folder.name, folder)
        last = series[-1].path if series else folder
        if not (last / "config.json").is_file():
            continue  # a record of checkpoints alone
        config = json.loads((last / "config.json").read_text())
        kind = "decoder" if "CausalLM" in config["architectures"][0] else "encoder"
        size = config["num_hidden_layers"], config["hidden_size"]
        rows.append((folder.name, kind, *size, "MIT", max(1, len(series)), "shipped"))
    for model in identity.public_models().values():
        where = "fetched" if (model.folder / "config.json").is_file() else model.command
        size = int(model.layers), int(model.width)
        rows.append((model.name, model.kind, *size, model.licence, 1, where))
    columns = ["model", "kind", "layers", "width", "licence", "checkpoints", "where"]
    return DataFrame(rows, columns=columns)
