"""The languages of Table 2, and the reading of language tags."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlx.results import paths
from xlx.text.languages import ABX, LANGUAGES, TABLE_2, base_code, for_task, lowered, parse_tag


def table2():
    with (paths.PUBLISHED / "abx" / "table2_languages.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_table_2_of_the_paper_in_its_order_and_with_its_ticks():
    printed: dict[str, tuple[str, set[str]]] = {}
    for row in table2():
        task = f"{row['task']} {row['setup']}".strip()
        _, ticks = printed.setdefault(row["code"], (row["language"], set()))
        if row["included"] == "1":
            ticks.add(task)
    assert list(printed) == list(ABX)
    assert printed == {code: (each.name, set(each.tasks)) for code, each in LANGUAGES.items()}


@pytest.mark.parametrize("arguments", [("QA",), ("POS",), ("POS", "xx"), ("ABX", "mono")])
def test_unknown_task(arguments):
    with pytest.raises(ValueError, match=r"no column of Table 2 .*NLI CL"):
        for_task(*arguments)


def test_every_name_of_a_language_is_a_tag_of_that_language():
    for code, language in LANGUAGES.items():
        assert language.code == code
        for tag in (language.wmt24pp, language.ntrex, language.flores):
            assert base_code(tag) == code
        assert language.tasks <= set(TABLE_2)


@pytest.mark.parametrize("field", ["wmt24pp", "ntrex", "flores"])
def test_names_in_a_corpus_are_its_own(field):
    corpus = {"flores": "flores200"}.get(field, field)
    with (paths.DATA / "checksums.tsv").open(encoding="utf-8") as file:
        tags = {
            row["tag"] for row in csv.DictReader(file, delimiter="\t") if row["corpus"] == corpus
        }
    named = [getattr(language, field) for language in LANGUAGES.values()]
    assert len(set(named)) == 36
    assert set(named) <= tags


def test_script_agrees_with_that_of_flores():
    same = {"Kore": "Hang"}
    for language in LANGUAGES.values():
        assert language.flores.split("_")[1] == same.get(language.script, language.script)


TAGS = (
    "en=en EN=en eng=en eng_Latn=en_Latn pt_BR=pt_BR pt-br=pt_BR srp-Cyrl=sr_Cyrl es_419=es_419 "
    "zho_Hant_TW=zh_Hant_TW arb_Arab=ar_Arab arz_Arab=arz_Arab pes=fa lvs=lv yue=yue fil_PH=fil_PH "
    "tgl_Latn=tl_Latn twi=tw aka=ak iw=he nob=nb"
)


@pytest.mark.parametrize("tag", TAGS.split())
def test_tags(tag):
    tag, canonical = tag.split("=")
    assert parse_tag(tag) == canonical
    assert parse_tag(canonical) == canonical
    assert base_code(tag) == canonical.split("_")[0]


NO_TAGS = (
    "e xx qaa und mul zxx english notes en.txt en_Xxxx en_XX1 x-foo en-x-foo de_1901 en_US_u_co "
    "en_ _ en__US Latn é 12"
)


@pytest.mark.parametrize("tag", ["", "a b", *NO_TAGS.split()])
def test_no_tags(tag):
    with pytest.raises(ValueError, match="is no language tag; use an ISO 639") as error:
        parse_tag(tag)
    assert "\n" not in str(error.value)


@given(st.text(max_size=12))
def test_any_string_is_a_tag_or_a_value_error(tag):
    try:
        canonical = parse_tag(tag)
    except ValueError:
        return
    assert parse_tag(canonical) == canonical


@given(
    st.sampled_from(ABX),
    st.sampled_from(["", "Latn", "Cyrl", "Arab"]),
    st.sampled_from(["", "BR", "RS", "419"]),
    st.sampled_from("_-"),
    st.booleans(),
)
def test_spelling_of_a_tag_does_not_matter(code, script, region, joint, upper):
    parts = [part for part in (code, script, region) if part]
    tag = joint.join(parts)
    assert parse_tag(tag.upper() if upper else tag) == "_".join(parts)


@pytest.mark.parametrize(
    ("text", "code", "small"),
    [
        ("IŞIK İstanbul", "tr", "ışık istanbul"),
        ("IŞIK İstanbul", "tr_TR", "ışık istanbul"),
        ("BAKI", "az", "bakı"),
        ("I LIKE İstanbul", "en", "i like istanbul"),
        ("Das STRASSENÄQUATOR", "de", "das strassenäquator"),
        ("ΟΔΟΣ ΟΔΟΣ", "el", "οδος οδος".replace("σ", "ς")),
    ],
)
def test_small_letters_are_those_of_the_language(text, code, small):
    assert lowered(text, code) == small
