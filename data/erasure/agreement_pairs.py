"""Minimal pairs of agreement: a sentence's beginning, its verb, and the verb in the other number.

    python data/erasure/agreement_pairs.py            # writes pairs.tsv beside this file

Of Parallel UD, by rules on its gold trees. The beginning has the one subject of the verb, a noun
of the verb's number without a coordinated one, and ends before the verb. The other form is what
the lemma has in the treebanks for the other number, of the same tense. Both forms
are a piece of Gemma's vocabulary each, so one state tells them apart. A language has `MOST` pairs,
as many of each number as there are, drawn by hash; ``verdict`` is a reader's.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from xlx.subjects.loading import tokenizer
from xlx.text import files
from xlx.text.trees import Tree, load_trees, sentence_blocks

TABLE = Path(__file__).with_name("pairs.tsv")
LANGUAGES, MODEL = ("en", "de", "fr", "es"), "gemma-3-270m"
#: Fewest and most words before the verb; pairs of a language at most.
WORDS, MOST = (2, 16), 200
NUMBERS = {"Sing": "Plur", "Plur": "Sing"}
COLUMNS = ["language", "id", "number", "prefix", "right", "wrong"]


def lemmas(language: str, source: str) -> dict[str, list[str]]:
    """The lemmas of the words of each sentence, which `Tree` has not, by its id."""
    lines = files.lines_of("trees", files.entry("trees", "", language, source=source))
    rows = {}
    for _, comments, block in sentence_blocks(lines, source):
        words = (line.split("\t") for line in block)
        rows[comments[0].partition(" = ")[2]] = [x[2] for x in words if x[0].isdigit()]
    return rows


def finite(tree: Tree, i: int) -> bool:
    """Whether a word is a verb of the third person."""
    features = tree.features[i]
    known = features.get("Mood") == "Ind" and features.get("Person", "3") == "3"
    return known and tree.upos[i] in ("AUX", "VERB")


def forms(language: str) -> dict[tuple, Counter]:
    """How often each form stands for a lemma, tense and number; a tense is a form's usual one."""
    counts = defaultdict(Counter)
    tenses = defaultdict(Counter)
    for source in ("ud", "pud"):
        of_words = lemmas(language, source)
        for tree in load_trees(language, source):
            for i in filter(lambda i, tree=tree: finite(tree, i), range(len(tree))):
                if number := tree.features[i].get("Number"):
                    about = key(tree, i, of_words[tree.id][i], number)
                    counts[about][tree.words[i].lower()] += 1
                    tenses[tree.words[i].lower()][about[1]] += 1
    for (_, tense, _), several in counts.items():
        for form in [x for x in several if tenses[x].most_common(1)[0][0] != tense]:
            del several[form]
    return counts


def key(tree: Tree, i: int, lemma: str, number: str) -> tuple:
    """What a form is of: its lemma, its tense, its number."""
    return lemma, tree.features[i].get("Tense"), number


def agreeing(tree: Tree) -> Iterator[tuple[int, str]]:
    """Verbs behind the one subject that they agree with, `WORDS` from the beginning; its number.

    English Parallel UD marks no plural of verbs: there the noun's number stands for the verb's.
    """
    for i in filter(lambda i: finite(tree, i) and WORDS[0] <= i <= WORDS[1], range(len(tree))):
        head = tree.heads[i] - 1 if tree.relation(i) in ("aux", "cop") else i
        first = min([i, *tree.children(head, "aux", "cop")])
        subjects = tree.children(head, "nsubj")
        if first < i or len(subjects) != 1 or tree.children(head, "csubj", "expl"):
            continue
        (subject,) = subjects
        number = tree.features[subject].get("Number")
        alike = number in NUMBERS and tree.features[i].get("Number", number) == number
        alone = not tree.children(subject, "conj", "appos", "nummod")
        if subject < i and alike and alone and tree.upos[subject] == "NOUN":
            yield i, number


def beginning(tree: Tree, i: int, text: str) -> str | None:
    """The text before a word; None where the word is a part of a token, or the text is another."""
    place = tree.token_of[i]
    if tree.tokens[place] != tree.words[i]:
        return None
    at = 0
    for token in tree.tokens[:place]:
        start = text.find(token, at)
        if start < 0 or text[at:start].strip():
            return None
        at = start + len(token)
    return text[:at] if text[at : at + 1] == " " else None


def pairs(language: str) -> pd.DataFrame:
    """The pairs of a language, at most `MOST`."""
    known, of_words, pieces = forms(language), lemmas(language, "pud"), tokenizer(MODEL)
    row = files.entry("minimal-pairs", "", language, source="sentences")
    texts = files.tsv(files.contents("minimal-pairs", row), "").set_index("id")["text"]
    rows = []
    for tree in load_trees(language, "pud"):
        for i, number in agreeing(tree):
            lemma, right = of_words[tree.id][i], tree.words[i]
            alike, others = (known.get(key(tree, i, lemma, x)) for x in (number, NUMBERS[number]))
            prefix = beginning(tree, i, texts.get(tree.id, ""))
            if not alike or right not in alike or not others or prefix is None:
                continue
            wrong = others.most_common(1)[0][0]
            ids = [pieces(f" {x}", add_special_tokens=False)["input_ids"] for x in (right, wrong)]
            if right.islower() and right != wrong and [*map(len, ids)] == [1, 1]:
                rows.append((language, tree.id, number, prefix, right, wrong))
                break  # a pair a sentence
    table = pd.DataFrame(rows, columns=COLUMNS)
    drawn = table["id"].map(lambda x: hashlib.sha256(x.encode()).hexdigest())
    table = table.assign(drawn=drawn).sort_values("drawn").drop(columns="drawn")
    few = table.groupby("number").cumcount()
    return table.assign(few=few).sort_values("few", kind="stable")[:MOST].drop(columns="few")


if __name__ == "__main__":
    read = pd.concat([*map(pairs, LANGUAGES)])
    read.to_csv(TABLE, sep="\t", index=False)
    print(read.groupby(["language", "number"]).size())
