"""The squares in which the maps of two releases are compared. Public."""

from __future__ import annotations

import numpy as np

from htf.errors import InputError
from htf.estimation.level import OUTSIDE
from htf.frame.crs import same_crs
from htf.frame.domain import Axis, Domain, FloatArray
from htf.maps.views import drawn_axes
from htf.query.answer import Answer
from htf.query.change import subtracted
from htf.query.where import Where, full_ranges
from htf.release.release import Release, check_release

STRONG = "Strong colours mark differences that are more than noise."
CHANCE = f"The chance that any square is marked without reason is at most {OUTSIDE * 100:g} %."
FEWEST_SQUARES, MOST_SQUARES = 12, 65_536  # per side; in total


def difference(
    first: Release, second: Release, grid: Domain, axes: tuple[str, str], where: Where | None
) -> Answer:
    """The first minus the second, for each square of a grid over what both maps cover."""
    counts = [
        release.count(rows_of_grid(release, axes, where, grid)) for release in (first, second)
    ]
    return subtracted(*counts)


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
