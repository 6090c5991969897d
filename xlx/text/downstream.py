"""Scores of models on downstream tasks, by language: what an alignment score is to predict.

`read_tasks` takes the JSON files that lm-evaluation-harness (Gao et al. 2023; versions 0.3 and 0.4)
writes, and tables of one's own. It gives one row per task ("Belebele", "m-MMLU", "m-ARC", "xnli":
the harness's name without its language), model (as the file names it) and language (code as in
`parallel.load` of FLORES-200: "ar", "ar_Latn", "zh_Hant"), with ``score`` (accuracy, 0 to 1),
``stderr`` (NaN where the file has none) and ``n`` (number of questions; <NA> where the file does
not say). A language without a score has no row, and is never a zero.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from xlx.results import checks, paths
from xlx.text.files import TextError, table_of
from xlx.text.languages import LANGUAGES, RENAMED, codes_by_name, kind_of_language, parse_tag

SCORE_COLUMNS = ("task", "model", "language", "score", "stderr", "n")
#: Names of tasks in lm-evaluation-harness with the part that is the language, and their measure:
#: for ARC the harness reports two, and its papers the normalised one. The English part of m-ARC is
#: ARC-Challenge itself, of which the others are translations.
_TASKS = {
    "Belebele": (r"belebele_([a-z]{3}_[A-Z][a-z]{3})", "acc"),
    "m-MMLU": (r"m_mmlu_([a-z]{2,3})", "acc"),
    "m-ARC": (r"arc_([a-z]{2}|challenge)", "acc_norm"),
}
#: What may be a language in the name of another task: xnli_de, include_base_44_german_stem.
_LABEL = re.compile(r"(?<=_)(?:[a-z]{2,3}(?:_[A-Z][a-z]{3})?|[a-z]{4,})(?=_|$)")
#: What the prompts of a language make different, where the other settings are those of a run.
_OF_LANGUAGE = {"version {}", "prompt {}", "{} questions"}
_PROMPT = ("dataset_path", "description", "doc_to_text", "doc_to_choice", "generation_kwargs")
_OF_ALL = ("chat_template", "system_instruction", "fewshot_as_multiturn")
#: Arguments that name the model, or change how fast it is, but not what it answers.
_NO_SETTING = re.compile(
    "pretrained|model|parallelize|trust_remote_code|num_concurrent|base_url|timeout|max_retries"
    "|attn_implementation|.*(device|batch|memory|parallel_size).*"
).fullmatch
#: Codes with several texts in FLORES-200, and the labels that Belebele and FLORES+ add to it.
_SEVERAL = {"ace", "ar", "bjn", "fa", "kr", "ks", "min", "taq", "zh"}
_ADDED = {
    "bn_Latn",
    "ca_Latn_ES",
    "hi_Latn",
    "mni_Mtei",
    "ne_Latn",
    "oc_Latn_ES",
    "sd_Deva",
    "si_Latn",
    "ur_Latn",
}
#: The bare code of a language is that of this label.
_CHOSEN = {parse_tag(language.flores): code for code, language in LANGUAGES.items()}


def language_of(label: str) -> str:
    """The code of a language as in `parallel.load` of FLORES-200: "arb_Latn" gives "ar_Latn".

    Script and region are kept only where FLORES-200 or Belebele has another text with the bare
    code: "arb_Arab" gives "ar". Raises ValueError for what is no language tag.
    """
    tag = RENAMED.get(tag := parse_tag(label), tag)
    if tag in _CHOSEN:
        return _CHOSEN[tag]
    code, *rest = tag.split("_")
    return tag if rest and (code in _SEVERAL or tag in _ADDED) else code


@checks.typed(TextError)
def read_tasks(files: str | Path | Iterable[str | Path]) -> DataFrame:
    """Scores of tasks in all files together, one row per task, model, language; with its ``file``.

    ``files``: results of lm-evaluation-harness, CSVs, folders of both (at any depth), or several;
    paths of the repository may be relative. Groups (``belebele``, ``m_mmlu``), tasks in one
    language and, in a folder, other JSON and tables are left alone. The score is the accuracy or
    else exact match; each of several filters is a task of its own. The model is the file's
    ``model_name``, or else that of its ``config``. What was run again counts as it was run last, by
    the ``date`` that the harness writes. A CSV has the columns task, model, language, score and, if
    known, stderr and n; a row with an empty score is left out. ``language`` is a code or a label.

    Raises TextError, with file and field or line, for what is malformed, for a score that two files
    give of which one has no date, for a task of a model in two settings (`_setting`), and where
    results have no multilingual task; FileNotFoundError for a path that does not exist.
    """
    listed = score_files(files)
    tables = [file for file in listed if file.suffix == ".csv"]
    of_tables = [row for file in tables for row in _csv_rows(file, listed.pop(file))]
    rows = [result for file, asked in listed.items() for result in _results(file, asked)]
    spoken = Counter(task for task, _ in {(row["task"], row["language"]) for _, row in rows})
    rows = [x for x in rows if x[1]["task"] in _TASKS or spoken[x[1]["task"]] > 1]
    if listed and not rows and (any(listed.values()) or not of_tables):
        there = ", ".join(_inner(_read_json(file := next(iter(listed))), "results") or ["nothing"])
        raise TextError(
            f"{file}: results has none of Belebele, m-MMLU and m-ARC by language (such as "
            "belebele_deu_Latn, m_mmlu_de, arc_de, arc_challenge), nor another task in two "
            f"languages or more (xnli_de, xnli_fr), but {there}."
        )
    last = {}
    settings = {}
    for where, row in rows:
        last.setdefault(_key(row), []).append((where, row))
        for what, value in row["setting"].items():
            setting = (*_key(row)[: 3 if what in _OF_LANGUAGE else 2], what)
            if value is not None:
                settings.setdefault(setting, {}).setdefault(what.format(value), where)
    for (*setting, _), places in settings.items():
        if len(places) > 1:
            asked = " and ".join(f"{value} in {where}" for value, where in places.items())
            raise TextError(f"{' '.join(setting)}: {asked}; which? Give the files of one setting.")
    for key, same in last.items():
        dates = [row["date"] for _, row in same]
        if all(isinstance(date, int | float) for date in dates):
            last[key] = [x for x in same if x[1]["date"] == max(dates)]
    return _table([*of_tables, *chain(*last.values())])


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["task"], row["model"], row["language"]


def _csv_rows(file: Path, asked: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and cells of each row with a score; none of another table, unless ``asked``."""
    table = table_of(file)
    missing = [name for name in SCORE_COLUMNS[:4] if name not in table]
    if missing and asked:
        raise TextError(f"{file}: the header lacks {', '.join(missing)}.")
    for number, row in enumerate([] if missing else table.to_dict("records"), 1):
        if row["score"].strip():
            yield f"{file}, row {number}", row | {"file": str(file)}


def _table(rows: Iterable[tuple[str, dict[str, Any]]]) -> DataFrame:
    """Rows by their place, checked."""
    checked = []
    places = {}
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
        checked.append((*key, score, stderr, pd.NA if math.isnan(n) else int(n), row["file"]))
    table = DataFrame(checked, columns=[*SCORE_COLUMNS, "file"])
    return table.astype({"score": float, "stderr": float, "n": "Int64"})


@checks.typed(TextError)
def of_models(table: DataFrame, models: Iterable[str], pivot: str | None = None) -> DataFrame:
    """The scores of some models alone, each called as it is here.

    A model is the one in the table of its own name, or else the only one whose last part, as of a
    path, is its last part. Raises TextError for a model without scores, or that several may be,
    and, with a ``pivot``, for one without a score in this language in one of its tasks.
    """
    for column in ("task", "model", "language"):
        checks.one_of(column, table, "column", TextError)
    there = list(dict.fromkeys(table["model"]))
    called = {}
    for model in models:
        same = [name for name in there if name == model]
        same = same or [name for name in there if Path(name).name == Path(model).name]
        if len(same) != 1:
            raise TextError(
                f"{' and '.join(same) or 'None'} of the models with results may be {model}"
                f"; there are {', '.join(there) or 'none'}."
            )
        called[same[0]] = str(model)
    rows = table[table["model"].isin(called)]
    for (model, task), languages in rows.groupby(["model", "task"], sort=False)["language"]:
        if pivot not in {None, *languages}:
            raise TextError(f"{task}: {model} has no score in {pivot}.")
    return rows.assign(model=rows["model"].map(called)).reset_index(drop=True)


def score_files(files: str | Path | Iterable[str | Path]) -> dict[Path, bool]:
    """JSON files and tables, and whether each is named itself, not found in a folder."""
    files = [files] if isinstance(files, str | Path) else files
    listed = {}
    for path in map(Path, files):
        path = path if path.exists() else paths.ROOT / path
        if not path.exists():
            raise FileNotFoundError(f"There is no results file or folder {path}.")
        inside = [path]
        if path.is_dir():
            inside = sorted(x for x in path.rglob("*") if x.suffix in (".json", ".csv"))
        if not inside:
            raise FileNotFoundError(f"{path} holds no .json file of lm-evaluation-harness, no CSV.")
        listed |= {file: listed.get(file, False) or not path.is_dir() for file in inside}
    if not listed:
        raise TextError("no results files are given: name one or more, or a folder")
    for file in listed:
        checks.regular(file, TextError)
    return listed


def _read_json(file: Path) -> object:
    try:
        content = json.loads(file.read_text("utf-8-sig"))
        json.dumps(content, ensure_ascii=False).encode()  # half a character is an error here
        return content
    except (ValueError, RecursionError) as error:  # of JSON and of UTF-8
        raise TextError(f"{file} is no JSON ({error}).") from None


@cache
def _task_of(name: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Task, language and measures (the first that is there counts) of a name of the harness."""
    for task, (pattern, metric) in _TASKS.items():
        if match := re.fullmatch(pattern, name):
            return task, "en" if match[1] == "challenge" else match[1], (metric,)
    normed = ("acc_norm",) * name.startswith(("arc_", "hellaswag_"))
    for match in reversed([*_LABEL.finditer(name)]):
        code = (codes_by_name() | {"jp": "ja"}).get(match[0], match[0])
        if kind_of_language(code)[1] != "?":
            task = name[: match.start() - 1] + name[match.end() :]
            return task, code, (*normed, "acc", "exact_match")
    return None


def _results(file: Path, asked: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and values of each row of a results file; none of another file, unless ``asked``."""
    results = _inner(content := _read_json(file), "results")
    if results is None and asked:
        raise TextError(
            f"{file} has no field 'results'; give a results file of lm-evaluation-harness."
        )
    for name in filter(_task_of, results or ()):
        task, language, metrics = _task_of(name)
        where, scores = f"{file}, results.{name}", _inner(results, name) or {}
        # ``acc,none`` and ``acc_stderr,none``, or in version 0.3 without ``,none``.
        fitting = [[x for x in scores if x.split(",")[0] == metric] for metric in metrics]
        fields = next(filter(None, fitting), [])
        if not fields and task in _TASKS:
            raise TextError(
                f"{where} has no field '{metrics[0]},none' (nor {metrics[0]!r})"
                f", but {', '.join(scores) or 'nothing'}."
            )
        fields = [x for x in fields if x.endswith(",none")] or fields
        samples = _inner(_inner(content, "n-samples"), name) or {}
        n = samples.get("effective", samples.get("original"))  # what a limit has left
        setting = _setting(content, name) | {"{} questions": n}
        about = {"date": content.get("date"), "setting": setting}
        about["file"] = str(file)
        named = _arguments(content)
        names = content.get("model_name"), named.get("pretrained"), named.get("model")
        if not (model := str(next(filter(None, names), ""))):
            raise TextError(
                f"{file} has no field 'model_name', and no 'pretrained=' in 'config.model_args'."
            )
        for field in fields:
            metric, _, way = field.partition(",")
            stderr = scores.get(field.replace(metric, f"{metric}_stderr", 1))
            called = f"{task}, {way}" if len(fields) > 1 else task
            values = called, model, language, scores[field], stderr, n
            yield where, dict(zip(SCORE_COLUMNS, values, strict=True)) | about


def _setting(content: dict, name: str) -> dict[str, object]:
    """What makes two scores of a task incomparable, as a file says it; None where it does not."""
    config, of_config = (
        _inner(content, "config") or {},
        _inner(_inner(content, "configs"), name) or {},
    )
    of_task, few = (_inner(content, "n-shot") or {}).get(name), "num_fewshot"
    shots = next((x for x in (of_task, of_config.get(few), config.get(few)) if x is not None), None)
    arguments = sorted(f"{x}={y}" for x, y in _arguments(content).items() if not _NO_SETTING(x))
    prompt = re.sub(r" at 0x\w+", "", json.dumps([of_config.get(x) for x in _PROMPT]))
    every = {x: content.get(f"{x}_sha") or content.get(x) for x in _OF_ALL}
    every |= {x: config.get(x) for x in ("limit", "gen_kwargs")} | {"model_args": arguments}
    return {f"{x} {{}}": value or "none" for x, value in every.items() if config} | {
        "{} shots": shots,
        "seed of shots {}": config.get("fewshot_seed") if shots else None,
        "at most {} tokens": content.get("max_length"),
        "model {}": config.get("model_sha") or None,
        "version {}": (_inner(content, "versions") or {}).get(name),
        "prompt {}": hashlib.sha256(prompt.encode()).hexdigest()[:8] if of_config else None,
    }


def _inner(content: object, name: str) -> dict | None:
    """An object within an object of JSON, if both are there."""
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, dict) else None


def _arguments(content: dict) -> dict[str, object]:
    """The arguments of the model: ``a=1,b=2``, or an object of JSON."""
    given = (_inner(content, "config") or {}).get("model_args")
    if isinstance(given, dict):
        return given
    parts = (part.partition("=") for part in str(given or "").split(","))
    return {name.strip(): value for name, _, value in parts if value}


def _number(value: object, where: str, what: str) -> float:
    """A number; NaN for what the harness or a table writes where there is none."""
    if value is None or str(value).strip() in ("", "N/A"):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TextError(f"{where}: {what} is {value!r}, which is no number.") from None
