"""Times written in a form that the curator names, such as 07.04.2012 08:30. Light to import.

A form becomes a pattern that decides which text is a time, and whose groups are the parts of that time. So each
text is read by itself, never fails, and means the same on every engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from htf.errors import InputError

if TYPE_CHECKING:
    from ibis.expr.types import IntegerValue, StringValue

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# The part of a time that each directive stands for, and its pattern: with digits as they come, and with two.
PARTS = {
    "Y": ("year", "([0-9]{4})", "([0-9]{4})"),
    "y": ("short year", "([0-9]{2})", "([0-9]{2})"),
    "m": ("month", "(0?[1-9]|1[0-2])", "(0[1-9]|1[0-2])"),
    "b": ("named month", *(f"((?i:{'|'.join(MONTHS)}))[A-Za-z]*[.]?",) * 2),
    "d": ("day", "(0?[1-9]|[12][0-9]|3[01])", "(0[1-9]|[12][0-9]|3[01])"),
    "H": ("hour", "([01]?[0-9]|2[0-3])", "([01][0-9]|2[0-3])"),
    "I": ("hour of 12", "(0?[1-9]|1[0-2])", "(0[1-9]|1[0-2])"),
    "p": ("half", *("([AaPp])[.]?[Mm][.]?",) * 2),
    "M": ("minute", "([0-5]?[0-9])", "([0-5][0-9])"),
    "S": ("second", "([0-5]?[0-9])", "([0-5][0-9])"),
    "z": ("zone", *("([+-][0-9]{2}:?[0-9]{2}|[Zz])",) * 2),
}
SAME_AS = {"B": "b", "e": "d"}
NOT_NEEDED = {"f": "[0-9]{1,9}", "a": "[A-Za-z]+[.]?", "A": "[A-Za-z]+[.]?", "%": "%"}
SHORT = {"T": "%H:%M:%S", "R": "%H:%M", "F": "%Y-%m-%d", "D": "%m/%d/%y"}
KNOWN = ", ".join(f"%{one}" for one in (*PARTS, *SAME_AS, *NOT_NEEDED, *SHORT))
ENOUGH = 0.8  # of texts that must have a likely form
PIVOT = 69  # two digits below it are of this century, as in C and Python
CLOCKS = (
    " %H:%M:%S",
    " %H:%M",
    "",
    " %I:%M:%S %p",
    " %I:%M %p",
    "T%H:%M:%S",
    ", %H:%M:%S",
    ", %H:%M",
)
DATES = (
    "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y",
    "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%Y%m%d", "%Y.%m.%d",
)  # fmt: skip
LIKELY = tuple(date + clock for date in DATES for clock in CLOCKS)


@dataclass(frozen=True)
class TimeFormat:
    """A form of times, in the directives of `strptime`."""

    text: str
    pattern: str
    parts: tuple[str, ...]  # in the order of the pattern's groups

    @classmethod
    def read(cls, text: str) -> TimeFormat:
        """Read `%d.%m.%Y %H:%M`."""
        pattern, parts = _to_pattern(text)
        form = cls(text, rf"^{pattern}\z", tuple(parts))
        form._check()
        return form

    def _check(self) -> None:
        has = set(self.parts)
        if len(has) < len(self.parts):
            raise InputError(f"the form of times {self.text!r} has a part twice")
        complete = has & {"year", "short year"} and has & {"month", "named month"} and "day" in has
        if not complete:
            raise InputError(
                f"the form of times {self.text!r} needs a year, a month and a day, as in '%d.%m.%Y %H:%M'"
            )
        for pair in (("year", "short year"), ("month", "named month"), ("hour", "hour of 12")):
            if set(pair) <= has:
                raise InputError(
                    f"the form of times {self.text!r} has {' and '.join(pair)}: keep one"
                )
        if ("hour of 12" in has) != ("half" in has):
            raise InputError(f"in the form of times {self.text!r}, %I needs %p, and %p needs %I")

    @property
    def has_zone(self) -> bool:
        return "zone" in self.parts

    def matches(self, text: StringValue) -> Any:
        """Whether a text has this form."""
        return text.re_search(self.pattern)

    def seconds(self, text: StringValue) -> IntegerValue:
        """Whole seconds since 1970, as written or, with a zone, in UTC; missing for other text and for days that no
        month has."""
        import ibis

        day = self._date(text).try_cast("date").cast("timestamp").epoch_seconds().cast("int64")
        time: Any = day
        for name, size in (("hour", 3600), ("minute", 60), ("second", 1)):
            if name in self.parts:
                time = time + self._number(text, name) * size
        if "half" in self.parts:
            noon = ibis.ifelse(self._part(text, "half").lower() == "p", 12, 0)
            time = time + (self._number(text, "hour of 12") % 12 + noon) * 3600
        if self.has_zone:
            time = time - seconds_east(self._part(text, "zone"))
        found: IntegerValue = self.matches(text).ifelse(time, None)
        return found

    def _date(self, text: StringValue) -> StringValue:
        import ibis

        if "year" in self.parts:
            year = self._part(text, "year")
        else:
            short = self._part(text, "short year")
            of_this = short.try_cast("int64") < PIVOT
            year = ibis.ifelse(of_this, ibis.literal("20"), ibis.literal("19")).concat(short)
        if "month" in self.parts:
            month = self._part(text, "month").lpad(2, "0")
        else:
            name = self._part(text, "named month").lower()
            numbers = [(one, f"{number:02}") for number, one in enumerate(MONTHS, start=1)]
            month = name.cases(*numbers, else_="00")
        found: StringValue = year.concat("-", month, "-", self._part(text, "day").lpad(2, "0"))
        return found

    def _number(self, text: StringValue, name: str) -> Any:
        return self._part(text, name).try_cast("int64")

    def _part(self, text: StringValue, name: str) -> Any:
        return text.re_extract(self.pattern, self.parts.index(name) + 1)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern.replace(r"\z", r"\Z"))

    def fits(self, text: str) -> bool:
        """Whether a text has this form, for a guess."""
        return self._compiled.match(text) is not None


def seconds_east(zone: Any) -> Any:
    """Seconds east of UTC of a time zone such as +08:00; 0 for others."""
    zone = zone.replace(":", "")
    hours = zone.substr(0, 3).try_cast("int64").coalesce(0)
    minutes = zone.substr(0, 1).concat(zone.substr(3, 2)).try_cast("int64").coalesce(0)
    return hours * 3600 + minutes * 60


def likely_formats(texts: Iterable[str]) -> Sequence[str]:
    """The forms that most of these texts may have: those that fit the most of them, likely ones first."""
    known = [text.strip() for text in texts if text.strip()]
    forms = [TimeFormat.read(text) for text in LIKELY]
    fitting = {form.text: sum(map(form.fits, known)) for form in forms}
    most = max(fitting.values())
    if not known or most < ENOUGH * len(known):
        return ()
    return tuple(text for text, number in fitting.items() if number == most)


def _to_pattern(text: str) -> tuple[str, list[str]]:
    """The pattern of a form, and the parts of a time that its groups are. Where digits of two parts meet, each has
    two."""
    for short, long in SHORT.items():
        text = text.replace(f"%{short}", long)
    pieces = re.findall(r"%-?(.)|([^%]+|%$)", text, re.DOTALL)
    pattern, parts = "", []
    for place, (directive, literal) in enumerate(pieces):
        if literal:
            pattern += re.sub(" +", " +", re.sub(r"([!-/:-@\[-^`{-~])", r"\\\1", literal))
            continue
        name = SAME_AS.get(directive, directive)
        if name in NOT_NEEDED:
            pattern += NOT_NEEDED[name]
        elif name in PARTS:
            part, free, padded = PARTS[name]
            beside = pieces[max(place - 1, 0) : place] + pieces[place + 1 : place + 2]
            meets = any(one in set("YymdHIMS") for one, _ in beside)
            pattern += padded if meets else free
            parts.append(part)
        else:
            raise InputError(f"the form of times {text!r} has %{directive}: known are {KNOWN}")
    return pattern, parts
