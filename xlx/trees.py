"""Dependency trees: sentences parsed as in Universal Dependencies, gold or by UDPipe.

X-Probe's probing tasks (section 4) are made of parsed sentences (section 6.1). `load` reads the
gold parses shipped in ``data/trees`` (`table`): every sentence at hand of a treebank (``ud``) and
of Parallel UD (``pud``, 1,000 sentences, the same in all languages), or with ``path=`` CoNLL-U
files of your own. `parse` and `parse_wiki` make such files of raw text with UDPipe; `read_wiki`
reads what WikiExtractor writes.

What a `Tree` holds: UD's syntactic words with their heads, relations, tags and features, and apart
from them the tokens, which are what the text shows. German *im* is one token and two words, *in*
and *dem*. Empty nodes are left out. Names of UD 1 are read as those of UD 2: ``dobj`` as ``obj``,
``nsubjpass`` as ``nsubj:pass``, ``CONJ`` as ``CCONJ``, ``Number=Sg`` as ``Number=Sing`` and so on;
UD 1's ``nmod`` stays, as nothing there tells which are UD 2's ``obl``.

A sentence that is no tree (no root, two, a cycle, a head that there is not) is left out and named
in `Trees.dropped`: automatic parses have such. What is no CoNLL-U at all is a TreesError.

Ravishankar, Øvrelid and Velldal (2019), X-Probe; sections are numbered as there.
"""

import bz2
import hashlib
import html
import json
import lzma
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from ufal import udpipe

from xlx import checks, labelled, origins, paths, progress
from xlx.languages import base_code

#: What is shipped: one treebank a language, and Parallel UD.
SOURCES: tuple[str, ...] = ("ud", "pud")

#: Why a sentence is no tree; "two roots" are two or more.
FLAWS: tuple[str, ...] = ("no such head", "no root", "two roots", "a cycle")

_FOLDER = paths.DATA / "trees"
_REMEDY = "restore data/trees from the repository."

#: Relations that UD 2 has renamed; ``nmod`` and ``dep`` cannot be told apart from the name alone.
_FORMER_RELATIONS = {
    **{"dobj": "obj", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass"},
    **{"auxpass": "aux:pass", "neg": "advmod", "mwe": "fixed", "name": "flat:name"},
    **{"foreign": "flat:foreign", "remnant": "orphan"},
}
#: Values of features that the Hindi treebank had in UD 1.
_FORMER_FEATURES = {"Number=Sg": "Number=Sing", "Number=Pl": "Number=Plur"}

_TAGS = frozenset(labelled.UPOS)
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_NODE = re.compile(r"(?:0|[1-9][0-9]*)\.[1-9][0-9]*")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_NOT_LETTERS = re.compile(r"[\W_]+")

_DOC = re.compile(r'<doc id="([^"]*)".* title="(.*)">')
_BZ2, _XZ = b"BZh", b"\xfd7zXZ\x00"


class TreesError(ValueError):
    """Parsed text that cannot be used; says which file and line, why, and what to do."""


def letters(tokens: Iterable[str]) -> str:
    """The letters and digits of a sentence, without case: what makes two sentences the same."""
    return _NOT_LETTERS.sub("", "".join(tokens)).casefold()


@dataclass(frozen=True)
class Tree:
    """A sentence with its dependency tree.

    ``words``, ``heads``, ``relations``, ``upos``, ``features`` and ``token_of`` have one entry a
    syntactic word: ``heads`` the number of its head among the words, from 1, and 0 at the root;
    ``features`` a dictionary such as ``{"Number": "Sing"}`` (shared between words: do not change
    it); ``token_of`` the position (from 0) in ``tokens`` of the token that it is part of, which
    never falls. ``id`` tells it apart from the other sentences of its `Trees`.
    """

    id: str
    language: str
    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    upos: tuple[str, ...]
    features: tuple[dict[str, str], ...]
    tokens: tuple[str, ...]
    token_of: tuple[int, ...]

    def __len__(self) -> int:
        """How many words it has."""
        return len(self.words)

    def __repr__(self) -> str:
        return f"Tree({self.id}: {' '.join(self.tokens)})"

    @property
    def root(self) -> int:
        """Position (from 0) of the word without a head."""
        return self.heads.index(0)

    def children(self, word: int, *relations: str) -> list[int]:
        """Positions (from 0) of what depends on a word, in order.

        With ``relations``, only by these; a subtype counts: ``nsubj:pass`` is an ``nsubj``.
        """
        return [
            i
            for i, head in enumerate(self.heads)
            if head == word + 1 and (not relations or self.relation(i) in relations)
        ]

    def relation(self, word: int) -> str:
        """The relation of a word to its head without its subtype: ``nsubj`` of ``nsubj:pass``."""
        return self.relations[word].partition(":")[0]

    def below(self, word: int) -> set[int]:
        """Positions (from 0) of a word and of all that depends on it, over any number of steps."""
        found, new = {word}, [word]
        while new:
            new = [i for above in new for i in self.children(above)]
            found.update(new)
        return found

    @cached_property
    def depth(self) -> int:
        """Steps from the root to the word that is farthest from it; 0 where there is no other."""
        return max(_depths(self.heads) or [0])

    @cached_property
    def key(self) -> str:
        """Its letters and digits (`letters`): two sentences with one key are the same."""
        return letters(self.tokens)


@dataclass(frozen=True)
class Trees:
    """Parsed sentences of one source in a language.

    ``left_out`` counts what is not here by reason: sentences that are no tree (`FLAWS`, all with
    their numbers) and, in what is shipped, those that were not taken from the treebank (`table`).
    ``dropped`` names the former: "sent-id, line 7: two roots".
    """

    language: str
    source: str
    trees: tuple[Tree, ...]
    left_out: dict[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)

    def __repr__(self) -> str:
        return f"Trees({self.source} {self.language}: {len(self)} sentences)"

    @property
    def n_words(self) -> int:
        """Words of all sentences."""
        return sum(map(len, self.trees))

    def text_hash(self) -> str:
        """SHA-256 of tokens and analyses; ids do not matter."""
        digest = hashlib.sha256()
        for tree in self.trees:
            features = ["|".join(f"{k}={v}" for k, v in each.items()) for each in tree.features]
            heads, token_of = map(str, tree.heads), map(str, tree.token_of)
            rows = (tree.tokens, tree.words, heads, tree.relations, tree.upos, features, token_of)
            digest.update(("\n".join(map("\t".join, rows)) + "\n\n").encode())
        return digest.hexdigest()


# --- loading --------------------------------------------------------------------------------------


def table() -> pd.DataFrame:
    """What is shipped in ``data/trees``: one row a file, that is a source and a language.

    Columns: source, language, treebank, version; sentences, words, tokens; left_out ("reason:
    number; …", of the files that ``made_from`` names); made_from, licence, licence_file (from
    ``data/``), url, file, sha256.

    Raises TreesError if ``sources.tsv`` is missing or malformed.
    """
    file = _FOLDER / "sources.tsv"
    if not file.exists():
        raise TreesError(f"{file} is missing; restore data/trees from the repository.")
    try:
        shipped = origins.table(file.read_bytes(), str(file))
    except origins.CorpusError as error:
        raise TreesError(str(error)) from None
    return shipped.astype(dict.fromkeys(("sentences", "words", "tokens"), int))


def load(language: str, source: str = "ud", *, path: str | Path | None = None) -> Trees:
    """Parsed sentences of a language.

    Parameters
    ----------
    language : ISO 639 code, such as "de".
    source : "ud" or "pud" of what is shipped; with ``path``, any name for what is there.
    path : a CoNLL-U file, ``.conllu`` or ``.conllu.xz``, or a folder with such files at any depth,
        all of which are taken, in the order of their paths; None for what is shipped. Of several
        files, ids are preceded by the name of the file.

    Raises TreesError (a ValueError) for a source or language that is not shipped, a shipped file
    that was changed, a folder without such files, and malformed files (with the line);
    FileNotFoundError where there is nothing at ``path``.
    """
    checks.tag(language, TreesError)
    try:
        language = base_code(language)
    except ValueError as error:
        raise TreesError(str(error)) from None
    if path is None:
        return _load_shipped(language, source)
    files = _conllu_files(Path(path))
    parts = [
        read_conllu(_lines(file.read_bytes(), str(file)), str(file), language, source=source)
        for file in files
    ]
    if not any(parts):
        why = next(part.dropped[0] for part in parts)
        raise TreesError(f"{path}: none of its sentences is a tree (first: {why}).")
    if len(parts) == 1:
        return parts[0]
    names = [str(file.relative_to(path)).removesuffix(".xz") for file in files]
    names = [name.removesuffix(".conllu") for name in names]
    trees = [
        replace(tree, id=f"{name}:{tree.id}")
        for name, part in zip(names, parts, strict=True)
        for tree in part
    ]
    dropped = [
        f"{name}:{each}" for name, part in zip(names, parts, strict=True) for each in part.dropped
    ]
    left_out = {flaw: sum(part.left_out[flaw] for part in parts) for flaw in FLAWS}
    return Trees(language, source, tuple(trees), left_out, tuple(dropped))


@dataclass(frozen=True)
class Treebank:
    """Parsed sentences that are read when they are needed; arguments and errors as `load`."""

    language: str
    source: str = "ud"
    path: str | Path | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the sentences: hashes of the files, found without reading the trees."""
        if self.path is None:
            files = {"": _shipped_file(self.language, self.source)[0]}
        else:
            root = Path(self.path)
            files = {str(file.relative_to(root)): file for file in _conllu_files(root)}
        hashes = {name: hashlib.sha256(x.read_bytes()).hexdigest() for name, x in files.items()}
        return {"language": self.language, "source": self.source, "files": hashes}

    @cached_property
    def trees(self) -> Trees:
        """As `load`."""
        return load(self.language, self.source, path=self.path)


def _load_shipped(language: str, source: str) -> Trees:
    file, row = _shipped_file(language, source)
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise TreesError(f"{file} is not the file on record in sources.tsv; {_REMEDY}")
    read = read_conllu(_lines(data, str(file)), str(file), language, source=source)
    reasons = (each.rsplit(": ", 1) for each in row["left_out"].split("; ") if each)
    left_out = read.left_out | {why: int(n) for why, n in reasons}
    return Trees(language, source, read.trees, left_out, read.dropped)


def _shipped_file(language: str, source: str) -> tuple[Path, dict[str, Any]]:
    """A file of ``data/trees``, and its row in the table."""
    how = "Give path=, CoNLL-U files of universaldependencies.org or your own."
    if source not in SOURCES:
        raise TreesError(
            f"There is no source {source!r}; {' and '.join(SOURCES)} are shipped. {how}"
        )
    shipped = table()
    shipped = shipped[shipped["source"] == source]
    row = shipped[shipped["language"] == language].to_dict("records")
    if not row:
        there = ", ".join(shipped["language"])
        raise TreesError(f"No trees of {source} are shipped in {language}; there is {there}. {how}")
    file = _FOLDER / row[0]["file"]
    if not file.exists():
        raise TreesError(f"{file} is missing; {_REMEDY}")
    return file, row[0]


def _conllu_files(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"There is nothing at {path}; give a CoNLL-U file or a folder.")
    if path.is_file():
        return [path]
    files = sorted(f for f in path.rglob("*") if f.name.endswith((".conllu", ".conllu.xz")))
    if not files:
        raise TreesError(f"{path} has no .conllu or .conllu.xz file, at any depth.")
    return files


def _lines(data: bytes, where: str) -> list[str]:
    """Lines of UTF-8 text, plain or packed with xz or bzip2."""
    try:
        if data.startswith(_XZ):
            data = lzma.decompress(data)
        elif data.startswith(_BZ2):
            data = bz2.decompress(data)
    except (lzma.LZMAError, OSError, EOFError, ValueError) as error:
        raise TreesError(f"{where}: not a whole packed file ({error}); fetch it again.") from None
    try:
        return origins.decode(data, where)
    except origins.CorpusError as error:
        raise TreesError(str(error)) from None


# --- reading CoNLL-U ------------------------------------------------------------------------------


def read_conllu(
    lines: Sequence[str],
    where: str,
    language: str,
    *,
    split: str | None = None,
    source: str = "conllu",
    strict: bool = False,
) -> Trees:
    """The trees of a CoNLL-U file.

    Parameters
    ----------
    lines : the file, without line ends.
    where : what opens every error: the name of the file.
    language, source : of the result.
    split : take only the sentences with the comment ``# split = <split>``.
    strict : raise for a sentence that is no tree instead of leaving it out.

    The id of a tree is its ``sent_id``, else the number of the sentence in the file.

    Raises TreesError, with the line, for a row without 10 columns, a word out of order or without
    form, one of the 17 tags, head or relation, features that are not ``Name=Value|…``, a range of
    words that does not fit, a repeated ``sent_id``, a comment among the rows; and for a file
    without sentences.
    """
    seen: dict[str, int] = {}
    left_out = dict.fromkeys(FLAWS, 0)
    trees, dropped = [], []
    cache: dict[str, dict[str, str]] = {}
    for number, (first, comments, rows) in enumerate(labelled.blocks(lines, split), 1):
        name = labelled.comment(comments, "sent_id") or str(number)
        if seen.setdefault(name, first) != first:
            raise TreesError(
                f"{where}, line {first}: sentence {name} is also at line {seen[name]}."
            )
        tree = _tree(name, language, rows, first, where, cache)
        if flaw := _flaw(tree.heads):
            if strict:
                raise TreesError(f"{where}, line {first}: sentence {name} is no tree: {flaw}.")
            left_out[flaw] += 1
            dropped.append(f"{name}, line {first}: {flaw}")
        else:
            trees.append(tree)
    if not seen:
        raise TreesError(f"{where} has no sentences{f' of {split}' if split else ''}.")
    return Trees(language, source, tuple(trees), left_out, tuple(dropped))


def _tree(
    name: str,
    language: str,
    rows: Sequence[str],
    first: int,
    where: str,
    cache: dict[str, dict[str, str]],
) -> Tree:
    """The sentence of some rows, whose first is line ``first``; ``cache`` keeps features read."""
    words, heads, relations, tags, features, tokens, token_of = [], [], [], [], [], [], []
    last = 0  # of the range of words that is open
    for line, row in enumerate(rows, first):
        columns = row.split("\t")
        if len(columns) != 10:
            raise TreesError(f"{where}, line {line}: {_no_row(row, len(columns))}")
        number, form, _, tag, _, feats, head, relation, _, _ = columns
        if number != str(len(words) + 1):
            if _EMPTY_NODE.fullmatch(number):
                continue
            last = _range_end(number, len(words), last, f"{where}, line {line}")
            tokens.append(form)
            continue
        if not (form.strip() and _NUMBER.fullmatch(head) and relation.strip("_ ")):
            raise TreesError(f"{where}, line {line}: {_what_lacks(number, form, head, relation)}")
        tag = labelled.FORMER_UPOS.get(tag, tag)
        if tag not in _TAGS:
            raise TreesError(
                f"{where}, line {line}: {form!r} has the tag {tag!r}, which is none of UD's 17 "
                f"({' '.join(labelled.UPOS)}); is this CoNLL-U with UPOS tags?"
            )
        if feats not in cache:
            cache[feats] = _features(feats, f"{where}, line {line}")
        words.append(form)
        heads.append(int(head))
        relations.append(_FORMER_RELATIONS.get(relation, relation))
        tags.append(tag)
        features.append(cache[feats])
        if len(words) > last:  # within a range, the token is there already
            tokens.append(form)
        token_of.append(len(tokens) - 1)
    if last > len(words):
        raise TreesError(f"{where}, line {first}: a range ends at word {last}, which is missing.")
    if not words:
        raise TreesError(f"{where}, line {first}: a sentence without words.")
    parts = (words, heads, relations, tags, features, tokens, token_of)
    return Tree(name, language, *map(tuple, parts))


def _no_row(row: str, n_columns: int) -> str:
    what = "a comment among the words" if row[0] == "#" else f"{n_columns} columns, not 10"
    return f"{what}; CoNLL-U has 10 columns parted by tabs."


def _what_lacks(number: str, form: str, head: str, relation: str) -> str:
    if not form.strip():
        return "a word without form."
    if not _NUMBER.fullmatch(head):
        return f"word {number} has the head {head[:20]!r}, not a number; is the text parsed?"
    return f"word {number} has the relation {relation!r}; is the text parsed?"


def _range_end(number: str, n_words: int, last: int, where: str) -> int:
    """Last word of the range ``3-4``, which must begin at the next word and within no other."""
    match = _RANGE.fullmatch(number)
    if match is None:
        raise TreesError(
            f"{where}: word {number[:20]} follows word {n_words}; words are numbered 1, 2, 3 and "
            "so on."
        )
    start, end = int(match[1]), int(match[2])
    if start != n_words + 1 or start <= last or end <= start:
        raise TreesError(
            f"{where}: the range {number} after word {n_words}; a range stands before its first "
            "word, has two words or more, and none of another range."
        )
    return end


def _features(feats: str, where: str) -> dict[str, str]:
    if feats == "_":
        return {}
    found = {}
    for each in feats.split("|"):
        name, equals, value = _FORMER_FEATURES.get(each, each).partition("=")
        if not (name and equals and value):
            raise TreesError(f"{where}: the features {feats!r} are not Name=Value|Name=Value or _.")
        found[name] = value
    return found


def _flaw(heads: Sequence[int]) -> str:
    """Why this is no tree (`FLAWS`); "" where it is one."""
    if max(heads) > len(heads):
        return "no such head"
    if heads.count(0) != 1:
        return "two roots" if 0 in heads else "no root"
    return "" if _depths(heads) else "a cycle"


def _depths(heads: Sequence[int]) -> list[int] | None:
    """Steps from each word to the root; None where a word never comes to it."""
    depth = [-1] * len(heads)
    for word in range(len(heads)):
        way = []
        while depth[word] < 0:
            way.append(word)
            if len(way) > len(heads):
                return None
            if heads[word] == 0:
                depth[word] = 0
            else:
                word = heads[word] - 1
        for steps, passed in enumerate(reversed([w for w in way if w != word]), depth[word] + 1):
            depth[passed] = steps
    return depth


# --- raw text: UDPipe and WikiExtractor -----------------------------------------------------------


def parse(
    texts: Iterable[str], model: str | Path, language: str, *, presegmented: bool = False
) -> list[str]:
    """Parse raw text with UDPipe (section 6.1).

    Parameters
    ----------
    texts : documents; an empty line parts paragraphs, across which no sentence runs.
    model : a model file of UDPipe 1, such as ``german-gsd-ud-2.5-191206.udpipe``
        (hdl.handle.net/11234/1-3131).
    language : ISO 639 code, for messages.
    presegmented : each line of a text is a sentence; else UDPipe finds where sentences end.

    Returns the lines of a CoNLL-U file for `read_conllu`. The id of a sentence is the number of
    its text and its own in it, from 1: "3-1".

    Raises FileNotFoundError where there is no model, TreesError where the file is none or it
    cannot parse.
    """
    loaded = _model(model, language)
    return [
        line
        for number, text in enumerate(texts, 1)
        for line in _parsed(loaded, text, str(number), presegmented, f"{model}, text {number}")
    ]


def _model(path: str | Path, language: str) -> udpipe.Model:
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"There is no UDPipe model {path} for {language}; models for UDPipe 1 are at "
            "hdl.handle.net/11234/1-3131 (ufal.mff.cuni.cz/udpipe/1/models)."
        )
    model = udpipe.Model.load(str(path))
    if model is None:
        raise TreesError(f"{path} is not a model of UDPipe 1; is the download complete?")
    return model


def _parsed(
    model: udpipe.Model, text: str, name: str, presegmented: bool, where: str
) -> Iterator[str]:
    """The CoNLL-U lines of a text."""
    kind = udpipe.Model.TOKENIZER_PRESEGMENTED if presegmented else udpipe.Model.DEFAULT
    tokenizer = model.newTokenizer(kind)
    if tokenizer is None:
        raise TreesError(f"{where}: the model has no tokeniser; take one that was trained with it.")
    write = udpipe.OutputFormat.newOutputFormat("conllu")
    error = udpipe.ProcessingError()
    tokenizer.setText(text)
    sentence, number = udpipe.Sentence(), 0
    while tokenizer.nextSentence(sentence, error):
        number += 1
        ready = model.tag(sentence, udpipe.Model.DEFAULT, error)
        if not (ready and model.parse(sentence, udpipe.Model.DEFAULT, error)):
            raise TreesError(f"{where}: UDPipe cannot parse it: {error.message or 'no parser'}.")
        sentence.setNewDoc(False)
        sentence.setNewPar(False)
        sentence.setSentId(f"{name}-{number}")
        yield from write.writeSentence(sentence).split("\n")[:-1]
        sentence = udpipe.Sentence()
    if error.occurred():
        raise TreesError(f"{where}: UDPipe cannot split it: {error.message}.")


def read_wiki(path: str | Path) -> Iterator[str]:
    """The documents of a Wikipedia dump as WikiExtractor writes them (section 6.1).

    ``path`` is one of its files or the folder with ``AA/wiki_00`` and so on, also ``.bz2``, either
    with ``<doc id=… title=…>`` lines or with one JSON object a line (``--json``). A document is its
    paragraphs without the title, parted by empty lines; one without text is left out.

    Raises FileNotFoundError where there is nothing at ``path``; TreesError where there are no such
    files, and for text outside a document, one that does not end, and malformed JSON (with line).
    """
    for file in _wiki_files(Path(path)):
        yield from _wiki_documents(file)


def _wiki_files(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"There is nothing at {path}; give what WikiExtractor has written.")
    if path.is_file():
        return [path]
    files = sorted(f for f in path.rglob("wiki_*") if re.fullmatch(r"wiki_\d+(\.bz2)?", f.name))
    if not files:
        raise TreesError(f"{path} has no files such as AA/wiki_00; run WikiExtractor on the dump.")
    return files


def _wiki_documents(file: Path) -> Iterator[str]:
    lines = _lines(file.read_bytes(), str(file))
    as_json = next((line for line in lines if line.strip()), "").startswith("{")
    documents = _json_documents(lines, str(file)) if as_json else _doc_documents(lines, str(file))
    for title, paragraphs in documents:
        paragraphs = [each for each in map(str.strip, paragraphs) if each]
        if paragraphs and paragraphs[0] in (title, html.unescape(title)):
            paragraphs = paragraphs[1:]
        if paragraphs:
            yield "\n\n".join(paragraphs)


def _json_documents(lines: Sequence[str], where: str) -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
            yield document["title"], document["text"].split("\n")
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise TreesError(
                f"{where}, line {number}: not a JSON object with title and text."
            ) from None


def _doc_documents(lines: Sequence[str], where: str) -> Iterator[tuple[str, list[str]]]:
    title, paragraphs, start = "", [], 0  # start: the line where the open document begins
    for number, line in enumerate(lines, 1):
        if match := _DOC.fullmatch(line):
            if start:
                raise TreesError(f"{where}, line {number}: the document of line {start} is open.")
            title, paragraphs, start = match[2], [], number
        elif line == "</doc>":
            yield title, paragraphs
            start = 0
        elif start:
            paragraphs.append(line)
        elif line.strip():
            raise TreesError(f"{where}, line {number}: text outside <doc …> and </doc>.")
    if start:
        raise TreesError(f"{where}: the document of line {start} does not end; is the file whole?")


def parse_wiki(folder: str | Path, model: str | Path, language: str, out: str | Path) -> list[Path]:
    """Parse a Wikipedia dump, one CoNLL-U file for each of WikiExtractor's.

    ``folder`` as in `read_wiki`, ``model`` and ``language`` as in `parse`; ``out`` is a folder, in
    which ``AA/wiki_00`` becomes ``AA_wiki_00.conllu``. A file is written beside and renamed when
    it is whole, and one that is there is not made again: a run that was stopped goes on. Returns
    the files; ``load(language, "wiki", path=out)`` reads them.

    Raises as `read_wiki` and `parse`, and TreesError for a file in which there is no sentence.
    """
    loaded = _model(model, language)
    files, out = _wiki_files(Path(folder)), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for file in progress.bar(files, f"parse {language}", unit="file"):
        name = file.name.removesuffix(".bz2")
        target = out / f"{file.parent.name}_{name}.conllu"
        made.append(target)
        if target.exists():
            continue
        beside = target.with_name(f"{target.name}.part")
        with beside.open("w", encoding="utf-8", newline="\n") as written:
            for number, text in enumerate(_wiki_documents(file), 1):
                where = f"{file}, document {number}"
                for line in _parsed(loaded, text, str(number), False, where):
                    written.write(f"{line}\n")
        if not beside.stat().st_size:
            beside.unlink()
            raise TreesError(f"{file} has no sentence; leave it out of {folder}.")
        os.replace(beside, target)
    return made
