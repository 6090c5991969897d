"""Whole entities in IOB2 tags: what named entity recognition is scored by, for many probes at once.

An entity counts as found where exactly its words are marked, with its type. What begins and ends an
entity is decided as conlleval does (Tjong Kim Sang and De Meulder 2003), and seqeval after it: one
begins at every ``B-X``, and at an ``I-X`` that continues no entity of type X (after ``O``, after
another type, at the beginning of a sentence); it goes on for as long as ``I-X`` of its type follow.
So what a probe predicts need not be well-formed.

The ABX paper (sections 5.2, 5.3) gives accuracy of words, of which most are no entity: who says so
of all words is right on most, and finds nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from xlx.measures import probes
from xlx.results import checks, ledger, work
from xlx.subjects import loading, words
from xlx.subjects.identity import Name, identify, series_name
from xlx.subjects.states import states_about
from xlx.text import labelled, languages
from xlx.text.examples import Examples
from xlx.text.files import catalogue
from xlx.text.labelled import NER, Tagged


@dataclass(frozen=True)
class Spans:
    """Where entities are in rows of words: three arrays ``(..., n_words)``."""

    begins: np.ndarray  # whether an entity begins at a word
    kinds: np.ndarray  # the type of the word's tag, -1 for none
    ends: np.ndarray  # the word behind the last of what begins here; of other words no matter


def read_spans(tags: ArrayLike, sentences: ArrayLike) -> Spans:
    """The entities of rows of tags.

    ``tags``: whole numbers ``(..., n_words)``, indices into `labelled.NER`; ``sentences``:
    ``(n_words,)``, which sentence a word is in, words of one sentence side by side. ValueError for
    other numbers, or of another length.
    """
    tags, sentences = np.asarray(tags), np.asarray(sentences)
    if tags.dtype.kind not in "iu" or np.any((tags < 0) | (tags >= len(NER))):
        raise ValueError(f"tags are the numbers 0 to {len(NER) - 1}, of {' '.join(NER)}")
    if sentences.shape != tags.shape[-1:]:
        raise ValueError(
            f"tags of {tags.shape[-1:]} words and sentences of {sentences.shape}: there must be "
            "one sentence a word"
        )
    begun, kind = _parts()
    kinds, continues = kind[tags], np.zeros(tags.shape, dtype=bool)
    same_kind = (kinds[..., 1:] == kinds[..., :-1]) & (kinds[..., 1:] >= 0)
    same_sentence = sentences[1:] == sentences[:-1]
    continues[..., 1:] = same_kind & same_sentence & ~begun[tags[..., 1:]]
    # the next word that does not continue: the least of all such places from there on
    n = tags.shape[-1]
    places = np.where(continues, n, np.arange(n))
    following = np.minimum.accumulate(places[..., ::-1], axis=-1)[..., ::-1]
    ends = np.full(tags.shape, n)
    ends[..., :-1] = following[..., 1:]
    return Spans((kinds >= 0) & ~continues, kinds, ends)


@lru_cache(maxsize=1)
def _parts() -> tuple[np.ndarray, np.ndarray]:
    """Of each tag whether it is a B, and the number of its type, -1 of O."""
    kinds = list(dict.fromkeys(tag[2:] for tag in NER if tag != "O"))
    begun = np.array([tag.startswith("B-") for tag in NER])
    return begun, np.array([-1 if tag == "O" else kinds.index(tag[2:]) for tag in NER])


@dataclass(frozen=True)
class EntityTest:
    """Sentences in which entities are to be found: what is there, and where predictions belong."""

    gold: Spans
    sentences: np.ndarray  # (n_words,): of each word which sentence it is in
    rows: np.ndarray  # (k,): which of the words were predicted

    def counts(self, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Entities found, and predicted, ``(...)``, by tags ``(..., k)`` of the words of `rows`.

        Other words count as no part of an entity.
        """
        tags = np.full((*predicted.shape[:-1], len(self.sentences)), NER.index("O"))
        tags[..., self.rows] = predicted
        spans = read_spans(tags, self.sentences)
        return n_found(self.gold, spans), spans.begins.sum(axis=-1)


def entity_test(part: Tagged, places: Sequence[tuple[int, int]]) -> EntityTest:
    """All entities of a part, of which the words of ``places`` are predicted, in that order.

    ``places``: sentence and number of the word in it.
    """
    lengths = np.array([len(tags) for tags in part.tags])
    sentences = np.repeat(np.arange(len(lengths)), lengths)
    gold = read_spans([NER.index(tag) for tags in part.tags for tag in tags], sentences)
    sentence, word = np.array(places, dtype=np.intp).reshape(-1, 2).T
    return EntityTest(gold, sentences, (lengths.cumsum() - lengths)[sentence] + word)


def n_found(gold: Spans, predicted: Spans) -> np.ndarray:
    """How many entities of ``gold`` are in ``predicted``: same words, same type; ``(...)``.

    Both are of the same words; rows of either are broadcast.
    """
    same = gold.begins & predicted.begins & (gold.kinds == predicted.kinds)
    return (same & (gold.ends == predicted.ends)).sum(axis=-1)


def entity_f1(found: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> np.ndarray:
    """F1 of entities in [0, 1] from their numbers: found, predicted, and there are.

    The harmonic mean of precision and recall, 2 found / (predicted + gold): over all types
    together. 0 where none is there and none was predicted, as seqeval has it.
    """
    total = np.asarray(predicted) + np.asarray(gold)
    return 2 * np.asarray(found) / np.maximum(total, 1)


LabelledPart = labelled.Tagged | Examples
#: Tasks whose examples are pairs of sentences.
OF_PAIRS = ("NLI", "PI")
#: Sources that the paper does not probe on: Table 2 ticks no languages for them, so all count.
NOT_IN_TABLE_2 = ("sick",)


@dataclass(frozen=True)
class ProbeInput:
    """One split in one language, as a probe sees it: n words or pairs."""

    states: np.ndarray  # float32, (n_layers + 1, n, dim)
    labels: np.ndarray  # (n,), indices into ``labelled.LABELS[task]``
    types: tuple[str, ...]  # word, to which a control task gives one label; number of the pair
    places: list[tuple[int, int]]  # sentence and number of the word; of pairs none
    n_lost: int  # words behind the maximum length or without a subword; pairs that were cut


@dataclass(frozen=True)
class ProbeSetup:
    """What a probe is trained on and how: all that a score depends on but model and language.

    Of each split ``n_train``, ``n_validation``, ``n_test`` examples (words, pairs) of a language;
    None or more than there are: all. In parallel data ``seed`` draws the same positions in every
    language: of pairs just these; of words the first so many in one order, since words a sentence
    differ.

    ``source`` is one of `labelled.load_labelled`. Of NLI the paper takes XNLI (section 5.1); SICK
    ("sick": simple sentences, public splits that share captions, labels that are not balanced) is
    NLI that small models learn, and its accuracies mean something beside ``majority`` alone.
    """

    task: str  # POS, NER, NLI or PI
    n_train: int | None = None
    n_validation: int | None = None
    n_test: int | None = None
    seed: int = 1  # of the sentences drawn
    subword: str = "first"  # or "mean": what stands for a word of several subwords
    form: str = "joint"  # or "concatenated": what stands for a pair (`xlx.subjects.words`)
    max_length: int | None = None  # subwords of a sentence or pair; None: what the model takes
    hidden: int | None = None  # units of the hidden layer; None: a linear probe
    seeds: tuple[int, ...] = probes.SEEDS  # of the initial weights, one probe each
    path: str | Path | None = None  # a local copy of the full data; None: the shipped subset
    source: str | None = None  # of the labels; None: the paper's

    def __post_init__(self) -> None:
        for name in ("n_train", "n_validation", "n_test", "max_length", "hidden"):
            if getattr(self, name) is not None:
                checks.whole(getattr(self, name), name, least=None)
        checks.one_of(self.subword, words.WORD_SUBWORDS, "subword")
        checks.one_of(self.form, words.FORMS, "form")
        if self.source is not None:
            for split in labelled.SPLITS:
                labelled.resolved(self.task, "en", split, self.source, self.path)
        object.__setattr__(self, "seeds", tuple(checks.several(self.seeds, "seeds")))

    def load(self, language: str, split: str, source: str | None = None) -> LabelledPart:
        """A split of a language, as many sentences of it as are asked for; read once.

        Here and in `about`, ``source`` is one for this split alone; None: that of the setup.
        """
        return _load(self, language, split, source or self.source)

    def about(self, language: str, split: str, source: str | None = None) -> dict[str, object]:
        """What names that split, without reading it where it is shipped."""
        if self.path is not None:
            return {"text": self.load(language, split, source).table_hash()}
        n = getattr(self, f"n_{split}")
        drawn = {} if n is None else {"n": n, "seed": self.seed}
        source = source or self.source
        return labelled.about_labelled(self.task, language, split, source=source) | drawn

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of the task."""
        return labelled.LABELS[self.task]


@lru_cache(maxsize=512)
def _load(setup: ProbeSetup, language: str, split: str, source: str | None) -> LabelledPart:
    """Sentences drawn without replacement until they hold enough examples; all if they never do."""
    part = labelled.load_labelled(setup.task, language, split, source=source, path=setup.path)
    n = getattr(setup, f"n_{split}")
    if n is None:
        return part
    if isinstance(part, Examples) or n < 1:  # which is an error
        return part.take(n, setup.seed)
    order = np.random.default_rng(setup.seed).permutation(len(part))
    sizes = np.cumsum([len(part.sentences[i]) for i in order])
    return part.at(sorted(order[: np.searchsorted(sizes, n) + 1].tolist()))


def probe_input(encoder: loading.Encoder, part: LabelledPart, setup: ProbeSetup) -> ProbeInput:
    """The states of a split and the labels that go with them."""
    if isinstance(part, Examples):
        embedded = words.embed_pairs(
            encoder, part.first, part.second, form=setup.form, max_length=setup.max_length
        )
        return ProbeInput(embedded.states, part.labels, part.ids, [], embedded.n_cut)
    embedded = words.embed_words(
        encoder, part.sentences, subword=setup.subword, max_length=setup.max_length
    )
    label = {name: index for index, name in enumerate(setup.labels)}
    places = list(zip(embedded.sentence.tolist(), embedded.word.tolist(), strict=True))
    labels = np.array([label[part.tags[sentence][word]] for sentence, word in places])
    types = tuple(part.sentences[sentence][word] for sentence, word in places)
    return ProbeInput(embedded.states, labels, types, places, embedded.n_cut + embedded.n_empty)


def probed_languages(
    task: str, setup: str = "mono", *, source: str | None = None, path: str | Path | None = None
) -> tuple[str, ...]:
    """Languages that Table 2 ticks for a task ("mono" or "CL") and that there is data for.

    Without `path` those that are shipped (from `source` alone, if given); with a local copy of the
    full data all that are ticked. For a source of `NOT_IN_TABLE_2` all languages of the table count
    as ticked.
    """
    ticked = languages.ABX if source in NOT_IN_TABLE_2 else languages.for_task(task, setup)
    if path is not None:
        return ticked
    shipped = catalogue("labelled")
    kept = (shipped["task"] == task) & ((source is None) | (shipped["source"] == source))
    return tuple(code for code in ticked if code in set(shipped.loc[kept, "language"]))


#: Bytes of states probed in one go: languages together train faster than alone.
_MEMORY = 2**29
#: The source that tests transfer where it is not the one that probes are trained on: parallel text.
TRANSFER_SOURCES = {"POS": "pud"}
#: What a probe has seen of a source.
_LEARNT = ("train", "validation")


def monolingual(
    names: Name | Sequence[Name],
    setup: ProbeSetup,
    codes: Sequence[str] | None = None,
    *,
    control: bool = False,
    online: bool = False,
    entity_layers: Sequence[int] = (),
) -> pd.DataFrame:
    """Probes trained and tested in one language, for every language and layer (section 5.2).

    ``names``: models, or checkpoints of a series; ``codes``: languages, None for `probed_languages`
    of the task; ``control``, ``online``: also the control task and the online code of
    `probes.evaluate_probes`; ``entity_layers``: of NER, layers (negative ones from the last) with
    the F1 of whole entities (`entity_f1`).

    Returns a row per model, language, layer and seed: ``model``, ``checkpoint``, ``task``,
    ``language``, ``layer``, the columns of `probes.evaluate_probes`, ``f1`` (entities; NaN if it is
    not asked for) and ``n_lost`` (examples that could not be embedded whole). Raises ValueError as
    `labelled.load`, `words.embed_words` and `probes.evaluate`; for no language; for entities of
    another task than NER.
    """
    codes = _languages(codes, setup, "mono")
    if len(entity_layers) and setup.task != "NER":
        raise ValueError(f"entity_layers are for NER: {setup.task} has no entities to score")
    options = {"control": control, "online": online, "entity_layers": list(entity_layers)}
    abouts = [
        {split: setup.about(code, split) for split in labelled.SPLITS} | options for code in codes
    ]
    values = _results(PROBES, names, setup, codes, abouts, **options)
    tables = [pd.DataFrame({**head, "language": code} | dict(rows)) for head, code, rows in values]
    return pd.concat(tables, ignore_index=True)


def cross_lingual(
    names: Name | Sequence[Name],
    setup: ProbeSetup,
    codes: Sequence[str] | None = None,
    *,
    entities: bool = False,
) -> pd.DataFrame:
    """Probes trained in each language and tested in all of them (section 5.3).

    POS is tested on PUD, whose sentences are the same in all languages, NER and NLI on their own
    test parts (NLI: parallel; NER: other text in each language). ``codes`` are sources and targets
    alike; None for `probed_languages` of the task, "CL". ``entities``: of NER, also the F1 of whole
    entities (`xlx.experiment.probing`), at all layers. Errors as `monolingual`.

    Returns a row per model, source, target, layer and seed: ``model``, ``checkpoint``, ``task``,
    ``source``, ``target``, ``layer``, ``seed``, ``n_test``, ``accuracy``, ``majority`` (of the
    commonest class of the source on the target); with ``entities`` also ``n_entities`` (of the
    target) and ``f1``.
    """
    codes = _languages(codes, setup, "CL")
    if entities and setup.task != "NER":
        raise ValueError(f"entities are for NER: {setup.task} has no entities to score")
    scored = {"entities": True} if entities else {}
    tests = [setup.about(code, "test", TRANSFER_SOURCES.get(setup.task)) for code in codes]
    abouts = [
        {split: setup.about(code, split) for split in _LEARNT} | {"tests": tests} | scored
        for code in codes
    ]
    rows = []
    options = {"targets": codes} | scored
    for head, source, value in _results(TRANSFER, names, setup, codes, abouts, **options):
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
        if entities:
            columns["n_entities"] = value["entities"][target]
            columns["f1"] = _transfer_f1(value).ravel()
        rows.append(pd.DataFrame(head | columns))
    return pd.concat(rows, ignore_index=True)


def _languages(codes: Sequence[str] | None, setup: ProbeSetup, table_2: str) -> tuple[str, ...]:
    if not isinstance(setup, ProbeSetup) or setup.task == "TOPIC":
        raise ValueError(
            f"{setup!r} is no ProbeSetup of POS, NER, NLI or PI (TOPIC: see xlx.experiment.topics)"
        )
    if codes is None:
        codes = probed_languages(setup.task, table_2, source=setup.source, path=setup.path)
    return tuple(checks.several(codes, "languages", once=True))


def _results(
    kind: work.Kind,
    names: Name | Sequence[Name],
    setup: ProbeSetup,
    codes: Sequence[str],
    abouts: Sequence[Mapping[str, object]],
    **options: object,
) -> Iterator[tuple[dict[str, object], str, ledger.Value]]:
    """Of each model and language what names the model in tables, the language and the value.

    ``abouts`` are of the languages; a model is loaded once for all of them that are missing.
    """
    names = [names] if isinstance(names, Name) else list(names)
    of_setup = {"task": setup.task, "hidden": setup.hidden, "seeds": list(setup.seeds)}
    if setup.task in OF_PAIRS:
        of_setup["form"] = setup.form
    else:
        of_setup["subword"] = setup.subword
    states = [states_about(name, max_length=setup.max_length) for name in names]
    asks = [{"states": of_name} | of_setup | about for of_name in states for about in abouts]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(codes)):
            positions = list(positions)
            missing_codes = [codes[position % len(codes)] for position in positions]
            yield positions, (names[number], setup, missing_codes, options)

    values = work.results(kind, asks, calls, what=f"{setup.task}, {kind.name}")
    for number, name in enumerate(names):
        identity = identify(name)
        head = {"model": series_name(identity), "checkpoint": identity.step or 0}
        head["task"] = setup.task
        for code, value in zip(codes, values[number * len(codes) :], strict=False):
            yield head, code, value


def _probes(
    name: Name, setup: ProbeSetup, codes: Sequence[str], options: Mapping[str, object]
) -> Iterator[pd.DataFrame]:
    """`monolingual` of some languages, one table each."""
    encoder = loading.load(name)
    layers = options["entity_layers"]
    layers = checks.layers(layers, encoder.n_layers + 1, from_last=True) if layers else ()
    n, depth, lost = len(setup.labels), encoder.n_layers + 1, {}
    of_probes = {"hidden": setup.hidden, "seeds": setup.seeds, "device": encoder.device}
    for embedded in _portions(encoder, setup, codes, labelled.SPLITS):
        stacks = [_stacked([own[split] for own in embedded.values()]) for split in labelled.SPLITS]
        splits = [split for split, _ in stacks]
        types = [types for _, types in stacks] if options["control"] else None
        fitted = probes.fit(*splits[:2], n, **of_probes)
        rows = probes.evaluate_probes(
            *splits, n, types=types, online=options["online"], fitted=fitted, **of_probes
        )
        rows.insert(0, "layer", rows["group"] % depth)
        number = rows.pop("group") // depth
        rows["f1"] = np.nan
        for place, (code, inputs) in enumerate(embedded.items()):
            n_lost = sum(part.n_lost for part in inputs.values())
            lost[code] = n_lost / (n_lost + sum(len(part.labels) for part in inputs.values()))
            own = rows[number == place].assign(n_lost=n_lost).reset_index(drop=True)
            for layer in layers:
                test = inputs["test"]
                predicted = fitted.take([place * depth + layer]).predict(test.states[[layer]])[0]
                scores = _entity_f1(test, predicted, setup.load(code, "test"))
                own.loc[own["layer"] == layer, "f1"] = scores
            yield own
    checks.legible(encoder.name, setup.task, {"words or pairs cut or without a subword": lost})


def _transfers(
    name: Name, setup: ProbeSetup, codes: Sequence[str], options: Mapping[str, object]
) -> Iterator[dict[str, np.ndarray]]:
    """`cross_lingual` from some sources: ``right``, test examples ``(n_targets, n_layers + 1,
    n_seeds)``; ``n_test`` and ``majority``, ``(n_targets,)``.

    Of entities their numbers: ``found`` and ``marked`` (by the probe), as ``right``; ``entities``.
    """
    encoder = loading.load(name)
    test = "test", TRANSFER_SOURCES.get(setup.task)
    targets = [probe_input(encoder, setup.load(code, *test), setup) for code in options["targets"]]
    sought = []
    if options.get("entities"):
        parts = [setup.load(code, *test) for code in options["targets"]]
        sought = [entity_test(a, b.places) for a, b in zip(parts, targets, strict=True)]
    n, depth = len(setup.labels), encoder.n_layers + 1
    of_probes = {"hidden": setup.hidden, "seeds": setup.seeds, "device": encoder.device}
    for embedded in _portions(encoder, setup, codes, _LEARNT):
        sources = list(embedded.values())
        splits = [_stacked([part[split] for part in sources])[0] for split in _LEARNT]
        fitted = probes.fit(*splits, n, **of_probes)
        for number, source in enumerate(sources):
            probe = fitted.take(range(number * depth, (number + 1) * depth))
            right, counts = [], []
            for place, part in enumerate(targets):
                predicted = probe.predict(part.states)
                right.append((predicted == part.labels).sum(axis=-1))
                counts += [of.counts(predicted) for of in sought[place : place + 1]]
            labels = source["train"].labels
            shares = [probes.majority(labels, part.labels, n)[0] for part in targets]
            value = {
                "right": np.array(right, dtype=np.int32),
                "n_test": np.array([len(part.labels) for part in targets]),
                "majority": np.array(shares),
            }
            if sought:
                found, marked = np.array(counts, dtype=np.int32).swapaxes(0, 1)
                value |= {"found": found, "marked": marked}
                value["entities"] = np.array([part.gold.begins.sum() for part in sought])
            yield value


def _transfer_f1(value: Mapping[str, np.ndarray]) -> np.ndarray:
    """F1 of entities, as ``right`` of `_transfers`."""
    return entity_f1(value["found"], value["marked"], value["entities"][:, None, None])


def _apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of an accuracy, the mean over seeds, or of a code's length.

    Infinite where other examples were counted. Single probes differ by more: one may stop an epoch
    earlier on another processor.
    """
    if isinstance(stored, dict):
        counts = ["n_test", "majority"] + ["entities"] * ("entities" in stored)
        if not all(np.array_equal(stored[k], computed.get(k)) for k in counts):
            return np.inf
        shares = [value["right"].mean(axis=-1).T / value["n_test"] for value in (stored, computed)]
        largest = float(np.abs(shares[0] - shares[1]).max())
        if "entities" in stored:
            means = [_transfer_f1(value).mean(axis=-1) for value in (stored, computed)]
            largest = max(largest, float(np.abs(means[0] - means[1]).max()))
        return largest
    counts = ["layer", "seed", "n_train", "n_test", "n_lost", "majority"]
    # a ledger has the columns of all entries, in an order of its own
    if set(stored) != set(computed) or not stored[counts].equals(computed[counts]):
        return np.inf
    scores = [name for name in ("accuracy", "control_accuracy", "f1") if name in stored]
    means = [value.groupby("layer").mean(numeric_only=True) for value in (stored, computed)]
    largest = float(np.nan_to_num((means[0][scores] - means[1][scores]).abs().to_numpy()).max())
    if "bits" in stored:
        largest = max(largest, float((means[1]["bits"] / means[0]["bits"] - 1).abs().max()))
    return largest


PROBES = work.Kind("probes", _probes, version=1, tolerance=0.01, difference=_apart)
TRANSFER = work.Kind("transfer", _transfers, version=1, tolerance=0.01, difference=_apart)


def _portions(
    encoder: loading.Encoder, setup: ProbeSetup, codes: Sequence[str], splits: Sequence[str]
) -> Iterator[dict[str, dict[str, ProbeInput]]]:
    """Language → split → states, of as many languages at once as fit into `_MEMORY`; one at least.

    Every language of a portion takes as much as its largest, to which it is filled up.
    """
    parts = {code: {split: setup.load(code, split) for split in splits} for code in codes}
    wide = encoder.dim * (4 if setup.task in OF_PAIRS and setup.form == "concatenated" else 1)
    portions, largest = [[]], 0
    for code in codes:
        n = sum(getattr(part, "n_words", len(part)) for part in parts[code].values())
        need = 4 * n * wide * (encoder.n_layers + 1)
        if portions[-1] and (len(portions[-1]) + 1) * max(largest, need) > _MEMORY:
            portions.append([])
            largest = 0
        portions[-1].append(code)
        largest = max(largest, need)
    for portion in portions:
        yield {
            code: {split: probe_input(encoder, part, setup) for split, part in parts[code].items()}
            for code in portion
        }


def _stacked(embedded: Sequence[ProbeInput]) -> tuple[probes.Split, np.ndarray]:
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


def _entity_f1(test: ProbeInput, predicted: np.ndarray, part: labelled.Tagged) -> list[float]:
    """F1 of whole entities, one for each seed; ``predicted`` is ``(s, n)``.

    A word that has no state counts as no part of an entity.
    """
    sought = entity_test(part, test.places)
    found, marked = sought.counts(predicted)
    return entity_f1(found, marked, sought.gold.begins.sum()).tolist()
