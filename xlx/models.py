"""Load any Transformer whose hidden states we want to look into.

Encoder-only (XLM-R, BERT, DistilBERT), decoder-only (Llama, GPT-2) and encoder-decoder models (mT5,
mBART, M2M100: their encoder) come through one door, `load`, from three places: the models this
repository ships, a folder of your own, the Hugging Face hub. A training history is a *series*: a
folder with `step-*` subfolders, or a hub repository with revisions called `step-1000`, `step1000`;
`checkpoints` lists it.

No code that comes with a model is ever run: `trust_remote_code` stays off, safetensors are
preferred, and pickled weights are read by torch's restricted unpickler (`weights_only=True`).

A model that needs to be told the language of its input (M2M100, NLLB, mBART) reads every sentence
under its tokenizer's default language; set ``encoder.tokenizer.src_lang`` to change it.
"""

import contextlib
import hashlib
import inspect
import json
import os
import pickle
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xlx import checks, paths
from xlx.fairseq import convert_fairseq
from xlx.settings import current

__all__ = [
    "Checkpoint",
    "Encoder",
    "Identity",
    "ModelNotFoundError",
    "NoHistoryError",
    "checkpoints",
    "classifier",
    "convert_fairseq",
    "device_of",
    "fingerprint",
    "identify",
    "load",
]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

_STEP = re.compile(r"step[-_]?(\d+)(?:-tokens\d+\w*)?", re.IGNORECASE)
_SAFE_WEIGHTS = re.compile(r"model(-\d+-of-\d+)?\.safetensors(\.index\.json)?")
_PICKLED_WEIGHTS = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin(\.index\.json)?")
#: What configurations call the shares of units that are left out in training.
_DROPOUT = re.compile(r"(?:^|_)dropout(?:_prob|_rate)?$|_pdrop$")

_WORDS = re.compile(  # what a tokenizer is read from; the first group alone can make one
    r"(tokenizer\.json|vocab\.(?:txt|json)|.*\.(?:model|spm|tiktoken)|tekken\.json)"
    r"|merges\.txt|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json"
)

#: Of a repository's configurations that of the model, and of the pooling of sentence-transformers.
_CONFIG = re.compile(r"(\d+_Pooling/)?config\.json")
_OF_SENTENCE_TRANSFORMERS = {
    "cls_token": "cls", "mean_tokens": "mean", "lasttoken": "last",
    "weightedmean_tokens": "weighted_mean",
}  # fmt: skip


class ModelNotFoundError(FileNotFoundError):
    """No model of this name: not shipped, no folder, not in the hub cache, not on the hub."""


class NoHistoryError(ValueError):
    """The model is one state, not a series of checkpoints."""


@dataclass(frozen=True)
class Checkpoint:
    """One state of a model's training history.

    Attributes
    ----------
    name : str
        Name of the series, as given to `checkpoints`.
    step : int
        Training step, 0 = untrained.
    path : Path or None
        Its folder, where the series is local.
    revision : str or None
        Its revision, where the series is on the hub.
    """

    name: str
    step: int
    path: Path | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Encoder:
    """A loaded model in evaluation mode, with its tokenizer.

    Attributes
    ----------
    model : torch.nn.Module
        The bare Transformer (no language-modelling head); of an encoder-decoder model its encoder.
    tokenizer : PreTrainedTokenizerBase
    name : str
        What it was loaded by, with the step: "mini-xlmr@step-000100".
    fingerprint : str
        SHA-256 over weights, configuration and tokenizer files: the model's name in cache keys.
    kind : str
        "encoder", "decoder" or "encoder-decoder".
    device : torch.device
    dtype : torch.dtype
        Of weights and arithmetic: float32 or bfloat16.
    step : int or None
        Training step, of a checkpoint of a series.
    own_pooling : str or None
        How a folder of sentence-transformers pools ("mean", "cls" ...), where it is one.
    """

    model: torch.nn.Module
    tokenizer: Any
    name: str
    fingerprint: str
    kind: str
    device: torch.device
    dtype: torch.dtype
    step: int | None = None
    own_pooling: str | None = None

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
        for token in (self._config.pad_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id):
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

    @property
    def _first_position(self) -> int:
        for name, module in self.model.named_modules():
            if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
                return 0 if module.padding_idx is None else module.padding_idx + 1
        return 0

    @property
    def _config(self) -> Any:
        return self.model.config.get_text_config()


def checkpoints(name: str, *, local_only: bool | None = None) -> list[Checkpoint]:
    """The training history of a model, by step.

    Parameters
    ----------
    name : str
        A shipped series ("mini-xlmr"), a folder with `step-*` subfolders, or a hub repository with
        revisions (branches or tags) called `step-1000`, `step1000` ...
    local_only : bool, optional
        Don't ask the hub, only its local cache. Default: ask where it can be reached.

    Raises
    ------
    ModelNotFoundError
        If there is no model of this name.
    NoHistoryError
        If it has no training history (a ValueError).
    """
    folder = _folder(name)
    if folder is not None:
        series = _series(name, folder)
        if not series:
            raise NoHistoryError(
                f"{folder} is no checkpoint series: it has no subfolder called step-<number>"
            )
        return series
    found = {}
    for revision in _hub_revisions(name, _offline(local_only)):
        match = _STEP.fullmatch(revision)
        if match:
            found[int(match[1])] = Checkpoint(name, int(match[1]), revision=revision)
    if not found:
        raise NoHistoryError(
            f"the hub model {name!r} has no revision called step-<number>"
            f"{' in the local cache' if _offline(local_only) else ''}: "
            "load it with revision=... instead"
        )
    return [found[step] for step in sorted(found)]


def load(
    name: str | os.PathLike[str] | Checkpoint,
    *,
    step: int | None = None,
    revision: str | None = None,
    device: str | torch.device | None = None,
    dtype: str | None = None,
    local_only: bool | None = None,
) -> Encoder:
    """Load a model for looking into its hidden states.

    Parameters
    ----------
    name : str, path or Checkpoint
        Looked for in this order: a model shipped in `data/models`, a folder, the hub.
    step : int, optional
        A checkpoint of a series. Without it a local series gives its last one (the trained model)
        and a hub name its main revision.
    revision : str, optional
        Branch, tag or commit of a hub repository.
    device : str, optional
        "cpu", "cuda", "cuda:1". Default: as in `xlx.settings`, CUDA where there is one.
    dtype : {"float32", "bfloat16"}, optional
        Of weights and arithmetic. Default: as in `xlx.settings`. bfloat16 is faster where the
        processor has it, and keeps about two and a half decimal digits; pooled vectors are float32
        in any case.
    local_only : bool, optional
        Don't ask the hub, only its local cache. Default: ask where it can be reached
        (never, if HF_HUB_OFFLINE is set).

    Raises
    ------
    ModelNotFoundError
        If there is no such model, or no network to get it with.
    ValueError
        If it cannot be used: needs code of its own, lacks weights or a tokenizer, has weights that
        its config leaves out, is an adapter, reads no text, unknown step; or a shipped file that is
        not the one on record (``data/models/SHA256SUMS``).
    """
    dtype = dtype or current().dtype
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    torch_device = device_of(device)
    label, folder, step = _find(name, step, revision, local_only)
    weights, words = _check_folder(label, folder)
    config, model = _load_model(label, folder, DTYPES[dtype])
    tokenizer = _load_tokenizer(label, folder)
    kind = _kind(config)
    if kind == "encoder-decoder":
        model = model.get_encoder()
    model.requires_grad_(False).eval().to(torch_device)
    return Encoder(
        model=model,
        tokenizer=tokenizer,
        name=label,
        fingerprint=_fingerprint([folder / "config.json", *weights, *words]),
        kind=kind,
        device=torch_device,
        dtype=DTYPES[dtype],
        step=step,
        own_pooling=_own_pooling(folder),
    )


def _find(
    name: str | os.PathLike[str] | Checkpoint,
    step: int | None = None,
    revision: str | None = None,
    local_only: bool | None = None,
) -> tuple[str, Path, int | None]:
    """A model's label, the folder of its files and its step; arguments and errors of `load`."""
    if not isinstance(name, str | os.PathLike | Checkpoint) or not str(name):
        raise ValueError(f"{name!r} is no name of a model: give a shipped one, a folder or a hub's")
    checkpoint = name if isinstance(name, Checkpoint) else None
    label = checkpoint.name if checkpoint else os.fspath(name)
    if checkpoint is None and step is not None:
        series = {item.step: item for item in checkpoints(label, local_only=local_only)}
        if step not in series:
            raise ValueError(f"{label!r} has no step {step}: it has {', '.join(map(str, series))}")
        checkpoint = series[step]

    if checkpoint is not None and checkpoint.path is not None and not checkpoint.path.exists():
        # from another machine, whose copy of the series lies elsewhere
        return _find(label, checkpoint.step, local_only=local_only)
    if checkpoint is not None:
        step, revision = checkpoint.step, checkpoint.revision
        folder = checkpoint.path
    else:
        folder = _folder(label)
        if folder is not None and not (folder / "config.json").exists():
            series = _series(label, folder)
            if series:
                step, folder = series[-1].step, series[-1].path
    if folder is None:
        folder = _hub_folder(label, revision, _offline(local_only))
    elif revision is not None:
        raise ValueError(f"{label!r} is the folder {folder}, which has no revisions")
    if step is not None:
        label = f"{label}@step-{step:06d}"
    elif revision is not None:
        label = f"{label}@{revision}"
    return label, folder, step


@dataclass(frozen=True)
class Identity:
    """What is known of a model without loading it: ``name``, ``step`` and ``fingerprint``.

    As of the `Encoder` that `load` gives.
    """

    name: str
    step: int | None
    fingerprint: str


def identify(name: str | os.PathLike[str] | Checkpoint) -> Identity:
    """Find a model and hash its files; arguments and errors as `load`."""
    label, folder, step = _find(name)
    weights, words = _check_folder(label, folder)
    return Identity(label, step, _fingerprint([folder / "config.json", *weights, *words]))


def fingerprint(name: str | os.PathLike[str] | Checkpoint) -> str:
    """SHA-256 of a model's files, as `Encoder.fingerprint`; arguments and errors as `load`."""
    return identify(name).fingerprint


def classifier(
    name: str | os.PathLike[str] | Checkpoint,
    n_classes: int,
    seed: int,
    max_length: int | None = None,
    *,
    dropout: float | None = None,
) -> tuple[Any, Any, int | None]:
    """An encoder with a new head that classifies its input, to be fine-tuned.

    The head is that of the architecture's class for sequence classification in `transformers`; its
    new weights are normal with the variance of BERT's at a width of 768 (0.02 ** 2), times
    768 / width, and come from ``seed``. Weights are float32, on the CPU. A model that was
    fine-tuned already comes with its own head, if that is for ``n_classes``. ``dropout`` is the
    share of units that all its dropouts leave out in training; None: as in its config.

    Returns the model, its tokenizer and how many tokens an input may have: ``max_length``, or where
    that is None what the model takes (None: no limit).

    Raises
    ------
    ModelNotFoundError, ValueError
        As `load`; a model that is no encoder or that `transformers` has no classifier for; a
        ``max_length`` beyond what the model takes, or without room for text; a ``dropout`` where
        the config has none.
    """
    from transformers import AutoModelForSequenceClassification as Kind

    return with_new_head(name, Kind, seed, max_length, dropout, num_labels=n_classes)


def reader(
    name: str | os.PathLike[str] | Checkpoint,
    seed: int,
    max_length: int | None = None,
    *,
    dropout: float | None = None,
) -> tuple[Any, Any, int | None]:
    """An encoder with a new head that finds where in a text an answer starts and ends.

    As `classifier`, with the class for extractive question answering.
    """
    from transformers import AutoModelForQuestionAnswering as Kind

    return with_new_head(name, Kind, seed, max_length, dropout)


def tokenizer(name: str | os.PathLike[str] | Checkpoint) -> Any:
    """The tokenizer of a model alone. Raises as `load`."""
    label, folder, _ = _find(name)
    _check_folder(label, folder)
    return _load_tokenizer(label, folder)


def with_new_head(
    name: str | os.PathLike[str] | Checkpoint,
    kind_of_model: Any,
    seed: int,
    max_length: int | None,
    dropout: float | None = None,
    **options: Any,
) -> tuple[Any, Any, int | None]:
    """An encoder as one of `transformers`' classes for a task: what `classifier`, `reader` share.

    ``options`` are of the class's configuration, such as ``num_labels``.
    """
    label, folder, step = _find(name)
    weights, words = _check_folder(label, folder)
    from transformers import AutoConfig

    with quiet(), _load_errors(label, folder):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if (kind := _kind(config)) != "encoder":
        raise ValueError(f"{label!r} is a model of the kind {kind}: only encoders are fine-tuned")
    if dropout is not None:
        rates = [key for key in config.to_dict() if _DROPOUT.search(key)]
        if not rates:
            raise ValueError(f"the config of {label!r} has no dropout that could be {dropout}")
        options |= dict.fromkeys(rates, dropout)
    # The weights that are missing are drawn at once, from everybody's random numbers: ours replace
    # them.
    with quiet(), _load_errors(label, folder), torch.random.fork_rng(devices=[]):
        model, report = kind_of_model.from_pretrained(
            folder,
            **options,
            dtype=torch.float32,
            trust_remote_code=False,
            local_files_only=True,
            weights_only=True,
            ignore_mismatched_sizes=False,
            output_loading_info=True,
        )
    inside = model.base_model_prefix + "."
    _check_layers(label, model.base_model, report["unexpected_keys"])
    missing = sorted(report["missing_keys"])
    if lost := [key for key in missing if key.startswith(inside) and "pooler." not in key]:
        raise ValueError(_lacks(label, lost))
    generator = torch.Generator().manual_seed(seed)
    sd = 0.02 * (768 / config.get_text_config().hidden_size) ** 0.5
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for key in missing:
            if parameters[key].ndim > 1:
                parameters[key].normal_(0.0, sd, generator=generator)
            elif key.endswith("bias"):
                parameters[key].zero_()
    tokenizer = _load_tokenizer(label, folder)
    encoder = Encoder(
        model=model.base_model,
        tokenizer=tokenizer,
        name=label,
        fingerprint=_fingerprint([folder / "config.json", *weights, *words]),
        kind=kind,
        device=torch.device("cpu"),
        dtype=torch.float32,
        step=step,
    )
    limit = encoder.max_length
    if max_length is not None and limit is not None and max_length > limit:
        raise ValueError(f"max_length is {max_length}, but {label!r} takes {limit} tokens")
    if max_length is not None and max_length <= tokenizer.num_special_tokens_to_add(pair=True) + 1:
        raise ValueError(f"max_length is {max_length}: no room is left for the text of {label!r}")
    return model, tokenizer, limit if max_length is None else max_length


def device_of(device: str | torch.device | None) -> torch.device:
    """The device that a name means; None: that of the settings, or CUDA where there is one.

    ValueError if there is none.
    """
    device = current().device if device is None else device
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return checks.device(device)


# Finding the folder


def _folder(name: str) -> Path | None:
    """The local folder a name stands for: a shipped model, or a path."""
    if re.match(r"\w", name) and (paths.MODELS / name).is_dir():
        return paths.MODELS / name
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ValueError(f"{name!r} is a file: give the folder with config.json and the weights")
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise ModelNotFoundError(f"there is no model folder {name!r}: check the path")
    return None


def _series(name: str, folder: Path) -> list[Checkpoint]:
    found: dict[int, Checkpoint] = {}
    for path in sorted(folder.iterdir()):
        match = _STEP.fullmatch(path.name)
        if match and path.is_dir():
            step = int(match[1])
            if step in found:
                raise ValueError(
                    f"{folder} has step {step} twice: {found[step].path.name} and {path.name}"
                )
            found[step] = Checkpoint(name, step, path=path)
    return [found[step] for step in sorted(found)]


def _offline(local_only: bool | None) -> bool:
    from huggingface_hub import constants

    return constants.HF_HUB_OFFLINE if local_only is None else local_only


def _hub_folder(name: str, revision: str | None, offline: bool) -> Path:
    """The folder in the hub's local cache with the files of a model, downloaded if need be."""
    import huggingface_hub as hub

    wanted = None
    with _hub_errors(name, revision):
        if not offline:
            with _unreachable_is_none():
                # Unlike list_repo_files it gives up at once where there is no network.
                files = hub.HfApi().model_info(name, revision=revision).siblings or []
                wanted = _wanted([file.rfilename for file in files])
        offline = wanted is None
        folder = hub.snapshot_download(
            name, revision=revision, local_files_only=offline, allow_patterns=wanted
        )
    return Path(folder)


def _wanted(files: list[str]) -> list[str]:
    """Of a repository's files those that `load` reads: no second weight format, no subfolders."""
    safe = [file for file in files if _SAFE_WEIGHTS.fullmatch(file)]
    weights = safe or [file for file in files if _PICKLED_WEIGHTS.fullmatch(file)]
    others = [f for f in files if _CONFIG.fullmatch(f) or ("/" not in f and _WORDS.fullmatch(f))]
    return [*others, *weights]


def _hub_revisions(name: str, offline: bool) -> list[str]:
    import huggingface_hub as hub

    with _hub_errors(name, None):
        if not offline:
            with _unreachable_is_none():
                refs = hub.HfApi().list_repo_refs(name)
                return [ref.name for ref in (*refs.branches, *refs.tags)]
        folder = Path(hub.constants.HF_HUB_CACHE) / hub.constants.REPO_ID_SEPARATOR.join(
            ["models", *name.split("/")]
        )
        references = folder / "refs"
        if not references.is_dir():
            raise hub.errors.LocalEntryNotFoundError(name)
        return [path.name for path in references.iterdir()]


@contextlib.contextmanager
def _unreachable_is_none() -> Iterator[None]:
    """Go on without an answer where there is no network: the cache may have the model."""
    from huggingface_hub import errors

    try:
        yield
    except errors.HfHubHTTPError:  # an answer, and a kind of HTTPError
        raise
    except (errors.HTTPError, errors.OfflineModeIsEnabled, ConnectionError, TimeoutError):
        pass


@contextlib.contextmanager
def _hub_errors(name: str, revision: str | None) -> Iterator[None]:
    """Turn the hub's errors into one sentence each."""
    from huggingface_hub import errors

    at = f" at revision {revision!r}" if revision else ""
    try:
        yield
    except errors.GatedRepoError:
        raise ModelNotFoundError(
            f"the hub model {name!r} is gated: ask for access on its page, "
            "then log in with `hf auth login`"
        ) from None
    except errors.RevisionNotFoundError:
        raise ModelNotFoundError(
            f"the hub model {name!r} has no revision {revision!r}: see its page for those it has"
        ) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise ModelNotFoundError(
            f"there is no model {name!r}: not among the shipped ones ({_shipped()}), "
            "no folder of this name, and not on the hub (or it is private); check the spelling"
        ) from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise ModelNotFoundError(
            f"there is no model {name!r}{at} here: not among the shipped ones ({_shipped()}), no "
            "folder of this name, not (whole) in the hub cache, and the hub cannot be asked, being "
            f"offline; check the spelling, or fetch it where there is a network: hf download {name}"
        ) from None
    except (errors.HTTPError, ConnectionError, TimeoutError) as error:
        raise ModelNotFoundError(
            f"the hub did not give out {name!r}{at}: {_first_line(error)}; try again later"
        ) from None


def _shipped() -> str:
    if not paths.MODELS.is_dir():
        return "none"
    return ", ".join(sorted(p.name for p in paths.MODELS.iterdir() if p.is_dir())) or "none"


# Reading it


def _check_folder(label: str, folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of weights and of the tokenizer; refuses a folder that cannot be used."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if "adapter_config.json" in names:
        raise ValueError(
            f"{folder} holds an adapter (LoRA; adapter_config.json), which is not applied here: "
            "merge it into its base model (merge_and_unload) and save the whole"
        )
    if "config.json" not in names:
        inside = [path.parent.name for path in folder.glob("*_Transformer/config.json")]
        raise ModelNotFoundError(
            f"{folder} holds no model: there is no config.json in it (nor any step-<number> folder)"
            + (f", but in {inside[0]}: give that folder" if inside else "")
        )
    safe = [name for name in names if _SAFE_WEIGHTS.fullmatch(name)]
    weights = safe or [name for name in names if _PICKLED_WEIGHTS.fullmatch(name)]
    if not any(name.endswith((".safetensors", ".bin")) for name in weights):
        raise ModelNotFoundError(
            f"the folder of {label!r}, {folder}, has no weights: "
            "no model.safetensors and no pytorch_model.bin"
        )
    words = [name for name in names if _WORDS.fullmatch(name)]
    # Without such a file transformers makes up an empty tokenizer, in which all words are unknown.
    if not any(_WORDS.fullmatch(name)[1] for name in words):
        raise ModelNotFoundError(
            f"the folder of {label!r}, {folder}, has no tokenizer: no tokenizer.json, vocabulary "
            "or sentencepiece model; copy the tokenizer files of the model it was trained with"
        )
    for name in ("config.json", "tokenizer_config.json"):
        if name in names:
            _check_local_code(label, _read_json(folder / name), name)
    for name in [name for name in weights if name.endswith(".json")]:
        shards = _read_json(folder / name).get("weight_map")
        shards = set(shards.values()) if isinstance(shards, dict) else {"none"}
        if lost := sorted(map(str, shards - set(weights))):
            raise ValueError(
                f"{folder / name} names the weights {lost[0]}, and the folder has no such file: "
                "fetch the model again"
            )
    return [folder / name for name in weights], [folder / name for name in words]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON ({error}): fetch the model again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a JSON object: fetch the model again")
    return content


def _check_local_code(label: str, content: dict[str, Any], file: str) -> None:
    """Refuse a model whose architecture or tokenizer comes as Python code with the weights."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if file == "config.json":
        kind = content.get("model_type")
        if kind in CONFIG_MAPPING:
            return  # the architecture is in transformers; code that comes along is not used
        if "auto_map" not in content:
            raise ValueError(
                f"{label!r} has the architecture {kind!r} (config.json), "
                "which the installed transformers does not know"
            )
        what = f"the architecture {kind!r}"
    else:
        remote = content.get("auto_map")
        if isinstance(remote, dict):
            remote = remote.get("AutoTokenizer")
        if not remote:
            return
        what = "its tokenizer"
    raise ValueError(
        f"{label!r} needs Python code of its own for {what} ({file}, auto_map), and code that "
        "comes with a model is never run here: use a model whose architecture transformers has"
    )


def _own_pooling(folder: Path) -> str | None:
    """The pooling that a folder of sentence-transformers names (``1_Pooling/config.json``)."""
    for root in (folder, folder.parent):
        for file in sorted(root.glob("*_Pooling/config.json")):
            for key, value in _read_json(file).items():
                if key.startswith("pooling_mode_") and value is True:
                    name = key.removeprefix("pooling_mode_")
                    return _OF_SENTENCE_TRANSFORMERS.get(name, name)
    return None


def _load_model(label: str, folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import MODEL_MAPPING, AutoConfig, AutoModel

    with quiet(), _load_errors(label, folder):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        config.use_cache = False  # keys and values are for generating; they would only take memory
        options = {}
        with contextlib.suppress(KeyError):
            model_class = MODEL_MAPPING[type(config)]
            if "add_pooling_layer" in inspect.signature(model_class.__init__).parameters:
                options["add_pooling_layer"] = False  # an extra map of the first token, not a layer
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            trust_remote_code=False,
            local_files_only=True,
            weights_only=True,
            output_loading_info=True,
            **options,
        )
    missing = sorted(
        key
        for key in report["missing_keys"]
        if "pooler." not in key and not (config.is_encoder_decoder and key.startswith("decoder."))
    )
    if missing:
        raise ValueError(_lacks(label, missing))
    _check_layers(label, model, report["unexpected_keys"])
    words = None
    with contextlib.suppress(NotImplementedError, AttributeError):
        words = model.get_input_embeddings()
    if not isinstance(getattr(words, "weight", None), torch.Tensor):
        raise ValueError(
            f"{label!r} reads no text: {type(model).__name__} has no table of word embeddings; "
            "give a language model"
        )
    return config, model


def _check_layers(label: str, model: Any, unexpected: Iterable[str]) -> None:
    """Refuse weights without a place that are as the model's own but for the layer's number."""
    own = {re.sub(r"\d+", "#", key) for key in model.state_dict()}
    left = sorted(
        key
        for key in (key.removeprefix(model.base_model_prefix + ".") for key in unexpected)
        if re.search(r"\d", key) and re.sub(r"\d+", "#", key) in own
        if not (model.config.is_encoder_decoder and key.startswith("decoder."))
    )
    if left:
        raise ValueError(
            f"{label!r} has {len(left)} weights of further layers than its config.json asks for "
            f"({left[0]} ...), to be left out: check that config and weights belong together"
        )


def _lacks(label: str, missing: list[str]) -> str:
    return (
        f"{label!r} lacks {len(missing)} of the weights its config.json asks for "
        f"({', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}): "
        "they would be random; check that config and weights belong together"
    )


def _load_tokenizer(label: str, folder: Path) -> Any:
    from transformers import AutoTokenizer

    with quiet(), _load_errors(label, folder, "the tokenizer of "):
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


@contextlib.contextmanager
def _load_errors(label: str, folder: Path, part: str = "") -> Iterator[None]:
    try:
        yield
    except pickle.UnpicklingError:
        raise ValueError(
            f"the weights of {label!r} in {folder} are a pickle that holds more than tensors, "
            "which could run code when read: get the model as safetensors"
        ) from None
    except ImportError as error:
        raise ValueError(
            f"{part}{label!r} needs a package that is not installed: {_first_line(error)}"
        ) from None
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        if "ignore_mismatched_sizes" in str(error):  # the report that it points at is kept quiet
            raise ValueError(
                f"{label!r} has weights of other sizes than its config.json asks for: take the "
                "config.json that came with the weights"
            ) from None
        if "tiktoken" in str(error):  # what transformers says where it cannot read sentencepiece
            raise ValueError(
                f"{part}{label!r} needs the package protobuf to be read: `pip install protobuf`, "
                "or set up the environment anew"
            ) from None
        raise ValueError(
            f"{part}{label!r} cannot be loaded from {folder}: {_first_line(error)}"
        ) from error
    except Exception as error:
        # safetensors and tokenizers raise bare exceptions of their own for torn files.
        raise ValueError(
            f"{part}{label!r} cannot be loaded from {folder} ({_first_line(error)}): "
            "a file is torn or of another format; fetch the model again"
        ) from error


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


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


def _kind(config: Any) -> str:
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    if config.is_encoder_decoder:
        return "encoder-decoder"
    if getattr(config, "is_decoder", False):
        return "decoder"
    # BERT and its kin can be built as causal models too; what has a masked head reads both ways.
    masked = type(config) in MODEL_FOR_MASKED_LM_MAPPING
    return "decoder" if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and not masked else "encoder"


def _fingerprint(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        checks.on_record(path, content, paths.MODELS / "SHA256SUMS")
        digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()
