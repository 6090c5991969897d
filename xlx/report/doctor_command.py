"""``xlx doctor``: how a model, a text and files of scores will be read, before hours are spent."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations

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

#: Sentences that are tokenised of a language and of all; those that the model reads, in how many.
_TOKENISED, _OF_ALL, _READ, _READ_IN = 100, 5_000, 20, 2
Check = tuple[bool, str]  # whether all is as one may think, and what there is


@dataclass(kw_only=True)
class Doctor(options.TextCommand):
    """How a model, a text and files of scores will be read, before hours are spent.

    One line per check: ok, note (not read, or not as one may think) or problem; leaves with 1 if
    there is a problem, else with 0.
    """

    model: str = options.MODEL

    def run(self) -> int:
        """Print the checks; 1 where one is a problem."""
        problems = 0
        for checks in (self._model_and_text(), self._tasks()):
            try:
                for well, line in checks:
                    print(f"{'ok' if well else 'note':8}{line}", flush=True)
            except (ValueError, OSError) as error:
                print(f"problem {error}", flush=True)
                problems = 1
        return problems

    def _model_and_text(self) -> Iterator[Check]:
        """What is made of the folder; what is read of the text; layers without scores."""
        options.tell_downloads([self.model])
        model = inputs.reported_model(self.model, **self.how)
        label, folder, _ = find(self.model)
        encoder, declared = loading.load(model.name), own_vector(label, folder)
        read_as, named = type(encoder.model).__name__, encoder.model.config.architectures or []
        kin = all(name[:2].lower() == read_as[:2].lower() for name in named)
        names = ", ".join(named) or "none"
        yield kin, f"architecture: config.json names {names}, read as {read_as}"
        yield True, f"kind: {encoder.kind}, {encoder.n_layers} layers × {encoder.dim}"
        where = "by kind of model"
        if declared:
            where = "modules.json" if declared.whole else "1_Pooling"
        yield not (declared and declared.problem), f"pooling: {model.vector} (found: {where})"
        added = encoder.tokenizer.convert_ids_to_tokens(encoder.tokenizer("")["input_ids"])
        yield True, f"special tokens: the tokenizer adds {' '.join(added) or 'none'}"
        size = folders.weight_bytes(model_files(label, folder), encoder.dtype.itemsize) / 1e9
        free = (folders.free_bytes(encoder.device) or np.nan) / 1e9
        yield True, f"memory: {size:.2f} GB of weights in {encoder.precision}, {free:.1f} GB left"
        corpus, notes = inputs.reported_text(self.text, self.codes, seed=None)
        n, many = len(corpus), len(corpus.languages)
        yield True, f"text: {n} sentences of {corpus.name}, {many} languages: {corpus.source}"
        yield from ((False, f"text: {note}") for note in notes)
        reader = encoder.reader(model.pooling)
        yield from _text_as_read(reader, corpus)
        how = {"pooling": model.pooling, "special_tokens": model.special_tokens}
        vectors = {
            code: states.embed(reader, corpus.sentences[code][:_READ], **how).states
            for code in corpus.languages[:_READ_IN]
        }
        empty = [np.isnan(x).all(axis=(1, 2)) for x in alignment.centred(vectors).values()]
        lost = named_first(np.flatnonzero(np.any(empty, axis=0)))
        yield not lost, f"layers where nothing is left without a language's mean: {lost or 'none'}"

    def _tasks(self) -> Iterator[Check]:
        """What the files of scores hold, read together; which do not count; of which model."""
        if not self.tasks:
            return
        scores = downstream.read_tasks(self.files)
        for task, rows in scores.groupby("task", sort=False):
            n, read = rows["language"].nunique(), rows["file"].nunique()
            yield True, f"scores: {task} in {n} languages, of {read} files"
        there = downstream.score_files(self.files)
        if unread := [x.name for x in there if str(x) not in {*scores["file"]}]:
            why = "none has a score of a task that is there in two languages or more"
            yield False, f"scores: {named_first(unread)} not counted: {why}"
        n = len(downstream.of_models(scores, [self.model]))
        yield True, f"scores: {n} are of {self.model}"


def _unmarked(text: str) -> str:
    marked = unicodedata.normalize("NFD", text)
    return "".join(x for x in marked if unicodedata.category(x) != "Mn")


def _letters(text: str) -> str:
    """What is visible of a text, without spaces; canonical equivalents are one (NFC)."""
    return unicodedata.normalize("NFC", "".join(filter(files.visible, text)))


#: What a tokenizer may do to a text, and all that it may do at once, the least first.
_CHANGES: dict[str, Callable[[str], str]] = {
    "normalised": partial(unicodedata.normalize, "NFKC"),
    "read in lower case": str.lower,
    "read without accents and marks": _unmarked,
}
_AT_ONCE = [at_once for n in range(4) for at_once in combinations(_CHANGES, n)]


def alterations(sentence: str, decoded: str) -> dict[str, set[str]]:
    """What a tokenizer did → to which characters of a sentence, by what its tokens decode to.

    Spaces, invisible characters and the choice between canonical equivalents do not count.
    """
    written, read = _letters(sentence), _letters(decoded)
    for at_once in _AT_ONCE:
        if _letters(reduce(lambda x, change: _CHANGES[change](x), at_once, written)) == read:
            return {x: {y for y in written if _letters(_CHANGES[x](y)) != y} for x in at_once}
    return {"with characters lost": {*written} - {*read}}


def _text_as_read(reader: loading.Encoder, corpus: ParallelCorpus) -> Iterator[Check]:
    """What the tokenizer makes of the text: signs that it normalises; languages read otherwise."""
    many = len(corpus.languages)
    some = max(_READ, min(_TOKENISED, _OF_ALL // many))
    normalised, signs, notes = [], set(), {}
    for code, sentences in corpus.sentences.items():
        shares, usual = _as_read(reader, sentences[:some])
        normalised += [code] * bool(usual)
        signs |= usual
        if parts := [f"{x:.0%} of {what}" for what, x in shares.items() if x > ILLEGIBLE]:
            notes[code] = ", ".join(parts)
    if normalised:
        where = named_first(normalised)
        yield True, f"text: some signs are normalised in {where}: {_shown(signs)}"
    most = f"at most {ILLEGIBLE:.0%} of tokens unknown, of sentences cut or altered"
    yield not notes, f"text: {many - len(notes)} of {many} languages are read as written ({most})"
    yield from ((False, f"text in {code}: {note}") for code, note in notes.items())


def _as_read(
    reader: loading.Encoder, sentences: Sequence[str]
) -> tuple[dict[str, float], set[str]]:
    """Shares of tokens and sentences by what befell them; which signs were only normalised."""
    words, limit, n = reader.tokenizer, reader.limit(None), len(sentences)
    ids = states.tokenise(words, sentences, limit=None, add_special_tokens=False)[0]["input_ids"]
    unknown = [row.count(words.unk_token_id) for row in ids]
    room = limit - words.num_special_tokens_to_add() if limit else np.inf
    shares = {
        "tokens unknown": sum(unknown) / max(1, sum(map(len, ids))),
        "sentences cut": sum(len(row) > room for row in ids) / n,
    }
    times, signs = Counter(), defaultdict(set)
    backend = getattr(words, "backend_tokenizer", None)
    if backend is None or backend.decoder is not None:  # else no text can be made of tokens
        decoded = words.batch_decode(ids, clean_up_tokenization_spaces=False)
        for sentence, text, missing in zip(sentences, decoded, unknown, strict=True):
            # What is missing where a token is unknown is a part of it.
            for what, characters in () if missing else alterations(sentence, text).items():
                times[what] += 1
                signs[what] |= characters
    usual = signs.pop("normalised", set())
    shares |= {f"sentences {what} ({_shown(x)})": times[what] / n for what, x in signs.items()}
    return shares, usual


def _shown(signs: Iterable[str]) -> str:
    """Characters as text, the first of many; those that cannot stand alone by their codes."""
    return named_first(
        x if x.isprintable() and unicodedata.category(x)[0] != "M" else f"U+{ord(x):04X}"
        for x in sorted(signs)
    )
