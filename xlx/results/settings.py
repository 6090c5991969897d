"""What holds for all that is computed here: set once, not handed from function to function.

``xlx.settings(dtype="bfloat16")`` holds from there on, ``with xlx.settings(workers=1):`` within.
The environment sets the same: ``XLX_POLICY``, ``XLX_WORKERS``, ``XLX_SCHEDULER``, ``XLX_CACHE``,
``XLX_DTYPE``, ``XLX_TOKEN_BUDGET``.
"""

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from xlx.results import checks, paths

POLICIES = ("use", "only", "ignore")


class SettingsError(ValueError):
    """A setting that there is not, or a value that it cannot have."""


@checks.typed(SettingsError)
@dataclass(frozen=True)
class Settings:
    """The settings and their defaults.

    Policies: "use": a result comes from the ledger, else from the cache, else it is computed.
    "only": from the ledger; a miss is an error. "ignore": all is computed.
    """

    device: str | None = None  #: "cpu", "cuda" ...; None: CUDA where there is one
    #: Weights and arithmetic of frozen models: or "bfloat16", "float16", "tf32".
    dtype: str = "float32"
    #: Most tokens in a batch, padding included; None: 4,096. A GPU of 24 GB wants some ten times as
    #: many. Which rows share a batch moves numbers in their last digits, so it is not part of them.
    token_budget: int | None = None
    device_map: str | None = None  #: of frozen models: "auto" spreads them over devices and disk
    workers: int | None = None  #: processes side by side; None: one per core, or one on a GPU
    scheduler: str | None = None  #: of Dask ("tcp://host:8786"), which gets the work instead
    progress: bool | None = None  #: show bars; None: in a terminal and in JupyterLab
    policy: str = "use"
    cache: Path = paths.CACHE  #: where this machine keeps what it computed
    ledger: Path = paths.RESULTS  #: the results that the repository ships

    def __post_init__(self) -> None:
        checks.one_of(self.policy, POLICIES, "policy", SettingsError)
        for name in ("workers", "token_budget"):
            checks.whole(getattr(self, name), name, SettingsError)


# No ContextVar: a kernel may give each cell a context, and what one sets has to hold in the next.
_current = None


def current() -> Settings:
    """The settings in force: at first those of the environment."""
    global _current
    if _current is None:
        chosen = {}
        for name in ("dtype", "token_budget", "workers", "scheduler", "policy"):
            text = os.environ.get(f"XLX_{name.upper()}") or None
            number = name in ("token_budget", "workers")
            if text and number and not text.isdigit():
                raise SettingsError(f"XLX_{name.upper()} is {text!r}: give a number")
            if text:
                chosen[name] = int(text) if number else text
        _current = Settings(**chosen)
    return _current


def usual_device() -> str:
    """What is computed on: the setting, or CUDA where there is one."""
    import torch

    return current().device or ("cuda" if torch.cuda.is_available() else "cpu")


class settings:
    """Change settings: for good as a statement, for a while as a context.

    Raises SettingsError for an unknown name (with those there are) or value.
    """

    def __init__(self, **changes: Any) -> None:
        names = [field.name for field in fields(Settings)]
        for name in changes:
            checks.one_of(name, names, "setting", SettingsError)
        changes |= {name: Path(changes[name]) for name in ("cache", "ledger") if name in changes}
        global _current
        self._before = current()
        _current = replace(self._before, **changes)

    def __enter__(self) -> Settings:
        return current()

    def __exit__(self, *_: object) -> None:
        global _current
        _current = self._before

    def __repr__(self) -> str:
        return repr(current())
