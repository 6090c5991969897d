head = r"""# Do the ABX scores measure what they claim?

LINKS

SHORT

![Scores over layers where translations, or languages, have been shuffled](../figures/abx-1-validation-shuffles.png)

**Terms.** An ABX task shows a model three sentences and asks: is X closer to A or to B? In *language discrimination* (LD) A and X are in one language, and B is the translation of A; a high score says that form decides. In *meaning discrimination* (MD) A is the translation of X, and B another sentence in A's language; a high score says that meaning decides. *Matched* MD asks only of a B that is as long as A, within 10 % of its characters. 0.5 is chance in all.

de Seyssel et al. (2025), *Discriminating Form and Meaning in Multilingual Models with Minimal-Pair ABX Tasks*: the tasks (section 3, Appendix A), their validation (section 4.1, footnote 6) and the sampling of triplets (Appendix B).

**Where we deviate.** The paper scores about 100,000 sampled triplets per language pair. We score *all* of them, from matrix products, and show that the sampled score is this one plus noise. The paper has no intervals; ours are over documents. Its control cannot fail; we add some that can. The models are miniatures trained from scratch in this repository: their scores are not those of XLM-R, and only the shape of a result can be compared."""
prediction = """**Prediction.** If the scores are sound, then (1) the paper's controls, in which the variable of interest is held constant, come out at 0.5; (2) five runs of the sampled score differ by less than 0.01 (Appendix B); (3) MD rises and falls with translation retrieval over language pairs (the paper: *r* = 0.77). And where meanings are shuffled MD must fall to 0.5, where languages are shuffled LD must: a score that stays up measures something else than it says."""
cut = """Repeated segments were dropped, since "another meaning" would be untrue of them. Segments that were left in English stay: A and B are then the same string, and the triplet is a tie. A tenth of the segments is longer than the models take, and the rest of them is not seen; what that changes is measured in `abx-2-dynamics`.

## One triplet of each task

Appendix A as real text: distances are cosine distances at the middle layer, $d(u, v) = 1 - \\frac{u \\cdot v}{\\lVert u \\rVert \\lVert v \\rVert}$, and the score is 1 if $d(X, A) < d(X, B)$, 0 if it is greater, ½ on a tie (Algorithm 3)."""
triplets = r"""*After Figures 1 and 5: distances of the last model at its middle layer, to scale. Solid: what the task asks for; dotted: what A and B share, so that it cannot help. (Appendix A says that B and X share it, against its own examples: see [abx-7-printed](abx-7-printed.ipynb).)*

## Exact and sampled

With unit vectors $E_1$, $E_2$ of two languages, the exact scores are shares of ordered pairs of positions:

$$\mathrm{LD} = P_{x \neq a}\big(E_1[x] \cdot E_1[a] > E_1[x] \cdot E_2[a]\big), \qquad \mathrm{MD} = P_{b \neq x}\big(E_1[x] \cdot E_2[x] > E_1[x] \cdot E_2[b]\big).$$

A run of Algorithms 1 to 3 draws from the same pairs, so its mean is the exact score and its variance that of a share, $p(1 - p)/n$. The paper repeats its last checkpoint five times and reports a standard deviation below 0.01."""
columns = """Columns: `conditions` = pairs × layers; `mean_sd`: standard deviation over the runs, averaged; `expected_sd`: of a share; `largest_error`: the mean of the runs against the exact score."""
sure = """*After the robustness check of Appendix B.* The sampled score scatters around the exact one just as a share should: the paper's check says how many triplets were drawn, nothing about other text.

## How sure is a score?

What would change in another corpus is its text. Of a single pair of languages at the last layer, the standard error if other *sentences* had been drawn, by a jackknife that comes with the exact score and by a bootstrap that takes its time, and if other *documents* had: WMT24++ is made of news articles, chapters and threads, and sentences of one document are alike."""
documents = """The two ways over sentences agree, and are many times what counting triplets suggests (last column): a score of one language pair is known to about two digits, whatever the number of triplets. Over documents it is less sure again. Of means over all pairs and layers:"""
controls = """All intervals of this and the next notebooks are over documents.

## A control that cannot fail

The paper holds the variable of interest constant for A, B and X. It does not say what A and B still differ in: if in nothing, they are one sentence and every triplet is a tie. Here they differ in the other variable, drawn at random: for LD, three different sentences of one language; for MD, one sentence in three different languages. A and B are then exchangeable, so the expectation is 0.5 whatever the vectors: the control tests that triplets are drawn and scored without a preference, and could not find out that a score measures something else than it says. Intervals are Wilson's, since these triplets are independent draws with a known expectation, and wide enough that all of them together hold 0.5 in 95 % of repetitions."""
shuffles = """*Section 4.1, first control.* Points: controls at each layer; bars: simultaneous 95 % intervals.

## Controls that can fail

Here the corpus is spoiled instead, and the tasks stay as they are. *Translations*: half of the languages have their sentences in another order, so that no A is a translation of X: MD must be 0.5. *Languages*: at every position the languages change names: LD must be 0.5. And two that need not come out at 0.5, but say what else a score is made of: translations shuffled only *within documents*, so that A is from X's document (topic, names, style), and shuffled only *among neighbours in length*, so that A is about as long as a translation would be."""
distractors = """Intervals (bands) are over documents.

## Which B?

The same from the other side: MD asks whether the translation is closer than *another* sentence, and the paper takes any other. If B is as long as A, length cannot help; if it is of the same document or domain (news, speech, literature, social), topic and style cannot; if it is one of the ten sentences that share most subwords with A ("near"), little of the surface can."""
retrieval = """## Meaning discrimination and retrieval

Top-1 retrieval asks for more than MD: the translation must beat *all* other sentences, not one. Both come from the same similarity block. The paper correlates them over its 630 language pairs. Of its three numbers footnote 6 tells which layers two belong to; the first, 0.77, is set beside “all layers, both” here, because no other pairing is left. The sentence that prints it speaks of retrieval from the final layer and MD over all, which is the third pairing and 0.53. The interval resamples languages, because pairs share them."""
try:
    from reading1 import *
except ImportError:
    reading = "READING"; short = "SHORT"
head = head.replace("SHORT", short)
