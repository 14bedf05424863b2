"""Axes of names from a public list, such as kinds of offences, and the place of a record's text in it.

The list is public: it is never taken from the data. A record is at a name if its text equals that name, to the last
letter. Short lists are compared in the engine. For long ones, a function that the engine calls looks texts up.
"""

from __future__ import annotations

import csv
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.files import is_file
from htf.frame.domain import Axis, FloatArray
from htf.frame.names import Names
from htf.ingest.expressions import place_in_list
from htf.ingest.geometry import column_function
from htf.ingest.layers import check_nesting, order_of

if TYPE_CHECKING:
    from ibis.expr.types import FloatingValue, StringValue

LISTS, TABLES = (".txt",), (".csv",)
OTHER = "other"
MOST_COMPARED = 50  # by the engine: it compares with one name after the other


def needs_function(axis: Axis) -> bool:
    """Whether texts of this axis are looked up by our function."""
    return axis.names is not None and not axis.is_zoned and axis.cells > MOST_COMPARED


def place_of(label: StringValue, axis: Axis, columns_as: str, collates: bool) -> FloatingValue:
    """The cell of a text on an axis of names; missing or NaN if it has none."""
    assert axis.names is not None
    names, rest = axis.names.levels[0].labels, axis.names.rest is not None
    if needs_function(axis):
        found: FloatingValue = _lookup(names, rest, columns_as)(label)
        return found
    compared: Any = place_in_list(label, names, rest, collates)
    return compared.cast("float64")


@lru_cache(maxsize=16)
def _lookup(names: tuple[str, ...], rest: bool, columns_as: str) -> Any:
    other = len(names) - 1 if rest else np.nan
    places = {name: float(place) for place, name in enumerate(names)}

    def look_up(texts: NDArray[Any]) -> FloatArray:
        found = (places.get(t, other) if isinstance(t, str) else np.nan for t in texts)
        return np.fromiter(found, dtype=np.float64, count=len(texts))

    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:32]
    return column_function(look_up, f"htf_name_{digest}_{int(rest)}", "string", 1, columns_as)


# Lists -------------------------------------------------------------------------------------------


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
