"""Labelled data: what is shipped, the public layouts, and every way a file can be malformed."""

import csv
import hashlib
import io
import re
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.made import conllu_row as word
from tests.text.made import put
from xlx.results import paths
from xlx.text import labelled, languages, parallel
from xlx.text.examples import Examples, class_counts
from xlx.text.files import TextError, catalogue, letters
from xlx.text.labelled import LABELS, NLI, PI, SPLITS, Tagged
from xlx.text.labelled import load_labelled as load
from xlx.text.parallel_sets import aligned

# --- small files in the public formats ------------------------------------------------------------

CONLLU = f"""\
# newdoc id = d1
# sent_id = a-1
# text = Im Haus #1.
{word("1-2", "Im", "_")}
{word(1, "In", "ADP")}
{word(2, "dem", "DET")}
{word(3, "Haus", "NOUN")}
{word("3.1", "steht", "VERB")}
{word(4, "#1", "NOUN")}
{word(5, "Hà Nội", "PROPN")}

# sent_id a-1
{word(1, "und", "CONJ")}
"""  # UD 1: an id within its document, and CONJ
TWO = "Anna\tB-PER\n#\tO\nin\tO\nBad\tB-LOC\nEms\tI-LOC\n\nRom\tB-LOC\n"
FIVE = (
    "# sent_id = set-1\n# text = Ana i EU\n1\tAna\tB-PER\tB-PER\t-\n2\ti\tO\tO\t-\n"
    "3\tEU\tB-OTH\tB-OTH\tx\n\n# sent_id = set-2\n1\tOna\tO\tO\t-\n"
)
THREE = 'Er ging "heim.\tEr ging.\tentailment\nEr ging "heim.\tEr blieb.\tcontradiction\n'
SIB = 'index_id\tcategory\ttext\n12\tpolitics\t"""Ja"", sagt sie."\n7\tsports\tEr \u2028läuft.\n'
PAWS = (
    "id\tsentence1\tsentence2\tlabel\n"
    '3\t"Ja" ist ein Lied .\tEin Lied heißt "Ja"\t1\n'
    "7\tA liegt in B .\tNS\t0\n"
    "12\tA liegt in B .\tB liegt in A .\t0\n"
    "20\tC\tD\tNA\n"
)
MNLI = "premise\thypo\tlabel\nEs regnet .\tEs ist trocken .\tcontradictory\n"
XNLI = (
    "language\tgold_label\tsentence1_parse\tsentence1\tsentence2\tpromptID\tpairID\tmatch\n"
    "ar\tneutral\t(\ta\tb\t1\t1\tTrue\nde\tneutral\t(\tc\td\t1\t1\tTrue\n"
    "de\tentailment\t(\tc\te\t1\t2\tTrue\n"
)


@pytest.mark.parametrize(
    ("language", "split", "source", "name"),
    [
        ("deu", "train", None, "UD_German-GSD/de_gsd-ud-train.conllu"),
        ("de", "test", "pud", "UD_German-PUD/de_pud-ud-test.conllu"),
        ("ar", "validation", None, "UD_Arabic-PADT/ar-ud-dev.OLD201604.conllu"),
        ("ca", "test", None, "ca_ancora-ud-test.OLD202110.conllu"),
        ("gl", "train", None, "deep/UD_Galician-CTG/gl_ctg-ud-train.conllu"),
    ],
)
def test_conllu_gives_syntactic_words_and_upos(tmp_path, language, split, source, name) -> None:
    put(tmp_path, name, CONLLU.replace("\n", "\r\n" if language == "ar" else "\n"))
    put(tmp_path, "UD_German-PUD/xx_pud-ud-test.conllu", "another language")
    read = load("POS", language, split, source=source, path=tmp_path)
    assert read.sentences == (("In", "dem", "Haus", "#1", "Hà Nội"), ("und",))
    assert read.tags == (("ADP", "DET", "NOUN", "NOUN", "PROPN"), ("CCONJ",))
    assert (read.ids, read.n_words, len(read)) == (("a-1", "2"), 6, 2)
    assert read.name == f"{source or 'ud'} {read.language} {split}"


def test_of_several_treebanks_that_which_is_shipped(tmp_path: Path) -> None:
    put(tmp_path, "UD_German-HDT/de_hdt-ud-dev.conllu", word(1, "nicht", "PART"))
    put(tmp_path, "UD_German-GSD/de_gsd-ud-dev.conllu", word(1, "ja", "INTJ"))
    assert load("POS", "de", "validation", path=tmp_path).sentences == (("ja",),)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train-de.tsv", TWO),
        ("de/train", re.sub(r"(?m)^(?=.)", "de:", TWO)),
        ("de/train", TWO),
        ("panx/train-de.tsv", "\ufeff" + TWO + "\n\n"),
    ],
)
def test_wikiann_in_both_layouts(tmp_path: Path, name: str, text: str) -> None:
    put(tmp_path, name, text)
    read = load("NER", "de", "train", path=tmp_path)
    assert read.sentences == (("Anna", "#", "in", "Bad", "Ems"), ("Rom",))
    assert read.tags == (("B-PER", "O", "O", "B-LOC", "I-LOC"), ("B-LOC",))
    assert (read.name, read.ids, read.repaired) == ("wikiann de train", ("1", "2"), 0)


def test_a_prefix_that_not_all_words_have_is_part_of_the_word(tmp_path: Path) -> None:
    put(tmp_path, "train-de.tsv", "de:facto\tO\nRom\tB-LOC\n")
    assert load("NER", "de", "train", path=tmp_path).sentences == (("de:facto", "Rom"),)


def test_i_without_b_is_read_as_b_and_counted(tmp_path: Path) -> None:
    tags = ["I-PER", "I-PER", "I-LOC", "O", "I-LOC", "B-ORG", "I-LOC"]
    text = "".join(f"w{i}\t{tag}\n" for i, tag in enumerate(tags)) + "\nw\tI-LOC\n"
    put(tmp_path, "dev-ja.tsv", text)
    read = load("NER", "ja", "validation", path=tmp_path)
    first = ("B-PER", "I-PER", "B-LOC", "O", "B-LOC", "B-ORG", "B-LOC")
    assert (read.tags, read.repaired) == ((first, ("B-LOC",)), 5)


def test_uner_reads_oth_as_o(tmp_path: Path) -> None:
    put(tmp_path, "UNER_Croatian-SET/hr_set-ud-dev.iob2", FIVE)
    read = load("NER", "hr", "validation", source="uner", path=tmp_path)
    assert read.sentences == (("Ana", "i", "EU"), ("Ona",))
    assert read.tags == (("B-PER", "O", "O"), ("O",))
    assert (read.ids, read.repaired) == (("set-1", "set-2"), 0)


def test_xnli_in_its_three_layouts(tmp_path: Path) -> None:
    put(tmp_path, "a/test-de.tsv", THREE)
    put(tmp_path, "b/xnli.test.tsv", XNLI)
    put(tmp_path, "b/multinli.train.de.tsv", MNLI)
    read = load("NLI", "de", "test", path=tmp_path / "a")
    assert (read.first, read.second) == (('Er ging "heim.',) * 2, ("Er ging.", "Er blieb."))
    assert (read.labels.tolist(), read.classes, read.ids) == ([0, 2], NLI, ("1", "2"))
    read = load("NLI", "de", "test", path=tmp_path / "b")
    assert (read.first, read.second, read.ids) == (("c", "c"), ("d", "e"), ("1", "2"))
    read = load("NLI", "de", "train", path=tmp_path / "b")
    assert (read.second, read.row_labels) == (("Es ist trocken .",), ["contradiction"])


@pytest.mark.parametrize(
    ("language", "split", "name"),
    [
        ("de", "validation", "x-final/de/dev_2k.tsv"),
        ("de", "test", "x-final/de/test_2k.tsv"),
        ("de", "train", "x-final/de/translated_train.tsv"),
        ("en", "train", "x-final/en/train.tsv"),
    ],
)
def test_pawsx_as_published(tmp_path: Path, language: str, split: str, name: str) -> None:
    put(tmp_path, name, PAWS)
    put(tmp_path, "x-final/fr/dev_2k.tsv", PAWS)
    read = load("PI", language, split, path=tmp_path)
    assert read.first == ('"Ja" ist ein Lied .', "A liegt in B .")
    assert read.second == ('Ein Lied heißt "Ja"', "B liegt in A .")
    assert (read.row_labels, read.ids) == (["paraphrase", "different"], ("3", "12"))
    assert (read.name, len(read), read.left_out) == (f"pawsx {language} {split}", 2, 2)
    again = load("PI", language, split, path=tmp_path / "x-final" / language)
    assert again.table_hash() == read.table_hash()


GAPS = ["NS\tB\t0", "A\tns\t1", "A\tNA\t1", " \tB\t0", "\t\t0", "NS\tNS\tNA", "A\tB\tNA", "A\tB\t"]


@pytest.mark.parametrize(
    ("part", "untranslated", "ids"),
    [("train", False, ("9", "10")), ("dev", False, ("9", "10")), ("test", False, ("9", "10")),
     ("dev", True, ("1", "2", "3", "9", "10"))],
)  # fmt: skip
def test_pawsx_as_in_xtreme_without_what_was_not_translated(
    tmp_path: Path, part: str, untranslated: bool, ids: tuple
) -> None:
    rows = [*GAPS, '"""Ja"" ist ein Lied."\tEin Lied.\t1', "NSA\tB NS\t0"]
    put(tmp_path, f"{part}-de.tsv", "\r\n".join(rows))
    split = "validation" if part == "dev" else part
    read = load("PI", "de", split, path=tmp_path, untranslated=untranslated)
    assert read.first[-2:] == ('"Ja" ist ein Lied.', "NSA")
    assert (read.row_labels[-2:], read.ids) == (["paraphrase", "different"], ids)
    assert read.left_out == len(rows) - len(ids)


SENTENCE = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=' "'), min_size=1
).filter(lambda text: text.strip() and text.strip().casefold() not in ("ns", "na"))


@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.sampled_from("01")), min_size=1))
def test_sentences_are_those_that_xtreme_gave_to_its_csv_writer(pairs) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter="\t", lineterminator="\n").writerows(pairs)
    columns, left_out = labelled.read_pawsx(written.getvalue().split("\n")[:-1], "file")
    expected = [(*texts, PI[int(label)], str(i)) for i, (*texts, label) in enumerate(pairs, 1)]
    assert (list(zip(*columns, strict=True)), left_out) == (expected, 0)


def test_topics_in_the_public_layout(tmp_path: Path) -> None:
    put(tmp_path, "data/deu_Latn/dev.tsv", SIB)
    put(tmp_path, "data/README.md", "no text")
    put(tmp_path, "data/annotation/dev.tsv", "not a language")
    for asked, folder in (("de", tmp_path), ("deu_Latn", tmp_path / "data/deu_Latn")):
        read = load("TOPIC", asked, "validation", path=folder)
        assert (read.first, read.second) == (('"Ja", sagt sie.', "Er \u2028läuft."), None)
        assert (read.row_labels, read.ids) == (["politics", "sports"], ("12", "7"))
        assert read.name == "sib200 de validation"


def test_topics_of_several_varieties_and_of_the_misnamed_one(tmp_path: Path) -> None:
    for label in ("arb_Arab", "arb_Latn", "zho_Hans", "zho_Hant", "tzm_Tfng"):
        put(tmp_path, f"{label}/test.tsv", SIB.replace("läuft", label))
    for asked, code, label in [
        ("ar", "ar", "arb_Arab"),
        ("arb_Latn", "ar_Latn", "arb_Latn"),
        ("zh", "zh", "zho_Hans"),
        ("zho_Hant", "zh_Hant", "zho_Hant"),
        ("zgh", "zgh", "tzm_Tfng"),
        ("tzm_Tfng", "zgh", "tzm_Tfng"),
    ]:
        read = load("TOPIC", asked, "test", path=tmp_path)
        assert (read.language, read.first[1]) == (code, f"Er \u2028{label}.")


# --- malformed files (CoNLL-U: test_trees) --------------------------------------------------------

UD, WIKI, UNER = "de_gsd-ud-test.conllu", "dev-de.tsv", "sk_snk-ud-test.iob2"
PAWSX, TOPIC, ALL = "de/dev_2k.tsv", "deu_Latn/dev.tsv", "xnli.dev.tsv"


@pytest.mark.parametrize(
    ("task", "name", "text", "says"),
    [
        ("POS", UD, "\n \n", "is empty"),
        (
            "POS",
            UD,
            CONLLU + "\n" + word(1, "a", "_"),
            "line 15: 'a' has the tag '_', which is",
        ),
        (
            "POS",
            UD,
            word(1, "a", "X").encode() + b"\n\xff\n",
            "line 2: byte 0xff is not UTF-8",
        ),
        ("NER", WIKI, "", "is empty"),
        ("NER", WIKI, TWO + "Rom\n", "line 8: 1 columns, not 2.*XTREME withholds"),
        ("NER", WIKI, "a\tO\nb\tB-MISC\n", "line 2: the tag 'B-MISC' is none of O B-PER"),
        ("NER", WIKI, "a\tO\n\tO\n", "line 2: a tag without a word"),
        ("NER", UNER, TWO, "line 1: 2 columns, not 5"),
        ("NER", UNER, FIVE + "2-3\ta\tO\tO\t-\n", "line 9: this is not word 2"),
        ("NER", UNER, "# sent_id = 1\n", "line 2: a sentence without words"),
        ("NLI", WIKI, THREE + "a\tb\n", "line 3: 2 columns, not 3"),
        ("NLI", WIKI, THREE + "a\tb\tmaybe\n", "line 3: 'maybe' is none of entailment"),
        ("NLI", WIKI, THREE + "a\t \tneutral\n", "line 3: an empty sentence"),
        ("NLI", ALL, XNLI.replace("pairID", "id"), "line 1: the header lacks pairID"),
        ("NLI", ALL, XNLI.replace("True", "True\t", 1), "line 2: 9 columns, not 8"),
        ("NLI", ALL, XNLI.split("\n")[0], "no pair of this language"),
        ("PI", PAWSX, PAWS + "9\ta\tb\t2\n", r"line 6: '2' is none of .*\(0, 1\)"),
        ("PI", PAWSX, PAWS.replace("label", "gold", 1), "line 1: 4 columns, not 3"),
        ("PI", WIKI, "a\tNS\t1\na\tb\tNA\n", "no row has both sentences and a label"),
        ("TOPIC", TOPIC, SIB.replace("text", "t"), "line 1: the header is not index"),
        ("TOPIC", TOPIC, SIB.split("\n")[0], "has no sentences"),
        ("TOPIC", TOPIC, SIB + "8\tsport\ta\n", "line 4: the topic 'sport' is none"),
        ("TOPIC", TOPIC, SIB + "7\tsports\ta\n", "line 4: the id 7 comes twice"),
        ("TOPIC", TOPIC, SIB + "x\tsports\ta\n", "line 4: the id 'x' is no number"),
        ("TOPIC", TOPIC, SIB + "8\tsports\t \n", "line 4: an empty sentence"),
        ("TOPIC", TOPIC, SIB + '8\tsports\t"a\n', "line 4: unexpected end of data"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(
    tmp_path: Path, task: str, name: str, text: str | bytes, says: str
) -> None:
    file = put(tmp_path, name, text)
    language, source = ("sk", "uner") if name == UNER else ("de", None)
    split = "test" if "-ud-" in name else "validation"
    with pytest.raises(TextError, match=says) as caught:
        load(task, language, split, source=source, path=tmp_path)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize(
    ("files", "asked", "says"),
    [
        (["de_hdt-ud-dev.conllu", "a/de_b-ud-dev.conllu"], ("POS", "de", "validation"), "several"),
        (["de/dev"], ("NER", "de", "train"), "no train part of wikiann in de.*mmner"),
        (["a/test-de.tsv", "xnli.test.tsv"], ("NLI", "de", "test"), "several .*test part of xnli"),
        (["dev-de.tsv"], ("PI", "de", "test"), r"no test part of pawsx in de.*test_2k\.tsv"),
        (["dev-de.tsv"], ("PI", "de", "train"), r"no train part .*translated_train\.tsv"),
        (["deu_Latn/dev.tsv"], ("TOPIC", "de", "test"), "no test part of sib200 in de.*dadelani"),
        (["a/deu_Latn/dev.tsv", "deu_Latn/dev.tsv"], ("TOPIC", "de", "validation"), "deu_Latn twi"),
    ],
)
def test_a_part_that_is_not_there_or_there_twice(tmp_path: Path, files, asked, says: str) -> None:
    for name in files:
        put(tmp_path, name, "text")
    with pytest.raises(TextError, match=says):
        load(*asked, path=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("QA", "de", "test"), {}, "no task 'QA'; there are POS, NER, NLI, PI"),
        (("POS", "de", "dev"), {}, "no split 'dev'; there are train, validation, test"),
        (("POS", "xx-klingon", "test"), {}, "no language tag"),
        (("POS", "de", "test"), {"source": "xnli"}, "no source 'xnli' for POS; there is ud, pud"),
        (("POS", "de", "train"), {"source": "pud"}, "pud has no train part, only test"),
        (("POS", "gl", "test"), {}, r"No labelled data \(ud\) is shipped in gl; there is ar, bg"),
        (("NER", "ca", "test"), {}, "wikiann.* is shipped in ca.*train-de.tsv"),
        (("TOPIC", "de", "train"), {}, "No train part of sib200 is shipped in de, only in English"),
        (("TOPIC", "tlh", "test"), {}, "sib200.* is shipped in tlh"),
        (("PI", "sv", "test"), {}, "shipped in sv; there is de, en.*research-datasets/paws"),
        (("NLI", "de", "test"), {"source": "xnli-dev"}, "no test part, only train.*source='xnli'"),
        (("NLI", "fr", "train"), {"source": "xnli-dev"}, "ar, de, el, en, es, tr.*Get xnli from"),
        (("NLI", "de", "train"), {"source": "xnli-dev", "path": "."}, "selection of xnli that is"),
        (
            ("NLI", "de", "validation"),
            {"source": "xnli-whole"},
            "no validation part, only train and",
        ),
        (("NLI", "pl", "test"), {"source": "xnli-whole"}, "sw, th, tr, ur, vi, zh.*Get xnli from"),
        (("NLI", "de", "test"), {"source": "xnli-whole", "path": "."}, "selection of xnli that is"),
        (("PI", "ko", "validation"), {"untranslated": True}, "local copies of PAWS-X alone"),
        (("NLI", "de", "test"), {"untranslated": True, "path": "."}, "local copies of PAWS-X"),
    ],
)
def test_requests_that_cannot_be_met(arguments, options, message: str) -> None:
    with pytest.raises(TextError, match=message):
        load(*arguments, **options)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder .*universaldependencies\.org"):
        load("POS", "de", "test", path=tmp_path / "nowhere")


# --- what is given back ---------------------------------------------------------------------------


def tagged(n: int) -> Tagged:
    words = tuple((f"w{i}", "x") for i in range(n))
    return Tagged("made", "de", words, (("X", "NUM"),) * n, tuple(map(str, range(n))))


def test_take_draws_whole_sentences_in_order() -> None:
    taken = tagged(50).take(10, seed=3)
    assert taken == tagged(50).take(10, seed=3) != tagged(50).take(10, seed=4)
    assert list(map(int, taken.ids)) == sorted(set(map(int, taken.ids)))
    assert [words[0] for words in taken.sentences] == [f"w{name}" for name in taken.ids]
    assert len(taken) == len(taken.tags) == 10
    assert len(tagged(5).take(9, seed=0)) == 5
    with pytest.raises(TextError, match="cannot take -1"):
        taken.take(-1, seed=0)


@pytest.mark.parametrize("task", ["NLI", "PI", "TOPIC"])
def test_parallel_parts_are_aligned_drawn_alike_and_cut_to_the_shortest(task: str) -> None:
    english, german = (load(task, code, "test") for code in ("en", "de"))
    aligned({"en": english.take(20, seed=1), "de": german.take(20, seed=1)})
    sets, left_out = labelled.parallel_examples(task, ["en", "de"], "test", 20)
    lengths = english.lengths + german.lengths
    assert set(sets["de"].ids) == {english.ids[i] for i in np.argsort(lengths, kind="stable")[:20]}
    assert sets["en"].ids == sets["de"].ids
    assert left_out == {"missing": 0, "other label": 0}
    with pytest.raises(ValueError, match="given twice"):
        labelled.parallel_examples(task, ["en", "en"], "test")


def test_the_hash_is_that_of_a_file() -> None:
    file = b"w0\tX\nx\tNUM\n\nw1\tX\nx\tNUM\n\n"
    assert tagged(2).table_hash() == hashlib.sha256(file).hexdigest()
    for second, line in ((("b",), "ä\tb\tneutral\n"), (None, "ä\tneutral\n")):
        made = Examples("made", "de", ("ä",), second, np.array([1]), NLI, ("1",))
        assert made.table_hash() == hashlib.sha256(line.encode()).hexdigest()


# --- what is shipped (its rows were checked by the script that drew them) -------------------------


@pytest.fixture(scope="module")
def shipped() -> dict[tuple[str, str], dict[str, Tagged | Examples]]:
    """Everything: (source, language) → split → data."""
    return {
        (row.source, row.language): {
            split: load(row.task, row.language, split, source=row.source)
            for split in SPLITS
            if getattr(row, split)
        }
        for row in catalogue("labelled", whole=True).itertuples()
    }


def texts(data: Tagged | Examples) -> list[str]:
    if isinstance(data, Tagged):
        return list(map(" ".join, data.sentences))
    return [*data.first, *(data.second or ())]


def test_the_languages_of_table_2_are_complete() -> None:
    table = catalogue("labelled", whole=True)
    of = {source: tuple(rows["language"]) for source, rows in table.groupby("source", sort=False)}
    assert of["ud"] == languages.ABX
    assert of["pud"] == languages.for_task("POS", "CL")
    assert of["xnli"] == languages.for_task("NLI", "mono")
    assert {source: len(codes) for source, codes in of.items()} == {
        **{"ud": 36, "pud": 18, "wikiann": 26},
        **{"uner": 5, "xnli": 13, "xnli-dev": 6, "sick": 5, "pawsx": 7, "sib200": 205},
        "xnli-whole": 15,
    }
    assert set(of["xnli-whole"]) - set(of["xnli"]) == {"sw", "th"}
    # What goes over all that is shipped does not meet the same text under two sources.
    assert set(of) - set(catalogue("labelled")["source"]) == {"xnli-whole"}
    # The same languages by the same codes as the text of FLORES-200 that is shipped, and two more.
    assert set(of["sib200"]) - set(parallel.tags("flores200-100")) == {"nqo", "yue"}
    with_entities = {*of["wikiann"], *of["uner"]}
    assert set(languages.for_task("NER", "mono")) - with_entities == {"ca", "cs", "is", "lv", "sl"}


def test_the_table_counts_what_is_there_and_no_id_comes_twice(shipped) -> None:
    full = {"pud": (0, 0, 300), "xnli": (600, 150, 600), "xnli-dev": (2325, 0, 0)}
    full |= {"sick": (4432, 494, 4900), "pawsx": (500, 100, 300), "sib200": (0, 0, 204)}
    full |= {"xnli-whole": (5490, 0, 2010)}
    # Italian ParTUT has a test part of 153 sentences.
    odd = {("sib200", "en"): (701, 99, 204), ("ud", "it"): (300, 100, 150)}
    seen: dict[str, set[str]] = {task: set() for task in LABELS}
    for row in catalogue("labelled", whole=True).itertuples():
        parts = shipped[row.source, row.language]
        expected = odd.get((row.source, row.language), full.get(row.source, (300, 100, 300)))
        sizes = tuple(len(parts.get(split, ())) for split in SPLITS)
        assert sizes == (row.train, row.validation, row.test) == expected
        n_words = row.task not in ("POS", "NER") and sum(
            len(text.split()) for part in parts.values() for text in texts(part)
        )
        assert (n_words or sum(part.n_words for part in parts.values())) == row.words
        for part in parts.values():
            assert len(set(part.ids)) == len(part)
            tags = chain.from_iterable(part.tags) if isinstance(part, Tagged) else part.row_labels
            seen[row.task].update(tags)
            assert getattr(part, "repaired", 0) == 0  # repaired when the files were made
    assert seen == {task: set(labels) for task, labels in LABELS.items()}


def test_no_sentence_is_in_two_splits(shipped) -> None:
    for (source, language), parts in shipped.items():
        if source == "sick":  # its public splits share sentences, but not pairs
            continue
        keys = [set(map(letters, texts(part))) for part in parts.values()]
        assert len(set.union(*keys)) == sum(map(len, keys)), (source, language)
        if source in ("ud", "pud", "wikiann", "uner"):  # nor twice in one
            assert sum(map(len, keys)) == sum(map(len, parts.values())), (source, language)
        apart = {"pud": ("ud", ["train", "validation"])}
        apart |= {"xnli-dev": ("xnli", ["validation", "test"])}
        if source in apart:
            other, splits = apart[source]
            there = chain.from_iterable(texts(shipped[other, language][split]) for split in splits)
            assert not set.union(*keys) & set(map(letters, there)), (source, language)


def test_no_pair_of_sick_is_in_two_splits(shipped) -> None:
    parts = shipped["sick", "en"]
    pairs = [
        set(zip(*(map(letters, side) for side in (part.first, part.second)), strict=True))
        for part in parts.values()
    ]
    assert not set.intersection(pairs[0], pairs[2])
    assert len(set.union(*pairs)) == sum(map(len, pairs))
    for code in ("nl", "pt", "pl"):  # their labels are the English ones
        assert all(shipped["sick", code][x].row_labels == parts[x].row_labels for x in parts)
    japanese = shipped["sick", "ja"]["test"].row_labels
    other = [x != y for x, y in zip(parts["test"].row_labels, japanese, strict=True)]
    assert 0.1 < sum(other) / len(other) < 0.17


def test_sick_is_shipped_alone(tmp_path) -> None:
    with pytest.raises(TextError, match="sick is shipped whole, and read from nowhere else"):
        load("NLI", "en", "test", source="sick", path=tmp_path)
    with pytest.raises(TextError, match=r"It is SICK .* shipped whole"):
        load("NLI", "de", "test", source="sick")


@pytest.mark.parametrize(
    "source", ["pud", "xnli", "xnli-dev", "xnli-whole", "sick", "pawsx", "sib200"]
)
def test_parallel_sources_have_the_same_ids_in_all_languages(shipped, source: str) -> None:
    sets = {code: parts for (name, code), parts in shipped.items() if name == source}
    if source == "sick":  # labelled anew in Japanese
        assert sets.pop("ja")["test"].ids == sets["en"]["test"].ids
    for split in set.intersection(*map(set, sets.values())):
        of = {code: parts[split] for code, parts in sets.items()}
        assert aligned(of).keys() == of.keys()
        assert len({part.table_hash() for part in of.values()}) == len(of)


def test_nothing_is_in_the_pretraining_text(shipped, pretraining_letters) -> None:
    learnt = {key: parts for key, parts in shipped.items() if key[0] == "xnli-whole"}
    parts = chain.from_iterable(
        (part for split, part in parts.items() if key not in learnt or split != "train")
        for key, parts in shipped.items()
    )
    keys = {letters(text) for part in parts for text in texts(part)}
    assert len(keys) > 100_000
    assert not keys & (pretraining_letters | {""})
    # All of XNLI's dev part is there to train on, whatever is in the pretraining text.
    there: dict[str, set[str]] = {}
    some = pretraining_letters - {""}
    for (_, language), parts in learnt.items():
        part = parts["train"]
        for name, *pair in zip(part.ids, part.first, part.second, strict=True):
            for text in pair:
                if letters(text) in some:
                    there.setdefault(f"{language} {letters(text)}", set()).add(item(name))
    assert len(there) == 28
    assert len(set.union(*there.values())) == 13


def item(name: str) -> str:
    """The item of a pair of XNLI: a premise and its three hypotheses."""
    part, line = name.split(":")
    return f"{part} {(int(line) - 1) // 3}"


def test_the_whole_of_xnli_is_split_by_premise(shipped) -> None:
    parts = shipped["xnli-whole", "en"]
    dev = [f"dev:{line}" for line in range(1, 2491)]
    test = {f"test:{line}" for line in range(1, 5011)}
    of_dev = labelled.of_public_part(parts["train"], "dev")
    assert (of_dev.ids, of_dev.name) == (tuple(dev), "xnli-whole en train, of dev")
    of_test = labelled.of_public_part(parts["train"], "test")
    assert (len(of_test), len(parts["test"])) == (3000, 2010)
    assert parts["train"].ids == (*dev, *of_test.ids)  # in the public order
    assert {*of_test.ids, *parts["test"].ids} == test
    for names in (of_test.ids, parts["test"].ids):
        assert list(names) == sorted(names, key=lambda name: int(name.removeprefix("test:")))
    for part in (of_dev, of_test, parts["test"]):
        assert set(class_counts(part).values()) == {len(part) // 3}
        assert set(Counter(map(item, part.ids)).values()) == {3}
        premises: dict[str, set[str]] = {}
        for name, premise in zip(part.ids, part.first, strict=True):
            premises.setdefault(item(name), set()).add(premise)
        assert set(map(len, premises.values())) == {1}
    with pytest.raises(TextError, match=r"xnli-whole en test has nothing of .* 'dev'; it has test"):
        labelled.of_public_part(parts["test"], "dev")


def test_the_subsets_of_xnli_are_in_the_whole(shipped) -> None:
    for (source, language), parts in shipped.items():
        if source in ("xnli", "xnli-dev"):
            whole = shipped["xnli-whole", language]
            rows = {
                name: row
                for of in whole.values()
                for name, *row in zip(of.ids, of.first, of.second, of.row_labels, strict=True)
            }
            for of in parts.values():
                pairs = zip(of.first, of.second, of.row_labels, strict=True)
                assert [rows[name] for name in of.ids] == list(map(list, pairs))
    there = set(shipped["xnli-whole", "en"]["test"].ids)
    inside = {split: len(there & set(of.ids)) for split, of in shipped["xnli", "en"].items()}
    assert inside == {"train": 0, "validation": 0, "test": TESTED_BY_BOTH}


#: Pairs that are in the test part of "xnli" and in that of "xnli-whole".
TESTED_BY_BOTH = 213


@pytest.mark.parametrize(
    ("source", "language", "split", "table", "file"),
    [
        (
            *("xnli", "de", "train"),
            "91244b987550e4fb5fbedc82e62dd310e7a3ec8a7e00fbae8c33ef5a10f64392",
            "e5289d922e580118fc18ad5ae4518663a169f73a1d48a46170f90e07a323a0c8",
        ),
        (
            *("xnli", "de", "validation"),
            "b2bc14e6b9442cd5e9d1471fc49ae95793e841142c09064451626da04eeaec7a",
            "e5289d922e580118fc18ad5ae4518663a169f73a1d48a46170f90e07a323a0c8",
        ),
        (
            *("xnli", "zh", "test"),
            "0319d65b640ca82e7786dde4f7106a07ba5ab7fa303dfe77670e2fd61ba18ad0",
            "a2e64fedb975e8430053f9a70cfdee6169420eaf70118e2254c89c480c65cf67",
        ),
        (
            *("xnli-dev", "de", "train"),
            "df1d822620ec68d05629000f9e920732f0be43ae26cacfc044c9d26d027918f1",
            "0cde62c0825ecc83778e33e43f2721dc038cdb31ea25bddb689dbfd19b552d2f",
        ),
        (
            *("xnli-dev", "tr", "train"),
            "d94d3526072d6bafd664d436b1c020dec7bfdd6142e27550148675fe6b07b283",
            "b5f264c7e5df7cb9e186006039ccbca3c0c8e19e4560f324ca49329effddfeb3",
        ),
    ],
)
def test_the_subsets_of_xnli_are_what_they_were(
    source: str, language: str, split: str, table: str, file: str
) -> None:
    """Results are found by these: the text, and the file that once held a subset alone."""
    part = load("NLI", language, split, source=source)
    about = labelled.about_labelled("NLI", language, split, source=source)
    assert part.table_hash() == table
    assert about == {"file": file, "split": split}


def test_every_treebank_is_in_the_readme() -> None:
    table = catalogue("labelled")
    readme = (paths.DATA / "labelled" / "README.md").read_text(encoding="utf-8")
    assert (table[["treebank", "version"]] != "").all(axis=None)
    treebanks = table[table["source"].isin(["ud", "pud", "uner"])]
    assert (treebanks["licence_file"] != "").all()
    assert all(treebank in readme for treebank in table["treebank"])
    restricted = table[(table["source"] == "ud") & table["licence"].str.contains("NC")]["language"]
    assert " ".join(restricted) == "ar bg el et he hi hu it tr uk ur"
