"""Raw text to CoNLL-U: parsing by UDPipe, and documents of a Wikipedia dump (X-Probe, section 6.1).

`parse` parses texts, `read_wiki` reads what WikiExtractor writes of a dump, and `parse_wiki` does
both, a file at a time; `trees.load_trees` reads what it leaves.
"""

import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ufal import udpipe

from xlx.core import progress
from xlx.text.files import TextError, decode, unpacked

_DOC = re.compile(r'<doc id="([^"]*)".* title="(.*)">')


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

    Returns the lines of a CoNLL-U file for `trees.read_trees`. The id of a sentence is the number
    of its text and its own in it, from 1: "3-1".

    Raises FileNotFoundError where there is no model, TextError where the file is none or it
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
        raise TextError(f"{path} is not a model of UDPipe 1; is the download complete?")
    return model


def _parsed(
    model: udpipe.Model, text: str, name: str, presegmented: bool, where: str
) -> Iterator[str]:
    """The CoNLL-U lines of a text."""
    kind = udpipe.Model.TOKENIZER_PRESEGMENTED if presegmented else udpipe.Model.DEFAULT
    tokenizer = model.newTokenizer(kind)
    if tokenizer is None:
        raise TextError(f"{where}: the model has no tokeniser; take one that was trained with it.")
    write = udpipe.OutputFormat.newOutputFormat("conllu")
    error = udpipe.ProcessingError()
    tokenizer.setText(text)
    sentence, number = udpipe.Sentence(), 0
    while tokenizer.nextSentence(sentence, error):
        number += 1
        ready = model.tag(sentence, udpipe.Model.DEFAULT, error)
        if not (ready and model.parse(sentence, udpipe.Model.DEFAULT, error)):
            raise TextError(f"{where}: UDPipe cannot parse it: {error.message or 'no parser'}.")
        sentence.setNewDoc(False)
        sentence.setNewPar(False)
        sentence.setSentId(f"{name}-{number}")
        yield from write.writeSentence(sentence).split("\n")[:-1]
        sentence = udpipe.Sentence()
    if error.occurred():
        raise TextError(f"{where}: UDPipe cannot split it: {error.message}.")


def read_wiki(path: str | Path) -> Iterator[str]:
    """The documents of a Wikipedia dump as WikiExtractor writes them (section 6.1).

    ``path`` is one of its files or the folder with ``AA/wiki_00`` and so on, also ``.bz2``, either
    with ``<doc id=… title=…>`` lines or with one JSON object a line (``--json``). A document is its
    paragraphs without the title, parted by empty lines; one without text is left out.

    Raises FileNotFoundError where there is nothing at ``path``; TextError where there are no such
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
        raise TextError(f"{path} has no files such as AA/wiki_00; run WikiExtractor on the dump.")
    return files


def _wiki_documents(file: Path) -> Iterator[str]:
    lines = decode(unpacked(file.read_bytes(), str(file)), str(file))
    as_json = next((line for line in lines if line.strip()), "").startswith("{")
    documents = _json_documents(lines, str(file)) if as_json else _doc_documents(lines, str(file))
    for title, paragraphs in documents:
        paragraphs = [text for text in map(str.strip, paragraphs) if text]
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
            raise TextError(
                f"{where}, line {number}: not a JSON object with title and text."
            ) from None


def _doc_documents(lines: Sequence[str], where: str) -> Iterator[tuple[str, list[str]]]:
    title, paragraphs, start = "", [], 0  # start: the line where the open document begins
    for number, line in enumerate(lines, 1):
        if match := _DOC.fullmatch(line):
            if start:
                raise TextError(f"{where}, line {number}: the document of line {start} is open.")
            title, paragraphs, start = match[2], [], number
        elif line == "</doc>":
            yield title, paragraphs
            start = 0
        elif start:
            paragraphs.append(line)
        elif line.strip():
            raise TextError(f"{where}, line {number}: text outside <doc …> and </doc>.")
    if start:
        raise TextError(f"{where}: the document of line {start} does not end; is the file whole?")


def parse_wiki(folder: str | Path, model: str | Path, language: str, out: str | Path) -> list[Path]:
    """Parse a Wikipedia dump, one CoNLL-U file for each of WikiExtractor's.

    ``folder`` as in `read_wiki`, ``model`` and ``language`` as in `parse`; ``out`` is a folder, in
    which ``AA/wiki_00`` becomes ``AA_wiki_00.conllu``. A file is written beside and renamed when
    it is whole, and one that is there is not made again: a run that was stopped goes on. Returns
    the files; ``load_trees(language, "wiki", path=out)`` reads them.

    Raises as `read_wiki` and `parse`, and TextError for a file in which there is no sentence.
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
            raise TextError(f"{file} has no sentence; leave it out of {folder}.")
        os.replace(beside, target)
    return made
