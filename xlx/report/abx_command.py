"""``xlx abx``: can a model tell languages apart, and meanings across languages (ABX)?"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typer import Option

from xlx.experiment import minimal_pairs
from xlx.experiment.minimal_pairs import EDIT_DISTANCE, EVERY_KIND
from xlx.experiment.scoring import BAG, BagOfSubwords
from xlx.report import inputs, options
from xlx.report.figures import by_layer
from xlx.report.inputs import ReportedModel
from xlx.report.options import Parts, Result
from xlx.report.page import shown_figure
from xlx.report.sentences import OF_ABX, answers_of, undefined_layers
from xlx.report.tables import Measured, Tables, report_tables, subject

_TABLES = ("layers", "layer_differences", "references", "pairs")
_READING = """
LD: how often a sentence is nearer to another one of its language than to that one's translation;
MD: to its translation than to another sentence of that language, of like length within a tenth;
0.5 is chance. Intervals are of 95 % over documents, of differences too, which are of scores on the
same text. The layer is chosen on this text. A bag knows names, numbers and loans alone; what the
untrained twin has, training has not given. pairs.csv has every pair of languages at every layer.
"""
_PAIRS = """
The share of pairs in which X is nearer to A than to B; 0.5 is chance, a tie counts one half.
Intervals are of 95 % over documents, each pair its own where none are named. Less a rival: the
paired difference. An edit distance counts characters, and reads no word.
"""


@dataclass(kw_only=True)
class Abx(options.Measuring):
    """Can a model tell languages apart (LD), and meanings across languages (MD), layer by layer?

    LD, MD, MD among sentences of like length and retrieval (de Seyssel et al. 2025), by layer and
    by pair of languages, with intervals over documents, beside the model untrained, a bag of its
    own subwords and length alone. With --pairs minimal pairs of yours, beside the bag and an edit
    distance: A and X mean the same, B is A edited. Stop it at any time: it goes on by language.
    """

    usual_text: ClassVar[str] = "wmt24pp"
    seed: ClassVar[int] = 1
    pairs: Path | None = Option(None, help="a CSV or TSV: A, B, X, maybe kind and document")

    def check(self) -> None:
        """ValueError, too, for what a table of pairs cannot be asked with."""
        super().check()
        self.refuse(["tasks"], "of MEXA, and not of ABX")
        if self.pairs is not None:
            names = "states", "text", "languages", "sentences"
            self.refuse(names, "of parallel text, and not of --pairs")

    def run(self) -> None:
        """Say what is read, score it, write ``layers.csv`` and others, and ``abx.html``."""
        if self.pairs is not None:
            self.score_pairs()
            return
        models, corpus, notes = self.measured()
        corpus, more = inputs.comparable_text(corpus)
        notes += more
        if self.states is None:
            print(options.estimate(models, corpus, len(models) + (models[0].step is None)))
        if self.estimate:
            return
        about = f"{corpus.name} ({corpus.licence}), {len(corpus)} sentences; vectors: "

        def measure(model: ReportedModel) -> Result:
            untrained = model.step is None
            measured = Measured(model, corpus, untrained=untrained, every_layer=True)
            tables = report_tables([measured], names=_TABLES)
            answers = [x.sentence for x in answers_of(tables, model.label, OF_ABX)]
            lines = *answers, *undefined_layers(tables)
            return [f"{model.label}: {x}" for x in lines], tables

        def parts(tables: Tables) -> Parts:
            layers = tables["layers"][tables["layers"]["model"] == models[-1].label]
            figure = shown_figure(by_layer({"layers": layers}))
            return figure, tables["references"], about + models[-1].vector, _READING

        self.write(models, notes, measure, parts)

    def score_pairs(self) -> None:
        """Say what is read, ask it, write ``pairs.csv`` and ``abx.html``."""
        corpus = minimal_pairs.load_pairs(self.pairs)
        models, notes = self.models()
        print(f"{', '.join(x.label for x in models)}: {len(corpus)} minimal pairs of {self.pairs}")
        print(options.estimate(models, corpus, len(models)))
        if self.estimate:
            return

        def measure(model: ReportedModel) -> Result:
            asked = {model.label: subject(model), BAG: BagOfSubwords(model.name)}
            answers = {name: minimal_pairs.nearer(corpus, x) for name, x in asked.items()}
            answers[EDIT_DISTANCE] = minimal_pairs.nearer(corpus)
            table = minimal_pairs.share_table(corpus, answers, [EDIT_DISTANCE, BAG])
            ours = (table["model"] == model.label) & (table["kind"] == EVERY_KIND)
            last = table[ours].iloc[-1]
            shares = "; ".join(
                "{} {:.2f} ({:.2f} to {:.2f})".format(x, *last[[x, f"{x} low", f"{x} high"]])
                for x in ("share", f"less {EDIT_DISTANCE}", f"less {BAG}")
            )
            line = f"{model.label}, X nearer to A, last layer: {shares}"
            return [line], {"pairs": table.round(4)}

        about = f"{corpus.name}; vectors: {models[-1].vector}"
        self.write(models, notes, measure, lambda tables: (tables["pairs"], about, _PAIRS))
