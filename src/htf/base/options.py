"""Options declared once, as fields of a dataclass that functions and the command line share.

A field gives the meaning and the default of an option. `htf.cli.declared` makes command-line options from
the fields, and functions take the whole dataclass. This module does not depend on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field
from typing import Any

OPTION = "option"
# What an option of two fields may lack: the last with its sign, or either around it.
LAST, EITHER = "last", "either"
AUTO = "auto"  # in place of a number: it follows from a noisy measurement
USUAL_MOST_RECORDS = 2000  # of a person, in an activity, where nothing else is said


@dataclass(frozen=True, slots=True)
class Group:
    """Rarer options that the command line takes by one flag, as in `--read encoding=cp1252`."""

    flag: str
    help: str
    prefix: str = ""  # that the fields have, and the names do not

    @property
    def key(self) -> str:
        """The parameter of a command."""
        return self.flag.removeprefix("--")


@dataclass(frozen=True, slots=True)
class Joint(Group):
    """Two fields that the command line takes as one text, as in `--weight passengers:6`."""

    metavar: str = ""
    sign: str = ":"  # between the two
    last: str = ".*"  # pattern of the last text; else all of it is the first
    may_lack: str = ""  # one of the next two


READ = Group("--read", "How to read the source.")
DEST = Group("--dest", "For trips: where they end.", prefix="dest_")
WEIGHT = Joint(
    "--weight",
    "Column of whole numbers, such as passengers or minutes: each record counts that often, and sums are published. "
    "Weights above W count as W, and fractions are rounded down. Choose W without looking at the data: noise grows "
    "with it.",
    metavar="COLUMN:W",
)
DURING = Joint(
    "--during",
    "Only records of this span of time, by --time and --read utc-offset. A date means midnight, and the end is not "
    "in the span. Either may be left out, as in 2026-03-01, or ,2026-04-01.",
    metavar="FROM,TO",
    sign=",",
    may_lack=EITHER,
)
DISTINCT = Joint(
    "--distinct",
    "With --user: add a table of different people in each box of a grid of N x N boxes, or of NX x NY; or in each "
    "zone or category of a level, such as district, or step of an axis. Each person counts in at most M of them; auto "
    "finds M with noise.  [default of M: auto]",
    metavar="N|NX,NY|LEVEL[:M]",
    last="[0-9]+|auto",  # a level may be named zone:district
    may_lack=LAST,
)


@dataclass(frozen=True, slots=True)
class Option:
    """The form of a field as text."""

    help: str
    metavar: str | None
    flag: str | None  # None: the name of the field
    read: Callable[[str], Any] | None = None  # None: text, or what the type of the field says
    group: Group | None = None
    within: tuple[float, float | None] | None = None  # the least and the largest number
    choices: tuple[str, ...] = ()  # the only texts; none if any will do
    is_argument: bool = False  # without a flag, by its position

    def name(self, field: str) -> str:
        """The name in its group."""
        prefix = "" if self.group is None else self.group.prefix
        return self.flag or field.removeprefix(prefix).replace("_", "-")

    def spoken(self, field: str) -> str:
        """What is typed, for messages: `--within` or `--read encoding`."""
        if isinstance(self.group, Joint):
            return self.group.flag
        if self.group is not None:
            return f"{self.group.flag} {self.name(field)}"
        return (self.flag or f"--{self.name(field)}").split()[-1]

    def words(self, field: str, value: object) -> list[str]:
        """The words of a command that give it this value."""
        if self.group is not None and not isinstance(self.group, Joint):
            return [self.group.flag, f"{self.name(field)}={value}"]
        return [self.spoken(field), str(value)]


def option(
    help: str,
    metavar: str | None = None,
    *,
    default: Any = None,
    flag: str | None = None,
    read: Callable[[str], Any] | None = None,
    group: Group | None = None,
    within: tuple[float, float | None] | None = None,
    choices: Iterable[str] = (),
) -> Any:
    """A field that is an option as well; without a default (MISSING) it has to be given. In a group, `flag` is its name there."""
    form = Option(help, metavar, flag, read, group, within, tuple(choices))
    return field(default=default, metadata={OPTION: form})


def argument(metavar: str | None = None, *, default: Any = MISSING) -> Any:
    """A field that is an argument as well."""
    return field(default=default, metadata={OPTION: Option("", metavar, None, is_argument=True)})


def option_named(declaration: Any, field: str) -> Option:
    """How a field of a dataclass is declared."""
    found: Option = declaration.__dataclass_fields__[field].metadata[OPTION]
    return found


def spoken(declaration: Any, field: str) -> str:
    """What is typed for a field of a dataclass, for messages."""
    return option_named(declaration, field).spoken(field)


def words_of(declaration: Any, field: str, value: object) -> list[str]:
    """The words of a command that give a field of a dataclass this value; to the first of a joint, that of both."""
    return option_named(declaration, field).words(field, value)
