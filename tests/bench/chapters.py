"""Where the processor's time goes in chapters: seconds a cell, and the ten dearest functions.

    python -m tests.bench.chapters abx-3-tradeoff

Without names all chapters. Cells run in this process, each under a timer that looks every 10 ms of
processor time at the functions on the stack. A share counts the functions below, too. Long calls
into C lose looks, so shares are rough; seconds are not.
"""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from types import FrameType

import matplotlib
from IPython.core.interactiveshell import InteractiveShell
from matplotlib_inline.backend_inline import configure_inline_support

from notebooks.run.profiles import read_notebook
from xlx.results import paths

_EVERY, _SHOWN = 0.01, 10


def profile(stem: str) -> None:
    """Run a chapter's cells and print what they took."""
    os.environ |= {"XLX_NOTEBOOK": stem, "XLX_FIGURES": "none"}
    os.chdir(paths.NOTEBOOKS)
    sys.path.insert(0, str(paths.NOTEBOOKS))
    looks: Counter[str] = Counter()

    def look(_: int, frame: FrameType | None) -> None:
        functions = set()
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(str(paths.ROOT)) and ".venv" not in file:
                functions.add(f"{file[len(str(paths.ROOT)) + 1 :]}: {frame.f_code.co_name}")
            frame = frame.f_back
        looks.update([*functions, "all"])

    signal.signal(signal.SIGPROF, look)
    shell, seconds = InteractiveShell.instance(), {}
    backend = "module://matplotlib_inline.backend_inline"  # draws as a kernel does
    matplotlib.use(backend)
    configure_inline_support(shell, backend)
    for number, cell in enumerate(read_notebook(paths.NOTEBOOKS / f"{stem}.ipynb").cells):
        if cell.cell_type == "code":
            began = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
            with contextlib.redirect_stdout(io.StringIO()):
                shell.run_cell(cell.source).raise_error()
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds[f"[{number}] {cell.source.splitlines()[0][:60]}"] = time.process_time() - began
    print(f"{stem}: {time.process_time():.1f} processor seconds, imports among them")
    for name, taken in sorted(seconds.items(), key=lambda row: -row[1])[:_SHOWN]:
        print(f"  {taken:6.1f} s  {name}")
    for name, count in looks.most_common(_SHOWN + 1)[1:]:
        print(f"  {count / looks['all']:6.1%}  {name}")


def main() -> int:
    """Of one chapter here, of several in a process each."""
    names = sys.argv[1:] or sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))
    if len(names) == 1:
        profile(*names)
        return 0
    command = [sys.executable, "-m", "tests.bench.chapters"]
    return max(subprocess.run([*command, name]).returncode for name in names)


if __name__ == "__main__":
    sys.exit(main())
