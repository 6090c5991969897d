"""Labelled data: what is shipped, the public layouts, and every way a file can be malformed."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.made import conllu_row as word
from tests.text.made import put
from xlx.text import labelled
from xlx.text.examples import aligned
from xlx.text.files import TextError
from xlx.text.labelled import NLI, PI
from xlx.text.labelled import load_labelled as load

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
    assert (read.name, len(read)) == (f"pawsx {language} {split}", 2)
    again = load("PI", language, split, path=tmp_path / "x-final" / language)
    assert again.table_hash() == read.table_hash()


GAPS = ["NS\tB\t0", "A\tns\t1", "A\tNA\t1", " \tB\t0", "\t\t0", "NS\tNS\tNA", "A\tB\tNA", "A\tB\t"]


def test_pawsx_as_in_xtreme_without_what_was_not_translated(tmp_path: Path) -> None:
    rows = [*GAPS, '"""Ja"" ist ein Lied."\tEin Lied.\t1', "NSA\tB NS\t0"]
    put(tmp_path, "dev-de.tsv", "\r\n".join(rows))
    read = load("PI", "de", "validation", path=tmp_path)
    assert read.first == ('"Ja" ist ein Lied.', "NSA")
    assert (read.row_labels, read.ids) == (["paraphrase", "different"], ("9", "10"))


SENTENCE = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=' "'), min_size=1
).filter(lambda text: text.strip() and text.strip().casefold() not in ("ns", "na"))


@settings(max_examples=30)
@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.sampled_from("01")), min_size=1))
def test_sentences_are_those_that_xtreme_gave_to_its_csv_writer(pairs) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter="\t", lineterminator="\n").writerows(pairs)
    columns = labelled.read_rows(written.getvalue().split("\n")[:-1], "file", "PI")
    expected = [(*texts, PI[int(label)], str(i)) for i, (*texts, label) in enumerate(pairs, 1)]
    assert list(zip(*columns, strict=True)) == expected


def test_topics_in_the_public_layout() -> None:
    sentences, second, topics, ids = labelled.read_rows(SIB.split("\n")[:-1], "file", "TOPIC")
    assert (sentences, second) == (('"Ja", sagt sie.', "Er \u2028läuft."), None)
    assert (topics, ids) == (("politics", "sports"), ("12", "7"))


# --- malformed files (CoNLL-U: test_trees) --------------------------------------------------------

UD, WIKI, UNER = "de_gsd-ud-test.conllu", "dev-de.tsv", "sk_snk-ud-test.iob2"
PAWSX, ALL = "de/dev_2k.tsv", "xnli.dev.tsv"


@pytest.mark.parametrize(
    ("task", "name", "text", "says"),
    [
        ("POS", UD, CONLLU + "\n" + word(1, "a", "_"), "line 15: 'a' has the tag '_', which"),
        ("NER", WIKI, "", "is empty"),
        ("NLI", ALL, XNLI.split("\n")[0], "nothing of this language"),
        ("PI", PAWSX, PAWS.replace("label", "gold", 1), "line 1: 4 columns, not 3"),
        ("NLI", WIKI, THREE + "a\tb\tmaybe\n", "line 3: 'maybe' is none of entailment"),
        ("NER", WIKI, "a\tO\nb\tB-MISC\n", "line 2: the tag 'B-MISC' is none of O B-PER"),
        ("NER", UNER, FIVE + "2-3\ta\tO\tO\t-\n", "line 9: this is not word 2"),
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
    ("arguments", "options", "message"),
    [
        (("POS", "de", "dev"), {}, "no split .dev.: choose train, validation, test"),
        (("POS", "de", "test"), {"source": "xnli"}, "no source of POS .xnli.: choose ud, pud"),
        (("TOPIC", "de", "test"), {"path": "sib"}, "sib200 is shipped whole"),
        (("TOPIC", "de", "train"), {}, "No train part of sib200 is shipped in de, only in English"),
        (("NLI", "de", "test"), {"source": "xnli-dev"}, "no test part, only train.*source='xnli'"),
    ],
)
def test_requests_that_cannot_be_met(arguments, options, message: str) -> None:
    with pytest.raises(TextError, match=message):
        load(*arguments, **options)


# --- what is given back ---------------------------------------------------------------------------


def test_parallel_parts_are_aligned_drawn_alike_and_cut_to_the_shortest() -> None:
    english, german = (load("PI", code, "test") for code in ("en", "de"))
    aligned({"en": english.take(20, seed=1), "de": german.take(20, seed=1)})
    sets, left_out = labelled.parallel_examples("PI", ["en", "de"], "test", 20)
    assert sets["en"].ids == sets["de"].ids
    assert left_out == {"missing": 0, "other label": 0}
    with pytest.raises(ValueError, match="given twice"):
        labelled.parallel_examples("PI", ["en", "en"], "test")
