"""Reads axes of names from a public list, such as kinds of offences. The list is never taken from the data."""

from __future__ import annotations

import csv
from pathlib import Path

from htf.errors import InputError
from htf.files import is_file
from htf.frame.domain import Axis
from htf.frame.names import Names
from htf.ingest.layers import check_nesting, order_of

LISTS, TABLES = (".txt",), (".csv",)
OTHER = "other"


def read_category(name: str, listed: str, rest: str | None = None) -> Axis:
    """An axis of names from a list in a file, one name on each line of a .txt file, or the columns of a .csv file, whose
    first line names the levels from the lowest up; or from names with commas between them."""
    suffix = Path(listed).suffix.lower()
    if suffix in LISTS + TABLES and not is_file(listed):
        raise InputError(f"there is no file {listed} with the list of {name!r}")
    if suffix in TABLES:
        levels = _read_table(Path(listed))
    elif suffix in LISTS:
        levels = {name: [line for line in map(str.strip, _lines(Path(listed))) if line]}
    else:
        levels = {name: [one.strip() for one in listed.split(",")]}
    if not next(iter(levels.values()), None):
        raise InputError(f"the list of {name!r} is empty")
    check_nesting(levels)
    order = order_of(levels)
    columns = {level: [labels[n] for n in order] for level, labels in levels.items()}
    return Axis.named(name, Names.of(columns, rest=rest))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeError):
        raise InputError(f"cannot read {path}: is it text in UTF-8?") from None


def _read_table(path: Path) -> dict[str, list[str]]:
    rows = [[one.strip() for one in row] for row in csv.reader(_lines(path)) if row]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise InputError(
            f"{path} must have a first line that names the levels, as in offence,group, and as many names on every line"
        )
    if len(set(rows[0])) < len(rows[0]):
        raise InputError(f"{path} names a level twice: {', '.join(rows[0])}")
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * len(rows[0])
    return {level: list(labels) for level, labels in zip(rows[0], columns, strict=True)}
