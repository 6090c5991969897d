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
``xnli-whole``     all of XNLI in 15 languages, split by premise, shipped alone
``sick``     NLI   SICK (Marelli et al. 2014) and translations, shipped alone
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from xlx.core import checks
from xlx.text import conllu_files, labelled_files, shipped
from xlx.text import labelled_sources as sources
from xlx.text.conllu_files import UPOS
from xlx.text.examples import Examples
from xlx.text.files import TextError, decode
from xlx.text.labelled_files import LABELS, NER, NLI, PI, TOPICS
from xlx.text.labelled_sources import SPLITS, codes_of
from xlx.text.parallel_sets import Rows, common, shortest

__all__ = [
    "LABELS", "NER", "NLI", "PI", "SPLITS", "TOPICS", "UPOS", "Tagged", "about_labelled",
    "codes_of", "load_labelled", "of_public_part", "parallel_examples",
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Tagged(Rows):
    """Sentences of words, one tag a word.

    ``sentences`` and ``tags`` have one tuple a sentence, of the same length; ``ids`` one string
    each (UD's ``sent_id``, or the number of the sentence in its file; in the shipped WikiAnn
    ``part:number`` of the public file). ``repaired`` counts tags ``I-X`` that continued no X in the
    file and are ``B-X`` here.
    """

    name: str
    language: str
    sentences: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...]
    ids: tuple[str, ...]
    repaired: int = 0
    rows: ClassVar[tuple[str, ...]] = ("sentences", "tags", "ids")
    unit: ClassVar[str] = "sentence"

    @property
    def n_words(self) -> int:
        """Words of all sentences."""
        return sum(map(len, self.sentences))

    def table_hash(self) -> str:
        """SHA-256 of words and tags: ``word<TAB>tag`` a line, an empty line after a sentence."""
        made = hashlib.sha256()
        for words, tags in zip(self.sentences, self.tags, strict=True):
            lines = map("\t".join, zip(words, tags, strict=True))
            made.update("".join(f"{line}\n" for line in (*lines, "")).encode())
        return made.hexdigest()


def load_labelled(
    task: str,
    language: str,
    split: str,
    *,
    source: str | None = None,
    path: str | Path | None = None,
    untranslated: bool = False,
) -> Tagged | Examples:
    """One split of the labelled data of a language, in the order of the file.

    Parameters
    ----------
    task : "POS", "NER", "NLI", "PI" or "TOPIC".
    language : ISO 639 code, such as "de"; of "TOPIC" also a label of FLORES-200 ("arb_Latn").
    split : "train", "validation" or "test"; PUD has "test" only, and so has what is shipped of
        SIB-200 in languages other than English; "xnli-dev" has "train" only, "xnli-whole" "train"
        (all of dev and 3,000 pairs of test: `of_public_part`) and "test" (2,010 of test).
    source : of the table at the top; None for "ud", "xnli", "pawsx", "sib200", "wikiann" (of the
        shipped subset "uner" in languages that it has from there alone).
    path : a folder with a local copy of the full set; None for the shipped subset.
    untranslated : whether to keep the pairs of a local copy of PAWS-X that have a placeholder
        ("NS") for a sentence, all with the label 0, as who reads XTREME's files as they stand. Its
        authors advise against it.

    Returns `Tagged` for POS and NER; `Examples` for NLI (premise, hypothesis), PI and TOPIC, with
    the classes of ``LABELS[task]``. Position i is the same in every language of PUD, XNLI, SIB-200
    and the shipped PAWS-X; of a local copy of PAWS-X each language lacks other rows, and
    `parallel_sets.common` brings them together by their ids. In the shipped subsets an id is
    ``part:line`` of the public file.

    Raises TextError (a ValueError) for what there is not, for malformed files (with file and line)
    and for a shipped file that was changed; FileNotFoundError where there is no folder ``path``.
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

    Part of the identity of results, so the subsets of XNLI have the hash of a file with nothing but
    them, as they were once shipped. Parameters and errors as `load_labelled`.
    """
    language, source = sources.resolved(task, language, split, source, None)
    row = _entry(source, language, split)
    return {"file": row["identity"] or row["sha256"], "split": split}


def of_public_part(examples: Examples, part: str) -> Examples:
    """What a shipped set has of one public part, by its ids: "dev" for those that are "dev:17".

    The dev part alone is ``of_public_part(load_labelled("NLI", "de", "train",
    source="xnli-whole"), "dev")``. Raises TextError where there is nothing of that part.
    """
    kept = [i for i, name in enumerate(examples.ids) if name.startswith(f"{part}:")]
    if not kept:
        there = ", ".join(dict.fromkeys(name.partition(":")[0] for name in examples.ids))
        raise TextError(f"{examples.name} has nothing of a public part {part!r}; it has {there}")
    return replace(examples.at(kept), name=f"{examples.name}, of {part}")


def parallel_examples(
    task: str,
    languages: Sequence[str],
    split: str,
    n: int | None = None,
    **options: Any,
) -> tuple[dict[str, Examples], dict[str, int]]:
    """A part of a task in several languages: what all of them have, the `shortest` n at most.

    Returns the sets and how many examples `common` left out. ``options`` and errors are those of
    `load_labelled`; a language named twice is a ValueError, a task of words, or nothing in all
    languages, a TextError.
    """
    codes = checks.several(languages, "languages", once=True)
    if task in ("POS", "NER"):
        raise TextError(f"{task} labels words: there are NLI, PI and TOPIC to classify")
    sets, left_out = common({x: load_labelled(task, x, split, **options) for x in codes})
    kept = shortest(sets, n)
    return {code: examples.at(kept) for code, examples in sets.items()}, left_out


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


def _load_shipped(task: str, source: str, language: str, split: str) -> Tagged | Examples:
    row = _entry(source, language, split)
    lines, where = shipped.lines_of("labelled", row), row["file"]
    name = f"{source} {row['language']} {split}", row["language"]
    if task in ("POS", "NER"):
        return _tagged(*name, _sentences(task, lines, where, split=split))
    header, *rows = (line.split("\t") for line in lines)
    place = header.index(source) if source in header else 0  # of a subset of what is in the file
    ids, *columns = zip(*(cells[1:] for cells in rows if cells[place] == split), strict=True)
    if task == "TOPIC":
        labels, first = columns
        return _examples(*name, task, (first, None, labels, ids))
    return _examples(*name, task, (*columns[:3], ids))  # behind them how related two of SICK are


def _load_local(
    task: str, source: str, language: str, split: str, path: Path, untranslated: bool
) -> Tagged | Examples:
    if source == "sib200":
        language, file = sources.find_variety(path, language, split)
    else:
        file = sources.find_file(path, source, language, split)
    lines, where = decode(file.read_bytes(), str(file)), str(file)
    if not any(line.strip() for line in lines):
        raise TextError(f"{where} is empty; fetch it again.")
    name = f"{source} {language} {split}", language
    if source == "sib200":
        return _examples(*name, task, labelled_files.read_sib200(lines, where))
    if source == "xnli":
        return _examples(*name, task, labelled_files.read_xnli(lines, where, language))
    if source == "pawsx":
        return _examples(*name, task, *labelled_files.read_pawsx(lines, where, untranslated))
    options = {"uner": {"columns": 5}, "wikiann": {"language": language}}.get(source, {})
    return _tagged(*name, _sentences(task, lines, where, **options))


def _examples(
    name: str, language: str, task: str, columns: labelled_files.Columns, left_out: int = 0
) -> Examples:
    first, second, labels, ids = columns
    classes = LABELS[task]
    places = np.array([classes.index(label) for label in labels])
    return Examples(name, language, first, second, places, classes, ids, left_out)


def _sentences(task: str, lines: list[str], where: str, **options: Any) -> Iterable[tuple]:
    """Id, words, tags and number of repaired tags of each sentence of a file."""
    if task == "NER":
        return labelled_files.read_iob2(lines, where, **options)
    return (
        (read.id, tuple(w.form for w in read.words), tuple(w.upos for w in read.words), 0)
        for read in conllu_files.read_conllu(lines, where, **options)
    )


def _tagged(name: str, language: str, sentences: Iterable[tuple]) -> Tagged:
    ids, words, tags, repaired = zip(*sentences, strict=True)
    return Tagged(name, language, words, tags, ids, sum(repaired))
