"""The table of the family: who is in it, in what they differ, when they are kept."""

import json
from dataclasses import asdict, replace
from itertools import pairwise

import pytest

from family.recipes import RECIPES, MemberRecipe, describe, read_recipe

WIDE = {"hidden_size", "intermediate_size", "learning_rate", "matrix_learning_rate"}
# Member → whom it is compared with, and all fields in which the two may differ.
DIFFERENCES = {
    "mini-xlmr-6": ("mini-xlmr", {"languages"}),
    "mini-xlmr-12": ("mini-xlmr", {"languages"}),
    "mini-roformer": ("mini-xlmr", {"positions"}),
    "mini-mbert": ("mini-xlmr", {"architecture"}),
    "mini-xlm": ("mini-xlmr", {"objectives"}),
    "mini-infoxlm": ("mini-xlm", {"objectives", "steps"}),  # as many subwords in fewer steps
    "mini-llama": ("mini-xlmr", {"architecture", "objectives", "intermediate_size"}),
    "mini-xlmr-large": ("mini-xlmr", WIDE),
    "mini-llama-large": ("mini-llama", {"hidden_size", "intermediate_size"}),
    "mini-llama-en80": ("mini-llama", {"english_share"}),
    "mini-llama-en95": ("mini-llama", {"english_share"}),
    "mini-llama-bi2": ("mini-llama", {"pair_share"}),
    "mini-llama-bi20": ("mini-llama", {"pair_share"}),
    "base-infoxlm": ("base-xlmr", {"objectives"}),
}


def test_a_member_differs_in_what_its_row_says() -> None:
    assert all(recipe.name == name for name, recipe in RECIPES.items())
    assert set(RECIPES) == {*DIFFERENCES, *(reference for reference, _ in DIFFERENCES.values())}
    for member, (reference, expected) in DIFFERENCES.items():
        settings, others = asdict(RECIPES[member]), asdict(RECIPES[reference])
        assert {key for key in settings if settings[key] != others[key]} == expected | {"name"}
    shares = [RECIPES[f"mini-llama{end}"].english_share for end in ("", "-en80", "-en95")]
    assert shares == [None, 0.80, 0.95]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "bert", "objectives": ("mlm", "tlm")}, "bert learns from mlm"),
        ({"positions": "none"}, "positions are absolute or rotary, not none"),
        ({"pair_share": -0.1}, "pair_share -0.1 is not in"),
    ],
)
def test_impossible_recipes_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MemberRecipe("odd", **changes)


def test_earlier_recipes_are_read_as_they_were_meant() -> None:
    told = json.loads(describe(MemberRecipe("mini-xlmr")))
    for later in ("languages", "pair_share", "warmup_steps", "averaged_share"):
        del told[later]
    told |= {"position_sd": 0.02, "aligned_share": None}
    assert read_recipe(json.dumps(told)) == MemberRecipe("mini-xlmr")
    with pytest.raises(ValueError, match="no recipe of this version: see aligned_share, lr"):
        read_recipe(json.dumps(told | {"lr": 1, "aligned_share": 0.5}))


# --- when a run is kept --------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_the_schedule_stays_out_of_the_dynamics(name: str) -> None:
    recipe = RECIPES[name]
    kept = recipe.checkpoint_steps()
    assert len(kept) >= 16
    assert (kept[0], kept[-1]) == (0, recipe.steps)
    ratios = [later / earlier for earlier, later in pairwise(kept[1:])]
    if name.startswith("mini-"):
        assert recipe.steady
        assert ratios == pytest.approx([2**0.5] * len(ratios), abs=0.01)
    assert {recipe.schedule(step) for step in range(recipe.warmup_steps, recipe.steps + 1)} == {1.0}


def test_dense_checkpoints_are_those_of_the_abx_paper_scaled() -> None:
    base = RECIPES["base-xlmr"]
    literal = [*range(5_000, 50_001, 5_000), *range(100_000, 1_500_001, 50_000)]
    assert len(literal) == 39
    assert replace(base, steps=1_500_000).checkpoint_steps() == [0, *literal]
    assert replace(base, steps=300).checkpoint_steps() == [0, *(step // 5000 for step in literal)]
    for steps in (1, 12, 39, 299):  # so short a run keeps no step twice
        kept = replace(base, steps=steps).checkpoint_steps()
        assert kept == sorted(set(kept))
        assert (kept[0], kept[-1]) == (0, steps)


def test_the_rate_warms_up_stays_and_decays_in_straight_lines() -> None:
    recipe = MemberRecipe("toy", steps=200, warmup_share=0.1, decay_share=0.5)
    rates = [recipe.schedule(step) for step in range(1, 201)]
    assert rates[:20] == pytest.approx([k / 20 for k in range(1, 21)])
    assert rates[20:100] == [1.0] * 80
    assert rates[100:] == pytest.approx([k / 100 for k in range(100, 0, -1)])
    for steps in (1, 2, 12):  # every step of a short run learns
        short = replace(recipe, steps=steps)
        assert all(0 < short.schedule(step) <= 1 for step in range(1, steps + 1))


def test_an_average_reaches_back_over_a_share_of_the_steps() -> None:
    recipe = MemberRecipe("toy", averaged_share=0.1)
    shares: list[float] = []
    for step in range(1, 2001):
        weight = recipe.averaging(step)
        shares = [share * (1 - weight) for share in shares] + [weight]
    assert sum(shares) == pytest.approx(1)
    age = sum(share * (2000 - step) for step, share in enumerate(shares, start=1))
    assert age / 2000 == pytest.approx(1 / 11, rel=0.01)
    assert {MemberRecipe("toy").averaging(step) for step in (1, 7, 2000)} == {1.0}
