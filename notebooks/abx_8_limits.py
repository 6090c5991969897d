"""What LD and MD can see: planted worlds of which everything is known, and texts with less surface.

A world gives the sentences of `planted_text` vectors in which languages, or translations, are alike
and different in one known way. What a measure scores there is known, and so is what it is blind to.

In minimal pairs X is a sentence, A its translation, B what A became when two of its words changed
places (`shared.minimal_pairs`): of the same words and length as A, so no bag tells them apart.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import LAYER, with_lines
from shared.abx_tables import at_last, with_models
from shared.minimal_pairs import EDITED, EDITS, EXCHANGES, load_minimal_pairs
from shared.shown import with_interval
from xlx.experiment.abx_scores import MATCHED, SPACES, before_training, group_sizes
from xlx.experiment.averages import Average, averaged_scores
from xlx.experiment.constraints import masks_of
from xlx.experiment.scoring import (
    LENGTH_ALONE,
    BagOfSubwords,
    Length,
    Subject,
    as_subject,
    cached,
    scored,
    shuffled_text,
    subject_scores,
)
from xlx.measures import abx, registered, statistics
from xlx.plots.panels import across, rows_of
from xlx.plots.primitives import Curves, curves
from xlx.plots.style import BLUE, GREEN, VERMILION, language_label, look, styled
from xlx.results.deferred import deferred
from xlx.results.ledger import Value
from xlx.subjects import loading
from xlx.subjects.identity import Name
from xlx.text import labelled
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus, documents

sparse = deferred("scipy.sparse")
linalg = deferred("scipy.linalg")
torch = deferred("torch")

Vectors = dict[str, np.ndarray]
#: Letters of two alphabets, one for one; the word that opens a sentence of each language.
_LATIN, _CYRILLIC = "aeioubdgklmnprstvz", "аеиоубдгклмнпрствз"
_FIRST = {
    "de": "aba",
    "en": "ebe",
    "es": "ibi",
    "fr": "obo",
    "bg": "ава",
    "ru": "еве",
    "sr": "иви",
    "uk": "ово",
}


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
    return _noise(sentence, 32) * np.tile(2 + linalg.hadamard(16)[1 + _number_of(sentence)], 2)


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
    "centred": ("LD", "purity", "MD"),
    "Euclidean": ("LD", "MD"),
    "whitened": ("LD", "MD"),
}
MASKED = ("like length", "near", "like length and near", "as like length")


def _vocabulary(model: str) -> SimpleNamespace:
    """What is asked of a model to say which sentences are near: how it writes them, whole."""
    return SimpleNamespace(tokenizer=loading.tokenizer(model), limit=lambda _: None)


def blind_spots(text: ParallelCorpus, model: str) -> pd.DataFrame:
    """Every measure of every world, means over pairs: one row per measure and space.

    ``model``: whose subwords say which sentences are near.
    """
    masks = masks_of(text, MASKED, lambda: _vocabulary(model))
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for world, make in WORLDS.items():
        vectors = make(text)
        for space, names in _MEASURED.items():
            exact = abx.exact(
                SPACES[space](vectors),
                measures=[registered()[name] for name in names],
                masks=masks if space == "raw" else None,
                dtype=torch.float64,
            )
            measured = {task: scores.mean() for task, scores in exact.scores.items()}
            if space in ("raw", "centred"):
                groups, centred = documents(text), space == "centred"
                right = identified(vectors, groups, centred=centred)
                measured |= {f"{x} reader": y.mean() for x, y in zip(READERS, right, strict=True)}
            for task, score in measured.items():
                rows.setdefault((task, space), {})[world] = float(score)
    table = pd.DataFrame(rows).T.rename_axis(["measure", "space"])
    return table.sort_index(
        key=lambda index: index.str.startswith(("MD", "retrieval")),
        kind="stable",
        level=0,
        sort_remaining=False,
    )


#: Near half for any vectors: A and B can change places.
NEAR_HALF = ("LD, names of languages shuffled", "MD, translations shuffled")


def control_table(text: ParallelCorpus, seed: int) -> pd.DataFrame:
    """What is left of LD or MD under each control: one row per control, one column per world.

    Where sentences are moved, the pairs of the first language, which stays, are scored.
    """
    few, one_script = list(_FIRST)[:4], with_texts(text)
    moved = {
        f"MD, {how} shuffled": shuffled_text(text, how, seed)
        for how in ("translations", "lengths", "documents")
    }
    spoiled = moved | {
        "LD, names of languages shuffled": shuffled_text(text, "labels", seed),
        "LD, one alphabet": one_script["one alphabet"],
        "LD, pairs of one script": text.select(few),
        "MD, without digits and punctuation": one_script["letters alone"],
    }
    rows = {"LD": {}, "MD": {}} | {name: {} for name in spoiled} | {"LD, centred": {}}
    for world, make in WORLDS.items():
        for name, corpus in {"LD": text, "MD": text, **spoiled, "LD, centred": text}.items():
            vectors = SPACES["centred" if name == "LD, centred" else "raw"](make(corpus))
            pairs = [(few[0], x) for x in list(_FIRST)[1:]] if name in moved else None
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
            letters = (x for x in parts if not unicodedata.category(x).startswith("M"))
            written += "".join(_TO_LATIN.get(x, x) for x in letters)
    return written


def letters_alone(sentence: str) -> str:
    """A sentence without digits, punctuation and signs; one that has no letters stays."""
    characters = [x if unicodedata.category(x)[0] in "LM" else " " for x in sentence]
    return " ".join("".join(characters).split()) or sentence


#: Text → what is done to each sentence.
CHANGES: dict[str, Callable[[str], str]] = {
    "letters alone": letters_alone,
    "one alphabet": latin,
    "both": lambda sentence: letters_alone(latin(sentence)),
}


def with_texts(text: ParallelCorpus) -> dict[str, ParallelCorpus]:
    """The text as it is and with each of `CHANGES`, in the same languages and positions."""
    texts = {"as it is": text}
    for name, change in CHANGES.items():
        rows = {code: tuple(map(change, sentences)) for code, sentences in text.sentences.items()}
        texts[name] = replace(text, name=f"{text.name}, {name}", sentences=rows)
    return texts


# --- who names the language ---------------------------------------------------------------------

#: Who names the language of a sentence: least squares on its vector, the sentence nearest to it.
READERS = ("linear", "nearest")
#: Documents that are held out at a time: one in so many. The ridge on standardised dimensions.
#: How many sentences are compared with all others at a time.
_FOLDS, _RIDGE, _ROWS = 5, 0.01, 512


def identified(
    vectors: Mapping[str, np.ndarray], groups: Sequence[object], *, centred: bool = False
) -> np.ndarray:
    """Whether `READERS` name the language of held-out sentences rightly: bool ``(2, L, n)``.

    ``vectors`` are ``(n, dim)`` by language, sentences aligned; ``groups``, ``(n,)``, are held out
    whole. "linear" fits the languages' indicators; "nearest" is by cosine. ``centred``: less the
    mean of each language over the sentences that are not held out; then the linear reader has
    nothing to fit, and is at chance. Of equal answers the first language counts.
    """
    stacked = np.stack([*vectors.values()]).astype(np.float64)
    n_languages, n, dim = stacked.shape
    fold = np.unique(np.asarray(groups).astype(str), return_inverse=True)[1] % _FOLDS
    targets, right = np.eye(n_languages) - 1 / n_languages, np.zeros((2, n_languages, n), bool)
    for held in (fold == number for number in np.unique(fold)):
        rows = stacked - centred * stacked[:, ~held].mean(axis=1, keepdims=True)
        known, asked = rows[:, ~held].reshape(-1, dim), rows[:, held].reshape(-1, dim)
        scale = known.std(axis=0)
        known, asked = (
            (x - known.mean(axis=0)) / np.where(scale, scale, 1) for x in (known, asked)
        )
        known_targets = np.repeat(targets, (~held).sum(), axis=0)
        fitted = known.T @ known + _RIDGE * len(known) * np.eye(dim)
        named = [
            np.round(asked @ np.linalg.solve(fitted, known.T @ known_targets), 9).argmax(axis=1)
        ]
        units = rows / np.linalg.norm(rows, axis=2, keepdims=True)
        common = units.mean(axis=(0, 1))  # without it cosines are as near as the digits of float32
        near, query = ((units[:, x] - common).reshape(-1, dim) for x in (~held, held))
        offset, near = (near @ common).astype(np.float32), near.astype(np.float32).T
        parts = np.array_split(query.astype(np.float32), max(1, len(query) // _ROWS))
        nearest = np.concatenate([(part @ near + offset).argmax(axis=1) for part in parts])
        named.append(nearest // (~held).sum())
        languages = np.repeat(np.arange(n_languages), held.sum())
        right[:, :, held] = (np.stack(named) == languages).reshape(2, n_languages, -1)
    return right


def language_identification(
    names: Sequence[Subject | Name], text: ParallelCorpus, space: str, **options: object
) -> pd.DataFrame:
    """How many held-out sentences have their language named rightly (`identified`), by layer.

    Columns ``model``, ``layer``, ``task`` (of `READERS`), ``score``, ``low``, ``high``, ``space``.
    """
    sizes, n_languages, tables = group_sizes(documents(text)), len(text.languages), []
    for value in readers(names, text, space, **options):
        right, asked = value["right"], n_languages * len(text)
        score = right.sum(axis=-1) / asked
        without = (right.sum(axis=-1)[..., None] - right) / (asked - n_languages * sizes)
        low, high = Average(score, without - score[..., None], sizes).interval()
        index = pd.MultiIndex.from_product([range(len(score)), READERS], names=["layer", "task"])
        columns = {"score": score.ravel(), "low": low.ravel(), "high": high.ravel()}
        tables.append(pd.DataFrame(columns, index).reset_index())
    return with_models(names, tables).assign(space=space)


@cached(tolerance=10, documents=True)
def readers(subject: Subject, corpus: ParallelCorpus, space: str) -> dict[str, np.ndarray]:
    """``right``, int32 ``(n_layers, 2, n_documents)``: sentences of all languages, by reader."""
    groups, centred = documents(corpus), space == "centred"
    codes, right = np.unique(groups, return_inverse=True)[1], []
    for vectors in subject.read(corpus).layers(SPACES["raw" if centred else space]):
        both = identified(vectors, groups, centred=centred)
        right.append([np.bincount(codes, hits.sum(axis=0)) for hits in both])
    return {"right": np.array(right).astype(np.int32)}


# --- models ---------------------------------------------------------------------------------------

#: What a measure is called beside LD.
_CALLED = {
    "LD": "LD",
    "purity": "neighbours",
    "linear": "linear reader",
    "nearest": "nearest reader",
}
#: What is drawn: the others are at their ends.
DRAWN = {
    "LD": look(VERMILION, "o"),
    "LD, centred": look(VERMILION, "o", ":", hollow=True),
    "neighbours, centred": look(GREEN, "^", ":", hollow=True),
    "nearest reader, centred": look(BLUE, "s", ":", hollow=True),
}

DRAWN_AS = {
    "neighbours, centred": "nearest sentence is of the same language, centred",
    "nearest reader, centred": "language named by nearest ones, centred (chance far below 0.5)",
}


def companions(names: Sequence[Name], text: ParallelCorpus, **options: object) -> pd.DataFrame:
    """LD and what sees more than it, by model and layer, raw and centred, with intervals.

    Columns ``model``, ``measure``, ``layer``, ``score``, ``low``, ``high``.
    "neighbours": the share of sentences whose nearest of another position, of two languages, is of
    their own.
    """
    tables = []
    for space in ("raw", "centred"):
        measured = subject_scores(names, text, ["LD", "purity"], space=space, **options)
        tables.append(averaged_scores(measured, by=["layer"]))
        tables.append(language_identification(names, text, space, **options))
    table = pd.concat(tables, ignore_index=True)
    centred = table["space"].map({"raw": "", "centred": ", centred"})
    table["measure"] = table["task"].map(_CALLED) + centred
    return table[["model", "measure", "layer", "score", "low", "high"]]


#: Space → tasks in which the distance is another one; and MD, to compare with.
_DISTANCES = {
    "raw": ("MD", "LD by CSLS", "MD by CSLS"),
    "Euclidean": ("LD", "MD"),
    "whitened": ("LD", "MD"),
}


def other_distances(names: Sequence[Name], text: ParallelCorpus, **options: object) -> pd.DataFrame:
    """LD and MD by other distances than the cosine, and MD; columns as of `companions`."""
    tables = []
    for space, tasks in _DISTANCES.items():
        measured = subject_scores(names, text, [*tasks], space=space, **options)
        table = averaged_scores(measured, by=["layer"])
        tables.append(
            table.assign(measure=table["task"] + ("" if space == "raw" else f", {space}"))
        )
    table = pd.concat(tables, ignore_index=True)
    return table[["model", "measure", "layer", "score", "low", "high"]]


@styled
def companion_curves(table: pd.DataFrame) -> Figure:
    """LD and its companions over layers, one panel per model."""
    style = Curves(looks=DRAWN, labels=DRAWN_AS, wrap=3, height=2.0)
    on = curves(table, "layer", "score", hue="measure", col="model", style=style)
    handles = with_lines(on, chance="chance of LD and of the same language, 0.5")
    return on.done(LAYER, "share", handles=handles)


#: Text → languages of Latin letters alone.
ONE_SCRIPT = "pairs in Latin letters"


def surface_scores(
    subjects: Sequence[Subject | Name],
    text: ParallelCorpus,
) -> pd.DataFrame:
    """`scoring.scored` of `with_texts` and of pairs in Latin letters; means over layers."""
    inside = [code for code in text.languages if LANGUAGES[code].script == "Latn"]
    texts = with_texts(text) | {ONE_SCRIPT: text.select(inside)}
    tables = [
        scored(["LD", "MD", MATCHED], subjects, [corpus], by=[]).assign(text=name)
        for name, corpus in texts.items()
    ]
    return pd.concat(tables, ignore_index=True)


# --- minimal pairs --------------------------------------------------------------------------------


def shares_apart(stored: Value, computed: Value) -> float:
    """The largest difference of a share over all positions: a rounding error turns single ones."""
    both = zip(stored.values(), computed.values(), strict=True)
    return max(float(np.abs(a.mean(axis=-1) - b.mean(axis=-1)).max()) / 2 for a, b in both)


@cached(tolerance=0.02, difference=shares_apart, documents=True)
def edits_told(subject: Subject, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    """Twice whether cos(X, A) > cos(X, B), a tie 1: uint8 ``(n_layers, n_languages, n)``.

    ``corpus`` is one of `load_minimal_pairs`; X is in each of its languages but the edited, also in
    that of A, where X is A and the answer is given. ``own``: X is the sentence of the position.
    ``other``: that of the position before, of which A is no translation either: one half, unless
    edited sentences are odd whatever they are compared with.
    """
    reading, language_of = (
        subject.read(corpus),
        np.array(documents(corpus)),
    )  # before ":", the language
    codes = [code for code in corpus.languages if code != EDITED]
    places = [codes.index(code) * len(language_of) + i for i, code in enumerate(language_of)]
    by_order: dict[str, list[list[np.ndarray]]] = {"own": [], "other": []}
    for vectors in reading.layers():
        stack = sparse.vstack if reading.counts else np.concatenate
        a, b = stack([vectors[code] for code in codes], dtype=np.float64)[places], vectors[EDITED]
        for name, shift in (("own", 0), ("other", 1)):
            order = np.roll(np.arange(len(language_of)), shift)
            moved = [vectors[code][order] for code in codes]
            by_order[name].append([1 + np.sign(cosines(x, a) - cosines(x, b)) for x in moved])
    return {name: np.array(layers).astype(np.uint8) for name, layers in by_order.items()}


def cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Cosine of each row of x with the row of y, ``(n,)``; dense or sparse, in float64."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    products = [p.multiply(q) if sparse.issparse(p) else p * q for p, q in ((x, y), (x, x), (y, y))]
    dots, of_x, of_y = (np.asarray(p.sum(axis=1)).ravel() for p in products)
    return dots / np.sqrt(of_x * of_y)


#: Pairs of PAWS-X: B means something else than A, or the same.
PAWSX = ("PAWS-X, different", "PAWS-X, paraphrase")
KINDS = (*EDITS, *PAWSX)
PAWSX_LANGUAGES, N_PAIRS = ("de", "en", "es", "fr", "ja", "ko", "zh"), 60  # the shortest ones
#: What a table calls the three kinds of `EXCHANGES` as one, and the mean over languages.
COMPOSED, MEAN = "all exchanges", "mean"
DRAWN_KINDS = (COMPOSED, *EXCHANGES, "negation", PAWSX[0])
GROUPS = {COMPOSED: EXCHANGES} | {kind: (kind,) for kind in KINDS}


def load_kind(kind: str) -> ParallelCorpus:
    """A kind of `KINDS`, as `load_minimal_pairs`; of PAWS-X X and A are the first sentence, B the
    second, at the test pairs of one label."""
    if kind not in PAWSX:
        return load_minimal_pairs(kind)
    label = labelled.PI.index(kind.split()[1])
    sets, _ = labelled.parallel_examples("PI", PAWSX_LANGUAGES, "test", N_PAIRS)
    pairs = [(code, i) for code in sets for i in (sets[code].labels == label).nonzero()[0]]
    sentences = {code: tuple(rows.first[i] for _, i in pairs) for code, rows in sets.items()}
    sentences[EDITED] = tuple(sets[code].second[i] for code, i in pairs)
    names = tuple(sets[code].ids[i].replace(":", "-") for code, i in pairs)
    ids = tuple(f"{code}:{name}" for (code, _), name in zip(pairs, names, strict=True))
    return ParallelCorpus(kind, sentences, ids, names, "free use", "PAWS-X")


def worked(kind: str, start: str, x: str, subjects: Mapping[str, Subject]) -> pd.DataFrame:
    """The edit of a kind whose A begins with ``start``: X, A, B, and what each subject says."""
    text = load_kind(kind)
    originals = [text.sentences[code][i] for i, code in enumerate(documents(text))]
    at = next(i for i, a in enumerate(originals) if a.startswith(start))
    rows = {
        f"X ({x})": text.sentences[x][at],
        "A": originals[at],
        "B": text.sentences[EDITED][at],
    }
    codes = [code for code in text.languages if code != EDITED]
    values = edits_told([*subjects.values()], text)
    answers = [("B", "tie", "A")[int(v["own"][-1, codes.index(x), at])] for v in values]
    rows |= {f"nearer to X, {name}": answer for name, answer in zip(subjects, answers, strict=True)}
    return pd.DataFrame({"": rows})


def standard_subjects(models: Sequence[str], untrained: Sequence[str] = ()) -> dict[str, Subject]:
    """Length alone; of each model its bag of subwords, where named itself untrained, and itself."""
    named: dict[str, Subject] = {LENGTH_ALONE: Length()}
    for model in models:
        named[f"bag, {model}"] = BagOfSubwords(model)
        if model in untrained:
            named[f"untrained, {model}"] = as_subject(before_training(model))
        named[model] = as_subject(model)
    return named


def shares(
    subjects: Mapping[str, Subject], groups: Mapping[str, Sequence[str]], what: str = "own"
) -> pd.DataFrame:
    """How often cos(X, A) > cos(X, B), over all X of another language than A.

    ``groups``: name → kinds taken as one. Columns ``model``, ``kind``, ``layer``, ``depth`` (from 0
    to 1), ``language`` (of A and B, or `MEAN` over them), ``share`` with its interval over
    documents, ``tied`` and ``n`` edits. ``what``: "own", or "other", where X is another sentence.
    """
    tables = []
    for name, kinds in groups.items():
        scores, *of_edits = _scores(subjects, kinds, what)
        tables += [
            _over_languages(score, tied, *of_edits).assign(model=label, kind=name)
            for label, (score, tied) in scores.items()
        ]
    return pd.concat(tables, ignore_index=True)


def _scores(subjects: Mapping[str, Subject], kinds: Sequence[str], what: str) -> tuple:
    """Subject → scores and ties of edits ``(n_layers, n)``; their languages, and documents."""
    texts = [load_kind(kind) for kind in kinds]
    language_of = np.array([code for text in texts for code in documents(text)])
    codes = [code for code in texts[0].languages if code != EDITED]
    abroad = language_of != np.array(codes)[:, None]  # (n_languages, n): X is no A
    read, scores = [edits_told([*subjects.values()], text) for text in texts], {}
    for label, values in zip(subjects, zip(*read, strict=True), strict=True):
        twice = np.concatenate([value[what] for value in values], axis=-1)
        score = (twice * abroad).sum(axis=1) / (2 * abroad.sum(axis=0))
        scores[label] = score, ((twice == 1) & abroad).sum(axis=1) / abroad.sum(axis=0)
    return scores, language_of, [document for text in texts for document in text.domains]


def above_twins(subjects: Mapping[str, Subject]) -> pd.DataFrame:
    """What a model's share has above that of its untrained twin, by ``model`` and ``layer``.

    The mean over languages, ``score``, with the interval of the difference over documents, edit by
    edit; of the models of `standard_subjects` that have a twin there.
    """
    scores, *of_edits = _scores(subjects, EXCHANGES, "own")
    tables = [pd.DataFrame(columns=["model", "layer", "score", "low", "high"])]
    for label in scores:
        if twin := scores.get(f"untrained, {label}"):
            apart = (1 + scores[label][0] - twin[0]) / 2, scores[label][1]  # a share in [0, 1]
            rows = _over_languages(*apart, *of_edits).rename(columns={"share": "score"})
            rows = rows_of(rows, language=MEAN)
            ends = 2 * rows[["score", "low", "high"]] - 1
            tables.append(ends.assign(model=label, layer=rows["layer"]))
    return pd.concat(tables[1:] or tables, ignore_index=True)


def _over_languages(
    score: np.ndarray, tied: np.ndarray, language_of: np.ndarray, where: Sequence[str]
) -> pd.DataFrame:
    """Means by language and over languages of scores ``(n_layers, n)``, documents left out."""
    codes, language = np.unique(language_of, return_inverse=True)
    names, document = np.unique(where, return_inverse=True)
    cells = np.zeros((len(language_of), len(codes), len(names)))
    cells[np.arange(len(language_of)), language, document] = 1
    n, sums = cells.sum(axis=0), np.einsum("li,icd->lcd", score, cells)
    whole, rows = n.sum(axis=1), []
    with np.errstate(invalid="ignore"):  # a language of one document has no interval
        left = (sums.sum(axis=-1, keepdims=True) - sums) / (whole[:, None] - n)
    means = sums.sum(axis=-1) / whole
    ties = np.einsum("li,icd->lc", tied, cells) / whole
    for c, code in enumerate([*codes, MEAN]):
        chosen = slice(c, c + 1) if code != MEAN else slice(None)
        present = n[chosen].sum(axis=0) > 0
        value = means[:, chosen].mean(axis=1)
        error = statistics.left_out_error(
            value, left[:, chosen].mean(axis=1)[:, present], n[chosen].sum(axis=0)[present]
        )
        low, high = statistics.interval(value, error)
        rows.append(
            pd.DataFrame(
                {
                    "layer": range(len(value)),
                    "depth": np.linspace(0, 1, len(value)),
                    "language": code,
                    "share": value,
                    "low": low,
                    "high": high,
                    "tied": ties[:, chosen].mean(axis=1),
                    "n": int(whole[chosen].sum()),
                }
            )
        )
    return pd.concat(rows)


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Model by kind: the share over languages at the last layer, with its interval."""
    rows = rows_of(at_last(table, "layer"), language=MEAN)
    rows = rows.assign(shown=with_interval(rows, "share"))
    kinds, models = dict.fromkeys(rows["kind"]), dict.fromkeys(rows["model"])
    return rows.pivot(index="model", columns="kind", values="shown").loc[[*models], [*kinds]]


def by_language(same_text: pd.DataFrame, other: pd.DataFrame, model: str) -> pd.DataFrame:
    """Language by control: a model's own bag, length, itself, and itself where X is another."""
    columns: dict[str, pd.Series] = {}
    for name, table, subject in (
        ("length alone", same_text, LENGTH_ALONE),
        ("bag of its subwords", same_text, f"bag, {model}"),
        ("untrained", same_text, f"untrained, {model}"),
        (model, same_text, model),
        ("X another sentence", other, model),
    ):
        rows = rows_of(at_last(table, "layer"), model=subject, kind=COMPOSED).set_index("language")
        if len(rows):
            columns[name] = pd.Series(with_interval(rows, "share"), rows.index)
        if name.startswith("bag"):
            columns |= {"the bag ties": rows["tied"].round(2), "edits": rows["n"]}
    table = pd.DataFrame(columns, dict.fromkeys([*rows.index.drop(MEAN), MEAN]))
    return table.rename(lambda x: x if x == MEAN else language_label(x))


@styled
def over_layers(table: pd.DataFrame, models: Sequence[str]) -> Figure:
    """The share over the depth of each model, one panel per kind of `DRAWN_KINDS`."""
    rows = rows_of(table, language=MEAN)
    rows = rows[rows["model"].isin(models) & rows["kind"].isin(DRAWN_KINDS)]
    style = Curves(wrap=3, every=3, width=2.7, height=2, sharex="col")
    on = curves(rows, "depth", "share", hue="model", col="kind", style=style)
    across(on, y=0.5)
    return on.done(
        "depth: 0 is the embeddings, 1 the last layer", "share with A nearer to X than B"
    )
