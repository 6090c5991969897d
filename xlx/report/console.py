"""The console script ``xlx``: `xlx.report.command`, with threads that do not spin while they wait.

On a machine that does other work, too, spinning takes most of the time there is: a quick report on
a member of the family took 130 seconds, and 7 with threads that sleep. `make` sets the same.
"""

import os


def start() -> int:
    """Run the command; OpenMP reads how to wait when torch is loaded, so that comes first."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from xlx.report import command

        return command.main()
    except KeyboardInterrupt:  # while it is loaded
        return 130
