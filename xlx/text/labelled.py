"""Labelled sentences and pairs: what is shipped, and local copies in their public layouts.

What is done to the data: UNER's OTH counts as O, since WikiAnn has no such entity; ``I-X`` that
continues no X is read as ``B-X``, as conlleval does, and counted; rows of PAWS-X without a label,
or with nothing or a placeholder ("NS", "NA") for a sentence, are left out, as its authors advise.
Files are read as their authors publish them, so that their hashes can stand on record; Hugging
Face's package of data sets would be one more dependency for tables of a few columns.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from xlx.results import checks
from xlx.text import files, trees
from xlx.text.examples import Examples, Rows, common, shortest
from xlx.text.files import TextError
from xlx.text.languages import LANGUAGES, base_code, parse_tag
from xlx.text.parallel import keys_of
from xlx.text.trees import UPOS, comment, sentence_blocks

#: IOB2 tags of the three entities that WikiAnn has.
NER = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
NLI = ("entailment", "neutral", "contradiction")
#: Paraphrase identification; 0 and 1 in the files of PAWS-X.
PI = ("different", "paraphrase")
#: The seven topics of SIB-200.
TOPICS = (
    *("entertainment", "geography", "health", "politics", "science/technology", "sports"),
    "travel",
)
LABELS = {"POS": UPOS, "NER": NER, "NLI": NLI, "PI": PI, "TOPIC": TOPICS}
SPLITS = ("train", "validation", "test")
#: What the public files call a split.
_PARTS = {"train": "train", "validation": "dev", "test": "test"}


class _Source(NamedTuple):
    """Where a source comes from, and how the files of a local copy are called.

    ``layout`` names them in messages: without it a source is shipped alone. ``files`` is a regular
    expression for their names, or paths; ``only`` the splits that there are, if not all.
    """

    task: str
    url: str
    layout: str = ""
    files: str = ""
    only: tuple[str, ...] = SPLITS


_UD_URL = "universaldependencies.org, github.com/UniversalDependencies"
_SOURCES = {
    "ud": _Source(
        "POS",
        _UD_URL,
        "UD_German-GSD/de_gsd-ud-train.conllu",
        r"{language}(_(?!pud)[a-z0-9]+)?-ud-{part}(\.OLD\d+)?\.conllu",
    ),
    "pud": _Source(
        "POS",
        _UD_URL,
        "UD_German-PUD/de_pud-ud-test.conllu",
        r"{language}_pud-ud-{part}(\.OLD\d+)?\.conllu",
        ("test",),
    ),
    "wikiann": _Source(
        "NER",
        "github.com/afshinrahimi/mmner, or PAN-X of github.com/google-research/xtreme",
        "train-de.tsv (XTREME) or de/train (WikiAnn)",
        r"{part}-{language}\.tsv|(.*/)?{language}/{part}",
    ),
    "uner": _Source(
        "NER",
        "universalner.org, github.com/UniversalNER",
        "UNER_Croatian-SET/hr_set-ud-train.iob2",
        r"{language}_[a-z0-9]+-ud-{part}\.iob2",
    ),
    "xnli": _Source(
        "NLI",
        "github.com/facebookresearch/XNLI",
        "xnli.dev.tsv (XNLI-1.0), dev-de.tsv (XTREME) or multinli.train.de.tsv (XNLI-MT-1.0)",
        r"{part}-{language}\.tsv|xnli\.{part}\.tsv|multinli\.{part}\.{language}\.tsv",
    ),
    "xnli-dev": _Source("NLI", "a selection of xnli", only=("train",)),
    "xnli-whole": _Source("NLI", "all of xnli", only=("train", "test")),
    "sick": _Source("NLI", "SICK (Marelli et al. 2014) and its translations"),
    "pawsx": _Source(
        "PI",
        "github.com/google-research-datasets/paws",
        "de/test_2k.tsv, en/train.tsv, de/translated_train.tsv (PAWS-X) or dev-de.tsv (XTREME)",
        r"{part}-{language}\.tsv|(.*/)?{language}/{published}\.tsv",
    ),
    "sib200": _Source(
        "TOPIC",
        "SIB-200, github.com/dadelani/sib-200",
    ),
}
_DEFAULTS = {"POS": "ud", "NER": "wikiann", "NLI": "xnli", "PI": "pawsx", "TOPIC": "sib200"}


class _Layout(NamedTuple):
    """A public layout of a table: names in its header, of which ``label`` tells it from others.

    Without ``id``, rows are named by their number; with ``language``, one file has several.
    ``quoted``: cells are as the `csv` module writes them.
    """

    label: str
    texts: tuple[str, ...]
    id: str = ""
    language: str = ""
    quoted: bool = False


#: XTREME's copies: three columns, no header.
_XTREME = _Layout("2", ("0", "1"), quoted=True)
#: The layouts of a task; the last is that of a file whose header has the label of none.
_LAYOUTS = {
    "NLI": (
        _Layout("gold_label", ("sentence1", "sentence2"), "pairID", "language"),  # XNLI-1.0
        _Layout("label", ("premise", "hypo")),  # XNLI-MT-1.0
        _XTREME,
    ),
    "PI": (_Layout("label", ("sentence1", "sentence2"), "id"), _XTREME),
    "TOPIC": (_Layout("category", ("text",), "index_id", quoted=True),),
}
#: Labels as public files write them: MultiNLI in the translations that come with XNLI, and PAWS-X.
_PUBLIC_LABELS = {"contradictory": "contradiction", "0": "different", "1": "paraphrase"}
#: What stands in PAWS-X for a sentence that was not translated, casefolded, and for no label.
_NO_SENTENCE, _NO_LABEL = {"", "ns", "na"}, {"", "NA"}
#: Entities of UNER that are none of WikiAnn's three.
_NO_ENTITY = {"B-OTH", "I-OTH", "B-OTHER", "I-OTHER"}
#: Labels of FLORES-200 and SIB-200 under which the text of another language stands: Standard
#: Moroccan Tamazight, not Central Atlas Tamazight (Kargaran et al. 2023).
_MISNAMED = {"tzm_Tfng": "zgh_Tfng"}
#: Texts of one or two sides, their labels, ids.
Columns = tuple[tuple[str, ...], tuple[str, ...] | None, tuple[str, ...], tuple[str, ...]]


def read_rows(lines: Sequence[str], where: str, task: str, language: str = "") -> Columns:
    """The sentences or pairs of a public file; ``where`` opens every error, with the line.

    TextError for a header that lacks a column, another number of columns, an unknown label, an
    empty sentence, and for a file with nothing of the language.
    """
    header, first = lines[0].split("\t"), 2
    layout = next((x for x in _LAYOUTS[task] if x.label in header), _LAYOUTS[task][-1])
    if layout is _XTREME:
        header, first = list("012"), 1
    named = (layout.language, layout.id, *layout.texts, layout.label)
    if missing := [name for name in named if name and name not in header]:
        raise TextError(f"{where}, line 1: the header lacks {', '.join(missing)}.")
    rows = []
    for number, line in enumerate(lines[first - 1 :], 1):
        place = f"{where}, line {number + first - 1}"
        cells = _checked(line.split("\t"), len(header), place)
        row = dict(zip(header, map(_unquoted, cells) if layout.quoted else cells, strict=True))
        texts, label = [row[name] for name in layout.texts], row[layout.label]
        if layout.language and row[layout.language] != language:
            continue
        if task == "PI" and (
            label.strip() in _NO_LABEL or {x.strip().casefold() for x in texts} & _NO_SENTENCE
        ):
            continue
        label = _PUBLIC_LABELS.get(label, label)
        if label not in LABELS[task]:
            some = ", ".join(LABELS[task]) + " (0, 1)" * (task == "PI")
            raise TextError(f"{place}: {label!r} is none of {some}.")
        if not all(text.strip() for text in texts):
            raise TextError(f"{place}: an empty sentence.")
        rows.append((*texts, label, row[layout.id] if layout.id else str(number)))
    if not rows:
        raise TextError(f"{where} has nothing of this language and split.")
    *sides, labels, ids = zip(*rows, strict=True)
    return sides[0], sides[1] if len(sides) > 1 else None, labels, ids


def _checked(cells: list[str], n: int, place: str) -> list[str]:
    """The cells of a row, if there are n."""
    if len(cells) != n:
        withheld = " XTREME withholds the labels of its test files; the original sets have them."
        hint = withheld if n <= 3 and len(cells) == n - 1 else ""
        raise TextError(f"{place}: {len(cells)} columns, not {n}, parted by tabs.{hint}")
    return cells


def _unquoted(cell: str) -> str:
    """A cell without the quotation marks of the ``csv`` module; as it is where they are its own."""
    inner = re.fullmatch('"((?:[^"]|"")*)"', cell)
    return inner[1].replace('""', '"') if inner else cell


def read_iob2(
    lines: Sequence[str],
    where: str,
    *,
    columns: int = 2,
    language: str = "",
    split: str | None = None,
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], int]]:
    """The sentences of an IOB2 file: id, words, entity tags, and how many tags were repaired.

    ``columns``: 2 (word, tag; WikiAnn and the shipped files) or 5 (number, word, tag, a second tag,
    annotator; UNER). With ``language``, the prefix ``de:`` of the words of the original WikiAnn is
    taken off, and no line is a comment. ``split``: only sentences with the comment ``# split = …``.
    """
    prefix = f"{language}:"
    if not (language and all(line.startswith(prefix) for line in lines if line.strip())):
        prefix = ""
    for number, (first, comments, rows) in enumerate(sentence_blocks(lines, where, split), 1):
        if language:  # nothing is a comment there: a line that looks like one lacks its tag
            first, rows, comments = first - len(comments), [*comments, *rows], []
        words = []
        tags = []
        repaired = 0
        for line, row in enumerate(rows, first):
            place = f"{where}, line {line}"
            cells = _checked(row.split("\t"), columns, place)
            if columns == 5 and cells.pop(0) != str(len(words) + 1):
                raise TextError(f"{place}: this is not word {len(words) + 1} of its sentence.")
            word, tag = cells[0].removeprefix(prefix), cells[1]
            tag = "O" if tag in _NO_ENTITY else tag
            if tag not in NER:
                raise TextError(f"{place}: the tag {tag!r} is none of {' '.join(NER)}.")
            if not word.strip():
                raise TextError(f"{place}: a tag without a word.")
            if tag[0] == "I" and (not tags or tags[-1][1:] != tag[1:]):
                tag, repaired = f"B{tag[1:]}", repaired + 1
            words.append(word)
            tags.append(tag)
        if not words:
            raise TextError(f"{where}, line {first}: a sentence without words.")
        name = comment(comments, "sent_id") or comment(comments, "id") or str(number)
        yield name, tuple(words), tuple(tags), repaired


@dataclass(frozen=True, repr=False)
class Tagged(Rows):
    """Sentences of words, one tag per word: a tuple of each a sentence.

    ``ids`` are UD's ``sent_id``, or the number of the sentence in its file (in the shipped WikiAnn
    ``part:number`` of the public file). ``repaired`` counts tags ``I-X`` that are ``B-X`` here.
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


@checks.typed(TextError)
def load_labelled(
    task: str,
    language: str,
    split: str,
    *,
    source: str | None = None,
    path: str | Path | None = None,
) -> Tagged | Examples:
    """One split of the labelled data of a language, in the order of the file.

    Parameters
    ----------
    task : "POS", "NER", "NLI", "PI" or "TOPIC".
    language : ISO 639 code, such as "de"; of "TOPIC" also a label of FLORES-200 ("arb_Latn").
    split : "train", "validation" or "test", as far as ``data/labelled/README.md`` lists them.
    source : as in ``data/labelled/sources.tsv``; None for "ud", "xnli", "pawsx", "sib200",
        "wikiann" (of what is shipped "uner" in languages that it has from there alone).
    path : a folder with a local copy of the full set; None for what is shipped, of SICK and SIB-200
        the whole.

    Returns `Tagged` for POS and NER; `Examples` for NLI (premise, hypothesis), PI and TOPIC, with
    the classes of ``LABELS[task]``. Position i is the same in every language of PUD, XNLI, SIB-200
    and the shipped PAWS-X; of a local copy of PAWS-X each language lacks other rows
    (`examples.common`). In what is shipped an id is ``part:line`` of the public file.

    Raises TextError (a ValueError) for what there is not, for malformed files (with file and line)
    and for a shipped file that was changed; FileNotFoundError where there is no folder ``path``.
    """
    language, source = resolved(task, language, split, source, path)
    if path is None:
        # rows were checked by the script that drew them
        row = _entry(source, language, split)
        return _split(task, source, language, split, files.stamp("labelled", row["file"]))
    if not Path(path).is_dir():
        raise FileNotFoundError(f"There is no folder {path}. {_how_to_get(source)}")
    return _load_local(task, source, language, split, Path(path))


def resolved(
    task: str, language: str, split: str, source: str | None, path: str | Path | None
) -> tuple[str, str]:
    """Code of the language and source that `load_labelled` is asked for; its errors."""
    checks.one_of(task, LABELS, "task", TextError)
    checks.one_of(split, SPLITS, "split", TextError)
    # Only SIB-200 has several varieties of a language.
    language = parse_tag(language) if task == "TOPIC" else base_code(language)
    if source is None:
        source = _DEFAULTS[task]
        if task == "NER" and path is None:
            rows = files.catalogue("labelled").query("task == 'NER' and language == @language")
            source = "uner" if {*rows["source"]} == {"uner"} else source
    of_task = {name: about for name, about in _SOURCES.items() if about.task == task}
    checks.one_of(source, of_task, f"source of {task}", TextError)
    about = of_task[source]
    if split not in about.only:
        raise TextError(
            f"{source} has no {split} part, only {' and '.join(about.only)}"
            f"; take source={_DEFAULTS[task]!r}."
        )
    if path is not None and not about.layout:
        raise TextError(f"{source} is shipped whole, and read from nowhere else; leave path= out.")
    return language, source


def about_labelled(
    task: str, language: str, split: str, *, source: str | None = None
) -> dict[str, str]:
    """What names a shipped split without reading it: the file by its hash, and the split.

    The identity of results: subsets of XNLI have the hash of a file of theirs, as once shipped.
    """
    language, source = resolved(task, language, split, source, None)
    row = _entry(source, language, split)
    return {"file": row["identity"] or row["sha256"], "split": split}


@checks.typed(TextError)
def parallel_examples(
    task: str,
    languages: Sequence[str],
    split: str,
    n: int | None = None,
    **options: Any,
) -> tuple[dict[str, Examples], dict[str, int]]:
    """A part of a task in several languages: what all of them have, the `shortest` n at most.

    Returns the sets and how many examples `common` left out; ``options`` and errors are those of
    `load_labelled`.
    """
    codes = checks.several(languages, "languages")
    if task in ("POS", "NER"):
        raise TextError(f"{task} labels words: there are NLI, PI and TOPIC to classify")
    sets, left_out = common({x: load_labelled(task, x, split, **options) for x in codes})
    places = shortest(sets, n)
    return {code: examples.at(places) for code, examples in sets.items()}, left_out


def _how_to_get(source: str) -> str:
    """What to do where something is not shipped or not found."""
    about = _SOURCES[source]
    if not about.layout:
        return f"It is {about.url}, shipped whole."
    return f"Get {source} from {about.url}; path= is a folder with {about.layout}."


def _entry(source: str, language: str, split: str) -> dict[str, Any]:
    """The row of the catalogue that has a split."""
    if source == "sib200":
        language = _variety(language, _shipped_varieties(files.stamp("labelled"))) or language
    row = files.entry("labelled", _how_to_get(source), language, source=source)
    if not row[split]:
        raise TextError(
            f"No {split} part of {source} is shipped in {language}, only in English."
            f" {_how_to_get(source)}"
        )
    return row


@lru_cache(maxsize=2)
def _shipped_varieties(_: tuple) -> dict[str, str]:
    """Code to label of the languages of SIB-200."""
    rows = files.catalogue("labelled").query("source == 'sib200'")
    return dict(zip(rows["language"], rows["file"].str.split("[/.]").str[1], strict=True))


@lru_cache(maxsize=2**9)  # one load of a topic's 204 languages serves all models
def _split(task: str, source: str, language: str, split: str, _: tuple) -> Tagged | Examples:
    row = _entry(source, language, split)
    lines, where = files.lines_of("labelled", row), row["file"]
    name = f"{source} {row['language']} {split}", row["language"]
    if task in ("POS", "NER"):
        return _tagged(*name, task, lines, where, {"split": split})
    header, *rows = (line.split("\t") for line in lines)
    place = header.index(source) if source in header else 0  # of a subset of what is in the file
    ids, *columns = zip(*(cells[1:] for cells in rows if cells[place] == split), strict=True)
    if task == "TOPIC":
        labels, first = columns
        return _examples(*name, task, (first, None, labels, ids))
    return _examples(*name, task, (*columns[:3], ids))  # behind them how related two of SICK are


def _load_local(task: str, source: str, language: str, split: str, path: Path) -> Tagged | Examples:
    """A split of a local copy."""
    file = _find_file(path, source, language, split)
    lines, where = files.decode(file.read_bytes(), str(file)), str(file)
    if not any(line.strip() for line in lines):
        raise TextError(f"{where} is empty; fetch it again.")
    name = f"{source} {language} {split}", language
    if task in ("POS", "NER"):
        options = {"uner": {"columns": 5}, "wikiann": {"language": language}}.get(source, {})
        return _tagged(*name, task, lines, where, options)
    return _examples(*name, task, read_rows(lines, where, task, language))


def _find_file(path: Path, source: str, language: str, split: str) -> Path:
    """The one file of a source below ``path``; of several, that of the treebank that is shipped."""
    part = _PARTS[split]
    published = "(translated_)?train" if split == "train" else f"{part}_2k"
    names = _SOURCES[source].files.format(language=language, part=part, published=published)
    same = files.catalogue("labelled").query("source == @source and language == @language")

    def fits(file: Path) -> bool:
        named = re.fullmatch(names, file.name) or re.fullmatch(names, file.as_posix())
        return bool(named) and file.is_file()

    what = f"{split} part of {source} in {language}"
    candidates = files.files_below(path.absolute(), fits, what, _how_to_get(source))
    shipped = [file for file in candidates if file.parent.name in set(same["treebank"])]
    return files.single_file(shipped or candidates, f"the {what}")


def codes_of(labels: Iterable[str]) -> dict[str, str]:
    """The code of each language of SIB-200, in order, and its label there.

    As in `parallel`: the bare code for the variety of `languages.LANGUAGES` or the only one, else
    with script. ``tzm_Tfng`` counts as ``zgh_Tfng``, as in the text of FLORES-200 that is shipped.
    """
    named = {_MISNAMED.get(label, label): label for label in labels}
    chosen = {code: x.flores for code, x in LANGUAGES.items() if x.flores in named}
    return {code: named[tag] for code, tag in keys_of(named, chosen, "sib200").items()}


def _variety(language: str, labels: dict[str, str]) -> str | None:
    """The code among those of ``labels`` (code to label) that a code or a label means."""
    if language in labels:
        return language
    spelled = {parse_tag(_MISNAMED.get(label, label)): code for code, label in labels.items()}
    spelled |= {parse_tag(label): code for code, label in labels.items()}
    return spelled.get(language)


def _examples(name: str, language: str, task: str, columns: Columns) -> Examples:
    first, second, labels, ids = columns
    places = np.array([LABELS[task].index(label) for label in labels])
    return Examples(name, language, first, second, places, LABELS[task], ids)


def _tagged(
    name: str, language: str, task: str, lines: list[str], where: str, options: dict[str, Any]
) -> Tagged:
    if task == "NER":
        sentences = read_iob2(lines, where, **options)
    else:
        sentences = (
            (read.id, tuple(w.form for w in read.words), tuple(w.upos for w in read.words), 0)
            for read in trees.read_conllu(lines, where, **options)
        )
    ids, words, tags, repaired = zip(*sentences, strict=True)
    return Tagged(name, language, words, tags, ids, sum(repaired))
