import sys; sys.path.insert(0,"drafts")
from nb import Book
B=Book("abx-2-dynamics"); M,P=B.M,B.P
links=B.links
try:
    from reading2 import *
except ImportError:
    short=reading=changed="X"
M(f"""# How do form and meaning evolve over training and over layers?

{links}

{short}

![LD and MD over checkpoints](../figures/abx-2-dynamics-checkpoints.png)

**Terms.** *Language discrimination* (LD): how often a sentence is closer to another one of its language than to that one's translation. *Meaning discrimination* (MD): how often it is closer to its translation than to another sentence of that language. *Matched* MD asks only of other sentences within 10 % of the translation's length. 0.5 is chance in all (notebook `abx-1-validation`).

de Seyssel et al. (2025), section 4.2: Figures 2, 3 and 4.

The paper follows XLM-R over 39 checkpoints of 1.5 million updates and over its layers. Here the same scores follow miniature models with known text, recipe and history: `mini-xlmr` (masked language modelling in 36 languages, as XLM-R), `mini-infoxlm` (also translation language modelling and a cross-lingual contrast, as InfoXLM), and `mini-xlmr-6`, as the first but in six languages. They start from the same random weights, step 0.

**Where we deviate.** Scores are exact, on every position of the corpus that no language repeats, with intervals over documents. The rate of learning is constant, and a checkpoint is an average of weights over the last tenth of the steps so far, so that checkpoints are models and not phases of a schedule; they are spaced evenly in log steps. Four reference lines tell how much of a score is surface: the untrained model; a bag of subwords; the length of a sentence alone; and MD among sentences of like length stands beside MD everywhere.""")
M("""**Prediction** (the paper's findings for XLM-R). Both scores stay above 0.5; LD falls early in training and recovers in part, MD rises steadily. At the last checkpoint LD is highest in the lower layers, falls with depth and rises again in the last layer; MD rises quickly with depth and drops a little at the end. A model whose MD never leaves the bag of subwords behind, or falls to chance among sentences of like length, or whose LD does not depend on depth, would show that the picture needs more than masked language modelling on little text.""")
P('''profile = "mini"  # which set of parameters this is
corpus = "wmt24pp"  # parallel text: a name that xlx.text.corpora.load knows, or a folder
languages: list | None = None  # codes; None: all of the corpus
models = ["../data/models-long/mini-xlmr", "../data/models-long/mini-infoxlm"]  # or one state each
few: str | None = "../data/models-long/mini-xlmr-6"  # as the first model, in some languages
few_languages = ["ar", "de", "en", "ja", "ru", "tr"]  # these
leave_out: list = []  # checkpoints to leave out (the paper: 450,000, footnote 7)
pooling = "mean"  # of subword states; special tokens stay out
max_length: int | None = None  # subwords a sentence; None: what the model takes
n_sentences: int | None = None  # positions drawn from the corpus; None: all (the paper)
embedding_layer = True  # whether layer 0 counts in an average over all layers
seed = 1  # of the positions and of the halves of the documents''',["parameters"])
P('''import pandas as pd

from xlx import plots
from xlx.abx import courses, experiments, separation
from xlx.abx.averages import averaged_scores
from xlx.core import work
from xlx.plots import abx as abx_plots
from xlx.text import corpora

pd.set_option("display.max_colwidth", None)
text = corpora.load(corpus, languages, drop_duplicates=True)
text = text.take(n_sentences or len(text), seed)''')
P('''options = {"pooling": pooling, "max_length": max_length}
histories = courses.scored_series(models, text, leave_out, **options)
last = [history[-1] for history in histories]
n_pairs, steps = len(last[0].scores.pairs), [len(history) for history in histories]
print(f"{text.name}: {len(text)} positions in {len(set(corpora.documents(text)))} documents,")
print(f"{len(text.languages)} languages, {n_pairs} pairs; checkpoints a model: {steps}")
experiments.cut_table(last).round(1)''')
M("""A tenth of the segments is longer than the models take, and the rest of them is not seen: of Greek and Hindi three times as many as of English or Chinese. Does that decide anything? The last checkpoints on all positions, and on those that are cut in no language:""")
P('''courses.uncut_differences(models, last, text, **options).round(3)''')
M("""## One pair, before any average

Scores of German with Turkish, and with Japanese, at the last checkpoint, layer by layer, X in German. `n_triplets` is the number of triplets in each score: all of them, or all with a B of like length.""")
P('''courses.pair_courses(last, "de", ["ja", "tr"]).round(2)''')
M("""## Reference lines

A bag of subwords: each sentence is the count vector of its subwords, so cosines measure shared pieces, names, numbers and punctuation. LD and MD of it need no model at all, only its vocabulary. Length alone needs not even that: two sentences are the more alike, the closer their numbers of characters (on a log scale). A translation is about as long as its original, so MD of it is high, and a vector that tells how long a sentence is has it for nothing.""")
P('''lines = courses.surface_lines(models, last, text, max_length)
pd.concat(lines, names=["scores of", ""]).pivot_table(
    index=["scores of", "model"], columns="task", values="score", sort=False
).round(2)''')
M(r"""## Over checkpoints

$$\overline{\mathrm{LD}}_c = \frac{1}{|\text{layers}| \cdot |\text{pairs}|} \sum_{l, (i, j)} \mathrm{LD}_{c, l, (i, j)}$$

The mean over all layers and language pairs of checkpoint $c$, and its 95 % interval over documents.""")
P('''measured = [scores for history in histories for scores in history]
over_steps = averaged_scores(measured, courses.DRAWN, embedding_layer=embedding_layer)
over_steps.pivot(
    index=["model", "checkpoint"], columns="task", values=["score", "low", "high"]
).swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False).round(2)''')
P('''figure = abx_plots.dynamics(over_steps, references=lines)
plots.save(figure, "abx-2-dynamics-checkpoints", profile)''')
M("""*After Figure 2: LD and MD across checkpoints, averaged over layers and all language pairs.* Bands: 95 % intervals over documents. Step 0 is the untrained model.

## Over layers""")
P('''over_layers = averaged_scores(last, courses.DRAWN, by=["layer"])
over_layers.pivot(index=["model", "task"], columns="layer", values="score").round(2)''')
P('''has_history = over_steps.groupby("model")["checkpoint"].transform("nunique") > 1
untrained = over_steps[has_history & (over_steps["checkpoint"] == 0)]
if len(untrained):
    lines["the untrained model"] = untrained
figure = abx_plots.layer_profile(over_layers, references=lines)
plots.save(figure, "abx-2-dynamics-layers", profile)''')
M("""*After Figure 3: LD and MD across layers at the last checkpoint, averaged over all language pairs.*

## Over both""")
P('''over_both = averaged_scores(measured, courses.DRAWN, by=["layer"])
figure = abx_plots.checkpoint_layer_map(over_both)
plots.save(figure, "abx-2-dynamics-map", profile)''')
M("""*After Figure 4: scores by checkpoint and layer; bright is high.*

## What sets languages apart: a place, or more?

The cosine is of vectors as they are. All sentences of a language may lie to one side of those of another, by a vector of the language alone. *Centred*: without the mean of each language. *Standardised*: every dimension at mean 0 and standard deviation 1 over all languages, so that no few dimensions decide. If what LD sees is a place of the language, centring brings it to one half.""")
P('''in_spaces = courses.space_scores(models, text, **options)
courses.space_table(in_spaces).round(2)''')
M(r"""A score near 1 says that X is nearly always closer to A than to B; by how much it does not say. The paper names that among its limitations ("Discrimination vs Separation"). So beside the scores: the share of the variance of all sentences that lies between languages, and between meanings; and silhouettes, which are 1 where sentences of a kind (a language, or a meaning) lie far from all others, 0 where no kinds can be seen, and negative where the nearest other kind is closer than their own.""")
P('''spread = separation.separations(models, text, **options)
index, columns = ["model", "kind", "measure"], "layer"
spread.pivot(index=index, columns=columns, values="score").round(3)''')
M("""## Six languages instead of 36

`mini-xlmr-6` is the first model with the same recipe, size and number of subwords, but of six languages only. What is the price of the other thirty? Both on the same six languages:""")
P('''chosen = {"embedding_layer": embedding_layer}
six = text.select(few_languages) if few else text
history_of_six = courses.scored_series([few], six, leave_out, **options)[0] if few else []
if few:
    of_36 = courses.scores_within(histories[0], few_languages, **chosen)
    of_six = averaged_scores(history_of_six, courses.DRAWN, **chosen)
    few_lines = courses.surface_lines([few], history_of_six[-1:], six, max_length)
    figure = abx_plots.dynamics(pd.concat([of_36, of_six]), references=few_lines)
    plots.save(figure, "abx-2-dynamics-six", profile)''')
M("""*The same six languages in a model of 36 (left, without intervals) and in a model of six.* Bag and length are drawn for the latter. Over layers, at the last checkpoint:""")
P('''if few:
    by_layer = courses.scores_within(last[:1], few_languages, by=["layer"])
    of_six = averaged_scores(history_of_six[-1:], courses.DRAWN, by=["layer"])
    table = pd.concat([by_layer, of_six])
    display(table.pivot(index=["task", "model"], columns="layer", values="score").round(2))''')
M("""## The paper's sentences, one by one

Each row is a statement of section 4.2 as a number, a score less 0.5 or a difference of two scores, with its 95 % interval over documents; "middle" is the middle layer. `holds` says what the interval does: lies above zero, below, or holds it. MD is taken plain and among sentences of like length.

Which checkpoint is highest, and which is lowest after it, are themselves read off the scores, and the highest of several noisy numbers is above a later one by choice alone. So for the two rows on "falls" and "recovers" the checkpoints are chosen on one half of the documents and compared on the other, the halves change places, and the differences are averaged: without any change they come out negative as often as positive.""")
P('''of_claims = [*histories, history_of_six] if few else histories
claims = courses.claims_of_courses(of_claims, **chosen, seed=seed)
claims.round(3)''')
M(changed)
M(reading)
P("work.report()")
B.save()
