"""Probing tasks as SentEval and X-Probe release theirs, read from their files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from printed import printed_tables
from xlx.measures.sentence_tasks import PROBING_TASKS, ProbingTask, TaskPart
from xlx.results import checks, paths
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.text.files import decode
from xlx.text.languages import lowered
from xprobe import probing, word_spaces
from xprobe.encoders import (
    ENCODER_NAMES,
    MINI,
    Inference,
    Inferred,
    Mapped,
    Retrieval,
    Sizes,
    Untrained,
    inference_accuracies,
    retrieved,
)
from xprobe.probing import Subject
from xprobe.word_spaces import Lookup, OfFile, OfTranslations, ParallelText

#: Names of the tasks' files or folders in SentEval and X-Probe.
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


def read_senteval(path: str | Path, name: str, language: str) -> ProbingTask:
    """A probing task as SentEval or X-Probe release theirs, in small letters.

    ``path`` is a file of lines ``part<TAB>label<TAB>sentence``, parts ``tr``, ``va`` and ``te``, as
    SentEval has it, or a folder with ``tr.txt``, ``va.txt`` and ``te.txt`` of lines
    ``sentence<TAB>label``, as X-Probe has it, or of the former. Label and sentence may stand in
    either order, the same throughout, with more columns between them, which are passed over: a
    label has no spaces, and of the sentences some have. Sentences are split at spaces. Classes are
    the labels in order, numbers by value; a base is the file and line, as what a sentence was made
    from is not said.

    Raises FileNotFoundError where a file is missing, ValueError for a malformed line (named), where
    it cannot be told which are the labels, for a part without sentences, a single class.
    """
    path = Path(path)
    lines = _lines(path)
    spaced = [any(" " in line[cell] for line in lines) for cell in (1, 2)]
    if spaced[0] == spaced[1]:
        raise ValueError(
            f"{path}: {'both' if spaced[0] else 'none'} of the two columns have spaces, so that it "
            "cannot be told which are the sentences and which the labels"
        )
    text, label = (1, 2) if spaced[0] else (2, 1)
    labels = {line[label] for line in lines}
    if len(labels) < 2:
        raise ValueError(f"{path}: all sentences have the label {labels.pop()}")
    numbers = all(re.fullmatch(r"-?[0-9]+", own) for own in labels)
    classes = {x: i for i, x in enumerate(sorted(labels, key=int if numbers else None))}
    parts = {}
    for short, part in _PUBLIC_PARTS.items():
        own = [line for line in lines if line[0] == short]
        if not own:
            raise ValueError(f"{path} has no sentences of {short}")
        tokens = tuple(tuple(lowered(line[text], language).split()) for line in own)
        coded = np.array([classes[line[label]] for line in own], dtype=np.int64)
        parts[part] = TaskPart(tokens, coded, tuple(line[3] for line in own))
    return ProbingTask(name, language, tuple(classes), **parts)


def read_released(
    folder: str | Path, language: str, names: Sequence[str] = PROBING_TASKS
) -> list[ProbingTask]:
    """The released tasks of a language: a folder with a file or folder of `RELEASED` for each.

    Parameters and errors as in `read_senteval`.
    """
    places = [(name, Path(folder) / RELEASED[name]) for name in names]
    return [
        read_senteval(place if place.is_dir() else place.with_suffix(".txt"), name, language)
        for name, place in places
    ]


def _lines(path: Path) -> list[tuple[str, str, str, str]]:
    """Part, first and last cell of each line, and its file and number."""
    files = [(part, path / f"{part}.txt") for part in _PUBLIC_PARTS]
    lines = []
    for part_of_file, file in files if path.is_dir() else [("", path)]:
        if not file.is_file():
            raise FileNotFoundError(f"there is no {file}; give the file, or a folder with tr.txt")
        for number, line in enumerate(decode(file.read_bytes(), str(file)), 1):
            cells = line.split("\t")
            named = part_of_file and (cells[0] != part_of_file or len(cells) < 3)
            part = part_of_file if named else cells.pop(0)
            both = [cells[0].strip(), cells[-1].strip()] if cells else []
            if part not in _PUBLIC_PARTS or len(cells) < 2 or not all(both):
                raise ValueError(
                    f"{file}, line {number}: not tr, va or te, a label and a sentence (in either "
                    "order), parted by tabs"
                )
            lines.append((part, *both, f"{file.name}:{number}"))
    return lines


@dataclass(frozen=True, eq=False)
class MappingStudy:
    """Encoders of English, mapped to ``languages``; paths are below the repository.

    Attributes
    ----------
    encoders : of `sentence_encoders.ENCODERS`; ``sizes`` of theirs, as `Sizes` has them.
    word_vectors, dictionaries : language → file; others are counted, and found in translations.
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

    def __post_init__(self) -> None:
        for corpus in (*self.first.values(), *self.second.values()):
            checks.one_of(corpus, self.parallel, "corpus in `parallel`:")

    @property
    def codes(self) -> list[str]:
        """English and the languages."""
        return ["en", *self.languages]

    @cached_property
    def size(self) -> Sizes:
        """Of the encoders; small ones where none are given."""
        return MINI if self.sizes is None else Sizes(**self.sizes)

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
        width, files = self.size.words, self.word_vectors
        vectors = {
            code: word_spaces.of_file(paths.ROOT / files[code], code, dim=width)
            if code in files
            else word_spaces.of_pretraining_text(code, dim=width)
            for code in self.codes
        }
        mapped = {x: Lookup(vectors[x], vectors["en"], self._dictionary(x)) for x in self.languages}
        return {"en": Lookup(vectors["en"])} | mapped

    def _dictionary(self, code: str) -> OfFile | OfTranslations:
        if code in self.dictionaries:
            return OfFile(paths.ROOT / self.dictionaries[code])
        sources = (*self.sources.values(),)
        return OfTranslations(ParallelText(code, "en", sources, limit=self.n_parallel))

    def word_maps(self, seed: int) -> pd.DataFrame:
        """`word_spaces.precision_of_maps` of all languages; ``found`` in [0, 1]."""
        return word_spaces.precision_of_maps([self.lookups[x] for x in self.languages], seed=seed)

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
    def english(self) -> dict[str, Inferred]:
        """By encoder: that of English."""
        options = {"epochs": self.epochs, **self.training}
        data = self.learnt, self.held_out["en"]
        return {name: Inferred(name, self.size, *data, options) for name in self.encoders}

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
    def mapped(self) -> dict[tuple[str, str], Mapped]:
        """By encoder and setting: the mapped encoder."""
        return {
            (name, setting): self._mapped(name, code, self.translations[setting], self.map_epochs)
            for setting, (code, _) in self.settings.items()
            for name in self.encoders
        }

    def _mapped(self, name: str, code: str, lines: ParallelText, epochs: int) -> Mapped:
        words = self.lookups["en"], None if code == "en" else self.lookups[code]
        options = {"lam": self.lam, "max_epochs": epochs, **self.training}
        return Mapped(self.english[name], lines, *words, self.held_out[code], options)

    def inference(self) -> pd.DataFrame:
        """Accuracy of inference (Table 3): ``encoder``, ``language``, ``accuracy``.

        "en" before mapping, "en-mapped" after English was mapped to English.
        """
        rows, recipes, asked = [], [], []
        for name in self.encoders:
            own = {"en": (self.english[name], "en")}
            for setting, (code, _) in self.settings.items():
                own[shown_setting(setting)] = self.mapped[name, setting], code
            for shown, (recipe, code) in own.items():
                rows.append((ENCODER_NAMES[name], shown))
                recipes.append(recipe)
                asked.append(self.asked[code])
        table = pd.DataFrame(rows, columns=["encoder", "language"])
        return table.assign(accuracy=inference_accuracies(recipes, asked))

    # --- is it the map? ---------------------------------------------------------------------------

    def retrievals(
        self, n_retrieved: int, all_lines: Sequence[str], all_epochs: int
    ) -> dict[tuple[str, str, str], Retrieval]:
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
            both = self.lookups["en"], self.lookups[code]
            asks["mean of words", "no encoder", code] = Retrieval(None, lines, *both, skip)
            for name in self.encoders:
                made = {"not mapped": self.english[name], "mapped": self.mapped[name, code]}
                if name in all_lines:
                    made["mapped, all lines"] = self._mapped(name, code, whole, all_epochs)
                for condition, encoder in made.items():
                    asks[name, condition, code] = Retrieval(encoder, lines, *both, skip)
        return asks

    def maps(self, n_retrieved: int, all_lines: Sequence[str], all_epochs: int) -> pd.DataFrame:
        """By encoder, condition and language of `retrievals`: ``n``, ``P@1``, ``cosine`` and
        ``inference`` (accuracy); shares in [0, 1]."""
        asks = self.retrievals(n_retrieved, all_lines, all_epochs)
        keys = pd.MultiIndex.from_tuples(asks, names=["encoder", "condition", "language"])
        maps = retrieved(list(asks.values())).set_axis(keys)
        inferring = {key: own.encoder for key, own in asks.items() if own.encoder is not None}
        pairs = [self.asked[code] for _, _, code in inferring]
        index = pd.MultiIndex.from_tuples(inferring, names=keys.names)
        accuracies = inference_accuracies(list(inferring.values()), pairs)
        maps["inference"] = pd.Series(accuracies, index)
        return maps.rename(columns={"found": "P@1"}).rename(index=ENCODER_NAMES, level="encoder")

    # --- what is probed ---------------------------------------------------------------------------

    def trained_subjects(self) -> list[Subject]:
        """English encoders, and each mapped one in its setting."""
        asked = []
        for name in self.encoders:
            asked.append(self.subject(name, "en"))
            asked += [
                probing.of_encoder(
                    self.mapped[name, setting], self.lookups[code], shown_setting(setting), "mapped"
                )
                for setting, (code, _) in self.settings.items()
            ]
        return asked

    def subject(self, name: str, language: str) -> Subject:
        """An English encoder before the tasks that go by a name."""
        return probing.of_encoder(self.english[name], self.lookups["en"], language, "trained")

    def untrained_subjects(self, seed: int) -> list[Subject]:
        """Encoders with random weights, in each language."""
        return [
            probing.of_encoder(
                Untrained(name, self.size, seed), self.lookups[code], code, "untrained"
            )
            for name in self.encoders
            for code in self.codes
        ]

    def further_subjects(self, models: Mapping[str, int]) -> list[Subject]:
        """The mean of words, and a layer of each model, in each language."""
        asked = [probing.of_mean(self.lookups[code], code) for code in self.codes]
        layers = models.items()
        return asked + [
            probing.of_model(x, code, layer) for x, layer in layers for code in self.codes
        ]


def shown_setting(setting: str) -> str:
    """A setting of mapped encoders as tables call it: English before mapping is "en"."""
    return "en-mapped" if setting == "en" else setting


def mean_over_languages(maps: pd.DataFrame) -> pd.DataFrame:
    """By encoder and condition: inference and P@1 in per cent, and cosine."""
    columns = ["inference", "P@1", "cosine"]
    means = maps.groupby(["encoder", "condition"], sort=False)[columns].mean()
    return (means * [100, 100, 1]).round({"inference": 1, "P@1": 1, "cosine": 2})


def audit_of_maps(maps: pd.DataFrame) -> printed_tables.Audit:
    """Whether a map does more than no map, by its mean over languages (of `MappingStudy.maps`)."""
    means = maps.groupby(["encoder", "condition"], sort=False)[["inference", "P@1"]].mean()
    audit = printed_tables.Audit()
    plain = means.xs("not mapped", level="condition")
    conditions = [name for name in maps.index.unique("condition") if "mapped" in name][1:]
    for condition in conditions:
        own = means.xs(condition, level="condition")
        for column, what in (("inference", "infers better"), ("P@1", "finds more translations")):
            gain = 100 * (own[column] - plain.loc[own.index, column])
            said = ", ".join(f"{name} {points:+.1f}" for name, points in gain.items())
            audit.claim(condition, f"{what} than not mapped", f"{said} points", *(gain > 0))
    words = means.xs("no encoder", level="condition")["P@1"].iloc[0]
    encoders = means["P@1"].drop("mean of words", level=0)
    audit.claim(
        "all",
        "finds more translations than the mean of words",
        f"at most {100 * encoders.max():.0f} % to {words:.0%}",
        *(encoders > words),
    )
    return audit
