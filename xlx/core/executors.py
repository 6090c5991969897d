"""Where calls are computed: in this process, in processes beside it, on a Dask cluster.

One generator, `run`, serves `xlx.core.work`: it gives values as they come, with what made them. A
worker writes nothing; settings travel with each call.
"""

import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import joblib

from xlx.core import provenance
from xlx.core.settings import Settings, current, settings

#: Number of the call, place of the value in it, value, provenance.
NumberedValue = tuple[int, int, Any, dict[str, Any]]

#: Times that a call is given to another worker after one was lost with it.
RETRIES = 20


class WorkerError(RuntimeError):
    """A cluster that cannot be used: no answer, no package, another version of it."""


def run(
    function: Callable[..., Any],
    calls: Iterable[tuple[int, tuple]],
    alone: bool,
    side_by_side: bool,
) -> Iterator[NumberedValue]:
    """The values of numbered calls, in the order in which they come.

    Parameters
    ----------
    alone : bool
        A call gives one value; else it returns or yields several.
    side_by_side : bool
        Without a cluster: in processes of one thread each, rather than one after another in this.
    """
    if current().scheduler:
        yield from _on_cluster(function, calls, alone)
        return
    workers = n_workers() if side_by_side else 1
    if workers > 1:
        calls = list(calls)
        workers = min(workers, len(calls))
    if workers < 2:
        for number, arguments in calls:
            for place, (value, made) in enumerate(_values(function, arguments, alone)):
                yield number, place, value, made
        return
    pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    with warnings.catch_warnings():
        # joblib replaces a process whose memory has grown, which torch's does, and says so.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        sent = (
            joblib.delayed(_elsewhere)(function, number, arguments, alone, current())
            for number, arguments in calls
        )
        for number, values in pool(sent):
            for place, (value, made) in enumerate(values):
                yield number, place, value, made


def n_workers() -> int:
    """Processes side by side: as the settings say, else one a core, or one on a GPU."""
    import torch

    if (chosen := current().workers) is not None:
        return chosen
    device = current().device
    on_gpu = torch.cuda.is_available() if device is None else device.startswith("cuda")
    return 1 if on_gpu else joblib.cpu_count()


def _values(
    function: Callable[..., Any], arguments: tuple, alone: bool
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The values of a call with their provenance; seconds are those since the one before."""
    began = time.perf_counter()
    values = function(*arguments)
    for value in [values] if alone else values:
        now = time.perf_counter()
        yield value, {**provenance.environment(), "seconds": round(now - began, 3)}
        began = now
    if isinstance(values, Generator):
        values.close()


def _elsewhere(
    function: Callable[..., Any], number: int, arguments: tuple, alone: bool, own: Settings
) -> tuple[int, list[tuple[Any, dict[str, Any]]]]:
    """A call in another process, under the settings of the one that asks."""
    with settings(**{**vars(own), "progress": False}), one_thread():
        return number, list(_values(function, arguments, alone))


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread: as many processes as cores do the rest."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# --- Dask -----------------------------------------------------------------------------------------


def _on_cluster(
    function: Callable[..., Any], calls: Iterable[tuple[int, tuple]], alone: bool
) -> Iterator[NumberedValue]:
    """Calls on the workers of a running scheduler; a lost worker's calls go to another."""
    try:
        import distributed
    except ImportError:
        raise WorkerError(
            "dask.distributed is not installed: `pip install xlx[cluster]`, or leave the setting "
            "`scheduler` out to work on this machine"
        ) from None
    client = _client(distributed)
    own = {**vars(current()), "scheduler": None, "progress": False}
    needed = {"GPU": 1} if (current().device or "").startswith("cuda") else None
    ours = versions()
    waiting: dict[Any, tuple[int, tuple]] = {}
    lost: dict[int, int] = {}

    def submit(number: int, arguments: tuple) -> Any:
        future = client.submit(
            _on_worker, function, number, arguments, alone, own, ours, pure=False, resources=needed
        )
        waiting[future] = number, arguments
        return future

    ended = distributed.as_completed([submit(*call) for call in calls], loop=client.loop)
    try:
        for future in ended:
            number, arguments = waiting.pop(future)
            error = future.exception()
            if error is None:
                _, values = future.result()
                for place, (value, made) in enumerate(values):
                    yield number, place, value, made
            elif _is_lost(distributed, error) and lost.get(number, 0) < RETRIES:
                lost[number] = lost.get(number, 0) + 1
                ended.add(submit(number, arguments))
            else:
                raise error
            future.release()
    finally:
        client.cancel(list(waiting), force=True)
        client.close()


def _client(distributed: Any) -> Any:
    address = current().scheduler
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise WorkerError(
            f"the scheduler {address} does not answer ({type(error).__name__}): start one with "
            "`dask scheduler`, or check the address"
        ) from None
    ours = versions()
    try:
        for worker, found in client.run(versions, on_error="return").items():
            if isinstance(found, OSError) and found.filename is None:
                continue  # lost while it was asked; another one is asked when it begins to work
            if isinstance(found, Exception):
                raise WorkerError(
                    f"worker {worker} cannot run xlx ({found}): install the same xlx there"
                )
            _check_versions(found, ours, worker)
    except BaseException as error:
        client.close()
        if not isinstance(error, OSError):
            raise
        raise WorkerError(
            f"the scheduler {address} went away while it was asked for its workers "
            f"({type(error).__name__}): start it again"
        ) from None
    return client


def _is_lost(distributed: Any, error: BaseException) -> bool:
    """Whether a call failed with its worker rather than by itself."""
    kinds = (distributed.scheduler.KilledWorker, distributed.comm.CommClosedError)
    return isinstance(error, (*kinds, distributed.client.FutureCancelledError))


def versions() -> dict[str, str]:
    """What has to be the same at both ends: the code of the package, and torch."""
    made = provenance.environment()
    return {
        "xlx": f"{made['xlx']} ({provenance.package_hash()})",
        "torch": str(made["torch"]),
    }


def _check_versions(found: Mapping[str, str], ours: Mapping[str, str], where: str) -> None:
    for name, version in ours.items():
        if found.get(name) != version:
            raise WorkerError(
                f"worker {where} has {name} {found.get(name)} and the caller {name} {version}: "
                "install the same on both"
            )


def _on_worker(
    function: Callable[..., Any],
    number: int,
    arguments: tuple,
    alone: bool,
    own: Mapping[str, Any],
    theirs: Mapping[str, str],
) -> tuple[int, list[tuple[Any, dict[str, Any]]]]:
    """A call on a worker, which has a cache of its own, if it has the caller's code."""
    _check_versions(versions(), theirs, "here")
    here = {name: value for name, value in own.items() if name not in ("cache", "ledger")}
    with settings(**here), one_thread():
        return number, list(_values(function, arguments, alone))
