"""Libraries that cost a second or more to import, and that reading stored results does not need."""

import importlib
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)  # from now on without this detour
        return value


def deferred(name: str) -> Any:
    """The module of this name ("torch", "scipy.stats"), imported when something of it is used.

    ImportError is raised there, too. What annotates functions must not be looked up when they are
    defined, so such a module begins with ``from __future__ import annotations``.
    """
    return _Deferred(name)


def without_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under `torch.inference_mode`, which is looked up only when it is called."""

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        return deferred("torch").inference_mode()(function)(*arguments, **options)

    return called
