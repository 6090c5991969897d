"""Make the shipped part of FLORES-200: the first 100 sentences of devtest, by language.

    python data/flores200/make.py FOLDER

FOLDER holds the original, unpacked (``devtest/eng_Latn.devtest``, at any depth). Each of its files
must be the one on record in ``data/checksums.tsv``. Written beside this script:

* ``devtest100.tar.xz``: ``<label>.txt`` for each language, one sentence a line, UTF-8 with LF;
* ``checksums.tsv``: label, original (its name in FLORES-200), text_sha256 (of ``<label>.txt``).

`LEFT_OUT` and `RENAMED` are the two corrections of Kargaran et al. (MEXA, appendix A.8).
"""

import argparse
import hashlib
import io
import lzma
import sys
import tarfile
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from xlx.text import corpora

#: Sentences taken, from the first on (MEXA, section 4.1).
N = 100

#: Labelled Cantonese, but it is not.
LEFT_OUT = {"yue_Hant"}

#: Labelled Central Atlas Tamazight, but it is Standard Moroccan Tamazight.
RENAMED = {"tzm_Tfng": "zgh_Tfng"}


def pack(texts: dict[str, bytes]) -> bytes:
    """A tar.xz of the files, the same bytes in every run."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for label, data in texts.items():
            member = tarfile.TarInfo(f"{label}.txt")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="with devtest/eng_Latn.devtest and so on")
    folder = parser.parse_args().folder
    with warnings.catch_warnings():
        # Text that is not on record stops here; one repeated sentence is named in the README.
        warnings.simplefilter("error", corpora.CorpusWarning)
        warnings.filterwarnings("ignore", ".*repeat an earlier one", corpora.CorpusWarning)
        tags = corpora.tags("flores200")
        whole = corpora.load("flores200", tags, path=folder)
    keys = {RENAMED.get(tag, tag): key for key, tag in tags.items() if tag not in LEFT_OUT}
    texts = {}
    for label, key in sorted(keys.items()):
        lines = (f"{sentence}\n" for sentence in whole.sentences[key][:N])
        texts[label] = "".join(lines).encode("utf-8")
    (HERE / "devtest100.tar.xz").write_bytes(pack(texts))
    lines = ["label\toriginal\ttext_sha256\n"]
    for label, data in texts.items():
        lines.append(f"{label}\t{tags[keys[label]]}\t{hashlib.sha256(data).hexdigest()}\n")
    (HERE / "checksums.tsv").write_text("".join(lines), encoding="utf-8", newline="\n")
    print(f"{len(texts)} languages, {N} sentences each")


if __name__ == "__main__":
    main()
