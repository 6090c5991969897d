"""Sentence encoders against literal ones; what training on inference and mapping must do."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import xlx
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.xprobe import encoder_recipes, encoder_training, vector_recipes, word_spaces
from xlx.xprobe.dictionaries import OfFile
from xlx.xprobe.encoder_answers import Retrieval, answered, retrieved
from xlx.xprobe.encoder_inputs import EncoderError, Sentences
from xlx.xprobe.encoder_recipes import Inference, Inferred, Mapped, trained
from xlx.xprobe.encoder_training import (
    Aligned,
    LabelledPairs,
    Nli,
    align,
    alignment_loss,
    nli_predictions,
    train_nli,
)
from xlx.xprobe.parallel_text import ParallelText
from xlx.xprobe.sentence_encoders import (
    ENCODER_NAMES,
    ENCODERS,
    MINI,
    Sizes,
    encode,
    encoder,
    weights,
)
from xlx.xprobe.word_spaces import Lookup

TINY = Sizes(
    words=6, hidden=4, layers=2, dropout=0.1, channels=5, projection=8, attention=3, heads=2
)
#: Lengths from one word, below every filter, to many.
LENGTHS = (1, 2, 9, 3, 4, 1, 6)


def some(lengths: Sequence[int] = LENGTHS, width: int = 6, seed: int = 0) -> Sentences:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(20, width)).astype(np.float32)
    return Sentences(vectors, tuple(rng.integers(0, 20, n) for n in lengths))


def padded(of: Sentences, beyond: float, more: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Word vectors of all sentences in one batch, with ``beyond`` behind their ends."""
    found = np.full((len(of), max(of.lengths) + more, of.vectors.shape[1]), beyond, np.float32)
    for row, words in enumerate(of.ids):
        found[row, : len(words)] = of.vectors[words]
    return torch.from_numpy(found), torch.from_numpy(of.lengths)


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


# --- sentences ---


def test_sentences_number_their_words_and_look_each_up_once() -> None:
    asked = []

    def lookup(words: Sequence[str]) -> np.ndarray:
        asked.append(list(words))
        return np.array([[len(word), 1.0] for word in words])

    found = Sentences.of([["a", "dog", "a"], ["dog"]], lookup)
    assert asked == [["a", "dog"]]
    assert [ids.tolist() for ids in found.ids] == [[0, 1, 0], [1]]
    assert found.vectors.tolist() == [[1, 1], [3, 1]]
    assert found.vectors.dtype == np.float32
    assert found.lengths.tolist() == [3, 1]
    assert [ids.tolist() for ids in found.take([1, 0]).ids] == [[1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        ([], [], r"there are no sentences"),
        ([["a"], []], [[1.0]], r"sentence 1 \(from 0\) has no words: leave it out"),
        ([["a", "b"]], [[1.0], [math.nan]], r"the vector of 'b' is not finite"),
    ],
)
def test_sentences_that_cannot_be_encoded_are_told(words: list, vectors: list, message: str):
    with pytest.raises(EncoderError, match=message):
        Sentences.of(words, lambda _: np.array(vectors))


# --- encoders ---


def test_encoders_are_what_their_definitions_say() -> None:
    for sizes in (TINY, replace(TINY, padding=(0, 0, 3)), replace(TINY, layers=1)):
        for name in ENCODERS:
            own = weights(encoder(name, sizes, seed=3))
            found = encode(name, sizes, own, some())
            expected = [by_hand(name, some().vectors[ids], own, sizes) for ids in some().ids]
            np.testing.assert_allclose(found, expected, atol=2e-6, err_msg=f"{name} {sizes}")


def test_padding_changes_nothing_whatever_it_holds() -> None:
    for name in ENCODERS:
        net = encoder(name, TINY, seed=1).eval()
        with torch.inference_mode():
            plain = net(*padded(some(), 0.0))
            np.testing.assert_allclose(net(*padded(some(), 77.0, more=5)), plain, atol=2e-6)
            alone = torch.cat([net(*padded(some().take([row]), 0.0)) for row in range(7)])
        np.testing.assert_allclose(alone, plain, atol=2e-6)


def test_size_of_batches_changes_nothing() -> None:
    for name in ENCODERS:
        own = weights(encoder(name, TINY, seed=1))
        one, all_at_once = (
            encode(name, TINY, own, some(), batch_tokens=tokens) for tokens in (1, 99)
        )
        np.testing.assert_allclose(one, all_at_once, atol=2e-6)


def test_vectors_have_the_widths_of_the_paper_and_of_the_small_sizes() -> None:
    assert set(ENCODER_NAMES) == set(ENCODERS)
    for sizes, width in ((MINI, 128), (TINY, 8)):
        of = some(width=sizes.words)
        for name in ENCODERS:
            found = encode(name, sizes, weights(encoder(name, sizes, 1)), of)
            assert found.shape == (7, width)
            assert found.dtype == np.float32
    nets = {name: encoder(name, Sizes(), 1) for name in ("rnn-max", "cnn-max", "attention-max")}
    assert {net.width for net in nets.values()} == {1024}
    millions = {
        name: round(sum(x.numel() for x in net.parameters()) / 1e6, 1) for name, net in nets.items()
    }
    assert millions["rnn-max"] == 9.6
    assert millions["cnn-max"] == 5.3


def test_weights_are_those_of_the_seed_and_leave_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    one, again, other = (weights(encoder("rnn-max", TINY, seed)) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 0}, r"heads is 0: it must be 1 or more"),
        ({"dropout": 1.0}, r"dropout is 1.0: it is a share, below 1"),
        ({"padding": (1, 2)}, r"3 filters and 2 paddings"),
        ({"filters": (0, 1, 2)}, r"filters are 1 word wide or more"),
    ],
)
def test_sizes_that_are_none_are_told(options: dict, message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        Sizes(**options)


def test_what_an_encoder_cannot_take_is_told() -> None:
    own = weights(encoder("rnn-max", TINY, 1))
    with pytest.raises(EncoderError, match=r"'rnn-min' is none of rnn-max, rnn-last"):
        encoder("rnn-min", TINY, 1)
    with pytest.raises(EncoderError, match=r"word vectors are 5 wide, the encoder takes 6"):
        encode("rnn-max", TINY, own, some(width=5))
    with pytest.raises(EncoderError, match=r"these are not the weights of cnn-max"):
        encode("cnn-max", TINY, own, some())


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
    premises = [rng.integers(3, 12, 2 + i % 3) for i in range(math.ceil(n / 3))]
    hypotheses = [rng.permutation([label, *rng.integers(3, 12, 2)]) for label in labels]
    return (
        Sentences(vectors, tuple(premises[i // 3] for i in range(n))),
        Sentences(vectors, tuple(hypotheses)),
        labels,
    )


FAST = {"sizes": TINY, "batch_size": 12, "learning_rate": 2e-2}


def taught(name: str, **options) -> Nli:
    return train_nli(
        name,
        *inference(180, 0),
        inference(60, 1),
        **{**FAST, "epochs": 4, "patience": 4} | options,
    )


def test_all_encoders_learn_inference_and_give_the_weights_of_their_best_epoch() -> None:
    held_out = inference(60, 1)
    for name in ENCODERS:
        nli = taught(name)
        predicted = nli_predictions(nli, *held_out[:2])
        reached = float(np.mean(predicted == held_out[2]))
        assert reached == nli.history["accuracy"].max() > 0.7
        assert nli.history["loss"].iloc[-1] < nli.history["loss"].iloc[0]
        assert nli.history["epoch"].tolist() == list(range(1, len(nli.history) + 1))


def test_training_ends_after_epochs_without_gain() -> None:
    history = taught("cnn-mean", learning_rate=1e-12, patience=2).history
    assert history["epoch"].tolist() == [1, 2, 3]
    assert taught("cnn-mean", learning_rate=1e-12, patience=3, epochs=2).history.shape == (2, 3)


def test_training_is_that_of_its_seed_and_leaves_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    one, again, other = (taught("rnn-max", epochs=2, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert one.history.equals(again.history)
    assert all(np.array_equal(one.state[name], again.state[name]) for name in one.state)
    assert not one.history.equals(other.history)


def test_dropout_takes_part_in_training_only() -> None:
    dropped, whole = (
        taught("rnn-max", epochs=1, sizes=replace(TINY, dropout=share)) for share in (0.5, 0.0)
    )
    assert dropped.history["loss"][0] != whole.history["loss"][0]
    vectors = [encode("rnn-max", dropped.sizes, dropped.state, some())] * 2
    assert np.array_equal(*vectors)


def test_pair_features_by_hand() -> None:
    u, v = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 4.0]])
    found = encoder_training.pair_features(u, v)
    assert found.tolist() == [[1, -2, 3, 4, 3, -8, 2, 6]]


def pairs(language: str, *rows: tuple[str, str, str], task: str = "NLI") -> Examples:
    ids = tuple(f"{language}:{number}" for number in range(len(rows)))
    first, second, labels = zip(*rows, strict=True)
    classes = labelled.LABELS[task]
    places = np.array([classes.index(label) for label in labels])
    return Examples(f"made {language} train", language, first, second, places, classes, ids)


def test_pairs_of_inference_are_tokenised_looked_up_and_joined() -> None:
    asked = []

    class Lengths:
        """A lookup of the lengths of words."""

        def load(self):
            return self

        def __call__(self, words: Sequence[str]) -> np.ndarray:
            asked.append(list(words))
            return np.array([[len(word), 0.0] for word in words])

    parts = (
        pairs("tr", ("Işık iyi.", "iyi", "neutral"), ("Evet, iyi", "Hayır", "contradiction")),
        pairs("tr", ("iyi", "Işık", "entailment")),
    )
    premises, hypotheses, labels = Inference(parts, Lengths()).loaded
    assert labels.tolist() == [1, 2, 0]
    assert asked == [["ışık", "iyi", ".", "evet", ","], ["iyi", "hayır", "ışık"]]
    assert [ids.tolist() for ids in premises.ids] == [[0, 1, 2], [3, 4, 1], [1]]
    assert [ids.tolist() for ids in hypotheses.ids] == [[0], [1], [2]]
    assert hypotheses.vectors[:, 0].tolist() == [3, 5, 4]
    with pytest.raises(ValueError, match=r"paraphrase|not in tuple"):
        _ = Inference((pairs("en", ("a", "b", "paraphrase"), task="PI"),), Lengths()).loaded


#: Six sentences whose products are beyond all numbers.
HUGE = Sentences(np.full((1, 6), 1e30, np.float32), (np.zeros(2, np.int64),) * 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 1])}, r"training pairs: 6 premises, 6 hypotheses, 2 labels"),
        (
            {"labels": np.array([0, 1, 2, 3, 0, 1])},
            r"the label 3 is none of 0, 1, 2",
        ),
        ({"hypotheses": some([2])}, r"training pairs: 6 premises, 1 hypotheses"),
        ({"epochs": 0}, r"epochs is 0: it must be"),
        ({"learning_rate": -1.0}, r"learning_rate is -1.0: it must be positive"),
        ({"premises": HUGE, "hypotheses": HUGE}, r"inference: the loss is no longer a number in"),
    ],
)
def test_training_that_cannot_be_is_told(change: dict, message: str) -> None:
    premises, hypotheses, labels = inference(6, 0)
    call = {"premises": premises, "hypotheses": hypotheses, "labels": labels}
    with pytest.raises(EncoderError, match=message):
        train_nli(
            "cnn-max", **{**call, "validation": inference(6, 1), **FAST, "batch_size": 2} | change
        )


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


def test_others_of_a_batch_are_all_others_once_and_never_the_own() -> None:
    rng = np.random.default_rng(0)
    met = set()
    for _ in range(200):
        ring = encoder_training._ring(4, rng)
        assert sorted(ring) == [0, 1, 2, 3]
        met |= set(enumerate(ring.tolist()))
    assert met == {(i, j) for i in range(4) for j in range(4) if i != j}


def parallel(n: int, turn: np.ndarray) -> tuple[Sentences, Sentences]:
    """Sentences of two languages with the same words, whose vectors are turned in the second."""
    _, first, _ = inference(n, 5)
    return first, Sentences((first.vectors @ turn).astype(np.float32), first.ids)


TURN = np.linalg.qr(np.random.default_rng(4).normal(size=(6, 6)))[0]


def mapped(nli: Nli, n: int = 200, **options) -> Aligned:
    call = {"max_epochs": 5, "batch_size": 8, "learning_rate": 1e-2, "patience": 5}
    return align(nli, *parallel(n, TURN), inference(60, 2, TURN), **{**call, **options})


def test_mapped_encoders_give_translations_like_vectors_and_classes() -> None:
    for name in ("rnn-max", "cnn-mean", "attention-last"):
        nli = taught(name)
        found = mapped(nli)
        assert set(found.history) == {"epoch", "loss", "cosine", "accuracy"}
        assert found.history["cosine"].iloc[-1] > max(0.8, found.history["cosine"][0])
        english, turned = inference(60, 2), inference(60, 2, TURN)
        predicted = nli_predictions(nli, *turned[:2], state=found.state)
        reached = float(np.mean(predicted == turned[2]))
        assert reached == found.history["accuracy"].max()
        # The English encoder does not know the turned vectors, the mapped one does.
        unmapped = nli_predictions(nli, *turned[:2])
        assert reached > np.mean(unmapped == turned[2]) + 0.1
        assert reached > np.mean(nli_predictions(nli, *english[:2]) == turned[2]) - 0.2


def test_mapping_takes_vectors_for_sentences_and_leaves_the_english_encoder_alone() -> None:
    nli = taught("cnn-max", epochs=1)
    before = {name: x.copy() for name, x in nli.state.items()}
    source, _ = parallel(200, TURN)
    vectors = encode(nli.name, nli.sizes, nli.state, source)
    one, other = mapped(nli, max_epochs=2), align(
        nli, vectors, parallel(200, TURN)[1], inference(60, 2, TURN),
        max_epochs=2, batch_size=8, learning_rate=1e-2,
    )  # fmt: skip
    assert one.history.equals(other.history)
    assert all(np.array_equal(one.state[name], other.state[name]) for name in one.state)
    assert all(np.array_equal(before[name], nli.state[name]) for name in before)


def test_mapping_is_that_of_its_seed_and_ends_after_epochs_without_gain() -> None:
    nli = taught("rnn-last", epochs=1)
    one, again, other = (mapped(nli, max_epochs=2, seed=seed) for seed in (1, 1, 2))
    assert one.history.equals(again.history)
    assert not one.history.equals(other.history)
    still = mapped(nli, learning_rate=1e-12, patience=2)
    assert still.history["epoch"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": some()}, r"parallel pairs: 3 source sentences and 7 target sentences"),
        ({"lam": 0.5}, r"lam is 0.5: at least 0, and below 0.5, where minima end"),
        ({"lam": -0.1}, r"lam is -0.1"),
        ({"batch_size": 1}, r"batch_size is 1: a mapping needs others in a batch"),
        ({"source": some([1]), "target": some([1])}, r"1 source sentences and 1 target"),
        ({"source": np.zeros((3, 5))}, r"source vectors \(3, 5\): the encoder's are 8 wide"),
        ({"target": some([1, 2, 3], width=5)}, r"word vectors are 5 wide, the encoder takes 6"),
        (
            {"validation": (some(), some(), np.zeros(6))},
            r"validation pairs: 7 premises, .* 6 lab",
        ),
    ],
)
def test_mappings_that_cannot_be_are_told(change: dict, message: str) -> None:
    own = weights(encoder("cnn-max", TINY, 1))
    head = {"weight": np.zeros((3, 32), np.float32), "bias": np.zeros(3, np.float32)}
    nli = Nli("cnn-max", TINY, own, head, taught("cnn-max", epochs=1).history)
    call = {"source": some([1, 2, 3]), "target": some([1, 2, 3]), "validation": inference(6, 1)}
    with pytest.raises(EncoderError, match=message):
        align(nli, **call | change)


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
    files = {code: vector_recipes.of_file(tmp_path / f"{code}.vec", code) for code in ("en", "de")}
    dictionary = OfFile(tmp_path / "muse.txt")
    return {"en": Lookup(files["en"]), "de": Lookup(files["de"], files["en"], dictionary)}


def questions(lookup: Lookup, n: int, seed: int) -> Inference:
    rng = np.random.default_rng(seed)
    rows = [
        (*(" ".join(f"w{i}" for i in rng.integers(0, 30, 4)) for _ in range(2)), label)
        for label in rng.choice(labelled.NLI, n)
    ]
    return Inference((pairs(lookup.language, *rows),), lookup)


def recipes(lookups: dict[str, Lookup], folder: Path, **options) -> tuple[Inferred, Mapped]:
    """An encoder, and one mapped by as many lines."""
    call = {"batch_size": 12, "learning_rate": 2e-2, **options}
    own = questions(lookups["en"], 30, 0), questions(lookups["en"], 6, 1)
    english = Inferred("cnn-max", TINY, *own, {**call, "epochs": 1})
    rng = np.random.default_rng(2)
    lines = "".join(" ".join(f"w{i}" for i in rng.integers(0, 30, 3)) + "\n" for _ in range(20))
    (folder / "text").mkdir(exist_ok=True)
    for code in ("en", "de"):
        (folder / "text" / f"a.{code}").write_text(lines)
    parallel = ParallelText("en", "de", (str(folder / "text"),))
    both = lookups["en"], lookups["de"]
    validation = questions(lookups["de"], 6, 2)
    return english, Mapped(english, parallel, *both, validation, {**call, "max_epochs": 1})


def same(one: Nli | Aligned, other: Nli | Aligned) -> bool:
    return one.history.equals(other.history) and all(
        np.array_equal(x, other.state[name]) for name, x in one.state.items()
    )


def test_recipes_give_what_training_gives_and_are_not_done_again(
    tmp_path: Path, lookups: dict[str, Lookup], monkeypatch: pytest.MonkeyPatch
) -> None:
    english, german = recipes(lookups, tmp_path)
    (mapped,) = trained([german])  # trains the English one first
    (nli,) = trained([english])
    options = {"batch_size": 12, "learning_rate": 2e-2}
    loaded, held_out = english.pairs.loaded, english.validation.loaded
    alone = train_nli("cnn-max", *loaded, held_out, sizes=TINY, epochs=1, **options)
    assert same(nli, alone)
    assert all(np.array_equal(x, nli.classifier[name]) for name, x in alone.classifier.items())
    found = align(alone, *german.sides(), german.validation.loaded, max_epochs=1, **options)
    assert same(mapped, found)
    asked = questions(lookups["de"], 9, 3)
    (answers,) = answered([german], [asked])
    predicted = nli_predictions(alone, *asked.loaded[:2], state=found.state)
    np.testing.assert_array_equal(answers.predicted, predicted)
    assert answers.accuracy == np.mean(predicted == asked.loaded[2])
    pd.testing.assert_frame_equal(answers.history, found.history)

    def fail(*_: object) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(encoder_recipes, "load_lookups", fail)
    monkeypatch.setattr(word_spaces.Lookup, "load", fail)
    monkeypatch.setattr(ParallelText, "lines", property(fail))
    assert answered([german], [asked])[0].accuracy == answers.accuracy
    assert same(trained([recipes(lookups, tmp_path)[1]])[0], mapped)


def test_translations_are_found_where_words_are_of_one_space(
    tmp_path: Path, lookups: dict[str, Lookup]
) -> None:
    english, german = recipes(lookups, tmp_path)
    both = lookups["en"], lookups["de"]
    asked = [Retrieval(own, german.parallel, *both, skip=5) for own in (None, english, german)]
    table = retrieved([*asked, Retrieval(german, german.parallel, lookups["en"], None, skip=5)])
    assert table["n"].tolist() == [15] * 4
    # the dictionary turns German words onto the English ones, and the lines are the same
    assert table["found"].tolist()[:2] == [1, 1]
    np.testing.assert_allclose(table["cosine"][:2], 1, atol=1e-5)
    source, target = asked[2].sides()
    (nli,), (mapped,) = trained([english]), trained([german])
    x, y = encode("cnn-max", TINY, nli.state, source), encode("cnn-max", TINY, mapped.state, target)
    cosines = y @ x.T / np.outer(np.linalg.norm(y, axis=1), np.linalg.norm(x, axis=1))
    assert table["cosine"][2] == pytest.approx(np.diagonal(cosines).mean(), abs=1e-5)
    assert table["found"][2] == (cosines.argmax(axis=1) == np.arange(15)).mean()
    with pytest.raises(EncoderError, match="skip is 20, and there are 20 translations"):
        replace(asked[2], skip=20).sides()


def test_trainings_side_by_side_are_those_alone(tmp_path: Path, lookups: dict[str, Lookup]) -> None:
    found = []
    for workers in (1, 2):
        own = [recipes(lookups, tmp_path, seed=seed)[0] for seed in (1, 2, 1)]
        with xlx.settings(workers=workers, cache=tmp_path / str(workers)):
            found.append(trained(own))
        assert same(found[-1][0], found[-1][2])
        kept = list((tmp_path / str(workers)).rglob("sentence-encoders/*/*"))
        assert len(kept) == 2
    assert all(same(*pair) for pair in zip(*found, strict=True))


def test_all_that_moves_a_result_is_in_its_ask(tmp_path: Path, lookups: dict[str, Lookup]) -> None:
    english, german = recipes(lookups, tmp_path)
    assert english.ask == recipes(lookups, tmp_path, patience=2)[0].ask
    changes = [
        {"name": "cnn-mean"}, {"sizes": replace(TINY, dropout=0.0)},
        {"pairs": questions(lookups["en"], 30, 1)}, {"pairs": questions(lookups["de"], 30, 0)},
        {"validation": questions(lookups["en"], 6, 2)}, {"options": {"seed": 2}},
    ]  # fmt: skip
    others = [replace(english, **change) for change in changes]
    assert len({own.ask for own in (english, *others)}) == 1 + len(changes)
    changes = [
        {"nli": others[0]}, {"target": None}, {"source": lookups["de"]}, {"options": {"lam": 0.1}},
        {"parallel": replace(german.parallel, most=3)},
        {"validation": questions(lookups["de"], 6, 3)},
    ]  # fmt: skip
    asks = {own.ask for own in (german, *(replace(german, **change) for change in changes))}
    assert len(asks) == 1 + len(changes)
    with pytest.raises(TypeError, match=r"train_nli has no option 'speed'"):
        _ = replace(english, options={"speed": 1}).ask


def test_recipes_of_one_type_are_trained_at_a_time(
    tmp_path: Path, lookups: dict[str, Lookup]
) -> None:
    with pytest.raises(ValueError, match=r"recipes are of two types"):
        trained([*recipes(lookups, tmp_path)])


# --- words in one space ---


def test_a_map_is_measured_and_finds_the_words_that_it_was_made_of(
    lookups: dict[str, Lookup],
) -> None:
    (row,) = word_spaces.precision_of_maps([lookups["de"]], seed=0).to_dict("records")
    assert row["language"] == "de"
    assert (row["words"], row["pairs"], row["held_out"], row["found"]) == (30, 30, 3, 1.0)
    assert (row["origin"], row["no_source"], row["neither"]) == ("muse.txt", 0, 0)
    near = word_spaces.nearest(lookups["de"], "w3", 2)
    assert (near["word"].tolist(), near["near"][0]) == (["w3", "w3"], "w3")
    assert near["cosine"][0] == pytest.approx(1, abs=1e-4)
    assert near["cosine"][1] < 0.99
    assert word_spaces.nearest(lookups["de"], "never")["word"][0] == "w29"
    both = lookups["en"].load()(["w3"]), lookups["de"].load()(["w3"])
    np.testing.assert_allclose(*both, atol=1e-3)
