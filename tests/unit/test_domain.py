"""Domain, axes, tilings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htf import Axis, Domain, InputError
from support import grid


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
