import sys; sys.path.insert(0,"drafts")
from nb import Book
B=Book("abx-1-validation"); M,P=B.M,B.P
import texts1 as T
M(T.head.replace("LINKS",B.links))
M(T.prediction)
P('''profile = "mini"  # which set of parameters this is
corpus = "wmt24pp"  # parallel text: a name that xlx.text.corpora.load knows, or a folder
languages: list | None = None  # codes; None: all of the corpus
models = ["../data/models-long/mini-xlmr", "../data/models-long/mini-infoxlm"]  # the last state
pooling = "mean"  # of subword states; special tokens stay out
max_length: int | None = None  # subwords a sentence; None: what the model takes
n_sentences: int | None = None  # positions drawn from the corpus; None: all (the paper)
n_triplets = 100_000  # sampled triplets per condition (the paper: about as many)
n_runs = 5  # runs of the sampled score (Appendix B)
n_pairs: int | None = 36  # language pairs in these runs; None: all
n_resamples = 1000  # of the bootstraps
embedding_layer = True  # whether layer 0 counts in an average over all layers
seed = 1  # of everything drawn''',["parameters"])
P('''import numpy as np
import pandas as pd

from xlx import plots
from xlx.abx import courses, experiments, validation
from xlx.abx.averages import averaged_scores
from xlx.abx.checkpoint_scores import checkpoint_scores
from xlx.core import work
from xlx.plots import abx as abx_plots
from xlx.plots import triplets
from xlx.text import corpora

pd.set_option("display.max_colwidth", None)
text = corpora.load(corpus, languages, drop_duplicates=True)
text = text.take(n_sentences or len(text), seed)
print(f"{text.name}: {len(text)} positions in {len(text.languages)} languages, no two the same")''')
P('''options = {"pooling": pooling, "max_length": max_length}
last = checkpoint_scores(models, text, **options)
pair = ("en", "fr")
states = experiments.states_of(models, text.select(pair), **options)
display(experiments.shapes(states))
experiments.cut_table(last).round(1)''')
M(T.cut)
P('''sentences, distances = experiments.example_triplets(text, states, pair, seed)
display(sentences)
distances.round(3)''')
P('''figure = triplets.triplet_drawings(sentences, distances, distances.index[-1][1])
plots.save(figure, "abx-1-validation-triplets", profile)''')
M(T.triplets)
P('''chosen = validation.neighbouring_pairs(text.languages, n_pairs)
drawn = {"n_triplets": n_triplets, "seed": seed}
spread = validation.sampling(models, text, chosen, n_runs=n_runs, **drawn, **options)
spread.groupby(["model", "task"]).agg(
    conditions=("sd", "size"),
    mean_sd=("sd", "mean"),
    expected_sd=("expected_sd", "mean"),
    largest_error=("error", "max"),
).round(4)''')
M(T.columns)
P('''figure = abx_plots.sampling_spread(spread)
plots.save(figure, "abx-1-validation-sampling", profile)''')
M(T.sure)
P('''chosen = last[0].scores.pairs[:: len(last[0].scores.pairs) // 3][:3]
errors = validation.errors(models, text, chosen, n_resamples=n_resamples, seed=seed, **options)
errors["of 100,000 triplets, at most"] = np.sqrt(0.25 / 100_000)
errors = errors.rename(columns={"score": "score, last layer"})
errors.set_index(["model", "language_1", "language_2", "task"]).round(3)''')
M(T.documents)
P('''print(f"{len(set(corpora.documents(text)))} documents")
tasks = list(courses.DRAWN)
of_means = validation.grouped_errors(last, tasks, embedding_layer=embedding_layer)
of_means.drop(columns="checkpoint").round(4)''')
M(T.controls)
P('''controls = validation.control_scores(models, text, **drawn, **options)
at_chance = (controls["low"] <= 0.5) & (controls["high"] >= 0.5)
print(f"{at_chance.sum()} of {len(controls)} intervals hold 0.5")
controls.pivot(index=["model", "task"], columns="layer", values="score").round(3)''')
P('''figure = abx_plots.intervals(controls)
plots.save(figure, "abx-1-validation-controls", profile)''')
M(T.shuffles)
P('''shuffled = validation.shuffled_controls(models, text, seed=seed, **options)
shuffled.pivot(index=["model", "control"], columns="layer", values="score").round(3)''')
P('''figure = abx_plots.shuffled_controls(shuffled)
plots.save(figure, "abx-1-validation-shuffles", profile)''')
M(T.distractors)
P('''meanings = [task for task in last[0].tasks if task.startswith("MD")]
of_masks = averaged_scores(last, meanings, by=["layer"])
of_masks.pivot(index=["model", "task"], columns="layer", values="score").round(2)''')
M(T.retrieval)
P('''pairs = experiments.retrieval_pairs(last, embedding_layer)
correlations = experiments.retrieval_correlations(pairs, n_resamples=n_resamples, seed=seed)
correlations.set_index(["pairing", "model"]).round(2)''')
P('''lines = experiments.captions(correlations, "pairing", label="model", interval=False)
figure = abx_plots.retrieval_scatter(pairs, lines)
plots.save(figure, "abx-1-validation-retrieval", profile)''')
P('''tasks = ["LD", *meanings, "retrieval"]
means = averaged_scores(last, tasks, embedding_layer=embedding_layer)
means.pivot(index="task", columns="model", values=["score", "low", "high"]).loc[tasks].round(3)''')
M(T.reading)
P('''work.report()''')
B.save()
