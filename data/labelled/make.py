"""Make the shipped labelled data from the unpacked originals.

    python data/labelled/make.py FOLDER [--only xnli]

FOLDER holds ``ud/``, ``ud_pud/`` and ``uner/`` (folders of treebanks), ``panx/`` (``train-de.tsv``,
``dev-de.tsv``), ``xnli/`` and ``pawsx/`` (``dev-de.tsv``, ``test-de.tsv``), ``sick/`` (``en.tsv``),
``sib200/`` (``deu_Latn/test.tsv``). ``--only`` makes ``xnli``, ``sick``, ``pawsx`` or ``sib200``
and leaves the files and rows of the others as they are. Written beside this script:

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

import argparse
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from making import pack, sha256, trained_letters, write_packed, write_table

from xlx.text import files, labelled, languages, parallel_sets, trees
from xlx.text.files import letters

SEED = 2025
#: Sentences of train, validation and test; in XNLI, items of three pairs; in PAWS-X, pairs.
SIZES = {"train": 300, "validation": 100, "test": 300}
ITEMS = {"train": 200, "validation": 50, "test": 200}
PAIRS = {"train": 500, "validation": 100, "test": 300}
PUD = 300
SHORTEST, LONGEST = 3, 60

UNER = ("da", "hr", "sk", "sr", "sv")

#: Train parts that are not used: of UD 1, while dev and test are of UD 2.
NOT_USED = {"pt_bosque-ud-train.OLD201611.conllu"}

#: Where README and LICENSE.txt of a treebank disagree: the stricter, and what is said.
LICENCES = {
    "UD_Estonian-EWT": "CC BY-NC-SA 4.0 (README; LICENSE.txt: CC BY-SA 4.0)",
    "UD_Turkish-IMST": "CC BY-NC-SA 3.0 (LICENSE.txt; README: 4.0)",
}
UD_URL = "https://github.com/UniversalDependencies/{}"
UNER_URL = "https://github.com/UniversalNER/{}"
WIKIANN = "https://github.com/google-research/xtreme (PAN-X)"
WIKIANN_LICENCE = "CC BY-SA 3.0 (text of Wikipedia; none stated for the tags)"
XNLI = "https://github.com/facebookresearch/XNLI"
XNLI_LICENCE = "CC BY-NC 4.0"
XNLI_LANGUAGES = (
    *("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh"),
)
#: The items of XNLI's test part that xnli-whole has to train on; it tests on the 670 others.
WHOLE_TRAIN = 1000
#: The languages that Rajaee and Monz (2024) fine-tune across (Table 9).
XNLI_DEV_LANGUAGES = ("ar", "de", "el", "en", "es", "tr")
PAWSX_LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "zh")
PAWSX = "https://github.com/google-research-datasets/paws"
PAWSX_LICENCE = "free use, with acknowledgement of Google LLC (its LICENSE)"
#: Language of SICK → what it is called, under which licence, from where.
SICK_LICENCES = {
    "en": ("SICK", "CC BY-NC-SA 3.0", "https://zenodo.org/records/2787612"),
    "nl": ("SICK-NL", "MIT, on CC BY-NC-SA 3.0", "https://github.com/gijswijnholds/sick_nl"),
    "pt": ("SICK-BR", "CC BY-NC-SA 3.0", "https://github.com/livyreal/SICK-BR"),
    "pl": (
        "SICK, Polish", "CC BY-NC-SA 3.0", "https://github.com/sdadas/polish-sentence-evaluation",
    ),
    "ja": ("JSICK", "CC BY-SA 4.0", "https://github.com/verypluming/JSICK"),
}  # fmt: skip
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


def treebank_files(folder: Path) -> dict[str, Path]:
    return {
        re.search(r"-ud-(\w+)", file.name)[1]: file
        for file in sorted(folder.iterdir())
        if file.suffix in (".conllu", ".iob2") and file.name not in NOT_USED
    }


def version(files: dict[str, Path]) -> str:
    """UD 1 or 2, by the name of the object relation, and which files are of an earlier release."""
    major = {1 if "\tdobj\t" in file.read_text("utf-8") else 2 for file in files.values()}
    if len(major) > 1:
        raise SystemExit(f"{files}: parts of UD 1 and UD 2")
    old = [
        f"{part} OLD{name[1]}"
        for part, file in files.items()
        if (name := re.search(r"\.OLD(\d+)", file.name))
    ]
    return "; ".join([f"UD {major.pop()}", *old])


def licence(folder: Path) -> str:
    """As README and LICENSE.txt say."""
    if folder.name in LICENCES:
        return LICENCES[folder.name]
    readme = "".join(file.read_text("utf-8") for file in folder.glob("README*"))
    if found := re.search(r"^License: *(\S.*?)\s*$", readme, flags=re.MULTILINE):
        return found[1]
    return "CC BY-SA 4.0"  # all of UNER, by their LICENSE.txt; UD always has the line


class LicenceFiles:
    """Copies of LICENSE.txt in ``licences/``, each text once."""

    def __init__(self) -> None:
        self.written: dict[bytes, str] = {}
        (HERE / "licences").mkdir(exist_ok=True)

    def add(self, folder: Path) -> str:
        data = (folder / "LICENSE.txt").read_bytes()
        if data not in self.written:
            self.written[data] = f"licences/{folder.name}.txt"
            (HERE / self.written[data]).write_bytes(data)
        return self.written[data]


def split_up(
    drawing: Drawing, pools: dict[str, Sequence[Item]], sizes: dict[str, int]
) -> tuple[dict[str, list[Item]], str]:
    """train, validation and test from the public parts that there are, and how."""
    if "test" not in pools:  # WikiAnn: its dev part gives two
        origin = {"train": "train", "validation": "dev", "test": "dev"}
    elif "train" not in pools:
        origin = {"train": "dev", "validation": "dev", "test": "test"}
    else:
        origin = {"train": "train", "validation": "dev", "test": "test"}
    # The test part first, so that what is the same elsewhere goes there.
    parts = {split: drawing.draw(pools[origin[split]], sizes[split]) for split in reversed(sizes)}
    made_from = ", ".join(f"{split}: {origin[split]}" for split in sizes)
    return {split: parts[split] for split in sizes}, made_from


def blocks_of(parts: dict[str, list[Item]]) -> Iterable[str]:
    return chain.from_iterable(
        (f"# split = {split}", *item.lines, "") for split, items in parts.items() for item in items
    )


def counts(parts: dict[str, list[Item]]) -> tuple[int, ...]:
    """Sentences of train, validation and test; words; repaired tags."""
    items = list(chain.from_iterable(parts.values()))
    sizes = (len(parts.get(split, ())) for split in labelled.SPLITS)
    return (*sizes, sum(i.n_words for i in items), sum(i.repaired for i in items))


def by_language(folder: Path) -> dict[str, Path]:
    """Treebank of each language, from the names of its files."""
    found = {}
    for treebank in sorted(folder.iterdir()):
        file = next(iter(treebank_files(treebank).values()))
        found[re.match("[a-z]+", file.name)[0]] = treebank
    return found


# --- one function a source: it writes the files and gives their rows of the table ----------------


def ud(folder: Path, forbidden: frozenset[str], licences: LicenceFiles) -> Iterable[tuple]:
    treebanks = by_language(folder / "ud")
    for language in languages.for_task("POS", "mono"):
        treebank = treebanks[language]
        files = treebank_files(treebank)
        pools = {part: conllu_items(file) for part, file in files.items()}
        parts, made_from = split_up(Drawing.of(f"ud/{language}", forbidden), pools, SIZES)
        file = write(f"ud/{language}.conllu.xz", blocks_of(parts))
        yield (
            *("POS", "ud", language, treebank.name, version(files), *counts(parts), made_from),
            *(licence(treebank), licences.add(treebank), UD_URL.format(treebank.name), *file),
        )


def pud(folder: Path, forbidden: frozenset[str], licences: LicenceFiles) -> Iterable[tuple]:
    treebanks = by_language(folder / "ud_pud")
    codes = languages.for_task("POS", "CL")
    by_id: dict[str, dict[str, Item]] = {}
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
            *(licence(treebank), licences.add(treebank), UD_URL.format(treebank.name), *file),
        )


def iob2_items(sentences: Iterable[tuple], comment: str) -> list[Item]:
    return [
        Item(
            len(words),
            frozenset([letters(" ".join(words))]),
            (comment.format(name), *map("\t".join, zip(words, tags, strict=True))),
            repaired,
        )
        for name, words, tags, repaired in sentences
        if len(words) >= SHORTEST
    ]


def wikiann(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    for language in languages.for_task("NER", "mono"):
        pools = {}
        for part in ("train", "dev"):
            file = folder / "panx" / f"{part}-{language}.tsv"
            if file.exists():
                lines = file.read_text(encoding="utf-8").split("\n")
                sentences = labelled.read_iob2(lines, str(file), language=language)
                pools[part] = iob2_items(sentences, f"# id = {part}:{{}}")
        if not pools:
            continue
        drawing = Drawing.of(f"wikiann/{language}", forbidden)
        parts, made_from = split_up(drawing, pools, SIZES)
        file = write(f"wikiann/{language}.iob2.xz", blocks_of(parts))
        yield (
            *("NER", "wikiann", language, "WikiAnn", "PAN-X of XTREME", *counts(parts)),
            *(made_from, WIKIANN_LICENCE, "", WIKIANN, *file),
        )


def uner(folder: Path, forbidden: frozenset[str], licences: LicenceFiles) -> Iterable[tuple]:
    treebanks = by_language(folder / "uner")
    for language in UNER:
        treebank = treebanks[language]
        pools = {}
        for part, file in treebank_files(treebank).items():
            lines = file.read_text(encoding="utf-8").split("\n")
            sentences = labelled.read_iob2(lines, str(file), columns=5)
            pools[part] = iob2_items(sentences, "# sent_id = {}")
        parts, made_from = split_up(Drawing.of(f"uner/{language}", forbidden), pools, SIZES)
        file = write(f"uner/{language}.iob2.xz", blocks_of(parts))
        yield (
            *("NER", "uner", language, treebank.name, "release not stated", *counts(parts)),
            *(made_from, licence(treebank), licences.add(treebank)),
            *(UNER_URL.format(treebank.name), *file),
        )


#: The rows of a public file of XNLI: premise, hypothesis, label; three in a row are an item.
Rows = list[list[str]]


def xnli_rows(folder: Path, part: str, codes: Iterable[str]) -> dict[str, Rows]:
    """The rows of a public part in each language."""
    rows = {}
    for code in codes:
        text = (folder / "xnli" / f"{part}-{code}.tsv").read_text(encoding="utf-8")
        rows[code] = [line.split("\t") for line in text.removesuffix("\n").split("\n")]
    return rows


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


def xnli_subset(rows: dict[str, dict[str, Rows]], forbidden: frozenset[str]) -> Chosen:
    """Items drawn for ``xnli``, the same in all of its languages."""
    codes = languages.for_task("NLI", "mono")
    pools = {
        part: xnli_items({code: of_part[code] for code in codes}, part, forbidden)
        for part, of_part in rows.items()
    }
    parts, made_from = split_up(Drawing.of("xnli", frozenset()), pools, ITEMS)
    origin = dict(each.split(": ") for each in made_from.split(", "))
    return {
        split: [(origin[split], int(item.lines[0])) for item in items]
        for split, items in parts.items()
    }


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


def linked(keys: Sequence[Iterable[str]]) -> list[list[int]]:
    """Positions that share a key, directly or by others, each group ascending."""
    parent = list(range(len(keys)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    first: dict[str, int] = {}
    for i, key in ((i, key) for i, of_one in enumerate(keys) for key in of_one):
        one, other = root(i), root(first.setdefault(key, i))
        parent[max(one, other)] = min(one, other)
    groups: dict[int, list[int]] = {}
    for i in range(len(keys)):
        groups.setdefault(root(i), []).append(i)
    return list(groups.values())


def xnli_lines(rows: dict[str, Rows], chosen: Chosen) -> tuple[int, list[str]]:
    """The pairs of a language, whose rows are given by public part: their words, and a line each.

    Split by split: what the file of a subset alone would hold.
    """
    lines, words = ["split\tid\tpremise\thypothesis\tlabel"], 0
    for split, items in chosen.items():
        for part, at in ((part, 3 * item + k) for part, item in items for k in range(3)):
            first, second, label = rows[part][at]
            words += len(first.split()) + len(second.split())
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
    rows = {part: xnli_rows(folder, part, XNLI_LANGUAGES) for part in ("dev", "test")}
    by_language = {
        code: {part: of_part[code] for part, of_part in rows.items()} for code in XNLI_LANGUAGES
    }
    subset = xnli_subset(rows, forbidden)
    by_source = {
        "xnli-whole": xnli_whole(rows, forbidden),
        "xnli": subset,
        "xnli-dev": xnli_dev(rows, forbidden, subset),
    }
    files = {
        code: write(f"xnli/{code}.tsv.xz", whole_lines(of_code, by_source))
        for code, of_code in by_language.items()
    }
    about = {
        "xnli": (languages.for_task("NLI", "mono"), "train: dev, validation: dev, test: test"),
        "xnli-dev": (XNLI_DEV_LANGUAGES, "train: dev"),
        "xnli-whole": (XNLI_LANGUAGES, "train: dev and test, test: test"),
    }
    for source, (codes, made_from) in about.items():
        chosen = by_source[source]
        sizes = [3 * len(chosen.get(split, ())) for split in labelled.SPLITS]
        for code in codes:
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
    pools: dict[str, list[Item]] = {}
    pairs: dict[str, dict[str, dict[str, tuple[str, str, str]]]] = {}
    for split, part in (("validation", "dev"), ("test", "test")):
        read = {
            code: labelled.load_labelled("PI", code, split, path=folder / "pawsx")
            for code in PAWSX_LANGUAGES
        }
        pairs[part] = {
            code: {p.ids[i]: (p.first[i], p.second[i], p.row_labels[i]) for i in range(len(p))}
            for code, p in read.items()
        }
        common = parallel_sets.common(read)[0][PAWSX_LANGUAGES[0]].ids
        pools[part] = []
        for name in common:
            if len({pairs[part][code][name][2] for code in PAWSX_LANGUAGES}) > 1:
                raise SystemExit(f"pawsx {part}: pair {name} has two labels")
            texts = (
                f"{code}{key}" if len(key) >= SHORTEST and key not in forbidden else ""
                for code in PAWSX_LANGUAGES
                for key in map(letters, pairs[part][code][name][:2])
            )
            pools[part].append(Item(0, frozenset(texts), (name,)))
        print(f"pawsx {part}: {len(common)} pairs are whole in all languages")
    parts, made_from = split_up(Drawing.of("pawsx", frozenset()), pools, PAIRS)
    origin = dict(each.split(": ") for each in made_from.split(", "))
    for code in PAWSX_LANGUAGES:
        lines, words = ["split\tid\tsentence1\tsentence2\tlabel"], 0
        for split, items in parts.items():
            part = origin[split]
            for name in (item.lines[0] for item in items):
                first, second, label = pairs[part][code][name]
                words += len(first.split()) + len(second.split())
                lines.append(f"{split}\t{part}:{name}\t{first}\t{second}\t{label}")
        file = write(f"pawsx/{code}.tsv.xz", lines)
        sizes = (len(parts[split]) for split in labelled.SPLITS)
        yield (
            *("PI", "pawsx", code, "PAWS-X", "as in XTREME", *sizes, words, 0),
            *(f"{made_from}, the same pairs in all languages", PAWSX_LICENCE, "", PAWSX, *file),
        )


def sick(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    """The pairs of which no sentence is in the pretraining text, in the public order and splits."""
    rows = {}
    for code in SICK_LICENCES:
        text = (folder / "sick" / f"{code}.tsv").read_text(encoding="utf-8")
        rows[code] = [line.split("\t") for line in text.removesuffix("\n").split("\n")[1:]]
    english = [row[:2] for row in rows["en"]]
    if any([row[:2] for row in of_code] != english for of_code in rows.values()):
        raise SystemExit("sick: the languages have not the same pairs in the same order")
    kept = [
        place
        for place in range(len(english))
        if not any(
            letters(text) in forbidden or not letters(text)
            for of_code in rows.values()
            for text in of_code[place][2:4]
        )
    ]
    print(f"sick: {len(kept)} of {len(english)} pairs are not in the pretraining text")
    parts = {"train": "train", "validation": "trial", "test": "test"}
    for code, of_code in rows.items():
        lines, words, sizes = ["split\tid\tsentence1\tsentence2\tlabel\trelatedness"], 0, []
        for split, part in parts.items():
            of_part = [of_code[place] for place in kept if of_code[place][1] == part]
            sizes.append(len(of_part))
            for name, _, first, second, label, related in of_part:
                words += len(first.split()) + len(second.split())
                lines.append(f"{split}\t{part}:{name}\t{first}\t{second}\t{label}\t{related}")
        file = write(f"sick/{code}.tsv.xz", lines)
        made_from = ", ".join(f"{split}: {part}" for split, part in parts.items())
        name, licence_of, url = SICK_LICENCES[code]
        yield (
            *("NLI", "sick", code, name, "as published", *sizes, words, 0),
            *(f"{made_from}, the same pairs in all languages", licence_of, "", url, *file),
        )


def sib200(folder: Path, forbidden: frozenset[str]) -> Iterable[tuple]:
    """The test part in all languages; train and dev in English, which is trained on."""
    names = [item.name for item in (folder / "sib200").iterdir() if item.is_dir()]
    for code, label in labelled.codes_of(names).items():
        lines, sizes, words = ["split\tid\ttopic\tsentence"], [], 0
        for split in labelled.SPLITS:
            if split != "test" and code != "en":
                sizes.append(0)
                continue
            part = labelled.load_labelled("TOPIC", code, split, path=folder / "sib200" / label)
            sizes.append(len(part))
            for name, topic, sentence in zip(part.ids, part.row_labels, part.first, strict=True):
                if "\t" in sentence or letters(sentence) in forbidden:
                    raise SystemExit(f"sib200 {label} {name}: a tab, or in the pretraining text")
                words += len(sentence.split())
                lines.append(f"{split}\t{name}\t{topic}\t{sentence}")
        made_from = "train: train, validation: dev, test: test" if code == "en" else "test: test"
        file = write(f"sib200/{label}.tsv.xz", lines)
        yield (
            *("TOPIC", "sib200", code, "SIB-200", label, *sizes, words, 0),
            *(f"{made_from}, the same in all languages", SIB_LICENCE, "", SIB200, *file),
        )


#: What ``--only`` can make: sources on which no other depends.
ALONE = {"xnli": xnli, "sick": sick, "pawsx": pawsx, "sib200": sib200}
#: The order of the table; what is whole beside a subset stands last.
SOURCES = ("ud", "pud", "wikiann", "uner", "xnli", "xnli-dev", "sick", "pawsx", "sib200")
SOURCES = (*SOURCES, "xnli-whole")


def save_table(rows: Iterable[tuple]) -> None:
    """Write the rows in the order of `SOURCES`; those without an identity are named by the file."""
    full = [row if len(row) == len(COLUMNS) else (*row[:-2], "", *row[-2:]) for row in rows]
    place = COLUMNS.index("source")
    write_table(
        HERE / "sources.tsv", COLUMNS, sorted(full, key=lambda row: SOURCES.index(row[place]))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "folder", type=Path, help="with ud, ud_pud, panx, uner, xnli, sick, pawsx, sib200"
    )
    parser.add_argument("--only", choices=ALONE, help="leave all others as they are")
    given = parser.parse_args()
    folder = given.folder
    all_of_them = ("ud", "pud", "wikiann", "uner", *ALONE, "licences")
    for name in (given.only,) if given.only else all_of_them:
        shutil.rmtree(HERE / name, ignore_errors=True)
    forbidden = trained_letters()
    print(f"{len(forbidden):,} lines of pretraining text")
    if given.only:
        made = list(ALONE[given.only](folder, forbidden))
        table = files.catalogue("labelled", whole=True)
        kept = table[~table["source"].isin({row[1] for row in made})]
        save_table([*kept.itertuples(index=False, name=None), *made])
        return
    licences = LicenceFiles()
    rows = list(ud(folder, forbidden, licences))
    save_table(rows)  # PUD looks at what was drawn from UD
    rows += pud(folder, forbidden, licences)
    rows += wikiann(folder, forbidden)
    rows += uner(folder, forbidden, licences)
    for make in ALONE.values():
        rows += make(folder, forbidden)
    save_table(rows)
    size = sum(file.stat().st_size for file in HERE.rglob("*.xz"))
    print(f"{len(rows)} rows, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
