"""The IGAP lens: what is lost between languages at one training error (interlingual transfer gap).

Chi et al. (2023). In go a task in several languages (`tasks`) and models to fine-tune; out come the
parts of the error in another language and the gap at equal training error (`transferability`), from
runs that are kept (`transfers`), and which direction of transfer is the better one (`ranking`),
with intervals, beside what translations share as strings (`strings`).
"""

from xlx.igap.tasks import TransferTask, labelled_task, random_task
from xlx.igap.transferability import FITTED, MEAN_TARGET, TOLERANCE, TRAINING_ERRORS
from xlx.igap.transfers import Transfers

__all__ = [
    "FITTED",
    "MEAN_TARGET",
    "TOLERANCE",
    "TRAINING_ERRORS",
    "TransferTask",
    "Transfers",
    "labelled_task",
    "random_task",
]
