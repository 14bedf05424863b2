"""The command line: `htf`.

Exit codes: 0 done; 2 a mistake in the call or the input; 3 the budget does not allow it; 1 our fault.
Heavy packages are imported inside the commands, so that `htf --help` is quick.
"""

from __future__ import annotations

import errno
import io
import sys
import traceback
from typing import Any

import click

from htf.cli import streams
from htf.cli.analyst import info, query, verify
from htf.cli.budget import budget, told_charges
from htf.cli.curator import mechanisms, release
from htf.cli.demo import demo
from htf.cli.export import export, sample
from htf.cli.forecast import forecast
from htf.cli.maps import draw_map
from htf.cli.researcher import evaluate, paper
from htf.cli.screen import catch_messages, say
from htf.cli.serve import serve
from htf.errors import BudgetError, HtfError

EXIT_FAULT, EXIT_MISTAKE, EXIT_BUDGET, EXIT_INTERRUPTED = 1, 2, 3, 130
# A disk that is full, broken or read-only, a process that has too much open, and files that may not be read
# or whose names are too long, are not our fault.
OF_THE_MACHINE = {
    errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ESTALE,
    errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP,
}  # fmt: skip


class Commands(click.Group):
    """Click itself takes a pipe that was closed for a failure, with exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has seen enough
            streams.give_up()
            ctx.exit(0)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="htf-dp", prog_name="htf")
def cli() -> None:
    """Publish location data with differential privacy, and ask the release for counts."""


COMMANDS = (
    forecast,
    release,
    budget,
    query,
    draw_map,
    info,
    verify,
    export,
    sample,
    serve,
    mechanisms,
    evaluate,
    paper,
    demo,
)
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run a command and leave with the exit code of the contract."""
    try:
        streams.prepare()
        catch_messages()
    except HtfError as error:
        sys.exit(_complain(str(error), EXIT_MISTAKE, error))
    code = run(sys.argv[1:])
    streams.give_up()
    sys.exit(code)


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one return for each way to end
    """Run a command and return its exit code."""
    try:
        cli.main(args=arguments, prog_name="htf", standalone_mode=False)
    except BudgetError as error:
        return _complain(f"The budget does not allow it: {error}", EXIT_BUDGET, error)
    except HtfError as error:
        return _complain(str(error), EXIT_MISTAKE, error)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        return _show(error)
    except (click.Abort, KeyboardInterrupt) as error:
        return _complain("Interrupted.", EXIT_INTERRUPTED, error)
    except OSError as error:
        return _complain_of_system(error)
    except MemoryError as error:
        return _complain("there is not enough memory for this: ask for less", EXIT_MISTAKE, error)
    except Exception as error:
        return _complain(_fault(error), EXIT_FAULT, error)
    return 0


def _complain(message: str, code: int, error: BaseException) -> int:
    say(f"Error: {message}", err=True)
    for note in told_charges(error):
        say(note, err=True)
    return code


def _show(error: click.ClickException) -> int:
    """As Click would, but what was typed is shown so that a terminal does nothing with it."""
    told = io.StringIO()
    error.show(told)
    say(told.getvalue().rstrip("\n"), err=True)
    return EXIT_MISTAKE


def _complain_of_system(error: OSError) -> int:
    reason = error.strerror or type(error).__name__
    if error.errno not in OF_THE_MACHINE:
        return _complain(_fault(error), EXIT_FAULT, error)
    about = "" if error.filename is None else f" ({error.filename})"
    return _complain(f"the system refused it: {reason}{about}", EXIT_MISTAKE, error)


def _fault(error: Exception) -> str:
    """Where it happened, but not the message: that might quote the data."""
    frames = traceback.extract_tb(error.__traceback__)
    places = "\n".join(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return (
        f"this is our fault ({type(error).__name__}), please report it with these lines, which "
        f"hold no data:\n{places}"
    )
