"""`xlx abx`, and what it shares with `mexa`: saved vectors, checkpoints; what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from xlx.experiment.minimal_pairs import load_pairs
from xlx.experiment.scoring import BAG, LENGTH_ALONE
from xlx.measures import abx, mexa
from xlx.report.command import main
from xlx.report.tables import UNTRAINED
from xlx.subjects import loading, states
from xlx.text import parallel
from xlx.text.files import TextError

CODES = ("en", "de", "sw")
PAIRS = """A,B,X,kind,document
the dog saw a cat,the cat saw a dog,the dog saw a cat.,roles,1
the man saw a bird,the bird saw a man,the bird saw a man.,roles,1
it had 7 and 12,it had 12 and 7,hatte 7 und 12,numbers,2
it had 8 and 30,it had 30 and 8,zwei,numbers,3
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three checkpoints, as a trainer leaves them; the weights of the second are torn."""
    for step in (90, 100, 1000):
        tiny.save(tmp_path / "run" / f"checkpoint-{step}", seed=step, layers=1)
    weights = tmp_path / "run" / "checkpoint-100" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    return tmp_path / "run"


def vectors(seed: int = 1, n: int = 16) -> dict[str, np.ndarray]:
    """Two layers in which English and German share much, and Swahili nothing."""
    rng = np.random.default_rng(seed)
    shared, noise = rng.normal(size=(2, n, 8)), rng.normal(size=(3, 2, n, 8))
    parts = (shared + noise[0], shared + noise[1], noise[2].astype(np.float32))
    return dict(zip(("en", "deu", "sw"), parts, strict=True))


def test_layers_and_pairs_are_those_of_the_library(
    tmp_path: Path, text: Path, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, out = tiny.save(tmp_path / "own", "llama"), tmp_path / "out"
    given = ["abx", model, "--text", text, "--out", out, "--pooling", "mean"]
    assert "minutes to read the text" in shown(*given, "--estimate")
    assert not out.exists()
    output = shown(*given)
    encoder, corpus = loading.load(model), parallel.load(text)
    read = states.embed_corpus(encoder, corpus).states
    exact = abx.exact(read)
    layers, pairs = (pd.read_csv(out / f"{name}.csv") for name in ("layers", "pairs"))
    for task in abx.SCORES:
        expected = exact.scores[task].mean(axis=-1)
        rows = layers[(layers["space"] == "raw") & (layers["task"] == task)]
        np.testing.assert_allclose(rows["score"], expected.mean(axis=1), atol=1e-4)
        rows = pairs[pairs["task"] == task]
        np.testing.assert_allclose(rows["score"], expected.ravel(), atol=1e-4)
        assert (rows["low"] <= rows["score"]).all()
        assert (rows["score"] <= rows["high"]).all()
        assert [*rows["layer"].unique()] == [0, 1, 2]
    beside = pd.read_csv(out / "references.csv")
    assert {*beside["reference"]} == {UNTRAINED, BAG, LENGTH_ALONE}
    less = beside["score"] - beside["reference_score"]
    np.testing.assert_allclose(beside["difference"], less, atol=1e-9)
    page = (out / "abx.html").read_text(encoding="utf-8")
    sentences = [x for x in output.splitlines() if x.startswith("own: Its MD")]
    assert len(sentences) == 3
    assert all(x in page for x in sentences)
    monkeypatch.setattr(states, "hidden_states", lambda *_: pytest.fail("a model reads again"))
    monkeypatch.setattr("xlx.report.options.estimate", lambda *_: "")
    shown(*given)


@pytest.mark.parametrize("written", [PAIRS, PAIRS.replace(",", "\t")])
def test_minimal_pairs_of_a_table(tmp_path: Path, shown: Callable[..., str], written: str) -> None:
    model, file, out = tiny.save(tmp_path / "own"), tmp_path / "own.csv", tmp_path / "out"
    file.write_text(written, encoding="utf-8")
    output = shown("abx", model, "--pairs", file, "--out", out)
    table = pd.read_csv(out / "pairs.csv").set_index(["kind", "model", "layer"]).sort_index()
    spelt = table.xs("edit distance", level="model")["share"]
    # X is A and a dot, then B and one; of numbers it has the order of A, then nothing of either
    assert spelt.to_dict() == {("all", 0): 0.625, ("roles", 0): 0.5, ("numbers", 0): 0.75}
    rows = [*pd.read_csv(file, sep=None, engine="python")[["A", "B", "X"]].itertuples(index=False)]
    right, encoder = [], loading.load(model)
    for row in rows:
        a, b, x = np.moveaxis(states.embed(encoder, [*row]).states.astype(float), 1, 0)
        near = [
            (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
            for y in (a, b)
        ]
        right.append((1 + np.sign(near[0] - near[1])) / 2)
    share = np.mean(right, axis=0)
    ours = table.loc[("all", "own")]
    np.testing.assert_allclose(ours["share"], share, atol=1e-4)
    np.testing.assert_allclose(ours["less edit distance"], share - 0.625, atol=1e-4)
    assert table.loc[("roles", "own", 0), "n"] == 2
    assert np.isnan(table.loc[("roles", "own", 0), "share low"])  # they are of one document
    assert (ours["share low"] <= ours["share"]).all()
    assert f"X nearer to A, last layer: share {share[-1]:.2f} (" in output
    assert "less a bag of subwords" in output


@pytest.mark.parametrize("command", ["abx", "mexa"])
def test_checkpoints_are_one_table_and_a_broken_one_is_named(
    tmp_path: Path, text: Path, run: Path, shown: Callable[..., str], command: str
) -> None:
    output = shown(command, run, "--text", text, "--out", tmp_path / "out")
    assert "left out: checkpoint-100: " in output
    name = {"abx": "layers", "mexa": "mexa"}[command]
    table = pd.read_csv(tmp_path / "out" / f"{name}.csv")
    assert [*table["step"].unique()] == [90, 1000]
    shown(command, run / "checkpoint-1000", "--text", text, "--out", tmp_path / "alone")
    alone = pd.read_csv(tmp_path / "alone" / f"{name}.csv")
    last = table[table["step"] == 1000].drop(columns="step").reset_index(drop=True)
    pd.testing.assert_frame_equal(last, alone)


def test_saved_vectors_stand_for_a_model(
    tmp_path: Path, text: Path, shown: Callable[..., str]
) -> None:
    file, saved = tmp_path / "own.npz", vectors()
    np.savez(file, **saved)
    output = shown("abx", "--states", file, "--out", tmp_path / "abx")
    assert "there is no bag, and no twin" in output
    assert "lengths are not known" in output
    layers = pd.read_csv(tmp_path / "abx" / "layers.csv").query("space == 'raw'")
    expected = abx.exact(saved, measures=["LD", "MD"])
    for task in ("LD", "MD"):
        means = expected.scores[task].mean(axis=(1, 2))
        np.testing.assert_allclose(layers.query("task == @task")["score"], means, atol=1e-4)
    matched = layers.query("task == 'MD, like length'")["score"].to_numpy()
    np.testing.assert_allclose(matched, layers.query("task == 'MD'")["score"], atol=1e-4)
    shown("mexa", "--states", file, "--out", tmp_path / "mexa")
    mu = mexa.scores(saved).pooled("max")["mu"]
    table = pd.read_csv(tmp_path / "mexa" / "mexa.csv")
    np.testing.assert_allclose(table["saved vectors"], mu, atol=1e-4)
    assert not {"bag", "above bag"} & {*table}
    output = shown("abx", "--states", file, "--text", text, "--out", tmp_path / "with-text")
    assert "lengths are not known" not in output
    pairs = pd.read_csv(tmp_path / "with-text" / "pairs.csv")
    assert {*pairs["language_1"], *pairs["language_2"]} == {*CODES}  # as the text calls them


def test_every_language_is_ranked_as_pivot(tmp_path: Path, shown: Callable[..., str]) -> None:
    saved, file = vectors(2), tmp_path / "own.npz"
    np.savez(file, **saved)
    shown("mexa", "--states", file, "--pivots", "all", "--out", tmp_path / "all")
    table = pd.read_csv(tmp_path / "all" / "pivots.csv").set_index("pivot")
    mu = {x: mexa.scores(saved, x).mu.mean(axis=1) for x in saved}
    layer = int(sum(mu.values()).argmax())
    means = {x: by_layer[layer] for x, by_layer in mu.items()}
    assert table["mean"].to_dict() == pytest.approx(means, abs=1e-4)
    assert [*table["rank"]] == sorted(table["rank"])
    assert table.index[-1] == "sw"
    shown("mexa", "--states", file, "--pivots", "sw,english", "--out", tmp_path / "two")
    two = pd.read_csv(tmp_path / "two" / "pivots.csv").set_index("pivot")
    assert two["mean"].to_dict() == {x: table["mean"][x] for x in ("en", "sw")}


def test_a_bag_is_ranked_beside_the_model(
    tmp_path: Path, text: Path, shown: Callable[..., str]
) -> None:
    model, out = tiny.save(tmp_path / "own"), tmp_path / "out"
    shown("mexa", model, "--text", text, "--pivots", "all", "--out", out)
    table = pd.read_csv(out / "pivots.csv")
    less = table["mean"] - table[f"{BAG} mean"]
    np.testing.assert_allclose(table[f"less {BAG}"], less, atol=2e-4)
    assert {"low", "high", f"{BAG} rank"} <= {*table}


def test_tables_of_pairs_that_are_none(tmp_path: Path, refused: Callable[..., str]) -> None:
    file = tmp_path / "own.csv"
    rows = PAIRS.splitlines()
    for lines, says in (
        (["A,B\n", "a,b\n"], "lacks the column X: its columns are A, B"),
        ([rows[0], rows[1]], "has 1 pair"),
        ([*rows[:2], "a,b, ,roles,1"], "pair 2: X is empty"),
        ([*rows[:2], "a,b,x,,1"], "pair 2: kind is empty"),
        ([*rows[:2], "a,a,x,roles,1"], "pair 2: B is A"),
        ([*rows[:2], "a,b,x"], "3 cells under a header of 5"),
    ):
        file.write_text("\n".join(lines), encoding="utf-8")
        assert says in refused("abx", "mini-xlmr", "--pairs", file)
    assert "no file" in refused("abx", "mini-xlmr", "--pairs", tmp_path / "none.csv")
    for option in ("--text", "--languages"):
        assert option in refused("abx", "mini-xlmr", "--pairs", file, option, "en")


def test_saved_vectors_that_are_none(
    tmp_path: Path, text: Path, refused: Callable[..., str]
) -> None:
    file, saved = tmp_path / "own.npz", vectors()
    broken = saved["sw"].copy()
    broken[1, 3, 0] = np.nan
    for changes, says in (
        ({"sw": broken}, "sw, position 3, layer 1: the vector holds NaN"),
        ({"sw": saved["sw"][:, :-1]}, "embed all languages of one corpus with one model"),
        ({"sw": saved["sw"][0]}, "sw have the shape (16, 8)"),
        ({"sw": np.array([[{}]])}, "no .npz of arrays"),
        ({"sw": np.array([["x"]])}, "give real numbers"),
    ):
        np.savez(file, **(saved | changes))
        for command in ("abx", "mexa"):
            assert says in refused(command, "--states", file)
    np.savez(file, en=saved["en"])
    assert "1 language" in refused("mexa", "--states", file)
    file.write_bytes(b"PK\x03\x04 torn")
    assert "no .npz" in refused("abx", "--states", file)
    np.save(tmp_path / "own.npy", saved["en"])
    assert "no .npz" in refused("abx", "--states", tmp_path / "own.npy")
    np.savez(file, **{code: array[:, :9] for code, array in saved.items()})
    assert "9 sentences and text 16" in refused("abx", "--states", file, "--text", text)
    np.savez(file, **saved)
    assert "tlh" in refused("mexa", "--states", file, "--languages", "tlh")
    assert "--pooling is of models" in refused("mexa", "--states", file, "--pooling", "mean")
    for given in ([], ["mini-xlmr", "--states", file]):
        assert "a MODEL, or --states FILE" in refused("mexa", *given)
    assert "ja" in refused("mexa", "--states", file, "--pivots", "ja")


def test_runs_that_are_none(tmp_path: Path, run: Path, text: Path, refused: Callable) -> None:
    (tmp_path / "plain").mkdir()
    says = refused("abx", tmp_path / "plain", "--text", text, "--checkpoints")
    assert "no subfolder called step-<number> or checkpoint-<number>" in says
    for step in (90, 1000):
        (run / f"checkpoint-{step}" / "config.json").unlink()
    assert "none of its 3 checkpoints can be read" in refused("mexa", run, "--text", text)
    shutil.copytree(tiny.save(tmp_path / "whole"), run, dirs_exist_ok=True)
    # now it is a model itself, and its checkpoints have to be asked for
    asked = refused("mexa", run, "--text", text, "--checkpoints")
    assert "none of its 3 checkpoints" in asked


def test_what_would_be_passed_over_is_refused(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    first, other, out = (tmp_path / x for x in ("first", "other", "out"))
    for seed, folder in enumerate((first, other)):
        tiny.save(folder, seed=seed, layers=1)
    base = ["--text", str(text), "--out", str(out)]
    assert main(["abx", str(first), *base]) == 0
    page = (out / "abx.html").read_bytes()
    refusals = {
        ("abx", str(other), *base): "abx.html is of another model: name another folder",
        ("abx", str(first), *base, "--tasks", "no.csv"): "--tasks is of MEXA, and not of ABX",
        ("mexa", str(first), *base, "--pivots", "all", "--pivot", "de"): "--pivot is of one pivot",
        ("mexa", str(first), *base, "--pivots", "all", "--tasks", "x"): "--tasks is of one pivot",
    }
    capsys.readouterr()
    for given, said in refusals.items():
        assert main(given) == 2
        assert said in capsys.readouterr().err
    assert (out / "abx.html").read_bytes() == page


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"A": "a b", "B": "a\u200b b", "X": "x"}] * 2, "pair 1: B is A"),
        ([{"A": "a", "B": "b", "X": "x", "document": "d"}, {"A": "a", "B": "b"}], "pair 2: X is"),
        ([{"A": "a", "B": "b", "X": "x", "document": y} for y in ("d", None)], "pair 2: document"),
    ],
)
def test_pairs_with_gaps_are_named(tmp_path: Path, rows: list[dict], said: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(TextError, match=said):
        load_pairs(file)
