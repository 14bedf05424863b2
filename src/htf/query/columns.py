"""The columns of an answer, declared once: the fields of `Answers`, with unit, meaning and look.

Everything that shows, sends or writes answers takes names, order and descriptions from here: the
compiled loops, tables on the screen, the server and its OpenAPI document, and all files. To add a
column, declare it at the end of `Answers` and fill it in `htf.query.kernels`. Light to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT

if TYPE_CHECKING:
    from htf.frame.domain import FloatArray

RECORDS, SHARE = "records", "share"


@dataclass(frozen=True, slots=True)
class Column:
    """The meaning of a column of an answer, and how it is shown."""

    unit: str
    description: str
    heading: str | None  # on the screen; None: shown together with another column
    form: str = ",.0f"  # how Python formats a value for the screen
    of_leaves: bool = True  # False: the same for every whole leaf, so left out of leaves and tiles


def _declare(column: Column) -> Mapping[str, Column]:
    return {"column": column}


@dataclass(frozen=True, slots=True, eq=False)
class Answers(ReadOnlyArrays):
    """Counts with their errors, one entry for each box or polygon, in read-only arrays.

    Attributes
    ----------
    count : ndarray of float
        The best guess.
    std_error : ndarray of float
        The standard deviation of the errors that the interval covers.
    low, high : ndarray of float
        The 95 % interval.
    partial : ndarray of float
        The share of the answer, by absolute parts, that comes from leaves covered in part; 0 where
        there is nothing.
    inside : ndarray of float
        The share of the box or polygon that lies on the map, by area, over all axes. The release says
        nothing about the rest, which is not counted. It is 0 where there is no area.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, 1, "singular", noise="seeded:1")
    >>> answers = release.count([[0, 0, 1, 1], [0, 0, 2, 2]])
    >>> answers.count
    array([498., 551.])
    """

    count: FloatArray = field(
        metadata=_declare(Column(RECORDS, "Best guess of the number of records.", "count"))
    )
    std_error: FloatArray = field(
        metadata=_declare(
            Column(
                RECORDS,
                "Standard deviation of the errors that the interval covers.",
                "std. error",
                form=",.1f",
            )
        )
    )
    low: FloatArray = field(
        metadata=_declare(
            Column(
                RECORDS,
                f"Lower end of the {LEVEL_TEXT} interval. The interval comes from the raw noisy counts, so it may "
                "reach below zero, and the count may lie outside it.",
                f"{LEVEL_TEXT} interval",
            )
        )
    )
    high: FloatArray = field(
        metadata=_declare(Column(RECORDS, f"Upper end of the {LEVEL_TEXT} interval.", heading=None))
    )
    partial: FloatArray = field(
        metadata=_declare(
            Column(
                SHARE,
                "Share of the count that comes from leaves covered only in part, where records are "
                "assumed to be spread evenly.",
                "partial",
                form=".1%",
                of_leaves=False,
            )
        )
    )
    inside: FloatArray = field(
        metadata=_declare(
            Column(
                SHARE,
                "Share of the box or polygon that lies on the map, by area and over all axes. The release "
                "knows nothing about the rest and does not count it.",
                "inside map",
                form=".1%",
                of_leaves=False,
            )
        )
    )

    def __post_init__(self) -> None:
        for name, column in self.to_columns().items():
            arguments.row(column, "f", f"{name} of answers")
            if len(column) != len(self.count):
                raise InputError(f"{name} of answers must be as long as count")
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.count)

    def to_columns(self, *, of_leaves: bool = False) -> dict[str, FloatArray]:
        """All arrays by name, ready for a data frame.

        Parameters
        ----------
        of_leaves : bool
            Whether to leave out columns that say nothing about a whole leaf.

        Returns
        -------
        dict of ndarray
            The columns.

        Examples
        --------
        >>> list(answers.to_columns())
        ['count', 'std_error', 'low', 'high', 'partial', 'inside']
        """
        return {name: getattr(self, name) for name in (OF_LEAVES if of_leaves else COLUMNS)}

    def to_dicts(self) -> list[dict[str, float]]:
        """One dictionary for each answer.

        Returns
        -------
        list of dict
            The rows.

        Examples
        --------
        >>> answers.to_dicts()[0]["count"]
        498.0
        """
        columns = self.to_columns()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


COLUMNS: dict[str, Column] = {each.name: each.metadata["column"] for each in fields(Answers)}
OF_LEAVES: dict[str, Column] = {n: column for n, column in COLUMNS.items() if column.of_leaves}


def place(name: str) -> int:
    """Where a column stands in a row of numbers."""
    return list(COLUMNS).index(name)


def describe_columns(columns: Mapping[str, Column] = COLUMNS) -> str:
    """Names, units and meanings in one paragraph, for a file that carries answers."""
    return " ".join(f"{name} ({c.unit}): {c.description}" for name, c in columns.items())
