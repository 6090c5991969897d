"""The gap that shared strings alone leave: against a literal loop, and where it is known."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from shared import igap_tables
from tests import tiny
from xlx.experiment.transfers import TransferTask
from xlx.subjects import loading
from xlx.text.examples import Examples

TEXTS = {
    "en": ("The weather is fine today.", "Yes, the village.", "And tomorrow it will rain."),
    "de": ("Das Wetter ist heute fine.", "Yes, das Dorf.", "Und morgen it regnet."),
    "ja": ("天気がいい。", "Yes", "天気 rain"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save(tmp_path_factory.mktemp("models") / "tiny"))


def made(texts: dict[str, tuple[str, ...]], labels: tuple[int, ...], pairs: bool) -> TransferTask:
    return TransferTask(
        "made",
        {
            code: Examples(
                name=code,
                language=code,
                first=own,
                second=own[1:] + own[:1] if pairs else None,
                labels=np.array(labels),
                classes=("no", "yes"),
                ids=tuple(map(str, range(len(own)))),
            )
            for code, own in texts.items()
        },
        {},
        {},
    )


def literal(name: str, task: TransferTask) -> pd.DataFrame:
    """Counts in dictionaries, one cosine at a time."""
    tokenizer = loading.load(name).tokenizer

    def counts(one: Examples, i: int) -> Counter:
        found = Counter()
        for side, text in enumerate([one.first[i], *([one.second[i]] if one.second else [])]):
            for piece in tokenizer(text, add_special_tokens=False)["input_ids"]:
                found[side, piece] += 1
        return found

    def cosine(a: Counter, b: Counter) -> float:
        product = sum(a[key] * b[key] for key in a)
        return product / np.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))

    rows = []
    for source, of in task.train.items():
        for target, to in task.train.items():
            if source == target:
                continue
            own, wrong = 0, 0
            for i in range(len(to)):
                scores = [cosine(counts(to, i), counts(of, k)) for k in range(len(of))]
                nearest = int(np.argmax(scores))
                own += nearest == i
                wrong += int(of.labels[nearest] != to.labels[i])
            rows.append((source, target, own / len(to), wrong / len(to)))
    return pd.DataFrame(rows, columns=["source", "target", "found", "interlingual"])


@pytest.mark.parametrize("pairs", [False, True])
def test_gap_of_shared_subwords_is_that_of_a_literal_loop(model: str, pairs: bool) -> None:
    task = made(TEXTS, (0, 1, 0), pairs)
    found = igap_tables.shared_subwords(model, task)
    pd.testing.assert_frame_equal(found, literal(model, task))
    assert 0 < found["found"].mean() < 1


def test_translations_that_are_copies_lose_nothing(model: str) -> None:
    found = igap_tables.shared_subwords(
        model, made(dict.fromkeys("ab", TEXTS["en"]), (0, 1, 1), True)
    )
    assert found["found"].tolist() == [1, 1]
    assert found["interlingual"].tolist() == [0, 0]


def test_what_is_wrong_in_the_source_itself_is_no_gap(model: str) -> None:
    twice = ("Yes, the village.", "Yes, the village.", "And tomorrow it will rain.")
    found = igap_tables.shared_subwords(model, made(dict.fromkeys("ab", twice), (0, 1, 1), False))
    assert found["found"].tolist() == [2 / 3, 2 / 3]
    assert found["interlingual"].tolist() == [0, 0]
