"""What is still to come, said before results are computed and while they are: hours and disk.

A notebook that runs without a browser (`notebooks.run.runner`) has no terminal of its own:
`Forecast` writes lines to a file beside its journal, which the runner shows as they come
(`shown_lines`).
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from xlx.results.settings import current

#: Seconds after which something is said again; and between two looks at the file.
AGAIN, LOOK = 600.0, 0.5
#: Bytes of the cache that are worth a word.
MUCH = 10**8


def forecast_file(stem: str | None = None, folder: str | None = None) -> Path | None:
    """Where a notebook says what is to come; that of this process, None where there is no run."""
    folder = folder or os.environ.get("XLX_JOURNAL")
    stem = stem or os.environ.get("XLX_NOTEBOOK")
    return Path(folder) / f"{stem}.forecast.txt" if folder and stem else None


class Forecast:
    """Of the results of one call: how many, and after some of them how long and how large.

    Said when the first has come, when twice as many have come as when something was said last, and
    every `AGAIN` seconds. Hours are those so far for a result, times those left; so is the disk,
    by what the cache has grown (weights that are kept, too).
    """

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self.began = self.last = time.time()
        self.due, self.file = 1, forecast_file()
        self._say(f"{total} to be computed")

    def update(self) -> None:
        """One more has come."""
        self.done += 1
        now = time.time()
        if self.file is None or not (self.done >= self.due or now - self.last >= AGAIN):
            return
        self.due, self.last = 2 * self.done, now
        left, spent = self.total - self.done, now - self.began
        if not left or left / self.done * spent < 60:  # not worth a word
            return
        told = f"{self.done} of {self.total} after {_time(spent)}"
        told += f", about {_time(left / self.done * spent)} left"
        grown = _bytes_since(current().cache, self.began)
        if (needed := left / self.done * grown) >= MUCH:
            free = shutil.disk_usage(current().cache).free
            short = ": too few, set XLX_CACHE to another disk" if needed > free else ""
            told += f", {needed / 1e9:.1f} GB more in the cache ({free / 1e9:.1f} GB free{short})"
        self._say(told)

    def _say(self, line: str) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{self.what}: {line}\n")


def _bytes_since(folder: Path, began: float) -> int:
    """Of the files of a cache that were written since, but for downloads."""
    total = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("huggingface", "tools")]
        for name in names:
            try:
                status = os.stat(os.path.join(place, name))
            except OSError:  # gone in between
                continue
            total += status.st_size if status.st_mtime >= began else 0
    return total


def _time(seconds: float) -> str:
    """ "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def shown_lines(file: Path, to: TextIO | None = None) -> Iterator[None]:
    """Show the lines of a file as they are written, on stderr unless another stream is given."""
    ended, to = threading.Event(), to or sys.stderr
    file.unlink(missing_ok=True)

    def follow() -> None:
        place = 0
        while True:
            last = ended.wait(LOOK)
            if file.exists():
                with file.open(encoding="utf-8") as read:
                    read.seek(place)
                    print(read.read(), end="", file=to, flush=True)
                    place = read.tell()
            if last:
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
