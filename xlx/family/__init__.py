"""The miniature models: what each member is, how it is trained, what it cost.

In goes a member's name (`RECIPES`) and the shipped text; out comes a folder that `transformers`
reads: checkpoints, losses, a model card. ``python -m xlx.family.pretraining`` trains them
(`make pretrain`); `members` tells what the folders of the shipped ones say.
"""

from xlx.family.recipes import RECIPES, MemberRecipe

__all__ = ["RECIPES", "MemberRecipe"]
