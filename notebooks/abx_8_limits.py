"""What LD and MD can see: planted worlds of which everything is known, and texts with less surface.

A world gives the sentences of `planted_text` vectors in which languages, or translations, are alike
and different in one known way. What a measure scores there is known, and so is what it is blind to.
"""

import unicodedata
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.linalg import hadamard

from shared.abx_figures import LAYER, with_lines
from xlx.experiment.abx_scores import SPACES, masks_of
from xlx.experiment.averages import averaged_scores
from xlx.experiment.scoring import (
    Length,
    Subject,
    language_identification,
    scored,
    shuffled_text,
    subject_scores,
)
from xlx.measures import abx, geometry, registered
from xlx.plots import style
from xlx.plots.primitives import curves
from xlx.subjects import loading
from xlx.subjects.identity import Name
from xlx.text import parallel
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus

Vectors = dict[str, np.ndarray]
#: Letters of two alphabets, one for one; the word that opens a sentence of each language.
_LATIN, _CYRILLIC = "aeioubdgklmnprstvz", "аеиоубдгклмнпрствз"
_FIRST = {
    "de": "aba", "en": "ebe", "es": "ibi", "fr": "obo",
    "bg": "ава", "ru": "еве", "sr": "иви", "uk": "ово",
}  # fmt: skip


def planted_text(n_documents: int = 36, size: int = 4, seed: int = 1) -> ParallelCorpus:
    """Sentences of random words in eight languages, four of them in Cyrillic letters.

    Translations share their length but for some 15 %, sentences of a document less so, and those of
    three documents with all their translations a number of four digits.
    """
    rng, n = np.random.default_rng(seed), n_documents * size
    longer = np.repeat(rng.normal(0, 0.35, n_documents), size) + rng.normal(0, 0.45, n)
    topics = rng.choice(np.arange(1000, 10_000), -(-n_documents // 3), replace=False)
    numbers, sentences = np.repeat(topics, 3 * size)[:n], {}
    for code, first in _FIRST.items():
        letters = list(_LATIN if first[0] in _LATIN else _CYRILLIC)
        rows = []
        for at, number in zip(longer, numbers, strict=True):
            text, length = first, int(110 * np.exp(at + rng.normal(0, 0.15)))
            text += f" {number}" * 4
            while len(text) < length - 9:
                text += " " + "".join(rng.choice(letters, rng.integers(2, 9)))
            rows.append(f"{text} {''.join(rng.choice(letters, max(1, length - len(text) - 2)))}.")
        sentences[code] = tuple(rows)
    ids = tuple(f"{i // size:03}:{i}" for i in range(n))
    return ParallelCorpus("planted", sentences, ids, ("",) * n, "none", "made up")


def _noise(sentence: str, dim: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(sentence.encode())).normal(size=dim)


def _number_of(sentence: str) -> int:
    """Of the language that a sentence is in, whatever it is called."""
    return _number_of_first(sentence.split()[0])


@cache
def _number_of_first(word: str) -> int:
    return [*map(latin, _FIRST.values())].index(latin(word))


def _place(sentence: str) -> np.ndarray:
    return np.concatenate([12 * np.eye(8)[_number_of(sentence)], _noise(sentence, 24)])


def _subspace(sentence: str) -> np.ndarray:
    return np.kron(np.eye(8)[_number_of(sentence)], _noise(sentence, 4))


def _covariance(sentence: str) -> np.ndarray:
    return _noise(sentence, 32) * np.tile(2 + hadamard(16)[1 + _number_of(sentence)], 2)


def _script(sentence: str) -> np.ndarray:
    letters = [x for x in sentence if x.isalpha()]
    share = np.mean([x in _CYRILLIC for x in letters])
    digits = "".join(x for x in sentence if x.isdigit())
    number = _noise(digits, 16) if digits else np.zeros(16)
    return np.concatenate([[6 * share, 6 * (1 - share)], number])


def _length(text: ParallelCorpus) -> Vectors:
    arcs = Length().read(text).states
    return {
        code: np.hstack([arc[0], [0.01 * _noise(x, 4) for x in text.sentences[code]]])
        for code, arc in arcs.items()
    }


def _by_sentence(code: Callable[[str], np.ndarray]) -> Callable[[ParallelCorpus], Vectors]:
    return lambda text: {x: np.stack([*map(code, rows)]) for x, rows in text.sentences.items()}


#: What tells languages, or translations, apart: a mean vector of each language; a subspace of each,
#: with mean zero; a shape of each, in the same space; the length alone; the letters and a number.
WORLDS: dict[str, Callable[[ParallelCorpus], Vectors]] = {
    "place": _by_sentence(_place),
    "subspace": _by_sentence(_subspace),
    "covariance": _by_sentence(_covariance),
    "length": _length,
    "script": _by_sentence(_script),
}
#: Space → what is measured there of a world; of the raw one also MD under masks, `MASKED`.
_MEASURED = {
    "raw": ("LD", "LD by CSLS", "purity", "MD", "MD by CSLS", "retrieval"),
    "centred": ("LD", "purity", "MD"), "Euclidean": ("LD", "MD"), "whitened": ("LD", "MD"),
}  # fmt: skip
MASKED = ("like length", "near", "like length and near", "as like length")


def blind_spots(text: ParallelCorpus, model: str) -> pd.DataFrame:
    """Every measure of every world, means over pairs: a row a measure and space, a column a world.

    ``model``: whose subwords say which sentences are near.
    """
    masks = masks_of(text, MASKED, lambda: loading.load(model))
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for world, of in WORLDS.items():
        vectors = of(text)
        for space, names in _MEASURED.items():
            exact = abx.exact(
                SPACES[space](vectors), measures=[registered()[name] for name in names],
                masks=masks if space == "raw" else None, dtype=torch.float64,
            )  # fmt: skip
            told = {task: scores.mean() for task, scores in exact.scores.items()}
            if space in ("raw", "centred"):
                groups, centred = parallel.documents(text), space == "centred"
                right = geometry.identified(vectors, groups, centred=centred)
                told |= {f"{x} reader": y.mean()
                         for x, y in zip(geometry.READERS, right, strict=True)}  # fmt: skip
            for task, score in told.items():
                rows.setdefault((task, space), {})[world] = float(score)
    table = pd.DataFrame(rows).T.rename_axis(["measure", "space"])
    return table.sort_index(key=lambda index: index.str.startswith(("MD", "retrieval")),
                            kind="stable", level=0, sort_remaining=False)  # fmt: skip


#: Half for any vectors: A and B, or two means, can change places.
IDENTITIES = ("LD, names of languages shuffled", "MD, translations shuffled", "LD, centred")


def control_table(text: ParallelCorpus, seed: int) -> pd.DataFrame:
    """What is left of LD or MD under each control: a row a control, a column a world.

    Where sentences are moved, the pairs of the first language, which stays, are scored.
    """
    one, one_script = list(_FIRST)[:4], with_texts(text)
    moved = {f"MD, {how} shuffled": shuffled_text(text, how, seed)
             for how in ("translations", "lengths", "documents")}  # fmt: skip
    spoiled = moved | {
        "LD, names of languages shuffled": shuffled_text(text, "labels", seed),
        "LD, one alphabet": one_script["one alphabet"],
        "LD, pairs of one script": text.select(one),
        "MD, without digits and punctuation": one_script["letters alone"],
    }
    rows = {"LD": {}, "MD": {}} | {name: {} for name in spoiled} | {"LD, centred": {}}
    for world, of in WORLDS.items():
        for name, corpus in {"LD": text, "MD": text, **spoiled, "LD, centred": text}.items():
            vectors = SPACES["centred" if name == "LD, centred" else "raw"](of(corpus))
            pairs = [(one[0], x) for x in list(_FIRST)[1:]] if name in moved else None
            exact = abx.exact(vectors, pairs=pairs, measures=(abx.LD, abx.MD), dtype=torch.float64)
            rows[name][world] = float(exact.scores[name[:2]].mean())
    return pd.DataFrame(rows).T


# --- texts with less surface ----------------------------------------------------------------------

#: Letters and how they are written in Latin ones, by sound; Hangul, kana and Devanagari by name.
_SOUNDS = (
    "аa бb вv гg дd еe жzh зz иi йj кk лl мm нn оo пp рr сs тt уu фf хh цts чch шsh щshch ъ ыy ь "
    "эe юyu яya ёe іi їyi єye ґg ћc ђd љlj њnj јj џdz "
    "αa βv γg δd εe ζz ηi θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υy φf χch ψps ωo "
    "אa בb גg דd הh וv זz חh טt יy כk ךk לl מm םm נn ןn סs עa פp ףp צts ץts קk רr שsh תt "
    "اa آa أa إi بb تt ثth جj حh خkh دd ذdh رr زz سs شsh صs ضd طt ظz عa غgh فf قq كk لl مm نn هh "
    "ةh وw ؤw يy ىa ئy ء پp چch ژzh گg کk یy ٹt ڈd ڑr ںn ےe ہh ھh ،, ؟? ؛;"
)
_TO_LATIN = {part[0]: part[1:] for part in _SOUNDS.split()}
#: How the names of characters begin whose last word is their sound; a vowel sign takes the a away.
_NAMED = ("HANGUL SYLLABLE ", "HIRAGANA LETTER ", "KATAKANA LETTER ", "DEVANAGARI LETTER ")
_VOWEL, _VIRAMA = "DEVANAGARI VOWEL SIGN ", "DEVANAGARI SIGN VIRAMA"


def latin(sentence: str) -> str:
    """A sentence in small Latin letters without marks; Chinese characters stay."""
    written = ""
    for character in unicodedata.normalize("NFC", sentence).lower():
        name = unicodedata.name(character, "")
        if character in _TO_LATIN:
            written += _TO_LATIN[character]
        elif name.startswith(_NAMED):
            written += name.split()[-1].lower()
        elif name.startswith((_VOWEL, _VIRAMA)):
            vowel = name.removeprefix(_VOWEL).lower() if name.startswith(_VOWEL) else ""
            written = written.removesuffix("a") + vowel
        elif unicodedata.category(character) == "Nd":
            written += str(unicodedata.digit(character))
        else:
            parts = unicodedata.normalize("NFKD", character)
            kept = (x for x in parts if not unicodedata.category(x).startswith("M"))
            written += "".join(_TO_LATIN.get(x, x) for x in kept)
    return written


def letters_alone(sentence: str) -> str:
    """A sentence without digits, punctuation and signs; one that has no letters stays."""
    kept = [x if unicodedata.category(x)[0] in "LM" else " " for x in sentence]
    return " ".join("".join(kept).split()) or sentence


#: Text → what is done to each sentence.
CHANGES: dict[str, Callable[[str], str]] = {
    "letters alone": letters_alone,
    "one alphabet": latin,
}


def with_texts(text: ParallelCorpus) -> dict[str, ParallelCorpus]:
    """The text as it is and with each of `CHANGES`, in the same languages and positions."""
    texts = {"as it is": text}
    for name, change in CHANGES.items():
        rows = {code: tuple(map(change, of)) for code, of in text.sentences.items()}
        texts[name] = replace(text, name=f"{text.name}, {name}", sentences=rows)
    return texts


# --- models ---------------------------------------------------------------------------------------

#: Measure and space → its name beside LD, and how its line looks.
COMPANIONS = {
    ("LD", "raw"): ("LD", style.look(style.VERMILION, "o")),
    ("LD", "centred"): ("LD, centred", style.look(style.VERMILION, "o", ":", hollow=True)),
    ("purity", "raw"): ("neighbours", style.look(style.GREEN, "^")),
    ("purity", "centred"): ("neighbours, centred", style.look(style.GREEN, "^", ":", hollow=True)),
    ("linear", "raw"): ("linear reader", style.look(style.SKY, "D", "-.")),
    ("linear", "centred"): (
        "linear reader, centred", style.look(style.SKY, "D", ":", hollow=True),
    ),
    ("nearest", "raw"): ("nearest reader", style.look(style.BLUE, "s", "--")),
    ("nearest", "centred"): (
        "nearest reader, centred", style.look(style.BLUE, "s", ":", hollow=True),
    ),
}  # fmt: skip
#: What is drawn: the others are at their ends.
DRAWN = ("LD", "LD, centred", "neighbours, centred", "nearest reader, centred")


def companions(names: Sequence[Name], text: ParallelCorpus, **options: object) -> pd.DataFrame:
    """LD and what sees more than it, by model and layer, raw and centred, with intervals.

    Columns ``model``, ``measure`` (of `COMPANIONS`), ``layer``, ``score``, ``low``, ``high``.
    "neighbours": the share of sentences whose nearest of another position, of two languages, is of
    their own.
    """
    tables = []
    for space in ("raw", "centred"):
        measured = subject_scores(names, text, ["LD", "purity"], space=space, **options)
        tables.append(averaged_scores(measured, by=["layer"]))
        tables += [
            language_identification(name, text, space=space, **options).rename(
                columns={"reader": "task"}
            )
            for name in names
        ]
    table = pd.concat(tables, ignore_index=True)
    keys = zip(table["task"], table["space"], strict=True)
    table["measure"] = [COMPANIONS[key][0] for key in keys]
    return table[["model", "measure", "layer", "score", "low", "high"]]


@style.styled
def companion_curves(table: pd.DataFrame) -> Figure:
    """LD and its companions over layers, a panel a model."""
    looks = {name: look for name, look in COMPANIONS.values() if name in DRAWN}
    on = curves(table, x="layer", value="score", series="measure", panel="model", looks=looks,
                columns=4, width=2.15, height=2.3)  # fmt: skip
    return on.done(LAYER, "score", handles=with_lines(on))


#: Text → languages of Latin letters alone.
ONE_SCRIPT = "pairs in Latin letters"


def surface_scores(
    subjects: Sequence[Subject | Name], text: ParallelCorpus, tasks: Sequence[str] = ("LD", "MD")
) -> pd.DataFrame:
    """`scoring.scored` of `with_texts` and of pairs in Latin letters; means over layers."""
    inside = [code for code in text.languages if LANGUAGES[code].script == "Latn"]
    texts = with_texts(text) | {ONE_SCRIPT: text.select(inside)}
    tables = [scored(tasks, subjects, [of], by=[]).assign(text=name) for name, of in texts.items()]
    return pd.concat(tables, ignore_index=True)


# --- what is said ---------------------------------------------------------------------------------


def _told(row: pd.Series) -> str:
    return f"{row['score']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def in_short(spots: pd.DataFrame, table: pd.DataFrame, surface: pd.DataFrame) -> str:
    """The answer, of the first model at its last layer."""
    model = table["model"].iloc[0]
    rows = table[table["model"] == model]
    last = rows[rows["layer"] == rows["layer"].max()].set_index("measure")
    texts = surface[(surface["model"] == model) & (surface["task"] == "LD")].set_index("text")
    blind, apart = spots.loc[("LD", "raw"), "subspace"], last.loc["LD, centred"]
    return (
        "**In short.** LD sees the mean vectors of languages and little else: where each language "
        f"has dimensions of its own, and mean zero, it is {blind:.2f}. In the last layer of "
        f"`{model}`, without the means, LD is {_told(apart)}; yet the nearest sentence is of the "
        f"own language in {_told(last.loc['neighbours, centred'])} (chance 0.5). Written in one "
        f"alphabet, LD goes from {texts.loc['as it is', 'score']:.2f} to "
        f"{texts.loc['one alphabet', 'score']:.2f}."
    )


def reading(table: pd.DataFrame, surface: pd.DataFrame, n_languages: int) -> str:
    """What the tables of models say: a finding a sentence, in Markdown."""
    said = [
        "**Reading.** The nearest reader names the language of a sentence of a document that it "
        f"does not know (chance {1 / n_languages:.2f}):\n"
    ]
    for model, rows in table.groupby("model", sort=False):
        rows = rows.set_index(["measure", "layer"])
        bare = rows.loc["nearest reader, centred"]
        last = bare.index.max()
        said.append(
            f"- `{model}`, last layer: {_told(rows.loc[('nearest reader', last)])}; centred "
            f"{_told(bare.loc[last])}, at the embeddings {_told(bare.loc[0])}. LD of the last "
            f"layer is {rows.loc[('LD', last), 'score']:.2f}, centred "
            f"{rows.loc[('LD, centred', last), 'score']:.2f}."
        )
    told = surface.set_index(["model", "task", "text"])["score"].map("{:.2f}".format)
    for model in surface["model"].unique():
        of = [f"{task} {told[model, task, 'as it is']}, letters alone "
              f"{told[model, task, 'letters alone']}, one alphabet "
              f"{told[model, task, 'one alphabet']}" for task in ("LD", "MD")]  # fmt: skip
        said.append(f"- {model}: {'; '.join(of)}.")
    said.append(
        "\nOne caveat: models have not read text in one alphabet. What falls there is not the "
        "share of surface alone."
    )
    return "\n".join(said)
