"""What a notebook shows of minimal pairs: texts, shares with intervals, tables, a figure."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.shown import with_interval
from xlx.experiment.abx_scores import before_training
from xlx.experiment.minimal_pairs import edits_told
from xlx.experiment.scoring import LENGTH_ALONE, BagOfSubwords, Length, Subject, as_subject
from xlx.measures import statistics
from xlx.plots.panels import across, rows_of
from xlx.plots.primitives import curves
from xlx.plots.style import language_label, styled
from xlx.text import labelled
from xlx.text.minimal_pairs import EDITED, EDITS, EXCHANGES, load_minimal_pairs
from xlx.text.parallel import ParallelCorpus, documents

#: Pairs of PAWS-X: B means something else than A, or the same.
PAWSX = ("PAWS-X, different", "PAWS-X, paraphrase")
KINDS = (*EDITS, *PAWSX)
PAWSX_LANGUAGES, N_PAIRS = ("de", "en", "es", "fr", "ja", "ko", "zh"), 60  # the shortest ones
#: What a table calls the three kinds of `EXCHANGES` as one, and the mean over languages.
COMPOSED, MEAN = "all exchanges", "mean"
DRAWN = (COMPOSED, *EXCHANGES, "negation", PAWSX[0])
GROUPS = {COMPOSED: EXCHANGES} | {kind: (kind,) for kind in KINDS}


def load_kind(kind: str) -> ParallelCorpus:
    """A kind of `KINDS`, as `load_minimal_pairs`; of PAWS-X X and A are the first sentence, B the
    second, at the test pairs of one label."""
    if kind not in PAWSX:
        return load_minimal_pairs(kind)
    label = labelled.PI.index(kind.split()[1])
    sets, _ = labelled.parallel_examples("PI", PAWSX_LANGUAGES, "test", N_PAIRS)
    pairs = [(code, i) for code in sets for i in (sets[code].labels == label).nonzero()[0]]
    sentences = {code: tuple(rows.first[i] for _, i in pairs) for code, rows in sets.items()}
    sentences[EDITED] = tuple(sets[code].second[i] for code, i in pairs)
    names = tuple(sets[code].ids[i].replace(":", "-") for code, i in pairs)
    ids = tuple(f"{code}:{name}" for (code, _), name in zip(pairs, names, strict=True))
    return ParallelCorpus(kind, sentences, ids, names, "free use", "PAWS-X")


def worked(kind: str, start: str, x: str, subjects: Mapping[str, Subject]) -> pd.DataFrame:
    """The edit of a kind whose A begins with ``start``: X, A, B, and what each subject says."""
    text = load_kind(kind)
    originals = [text.sentences[code][i] for i, code in enumerate(documents(text))]
    at = next(i for i, a in enumerate(originals) if a.startswith(start))
    rows = {
        f"X ({x})": text.sentences[x][at], "A": originals[at], "B": text.sentences[EDITED][at],
    }  # fmt: skip
    codes = [code for code in text.languages if code != EDITED]
    values = edits_told([*subjects.values()], text)
    said = [("B", "tie", "A")[int(v["own"][-1, codes.index(x), at])] for v in values]
    rows |= {f"nearer to X, {name}": one for name, one in zip(subjects, said, strict=True)}
    return pd.DataFrame({"": rows})


def standard_subjects(models: Sequence[str], untrained: Sequence[str] = ()) -> dict[str, Subject]:
    """Length alone; of each model its bag of subwords, where named itself untrained, and itself."""
    named: dict[str, Subject] = {LENGTH_ALONE: Length()}
    for model in models:
        named[f"bag, {model}"] = BagOfSubwords(model)
        if model in untrained:
            named[f"untrained, {model}"] = as_subject(before_training(model))
        named[model] = as_subject(model)
    return named


def shares(
    subjects: Mapping[str, Subject], groups: Mapping[str, Sequence[str]], what: str = "own"
) -> pd.DataFrame:
    """How often cos(X, A) > cos(X, B), over all X of another language than A.

    ``groups``: name → kinds taken as one. Columns ``model``, ``kind``, ``layer``, ``depth`` (from 0
    to 1), ``language`` (of A and B, or `MEAN` over them), ``share`` with its interval over
    documents, ``tied`` and ``n`` edits. ``what``: "own", or "other", where X is another sentence.
    """
    tables = []
    for name, kinds in groups.items():
        texts = [load_kind(kind) for kind in kinds]
        of = np.array([code for text in texts for code in documents(text)])
        codes = [code for code in texts[0].languages if code != EDITED]
        abroad = of != np.array(codes)[:, None]  # (n_languages, n): X is no A
        where = [document for text in texts for document in text.domains]
        told = [edits_told([*subjects.values()], text) for text in texts]
        for label, values in zip(subjects, zip(*told, strict=True), strict=True):
            twice = np.concatenate([value[what] for value in values], axis=-1)
            score = (twice * abroad).sum(axis=1) / (2 * abroad.sum(axis=0))
            tied = ((twice == 1) & abroad).sum(axis=1) / abroad.sum(axis=0)
            tables.append(_by_language(score, tied, of, where).assign(model=label, kind=name))
    return pd.concat(tables, ignore_index=True)


def _by_language(
    score: np.ndarray, tied: np.ndarray, of: np.ndarray, where: Sequence[str]
) -> pd.DataFrame:
    """Means by language and over languages of scores ``(n_layers, n)``, documents left out."""
    codes, language = np.unique(of, return_inverse=True)
    names, document = np.unique(where, return_inverse=True)
    cells = np.zeros((len(of), len(codes), len(names)))
    cells[np.arange(len(of)), language, document] = 1
    n, sums = cells.sum(axis=0), np.einsum("li,icd->lcd", score, cells)
    whole, rows = n.sum(axis=1), []
    with np.errstate(invalid="ignore"):  # a language of one document has no interval
        left = (sums.sum(axis=-1, keepdims=True) - sums) / (whole[:, None] - n)
    means = sums.sum(axis=-1) / whole
    ties = np.einsum("li,icd->lc", tied, cells) / whole
    for c, code in enumerate([*codes, MEAN]):
        one = slice(c, c + 1) if code != MEAN else slice(None)
        kept = n[one].sum(axis=0) > 0
        value = means[:, one].mean(axis=1)
        error = statistics.left_out_error(
            value, left[:, one].mean(axis=1)[:, kept], n[one].sum(axis=0)[kept]
        )
        low, high = statistics.interval(value, error)
        rows.append(pd.DataFrame({
            "layer": range(len(value)), "depth": np.linspace(0, 1, len(value)), "language": code,
            "share": value, "low": low, "high": high, "tied": ties[:, one].mean(axis=1),
            "n": int(whole[one].sum()),
        }))  # fmt: skip
    return pd.concat(rows)


def at_last(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of each model's last layer."""
    last = table.groupby("model", sort=False)["layer"].transform("max")
    return table[table["layer"] == last]


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Model by kind: the share over languages at the last layer, with its interval."""
    rows = rows_of(at_last(table), language=MEAN)
    rows = rows.assign(shown=with_interval(rows, "share"))
    kinds, models = dict.fromkeys(rows["kind"]), dict.fromkeys(rows["model"])
    return rows.pivot(index="model", columns="kind", values="shown").loc[[*models], [*kinds]]


def by_language(own: pd.DataFrame, other: pd.DataFrame, model: str) -> pd.DataFrame:
    """Language by control: a model's own bag, length, itself, and itself where X is another."""
    columns: dict[str, pd.Series] = {}
    for name, table, subject in (
        ("length alone", own, LENGTH_ALONE), ("bag of its subwords", own, f"bag, {model}"),
        ("untrained", own, f"untrained, {model}"), (model, own, model),
        ("X another sentence", other, model),
    ):  # fmt: skip
        rows = rows_of(at_last(table), model=subject, kind=COMPOSED).set_index("language")
        if len(rows):
            columns[name] = pd.Series(with_interval(rows, "share"), rows.index)
        if name.startswith("bag"):
            columns |= {"the bag ties": rows["tied"].round(2), "edits": rows["n"]}
    table = pd.DataFrame(columns, dict.fromkeys([*rows.index.drop(MEAN), MEAN]))
    return table.rename(lambda x: x if x == MEAN else language_label(x))


@styled
def over_layers(own: pd.DataFrame, models: Sequence[str]) -> Figure:
    """The share over the depth of each model, a panel a kind of `DRAWN`."""
    rows = rows_of(own, language=MEAN)
    rows = rows[rows["model"].isin(models) & rows["kind"].isin(DRAWN)]
    on = curves(rows, x="depth", value="share", series="model", panel="kind", columns=3, every=3,
                width=2.7, height=2, sharex="col")  # fmt: skip
    across(on, y=0.5)
    return on.done(
        "depth: 0 is the embeddings, 1 the last layer", "share with A nearer to X than B"
    )


def told(own: pd.DataFrame, other: pd.DataFrame, model: str) -> str:
    """What the tables say of one model beside its controls, as sentences."""
    last = rows_of(at_last(own), kind=COMPOSED)
    means = rows_of(last, language=MEAN).set_index("model")
    surface = last[last["model"].isin([LENGTH_ALONE, f"bag, {model}"]) & (last["language"] != MEAN)]
    most = surface.groupby("language")["share"].max()
    row, odd = (
        means.loc[[model]],
        rows_of(at_last(other), kind=COMPOSED, language=MEAN, model=model),
    )
    of_kind = rows_of(at_last(own), language=MEAN, model=model).set_index("kind")["share"]
    kinds, word = of_kind[[*EXCHANGES]], of_kind["number words"]
    parts = [
        f"Length alone and a bag of its subwords have at most {most.max():.2f} in any language: "
        f"{(most <= 0.55).sum()} of {len(most)} languages are at .55 or below.",
        f"`{model}` puts A nearer than B in {with_interval(row, 'share')[0]} of the comparisons "
        "over languages and exchanges; chance is one half.",
        f"It has most for {kinds.idxmax()} ({kinds.max():.2f}) and least for {kinds.idxmin()} "
        f"({kinds.min():.2f}); where one number word became another it has {word:.2f}.",
        f"With another sentence as X the share is {with_interval(odd, 'share')[0]}: as far as it "
        "is from one half, B is odd or common whatever X says.",
    ]
    return "\n".join(f"- {part}" for part in parts)
