"""Raw text to CoNLL-U: UDPipe, and dumps of Wikipedia."""

import bz2
import lzma
from pathlib import Path

import pytest
from parse_wiki import main, parse_wiki, wiki_documents
from ufal import udpipe

from tests.text.made import put
from xlx.results import paths
from xlx.text.files import TextError
from xlx.text.trees import load_trees

FOLDER = paths.DATA / "trees"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of UDPipe, trained here on some shipped sentences for one iteration."""
    lines = lzma.decompress((FOLDER / "pud" / "en.conllu.xz").read_bytes()).decode()
    sentences = "\n\n".join(lines.split("\n\n")[:5]) + "\n\n"
    reader = udpipe.InputFormat.newInputFormat("conllu")
    reader.setText(sentences)
    error, training = udpipe.ProcessingError(), udpipe.Sentences()
    sentence = udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        training.append(sentence)
        sentence = udpipe.Sentence()
    assert not error.occurred()
    assert len(training) == 5
    made = udpipe.Trainer.train(
        "morphodita_parsito",
        training,
        udpipe.Sentences(),
        "dimension=16;epochs=1;initialize_threshold=1;segment_size=10",
        "models=1;iterations=1;guesser_suffix_rules=2",
        "iterations=1;hidden_layer=8;embedding_upostag=4;embedding_feats=4;embedding_deprel=4",
        error,
    )
    assert not error.occurred(), error.message
    file = tmp_path_factory.mktemp("model") / "tiny.udpipe"
    file.write_bytes(made)
    return file


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


def test_a_dump_is_read_plain_or_packed(tmp_path: Path) -> None:
    for name, data in {
        "a/AA/wiki_00": WIKI.encode(),
        "b/AA/wiki_00.bz2": bz2.compress(WIKI.encode()),
    }.items():
        assert list(wiki_documents(put(tmp_path, name, data))) == DOCUMENTS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Text.\n" + WIKI, r"wiki_00, line 1: text outside"),
        (WIKI.replace("</doc>\n", "", 1), r"wiki_00, line 8: the document of line 1 is open"),
        (WIKI[: WIKI.rindex("</doc>")], r"the document of line 13 does not end"),
    ],
)
def test_a_malformed_dump_is_an_error_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(TextError, match=message):
        list(wiki_documents(put(tmp_path, "wiki_00", text)))


def test_no_dump_is_an_error(tmp_path: Path, model: Path) -> None:
    cut = put(tmp_path, "cut", bz2.compress(WIKI.encode())[:-8])
    with pytest.raises(TextError, match=r"cut: not a whole packed file"):
        list(wiki_documents(cut))
    for path, error, says in (
        (tmp_path / "no", FileNotFoundError, "nothing at"),
        (tmp_path, TextError, "no files such as AA/wiki_00"),
    ):
        with pytest.raises(error, match=says):
            parse_wiki(path, model, "en", tmp_path / "out")
    with pytest.raises(TextError, match="cut is not a model of UDPipe 1"):
        parse_wiki(tmp_path, cut, "de", tmp_path / "out")


def test_a_dump_is_parsed_file_by_file_and_goes_on(tmp_path: Path, model: Path) -> None:
    for name in ("AA/wiki_00", "AA/wiki_01"):
        put(tmp_path / "dump", name, WIKI)
    out = tmp_path / "out"
    files = parse_wiki(tmp_path / "dump", model, "en", out)
    assert [file.name for file in files] == ["AA_wiki_00.conllu", "AA_wiki_01.conllu"]
    assert sorted(out.iterdir()) == files
    made = load_trees("en", "wiki", path=out)
    assert len(made) >= 4
    assert {tree.id.split("-")[0] for tree in made} == {
        f"AA_wiki_0{file}:{document}" for file in (0, 1) for document in (1, 2)
    }
    said = "".join(token for tree in made for token in tree.tokens)
    assert not made.dropped
    assert said == 2 * "".join("".join(DOCUMENTS).split())
    files[0].write_text("made before", encoding="utf-8")
    files[1].unlink()
    parse_wiki(tmp_path / "dump", model, "en", out)
    assert files[0].read_text("utf-8") == "made before"  # what is there is not made again
    assert files[1].exists()


def test_the_command_parses_a_dump_or_says_why_not(tmp_path: Path, model: Path) -> None:
    put(tmp_path / "dump", "AA/wiki_00", WIKI)
    assert main([str(tmp_path / "dump"), str(model), "en", str(tmp_path / "out")]) is None
    assert len(load_trees("en", "wiki", path=tmp_path / "out")) >= 2
    assert "There is no UDPipe model nowhere for de" in main(["", "nowhere", "de", ""])
