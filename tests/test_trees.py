"""Trees: reading CoNLL-U, what is shipped, UDPipe, and dumps of Wikipedia."""

import bz2
import hashlib
import json
import lzma
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ufal import udpipe

from xlx import labelled, paths, trees
from xlx.trees import FLAWS, Trees, TreesError, load, read_conllu

FOLDER = paths.DATA / "trees"
LANGUAGES = ("en", "de", "es", "fr", "ru", "tr", "hi")


def row(number: object, form: str, tag: str, head: object, relation: str, feats: str = "_") -> str:
    return "\t".join((str(number), form, "_", tag, "_", feats, str(head), relation, "_", "_"))


GERMAN = [
    "# sent_id = a-1",
    "# split = train",
    "# text = Anna wohnt im Haus.",
    row(1, "Anna", "PROPN", 2, "nsubj", "Case=Nom|Number=Sing"),
    row(2, "wohnt", "VERB", 0, "root", "Number=Sing|Tense=Pres"),
    row("3-4", "im", "_", "_", "_"),
    row(3, "in", "ADP", 5, "case"),
    row(4, "dem", "DET", 5, "det"),
    row(5, "Haus", "NOUN", 2, "obl", "Number=Sing"),
    row("5.1", "steht", "VERB", "_", "_"),
    row(6, ".", "PUNCT", 2, "punct"),
    "",
    row(1, "Ja", "INTJ", 0, "root"),
    "",
]


def read(*lines: str, **options: object) -> Trees:
    return read_conllu(lines, "a.conllu", "de", **options)


def test_a_tree_has_words_and_tokens() -> None:
    first, second = read(*GERMAN)
    assert first.words == ("Anna", "wohnt", "in", "dem", "Haus", ".")
    assert first.tokens == ("Anna", "wohnt", "im", "Haus", ".")
    assert first.token_of == (0, 1, 2, 2, 3, 4)
    assert first.heads == (2, 0, 5, 5, 2, 2)
    assert first.relations == ("nsubj", "root", "case", "det", "obl", "punct")
    assert first.upos == ("PROPN", "VERB", "ADP", "DET", "NOUN", "PUNCT")
    assert first.features[0] == {"Case": "Nom", "Number": "Sing"}
    assert first.features[2] == {}
    assert (first.id, second.id, first.language) == ("a-1", "2", "de")
    assert (first.root, first.depth, len(first)) == (1, 2, 6)
    assert (second.root, second.depth, second.tokens) == (0, 0, ("Ja",))
    assert first.children(1) == [0, 4, 5]
    assert first.children(1, "nsubj", "punct") == [0, 5]
    assert first.below(4) == {2, 3, 4}
    assert first.key == "annawohntimhaus"


def test_only_the_sentences_of_a_split_are_taken() -> None:
    assert [tree.id for tree in read(*GERMAN, split="train")] == ["a-1"]
    with pytest.raises(TreesError, match=r"a.conllu has no sentences of test"):
        read(*GERMAN, split="test")


def test_names_of_ud_1_are_read_as_those_of_ud_2() -> None:
    (tree,) = read(
        row(1, "und", "CONJ", 2, "cc"),
        row(2, "war", "VERB", 0, "root", "Number=Pl|Tense=Past"),
        row(3, "er", "PRON", 2, "nsubjpass", "Number=Sg"),
        row(4, "es", "PRON", 2, "dobj"),
        row(5, "nie", "ADV", 2, "neg"),
        row(6, "dort", "ADV", 2, "advmod:emph"),
    )
    assert tree.upos[0] == "CCONJ"
    assert tree.relations == ("cc", "root", "nsubj:pass", "obj", "advmod", "advmod:emph")
    assert tree.features[1:3] == ({"Number": "Plur", "Tense": "Past"}, {"Number": "Sing"})
    assert tree.relation(2) == "nsubj"
    assert tree.children(1, "nsubj") == [2]


def test_two_trees_of_the_same_analysis_have_one_hash() -> None:
    one, same = read(*GERMAN), read(*GERMAN[1:])
    assert one.text_hash() == same.text_hash()  # the id does not matter
    lines = [line.replace("nsubj", "obj") for line in GERMAN]
    assert read(*lines).text_hash() != one.text_hash()


# --- sentences that are no trees ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "flaw"),
    [
        ((0, 1, 1), ""),
        ((2, 0, 2), ""),
        ((0, 0, 1), "two roots"),
        ((2, 3, 1), "no root"),
        ((0, 3, 2), "a cycle"),
        ((0, 2, 1), "a cycle"),
        ((0, 1, 4), "no such head"),
    ],
)
def test_a_sentence_that_is_no_tree_is_left_out_and_named(heads, flaw: str) -> None:
    lines = [row(i, "a", "X", head, "dep") for i, head in enumerate(heads, 1)]
    made = read("# sent_id = x", *lines, "", *GERMAN)
    assert len(made) == 2 + (not flaw)
    assert made.left_out == dict.fromkeys(FLAWS, 0) | ({flaw: 1} if flaw else {})
    assert made.dropped == ((f"x, line 2: {flaw}",) if flaw else ())
    if flaw:
        with pytest.raises(TreesError, match=rf"a.conllu, line 2: sentence x is no tree: {flaw}"):
            read("# sent_id = x", *lines, strict=True)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_depth_is_the_longest_way_to_the_root(heads: list[int]) -> None:
    def steps(word: int) -> int | None:
        for n in range(len(heads) + 1):
            if heads[word] == 0:
                return n
            if heads[word] > len(heads):
                return None
            word = heads[word] - 1
        return None

    made = read(*[row(i, "a", "X", head, "dep") for i, head in enumerate(heads, 1)])
    ways = [steps(word) for word in range(len(heads))]
    good = heads.count(0) == 1 and None not in ways
    assert len(made) == good
    if good:
        assert made.trees[0].depth == max(ways)


# --- malformed files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\tJa\t_"], r"line 1: 3 columns, not 10"),
        ([row(1, "Ja", "INTJ", 0, "root"), "# text = Ja"], r"line 2: a comment among the words"),
        ([row(2, "Ja", "INTJ", 0, "root")], r"line 1: word 2 follows word 0"),
        ([row("x", "Ja", "INTJ", 0, "root")], r"line 1: word x follows word 0"),
        ([row(1, " ", "INTJ", 0, "root")], r"line 1: a word without form"),
        ([row(1, "Ja", "NN", 0, "root")], r"line 1: 'Ja' has the tag 'NN', which is none of UD's"),
        ([row(1, "Ja", "INTJ", "_", "root")], r"line 1: word 1 has the head '_'.*parsed\?"),
        ([row(1, "Ja", "INTJ", -1, "root")], r"line 1: word 1 has the head '-1'"),
        ([row(1, "Ja", "INTJ", 0, "_")], r"line 1: word 1 has the relation '_'"),
        ([row(1, "Ja", "INTJ", 0, "root", "Sing")], r"line 1: the features 'Sing' are not"),
        ([row(1, "Ja", "INTJ", 0, "root", "A=B||C=D")], r"line 1: the features"),
        ([row("2-3", "im", "_", "_", "_")], r"line 1: the range 2-3 after word 0"),
        ([row("1-1", "im", "_", "_", "_")], r"line 1: the range 1-1 after word 0"),
        (
            [row("1-2", "im", "_", "_", "_"), row("1-3", "im", "_", "_", "_")],
            r"line 2: the range 1-3",
        ),
        (
            [
                row("1-3", "im", "_", "_", "_"),
                row(1, "in", "ADP", 0, "root"),
                row("2-3", "im", "_", "_", "_"),
            ],
            r"line 3: the range 2-3 after word 1",
        ),
        (
            [row("1-2", "im", "_", "_", "_"), row(1, "in", "ADP", 0, "root")],
            r"line 1: a range ends at word 2",
        ),
        (["# sent_id = a"], r"line 2: a sentence without words"),
        ([*GERMAN, "# sent_id = 2", *GERMAN[3:12]], r"line 16: sentence 2 is also at line 13"),
        ([], r"a.conllu has no sentences"),
    ],
)
def test_malformed_conllu_is_an_error_with_its_line(lines: list[str], message: str) -> None:
    with pytest.raises(TreesError, match=message):
        read(*lines)


# --- files ----------------------------------------------------------------------------------------


def put(folder: Path, name: str, lines: list[str]) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    data = "\n".join(lines).encode()
    file.write_bytes(lzma.compress(data) if name.endswith(".xz") else data)
    return file


def test_a_local_file_or_folder_is_read(tmp_path: Path) -> None:
    one = put(tmp_path, "b/de-test.conllu.xz", GERMAN)
    read_one = load("deu", "gsd", path=one)
    assert [tree.id for tree in read_one] == ["a-1", "2"]
    assert (read_one.language, read_one.source, read_one.n_words) == ("de", "gsd", 7)
    assert load("de", "gsd", path=tmp_path).text_hash() == read_one.text_hash()
    put(tmp_path, "a.conllu", [row(1, "Ja", "INTJ", 2, "root"), "", *GERMAN])
    both = load("de", "gsd", path=tmp_path)
    assert [tree.id for tree in both] == ["a:a-1", "a:3", "b/de-test:a-1", "b/de-test:2"]
    assert both.dropped == ("a:1, line 1: no such head",)


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing at .*nowhere"):
        load("de", path=tmp_path / "nowhere")
    with pytest.raises(TreesError, match=r"has no .conllu or .conllu.xz file"):
        load("de", path=tmp_path)
    file = put(tmp_path, "a.conllu", GERMAN)
    file.write_bytes(b"# \xff")
    with pytest.raises(TreesError, match=r"line 1: byte 0xff is not UTF-8"):
        load("de", path=file)
    file.write_bytes(lzma.compress("\n".join(GERMAN).encode())[:-20])
    with pytest.raises(TreesError, match=r"a.conllu: not a whole packed file"):
        load("de", path=file)
    with pytest.raises(TreesError, match=r"No trees of ud are shipped in ja; there is en, de"):
        load("ja")
    with pytest.raises(TreesError, match=r"no source 'wiki'; ud and pud are shipped"):
        load("de", "wiki")
    with pytest.raises(TreesError, match=r"klingon"):
        load("klingon")


# --- what is shipped ------------------------------------------------------------------------------


def test_the_table_says_what_is_shipped() -> None:
    shipped = trees.table()
    assert [tuple(each) for each in shipped[["source", "language"]].to_numpy()] == [
        (source, language) for source in trees.SOURCES for language in LANGUAGES
    ]
    files = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.xz")}
    assert files == set(shipped["file"])
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 4_500_000
    for each in shipped.itertuples():
        assert hashlib.sha256((FOLDER / each.file).read_bytes()).hexdigest() == each.sha256
        assert (paths.DATA / each.licence_file).is_file()


@pytest.fixture(scope="module")
def shipped() -> dict[tuple[str, str], Trees]:
    return {(s, code): load(code, s) for s in trees.SOURCES for code in LANGUAGES}


def test_every_shipped_file_is_read_and_is_as_the_table_says(shipped) -> None:
    for each in trees.table().itertuples():
        read_one = shipped[each.source, each.language]
        assert len(read_one) == each.sentences
        assert read_one.n_words == each.words
        assert sum(len(tree.tokens) for tree in read_one) == each.tokens
        assert not read_one.dropped
        assert all(3 <= len(tree) <= 60 for tree in read_one)
        assert read_one.left_out["repeated"] >= 0
        assert set(FLAWS) < set(read_one.left_out)


def test_no_language_has_a_sentence_twice(shipped) -> None:
    for code in LANGUAGES:
        keys = [tree.key for source in trees.SOURCES for tree in shipped[source, code]]
        assert len(set(keys)) == len(keys)
        assert "" not in keys


def test_shipped_trees_use_the_names_of_ud_2(shipped) -> None:
    for each in shipped.values():
        relations = {relation for tree in each for relation in tree.relations}
        assert "obj" in relations
        assert not relations & {"dobj", "nsubjpass", "auxpass", "neg", "mwe"}
        numbers = {word.get("Number") for tree in each for word in tree.features}
        assert {"Sing", "Plur"} <= numbers
        assert not numbers & {"Sg", "Pl"}
        tenses = {word.get("Tense") for tree in each for word in tree.features}
        assert {"Past", "Pres"} <= tenses


def test_the_tagged_words_of_a_sentence_are_those_of_its_tree(shipped) -> None:
    tagged = labelled.load("POS", "de", "test")
    by_id = {tree.id: tree.words for tree in shipped["ud", "de"]}
    here = [name for name in tagged.ids if name in by_id]
    assert len(here) > 290  # of 300; the others are in the dev part too
    words = dict(zip(tagged.ids, tagged.sentences, strict=True))
    assert all(by_id[name] == words[name] for name in here)


def test_a_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_FOLDER", tmp_path)
    with pytest.raises(TreesError, match=r"sources.tsv is missing"):
        trees.table()
    table = pd.read_csv(FOLDER / "sources.tsv", sep="\t", dtype=str)
    table.to_csv(tmp_path / "sources.tsv", sep="\t", index=False)
    with pytest.raises(TreesError, match=r"de.conllu.xz is missing; restore"):
        load("de")
    put(tmp_path, "ud/de.conllu.xz", GERMAN)
    with pytest.raises(TreesError, match=r"not the file on record"):
        load("de")


# --- UDPipe ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of UDPipe, trained here on some shipped sentences for one iteration."""
    lines = lzma.decompress((FOLDER / "pud" / "en.conllu.xz").read_bytes()).decode()
    sentences = "\n\n".join(lines.split("\n\n")[:15]) + "\n\n"
    reader = udpipe.InputFormat.newInputFormat("conllu")
    reader.setText(sentences)
    error, training = udpipe.ProcessingError(), udpipe.Sentences()
    sentence = udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        training.append(sentence)
        sentence = udpipe.Sentence()
    assert not error.occurred()
    assert len(training) == 15
    made = udpipe.Trainer.train(
        "morphodita_parsito",
        training,
        udpipe.Sentences(),
        "dimension=16;epochs=1;initialize_threshold=1",
        "models=1;iterations=1;guesser_suffix_rules=2",
        "iterations=1;hidden_layer=8;embedding_upostag=4;embedding_feats=4;embedding_deprel=4",
        error,
    )
    assert not error.occurred(), error.message
    file = tmp_path_factory.mktemp("model") / "tiny.udpipe"
    file.write_bytes(made)
    return file


def test_udpipe_parses_text(model: Path) -> None:
    texts = ["The house is old .\nAnna sees it .", "They left ."]
    lines = trees.parse(texts, model, "en", presegmented=True)
    made = read_conllu(lines, "parsed", "en")
    assert len(made) + len(made.dropped) == 3
    assert [tree.id for tree in made] == ["1-1", "1-2", "2-1"]
    found = ["".join(tree.tokens) for tree in made]
    assert found == ["Thehouseisold.", "Annaseesit.", "Theyleft."]
    assert trees.parse(texts, model, "en", presegmented=True) == lines
    free = read_conllu(trees.parse(["The house is old."], model, "en"), "parsed", "en")
    assert "".join(token for tree in free for token in tree.tokens) == "Thehouseisold."


def test_what_is_no_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no UDPipe model .*no.udpipe for de.*11234"):
        trees.parse(["Ja."], tmp_path / "no.udpipe", "de")
    (tmp_path / "bad.udpipe").write_bytes(b"not a model")
    with pytest.raises(TreesError, match=r"bad.udpipe is not a model of UDPipe 1"):
        trees.parse(["Ja."], tmp_path / "bad.udpipe", "de")


# --- dumps of Wikipedia ---------------------------------------------------------------------------

WIKI = """<doc id="1" url="https://x?curid=1" title="A &amp; B">
A & B

A is a letter. B is too.
They are old.


</doc>
<doc id="2" url="https://x?curid=2" title="Empty">
Empty

</doc>
<doc id="3" url="https://x?curid=3" title="C">
C

C is a letter.

</doc>
"""
DOCUMENTS = ["A is a letter. B is too.\n\nThey are old.", "C is a letter."]


def test_a_dump_is_read_in_its_layouts(tmp_path: Path) -> None:
    objects = [
        {
            "id": "1",
            "url": "u",
            "title": "A & B",
            "text": "A is a letter. B is too.\nThey are old.",
        },
        {"id": "2", "url": "u", "title": "Empty", "text": ""},
        {"id": "3", "url": "u", "title": "C", "text": "C\n\nC is a letter."},
    ]
    as_json = "".join(json.dumps(each) + "\n" for each in objects)
    for name, data in {
        "a/AA/wiki_00": WIKI.encode(),
        "b/AA/wiki_00.bz2": bz2.compress(WIKI.encode()),
        "c/AB/wiki_17": as_json.encode(),
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
        assert list(trees.read_wiki(file)) == DOCUMENTS
        assert list(trees.read_wiki(tmp_path / name[0])) == DOCUMENTS
    assert list(trees.read_wiki(tmp_path)) == DOCUMENTS * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Text.\n" + WIKI, r"wiki_00, line 1: text outside"),
        (WIKI.replace("</doc>\n", "", 1), r"wiki_00, line 8: the document of line 1 is open"),
        (WIKI[: WIKI.rindex("</doc>")], r"the document of line 13 does not end"),
        ('{"title": "A", "text": "B"}\n{"title": "A"}\n', r"wiki_00, line 2: not a JSON object"),
        ('{"title": "A"\n', r"wiki_00, line 1: not a JSON object"),
    ],
)
def test_a_malformed_dump_is_an_error_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "wiki_00"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TreesError, match=message):
        list(trees.read_wiki(file))


def test_no_dump_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(bz2.compress(WIKI.encode())[:-8])
    with pytest.raises(TreesError, match=r"cut: not a whole packed file"):
        list(trees.read_wiki(tmp_path / "cut"))
    with pytest.raises(FileNotFoundError, match=r"nothing at"):
        list(trees.read_wiki(tmp_path / "no"))
    with pytest.raises(TreesError, match=r"no files such as AA/wiki_00"):
        list(trees.read_wiki(tmp_path))


def test_a_dump_is_parsed_file_by_file_and_goes_on(tmp_path: Path, model: Path) -> None:
    for name in ("AA/wiki_00", "AA/wiki_01"):
        file = tmp_path / "dump" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(WIKI, encoding="utf-8")
    out = tmp_path / "out"
    files = trees.parse_wiki(tmp_path / "dump", model, "en", out)
    assert [file.name for file in files] == ["AA_wiki_00.conllu", "AA_wiki_01.conllu"]
    assert sorted(out.iterdir()) == files
    made = load("en", "wiki", path=out)
    assert len(made) >= 4
    assert {tree.id.split("-")[0] for tree in made} == {
        f"AA_wiki_0{file}:{document}" for file in (0, 1) for document in (1, 2)
    }
    files[0].write_text("\n".join(GERMAN), encoding="utf-8")
    files[1].unlink()
    trees.parse_wiki(tmp_path / "dump", model, "en", out)
    assert files[0].read_text("utf-8") == "\n".join(GERMAN)  # what is there is not made again
    assert files[1].exists()


def test_a_dump_without_a_sentence_leaves_no_file(tmp_path: Path, model: Path) -> None:
    (tmp_path / "wiki_00").write_text('<doc id="2" title="Empty">\nEmpty\n</doc>\n', "utf-8")
    with pytest.raises(TreesError, match=r"wiki_00 has no sentence"):
        trees.parse_wiki(tmp_path, model, "en", tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
