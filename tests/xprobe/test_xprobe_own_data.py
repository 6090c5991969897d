"""The notebooks on X-Probe run on one's own files, in the places that the profile `paper` names."""

import itertools
import lzma
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest

import xprobe_2_mapping
from notebooks.run import profiles
from xlx.measures import sentence_tasks
from xlx.measures.sentence_tasks import PROBING_TASKS
from xlx.results import paths
from xlx.text import labelled, trees
from xprobe.word_spaces import WordVectorsError

#: French is mapped by Europarl and MultiUN, Russian by MultiUN, as in the paper.
CODES = ("en", "fr", "ru")
DIM = 8
#: Sentences a language: enough for every task.
SENTENCES = 2200
RULES = {"n_words": 5, "first_rank": 20, "depths": (2, 4), "depth_edges": (5, 15, 30)}
#: What makes it small; where files are is left to the profile.
TASKS = {"rules": RULES, "most": 84, "least": 24, "proportions": [4, 1, 2]}
MAPPING = TASKS | {
    "languages": ["fr", "ru"],
    "encoders": ["rnn-max", "rnn-last", "cnn-max", "attention-max"],
    "sizes": {
        "words": DIM, "hidden": 6, "layers": 1, "dropout": 0.0, "channels": 6, "filters": [2, 3],
        "padding": [1, 2], "projection": 12, "attention": 4, "heads": 2,
    },
    "models": {},
    "n_parallel": 40, "longest": 40, "batch_size": 20,
    "epochs": 1, "map_epochs": 1, "all_epochs": 1,
}  # fmt: skip


def write(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose cache has a little of what the profile names, in the public formats."""
    root = tmp_path_factory.mktemp("own")
    cache = root / "cache"
    texts, words = {}, {}
    rng = np.random.default_rng(0)
    for code in CODES:
        file = paths.DATA / "trees" / "ud" / f"{code}.conllu.xz"
        blocks = lzma.decompress(file.read_bytes()).decode().strip().split("\n\n")[:SENTENCES]
        write(cache / f"wiki/{code}/AA_wiki_00.conllu", ["\n\n".join(blocks[::2]), ""])
        write(cache / f"wiki/{code}/AA_wiki_01.conllu", ["\n\n".join(blocks[1::2]), ""])
        parsed = trees.load_trees(code, "own", path=cache / "wiki" / code)
        texts[code] = [" ".join(tree.tokens) for tree in parsed]
        counts = Counter(" ".join(texts[code]).lower().split())
        words[code] = [word for word, n in counts.most_common() if n > 1]
        rows = (" ".join(f"{x:.4f}" for x in rng.standard_normal(DIM)) for _ in words[code])
        lines = [f"{word} {row}" for word, row in zip(words[code], rows, strict=True)]
        write(cache / f"fasttext/wiki.{code}.vec", [f"{len(lines)} {DIM}", *lines])
    for code in CODES[1:]:
        pairs = [f"{a} {b}" for a, b in zip(words[code][:300], words["en"][:300], strict=True)]
        write(cache / f"muse/{code}-en.txt", [*pairs, "??? ???", f"{words[code][0]} ???"])
    for name, partner in (("europarl-v7", "fr"), ("MultiUN", "fr"), ("MultiUN", "ru")):
        folder = {"europarl-v7": "europarl", "MultiUN": "multiun"}[name]
        for code in (partner, "en"):
            write(cache / folder / f"{name}.{partner}-en.{code}", texts[code][:60])
    write_inference(cache / "xnli", texts)
    own = trees.load_trees("en", "own", path=cache / "wiki/en")
    rules = sentence_tasks.Rules(**RULES)
    short = {part: name for name, part in (("tr", "train"), ("va", "validation"), ("te", "test"))}
    for name, stem in xprobe_2_mapping.RELEASED.items():
        task = sentence_tasks.build(name, own, sizes=(48, 12, 24), rules=rules)
        rows = [
            f"{short[part]}\t{task.classes[label]}\t{' '.join(tokens)}"
            for part, found in task.parts().items()
            for tokens, label in zip(found.tokens, found.labels.tolist(), strict=True)
        ]
        write(cache / f"senteval/{stem}.txt", rows)
    return root


def write_inference(folder: Path, texts: dict[str, list[str]]) -> None:
    """MultiNLI's and XNLI's files: a premise and a hypothesis, the labels in turn."""

    def rows(code: str, n: int) -> Iterator[tuple[str, str, str]]:
        sides = (line.replace("\t", " ") for line in texts[code])
        return zip(itertools.islice(sides, n), texts[code][n:], itertools.cycle(labelled.NLI))

    header = ("language", "gold_label", "sentence1", "sentence2", "pairID")
    for part in ("dev", "test"):
        found = [
            (code, label, first, second, str(number))
            for code in CODES
            for number, (first, second, label) in enumerate(rows(code, 30))
        ]
        write(folder / f"XNLI-1.0/xnli.{part}.tsv", ["\t".join(x) for x in (header, *found)])
    learnt = [("premise", "hypo", "label"), *rows("en", 60)]
    public = ["\t".join(x).replace("contradiction", "contradictory") for x in learnt]
    write(folder / "XNLI-MT-1.0/multinli/multinli.train.en.tsv", public)


@pytest.fixture(autouse=True)
def _own_folders(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setenv("XLX_FIGURES", str(tmp_path / "figures"))


def execute(name: str, *, until: str | None = None, **changes: object) -> dict[str, object]:
    """The cells of a notebook under the profile, with changes; until one of which that is a part.

    The variables that they leave.
    """
    scope: dict[str, object] = {}
    own = profiles.values_for(name, "paper") | changes
    cells = nbformat.read(profiles.notebook_path(name), as_version=4).cells
    for cell in [cell for cell in cells if cell.cell_type == "code"]:
        if until is not None and until in cell.source:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(cell.source, name, "exec"), scope)
        if "parameters" in cell.metadata.get("tags", []):
            assert set(own) <= set(scope)
            scope |= own
    plt.close("all")
    return scope


def test_tasks_are_built_of_ones_own_parses(tmp_path: Path) -> None:
    scope = execute("xprobe-1-tasks", **TASKS, languages=list(CODES))
    table = scope["table"]
    assert set(table["task"]) == set(PROBING_TASKS)
    assert (table["train"] > 0).all()
    assert list((tmp_path / "figures").rglob("*.png"))


def test_encoders_are_mapped_by_ones_own_files(tmp_path: Path) -> None:
    scope = execute("xprobe-2-mapping", **MAPPING)
    study = scope["study"]
    pairs, told = study.lookups["ru"].pairs
    assert len(pairs) == 300
    assert told == {"origin": "ru-en.txt", "no_source": 0, "no_target": 1, "neither": 1}
    sizes = len(study.learnt), len(study.held_out["en"]), len(study.asked["en"])
    assert sizes == (60, 30, 30)
    assert {setting for _, setting in study.mapped} == {"en", "fr", "ru", "fr-UN"}
    conditions = {"no encoder", "not mapped", "mapped", "mapped, all lines"}
    assert set(scope["maps"].index.unique("condition")) == conditions
    assert scope["maps"]["n"].min() > 1
    assert set(scope["cells"]["language"]) == {"en", "en-mapped", "fr", "ru", "fr-UN"}
    assert set(scope["two"]["language"]) == {"ours", "released"}
    assert len(list((tmp_path / "figures").rglob("*.png"))) == 4


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"sizes": {"words": 10}},
            WordVectorsError,
            r"wiki\.\w\w\.vec: its vectors have 8 numbers, and 10 are needed",
        ),
        ({"dictionaries": {"fr": "none.txt"}}, FileNotFoundError, r"none\.txt is not there"),
    ],
)
def test_what_does_not_fit_is_named(
    changes: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        execute("xprobe-2-mapping", until="study.learnt", **MAPPING | changes)
