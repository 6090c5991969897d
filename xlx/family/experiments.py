"""What `models-1-family` shows of the members without asking a lens: text, losses, vocabularies.

Parameters in, tidy tables out. ``cutters`` below are what `members.vocabularies` returns.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from tokenizers import Tokenizer

from xlx.family import members
from xlx.text.corpora import ParallelCorpus

Cutters = Mapping[str, tuple[Tokenizer, Sequence[str]]]

#: Objectives of a loss table, in the order of display.
OBJECTIVE_NAMES = {
    "mlm": "masked subwords (MLM)",
    "tlm": "masked, beside a translation (TLM)",
    "contrast": "contrast of translations",
    "clm": "next subword (CLM)",
}


def vocabulary_table(cutters: Cutters) -> pd.DataFrame:
    """Vocabularies, how many subwords they hold, and the models that have them."""
    rows = [
        (kind, tokenizer.get_vocab_size(), ", ".join(models))
        for kind, (tokenizer, models) in cutters.items()
    ]
    return pd.DataFrame(rows, columns=["vocabulary", "subwords", "models"]).set_index("vocabulary")


def example_pieces(
    corpus: ParallelCorpus, cutters: Cutters, codes: Sequence[str] = ("en", "fi", "zh")
) -> pd.DataFrame:
    """The first sentence of 40 to 70 characters in English, in the pieces of each vocabulary."""
    english = corpus.sentences["en"]
    position = next(i for i, sentence in enumerate(english) if 40 < len(sentence) < 70)
    rows = []
    for code in codes:
        sentence = corpus.sentences[code][position]
        rows.append((code, "characters", len(sentence), sentence))
        for kind, (tokenizer, _) in cutters.items():
            pieces = tokenizer.encode(sentence, add_special_tokens=False).tokens
            rows.append((code, kind, len(pieces), " ".join(pieces)))
    columns = ["language", "vocabulary", "pieces", "sentence"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:2])


def unlike(references: Mapping[str, str]) -> pd.DataFrame:
    """The settings in which the recipes of members and of their references differ."""
    rows = [
        (members.title(name), members.title(other), setting, reference, member)
        for name, other in references.items()
        if members.recipe(name) and members.recipe(other)
        for setting, (reference, member) in members.recipe_differences(name, other).items()
    ]
    columns = ["model", "reference", "setting", "of the reference", "of the model"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:3])


def decoders(names: Sequence[str]) -> list[str]:
    """Those of the models that are members and decoders."""
    recipes = {name: members.recipe(name) for name in names}
    return [name for name, recipe in recipes.items() if recipe is not None and recipe.decoder]


def reading(names: Sequence[str], every: int) -> pd.DataFrame:
    """`members.passes` of the decoders, one line of the text in ``every`` counted."""
    some = decoders(names)
    return members.passes(some, members.subword_counts(next(iter(some), names[0]), every=every))


def passes_table(passes: pd.DataFrame) -> pd.DataFrame:
    """Share of the text and passes over it, of English and of the other languages."""
    english = passes[passes["language"] == "en"].set_index("model")
    others = passes[passes["language"] != "en"].groupby("model", sort=False)
    return pd.DataFrame(
        {
            "English, share": english["share"],
            "English, passes": english["passes"],
            "others, median share": others["share"].median(),
            "others, median passes": others["passes"].median(),
            "others, most passes": others["passes"].max(),
        }
    )


def final_losses(curves: pd.DataFrame) -> pd.DataFrame:
    """The last training loss of every objective: a row a model."""
    ends = curves[curves["step"] == curves.groupby("model")["step"].transform("max")]
    wide = ends.pivot(index="model", columns="objective", values="loss")
    objectives = [name for name in OBJECTIVE_NAMES if name in wide]
    return wide.reindex(index=dict.fromkeys(curves["model"]), columns=objectives)


def grouped_losses(names: Sequence[str], cutters: Cutters) -> pd.DataFrame:
    """`members.held_out` with ``group``: members whose losses can be compared."""
    next_subword = {members.title(name) for name in decoders(names)}
    groups = {
        model: f"{'next' if model in next_subword else 'masked'}, {kind}"
        for kind, (_, models) in cutters.items()
        for model in models
    }
    losses = members.held_out(names)
    return losses.assign(group=losses["model"].map(groups))


def by_amount(codes: Sequence[str], passes: pd.DataFrame) -> list[str]:
    """Languages, those with most training text first."""
    amount = passes.groupby("language")["subwords"].first()
    return sorted(codes, key=lambda code: -amount.get(code, 0))


def held_out_table(losses: pd.DataFrame) -> pd.DataFrame:
    """Held-out loss in English and elsewhere, and the languages of lowest and highest loss."""
    text = losses["language"].map(lambda c: "English" if c == "en" else "mean of the others")
    keys = ["group", "model"]
    mean = losses.assign(text=text).groupby([*keys, "text"], sort=False)["loss"].mean().unstack()
    language = losses.sort_values("loss").groupby(keys)["language"]
    return mean.assign(lowest=language.first(), highest=language.last())


def fertilities(
    corpus: ParallelCorpus, cutters: Cutters, folders: Mapping[str, str]
) -> pd.DataFrame:
    """`members.fertility` of each vocabulary, with ``left_over``, % of pieces bytes or unknown."""
    tables = {
        kind: members.fertility(folders[models[0]], corpus) for kind, (_, models) in cutters.items()
    }
    cut = pd.concat(tables, names=["vocabulary"]).reset_index(level=0)
    return cut.assign(left_over=100 * (cut["unknown"] + cut["bytes"]))


def fertility_table(cut: pd.DataFrame) -> pd.DataFrame:
    """`fertilities` by language, those that the first vocabulary cuts least on top."""
    columns = ["tokens_per_word", "tokens_per_character", "unknown", "bytes", "round_trip"]
    wide = cut.pivot(index="language", columns="vocabulary", values=columns)
    first = cut[cut["vocabulary"] == cut["vocabulary"].iloc[0]].set_index("language")
    return wide.loc[first.sort_values(["tokens_per_word", "tokens_per_character"]).index]
