"""xlx doctor: how a model, a text and files of scores will be read, before hours are spent.

A line a check: ok, note (not read, or not as one may think) or problem; leaves with 1 if there is a
problem, else with 0.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xlx.measures import alignment
from xlx.report import inputs, options
from xlx.report.sentences import named_first
from xlx.results.checks import ILLEGIBLE
from xlx.subjects import folders, loading, states
from xlx.subjects.identity import find, model_files
from xlx.subjects.pooling import own_vector
from xlx.text import downstream

_OPTIONS = ("--text", "--languages", "--tasks", *options.AS_ASKED)
#: Sentences of a language that are tokenised, and languages in which the model reads them.
_TOKENISED, _READ = 20, 2
Check = tuple[bool, str]  # whether all is as one may think, and what was found


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
    reader, shares = encoder.reader(model.pooling), {"tokens unknown": {}, "sentences cut": {}}
    for code, sentences in corpus.sentences.items():
        some = sentences[:_TOKENISED]
        columns, cut = states.tokenise(reader.tokenizer, some, limit=reader.limit(None))
        tokens = [token for row in columns["input_ids"] for token in row]
        unknown = tokens.count(reader.tokenizer.unk_token_id) / max(1, len(tokens))
        for by_language, share in zip(
            shares.values(), (unknown, len(cut) / len(some)), strict=True
        ):
            by_language |= {code: share} if share > ILLEGIBLE else {}
    for what, over in shares.items():
        told = [f"{x} {over[x]:.0%}" for x in sorted(over, key=over.get, reverse=True)]
        yield not over, f"{what}: above {ILLEGIBLE:.0%} in {named_first(told) or 'no language'}"
    how = {"pooling": model.pooling, "special_tokens": model.special_tokens}
    read = {code: states.embed(reader, corpus.sentences[code][:_TOKENISED], **how).states
            for code in corpus.languages[:_READ]}  # fmt: skip
    empty = [np.isnan(x).all(axis=(1, 2)) for x in alignment.centred(read).values()]
    lost = named_first(np.flatnonzero(np.any(empty, axis=0)))
    yield not lost, f"layers where nothing is left without a language's mean: {lost or 'none'}"


def _tasks(given: argparse.Namespace) -> Iterator[Check]:
    """Which files of scores count, and whether they are of the model."""
    files = [Path(file).resolve() for file in given.tasks or ()]
    for file in (x for y in files for x in (sorted(y.rglob("*.json")) if y.is_dir() else [y])):
        read = downstream.read_csv if file.suffix == ".csv" else downstream.read_results
        try:
            tasks = read(file).groupby("task", sort=False)["language"].nunique().items()
            told = ", ".join(f"{task} in {n} languages" for task, n in tasks)
            yield True, f"scores: {file.name} counts: {told}"
        except ValueError as error:
            yield False, f"scores: {file.name} does not count: {error}"
    if files:
        scores = downstream.of_models(downstream.read_tasks(files), [given.model])
        yield True, f"scores: {len(scores)} are of {given.model}"
