"""Periods of a series, such as months: their names, their order, and when they begin and end. Light to import."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from htf.errors import InputError

DAY, WEEK, MONTH, QUARTER, YEAR = "day", "week", "month", "quarter", "year"


@dataclass(frozen=True, slots=True)
class Kind:
    """How the periods of one kind are written."""

    form: str  # for messages
    pattern: str
    start: Callable[[list[int]], date]
    days: Callable[[date], date]  # the first day after the period that begins on this one


def _first_of_month(months: int) -> date:
    return date(months // 12, months % 12 + 1, 1)


def _months_later(day: date, months: int) -> date:
    return _first_of_month(day.year * 12 + day.month - 1 + months)


KINDS = {
    DAY: Kind(
        "2026-03-31",
        r"(\d{4})-(\d{2})-(\d{2})",
        lambda numbers: date(numbers[0], numbers[1], numbers[2]),
        lambda day: day + timedelta(days=1),
    ),
    WEEK: Kind(
        "2026-W13",
        r"(\d{4})-W(\d{2})",
        lambda numbers: date.fromisocalendar(numbers[0], numbers[1], 1),
        lambda day: day + timedelta(days=7),
    ),
    MONTH: Kind(
        "2026-03",
        r"(\d{4})-(\d{2})",
        lambda numbers: date(numbers[0], numbers[1], 1),
        lambda day: _months_later(day, 1),
    ),
    QUARTER: Kind(
        "2026-Q1",
        r"(\d{4})-Q([1-4])",
        lambda numbers: date(numbers[0], 3 * numbers[1] - 2, 1),
        lambda day: _months_later(day, 3),
    ),
    YEAR: Kind(
        "2026",
        r"(\d{4})",
        lambda numbers: date(numbers[0], 1, 1),
        lambda day: date(day.year + 1, 1, 1),
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """One period: its first day, and its name. Periods of one kind are in the order of time."""

    start: date
    name: str
    kind: str

    @classmethod
    def read(cls, text: str, kind: str) -> Period:
        """`2026-03` is a month."""
        rule = KINDS[kind]
        matched = re.fullmatch(rule.pattern, text, re.ASCII) if isinstance(text, str) else None
        try:
            start = None if matched is None else rule.start([int(one) for one in matched.groups()])
            if start is not None:
                rule.days(start)  # the last ones that a calendar knows have no end
        except (ValueError, OverflowError):
            start = None
        if start is None:
            raise InputError(f"a {kind} is written like {rule.form}, got {text!r}")
        return cls(start, text, kind)

    @property
    def end(self) -> date:
        """The first day after it."""
        return KINDS[self.kind].days(self.start)

    @property
    def seconds(self) -> tuple[int, int]:
        """When it begins and ends, in seconds since 1970, by the clock of the data."""
        since, until = (
            int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
            for day in (self.start, self.end)
        )
        return since, until
