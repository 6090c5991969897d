"""What measures and controls say of worlds of which all is known; composed masks; texts."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import abx_8_limits as limits
from xlx.experiment import abx_scores, scoring
from xlx.measures import abx, geometry
from xlx.subjects import loading
from xlx.text.parallel import ParallelCorpus

HALF, EIGHTH = 0.5, 1 / 8
#: Of 28 pairs 16 are of two scripts; of a sentence's others in a topic of 12, 11 have its number.
SCRIPTS, NUMBER = (16 + 12 / 2) / 28, 1 - 11 / 143 / 2


@pytest.fixture(scope="module")
def text() -> ParallelCorpus:
    return limits.planted_text()


def of_length(text: ParallelCorpus, allowed: dict | None = None) -> float:
    """MD of the number of characters, one triplet after the other."""
    logs = {code: np.log1p([*map(len, rows)]) for code, rows in text.sentences.items()}
    pairs = []
    for x, y in ((x, y) for x in logs for y in logs if x != y):
        won = [
            (own < other) + (own == other) / 2
            for i, own in enumerate(np.abs(logs[x] - logs[y]))
            for j, other in enumerate(np.abs(logs[x][i] - logs[y]))
            if i != j and (allowed is None or allowed[y][i, j])
        ]
        pairs.append(np.mean(won))
    return float(np.mean(pairs))


def test_every_measure_has_its_known_value_in_every_world(text: ParallelCorpus) -> None:
    model = "mini-xlmr"
    masks = abx_scores.masks_of(text, limits.MASKED, lambda: loading.load(model))
    topics = np.repeat(np.arange(12), 12)
    same = topics[:, None] == topics
    known = {  # place, subspace, covariance, length, script
        ("LD", "raw"): (1, HALF, HALF, HALF, SCRIPTS),
        ("LD", "centred"): (HALF,) * 5,
        ("LD", "Euclidean"): (1, HALF, HALF, HALF, SCRIPTS),
        ("LD", "whitened"): (0.88, HALF, HALF, HALF, SCRIPTS),  # Φ(8 / √48) of two normal sums
        ("purity", "raw"): (1, 1, 0.87, HALF, SCRIPTS),  # the largest of n normal: see below
        ("purity", "centred"): (HALF, 1, 0.87, HALF, HALF),
        # of a subspace the scores of all others are 0: the sign of its own decides
        ("linear reader", "raw"): (1, HALF, EIGHTH, EIGHTH, 1 / 4),
        ("linear reader", "centred"): (EIGHTH,) * 5,
        # Of spreads √41 in the own language and 5 in others: ∫ Φ(z)ⁿ dΦ(z / 1.28)ⁿ is .87 for two
        # languages of n = 143, and .54 for eight of n = 115 known sentences.
        ("nearest reader", "raw"): (1, 1, 0.54, EIGHTH, 1 / 4),
        ("nearest reader", "centred"): (EIGHTH, 1, 0.54, EIGHTH, EIGHTH),
        ("retrieval", "raw"): (1 / 144, 1 / 144, 1 / 144, 0.041, 1 / 12),  # by a loop over lengths
    }
    for name, mask in {"": None, **masks}.items():
        near = 1 - np.mean([(m * same)[~np.eye(144, dtype=bool)].sum() / (m.sum() - 144 * m[0, 0])
                            for m in (mask or {"": np.ones((144, 144))}).values()]) / 2  # fmt: skip
        if name.startswith("as"):
            near = NUMBER
        allowed = None if name.startswith("as") else mask
        length = 0.797 if name.startswith("as") else of_length(text, allowed)
        known[f"MD, {name}" if name else "MD", "raw"] = (HALF, HALF, HALF, length, near)
    found = limits.blind_spots(text, model)
    for key, values in known.items():
        assert found.loc[key].to_list() == pytest.approx(values, abs=0.07), key
    assert found.loc[("LD by CSLS", "raw"), "subspace"] < 0.3  # own neighbours are taken off


def test_each_control_fails_in_a_world_or_is_an_identity(text: ParallelCorpus) -> None:
    left = limits.control_table(text, 1)
    assert left.loc[[*limits.IDENTITIES]].to_numpy() == pytest.approx(HALF, abs=0.03)
    fails = {"MD, lengths shuffled": "length", "MD, documents shuffled": "script"}
    for control, world in fails.items():  # what is no translation scores like one
        assert left.loc[control, world] == pytest.approx(left.loc["MD", world], abs=0.03)
    for control in ("LD, one alphabet", "LD, pairs of one script"):
        assert left.loc[control, ["place", "script"]].to_list() == pytest.approx(
            [1, HALF], abs=0.01
        )
    bare = left.loc["MD, without digits and punctuation", ["length", "script"]]
    assert bare.to_list() == pytest.approx([left.loc["MD", "length"], HALF], abs=0.02)


def test_masks_compose_and_weigh(text: ParallelCorpus) -> None:
    few = text.take(40, 1).select(["de", "en", "bg"])
    masks = abx_scores.masks_of(few, limits.MASKED, lambda: loading.load("mini-xlmr"))
    both = {x: masks["like length"][x] & masks["near"][x] for x in few.languages}
    rng = np.random.default_rng(0)
    vectors = {x: rng.normal(size=(40, 5)) + 0.5 * rng.normal(size=(40, 5)) for x in few.languages}
    scores = abx.exact(vectors, masks=masks).scores
    unit = {x: v / np.linalg.norm(v, axis=1, keepdims=True) for x, v in vectors.items()}
    off = ~np.eye(40, dtype=bool)
    for place, (x, y) in enumerate((("de", "en"), ("de", "bg"), ("en", "bg"))):
        for side, (one, other) in enumerate(((x, y), (y, x))):
            across = unit[one] @ unit[other].T
            won = np.diag(across)[:, None] > across
            some = both[other] & off
            assert scores["MD, like length and near"][0, place, side] == pytest.approx(
                won[some].mean()
            )
            assert not some.any(axis=1).all()  # an A without B is in no comparison
            often = (masks["like length"][other] & off).sum(axis=1)
            mean = np.array([row[keep].mean() for row, keep in zip(won, off, strict=True)])
            assert scores["MD, as like length"][0, place, side] == pytest.approx(
                np.average(mean, weights=often)
            )
    (ledger,) = scoring.subject_scores([scoring.Length()], few, ["MD, as like length"])
    assert ledger.tasks == ["MD, as like length"]


def test_other_distances_are_the_literal_ones() -> None:
    rng = np.random.default_rng(4)
    v = {x: rng.normal(size=(60, 9)) * rng.uniform(0.5, 2, (60, 1)) + 5 for x in "ab"}
    off = ~np.eye(60, dtype=bool)
    across, within = cdist(v["a"], v["b"]), cdist(v["a"], v["a"])
    scores = abx.exact(abx_scores.euclidean(v)).scores
    assert scores["MD"][0, 0, 0] == pytest.approx((np.diag(across)[:, None] < across)[off].mean())
    assert scores["LD"][0, 0, 0] == pytest.approx((within < across)[off].mean())
    white = np.concatenate([*abx_scores.whitened(v).values()])
    np.testing.assert_allclose(np.cov(white.T), np.eye(9), atol=1e-9)
    unit = {x: y / np.linalg.norm(y, axis=1, keepdims=True) for x, y in v.items()}
    across, within = unit["a"] @ unit["b"].T, unit["a"] @ unit["a"].T
    crowd = [np.mean(sorted(b @ x for x in unit["a"])[-geometry.CROWD :]) for b in unit["b"]]
    own = [
        np.mean(sorted(a @ x for j, x in enumerate(unit["a"]) if i != j)[-geometry.CROWD :])
        for i, a in enumerate(unit["a"])
    ]
    found = abx.exact(v, measures=geometry.REGISTERED[-3:]).scores
    to_b, to_a = 2 * across - crowd, 2 * within - own
    assert found["MD by CSLS"][0, 0, 0] == pytest.approx(
        (np.diag(to_b)[:, None] > to_b)[off].mean()
    )
    assert found["LD by CSLS"][0, 0, 0] == pytest.approx((to_a > to_b)[off].mean())


def test_readers_are_asked_for_sentences_of_documents_that_they_do_not_know() -> None:
    rng = np.random.default_rng(5)
    groups = np.repeat([*"pqrstu"], 5)
    vectors = {x: rng.normal(size=(30, 6)) + k for k, x in enumerate("abc")}
    right = geometry.identified(vectors, groups)
    folds = {name: place % 5 for place, name in enumerate("pqrstu")}
    fold = np.array([folds[x] for x in groups])
    for language, x in enumerate("abc"):
        for i in range(30):
            near = {
                y @ vectors[x][i] / np.linalg.norm(y) / np.linalg.norm(vectors[x][i]): other
                for other, rows in vectors.items() for j, y in enumerate(rows) if fold[j] != fold[i]
            }  # fmt: skip
            assert right[1, language, i] == (near[max(near)] == x)
    table = scoring.language_identification(scoring.Length(), limits.planted_text(6))
    assert (table["low"] <= table["score"]).all()


@pytest.mark.parametrize(
    ("sentence", "written", "letters"),
    [
        ("Ще 3 дні, Ödön!", "shche 3 dni, odon!", "Ще дні Ödön"),
        ("शक्ति ४", "shakti 4", "शक्ति"),
        ("한국의 αλήθεια", "hangugyi alitheia", "한국의 αλήθεια"),
        ("سلام؟", "slam?", "سلام"),
        ("12:30", "12:30", "12:30"),
    ],
)
def test_texts_with_less_surface(sentence: str, written: str, letters: str) -> None:
    assert limits.latin(sentence) == written
    assert limits.letters_alone(sentence) == letters
