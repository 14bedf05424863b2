"""Answers as text for people: the same numbers as in files and from the server, rounded. Light to import.

Records, different people and weights are whole, so their counts are shown whole. Of split people a place may hold small
fractions, so counts of them below 100 have one decimal.
`maps/browser/static/shared/numbers.js` does the same for a browser.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from htf.estimation.level import OUTSIDE
from htf.privacy.protection import RECORDS, SPLIT, SUM_OF, explain_people
from htf.query.columns import CHANGES, COUNTS, KINDS, MEANS, PEOPLE, Column

if TYPE_CHECKING:
    from htf.query.answer import Answer

WHY_BELOW = "the noise took away more than was there. The true number is not below zero, and so the interval is not."
WHY_AT_THE_END = (
    "the interval comes from the noisy counts of the place, and the best guess from those around it too. Where the guess lies "
    "outside, the interval reaches as far as it does."
)
WITH_DECIMALS = 99.95  # counts of split people below this have one decimal


NO_MEAN = "no record expected"
UNBOUNDED = "unbounded: there may be no record"


def answer_headings(quantity: str, kind: str = COUNTS) -> tuple[str, ...]:
    """The headings of a table on the screen. Counts stand below what they are numbers of."""
    headings = [column.heading for column in KINDS[kind].columns.values() if column.heading]
    over = quantity.rpartition(f" of {SPLIT}")
    if kind == MEANS and over[1]:
        people = SPLIT + over[2].partition(",")[0]
        headings = [people if heading == RECORDS else heading for heading in headings]
    return tuple(f">{heading.format(quantity=quantity)}" for heading in headings)


def show_answer(
    answer: Mapping[str, Any], quantity: str = RECORDS, kind: str = COUNTS
) -> list[str]:
    """The fields of a table on the screen, under `answer_headings`. One has both ends of the interval."""
    if kind == CHANGES:
        return _show_change(answer)
    shown = [(name, column) for name, column in KINDS[kind].columns.items() if column.heading]
    show = _show_mean if kind == MEANS else _show
    return [show(name, column, answer, quantity) for name, column in shown]


def answer_notes(answer: Answer, shown: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines below a table on the screen, of which some rows are `shown`: what was counted, and why numbers look odd."""
    quantity, counted = answer.quantity, answer.counted
    if answer.kind == CHANGES:
        from htf.query.change import unmarked_note

        marks = answer.beyond_noise
        marked = (
            f"Counted: {counted}. {int(marks.sum()):,} of {len(answer):,} changes are more than noise; the chance that any "
            f"of these marks is false is at most {OUTSIDE * 100:g} %."
        )
        notes = [marked, unmarked_note(answer.low, answer.high, marks)]
    elif answer.kind == MEANS:
        notes = [f"Counted: {counted}."]
    elif answer.kind == PEOPLE:
        release = answer.releases[0]
        assert release.distinct is not None
        notes = [explain_people(quantity, *release.distinct.division.place)]
    else:
        odd = below_zero_note(shown, quantity), at_end_note(shown, quantity)
        notes = [counted_note(quantity, counted), *odd]
    return [note for note in notes if note]


def _show_change(row: Mapping[str, Any]) -> list[str]:
    before, after = (show_count(row[name]) for name in ("before", "after"))
    # Of the counts as they are shown, so that a reader who subtracts one from the other finds it.
    shown = float(after.replace(",", "")) - float(before.replace(",", ""))
    low, high = (_signed(end(row[name], shown)) for name, end in (("low", min), ("high", max)))
    marked = "yes" if row["beyond_noise"] else "no"
    return [before, after, _signed(shown), f"{low} to {high}", _show_percent(row), marked]


def _signed(value: float) -> str:
    text = show_count(abs(value))
    return f"{'-' if value < 0 else '+'}{text}" if text.strip("0.,") else text


def _show_percent(row: Mapping[str, Any]) -> str:
    value, low, high = (row[name] for name in ("percent", "percent_low", "percent_high"))
    if math.isnan(value):
        return "none before"
    if math.isinf(low) or math.isinf(high):
        return f"{value:+.0f} % (unbounded)"
    return f"{value:+.0f} % ({low:+.0f} to {high:+.0f})"


def _show_mean(name: str, column: Column, row: Mapping[str, Any], _: str) -> str:
    if name == "mean":
        return NO_MEAN if math.isnan(row["mean"]) else _short(row["mean"])
    if name == "low":
        return f"{_short(row['low'])} to {_short(row['high'])}" if row["bounded"] else UNBOUNDED
    return _show(name, column, row, RECORDS)


def _short(value: float) -> str:
    """Four digits, or all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _show(name: str, column: Column, answer: Mapping[str, Any], quantity: str) -> str:
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
    which = "The count" if len(answers) == 1 else "1 count"
    one, several = (
        f"{which} is an end of its interval",
        f"{number} counts are an end of their intervals",
    )
    return f"{one if number == 1 else several}: {WHY_AT_THE_END}"


def _is_at_end(answer: Mapping[str, float], quantity: str) -> bool:
    """Zero explains itself, and a count below it has a note of its own."""
    count, low, high = (answer[name] for name in ("count", "low", "high"))
    is_end = count in (low, high) and low < high
    return is_end and round(count, _decimals(count, quantity)) > 0
