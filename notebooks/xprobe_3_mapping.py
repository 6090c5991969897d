"""Encoders mapped across languages, and the probing tasks that SentEval has released."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.shown import asking
from shared.xprobe_figures import asked
from xlx.measures import statistics
from xlx.measures.sentence_tasks import ProbingTask, TaskPart
from xlx.plots.panels import across
from xlx.plots.primitives import lanes
from xlx.plots.style import BLUE, look, styled
from xlx.results import paths
from xlx.results.deferred import deferred
from xlx.text import labelled
from xlx.text.examples import Examples
from xlx.text.files import decode
from xlx.text.languages import lowered
from xprobe import encoders
from xprobe.encoders import Inference, Question, Recipe, Sizes
from xprobe.probing import Subject
from xprobe.word_spaces import Lookup, ParallelText, Words

vectorizers = deferred("sklearn.feature_extraction.text")
linear_model = deferred("sklearn.linear_model")
pipeline = deferred("sklearn.pipeline")

#: Names of the tasks' files in SentEval.
RELEASED = {
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


def read_senteval(path: Path, name: str, language: str) -> ProbingTask:
    """A probing task as SentEval has released it, in small letters, split at spaces.

    Lines are ``part<TAB>label<TAB>sentence`` of the parts ``tr``, ``va`` and ``te``. Classes are
    the labels in order, numbers by value; a base is the file and line.

    Raises FileNotFoundError where the file is missing, ValueError for a malformed line (named), for
    a part without sentences, a single class.
    """
    rows: dict[str, list[Sequence[str]]] = {part: [] for part in _PUBLIC_PARTS}
    for number, line in enumerate(decode(path.read_bytes(), str(path)), 1):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or cells[0] not in rows or not all(cells):
            what = f"part ({', '.join(rows)}), label, sentence"
            raise ValueError(f"{path}, line {number}: not {what}, parted by tabs")
        rows[cells[0]].append((*cells[1:], f"{path.name}:{number}"))
    labels = {label for part in rows.values() for label, *_ in part}
    if len(labels) < 2 or not all(rows.values()):
        raise ValueError(f"{path} has not the parts tr, va and te, with two labels or more")
    numbers = all(re.fullmatch(r"-?[0-9]+", label) for label in labels)
    classes = {x: i for i, x in enumerate(sorted(labels, key=int if numbers else None))}
    parts = {}
    for short, part in _PUBLIC_PARTS.items():
        of_part, sentences, bases = zip(*rows[short], strict=True)
        tokens = tuple(tuple(lowered(x, language).split()) for x in sentences)
        parts[part] = TaskPart(tokens, np.array([classes[x] for x in of_part], np.int64), bases)
    return ProbingTask(name, language, tuple(classes), **parts)


def read_released(folder: str | Path, language: str) -> list[ProbingTask]:
    """The released tasks of a language: a file of `RELEASED` each."""
    files = {name: Path(folder) / f"{stem}.txt" for name, stem in RELEASED.items()}
    return [read_senteval(file, name, language) for name, file in files.items()]


@dataclass(frozen=True)
class NoisedEnglish(ParallelText):
    """English lines of translations and the same with a share of words drawn from all of them."""

    noise: float = 0.0

    @cached_property
    def about(self) -> dict[str, Any]:
        return super().about | {"noise": self.noise}

    @cached_property
    def lines(self) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
        english, rng = super().lines[0], np.random.default_rng(0)
        words = [word for line in english for word in line]
        return english, [
            [words[rng.integers(len(words))] if rng.random() < self.noise else x for x in line]
            for line in english
        ]


@dataclass(frozen=True, eq=False)
class MappingStudy:
    """Encoders of English, mapped to ``languages``; paths are below the repository."""

    languages: Sequence[str]
    encoders: Sequence[str]  # of `encoders.ENCODERS`
    sizes: Mapping[str, Any] | None = None  # as `Sizes` has them; small ones without
    word_vectors: Mapping[str, str] = field(default_factory=dict)  # language → file, or counted
    dictionaries: Mapping[str, str] = field(default_factory=dict)  # the same, or those shipped
    parallel: Mapping[str, str] = field(default_factory=lambda: {"NTREX": "ntrex"})  # → source
    first: Mapping[str, str] = field(default_factory=dict)  # language → what it is mapped by
    second: Mapping[str, str] = field(default_factory=dict)  # and by what as well
    n_parallel: int = 1000  # translations of a corpus at most
    longest: int = 40  # words of one
    nli_train: str = "xnli-dev"
    nli_path: str | None = None  # a folder of the public files
    epochs: int = 5  # of inference
    map_epochs: int = 4
    lam: float = 0.25
    training: Mapping[str, Any] = field(default_factory=dict)  # batch_size, learning_rate, seed

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
        return {
            name: str(folder) if (folder := paths.ROOT / source).is_dir() else source
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
        if path := self.dictionaries.get(code):
            return paths.ROOT / path
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
        if not self.nli_path:
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
        """Name in tables → language and corpus it is mapped by; English is mapped to itself.

        Without languages nothing is mapped.
        """
        if not self.languages:
            return {}
        usual = next(iter(self.parallel))
        settings = {"en": ("en", self.first.get(self.languages[0], usual))}
        settings |= {code: (code, self.first.get(code, usual)) for code in self.languages}
        second = {x: corpus for x, corpus in self.second.items() if x in self.languages}
        return settings | {f"{x}-{corpus}": (x, corpus) for x, corpus in second.items()}

    @cached_property
    def translations(self) -> dict[str, ParallelText]:
        """By setting: the translations it is mapped by."""
        options = {"longest": self.longest, "most": self.n_parallel}
        return {
            setting: ParallelText(
                "en", self.languages[0] if code == "en" else code, self.sources[corpus], **options
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

    def inference(self, exchanged: Sequence[int] = ()) -> dict[tuple[str, str, str], np.ndarray]:
        """Which test pairs of inference are answered right ``(n,)``, in all the same order.

        By condition, encoder and language or setting: "English", "mapped" (also to English), "not
        mapped", and "premises exchanged" of English, shares over the seeds ``exchanged``.
        """
        asks: dict[tuple[str, str, str], list[Question]] = {}
        for name in self.encoders:
            known, english = encoders.ENCODER_NAMES[name], self.english[name]
            for code, pairs in self.asked.items():
                plain = "English" if code == "en" else "not mapped"
                asks[plain, known, code] = [(english, pairs)]
                if code == "en" and exchanged:
                    draws = [(english, replace(pairs, exchanged=seed)) for seed in exchanged]
                    asks["premises exchanged", known, code] = draws
            for setting, (code, _) in self.settings.items():
                made = self.mapped[name, setting], self.asked[code]
                asks["mapped", known, shown_setting(setting)] = [made]
        flat = [question for draws in asks.values() for question in draws]
        answers = iter(encoders.inferences(flat))
        return {
            key: np.mean([next(answers) == pairs.labels for _, pairs in draws], axis=0)
            for key, draws in asks.items()
        }

    def hypotheses_alone(self) -> np.ndarray:
        """Which English test pairs a bag of words of the hypothesis alone is right about."""
        known, asked = self.learnt, self.asked["en"]
        texts = [[x for part in side.parts for x in part.second] for side in (known, asked)]
        model = pipeline.make_pipeline(
            vectorizers.CountVectorizer(binary=True), linear_model.LogisticRegression(max_iter=500)
        )
        return model.fit(texts[0], known.labels).predict(texts[1]) == asked.labels

    # --- what is probed ---------------------------------------------------------------------------

    def trained_subjects(self) -> list[Subject]:
        """English encoders, and each mapped one in its setting."""
        asked = []
        for name in self.encoders:
            asked.append(self.subject(name, "en"))
            for setting, (code, _) in self.settings.items():
                mapped, shown = self.mapped[name, setting], shown_setting(setting)
                asked.append(Subject(self.lookups[code], shown, "mapped", mapped))
        return asked

    def noised(self, share: float) -> list[Subject]:
        """English encoders, mapped by `NoisedEnglish` of so many words to English."""
        lines = NoisedEnglish(*astuple(self.translations["en"]), share)
        options = {"lam": self.lam, "max_epochs": self.map_epochs, **self.training}
        lookup = self.lookups["en"]
        data = lines, lookup, lookup, self.held_out["en"]
        recipes = [encoders.mapped(x, *data, **options) for x in self.english.values()]
        return [Subject(lookup, "en", f"{share:.0%} noise", recipe) for recipe in recipes]

    def subject(self, name: str, language: str) -> Subject:
        """An English encoder before the tasks that go by a name."""
        return Subject(self.lookups["en"], language, "trained", self.english[name])


def shown_setting(setting: str) -> str:
    """A setting of mapped encoders as tables call it: English before mapping is "en"."""
    return "en-mapped" if setting == "en" else setting


# --- gains and differences ------------------------------------------------------------------------

#: A difference and the ends of its interval, as columns.
ENDS = ["difference", "low", "high"]
#: The condition of a gain over English → the condition that English is read in.
_BASES = {"mapped": "trained", "untrained": "untrained", "not trained": "not trained"}
Answers = Mapping[tuple[str, str, str], np.ndarray]


def student(differences: np.ndarray | pd.Series) -> tuple[float, float, float]:
    """The mean of differences ``(n,)`` with Student's 95 % interval: (mean, low, high)."""
    n, mean = len(differences), differences.mean()
    half = statistics.half_width(differences.std(ddof=1) / np.sqrt(n), n - 1)
    return float(mean), float(mean - half), float(mean + half)


def gains(cells: pd.DataFrame, task: str, encoders: Sequence[str] = ()) -> pd.DataFrame:
    """Gains over English on a task: a row per language or setting, a column per condition.

    ``cells`` as of `xprobe_tables.cell_means`; means over ``encoders``, or over all. "not trained"
    is the mean of words. Values are in [-1, 1]; no row is of English before mapping.
    """
    rows = cells[cells["task"] == task]
    if encoders:
        known = rows["encoder"].isin(list(encoders)) | (rows["condition"] == "not trained")
        rows = rows[known]
    means = rows.pivot_table("accuracy", "language", "condition")
    columns = {name: means[name] - means.loc["en", base] for name, base in _BASES.items()}
    return pd.DataFrame(columns).drop(index="en")


def matched_gains(
    cells: pd.DataFrame, groups: Mapping[str, Sequence[str]], tasks: Sequence[str]
) -> pd.DataFrame:
    """What mapped encoders gain over English, less what untrained ones of the same kind gain.

    ``groups``: name → encoders. Both gains are on the same test sentences, so what is easy in a
    language is in both. By (task, group): the mean `gains` over languages by condition, "English to
    English", and the matched gain, `ENDS`, over languages.
    """
    rows = {}
    for task, (group, names) in itertools.product(tasks, groups.items()):
        table = gains(cells, task, names)
        abroad = table.dropna(subset="untrained")
        row = abroad.mean().to_dict()
        row["English to English"] = table["mapped"].get("en-mapped", np.nan)
        interval = student(abroad["mapped"] - abroad["untrained"])
        rows[task, group] = row | dict(zip(ENDS, interval, strict=True))
    return pd.DataFrame(rows).T


def lengths_by_encoder(cells: pd.DataFrame, encoders: Sequence[str]) -> pd.DataFrame:
    """Accuracy on SentLen by encoder and place, over languages that untrained encoders read, too.

    Places: "English", "abroad" (mapped), both also "untrained"; "English to English" and each share
    of noise (`MappingStudy.noised`) where ``cells`` have them.
    """
    known = cells.loc[cells["condition"] == "untrained", "language"]
    rows = cells[(cells["task"] == "SentLen") & cells["language"].isin([*known, "en-mapped"])]
    place = rows["language"].map({"en": "English", "en-mapped": "English to English"})
    place = rows["condition"].map({"untrained": "untrained "}).fillna("") + place.fillna("abroad")
    place = place.mask(rows["condition"].str.endswith("noise"), rows["condition"])
    table = rows.assign(place=place).pivot_table("accuracy", "encoder", "place", sort=False)
    return table.loc[list(encoders)]


def compared(answers: Answers, first: str, other: str) -> pd.DataFrame:
    """Two conditions of `MappingStudy.inference`, where both have a language: shares that are right
    and their difference (`ENDS`), paired by test pair. A row per encoder and the "mean" of all."""
    keys = [key for key in answers if key[0] == first and (other, *key[1:]) in answers]
    rows = {}
    for encoder in [*dict.fromkeys(key[1] for key in keys), "mean"]:
        places = [key[1:] for key in keys if encoder in (key[1], "mean")]
        sides = [np.mean([answers[x, *place] for place in places], axis=0) for x in (first, other)]
        numbers = [side.mean() for side in sides] + [*student(sides[0] - sides[1])]
        rows[encoder] = dict(zip([first, other, *ENDS], numbers, strict=True))
    return pd.DataFrame(rows).T


@styled
def gains_by_condition(cells: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """Gain above that of untrained encoders by task: one dot per language, and their mean."""
    tables = {}
    for task in tasks:
        of_task = gains(cells, task)
        of_task.loc["en-mapped", "untrained"] = 0  # English gains nothing over itself
        above = of_task.sub(of_task.pop("untrained"), axis=0).reset_index()
        tables[task] = above.melt("language", None, "condition", "gain").dropna()
    rows = pd.concat(tables, names=["task"]).reset_index("task")
    rows["condition"] = rows["condition"].replace("not trained", "mean of words")
    home = rows["language"] == "en-mapped"
    rows["condition"] = rows["condition"].mask(home, "English to English")
    grey = look("0.6", "o", markersize=3)
    on = lanes(
        rows,
        "gain",
        "condition",
        col="task",
        scale=100,
        lane=0.2,
        looks=grey,
        labels="a language",
        spread=0.3,
        interval=False,
        width=2.4,
    ).titles(asked)
    groups = rows.groupby(["task", "condition"], sort=False)["gain"]
    spans = {key: student(each) for key, each in groups if len(each) > 2}
    means = pd.DataFrame(spans, ["gain", "low", "high"]).T.rename_axis(["task", "condition"])
    lanes(
        means.reset_index(),
        "gain",
        "condition",
        scale=100,
        looks=look(BLUE, "s"),
        labels="mean, with interval",
        shift=0.3,
        on=on,
    )
    across(on, 0, color="0.5", linewidth=0.8, linestyle="-", zorder=2)
    figure = on.done("gain over English, less that of untrained encoders (points)")
    return asking("Do mapped encoders gain more than untrained ones?", figure)
