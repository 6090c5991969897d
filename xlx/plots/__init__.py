"""Tidy tables into figures; nothing is computed here.

In goes a table with a row an observation, its columns named by the caller; out comes a matplotlib
figure in one style and one palette by model, saved under a notebook's name (`save`). One module a
lens holds the figures of its paper.
"""

from xlx.plots.style import save, styled

__all__ = ["save", "styled"]
