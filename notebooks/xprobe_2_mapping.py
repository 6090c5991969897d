"""Encoders mapped across languages, and the probing tasks that SentEval has released."""

import filecmp
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from xlx.measures.sentence_tasks import ProbingTask, TaskPart
from xlx.results import paths
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.text.files import decode
from xlx.text.languages import lowered
from xprobe import encoders, probing
from xprobe.encoders import Inference, Question, Recipe, Sizes, Translations
from xprobe.probing import Subject
from xprobe.word_spaces import Lookup, ParallelText, Words

#: Names of the tasks' files in SentEval.
RELEASED: dict[str, str] = {
    "SentLen": "sentence_length",
    "WC": "word_content",
    "TreeDepth": "tree_depth",
    "BiShift": "bigram_shift",
    "SubjNum": "subj_number",
    "ObjNum": "obj_number",
    "CoordInv": "coordination_inversion",
    "SOMO": "odd_man_out",
    "Tense": "past_present",
}
_PUBLIC_PARTS = {"tr": "train", "va": "validation", "te": "test"}


def _lines(path: Path, *what: str) -> Iterator[list[str]]:
    """The cells of each line of a file, and its name and number; ValueError for another line."""
    for number, line in enumerate(decode(path.read_bytes(), str(path)), 1):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != len(what) or not all(cells):
            raise ValueError(f"{path}, line {number}: not {', '.join(what)}, parted by tabs")
        yield [*cells, f"{path.name}:{number}"]


def read_senteval(path: str | Path, name: str, language: str) -> ProbingTask:
    """A probing task as SentEval or X-Probe has released it, in small letters, split at spaces.

    ``path`` is a file of SentEval, lines ``part<TAB>label<TAB>sentence`` of the parts ``tr``,
    ``va`` and ``te``; or a folder of X-Probe with ``va.txt`` and ``te.txt``, ``sentence<TAB>label``
    a line. Its ``tr.txt`` is not released: without it, all of ``va`` but each tenth line trains.
    Classes are the labels in order, numbers by value; a base is the file and line, as what a
    sentence was made from is not said.

    Raises FileNotFoundError where a file is missing, ValueError for a malformed line (named), for
    a part without sentences, a single class.
    """
    path = Path(path)
    rows: dict[str, list[Sequence[str]]] = {part: [] for part in _PUBLIC_PARTS}
    if path.is_dir():
        for part in ("te", "va", *["tr"] * (path / "tr.txt").is_file()):
            rows[part] = [*_lines(path / f"{part}.txt", "sentence", "label")]
        if not (path / "tr.txt").is_file():
            own = rows["va"]
            rows |= {"tr": [x for i, x in enumerate(own) if i % 10], "va": own[::10]}
    else:
        for part, label, sentence, place in _lines(path, "part", "label", "sentence"):
            if part not in rows:
                where = place.replace(":", ", line ")
                raise ValueError(f"{where}: the part {part} is none of {', '.join(rows)}")
            rows[part].append((sentence, label, place))
    labels = {label for part in rows.values() for _, label, _ in part}
    if len(labels) < 2 or not all(rows.values()):
        raise ValueError(f"{path} has not the parts tr, va and te, with two labels or more")
    numbers = all(re.fullmatch(r"-?[0-9]+", own) for own in labels)
    classes = {x: i for i, x in enumerate(sorted(labels, key=int if numbers else None))}
    parts = {}
    for short, part in _PUBLIC_PARTS.items():
        sentences, own, bases = zip(*rows[short], strict=True)
        tokens = tuple(tuple(lowered(x, language).split()) for x in sentences)
        parts[part] = TaskPart(tokens, np.array([classes[x] for x in own], np.int64), bases)
    return ProbingTask(name, language, tuple(classes), **parts)


def read_released(folder: str | Path, language: str) -> list[ProbingTask]:
    """The released tasks of a language: a folder with a file, or a folder, of `RELEASED` for each.

    X-Probe's TreeDepth has one file twice, as ``va`` and ``te``. Such a task cannot be trained
    without ``tr.txt`` on anything but its test, so it is left out.
    """
    folder, tasks = Path(folder), []
    for name, stem in RELEASED.items():
        path = folder / stem if (folder / stem).is_dir() else folder / f"{stem}.txt"
        te, va, tr = (path / f"{part}.txt" for part in ("te", "va", "tr"))
        if path.is_file() or tr.is_file() or not filecmp.cmp(te, va, shallow=False):
            tasks.append(read_senteval(path, name, language))
    return tasks


@dataclass(frozen=True, eq=False)
class MappingStudy:
    """Encoders of English, mapped to ``languages``; paths are below the repository.

    Attributes
    ----------
    encoders : of `encoders.ENCODERS`; ``sizes`` of theirs, as `Sizes` has them.
    word_vectors, dictionaries : language → file; others are counted, and those that are shipped.
    parallel : name in tables → source or folder of translations.
    first, second : language → the corpus to map by (of ``parallel``), and another one to map by as
        well.
    n_parallel, longest : translations of a corpus, and words of a translation, at most.
    nli_train, nli_path : English pairs to learn from, and the folder of public files, if any.
    epochs, map_epochs, lam : of inference and of mapping, at most; λ of the alignment loss.
    training : ``batch_size``, ``learning_rate`` and ``seed`` of both.
    """

    languages: Sequence[str]
    encoders: Sequence[str]
    sizes: Mapping[str, Any] | None = None
    word_vectors: Mapping[str, str] = field(default_factory=dict)
    dictionaries: Mapping[str, str] = field(default_factory=dict)
    parallel: Mapping[str, str] = field(default_factory=lambda: {"NTREX": "ntrex"})
    first: Mapping[str, str] = field(default_factory=dict)
    second: Mapping[str, str] = field(default_factory=dict)
    n_parallel: int = 1000
    longest: int = 40
    nli_train: str = "xnli-dev"
    nli_path: str | None = None
    epochs: int = 5
    map_epochs: int = 4
    lam: float = 0.25
    training: Mapping[str, Any] = field(default_factory=dict)

    @property
    def codes(self) -> list[str]:
        """English and the languages."""
        return ["en", *self.languages]

    @cached_property
    def size(self) -> Sizes:
        """Of the encoders; small ones where none are given."""
        return encoders.MINI if self.sizes is None else Sizes(**self.sizes)

    # --- words ------------------------------------------------------------------------------------

    @cached_property
    def sources(self) -> dict[str, str]:
        """Name of a corpus → source of the text, or folder."""
        folders = {name: paths.ROOT / source for name, source in self.parallel.items()}
        return {
            name: str(folders[name]) if folders[name].is_dir() else source
            for name, source in self.parallel.items()
        }

    @cached_property
    def lookups(self) -> dict[str, Lookup]:
        """Words of each language in the space of the English ones."""
        files = {code: paths.ROOT / file for code, file in self.word_vectors.items()}
        words = {code: Words(code, files.get(code), self.size.words) for code in self.codes}
        others = {x: Lookup(words[x], words["en"], self.dictionary(x)) for x in self.languages}
        return {"en": Lookup(words["en"])} | others

    def dictionary(self, code: str) -> Path:
        """A file of words of a language and of English that translate one another."""
        if own := self.dictionaries.get(code):
            return paths.ROOT / own
        return paths.DATA / "dictionaries" / f"{code}-en.txt"

    # --- encoders ---------------------------------------------------------------------------------

    def _pairs(self, code: str, part: str, **options: Any) -> Examples:
        if self.nli_path:
            options["path"] = paths.ROOT / self.nli_path
        return labelled.load_labelled("NLI", code, part, **options)

    @cached_property
    def learnt(self) -> Inference:
        """English pairs to learn from: those of shipped ones that no language is stopped by."""
        pairs = self._pairs("en", "train", source=self.nli_train)
        if self.nli_path is None:
            apart = set(self._pairs("en", "train").ids)
            pairs = pairs.at([i for i, name in enumerate(pairs.ids) if name not in apart])
        return Inference((pairs,), self.lookups["en"])

    @cached_property
    def held_out(self) -> dict[str, Inference]:
        """By language: pairs that training is stopped by."""
        parts = ["validation"] if self.nli_path else ["validation", "train"]
        return {
            code: Inference(tuple(self._pairs(code, part) for part in parts), self.lookups[code])
            for code in self.codes
        }

    @cached_property
    def asked(self) -> dict[str, Inference]:
        """By language: pairs that encoders are tested on."""
        return {x: Inference((self._pairs(x, "test"),), self.lookups[x]) for x in self.codes}

    @cached_property
    def english(self) -> dict[str, Recipe]:
        """By encoder: that of English."""
        options = {"epochs": self.epochs, **self.training}
        data = self.learnt, self.held_out["en"]
        return {x: encoders.inferred(x, self.size, *data, **options) for x in self.encoders}

    @cached_property
    def settings(self) -> dict[str, tuple[str, str]]:
        """Name in tables → language and corpus it is mapped by; English is mapped to itself."""
        usual = next(iter(self.parallel))
        settings = {"en": ("en", self.first.get(self.languages[0], usual))}
        settings |= {code: (code, self.first.get(code, usual)) for code in self.languages}
        second = {x: corpus for x, corpus in self.second.items() if x in self.languages}
        return settings | {f"{x}-{corpus}": (x, corpus) for x, corpus in second.items()}

    @cached_property
    def translations(self) -> dict[str, ParallelText]:
        """By setting: the translations it is mapped by."""
        kept = {"limit": self.n_parallel, "longest": self.longest, "most": self.n_parallel}
        return {
            setting: ParallelText(
                "en", self.languages[0] if code == "en" else code, (self.sources[corpus],), **kept
            )
            for setting, (code, corpus) in self.settings.items()
        }

    @cached_property
    def mapped(self) -> dict[tuple[str, str], Recipe]:
        """By encoder and setting: the mapped encoder."""
        return {
            (name, setting): self._mapped(name, code, self.translations[setting], self.map_epochs)
            for setting, (code, _) in self.settings.items()
            for name in self.encoders
        }

    def _mapped(self, name: str, code: str, lines: ParallelText, epochs: int) -> Recipe:
        words = self.lookups["en"], None if code == "en" else self.lookups[code]
        options = {"lam": self.lam, "max_epochs": epochs, **self.training}
        return encoders.mapped(self.english[name], lines, *words, self.held_out[code], **options)

    def inference(self) -> pd.DataFrame:
        """Accuracy of inference (Table 3): ``encoder``, ``language``, ``accuracy``.

        "en" before mapping, "en-mapped" after English was mapped to English.
        """
        asks = {}
        for name in self.encoders:
            asks[encoders.ENCODER_NAMES[name], "en"] = self.english[name], self.asked["en"]
            for setting, (code, _) in self.settings.items():
                made = self.mapped[name, setting], self.asked[code]
                asks[encoders.ENCODER_NAMES[name], shown_setting(setting)] = made
        accuracies = encoders.inference_accuracies(list(asks.values()))
        table = pd.DataFrame(list(asks), columns=["encoder", "language"])
        return table.assign(accuracy=accuracies)

    # --- is it the map? ---------------------------------------------------------------------------

    def retrievals(
        self, n_retrieved: int, all_lines: Sequence[str], all_epochs: int
    ) -> dict[tuple[str, str, str], Question]:
        """By encoder, condition and language: translations to find, which no encoder was mapped by.

        Conditions: "no encoder" (the mean of words), "not mapped" (the English encoder on mapped
        words), "mapped", and for the encoders of ``all_lines`` "mapped, all lines": by all other
        lines of all corpora, for ``all_epochs`` at most.
        """
        asks = {}
        for code in self.languages:
            corpus = self.settings[code][1]
            options = {"limit": 2 * self.n_parallel, "longest": self.longest}
            lines = ParallelText("en", code, (self.sources[corpus],), **options)
            skip = max(self.n_parallel, len(lines) - n_retrieved)
            others = [self.sources[name] for name in self.sources if name != corpus]
            whole = ParallelText("en", code, (*others, self.sources[corpus]), **options)
            whole = replace(whole, most=len(whole) - (len(lines) - skip))
            asked = Translations(lines, self.lookups["en"], self.lookups[code], skip)
            asks["mean of words", "no encoder", code] = None, asked
            for name in self.encoders:
                made = {"not mapped": self.english[name], "mapped": self.mapped[name, code]}
                if name in all_lines:
                    made["mapped, all lines"] = self._mapped(name, code, whole, all_epochs)
                for condition, encoder in made.items():
                    asks[name, condition, code] = encoder, asked
        return asks

    # --- what is probed ---------------------------------------------------------------------------

    def trained_subjects(self) -> list[Subject]:
        """English encoders, and each mapped one in its setting."""
        asked = []
        for name in self.encoders:
            asked.append(self.subject(name, "en"))
            for setting, (code, _) in self.settings.items():
                own, shown = self.mapped[name, setting], shown_setting(setting)
                asked.append(probing.of_encoder(own, self.lookups[code], shown, "mapped"))
        return asked

    def subject(self, name: str, language: str) -> Subject:
        """An English encoder before the tasks that go by a name."""
        return probing.of_encoder(self.english[name], self.lookups["en"], language, "trained")


def shown_setting(setting: str) -> str:
    """A setting of mapped encoders as tables call it: English before mapping is "en"."""
    return "en-mapped" if setting == "en" else setting
