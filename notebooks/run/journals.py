"""Where a notebook notes what it asks for, so that others know what came from where."""

import contextlib
import json
from pathlib import Path
from typing import Any


def journal(stem: str, folder: Path) -> Path:
    """Where the run of a notebook into ``build/<profile>`` notes what it asks for."""
    return folder / "asks" / f"{stem}.jsonl"


def fresh_journal(stem: str, folder: Path) -> Path:
    """The same, made empty: also a notebook that asks for nothing has one."""
    path = journal(stem, folder).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def read_journal(path: Path) -> list[dict[str, Any]]:
    """What a notebook asked for, one line per ask; a last line being written is left out."""
    asks = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            asks.append(json.loads(line))
    return asks
