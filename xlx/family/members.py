"""What the folders of the family's members tell: what a member is, what it cost, how it learnt.

`xlx.family` says what the members shall be; here is what became of them, read from ``recipe.json``,
``run.json``, ``losses.csv`` and ``held_out.csv`` beside their checkpoints. A model that has none of
these (one from the hub) has a row with its name alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from tokenizers import Tokenizer

from xlx.core import work
from xlx.family import pretraining_text, recipes, vocabulary
from xlx.family.pretraining_text import Lines
from xlx.family.recipes import MemberRecipe
from xlx.models import identity, loading
from xlx.text.corpora import ParallelCorpus

#: Fields of a recipe that decide nothing of what a member learns.
_ASIDE = ("name", "history")
#: Objectives that read text of one language.
_OF_TEXT = ("mlm", "clm")


def folder(name: str) -> Path | None:
    """Where a shipped series, or one given by its path, lies; None for any other model."""
    try:
        path = identity.local_folder(name)
    except loading.ModelNotFoundError:
        return None
    return path if path is not None and identity.local_series(name, path) else None


def title(name: str) -> str:
    """The name of a model without the path to it, as `xlx.abx.series` writes it."""
    return Path(name).name if Path(name).is_dir() else name


def recipe(name: str) -> MemberRecipe | None:
    """The recipe of a member; ValueError where the file is of another version."""
    found = folder(name)
    if found is None or not (found / "recipe.json").exists():
        return None
    try:
        return recipes.read_recipe((found / "recipe.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{found}/recipe.json is {error}") from error


def overview(names: Sequence[str]) -> pd.DataFrame:
    """One row a member: what it is (from its recipe) and what it cost (from its run).

    Columns: ``model``, ``architecture``, ``objectives``, ``layers``, ``width``, ``English`` (its
    share of the text; NaN: by its size, as every language), ``parameters``, ``subwords_seen``,
    ``minutes``. The last three are missing until a run has ended.
    """
    rows = []
    for name in names:
        row = {"model": title(name)}
        if made := recipe(name):
            row |= {
                "architecture": made.architecture,
                "objectives": " + ".join(made.objectives),
                "layers": made.layers,
                "width": made.hidden_size,
                "English": made.english_share,
            }
            run = folder(name) / "run.json"
            cost = json.loads(run.read_text(encoding="utf-8")) if run.exists() else {}
            row |= {key: cost.get(key) for key in ("parameters", "subwords_seen", "minutes")}
        rows.append(row)
    columns = [
        "model", "architecture", "objectives", "layers", "width", "English", "parameters",
        "subwords_seen", "minutes",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def recipe_differences(name: str, other: str) -> dict[str, tuple[object, object]]:
    """The settings in which two members differ: setting → (that of `other`, that of `name`).

    Raises ValueError for a model without a recipe.
    """
    recipes = []
    for model in (other, name):
        if (made := recipe(model)) is None:
            raise ValueError(f"{model} has no recipe.json, so what it differs in is not known")
        recipes.append(asdict(made) | {"objectives": " + ".join(made.objectives)})
    return {
        key: (recipes[0][key], recipes[1][key])
        for key in recipes[0]
        if recipes[0][key] != recipes[1][key] and key not in _ASIDE
    }


def losses(names: Sequence[str]) -> pd.DataFrame:
    """The loss tables of several members: ``losses.csv`` with ``model`` in front."""
    return _tables(names, "losses.csv", ["step", "tokens", "objective", "loss"])


def held_out(names: Sequence[str]) -> pd.DataFrame:
    """Their losses by language at the last checkpoint: ``held_out.csv`` with ``model`` in front."""
    read = _tables(names, "held_out.csv", ["step", "language", "subwords", "loss"])
    return read[read["step"] == read.groupby("model")["step"].transform("max")]


def beside(references: Mapping[str, str]) -> pd.DataFrame:
    """Held-out losses of members less those of their references, where they can be compared.

    Those of one vocabulary that guess the same (masked or next) subwords can. One row a member:
    ``model``, ``reference``, ``unlike`` (the settings in which they differ), ``languages`` (that
    were measured), ``lower`` (in how many its loss is lower), ``difference`` (mean, nats).
    """
    rows = []
    for name, other in references.items():
        recipes = [recipe(name), recipe(other)]
        if None in recipes or recipes[0].decoder != recipes[1].decoder:
            continue
        cuts = {loading.tokenizer(one).backend_tokenizer.to_str() for one in (name, other)}
        own, its = (held_out([one]).set_index("language")["loss"] for one in (name, other))
        apart = (own - its).dropna()
        if len(cuts) == 1 and len(apart):
            unlike = ", ".join(recipe_differences(name, other))
            row = (title(name), title(other), unlike, len(apart), (apart < 0).sum(), apart.mean())
            rows.append(row)
    columns = ["model", "reference", "unlike", "languages", "lower", "difference"]
    return pd.DataFrame(rows, columns=columns)


def rate(name: str, step: int) -> float:
    """Share of the full learning rate at a step of a member; NaN without a recipe.

    Where it differs between two checkpoints, they differ in more than the steps between them.
    """
    made = recipe(name)
    return float("nan") if made is None else made.schedule(max(step, 1))


def _tables(names: Sequence[str], file: str, columns: list[str]) -> pd.DataFrame:
    parts = [pd.DataFrame(columns=["model", *columns])]
    for name in names:
        found = folder(name)
        if found is not None and (found / file).exists():
            parts.append(pd.read_csv(found / file)[columns].assign(model=title(name)))
    return pd.concat(parts[1:] or parts, ignore_index=True)[["model", *columns]]


def distinct_vocabularies(names: Sequence[str]) -> dict[str, tuple[Tokenizer, list[str]]]:
    """The vocabularies of several models: kind ("BPE", "WordPiece") → (tokenizer, its models).

    Of two that differ and are of one kind, the second has the name of its first model added.
    """
    alike: dict[str, tuple[Tokenizer, list[str]]] = {}
    for name in names:
        tokenizer = loading.tokenizer(name).backend_tokenizer
        alike.setdefault(tokenizer.to_str(), (tokenizer, []))[1].append(title(name))
    found = {}
    for tokenizer, which in alike.values():
        kind = type(tokenizer.model).__name__
        found[f"{kind} of {which[0]}" if kind in found else kind] = (tokenizer, which)
    return found


def fertility(name: str, corpus: ParallelCorpus) -> pd.DataFrame:
    """`vocabulary.subword_statistics` of a model's vocabulary on a corpus."""
    texts = [[code, corpus.text_hash(code)] for code in corpus.languages]
    about = {"model": loading.fingerprint(name), "texts": texts}
    return work.result(FERTILITY, about, name, corpus)


def _fertility(name: str, corpus: ParallelCorpus) -> pd.DataFrame:
    return vocabulary.subword_statistics(
        loading.tokenizer(name).backend_tokenizer, corpus.sentences
    )


FERTILITY = work.Kind("fertility", _fertility, version=1)


def subword_counts(name: str, *, every: int = 1) -> dict[str, int]:
    """Language → subwords of the pretraining text, line ends included, as a model cuts it.

    From every ``every``-th line of each source, times ``every``: reading all takes a minute.
    """
    files = pretraining_text.file_hashes()
    about = {"model": loading.fingerprint(name), "files": files, "every": every}
    found = work.result(SUBWORD_COUNTS, about, name, every)
    return dict(zip(found["language"], found["subwords"].tolist(), strict=True))


def _subwords(name: str, every: int) -> pd.DataFrame:
    tokenizer = loading.tokenizer(name).backend_tokenizer
    text, _ = pretraining_text.read_text(progress=False)
    counts: dict[str, int] = {}
    for source in text.values():
        for language, lines in source.items():
            encoded = Lines.encode(tokenizer, list(lines.values())[::every])
            counts[language] = counts.get(language, 0) + every * len(encoded.ids)
    return pd.DataFrame(sorted(counts.items()), columns=["language", "subwords"])


SUBWORD_COUNTS = work.Kind("pretraining-subwords", _subwords, version=1, tolerance=0)


def readers(names: Sequence[str]) -> list[str]:
    """Members whose `passes` over the text are known: they have a run, learn from text alone, and
    cut it as the first of them does."""
    found: dict[str, str] = {}
    for name in names:
        made = recipe(name)
        if made is None or set(made.objectives) - set(_OF_TEXT):
            continue
        if (folder(name) / "run.json").exists():
            found[name] = loading.tokenizer(name).backend_tokenizer.to_str()
    return [name for name, cut in found.items() if cut == next(iter(found.values()))]


def passes(names: Sequence[str], subwords: Mapping[str, int]) -> pd.DataFrame:
    """How often members have read the text of each language, on average.

    Of the subwords that a member saw, a language has its share; over the ``subwords`` of its text
    that is the number of passes.

    Returns one row a member and language: ``model``, ``language``, ``subwords`` (of its text),
    ``share`` (of what the member saw), ``passes``. Raises ValueError for a member that learns from
    translations, which are drawn otherwise, and for one without recipe and run.
    """
    parts = [pd.DataFrame(columns=["model", "language", "subwords", "share", "passes"])]
    there = pd.Series(subwords)
    for name in names:
        made, found = recipe(name), folder(name)
        if made is None or not (found / "run.json").exists():
            raise ValueError(f"{name} has no recipe.json and run.json, so what it saw is not known")
        if set(made.objectives) - set(_OF_TEXT):
            raise ValueError(f"{name} learns from translations too, whose languages are even")
        seen = json.loads((found / "run.json").read_text(encoding="utf-8"))["subwords_seen"]
        share = pretraining_text.shares(there, made.language_exponent, made.english_share)
        of_member = {"subwords": there, "share": share, "passes": seen * share / there}
        part = pd.DataFrame(of_member).rename_axis("language").reset_index()
        part.insert(0, "model", title(name))
        parts.append(part)
    return pd.concat(parts[1:] or parts, ignore_index=True)
