"""The command line: `htf`.

Exit codes: 0 done; 2 a mistake in the call or the input; 3 the budget does not allow it; 1 a bug in HTF.
Heavy packages are imported inside the commands, so that `htf --help` is fast.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from importlib import import_module
from typing import Any

import click

from htf.base import plugins
from htf.cli import streams
from htf.cli.screen import catch_messages, remark
from htf.errors import BudgetError, HtfError, InputError

# Each has a module of its own, which is loaded when it is used.
COMMANDS = (
    "budget", "check", "compare", "demo", "export", "forecast", "info", "map", "mechanisms", "query",
    "release", "report", "sample", "series", "serve", "verify",
)  # fmt: skip
EXIT_FAULT, EXIT_MISTAKE, EXIT_BUDGET, EXIT_INTERRUPTED = 1, 2, 3, 130
DEBUG_VARIABLE = "HTF_DEBUG"
DEBUG_WARNING = (
    "This traceback may show data. It is for the curator's eyes only: do not pass it on."
)
EPILOG = (
    f"Set {DEBUG_VARIABLE}=1 to see the traceback of an error. A traceback may show data: it is for the "
    "curator's eyes only."
)
# Not bugs of ours: a disk that is full, broken or read-only, too many open files, and files that we may not read
# or whose names are too long.
MACHINE_ERRORS = {
    errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ESTALE,
    errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP,
}  # fmt: skip


class Commands(click.Group):
    """Our own commands, and those that other packages offer through the entry point group `htf.commands`."""

    def list_commands(self, _: click.Context) -> list[str]:
        return sorted({*COMMANDS, *plugins.offers(plugins.COMMANDS)})

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        is_ours = cmd_name in COMMANDS
        may_be_offered = not is_ours or plugins.is_named(plugins.COMMANDS, cmd_name)
        if may_be_offered and cmd_name in plugins.offers(plugins.COMMANDS):
            return _offered(cmd_name, is_ours=is_ours)
        if is_ours:
            return _own(cmd_name)
        if error := plugins.missing(plugins.COMMANDS, cmd_name):
            raise error
        return None

    def invoke(self, ctx: click.Context) -> Any:
        """Click itself would treat a closed pipe as a failure, with exit code 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has seen enough
            streams.give_up()
            ctx.exit(0)


def _own(name: str) -> click.Command:
    made = vars(import_module(f"htf.cli.{name}")).values()
    return next(one for one in made if isinstance(one, click.Command) and one.name == name)


def _offered(name: str, *, is_ours: bool) -> click.Command:
    """The command that another package offers under this name, or one that says why it was refused."""
    try:
        found, where = plugins.load(plugins.COMMANDS, name, is_ours=is_ours)
    except InputError as error:
        return _refused(name, str(error))
    if not isinstance(found, click.Command):
        return _refused(name, f"{where} must be a click.Command")
    return found


def _refused(name: str, reason: str) -> click.Command:
    def refuse(_: tuple[str, ...]) -> None:
        raise InputError(f"the command {name!r:.100} cannot be used: {reason}")

    return click.Command(
        name,
        {"ignore_unknown_options": True, "help_option_names": []},
        refuse,
        [click.Argument(["_"], nargs=-1, type=click.UNPROCESSED)],
        short_help=f"Cannot be used: {reason}",
    )


@click.group(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="htf-dp", prog_name="htf")
def cli() -> None:
    """Publish location data with differential privacy, and query the release."""


def main() -> None:
    """Run the command of this process and exit with its code."""
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
        return _complain_of_machine(error)
    except MemoryError as error:
        return _complain("not enough memory: ask for less at once", EXIT_MISTAKE, error)
    except Exception as error:
        return _complain(_fault(error), EXIT_FAULT, error)
    return 0


def _complain(message: str, code: int, error: BaseException) -> int:
    if os.environ.get(DEBUG_VARIABLE) == "1":
        remark(f"{DEBUG_WARNING}\n{''.join(traceback.format_exception(error))}")
    remark(f"Error: {message}")
    from htf.cli.charging import notes_about_charges  # slow to load

    for note in notes_about_charges(error):
        remark(note)
    return code


def _show(error: click.ClickException) -> int:
    """Show it as Click would, but so that nothing that was typed can control the terminal."""
    message = io.StringIO()
    error.show(message)
    remark(message.getvalue().rstrip("\n"))
    return EXIT_MISTAKE


def _complain_of_machine(error: OSError) -> int:
    reason = error.strerror or type(error).__name__
    if error.errno not in MACHINE_ERRORS:
        return _complain(_fault(error), EXIT_FAULT, error)
    about = "" if error.filename is None else f" ({error.filename})"
    return _complain(f"the system refused: {reason}{about}", EXIT_MISTAKE, error)


def _fault(error: Exception) -> str:
    """Say where it happened. The message is left out because it might quote data."""
    frames = traceback.extract_tb(error.__traceback__)
    places = "\n".join(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return (
        f"this is a bug in HTF ({type(error).__name__}). Please report it with these lines, which hold no "
        f"data:\n{places}"
    )
