"""Answers as text for people: the same numbers as in files and from the server, rounded. Light to import.

Records, different people and weights are whole, so their counts are shown whole. Of split people a place may hold small
fractions, so counts of them below 100 have one decimal.
`maps/browser/static/shared/numbers.js` does the same for a browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from htf.privacy.protection import RECORDS, SPLIT, SUM_OF, explain_people
from htf.query.columns import COLUMNS, Column

WHY_BELOW = "the noise took away more than was there. The true number is not below zero, and so the interval is not."
WHY_AT_THE_END = (
    "the interval comes from the noisy counts of the place, and the best guess from those around it too. Where the guess lies "
    "outside, the interval reaches as far as it does."
)
WITH_DECIMALS = 99.95  # counts of split people below this have one decimal


def answer_headings(quantity: str) -> tuple[str, ...]:
    """The headings of a table on the screen. Counts stand below what they are numbers of."""
    headings = (column.heading for column in COLUMNS.values() if column.heading)
    return tuple(f">{heading.format(quantity=quantity)}" for heading in headings)


def show_answer(answer: Mapping[str, float], quantity: str = RECORDS) -> list[str]:
    """The fields of a table on the screen, under `answer_headings`. One has both ends of the interval."""
    return [
        _show(name, column, answer, quantity) for name, column in COLUMNS.items() if column.heading
    ]


def _show(name: str, column: Column, answer: Mapping[str, float], quantity: str) -> str:
    if name == "low":
        return show_interval(answer, quantity)
    if column.form is None:
        return show_count(answer[name], quantity)
    return format(answer[name], column.form)


def show_count(value: float, quantity: str = RECORDS) -> str:
    """A count as a whole number or, for few split people, with one decimal; never minus zero."""
    decimals = _decimals(value, quantity)
    rounded = round(value, decimals)
    return format(rounded if rounded else 0.0, f",.{decimals}f")


def _decimals(value: float, quantity: str) -> int:
    return 1 if quantity.startswith(SPLIT) and abs(value) < WITH_DECIMALS else 0


def show_amount(number: str, counted: str) -> str:
    """A number with what it counts: `9 records`, but `9 (sum of passengers)`."""
    return f"{number} ({counted})" if counted.startswith(SUM_OF) else f"{number} {counted}"


def counts_of(counted: str) -> str:
    """`counts of records`, but `sums of passengers`."""
    return f"sums{counted[3:]}" if counted.startswith(SUM_OF) else f"counts of {counted}"


def show_interval(answer: Mapping[str, float], quantity: str = RECORDS) -> str:
    """The 95 % interval of a count."""
    return f"{show_count(answer['low'], quantity)} to {show_count(answer['high'], quantity)}"


def counted_note(quantity: str, counted: str) -> str | None:
    """A line on what exactly was counted; None where the quantity says it all."""
    return explain_people(quantity) or None if counted == quantity else f"Counted: {counted}."


def below_zero_note(answers: Sequence[Mapping[str, float]], quantity: str = RECORDS) -> str | None:
    """A note on why some counts shown lie below zero, outside their intervals; None if none does."""
    number = sum(round(one["count"], _decimals(one["count"], quantity)) < 0 for one in answers)
    if number == 0:
        return None
    which = "1 count is" if number == 1 else f"{number} counts are"
    return f"{'The count is' if len(answers) == 1 else which} below zero: {WHY_BELOW}"


def at_end_note(answers: Sequence[Mapping[str, float]], quantity: str = RECORDS) -> str | None:
    """A note on why some counts are an end of their intervals; None if none is."""
    number = sum(_is_at_end(one, quantity) for one in answers)
    if number == 0:
        return None
    if len(answers) == 1:
        return f"The count is an end of its interval: {WHY_AT_THE_END}"
    which = (
        "1 count is an end of its interval"
        if number == 1
        else f"{number} counts are an end of their intervals"
    )
    return f"{which}: {WHY_AT_THE_END}"


def _is_at_end(answer: Mapping[str, float], quantity: str) -> bool:
    """Zero explains itself, and a count below it has a note of its own."""
    count, low, high = (answer[name] for name in ("count", "low", "high"))
    is_end = count in (low, high) and low < high
    return is_end and round(count, _decimals(count, quantity)) > 0
