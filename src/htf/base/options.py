"""Options declared once, as fields of a dataclass that functions and the command line share.

A field gives the meaning and the default of an option. `htf.cli.declared` makes command-line options from
the fields, and functions take the whole dataclass. This module does not depend on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

OPTION = "option"
AUTO = "auto"  # in place of a number: it follows from a noisy measurement
USUAL_MOST_RECORDS = 2000  # of a person, in an activity, where nothing else is said


@dataclass(frozen=True, slots=True)
class Option:
    """The form of a field as text."""

    help: str
    metavar: str | None
    flag: str | None  # None: the name of the field
    read: Callable[[str], Any] | None  # None: text, or what the type of the field says


def option(
    help: str,
    metavar: str | None = None,
    *,
    flag: str | None = None,
    read: Callable[[str], Any] | None = None,
) -> Mapping[str, Option]:
    """The metadata of a field that is an option as well."""
    return {OPTION: Option(help, metavar, flag, read)}
