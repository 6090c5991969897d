"""Entries of an earlier layout of results as entries of today's; nothing is computed again.

    python data/results/convert.py                 # data/results
    python data/results/convert.py --runs build/runs --cache cache    # what long runs have left

A checkpoint's scores were once one value for all measures (`abx-checkpoint`, `abx-surface`); now
each measure is an entry of the kind `score`. MEXA of centred vectors and of bags of subwords, and
numbers of rivals, were kinds of their own; now they are asks of `coverage`, as answers of models
fine-tuned elsewhere are of `grids`, and probes of topics and across languages of `probes`. What a
function makes of the states of a text is one kind, `states`, with the function's name in the ask.
What X-Probe's encoders answer is one kind, and the dictionaries that were made of translations are
files. This script stays until the last long run that was begun before is in.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from xlx.experiment import scoring
from xlx.results import ledger, paths
from xlx.results.ledger import Ask, Cache, Entry, Ledger
from xlx.results.store import write_whole

#: Kinds of results that are now asks of another.
RENAMED = {"grids-asked": "grids", "topics": "probes", "transfer": "probes"}
#: Kinds of results that are read here alone.
OLD = (
    "abx-checkpoint", "abx-surface", "coverage-centred", "coverage-bag", "coverage-bag-centred",
    "coverage-rivals",
)  # fmt: skip
#: Kinds that may ask for a dictionary as it was once named.
WITH_DICTIONARY = ("xprobe-nli", "xprobe-retrieval", "xprobe-maps", "xprobe-cells")
#: Kinds of old → the functions whose results they had.
FUNCTIONS = {
    "abx-shuffled": "shuffled_scores", "abx-sampled": "sampled_runs", "abx-errors": "pair_errors",
    "abx-controls": "held_constant", "abx-separation": "layer_separations",
    "abx-neighbours": "nearest", "neighbourhoods": "placed", "coverage-wrong-pairs": "wrong_pairs",
    "coverage-pivots": "against_all", "predictors": "frozen_scores",
}  # fmt: skip


def converted(entry: Entry) -> Iterator[Entry]:
    """An entry for each measure of an old one, or one under its new ask; any other as it is."""
    about = json.loads(entry.text)
    if entry.kind in FUNCTIONS:
        about["function"] = FUNCTIONS[entry.kind]
        yield renamed(entry, Ask("states", about, entry.version))
    elif entry.kind in WITH_DICTIONARY:
        yield of_xprobe(entry)
    elif entry.kind in RENAMED:
        yield renamed(entry, Ask(RENAMED[entry.kind], about, entry.version))
    elif entry.kind.startswith("coverage"):
        yield from of_coverage(entry, about)
    elif entry.kind in OLD:
        yield from of_scores(entry, about)
    else:
        yield entry


def renamed(entry: Entry, ask: Ask) -> Entry:
    """The same value, of another ask."""
    return replace(entry, kind=ask.kind, identity=ask.identity, version=ask.version, text=ask.text)


def of_coverage(entry: Entry, about: dict) -> Iterator[Entry]:
    """MEXA of centred vectors and of bags, and rivals, as asks of `coverage`.

    Nothing for a bag without the mean number of subwords, which is kept with it now.
    """
    if entry.kind == "coverage-rivals":
        centred = about.pop("centred")
        about |= {"rivals": True} | ({"space": "centred"} if centred else {})
    if "bag" in entry.kind or "of" in about.get("states", {}):
        if "subwords" not in entry.value:
            return
        of = about.get("states", about)
        model = of.get("bag of", of.get("model"))
        about["states"] = {"of": scoring.BAG, "bag of": model, "max_length": of["max_length"]}
        about = {key: about[key] for key in ("states", "pivot", "text", "space") if key in about}
    about.setdefault("alternatives", False)
    about |= {"space": "centred"} if "centred" in entry.kind else {}
    yield renamed(entry, Ask("coverage", about, 2))


def of_scores(entry: Entry, about: dict) -> Iterator[Entry]:
    """Each measure of the scores of a checkpoint."""
    if entry.kind == "abx-surface":
        about.setdefault("space", "raw")
    tasks = [part.partition(" ")[2] for part in entry.value
             if part.partition(" ")[0] in ("won", "score", "share")]  # fmt: skip
    for task in tasks:
        value = {"cut": entry.value["cut"]}
        for part, array in entry.value.items():
            if part.endswith(f" {task}"):
                kept = part.removesuffix(f" {task}")
                if kept in ("won", "score", "share", "made") or len(kept.split()) == 3:
                    value[kept] = array
        ask = Ask(scoring.SCORE.name, about | {"measure": [task, 1]}, scoring.SCORE.version)
        seconds = round(float(entry.made.get("seconds") or 0) / len(tasks), 3)
        yield Entry(
            ask.kind, ask.identity, ask.version, ask.text, value,
            {**entry.made, "seconds": seconds}, entry.notebooks,
        )  # fmt: skip


def with_files(about: object) -> object:
    """What is asked, a dictionary named by the file that it is now."""
    if isinstance(about, list):
        return [with_files(part) for part in about]
    if not isinstance(about, dict):
        return about
    if set(about) == {"translations", "n", "min_count"}:
        code = about["translations"]["languages"][0]
        file = paths.DATA / "dictionaries" / f"{code}-en.txt"
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return {name: with_files(part) for name, part in about.items()}


def of_xprobe(entry: Entry) -> Entry:
    """An entry of X-Probe under today's kind and ask."""
    about, kind, value = with_files(json.loads(entry.text)), entry.kind, entry.value
    if kind == "xprobe-retrieval":
        about = {"encoder": about.pop("encoder"), "asked": about}
    if kind in ("xprobe-nli", "xprobe-retrieval"):
        kind = "xprobe-answers"
    if kind == "xprobe-maps":
        code = about["lookup"]["about"]["vectors"]["about"]["language"]
        value = value.assign(origin=f"{code}-en.txt")
    ask = Ask(kind, about, entry.version)
    return replace(entry, kind=kind, identity=ask.identity, text=ask.text, value=value)


def convert_ledger(root: Path) -> int:
    """Rewrite a ledger; how many entries there are afterwards."""
    entries, lens_of = {}, {}
    for file in Ledger(root).files():
        table = ledger.read_entries(file)
        for row in range(table.num_rows if table is not None else 0):
            for entry in converted(ledger.from_arrow(table, row)):
                before = entries.get(entry.identity)
                askers = (*(before.notebooks if before else ()), *entry.notebooks)
                merged = replace(entry, notebooks=tuple(dict.fromkeys(askers)))
                entries[entry.identity] = merged
                lens_of.setdefault(entry.identity, file.parent.name)
    ledger.write_ledger(root, entries.values(), lens_of)
    return len(entries)


def convert_runs(journals: Path, cache: Path) -> int:
    """Rewrite the journals of long runs and what they left in a cache; entries made."""
    kept, made = Cache(cache / "results"), 0
    for journal in sorted(journals.glob("asks/*.jsonl")):
        lines = []
        for line in map(json.loads, journal.read_text(encoding="utf-8").splitlines()):
            if line["kind"] not in (*OLD, *FUNCTIONS):
                lines.append(line)
                continue
            path = kept.root / line["kind"] / line["identity"][:2]
            table = ledger.read_entries(path / f"{line['identity'][2:]}.arrow")
            if table is None:
                lines.append(line)
                continue
            for entry in converted(ledger.from_arrow(table, 0)):
                kept.put(Ask(entry.kind, json.loads(entry.text), entry.version), entry.value,
                         entry.made)  # fmt: skip
                lines.append({**line, "kind": entry.kind, "identity": entry.identity})
                made += 1
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write_whole(journal, text.encode())
    return made


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=Path, help="folder of the journals of long runs")
    parser.add_argument("--cache", type=Path, default=paths.CACHE)
    options = parser.parse_args()
    if options.runs:
        print(f"{convert_runs(options.runs, options.cache)} entries made of what runs have left")
    else:
        print(f"{paths.RESULTS}: {convert_ledger(paths.RESULTS)} entries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
