"""One reader of CoNLL-U: the words of each sentence, its tree, and the line of whatever is wrong.

Words are the syntactic words of UD; ranges of multi-word tokens (``3-4``) say what the text shows,
and empty nodes (``5.1``) are left out. UD 1's CONJ is read as CCONJ.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from sys import intern
from typing import NamedTuple

from xlx.results import checks
from xlx.text import files
from xlx.text.files import TextError, letters
from xlx.text.languages import base_code

#: The 17 tags of Universal Dependencies, in alphabetical order.
UPOS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
_NUMBER = re.compile("0|[1-9][0-9]{0,8}")
#: The id of a range of words, or of an empty node.
_NO_WORD = re.compile("([0-9]{1,9})([-.])([0-9]{1,9})")
_COMMENT = re.compile(r"#[^\t]*$|#\s*\w+ = ")  # "#" may be a word, before a tab


class Word(NamedTuple):
    """A syntactic word; its features as they are written, head None for no number, its line."""

    form: str
    upos: str
    features: str
    head: int | None
    relation: str
    line: int


class Sentence(NamedTuple):
    """A sentence of a file: its ``sent_id`` or number, the line of its first row, its words.

    ``tokens`` is what the text shows; ``token_of`` the place in it of each word's token.
    """

    id: str
    line: int
    words: list[Word]
    tokens: list[str]
    token_of: list[int]


def sentence_blocks(
    lines: Iterable[str], where: str, split: str | None = None
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Sentences of a file whose sentences end at empty lines: (first line, comments, rows).

    A comment starts with ``#`` and has no tab (which the word "#" with its tag has); ``first line``
    is the number of the first row (from 1), and comments are above all rows. With ``split``, only
    the sentences with the comment ``# split = <split>``. TextError for a file without sentences.
    """
    block, empty = [], True
    for number, line in enumerate(chain(lines, [""]), 1):
        if line.strip():
            block.append(line)
            continue
        n_comments = 0
        while n_comments < len(block) and _COMMENT.match(block[n_comments]):
            n_comments += 1
        comments, rows = block[:n_comments], block[n_comments:]
        if block and (split is None or f"# split = {split}" in comments):
            yield number - len(rows), comments, rows
            empty = False
        block = []
    if empty:
        raise TextError(f"{where} has no sentences{f' of {split}' if split else ''}.")


def comment(comments: Iterable[str], key: str) -> str | None:
    """The value of ``# key = value``. UD 1's ``# sent_id value`` is none: not unique in a file."""
    for line in comments:
        if match := re.fullmatch(rf"#\s*{key}\s*=\s*(\S.*?)\s*", line):
            return match[1]
    return None


@checks.typed(TextError)
def read_conllu(lines: Iterable[str], where: str, split: str | None = None) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file; with ``split``, those of it. ``where`` opens every error.

    Raises TextError, with the line, for what CoNLL-U has not, a repeated ``sent_id``, and for a
    file without sentences.
    """
    seen = {}
    for number, (first, comments, rows) in enumerate(sentence_blocks(lines, where, split), 1):
        name = comment(comments, "sent_id") or str(number)
        if seen.setdefault(name, first) != first:
            raise TextError(f"{where}, line {first}: sentence {name} is also at line {seen[name]}.")
        yield _sentence(name, first, rows, where)


def _sentence(name: str, first: int, rows: Sequence[str], where: str) -> Sentence:
    words = []
    tokens = []
    token_of = []
    last = 0  # of the range of words that is open

    def wrong(message: str) -> TextError:
        return TextError(f"{where}, line {line}: {message}")

    for line, row in enumerate(rows, first):
        n, columns = len(words), row.split("\t")
        if len(columns) != 10:
            what = f"{len(columns)} columns, not 10" if row[0] != "#" else "a comment among words"
            raise wrong(f"{what}; CoNLL-U has 10 columns parted by tabs.")
        number, form, _, tag, _, features, head, relation, _, _ = columns
        if not number.isdigit() and (span := _NO_WORD.fullmatch(number)):
            if span[2] == ".":
                continue
            start, end = int(span[1]), int(span[3])
            if start != n + 1 or start <= last or end <= start:
                raise wrong(
                    f"the range {start}-{end} after word {n}"
                    "; it stands before its words, two or more."
                )
            last = end
            tokens.append(form)
            continue
        if number != str(n + 1):
            raise wrong(
                f"word {number[:20]} follows word {n}; words are numbered 1, 2, 3 and so on."
            )
        if not form.strip():
            raise wrong("a word without form.")
        tag = intern("CCONJ" if tag == "CONJ" else tag)
        if tag not in UPOS:
            raise wrong(
                f"{form!r} has the tag {tag!r}, which is none of UD's 17 ({' '.join(UPOS)})"
                "; is this CoNLL-U with UPOS tags?"
            )
        head = int(head) if _NUMBER.fullmatch(head) else None
        form = intern(form)  # of millions of words few are different
        words.append(Word(form, tag, features, head, intern(relation), line))
        if len(words) > last:  # within a range, the token is there already
            tokens.append(form)
        token_of.append(len(tokens) - 1)
    if last > len(words):
        raise TextError(f"{where}, line {first}: a range ends at word {last}, which is missing.")
    if not words:
        raise TextError(f"{where}, line {first}: a sentence without words.")
    return Sentence(name, first, words, tokens, token_of)


#: Relations that UD 2 has renamed; ``nmod`` and ``dep`` cannot be told apart from the name alone.
_FORMER_RELATIONS = {
    **{"dobj": "obj", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass"},
    **{"auxpass": "aux:pass", "neg": "advmod", "mwe": "fixed", "name": "flat:name"},
    **{"foreign": "flat:foreign", "remnant": "orphan"},
}
#: Values of features that the Hindi treebank had in UD 1.
_FORMER_FEATURES = {"Number=Sg": "Number=Sing", "Number=Pl": "Number=Plur"}


@dataclass(frozen=True)
class Tree:
    """A sentence with its dependency tree.

    All but ``id``, ``language`` and ``tokens`` have one entry per syntactic word: ``heads`` the
    number of its head, from 1, and 0 at the root; ``features`` a dictionary such as ``{"Number":
    "Sing"}`` (shared between words: do not change it); ``token_of`` the position (from 0) in
    ``tokens`` of its token, which never falls. ``id`` tells a sentence apart in its `Trees`.
    """

    id: str
    language: str
    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    upos: tuple[str, ...]
    features: tuple[dict[str, str], ...]
    tokens: tuple[str, ...]
    token_of: tuple[int, ...]

    def __len__(self) -> int:
        """How many words it has."""
        return len(self.words)

    def __repr__(self) -> str:
        return f"Tree({self.id}: {' '.join(self.tokens)})"

    @property
    def root(self) -> int:
        """Position (from 0) of the word without a head."""
        return self.heads.index(0)

    def children(self, word: int, *relations: str) -> list[int]:
        """Positions (from 0) of what depends on a word, in order.

        With ``relations``, only by these; a subtype counts: ``nsubj:pass`` is an ``nsubj``.
        """
        below = (i for i, head in enumerate(self.heads) if head == word + 1)
        return [i for i in below if not relations or self.relation(i) in relations]

    def relation(self, word: int) -> str:
        """The relation of a word to its head without its subtype: ``nsubj`` of ``nsubj:pass``."""
        return self.relations[word].partition(":")[0]

    def below(self, word: int) -> set[int]:
        """Positions (from 0) of a word and of all that depends on it, over any number of steps."""
        reached, new = {word}, [word]
        while new:
            new = [i for above in new for i in self.children(above)]
            reached.update(new)
        return reached

    @cached_property
    def depth(self) -> int:
        """Steps from the root to the word that is farthest from it; 0 where there is no other."""
        return max(_depths(self.heads) or [0])

    @cached_property
    def key(self) -> str:
        """Its letters and digits (`letters`): two sentences with one key are the same."""
        return letters(self.tokens)


@checks.typed(TextError)
@dataclass(frozen=True)
class Trees:
    """Parsed sentences of one source in a language.

    ``dropped`` names the sentences of a file that are no tree: "sent-id, line 7: two roots".
    """

    language: str
    source: str
    trees: tuple[Tree, ...]
    dropped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)

    def __repr__(self) -> str:
        return f"Trees({self.source} {self.language}: {len(self)} sentences)"

    @property
    def n_words(self) -> int:
        """Words of all sentences."""
        return sum(map(len, self.trees))


@checks.typed(TextError)
def load_trees(language: str, source: str = "ud", *, path: str | Path | None = None) -> Trees:
    """Parsed sentences of a language.

    Parameters
    ----------
    language : ISO 639 code, such as "de".
    source : "ud" or "pud" of what is shipped; with ``path``, any name for what is there.
    path : a CoNLL-U file, ``.conllu`` or ``.conllu.xz``, or a folder with such files at any depth,
        all of which are taken, in the order of their paths, and read a sentence at a time; None for
        what is shipped. Of several files, ids are preceded by the name of the file.

    Raises TextError (a ValueError) for what is not shipped, a shipped file that was changed, and
    malformed files (with the line); FileNotFoundError where there is nothing at ``path``.
    """
    language = base_code(language)
    if path is None:
        how = "Give path=, CoNLL-U files of universaldependencies.org or your own."
        row = files.entry("trees", how, language, source=source)
        return _shipped(language, source, files.stamp("trees"), files.stamp("trees", row["file"]))
    what, how = ".conllu or .conllu.xz file", "give a CoNLL-U file or a folder."

    def fits(file: Path) -> bool:
        return file.name.endswith((".conllu", ".conllu.xz"))

    candidates = files.files_below(Path(path), fits, what, how)
    parts = []
    for file in candidates:
        name = str(file.relative_to(path)).removesuffix(".xz").removesuffix(".conllu")
        options = {"source": source, "prefix": f"{name}:" if len(candidates) > 1 else ""}
        parts.append(read_trees(files.streamed_lines(file), str(file), language, **options))
    dropped = tuple(why for part in parts for why in part.dropped)
    if not any(parts):
        raise TextError(f"{path}: none of its sentences is a tree (first: {dropped[0]}).")
    return Trees(language, source, tuple(tree for part in parts for tree in part), dropped)


@lru_cache(maxsize=2**5)  # some 100 MB
def _shipped(language: str, source: str, *_: tuple) -> Trees:
    row = files.entry("trees", "", language, source=source)
    return read_trees(files.lines_of("trees", row), row["file"], language, source=source)


def read_trees(
    lines: Iterable[str], where: str, language: str, *, source: str = "conllu", prefix: str = ""
) -> Trees:
    """The trees of the lines of a CoNLL-U file; ``where`` opens every error: the name of the file.

    The id of a tree is ``prefix`` and its ``sent_id``, else its number in the file. TextError as
    `read_conllu`, and for a word without head or relation or with malformed features.
    """
    trees, dropped = [], []
    for sentence in read_conllu(lines, where):
        name = prefix + sentence.id
        if flaw := _flaw(heads := _heads(sentence.words, where)):
            dropped.append(f"{name}, line {sentence.line}: {flaw}")
            continue
        forms, upos, features, _, relations, _ = zip(*sentence.words, strict=True)
        relations = tuple(_FORMER_RELATIONS.get(x, x) for x in relations)
        tokens, token_of = tuple(sentence.tokens), tuple(sentence.token_of)
        if tokens == forms:  # of most: kept once
            tokens, token_of = forms, _places(len(forms))
        seen = tuple(map(_features, features))
        trees.append(Tree(name, language, forms, heads, relations, upos, seen, tokens, token_of))
    return Trees(language, source, tuple(trees), tuple(dropped))


@lru_cache(maxsize=2**8)
def _places(n: int) -> tuple[int, ...]:
    """The places of n tokens of a word each."""
    return tuple(range(n))


def _heads(words: Sequence[Word], where: str) -> tuple[int, ...]:
    """The head of each word, if all of them are parsed."""
    for number, word in enumerate(words, 1):
        if word.head is None:
            problem = " has no head, a number from 0; is the text parsed?"
        elif not word.relation.strip("_ "):
            problem = f" has the relation {word.relation!r}; is the text parsed?"
        elif _features(word.features) is None:
            problem = f": {word.features!r} is not Name=Value|Name=Value or _."
        else:
            continue
        raise TextError(f"{where}, line {word.line}: word {number}{problem}")
    return tuple(word.head for word in words)


@lru_cache(maxsize=2**14)
def _features(written: str) -> dict[str, str] | None:
    """Feature → value; None where it is not written as CoNLL-U has it."""
    if written == "_":
        return {}
    pairs = [_FORMER_FEATURES.get(x, x).partition("=") for x in written.split("|")]
    return {name: value for name, _, value in pairs} if all(map(all, pairs)) else None


def _flaw(heads: Sequence[int]) -> str:
    """Why this is no tree; "" where it is one."""
    if max(heads) > len(heads):
        return "no such head"
    if heads.count(0) != 1:
        return "two roots" if 0 in heads else "no root"
    return "" if _depths(heads) else "a cycle"


def _depths(heads: Sequence[int]) -> list[int] | None:
    """Steps from each word to the root; None where a word never comes to it."""
    depths = []
    for word in range(len(heads)):
        depths.append(0)
        while heads[word] != 0:
            word, depths[-1] = heads[word] - 1, depths[-1] + 1
            if depths[-1] > len(heads):
                return None
    return depths
