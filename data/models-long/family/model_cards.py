"""The model card of a member: what it is, learnt from, cost and cannot do, from its own tables."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from family.recipes import MemberRecipe

_KINDS = {"bert": "BERT", "xlm-roberta": "XLM-R", "llama": "Llama", "roformer": "RoFormer"}
_LEARNING = {
    "mlm": "masked language modelling",
    "tlm": "translation language modelling",
    "contrast": "cross-lingual contrast of parallel sentences (XLCO)",
    "clm": "causal language modelling",
}
#: The card with names of what is filled in.
CARD = Path(__file__).with_name("card.md")


def model_card(
    recipe: MemberRecipe, run: Mapping[str, object], losses: pd.DataFrame, held_out: pd.DataFrame
) -> str:
    """The card as Markdown.

    ``run`` is what ``run.json`` holds; ``losses`` is the loss table of the run; ``held_out`` has
    step, language and loss.
    """
    last = losses[losses["step"] == losses["step"].max()]
    final = held_out[held_out["step"] == held_out["step"].max()]
    by_language = final.set_index("language")["loss"].sort_index()
    table = ""
    for start in range(0, len(by_language), 12):
        part = by_language.iloc[start : start + 12]
        table += f"| {' | '.join(part.index)} |\n{'|---' * len(part)}|\n"
        table += f"| {' | '.join(f'{loss:.2f}' for loss in part)} |\n\n"
    share, averaged, products = recipe.english_share, recipe.averaged_share, run["products"]
    return CARD.read_text("utf-8").format(
        recipe=recipe,
        run=run,
        kind=_KINDS["roformer" if recipe.positions == "rotary" else recipe.architecture],
        pieces="WordPiece" if recipe.architecture == "bert" else "BPE with byte fallback",
        auto="AutoModelForCausalLM" if recipe.decoder else "AutoModelForMaskedLM",
        where=f"data/models-long/{recipe.name}/step-{recipe.steps:06d}",
        objectives=", ".join(_LEARNING[objective] for objective in recipe.objectives),
        codes=f" of them: {', '.join(recipe.languages)};" if recipe.languages else "",
        english="English as every other"
        if share is None
        else f"English fixed at {share:.0%}, the others share the rest so",
        pairs=f"; {recipe.pair_share:.0%} of the rows hold translations, a sentence behind its own"
        if recipe.pair_share
        else "",
        precision="bfloat16 autocast" if products == "bfloat16" else products,
        final=", ".join(f"{row.objective} {row.loss:.2f}" for row in last.itertuples()),
        steps=", ".join(f"{step:,}" for step in recipe.checkpoint_steps()),
        averaged=f", of weights averaged over the last {averaged:.0%} of the steps so far"
        if averaged
        else "",
        counted="next" if recipe.decoder else "masked",
        table=f"{table}Mean over {len(by_language)} languages: {by_language.mean():.2f}.",
    )
