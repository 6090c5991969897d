"""MEXA against a double loop over scipy's cosine, enumeration, closed forms and simulation."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cosine

from shared import mexa_tables
from xlx.measures import alignment, mexa, statistics


def literal(language: np.ndarray, pivot: np.ndarray) -> np.ndarray:
    """The definition of section 3, element by element; cosines 1e-13 apart are a tie."""
    n = len(language)
    c = np.array([[1 - cosine(x, p) for p in pivot] for x in language.astype(float)])
    hits = []
    for i in range(n):
        rivals = [c[i, j] for j in range(n) if j != i] + [c[j, i] for j in range(n) if j != i]
        hits.append(c[i, i] > max(rivals) + 1e-13)
    return np.array(hits)


def random_states(n: int, dim: int, seed: int, layers: int = 2) -> dict[str, np.ndarray]:
    """Translations that share a meaning, with a part of the language and noise."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(layers, n, dim))
    offsets = {
        code: (rng.normal(size=(layers, 1, dim)), rng.normal(size=meaning.shape))
        for code in ("de", "en", "fi")
    }
    return {code: (meaning + a + b).astype(np.float32) for code, (a, b) in offsets.items()}


@given(st.integers(2, 8), st.integers(2, 6), st.integers(0, 10**6))
@settings(max_examples=50)
def test_hits_are_those_of_the_definition(n: int, dim: int, seed: int) -> None:
    states = random_states(n, dim, seed)
    if n > 3:  # ties: a sentence not translated, one twice in the pivot, one twice in a language
        states["de"][0, 0] = states["en"][0, 0]
        states["en"][0, 2] = states["en"][0, 1]
        states["fi"][1, 2] = 3 * states["fi"][1, 3]
    found = mexa.scores(states)
    assert found.languages == ("de", "fi")
    assert found.layers == (0, 1)
    assert found.hits.dtype == bool
    for layer, (column, language) in itertools.product(found.layers, enumerate(found.languages)):
        expected = literal(states[language][layer], states["en"][layer])
        np.testing.assert_array_equal(found.hits[layer, column], expected)
        assert found.mu[layer, column] == expected.mean()


@given(st.integers(2, 7), st.integers(2, 5), st.integers(0, 10**6))
@settings(max_examples=30)
def test_leaving_out_a_sentence_is_scoring_the_others(n: int, dim: int, seed: int) -> None:
    states = random_states(n, dim, seed)
    left_out = mexa.scores(states).left_out()
    for k in range(n):
        others = {code: np.delete(array, k, axis=1) for code, array in states.items()}
        for layer, (column, language) in itertools.product((0, 1), enumerate(("de", "fi"))):
            pair = others[language][layer], others["en"][layer]
            expected = literal(*pair).mean() if n > 2 else 1.0  # alone, nothing is more similar
            assert left_out[layer, column, k] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_near_ties_of_several_rivals_both_ways(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    pivot, _ = np.linalg.qr(rng.normal(size=(n, n)))
    # Three sentences each lie midway between the three translations, but for tiny steps.
    midway = np.kron(np.eye(n // 3), np.ones((3, 3)))
    steps = rng.choice([-1, 1], midway.shape) * 10 ** rng.uniform(-12, -4, midway.shape)
    steps[np.diag_indices(n)] += 10 ** rng.uniform(-12, -4, n)
    language = (midway + midway * steps) @ pivot
    x, p = (v / np.sqrt((v**2).sum(axis=1))[:, None] for v in map(np.longdouble, (language, pivot)))
    c = (x[:, None] * p[None]).sum(axis=-1)
    others = ~np.eye(n, dtype=bool)
    best = np.maximum(c, c.T)
    assert np.abs(np.stack([c, c.T]) - np.diag(c)[:, None])[:, others].min() > 1e-14  # no tie
    rivals = (best >= np.diag(c)[:, None]) & others
    n_rivals = rivals.sum(axis=1)
    assert set(n_rivals) == {0, 1, 2}
    found = mexa.scores({"en": pivot[None], "fi": language[None]})
    np.testing.assert_array_equal(found.hits[0, 0], n_rivals == 0)
    only = np.where(n_rivals == 1, rivals.argmax(axis=1), -1)
    np.testing.assert_array_equal(found.only_rival[0, 0], only)


def test_layers_of_which_nothing_is_left_have_no_score() -> None:
    rng = np.random.default_rng(0)
    states = {code: rng.normal(size=(3, 8, 5)).astype(np.float32) for code in ("en", "de", "fi")}
    whole = mexa.scores(states)
    states["de"][0] = np.nan
    found = mexa.scores(states)
    assert np.isnan(found.mu).tolist() == [[True, False], [False, False], [False, False]]
    np.testing.assert_array_equal(found.hits[:, 1], whole.hits[:, 1])
    table = found.table().set_index(["language", "layer"])
    assert table.loc[("de", 0)].isna().all()
    for how, pool in (("mean", np.mean), ("max", np.max)):
        pooled = found.pooled(how)
        assert pooled["mu"].tolist() == [pool(whole.mu[1:, 0]), pool(whole.mu[:, 1])]
        assert pooled.notna().all(axis=None)
    states["en"][1] = np.nan
    assert np.isnan(mexa.scores(states).mu[1]).all()


# --- tables and intervals -------------------------------------------------------------------------


def test_tables_and_pooling() -> None:
    scored = mexa.scores(random_states(20, 6, 4, layers=3))
    table = scored.table()
    assert table.columns.tolist() == ["language", "layer", "mu", "low", "high"]
    assert len(table) == 6
    assert ((table["low"] <= table["mu"]) & (table["mu"] <= table["high"])).all()
    assert table.query("language == 'fi' and layer == 2")["mu"].item() == scored.mu[2, 1]
    for how in ("mean", "max"):
        pooled = scored.pooled(how).set_index("language")
        means = table.groupby("language")["mu"].agg(how)
        pd.testing.assert_series_equal(pooled["mu"], means, check_names=False)
        assert ((pooled["low"] <= pooled["mu"]) & (pooled["mu"] < pooled["high"])).all()


def test_a_perfect_score_has_wilsons_interval() -> None:
    same = np.random.default_rng(0).normal(size=(1, 100, 20))
    row = mexa.scores({"en": same, "fi": same}).table().iloc[0]
    expected = statistics.share_interval(100, 100)
    assert (row["mu"], row["low"], row["high"]) == (1.0, *map(pytest.approx, expected))


@pytest.mark.slow
@pytest.mark.parametrize("hubs", [False, True])
def test_the_interval_covers_the_truth_as_often_as_it_says(hubs: bool) -> None:
    rng = np.random.default_rng(1)
    n, dim, found = 60, 40, []
    for _ in range(200):
        meaning = rng.normal(size=(1, n, dim))
        fi, en = (meaning + 1.3 * rng.normal(size=meaning.shape) for _ in range(2))
        if hubs:  # some vectors of the pivot lie near the part that all have in common
            central = rng.random(n) < 0.1
            en[0, central] *= 0.15
            fi[..., 0] += 20
            en[..., 0] += 20
        found.append(mexa.scores({"en": en, "fi": fi}).table().iloc[0])
    table = pd.DataFrame(found)
    truth = table["mu"].mean()
    covered = ((table["low"] <= truth) & (truth <= table["high"])).mean()
    assert covered >= 0.93
    # ... and is no more than half as wide again as it need be, without hubs
    if not hubs:
        assert (table["high"] - table["low"]).mean() < 1.5 * 2 * 1.96 * table["mu"].std()


# --- chance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
def test_chance_is_the_share_of_all_orders(n: int) -> None:
    orders = np.array(list(itertools.permutations(range(n * n)))).reshape(-1, n, n)
    own = np.diagonal(orders, axis1=1, axis2=2)
    hits = (own == orders.max(axis=2)) & (own == orders.max(axis=1))
    assert hits[:, 0].mean() == pytest.approx(1 / (2 * n - 1))
    tail = [(hits.sum(axis=1) >= k).mean() for k in range(n + 1)]
    np.testing.assert_allclose(mexa_tables.chance_table(n)["matrix"], tail, rtol=1e-12)


def test_what_appendix_a4_says_and_what_it_tends_to() -> None:
    table = mexa_tables.chance_table(100).set_index("k")
    assert table.loc[5, "mu"] == 0.05
    by_hand = 1 - sum(stats.binom.pmf(i, 100, 1 / 199) for i in range(5))
    assert table.loc[5, "binomial"] == pytest.approx(by_hand, rel=1e-9)
    assert round(by_hand, 5) == 0.00016
    assert table.loc[5, "matrix"] == pytest.approx(by_hand, rel=0.1)
    assert (table.loc[0, ["binomial", "matrix"]] == 1).all()
    assert table["matrix"].is_monotonic_decreasing
    assert (table["matrix"] >= 0).all()
    assert mexa_tables.chance_table(1)["matrix"].tolist() == [1.0, 1.0]
    many = mexa_tables.chance_table(2000)[:8]
    for column in ("binomial", "matrix"):
        np.testing.assert_allclose(many[column], stats.poisson.sf(many["k"] - 1, 0.5), 1e-2)


def test_simulated_chance() -> None:
    hits = mexa_tables.chance_hits(10, 50, 10_000, seed=0)
    assert abs(hits.mean() / 10 - 1 / 19) < 3 * hits.std() / 1000
    table = mexa_tables.chance_table(10, hits)
    # the variance of the exact tail is that of the exact moments: two hits, one after the other
    p, tail = 1 / 19, table["matrix"].to_numpy()
    variance = 10 * 9 * p / 18 + 10 * p - (10 * p) ** 2
    mass, k = tail - np.append(tail[1:], 0), np.arange(11)
    assert mass @ k**2 - (mass @ k) ** 2 == pytest.approx(variance)
    assert variance == pytest.approx(hits.var(ddof=1), rel=0.05)
    assert ((table["low"] <= table["matrix"]) & (table["matrix"] <= table["high"])).loc[1:3].all()


# --- from scores to tasks -------------------------------------------------------------------------


def test_expected_score() -> None:
    assert mexa.expected(np.array([1.0, 0.5]), 0.88).tolist() == [0.88, 0.44]


def test_bands_of_table_6() -> None:
    found = mexa.bands([0, 0.19, 0.2, 0.4, 3 * 0.2, 0.79, 0.8, 1])
    assert found.codes.tolist() == [0, 0, 1, 2, 3, 3, 4, 4]
    assert (found.ordered, tuple(found.categories)) == (True, mexa.BANDS)


# --- bad input ------------------------------------------------------------------------------------


def broken(**changes: np.ndarray) -> dict[str, np.ndarray]:
    return random_states(5, 4, 0) | changes


def spoilt(value: float) -> np.ndarray:
    array = random_states(5, 4, 0)["fi"]
    array[1, 3] = value
    return array


REFUSED = [
    (mexa.scores, {"states": {"de": np.ones((1, 3, 2))}}, "pivot .*'en': choose de"),
    (mexa.scores, {"states": {"en": np.ones((1, 3, 2))}}, "only the pivot en"),
    (mexa.scores, {"states": broken(fi=np.ones((2, 4, 4)))}, "layer 0: .* fi .*4, 4.: embed all"),
    (
        mexa.scores,
        {"states": dict.fromkeys(("en", "fi"), np.ones((1, 1, 2)))},
        "two or more sentences",
    ),
    (mexa.scores, {"states": broken(fi=spoilt(np.nan))}, "layer 1: .* fi at .* 3 holds NaN"),
    (mexa.scores, {"states": broken(fi=spoilt(0))}, "layer 1: .* of fi at position 3 is zero"),
    (mexa.scores(broken()).pooled, {"how": "median"}, "choose mean, max"),
    (mexa.expected, {"mu": 50.0, "english_score": 0.9}, r"\[0, 1\]"),
    (mexa.bands, {"score": [1.2]}, r"\[0, 1\]"),
]


@pytest.mark.parametrize(("call", "options", "says"), REFUSED)
def test_what_cannot_be_scored_is_said(call, options: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call(**options)


# --- without the offset of a language -------------------------------------------------------------


def test_the_offset_of_a_language_can_be_taken_out() -> None:
    states = {code: x.astype(float) for code, x in random_states(40, 8, 3).items()}
    for code, moved in alignment.centred(states).items():
        mean = states[code].mean(axis=1, keepdims=True)
        np.testing.assert_allclose(moved, states[code] - mean, atol=1e-12)


def test_sentences_without_a_direction_tie() -> None:
    rng = np.random.default_rng(4)
    states = {code: rng.normal(size=(2, 5, 6)).astype(np.float32) for code in ("en", "de")}
    states["de"][0] = states["de"][0, 0] / 3  # as the last token is at the embeddings
    moved = alignment.centred(states)
    assert not mexa.scores(moved).hits[0].any()
    np.testing.assert_array_equal(
        mexa.scores(moved).hits[1], mexa.scores({x: own[1:] for x, own in moved.items()}).hits[0]
    )
