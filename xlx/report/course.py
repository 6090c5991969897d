"""The course of a report: what it does now, and after its first minute how long the rest takes."""

import time
from dataclasses import dataclass, field

from xlx.report.estimates import Estimate, duration
from xlx.report.measures import ReportedModel
from xlx.subjects import loading, states
from xlx.text.parallel import ParallelCorpus

#: Seconds after which the first estimate, from one batch, is corrected.
_MINUTE = 60.0


@dataclass
class Course:
    """Says each step as it begins; says the time that is left once, when it can be known better."""

    foreseen: Estimate
    began: float = field(default_factory=time.monotonic)
    corrected: bool = False

    def tell(self, text: object) -> None:
        """Say what begins, with the seconds that have gone."""
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def correct(self, done: float) -> None:
        """After the first minute say how long the rest takes.

        ``done`` are the seconds that were foreseen for what is done: what they have taken, the rest
        takes as well.
        """
        gone = time.monotonic() - self.began
        if self.corrected or gone < _MINUTE or done <= 0:
            return
        left = max(0.0, self.foreseen.seconds - done) * gone / done
        self.tell(f"estimate, corrected by what this has taken: {duration(left)} more")
        self.corrected = True


def read_ahead(
    model: ReportedModel,
    corpus: ParallelCorpus,
    max_length: int | None,
    course: Course,
    done: float = 0.0,
) -> None:
    """Let a model read the text, language by language, each kept for what is measured later.

    ``done``: the seconds foreseen for what was done before. Errors as of `embeddings.embed_corpus`.
    """
    encoder, n = loading.load(model.name), len(corpus.languages)
    for number, language in enumerate(corpus.languages, start=1):
        states.embed_corpus(
            encoder, corpus.select([language]), pooling=model.pooling, max_length=max_length
        )
        course.correct(done + course.foreseen.reading[model.label] * number / n)
