"""What a paper prints and says, evaluated over its printed tables.

A folder holds transcribed tables (``table1_nli.csv`` is called ``table1``) and the numbers of the
text (``text_results.csv``: ``claim_id``, ``value``). A module makes it an audit, with a subclass of
`Paper` and plain functions. The parameters of a function name what it needs: a table, another
function (its value, computed once), or an attribute of the paper. So each can be called with tables
that are made up. What a paper says is marked by a decorator:

- `number`: printed numbers that others give. The function yields ``names, recomputed, printed,
  tolerance``; ``names`` fill the braces of section and text. A column is checked number by number,
  and its keys fill the braces that are left.
- `sentence`: a sentence of the paper, with a quotation from that section and ``test``, how a reader
  would write it. The function returns its parts, true or false (none: cannot be told), and what the
  numbers are, in words; or it yields ``names, parts, result`` for several alike.
- `consistency`: a check of ours, in the form of a sentence, that no paper states.

A number printed to d places stands for anything within half a unit of its last place. The tolerance
is what rounding of all that goes into a check can explain; of a number printed twice it is half a
unit. A number is named by the section, up to ", by ", and the text: two checks of it are one.
"""

import re
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from inspect import isfunction, isgenerator, signature
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

#: What binary fractions leave of a decimal one.
PRINTED_SLACK = 1e-9
#: What can come of a claim; the last is of one that no number at hand can decide.
VERDICTS = ("holds", "holds in part", "does not hold", "cannot be told")
#: What a claim is: one or more numbers, words of the paper, or a check that no paper states.
NUMBER, SENTENCE, CONSISTENCY = "printed number", "sentence", "consistency"


def verdict(parts: Sequence[bool]) -> str:
    """One of `VERDICTS`: all parts hold, some do, none does, or there are none."""
    if not parts:
        return VERDICTS[3]
    return VERDICTS[0 if all(parts) else 1 if any(parts) else 2]


def p_of_t(t: float, freedom: int) -> float:
    """How often chance gives a t value as far from 0, either way."""
    return float(2 * stats.t.sf(abs(t), freedom))


def p_of_r(r: float, n: int) -> float:
    """How often chance gives a correlation as far from 0 over n independent observations."""
    return p_of_t(r * np.sqrt((n - 2) / (1 - r**2)), n - 2)


def p_of_hits(hits: int, n: int, chance: float) -> float:
    """How often chance gives as many hits of n or more."""
    return float(stats.binom.sf(hits - 1, n, chance))


def off_diagonal(table: pd.DataFrame) -> pd.DataFrame:
    """A square table with nothing on its diagonal."""
    return table.mask(np.eye(len(table), dtype=bool))


def explained(values: pd.Series, *levels: int) -> float:
    """The share of the variance that a term for each item of some index levels explains."""
    parts = [pd.get_dummies(values.index.get_level_values(level), dtype=float) for level in levels]
    design = pd.concat(parts, axis=1).to_numpy()
    fitted = design @ np.linalg.lstsq(design, values.to_numpy(), rcond=None)[0]
    return float(1 - (values - fitted).var() / values.var())


def rows_by(rows: Mapping[Hashable, Mapping[str, object]], *names: str) -> pd.DataFrame:
    """A row for each key, whose parts have these names."""
    index = pd.Index([*rows])  # of tuples: several levels
    return pd.DataFrame([*rows.values()], index.set_names(names or index.names))


def columns(rows: Mapping[str, tuple[float, float]]) -> Iterator[pd.Series]:
    """Recomputed and printed numbers as columns, of rows by what each is of."""
    return (part for _, part in pd.DataFrame.from_dict(rows, "index").items())


def _marked(kind: str, section: str, text: str, quote: str = "", test: str = "") -> Callable:
    def mark(function: Callable) -> Callable:
        texts = {"section": section, "claim": text, "quote": quote, "formula": test}
        function.claim = texts | {"kind": kind}
        return function

    return mark


def number(section: str, text: str, kind: str = NUMBER) -> Callable:
    """Marks a function that checks printed numbers of a section; ``text``: what each is of."""
    return _marked(kind, section, text)


def consistency(section: str, text: str, test: str = "") -> Callable:
    """Marks a function that tests what a section implies and does not say."""
    return _marked(CONSISTENCY, section, text, "", test)


sentence = partial(_marked, SENTENCE)


class Paper:
    """A folder of a paper; a subclass has as attributes what needs more than a function.

    Attributes
    ----------
    files : by name ("table1", of several the one with the shortest name; "table1_nli"), the tables
        as transcribed.
    text : the numbers of the text as printed, by ``claim_id``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files = {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}
        longest = sorted(files, key=len, reverse=True)
        self.files = {stem.split("_")[0]: files[stem] for stem in longest} | files
        self.text = self.files.pop("text").set_index("claim_id")["value"].astype(str)

    @property
    def _functions(self) -> dict[str, object]:
        return vars(sys.modules[type(self).__module__])

    def __getattr__(self, name: str) -> object:
        """The value of a function of the paper's module, computed once, or a table."""
        if name.startswith("_") or name not in self._functions.keys() | self.files:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        function = self._functions.get(name)
        vars(self)[name] = self.value(function) if function else self.files[name]
        return vars(self)[name]

    def value(self, function: Callable) -> object:
        """What a function makes of the tables and numbers that its parameters name."""
        return function(*(getattr(self, name) for name in signature(function).parameters))

    def number(self, claim: str) -> float:
        """A number of the text; "1.5M", "150,000", "29 out of 36", "17%": its first one."""
        printed = self.text[claim].replace(",", "")
        return float(re.match(r"[-+]?[\d.]+", printed)[0]) * (1e6 if printed[-1] == "M" else 1)

    @cached_property
    def settings(self) -> dict[str, object]:
        """What ``settings.yaml`` says of the experiments."""
        return yaml.safe_load((self._folder / "settings.yaml").read_text(encoding="utf-8"))

    @cached_property
    def _answers(self) -> list[tuple[dict[str, str], tuple, list]]:
        """What each marked function says: its mark, the names that fill it, and the values."""
        answers = []
        for function in self._functions.values():
            if isfunction(function) and hasattr(function, "claim"):
                value = self.value(function)
                rows = value if isgenerator(value) else [((), *value)]
                answers += [(function.claim, names, values) for names, *values in rows]
        return answers

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """A row per check of a number: ``section``, ``what`` it is of, ``printed``, ``recomputed``,
        ``tolerance``, ``apart`` (recomputed less printed, in tolerances), ``agrees``, ``kind``."""
        tables = []
        for claim, names, (recomputed, printed, *tolerance) in self._answers:
            if tolerance:
                printed = pd.Series(printed)
                checks = {"printed": printed, "recomputed": recomputed, "tolerance": tolerance[0]}
                keys = [key if isinstance(key, tuple) else (key,) for key in printed.index]
                what = [claim["claim"].format(*names, *key) for key in keys]
                about = {"section": claim["section"].format(*names), "kind": claim["kind"]}
                tables.append(pd.DataFrame(checks, printed.index).assign(what=what, **about))
        table = pd.concat(tables, ignore_index=True)
        apart = table["recomputed"] - table["printed"]
        agrees = apart.abs() <= table["tolerance"] + PRINTED_SLACK
        return table.assign(apart=apart / table["tolerance"], agrees=agrees)

    @cached_property
    def claims(self) -> pd.DataFrame:
        """A row per claim in words: ``section``, ``claim``, ``quote``, ``kind``, ``formula``,
        ``result`` (what the numbers say) and ``verdict``."""
        rows = []
        for claim, names, (parts, result, *more) in self._answers:
            if not more:
                filled = {key: claim[key].format(*names) for key in ("section", "claim")}
                answer = {"result": result, "verdict": verdict(np.ravel(parts).tolist())}
                rows.append(claim | filled | answer)
        return pd.DataFrame(rows)

    @property
    def once(self) -> pd.Series:
        """Whether each printed number agrees in all its checks: a row per number, as it counts."""
        checks = self.numbers[self.numbers["kind"] == NUMBER]
        place = checks["section"].str.split(", by ").str[0]
        return checks.groupby([place, "what"], sort=False)["agrees"].all()
