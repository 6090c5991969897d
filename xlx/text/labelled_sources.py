"""Where labelled data come from, and how the public files of a source are found in a folder."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from xlx.core.languages import LANGUAGES, base_code, parse_tag
from xlx.text import shipped
from xlx.text.files import TextError, files_below, single_file
from xlx.text.labelled_files import LABELS
from xlx.text.varieties import keys_of, language_code

SPLITS: tuple[str, ...] = ("train", "validation", "test")

#: What the public files call a split.
_PARTS = {"train": "train", "validation": "dev", "test": "test"}

#: Labels of FLORES-200 and SIB-200 under which the text of another language stands: Standard
#: Moroccan Tamazight, not Central Atlas Tamazight (Kargaran et al. 2023, as in `corpora`).
_MISNAMED = {"tzm_Tfng": "zgh_Tfng"}


@dataclass(frozen=True)
class _Source:
    """Where a source comes from, and how the files of a local copy are called.

    ``files`` is a regular expression for their names, or paths; ``only`` the splits that there
    are, if not all. A source without a ``layout`` is shipped alone; one that was ``selected_from``
    another, too.
    """

    task: str
    url: str
    layout: str
    files: str = ""
    only: tuple[str, ...] = SPLITS
    selected_from: str = ""


_UD = "universaldependencies.org, github.com/UniversalDependencies"
_XNLI = "github.com/facebookresearch/XNLI"
_SOURCES = {
    "ud": _Source(
        "POS", _UD, "UD_German-GSD/de_gsd-ud-train.conllu",
        files=r"{language}(_(?!pud)[a-z0-9]+)?-ud-{part}(\.OLD\d+)?\.conllu",
    ),
    "pud": _Source(
        "POS", _UD, "UD_German-PUD/de_pud-ud-test.conllu",
        files=r"{language}_pud-ud-{part}(\.OLD\d+)?\.conllu", only=("test",),
    ),
    "wikiann": _Source(
        "NER", "github.com/afshinrahimi/mmner, or PAN-X of github.com/google-research/xtreme",
        "train-de.tsv (XTREME) or de/train (WikiAnn)",
        files=r"{part}-{language}\.tsv|(.*/)?{language}/{part}",
    ),
    "uner": _Source(
        "NER", "universalner.org, github.com/UniversalNER",
        "UNER_Croatian-SET/hr_set-ud-train.iob2", files=r"{language}_[a-z0-9]+-ud-{part}\.iob2",
    ),
    "xnli": _Source(
        "NLI", _XNLI,
        "xnli.dev.tsv and xnli.test.tsv (XNLI-1.0) or dev-de.tsv and test-de.tsv (XTREME); to "
        "train, multinli.train.de.tsv (XNLI-MT-1.0)",
        files=r"{part}-{language}\.tsv|xnli\.{part}\.tsv|multinli\.{part}\.{language}\.tsv",
    ),
    "xnli-dev": _Source("NLI", _XNLI, "dev-de.tsv (XTREME)", only=("train",), selected_from="xnli"),
    "xnli-whole": _Source(
        "NLI", _XNLI, "dev-de.tsv and test-de.tsv (XTREME)", only=("train", "test"),
        selected_from="xnli",
    ),
    "sick": _Source("NLI", "SICK (Marelli et al. 2014) and its translations", ""),
    "pawsx": _Source(
        "PI", "github.com/google-research-datasets/paws",
        "de/dev_2k.tsv and de/test_2k.tsv (PAWS-X) or dev-de.tsv and test-de.tsv (XTREME); to "
        "train, en/train.tsv, de/translated_train.tsv (PAWS-X) or train-en.tsv (XTREME)",
        files=r"{part}-{language}\.tsv|(.*/)?{language}/{published}\.tsv",
    ),
    "sib200": _Source(
        "TOPIC", "github.com/dadelani/sib-200 or huggingface.co/datasets/Davlan/sib200",
        "deu_Latn/train.tsv, dev.tsv and test.tsv",
    ),
}  # fmt: skip
_DEFAULTS = {"POS": "ud", "NER": "wikiann", "NLI": "xnli", "PI": "pawsx", "TOPIC": "sib200"}


def resolved(
    task: str, language: str, split: str, source: str | None, path: str | Path | None
) -> tuple[str, str]:
    """Code of the language and source that `load_labelled` is asked for; its errors."""
    if task not in LABELS:
        raise TextError(f"There is no task {task!r}; there are {', '.join(LABELS)}.")
    if split not in SPLITS:
        raise TextError(f"There is no split {split!r}; there are {', '.join(SPLITS)}.")
    # Only SIB-200 has several varieties of a language.
    language = language_code(language, parse_tag if task == "TOPIC" else base_code)
    if source is None:
        source = _DEFAULTS[task]
        if task == "NER" and path is None:
            rows = shipped.catalogue("labelled").query("task == 'NER' and language == @language")
            source = "uner" if set(rows["source"]) == {"uner"} else source
    about = _SOURCES.get(source)
    if about is None or about.task != task:
        some = ", ".join(name for name in _SOURCES if _SOURCES[name].task == task)
        raise TextError(f"There is no source {source!r} for {task}; there is {some}.")
    if split not in about.only:
        only = " and ".join(about.only)
        raise TextError(
            f"{source} has no {split} part, only {only}; take source={_DEFAULTS[task]!r}."
        )
    if path is not None and about.selected_from:
        raise TextError(
            f"{source} is a selection of {about.selected_from} that is shipped alone; leave path= "
            f"out, or read a local copy as source={about.selected_from!r}."
        )
    if path is not None and not about.layout:
        raise TextError(f"{source} is shipped whole, and read from nowhere else; leave path= out.")
    return language, source


def how_to_get(source: str) -> str:
    """What to do where something is not shipped or not found."""
    about = _SOURCES[source]
    if about.selected_from:
        return f"It is a selection of {about.selected_from}. {how_to_get(about.selected_from)}"
    if not about.layout:
        return f"It is {about.url}, shipped whole."
    return f"Get {source} from {about.url}; path= is a folder with {about.layout}."


def find_file(path: Path, source: str, language: str, split: str) -> Path:
    """The one file of a source below ``path``; of several, that of the treebank that is shipped."""
    part = _PARTS[split]
    published = "(translated_)?train" if split == "train" else f"{part}_2k"
    names = _SOURCES[source].files.format(language=language, part=part, published=published)
    same = shipped.catalogue("labelled").query("source == @source and language == @language")
    treebanks = set(same["treebank"])

    def fits(file: Path) -> bool:
        named = re.fullmatch(names, file.name) or re.fullmatch(names, file.as_posix())
        return bool(named) and file.is_file()

    what = f"{split} part of {source} in {language}"
    files = files_below(path.absolute(), fits, what, how_to_get(source))
    return single_file([x for x in files if x.parent.name in treebanks] or files, f"the {what}")


def label_of(file: str | Path) -> str:
    """The label of FLORES-200 in the name of a shipped file: "sib200/deu_Latn.tsv.xz"."""
    return Path(file).name.split(".")[0]


def codes_of(labels: Iterable[str]) -> dict[str, str]:
    """The code of each language of SIB-200, in order, and its label there.

    As in `corpora`: the bare code for the variety of `languages.LANGUAGES` or the only one, else
    with script. ``tzm_Tfng`` counts as ``zgh_Tfng``, as in the text of FLORES-200 that is shipped.
    """
    named = {_MISNAMED.get(label, label): label for label in labels}
    chosen = {code: x.flores for code, x in LANGUAGES.items() if x.flores in named}
    codes = keys_of(named, chosen, "sib200")
    return {code: named[tag] for code, tag in codes.items()}


def variety(language: str, labels: dict[str, str]) -> str | None:
    """The code among those of ``labels`` (code to label) that a code or a label means."""
    if language in labels:
        return language
    spelled = {parse_tag(_MISNAMED.get(label, label)): code for code, label in labels.items()}
    spelled |= {parse_tag(label): code for code, label in labels.items()}
    return spelled.get(language)


def find_variety(path: Path, language: str, split: str) -> tuple[str, Path]:
    """Code and file in SIB-200 as it is published: a folder a language, named by its label."""
    files: dict[str, Path] = {}
    for file in sorted(path.absolute().rglob(f"{_PARTS[split]}.tsv")):
        label = file.parent.name
        try:
            parse_tag(label)
        except ValueError:
            continue
        if label in files:
            raise TextError(
                f"{path} has {label} twice ({files[label]}, {file}); give the folder of one."
            )
        files[label] = file
    labels = codes_of(files)
    code = variety(language, labels)
    if code is None:
        raise TextError(
            f"{path} has no {split} part of sib200 in {language}. {how_to_get('sib200')}"
        )
    return code, files[labels[code]]
