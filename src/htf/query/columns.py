"""The columns of an answer, declared once: the fields of `Answers`, with unit, meaning and look.

Everything that shows, sends or writes answers takes names, order and descriptions from here: the
compiled loops, tables on the screen, the server and its OpenAPI document, and all files. To add a
column, declare it after `inside` and fill it in `htf.query.kernels`. Light to import.

A release counts records or split people, or sums of weights. So answers carry what they count, and stand in files beside a last
column, `counted`, that says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays
from htf.errors import InputError
from htf.estimation.level import LEVEL_TEXT
from htf.privacy.protection import RECORDS, SUM_OF, split_people
from htf.query.tabular import Tabular, check_asked

if TYPE_CHECKING:
    from htf.frame.domain import FloatArray

QUANTITY, SHARE = "{quantity}", "share"  # units; the first stands for what the release counts
ANY_QUANTITY = (
    f"records or {split_people()}"  # where no release is at hand, such as in the help of a command
)
COUNTED = "counted"  # the column of files, and the member of JSON, that says what is counted
COUNTED_MEANS = "What the count is a number of."


class Counting(Protocol):
    """The fields of a release that say what it counts."""

    @property
    def quantity(self) -> str: ...
    @property
    def counted(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Column:
    """The meaning of a column of an answer, and how it is shown. Texts may hold `{quantity}`, `{amount}` for its number, and
    `{things}` for what lies on the map."""

    unit: str
    description: str
    heading: str | None  # on the screen; None: shown together with another column
    form: str | None = None  # how Python formats a value for the screen; None: as a count
    of_leaves: bool = True  # False: left out of leaves and tiles

    def describe(self, quantity: str = ANY_QUANTITY) -> str:
        """The meaning, for counts of `quantity`."""
        is_sum = quantity.startswith(SUM_OF)
        amount, things = (quantity, RECORDS) if is_sum else (f"number of {quantity}", quantity)
        return self.description.format(quantity=quantity, amount=amount, things=things)


def _declare(column: Column) -> Mapping[str, Column]:
    return {"column": column}


@dataclass(frozen=True, slots=True, eq=False)
class Answers(Tabular, ReadOnlyArrays):
    """Counts with their errors, one entry for each box or polygon, in read-only arrays.

    Attributes
    ----------
    count : ndarray of float
        The best guess.
    std_error : ndarray of float
        The standard deviation of the errors that the interval covers.
    low, high : ndarray of float
        The 95 % interval. It is never below zero, and contains the count unless that is below zero.
    partial : ndarray of float
        The share of the answer, by absolute parts, that comes from leaves covered in part; 0 where
        there is nothing.
    inside : ndarray of float
        The share of the box or polygon that lies on the map, by area, over all axes. The release says
        nothing about the rest, which is not counted. It is 0 where there is no area.
    raw : ndarray of float
        The answer of the raw noisy counts alone, for differences and means. It has next to no bias.
    quantity : str
        What is counted, in one or two words, such as `split people`: `Release.quantity`.
    counted : str
        The same with its bound, such as `records, at most 20 per person`: `Release.counted`.
    asked : object, optional
        What was asked, for the tables that `to_pandas`, `to_geopandas` and `to_arrow` make.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, 1, noise="seeded:1")
    >>> answers = release.count([[0, 0, 1, 1], [0, 0, 2, 2]])
    >>> answers.count.round()
    array([500., 550.])
    """

    count: FloatArray = field(
        metadata=_declare(Column(QUANTITY, "Best guess of the {amount}.", QUANTITY))
    )
    std_error: FloatArray = field(
        metadata=_declare(
            Column(
                QUANTITY,
                "Standard deviation of the errors that the interval covers.",
                "std. error",
                form=",.1f",
            )
        )
    )
    low: FloatArray = field(
        metadata=_declare(
            Column(
                QUANTITY,
                f"Lower end of the {LEVEL_TEXT} interval. The interval comes from the raw noisy counts, is never below "
                "zero, and contains the count unless that is below zero.",
                f"{LEVEL_TEXT} interval",
            )
        )
    )
    high: FloatArray = field(
        metadata=_declare(
            Column(QUANTITY, f"Upper end of the {LEVEL_TEXT} interval.", heading=None)
        )
    )
    partial: FloatArray = field(
        metadata=_declare(
            Column(
                SHARE,
                "Share of the count that comes from leaves covered only in part, where {things} are "
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

    raw: FloatArray = field(
        metadata=_declare(
            Column(
                QUANTITY,
                "Answer of the raw noisy counts alone. It has next to no bias, so differences and means are made of it. It "
                "may lie below zero and outside the interval.",
                heading=None,
                of_leaves=False,
            )
        )
    )

    quantity: str = field(default=RECORDS, kw_only=True)
    counted: str = field(default=RECORDS, kw_only=True)
    asked: Any = field(default=None, kw_only=True, repr=False)  # an Asked

    def __post_init__(self) -> None:
        arguments.text(self.quantity, "the quantity of answers")
        arguments.text(self.counted, "what is counted (counted) of answers")
        check_asked(self.asked)
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
        ['count', 'std_error', 'low', 'high', 'partial', 'inside', 'raw']
        """
        return {name: getattr(self, name) for name in (OF_LEAVES if of_leaves else COLUMNS)}

    def to_labelled_columns(self, *, of_leaves: bool = False) -> dict[str, Any]:
        """All arrays by name, and a last column `counted` that says what is counted, for a file.

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
        >>> answers.to_labelled_columns()["counted"]
        array(['records', 'records'], dtype=object)
        """
        import numpy as np  # the command line starts faster without it

        label = np.full(len(self), self.counted, dtype=object)
        return {**self.to_columns(of_leaves=of_leaves), COUNTED: label}

    def to_dicts(self) -> list[dict[str, float]]:
        """One dictionary for each answer.

        Returns
        -------
        list of dict
            The rows.

        Examples
        --------
        >>> round(answers.to_dicts()[0]["count"])
        500
        """
        columns = self.to_columns()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


COLUMNS: dict[str, Column] = {
    each.name: each.metadata["column"] for each in fields(Answers) if each.metadata
}
OF_LEAVES: dict[str, Column] = {n: column for n, column in COLUMNS.items() if column.of_leaves}


def place(name: str) -> int:
    """Where a column stands in a row of numbers."""
    return list(COLUMNS).index(name)


def label_answers(answers: Answers, release: Counting) -> Answers:
    """The same answers, which now say what the release counts."""
    return replace(answers, quantity=release.quantity, counted=release.counted)


def describe_columns(quantity: str, columns: Mapping[str, Column] = COLUMNS) -> str:
    """Names, units and meanings in one paragraph, for a file that carries answers of `quantity`."""
    told = (
        f"{name} ({c.unit.format(quantity=quantity)}): {c.describe(quantity)}"
        for name, c in columns.items()
    )
    return " ".join([*told, f"{COUNTED}: {COUNTED_MEANS}"])
