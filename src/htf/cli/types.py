"""Numbers as options: Click's own take `1_0` for ten, digits of other scripts, and NaN."""

from __future__ import annotations

from typing import Any

import click

from htf import numerals


class WholeNumber(click.IntRange):
    """A whole number in a range, in ASCII digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            try:
                value = numerals.whole(value)
            except ValueError:
                self.fail(f"{numerals.shown(value)} is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)


class Number(click.FloatRange):
    """A finite number in a range, in ASCII digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            try:
                value = numerals.decimal(value)
            except ValueError:
                self.fail(f"{numerals.shown(value)} is not a number.", param, ctx)
        return super().convert(value, param, ctx)
