"""The line of links under the title of every notebook: paper, previous, next, code, minutes, needs.

    python -m xlx.core.links [STEM ...]

writes it into the notebooks named, or into all; nothing else of them changes. `LESSONS` is the one
table behind it.
"""

import sys
from dataclasses import dataclass

import nbformat

from xlx.core import run
from xlx.core.store import written_whole

#: The papers, and where they are read.
PAPERS = {
    "ABX": "https://doi.org/10.18653/v1/2025.emnlp-main.1210",
    "MEXA": "https://doi.org/10.18653/v1/2025.findings-acl.1385",
    "IGAP": "https://arxiv.org/abs/2305.08800",
    "within/across": "https://doi.org/10.18653/v1/2024.eacl-long.177",
    "X-Probe": "https://arxiv.org/abs/1906.05061",
}


@dataclass(frozen=True)
class Lesson:
    """What the line of a notebook says: its `PAPERS`, the room of the package behind it (``abx`` is
    ``xlx/abx``), about how many minutes it takes, which notebooks it takes for read.
    """

    papers: tuple[str, ...]
    room: str
    minutes: int
    needs: tuple[str, ...] = ()


#: The notebooks, in the order in which they are read.
LESSONS = {
    "models-1-family": Lesson(("IGAP", "ABX", "MEXA"), "family", 20),
    "abx-1-validation": Lesson(("ABX",), "abx", 10),
    "abx-2-dynamics": Lesson(("ABX",), "abx", 10, ("abx-1-validation",)),
    "abx-3-tradeoff": Lesson(("ABX",), "abx", 10, ("abx-2-dynamics",)),
    "abx-4-languages": Lesson(("ABX",), "abx", 10, ("abx-2-dynamics",)),
    "abx-5-probing": Lesson(("ABX",), "abx", 20, ("abx-2-dynamics",)),
    "abx-6-transfer": Lesson(("ABX",), "abx", 15, ("abx-5-probing",)),
    "mexa-1-alignment": Lesson(("MEXA",), "mexa", 15),
    "mexa-2-estimation": Lesson(("MEXA",), "mexa", 15, ("mexa-1-alignment",)),
    "mexa-3-printed": Lesson(("MEXA",), "mexa", 25, ("mexa-1-alignment",)),
    "igap-1-decomposition": Lesson(("IGAP",), "igap", 15),
    "igap-2-ranking": Lesson(("IGAP",), "igap", 15, ("igap-1-decomposition",)),
    "igap-3-models": Lesson(("IGAP",), "igap", 20, ("igap-1-decomposition",)),
    "igap-4-directions": Lesson(("IGAP",), "igap", 20, ("igap-2-ranking",)),
    "mixing-1-nli": Lesson(("within/across",), "mixing", 10),
    "mixing-2-paraphrase": Lesson(("within/across",), "mixing", 10, ("mixing-1-nli",)),
    "mixing-3-qa": Lesson(("within/across",), "mixing", 10, ("mixing-1-nli",)),
    "mixing-4-controls": Lesson(("within/across",), "mixing", 10, ("mixing-1-nli", "mixing-3-qa")),
    "mixing-5-printed": Lesson(("within/across",), "mixing", 25, ("mixing-1-nli",)),
    "mixing-6-pairs": Lesson(("within/across",), "mixing", 10, ("mixing-1-nli",)),
    "xprobe-1-tasks": Lesson(("X-Probe",), "xprobe", 10),
    "xprobe-2-mapping": Lesson(("X-Probe",), "xprobe", 20, ("xprobe-1-tasks",)),
    "xprobe-3-printed": Lesson(("X-Probe",), "xprobe", 25, ("xprobe-1-tasks",)),
}

#: How a line begins; by it a line that is there already is known.
START = "Paper: "


def links_of(stem: str) -> str:
    """The line of a notebook, in Markdown; KeyError for one that `LESSONS` does not name."""
    lesson, order = LESSONS[stem], list(LESSONS)
    place = order.index(stem)
    parts = [START + ", ".join(f"[{name}]({PAPERS[name]})" for name in lesson.papers)]
    if place > 0:
        parts.append("previous: " + _link(order[place - 1]))
    if place + 1 < len(order):
        parts.append("next: " + _link(order[place + 1]))
    parts.append(f"code: [`xlx.{lesson.room}`](../xlx/{lesson.room}/__init__.py)")
    parts.append(f"{lesson.minutes} minutes")
    parts.append("needs: " + (", ".join(map(_link, lesson.needs)) or "no other notebook"))
    return " · ".join(parts)


def _link(stem: str) -> str:
    return f"[{stem}]({stem}.ipynb)"


def linked(source: str, stem: str) -> str:
    """The first cell of a notebook with its line below the title, new or in the place of an old."""
    title, *paragraphs = source.split("\n\n")
    kept = [paragraph for paragraph in paragraphs if not paragraph.startswith(START)]
    return "\n\n".join([title, links_of(stem), *kept])


def main(stems: list[str] | None = None) -> int:
    """Write the lines of the notebooks named, or of all."""
    for stem in stems or sorted(LESSONS):
        path = run.notebook_path(stem)
        notebook = nbformat.read(path, as_version=4)
        source = linked(notebook.cells[0].source, stem)
        if source != notebook.cells[0].source:
            notebook.cells[0].source = source
            with written_whole(path) as part:
                nbformat.write(notebook, part)
            print(f"{stem}: links written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
