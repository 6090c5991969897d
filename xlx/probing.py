"""The probes of the ABX paper (section 5): what can be read off a model's frozen states.

`monolingual` trains probes on one language and tests them on it; `transfer` tests them on every
other language as well. Both keep a result for every model and language (`xlx.work`), so a run that
was stopped goes on where it was. `xlx.series.history` gives the checkpoints to call them with.

How many examples: `Setup` counts what a probe learns from, words for POS and NER and pairs for NLI,
the same number in every language, so that a language is not better because its treebank is larger.
Sentences are drawn whole until there are enough.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from seqeval.metrics import f1_score

from xlx import (
    checks,
    embeddings,
    labelled,
    languages,
    models,
    probes,
    statistics,
    words,
    work,
)
from xlx.series import Name, series_name

Part = labelled.Tagged | labelled.Pairs

#: Bytes of states probed in one go: languages together train faster than alone.
_MEMORY = 2**29

_OF_PAIRS = ("NLI", "PI")

#: The source that tests transfer where it is not the one that probes are trained on: parallel text.
TRANSFER_SOURCES = {"POS": "pud"}


@dataclass(frozen=True)
class Examples:
    """One split in one language, as a probe sees it.

    Attributes
    ----------
    states : np.ndarray
        float32, ``(n_layers + 1, n, dim)``.
    labels : np.ndarray
        ``(n,)``, indices into ``labelled.LABELS[task]``.
    types : tuple of str
        ``(n,)``: the word, to which a control task gives one label wherever it stands; of a pair
        its number, since no pair comes twice.
    places : list of tuple
        ``(n,)``: sentence and number of the word; of pairs none.
    n_lost : int
        Words behind the maximum length or without a subword; pairs that were cut.
    """

    states: np.ndarray
    labels: np.ndarray
    types: tuple[str, ...]
    places: list[tuple[int, int]]
    n_lost: int


@dataclass(frozen=True)
class Setup:
    """What a probe is trained on and how: all that a score depends on but model and language.

    Attributes
    ----------
    task : {"POS", "NER", "NLI"}
    n_train, n_validation, n_test : int, optional
        Examples (words, pairs) of a language in each split; None or more than there are: all.
    seed : int
        Of the sentences drawn. In parallel data the same positions in every language: of pairs
        just these; of words the first so many in one order, since words a sentence differ.
    subword : {"first", "mean"}
        What stands for a word of several subwords.
    form : {"joint", "concatenated"}
        What stands for a pair (see `xlx.words`).
    max_length : int, optional
        Subwords of a sentence or pair; None: what the model takes.
    hidden : int, optional
        Units of the hidden layer; None: a linear probe.
    seeds : tuple of int
        Of the initial weights, one probe each.
    path : str or Path, optional
        A local copy of the full data; None: the shipped subset.
    """

    task: str
    n_train: int | None = None
    n_validation: int | None = None
    n_test: int | None = None
    seed: int = 1
    subword: str = "first"
    form: str = "joint"
    max_length: int | None = None
    hidden: int | None = None
    seeds: tuple[int, ...] = probes.SEEDS
    path: str | Path | None = None

    def __post_init__(self) -> None:
        for name in ("n_train", "n_validation", "n_test", "max_length", "hidden"):
            if getattr(self, name) is not None:
                checks.whole(getattr(self, name), name, least=None)
        checks.several(self.seeds, "seeds")

    def load(self, language: str, split: str, source: str | None = None) -> Part:
        """A split of a language, as many sentences of it as are asked for.

        Kept in memory, so that the checkpoints of a series do not read it anew.
        """
        return _load(self.task, language, split, source, self.path, self._size(split), self.seed)

    def about(self, language: str, split: str, source: str | None = None) -> dict[str, object]:
        """What names that split, without reading it where it is shipped."""
        if self.path is not None:
            return {"text": self.load(language, split, source).text_hash()}
        drawn = {"n": self._size(split), "seed": self.seed} if self._size(split) is not None else {}
        return labelled.about(self.task, language, split, source=source) | drawn

    def _size(self, split: str) -> int | None:
        return {"train": self.n_train, "validation": self.n_validation, "test": self.n_test}[split]

    @property
    def labels(self) -> tuple[str, ...]:
        return labelled.LABELS[self.task]


@lru_cache(maxsize=512)
def _load(
    task: str,
    language: str,
    split: str,
    source: str | None,
    path: str | Path | None,
    n: int | None,
    seed: int,
) -> Part:
    part = labelled.load(task, language, split, source=source, path=path)
    return part if n is None else _enough(part, n, seed)


def _enough(part: Part, n: int, seed: int) -> Part:
    """Sentences drawn without replacement until they hold n examples; all if they never do."""
    if isinstance(part, labelled.Pairs) or n < 1:  # which is an error
        return part.take(n, seed)
    order = np.random.default_rng(seed).permutation(len(part))
    sizes = np.cumsum([len(part.sentences[i]) for i in order])
    kept = sorted(order[: np.searchsorted(sizes, n) + 1].tolist())
    return labelled.keep(part, kept)


def examples(encoder: models.Encoder, part: Part, setup: Setup) -> Examples:
    """The states of a split and the labels that go with them."""
    label = {name: index for index, name in enumerate(setup.labels)}
    if isinstance(part, labelled.Pairs):
        found = words.embed_pairs(
            encoder, part.first, part.second, form=setup.form, max_length=setup.max_length
        )  # fmt: skip
        labels = np.array([label[name] for name in part.labels])
        return Examples(found.states, labels, part.ids, [], found.n_cut)
    found = words.embed_words(
        encoder, part.sentences, subword=setup.subword, max_length=setup.max_length
    )
    places = list(zip(found.sentence.tolist(), found.word.tolist(), strict=True))
    return Examples(
        found.states,
        np.array([label[part.tags[sentence][word]] for sentence, word in places]),
        tuple(part.sentences[sentence][word] for sentence, word in places),
        places,
        found.n_cut + found.n_empty,
    )


def languages_of(
    task: str,
    setup: str = "mono",
    *,
    source: str | None = None,
    path: str | Path | None = None,
) -> tuple[str, ...]:
    """Languages that Table 2 ticks for a task ("mono" or "CL") and that there is data for.

    Without `path` those that are shipped (from `source` alone, if given); with a local copy of the
    full data all that are ticked.
    """
    ticked = languages.for_task(task, setup)
    if path is not None:
        return ticked
    shipped = labelled.table()
    kept = (shipped["task"] == task) & ((source is None) | (shipped["source"] == source))
    return tuple(code for code in ticked if code in set(shipped.loc[kept, "language"]))


def monolingual(
    names: Name | Sequence[Name],
    setup: Setup,
    codes: Sequence[str] | None = None,
    *,
    control: bool = False,
    online: bool = False,
    entity_layers: Sequence[int] = (),
) -> pd.DataFrame:
    """Probes trained and tested in one language, for every language and layer (section 5.2).

    Parameters
    ----------
    names : str, Path or Checkpoint, or several
        Models, or checkpoints of a series.
    setup : Setup
    codes : sequence of str, optional
        Languages; None for `languages_of` the task.
    control, online : bool
        Also the control task and the online code of `probes.evaluate`.
    entity_layers : sequence of int
        NER: layers (negative ones count from the last) at which the F1 of whole entities is
        computed, by seqeval; it takes longer than the probe.

    Returns
    -------
    DataFrame
        A row per model, language, layer and seed: ``model``, ``checkpoint``, ``task``,
        ``language``, ``layer``, the columns of `probes.evaluate`, ``f1`` (entities; missing where
        it is not asked for) and ``n_lost`` (examples that could not be embedded whole).

    Raises
    ------
    ValueError
        As `labelled.load`, `words.embed_words` and `probes.evaluate`; no language; entities of
        another task than NER.
    """
    codes = _languages(codes, setup, "mono")
    if len(entity_layers) and setup.task != "NER":
        raise ValueError(f"entity_layers are for NER: {setup.task} has no entities to score")
    options = {"control": control, "online": online, "entity_layers": list(entity_layers)}
    abouts = [
        {split: setup.about(code, split) for split in labelled.SPLITS} | options for code in codes
    ]
    found = _results(PROBES, names, setup, codes, abouts, **options)
    tables = [pd.DataFrame({**head, "language": code} | dict(table)) for head, code, table in found]
    return pd.concat(tables, ignore_index=True)


def of_layers(scored: pd.DataFrame, layer: str | int) -> pd.DataFrame:
    """Accuracies of models from those of their layers: a row a model, checkpoint, task, language.

    Parameters
    ----------
    scored : DataFrame
        As `monolingual` returns it.
    layer : {"mean", "best"} or int
        The mean over layers, the layer of lowest validation loss, or a layer.
    """
    keys = ["model", "task", "checkpoint", "language"]
    by_layer = scored.groupby([*keys, "layer"], sort=False, as_index=False)[
        ["accuracy", "validation_loss"]
    ].mean()
    if layer == "mean":
        found = by_layer.groupby(keys, sort=False, as_index=False)["accuracy"].mean()
    elif layer == "best":
        found = by_layer.loc[by_layer.groupby(keys, sort=False)["validation_loss"].idxmin()]
    else:
        found = by_layer[by_layer["layer"] == layer]
    return found[[*keys, "accuracy"]].reset_index(drop=True)


def retested(
    first: pd.DataFrame,
    second: pd.DataFrame,
    languages: Sequence[str] = ("language",),
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """How far accuracies hold when all examples are drawn anew (test-retest reliability).

    A regression can explain no larger share of the variance of accuracies than the one that comes
    back; where the correlation of two draws is not above zero, differences between languages are
    noise, and so is any coefficient.

    Parameters
    ----------
    first, second : DataFrame
        ``model``, ``task``, the columns `languages` and ``accuracy``, of two draws; rows that both
        have count.
    seed : int
        Of the interval, over languages (`statistics.correlation`).

    Returns
    -------
    DataFrame
        One row a task and model: ``n``, ``r``, ``low``, ``high`` (NaN where all are the same).
    """
    keys = ["model", "task", *languages]
    both = first.merge(second, on=keys, suffixes=("", " again"))
    rows = []
    for (task, model), some in both.groupby(["task", "model"], sort=False):
        try:
            found = statistics.correlation(
                some, "accuracy", "accuracy again", languages=languages, seed=seed
            )
            rows.append((task, model, found.n, found.value, found.low, found.high))
        except ValueError:  # nothing varies
            rows.append((task, model, len(some), np.nan, np.nan, np.nan))
    return pd.DataFrame(rows, columns=["task", "model", "n", "r", "low", "high"])


def transfer(
    names: Name | Sequence[Name], setup: Setup, codes: Sequence[str] | None = None
) -> pd.DataFrame:
    """Probes trained in each language and tested in all of them (section 5.3).

    POS is tested on PUD, whose sentences are the same in all languages, NER and NLI on their own
    test parts (NLI: parallel; NER: other text in each language).

    Parameters
    ----------
    codes : sequence of str, optional
        Languages, sources and targets alike; None for `languages_of` the task, "CL".
    names, setup
        As for `monolingual`.

    Returns
    -------
    DataFrame
        A row per model, source, target, layer and seed: ``model``, ``checkpoint``, ``task``,
        ``source``, ``target``, ``layer``, ``seed``, ``n_test``, ``accuracy``, ``majority`` (of the
        commonest class of the source on the target).

    Raises
    ------
    ValueError
        As for `monolingual`.
    """
    codes = _languages(codes, setup, "CL")
    tests = [setup.about(code, "test", TRANSFER_SOURCES.get(setup.task)) for code in codes]
    abouts = [
        {split: setup.about(code, split) for split in ("train", "validation")} | {"tests": tests}
        for code in codes
    ]
    rows = []
    for head, source, value in _results(TRANSFER, names, setup, codes, abouts, targets=codes):
        target, layer, seed = np.indices(value["right"].shape).reshape(3, -1)
        n_test = value["n_test"][target]
        columns = {
            "source": source,
            "target": np.array(codes)[target],
            "layer": layer,
            "seed": np.array(setup.seeds)[seed],
            "n_test": n_test,
            "accuracy": value["right"].ravel() / n_test,
            "majority": value["majority"][target],
        }
        rows.append(pd.DataFrame(head | columns))
    return pd.concat(rows, ignore_index=True)


def _results(
    kind: work.Kind,
    names: Name | Sequence[Name],
    setup: Setup,
    codes: Sequence[str],
    abouts: Sequence[Mapping[str, object]],
    **options: object,
) -> Iterator[tuple[dict[str, object], str, work.Value]]:
    """Of each model and language what names the model in tables, the language and the value.

    ``abouts`` are of the languages; a model is loaded once for all of them that are missing.
    """
    names = [names] if isinstance(names, Name) else list(names)
    own = {"task": setup.task, "hidden": setup.hidden, "seeds": list(setup.seeds)}
    if setup.task in _OF_PAIRS:
        own["form"] = setup.form
    else:
        own["subword"] = setup.subword
    of_models = [
        {"states": embeddings.states_about(name, max_length=setup.max_length)} | own
        for name in names
    ]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(codes)):
            positions = list(positions)
            wanted = [codes[position % len(codes)] for position in positions]
            yield positions, (names[number], setup, wanted, options)

    values = work.results(
        kind,
        [of_model | about for of_model in of_models for about in abouts],
        calls,
        what=f"{setup.task}, {kind.name}",
    )
    for number, name in enumerate(names):
        identity = models.identify(name)
        head = {
            "model": series_name(identity), "checkpoint": identity.step or 0, "task": setup.task
        }  # fmt: skip
        for code, value in zip(codes, values[number * len(codes) :], strict=False):
            yield head, code, value


def _probes(
    name: Name, setup: Setup, codes: Sequence[str], options: Mapping[str, object]
) -> Iterator[pd.DataFrame]:
    """`monolingual` of some languages, one table each."""
    encoder = models.load(name)
    layers = list(options["entity_layers"])
    if layers:
        layers = checks.layers(layers, encoder.n_layers + 1, from_last=True)
    parts = {code: {split: setup.load(code, split) for split in labelled.SPLITS} for code in codes}
    lost = {}
    for chunk in _chunks(codes, parts, encoder, setup):
        embedded = _embedded(encoder, parts, chunk, setup)
        for code, own in embedded.items():
            n = sum(part.n_lost for part in own.values())
            lost[code] = n / (n + sum(len(part.labels) for part in own.values()))
        rows = _probe(
            embedded, parts, setup, options["control"], options["online"], layers, encoder.device
        )
        for code in chunk:
            own = rows[rows["language"] == code]
            yield own.drop(columns="language").reset_index(drop=True)
    checks.legible(encoder.name, setup.task, {"words or pairs cut or without a subword": lost})


def _transfers(
    name: Name, setup: Setup, codes: Sequence[str], options: Mapping[str, object]
) -> Iterator[dict[str, np.ndarray]]:
    """`transfer` from some sources, arrays each.

    ``right``, test examples ``(n_targets, n_layers + 1, n_seeds)``; ``n_test`` and ``majority``,
    ``(n_targets,)``.
    """
    encoder = models.load(name)
    parts = {
        code: {split: setup.load(code, split) for split in ("train", "validation")}
        for code in codes
    }
    source = TRANSFER_SOURCES.get(setup.task)
    targets = [
        examples(encoder, setup.load(code, "test", source), setup) for code in options["targets"]
    ]
    for chunk in _chunks(codes, parts, encoder, setup):
        embedded = _embedded(encoder, parts, chunk, setup)
        yield from _transfer(list(embedded.values()), targets, setup, encoder.device)


def _embedded(
    encoder: models.Encoder,
    parts: Mapping[str, Mapping[str, Part]],
    codes: Sequence[str],
    setup: Setup,
) -> dict[str, dict[str, Examples]]:
    return {
        code: {split: examples(encoder, part, setup) for split, part in parts[code].items()}
        for code in codes
    }


def _apart(stored: work.Value, computed: work.Value) -> float:
    """The largest difference of an accuracy, the mean over seeds, or of a code's length.

    Infinite where other examples were counted. Single probes differ by more: one may stop an epoch
    earlier on another processor.
    """
    if isinstance(stored, dict):
        if not all(np.array_equal(stored[k], computed[k]) for k in ("n_test", "majority")):
            return np.inf
        shares = [value["right"].mean(axis=-1).T / value["n_test"] for value in (stored, computed)]
        return float(np.abs(shares[0] - shares[1]).max())
    counts = ["layer", "seed", "n_train", "n_test", "n_lost", "majority"]
    # a ledger has the columns of all entries, in an order of its own
    if set(stored) != set(computed) or not stored[counts].equals(computed[counts]):
        return np.inf
    scores = [name for name in ("accuracy", "control_accuracy", "f1") if name in stored]
    one, other = (value.groupby("layer").mean(numeric_only=True) for value in (stored, computed))
    largest = float(np.nan_to_num((one[scores] - other[scores]).abs().to_numpy()).max())
    if "bits" in stored:
        largest = max(largest, float((other["bits"] / one["bits"] - 1).abs().max()))
    return largest


PROBES = work.Kind("probes", _probes, version=1, tolerance=0.05, difference=_apart)
TRANSFER = work.Kind("transfer", _transfers, version=1, tolerance=0.05, difference=_apart)


def _languages(codes: Sequence[str] | None, setup: Setup, table_2: str) -> tuple[str, ...]:
    if not isinstance(setup, Setup) or setup.task == "TOPIC":
        raise ValueError(f"{setup!r} is no Setup of POS, NER, NLI or PI (TOPIC: see xlx.topics)")
    codes = languages_of(setup.task, table_2, path=setup.path) if codes is None else codes
    codes = tuple(checks.several(codes, "languages"))
    if len(set(codes)) < len(codes):
        raise ValueError(f"{setup.task}: a language is named twice: {', '.join(map(str, codes))}")
    if not codes:
        raise ValueError(f"{setup.task}: there is no language to probe; name at least one")
    return codes


def _chunks(
    codes: Sequence[str],
    parts: dict[str, dict[str, Part]],
    encoder: models.Encoder,
    setup: Setup,
) -> Iterator[list[str]]:
    """The languages in portions whose states fit into `_MEMORY`; one at a time if none does.

    Every language of a portion takes as much as its largest, to which it is filled up.
    """
    chunk, largest = [], 0
    for code in codes:
        need = 4 * sum(_width(part, encoder, setup) for part in parts[code].values())
        need *= encoder.n_layers + 1
        if chunk and (len(chunk) + 1) * max(largest, need) > _MEMORY:
            yield chunk
            chunk, largest = [], 0
        chunk.append(code)
        largest = max(largest, need)
    if chunk:
        yield chunk


def _width(part: Part, encoder: models.Encoder, setup: Setup) -> int:
    """Numbers that the examples of a split have in a layer."""
    if isinstance(part, labelled.Tagged):
        return part.n_words * encoder.dim
    return len(part) * encoder.dim * (4 if setup.form == "concatenated" else 1)


def _stacked(embedded: Sequence[Examples]) -> tuple[probes.Split, np.ndarray]:
    """All layers of all languages as groups, language by language, and the types of the examples.

    Languages with fewer examples are filled up: label -1.
    """
    n_layers, _, dim = embedded[0].states.shape
    longest = max(len(part.labels) for part in embedded)
    states = np.zeros((len(embedded), n_layers, longest, dim), dtype=np.float32)
    labels = np.full((len(embedded), n_layers, longest), -1)
    types = np.full((len(embedded), n_layers, longest), "", dtype=object)
    for row, part in enumerate(embedded):
        n = len(part.labels)
        states[row, :, :n] = part.states
        labels[row, :, :n] = part.labels
        types[row, :, :n] = part.types
    groups = len(embedded) * n_layers
    return (
        probes.Split(states.reshape(groups, longest, dim), labels.reshape(groups, longest)),
        types.reshape(groups, longest),
    )


def _probe(
    embedded: dict[str, dict[str, Examples]],
    parts: dict[str, dict[str, Part]],
    setup: Setup,
    control: bool,
    online: bool,
    entity_layers: Sequence[int],
    device: torch.device,
) -> pd.DataFrame:
    """`monolingual` for a few languages at once."""
    codes = list(embedded)
    stacks = {split: _stacked([embedded[c][split] for c in codes]) for split in labelled.SPLITS}
    splits = [stacks[split][0] for split in labelled.SPLITS]
    options = {
        "hidden": setup.hidden, "seeds": setup.seeds, "device": device
    }  # fmt: skip
    fitted = probes.fit(*splits[:2], len(setup.labels), **options)
    rows = probes.evaluate(
        *splits,
        len(setup.labels),
        types=[stacks[split][1] for split in labelled.SPLITS] if control else None,
        online=online,
        fitted=fitted,
        **options,
    )
    n_layers = len(splits[0].states) // len(codes)
    rows.insert(0, "language", np.array(codes)[rows["group"] // n_layers])
    rows.insert(1, "layer", rows.pop("group") % n_layers)
    rows["f1"] = np.nan
    rows["n_lost"] = rows["language"].map(
        {code: sum(part.n_lost for part in embedded[code].values()) for code in codes}
    )
    for at, code in enumerate(codes):
        for layer in entity_layers:
            group = at * n_layers + layer
            test = embedded[code]["test"]
            predicted = fitted.take([group]).predict(test.states[[layer]])[0]
            of_layer = (rows["language"] == code) & (rows["layer"] == layer)
            rows.loc[of_layer, "f1"] = _entity_f1(test, predicted, parts[code]["test"])
    return rows


def _entity_f1(test: Examples, predicted: np.ndarray, part: labelled.Tagged) -> list[float]:
    """F1 of whole entities, one for each seed; ``predicted`` is ``(s, n)``.

    A word that has no state counts as no part of an entity.
    """
    gold = [list(tags) for tags in part.tags]
    scores = []
    for row in predicted:
        tags = [["O"] * len(sentence) for sentence in part.sentences]
        for (sentence, word), found in zip(test.places, row.tolist(), strict=True):
            tags[sentence][word] = labelled.NER[found]
        scores.append(f1_score(gold, tags, zero_division=0))
    return scores


def _transfer(
    sources: Sequence[dict[str, Examples]],
    targets: Sequence[Examples],
    setup: Setup,
    device: torch.device,
) -> Iterator[dict[str, np.ndarray]]:
    """`_transfers` from a few sources at once."""
    splits = [_stacked([own[split] for own in sources])[0] for split in ("train", "validation")]
    n_classes = len(setup.labels)
    fitted = probes.fit(*splits, n_classes, hidden=setup.hidden, seeds=setup.seeds, device=device)
    n_layers = len(splits[0].states) // len(sources)
    n_test = np.array([len(test.labels) for test in targets])
    for at, source in enumerate(sources):
        own = fitted.take([at * n_layers + layer for layer in range(n_layers)])
        right = [(own.predict(test.states) == test.labels).sum(axis=-1) for test in targets]
        commonest = [
            probes.majority(source["train"].labels, test.labels, n_classes)[0] for test in targets
        ]
        yield {
            "right": np.array(right, dtype=np.int32),
            "n_test": n_test,
            "majority": np.array(commonest),
        }
