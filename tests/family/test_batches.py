"""Batches: what is masked, what follows, who translates whom; the same for the same seed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from family.batches import NO_LABEL, Batch, Batches, held_out_batches, mask, next_subword, pad
from family.recipes import MemberRecipe
from family.training_text import BOS, EOS, PAD, Lines, PretrainingText
from tests import toy


@pytest.fixture(scope="module")
def recipe() -> MemberRecipe:
    return toy.recipe("mini-infoxlm")


@pytest.fixture(scope="module")
def batches(recipe: MemberRecipe) -> Batches:
    return Batches(toy.prepared("xlm-roberta")[1], recipe)


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def originals(batch: Batch) -> torch.Tensor:
    """The ids of a masked batch as they were."""
    return torch.where(batch.labels != NO_LABEL, batch.labels, batch.ids)


# --- masking, padding, the next one --------------------------------------------------------------


def test_masking_is_80_10_10_of_the_share_and_never_special() -> None:
    draw = rng(1)
    ids = draw.integers(4, 399, size=(400, 200))
    ids[:, 0], ids[:, 1], ids[:, -1] = BOS, PAD, EOS
    masked_ids, labels = mask(ids, draw, share=0.15, vocabulary=400)
    chosen = labels != NO_LABEL
    assert not chosen[:, [0, 1, -1]].any()
    assert chosen[:, 2:-1].mean() == pytest.approx(0.15, abs=0.005)
    assert np.array_equal(labels[chosen], ids[chosen])
    assert np.array_equal(masked_ids[~chosen], ids[~chosen])
    assert (masked_ids[chosen] == 399).mean() == pytest.approx(0.8, abs=0.01)
    assert (masked_ids[chosen] == ids[chosen]).mean() == pytest.approx(0.1, abs=0.01)
    others = masked_ids[chosen & (masked_ids != 399) & (masked_ids != ids)]
    assert (others.min(), others.max()) == (4, 398)  # any piece or byte, none that is special


def test_the_label_of_a_subword_is_the_one_behind_it(batches: Batches) -> None:
    ids, real = pad([np.array([0, 7, 2]), np.array([0, 8, 9, 10, 2])])
    batch = next_subword(ids, real)
    none = NO_LABEL
    assert batch.labels.tolist() == [[7, 2, none, none, none], [8, 9, 10, 2, none]]
    assert batch.ids.tolist() == ids.tolist()

    drawn = batches.clm(rng(), 128)
    for row, labels in zip(drawn.ids.tolist(), drawn.labels.tolist(), strict=True):
        assert labels == [*row[1:], none]


# --- what a step draws ---------------------------------------------------------------------------


def test_rows_are_runs_of_lines_of_one_language(batches: Batches, recipe: MemberRecipe) -> None:
    for seed in range(8):
        mlm = batches.mlm(rng(seed), recipe.tokens_per_step)
        assert mlm.ids.numel() == recipe.tokens_per_step
        assert mlm.ids.shape[1] in recipe.block_lengths
        assert mlm.real.all()
        rows = originals(mlm)
        assert (rows[:, 0] == BOS).all()
        for row in rows[:, 1:].tolist():
            assert any(
                lines.ids[start : start + len(row)].tolist() == row
                for sources in batches.text.monolingual.values()
                for lines in sources
                for start in lines.starts
            )


@pytest.mark.parametrize(("exponent", "share"), [(0.3, None), (1.0, None), (0.3, 0.8)])
def test_languages_are_drawn_by_their_shares(exponent: float, share: float | None) -> None:
    sizes = {"de": 1000, "en": 8000, "fi": 200}
    text = PretrainingText(
        {  # all subwords of a language are its number
            code: (Lines(np.full(size, 10 + k, np.uint16), np.arange(0, size + 1, 10)),)
            for k, (code, size) in enumerate(sizes.items())
        },
        (),
    )
    sampled = toy.recipe("mini-llama", language_exponent=exponent, english_share=share)
    drawn = Batches(text, sampled).rows(rng(), 8 * 8000)[:, 1]
    powers = np.array([size**exponent for size in sizes.values()])
    expected = powers / powers.sum()
    if share is not None:
        others = (1 - share) / (powers[0] + powers[2])
        expected = np.array([powers[0] * others, share, powers[2] * others])
    assert [(drawn == 10 + k).mean() for k in range(3)] == pytest.approx(expected, abs=0.02)


def translations() -> set[frozenset[str]]:
    text = toy.text()["ntrex"]
    return {
        frozenset(text[code][key] for code in pair)
        for key in text["de"]
        for pair in (("de", "en"), ("de", "ja"), ("en", "ja"))
        if all(key in text[code] for code in pair)
    }


def test_the_contrast_holds_translations(batches: Batches, recipe: MemberRecipe) -> None:
    tokenizer = toy.prepared("xlm-roberta")[0]
    pairs = batches.contrast(rng())
    assert len(pairs.ids) == 2 * recipe.contrast_pairs
    assert pairs.ids.shape[1] <= recipe.contrast_length
    assert pairs.labels is None
    expected = translations()
    for rows in pairs.ids.unflatten(0, (-1, 2)):
        assert frozenset(tokenizer.decode(row.tolist()) for row in rows) in expected


def test_tlm_holds_translations_behind_one_another(batches: Batches, recipe: MemberRecipe) -> None:
    tokenizer = toy.prepared("xlm-roberta")[0]
    tlm = batches.tlm(rng(), 128)
    n_rows, longest = tlm.ids.shape
    assert n_rows * longest <= 128 < (n_rows + 1) * recipe.max_length  # as many as fit, padded
    assert longest <= recipe.max_length
    assert len(batches.tlm(rng(), 1).ids) == 1  # one at least
    assert (tlm.ids[~tlm.real] == PAD).all()
    assert (tlm.labels[~tlm.real] == NO_LABEL).all()
    expected = translations()
    for row in originals(tlm).tolist():
        row = [i for i in row if i != PAD]
        ends = [i for i, subword in enumerate(row) if subword == EOS]
        assert row[0] == BOS
        assert len(ends) == 3
        assert ends[1] == ends[0] + 1
        assert ends[2] == len(row) - 1
        halves = row[1 : ends[0]], row[ends[1] + 1 : -1]
        assert frozenset(map(tokenizer.decode, halves)) in expected


def test_translations_stand_in_a_decoder_s_rows() -> None:
    text = toy.prepared("llama")[1]
    ntrex = text.parallel[0]
    meaning = {
        tuple(lines[column]): position
        for number, lines in enumerate(ntrex.lines)
        for position, column in enumerate(ntrex.line[:, number])
        if column >= 0
    }
    shares = {}
    for share in (0.0, 0.5, 1.0):
        recipe = toy.recipe("mini-llama", pair_share=share, block_lengths=(32,))
        batch = Batches(text, recipe).clm(rng(), 32 * 40)
        together = 0
        for row in batch.ids.numpy():
            ends = np.flatnonzero(row == EOS)
            first, second = row[1 : ends[0]], row[ends[0] + 1 : ends[1]]
            said = [meaning.get(tuple(part)) for part in (first, second)]
            together += said[0] is not None and said[0] == said[1]
        shares[share] = together / len(batch.ids)
    assert shares[0.0] < 0.1
    assert shares[0.5] == pytest.approx(0.5, abs=0.25)
    assert shares[1.0] == 1


# --- held-out lines ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines() -> list[np.ndarray]:
    draw = rng(5)
    return [draw.integers(4, 399, size=length) for length in draw.integers(1, 60, size=80)]


@pytest.mark.parametrize("member", ["mini-xlmr", "mini-llama"])
def test_held_out_batches_hold_every_line_once(member: str, lines: list[np.ndarray]) -> None:
    recipe = toy.recipe(member)
    rows = []
    for batch in held_out_batches(lines, recipe):
        assert batch.ids.numel() <= recipe.tokens_per_step
        ids = batch.ids if recipe.decoder else originals(batch)
        rows += [row[keep].tolist() for row, keep in zip(ids, batch.real, strict=True)]
    expected = [[BOS, *line[: recipe.max_length - 2].tolist(), EOS] for line in lines]
    assert max(map(len, expected)) == recipe.max_length  # some were too long
    assert sorted(rows) == sorted(expected)
    # A line longer than the budget is a batch of its own.
    short = replace(recipe, tokens_per_step=4)
    apart = held_out_batches([np.arange(10, 13), np.arange(20, 28)], short)
    assert [tuple(batch.ids.shape) for batch in apart] == [(1, 5), (1, 10)]
