"""The differences between two releases beyond their noise. Public.

What is shown is the difference of the two counts, so that the three numbers agree. Its interval, and whether it is more
than noise, come from the raw answers, which have next to no bias (htf.query.change).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htf.errors import InputError
from htf.estimation.level import OUTSIDE
from htf.frame.crs import same_crs
from htf.frame.domain import Axis, Domain, FloatArray, read_pair
from htf.maps.views import drawn_axes
from htf.query.answer import Answer
from htf.query.change import mark_beyond_noise, reaches, widest_reach
from htf.query.where import Where, full_ranges
from htf.release.release import Release, check_release

STRONG = "Strong colours mark differences that are more than noise."
CHANCE = f"The chance that any square is marked without reason is at most {OUTSIDE * 100:g} %."
FEWEST_SQUARES, MOST_SQUARES = 12, 65_536  # per side; in total


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """The first release minus the second, one entry for each square of a grid that both maps cover.

    Attributes
    ----------
    domain : Domain
        The grid.
    first, second : Answer
        What each release says about each square.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> may = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> june = htf.FrequencyMatrix.from_dense(domain, [[900, 20], [0, 30]])
    >>> releases = [htf.publish(data, 1, noise="seeded:1") for data in (june, may)]
    >>> found = htf.difference(*releases, squares=(2, 2))
    >>> found.is_beyond_noise
    array([ True, False, False, False])
    """

    domain: Domain  # the grid
    first: Answer
    second: Answer

    @property
    def value(self) -> FloatArray:
        """The difference of the two counts."""
        return self.first.count - self.second.count

    @property
    def low(self) -> FloatArray:
        """The lower end of its 95 % interval, which is around the difference of the raw answers and reaches as far as the
        difference of the counts."""
        down, _ = reaches(self.first, self.second)
        return np.minimum(self.first.raw - self.second.raw - down, self.value)

    @property
    def high(self) -> FloatArray:
        """The upper end of its 95 % interval."""
        _, up = reaches(self.first, self.second)
        return np.maximum(self.first.raw - self.second.raw + up, self.value)

    @property
    def std_error(self) -> FloatArray:
        """The standard error of the difference. The noise of two releases is drawn apart."""
        return np.hypot(self.first.std_error, self.second.std_error)

    @property
    def is_beyond_noise(self) -> NDArray[np.bool_]:
        """Which differences are more than noise. The chance that any of them is not is at most 5 %."""
        raw = self.first.raw - self.second.raw
        return mark_beyond_noise(raw, widest_reach(self.first, self.second))


def mark_together(differences: Sequence[Difference]) -> list[NDArray[np.bool_]]:
    """Which of all these are more than noise: the chance that any of them is not is at most 5 %."""
    raw = [one.first.raw - one.second.raw for one in differences]
    reach = [widest_reach(one.first, one.second) for one in differences]
    marked = mark_beyond_noise(np.concatenate(raw), np.concatenate(reach))
    return np.split(marked, np.cumsum([len(one) for one in raw])[:-1])


def difference(
    first: Release,
    second: Release,
    squares: tuple[int, int],
    axes: tuple[str, str] = ("x", "y"),
    where: Where | None = None,
) -> Difference:
    """Compare two releases on a grid over what both maps cover.

    Parameters
    ----------
    first, second : Release
        The releases.
    squares : (int, int)
        The number of squares along each axis.
    axes : (str, str)
        The axes of the grid. Others are summed.
    where : mapping, optional
        Ranges of axes, such as `{"hour": (7, 10)}`.

    Returns
    -------
    Difference
        The first minus the second.

    Raises
    ------
    InputError
        If the maps do not overlap, have different reference systems, or count different quantities.

    Examples
    --------
    >>> import htf
    >>> domain = htf.Domain.from_bounds(0, 0, 2, 2, cells=2)
    >>> matrix = htf.FrequencyMatrix.from_dense(domain, [[500, 20], [0, 30]])
    >>> release = htf.publish(matrix, 1, noise="seeded:1")
    >>> htf.difference(release, release, squares=(2, 2)).value
    array([0., 0., 0., 0.])
    """
    check_same_quantity(
        check_release(first, "the first release"), check_release(second, "the second release")
    )
    grid = shared_grid(first, second, read_pair(squares, "squares"), axes, where)
    answers = [
        release.count(rows_of_grid(release, axes, where, grid)) for release in (first, second)
    ]
    return Difference(grid, answers[0], answers[1])


def shared_grid(
    first: Release,
    second: Release,
    squares: tuple[int, int],
    axes: tuple[str, str],
    where: Where | None,
) -> Domain:
    """A grid over what both maps cover."""
    low, high = shared_bounds(first, second, axes, where)
    names = tuple(first.domain.axes[number].name for number in drawn_axes(first.domain, axes))
    return Domain(
        tuple(Axis(*made) for made in zip(names, low, high, squares, strict=True)), first.domain.crs
    )


def shared_bounds(
    first: Release, second: Release, axes: tuple[str, str], where: Where | None
) -> tuple[list[float], list[float]]:
    """The low and high ends, along both axes, of what both maps cover; an error if they do not overlap."""
    check_release(first, "the first release")
    check_release(second, "the second release")
    if not is_same_system(first.domain, second.domain):
        raise InputError(
            f"the maps have different reference systems, {first.domain.crs} and {second.domain.crs}: "
            "only an HTML map shows them together, side by side"
        )
    ranges = [
        full_ranges(release.domain, where)[list(drawn_axes(release.domain, axes))]
        for release in (first, second)
    ]
    low, high = (
        np.maximum(ranges[0][:, 0], ranges[1][:, 0]),
        np.minimum(ranges[0][:, 1], ranges[1][:, 1]),
    )
    if np.any(low >= high):
        shown = " and ".join(", ".join(f"{end:.6g}" for end in ends.T.ravel()) for ends in ranges)
        raise InputError(f"the maps do not overlap: their bounds W,S,E,N are {shown}")
    return low.tolist(), high.tolist()


def check_same_quantity(first: Release, second: Release) -> None:
    """Refuse to subtract, for example, records from people."""
    if first.quantity != second.quantity:
        raise InputError(
            f"the first release counts {first.quantity} and the second {second.quantity}, so their difference "
            "means nothing: draw them side by side, or make both releases count the same"
        )


def is_same_system(one: Domain, other: Domain) -> bool:
    """Whether two maps have the same reference system; an error if only one of them has one."""
    if one.crs == other.crs:
        return True
    if one.crs is None or other.crs is None:
        raise InputError("one of the maps has no reference system: they cannot be compared")
    return same_crs(one.crs, other.crs)


def grids_to_compare(
    first: Release, second: Release, axes: tuple[str, str], where: Where | None
) -> list[tuple[int, int]]:
    """Numbers of squares along both axes, from few large ones to many small ones: each grid halves
    the one before. A difference that shows in a district may drown in the noise of its streets."""
    low, high = shared_bounds(first, second, axes, where)
    drawn = [first.domain.axes[number] for number in drawn_axes(first.domain, axes)]
    cells = [
        max(round((end - start) * axis.cells_per_unit), 1)
        for axis, start, end in zip(drawn, low, high, strict=True)
    ]
    grids: list[tuple[int, int]] = []
    for halvings in range(31):
        columns, rows = (max(number >> halvings, 1) for number in cells)
        if grids and max(columns, rows) < FEWEST_SQUARES:
            break
        if columns * rows <= MOST_SQUARES:
            grids.append((columns, rows))
        if columns == rows == 1:
            break
    return grids[::-1]


def grid_rows(
    release: Release,
    axes: tuple[str, str],
    where: Where | None,
    columns: FloatArray,
    rows: FloatArray,
) -> FloatArray:
    """Full rows, for `Release.count`, of the squares between these edges; columns first."""
    domain, drawn = release.domain, drawn_axes(release.domain, axes)
    whole = full_ranges(domain, where).T.reshape(1, -1)
    full = np.repeat(whole, (len(columns) - 1) * (len(rows) - 1), axis=0)
    for number, edges, along in zip(drawn, (columns, rows), (0, 1), strict=True):
        for place, ends in ((number, edges[:-1]), (number + domain.dimensions, edges[1:])):
            shape = [1, 1]
            shape[along] = -1
            spread = np.broadcast_to(ends.reshape(shape), (len(columns) - 1, len(rows) - 1))
            full[:, place] = spread.ravel()
    return full


def rows_of_grid(
    release: Release, axes: tuple[str, str], where: Where | None, grid: Domain
) -> FloatArray:
    """Full rows, for `Release.count`, of the squares of a grid."""
    columns, rows = (axis.from_cells(np.arange(axis.cells + 1)) for axis in grid.axes)
    return grid_rows(release, axes, where, columns, rows)
