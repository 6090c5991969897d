"""One loop for all that takes long: what is missing is computed, kept, and can be stopped anywhere.

`results` is asked for values of a `Kind` by what decides them; they come, as `xlx.settings` says,
from the ledger ``data/results``, which the repository ships and nothing here writes; from the cache
of this machine; or from the kind's function, on processes of this machine or a Dask cluster, each
kept in the cache as it comes. The caller alone writes, so workers need no disk in common.

    FERTILITY = work.Kind("fertility", _fertility, version=1)
    value = work.result(FERTILITY, {"model": fingerprint, "text": text_hash}, name, corpus)
"""

import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from xlx.results import checks, executors, progress, provenance
from xlx.results.ledger import Ask, Cache, Entry, Ledger, Value
from xlx.results.settings import current
from xlx.results.store import StoreError, StoreWarning

#: By name, every kind of result there is; of a kind that functions share: by its name and theirs.
KINDS = {}


#: Folder of what the audit has computed again, beside its sample.
COMPUTED = "computed"


class MissingResultError(LookupError):
    """The policy "only" and a result that the ledger has not; names the command that makes it."""


def largest_difference(stored: Value, computed: Value) -> float:
    """The largest absolute difference of two values' numbers; inf where anything else differs."""
    pairs = [(np.asarray(stored[x]), np.asarray(computed.get(x, ()))) for x in stored]
    if set(stored) != set(computed) or any(a.shape != b.shape for a, b in pairs):
        return np.inf
    largest = 0.0
    for a, b in pairs:
        if a.dtype.kind in "iuf" and b.dtype.kind in "iuf":
            a, b = a.astype(float), b.astype(float)
            differ = (a != b) & ~(np.isnan(a) & np.isnan(b))
            apart = np.abs(a[differ] - b[differ]).max(initial=0.0)
            largest = max(largest, float(np.nan_to_num(apart, nan=np.inf, posinf=np.inf)))
        elif not all(x == y or (x != x and y != y) for x, y in zip(a.flat, b.flat, strict=True)):
            return np.inf
    return largest


def difference_of(compared: Callable[[Value], Value]) -> Callable[[Value, Value], float]:
    """The largest difference of what is ``compared`` of two values."""
    return lambda stored, computed: largest_difference(compared(stored), compared(computed))


@checks.typed()
@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of result, of a name unique in the package: its cut function and what is promised.

    ``compute``, a function of a module, is given the arguments of a call and returns, or yields, a
    value for each ask of the call. ``side_by_side``: calls run in processes of one thread each,
    else one after another in this one.
    """

    name: str
    compute: Callable[..., Any]
    version: int = 1  #: raised by hand when a change of the method means other numbers
    tolerance: float = 1e-6  #: the largest `difference` between two machines' values
    difference: Callable[[Value, Value], float] = largest_difference  #: of stored and computed
    side_by_side: bool = False
    shared_seconds: float = 0.0  #: that a value alone takes more, as neighbours share a model, say
    function: str = ""  #: of those that share the kind: its name, which is part of every ask

    def __post_init__(self) -> None:
        KINDS[f"{self.name} {self.function}".rstrip()] = self

    def ask(self, about: Mapping[str, Any]) -> Ask:
        """The ask of what `about` describes, by the present version."""
        whole = {**about, "function": self.function} if self.function else about
        return Ask(self.name, whole, self.version)

    @property
    def code(self) -> str:
        """The hash of the code that computes it now (`provenance.code_hash`)."""
        return provenance.code_hash(self.compute)


def kind_name(kind: str, ask: str) -> str:
    """By what `KINDS` has the kind of an entry with this ask."""
    return kind if kind in KINDS else f"{kind} {json.loads(ask).get('function', '')}".rstrip()


#: Positions of asks, and the arguments of the call that answers them.
Call = tuple[Sequence[int], tuple]


@checks.typed()
def result(kind: Kind, about: Mapping[str, Any], *arguments: Any) -> Value:
    """One value: that of ``about``, or ``kind.compute(*arguments)``, which returns it alone."""
    (value,) = results(kind, [about], lambda missing: [(missing, arguments)], alone=True)
    return value


def results(
    kind: Kind,
    abouts: Sequence[Mapping[str, Any]],
    calls: Callable[[list[int]], Iterable[Call]],
    *,
    what: str = "",
    alone: bool = False,
    uncomputable: Collection[int] = (),
    hold: Callable[[int, Value], Any] = lambda _, value: value,
) -> list[Any]:
    """The values of many asks, in their order.

    Parameters
    ----------
    abouts : sequence of mapping
        What decides each value: text, numbers, lists, dictionaries, and `Ask`s inside.
    calls : callable
        Positions of the asks that are missing, if any → calls, each of the positions that it
        answers and the arguments for ``kind.compute``; in this process read one by one.
    what : str
        For the progress bar.
    alone : bool
        A call returns the value of its one ask, not a list of values.
    uncomputable : collection of int
        Positions of asks that nothing here can answer, such as of weights that are not shipped:
        what is stored is taken under every policy, None where nothing is.
    hold : callable
        Position and value → what of it stays in memory; called as each comes.

    Raises MissingResultError under the policy "only" where the ledger lacks a value.
    """
    asks = [kind.ask(about) for about in abouts]
    first = {}
    for position, ask in enumerate(asks):
        first.setdefault(ask, position)
    sampled = _sample(os.environ.get("XLX_AUDIT", ""), os.environ.get("XLX_NOTEBOOK", ""))
    values = {}
    again = []
    for ask, position in first.items():
        fixed = position in uncomputable
        entry, origin = _look_up(ask, fixed)
        if entry is None:
            continue
        values[ask] = hold(position, entry.value)
        _journal.add(ask, origin, entry)
        if origin == "ledger" and ask.identity in sampled and not fixed:
            again.append(position)
    missing = [
        position
        for ask, position in first.items()
        if ask not in values and position not in uncomputable
    ]
    if missing and current().policy == "only":
        notebook = os.environ.get("XLX_NOTEBOOK", "")
        raise MissingResultError(
            f"{notebook or 'this call'} asks for {len(missing)} results of the kind {kind.name!r} "
            f"that {current().ledger} lacks: {asks[missing[0]].text} ...; `make figures "
            f"ONLY={notebook}` computes them, and then `make results` puts them there"
        )
    if missing:
        computed = _computed(kind, calls(missing), alone)
        for position, value, made in progress.forecast(computed, what or kind.name, len(missing)):
            values[asks[position]] = hold(position, _kept(asks[position], value, made))
        if absent := [asks[i].text for i in missing if asks[i] not in values]:
            raise RuntimeError(f"{kind.name}: no call answered the ask {absent[0]}")
    if again:
        beside = Cache(Path(os.environ["XLX_AUDIT"]).with_name(COMPUTED))
        for position, value, made in _computed(kind, calls(again), alone):
            if position in again:
                beside.put(asks[position], value, made)
    return [values.get(ask) for ask in asks]


@lru_cache(maxsize=4)
def _ledger(root: Path) -> Ledger:
    return Ledger(root)


def cache() -> Cache:
    """Of the policy "ignore" one of its own."""
    folder = "reproduction" if current().policy == "ignore" else "results"
    return Cache(current().cache / folder)


def _look_up(ask: Ask, fixed: bool = False) -> tuple[Entry | None, str]:
    policy = current().policy
    # some kinds computed from nothing, the others taken as they are: `notebooks.run.reproduction`
    chosen = (os.environ.get("XLX_KINDS") or ask.kind).split()
    ignored = policy == "ignore" and ask.kind in chosen and not fixed
    if not ignored and (entry := _ledger(current().ledger).get(ask)):
        return entry, "ledger"
    if policy != "only" and (entry := cache().get(ask)):
        return entry, "cache"
    return None, ""


def _computed(
    kind: Kind, calls: Iterable[Call], alone: bool
) -> Iterator[tuple[int, Value, dict[str, Any]]]:
    """Position, value and provenance of everything that the calls answer, as it comes."""
    code, answers = kind.code, executors.run(kind.compute, calls, alone, kind.side_by_side)
    for positions, place, value, made in answers:
        yield positions[place], value, {**made, "code": code}


def _kept(ask: Ask, value: Value, made: dict[str, Any]) -> Value:
    """Keep a computed value and give it as it is read back, so that a second run has the same."""
    try:
        made = {**made, **provenance.predictions_of(ask.text)}
        entry = cache().put(ask, value, made)
    except StoreError as error:
        warnings.warn(f"a result is not stored: {error.strerror or error}", StoreWarning, 3)
        _journal.add(ask, "unsaved", None)
        return value
    _journal.add(ask, "computed", entry)
    return entry.value


@lru_cache(maxsize=1)
def _sample(path: str, notebook: str) -> frozenset[str]:
    """Of the entries that the audit wants computed again (`notebooks.run.audit`) those here."""
    lines = map(str.split, Path(path).read_text("utf-8").splitlines()) if path else ()
    return frozenset(identity for identity, *where in lines if not where or notebook in where)


@dataclass
class _Journal:
    """What this process asked for, and where it came from."""

    origins: dict[tuple[str, str], str] = field(default_factory=dict)  # by who asks, and identity
    makers: Counter[str] = field(default_factory=Counter)

    def add(self, ask: Ask, origin: str, entry: Entry | None) -> None:
        # what was computed here stays so when it is asked for again
        made = entry.made if entry else {}
        asked = os.environ.get("XLX_NOTEBOOK", ""), ask.identity
        if asked in self.origins:
            return
        self.origins[asked] = origin
        if origin == "ledger":
            self.makers[f"{made['cpu']}, torch {made['torch']}, {made['date']}"] += 1
        if folder := os.environ.get("XLX_JOURNAL"):
            name = os.environ.get("XLX_NOTEBOOK") or f"process-{os.getpid()}"
            path = Path(folder) / f"{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                seconds = float(made.get("seconds") or 0)
                line = {"kind": ask.kind, "identity": ask.identity, "from": origin}
                file.write(json.dumps({**line, "seconds": seconds}) + "\n")


_journal = _Journal()


def report() -> None:
    """Print where the results of this process came from, in one line."""
    counts, makers = Counter(_journal.origins.values()), _journal.makers.most_common()
    more = f" and {len(makers) - 1} more" if len(makers) > 1 else ""
    parts = {
        f"{counts['ledger']} from the ledger" + (f" ({makers[0][0]}{more})" if makers else ""): 1,
        f"{counts['cache']} from the cache": counts["cache"],
        f"{counts['computed'] + counts['unsaved']} computed here": 1,
        f"{counts['unsaved']} of them not stored": counts["unsaved"],
    }
    counted = ", ".join(part for part, there in parts.items() if there)
    print(f"{len(_journal.origins)} results: {counted}")
