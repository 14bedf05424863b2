"""A map inside zones: leaves follow the borders, errors are those of trees, and both parts agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import htf
from htf import Axis, Domain, InputError, Names
from htf.estimation.inside_zones import (
    COUNTED_REGIONS,
    TreeErrors,
    counted_tree,
    cut_along_zones,
    fit_to_zones,
    regions_before,
)
from htf.estimation.least_squares import TreeCounts, least_squares
from htf.frame.halving import halve_often
from htf.frame.names import Outlines
from htf.frame.tree import RegionTree
from htf.privacy.epsilon import Epsilon
from htf.privacy.zones_bought import ZonesBought
from htf.release.inside_zones import inside_zones, taken_apart, zone_of_cells


def zone_axis(layer: object) -> Axis:
    """The zones of a layer of `synthetic_zones`, in the order of districts."""
    frame = layer.sort_values(["district", "tract"], kind="stable")  # type: ignore[attr-defined]
    shapes = tuple(shapely.to_wkb(frame.geometry.to_numpy(), byte_order=1))
    columns = {"tract": list(frame["tract"]), "district": list(frame["district"])}
    return Axis.named("zone", Names.of(columns, outlines=Outlines(shapes)))


def pair(
    cells: int = 64, tracts: int = 20, seed: int = 1, epsilons: tuple[str, str] = ("0.8", "0.2")
) -> tuple[htf.Release, htf.Release, np.ndarray]:
    """A map and zones of the same trips, and the true counts of the zones."""
    trips = htf.synthetic_trips(20_000)
    axis = zone_axis(htf.synthetic_zones(tracts=tracts, districts=4))
    domain = Domain.from_bounds(*trips.domain_bounds, cells=cells)
    layer = Domain((axis,), "OGC:CRS84")
    assert axis.names is not None
    assert axis.names.outlines is not None
    shapes = shapely.from_wkb(list(axis.names.outlines.shapes))
    truth = np.array([shapely.contains_xy(shape, trips.x, trips.y).sum() for shape in shapes])
    on_map = htf.publish(
        htf.read_points([trips.x, trips.y], domain), epsilons[0], noise=f"seeded:{seed}"
    )
    matrix = htf.FrequencyMatrix.from_dense(layer, truth)
    zones = htf.publish(matrix, epsilons[1], "hb", noise=f"seeded:{seed + 1}")
    return on_map, zones, truth


@given(st.integers(0, 2**32 - 1))
def test_leaves_are_cut_until_each_is_in_one_zone(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 12, 2).tolist())
    zones = random.integers(-1, 3, shape)
    tree = RegionTree(shape)
    root, once = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    leaves, _ = halve_often(tree, root, 0 * once, random.integers(0, 4, 1))
    before = len(tree)
    found, owner = cut_along_zones(tree, leaves, zones)
    assert tree.is_covered_once_by(found)
    for region, of in zip(found, owner, strict=True):
        (x0, y0), (x1, y1) = tree.low[region], tree.high[region]
        assert len(np.unique(zones[x0:x1, y0:y1])) == 1
        assert np.all(tree.low[leaves[of]] <= tree.low[region])
        assert np.all(tree.high[leaves[of]] >= tree.high[region])
    again, old = counted_tree(tree, before)
    assert len(again) == before
    assert set(old.tolist()) == set(leaves.tolist())
    assert np.array_equal(regions_before(tree, found, before), leaves[owner])


def test_errors_are_those_of_least_squares() -> None:
    """Against the covariance of the normal equations (Gauss and Markov), on a tree of 3 x 4 cells counted at random
    prices."""
    random = np.random.default_rng(1)
    tree = RegionTree((3, 4))
    root = np.zeros(1, dtype=np.int64)
    leaves, _ = halve_often(tree, root, 0 * root, np.array([4]))
    counts = TreeCounts()
    regions = np.arange(len(tree))
    prices = random.integers(1, 9, len(tree)) * 10**14
    counts.add(regions, random.integers(0, 50, len(tree)), prices)
    errors = TreeErrors.of(tree, counts)
    design = np.array(
        [
            [
                bool(
                    np.all(tree.low[r] <= tree.low[leaf])
                    and np.all(tree.high[r] >= tree.high[leaf])
                )
                for leaf in leaves
            ]
            for r in regions
        ],
        dtype=float,
    )
    variances = counts.by_region(tree)[1]
    of_leaves = np.linalg.inv(design.T @ np.diag(1 / variances) @ design)
    wanted = design @ of_leaves @ design.T
    found = np.column_stack([errors.times(row) for row in np.eye(len(tree))])
    assert found[np.ix_(leaves, leaves)] == pytest.approx(of_leaves, abs=1e-9 * wanted.max())
    assert np.diag(wanted)[leaves] == pytest.approx(least_squares(tree, counts)[1][leaves])


def test_the_fit_is_that_of_both_by_least_squares() -> None:
    """Against the normal equations of all counts of both trees together. No estimate is negative there."""
    random = np.random.default_rng(2)
    tree, zone_tree = RegionTree((4, 4)), RegionTree((3,))
    root = np.zeros(1, dtype=np.int64)
    leaves, _ = halve_often(tree, root, 0 * root, np.array([4]))
    zones = random.integers(0, 3, len(leaves))
    truth = random.integers(500, 900, len(leaves))
    of_zones, _ = halve_often(zone_tree, root, 0 * root, np.array([2]))
    order = zone_tree.low[of_zones, 0]

    def add(
        tree: RegionTree, inside: np.ndarray, values: np.ndarray
    ) -> tuple[TreeCounts, np.ndarray]:
        counts, regions = TreeCounts(), np.arange(len(tree))
        counts.add(regions, inside @ values + random.integers(-9, 9, len(tree)), Epsilon.of("0.3"))
        return counts, inside

    def holds(tree: RegionTree, leaves: np.ndarray) -> np.ndarray:
        return np.array(
            [
                [
                    np.all(tree.low[r] <= tree.low[leaf])
                    and np.all(tree.high[r] >= tree.high[leaf])
                    for leaf in leaves
                ]
                for r in range(len(tree))
            ],
            dtype=np.int64,
        )

    sums = np.bincount(zones, truth, minlength=3)
    of_map, design = add(tree, holds(tree, leaves), truth)
    of_zone, zone_design = add(zone_tree, holds(zone_tree, of_zones), sums[order])
    adding = (zones[None, :] == order[:, None]).astype(float)
    rows = np.concatenate([design, zone_design @ adding])
    noisy = np.concatenate([of_map.noisy_counts[0], of_zone.noisy_counts[0]])
    wanted = np.linalg.lstsq(rows, noisy, rcond=None)[0]
    errors = TreeErrors.of(zone_tree, of_zone)
    place = np.zeros(3, dtype=np.int64)
    place[order] = of_zones

    def error_of_zones(vector: np.ndarray) -> np.ndarray:
        every = np.zeros(len(zone_tree))
        every[place] = vector
        return errors.times(every)[place]

    found = fit_to_zones(
        leaves,
        least_squares(tree, of_map)[0][leaves],
        zones,
        TreeErrors.of(tree, of_map),
        least_squares(zone_tree, of_zone)[0][place],
        error_of_zones,
    )
    assert found == pytest.approx(wanted, rel=1e-6)


def test_map_and_zones_agree(tmp_path: Path) -> None:
    on_map, zones, _ = pair()
    both = inside_zones(on_map, zones)
    assert str(both.epsilon) == "1"
    assert both.record_epsilon == on_map.record_epsilon
    assert both.zones is not None
    cells = zone_of_cells(both.domain, zones.domain.axes[0])
    of_leaf = cells[both.low[:, 0], both.low[:, 1]]
    sums = np.bincount(of_leaf, both.estimates, minlength=20)
    assert both.zones.estimates == pytest.approx(sums[both.zones.low[:, 0]])
    assert both.estimates.min() >= 0
    assert both.zones.table("district")["count"].to_numpy().sum() == pytest.approx(
        both.count().count[0]
    )
    assert both.table("district") == both.zones.table("district")
    both.save(tmp_path / "both.parquet")
    assert htf.Release.load(tmp_path / "both.parquet") == both
    checks = htf.verify(tmp_path / "both.parquet")
    assert all(check.passed for check in checks)
    assert "zones: spend" in [check.name for check in checks]
    assert "counts 20 zones of a public layer. This cost 0.2 of the epsilon of 1." in both.statement


def test_the_middle_of_each_cell_decides() -> None:
    """Against shapely, for every cell."""
    on_map, zones, _ = pair(cells=32)
    axis = zones.domain.axes[0]
    assert axis.names is not None
    assert axis.names.outlines is not None
    found = zone_of_cells(on_map.domain, axis)
    x, y = (a.from_cells(np.arange(32) + 0.5) for a in on_map.domain.axes)
    for number, shape in enumerate(shapely.from_wkb(list(axis.names.outlines.shapes))):
        inside = shapely.contains_xy(shape, *np.meshgrid(x, y, indexing="ij"))
        assert np.array_equal(found == number, inside)


def test_zones_become_better_and_the_map_no_worse() -> None:
    """Over five seeds, which are fixed: the mean absolute error of zones from both counts is below that from their own, and
    boxes around records have no larger errors."""
    alone, together, boxes_alone, boxes_together = [], [], [], []
    trips = htf.synthetic_trips(20_000)
    random = np.random.default_rng(1)
    middles = random.integers(0, len(trips.x), 200)
    half = 0.02
    boxes = np.column_stack(
        [
            trips.x[middles] - half,
            trips.y[middles] - half,
            trips.x[middles] + half,
            trips.y[middles] + half,
        ]
    )
    boxes = np.clip(boxes, *np.array([trips.domain_bounds[:2] * 2, trips.domain_bounds[2:] * 2]))
    true_boxes = np.array(
        [
            np.sum((trips.x >= w) & (trips.x < e) & (trips.y >= s) & (trips.y < n))
            for w, s, e, n in boxes
        ]
    )
    for seed in range(0, 10, 2):
        on_map, zones, truth = pair(tracts=60, seed=seed + 1, epsilons=("0.08", "0.02"))
        both = inside_zones(on_map, zones)
        assert both.zones is not None
        alone.append(np.abs(zones.estimates - truth[zones.low[:, 0]]).mean())
        together.append(np.abs(both.zones.estimates - truth[zones.low[:, 0]]).mean())
        boxes_alone.append(np.abs(on_map.count(boxes).count - true_boxes).mean())
        boxes_together.append(np.abs(both.count(boxes).count - true_boxes).mean())
    assert np.mean(together) < 0.8 * np.mean(alone)
    assert np.mean(boxes_together) < 1.05 * np.mean(boxes_alone)


def test_changed_estimates_are_found_out() -> None:
    both = inside_zones(*pair()[:2])
    assert both.zones is not None

    def sums(release: htf.Release) -> bool:
        return next(check.passed for check in htf.verify(release) if check.name == "sums")

    assert sums(both)
    more = both.estimates.copy()
    more[0] += 1
    assert not sums(replace(both, estimates=more))
    assert not sums(
        replace(
            both, bought=(ZonesBought(replace(both.zones, estimates=both.zones.estimates + 1)),)
        )
    )
    assert not sums(replace(both, facts={**both.facts, COUNTED_REGIONS: 1}))


@pytest.mark.parametrize("counted", [None, 0, -1, 10**9, True, "7", [1]])
def test_no_map_is_inside_zones_without_saying_what_was_counted(counted: object) -> None:
    """As a file that somebody changed may have it."""
    on_map, zones, _ = pair(cells=16)
    both = inside_zones(on_map, zones)
    with pytest.raises(InputError, match="which of its regions were counted"):
        replace(both, facts={**both.facts, COUNTED_REGIONS: counted})


def test_zones_are_inside_of_nothing() -> None:
    on_map, zones, _ = pair(cells=16)
    both = inside_zones(on_map, zones)
    for wrong in (
        {"bought": ()},
        {"bought": (ZonesBought(both),)},
        {"bought": (ZonesBought(on_map),)},
        {"estimator": "homogeneous"},
    ):
        with pytest.raises(InputError, match="a map inside zones"):
            replace(both, **wrong)


def test_it_can_be_taken_apart() -> None:
    on_map, zones, _ = pair()
    parts = taken_apart(inside_zones(on_map, zones))
    assert np.array_equal(parts[0].leaves, on_map.leaves)
    assert parts[0].epsilon == on_map.epsilon
    assert parts[0].estimator == on_map.estimator
    assert parts[1].estimator == zones.estimator
    assert parts[1].facts == zones.facts


def test_what_does_not_go_together() -> None:
    on_map, zones, _ = pair()
    both = inside_zones(on_map, zones)
    with pytest.raises(InputError, match="by the mechanism htf"):
        inside_zones(zones, zones)
    with pytest.raises(InputError, match="by the mechanism htf"):
        inside_zones(both, zones)
    with pytest.raises(InputError, match="zones of one layer"):
        inside_zones(on_map, on_map)
    with pytest.raises(InputError, match="must both be secret"):
        inside_zones(replace(on_map, private=True), zones)
    elsewhere = replace(zones, domain=replace(zones.domain, crs="EPSG:2056"))
    with pytest.raises(InputError, match="give both the same"):
        inside_zones(on_map, elsewhere)
    with pytest.raises(InputError, match="read both in the same way"):
        inside_zones(on_map, replace(zones, protection=htf.Protection("person", 1)))


def test_zones_claim_what_both_cost_together(tmp_path: Path) -> None:
    """Their estimates come from the counts of both, so what their own counts cost would be too little to claim."""
    both = inside_zones(*pair()[:2])
    both.save(tmp_path / "both.parquet")
    for release in (both, htf.Release.load(tmp_path / "both.parquet")):
        zones = release.zones
        assert zones is not None
        assert (str(zones.epsilon), str(zones.own_epsilon)) == ("1", "0.2")
        assert "is 1-differentially private" in zones.statement
        assert "0.2-differentially" not in zones.statement
        assert "This cost 0.2 of the epsilon of 1." in release.statement
        assert [check for check in htf.verify(release) if not check.passed] == []


@pytest.mark.parametrize("own", ["2", "", None])
def test_zones_that_say_nothing_sound_of_their_own_epsilon_are_refused(own: str | None) -> None:
    both = inside_zones(*pair()[:2])
    assert both.zones is not None
    facts = {**both.zones.facts, "own_epsilon": own}
    with pytest.raises(InputError, match="epsilon"):
        replace(both.zones, facts=facts)
    with pytest.raises(InputError, match="same epsilon"):
        replace(both, bought=(ZonesBought(replace(both.zones, epsilon=Epsilon.of("0.2"))),))
