"""Labelled data: words with tags, pairs of sentences with a relation, sentences with a topic.

`load_labelled` is the one way in. A subset of each source is shipped in ``data/labelled``
(`shipped.catalogue` says what it holds); ``path=`` reads a local copy of the full set in its public
layout, a folder that holds these files at any depth:

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

UD's former names (``de-ud-dev.OLD201604.conllu``) are read too. "validation" is what the public
sets call ``dev``. What is done to the data is told in `conllu_files` and `labelled_files`. Anything
out of order is a TextError with file and line.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from xlx.text import conllu_files, labelled_files, shipped
from xlx.text import labelled_sources as sources
from xlx.text.conllu_files import UPOS
from xlx.text.files import TextError, decode
from xlx.text.labelled_files import LABELS, NER, NLI, PI, TOPICS
from xlx.text.labelled_sources import SPLITS, codes_of
from xlx.text.parallel_sets import Rows

__all__ = [
    "LABELS", "NER", "NLI", "PI", "SPLITS", "TOPICS", "UPOS", "Pairs", "Tagged", "Texts",
    "about_labelled", "codes_of", "load_labelled",
]  # fmt: skip

# --- what is loaded -------------------------------------------------------------------------------


class _Split(Rows):
    """One split of one language, of which the fields task, source, language and split tell."""

    unit: ClassVar[str] = "sentence"

    @property
    def name(self) -> str:
        """What this is, in messages."""
        return f"{self.task} {self.source} {self.language} {self.split}"


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(line + "\n" for line in lines).encode("utf-8")).hexdigest()


@dataclass(frozen=True, repr=False)
class Tagged(_Split):
    """Sentences of words, one tag a word.

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

    @property
    def n_words(self) -> int:
        """Words of all sentences."""
        return sum(map(len, self.sentences))

    def text_hash(self) -> str:
        """SHA-256 of words and tags: ``word<TAB>tag`` a line, an empty line after a sentence."""
        rows = zip(self.sentences, self.tags, strict=True)
        return _hash(
            line
            for words, tags in rows
            for line in (*map("\t".join, zip(words, tags, strict=True)), "")
        )


@dataclass(frozen=True, repr=False)
class Pairs(_Split):
    """Pairs of sentences, one label each.

    ``first`` (of XNLI the premise), ``second`` (the hypothesis), ``labels`` and ``ids`` have one
    string a pair. The labels are among ``LABELS[task]``. In the shipped subsets an id is
    ``part:line`` of the public three-column file, where an item of XNLI (one premise, three
    hypotheses) is three lines.

    Position i is the same pair in every language of XNLI and of the shipped PAWS-X. ``left_out``
    counts the rows of a local copy of PAWS-X that have no label or lack a sentence; each language
    lacks others, so that there the pairs of two languages go together by their ids
    (`parallel_sets.common`).
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
    unit: ClassVar[str] = "pair"

    def text_hash(self) -> str:
        """SHA-256 of the pairs, ``first<TAB>second<TAB>label`` a line."""
        return _hash(map("\t".join, zip(self.first, self.second, self.labels, strict=True)))


@dataclass(frozen=True, repr=False)
class Texts(_Split):
    """Sentences, one label each.

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

    def text_hash(self) -> str:
        """SHA-256 of the sentences, ``sentence<TAB>label`` a line."""
        return _hash(map("\t".join, zip(self.sentences, self.labels, strict=True)))


# --- loading --------------------------------------------------------------------------------------


def load_labelled(
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

    Raises TextError (a ValueError) for a task, split, source or language that there is not, for
    malformed files (with file and line) and for a shipped file that was changed; FileNotFoundError
    where there is no folder ``path``.
    """
    language, source = sources.resolved(task, language, split, source, path)
    if untranslated and (path is None or source != "pawsx"):
        raise TextError(
            "untranslated pairs are in local copies of PAWS-X alone: none are shipped, and other "
            "sets have none"
        )
    if path is None:
        return _load_shipped(task, source, language, split)
    if not Path(path).is_dir():
        raise FileNotFoundError(f"There is no folder {path}. {sources.how_to_get(source)}")
    return _load_local(task, source, language, split, Path(path), untranslated)


def about_labelled(
    task: str, language: str, split: str, *, source: str | None = None
) -> dict[str, str]:
    """What names a shipped split without reading it: the file by its hash, and the split.

    Part of the identity of results computed from it (`xlx.core.work`). Parameters and errors as
    `load_labelled`.
    """
    language, source = sources.resolved(task, language, split, source, None)
    return {"file": _entry(source, language, split)["sha256"], "split": split}


def _entry(source: str, language: str, split: str) -> dict[str, Any]:
    """The row of the catalogue that has a split."""
    if source == "sib200":
        rows = shipped.catalogue("labelled").query("source == @source")
        tags = {row.language: sources.label_of(row.file) for row in rows.itertuples()}
        language = sources.variety(language, tags) or language
    row = shipped.entry("labelled", sources.how_to_get(source), source=source, language=language)
    if not row[split]:
        what = f"No {split} part of {source} is shipped in {language}, only in English."
        raise TextError(f"{what} {sources.how_to_get(source)}")
    return row


def _load_shipped(task: str, source: str, language: str, split: str) -> Tagged | Pairs | Texts:
    row = _entry(source, language, split)
    lines, where = shipped.lines_of("labelled", row), row["file"]
    names = (task, source, row["language"], split)
    if task in ("POS", "NER"):
        return _tagged(names, _sentences(task, lines, where, split=split), row["licence"])
    rows = (line.split("\t") for line in lines[1:])
    ids, *columns = zip(*(cells[1:] for cells in rows if cells[0] == split), strict=True)
    if task == "TOPIC":
        return Texts(*names, *reversed(columns), ids, row["licence"])
    return Pairs(*names, *columns, ids, row["licence"])


def _load_local(
    task: str, source: str, language: str, split: str, path: Path, untranslated: bool
) -> Tagged | Pairs | Texts:
    if source == "sib200":
        language, file = sources.find_variety(path, language, split)
    else:
        file = sources.find_file(path, source, language, split)
    lines, where = decode(file.read_bytes(), str(file)), str(file)
    if not any(line.strip() for line in lines):
        raise TextError(f"{where} is empty; fetch it again.")
    names = (task, source, language, split)
    same = shipped.catalogue("labelled").query("source == @source and language == @language")
    licences = dict(zip(same["treebank"], same["licence"], strict=True))
    licence = licences.get(file.parent.name, sources.known(source).licence)
    if source == "sib200":
        return Texts(*names, *labelled_files.read_sib200(lines, where), licence)
    if source == "xnli":
        return Pairs(*names, *labelled_files.read_xnli(lines, where, language), licence)
    if source == "pawsx":
        columns, left_out = labelled_files.read_pawsx(lines, where, untranslated)
        return Pairs(*names, *columns, licence, left_out)
    options = {"uner": {"columns": 5}, "wikiann": {"language": language}}.get(source, {})
    return _tagged(names, _sentences(task, lines, where, **options), licence)


def _sentences(task: str, lines: list[str], where: str, **options: Any) -> Iterable[tuple]:
    """Id, words, tags and number of repaired tags of each sentence of a file."""
    if task == "NER":
        return labelled_files.read_iob2(lines, where, **options)
    return (
        (read.id, tuple(w.form for w in read.words), tuple(w.upos for w in read.words), 0)
        for read in conllu_files.read_conllu(lines, where, **options)
    )


def _tagged(names: tuple[str, str, str, str], sentences: Iterable[tuple], licence: str) -> Tagged:
    ids, words, tags, repaired = zip(*sentences, strict=True)
    return Tagged(*names, words, tags, ids, licence, sum(repaired))
