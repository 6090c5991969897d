"""Kinship of languages: a rule for choosing a source that has seen neither model nor text.

What a choice by LD (ABX paper, section 5.3, appendix K) has to beat. The rule: a source of the
target's branch, else of its family, and among those that are equally near, or where none is of the
family, one that is written in its script (`xlx.core.languages`). Sources that are still equal share
their weight (`selection.choose_sources`), so the outcome is exactly the mean over them; where no
source has anything in common with the target, that is chance. Typological distances would part
more sources, and the repository has none.
"""

from collections.abc import Sequence

import pandas as pd

from xlx.core import checks
from xlx.core.languages import LANGUAGES, Language

#: By kinship, what decides: the nearest thing that two languages have in common.
_COMMON = {7: "branch", 6: "branch", 3: "family", 2: "family", 1: "script", 0: "nothing"}


def kinship(source: str, target: str) -> int:
    """How near two languages are: 4 for the same branch, 2 the same family, 1 the same script.

    The sum, 0 to 7, orders sources by branch, then family, then script. Codes are those of
    `LANGUAGES`; ValueError for others.
    """
    a, b = _language(source), _language(target)
    same_family = a.family == b.family
    same_branch = same_family and a.branch == b.branch
    return 4 * same_branch + 2 * same_family + (a.script == b.script)


def _language(code: str) -> Language:
    if code not in LANGUAGES:
        raise ValueError(
            f"the family and script of {code!r} are not known: choose by kinship among the "
            f"{len(LANGUAGES)} languages of xlx.core.languages.LANGUAGES"
        )
    return LANGUAGES[code]


def with_kinship(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column ``kinship``, of their ``source`` and ``target``."""
    pairs = zip(table["source"], table["target"], strict=True)
    return table.assign(kinship=[kinship(*pair) for pair in pairs])


def nearest_kin(codes: Sequence[str]) -> pd.DataFrame:
    """What the rule chooses for each language among the others, by ``target``.

    ``common``: what its nearest sources have in common with it ("branch", "family", "script" or
    "nothing"); ``sources``: these, joined by "+". ValueError for fewer than two languages, one
    named twice, or one that is not known.
    """
    codes = checks.several(codes, "languages", once=True)
    if len(codes) < 2:
        raise ValueError(f"{codes[0]} has no other language to be near to: name two or more")
    rows = {}
    for target in codes:
        near = {source: kinship(source, target) for source in codes if source != target}
        nearest = max(near.values())
        chosen = (source for source, value in near.items() if value == nearest)
        rows[target] = _COMMON[nearest], "+".join(chosen)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["common", "sources"])
    return table.rename_axis("target")
