"""Text that is safe to show on a terminal, tables, and progress bars."""

from __future__ import annotations

import json
import logging
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import htf
from htf.query.answer_texts import answer_headings, answer_notes, show_answer
from htf.query.columns import PEOPLE

if TYPE_CHECKING:
    from rich.console import Console

    from htf.query.answer import Answer

WIDTH_WITHOUT_TERMINAL = 120
MOST_ROWS_ON_SCREEN = 60
NOT_PLAIN = re.compile(r"[^\n -~]")
JOINERS = "\u200c\u200d"  # some scripts, and emoji of families, need them


def safe_text(text: object, keep: str = "\n\t") -> str:
    """Text for the screen, whoever wrote it. A file may hold codes that control a terminal, reverse the
    direction of writing or hide what follows. Such characters are shown as Python escapes."""
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(one if one in keep or _is_shown(one) else _escaped(one) for one in plain)


def _is_shown(character: str) -> bool:
    is_space = unicodedata.category(character) == "Zs"
    return character.isprintable() or is_space or character in JOINERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def say(text: object) -> None:
    """Print a line for the person who runs the command."""
    print(safe_text(text), flush=True)


def remark(text: object) -> None:
    """Print a line on standard error. If nobody can see it, that is no reason to stop."""
    with suppress(OSError):
        print(safe_text(text), file=sys.stderr, flush=True)


def catch_messages() -> None:
    """Print what other packages report on standard error, safely. Matplotlib, for one, reports characters
    that its fonts lack."""
    warnings.showwarning = lambda message, *_, **__: remark(f"Warning: {message}")
    logging.lastResort = Sayer(logging.WARNING)


class Sayer(logging.Handler):
    """Prints what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        remark(record.getMessage())


def say_json(value: Any) -> None:
    """Print a value as JSON, or a text of JSON. Characters that control a terminal, or that its encoding lacks, become JSON
    escapes. They occur only within strings."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    print(NOT_PLAIN.sub(_in_json, text), flush=True)


def _in_json(matched: re.Match[str]) -> str:
    character = matched[0]
    if _is_shown(character):
        with suppress(UnicodeEncodeError):
            character.encode(sys.stdout.encoding or "utf-8")
            return character
    pair = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pair[start : start + 4]}" for start in range(0, len(pair), 4))


def console(*, stderr: bool = False) -> Console:
    """Rich's console, made safe."""
    from rich.console import Console

    class OurConsole(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            try:
                super().print(*(_made_safe(one) for one in objects), **options)
            except OSError:
                if not stderr:  # where a message that nobody can see is no reason to stop
                    raise

        def on_broken_pipe(self) -> None:
            """Rich would end the program as if something had failed."""
            raise BrokenPipeError

    # Names of districts, for one, may hold square brackets that are not markup.
    screen = OurConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not screen.is_terminal:  # a file or a pipe has no width
        screen.width = WIDTH_WITHOUT_TERMINAL
    return screen


def _made_safe(shown: Any) -> Any:
    return safe_text(shown) if isinstance(shown, str) else shown


@contextmanager
def working(label: str, total: float | None = None) -> Iterator[Callable[[str | float], None]]:
    """A bar for one piece of work, which vanishes in the end. Without a terminal there is none. It yields a function that
    shows a step of the work, or how much of the total is done."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    look = SpinnerColumn(), text, BarColumn(), TimeElapsedColumn()
    with Progress(*look, console=screen, transient=True) as bar:
        task = bar.add_task(safe_text(label, ""), total=total)

        def show(news: str | float) -> None:
            if isinstance(news, str):
                bar.update(task, description=safe_text(news, ""))
            else:
                bar.update(task, completed=news)

        yield show


def show_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Print a table. A column whose header starts with '>' is right-aligned."""
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


def warn(warning: str) -> None:
    """Print a warning on standard error."""
    console(stderr=True).print(f"WARNING: {warning}", style="bold yellow")


def warn_if_not_private(release: htf.Release) -> None:
    """Warn of a release that must not be published, whenever it is made, shown or queried."""
    if not release.private:
        console(stderr=True).print(
            f"NOT PRIVATE: the noise was {release.noise}. For tests and benchmarks only.",
            style="bold red",
        )


def show_whole_answer(answer: Answer) -> None:
    """Print a table of an answer: what tells its rows apart, and the numbers."""
    order: Any = slice(MOST_ROWS_ON_SCREEN)
    if answer.kind == PEOPLE:  # of a coarse grid, most boxes are often empty
        order = (-answer.different_people).argsort(kind="stable")[:MOST_ROWS_ON_SCREEN]
    part = answer.take(order)
    shown, named = part.to_dicts(), part.named
    rows = [
        (*(texts[row] for _, texts in named), *show_answer(numbers, answer.quantity, answer.kind))
        for row, numbers in enumerate(shown)
    ]
    headings = answer_headings(answer.quantity, answer.kind)
    show_table((*(heading for heading, _ in named), *headings), rows)
    if len(answer) > len(rows):
        fewer = ", with fewer" if answer.kind == PEOPLE else ""
        console().print(f"… and {len(answer) - len(rows):,} more{fewer}: use -o FILE.csv or --json")
    show_notes(answer, shown)


def show_notes(answer: Answer, shown: Sequence[Mapping[str, Any]]) -> None:
    """Explain once, below a table, what its numbers are and why some look odd."""
    for note in answer_notes(answer, shown):
        console().print(note + "\n")
