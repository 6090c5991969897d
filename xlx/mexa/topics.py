"""Topic classification in 205 languages: the task that alignment is to predict (SIB-200).

The MEXA paper asks its models questions (Belebele, m-MMLU, m-ARC), which a model has to be large
for. What a small decoder knows of a text can be read off its frozen states instead: probes learn
the topic of English sentences (Adelani et al. 2024, seven topics) and are tested on the same test
sentences in every language. An English probe is right in another language as far as the states of
translations fall into the same regions, which is the promise of alignment in its plainest form.

Sentences are pooled by the plain mean unless asked otherwise: neither of the poolings that MEXA
compares then has the advantage of being the task's own.

**Two scores.** A probe reads the states as they are, or *centred*: moved so that the mean of the
test sentences of a language lies where that of the source's training sentences does. The first asks
for states that do not depend on the language; where they do, all sentences of a language lie far
off on one side and a probe calls most of them by one topic, at times with less success than the
commonest topic has. The second takes the language's own offset out, which needs sentences of it but
no labels (Libovický, Rosa and Fraser 2020), and asks for what is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.core import work
from xlx.core.languages import parse_tag
from xlx.models import embeddings, loading, probes
from xlx.models.loading import Name, series_name
from xlx.text import labelled, shipped
from xlx.text.downstream import SCORE_COLUMNS
from xlx.text.examples import Examples

#: The name of the task in tables of downstream scores.
TOPIC_TASK = "SIB-200"


@dataclass(frozen=True)
class TopicSetup:
    """What the probes learn from and are tested on: all that a score depends on but the model.

    Attributes
    ----------
    source : str
        The language of training and validation. What is shipped has those parts in English.
    n_train, n_validation, n_test : int, optional
        Sentences; None or more than there are: all (701, 99 and 204).
    seed : int
        Of the sentences drawn, the same in every language.
    pooling : str
        One of `embeddings.POOLINGS`.
    max_length : int, optional
        Subwords of a sentence; None: what the model takes.
    hidden : int, optional
        Units of a hidden layer of the probes; None: linear.
    seeds : tuple of int
        Of the probes' initial weights, one probe each.
    path : str or Path, optional
        A local copy of the full data; None: the shipped subset.
    """

    source: str = "en"
    n_train: int | None = None
    n_validation: int | None = None
    n_test: int | None = None
    seed: int = 1
    pooling: str = "mean"
    max_length: int | None = None
    hidden: int | None = None
    seeds: tuple[int, ...] = probes.SEEDS
    path: str | Path | None = None

    def load(self, language: str, split: str) -> Examples:
        """A split of a language, as many sentences of it as are asked for."""
        n = {"train": self.n_train, "validation": self.n_validation, "test": self.n_test}[split]
        texts = labelled.load_labelled("TOPIC", language, split, path=self.path)
        return texts if n is None else texts.take(n, self.seed)


def topic_languages(path: str | Path | None = None) -> tuple[str, ...]:
    """Languages that there is a test for, by the codes of `corpora.load` of FLORES-200.

    What is shipped has 205; of a local copy, every folder with a ``test.tsv`` that is named by a
    label, which is what `labelled.load_labelled` reads.
    """
    if path is None:
        rows = shipped.catalogue("labelled")
        return tuple(rows.loc[rows["task"] == "TOPIC", "language"])
    folders = {file.parent.name for file in Path(path).absolute().rglob("test.tsv")}
    return tuple(labelled.codes_of(sorted(filter(_is_tag, folders))))


def probe_topics(
    names: Name | Sequence[Name], setup: TopicSetup, languages: Sequence[str] | None = None
) -> pd.DataFrame:
    """Probes of every layer trained on the source language, tested on every language.

    Each model and language is a result of its own (`xlx.core.work`), so a run that was stopped goes
    on at the next one.

    Parameters
    ----------
    names : str, Path or Checkpoint, or several
        Models, or checkpoints of a series.
    setup : TopicSetup
    languages : sequence of str, optional
        Where to test, by code or label. Default: `topic_languages` the data.

    Returns
    -------
    DataFrame
        A row per model, language, layer, seed and ``centred`` (False, True): ``model``,
        ``checkpoint``, ``source``, ``language``, ``layer``, ``seed``, ``n`` (test sentences),
        ``accuracy``, in [0, 1], of all, and as ``even`` and ``odd`` of every other sentence,
        ``majority`` (accuracy of the source's commonest topic), ``validation_loss`` (nats, in the
        source language), ``n_cut`` (test sentences cut at the maximum length).

    Raises
    ------
    ValueError
        As `load_labelled`, `embeddings.embed` and `probes.fit`; no language; a language whose test
        sentences are not those of the source.
    """
    languages = topic_languages(setup.path) if languages is None else tuple(languages)
    if not languages:
        raise ValueError("there is no language to test on")
    names = [names] if isinstance(names, Name) else list(names)
    tests = {test.language: test for test in (setup.load(x, "test") for x in languages)}
    languages = tuple(tests)  # by code, each once, as the other tables of scores have them
    source = setup.load(setup.source, "test")
    if odd := [language for language, test in tests.items() if test.ids != source.ids]:
        raise ValueError(
            f"the test sentences in {odd[0]} are not those in {source.language} (other ids or "
            "another order), so that scores could not be compared"
        )
    own = {
        "train": [
            setup.load(setup.source, split).table_hash() for split in ("train", "validation")
        ],
        "hidden": setup.hidden,
        "seeds": list(setup.seeds),
    }
    options = {"pooling": setup.pooling, "max_length": setup.max_length}
    of_models = [{"states": embeddings.states_about(name, **options)} | own for name in names]
    texts = [{"test": test.table_hash()} for test in tests.values()]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(tests)):
            positions = list(positions)
            wanted = [languages[position % len(tests)] for position in positions]
            yield positions, (names[number], setup, wanted)

    values = work.results(
        TOPIC_PROBES,
        [of_model | text for of_model in of_models for text in texts],
        calls,
        what=TOPIC_TASK,
    )
    rows = []
    for number, name in enumerate(names):
        identity = loading.identify(name)
        head = {"model": series_name(identity), "checkpoint": identity.step or 0}
        head["source"] = source.language
        for language, value in zip(languages, values[number * len(tests) :], strict=False):
            rows.append(pd.DataFrame(head | {"language": language} | dict(value)))
    return pd.concat(rows, ignore_index=True)


def _tested(name: Name, setup: TopicSetup, languages: Sequence[str]) -> Iterator[pd.DataFrame]:
    """`probe_topics` to some languages, one table each."""
    encoder = loading.load(name)
    parts = [setup.load(setup.source, split) for split in ("train", "validation")]
    fitted = probes.fit(
        *(_split(encoder, part, setup) for part in parts), len(labelled.LABELS["TOPIC"]),
        hidden=setup.hidden, seeds=setup.seeds, device=encoder.device,
    )  # fmt: skip
    for language in languages:
        yield _score(encoder, fitted, parts[0], setup.load(language, "test"), setup)


def _difference(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """The largest difference of an accuracy, the mean over seeds; infinite for other sentences."""
    counts = ["layer", "seed", "centred", "n", "majority", "n_cut"]
    if not stored[counts].equals(computed[counts]):
        return np.inf
    one, other = (
        value.groupby(["layer", "centred"])["accuracy"].mean() for value in (stored, computed)
    )
    return float((one - other).abs().max())


TOPIC_PROBES = work.Kind("topics", _tested, version=1, tolerance=0.05, difference=_difference)


def chosen_layer(table: pd.DataFrame) -> dict[str, int]:
    """The layer of each model whose probes have the lowest validation loss, in the source language.

    No other language is looked at: that choice can be made where only the source has labels.
    """
    losses = table.groupby(["model", "layer"])["validation_loss"].mean()
    return {model: int(rows.idxmin()[1]) for model, rows in losses.groupby("model")}


def task_scores(
    table: pd.DataFrame,
    layer: int | str = "chosen",
    *,
    centred: bool = True,
    accuracy: str = "accuracy",
) -> pd.DataFrame:
    """Scores of a task, as `xlx.text.downstream` has them, from what `probe_topics` returns.

    Parameters
    ----------
    table : DataFrame
        Of `probe_topics`; several models are fine.
    layer : int or {"chosen", "mean"}
        The layer whose probes count: a number, that of `chosen_layer`, or the mean over all.
    centred : bool
        Which of the two scores (see the module's text).
    accuracy : {"accuracy", "even", "odd"}
        Of all test sentences, or of every other one.

    Returns
    -------
    DataFrame
        One row a model and language: ``task``, ``model``, ``language``, ``score`` (accuracy, mean
        over seeds), ``stderr`` (of a share of n sentences: other sentences of the kind), ``n``.

    Raises ValueError for a layer that is not there, and for several checkpoints of a model.
    """
    if (several := table.groupby("model")["checkpoint"].nunique()).max() > 1:
        raise ValueError(
            f"there are several checkpoints of {several.idxmax()}: score them one after another"
        )
    table = table[table["centred"] == centred]
    if layer == "chosen":
        table = table[table["layer"] == table["model"].map(chosen_layer(table))]
    elif layer != "mean":
        there = sorted(table["layer"].unique())
        if layer not in there:
            raise ValueError(
                f"there is no layer {layer!r}: choose 'chosen', 'mean' or a number of "
                f"{', '.join(map(str, there))}"
            )
        table = table[table["layer"] == layer]
    scores = table.groupby(["model", "language"], sort=False, as_index=False)
    scores = scores.agg(score=(accuracy, "mean"), n=("n", "first"))
    if accuracy != "accuracy":
        scores["n"] = (scores["n"] + (accuracy == "even")) // 2
    scores["stderr"] = np.sqrt(scores["score"] * (1 - scores["score"]) / scores["n"])
    return scores.assign(task=TOPIC_TASK)[list(SCORE_COLUMNS)]


def topic_reliability(
    table: pd.DataFrame, layer: int | str = "chosen", *, centred: bool = True
) -> dict[str, float]:
    """How well the test tells languages apart, by model: 1 if other sentences would agree.

    The correlation over languages of the scores of even and odd sentences, stepped up to the full
    length (Spearman-Brown). No score can be expected to correlate with the task by more than its
    square root; below zero, where the halves disagree, nothing was measured. NaN where there is
    nothing to correlate: fewer than two languages, or one score in all of them.

    Parameters and errors as `task_scores`, without the source language, which the probes know.
    """
    table = table[table["language"] != table["source"]]
    even, odd = (
        task_scores(table, layer, centred=centred, accuracy=half).set_index(["model", "language"])
        for half in ("even", "odd")
    )
    found = {}
    for model, rows in even.groupby(level="model", sort=False):
        halves = np.array([rows["score"], odd.loc[rows.index, "score"]])
        if np.ptp(halves, axis=1).min() == 0:
            found[str(model)] = float("nan")
            continue
        r = float(np.corrcoef(halves)[0, 1])
        found[str(model)] = 2 * r / (1 + r) if r > -1 else float("-inf")
    return found


def _is_tag(name: str) -> bool:
    try:
        parse_tag(name)
    except ValueError:
        return False
    return True


def _embed(
    encoder: loading.Encoder, texts: Examples, setup: TopicSetup
) -> embeddings.SentenceStates:
    options = {"pooling": setup.pooling, "max_length": setup.max_length}
    return embeddings.embed(encoder, texts.first, **options)


def _split(encoder: loading.Encoder, texts: Examples, setup: TopicSetup) -> probes.Split:
    """All layers as groups."""
    states = _embed(encoder, texts, setup).states
    return probes.Split(states, texts.labels, [f"layer {i}" for i in range(len(states))])


def _score(
    encoder: loading.Encoder,
    fitted: probes.Probes,
    train: Examples,
    test: Examples,
    setup: TopicSetup,
) -> pd.DataFrame:
    """One language: a row per layer and seed, as they are and centred."""
    embedded = _embed(encoder, test, setup)
    states, labels = embedded.states, test.labels
    own = states.mean(axis=1, keepdims=True)
    commonest = np.bincount(train.labels).argmax()
    tables = []
    for centred, seen in (
        (False, states),
        (True, states - own + fitted.mean[:, None].cpu().numpy()),
    ):
        right = fitted.predict(seen) == labels  # (n_layers + 1, n_seeds, n)
        layer, seed = np.indices(right.shape[:2]).reshape(2, -1)
        tables.append(
            pd.DataFrame(
                {
                    "layer": layer,
                    "seed": np.array(fitted.seeds)[seed],
                    "centred": centred,
                    "n": len(test),
                    "accuracy": right.mean(axis=2).ravel(),
                    "even": right[..., ::2].mean(axis=2).ravel(),
                    "odd": right[..., 1::2].mean(axis=2).ravel(),
                    "majority": float((labels == commonest).mean()),
                    "validation_loss": fitted.validation_loss.ravel(),
                    "n_cut": embedded.n_cut,
                }
            )
        )
    return pd.concat(tables, ignore_index=True)
