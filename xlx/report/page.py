"""The page of a report: one HTML file to read offline, figures inside, each with its text."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from string import Template

import pandas as pd

from xlx.plots.report import picture
from xlx.plots.style import alternative
from xlx.report.answers import Finding
from xlx.report.figures import SHOWN_TABLE, report_figures
from xlx.report.tables import HEADINGS

#: Pixels that a wide figure keeps on a narrow screen, where it is moved sideways.
_LEGIBLE = 640
#: Rows of a table on the page; the whole is in its file.
_MOST_ROWS = 40

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #111; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
h1, p, li { overflow-wrap: anywhere; } h3 { font-size: 1rem; margin-bottom: 0; }
img { max-width: 100%; height: auto; } figure { margin: 1rem 0; overflow-x: auto; }
figcaption, .about { color: #444; font-size: 0.9rem; }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto; }
th, td { padding: 0.15rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right; }
th { text-align: left; } a { color: #0050a0; }
</style>
</head>
<body>
<main>
<h1>$title</h1>
<p class="about">$about</p>
<nav aria-label="Parts"><a href="#answers">Answers</a> · <a href="#figures">Figures</a> ·
<a href="#tables">Tables</a> · <a href="#reading">How to read it</a></nav>
<h2 id="answers">Answers</h2>
$answers
<h2 id="figures">Figures</h2>
$figures
<h2 id="tables">Tables</h2>
$tables
<h2 id="reading">How to read it</h2>
$reading
</main>
</body>
</html>
""")

_READING = (
    "LD, language discrimination: how often a sentence is nearer to another one of its own "
    "language than to that one's translation. MD, meaning discrimination: how often it is "
    "nearer to its own translation than to another sentence of that language. Both are exact, "
    "over all triplets; 0.5 is chance. Among sentences of like length (within a tenth) length "
    "cannot answer.",
    "MEXA: the share of sentences whose translation in the pivot is the best answer both "
    "ways. With more sentences it falls, as each is a rival to all; compare it on the same "
    "text only.",
    "Intervals are of 95 %. Those of LD, MD and retrieval say what other documents of the "
    "same kind would change, those of MEXA other sentences; of retrieval in one direction "
    "they are for independent sentences, and too narrow where documents differ. Differences "
    "are taken on the same text, so their intervals are narrower than those of the two scores "
    "suggest.",
    "Tasks: the score of each language is told from the line through all other languages, so the "
    "error is one on a language whose score is not known; r has an interval by resampling "
    "languages.",
    "Probes are linear, on frozen states: parts of speech (Universal Dependencies) learnt and "
    "tested in each language, word by word, topics (SIB-200) learnt in English, on means of "
    "subwords. Intervals are for independent words or sentences.",
    "The layer is chosen on the text that is reported, so its score is on average a little too "
    "high; chosen on one half of the documents and scored on the other, it is not.",
)


def report_page(
    tables: Mapping[str, pd.DataFrame],
    answers: Sequence[Finding],
    about: Mapping[str, object],
    notes: Sequence[str] = (),
) -> str:
    """The whole page, as HTML.

    ``tables`` as of `tables.report_tables`; ``about`` has ``models``, ``text``, ``languages``,
    ``sentences``, ``quick`` and ``made``; ``notes`` are warnings, each a sentence.
    """
    models = list(map(str, about["models"]))
    quick = " (quick: few sentences, wide intervals)" if about["quick"] else ""
    said = (
        f"{about['sentences']} parallel sentences of {about['text']} in {len(about['languages'])} "
        f"languages{quick}, {about['made']}."
    )
    return _PAGE.substitute(
        title=escape(f"What {' and '.join(models)} shares across languages"
                     if len(models) == 1 else f"{' and '.join(models)} across languages"),
        about=escape(said),
        answers="\n".join(_answered(answers, models)) + _noted(notes),
        figures="\n".join(_drawn(tables, answers)),
        tables="\n".join(_shown_table(name, tables[name]) for name in tables),
        reading="\n".join(f"<p>{escape(text)}</p>" for text in _READING),
    )  # fmt: skip


def _answered(answers: Sequence[Finding], models: Sequence[str]) -> Iterator[str]:
    for question in dict.fromkeys(answer.question for answer in answers):
        yield f"<h3>{escape(question)}</h3>"
        for answer in [answer for answer in answers if answer.question == question]:
            whose = f"<b>{escape(answer.model)}</b>: " if len(models) > 1 else ""
            link = f'<a href="#table-{answer.table}">table</a>'
            yield f"<p>{whose}{escape(answer.sentence)} ({link})</p>"


def _noted(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    lines = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"\n<h3>What to beware of</h3><ul>{lines}</ul>"


def _drawn(tables: Mapping[str, pd.DataFrame], answers: Sequence[Finding]) -> Iterator[str]:
    """Each figure with its caption; its text ends with the answer that it shows."""
    for name, draw in report_figures(tables).items():
        figure = draw()
        text, of = alternative(figure), SHOWN_TABLE.get(name, name)
        answered = next((x for x in answers if x.table in (of, of.replace("points", "fits"))), None)
        said = f" {answered.model}: {answered.sentence}" if answered else ""
        png = picture(figure)
        data, wide = base64.b64encode(png).decode(), int.from_bytes(png[16:20], "big")
        yield (
            f'<figure><img alt="{escape(text + said, quote=True)}" '
            f'style="min-width: {min(wide, _LEGIBLE)}px" '
            f'src="data:image/png;base64,{data}"><figcaption>'
            f'{escape(text.partition(". ")[0])} (<a href="#table-{of}">table</a>).'
            "</figcaption></figure>"
        )


def _shown_table(name: str, table: pd.DataFrame) -> str:
    """A table, its first rows if it is long, with a link to its file."""
    rows = table.head(_MOST_ROWS)
    more = f" (the first {len(rows)} of {len(table)} rows)" if len(table) > len(rows) else ""
    links = " · ".join(f'<a href="tables/{name}.{kind}">{kind}</a>' for kind in ("csv", "parquet"))
    body = rows.to_html(index=False, border=0, float_format="{:.3f}".format, na_rep="")
    return (
        f'<details id="table-{name}"><summary>{escape(HEADINGS[name])}{more}</summary>'
        f"<p>{links}</p>{body}</details>"
    )
