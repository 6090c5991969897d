"""The nine probing tasks of X-Probe, built from dependency trees in any language.

A probing task is a set of sentences with a label that a sentence vector should give away if it
holds a property of the sentence (section 4, after Conneau et al. 2018, SentEval). `build` makes a
task of `xlx.text.trees` by the rules of `xlx.xprobe.probing_rules`: train, validation and test
parts, balanced, with no sentence in common.

Every sentence has one base, the sentence of a tree that it was made from; parts share none. In the
paper's released data they do in places (`xlx.xprobe.released_tasks`, `overlaps`). SentEval also
kept the nouns of SubjNum and ObjNum in test apart from those in train; the paper does not say so,
and it is not done here (Ravishankar, Øvrelid and Velldal 2019).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

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


@dataclass(frozen=True, eq=False)
class ProbingTask:
    """A probing task in a language."""

    name: str
    language: str
    classes: tuple[str, ...]
    train: TaskPart = field(repr=False)
    validation: TaskPart = field(repr=False)
    test: TaskPart = field(repr=False)

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


def overlaps(task: ProbingTask) -> dict[str, int]:
    """What the parts of a task have in common, summed over pairs of parts.

    How many distinct ones are in both by ``sentences`` (the same letters and digits), ``bags`` (the
    same tokens in any order: a sentence and its swapped form, which share a base) and ``bases``.
    """
    named = [
        {
            "sentences": set(part.keys),
            "bags": {tuple(sorted(tokens)) for tokens in part.tokens},
            "bases": set(part.bases),
        }
        for part in task.parts().values()
    ]
    return {
        kind: sum(len(one[kind] & other[kind]) for one, other in combinations(named, 2))
        for kind in named[0]
    }


# --- building -------------------------------------------------------------------------------------


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
    """Build one of `PROBING_TASKS` of parsed sentences of one language, from one source or several.

    ``sizes`` are the sentences of train, validation and test. A part has so many of each class as
    go into its size: of 100 and six classes, 6 × 16. In every part each class comes equally often
    (within each bin of lengths in TreeDepth), and no two examples of the task have the same base or
    the same letters and digits.

    Raises TooFewSentencesError, ValueError for an unknown task, trees of several languages, or a
    part of fewer sentences than there are classes.
    """
    return drawn(name, Candidates.of(name, trees, rules or Rules()), sizes, seed)


def drawn(name: str, candidates: Candidates, sizes: tuple[int, int, int], seed: int) -> ProbingTask:
    """A task of what is usable."""
    n_classes, pool = len(candidates.classes), candidates.pool
    per_class = [size // n_classes for size in sizes]
    if min(per_class) < 1:
        raise ValueError(
            f"{name}: parts of {', '.join(map(str, sizes))} sentences; each needs one or more of "
            f"its {n_classes} classes"
        )
    there, needed = sum(candidates.capacity.values()), sum(per_class)
    if there < needed:
        said = f"{there} sentences of each class can be had, and {needed} are needed"
        if candidates.change:
            n = len(candidates.usable)
            said = f"{n} sentences are usable, and {2 * needed} are needed"
        raise TooFewSentencesError(
            f"{name} in {pool.language}: {said}; lower the sizes, change the rules or add text"
        )
    rng = np.random.default_rng([seed, *name.encode()])
    draw = _draw_changed if candidates.change else _draw_balanced
    parts = {
        part: _part(pool, examples, rng)
        for part, examples in zip(TASK_PARTS, draw(name, candidates, per_class, rng), strict=True)
    }
    return ProbingTask(name, pool.language, candidates.classes, **parts)


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
                    f"{2 * sum(per_class)} examples could be made; lower the sizes or add text"
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
