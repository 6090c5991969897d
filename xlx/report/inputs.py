"""What a report is of: measures, models with those they are compared with, and text."""

import warnings
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from xlx.experiment import constraints
from xlx.experiment.scoring import FunctionSubject, Subject
from xlx.results import checks, paths, store
from xlx.subjects import folders, loading
from xlx.subjects.identity import (
    Name,
    find,
    identify,
    local_folder,
    local_series,
    model_files,
    public_models,
    series_name,
    twin_parts,
)
from xlx.subjects.pooling import OWN, POOLINGS, own_vector
from xlx.subjects.states import check_finite
from xlx.text import parallel
from xlx.text.languages import codes_by_name
from xlx.text.parallel import ParallelCorpus

#: Sentences of a quick report.
QUICK = 50
#: Its languages where none are named: of several scripts and families.
QUICK_LANGUAGES = ("en", "de", "es", "ru", "ar", "hi", "tr", "zh")
#: What a model is compared with where nothing else is asked for, by its kind.
MEMBERS_BESIDE = {"decoder": ("mini-llama",)}
_OTHERWISE = ("mini-xlmr", "mini-infoxlm")
#: What vectors of a file are called in the place of a model.
SAVED = "saved vectors"


@dataclass(frozen=True)
class ReportedModel:
    """A model to report on, or to compare with; ``label``: in tables."""

    name: Name | Subject  # a subject: of saved vectors
    label: str
    kind: str  # "encoder", "decoder", "encoder-decoder" or `SAVED`
    pooling: str
    fingerprint: str
    vector: str = ""  # whose sentence vector it is, in words
    special_tokens: bool = False  # whether those that the tokenizer adds are pooled
    # of others' models, which is seen to say what it is; held, so that it is loaded once
    encoder: loading.Encoder | None = field(default=None, repr=False, compare=False)
    step: int | None = None  # of a run whose checkpoints are measured


def reported_model(
    name: Name,
    pooling: str | None = None,
    *,
    special_tokens: bool = False,
    quantization: str | None = None,
) -> ReportedModel:
    """What is known of a model without its weights: its vector is that of its folder, or kind.

    A folder of sentence-transformers declares its own, or names a pooling; a decoder weighs later
    tokens more, as MEXA does; else tokens count alike. Options say otherwise; a quantised model is
    loaded. Raises as `loading.load`.
    """
    public = public_models().get(name) if isinstance(name, str) else None
    if public and not public.folder.is_dir():  # what is stored of it is there without its weights
        usual = _usual_pooling(public.kind)
        known = public.kind, usual, public.fingerprint, _of_tokens(usual)
        model = ReportedModel(name, name, *known)
    else:
        model = _of_folder(name)
    if quantization:
        encoder = loading.load(name, quantization=quantization)
        model = replace(model, name=encoder, fingerprint=encoder.fingerprint)
    if pooling or special_tokens:
        chosen = pooling or model.pooling
        vector = f"{_of_tokens(chosen, special_tokens)}, as asked"
        model = replace(model, pooling=chosen, special_tokens=special_tokens, vector=vector)
    return model


def _usual_pooling(kind: str) -> str:
    return "weighted_mean" if kind == "decoder" else "mean"


def _of_tokens(pooling: str, special: bool = False) -> str:
    also = "special ones too" if special or pooling == "cls" else "no special ones"
    return f"{pooling.replace('_', ' ')} of tokens, {also}"


def _of_folder(name: Name) -> ReportedModel:
    label, folder, _ = find(name)
    model_files(label, folder)
    ours = folder.is_relative_to(paths.MODELS) or twin_parts(label) or label in public_models()
    config = folders.load_config(label, folder)
    # What others' models do with text is seen, not looked up.
    encoder = None if ours else loading.hold(name)
    kind = folders.kind_of(config) if encoder is None else encoder.kind
    declared, identity = own_vector(label, folder), identify(name)
    pooling = _usual_pooling(kind)
    if declared and declared.pooling in POOLINGS:
        pooling = declared.pooling
    vector = _of_tokens(pooling)
    if declared and declared.whole:
        if declared.problem:
            vector += f"; not its own, which has {declared.problem}, not supported here"
        else:
            pooling, vector = OWN, declared.told()
    elif declared and declared.pooling != pooling:
        vector += f"; its folder names the pooling {declared.pooling}, not supported here"
    vector = "; ".join([vector, *(encoder.notes if encoder else ())])
    label = series_name(identity)
    return ReportedModel(name, label, kind, pooling, identity.fingerprint, vector, encoder=encoder)


def series_models(
    name: str, asked: bool = False, **options: object
) -> tuple[list[ReportedModel], list[str]]:
    """The checkpoints that a run has left in a folder, by step, and notes of broken ones.

    They are in subfolders as trainers write them, ``step-100`` or ``checkpoint-100``. None where
    there are none, or the folder is a model itself, or shipped, unless they are ``asked`` for.
    Options as of `reported_model`; ValueError where none can be read, or none of those asked for is
    there.
    """
    folder = None if name in public_models() else local_folder(name)
    series = local_series(name, folder) if folder else []
    if asked and not series:
        raise ValueError(f"{name} has no subfolder called step-<number> or checkpoint-<number>")
    whole = not folder or folder.is_relative_to(paths.MODELS) or (folder / "config.json").exists()
    models, notes = [], []
    for checkpoint in series if asked or not whole else ():
        try:
            model = reported_model(str(checkpoint.path), **options)
            models.append(replace(model, encoder=None, step=checkpoint.step))
        except (ValueError, OSError) as error:
            notes.append(f"left out: {checkpoint.path.name}: {error}")
    if notes and not models:
        raise ValueError(f"{name}: none of its {len(series)} checkpoints can be read; {notes[0]}")
    return models, notes


def saved_vectors(
    file: Path, text: str | None = None, languages: Sequence[str] | None = None
) -> tuple[ReportedModel, ParallelCorpus, list[str]]:
    """Vectors of a file (`saved_states`) in place of a model, the text they are of, and notes.

    Without a ``text`` the sentences are their positions, all of one length. Errors as of
    `saved_states` and `parallel.load`; ValueError for a text of another size.
    """
    states, notes = saved_states(file), ["without a model there is no bag, and no twin"]
    n = next(iter(states.values())).shape[-2]
    if text:
        corpus, _ = reported_text(text, [*states], seed=None)
        if len(corpus) != n:
            sizes = f"{file} has {n} sentences and {corpus.name} {len(corpus)}"
            raise ValueError(f"{sizes}: give the text that was embedded")
        states = dict(zip(corpus.languages, states.values(), strict=True))
    else:  # of another language another text: asks tell by it
        ids = tuple(f"{i:09}" for i in range(n))
        sentences = {code: tuple(f"{k:03} {x}" for x in ids) for k, code in enumerate(states)}
        corpus = ParallelCorpus(file.stem, sentences, ids, ("",) * n, "no text", str(file))
        notes += ["without text (--text) lengths are not known, and all count as alike"]
    version = store.digest_of(file)
    subject = FunctionSubject(SAVED, function=lambda _, code: states[code], version=version)
    model = ReportedModel(subject, file.stem, SAVED, "", version, f"read from {file}")
    return model, corpus.select(languages or corpus.languages), notes


def saved_states(file: Path) -> dict[str, np.ndarray]:
    """Language → vectors ``(n_layers + 1, n_sentences, dim)``, as `numpy.savez` writes them.

    Those of one layer may be ``(n_sentences, dim)``. Nothing is unpickled. ValueError for what is
    no such file, one language alone, and NaN.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            states = dict(archive)
        checks.arrays(states)
    except (ValueError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
        way = "write it with numpy.savez(file, en=..., de=...)"
        raise ValueError(f"{file} is no .npz of arrays by language ({error}): {way}") from None
    if len(states) < 2:
        raise ValueError(f"{file} has vectors of {len(states)} language: a score compares two")
    for code, array in states.items():
        check_finite(array.reshape(-1, *array.shape[-2:]), f"{file}, {code}")
    return states


def reported_models(
    names: Sequence[str], references: Sequence[str] | None = None, **options: object
) -> tuple[list[ReportedModel], list[ReportedModel]]:
    """The models to report on and those to compare with, each under a name of its own.

    ``references``: names, or "none"; None: members of the family, by the kind of each model, where
    these are. Errors, and ``options`` for the models to report on, as of `reported_model`;
    ValueError for one model under two names.
    """
    models = [reported_model(name, **options) for name in dict.fromkeys(names)]
    if len(models) > 1:  # together they may not fit into memory
        models = [replace(model, encoder=None) for model in models]
    first = {}
    for model in models:
        if (same := first.setdefault(model.fingerprint, model)) is not model:
            raise ValueError(f"{same.name} and {model.name} are the same model: name it once")
    if references is None:
        usual = [name for x in models for name in MEMBERS_BESIDE.get(x.kind, _OTHERWISE)]
        references = [name for name in usual if (paths.MODELS / name).is_dir()]
    others = [
        replace(reported_model(name), encoder=None)
        for name in dict.fromkeys(references)
        if name != "none"
    ]
    several = [*models, *(x for x in others if x.fingerprint not in first)]
    times = Counter(x.label for x in several)
    apart = [
        replace(x, label=f"{x.label} ({x.fingerprint[:6]})") if times[x.label] > 1 else x
        for x in several
    ]
    return apart[: len(models)], apart[len(models) :]


def reported_text(
    name: str, languages: Sequence[str] | None = None, n: int | None = None, seed: int | None = 1
) -> tuple[ParallelCorpus, list[str]]:
    """Text without repeated sentences, ``n`` of them (None: all), and what is to be said of it.

    ``seed`` None: the first ``n`` as they are, also such as come again. Errors as of
    `parallel.load`; ValueError for text in one language alone.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", parallel.CorpusWarning)
        corpus = parallel.load(name, languages, drop_duplicates=seed is not None)
    if len(corpus.languages) < 2:
        raise ValueError(
            f"{corpus.name} is read in {corpus.languages[0]} alone, and a report compares "
            "languages: name two or more (--languages), or give text in two or more"
        )
    n = n or len(corpus)
    corpus = corpus.drop(range(n, len(corpus))) if seed is None else corpus.take(n, seed)
    return corpus, [str(warning.message) for warning in caught]


def comparable_text(corpus: ParallelCorpus) -> tuple[ParallelCorpus, list[str]]:
    """The languages in which some sentence may be B beside another, and a note of those left out.

    ValueError where fewer than two are left: a report that nothing could be scored in is refused
    before a model reads.
    """
    allowed = constraints.masks_of(corpus, ["like length"])["like length"]
    alone = [
        x for x in corpus.languages if not (allowed[x] & ~np.eye(len(corpus), dtype=bool)).any()
    ]
    if len(corpus.languages) < len(alone) + 2:
        raise ValueError(
            f"{corpus.name} has {len(corpus)} sentences, and MD is asked among those of like "
            f"length, of which there are no two in {', '.join(alone)}: give more sentences"
        )
    note = f"left out, as no two sentences are of like length: {', '.join(alone)}"
    return corpus.select([x for x in corpus.languages if x not in alone]), [note] * bool(alone)


def code_of(language: str) -> str:
    """The code of a language by its name in English; what is no name stays as it is."""
    return codes_by_name().get(language.lower(), language)


def quick_languages(corpus: ParallelCorpus, pivot: str | None = None) -> list[str]:
    """The pivot and `QUICK_LANGUAGES`, those that a text has; if these are few, its first ones."""
    chosen = [code for code in corpus.languages if code in QUICK_LANGUAGES]
    if len(chosen) < len(QUICK_LANGUAGES) / 2:
        chosen = corpus.languages[: len(QUICK_LANGUAGES)]
    return list(dict.fromkeys([pivot_of(corpus, pivot), *chosen]))


def pivot_of(corpus: ParallelCorpus, pivot: str | None = None) -> str:
    """The text's code of the pivot; without one English, or else its first language."""
    pivot = pivot or ("en" if "en" in corpus.languages else corpus.languages[0])
    return corpus.select([code_of(pivot)]).languages[0]
