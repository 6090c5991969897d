"""The printed numbers of the IGAP paper against each other, within rounding.

A number printed to one decimal stands for anything within half a unit of it; a difference that this
explains is agreement. What it does not explain is asserted as it is, with the numbers, and listed
in the README of the folder. All values are in points or per cent, as printed.
"""

from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from printed import igap_claims
from xlx.results import paths

FOLDER = paths.DATA / "published" / "igap"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())

#: Half a unit in the last place.
HALF = 0.05
#: Pairs of the 14 targets of a source; examples in a validation set.
PAIRS, N_XNLI, N_PAWS = 91, 2490, 2000
MODELS = ["mBERT", "XLM", "XLM-R", "InfoXLM", "XLM-R_large"]
TABLES = {
    1: "table1_tdr_xnli",
    2: "table2_avg_igap_acc",
    3: "table3_finetuning_algorithms_xnli",
    5: "table5_tdr_mnli",
    6: "table6_igap_xnli",
    7: "table7_igap_pawsx",
    8: "table8_finetuning_algorithms_pawsx",
    9: "table9_igap_mnli_xnli",
}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv")


def igap(number: int) -> pd.DataFrame:
    """Model or algorithm by target, and the printed average as `avg`."""
    table = read(TABLES[number]).query("quantity == 'IGap'")
    rows = "algorithm" if "algorithm" in table else "model"
    return table.pivot(index=rows, columns="target_language", values="value")


def per_target(number: int) -> pd.DataFrame:
    return igap(number).drop(columns="avg")


def accuracy_on_test(number: int) -> pd.Series:
    table = read(TABLES[number]).query("quantity == 'test_acc'")
    rows = "algorithm" if "algorithm" in table else "model"
    return table.set_index(rows)["value"].sort_index()


@pytest.fixture(scope="module")
def claims() -> pd.Series:
    return read("text_results").set_index("claim_id")["value"]


@pytest.fixture(scope="module")
def ranking() -> pd.DataFrame:
    """Metric by source: accuracy in per cent, and `avg`."""
    return read(TABLES[1]).pivot(index="metric", columns="source_language", values="value")


@pytest.fixture(scope="module")
def hits(ranking: pd.DataFrame) -> pd.DataFrame:
    """Metric by source: pairs in the right order, of 91."""
    return (ranking.drop(columns="avg") * PAIRS / 100).round().astype(int)


@pytest.fixture(scope="module")
def gap() -> pd.DataFrame:
    """Figure 6, source by target."""
    figure = read("figure6_transfer_gap_xnli")
    return figure.pivot(index="source_language", columns="target_language", values="value")


# --- averages -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def averages() -> pd.DataFrame:
    """Title and row of a table → its average, recomputed."""
    return igap_claims.recomputed_averages(igap_claims.target_tables())


TITLES = {3: "XNLI, algorithms", 6: "XNLI", 7: "PAWS-X", 8: "PAWS-X, algorithms", 9: "MNLI + XNLI"}


def test_averages_are_by_n_in_some_tables_and_by_n_minus_1_in_others(
    averages: pd.DataFrame,
) -> None:
    divisor = averages["divisor"]
    by_n = [*(("XNLI, algorithms", row) for row in ("vanilla", "Gaussian", "xTune"))]
    assert divisor.index[divisor == "14"].tolist() == [("XNLI", "XLM-R"), *by_n]
    assert set(divisor[["PAWS-X", "PAWS-X, algorithms"]]) == {"5"}
    assert divisor.value_counts().to_dict() == {"13": 9, "5": 8, "14": 4}
    table = igap(7)  # written out: 6 targets, and half a unit for the average and each entry
    for name, row in table.drop(columns="avg").iterrows():
        fits = [k for k in (5, 6) if abs(row.sum() / k - table.loc[name, "avg"]) <= 0.05 + 0.3 / k]
        assert ", ".join(map(str, fits)) == divisor["PAWS-X", name]


@pytest.mark.parametrize("number", [6, 7, 8, 9])
def test_no_language_left_out_gives_such_an_average(number: int, averages: pd.DataFrame) -> None:
    """The mean of the others would have to be the printed average; it is always too small."""
    table = per_target(number)
    without = (table.sum(axis=1).to_numpy()[:, None] - table) / (table.shape[1] - 1)
    short = igap(number)["avg"].to_numpy()[:, None] - without
    divisor = averages.loc[TITLES[number], "divisor"]
    short = short.rename(index={"Vanilla": "vanilla"})
    by_n_minus_1 = divisor.index[divisor != str(table.shape[1])]
    assert short.loc[by_n_minus_1].min(axis=None) > 2 * HALF


def test_averages_taken_alike(averages: pd.DataFrame) -> None:
    means = averages["sum / n"].round(2)
    assert means["XNLI"].tolist() == [32.39, 25.63, 21.10, 18.59, 12.19]
    assert means["PAWS-X"].tolist() == [17.97, 19.43, 13.98, 11.67, 10.78]
    assert means["MNLI + XNLI"].tolist() == [30.79, 25.40, 21.04, 18.75, 15.85]
    assert means["PAWS-X, algorithms"].tolist() == [13.98, 13.32, 13.12]


def test_repeated_rows_are_the_same() -> None:
    table2 = read(TABLES[2]).pivot(index="model", columns=["task", "quantity"], values="value")
    for task, number in (("XNLI", 6), ("PAWS-X", 7)):
        assert (table2[task, "IGap"] == igap(number)["avg"]).all()
        assert (table2[task, "test_acc"] == accuracy_on_test(number)).all()
    assert (igap(3).loc["VANILLA"] == igap(6).loc["XLM-R"]).all()
    assert (igap(8).loc["Vanilla"] == igap(7).loc["XLM-R"]).all()
    assert accuracy_on_test(3)["VANILLA"] == accuracy_on_test(6)["XLM-R"] == 65.7
    assert accuracy_on_test(8)["Vanilla"] == accuracy_on_test(7)["XLM-R"] == 80.1


# --- what the divisors do to the comparisons ------------------------------------------------------


def test_infoxlm_is_further_below_xlm_r_than_table_2_says() -> None:
    printed, alike = igap(6)["avg"], per_target(6).mean(axis=1)
    assert printed["XLM-R"] - printed["InfoXLM"] == pytest.approx(1.1)
    assert alike["XLM-R"] - alike["InfoXLM"] == pytest.approx(2.51, abs=0.005)
    assert printed["XLM"] - printed["XLM-R"] == pytest.approx(6.5)
    assert alike["XLM"] - alike["XLM-R"] == pytest.approx(4.53, abs=0.005)
    for number in (6, 7, 9):  # the order stays
        order = per_target(number).mean(axis=1).sort_values().index
        assert list(order) == list(igap(number)["avg"].sort_values().index)


def test_order_by_igap_is_that_by_accuracy_but_for_xlm_and_mbert_on_paws() -> None:
    for number in (6, 9):
        assert list(per_target(number).mean(axis=1).sort_values().index) == MODELS[::-1]
        assert list(accuracy_on_test(number).sort_values().index) == MODELS
    assert list(accuracy_on_test(7).sort_values().index) == MODELS
    swapped = ["XLM-R_large", "InfoXLM", "XLM-R", "mBERT", "XLM"]
    assert list(per_target(7).mean(axis=1).sort_values().index) == swapped
    worse = per_target(7).loc["XLM"] > per_target(7).loc["mBERT"]
    assert set(worse.index[worse]) == {"ja", "ko"}


def test_infoxlm_is_better_than_the_algorithms_of_table_3() -> None:
    printed, info = igap(3)["avg"], per_target(6).loc["InfoXLM"]
    assert printed["GAUSSIAN"] == printed["XTUNE"] == 19.5 < igap(6).loc["InfoXLM", "avg"] == 20.0
    assert info.mean() < 18.6 < per_target(3).mean(axis=1).min()
    assert (info < per_target(3).loc["GAUSSIAN"]).sum() == 10
    assert (info < per_target(3).loc["XTUNE"]).sum() == 11


def test_table_9_is_like_table_6_but_for_the_large_model() -> None:
    rise = per_target(9) - per_target(6)
    mean = rise.mean(axis=1)
    assert mean[["XLM", "XLM-R", "InfoXLM"]].abs().max() < 0.3
    assert mean["XLM-R"] == pytest.approx(-0.06, abs=0.005)
    assert igap(9).loc["XLM-R", "avg"] - igap(6).loc["XLM-R", "avg"] == pytest.approx(1.6)
    assert mean["mBERT"] == pytest.approx(-1.61, abs=0.005)
    assert mean["XLM-R_large"] == pytest.approx(3.66, abs=0.005)
    assert (rise.loc["XLM-R_large"] > 0).all()
    for number, lead in ((6, 6.39), (9, 2.90)):
        models = per_target(number).mean(axis=1)
        assert models["InfoXLM"] - models["XLM-R_large"] == pytest.approx(lead, abs=0.005)
    r = per_target(9).T.corrwith(per_target(6).T)
    assert r.round(3).agg(["idxmin", "min", "idxmax", "max"]).to_list() == [
        *("XLM-R_large", 0.958, "XLM", 0.991)
    ]
    gain = accuracy_on_test(9) - accuracy_on_test(6)
    assert gain["XLM-R_large"] == pytest.approx(0.8)
    others = gain.drop("XLM-R_large")
    assert [others.min(), others.max()] == pytest.approx([3.8, 6.7])


def test_windows_of_training_error_in_examples(claims: pd.Series) -> None:
    """0 <= E_train - E' < epsilon, in wrong examples of the validation set."""

    def window(level: float, epsilon: float, n: int) -> tuple[int, int]:
        wrong = [k for k in range(n + 1) if -1e-12 <= k / n - level < epsilon - 1e-12]
        return min(wrong), max(wrong)

    start, epsilon, level, wide = claims[["igap_t10", "igap_t09", "igap_t07", "igap_t08"]].map(
        float
    )
    assert window(start, epsilon, N_XNLI) == (0, 2)
    assert window(start, epsilon, N_PAWS) == (0, 1)
    assert window(level, wide, N_XNLI) == (75, 136)
    for number in (3, 6, 7, 8, 9):
        assert (igap(number) > 0).all(axis=None)


# --- fine-tuning algorithms -----------------------------------------------------------------------


def test_gaussian_noise_is_not_below_vanilla_in_spanish_on_paws() -> None:
    xnli, paws = per_target(3), per_target(8)
    assert (xnli.loc[["GAUSSIAN", "XTUNE"]] < xnli.loc["VANILLA"]).all(axis=None)
    assert (paws.loc["xTune"] < paws.loc["Vanilla"]).all()
    higher = paws.loc["Gaussian"] > paws.loc["Vanilla"]
    assert list(higher.index[higher]) == ["es"]
    assert paws["es"][["Gaussian", "Vanilla"]].to_list() == [7.1, 6.8]


def test_xtune_is_more_accurate_than_gaussian_noise_without_a_lower_igap() -> None:
    accuracy, table = accuracy_on_test(3), per_target(3)
    assert accuracy["XTUNE"] - accuracy["GAUSSIAN"] == pytest.approx(1.0)
    assert table.mean(axis=1)[["XTUNE", "GAUSSIAN"]].round(2).to_list() == [19.52, 19.47]
    signs = np.sign((table.loc["XTUNE"] - table.loc["GAUSSIAN"]).round(1)).value_counts()
    assert signs[[-1.0, 0.0, 1.0]].to_list() == [6, 1, 7]


def test_what_is_left_for_the_intralingual_gap() -> None:
    """Test error = interlingual gap + intralingual gap + training error, the last being 0."""
    expected = {
        6: ([8.1, 11.5, 13.2, 14.8, 13.4], [5.6, 9.5, 13.2, 13.4, 12.5]),
        7: ([7.9, 5.2, 5.9, 5.4, 4.1], [4.3, 1.3, 3.1, 3.1, 2.0]),
    }
    for number, (alike, printed) in expected.items():
        error = 100 - accuracy_on_test(number)[MODELS]
        left = error - per_target(number).mean(axis=1)[MODELS]
        assert left.to_list() == pytest.approx(alike, abs=HALF + 1e-9)
        assert (error - igap(number)["avg"][MODELS]).to_list() == pytest.approx(printed, abs=1e-9)
    means, accuracy = per_target(6).mean(axis=1), accuracy_on_test(6)
    assert means["mBERT"] - means["XLM-R"] == pytest.approx(11.3, abs=HALF)
    assert accuracy["XLM-R"] - accuracy["mBERT"] == pytest.approx(6.2)
    means, accuracy = per_target(3).mean(axis=1), accuracy_on_test(3)
    for name, lower, better in (("GAUSSIAN", 1.63, 0.4), ("XTUNE", 1.58, 1.4)):
        assert means["VANILLA"] - means[name] == pytest.approx(lower, abs=0.005)
        assert accuracy[name] - accuracy["VANILLA"] == pytest.approx(better)


# --- what the number of examples allows -----------------------------------------------------------


def variance(share: pd.Series | pd.DataFrame, n: int) -> pd.Series | pd.DataFrame:
    """Of an error share among n examples, in squared points; the share in points."""
    return share * (100 - share) / n


def half_width(variances: pd.Series, alike: bool) -> float:
    """95 % half width of a mean over languages, with the same errors in all or independent."""
    if alike:
        return 1.96 * np.sqrt(variances).mean()
    return 1.96 * np.sqrt(variances.sum()) / len(variances)


def test_half_widths_of_values_and_of_means() -> None:
    for numbers, n, ends in (((3, 6), N_XNLI, (0.89, 1.96)), ((7, 8), N_PAWS, (0.91, 2.13))):
        single = 1.96 * np.sqrt(variance(pd.concat(map(per_target, numbers)), n))
        assert (single.min(axis=None), single.max(axis=None)) == pytest.approx(ends, abs=0.005)
    of_mean = variance(per_target(6).loc["XLM-R"], N_XNLI)
    assert half_width(of_mean, alike=False) == pytest.approx(0.42, abs=0.005)
    assert half_width(of_mean, alike=True) == pytest.approx(1.58, abs=0.005)


def test_vanilla_and_the_algorithms_are_within_the_widest_interval() -> None:
    """Models erring independently of each other, all languages on the same examples."""
    xnli = per_target(3)
    for name in ("GAUSSIAN", "XTUNE"):
        of_two = variance(xnli.loc["VANILLA"], N_XNLI) + variance(xnli.loc[name], N_XNLI)
        widest = half_width(of_two, alike=True)
        assert widest == pytest.approx(2.20, abs=0.005)
        assert (xnli.loc["VANILLA"] - xnli.loc[name]).mean() < widest
    models = per_target(6)
    of_two = variance(models.loc["XLM-R"], N_XNLI) + variance(models.loc["InfoXLM"], N_XNLI)
    widest = half_width(of_two, alike=True)
    assert widest == pytest.approx(2.19, abs=0.005)
    printed = igap(6)["avg"]
    assert printed["XLM-R"] - printed["InfoXLM"] < widest
    assert widest < (models.loc["XLM-R"] - models.loc["InfoXLM"]).mean()


@pytest.mark.parametrize(
    ("title", "change", "mean", "width"),
    [
        ("XNLI, algorithms", "vanilla → Gaussian", 1.63, 0.30),
        ("XNLI, algorithms", "vanilla → xTune", 1.58, 0.30),
        ("XNLI, algorithms", "Gaussian → xTune", -0.05, 0.30),
        ("PAWS-X, algorithms", "vanilla → Gaussian", 0.67, 0.72),
        ("PAWS-X, algorithms", "vanilla → xTune", 0.87, 0.47),
        ("PAWS-X", "InfoXLM → XLM-R_large", 0.88, 1.41),
    ],
)
def test_contrasts_with_languages_as_replicates(
    title: str, change: str, mean: float, width: float, averages: pd.DataFrame
) -> None:
    row = igap_claims.row_changes(igap_claims.target_tables(), averages).loc[(title, change)]
    assert (row["alike"], row["t"]) == pytest.approx((mean, width), abs=0.0051)
    assert f"{mean:.2f} ± {width:.2f}" in README


def test_steps_and_checkpoints_of_table_4() -> None:
    table = read("table4_hyperparameters").pivot(
        index="hyperparameter", columns="dataset", values="value"
    )
    batches = -(-N_XNLI // int(table.loc["Batch size", "XNLI"]))
    steps = batches * int(table.loc["Epochs", "XNLI"])
    assert (steps, steps // 10, 3 * 3 * (steps // 10)) == (3120, 312, 2808)
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


# --- transfer direction ranking -------------------------------------------------------------------


def test_accuracies_are_shares_of_91_pairs(ranking: pd.DataFrame, hits: pd.DataFrame) -> None:
    """A mean over three seeds would be k/273: then most would be further off."""
    off = (hits / PAIRS * 100 - ranking.drop(columns="avg")).abs()
    assert off.max(axis=None) <= HALF
    mnli = read(TABLES[5])["value"]
    assert ((mnli * PAIRS / 100).round() / PAIRS * 100 - mnli).abs().max() <= HALF
    assert off.size + len(mnli) == 64
    # The averages of the shares themselves.
    exact = hits.mean(axis=1) / PAIRS * 100
    assert (exact - ranking["avg"]).abs().max() <= HALF


def test_igap_is_best_in_13_of_15_sources(hits: pd.DataFrame, claims: pd.Series) -> None:
    best = hits.loc["IGAP"] > hits.drop("IGAP").max()
    assert f"{best.sum()} out of {best.size}" == claims["igap_t01"] == "13 out of 15"
    assert list(best.index[~best]) == ["sw", "vi"]


def test_about_65_per_cent_leaves_out_the_dot_product(ranking: pd.DataFrame) -> None:
    average = ranking["avg"].drop("IGAP")
    assert average.to_dict() == {"L_2": 65.3, "Cos": 65.0, "Dot": 58.3}
    assert average.mean() == pytest.approx(62.9, abs=HALF)


def test_counts_of_table_1_are_those_of_the_notebook() -> None:
    summary, held_against = igap_claims.ranking_counts()
    assert held_against["value"].tolist() == [0.05, 62]
    best = ["best in", "beyond random orders", "below 50"]
    assert summary.loc["IGAP", best].tolist() == [13, 12, 1]
    excess = igap_claims.german_excess(igap_claims.target_tables()["PAWS-X"]).loc["XLM-R"]
    assert excess.round(1).tolist() == [3.8, 1.5, 2.7]
    assert igap_claims.english_rankings().loc["IGAP"].tolist() == [84.6, 87.9]
    tables = igap_claims.target_tables()
    drawn = igap_claims.drawn_averages(tables, igap_claims.recomputed_averages(tables))
    assert drawn.loc[drawn["task"] == "MNLI + XNLI", ["low", "high"]].isna().all(axis=None)


def test_random_orders_are_all_permutations() -> None:
    pairs = list(combinations(range(5), 2))
    counts = np.bincount([sum(o[a] < o[b] for a, b in pairs) for o in permutations(range(5))])
    np.testing.assert_allclose(igap_claims.random_tail(5), counts[::-1].cumsum()[::-1] / 120)


def test_table_1_against_random_orders(hits: pd.DataFrame) -> None:
    at_least = igap_claims.random_tail()
    chance, k = at_least - np.append(at_least[1:], 0), np.arange(PAIRS + 1)
    assert k @ chance == pytest.approx(PAIRS / 2)
    sd = np.sqrt((k - PAIRS / 2) ** 2 @ chance) / PAIRS
    assert sd == pytest.approx(np.sqrt(14 * 13 * 33 / 72) / PAIRS)
    assert sd == pytest.approx(0.100, abs=0.0005)
    needed = int(np.argmax(at_least <= 0.05))
    assert needed == 62
    above = (hits >= needed).sum(axis=1)
    assert above.to_dict() == {"IGAP": 12, "L_2": 9, "Cos": 9, "Dot": 2}
    short = hits.loc["IGAP"] < needed
    assert set(short.index[short]) == {"hi", "ur", "vi"}
    assert hits.loc["L_2", "ur"] == hits.loc["Cos", "ur"] == 26
    assert chance[:27].sum() == pytest.approx(0.018, abs=0.0005)
    assert hits.loc["IGAP", "ur"] < PAIRS / 2
    assert (hits.loc["L_2"] - hits.loc["Cos"]).abs().max() == 3


def test_igap_against_cosine_over_the_sources(hits: pd.DataFrame) -> None:
    difference = (hits.loc["IGAP"] - hits.loc["Cos"]).to_numpy()
    wins = int((difference > 0).sum())
    assert wins == 13
    assert stats.binomtest(wins, 15).pvalue == pytest.approx(0.0074, abs=5e-5)
    flipped = np.array(list(product([1, -1], repeat=15))) @ difference
    p = (np.abs(flipped) >= abs(difference.sum())).mean()
    assert p == pytest.approx(0.0229, abs=5e-5)
    assert difference.mean() / PAIRS * 100 == pytest.approx(10.5, abs=HALF)
    assert difference.min() / PAIRS * 100 == pytest.approx(-29.7, abs=HALF)


def test_gains_of_table_5_over_table_1_have_one_parity(hits: pd.DataFrame) -> None:
    """m exchanges of neighbours in the gold order change the hits of any order by m mod 2."""
    mnli = (read(TABLES[5]).set_index("metric")["value"] * PAIRS / 100).round().astype(int)
    gain = mnli - hits["en"]
    assert gain.to_dict() == {"L_2": 3, "Dot": 5, "Cos": 3, "IGAP": 3}
    assert mnli["IGAP"] - mnli["Cos"] == hits.loc["IGAP", "en"] - hits.loc["Cos", "en"] == 6


def concordant(gold: pd.Series, predicted: pd.Series) -> tuple[int, int]:
    """Pairs in the same order (Equation 6) and all pairs; a tie is no hit."""
    pairs = list(combinations(gold.index, 2))
    same = sum((gold[a] - gold[b]) * (predicted[a] - predicted[b]) > 0 for a, b in pairs)
    return same, len(pairs)


def test_one_order_for_all_sources_ranks_better_than_igap(
    gap: pd.DataFrame, ranking: pd.DataFrame
) -> None:
    """By Figure 6: the smaller the gap of a source, the more accurate the target."""
    accuracy, ties = {}, 0
    for source in gap.index:
        gold = gap.loc[source].drop(source)
        ties += PAIRS - concordant(gold, gold)[0]
        others = gap.mask(np.eye(15, dtype=bool)).drop(index=source)
        accuracy[source] = 100 * concordant(gold, others.mean()[gold.index])[0] / PAIRS
    accuracy = pd.Series(accuracy)
    assert ties == 17
    assert accuracy.mean() == pytest.approx(95.8, abs=HALF)
    assert (accuracy.idxmin(), round(accuracy.min(), 1)) == ("sw", 86.8)
    assert (accuracy > ranking.loc["IGAP"].drop("avg")).all()
    by_english = np.array(
        [
            concordant(gap.loc[s].drop([s, "en"]), gap.loc["en"].drop([s, "en"]))
            for s in gap.index.drop("en")
        ]
    ).sum(axis=0)
    assert 100 * by_english[0] / by_english[1] == pytest.approx(94.5, abs=HALF)
    taus = [
        stats.kendalltau(gap.loc[s].drop([s, t]), gap.loc[t].drop([s, t])).statistic
        for s, t in combinations(gap.index, 2)
    ]
    assert np.mean(taus) == pytest.approx(0.91, abs=0.005)


def test_igap_of_mbert_ranks_the_targets_of_xlm_r_as_well(gap: pd.DataFrame) -> None:
    gold, table = gap.loc["en"].drop("en"), per_target(6)
    assert concordant(gold, table.loc["XLM-R"]) == (81, 91)
    assert concordant(gold, table.loc["mBERT"]) == (83, 91)


# --- Figure 6, section 5.4 ------------------------------------------------------------------------


def test_figure_6_is_not_on_the_sets_that_xlm_r_was_fine_tuned_on(gap: pd.DataFrame) -> None:
    """There, at training error 0, the transfer gap is at least the minimum of Table 6."""
    english, table6 = gap.loc["en"].drop("en"), per_target(6).loc["XLM-R"]
    assert (english < table6[english.index] - 2 * HALF).all()
    assert english.mean() == pytest.approx(7.3, abs=HALF)
    assert accuracy_on_test(6)["XLM-R"] + english.mean() == pytest.approx(73.0, abs=HALF)


def test_transfer_gap_puts_the_worst_targets_first_as_sources(gap: pd.DataFrame) -> None:
    assert gap.shape == (15, 15)
    assert (np.diag(gap) == 0).all()
    off = gap.mask(np.eye(15, dtype=bool))
    assert list(off.mean().nlargest(2).index) == ["sw", "ur"]
    assert list(off.mean(axis=1).nsmallest(2).index) == ["ur", "sw"]
    assert (off.idxmin()["ur"], off.idxmax()["en"]) == ("sw", "es")
    told = igap_claims.gap_extremes()["Figure 6"]
    assert told.tolist() == [210, 107, "ur 14, sw 1", "en 14, es 1"]


def test_transfer_gap_is_source_plus_target() -> None:
    shares, means = igap_claims.gap_by_ease()
    assert shares.tolist() == pytest.approx([98.3, 93.7, -0.93], abs=0.05)
    assert means.index[[0, -1]].tolist() == ["en", "sw"]
    others = igap_claims.other_sources_order()  # ties count one half: 95.8 and 86.8 if they miss
    assert others.round(1).to_dict() == {"mean": 96.4, "least (sw)": 87.4}


def test_accuracy_and_igap_at_corruption_1_are_not_of_one_model_in_the_window(
    claims: pd.Series,
) -> None:
    """Accuracy on translations + interlingual gap + training error = 100 in one model."""
    accuracy, interlingual = float(claims["igap_t05"]), float(claims["igap_t06"])
    left = 100 - accuracy - interlingual
    assert left == pytest.approx(0.4)
    low, high = (left - 2 * HALF) / 100 * N_XNLI, (left + 2 * HALF) / 100 * N_XNLI
    assert (np.ceil(low), np.floor(high)) == (8, 12)
    assert low / N_XNLI > float(claims["igap_t09"])
    assert 100 - accuracy == pytest.approx(37.4)
    # Random prediction, as the text has it: the two add up to 100 with training error 0.
    assert claims["igap_t03"] == "33.3%"
    assert claims["igap_t04"] == "66.7%"


# --- the folder -----------------------------------------------------------------------------------


def test_the_readme_lists_every_file_with_its_rows() -> None:
    for file in FOLDER.glob("*.csv"):
        line = next(row for row in README.split("| `") if row.startswith(f"{file.name}`"))
        assert f"| {len(pd.read_csv(file))} |" in line, file.name


def test_the_readme_names_what_does_not_fit() -> None:
    numbers = [
        *("32.39 | 25.63 | 21.10 | 18.59 | 12.19", "17.97 | 19.43 | 13.98 | 11.67 | 10.78"),
        *("30.79 | 25.40 | 21.04 | 18.75 | 15.85", "13.98, Gaussian 13.32, xTune 13.12"),
        *("19.52 and 19.47", "75 to 136", "0.0074", "k/91", "0.42 to 1.58", "0.023"),
        *("8.1, 11.5, 13.2, 14.8, 13.4", "7.9, 5.2, 5.9, 5.4, 4.1", "8 to 12"),
        *("95.8 %", "94.5 %", "107 of 210", "98.3 %", "93.7 %", "-0.93", "62.9"),
    ]
    assert [number for number in numbers if number not in README] == []


def test_pairs_that_were_not_translated_are_most_in_german() -> None:
    """In XTREME's dev part, which the paper fine-tunes on; all have the label 0 in their file."""
    counted = pd.read_csv(FOLDER / "pawsx_dev.csv").set_index("language")
    assert set(counted["pairs"]) == {2000}
    assert not counted["paraphrases"].any()
    assert counted.loc["en", "untranslated"] == 0
    assert counted["untranslated"].idxmax() == counted["paraphrases_in_english"].idxmax() == "de"
    assert (counted["paraphrases_in_english"] <= counted["untranslated"]).all()
