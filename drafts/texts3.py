head = r"""# Is there a trade-off between form and meaning?

LINKS

SHORT

![LD against MD over language pairs, plain and among sentences of like length](../figures/abx-3-tradeoff-pairs.png)

**Terms.** *Language discrimination* (LD): how often a sentence is closer to another one of its language than to that one's translation. *Meaning discrimination* (MD): how often it is closer to its translation than to another sentence of that language; *matched* MD ("like length") asks only of others within 10 % of the translation's length. 0.5 is chance in all (notebook `abx-1-validation`).

de Seyssel et al. (2025), section 4.2 and Appendix D: Figures 6 and 7 and the correlations of LD and MD over language pairs, checkpoints and layers.

The paper finds that language pairs which are easy to tell apart are those whose meanings are poorly aligned, at every checkpoint, and calls it a trade-off.

**Where we deviate.** The paper's p-values take 630 language pairs for 630 independent observations. They are made of 36 languages; the interval here resamples languages. Its last checkpoint is called "step 150,000" in this appendix and is the one of 1,500,000 updates elsewhere (footnotes 4 and 7). And every correlation is shown with matched MD, too."""
prediction = """**Prediction.** Spearman's ρ = -0.74 and Pearson's *r* = -0.68 over pairs × checkpoints; -0.83 and -0.72 at the last checkpoint; negative at every checkpoint; -0.66 and -0.53 over layers at the last one. A correlation whose interval over languages holds zero, or a positive one, would speak against a trade-off in the model at hand; so would one that is gone among sentences of like length, or once what the text has without a model (LD and MD of a bag of subwords) is held."""
rows = """## One row of each table

`by_layer` holds one row per model, checkpoint, task, layer and pair. Averaged over layers and with LD and MD side by side, a row is a point of the scatter plot."""
n = """`n` is the number of points, `low` and `high` the 95 % interval over languages. The paper does not say what it counts "across layers"; with p < 0.001 it can hardly be 13 layer averages, so here every pair at every layer is a point."""
course = """*After Figure 6: LD and MD of all language pairs at the last checkpoint, averaged over layers.* Named: the pairs at the ends of both scores; dotted: chance.

## Over checkpoints"""
without = """*After Figure 7: Pearson correlation of LD and MD over language pairs, by checkpoint.* Bands: 95 % intervals over languages. Filled: p < 0.05, as the paper marks it.

## Without a model

A trade-off *in the model* should not be there without one. The same correlation, for a bag of subwords of the same text (the count vectors of notebook `abx-2-dynamics`), and for the untrained model."""
partial = """The text has the correlation without a model, but that does not say that the model has no more of it. Among pairs of which the bag says the same, do LD and MD of a checkpoint still go against each other? The partial correlation is that of what a regression on LD and MD of the bag leaves of both (anew in each resample of languages); then it is held, too, whether two languages share a script, and what length alone gives MD of the pair (notebook `abx-2-dynamics`). The first checkpoint, untrained, says how much of it needs no learning."""
kinds = """## What kind of pairs?

A correlation over pairs can come from kinds of pairs rather than from pairs. Here the pairs of the last checkpoint are split by whether the two languages share a script and a branch of their family: means of the scores, and correlations within a kind."""
try:
    from reading3 import *
except ImportError:
    reading = "READING"; short = "SHORT"
head = head.replace("SHORT", short)
