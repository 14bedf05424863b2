"""The frequency matrix: exact counts of the cells that hold any point. Sensitive.

Only the non-empty cells are stored, so a grid may be as fine as one likes. Nothing here prints,
compares or exports its content: it exists to be handed to a Curator (and to the evaluation, which
says of its results that they are not private).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from htf.base import arguments
from htf.base.read_only import ReadOnlyArrays, make_read_only
from htf.errors import InputError
from htf.frame.domain import Domain, IntArray, check_domain
from htf.privacy.apart import ToldApart, check_told_apart
from htf.privacy.origins import FileMark
from htf.privacy.protection import OF_RECORDS, Protection

MOST_RECORDS = 2**40  # so that sums, and combinations with small coefficients, fit 64 bits


class WeighedRecords:
    """How many records have a weight up to the limit, and how many a larger one. Sensitive: its repr shows no data.

    `read_points` makes one with the matrix, for `measure_clipped`.

    Parameters
    ----------
    within : int
        The number of records that count with their whole weight.
    above : int
        The number of records that count as the largest weight, because theirs is larger.

    Raises
    ------
    InputError
        If a number is not whole, is negative, or is too large.

    Examples
    --------
    >>> import htf
    >>> from htf.curator.frequency import WeighedRecords
    >>> WeighedRecords(990, 10)
    WeighedRecords(exact numbers not shown)
    """

    __slots__ = ("_exact",)

    def __init__(self, within: int, above: int) -> None:
        """Take both numbers."""
        names = "the records up to the largest weight (within)", "the records above it (above)"
        given = [arguments.whole(n, name) for n, name in zip((within, above), names, strict=True)]
        if min(given) < 0 or sum(given) > MOST_RECORDS:
            raise InputError("numbers of records must not be negative, nor pass 2**40 together")
        self._exact = given[0], given[1]

    @property
    def exact(self) -> tuple[int, int]:
        """Records up to the largest weight, and above it. Sensitive."""
        return self._exact

    def __repr__(self) -> str:
        return "WeighedRecords(exact numbers not shown)"


class FrequencyMatrix(ReadOnlyArrays):
    """Exact counts of the cells that hold any record. Sensitive: its repr shows no data.

    Make one with `read_points`, `from_cells` or `from_dense`.

    Parameters
    ----------
    domain : Domain
        The map.
    coordinates : ndarray of int
        Indices of distinct cells that hold records, one row for each axis.
    counts : ndarray of int
        The number of records in each of these cells.
    protection : Protection
        What an epsilon will protect.
    files : sequence of FileMark
        Where the records were read from. None of these files may be a prior.
    weighed : WeighedRecords, optional
        Where records have weights: how many of them were cut at the largest one.
    told_apart : ToldApart, optional
        By which columns people, and their periods, are told apart.

    Raises
    ------
    InputError
        If the arrays do not fit the map or each other.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    FrequencyMatrix(grid=2 x 2, exact counts not shown)
    """

    __slots__ = (
        "_coordinates",
        "_counts",
        "_domain",
        "_files",
        "_protection",
        "_told_apart",
        "_weighed",
    )

    def __init__(
        self,
        domain: Domain,
        coordinates: NDArray[np.int32],
        counts: IntArray,
        protection: Protection = OF_RECORDS,
        files: Sequence[FileMark] = (),
        weighed: WeighedRecords | None = None,
        told_apart: ToldApart | None = None,
    ) -> None:
        """Take distinct non-empty cells as they are. `from_cells` checks them and adds them up."""
        marks = arguments.items(files, "files", "a list of marks of files")
        self._files = tuple(arguments.instance(mark, FileMark, "files") for mark in marks)
        self._domain = check_domain(domain)
        self._protection = arguments.instance(protection, Protection, "protection")
        if weighed is not None:
            arguments.instance(weighed, WeighedRecords, "weighed")
            if protection.weight is None:
                raise InputError("records without weights cannot be cut: leave out weighed")
        self._weighed = weighed
        self._told_apart = check_told_apart(told_apart)
        for array, what in ((coordinates, "coordinates"), (counts, "counts")):
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
                remedy = "FrequencyMatrix.from_cells takes other sequences"
                raise arguments.unfit(what, "an array of whole numbers", array, remedy)
        if coordinates.shape != (domain.dimensions, *counts.shape) or counts.ndim != 1:
            raise InputError("coordinates must have a row for each axis, a column for each count")
        self._coordinates = coordinates
        self._counts = counts
        make_read_only(coordinates, counts)

    @classmethod
    def from_cells(
        cls, domain: Domain, coordinates: ArrayLike, counts: ArrayLike | None = None
    ) -> FrequencyMatrix:
        """Count cell indices. Repeated cells are added up.

        Parameters
        ----------
        domain : Domain
            The map.
        coordinates : array_like of int
            One row for each axis, one column for each record or group of records.
        counts : array_like of int, optional
            How many records each column stands for, by default one.

        Returns
        -------
        FrequencyMatrix
            The counts.

        Raises
        ------
        InputError
            If a cell is not on the map, or a count is negative.

        Examples
        --------
        >>> htf.FrequencyMatrix.from_cells(domain, [[0, 0, 1], [0, 0, 1]])
        FrequencyMatrix(grid=2 x 2, exact counts not shown)
        """
        check_domain(domain)
        cells = np.atleast_2d(arguments.whole_numbers(coordinates, "cell indices"))
        if cells.ndim != 2 or (cells.size and len(cells) != domain.dimensions):
            raise InputError(
                f"cell indices must have one row for each of {domain.dimensions} axes, "
                f"got the shape {cells.shape}"
            )
        cells = cells.reshape(domain.dimensions, -1)
        number = cells.shape[1]
        given = np.ones(number, dtype=np.int64) if counts is None else counts
        weights = arguments.whole_numbers(given, "counts").reshape(-1)
        if len(weights) != number:
            raise InputError("there must be one count for each cell")
        _check_cells(domain, cells)
        _check_counts(weights)
        keys = np.ravel_multi_index(tuple(cells), domain.shape) if number else cells[0]
        distinct, places = np.unique(keys, return_inverse=True)
        totals = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(totals, places, weights)
        distinct, totals = distinct[totals > 0], totals[totals > 0]
        return cls(domain, unravel(distinct, domain.shape), totals)

    @classmethod
    def from_dense(cls, domain: Domain, matrix: ArrayLike) -> FrequencyMatrix:
        """Take an array of counts with one entry for each cell, indexed `[x, y, …]`.

        Parameters
        ----------
        domain : Domain
            The map.
        matrix : array_like of int
            The counts.

        Returns
        -------
        FrequencyMatrix
            The counts.

        Raises
        ------
        InputError
            If the shape is not that of the map, or a count is negative.

        Examples
        --------
        >>> htf.FrequencyMatrix.from_dense(domain, [[0, 0], [0, 7]])
        FrequencyMatrix(grid=2 x 2, exact counts not shown)
        """
        check_domain(domain)
        counts = arguments.whole_numbers(matrix, "counts")
        if counts.shape != domain.shape:
            raise InputError(
                f"the matrix has shape {counts.shape}, the domain {domain.shape}: they must agree"
            )
        _check_counts(counts)
        places = np.nonzero(counts)
        coordinates = np.stack([place.astype(np.int32) for place in places])
        return cls(domain, coordinates, counts[places])

    @property
    def domain(self) -> Domain:
        """The map. Public."""
        return self._domain

    @property
    def protection(self) -> Protection:
        """The unit whose records were bounded, so that an epsilon can protect it. Public."""
        return self._protection

    @property
    def told_apart(self) -> ToldApart | None:
        """By which columns people, and their periods, are told apart; None if a program counted, and did not say. Public."""
        return self._told_apart

    @property
    def files(self) -> tuple[FileMark, ...]:
        """Where the records were read from: none of these may be a prior. For the curator only."""
        return self._files

    @property
    def exact_weighed(self) -> WeighedRecords | None:
        """How many records were cut at the largest weight; None if that was not counted. Sensitive."""
        return self._weighed

    @property
    def exact_coordinates(self) -> NDArray[np.int32]:
        """Indices of the non-empty cells, one row for each axis. Sensitive."""
        return self._coordinates

    @property
    def exact_counts(self) -> IntArray:
        """Records in each non-empty cell. Sensitive."""
        return self._counts

    def __repr__(self) -> str:
        grid = " x ".join(map(str, self._domain.shape))
        return f"FrequencyMatrix(grid={grid}, exact counts not shown)"


def check_matrix(given: object) -> FrequencyMatrix:
    """The exact counts that a caller names."""
    first = "count the points first, with htf.read_points(points, domain, [column, column])"
    return arguments.instance(given, FrequencyMatrix, "matrix", first)


def unravel(keys: IntArray, shape: Sequence[int]) -> NDArray[np.int32]:
    """Row-major cell numbers to indices, one row for each axis."""
    if len(keys) == 0:
        return np.empty((len(shape), 0), dtype=np.int32)
    return np.stack([index.astype(np.int32) for index in np.unravel_index(keys, tuple(shape))])


def _check_cells(domain: Domain, cells: IntArray) -> None:
    for axis, indices in zip(domain.axes, cells, strict=True):
        if len(indices) and (indices.min() < 0 or indices.max() >= axis.cells):
            raise InputError(
                f"cell indices of axis {axis.name!r} must lie between 0 and {axis.cells - 1}"
            )


def _check_counts(counts: IntArray) -> None:
    if counts.size and counts.min() < 0:
        raise InputError("counts must not be negative")
    if float(counts.sum(dtype=np.float64)) > MOST_RECORDS:
        raise InputError("more than 2**40 records are not supported")
