"""What is read: parallel text, labelled examples, questions, trees, scores of others.

In go a name of shipped or public data, or a user's files; out come sentences in many languages,
checked and aligned. Parallel text is read by `parallel.load`, published scores of models on tasks
by `downstream`. Every loader reads local files, says which file and line is wrong, and runs no
foreign code.
"""

from xlx.text.examples import Examples
from xlx.text.files import TextError
from xlx.text.labelled import load_labelled
from xlx.text.parallel import ParallelCorpus
from xlx.text.questions import Questions, load_questions
from xlx.text.trees import Trees, load_trees

__all__ = [
    "Examples",
    "ParallelCorpus",
    "Questions",
    "TextError",
    "Trees",
    "load_labelled",
    "load_questions",
    "load_trees",
]
