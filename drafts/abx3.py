import sys; sys.path.insert(0,"drafts")
from nb import Book
B=Book("abx-3-tradeoff"); M,P=B.M,B.P
import texts3 as T
M(T.head.replace("LINKS",B.links))
M(T.prediction)
P('''profile = "mini"  # which set of parameters this is
corpus = "wmt24pp"  # parallel text: a name that xlx.text.corpora.load knows, or a folder
languages: list | None = None  # codes; None: all of the corpus
models = ["../data/models-long/mini-xlmr", "../data/models-long/mini-infoxlm"]  # or one state each
leave_out: list = []  # checkpoints to leave out (the paper: 450,000, footnote 7)
pooling = "mean"  # of subword states; special tokens stay out
max_length: int | None = None  # subwords a sentence; None: what the model takes
n_sentences: int | None = None  # positions drawn from the corpus; None: all (the paper)
embedding_layer = True  # whether layer 0 counts in an average over all layers
n_resamples = 500  # of languages, for the intervals
seed = 1  # of the positions and the resamples''',["parameters"])
P('''import pandas as pd

from xlx import plots
from xlx.abx import courses, experiments, tradeoff
from xlx.core import work
from xlx.plots import abx as abx_plots
from xlx.text import corpora

text = corpora.load(corpus, languages, drop_duplicates=True)
text = text.take(n_sentences or len(text), seed)
options = {"pooling": pooling, "max_length": max_length}
histories = courses.scored_series(models, text, leave_out, **options)''')
P('''by_layer = tradeoff.layer_pairs([scores for history in histories for scores in history])
n_pairs = by_layer.groupby(["language_1", "language_2"]).ngroups
print(f"{len(text)} positions, {n_pairs} language pairs, {len(by_layer):,} scores")
by_layer.groupby(["model", "task"])["checkpoint"].agg(["nunique", "max"])''')
M(T.rows)
P('''pairs = tradeoff.tradeoff_pairs(by_layer, embedding_layer)
last = experiments.at_last(pairs)
last[last["language_1"].eq("de") & last["language_2"].isin(["nl", "ja"])].round(2)''')
M("## Over language pairs, at the last checkpoint")
P('''resampled = {"n_resamples": n_resamples, "seed": seed}
correlations = tradeoff.tradeoff_correlations(by_layer, embedding_layer, **resampled)
rows = ["LD with", "observations", "method", "model"]
experiments.without_nan(correlations.set_index(rows).sort_index(sort_remaining=False).round(2))''')
M(T.n)
P('''of_last = correlations[correlations["observations"] == "pairs, last checkpoint"]
lines = experiments.captions(of_last, ["model", "LD with"], label="method")
figure = abx_plots.tradeoff(last, tradeoff.MEANINGS, lines)
plots.save(figure, "abx-3-tradeoff-pairs", profile)''')
M(T.course)
P('''course = tradeoff.correlation_courses(pairs, **resampled)
wide = course.pivot(index=["model", "checkpoint"], columns="LD with")
wide[["value", "low", "high"]].round(2)''')
P('''figure = abx_plots.correlation_course(course)
plots.save(figure, "abx-3-tradeoff-course", profile)''')
M(T.without)
P('''titles = [history[0].model for history in histories]
bags = tradeoff.bag_pairs(models, titles, text, max_length)
untaught = tradeoff.untaught_correlations(pairs, bags, **resampled)
rows = ["LD with", "model", "scores of", "method"]
untaught.set_index(rows).sort_index(sort_remaining=False).round(2)''')
M(T.partial)
P('''partial = {
    meaning: tradeoff.partial_tradeoffs(pairs, bags, text, meaning, **resampled)
    for meaning in tradeoff.MEANINGS
}
partial = pd.concat(partial, names=["LD with"]).set_index(["given", "method"], append=True)
partial.round(2)''')
M(T.kinds)
P('''tradeoff.kinds_of_pairs(last).round(2)''')
M(T.reading)
P('''work.report()''')
B.save()
