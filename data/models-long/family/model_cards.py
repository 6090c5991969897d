"""The model card of a member: what it is, learnt from, cost and cannot do, from its own tables."""

from collections.abc import Mapping

import pandas as pd

from family.recipes import MemberRecipe

_KINDS = {
    "bert": "BERT", "xlm-roberta": "XLM-R", "llama": "Llama",
    "roformer": "RoFormer",
}  # fmt: skip
_LEARNING = {
    "mlm": "masked language modelling",
    "tlm": "translation language modelling",
    "contrast": "cross-lingual contrast of parallel sentences (XLCO)",
    "clm": "causal language modelling",
}
_CARD = """---
license: mit
library_name: transformers
---

# {recipe.name}

{kind} architecture, {recipe.layers} layers × {recipe.hidden_size},
{recipe.heads} heads, inner layer {recipe.intermediate_size}, {recipe.vocabulary:,} subwords
({pieces}), up to {recipe.max_length} positions: {run[parameters]:,} parameters. A member of
the miniature family of `xlx`; in what it differs from the others is told by `family`.

```python
from transformers import {auto}

model = {auto}.from_pretrained("{where}")
```

| | |
|---|---|
| learns from | {objectives} |
| text | Common Voice (CC0), Tatoeba (CC BY 2.0 FR), NTREX-128 (CC BY-SA 4.0), New Testaments (public domain; pt CC BY 3.0 BR) in 36 languages |
| languages |{codes} share ~ (subwords) ^ {recipe.language_exponent}, {english}{pairs} |
| seen | {run[subwords_seen]:,} subwords in {run[steps]:,} steps |
| took | {run[minutes]:.0f} minutes on {run[device]}, torch {run[torch]}, {precision} |
| loss at the end | {final} nats, in training |
| checkpoints | {steps}{averaged} |
| all settings | `recipe.json` |

## Loss on held-out text

Nats a {counted} subword of the last NTREX documents, the same lines in every language. Comparable
between members with the same vocabulary and objective only, and between languages with care: a
subword is not the same amount of text in each.

"""  # noqa: E501
_LIMITS = """## Limits

A model for studying models: it has read about as much text as a few dozen books, mostly short
sentences, news of 2019 and the New Testament, and should not be used to write, translate or decide
anything. What the corpora say of people and peoples it has learnt too.
"""


def model_card(
    recipe: MemberRecipe, run: Mapping[str, object], losses: pd.DataFrame, held_out: pd.DataFrame
) -> str:
    """The card as Markdown.

    ``run`` is what ``run.json`` holds; ``losses`` is the loss table of the run; ``held_out`` has
    step, language and loss.
    """
    last = losses[losses["step"] == losses["step"].max()]
    share, averaged, products = recipe.english_share, recipe.averaged_share, run["products"]
    rotary = recipe.positions == "rotary"
    card = _CARD.format(
        recipe=recipe,
        run=run,
        kind=_KINDS["roformer" if rotary else recipe.architecture],
        pieces="WordPiece" if recipe.architecture == "bert" else "BPE with byte fallback",
        auto="AutoModelForCausalLM" if recipe.decoder else "AutoModelForMaskedLM",
        where=f"data/models-long/{recipe.name}/step-{recipe.steps:06d}",
        objectives=", ".join(_LEARNING[objective] for objective in recipe.objectives),
        codes=f" of them: {', '.join(recipe.languages)};" if recipe.languages else "",
        english="English as every other" if share is None
        else f"English fixed at {share:.0%}, the others share the rest so",
        pairs=f"; {recipe.pair_share:.0%} of the rows hold translations, a sentence behind its own"
        if recipe.pair_share else "",
        precision="bfloat16 autocast" if products == "bfloat16" else products,
        final=", ".join(f"{row.objective} {row.loss:.2f}" for row in last.itertuples()),
        steps=", ".join(f"{step:,}" for step in recipe.checkpoint_steps()),
        averaged=f", of weights averaged over the last {averaged:.0%} of the steps so far"
        if averaged else "",
        counted="next" if recipe.decoder else "masked",
    )  # fmt: skip
    final = held_out[held_out["step"] == held_out["step"].max()]
    table = final.set_index("language")["loss"].sort_index()
    for start in range(0, len(table), 12):
        part = table.iloc[start : start + 12]
        card += f"| {' | '.join(part.index)} |\n{'|---' * len(part)}|\n"
        card += f"| {' | '.join(f'{loss:.2f}' for loss in part)} |\n\n"
    return card + f"Mean over {len(table)} languages: {table.mean():.2f}.\n\n{_LIMITS}"
