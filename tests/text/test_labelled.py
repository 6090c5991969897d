"""Labelled data: what is shipped, the public layouts, and every way a file can be malformed."""

import csv
import hashlib
import io
import re
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlx.core import languages, paths
from xlx.text import corpora, labelled, labelled_files, parallel_sets
from xlx.text.files import TextError
from xlx.text.labelled import LABELS, NER, PI, SPLITS, UPOS, Pairs, Tagged, Texts
from xlx.text.labelled import load_labelled as load
from xlx.text.shipped import catalogue

FOLDER = paths.DATA / "labelled"

# --- small files in the public formats ------------------------------------------------------------


def row(number: object, form: str, tag: str) -> str:
    return "\t".join((str(number), form, form.lower(), tag, "_", "_", "0", "root", "_", "_"))


CONLLU = "\n".join(
    [
        "# newdoc id = d1",
        "# sent_id = a-1",
        "# text = Im Haus #1.",
        row("1-2", "Im", "_"),
        row(1, "In", "ADP"),
        row(2, "dem", "DET"),
        row(3, "Haus", "NOUN"),
        row("3.1", "steht", "VERB"),
        row(4, "#1", "NOUN"),
        row(5, "Hà Nội", "PROPN"),
        "",
        "# sent_id a-1",  # UD 1: an id within its document, and CONJ
        row(1, "und", "CONJ"),
        "",
    ]
)
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


def put(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_conllu_gives_syntactic_words_and_upos(tmp_path: Path) -> None:
    put(tmp_path, "UD_German-GSD/de_gsd-ud-train.conllu", CONLLU)
    put(tmp_path, "UD_German-PUD/de_pud-ud-test.conllu", CONLLU)
    read = load("POS", "de", "train", path=tmp_path)
    assert read.sentences == (("In", "dem", "Haus", "#1", "Hà Nội"), ("und",))
    assert read.tags == (("ADP", "DET", "NOUN", "NOUN", "PROPN"), ("CCONJ",))
    assert read.ids == ("a-1", "2")
    assert (read.task, read.source, read.language, read.split) == ("POS", "ud", "de", "train")
    assert (len(read), read.n_words, read.licence) == (2, 6, "CC BY-SA 4.0")
    pud = load("POS", "deu", "test", source="pud", path=tmp_path)
    assert pud.sentences == read.sentences
    assert (pud.source, pud.licence) == ("pud", "CC BY-SA 3.0")


@pytest.mark.parametrize(
    ("language", "split", "name"),
    [
        ("ar", "validation", "UD_Arabic-PADT/ar-ud-dev.OLD201604.conllu"),
        ("ca", "test", "ca_ancora-ud-test.OLD202110.conllu"),
        ("gl", "train", "deep/UD_Galician-CTG/gl_ctg-ud-train.conllu"),
    ],
)
def test_names_of_ud_files(tmp_path: Path, language: str, split: str, name: str) -> None:
    put(tmp_path, name, CONLLU.replace("\n", "\r\n"))
    read = load("POS", language, split, path=tmp_path)
    assert read.sentences[1] == ("und",)
    if language == "gl":
        assert read.licence == "as in the LICENSE.txt of the treebank"


def test_of_several_treebanks_that_which_is_shipped(tmp_path: Path) -> None:
    put(tmp_path, "UD_German-HDT/de_hdt-ud-dev.conllu", row(1, "nicht", "PART"))
    put(tmp_path, "UD_German-GSD/de_gsd-ud-dev.conllu", row(1, "ja", "INTJ"))
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
    assert (read.source, read.ids, read.repaired) == ("wikiann", ("1", "2"), 0)


def test_a_prefix_that_not_all_words_have_is_part_of_the_word(tmp_path: Path) -> None:
    put(tmp_path, "train-de.tsv", "de:facto\tO\nRom\tB-LOC\n")
    assert load("NER", "de", "train", path=tmp_path).sentences == (("de:facto", "Rom"),)


def test_i_without_b_is_read_as_b_and_counted(tmp_path: Path) -> None:
    tags = ["I-PER", "I-PER", "I-LOC", "O", "I-LOC", "B-ORG", "I-LOC"]
    text = "".join(f"w{i}\t{tag}\n" for i, tag in enumerate(tags)) + "\nw\tI-LOC\n"
    put(tmp_path, "dev-ja.tsv", text)
    read = load("NER", "ja", "validation", path=tmp_path)
    assert read.tags == (
        ("B-PER", "I-PER", "B-LOC", "O", "B-LOC", "B-ORG", "B-LOC"),
        ("B-LOC",),
    )
    assert read.repaired == 5


def test_uner_reads_oth_as_o(tmp_path: Path) -> None:
    put(tmp_path, "UNER_Croatian-SET/hr_set-ud-dev.iob2", FIVE)
    read = load("NER", "hr", "validation", source="uner", path=tmp_path)
    assert read.sentences == (("Ana", "i", "EU"), ("Ona",))
    assert read.tags == (("B-PER", "O", "O"), ("O",))
    assert (read.source, read.ids, read.repaired) == ("uner", ("set-1", "set-2"), 0)


def test_xnli_in_its_three_layouts(tmp_path: Path) -> None:
    put(tmp_path, "a/test-de.tsv", THREE)
    put(tmp_path, "b/xnli.test.tsv", XNLI)
    put(tmp_path, "b/multinli.train.de.tsv", MNLI)
    read = load("NLI", "de", "test", path=tmp_path / "a")
    assert (read.first, read.second) == (('Er ging "heim.',) * 2, ("Er ging.", "Er blieb."))
    assert (read.labels, read.ids) == (("entailment", "contradiction"), ("1", "2"))
    read = load("NLI", "de", "test", path=tmp_path / "b")
    assert (read.first, read.second, read.ids) == (("c", "c"), ("d", "e"), ("1", "2"))
    read = load("NLI", "de", "train", path=tmp_path / "b")
    assert (read.second, read.labels) == (("Es ist trocken .",), ("contradiction",))


def test_xnli_is_read_in_its_fifteen_languages(tmp_path: Path) -> None:
    codes = {*languages.for_task("NLI", "mono"), "sw", "th"}
    assert len(codes) == 15
    header = XNLI.split("\n")[0]
    rows = [f"{code}\tneutral\t(\t{code} 1\t{code} 2\t1\t{code}\tTrue" for code in codes]
    put(tmp_path, "whole/xnli.test.tsv", "\n".join([header, *rows]))
    for code in codes:
        put(tmp_path, f"xtreme/test-{code}.tsv", f"{code} 1\t{code} 2\tneutral\n")
        for folder in ("whole", "xtreme"):
            read = load("NLI", code, "test", path=tmp_path / folder)
            assert (read.language, read.first, read.second) == (
                code,
                (f"{code} 1",),
                (f"{code} 2",),
            )


def test_xtreme_quotes_sentences_of_xnli_too(tmp_path: Path) -> None:
    put(tmp_path, "dev-de.tsv", '"Er sagt ""Ja""."\t"""Ja"""\tentailment\n')
    read = load("NLI", "de", "validation", path=tmp_path)
    assert (read.first, read.second) == (('Er sagt "Ja".',), ('"Ja"',))


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
    assert (read.labels, read.ids) == (("paraphrase", "different"), ("3", "12"))
    assert (read.task, read.source, read.language, read.split) == ("PI", "pawsx", language, split)
    assert (len(read), read.left_out) == (2, 2)
    assert "acknowledgement of Google" in read.licence
    assert load("PI", language, split, path=tmp_path / "x-final" / language) == read


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_pawsx_as_in_xtreme(tmp_path: Path, part: str) -> None:
    rows = ['"""Ja"" ist ein Lied."\tEin Lied.\t1', "A\tns\t0", "A\tB\tNA", "A\tB\t", "A\tB\t0"]
    put(tmp_path, f"{part}-de.tsv", "\r\n".join(rows))
    read = load("PI", "de", "validation" if part == "dev" else part, path=tmp_path)
    assert read.first == ('"Ja" ist ein Lied.', "A")
    assert (read.labels, read.ids) == (("paraphrase", "different"), ("1", "5"))
    assert read.left_out == 3


def test_a_row_of_pawsx_that_was_not_translated_is_left_out(tmp_path: Path) -> None:
    gaps = ["NS\tB\t0", "A\tNS\t1", "A\tNA\t1", " \tB\t0", "\t\t0", "NS\tNS\tNA", "A\tB\tNA"]
    put(tmp_path, "dev-ko.tsv", "\n".join([*gaps, "NSA\tB NS\t1", ""]))
    read = load("PI", "ko", "validation", path=tmp_path)
    assert (read.first, read.second, read.ids) == (("NSA",), ("B NS",), ("8",))
    assert read.left_out == len(gaps)


def test_rows_that_were_not_translated_are_kept_on_request(tmp_path: Path) -> None:
    """Who reads XTREME's files as they stand has them."""
    gaps = ["NS\tB\t0", "A\tNS\t0", " \tB\t0", "A\tB\tNA", "A\tB\t1"]
    put(tmp_path, "dev-ko.tsv", "\n".join(gaps))
    read = load("PI", "ko", "validation", path=tmp_path, untranslated=True)
    assert (read.first, read.second) == (("NS", "A", "A"), ("B", "NS", "B"))
    assert (read.labels, read.left_out) == (("different", "different", "paraphrase"), 2)


SENTENCE = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=' "'), min_size=1
).filter(lambda text: text.strip() and text.strip().casefold() not in ("ns", "na"))


@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.sampled_from("01")), min_size=1))
def test_sentences_are_those_that_xtreme_gave_to_its_csv_writer(pairs) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter="\t", lineterminator="\n").writerows(pairs)
    columns, left_out = labelled_files.read_pawsx(written.getvalue().split("\n")[:-1], "file")
    first, second, labels, ids = columns
    assert list(zip(first, second, labels, strict=True)) == [
        (one, two, PI[int(label)]) for one, two, label in pairs
    ]
    assert (ids, left_out) == (tuple(str(i) for i in range(1, len(pairs) + 1)), 0)


def test_topics_in_the_public_layout(tmp_path: Path) -> None:
    put(tmp_path, "data/deu_Latn/dev.tsv", SIB)
    put(tmp_path, "data/README.md", "no text")
    put(tmp_path, "data/annotation/dev.tsv", "not a language")
    read = load("TOPIC", "de", "validation", path=tmp_path)
    assert read.sentences == ('"Ja", sagt sie.', "Er \u2028läuft.")
    assert (read.labels, read.ids) == (("politics", "sports"), ("12", "7"))
    assert (read.task, read.source, read.language, len(read)) == ("TOPIC", "sib200", "de", 2)
    assert "CC BY-SA" in read.licence
    assert load("TOPIC", "deu_Latn", "validation", path=tmp_path / "data/deu_Latn") == read


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
        assert (read.language, read.sentences[1]) == (code, f"Er \u2028{label}.")


# --- malformed files ------------------------------------------------------------------------------

UD, WIKI, UNER = "de_gsd-ud-test.conllu", "dev-de.tsv", "sk_snk-ud-test.iob2"
X = row(1, "a", "X")
LATIN = "ä\tO".encode("latin-1")


@pytest.mark.parametrize(
    ("task", "name", "text", "says"),
    [
        ("POS", UD, "\n \n", "is empty"),
        ("POS", UD, "# only a comment\n", "line 2: a sentence without words"),
        ("POS", UD, X + "\n" + row(3, "b", "X"), "line 2: word 3 follows word 1"),
        ("POS", UD, row("x", "a", "X"), "line 1: word x follows word 0"),
        ("POS", UD, row("_", "a", "X"), "line 1: word _ follows word 0"),
        ("POS", UD, row(1, " ", "X"), "line 1: a word without form"),
        ("POS", UD, CONLLU + "\n" + row(1, "a", "_"), "line 15: 'a' has the tag '_', which is"),
        ("POS", UD, "# c\n1\ta\ta\tX\n", "line 2: 4 columns, not 10"),
        ("POS", UD, X + "\n# late\n", "line 2: a comment among the words"),
        ("POS", UD, 2 * f"# sent_id = s\n{X}\n\n", "line 5: sentence s is also at line 2"),
        ("POS", UD, X.encode() + b"\n\xff\n", "line 2: byte 0xff is not UTF-8"),
        ("NER", WIKI, "", "is empty"),
        ("NER", WIKI, TWO + "Rom\n", "line 8: 1 columns, not 2.*XTREME withholds"),
        ("NER", WIKI, "# Rom\nRom\tO\n", "line 1: 1 columns, not 2"),
        ("NER", WIKI, "a\tb\tO\n", "line 1: 3 columns, not 2"),
        ("NER", WIKI, "a\tO\nb\tB-MISC\n", "line 2: the tag 'B-MISC' is none of O B-PER"),
        ("NER", WIKI, "a\tO\n\tO\n", "line 2: a tag without a word"),
        ("NER", WIKI, LATIN, "line 1: byte 0xe4 is not UTF-8"),
        ("NER", UNER, TWO, "line 1: 2 columns, not 5"),
        ("NER", UNER, FIVE + "2-3\ta\tO\tO\t-\n", "line 9: this is not word 2"),
        ("NER", UNER, FIVE + "2\ta\tB-XYZ\tO\t-\n", "line 9: the tag 'B-XYZ'"),
        ("NER", UNER, "# sent_id = 1\n", "line 2: a sentence without words"),
        ("NLI", WIKI, THREE + "a\tb\n", "line 3: 2 columns, not 3"),
        ("NLI", WIKI, THREE + "\n", "line 3: 1 columns, not 3"),
        ("NLI", WIKI, THREE + "a\tb\tmaybe\n", "line 3: 'maybe' is none of entailment"),
        ("NLI", WIKI, THREE + "a\t \tneutral\n", "line 3: an empty sentence"),
        ("NLI", "xnli.dev.tsv", XNLI.replace("pairID", "id"), "line 1: the header lacks pairID"),
        ("NLI", "xnli.dev.tsv", XNLI.replace("True", "True\t", 1), "line 2: 9 columns, not 8"),
        ("NLI", "xnli.dev.tsv", XNLI.replace("de\tneutral", "de\t-"), "line 3: '-' is none of"),
        ("NLI", "xnli.dev.tsv", XNLI.split("\n")[0], "no pair of this language"),
        ("PI", "de/dev_2k.tsv", PAWS + "9\ta\tb\t2\n", r"line 6: '2' is none of .*\(0, 1\)"),
        ("PI", "de/dev_2k.tsv", PAWS + "a\tb\t1\n", "line 6: 3 columns, not 4"),
        ("PI", "de/dev_2k.tsv", PAWS.split("\n")[0], "no pair of this language and split"),
        ("PI", "de/dev_2k.tsv", PAWS.replace("label", "gold", 1), "line 1: 4 columns, not 3"),
        ("PI", WIKI, "a\tb\n", "line 1: 2 columns, not 3.*XTREME withholds the labels"),
        ("PI", WIKI, "a\tNS\t1\na\tb\tNA\n", "no row has both sentences and a label"),
        ("TOPIC", "deu_Latn/dev.tsv", "", "is empty"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB.replace("text", "t"), "line 1: the header is not index"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB.split("\n")[0], "has no sentences"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB + "8\tsports\ta\tb\n", "line 4: 4 columns, not 3"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB + "8\tsport\ta\n", "line 4: the topic 'sport' is none"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB + "7\tsports\ta\n", "line 4: the id 7 comes twice"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB + "x\tsports\ta\n", "line 4: the id 'x' is no number"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB + "8\tsports\t \n", "line 4: an empty sentence"),
        ("TOPIC", "deu_Latn/dev.tsv", SIB + '8\tsports\t"a\n', "line 4: unexpected end of data"),
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
        (["a/test-de.tsv", "xnli.test.tsv"], ("NLI", "de", "test"), "several test parts of xnli"),
        (["dev-de.tsv"], ("PI", "de", "test"), r"no test part of pawsx in de.*test_2k\.tsv"),
        (["dev-de.tsv"], ("PI", "de", "train"), r"no train part .*translated_train\.tsv"),
        (["dev-de.tsv", "de/dev_2k.tsv"], ("PI", "de", "validation"), "several validation parts"),
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
    ids = tuple(str(i) for i in range(n))
    return Tagged("POS", "ud", "de", "test", words, (("X", "NUM"),) * n, ids, "CC0")


def test_take_draws_whole_sentences_in_order() -> None:
    taken = tagged(50).take(10, seed=3)
    assert taken.ids == tagged(50).take(10, seed=3).ids
    assert list(map(int, taken.ids)) == sorted(map(int, taken.ids))
    assert len(set(taken.ids)) == len(taken) == len(taken.tags) == 10
    assert all(
        words[0] == f"w{name}" for name, words in zip(taken.ids, taken.sentences, strict=True)
    )
    assert taken.ids != tagged(50).take(10, seed=4).ids
    assert len(tagged(5).take(9, seed=0)) == 5


@pytest.mark.parametrize("task", ["NLI", "PI", "TOPIC"])
def test_take_is_parallel(task: str) -> None:
    english, german = (load(task, code, "test") for code in ("en", "de"))
    one, two = english.take(20, seed=1), german.take(20, seed=1)
    assert len(one) == 20
    assert (one.ids, one.labels) == (two.ids, two.labels)
    assert one.text_hash() != two.text_hash()
    assert english.take(999, seed=1) == english
    with pytest.raises(TextError, match="cannot take -1"):
        one.take(-1, seed=0)


def numbered(language: str, ids: list[int]) -> Pairs:
    """Pairs whose sentences name their id and language."""
    names = tuple(map(str, ids))
    first, second = (tuple(f"{language} {part} {name}" for name in names) for part in "ab")
    labels = tuple(PI[i % 2] for i in ids)
    return Pairs("PI", "pawsx", language, "test", first, second, labels, names, "CC0", left_out=3)


@given(st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=4))
def test_common_pairs_are_those_that_all_have(lists: list[list[int]]) -> None:
    common = [i for i in lists[0] if all(i in ids for ids in lists)]
    parts = {code: numbered(code, ids) for code, ids in zip("abcd", lists, strict=False)}
    if not common:
        with pytest.raises(TextError, match="no pair of PI pawsx a test is in all of a"):
            parallel_sets.common(parts)
        return
    sets, left_out = parallel_sets.common(parts)
    assert sets == {code: numbered(code, common) for code in parts}
    assert left_out == {"missing": len(lists[0]) - len(common), "other label": 0}


def test_text_hash_is_that_of_a_file() -> None:
    file = b"w0\tX\nx\tNUM\n\nw1\tX\nx\tNUM\n\n"
    assert tagged(2).text_hash() == hashlib.sha256(file).hexdigest()
    pairs = Pairs("NLI", "xnli", "de", "test", ("ä",), ("b",), ("neutral",), ("1",), "CC0")
    assert pairs.text_hash() == hashlib.sha256("ä\tb\tneutral\n".encode()).hexdigest()
    texts_of = Texts("TOPIC", "sib200", "de", "test", ("ä",), ("sports",), ("1",), "CC0")
    assert texts_of.text_hash() == hashlib.sha256("ä\tsports\n".encode()).hexdigest()
    with pytest.raises(TextError, match=r"TOPIC sib200 de test: unequal numbers"):
        Texts("TOPIC", "sib200", "de", "test", ("ä",), (), ("1",), "CC0")


# --- what is shipped ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped() -> dict[tuple[str, str], dict[str, Tagged | Pairs | Texts]]:
    """Everything: (source, language) → split → data."""
    return {
        (row.source, row.language): {
            split: load(row.task, row.language, split, source=row.source)
            for split in SPLITS
            if getattr(row, split)
        }
        for row in catalogue("labelled").itertuples()
    }


def texts(data: Tagged | Pairs | Texts) -> list[tuple[str, ...]]:
    if isinstance(data, Tagged):
        return list(data.sentences)
    if isinstance(data, Texts):
        return [(sentence,) for sentence in data.sentences]
    return [(sentence,) for sentence in (*data.first, *data.second)]


def letters(words: tuple[str, ...]) -> str:
    return re.sub(r"[\W_]+", "", "".join(words)).casefold()


def test_the_languages_of_table_2_are_complete() -> None:
    table = catalogue("labelled")
    of = {source: tuple(rows["language"]) for source, rows in table.groupby("source", sort=False)}
    assert of["ud"] == languages.ABX
    assert of["pud"] == languages.for_task("POS", "CL")
    assert of["xnli"] == languages.for_task("NLI", "mono")
    assert {source: len(codes) for source, codes in of.items()} == {
        **{"ud": 36, "pud": 18, "wikiann": 26},
        **{"uner": 5, "xnli": 13, "xnli-dev": 6, "pawsx": 7, "sib200": 205},
    }
    assert of["xnli-dev"] == ("ar", "de", "el", "en", "es", "tr")
    assert of["pawsx"] == ("de", "en", "es", "fr", "ja", "ko", "zh")
    assert set(languages.ABX) <= set(of["sib200"])
    # The same languages by the same codes as the text of FLORES-200 that is shipped, and two more.
    assert set(of["sib200"]) - set(corpora.tags("flores200-100")) == {"nqo", "yue"}
    assert len(set(corpora.tags("flores200-100")) & set(of["sib200"])) == 203
    with_entities = {*of["wikiann"], *of["uner"]}
    assert set(languages.for_task("NER", "mono")) - with_entities == {"ca", "cs", "is", "lv", "sl"}
    assert not set(of["wikiann"]) & set(of["uner"])


def test_the_table_counts_what_is_there(shipped) -> None:
    for row in catalogue("labelled").itertuples():
        parts = shipped[row.source, row.language]
        assert [len(parts.get(split, ())) for split in SPLITS] == [
            row.train,
            row.validation,
            row.test,
        ]
        words = chain.from_iterable(
            chain.from_iterable([x] if row.task in ("POS", "NER") else x.split() for x in text)
            for part in parts.values()
            for text in texts(part)
        )
        assert sum(1 for _ in words) == row.words
        # What was repaired when the files were made is in the table; they need none any more.
        odd = [
            getattr(part, "repaired", 0) + getattr(part, "left_out", 0) for part in parts.values()
        ]
        assert sum(odd) == 0
        full = {"ud": (300, 100, 300), "pud": (0, 0, 300), "xnli": (600, 150, 600)}
        full |= {"xnli-dev": (2325, 0, 0), "pawsx": (500, 100, 300)}
        full["sib200"] = (701, 99, 204) if row.language == "en" else (0, 0, 204)
        sizes = full.get(row.source, (300, 100, 300))
        # Italian ParTUT has a test part of 153 sentences.
        expected = (300, 100, 150) if (row.source, row.language) == ("ud", "it") else sizes
        assert (row.train, row.validation, row.test) == expected
        assert all(part.licence == row.licence for part in parts.values())


def test_labels_and_lengths(shipped) -> None:
    seen: dict[str, Counter] = {task: Counter() for task in LABELS}
    for (source, _), parts in shipped.items():
        for part in parts.values():
            labels = chain.from_iterable(part.tags) if isinstance(part, Tagged) else part.labels
            seen[part.task].update(labels)
            if isinstance(part, Tagged):
                lengths = [len(words) for words in part.sentences]
                assert min(lengths) >= 3
                assert source in ("wikiann", "uner") or max(lengths) <= 60
            assert len(set(part.ids)) == len(part.ids)
    assert {task: set(counts) for task, counts in seen.items()} == {
        task: set(labels) for task, labels in LABELS.items()
    }
    assert len(set(seen["NLI"].values())) == 1  # each premise once with each relation
    assert tuple(sorted(UPOS)) == UPOS
    assert len(UPOS) == 17
    assert NER[0] == "O"


def test_no_sentence_is_in_two_splits_or_twice_in_one(shipped) -> None:
    for (source, language), parts in shipped.items():
        keys = [letters(words) for part in parts.values() for words in texts(part)]
        if source == "sib200" and language != "en":
            continue  # whole as it is, whatever its translators wrote twice
        if source not in ("xnli", "xnli-dev", "pawsx"):
            assert len(set(keys)) == len(keys), (source, language)
            continue
        by_split = [set(map(letters, texts(part))) for part in parts.values()]
        assert len(set.union(*by_split)) == sum(map(len, by_split)), language
        if source == "pawsx":
            # A translation may make one sentence of a pair's two; no other pair has either.
            pairs = [
                {letters((one,)), letters((two,))}
                for part in parts.values()
                for one, two in zip(part.first, part.second, strict=True)
            ]
            assert len(set.union(*pairs)) == sum(map(len, pairs)), language
            continue
        premises = [part.first for part in parts.values()]
        assert all(Counter(first).most_common(1)[0][1] == 3 for first in premises)


def test_more_of_xnli_to_train_on_shares_nothing_with_what_is_held_out(shipped) -> None:
    codes = [code for source, code in shipped if source == "xnli-dev"]
    for code in codes:
        assert load("NLI", code, "train") == shipped["xnli", code]["train"]  # as the default
        more, xnli = shipped["xnli-dev", code]["train"], shipped["xnli", code]
        lines = [int(name.removeprefix("dev:")) - 1 for name in more.ids]
        items = list(dict.fromkeys(line // 3 for line in lines))
        assert lines == [3 * item + k for item in items for k in range(3)]  # whole
        assert items == sorted(items)  # in the public order
        assert len(items) == 775
        assert max(items) < 830
        # One premise and each label, and no sentence of an item in another.
        keys = []
        for at in range(0, len(more), 3):
            assert len(set(more.first[at : at + 3])) == 1
            assert set(more.labels[at : at + 3]) == set(labelled.NLI)
            keys.append({letters((t,)) for t in (more.first[at], *more.second[at : at + 3])})
        assert len(set.union(*keys)) == sum(map(len, keys))
        held_out = chain(texts(xnli["validation"]), texts(xnli["test"]))
        assert not set.union(*keys) & set(map(letters, held_out))
        assert not set(more.ids) & set(xnli["validation"].ids)
        # The train part of xnli is within: the same ids, texts and labels.
        pairs, small = (
            set(zip(part.ids, part.first, part.second, part.labels, strict=True))
            for part in (more, xnli["train"])
        )
        assert small < pairs


def test_labels_of_pawsx_are_nearly_balanced_and_no_sentence_is_a_placeholder(shipped) -> None:
    counts = {"train": (275, 225), "validation": (58, 42), "test": (159, 141)}
    for (source, _), parts in shipped.items():
        if source == "pawsx":
            for split, part in parts.items():
                assert tuple(map(part.labels.count, PI)) == counts[split]
                assert min(map(len, (*part.first, *part.second))) >= 12
                # XTREME's doubled quotation marks are undone.
                assert not any('""' in text for text in (*part.first, *part.second))
                origin = "test" if split == "test" else "dev"
                assert all(re.fullmatch(rf"{origin}:\d+", name) for name in part.ids)


@pytest.mark.parametrize("source", ["pud", "xnli", "xnli-dev", "pawsx", "sib200"])
def test_parallel_sources_have_the_same_ids_in_all_languages(shipped, source: str) -> None:
    found = [parts for (name, _), parts in shipped.items() if name == source]
    for split in set.intersection(*map(set, found)):
        assert len({parts[split].ids for parts in found}) == 1
        if source != "pud":
            assert len({parts[split].labels for parts in found}) == 1
        hashes = {parts[split].text_hash() for parts in found}
        assert len(hashes) == len(found)


def test_pud_sentences_are_not_in_train_or_validation_of_ud(shipped) -> None:
    for language in languages.for_task("POS", "CL"):
        ud = shipped["ud", language]
        seen = set(map(letters, (*ud["train"].sentences, *ud["validation"].sentences)))
        assert not seen & set(map(letters, shipped["pud", language]["test"].sentences))


def test_nothing_is_in_the_pretraining_text(shipped, pretraining_letters) -> None:
    keys = {
        letters(words)
        for parts in shipped.values()
        for part in parts.values()
        for words in texts(part)
    }
    assert len(keys) > 60_000
    assert not keys & pretraining_letters
    assert "" not in keys


def test_arabic_is_without_vowel_signs(shipped) -> None:
    """As the current release has it; that of UD 1 had them in every word."""
    for part in shipped["ud", "ar"].values():
        assert not re.search("[\u064b-\u0652\u0670]", "".join(chain.from_iterable(part.sentences)))


def test_every_file_has_source_and_licence_and_the_readme_names_them() -> None:
    table = catalogue("labelled")
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert (table[["treebank", "version"]] != "").all(axis=None)
    treebanks = table[table["source"].isin(["ud", "pud", "uner"])]
    assert (treebanks["licence_file"] != "").all()
    for row in table.itertuples():
        assert row.treebank in readme
    assert set(["ar", "bg", "el", "et", "he", "hi", "hu", "it", "tr", "uk", "ur"]) == set(
        table[(table["source"] == "ud") & table["licence"].str.contains("NC")]["language"]
    )
