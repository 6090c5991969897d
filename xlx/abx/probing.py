"""The probes of the ABX paper (section 5): what can be read off a model's frozen states.

`monolingual` trains probes on one language and tests them on it; `cross_lingual` tests them on
every other language as well. Both keep a result for every model and language (`xlx.core.work`), so
a run that was stopped goes on where it was. `xlx.abx.series.history` gives the checkpoints to call
them with, `xlx.abx.probe_setup` says what a probe is trained on.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
import pandas as pd
from seqeval.metrics import f1_score

from xlx.abx.entities import entity_f1, entity_test
from xlx.abx.probe_setup import (
    OF_PAIRS,
    ProbeInput,
    ProbeSetup,
    probe_input,
    probed_languages,
)
from xlx.core import checks, work
from xlx.models import embeddings, loading, probes
from xlx.models.loading import Name, series_name
from xlx.text import labelled

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
    the F1 of whole entities, by seqeval, which takes longer than the probe.

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
    entities (`xlx.abx.entities`), at all layers. Errors as `monolingual`.

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
            f"{setup!r} is no ProbeSetup of POS, NER, NLI or PI (TOPIC: see xlx.mexa.topics)"
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
) -> Iterator[tuple[dict[str, object], str, work.Value]]:
    """Of each model and language what names the model in tables, the language and the value.

    ``abouts`` are of the languages; a model is loaded once for all of them that are missing.
    """
    names = [names] if isinstance(names, Name) else list(names)
    of_setup = {"task": setup.task, "hidden": setup.hidden, "seeds": list(setup.seeds)}
    if setup.task in OF_PAIRS:
        of_setup["form"] = setup.form
    else:
        of_setup["subword"] = setup.subword
    states = [embeddings.states_about(name, max_length=setup.max_length) for name in names]
    asks = [{"states": of_name} | of_setup | about for of_name in states for about in abouts]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(codes)):
            positions = list(positions)
            missing_codes = [codes[position % len(codes)] for position in positions]
            yield positions, (names[number], setup, missing_codes, options)

    values = work.results(kind, asks, calls, what=f"{setup.task}, {kind.name}")
    for number, name in enumerate(names):
        identity = loading.identify(name)
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


def _apart(stored: work.Value, computed: work.Value) -> float:
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
    gold = [list(tags) for tags in part.tags]
    scores = []
    for row in predicted:
        tags = [["O"] * len(sentence) for sentence in part.sentences]
        for (sentence, word), label in zip(test.places, row.tolist(), strict=True):
            tags[sentence][word] = labelled.NER[label]
        scores.append(f1_score(gold, tags, zero_division=0))
    return scores
