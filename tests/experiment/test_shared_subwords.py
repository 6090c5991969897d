"""The gap that shared strings alone leave: against a literal loop, and where it is known."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from xlx.experiment import transfers
from xlx.experiment.transfers import TransferTask
from xlx.subjects import loading
from xlx.text.examples import Examples

TEXTS = {
    "en": ("The weather is fine today.", "Yes, the village.", "And tomorrow it will rain."),
    "de": ("Das Wetter ist heute fine.", "Yes, das Dorf.", "Und morgen it regnet."),
    "ja": ("天気がいい。", "Yes", "天気 rain"),
}


def made(texts: dict[str, tuple[str, ...]], labels: tuple[int, ...], pairs: bool) -> TransferTask:
    train = {
        code: Examples(
            name=code,
            language=code,
            first=own,
            second=own[1:] + own[:1] if pairs else None,
            labels=np.array(labels),
            classes=("no", "yes"),
            ids=tuple("abc"),
        )
        for code, own in texts.items()
    }
    return TransferTask("made", train, {}, {})


def literal(name: str, task: TransferTask) -> pd.DataFrame:
    """Counts in dictionaries, one cosine at a time."""
    tokenizer = loading.load(name).tokenizer

    def counts(one: Examples, i: int) -> Counter:
        sides = [one.first[i], *([one.second[i]] if one.second else [])]
        return Counter(
            (side, piece)
            for side, text in enumerate(sides)
            for piece in tokenizer(text, add_special_tokens=False)["input_ids"]
        )

    def cosine(a: Counter, b: Counter) -> float:
        product = sum(a[key] * b[key] for key in a)
        return product / np.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))

    rows = []
    for source, of in task.train.items():
        for target, to in task.train.items():
            if source != target:
                scores = [
                    [cosine(counts(to, i), counts(of, k)) for k in range(3)] for i in range(3)
                ]
                nearest = np.argmax(scores, axis=1)
                wrong = (of.labels[nearest] != to.labels).mean()
                rows.append((source, target, (nearest == range(3)).mean(), wrong))
    return pd.DataFrame(rows, columns=["source", "target", "found", "interlingual"])


@pytest.mark.parametrize("pairs", [False, True])
def test_gap_of_shared_subwords_is_that_of_a_literal_loop(model: str, pairs: bool) -> None:
    task = made(TEXTS, (0, 1, 0), pairs)
    found = transfers.shared_subwords(model, task)
    pd.testing.assert_frame_equal(found, literal(model, task))
    assert 0 < found["found"].mean() < 1


def test_copies_lose_nothing_and_what_is_wrong_in_the_source_itself_is_no_gap(model: str) -> None:
    twice = ("Yes, the village.", "Yes, the village.", "And tomorrow it will rain.")
    for text, pairs, share in ((TEXTS["en"], True, 1), (twice, False, 2 / 3)):
        task = made(dict.fromkeys("ab", text), (0, 1, 1), pairs)
        found = transfers.shared_subwords(model, task)
        assert found["found"].tolist() == [share, share]
        assert found["interlingual"].tolist() == [0, 0]
