"""The course: lessons run with their answers, and each usual error gets the hint that names it."""

import ast
import inspect
import re
from math import comb
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from scipy.stats import norm
from traitlets.config import Config

from course import checks, judging
from tests import slow
from tests.counts import FOLDED, reading_load
from tests.test_notebook_style import WORDS_A_NUMBER
from tests.test_notebooks import MACHINE, outputs
from xlx.measures import statistics
from xlx.results.paths import NOTEBOOKS

COURSE = NOTEBOOKS / "course"
LESSONS = sorted(COURSE.glob("lesson-*.ipynb"))
#: Whose answers `make test` runs; `make check` runs all.
FAST = ("lesson-8-numbers",)
PAGES = [*LESSONS, COURSE / "teacher.ipynb"]
ANSWER = re.compile(r"<details>.*?```python\n(.*?)```", re.DOTALL)
#: Exercise, what a student writes, words of the hint.
WRONG = [
    ("sentence_vector", "lambda s, c: s.sum(0) / len(s)", "padding counts"),
    ("sentence_vector", "lambda s, c: s[c].mean(1)", "along axis 0"),
    ("cosines", "lambda x, y: np.einsum('id,jd->ij', x, y)", "dot products"),
    ("cosines", "lambda x, y: (y @ x.T) / norms(y)[:, None] / norms(x)", "changed places"),
    ("retrieval", "lambda x, y: np.mean(np.argmax(x @ y.T, 1) == range(len(x)))", "long vectors"),
    ("retrieval", "lambda x, y: sum(cos(x, y).argmax(1) == range(len(x)))", "Divide by how many"),
    ("triplet", "lambda x, a, b: float(cos1(x, a) > cos1(x, b))", "no points"),
    ("triplet", "lambda x, a, b: half(1 - cos1(x, a), 1 - cos1(x, b))", "how often B wins"),
    ("ld", "lambda x, y: half(cos(x, x), cos(x, y)).mean()", "A may be X itself"),
    ("ld", "lambda x, y: off(half(cos(x, y), cos(x, x)))", "1 − LD"),
    ("md", "lambda x, y: off(np.diag(cos(x, y))[:, None] > cos(x, y))", "ties have no points"),
    ("md", "lambda x, y: off(half(np.diag(cos(x, y))[:, None], cos(x, x)))", "language of X"),
    ("length_md", "lambda f, s: closer(f, s, lambda t: np.log1p(t.count(' ') + 1))", "count words"),
    ("length_md", "lambda f, s: closer(f, s, len)", "logarithm first"),
    (
        "like_length",
        "lambda t: abs(np.subtract.outer(n(t), n(t))) <= n(t)[:, None] / 10",
        "beside itself",
    ),
    (
        "like_length",
        "lambda t: (abs(n(t) - n(t)[:, None]) <= n(t) / 10) ^ (np.eye(len(t)) > 0)",
        "10 % of b",
    ),
    (
        "bag",
        "lambda a, b: len(set(a) & set(b)) / (len(set(a)) * len(set(b))) ** 0.5",
        "counts once",
    ),
    ("bag", "lambda a, b: sum(a.count(p) * b.count(p) for p in set(a))", "dot product"),
    ("weighted_mean", "lambda s: s.mean(axis=0)", "weigh the same"),
    (
        "weighted_mean",
        "lambda s: (s * np.arange(len(s))[:, None]).sum(0) / sum(range(len(s)))",
        "Begin at 1",
    ),
    ("mexa", "lambda c: np.mean(c.argmax(1) == np.arange(len(c)))", "rows only"),
    ("mexa", "lambda c: np.mean(np.diag(c) > np.maximum(c.max(0), c.max(1)))", "diagonal out"),
    (
        "fewer",
        "lambda u, N, n: np.mean([comb(N - 1 - k, n) / comb(N - 1, n) for k in u]) if n < N else 0",
        "there are n − 1",
    ),
    ("fewer", "lambda u, N, n: np.mean([(1 - k / (N - 1)) ** (n - 1) for k in u])", "drawn twice"),
    ("parts", "lambda s, t, v: (s.mean(), t.mean(), v.mean() - t.mean())", "A gap is a difference"),
    ("parts", "lambda s, t, v: (s.mean(), s.mean() - t.mean(), t.mean() - v.mean())", "other sign"),
    ("smallest_gap", "lambda e, g, at, room: g[e < at + room].min()", "below the level"),
    ("smallest_gap", "lambda e, g, at, room: min(g)", "all checkpoints"),
    (
        "ranking",
        "lambda a, g: off(np.sign(np.subtract.outer(a, a)) == np.sign(np.subtract.outer(g, g)))",
        "the other way round",
    ),
    (
        "ranking",
        "lambda a, g: np.mean(np.sign(np.subtract.outer(a, a)) "
        "== -np.sign(np.subtract.outer(g, g)))",
        "paired with itself",
    ),
    ("within_across", "lambda g: (np.diag(g).mean(), g.mean())", "has the diagonal in it"),
    ("within_across", "lambda g: (off(g), np.diag(g).mean())", "changed places"),
    ("by_label", "lambda y, p: [np.mean(y[p == k] == k) for k in range(3)]", "label is said"),
    ("by_label", "lambda y, p: [np.mean((y == k) & (p == k)) for k in range(3)]", "all examples"),
    ("sensitivity", "lambda p, y: norm.ppf(p[y].mean()) - norm.ppf(p[~y].mean())", "infinity"),
    ("sensitivity", "lambda p, y: z(p[~y]) - z(p[y])", "hits come first"),
    ("commonest", "lambda a, b: max(np.bincount(b)) / len(b)", "labels of the test"),
    ("commonest", "lambda a, b: 1 / len(set(a))", "one in the number"),
    ("probe", "lambda x, y, z, w: nearest(x, y, x, y)", "test on the training"),
    ("probe", "lambda x, y, z, w: nearest(z, w, z, w)", "must not see it"),
    (
        "control_labels",
        "lambda w, k, s: np.random.default_rng(s).integers(k, size=len(w))",
        "several labels",
    ),
    ("control_labels", "lambda w, k, s: [ord(word) % k for word in w]", "drawn by lot"),
    ("agrees", "lambda m, x, h: abs(sum(x) / len(x) - m) < 1e-9", "lets them differ"),
    ("agrees", "lambda m, x, h: abs(np.mean(x) - m) <= h", "two halves"),
    ("possible", "lambda p, n: abs(p * n - round(p * n)) < 1e-9", "share itself"),
    ("possible", "lambda p, n: round(round(p * n) / n, 2) == round(p, 2)", "two places"),
    ("interval", "lambda k, n: (k / n - normal(k, n), k / n + normal(k, n))", "normal interval"),
    ("interval", "lambda k, n: statistics.share_interval(k, n, 0.6827)", "68 %"),
]


def norms(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x**2).sum(axis=1))


def cos(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x / norms(x)[:, None]) @ (y / norms(y)[:, None]).T


def half(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """1 where the first is greater, one half on a tie."""
    return (np.sign(np.asarray(own - other)) + 1) / 2


def off(points: np.ndarray) -> float:
    """The mean off the diagonal."""
    return (points.sum() - np.trace(points)) / (points.size - len(points))


def closer(first: list[str], second: list[str], of: object) -> float:
    """MD of a number of each sentence."""
    x, y = (np.array([of(t) for t in side]) for side in (first, second))
    apart = abs(np.subtract.outer(x, y))
    return off(half(apart, np.diag(apart)[:, None]))


def nearest(x: np.ndarray, y: np.ndarray, z: np.ndarray, labels: np.ndarray) -> float:
    """Accuracy of the nearest mean."""
    means = [x[y == k].mean(axis=0) for k in sorted({*y})]
    return float(np.mean([np.argmin([norms((of - m)[None]) for m in means]) for of in z] == labels))


HELP = {
    "np": np,
    "norms": norms,
    "cos": cos,
    "half": half,
    "off": off,
    "closer": closer,
    "cos1": lambda u, v: u @ v / np.linalg.norm(u) / np.linalg.norm(v),
    "n": lambda texts: np.array([len(text) for text in texts]),
    "z": lambda said: norm.ppf((said.sum() + 0.5) / (len(said) + 1)),
    "nearest": nearest,
    "norm": norm,
    "comb": comb,
    "statistics": statistics,
    "normal": lambda k, n: 1.96 * np.sqrt(k / n * (1 - k / n) / n),
}
EXERCISES = list(dict.fromkeys(name for name, *_ in WRONG))


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def tagged(cell: nbformat.NotebookNode, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def solved(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The code cells of a lesson, the folded answers in place of the student's functions."""
    cells = []
    for cell, after in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
        if cell.cell_type == "code":
            cells.append(new_code_cell(cell.source, metadata=cell.metadata))
            if tagged(cell, "exercise"):
                asked = cell.source.splitlines()[-1]
                cells[-1].source = f"{ANSWER.search(after.source)[1]}\n{asked}"
    return cells


@pytest.fixture(scope="module")
def executed(request: pytest.FixtureRequest) -> dict[str, list[nbformat.NotebookNode]]:
    """Cells of the lessons asked for, with their answers, run one after another by one kernel."""
    cells, parts = [], {}
    asked = {
        item.callspec.params.get("stem")
        for item in request.session.items
        if hasattr(item, "callspec")
    }
    for path in [x for x in LESSONS if x.stem in asked]:
        parts[path.stem] = solved(read(path))
        cells += [new_code_cell("%reset -f"), *parts[path.stem]]
    config = Config(KernelManager={"transport_encryption": "auto"})
    NotebookClient(
        new_notebook(cells=cells),
        timeout=120,
        kernel_name="python3",
        allow_errors=True,
        coalesce_streams=True,
        resources={"metadata": {"path": str(COURSE)}},
        config=config,
    ).execute()
    return parts


@pytest.mark.parametrize("stem", slow.but(FAST, [path.stem for path in LESSONS]))
def test_a_lesson_runs_on_the_ledger_with_its_answers(stem: str, executed: dict) -> None:
    cells = executed[stem]
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error", output.traceback[-1]
            assert output.get("name") != "stderr", output.text
    said = ["".join(x.get("text", "") for x in c.outputs) for c in cells if tagged(c, "exercise")]
    assert said == ["Right.\n"] * 3
    text = "".join(x.get("text", "") for cell in cells for x in cell.outputs)
    assert text.count("computed here") == text.count(" 0 computed here")


@pytest.mark.parametrize(("exercise", "wrong", "words"), WRONG)
def test_a_usual_error_gets_its_hint(exercise: str, wrong: str, words: str) -> None:
    said = getattr(checks, exercise)(eval(wrong, dict(HELP)))
    assert said.startswith("Not yet: ")
    assert words in said


@pytest.mark.parametrize("exercise", EXERCISES)
def test_whatever_is_given_is_answered_kindly(exercise: str) -> None:
    check = getattr(checks, exercise)
    assert check(None) == check(lambda *_: None) == judging.NOT_YET
    assert "without brackets" in check(0.5)
    assert "stop with ZeroDivisionError: division by zero." in check(lambda *_: 1 / 0)
    for odd in ("high", np.zeros((7, 7, 7))):
        assert check(lambda *_, odd=odd: odd).startswith("Not yet: ")


def test_every_exercise_has_two_errors_here_and_its_lesson() -> None:
    names = [name for name, *_ in WRONG]
    assert all(names.count(name) == 2 for name in EXERCISES)
    asked = [
        re.search(r"checks\.(\w+)\((\w+)\)", cell.source).groups()
        for path in LESSONS
        for cell in read(path).cells
        if tagged(cell, "exercise")
    ]
    assert [one for one, _ in asked] == [other for _, other in asked] == EXERCISES
    own = {
        name
        for name, of in inspect.getmembers(checks, inspect.isfunction)
        if [*inspect.signature(of).parameters] == ["mine"] and of.__module__ == checks.__name__
    }
    assert own == set(EXERCISES)


def test_a_prediction_is_answered() -> None:
    assert judging.predicted(None, 0.5).startswith("It is 0.50.")
    assert judging.predicted("high", 0.5) == "Write one number as the prediction."
    found = [judging.predicted(x, 0.5).rpartition(": ")[2] for x in (0.51, 0.9, 0.1)]
    assert found == ["close.", "too high.", "too low."]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_in_order(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert outputs(notebook) == [] or not any(c.cell_type == "code" for c in notebook.cells)
    assert not MACHINE.search(re.sub(r'"image/png": "[^"]*"', "", path.read_text("utf-8")))
    load = reading_load(path)
    assert (load["all words"] <= 1_200, load["above 40 words"]) == (True, 0)
    assert load["words a sentence"] <= 20
    kinds = [cell.metadata.slideshow.slide_type for cell in notebook.cells]
    assert set(kinds) <= {"slide", "skip"}
    assert kinds[0] == "slide"
    for cell in notebook.cells:
        assert tagged(cell, "slide") == (cell.metadata.slideshow.slide_type == "slide")
        for target in re.findall(r"\]\((?!https:)([^)#]+)", cell.source):
            assert (COURSE / target).exists(), target
        if cell.cell_type == "code":
            statements = ast.parse(cell.source).body
            assert sum(not isinstance(x, ast.Import | ast.ImportFrom) for x in statements) <= 12


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_all_its_parts(path: Path) -> None:
    cells = read(path).cells
    titles = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for part in ("60 minutes", "After this hour you can", "Predict, then run", "Discussion"):
        assert titles.count(part) == 1, part
    minutes = re.findall(r"^- (\d+) minutes: (read \[)?", titles, re.M)
    assert sum(int(n) for n, _ in minutes) == 60
    assert sum(bool(of) for _, of in minutes) == 2
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert sum(source.startswith("prediction = None") for source in code) == 1
    said = [c.outputs[0].text for c in cells if tagged(c, "exercise")]
    assert said == [judging.NOT_YET + "\n"] * 3
    for answer in ANSWER.findall(titles):
        assert len(ast.parse(answer).body[0].body) <= 5


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_nothing_is_told_before_it_is_predicted(path: Path) -> None:
    cells = read(path).cells
    starts = ("prediction = None", "## Exercise 1")
    first, last = (next(i for i, c in enumerate(cells) if c.source.startswith(x)) for x in starts)
    shown = [cell for cell in cells[first:last] if cell.get("outputs")]
    assert any("checks.predicted(" in cell.source for cell in shown)
    assert all(tagged(cell, "hide-output") for cell in shown)
    assert all(cell.metadata.jupyter.outputs_hidden for cell in shown)
    open_text = "".join(
        FOLDED.sub("", x.source) for x in cells[first:last] if x.cell_type == "markdown"
    )
    assert not re.search(r"!\[|\d\.\d", open_text)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_words_beside_its_numbers(path: Path) -> None:
    load = reading_load(path)
    assert load["words"] >= WORDS_A_NUMBER * load["numbers"]


def test_the_teacher_finds_every_lesson_and_exercise() -> None:
    text = "\n".join(cell.source for cell in read(COURSE / "teacher.ipynb").cells)
    for path in LESSONS:
        assert f"({path.name})" in text
    assert [name for name in EXERCISES if f"`{name}`" not in text] == []
