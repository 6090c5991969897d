"""From a model to a report: what the lenses say of it, in sentences, tables and figures on a page.

    xlx report path/or/hub-name --quick

Here lenses meet. `tables` puts together what they measure of the models and text of `inputs`,
`sentences` answers each question with the numbers of a row, `figures` are drawn from the tables,
`page` writes what is left: a page to read offline, metadata for a model card. `command` is the
command line, `callbacks` are for a trainer. No measure is made here that a lens has: its function
on the same text gives the same number.
"""
