"""Tense: is a sentence of the past or of the present? Decided in English, as in its translations.

The tree of the English sentence decides, by its finite verb (`finite_tense`). Learnt is an English
treebank, which has no translations; Parallel UD is tested on. Sentences are their tokens, as no
other text of treebanks is shipped; classes are alike in length (`negation.matched`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.experiment.transfers import TransferTask
from xlx.text import trees
from xlx.text.examples import Examples
from xlx.text.files import TextError
from xlx.text.languages import joined_words
from xlx.text.negation import matched
from xlx.text.trees import Tree

#: Label 0 and 1, and what they are called in UD.
TENSES, VALUES = ("present", "past"), ("Pres", "Past")
#: What the labels are of, and what is tested on: sources of `trees.load_trees`.
TREEBANK, PARALLEL = "ud", "pud"
#: The languages that have Parallel UD and that members of the family have read, English first.
TENSED = (
    "en",
    "ar",
    "cs",
    "de",
    "es",
    "fi",
    "fr",
    "hi",
    "is",
    "it",
    "ja",
    "ko",
    "pl",
    "pt",
    "ru",
    "sv",
    "tr",
    "zh",
)
#: With a participle other languages have these as a past; 's may be *has*.
_HAVE = {"have", "has", "'ve", "’ve", "ve", "'s", "’s", "s"}


def finite_tense(tree: Tree) -> int:
    """Whether the finite verb of an English main clause is past: 1, 0 (present), -1 where unsure.

    It is the first finite auxiliary of the root verb, else that verb itself: "was sleeping" is
    past, "is built" present. Unsure is "has slept"; so are modal verbs, *will* among them, commands
    and sentences whose root is no verb.
    """
    root, helping = tree.root, tree.children(tree.root, "aux", "cop")
    finite = [i for i in (*helping, root) if tree.features[i].get("VerbForm") == "Fin"]
    if tree.upos[root] not in ("VERB", "AUX") or not finite:
        return -1
    tense, form = tree.features[finite[0]].get("Tense"), tree.words[finite[0]].lower()
    unsure = tense not in VALUES or (finite[0] != root and form in _HAVE)
    return -1 if unsure else VALUES.index(tense)


def root_tense(tree: Tree) -> int:
    """What a tree of any language says of its root: 1, 0, or -1 where it says neither.

    Its own tense, else that of its first auxiliary or copula, as in `measures.sentence_tasks`: so a
    participle counts as past where trees give it a tense (German "wird gebaut").
    """
    words = (tree.root, *tree.children(tree.root, "aux", "cop"))
    tense = next(filter(None, (tree.features[i].get("Tense") for i in words)), None)
    return VALUES.index(tense) if tense in VALUES else -1


def tense_task(
    languages: Sequence[str], n_train: int | None, n_test: int | None, seed: int = 1
) -> TransferTask:
    """English sentences to learn from, and Parallel UD to test on in all languages, n of each.

    Half of each are past; the test is the same whichever languages are asked for. TextError as
    `negation.matched`, and for a language that is none of `TENSED`.
    """
    if lacking := [code for code in languages if code not in TENSED]:
        raise TextError(f"tense has no {lacking[0]}: it has {', '.join(TENSED)}")
    learnt = _drawn([*trees.load_trees("en", TREEBANK)], n_train, seed)
    by_id = {code: {x.id: x for x in trees.load_trees(code, PARALLEL)} for code in TENSED}
    everywhere = [
        x
        for x in by_id["en"].values()
        if all(x.id in trees_by_id for trees_by_id in by_id.values())
    ]
    drawn, labels = _drawn(everywhere, n_test, seed)
    test = {code: _set([by_id[code][x.id] for x in drawn], code, labels) for code in languages}
    return TransferTask("tense", {"en": _set(learnt[0], "en", learnt[1])}, test, {})


def _drawn(parsed: Sequence[Tree], n: int | None, seed: int) -> tuple[list[Tree], np.ndarray]:
    """English sentences, and whether they are past: as many of both, alike in length."""
    labels = np.array([finite_tense(x) for x in parsed])
    texts = [joined_words(x.tokens, "en") for x in parsed]
    places, labels = matched(texts, n, seed, labels=labels)
    return [parsed[i] for i in places], labels


def _set(parsed: Sequence[Tree], code: str, labels: np.ndarray) -> Examples:
    texts = tuple(joined_words(x.tokens, code) for x in parsed)
    return Examples(f"tense {code}", code, texts, None, labels, TENSES, tuple(x.id for x in parsed))


def agreement(test: Mapping[str, Examples]) -> pd.DataFrame:
    """How often a translation's own tree has the label: by language, of a test set of `tense_task`.

    ``marked``: the share of sentences whose tree says past or present (`root_tense`; 0 where trees
    have no tense), ``agree``: the share of these whose tree says the same as the label.
    """
    rows = {}
    for code, part in test.items():
        by_id = {x.id: root_tense(x) for x in trees.load_trees(code, PARALLEL)}
        tenses = np.array([by_id[name] for name in part.ids])
        right = (tenses == part.labels)[tenses >= 0]
        rows[code] = {"marked": len(right) / len(tenses), "agree": pd.Series(right).mean()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("language")
