"""Makes one release of a map and of zones that were published from the same records, so that the map adds up to the zones.

All of it is computed from the two releases, and costs nothing. The map and the zones keep their measurements, ledgers
and prices. Their estimates become one: htf.estimation.inside_zones says how.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from htf.base import arguments
from htf.errors import InputError
from htf.estimation.homogeneous import FROM_LEAVES
from htf.estimation.inside_zones import (
    COUNTED_REGIONS,
    INSIDE_ZONES,
    OWN_EPSILON,
    WITH_MAP,
    TreeErrors,
    counted_tree,
    cut_along_zones,
    fit_to_zones,
    map_errors,
)
from htf.estimation.least_squares import sum_leaves
from htf.estimation.noise_law import noise_variances, scales_of_variances
from htf.frame.crs import same_crs
from htf.frame.domain import Axis, Domain, FloatArray, IntArray
from htf.frame.grids import rows_of
from htf.frame.tree import RegionTree
from htf.privacy.zones_bought import ZonesBought
from htf.release.release import Release, check_release

# The fact that says how the map, or the zones, were estimated by themselves.
OWN_ESTIMATOR = "own_estimator"
MOST_CELLS = 2**26  # of the map: the zone of each is found
ROWS_AT_ONCE = 2**20  # cells


def inside_zones(on_map: Release, zones: Release) -> Release:
    """Join a map and zones of the same records into one release, in which the map adds up to the zones.

    This costs nothing: the release claims the epsilons of both together.

    Parameters
    ----------
    on_map : Release
        A map of boxes by the mechanism `htf`, with the axes x and y alone.
    zones : Release
        A release of zones of one layer, without other axes. They may cover more or less than the map.

    Returns
    -------
    Release
        The map, cut along the borders of zones. Its `zones` are the zones.

    Raises
    ------
    InputError
        If the two do not go together.

    Examples
    --------
    >>> import htf
    >>> trips, layer = htf.synthetic_trips(5000), htf.synthetic_zones(tracts=20, districts=4)
    >>> domain = htf.Domain.from_bounds(*trips.domain_bounds, cells=64)
    >>> tracts = htf.Domain((htf.read_zones(layer, "tract", ["district"]),))
    >>> maps = htf.publish(htf.read_points([trips.x, trips.y], domain), "0.8", noise="seeded:1")
    >>> zones = htf.publish(htf.read_points([trips.x, trips.y], tracts), "0.2", noise="seeded:1")
    >>> both = htf.inside_zones(maps, zones)
    >>> str(both.epsilon), len(both.zones.table("district"))
    ('1', 4)
    """
    _check_pair(check_release(on_map, "on_map"), check_release(zones, "zones"))
    tree, each = on_map.tree.copy(), 1 / on_map.protection.shares
    counted = len(tree)
    cells = zone_of_cells(on_map.domain, zones.domain.axes[0])
    leaves, owner = cut_along_zones(tree, on_map.leaves, cells)
    order = np.argsort(tree.preorder()[leaves])
    leaves, owner = leaves[order], owner[order]
    of_zone = cells[tree.low[leaves, 0], tree.low[leaves, 1]]
    estimates = _count_boxes(on_map, tree, leaves) / each
    errors = map_errors(
        tree, counted, on_map.measurements.tree_counts(), sum_leaves(tree, leaves, estimates)
    )
    inside = of_zone >= 0
    estimates[inside] = fit_to_zones(
        leaves[inside],
        estimates[inside],
        of_zone[inside],
        errors,
        _by_cell(zones) / each,
        _error_of_zones(zones),
    )
    share = tree.cells(leaves) / on_map.tree.cells(on_map.leaves)[owner]
    sums = np.bincount(of_zone[inside], estimates[inside], minlength=zones.domain.size)
    together = on_map.epsilon + zones.epsilon
    with_map = replace(
        zones,
        epsilon=together,
        estimates=np.asarray(sums * each, np.float64)[zones.low[:, 0]],
        estimator=WITH_MAP,
        facts={**zones.facts, OWN_ESTIMATOR: zones.estimator, OWN_EPSILON: str(zones.epsilon)},
    )
    return replace(
        on_map,
        tree=tree,
        leaves=leaves,
        estimates=estimates * each,
        scales=scales_of_variances(share**2 * noise_variances(on_map.scales)[owner]),
        estimator=INSIDE_ZONES,
        facts={**on_map.facts, COUNTED_REGIONS: counted, OWN_ESTIMATOR: on_map.estimator},
        epsilon=together,
        bought=(*on_map.bought, ZonesBought(with_map)),
    )


def taken_apart(both: Release) -> tuple[Release, Release]:
    """The two releases before they were joined, but for their estimates, which follow from the measurements.

    Both have their own estimators again. `htf verify` finds their estimates, and joins them once more.
    """
    zones = both.zones
    if zones is None:
        raise InputError("this release is not inside of zones")
    tree, leaves = counted_tree(both.tree, both.facts[COUNTED_REGIONS])
    own_of_map = both.facts.get(OWN_ESTIMATOR)
    own_of_zones = zones.facts.get(OWN_ESTIMATOR)
    return (
        replace(
            both,
            tree=tree,
            leaves=leaves,
            estimates=np.zeros(len(leaves)),
            scales=np.zeros(len(leaves)),
            estimator=arguments.text(own_of_map, "the estimator of a map"),
            facts=_without(both.facts, COUNTED_REGIONS, OWN_ESTIMATOR),
            epsilon=both.epsilon - zones.own_epsilon,
            bought=tuple(one for one in both.bought if one.kind != ZonesBought.kind),
        ),
        replace(
            zones,
            epsilon=zones.own_epsilon,
            estimator=arguments.text(own_of_zones, "the estimator of zones"),
            facts=_without(zones.facts, OWN_ESTIMATOR, OWN_EPSILON),
        ),
    )


def _without(facts: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if name not in names}


def check_size(domain: Domain) -> None:
    """Refuse a map whose cells would take too long to be put into zones, one by one."""
    if domain.size > MOST_CELLS:
        raise InputError(
            f"a map inside zones has at most {MOST_CELLS:,} cells, but this one has {domain.size:,}: use fewer --cells"
        )


def zone_of_cells(domain: Domain, axis: Axis) -> IntArray:
    """The number of the zone that holds the middle of each cell of a map; -1 where there is none."""
    check_size(domain)
    x, y = (one.from_cells(np.arange(one.cells) + 0.5) for one in domain.axes)
    found = np.full(domain.shape, -1, dtype=np.int64)
    step = max(ROWS_AT_ONCE // len(y), 1)
    for start in range(0, len(x), step):
        columns = x[start : start + step]
        places = np.repeat(columns, len(y)), np.tile(y, len(columns))
        zones = axis.place(*places)
        found[start : start + step] = np.nan_to_num(zones, nan=-1.0).reshape(len(columns), len(y))
    return found


def _check_pair(on_map: Release, zones: Release) -> None:
    domain, layer = on_map.domain, zones.domain
    if not domain.has_map or domain.dimensions != 2 or on_map.estimator != FROM_LEAVES:
        raise InputError(
            "a map inside zones is one by the mechanism htf, with the axes x and y alone"
        )
    if layer.dimensions != 1 or not layer.outlined or zones.zones is not None:
        raise InputError("a map is put inside the zones of one layer, without other axes")
    if len(zones) != layer.size:
        raise InputError("a map is put inside zones that were counted one by one")
    if not same_crs(domain.crs, layer.crs):
        raise InputError(
            f"the map is in {domain.crs}, but the zones are in {layer.crs}: give both the same"
        )
    if on_map.activity is not None or zones.activity is not None or on_map.priors:
        raise InputError(
            "a map inside zones is of what was counted: without an activity of people and without a prior"
        )
    if zones.bought:
        raise InputError(
            "zones that a map is put inside of have bought nothing beside their counts: let the map have it"
        )
    if on_map.private != zones.private:
        raise InputError(
            "the noise of the map and that of the zones must both be secret, or neither"
        )


def _count_boxes(on_map: Release, tree: RegionTree, regions: IntArray) -> FloatArray:
    """What a map counts in regions of a finer tree."""
    rows = rows_of(on_map.domain.axes, tree.low[regions], tree.high[regions])
    return np.array(on_map.count(rows).count)


def _by_cell(zones: Release) -> FloatArray:
    counts = np.zeros(zones.domain.size)
    counts[zones.low[:, 0]] = zones.estimates
    return counts


def _error_of_zones(zones: Release) -> Any:
    """Multiplies by the covariance of the zones' errors."""
    errors = TreeErrors.of(zones.tree, zones.measurements.tree_counts())
    regions = np.zeros(zones.domain.size, dtype=np.int64)
    regions[zones.low[:, 0]] = zones.leaves

    def times(vector: FloatArray) -> FloatArray:
        every = np.zeros(len(zones.tree))
        every[regions] = vector
        return np.asarray(errors.times(every)[regions])

    return times
