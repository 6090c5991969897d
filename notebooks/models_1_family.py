"""What the members lost while they learnt: tables of `losses.csv` and `held_out.csv`.

A loss is a mean surprise in nats a labelled subword; those of one vocabulary that guess the same
(masked or next) subwords can be compared. ``names`` are models as `loading.load` knows them.
"""

import io
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from tokenizers import Tokenizer

from xlx.results import paths

sys.path.append(str(paths.MODELS))  # how the family is trained: data/models-long/family

from family import recipes, vocabulary
from family.recipes import MemberRecipe
from shared.abx_tables import scores_within
from xlx.experiment import abx_scores, surface
from xlx.experiment.abx_scores import MATCHED, CheckpointScores, checkpoint_scores
from xlx.experiment.averages import Average, average, averaged_scores, best_layer
from xlx.measures import statistics
from xlx.results import work
from xlx.subjects import identity, loading
from xlx.text import pretraining_text
from xlx.text.parallel import ParallelCorpus
from xlx.text.pretraining_text import Lines

#: Objectives of a loss table, in the order of display.
OBJECTIVE_NAMES = {
    "mlm": "masked subwords (MLM)",
    "tlm": "masked, beside a translation (TLM)",
    "contrast": "contrast of translations",
    "clm": "next subword (CLM)",
}


def losses(names: Sequence[str]) -> pd.DataFrame:
    """The loss tables of several members: ``losses.csv`` with ``model`` in front."""
    return _tables(names, "losses.csv", ["step", "tokens", "objective", "loss"])


def held_out(names: Sequence[str]) -> pd.DataFrame:
    """Their losses by language at the last checkpoint: ``held_out.csv`` with ``model`` in front."""
    table = _tables(names, "held_out.csv", ["step", "language", "subwords", "loss"])
    return table[table["step"] == table.groupby("model")["step"].transform("max")]


def _tables(names: Sequence[str], file: str, columns: list[str]) -> pd.DataFrame:
    tables = [
        pd.read_csv(io.StringIO(content))[columns].assign(model=identity.title(name))
        for name in names
        if (content := file_text(name, file))
    ]
    empty = pd.DataFrame(columns=["model", *columns])
    return pd.concat(tables, ignore_index=True)[list(empty)] if tables else empty


def plateau_ends(curves: pd.DataFrame, below: float, rows: int = 5) -> pd.DataFrame:
    """When members began to use the order of subwords: the masked loss came down from its plateau.

    ``step``: the first at which the training loss of masked subwords, a mean over so many rows of
    `losses`, is less than ``below`` (nats); missing where it never was. ``subwords``: what had been
    read by then.
    """
    masked = curves[curves["objective"] == "mlm"]
    mean = masked.groupby("model")["loss"].transform(lambda loss: loss.rolling(rows).mean())
    ends = masked[mean < below].groupby("model")[["step", "tokens"]].min()
    table = ends.reindex(masked["model"].unique()).astype("Int64")
    return table.rename(columns={"tokens": "subwords"}).rename_axis("model")


def final_losses(curves: pd.DataFrame) -> pd.DataFrame:
    """The last training loss of every objective in `losses`: a row a model."""
    ends = curves[curves["step"] == curves.groupby("model")["step"].transform("max")]
    wide = ends.pivot(index="model", columns="objective", values="loss")
    objectives = [name for name in OBJECTIVE_NAMES if name in wide]
    return wide.reindex(index=dict.fromkeys(curves["model"]), columns=objectives)


def grouped_losses(names: Sequence[str], vocabularies: "Vocabularies") -> pd.DataFrame:
    """`held_out` with ``group``: members whose losses can be compared."""
    next_subword = {identity.title(name) for name in decoders(names)}
    groups = {
        model: f"{'next' if model in next_subword else 'masked'}, {kind}"
        for kind, (_, models) in vocabularies.items()
        for model in models
    }
    table = held_out(names)
    return table.assign(group=table["model"].map(groups))


def held_out_table(grouped: pd.DataFrame) -> pd.DataFrame:
    """Of `grouped_losses`: loss in English and elsewhere, languages of lowest and highest loss."""
    text = grouped["language"].map(lambda c: "English" if c == "en" else "mean of the others")
    keys = ["group", "model"]
    mean = grouped.assign(text=text).groupby([*keys, "text"], sort=False)["loss"].mean().unstack()
    language = grouped.sort_values("loss").groupby(keys)["language"]
    return mean.assign(lowest=language.first(), highest=language.last())


def loss_spread(runs: Mapping[str, tuple[str, Sequence[str]]]) -> tuple[float, int]:
    """`statistics.pooled_spread` of the mean held-out losses of runs of one recipe.

    ``runs``: recipe → the run that stands for it, and others, of other seeds; each at the last step
    of the shortest of the others. ValueError where the first has no losses at that step.
    """
    groups = []
    for first, others in runs.values():
        if not others:
            continue
        columns = ["step", "language", "loss"]
        tables = [_tables([name], "held_out.csv", columns) for name in (first, *others)]
        step = min(table["step"].max() for table in tables[1:])
        means = [float(table.loc[table["step"] == step, "loss"].mean()) for table in tables]
        if np.isnan(means[0]):
            raise ValueError(f"{first} has no held-out losses at step {step:,}, as other runs have")
        groups.append(means)
    return statistics.pooled_spread(groups)


def beside(
    references: Mapping[str, str], runs: Mapping[str, tuple[str, Sequence[str]]] | None = None
) -> pd.DataFrame:
    """Held-out losses of members less those of their references, where they can be compared.

    Those of one vocabulary that guess the same (masked or next) subwords can. One row a member:
    ``model``, ``reference``, ``unlike`` (the settings in which they differ), ``languages`` (that
    were measured), ``lower`` (in how many its loss is lower), ``difference`` (mean, nats),
    ``between runs`` (in 95 % of cases the means of two runs of one recipe differ by less;
    ``runs`` as for `loss_spread`).
    """
    between = statistics.reach_of_two(*loss_spread(runs or {}))
    rows = []
    for name, other in references.items():
        comparable = recipe(name) and recipe(other) and len(decoders([name, other])) != 1
        if not comparable or len(distinct_vocabularies([name, other])) > 1:
            continue
        loss, its = (held_out([model]).set_index("language")["loss"] for model in (name, other))
        apart = (loss - its).dropna()
        if len(apart):
            unlike = recipe_differences({name: other}).index.get_level_values("setting")
            row = (identity.title(name), identity.title(other), ", ".join(unlike), len(apart))
            rows.append((*row, (apart < 0).sum(), apart.mean(), between))
    columns = ["model", "reference", "unlike", "languages", "lower", "difference", "between runs"]
    return pd.DataFrame(rows, columns=columns)


#: Kind of a vocabulary → its tokenizer, and the models that have it.
Vocabularies = Mapping[str, tuple[Tokenizer, Sequence[str]]]


def folder(name: str) -> Path | None:
    """Where a shipped series, or one given by its path, lies; None for any other model.

    Of a run whose weights are not shipped it holds the tables, and the record of its checkpoints.
    """
    try:
        path = identity.local_folder(name)
    except identity.ModelNotFoundError:
        return None
    if path is None or not ((path / identity.RECORD).exists() or identity.local_series(name, path)):
        return None
    return path


def file_text(name: str, file: str) -> str:
    """The text of a file of a member; empty where there is none."""
    path = folder(name)
    return (path / file).read_text("utf-8") if path and (path / file).exists() else ""


def recipe(name: str) -> MemberRecipe | None:
    """The recipe of a member; ValueError where the file is of another version."""
    if not (described := file_text(name, "recipe.json")):
        return None
    try:
        return recipes.read_recipe(described)
    except ValueError as error:
        raise ValueError(f"{folder(name)}/recipe.json is {error}") from error


def overview(names: Sequence[str]) -> pd.DataFrame:
    """One row a member: what it is (from its recipe) and what it cost (from its run).

    Columns: ``model``, ``architecture``, ``objectives``, ``layers``, ``width``, ``English`` (its
    share of the text; NaN: by its size, as every language), ``parameters``, ``subwords_seen``,
    ``minutes``. The last three are missing until a run has ended.
    """
    rows = []
    for name in names:
        cost = json.loads(file_text(name, "run.json") or "{}")
        rows.append({"model": identity.title(name)} | _settings(name) | cost)
    columns = [
        "model", "architecture", "objectives", "layers", "hidden_size", "english_share",
        "parameters", "subwords_seen", "minutes",
    ]  # fmt: skip
    table = pd.DataFrame(rows).reindex(columns=columns)
    return table.rename(columns={"hidden_size": "width", "english_share": "English"})


def _settings(name: str) -> dict[str, object]:
    """What a recipe says of what is learnt; nothing for a model without one."""
    if (made := recipe(name)) is None:
        return {}
    settings = asdict(made) | {"objectives": " + ".join(made.objectives)}
    return {key: settings[key] for key in settings if key not in ("name", "history")}


def recipe_differences(references: Mapping[str, str]) -> pd.DataFrame:
    """The settings in which the recipes of members and of their references differ.

    A row a ``model``, ``reference`` and ``setting``; none for a model without a recipe.
    """
    rows = []
    for name, other in references.items():
        settings, others = _settings(name), _settings(other)
        for key in settings if others else ():
            if settings[key] != others[key]:
                both = identity.title(name), identity.title(other)
                rows.append((*both, key, others[key], settings[key]))
    columns = ["model", "reference", "setting", "of the reference", "of the model"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:3])


def decoders(names: Sequence[str]) -> list[str]:
    """Those of the models that are members and decoders."""
    return [name for name in names if (made := recipe(name)) is not None and made.decoder]


def distinct_vocabularies(names: Sequence[str]) -> dict[str, tuple[Tokenizer, list[str]]]:
    """The vocabularies of several models: kind ("BPE", "WordPiece") → (tokenizer, its models).

    Of two that differ and are of one kind, the second has the name of its first model added.
    """
    alike: dict[str, tuple[Tokenizer, list[str]]] = {}
    for name in names:
        tokenizer = loading.tokenizer(name).backend_tokenizer
        alike.setdefault(tokenizer.to_str(), (tokenizer, []))[1].append(identity.title(name))
    by_kind: dict[str, tuple[Tokenizer, list[str]]] = {}
    for tokenizer, models in alike.values():
        kind = type(tokenizer.model).__name__
        by_kind[f"{kind} of {models[0]}" if kind in by_kind else kind] = (tokenizer, models)
    return by_kind


def vocabulary_table(vocabularies: "Vocabularies") -> pd.DataFrame:
    """Vocabularies, how many subwords they hold, and the models that have them."""
    rows = [
        (kind, tokenizer.get_vocab_size(), ", ".join(models))
        for kind, (tokenizer, models) in vocabularies.items()
    ]
    return pd.DataFrame(rows, columns=["vocabulary", "subwords", "models"]).set_index("vocabulary")


def example_pieces(
    corpus: ParallelCorpus, vocabularies: Vocabularies, codes: Sequence[str] = ("en", "fi", "zh")
) -> pd.DataFrame:
    """The first sentence of 40 to 70 characters in English, in the pieces of each vocabulary.

    In the languages of ``codes`` that the corpus has.
    """
    position = next(i for i, x in enumerate(corpus.sentences["en"]) if 40 < len(x) < 70)
    rows = []
    for code in [code for code in codes if code in corpus.sentences]:
        sentence = corpus.sentences[code][position]
        rows.append((code, "characters", len(sentence), sentence))
        for kind, (tokenizer, _) in vocabularies.items():
            pieces = tokenizer.encode(sentence, add_special_tokens=False).tokens
            rows.append((code, kind, len(pieces), " ".join(pieces)))
    columns = ["language", "vocabulary", "pieces", "sentence"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:2])


def fertility(name: str, corpus: ParallelCorpus) -> pd.DataFrame:
    """`vocabulary.subword_statistics` of a model's vocabulary on a corpus."""
    texts = [[code, corpus.text_hash(code)] for code in corpus.languages]
    about = {"model": identity.fingerprint(name), "texts": texts}
    return work.result(FERTILITY, about, name, corpus)


def _fertility(name: str, corpus: ParallelCorpus) -> pd.DataFrame:
    return vocabulary.subword_statistics(
        loading.tokenizer(name).backend_tokenizer, corpus.sentences
    )


FERTILITY = work.Kind("fertility", _fertility, version=1)


def fertilities(
    corpus: ParallelCorpus, vocabularies: Vocabularies, folders: Mapping[str, str]
) -> pd.DataFrame:
    """`fertility` of each vocabulary, with ``vocabulary`` and the per cent that is ``left_over``.

    ``folders``: models as they are called → names.
    """
    tables = {
        kind: fertility(folders[models[0]], corpus) for kind, (_, models) in vocabularies.items()
    }
    table = pd.concat(tables, names=["vocabulary"]).reset_index(level=0)
    return table.assign(left_over=100 * (table["unknown"] + table["bytes"]))


def fertility_table(cut: pd.DataFrame) -> pd.DataFrame:
    """`fertilities` by language, those that the first vocabulary cuts least on top."""
    columns = ["tokens_per_word", "tokens_per_character", "unknown", "bytes", "round_trip"]
    wide = cut.pivot(index="language", columns="vocabulary", values=columns)
    first = cut[cut["vocabulary"] == cut["vocabulary"].iloc[0]].set_index("language")
    return wide.loc[first.sort_values(["tokens_per_word", "tokens_per_character"]).index]


def subword_counts(name: str, *, every: int = 1) -> dict[str, int]:
    """Language → subwords of the pretraining text, line ends included, as a model cuts it.

    From every ``every``-th line of each source, times ``every``: reading all takes a minute.
    """
    files = pretraining_text.file_hashes()
    about = {"model": identity.fingerprint(name), "files": files, "every": every}
    table = work.result(SUBWORD_COUNTS, about, name, every)
    return dict(zip(table["language"], table["subwords"].tolist(), strict=True))


def _subwords(name: str, every: int) -> pd.DataFrame:
    tokenizer = loading.tokenizer(name).backend_tokenizer
    counts: Counter[str] = Counter()
    for by_code in pretraining_text.read_text()[0].values():
        for code, lines in by_code.items():
            encoded = Lines.encode(tokenizer, list(lines.values())[::every])
            counts[code] += every * len(encoded.ids)
    return pd.DataFrame(sorted(counts.items()), columns=["language", "subwords"])


SUBWORD_COUNTS = work.Kind("pretraining-subwords", _subwords, version=1, tolerance=0)


def text_share(name: str, codes: Sequence[str], *, every: int = 1) -> float:
    """The share of what a member read that is of some languages.

    ValueError without a recipe; its weights must be here, as its vocabulary is.
    """
    if (made := recipe(name)) is None:
        raise ValueError(f"{name} has no recipe.json: what it read is not known")
    shares = _shares(made, pd.Series(subword_counts(name, every=every)))
    return float(shares.reindex(list(codes), fill_value=0).sum())


def _shares(made: MemberRecipe, subwords: pd.Series) -> pd.Series:
    """Share of each of a recipe's languages in what it reads."""
    known = subwords[list(made.languages)] if made.languages else subwords
    return pretraining_text.shares(known, made.language_exponent, made.english_share)


def readers(names: Sequence[str]) -> list[str]:
    """Members whose `passes` over the text are known: they have a run, learn from text alone, and
    cut it as the first of them does."""
    cuts = {}
    for name in names:
        made = recipe(name)
        alone = made is not None and not made.pair_share and set(made.objectives) <= {"mlm", "clm"}
        if alone and file_text(name, "run.json"):
            cuts[name] = loading.tokenizer(name).backend_tokenizer.to_str()
    return [name for name, cut in cuts.items() if cut == next(iter(cuts.values()))]


def passes(names: Sequence[str], subwords: Mapping[str, int]) -> pd.DataFrame:
    """How often `readers` have read the text of each language, on average.

    One row a member and language: ``model``, ``language``, ``subwords`` (of its text), ``share``
    (of the subwords that the member saw), ``passes`` (these over those).
    """
    empty = pd.DataFrame(columns=["model", "language", "subwords", "share", "passes"])
    there, parts = pd.Series(subwords).rename_axis("language"), []
    for name in names:
        seen = json.loads(file_text(name, "run.json"))["subwords_seen"]
        share = _shares(recipe(name), there)
        part = pd.DataFrame({"subwords": there, "share": share, "passes": seen * share / there})
        parts.append(part.reset_index().assign(model=identity.title(name)))
    return pd.concat(parts, ignore_index=True)[list(empty)] if parts else empty


def reading(names: Sequence[str], every: int) -> pd.DataFrame:
    """`passes` of the decoders, one line of the text in ``every`` counted."""
    some = readers(decoders(names))
    return passes(some, subword_counts(next(iter(some), names[0]), every=every))


def passes_table(reading: pd.DataFrame) -> pd.DataFrame:
    """Share of the text and `passes` over it, of English and of the other languages."""
    english = reading[reading["language"] == "en"].set_index("model")[["share", "passes"]]
    others = reading[reading["language"] != "en"].groupby("model", sort=False)
    return english.add_prefix("English, ").assign(
        **{
            "others, median share": others["share"].median(),
            "others, median passes": others["passes"].median(),
            "others, most passes": others["passes"].max(),
        }
    )


def by_amount(codes: Sequence[str], reading: pd.DataFrame) -> list[str]:
    """Languages, those with most training text in `passes` first."""
    amount = reading.groupby("language")["subwords"].first()
    return sorted(codes, key=lambda code: -amount.get(code, 0))


#: What is scored, in the order of the tables.
SCORED = (MATCHED, "MD", "LD")
#: What of the layers stands for a model.
MEAN, BEST = "mean over layers", "best layer"


def last_scores(
    names: Sequence[str], corpus: ParallelCorpus, **options: object
) -> dict[str, CheckpointScores]:
    """Model → the scores of its last checkpoint, whether its weights are shipped or not."""
    states = [abx_scores.history(name, recorded=True)[-1] for name in names]
    return {of.model: of for of in checkpoint_scores(states, corpus, **options)}


def untrained_scores(
    names: Sequence[str], corpus: ParallelCorpus, **options: object
) -> dict[str, CheckpointScores]:
    """Model → the scores of its checkpoint before training (step 0), where it has such."""
    first = [abx_scores.history(name, recorded=True)[0] for name in names]
    states = [state for state in first if getattr(state, "step", None) == 0]
    if not states:
        return {}
    return {of.model: of for of in checkpoint_scores(states, corpus, **options)}


def scored_runs(
    runs: Mapping[str, tuple[str, Sequence[str]]], corpus: ParallelCorpus, **options: object
) -> dict[str, list[CheckpointScores]]:
    """Recipe → the scores of its runs, each of another seed, at one step.

    ``runs``: recipe → the run that stands for it, and the others. All are taken at the last step
    of the shortest of the others, which the first must have kept; ValueError where it has not. A
    recipe of one run is left out.
    """
    scored = {}
    for recipe, (first, others) in runs.items():
        if not others:
            continue
        histories = [abx_scores.history(name, recorded=True) for name in (first, *others)]
        step = min(history[-1].step for history in histories[1:])
        states = [{state.step: state for state in history} for history in histories]
        if missing := [of[0].name for of in histories if step not in {s.step for s in of}]:
            raise ValueError(f"{missing[0]} has no checkpoint at step {step:,}, as other runs have")
        scored[recipe] = checkpoint_scores([of[step] for of in states], corpus, **options)
    return scored


def layer_scores(measured: Mapping[str, CheckpointScores]) -> pd.DataFrame:
    """Scores by layer with intervals: `averages.averaged_scores`."""
    return averaged_scores(list(measured.values()), SCORED, by=["layer"])


def layer_table(by_layer: pd.DataFrame) -> pd.DataFrame:
    """Scores of tasks and members, a column a layer; both in the order given."""
    wide = by_layer.pivot(index=["task", "model"], columns="layer", values="score")
    return wide.loc[[(task, model) for task in SCORED for model in by_layer["model"].unique()]]


def surface_table(
    lines: Mapping[str, pd.DataFrame], models_of: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """`courses.surface_lines` by vocabulary; ``models_of``: vocabulary → its models."""
    rows = pd.concat(lines, names=["scores of", None]).reset_index(level=0)
    vocabularies = {models[0]: kind for kind, models in models_of.items()}
    rows = rows.assign(vocabulary=rows["model"].map(vocabularies)).dropna(subset="vocabulary")
    wide = rows.pivot(index=["scores of", "vocabulary"], columns="task", values="score")
    return wide.reindex(columns=SCORED)


def layer_sets(
    measured: CheckpointScores, *, embedding_layer: bool = True
) -> dict[str, dict[str, object]]:
    """What stands for a model → the options of `averages.average`."""
    mean = {"embedding_layer": embedding_layer}
    return {MEAN: mean, BEST: {"layers": [best_layer(measured)]}}


def summary_table(
    measured: Mapping[str, CheckpointScores], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """Scores over all layers and at the best, and which that is: a row a model."""
    rows = {}
    for model, of in measured.items():
        rows[model] = {
            (layers, task): float(average(of, task, **options).score)
            for layers, options in layer_sets(of, embedding_layer=embedding_layer).items()
            for task in SCORED
        } | {(BEST, "layer"): best_layer(of)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def above_surface(
    names: Sequence[str], measured: Mapping[str, CheckpointScores],
    untrained: Mapping[str, CheckpointScores], corpus: ParallelCorpus,
    max_length: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Matched MD of each best layer, and how far it is above what takes no training.

    ``measured``: the scores of ``names``, in their order. ``untrained``: model → its state before
    training, or one of its architecture, at whose own best layer it stands; a model without one
    has NaN there. The other measure is a bag of the subwords of its vocabulary. Columns of each:
    ``value``, ``low``, ``high``; the index has the layer.
    """
    rows = {}
    for name, (model, of) in zip(names, measured.items(), strict=True):
        layer = best_layer(of)
        score = average(of, MATCHED, layers=[layer])
        bag = average(surface.subword_bag(name, corpus, max_length=max_length), MATCHED)
        row = {MATCHED: score, "above the bag": score - bag}
        if (before := untrained.get(model)) is not None:
            row["above untrained"] = score - average(before, MATCHED, layers=[best_layer(before)])
        rows[model, layer] = {
            (what, end): number for what, of_it in row.items() for end, number in ends(of_it)
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "layer"])
    return table[[what for what in (MATCHED, "above untrained", "above the bag") if what in table]]


def ends(score: Average) -> list[tuple[str, float]]:
    """A score and its interval by name."""
    low, high = score.interval()
    return [("value", float(score.score)), ("low", float(low)), ("high", float(high))]


# --- members beside each other, and runs of one recipe --------------------------------------------


def score_differences(
    measured: Mapping[str, CheckpointScores],
    references: Mapping[str, str],
    *,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Models less their references (model → the one it is compared with), on the same documents.

    Over all layers, and each model at its best. Returns ``model``, ``reference``, ``layers``,
    ``task``, ``value``, ``low``, ``high``.
    """
    rows = []
    for name, other in references.items():
        ours, theirs = (
            layer_sets(measured[model], embedding_layer=embedding_layer) for model in (name, other)
        )
        for layers in ours:
            for task in SCORED:
                apart = average(measured[name], task, **ours[layers])
                apart -= average(measured[other], task, **theirs[layers])
                head = {"model": name, "reference": other, "layers": layers, "task": task}
                rows.append(head | dict(ends(apart)))
    return pd.DataFrame(rows)


def run_spread(
    runs: Mapping[str, Sequence[CheckpointScores]], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """How runs of one recipe differ: ``layers``, ``task``, ``sd`` of a run, ``freedom``.

    ``runs``: recipe → its runs, each of another seed; `statistics.pooled_spread` of their scores.
    """
    of_runs = [_run_scores(of_recipe, embedding_layer) for of_recipe in runs.values()]
    rows = []
    for layers, task in product((MEAN, BEST), SCORED):
        scores = [of_recipe[layers, task] for of_recipe in of_runs]
        rows.append((layers, task, *statistics.pooled_spread(scores)))
    return pd.DataFrame(rows, columns=["layers", "task", "sd", "freedom"])


def _run_scores(
    of_recipe: Sequence[CheckpointScores], embedding_layer: bool
) -> dict[tuple[str, str], list[float]]:
    """Which layers, and task → the score of every run."""
    scores: dict[tuple[str, str], list[float]] = {}
    for of in of_recipe:
        for layers, options in layer_sets(of, embedding_layer=embedding_layer).items():
            for task in SCORED:
                score = float(average(of, task, **options).score)
                scores.setdefault((layers, task), []).append(score)
    return scores


def mean_run_differences(
    runs: Mapping[str, Sequence[CheckpointScores]],
    references: Mapping[str, str],
    *,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Recipes less their references, of which each was run again: the means over their runs.

    ``runs`` as for `run_spread`; ``references``: recipe → the one that it is compared with. Rows
    ``layers``, ``task``, ``model``, ``reference``; columns ``of model`` and ``of reference`` (the
    means), ``value``, ``low``, ``high``. The interval is Welch's, over runs on the one text: luck
    need not do the same to both.
    """
    again = {recipe: of for recipe, of in runs.items() if len(of) > 1}
    scores = {recipe: _run_scores(of, embedding_layer) for recipe, of in again.items()}
    compared = [pair for pair in references.items() if set(pair) <= set(scores)]
    rows = {}
    for layers, task, (name, other) in product((MEAN, BEST), SCORED, compared):
        ours, theirs = (np.array(scores[recipe][layers, task]) for recipe in (name, other))
        welch = stats.ttest_ind(ours, theirs, equal_var=False)
        means = ours.mean(), theirs.mean(), ours.mean() - theirs.mean()
        rows[layers, task, name, other] = (*means, *welch.confidence_interval(statistics.LEVEL))
    columns = ["of model", "of reference", "value", "low", "high"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    table.index = pd.MultiIndex.from_tuples(
        list(rows), names=["layers", "task", "model", "reference"]
    )
    return table


def beside_runs(differences: pd.DataFrame, spread: pd.DataFrame) -> pd.DataFrame:
    """`score_differences` with what two runs of one recipe differ by (`run_spread`).

    Added are ``between runs``: in 95 % of cases two runs differ by less; ``least`` and ``most``:
    the interval over documents widened by that, the half widths taken together as of independent
    errors; ``beyond both``: on which side of zero it lies ("higher", "lower"), or "no".
    """
    table = differences.merge(spread, on=["layers", "task"], how="left", validate="many_to_one")
    between = [
        statistics.reach_of_two(sd, freedom)
        for sd, freedom in zip(table["sd"], table["freedom"].fillna(0), strict=True)
    ]
    reach = np.hypot(table["high"] - table["value"], between)
    beyond = np.select(
        [np.isnan(reach), table["value"] > reach, table["value"] < -reach],
        ["not known", "higher", "lower"],
        "no",
    )
    wider = {"least": table["value"] - reach, "most": table["value"] + reach}
    kept = table.drop(columns=["sd", "freedom"])
    return kept.assign(**{"between runs": between, **wider, "beyond both": beyond})


def difference_table(differences: pd.DataFrame, layers: str) -> pd.DataFrame:
    """`beside_runs` of some layers: a row a task and pair of models, in the order given."""
    rows = differences[differences["layers"] == layers]
    rows = pd.concat([rows[rows["task"] == task] for task in SCORED])
    shown = ["value", "low", "high", "between runs", "beyond both"]
    return rows.set_index(["task", "model", "reference"])[shown]


def few_and_many(
    few: str, many: str, corpus: ParallelCorpus, share: float, **options: object
) -> pd.DataFrame:
    """What a model of a few languages gains on them over one of many, and by which text.

    ``corpus``: in the few, or in some of them; ``share``: how much ``many`` has read of these, of
    what ``few`` has. ``few`` is taken at its end, when it has read as much as ``many`` in all, and
    where it has read as much of these (the checkpoint that is nearest on a log scale). Rows are
    those two less ``many``, at the best layer of each: ``task``, ``value``, ``low``, ``high``,
    ``few``, ``many`` (the two scores).
    """
    history = abx_scores.history(few, recorded=True)
    due = np.log(history[-1].step * share)
    alike = min(history[1:], key=lambda checkpoint: abs(np.log(checkpoint.step) - due))
    last = abx_scores.history(many, recorded=True)[-1]
    scored = checkpoint_scores([last, alike, history[-1]], corpus, **options)
    rows = []
    for what, of in zip(("as much of these", "as much in all"), scored[1:], strict=True):
        for task in SCORED:
            ours, theirs = (
                average(model, task, layers=[best_layer(model)]) for model in (of, scored[0])
            )
            head = {"read": what, "step": of.step, "task": task}
            scores = {"few": float(ours.score), "many": float(theirs.score)}
            rows.append(head | scores | dict(ends(ours - theirs)))
    return pd.DataFrame(rows)


def best_within(measured: Sequence[CheckpointScores], codes: Sequence[str]) -> pd.DataFrame:
    """Scores among some languages of models that were scored on more: a row a model.

    Of the layer with the highest MD among sentences of like length in these, which is in the index.
    """
    by_layer = scores_within(measured, codes, by=["layer"])
    table = by_layer.pivot(index=["model", "layer"], columns="task", values="score")[list(SCORED)]
    best = table.groupby("model")[MATCHED].idxmax()
    return table.loc[best[[of.model for of in measured]]]


def beside_printed(summary: pd.DataFrame, printed_as: Mapping[str, str]) -> pd.DataFrame:
    """Best layers beside the interlingual transfer gap that IGAP prints (Table 2, averages)."""
    printed = pd.read_csv(paths.PUBLISHED / "igap" / "table2_avg_igap_acc.csv")
    printed = printed[printed["quantity"] == "IGap"]
    printed = printed.pivot(index="model", columns="task", values="value")
    rows = summary[BEST].loc[[name for name in summary.index if name in printed_as]]
    kind = rows.index.map(printed_as)
    gaps = {f"IGap {task}, printed": kind.map(printed[task]) for task in printed}
    table = rows.assign(kind=kind, **gaps).sort_values("IGap XNLI, printed")
    return table[["kind", *gaps, *SCORED]]
