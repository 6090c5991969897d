"""pyproject.toml, requirements.lock and environment.yml agree; make says clearly what is wrong."""

import json
import os
import re
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.licences import licences
from xlx.results.paths import NOTEBOOKS, ROOT

# conda-forge's name → the name in the lock, where they differ
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib", "dask-core": "dask"}
# what conda brings and pip does not
CONDA_ONLY = {"python", "make", "pip"}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Each a requirement; then the hashes of its files.
LOCKED = [
    [part.strip() for part in line.split(" --hash=")]
    for line in (ROOT / "requirements.lock").read_text("utf-8").replace("\\\n", "").splitlines()
    if line.strip() and not line.startswith("#")
]
LOCK_LINES = [line for line, *_ in LOCKED]
LOCK = [Requirement(line) for line in LOCK_LINES]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def direct() -> list[Requirement]:
    """Every direct dependency of pyproject.toml."""
    return [
        Requirement(line)
        for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
        for line in lines
    ]


def locked(name: str) -> set[str]:
    """Versions that the lock names for a package: more than one where markers tell them apart."""
    return {
        next(iter(requirement.specifier)).version
        for requirement in LOCK
        if canonicalize_name(requirement.name) == canonicalize_name(name)
    }


def test_lock_holds_plain_exact_versions_in_order() -> None:
    # A local version (+cpu), a path, an address or an option would work on one machine only.
    plain = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; .+)?")
    assert [line for line in LOCK_LINES if not plain.fullmatch(line)] == []
    hashes = [each for _, *hashes in LOCKED for each in hashes or ["none"]]
    assert [each for each in hashes if not re.fullmatch(r"sha256:[0-9a-f]{64}", each)] == []
    # torch is the same everywhere, and what it needs for a GPU is for Linux alone.
    cuda = [line for line in LOCK_LINES if line.startswith(("nvidia-", "cuda-", "triton"))]
    assert cuda
    assert all("sys_platform == 'linux'" in line for line in cuda)
    (torch,) = [line for line in LOCK_LINES if line.startswith("torch==")]
    assert ";" not in torch
    assert len(set(LOCK_LINES)) == len(LOCK_LINES)
    names = [requirement.name for requirement in LOCK]
    assert names == sorted(names)


def test_licences_are_listed_of_all_that_is_installed() -> None:
    rows = (ROOT / "licences.tsv").read_text(encoding="utf-8").splitlines()[1:]
    listed = dict(row.split("\t") for row in rows)
    assert all(listed.values())
    here = licences()
    missing = [x.name for x in LOCK if here.get(x.name, listed.get(x.name)) != listed.get(x.name)]
    assert not missing, f"{missing}: python -m tests.licences > licences.tsv"


def test_lock_satisfies_pyproject() -> None:
    wrong = [
        f"{requirement}, but the lock has {locked(requirement.name) or 'none'}"
        for requirement in direct()
        if not locked(requirement.name)
        or not all(requirement.specifier.contains(v) for v in locked(requirement.name))
    ]
    assert not wrong, f"{'; '.join(wrong)}: run `make lock`"


def test_what_the_package_needs_is_imported_there_or_asked_for_by_models() -> None:
    modules = {"scikit-learn": "sklearn"}
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "xlx").rglob("*.py"))
    for requirement in map(Requirement, PROJECT["dependencies"]):
        name = modules.get(requirement.name, requirement.name.replace("-", "_"))
        there = re.search(rf'^\s*(import|from) {name}\b|deferred\("{name}\b', code, re.MULTILINE)
        assert there or requirement.name in ("protobuf", "sentencepiece"), requirement.name
    assert len(PROJECT["dependencies"]) <= 21


def test_conda_environment_has_the_versions_of_the_lock_and_xlx_itself() -> None:
    named = set()
    for spec in [s for s in CONDA["dependencies"] if isinstance(s, str)]:
        name, version = re.fullmatch(
            r"([a-z0-9._-]+)(?:=([0-9][0-9a-z.]*)|>=[0-9.]+)?", spec
        ).groups()
        if name not in CONDA_ONLY:
            name = canonicalize_name(CONDA_NAMES.get(name, name))
            named.add(name)
            assert locked(name) == {version}, spec
    assert named == {canonicalize_name(requirement.name) for requirement in direct()}
    (by_pip,) = [s["pip"] for s in CONDA["dependencies"] if isinstance(s, dict)]
    assert by_pip == ["--editable ."]


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run the Makefile in a folder; these calls stop before anything is set up or run."""
    # `make test` hands its own options down to every make below it; these calls are not part of it.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True)


def laid(folder: Path, *names: str) -> None:
    """Empty files by their paths in a folder."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


#: What make looks at before it does anything.
TWO = ["notebooks/abx-1-a.ipynb", "notebooks/abx-2-b.ipynb", "notebooks/profiles/mini.yaml"]
SETTINGS = ["requirements.lock", "pyproject.toml"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("figures ONLY=abx-9-z", "no notebook 'abx-9-z' (ONLY=...); there are: abx-1-a abx-2-b"),
        ("figures PROFILE=papper", "no profile 'papper' (PROFILE=...); there are: mini paper"),
        ("figures only=abx-1-a", "no variable 'only': do you mean ONLY=?"),
        ("tests", "no target 'tests': do you mean make test?"),
        ("lint Reports", "no target 'Reports': do you mean make report?"),
        ("it's", "no target 'it's': do you mean make "),
        ("figures PROFIL=paper", "no variable 'PROFIL': do you mean PROFILE=?"),
        ("build/mini/a.ipynb PROFIL=paper", "no variable 'PROFIL': do you mean PROFILE=?"),
        (
            "test PROFILE=paper",
            "make test does not use PROFILE=: leave it out, or use it with: fig",
        ),
        ("ONLY=abx-1-a", "make help does not use ONLY=: leave it out, or use it with: figures"),
    ],
)
def test_make_refuses_what_it_does_not_know(tmp_path: Path, given: str, sentence: str) -> None:
    laid(tmp_path, *TWO, "notebooks/profiles/paper.yaml")
    result = make(tmp_path, *given.split())
    assert result.returncode == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert [x.name for x in tmp_path.iterdir()] == ["notebooks"]


def test_make_takes_the_variables_of_other_programs(tmp_path: Path) -> None:
    given = "PYTHON=python3 HF_HOME=a UV_CACHE_DIR=b OMP_WAIT_POLICY=ACTIVE PIP_FIND_LINKS=c"
    assert make(tmp_path, "--dry-run", "clean", *given.split(), "XLX_CACHE=d").returncode == 0


def test_every_variable_of_the_makefile_is_one_of_a_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    used = set(re.findall(r"\[([A-Z_]+)=", text))
    assert set(re.findall(r"^([A-Z]+) =", text, re.M)) <= used
    assert set(re.findall(r"^\.PHONY: (.*)$", text, re.M)[0].split()) - {"built"} == set(
        re.findall(r"^([a-z]+):.*## ", text, re.M)
    )


def test_make_tests_one_chapter(tmp_path: Path) -> None:
    tests = {name: f"tests/abx/test_{name}.py" for name in ("abx_1_a", "abx_2_b", "abx_2_bc")}
    laid(tmp_path, *TWO, *SETTINGS, *tests.values())
    for name, file in tests.items():
        (tmp_path / file).write_text(f"import os\nimport {name}\n")
    said = make(tmp_path, "--dry-run", "test", "ONLY=abx-2-b").stdout
    assert [*re.findall(r"notebooks/\S+", said)] == ["notebooks/abx-2-b.ipynb"]
    named = re.findall(r"tests/\S+", said)
    assert named == ["tests/test_notebook_style.py", "tests/abx/test_abx_2_b.py"]
    assert "audit" not in said.lower()
    whole = make(tmp_path, "--dry-run", "test").stdout
    assert len(re.findall(r"notebooks/\S+", whole)) == 2
    assert "notebooks.run.audit report" in whole
    assert "tests/" not in whole


def test_make_clean_leaves_what_took_hours(tmp_path: Path) -> None:
    stay = ["models/mini-x/state.pt", "reports/r/report.html", "runs/ended/a"]
    laid(tmp_path / "build", *stay, "mini/a.ipynb", "book/index.html", "explorer.html")
    assert make(tmp_path, "clean").returncode == 0
    left = [x for x in (tmp_path / "build").rglob("*") if x.is_file()]
    assert sorted(x.relative_to(tmp_path / "build").as_posix() for x in left) == stay


@pytest.mark.parametrize("linked", [True, False])
def test_make_changes_no_environment_of_others(tmp_path: Path, linked: bool) -> None:
    laid(tmp_path, *SETTINGS)
    other = tmp_path / ("other" if linked else ".venv")
    other.mkdir()
    (other / "pyvenv.cfg").write_text("mine")
    if linked:
        (tmp_path / ".venv").symlink_to(other)
    result = make(tmp_path, ".venv/.ready")
    assert result.returncode == 2
    assert (
        ".venv is a link, or make did not set it up, so it is left as it is: move" in result.stderr
    )
    assert [x.name for x in other.iterdir()] == ["pyvenv.cfg"]


ALL_THREE = ["abx-1-a", "abx-2-b", "mexa-1-c"]


@pytest.mark.parametrize(
    ("touched", "rerun"),
    [
        ([], []),
        (["notebooks/abx-2-b.ipynb"], ["abx-2-b"]),
        (["notebooks/profiles/mini.yaml"], ALL_THREE),
        (["xlx/abx/scores.py"], ["abx-1-a", "abx-2-b"]),
        (["xlx/plots/mexa.py"], ["mexa-1-c"]),
        (["xlx/models/hits.py"], ["abx-2-b", "mexa-1-c"]),  # which abx-2-b reaches through another
        (["xlx/models/other.py"], []),  # nobody asks the face
        (["notebooks/mexa_1_c.py"], ["mexa-1-c"]),
        (["data/results/mexa/kind/a.parquet"], ["mexa-1-c"]),
        (["data/wmt24pp/en.txt"], ALL_THREE),
        (["requirements.lock"], ALL_THREE),
        (
            ["notebooks/run/runner.py", "notebooks/run/needs.py", "pyproject.toml", ".venv/.ready"],
            [],
        ),
    ],
)
def test_make_reruns_what_depends_on_a_change(
    tmp_path: Path, touched: list[str], rerun: list[str]
) -> None:
    now = time.time()
    code = {
        "xlx/__init__.py": "",
        "notebooks/run/runner.py": "import xlx.abx",
        "notebooks/run/needs.py": (NOTEBOOKS / "run" / "needs.py").read_text(encoding="utf-8"),
        "notebooks/mexa_1_c.py": "",
        "notebooks/shared/__init__.py": "",
        "notebooks/shared/tables.py": "",
        "xlx/abx/__init__.py": "from xlx.abx.scores import exact",
        "xlx/abx/scores.py": "",
        "xlx/abx/series.py": "from xlx.models.hits import hits",
        "xlx/models/__init__.py": "from xlx.models.other import x",
        "xlx/models/hits.py": "",
        "xlx/models/other.py": "x = 1",
        "xlx/plots/__init__.py": "",
        "xlx/plots/mexa.py": "from xlx.models import hits",
        "notebooks/abx-1-a.ipynb": notebook("from xlx import abx"),
        "notebooks/abx-2-b.ipynb": notebook(
            "%matplotlib inline\nfrom xlx.abx import (\nscores, series)"
        ),
        "notebooks/mexa-1-c.ipynb": notebook(
            "import xlx.plots.mexa, mexa_1_c\nfrom shared import tables", "from xlx import"
        ),
        "notebooks/profiles/mini.yaml": "",
        "notebooks/profiles/paper.yaml": "",
        "data/wmt24pp/en.txt": "",
        "data/results/mexa/kind/a.parquet": "",
        "requirements.lock": "",
        "pyproject.toml": "",
    }
    laid(tmp_path, *code)
    for name, text in code.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    built = [f"build/mini/{stem}.ipynb" for stem in ("abx-1-a", "abx-2-b", "mexa-1-c")]
    for age, names in ((300, code), (200, [".venv/.ready"]), (100, built), (0, touched)):
        laid(tmp_path, *names)
        for name in names:
            os.utime(tmp_path / name, (now - age, now - age))
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")  # for the make that this one calls
    result = make(tmp_path, "--dry-run", "figures")
    assert result.returncode == 0, result.stderr
    assert sorted(re.findall(r"notebooks\.run\.runner (\S+)", result.stdout)) == rerun


def notebook(*cells: str) -> str:
    """A notebook of code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]})
