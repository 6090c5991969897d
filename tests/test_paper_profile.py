"""The profile `paper` of the notebooks that fine-tune, against the settings that papers print."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from notebooks.run import profiles
from xlx.measures.sentence_tasks import Rules, sizes_of
from xlx.results import paths
from xlx.subjects.jobs import Recipe
from xprobe import probing
from xprobe.encoders import Sizes

FOLDER = paths.DATA / "published" / "igap"
MIXING = paths.DATA / "published" / "within_across"
#: Task of the notebooks → data set of Table 4.
PRINTED = {"NLI": "XNLI", "PI": "PAWS-X", "random labels": "FLORES-101"}


def numbers(text: str) -> list[float]:
    """The numbers of a cell of Table 4: "5e-6,{1,2}e-5" are three, "10%" is 0.1."""
    for start, several, end in re.findall(r"([^,{}]*)\{([^}]*)\}([^,]*)", text):
        whole = f"{start}{{{several}}}{end}"
        text = text.replace(whole, ",".join(start + one + end for one in several.split(",")))
    return [float(one.rstrip("%")) / (100 if one.endswith("%") else 1) for one in text.split(",")]


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, list[float]]]:
    """Hyperparameter → data set → its numbers, without those that Table 4 leaves open."""
    read = pd.read_csv(FOLDER / "table4_hyperparameters.csv")
    read = read[~read["value"].isin(["-", "Fixed"])]
    return {
        name: dict(zip(own["dataset"], own["value"].map(numbers), strict=True))
        for name, own in read.groupby("hyperparameter")
    }


PAPER = profiles.read_profile("paper")["notebooks"]


@pytest.fixture(scope="module")
def profile() -> dict[str, dict]:
    """Notebook → parameters."""
    return {name: values for name, values in PAPER.items() if name.startswith("igap-")}


@pytest.fixture(scope="module")
def settings() -> dict:
    return yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))


def test_epochs_batches_and_rates_are_those_of_table_4(
    profile: dict[str, dict], table: dict[str, dict]
) -> None:
    assert len(profile) == 3
    for values in profile.values():
        for task, epochs in values["epochs"].items():
            assert [epochs] == table["Epochs"][PRINTED[task]]
            assert [values["batch_size"]] == table["Batch size"][PRINTED[task]]
        # One list for all tasks of a notebook: that of the first.
        first = PRINTED[next(iter(values["languages"]))]
        assert values["learning_rates"] == table["Learning rate"][first]
        assert set(values["languages"]) <= set(values["epochs"]) == set(values["every"])


def test_what_the_profile_leaves_to_the_recipe_is_that_of_table_4(
    profile: dict[str, dict], table: dict[str, dict]
) -> None:
    for dataset in PRINTED.values():
        assert [Recipe().warmup] == table["Warmup"][dataset]
        assert [Recipe().weight_decay] == table["Weight decay"][dataset]
    for dataset in ("XNLI", "PAWS-X"):
        assert [Recipe().noise] == table["Gaussian std"][dataset]
        assert [Recipe().consistency] == table["KL Weight λ_1"][dataset]
    algorithms = profile["igap-3-models"]
    assert (algorithms["noise"], algorithms["consistency"]) == (0.075, 1.0)


def test_steps_seeds_and_languages_are_those_of_the_text(
    profile: dict[str, dict], settings: dict
) -> None:
    for values in profile.values():
        assert set(values["every"].values()) == {10}
        assert len(values["seeds"]) == 3
        assert not values["n_train"]  # all
        assert not values["n_test"]
        assert values["train_split"] == "validation"
    xnli = set(settings["languages"]["XNLI"])
    pawsx = {"en", *settings["languages"]["PAWS-X_targets_from_en"]}
    languages = profile["igap-3-models"]["languages"]
    assert (set(languages["NLI"]), set(languages["PI"])) == (xnli, pawsx)
    assert set(profile["igap-2-ranking"]["languages"]["random labels"]) == xnli
    directions = profile["igap-2-ranking"]
    assert set(directions["sources"]) == set(directions["languages"]["NLI"]) == xnli
    assert directions["memory_seeds"] == directions["seeds"]


def test_windows_are_those_of_the_figure_and_the_tables(
    profile: dict[str, dict], settings: dict
) -> None:
    figure, tables = (settings["igap"][name] for name in ("figure_1", "tables_2_3_6_7_8"))
    curves = profile["igap-1-decomposition"]
    n = round(figure["E_prime_from"] / figure["E_prime_step"])
    assert curves["levels"] == pytest.approx(
        [figure["E_prime_step"] * (n - i) for i in range(n + 1)]
    )
    assert curves["curve_tolerance"] == figure["epsilon"]
    for name in ("igap-2-ranking", "igap-3-models"):
        assert profile[name]["tolerance"] == tables["epsilon"]


def test_xlm_is_the_model_with_translation_language_modelling() -> None:
    family = PAPER["models-1-family"]
    printed_as = {kind: hub for hub, kind in family["printed_as"].items()}
    assert printed_as["XLM"] == "FacebookAI/xlm-mlm-tlm-xnli15-1024"
    assert (
        set(printed_as.values()) == set(family["models"]) == set(PAPER["igap-3-models"]["models"])
    )


def test_the_small_profile_is_a_part_of_the_paper() -> None:
    """It has the paper's values, but one rate and one seed, and fewer languages and models."""
    small = profiles.read_profile("paper-small")["notebooks"]
    lists = {"models", "learning_rates", "seeds", "floor_seeds", "algorithms", "algorithm_tasks"}
    for name, values in small.items():
        paper = PAPER[name]
        for key, value in values.items():
            if key in lists:
                assert set(value) <= set(paper[key]), key
            elif isinstance(value, dict):
                whole = {task: paper[key][task] for task in value}
                assert value == whole or set(value["NLI"]) < set(whole["NLI"]), key
            else:
                assert value == paper[key], key
        assert len(values["seeds"]) == 1
    assert len(small["igap-3-models"]["learning_rates"]) == 1


# --- within/across --------------------------------------------------------------------------------

#: Models of Rajaee and Monz → on the hub.
ON_HUB = {
    "mBERT": "google-bert/bert-base-multilingual-cased",
    "XLM-R": "FacebookAI/xlm-roberta-base",
    "InfoXLM": "microsoft/infoxlm-base",
}
#: Notebook → the tasks of the paper in it.
TASKS = {
    "mixing-1-nli": ["NLI"],
    "mixing-2-paraphrase": ["PI", "QA"],
    "mixing-3-controls": ["NLI", "PI", "QA"],
}
#: Of a full copy: a folder for what is learnt, and one for what is tested; XQuAD is shipped whole.
LOCAL = {"NLI": ("xnli", "xnli"), "PI": ("pawsx", "pawsx"), "QA": ("squad", None)}


@pytest.fixture(scope="module")
def mixed() -> dict[str, dict]:
    """Notebook and task → parameters, of those by task the task's own."""
    found = {}
    for name, task in [(name, task) for name, tasks in TASKS.items() for task in tasks]:
        own = {
            key: value.get(task) if isinstance(value, dict) else value
            for key, value in PAPER[name].items()
        }
        if "train_sources" in own:  # of several tasks
            own["train_source"] = own.pop("train_sources")
        found[f"{name} {task}"] = {**own, "task": task}
    return found


@pytest.fixture(scope="module")
def printed() -> dict:
    return yaml.safe_load((MIXING / "settings.yaml").read_text(encoding="utf-8"))


def test_fine_tuning_is_that_of_the_appendix(mixed: dict[str, dict], printed: dict) -> None:
    for name, values in mixed.items():
        own = printed["fine_tuning"][values["task"]]
        assert values["batch_size"] == own["batch_size"], name
        assert values["max_length"] == own["max_length"], name
        assert values["learning_rate"] == float(own["learning_rate"]), name
        assert len(set(values["seeds"])) == printed["fine_tuning"]["seeds"], name
    assert {values["epochs"] for values in mixed.values()} == {3}  # not stated for QA


def test_models_and_languages_are_those_of_the_tables(
    mixed: dict[str, dict], printed: dict
) -> None:
    assert list(ON_HUB) == list(printed["models"])
    for name, values in mixed.items():
        assert values["languages"] == printed["languages"][values["task"]], name
        assert len(values["languages"]) == printed["data"][values["task"]]["languages"]
    for name in ("mixing-1-nli NLI", "mixing-2-paraphrase PI", "mixing-2-paraphrase QA"):
        assert mixed[name]["models"] == list(ON_HUB.values())
    assert (
        mixed["mixing-3-controls NLI"]["models"][0]
        == ON_HUB[printed["across_fine_tuning"]["model"]]
    )
    for table, model in (("table7_control_tasks_mbert", 0), ("table14_control_tasks_xlmr", 1)):
        (named,) = set(pd.read_csv(MIXING / f"{table}.csv")["model"])
        assert mixed["mixing-3-controls NLI"]["models"][model] == ON_HUB[named]


def test_pairs_are_those_of_table_9(mixed: dict[str, dict], printed: dict) -> None:
    table = pd.read_csv(MIXING / "table9_across_finetuning.csv")
    rows = table[["l1_premise", "l2_hypothesis"]].drop_duplicates()
    values = mixed["mixing-3-controls NLI"]
    assert values["pairs"] == rows.to_numpy().tolist()
    assert len(values["pairs"]) == printed["across_fine_tuning"]["pairs"] == 30
    used = {code for pair in values["pairs"] for code in pair}
    assert used == set(printed["across_fine_tuning"]["languages"])
    assert "-".join(values["baseline"]) in printed["across_fine_tuning"]["baseline"]


def test_all_of_the_full_sets_is_taken(mixed: dict[str, dict]) -> None:
    for name, values in mixed.items():
        assert values["n_train"] is values["n_test"] is None, name
        folders = [f"../cache/{own}" if own else None for own in LOCAL[values["task"]]]
        assert [values["train_data"], values["test_data"]] == folders, name
        source = "squad" if values["task"] == "QA" else None
        assert values.get("train_source") == source, name
        if values["task"] == "QA":
            assert values["per_context"] is None, name
    reading = mixed["mixing-2-paraphrase QA"]
    assert reading["max_distance"] == reading["max_length"]


def test_models_and_sizes_of_mexa_are_those_of_the_paper() -> None:
    printed = yaml.safe_load((paths.PUBLISHED / "mexa/settings.yaml").read_text(encoding="utf-8"))
    for values in (PAPER["mexa-1-alignment"], PAPER["mexa-2-estimation"]):
        names = [Path(name).name.lower() for name in values["models"]]
        for name, called in zip(names, printed["models"], strict=True):
            first, *_, size = called.lower().split()
            assert name.startswith(first[:4]) or "llama" in name
            assert size in name
        assert values["n_sentences"] == printed["parallel_data"]["FLORES-200"]["sentences_used"]
        assert values["languages"] is None
    assert values["n_verses"] == printed["parallel_data"]["Bible"]["sentences"]


def test_x_probe_has_the_sizes_of_its_paper() -> None:
    folder = paths.PUBLISHED / "xprobe"
    table = pd.read_csv(folder / "table2_hyperparameters.csv").set_index(["component", "layer"])
    mapping, tasks = PAPER["xprobe-3-mapping"], PAPER["xprobe-1-tasks"]
    sizes, rules = Sizes(**mapping["sizes"]), Rules(**mapping["rules"])
    assert sizes == Sizes()
    rate, batch = mapping["learning_rate"], mapping["batch_size"]
    recurrent = {"biLSTM dim": sizes.hidden, "biLSTM layers": sizes.layers}
    recurrent |= {"Dropout": f"{sizes.dropout:.0%}"}
    for component, layers in {
        "RNN": recurrent,
        "Attention": recurrent | {"MLP dim": sizes.attention, "Attn. heads": sizes.heads},
        "CNN": {
            "Filter sizes": sizes.filters,
            "Padding": sizes.padding,
            "Channels": sizes.channels,
            "Projection dim": sizes.projection,
        },
        "Global": {"Embeddings": f"{sizes.words} (FastText)", "Batch size": batch},
        "Probe classifier": {"Hidden dim": probing.HIDDEN},
    }.items():
        assert table.loc[[(component, x) for x in layers], "value"].tolist() == [
            *map(str, layers.values())
        ]
    assert (table.at[("Global", "Learning rate"), "value"], rate) == ("10−3", 1e-3)
    assert probing.PAPERS_PROBE["batch_size"] == batch * mapping["papers_probe"]
    assert probing.PAPERS_PROBE["learning_rate"] == rate
    assert probing.ACTIVATION == "sigmoid"  # σ in the table
    # Left to the defaults of the notebook and of the rules.
    settings = yaml.safe_load((folder / "settings.yaml").read_text(encoding="utf-8"))
    printed = settings["probing"]
    assert printed["classes"]["WC"] == rules.n_words
    assert printed["classes"]["SentLen"] == len(rules.length_edges) - 1
    assert printed["somo_max_log_frequency_difference"] == rules.max_log_difference
    for own in (mapping, tasks):
        n = own["most"], *sizes_of(own["most"], tuple(own["proportions"]))
        thousands = dict(zip(("total", "train", "validation", "test"), n, strict=True))
        assert {x: f"{y // 1000}k" for x, y in thousands.items()}.items() <= printed[
            "sentences_per_task"
        ].items()
    assert ["en", *mapping["languages"]] == tasks["languages"] == list(settings["languages"])
