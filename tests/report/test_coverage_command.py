"""`xlx mexa`: its rows against the scores themselves, what is stored, what it refuses."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from xlx.measures import mexa
from xlx.results import paths
from xlx.results.settings import settings
from xlx.subjects import loading, states
from xlx.text import languages, parallel


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tiny.save(tmp_path / "own", "llama")


def scores_csv(folder: Path, english: str = "0.5") -> Path:
    file = folder / "scores.csv"
    rows = f"QA,own,en,{english}\n" * bool(english) + "QA,own,de,0.3\n"
    file.write_text("task,model,language,score\n" + rows, encoding="utf-8")
    return file


def test_rows_are_the_scores_of_the_paper(
    tmp_path: Path,
    model: Path,
    text: Path,
    shown: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, scores = tmp_path / "out", scores_csv(tmp_path)
    given = ["mexa", model, "--text", text, "--out", out, "--special-tokens", "--tasks", scores]
    output = shown(*given, "--estimate")
    assert "computing 2 languages, raw and centred: about" in output
    assert not out.exists()
    output = shown(*given).splitlines()
    table = pd.read_csv(out / "mexa.csv").set_index("language")
    assert list(table.index) == ["de", "sw"]
    known = table.loc["sw", ["name", "family", "script"]]
    assert [*known] == ["Swahili", "Atlantic-Congo", "Latn"]
    corpus, encoder = parallel.load(str(text)), loading.load(model)
    for pooling in ("weighted_mean", "last"):
        vectors = {
            code: states.embed(encoder, x, pooling=pooling, special_tokens=True).states
            for code, x in corpus.sentences.items()
        }
        mu = mexa.scores(vectors).mu
        np.testing.assert_allclose(table[pooling], mu.max(axis=0), atol=1e-4)
        np.testing.assert_array_equal(table[f"{pooling} layer"], mu.argmax(axis=0))
        assert f"{pooling} centred high" in table
    np.testing.assert_allclose(table["adjusted, QA"], table["weighted_mean"] * 0.5, atol=1e-4)
    assert list(table["band, QA"]) == list(mexa.bands(table["adjusted, QA"]).astype(str))
    np.testing.assert_allclose(table["less bag"], table["weighted_mean"] - table["bag"], atol=2e-4)
    assert ((table["above bag"] == "yes") == (table["less bag low"] > 0)).all()
    assert output[-5].startswith("2 languages with en: MEXA of own (weighted mean) is")
    assert output[-2].startswith("above a bag of its own subwords in")
    page = (out / "mexa.html").read_text(encoding="utf-8")
    assert all(line in page for line in output[-5:-1])
    monkeypatch.setattr(states, "hidden_states", lambda *_: pytest.fail("a model reads again"))
    assert "nothing is computed" in shown(*given)


def test_a_public_model_is_answered_without_its_weights(
    tmp_path: Path, shown: Callable[..., str]
) -> None:
    with settings(ledger=paths.RESULTS):
        output = shown("mexa", "multilingual-e5-small", "--out", tmp_path)
    assert "nothing is computed" in output
    table = pd.read_csv(tmp_path / "mexa.csv")
    assert len(table) == 202
    assert not (table[["name", "family", "script"]] == "?").any(axis=None)
    assert table["above bag"].eq("yes").sum() > 190


def test_every_language_of_flores_has_a_name_a_family_and_a_script() -> None:
    for code, label in parallel.tags("flores200-100").items():
        name, family, script = languages.kind_of_language(code)
        assert {name, family}.isdisjoint({code, "?"})
        assert family == languages.family_of(label)
        assert script == {"Hang": "Kore"}.get(label[-4:], label[-4:])


def test_what_cannot_be_is_said_in_a_sentence(
    model: Path,
    text: Path,
    tmp_path: Path,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores_csv(tmp_path, english="")
    monkeypatch.chdir(tmp_path)
    for option, value, says in (
        ("--languages", "de", "alone, and"),
        ("--pooling", "cls", "pooling 'cls'"),
        ("--tasks", "scores.csv", "no score in en"),
    ):
        assert says in refused("mexa", model, "--text", text, option, value)
