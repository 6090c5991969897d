"""Make the held-out verses: the New Testament books that no miniature model is trained on.

    python data/new_testament/make.py FOLDER

FOLDER holds the originals, unpacked (``de.tsv`` and so on, ``id<TAB>verse``), from which
``data/pretraining/make.py`` took the other books. Written beside this script:

* ``held_out.tar.xz``: ``<lang>.tsv``, ``id<TAB>verse``, the books of `HELD_OUT_BOOKS` in the
  languages of ``data/pretraining/bible_nt.tar.xz``;
* ``checksums.tsv``: corpus (of `parallel.load`), language, verses, text_sha256 (of ``<lang>.tsv``
  in the archive), for both archives.

White space is normalised as in the pretraining text. A verse whose letters and digits are those of
a line that members are trained on, in the same language and from any source, is left out; those
that any line of any language has are printed.
"""

from pathlib import Path

from family.pretraining_text import HELD_OUT_BOOKS, by_language, read_source, read_text
from making import folder_named, sha256, write_archive, write_table
from xlx.text.files import letters

HERE = Path(__file__).parent


def held_out(text: str) -> dict[str, str]:
    """The verses of `HELD_OUT_BOOKS` in an original (``id<TAB>verse`` lines), by id."""
    rows = [row.split("\t", 1) for row in text.split("\n") if row]
    verses = {key: " ".join(verse.split()) for key, verse in rows}
    return {key: v for key, v in verses.items() if v and key.split(".")[0] in HELD_OUT_BOOKS}


def main() -> None:
    folder = folder_named(__doc__, "de.tsv and so on")
    trained = read_text()[0]
    lines = {
        code: set(map(letters, verses_trained))
        for code, verses_trained in by_language(trained).items()
    }
    archives = {"new-testament": read_source("bible_nt"), "new-testament-held-out": {}}
    for code in archives["new-testament"]:
        verses = held_out((folder / f"{code}.tsv").read_text("utf-8"))
        for key, verse in verses.items():
            if same := [other for other, known in lines.items() if letters(verse) in known]:
                print(f"{code} {key} is a line that members are trained on in {' '.join(same)}")
        apart = {key: verse for key, verse in verses.items() if letters(verse) not in lines[code]}
        archives["new-testament-held-out"][code] = apart
        print(f"{code}: {len(apart)} verses, {len(verses) - len(apart)} left out")
    rows, members = [], {}
    for corpus, texts in archives.items():
        for code, verses in sorted(texts.items()):
            text = "".join(f"{key}\t{verse}\n" for key, verse in verses.items())
            rows.append((corpus, code, len(verses), sha256(text.encode())))
            if corpus == "new-testament-held-out":
                members[f"{code}.tsv"] = text
    write_archive(HERE / "held_out.tar.xz", members)
    columns = ("corpus", "language", "verses", "text_sha256")
    write_table(HERE / "checksums.tsv", columns, rows)


if __name__ == "__main__":
    main()
