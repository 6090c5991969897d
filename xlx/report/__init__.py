"""From a model to a report: what the lenses say of it, in sentences, tables and figures on a page.

    xlx report path/or/hub-name --quick

Here lenses meet. `measures` puts tables together from what they measure, `answers` says a sentence
for each question with the numbers of a row, `page` and `card` write what is left: a page to read
offline, metadata for a model card. `command` is the command line. No number is computed here that a
lens computes: the same call on the same text gives it again.
"""
