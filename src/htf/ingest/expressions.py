"""Ibis expressions that turn columns into numbers, identical to the last bit on every engine.

Engines differ in how they write numbers, parse text, truncate times and hash. So constants are built from
whole numbers, a pattern decides which text is a number, times are whole seconds, and digests are standard
ones, never the engine's own.

Every expression is a value, or missing, for every row that can be stored. It never fails, and it does not
rely on a filter before it: engines move filters about and skip those that statistics of a file prove, and
statistics of Parquet files ignore NaN. If one odd row could make a query fail, one record would decide
whether all others are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from hashlib import md5
from typing import Any

import ibis
from ibis.expr.types import (
    BooleanValue,
    FloatingValue,
    IntegerValue,
    NumericValue,
    StringValue,
    Value,
)

from htf.errors import InputError
from htf.ingest.reading import POINT, TIME_UNITS
from htf.ingest.time_formats import TimeFormat, seconds_east

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
WHOLE = r"^[+-]?[0-9]{1,18}\z"
YEAR = r"(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
DATE = rf"{YEAR}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?"
ZONE = r"([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)"
TIME = rf"^{DATE}([Tt ]{CLOCK} ?{ZONE}?)?\z"
ZONED = rf"{CLOCK} ?{ZONE}\z"
SIGNED_ZONE = r"[+-][0-9]{2}(:?[0-9]{2})?\z"

HOUR, DAY = 3600, 86_400
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799  # years 1 to 9999
FIRST_TIME, LAST_TIME = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
LARGEST_WHOLE = 2**63 - 10**10  # with room for a remainder
MICROSECONDS = 6  # digits of a second's fraction
MONDAY_OF_1970 = 3  # the first of January 1970 was a Thursday
DAYS_TO_1970 = 719_468  # since the first of March of the year 0
DAYS_OF_4_YEARS, DAYS_OF_400_YEARS = 1461, 146_097
LARGEST_POWER = 62
# The most digits that DuckDB, Spark and Arrow allow; PostgreSQL allows thousands.
WIDEST_DECIMAL = 76
DOUBLE_DIGITS = 300  # before and after the point, in decimals that a double can represent
SIGNIFICANT_BITS = 53
LARGEST_EXPONENT = 1023  # of a power of two that is a double

KEY_DIGITS = 12  # of a digest: 48 bits, short enough for engines to keep with the row


def constant(value: float) -> FloatingValue:
    """A double that is the same on every engine: a whole number times or divided by powers of two."""
    mantissa, exponent = math.frexp(value)
    number = ibis.literal(int(mantissa * 2**SIGNIFICANT_BITS)).cast("float64")
    left = exponent - SIGNIFICANT_BITS
    while left:
        step = min(abs(left), LARGEST_POWER)
        power = ibis.literal(2**step).cast("float64")
        number = number * power if left > 0 else number / power
        left -= step if left > 0 else -step
    return number


def as_number(column: Value, name: str, text: bool, decimal: str = POINT) -> FloatingValue:
    """Of a text file whatever is not a number is missing; of a table the column must be numeric."""
    kind = column.type()
    if text:
        stripped = _stripped(column)
        number = is_number(column, decimal).ifelse(stripped, None)
        return (number.replace(decimal, POINT) if decimal != POINT else number).try_cast("float64")
    if not (kind.is_numeric() or kind.is_null()) or kind.is_boolean():
        raise InputError(f"column {name!r} must hold numbers, but it holds {_named(kind)}")
    too_wide = kind.is_decimal() and (kind.precision or WIDEST_DECIMAL + 1) > WIDEST_DECIMAL
    return (_for_a_double(column) if too_wide else column).cast("float64")


def is_number(column: Value, decimal: str) -> BooleanValue:
    """Whether a text field is a number with this decimal sign, or a whole one."""
    number: BooleanValue = _stripped(column).re_search(NUMBER.replace(r"\.", rf"\{decimal}"))
    return number


def within(value: FloatingValue, low: float, high: float) -> FloatingValue:
    """The value if it lies in `[low, high)`, else missing. NaN is missing too, because engines sort it
    above every number, unless the engine trusts statistics."""
    kept: FloatingValue = ((value >= constant(low)) & (value < constant(high))).ifelse(value, None)
    return kept


def floor(value: FloatingValue) -> IntegerValue:
    """The whole number at or below a value; missing if there is none, as for NaN.

    Ibis would cast, which fails for NaN. DuckDB and Spark have a cast that is missing instead. Other
    engines do not: give them numbers that are `within` bounds.
    """
    whole: IntegerValue = _floor(value).try_cast("int64")
    return whole


@ibis.udf.scalar.builtin(name="floor", signature=(("float64",), "float64"))  # type: ignore[untyped-decorator]
def _floor(value: FloatingValue) -> FloatingValue:
    """The same as a double, which may be NaN or infinite."""


def is_finite(value: FloatingValue) -> BooleanValue:
    """Whether a value is finite, by a cast that NaN does not survive: engines may answer `isnan` from
    statistics. It is rounded first: PostgreSQL fails where a quotient of something is nothing."""
    largest = math.ldexp(1.0, LARGEST_EXPONENT)
    whole = _floor(within(value, -largest, largest))
    finite: BooleanValue = floor(whole / constant(largest)).notnull()
    return finite


def is_blank(column: Value) -> BooleanValue:
    """Whether a text field is missing, empty, or only spaces."""
    blank: BooleanValue = _stripped(column).nullif("").isnull()
    return blank


def as_person(column: Value, name: str, text: bool) -> Value:
    """Whole numbers, or text unchanged; missing where it is empty."""
    kind = column.type()
    if text:
        return _stripped(column).nullif("")
    if kind.is_string():
        return column.nullif("")
    if kind.is_uuid() or kind.is_uint64() or (kind.is_decimal() and kind.scale == 0):
        return column.cast("string")
    if kind.is_integer():
        return column.cast("int64")
    raise InputError(
        f"column {name!r} must identify people by whole numbers or text, but it holds {_named(kind)} "
        "(pandas turns whole numbers into floats where some are missing: astype('Int64') keeps them)"
    )


def as_label(column: Value, name: str, text: bool) -> StringValue:
    """Text unchanged, or whole numbers as text; missing where it is empty."""
    kind = column.type()
    if text:
        return _stripped(column).nullif("")
    if kind.is_string():
        return column.nullif("")
    if kind.is_integer():
        return column.cast("string")
    raise InputError(
        f"column {name!r} must hold names, as text or whole numbers, but it holds {_named(kind)}"
    )


def place_in_list(label: StringValue, names: Sequence[str], rest: bool, digests: bool) -> Value:
    """The place of a text in a list; missing if it is not there. With `rest`, every other text has the last place.

    With `digests`, digests of texts are compared: a database may treat different texts as equal.
    """

    texts = [md5(name.encode()).hexdigest() for name in names] if digests else names
    other = ibis.literal(len(names) - 1).cast("float64") if rest else ibis.null("float64")
    found: Any = (digest(label) if digests else label).cases(
        *((text, ibis.literal(place).cast("float64")) for place, text in enumerate(texts)),
        else_=other,
    )
    return label.notnull().ifelse(found, None)


def as_seconds(
    column: Value, name: str, text: bool, unit: str, form: TimeFormat | None = None
) -> IntegerValue:
    """Whole seconds since 1970, in UTC if the zone is known, else as written. Missing outside the
    years 1 to 9999: engines differ beyond them, and some have infinite times."""

    kind = column.type()
    if text:
        stripped = _stripped(column)
        return _seconds_of_text(stripped, unit) if form is None else form.seconds(stripped)
    if form is not None:
        raise InputError(
            f"column {name!r} holds {_named(kind)}, not text of the form {form.text!r}: leave out --read time-format"
        )
    if kind.is_timestamp() and (kind.scale or 0) > MICROSECONDS:
        return _seconds_of_number(_nanoseconds(column), "ns")
    if kind.is_timestamp() or kind.is_date():
        # A date may be too far away for a timestamp, so it is bounded first.
        ends = [ibis.literal(end).cast(kind) for end in (FIRST_TIME, _last_time(kind))]
        moment = _between(column, *ends)
        moment = moment.cast("timestamp") if kind.is_date() else moment
        return moment.truncate("s").epoch_seconds().cast("int64")
    if kind.is_integer():
        return _seconds_of_number(column, unit)
    if kind.is_floating():
        value = column.cast("float64") / constant(TIME_UNITS[unit])
        return floor(within(value, FIRST_SECOND, LAST_SECOND + 1))
    raise InputError(
        f"column {name!r} must hold times, but it holds {_named(kind)} (in a query, cast it to a timestamp)"
    )


def kinds_of_time(column: StringValue, form: TimeFormat | None = None) -> dict[str, BooleanValue]:
    """Whether a text field is a time with a zone, a time without, or a number."""
    stripped = _stripped(column)
    is_time, zoned = stripped.re_search(TIME), stripped.re_search(ZONED)
    if form is not None:
        is_time, zoned = form.matches(stripped), ibis.literal(form.has_zone)
    return {
        "zoned": is_time & zoned,
        "bare": is_time & ~zoned,
        "number": stripped.re_search(WHOLE) if form is None else is_time & ibis.literal(False),
        "some": stripped.nullif("").notnull(),
    }


def hour_of_day(seconds: IntegerValue) -> FloatingValue:
    """The hour with its fraction, from 0 to 24."""
    return _positive(seconds, DAY).cast("float64") / constant(HOUR)


def day_number(seconds: IntegerValue) -> IntegerValue:
    """Days since the first of January 1970."""
    return _floor_divide(seconds, DAY)


def weekday(seconds: IntegerValue) -> IntegerValue:
    """The day of the week; 0 is Monday."""
    return _positive(day_number(seconds) + MONDAY_OF_1970, 7)


# What `--axis` may take of a column of times, by the name it is asked for by.
OF_TIME: Mapping[str, Callable[[IntegerValue], NumericValue]] = {
    "hour": hour_of_day,
    "weekday": weekday,
    "day": day_number,
}


def slot(seconds: IntegerValue, once_per: str) -> IntegerValue:
    return _floor_divide(seconds, HOUR if once_per == "hour" else DAY)


def period(seconds: IntegerValue, per: str) -> IntegerValue:
    """A number for each day, week from Monday on, or month of the calendar."""
    days = day_number(seconds)
    if per == "day":
        return days
    return _quotient(days + MONDAY_OF_1970, 7) if per == "week" else _month_number(days)


def _month_number(days: IntegerValue) -> IntegerValue:
    """Months since the year 0, where a year begins with March, its month 3. Its leap day is at its end then, and
    the months before a day follow from their mean length, 153 days in five months (the calendar of Neri and
    Schneider, 2023). By whole numbers, because engines truncate times in different ways. None of the years 1 to
    9999 is negative here, and each step uses the one before it once, or an engine would copy it many times.
    """
    of_centuries = (days + DAYS_TO_1970) * 4 + 3
    of_years = _quotient(of_centuries % DAYS_OF_400_YEARS, 4) * 4 + 3
    day_of_year = _quotient(of_years % DAYS_OF_4_YEARS, 4)
    years = _quotient(of_centuries, DAYS_OF_400_YEARS) * 100 + _quotient(of_years, DAYS_OF_4_YEARS)
    return years * 12 + _quotient(day_of_year * 5 + 461, 153)


def part_of(cell: IntegerValue, cells: int, parts: int) -> IntegerValue:
    """Which of `parts` parts of an axis a cell lies in. Part j begins at cell floor(j * cells / parts), as in
    `htf.frame.grids.even_edges`. Whole numbers stay below 2**43."""
    return _floor_divide((cell + 1) * parts - 1, cells)


def ratio(part: IntegerValue, times: int, whole: IntegerValue) -> IntegerValue:
    """round(times * part / whole) for whole numbers with 0 <= part <= whole, half-way values up.

    Engines divide whole numbers in different ways, but all divide doubles alike. With `times` up to 2**10 and `whole`
    up to 2**40, numerators are exact. A quotient that is no whole number is at least 1 / (2 whole) away from one,
    which is more than the rounding of a double of at most 2**11, so its floor is exact too. Doubles come first,
    because a product of whole numbers may be one of 32 bits and too large for it.
    """
    exact = whole.cast("float64")
    rounded: Any = (part.cast("float64") * (2 * times) + exact) / (exact * 2)
    return rounded.floor().cast("int64")


def key(parts: Sequence[Value]) -> StringValue:
    """The key that records are ranked by: some digits of the MD5 digest of all parts, as good as random.
    It hides nothing. It is a standard, and so the same on every engine."""
    first, *rest = [part.cast("string") for part in parts]
    for part in rest:
        first = first.concat(",", part)
    return digest(first).substr(0, KEY_DIGITS)


@ibis.udf.scalar.builtin(name="md5", signature=(("string",), "string"))  # type: ignore[untyped-decorator]
def digest(text: StringValue) -> StringValue:
    """MD5, in hexadecimal digits."""


def _for_a_double(column: Value) -> Value:
    """A decimal that fits a double, or missing: PostgreSQL fails if it is too large or too small."""
    most = ibis.literal(Decimal(10) ** DOUBLE_DIGITS)
    return _round(_between(column, -most, most), ibis.literal(DOUBLE_DIGITS, "int32"))


@ibis.udf.scalar.builtin(name="round", signature=(("decimal", "int32"), "decimal"))  # type: ignore[untyped-decorator]
def _round(value: Value, digits: Value) -> Value:
    """A decimal with fewer digits."""


def _between(value: Value, low: Any, high: Any) -> Any:
    """The value if it lies between `low` and `high`, else missing."""
    return value.between(low, high).ifelse(value, None)


def _named(kind: Any) -> str:
    """The name of a type without its fields: those of a struct have names from the data."""
    return type(kind).__name__.lower()


def _stripped(column: Value) -> StringValue:
    return column.cast("string").strip()


@ibis.udf.scalar.builtin(name="epoch_ns", signature=(("timestamp",), "int64"))  # type: ignore[untyped-decorator]
def _nanoseconds(column: Value) -> IntegerValue:
    """Nanoseconds since 1970. Only DuckDB has such times, and none is far away. But Ibis would compare
    them with the year 9999, which they cannot represent, and would truncate them towards 1970."""


def _last_time(kind: Any) -> str:
    """The last time, with no more digits than the column has: more would be rounded up to the year 10000."""
    if kind.is_date() or kind.scale is None:
        return LAST_TIME
    return LAST_TIME[: len(LAST_TIME) - max(MICROSECONDS - kind.scale, 0)].rstrip(".")


def _positive(value: IntegerValue, modulus: int) -> IntegerValue:
    """The remainder, never below zero: engines give it the sign of the value."""
    return ((value % modulus) + modulus) % modulus


def _floor_divide(value: IntegerValue, divisor: int) -> IntegerValue:
    """The quotient rounded down. Engines round quotients of whole numbers in different ways. Below 2**51
    a quotient of doubles that is no whole number is never rounded to one. Larger values first lose their
    remainder; then only what a double cannot hold is rounded, far below one half."""
    if divisor == 1:
        return value
    if divisor in (HOUR, DAY):  # of seconds, which are few
        return _quotient(value, divisor)
    exact: Any = (value - _positive(value, divisor)).cast("float64") / constant(divisor)
    return (exact + constant(0.5)).floor().cast("int64")


def _quotient(value: IntegerValue, divisor: int) -> IntegerValue:
    """The quotient rounded down, of values below 2**51."""
    rounded: Any = (value.cast("float64") / constant(divisor)).floor()
    return rounded.cast("int64")


def _seconds_of_text(text: StringValue, unit: str) -> IntegerValue:
    """Seconds from ISO 8601, as in 2017-09-11T08:30:00+08:00, or from a whole number since 1970.

    Engines copy an expression to every place where it is used. So each part is used once or twice, and
    the kind of text is tested once.
    """
    has_seconds = text.substr(16, 1) == ":"
    clock = [_digits(text, 11), _digits(text, 14), has_seconds.ifelse(_digits(text, 17), 0)]
    day = text.substr(0, 10).try_cast("date").cast("timestamp").epoch_seconds().cast("int64")
    time = day - seconds_east(text.substr(10, 40).re_extract(SIGNED_ZONE, 0))
    for part, size in zip(clock, (HOUR, 60, 1), strict=True):
        time = time + part.coalesce(0) * size
    number = _seconds_of_number(text.try_cast("int64"), unit)
    return text.re_search(TIME).ifelse(time, text.re_search(WHOLE).ifelse(number, None))


def _seconds_of_number(whole: IntegerValue, unit: str) -> IntegerValue:
    per = TIME_UNITS[unit]
    first, last = FIRST_SECOND * per, (LAST_SECOND + 1) * per - 1
    within = _between(whole, max(first, -LARGEST_WHOLE), min(last, LARGEST_WHOLE))
    return _floor_divide(within.cast("int64"), per)


def _digits(text: StringValue, start: int) -> IntegerValue:
    return text.substr(start, 2).try_cast("int64")
