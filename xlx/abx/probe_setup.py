"""What the probes of the ABX paper (section 5) are trained on: sentences drawn, states, labels.

How many examples: `ProbeSetup` counts what a probe learns from, words for POS and NER and pairs for
NLI, the same number in every language, so that a language is not better because its treebank is
larger. Sentences are drawn whole until there are enough. None takes all words that a language has,
which is as many sentences, but not as many words, in every language; `probe_tables.example_counts`
shows both.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from xlx.core import checks, languages
from xlx.models import loading, pairs, probes, words
from xlx.text import labelled, labelled_sources
from xlx.text.examples import Examples
from xlx.text.shipped import catalogue

LabelledPart = labelled.Tagged | Examples

#: Tasks whose examples are pairs of sentences.
OF_PAIRS = ("NLI", "PI")

#: Sources that the paper does not probe on: Table 2 ticks no languages for them, so all count.
NOT_IN_TABLE_2 = ("sick",)


@dataclass(frozen=True)
class ProbeInput:
    """One split in one language, as a probe sees it: n words or pairs."""

    states: np.ndarray  # float32, (n_layers + 1, n, dim)
    labels: np.ndarray  # (n,), indices into ``labelled.LABELS[task]``
    types: tuple[str, ...]  # word, to which a control task gives one label; number of the pair
    places: list[tuple[int, int]]  # sentence and number of the word; of pairs none
    n_lost: int  # words behind the maximum length or without a subword; pairs that were cut


@dataclass(frozen=True)
class ProbeSetup:
    """What a probe is trained on and how: all that a score depends on but model and language.

    Of each split ``n_train``, ``n_validation``, ``n_test`` examples (words, pairs) of a language;
    None or more than there are: all. In parallel data ``seed`` draws the same positions in every
    language: of pairs just these; of words the first so many in one order, since words a sentence
    differ.

    ``source`` is one of `labelled.load_labelled`. Of NLI the paper takes XNLI (section 5.1); SICK
    ("sick": simple sentences, public splits that share captions, labels that are not balanced) is
    NLI that small models learn, and its accuracies mean something beside ``majority`` alone.
    """

    task: str  # POS, NER, NLI or PI
    n_train: int | None = None
    n_validation: int | None = None
    n_test: int | None = None
    seed: int = 1  # of the sentences drawn
    subword: str = "first"  # or "mean": what stands for a word of several subwords
    form: str = "joint"  # or "concatenated": what stands for a pair (`xlx.models.words`)
    max_length: int | None = None  # subwords of a sentence or pair; None: what the model takes
    hidden: int | None = None  # units of the hidden layer; None: a linear probe
    seeds: tuple[int, ...] = probes.SEEDS  # of the initial weights, one probe each
    path: str | Path | None = None  # a local copy of the full data; None: the shipped subset
    source: str | None = None  # of the labels; None: the paper's

    def __post_init__(self) -> None:
        for name in ("n_train", "n_validation", "n_test", "max_length", "hidden"):
            if getattr(self, name) is not None:
                checks.whole(getattr(self, name), name, least=None)
        checks.one_of(self.subword, words.WORD_SUBWORDS, "subword")
        checks.one_of(self.form, pairs.FORMS, "form")
        if self.source is not None:
            for split in labelled.SPLITS:
                labelled_sources.resolved(self.task, "en", split, self.source, self.path)
        object.__setattr__(self, "seeds", tuple(checks.several(self.seeds, "seeds")))

    def load(self, language: str, split: str, source: str | None = None) -> LabelledPart:
        """A split of a language, as many sentences of it as are asked for; read once.

        Here and in `about`, ``source`` is one for this split alone; None: that of the setup.
        """
        return _load(self, language, split, source or self.source)

    def about(self, language: str, split: str, source: str | None = None) -> dict[str, object]:
        """What names that split, without reading it where it is shipped."""
        if self.path is not None:
            return {"text": self.load(language, split, source).table_hash()}
        n = getattr(self, f"n_{split}")
        drawn = {} if n is None else {"n": n, "seed": self.seed}
        source = source or self.source
        return labelled.about_labelled(self.task, language, split, source=source) | drawn

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of the task."""
        return labelled.LABELS[self.task]


@lru_cache(maxsize=512)
def _load(setup: ProbeSetup, language: str, split: str, source: str | None) -> LabelledPart:
    """Sentences drawn without replacement until they hold enough examples; all if they never do."""
    part = labelled.load_labelled(setup.task, language, split, source=source, path=setup.path)
    n = getattr(setup, f"n_{split}")
    if n is None:
        return part
    if isinstance(part, Examples) or n < 1:  # which is an error
        return part.take(n, setup.seed)
    order = np.random.default_rng(setup.seed).permutation(len(part))
    sizes = np.cumsum([len(part.sentences[i]) for i in order])
    return part.at(sorted(order[: np.searchsorted(sizes, n) + 1].tolist()))


def probe_input(encoder: loading.Encoder, part: LabelledPart, setup: ProbeSetup) -> ProbeInput:
    """The states of a split and the labels that go with them."""
    if isinstance(part, Examples):
        embedded = pairs.embed_pairs(
            encoder, part.first, part.second, form=setup.form, max_length=setup.max_length
        )
        return ProbeInput(embedded.states, part.labels, part.ids, [], embedded.n_cut)
    embedded = words.embed_words(
        encoder, part.sentences, subword=setup.subword, max_length=setup.max_length
    )
    label = {name: index for index, name in enumerate(setup.labels)}
    places = list(zip(embedded.sentence.tolist(), embedded.word.tolist(), strict=True))
    labels = np.array([label[part.tags[sentence][word]] for sentence, word in places])
    types = tuple(part.sentences[sentence][word] for sentence, word in places)
    return ProbeInput(embedded.states, labels, types, places, embedded.n_cut + embedded.n_empty)


def probed_languages(
    task: str, setup: str = "mono", *, source: str | None = None, path: str | Path | None = None
) -> tuple[str, ...]:
    """Languages that Table 2 ticks for a task ("mono" or "CL") and that there is data for.

    Without `path` those that are shipped (from `source` alone, if given); with a local copy of the
    full data all that are ticked. For a source of `NOT_IN_TABLE_2` all languages of the table count
    as ticked.
    """
    ticked = languages.ABX if source in NOT_IN_TABLE_2 else languages.for_task(task, setup)
    if path is not None:
        return ticked
    shipped = catalogue("labelled")
    kept = (shipped["task"] == task) & ((source is None) | (shipped["source"] == source))
    return tuple(code for code in ticked if code in set(shipped.loc[kept, "language"]))
