"""Labelled data: words with tags, pairs of sentences with a relation, sentences with a topic.

`load` is the one way in. A subset of each source is shipped in ``data/labelled`` (`table` says what
it holds); ``path=`` reads a local copy of the full set in its public layout:

============ ===== ================================================== ==============================
source       task  what                                               files of a local copy
============ ===== ================================================== ==============================
``ud``       POS   Universal Dependencies (Nivre et al. 2020)         ``de_gsd-ud-train.conllu``
``pud``      POS   Parallel UD: the same sentences in all, test only  ``de_pud-ud-test.conllu``
``wikiann``  NER   WikiAnn (Pan et al. 2017; Rahimi et al. 2019)      ``train-de.tsv``, ``de/train``
``uner``     NER   Universal NER (Mayhew et al. 2024)                 ``hr_set-ud-train.iob2``
``xnli``     NLI   XNLI (Conneau et al. 2018)                         ``xnli.dev.tsv``,
                                                                      ``dev-de.tsv``,
                                                                      ``multinli.train.de.tsv``
``xnli-dev`` NLI   more of XNLI's dev part to train on, shipped alone
``pawsx``    PI    PAWS-X (Yang et al. 2019)                          ``dev-de.tsv``,
                                                                      ``de/dev_2k.tsv``,
                                                                      ``de/translated_train.tsv``
``sib200``   TOPIC SIB-200 (Adelani et al. 2024), of FLORES-200       ``deu_Latn/train.tsv``
============ ===== ================================================== ==============================

A local copy is a folder that holds these files at any depth; UD's former names
(``de-ud-dev.OLD201604.conllu``) are read too. "validation" is what the public sets call ``dev``.

What is done to the data: words are the syntactic words of UD, without the ranges of multi-word
tokens and without empty nodes; UD 1's CONJ is read as CCONJ; UNER's OTH counts as O, since WikiAnn
has no such entity; ``I-X`` that continues no X is read as ``B-X``, as conlleval does, and counted
(`Tagged.repaired`). Rows of PAWS-X without a label, or with nothing or a placeholder ("NS", "NA")
for a sentence, are left out and counted (`Pairs.left_out`), as its authors count them. Anything
else that is out of order is a LabelledError with file and line.
"""

import csv
import hashlib
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import conllu
import numpy as np
import pandas as pd

from xlx import checks, corpora, origins, paths
from xlx.languages import LANGUAGES, base_code, parse_tag

#: The 17 tags of Universal Dependencies, in alphabetical order.
UPOS: tuple[str, ...] = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
#: IOB2 tags of the three entities that WikiAnn has.
NER: tuple[str, ...] = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
NLI: tuple[str, ...] = ("entailment", "neutral", "contradiction")
#: Paraphrase identification; 0 and 1 in the files of PAWS-X.
PI: tuple[str, ...] = ("different", "paraphrase")
#: The seven topics of SIB-200.
TOPICS: tuple[str, ...] = (
    *("entertainment", "geography", "health", "politics", "science/technology", "sports"),
    "travel",
)
LABELS: dict[str, tuple[str, ...]] = {
    **{"POS": UPOS, "NER": NER, "NLI": NLI, "PI": PI, "TOPIC": TOPICS},
}

SPLITS: tuple[str, ...] = ("train", "validation", "test")

#: What the public files call a split.
_PARTS = {"train": "train", "validation": "dev", "test": "test"}

_FOLDER = paths.DATA / "labelled"

#: UD 1 said CONJ for what is CCONJ since UD 2.
FORMER_UPOS: dict[str, str] = {"CONJ": "CCONJ"}

#: Entities of UNER that are none of WikiAnn's three.
_NO_ENTITY = {"B-OTH", "I-OTH", "B-OTHER", "I-OTHER"}

#: Labels of pairs as public files write them: MultiNLI in the translations that come with XNLI,
#: and PAWS-X.
_PUBLIC_LABELS = {"contradictory": "contradiction", "0": "different", "1": "paraphrase"}

#: What stands in PAWS-X for a sentence that was not translated, casefolded, and for no label.
_NO_SENTENCE = {"", "ns", "na"}
_NO_LABEL = {"", "NA"}


#: Labels of FLORES-200 and SIB-200 under which the text of another language stands: Standard
#: Moroccan Tamazight, not Central Atlas Tamazight (Kargaran et al. 2023, as in `corpora`).
_MISNAMED = {"tzm_Tfng": "zgh_Tfng"}


class LabelledError(ValueError):
    """Labelled data that cannot be used; says which file and line, why, and what to do."""


@dataclass(frozen=True)
class _Source:
    """Where a source comes from, and how the files of a local copy are called.

    ``selected_from`` names the source whose public files it was selected from, where it has none of
    its own: it is shipped alone, and not read by ``path=``.
    """

    task: str
    url: str
    licence: str
    layout: str
    selected_from: str = ""


_SOURCES = {
    "ud": _Source(
        "POS",
        "universaldependencies.org, github.com/UniversalDependencies",
        "as in the LICENSE.txt of the treebank",
        "UD_German-GSD/de_gsd-ud-train.conllu",
    ),
    "pud": _Source(
        "POS",
        "universaldependencies.org, github.com/UniversalDependencies",
        "as in the LICENSE.txt of the treebank",
        "UD_German-PUD/de_pud-ud-test.conllu",
    ),
    "wikiann": _Source(
        "NER",
        "github.com/afshinrahimi/mmner, or PAN-X of github.com/google-research/xtreme",
        "text of Wikipedia, CC BY-SA",
        "train-de.tsv (XTREME) or de/train (WikiAnn)",
    ),
    "uner": _Source(
        "NER",
        "universalner.org, github.com/UniversalNER",
        "as in the LICENSE.txt of the treebank",
        "UNER_Croatian-SET/hr_set-ud-train.iob2",
    ),
    "xnli": _Source(
        "NLI",
        "github.com/facebookresearch/XNLI",
        "CC BY-NC 4.0",
        "xnli.dev.tsv and xnli.test.tsv (XNLI-1.0) or dev-de.tsv and test-de.tsv (XTREME); to "
        "train, multinli.train.de.tsv (XNLI-MT-1.0)",
    ),
    "xnli-dev": _Source(
        "NLI",
        "github.com/facebookresearch/XNLI",
        "CC BY-NC 4.0",
        "dev-de.tsv (XTREME)",
        selected_from="xnli",
    ),
    "pawsx": _Source(
        "PI",
        "github.com/google-research-datasets/paws",
        "free use, with acknowledgement of Google LLC",
        "de/dev_2k.tsv and de/test_2k.tsv (PAWS-X) or dev-de.tsv and test-de.tsv (XTREME); to "
        "train, en/train.tsv, de/translated_train.tsv (PAWS-X) or train-en.tsv (XTREME)",
    ),
    "sib200": _Source(
        "TOPIC",
        "github.com/dadelani/sib-200 or huggingface.co/datasets/Davlan/sib200",
        "Apache-2.0; text of FLORES-200, CC BY-SA 4.0",
        "deu_Latn/train.tsv, dev.tsv and test.tsv",
    ),
}

#: Sources with one split alone: which, and what to say where another is asked for.
_ONE_SPLIT = {
    "pud": ("test", "Parallel UD has no {} part, only test; train on source='ud'."),
    "xnli-dev": (
        "train",
        "xnli-dev has no {} part, only train; validate and test on source='xnli'.",
    ),
}


# --- what is loaded -------------------------------------------------------------------------------


def _drawn(size: int, n: int, seed: int | np.random.Generator, what: str) -> Sequence[int]:
    """n positions without replacement, ascending; all if n is not smaller."""
    if n < 1:
        raise LabelledError(f"{what}: cannot take {n}; take at least one.")
    if n >= size:
        return range(size)
    return sorted(np.random.default_rng(seed).choice(size, size=n, replace=False).tolist())


def keep(part: "Part", positions: Iterable[int]) -> "Part":
    """The part with the sentences or pairs at these positions alone, in this order."""
    at = list(positions)
    return replace(part, **{name: tuple(getattr(part, name)[i] for i in at) for name in part.rows})


def shared(parts: Sequence["Part"]) -> list["Part"]:
    """The parts with the sentences or pairs that all of them have, by id, in the first's order.

    For what is parallel but for gaps: PAWS-X in a local copy lacks other pairs in each language.

    Raises LabelledError where a part has an id twice, or the parts have no id in common.
    """
    places = []
    for part in parts:
        places.append({name: at for at, name in enumerate(part.ids)})
        if len(places[-1]) < len(part):
            raise LabelledError(f"{part._name}: some ids come twice; they must tell rows apart.")
    common = [name for name in places[0] if all(name in place for place in places)]
    if not common:
        names = ", ".join(part._name for part in parts)
        raise LabelledError(f"No id is in all of {names}; take the same split of one source.")
    return [
        keep(part, [place[name] for name in common])
        for part, place in zip(parts, places, strict=True)
    ]


def _check_sizes(part: "Pairs | Texts") -> None:
    sizes = {name: len(getattr(part, name)) for name in part.rows}
    if len(set(sizes.values())) > 1:
        raise LabelledError(f"{part._name}: unequal numbers of {sizes}.")


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(line + "\n" for line in lines).encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Tagged:
    """One split of one language: sentences of words, one tag a word.

    ``sentences`` and ``tags`` have one tuple a sentence, of the same length; ``ids`` one string
    each (UD's ``sent_id``, or the number of the sentence in its file; in the shipped WikiAnn
    ``part:number`` of the public file). The tags are among ``LABELS[task]``. ``repaired`` counts
    tags ``I-X`` that continued no X in the file and are ``B-X`` here.
    """

    task: str
    source: str
    language: str
    split: str
    sentences: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...]
    ids: tuple[str, ...]
    licence: str
    repaired: int = 0
    rows: ClassVar[tuple[str, ...]] = ("sentences", "tags", "ids")

    def __post_init__(self) -> None:
        if not len(self.sentences) == len(self.tags) == len(self.ids):
            raise LabelledError(
                f"{self._name}: {len(self.sentences)} sentences, {len(self.tags)} rows of tags and "
                f"{len(self.ids)} ids; there must be one of each."
            )
        for name, words, tags in zip(self.ids, self.sentences, self.tags, strict=True):
            if len(words) != len(tags):
                raise LabelledError(
                    f"{self._name}, sentence {name}: {len(words)} words and {len(tags)} tags."
                )

    @property
    def _name(self) -> str:
        return f"{self.task} {self.source} {self.language} {self.split}"

    def __len__(self) -> int:
        return len(self.sentences)

    def __repr__(self) -> str:
        return f"Tagged({self._name}: {len(self)} sentences, {self.n_words} words)"

    @property
    def n_words(self) -> int:
        return sum(map(len, self.sentences))

    def take(self, n: int, seed: int | np.random.Generator) -> "Tagged":
        """n sentences drawn without replacement, in their order; all if n is not smaller.

        The same seed draws the same positions in every language of a parallel source (PUD).
        """
        return keep(self, _drawn(len(self), n, seed, self._name))

    def text_hash(self) -> str:
        """SHA-256 of words and tags: ``word<TAB>tag`` a line, an empty line after a sentence."""
        rows = zip(self.sentences, self.tags, strict=True)
        return _hash(
            line
            for words, tags in rows
            for line in (*map("\t".join, zip(words, tags, strict=True)), "")
        )


@dataclass(frozen=True)
class Pairs:
    """One split of one language: pairs of sentences, one label each.

    ``first`` (of XNLI the premise), ``second`` (the hypothesis), ``labels`` and ``ids`` have one
    string a pair. The labels are among ``LABELS[task]``. In the shipped subsets an id is
    ``part:line`` of the public three-column file, where an item of XNLI (one premise, three
    hypotheses) is three lines.

    Position i is the same pair in every language of XNLI and of the shipped PAWS-X. ``left_out``
    counts the rows of a local copy of PAWS-X that have no label or lack a sentence; each language
    lacks others, so that there the pairs of two languages go together by their ids (`shared`).
    """

    task: str
    source: str
    language: str
    split: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    licence: str
    left_out: int = 0
    rows: ClassVar[tuple[str, ...]] = ("first", "second", "labels", "ids")

    def __post_init__(self) -> None:
        _check_sizes(self)

    @property
    def _name(self) -> str:
        return f"{self.task} {self.source} {self.language} {self.split}"

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Pairs({self._name}: {len(self)} pairs)"

    def take(self, n: int, seed: int | np.random.Generator) -> "Pairs":
        """n pairs drawn without replacement, in their order; all if n is not smaller.

        The same seed draws the same positions in every language.
        """
        return keep(self, _drawn(len(self), n, seed, self._name))

    def text_hash(self) -> str:
        """SHA-256 of the pairs, ``first<TAB>second<TAB>label`` a line."""
        return _hash(map("\t".join, zip(self.first, self.second, self.labels, strict=True)))


@dataclass(frozen=True)
class Texts:
    """One split of one language: sentences, one label each.

    ``sentences``, ``labels`` and ``ids`` have one string a sentence; in SIB-200 position i has the
    same content, id (``index_id`` of the public files) and label in every language. ``language`` is
    the code that `corpora.load` uses for the language of FLORES-200, such as "de", "ar", "ar_Latn".
    The labels are among ``LABELS[task]``.
    """

    task: str
    source: str
    language: str
    split: str
    sentences: tuple[str, ...]
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    licence: str
    rows: ClassVar[tuple[str, ...]] = ("sentences", "labels", "ids")

    def __post_init__(self) -> None:
        _check_sizes(self)

    @property
    def _name(self) -> str:
        return f"{self.task} {self.source} {self.language} {self.split}"

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Texts({self._name}: {len(self)} sentences)"

    def take(self, n: int, seed: int | np.random.Generator) -> "Texts":
        """n sentences drawn without replacement, in their order; all if n is not smaller.

        The same seed draws the same positions in every language.
        """
        return keep(self, _drawn(len(self), n, seed, self._name))

    def text_hash(self) -> str:
        """SHA-256 of the sentences, ``sentence<TAB>label`` a line."""
        return _hash(map("\t".join, zip(self.sentences, self.labels, strict=True)))


Part = Tagged | Pairs | Texts
"""A split of a language; ``rows`` names its fields with one entry a sentence or pair."""


# --- loading --------------------------------------------------------------------------------------


def table() -> pd.DataFrame:
    """What is shipped in ``data/labelled``: one row a file, that is a source and a language.

    Columns: task, source, language; treebank (UD and UNER; else the file's own data set), version;
    train, validation, test (sentences or pairs), words (of all three; of both sentences of a pair,
    parted at spaces, as of SIB-200), repaired (tags; see `Tagged`); made_from (which public part
    gave which split); licence, licence_file (in ``licences/``), url, file, sha256.

    Raises LabelledError if ``sources.tsv`` is missing or malformed.
    """
    file = _FOLDER / "sources.tsv"
    if not file.exists():
        raise LabelledError(f"{file} is missing; restore data/labelled from the repository.")
    return _table(file.read_bytes(), str(file)).copy()


@lru_cache(maxsize=1)
def _table(data: bytes, where: str) -> pd.DataFrame:
    try:
        shipped = origins.table(data, where)
    except origins.CorpusError as error:
        raise LabelledError(str(error)) from None
    counts = [*SPLITS, "words", "repaired"]
    return shipped.astype(dict.fromkeys(counts, int))


def load(
    task: str,
    language: str,
    split: str,
    *,
    source: str | None = None,
    path: str | Path | None = None,
    untranslated: bool = False,
) -> Tagged | Pairs | Texts:
    """One split of the labelled data of a language.

    Parameters
    ----------
    task : "POS", "NER", "NLI", "PI" or "TOPIC".
    language : ISO 639 code, such as "de"; of "TOPIC" also a label of FLORES-200, such as
        "arb_Latn".
    split : "train", "validation" or "test"; PUD has "test" only, and so has what is shipped of
        SIB-200 in languages other than English; "xnli-dev" has "train" only.
    source : "ud", "pud", "wikiann", "uner", "xnli", "xnli-dev", "pawsx", "sib200"; None for "ud",
        "xnli", "pawsx", "sib200", "wikiann" (of the shipped subset "uner" in languages that it has
        from there alone).
    path : a folder with a local copy of the full set (see the table at the top); None for the
        shipped subset. There is none of "xnli-dev", a selection that is shipped alone.
    untranslated : whether to keep the pairs of a local copy of PAWS-X that have a placeholder
        ("NS") for a sentence, all with the label 0: who reads XTREME's files as they stand has
        them. Its authors advise against it.

    Returns `Tagged` for POS and NER, `Pairs` for NLI and PI, `Texts` for TOPIC, in the order of the
    file.

    Raises LabelledError (a ValueError) for a task, split, source or language that there is not, for
    malformed files (with file and line) and for a shipped file that was changed; FileNotFoundError
    where there is no folder ``path``.
    """
    language, source = _checked(task, language, split, source, path)
    if path is None:
        if untranslated:
            raise LabelledError(
                "no untranslated pairs are shipped: name a local copy of PAWS-X with path="
            )
        return _load_shipped(task, source, language, split)
    if not Path(path).is_dir():
        raise FileNotFoundError(f"There is no folder {path}. {_how(source)}")
    if untranslated and source != "pawsx":
        raise LabelledError(f"{source} has no untranslated pairs to keep: only pawsx has")
    return _load_local(task, source, language, split, Path(path), untranslated)


def about(task: str, language: str, split: str, *, source: str | None = None) -> dict[str, str]:
    """What names a shipped split without reading it: the file by its hash, and the split.

    Part of the identity of results computed from it (`xlx.work`). Parameters and errors as `load`.
    """
    language, source = _checked(task, language, split, source, None)
    return {"file": _shipped(task, source, language, split)["sha256"], "split": split}


def _checked(
    task: str, language: str, split: str, source: str | None, path: str | Path | None
) -> tuple[str, str]:
    """Code of the language and source that `load` is asked for; its errors."""
    if task not in LABELS:
        raise LabelledError(f"There is no task {task!r}; there are {', '.join(LABELS)}.")
    if split not in SPLITS:
        raise LabelledError(f"There is no split {split!r}; there are {', '.join(SPLITS)}.")
    checks.tag(language, LabelledError)
    try:
        # Only SIB-200 has several varieties of a language.
        language = parse_tag(language) if task == "TOPIC" else base_code(language)
    except ValueError as error:
        raise LabelledError(str(error)) from None
    source = source or _default_source(task, language if path is None else None)
    if source not in _SOURCES or _SOURCES[source].task != task:
        some = ", ".join(name for name, each in _SOURCES.items() if each.task == task)
        raise LabelledError(f"There is no source {source!r} for {task}; there is {some}.")
    _check_there_is(source, split, path)
    return language, source


def _check_there_is(source: str, split: str, path: str | Path | None) -> None:
    """A source has the split, and files of its own where a local copy is asked for."""
    only, message = _ONE_SPLIT.get(source, (split, ""))
    if split != only:
        raise LabelledError(message.format(split))
    whole = _SOURCES[source].selected_from
    if path is not None and whole:
        raise LabelledError(
            f"{source} is a selection of {whole} that is shipped alone; leave path= out, or read a "
            f"local copy as source={whole!r}."
        )


def _default_source(task: str, language: str | None) -> str:
    """The source of a task; of NER in a language, as far as it is shipped."""
    if task != "NER" or language is None:
        names = {"POS": "ud", "NER": "wikiann", "NLI": "xnli", "PI": "pawsx", "TOPIC": "sib200"}
        return names[task]
    shipped = table()
    here = set(shipped.loc[shipped["language"] == language, "source"])
    return "uner" if "uner" in here and "wikiann" not in here else "wikiann"


def _how(source: str) -> str:
    """What to do where something is not shipped or not found."""
    known = _SOURCES[source]
    if known.selected_from:
        return f"It is a selection of {known.selected_from}. {_how(known.selected_from)}"
    return f"Get {source} from {known.url}; path= is a folder with {known.layout}."


def _shipped(task: str, source: str, language: str, split: str) -> dict[str, object]:
    """The row of `table` that has a split."""
    shipped = table()
    shipped = shipped[shipped["source"] == source]
    if task == "TOPIC" and language not in set(shipped["language"]):
        tags = {row.language: label_of(row.file) for row in shipped.itertuples()}
        language = _variety(language, tags) or language
    row = shipped[shipped["language"] == language].to_dict("records")
    if not row:
        raise LabelledError(
            f"No {task} data of {source} is shipped in {language}; there is "
            f"{', '.join(shipped['language'])}. {_how(source)}"
        )
    if not row[0][split]:
        raise LabelledError(
            f"No {split} part of {source} is shipped in {language}, only in English. {_how(source)}"
        )
    return row[0]


def _load_shipped(task: str, source: str, language: str, split: str) -> Tagged | Pairs | Texts:
    row = _shipped(task, source, language, split)
    file = _FOLDER / row["file"]
    remedy = "restore data/labelled from the repository."
    if not file.exists():
        raise LabelledError(f"{file} is missing; {remedy}")
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise LabelledError(f"{file} is not the file on record in sources.tsv; {remedy}")
    lines = _lines(lzma.decompress(data), str(file))
    about = (task, source, row["language"], split)
    licence = row["licence"]
    if task in ("NLI", "PI"):
        return Pairs(*about, *_read_shipped_pairs(lines, str(file), task, split), licence)
    if task == "TOPIC":
        return Texts(*about, *_read_shipped_texts(lines, str(file), split), licence)
    read = read_conllu if task == "POS" else read_iob2
    return _tagged(about, read(lines, str(file), split=split), licence)


def _load_local(
    task: str, source: str, language: str, split: str, path: Path, untranslated: bool
) -> Tagged | Pairs | Texts:
    part = _PARTS[split]
    if source == "sib200":
        return _load_local_texts(language, split, path)
    about = (task, source, language, split)
    names = {
        "ud": rf"{language}(_(?!pud)[a-z0-9]+)?-ud-{part}(\.OLD\d+)?\.conllu",
        "pud": rf"{language}_pud-ud-{part}(\.OLD\d+)?\.conllu",
        "wikiann": rf"{part}-{language}\.tsv|(.*/)?{language}/{part}",
        "uner": rf"{language}_[a-z0-9]+-ud-{part}\.iob2",
        "xnli": rf"{part}-{language}\.tsv|xnli\.{part}\.tsv|multinli\.{part}\.{language}\.tsv",
        "pawsx": rf"{part}-{language}\.tsv|(.*/)?{language}/"
        + (r"(translated_)?train\.tsv" if split == "train" else rf"{part}_2k\.tsv"),
    }[source]
    file = _find(path, names, about)
    lines, where = _lines(file.read_bytes(), str(file)), str(file)
    licence = _licence(source, language, file)
    if source == "xnli":
        return Pairs(*about, *_read_pairs(lines, where, language), licence)
    if source == "pawsx":
        columns, left_out = _read_paraphrases(lines, where, untranslated)
        return Pairs(*about, *columns, licence, left_out)
    if source in ("ud", "pud"):
        return _tagged(about, read_conllu(lines, where), licence)
    if source == "uner":
        return _tagged(about, read_iob2(lines, where, columns=5), licence)
    return _tagged(about, read_iob2(lines, where, language=language), licence)


def label_of(file: str | Path) -> str:
    """The label of FLORES-200 in the name of a shipped file: "sib200/deu_Latn.tsv.xz"."""
    return Path(file).name.split(".")[0]


def codes_of(labels: Iterable[str]) -> dict[str, str]:
    """The code of each language of SIB-200, in order, and its label there.

    As in `corpora`: the bare code for the variety of `languages.LANGUAGES` or the only one, else
    with script. ``tzm_Tfng`` counts as ``zgh_Tfng``, as in the text of FLORES-200 that is shipped.
    """
    named = {_MISNAMED.get(label, label): label for label in labels}
    chosen = {code: each.flores for code, each in LANGUAGES.items() if each.flores in named}
    codes = corpora._keys(named, chosen, "sib200")
    return {code: named[tag] for code, tag in codes.items()}


def _variety(language: str, labels: dict[str, str]) -> str | None:
    """The code among those of ``labels`` (code to label) that a code or a label means."""
    spelled = {parse_tag(_MISNAMED.get(label, label)): code for code, label in labels.items()}
    spelled |= {parse_tag(label): code for code, label in labels.items()}
    return language if language in labels else spelled.get(language)


def _load_local_texts(language: str, split: str, path: Path) -> Texts:
    """SIB-200 as it is published: a folder a language, with train.tsv, dev.tsv and test.tsv."""
    files: dict[str, Path] = {}
    for file in sorted(path.absolute().rglob(f"{_PARTS[split]}.tsv")):
        label = file.parent.name
        try:
            parse_tag(label)
        except ValueError:
            continue
        if label in files:
            raise LabelledError(
                f"{path} has {label} twice ({files[label]}, {file}); give the folder of one."
            )
        files[label] = file
    labels = codes_of(files)
    code = _variety(language, labels)
    if code is None:
        raise LabelledError(f"{path} has no {split} part of sib200 in {language}. {_how('sib200')}")
    file = files[labels[code]]
    columns = read_topics(_lines(file.read_bytes(), str(file)), str(file))
    return Texts("TOPIC", "sib200", code, split, *columns, _SOURCES["sib200"].licence)


def _find(path: Path, names: str, about: tuple[str, str, str, str]) -> Path:
    """The one file below ``path`` whose name, or path, is among ``names`` (a regular expression).

    Of several, that of the treebank which is shipped.
    """
    _, source, language, split = about
    pattern = re.compile(names)
    files = [
        file
        for file in sorted(path.absolute().rglob("*"))
        if file.is_file() and (pattern.fullmatch(file.name) or pattern.fullmatch(file.as_posix()))
    ]
    shipped = table()
    ours = shipped[(shipped["source"] == source) & (shipped["language"] == language)]["treebank"]
    chosen = [file for file in files if file.parent.name in set(ours)]
    files = chosen or files
    if not files:
        raise LabelledError(f"{path} has no {split} part of {source} in {language}. {_how(source)}")
    if len(files) > 1:
        some = ", ".join(str(file.relative_to(path.absolute())) for file in files)
        raise LabelledError(
            f"{path} has several {split} parts of {source} in {language} ({some}); give the folder "
            "of one as path=."
        )
    return files[0]


def _licence(source: str, language: str, file: Path) -> str:
    """The licence of a treebank that is shipped too; of the source as a whole otherwise."""
    shipped = table()
    ours = shipped[(shipped["source"] == source) & (shipped["language"] == language)]
    known = dict(zip(ours["treebank"], ours["licence"], strict=True))
    return known.get(file.parent.name, _SOURCES[source].licence)


# --- reading --------------------------------------------------------------------------------------

#: A sentence as read: its id, words and tags, and how many of the tags were repaired.
Sentence = tuple[str, tuple[str, ...], tuple[str, ...], int]


def _tagged(
    about: tuple[str, str, str, str], sentences: Iterable[Sentence], licence: str
) -> Tagged:
    ids, words, tags, repaired = zip(*sentences, strict=True)
    return Tagged(*about, words, tags, ids, licence, sum(repaired))


def _lines(data: bytes, where: str) -> list[str]:
    """Lines of UTF-8 text; what is not, or is empty, is a LabelledError."""
    try:
        lines = origins.decode(data, where)
    except origins.CorpusError as error:
        raise LabelledError(str(error)) from None
    if not any(line.strip() for line in lines):
        raise LabelledError(f"{where} is empty; fetch it again.")
    return lines


def blocks(lines: Sequence[str], split: str | None) -> Iterator[tuple[int, list[str], list[str]]]:
    """Sentences of a file whose sentences end at empty lines: (first line, comments, rows).

    A comment starts with ``#`` and has no tab; ``first line`` is the number of the first row (from
    1), and comments are above all rows. With ``split``, only the sentences with the comment
    ``# split = <split>``.
    """
    start = 0
    for number, line in enumerate([*lines, ""]):
        if line.strip():
            continue
        block = lines[start:number]
        n_comments = 0
        while n_comments < len(block) and block[n_comments][0] == "#":
            if "\t" in block[n_comments]:  # the word "#" with its tag
                break
            n_comments += 1
        comments, rows = block[:n_comments], block[n_comments:]
        if block and (split is None or f"# split = {split}" in comments):
            yield start + n_comments + 1, comments, rows
        start = number + 1


def comment(comments: Iterable[str], key: str) -> str | None:
    """The value of ``# key = value``. UD 1's ``# sent_id value`` is none: not unique in a file."""
    for line in comments:
        if match := re.fullmatch(rf"#\s*{key}\s*=\s*(\S.*?)\s*", line):
            return match[1]
    return None


def read_conllu(
    lines: Sequence[str], where: str, *, split: str | None = None
) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file with their UPOS tags. ``where`` opens every error.

    Ranges of multi-word tokens and empty nodes are left out, so that the words are UD's syntactic
    words. ``split`` takes only sentences with the comment ``# split = <split>`` (shipped files).

    Raises LabelledError, with the line, for a row that has not 10 columns, an id out of order, a
    word without form or without one of the 17 tags, a comment among the rows, a repeated sent_id,
    and for a file without sentences.
    """
    seen: dict[str, int] = {}
    for number, (first, comments, rows) in enumerate(blocks(lines, split), 1):
        words: list[str] = []
        tags: list[str] = []
        for line, row in enumerate(rows, first):
            token = _token(row, f"{where}, line {line}")
            if isinstance(token["id"], tuple):  # a range (3-4) or an empty node (5.1)
                continue
            if token["id"] != len(words) + 1:
                raise LabelledError(
                    f"{where}, line {line}: word {token['id']} follows word {len(words)}; words "
                    "are numbered 1, 2, 3 and so on."
                )
            tag = FORMER_UPOS.get(token["upos"], token["upos"])
            if tag not in UPOS:
                raise LabelledError(
                    f"{where}, line {line}: {token['form']!r} has the tag {token['upos']!r}, which "
                    f"is none of UD's 17 ({' '.join(UPOS)}); is this CoNLL-U with UPOS tags?"
                )
            words.append(token["form"])
            tags.append(tag)
        if not words:
            raise LabelledError(f"{where}, line {first}: a sentence without words.")
        name = comment(comments, "sent_id") or str(number)
        if seen.setdefault(name, first) != first:
            raise LabelledError(
                f"{where}, line {first}: sentence {name} is also at line {seen[name]}."
            )
        yield name, tuple(words), tuple(tags), 0
    _some(seen, where, split)


def _token(row: str, where: str) -> conllu.Token:
    """Id, form, lemma and tag of one row, by the ``conllu`` library, which knows no lines."""
    columns = row.split("\t")
    if len(columns) != 10:
        what = "a comment among the words" if row[0] == "#" else f"{len(columns)} columns, not 10"
        raise LabelledError(f"{where}: {what}; CoNLL-U has 10 columns parted by tabs.")
    try:
        token = conllu.parser.parse_line(row, ("id", "form", "lemma", "upos"))
    except (conllu.exceptions.ParseException, ValueError) as error:  # an id of thousands of digits
        raise LabelledError(f"{where}: {error}") from None
    # The library also parts columns at two spaces, which a form may hold.
    if token["id"] is None or (token["form"], token["upos"]) != (columns[1], columns[3]):
        raise LabelledError(f"{where}: no id, or two spaces in a row within a column.")
    if not token["form"].strip():
        raise LabelledError(f"{where}: a word without form.")
    return token


def _some(seen: object, where: str, split: str | None) -> None:
    if not seen:
        raise LabelledError(f"{where} has no sentences{f' of {split}' if split else ''}.")


def read_iob2(
    lines: Sequence[str],
    where: str,
    *,
    columns: int = 2,
    language: str = "",
    split: str | None = None,
) -> Iterator[Sentence]:
    """The sentences of an IOB2 file with their entity tags. ``where`` opens every error.

    ``columns``: 2 (word, tag; WikiAnn and the shipped files) or 5 (number, word, tag, a second tag,
    annotator; UNER). With ``language``, the prefix ``de:`` of the words of the original WikiAnn is
    taken off, and no line is a comment. ``split`` as in `read_conllu`.

    UNER's OTH is read as O, and ``I-X`` that continues no X as ``B-X`` (counted in the result).
    Raises LabelledError, with the line, for a wrong number of columns, an unknown tag, an empty
    word, words of UNER not numbered 1, 2, 3, and for a file without sentences.
    """
    prefix = f"{language}:"
    rows_of_words = [line for line in lines if line.strip()] if language else [""]
    prefixed = all(line.startswith(prefix) for line in rows_of_words)
    n = 0
    for n, (first, comments, rows) in enumerate(blocks(lines, split), 1):
        if language:  # nothing is a comment there: a line that looks like one lacks its tag
            first, rows, comments = first - len(comments), [*comments, *rows], []
        words: list[str] = []
        tags: list[str] = []
        repaired = 0
        for line, row in enumerate(rows, first):
            at = f"{where}, line {line}"
            cells = row.split("\t")
            if len(cells) != columns:
                raise LabelledError(
                    f"{at}: {len(cells)} columns, not {columns}, parted by tabs."
                    + " XTREME withholds the tags of its test files; WikiAnn has them."
                    * (len(cells) == 1)
                )
            if columns == 5 and cells.pop(0) != str(len(words) + 1):
                raise LabelledError(f"{at}: this is not word {len(words) + 1} of its sentence.")
            word, tag = cells[:2]
            word = word.removeprefix(prefix) if prefixed else word
            tag = "O" if tag in _NO_ENTITY else tag
            if tag not in NER:
                raise LabelledError(f"{at}: the tag {tag!r} is none of {' '.join(NER)}.")
            if not word.strip():
                raise LabelledError(f"{at}: a tag without a word.")
            if tag[0] == "I" and (not tags or tags[-1][1:] != tag[1:]):
                tag, repaired = f"B{tag[1:]}", repaired + 1
            words.append(word)
            tags.append(tag)
        if not words:
            raise LabelledError(f"{where}, line {first}: a sentence without words.")
        name = comment(comments, "sent_id") or comment(comments, "id") or str(n)
        yield name, tuple(words), tuple(tags), repaired
    _some(n, where, split)


#: first, second, labels, ids
Columns = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _pairs(
    rows: Iterable[tuple[int, list[str]]],
    where: str,
    task: str,
    n_columns: int,
    cells: Callable[[int, list[str]], tuple[str, str, str, str] | None],
) -> Columns:
    """Check rows (line, columns) and gather what ``cells`` takes from each: id, pair and label."""
    found = []
    for line, row in rows:
        if len(row) != n_columns:
            raise LabelledError(
                f"{where}, line {line}: {len(row)} columns, not {n_columns}, parted by tabs."
                + " XTREME withholds the labels of its test files; the original sets have them."
                * (n_columns == 3 and len(row) == 2)
            )
        if (taken := cells(line, row)) is None:
            continue
        name, first, second, label = taken
        label = _PUBLIC_LABELS.get(label, label)
        if label not in LABELS[task]:
            some = ", ".join(LABELS[task]) + " (0, 1)" * (task == "PI")
            raise LabelledError(f"{where}, line {line}: {label!r} is none of {some}.")
        if not (first.strip() and second.strip()):
            raise LabelledError(f"{where}, line {line}: an empty sentence.")
        found.append((first, second, label, name))
    if not found:
        raise LabelledError(f"{where} has no pair of this language and split.")
    return tuple(zip(*found, strict=True))


def _read_pairs(lines: Sequence[str], where: str, language: str) -> Columns:
    """The pairs of a file of XNLI in one of its three public layouts, told apart by the header."""
    rows = list(enumerate((line.split("\t") for line in lines), 1))
    header = rows[0][1]
    if header == ["premise", "hypo", "label"]:  # XNLI-MT-1.0
        return _pairs(rows[1:], where, "NLI", 3, lambda line, row: (str(line - 1), *row))
    if "gold_label" not in header:  # XTREME: three columns, no header
        return _pairs(rows, where, "NLI", 3, lambda line, row: (str(line), *map(_unquoted, row)))
    wanted = ("language", "pairID", "sentence1", "sentence2", "gold_label")
    if missing := [name for name in wanted if name not in header]:
        raise LabelledError(f"{where}, line 1: the header lacks {', '.join(missing)}.")
    at = [header.index(name) for name in wanted]

    def of_the_language(_: int, row: list[str]) -> tuple[str, str, str, str] | None:
        code, *cells = (row[i] for i in at)
        return tuple(cells) if code == language else None

    return _pairs(rows[1:], where, "NLI", len(header), of_the_language)


def _read_paraphrases(
    lines: Sequence[str], where: str, untranslated: bool = False
) -> tuple[Columns, int]:
    """The pairs of a file of PAWS-X or of XTREME's copy, and how many rows were left out.

    PAWS-X has a header and an id a row. In XTREME's copy, without either, the id is the number of
    the line, and sentences are written as the ``csv`` module writes them: that is undone.
    """
    rows = list(enumerate((line.split("\t") for line in lines), 1))
    if rows[0][1] == ["id", "sentence1", "sentence2", "label"]:
        n_columns, rows = 4, rows[1:]
    else:
        n_columns = 3
        rows = [(line, [*map(_unquoted, row)]) for line, row in rows]
    whole = [
        (line, row)
        for line, row in rows
        if len(row) != n_columns or not _has_gap(row, untranslated)
    ]
    if rows and not whole:
        raise LabelledError(f"{where}: no row has both sentences and a label.")
    columns = _pairs(whole, where, "PI", n_columns, lambda line, row: (str(line), *row)[-4:])
    return columns, len(rows) - len(whole)


def _has_gap(row: Sequence[str], untranslated: bool) -> bool:
    *_, first, second, label = (cell.strip() for cell in row)
    missing = {""} if untranslated else _NO_SENTENCE
    return label in _NO_LABEL or bool({first.casefold(), second.casefold()} & missing)


def _unquoted(cell: str) -> str:
    """A cell without the quotation marks of the ``csv`` module; as it is where they are its own."""
    inner = re.fullmatch('"((?:[^"]|"")*)"', cell)
    return inner[1].replace('""', '"') if inner else cell


def _read_shipped_pairs(lines: Sequence[str], where: str, task: str, split: str) -> Columns:
    rows = [(number, line.split("\t")) for number, line in enumerate(lines[1:], 2)]
    rows = [(line, row) for line, row in rows if row[0] == split]
    return _pairs(rows, where, task, 5, lambda _, row: tuple(row[1:]))


#: sentences, labels, ids
Topics = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def read_topics(lines: Sequence[str], where: str) -> Topics:
    """Sentences, labels and ids of a file of SIB-200: ``index_id``, ``category``, ``text``.

    A field with quotation marks stands in quotation marks, where each is doubled (as pandas and the
    ``csv`` module write them); that is undone. ``where`` opens every error.

    Raises LabelledError, with the line, for another header, another number of columns, quotation
    marks that do not close, an unknown topic, an id that is no number or comes twice, an empty
    sentence, and for a file without sentences.
    """
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            (row,) = csv.reader([line], delimiter="\t", strict=True) if line else ([],)
        except csv.Error as error:
            raise LabelledError(f"{where}, line {number}: {error}.") from None
        rows.append((number, row))
    header = ["index_id", "category", "text"]
    if rows[0][1] != header:
        raise LabelledError(f"{where}, line 1: the header is not {', '.join(header)}.")
    return _topics(rows[1:], where)


def _topics(rows: Iterable[tuple[int, list[str]]], where: str) -> Topics:
    """Check rows (line, [id, topic, sentence]) and turn them into columns."""
    found: dict[str, tuple[str, str]] = {}
    for line, row in rows:
        at = f"{where}, line {line}"
        if len(row) != 3:
            raise LabelledError(f"{at}: {len(row)} columns, not 3, parted by tabs.")
        name, topic, sentence = row
        if not name.isdecimal():
            raise LabelledError(f"{at}: the id {name!r} is no number.")
        if name in found:
            raise LabelledError(f"{at}: the id {name} comes twice.")
        if topic not in TOPICS:
            raise LabelledError(f"{at}: the topic {topic!r} is none of {', '.join(TOPICS)}.")
        if not sentence.strip():
            raise LabelledError(f"{at}: an empty sentence.")
        found[name] = (sentence, topic)
    if not found:
        raise LabelledError(f"{where} has no sentences.")
    sentences, topics = zip(*found.values(), strict=True)
    return sentences, topics, tuple(found)


def _read_shipped_texts(lines: Sequence[str], where: str, split: str) -> Topics:
    rows = [(number, line.split("\t")) for number, line in enumerate(lines[1:], 2)]
    return _topics([(line, row[1:]) for line, row in rows if row[0] == split], where)
