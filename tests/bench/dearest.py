"""Where a chapter's time goes: processor seconds of each cell, and its ten dearest functions.

    python -m tests.bench.dearest mexa-1-alignment ...    # all chapters without a name

Cells run in this process as a kernel runs them, on what the ledger has. Functions are told by
sampling every 10 ms, as a profiler triples the look of small calls: a sample counts for each
function of the repository on the stack, once, so shares hold what a function calls and do not add.
"""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from IPython.core.interactiveshell import InteractiveShell

from notebooks.run.profiles import notebook_path, read_notebook
from xlx.results import paths

EVERY = 0.01
N_SHOWN = 10


@contextmanager
def sampled(counts: Counter[str]) -> Iterator[None]:
    """Count by function of the repository how many samples of this thread hold it."""
    thread, ended = threading.get_ident(), threading.Event()
    rooms = tuple(f"{paths.ROOT}/{x}/" for x in ("xlx", "notebooks"))

    def sample() -> None:
        while not ended.wait(EVERY):
            frame, names = sys._current_frames().get(thread), set()
            while frame is not None:
                file, name = frame.f_code.co_filename, frame.f_code.co_qualname
                if file.startswith(rooms):
                    names.add(f"{os.path.relpath(file, paths.ROOT)}:{name}")
                frame = frame.f_back
            counts.update(names, all=1)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield
    finally:
        ended.set()
        sampler.join()


def measure(stem: str) -> None:
    """Run a chapter and print what it cost."""
    notebook, counts = read_notebook(notebook_path(stem)), Counter()
    shell, seconds = InteractiveShell(), {}
    with sampled(counts), open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                began = time.process_time()
                shell.run_cell(cell.source).raise_error()
                seconds[number] = time.process_time() - began
    n_samples = counts.pop("all", 1)
    print(f"{stem}: {sum(seconds.values()):.1f} s, without the kernel's start")
    cells = sorted(seconds, key=seconds.__getitem__, reverse=True)[:N_SHOWN]
    print("  cells:", ", ".join(f"[{x}] {seconds[x]:.1f}" for x in cells))
    for name, n in counts.most_common(N_SHOWN):
        print(f"  {n / n_samples:4.0%} {name}")


def main() -> None:
    """A chapter in this process, several in one each: what one has loaded the next would have."""
    stems = sys.argv[1:] or sorted(x.stem for x in paths.NOTEBOOKS.glob("*.ipynb"))
    if len(stems) > 1:
        for stem in stems:
            os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-m", __spec__.name, stem)
        return
    os.chdir(paths.NOTEBOOKS)
    sys.path.insert(0, os.getcwd())
    measure(*stems)


if __name__ == "__main__":
    main()
