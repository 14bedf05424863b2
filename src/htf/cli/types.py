"""Option types for numbers and files that are stricter than Click's.

Click accepts `1_0` as ten, digits of other scripts, and NaN. It takes an empty name for the current folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

from htf.base import numerals

Folder: TypeAlias = Path  # and no file


class InAscii(click.ParamType[Any]):
    """A number that is read strictly, before Click looks at its range."""

    read: Callable[[str], float]
    what: str

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            try:
                value = self.read(value)
            except ValueError:
                self.fail(f"{numerals.shown(value)} is not {self.what}.", param, ctx)
        return super().convert(value, param, ctx)


class WholeNumber(InAscii, click.IntRange):
    """A whole number in a range, in ASCII digits."""

    read, what = staticmethod(numerals.whole), "a whole number"


class Number(InAscii, click.FloatRange):
    """A finite number in a range, in ASCII digits."""

    read, what = staticmethod(numerals.decimal), "a number"


class WholeNumberOr(WholeNumber):
    """A whole number in a range, or one word."""

    def __init__(self, word: str, least: int) -> None:
        super().__init__(least)
        self.word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == self.word:
            return value
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.removesuffix('.')} or {self.word}.", param, ctx)


class FileName(click.Path):
    """The name of a file or a folder, as a Path."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty.", param, ctx)
        if isinstance(value, str) and "\0" in value:
            self.fail(f"{numerals.shown(value)}: no file can have that name.", param, ctx)
        return super().convert(value, param, ctx)
