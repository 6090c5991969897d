"""The tables of the notebooks on probes, on accuracies whose tables are known."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import abx_3_outcomes
from shared import probe_setups
from xlx.experiment.abx_scores import MATCHED
from xlx.measures import statistics

CODES = ["de", "en", "fr", "es", "ru", "tr"]
MODELS = ["zeta", "alpha"]
TASKS = ["POS", "NER"]


def scored(steps: tuple[int, ...] = (0, 10, 20)) -> pd.DataFrame:
    """What `probing.monolingual` returns, with made-up numbers."""
    rows = list(product(MODELS, steps, TASKS, CODES, range(3), (0, 1)))
    table = pd.DataFrame(rows, columns=["model", "checkpoint", "task", "language", "layer", "seed"])
    rng = np.random.default_rng(0)
    for column in ("accuracy", "validation_loss", "majority"):
        table[column] = rng.uniform(0.3, 0.9, len(table))
    words = table["language"].map({code: 100 * 2**k for k, code in enumerate(CODES)})
    return table.assign(n_train=words, f1=0.5 * table["accuracy"])


SCORED = scored()
SETUPS = probe_setups.setups(
    dict.fromkeys(TASKS), [dict.fromkeys(TASKS, 50)] * 3, {}, n_seeds=2, seed=3
)


MEANS = abx_3_outcomes.means_over_layers(SCORED)
REGRESSED = abx_3_outcomes.regressed(MEANS, {"POS": "above", "NER": "f1"})


def test_accuracies_stand_beside_the_commonest_label() -> None:
    assert (MEANS["above"] == MEANS["accuracy"] - MEANS["majority"]).all()
    key = "model == 'zeta' and checkpoint == 10 and task == 'NER'"
    expected = SCORED.query(key).groupby("language", sort=False)["majority"].mean()
    assert MEANS.query(key)["majority"].tolist() == pytest.approx(expected.tolist())
    as_printed = abx_3_outcomes.regressed(MEANS, {})
    assert (as_printed["accuracy"] == MEANS["accuracy"]).all()
    assert (REGRESSED["accuracy"] == REGRESSED["above"]).eq(REGRESSED["task"] == "POS").all()


# --- transfer -------------------------------------------------------------------------------------


@pytest.fixture
def accuracy(monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    rows = list(product(MODELS, TASKS, CODES, CODES, range(2)))
    table = pd.DataFrame(rows, columns=["model", "task", "source", "target", "layer"])
    rng = np.random.default_rng(5)
    table = table.assign(accuracy=rng.uniform(0.2, 0.6, len(table)))
    easier = 0.3 * (table["target"] == "tr")
    table["majority"] = np.where(table["source"] == "de", 0.1, 0.2) + easier

    def crossed(name: str, setup: object, codes: list, entities: bool) -> pd.DataFrame:
        own = table.query("model == @name and task == @setup.task")
        return own.assign(**{"f1": 0.25} if entities else {})

    monkeypatch.setattr(abx_3_outcomes, "cross_lingual", crossed)
    return abx_3_outcomes.pair_accuracies(MODELS, SETUPS, dict.fromkeys(TASKS, CODES))


def test_a_constant_answer_is_as_good_from_every_source(accuracy: pd.DataFrame) -> None:
    assert accuracy["majority"].tolist() == pytest.approx(
        [0.5 if target == "tr" else 0.2 for target in accuracy["target"]]
    )
    assert accuracy["above"].tolist() == (accuracy["accuracy"] - accuracy["majority"]).tolist()
    assert accuracy["f1"].isna().eq(accuracy["task"] == "POS").all()


def scores() -> pd.DataFrame:
    """LD and MD of languages as `averages.averaged_scores` gives them."""
    rows = list(product(MODELS, (0, 10, 20), CODES, ("LD", "MD", MATCHED)))
    table = pd.DataFrame(rows, columns=["model", "checkpoint", "language", "task"])
    return table.assign(score=np.random.default_rng(1).uniform(0.5, 1, len(table)))


JOINED = abx_3_outcomes.with_scores(REGRESSED, scores(), SETUPS)


OF_LAST = JOINED[JOINED["checkpoint"] == 20].assign(accuracy=lambda rows: rows["accuracy"] ** 2)


SIDES = abx_3_outcomes.sides(JOINED, OF_LAST)


def test_a_row_of_table_1_has_one_interval_over_languages_and_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "task == 'POS' and checkpoint == 'Last' and model == 'zeta' and term == 'LD'"
    monkeypatch.setattr(abx_3_outcomes, "document_error", lambda *_: np.array([3.0, 0.0]))
    measured = [SimpleNamespace(model="zeta")]
    table = abx_3_outcomes.regression_table(SIDES, measured)
    row = table.query(key)
    rows = SIDES["Last"].query("task == 'POS' and model == 'zeta'")
    robust = abx_3_outcomes.robust(rows).set_index("term").loc["LD"]
    half = (row["high"] - row["low"]).item() / 2
    assert half == pytest.approx(stats.t.ppf(0.975, robust["df"]) * np.hypot(robust["error"], 3))
    assert row["coefficient"].item() == pytest.approx(robust["coefficient"])
    other = table.query(key.replace("zeta", "alpha"))
    rows = SIDES["Last"].query("task == 'POS' and model == 'alpha'")
    assert other["low"].item() == pytest.approx(abx_3_outcomes.robust(rows)["low"].iloc[0])


def test_over_branches_a_coefficient_is_fitted_without_each() -> None:
    codes = ["de", "nl", "fr", "es", "it", "ru", "pl", "tr", "fi"]
    branches = [["de", "nl"], ["fr", "es", "it"], ["ru", "pl"], ["tr"], ["fi"]]
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"language": codes, "accuracy": rng.normal(size=len(codes))})

    def mean(table: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"term": ["mean"], "coefficient": [table["accuracy"].mean()]})

    row = abx_3_outcomes.over_branches(rows, ["language"], mean).iloc[0]
    left = [rows.loc[~rows["language"].isin(x), "accuracy"].mean() for x in branches]
    assert (row["least"], row["most"]) == pytest.approx((min(left), max(left)))
    groups = [next(i for i, x in enumerate(branches) if code in x) for code in codes]
    value, low, high = statistics.mean_interval(rows["accuracy"].to_numpy(), np.array(groups))
    assert row[["coefficient", "low", "high"]].tolist() == pytest.approx([value, low, high])
    pairs = pd.MultiIndex.from_product([codes, codes], names=["source", "target"])
    pairs = pairs.to_frame(index=False).assign(accuracy=rng.normal(size=len(codes) ** 2))
    row = abx_3_outcomes.over_branches(pairs, ["source", "target"], mean).iloc[0]
    outside = [~pairs[["source", "target"]].isin(x).any(axis=1) for x in branches]
    left = [pairs.loc[rest, "accuracy"].mean() for rest in outside]
    assert row["most"] == pytest.approx(max(left))
