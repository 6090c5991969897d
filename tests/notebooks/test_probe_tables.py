"""The tables of the notebooks on probes, on accuracies whose tables are known."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import abx_5_probing
import abx_6_transfer
from shared import pair_regressions, probe_setups
from xlx.experiment.abx_scores import MATCHED

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


def scores() -> pd.DataFrame:
    """LD and MD of languages as `averages.averaged_scores` gives them."""
    rows = list(product(MODELS, (0, 10, 20), CODES, ("LD", "MD", MATCHED)))
    table = pd.DataFrame(rows, columns=["model", "checkpoint", "language", "task"])
    return table.assign(score=np.random.default_rng(1).uniform(0.5, 1, len(table)))


REGRESSED = abx_5_probing.regressed(abx_5_probing.of_layers(SCORED, "mean"))
JOINED = abx_5_probing.with_scores(REGRESSED, scores(), SETUPS)
OF_LAST = JOINED[JOINED["checkpoint"] == 20].assign(accuracy=lambda rows: rows["accuracy"] ** 2)
SIDES = abx_5_probing.sides(JOINED, OF_LAST)


def test_setups_and_languages_are_those_asked_for() -> None:
    setup = SETUPS["NER"]
    assert (setup.n_train, setup.seed, setup.seeds, setup.path) == (50, 3, (0, 1), None)
    codes = probe_setups.task_languages(SETUPS, ["de", "xx", "sr"], sources={"NER": "wikiann"})
    assert codes == {"POS": ["de", "sr"], "NER": ["de"]}
    sources = {"POS": None, "NLI": "sick"}
    setups = probe_setups.setups(sources, [{"NLI": 50}] * 3, {}, n_seeds=1)
    assert (setups["POS"].n_train, setups["NLI"].n_train) == (None, 50)
    # what a notebook names otherwise does not count against the setup
    codes = probe_setups.task_languages(setups, None, "CL", {"NLI": "xnli"})
    assert codes["NLI"] == ["en", "ja", "nl", "pl", "pt"]
    keys = ["model", "checkpoint", "language"]
    table = pd.DataFrame([("m", 0, code) for code in ("en", "nl", "de")], columns=keys)
    joined = abx_5_probing.with_scores(
        table.assign(task="NLI", accuracy=0.5),
        table.assign(task="LD", score=0.9),
        {"NLI": setups["NLI"]},
    )
    assert joined["language"].tolist() == ["en", "nl"]  # German is XNLI's
    alone = abx_5_probing.HypothesisAlone(**vars(setups["NLI"]))
    assert alone.load("en", "test").first == setups["NLI"].load("en", "test").second
    assert alone.about("en", "test") == setups["NLI"].about("en", "test") | {"first": "second"}


def test_another_measure_is_not_regressed() -> None:
    with pytest.raises(ValueError, match="there is no measure 'f2'"):
        abx_5_probing.regressed(REGRESSED, {"NER": "f2"})


def test_untrained_is_a_twin_where_a_series_has_no_step_0(monkeypatch: pytest.MonkeyPatch) -> None:
    series = [SimpleNamespace(step=step) for step in (5000, 10000, 1500000)]
    monkeypatch.setattr(abx_5_probing, "history", lambda name, leave_out=(): series)
    monkeypatch.setattr(abx_5_probing, "before_training", lambda name: f"{name}@untrained")
    states = abx_5_probing.course_of("m", steps=[10000])
    assert states == {0: "m@untrained", 10000: series[1], 1500000: series[2]}
    assert list(abx_5_probing.course_of("m", checkpoints="ends")) == [0, 1500000]
    assert list(abx_5_probing.course_of("m", checkpoints="last")) == [1500000]
    monkeypatch.setattr(abx_5_probing, "history", lambda name, leave_out=(): [name])
    assert abx_5_probing.course_of("one") == {0: "one@untrained", 1: "one"}


def test_a_row_of_table_1_has_one_interval_over_languages_and_documents() -> None:
    fits = abx_5_probing.fits(SIDES)
    assert list(fits)[:2] == [("POS", "Avg", "zeta"), ("POS", "Avg", "alpha")]
    key = "POS", "Last", "zeta"
    of_documents = pd.Series({"LD": 3.0, "MD": 0.0})
    table = abx_5_probing.regression_table(fits, {key: of_documents})
    row = table.query("task == 'POS' and checkpoint == 'Last' and model == 'zeta' and term == 'LD'")
    robust = fits[key].of("robust").loc["LD"]
    half = (row["high"] - row["low"]).item() / 2
    assert half == pytest.approx(stats.t.ppf(0.975, robust["df"]) * np.hypot(robust["error"], 3))
    assert row["coefficient"].item() == pytest.approx(robust["coefficient"])
    assert row["lowest"].item() <= row["coefficient"].item() <= row["highest"].item()
    shown = pair_regressions.beside_printed(table, "probing_monolingual")
    assert shown.loc[("POS", "Last", "printed"), "LD (95 %)"] == "−1.78"
    assert len(shown) == len(fits) + 4


def test_accuracies_stand_beside_the_commonest_label() -> None:
    found = abx_5_probing.of_layers(SCORED, 1)
    assert (found["above"] == found["accuracy"] - found["majority"]).all()
    own = SCORED.query("model == 'zeta' and checkpoint == 10 and task == 'NER' and layer == 1")
    row = found.query("model == 'zeta' and checkpoint == 10 and task == 'NER'")
    expected = own.groupby("language", sort=False)["majority"].mean()
    assert row["majority"].tolist() == pytest.approx(expected.tolist())
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

    monkeypatch.setattr(abx_6_transfer, "cross_lingual", crossed)
    return abx_6_transfer.pair_accuracies(MODELS, SETUPS, dict.fromkeys(TASKS, CODES))


def test_a_constant_answer_is_as_good_from_every_source(accuracy: pd.DataFrame) -> None:
    assert accuracy["majority"].tolist() == pytest.approx(
        [0.5 if target == "tr" else 0.2 for target in accuracy["target"]]
    )
    assert accuracy["above"].tolist() == (accuracy["accuracy"] - accuracy["majority"]).tolist()
    assert accuracy["f1"].isna().eq(accuracy["task"] == "POS").all()
    same = accuracy["source"] == accuracy["target"]
    assert (accuracy["pairs"] == "in the language").eq(same).all()


def test_the_mean_coefficient_of_runs_has_an_interval_over_runs(monkeypatch) -> None:
    form, meaning = np.random.default_rng(1).normal(size=(2, 8))
    columns = {"language": [*"abcdefgh"], "LD": form, "MD": meaning}
    found = [pd.DataFrame(columns).assign(model=k, accuracy=k * form + 0.1) for k in (1, 2)]
    for name in ("monolingual", "of_layers", "regressed", "subject_scores", "averaged_scores"):
        monkeypatch.setattr(abx_5_probing, name, lambda *_, **__: None)
    monkeypatch.setattr(abx_5_probing, "with_scores", lambda *_: pd.concat(found))
    monkeypatch.setattr(abx_5_probing, "history", lambda name, recorded: [name])
    asked = None, {"POS": SimpleNamespace(task="POS")}, {"POS": ()}, {}
    table = abx_5_probing.slopes_of_runs({"made": ["x", "y"]}, *asked)
    rows = table.query("term == 'LD'")[["value", "low", "high"]].to_numpy()
    half = stats.t.ppf(0.975, 1) / 2  # of 1 and 2: s / √2 is a half; no error over languages
    assert rows == pytest.approx(np.array([[1.5, 1.5 - half, 1.5 + half]] * 2))
    del found[1]
    alone = abx_5_probing.slopes_of_runs({"one": ["x"]}, *asked)
    assert alone[["recipe", "over"]].to_numpy().tolist() == [["one", "languages, one run"]] * 2
