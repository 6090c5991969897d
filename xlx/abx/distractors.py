"""Which sentence may be B in meaning discrimination: masks for `abx.exact`.

MD asks whether X is nearer to its translation A than to another sentence B of that language. Any
other sentence will do in the paper, so anything that a sentence and its translation share and two
sentences of a corpus do not can answer: how long they are, what document they are from, what words
they hold. Each mask takes one such answer away. It is language of B → boolean ``(n, n)``, ``[a,
b]``: whether sentence b may be B where A is sentence a; the diagonal does not matter.

==================  ===============================================================================
``like length``     b has as many characters as a, give or take a tenth: length tells next to
                    nothing. The *matched* MD of the notebooks.
``same document``   b is from the document of a: topic, style and names tell little
``other document``  the rest; beside ``same document`` it says what the document gives away
``same domain``     b is of the domain of a (news, social media ...)
``near``            b is among the ten sentences that share most subwords with a: hard negatives
==================  ===============================================================================
"""

import numpy as np
from scipy import sparse

from xlx.models import embeddings
from xlx.models.loading import Encoder
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

#: B has as many characters as A, give or take this share.
LENGTH_TOLERANCE = 0.1
#: Of so many sentences that share most subwords with A, B is one.
N_NEIGHBOURS = 10

#: Language of B → ``(n, n)``.
Mask = dict[str, np.ndarray]


def standard_masks(encoder: Encoder, corpus: ParallelCorpus) -> dict[str, Mask]:
    """The masks of the table above, as far as the corpus has documents and domains."""
    masks = {"like length": length_matched(corpus), "near": subword_neighbours(encoder, corpus)}
    for name, labels in (("document", corpora.documents(corpus)), ("domain", corpus.domains)):
        same = label_shared(labels)
        if 1 < len(set(labels)) < len(labels):
            masks[f"same {name}"] = dict.fromkeys(corpus.languages, same)
            if name == "document":
                masks["other document"] = dict.fromkeys(corpus.languages, ~same)
    return masks


def length_matched(corpus: ParallelCorpus, share: float = LENGTH_TOLERANCE) -> Mask:
    """b has as many characters as a, give or take a share of those of a."""
    masks = {}
    for language, sentences in corpus.sentences.items():
        counts = np.array([*map(len, sentences)])
        masks[language] = np.abs(counts - counts[:, None]) <= share * counts[:, None]
    return masks


def label_shared(labels: tuple[str, ...]) -> np.ndarray:
    """b has the label of a."""
    return np.equal.outer(*[np.unique(labels, return_inverse=True)[1]] * 2)


def subword_neighbours(encoder: Encoder, corpus: ParallelCorpus, k: int = N_NEIGHBOURS) -> Mask:
    """b is one of the k sentences with the highest cosine to a in counts of subwords.

    Of the vocabulary of a model; all that are as near as the kth.
    """
    bags = embeddings.bag_of_subwords(encoder, corpus)
    return {language: _neighbours(counts, k) for language, counts in bags.items()}


def _neighbours(counts: sparse.csr_array, k: int) -> np.ndarray:
    counts = counts.astype(np.float64)
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    # Rounded, so that sentences that are equally near are so on every processor.
    cosines = np.round((counts @ counts.T).toarray() / np.outer(norms, norms), 9)
    np.fill_diagonal(cosines, -1)
    kth = np.sort(cosines, axis=1)[:, -min(k, len(cosines) - 1)]
    return cosines >= kth[:, None]
