"""Probes of a report are those of the lenses, at its layer, in languages of text and data."""

import pytest

from xlx.experiment import probing, topics
from xlx.experiment.probing import ProbeSetup
from xlx.report import probed_labels
from xlx.report.measures import Measured, reported_model
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

SIZES = probed_labels.ProbeSizes((60, 20, 60), 20, (0, 1))


@pytest.fixture(scope="module")
def text(corpus: ParallelCorpus) -> ParallelCorpus:
    """One language that has labels for both, one for topics alone, one for nothing."""
    rows = corpus.sentences
    sentences = {"en": rows["en"], "sw": rows["de"], "tlh": rows["ja"]}
    return parallel.ParallelCorpus("own", sentences, corpus.ids, corpus.domains, "", "")


def test_languages_are_those_of_text_and_data(text: ParallelCorpus) -> None:
    codes = probed_labels.probed_codes(text)
    assert codes == {"parts of speech": {"en": "en"}, "topics": {"en": "en", "sw": "sw"}}


def test_numbers_are_those_of_the_lenses(text: ParallelCorpus) -> None:
    measured = Measured(reported_model("mini-infoxlm"), None, None, {}, 2)
    table = probed_labels.probe_rows(measured, text, SIZES).set_index(["probed", "language"])
    assert list(table.index) == [("parts of speech", "en"), ("topics", "en"), ("topics", "sw")]
    setup = ProbeSetup("POS", *SIZES.words, seeds=SIZES.seeds)
    words = probing.monolingual("mini-infoxlm", setup, ["en"])
    by_layer = words.groupby("layer")["accuracy"].mean()
    row = table.loc[("parts of speech", "en")]
    assert (row["layer"], row["best_layer"]) == (2, by_layer.idxmax())
    assert row["accuracy"] == pytest.approx(by_layer[2])
    assert row["majority"] == words["majority"].iloc[0]
    assert row["low"] < row["accuracy"] < row["high"]
    learnt = topics.probe_topics(["mini-infoxlm"], ["sw"], n_test=20, seeds=SIZES.seeds)
    learnt = learnt.query("language == 'sw' and layer == 2 and not centred")
    assert table.loc[("topics", "sw"), "accuracy"] == pytest.approx(learnt["accuracy"].mean())
    assert table.loc[("topics", "sw"), "learnt_in"] == "en"
