"""What trained and mapped encoders answer: inference in each language, translations found.

Each answer is a result by itself, found again without the weights that it took.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

from xlx.core import work
from xlx.core.ledger import Value
from xlx.xprobe import word_mapping
from xlx.xprobe.encoder_inputs import EncoderError, Sentences
from xlx.xprobe.encoder_recipes import Inference, Inferred, Mapped, both_sides, trained
from xlx.xprobe.encoder_training import Nli, accuracy_of, nli_predictions
from xlx.xprobe.parallel_text import ParallelText
from xlx.xprobe.sentence_encoders import ENCODER_NAMES, encode
from xlx.xprobe.word_spaces import Lookup, load_lookups


@dataclass(frozen=True, eq=False)
class Answers:
    """The course of a training, and what the encoder then says of pairs of inference.

    ``history`` as of `Nli` or `Aligned`; ``predicted`` int64 ``(n,)``, places in ``labelled.NLI``;
    ``accuracy`` in [0, 1].
    """

    history: pd.DataFrame
    predicted: np.ndarray
    accuracy: float


def answered(recipes: Sequence[Inferred | Mapped], asked: Sequence[Inference]) -> list[Answers]:
    """What encoders answer, each to its own pairs.

    Raises EncoderError as `trained`.
    """
    abouts = [
        {"encoder": own.ask, "asked": pairs.about}
        for own, pairs in zip(recipes, asked, strict=True)
    ]

    def calls(missing: list[int]) -> list[work.Call]:
        found = []
        for type_ in (Inferred, Mapped):
            at = [position for position in missing if isinstance(recipes[position], type_)]
            made = trained([recipes[position] for position in at])
            english = trained([getattr(recipes[x], "nli", recipes[x]) for x in at])
            load_lookups([asked[position].lookup for position in at])
            found += [
                ([position], (nli, own.state, own.history, *asked[position].loaded[:2]))
                for position, own, nli in zip(at, made, english, strict=True)
            ]
        return found

    values = work.results(ANSWERS, abouts, calls, what="encoders asked", alone=True)
    found = []
    for value, pairs in zip(values, asked, strict=True):
        predicted = value["predicted"].astype(np.int64)
        history = pd.DataFrame({x: y for x, y in value.items() if x != "predicted"})
        found.append(Answers(history, predicted, accuracy_of(predicted, pairs.labels)))
    return found


def inference_accuracies(
    asked: Mapping[tuple[str, str], tuple[Inferred | Mapped, Inference]],
) -> pd.DataFrame:
    """Accuracy on inference: ``encoder`` (as figures call it), ``language``, ``accuracy``.

    ``asked`` has an encoder (of `ENCODERS`) and a language, by the names of the rows, with the
    recipe and the pairs.
    """
    answers = answered(*map(list, zip(*asked.values(), strict=True)))
    rows = [
        (ENCODER_NAMES[name], language, own.accuracy)
        for (name, language), own in zip(asked, answers, strict=True)
    ]
    return pd.DataFrame(rows, columns=["encoder", "language", "accuracy"])


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Translations, among which an encoder of ``target``'s language is to find each sentence's own.

    Attributes
    ----------
    encoder : Inferred or Mapped, optional
        ``Inferred``: the English encoder itself, which reads the target's words in the space of the
        English ones, so with no mapping of sentences. None: the mean of the words' vectors.
    parallel : Parallel
        English first.
    source, target : Lookup
        Of both languages' words; without ``target`` English is held against itself.
    skip : int
        Pairs of lines at the front that are passed over: those that the encoder was mapped by.
    """

    encoder: Inferred | Mapped | None
    parallel: ParallelText
    source: Lookup
    target: Lookup | None
    skip: int = 0

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides what is found."""
        lookups = {"source": self.source.ask, "target": self.target and self.target.ask}
        own = self.encoder and self.encoder.ask
        lines = {"translations": self.parallel.about, "skip": self.skip}
        return {"encoder": own} | lines | lookups

    def sides(self) -> tuple[Sentences, Sentences]:
        """Sentences of both languages; EncoderError where all are passed over."""
        both = both_sides(self.parallel, self.source, self.target)
        rows = range(self.skip, len(both[0]))
        if not rows:
            raise EncoderError(f"skip is {self.skip}, and there are {len(both[0])} translations")
        return both[0].take(rows), both[1].take(rows)


def retrieved(asked: Sequence[Retrieval]) -> pd.DataFrame:
    """How well encoders give translations like vectors, a row each.

    Returns
    -------
    DataFrame
        ``n`` (translations), ``found`` (share of target sentences whose nearest English one, by
        cosine, is their translation: P@1; chance is 1 / n) and ``cosine`` (mean of translations).
    """

    def calls(missing: list[int]) -> list[work.Call]:
        found = []
        for type_ in (Inferred, Mapped, type(None)):
            at = [position for position in missing if isinstance(asked[position].encoder, type_)]
            recipes = [asked[position].encoder for position in at]
            made = english = [None] * len(at)
            if type_ is not type(None):
                made = trained(recipes)
                english = trained([getattr(own, "nli", own) for own in recipes])
            lookups = [own for x in at for own in (asked[x].source, asked[x].target)]
            load_lookups([own for own in lookups if own is not None])
            found += [
                ([position], (nli, own and own.state, *asked[position].sides()))
                for position, own, nli in zip(at, made, english, strict=True)
            ]
        return found

    tables = work.results(
        RETRIEVED, [own.about for own in asked], calls, what="translations", alone=True
    )
    return pd.concat(tables, ignore_index=True)


def _retrieved(
    nli: Nli | None,
    state: Mapping[str, np.ndarray] | None,
    source: Sentences,
    target: Sentences,
) -> pd.DataFrame:
    if nli is None:
        x, y = (np.stack([own.vectors[ids].mean(0) for ids in own.ids]) for own in (source, target))
    else:
        states = (nli.state, source), (state, target)
        x, y = (encode(nli.name, nli.sizes, weights_, own) for weights_, own in states)
    own = np.arange(len(x))
    found = word_mapping.precision_at_1(y, x, np.column_stack([own, own]))
    cosine = functional.cosine_similarity(torch.from_numpy(x), torch.from_numpy(y)).mean()
    row = {"n": len(x), "found": float(found.mean()), "cosine": float(cosine)}
    return pd.DataFrame([row])


def _answered(
    nli: Nli,
    state: Mapping[str, np.ndarray],
    history: pd.DataFrame,
    premises: Sentences,
    hypotheses: Sentences,
) -> Value:
    predicted = nli_predictions(nli, premises, hypotheses, state=state).astype(np.int8)
    return {x: y.to_numpy() for x, y in history.items()} | {"predicted": predicted}


def _answers_apart(stored: Value, computed: Value) -> float:
    """How far accuracies of the epochs are apart, or the share of pairs answered otherwise.

    The number of epochs may differ, where two of them are nearly equal.
    """
    pairs = stored["predicted"], computed["predicted"]
    if pairs[0].shape != pairs[1].shape:
        return math.inf
    reached = abs(stored["accuracy"].max() - computed["accuracy"].max())
    return max(float(reached), float(np.mean(pairs[0] != pairs[1])))


ANSWERS = work.Kind(
    "xprobe-nli", _answered, version=1, tolerance=0.15, difference=_answers_apart,
    side_by_side=True, shared_seconds=120.0,  # word vectors, the English encoder
)  # fmt: skip
RETRIEVED = work.Kind(
    "xprobe-retrieval", _retrieved, version=1, tolerance=0.05, side_by_side=True,
    shared_seconds=120.0,
)  # fmt: skip
