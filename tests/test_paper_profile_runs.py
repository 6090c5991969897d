"""Every notebook to its end under the profile `paper`, on tiny models and little files.

Names of models, tasks and places of files are the profile's own (`tests.paper_copies`): what is
changed are sizes, here named one by one.
"""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import matplotlib
import nbformat
import pytest
from IPython.display import display

import fairseq_to_hf
from notebooks.run import plan, profiles, typed
from tests import paper_copies, tiny
from tests.plots.test_lenses import check
from xlx.measures.sentence_tasks import TooFewSentencesError
from xlx.results import paths
from xlx.results.settings import settings
from xlx.subjects import finetuning, loading
from xlx.subjects.jobs import Job
from xlx.subjects.predicting import Tuned
from xprobe import encoders
from xprobe.word_spaces import WordVectorsError

matplotlib.use("agg")
import matplotlib.pyplot as plt

pytestmark = pytest.mark.slow
SERIES = "xlmr-across-time"
FEW = ["en", "de", "zh"]
_SCORES = {"languages": ["en", "de", "fr", "ja", "zh"], "n_sentences": 24}
_TUNED = {
    "epochs": 4,
    "batch_size": 4,
    "every": 2,
    "learning_rates": [1e-2],
    "seeds": [1],
    "max_length": 32,
}
#: Four epochs of a tiny model learn nothing: a checkpoint counts whatever its training error is.
_ANY_ERROR = {"levels": [0.0], "curve_tolerance": 1.0}
_PROBED = {
    "languages": ["en", "de", "fr", "ja", "tr", "zh"],
    "n_sentences": 24,
    "sizes": {
        split: {"POS": k, "NER": k, "NLI": n}
        for split, k, n in (("train", 60, 12), ("validation", 30, 6), ("test", 60, 30))
    },
    "draw": {"POS": 40, "NER": 40},
    "probes": {"n_seeds": 2, "subword": "mean", "form": "concatenated", "hidden": None},
    "measures": {},  # probes this small find no entities
}
_MIXED = {
    "languages": FEW,
    "epochs": 1,
    "batch_size": 4,
    "seeds": [1, 2],
    "max_length": 32,
    "n_test": 12,
    "same_seeds": [1],
    "without_question": [1],
}
_PARSED = {
    "rules": {"n_words": 4, "first_rank": 100, "depths": [3, 5]},
    "most": 240,
    "least": 60,
    "n_test": 20,
}
_SIZES = {
    "words": 12,
    "hidden": 8,
    "layers": 1,
    "channels": 8,
    "projection": 8,
    "attention": 8,
    "heads": 2,
}
_MAPPED = {
    "languages": ["de", "fr", "ru"],
    "sizes": _SIZES,
    "epochs": 6,
    "map_epochs": 1,
    "learning_rate": 0.03,
    "encoders": ["rnn-max", "cnn-max", "cnn-mean", "attention-last"],
    "n_parallel": 40,
    "exchanged": [1],
}
_CROSSED = {
    "languages": ["en", "de", "es", "fr"],
    "tasks": ["SentLen", "Tense"],
    "most": 60,
    "crossing_tasks": ["SentLen", "Tense"],
    "n_sentences": 12,
    "probe_seeds": [0, 1],
    "parallel_languages": ["en", "fi"],
    "parallel_asked": ["SentLen", "Tense"],
}
_COVERED = {
    "languages": ["en", "de", "fr", "ja", "sw", "tr"],
    "n_sentences": 12,
    "max_length": 64,
    "shown": ["de"],
    "n_verses": 8,
    "task_files": ["../cache/results"],
    "verses": "../cache/read",
}
#: Sizes at which a notebook ends in seconds; all else is the profile's.
SMALL: dict[str, dict[str, Any]] = {
    "abx-1-validation": _SCORES | {"n_triplets": 200, "n_runs": 2},
    "abx-2-dynamics": _SCORES,
    "abx-3-outcomes": _PROBED,
    "models-1-family": _SCORES
    | {"course": {"n_lines": 60, "steps": 2, "every": 1, "pairs": 4, "n_positions": 8}}
    | {"seeds": {"translations": [1, 2], "shuffled translations": [1, 2]}},
    "mexa-1-alignment": _COVERED,
    "mexa-2-estimation": _COVERED,
    "igap-1-decomposition": _TUNED | _ANY_ERROR | {"learning_rates": [1e-2, 1e-5], "seeds": [1, 2]},
    "igap-2-ranking": _TUNED
    | {"corpus": "flores200-100", "n_sentences": 8, "languages": FEW, "sources": FEW}
    | {"layer": 1, "epochs": 16, "ratios": [0.0, 1.0]},
    "igap-3-models": _TUNED | {"languages": FEW, "tense_sizes": {"n_train": 16, "n_test": 8}},
    "mixing-1-nli": _MIXED | {"floor_seeds": [1]},
    "mixing-2-paraphrase": _MIXED | {"max_length": 96, "stride": 16, "max_distance": 64},
    "mixing-3-controls": _MIXED
    | {"max_length": 96, "stride": 16, "seeds": [1], "pairs": [["en", "de"]]},
    "xprobe-1-tasks": _PARSED,
    "xprobe-2-transformers": _CROSSED,
    "xprobe-3-mapping": _PARSED | _MAPPED,
    "report": {"languages": FEW, "n_sentences": 12, "quick": True, "references": ["none"]},
}


def shrunk(values: dict[str, Any], name: str) -> dict[str, Any]:
    """The parameters of a notebook with its sizes made small; those by task stay by task."""
    changed = {}
    for key, small in SMALL[name].items():
        own = values.get(key)
        if isinstance(own, dict) and not isinstance(small, dict):
            changed[key] = {task: _few(size, small) for task, size in own.items()}
        elif key in values:
            changed[key] = small
    return values | changed


def _few(size: Any, small: Any) -> Any:
    """A smaller size; of languages those of the profile among the few, four at most."""
    return [code for code in size if code in small] if isinstance(size, list) else small


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for the repository's root, its notebooks, its cache and the hub's."""
    root = tmp_path_factory.mktemp("paper")
    with contextlib.redirect_stderr(io.StringIO()):
        paper_copies.hub(root / "hub", paper_copies.ENCODERS)
        paper_copies.hub(root / "hub", paper_copies.DECODERS)
        cache = root / "cache"
        (root / "notebooks").mkdir()
        paper_copies.fairseq(cache / "fairseq", (5000, 450000, 1500000))
        assert fairseq_to_hf.main([str(cache / "fairseq"), "--to", str(cache / SERIES)]) is None
    paper_copies.xnli(
        cache / "xnli", profiles.read_profile("paper")["notebooks"]["mixing-1-nli"]["languages"]
    )
    paper_copies.pawsx(cache / "pawsx", ["en", "de", "es", "fr", "ja", "ko", "zh"])
    paper_copies.squad(cache / "squad")
    paper_copies.treebanks(cache / "ud-treebanks", _PROBED["languages"])
    paper_copies.wikiann(cache / "wikiann", _PROBED["languages"])
    parsed = ["en", "de", "es", "fr", "ru"]
    paper_copies.parsed_wiki(cache / "wiki", parsed)
    paper_copies.word_files(cache, parsed)
    paper_copies.parallel(cache, parsed[1:])
    paper_copies.senteval(cache / "senteval")
    paper_copies.task_results(cache / "results")
    for code in _COVERED["languages"][:4]:
        verses = [f"{code} verse {i} {'and on ' * (i % 5)}" for i in range(10)]
        paper_copies.put(cache / f"read/{code}.txt", "\n".join(verses))
    return root


@contextlib.contextmanager
def counted(planned: plan.Declared, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within, what is fine-tuned and asked is counted; behind it, it is what was planned."""
    steps, asked, trained, predict = [], [], finetuning.trained_run, Tuned.predict

    def training(job: Job, *more: Any) -> tuple:
        value, model = trained(job, *more)
        steps.append((len(value["losses"]), len(value["steps"])))
        return value, model

    def asking(model: Tuned, sets: list) -> tuple:
        asked.extend(laid.n for laid in sets)
        return predict(model, sets)

    monkeypatch.setattr(finetuning, "trained_run", training)
    monkeypatch.setattr(Tuned, "predict", asking)
    yield
    runs = [x for x in planned.runs if x["steps"]]
    assert sorted(steps) == sorted((x["steps"], x["checkpoints"]) for x in runs)
    assert sum(asked) <= sum(x["asked"] for x in planned.runs)
    assert planned.missing == []


def run(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch, profile: str = "paper", **more: Any
) -> dict[str, Any]:
    """All cells of a notebook, with more parameters; what they leave."""
    monkeypatch.setenv("XLX_FIGURES", str(root / "figures"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(root / "hub"))
    monkeypatch.chdir(root / "notebooks")
    cells = typed.lenient(nbformat.read(profiles.notebook_path(name), as_version=4)).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    at = next(i for i, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", []))
    scope: dict[str, Any] = {"display": display}
    exec(code[at].source, scope)
    given = profiles.values_for(name, profile)
    scope = shrunk(scope | given, name)
    scope |= {key: value for key, value in more.items() if key in scope}
    if profile == "paper-small":
        scope |= {x: given[x] for x in ("seeds", "floor_seeds", "learning_rates") if x in given}
    monkeypatch.setattr(paths, "ROOT", root)
    planned = plan.Declared()
    if name in plan.TUNING and not more:
        values = {x: y for x, y in scope.items() if x not in ("display", "__builtins__")}
        planned.read(name, values)
    planning = contextlib.nullcontext() if more else counted(planned, monkeypatch)
    with settings(), planning:  # what the notebook sets ends here
        for cell in code[at + 1 :]:
            exec(cell.source, scope)
            for number in plt.get_fignums():
                check(plt.figure(number))
            plt.close("all")
            if name.startswith("mexa-"):  # a model that stays leaves no room for the next
                assert not [key for key, own in scope.items() if isinstance(own, loading.Encoder)]
    return scope


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        *((x, "paper") for x in SMALL),
        ("abx-2-dynamics", "rehearsal"),
        *((x, "paper-small") for x in profiles.read_profile("paper-small")["notebooks"]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_to_its_end(
    name: str, profile: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = run(name, root, monkeypatch, profile)
    drawn = {path.stem for path in (root / "figures").glob("**/*.png")}
    assert {stem for stem in drawn if stem.startswith(name)}
    if name == "mexa-2-estimation":
        table = scope["table_5"]
        assert set(table["task"]) == {"Belebele", "m-ARC"}
        assert table["model"].nunique() == 9
        constant = table["model"] == "google/gemma-2-9b"
        assert table.loc[constant, "r"].isna().all()
        varied = table[~constant & (table["text"] == "FLORES") & (table["task"] == "Belebele")]
        assert varied["r"].notna().all()
        assert "m-ARC" in scope["estimated"]["task"].unique()


@pytest.mark.parametrize("name", [x for x in SMALL if re.match("abx|mexa-1|igap|mixing", x)])
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_on_a_folder_of_one_s_own(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which has no history and no twin; only encoders are fine-tuned."""
    architecture = "xlm-roberta" if name in plan.TUNING else "llama"
    own = str(tiny.save(root / "own" / architecture, architecture, width=16, positions=128))
    alone = {"models": [own], "one_part": [own], "without_question": {own: [1]}}
    run(name, root, monkeypatch, **alone, algorithm_model=own, leave_out=[], which={})


@pytest.mark.parametrize(
    ("lacking", "error"),
    [
        ({"released": "cache/none"}, FileNotFoundError),
        ({"trees_path": "cache/none"}, FileNotFoundError),
        ({"parallel": {"Europarl": "cache/muse", "UN": "cache/multiun"}}, WordVectorsError),
        ({"least": 10**6}, TooFewSentencesError),
    ],
)
def test_what_a_mapping_lacks_stops_it_before_it_trains(
    lacking: dict[str, Any], error: type, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lacking.items():
        monkeypatch.setitem(SMALL["xprobe-3-mapping"], name, value)
    monkeypatch.setattr(encoders, "_train", None)
    with pytest.raises(error):
        run("xprobe-3-mapping", root, monkeypatch)
