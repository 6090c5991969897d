"""How much a translation tells of its original, by words alone, and what is lost at equal measure.

No model that is tested has a say: words are matched by IBM Model 1 (Brown et al. 1993, section 4.2,
https://aclanthology.org/J93-2003), learnt from other texts than those that are graded.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from shared.claims import ENDS
from xlx.experiment.transfers import TransferTask
from xlx.measures.igap import crossed_interval
from xlx.results import work
from xlx.subjects import identity, loading
from xlx.subjects.states import tokenise
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.text.files import sentences_hash

#: Steps of EM; the share of a subword's probability that the translation decides, the rest being
#: how common it is; the subword that stands for no word; and more than any vocabulary has.
N_STEPS, TRUST, NO_WORD, SIZE = 5, 0.5, 0, 2**24
Subwords = Sequence[Sequence[int]]


def graded(task: TransferTask, source: str, tokenizer: str) -> dict[str, np.ndarray]:
    """Of each pair to train on and each other language, in the task's order, arrays ``(L, n)``.

    ``right``: bits that the translation tells of a subword of the source's texts; ``wrong``: those
    that the translation of another pair tells; ``shared``: the share of the shorter text's distinct
    subwords that the other text of the translated pair has, too. Words are learnt from XNLI's texts
    that the task does not teach. TextError as `labelled.parallel_examples`.
    """
    learn = other_texts(task, source)
    about = {
        "source": source,
        "tokenizer": identity.fingerprint(tokenizer),
        "pairs": {code: part.text_hash() for code, part in task.train.items()},
        "learnt": {code: sentences_hash(texts) for code, texts in learn.items()},
    }
    return work.result(GRADES, about, task.train, learn, source, tokenizer)


def other_texts(task: TransferTask, source: str) -> dict[str, list[str]]:
    """Premises and hypotheses of XNLI that the task does not teach in the source, each once."""
    parts = [
        labelled.parallel_examples("NLI", task.languages, split, source="xnli-whole")[0]
        for split in ("train", "test")
    ]
    texts = {code: [*_both(parts[0][code]), *_both(parts[1][code])] for code in task.languages}
    taught = {*_both(task.train[source])}
    places = {text: i for i, text in enumerate(texts[source]) if text not in taught}
    return {code: [rows[i] for i in places.values()] for code, rows in texts.items()}


def _both(part: Examples) -> list[str]:
    return [*part.first, *part.second]


def _grades(
    pairs: Mapping[str, Examples], learn: Mapping[str, Sequence[str]], source: str, tokenizer: str
) -> dict[str, np.ndarray]:
    read, n, rows = loading.tokenizer(tokenizer), len(pairs[source]), []

    def subwords(texts: Sequence[str]) -> Subwords:
        return tokenise(read, list(texts), limit=None, add_special_tokens=False)[0]["input_ids"]

    taught, asked = subwords(learn[source]), subwords(_both(pairs[source]))
    counts = np.bincount(np.concatenate([*taught, *asked]), minlength=len(read)) + 1
    for code in (x for x in pairs if x != source):
        right = subwords(_both(pairs[code]))
        wrong = [right[side + (i + n // 2) % n] for side in (0, n) for i in range(n)]
        table = _table(taught, subwords(learn[code]))
        bits = [_bits(table, counts / counts.sum(), asked, x, n) for x in (right, wrong)]
        sets = [(set(a), set(b)) for a, b in zip(right[:n], right[n:], strict=True)]
        rows.append([*bits, [len(a & b) / max(1, min(len(a), len(b))) for a, b in sets]])
    values = np.array(rows, dtype=np.float32).swapaxes(0, 1)
    return dict(zip(("right", "wrong", "shared"), values, strict=True))


GRADES = work.Kind("states", _grades, tolerance=0.01, function="translation_grades")


def _matched(originals: Subwords, translations: Subwords) -> tuple[np.ndarray, np.ndarray]:
    """Each subword of the originals with all of its translation and `NO_WORD`: place, match."""
    texts = [(x, [NO_WORD, *y]) for x, y in zip(originals, translations, strict=True)]
    sizes = [len(y) for x, y in texts for _ in x]
    matches = [np.add.outer(x, SIZE * np.array(y)).ravel() for x, y in texts]
    return np.repeat(np.arange(len(sizes)), sizes), np.concatenate(matches)


def _table(originals: Subwords, translations: Subwords) -> pd.Series:
    """p(subword of the original | subword of the translation) by match."""
    places, matches = _matched(originals, translations)
    index, match = np.unique(matches, return_inverse=True)
    p, other = np.ones(len(index)), index // SIZE
    for _ in range(N_STEPS):
        counts = np.bincount(match, p[match] / np.bincount(places, p[match])[places])
        p = counts / np.bincount(other, counts)[other]
    return pd.Series(p, index)


def _bits(
    table: pd.Series, common: np.ndarray, originals: Subwords, translations: Subwords, n: int
) -> np.ndarray:
    """Bits that translations tell of a subword, beyond how ``common`` it is, by pair ``(n,)``."""
    places, matches = _matched(originals, translations)
    likely = np.bincount(places, table.reindex(matches, fill_value=0)) / np.bincount(places)
    bits = np.log2(TRUST * likely / common[np.concatenate(originals)] + 1 - TRUST)
    pair = np.repeat(np.arange(len(originals)) % n, [*map(len, originals)])
    return np.bincount(pair, bits) / np.bincount(pair)


# --- losses at equal measure ----------------------------------------------------------------------


def at_equal(
    lost: np.ndarray, covariates: Sequence[np.ndarray], groups: np.ndarray
) -> tuple[pd.DataFrame, np.ndarray]:
    """Losses ``(L, S, n)`` of languages as if all had the mean of each covariate, ``(L, n)``.

    A linear regression with an effect of each pair and of each language: slopes come from where a
    pair is translated better or worse than it is elsewhere and than its language is. Returns
    ``value, low, high`` (`igap.crossed_interval`, the slopes taken as known) by language, and the
    slopes.
    """
    x = np.array(covariates, dtype=float)
    away = x.mean(axis=2) - x.mean(axis=(1, 2))[:, None]
    x, y = (v - v.mean(axis=-1, keepdims=True) for v in (x, lost.mean(axis=1)))
    x, y = (v - v.mean(axis=-2, keepdims=True) for v in (x, y))
    slopes = np.linalg.lstsq(x.reshape(len(x), -1).T, y.ravel())[0]
    equal = lost - (slopes @ away)[:, None, None]
    return pd.DataFrame([crossed_interval(z, groups) for z in equal], columns=ENDS), slopes
