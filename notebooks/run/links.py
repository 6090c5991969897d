"""The line of links under the title of every notebook: paper, previous, next, code, minutes, needs.

    python -m notebooks.run.links [STEM ...]

writes it into the notebooks named, or into all; nothing else of them changes. `LESSONS` is the one
table behind it.
"""

import sys

import nbformat

from notebooks.run import profiles
from xlx.results import paths
from xlx.results.store import written_whole

#: The papers, and where they are read.
PAPERS = {
    "ABX": "https://doi.org/10.18653/v1/2025.emnlp-main.1210",
    "MEXA": "https://doi.org/10.18653/v1/2025.findings-acl.1385",
    "IGAP": "https://arxiv.org/abs/2305.08800",
    "within/across": "https://doi.org/10.18653/v1/2024.eacl-long.177",
    "X-Probe": "https://arxiv.org/abs/1906.05061",
}
#: First part of a notebook's name → its papers, and where the formulas behind it stand.
LENSES = {
    "models": (("IGAP", "ABX", "MEXA"), "data/models-long/family/recipes.py"),
    "abx": (("ABX",), "xlx/measures/abx.py"),
    "mexa": (("MEXA",), "xlx/measures/mexa.py"),
    "igap": (("IGAP",), "xlx/measures/igap.py"),
    "mixing": (("within/across",), "xlx/measures/mixing.py"),
    "xprobe": (("X-Probe",), "xlx/measures/sentence_tasks.py"),
    "report": (("ABX", "MEXA"), "xlx/report/tables.py"),
}
#: The notebooks, in the order in which they are read: about how many minutes that takes, and which
#: others it takes for read.
LESSONS: dict[str, tuple[int, tuple[str, ...]]] = {
    "models-1-family": (20, ()),
    "models-2-training": (10, ("abx-1-validation",)),
    "abx-1-validation": (10, ()),
    "abx-2-dynamics": (10, ("abx-1-validation",)),
    "abx-3-tradeoff": (10, ("abx-2-dynamics",)),
    "abx-4-languages": (10, ("abx-2-dynamics",)),
    "abx-5-probing": (20, ("abx-2-dynamics",)),
    "abx-6-transfer": (15, ("abx-5-probing",)),
    "abx-7-printed": (10, ("abx-1-validation",)),
    "mexa-1-alignment": (15, ()),
    "mexa-2-estimation": (15, ("mexa-1-alignment",)),
    "mexa-3-printed": (25, ("mexa-1-alignment",)),
    "igap-1-decomposition": (15, ()),
    "igap-2-ranking": (15, ("igap-1-decomposition",)),
    "igap-3-models": (20, ("igap-1-decomposition",)),
    "igap-4-directions": (20, ("igap-2-ranking",)),
    "mixing-1-nli": (10, ()),
    "mixing-2-paraphrase": (10, ("mixing-1-nli",)),
    "mixing-3-qa": (10, ("mixing-1-nli",)),
    "mixing-4-controls": (10, ("mixing-1-nli", "mixing-3-qa")),
    "mixing-5-printed": (25, ("mixing-1-nli",)),
    "mixing-6-pairs": (10, ("mixing-1-nli",)),
    "xprobe-1-tasks": (10, ()),
    "xprobe-2-mapping": (20, ("xprobe-1-tasks",)),
    "xprobe-3-printed": (25, ("xprobe-1-tasks",)),
    "report": (10, ()),
}
#: How a line begins; by it a line that is there already is known.
START = "Paper: "


def links_of(stem: str) -> str:
    """The line of a notebook, in Markdown; KeyError for one that `LESSONS` does not name."""
    (minutes, needs), order = LESSONS[stem], list(LESSONS)
    lens = stem.partition("-")[0]
    papers, formulas = LENSES[lens]
    place = order.index(stem)
    parts = [START + ", ".join(f"[{name}]({PAPERS[name]})" for name in papers)]
    parts += [f"previous: [{name}]({name}.ipynb)" for name in order[:place][-1:]]
    parts += [f"next: [{name}]({name}.ipynb)" for name in order[place + 1 :][:1]]
    own = stem.replace("-", "_")
    beside = [f"{own}.py", f"shared/{lens}_tables.py", f"printed/{lens}_claims.py"]
    own = [name for name in beside if (paths.NOTEBOOKS / name).is_file()][:1]
    code = [f"[`{name}`]({name})" for name in own] + [f"[`{formulas}`](../{formulas})"]
    parts.append("code: " + ", ".join(code))
    parts.append(f"{minutes} minutes")
    links = ", ".join(f"[{name}]({name}.ipynb)" for name in needs)
    parts.append(f"needs: {links or 'no other notebook'}")
    return " · ".join(parts)


def linked(source: str, stem: str) -> str:
    """The first cell of a notebook with its line below the title, new or in the place of an old."""
    title, *paragraphs = source.split("\n\n")
    kept = [paragraph for paragraph in paragraphs if not paragraph.startswith(START)]
    return "\n\n".join([title, links_of(stem), *kept])


def main(stems: list[str] | None = None) -> int:
    """Write the lines of the notebooks named, or of all."""
    for stem in stems or sorted(LESSONS):
        path = profiles.notebook_path(stem)
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
