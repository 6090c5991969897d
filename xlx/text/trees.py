"""Dependency trees: sentences parsed as in Universal Dependencies, gold or by UDPipe.

X-Probe's probing tasks (section 4) are made of parsed sentences (Ravishankar, Øvrelid and Velldal
2019, section 6.1). `load_trees` reads the gold parses shipped in ``data/trees``, of a treebank
(``ud``) and of Parallel UD (``pud``), or with ``path=`` CoNLL-U files of your own, such as
`parsing` makes of raw text.

A `Tree` holds UD's syntactic words with their heads, relations, tags and features, and apart from
them the tokens, which are what the text shows: German *im* is one token and two words, *in* and
*dem*. Names of UD 1 are read as those of UD 2 (``dobj`` as ``obj``, ``Number=Sg`` as
``Number=Sing``); its ``nmod`` stays, as nothing tells which are UD 2's ``obl``. A sentence that is
no tree is left out and named in `Trees.dropped`: automatic parses have such.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from xlx.text import conllu_files, shipped
from xlx.text.files import TextError, decode, files_below, letters, unpacked
from xlx.text.varieties import language_code

#: Why a sentence is no tree; "two roots" are two or more.
FLAWS: tuple[str, ...] = ("no such head", "no root", "two roots", "a cycle")

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

    All but ``id``, ``language`` and ``tokens`` have one entry a syntactic word: ``heads`` the
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
        return [
            i
            for i, head in enumerate(self.heads)
            if head == word + 1 and (not relations or self.relation(i) in relations)
        ]

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


@dataclass(frozen=True)
class Trees:
    """Parsed sentences of one source in a language.

    ``left_out`` counts what is not here by reason: sentences that are no tree (`FLAWS`), and in
    what is shipped those that were not taken. ``dropped`` names the former: "sent-id, line 7: two
    roots".
    """

    language: str
    source: str
    trees: tuple[Tree, ...]
    left_out: dict[str, int] = field(default_factory=dict)
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


def load_trees(language: str, source: str = "ud", *, path: str | Path | None = None) -> Trees:
    """Parsed sentences of a language.

    Parameters
    ----------
    language : ISO 639 code, such as "de".
    source : "ud" or "pud" of what is shipped; with ``path``, any name for what is there.
    path : a CoNLL-U file, ``.conllu`` or ``.conllu.xz``, or a folder with such files at any depth,
        all of which are taken, in the order of their paths; None for what is shipped. Of several
        files, ids are preceded by the name of the file.

    Raises TextError (a ValueError) for what is not shipped, a shipped file that was changed, a
    folder without such files, and malformed files (with the line); FileNotFoundError where there is
    nothing at ``path``.
    """
    language = language_code(language)
    if path is None:
        row = _shipped(language, source)
        read = read_trees(shipped.lines_of("trees", row), row["file"], language, source=source)
        return replace(read, left_out=read.left_out | shipped.left_out(row))
    parts: dict[str, Trees] = {}
    for file in _local_files(Path(path)):
        lines = decode(unpacked(file.read_bytes(), str(file)), str(file))
        name = str(file.relative_to(path)).removesuffix(".xz").removesuffix(".conllu")
        parts[name] = read_trees(lines, str(file), language, source=source)
    if not any(parts.values()):
        why = next(part.dropped[0] for part in parts.values())
        raise TextError(f"{path}: none of its sentences is a tree (first: {why}).")
    if len(parts) == 1:
        return parts.popitem()[1]
    return Trees(
        language,
        source,
        tuple(replace(t, id=f"{name}:{t.id}") for name, part in parts.items() for t in part),
        {flaw: sum(part.left_out[flaw] for part in parts.values()) for flaw in FLAWS},
        tuple(f"{name}:{why}" for name, part in parts.items() for why in part.dropped),
    )


@dataclass(frozen=True)
class Treebank:
    """Parsed sentences that are read when they are needed; arguments and errors as `load_trees`."""

    language: str
    source: str = "ud"
    path: str | Path | None = None

    @cached_property
    def about(self) -> dict[str, Any]:
        """What decides the sentences: hashes of the files, found without reading the trees."""
        if self.path is None:
            hashes = {"": _shipped(self.language, self.source)["sha256"]}
        else:
            root = Path(self.path)
            hashes = {
                str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
                for file in _local_files(root)
            }
        return {"language": self.language, "source": self.source, "files": hashes}

    @cached_property
    def trees(self) -> Trees:
        """As `load_trees`."""
        return load_trees(self.language, self.source, path=self.path)


def _shipped(language: str, source: str) -> dict[str, Any]:
    how = "Give path=, CoNLL-U files of universaldependencies.org or your own."
    return shipped.entry("trees", how, source=source, language=language)


def _local_files(path: Path) -> list[Path]:
    def fits(file: Path) -> bool:
        return file.name.endswith((".conllu", ".conllu.xz"))

    return files_below(path, fits, ".conllu or .conllu.xz file", "give a CoNLL-U file or a folder.")


def read_trees(lines: Sequence[str], where: str, language: str, *, source: str = "conllu") -> Trees:
    """The trees of the lines of a CoNLL-U file; ``where`` opens every error: the name of the file.

    The id of a tree is its ``sent_id``, else the number of the sentence in the file. Raises
    TextError as `conllu_files.read_conllu`, and for a word without head or relation and features
    that are not ``Name=Value|…`` (with the line).
    """
    left_out = dict.fromkeys(FLAWS, 0)
    trees, dropped = [], []
    for sentence in conllu_files.read_conllu(lines, where):
        tree = _tree(sentence, language, where)
        if flaw := _flaw(tree.heads):
            left_out[flaw] += 1
            dropped.append(f"{tree.id}, line {sentence.line}: {flaw}")
        else:
            trees.append(tree)
    return Trees(language, source, tuple(trees), left_out, tuple(dropped))


def _tree(sentence: conllu_files.Sentence, language: str, where: str) -> Tree:
    features = []
    for number, word in enumerate(sentence.words, 1):
        place = f"{where}, line {word.line}: word {number}"
        if word.head is None:
            raise TextError(f"{place} has no head, a number from 0; is the text parsed?")
        if not word.relation.strip("_ "):
            raise TextError(f"{place} has the relation {word.relation!r}; is the text parsed?")
        features.append(_features(word.features))
        if features[-1] is None:
            raise TextError(f"{place}: {word.features!r} is not Name=Value|Name=Value or _.")
    return Tree(
        id=sentence.id,
        language=language,
        words=tuple(word.form for word in sentence.words),
        heads=tuple(word.head for word in sentence.words),
        relations=tuple(_FORMER_RELATIONS.get(w.relation, w.relation) for w in sentence.words),
        upos=tuple(word.upos for word in sentence.words),
        features=tuple(features),
        tokens=tuple(sentence.tokens),
        token_of=tuple(sentence.token_of),
    )


@lru_cache(maxsize=2**14)
def _features(written: str) -> dict[str, str] | None:
    """Feature → value; None where it is not written as CoNLL-U has it."""
    if written == "_":
        return {}
    pairs = [_FORMER_FEATURES.get(x, x).partition("=") for x in written.split("|")]
    return {name: value for name, _, value in pairs} if all(map(all, pairs)) else None


def _flaw(heads: Sequence[int]) -> str:
    """Why this is no tree (`FLAWS`); "" where it is one."""
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
