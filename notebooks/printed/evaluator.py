"""Papers as data: what a paper prints, and what it says, evaluated over its printed tables.

A folder holds transcribed tables (``table1_nli.csv`` is called ``table1``) and the numbers of the
text (``text_results.csv``: ``claim_id``, ``value``). Two lists of formulas make it an audit:

- ``names.csv`` (``name``, ``formula``): tables and numbers that follow from others;
- ``claims.csv``: a row for each claim, with those of `COLUMNS` that are needed. ``section`` is
  where, ``claim`` what is said, ``quote`` in which words, ``formula`` how a reader would write the
  test, ``value`` what is computed. Without ``printed`` this is true or false, in one or several
  parts (none: cannot be told), and ``result`` says in words what the numbers are. With ``printed``
  it is the number that other printed ones give; the two agree within ``tolerance``. A column of
  numbers is checked number by number, and ``key`` in the claim is what each is of. A row stands for
  every item of ``each``, if it has any. ``kind`` is "ours" where the paper does not say it.

A number printed to d places stands for anything within half a unit of its last place. The tolerance
is what rounding of all that goes into a check can explain; of a number printed twice it is half a
unit. A number is named by the section, up to ", by ", and the claim: two checks of it are one.

A formula is a Python expression over names of the paper and `FUNCTIONS`, and is run as such: read
folders of your own or of people you trust. Texts may have formulas in braces, as in f-strings.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
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
#: Of ``claims.csv``.
COLUMNS = ("section", "claim", "quote", "kind", "formula", "value")
COLUMNS += ("printed", "tolerance", "result", "each")


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


#: What a formula may call, beside what Python has and the paper's names.
FUNCTIONS = {
    **{x.__name__: x for x in (p_of_t, p_of_r, p_of_hits, off_diagonal, explained, rows_by)},
    "ceil": np.ceil,
    "concat": pd.concat,
    "log10": np.log10,
    "series": pd.Series,
    "sqrt": np.sqrt,
    "table": pd.DataFrame,
}


class _Scope(dict[str, object]):
    """What a formula can name: what is given, then what the paper has, then Python's own."""

    def __init__(self, paper: "Paper", given: Mapping[str, object]) -> None:
        super().__init__(given)
        self._paper = paper

    def __missing__(self, name: str) -> object:
        try:
            return self._paper[name]
        except AttributeError:
            raise KeyError(name) from None


class Paper:
    """A folder of a paper; a subclass adds, as attributes, what needs more than a formula.

    Attributes
    ----------
    files : by name ("table1", of several the one with the shortest name; "table1_nli"), the tables
        as transcribed.
    text : the numbers of the text as printed, by ``claim_id``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        lists = {name: folder / f"{name}.csv" for name in ("names", "claims")}
        names, claims = (
            pd.read_csv(path, dtype=str, keep_default_na=False) for path in lists.values()
        )
        self._formulas = dict(names.itertuples(index=False))
        self._rows = claims.reindex(columns=COLUMNS, fill_value="").to_dict("records")
        tables = sorted({*folder.glob("*.csv")} - {*lists.values()})
        files = {path.stem: pd.read_csv(path) for path in tables}
        longest = sorted(files, key=len, reverse=True)
        self.files = {stem.split("_")[0]: files[stem] for stem in longest} | files
        self.text = self.files.pop("text").set_index("claim_id")["value"].astype(str)

    def __getattr__(self, name: str) -> object:
        """What a name of ``names.csv`` stands for, computed once."""
        if name.startswith("_") or name not in self._formulas:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        setattr(self, name, self.value(self._formulas[name]))
        return vars(self)[name]

    def __getitem__(self, name: str) -> object:
        """What a formula calls by a name: a function, an attribute of the paper or a table."""
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        table = name in self.files and name not in self._formulas
        return self.files[name] if table else getattr(self, name)

    def number(self, claim: str) -> float:
        """A number of the text; "1.5M", "150,000", "29 out of 36", "17%": its first one."""
        printed = self.text[claim].replace(",", "")
        return float(re.match(r"[-+]?[\d.]+", printed)[0]) * (1e6 if printed[-1] == "M" else 1)

    def value(self, formula: str, **given: object) -> object:
        """What a formula comes to; NameError for a name that the paper does not have."""
        scope = _Scope(self, given)
        return eval(f"({formula})", scope, scope)

    def filled(self, text: str, **given: object) -> str:
        """A text with the formulas in its braces evaluated."""
        return self.value(f"f'''{text} '''", **given)[:-1]  # the space: a text may end in a quote

    @cached_property
    def settings(self) -> dict[str, object]:
        """What ``settings.yaml`` says of the experiments."""
        return yaml.safe_load((self._folder / "settings.yaml").read_text(encoding="utf-8"))

    @cached_property
    def _results(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        numbers, claims = [], []
        for row in self._rows:
            for each in self.value(row["each"] or "[None]"):
                section = self.filled(row["section"], each=each)
                value = self.value(row["value"] or "[]", each=each)
                about = {"section": section, "kind": row["kind"] or "printed"}
                if row["printed"]:
                    printed = pd.Series(self.value(row["printed"], each=each))
                    what = [self.filled(row["claim"], each=each, key=key) for key in printed.index]
                    tolerance = self.value(row["tolerance"], each=each)
                    columns = {"printed": printed, "recomputed": value, "tolerance": tolerance}
                    rows = pd.DataFrame(columns, printed.index).reset_index(drop=True)
                    numbers.append(rows.assign(**about, what=what))
                else:
                    texts = {key: self.filled(row[key], each=each) for key in ("claim", "result")}
                    texts |= {key: row[key] for key in ("quote", "formula")}
                    parts = np.ravel(value).tolist()
                    claims.append(about | texts | {"verdict": verdict(parts)})
        table = pd.concat(numbers, ignore_index=True)
        table["apart"] = (table["recomputed"] - table["printed"]) / table["tolerance"]
        room = table["tolerance"] + PRINTED_SLACK
        agrees = (table["recomputed"] - table["printed"]).abs() <= room
        return table.assign(agrees=agrees), pd.DataFrame(claims)

    @property
    def numbers(self) -> pd.DataFrame:
        """A row per check of a number: ``section``, ``what`` it is of, ``printed``, ``recomputed``,
        ``tolerance``, ``apart`` (recomputed less printed, in tolerances), ``agrees``, ``kind``."""
        return self._results[0]

    @property
    def claims(self) -> pd.DataFrame:
        """A row per claim in words: ``section``, ``claim``, ``quote``, ``kind``, ``formula``,
        ``result`` (what the numbers say) and ``verdict``."""
        return self._results[1]

    @property
    def once(self) -> pd.Series:
        """Whether each printed number agrees in all its checks: a row per number, as it counts."""
        checks = self.numbers[self.numbers["kind"] == "printed"]
        place = checks["section"].str.split(", by ").str[0]
        return checks.groupby([place, "what"], sort=False)["agrees"].all()
