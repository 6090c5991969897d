"""What the probes of the ABX paper (section 5) are trained on: sentences drawn, states, labels.

How many examples: `ProbeSetup` counts what a probe learns from, words for POS and NER and pairs for
NLI, the same number in every language, so that a language is not better because its treebank is
larger. Sentences are drawn whole until there are enough.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from xlx.core import checks, languages
from xlx.models import loading, pairs, probes, words
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.text.shipped import catalogue

LabelledPart = labelled.Tagged | Examples

#: Tasks whose examples are pairs of sentences.
OF_PAIRS = ("NLI", "PI")


@dataclass(frozen=True)
class ProbeInput:
    """One split in one language, as a probe sees it.

    Attributes
    ----------
    states : np.ndarray
        float32, ``(n_layers + 1, n, dim)``.
    labels : np.ndarray
        ``(n,)``, indices into ``labelled.LABELS[task]``.
    types : tuple of str
        ``(n,)``: the word, to which a control task gives one label wherever it stands; of a pair
        its number, since no pair comes twice.
    places : list of tuple
        ``(n,)``: sentence and number of the word; of pairs none.
    n_lost : int
        Words behind the maximum length or without a subword; pairs that were cut.
    """

    states: np.ndarray
    labels: np.ndarray
    types: tuple[str, ...]
    places: list[tuple[int, int]]
    n_lost: int


@dataclass(frozen=True)
class ProbeSetup:
    """What a probe is trained on and how: all that a score depends on but model and language.

    Attributes
    ----------
    task : {"POS", "NER", "NLI"}
    n_train, n_validation, n_test : int, optional
        Examples (words, pairs) of a language in each split; None or more than there are: all.
    seed : int
        Of the sentences drawn. In parallel data the same positions in every language: of pairs
        just these; of words the first so many in one order, since words a sentence differ.
    subword : {"first", "mean"}
        What stands for a word of several subwords.
    form : {"joint", "concatenated"}
        What stands for a pair (see `xlx.models.words`).
    max_length : int, optional
        Subwords of a sentence or pair; None: what the model takes.
    hidden : int, optional
        Units of the hidden layer; None: a linear probe.
    seeds : tuple of int
        Of the initial weights, one probe each.
    path : str or Path, optional
        A local copy of the full data; None: the shipped subset.
    """

    task: str
    n_train: int | None = None
    n_validation: int | None = None
    n_test: int | None = None
    seed: int = 1
    subword: str = "first"
    form: str = "joint"
    max_length: int | None = None
    hidden: int | None = None
    seeds: tuple[int, ...] = probes.SEEDS
    path: str | Path | None = None

    def __post_init__(self) -> None:
        for name in ("n_train", "n_validation", "n_test", "max_length", "hidden"):
            if getattr(self, name) is not None:
                checks.whole(getattr(self, name), name, least=None)
        checks.several(self.seeds, "seeds")

    def load(self, language: str, split: str, source: str | None = None) -> LabelledPart:
        """A split of a language, as many sentences of it as are asked for.

        Kept in memory, so that the checkpoints of a series do not read it anew.
        """
        return _load(self.task, language, split, source, self.path, self._size(split), self.seed)

    def about(self, language: str, split: str, source: str | None = None) -> dict[str, object]:
        """What names that split, without reading it where it is shipped."""
        if self.path is not None:
            return {"text": self.load(language, split, source).table_hash()}
        drawn = {"n": self._size(split), "seed": self.seed} if self._size(split) is not None else {}
        return labelled.about_labelled(self.task, language, split, source=source) | drawn

    def _size(self, split: str) -> int | None:
        return {"train": self.n_train, "validation": self.n_validation, "test": self.n_test}[split]

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of the task."""
        return labelled.LABELS[self.task]


@lru_cache(maxsize=512)
def _load(
    task: str,
    language: str,
    split: str,
    source: str | None,
    path: str | Path | None,
    n: int | None,
    seed: int,
) -> LabelledPart:
    part = labelled.load_labelled(task, language, split, source=source, path=path)
    return part if n is None else _enough(part, n, seed)


def _enough(part: LabelledPart, n: int, seed: int) -> LabelledPart:
    """Sentences drawn without replacement until they hold n examples; all if they never do."""
    if isinstance(part, Examples) or n < 1:  # which is an error
        return part.take(n, seed)
    order = np.random.default_rng(seed).permutation(len(part))
    sizes = np.cumsum([len(part.sentences[i]) for i in order])
    kept = sorted(order[: np.searchsorted(sizes, n) + 1].tolist())
    return part.at(kept)


def probe_input(encoder: loading.Encoder, part: LabelledPart, setup: ProbeSetup) -> ProbeInput:
    """The states of a split and the labels that go with them."""
    if isinstance(part, Examples):
        embedded = pairs.embed_pairs(
            encoder, part.first, part.second, form=setup.form, max_length=setup.max_length
        )  # fmt: skip
        return ProbeInput(embedded.states, part.labels, part.ids, [], embedded.n_cut)
    embedded = words.embed_words(
        encoder, part.sentences, subword=setup.subword, max_length=setup.max_length
    )
    label = {name: index for index, name in enumerate(setup.labels)}
    places = list(zip(embedded.sentence.tolist(), embedded.word.tolist(), strict=True))
    return ProbeInput(
        embedded.states,
        np.array([label[part.tags[sentence][word]] for sentence, word in places]),
        tuple(part.sentences[sentence][word] for sentence, word in places),
        places,
        embedded.n_cut + embedded.n_empty,
    )


def probed_languages(
    task: str,
    setup: str = "mono",
    *,
    source: str | None = None,
    path: str | Path | None = None,
) -> tuple[str, ...]:
    """Languages that Table 2 ticks for a task ("mono" or "CL") and that there is data for.

    Without `path` those that are shipped (from `source` alone, if given); with a local copy of the
    full data all that are ticked.
    """
    ticked = languages.for_task(task, setup)
    if path is not None:
        return ticked
    shipped = catalogue("labelled")
    kept = (shipped["task"] == task) & ((source is None) | (shipped["source"] == source))
    return tuple(code for code in ticked if code in set(shipped.loc[kept, "language"]))
