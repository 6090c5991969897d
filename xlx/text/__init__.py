"""What is read: parallel text, labelled examples, questions, trees, scores of others.

In go a name of shipped or public data, or a user's files; out come sentences in many languages,
checked and aligned: a `ParallelCorpus`, `Examples` of labelled sentences or pairs, `Questions`
about paragraphs, dependency trees (`trees`), published scores of models on tasks (`downstream`).
Every loader reads local files, says which file and line is wrong, and runs no foreign code.
"""

from xlx.text.examples import Examples
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus
from xlx.text.questions import Questions

__all__ = ["Examples", "ParallelCorpus", "Questions", "TextError"]
