"""What the folders of the family's members tell: what a member is, what it cost, how it learnt.

Read from ``recipe.json``, ``run.json``, ``losses.csv`` and ``held_out.csv`` beside checkpoints, as
the tidy tables of `models-1-family`. A model that has none of these (one from the hub) has a row
with its name alone. ``names`` are models as `loading.load` knows them.
"""

import json
from collections import Counter
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

#: Kind of a vocabulary → its tokenizer, and the models that have it.
Vocabularies = Mapping[str, tuple[Tokenizer, Sequence[str]]]


def folder(name: str) -> Path | None:
    """Where a shipped series, or one given by its path, lies; None for any other model.

    Of a run whose weights are not shipped it holds the tables, and the record of its checkpoints.
    """
    try:
        path = identity.local_folder(name)
    except loading.ModelNotFoundError:
        return None
    if path is None or not ((path / identity.RECORD).exists() or identity.local_series(name, path)):
        return None
    return path


def file_text(name: str, file: str) -> str:
    """The text of a file of a member; empty where there is none."""
    path = folder(name)
    return (path / file).read_text("utf-8") if path and (path / file).exists() else ""


def recipe(name: str) -> MemberRecipe | None:
    """The recipe of a member; ValueError where the file is of another version."""
    if not (described := file_text(name, "recipe.json")):
        return None
    try:
        return recipes.read_recipe(described)
    except ValueError as error:
        raise ValueError(f"{folder(name)}/recipe.json is {error}") from error


def overview(names: Sequence[str]) -> pd.DataFrame:
    """One row a member: what it is (from its recipe) and what it cost (from its run).

    Columns: ``model``, ``architecture``, ``objectives``, ``layers``, ``width``, ``English`` (its
    share of the text; NaN: by its size, as every language), ``parameters``, ``subwords_seen``,
    ``minutes``. The last three are missing until a run has ended.
    """
    rows = []
    for name in names:
        cost = json.loads(file_text(name, "run.json") or "{}")
        rows.append({"model": loading.title(name)} | _settings(name) | cost)
    columns = [
        "model", "architecture", "objectives", "layers", "hidden_size", "english_share",
        "parameters", "subwords_seen", "minutes",
    ]  # fmt: skip
    table = pd.DataFrame(rows).reindex(columns=columns)
    return table.rename(columns={"hidden_size": "width", "english_share": "English"})


def _settings(name: str) -> dict[str, object]:
    """What a recipe says of what is learnt; nothing for a model without one."""
    if (made := recipe(name)) is None:
        return {}
    settings = asdict(made) | {"objectives": " + ".join(made.objectives)}
    return {key: settings[key] for key in settings if key not in ("name", "history")}


def recipe_differences(references: Mapping[str, str]) -> pd.DataFrame:
    """The settings in which the recipes of members and of their references differ.

    A row a ``model``, ``reference`` and ``setting``; none for a model without a recipe.
    """
    rows = []
    for name, other in references.items():
        settings, others = _settings(name), _settings(other)
        for key in settings if others else ():
            if settings[key] != others[key]:
                both = loading.title(name), loading.title(other)
                rows.append((*both, key, others[key], settings[key]))
    columns = ["model", "reference", "setting", "of the reference", "of the model"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:3])


def decoders(names: Sequence[str]) -> list[str]:
    """Those of the models that are members and decoders."""
    return [name for name in names if (made := recipe(name)) is not None and made.decoder]


def distinct_vocabularies(names: Sequence[str]) -> dict[str, tuple[Tokenizer, list[str]]]:
    """The vocabularies of several models: kind ("BPE", "WordPiece") → (tokenizer, its models).

    Of two that differ and are of one kind, the second has the name of its first model added.
    """
    alike: dict[str, tuple[Tokenizer, list[str]]] = {}
    for name in names:
        tokenizer = loading.tokenizer(name).backend_tokenizer
        alike.setdefault(tokenizer.to_str(), (tokenizer, []))[1].append(loading.title(name))
    by_kind: dict[str, tuple[Tokenizer, list[str]]] = {}
    for tokenizer, models in alike.values():
        kind = type(tokenizer.model).__name__
        by_kind[f"{kind} of {models[0]}" if kind in by_kind else kind] = (tokenizer, models)
    return by_kind


def vocabulary_table(vocabularies: Vocabularies) -> pd.DataFrame:
    """Vocabularies, how many subwords they hold, and the models that have them."""
    rows = [
        (kind, tokenizer.get_vocab_size(), ", ".join(models))
        for kind, (tokenizer, models) in vocabularies.items()
    ]
    return pd.DataFrame(rows, columns=["vocabulary", "subwords", "models"]).set_index("vocabulary")


def example_pieces(
    corpus: ParallelCorpus, vocabularies: Vocabularies, codes: Sequence[str] = ("en", "fi", "zh")
) -> pd.DataFrame:
    """The first sentence of 40 to 70 characters in English, in the pieces of each vocabulary.

    In the languages of ``codes`` that the corpus has.
    """
    position = next(i for i, x in enumerate(corpus.sentences["en"]) if 40 < len(x) < 70)
    rows = []
    for code in [code for code in codes if code in corpus.sentences]:
        sentence = corpus.sentences[code][position]
        rows.append((code, "characters", len(sentence), sentence))
        for kind, (tokenizer, _) in vocabularies.items():
            pieces = tokenizer.encode(sentence, add_special_tokens=False).tokens
            rows.append((code, kind, len(pieces), " ".join(pieces)))
    columns = ["language", "vocabulary", "pieces", "sentence"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:2])


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


def fertilities(
    corpus: ParallelCorpus, vocabularies: Vocabularies, folders: Mapping[str, str]
) -> pd.DataFrame:
    """`fertility` of each vocabulary, with ``vocabulary`` and the per cent that is ``left_over``.

    ``folders``: models as they are called → names.
    """
    tables = {
        kind: fertility(folders[models[0]], corpus) for kind, (_, models) in vocabularies.items()
    }
    table = pd.concat(tables, names=["vocabulary"]).reset_index(level=0)
    return table.assign(left_over=100 * (table["unknown"] + table["bytes"]))


def fertility_table(cut: pd.DataFrame) -> pd.DataFrame:
    """`fertilities` by language, those that the first vocabulary cuts least on top."""
    columns = ["tokens_per_word", "tokens_per_character", "unknown", "bytes", "round_trip"]
    wide = cut.pivot(index="language", columns="vocabulary", values=columns)
    first = cut[cut["vocabulary"] == cut["vocabulary"].iloc[0]].set_index("language")
    return wide.loc[first.sort_values(["tokens_per_word", "tokens_per_character"]).index]


def subword_counts(name: str, *, every: int = 1) -> dict[str, int]:
    """Language → subwords of the pretraining text, line ends included, as a model cuts it.

    From every ``every``-th line of each source, times ``every``: reading all takes a minute.
    """
    files = pretraining_text.file_hashes()
    about = {"model": loading.fingerprint(name), "files": files, "every": every}
    table = work.result(SUBWORD_COUNTS, about, name, every)
    return dict(zip(table["language"], table["subwords"].tolist(), strict=True))


def _subwords(name: str, every: int) -> pd.DataFrame:
    tokenizer = loading.tokenizer(name).backend_tokenizer
    counts: Counter[str] = Counter()
    for by_code in pretraining_text.read_text()[0].values():
        for code, lines in by_code.items():
            encoded = Lines.encode(tokenizer, list(lines.values())[::every])
            counts[code] += every * len(encoded.ids)
    return pd.DataFrame(sorted(counts.items()), columns=["language", "subwords"])


SUBWORD_COUNTS = work.Kind("pretraining-subwords", _subwords, version=1, tolerance=0)


def text_share(name: str, codes: Sequence[str], *, every: int = 1) -> float:
    """The share of what a member read that is of some languages.

    ValueError without a recipe; its weights must be here, as its vocabulary is.
    """
    if (made := recipe(name)) is None:
        raise ValueError(f"{name} has no recipe.json: what it read is not known")
    shares = _shares(made, pd.Series(subword_counts(name, every=every)))
    return float(shares.reindex(list(codes), fill_value=0).sum())


def _shares(made: MemberRecipe, subwords: pd.Series) -> pd.Series:
    """Share of each of a recipe's languages in what it reads."""
    known = subwords[list(made.languages)] if made.languages else subwords
    return pretraining_text.shares(known, made.language_exponent, made.english_share)


def readers(names: Sequence[str]) -> list[str]:
    """Members whose `passes` over the text are known: they have a run, learn from text alone, and
    cut it as the first of them does."""
    cuts = {}
    for name in names:
        made = recipe(name)
        alone = made is not None and not made.pair_share and set(made.objectives) <= {"mlm", "clm"}
        if alone and file_text(name, "run.json"):
            cuts[name] = loading.tokenizer(name).backend_tokenizer.to_str()
    return [name for name, cut in cuts.items() if cut == next(iter(cuts.values()))]


def passes(names: Sequence[str], subwords: Mapping[str, int]) -> pd.DataFrame:
    """How often `readers` have read the text of each language, on average.

    One row a member and language: ``model``, ``language``, ``subwords`` (of its text), ``share``
    (of the subwords that the member saw), ``passes`` (these over those).
    """
    empty = pd.DataFrame(columns=["model", "language", "subwords", "share", "passes"])
    there, parts = pd.Series(subwords).rename_axis("language"), []
    for name in names:
        seen = json.loads(file_text(name, "run.json"))["subwords_seen"]
        share = _shares(recipe(name), there)
        part = pd.DataFrame({"subwords": there, "share": share, "passes": seen * share / there})
        parts.append(part.reset_index().assign(model=loading.title(name)))
    return pd.concat(parts, ignore_index=True)[list(empty)] if parts else empty


def reading(names: Sequence[str], every: int) -> pd.DataFrame:
    """`passes` of the decoders, one line of the text in ``every`` counted."""
    some = readers(decoders(names))
    return passes(some, subword_counts(next(iter(some), names[0]), every=every))


def passes_table(reading: pd.DataFrame) -> pd.DataFrame:
    """Share of the text and `passes` over it, of English and of the other languages."""
    english = reading[reading["language"] == "en"].set_index("model")[["share", "passes"]]
    others = reading[reading["language"] != "en"].groupby("model", sort=False)
    return english.add_prefix("English, ").assign(
        **{
            "others, median share": others["share"].median(),
            "others, median passes": others["passes"].median(),
            "others, most passes": others["passes"].max(),
        }
    )


def by_amount(codes: Sequence[str], reading: pd.DataFrame) -> list[str]:
    """Languages, those with most training text in `passes` first."""
    amount = reading.groupby("language")["subwords"].first()
    return sorted(codes, key=lambda code: -amount.get(code, 0))
