"""Shipped parallel text: what is read of it, and a file that was changed or lost."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from xlx.text import parallel
from xlx.text.files import TextError
from xlx.text.languages import ABX, LANGUAGES
from xlx.text.parallel import CorpusWarning, ParallelCorpus
from xlx.text.pretraining_text import HELD_OUT_BOOKS

SEEN, HELD_OUT = "new-testament", "new-testament-held-out"


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


@pytest.fixture(scope="module")
def flores() -> ParallelCorpus:
    with pytest.warns(CorpusWarning, match="1 sentences at 1 of 100.*tg, line 17"):
        return parallel.load("flores200-100")


def pack(file: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(file, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "codes", "says"),
    [
        ("wmt24pp", ("en", "fr"), r"the text of fr_FR is not .* restore data/wmt24pp from"),
        ("flores200-100", ("en", "fr"), r"fra_Latn is not.*restore data/flores200 from"),
        (HELD_OUT, ("en", "fr"), r"text of fr is not .* restore data/new_testament from"),
    ],
)
def test_a_changed_letter_is_noticed_and_a_lost_file(
    tmp_path, monkeypatch, name: str, codes: tuple, says: str
) -> None:
    tags, origin = parallel.tags(name), parallel.ORIGINS[name]
    folder = origin.shipped
    if folder.is_dir():
        files = {x.name: x.read_bytes() for x in folder.glob("*.t[xs][tv]")}
    else:
        files, folder = members(origin.shipped), folder.parent
    kept = {"segments", *(tags[code] for code in codes)}
    few = {x: data for x, data in files.items() if x.split(".")[0] in kept}
    archive = tmp_path / folder.name / "some.tar.gz"
    archive.parent.mkdir()
    monkeypatch.setitem(parallel.ORIGINS, name, replace(origin, shipped=archive))
    monkeypatch.setattr(parallel, "_stock", lambda *_: ())
    pack(archive, few)
    assert parallel.load(name, codes, drop_duplicates=True).languages == codes
    with pytest.raises(TextError, match=f"no text in {tags['de']}; restore data/"):
        parallel.load(name, ["de", "en"])
    (last,) = (x for x in few if x.startswith(tags["fr"]))
    pack(archive, few | {last: few[last].replace(b"e", b"a", 1)})
    with pytest.raises(TextError, match=says):
        parallel.load(name, codes)
    archive.write_bytes(archive.read_bytes()[:-400])
    with pytest.raises(TextError, match="neither a folder nor a whole tar archive"):
        parallel.load(name, codes)
    archive.unlink()
    with pytest.raises(FileNotFoundError, match="no folder or archive"):
        parallel.load(name, codes)


def test_wmt24pp() -> None:
    with pytest.warns(CorpusWarning, match="51 sentences at 11 of 960 positions"):
        corpus = parallel.load("wmt24pp")
    assert corpus.languages == ABX
    assert len(set(corpus.ids)) == len(corpus) == 960
    corpus = parallel.load("wmt24pp", drop_duplicates=True)
    assert corpus.duplicates().empty
    assert len(corpus.domains) == len(corpus) == 949


def test_codes_and_labels_of_flores(flores: ParallelCorpus) -> None:
    assert (len(flores.languages), len(flores), flores.licence) == (203, 100, "CC BY-SA 4.0")
    assert sum(0x2D30 <= ord(c) <= 0x2D7F for c in flores.sentences["zgh"][0]) > 50
    tags = parallel.tags("flores200-100")
    assert list(tags) == sorted(tags)
    assert all(tags[code] == language.flores for code, language in LANGUAGES.items())
    assert {code for code in tags if "_" in code} == {
        *("ace_Arab", "ace_Latn", "bjn_Arab", "bjn_Latn", "kr_Arab", "kr_Latn"),
        *("ks_Arab", "ks_Deva", "min_Arab", "min_Latn", "taq_Latn", "taq_Tfng"),
        *("ar_Latn", "fa_Arab_AF", "zh_Hant"),
    }
    with pytest.raises(FileNotFoundError, match="no corpus 'wmt'"):
        parallel.tags("wmt")
    asked = ["arb_Latn", "zho_Hant", "zho_Hans", "prs_Arab", "swh_Latn", "zgh", "arb"]
    some = parallel.load("flores200-100", asked)
    assert some.languages == ("ar_Latn", "zh_Hant", "zh", "fa_Arab_AF", "sw", "zgh", "ar")
    assert some.sentences["ar"] == flores.sentences["ar"]
    with pytest.raises(TextError, match="no text in yue_Hant, ace"):
        parallel.load("flores200-100", ["yue_Hant", "ace", "en"])


def test_verses_are_those_that_all_languages_have() -> None:
    held_out = parallel.load(HELD_OUT)  # without a warning, which would be an error
    with pytest.warns(CorpusWarning, match=r"at 65 of 7208 .*cs, Matt.12.17 repeats Matt.4.14;"):
        seen = parallel.load(SEEN)
    assert (len(seen), len(held_out), len(seen.languages)) == (7208, 431, 21)
    assert tuple(dict.fromkeys(held_out.domains)) == HELD_OUT_BOOKS
    assert not set(seen.domains) & set(HELD_OUT_BOOKS)
    assert held_out.domains == tuple(verse.split(".")[0] for verse in held_out.ids)
    pair = parallel.load(HELD_OUT, ["sv", "da"])
    assert pair.languages == ("sv", "da")
    assert set(pair.ids) - set(held_out.ids) == {"3John.1.15"}
    assert "Hils Vennerne" in pair.sentences["da"][pair.ids.index("3John.1.15")]
    with pytest.warns(CorpusWarning, match="repeat"):
        some = parallel.load(SEEN, ["en", "de"])
    assert len(some) == 7525
    verses = dict(zip(some.ids, some.sentences["de"], strict=True))
    assert tuple(verses[verse] for verse in seen.ids) == seen.sentences["de"]
    with pytest.raises(TextError, match="new-testament-held-out has no text in zh; it has cs"):
        parallel.load(HELD_OUT, ["en", "zh"])
