"""The formulas: arrays and tables in, scores with intervals out; nothing is read, loaded or drawn.

`abx` has language and meaning discrimination, exact and by sampled triplets; `mexa` the alignment
with a pivot; `igap` the transfer gap at one training error and the ranking of directions; `mixing`
what is lost within and across languages; `probes` and `probe_training` linear probes of all layers
at once; `sentence_tasks` and `xprobe` the nine tasks of X-Probe and what it reports of them;
`alignment` cosines and what follows from them; `statistics` and `regressions` the intervals.
"""
