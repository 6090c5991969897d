"""What is lost when the direction of number that English taught is erased from other languages.

    python data/erasure/erase.py multilingual-e5-small gemma-3-270m     # writes effects.csv

An eraser (`shared.erasure`) is fitted on words of the English treebank: on their number, on the
tense of finite verbs, on number dealt anew at random, and in each language on its own number. Then
a probe for the number of nouns learns from a treebank and is tested on Parallel UD, its states as
they are and erased. In a decoder the states of all places are erased behind a layer, and the verb
of `pairs.tsv` that agrees is told from the other by their log-probabilities. Intervals are over
documents, and of differences to the random erasers, paired.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from shared.erasure import ENGLISH, KEYS, RANDOM, Eraser, balanced, eraser, paired_effects
from shared.ridge import fit_ridge
from xlx.subjects.loading import Encoder, language_model, load
from xlx.subjects.words import embed_words
from xlx.text.trees import Tree, load_trees

HERE = Path(__file__).parent
OTHERS = ("de", "fr", "es")
#: Sentences that are read: of the English treebank, of others, of Parallel UD; nouns to learn from.
N_ENGLISH, N_OTHERS, N_TESTED, N_LEARNT = 400, 150, 100, 300
#: Pairs of a language that a decoder is asked, as many of each number.
N_PAIRS = 100
#: Steps between layers, shuffled copies of number, and sentences that are read at once.
STEP, SEEDS, BATCH = 3, (1, 2), 64
#: What is erased; the last of the language itself, which no other can exceed.
NUMBER, TENSE = "English number", "English tense"
ITSELF = "number of the language itself"
Value = Callable[[Tree, int], int | None]


def number(tree: Tree, i: int) -> int | None:
    """0 and 1 for a word of singular and plural that is no name."""
    seen = tree.features[i].get("Number") if tree.upos[i] != "PROPN" else None
    return {"Sing": 0, "Plur": 1}.get(seen)


def noun(tree: Tree, i: int) -> int | None:
    """The same of nouns alone."""
    return number(tree, i) if tree.upos[i] == "NOUN" else None


def tense(tree: Tree, i: int) -> int | None:
    """0 and 1 for the past and present of finite verbs."""
    features = tree.features[i]
    return {"Past": 0, "Pres": 1}.get(features.get("Tense")) if "Mood" in features else None


class Words:
    """States of the words of trees at each `STEP` of layers, read once."""

    def __init__(self, encoder: Encoder, trees: Sequence[Tree]) -> None:
        self.trees, parts, at = trees, [], []
        for start in range(0, len(trees), BATCH):
            texts = [tree.tokens for tree in trees[start : start + BATCH]]
            read = embed_words(encoder, texts, subword="mean")
            parts.append(read.states[::STEP].copy())
            at += zip(start + read.sentence, read.word, strict=True)
        self.states = np.concatenate(parts, axis=1)
        self.row = {(int(s), int(w)): k for k, (s, w) in enumerate(at)}

    def labelled(self, value: Value) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of words that are whole tokens, their values, and the ids of their sentences."""
        rows = [
            (self.row[s, tree.token_of[i]], label, tree.id)
            for s, tree in enumerate(self.trees)
            for i in range(len(tree))
            if (label := value(tree, i)) is not None
            and (s, tree.token_of[i]) in self.row
            and tree.tokens[tree.token_of[i]] == tree.words[i]
        ]
        return tuple(map(np.array, zip(*rows, strict=True)))


def fitted(states: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> list[Eraser]:
    """An eraser a layer."""
    return [eraser(layer[rows].astype(float), labels) for layer in states]


def erasers(english: Words) -> dict[str, list[Eraser]]:
    """By name those that English teaches."""
    rows, labels, _ = english.labelled(number)
    made = {NUMBER: fitted(english.states, rows, labels)}
    made[TENSE] = fitted(english.states, *english.labelled(tense)[:2])
    for seed in SEEDS:
        dealt = np.random.default_rng(seed).permutation(labels)
        made[f"{RANDOM} {seed}"] = fitted(english.states, rows, dealt)
    return made


def probes(learnt: Words, tested: Words, made: Mapping[str, list[Eraser]]) -> Iterator[tuple]:
    """Measure, layer, what is erased, documents, whether a noun's number is told."""
    rows, labels, groups = (x[balanced(y[1], N_LEARNT)] for y in [learnt.labelled(noun)] for x in y)
    others, truth, ids = (x[balanced(y[1], 10**6)] for y in [tested.labelled(noun)] for x in y)
    documents = np.array([x[:-3] for x in ids])
    for layer, (states, tests) in enumerate(zip(learnt.states, tested.states, strict=True)):
        train, test = states[rows].astype(float), tests[others].astype(float)
        names = ["nothing", *made]
        erased = [test, *(layers[layer](test) for layers in made.values())]
        read = fit_ridge(train, labels, groups, erased, 2).predicted
        for name, part in zip(names, read, strict=True):
            yield "probe as it was", STEP * layer, name, documents, part == truth
        for name, layers in made.items():
            (part,) = fit_ridge(
                layers[layer](train), labels, groups, [layers[layer](test)], 2
            ).predicted
            yield "probe learnt anew", STEP * layer, name, documents, part == truth
        yield "probe learnt anew", STEP * layer, "nothing", documents, read[0] == truth


@torch.inference_mode()
def agreement(name: str, pairs: pd.DataFrame, made: Mapping[str, list[Eraser]]) -> Iterator[tuple]:
    """Measure, layer, what is erased, documents, log-odds of the right verb; and whether above 0.

    A batch has one length, so nothing is padded. Behind a layer stand its rows once more, erased
    in each way; the layers above read all that there is.
    """
    model, pieces = language_model(name)
    base, head = model.base_model, model.get_output_embeddings().weight
    ids = [pieces(text, verbose=False)["input_ids"] for text in pairs["prefix"]]
    forms = [
        [pieces(f" {x}", add_special_tokens=False)["input_ids"][0] for x in pairs[column]]
        for column in ("right", "wrong")
    ]
    layers = range(2 * STEP, len(base.layers), 2 * STEP)
    ways = {
        layer: [
            Eraser(*(torch.tensor(x, dtype=head.dtype) for x in fits[layer // STEP]))
            for fits in made.values()
        ]
        for layer in layers
    }
    size = 0

    def hook(layer: int) -> Callable:
        def more(_: object, __: object, output: torch.Tensor | tuple) -> torch.Tensor | tuple:
            states = output if isinstance(output, torch.Tensor) else output[0]
            states = torch.cat([states, *(erase(states[:size]) for erase in ways[layer])])
            return states if isinstance(output, torch.Tensor) else (states, *output[1:])

        return more

    hooks = [base.layers[layer - 1].register_forward_hook(hook(layer)) for layer in layers]
    odds = np.empty((1 + len(layers) * len(made), len(ids)))
    lengths = np.array([*map(len, ids)])
    for length in np.unique(lengths):
        alike = np.flatnonzero(lengths == length)
        for some in np.array_split(alike, 1 + len(alike) // BATCH):
            size = len(some)
            states = base(torch.tensor([ids[i] for i in some]), use_cache=False)[0][:, -1]
            right, wrong = (head[[tokens[i] for i in some]] for tokens in forms)
            read = states.view(-1, size, states.shape[-1]) * (right - wrong)
            odds[:, some] = read.sum(dim=-1).numpy()
    for handle in hooks:
        handle.remove()
    documents = pairs["id"].str[:-3].to_numpy()
    names = [(layer, erased) for layer in layers for erased in made]
    for k, (layer, erased) in enumerate([*((x, "nothing") for x in layers), *names]):
        values = odds[max(0, k - len(layers) + 1)]
        yield "log-odds", layer, erased, documents, values
        yield "agreement", layer, erased, documents, values > 0


def items(name: str) -> Iterator[pd.DataFrame]:
    """Of a model each noun or pair that is asked, by `KEYS`, with its document and value.

    An encoder is asked by probes, a decoder by agreement, in English too.
    """
    encoder, pairs = load(name), pd.read_csv(HERE / "pairs.tsv", sep="\t")
    made = erasers(Words(encoder, load_trees(ENGLISH).trees[:N_ENGLISH]))
    decodes = encoder.kind == "decoder"
    for code in (ENGLISH, *OTHERS) if decodes else OTHERS:
        ways = dict(made)
        if code != ENGLISH:
            learnt = Words(encoder, load_trees(code).trees[:N_OTHERS])
            rows, labels, _ = learnt.labelled(number)
            ways[ITSELF] = fitted(learnt.states, rows, labels)
        if decodes:
            del ways[f"{RANDOM} {SEEDS[-1]}"]
            answers = agreement(name, pairs[pairs["language"] == code][:N_PAIRS], ways)
        else:
            tested = Words(encoder, load_trees(code, "pud").trees[:N_TESTED])
            answers = probes(learnt, tested, ways)
        for row in answers:
            yield table(name, code, *row)


def table(
    name: str, code: str, measure: str, layer: int, erased: str, documents: object, values: object
) -> pd.DataFrame:
    """A row an item."""
    keys = dict(zip(KEYS, (name, measure, layer, code, erased.rstrip(" 0123456789")), strict=True))
    value = np.asarray(values, dtype=float)
    return pd.DataFrame(keys | {"document": documents, "item": range(len(value)), "value": value})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python data/erasure/erase.py")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    every = [part for name in parser.parse_args().models for part in items(name)]
    measured = paired_effects(pd.concat(every, ignore_index=True))
    measured.to_csv(HERE / "effects.csv", index=False, float_format="%.4f")
