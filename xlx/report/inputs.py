"""What a report is of: measures, models with those they are compared with, and text."""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from babel import Locale

from xlx.experiment import constraints
from xlx.results import paths
from xlx.subjects import folders, loading
from xlx.subjects.identity import (
    Name,
    find,
    identify,
    model_files,
    public_models,
    series_name,
    twin_parts,
)
from xlx.subjects.pooling import OWN, POOLINGS, own_vector
from xlx.text import parallel
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus

#: Sentences of a quick report.
QUICK = 50
#: Its languages where none are named: of several scripts and families.
QUICK_LANGUAGES = ("en", "de", "es", "ru", "ar", "hi", "tr", "zh")
#: What a model is compared with where nothing else is asked for, by its kind.
MEMBERS_BESIDE = {"decoder": ("mini-llama",)}
_OTHERWISE = ("mini-xlmr", "mini-infoxlm")
#: Folders that say which checkpoint they are, but not of what: they go by their parent, too.
_CHECKPOINT = re.compile(r"(step|checkpoint)-\d+")


@dataclass(frozen=True)
class ReportedModel:
    """A model to report on, or to compare with; ``label``: in tables."""

    name: Name
    label: str
    kind: str  # "encoder", "decoder" or "encoder-decoder"
    pooling: str
    fingerprint: str
    vector: str = ""  # whose sentence vector it is, in words
    special_tokens: bool = False  # whether those that the tokenizer adds are pooled
    # of others' models, which is seen to say what it is; held, so that it is loaded once
    encoder: loading.Encoder | None = field(default=None, repr=False, compare=False)


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
    if declared and declared.whole and not declared.problem:
        pooling, vector = OWN, declared.told()
    elif declared and declared.whole:
        vector += f"; not its own, which has {declared.problem}, not supported here"
    elif declared and declared.pooling != pooling:
        vector += f"; its folder names the pooling {declared.pooling}, not supported here"
    vector = "; ".join([vector, *(encoder.notes if encoder else ())])
    label = series_name(identity)
    if _CHECKPOINT.fullmatch(label):
        label = f"{folder.resolve().parent.name}/{label}"
    return ReportedModel(name, label, kind, pooling, identity.fingerprint, vector, encoder=encoder)


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


def comparable_text(
    corpus: ParallelCorpus, mask: str = "like length"
) -> tuple[ParallelCorpus, list[str]]:
    """The languages in which some sentence may be B beside another, and a note of those left out.

    ValueError where fewer than two are left: a report that nothing could be scored in is refused
    before a model reads.
    """
    allowed = constraints.masks_of(corpus, [mask])[mask]
    alone = [
        x for x in corpus.languages if not (allowed[x] & ~np.eye(len(corpus), dtype=bool)).any()
    ]
    if len(corpus.languages) < len(alone) + 2:
        raise ValueError(
            f"{corpus.name} has {len(corpus)} sentences, and MD is asked among those of {mask}, of "
            f"which there are no two in {', '.join(alone)}: give more sentences"
        )
    note = f"left out, as no two sentences are of {mask}: {', '.join(alone)}"
    return corpus.select([x for x in corpus.languages if x not in alone]), [note] * bool(alone)


@cache
def _codes() -> dict[str, str]:
    """By their names in small letters, as CLDR and this repository have them."""
    known = {x.code: x.name for x in LANGUAGES.values()}
    return {name.lower(): code for code, name in {**Locale("en").languages, **known}.items()}


def code_of(language: str) -> str:
    """The code of a language by its name in English; what is no name stays as it is."""
    return _codes().get(language.lower(), language)


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
