"""What the languages of a corpus are called: codes, tags of files, varieties of a language.

Languages go by their ISO 639-1 code, or 639-3 where there is none. Where a corpus has several
varieties of a language, the chosen one (or else the only one) takes the bare code and the others
keep script or region: "pt" and "pt_BR". In a folder with ``pt_PT`` and ``pt_BR`` none takes it.
Either name works when asking.
"""

import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.results import checks
from xlx.text import origins
from xlx.text.files import (
    TextError,
    by_id,
    decode,
    filled,
    in_common,
    sentences_hash,
    tsv,
    with_ids,
)
from xlx.text.languages import base_code, parse_tag
from xlx.text.origins import ORIGINS, CorpusTexts, CorpusWarning


def language_code(language: str, parse: Callable[[str], str] = base_code) -> str:
    """The code of a language. Raises TextError for what is no tag."""
    checks.tag(language, TextError)
    try:
        return parse(language)
    except ValueError as error:
        raise TextError(str(error)) from None


def resolve(asked: Iterable[str] | None, keys: dict[str, str], where: str) -> list[str]:
    """The keys asked for by key, file tag or any spelling of it. ``keys``: key to file tag."""
    if asked is None:
        return list(keys)
    spelled = {_canonical(tag): key for key, tag in keys.items()} | {key: key for key in keys}
    chosen, missing = [], []
    for request in [asked] if isinstance(asked, str) else asked:
        checks.tag(request, TextError)
        key = spelled.get(request) or spelled.get(_canonical(request))
        (chosen if key else missing).append(key or request)
    if missing or not chosen:
        raise TextError(
            f"{where} has no text in {', '.join(missing) or 'no language at all'}; "
            f"it has {', '.join(keys) or 'none'}."
        )
    return list(dict.fromkeys(chosen))


def _canonical(tag: str) -> str:
    """The tag in its canonical form; a key that is none (of a corpus made by hand) as it is."""
    try:
        return parse_tag(tag)
    except ValueError:
        return tag


def keys_of(
    tags: Iterable[str],
    chosen: dict[str, str],
    where: str,
    wanted: Iterable[str] | None = None,
) -> dict[str, str]:
    """Key of every file tag: the bare code for the chosen or only variety, else the whole tag.

    Of tags that mean one language (est and ekk, zho and cmn) only one can be used: that in
    ``wanted``, or none where the language is not wanted at all.
    """
    for request in wanted or ():
        checks.tag(request, TextError)
    named: dict[str, list[str]] = {}
    for tag in tags:
        named.setdefault(parse_tag(tag), []).append(tag)
    spelled: dict[str, str] = {}
    for canonical, same in named.items():
        asked = same if wanted is None else [x for x in wanted if _canonical(x) == canonical]
        exact = same if len(same) == 1 else [tag for tag in same if tag in asked]
        if asked and len(exact) != 1:
            raise TextError(
                f"{where}: {' and '.join(same)} are the same language; keep one of them, or ask "
                "for one by this name."
            )
        spelled.update((canonical, tag) for tag in exact)
    taken = {tag: code for code, tag in chosen.items()}
    codes = Counter(base_code(tag) for tag in spelled if spelled[tag] not in taken)
    keys = {}
    for canonical, tag in spelled.items():
        code = base_code(canonical)
        alone = codes[code] == 1 and code not in chosen
        keys[taken.get(tag) or (code if alone else canonical)] = tag
    return dict(sorted(keys.items()))


#: Files of a folder that are no text of a language.
_SEGMENTS = "segments.tsv"
_BESIDE = ("readme", "license", "licence", "notice")
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz")
#: A translation of the Parallel Bible Corpus by its file name: ``deu-x-bible-luther1912.txt``.
_TRANSLATION = re.compile(r"(?P<code>[^-.]+)-x-bible\b.*")
#: What of it is no verse: metadata (``# key: value``), verses left out (``# id<TAB>text``), blanks.
_NOT_VERSE = re.compile(r"#.*|\s*")
#: A verse of it: two digits of the book, three each of chapter and verse. No text, no verse.
_VERSE = re.compile(r"([0-9]{8})(?:\t(.*))?")
#: The layouts of a folder.
_BY_LINE, _BY_ID, _BY_VERSE = (
    "one sentence a line",
    "id and sentence a line",
    "verses as in the Parallel Bible Corpus",
)


def read_folder(folder: Path, languages: Iterable[str] | None) -> tuple[CorpusTexts, str]:
    """The texts of a folder in these languages, aligned by line or by id, and the layout.

    Errors as `corpora.load`.
    """
    files = _files(folder)
    if languages is not None:
        languages = [languages] if isinstance(languages, str) else list(languages)
    keys = keys_of(files, {}, str(folder), languages)
    names = {key: files[keys[key]] for key in resolve(languages, keys, str(folder))}
    lines = {key: decode(file.read_bytes(), f"{key}: {file}") for key, file in names.items()}
    segments, layout, notes = _segments(folder), _layout(names.values(), lines.values()), []
    if layout == _BY_LINE:
        texts = {key: filled(rows, f"{key}: {names[key]}") for key, rows in lines.items()}
    elif segments:
        first = min(file.name for file in names.values())
        raise TextError(f"{folder / _SEGMENTS}: the lines of {first} have ids; remove one of both.")
    else:
        read = _verses if layout == _BY_VERSE else with_ids
        where = {key: f"{key}: {names[key]}" for key in names}
        rows = {key: by_id(read(lines[key], where[key]), where[key]) for key in names}
        ids, texts = in_common(rows)
        notes += _left_out(folder, rows, names, len(ids))
        segments = {"id": ids}
        if layout == _BY_VERSE:
            segments["domain"] = tuple(verse[:2] for verse in ids)
    first: dict[tuple[str, ...], str] = {}
    for key, text in texts.items():
        if (same := first.setdefault(text, key)) != key:
            notes.append(
                f"{names[same].name} and {names[key].name} hold the same text; nothing tells these "
                "two languages apart."
            )
    files = {key: file.name for key, file in names.items()}
    return CorpusTexts(texts, files, segments, _SEGMENTS, tuple(notes)), layout


def _segments(folder: Path) -> dict[str, tuple[str, ...]]:
    """Ids and domains from the file beside the text, if there is one."""
    file = folder / _SEGMENTS
    if not file.exists():
        return {}
    table = tsv(file.read_bytes(), str(file))
    segments = {name: tuple(table[name]) for name in ("id", "domain") if name in table}
    if not segments:
        raise TextError(f"{file}, line 1: the header names neither id nor domain.")
    return segments


def _files(folder: Path) -> dict[str, Path]:
    """The files of a folder that hold the text of a language, by language tag."""
    by_tag: dict[str, Path] = {}
    of_code: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        name = file.name
        if file.is_dir() or name.startswith(".") or name == _SEGMENTS:
            continue
        if name.lower().split(".")[0] in _BESIDE:
            continue
        checks.regular(file, TextError)
        if file.suffix in _PACKED:
            raise TextError(f"{folder}: {name} is packed; unpack it first.")
        tag = code = file.stem
        if translation := _TRANSLATION.fullmatch(name):
            code = translation["code"]
            tag = "_".join([code, *_script(file)])
        try:
            parse_tag(tag)
        except ValueError as error:
            raise TextError(f"{folder}: file {name} is no text of a language: {error}") from None
        # A translation whose header names no script may be in that of any other.
        same = by_tag.get(tag) or by_tag.get(code) or (of_code.get(code) if tag == code else None)
        if same:
            raise TextError(
                f"{folder}: {same.name} and {name} are the same language; keep one of them."
            )
        by_tag[tag] = of_code[code] = file
    if not by_tag:
        what = (
            "has no text, but subfolders" if any(map(Path.is_dir, folder.iterdir())) else "is empty"
        )
        raise TextError(f"{folder} {what}; it needs one text file a language, such as en.txt.")
    kinds = {
        "two layouts": lambda file: bool(_TRANSLATION.fullmatch(file.name)),
        # en and en.txt are read alike.
        "two extensions": lambda file: file.suffix or ".txt",
    }
    for what, kind in kinds.items():
        first, *others = by_tag.values()
        if odd := [file for file in others if kind(file) != kind(first)]:
            raise TextError(
                f"{folder} holds {what}: {first.name} and {odd[0].name} are not of one kind; keep "
                "the files of one in a folder of their own."
            )
    return by_tag


def _script(file: Path) -> list[str]:
    """The script that the header of a translation names, if it does: [] or one ISO 15924 code."""
    with file.open("rb") as lines:
        for line in lines:
            text = line.decode("utf-8-sig", errors="replace").rstrip()
            if not _NOT_VERSE.fullmatch(text):
                break
            if script := re.fullmatch(r"# *ISO_15924: *([A-Z][a-z]{3})", text):
                return [script[1]]
    return []


def _layout(files: Iterable[Path], lines: Iterable[list[str]]) -> str:
    """Which layout these files, and their lines, have."""
    if any(_TRANSLATION.fullmatch(file.name) for file in files):
        return _BY_VERSE
    for rows in lines:
        if 2 * sum(bool(re.match(r"\S+\t", row)) for row in rows) > len(rows):
            return _BY_ID
    return _BY_LINE


def _verses(lines: Sequence[str], where: str) -> Iterator[tuple[int, str, str]]:
    """Number, id and text of the verses of the Parallel Bible Corpus."""
    for number, line in enumerate(lines, 1):
        if verse := _VERSE.fullmatch(line):
            yield number, verse[1], verse[2] or ""
        elif not _NOT_VERSE.fullmatch(line):
            raise TextError(
                f"{where}, line {number}: not a verse (eight digits, a tab and text) nor a line "
                "that starts with #."
            )


def _left_out(
    folder: Path, rows: dict[str, dict[str, str]], names: dict[str, Path], n: int
) -> list[str]:
    """What to warn with where not all languages have all ids; TextError where ``n``, theirs, is 0.

    ``rows``: language to id to sentence.
    """
    every = len(set().union(*rows.values()))
    fewest, most = (pick(rows, key=lambda key: len(rows[key])) for pick in (min, max))
    if not n:
        some = " and ".join(
            f"{next(iter(rows[key]), 'none')} in {names[key].name}" for key in (fewest, most)
        )
        raise TextError(
            f"{folder}: no id has a sentence in all of {len(rows)} files (the first is {some})."
        )
    if n == every:
        return []
    return [
        f"{every - n} of {every} ids are left out, as not all of {len(rows)} languages have them; "
        f"{names[fewest].name} lacks most, {every - len(rows[fewest])} of them; an id is what "
        "stands before the first tab."
    ]


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentences aligned by position: n of them in each language.

    ``ids`` and ``domains`` have n entries too. An id is ``document:segment`` in WMT24++ and NTREX,
    a verse in the New Testaments (``Jas.1.1``, of the domain ``Jas``), elsewhere the line number
    unless the corpus gives one; where there are no domains, they are empty. ``source`` of a folder
    says which layout was read. ``stock`` are the ids that `take` draws from first: of a shipped
    corpus, the positions that it has in all its languages, whichever were asked for.
    """

    name: str
    sentences: dict[str, tuple[str, ...]]
    ids: tuple[str, ...]
    domains: tuple[str, ...]
    licence: str
    source: str
    stock: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        for what, row in {**self.sentences, "domains": self.domains}.items():
            if len(row) != len(self.ids):
                raise TextError(
                    f"{self.name}: {what} has {len(row)} entries and ids {len(self.ids)}; "
                    "a parallel corpus has one for each position in every language."
                )

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.sentences)

    @property
    def n_sentences(self) -> int:
        """Number of positions, the same in every language."""
        return len(self.ids)

    def __len__(self) -> int:
        return self.n_sentences

    def __repr__(self) -> str:
        return f"ParallelCorpus({self.name!r}: {self.n_sentences} in {' '.join(self.languages)})"

    def select(self, languages: Iterable[str]) -> "ParallelCorpus":
        """The corpus in these languages, in this order. Raises TextError for one it lacks."""
        codes = resolve(languages, {code: code for code in self.sentences}, self.name)
        return replace(self, sentences={code: self.sentences[code] for code in codes})

    def take(self, n: int, seed: int | np.random.Generator) -> "ParallelCorpus":
        """n positions drawn without replacement, in their order; all if n is not smaller.

        Drawn by id, from the ``stock`` and then by a hash of seed and id: corpora that differ in
        their languages alone give the same positions, as far as they have them.
        """
        if n < 1:
            raise TextError(f"{self.name}: cannot take {n} sentences; take at least one.")
        if n >= len(self):
            return self
        rng = np.random.default_rng(seed)
        place = {id_: position for position, id_ in enumerate(self.ids)}
        drawn = rng.choice(len(self.stock), size=min(n, len(self.stock)), replace=False)
        kept = {place[id_] for i in drawn if (id_ := self.stock[i]) in place}
        salt = rng.integers(2**63)
        ranks = [hashlib.sha256(f"{salt} {id_}".encode()).digest() for id_ in self.ids]
        rest = sorted(set(range(len(self))) - kept, key=lambda place: (ranks[place], place))
        return self._keep(sorted([*kept, *rest[: n - len(kept)]]))

    def drop(self, positions: Iterable[int]) -> "ParallelCorpus":
        """The corpus without these positions (0 to n - 1), in every language."""
        gone = {int(position) for position in positions}
        if beyond := [p for p in sorted(gone) if not 0 <= p < len(self)]:
            raise TextError(f"{self.name}: no position {beyond[0]} among {len(self)} sentences.")
        return self._keep([p for p in range(len(self)) if p not in gone])

    def _keep(self, positions: Sequence[int]) -> "ParallelCorpus":
        def kept(row: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(row[p] for p in positions)

        sentences = {language: kept(row) for language, row in self.sentences.items()}
        return replace(self, sentences=sentences, ids=kept(self.ids), domains=kept(self.domains))

    def duplicates(self) -> pd.DataFrame:
        """Sentences equal to an earlier one of their language, where "different meaning" is untrue.

        Columns language, position, first_position, sentence; one row per repetition.
        """
        rows = []
        for language, row in self.sentences.items():
            first: dict[str, int] = {}
            for position, sentence in enumerate(row):
                if first.setdefault(sentence, position) != position:
                    rows.append((language, position, first[sentence], sentence))
        return pd.DataFrame(rows, columns=["language", "position", "first_position", "sentence"])

    def text_hash(self, language: str) -> str:
        """SHA-256 of the sentences as a file (`files.sentences_hash`), as by ``sha256sum``."""
        return sentences_hash(self.select([language]).sentences.popitem()[1])


def load(
    name: str | Path,
    languages: Iterable[str] | None = None,
    *,
    path: str | Path | None = None,
    drop_duplicates: bool = False,
) -> ParallelCorpus:
    """Load and check parallel text.

    Parameters
    ----------
    name : a corpus of the table at the top of this module, or a folder with one text file a
        language, named by a tag that `languages.parse_tag` reads (``en.txt``, ``eng_Latn``,
        ``aai_Latn.devtest``; one extension throughout), in a layout of `folders`. Of two names of
        one language, such as ``est`` and ``ekk``, ask for one by this.
    languages : codes or tags to load, in the order wanted; None for all there are.
    path : a local copy of a corpus that is downloaded otherwise: a folder with its files under
        their own names, at any depth, or an archive of it. A CorpusWarning tells where its text
        differs from the one on record.
    drop_duplicates : leave out, in all languages, the positions at which one of them repeats an
        earlier sentence; otherwise a CorpusWarning counts them. What is measured language by
        language (`coverage`) does better without: a repeat then costs its own language alone.

    Raises
    ------
    TextError (a ValueError), in a sentence, for text that is not that of all languages line by
    line; FileNotFoundError for a folder that does not exist, DownloadError (one too) without a
    network.
    """
    if not isinstance(name, str | Path) or not str(name):
        raise TextError(f"{name!r} is no corpus: give one of {', '.join(ORIGINS)}, or a folder.")
    if str(name) in ORIGINS:
        corpus, notes = _load_known(str(name), languages, Path(path) if path else None)
    elif path:
        raise ValueError(f"path= is for a copy of {', '.join(ORIGINS)}; give a folder as the name.")
    elif Path(name).is_dir():
        read, layout = read_folder(Path(name), languages)
        about = "as stated by its owner", f"{Path(name)} ({layout})"
        corpus, notes = _assembled(Path(name).name, read, *about), read.notes
    else:
        raise FileNotFoundError(
            f"There is no corpus and no folder {str(name)!r}; give a folder with one text file a "
            f"language, or one of {', '.join(ORIGINS)}."
        )
    repeats = corpus.duplicates()
    if drop_duplicates:
        corpus = corpus.drop(repeats["position"])
    elif len(repeats):
        notes = (*notes, _repeated(corpus, repeats))
    for note in notes:
        warnings.warn(f"{corpus.name}: {note}", CorpusWarning, stacklevel=2)
    if len(corpus) < 2:
        left = "without the repeated ones" if drop_duplicates and len(repeats) else "in all"
        raise TextError(
            f"{corpus.name} has {len(corpus)} sentences {left}; at least two are needed, or no "
            "sentence has another meaning to be told from."
        )
    if str(name) in ORIGINS and ORIGINS[str(name)].shipped:
        return replace(corpus, stock=_stock(str(name), drop_duplicates))
    return corpus


@lru_cache(maxsize=8)
def _stock(name: str, drop_duplicates: bool) -> tuple[str, ...]:
    """The ids that a shipped corpus has in all its languages, without those that one repeats."""
    whole, _ = _load_known(name, None, None)
    return whole.drop(whole.duplicates()["position"]).ids if drop_duplicates else whole.ids


def documents(corpus: ParallelCorpus) -> tuple[str, ...]:
    """The document of each position, by its id; where ids name none, each position is its own."""
    return tuple(name.rsplit(":", 1)[0] for name in corpus.ids)


def tags(name: str) -> dict[str, str]:
    """What a corpus of the table at the top calls each of its languages, by the code used here.

    ``tags("flores200-100")["zh"]`` is "zho_Hans". Raises FileNotFoundError for any other name.
    """
    if name not in ORIGINS:
        raise FileNotFoundError(
            f"There is no corpus {name!r}; there is {', '.join(ORIGINS)}, and a folder has no tags."
        )
    return _tags(name, origins.available(name), name)


def _tags(name: str, there: origins.Available, where: str) -> dict[str, str]:
    chosen = {code: tag for code, tag in origins.tags_of(name).items() if tag in there.tags}
    return keys_of(there.tags, chosen, where)


def _repeated(corpus: ParallelCorpus, repeats: pd.DataFrame) -> str:
    """What to say of sentences that come again."""
    counts, first = Counter(repeats["language"]), repeats.iloc[0]
    here, before = (
        f"line {position + 1}" if (id_ := corpus.ids[position]) == str(position + 1) else id_
        for position in (first["position"], first["first_position"])
    )
    return (
        f"{len(repeats)} sentences at {repeats['position'].nunique()} of {len(corpus)} positions "
        f"repeat an earlier one of their language (first: {first['language']}, {here} repeats "
        f"{before}; in all: {', '.join(f'{code} {count}' for code, count in counts.items())}) and "
        "so do not differ in meaning; drop_duplicates=True leaves these positions out."
    )


def _assembled(name: str, read: origins.CorpusTexts, licence: str, source: str) -> ParallelCorpus:
    """A corpus from what was read, if all files have as many lines."""
    sizes = {read.files[key]: len(text) for key, text in read.texts.items()}
    if read.segments:
        sizes[read.extra] = len(next(iter(read.segments.values())))
    n, agreeing = Counter(sizes.values()).most_common(1)[0]
    if agreeing < len(sizes):
        odd = ", ".join(f"{file} has {size}" for file, size in sizes.items() if size != n)
        like = next(file for file, size in sizes.items() if size == n)
        raise TextError(
            f"{name}: unequal numbers of lines: {odd}, but {like} has {n} (as {agreeing} of "
            f"{len(sizes)} files); line n must be the same sentence in every file."
        )
    ids = read.segments.get("id") or tuple(str(line) for line in range(1, n + 1))
    domains = read.segments.get("domain") or ("",) * n
    return ParallelCorpus(name, read.texts, ids, domains, licence, source)


def _load_known(
    name: str, languages: Iterable[str] | None, path: Path | None
) -> tuple[ParallelCorpus, tuple[str, ...]]:
    """A corpus of `ORIGINS` and what to warn with."""
    origin, there = ORIGINS[name], origins.available(name, path)
    where = f"{name} in {path}" if path else name
    keys = _tags(name, there, where)
    keys = {key: keys[key] for key in resolve(languages, keys, where)}
    read = origins.fetch_texts(name, keys, there)
    return _assembled(name, read, origin.licence, origin.source), read.notes
