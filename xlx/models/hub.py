"""Models of the Hugging Face hub: their files in its local cache, fetched where there is a network.

Never asked where ``HF_HUB_OFFLINE`` is set; where it cannot be reached, the cache may have the
model.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from xlx.core import paths, store

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
