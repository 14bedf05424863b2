"""Every option of `read_points`, declared once. Light to import.

The command line derives its options from these fields (htf.cli.points), and `read_points` takes them by name.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from htf.base import arguments
from htf.base.options import AUTO, DURING, READ, WEIGHT, option, spoken
from htf.errors import InputError
from htf.ingest.time_formats import TimeFormat
from htf.privacy import protection as units
from htf.privacy.apart import ToldApart
from htf.privacy.protection import PEOPLE, PERSON, RECORDS, Protection

if TYPE_CHECKING:
    from htf.frame.domain import Domain

DUCKDB, SPARK = "duckdb", "spark"
ENGINES = (DUCKDB, SPARK)
TIME_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # per second
LARGEST_OFFSET = 24 * 3600
POINT, COMMA = DECIMALS = (".", ",")
TEXTS = ("table", "sql", "memory", "crs", "user", "time", "time_format")
OF_UNITS = (("once_per", units.ONCE_PER), ("count", units.COUNTED), ("per", units.PERIODS))
UTF8 = ("utf-8", "utf-8-sig")
# Encodings in which no byte changes how later lines are read, by the names that Python gives them.
STATELESS = re.compile(
    r"ascii|utf-8(-sig)?|utf-(16|32)(-[bl]e)?|cp[0-9]+|iso8859-[0-9]+|koi8-[rtu]|kz1048|mac-[a-z0-9]+|ptcp154|tis-620"
    r"|hp-roman8|palmos|gb2312|gbk|gb18030|big5(hkscs)?|johab|shift_jis(_2004|x0213)?|euc_(kr|jp|jis_2004|jisx0213)"
)


def check_columns(columns: object) -> None:
    """Refuse anything but a list of names. None in it means that the name is to be guessed."""
    expected = "a list of names, one for each axis, such as ['lon', 'lat']"
    for name in arguments.items(columns, "columns", expected):
        if name is not None:
            arguments.text(name, "a name in columns")


def check_encoding(name: str) -> None:
    """Refuse what is no encoding of text, and any in which one record may change how later ones are read."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise InputError(
            f"there is no encoding {name!r}: write it like utf-8, utf-16, cp1252 or latin-1"
        ) from None
    if STATELESS.fullmatch(codecs.lookup(name).name) is None:
        raise InputError(
            f"files in the encoding {name!r} are not read, because one record may change there how others are read: "
            "convert them to utf-8"
        )


def read_offset(text: str) -> int:
    """`+08:00` is 28800 seconds."""
    matched = re.fullmatch(r"([+-])([0-9]{1,2}):?([0-5][0-9])?", text)
    if matched is None:
        raise InputError(
            f"--read utc-offset takes hours and minutes, as in +08:00 or -05:30, got {text!r}"
        )
    seconds = int(matched[2]) * 3600 + int(matched[3] or 0) * 60
    return -seconds if matched[1] == "-" else seconds


def read_moment(text: str) -> int:
    """`2026-03-01` or `2026-03-01T06:00:00` in seconds since 1970, by the clock of the data."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return int(moment.replace(tzinfo=UTC).timestamp())
    raise InputError(
        f"a time is written like 2026-03-01 or 2026-03-01T06:00:00, without a time zone, got {text!r}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Options that say how text files are written."""

    encoding: str | None = option(
        "Encoding of text files, e.g. cp1252 or utf-16.  [default: utf-8]", "NAME", group=READ
    )
    decimal: str = option("Decimal sign of numbers in text.", "SIGN", group=READ, default=POINT)
    skip_lines: int | None = option(
        "Lines of a text file before the one that names the columns.", "N", group=READ
    )
    skip_last: int | None = option(
        "Lines at the end of a text file to leave out, such as totals.", "N", group=READ
    )

    def __post_init__(self) -> None:
        arguments.choice(self.decimal, DECIMALS, "the decimal sign (decimal)")
        for name in ("skip_lines", "skip_last"):
            if getattr(self, name) is not None and arguments.whole(getattr(self, name), name) < 0:
                raise InputError(f"{name} is a number of lines, got {getattr(self, name)}")
        if self.encoding is not None:
            check_encoding(arguments.text(self.encoding, "encoding"))

    @property
    def is_plain(self) -> bool:
        """Whether text files are read as they are: in UTF-8, and from the first line to the last."""
        is_utf8 = self.encoding is None or codecs.lookup(self.encoding).name in UTF8
        return is_utf8 and not self.skip_lines and not self.skip_last


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Written):
    """Options that say how to open the source of records."""

    table: str | None = option(
        "Table of a database, or layer of a file, to read.", "NAME", group=READ
    )
    sql: str | None = option("Or: one SELECT query on a database.", "QUERY", group=READ)
    engine: str = option("What reads files.", "|".join(ENGINES), group=READ, default=DUCKDB)
    memory: str | None = option(
        "Memory that the engine may use, e.g. 4GB. The rest goes to disk.", "SIZE", group=READ
    )

    def __post_init__(self) -> None:
        Written.__post_init__(self)
        arguments.choice(self.engine, ENGINES, "the engine")
        for name in TEXTS:
            if getattr(self, name, None) is not None:
                arguments.text(getattr(self, name), name)
        if self.table is not None and self.sql is not None:
            raise InputError("give a table or a query of the database, not both")


@dataclass(frozen=True, slots=True)
class Reading(Access):
    """Options that say how to open the source, and what its columns mean."""

    # One for each axis, two for zones; None: to be guessed.
    columns: Sequence[str | None] | None = None
    crs: str | None = option(
        "Reference system of the points, if it is not the map's.",
        "CRS",
        flag="points-crs",
        group=READ,
    )
    user: str | None = option(
        "Column naming the person. Epsilon then protects people, not single records.", "COLUMN"
    )
    count: str | None = option(
        "What to count, with --user: (split) people, each of whom counts once, split across their records; or "
        "records, at most K per person.  [default: records with --max-records, else split people]",
        "|".join(reversed(units.COUNTED)),
    )
    per: str | None = option(
        "With --user: epsilon protects a person in one such period, not over all of time. A person counts in "
        "each period.",
        "|".join(units.PERIODS),
    )
    max_records: int | str | None = option(
        "Count records, and keep at most K per person. auto finds the K of least expected error, with noise.",
        "K|auto",
    )
    once_per: str | None = option(
        "Before that, keep one record per person and cell for each hour or day, or overall.",
        "|".join(units.ONCE_PER),
    )
    weight: str | None = option("The column.", group=WEIGHT)
    max_weight: int | None = option("The limit.", group=WEIGHT)
    time: str | None = option(
        "Column of times: ISO 8601, timestamps, or numbers since 1970.", "COLUMN"
    )
    time_unit: str = option(
        "Unit of times that are numbers.", "|".join(TIME_UNITS), group=READ, default="s"
    )
    time_format: str | None = option(
        "Form of times that are text, e.g. '%d.%m.%Y %H:%M'.  [default: ISO 8601]",
        "FORMAT",
        group=READ,
    )
    utc_offset: int = option(
        "Added to times before they are cut into hours and days.",
        "±HH:MM",
        read=read_offset,
        group=READ,
        default=0,
    )
    since: int | None = option("The start.", read=read_moment, group=DURING)
    until: int | None = option("The end.", read=read_moment, group=DURING)
    allow_empty: bool = option(
        "Make a release even if no record is inside; it is then noise alone. For programs, where a missing "
        "release would reveal that there was no record.",
        default=False,
    )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Reading:
        """Those of the arguments of a function that are options here, by the same names."""
        return cls(**{one.name: given[one.name] for one in fields(cls) if one.name in given})

    def __post_init__(self) -> None:
        Access.__post_init__(self)
        arguments.flag(self.allow_empty, "allow_empty")
        if self.columns is not None:
            check_columns(self.columns)
        for name, known in OF_UNITS:
            if getattr(self, name) is not None:
                arguments.choice(getattr(self, name), known, name)
        arguments.choice(self.time_unit, TIME_UNITS, "the unit of times (time_unit)")
        offset = arguments.whole(self.utc_offset, "the offset from UTC in seconds (utc_offset)")
        if abs(offset) > LARGEST_OFFSET:
            raise InputError(f"the offset from UTC must be within a day, got {self.utc_offset} s")
        if self.time_format is not None:
            TimeFormat.read(self.time_format)
        self._check_span()
        self._check_people()
        self._check_weight()

    def _check_span(self) -> None:
        """Refuse a span of time that has no end after its start, or no column of times."""
        for name in ("since", "until"):
            if (given := getattr(self, name)) is not None:
                moment = read_moment(given) if isinstance(given, str) else given
                whole = arguments.whole(moment, f"{name}, in seconds since 1970")
                object.__setattr__(self, name, whole)
                if self.time is None:
                    raise InputError(
                        f"{spoken(self, name)} needs times: name their column with --time (in Python: {name} needs time)"
                    )
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InputError("--during FROM,TO must end after it starts (in Python: since, until)")

    def _check_weight(self) -> None:
        """Refuse a weight without its limit, and weights where nothing can be weighed."""
        if (self.weight is None) != (self.max_weight is None):
            raise InputError(
                "a weight needs a limit: give --weight COLUMN:W (in Python: weight and max_weight)"
            )
        if self.weight is None:
            return
        Protection(weight=self.weight, max_weight=self.max_weight)  # type: ignore[arg-type]
        if self.once_per is not None:
            raise InputError(units.NO_WEIGHT_ONCE)

    def _check_people(self) -> None:
        """Refuse options that need a column of people, or of times, which is not named."""
        once_per, of_hours = self.once_per, self.once_per in ("hour", "day")
        asked = (
            (f"once per {once_per}", once_per is not None, of_hours),
            (f"per {self.per}", self.per is not None, self.per is not None),
            ("counting split people", self.count == PEOPLE, False),
        )
        for what, of_people, of_times in asked:
            for is_needed, name, meaning in (
                (of_people, "user", "applies to people: name the column of people"),
                (of_times, "time", "needs times: name their column"),
            ):
                if is_needed and getattr(self, name) is None:
                    raise InputError(f"{what} {meaning} with --{name} (in Python: {name})")
        if self.count == PEOPLE and self.max_records is not None:
            raise InputError(
                f"where split people are counted, all of their records count: leave out --max-records {self.max_records}, "
                "or count records (--count records; in Python: count)"
            )

    @property
    def form(self) -> TimeFormat | None:
        """The form of times that are text; None for ISO 8601."""
        return None if self.time_format is None else TimeFormat.read(self.time_format)

    @property
    def spans(self) -> bool:
        """Whether only the records of a span of time count."""
        return self.since is not None or self.until is not None

    @property
    def counted(self) -> str:
        """What is counted: split people, where a column names them and no number of records is given."""
        if self.count is not None:
            return self.count
        limited = self.max_records is not None or self.weight is not None
        return RECORDS if self.user is None or limited else PEOPLE

    @property
    def protection(self) -> Protection:
        """What epsilon will protect, and what is counted."""
        if self.user is None:
            if self.max_records is not None:
                raise InputError(
                    "--max-records limits the records per person: name the column of people with --user "
                    "(in Python: user)"
                )
            found = Protection()
        elif self.counted == PEOPLE:
            shares = units.SHARES_OF_A_PERSON
            found = Protection(
                PERSON, once_per=self.once_per, count=PEOPLE, per=self.per, shares=shares
            )
        elif self.max_records is None:
            raise InputError(
                "to count records and protect people, give the number of records to keep per person: --max-records K "
                "(in Python: max_records); or count split people, who need none (--count people; in Python: count)"
            )
        elif isinstance(self.max_records, str) and self.max_records == AUTO:
            raise InputError(
                "max_records='auto' is for htf release and htf.Recipe: here give the number that "
                "htf.best_max_records(activity, epsilon) finds"
            )
        else:
            most = arguments.whole(self.max_records, "max_records")
            found = Protection(PERSON, most, self.once_per, per=self.per)
        if self.weight is None:
            return found
        limit = arguments.whole(self.max_weight, "max_weight")
        return replace(found, weight=self.weight, max_weight=limit)

    @property
    def told_apart(self) -> ToldApart:
        """By which columns people, and their periods, are told apart."""
        return ToldApart(self.user, self.time, self.time_unit, self.utc_offset, self.time_format)

    @property
    def others(self) -> list[str]:
        """The columns that are needed beside those of the axes."""
        return [name for name in (self.user, self.time, self.weight) if name is not None]

    def wanted(self, source: Any, domain: Domain) -> list[str | None]:
        """The names of columns as the caller wrote them, one for each axis; of zones x and y."""
        from htf.ingest.columns import default_columns, inputs
        from htf.ingest.sources import is_arrays

        needed = len(inputs(domain))
        how_many = "as many" if needed == domain.dimensions else f"{needed} (x and y of zones)"
        if is_arrays(source):
            if len(source) != needed:
                raise InputError(
                    f"the map has {domain.dimensions} axes, so it needs {how_many} arrays, got {len(source)}"
                )
            return list(map(str, range(needed)))
        if self.columns is None:
            return default_columns(domain)
        if len(self.columns) != needed:
            given = ", ".join(map(str, self.columns))
            raise InputError(
                f"the map has {domain.dimensions} axes ({', '.join(domain.names)}), so it needs {how_many} "
                f"columns, got {given}"
            )
        return list(self.columns)
