"""Licences of all packages that are installed: ``python -m tests.licences > licences.tsv``."""

from importlib.metadata import Distribution, distributions

from packaging.utils import canonicalize_name


def licence_of(package: Distribution) -> str:
    """What a package says of itself: its SPDX expression, its classifiers, or its own word."""
    about = package.metadata
    stated = [x for x in about.get_all("Classifier", []) if x.startswith("License :: ")]
    named = [x.rsplit(" :: ", 1)[-1] for x in stated if x != "License :: OSI Approved"]
    word = (about.get("License") or "").strip().partition("\n")[0]
    return about.get("License-Expression") or "; ".join(named) or word or "not stated"


def licences() -> dict[str, str]:
    """Licence of each package that is installed here, by name."""
    named = ((canonicalize_name(x.name), licence_of(x)) for x in distributions())
    return {name: " ".join(licence.split()) for name, licence in sorted(named)}


if __name__ == "__main__":
    print("package\tlicence")
    for name, licence in licences().items():
        if name != "xlx":
            print(name, licence, sep="\t")
