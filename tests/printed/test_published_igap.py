"""The IGAP paper: what needs more than a formula, by hand; its claims are in its folder."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from printed import igap_claims
from xlx.results import paths

FOLDER = paths.PUBLISHED / "igap"


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return igap_claims.target_tables()


@pytest.fixture(scope="module")
def averages(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return igap_claims.recomputed_averages(tables)


def test_a_divisor_is_one_that_gives_the_average(averages: pd.DataFrame, tables: dict) -> None:
    table = tables["PAWS-X"]  # written out: 6 targets, half a unit for average and each entry
    for name, row in table.drop(columns=["avg", "accuracy"]).iterrows():
        fits = [k for k in (5, 6) if abs(row.sum() / k - table.loc[name, "avg"]) <= 0.05 + 0.3 / k]
        assert ", ".join(map(str, fits)) == averages.loc[("PAWS-X", name), "divisor"]


def test_half_widths_of_means_if_all_languages_err_on_the_same_examples(
    averages: pd.DataFrame, tables: dict
) -> None:
    share = tables["XNLI"].loc["XLM-R"].drop(["avg", "accuracy"]) / 100
    widths = [196 * np.sqrt(x * (1 - x) / 2490) for x in share]
    assert averages.loc[("XNLI", "XLM-R"), "half"] == pytest.approx(np.mean(widths))
    row = igap_claims.row_changes(tables, averages).loc[("XNLI", "XLM-R → InfoXLM")]
    ends = averages.loc["XNLI"].loc[["XLM-R", "InfoXLM"], "half"]
    assert float(row["widest"]) == pytest.approx(np.hypot(*ends), abs=0.005)


def test_contrasts_have_languages_as_replicates(averages: pd.DataFrame, tables: dict) -> None:
    changes = igap_claims.row_changes(tables, averages)
    for title, first, second in (("PAWS-X", "InfoXLM", "XLM-R_large"),
                                 ("XNLI, algorithms", "vanilla", "xTune")):  # fmt: skip
        both = tables[title].drop(columns=["avg", "accuracy"])
        apart = both.loc[first] - both.loc[second]
        row = changes.loc[(title, f"{first} → {second}")]
        half = stats.t.ppf(0.975, len(apart) - 1) * apart.std() / np.sqrt(len(apart))
        assert (row["alike"], row["t"]) == pytest.approx((apart.mean(), half))


def test_random_orders_are_all_permutations() -> None:
    pairs = list(combinations(range(5), 2))
    counts = np.bincount([sum(o[a] < o[b] for a, b in pairs) for o in permutations(range(5))])
    np.testing.assert_allclose(igap_claims.random_tail(5), counts[::-1].cumsum()[::-1] / 120)
    at_least = igap_claims.random_tail()
    chance, k = at_least - np.append(at_least[1:], 0), np.arange(92)
    assert k @ chance == pytest.approx(91 / 2)
    assert (k - 91 / 2) ** 2 @ chance == pytest.approx(14 * 13 * 33 / 72)
    assert np.argmax(at_least <= 0.05) == 62  # as in `claims.csv`


def test_a_sum_of_source_and_target_is_explained_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ease = pd.Series(np.random.default_rng(0).normal(size=6), list("abcdef"))
    gaps = pd.DataFrame({t: ease - ease[t] for t in ease.index}).rename_axis("source")
    planted = gaps.rename_axis(columns="target").stack().rename("transfer_gap").reset_index()
    monkeypatch.setattr(igap_claims, "transfer_gaps", lambda: planted)
    shares, _ = igap_claims.gap_by_ease()
    assert shares.tolist() == pytest.approx([100, 100, -1])


def test_settings_are_those_of_table_4() -> None:
    table = pd.read_csv(FOLDER / "table4_hyperparameters.csv").pivot(
        index="hyperparameter", columns="dataset", values="value"
    )
    settings = yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))
    names = {
        "Batch size": "batch_size",
        "Learning rate": "learning_rate",
        "Epochs": "epochs",
        "Warmup": "warmup",
        "Gaussian std": "gaussian_std",
    }
    for dataset, values in settings["hyperparameters_table_4"].items():
        for printed, key in names.items():
            cell = table.loc[printed, dataset]
            assert str(values.get(key, "-")) == cell, (dataset, printed)
