"""Periods of a series, such as months: their names, their order, and when they begin and end. Light to import."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from htf.errors import InputError

DAY, WEEK, MONTH, QUARTER, YEAR = "day", "week", "month", "quarter", "year"


@dataclass(frozen=True, slots=True)
class Kind:
    """How the periods of one kind are written, and how long they are."""

    form: str  # for messages
    pattern: str
    rest: str = ""  # of the first day, as ISO 8601 writes it
    days: int = 0
    months: int = 0

    def start(self, text: str) -> date:
        """The first day of a period of that name."""
        year, _, quarter = text.partition("-Q")
        if quarter:
            return date(int(year), 3 * int(quarter) - 2, 1)
        return date.fromisoformat(f"{text}{self.rest}")

    def end(self, start: date) -> date:
        """The first day after a period."""
        if self.days:
            return start + timedelta(days=self.days)
        months = start.year * 12 + start.month - 1 + self.months
        return date(months // 12, months % 12 + 1, 1)


KINDS = {
    DAY: Kind("2026-03-31", r"\d{4}-\d{2}-\d{2}", days=1),
    WEEK: Kind("2026-W13", r"\d{4}-W\d{2}", days=7),
    MONTH: Kind("2026-03", r"\d{4}-\d{2}", "-01", months=1),
    QUARTER: Kind("2026-Q1", r"\d{4}-Q[1-4]", months=3),
    YEAR: Kind("2026", r"\d{4}", "-01-01", months=12),
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
        start = None
        if isinstance(text, str) and re.fullmatch(rule.pattern, text, re.ASCII):
            with suppress(ValueError, OverflowError):
                rule.end(rule.start(text))  # the last ones that a calendar knows have no end
                start = rule.start(text)
        if start is None:
            raise InputError(f"a {kind} is written like {rule.form}, got {text!r}")
        return cls(start, text, kind)

    @property
    def end(self) -> date:
        """The first day after it."""
        return KINDS[self.kind].end(self.start)

    @property
    def seconds(self) -> tuple[int, int]:
        """When it begins and ends, in seconds since 1970, by the clock of the data."""
        since, until = (
            int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
            for day in (self.start, self.end)
        )
        return since, until
