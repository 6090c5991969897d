"""The printed numbers and claims of five papers, recomputed: one module per paper."""
