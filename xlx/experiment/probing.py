"""Probes on frozen states: of words and pairs in a language and across languages, and of topics.

* `monolingual`, `cross_lingual`: parts of speech, entities, inference and paraphrase (ABX paper,
  sections 5.2 and 5.3). Most words are no entity, so of named entities there is also the F1 of
  whole ones (`read_spans`): who says "none" of all words is right on most, and finds nothing.
* `probe_topics`: topics of sentences in 205 languages, learnt in English (SIB-200, Adelani et al.
  2024): what alignment is to predict (MEXA), as a decoder has to be large for the paper's
  questions. Sentences are pooled by the plain mean, which neither of MEXA's poolings is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
from numpy import ndarray
from numpy.typing import ArrayLike
from pandas import DataFrame

from xlx.measures import probes
from xlx.results import checks, ledger, work
from xlx.subjects import loading, words
from xlx.subjects.identity import Name, identify, series_name
from xlx.subjects.states import embed, states_about
from xlx.text import labelled, languages
from xlx.text.examples import Examples
from xlx.text.files import catalogue
from xlx.text.labelled import NER, TOPICS, Tagged

_KINDS = list(dict.fromkeys(tag[2:] for tag in NER if tag != "O"))
#: Of each tag whether it is a B, and the number of its type, -1 of O.
_BEGUN = np.array([tag.startswith("B-") for tag in NER])
_KIND = np.array([-1 if tag == "O" else _KINDS.index(tag[2:]) for tag in NER])


@dataclass(frozen=True)
class Spans:
    """Where entities are in rows of words: three arrays ``(..., n_words)``."""

    begins: ndarray  # whether an entity begins at a word
    kinds: ndarray  # the type of the word's tag, -1 for none
    ends: ndarray  # the word behind the last of what begins here; of other words no matter


def read_spans(tags: ArrayLike, sentences: ArrayLike) -> Spans:
    """The entities of rows of IOB2 tags, which need not be well-formed.

    One begins at every ``B-X``, and at an ``I-X`` that continues no entity of type X (after ``O``,
    after another type, at the beginning of a sentence); it goes on for as long as ``I-X`` of its
    type follow, as in conlleval (Tjong Kim Sang and De Meulder 2003) and seqeval. ``tags``: indices
    into `labelled.NER`, ``(..., n_words)``; ``sentences``: ``(n_words,)``, which sentence a word is
    in, words of one sentence side by side.
    """
    tags, sentences = np.asarray(tags), np.asarray(sentences)
    kinds, continues = _KIND[tags], np.zeros(tags.shape, bool)
    same_kind = (kinds[..., 1:] == kinds[..., :-1]) & (kinds[..., 1:] >= 0)
    continues[..., 1:] = same_kind & (sentences[1:] == sentences[:-1]) & ~_BEGUN[tags[..., 1:]]
    # the next word that does not continue: the least of all such places from there on
    n = tags.shape[-1]
    places = np.where(continues, n, np.arange(n))
    following = np.minimum.accumulate(places[..., ::-1], axis=-1)[..., ::-1]
    ends = np.full(tags.shape, n)
    ends[..., :-1] = following[..., 1:]
    return Spans((kinds >= 0) & ~continues, kinds, ends)


@dataclass(frozen=True)
class EntityTest:
    """Sentences in which entities are to be found: what is there, and where predictions belong."""

    gold: Spans
    sentences: ndarray  # (n_words,): of each word which sentence it is in
    rows: ndarray  # (k,): which of the words were predicted

    @classmethod
    def from_part(cls, part: Tagged, places: Sequence[tuple[int, int]]) -> "EntityTest":
        """All entities of a part; the words of ``places`` (sentence, word) are predicted."""
        lengths = np.array([len(tags) for tags in part.tags])
        sentences = np.repeat(np.arange(len(lengths)), lengths)
        gold = read_spans([NER.index(tag) for tags in part.tags for tag in tags], sentences)
        sentence, word = np.array(places, int).reshape(-1, 2).T
        return cls(gold, sentences, (lengths.cumsum() - lengths)[sentence] + word)

    def counts(self, predicted: ndarray) -> tuple[ndarray, ndarray]:
        """Entities found (same words, same type), and predicted, ``(...)``, by tags ``(..., k)``.

        Tags are of the words of `rows`; other words count as no part of an entity.
        """
        tags = np.full((*predicted.shape[:-1], len(self.sentences)), NER.index("O"))
        tags[..., self.rows] = predicted
        spans, gold = read_spans(tags, self.sentences), self.gold
        same = gold.begins & spans.begins & (gold.kinds == spans.kinds) & (gold.ends == spans.ends)
        return same.sum(-1), spans.begins.sum(-1)


def entity_f1(correct: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> ndarray:
    """F1 of entities in [0, 1] over all types, from their numbers: found, predicted, and there are.

    2 found / (predicted + gold); 0 where none is there and none was predicted, as in seqeval.
    """
    total = np.asarray(predicted) + np.asarray(gold)
    return 2 * np.asarray(correct) / np.maximum(total, 1)


LabelledPart = Tagged | Examples
#: Tasks whose examples are pairs of sentences.
OF_PAIRS = ("NLI", "PI")
#: Sources that the paper does not probe on: Table 2 ticks no languages for them, so all count.
NOT_IN_TABLE_2 = ("sick",)


@dataclass(frozen=True)
class ProbeInput:
    """One split in one language, as a probe sees it: n words or pairs."""

    states: ndarray  # float32, (n_layers + 1, n, dim)
    labels: ndarray  # (n,), indices into ``labelled.LABELS[task]``
    types: tuple[str, ...]  # word, to which a control task gives one label; number of the pair
    places: list[tuple[int, int]]  # sentence and number of the word; of pairs none
    n_lost: int  # words behind the maximum length or without a subword; pairs that were cut


@checks.typed()
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
        checks.one_of(self.subword, words.WORD_SUBWORDS, "subword")
        checks.one_of(self.form, words.FORMS, "form")
        if self.source is not None:
            for split in labelled.SPLITS:
                labelled.resolved(self.task, "en", split, self.source, self.path)
        object.__setattr__(self, "seeds", tuple(self.seeds))

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
    if not embedded.sentence.size:
        raise ValueError(
            f"{part.name}: no word is left whole within {encoder.limit(setup.max_length)} tokens "
            "of a sentence: raise max_length, or leave this language out"
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
    chosen = (shipped["task"] == task) & ((source is None) | (shipped["source"] == source))
    return tuple(code for code in ticked if code in set(shipped.loc[chosen, "language"]))


#: Bytes of states probed in one go: languages together train faster than alone.
_MEMORY = 2**29
#: The source that tests transfer where it is not the one that probes are trained on: parallel text.
TRANSFER_SOURCES = {"POS": "pud"}
#: What a probe has seen of a source.
_LEARNT = ("train", "validation")
#: The language of topics that are learnt.
SOURCE = "en"


@checks.typed()
def monolingual(
    names: Name | Sequence[Name],
    setup: ProbeSetup,
    codes: Sequence[str] | None = None,
    *,
    control: bool = False,
    entities: bool = False,
    like: Name | None = None,
) -> DataFrame:
    """Probes trained and tested in one language, for every language and layer (section 5.2).

    ``names``: models, or checkpoints of a series (``like``: a model as deep, if the last has no
    weights); ``codes``: languages, None for `probed_languages`; ``control``: also the
    control task of `probes.evaluate_probes`; ``entities``: of NER, also the F1 of whole entities,
    where a word that has no state counts as no part of one.

    Returns a row per model, language, layer and seed: ``model``, ``checkpoint``, ``task``,
    ``language``, ``layer``, the columns of `probes.evaluate_probes`, ``f1`` (entities; NaN if it is
    not asked for) and ``n_lost`` (examples that could not be embedded whole). Raises ValueError as
    `labelled.load_labelled`, `words.embed_words` and `probes.evaluate_probes`; for no language; for
    entities of another task than NER.
    """
    codes = _languages(codes, setup, "mono", entities)
    names = _listed(names)
    layers = loading.n_layers(like or names[-1]) + 1 if entities else 0
    options = {"control": control, "online": False, "entity_layers": list(range(layers))}
    abouts = [
        {split: setup.about(code, split) for split in labelled.SPLITS} | options for code in codes
    ]
    values = _of_setup("words", names, setup, codes, abouts, options)
    return _table(values)


def cross_lingual(
    names: Name | Sequence[Name],
    setup: ProbeSetup,
    codes: Sequence[str] | None = None,
    *,
    entities: bool = False,
) -> DataFrame:
    """Probes trained in each language and tested in all of them (section 5.3).

    POS is tested on PUD, whose sentences are the same in all languages, NER and NLI on their own
    test parts (NLI: parallel; NER: other text in each language). ``codes`` are sources and targets
    alike; None for `probed_languages` of the task, "CL". ``entities`` and errors as `monolingual`.

    Returns a row per model, source, target, layer and seed: ``model``, ``checkpoint``, ``task``,
    ``source``, ``target``, ``layer``, ``seed``, ``n_test``, ``accuracy``, ``majority`` (of the
    commonest class of the source on the target); with ``entities`` also ``n_entities`` (of the
    target) and ``f1``.
    """
    codes = _languages(codes, setup, "CL", entities)
    scored = {"entities": True} if entities else {}
    tests = [setup.about(code, "test", TRANSFER_SOURCES.get(setup.task)) for code in codes]
    abouts = [
        {split: setup.about(code, split) for split in _LEARNT} | {"tests": tests} | scored
        for code in codes
    ]
    rows, options = [], {"targets": codes} | scored
    for head, source, value in _of_setup("transfer", _listed(names), setup, codes, abouts, options):
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
        rows.append(DataFrame(head | columns))
    return pd.concat(rows, ignore_index=True)


def probe_topics(
    names: Sequence[Name],
    codes: Sequence[str],
    *,
    n_test: int | None = None,
    seed: int = 1,
    max_length: int | None = None,
    seeds: Sequence[int] = probes.SEEDS,
) -> DataFrame:
    """Topic probes of every layer trained in English, tested on every language.

    A probe reads the states as they are, or *centred*: moved so that the mean of the test sentences
    of a language lies where that of the English training sentences does. The first asks for states
    that do not depend on the language; the second takes the language's own offset out, which needs
    sentences of it but no labels (Libovický, Rosa and Fraser 2020), and asks for what is left.

    ``names`` are models, or checkpoints of a series; ``codes`` codes or labels of languages.
    ``n_test`` test sentences (None: all, 204) are the same in every language, drawn by ``seed``;
    ``max_length``: subwords of a sentence; ``seeds``: of the probes' initial weights.

    A row per model, language, layer, seed and ``centred`` (False, True): ``model``, ``checkpoint``,
    ``language``, ``layer``, ``seed``, ``n`` (test sentences), ``accuracy``, in [0, 1], of all, and
    as ``even`` and ``odd`` of every other sentence, ``majority`` (accuracy of the commonest topic),
    ``validation_loss`` (nats, in English), ``n_cut`` (test sentences cut at the maximum length).
    ValueError as `load_labelled`, `states.embed` and `probes.fit`; for no language.
    """
    tests = [_topic_test(code, n_test, seed) for code in codes]
    if not tests:
        raise ValueError("there is no language to test on")
    options = {"pooling": "mean", "max_length": max_length}
    learnt = [labelled.load_labelled("TOPIC", SOURCE, split).table_hash() for split in _LEARNT]
    of_models = [
        {
            "states": states_about(name, **options),
            "train": learnt,
            "hidden": None,
            "seeds": [*seeds],
        }
        for name in names
    ]
    abouts = [{"test": test.table_hash()} for test in tests]
    values = _results(
        "topics",
        names,
        of_models,
        [test.language for test in tests],
        abouts,
        (n_test, seed, options, seeds),
        "topics",
    )
    return _table(values)


def _listed(names: Name | Sequence[Name]) -> list[Name]:
    return [names] if isinstance(names, Name) else checks.several(names, "models")


def _topic_test(language: str, n: int | None, seed: int) -> Examples:
    texts = labelled.load_labelled("TOPIC", language, "test")
    return texts if n is None else texts.take(n, seed)


def _languages(
    codes: Sequence[str] | None, setup: ProbeSetup, table_2: str, entities: bool
) -> tuple[str, ...]:
    if setup.task == "TOPIC":
        raise ValueError(f"{setup!r} is no ProbeSetup of POS, NER, NLI or PI")
    if entities and setup.task != "NER":
        raise ValueError(f"entities are for NER: {setup.task} has no entities to score")
    if codes is None:
        codes = probed_languages(setup.task, table_2, source=setup.source, path=setup.path)
    return tuple(checks.several(codes, "languages"))


#: What names a model in tables, a language, and the value of both.
Valued = tuple[dict[str, object], str, ledger.Value]


def _table(values: Iterable[Valued]) -> DataFrame:
    """The rows of all values below each other, each behind its model and language."""
    tables = (DataFrame({**head, "language": code, **rows}) for head, code, rows in values)
    return pd.concat(tables, ignore_index=True)


def _of_setup(
    cut: str,
    names: Sequence[Name],
    setup: ProbeSetup,
    codes: Sequence[str],
    abouts: Sequence[Mapping[str, object]],
    options: Mapping[str, object],
) -> Iterator[Valued]:
    """`_results` of what a setup probes; ``abouts`` are of the languages."""
    of_setup = {"task": setup.task, "hidden": setup.hidden, "seeds": list(setup.seeds)}
    read_by = "form" if setup.task in OF_PAIRS else "subword"
    of_setup[read_by] = getattr(setup, read_by)
    of_models = [
        {"states": states_about(name, max_length=setup.max_length)} | of_setup for name in names
    ]
    label = f"{setup.task}, {cut}"
    for head, code, value in _results(
        cut, names, of_models, codes, abouts, (setup, options), label
    ):
        yield head | {"task": setup.task}, code, value


def _results(
    cut: str,
    names: Sequence[Name],
    of_models: Sequence[Mapping[str, object]],
    codes: Sequence[str],
    abouts: Sequence[Mapping[str, object]],
    arguments: tuple,
    label: str,
) -> Iterator[Valued]:
    """Of each model and language the value; a model is loaded once for all that are missing."""

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(codes)):
            positions = list(positions)
            missing_codes = [codes[position % len(codes)] for position in positions]
            yield positions, (cut, names[number], missing_codes, *arguments)

    asks = [of_model | about for of_model in of_models for about in abouts]
    values = work.results(PROBES, asks, calls, what=label)
    for number, name in enumerate(names):
        identity = identify(name)
        head = {"model": series_name(identity), "checkpoint": identity.step or 0}
        for code, value in zip(codes, values[number * len(codes) :], strict=False):
            yield head, code, value


def _computed(cut: str, *arguments: object) -> Iterator[ledger.Value]:
    """The cut point: a value for each language."""
    cuts = {"words": _probes, "transfer": _transfers, "topics": _topics}
    yield from cuts[cut](*arguments)


def _probes(
    name: Name, codes: Sequence[str], setup: ProbeSetup, options: Mapping[str, object]
) -> Iterator[DataFrame]:
    """`monolingual` of some languages, one table each."""
    encoder = loading.load(name)
    n, depth, lost = len(setup.labels), encoder.n_layers + 1, {}
    of_probes = {"hidden": setup.hidden, "seeds": setup.seeds, "device": encoder.device}
    for embedded in _portions(encoder, setup, codes, labelled.SPLITS):
        stacks = [
            _stacked([inputs[split] for inputs in embedded.values()]) for split in labelled.SPLITS
        ]
        splits = [split for split, _ in stacks]
        types = [types for _, types in stacks] if options["control"] else None
        fitted = probes.fit(*splits[:2], n, **of_probes)
        rows = probes.evaluate_probes(*splits, n, types=types, fitted=fitted, **of_probes)
        rows.insert(0, "layer", rows["group"] % depth)
        number = rows.pop("group") // depth
        for place, (code, inputs) in enumerate(embedded.items()):
            n_lost = sum(part.n_lost for part in inputs.values())
            lost[code] = n_lost / (n_lost + sum(len(part.labels) for part in inputs.values()))
            f1 = np.nan
            if options["entity_layers"]:
                groups = range(place * depth, (place + 1) * depth)
                sought = EntityTest.from_part(setup.load(code, "test"), inputs["test"].places)
                counts = sought.counts(fitted.predict(inputs["test"].states, groups))
                f1 = entity_f1(*counts, sought.gold.begins.sum()).ravel()
            yield rows[number == place].assign(f1=f1, n_lost=n_lost).reset_index(drop=True)
    checks.legible(encoder.name, setup.task, {"words or pairs cut or without a subword": lost})


def _transfers(
    name: Name, codes: Sequence[str], setup: ProbeSetup, options: Mapping[str, object]
) -> Iterator[dict[str, ndarray]]:
    """`cross_lingual` from some sources: ``right``, test examples ``(n_targets, n_layers + 1,
    n_seeds)``; ``n_test`` and ``majority``, ``(n_targets,)``.

    Of entities their numbers: ``found`` and ``marked`` (by the probe), as ``right``; ``entities``.
    """
    encoder = loading.load(name)
    test = "test", TRANSFER_SOURCES.get(setup.task)
    parts = [setup.load(code, *test) for code in options["targets"]]
    targets = [probe_input(encoder, part, setup) for part in parts]
    sought = [
        EntityTest.from_part(part, target.places)
        for part, target in zip(parts, targets, strict=True)
        if options.get("entities")
    ]
    n, depth = len(setup.labels), encoder.n_layers + 1
    of_probes = {"hidden": setup.hidden, "seeds": setup.seeds, "device": encoder.device}
    for embedded in _portions(encoder, setup, codes, _LEARNT):
        sources = list(embedded.values())
        splits = [_stacked([part[split] for part in sources])[0] for split in _LEARNT]
        fitted = probes.fit(*splits, n, **of_probes)
        for number, source in enumerate(sources):
            groups, right, counts = range(number * depth, (number + 1) * depth), [], []
            for place, part in enumerate(targets):
                predicted = fitted.predict(part.states, groups)
                right.append((predicted == part.labels).sum(-1))
                counts += [test.counts(predicted) for test in sought[place : place + 1]]
            labels = source["train"].labels
            shares = [probes.majority(labels, part.labels, n)[0] for part in targets]
            entities = {}
            if sought:
                correct, marked = np.array(counts, np.int32).swapaxes(0, 1)
                there = np.array([part.gold.begins.sum() for part in sought])
                entities = {"found": correct, "marked": marked, "entities": there}
            yield entities | {
                "right": np.array(right, np.int32),
                "n_test": np.array([len(part.labels) for part in targets]),
                "majority": np.array(shares),
            }


def _transfer_f1(value: Mapping[str, ndarray]) -> ndarray:
    """F1 of entities, as ``right`` of `_transfers`."""
    return entity_f1(value["found"], value["marked"], value["entities"][:, None, None])


def _topics(
    name: Name,
    codes: Sequence[str],
    n_test: int | None,
    seed: int,
    options: Mapping[str, object],
    seeds: Sequence[int],
) -> Iterator[DataFrame]:
    """`probe_topics` to some languages, one table each: a row per layer, seed and ``centred``."""
    encoder = loading.load(name)
    learnt = [labelled.load_labelled("TOPIC", SOURCE, split) for split in _LEARNT]
    splits = [probes.Split(embed(encoder, x.first, **options).states, x.labels) for x in learnt]
    fitted = probes.fit(*splits, len(TOPICS), seeds=seeds, device=encoder.device)
    commonest = np.bincount(learnt[0].labels).argmax()
    for code in codes:
        test = _topic_test(code, n_test, seed)
        embedded, labels = embed(encoder, test.first, **options), test.labels
        raw = embedded.states
        centred = raw - raw.mean(1, keepdims=True) + fitted.mean[:, None].cpu().numpy()
        tables = []
        for moved, states in enumerate((raw, centred)):
            right = fitted.predict(states) == labels  # (n_layers + 1, n_seeds, n)
            layer, row = np.indices(right.shape[:2]).reshape(2, -1)
            columns = {
                "layer": layer,
                "seed": np.array(fitted.seeds)[row],
                "centred": bool(moved),
                "n": len(test),
                "accuracy": right.mean(2).ravel(),
                "even": right[..., ::2].mean(2).ravel(),
                "odd": right[..., 1::2].mean(2).ravel(),
                "majority": float((labels == commonest).mean()),
                "validation_loss": fitted.validation_loss.ravel(),
                "n_cut": embedded.n_cut,
            }
            tables.append(DataFrame(columns))
        yield pd.concat(tables, ignore_index=True)


@work.difference_of
def _apart(value: ledger.Value) -> ledger.Value:
    """The largest difference of an accuracy or F1, the mean over seeds.

    Infinite where other examples were counted. Single probes differ by more: one may stop an epoch
    earlier on another processor.
    """
    # a ledger has the columns of all entries, in an order of its own
    counts = ["layer", "seed", "centred", "n", "n_train", "n_test", "n_lost", "n_cut", "majority"]
    same = {x: np.asarray(value[x]).astype(str) for x in (*counts, "entities") if x in value}
    if not isinstance(value, DataFrame):
        f1 = {"f1": _transfer_f1(value).mean(-1)} if "entities" in value else {}
        return same | f1 | {"right": value["right"].mean(-1).T / value["n_test"]}
    by = [name for name in ("layer", "centred") if name in value]
    scores = [name for name in ("accuracy", "control_accuracy", "f1") if name in value]
    return same | dict(value.groupby(by)[scores].mean())


PROBES = work.Kind("probes", _computed, version=1, tolerance=0.02, difference=_apart)


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
        largest = max(largest, need)
        if portions[-1] and (len(portions[-1]) + 1) * largest > _MEMORY:
            portions.append([])
            largest = need
        portions[-1].append(code)
    for portion in portions:
        yield {
            code: {split: probe_input(encoder, part, setup) for split, part in parts[code].items()}
            for code in portion
        }


def _stacked(embedded: Sequence[ProbeInput]) -> tuple[probes.Split, ndarray]:
    """All layers of all languages as groups, language by language, and the types of the examples.

    Languages with fewer examples are filled up: label -1.
    """
    split = probes.stacked([x.states for x in embedded], [x.labels for x in embedded])
    types = np.full((len(embedded), len(embedded[0].states), split.labels.shape[1]), "", object)
    for row, part in enumerate(embedded):
        types[row, :, : len(part.labels)] = part.types
    return split, types.reshape(split.labels.shape)
