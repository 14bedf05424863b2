"""The columns of answers, declared once: names and order, unit, meaning and look.

Everything that shows, sends or writes answers takes them from here: the compiled loops, tables on the screen, the server
and its OpenAPI document, and all files. To add a column of counts, declare it after `inside` and fill it in
`htf.query.kernels`. Light to import.

A release counts records or split people, or sums of weights. So answers carry what they count, and stand in files beside a last
column, `counted`, that says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from htf.estimation.level import LEVEL_TEXT, OUTSIDE
from htf.privacy.protection import RECORDS, SUM_OF, split_people

QUANTITY, SHARE = "{quantity}", "share"  # units; the first stands for what the release counts
# Where no release is at hand, such as in the help of a command
ANY_QUANTITY = f"records or {split_people()}"
COUNTED = "counted"  # the column of files, and the member of JSON, that says what is counted
COUNTED_MEANS = "What the count is a number of."


@dataclass(frozen=True, slots=True)
class Column:
    """The meaning of a column of an answer, and how it is shown. Texts may hold `{quantity}`, `{amount}` for its number, and
    `{things}` for what lies on the map."""

    unit: str
    description: str
    heading: str | None = None  # on the screen; None: shown together with another column
    form: str | None = None  # how Python formats a value for the screen; None: as a count
    of_leaves: bool = False  # whether it says something about a whole leaf: in tiles and layers
    may_be_missing: bool = False  # where it is no finite number, files have nothing

    def describe(self, quantity: str = ANY_QUANTITY) -> str:
        """The meaning, for counts of `quantity`."""
        is_sum = quantity.startswith(SUM_OF)
        amount, things = (quantity, RECORDS) if is_sum else (f"number of {quantity}", quantity)
        return self.description.format(quantity=quantity, amount=amount, things=things)


def _end(which: str, rest: str = "the {level} interval.", **look: Any) -> Column:
    """An end of an interval. The lower one stands for both under its heading."""
    if which == "Lower":
        look["heading"] = f"{LEVEL_TEXT} interval"
    return Column(QUANTITY, f"{which} end of {rest.replace('{level}', LEVEL_TEXT)}", **look)


COLUMNS = {
    "count": Column(QUANTITY, "Best guess of the {amount}.", QUANTITY, of_leaves=True),
    "std_error": Column(
        QUANTITY, "Standard deviation of the errors that the interval covers.", "std. error",
        form=",.1f", of_leaves=True,
    ),
    "low": _end(
        "Lower", "the {level} interval. The interval comes from the raw noisy counts, is never below zero, and contains "
        "the count unless that is below zero.", of_leaves=True,
    ),
    "high": _end("Upper", of_leaves=True),
    "partial": Column(
        SHARE,
        "Share of the count that comes from leaves covered only in part, where {things} are "
        "assumed to be spread evenly.",
        "partial", form=".1%",
    ),
    "inside": Column(
        SHARE,
        "Share of the box or polygon that lies on the map, by area and over all axes. The release "
        "knows nothing about the rest and does not count it.",
        "inside map", form=".1%",
    ),
    "raw": Column(
        QUANTITY,
        "Answer of the raw noisy counts alone. It has next to no bias, so differences and means are made of it. It "
        "may lie below zero and outside the interval.",
    ),
}  # fmt: skip
OF_LEAVES = {name: column for name, column in COLUMNS.items() if column.of_leaves}

OF_PERCENT = f"end of its {LEVEL_TEXT} interval. Empty where there may have been nothing before."
CHANGE_COLUMNS = {
    "before": Column(QUANTITY, "Best guess of the {amount} before.", "before"),
    "after": Column(QUANTITY, "Best guess of the {amount} after.", "after"),
    "change": Column(QUANTITY, "After minus before.", "change"),
    "low": _end("Lower", "the {level} interval of the change."),
    "high": _end("Upper", "the {level} interval of the change."),
    "percent": Column(
        "per cent",
        "The change in per cent of what was before. Empty where nothing was expected before.",
        "per cent", may_be_missing=True,
    ),
    "percent_low": Column("per cent", f"Lower {OF_PERCENT}", may_be_missing=True),
    "percent_high": Column("per cent", f"Upper {OF_PERCENT}", may_be_missing=True),
    "beyond_noise": Column(
        "true or false",
        "Whether the change is more than noise. The chance that any mark of this table is false is at most "
        f"{OUTSIDE * 100:g} % (Holm's rule).",
        "more than noise",
    ),
}  # fmt: skip
UNBOUNDED = "its {level} interval. Empty where the interval is unbounded."
MEAN_COLUMNS = {
    "mean": Column(
        QUANTITY, "Best guess of the {quantity}. Empty where no record is expected.", "mean",
        may_be_missing=True,
    ),
    "low": _end("Lower", UNBOUNDED, may_be_missing=True),
    "high": _end("Upper", UNBOUNDED, may_be_missing=True),
    "bounded": Column(
        "true or false", "Whether the interval is bounded. It is not where there may be no record at all."
    ),
    "sum": Column("sum", "Best guess of the sum, from the first release.", "sum"),
    "records": Column(
        RECORDS, "Best guess of the number of records, from the second release.", "records"
    ),
    "partial": Column(
        SHARE,
        "Share of the sum or the number, whichever is larger, that comes from leaves covered only in part.",
        "partial", form=".1%",
    ),
    "inside": Column(
        SHARE, "Share of the box or polygon that lies on the map.", "inside map", form=".1%"
    ),
}  # fmt: skip
PEOPLE_COLUMNS = {
    "different_people": Column(
        QUANTITY,
        "Best guess, of different person-days, -weeks or -months where counted says so. Boxes do not add up: somebody "
        "who was in two of them counts in both.",
        QUANTITY,
    ),
    "std_error": Column(
        QUANTITY, "Standard deviation of the errors that the interval covers.", "std. error", form=",.1f",
    ),
    "low": _end(
        "Lower", "the {level} interval, for the noise and for whoever was in more boxes than they are counted in."
    ),
    "high": _end("Upper"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """What answers of a kind have: columns, and how they follow from a release."""

    columns: Mapping[str, Column]
    rule: str


COUNTS, CHANGES, MEANS, PEOPLE = "counts", "changes", "means", "different people"
KINDS = {
    COUNTS: Kind(COLUMNS, "what the release answers for it"),
    CHANGES: Kind(CHANGE_COLUMNS, "what changed from one release to the other"),
    MEANS: Kind(MEAN_COLUMNS, "the sum of the release divided by the number of records of another"),
    PEOPLE: Kind(PEOPLE_COLUMNS, "the number of different people who were there"),
}


def place(name: str) -> int:
    """Where a column stands in a row of counts."""
    return list(COLUMNS).index(name)


def describe_columns(quantity: str, columns: Mapping[str, Column] = COLUMNS) -> str:
    """Names, units and meanings in one paragraph, for a file that carries answers of `quantity`."""
    meanings = (
        f"{name} ({c.unit.format(quantity=quantity)}): {c.describe(quantity)}"
        for name, c in columns.items()
    )
    return " ".join([*meanings, f"{COUNTED}: {COUNTED_MEANS}"])
