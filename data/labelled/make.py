"""Make the shipped labelled data from the unpacked originals.

    python data/labelled/make.py FOLDER

FOLDER holds ``ud/``, ``ud_pud/`` and ``uner/`` (folders of treebanks), ``panx/`` (``train-de.tsv``,
``dev-de.tsv``), ``xnli/`` and ``pawsx/`` (``dev-de.tsv``, ``test-de.tsv``), ``sick/`` (``en.tsv``),
``sib200/`` (``deu_Latn/test.tsv``). Written beside this script:

* ``ud/<lang>.conllu.xz``, ``pud/<lang>.conllu.xz``: all columns of CoNLL-U;
* ``wikiann/<lang>.iob2.xz``, ``uner/<lang>.iob2.xz``: word and tag;
* ``xnli/<lang>.tsv.xz``: split, id, premise, hypothesis, label of the whole set, and the split of
  its subsets ``xnli`` and ``xnli-dev`` that a pair is in;
* ``sick/<lang>.tsv.xz``: split, id, sentence1, sentence2, label, relatedness (1 to 5);
* ``pawsx/<lang>.tsv.xz``: split, id, sentence1, sentence2, label;
* ``sib200/<label>.tsv.xz``: split, id, topic, sentence;
* ``licences/``: the licence files of the treebanks, each text once;
* ``sources.tsv``: one row a file, read by `xlx.text.files.catalogue`.

What is drawn, with a fixed seed: `SIZES` sentences (pairs) a language of the public parts that
``made_from`` names. Left out are sentences of fewer than 3 words, for trees and tags of UD those of
more than 60, and all that are the same as one drawn already for the language or as a line of the
miniature models' pretraining text. Two sentences are the same when their letters and digits are
(case, spaces and punctuation do not matter). A sentence that keeps nothing of these is out too.
In PUD, XNLI and PAWS-X a position is drawn for all languages at once, or for none; of PAWS-X only
one whose label is known and the same in all. For xnli-dev nothing is drawn: it is every item of
XNLI's dev part that shares no sentence, in any of its languages, with the validation and test items
of ``xnli`` or with the pretraining text. For xnli-whole nothing is left out: dev and `WHOLE_TRAIN`
items of test are to train on, and the other items of test share no sentence, in any language, with
them or with the pretraining text. Of SICK it is every pair of which no sentence, in any
language, is in the pretraining text. Of SIB-200, whose languages are parallel, nothing is drawn
either: the test part is whole, in English train and dev too; a line that is in the pretraining text
stops the script.
"""

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from making import (
    UD_URL,
    by_language,
    folder_named,
    licence,
    linked,
    pack,
    sha256,
    trained_letters,
    treebank_files,
    version,
    write_packed,
    write_table,
)
from xlx.experiment.transfers import INFERENCE, PARAPHRASE
from xlx.text import examples, labelled, languages, trees
from xlx.text.files import decode, letters

HERE = Path(__file__).parent


SEED = 2025
#: Sentences of train, validation and test; in XNLI, items of three pairs; in PAWS-X, pairs.
SIZES = {"train": 300, "validation": 100, "test": 300}
ITEMS = {"train": 200, "validation": 50, "test": 200}
PAIRS = {"train": 500, "validation": 100, "test": 300}
PUD = 300
SHORTEST, LONGEST = 3, 60

UNER = ("da", "hr", "sk", "sr", "sv")

UNER_URL = "https://github.com/UniversalNER/{}"
WIKIANN = "https://github.com/google-research/xtreme (PAN-X)"
WIKIANN_LICENCE = "CC BY-SA 3.0 (text of Wikipedia; none stated for the tags)"
XNLI = "https://github.com/facebookresearch/XNLI"
XNLI_LICENCE = "CC BY-NC 4.0"
#: The items of XNLI's test part that xnli-whole has to train on; it tests on the 670 others.
WHOLE_TRAIN = 1000
#: The languages that Rajaee and Monz (2024) fine-tune across (Table 9).
XNLI_DEV_LANGUAGES = ("ar", "de", "el", "en", "es", "tr")
PAWSX_LANGUAGES = sorted(PARAPHRASE)
PAWSX = "https://github.com/google-research-datasets/paws"
PAWSX_LICENCE = "free use, with acknowledgement of Google LLC (its LICENSE)"
#: Language of SICK → what it is called, under which licence, from where.
SICK_LICENCES = {
    "en": ("SICK", "CC BY-NC-SA 3.0", "https://zenodo.org/records/2787612"),
    "nl": ("SICK-NL", "MIT, on CC BY-NC-SA 3.0", "https://github.com/gijswijnholds/sick_nl"),
    "pt": ("SICK-BR", "CC BY-NC-SA 3.0", "https://github.com/livyreal/SICK-BR"),
    "pl": (
        "SICK, Polish",
        "CC BY-NC-SA 3.0",
        "https://github.com/sdadas/polish-sentence-evaluation",
    ),
    "ja": ("JSICK", "CC BY-SA 4.0", "https://github.com/verypluming/JSICK"),
}
SIB200 = "https://github.com/dadelani/sib-200"
SIB_LICENCE = "CC BY-SA 4.0 (text of FLORES-200; labels: Apache-2.0)"

#: Vowel signs and the like of Arabic, which UD 1 wrote in FORM and UD 2 writes in MISC only.
VOWELS = re.compile("[\u064b-\u0652\u0670]")

COLUMNS = (
    *("task", "source", "language", "treebank", "version", "train", "validation", "test", "words"),
    *("repaired", "made_from", "licence", "licence_file", "url", "identity", "file", "sha256"),
)


@dataclass(frozen=True)
class Item:
    """A sentence with what is written of it; ``keys`` are its letters, as words and as text."""

    n_words: int
    keys: frozenset[str]
    lines: tuple[str, ...]
    repaired: int = 0


@dataclass
class Drawing:
    """What has been drawn for a language; nothing that is the same is drawn again."""

    forbidden: frozenset[str]
    seen: set[str]
    rng: np.random.Generator

    @classmethod
    def of(cls, name: str, forbidden: frozenset[str]) -> "Drawing":
        return cls(forbidden, set(), np.random.default_rng([SEED, *name.encode()]))

    def draw(self, pool: Sequence[Item], n: int) -> list[Item]:
        """n items of the pool, or as many as there are, in its order."""
        drawn = []
        for position in self.rng.permutation(len(pool)).tolist():
            item = pool[position]
            if "" in item.keys or item.keys & self.seen or item.keys & self.forbidden:
                continue
            self.seen |= item.keys
            drawn.append(position)
            if len(drawn) == n:
                break
        return [pool[position] for position in sorted(drawn)]


def write(file: str, lines: Iterable[str]) -> tuple[str, str]:
    """Write an xz file below this folder; its name and SHA-256."""
    return write_packed(HERE, file, joined(lines))


def joined(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)


def table(folder: Path, name: str) -> list[list[str]]:
    """The cells of a table parted by tabs."""
    text = (folder / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


def n_words(*texts: str) -> int:
    return sum(len(text.split()) for text in texts)


def write_rows(
    file: str, columns: str, rows: Sequence[Sequence[str]], sides: slice
) -> tuple[tuple[int, ...], tuple[str, str]]:
    """Write rows that begin with their split; counts as `counts`, and name and SHA-256."""
    sizes = (sum(row[0] == split for row in rows) for split in labelled.SPLITS)
    words = n_words(*chain.from_iterable(row[sides] for row in rows))
    return (*sizes, words, 0), write(file, [columns, *map("\t".join, rows)])


# --- Universal Dependencies -----------------------------------------------------------------------


def conllu_items(file: Path) -> list[Item]:
    """The sentences of a treebank's file that are neither short nor long."""
    lines = file.read_text(encoding="utf-8").split("\n")
    blocks = trees.sentence_blocks(lines, str(file))
    part = re.search(r"-ud-(\w+)", file.name)[1]
    items = []
    for (_, above, rows), sentence in zip(blocks, trees.read_conllu(lines, str(file)), strict=True):
        named = any(line.startswith("# sent_id =") for line in above)
        comments = [f"# sent_id = {sentence.id if named else f'{part}-{sentence.id}'}"]
        comments += [x for x in above if not x.startswith("# sent_id")]
        texts = [line[9:] for line in comments if line.startswith("# text = ")]
        words = [word.form for word in sentence.words]
        keys = frozenset(map(letters, [" ".join(words), *texts]))
        items.append(Item(len(words), keys, (*comments, *map(modern, rows))))
    return [item for item in items if SHORTEST <= item.n_words <= LONGEST]


def modern(row: str) -> str:
    """A row of UD 1 with the tag CCONJ and Arabic without vowel signs, as UD 2 writes them."""
    cells = row.split("\t")
    cells[3] = "CCONJ" if cells[3] == "CONJ" else cells[3]
    form = VOWELS.sub("", cells[1])
    if form != cells[1] and "Translit=" in cells[9]:
        if not form:
            raise SystemExit(f"nothing is left of {row}")
        cells[1], cells[9] = form, f"{cells[9]}|Vform={cells[1]}"
    return "\t".join(cells)


def licence_file(folder: Path) -> str:
    """Copy LICENSE.txt to ``licences/``, each text once; the name of the copy."""
    data, copies = (folder / "LICENSE.txt").read_bytes(), HERE / "licences"
    copies.mkdir(exist_ok=True)
    for file in copies.iterdir():
        if file.read_bytes() == data:
            return f"licences/{file.name}"
    (copies / f"{folder.name}.txt").write_bytes(data)
    return f"licences/{folder.name}.txt"


def about(folder: Path, url: str) -> tuple[str, str, str]:
    """Licence, its file and the address of a treebank."""
    return licence(folder), licence_file(folder), url.format(folder.name)


def split_up(
    drawing: Drawing, pools: dict[str, Sequence[Item]], sizes: dict[str, int]
) -> tuple[dict[str, list[Item]], dict[str, str]]:
    """train, validation and test from the public parts that there are, and from which."""
    origin = {
        "train": "train" if "train" in pools else "dev",
        "validation": "dev",
        "test": "test" if "test" in pools else "dev",  # WikiAnn: its dev part gives two
    }
    # The test part first, so that what is the same elsewhere goes there.
    parts = {split: drawing.draw(pools[origin[split]], sizes[split]) for split in reversed(sizes)}
    return {split: parts[split] for split in sizes}, origin


def told(origin: dict[str, str]) -> str:
    return ", ".join(f"{split}: {part}" for split, part in origin.items())


def blocks_of(parts: dict[str, list[Item]]) -> Iterable[str]:
    return chain.from_iterable(
        (f"# split = {split}", *item.lines, "") for split, items in parts.items() for item in items
    )


def counts(parts: dict[str, list[Item]]) -> tuple[int, ...]:
    """Sentences of train, validation and test; words; repaired tags."""
    items = list(chain.from_iterable(parts.values()))
    sizes = (len(parts.get(split, ())) for split in labelled.SPLITS)
    return (*sizes, sum(i.n_words for i in items), sum(i.repaired for i in items))


# --- one function a source: it writes the files and gives their rows of the table ----------------


def ud(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    treebanks = by_language(folder / "ud")
    for language in languages.for_task("POS", "mono"):
        treebank = treebanks[language]
        files = treebank_files(treebank)
        pools = {part: conllu_items(file) for part, file in files.items()}
        parts, origin = split_up(Drawing.of(f"ud/{language}", forbidden), pools, SIZES)
        file = write(f"ud/{language}.conllu.xz", blocks_of(parts))
        yield (
            *("POS", "ud", language, treebank.name, version(files), *counts(parts), told(origin)),
            *(*about(treebank, UD_URL), *file),
        )


def pud(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    treebanks = by_language(folder / "ud_pud")
    codes = languages.for_task("POS", "CL")
    by_id = {}
    for language in codes:
        used = set()
        for split in labelled.SPLITS:
            sentences = labelled.load_labelled("POS", language, split).sentences
            used |= {letters(" ".join(words)) for words in sentences}
        (file,) = treebank_files(treebanks[language]).values()
        by_id[language] = {
            item.lines[0]: item
            for item in conllu_items(file)
            if "" not in item.keys and not (item.keys & forbidden or item.keys & used)
        }
    common = sorted(set.intersection(*(set(items) for items in by_id.values())))
    print(f"pud: {len(common)} sentences are good in all {len(codes)} languages")
    rng = np.random.default_rng([SEED, *b"pud"])
    drawn = [common[i] for i in sorted(rng.choice(len(common), PUD, replace=False).tolist())]
    for language in codes:
        treebank = treebanks[language]
        parts = {"test": [by_id[language][name] for name in drawn]}
        file = write(f"pud/{language}.conllu.xz", blocks_of(parts))
        yield (
            *("POS", "pud", language, treebank.name, version(treebank_files(treebank))),
            *(*counts(parts), "test: test, the same sentences in all languages"),
            *(*about(treebank, UD_URL), *file),
        )


def entities(
    files: dict[str, Path], name: str, forbidden: frozenset[str], comment: str, **layout: object
) -> tuple:
    """Counts, public parts and file of a language, drawn from its files by part."""
    pools = {}
    for part, file in files.items():
        lines = file.read_text(encoding="utf-8").split("\n")
        pools[part] = [
            Item(
                len(words),
                frozenset([letters(" ".join(words))]),
                (comment.format(part, sentence), *map("\t".join, zip(words, tags, strict=True))),
                repaired,
            )
            for sentence, words, tags, repaired in labelled.read_iob2(lines, str(file), **layout)
            if len(words) >= SHORTEST
        ]
    parts, origin = split_up(Drawing.of(name, forbidden), pools, SIZES)
    return counts(parts), told(origin), write(f"{name}.iob2.xz", blocks_of(parts))


def wikiann(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    for language in languages.for_task("NER", "mono"):
        files = {x: folder / "panx" / f"{x}-{language}.tsv" for x in ("train", "dev")}
        files = {part: file for part, file in files.items() if file.exists()}
        if files:
            name, comment = f"wikiann/{language}", "# id = {}:{}"
            sizes, made_from, file = entities(files, name, forbidden, comment, language=language)
            yield (
                *("NER", "wikiann", language, "WikiAnn", "PAN-X of XTREME", *sizes, made_from),
                *(WIKIANN_LICENCE, "", WIKIANN, *file),
            )


def uner(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    treebanks = by_language(folder / "uner")
    for language in UNER:
        treebank, name = treebanks[language], f"uner/{language}"
        files, comment = treebank_files(treebank), "# sent_id = {1}"
        sizes, made_from, file = entities(files, name, forbidden, comment, columns=5)
        yield (
            *("NER", "uner", language, treebank.name, "release not stated", *sizes, made_from),
            *(*about(treebank, UNER_URL), *file),
        )


#: The rows of a public file of XNLI: premise, hypothesis, label; three in a row are an item.
Rows = list[list[str]]


def xnli_items(rows: dict[str, Rows], part: str, forbidden: frozenset[str]) -> list[Item]:
    """Items of one premise and three hypotheses in all languages; ``lines`` is their number."""
    items = []
    for item in range(len(rows["en"]) // 3):
        three = {code: rows[code][3 * item : 3 * item + 3] for code in rows}
        if any(len({first for first, _, _ in pairs}) > 1 for pairs in three.values()):
            raise SystemExit(f"xnli {part}: item {item} has not one premise")
        texts = (
            f"{code}{letters(text)}" if letters(text) not in forbidden else ""
            for code, pairs in three.items()
            for first, second, _ in pairs
            for text in (first, second)
        )
        items.append(Item(0, frozenset(texts), (str(item),)))
    return items


#: Items of XNLI by split: the public part and the number there, in the public order.
Chosen = dict[str, list[tuple[str, int]]]


def xnli_dev(rows: dict[str, dict[str, Rows]], forbidden: frozenset[str], subset: Chosen) -> Chosen:
    """All items of dev that share no sentence with what ``subset`` validates and tests on."""
    held_out = {
        f"{code}{letters(text)}"
        for code in XNLI_DEV_LANGUAGES
        for part, item in (*subset["validation"], *subset["test"])
        for first, second, _ in rows[part][code][3 * item : 3 * item + 3]
        for text in (first, second)
    }
    pool = xnli_items({code: rows["dev"][code] for code in XNLI_DEV_LANGUAGES}, "dev", forbidden)
    drawn = Drawing.of("xnli-dev", frozenset(held_out)).draw(pool, len(pool))
    print(f"xnli-dev: {len(drawn)} of {len(pool)} items share nothing with others")
    return {"train": [("dev", int(item.lines[0])) for item in drawn]}


def xnli_whole(rows: dict[str, dict[str, Rows]], forbidden: frozenset[str]) -> Chosen:
    """All items: dev and `WHOLE_TRAIN` of test to train on, the others to test on.

    Items that share a sentence, in any language, are on one side: that of dev, if one is of dev.
    So is what has a sentence that is in the pretraining text, or one without a letter.
    """
    places, keys = [], []
    for part, of_part in rows.items():
        for item in xnli_items(of_part, part, forbidden | {""}):
            places.append((part, int(item.lines[0])))
            keys.append(item.keys)
    free, train = [], set()
    for group in linked([of_item - {""} for of_item in keys]):
        if any(places[i][0] == "dev" or "" in keys[i] for i in group):
            train.update(group)
        else:
            free.append(group)
    forced = sum(places[i][0] == "test" for i in train)
    print(f"xnli-whole: {forced} items of test are to train on, for the sentences that they share")
    trained = {
        (code, letters(text))
        for of_part in rows.values()
        for code, of_code in of_part.items()
        for first, second, _ in of_code
        for text in (first, second)
    }
    trained = {key for key in trained if key[1] in forbidden}
    print(f"xnli-whole: {len(trained)} sentences to train on are in the pretraining text")
    left = WHOLE_TRAIN - forced
    for at in np.random.default_rng([SEED, *b"xnli-whole"]).permutation(len(free)).tolist():
        if len(free[at]) <= left:
            train.update(free[at])
            left -= len(free[at])
    return {
        "train": [place for i, place in enumerate(places) if i in train],
        "test": [place for i, place in enumerate(places) if i not in train],
    }


def xnli_lines(rows: dict[str, Rows], chosen: Chosen) -> tuple[int, list[str]]:
    """The pairs of a language, whose rows are given by public part: their words, and a line each.

    Split by split: what the file of a subset alone would hold.
    """
    lines, words = ["split\tid\tpremise\thypothesis\tlabel"], 0
    for split, items in chosen.items():
        for part, at in ((part, 3 * item + k) for part, item in items for k in range(3)):
            first, second, label = rows[part][at]
            words += n_words(first, second)
            lines.append(f"{split}\t{part}:{at + 1}\t{first}\t{second}\t{label}")
    return words, lines


def whole_lines(rows: dict[str, Rows], by_source: dict[str, Chosen]) -> Iterable[str]:
    """The file of a language: every pair in the public order, with its split in each source."""
    split_of = {
        source: {place: split for split, items in chosen.items() for place in items}
        for source, chosen in by_source.items()
    }
    whole, *subsets = split_of.values()
    yield "\t".join(["split", "id", "premise", "hypothesis", "label", *list(split_of)[1:]])
    for part, of_part in rows.items():
        for at, row in enumerate(of_part):
            place = part, at // 3
            cells = [whole[place], f"{part}:{at + 1}", *row]
            yield "\t".join([*cells, *(splits.get(place, "") for splits in subsets)])


def xnli(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    """Items of one premise and three hypotheses, the same in all languages of a source.

    The subsets are read from the files of the whole set, and named by the hash that a file of
    theirs alone has: results were found by it before the whole set was here.
    """
    by_language = {
        code: {part: table(folder / "xnli", f"{part}-{code}.tsv") for part in ("dev", "test")}
        for code in INFERENCE
    }
    rows = {
        part: {code: of_code[part] for code, of_code in by_language.items()}
        for part in ("dev", "test")
    }
    codes = languages.for_task("NLI", "mono")
    pools = {
        part: xnli_items({code: of_part[code] for code in codes}, part, forbidden)
        for part, of_part in rows.items()
    }
    parts, origin = split_up(Drawing.of("xnli", frozenset()), pools, ITEMS)
    subset = {
        split: [(origin[split], int(item.lines[0])) for item in items]
        for split, items in parts.items()
    }
    by_source = {
        "xnli-whole": xnli_whole(rows, forbidden),
        "xnli": subset,
        "xnli-dev": xnli_dev(rows, forbidden, subset),
    }
    files = {
        code: write(f"xnli/{code}.tsv.xz", whole_lines(of_code, by_source))
        for code, of_code in by_language.items()
    }
    origins = {
        "xnli": (codes, "train: dev, validation: dev, test: test"),
        "xnli-dev": (XNLI_DEV_LANGUAGES, "train: dev"),
        "xnli-whole": (INFERENCE, "train: dev and test, test: test"),
    }
    for source, (of_source, made_from) in origins.items():
        chosen = by_source[source]
        sizes = [3 * len(chosen.get(split, ())) for split in labelled.SPLITS]
        for code in of_source:
            words, lines = xnli_lines(by_language[code], chosen)
            alone = "" if source == "xnli-whole" else sha256(pack(joined(lines).encode()))
            yield (
                *("NLI", source, code, "XNLI", "XNLI 1.0", *sizes, words, 0),
                *(f"{made_from}, the same items in all languages", XNLI_LICENCE, "", XNLI),
                *(alone, *files[code]),
            )


def pawsx(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    """Pairs whose label is known and the same in all languages, at the same positions.

    A sentence of fewer than three letters is a placeholder that its authors do not name ("WL").
    """
    pools = {}
    pairs = {}
    for split, part in (("validation", "dev"), ("test", "test")):
        read = {
            code: labelled.load_labelled("PI", code, split, path=folder / "pawsx")
            for code in PAWSX_LANGUAGES
        }
        pairs[part] = {
            code: dict(zip(p.ids, zip(p.first, p.second, p.row_labels, strict=True), strict=True))
            for code, p in read.items()
        }
        common = examples.common(read)[0][PAWSX_LANGUAGES[0]].ids
        pools[part] = []
        for name in common:
            texts = (
                f"{code}{key}" if len(key) >= SHORTEST and key not in forbidden else ""
                for code in PAWSX_LANGUAGES
                for key in map(letters, pairs[part][code][name][:2])
            )
            pools[part].append(Item(0, frozenset(texts), (name,)))
        print(f"pawsx {part}: {len(common)} pairs are whole in all languages")
    parts, origin = split_up(Drawing.of("pawsx", frozenset()), pools, PAIRS)
    for code in PAWSX_LANGUAGES:
        rows = [
            (split, f"{origin[split]}:{name}", *pairs[origin[split]][code][name])
            for split, items in parts.items()
            for name in (item.lines[0] for item in items)
        ]
        columns = "split\tid\tsentence1\tsentence2\tlabel"
        sizes, file = write_rows(f"pawsx/{code}.tsv.xz", columns, rows, slice(2, 4))
        yield (
            *("PI", "pawsx", code, "PAWS-X", "as in XTREME", *sizes),
            *(f"{told(origin)}, the same pairs in all languages", PAWSX_LICENCE, "", PAWSX, *file),
        )


def sick(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    """The pairs of which no sentence is in the pretraining text, in the public order and splits."""
    rows = {code: table(folder / "sick", f"{code}.tsv")[1:] for code in SICK_LICENCES}
    english = [row[:2] for row in rows["en"]]
    if any([row[:2] for row in of_code] != english for of_code in rows.values()):
        raise SystemExit("sick: the languages have not the same pairs in the same order")
    left = [
        place
        for place in range(len(english))
        if not any(
            letters(text) in forbidden or not letters(text)
            for of_code in rows.values()
            for text in of_code[place][2:4]
        )
    ]
    print(f"sick: {len(left)} of {len(english)} pairs are not in the pretraining text")
    parts = {"train": "train", "validation": "trial", "test": "test"}
    for code, of_code in rows.items():
        rows = [
            (split, f"{part}:{of_code[place][0]}", *of_code[place][2:])
            for split, part in parts.items()
            for place in left
            if of_code[place][1] == part
        ]
        columns = "split\tid\tsentence1\tsentence2\tlabel\trelatedness"
        sizes, file = write_rows(f"sick/{code}.tsv.xz", columns, rows, slice(2, 4))
        name, licence_of, url = SICK_LICENCES[code]
        yield (
            *("NLI", "sick", code, name, "as published", *sizes),
            *(f"{told(parts)}, the same pairs in all languages", licence_of, "", url, *file),
        )


def sib200(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    """The test part in all languages; train and dev in English, which is trained on."""
    names = [item.name for item in (folder / "sib200").iterdir() if item.is_dir()]
    for code, label in labelled.codes_of(names).items():
        rows = []
        for split in labelled.SPLITS if code == "en" else ("test",):
            part = "dev" if split == "validation" else split
            file = folder / "sib200" / label / f"{part}.tsv"
            lines = decode(file.read_bytes(), str(file))
            sentences, _, topics, ids = labelled.read_rows(lines, str(file), "TOPIC")
            rows += [(split, *row) for row in zip(ids, topics, sentences, strict=True)]
        for _, name, _, sentence in rows:
            if "\t" in sentence or letters(sentence) in forbidden:
                raise SystemExit(f"sib200 {label} {name}: a tab, or in the pretraining text")
        made_from = "train: train, validation: dev, test: test" if code == "en" else "test: test"
        columns = "split\tid\ttopic\tsentence"
        sizes, file = write_rows(f"sib200/{label}.tsv.xz", columns, rows, slice(3, 4))
        yield (
            *("TOPIC", "sib200", code, "SIB-200", label, *sizes),
            *(f"{made_from}, the same in all languages", SIB_LICENCE, "", SIB200, *file),
        )


#: The order of the table; what is whole beside a subset stands last.
SOURCES = (
    *("ud", "pud", "wikiann", "uner", "xnli", "xnli-dev", "sick", "pawsx", "sib200"),
    "xnli-whole",
)


def save_table(rows: Iterable[tuple]) -> None:
    """Write the rows in the order of `SOURCES`; those without an identity are named by the file."""
    full = [row if len(row) == len(COLUMNS) else (*row[:-2], "", *row[-2:]) for row in rows]
    place = COLUMNS.index("source")
    write_table(
        HERE / "sources.tsv", COLUMNS, sorted(full, key=lambda row: SOURCES.index(row[place]))
    )


def main() -> None:
    folder = folder_named(__doc__, "ud, ud_pud, panx, uner, xnli, sick, pawsx, sib200")
    for name in (*SOURCES, "licences"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    forbidden = trained_letters()
    print(f"{len(forbidden):,} lines of pretraining text")
    rows = list(ud(folder, forbidden))
    save_table(rows)  # PUD looks at what was drawn from UD
    rows += pud(folder, forbidden)
    rows += wikiann(folder, forbidden)
    rows += uner(folder, forbidden)
    for make in (xnli, sick, pawsx, sib200):
        rows += make(folder, forbidden)
    save_table(rows)
    size = sum(file.stat().st_size for file in HERE.rglob("*.xz"))
    print(f"{len(rows)} rows, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
