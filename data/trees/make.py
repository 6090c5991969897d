"""Make the shipped dependency trees from the unpacked originals.

    python data/trees/make.py FOLDER

FOLDER holds ``ud/`` and ``ud_pud/``, folders of treebanks, as for ``data/labelled/make.py``. Of UD
those in `LANGUAGES` are taken, of PUD all.
Written beside this script:

* ``ud/<lang>.conllu.xz``, ``pud/<lang>.conllu.xz``: ID, FORM, LEMMA, UPOS, FEATS, HEAD and DEPREL
  of CoNLL-U; XPOS, DEPS and MISC are ``_``, empty nodes and all comments but ``sent_id`` are gone;
* ``sources.tsv``: one row a file, read by `xlx.text.files.catalogue`.

Every sentence of the treebanks' files is taken but those of fewer than 3 words or more than 60, a
line of the miniature models' pretraining text, and one that the language has already (in ``ud``
before ``pud``). Two sentences are the same when their letters and digits are (case, spaces and
punctuation do not matter); both the tokens and ``# text`` are compared. Nothing is drawn.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from making import (
    UD_URL,
    by_language,
    folder_named,
    licence,
    trained_letters,
    treebank_files,
    version,
    write_packed,
    write_table,
)
from xlx.text import trees
from xlx.text.files import letters
from xlx.text.trees import comment, sentence_blocks

HERE = Path(__file__).parent


LANGUAGES = ("en", "de", "es", "fr", "ru", "tr", "hi")
SHORTEST, LONGEST = 3, 60
REASONS = (
    *("no tree", "fewer than 3 words", "more than 60 words", "in the pretraining text"),
    "repeated",
)
#: Forms of the past tense of Hindi's auxiliary; its habitual participle has the same feature.
WAS = {"था", "थी", "थे", "थीं"}

COLUMNS = (
    *("source", "language", "treebank", "version", "sentences", "words", "tokens", "left_out"),
    *("made_from", "licence", "licence_file", "url", "file", "sha256"),
)


def plain(rows: Iterable[str]) -> list[list[str]]:
    """The cells of the rows that are kept, without those that are not."""
    cells = [row.split("\t") for row in rows]
    return [[*c[:4], "_", *c[5:8], "_", "_"] for c in cells if "." not in c[0]]


def with_tense(rows: list[list[str]]) -> None:
    """Put the tense of Hindi's UD 1, which has none, into FEATS, where UD 2 and PUD have it.

    UD 1 has the form's ending instead: ``Aspect=He`` (है) is the present, ``Ga`` the future, ``Wa``
    the past of the auxiliary (था) or a habitual participle, which has no tense; ``Ya`` and ``Ya1``
    a perfective form, past unless the verb or an auxiliary of it shows its tense: किया, but not
    किया है. So it is in PUD.
    """
    shown = {}
    for cells in rows:
        ending = dict(each.split("=") for each in cells[5].split("|") if "=" in each).get("Aspect")
        if cells[3] not in ("VERB", "AUX"):
            continue
        if ending == "Wa" and cells[1] in WAS:
            shown[cells[0]] = "Past"
        elif ending in ("He", "Ga"):
            shown[cells[0]] = {"He": "Pres", "Ga": "Fut"}[ending]
    verb = {c[0]: c[6] if c[7].startswith(("aux", "cop")) else c[0] for c in rows}
    groups = {verb[number] for number in shown}
    for cells in rows:
        perfective = {"Aspect=Ya", "Aspect=Ya1"} & set(cells[5].split("|"))
        tense = shown.get(cells[0])
        if perfective and cells[3] in ("VERB", "AUX") and verb[cells[0]] not in groups:
            tense = "Past"
        if tense:
            cells[5] += f"|Tense={tense}"


def sentences(file: Path, part: str, hindi: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    """Id, rows and the text as written of every sentence of a file."""
    lines = file.read_text(encoding="utf-8").split("\n")
    for number, (_, comments, rows) in enumerate(sentence_blocks(lines, str(file)), 1):
        name = comment(comments, "sent_id") or f"{part}-{number}"
        texts = [comment(comments, "text") or ""]
        cells = plain(rows)
        if hindi:
            with_tense(cells)
        yield name, ["\t".join(each) for each in cells], texts


def chosen(
    files: dict[str, Path], language: str, hindi: bool, seen: set[str], forbidden: frozenset[str]
) -> tuple[list[str], Counter[str]]:
    """Lines of the sentences that are shipped, and how many are not, by reason."""
    taken = []
    why = Counter(dict.fromkeys(REASONS, 0))
    for part, file in files.items():
        for name, rows, texts in sentences(file, part, hindi):
            lines = [f"# sent_id = {name}", *rows]
            read = trees.read_trees(lines, f"{file}, {name}", language)
            (tree,) = read.trees or (None,)
            keys = {tree.key, *map(letters, filter(None, texts))} if tree else set()
            if tree is None:
                why["no tree"] += 1
            elif len(tree) < SHORTEST:
                why["fewer than 3 words"] += 1
            elif len(tree) > LONGEST:
                why["more than 60 words"] += 1
            elif keys & forbidden:
                why["in the pretraining text"] += 1
            elif keys & seen or "" in keys:
                why["repeated"] += 1
            else:
                seen |= keys
                taken += [*lines, ""]
    return taken, why


def main() -> None:
    folder = folder_named(__doc__, "ud and ud_pud")
    forbidden = trained_letters()
    copies = sorted((HERE.parent / "labelled" / "licences").iterdir())
    licences = {file.read_bytes(): f"labelled/licences/{file.name}" for file in copies}
    rows = []
    seen = defaultdict(set)
    for source, name in (("ud", "ud"), ("pud", "ud_pud")):
        treebanks = by_language(folder / name)
        for language in LANGUAGES if source == "ud" else sorted(treebanks):
            treebank = treebanks[language]
            files = treebank_files(treebank)
            release = version(files)
            hindi = language == "hi" and release.startswith("UD 1")
            taken, why = chosen(files, language, hindi, seen[language], forbidden)
            file = write_packed(HERE, f"{source}/{language}.conllu.xz", "\n".join(taken) + "\n")
            made = trees.read_trees(taken, file[0], language)
            sizes = (len(made), made.n_words, sum(len(tree.tokens) for tree in made))
            rows.append(
                (
                    *(source, language, treebank.name, release, *sizes),
                    "; ".join(f"{reason}: {n}" for reason, n in why.items()),
                    ", ".join(each.name for each in files.values()),
                    *(licence(treebank), licences[(treebank / "LICENSE.txt").read_bytes()]),
                    *(UD_URL.format(treebank.name), *file),
                )
            )
            print(*rows[-1][:8], sep="  ")
    write_table(HERE / "sources.tsv", COLUMNS, rows)


if __name__ == "__main__":
    main()
