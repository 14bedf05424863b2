"""What the commands share: progress, tables on the screen, and text that is safe to show there."""

from __future__ import annotations

import logging
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from htf.cli.types import FileName
from htf.query.answer_texts import interval_note

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task

    from htf.release.release import Release


WIDTH_WITHOUT_TERMINAL = 120
MOST_ROWS_ON_SCREEN = 60
NOT_PLAIN = re.compile(r"[^\n -~]")
JOINERS = "\u200c\u200d"  # which some scripts, and pictures of families, cannot do without

release_argument = click.argument("release_file", metavar="RELEASE", type=FileName())
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace the output if it exists; never a release."
)
where_option = click.option(
    "--where",
    multiple=True,
    metavar="AXIS=LOW:HIGH",
    help="A range of a further axis, such as hour=7:10; may be repeated. Else all of it.",
)


def safe_text(text: object, keep: str = "\n\t") -> str:
    """Text for the screen, whoever wrote it: a file may hold codes that make a terminal do things, or turn
    the direction of writing, or hide what follows. Such characters are shown as Python would write them."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(one if one in keep or _is_shown(one) else _written(one) for one in shown)


def _is_shown(character: str) -> bool:
    is_space = unicodedata.category(character) == "Zs"
    return character.isprintable() or is_space or character in JOINERS


def _written(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def say(text: object, *, err: bool = False) -> None:
    """A line on standard output, or on standard error, for the person who runs the command."""
    if not err:
        print(safe_text(text), flush=True)
        return
    with suppress(OSError):  # a message that nobody can see is no reason to stop
        print(safe_text(text), file=sys.stderr, flush=True)


def catch_messages() -> None:
    """Say what other packages would print to standard error themselves, as Matplotlib does of a character
    that its fonts lack."""
    warnings.showwarning = lambda message, *_, **__: say(f"Warning: {message}", err=True)
    logging.lastResort = Sayer(logging.WARNING)


class Sayer(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage(), err=True)


def say_json(text: str) -> None:
    """JSON on standard output. Characters that a terminal acts upon, or that it lacks, are escaped as JSON
    does it: outside of its strings there are none."""
    print(NOT_PLAIN.sub(_in_json, text), flush=True)


def _in_json(found: re.Match[str]) -> str:
    character = found[0]
    if _is_shown(character):
        with suppress(UnicodeEncodeError):
            character.encode(sys.stdout.encoding or "utf-8")
            return character
    pair = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pair[start : start + 4]}" for start in range(0, len(pair), 4))


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    class OurConsole(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            try:
                super().print(*(_made_safe(one) for one in objects), **options)
            except OSError:
                if not stderr:  # else as in `say`
                    raise

        def on_broken_pipe(self) -> None:
            """Rich would end the program as if something had gone wrong."""
            raise BrokenPipeError

    # What is shown may have square brackets, such as the names of districts, which are not markup.
    found = OurConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not found.is_terminal:  # a file or a pipe has no width of its own
        found.width = WIDTH_WITHOUT_TERMINAL
    return found


def _made_safe(shown: Any) -> Any:
    return safe_text(shown) if isinstance(shown, str) else shown


def described() -> ProgressColumn:
    """What a bar is about, which may be the name of a file."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Described(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(safe_text(task.description, ""))

    return Described()


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on the terminal, gone when it is done; nothing where there is no terminal."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TimeElapsedColumn

    screen = console(stderr=True)
    look = SpinnerColumn(), described(), BarColumn(), TimeElapsedColumn()
    with Progress(*look, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        yield bar


def show_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """A table. A header that starts with '>' has its column right-aligned."""
    from rich import box
    from rich.table import Table

    table = Table(title=safe_text(title, "") or None, box=box.SIMPLE_HEAD, title_justify="left")
    for number, header in enumerate(headers):
        table.add_column(
            safe_text(header.lstrip(">"), ""),
            justify="right" if header.startswith(">") else "left",
            no_wrap=number == 0,
        )
    for row in rows:
        table.add_row(*(safe_text(cell, "\n") for cell in row))
    console().print(table)


def warn_if_not_private(release: Release) -> None:
    """Said whenever a release is made, shown or asked that must not be published."""
    if not release.private:
        console(stderr=True).print(
            f"NOT PRIVATE: the noise was {release.noise}. For tests and benchmarks only.",
            style="bold red",
        )


def show_answer_note(answers: Sequence[Mapping[str, float]]) -> None:
    """Under a table of answers, once: why a count may lie outside of its interval."""
    note = interval_note(answers)
    if note is not None:
        console().print(note + "\n")
