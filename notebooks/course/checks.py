"""Checks of the course's exercises: each takes a student's function and says "Right." or a hint.

What is right is said by the package's own function where it has one, else by the definition in
numpy, on a few toy worlds. The dictionary of an exercise has its usual errors: hint → function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from course import worlds as toys
from course.judging import RIGHT, answers, judged, predicted  # noqa: F401
from course.worlds import WORLDS, angles, form, hits, meaning, unit, won
from xlx.measures import abx, igap, mixing, probes, statistics
from xlx.measures import mexa as mexa_measures
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")


# Lesson 1: vectors.
def sentence_vector(mine: object) -> str:
    """The mean of the subwords ``(n, dim)`` that count, boolean ``(n,)``."""
    return judged(
        mine,
        lambda s, c: toys.pooled(s, c, "mean"),
        toys.PADDED,
        {
            "padding counts in your mean. Take `states[counted]` first.": lambda s, c: s.mean(
                axis=0
            ),
            "padding is zero and still counts. Divide by `counted.sum()`.": lambda s, c: (
                (s.T @ c) / len(s)
            ),
            "this is a sum. Divide by the number of subwords.": lambda s, c: s[c].sum(axis=0),
            "this is a number a subword. The mean runs along axis 0.": lambda s, c: s[c].mean(
                axis=1
            ),
            "this is a single number. Keep the dimensions apart: axis 0.": lambda s, c: s[c].mean(),
        },
    )


def cosines(mine: object) -> str:
    """The cosines of every row of x with every row of y, ``(n, n)``."""
    return judged(
        mine,
        angles,
        WORLDS,
        {
            "these are dot products. Divide by the lengths of both vectors.": lambda x, y: x @ y.T,
            "rows of x have length 1. Divide by the lengths of y, too.": lambda x, y: unit(x) @ y.T,
            "rows and columns have changed places. Rows are those of x.": lambda x, y: angles(y, x),
            "these are translations alone. Compare all rows.": lambda x, y: np.diag(angles(x, y)),
        },
    )


def retrieval(mine: object) -> str:
    """The share of rows of x whose most similar row of y is the translation."""

    def found(cosines: np.ndarray, axis: int = 1) -> np.ndarray:
        return cosines.argmax(axis=axis) == np.arange(len(cosines))

    return judged(
        mine,
        lambda x, y: abx.exact({"x": x, "y": y}).scores["retrieval"].item(0),
        WORLDS,
        {
            "you take dot products, which long vectors win.": lambda x, y: found(x @ y.T).mean(),
            "you take the least similar. High is close.": lambda x, y: found(-angles(x, y)).mean(),
            "you search from y to x. Look along rows.": lambda x, y: found(angles(x, y), 0).mean(),
            "this is a number. Divide by how many there are.": lambda x, y: found(
                angles(x, y)
            ).sum(),
        },
    )


# Lesson 2: LD and MD.
def triplet(mine: object) -> str:
    """1 if X is closer to A than to B by cosine, 0 if it is not, one half on a tie."""

    def right(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
        zero = np.zeros(1, dtype=int)
        drawn = abx.Triplets("MD", ("l",), zero, zero, zero, zero, zero + 1, zero + 2)
        return abx.score_triplets({"l": np.stack([x, a, b])}, drawn)[0]

    def by(near: Callable, tie: float = 0.5) -> Callable:
        return lambda x, a, b: (near(x, a) > near(x, b)) + tie * (near(x, a) == near(x, b))

    def cosine(u: np.ndarray, v: np.ndarray) -> float:
        return u @ v / np.sqrt(u @ u) / np.sqrt(v @ v)

    return judged(
        mine,
        right,
        toys.TRIPLETS,
        {
            "this is how often B wins. A high cosine is close.": by(lambda u, v: -cosine(u, v)),
            "a tie has no points in yours. It counts one half.": by(cosine, 0),
            "you compare dot products. Divide by the lengths of A and B.": by(np.dot),
            "this is the Euclidean distance. Take the cosine.": by(
                lambda u, v: -np.linalg.norm(u - v)
            ),
        },
    )


def ld(mine: object) -> str:
    """Exact LD, X in the first language."""
    return judged(
        mine,
        toys.exact("LD"),
        [*WORLDS, toys.TIES],
        {
            "A may be X itself in yours. Leave out the diagonal, a = x.": form(spared=False),
            "ties have no points in yours. They count one half.": form(tie=0),
            "this is 1 − LD. A is of the language of X, and B is not.": lambda x, y: (
                1 - form()(x, y)
            ),
            "your B is the translation of X. It is the translation of A.": lambda x, y: won(
                angles(x, x), np.diag(angles(x, y))[:, None]
            ),
            "this is MD. In LD A is another sentence in the language of X.": meaning(),
        },
    )


def md(mine: object) -> str:
    """Exact MD, X in the first language."""
    return judged(
        mine,
        toys.exact("MD"),
        [*WORLDS, toys.TIES],
        {
            "B may be the translation in yours. Leave out the diagonal, b = x.": meaning(
                spared=False
            ),
            "ties have no points in yours. They count one half.": meaning(tie=0),
            "your B is of the language of X. It belongs in that of A.": lambda x, y: won(
                np.diag(angles(x, y))[:, None], angles(x, x)
            ),
            "this is LD. In MD A is the translation of X.": form(),
            "your X is of the second language. Look along the rows.": lambda x, y: meaning()(y, x),
        },
    )


# Lesson 3: dull causes.
def length_md(mine: object) -> str:
    """MD of two lists of sentences by length alone: the logarithm of 1 + characters."""

    def by(length: Callable, **options: float) -> Callable:
        def score(first: Sequence[str], second: Sequence[str]) -> float:
            x, y = (np.array([length(sentence) for sentence in side]) for side in (first, second))
            near = -np.abs(x[:, None] - y)
            return won(np.diag(near)[:, None], near, **options)

        return score

    def logs(sentence: str) -> float:
        return np.log1p(len(sentence))

    return judged(
        mine,
        by(logs),
        toys.TRANSLATIONS,
        {
            "you count words. Length is in characters here.": by(
                lambda x: np.log1p(len(x.split()))
            ),
            "you compare differences of characters. Take the logarithm first.": by(len),
            "B may be the translation itself in yours. Leave out the diagonal.": by(
                logs, spared=False
            ),
            "ties have no points in yours. They count one half.": by(logs, tie=0),
            "this is how often B wins. A small difference is close.": lambda *of: 1 - by(logs)(*of),
        },
    )


def like_length(mine: object) -> str:
    """Which b may stand beside which a, ``(n, n)``: within 10 % of a's characters, and b ≠ a."""

    def by(allowed: Callable, spared: bool = True) -> Callable:
        def mask(sentences: Sequence[str]) -> np.ndarray:
            n = np.array([*map(len, sentences)])
            return allowed(n[:, None], n) & ~(spared * np.eye(len(n), dtype=bool))

        return mask

    def near(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.abs(b - a) <= 0.1 * a

    return judged(
        mine,
        by(near),
        toys.LENGTHS,
        {
            "every sentence stands beside itself in yours. Leave out the diagonal.": by(
                near, False
            ),
            "you take 10 % of b. Take them of a, which is the row.": by(lambda a, b: near(b, a)),
            "b may be much shorter. Take the absolute difference.": by(
                lambda a, b: b - a <= 0.1 * a
            ),
            "you allow 10 characters. Allow 10 % of a's characters.": by(
                lambda a, b: abs(b - a) <= 10
            ),
        },
    )


def bag(mine: object) -> str:
    """The cosine of the counts of two lists of subwords."""

    def by(side: Callable, length: Callable = np.linalg.norm) -> Callable:
        def cosine(a: Sequence[str], b: Sequence[str]) -> float:
            u, v = (np.array([[*side(x)].count(p) for p in sorted({*a, *b})]) for x in (a, b))
            return u @ v / (length(u) * length(v))

        return cosine

    return judged(
        mine,
        by(list),
        toys.BAGS,
        {
            "each subword counts once in yours. Count how often it occurs.": by(set),
            "this is a dot product. Divide by the lengths of both vectors.": by(list, lambda u: 1),
            "this is the share of subwords in common. Take the cosine of counts.": lambda a, b: (
                len({*a} & {*b}) / len({*a} | {*b})
            ),
            "you divide by numbers of subwords. A length is the root of Σ counts².": by(
                list, np.sum
            ),
        },
    )


# Lesson 4: alignment.
def weighted_mean(mine: object) -> str:
    """The mean of subwords ``(n, dim)`` in which the t-th weighs t."""

    def by(weights: Callable, divided: bool = True) -> Callable:
        each = weights(np.arange(1, 6))
        return lambda s: each[: len(s)] @ s / (each[: len(s)].sum() if divided else 1)

    def right(s: np.ndarray) -> np.ndarray:
        return toys.pooled(s, np.ones(len(s), dtype=bool), "weighted_mean")

    return judged(
        mine,
        right,
        [(states,) for states, _ in toys.PADDED],
        {
            "all subwords weigh the same in yours. The t-th weighs t.": by(np.ones_like),
            "your weights begin at 0, so the first subword is lost. Begin at 1.": by(
                lambda t: t - 1
            ),
            "your weights do not add up to 1. Divide by their sum.": by(np.array, divided=False),
            "the first weighs most in yours. The last one does.": lambda s: right(s[::-1].copy()),
        },
    )


def mexa(mine: object) -> str:
    """The share of hits in a matrix of cosines."""
    return judged(
        mine,
        lambda c: hits(c).mean(),
        toys.COSINES,
        {
            "you look along rows only. A hit is one in both ways.": lambda c: hits(
                c, lambda _, r: r
            ).mean(),
            "you look along columns only. Take rows, too.": lambda c: hits(
                c, lambda k, _: k
            ).mean(),
            "one direction is enough in yours. A hit needs both.": lambda c: hits(
                c, np.minimum
            ).mean(),
            "no translation is above itself. Leave the diagonal out of the rivals.": lambda c: 0,
            "this is a number. Divide by how many there are.": lambda c: hits(c).sum(),
        },
    )


def fewer(mine: object) -> str:
    """μ to be expected with n of ``total`` sentences, from the numbers of rivals."""
    worlds = [([0, 1, 5, 0, 2, 9], 20, 5), ([0, 3, 1], 10, 10)]

    def right(*world: int) -> float:
        return mexa_measures.spared(*world).mean()

    return judged(
        mine,
        right,
        worlds,
        {
            "this is a sum. Take the mean over sentences.": lambda u, N, n: len(u) * right(u, N, n),
            "n others are drawn in yours, and there are n − 1.": lambda u, N, n: (
                right(u, N, n + 1) if n < N else 0
            ),
            "rivals may be drawn twice in yours. Use the binomial coefficients.": lambda u, N, n: (
                np.mean((1 - np.array(u) / (N - 1)) ** (n - 1))
            ),
            "this is μ of all. Some rivals are not drawn.": lambda u, N, n: np.mean(np.equal(u, 0)),
        },
    )


# Lesson 5: transfer.
def parts(mine: object) -> str:
    """Training error, interlingual gap and intralingual gap, of three arrays of wrong answers."""

    def right(s: np.ndarray, t: np.ndarray, v: np.ndarray) -> tuple:
        result = igap.decompose(s, t, v)
        return result.training, result.interlingual, result.intralingual

    return judged(
        mine,
        right,
        toys.WRONG_ANSWERS,
        {
            "the second is an error. A gap is a difference of errors.": lambda s, t, v: (
                s.mean(),
                t.mean(),
                v.mean() - t.mean(),
            ),
            "the last begins at the error on the translations.": lambda s, t, v: (
                s.mean(),
                t.mean() - s.mean(),
                v.mean() - s.mean(),
            ),
            "the gaps have the other sign. What is lost on the way is positive.": lambda s, t, v: (
                s.mean(),
                s.mean() - t.mean(),
                t.mean() - v.mean(),
            ),
            "you count right answers. True is a wrong answer here.": lambda *of: right(
                *(~x for x in of)
            ),
        },
    )


def smallest_gap(mine: object) -> str:
    """IGAP: the smallest gap among checkpoints with 0 ≤ training error − level < room."""

    def by(least: Callable, inside: Callable = statistics.window) -> Callable:
        return lambda e, g, level, room: least(g[inside(e, level, room)])

    return judged(
        mine,
        by(np.min),
        toys.CHECKPOINTS,
        {
            "you take all checkpoints. Some have learnt less.": by(np.min, lambda e, *_: e < 1),
            "some are below the level. The window begins there.": by(
                np.min, lambda e, a, b: e < a + b
            ),
            "this is the mean of the window. IGAP is the smallest gap.": by(np.mean),
            "this is the last checkpoint of the window. IGAP is the smallest gap.": by(
                lambda g: g[-1]
            ),
        },
    )


def ranking(mine: object) -> str:
    """The share of pairs of languages that a prediction, low is good, orders as accuracy does."""

    def pairs(gold: np.ndarray, low: np.ndarray, each: bool = False) -> np.ndarray:
        same = np.sign(gold[:, None] - gold) == np.sign(low - low[:, None])
        return same if each else same[~np.eye(len(gold), dtype=bool)]

    return judged(
        mine,
        lambda gold, low: igap.ranking_accuracy(gold, -low),
        toys.RANKED,
        {
            "a low gap is good. You have it the other way round.": igap.ranking_accuracy,
            "a language is paired with itself in yours.": lambda *of: pairs(*of, each=True).mean(),
            "this is a number. Divide by how many pairs there are.": lambda *of: (
                pairs(*of).sum() / 2
            ),
            "this is a correlation. Count pairs in one order.": lambda a, b: np.corrcoef(a, -b)[
                0, 1
            ],
        },
    )


# Lesson 6: within and across.
def within_across(mine: object) -> str:
    """Means of the diagonal of a grid and of what is off it."""

    def right(g: np.ndarray) -> tuple:
        return mixing.within(g).mean(), mixing.across(g).mean()

    return judged(
        mine,
        right,
        toys.GRIDS,
        {
            "your second mean has the diagonal in it.": lambda g: (np.trace(g) / len(g), g.mean()),
            "the two have changed places. Within comes first.": lambda g: right(g)[::-1],
            "you take one half of the grid. The texts may change places.": lambda g: (
                np.trace(g) / len(g),
                g[np.triu_indices(len(g), 1)].mean(),
            ),
            "you take one language alone. Take all.": lambda g: (g[0, 0], g[0, 1:].mean()),
        },
    )


def by_label(mine: object) -> str:
    """For each of three labels the share of its examples that are answered right."""

    def by(share: Callable) -> Callable:
        return lambda gold, answered: [share(gold == k, answered == k) for k in range(3)]

    return judged(
        mine,
        by(lambda there, answered: answered[there].mean()),
        toys.ANSWERED,
        {
            "you divide by how often the label is said, not there.": by(lambda a, b: a[b].mean()),
            "you divide by all examples. Take those with the label.": by(
                lambda a, b: (a & b).mean()
            ),
            "these are shares of answers. Count those that are right.": by(lambda a, b: b.mean()),
            "these are numbers. Divide by how many have the label.": by(lambda a, b: (a & b).sum()),
        },
    )


def sensitivity(mine: object) -> str:
    """d′ = z(hits) − z(false alarms), with half a call more in one more example."""

    def by(difference: Callable, half: float = 0.5) -> Callable:
        def calls(answered: np.ndarray) -> float:
            return stats.norm.ppf((answered.sum() + half) / (len(answered) + 2 * half))

        return lambda answered, there: difference(calls(answered[there]), calls(answered[~there]))

    return judged(
        mine,
        lambda *of: mixing.sensitivity_values(*of).mean(),
        toys.CALLED,
        {
            "all calls or none give infinity. Add half a call.": by(
                lambda hits, false: hits - false, 0
            ),
            "hits come first: z(hits) − z(false alarms).": by(lambda hits, false: false - hits),
            "you add the two. False alarms are taken away.": by(lambda hits, false: hits + false),
            "these are shares. Take z first (`norm.ppf`).": by(
                lambda *z: stats.norm.cdf(z[0]) - stats.norm.cdf(z[1])
            ),
        },
    )


# Lesson 7: probes.
def commonest(mine: object) -> str:
    """The accuracy on the test of always saying the commonest label of the training examples."""

    def most(labels: Sequence[int]) -> int:
        return np.bincount(labels).argmax()

    return judged(
        mine,
        lambda *of: probes.majority(*of, 3).item(),
        toys.LABELS,
        {
            "you count labels of the test. Count those of training.": lambda _, b: np.mean(
                b == most(b)
            ),
            "this is one in the number of labels. They differ in size.": lambda a, _: 1 / len({*a}),
            "this is the share of the training examples, not of the test.": lambda a, _: np.mean(
                a == most(a)
            ),
            "this is the label. Give the share of the test that has it.": lambda a, _: most(a),
        },
    )


def probe(mine: object) -> str:
    """The accuracy of the nearest mean of a class, by Euclidean distance."""

    def by(nearest: Callable = lambda apart: apart.argmin(axis=1)) -> Callable:
        def accuracy(x: np.ndarray, y: np.ndarray, z: np.ndarray, labels: np.ndarray) -> float:
            means = np.stack([x[y == k].mean(axis=0) for k in range(3)])
            return np.mean(nearest(np.linalg.norm(z[:, None] - means, axis=2)) == labels)

        return accuracy

    return judged(
        mine,
        by(),
        toys.PROBED,
        {
            "you test on the training examples. Ask the others.": lambda x, y, *_: by()(x, y, x, y),
            "your means are of the test. A probe must not see it.": lambda x, y, *test: by()(
                *test, *test
            ),
            "you take the farthest mean. Take the nearest.": by(lambda apart: apart.argmax(axis=1)),
            "this is the share of errors. Count right answers.": lambda *of: 1 - by()(*of),
        },
    )


def control_labels(mine: object) -> str:
    """A label at random for each different word, the same wherever it occurs (Hewitt and Liang)."""
    words = np.random.default_rng(10).choice([*"abcdefghijklmnopqrstuvwxyz"], 200).tolist()
    returned = answers(mine, [(words, 4, seed) for seed in (1, 1, 2)])
    if isinstance(returned, str):
        return returned
    if any(
        np.shape(labels) != (200,) or not np.isin(labels, range(4)).all() for labels in returned
    ):
        return "Not yet: give each word in the list a whole number from 0 to n_labels − 1."
    kinds = {
        word: {int(label) for at, label in zip(words, returned[0], strict=True) if at == word}
        for word in words
    }
    if max(map(len, kinds.values())) > 1:
        return "Not yet: a word has several labels. Draw one for each *different* word."
    if len(set.union(*kinds.values())) < 4:
        return "Not yet: some labels are never given. Draw from all of them."
    if not np.array_equal(returned[0], returned[1]):
        return "Not yet: the same seed gives other labels. Use `np.random.default_rng(seed)`."
    if np.array_equal(returned[0], returned[2]):
        return "Not yet: another seed gives the same labels. They must be drawn by lot."
    return RIGHT


# Lesson 8: printed numbers.
def agrees(mine: object) -> str:
    """Whether a printed mean can be that of printed numbers, all rounded to within ``half``."""

    def by(room: float, lost: int = 0) -> Callable:
        return lambda mean, values, half: (
            abs(np.sum(values) / (len(values) - lost) - mean) <= room * half
        )

    return judged(
        mine,
        by(2),
        toys.MEANS,
        {
            "you forget that the numbers are rounded, too. There are two halves of a unit.": by(1),
            "rounding lets them differ. Allow half a unit for each of the two.": by(0),
            "you divide by n − 1. A mean is a sum over n.": by(2, 1),
            "you say when they do not agree. Say when they do.": lambda *of: not by(2)(*of),
        },
    )


def possible(mine: object) -> str:
    """Whether a share that is printed with four places can be k of n (the GRIM test)."""
    worlds = [(p, n) for n in (9, 28, 900) for p in (0.1111, 0.1112, 0.3214, 0.3215, 0.5, 0.4444)]

    def by(fits: Callable, scale: int = 1) -> Callable:
        return lambda p, n: any(fits(k / n, p / scale) for k in range(n + 1))

    return judged(
        mine,
        by(lambda share, p: round(share, 4) == p),
        worlds,
        {
            "you ask for the share itself. Round it first.": by(
                lambda share, p: abs(share - p) < 1e-9
            ),
            "you round to two places, not four.": by(
                lambda share, p: round(share, 2) == round(p, 2)
            ),
            "you take p for per cent. It is a share.": by(
                lambda share, p: round(share, 4) == p, 100
            ),
            "every share is possible in yours. Not every one is k of n.": lambda p, n: True,
        },
    )


def interval(mine: object) -> str:
    """Wilson's 95 % interval of k of n: low and high."""

    def by(z: float, wilson: bool = True, moved: bool = True) -> Callable:
        def ends(k: int, n: int) -> np.ndarray:
            share, more = k / n, wilson * z**2 / n
            half = z * np.sqrt(share * (1 - share) / n + more / n / 4) / (1 + more)
            return (share + moved * more / 2) / (1 + moved * more) + np.array([-half, half])

        return ends

    return judged(
        mine,
        statistics.share_interval,
        [(45, 50), (1, 12), (30, 100)],
        {
            "this is the normal interval, which leaves 0 to 1. Take Wilson's.": by(
                1.96, wilson=False
            ),
            "z is 1 in yours, which is about 68 %. For 95 % it is 1.96.": by(1),
            "the middle is not the share itself. Add z² / 2n to it.": by(1.96, moved=False),
            "this is one half of it. Give low and high.": lambda k, n: (
                np.diff(by(1.96)(k, n))[0] / 2
            ),
        },
        room=1e-3,
    )
