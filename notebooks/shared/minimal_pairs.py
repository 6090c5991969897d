"""Minimal pairs: a sentence, its translations, and itself edited so that it means something else.

``data/minimal-pairs`` has sentences of Parallel UD that its ``make.py`` edits by rules.
"""

import pandas as pd

from xlx.results import checks
from xlx.text import files
from xlx.text.parallel import ParallelCorpus

#: Two numbers, two names, or subject and object change places: the words stay what they are.
EXCHANGES = ("numbers", "names", "roles")
#: All kinds of edits; of the last two the words change.
EDITS = (*EXCHANGES, "number words", "negation")
#: In the place of a language: the edited sentence.
EDITED = "edited"


def load_minimal_pairs(kind: str) -> ParallelCorpus:
    """A kind of `EDITS` as a corpus: a position is one edit of one sentence.

    Each language has its translation there, and `EDITED` what became of it in the language that
    opens the id (``de:n01001011``). The domain is the document of the sentence. What a reader has
    not found good is left out. ValueError for other kinds, TextError for files that were changed.
    """
    checks.one_of(kind, EDITS, "kind of minimal pair")
    rows = {x["language"]: x for x in files.catalogue("minimal-pairs").to_dict("records")}
    edits = _read(rows.pop("all")).query("kind == @kind and verdict == 'ok'")
    texts = {code: _read(row).set_index("id")["text"] for code, row in rows.items()}
    sentences = {code: tuple(text[edits["id"]]) for code, text in texts.items()}
    return ParallelCorpus(
        f"minimal pairs, {kind}",
        sentences | {EDITED: tuple(edits["edited"])},
        tuple(edits["language"] + ":" + edits["id"]),
        tuple(edits["id"].str[:-3]),
        rows["en"]["licence"],
        "Parallel UD",
    )


def _read(row: dict[str, str]) -> pd.DataFrame:
    return files.tsv(files.contents("minimal-pairs", row), row["file"])
