"""What is left of a report: a page to read offline, figures inside."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from pathlib import Path
from string import Template

from pandas import DataFrame

from xlx.plots.panels import Figure
from xlx.plots.style import alternative, picture
from xlx.report.figures import report_figures
from xlx.report.sentences import Finding
from xlx.report.tables import TABLES, Tables
from xlx.results import store

#: Pixels that a wide figure keeps on a narrow screen, where it is moved sideways.
_LEGIBLE = 640
#: Rows of a table on the page; the whole is in its file.
_MOST_ROWS = 40

_FRAME = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="$policy">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, p, li { overflow-wrap: anywhere; } h3 { font-size: 1rem; margin-bottom: 0; }
img { max-width: 100%; height: auto; } figure { margin: 1rem 0; overflow-x: auto; }
figcaption { font-size: 0.9rem; }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto; }
th, td { padding: 0.15rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right; }
</style></head><body><main>
<h1>$title</h1>$body</main></body></html>
""")
_READING = """
LD (language discrimination): how often a sentence is nearer to another one of its language than to
that one's translation; MD (meaning discrimination): to its translation than to another sentence of
that language; over all triplets, so that 0.5 is chance. "Like length" is within a tenth. MEXA: the
share of sentences whose translation in the pivot is the best answer both ways; it falls with more
sentences, as each is a rival to all, so compare it on the same text only. Intervals are of 95 %:
for LD, MD and retrieval over documents, for MEXA over sentences, for correlations over languages;
of retrieval in one direction and of probes they are for independent sentences or words, and too
narrow where documents differ. Differences are of scores on one text. The layer is chosen on the
text that is reported: its score is on average a little too high.
"""


class Html(str):
    """A part of a page that is HTML already."""


def policy(page: str) -> str:
    """The Content-Security-Policy of a page: nothing from elsewhere, no script but those in it.

    ``page``: its HTML before anybody's names are put in. Scripts are let in by their SHA-256
    instead of 'unsafe-inline', as plotly.js draws without eval: of what a name might smuggle in
    nothing runs. Styles are inline everywhere, and plotly.js adds rules of its own.
    """
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(x.encode()).digest()).decode() for x in scripts]
    allowed = " ".join(f"'sha256-{x}'" for x in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def framed(title: str, *parts: str | DataFrame, scripts: str = "") -> str:
    """A page to read offline, of paragraphs, tables and what is `Html` already.

    ``scripts``: a page in one of its frames whose scripts may run (`policy`).
    """
    body = "\n".join(map(_shown, parts))
    return _FRAME.substitute(title=escape(title), body=body, policy=policy(scripts))


def _shown(part: str | DataFrame) -> str:
    if isinstance(part, DataFrame):
        return part.to_html(index=False, border=0, float_format="{:.3f}".format, na_rep="")
    return part if isinstance(part, Html) else f"<p>{escape(part)}</p>"


def write_page(path: Path, content: str, tables: Mapping[str, DataFrame]) -> Path:
    """Write a page, and tables beside it as CSV; gives the page's path.

    Raises `store.StoreError` where the disk is full.
    """
    for name, table in tables.items():
        csv = table.to_csv(index=False).encode()
        store.write_whole(path.parent / f"{name}.csv", csv)
    store.write_whole(path, content.encode())
    return path


def in_text(table: DataFrame) -> str:
    """A table for a terminal."""
    return table.to_string(index=False, float_format="{:.3f}".format, na_rep="")


def shown_figure(figure: Figure, answer: str = "", link: str = "") -> Html:
    """A figure with its caption; its text ends with the answer that it shows."""
    png, text = picture(figure), alternative(figure)
    data, wide = base64.b64encode(png).decode(), int.from_bytes(png[16:20], "big")
    return Html(
        f'<figure><img alt="{escape(text + answer, quote=True)}" '
        f'style="min-width: {min(wide, _LEGIBLE)}px" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(text.partition('. ')[0])}{link}.</figcaption></figure>"
    )


def report_page(
    tables: Tables,
    answers: Sequence[Finding],
    about: Mapping[str, object],
    notes: Sequence[str] = (),
    explorer: str = "",
) -> str:
    """The whole page, as HTML; ``about`` as `report_command` has it, ``notes`` are sentences.

    ``explorer``: a part of the page that is HTML already, or why there is none.
    """
    models = about["models"]
    quick = " (quick: few sentences, wide intervals)" if about["quick"] else ""
    vectors = [f" Vectors of {name}: {model['vector']}." for name, model in models.items()]
    parts = [
        f"{about['sentences']} parallel sentences of {about['text']} in {len(about['languages'])} "
        f"languages{quick}, {about['made']}.{''.join(vectors)}"
    ]
    beware = [Html("<h3>What to beware of</h3>"), *notes] if notes else []
    sections = {
        "Answers": [*_answered(answers, len(models) > 1), *beware],
        "Figures": _drawn(tables, answers),
        "Tables": [_shown_table(name, tables[name]) for name in tables],
        "Explorer": [explorer],
        "How to read it": [_READING],
    }
    links = [f'<a href="#part-{i}">{name}</a>' for i, name in enumerate(sections)]
    parts.append(Html(f'<nav aria-label="Parts">{" · ".join(links)}</nav>'))
    for i, (name, section) in enumerate(sections.items()):
        parts += [Html(f'<h2 id="part-{i}">{name}</h2>'), *section]
    title = f"What {next(iter(models))} shares" if len(models) == 1 else " and ".join(models)
    # A frame of srcdoc is under the policy of the page as well; all data in it are escaped.
    inner = unescape(explorer) if isinstance(explorer, Html) else ""
    return framed(f"{title} across languages", *parts, scripts=inner)


def _answered(answers: Sequence[Finding], several: bool) -> Iterator[Html]:
    """By question; of several models with their names."""
    for question in dict.fromkeys(answer.question for answer in answers):
        yield Html(f"<h3>{escape(question)}</h3>")
        for answer in (x for x in answers if x.question == question):
            whose = f"<b>{escape(answer.model)}</b>: " if several else ""
            link = f'<a href="#table-{answer.table}">table</a>'
            yield Html(f"<p>{whose}{escape(answer.sentence)} ({link})</p>")


def _drawn(tables: Tables, answers: Sequence[Finding]) -> Iterator[Html]:
    """Each figure with its caption; its text ends with the answer that it shows."""
    for name, draw in report_figures(tables).items():
        shown = [f" {x.model}: {x.sentence}" for x in answers if x.table == name]
        yield shown_figure(draw(), "".join(shown[:1]), f' (<a href="#table-{name}">table</a>)')


def _shown_table(name: str, table: DataFrame) -> Html:
    """A table, its first rows if it is long, with a link to its file."""
    rows = table.head(_MOST_ROWS)
    more = f" (the first {len(rows)} of {len(table)} rows)" if len(table) > len(rows) else ""
    links = " · ".join(f'<a href="tables/{name}.{kind}">{kind}</a>' for kind in ("csv", "parquet"))
    return Html(
        f'<details id="table-{name}"><summary>{escape(TABLES[name][0])}{more}</summary>'
        f"<p>{links}</p>{_shown(rows)}</details>"
    )
