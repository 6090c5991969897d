"""Papers as data: what a paper prints, and what it says, evaluated over its printed tables.

A folder holds transcribed tables (``table1_nli.csv`` is called ``table1``) and the numbers of the
text (``text_results.csv``: ``claim_id``, ``value``). Two lists of formulas make it an audit:

- ``names.csv`` (``name``, ``formula``): tables and numbers that follow from others;
- ``claims.csv``: what the paper says, a row each, with those of its columns that are needed.
  ``section`` is where, ``claim`` what is said, ``formula`` how a reader would write the test,
  ``value`` what is computed. Without ``printed`` this is true or false, in one or several parts
  (none: cannot be told), and ``found`` says in words what the numbers are. With ``printed`` it is
  the number that other printed ones give; the two agree within ``tolerance``, what rounding allows.
  A column of numbers is checked number by number, and ``key`` in the claim is what each is of. A
  row stands for every item of ``each``, if it has any.

A formula is a Python expression over these names and the functions, attributes and methods that are
listed here; nothing else can be named. Texts may have formulas in braces, as in f-strings. A paper
needs no module: ``python -m printed.evaluator FOLDER``, in ``notebooks/``, says what it comes to.
"""

import ast
import re
import sys
from collections.abc import Hashable, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from printed.printed_tables import Audit, verdict
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")


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


_PLAIN = (
    p_of_t,
    p_of_r,
    p_of_hits,
    off_diagonal,
    explained,
    rows_by,
    abs,
    all,
    any,
    dict,
    float,
    int,
    len,
    list,
    max,
    min,
    range,
    round,
    set,
    sorted,
    str,
    sum,
    zip,
)
FUNCTIONS = {plain.__name__: plain for plain in _PLAIN} | {
    "ceil": np.ceil,
    "concat": pd.concat,
    "log10": np.log10,
    "series": pd.Series,
    "sqrt": np.sqrt,
    "table": pd.DataFrame,
}
LISTED = (
    "T abs add all any assign astype between clip columns combine_first corr count cumsum diff div "
    "drop droplevel dropna duplicated endswith eq fillna filter first fullmatch ge "
    "get_level_values groupby gt idxmax idxmin iloc index isin items join keys le loc lower lt "
    "map mask max mean median min mul name names nlargest notna nsmallest nunique pivot "
    "pivot_table quantile rank ravel reindex removeprefix rename rename_axis replace reset_index "
    "round rsplit set_axis set_index shape size sort_index sort_values split stack startswith std "
    "str sub sum swaplevel to_dict tolist unique unstack upper value_counts values var where xs"
)
METHODS = frozenset(LISTED.split())
SYNTAX = (
    ast.Expression,
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Name,
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
    ast.IfExp,
    ast.ListComp,
    ast.SetComp,
    ast.GeneratorExp,
    ast.DictComp,
    ast.comprehension,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.keyword,
    ast.Starred,
    ast.operator,
    ast.boolop,
    ast.unaryop,
    ast.cmpop,
    ast.expr_context,
)
#: Of ``claims.csv``.
COLUMNS = ("section", "claim", "formula", "value", "printed", "tolerance", "found", "each")


class FormulaError(ValueError):
    """A formula that names something unknown, or is none."""


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
            pd.read_csv(path, dtype=str, keep_default_na=False)
            if path.is_file()
            else pd.DataFrame()
            for path in lists.values()
        )
        self._formulas = dict(names.itertuples(index=False))
        self._rows = claims.reindex(columns=COLUMNS, fill_value="").to_dict("records")
        tables = sorted({*folder.glob("*.csv")} - {*lists.values()})
        files = {path.stem: pd.read_csv(path) for path in tables}
        longest = sorted(files, key=len, reverse=True)
        self.files = {stem.split("_")[0]: files[stem] for stem in longest} | files
        if "text" in self.files:
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
        if hasattr(self, name) and not name.startswith("_"):
            return getattr(self, name)
        if name not in self.files:
            raise FormulaError(f"{self._folder.name} has no table, name or function {name!r}")
        return self.files[name]

    def number(self, claim: str) -> float:
        """A number of the text; "1.5M", "150,000", "29 out of 36", "17%": its first one."""
        printed = self.text[claim].replace(",", "")
        return float(re.match(r"[-+]?[\d.]+", printed)[0]) * (1e6 if printed[-1] == "M" else 1)

    def value(self, formula: str, **given: object) -> object:
        """What a formula comes to; FormulaError for one that goes beyond what is listed above."""
        try:
            tree = ast.parse(f"({formula})", mode="eval")
        except SyntaxError as error:
            raise FormulaError(f"{formula}: {error.msg}") from None
        for node in ast.walk(tree):
            if not isinstance(node, SYNTAX):
                raise FormulaError(f"{formula}: {type(node).__name__} is no part of a formula")
            if isinstance(node, ast.Attribute) and node.attr not in METHODS:
                raise FormulaError(f"{formula}: .{node.attr} is not listed")
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)} | {*given}
        known = {node.id: self[node.id] for node in names if node.id not in bound}
        scope = {"__builtins__": {}} | known | given
        return eval(compile(tree, formula, "eval"), scope)  # all that it names is listed

    def filled(self, text: str, **given: object) -> str:
        """A text with the formulas in its braces evaluated."""
        return self.value(f"f'''{text} '''", **given)[:-1]  # the space: a text may end in a quote

    @cached_property
    def settings(self) -> dict[str, object]:
        """What ``settings.yaml`` says of the experiments."""
        return yaml.safe_load((self._folder / "settings.yaml").read_text(encoding="utf-8"))

    @cached_property
    def results(self) -> tuple[Audit, pd.DataFrame]:
        """The numbers and claims of ``claims.csv``, in its order.

        And of the claims in words alone, by ``section``: ``claim, formula, found, verdict``.
        """
        audit, claims = Audit(), []
        for row in self._rows:
            for each in self.value(row["each"] or "[None]"):
                section, value = self.filled(row["section"], each=each), row["value"] or "[]"
                value = self.value(value, each=each)
                if row["printed"]:
                    printed = pd.Series(self.value(row["printed"], each=each))
                    what = [self.filled(row["claim"], each=each, key=key) for key in printed.index]
                    value = pd.Series(value, index=printed.index)
                    audit.check(
                        section, what, printed, value, self.value(row["tolerance"], each=each)
                    )
                else:
                    claim, result = (self.filled(row[key], each=each) for key in ("claim", "found"))
                    parts = np.ravel(value).tolist()
                    audit.claim(section, claim, result, *parts)
                    claims.append((section, claim, row["formula"], result, verdict(parts)))
        columns = ["section", "claim", "formula", "found", "verdict"]
        return audit, pd.DataFrame(claims, columns=columns).set_index("section")

    @property
    def audit(self) -> Audit:
        """All numbers and claims."""
        return self.results[0]

    @property
    def claims(self) -> pd.DataFrame:
        """The claims in words, by section."""
        return self.results[1]


if __name__ == "__main__":
    audit = Paper(Path(sys.argv[1])).audit
    print(audit.summary(), audit.listing(4), sep="\n\n")
