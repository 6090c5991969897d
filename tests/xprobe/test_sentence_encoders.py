"""Sentence encoders against literal ones; what training on inference and mapping must do."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from xlx.text import labelled
from xlx.text.examples import Examples
from xprobe import encoders, word_spaces
from xprobe.encoders import (
    ENCODERS,
    EncoderError,
    Inference,
    InferenceEncoder,
    LabelledPairs,
    Recipe,
    Sentences,
    Sizes,
    align,
    alignment_loss,
    encode,
    encoder,
    inferences,
    train_nli,
    trained,
    weights,
)
from xprobe.word_spaces import Lookup, ParallelText, Words

TINY = Sizes(
    words=6, hidden=4, layers=2, dropout=0.1, channels=5, projection=8, attention=3, heads=2
)
#: Lengths from one word, below every filter, to many.
LENGTHS = (1, 2, 9, 3, 4, 1, 6)


def some(lengths: Sequence[int] = LENGTHS, width: int = 6) -> Sentences:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20, width)).astype(np.float32)
    return Sentences(vectors, tuple(rng.integers(0, 20, n) for n in lengths))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(x: np.ndarray, own: dict[str, np.ndarray], start: str) -> np.ndarray:
    """States of one LSTM, word by word."""
    into, again = own[f"{start}.weight_ih_l0"], own[f"{start}.weight_hh_l0"]
    bias = own[f"{start}.bias_ih_l0"] + own[f"{start}.bias_hh_l0"]
    h = c = np.zeros(again.shape[1])
    states = []
    for word in x:
        i, f, g, o = np.split(into @ word + again @ h + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.array(states)


def by_hand(name: str, x: np.ndarray, own: dict[str, np.ndarray], sizes: Sizes) -> np.ndarray:
    """The vector of one sentence ``(n_words, words)``, by the definitions."""
    if name.startswith("cnn"):
        pooled = []
        for number, (width, padding) in enumerate(zip(sizes.filters, sizes.padding, strict=True)):
            zeros = np.zeros((padding, x.shape[1]))
            rows = np.concatenate([zeros, x, zeros])
            rows = np.concatenate([rows, np.zeros((max(width - len(rows), 0), x.shape[1]))])
            kernel, bias = own[f"filters.{number}.weight"], own[f"filters.{number}.bias"]
            places = [
                np.einsum("cwk,kw->c", kernel, rows[place : place + width]) + bias
                for place in range(len(rows) - width + 1)
            ]
            places = np.maximum(places, 0)
            pooled.append(places.mean(axis=0) if name == "cnn-mean" else places.max(axis=0))
        return own["projection.weight"] @ np.concatenate(pooled) + own["projection.bias"]
    for layer in range(sizes.layers):
        ahead = lstm_by_hand(x, own, f"lstm.forwards.{layer}")
        back = lstm_by_hand(x[::-1], own, f"lstm.backwards.{layer}")[::-1]
        x = np.concatenate([ahead, back], axis=1)
    if name == "rnn-max":
        return x.max(axis=0)
    if name == "rnn-last":
        return np.concatenate([ahead[-1], back[0]])
    scores = own["second.weight"] @ np.tanh(own["first.weight"] @ x.T)
    attention = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return (attention @ x)[-1] if name == "attention-last" else (attention @ x).max(axis=0)


# --- encoders ---


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_are_what_their_definitions_say(name: str, monkeypatch) -> None:
    for sizes in (TINY, replace(TINY, padding=(0, 0, 3), layers=1)):
        own = weights(encoder(name, sizes, seed=3))
        expected = [by_hand(name, some().vectors[ids], own, sizes) for ids in some().ids]
        for size in (encoders.BATCH, 1):  # all sentences in a batch, or one
            monkeypatch.setattr(encoders, "BATCH", size)
            np.testing.assert_allclose(encode(name, sizes, own, some()), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: encoder("rnn-min", TINY, 1), r"'rnn-min' is none of rnn-max, rnn-last"),
        (lambda: Sentences.of([["a"], []], np.array), r"sentence 1 \(from 0\) has no words"),
        (lambda: taught("cnn-max", learning_rate=1e30, batch_size=150), r"no longer a number in"),
        (lambda: mapped("cnn-max", lam=0.5), r"lam is 0.5.* below 0.5"),
        (lambda: mapped("cnn-max", n=1), r"there are 1 translations"),
    ],
)
def test_what_cannot_be_encoded_or_trained_is_told(call, message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        call()


# --- inference ---


def inference(n: int, seed: int, turn: np.ndarray | None = None) -> LabelledPairs:
    """Pairs whose class is told by the hypothesis: a word of group 0, 1 or 2 among neutral ones.

    With ``turn``, the word vectors of another language: the same, turned.
    """
    rng = np.random.default_rng(seed)
    vectors = np.random.default_rng(9).normal(size=(12, 6))
    vectors = (vectors if turn is None else vectors @ turn).astype(np.float32)
    labels = rng.integers(0, 3, n)
    # Three pairs of each premise, as XNLI has them.
    premises = [rng.integers(3, 12, 2 + i % 3) for i in range(-(-n // 3))]
    hypotheses = [rng.permutation([label, *rng.integers(3, 12, 2)]) for label in labels]
    return (
        Sentences(vectors, tuple(premises[i // 3] for i in range(n))),
        Sentences(vectors, tuple(hypotheses)),
        labels,
    )


FAST = {"sizes": replace(TINY, layers=1), "batch_size": 12, "learning_rate": 3e-2}


@cache
def taught(name: str, **options) -> InferenceEncoder:
    options = {**FAST, "epochs": 3, "patience": 4} | options
    return train_nli(name, inference(150, 0), inference(60, 1), **options)


def same(one: InferenceEncoder, other: InferenceEncoder) -> bool:
    return set(one.arrays) == set(other.arrays) and all(
        np.array_equal(x, other.arrays[name]) for name, x in one.arrays.items()
    )


def reached(own: InferenceEncoder, pairs: LabelledPairs) -> float:
    return float(np.mean(own.answers(*pairs[:2]) == pairs[2]))


#: One of each kind.
KINDS = ("rnn-max", "cnn-mean", "attention-last")


def test_training_is_that_of_its_seed_and_leaves_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    two_layers = {"epochs": 1, "sizes": TINY}
    one, other = (taught("rnn-max", **two_layers, seed=seed) for seed in (1, 2))
    assert same(one, taught.__wrapped__("rnn-max", **two_layers, seed=1))
    assert torch.equal(before, torch.random.get_rng_state())
    assert not np.array_equal(one.arrays["history.loss"], other.arrays["history.loss"])
    whole = taught("rnn-max", epochs=1, sizes=replace(TINY, dropout=0.0), seed=1)
    # dropped out in training
    assert one.arrays["history.loss"][0] != whole.arrays["history.loss"][0]
    vectors = [encode("rnn-max", one.sizes, one.part("state"), some()) for _ in range(2)]
    assert np.array_equal(*vectors)


# --- mapping ---


def test_alignment_loss_on_a_worked_example() -> None:
    x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 1.0], [0.0, 0.0]])
    # ||x - y||²: 1 and 4. The other is the other row: ||x_c - y||²: (0 - 1)² + (2 - 1)² = 2 and
    # 1; ||x - y_c||²: 1 and 1 + 1 = 2. So (1 - (2 + 1) / 4 + 4 - (1 + 2) / 4) / 2.
    assert alignment_loss(x, y, x.flip(0), y.flip(0)).item() == pytest.approx((0.25 + 3.25) / 2)
    assert alignment_loss(x, y, x.flip(0), y.flip(0), lam=0).item() == pytest.approx(2.5)


def test_best_vectors_of_the_alignment_loss_are_the_english_ones_drawn_apart() -> None:
    n, width, lam = 6, 3, 0.25
    x = torch.randn(n, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = x - x.mean(dim=0) + 5.0
    y = x.clone().requires_grad_()
    optimiser = torch.optim.SGD([y], lr=0.5)
    shifts = range(1, n)  # each sentence meets each other one once
    for _ in range(300):
        optimiser.zero_grad()
        losses = [alignment_loss(x, y, x.roll(i, 0), y.roll(i, 0), lam) for i in shifts]
        (sum(losses) / len(losses)).backward()
        optimiser.step()
    apart = (1 + 2 * lam / (n - 1)) / (1 - 2 * lam)
    assert apart == pytest.approx(2.2)  # with many sentences, 2
    torch.testing.assert_close(y.detach(), 5.0 + apart * (x - 5.0))


TURN = np.linalg.qr(np.random.default_rng(4).normal(size=(6, 6)))[0]


def mapped(name: str, n: int = 150, **options) -> InferenceEncoder:
    """Mapped by sentences with the same words, whose vectors are turned in the second language."""
    _, source, _ = inference(n, 5)
    target = Sentences((source.vectors @ TURN).astype(np.float32), source.ids)
    options = {"max_epochs": 4, "batch_size": 8, "learning_rate": 2e-2, "patience": 5} | options
    return align(taught(name), source, target, inference(60, 2, TURN), **options)


@pytest.mark.parametrize("name", KINDS)
def test_mapped_encoders_give_translations_like_vectors_and_classes(name: str) -> None:
    own, turned = mapped(name), inference(60, 2, TURN)
    cosine, accuracy = (own.arrays[f"history.{x}"] for x in ("cosine", "accuracy"))
    assert cosine[-1] > max(0.75, cosine[0])
    assert reached(own, turned) == accuracy.max()
    # The English encoder does not know the turned vectors, the mapped one does.
    assert reached(own, turned) > reached(taught(name), turned) + 0.1
    assert reached(own, turned) > reached(taught(name), inference(60, 2)) - 0.2
    assert own.part("classifier") == taught(name).part("classifier")


# --- recipes ---


@pytest.fixture
def lookups(tmp_path: Path) -> dict[str, Lookup]:
    """Words in two languages, turned into one space by a dictionary of all of them."""
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(30)]
    vectors = rng.normal(size=(30, 6))
    for code, own in (("en", vectors), ("de", vectors @ TURN)):
        rows = [" ".join([word, *map(str, row)]) for word, row in zip(words, own, strict=True)]
        (tmp_path / f"{code}.vec").write_text("\n".join(["30 6", *rows, ""]))
    (tmp_path / "muse.txt").write_text("".join(f"{word} {word}\n" for word in words))
    english, german = (Words(code, tmp_path / f"{code}.vec") for code in ("en", "de"))
    return {"en": Lookup(english), "de": Lookup(german, english, tmp_path / "muse.txt")}


def questions(lookup: Lookup, n: int, seed: int) -> Inference:
    rng = np.random.default_rng(seed)
    rows = [
        (*(" ".join(f"w{i}" for i in rng.integers(0, 30, 4)) for _ in range(2)), label)
        for label in rng.choice(labelled.NLI, n)
    ]
    return Inference((pairs(lookup.words.language, *rows),), lookup)


def pairs(language: str, *rows: tuple[str, str, str]) -> Examples:
    ids = tuple(f"{language}:{number}" for number in range(len(rows)))
    first, second, labels = zip(*rows, strict=True)
    places = np.array([labelled.NLI.index(label) for label in labels])
    return Examples(f"made {language} train", language, first, second, places, labelled.NLI, ids)


CALL = {"batch_size": 12, "learning_rate": 2e-2}


def recipes(lookups: dict[str, Lookup], folder: Path) -> tuple[Recipe, Recipe, ParallelText]:
    """An encoder, one mapped by 20 lines, and the lines."""
    own = questions(lookups["en"], 30, 0), questions(lookups["en"], 6, 1)
    english = encoders.inferred("cnn-max", TINY, *own, **CALL, epochs=1)
    rng = np.random.default_rng(2)
    lines = "".join(" ".join(f"w{i}" for i in rng.integers(0, 30, 3)) + "\n" for _ in range(20))
    (folder / "text").mkdir(exist_ok=True)
    for code in ("en", "de"):
        (folder / "text" / f"a.{code}").write_text(lines)
    text = ParallelText("en", "de", str(folder / "text"))
    both, validation = (lookups["en"], lookups["de"]), questions(lookups["de"], 6, 2)
    return english, encoders.mapped(english, text, *both, validation, **CALL, max_epochs=1), text


def test_recipes_give_what_training_gives_and_are_not_done_again(
    tmp_path: Path, lookups: dict[str, Lookup], monkeypatch: pytest.MonkeyPatch
) -> None:
    english, german, text = recipes(lookups, tmp_path)
    made, own = trained([german, english])  # trains the English one first
    sides = [questions(lookups[code], n, k) for code, n, k in (("en", 30, 0), ("en", 6, 1))]
    alone = train_nli("cnn-max", *(side.loaded for side in sides), sizes=TINY, epochs=1, **CALL)
    assert same(own, alone)
    both = (Sentences.of(x, lookups[y]) for x, y in zip(text.lines, ("en", "de"), strict=True))
    validation = questions(lookups["de"], 6, 2).loaded
    assert same(made, align(alone, *both, validation, max_epochs=1, **CALL))
    asked = questions(lookups["de"], 9, 3)
    (said,) = inferences([(german, asked)])
    assert np.mean(said == asked.labels) == reached(made, asked.loaded)
    turned = replace(asked, exchanged=1)
    premises, hypotheses, labels = turned.loaded
    assert all(any(np.array_equal(x, y) for y in asked.loaded[0].ids) for x in premises.ids)
    assert not any(map(np.array_equal, premises.ids, asked.loaded[0].ids))
    assert all(map(np.array_equal, hypotheses.ids, asked.loaded[1].ids))
    (other,) = inferences([(german, turned)])
    assert np.mean(other == labels) == reached(made, turned.loaded)

    def fail(*_: object) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(word_spaces.Lookup, "__call__", fail)
    monkeypatch.setattr(ParallelText, "lines", property(fail))
    np.testing.assert_array_equal(inferences([(german, asked)])[0], said)
    assert same(trained([recipes(lookups, tmp_path)[1]])[0], made)


def test_all_that_moves_a_result_is_in_its_ask(tmp_path: Path, lookups: dict[str, Lookup]) -> None:
    english, german, text = recipes(lookups, tmp_path)
    own = {
        "name": "cnn-max",
        "sizes": TINY,
        "pairs": questions(lookups["en"], 30, 0),
        "validation": questions(lookups["en"], 6, 1),
        **CALL,
        "epochs": 1,
    }
    assert encoders.inferred(**own, patience=2).ask == english.ask
    changes = [
        {"name": "cnn-mean"},
        {"sizes": replace(TINY, dropout=0.0)},
        {"seed": 2},
        {"pairs": questions(lookups["en"], 30, 1)},
        {"pairs": questions(lookups["de"], 30, 0)},
        {"validation": questions(lookups["en"], 6, 2)},
    ]
    others = [encoders.inferred(**own | change) for change in changes]
    assert len({own.ask for own in (english, *others)}) == 1 + len(changes)
    own = {
        "nli": english,
        "parallel": text,
        "source": lookups["en"],
        "target": lookups["de"],
        "validation": questions(lookups["de"], 6, 2),
        **CALL,
        "max_epochs": 1,
    }
    assert encoders.mapped(**own).ask == german.ask
    changes = [
        {"nli": others[0]},
        {"target": None},
        {"source": lookups["de"]},
        {"lam": 0.1},
        {"parallel": replace(text, most=3)},
        {"validation": questions(lookups["de"], 6, 3)},
    ]
    asks = {german.ask, *(encoders.mapped(**own | change).ask for change in changes)}
    assert len(asks) == 1 + len(changes)


def test_answers_are_apart_by_what_is_reached_and_a_fifth_of_what_is_said() -> None:
    answered = {"accuracy": np.array([0.3, 0.5]), "predicted": np.array([0, 1, 2, 0])}
    for change, expected in (
        ({}, 0),
        ({"accuracy": np.array([0.4, 0.1, 0.45])}, 0.05),
        ({"predicted": np.array([0, 1, 2, 1])}, 0.05),
    ):
        apart = encoders.ANSWERS.difference(answered, answered | change)
        assert apart == pytest.approx(expected)
