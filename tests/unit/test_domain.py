"""Domain, axes, tilings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, InputError
from htf.frame.domain import tiles
from htf.frame.tree import RegionTree
from support import grid
from telling import examples


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ((2, 0, 1, 1), "west must be less than east, got west 2 and east 1"),
        ((170, 0, -170, 1), "antimeridian"),
        ((0, 5, 1, 5), "south must be less than north, got south 5"),
        ((40.5, -74.3, 40.9, -173.7), "south must be less than north"),
        ((33.0, -118.6, 34.0, -117.8), "swapped"),
        ((0, 0, math.nan, 1), "east must be a finite number, got nan"),
        ((0, 0, math.inf, 1), "finite"),
    ],
)
def test_bad_bounds_are_named(bounds: tuple[float, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Domain.from_bounds(*bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("cells", [0, -3, 2**31, 1.5, True, (10, 0)])
def test_bad_cells_are_named(cells: Any) -> None:
    with pytest.raises(InputError, match=r"cells(?: must be a whole number)?, got"):
        Domain.from_bounds(0, 0, 1, 1, cells)


def test_bad_domains_are_refused() -> None:
    with pytest.raises(InputError, match="at least one axis"):
        Domain(())
    with pytest.raises(InputError, match="must differ, got x, x"):
        Domain((Axis("x", 0, 1, 1), Axis("x", 0, 1, 1)))
    with pytest.raises(InputError, match=r"more than 2\*\*62"):
        grid(2**21, 2**21, 2**21)
    with pytest.raises(InputError, match="too narrow for 1000000 cells"):
        Axis("x", 1e9, 1e9 + 1e-6, 1_000_000)
    with pytest.raises(InputError, match="must be finite, got -1e"):
        Axis("x", -1e308, 1e308, 10)
    with pytest.raises(InputError, match="plain word"):
        Axis("a b", 0, 1, 1)
    with pytest.raises(InputError, match="side of the square must be positive, got -1"):
        Domain.square(0, 0, -1)
    with pytest.raises(InputError, match="latitude must lie between"):
        Domain.square(95, 0, 1)


def test_a_domain_survives_its_dictionary() -> None:
    for domain in (Domain.square(34, -118, 70, (10, 20)), grid(3, 4, 5, 6)):
        assert Domain.from_dict(domain.to_dict()) == domain


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(1, 2**20), st.integers(0, 2**20))
def test_edges_go_there_and_back(low: float, width: float, cells: int, edge: int) -> None:
    """Edges survive the way to map coordinates and back to within a billionth of a cell … or what
    the size of the numbers allows; the outermost ones are exact."""
    axis = Axis("x", low, low + width, cells)
    edge = min(edge, cells)
    coordinate = axis.from_cells(np.array([edge, cells, 0]))
    assert coordinate[1] == axis.high
    assert coordinate[2] == axis.low
    slack = 1e-9 + 8 * np.spacing(max(abs(low), abs(axis.high))) * axis.cells_per_unit
    assert axis.to_cells(coordinate)[0] == pytest.approx(edge, abs=slack)


def _box(low: Any, high: Any) -> tuple[Any, Any]:
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def naive_tiles(low: Any, high: Any, shape: tuple[int, ...]) -> bool:
    covered = np.zeros(shape, dtype=np.int64)
    for first, last in zip(low, high, strict=True):
        if np.any(first < 0) or np.any(last > shape) or np.any(first >= last):
            return False
        covered[tuple(slice(a, b) for a, b in zip(first, last, strict=True))] += 1
    return bool(np.all(covered == 1))


@given(st.data())
@examples(200)
def test_tiles_agrees_with_painting_the_cells(data: Any) -> None:
    """On real tilings, and on tilings with one edge moved, a box dropped or a box doubled."""
    shape = tuple(data.draw(st.integers(2, 5)) for _ in range(data.draw(st.integers(1, 3))))
    tree = RegionTree(shape)
    for _ in range(data.draw(st.integers(0, 5))):
        uncut = np.flatnonzero(tree.slabs == 0)
        region = int(data.draw(st.sampled_from(uncut.tolist())))
        axis = data.draw(st.integers(0, len(shape) - 1))
        if tree.high[region, axis] - tree.low[region, axis] > 1:
            cut = data.draw(
                st.integers(int(tree.low[region, axis]) + 1, int(tree.high[region, axis]) - 1)
            )
            tree.split(*(np.array([v]) for v in (region, axis, cut)))
    leaves = np.flatnonzero(tree.slabs == 0)
    low, high = tree.low[leaves].copy(), tree.high[leaves].copy()
    outer = np.zeros(len(shape), dtype=np.int64), np.array(shape)
    assert tiles(low, high, *outer)
    row = data.draw(st.integers(0, len(leaves) - 1))
    match data.draw(st.sampled_from(["move", "drop", "double"])):
        case "move":
            side = data.draw(st.sampled_from([low, high]))
            side[row, data.draw(st.integers(0, len(shape) - 1))] += data.draw(
                st.sampled_from([-1, 1])
            )
        case "drop":
            low, high = np.delete(low, row, axis=0), np.delete(high, row, axis=0)
        case "double":
            low, high = np.vstack([low, low[row]]), np.vstack([high, high[row]])
    assert tiles(low, high, *outer) == naive_tiles(low, high, shape) is False


def test_overlaps_that_add_up_to_the_right_area_are_no_tiling() -> None:
    low, high = _box([[0, 0], [0, 1]], [[2, 2], [2, 2]])
    assert not tiles(low, high, *_box([0, 0], [3, 2]))
