"""Options that stand in one place: as fields of a dataclass, which the command line offers too.

A field says what an option means and what it defaults to. `htf.cli.declared` makes command-line options
of the fields, and functions take the whole dataclass. Nothing here knows the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

OPTION = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """How people give a field as text."""

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
