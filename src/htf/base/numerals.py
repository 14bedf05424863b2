"""Reads numbers from text, as people write them in a command or a URL, and in no other form.

Python's own `int` and `float` accept more: they read `1_0` as ten, digits may be Arabic or full-width, and an
exponent may be so large that the number fills the memory. Here a number has ASCII digits, at most one
point, and a short exponent. All functions raise ValueError, as `int` and `float` do.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

LONGEST = 100  # characters; the exact decimal of the smallest unit has far fewer
WHOLE = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def whole(text: str) -> int:
    """`12` or `-3`."""
    return int(_checked(text, WHOLE))


def decimal(text: str) -> float:
    """`1`, `-0.5`, `.5` or `1e-3`, and finite."""
    value = float(_checked(text, DECIMAL))
    if math.isinf(value):
        raise ValueError(f"too large: {shown(text)}")
    return value


def fraction(text: str) -> Fraction:
    """A decimal, or a fraction of two whole numbers such as `1/3`, without rounding."""
    above, slash, below = text.partition("/")
    if not slash:
        return Fraction(_checked(text, DECIMAL))
    if not whole(below):
        raise ValueError(f"nothing can be divided by zero: {shown(text)}")
    return Fraction(whole(above), whole(below))


def shown(value: object) -> str:
    """A value for an error: no longer than a line, even if the number is too long to be written out."""
    try:
        text = str(value)
    except ValueError:
        return "a number of more digits than can be shown"
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _checked(text: str, form: re.Pattern[str]) -> str:
    stripped = text.strip(" ")
    if len(stripped) > LONGEST or form.fullmatch(stripped) is None:
        raise ValueError(f"not a number: {shown(text)}")
    return stripped
