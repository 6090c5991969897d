head = r"""# Which languages lose their form, and which gain meaning, and when?

LINKS

SHORT

![LD and MD of each language along training](../figures/abx-4-languages-all-layers.png)

**Terms.** *Language discrimination* (LD): how often a sentence is closer to another one of its language than to that one's translation. *Meaning discrimination* (MD): how often it is closer to its translation than to another sentence of that language; *matched* MD ("like length") asks only of others within 10 % of the translation's length. 0.5 is chance in all (notebook `abx-1-validation`). A language's score is the mean over its pairs with all others.

de Seyssel et al. (2025), Appendix E: Figures 8 and 9, the scores of each language over checkpoints.

The paper finds that languages follow the same course at different rates.

**Where we deviate.** Scores are exact, with intervals over documents. "At different rates" is taken apart into *when* a language turns and *how high* it stands, and what stands behind the heights is measured."""
prediction = """**Prediction.** If languages follow one course at different rates, then their lowest LD and highest MD lie at different checkpoints, and scores stretched to run from 0 to 1 differ between languages on the way. If they move together and differ in height alone, the turns fall together and the stretched scores agree. If the heights are the text's, script, branch or a bag of subwords, which has no model, explain them."""
one = """## One language along training

Finnish: the mean over its pairs with the other languages, averaged over layers."""
maps = """## Maps

Branch of the family and script (ISO 15924) stand at the first language of each group. Framed is *when*: the checkpoint after step 0 at which LD of a language is lowest, and MD highest."""
map_last = """*After Figure 8: scores of each language across checkpoints, averaged over layers.* Bright is high."""
when = """*After Figure 9: the same for the last layer.*

## When is each language's lowest LD and highest MD?"""
move = r"""Number of languages whose frame lies at each (trained) checkpoint. Do they also move alike between? Each language's scores are stretched to run from 0 (its lowest checkpoint) to 1 (its highest):

$$z_{\ell, c} = \frac{s_{\ell, c} - \min_{c'} s_{\ell, c'}}{\max_{c'} s_{\ell, c'} - \min_{c'} s_{\ell, c'}}$$"""
heights = """`mean` and `std` of the stretched score over languages: a small spread says that the languages move together. A model with one checkpoint has no course to stretch.

## At the last checkpoint"""
explained = """What goes with these heights? The share of their variance over languages that lies between scripts, between branches of families, and that the language's own score in a bag of subwords explains, without a model. Scripts and branches are groups, many of a single language; the adjusted share takes off what as many groups drawn at random would explain."""
weights = """## What does a mean over all pairs stand for?

23 of the 36 languages write Latin letters, so a mean over all pairs is mostly about pairs in which one does. If every pair of branches, or of scripts, counts alike:"""
direction = """## Does it matter in which language X is?

A score of a pair is the mean of two: with X in the one language, and in the other. Transfer has a direction (`abx-6-transfer`), so has LD: X and A are of one language, and B, the translation of A, is of the other. If the sentences of a language lie close together, LD is high with X in it and low with X elsewhere. Means over layers and over a language's pairs, largest and smallest difference:"""
try:
    from reading4 import *
except ImportError:
    reading = "READING"; short = "SHORT"
head = head.replace("SHORT", short)
