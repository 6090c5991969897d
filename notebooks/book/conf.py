"""Settings of Sphinx for the book: nothing is executed, nothing comes from another host."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx

project = "What do multilingual Transformers share?"
author = "the xlx authors"
language = "en"
extensions = ["myst_nb"]
html_theme = "sphinx_book_theme"
html_title = project
html_theme_options = {
    "show_toc_level": 2,
    "max_navbar_depth": 1,
    "home_page_in_toc": True,
    "navigation_with_keys": False,
    "use_download_button": False,
    "navbar_persistent": [],  # one field to search in, that of the sidebar, is enough
}
html_sidebars = {"**": ["navbar-logo.html", "search-field.html", "sbt-sidebar-nav.html"]}
html_extra_path = ["_code"]
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
# Pages that Sphinx has not made, or a place in one: the address stands as it is.
myst_url_schemes = {
    **dict.fromkeys(("http", "https", "mailto")),
    "code": {"url": "{{path}}#{{fragment}}"},
}
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True


# The theme writes scripts and styles into its pages, so those stay; "file:" is a book on disk.
POLICY = (
    "default-src 'self' file: data: 'unsafe-inline'; object-src 'none'; base-uri 'none'; "
    "form-action 'self' file:"
)

#: What may scroll on a narrow screen: pictures, outputs, tables, formulas of their own.
SCROLLING = (
    ("<p", "><img"),
    ("<div", ' class="cell_output'),
    ("<table", ""),
    ('<div class="math"><math', ""),
)


def inline(self: object, node: object) -> None:
    """A formula in a line, as MathML, which browsers draw themselves."""
    self.body.append(convert(node.astext()))
    raise SkipNode


def display(self: object, node: object) -> None:
    """A formula of its own."""
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def restricted(app: Sphinx, page: str, template: str, context: dict, tree: object) -> None:
    """A page that loads and runs nothing from another host, whose folds are called as they read.

    What scrolls on a narrow screen can be reached by keyboard.
    """
    meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    context["metatags"] = meta + context.get("metatags", "")
    body = context.get("body", "").replace(' aria-label="Toggle hidden content"', "")
    for tag, rest in SCROLLING:
        body = body.replace(tag + rest, f'{tag} tabindex="0"{rest}')
    context["body"] = body


def setup(app: Sphinx) -> None:
    """Formulas as MathML, and a policy in every page."""
    app.connect("html-page-context", restricted)
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
