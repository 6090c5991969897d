import sys; sys.path.insert(0,"drafts")
from nb import Book
B=Book("abx-4-languages"); M,P=B.M,B.P
import texts4 as T
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
seed = 1  # of the positions''',["parameters"])
P('''from xlx import plots
from xlx.abx import courses, experiments
from xlx.abx.averages import averaged_scores
from xlx.core import work
from xlx.plots import abx as abx_plots
from xlx.text import corpora

text = corpora.load(corpus, languages, drop_duplicates=True)
text = text.take(n_sentences or len(text), seed)
options = {"pooling": pooling, "max_length": max_length}
histories = courses.scored_series(models, text, leave_out, **options)
measured = [scores for history in histories for scores in history]
last = [history[-1] for history in histories]''')
P('''about = experiments.language_kinds(text.languages)
names = experiments.language_names(about["code"])
about.groupby(["family", "branch"])["code"].agg(" ".join).to_frame("languages")''')
P('''tasks, by = list(courses.DRAWN), ["language"]
averages = {
    "all layers": averaged_scores(measured, tasks, by=by, embedding_layer=embedding_layer),
    "last layer": averaged_scores(measured, tasks, by=by, layers=[-1]),
}
print({layers: scores.shape for layers, scores in averages.items()})''')
M(T.one)
P('''scores = averages["all layers"]
one = scores.query("language == 'fi'").set_index(["model", "checkpoint", "task"])
one[["score", "low", "high"]].unstack("task").round(2)''')
M(T.maps)
P('''groups = dict(zip(about["code"], about["branch"] + ", " + about["script"], strict=True))
figure = abx_plots.language_maps(experiments.with_turns(averages["all layers"]), names, groups)
plots.save(figure, "abx-4-languages-all-layers", profile)''')
M(T.map_last)
P('''figure = abx_plots.language_maps(experiments.with_turns(averages["last layer"]), names, groups)
plots.save(figure, "abx-4-languages-last-layer", profile)''')
M(T.when)
P('''experiments.turning_points(scores)''')
M(T.move)
P('''experiments.normalised_spread(averages).round(2)''')
M(T.heights)
P('''experiments.extremes(scores, names).round(2)''')
M(T.explained)
P('''print(about["script"].value_counts().to_dict())
experiments.explained_heights(scores, models, text, max_length).round(2)''')
M(T.weights)
P('''experiments.weighted_means(last, tasks, embedding_layer).round(3)''')
M(T.direction)
P('''directed = experiments.directed_languages(last, "LD", embedding_layer)
by_model = directed.groupby("model", sort=False)
display(by_model["difference"].describe()[["mean", "std", "min", "max"]].round(3))
by_model.head(3).round(3), by_model.tail(3).round(3)''')
M(T.reading)
P('''work.report()''')
B.save()
