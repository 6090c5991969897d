"""Tidy tables into figures; nothing is computed here.

In goes a table with one row per observation, its columns named by the caller, to one of the four
`primitives`; they draw on `Panels`, in one look per model or measure (`look`, `looks`, `handle` for
a legend, `language_label`). A function decorated by `styled` makes a figure of it, `save` keeps it
under a notebook's name, with its text in words.
"""

from xlx.plots.panels import Panels
from xlx.plots.style import handle, language_label, look, looks, save, styled

__all__ = ["Panels", "handle", "language_label", "look", "looks", "save", "styled"]
