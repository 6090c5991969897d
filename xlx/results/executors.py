"""Where calls are computed: in this process, in processes beside it, on a Dask cluster.

One generator, `run`, serves `xlx.results.work`: it gives values as they come, with what made them.
A worker writes nothing; settings travel with each call.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import joblib

from xlx.results import provenance
from xlx.results.settings import current, settings, usual_device

#: Times that a call is given to another worker after one was lost with it.
RETRIES = 20
#: Seconds that a scheduler has to answer.
PATIENCE = 10
TaggedCall = tuple[Any, tuple]  # what a caller knows a call by, and the call's arguments
ValuesMade = Iterable[tuple[Any, dict[str, Any]]]  # of a call, each with its provenance


class WorkerError(RuntimeError):
    """A cluster that cannot be used: no answer, no package, another version of it."""


def run(
    function: Callable[..., Any], calls: Iterable[TaggedCall], alone: bool, side_by_side: bool
) -> Iterator[tuple[Any, int, Any, dict[str, Any]]]:
    """Tag of a call, place in it, value, provenance: of all calls, in the order in which they come.

    ``alone``: a call gives one value; else it returns or yields several. ``side_by_side``: without
    a cluster, in processes of one thread each, rather than one after another in this.
    """
    if current().scheduler:
        answers = _on_cluster(function, calls, alone)
    elif side_by_side and n_workers() > 1 and len(calls := list(calls)) > 1:
        answers = _in_processes(function, calls, alone)
    else:
        answers = ((tag, _values(function, arguments, alone)) for tag, arguments in calls)
    for tag, values in answers:
        for place, (value, made) in enumerate(values):
            yield tag, place, value, made


def n_workers() -> int:
    """Processes side by side: as the settings say, else one per core, or one on a GPU."""
    on_gpu = usual_device().startswith("cuda")
    return current().workers or (1 if on_gpu else joblib.cpu_count())


def _values(function: Callable[..., Any], arguments: tuple, alone: bool) -> Iterator[Any]:
    """The values of a call with their provenance; seconds are those since the one before."""
    began = time.perf_counter()
    values = function(*arguments)
    for value in [values] if alone else values:
        now = time.perf_counter()
        yield value, {**provenance.environment(), "seconds": round(now - began, 3)}
        began = now


def _elsewhere(
    function: Callable[..., Any],
    tag: Any,
    arguments: tuple,
    alone: bool,
    options: Mapping[str, Any],
) -> tuple[Any, ValuesMade]:
    """A call in another process, under the settings of the one that asks."""
    with settings(**{**options, "progress": False}), one_thread():
        return tag, list(_values(function, arguments, alone))


def _in_processes(
    function: Callable[..., Any], calls: list[TaggedCall], alone: bool
) -> Iterator[tuple[Any, ValuesMade]]:
    workers = min(n_workers(), len(calls))
    pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    with warnings.catch_warnings():
        # joblib replaces a process whose memory has grown, which torch's does, and says so.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield from pool(
            joblib.delayed(_elsewhere)(function, tag, arguments, alone, vars(current()))
            for tag, arguments in calls
        )


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


def _on_cluster(
    function: Callable[..., Any], calls: Iterable[TaggedCall], alone: bool
) -> Iterator[tuple[Any, ValuesMade]]:
    """Calls on the workers of a running scheduler; a lost worker's calls go to another.

    Not by joblib's Dask backend (1.6): where a call is lost with its worker more often than the
    scheduler allows, that never calls back, and its generator waits for ever.
    """
    try:
        import distributed
    except ImportError:
        raise WorkerError(
            "dask.distributed is not installed: `pip install xlx[cluster]`, or leave the setting "
            "`scheduler` out to work on this machine"
        ) from None
    client = _client(distributed)
    # a worker has a cache of its own
    options = {k: v for k, v in vars(current()).items() if k not in ("cache", "ledger")}
    options["scheduler"] = None
    needed = {"GPU": 1} if (current().device or "").startswith("cuda") else None
    ours = versions()
    kinds = distributed.scheduler.KilledWorker, distributed.comm.CommClosedError
    lost_with_worker = (*kinds, distributed.client.FutureCancelledError)
    waiting = {}

    def submit(tag: Any, arguments: tuple, lost: int = 0) -> Any:
        call = function, tag, arguments, alone, options
        future = client.submit(_on_worker, ours, *call, pure=False, resources=needed)
        waiting[future] = tag, arguments, lost
        return future

    ended = distributed.as_completed([submit(*call) for call in calls], loop=client.loop)
    try:
        for future in ended:
            tag, arguments, lost = waiting.pop(future)
            error = future.exception()
            if error is None:
                yield tag, future.result()[1]
            elif isinstance(error, lost_with_worker) and lost < RETRIES:
                ended.add(submit(tag, arguments, lost + 1))
            else:
                raise error
            future.release()
    finally:
        client.cancel(list(waiting), force=True)
        client.close()


def _client(distributed: Any) -> Any:
    """A client of the scheduler that the settings name, all of whose workers have the same code."""
    address, ours, client = current().scheduler, versions(), None
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        for worker, answer in client.run(versions, on_error="return").items():
            if isinstance(answer, OSError) and answer.filename is None:
                continue  # lost while it was asked; another one is asked when it begins to work
            if isinstance(answer, Exception):
                message = f"worker {worker} cannot run xlx ({answer}): install the same xlx there"
                raise WorkerError(message)
            _check_versions(answer, ours, worker)
    except BaseException as error:
        if client is not None:
            client.close()
        if not isinstance(error, OSError | ValueError | TimeoutError):
            raise
        raise WorkerError(
            f"the scheduler {address} does not answer ({type(error).__name__}): start one with "
            "`dask scheduler`, or check the address"
        ) from None
    return client


def versions() -> dict[str, str]:
    """What has to be the same at both ends: the code of the package, and torch."""
    made = provenance.environment()
    package = f"{made['xlx']} ({provenance.package_hash()})"
    return {"xlx": package, "torch": str(made["torch"])}


def _check_versions(theirs: Mapping[str, str], ours: Mapping[str, str], where: str) -> None:
    for name, version in ours.items():
        if theirs.get(name) != version:
            raise WorkerError(
                f"worker {where} has {name} {theirs.get(name)} and the caller {name} {version}: "
                "install the same on both"
            )


def _on_worker(callers: Mapping[str, str], *call: Any) -> tuple[Any, ValuesMade]:
    """A call on a worker, if it has the caller's code."""
    _check_versions(versions(), callers, "here")
    return _elsewhere(*call)
