"""What measurements of models on a corpus have in common: asks, layers, weights of languages."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import sparse

from xlx.measures import abx
from xlx.measures.abx import SCORES
from xlx.results import checks, ledger, work
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import Name, RecordedCheckpoint, identify, series_name
from xlx.subjects.loading import Encoder
from xlx.text import languages, parallel
from xlx.text.parallel import ParallelCorpus


def layers_of_mean(
    n_layers: int, layers: Sequence[int] | None, embedding_layer: bool = True
) -> list[int]:
    """Layers that count: those named (negative ones from the last), or all, 0 if asked for."""
    if layers is None:
        return list(range(0 if embedding_layer else 1, n_layers))
    return sorted(checks.layers(layers, n_layers, from_last=True))


def texts_of(corpus: ParallelCorpus) -> list[list[str]]:
    """What names the text of a corpus in an ask: each language with its hash."""
    return [[code, corpus.text_hash(code)] for code in corpus.languages]


def values_of(
    kind: work.Kind,
    names: Sequence[Name],
    corpus: ParallelCorpus,
    options: Mapping[str, object],
    *rest: object,
    about: Mapping[str, object] | None = None,
    what: str = "",
) -> list[ledger.Value]:
    """A kind's value of each model on a corpus: ``kind.compute(name, corpus, options, *rest)``.

    ``about`` is what decides them beside the states, which `embeddings.corpus_about` names. None
    for a `loading.RecordedCheckpoint` of which nothing is stored: its weights are not here.
    """
    asks = [states.corpus_about(name, corpus, **options) | dict(about or {}) for name in names]
    return work.results(
        kind,
        asks,
        lambda missing: (([i], (names[i], corpus, options, *rest)) for i in missing),
        what=what,
        alone=True,
        uncomputable=[i for i in range(len(names)) if isinstance(names[i], RecordedCheckpoint)],
    )


def same_shapes(stored: ledger.Value, computed: ledger.Value) -> bool:
    """Whether two values hold arrays of the same names and shapes."""
    shapes = ({name: array.shape for name, array in value.items()} for value in (stored, computed))
    return next(shapes) == next(shapes)


def language_weights(pairs: Sequence[tuple]) -> tuple[list, np.ndarray]:
    """The languages, and ``(n_languages, n_pairs)`` that averages over the pairs of each."""
    languages = list(dict.fromkeys(code for pair in pairs for code in pair))
    inside = np.array([[float(code in pair) for pair in pairs] for code in languages])
    return languages, inside / inside.sum(axis=1, keepdims=True)


#: B has as many characters as A, give or take this share.
LENGTH_TOLERANCE = 0.1
#: Of so many sentences that share most subwords with A, B is one.
N_NEIGHBOURS = 10
#: Language of B → ``(n, n)``.
Mask = dict[str, np.ndarray]


def standard_masks(encoder: Encoder, corpus: ParallelCorpus) -> dict[str, Mask]:
    """The masks of the table above, as far as the corpus has documents and domains."""
    masks = {"like length": length_matched(corpus), "near": subword_neighbours(encoder, corpus)}
    for name, labels in (("document", parallel.documents(corpus)), ("domain", corpus.domains)):
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
    bags = states.bag_of_subwords(encoder, corpus)
    return {language: _neighbours(counts, k) for language, counts in bags.items()}


def _neighbours(counts: sparse.csr_array, k: int) -> np.ndarray:
    counts = counts.astype(np.float64)
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    # Rounded, so that sentences that are equally near are so on every processor.
    cosines = np.round((counts @ counts.T).toarray() / np.outer(norms, norms), 9)
    np.fill_diagonal(cosines, -1)
    kth = np.sort(cosines, axis=1)[:, -min(k, len(cosines) - 1)]
    return cosines >= kth[:, None]


def history(
    name: str, *, leave_out: Sequence[int] = (), recorded: bool = False
) -> list[identity.Checkpoint] | list[str]:
    """The checkpoints of a series in the order of training; a model without a history is itself.

    ``recorded``: those whose weights are not shipped, too (`loading.recorded_checkpoints`);
    `leave_out` names steps to skip: the paper leaves out step 450,000, where its training was
    unstable (footnote 7). Raises ValueError for a step that the series does not have.
    """
    try:
        checkpoints = (identity.recorded_checkpoints if recorded else identity.checkpoints)(name)
    except identity.NoHistoryError:
        if leave_out:
            raise
        return [name]
    steps = [checkpoint.step for checkpoint in checkpoints]
    unknown = [step for step in leave_out if step not in steps]
    if unknown:
        raise ValueError(
            f"{name} has no checkpoint {unknown[0]} to leave out: it has "
            f"{', '.join(map(str, steps))}"
        )
    return [checkpoint for checkpoint in checkpoints if checkpoint.step not in leave_out]


#: MD among sentences of like length: the score that stands first.
MATCHED = "MD, like length"
#: The tasks of which errors are kept by language.
BY_LANGUAGE = ("LD", "MD", MATCHED)
#: How pairs are weighed in a mean over all: each alike, or by the branches, or scripts, of its
#: languages, so that each pair of branches, or scripts, counts alike.
WEIGHTINGS = ("pairs", "branches", "scripts")
#: Steps between the lowest and the highest difference of a layer: its errors keep three digits.
_STEPS = 2**8 - 1
#: Steps between a score of 0 and of 1, where it is of one of the other masks.
_SHARES = 2**16 - 1
# --- spaces ---------------------------------------------------------------------------------------

#: The vectors of one layer, by language, to vectors of the same shapes.
Space = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


def centred(vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Without the mean of each language."""
    return {code: rows - rows.mean(axis=0, dtype=np.float64) for code, rows in vectors.items()}


def standardised(vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every dimension with mean 0 and standard deviation 1 over all languages.

    A few dimensions of large variance decide the cosines of many models (Timkey and van Schijndel
    2021). A dimension that never varies stays at 0.
    """
    stacked = np.concatenate(list(vectors.values())).astype(np.float64)
    mean, sd = stacked.mean(axis=0), stacked.std(axis=0)
    scale = np.where(sd > 0, sd, 1)
    return {code: (rows - mean) / scale for code, rows in vectors.items()}


#: By name, what is done to the vectors of a layer before they are compared.
SPACES: dict[str, Space] = {"raw": dict, "centred": centred, "standardised": standardised}


# --- a checkpoint ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckpointScores:
    """The scores of one checkpoint on one corpus.

    ``left_out_change``: of what is left out ("documents", "sentences") → of what is averaged (a
    weighting, or "languages") → task → the mean without each group less the mean, ``(n_layers,
    n_groups)``, by language ``(n_layers, n_languages, n_groups)``. ``sizes``: what is left out →
    positions of each group, in the order of their sorted names.
    """

    model: str  # or series
    step: int  # of training; 0 where the model has no history
    space: str
    scores: abx.PairScores  # at every layer
    left_out_change: dict[str, dict[str, dict[str, np.ndarray]]]
    sizes: dict[str, np.ndarray]
    cut: dict[str, int]  # language → sentences cut at the maximum length
    texts: tuple[str, ...]  # SHA-256 of the text of each language

    @property
    def tasks(self) -> list[str]:
        """What is scored: LD, MD, retrieval, and MD of each mask."""
        return list(self.scores.scores)

    def table(self) -> pd.DataFrame:
        """`PairScores.table` with the columns ``model``, ``checkpoint`` and ``space`` in front."""
        about = {"model": self.model, "checkpoint": self.step, "space": self.space}
        table = self.scores.table()
        return table.assign(**about)[[*about, *table.columns]]


def checkpoint_scores(
    names: Sequence[Name], corpus: ParallelCorpus, *, space: str = "raw", **options: object
) -> list[CheckpointScores]:
    """LD, MD, retrieval and MD under masks, of models, for all pairs of languages and all layers.

    Options (``pooling``, ``max_length``) as `embeddings.embed_corpus`; errors as its,
    `models.load`'s and `abx.exact`'s. Masks are `distractors.standard_masks`. Where vectors are
    computed, languages that a model cannot read are warned of (`checks.TextWarning`). Left out, and
    warned of, are checkpoints whose weights are not here and of which nothing is stored
    (`loading.RecordedCheckpoint`).
    """
    names = checks.several(names, "models")
    checks.loaded(corpus)
    checks.one_of(space, SPACES, "space")
    if len(corpus.languages) < 2:
        raise ValueError("two languages or more are needed: a score compares languages")
    labels = {"documents": parallel.documents(corpus), "domains": corpus.domains}
    about = {"space": space} | {what: label_runs(of_it) for what, of_it in labels.items()}
    values = values_of(CHECKPOINT, names, corpus, options, space, about=about, what="ABX")
    _tell_of_missing(names, values)
    scores = []
    for name, value in zip(names, values, strict=True):
        if value is None:
            continue
        identity = identify(name)
        about = {"model": series_name(identity), "step": identity.step or 0, "space": space}
        scores.append(unpacked_scores(value, corpus, **about))
    return scores


def _tell_of_missing(names: Sequence[Name], values: Sequence[ledger.Value | None]) -> None:
    """Warn of checkpoints without a value."""
    missing: dict[str, list[str]] = {}
    for name, value in zip(names, values, strict=True):
        if value is None:
            missing.setdefault(name.name, []).append(f"{name.step:,}")
    for series, steps in missing.items():
        warnings.warn(
            f"{series}: left out are the checkpoints {', '.join(steps)}: their weights are not "
            "shipped, and their scores on this text, with these options, are not stored",
            stacklevel=3,
        )


def label_runs(labels: Sequence[str]) -> str:
    """Labels by position as runs of equal ones, "0*3 1 2*5": what groups the positions, no more."""
    codes = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    changes = [i for i in range(len(labels)) if not i or labels[i] != labels[i - 1]]
    ends = [*changes[1:], len(labels)]
    runs = [(codes[labels[i]], end - i) for i, end in zip(changes, ends, strict=True)]
    return " ".join(f"{code}*{length}" if length > 1 else str(code) for code, length in runs)


def groupings(corpus: ParallelCorpus) -> dict[str, Sequence[object]]:
    """What is left out of a corpus → the group of each position."""
    return {"documents": parallel.documents(corpus), "sentences": range(len(corpus))}


def pair_weights(pairs: Sequence[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Weighting → the weight of each pair, ``(n_pairs,)``; the weights of each sum to 1.

    A language of which nothing is known is a branch and a script of its own.
    """
    known = languages.LANGUAGES
    weights = {"pairs": np.full(len(pairs), 1 / len(pairs))}
    for name, of in (("branches", "branch"), ("scripts", "script")):
        kinds = {code: getattr(known[code], of) if code in known else code
                 for pair in pairs for code in pair}  # fmt: skip
        of_pair = [tuple(sorted(kinds[code] for code in pair)) for pair in pairs]
        sizes = pd.Series(of_pair).value_counts()
        weights[name] = np.array([1 / sizes[kind] for kind in of_pair]) / len(sizes)
    return weights


def _checkpoint(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], space: str
) -> dict[str, np.ndarray]:
    """What `unpacked_scores` reads: scores of pairs, changes without documents and sentences."""
    encoder = loading.load(name)
    embedded = states.embed_corpus(encoder, corpus, **options)
    layers = (
        SPACES[space]({code: x[layer] for code, x in embedded.states.items()})
        for layer in range(embedded.n_layers + 1)
    )
    packed = packed_scores(layers, corpus, standard_masks(encoder, corpus), device=encoder.device)
    return packed | {"cut": np.array([embedded.cut[code] for code in corpus.languages])}


def packed_scores(
    layers: Iterable[Mapping[str, np.ndarray]],
    corpus: ParallelCorpus,
    masks: Mapping[str, Mask],
    **options: object,
) -> dict[str, np.ndarray]:
    """A value of `CHECKPOINT` but ``cut``, from the vectors of each layer."""
    groups, by_layer = groupings(corpus), []
    for vectors in layers:
        exact = abx.exact(vectors, masks=masks, groups=groups, **options)
        by_layer.append(_packed(exact))
    packed = {part: np.stack([of[part] for of in by_layer]) for part in by_layer[0]}
    return packed | {f"made {task}": counts for task, counts in exact.masked.items()}


def _packed(exact: abx.PairScores) -> dict[str, np.ndarray]:
    """One layer: comparisons won, each counted twice, or their share; and coded differences."""
    n = exact.n_sentences
    weights = pair_weights(exact.pairs)
    weights["languages"] = language_weights(exact.pairs)[1]
    packed = {}
    for task, scores in exact.scores.items():
        made = exact.masked.get(task, n * (n - 1))
        if task == "retrieval":
            packed[f"score {task}"] = scores[0].astype(np.float32)
        elif task in BY_LANGUAGE:
            packed[f"won {task}"] = np.rint(2 * made * scores[0]).astype(np.uint32)
        else:
            packed[f"share {task}"] = np.rint(_SHARES * scores[0]).astype(np.uint16)
        for what, left_out in exact.left_out.items():
            differences = left_out[task][0] - scores[0].mean(axis=-1, keepdims=True)
            for averaged, weight in weights.items():
                if not _kept(what, averaged, task):
                    continue
                part = f"{what} {averaged} {task}"
                coded = _coded(weight @ differences)
                packed |= {f"{sort} {part}": array for sort, array in coded.items()}
    return packed


def _kept(what: str, averaged: str, task: str) -> bool:
    """Whether an average without each group is kept."""
    if averaged == "languages" or what == "sentences":
        return task in BY_LANGUAGE and (what == "documents" or averaged == "pairs")
    return True


def _coded(differences: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers as steps between their lowest and their highest."""
    lowest, highest = np.nanmin(differences), np.nanmax(differences)
    step = (highest - lowest) / _STEPS or 1.0
    codes = np.rint((np.nan_to_num(differences, nan=lowest) - lowest) / step).astype(np.uint8)
    return {"codes": codes, "lowest": np.float64(lowest), "step": np.float64(step)}


def _differences(value: Mapping[str, np.ndarray], part: str) -> np.ndarray:
    codes = value[f"codes {part}"]
    lowest, step = (
        value[f"{sort} {part}"].reshape(-1, *[1] * (codes.ndim - 1)) for sort in ("lowest", "step")
    )
    return codes * step + lowest


def _pair_scores(value: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """Task → ``(n_layers, n_pairs, 2)``, in the order of `abx.exact`."""
    scores = {}
    for part in value:
        sort, _, task = part.partition(" ")
        if sort == "score":
            scores[task] = value[part].astype(np.float64)
        elif sort == "won":
            scores[task] = value[part] / (2 * value.get(f"made {task}", n * (n - 1)))
        elif sort == "share":
            scores[task] = value[part] / _SHARES
    return {task: scores[task] for task in sorted(scores, key=[*SCORES, *scores].index)}


def unpacked_scores(
    value: Mapping[str, np.ndarray], corpus: ParallelCorpus, *, model: str, step: int, space: str
) -> CheckpointScores:
    """The scores that a value of `CHECKPOINT` holds."""
    n = len(corpus)
    scores = _pair_scores(value, n)
    left_out_change: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for what in groupings(corpus):
        for averaged in (*WEIGHTINGS, "languages"):
            kept = [task for task in scores if _kept(what, averaged, task)]
            if kept:
                left_out_change.setdefault(what, {})[averaged] = {
                    task: _differences(value, f"{what} {averaged} {task}") for task in kept
                }
    masked = {part[len("made ") :]: counts for part, counts in value.items() if "made " in part}
    pairs, layers = tuple(combinations(corpus.languages, 2)), tuple(range(len(scores["LD"])))
    return CheckpointScores(
        model,
        step,
        space,
        abx.PairScores(pairs, layers, n, scores, {}, {}, masked),
        left_out_change,
        {what: group_sizes(of_position) for what, of_position in groupings(corpus).items()},
        dict(zip(corpus.languages, value["cut"].tolist(), strict=True)),
        tuple(map(corpus.text_hash, corpus.languages)),
    )


def group_sizes(of_position: Sequence[object]) -> np.ndarray:
    """How many positions each group has, in the order of their sorted names."""
    return np.unique(np.asarray(of_position).astype(str), return_counts=True)[1]


def scores_apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of two values' scores of languages, or of their differences."""
    if not same_shapes(stored, computed):
        return np.inf
    n = stored["codes sentences pairs LD"].shape[-1]
    _, weights = language_weights(list(combinations(range(len(stored["cut"])), 2)))
    scores, others = _pair_scores(stored, n), _pair_scores(computed, n)
    largest = float(np.abs(stored["cut"].astype(int) - computed["cut"]).max())
    for task in scores:
        change = (scores[task] - others[task]).mean(axis=-1)
        largest = max(largest, float(np.abs(change @ weights.T).max()))
    for part in (part.partition(" ")[2] for part in stored if part.startswith("codes ")):
        change = np.abs(_differences(stored, part) - _differences(computed, part))
        largest = max(largest, float(change.max()))
    return largest


#: A value: ``cut``, and of each task what `_pair_scores` and `_differences` read.
CHECKPOINT = work.Kind(
    "abx-checkpoint", _checkpoint, version=1, tolerance=5e-4, difference=scores_apart
)
