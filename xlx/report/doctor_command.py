"""``xlx doctor``: how a model, a text and files of scores will be read, before hours are spent."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        strange = encoder.notes or (declared and declared.problem)
        yield not strange, f"pooling: {model.vector} (found: {where})"
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
        empty = [np.isnan(x).all((1, 2)) for x in alignment.centred(vectors).values()]
        lost = named_first(np.flatnonzero(np.any(empty, 0)))
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


def _text_as_read(reader: loading.Encoder, corpus: ParallelCorpus) -> Iterator[Check]:
    """Which languages a tokenizer reads otherwise than they are written, and how."""
    many = len(corpus.languages)
    some = max(_READ, min(_TOKENISED, _OF_ALL // many))
    notes = {}
    for code, sentences in corpus.sentences.items():
        if parts := [*_misread(reader, sentences[:some])]:
            notes[code] = ", ".join(parts)
    most = f"at most {ILLEGIBLE:.0%} of tokens unknown, of sentences cut or altered"
    yield not notes, f"text: {many - len(notes)} of {many} languages are read as written ({most})"
    yield from ((False, f"text in {code}: {note}") for code, note in notes.items())


def _misread(reader: loading.Encoder, sentences: Sequence[str]) -> Iterator[str]:
    """Shares of tokens that are unknown, of sentences that are cut, and of altered ones.

    What is missing where a token is unknown is a part of it, and nothing altered beside. Text that
    the model takes for control tokens is counted, however little it is.
    """
    words, limit, n = reader.tokenizer, reader.limit(None), len(sentences)
    ids = states.tokenise(words, sentences, limit=None, add_special_tokens=False)[0]["input_ids"]
    unknown = [row.count(words.unk_token_id) for row in ids]
    room = limit - words.num_special_tokens_to_add() if limit else np.inf
    shares = {
        "tokens unknown": sum(unknown) / max(1, sum(map(len, ids))),
        "sentences cut": sum(len(row) > room for row in ids) / n,
    }
    backend = getattr(words, "backend_tokenizer", None)
    if backend is None or backend.decoder is not None:  # else no text can be made of tokens
        decoded = words.batch_decode(ids, clean_up_tokenization_spaces=False)
        pairs = zip(map(_letters, sentences), map(_letters, decoded), unknown, strict=True)
        altered = [{*text} - {*read} for text, read, lost in pairs if text != read and not lost]
        signs = named_first(map(_shown, sorted(set().union(*altered))))
        shares[f"sentences altered ({signs})"] = len(altered) / n
    yield from (f"{x:.0%} of {what}" for what, x in shares.items() if x > ILLEGIBLE)
    control = {*words.all_special_ids} - {words.unk_token_id}
    if controlled := sum(not control.isdisjoint(row) for row in ids):
        yield f"control tokens in {controlled} of {n} sentences"


def _letters(text: str) -> str:
    """What is visible of a text in its compatible form, without spaces."""
    return "".join(filter(files.visible, unicodedata.normalize("NFKC", text)))


def _shown(sign: str) -> str:
    alone = sign.isprintable() and unicodedata.category(sign)[0] != "M"
    return sign if alone else f"U+{ord(sign):04X}"
