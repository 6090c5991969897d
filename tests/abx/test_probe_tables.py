"""The tables of the notebooks on probes, on accuracies whose tables are known."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import abx_5_probing
import abx_6_transfer
from xlx.experiment.abx_scores import MATCHED
from xlx.measures import regressions
from xlx.measures.regressions import least_squares

CODES = ["de", "en", "fr", "es", "ru", "tr"]
MODELS = ["zeta", "alpha"]
TASKS = ["POS", "NER"]
TERMS = ["LD", "MD"]


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
SETUPS = abx_5_probing.setups(TASKS, [dict.fromkeys(TASKS, 50)] * 3, {}, 2, seed=3)


def scores() -> pd.DataFrame:
    """LD and MD of languages as `averages.averaged_scores` gives them."""
    rows = list(product(MODELS, (0, 10, 20), CODES, ("LD", "MD", MATCHED)))
    table = pd.DataFrame(rows, columns=["model", "checkpoint", "language", "task"])
    return table.assign(score=np.random.default_rng(1).uniform(0.5, 1, len(table)))


REGRESSED = abx_5_probing.regressed(abx_5_probing.of_layers(SCORED, "mean"))
JOINED = abx_5_probing.with_scores(REGRESSED, scores(), SETUPS)
OF_LAST = JOINED[JOINED["checkpoint"] == 20].assign(accuracy=lambda rows: rows["accuracy"] ** 2)
SIDES = abx_5_probing.sides(JOINED, OF_LAST)
FITS = abx_5_probing.fits(SIDES)


def test_setups_and_languages_are_those_asked_for() -> None:
    setup = SETUPS["NER"]
    assert (setup.n_train, setup.seed, setup.seeds, setup.path) == (50, 3, (0, 1), None)
    assert abx_5_probing.drawn_anew(SETUPS, 8)["POS"].seed == 8
    codes = abx_5_probing.task_languages(SETUPS, ["de", "xx", "sr"], sources={"NER": "wikiann"})
    assert codes == {"POS": ["de", "sr"], "NER": ["de"]}
    sizes = [{"POS": None, "NLI": 50}] * 3
    setups = abx_5_probing.setups(["POS", "NLI"], sizes, {}, 1, sources={"NLI": "sick"})
    # what a notebook names otherwise does not count against the setup
    codes = abx_5_probing.task_languages(setups, None, "CL", {"NLI": "xnli"})
    assert codes["NLI"] == ["en", "ja", "nl", "pl", "pt"]
    keys = ["model", "checkpoint", "language"]
    table = pd.DataFrame([("m", 0, code) for code in ("en", "nl", "de")], columns=keys)
    joined = abx_5_probing.with_scores(
        table.assign(task="NLI", accuracy=0.5), table.assign(task="LD", score=0.9),
        {"NLI": setups["NLI"]},
    )  # fmt: skip
    assert joined["language"].tolist() == ["en", "nl"]  # German is XNLI's


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: abx_5_probing.setups(["NER"], [{"POS": 5}] * 3, {}, 1),
            "NER has no size in every split",
        ),
        (
            lambda: abx_5_probing.drawn_anew(
                abx_5_probing.setups(["POS"], [{"POS": None}] * 3, {}, 1), 2
            ),
            "POS takes all there is .* give n_train and n_test",
        ),
        (
            lambda: abx_5_probing.regressed_tasks({"POS": CODES}, 9),
            r"no task has the 9 languages that a regression takes here \(POS 6\)",
        ),
        (lambda: abx_5_probing.regressed(REGRESSED, {"NER": "f2"}), "there is no measure 'f2'"),
    ],
)
def test_what_cannot_be_probed_is_said(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_accuracies_stand_beside_the_commonest_label() -> None:
    found = abx_5_probing.of_layers(SCORED, 1)
    assert (found["above"] == found["accuracy"] - found["majority"]).all()
    own = SCORED.query("model == 'zeta' and checkpoint == 10 and task == 'NER' and layer == 1")
    row = found.query("model == 'zeta' and checkpoint == 10 and task == 'NER'")
    expected = own.groupby("language", sort=False)["majority"].mean()
    assert row["majority"].tolist() == pytest.approx(expected.tolist())
    assert (REGRESSED["accuracy"] == REGRESSED["above"]).eq(REGRESSED["task"] == "POS").all()
    best = abx_5_probing.of_layers(SCORED, "best").iloc[0]
    means = SCORED[:36].query("language == 'de'").groupby("layer").mean(numeric_only=True)
    assert best["accuracy"] == pytest.approx(
        means.loc[means["validation_loss"].idxmin(), "accuracy"]
    )


def test_sides_and_their_regressions() -> None:
    assert len(SIDES["Avg"]) == len(SIDES["Last"]) == 2 * 2 * 6
    row = SIDES["Avg"].set_index(["model", "task", "language"]).loc["zeta", "POS", "de"]
    own = JOINED.query("model == 'zeta' and task == 'POS' and language == 'de' and checkpoint > 0")
    assert row["LD"] == pytest.approx(own["LD"].mean())
    counted = abx_5_probing.sides(JOINED, OF_LAST, untrained_counts=True)["Avg"]
    assert not np.allclose(counted["LD"], SIDES["Avg"]["LD"])
    table = abx_5_probing.regression_table(FITS)
    assert table.index.tolist()[:3] == [("POS", "Avg", s) for s in ("printed", "zeta", "alpha")]
    assert table.loc[("POS", "Avg", "printed"), ["R2", "LD", "LD, p"]].tolist() == [
        0.395, -2.34, "p < .01"
    ]  # fmt: skip
    row = table.loc["NER", "Last", "zeta"]
    rows = SIDES["Last"].query("model == 'zeta' and task == 'NER'")[["accuracy", *TERMS]]
    fit = regressions.regression(rows, "accuracy", TERMS)
    assert row["R2"] == fit.r_squared
    assert row["MD"] == fit.table.set_index(["errors", "term"]).loc[("robust", "MD"), "coefficient"]
    coefficients = least_squares((rows - rows.mean()) / rows.std(), "accuracy", TERMS).params
    assert row[["LD, β", "MD, β"]].tolist() == pytest.approx(coefficients[1:].tolist())


# --- transfer -------------------------------------------------------------------------------------


@pytest.fixture
def accuracy(monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    rows = list(product(MODELS, TASKS, CODES, CODES, range(2)))
    table = pd.DataFrame(rows, columns=["model", "task", "source", "target", "layer"])
    rng = np.random.default_rng(5)
    table = table.assign(accuracy=rng.uniform(0.2, 0.6, len(table)))
    table["majority"] = np.where(table["source"] == "de", 0.1, 0.2) + 0.3 * (
        table["target"] == "tr"
    )
    monkeypatch.setattr(
        abx_6_transfer,
        "cross_lingual",
        lambda name, setup, codes, entities: table.query(
            "model == @name and task == @setup.task"
        ).assign(**{"f1": 0.25} if entities else {}),
    )
    return abx_6_transfer.pair_accuracies(MODELS, SETUPS, dict.fromkeys(TASKS, CODES))


def test_a_constant_answer_is_as_good_from_every_source(accuracy: pd.DataFrame) -> None:
    assert accuracy["majority"].tolist() == pytest.approx(
        [0.5 if target == "tr" else 0.2 for target in accuracy["target"]]
    )
    assert accuracy["above"].tolist() == (accuracy["accuracy"] - accuracy["majority"]).tolist()
    assert accuracy["f1"].isna().eq(accuracy["task"] == "POS").all()
    inside = accuracy["pairs"] == "in the language"
    assert inside.eq(accuracy["source"] == accuracy["target"]).all()
