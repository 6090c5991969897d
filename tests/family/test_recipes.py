"""The table of the family: who is in it, in what they differ, when they are kept."""

import json
from dataclasses import fields, replace
from itertools import pairwise

import pytest

from xlx.family import recipes
from xlx.family.recipes import (
    LONG_RECIPES,
    MEMBERS,
    RECIPES,
    MemberRecipe,
    continues,
    describe,
    read_recipe,
)

# Member → whom it is compared with, and all fields in which the two may differ. `history` decides
# what is kept of a run, not what it learns (test_pretraining.py).
DIFFERENCES = {
    "mini-mbert": ("mini-xlmr", {"architecture", "history"}),
    "mini-xlm": ("mini-xlmr", {"objectives", "history"}),
    "mini-infoxlm": ("mini-xlm", {"objectives", "history"}),
    "mini-xlmr-large": (
        "mini-xlmr",
        {"layers", "hidden_size", "intermediate_size", "history"},
    ),
    "mini-llama": ("mini-xlmr", {"architecture", "objectives", "intermediate_size"}),
    "mini-llama-en80": ("mini-llama", {"english_share", "history"}),
    "mini-llama-en95": ("mini-llama", {"english_share", "history"}),
    "mini-llama-large": (
        "mini-llama",
        {"layers", "hidden_size", "intermediate_size", "history"},
    ),
}


def differences(one: str, other: str) -> set[str]:
    return {
        field.name
        for field in fields(MemberRecipe)
        if getattr(RECIPES[one], field.name) != getattr(RECIPES[other], field.name)
    } - {"name"}


def test_the_table_holds_the_members_by_name() -> None:
    assert all(recipe.name == name for name, recipe in RECIPES.items())
    assert set(MEMBERS) == {"mini-xlmr", *DIFFERENCES}
    assert set(RECIPES) - set(MEMBERS) == {"base-xlmr", "base-infoxlm"}
    assert len([name for name in MEMBERS if RECIPES[name].decoder]) >= 4
    assert {name for name in MEMBERS if RECIPES[name].history} == {
        "mini-xlmr", "mini-infoxlm", "mini-llama",
    }  # fmt: skip
    assert RECIPES["mini-mbert"].architecture == "bert"


def test_the_docstring_compares_the_same_members() -> None:
    rows = [line.split("``") for line in recipes.__doc__.splitlines() if line.startswith("``mini")]
    told = {row[1]: row[3] for row in rows if len(row) > 3}
    assert told == {member: reference for member, (reference, _) in DIFFERENCES.items()}


@pytest.mark.parametrize("member", DIFFERENCES)
def test_a_member_differs_in_what_its_row_says(member: str) -> None:
    reference, expected = DIFFERENCES[member]
    assert differences(member, reference) == expected


def test_the_decoders_differ_in_one_thing_at_a_time() -> None:
    assert differences("mini-llama-en80", "mini-llama-en95") == {"english_share"}
    shares = [RECIPES[f"mini-llama{end}"].english_share for end in ("", "-en80", "-en95")]
    assert shares == [None, 0.80, 0.95]


@pytest.mark.parametrize(("size", "wider"), [("mini-xlmr", 2), ("mini-llama", 1.5)])
def test_the_large_ones_are_wider_and_deeper(size: str, wider: float) -> None:
    small, large = RECIPES[size], RECIPES[f"{size}-large"]
    assert large.hidden_size == wider * small.hidden_size
    assert large.intermediate_size == wider * small.intermediate_size
    assert large.layers > small.layers


def test_the_base_size() -> None:
    assert differences("base-xlmr", "base-infoxlm") == {"objectives"}
    for name in ("base-xlmr", "base-infoxlm"):
        base = RECIPES[name]
        assert base.layers >= 12
        assert base.hidden_size >= 384
        assert base.dense_checkpoints
        assert base.history
        assert base.contrast_layer <= base.layers


@pytest.mark.parametrize("name", RECIPES)
def test_sizes_fit_together(name: str) -> None:
    recipe = RECIPES[name]
    assert recipe.hidden_size % recipe.heads == 0
    assert max(*recipe.block_lengths, recipe.contrast_length) <= recipe.max_length
    assert recipe.contrast_layer <= recipe.layers


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "gpt2"}, "odd: architecture 'gpt2' is not one of bert, xlm-roberta"),
        ({"objectives": ("clm",)}, "xlm-roberta learns from mlm, tlm, contrast, not from clm"),
        ({"objectives": ()}, "not from nothing"),
        ({"architecture": "bert", "objectives": ("mlm", "tlm")}, "bert learns from mlm"),
        ({"architecture": "llama"}, "llama learns from clm, not from mlm"),
        ({"english_share": 0.0}, "english_share 0.0 is not in"),
        ({"english_share": 1.0}, "english_share 1.0 is not in"),
        ({"english_share": 95}, "english_share 95 is not in"),
        ({"averaged_share": 1.5}, "averaged_share 1.5 is not in"),
        ({"aligned_share": -0.1}, "aligned_share -0.1 is not in"),
        ({"pair_share": 0.2}, "pair_share is of a decoder's text"),
    ],
)
def test_impossible_recipes_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MemberRecipe("odd", **changes)


def test_a_description_says_everything() -> None:
    for recipe in RECIPES.values():
        told = json.loads(describe(recipe))
        assert set(told) == {field.name for field in fields(MemberRecipe)}
        told = {key: tuple(v) if isinstance(v, list) else v for key, v in told.items()}
        assert MemberRecipe(**told) == recipe
    assert len({describe(recipe) for recipe in RECIPES.values()}) == len(RECIPES)


def test_a_recipe_of_the_first_series_is_read_as_it_was_meant() -> None:
    told = json.loads(describe(RECIPES["mini-xlmr"]))
    for later in recipes._LATER:
        del told[later]
    assert read_recipe(json.dumps(told)) == RECIPES["mini-xlmr"]
    del told["seed"]
    with pytest.raises(ValueError, match="no recipe of this version: see lr, seed"):
        read_recipe(json.dumps({**told, "lr": 1}))


# --- the long series -----------------------------------------------------------------------------

LONG_DIFFERENCES = {
    "mini-xlmr-6": ("mini-xlmr", {"languages"}),
    "mini-xlm": ("mini-xlmr", {"objectives"}),
    "mini-infoxlm": ("mini-xlm", {"objectives", "steps"}),  # as many subwords in fewer steps
    "mini-llama-bi2": ("mini-llama", {"pair_share"}),
    "mini-llama-bi20": ("mini-llama", {"pair_share"}),
}


@pytest.mark.parametrize("member", LONG_DIFFERENCES)
def test_a_long_run_differs_in_what_is_asked_of_it(member: str) -> None:
    reference, expected = LONG_DIFFERENCES[member]
    one, other = LONG_RECIPES[member], LONG_RECIPES[reference]
    differ = {field.name for field in fields(MemberRecipe)} - {"name"}
    assert {name for name in differ if getattr(one, name) != getattr(other, name)} == expected


@pytest.mark.parametrize("name", LONG_RECIPES)
def test_long_runs_have_a_schedule_out_of_the_dynamics(name: str) -> None:
    recipe = LONG_RECIPES[name]
    assert recipe.name == name
    assert recipe.steady
    kept = recipe.checkpoint_steps()
    assert len(kept) >= 16
    assert (kept[0], kept[-1]) == (0, recipe.steps)
    ratios = [two / one for one, two in pairwise(kept[1:])]
    assert ratios == pytest.approx([2**0.5] * len(ratios), abs=0.01)
    assert {recipe.schedule(step) for step in range(kept[1], recipe.steps + 1)} == {1.0}


def test_a_longer_run_keeps_the_same_and_more() -> None:
    short = replace(LONG_RECIPES["mini-xlmr"], steps=800)
    longer = replace(short, steps=1600)
    assert short.checkpoint_steps() == [0, 100, 141, 200, 283, 400, 566, 800]
    assert longer.checkpoint_steps() == [*short.checkpoint_steps(), 1131, 1600]
    assert [short.schedule(step) for step in range(1, 801)] == [
        longer.schedule(step) for step in range(1, 801)
    ]


def test_which_run_goes_on_with_which() -> None:
    steady, first = (replace(of["mini-xlmr"], steps=800) for of in (LONG_RECIPES, RECIPES))
    assert continues(steady, steady)
    assert continues(replace(steady, steps=1600), steady)
    assert not continues(steady, replace(steady, steps=1600))
    assert not continues(replace(steady, steps=1600), replace(steady, seed=2))
    assert continues(first, first)
    assert not continues(replace(first, steps=1600), first)
    assert not first.steady


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


# --- when a run is kept --------------------------------------------------------------------------


def test_checkpoints_double() -> None:
    recipe = MemberRecipe("toy", steps=4000, first_checkpoint=125, history=True)
    assert recipe.checkpoint_steps() == [0, 125, 250, 500, 1000, 2000, 4000]
    assert replace(recipe, steps=1001).checkpoint_steps() == [0, 125, 250, 500, 1000, 1001]
    assert replace(recipe, steps=125).checkpoint_steps() == [0, 125]
    assert replace(recipe, steps=7).checkpoint_steps() == [0, 7]
    assert replace(recipe, history=False).checkpoint_steps() == [4000]


def test_dense_checkpoints_are_those_of_the_abx_paper() -> None:
    paper = replace(RECIPES["base-xlmr"], steps=1_500_000)
    literal = [*range(5_000, 50_001, 5_000), *range(100_000, 1_500_001, 50_000)]
    assert len(literal) == 39
    assert paper.checkpoint_steps() == [0, *literal]


@pytest.mark.parametrize("steps", [300, 1000, 30_000])
def test_dense_checkpoints_scale_with_the_run(steps: int) -> None:
    kept = replace(RECIPES["base-xlmr"], steps=steps).checkpoint_steps()
    assert len(kept) == len(set(kept)) == 1 + 39
    assert kept[1:11] == [round(k * steps / 300) for k in range(1, 11)]
    assert kept[10:] == [round(k * steps / 30) for k in range(1, 31)]


@pytest.mark.parametrize("steps", [1, 12, 39, 60, 299])
def test_a_short_dense_run_keeps_no_step_twice(steps: int) -> None:
    kept = replace(RECIPES["base-xlmr"], steps=steps).checkpoint_steps()
    assert kept == sorted(set(kept))
    assert (kept[0], kept[-1]) == (0, steps)


def test_the_rate_warms_up_stays_and_decays_in_straight_lines() -> None:
    recipe = MemberRecipe("toy", steps=200, warmup_share=0.1, decay_share=0.5)
    rates = [recipe.schedule(step) for step in range(1, 201)]
    assert rates[:20] == pytest.approx([k / 20 for k in range(1, 21)])
    assert rates[20:100] == [1.0] * 80
    assert rates[100:] == pytest.approx([k / 100 for k in range(100, 0, -1)])


@pytest.mark.parametrize("steps", [1, 2, 12])
def test_every_step_of_a_short_run_learns(steps: int) -> None:
    recipe = MemberRecipe("toy", steps=steps)
    assert all(0 < recipe.schedule(step) <= 1 for step in range(1, steps + 1))
