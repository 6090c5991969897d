"""What lets a training that was stopped go on: its state, whole and sealed, or not there at all."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from xlx.core import store
from xlx.core.store import StoreWarning, written_whole


def save_state(path: Path, left: Mapping[str, Any]) -> None:
    """Keep what lets a run go on in a file, whole or not at all, with its seal."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as beside:
        # By way of Python's file, whose error says why it could not be written.
        with beside.open("wb") as file:
            torch.save(left, file)
        store.append_seal(beside)


def saved_state(path: Path, where: torch.device) -> dict[str, Any] | None:
    """What `save_state` has left in a file, if it can be trusted; else a StoreWarning.

    What cannot is laid aside under another name: it may be days of work that someone can save.
    """
    try:
        store.check_appended(path)
        return torch.load(path, map_location=where, weights_only=True)
    except FileNotFoundError:
        return None
    except (OSError, store.Damaged) as error:
        aside = path.with_name(f"{path.name}.damaged")
        store.remove(aside)
        path.replace(aside)
        warnings.warn(
            f"{path} is not used: {error}; starting anew (it is kept as {aside.name})",
            StoreWarning,
            stacklevel=3,
        )
        return None
