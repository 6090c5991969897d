"""The printed numbers and claims of five papers, recomputed: a module a paper."""
