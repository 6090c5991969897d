"""Public models that `make models` fetches: what there is, where it lies, what it has to be.

The table ``data/models-public/models.tsv`` names them; the weights, converted to ordinary folders,
lie in the cache of this machine (``cache/models/<name>``). The table has the hash of each folder,
so results of these models are found in the ledger where no weights are.
"""

import csv
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from xlx.core import paths
from xlx.core.settings import current
from xlx.models.hub import ModelNotFoundError

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
