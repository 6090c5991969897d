"""The X-Probe lens: nine probing tasks for sentence encoders mapped across languages.

Ravishankar, Øvrelid and Velldal (2019). In go dependency trees and word vectors of several
languages; out come tasks (`probing_tasks`), encoders trained in one language and mapped to others
(`encoder_recipes`), what is read off their vectors (`sentence_probing`), and what the paper reports
of that (`relative_accuracies`, `rank_correlations`). `experiments` has what the notebooks ask.
"""

from xlx.xprobe.summaries import gains, mean_sd, rank_correlations, relative_accuracies

__all__ = ["gains", "mean_sd", "rank_correlations", "relative_accuracies"]
