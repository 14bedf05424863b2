"""The page on the command line, written from the commands themselves: the words of `htf --help`."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator

import click


def commands_page(command: click.Command, name: str, level: int = 2) -> str:
    """Markdown on a command and all below it: how to call it, what it does, its options."""
    return "\n".join(_parts(command, click.Context(command, info_name=name), level))


def _parts(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```text\n{usage}\n```\n"
    yield _text(command.help or "") + "\n"
    rows = [
        row
        for param in command.get_params(context)
        if "--help" not in param.opts and (row := param.get_help_record(context)) and row[1]
    ]
    if rows:
        yield "| option | meaning |\n| --- | --- |"
        yield from (f"| `{cell(option)}` | {cell(escaped(said))} |" for option, said in rows)
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _parts(inner, click.Context(inner, context, name), level + 1)


def _text(said: str) -> str:
    """Paragraphs of a help text. Those after a backspace keep their lines, as on the screen."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(said.split("\f", maxsplit=1)[0]))
    return "\n\n".join(
        "```text\n" + part.replace("\b", "").strip("\n") + "\n```"
        if "\b" in part
        else escaped(part)
        for part in paragraphs
    )


def escaped(said: str) -> str:
    """As text; what stands between backticks stays code."""
    pieces = said.split("`")
    pieces[::2] = [
        re.sub(r"([*_\[\]])", r"\\\1", html.escape(piece, quote=False)) for piece in pieces[::2]
    ]
    return "`".join(pieces)


def cell(said: str) -> str:
    return re.sub(r"\s+", " ", said).replace("|", "\\|")
