"""The probes of the ABX paper (section 5): what can be read off a model's frozen states.

`monolingual` trains probes on one language and tests them on it; `transfer` tests them on every
other language as well. Both look into the store first, language by language, so a run that was
stopped goes on where it was. `xlx.series.history` gives the checkpoints to call them with.

How many examples: `Setup` counts what a probe learns from, words for POS and NER and pairs for NLI,
the same number in every language, so that a language is not better because its treebank is larger.
Sentences are drawn whole until there are enough.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from seqeval.metrics import f1_score
from tqdm import tqdm

from xlx import labelled, languages, models, probes, words
from xlx.series import series_name
from xlx.store import Store, code_version

Part = labelled.Tagged | labelled.Pairs

#: Bytes of states probed in one go: languages together train faster than alone.
_MEMORY = 2**29

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

    def load(self, language: str, split: str, source: str | None = None) -> Part:
        """A split of a language, as many sentences of it as are asked for.

        Kept in memory, so that the checkpoints of a series do not read it anew.
        """
        wanted = {"train": self.n_train, "validation": self.n_validation, "test": self.n_test}
        return _load(self.task, language, split, source, self.path, wanted[split], self.seed)

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
            encoder, part.first, part.second, form=setup.form, max_length=setup.max_length,
            progress=False,
        )  # fmt: skip
        labels = np.array([label[name] for name in part.labels])
        return Examples(found.states, labels, part.ids, [], found.n_cut)
    found = words.embed_words(
        encoder, part.sentences, subword=setup.subword, max_length=setup.max_length, progress=False
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
    name: str | Path | models.Checkpoint,
    setup: Setup,
    codes: Sequence[str] | None = None,
    *,
    control: bool = False,
    online: bool = False,
    entity_layers: Sequence[int] = (),
    device: str | None = None,
    dtype: str = "float32",
    store: Store | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Probes trained and tested in one language, for every language and layer (section 5.2).

    Parameters
    ----------
    name : str, Path or Checkpoint
        A model, or one checkpoint of a series.
    setup : Setup
    codes : sequence of str, optional
        Languages; None for `languages_of` the task.
    control, online : bool
        Also the control task and the online code of `probes.evaluate`.
    entity_layers : sequence of int
        NER: layers (negative ones count from the last) at which the F1 of whole entities is
        computed, by seqeval; it takes longer than the probe.
    device, dtype
        As for `models.load`.

    Returns
    -------
    DataFrame
        A row per language, layer and seed: ``model``, ``checkpoint``, ``task``, ``language``,
        ``layer``, the columns of `probes.evaluate`, ``f1`` (entities; missing where it is not
        asked for) and ``n_lost`` (examples that could not be embedded whole).

    Raises
    ------
    ValueError
        As `labelled.load`, `words.embed_words` and `probes.evaluate`; no language; entities of
        another task than NER.
    """
    if len(entity_layers) and setup.task != "NER":
        raise ValueError(f"entity_layers are for NER: {setup.task} has no entities to score")
    store = store or Store()
    encoder = models.load(name, device=device, dtype=dtype)
    codes = _languages(codes, setup, "mono")
    layers = [range(encoder.n_layers + 1)[layer] for layer in entity_layers]
    options = {"control": control, "online": online, "entity_layers": layers}
    parts = {code: _splits(setup, code) for code in codes}
    keys = {
        code: _key(encoder, setup, parts[code].values())
        | {"options": options, "code": code_version(probes, examples, _probe, _stacked, _entity_f1)}
        for code in codes
    }
    found = {code: store.load_table("probes", keys[code]) for code in codes}
    missing = [code for code in codes if found[code] is None]
    with _bar(len(missing), f"{encoder.name}, {setup.task}", progress) as bar:
        for chunk in _chunks(missing, parts, encoder, setup):
            embedded = {
                code: {split: examples(encoder, part, setup) for split, part in parts[code].items()}
                for code in chunk
            }
            rows = _probe(embedded, parts, setup, control, online, layers, encoder.device)
            for code in chunk:
                found[code] = rows[rows["language"] == code].reset_index(drop=True)
                store.save_table("probes", keys[code], found[code])
                bar.update()
    return _named(encoder, setup, [found[code] for code in codes])


def transfer(
    name: str | Path | models.Checkpoint,
    setup: Setup,
    codes: Sequence[str] | None = None,
    *,
    device: str | None = None,
    dtype: str = "float32",
    store: Store | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Probes trained in each language and tested in all of them (section 5.3).

    POS is tested on PUD, whose sentences are the same in all languages, NER and NLI on their own
    test parts (NLI: parallel; NER: other text in each language).

    Parameters
    ----------
    codes : sequence of str, optional
        Languages, sources and targets alike; None for `languages_of` the task, "CL".
    name, setup, device, dtype
        As for `monolingual`.

    Returns
    -------
    DataFrame
        A row per source, target, layer and seed: ``model``, ``checkpoint``, ``task``, ``source``,
        ``target``, ``layer``, ``seed``, ``n_test``, ``accuracy``, ``majority`` (of the commonest
        class of the source on the target).

    Raises
    ------
    ValueError
        As for `monolingual`.
    """
    store = store or Store()
    encoder = models.load(name, device=device, dtype=dtype)
    codes = _languages(codes, setup, "CL")
    tests = {code: setup.load(code, "test", TRANSFER_SOURCES.get(setup.task)) for code in codes}
    trained = {
        code: {split: setup.load(code, split) for split in ("train", "validation")}
        for code in codes
    }
    keys = {
        code: _key(encoder, setup, [*trained[code].values(), *tests.values()])
        | {"targets": codes, "code": code_version(probes, examples, _transfer, _stacked)}
        for code in codes
    }
    found = {code: store.load_table("transfer", keys[code]) for code in codes}
    missing = [code for code in codes if found[code] is None]
    if missing:
        targets = {code: examples(encoder, part, setup) for code, part in tests.items()}
    with _bar(len(missing), f"{encoder.name}, {setup.task}, transfer", progress) as bar:
        for chunk in _chunks(missing, trained, encoder, setup):
            embedded = {
                code: {
                    split: examples(encoder, part, setup) for split, part in trained[code].items()
                }
                for code in chunk
            }
            rows = _transfer(embedded, targets, setup, encoder.device)
            for code in chunk:
                found[code] = rows[rows["source"] == code].reset_index(drop=True)
                store.save_table("transfer", keys[code], found[code])
                bar.update()
    return _named(encoder, setup, [found[code] for code in codes])


def _languages(codes: Sequence[str] | None, setup: Setup, table_2: str) -> tuple[str, ...]:
    codes = languages_of(setup.task, table_2, path=setup.path) if codes is None else tuple(codes)
    if not codes:
        raise ValueError(f"{setup.task}: there is no language to probe; name at least one")
    return codes


def _splits(setup: Setup, code: str) -> dict[str, Part]:
    return {split: setup.load(code, split) for split in labelled.SPLITS}


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


def _named(encoder: models.Encoder, setup: Setup, tables: list[pd.DataFrame]) -> pd.DataFrame:
    rows = pd.concat(tables, ignore_index=True)
    rows.insert(0, "model", series_name(encoder))
    rows.insert(1, "checkpoint", encoder.step or 0)
    rows.insert(2, "task", setup.task)
    return rows


def _key(encoder: models.Encoder, setup: Setup, parts: Iterable[Part]) -> dict[str, object]:
    """What the probes of a language depend on, besides options and code of this module."""
    options = {"max_length": setup.max_length}
    keys = [
        words.pairs_key(encoder, part.text_hash(), form=setup.form, **options)
        if isinstance(part, labelled.Pairs)
        else words.words_key(encoder, part.text_hash(), subword=setup.subword, **options)
        for part in parts
    ]
    return {"states": keys, "hidden": setup.hidden, "seeds": list(setup.seeds)}


def _bar(total: int, what: str, progress: bool) -> tqdm:
    return tqdm(total=total, desc=what, unit=" languages", disable=None if progress else True)


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
        "hidden": setup.hidden, "seeds": setup.seeds, "device": device, "progress": False
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
    embedded: dict[str, dict[str, Examples]],
    targets: dict[str, Examples],
    setup: Setup,
    device: torch.device,
) -> pd.DataFrame:
    """`transfer` from a few sources at once."""
    codes = list(embedded)
    splits = [_stacked([embedded[c][split] for c in codes])[0] for split in ("train", "validation")]
    n_classes = len(setup.labels)
    fitted = probes.fit(
        *splits, n_classes, hidden=setup.hidden, seeds=setup.seeds, device=device, progress=False
    )
    n_layers = len(splits[0].states) // len(codes)
    rows = []
    for at, source in enumerate(codes):
        layers = range(n_layers)
        own = fitted.take([at * n_layers + layer for layer in layers])
        for target, test in targets.items():
            scores = probes.accuracy(own.predict(test.states), test.labels)
            majority = probes.majority(embedded[source]["train"].labels, test.labels, n_classes)
            rows += [
                (source, target, layer, seed, len(test.labels), scores[layer, s], majority[0])
                for layer in layers
                for s, seed in enumerate(setup.seeds)
            ]
    columns = ["source", "target", "layer", "seed", "n_test", "accuracy", "majority"]
    return pd.DataFrame(rows, columns=columns)
