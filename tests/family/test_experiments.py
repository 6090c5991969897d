"""The tables of the members, on shipped members and made-up losses."""

import pandas as pd
import pytest

from xlx.family import experiments, members
from xlx.text.corpora import ParallelCorpus

NAMES = ["mini-xlmr", "mini-mbert", "mini-llama-en80"]
TEXT = {
    "en": ("Too short.", "A sentence of fifty or so characters, as it is due.", "And a last one."),
    "fi": ("Lyhyt.", "Lause, jossa on noin viisikymmentä merkkiä, kuten kuuluu.", "Viimeinen."),
}


@pytest.fixture(scope="module")
def cutters() -> experiments.Cutters:
    return members.distinct_vocabularies(NAMES)


def test_vocabularies_and_pieces(cutters: experiments.Cutters) -> None:
    table = experiments.vocabulary_table(cutters)
    assert table["subwords"].to_dict() == {"BPE": 6000, "WordPiece": 6000}
    assert table.loc["BPE", "models"] == "mini-xlmr, mini-llama-en80"
    corpus = ParallelCorpus("toy", TEXT, ("0", "1", "2"), ("",) * 3, "none", "made up")
    pieces = experiments.example_pieces(corpus, cutters, ["en", "fi"])
    assert pieces.loc[("en", "characters"), "sentence"] == TEXT["en"][1]
    row = pieces.loc[("fi", "BPE")]
    assert row["sentence"].replace(" ", "").replace("▁", " ").strip() == TEXT["fi"][1]
    assert row["pieces"] == len(row["sentence"].split(" "))


def test_recipes_differ_in_settings() -> None:
    table = experiments.unlike({"mini-mbert": "mini-xlmr"})
    assert table.index.tolist() == [("mini-mbert", "mini-xlmr", "architecture")]
    assert table.iloc[0].tolist() == ["xlm-roberta", "bert"]
    assert experiments.decoders(NAMES) == ["mini-llama-en80"]


def test_passes_and_losses() -> None:
    passes = pd.DataFrame(
        [("m", "en", 0.8, 3.0, 10), ("m", "de", 0.15, 0.5, 30), ("m", "fr", 0.05, 0.1, 20)],
        columns=["model", "language", "share", "passes", "subwords"],
    )
    row = experiments.passes_table(passes).loc["m"]
    assert row.tolist() == pytest.approx([0.8, 3.0, 0.1, 0.3, 0.5])
    assert experiments.by_amount(["xx", "en", "fr", "de"], passes) == ["de", "fr", "en", "xx"]
    curves = pd.DataFrame(
        [
            ("b", 50, "mlm", 9.0),
            ("b", 100, "mlm", 5.0),
            ("b", 100, "tlm", 6.0),
            ("a", 80, "mlm", 4),
        ],
        columns=["model", "step", "objective", "loss"],
    )
    ends = experiments.final_losses(curves)
    assert ends.index.tolist() == ["b", "a"]
    assert ends.loc["b"].tolist() == [5.0, 6.0]


def test_held_out_losses_are_grouped(cutters: experiments.Cutters) -> None:
    losses = experiments.grouped_losses(NAMES, cutters)
    groups = losses.groupby("model")["group"].first().to_dict()
    assert groups == {
        "mini-xlmr": "masked, BPE",
        "mini-mbert": "masked, WordPiece",
        "mini-llama-en80": "next, BPE",
    }
    table = experiments.held_out_table(losses)
    own = losses[losses["model"] == "mini-xlmr"].set_index("language")["loss"]
    row = table.loc["masked, BPE", "mini-xlmr"]
    assert row["English"] == own["en"]
    assert row["mean of the others"] == pytest.approx(own.drop("en").mean())
    assert (row["lowest"], row["highest"]) == (own.idxmin(), own.idxmax())


def test_fertilities_are_ordered_by_the_first_vocabulary() -> None:
    cut = pd.DataFrame(
        {
            "language": ["de", "fi"] * 2,
            "vocabulary": ["BPE"] * 2 + ["WordPiece"] * 2,
            "tokens_per_word": [3.0, 2.0, 1.0, 2.0],
            "tokens_per_character": 0.5,
            "unknown": 0.0,
            "bytes": 0.1,
            "round_trip": 1.0,
        }
    )
    table = experiments.fertility_table(cut)
    assert table.index.tolist() == ["fi", "de"]
    assert table["tokens_per_word", "WordPiece"].tolist() == [2.0, 1.0]
