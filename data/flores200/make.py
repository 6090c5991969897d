"""Make the shipped parts of FLORES-200 devtest: by languages, the first 100, and those of a task.

    python data/flores200/make.py FOLDER

FOLDER holds the original, unpacked (``devtest/eng_Latn.devtest``, at any depth). Each of its files
must be the one on record in ``data/checksums.tsv``. Written beside this script:

* ``devtest100.tar.xz``: ``<label>.txt`` for each language, one sentence a line, UTF-8 with LF;
* ``devtest.tar.xz``: all of it in the 36 languages of `xlx.text.languages`, on record already;
* ``negation.tar.xz``: the same of the sentences of `xlx.text.negation.matched`, in the languages of
  the New Testaments;
* ``checksums.tsv``, ``negation.tsv``: label, original (its name in FLORES-200), text_sha256 (of
  ``<label>.txt``).

`LEFT_OUT` and `RENAMED` are the two corrections of Kargaran et al. (MEXA, appendix A.8).
"""

import warnings
from pathlib import Path

from making import folder_named, sha256, write_archive, write_table
from xlx.text import negation, parallel
from xlx.text.languages import LANGUAGES

HERE = Path(__file__).parent


#: Sentences taken, from the first on (MEXA, section 4.1).
N = 100

#: Labelled Cantonese, but it is not.
LEFT_OUT = {"yue_Hant"}

#: Labelled Central Atlas Tamazight, but it is Standard Moroccan Tamazight.
RENAMED = {"tzm_Tfng": "zgh_Tfng"}


def main() -> None:
    folder = folder_named(__doc__, "devtest/eng_Latn.devtest and so on")
    with warnings.catch_warnings():
        # Text that is not on record stops here; one repeated sentence is named in the README.
        warnings.simplefilter("error", parallel.CorpusWarning)
        warnings.filterwarnings("ignore", ".*repeat an earlier one", parallel.CorpusWarning)
        tags = parallel.tags("flores200")
        whole = parallel.load("flores200", tags, path=folder)
    keys = {RENAMED.get(tag, tag): key for key, tag in tags.items() if tag not in LEFT_OUT}
    everywhere = parallel.load(negation.LEARNT, drop_duplicates=True).languages
    of_task = {label: key for label, key in keys.items() if key in everywhere}
    for archive, record, there, places in (
        ("devtest", "", {x.flores: code for code, x in LANGUAGES.items()}, range(len(whole))),
        ("devtest100", "checksums", keys, range(N)),
        ("negation", "negation", of_task, negation.matched(whole.sentences["en"], None, seed=1)[0]),
    ):
        texts = {
            label: "".join(f"{whole.sentences[key][i]}\n" for i in places)
            for label, key in sorted(there.items())
        }
        write_archive(HERE / f"{archive}.tar.xz", {f"{label}.txt": x for label, x in texts.items()})
        rows = [(label, tags[there[label]], sha256(text.encode())) for label, text in texts.items()]
        if record:
            write_table(HERE / f"{record}.tsv", ("label", "original", "text_sha256"), rows)
        print(f"{archive}: {len(texts)} languages, {len(places)} sentences each")


if __name__ == "__main__":
    main()
