"""What was foreseen of held-out models, how it is scored, and likelihoods of decoders."""

import hashlib
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import predictions
from shared import held_out
from shared.claims import beside_shifts
from shared.likelihood import Texts, bits
from tests import tiny
from xlx.results import paths, provenance
from xlx.results.ledger import Ledger
from xlx.results.settings import settings
from xlx.subjects import loading
from xlx.subjects.identity import public_models, twin_of
from xlx.text import labelled, parallel

TABLES = sorted((paths.DATA / "predictions").glob("*-*.csv"))


def test_every_result_of_a_held_out_model_carries_the_hash_of_what_was_foreseen() -> None:
    overview = Ledger(paths.RESULTS).overview()
    assert len(TABLES) == 3
    for table in TABLES:
        model, content = public_models()[table.stem], hashlib.sha256(table.read_bytes()).hexdigest()
        rows = overview[overview["ask"].str.contains(model.fingerprint, regex=False)]
        assert set(rows["predictions"]) <= {content}
        assert provenance.predictions_of(model.fingerprint) == {"predictions": content}


def test_intervals_hold_their_values_and_the_narrow_lies_in_the_wide() -> None:
    singles = 0
    for path in TABLES:
        table = predictions.foreseen(path.stem)
        ends = table[["low_95", "low_80", "value", "high_80", "high_95"]].dropna()
        assert (ends.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
        assert table.index.is_unique
        singles += table["hypothesis"].isna().sum()
    assert singles >= 40


@pytest.mark.parametrize(
    ("bound", "inside", "outside"),
    [
        ("> 0.75", [0.76], [0.75, -1]),
        ("<= 0", [0], [0.1]),
        ("< -0.6", [-0.7], [0]),
        ("within -0.3 to 0.3", [-0.3, 0], [0.31]),
        ("outside 0.8 to 1.25", [0.7], [1]),
    ],
)
def test_bounds_are_read(bound: str, inside: list[float], outside: list[float]) -> None:
    assert all(predictions.bounded(bound, x) for x in inside)
    assert not any(predictions.bounded(bound, x) for x in outside)


def test_what_came_is_set_beside_what_was_foreseen() -> None:
    model = TABLES[0].stem
    values = predictions.foreseen(model)["value"].dropna()
    table = pd.DataFrame(
        {"model": model, "measured": values, **dict.fromkeys(["low", "high", "p"], np.nan)}
    )
    table.loc["mu de", "measured"] = 0.0
    table.loc["r mu topics", ["measured", "low", "high"]] = 0.76, 0.7, 0.8
    table.loc["partial r mu topics", ["measured", "low", "high"]] = 0.9, 0.85, 0.93
    judged = predictions.judged(table.rename_axis("id").reset_index())
    single = judged[judged["measured"].notna()].set_index("id")
    assert not single.loc["mu de", "within 95"]
    assert single.drop(index=["mu de", "r mu topics"])["within 80"].all()
    counted = predictions.coverage(judged).set_index("level")
    assert (counted["of"] - counted["within"] == 1).all()
    verdicts = predictions.verdicts(judged).set_index(["model", "id"])["verdict"]
    assert (verdicts.drop(index=model, level=0) == "open").all()
    assert verdicts[model, "r mu topics"] == "open"
    assert verdicts[model, "partial r mu topics"] == "held"
    less = predictions.errors(judged).set_index(["quantity", "baseline"])
    assert less.loc[("topics", "by_subwords"), "ours"] == 0
    assert less.loc[("mu", "by_subwords"), "ours"] == pytest.approx(0.99 / 16)


@pytest.mark.parametrize(("low", "verdict"), [(-0.1, "failed"), (0.0, "failed"), (0.05, "held")])
def test_an_interval_that_reaches_what_refutes_it_fails(low: float, verdict: str) -> None:
    key = "mu above idf bag, 1.5 less 0.5 billion"
    row = {"model": predictions.SIZES[0], "id": key, "measured": 0.2, "low": low, "high": 0.3}
    judged = predictions.judged(pd.DataFrame([row | {"p": np.nan}]))
    verdicts = predictions.verdicts(judged).set_index("id")["verdict"]
    assert verdicts[key] == verdict


@pytest.mark.parametrize(("p", "verdict"), [(0.01, "held"), (0.17, "failed")])
def test_a_course_that_shifts_of_layers_have_too_is_refuted(p: float, verdict: str) -> None:
    key = "r MEXA tense abroad given depth"
    row = {"model": held_out.MODELS[2], "id": key, "measured": 0.23, "low": np.nan, "high": np.nan}
    judged = predictions.judged(pd.DataFrame([row | {"p": p}]))
    verdicts = predictions.verdicts(judged).set_index(["model", "id"])["verdict"]
    assert verdicts[held_out.MODELS[2], key] == verdict


def test_what_an_earlier_model_has_is_copied_by_language_and_kind() -> None:
    rows = [
        (held_out.MODELS[0], "mu de"),
        (held_out.MODELS[1], "mu de"),
        (held_out.MODELS[1], "LD"),
    ]
    with settings(ledger=paths.RESULTS):
        copied = predictions.copied(pd.DataFrame(rows, columns=["model", "id"]))
        both = [predictions.of_earlier(x).loc["de", "mu"] for x in predictions.EARLIER][:2]
    assert copied[:2] == both
    assert both[0] != both[1]
    assert np.isnan(copied[2])


def test_a_course_over_layers_is_set_beside_its_shifts() -> None:
    rng, depth = np.random.default_rng(1), np.linspace(0, 1, 25)
    lens, other = rng.normal(size=(2, 25))
    r, p = beside_shifts(lens, lens + 5 * depth - 3 * depth**2)
    assert (r, p) == (pytest.approx(1), 1 / 25)
    r, p = beside_shifts(lens + 9 * depth, other - 4 * depth**2)
    rest = [x - np.polyval(np.polyfit(depth, x, 2), depth) for x in (lens, other)]
    literal = [np.corrcoef(np.roll(rest[0], i), rest[1])[0, 1] for i in range(25)]
    assert r == pytest.approx(literal[0])
    assert p == pytest.approx(np.mean(literal >= literal[0] - 1e-9))


def test_a_twin_stands_beside_its_model_in_the_languages_that_both_are_asked_in() -> None:
    model = held_out.MODELS[0]
    with settings(ledger=paths.RESULTS):
        trained, _, again, twin = held_out.controlled(model)
        values = predictions.of_layers(model, held_out.plans()[model])
    asked, both = ({*map(frozenset, x.pairs)} for x in (trained, again))
    few = map(frozenset, combinations(held_out.languages("few wmt"), 2))
    assert both == {*few} < asked
    assert (again.texts, again.pairs) == (twin.texts, twin.pairs)
    lowest = [x.scores["LD"].mean(axis=(1, 2)).min() for x in (twin, again)]
    assert values["LD lowest, twin"] == pytest.approx(lowest[0])
    less, low, high = values["LD lowest, twin less trained"]
    assert low < less < high
    assert less == pytest.approx(lowest[0] - lowest[1])


def test_others_are_of_most_like_length() -> None:
    text = parallel.load("flores200-100", ["de"])
    for row in held_out.candidates(text, "de"):
        apart = sorted(abs(len(x) - len(row[0])) for x in text.sentences["de"])
        assert [abs(len(x) - len(row[0])) for x in row] == apart[:5]


@pytest.mark.parametrize("kind", ["gemma2", "mistral", "llama"])
def test_bits_are_those_of_a_literal_reading(kind: str, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / kind, kind)
    model, words = loading.language_model(folder)
    texts = Texts(["", "der Hund\n"], [["die Katze", "a", "ein langer Satz"]] * 2)
    value = bits(folder, texts)
    for i, context in enumerate(texts.contexts):
        for j, text in enumerate(texts.following[i]):
            before, after = (
                words(x, add_special_tokens=False)["input_ids"] for x in (context, text)
            )
            ids = torch.tensor([[model.config.bos_token_id, *before, *after]])
            costs = -model(ids).logits[0].double().log_softmax(dim=1) / np.log(2)
            literal = sum(costs[len(before) + k, piece].item() for k, piece in enumerate(after))
            assert value["bits"][i, j] == pytest.approx(literal, rel=1e-4)
            assert value["tokens"][i, j] == len(after)


def test_who_foresees_no_next_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="foresees no next word"):
        loading.language_model(tiny.save(tmp_path / "bert", "bert"))
    with pytest.raises(ValueError, match="lm_head"):
        loading.language_model(tiny.save(tmp_path / "qwen2", "qwen2"))


@pytest.mark.parametrize("model", ["embeddinggemma-300m", "qwen2.5-coder-0.5b-instruct"])
def test_probes_stand_beside_words_and_beside_the_twin(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [("en", "en", "SubjNum"), ("en", "de", "Tense"), ("en", "ru", "Tense")]
    bases = [f"pud:n{i // 2:03}{i:03}" for i in range(40)]
    answers = pd.DataFrame(
        [(x, y, task, base, i % 2) for x, y, task in pairs for i, base in enumerate(bases)],
        columns=["source", "target", "task", "base", "label"],
    )
    wrong = {model: [], "words": [("en", 8)], twin_of(model): [("de", 20), ("ru", 10)]}

    def read(call: object, subject: object, *_: object) -> tuple[None, pd.DataFrame]:
        name = getattr(subject, "name", subject)
        right = np.ones(len(answers), dtype=bool)
        for target, n in wrong[name]:
            right[np.flatnonzero(answers["target"] == target)[:n]] = False
        return None, answers.assign(right=right, model=name)

    learnt = pd.DataFrame({"task": "Tense", "language": "en", "base": bases})
    learnt["label"] = [i % 2 if i < 30 else 1 - i % 2 for i in range(40)]  # ten change it
    monkeypatch.setattr(predictions, "stored", read)
    monkeypatch.setattr(predictions.document_probes, "usable_labels", lambda *_: learnt)
    values = predictions.of_probes(model, held_out.plans()[model])
    home, abroad, outside = values.values()
    assert outside[0] == pytest.approx(10 / 30)
    assert home[0] == pytest.approx(8 / 40)
    shares = {"embeddinggemma-300m": 30 / 60}  # of a decoder Russian alone
    assert abroad[0] == pytest.approx(shares.get(model, 10 / 30))
    assert home[1] < home[0] < home[2]
    monkeypatch.setattr(predictions, "stored", lambda *_: None)
    assert predictions.of_probes(model, held_out.plans()[model]) == {}


def test_tense_in_decoders_is_bounded_by_one_half_of_the_encoder() -> None:
    encoder, decoder, _ = predictions.MODELS
    tense = "tense abroad above twin, label kept"
    of_both = [(encoder, tense, 0.3), (encoder, predictions.OUTSIDE, 0.4), (decoder, tense, 0.25)]
    values = pd.DataFrame(of_both, columns=["model", "id", "measured"])
    values = values.assign(low=values["measured"] - 0.01, high=values["measured"] + 0.01, p=np.nan)
    rows = predictions.judged(values).set_index(["model", "id"]).loc[(slice(None), tense), :]
    assert rows["bound"].tolist() == ["> 0.15", "< 0.200", "< 0.200"]
    assert rows["holds"].tolist() == [True, False, False]


def test_answers_behind_a_premise_stand_beside_a_wrong_one_and_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n, asked = held_out.N_PAIRS, held_out.asked()
    codes = asked.index[asked["question"] != ""]
    tests = (labelled.load_labelled("NLI", x, "test", source="xnli-whole") for x in codes)
    labels = {x: np.asarray(y.take(n, 1).labels) for x, y in zip(codes, tests, strict=True)}
    # bits of the right answer, of the others 5: alone it is the likeliest in every fifth pair
    costs = {"none": np.where(np.arange(n) % 5, 6, 4), "wrong": np.full(n, 9), "right": [3] * n}

    def read(call: object, subject: object, texts: tuple[str, str]) -> dict:
        code, premises = texts
        cost = np.full((n, 3), 5.0)
        cost[np.arange(n), labels[code]] = costs[premises]
        return {"bits": cost}

    monkeypatch.setattr(predictions, "stored", read)
    monkeypatch.setattr(held_out, "inference", lambda _, code, premises: (code, premises))
    table = predictions.beside_premises("any").set_index("premises")
    assert predictions.inferred("any").to_numpy().all()
    assert table["share"].to_dict() == pytest.approx({"wrong": 0, "none": 0.2})
    assert table["more"].to_dict() == pytest.approx({"wrong": -1, "none": -0.8})
    assert table.loc["none", "low"] < -0.8 < table.loc["none", "high"]
    monkeypatch.setattr(predictions, "stored", lambda *_: None)
    assert predictions.inferred("any") is None


def test_bits_of_fewer_sentences_are_those_of_as_many_as_were_foreseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_characters(_: object, texts: Texts) -> dict[str, np.ndarray]:
        return {"bits": np.array([[2.0 * len(x) for x in row] for row in texts.following])}

    monkeypatch.setattr(predictions.likelihood, "bits", of_characters)
    smaller = predictions.SIZES[1]
    values = predictions.bits_a_sentence(smaller, held_out.plans()[smaller])
    text = parallel.load("wmt24pp", drop_duplicates=True).take(300, 1)
    for code in ("en", "zh"):
        characters = [len(sentence) for sentence in text.sentences[code]]
        assert values[code] == pytest.approx(2 * np.mean(characters))
