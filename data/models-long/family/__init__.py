"""How the family of miniatures is trained: recipes, vocabularies, batches, objectives, the loop.

In go the pretraining text that the repository ships and a recipe; out comes a model with its
checkpoints from step 0, its losses and its card. ``make pretrain MODEL=mini-xlmr`` runs it.
"""
