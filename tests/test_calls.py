"""Calls as people make them by mistake, drawn by seed: a right result, or one sentence of ours.

Every face of the package is called with one argument spoilt, or something inside it: left out, of
another type, empty, nested, of numpy, pandas or torch, masked, a truth value for a number, text for
a number or a truth value. CALLS of them, a tenth as many of commands; AUDIT_SEED draws.
"""

import dataclasses
import dis
import inspect
import os
import random
import sys
import traceback
import typing
import warnings
from collections.abc import Callable, Mapping
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import xlx
from tests import tiny
from xlx import measures, plots, results, subjects, text
from xlx.experiment import averages, mexa_scores, probing, scoring, sentence_probes, transfers
from xlx.experiment import grids as grids_of
from xlx.measures import abx, mexa, mixing, sentence_tasks, statistics
from xlx.report import command
from xlx.results import checks, paths, work
from xlx.subjects import identity, jobs, loading
from xlx.text import downstream, examples, parallel, questions, trees

SEED = os.environ.get("AUDIT_SEED", "1")
SEEDS = os.environ.get("CALL_SEEDS", SEED).split()
N = int(os.environ.get("CALLS", "2000"))
#: What is given, with a mistake in it, and whether it means the same as what was right.
Spoilt = tuple[str, Any, bool]


class Nothing:
    """Of no type that anything takes."""

    def __repr__(self) -> str:
        return "Nothing\n()"


def of_number(value: Any) -> list[Spoilt]:
    kinds = [("text", str(value), False), ("bool", True, False), ("nan", float("nan"), False)]
    kinds += [("nested", [value], False), ("empty", [], False)]
    with_numpy = np.float64(value) if isinstance(value, float) else np.int64(value)
    kinds += [("numpy", with_numpy, True), ("numpy", np.array(value), True)]
    return [*kinds, ("torch", torch.tensor(value), True), ("pandas", pd.Series([value]), False)]


def of_truth(value: bool) -> list[Spoilt]:
    words = [("text", word, False) for word in ("false", "no", "")]
    kinds = [("nested", [value], False), ("empty", [], False), ("number", 2, False)]
    return [*words, *kinds, ("numpy", np.bool_(value), True), ("pandas", pd.Series([value]), False)]


def of_text(value: Any) -> list[Spoilt]:
    kinds = [("empty", "", False), ("nested", [value], False), ("number", 3, False)]
    kinds += [("bytes", str(value).encode(), False), ("bool", True, False)]
    return [*kinds, ("numpy", np.str_(value), True), ("pandas", pd.Series([value]), False)]


def of_list(value: list | tuple) -> list[Spoilt]:
    kinds = [("empty", (), False), ("nested", [[*value]], False)]
    kinds += [("text", "abc", False), ("number", 7, False), ("bool", True, False)]
    kinds += [
        ("mapping", dict(enumerate(value)), False),
        ("tuple", tuple(value), True),
        ("iterator", iter(value), True),
    ]
    if all(isinstance(x, str | Number) for x in value):
        kinds += [("numpy", np.array(value), True), ("pandas", pd.Series(value), True)]
        kinds += [("pandas", pd.Index(value), True), ("masked", masked(np.array(value)), False)]
    if value and all(isinstance(x, int | float) for x in value):
        kinds += [("torch", torch.tensor(value), True)]
    return kinds


def masked(array: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.masked_array(array, np.arange(array.size).reshape(array.shape) == 0)


def of_array(value: np.ndarray) -> list[Spoilt]:
    kinds = [("empty", value[:0], False), ("nested", value[None], False), ("number", 1.5, False)]
    kinds += [("text", "abc", False), ("masked", masked(value), False), ("list", [*value], True)]
    if value.dtype.kind in "biuf":
        kinds += [("torch", torch.from_numpy(value), True)]
    kinds += [("numpy", value.astype(object), True)]
    kinds += [("text", value.astype(str), False), ("flat", value.ravel(), value.ndim == 1)]
    if value.ndim < 3:
        kinds += [("pandas", [pd.Series, pd.DataFrame][value.ndim - 1](value), True)]
    return kinds


def of_mapping(value: Mapping) -> list[Spoilt]:
    kinds = [("empty", {}, False), ("nested", [value], False), ("list", [*value.values()], False)]
    kinds += [("nested", {"a": value}, False), ("text", "abc", False), ("number", 1, False)]
    return [*kinds, ("keys", dict(enumerate(value.values())), False)]


def of_table(value: pd.DataFrame) -> list[Spoilt]:
    kinds = [("empty", value.iloc[:0], False), ("numpy", value.to_numpy(), False)]
    kinds += [("nested", [value], False), ("text", value.astype(str), False)]
    kinds += [("list", value.to_dict("records"), False), ("pandas", value.iloc[:, 0], False)]
    return [*kinds, ("empty", pd.DataFrame(), False)]


def spoilt(value: Any, draw: random.Random) -> Spoilt:
    """A value, or something in it, with a mistake."""
    if type(value) in (dict, list, tuple) and value and draw.random() < 0.4:
        key = draw.choice([*value] if isinstance(value, dict) else range(len(value)))
        kind, inner, same = spoilt(value[key], draw)
        held = value.copy() if isinstance(value, dict) else [*value]
        held[key] = inner
        where = "" if type(inner) is type(value[key]) else " inside"  # a text is a text
        return kind + where, held if isinstance(value, dict) else type(value)(held), same
    ways = [
        (bool, of_truth),
        (int | float, of_number),
        (str | Path, of_text),
        (list | tuple, of_list),
        (np.ndarray, of_array),
        (Mapping, of_mapping),
        (pd.DataFrame, of_table),
    ]
    kinds = next((made(value) for known, made in ways if isinstance(value, known)), [])
    kinds += [("None", None, False), ("wrong type", Nothing(), False), ("wrong type", 1j, False)]
    kinds += [("nested", [value], False)] * (value is not None)
    kinds += [("number", 3.5, False)] * (not isinstance(value, float))
    return draw.choice(kinds)


def like(one: Any, other: Any) -> bool:
    """Whether two results are the same."""
    if scipy.sparse.issparse(one) and scipy.sparse.issparse(other):
        one, other = one.toarray(), other.toarray()
    if isinstance(one, pd.DataFrame | pd.Series):
        return type(one) is type(other) and one.equals(other)
    if isinstance(one, np.ndarray | torch.Tensor | Number):
        try:
            np.testing.assert_array_equal(one, other)
        except (AssertionError, TypeError, ValueError):
            return False
        return True
    if isinstance(one, loading.Encoder):
        return isinstance(other, loading.Encoder) and one.fingerprint == other.fingerprint
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and like(vars(one), vars(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return [*one] == [*other] and all(like(one[x], other[x]) for x in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(like, one, other))
    try:
        return bool(np.all(one == other))
    except (TypeError, ValueError):
        return False


def takes(face: Callable, name: str, value: Any) -> bool:
    """Whether an argument is, by its outermost type, what the signature says."""
    parameters = inspect.signature(face).parameters
    hint = parameters[name].annotation if name in parameters else Any
    if hint == "Vectors | Mapping[str, ndarray]":  # the former is a name in text
        hint = Mapping
    hint = eval(hint, vars(sys.modules[face.__module__])) if isinstance(hint, str) else hint
    if hint is inspect.Parameter.empty:
        return True
    parts = typing.get_args(hint) if type(hint).__name__ in ("UnionType", "Union") else (hint,)
    for part in parts:
        kind = typing.get_origin(part) or part
        if kind is Any or kind is object or isinstance(kind, typing.TypeVar):
            return True
        kind = {float: Number, int: (int, np.integer), bool: (bool, np.bool_)}.get(kind, kind)
        value = checks.as_arrays(value) if kind is np.ndarray else value
        if isinstance(kind, type | tuple) and isinstance(value, kind):
            number = kind is Number or kind == (int, np.integer)
            listed = isinstance(value, str | bytes) and kind not in (str, bytes)
            if not (listed or (number and isinstance(value, bool | complex))):
                return True
    return False


def ours(error: BaseException) -> bool:
    """Whether the package itself raised the error, in one line."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    raised = dis.opname[frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
    inside = Path(frame.f_code.co_filename).is_relative_to(paths.ROOT / "xlx")
    said = isinstance(error, ValueError | TypeError | OSError | LookupError)
    return raised and inside and said and "\n" not in str(error) and str(error).strip() != ""


# --- what is called -------------------------------------------------------------------------------


def vectors(*shape: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {code: draw.normal(size=shape) for code in "abc"}


def made_corpus() -> parallel.ParallelCorpus:
    lines = [line for sentence in tiny.SENTENCES for line in (sentence, f"{sentence}!")][:6]
    rows = {code: tuple(f"{line} {code}" for line in lines) for code in ("en", "de")}
    ids = tuple(map(str, range(6)))
    return parallel.ParallelCorpus("made", rows, ids, ("a", "a", "b", "b", "c", "c"), "", "")


#: What may hold anything.
FREE = (
    "igap.seeds",
    "igap.groups",
    "looks.palette",
    "exact.groups",
    "result.about",
    "probe_sentences.reading",
)
Faces = dict[str, tuple[Callable, dict[str, Any]]]


def of_measures() -> Faces:
    draw = np.random.default_rng(1)
    deep, languages, groups = vectors(2, 5, 3), ["en", "de"], [0, 0, 1, 1, 2, 2]
    grid, wrong = draw.random((2, 2, 6)).round(1), draw.random((4, 8)) < 0.3
    of_grid = {"languages": languages, "groups": groups}
    named = {"states": deep, "pairs": [("a", "b"), ("a", "c")]}
    table = pd.DataFrame(draw.random((6, 3)), columns=[*"xyz"])
    table[["language_1", "language_2", "k"]] = [[*"abk"], [*"ack"], [*"bck"]] * 2
    scored = {"scores": grid, **of_grid}
    related = {"given": ["z"], "languages": ["language_1", "language_2"], "method": "spearman"}
    cut = {"n_triplets": 20, "seed": 0}
    curve = {"training": wrong, "translated": {"de": ~wrong, "fr": wrong}, "seeds": [1, 1, 2, 2]}
    curve |= {"levels": [0.5, 0.25], "tolerance": 0.5, "groups": [0, 0, 1, 1, 2, 2, 3, 3]}
    labelled = {"labels": [0, 1, 0, 1, 0, 1], "groups_of_labels": {"a": [0], "b": [1]}}
    exact = named | {"layers": [0, 1], "measures": [abx.LD, abx.MD], "device": "cpu"}
    return {
        "exact": (measures.exact, exact | {"groups": {"documents": [*"xxyyz"]}}),
        "sampled": (measures.sampled, named | cut | {"n_runs": 2}),
        "triplets": (
            abx.sample_triplets,
            {"task": "MD", "pair": ("a", "b"), "n_positions": 5} | cut,
        ),
        "mexa": (measures.scores, {"states": deep, "pivot": "a"}),
        "expected": (mexa.expected, {"mu": np.array([0.2, 0.5]), "english_score": 0.5}),
        "bands": (mexa.bands, {"score": [0.2, 0.5]}),
        "igap": (measures.igap_curve, curve),
        "summary": (measures.summary, scored),
        "by_label": (measures.by_label, {"right": grid, **labelled, **of_grid}),
        "cells": (mixing.cells, scored | {"margins": True}),
        "paired": (mixing.paired_difference, scored | {"others": grid[::-1].copy()}),
        "averages": (mixing.averages, {"each": grid, "groups": groups, "other": grid + 0.1}),
        "correlation": (measures.correlation, {"pairs": table, "x": "x", "y": "y"} | related),
        "correlations": (
            statistics.correlations,
            {"table": table, "by": ["k"], "x": "x", "y": "y"},
        ),
    }


def of_texts(folder: Path) -> Faces:
    corpus = made_corpus()
    sets = examples.of_corpus(corpus, 0)
    ids, xquad = ("1", "2"), {x: text.load_questions("xquad", x).take(4, 1) for x in ("en", "de")}
    (folder / "text").mkdir()
    for code in ("en", "de"):
        rows = "\n".join(corpus.sentences[code])
        (folder / "text" / f"{code}.txt").write_text(f"{rows}\n", encoding="utf-8")
    (folder / "own.csv").write_text("task,model,language,score,n\na,m,de,0.5,9\na,m,en,0.6,9\n")
    files, parsed = [folder / "own.csv"], text.load_trees("de", "pud")
    read, pair = downstream.read_tasks(files), {"language": "de", "ids": ids}
    labels = {"labels": np.array([0, 1]), "classes": ("x", "y")}
    answers = tuple((questions.Answer(x, 0),) for x in ("a", "b"))
    fields = dict(vars(corpus))
    for name in ("stock", "columns"):
        fields.pop(name)
    return {
        "parallel": (
            parallel.load,
            {
                "name": str(folder / "text"),
                "languages": ["en", "de"],
                "path": None,
                "drop_duplicates": False,
            },
        ),
        "take": (lambda n, seed: corpus.take(n, seed), {"n": 3, "seed": 1}),
        "select": (lambda languages: corpus.select(languages), {"languages": ["en"]}),
        "drop": (lambda positions: corpus.drop(positions), {"positions": [1, 2]}),
        "documents": (parallel.documents, {"corpus": corpus}),
        "labelled": (
            text.load_labelled,
            {"task": "NLI", "language": "de", "split": "test", "source": "xnli", "path": None},
        ),
        "questions": (
            text.load_questions,
            {"source": "xquad", "language": "de", "split": "test", "path": None},
        ),
        "trees": (text.load_trees, {"language": "de", "source": "pud", "path": None}),
        "ParallelCorpus": (text.ParallelCorpus, fields),
        "Examples": (
            text.Examples,
            pair | labels | {"name": "a", "first": ("a", "b"), "second": ("c", "d")},
        ),
        "Questions": (
            text.Questions,
            pair | {"name": "a", "contexts": ("a", "b"), "questions": ids, "answers": answers},
        ),
        "Trees": (
            text.Trees,
            {"language": "de", "source": "pud", "trees": parsed.trees[:2], "dropped": ("1",)},
        ),
        "read_conllu": (
            lambda lines, where: [*trees.read_conllu(lines, where)],
            {"lines": ["1\tA\ta\tNOUN\t_\t_\t0\troot\t_\t_", ""], "where": "a"},
        ),
        "read_tasks": (downstream.read_tasks, {"files": files}),
        "of_models": (downstream.of_models, {"table": read, "models": ["m"], "pivot": "en"}),
        "common": (examples.common, {"by_language": sets}),
        "shortest": (examples.shortest, {"by_language": xquad, "n": 2, "per_context": 1}),
        "crossed": (examples.crossed, {"first": xquad["en"], "second": xquad["de"]}),
        "of_corpus": (examples.of_corpus, {"corpus": corpus, "seed": 1}),
        "without": (grids_of.without_reading, {"sets": xquad, "span": 3, "seed": 1}),
        "labelled_task": (
            transfers.labelled_task,
            {
                "name": "PI",
                "languages": ["en", "de"],
                "n_train": 4,
                "n_test": 4,
                "train_split": "train",
                "path": None,
                "seed": 1,
            },
        ),
        "random_task": (transfers.random_task, {"corpus": corpus, "seed": 1}),
    }


def of_models(folder: Path) -> Faces:
    corpus, name = made_corpus(), str(tiny.save(folder / "tiny"))
    encoder, sets = loading.load(name), examples.of_corpus(corpus, 0)
    reading = {"pooling": "mean", "max_length": 16, "special_tokens": False}
    quick = {"epochs": 1, "batch_size": 4, "max_length": 16}
    job = {"model": name, "train": sets["en"], "evaluations": sets, "seed": 1}
    job |= {"recipe": jobs.Recipe(**quick), "sparing": None}
    measured = scoring.subject_scores([name], corpus)
    tokens, labels = (("a", "b"), ("c",), ("d", "e"), ("f",)), np.array([0, 1, 0, 1])
    part = sentence_tasks.TaskPart(tokens, labels, ("1", "2", "3", "4"))
    task = sentence_tasks.ProbingTask("SentLen", "en", ("s", "l"), part, part, part)
    by = {"by": ["layer"], "layers": [0, 1], "embedding_layer": True}
    recipe = {x.name: getattr(jobs.Recipe(), x.name) for x in dataclasses.fields(jobs.Recipe)}
    setup = {"task": "POS", "n_train": 20, "n_validation": 20, "n_test": 20, "seeds": (0,)}
    setup |= {"seed": 1, "subword": "first", "form": "joint", "max_length": 32, "hidden": None}
    scored = {"subjects": [name], "corpus": corpus, "measures": ["LD", "MD"], "space": "raw"}
    covered = {"subject": name, "corpus": corpus, "pivot": "en", "poolings": ["mean"]}
    covered |= {"states": ["raw"], "alternatives": False, "max_length": 16}
    loaded = {"name": name, "step": None, "revision": None, "device": "cpu", "dtype": "float32"}
    return {
        "load": (subjects.load, loaded | {"device_map": None, "quantization": None}),
        "embed": (
            subjects.embed,
            {"encoder": encoder, "sentences": [*tiny.SENTENCES[:3]]} | reading,
        ),
        "embed_corpus": (subjects.embed_corpus, {"encoder": encoder, "corpus": corpus} | reading),
        "identify": (identity.identify, {"name": name}),
        "twin_of": (identity.twin_of, {"name": name, "seed": 1}),
        "untrained": (loading.untrained_folder, {"name": name, "seed": 1}),
        "Recipe": (subjects.Recipe, recipe),
        "Sparing": (
            jobs.Sparing,
            {"windows": ((0.0, 0.1),), "every": 2, "decides": "en", "inside": ("de",)}
            | {"logits": True},
        ),
        "Job": (lambda **given: jobs.Job(**given).check(), job),
        "finetune_all": (subjects.finetune_all, {"jobs": [jobs.Job(**job)], "weights": False}),
        "grid": (grids_of.grid, {"jobs": [jobs.Job(**job)], "sets": sets}),
        "subject_scores": (scoring.subject_scores, scored | {"partial": False, "pooling": "mean"}),
        "averaged": (averages.averaged_scores, {"measured": measured, "tasks": ["LD"]} | by),
        "average": (averages.average, {"measured": measured[0], "task": "LD"} | by),
        "coverage": (mexa_scores.measure_coverage, covered | {"special_tokens": False}),
        "ProbeSetup": (probing.ProbeSetup, setup | {"path": None, "source": None}),
        "monolingual": (
            probing.monolingual,
            {
                "names": [name],
                "setup": probing.ProbeSetup(**setup),
                "codes": ["en"],
                "control": False,
                "entities": False,
            },
        ),
        "probe_sentences": (
            sentence_probes.probe_sentences,
            {
                "subjects": [name],
                "tasks": {"en": [task]},
                "across": False,
                "seeds": [0],
                "reading": {"pooling": "mean"},
            },
        ),
        "shared_subwords": (
            transfers.shared_subwords,
            {"name": name, "task": transfers.random_task(corpus, 1), "sources": ["en"]}
            | {"max_length": 16},
        ),
        "bag": (scoring.BagOfSubwords, {"name": name, "max_length": 16}),
    }


def length(value: str) -> dict[str, np.ndarray]:
    return {"length": np.array(len(value))}


def of_others() -> Faces:
    kind = work.Kind("length of a text, in a test", length)
    shown = plots.look("#000000", "o")

    def set_for_a_while(**changes: Any) -> None:
        with xlx.settings(**changes):
            pass

    chosen = {"device": "cpu", "dtype": "float32", "token_budget": 9, "workers": 1}
    chosen |= {"device_map": None, "scheduler": None, "progress": False, "policy": "use"}
    made = {"name": kind.name, "compute": length, "version": 1, "tolerance": 1e-6}
    return {
        "settings": (set_for_a_while, chosen),
        "Kind": (results.Kind, made | {"side_by_side": False, "shared_seconds": 0.0}),
        "result": (
            lambda kind, about, value: results.result(kind, about, value),
            {"kind": kind, "about": {"text": "a"}, "value": "a"},
        ),
        "look": (
            plots.look,
            {"colour": "#000000", "marker": "o", "dash": "-", "hollow": False},
        ),
        "looks": (plots.looks, {"keys": ["a", "b"], "palette": {"a": shown, "b": shown}}),
        "handle": (
            lambda label, shown: plots.handle(label, shown).get_label(),
            {"label": "a", "shown": shown},
        ),
        "language_label": (plots.language_label, {"code": "de"}),
    }


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Faces:
    folder = tmp_path_factory.mktemp("calls")
    return of_measures() | of_texts(folder) | of_models(folder) | of_others()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_call_gives_the_right_result_or_one_sentence(faces: Faces, seed: str) -> None:
    draw, problems, names = random.Random(seed), [], [*faces]
    right = {name: face(**given) for name, (face, given) in faces.items()}
    for number in range(N):
        name = names[number % len(names)]
        face, given = faces[name]
        parameter = draw.choice([*given])
        kind, value, same = spoilt(given[parameter], draw)
        call = f"{name}({parameter}: {kind}, {type(value).__name__})"
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                result = face(**given | {parameter: value})
        except BaseException as error:
            if not ours(error):
                problems.append(f"foreign: {call}: {type(error).__name__}: {error}")
            continue
        if like(result, right[name]):
            continue
        inside = "inside" in kind and f"{name}.{parameter}" not in FREE
        if same or inside or not takes(face, parameter, value):
            problems.append(f"silent: {call}")
    assert not problems, f"{len(problems)} of {N}:\n" + "\n".join(sorted(problems))


# --- commands -------------------------------------------------------------------------------------

WORDS = ("", " ", "None", "[]", "nan", "-1", "0", "1.5", "true", "a,b", ",", "de,de", "../..", "é")
WORDS += ("\udce9", "x" * 300, "{}", "1e9", "en", "99999999999", "none", "/dev/null", "*")
SMALL = {
    "report": ["--languages", "en,de", "--sentences", "12", "--reference", "none"],
    "mexa": ["--languages", "en,de", "--sentences", "12"],
    "igap": [],
    "mixing": [],
    "doctor": ["--languages", "en,de"],
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_command_does_it_or_says_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    name, draw, problems = str(tiny.save(tmp_path / "tiny")), random.Random(SEED), []
    offered = {
        x.name: [option for option in x.params if option.opts[0].startswith("--")]
        for x in map(typer_command, SMALL)
    }
    for _ in range(N // 10):
        chosen = draw.choice([*SMALL])
        option = draw.choice(offered[chosen])
        words = [option.opts[0]] if option.is_flag else [option.opts[0], draw.choice(WORDS)]
        last = [draw.choice(WORDS)] if draw.random() < 0.2 else words
        model = draw.choice(WORDS) if draw.random() < 0.1 else name
        line = [chosen, model, *SMALL[chosen], *last] + ["--estimate"] * (chosen != "doctor")
        capsys.readouterr()
        try:
            code = command.main(line)
        except BaseException as error:
            problems.append(f"foreign: {line}: {type(error).__name__}: {error}")
            continue
        said = capsys.readouterr().err.splitlines()
        sentences = [x for x in said if not x.startswith("note: ")]
        if code not in (0, 1, 2) or (code == 2 and len(sentences) != 1):
            problems.append(f"{code}: {line}: {sentences}")
    assert not problems, f"{len(problems)} of {N // 10}:\n" + "\n".join(sorted(problems))


def typer_command(name: str) -> Any:
    import typer.main

    return typer.main.get_command(command.application()).commands[name]
