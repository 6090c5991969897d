"""The nine probing tasks of X-Probe, built from dependency trees in any language.

A probing task is a set of sentences with a label that a sentence vector should give away if it
holds a property of the sentence (section 4, after Conneau et al. 2018, SentEval). `build` makes a
task of `xlx.text.trees` by the rules of `xlx.xprobe.probing_rules`: train, validation and test
parts, balanced, with no sentence in common.

Every sentence has one base, the sentence of a tree that it was made from; parts share none. In the
paper's released data they do in places (`xlx.xprobe.released_tasks`, `overlaps`). SentEval also
kept the nouns of SubjNum and ObjNum in test apart from those in train; the paper does not say so,
and it is not done here.

Ravishankar, Øvrelid and Velldal (2019); sections are numbered as there.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from xlx.core import checks
from xlx.text.trees import Trees, letters
from xlx.xprobe.probing_rules import (
    FINDERS,
    PROBING_TASKS,
    Pool,
    Rules,
    Tokens,
    TooFewSentencesError,
    Usable,
)
from xlx.xprobe.sentence_changes import CHANGED, Changer, changer, shuffled

TASK_PARTS: tuple[str, ...] = ("train", "validation", "test")
#: Sentences of train, validation and test in the paper (section 6.1).
SIZES = (100_000, 10_000, 10_000)


@dataclass(frozen=True)
class TaskPart:
    """A part of a task.

    ``tokens`` has one tuple a sentence; ``labels`` is int64 ``(n,)``, positions in the task's
    classes; ``bases`` names the sentence that each was made from: source, colon, id of the tree.
    """

    tokens: tuple[Tokens, ...]
    labels: np.ndarray
    bases: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def keys(self) -> tuple[str, ...]:
        """Letters and digits of each sentence (`xlx.text.trees.letters`)."""
        return tuple(map(letters, self.tokens))


@dataclass(frozen=True)
class ProbingTask:
    """A probing task in a language; ``n_candidates`` sentences were usable for it."""

    name: str
    language: str
    classes: tuple[str, ...]
    train: TaskPart
    validation: TaskPart
    test: TaskPart
    n_candidates: int

    def __repr__(self) -> str:
        sizes = " / ".join(f"{len(part):,}" for part in self.parts().values())
        return f"Task({self.name} {self.language}: {len(self.classes)} classes, {sizes})"

    def parts(self) -> dict[str, TaskPart]:
        """Train, validation and test by name."""
        return {name: getattr(self, name) for name in TASK_PARTS}

    @property
    def majority(self) -> float:
        """Accuracy in test of the commonest class of train, of several the first: in [0, 1]."""
        counts = np.bincount(self.train.labels, minlength=len(self.classes))
        return float((self.test.labels == counts.argmax()).mean())

    def text_hash(self) -> str:
        """SHA-256 of the sentences and labels of all parts."""
        digest = hashlib.sha256("\t".join(self.classes).encode())
        for name, part in self.parts().items():
            digest.update(f"\n\n{name}\n".encode())
            for tokens, label in zip(part.tokens, part.labels.tolist(), strict=True):
                digest.update("\t".join((str(label), *tokens, "\n")).encode())
        return digest.hexdigest()

    def built(self) -> "ProbingTask":
        """Itself, as of a `task_sets.Planned` task."""
        return self


@dataclass(frozen=True)
class Candidates:
    """The usable sentences of a task; those of a task that changes some have no class yet (0)."""

    pool: Pool
    classes: tuple[str, ...]
    usable: list[Usable]
    change: Changer | None

    @classmethod
    def of(cls, name: str, trees: Trees | Sequence[Trees], rules: Rules) -> "Candidates":
        """What is usable for a task; ValueError for an unknown one."""
        checks.one_of(name, PROBING_TASKS, "task")
        pool = Pool.of(trees)
        if name in FINDERS:
            return cls(pool, *FINDERS[name](pool, rules), None)
        change = changer(name, pool, rules)
        usable = [Usable(i, 0) for i in pool.within(rules) if any(change(i, None))]
        return cls(pool, CHANGED[name], usable, change)

    @property
    def cells(self) -> dict[tuple[int, int], list[int]]:
        """Positions in the pool by bin and class, all classes in each bin that there is."""
        n_classes = 1 if self.change else len(self.classes)
        bins = sorted({item.bin for item in self.usable})
        positions = {(bin_, label): [] for bin_ in bins for label in range(n_classes)}
        for item in self.usable:
            positions[item.bin, item.label].append(item.at)
        return positions

    @property
    def capacity(self) -> dict[int, int]:
        """How many examples of each class every bin can give."""
        if self.change:
            return {0: len(self.usable) // 2}
        rarest: dict[int, int] = {}
        for (bin_, _), positions in self.cells.items():
            rarest[bin_] = min(rarest.get(bin_, len(positions)), len(positions))
        return rarest

    @property
    def largest(self) -> int:
        """The most sentences of a balanced task."""
        return len(self.classes) * sum(self.capacity.values())


def sizes_of(total: int, proportions: tuple[int, int, int] = SIZES) -> tuple[int, int, int]:
    """Sizes of train, validation and test that sum to a total, in the proportions given.

    Raises ValueError where a part would be empty.
    """
    _, *others = (total * share // sum(proportions) for share in proportions)
    sizes = (total - sum(others), *others)
    if min(sizes) < 1:
        raise ValueError(f"{total} sentences in the proportions {proportions} leave a part empty")
    return sizes


def build(
    name: str,
    trees: Trees | Sequence[Trees],
    *,
    sizes: tuple[int, int, int] = SIZES,
    seed: int = 0,
    rules: Rules | None = None,
) -> ProbingTask:
    """Build a probing task (section 4).

    Parameters
    ----------
    name : one of `PROBING_TASKS`.
    trees : parsed sentences of one language, of one source or several; of sentences that are the
        same (letters and digits), the first is taken.
    sizes : sentences of train, validation and test; the paper's by default (section 6.1). A part
        has so many of each class as go into its size: of 100 and six classes, 6 × 16.
    seed : of what is drawn.
    rules : see `Rules`.

    Returns
    -------
    ProbingTask
        In every part each class comes equally often (within each bin of lengths in TreeDepth), and
        no two examples of the task have the same base or the same letters and digits.

    Raises TooFewSentencesError (with what was found and is needed), ValueError for an unknown task,
    trees of several languages, or a part of fewer sentences than there are classes.
    """
    return drawn(name, Candidates.of(name, trees, rules or Rules()), sizes, seed)


def drawn(name: str, candidates: Candidates, sizes: tuple[int, int, int], seed: int) -> ProbingTask:
    """A task of what is usable."""
    n_classes = len(candidates.classes)
    per_class = [size // n_classes for size in sizes]
    if min(per_class) < 1:
        raise ValueError(
            f"{name}: parts of {', '.join(map(str, sizes))} sentences; each needs one or more of "
            f"its {n_classes} classes"
        )
    _check_enough(name, candidates, sum(per_class))
    rng = np.random.default_rng([seed, *name.encode()])
    draw = _draw_changed if candidates.change else _draw_balanced
    parts = {
        part: _part(candidates.pool, examples, rng)
        for part, examples in zip(TASK_PARTS, draw(name, candidates, per_class, rng), strict=True)
    }
    n = len(candidates.usable)
    return ProbingTask(name, candidates.pool.language, candidates.classes, **parts, n_candidates=n)


def _check_enough(name: str, candidates: Candidates, needed: int) -> None:
    """Raise where a class cannot have as many sentences as are needed."""
    there = sum(candidates.capacity.values())
    if there >= needed:
        return
    language = candidates.pool.language
    if candidates.change:
        n = len(candidates.usable)
        said = f"{name} in {language}: {n} sentences are usable, and {2 * needed} are needed"
    else:
        totals = Counter(dict.fromkeys(candidates.classes, 0))
        totals.update(candidates.classes[item.label] for item in candidates.usable)
        rare = [f"{class_}: {n}" for class_, n in totals.most_common()[::-1][:5]]
        more = f" and {len(totals) - len(rare)} more" * (len(totals) > len(rare))
        equals = f"; {there} of each class have equals in length" * (name == "TreeDepth")
        said = f"{name} in {language}: {needed} sentences of each class are needed, and there "
        said += f"are {', '.join(rare)}{more}{equals}"
    raise TooFewSentencesError(
        f"{said}; lower the sizes, change the rules or add text", there, needed
    )


#: A sentence of a part: position in the pool, class, tokens.
_Example = tuple[int, int, Tokens]


def _part(pool: Pool, examples: list[_Example], rng: np.random.Generator) -> TaskPart:
    """The part of some examples, in random order."""
    at, labels, tokens = zip(*shuffled(examples, rng), strict=True)
    bases = tuple(pool.bases[i] for i in at)
    return TaskPart(tokens, np.array(labels, dtype=np.int64), bases)


def _draw_balanced(
    name: str, candidates: Candidates, per_class: list[int], rng: np.random.Generator
) -> list[list[_Example]]:
    """Each class equally often in every part, within every bin."""
    cells = {cell: shuffled(positions, rng) for cell, positions in candidates.cells.items()}
    left = candidates.capacity
    parts = []
    for n in per_class:
        shares = _shares(n, left)
        left = {bin_: left[bin_] - share for bin_, share in shares.items()}
        parts.append(
            [
                (at, label, candidates.pool.tokens[at])
                for (bin_, label), positions in cells.items()
                for at in (positions.pop() for _ in range(shares[bin_]))
            ]
        )
    return parts


def _shares(total: int, capacity: dict[int, int]) -> dict[int, int]:
    """A total divided in proportion to capacities, none of which is exceeded."""
    whole = sum(capacity.values())
    shares = {bin_: total * size // whole for bin_, size in capacity.items()}
    by_remainder = sorted(capacity, key=lambda bin_: (-(total * capacity[bin_] % whole), bin_))
    for bin_ in by_remainder[: total - sum(shares.values())]:
        shares[bin_] += 1
    return shares


def _draw_changed(
    name: str, candidates: Candidates, per_class: list[int], rng: np.random.Generator
) -> list[list[_Example]]:
    """Half of every part changed, so that no example is like another or like another's base."""
    pool = candidates.pool
    waiting = shuffled([item.at for item in candidates.usable], rng)
    bases = {tree.key for tree in pool.trees}
    made: set[str] = set()
    as_they_are: list[int] = []  # what has no changed form that is not there already
    parts = []
    for n in per_class:
        examples: list[_Example] = []
        while len(examples) < n:
            if not waiting:
                there = 2 * (sum(per_class) - n + len(examples))
                raise TooFewSentencesError(
                    f"{name} in {pool.language}: too many changed sentences are alike; {there} of "
                    f"{2 * sum(per_class)} examples could be made; lower the sizes or add text",
                    there,
                    2 * sum(per_class),
                )
            at = waiting.pop()
            own = pool.trees[at].key
            for tokens in candidates.change(at, rng):
                key = letters(tokens)
                if key not in made and (key == own or key not in bases):
                    made.add(key)
                    examples.append((at, 1, tokens))
                    break
            else:
                as_they_are.append(at)
        for _ in range(n):
            at = as_they_are.pop() if as_they_are else waiting.pop()
            examples.append((at, 0, pool.tokens[at]))
        parts.append(examples)
    return parts


# --- what parts share -----------------------------------------------------------------------------


def overlaps(task: ProbingTask) -> pd.DataFrame:
    """What the parts of a task have in common; within one part, what it has twice.

    Returns a row for each pair of parts, each with itself too: first, second; of n_first and
    n_second sentences, how many distinct ones are in both (twice or more, within a part) by
    ``sentences`` (the same letters and digits), ``bags`` (the same tokens in any order: a sentence
    and its swapped form, which share a base) and ``bases``.
    """
    named = {
        name: {
            "sentences": Counter(part.keys),
            "bags": Counter(tuple(sorted(tokens)) for tokens in part.tokens),
            "bases": Counter(part.bases),
        }
        for name, part in task.parts().items()
    }
    rows = []
    for first, second in combinations_with_replacement(TASK_PARTS, 2):
        row: dict[str, object] = {"task": task.name, "language": task.language}
        row |= {"first": first, "second": second}
        row |= {"n_first": len(getattr(task, first)), "n_second": len(getattr(task, second))}
        for kind, of_first in named[first].items():
            if first == second:
                row[kind] = sum(n > 1 for n in of_first.values())
            else:
                row[kind] = len(of_first.keys() & named[second][kind].keys())
        rows.append(row)
    return pd.DataFrame(rows)
