"""Measures asked of subjects on texts: where models, text and formulas meet, and results are kept.

`abx_scores` has LD, MD and retrieval of every layer and checkpoint, `surface` those of a bag of
subwords and of length, `mexa_scores` alignment with a pivot and its controls; `probing` probes of
words, pairs and topics; `grids` what fine-tuned models answer in other languages and across them,
`transfers` what of it is lost; `predictors` what frozen states say of transfer.
"""
