"""The command line: ``xlx report MODEL``, ``abx``, ``mexa``, ``igap``, ``mixing`` or ``doctor``.

    xlx report path/or/hub-name [ANOTHER ...] [--text FOLDER] [--languages de,en,ja] [--quick]

Each says what it will do and what that takes, and does it. What is computed is kept as it comes: a
run that was stopped goes on where it was when it is started again.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence

import typer

import xlx
from xlx.report import options
from xlx.report.abx_command import Abx
from xlx.report.coverage_command import Mexa
from xlx.report.doctor_command import Doctor
from xlx.report.igap_command import Igap
from xlx.report.mixing_command import Mixing
from xlx.report.report_command import Leave, Report


def application() -> typer.Typer:
    """The commands, and what can be asked without one."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback(help=__doc__.partition("\n")[0])(_common)
    for command in (Report, Abx, Mexa, Igap, Mixing, Doctor):
        app.command()(command)
    return app


def _version(asked: bool) -> None:
    if asked:
        print(f"xlx {xlx.__version__}")
        raise typer.Exit


def _common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True),
) -> None:
    """What can be asked without a command."""


def main(given: Sequence[str] | None = None, leave: Leave | None = None) -> int:
    """Run a command; 0, 2 after a sentence of what is wrong, 130 where it was stopped.

    ``leave`` is called when the page of a report is written, if the options ask for a notebook.
    """
    # names are shown on whatever terminal, or none
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="backslashreplace")
    words = _each_after_its_option(sys.argv[1:] if given is None else given)
    try:
        command = application()([*words], prog_name="xlx", standalone_mode=False)
    except typer.TyperException as error:
        near = getattr(error, "possibilities", None)
        sentence = (
            f"there is no option {error.option_name}: do you mean {near[0]}?"
            if near
            else error.format_message()
        )
        where = error.ctx.command_path if error.ctx else "xlx"
        return options.ended(f"{where}: {sentence} (--help says what there is)")
    if not isinstance(command, options.Command):  # help or version
        return 0
    if isinstance(command, Report):
        command.leave = leave
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
        return options.tried(command, f"xlx {type(command).__name__.lower()}")


def _each_after_its_option(words: Sequence[str], option: str = "--tasks") -> Iterator[str]:
    """The words of a line, ``--tasks a b`` written as ``--tasks a --tasks b``."""
    latest = ""
    for before, word in zip(["", *words], words, strict=False):
        latest = word if word.startswith("-") else latest
        if word != latest == option != before:
            yield option
        yield word


if __name__ == "__main__":
    sys.exit(main())
