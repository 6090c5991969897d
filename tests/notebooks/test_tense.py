"""The task of tense: the finite verb decides, and nothing that is tested is learnt."""

import pytest

from shared import tense
from tests.text.made import conllu_row as row
from xlx.text.files import TextError, letters
from xlx.text.trees import load_trees, read_trees


def test_the_finite_verb_decides() -> None:
    said = {
        "slept Past": 1,
        "was Past sleeping Pres": 1,
        "is Pres built Past": 0,
        "had Past slept Past": 1,
        "Has Pres slept Past": -1,  # other languages have it as a past
        "will _ sleep _": -1,
    }
    for text, label in said.items():
        *first, form, own = text.split()
        how = f"VerbForm={'Part' if first else 'Fin'}|Tense={own}"
        rows = [row(1, x, "AUX", 2, "aux", f"VerbForm=Fin|Tense={first[1]}") for x in first[:1]]
        rows.append(row(len(rows) + 1, form, "VERB", feats=how))
        assert [tense.finite_tense(x) for x in read_trees(rows, "a", "en")] == [label], text


@pytest.mark.slow
def test_what_is_tested_is_not_learnt_and_is_the_same_in_all_languages() -> None:
    task = tense.tense_task(["en", "de", "zh"], 40, 20)
    learnt, test = task.train["en"], task.test
    assert (set(task.train), learnt.labels.mean(), test["en"].labels.mean()) == ({"en"}, 0.5, 0.5)
    assert not {*map(letters, learnt.first)} & {letters(x.tokens) for x in load_trees("en", "pud")}
    assert test["zh"].first == tense.tense_task(["en", "zh"], 40, 20).test["zh"].first
    with pytest.raises(TextError, match="tense has no th: it has en, ar"):
        tense.tense_task(["en", "th"], 40, 20)


def test_labels_and_agreement_are_what_was_read() -> None:
    whole = tense.tense_task(["en", "de", "zh"], None, None).test
    read = {"n01002032": 1, "n01005031": 0, "n01022005": 0}  # told, estimates, say
    few = {code: part.at(map(part.ids.index, read)) for code, part in whole.items()}
    assert few["de"].labels.tolist() == [*read.values()]
    table = tense.agreement(few)  # "könnten überqueren" and "werden benötigt" have a past form
    assert [*table.loc["de"], table.at["zh", "marked"]] == pytest.approx([1, 1 / 3, 0])
