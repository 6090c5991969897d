"""Make the minimal pairs: sentences of Parallel UD, each edited in its own language by a rule.

    python data/minimal-pairs/make.py FOLDER

FOLDER holds ``ud_pud/``, as for ``data/labelled/make.py``. The gold tags and trees say what can be
edited; what is written is the text as published (``# text``). Read from beside this script:

* ``rules.tsv``: by language, words for numbers that can stand in each other's place (of the same
  length, before the same form of a noun), what of a negation is taken away, words with which it is
  not, clitics and auxiliaries;
* ``read.tsv``, made by hand: what a reader said of an edit ("ok"; "wrong" for no sentence of the
  language, "same" for the same meaning still).

Written: ``sentences/<lang>.tsv.xz`` (id and text of the sentences that all `LANGUAGES` have),
``edits.tsv.xz`` (kind, language, id, verdict, edited; at most one of a kind, language and sentence;
of a kind and language those that were read, and by hash as many as make `LEAST`), ``sources.tsv``;
in the languages of `FURTHER`, where nothing is edited, ``further/<lang>.tsv.xz``: the sentences
whose exchanges a reader found good.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from making import (
    UD_URL,
    by_language,
    folder_named,
    licence,
    trained_letters,
    treebank_files,
    write_packed,
    write_table,
)
from xlx.text.files import letters, tsv
from xlx.text.trees import comment, sentence_blocks

HERE = Path(__file__).parent


LANGUAGES = ("en", "de", "es", "fr", "it", "pt", "ru", "zh")
FURTHER = ("ar", "cs", "fi", "gl", "hi", "id", "is", "ja", "ko", "pl", "sv", "th", "tr")
EXCHANGES = ("numbers", "names", "roles", "phrases")
ROMANCE = ("es", "fr", "it", "pt")
PHRASES = ("en", "fr", "it", "pt")
LEAST, LONGEST = 25, 8
VOWEL = re.compile("[aeiouhyàáâäéèêëíìîïóòôöúùûüœæ]", re.IGNORECASE)
YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
MONTH = re.compile(
    r"\W*(?:de |of )?(?:jan|f[eé]v|feb|m[aä]r|abr|apr|avr|ma[iygj]|jun|juin|giu|jul|lug|ago|ao|aug"
    r"|sep|set|o[ck]t|out|ott|nov|de[cz]|d[ié]c|gen|ene|янв|фев|мар|апр|ма[йя]|ию|авг|сен|окт|ноя|дек)"
    r"|[月日點時]|:| h\b",
    re.IGNORECASE,
)
RANGE = re.compile(r"\W*年?\W*(?:to|and|bis|und|a|y|à|et|e|до|и|到|至|-)?\W*")
TIMES = re.compile(r"\w*(uary|ember|tober|day)|March|April|May|June|July|August|.*[年月日.]")
RULES_OF = {row[0]: row[1:] for row in tsv((HERE / "rules.tsv").read_bytes(), "").to_numpy()}


class Word(NamedTuple):
    """A word: its head (from 0; -1: root), its token's place in the text, whether it is that."""

    form: str
    lemma: str
    tag: str
    features: dict[str, str]
    head: int
    relation: str
    start: int
    end: int
    whole: bool

    @property
    def place(self) -> tuple[int, int]:
        return self.start, self.end


def words_of(rows: list[str], text: str) -> list[Word]:
    """The words with their places in the text; none where it has other tokens."""
    words, at, until, whole = [], 0, 0, True
    for cells in (row.split("\t") for row in rows if "." not in row.split("\t")[0]):
        first, *more = map(int, cells[0].split("-"))
        if first > until:
            start = text.find(cells[1], at)
            if start < 0 or text[at:start].strip():
                return []
            at, until, whole = start + len(cells[1]), max([first, *more]), not more
        if not more:
            features = dict(x.split("=") for x in cells[5].split("|") if "=" in x)
            about = features, int(cells[6]) - 1, cells[7].split(":")[0]
            words.append(Word(*cells[1:4], *about, start, at, whole))
    return words


def exchanged(text: str, first: tuple[int, int], other: tuple[int, int]) -> str:
    """The text with two parts in each other's place."""
    (a, b), (c, d) = sorted([first, other])
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


# --- what can be exchanged ---


def linked(words: list[Word], some: list[int], two: list[int]) -> bool:
    """Whether two parts are of one coordination or apposition, or one belongs to the other."""

    def first(k: int) -> int:
        while words[k].relation in ("conj", "appos", "flat", "list", "parataxis", "compound"):
            k = words[k].head
        return k

    into = any(words[k].head in b for a, b in ((some, two), (two, some)) for k in a)
    return into or first(some[0]) == first(two[0])


def apart(text: str, word: tuple[int, int], language: str) -> bool:
    """Whether nothing is joined to a part by a hyphen, point or sign."""
    a, b = word
    if language == "zh":
        return not (set(text[max(a - 1, 0) : a] + text[b : b + 1]) & set("·•‧-—－・.,:"))
    after = re.match(r"[-–—/:%]|[.,]\d|\w" + "|['’]" * (language != "en"), text[b : b + 2])
    return not (re.search(r"[-–—/.,:%$£€'’\w]$", text[:a][-1:]) or after)


def alike(words: list[Word], i: int, j: int, language: str) -> bool:
    """Whether two words are of one form, and what stands before one can stand before the other."""
    a, b = words[i], words[j]
    same = ["Number", *["Gender"] * (language not in ("en", "zh"))]
    fits = all(a.features.get(x) == b.features.get(x) for x in same) and a.whole and b.whole
    near = [words[k - 1] if k else None for k in (i, j)]
    tags = [x.tag if x else "" for x in near]
    if "DET" in tags and a.tag == "PROPN":
        fits &= tags[0] == tags[1] and near[0].form.lower() == near[1].form.lower()
    elif "DET" in tags:
        fits &= tags[0] == tags[1]
    if language in ROMANCE and a.tag == "PROPN" and "ADP" in tags:
        fits &= tags[0] == tags[1] and near[0].form.lower() == near[1].form.lower()
    fits &= all(x is None or x.whole or language in ("en", "de") for x in near)
    onsets = {bool(VOWEL.match(x.form)) for x in (a, b)}
    return bool(fits) and (language in ("de", "ru", "zh") or len(onsets) == 1)


def plural_class(number: str) -> str:
    """Numbers after which Russian nouns have the same form."""
    if "," in number:
        return "part"
    last = int(re.sub(r"\D", "", number)[-2:])
    return "few" if 1 < last % 10 < 5 and last // 10 != 1 else "one" * (last % 10 == 1)


def numbers(text: str, words: list[Word], language: str) -> Iterator[str]:
    """Two numbers in digits: both years, or neither, nor a day or a month."""
    places = [
        i
        for i, w in enumerate(words)
        if re.fullmatch(r"\d+([.,]\d+)*", w.form)
        and w.whole
        and (language == "zh" or apart(text, w.place, language))
    ]
    for i, j in combinations(places, 2):
        a, b = words[i], words[j]
        years = {bool(YEAR.fullmatch(x.form)) for x in (a, b)}
        fits = a.form != b.form and len(years) == 1 and not linked(words, [i], [j]) and j > i + 1
        if language == "ru" and years == {False}:
            fits &= plural_class(a.form) == plural_class(b.form)
        fits &= years == {True} or not any(MONTH.match(text[x.end :]) for x in (a, b))
        fits &= not RANGE.fullmatch(text[a.end : b.start])
        if fits:
            yield exchanged(text, a.place, b.place)


def names(text: str, words: list[Word], language: str) -> Iterator[str]:
    """Two names, of one or more words, each once in the sentence and whole."""
    runs = []
    for i, w in enumerate(words):
        if w.tag == "PROPN" and w.whole:
            joined = not text[words[i - 1].end : w.start].strip() and runs and runs[-1][-1] == i - 1
            if joined and linked(words, [i - 1], [i]):
                runs[-1].append(i)
            else:
                runs.append([i])
    more = ("PROPN", "X", "ADJ", "NUM", "VERB", *["NOUN"] * (language not in ("de", "zh")))

    def whole(run: list[int]) -> bool:
        near = [words[k] for k in (run[0] - 1, run[-1] + 1) if 0 < k < len(words)]
        if language == "zh":  # 西印度群島 has no name of its own in it
            after = [w for w in near if w.start > words[run[0]].start and w.form != "的"]
            parted = all(w.tag not in ("NOUN", "PART", "PROPN") for w in after)
            return parted and all(w.form not in "東西南北大小前後新" for w in near)
        return not any(w.tag in more and (w.form[0].isupper() or w.tag == "X") for w in near)

    for some, two in combinations(filter(whole, runs), 2):
        spans = [(words[r[0]].start, words[r[-1]].end) for r in (some, two)]
        parts = [text[a:b] for a, b in spans]
        fits = parts[0] != parts[1] and all(text.count(x) == 1 for x in parts)
        fits &= all(apart(text, x, language) for x in spans) and not linked(words, some, two)
        fits &= not any(map(TIMES.fullmatch, parts))
        forms = [[words[r[0]].features.get(x) for x in ("Case", "Animacy")] for r in (some, two)]
        fits &= (
            forms[0] == forms[1]
            or language not in ("de", "ru")
            or (language == "de" and "Gen" not in (forms[0][0], forms[1][0]))
        )
        if fits and alike(words, some[0], two[0], language):
            yield exchanged(text, *spans)


def case_fits(a: Word, b: Word, language: str) -> bool:
    """Whether the forms of two nouns serve in each other's place."""
    cases = {a.features.get("Case"), b.features.get("Case")}
    plural = a.features.get("Number") == "Plur"
    if language == "ru" and len(cases) > 1:
        still = {a.features.get("Animacy"), b.features.get("Animacy")} == {"Inan"}
        return cases == {"Nom", "Acc"} and still and (plural or a.features["Gender"] != "Fem")
    if language == "de":  # where the articles show the roles: der, den
        plain = not plural and a.features.get("Gender") == "Masc" and cases == {"Nom", "Acc"}
        return plain and a.form == a.lemma and b.form == b.lemma
    return True


def roles(text: str, words: list[Word], language: str) -> Iterator[str]:
    """The nouns of subject and object of one verb, in the same form; what goes with them stays."""
    tied = {w.head for w in words if w.relation in ("compound", "flat", "fixed", "clf", "conj")}
    tied |= {i for i, w in enumerate(words[1:]) if w.tag == "PROPN"}  # a title: the king Salaman
    short = language == "zh"  # of one character are measures
    objects = ("obj", "iobj")
    candidates = [
        i
        for i, w in enumerate(words)
        if w.tag == "NOUN"
        and w.start
        and i not in tied
        and len(w.form) > short
        and apart(text, w.place, language)
    ]
    for i, j in combinations(candidates, 2):
        a, b = words[i], words[j]
        fits = a.head == b.head and {a.relation, b.relation} in [{"nsubj", x} for x in objects]
        fits &= a.lemma != b.lemma and case_fits(a, b, language)
        given = [
            any(w.head == k and (w.tag == "DET" or w.features.get("Poss")) for w in words)
            for k in (i, j)
        ]
        if fits and given[0] == given[1] and alike(words, i, j, language):
            yield exchanged(text, a.place, b.place)


def phrase(text: str, words: list[Word], k: int, language: str) -> tuple[int, int] | None:
    """The place of a noun and all that belongs to it, if it can move."""
    found, noun = [k], words[k]
    for i in found:
        found += [j for j, w in enumerate(words) if w.head == i]
    inside = words[min(found) : max(found) + 1]
    first, place = inside[0], (inside[0].start, inside[-1].end)
    fits = noun.tag in ("NOUN", "PROPN") and len(found) == len(inside) <= LONGEST
    fits &= not any("Mood" in w.features or (w.head == k and w.relation == "conj") for w in inside)
    fits &= apart(text, place, language) and not re.search(r"[^\w\s.'’-]", text[slice(*place)])
    outside = {w.place for w in words if w not in inside}  # "du", "dell'"
    fits &= first.tag != "ADP" and not outside & {first.place, inside[-1].place}
    if language == "en":  # "took place"
        plain = len(found) > 1 or noun.features.get("Number") == "Plur"
    else:  # "un", "des": if first, can be the object still
        plain = first.tag == "DET" and (noun.relation == "nsubj" or first.form[0] not in "ud")
    return place if fits and (plain or noun.tag == "PROPN") else None


def phrases(text: str, words: list[Word], language: str) -> Iterator[str]:
    """Subject and object of one verb with all that belongs to them, where `roles` finds none."""
    if language not in PHRASES or any(roles(text, words, language)):
        return
    for i, j in combinations(range(len(words)), 2):
        a, b, k = words[i], words[j], words[i].head
        if (a.relation, b.relation, b.head) != ("nsubj", "obj", k) or words[k].tag != "VERB":
            continue
        places = [phrase(text, words, x, language) for x in (i, j)]
        if None in places:
            continue
        (p, q), (r, s) = places
        other, first = text[r:s], next(w for w in words if w.start == p)
        of_verb = [w for w in words if w.head == k and w.place not in (a.place, b.place)]
        # no clitics, second objects, or predicates of the object
        fits = not any(w.relation in ("expl", "iobj", "obj", "xcomp") for w in of_verb)
        fits &= q < words[k].start < r
        finite = [w for w in (*of_verb, words[k]) if w.features.get("VerbForm") == "Fin"]
        shown = any(w.features.get("Tense") == "Pres" or w.lemma == "be" for w in finite)
        if a.features.get("Number") != b.features.get("Number"):  # "they saw"; no "they see"
            fits &= language == "en" and not shown
        fits &= not (text[:p].endswith("que ") and VOWEL.match(other) and language == "fr")
        opens = not re.search(r"\w", text[:p]) or (first.tag == "DET" and first.form[0].isupper())
        if not fits or (opens and first.tag == "ADJ"):  # "Christian", or "Numerous"
            continue
        if opens:
            other = other[0].upper() + other[1:]
            if first.tag == "DET" or first.lemma.islower():
                text = text[:p] + text[p].lower() + text[p + 1 :]
        yield text[:p] + other + text[q:r] + text[p:q] + text[s:]


# --- what can be changed ---


def number_words(text: str, words: list[Word], language: str) -> Iterator[str]:
    """A number written as a word becomes another one of the same length."""
    for i, w in enumerate(words):
        near = {words[k].tag for k in (i - 1, i + 1) if 0 <= k < len(words)}
        name = w.form[0].isupper() and w.start > 1
        if w.tag != "NUM" or not w.whole or name or near & {"PROPN", "NUM"}:
            continue
        for group in RULES_OF[language][0].split("|") if apart(text, w.place, language) else ():
            others = [x for x in group.split() if len(x) == len(w.form) and x != w.form.lower()]
            if w.form.lower() in group.split() and others:
                drawn = others[len(text) % len(others)]
                drawn = drawn.capitalize() if w.form[0].isupper() else drawn
                yield text[: w.start] + drawn + text[w.end :]


def added(text: str, words: list[Word], language: str) -> Iterator[str]:
    """The main clause with a negation."""
    *_, clitics, auxiliaries, no = RULES_OF[language]
    root = next(i for i, w in enumerate(words) if w.head < 0)
    verbs = [i for i, w in enumerate(words) if w.head == root and w.relation in ("aux", "cop")]
    k = first = min([*verbs, *[root] * (words[root].tag == "VERB")], default=root)
    w = words[first]
    if any(x.features.get("Polarity") == "Neg" for x in words) or w.tag not in ("VERB", "AUX"):
        return
    if language == "en" and w.form in auxiliaries.split() and first != root:
        yield text[: w.end] + " not" + text[w.end :]
    elif language == "de" and verbs and words[root].tag in ("VERB", "ADJ") and max(verbs) < root:
        k = root
        while words[k - 1].head == root and words[k - 1].relation in ("xcomp", "compound"):
            k -= 1
        yield text[: words[k].start] + "nicht " + text[words[k].start :]
    elif language == "zh" and w.form in auxiliaries.split() and text[w.end] not in "，：":
        yield text[: w.start] + no + text[w.start :]
    elif language in (*ROMANCE, "ru") and w.features.get("VerbForm", "Fin") == "Fin":
        while k and words[k - 1].tag == "PRON" and words[k - 1].form.lower() in clitics.split():
            k -= 1
        a = words[k].start
        if not (w.whole and a and text[a - 1] == " " and apart(text, w.place, "en")):
            return
        if language == "fr":
            ne = "n'" if VOWEL.match(text[a]) else "ne "
            yield text[:a] + ne + text[a : w.end] + " pas" + text[w.end :]
        else:
            yield text[:a] + f"{no} " + text[a:]


def negation(text: str, words: list[Word], language: str) -> Iterator[str]:
    """One negation taken from the sentence, or, where there is none, put into its main clause."""
    _, pattern, unless, *_ = RULES_OF[language]
    matches = re.findall(pattern, text)
    if not matches:
        yield from added(text, words, language)
    shown = text if language == "zh" else [w.form.lower() for w in words]
    if len(matches) == 1 and not any(x in shown for x in unless.split()):
        once = re.sub(pattern, r"\1" if language == "fr" else "", text)
        yield once[0].upper() + once[1:]


RULES = {
    "numbers": numbers,
    "names": names,
    "roles": roles,
    "phrases": phrases,
    "number words": number_words,
    "negation": negation,
}

# --- files ---


def sentences(file: Path, language: str) -> Iterator[tuple[str, str, list[Word]]]:
    """Id, text and words of each sentence; Chinese trees have other quotation marks."""
    marks = str.maketrans("“”", '""') if language == "zh" else {}
    for _, comments, rows in sentence_blocks(file.read_text("utf-8").split("\n"), str(file)):
        text = comment(comments, "text")
        yield comment(comments, "sent_id"), text, words_of(rows, text.translate(marks))


def edits_of(
    kind: str, code: str, parsed: dict, verdicts: dict[tuple[str, ...], str]
) -> list[tuple]:
    """Rows of a kind and language: those with a verdict first, then by hash."""
    made = []
    for name, (text, words) in parsed.items():
        edited = next(RULES[kind](text, words, code), text) if words else text
        if edited != text:
            made.append((kind, code, name, verdicts.pop((kind, code, name, edited), ""), edited))
    drawn = {row: hashlib.sha256("\t".join(row[:3]).encode()).hexdigest() for row in made}
    made.sort(key=lambda row: (not row[3], drawn[row]))
    return made[: max(LEAST, sum(row[3] != "" for row in made))]


def text_row(
    kind: str, code: str, treebank: Path, names: list[str], texts: dict[str, list]
) -> tuple:
    """Write the sentences of a treebank that are named; their row of ``sources.tsv``."""
    lines = ["id\ttext", *(f"{name}\t{texts[name][0]}" for name in names), ""]
    file = write_packed(HERE, f"{kind}/{code}.tsv.xz", "\n".join(lines))
    about = treebank.name, licence(treebank), UD_URL.format(treebank.name)
    return kind, code, len(names), *about, *file


def main() -> None:
    treebanks, forbidden = (
        by_language(folder_named(__doc__, "ud_pud") / "ud_pud"),
        trained_letters(),
    )
    read = tsv((HERE / "read.tsv").read_bytes(), "read.tsv").to_numpy().tolist()
    verdicts = {
        (kind, code, name, edited): word if kind != "phrases" or word != "ok" else second
        for kind, code, name, word, second, edited in read
    }
    parsed = {}
    for code in LANGUAGES:
        (file,) = treebank_files(treebanks[code]).values()
        parsed[code] = {
            name: rest for name, *rest in sentences(file, code) if letters(rest[0]) not in forbidden
        }
    common = sorted(set.intersection(*map(set, parsed.values())))
    parsed = {code: {name: by_name[name] for name in common} for code, by_name in parsed.items()}
    edits = []
    for kind in RULES:
        of_kind = [
            row for code in LANGUAGES for row in edits_of(kind, code, parsed[code], verdicts)
        ]
        print(kind, *(dict(Counter(row[k] for row in of_kind)) for k in (1, 3)))
        edits += of_kind
    print(f"{len(verdicts)} verdicts are of edits that are made no more")
    rows = [
        text_row("sentences", code, treebanks[code], common, parsed[code]) for code in LANGUAGES
    ]
    good = sorted(
        {name for kind, _, name, verdict, _ in edits if kind in EXCHANGES and verdict == "ok"}
    )
    for code in FURTHER:
        (file,) = treebank_files(treebanks[code]).values()
        texts = {name: rest for name, *rest in sentences(file, code)}
        if trained := [name for name in good if letters(texts[name][0]) in forbidden]:
            raise SystemExit(f"{code}: {trained} are in ../pretraining: leave their edits out")
        rows.append(text_row("further", code, treebanks[code], good, texts))
    lines = ["kind\tlanguage\tid\tverdict\tedited", *map("\t".join, edits), ""]
    file = write_packed(HERE, "edits.tsv.xz", "\n".join(lines))
    rows.append(("edits", "all", len(edits), "sentences, read.tsv", rows[0][4], "make.py", *file))
    columns = ("source", "language", "rows", "made_from", "licence", "url", "file", "sha256")
    write_table(HERE / "sources.tsv", columns, rows)


if __name__ == "__main__":
    main()
