"""Queries written as text, on the command line or in a URL: boxes and ranges of axes.

`option` is the name that error messages use, `--where` or `where`. Nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from htf.base.numerals import decimal
from htf.errors import InputError

BOX = "W,S,E,N"


def read_where(
    texts: Sequence[str], option: str = "--where"
) -> dict[str, tuple[float, float] | str]:
    """Ranges of axes, from texts such as `hour=7:10`, and names on them, as in `offence=Assault`."""
    ranges: dict[str, tuple[float, float] | str] = {}
    for text in texts:
        name, equals, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        asked: tuple[float, float] | str = ends.strip()
        with suppress(ValueError):
            asked = (decimal(low), decimal(high)) if colon else asked
        if not (equals and asked):
            raise InputError(
                f"{option} takes AXIS=LOW:HIGH, such as hour=7:10, or AXIS=NAME, got {text!r}"
            )
        if name.strip() in ranges:
            raise InputError(
                f"{option} names {name.strip()} twice: query each range separately, and add the counts"
            )
        ranges[name.strip()] = asked
    return ranges


def read_numbers(text: str, option: str, number: int, form: str) -> list[float]:
    """`number` numbers separated by commas."""
    try:
        values = [decimal(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != number:
        raise InputError(f"{option} takes {form}, {number} numbers with commas, got {text!r}")
    return values


def read_boxes(texts: Sequence[str], option: str = "--box") -> list[list[float]]:
    """Boxes of W,S,E,N, or of more edges if all of them have the same number."""
    lengths = {text.count(",") + 1 for text in texts}
    size = lengths.pop() if len(lengths) == 1 and lengths != {1} else BOX.count(",") + 1
    return [read_numbers(text, option, size, BOX) for text in texts]
