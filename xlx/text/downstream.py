"""Scores of models on downstream tasks, by language: what an alignment score is to predict.

`read_results` takes the JSON files that lm-evaluation-harness (Gao et al. 2023; versions 0.4, and
0.3 without its filters) writes, `read_csv` a table of one's own. Both give one row a task
("Belebele", "m-MMLU", "m-ARC"; in a CSV whatever stands there), model (as the file names it) and
language (code as in `parallel.load` of FLORES-200: "ar", "ar_Latn", "zh_Hant"), with ``score``
(accuracy, 0 to 1), ``stderr`` (NaN where the file has none) and ``n`` (number of questions; <NA>
where the file does not say). A language without a score has no row, and is never a zero.
"""

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from xlx.results import checks, paths
from xlx.text.files import TextError
from xlx.text.languages import LANGUAGES, parse_tag

SCORE_COLUMNS = ("task", "model", "language", "score", "stderr", "n")
#: Names of tasks in lm-evaluation-harness with the part that is the language, and their measure:
#: for ARC the harness reports two, and its papers the normalised one. The English part of m-ARC is
#: ARC-Challenge itself, of which the others are translations.
_TASKS = {
    "Belebele": (r"belebele_([a-z]{3}_[A-Z][a-z]{3})", "acc"),
    "m-MMLU": (r"m_mmlu_([a-z]{2,3})", "acc"),
    "m-ARC": (r"arc_([a-z]{2}|challenge)", "acc_norm"),
}
#: Codes with several texts in FLORES-200, and the labels that Belebele adds to it.
_SEVERAL = {"ace", "ar", "bjn", "fa", "kr", "ks", "min", "taq", "zh"}
_ROMANISED = {"bn_Latn", "hi_Latn", "ne_Latn", "si_Latn", "ur_Latn"}
#: The bare code of a language is that of this label.
_CHOSEN = {language.flores: code for code, language in LANGUAGES.items()}


def language_of(label: str) -> str:
    """The code of a language as in `parallel.load` of FLORES-200: "arb_Latn" gives "ar_Latn".

    Script and region are kept only where FLORES-200 or Belebele has another text with the bare
    code: "arb_Arab" gives "ar". Raises ValueError for what is no language tag.
    """
    if label in _CHOSEN:
        return _CHOSEN[label]
    tag = parse_tag(label)
    code, *rest = tag.split("_")
    return tag if rest and (code in _SEVERAL or tag in _ROMANISED) else code


def read_results(files: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """Scores in the results files of lm-evaluation-harness, one row a task, model and language.

    ``files``: a results file, a folder (its ``*.json``, at any depth), or several of either. Groups
    (``belebele``, ``m_mmlu``) and other tasks are left alone. The model is the file's
    ``model_name``, or else the ``pretrained=`` of its ``config``. What was run again counts as it
    was run last, by the ``date`` that the harness writes. Raises TextError, with file and field,
    for what is malformed, for a score that two files give of which one has no date, or with
    different numbers of shots, and where no file has one of these tasks; FileNotFoundError for a
    path that does not exist.
    """
    again: dict[tuple[str, ...], list[tuple[str, dict[str, Any]]]] = {}
    listed = _files(files)
    for where, row in (found for file in listed for found in _results(file)):
        again.setdefault(_key(row), []).append((where, row))
    if not again:
        _tell_of_others(listed[0])
    last = []
    for same in again.values():
        shots = {row["shots"]: where for where, row in same if row["shots"] is not None}
        if len(shots) > 1:
            asked = " and ".join(f"{number} shots in {where}" for number, where in shots.items())
            raise TextError(f"{' '.join(_key(same[0][1]))}: {asked}; give one of them.")
        dates = [row["date"] for _, row in same]
        dated = all(isinstance(date, int | float) for date in dates)
        last += (x for x in same if not dated or x[1]["date"] == max(dates))
    return _table(last)


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["task"], row["model"], row["language"]


def read_csv(file: str | Path) -> pd.DataFrame:
    """Scores in a CSV with the columns task, model, language, score and, if known, stderr and n.

    A row with an empty score is a language without one: it is left out. ``language`` is a code or a
    label. Raises TextError, with the line, for what is malformed or comes twice; FileNotFoundError
    for a path that does not exist.
    """
    return _table(_csv_rows(Path(file)))


def _csv_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and cells of each row with a score."""
    if not file.exists():
        raise FileNotFoundError(f"There is no file {file}.")
    checks.regular(file, TextError)
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            header = next(reader, [])
            rows = [(f"{file}, line {reader.line_num}", cells) for cells in reader if cells]
    except (OSError, ValueError, csv.Error) as error:
        raise TextError(f"{file} is no CSV in UTF-8 ({error}).") from None
    if missing := [name for name in SCORE_COLUMNS[:4] if name not in header]:
        raise TextError(f"{file}, line 1: the header lacks {', '.join(missing)}.")
    for where, cells in rows:
        if len(cells) != len(header):
            raise TextError(f"{where}: {len(cells)} cells, and the header has {len(header)}.")
        row = dict(zip(header, cells, strict=True))
        if row["score"].strip():
            yield where, row


def _table(rows: Iterable[tuple[str, dict[str, Any]]]) -> pd.DataFrame:
    """Rows by their place, checked."""
    checked: list[tuple[object, ...]] = []
    places: dict[tuple[str, ...], str] = {}
    for where, row in rows:
        try:
            key = _key(row | {"language": language_of(row["language"])})
        except TextError as error:
            raise TextError(f"{where}: {error}") from None
        score, stderr, n = (_number(row.get(x), where, x) for x in ("score", "stderr", "n"))
        if not 0 <= score <= 1:
            raise TextError(f"{where}: score is {row['score']!r}; it must be from 0 to 1.")
        whole = math.isnan(n) or (not isinstance(row["n"], bool) and n.is_integer() and n >= 1)
        if not whole:
            raise TextError(f"{where}: n is {row['n']!r}; it must be a number of questions.")
        if key in places:
            raise TextError(f"{where}: {' '.join(key)} is also in {places[key]}; give one of them.")
        places[key] = where
        checked.append((*key, score, stderr, pd.NA if math.isnan(n) else int(n)))
    table = pd.DataFrame(checked, columns=list(SCORE_COLUMNS))
    return table.astype({"score": float, "stderr": float, "n": "Int64"})


def of_models(table: pd.DataFrame, models: Iterable[str], pivot: str | None = None) -> pd.DataFrame:
    """The scores of some models alone, each called as it is here.

    A model is the one in the table of its own name, or else the only one whose last part, as of a
    path, is its last part. Raises TextError for a model without scores, or that several may be,
    and, with a ``pivot``, for one without a score in this language in one of its tasks.
    """
    there = list(dict.fromkeys(table["model"]))
    called: dict[str, str] = {}
    for model in models:
        same = [name for name in there if name == model]
        same = same or [name for name in there if Path(name).name == Path(model).name]
        if len(same) != 1:
            what = f"{' and '.join(same) or 'None'} of the models with results may be {model}"
            raise TextError(f"{what}; there are {', '.join(there) or 'none'}.")
        called[same[0]] = str(model)
    kept = table[table["model"].isin(called)]
    for (model, task), languages in kept.groupby(["model", "task"], sort=False)["language"]:
        if pivot not in {None, *languages}:
            raise TextError(f"{task}: {model} has no score in {pivot}.")
    return kept.assign(model=kept["model"].map(called)).reset_index(drop=True)


def _files(files: str | Path | Iterable[str | Path]) -> list[Path]:
    files = [files] if isinstance(files, str | Path) else files
    listed: list[Path] = []
    for path in map(Path, checks.several(files, "results files", TextError)):
        if not path.exists():
            raise FileNotFoundError(f"There is no results file or folder {path}.")
        listed += (inside := sorted(path.rglob("*.json")) if path.is_dir() else [path])
        if not inside:
            raise FileNotFoundError(f"{path} holds no .json file of lm-evaluation-harness.")
    if not listed:
        raise TextError("no results files are given: name one or more, or a folder")
    for file in listed:
        checks.regular(file, TextError)
    return list(dict.fromkeys(listed))


def _results(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and values of each row of a results file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # of JSON and of UTF-8
        raise TextError(f"{file} is no JSON ({error}).") from None
    results = _inner(content, "results")
    if results is None:
        what = f"{file} has no field 'results'"
        raise TextError(f"{what}; give a results file of lm-evaluation-harness.")
    known = [
        (name, task, match[1], metric)
        for name in results
        for task, (pattern, metric) in _TASKS.items()
        if (match := re.fullmatch(pattern, name))
    ]
    for name, task, label, metric in known:
        where, scores = f"{file}, results.{name}", _inner(results, name) or {}
        # ``acc,none`` and ``acc_stderr,none``, or in version 0.3 without ``,none``.
        field = f"{metric},none" if f"{metric},none" in scores else metric
        if field not in scores:
            what = f"{where} has no field '{metric},none' (nor {metric!r})"
            raise TextError(f"{what}, but {', '.join(scores) or 'nothing'}.")
        stderr = scores.get(field.replace(metric, f"{metric}_stderr", 1))
        samples = _inner(_inner(content, "n-samples"), name) or {}
        n = samples.get("effective", samples.get("original"))  # what a limit has left
        language = "en" if label == "challenge" else label
        values = task, _model(content, file), language, scores[field], stderr, n
        about = {"date": content.get("date"), "shots": (_inner(content, "n-shot") or {}).get(name)}
        yield where, dict(zip(SCORE_COLUMNS, values, strict=True)) | about


def _tell_of_others(file: Path) -> None:
    """Raise TextError for a file of other tasks, with their names."""
    results = _inner(json.loads(file.read_text(encoding="utf-8")), "results") or {}
    raise TextError(
        f"{file}: results has none of Belebele, m-MMLU and m-ARC by language (such as "
        "belebele_deu_Latn, m_mmlu_de, arc_de, arc_challenge) but "
        f"{', '.join(results) or 'nothing'}."
    )


def _inner(content: object, name: str) -> dict | None:
    """An object within an object of JSON, if both are there."""
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, dict) else None


def _model(content: dict, file: Path) -> str:
    arguments = (_inner(content, "config") or {}).get("model_args")
    if isinstance(arguments, dict):
        arguments = f"pretrained={arguments.get('pretrained') or ''}"
    if name := content.get("model_name"):
        return str(name)
    if match := re.search(r"(?:^|,)pretrained=([^,]+)", str(arguments)):
        return match[1]
    what = "no field 'model_name', and no 'pretrained=' in 'config.model_args'"
    raise TextError(f"{file} has {what}.")


def _number(value: object, where: str, what: str) -> float:
    """A number; NaN for what the harness or a table writes where there is none."""
    if value is None or str(value).strip() in ("", "N/A"):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TextError(f"{where}: {what} is {value!r}, which is no number.") from None


def read_tasks(files: Sequence[str]) -> pd.DataFrame:
    """Scores of tasks from results of lm-evaluation-harness or CSVs, below the repository."""
    read = {True: read_csv, False: read_results}
    tables = [read[str(file).endswith(".csv")](paths.ROOT / file) for file in files]
    return pd.concat(tables, ignore_index=True)
