"""From a model to a report: what the lenses say of it, in sentences, tables and figures on a page.

    xlx report path/or/hub-name --quick

`tables` are what is measured of the models and text of `inputs`, `sentences` answer questions with
the numbers of a row, `figures` are drawn from the tables, `page` is what is left: a page to read
offline. `command` is the command line, whose commands are classes with their options as fields
(`options`); `callbacks` are for a trainer.
"""
