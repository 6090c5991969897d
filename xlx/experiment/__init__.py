"""Measures asked of subjects on texts: where models, text and formulas meet, and results are kept.

`scoring` has the experiment: measures, subjects and texts, controls among them; `abx_scores` what
such scores hold, `averages` their means with intervals; `mexa_scores` alignment with a pivot, a
language at a time; `probing` probes of words, pairs and topics, `sentence_probes` of sentences;
`grids` what fine-tuned models answer in other languages and across them, `transfers` what of it is
lost.
"""
