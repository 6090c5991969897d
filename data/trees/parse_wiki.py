"""Raw text to CoNLL-U: a Wikipedia dump, parsed by UDPipe (X-Probe, section 6.1).

    python data/trees/parse_wiki.py FOLDER MODEL de cache/wiki/de    # make wiki

`parse_wiki` parses what WikiExtractor writes of a dump, a file at a time; `trees.load_trees` reads
what it leaves.
"""

import argparse
import html
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ufal import udpipe

from xlx.results import progress
from xlx.text.files import TextError, files_below, streamed_lines

_DOC = re.compile(r'<doc id="([^"]*)".* title="(.*)">')


def _model(path: Path, language: str) -> udpipe.Model:
    if not path.is_file():
        there = "models for UDPipe 1 are at hdl.handle.net/11234/1-3131"
        raise FileNotFoundError(f"There is no UDPipe model {path} for {language}; {there}.")
    model = udpipe.Model.load(str(path))
    if model is None:
        raise TextError(f"{path} is not a model of UDPipe 1; is the download complete?")
    return model


def _parsed(model: udpipe.Model, text: str, name: str, where: str) -> Iterator[str]:
    """The CoNLL-U lines of a text; the id of a sentence is ``name`` and its number: "3-1"."""
    tokenizer = model.newTokenizer(udpipe.Model.DEFAULT)
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


def wiki_documents(file: Path) -> Iterator[str]:
    """The documents of a file of WikiExtractor (``<doc id=… title=…>``, not ``--json``).

    A document is its paragraphs without the title, parted by empty lines; one without text is left
    out. Raises TextError, with the line, for text outside a document and one that does not end.
    """
    for title, paragraphs in _doc_documents(streamed_lines(file), str(file)):
        paragraphs = [text for text in map(str.strip, paragraphs) if text]
        if paragraphs and paragraphs[0] in (title, html.unescape(title)):
            paragraphs = paragraphs[1:]
        if paragraphs:
            yield "\n\n".join(paragraphs)


def _doc_documents(lines: Iterable[str], where: str) -> Iterator[tuple[str, list[str]]]:
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


def parse_wiki(path: Path, model: Path, language: str, out: Path) -> list[Path]:
    """Parse a Wikipedia dump, one CoNLL-U file for each of WikiExtractor's.

    Parameters
    ----------
    path : a file of WikiExtractor or the folder with ``AA/wiki_00`` and so on, also ``.bz2``.
    model : a model file of UDPipe 1, such as ``german-gsd-ud-2.5-191206.udpipe``
        (hdl.handle.net/11234/1-3131).
    language : ISO 639 code, for messages.
    out : a folder, in which ``AA/wiki_00`` becomes ``AA_wiki_00.conllu``. A file is written beside
        and renamed when it is whole, and one that is there is not made again: a run that was
        stopped goes on.

    Returns the files; ``load_trees(language, "wiki", path=out)`` reads them.

    Raises FileNotFoundError where there is no dump or model, TextError for a model that is none or
    cannot parse, for a malformed file (`wiki_documents`) and one in which there is no sentence.
    """
    loaded = _model(model, language)
    named, what = re.compile(r"wiki_\d+(\.bz2)?"), "files such as AA/wiki_00"
    how = "run WikiExtractor on the dump."
    files = files_below(path, lambda file: named.fullmatch(file.name), what, how)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for file in progress.bar(files, f"parse {language}", unit="file"):
        target = out / f"{file.parent.name}_{file.name.removesuffix('.bz2')}.conllu"
        made.append(target)
        if target.exists():
            continue
        beside = target.with_name(f"{target.name}.part")
        with beside.open("w", encoding="utf-8", newline="\n") as written:
            for number, text in enumerate(wiki_documents(file), 1):
                for line in _parsed(loaded, text, str(number), f"{file}, document {number}"):
                    written.write(f"{line}\n")
        if not beside.stat().st_size:
            beside.unlink()
            raise TextError(f"{file} has no sentence; leave it out of {path}.")
        os.replace(beside, target)
    return made


def main(argv: Sequence[str] | None = None) -> str | None:
    """`parse_wiki` by the command line; what is wrong is returned as a sentence."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("folder", "model", "language", "out"):
        parser.add_argument(name, type=str if name == "language" else Path)
    try:
        parse_wiki(*vars(parser.parse_args(argv)).values())
    except (FileNotFoundError, TextError) as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main())
