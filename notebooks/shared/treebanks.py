"""Parsed text that probing tasks are made of: treebanks as shipped, or a folder of one's own."""

from collections import UserDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from xlx.results import paths
from xlx.text import files
from xlx.text.trees import Trees, load_trees


class ParsedText(UserDict[str, list[dict[str, object]]]):
    """By language what `load_trees` is asked for, and read each time that a language is: millions
    of sentences of several languages at once do not fit into memory."""

    def __getitem__(self, code: str) -> list[Trees]:
        return [load_trees(code, **asked) for asked in self.data[code]]


def trees_of(
    languages: Sequence[str], folder: str | None = None, beside: Sequence[str] = ()
) -> Mapping[str, list[Trees]]:
    """By language the trees of a folder of one's own, or of the two treebanks that are shipped.

    Parsed when a chapter asks, not kept in the ledger: a treebank takes 0.1 to 0.2 s to parse and
    0.01 to 0.05 s to read from 0.2 to 0.4 MB. All fourteen of a chapter take 2 s.

    ``beside``: which of the two come before a folder; of a sentence in both, theirs is kept.
    """
    if not folder:
        return {code: [load_trees(code, source) for source in ("ud", "pud")] for code in languages}
    places = {code: paths.ROOT / folder / code for code in languages}
    for path in places.values():
        files.files_below(path, Path.is_file, "file", "`make wiki` parses text.")
    first = [{"source": source} for source in beside]
    return ParsedText({x: [*first, {"source": "own", "path": path}] for x, path in places.items()})
