"""Models of the Hugging Face hub: their files in its local cache, fetched where there is a network.

Never asked where ``HF_HUB_OFFLINE`` is set; where it cannot be reached, the cache may have the
model.
"""

import contextlib
import csv
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from xlx.results import checks, paths, store
from xlx.results.settings import current

SAFE_WEIGHTS = re.compile(r"model(-\d+-of-\d+)?\.safetensors(\.index\.json)?")
PICKLED_WEIGHTS = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin(\.index\.json)?")
#: What a tokenizer is read from; the first group alone can make one.
WORDS = re.compile(
    r"(tokenizer\.json|vocab\.(?:txt|json)|.*\.(?:model|spm|tiktoken)|tekken\.json)"
    r"|merges\.txt|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json"
)
#: Of a repository's configurations that of the model, and of the pooling of sentence-transformers.
_CONFIG = re.compile(r"(\d+_Pooling/)?config\.json")


class ModelNotFoundError(FileNotFoundError):
    """No model of this name: not shipped, no folder, not in the hub cache, not on the hub."""


def weight_files(names: list[str]) -> list[str]:
    """Of a folder's files those of the weights: safetensors, or else pickles."""
    safe = [name for name in names if SAFE_WEIGHTS.fullmatch(name)]
    return safe or [name for name in names if PICKLED_WEIGHTS.fullmatch(name)]


def files_read(names: list[str]) -> list[str]:
    """Of a repository's files those that `load` reads: no second weight format, no subfolders."""
    others = [f for f in names if _CONFIG.fullmatch(f) or ("/" not in f and WORDS.fullmatch(f))]
    return [*others, *weight_files(names)]


def hub_folder(name: str, revision: str | None) -> Path:
    """The folder in the hub's local cache with the files of a model, downloaded if need be."""
    import huggingface_hub as hub

    patterns = None
    with _hub_errors(name, revision):
        with _unreachable_is_none():
            # Unlike list_repo_files it gives up at once where there is no network.
            files = hub.HfApi().model_info(name, revision=revision).siblings or []
            patterns = files_read([file.rfilename for file in files])
        folder = hub.snapshot_download(
            name, revision=revision, local_files_only=patterns is None, allow_patterns=patterns
        )
    return Path(folder)


def download_ahead(name: str, revision: str | None = None) -> str | None:
    """What of a model `hub_folder` is still to download, in a sentence, before it does.

    None where all of it is here, and where the hub cannot be asked. Errors as of `hub_folder`.
    """
    import huggingface_hub as hub

    info = None
    with _hub_errors(name, revision), _unreachable_is_none():
        info = hub.HfApi().model_info(name, revision=revision, files_metadata=True)
    sizes = {file.rfilename: file.size for file in info.siblings or ()} if info else {}
    missing = {
        file: sizes[file] for file in files_read(list(sizes))
        if not isinstance(hub.try_to_load_from_cache(name, file, revision=info.sha), str)
    }  # fmt: skip
    if not missing:
        return None
    if None in missing.values():
        return f"{name}: to be downloaded; the hub does not say how large it is"
    total, free = sum(missing.values()), store.free_disk(Path(hub.constants.HF_HUB_CACHE))
    weights = sum(missing[file] for file in weight_files(list(missing)))
    short = ": too few, set HF_HUB_CACHE to a folder on another disk" if total > free else ""
    return (
        f"{name}: {total / 1e9:.2f} GB to be downloaded, of them {weights / 1e9:.2f} GB weights "
        f"({free / 1e9:.1f} GB free{short})"
    )


def hub_revisions(name: str) -> list[str]:
    """The branches and tags of a model, or those that the cache holds."""
    import huggingface_hub as hub

    with _hub_errors(name, None):
        with _unreachable_is_none():
            refs = hub.HfApi().list_repo_refs(name)
            return [ref.name for ref in (*refs.branches, *refs.tags)]
        separator = hub.constants.REPO_ID_SEPARATOR
        folder = separator.join(["models", *name.split("/")])
        references = Path(hub.constants.HF_HUB_CACHE) / folder / "refs"
        if not references.is_dir():
            raise hub.errors.LocalEntryNotFoundError(name)
        return [path.name for path in references.iterdir()]


@contextlib.contextmanager
def _unreachable_is_none() -> Iterator[None]:
    """Go on without an answer where there is no network, or none is to be used."""
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

    at_revision = f" at revision {revision!r}" if revision else ""
    try:
        yield
        return
    except errors.GatedRepoError:
        says = "is gated: ask for access on its page, then log in with `hf auth login`"
        problem = f"the hub model {name!r} {says}"
    except errors.RevisionNotFoundError:
        problem = f"the hub model {name!r} has no revision {revision!r}: see its page for them"
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        problem = (
            f"there is no model {name!r}: not among the shipped ones ({_shipped()}), no folder of "
            "this name, and not on the hub (or it is private); check the spelling"
        )
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        problem = (
            f"there is no model {name!r}{at_revision} here: not among the shipped ones "
            f"({_shipped()}), no folder of this name, not (whole) in the hub cache, and the hub "
            "cannot be asked, being offline; check the spelling, or fetch it where there is a "
            f"network: hf download {name}"
        )
    except (errors.HTTPError, ConnectionError, TimeoutError) as error:
        told = str(error).strip().split("\n")[0] or type(error).__name__
        problem = f"the hub did not give out {name!r}{at_revision}: {told}; try again later"
    raise ModelNotFoundError(problem) from None


def _shipped() -> str:
    folders = paths.MODELS.iterdir() if paths.MODELS.is_dir() else ()
    return ", ".join(sorted(path.name for path in folders if path.is_dir())) or "none"


TABLE = paths.DATA / "models-public" / "models.tsv"


@dataclass(frozen=True)
class PublicModel:
    """A row of the table: a model, the package that carries it, and what is known of both.

    ``packages`` are separated by spaces, ``name==version`` each; ``parts`` are the files inside,
    joined in this order; ``sha256`` is that of the joined file; ``fingerprint`` that of the
    converted folder (`identity.fingerprint`); ``terms`` is what has to be accepted, or empty.
    """

    name: str
    kind: str
    layers: str
    width: str
    parameters: str
    packages: str
    parts: str
    sha256: str
    converter: str
    licence: str
    terms: str
    hub: str
    quantisation: str
    download: str
    disk: str
    fingerprint: str
    text: str

    @property
    def folder(self) -> Path:
        """Where the converted model lies on this machine, whether or not it is there."""
        return folder_of(self.name)


def folder_of(name: str) -> Path:
    """The folder of a model in the cache, whether or not it is there."""
    return current().cache / "models" / name


def public_models() -> dict[str, PublicModel]:
    """By name all public models of the table, in its order; none where there is no table."""
    return _table(TABLE) if TABLE.is_file() else {}


@lru_cache(maxsize=2)
def _table(path: Path) -> dict[str, PublicModel]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = [field.name for field in fields(PublicModel)]
    return {row["name"]: PublicModel(**{name: row[name] for name in names}) for row in rows}


def public_folder(name: str) -> Path | None:
    """The folder of a public model; None for any other name.

    Raises ModelNotFoundError where the model is not on this machine, or only half of it.
    """
    if name not in public_models():
        return None
    folder = folder_of(name)
    if not (folder / "config.json").is_file():
        model = public_models()[name]
        accept = f" ACCEPT={model.terms}" if model.terms else ""
        half = f" (remove {folder} first, which is not whole)" if folder.is_dir() else ""
        raise ModelNotFoundError(
            f"the weights of {name!r} are not on this machine: `make models "
            f"MODEL={name}{accept}` fetches them ({model.download} MB){half}, or give the "
            f"hub name {model.hub} or a folder"
        )
    return folder


def check_public(name: str, folder: Path, content: str) -> None:
    """Refuse the folder of a public model that is not as `make models` has left it (ValueError)."""
    model = public_models().get(name)
    if model is not None and folder == model.folder and content != model.fingerprint:
        raise ValueError(
            f"{folder} is not what `make models` makes of {name!r} (its hash is {content[:12]}, on "
            f"record is {model.fingerprint[:12]}), so a file was changed: remove the folder and "
            f"run `make models MODEL={name}`, or move it and give its path"
        )


_STEP = re.compile(r"step[-_]?(\d+)(?:-tokens\d+\w*)?", re.IGNORECASE)
#: What makes a name that of an untrained twin; the seed of its weights is 1 where none is given.
_UNTRAINED = re.compile(r"(.+)@untrained(?:-(\d+))?")


class NoHistoryError(ValueError):
    """The model is one state, not a series of checkpoints."""


@dataclass(frozen=True)
class Checkpoint:
    """One state of a model's training history."""

    name: str  # of the series, as given to `checkpoints`
    step: int  # 0 = untrained
    path: Path | None = None  # its folder, where the series is local
    revision: str | None = None  # its revision, where the series is on the hub


@dataclass(frozen=True)
class RecordedCheckpoint(Checkpoint):
    """A checkpoint whose weights are not shipped: its results are found by their hash alone."""

    fingerprint: str = ""


#: Of a series: ``step`` and ``fingerprint`` of every checkpoint that it was measured at.
RECORD = "checkpoints.csv"
#: Bytes from which on a file's hash is remembered, and seconds that it must have been left alone.
_LARGE, _GRAIN = 2**26, 2


class Loaded:
    """A model in memory, known by its content as one on disk is: an `Encoder`."""

    name: str
    step: int | None
    fingerprint: str


#: What a model is called: a name, a folder, a checkpoint; or the model itself, loaded.
Name = str | os.PathLike | Checkpoint | Loaded


@dataclass(frozen=True)
class Identity:
    """What is known of a model without loading it: as of the `Encoder` that `load` gives."""

    name: str
    step: int | None
    fingerprint: str


def identify(name: Name) -> Identity:
    """Find a model and hash its files; arguments and errors as `load`."""
    if isinstance(name, RecordedCheckpoint):
        return Identity(f"{name.name}@step-{name.step:06d}", name.step, name.fingerprint)
    if isinstance(name, Loaded):
        return Identity(name.name, name.step, name.fingerprint)
    if isinstance(name, str):
        if twin := twin_parts(name):
            return Identity(name, None, _twin_fingerprint(*twin))
        if (public := public_models().get(name)) and not public.folder.is_dir():
            return Identity(name, None, public.fingerprint)  # what is stored is found without it
    label, folder, step = find(name)
    return Identity(label, step, content_of(label, folder))


def twin_parts(name: Any) -> tuple[str, int] | None:
    """The model and the seed of an untrained twin's name; None for another name."""
    match = _UNTRAINED.fullmatch(name) if isinstance(name, str) else None
    return match and (match[1], int(match[2] or 1))


def twin_of(name: str, seed: int = 1) -> str:
    """The name of a model's untrained twin."""
    return f"{name}@untrained" + (f"-{seed}" if seed != 1 else "")


def _twin_fingerprint(name: str, seed: int) -> str:
    """Of the model's own and the seed: what is drawn may differ in last digits between machines."""
    return hashlib.sha256(f"{fingerprint(name)} untrained {seed}\n".encode()).hexdigest()


def content_of(label: str, folder: Path) -> str:
    """The fingerprint of what `find` has found. ValueError for a shipped file that was changed."""
    if twin := twin_parts(label):
        return _twin_fingerprint(*twin)
    content = fingerprint_of(model_files(label, folder))
    check_public(label, folder, content)
    return content


def fingerprint(name: Name) -> str:
    """SHA-256 of a model's files, as `Encoder.fingerprint`; arguments and errors as `load`."""
    return identify(name).fingerprint


def checkpoints(name: str) -> list[Checkpoint]:
    """The training history of a shipped series, a folder or a hub repository, by step.

    Raises ModelNotFoundError if there is no model of this name, NoHistoryError (a ValueError) if it
    has no training history.
    """
    if name in public_models() or twin_parts(name):
        raise NoHistoryError(f"{name!r} is one state and no checkpoint series")
    folder = local_folder(name)
    if folder is not None:
        if series := local_series(name, folder):
            return series
        raise NoHistoryError(
            f"{folder} is no checkpoint series: it has no subfolder called step-<number>"
        )
    steps = {
        int(match[1]): Checkpoint(name, int(match[1]), revision=revision)
        for revision in hub_revisions(name)
        if (match := _STEP.fullmatch(revision))
    }
    if not steps:
        raise NoHistoryError(
            f"the hub model {name!r} has no revision called step-<number>: load it with "
            "revision=... instead"
        )
    return [steps[step] for step in sorted(steps)]


def recorded_checkpoints(name: str) -> list[Checkpoint]:
    """`checkpoints`, and those of a folder of which it has no weights, but the hash (`RECORD`).

    Of these what was computed before is found again; nothing else can be. A folder may hold the
    record alone.
    """
    if name in public_models() or twin_parts(name):
        return checkpoints(name)
    folder = local_folder(name)
    if folder is None or not (folder / RECORD).exists():
        return checkpoints(name)
    steps = {checkpoint.step: checkpoint for checkpoint in local_series(name, folder)}
    with (folder / RECORD).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            step, path = int(row["step"]), folder / f"step-{int(row['step']):06d}"
            missing = RecordedCheckpoint(name, step, path, fingerprint=row["fingerprint"])
            steps.setdefault(step, missing)
    return [steps[step] for step in sorted(steps)]


def record(folder: Path) -> str:
    """The text of a `RECORD` of the checkpoints that a folder holds now."""
    series = local_series(str(folder), folder)
    lines = [f"{checkpoint.step},{fingerprint(checkpoint)}\n" for checkpoint in series]
    return "".join(["step,fingerprint\n", *lines])


def title(name: str) -> str:
    """A name for tables and figures: of a folder its own, without the path to it.

    Of a checkpoint of a series that of the series, too: "mini-xlmr/step-000000".
    """
    if twin := twin_parts(name):
        return f"{title(twin[0])}, untrained" + (f" {twin[1]}" if twin[1] != 1 else "")
    if not Path(name).is_dir():
        return name
    parts = Path(os.path.abspath(name)).parts
    return "/".join(parts[-2:] if _STEP.fullmatch(parts[-1]) else parts[-1:])


def series_name(model: Any) -> str:
    """The `title` of an `Encoder` or `Identity`, without the step of a series."""
    suffix = "" if model.step is None else f"@step-{model.step:06d}"
    return title(model.name.removesuffix(suffix))


def find(
    name: Name, step: int | None = None, revision: str | None = None
) -> tuple[str, Path, int | None]:
    """A model's label, the folder of its files and its step; arguments and errors of `load`."""
    if isinstance(name, Loaded):
        raise ValueError(
            f"{name.name!r} is loaded already, and here its files are due: give a name"
        )
    if not isinstance(name, Name) or not str(name):
        raise ValueError(f"{name!r} is no name of a model: give a shipped one, a folder or a hub's")
    if twin_parts(name):
        if step is not None or revision is not None:
            raise ValueError(f"{name!r} is untrained: it has no step or revision to choose")
        return name, twin_folder(name), None
    checkpoint = name if isinstance(name, Checkpoint) else None
    label = checkpoint.name if checkpoint else os.fspath(name)
    if checkpoint is None and step is not None:
        series = {item.step: item for item in checkpoints(label)}
        if step not in series:
            raise ValueError(f"{label!r} has no step {step}: it has {', '.join(map(str, series))}")
        checkpoint = series[step]
    if checkpoint is not None:
        if checkpoint.path is not None and not checkpoint.path.exists():
            return find(label, checkpoint.step)  # from another machine, where it lies elsewhere
        step, revision, folder = checkpoint.step, checkpoint.revision, checkpoint.path
    else:
        folder = local_folder(label)
        if folder is not None and not (folder / "config.json").exists():
            last = [None, *local_series(label, folder)][-1]
            step, folder = (last.step, last.path) if last else (step, folder)
    if folder is None:
        folder = hub_folder(label, revision)
    elif revision is not None:
        raise ValueError(f"{label!r} is the folder {folder}, which has no revisions")
    if step is not None:
        label = f"{label}@step-{step:06d}"
    elif revision is not None:
        label = f"{label}@{revision}"
    return label, folder, step


def twin_folder(name: str) -> Path:
    """Where an untrained twin is kept on this machine, by its fingerprint."""
    model, seed = twin_parts(name)
    return current().cache / "untrained" / f"{fingerprint(model)[:16]}-{seed}"


def local_folder(name: str) -> Path | None:
    """The local folder a name stands for: a shipped or public model, or a path; None: of the hub.

    Raises ModelNotFoundError for a path that is not there and a public model that is not fetched.
    """
    if re.match(r"\w", name) and (paths.MODELS / name).is_dir():
        return paths.MODELS / name
    if public := public_folder(name):
        return public
    if twin_parts(name):
        return twin_folder(name)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ValueError(f"{name!r} is a file: give the folder with config.json and the weights")
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise ModelNotFoundError(f"there is no model folder {name!r}: check the path")
    return None


def local_series(name: str, folder: Path) -> list[Checkpoint]:
    """The checkpoints of a folder by step; none where it has no ``step-*`` subfolder."""
    steps: dict[int, Checkpoint] = {}
    for path in sorted(folder.iterdir()):
        match = _STEP.fullmatch(path.name)
        if match and path.is_dir():
            step = int(match[1])
            if step in steps:
                both = f"{steps[step].path.name} and {path.name}"
                raise ValueError(f"{folder} has step {step} twice: {both}")
            steps[step] = Checkpoint(name, step, path=path)
    return [steps[step] for step in sorted(steps)]


def model_files(label: str, folder: Path) -> list[Path]:
    """The files that make a model: configuration, weights, tokenizer; refuses what is not whole."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if "adapter_config.json" in names:
        raise ValueError(
            f"{folder} holds an adapter (LoRA; adapter_config.json), which is not applied here: "
            "merge it into its base model (merge_and_unload) and save the whole"
        )
    if "config.json" not in names:
        inside = [path.parent.name for path in folder.glob("*_Transformer/config.json")]
        hint = f", but in {inside[0]}: give that folder" if inside else ""
        raise ModelNotFoundError(
            f"{folder} holds no model: there is no config.json in it (nor any step-<number> "
            f"folder){hint}"
        )
    weights = weight_files(names)
    if not any(name.endswith((".safetensors", ".bin")) for name in weights):
        raise ModelNotFoundError(
            f"the folder of {label!r}, {folder}, has no weights: no model.safetensors and no "
            "pytorch_model.bin"
        )
    words = [name for name in names if WORDS.fullmatch(name)]
    # Without such a file transformers makes up an empty tokenizer, in which all words are unknown.
    if not any(WORDS.fullmatch(name)[1] for name in words):
        raise ModelNotFoundError(
            f"the folder of {label!r}, {folder}, has no tokenizer: no tokenizer.json, vocabulary "
            "or sentencepiece model; copy the tokenizer files of the model it was trained with"
        )
    for name in [name for name in weights if name.endswith(".json")]:
        shards = read_json(folder / name).get("weight_map")
        shards = set(shards.values()) if isinstance(shards, dict) else {"none"}
        if lost := sorted(map(str, shards - set(weights))):
            raise ValueError(
                f"{folder / name} names the weights {lost[0]}, and the folder has no such file: "
                "fetch the model again"
            )
    return [folder / name for name in ("config.json", *weights, *words)]


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; ValueError where it is torn."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON ({error}): fetch the model again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a JSON object: fetch the model again")
    return content


def fingerprint_of(files: list[Path]) -> str:
    """SHA-256 over names and contents; refuses a shipped file that is not the one on record."""
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        content = content_hash(path)
        checks.on_record(path, content, paths.MODELS / "SHA256SUMS")
        digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()


def content_hash(path: Path) -> str:
    """SHA-256 of a file; of a large one it is remembered, by its place, size, time and inode.

    Weights of 15 GB take half a minute to read. Not remembered is what was written a moment ago,
    which may be written once more within the grain of the clock.
    """
    status = path.stat()
    settled = time.time() - status.st_mtime > _GRAIN
    if status.st_size < _LARGE or not settled:
        return _hash(path)
    what = (path.absolute(), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    name = hashlib.sha256("\n".join(map(str, what)).encode()).hexdigest()
    remembered = current().cache / "hashes" / name
    if remembered.exists() and re.fullmatch("[0-9a-f]{64}", content := remembered.read_text()):
        return content
    content = _hash(path)
    with suppress(OSError):  # a cache that cannot be written: it is read again next time
        remembered.parent.mkdir(parents=True, exist_ok=True)
        store.write_whole(remembered, content.encode())
    return content


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
