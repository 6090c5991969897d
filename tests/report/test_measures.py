"""The numbers of a report are those of the lenses on the same text."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from tests.report.conftest import N, Written
from xlx.experiment import surface
from xlx.experiment.abx_scores import MATCHED, centred, checkpoint_scores, length_matched
from xlx.experiment.averages import Average, average, averaged_scores
from xlx.experiment.mexa_scores import measure_coverage
from xlx.measures import abx, mexa
from xlx.report import measures
from xlx.subjects import identity, loading, states
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

MODELS = {"mini-infoxlm": "mean", "mini-llama": "weighted_mean"}


def states_of(model: str, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    return states.embed_corpus(loading.load(model), corpus, pooling=MODELS[model]).states


def rows(table: pd.DataFrame, **keys: object) -> pd.DataFrame:
    for name, value in keys.items():
        table = table[table[name] == value]
    return table


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("space", ["raw", "centred"])
def test_scores_by_layer_are_exact_scores(
    model: str, space: str, written: Written, corpus: ParallelCorpus
) -> None:
    states, masks = states_of(model, corpus), {"like length": length_matched(corpus)}
    table = rows(written.tables["layers"], model=model, space=space)
    for layer in range(len(states["en"])):
        vectors = {code: whole[layer] for code, whole in states.items()}
        vectors = centred(vectors) if space == "centred" else vectors
        exact = abx.exact(vectors, masks=masks)
        for task in measures.TOLD:
            (score,) = rows(table, layer=layer, task=task)["score"]
            assert score == pytest.approx(exact.scores[task].mean(), abs=2e-4)


def test_intervals_are_over_documents(written: Written, corpus: ParallelCorpus) -> None:
    (scores,) = checkpoint_scores(["mini-infoxlm"], corpus, pooling="mean", max_length=None)
    expected = averaged_scores([scores], measures.TOLD, by=["layer"])
    table = rows(written.tables["layers"], model="mini-infoxlm", space="raw")
    for column in ("score", "low", "high"):
        np.testing.assert_allclose(table[column], expected[column])
    layer = int(written.tables["layer_differences"]["chosen"].iloc[0])
    assert layer == average(scores, MATCHED, by=["layer"]).score.argmax()
    of_languages = rows(written.tables["languages"], model="mini-infoxlm", task="LD")
    of_lens = average(scores, "LD", by=["language"], layers=[layer])
    np.testing.assert_allclose(of_languages["score"], of_lens.score)
    np.testing.assert_allclose(of_languages["high"], of_lens.interval()[1])


def of_means(values: np.ndarray) -> Average:
    """Averages of groups of one position each, ``(n, n_groups)``."""
    k = values.shape[1]
    score = values.mean(axis=1)
    left_out = (values.sum(axis=1, keepdims=True) - values) / (k - 1)
    return Average(score, left_out - score[:, None], np.ones(k))


def test_a_layer_chosen_on_one_half_is_scored_on_the_other() -> None:
    values = np.random.default_rng(1).normal(size=(5, 9))
    chosen, score = measures.choice_elsewhere(of_means(values), 3)
    kept = np.random.default_rng(3).permutation(9) < 4
    halves = values[:, kept].mean(axis=1), values[:, ~kept].mean(axis=1)
    assert chosen == [half.argmax() for half in halves]
    expected = (halves[1][chosen[0]] + halves[0][chosen[1]]) / 2
    assert score == pytest.approx(expected, abs=1e-12)
    assert measures.choice_elsewhere(of_means(values[:, :3]), 3)[0] == []


def test_the_choice_elsewhere_is_not_too_high() -> None:
    draw = np.random.default_rng(2)
    means = [of_means(draw.normal(size=(7, 40))) for _ in range(300)]
    naive = np.mean([mean.score.max() for mean in means])
    elsewhere = np.mean([measures.choice_elsewhere(mean, 1)[1] for mean in means])
    assert naive > 0.15
    assert abs(elsewhere) < 0.03


def test_pairs_and_directions(written: Written, corpus: ParallelCorpus) -> None:
    table = rows(written.tables["pairs"], model="mini-infoxlm")
    layer = int(table["layer"].iloc[0])
    states = states_of("mini-infoxlm", corpus)
    groups = {"documents": parallel.documents(corpus)}
    masks = {"like length": length_matched(corpus)}
    exact = abx.exact(states, layers=[layer], pairs=[("de", "ar")], masks=masks, groups=groups)
    row = rows(table, language_1="de", language_2="ar", task=MATCHED).iloc[0]
    score = exact.scores[MATCHED][0, 0].mean()
    assert row["score"] == pytest.approx(score, abs=2e-4)
    sizes = pd.Series(groups["documents"]).value_counts().sort_index()
    left_out = exact.left_out["documents"][MATCHED][0, 0]
    low, high = Average(np.array(score), left_out - score, sizes.to_numpy()).interval()
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=2e-3)

    def found(query: str, among: str) -> float:
        """The share of queries whose translation is the nearest, said slowly."""
        one, other = (
            x / np.linalg.norm(x, axis=1, keepdims=True)
            for x in (states[code][layer].astype(float) for code in (query, among))
        )
        return float(((one @ other.T).argmax(axis=1) == np.arange(len(corpus))).mean())

    ways = rows(written.tables["retrieval"], model="mini-infoxlm")
    assert len(ways) == 12
    for row in ways.itertuples():
        assert row.score == pytest.approx(found(row.query, row.among), abs=1e-6)
        assert row.low <= row.score <= row.high


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("states", ["raw", "centred"])
def test_coverage_is_mexa(
    model: str, states: str, written: Written, corpus: ParallelCorpus
) -> None:
    moved = states_of(model, corpus)
    if states == "centred":
        moved = mexa.without_offset(moved)
    scores = mexa.scores(moved, "en")
    for how in ("max", "mean"):
        table = rows(written.tables["coverage"], model=model, layers=how, states=states)
        expected = scores.pooled(how)
        for column in ("mu", "low", "high"):
            np.testing.assert_allclose(table[column], expected[column], atol=1e-12)
        assert table["language"].tolist() == expected["language"].tolist()
    assert set(table["script"]) == {"Latn", "Jpan", "Arab"}


def test_coverage_of_a_shipped_member_is_what_notebooks_ask_for(
    written: Written, corpus: ParallelCorpus
) -> None:
    """By the call of mexa-1, which reads the text anew: batches round otherwise."""
    covered = measure_coverage(
        "mini-llama", corpus, poolings=["weighted_mean"], alternatives=False
    )["weighted_mean"]
    table = rows(written.tables["coverage"], model="mini-llama", layers="max", states="raw")
    # A sentence that is left untranslated has one vector in both languages in a report alone.
    np.testing.assert_allclose(table["mu"], covered.scores.pooled("max")["mu"], atol=1 / N)


def test_the_untrained_model_of_a_series_is_its_first_step(tmp_path: Path) -> None:
    first = measures.before_training("mini-infoxlm")
    assert (first.name, first.step) == ("mini-infoxlm", 0)
    own = tiny.save(tmp_path / "own")
    assert measures.before_training(str(own)) == identity.twin_of(str(own))


def test_references_are_on_the_same_text(written: Written, corpus: ParallelCorpus) -> None:
    table = written.tables["references"]
    others = set(rows(table, model="mini-infoxlm")["reference"])
    assert others == {measures.UNTRAINED, surface.BAG, surface.LENGTH_ALONE, "mini-llama"}
    apart = table["score"] - table["reference_score"]
    np.testing.assert_allclose(table["difference"], apart, atol=1e-12)
    bag = surface.subword_bag("mini-infoxlm", corpus)
    (row,) = rows(table, model="mini-infoxlm", reference=surface.BAG, task=MATCHED).itertuples()
    assert row.reference_score == pytest.approx(float(average(bag, MATCHED, layers=[0]).score))
    (own,) = rows(
        written.tables["layers"], model="mini-infoxlm", space="raw", task=MATCHED, layer=row.layer
    ).itertuples()
    assert row.score == pytest.approx(own.score, abs=1e-12)
    trained = rows(table, reference=measures.UNTRAINED, task=MATCHED, model="mini-infoxlm")
    assert (trained["low"] > 0).all()  # training taught it something


def test_a_language_of_unknown_pieces_is_told(corpus: ParallelCorpus) -> None:
    runes = tuple(f"{'ᚠᚢᚦ' * (1 + i % 4)} {'ᛒᛖ' * (i // 4)} {i}" for i in range(len(corpus)))
    texts = {"en": corpus.sentences["en"], "xx": runes}
    mixed = parallel.ParallelCorpus("mixed", texts, corpus.ids, corpus.domains, "", "")
    model = measures.reported_model("mini-mbert")
    with pytest.warns(UserWarning, match="does not read all"):
        (scores,) = checkpoint_scores([model.name], mixed, pooling="mean")
    measured = measures.Measured(model, scores, scores, {}, 0)
    table = measures.reading_rows(measured, mixed).set_index("language")
    assert table.loc["xx", "unknown"] > 0.2
    assert table.loc["en", "unknown"] < 0.05


def test_two_models_of_one_name_are_told_apart() -> None:
    one, other = (
        measures.ReportedModel(name, "step-1", "encoder", "mean", name * 8) for name in "ab"
    )
    assert [x.label for x in measures.labelled_apart([one, other])] == [
        "step-1 (aaaaaa)", "step-1 (bbbbbb)",
    ]  # fmt: skip
    assert measures.labelled_apart([one]) == [one]
