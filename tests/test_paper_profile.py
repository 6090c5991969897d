"""The profile `paper` of the IGAP notebooks against the settings that the paper prints."""

import re

import pandas as pd
import pytest
import yaml

from xlx import paths, run
from xlx.finetuning import Recipe

FOLDER = paths.DATA / "published" / "igap"
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


@pytest.fixture(scope="module")
def profile() -> dict[str, dict]:
    """Notebook → parameters."""
    found = run.read_profile("paper")["notebooks"]
    return {name: values for name, values in found.items() if name.startswith("igap-")}


@pytest.fixture(scope="module")
def settings() -> dict:
    return yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))


def test_printed_numbers_are_read() -> None:
    assert numbers("5e-6,{1,2}e-5") == [5e-6, 1e-5, 2e-5]
    assert numbers("10%") == [0.1]


def test_epochs_batches_and_rates_are_those_of_table_4(
    profile: dict[str, dict], table: dict[str, dict]
) -> None:
    assert len(profile) == 4
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
        assert values["n_train"] is values["n_test"] is None
        assert values["train_split"] == "validation"
    xnli = set(settings["languages"]["XNLI"])
    pawsx = {"en", *settings["languages"]["PAWS-X_targets_from_en"]}
    for name in ("igap-3-models", "igap-4-directions"):
        languages = profile[name]["languages"]
        assert (set(languages["NLI"]), set(languages["PI"])) == (xnli, pawsx)
    for codes in profile["igap-2-ranking"]["languages"].values():
        assert set(codes) == xnli
    assert profile["igap-4-directions"]["ratios"] == [i / 10 for i in range(11)]


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
    for name in ("igap-2-ranking", "igap-3-models", "igap-4-directions"):
        assert profile[name]["tolerance"] == tables["epsilon"]
