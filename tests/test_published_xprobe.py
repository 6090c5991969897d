"""The printed numbers of X-Probe against each other and against what its text says of them.

A number printed to two decimals stands for anything within half a unit of it. What rounding does
not explain is asserted as it is and listed in the README of the folder. Accuracies are in [0, 1].
"""

import importlib.util
import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from xlx import paths

FOLDER = paths.PUBLISHED / "xprobe"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())

#: Half a unit in the last place.
HALF = 0.005
SETTINGS = ["en", "de", "es", "fr", "fr-UN", "ru"]
MAPPED = SETTINGS[1:]
ATTENTION = ["Attention (maxpool)", "Attention (last)"]
RNN = ["RNN (maxpool)", "RNN (last)"]
CNN = ["CNN (maxpool)", "CNN (avg. pool)"]
ENCODERS = [*ATTENTION, *RNN, *CNN]
TASKS = ["BiShift", "CoordInv", "ObjNum", "SOMO", "Tense", "SentLen", "SubjNum", "WC", "TreeDepth"]


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv")


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    """Task and encoder by setting."""
    table = read("table4_probing").pivot(index=["task", "encoder"], columns="code", values="value")
    return table.loc[list(itertools.product(TASKS, ENCODERS)), SETTINGS]


@pytest.fixture(scope="module")
def xnli() -> pd.DataFrame:
    """Encoder by setting."""
    table = read("table3_xnli").pivot(index="encoder", columns="code", values="value")
    return table.loc[ENCODERS, SETTINGS]


@pytest.fixture(scope="module")
def printed() -> pd.DataFrame:
    return read("table1_mean_sd").pivot(index="task", columns="quantity", values="value")


@pytest.fixture(scope="module")
def release() -> pd.DataFrame:
    """Counts of the released files, by task and language (fr-UN is tested on the French ones)."""
    table = read("release").assign(guess=lambda t: t["majority"] / t["test"])
    table = pd.concat([table, table[table["language"] == "fr"].assign(language="fr-UN")])
    return table.set_index(["task", "language"]).sort_index()


@pytest.fixture(scope="module")
def signs(cells: pd.DataFrame, release: pd.DataFrame) -> pd.DataFrame:
    """1, 0, -1: better than English, alike within rounding and luck, worse."""
    return pd.DataFrame({code: beyond(cells, code, "en", release) for code in MAPPED})


def beyond(cells: pd.DataFrame, one: str, other: str, release: pd.DataFrame) -> pd.Series:
    def variance(code: str) -> pd.Series:
        own = release["test_distinct"].xs(code, level="language")
        return (cells[code] * (1 - cells[code])).div(own, level="task")

    luck = 1.959964 * np.sqrt(variance(one) + variance(other))
    apart = cells[one] - cells[other]
    return np.sign(apart).where(apart.abs() > 2 * HALF + luck, 0).astype(int)


def rho(x: np.ndarray, y: np.ndarray) -> float:
    return np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]


# --- the tables ---


def test_tables_are_whole(cells: pd.DataFrame, xnli: pd.DataFrame, printed: pd.DataFrame) -> None:
    assert cells.shape == (54, 6)
    assert xnli.shape == (6, 6)
    assert not cells.isna().to_numpy().any()
    assert cells.to_numpy().min() == 0
    assert cells.to_numpy().max() == 0.87
    assert sorted(printed.index) == sorted(TASKS)
    for name, rows in {
        "table1_mean_sd": 18, "table2_hyperparameters": 20, "table3_xnli": 36,
        "table4_probing": 324, "text_results": 11,
    }.items():  # fmt: skip
        assert len(read(name)) == rows
        assert re.search(rf"`{name}\.csv` \| [\w ]+ \| {rows} \|", README)
    for name, rows in {"release": 45, "release_shared": 5}.items():
        assert len(read(name)) == rows
        assert re.search(rf"`{name}\.csv` \| not printed: [^|]+ \| {rows} \|", README)


def test_settings_are_those_of_table_2() -> None:
    settings = yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))
    table = read("table2_hyperparameters").set_index(["component", "layer"])["value"]
    assert sorted(settings["probing"]["tasks"]) == sorted(TASKS)
    assert sorted(settings["encoders"]) == sorted(ENCODERS)
    for component, layers in settings["hyperparameters_table_2"].items():
        for layer, value in layers.items():
            layer = "λ" if layer == "lambda" else layer
            assert str(value).startswith(table[component, layer])


# --- Table 1 ---


def misfit(cells: pd.DataFrame, printed: pd.DataFrame, ddof: int) -> float:
    """Root mean square of the 18 differences, over what rounding makes of them."""
    found = cells.stack().groupby("task").agg(["mean", lambda own: own.std(ddof=ddof)])
    apart = found.to_numpy() - printed.loc[found.index, ["mean", "standard_deviation"]].to_numpy()
    n = 6 * cells.shape[1]
    return np.sqrt((apart**2).mean() / ((0.01**2 / n + 0.001**2) / 12))


def test_table_1_is_of_all_36_cells_with_n_in_the_variance(
    cells: pd.DataFrame, printed: pd.DataFrame
) -> None:
    groups = cells.stack().groupby("task")
    off = pd.DataFrame(
        {
            "mean": groups.mean() - printed["mean"],
            "sd": groups.std(ddof=0) - printed["standard_deviation"],
        }
    )
    assert off.abs().max(axis=None) == pytest.approx(0.0014, abs=5e-5)
    assert off.abs().max(axis=1).idxmax() == "WC"
    assert misfit(cells, printed, 0) == pytest.approx(1.0, abs=0.05)
    assert misfit(cells, printed, 1) == pytest.approx(2.2, abs=0.05)
    for left_out, size in (("en", 6.3), ("fr-UN", 4.8), ("fr", 5.6)):
        assert misfit(cells.drop(columns=left_out), printed, 0) == pytest.approx(size, abs=0.05)


def test_what_varies_is_between_encoders(cells: pd.DataFrame) -> None:
    whole = cells.stack().groupby("task").var(ddof=0)
    share = cells.mean(axis=1).groupby("task").var(ddof=0) / whole
    assert share[["SentLen", "WC"]].round(2).tolist() == [0.97, 0.97]
    assert share["SOMO"] < 0.1


def test_wc_has_the_third_deviation_and_the_largest_relative_to_its_mean(
    printed: pd.DataFrame,
) -> None:
    ordered = printed["standard_deviation"].sort_values(ascending=False)
    assert list(ordered.index[:3]) == ["SentLen", "Tense", "WC"]
    assert (printed["standard_deviation"] / printed["mean"]).idxmax() == "WC"
    assert printed["mean"].idxmin() == "WC"


# --- Figure 3 ---


def test_nearly_all_correlations_with_xnli_are_positive(
    cells: pd.DataFrame, xnli: pd.DataFrame
) -> None:
    claims = read("text_results").set_index("claim_id")["value"]
    assert claims["xp_t05"] == "negative"
    found = {
        (code, task): rho(cells.loc[task][code], xnli[code]) for code in SETTINGS for task in TASKS
    }
    negative = {key: round(value, 2) for key, value in found.items() if value < 0}
    assert negative == {("en", "SOMO"): -0.44, ("fr", "SOMO"): -0.34}
    assert len(found) == 54


def test_no_order_of_the_columns_of_table_3_makes_them_negative(
    cells: pd.DataFrame, xnli: pd.DataFrame
) -> None:
    counts = {
        pair: sum(rho(cells.loc[task][pair[0]], xnli[pair[1]]) < 0 for task in TASKS)
        for pair in itertools.product(SETTINGS, repeat=2)
    }
    found = {
        sum(counts[pair] for pair in zip(SETTINGS, order, strict=True))
        for order in itertools.permutations(SETTINGS)
    }
    assert found == {2, 3}


def test_half_of_the_correlations_have_a_small_p_and_none_can_by_bonferroni(
    cells: pd.DataFrame, xnli: pd.DataFrame
) -> None:
    orders = np.array(list(itertools.permutations(range(6))))
    p_values = []
    for code, task in itertools.product(SETTINGS, TASKS):
        x, y = stats.rankdata(cells.loc[task][code]) - 3.5, stats.rankdata(xnli[code]) - 3.5
        p_values.append((np.abs(y[orders] @ x) >= abs(x @ y) - 1e-9).mean())
    assert sum(p < 0.05 for p in p_values) == 31
    assert (stats.false_discovery_control(p_values) <= 0.05).sum() == 20
    assert min(p_values) == pytest.approx(2 / 720)
    assert 54 * 2 / 720 > 0.05


# --- Figure 4 and section 8.2 ---


def test_as_many_cells_are_better_as_worse_but_for_sentence_length(signs: pd.DataFrame) -> None:
    assert [(signs == s).sum().sum() for s in (1, -1)] == [71, 56]
    rest = signs.drop("SentLen", level="task")
    assert [(rest == s).sum().sum() for s in (1, -1)] == [49, 52]
    assert (signs.groupby("task").max().max(axis=1) == 1).all()


def test_four_encoders_gain_on_sentence_length_and_a_fifth_hardly(
    cells: pd.DataFrame, signs: pd.DataFrame
) -> None:
    gains = cells.loc["SentLen"][MAPPED].sub(cells.loc["SentLen"]["en"], axis=0).round(2)
    own = signs.loc["SentLen"]
    assert (own.loc[[*ATTENTION, *RNN]] == 1).all(axis=None)
    recurrent = gains.loc[[*ATTENTION, *RNN]].to_numpy()
    assert (recurrent.min(), recurrent.max()) == (0.06, 0.17)
    assert gains.loc[CNN[1]].tolist() == [0, 0.02, 0.02, 0.04, 0.05]
    assert own.loc[CNN[1]].tolist() == [0, 0, 0, 1, 1]
    assert (gains.loc[CNN[0]] < 0).all()
    assert (own.loc[CNN[0]] == -1).sum() == 4


def test_number_improves_in_spanish_and_french_only(cells: pd.DataFrame) -> None:
    gains = cells[MAPPED].sub(cells["en"], axis=0)
    for task, mean in (("SubjNum", -0.005), ("ObjNum", 0.0)):
        by_setting = gains.loc[task].mean()
        assert by_setting.mean() == pytest.approx(mean, abs=1e-9)
        assert sorted(by_setting.index[by_setting > 0]) == ["es", "fr", "fr-UN"]


def above_guessing(
    cells: pd.DataFrame, release: pd.DataFrame, task: str, level: float, guess: float | None = None
) -> list[str]:
    """Encoders of the cells whose Wilson interval, of what was rounded up, is above guessing."""
    found = []
    for encoder, code in itertools.product(ENCODERS, SETTINGS):
        own = release.loc[(task, code)]
        n, p = own["test_distinct"], cells.loc[(task, encoder), code] - HALF
        z = stats.norm.ppf((1 + level) / 2)
        width = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        low = (p + z**2 / (2 * n) - width) / (1 + z**2 / n)
        if low > (own["guess"] if guess is None else guess):
            found.append(encoder)
    return found


def test_bishift_is_above_a_half_everywhere_and_seldom_above_guessing(
    cells: pd.DataFrame, release: pd.DataFrame
) -> None:
    """The most frequent class of the released test sets, not one half."""
    bishift = cells.loc["BiShift"]
    assert (bishift.min(axis=None), bishift.max(axis=None)) == (0.53, 0.58)
    guess = release.loc["BiShift", "guess"].round(3).to_dict()
    assert guess == {
        "de": 0.543, "en": 0.548, "es": 0.545, "fr": 0.547, "fr-UN": 0.547, "ru": 0.57,
    }  # fmt: skip
    assert len(above_guessing(cells, release, "BiShift", 0.95, guess=0.5)) == 36
    found = above_guessing(cells, release, "BiShift", 0.95)
    assert len(found) == 9
    assert set(found) == {*ATTENTION, RNN[0]}
    assert len(above_guessing(cells, release, "BiShift", 1 - 0.05 / 36)) == 7


def test_somo_is_near_guessing(cells: pd.DataFrame, release: pd.DataFrame) -> None:
    somo = cells.loc["SOMO"]
    assert (somo.min(axis=None), somo.max(axis=None)) == (0.49, 0.53)
    assert len(above_guessing(cells, release, "SOMO", 0.95)) == 4
    assert len(above_guessing(cells, release, "SOMO", 1 - 0.05 / 36)) == 1


def test_all_but_the_cnns_are_above_guessing_on_five_more_tasks(
    cells: pd.DataFrame, release: pd.DataFrame
) -> None:
    for task in ("CoordInv", "ObjNum", "SubjNum", "Tense", "TreeDepth"):
        found = above_guessing(cells, release, task, 1 - 0.05 / 36)
        assert sum(encoder not in CNN for encoder in found) == 24


# --- the released files ---


def test_the_release_is_not_all_that_the_paper_says_of_it(release: pd.DataFrame) -> None:
    own = release.drop("fr-UN", level="language")
    other = own[own["test"] != 10_000]["test"].to_dict()
    assert other.pop(("SOMO", "ru")) == 8072
    assert other.pop(("WC", "de")) == 9990
    assert other == {("SentLen", code): 4998 for code in ("de", "en", "es", "fr", "ru")}
    assert (own[["test", "validation"]] == 10_000).all(axis=1).sum() == 38
    identical = own.index[own["identical"] == 1]
    assert [*identical] == [("TreeDepth", code) for code in ("de", "en", "es", "fr", "ru")]
    shared = read("release_shared").set_index("language")["shared"]
    assert shared.to_dict() == {"en": 29, "de": 32, "es": 52, "fr": 64, "ru": 35}


def test_sentences_of_somo_stand_under_both_labels(release: pd.DataFrame) -> None:
    somo = release.loc["SOMO"].drop("fr-UN")
    both = (somo["both"] / somo["distinct"]).round(2)
    assert both.to_dict() == {"de": 0.41, "en": 0.40, "es": 0.35, "fr": 0.45, "ru": 0.18}
    best = (somo["test_best"] / somo["test"]).round(2)
    assert best.to_dict() == {"de": 0.82, "en": 0.82, "es": 0.86, "fr": 0.77, "ru": 1.0}
    assert (release.drop("SOMO")["both"] == 0).all()


def test_what_is_counted_of_a_release(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("count_release", FOLDER / "release.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    te, va = tmp_path / "te.txt", tmp_path / "va.txt"
    te.write_text("a b\tO\na b\tI\na b\tO\nc\tO\n", encoding="utf-8")
    va.write_text("c\tI\nd\tO\n", encoding="utf-8")
    found = script.count(script.read(te), script.read(va))
    assert found == {
        "test": 4, "validation": 2, "identical": 0, "classes": 2, "majority": 3,
        "test_distinct": 2, "test_both": 1, "test_best": 3, "distinct": 3, "both": 2,
    }  # fmt: skip
    te.write_text("O a b\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"te\.txt, line 1: not sentence<TAB>label"):
        script.read(te)


# --- sections 8.1 and 8.3 ---


def test_russian_is_lowest_in_six_tasks_and_highest_in_none_less_guessing(
    cells: pd.DataFrame, release: pd.DataFrame
) -> None:
    means = cells.groupby("task").mean()
    lowest = sorted(means.index[means.idxmin(axis=1) == "ru"])
    assert lowest == ["CoordInv", "ObjNum", "SubjNum", "Tense", "TreeDepth", "WC"]
    assert sorted(means.index[means.idxmax(axis=1) == "ru"]) == ["BiShift", "SOMO"]
    level = release["guess"].unstack().loc[means.index, SETTINGS]
    assert level["ru"][["BiShift", "SOMO"]].round(3).tolist() == [0.57, 0.513]
    assert "ru" not in set((means - level).idxmax(axis=1))
    behind = (means[["de", "es", "fr", "fr-UN"]].mean(axis=1) - means["ru"])[lowest]
    assert [behind.min().round(2), behind.max().round(2)] == [0.03, 0.09]


def test_the_two_french_are_the_nearest_settings(
    cells: pd.DataFrame, release: pd.DataFrame
) -> None:
    apart = {
        pair: (cells[pair[0]] - cells[pair[1]]).abs()
        for pair in itertools.combinations(SETTINGS, 2)
    }
    means = {pair: round(own.mean(), 3) for pair, own in apart.items()}
    assert sorted(means, key=means.get)[0] == ("fr", "fr-UN")
    assert (means["fr", "fr-UN"], means["es", "fr"]) == (0.009, 0.02)
    assert apart["fr", "fr-UN"].max() == pytest.approx(0.03)
    assert (beyond(cells, "fr", "fr-UN", release) != 0).sum() == 5


def test_the_two_rnns_are_not_each_others_nearest(cells: pd.DataFrame) -> None:
    wide = cells.stack().unstack("encoder")

    def apart(one: str, other: str) -> float:
        return np.sqrt(((wide[one] - wide[other]) ** 2).mean()).round(3)

    nearest = {e: min((o for o in ENCODERS if o != e), key=lambda o: apart(e, o)) for e in ENCODERS}
    assert nearest == {
        "Attention (maxpool)": "Attention (last)", "Attention (last)": "Attention (maxpool)",
        "RNN (maxpool)": "Attention (maxpool)", "RNN (last)": "RNN (maxpool)",
        "CNN (maxpool)": "CNN (avg. pool)", "CNN (avg. pool)": "CNN (maxpool)",
    }  # fmt: skip
    assert (apart(*RNN), apart(RNN[0], ATTENTION[0])) == (0.096, 0.066)


def test_pooling_matters_most_to_rnns_by_accuracy_and_to_cnns_by_ratio(
    cells: pd.DataFrame,
) -> None:
    wide = cells.stack().unstack("encoder")
    ratio = cells[MAPPED].div(cells["en"], axis=0).drop("WC", level="task")
    ratio = ratio.stack().unstack("encoder")
    pairs = (RNN, CNN, ATTENTION)
    assert [(wide[a] - wide[b]).abs().mean().round(3) for a, b in pairs] == [0.074, 0.021, 0.011]
    assert [(ratio[a] - ratio[b]).abs().mean().round(3) for a, b in pairs] == [0.045, 0.101, 0.027]


def test_attention_is_ahead_for_sentence_length_alone(cells: pd.DataFrame) -> None:
    names = [*ATTENTION, RNN[0]]
    wide = cells.stack().unstack("encoder")[names]
    assert wide.mean().round(3).tolist() == [0.604, 0.608, 0.591]
    assert wide.drop("SentLen", level="task").mean().round(3).tolist() == [0.578, 0.58, 0.587]


def test_recurrent_encoders_tell_length_worse_than_attentive_ones(cells: pd.DataFrame) -> None:
    length = cells.loc["SentLen"]
    recurrent, attentive = length.loc[RNN], length.loc[ATTENTION]
    assert (recurrent.min(axis=None), recurrent.max(axis=None)) == (0.38, 0.68)
    assert (attentive.min(axis=None), attentive.max(axis=None)) == (0.70, 0.87)
    assert (recurrent.max() < attentive.min()).all()
    ratio = length[MAPPED].div(length["en"], axis=0).mean(axis=1)
    assert [ratio[names].mean().round(2) for names in (RNN, ATTENTION)] == [1.26, 1.17]


def test_cnns_are_worst_where_anything_is_known(cells: pd.DataFrame) -> None:
    is_cnn = cells.index.get_level_values("encoder").isin(CNN)
    under = cells[is_cnn].groupby("task").max() < cells[~is_cnn].groupby("task").min()
    assert sorted(under.index[~under.all(axis=1)]) == ["BiShift", "SOMO"]
    assert cells.loc["SentLen"]["en"][CNN].tolist() == [0.22, 0.21]


def test_the_cnn_has_half_the_parameters_of_the_rnn_not_a_tenth() -> None:
    table = read("table2_hyperparameters").set_index(["component", "layer"])["value"]
    words = int(table["Global", "Embeddings"].split()[0])
    hidden, channels = int(table["RNN", "biLSTM dim"]), int(table["CNN", "Channels"])
    projection = int(table["CNN", "Projection dim"])
    # four gates of weights on input and state and two biases; two directions; two layers
    recurrent = 2 * 4 * hidden * (words + hidden + 2 + 2 * hidden + hidden + 2)
    attention = recurrent + 2 * hidden * 150 + 150 * 60
    filters = sum(channels * (width * words + 1) for width in (3, 4, 5))
    millions = [
        recurrent, attention, filters + (3 * channels + 1) * projection,
        filters / 3 + (channels + 1) * projection, filters / 3,
    ]  # fmt: skip
    millions = [round(n / 1e6, 2) for n in millions]
    assert millions == [9.63, 9.80, 5.34, 1.78, 0.96]
    for number in millions:
        assert f"{number:.2f}" in README


def test_mapping_cost_the_max_pooled_cnn_most_of_what_it_knew_of_xnli(xnli: pd.DataFrame) -> None:
    lost = (xnli.loc[CNN[0], "en"] - xnli.loc[CNN[0], MAPPED]).round(2)
    assert (lost.min(), lost.max()) == (0.07, 0.15)
    others = xnli.drop(CNN[0])
    assert others[MAPPED].rsub(others["en"], axis=0).max(axis=None) < 0.12


def test_readme_lists_the_disagreements() -> None:
    for said in (
        "52 of 54 are positive", "51 or 52 of 54 correlations are positive", "31 of 54", "20 by",
        "71 are better than English and 56 worse", "49 and 52", "1.0 times", "2.2 with n - 1",
        "6.3 without English", "4.8 without French (UN)", "5.6 without the other French",
        "4 of 36", "1 by Bonferroni", "36 of 36 cells", "0.430 (ru) to 0.457", "0.543 to 0.570",
        "9 of 36", "7 by Bonferroni", "0.18 (ru) to 0.45 (fr)", "0.77 (fr) to 0.86", "6 of 9 tasks",
        "5,253 to 6,140", "29 (en), 32 (de), 52 (es), 64 (fr) and 35 (ru)", "1.26 times",
        "5 of 54", "0.096", "0.066",
        "0.074 in RNN, 0.021 in CNN, 0.011 in attention", "0.045, 0.101 and 0.027", "-0.005",
        "0.604 and 0.608", "0.578 and 0.580 to 0.587", "7 of 9 tasks", "0.07 to 0.15",
    ):  # fmt: skip
        assert said in README, said
