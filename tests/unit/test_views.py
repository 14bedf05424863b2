"""Views of two axes, pixel by pixel: against overlaps written out in full, and against `Release.count`."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from htf import Domain, FrequencyMatrix, InputError, Release, publish
from htf.estimation.noise_law import noise_variances
from htf.frame.crs import CRS84
from htf.frame.domain import Axis, FloatArray
from htf.maps.views import View, view
from support import city_matrix, grid

HOURS = Domain((Axis("x", 0, 9, 12), Axis("y", 10, 20, 7), Axis("hour", 0, 24, 8)), CRS84)
TRIPS = Domain(
    (Axis("x", 0, 6, 6), Axis("y", 10, 20, 5), Axis("dest_x", 0, 6, 6), Axis("dest_y", 10, 20, 5)),
    CRS84,
)
FLAT = Domain.from_bounds(0, 10, 9, 20, (12, 7))


def release_of(domain: Domain, mechanism: str) -> Release:
    generator = np.random.default_rng(8)
    counts = generator.poisson(generator.gamma(0.3, 300, domain.shape))
    return publish(FrequencyMatrix.from_dense(domain, counts), "1", mechanism, noise="seeded:2")


def naive_view(
    release: Release, axes: tuple[str, str], seen: View, where: dict[str, Any], power: int
) -> FloatArray:
    """The share of every part in every pixel and within all ranges, to a power."""
    domain, parts = release.domain, release.derived.parts
    values = parts.estimates if power == 1 else noise_variances(parts.scales)
    shares = []
    for number, axis in enumerate(domain.axes):
        low, high = (axis.from_cells(edge[:, number])[:, None] for edge in (parts.low, parts.high))
        edges = np.array(where.get(axis.name, (axis.low, axis.high)), dtype=float)
        if axis.name in axes:
            edges = seen.edges[axes.index(axis.name)]
        overlap = np.minimum(high, edges[None, 1:]) - np.maximum(low, edges[None, :-1])
        shares.append((np.maximum(overlap, 0) / (high - low)) ** power)
    letters = "abcd"[: domain.dimensions]
    drawn = "".join(letters[domain.names.index(name)] for name in axes)
    terms = ",".join(["n", *(f"n{letter}" for letter in letters)])
    return np.asarray(np.einsum(f"{terms}->{drawn}", values, *shares))


CASES: list[tuple[Domain, tuple[str, str], dict[str, Any], Any]] = [
    (FLAT, ("x", "y"), {}, None),
    (FLAT, ("y", "x"), {"x": (1.5, 6.0)}, 4),
    (HOURS, ("x", "y"), {}, None),
    (HOURS, ("x", "y"), {"hour": (7, 10)}, 5),
    (HOURS, ("x", "hour"), {"y": (11.3, 17)}, (5, 3)),
    (HOURS, ("x", "y"), {"hour": (3, 6), "x": (1.5, 6.0), "y": (10, 11)}, 100),
    (TRIPS, ("dest_x", "dest_y"), {"x": (1, 2.5), "y": (12, 20)}, None),
    (TRIPS, ("x", "dest_x"), {"dest_y": (11, 99)}, 4),
]


@pytest.mark.parametrize("mechanism", ["htf", "htf-paper"])
@pytest.mark.parametrize(("domain", "axes", "where", "cells"), CASES)
def test_every_pixel_is_the_sum_of_shares(
    domain: Domain, axes: tuple[str, str], where: dict[str, Any], cells: Any, mechanism: str
) -> None:
    release = release_of(domain, mechanism)
    seen = view(release, axes, where, cells)
    assert seen.domain.names == axes
    assert seen.counts.shape == seen.domain.shape
    np.testing.assert_allclose(
        seen.counts, naive_view(release, axes, seen, where, 1), rtol=1e-9, atol=1e-9
    )
    variances = naive_view(release, axes, seen, where, 2)
    np.testing.assert_allclose(seen.noise**2, variances, rtol=1e-7, atol=1e-7)


def test_a_pixel_holds_what_the_release_would_answer() -> None:
    release = release_of(HOURS, "htf")
    seen = view(release, ("y", "hour"), {"x": (1.3, 5.2)}, (3, 8))
    (y, hour), pixels = seen.edges, product(range(3), range(8))
    boxes = [[1.3, y[i], hour[j], 5.2, y[i + 1], hour[j + 1]] for i, j in pixels]
    np.testing.assert_allclose(seen.counts.ravel(), release.count(boxes).count, rtol=1e-9)
    assert seen.counts.sum() == pytest.approx(release.count(where={"x": (1.3, 5.2)}).count[0])


def test_a_plain_map_is_shown_cell_by_cell() -> None:
    release = release_of(FLAT, "singular")
    seen = view(release)
    expected = np.zeros(FLAT.shape)
    expected[tuple(release.low.T)] = release.estimates
    np.testing.assert_allclose(seen.counts, expected, atol=1e-9)
    assert seen.summed == ""
    assert seen.domain == FLAT


def test_the_display_is_never_finer_than_the_release_nor_than_1024() -> None:
    assert view(release_of(HOURS, "htf"), cells=5000).counts.shape == (12, 7)
    domain = Domain.from_bounds(0, 0, 1, 1, (3000, 7))
    matrix = FrequencyMatrix.from_cells(domain, np.array([[5, 2999], [0, 6]]), [500, 700])
    release = publish(matrix, "1", noise="seeded:1")
    seen = view(release)
    assert seen.counts.shape == (1024, 7)
    assert seen.counts.sum() == pytest.approx(release.estimates.sum())


def test_an_axis_that_is_drawn_is_cropped_at_whole_cells() -> None:
    seen = view(release_of(HOURS, "htf"), where={"x": (1.6, 5.9)})
    x = seen.domain.axes[0]
    assert (x.low, x.high, x.cells) == (1.5, 6.0, 6)
    assert seen.edges[0].tolist() == [1.5, 2.25, 3.0, 3.75, 4.5, 5.25, 6.0]


def test_it_says_what_was_summed_and_what_is_a_place() -> None:
    trips = release_of(TRIPS, "htf")
    ends = view(trips, ("dest_x", "dest_y"), {"x": (1, 2.5)})
    assert ends.summed == "x 1 to 2.5; all of y"
    assert ends.is_place
    assert ends.domain.crs == CRS84
    across = view(trips, ("x", "dest_x"))
    assert not across.is_place
    assert across.domain.crs is None
    assert across.summed == "all of y, dest_y"


def test_the_first_two_axes_may_have_other_names() -> None:
    domain = Domain((Axis("east", 0, 1, 3), Axis("north", 0, 1, 2), Axis("hour", 0, 24, 4)))
    seen = view(release_of(domain, "htf"))
    assert seen.domain.names == ("east", "north")
    assert seen.is_place


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": ("x", "our")}, "no axis 'our'"),
        ({"axes": ("x", "x")}, "two different axes, got x, x"),
        ({"axes": ("x", "y", "hour")}, "two different axes"),
        ({"cells": 0}, "one pixel a side, got 0 x 0"),
        ({"where": {"hour": (9, 7)}}, "add the counts"),
    ],
    ids=str,
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        view(release_of(HOURS, "htf-paper"), **options)


def test_where_there_are_too_few_to_tell() -> None:
    """Against the rule as written, leaf by leaf: the interval holds zero, and a third of the density of what is around."""
    domain = Domain.from_bounds(0, 0, 64, 64, cells=64, crs=None)
    city = city_matrix()
    matrix = FrequencyMatrix(domain, city.exact_coordinates, city.exact_counts)
    release = publish(matrix, "0.3", noise="seeded:1")
    low, high = release.low.astype(float), release.high.astype(float)
    size = high - low
    wide = np.hstack([np.maximum(low - size, 0), np.minimum(high + size, 64)])
    own, around = release.count(np.hstack([low, high])), release.count(wide)
    dense = around.count / np.prod(wide[:, 2:] - wide[:, :2], axis=1)
    expected = (own.low <= 0) & (around.low > 0) & (own.high / np.prod(size, axis=1) >= dense / 3)
    found = release.derived.unsure_leaves
    assert found.tolist() == expected.tolist()
    blank = ~found & ~release.derived.clear_leaves
    assert found.sum() > 50
    assert blank.sum() > 10
    seen = release.view()
    assert seen.is_unsure is not None
    assert not np.any(seen.is_unsure & seen.is_clear)
    for leaf in np.flatnonzero(found):
        cells = tuple(
            slice(*ends) for ends in zip(release.low[leaf], release.high[leaf], strict=True)
        )
        assert seen.is_unsure[cells].all()


def test_an_empty_map_looks_empty() -> None:
    """Of noise alone, next to nothing is said to be unsure: what is around a leaf must be more than noise."""
    matrix = FrequencyMatrix.from_dense(grid(64, 64), np.zeros((64, 64), dtype=int))
    for mechanism in ("ug", "hb", "singular"):
        seen = publish(matrix, "0.3", mechanism, noise="seeded:3").view()
        assert seen.is_unsure is not None
        assert seen.is_unsure.mean() < 0.1, mechanism
