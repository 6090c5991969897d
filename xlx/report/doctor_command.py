"""xlx doctor: how a model, a text and files of scores will be read, before hours are spent.

One line per check: ok, note (not read, or not as one may think) or problem; leaves with 1 if there
is a problem, else with 0.
"""

import argparse
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain, combinations
from pathlib import Path

import numpy as np

from xlx.measures import alignment
from xlx.report import inputs, options
from xlx.report.sentences import named_first
from xlx.results.checks import ILLEGIBLE
from xlx.subjects import folders, loading, states
from xlx.subjects.identity import find, model_files
from xlx.subjects.pooling import own_vector
from xlx.text import downstream, files
from xlx.text.parallel import ParallelCorpus

_OPTIONS = ("--text", "--languages", "--tasks", *options.AS_ASKED)
#: Sentences that are tokenised of a language and of all; those that the model reads, in how many.
_TOKENISED, _OF_ALL, _READ, _READ_IN = 100, 5_000, 20, 2
Check = tuple[bool, str]  # whether all is as one may think, and what was found
#: Invisible, but Persian or Hindi is written with them.
_JOINERS = "\u200c\u200d"


def add_doctor(commands: argparse.Action) -> None:
    """The command of a command line."""
    options.command(commands, examine, "doctor", __doc__, _OPTIONS, text="flores200-100")


def examine(given: argparse.Namespace) -> int:
    """Print the checks; 1 where one is a problem."""
    problems = 0
    for checks in (_model_and_text(given), _tasks(given)):
        try:
            for well, said in checks:
                print(f"{'ok' if well else 'note':8}{said}", flush=True)
        except (ValueError, OSError) as error:
            print(f"problem {error}", flush=True)
            problems += 1
    return int(problems > 0)


def _model_and_text(given: argparse.Namespace) -> Iterator[Check]:
    """What is made of the folder; what is read of the text; layers without scores."""
    model, (label, folder, _) = options.asked_model(given), find(given.model)
    encoder, own = loading.load(model.name), own_vector(label, folder)
    ours, named = type(encoder.model).__name__, encoder.model.config.architectures or []
    kin = all(name[:2].lower() == ours[:2].lower() for name in named)
    yield kin, f"architecture: config.json names {', '.join(named) or 'none'}, read as {ours}"
    yield True, f"kind: {encoder.kind}, {encoder.n_layers} layers × {encoder.dim}"
    where = "modules.json" if own and own.whole else "1_Pooling" if own else "by kind of model"
    yield not (own and own.problem), f"pooling: {model.vector} (found: {where})"
    ids = encoder.tokenizer("a", return_special_tokens_mask=True)
    added = np.array(ids["input_ids"])[np.array(ids["special_tokens_mask"], dtype=bool)]
    added = " ".join(encoder.tokenizer.convert_ids_to_tokens(added.tolist())) or "none"
    yield True, f"special tokens: the tokenizer adds {added}"
    needed = folders.weight_bytes(model_files(label, folder), encoder.dtype.itemsize) / 1e9
    free = (folders.free_bytes(encoder.device) or np.nan) / 1e9
    yield True, f"memory: {needed:.2f} GB of weights in {encoder.precision}, {free:.1f} GB left"
    corpus, notes = inputs.reported_text(given.text, given.languages, seed=None)
    n, many = len(corpus), len(corpus.languages)
    yield True, f"text: {n} sentences of {corpus.name}, {many} languages: {corpus.source}"
    yield from ((False, f"text: {note}") for note in notes)
    reader = encoder.reader(model.pooling)
    yield from _text_as_read(reader, corpus)
    how = {"pooling": model.pooling, "special_tokens": model.special_tokens}
    read = {
        code: states.embed(reader, corpus.sentences[code][:_READ], **how).states
        for code in corpus.languages[:_READ_IN]
    }
    empty = [np.isnan(x).all(axis=(1, 2)) for x in alignment.centred(read).values()]
    lost = named_first(np.flatnonzero(np.any(empty, axis=0)))
    yield not lost, f"layers where nothing is left without a language's mean: {lost or 'none'}"


def _unmarked(text: str) -> str:
    marked = unicodedata.normalize("NFD", text)
    letters = "".join(x for x in marked if unicodedata.category(x) != "Mn")
    return unicodedata.normalize("NFC", letters)


#: What a tokenizer may do to a character, and all that it may do at once, the least first.
_CHANGES: dict[str, Callable[[str], str]] = {
    "normalised": partial(unicodedata.normalize, "NFKC"),
    "read in lower case": str.lower,
    "read without accents and marks": _unmarked,
}
_AT_ONCE = [at_once for n in (1, 2, 3) for at_once in combinations(_CHANGES, n)]
_LOST = "with characters lost"


def alterations(sentence: str, decoded: str, *, unknown: bool = False) -> dict[str, list[str]]:
    """What a tokenizer did → to which characters of a sentence, by what its tokens decode to.

    Spaces, invisible characters and the choice between canonical equivalents (NFC) do not count.
    Where a token is ``unknown``, what is missing is a part of it and not lost beside.
    """
    there, read = (Counter(unicodedata.normalize("NFC", x)) for x in (sentence, decoded))
    gained, found = {*(read - there), " "}, {}
    for char in there - read:
        at_once: Sequence[str] = ("normalised",) * (char in _JOINERS)
        if files.visible(char):
            at_once = () if unknown else (_LOST,)
            for changes in reversed(_AT_ONCE):
                form = reduce(lambda x, change: _CHANGES[change](x), changes, char)
                if form != char and {*form} <= gained and (form or not unknown):
                    at_once = changes
        for change in at_once:
            found.setdefault(change, []).append(char)
    return found


def _text_as_read(reader: loading.Encoder, corpus: ParallelCorpus) -> Iterator[Check]:
    """What the tokenizer makes of the text: signs that it normalises; languages read otherwise."""
    many = len(corpus.languages)
    some = max(_READ, min(_TOKENISED, _OF_ALL // many))
    usual, told = {}, {}
    for code, sentences in corpus.sentences.items():
        shares, signs = _as_read(reader, sentences[:some])
        usual |= {code: signs} if signs else {}
        if said := [f"{x:.0%} of {what}" for what, x in shares.items() if x > ILLEGIBLE]:
            told[code] = ", ".join(said)
    if usual:
        signs = named_first(map(_shown, sorted({*chain(*usual.values())})))
        yield True, f"text: some signs are normalised in {named_first(usual)}: {signs}"
    most = f"at most {ILLEGIBLE:.0%} of tokens unknown, of sentences cut or altered"
    yield not told, f"text: {many - len(told)} of {many} languages are read as written ({most})"
    yield from ((False, f"text in {code}: {said}") for code, said in told.items())


def _as_read(
    reader: loading.Encoder, sentences: Sequence[str]
) -> tuple[dict[str, float], list[str]]:
    """Shares of tokens and sentences by what befell them; which signs were only normalised."""
    words, limit = reader.tokenizer, reader.limit(None)
    columns, _ = states.tokenise(words, sentences, limit=None, return_special_tokens_mask=True)
    both = zip(columns["input_ids"], columns["special_tokens_mask"], strict=True)
    rows = [[x for x, added in zip(*row, strict=True) if not added] for row in both]
    unknown = [row.count(words.unk_token_id) for row in rows]
    backend, decoded = getattr(words, "backend_tokenizer", None), sentences
    if backend is None or backend.decoder is not None:  # else no text can be made of tokens
        known = [[x for x in row if x != words.unk_token_id] for row in rows]
        decoded = words.batch_decode(known, clean_up_tokenization_spaces=False)
    triples = zip(sentences, decoded, unknown, strict=True)
    found = [alterations(said, read, unknown=n > 0) for said, read, n in triples]
    cut = sum(len(ids) > limit for ids in columns["input_ids"]) if limit else 0
    shares = {
        "tokens unknown": sum(unknown) / max(1, sum(map(len, rows))),
        "sentences cut": cut / len(found),
    }
    signs = {
        change: sorted({sign for one in found for sign in one.get(change, ())})
        for change in (*_CHANGES, _LOST)
    }
    usual = signs.pop("normalised")
    for change, row in signs.items():
        share = sum(change in one for one in found) / len(found)
        shares[f"sentences {change} ({named_first(map(_shown, row))})"] = share
    return shares, usual


def _shown(sign: str) -> str:
    alone = sign.isprintable() and unicodedata.category(sign)[0] != "M"
    return sign if alone else f"U+{ord(sign):04X}"


def _tasks(given: argparse.Namespace) -> Iterator[Check]:
    """What is found in the files of scores, read together; which do not count; of which model."""
    if given.tasks:
        files = [Path(file).resolve() for file in given.tasks]
        scores = downstream.read_tasks(files)
        for task, rows in scores.groupby("task", sort=False):
            n, read = rows["language"].nunique(), rows["file"].nunique()
            yield True, f"scores: {task} in {n} languages, of {read} files"
        unread = [x.name for x in downstream.score_files(files) if str(x) not in {*scores["file"]}]
        if unread:
            why = "none has a score of a task that is there in two languages or more"
            yield False, f"scores: {named_first(unread)} not counted: {why}"
        scores = downstream.of_models(scores, [given.model])
        yield True, f"scores: {len(scores)} are of {given.model}"
