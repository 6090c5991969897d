"""What members learn: first weights, and losses against their definitions."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from family import objectives
from family.batches import NO_LABEL, Batch, Batches, held_out_batches
from family.recipes import RECIPES, MemberRecipe
from family.training_text import PAD
from tests import toy

CPU = torch.device("cpu")
of_each_architecture = pytest.mark.parametrize(
    "recipe", list(map(toy.recipe, toy.MEMBERS)), ids=toy.MEMBERS
)


@pytest.fixture
def contrasted() -> tuple[MemberRecipe, torch.nn.Module, Batch]:
    recipe = toy.recipe("mini-infoxlm")
    batches = Batches(toy.prepared("xlm-roberta")[1], recipe)
    return recipe, objectives.untrained(recipe), batches.contrast(np.random.default_rng(0))


def test_members_of_one_architecture_and_size_start_from_the_same_weights() -> None:
    starts: dict[tuple, dict[str, torch.Tensor]] = {}
    alike: dict[tuple, set[str]] = {}
    for name in (name for name in RECIPES if name.startswith("mini-")):
        recipe = RECIPES[name]
        size = (recipe.architecture, recipe.positions, recipe.hidden_size)
        state = objectives.untrained(recipe).state_dict()
        assert toy.same(starts.setdefault(size, state), state), name
        alike.setdefault(size, set()).add(name.removeprefix("mini-"))
    assert len(starts) == 6  # mBERT, RoFormer, two sizes of XLM-R and of Llama
    assert {"xlmr", "xlmr-6", "xlmr-12", "xlm", "infoxlm"} in alike.values()
    shares = {f"llama-{share}" for share in ("en80", "en95", "bi2", "bi20")}
    assert {"llama", *shares} in alike.values()


def assert_sd(values: torch.Tensor, sd: float) -> None:
    """Normal values of mean 0: their sd is known to one part in the root of twice their number."""
    assert float(values.std()) == pytest.approx(sd, rel=4 / math.sqrt(2 * values.numel()))
    assert abs(float(values.mean())) < 4 * sd / math.sqrt(values.numel())


@torch.no_grad()
@pytest.mark.parametrize("member", toy.MEMBERS)
def test_shape_and_first_weights_are_those_of_the_recipe(member: str) -> None:
    recipe = toy.recipe(member, vocabulary=2000, hidden_size=64, intermediate_size=128)
    model = objectives.untrained(recipe)
    config, table = model.config, model.get_input_embeddings().weight
    n_embeddings = n_matrices = 0
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            rows = list(module.weight)
            if module.padding_idx is not None:
                assert not rows.pop(module.padding_idx).any()
            if module.weight.requires_grad:  # rotary positions are not learned
                assert_sd(torch.stack(rows), 0.02)
                n_embeddings += 1
        elif isinstance(module, torch.nn.Linear):
            assert module.bias is None or not module.bias.any()
            if module.weight is not table:
                assert_sd(module.weight, 0.02 * math.sqrt(768 / 64))
                n_matrices += 1
    rotary = recipe.positions == "rotary"
    assert n_embeddings == (1 if recipe.decoder else 2 if rotary else 3)  # subwords; types; places
    assert n_matrices == (7 * recipe.layers if recipe.decoder else 6 * recipe.layers + 1)
    # The output layer shares its matrix with the embeddings: it is not drawn once more.
    assert model.get_output_embeddings().weight is table
    assert config.model_type == ("roformer" if rotary else recipe.architecture)
    assert (config.bos_token_id, config.pad_token_id, config.eos_token_id) == (0, PAD, 2)
    ids = torch.full((1, recipe.max_length), 5)  # as long as a line may be
    assert model(ids).logits.shape == (1, recipe.max_length, recipe.vocabulary)


def labelled_batch(recipe: MemberRecipe) -> Batch:
    """Lines of different lengths, so that there is padding."""
    tokenizer, _, held = toy.prepared(recipe.architecture)
    lines = [tokenizer.encode(line, add_special_tokens=False).ids for line in held["de"]]
    lines = [np.array(lines[0][:3]), *map(np.array, lines[1:])]
    (batch, *_) = held_out_batches(lines, replace(recipe, tokens_per_step=999))
    assert not batch.real.all()
    return batch


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_mean_cross_entropy_is_torchs_in_float32(kind: torch.dtype) -> None:
    drawn = torch.Generator().manual_seed(0)
    logits = (4 * torch.randn(75, 40, generator=drawn)).to(kind).requires_grad_()
    labels = torch.randint(0, 40, (75,), generator=drawn)
    before = logits.detach().clone()
    expected = torch.nn.functional.cross_entropy(logits.float(), labels)
    mean = objectives.MeanCrossEntropy.apply(logits, labels)
    assert float(mean.detach()) == pytest.approx(float(expected.detach()), 1e-6)
    for weight in (1, 3):
        (of_torch,) = torch.autograd.grad(weight * expected, logits, retain_graph=True)
        (gradient,) = torch.autograd.grad(weight * mean, logits, retain_graph=True)
        assert gradient.dtype == kind
        tolerance = 1e-7 if kind == torch.float32 else 2e-3
        torch.testing.assert_close(gradient, of_torch, rtol=1e-2, atol=tolerance)
    assert torch.equal(logits, before)


@torch.no_grad()
@of_each_architecture
def test_labelled_losses_against_their_definition(recipe: MemberRecipe) -> None:
    model, batch = objectives.untrained(recipe).eval(), labelled_batch(recipe)
    logits = model(batch.ids, attention_mask=batch.real).logits
    expected = [
        float(torch.logsumexp(scores, 0) - scores[label])
        for scores, label in zip(logits.flatten(0, 1), batch.labels.flatten(), strict=True)
        if label != NO_LABEL
    ]
    losses = objectives.labelled_loss(model, batch, mean=False)
    assert losses.tolist() == pytest.approx(expected, 1e-4)
    assert float(objectives.labelled_loss(model, batch)) == pytest.approx(np.mean(expected), 1e-5)


@torch.no_grad()
def test_the_contrast_against_its_definition(contrasted) -> None:
    _, model, pairs = contrasted
    inputs = {"attention_mask": pairs.real, "output_hidden_states": True}
    states = model.eval().roberta(pairs.ids, **inputs).hidden_states[1]
    pooled = []
    for row, ids in zip(states, pairs.ids.tolist(), strict=True):
        inner = [state for state, i in zip(row, ids, strict=True) if i not in (0, 1, 2)]
        mean = torch.stack(inner).mean(0)
        pooled.append(mean / mean.norm())
    total, n = 0.0, len(pooled) // 2
    for i in range(n):
        for side, others in ((0, 1), (1, 0)):
            scores = [pooled[2 * i + side] @ pooled[2 * j + others] for j in range(n)]
            scores = torch.stack(scores) / 0.1
            total += float(torch.logsumexp(scores, 0) - scores[i])
    loss = objectives.contrastive_loss(objectives.lower_layers(model, 1), pairs, 0.1)
    assert float(loss) == pytest.approx(total / (2 * n), 1e-4)


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("mini-xlmr", ["mlm"] * 4),
        ("mini-llama", ["clm"] * 4),
        ("mini-xlm", ["tlm", "mlm"] * 2),
        ("mini-infoxlm", ["tlm", "mlm", "tlm", "mlm contrast"] * 2),
    ],
)
def test_objectives_take_turns(member: str, expected: list[str]) -> None:
    recipe = toy.recipe(member)
    model = objectives.untrained(recipe)
    batches = Batches(toy.prepared(recipe.architecture)[1], recipe)
    trunk = objectives.lower_layers(model, 1) if "contrast" in recipe.objectives else None
    for step, names in enumerate(expected, start=1):
        told, again = (
            [
                (objective, float(loss.detach()))
                for objective, loss, _ in objectives.step_losses(
                    model, trunk, batches, recipe, step, CPU
                )
            ]
            for _ in range(2)
        )
        assert " ".join(objective for objective, _ in told) == names
        assert told == again


@of_each_architecture
def test_every_parameter_has_one_optimiser(recipe: MemberRecipe) -> None:
    model = objectives.untrained(recipe)
    muon, adamw = objectives.optimisers(model, recipe)
    assert isinstance(muon, torch.optim.Muon)
    assert isinstance(adamw, torch.optim.AdamW)
    (in_muon,), (in_adamw,) = muon.param_groups, adamw.param_groups
    assert (in_muon["lr"], in_adamw["lr"]) == (recipe.matrix_learning_rate, recipe.learning_rate)
    ids = sorted(map(id, [*in_muon["params"], *in_adamw["params"]]))
    assert ids == sorted(map(id, model.parameters()))
    layers = model.model.layers if recipe.decoder else model.base_model.encoder.layer
    matrices = [id(p) for p in layers.parameters() if p.ndim == 2]
    assert sorted(map(id, in_muon["params"])) == sorted(matrices)
